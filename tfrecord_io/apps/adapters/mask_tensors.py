"""Masked arrays as pairs of arrays, for libraries whose tensors have no missing values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrecord_io.errors import SchemaError


def split_masks(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Split each masked array into its values and its mask, named ``<name>/mask``; other arrays stay.

    SchemaError if there is another array of that name.

    >>> split_masks({"x": np.ma.MaskedArray([1, 0], [False, True])})
    {'x': array([1, 0]), 'x/mask': array([False,  True])}
    """
    pairs: dict[str, Any] = {}
    for name, array in arrays.items():
        if not isinstance(array, np.ma.MaskedArray):
            pairs[name] = array
            continue
        pairs[name] = array.data
        mask = f"{name}/mask"
        if mask in arrays:
            reason = f'two arrays would have the name "{mask}"'
            raise SchemaError(reason, feature=name, hint="exclude one of the columns")
        pairs[mask] = np.ma.getmaskarray(array)
    return pairs
