"""The encoding "tensor_proto": what tf.io.serialize_tensor writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tfrecord_io as tfr
from arrow_tables import LEAVES
from limited import set_limits
from protos import NUMBERS, arrays, bits, content, dtype, proto
from records import field, varint
from rounds import rounds
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.encodings.tensor_encoding import DecodedCells, tensor_encoding
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.columns.schema.types import is_number, is_text_or_bytes
from tfrecord_io.testing import BytesEncodingSuite
from tfrecord_io.testing.tensor_encoding_suite import NAMES

TYPES = [(type_, values) for type_, values in LEAVES if is_number(type_) or is_text_or_bytes(type_)]
PLAIN = {
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}


@settings(max_examples=rounds(200))
@given(st.data())
def test_single_values_and_lists_come_back(engine: str, new_folder: Callable[[], Path], data: st.DataObject) -> None:
    tmp_path = new_folder()
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
    ("cell", "type_", "message"),
    [
        (b"\xff", pa.int16(), "not a TensorProto"),
        (tfr.io.serialize_tensor(np.int32(1)), pa.int16(), "of int32"),
        (tfr.io.serialize_tensor(np.zeros(2, "i2")), pa.int16(), "the shape"),
        (tfr.io.serialize_tensor(np.int16(1)), pa.list_(pa.int16()), "the shape"),
        (tfr.io.serialize_tensor(np.int16(1)), pa.string(), "of int16, not of string"),
        (tfr.io.serialize_tensor(["a"]), pa.string(), "the shape"),
        (tfr.io.serialize_tensor(np.array(b"\xff", object)), pa.string(), "not a valid string"),
    ],
)
def test_what_is_no_such_tensor_names_its_record(
    engine: str, tmp_path: Path, cell: bytes, type_: pa.DataType, message: str
) -> None:
    value = np.dtype("i2").type(1) if pa.types.is_int16(type_) else [1] if pa.types.is_list(type_) else "a"
    tfr.write_tfrecord(
        pa.table({"x": pa.array([value, None], type_)}), tmp_path / "a", column_encoding={"x": "tensor_proto"}
    )
    (first, second) = tfr.RecordReader(tmp_path / "a")
    with tfr.RecordWriter(tmp_path / "b") as writer:
        for payload in (first, second, tfr.encode_example({"x": cell})):
            writer.write(payload)
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        tfr.read_table(tmp_path / "b")
    assert (caught.value.record, caught.value.feature) == (2, "x")


@pytest.mark.usefixtures("engine")
class TestTensorProtos(BytesEncodingSuite):
    name = "tensor_proto"
    dtypes: ClassVar = [name for name in NAMES if "64[" not in name]
    hostile: ClassVar = [
        b"",
        b"\xff",
        tfr.io.serialize_tensor(np.zeros(3, "u4")),
        tfr.io.serialize_tensor(np.zeros((3, 1), "i4")),
        tfr.io.serialize_tensor(["a", "b", "c"]),
        tfr.io.serialize_tensor(np.zeros(3, "i4"))[:-1],
    ]

    def elsewhere(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"x": tfr.io.serialize_tensor(array)}


# ---- many cells at once are as each on its own


def decoded(items: list[bytes], dtype: str, shape: tuple[int | None, ...], offsets: Any = np.int64) -> DecodedCells:
    ends = np.cumsum([0, *map(len, items)]).astype(offsets)
    values = np.frombuffer(b"".join(items) + b"behind", np.uint8)
    return tensor_encoding("tensor_proto").decode(values, ends, Dtype.of_name(dtype), shape)


def check(cells: DecodedCells, expected: list[np.ndarray]) -> None:
    assert cells.shapes is not None
    assert [tuple(shape) for shape in cells.shapes.tolist()] == [each.shape for each in expected]
    assert bits(cells.data) == b"".join(map(bits, expected))
    assert cells.sizes.tolist() == [each.nbytes for each in expected]
    assert cells.data.flags.owndata


@given(arrays(), st.integers(1, 4), st.sampled_from([np.int32, np.int64]))
def test_one_shape(array: np.ndarray, rows: int, offsets: Any) -> None:
    expected = [array, *(array[..., ::-1] if array.ndim else array for _ in range(rows - 1))]
    check(
        decoded([tfr.io.serialize_tensor(each) for each in expected], array.dtype.name, array.shape, offsets), expected
    )


@given(st.sampled_from(sorted(NUMBERS)).flatmap(lambda name: st.lists(arrays(name), min_size=1, max_size=4)))
def test_many_shapes(tensors: list[np.ndarray]) -> None:
    rank = tensors[0].ndim
    items = [tfr.io.serialize_tensor(each) for each in tensors]
    other = next((row for row, each in enumerate(tensors) if each.ndim != rank), None)
    if other is None:
        check(decoded(items, tensors[0].dtype.name, (None,) * rank), tensors)
        return
    with pytest.raises(RowFault, match="the shape") as caught:
        decoded(items, tensors[0].dtype.name, (None,) * rank)
    assert caught.value.row == other


def test_values_in_fields() -> None:
    one, two = np.array([7, 7, 7], "uint8"), np.array([1, 2, 3], "uint8")
    repeated = proto(4, (3,), field(7, varint(7)))
    check(decoded([repeated, tfr.io.serialize_tensor(two)], "uint8", (3,)), [one, two])
    check(decoded([tfr.io.serialize_tensor(two), repeated], "uint8", (3,)), [two, one])


@pytest.mark.parametrize("row", [0, 1, 4])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "DT_INVALID"),
        (b"\xff", "no TensorProto|not a TensorProto"),
        (proto(10, (2,), content(b"\0\1\0")), "3 bytes of content"),
        (proto(11, (2,), content(b"ab")), "DT_QINT8"),
        (tfr.io.serialize_tensor(["a", "b"]), "of string"),
        (tfr.io.serialize_tensor(np.array([True, False]))[:-1] + b"\x02", "a byte is not a bool"),
    ],
)
def test_a_damaged_row_is_named(row: int, bad: bytes, reason: str) -> None:
    items = [tfr.io.serialize_tensor(np.array([True, False]))] * 5
    items[row] = bad
    with pytest.raises(RowFault, match=reason) as caught:
        decoded(items, "bool", (2,))
    assert caught.value.row == row


def test_a_row_of_another_dtype() -> None:
    items = [tfr.io.serialize_tensor(np.zeros(2, name)) for name in ("int16", "int16", "uint16")]
    with pytest.raises(RowFault, match="is of uint16, not of int16") as caught:
        decoded(items, "int16", (2,))
    assert (caught.value.row, caught.value.expected, caught.value.got) == (2, "int16", "uint16")


def test_few_bytes_do_not_unfold_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, MAX_RECORD_BYTES=2000)
    with pytest.raises(RowFault, match="unfold to 2700 bytes") as caught:
        decoded([proto(4, (900,), field(7, varint(7)))] * 3, "uint8", (900,))
    assert caught.value.row == 2


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_every_dtype(name: str) -> None:
    expected = [np.arange(6).astype(dtype(name)).reshape(2, 3)] * 3
    check(decoded([tfr.io.serialize_tensor(each) for each in expected], name, (2, 3)), expected)


# ---- strings, as text or bytes of one width

BYTES = st.binary(max_size=3).map(lambda item: item.rstrip(b"\0"))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)


@given(st.data())
def test_strings_come_back(data: st.DataObject) -> None:
    name, cells = data.draw(st.sampled_from([("S3", BYTES), ("U3", TEXT)]))
    rank = data.draw(st.integers(0, 2))
    shapes = npst.array_shapes(min_dims=rank, max_dims=rank, min_side=0)
    tensors = data.draw(st.lists(npst.arrays(name, shapes, elements=cells), max_size=3))
    found = decoded([tfr.io.serialize_tensor(each) for each in tensors], name, (None,) * rank)
    assert found.data.tobytes() == b"".join(each.tobytes() for each in tensors)
    assert found.sizes.tolist() == [each.nbytes for each in tensors]
    assert found.shapes is not None
    assert [tuple(shape) for shape in found.shapes.tolist()] == [each.shape for each in tensors]


@pytest.mark.parametrize(
    ("cell", "name", "reason"),
    [
        (b"\xff", "S3", "TensorProto"),
        (tfr.io.serialize_tensor(np.int8(1)), "S3", "of int8, not of string"),
        (tfr.io.serialize_tensor(["abcd"]), "S3", "4 characters, S3 has 3"),
        (tfr.io.serialize_tensor(["äöüß"]), "U3", "4 characters, U3 has 3"),
        (tfr.io.serialize_tensor([b"\xff"]), "U3", "not text"),
    ],
)
def test_a_damaged_string_names_its_row(cell: bytes, name: str, reason: str) -> None:
    with pytest.raises(RowFault, match=reason) as caught:
        decoded([tfr.io.serialize_tensor(["a"]), cell], name, (None,))
    assert caught.value.row == 1
