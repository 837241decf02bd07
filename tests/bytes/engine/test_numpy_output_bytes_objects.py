"""`Runs.objects`: slots as objects of ``bytes``, alike on any number of threads."""

from __future__ import annotations

import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.bytes.engine import numpy_output
from tfrecord_io.bytes.engine.numpy_output import Runs

VALUES = st.lists(st.none() | st.binary(max_size=5) | st.sampled_from([b"", b"\0", b"a" * 600, b"b" * 3000]))


def slots(
    values: list[bytes | None], dtype: type, valid: bool = True
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    encoded = [b"hidden" if value is None else value for value in values]
    offsets = np.cumsum([3, *map(len, encoded)]).astype(dtype)
    mask = np.array([value is not None for value in values], np.bool_) if valid else None
    return np.frombuffer(b"abc" + b"".join(encoded), np.uint8), offsets, mask


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("threads", [1, 2, 8])
@given(parts=st.lists(VALUES, max_size=3), piece=st.sampled_from([1, 700, 2**24]))
def test_objects_are_those_of_the_slots(parts: list[list[bytes | None]], dtype: type, threads: int, piece: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numpy_output, "_OBJECT_PIECE_BYTES", piece)
        items = Runs.objects([slots(values, dtype) for values in parts], threads)
        assert items.dtype == object
        assert items.tolist() == [value for values in parts for value in values]
        present = [[value for value in values if value is not None] for values in parts]
        items = Runs.objects([slots(values, dtype, valid=False) for values in present], threads)
        assert items.tolist() == [value for values in present for value in values]


def test_objects_behave_like_other_bytes() -> None:
    values: list[bytes | None] = [b"x" * 700 + bytes([i]) for i in range(200)]
    items = Runs.objects([slots(values, np.int64)])
    assert {value: i for i, value in enumerate(items)} == {value: i for i, value in enumerate(values)}
    other = np.empty(1, object)
    other[0] = bytes(701)
    assert sys.getrefcount(items[7]) == sys.getrefcount(other[0])
    nothing = sys.getrefcount(None)
    del items
    assert abs(sys.getrefcount(None) - nothing) < 100


@pytest.mark.parametrize("threads", [1, 2])
def test_many_large_objects(threads: int) -> None:
    sizes = np.resize([20_000, 0, 1, 90_000, 300_000, 511, 2], 700)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    data = np.random.default_rng(5).integers(0, 256, offsets[-1], np.uint8)
    valid = np.arange(len(sizes)) % 11 != 5
    items = Runs.objects([(data, offsets, valid), (data, offsets, None)], threads)
    content = data.tobytes()
    expected = [content[begin:end] for begin, end in pairwise(offsets.tolist())]
    assert items[len(sizes) :].tolist() == expected
    assert items[: len(sizes)].tolist() == [value if valid[i] else None for i, value in enumerate(expected)]
