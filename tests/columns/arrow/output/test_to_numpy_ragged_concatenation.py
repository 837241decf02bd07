"""Arrays are concatenate alike on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from limited import set_limits
from tfrecord_io.base import LIMITS
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.output.to_numpy import concatenate


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize(
    ("dtype", "shape"),
    [("f4", ()), ("i8", (2, 3)), ("?", (1,)), ("M8[us]", ()), ("O", ()), (Dtype.text(missing=False), ())],
)
def test_threads_make_no_difference(
    monkeypatch: pytest.MonkeyPatch, threads: int, dtype: object, shape: tuple[int, ...]
) -> None:
    set_limits(monkeypatch, joined_bytes=0)
    arrays = [np.full((count, *shape), count).astype(dtype) for count in (3, 0, 1, 5, 2)]  # type: ignore[call-overload]
    whole = concatenate(arrays, threads)
    assert whole.dtype == arrays[0].dtype
    assert whole.tolist() == [row for array in arrays for row in array.tolist()]


def test_rows_of_different_shapes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, joined_bytes=0)
    with pytest.raises(ValueError, match="dimensions"):
        concatenate([np.zeros((2, 1)), np.zeros((2, 3))], 2)


def test_large_arrays_are_joined_by_threads() -> None:
    arrays = [np.full(LIMITS.joined_bytes // 8, number) for number in range(3)]
    assert (concatenate(arrays, 2) == np.concatenate(arrays)).all()
