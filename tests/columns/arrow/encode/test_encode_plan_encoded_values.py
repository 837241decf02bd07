"""Values that are not valid in their type, and would be refused by a reader, are refused when they are written."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tfrecord_io.columns.arrow.encode.encode_columns import encode_columns
from tfrecord_io.columns.arrow.encode.encode_plan import plan_writing
from tfrecord_io.columns.arrow.encode.slice_encoder import dictionaries
from tfrecord_io.errors import EncodeError

MIDNIGHT = 86_400_000
BAD_TEXT = pa.array([b"a", b"\xc3\xa9", None, b"\xff", b"\xfe"])


@pytest.mark.fault(72)
@pytest.mark.parametrize(
    ("array", "row"),
    [
        (pa.array([0, None, MIDNIGHT, 5]).view(pa.date64()), 3),
        (pa.array([0, 86_400], pa.int32()).view(pa.time32("s")), 1),
        (pa.array([0, -1]).view(pa.time64("ns")), 1),
        (BAD_TEXT.view(pa.string()), 3),
        (BAD_TEXT.cast(pa.large_binary()).view(pa.large_string()), 3),
        (pa.ListArray.from_arrays([0, 2, 2, 5], BAD_TEXT.fill_null(b"").view(pa.string())), 2),
        (pa.StructArray.from_arrays([BAD_TEXT.view(pa.string())], ["a"], mask=BAD_TEXT.is_null()), 3),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, 3]), BAD_TEXT.fill_null(b"").view(pa.string())), 2),
    ],
    ids=["date64", "time32", "time64", "string", "large_string", "list", "struct", "dictionary"],
)
def test_values_that_a_reader_would_refuse_are_refused(array: pa.Array, row: int) -> None:
    batch = pa.record_batch({"x": array})
    with pytest.raises(EncodeError) as caught:
        encode_columns(batch, plan_writing(batch.schema), row_base=10)
    assert caught.value.record == 10 + row
    assert caught.value.feature in ("x", "x/a")
    assert encode_columns(batch[:row], plan_writing(batch.schema))


def test_invalid_text_below_a_null_is_not_written() -> None:
    hidden = pa.StructArray.from_arrays(
        [BAD_TEXT.view(pa.string())], ["a"], mask=pa.array([False, False, True, True, True])
    )
    batch = pa.record_batch({"x": hidden})
    (column,) = encode_columns(batch, plan_writing(batch.schema))
    assert column.null_count == 3


def test_invalid_text_is_refused_in_tensor_protos() -> None:
    batch = pa.record_batch({"x": BAD_TEXT.view(pa.string())})
    with pytest.raises(EncodeError, match="UTF-8") as caught:
        encode_columns(batch, plan_writing(batch.schema, column_encoding={"x": "tensor_proto"}))
    assert caught.value.record == 3


def test_categories_that_are_not_valid_are_refused_also_if_unused() -> None:
    array = pa.DictionaryArray.from_arrays(pa.array([0]), BAD_TEXT.view(pa.string()))
    batch = pa.record_batch({"x": array})
    with pytest.raises(EncodeError, match="categories"):
        dictionaries(batch, plan_writing(batch.schema))
