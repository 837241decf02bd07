"""Columns of indices and values as matrices of scipy.sparse: ``ragged="csr"``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import needs
from tfrecord_io.columns import Column, Ragged, RowFault, SparseColumn
from tfrecord_io.errors import SchemaError
from tfrecord_io.rows.arrays.array_options import RepresentationOptions

_DECLARE = 'declare it: schema={"x": tfr.io.SparseFeature("x/indices", "x/values", "float32", size)}'


@dataclass(frozen=True, slots=True)
class SparseMatrix:
    """Two columns that become a matrix."""

    name: str
    size: int  # the number of columns of the matrix
    values: int  # the position of the values among the fields
    indices: int  # that of the indices
    index_name: str


def csr_matrix() -> Any:
    """The class of matrices; MissingDependencyError if scipy is not installed."""
    with needs("sparse", "ragged='csr'"):
        from scipy.sparse import csr_matrix
    return csr_matrix


def sparse_matrices(fields: Sequence[pa.Field], options: RepresentationOptions) -> list[SparseMatrix]:
    """The matrices that ``ragged="csr"`` asks for: all sparse columns, or those that a dict names.

    SchemaError if there is none, a named one is not sparse, or its indices are not read.
    """
    ragged = options.ragged
    names = [name for name, form in ragged.items() if form == "csr"] if isinstance(ragged, Mapping) else []
    if ragged != "csr" and not names:
        return []
    csr_matrix()
    positions = {field.name: at for at, field in enumerate(fields)}
    matrices: dict[str, SparseMatrix] = {}
    for at, field in enumerate(fields):
        sparse = SparseColumn.from_metadata(field.metadata, field.name)
        if sparse is not None and (ragged == "csr" or not {sparse.name, field.name}.isdisjoint(names)):
            key = sparse.name if sparse.name in names else field.name
            matrices[key] = _matrix(sparse, at, field, positions)
    if missing := [name for name in names if name not in matrices]:
        reason = "ragged='csr' names it, and it is not a sparse column"
        raise SchemaError(reason, feature=missing[0], hint=_DECLARE)
    if not matrices:
        raise SchemaError("ragged='csr': no column is sparse", hint=_DECLARE)
    return list(matrices.values())


def _matrix(sparse: SparseColumn, at: int, field: pa.Field, positions: Mapping[str, int]) -> SparseMatrix:
    if len(sparse.index) != 1 or len(sparse.shape) != 1 or sparse.shape[0] is None:
        reason = f"a row of a matrix has one axis of a known size, and this has the shape {sparse.shape}"
        raise SchemaError(reason, feature=sparse.name, got=sparse.shape)
    if not Column(field.type).is_list or not (
        Column(field.type.value_type).is_number or pa.types.is_boolean(field.type.value_type)
    ):
        reason = f"a matrix has numbers, and this is {field.type}"
        raise SchemaError(reason, feature=field.name, got=str(field.type))
    (index,) = sparse.index
    if index not in positions:
        advice = f"read '{index}', too: columns=[…, '{index}']"
        raise SchemaError("the indices of its values are not read", feature=field.name, expected=index, hint=advice)
    return SparseMatrix(sparse.name, sparse.shape[0], values=at, indices=positions[index], index_name=index)


def matrix_indices(values: Ragged, indices: Ragged, matrix: SparseMatrix) -> Ragged:
    """The indices, one for each value and within the matrix; RowFault for the first row in which they are not."""
    if np.any(bad := values.lengths != indices.lengths):
        row = int(bad.argmax())
        want, got = int(values.lengths[row]), int(indices.lengths[row])
        raise RowFault(row, f"expected {want} indices, one per value, got {got}", feature=matrix.index_name)
    if np.any(bad := (indices.values < 0) | (indices.values >= matrix.size)):
        at = int(bad.argmax())
        row, index = int(np.searchsorted(indices.offsets, at, side="right")) - 1, int(indices.values[at])
        reason = f"the index {index} is out of range for a matrix of {matrix.size} columns"
        raise RowFault(row, reason, feature=matrix.index_name, expected=f"0 to {matrix.size - 1}", got=index)
    return replace(indices, valid=None)
