"""Labelled arrays of xarray as columns: the positions of one dimension are the rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.input.array_likes import imported_module
from tfrecord_io.columns.schema.array_attributes import add_attributes, add_dimensions
from tfrecord_io.errors import EncodeError

_CHUNK_BYTES = 256 << 20  # blocks are whole chunks, unless these take more
_DROP = "leave it out with dataset.drop_vars, or repeat it along the dimension with expand_dims"


class LabelledColumns:
    """The columns of a Dataset, a DataArray or a mapping of DataArrays: any rows of them can be read.

    Variables that have the dimension of the rows are columns, with their other axes in order. Coordinates and single
    values are repeated in each row. Values of other libraries in the mapping are columns as they are.
    """

    def __init__(self, dataset: Any, plain: Mapping[Any, Any], names: Iterable[Any], record_dim: str | None) -> None:
        dims = {name: variable.dims for name, variable in dataset.variables.items()}
        self._dim = dim = record_dimension(dims, set(dataset.coords), record_dim, advice=_DROP)
        self.count: int = dataset.sizes[dim]  # of the rows
        self.names = tuple(names)
        self._plain = plain
        self._variables = {name: dataset.variables[name] for name in self.names if name not in plain}
        for name, values in plain.items():
            if (length := len(values)) != self.count:
                reason = f"has {length} values, where '{printable(dim)}' has {self.count}"
                raise EncodeError(reason, feature=str(name), expected=self.count, got=length)

    def add_labels(self, schema: pa.Schema) -> pa.Schema:
        """The schema with attributes and dimensions of the variables as metadata of the fields."""
        dims = {name: [str(d) for d in v.dims if d != self._dim] for name, v in self._variables.items()}
        schema = add_attributes(schema, {name: variable.attrs for name, variable in self._variables.items()})
        return add_dimensions(schema, dims)

    @property
    def objects(self) -> dict[Any, Any]:
        """The columns whose type follows from all of their values: of objects, and those of other libraries."""
        whole = {name: self._column(v) for name, v in self._variables.items() if _decides_by_values(v)}
        return {**whole, **self._plain}

    def blocks(self, most_bytes: int) -> Iterator[tuple[int, int]]:
        """The first row and the end of each block: whole chunks of what is not in memory."""
        row_bytes, chunk = 1, 1
        for variable in self._variables.values():
            has_rows = self._dim in variable.dims
            row_bytes += variable.nbytes // max(1, self.count) if has_rows else variable.nbytes
            if has_rows:
                chunks = dict(zip(variable.dims, variable.chunks or (), strict=False))
                stored = (variable.encoding.get("preferred_chunks") or {}).get(self._dim, 1)
                chunk = max(chunk, *chunks.get(self._dim, ()), stored)
        rows = max(1, min(LIMITS.batch_rows, most_bytes // row_bytes))
        rows = -(-rows // chunk) * chunk if chunk * row_bytes <= _CHUNK_BYTES else rows
        for begin in range(0, self.count, rows):
            yield begin, min(begin + rows, self.count)

    def numbers(self, begin: int, end: int) -> dict[Any, Array]:
        """Rows of the columns that are not among `objects`."""
        columns = {}
        for name, variable in self._variables.items():
            if not _decides_by_values(variable):
                try:
                    columns[name] = self._rows(variable, begin, end)
                except RuntimeError as error:
                    if imported_module("sparse") is None:
                        raise
                    reason = f"its values are not an array of NumPy: {printable(str(error), 200)}"
                    advice = "make it dense, by dataset.as_numpy()"
                    raise EncodeError(reason, feature=str(name), hint=advice) from error
        return columns

    def _column(self, variable: Any) -> Any:
        """All rows of a column of `objects`; of an array of pandas a Series, which has its missing values."""
        if isinstance(variable.dtype, np.dtype):
            return self._rows(variable, 0, self.count)
        data = variable.data
        values = imported_module("pandas").Series(getattr(data, "array", data))  # xarray 2025 wraps the array of pandas
        if variable.dims == (self._dim,):
            return values
        cells = _replace_nan(values.to_numpy(object, na_value=None))
        return np.broadcast_to(cells, (self.count, *cells.shape))

    def _rows(self, variable: Any, begin: int, end: int) -> Array:
        if self._dim in variable.dims:
            values = np.asarray(variable.isel({self._dim: slice(begin, end)}).transpose(self._dim, ...).values)
            return _replace_nan(values) if values.dtype.kind == "O" else values
        values = np.asarray(variable.values)
        return np.ascontiguousarray(np.broadcast_to(values, (end - begin, *values.shape)))


def _decides_by_values(variable: Any) -> bool:
    """True if a variable holds objects, or an array of pandas, whose values NumPy may not have."""
    return not isinstance(variable.dtype, np.dtype) or variable.dtype.kind == "O"


def _replace_nan(values: Array) -> Array:
    """Objects with None for NaN and NA, which xarray and pandas have for missing text."""
    cells = values.reshape(-1)
    nan = (type(cell).__name__ == "NAType" or (isinstance(cell, float) and math.isnan(cell)) for cell in cells)
    missing = np.fromiter(nan, np.bool_, len(cells))
    if missing.any():
        values = values.copy()
        values[missing.reshape(values.shape)] = None
    return values


def labelled_rows(data: Any, record_dim: str | None) -> LabelledColumns | None:
    """The rows of objects of xarray; None if `data` is something else.

    EncodeError if a variable has not the dimension of the rows, or DataArrays have other coordinates; TypeError for a
    DataArray without a name, or a DataTree.
    """
    xarray = imported_module("xarray")
    if xarray is None:
        return None
    if isinstance(data, getattr(xarray, "DataTree", ())):
        raise TypeError("a DataTree has several tables: pass that of a node, tree['name'].to_dataset()")
    if isinstance(data, xarray.Variable):
        raise TypeError("an xarray.Variable has no name: pass a dict, {'x': variable}")
    if isinstance(data, xarray.DataArray):
        if data.name is None:
            raise TypeError("an xarray.DataArray without a name: pass array.to_dataset(name='x')")
        data = {data.name: data}  # to_dataset() refuses an array that is a coordinate
    plain: dict[Any, Any] = {}
    if isinstance(data, xarray.Dataset):
        dataset, variables = data, tuple(data.data_vars)
    elif isinstance(data, Mapping) and any(isinstance(v, xarray.DataArray | xarray.Variable) for v in data.values()):
        labelled = {name: v for name, v in data.items() if isinstance(v, xarray.DataArray | xarray.Variable)}
        plain, variables = {name: v for name, v in data.items() if name not in labelled}, tuple(data)
        try:
            xarray.align(*(v for v in labelled.values() if isinstance(v, xarray.DataArray)), join="exact", copy=False)
            dataset = xarray.Dataset(labelled)
        except ValueError as error:
            reason = f"the DataArrays do not have the same coordinates: {printable(str(error), 300)}"
            raise EncodeError(reason, hint="align them with xarray.align(…, join='inner')") from error
    else:
        return None
    levels = [dim for dim in dataset.dims if dim in dataset.indexes and dataset.indexes[dim].nlevels > 1]
    dataset = dataset.reset_index(levels) if levels else dataset  # of which the levels are coordinates, too
    variables = tuple(name for name in variables if name not in levels)
    names = dict.fromkeys([*(name for name in dataset.coords if name not in variables), *variables])
    return LabelledColumns(dataset, plain, names, record_dim)


def record_dimension(
    dims: Mapping[Any, tuple[Any, ...]], coordinates: Collection[Any], record_dim: str | None, *, advice: str
) -> Any:
    """The dimension whose positions are the rows: the one that the caller names, or the first that all variables share.

    >>> dims = {"t2m": ("time", "lat"), "time": ("time",), "lat": ("lat",)}
    >>> record_dimension(dims, {"time", "lat"}, None, advice="")
    'time'

    `coordinates` are repeated where they do not have this dimension, as single values are; another variable without it
    is an EncodeError, with `advice`.
    """
    data = {name: axes for name, axes in dims.items() if axes and name not in coordinates}
    data = data or {name: axes for name, axes in dims.items() if axes}
    dimensions = dict.fromkeys(dim for axes in data.values() for dim in axes)
    shown = ", ".join(f"{printable(name)}{_format_dims(axes)}" for name, axes in list(data.items())[:8])
    if record_dim is not None and record_dim not in dimensions:
        reason: str = f"record_dim={record_dim!r}: no variable has this dimension: {shown or 'there is none'}"
        raise EncodeError(reason, expected=[str(dim) for dim in dimensions], got=record_dim)
    shared = [dim for dim in dimensions if all(dim in axes for axes in data.values())]
    if not dimensions:
        raise EncodeError("the variables are single values: no dimension counts rows", hint="expand_dims adds one")
    if record_dim is None and not shared:
        reason = f"the variables share no dimension, which would count the rows: {shown}"
        raise EncodeError(
            reason,
            hint=f"name it by record_dim=; of variables without it: {advice}",
            hint_cli=f"name it by --record-dim; of variables without it: {advice}",
        )
    dim = shared[0] if record_dim is None else record_dim
    for name, axes in data.items():
        if dim not in axes:
            reason = f"its dimensions are {_format_dims(axes)}, and the rows are those of '{printable(dim)}'"
            raise EncodeError(reason, feature=str(name), expected=str(dim), got=[str(d) for d in axes], hint=advice)
    return dim


def _format_dims(dims: tuple[Any, ...]) -> str:
    return f"({', '.join(printable(str(dim)) for dim in dims)})"
