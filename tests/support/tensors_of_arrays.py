"""Random arrays of every dtype, shape and memory layout that can be tensors, for Hypothesis; and their bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tfrecord_io.testing.tensor_encoding_suite import NAMES, values_of


@dataclass(frozen=True)
class Given:
    """A column to be written, and the tensor of each row; None where it is null."""

    name: str
    data: Any
    cells: list[np.ndarray[Any, Any] | None]


@st.composite
def layouts(draw: st.DrawFn, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Lay out the values in another way."""
    form = draw(st.sampled_from(["as it is", "fortran", "strided", "swapped", "backwards"]))
    if form == "fortran":
        return np.asfortranarray(values)
    if form == "strided":
        return np.repeat(values, 2, axis=0)[::2]
    if form == "swapped" and values.dtype.isbuiltin == 1:
        return values.astype(values.dtype.newbyteorder(">"))
    return np.ascontiguousarray(values[::-1])[::-1] if form == "backwards" else values


@st.composite
def columns(draw: st.DrawFn, rows: int) -> Given:
    """Draw an array, a masked array, or a list of arrays of one rank and None."""
    name = draw(st.sampled_from(NAMES))
    seed = draw(st.integers(0, 2**32 - 1))
    shape = tuple(draw(st.lists(st.integers(0, 3), max_size=3)))
    values = values_of(name, (rows, *shape), seed)
    form = draw(st.sampled_from(["array", "masked", "cells", "ragged"]))
    missing = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows)), bool)
    if form == "array":
        return Given(name, draw(layouts(values)), [values[row, ...] for row in range(rows)])
    if form == "masked" and (values.size or not rows):
        mask = np.broadcast_to(missing.reshape(-1, *[1] * len(shape)), values.shape)
        return Given(
            name, np.ma.masked_array(values, mask), [None if missing[row] else values[row, ...] for row in range(rows)]
        )
    cells = [np.asarray(values[row, ...]) for row in range(rows)]
    if form == "ragged" and shape:
        cells = [np.repeat(cell, draw(st.integers(0, 2)), axis=draw(st.integers(0, len(shape) - 1))) for cell in cells]
    if rows:
        missing[draw(st.integers(0, rows - 1))] = False  # an array says what the others would be
    found = [None if gone else cell for cell, gone in zip(cells, missing, strict=True)]
    return Given(name, [None if cell is None else draw(layouts(cell)) if cell.ndim else cell for cell in found], found)
