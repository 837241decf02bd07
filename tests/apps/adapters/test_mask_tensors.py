"""Masked arrays as pairs of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.adapters.mask_tensors import split_masks


def test_each_masked_array_has_its_mask_next_to_it() -> None:
    masked = np.ma.MaskedArray([[1, 2], [3, 4]], [[False, True], [False, False]])
    plain, objects = np.arange(2), np.array([None, "a"], object)
    pairs = split_masks({"plain": plain, "masked": masked, "objects": objects, "ragged": (plain, plain)})
    assert list(pairs) == ["plain", "masked", "masked/mask", "objects", "ragged"]
    assert pairs["plain"] is plain
    assert pairs["objects"] is objects
    assert type(pairs["masked"]) is np.ndarray
    assert pairs["masked/mask"].tolist() == [[False, True], [False, False]]


def test_a_mask_without_missing_values() -> None:
    assert split_masks({"x": np.ma.MaskedArray([1, 2])})["x/mask"].tolist() == [False, False]


def test_a_name_that_is_taken() -> None:
    with pytest.raises(tfr.errors.SchemaError, match="x/mask"):
        split_masks({"x/mask": np.arange(2), "x": np.ma.MaskedArray([1, 2])})
