"""Columns of serialized tensors come back as what they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import LEAVES
from rounds import rounds
from tfrecord_io.schema.types import is_number, is_text_or_bytes

TYPES = [(type_, values) for type_, values in LEAVES if is_number(type_) or is_text_or_bytes(type_)]
PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


@settings(max_examples=rounds(200))
@given(st.data())
def test_single_values_and_lists_come_back(engine: str, tmp_path: Path, data: st.DataObject) -> None:
    type_, values = data.draw(st.sampled_from(TYPES))
    as_list = data.draw(st.booleans())
    cell = st.lists(values, max_size=3) if as_list else values
    rows = data.draw(st.lists(st.one_of(st.none(), cell), max_size=5))
    array = pa.array(rows, pa.list_(type_) if as_list else type_)
    tfr.write_tfrecord(pa.table({"x": array}), tmp_path / "a", column_encoding={"x": "tensor_proto"})
    if not rows:  # a file of no records carries no schema
        return
    found = tfr.read_table(tmp_path / "a")["x"]
    found.validate(full=True)
    plain = PLAIN.get(type_, type_)
    assert found.type == (pa.list_(plain) if as_list else plain)
    assert _bits(found.to_pylist(), plain) == _bits(array.to_pylist(), plain)


def _bits(rows: list[Any], type_: pa.DataType) -> list[Any]:
    """NaN as its bytes."""
    if not pa.types.is_floating(type_):
        return rows
    return [None if row is None else np.array(row, type_.to_pandas_dtype()).tobytes() for row in rows]


@pytest.mark.parametrize(
    ("cell", "type_", "said"),
    [
        (b"\xff", pa.int16(), "not a TensorProto"),
        (tfr.serialize_tensor(np.int32(1)), pa.int16(), "of int32"),
        (tfr.serialize_tensor(np.zeros(2, "i2")), pa.int16(), "the shape"),
        (tfr.serialize_tensor(np.int16(1)), pa.list_(pa.int16()), "the shape"),
        (tfr.serialize_tensor(np.int16(1)), pa.string(), "of int16, not of string"),
        (tfr.serialize_tensor(["a"]), pa.string(), "the shape"),
        (tfr.serialize_tensor(np.array(b"\xff", object)), pa.string(), "not a valid string"),
    ],
)
def test_what_is_no_such_tensor_names_its_record(
    engine: str, tmp_path: Path, cell: bytes, type_: pa.DataType, said: str
) -> None:
    value = np.dtype("i2").type(1) if pa.types.is_int16(type_) else [1] if pa.types.is_list(type_) else "a"
    tfr.write_tfrecord(
        pa.table({"x": pa.array([value, None], type_)}), tmp_path / "a", column_encoding={"x": "tensor_proto"}
    )
    (first, second) = tfr.RecordReader(tmp_path / "a")
    with tfr.RecordWriter(tmp_path / "b") as writer:
        for payload in (first, second, tfr.encode_example({"x": cell})):
            writer.write(payload)
    with pytest.raises(tfr.DecodeError, match=said) as caught:
        tfr.read_table(tmp_path / "b")
    assert (caught.value.record, caught.value.feature) == (2, "x")
