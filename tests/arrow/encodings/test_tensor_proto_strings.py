"""Columns of serialized tensors of strings, as arrays of text or bytes of one width."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tfrecord_io.arrow.encodings.tensor_proto_strings import parse_string_protos
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.format.tensor_proto_writer import serialize_tensor

SHAPES = npst.array_shapes(min_dims=0, max_dims=2, min_side=0)
BYTES = st.binary(max_size=3).map(lambda item: item.rstrip(b"\0"))
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=3)
ARRAYS = [npst.arrays("S3", SHAPES, elements=BYTES), npst.arrays("U3", SHAPES, elements=TEXT)]


def column(cells: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    return np.cumsum([0, *map(len, cells)]), np.frombuffer(b"".join(cells), np.uint8)


@given(st.one_of([st.lists(arrays, max_size=3) for arrays in ARRAYS]))
def test_arrays_come_back(arrays: list[np.ndarray]) -> None:
    name = arrays[0].dtype.str[1:] if arrays else "S3"
    found = parse_string_protos(*column([serialize_tensor(each) for each in arrays]), name)
    assert found.dtype == name
    assert [tuple(shape) for shape in found.shapes] == [each.shape for each in arrays]
    assert found.contents.tobytes() == b"".join(each.tobytes() for each in arrays)
    assert found.lengths.tolist() == [each.nbytes for each in arrays]


@pytest.mark.parametrize(
    ("cell", "name", "said"),
    [
        (b"\xff", "S3", "no TensorProto"),
        (serialize_tensor(np.int8(1)), "S3", "of int8, not of string"),
        (serialize_tensor(["abcd"]), "S3", "4 characters, S3 has 3"),
        (serialize_tensor(["äöüß"]), "U3", "4 characters, U3 has 3"),
        (serialize_tensor([b"\xff"]), "U3", "no text"),
    ],
)
def test_what_is_no_such_tensor_names_its_row(cell: bytes, name: str, said: str) -> None:
    with pytest.raises(RowFault, match=said) as caught:
        parse_string_protos(*column([serialize_tensor(["a"]), cell]), name)
    assert caught.value.row == 1
