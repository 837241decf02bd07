"""`text`: UTF-8 as an array of NumPy's StringDType."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.bytes.engine.numpy_output import Runs
from tfrecord_io.bytes.format.dtypes import Dtype

VALUES = st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(["ß" * 300, "\x00"]))


def texts(values: list[str | None], dtype: type, valid: bool) -> np.ndarray:
    encoded = [b"hidden" if value is None else value.encode() for value in values]
    offsets = np.cumsum([3, *map(len, encoded)]).astype(dtype)
    mask = np.array([value is not None for value in values], np.bool_) if valid else None
    return Runs(np.frombuffer(b"abc" + b"".join(encoded), np.uint8), offsets).text(mask)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@given(values=VALUES)
def test_text_is_that_of_the_slots(values: list[str | None], dtype: type) -> None:
    array = texts(values, dtype, valid=True)
    assert array.dtype == Dtype.text(missing=True)
    assert array.tolist() == values
    present = [value for value in values if value is not None]
    array = texts(present, dtype, valid=False)
    assert array.dtype == Dtype.text(missing=False)
    assert array.tolist() == present


def test_arrays_of_text_own_their_memory() -> None:
    values: list[str | None] = ["short", None, "longer than an item of sixteen bytes"] * 1000
    array = texts(values, np.int32, valid=True)
    array[1] = "a longer text instead of a missing one"
    array[2] = None
    copy, again = array.copy(), texts(values, np.int32, valid=True)
    del array
    assert copy[:4].tolist() == ["short", "a longer text instead of a missing one", None, "short"]
    assert again.tolist() == values
