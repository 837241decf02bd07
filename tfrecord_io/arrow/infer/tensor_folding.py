"""Which features of decoded rows are tensors: bytes beside which a shape and a dtype stand in every record that has them.

What rows show joins as observations do: it is associative and commutative, so the order of files, and how they are cut, cannot
change what is folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tfrecord_io.arrow.buffers import column_mask
from tfrecord_io.arrow.decode.companions import Companions, product
from tfrecord_io.arrow.decode.layout import is_nothing
from tfrecord_io.arrow.tensor_values import first_invalid
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.errors import MissingDependencyError
from tfrecord_io.format.dtypes import Element, element
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.schema.leaf import companions
from tfrecord_io.schema.observation import Observation

_MOST_AXES = 32  # of NumPy before version 2
_MOST_NAME = 40  # bytes of a dtype's name


@dataclass(frozen=True, slots=True)
class FoldedTensor:
    """What the tensors of a feature have in common.

    Attributes
    ----------
    of : Element
    rank : int
    shape : tuple of int or None
        None: it varies.
    """

    of: Element
    rank: int
    shape: tuple[int, ...] | None


def candidates(seen: Mapping[str, Observation]) -> list[str]:
    """The features that may be tensors, by kinds and numbers of values."""
    return [
        name
        for name, of in seen.items()
        if _is_bytes(of) and _have_kinds(*(seen.get(each) for each in companions(name)))
    ]


def _is_bytes(seen: Observation) -> bool:
    return seen.kind is Kind.BYTES and seen.layout is Layout.SCALAR and seen.steps is None


def _have_kinds(shape: Observation | None, dtype: Observation | None) -> bool:
    return (
        shape is not None
        and shape.kind is Kind.INT64
        and shape.steps is None
        and dtype is not None
        and _is_bytes(dtype)
    )


def fold(name: str, batches: Iterable[Mapping[str, ColumnBuffers]]) -> FoldedTensor | None:
    """What the tensors of feature `name` have in common; None where some record makes it no tensor."""
    joined: FoldedTensor | None = None
    for columns in batches:
        if all(each not in columns or is_nothing(columns[each]) for each in (name, *companions(name))):
            continue
        if any(each not in columns for each in (name, *companions(name))):
            return None
        found = _fold(name, columns)
        if found is None or (joined is not None and (found.of, found.rank) != (joined.of, joined.rank)):
            return None
        same = joined is None or joined.shape == found.shape
        joined = found if same else FoldedTensor(found.of, found.rank, None)
    return joined


def _fold(name: str, columns: Mapping[str, ColumnBuffers]) -> FoldedTensor | None:
    column = columns[name]
    said = Companions(name).of(columns, column.rows)
    mask = column_mask(column)
    alike = np.array_equal(mask, column_mask(said.shape)) and np.array_equal(mask, column_mask(said.dtype))
    if not alike or column.layout is not Layout.SCALAR or column.value_offsets is None or column.values is None:
        return None
    sizes = np.diff(column.value_offsets).astype(np.int64)
    sizes = sizes if mask.all() else sizes[mask]
    of = _one_dtype(said.dtype, mask)
    shapes = _shapes(said.shape, mask)
    if of is None or shapes is None or np.any(product(shapes) * of.itemsize != sizes) or np.any(shapes < 0):
        return None
    if first_invalid(of, column.values) >= 0:
        return None
    alike = np.array_equal(shapes[1:], shapes[:-1])  # each is as the one before
    return FoldedTensor(of, shapes.shape[1], tuple(shapes[0].tolist()) if alike else None)


def are_companions(name: str, batches: Iterable[Mapping[str, ColumnBuffers]]) -> bool:
    """Whether every row that has a shape or a dtype beside `name`, which is not read itself, has both, of one dtype and rank."""
    found: set[tuple[Element, int]] = set()
    for columns in batches:
        there = [each in columns and not is_nothing(columns[each]) for each in companions(name)]
        if not any(there):
            continue
        if not all(there):
            return False
        said = Companions(name).of(columns, next(iter(columns.values())).rows)
        mask = column_mask(said.dtype)
        if not mask.any() or not np.array_equal(mask, column_mask(said.shape)):
            return False
        of, shapes = _one_dtype(said.dtype, mask), _shapes(said.shape, mask)
        if of is None or shapes is None:
            return False
        found.add((of, shapes.shape[1]))
    return len(found) == 1


def _one_dtype(column: ColumnBuffers, mask: Array) -> Element | None:
    """The dtype that all rows name, None where they differ or it is none."""
    assert column.value_offsets is not None
    assert column.values is not None
    sizes = np.diff(column.value_offsets)[mask]
    size = int(sizes[0])
    if not 0 < size <= _MOST_NAME or np.any(sizes != size):
        return None
    names = column.values[column.value_offsets[0] : column.value_offsets[-1]].reshape(
        -1, size
    )  # a null's slot is empty
    if np.any(names != names[0]):
        return None
    try:
        return element(names[0].tobytes().decode("ascii"))
    except (ValueError, MissingDependencyError):  # what is no dtype, or none here, stays bytes
        return None


def _shapes(column: ColumnBuffers, mask: Array) -> Array | None:
    """The shapes of the rows, None where ranks differ."""
    assert column.offsets is not None
    assert column.values is not None
    ranks = np.diff(column.offsets)[mask]
    rank = int(ranks[0])
    if rank > _MOST_AXES or np.any(ranks != rank):
        return None
    shapes = column.values[column.offsets[0] : column.offsets[-1]].reshape(len(ranks), rank)  # a null row is empty
    return None if np.any(shapes > 2**31 - 1) else shapes
