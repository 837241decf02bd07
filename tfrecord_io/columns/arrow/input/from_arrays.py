"""Convert a mapping of names to arrays or lists to an Arrow table.

`table_of_arrays` returns the table and the columns that are tensors; a value that Arrow cannot hold is an EncodeError.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import counted, printable
from tfrecord_io.bytes import get_engine
from tfrecord_io.columns.arrow.buffers import bitmap_of, list_array, variable_width
from tfrecord_io.columns.arrow.input.array_likes import (
    as_ndarray,
    dense,
    imported_module,
    is_object_dtype,
    is_series,
    is_single,
    is_sparse_matrix,
    is_without_axes,
    no_column,
)
from tfrecord_io.columns.arrow.input.arrow_guesses import refuse_mixture, refuse_times_among_others
from tfrecord_io.columns.arrow.input.masked_cells import unmask_column
from tfrecord_io.columns.arrow.input.no_arrow_form import no_arrow_form
from tfrecord_io.columns.arrow.input.unstorable_time_zones import refuse_lost_zone, restore_zone
from tfrecord_io.columns.arrow.plain_values import array_of_values, native, plain_array
from tfrecord_io.columns.arrow.row_fault import first_failing
from tfrecord_io.columns.schema.types import is_list_like, map_fields, replace_fields, types_within, value_type
from tfrecord_io.errors import EncodeError

if TYPE_CHECKING:
    import pandas as pd

    from tfrecord_io.columns.arrow.input.tensor_cast import Tensors

NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)  # raised by Arrow for values that it cannot hold
# Attributes of objects whose values Arrow takes one by one, or by a protocol of Arrow.
_TAKEN_BY_ARROW = ("__iter__", "__getitem__", "__arrow_array__", "__arrow_c_array__", "__arrow_c_stream__")


class Columns(NamedTuple):
    """A table with columns that are not converted yet."""

    table: pa.Table  # a column that is in `tensors` has the null type here
    tensors: Mapping[int, Tensors]  # by the number of the column

    @property
    def schema(self) -> pa.Schema:
        names = self.table.schema.names
        return replace_fields(self.table.schema, {at: column.field(names[at]) for at, column in self.tensors.items()})

    def batches(self, most_bytes: int, begin: int = 0, end: int | None = None) -> Iterator[pa.RecordBatch]:
        """Rows [begin, end), in batches whose tensors have about `most_bytes`."""
        rows, schema = self.table.num_rows, self.schema
        heavy = -(-sum(tensors.nbytes for tensors in self.tensors.values()) // most_bytes)
        part = self.table.slice(begin, None if end is None else end - begin)
        for batch in part.to_batches(max_chunksize=max(1, -(-rows // max(heavy, 1)))):
            columns, end = batch.columns, begin + batch.num_rows
            for at, tensors in self.tensors.items():
                columns[at] = tensors.slice(begin, end)
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
            begin = end


def table_of_arrays(
    data: Mapping[Any, Any],
    nan_to_null: bool = True,
    encodings: Mapping[str, str] | None = None,
    maps: Mapping[str, pa.DataType] | None = None,
) -> Columns:
    """Make a table of NumPy arrays, whose first axis counts the rows, lists, Arrow arrays and pandas Series.

    NumPy's NaN are values; with `nan_to_null` those of a Series are missing values. `encodings` is the
    ``column_encoding=`` of a writer: with some encodings, text and bytes become tensors. `maps` are the `map_types` of
    its schema. EncodeError for names that are not text, lengths or indexes that differ, and values that Arrow cannot
    hold.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray | Tensors] = {}
    metadata: dict[str, Any] = {}
    for name, values in data.items():
        if not isinstance(name, str):
            raise EncodeError(f"a column's name is of type {type(name).__name__}", hint="names must be text")
        check_name(name)
        if is_sparse_matrix(values):
            from tfrecord_io.columns.arrow.input.from_scipy import columns_of_matrix

            parts = columns_of_matrix(name, values)
            if duplicates := parts.columns.keys() & {*data, *columns}:
                reason = f"it is also a feature of the sparse column '{printable(name)}'"
                raise EncodeError(reason, feature=min(duplicates), hint="rename the column")
            columns.update(parts.columns)
            metadata[parts.values] = parts.sparse.metadata
            continue
        refuse_polars_types(name, getattr(values, "dtype", None))
        map_type = (maps or {}).get(name)
        if map_type is not None and _is_of_objects(values):
            columns[name] = map_array(name, values, map_type)
        else:
            columns[name] = _column(name, values, nan_to_null, (encodings or {}).get(name))
    _refuse_lengths({name: len(column) for name, column in columns.items()})
    _refuse_indexes(
        {name: values.index for name, values in data.items() if is_series(values) and hasattr(values, "index")}
    )
    tensors: dict[int, Tensors] = {}
    for at, (name, column) in enumerate(columns.items()):
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            tensors[at], columns[name] = column, pa.nulls(len(column))
    table = pa.table(columns)
    for name, entries in {**metadata, **_polars_metadata(data)}.items():
        at = table.column_names.index(name)
        table = table.set_column(at, table.field(at).with_metadata(entries), table.column(at))
    return Columns(table, tensors)


def _polars_metadata(data: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata that Series of polars, such as that of an Enum, have in a frame only."""
    polars = imported_module("polars")
    if polars is None:
        return {}
    series = ((name, values) for name, values in data.items() if isinstance(values, polars.Series))
    return {name: values.clear().to_frame(name).to_arrow().schema.field(0).metadata for name, values in series}


def _refuse_lengths(lengths: Mapping[str, int]) -> None:
    """Refuse columns of which one has another length than the first."""
    first = next(iter(lengths), "")
    for name, length in lengths.items():
        if length != lengths[first]:
            reason = f"has {counted(length, 'value')}, where '{first}' has {lengths[first]}"
            raise EncodeError(reason, feature=name, expected=lengths[first], got=length)


def map_types(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The types of the columns that have maps, by name, with floats of 64 bits: a cast then says what is rounded.

    >>> map_types(pa.schema({"x": pa.map_(pa.string(), pa.float32()), "y": pa.int8()}))
    {'x': MapType(map<string, double>)}
    """
    return {field.name: _widen_floats(field.type) for field in schema if any(map(t.is_map, types_within(field.type)))}


def _widen_floats(type_: pa.DataType) -> pa.DataType:
    if t.is_floating(type_):
        return pa.float64()
    return map_fields(type_, lambda field: field.with_type(_widen_floats(field.type)))


def _is_of_objects(values: Any) -> bool:
    """True for a list, or an array or a Series of Python objects."""
    dtype = getattr(values, "dtype", None)
    return isinstance(values, list | tuple) if dtype is None else is_object_dtype(dtype)


def map_array(name: str, values: Any, type_: pa.DataType) -> pa.Array:
    """A column of Python objects as a type that has maps: pairs, or dicts, as ``pyarrow.array`` takes them.

    EncodeError, whose ``record`` is the row, for a value that is not of the type.
    """
    cells = [None if isinstance(cell, float) or type(cell).__name__ == "NAType" else cell for cell in values]
    try:
        return pa.array(cells, type_)
    except NOT_ARROW:  # its message holds the value
        row = first_failing(len(cells), lambda begin, end: pa.array(cells[begin:end], type_), NOT_ARROW)
    reason, got = f"the value is not of the schema's type, {type_}", type(cells[row]).__name__
    advice = "pass a dict, or a list of pairs of key and value, for each map"
    raise EncodeError(reason, feature=name, record=row, expected=str(type_), got=got, hint=advice)


def check_name(name: str) -> None:
    """Refuse a column's name that has a lone surrogate."""
    try:
        name.encode()
    except UnicodeEncodeError:
        reason = "the column's name has a lone surrogate, which cannot be encoded as UTF-8"
        raise EncodeError(reason, feature=name, hint="rename the column") from None


def structured_columns(values: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """The columns of a structured array; those of a field with fields are ``field/inner``."""
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for name in values.dtype.names or ():
        inner = {f"{name}/{part}": column for part, column in structured_columns(values[name]).items()}
        parts = inner or {name: values[name]}
        if both := columns.keys() & parts.keys():
            reason = "two fields of the structured array would become columns of this name"
            raise EncodeError(reason, feature=min(both), hint="rename one of them")
        columns.update(parts)
    return columns


def _refuse_indexes(indexes: Mapping[str, pd.Index]) -> None:
    """Refuse Series whose rows have other labels than those of the first, as pandas would reorder them."""
    first = next(iter(indexes), "")
    for name, index in indexes.items():
        if index is not indexes[first] and not index.equals(indexes[first]):
            reason = f"its index differs from that of '{printable(first)}'"
            advice = "align the Series by pandas.DataFrame(data), or pass their values, Series.to_numpy()"
            raise EncodeError(reason, feature=name, hint=advice)


def _column(name: str, values: Any, nan_to_null: bool, encoding: str | None) -> pa.Array | pa.ChunkedArray | Tensors:
    """Convert the values of a column to an Arrow array, or to tensors; EncodeError if Arrow cannot hold them."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if is_without_axes(values):
        advice = "its first axis counts the rows: pass array[None] for one row"
        raise EncodeError("an array without dimensions has no rows", feature=name, hint=advice)
    if is_single(values) or isinstance(values, set | frozenset):  # whose order is any
        raise no_column(values, name)
    try:
        values = dense(values)
        of_pandas = is_series(values) and is_object_dtype(values.dtype)
        plain = plain_cells(values.to_numpy() if of_pandas else values, nan_is_missing=of_pandas)
        if isinstance(plain, pa.Array):
            return plain
        if plain is not None:
            refuse_times_among_others(values)
        if plain is False:
            values = unmask_column(values)
        values = _as_taken(values)
        tensors = tensors_of(values, nan_to_null, encoding) if plain is False else None
        if tensors is not None:
            return tensors
        if hasattr(values, "__arrow_c_stream__") and not is_series(values):
            return pa.chunked_array(values)
        column = _arrow_column(name, values, nan_to_null)
    except EncodeError as error:
        error.feature = name
        raise
    except NOT_ARROW:
        raise no_arrow_form(name, values) from None  # Arrow's message holds the value
    if plain is not None:
        refuse_mixture(name, values, column.type)
    return column


def column_of(name: str, values: Sequence[Any]) -> pa.Array | Tensors:
    """Convert the values of a field of structs, as those of a column; None is missing."""
    column = _column(name, values, nan_to_null=True, encoding=None)
    return (
        pa.concat_arrays(column.chunks or [pa.nulls(0, column.type)]) if isinstance(column, pa.ChunkedArray) else column
    )


def _as_taken(values: Any) -> Any:
    """An array of another library that Arrow does not take as one of NumPy; anything else as it is."""
    if isinstance(values, np.ndarray):
        return values
    is_taken = any(hasattr(values, name) for name in _TAKEN_BY_ARROW)
    return as_ndarray(values) if hasattr(values, "__dlpack__") or not is_taken else values


def _arrow_column(name: str, values: Any, nan_to_null: bool) -> pa.Array | pa.ChunkedArray:
    """Convert a Series, an array of NumPy, or values that Arrow takes one by one."""
    if is_series(values):
        return _column_of_series(name, values, nan_to_null)
    if isinstance(values, np.ndarray):
        return plain_array(native(values))
    array = array_of_values(values) if type(values) in (list, tuple) else None
    return pa.array(values) if array is None else array


def _column_of_series(name: str, values: Any, nan_to_null: bool) -> pa.Array | pa.ChunkedArray:
    """Convert a pandas Series; without `nan_to_null`, NaN in floats of NumPy are values."""
    refuse_lost_zone(name, values)
    is_numpy = isinstance(values.dtype, np.dtype)
    if is_numpy and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    keeps_nan = not nan_to_null and is_numpy and values.dtype.kind == "f"
    column = restore_zone(pa.array(values.to_numpy() if keeps_nan else values), values.dtype)
    lists = lists_with_nan(values, column) if is_object_dtype(values.dtype) else None
    return column if lists is None else lists


def lists_with_nan(values: pd.Series, column: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """A column of lists of floats, which Arrow made of objects, where NaN in them became null; else None.

    In pandas only a missing cell is one.
    """
    if not is_list_like(column.type) or not t.is_floating(value_type(column.type)):
        return None
    if not any(map(_has_inner_nulls, column.chunks if isinstance(column, pa.ChunkedArray) else [column])):
        return None
    return pa.array(list(map(_replace_na, values)), mask=values.isna().to_numpy(), from_pandas=False)


def _has_inner_nulls(lists: pa.Array) -> bool:
    """True if an item is null, at any depth."""
    while is_list_like(lists.type):
        lists = lists.values
        if lists.null_count:
            return True
    return False


def _replace_na(cell: Any) -> Any:
    """A cell with None for pandas' NA in its lists, which pyarrow knows only where NaN is missing, too."""
    if isinstance(cell, list | tuple) or (isinstance(cell, np.ndarray) and cell.dtype.kind == "O"):
        return [_replace_na(item) for item in cell]
    return None if type(cell).__name__ == "NAType" else cell


def plain_cells(values: Any, nan_is_missing: bool) -> pa.Array | bool | None:
    """A column of Python objects that is neither masked nor of tensors; as Arrow array if all have one type.

    None if Arrow converts all values without a guess, True for others, and False for other columns and where each cell
    has to be looked at: see `Engine.gather_objects`.
    """
    if isinstance(values, list | tuple):
        values = np.fromiter(values, object, len(values))
    if type(values) is not np.ndarray or values.dtype.kind != "O" or values.ndim != 1:
        return False
    gathered = get_engine().gather_objects(values, nan_is_missing)
    if gathered is True:
        from tfrecord_io.columns.arrow.input.tensor_cast import are_lists_of_tensors, are_structs_of_tensors

        return not (are_lists_of_tensors(values) or are_structs_of_tensors(values))
    if gathered is None or gathered is False:
        return gathered
    dtype, valid, offsets, content, value_offsets = gathered
    nulls, validity = (0, None) if valid is None else (len(valid) - int(np.count_nonzero(valid)), bitmap_of(valid))
    if value_offsets is None:
        values = plain_array(content.view(dtype))
    else:
        values = variable_width(
            pa.binary(), len(value_offsets) - 1, nulls=0, validity=None, offsets=value_offsets, values=content
        )
    if offsets is None:
        buffers = [None if validity is None else pa.py_buffer(validity), *values.buffers()[1:]]
        return pa.Array.from_buffers(values.type, len(values), buffers, nulls)
    return list_array(
        pa.list_(values.type), len(offsets) - 1, nulls=nulls, validity=validity, offsets=offsets, values=values
    )


def tensors_of(values: Any, nan_to_null: bool, encoding: str | None) -> Tensors | pa.Array | None:
    """The tensors of an array, a Series or a list; None if it is a plain column.

    Arrays of different ranks or dtypes, of objects, or masked in part are EncodeErrors whose ``record`` is the row.
    """
    from tfrecord_io.columns.arrow.input.tensor_cast import tensors_of_array, tensors_of_cells

    valid = None
    if is_series(values):
        if not isinstance(values.dtype, np.dtype):
            return None
        valid = np.asarray(values.notna()) if nan_to_null and values.dtype.kind == "c" else None
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and (values.dtype.kind != "O" or values.ndim > 1):
        return tensors_of_array(values, encoding, valid)
    return tensors_of_cells(values, encoding, column_of) if isinstance(values, np.ndarray | Sequence) else None


def table_of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """The columns of dicts, one for each row; what a row does not have is missing.

    >>> table_of_rows([{"x": 1}, {"x": 2, "y": "a"}])
    {'x': [1, 2], 'y': [None, 'a']}
    """
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


def refuse_polars_types(name: str, dtype: Any) -> None:
    """Refuse columns of polars that Arrow cannot hold, also nested ones.

    In Object columns it sees the addresses of Python objects; integers of 128 bits it does not have. Names with a NUL
    make polars end the process when it hands them over.
    """
    polars = imported_module("polars")
    if polars is None or not isinstance(dtype, polars.DataType | type(polars.Object)):
        return
    fields = getattr(dtype, "fields", ())
    if any("\0" in label for label in (name, *(field.name for field in fields))):
        raise EncodeError("the name has a NUL, which polars cannot hand over", feature=name, hint="rename it")
    if dtype == polars.Object:
        reason = "a polars Object column holds pointers to Python objects, which cannot be stored in a TFRecord"
        raise EncodeError(reason, feature=name, hint="convert it to a type such as pl.String, or drop it")
    if str(dtype) in ("Int128", "UInt128"):
        advice = "cast it to pl.Int64, pl.Decimal(38, 0) or pl.String"
        raise EncodeError(f"a polars {dtype} column cannot be stored in a TFRecord", feature=name, hint=advice)
    for inner in [getattr(dtype, "inner", None), *(field.dtype for field in fields)]:
        refuse_polars_types(name, inner)


def refuse_duckdb_types(name: str, type_: Any) -> None:
    """Refuse columns of DuckDB whose values would change in Arrow, also nested columns.

    Arrow would get DuckDB's own bytes, times without their offsets, and large UHUGEINT as negative decimals.
    """
    if type_.id in ("bit", "bignum", "varint", "time with time zone", "uhugeint"):
        raise EncodeError(f"Arrow has no type for DuckDB's {type_}", feature=name, hint="cast it to VARCHAR")
    if type_.id in ("list", "array", "struct", "map", "union"):
        for _, inner in type_.children:
            if isinstance(inner, type(type_)):  # not the size of an array
                refuse_duckdb_types(name, inner)
