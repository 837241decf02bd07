"""Which features of decoded rows are tensors: bytes that have companion features, a shape and a dtype, in every record.

Results for parts of the records are joined as observations are. That is associative and commutative, so the order of
files and their division into chunks have no influence.
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
from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.dtypes import element as element_named
from tfrecord_io.format.kinds import Kind, Layout, companions, feature_of_companion
from tfrecord_io.schema.observation import Observation

_MOST_AXES = 32  # of NumPy before version 2
_MOST_NAME = 40  # bytes of a dtype's name


@dataclass(frozen=True, slots=True)
class FoldedTensor:
    """What the tensors of a feature have in common."""

    element: Element
    rank: int
    shape: tuple[int, ...] | None  # None: it varies


def candidates(seen: Mapping[str, Observation]) -> list[str]:
    """The features that may be tensors, by kinds and numbers of values."""
    named = map(feature_of_companion, seen)  # few features have names like those of companions
    names = dict.fromkeys(name for name in named if name is not None and name in seen)
    return [name for name in names if _is_bytes(seen[name]) and _are_companions(*map(seen.get, companions(name)))]


def _is_bytes(seen: Observation) -> bool:
    return seen.kind is Kind.BYTES and seen.layout is Layout.SCALAR and seen.steps is None


def _are_companions(shape: Observation | None, dtype: Observation | None) -> bool:
    is_shape = shape is not None and shape.kind is Kind.INT64 and shape.steps is None
    return is_shape and dtype is not None and _is_bytes(dtype)


def fold(name: str, batches: Iterable[Mapping[str, ColumnBuffers]]) -> FoldedTensor | None:
    """What the tensors of feature `name` have in common; None if it is not a tensor in some record."""
    joined: FoldedTensor | None = None
    for columns in batches:
        parts = (name, *companions(name))
        if all(part not in columns or is_nothing(columns[part]) for part in parts):
            continue
        if any(part not in columns for part in parts):
            return None
        own = _fold(name, columns)
        if own is None or (joined is not None and (own.element, own.rank) != (joined.element, joined.rank)):
            return None
        is_same = joined is None or joined.shape == own.shape
        joined = own if is_same else FoldedTensor(own.element, own.rank, None)
    return joined


def _fold(name: str, columns: Mapping[str, ColumnBuffers]) -> FoldedTensor | None:
    column = columns[name]
    stated = Companions(name).columns(columns, column.rows)
    mask = column_mask(column)
    is_complete = all(np.array_equal(mask, column_mask(companion)) for companion in (stated.shape, stated.dtype))
    if not is_complete or column.layout is not Layout.SCALAR or column.value_offsets is None or column.values is None:
        return None
    sizes = np.diff(column.value_offsets).astype(np.int64)
    sizes = sizes if mask.all() else sizes[mask]
    element, shapes = _one_dtype(stated.dtype, mask), _shapes(stated.shape, mask)
    if element is None or shapes is None or np.any(product(shapes) * element.itemsize != sizes) or np.any(shapes < 0):
        return None
    if first_invalid(element, column.values) >= 0:
        return None
    is_uniform = np.array_equal(shapes[1:], shapes[:-1])  # each equals the one before
    return FoldedTensor(element, shapes.shape[1], tuple(shapes[0].tolist()) if is_uniform else None)


def are_companions(name: str, batches: Iterable[Mapping[str, ColumnBuffers]]) -> bool:
    """Whether the companions of `name`, which is not read itself, are in the same rows and state one dtype and rank."""
    kinds: set[tuple[Element, int]] = set()
    for columns in batches:
        present = [part in columns and not is_nothing(columns[part]) for part in companions(name)]
        if not any(present):
            continue
        if not all(present):
            return False
        stated = Companions(name).columns(columns, next(iter(columns.values())).rows)
        mask = column_mask(stated.dtype)
        if not mask.any() or not np.array_equal(mask, column_mask(stated.shape)):
            return False
        element, shapes = _one_dtype(stated.dtype, mask), _shapes(stated.shape, mask)
        if element is None or shapes is None:
            return False
        kinds.add((element, shapes.shape[1]))
    return len(kinds) == 1


def _one_dtype(column: ColumnBuffers, mask: Array) -> Element | None:
    """The dtype that all rows state; None if they differ or it is not a dtype."""
    assert column.value_offsets is not None
    assert column.values is not None
    sizes = np.diff(column.value_offsets)[mask]
    size = int(sizes[0])
    if not 0 < size <= _MOST_NAME or np.any(sizes != size):
        return None
    text = column.values[column.value_offsets[0] : column.value_offsets[-1]]  # a null's slot is empty
    names = text.reshape(-1, size)
    if np.any(names != names[0]):
        return None
    try:
        return element_named(names[0].tobytes().decode("ascii"))
    except (ValueError, MissingDependencyError):  # not a dtype, or not available: it stays bytes
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
