"""A column of tensors reads as its rows do one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from protos import NUMBERS, arrays, bits, content, dtype, proto
from records import field, varint
from tfrecord_io.arrow.encodings import tensor_proto_columns as proto_columns
from tfrecord_io.arrow.encodings.tensor_proto_columns import TensorRows, parse_protos
from tfrecord_io.arrow.row_fault import RowFault


def column(items: list[bytes], before: bytes = b"", dtype: Any = np.int32) -> tuple[np.ndarray, np.ndarray]:
    """Offsets and values, which begin behind `before`."""
    offsets = len(before) + np.cumsum([0, *map(len, items)])
    return offsets.astype(dtype), np.frombuffer(before + b"".join(items) + b"behind", np.uint8)


def check(found: TensorRows, expected: list[np.ndarray]) -> None:
    assert found.dtype == expected[0].dtype.name
    assert [tuple(map(int, shape)) for shape in found.shapes] == [each.shape for each in expected]
    assert bits(found.contents) == b"".join(map(bits, expected))
    assert found.lengths.tolist() == [each.nbytes for each in expected]
    assert found.contents.dtype == np.uint8
    assert found.contents.flags.owndata


@given(arrays(), st.integers(1, 4), st.sampled_from([np.int32, np.int64]), st.binary(max_size=3))
def test_one_shape(array: np.ndarray, rows: int, offsets: Any, before: bytes) -> None:
    expected = [array, *(array[..., ::-1] if array.ndim else array for _ in range(rows - 1))]
    found = parse_protos(*column([tfr.serialize_tensor(each) for each in expected], before, offsets))
    check(found, expected)
    assert isinstance(found.shapes, np.ndarray)
    assert found.shapes.shape == (rows, array.ndim)


@given(st.sampled_from(sorted(NUMBERS)).flatmap(lambda name: st.lists(arrays(name), min_size=1, max_size=4)))
def test_many_shapes(expected: list[np.ndarray]) -> None:
    found = parse_protos(*column([tfr.serialize_tensor(each) for each in expected]))
    check(found, expected)
    assert isinstance(found.shapes, list) == (len({each.ndim for each in expected}) > 1)


def test_values_in_fields() -> None:
    one, two = np.array([7, 7, 7], "uint8"), np.array([1, 2, 3], "uint8")
    repeated = proto(4, (3,), field(7, varint(7)))
    check(parse_protos(*column([repeated, tfr.serialize_tensor(two)])), [one, two])
    check(parse_protos(*column([tfr.serialize_tensor(two), repeated])), [two, one])


@pytest.mark.parametrize("row", [0, 1, 4])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "DT_INVALID"),
        (b"\xff", "no TensorProto"),
        (proto(10, (2,), content(b"\0\1\0")), "3 bytes of content"),
        (proto(11, (2,), content(b"ab")), "DT_QINT8"),
        (tfr.serialize_tensor(["a", "b"]), "of string"),
    ],
)
def test_a_row_that_is_none(row: int, bad: bytes, reason: str) -> None:
    items = [tfr.serialize_tensor(np.array([True, False]))] * 5
    items[row] = bad
    with pytest.raises(RowFault, match=reason) as caught:
        parse_protos(*column(items))
    assert caught.value.row == row


def test_a_row_of_another_dtype() -> None:
    items = [tfr.serialize_tensor(np.zeros(2, name)) for name in ("int16", "int16", "uint16")]
    with pytest.raises(RowFault, match="is of uint16, not of int16") as caught:
        parse_protos(*column(items))
    assert (caught.value.row, caught.value.expected, caught.value.got) == (2, "int16", "uint16")


def test_a_byte_that_is_no_bool() -> None:
    good = tfr.serialize_tensor(np.array([True, False]))
    with pytest.raises(RowFault, match="the byte 2 is no bool") as caught:
        parse_protos(*column([good, good[:-1] + b"\x02"]))
    assert caught.value.row == 1


def test_few_bytes_do_not_unfold_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proto_columns, "MOST_BYTES", 2000)
    items = [proto(4, (900,), field(7, varint(7)))] * 3
    with pytest.raises(RowFault, match="unfold to 2700 bytes") as caught:
        parse_protos(*column(items))
    assert caught.value.row == 2


@pytest.mark.parametrize("name", sorted(NUMBERS))
def test_every_dtype(name: str) -> None:
    expected = [np.arange(6).astype(dtype(name)).reshape(2, 3)] * 3
    check(parse_protos(*column([tfr.serialize_tensor(each) for each in expected])), expected)
