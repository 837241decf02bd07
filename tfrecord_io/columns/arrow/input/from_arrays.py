"""Convert a mapping of names to arrays or lists to an Arrow table.

`table_of_arrays` returns the table and the columns that are tensors; a value that Arrow cannot hold is an EncodeError.
"""

from __future__ import annotations

import datetime as dt
import importlib
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from numbers import Number
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, counted, printable
from tfrecord_io.bytes import Dtype, Kind, NestedValues, get_engine
from tfrecord_io.columns.arrow.buffers import bitmap_of, list_array, variable_width
from tfrecord_io.columns.arrow.plain_values import array_of_values, native, plain_array
from tfrecord_io.columns.arrow.row_fault import first_failing
from tfrecord_io.columns.schema.types import is_list_like, map_fields, replace_fields, types_within, value_type
from tfrecord_io.errors import EncodeError

if TYPE_CHECKING:
    import pandas as pd

    from tfrecord_io.columns.arrow.input.tensor_cast import Tensors
    from tfrecord_io.columns.schema.sparse_column import SparseColumn

NOT_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)  # raised by Arrow for values that it cannot hold
# Attributes of objects whose values Arrow takes one by one, or by a protocol of Arrow.
_TAKEN_BY_ARROW = ("__iter__", "__getitem__", "__arrow_array__", "__arrow_c_array__", "__arrow_c_stream__")


@dataclass(frozen=True, slots=True)
class Columns:
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
    its schema. Names that are not text, lengths that differ, and values that Arrow cannot hold are EncodeErrors.
    """
    columns: dict[str, pa.Array | pa.ChunkedArray | Tensors] = {}
    sparse: dict[str, SparseColumn] = {}  # by the column of the values
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
            sparse[parts.values] = parts.sparse
            continue
        refuse_polars_types(name, getattr(values, "dtype", None))
        map_type = (maps or {}).get(name)
        if map_type is not None and _is_of_objects(values):
            columns[name] = map_array(name, values, map_type)
        else:
            columns[name] = _column(name, values, nan_to_null, (encodings or {}).get(name))
    _refuse_lengths({name: len(column) for name, column in columns.items()})
    tensors: dict[int, Tensors] = {}
    for at, (name, column) in enumerate(columns.items()):
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            tensors[at], columns[name] = column, pa.nulls(len(column))
    metadata: dict[str, Any] = {name: column.metadata for name, column in sparse.items()}
    polars = imported_module("polars")
    for name, values in data.items() if polars is not None else ():
        if isinstance(values, polars.Series):  # only a frame has the metadata, such as that of an Enum
            metadata[name] = values.clear().to_frame(name).to_arrow().schema.field(0).metadata
    table = pa.table(columns)
    for name, entries in metadata.items():
        at = table.column_names.index(name)
        table = table.set_column(at, table.field(at).with_metadata(entries), table.column(at))
    return Columns(table, tensors)


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


def is_sparse_matrix(values: Any) -> bool:
    """True if it is a matrix or a two-dimensional array of scipy.sparse."""
    scipy = imported_module("scipy.sparse")
    return scipy is not None and scipy.issparse(values) and values.ndim == 2


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


def _column(name: str, values: Any, nan_to_null: bool, encoding: str | None) -> pa.Array | pa.ChunkedArray | Tensors:
    """Convert the values of a column to an Arrow array, or to tensors; EncodeError if Arrow cannot hold them."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if _is_without_axes(values):
        advice = "its first axis counts the rows: pass array[None] for one row"
        raise EncodeError("an array without dimensions has no rows", feature=name, hint=advice)
    if is_single(values) or isinstance(values, set | frozenset):  # whose order is any
        raise _no_column(values, name)
    try:
        values = dense(values)
        of_pandas = _is_series(values) and is_object_dtype(values.dtype)
        plain = plain_cells(values.to_numpy() if of_pandas else values, nan_is_missing=of_pandas)
        if isinstance(plain, pa.Array):
            return plain
        if plain is not None:
            refuse_times_among_others(values)
        values = unmask_column(values) if plain is False else values
        is_taken = any(hasattr(values, name) for name in _TAKEN_BY_ARROW)
        if not isinstance(values, np.ndarray) and (hasattr(values, "__dlpack__") or not is_taken):
            values = _ndarray(values)
        tensors = tensors_of(values, nan_to_null, encoding) if plain is False else None
        if tensors is not None:
            return tensors
        if _is_series(values):
            column = _column_of_series(name, values, nan_to_null)
        elif hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        else:
            column = plain_array(native(values)) if isinstance(values, np.ndarray) else _array_of(values)
    except EncodeError as error:
        error.feature = name
        raise
    except NOT_ARROW:
        raise no_arrow_form(name, values) from None  # Arrow's message holds the value
    if plain is not None:
        refuse_mixture(name, values, column.type)
    return column


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


def _array_of(values: Any) -> pa.Array:
    array = array_of_values(values) if type(values) in (list, tuple) else None
    return pa.array(values) if array is None else array


def lists_with_nan(values: pd.Series, column: pa.Array | pa.ChunkedArray) -> pa.Array | None:
    """A column of lists of floats, which Arrow made of objects, where NaN in them became null; else None.

    In pandas only a missing cell is one.
    """
    if not is_list_like(column.type) or not pa.types.is_floating(value_type(column.type)):
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


def _no_column(values: Any, name: str | None = None) -> EncodeError:
    advice = "pass an array or a list, with an item for each row; or dicts, one for each row"
    return EncodeError(f"a column is an array or a list, not {type(values).__name__}", feature=name, hint=advice)


def _ndarray(values: Any) -> np.ndarray[Any, Any]:
    """An array of another library as one of NumPy."""
    if (row := _torch_extension(values)) is not None:
        return _ndarray(values.view(getattr(imported_module("torch"), f"int{8 * row.itemsize}"))).view(row.dtype)
    is_exchanged = hasattr(values, "__dlpack__") and not hasattr(values, "__array__")
    try:
        array = np.from_dlpack(values) if is_exchanged else np.asarray(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:  # such as for tensors that need gradients
        kind, cause = class_name(values), str(error).rstrip(".")
        reason = f"this {kind} does not become an array of NumPy: {printable(cause, 300)}"
        raise EncodeError(reason, hint="pass an array of NumPy") from error
    if not array.ndim:
        raise _no_column(values)
    return array


def _torch_extension(values: Any) -> Dtype | None:
    """The dtype of a tensor of PyTorch that cannot be a NumPy array without ml_dtypes; None for other values."""
    dtype = getattr(values, "dtype", None)
    return Dtype.extension_of(dtype) if str(dtype).startswith("torch.") else None


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
    if gathered is None or isinstance(gathered, bool):
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
    if _is_series(values):
        if not isinstance(values.dtype, np.dtype):
            return None
        valid = np.asarray(values.notna()) if nan_to_null and values.dtype.kind == "c" else None
        values = values.to_numpy()
    if isinstance(values, np.ndarray) and (values.dtype.kind != "O" or values.ndim > 1):
        return tensors_of_array(values, encoding, valid)
    return tensors_of_cells(values, encoding) if isinstance(values, np.ndarray | Sequence) else None


def imported_module(name: str) -> Any:
    """The module, if it has been imported: otherwise no value is of its types. An import under way is waited for."""
    return importlib.import_module(name) if sys.modules.get(name) is not None else None


def class_name(value: Any) -> str:
    """The full name of the class of a value, for messages."""
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _is_series(values: Any) -> bool:
    pandas = imported_module("pandas")
    return pandas is not None and isinstance(values, (pandas.Series, pandas.Index))


def is_frame(values: Any) -> bool:
    """True if this is a DataFrame of pandas."""
    pandas = imported_module("pandas")
    return pandas is not None and isinstance(values, pandas.DataFrame)


def is_single(values: Any) -> bool:
    """True if this is one value, not a column of values."""
    if hasattr(values, "__dlpack__"):  # by the array API standard without a length
        return _is_without_axes(values)
    return isinstance(values, str | bytes | bytearray | memoryview | Mapping) or not hasattr(values, "__len__")


def _is_without_axes(values: Any) -> bool:
    """True if this is an array, of any library, without axes; those of Arrow have one, and do not say so."""
    return hasattr(values, "__dlpack__") and getattr(values, "ndim", 1) == 0


def table_of_rows(rows: Sequence[Mapping[Any, Any]]) -> dict[Any, list[Any]]:
    """The columns of dicts, one for each row; what a row does not have is missing.

    >>> table_of_rows([{"x": 1}, {"x": 2, "y": "a"}])
    {'x': [1, 2], 'y': [None, 'a']}
    """
    return {name: [row.get(name) for row in rows] for name in dict.fromkeys(chain.from_iterable(rows))}


def dense(values: Any) -> Any:
    """A sparse array or Series of pandas with all its values; anything else as it is."""
    if type(getattr(values, "dtype", None)).__name__ != "SparseDtype":
        return values
    return values.sparse.to_dense() if hasattr(values, "sparse") else values.to_dense()


def unmask_column(values: Any) -> Any:
    """A list, a Series or an array of objects with None for each masked array in it; anything else as it is.

    An array that is masked in part is an EncodeError whose ``record`` is the row.
    """
    is_objects = (isinstance(values, np.ndarray) or _is_series(values)) and is_object_dtype(values.dtype)
    plain = values.to_numpy() if is_objects and _is_series(values) else values
    cells = unmask_cells(plain) if is_objects or isinstance(values, list | tuple) else None
    if cells is None:
        return values
    return imported_module("pandas").Series(cells, dtype=object) if _is_series(values) else cells


def refuse_times_among_others(cells: Any, level: int = 0) -> None:
    """Refuse arrays of times beside arrays of other values, or of other units, at any depth.

    Arrow (26.0) ends the process at times beside other values. It takes durations of several units, and version 19 also
    times, for counts of the first unit.
    """
    LIMITS.check_nesting(level)
    cells = cells.to_numpy() if _is_series(cells) and is_object_dtype(cells.dtype) else cells
    if not isinstance(cells, list | tuple) and not (isinstance(cells, np.ndarray) and is_object_dtype(cells.dtype)):
        return
    types = set(map(type, cells))
    if np.ndarray in types:
        dtypes = {cell.dtype for cell in cells if isinstance(cell, np.ndarray)}
        dtypes = {dtype.newbyteorder("=") for dtype in dtypes}
        if len(dtypes) > 1 and any(dtype.kind in "mM" for dtype in dtypes):
            raise _refused_dtypes(None, dtypes)
    if dict in types:
        dicts = [cell for cell in cells if isinstance(cell, dict)]
        inner_types = set(map(type, chain.from_iterable(map(dict.values, dicts))))
        names = dict.fromkeys(chain.from_iterable(dicts)) if inner_types & {np.ndarray, list, tuple, dict} else ()
        for name in names:
            refuse_times_among_others([cell[name] for cell in dicts if name in cell], level + 1)
    if list in types or tuple in types:
        refuse_times_among_others(_flatten_items(cells), level + 1)


def _refused_dtypes(name: str | None, dtypes: Iterable[np.dtype[Any]]) -> EncodeError:
    """The error for arrays of these dtypes, which no column holds."""
    shown = sorted(map(str, dtypes))
    if len(shown) == 1:
        reason, advice = f"arrays of dtype {shown[0]} cannot be stored in a TFRecord", "convert them to another"
        if shown[0].startswith("StringDType"):
            advice = "convert each to text of one width by numpy.array(array.tolist())"
    else:
        reason, advice = f"its arrays have the dtypes {', '.join(shown[:5])}", "convert them to one dtype"
    return EncodeError(reason, feature=name, hint=advice)


def is_object_dtype(dtype: Any) -> bool:
    """True if this is NumPy's dtype of Python objects."""
    return isinstance(dtype, np.dtype) and dtype.kind == "O"


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


_TIMES = ("NaTType", "timedelta64")  # which Python takes for a datetime and an integer
_UNITS = "years months weeks days hours minutes seconds milliseconds microseconds nanoseconds".split()


def refuse_mixture(name: str, values: Any, type_: pa.DataType) -> None:
    """Refuse what Arrow converts silently: text among bytes to bytes, a datetime among dates to its day.

    So it does with numbers and UUIDs among times, and with the zones of some times, their nanoseconds, and half floats
    and UUIDs among integers; in lists and dicts, too.
    """
    if (isinstance(values, np.ndarray) or _is_series(values)) and not is_object_dtype(values.dtype):
        return
    cells = values.to_numpy() if _is_series(values) else values
    if is_list_like(type_):
        _refuse_in_lists(name, cells, type_.value_type)
    elif pa.types.is_struct(type_):
        _refuse_in_dicts(name, cells, type_)
    else:
        _refuse_guesses(name, cells, type_)


def _refuse_in_lists(name: str, cells: Iterable[Any], type_: pa.DataType) -> None:
    """`refuse_mixture` of the items of lists, arrays and sets."""
    if not _may_guess(type_):
        return
    try:
        refuse_mixture(name, _flatten_items(cells), type_)
    except EncodeError as error:
        if error.record is not None:
            ends = np.cumsum([len(_items_of(cell)) for cell in cells])
            error.record = int(np.searchsorted(ends, error.record, "right"))
        raise _inside("lists", error) from None


def _refuse_in_dicts(name: str, cells: Iterable[Any], type_: pa.DataType) -> None:
    """`refuse_mixture` of the values of dicts under each of their names."""
    for child in filter(lambda child: _may_guess(child.type), type_):
        values = [cell.get(child.name) if isinstance(cell, dict) else None for cell in cells]
        try:
            refuse_mixture(name, values, child.type)
        except EncodeError as error:
            raise _inside(f"dicts, under '{printable(child.name)}'", error) from None


def _inside(where: str, error: EncodeError) -> EncodeError:
    error.reason = f"in the {where}, {error.reason}"
    error.advice = f"convert the values in the {where} to one type" if error.record is None else error.advice
    return error


def _flatten_items(cells: Iterable[Any]) -> list[Any]:
    """The items of all lists, arrays and sets."""
    are_lists = set(map(type, cells)) <= {list, tuple, type(None)}
    return list(chain.from_iterable(filter(None, cells) if are_lists else map(_items_of, cells)))


def _items_of(cell: Any) -> Sequence[Any] | np.ndarray[Any, Any]:
    """The items of a list; of an array of numbers, whose items have one type, the first."""
    if isinstance(cell, np.ndarray):
        return cell if cell.dtype.kind == "O" else cell.reshape(-1)[:1]
    return cell if isinstance(cell, list | tuple) else list(cell) if isinstance(cell, set) else ()


def _may_guess(type_: pa.DataType) -> bool:
    """True if Arrow may have converted other values to this type, or values in it."""
    checks = (pa.types.is_binary, pa.types.is_temporal, pa.types.is_integer)
    return any(is_guess(part) for part in types_within(type_) for is_guess in checks)


def _refuse_guesses(name: str, cells: Any, type_: pa.DataType) -> None:
    guessed: tuple[type, ...] = (str,) if pa.types.is_binary(type_) else ()
    has_unit = pa.types.is_timestamp(type_) or pa.types.is_time(type_) or pa.types.is_duration(type_)
    if has_unit or pa.types.is_date(type_):
        guessed = (Number, UUID) if has_unit else (Number, UUID, dt.datetime)
    elif pa.types.is_integer(type_):
        guessed = (np.float16, UUID)
    classes = {cls for cls in set(map(type, cells)) if cls.__name__ not in _TIMES} if guessed else set()
    misfits = {cls for cls in classes if issubclass(cls, guessed)}
    are_nan = all(issubclass(cls, float) for cls in misfits)  # missing values of pandas
    if misfits and not (are_nan and all(math.isnan(cell) for cell in cells if isinstance(cell, float))):
        raise no_arrow_form(name, cells)
    if has_unit:
        _refuse_lost_times(name, cells, classes, type_)
    elif pa.types.is_interval(type_):
        _refuse_lost_offsets(name, cells)


def _refuse_lost_times(name: str, cells: Iterable[Any], classes: set[type], type_: pa.DataType) -> None:
    """Refuse times, of these classes, whose zone or nanoseconds a column of `type_` would not keep."""
    pandas = imported_module("pandas")
    if type_.unit == "us" and pandas is not None and not classes.isdisjoint((pandas.Timestamp, pandas.Timedelta)):
        units = {pandas.Timestamp: attrgetter("nanosecond"), pandas.Timedelta: attrgetter("nanoseconds")}
        exact = (row for row, cell in enumerate(cells) if type(cell) in units and units[type(cell)](cell))
        if (row := next(exact, None)) is not None:
            reason = "a time has nanoseconds, which a column of Python objects does not keep"
            advice = "convert the column to datetime64[ns] or timedelta64[ns]"
            raise EncodeError(reason, feature=name, record=row, hint=advice)
    with_zones = {cls for cls in classes if issubclass(cls, dt.datetime | dt.time)}
    zones = {cell.tzinfo is not None for cell in cells if type(cell) in with_zones} if with_zones else set()
    if len(zones) > 1:
        reason = "times with and without a time zone are mixed"
        raise EncodeError(reason, feature=name, hint="convert all to one of both")
    if zones == {True} and pa.types.is_time(type_):
        reason = "a time of day has a time zone, which Arrow does not have"
        raise EncodeError(reason, feature=name, hint="pass v.replace(tzinfo=None)")
    times = [cell for cell in cells if type(cell) in with_zones] if zones == {True} else []
    if times and not _is_named(zone := times[0].tzinfo):  # of the column; the others are converted to it
        here = [time for time in times if time.tzinfo is zone]
        _refuse_lost_zone(name, zone, lambda named: all(t.astimezone(named).utcoffset() == t.utcoffset() for t in here))


def refuse_lost_zone(name: str, values: Any) -> None:
    """Refuse times of a Series or an Index of pandas, or of its categories, whose zone Arrow would not keep."""
    if (zone := zone_of(values.dtype)) is not None:
        times = imported_module("pandas").DatetimeIndex(getattr(values.dtype, "categories", values))
        _refuse_lost_zone(
            name, zone, lambda named: times.tz_convert(named).tz_localize(None).equals(times.tz_localize(None))
        )


def restore_zone(column: Any, dtype: Any) -> Any:
    """A column of categories with the time zone of those of a pandas dtype, which pyarrow before 25 leaves out."""
    categories = getattr(dtype, "categories", None)
    if categories is None or getattr(categories.dtype, "tz", None) is None:
        return column
    value_type = pa.array(categories[:0]).type
    if column.type.value_type == value_type:
        return column
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    dictionaries = (chunk.dictionary.cast(value_type) for chunk in chunks)
    arrays = [
        pa.DictionaryArray.from_arrays(chunk.indices, dictionary, ordered=chunk.type.ordered)
        for chunk, dictionary in zip(chunks, dictionaries, strict=True)
    ]
    return pa.chunked_array(arrays) if isinstance(column, pa.ChunkedArray) else arrays[0]


def zone_of(dtype: Any) -> dt.tzinfo | None:
    """The time zone of a pandas dtype, or of its categories, if the zone is not known by a name; else None."""
    categories = getattr(dtype, "categories", None)
    zone = getattr(dtype if categories is None else categories.dtype, "tz", None)
    return None if _is_named(zone) else zone


def _is_named(zone: dt.tzinfo | None) -> bool:
    from zoneinfo import ZoneInfo

    return isinstance(zone, ZoneInfo | dt.timezone) or type(zone).__module__.startswith("pytz")


def _refuse_lost_zone(name: str, zone: dt.tzinfo, is_same: Callable[[dt.tzinfo], bool]) -> None:
    """Refuse a time zone that a reader would not find by its name in Arrow, or would find with changed offsets."""
    text = pa.lib.tzinfo_to_string(zone)
    with suppress(LookupError, ValueError, AttributeError):  # an unknown name; a zone that pandas does not convert
        if is_same(pa.lib.string_to_tzinfo(text)):
            return
    reason = f"its time zone, {printable(repr(zone))}, would be read as '{printable(text)}'"
    raise EncodeError(reason, feature=name, hint="convert the times to a zoneinfo.ZoneInfo or a datetime.timezone")


def _refuse_lost_offsets(name: str, cells: Iterable[Any]) -> None:
    """Refuse offsets of pandas and dateutil that an interval does not keep: with a factor, a weekday, parts of days."""
    for row, cell in enumerate(cells):
        if not hasattr(cell, "__dict__"):
            continue
        parts = {unit: vars(cell)[unit] for unit in _UNITS if isinstance(vars(cell).get(unit), int)}
        if not parts or type(cell)(**parts) != cell:
            reason = f"Arrow has no interval that is {printable(repr(cell))}"
            advice = "pass a pyarrow.MonthDayNano, or its text"
            raise EncodeError(reason, feature=name, record=row, hint=advice)


def no_arrow_form(name: str, values: Any) -> EncodeError:
    """The error for values that Arrow cannot hold, with their types."""
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and not isinstance(values, np.ndarray) and not _is_series(values):
        reason = f"a column is an array of NumPy or a list, not {class_name(values)}"
        dense = next((method for method in ("toarray", "todense") if hasattr(values, method)), None)  # of sparse ones
        advice = (
            "convert it with numpy.asarray" if dense is None else f"pass its {dense}(), or a matrix of scipy.sparse"
        )
        return EncodeError(reason, feature=name, hint=advice)
    if dtype is not None and getattr(dtype, "kind", "") != "O":
        reason = f"values of dtype {dtype} cannot be stored in a TFRecord"
        return EncodeError(reason, feature=name, hint="convert the column first")
    cells = [cell for cell in values if cell is not None]
    types = sorted({type(cell).__name__ for cell in cells})[:5]
    if types == ["int"]:
        big = next((i for i, cell in enumerate(values) if cell is not None and not -(2**63) <= cell < 2**63), None)
        reason = "an integer is outside the range of int64, which cannot be stored in a TFRecord"
        advice = _conversion(name, dtype, "str(v)")
        return EncodeError(reason, record=big, feature=name, expected="-2**63 to 2**63 - 1", hint=advice)
    if types == ["ndarray"] and (dtypes := {cell.dtype for cell in cells}) and not any(map(is_object_dtype, dtypes)):
        return _refused_dtypes(name, dtypes)
    if (error := _refused_value(name, values, types)) is not None:
        return error
    if len(types) == 1:
        reason = f"values of the Python type {types[0]} cannot be stored in a TFRecord"
    else:
        reason = f"values of the Python types {', '.join(types)} are mixed types"
    advice = (Kind.image_advice(cells[0]) if len(types) == 1 else None) or _conversion(name, dtype, _one_type(cells))
    return EncodeError(reason, feature=name, hint=advice)


def _refused_value(name: str, values: Any, types: list[str]) -> EncodeError | None:
    """The error for the first value that cannot be stored although its type can; None if the type is the reason."""
    for row, cell in enumerate(values):
        if isinstance(cell, bytes | str) and len(cell) > LIMITS.MAX_RECORD_BYTES:
            return EncodeError(
                LIMITS.too_large(), record=row, feature=name, hint="write large values to separate files"
            )
        if types == ["Decimal"] and isinstance(cell, Decimal) and not cell.is_finite():
            reason = "a Decimal that is NaN or infinite cannot be stored in a TFRecord"
            return EncodeError(reason, record=row, feature=name, hint="pass None for a missing value, or floats")
        if types == ["str"] and isinstance(cell, str) and any("\ud800" <= character <= "\udfff" for character in cell):
            reason = "a text with a lone surrogate cannot be encoded as UTF-8"
            advice = 'pass bytes, for example v.encode("utf-8", "surrogatepass"), or replace it'
            return EncodeError(reason, record=row, feature=name, hint=advice)
    if types == ["Decimal"]:
        reason = "the Decimals need more than 76 digits, which no decimal type of Arrow has"
        return EncodeError(reason, feature=name, hint=_conversion(name, getattr(values, "dtype", None), "str(v)"))
    if set(types) <= {"list", "tuple"}:
        return _refused_item(name, values)
    return None


def _refused_item(name: str, rows: Any) -> EncodeError | None:
    """The error for the values in lists, with the row that the first such value is in."""
    items, row_of = [], []
    for row, cell in enumerate(rows):
        items += list(cell or ())
        row_of += [row] * len(cell or ())
    if all(item is None or isinstance(item, Mapping) for item in items):
        return None
    plain = [item for item in items if not (isinstance(item, float) and math.isnan(item))]
    if len(plain) < len(items) and not any(isinstance(item, int | float | np.number) for item in plain):
        nan = next(at for at, item in enumerate(items) if isinstance(item, float))
        reason = f"a list has NaN among values of the type {type(plain[0]).__name__}" if plain else "a list has NaN"
        return EncodeError(reason, record=row_of[nan], feature=name, hint="remove it, or make the whole row None")
    error = no_arrow_form(name, items)
    error.record = None if error.record is None else row_of[error.record]
    return _inside("lists", error)


def _one_type(cells: list[Any]) -> str | None:
    """Python text for converting a value `v`, so that all cells get a single type without loss; None if none does."""
    if all(callable(getattr(cell, "SerializeToString", None)) for cell in cells):
        return "v.SerializeToString()"
    if all(is_frame(cell) for cell in cells):
        return "v.to_dict('list')"
    if all(hasattr(cell, "__array__") and not isinstance(cell, np.generic) for cell in cells):
        return "v.float().numpy()" if any(map(_torch_extension, cells)) else "numpy.asarray(v)"
    if not any(isinstance(cell, bytes | bytearray | memoryview) for cell in cells):
        return "str(v)"
    if all(isinstance(cell, bytes | str) or (isinstance(cell, float) and math.isnan(cell)) for cell in cells):
        return "v.encode() if isinstance(v, str) else v"
    return None


def _conversion(name: str, dtype: Any, expression: str | None) -> str:
    """Advice to convert each value of a column, of a list or of a DataFrame, by an expression of `v`."""
    if expression is None:
        return "write a column for each type: bytes have no text or number that stands for them"
    convert = "str" if expression == "str(v)" else f"lambda v: {expression}"
    column = f"df['{printable(name, 40)}']" if not name.startswith("__index_level_") else "df.index"
    example = f"[{expression} for v in values]" if dtype is None else f"{column}.map({convert})"
    return f"convert them to one type, for example with {example}"


# ---- masked arrays: a masked row is a null


def unmask_cells(cells: Sequence[Any] | np.ndarray[Any, Any]) -> list[Any] | None:
    """The cells of a column, with None for each masked array at any depth; None if no array in them has a mask.

    An array that is masked in part is an EncodeError whose ``record`` is the number of its cell.

    >>> masked = np.ma.masked_array([1, 2], True)
    >>> unmask_cells([[3], masked, [masked]]), unmask_cells([[3]])
    ([[3], None, [None]], None)
    """
    is_masked = isinstance(cells, np.ma.MaskedArray)
    values = cells.tolist() if isinstance(cells, np.ndarray) else cells  # a masked value is None
    if not is_masked and not NestedValues(values).holds_masked:
        return None
    plain = []
    for row, cell in enumerate(values):
        try:
            plain.append(_unmask(cell))
        except EncodeError as error:
            error.record = row
            raise
    return plain


def _unmask(cell: Any) -> Any:
    if isinstance(cell, np.ma.MaskedArray):
        from tfrecord_io.columns.arrow.input.tensor_cast import unmasked_rows

        return np.asarray(cell) if unmasked_rows(cell[None])[0] else None
    if isinstance(cell, list | tuple):
        return [_unmask(item) for item in cell]
    if isinstance(cell, dict):
        return {name: _unmask(item) for name, item in cell.items()}
    if isinstance(cell, np.ndarray) and cell.dtype.kind == "O" and NestedValues(cell.reshape(-1).tolist()).holds_masked:
        return [_unmask(item) for item in cell]
    return cell
