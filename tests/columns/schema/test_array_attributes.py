"""Attributes of arrays in the metadata of fields."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns.schema.array_attributes import KEY, add_attributes, attributes_of

VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES | st.lists(VALUES, max_size=3), max_size=4))
def test_attributes_are_restored(attributes: dict[str, object]) -> None:
    schema = add_attributes(
        pa.schema([pa.field("x", pa.int64(), metadata={"own": "1"}), ("y", pa.int64())]), {"x": attributes}
    )
    assert attributes_of(schema.field("x")) == attributes
    assert attributes_of(schema.field("y")) == {}
    assert schema.field("x").metadata[b"own"] == b"1"


def test_metadata_of_other_programs_is_no_attribute() -> None:
    for text in (b"[1]", b"{", b"\xff", b"[" * 100_000):
        assert attributes_of(pa.field("x", pa.int64(), metadata={KEY: text})) == {}
