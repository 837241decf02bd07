"""xarray: ``xr.open_dataset(path, engine="tfrecord")``, whose variables read the records that are indexed.

The backend is a class of xarray's, which is made when xarray loads the entry point: see `__getattr__`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tfrecord_io.kit import (
    Column,
    LateTypes,
    ReadOptions,
    RepresentationOptions,
    RowFault,
    RowLookup,
    Scan,
    TableRepresentation,
    empty_batch,
    needs,
)
from tfrecord_io.typing import OpenedDataset

if TYPE_CHECKING:
    import xarray as xr
else:
    xr = LateTypes("xarray")
Array = npt.NDArray[Any]

_RECORD = "record"  # the dimension of the rows
_WITHOUT = {"offset", "limit", "on_error", "progress", "batch_size", "batch_bytes"}  # keywords of other reads
_KEYWORDS = tuple(f.name for f in fields(ReadOptions) if f.name not in _WITHOUT)
_FILLED = "fcmM"  # dtype kinds that have a missing value: NaN, NaT


def to_xarray(dataset: OpenedDataset | Scan) -> xr.Dataset:
    """An xarray Dataset with the dimension ``record``, whose variables are read when they are indexed.

    Missing values are NaN, NaT, or None in object arrays of text, bytes and lists; a missing integer or bool is an
    error when it is read. Tensors and lists of one length have further dimensions: those of the variable or file that
    was written, else ``image_0``, ``image_1``.

    Plain files are read at the indexed records alone; of compressed files, the records before them are skipped. A
    dataset with a filter, `offset`, `limit` or another `on_error` than "raise" is read at once, as its rows have no
    known numbers.
    """
    scan = Scan.of(dataset)
    with needs("xarray"):
        import xarray as xr
        from xarray.core.indexing import LazilyIndexedArray
    rows = scan.lookup()
    variables = {}
    sizes = {_RECORD: len(rows)}
    for column in scan.schema.names:
        field, of_column = scan.schema.field(column), rows.only([column])
        for name, empty in _arrays(_empty_table(pa.schema([field])), scan).items():
            shape = (len(rows), *empty.shape[1:])
            inner = Column(field.with_name(name)).dimensions(shape[1:], sizes, stated=name == column)
            array = _backend_array()(_Column(of_column, scan, name), shape, empty.dtype)
            values = array.read((slice(None),) * len(shape)) if rows.is_in_memory else LazilyIndexedArray(array)
            # Without fastpath, None among text becomes NaN.
            variables[name] = xr.Variable((_RECORD, *inner), values, Column(field).attributes, fastpath=True)
    return xr.Dataset(variables)


# ---- arrays


def _empty_table(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([empty_batch(schema)])


def _arrays(table: pa.Table, scan: Scan) -> dict[str, Array]:
    """Arrays of a column by name; a struct has several."""
    options = RepresentationOptions.from_scan(scan.options, ragged="object", missing="mask")
    representation = TableRepresentation(table.schema, options, complete=False)
    empty = empty_batch(table.schema)
    arrays = TableRepresentation.slice(representation.represent(table.to_batches() or [empty]), 0, table.num_rows)
    for column in representation.images & {*arrays}:
        _refuse_missing(arrays.pop(f"{column}/mask", np.zeros(0, np.bool_)), column, arrays[column].dtype)
    return {name: _fill_missing(array, name) for name, array in arrays.items()}


def _refuse_missing(without: Array, name: str, dtype: Any) -> None:
    """Raise RowFault for the first row without a value."""
    if without.any():
        declared = "declare a default, as in schema={'x': tfr.scalar('int64', default=-1)}"
        reason = f"it has no value, and an array of {dtype} cannot mark missing values"
        raise RowFault(int(without.argmax()), reason, feature=name, hint=f"{declared}, or leave it out")


def _fill_missing(array: Any, name: str) -> Array:
    """Fill missing values with NaN or NaT, as xarray has them; RowFault for a dtype that has neither."""
    if array.dtype.kind == "T":
        array = array.astype(object)
    if array.dtype == "datetime64[D]":  # xarray has times from seconds on
        array = array.astype("datetime64[s]")
    if not isinstance(array, np.ma.MaskedArray):
        return array
    if array.dtype.kind in _FILLED:
        values = array.data.copy()
        values[array.mask] = "NaT" if array.dtype.kind in "mM" else np.nan
        return values
    without: Any = array.mask.reshape(len(array), -1).any(axis=1) if array.size else np.zeros(0, np.bool_)
    _refuse_missing(without, name, array.dtype)
    return array.data


@dataclass(slots=True)
class _Column:
    """Data of a variable: an array of some rows."""

    rows: RowLookup  # of the column that the array belongs to
    scan: Scan
    name: str

    def read(self, numbers: Array) -> Array:
        try:
            return _arrays(self.rows.table(numbers), self.scan)[self.name]
        except RowFault as fault:
            raise self.rows.row_error(fault.renumber(int(numbers[fault.row]))) from fault.__cause__


@cache
def _backend_array() -> type[Any]:
    from xarray.backends import BackendArray
    from xarray.core.indexing import IndexingSupport, explicit_indexing_adapter

    class TFRecordArray(BackendArray):
        """Array of a variable, which is read when it is indexed."""

        def __init__(self, column: _Column, shape: tuple[int, ...], dtype: Any) -> None:
            self.column, self.shape, self.dtype = column, shape, dtype

        def __getitem__(self, key: Any) -> Array:
            values: Array = explicit_indexing_adapter(key, self.shape, IndexingSupport.OUTER, self.read)
            return values

        def read(self, key: tuple[Any, ...]) -> Array:
            """Read the values at a slice, an integer or an array of integers for each axis."""
            numbers = np.arange(self.shape[0])[key[0]]
            values = self.column.read(np.atleast_1d(numbers))
            for axis in range(len(key) - 1, 0, -1):  # from the last one, as an integer removes its axis
                values = values[(slice(None),) * axis + (key[axis],)]
            return values if numbers.ndim else values.reshape(values.shape[1:])

        def __reduce__(self) -> tuple[Any, ...]:
            return _make_backend_array, (self.column, self.shape, self.dtype)

    return TFRecordArray


def _make_backend_array(column: _Column, shape: tuple[int, ...], dtype: Any) -> Any:
    """Unpickle an array, whose class is defined once xarray is imported."""
    return _backend_array()(column, shape, dtype)


# ---- the entry point


@cache
def _backend() -> type[Any]:
    with needs("xarray"):
        from xarray.backends import BackendEntrypoint

    class TFRecordBackend(BackendEntrypoint):
        """``xr.open_dataset(path, engine="tfrecord")``; see `tfrecord_io.dataset` for the keywords."""

        description = "Open TFRecord files with tfrecord_io"
        open_dataset_parameters = ("filename_or_obj", "drop_variables", *_KEYWORDS)

        def open_dataset(
            self, filename_or_obj: Any, *, drop_variables: str | Iterable[str] | None = None, **keywords: Any
        ) -> xr.Dataset:
            dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
            scan = Scan.of(filename_or_obj, **keywords)
            return to_xarray(scan.only([name for name in scan.schema.names if name not in dropped]))

    return TFRecordBackend


def __getattr__(name: str) -> Any:
    if name == "TFRecordBackend":
        return _backend()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
