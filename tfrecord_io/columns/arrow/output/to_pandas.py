"""Arrow tables as pandas DataFrames, with the dtypes, index and labels that they were written with.

pandas stores a description of a frame in the schema's metadata (key ``pandas``). Arrow alone would convert integers
with missing values to float64 and such bools to objects. So a new description is made for each table: the embedded one
is checked against the table, and columns without a valid entry get the dtype of their Arrow type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.base import cpu_count, printable, warn
from tfrecord_io.bytes import Array, NumberColumn
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, offsets_of, replace_columns, struct_fields
from tfrecord_io.columns.arrow.casts import one_dictionary
from tfrecord_io.columns.arrow.output.to_numpy import Dense, Ragged, memory_error, memory_errors, to_rows
from tfrecord_io.columns.arrow.output.to_python import NO_PYTHON_FORM, cell, python_values
from tfrecord_io.columns.arrow.periods_and_intervals import labels_from_json, series_of_categories, series_of_pandas
from tfrecord_io.columns.arrow.tensor_values import column_to_ndarray, column_to_nested_cells, has_nested_cells
from tfrecord_io.columns.schema.pandas_metadata import (
    KEY,
    UNNAMED,
    frame_description,
    lost_levels,
    sparse_fill,
    stated_categories,
    stated_dtype,
    stated_labels,
    stored_index,
)
from tfrecord_io.columns.schema.tensor_types import element_and_shape, is_any_tensor
from tfrecord_io.columns.schema.types import (
    is_bool8,
    is_list_like,
    is_text,
    is_text_or_bytes,
    number_dtype,
    restored_type,
    types_within,
    uncommon_columns,
)
from tfrecord_io.errors import SchemaError, SchemaWarning
from tfrecord_io.typing import DtypeBackend

if TYPE_CHECKING:
    import pandas as pd


# How pandas describes labels that are text, besides their dtype.
_TEXT_LABELS = {"name": None, "field_name": None, "pandas_type": "unicode", "metadata": {"encoding": "UTF-8"}}
_BOOLS = {"True": True, "False": False}
_FAR = 2**61  # a range between ends that are farther may have more numbers than `len` can return
_MOST_INSERTED = 50  # columns: pandas warns if more are inserted into a frame
_SAMPLE = 1000  # values of a column
_LEAST_SHARED = 10_000  # values of a table that threads share; to wake them for fewer takes longer than to convert
_BACKENDS = (None, "numpy_nullable", "pyarrow")
_FIRST, _END = -62_104_060_800, 253_370_764_800  # the years 2 to 9998, in which every time zone has Python's datetime
_DAY = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def to_pandas(
    table: pa.Table,
    dtype_backend: DtypeBackend | None = None,
    *,
    whole_file: bool = False,
    added_index: Sequence[str] = (),
) -> pd.DataFrame:
    """The DataFrame of a table.

    `dtype_backend` is that of pandas' readers. None: NumPy dtypes, but `Int64` and its like for integers with missing
    values, `boolean` for bools and `str` for text; dtypes that the frame had when it was written win. If the table is
    a `whole_file`, a RangeIndex in the metadata is restored if it has the table's length. Where the metadata no longer
    states an index, its levels without a name are left out, and the columns `added_index`.

    >>> to_pandas(pa.table({"n": pa.array([1, None])})).dtypes["n"]
    Int64Dtype()
    """
    if dtype_backend not in _BACKENDS:
        raise ValueError(f"dtype_backend={dtype_backend!r}: expected one of {_BACKENDS}")
    description = frame_description(table.schema)
    index_fields = stored_index(table.schema, description)
    lost = lost_levels(table.schema, description, index_fields)
    index_columns = {*index_fields, *lost, *(() if index_fields else added_index)}
    data = table.select([name for name in table.column_names if name not in index_columns]) if index_columns else table
    frame = _frame(data, description, dtype_backend)
    if index_fields:
        frame.index = _stored_index(table.select(index_fields), description, dtype_backend)
    elif whole_file and (index := _range(description, table.num_rows)) is not None:
        frame.index = index
    _make_sparse(frame, data.column_names, description)
    frame.columns = column_labels(data.column_names, description)
    frame.attrs = dict(description["attributes"])
    return frame


# ---- the index and the labels


def _range(description: Mapping[str, Any], rows: int) -> pd.RangeIndex | None:
    import pandas as pd

    ranges = (
        entry for entry in description["index_columns"] if isinstance(entry, dict) and entry.get("kind") == "range"
    )
    described = next(ranges, {})
    numbers = map(described.get, ("start", "stop", "step"))
    ends: list[Any] = [end for end in numbers if isinstance(end, int) and abs(end) < _FAR]
    if len(ends) < 3 or ends[2] == 0:
        return None
    values, name = range(*ends), described.get("name")
    return pd.RangeIndex(values, name=name if isinstance(name, str | int) else None) if len(values) == rows else None


def _stored_index(columns: pa.Table, description: Mapping[str, Any], backend: str | None) -> pd.Index:
    import pandas as pd

    frame = _frame(zones_that_python_has(columns), description, backend)  # an index needs Python's zones
    names = []
    for field in columns.column_names:
        name = description["columns"].get(field, {"name": field}).get("name")
        names.append(None if name == field and UNNAMED.fullmatch(field) else name)
    if len(names) > 1:
        series = (values for _, values in _hashable(frame, columns.schema).items())
        levels = [level.array if isinstance(level.dtype, pd.ArrowDtype) else level for level in series]
        return pd.MultiIndex.from_arrays(levels, names=names)  # pandas 2 takes no Series of Arrow's categories
    level = frame.iloc[:, 0]
    return pd.Index(level, dtype=level.dtype).rename(names[0])


def _hashable(frame: pd.DataFrame, schema: pa.Schema) -> pd.DataFrame:
    """The levels of an index, lists as tuples; SchemaError if values of a level cannot be in an index."""
    for field in schema:
        if isinstance(field.type, pa.BaseExtensionType) or not (is_list_like(field.type) or t.is_struct(field.type)):
            continue
        try:
            if is_list_like(field.type):
                frame[field.name] = frame[field.name].map(tuple, na_action="ignore").astype(object)
            frame[field.name].map(hash)
        except TypeError as error:
            reason = f"the pandas metadata makes it a level of the index, which cannot have values of {field.type}"
            advice = "read the file with read_table, or pass schema='infer'"
            raise SchemaError(reason, feature=field.name, got=str(field.type), hint=advice) from error
    return frame


def column_labels(names: list[str], stated: Mapping[str, Any]) -> pd.Index:
    """The column labels: text, or those of the frame if it had every column."""
    import pandas as pd

    columns, texts = stated["columns"], pd.Index(names)
    if not stated["column_indexes"] or not columns.keys() >= set(names):
        return texts
    are_texts = stated["column_indexes"] == [{**_TEXT_LABELS, "numpy_type": texts.dtype.name}]
    if are_texts and names == [columns[name].get("name") for name in names]:
        return texts
    levels = stated["column_indexes"]
    typed = {at: labels for at, level in enumerate(levels) if (labels := _typed_level(level, names)) is not None}
    try:
        labels = _labels_by_pyarrow(names, columns, levels, typed)
        if typed:
            arrays = [typed.get(at, labels.get_level_values(at)) for at in range(labels.nlevels)]
            joined = arrays[0] if len(arrays) == 1 else pd.MultiIndex.from_arrays(arrays)
            return joined.set_names(labels.names)
    except Exception:  # any writer may have made the metadata, and pandas raises errors of any type
        return texts
    missing = [columns[name].get("name") is None for name in names]
    if labels.nlevels > 1 or not any(missing) or levels[0].get("numpy_type") != "object":
        return labels
    # between text, pandas makes NaN of None
    return pd.Index([None if none else label for label, none in zip(labels, missing, strict=True)], dtype=object)


def _labels_by_pyarrow(
    names: list[str], columns: Mapping[str, Any], levels: Sequence[Mapping[str, Any]], typed: Collection[int]
) -> pd.Index:
    """The labels of columns that pyarrow restores from their entries and levels; levels that are `typed` are texts."""
    import pandas as pd

    of_objects = {"pandas_type": "object", "numpy_type": "object"}  # pandas does not know each type of Arrow by name
    entries = [{**columns[name], "field_name": name, **of_objects} for name in names]
    levels_for_pyarrow, levels_of_bools = [], []
    for at, level in enumerate(levels):
        if at in typed:
            level = {**level, **of_objects, "metadata": None}
        elif level.get("numpy_type") in ("bool", "boolean"):
            levels_of_bools.append(at)
            level = {**level, **of_objects}
        levels_for_pyarrow.append(level)
    empty = pa.table({name: pa.array([], pa.null()) for name in names})
    labels = empty.replace_schema_metadata(_metadata(entries, levels_for_pyarrow)).to_pandas().columns
    for at in levels_of_bools:  # pyarrow takes each text for True
        texts = labels.levels[at] if isinstance(labels, pd.MultiIndex) else labels
        bools = pd.Index([_BOOLS[text] for text in texts], dtype=levels[at]["numpy_type"], name=texts.name)
        labels = labels.set_levels(bools, level=at) if isinstance(labels, pd.MultiIndex) else bools
    return labels


def _typed_level(stated: Any, names: Sequence[str]) -> pd.Index | None:
    """A level of the labels of columns that are periods, intervals, or categories of them; None for other levels."""
    labels_and_numbers = stated_labels(stated, names)
    labels = None if labels_and_numbers is None else labels_from_json(labels_and_numbers[0])
    if labels_and_numbers is None or labels is None or len(labels) <= max(labels_and_numbers[1], default=-1):
        return None
    return labels.take(labels_and_numbers[1])


def _metadata(columns: list[dict[str, Any]], column_indexes: Sequence[Any] = ()) -> dict[bytes, str]:
    return {KEY: json.dumps({"index_columns": [], "column_indexes": column_indexes, "columns": columns})}


# ---- dtypes


def _make_sparse(frame: pd.DataFrame, names: Sequence[str], stated: Mapping[str, Any]) -> None:
    """Make columns sparse as they were when they were written, if their dtypes are the same."""
    import pandas as pd

    for at, name in enumerate(names):
        entry = stated["columns"].get(name, {})
        fill = sparse_fill(entry)
        if fill is None:
            continue
        dtype = frame.iloc[:, at].dtype  # the dtypes of all columns take as long as there are columns
        if not isinstance(dtype, np.dtype) or dtype.name != entry["numpy_type"]:
            continue
        if dtype.kind in "iu":
            fits = type(fill) is int and np.iinfo(dtype).min <= fill <= np.iinfo(dtype).max
        else:
            fits = type(fill) is type(dtype.type(0).item())
        if fits:
            frame.isetitem(at, pd.arrays.SparseArray(frame.iloc[:, at], fill_value=dtype.type(fill)))


def _frame(table: pa.Table, description: Mapping[str, Any], backend: str | None) -> pd.DataFrame:
    """The columns of a table as a frame with text labels and no index of its own.

    Columns that pyarrow does not convert, or not exactly, are converted one by one; a second call makes the frame of
    the others, and they are inserted into it.
    """
    import pandas as pd

    if not table.num_columns:  # with new metadata a table without columns would lose its rows (pyarrow 26)
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    special = uncommon_columns(table.schema)
    converted = _special_columns(table, special, description, backend) if special else {}
    converted |= _columns_of_pandas(table, description)
    if backend is None:
        converted |= _arrow_texts(table, description)
    if backend != "pyarrow":
        converted |= _distinct_bytes(table, description) | _masked_integers(table, description)
    if converted:
        remaining = table.select([at for at in range(table.num_columns) if at not in converted])
        frame = _frame(remaining, description, backend)
        return _insert_columns(frame, {at: (table.schema.field(at).name, values) for at, values in converted.items()})
    if special and backend != "pyarrow":
        table = zones_that_python_has(table)
    try:
        return _convert_by_pyarrow(table, description, backend)
    except NO_PYTHON_FORM as error:
        if table.num_columns > 1:
            parts = [_frame(table.select([at]), description, backend) for at in range(table.num_columns)]
            return pd.concat(parts, axis=1)
        return _frame_of_one(table, description, backend, error)


def _frame_of_one(table: pa.Table, stated: Mapping[str, Any], backend: str | None, error: Exception) -> pd.DataFrame:
    """The frame of the only column, which pyarrow could not convert because of `error`: with the next best dtype."""
    import pandas as pd

    field = table.schema.field(0)
    if field.name in stated["columns"]:
        return _frame(table, {**stated, "columns": {}}, backend)
    if t.is_nested(field.type.value_type if t.is_dictionary(field.type) else field.type):
        return pd.DataFrame({field.name: pd.Series(_cells(table, 0), dtype=object)})
    if t.is_dictionary(field.type) and (distinct := _merge_equal_categories(table.column(0))) is not None:
        return _frame(pa.table({field.name: distinct}), stated, backend)
    if (wider := as_numpy_time(table.column(0))) is not None:
        return _frame(pa.table({field.name: wider}), stated, backend)
    if t.is_dictionary(field.type):  # pandas has no such categories: float16, NaN, 0.0 beside -0.0
        return _frame(pa.table({field.name: table.column(0).cast(field.type.value_type)}), stated, backend)
    reason = f"its values of {printable(field.type)} cannot be in a DataFrame ({type(error).__name__})"
    raise SchemaError(reason, feature=field.name, got=str(field.type), hint="read it with read_table") from error


def _convert_by_pyarrow(table: pa.Table, description: Mapping[str, Any], backend: str | None) -> pd.DataFrame:
    """The frame of columns that are not tensors, as pyarrow converts them."""
    import pandas as pd

    entries, by_type = [], not description["columns"]
    for at, field in enumerate(table.schema):
        dtype = _dtype_name(field, table, at, _stated_dtype(field, description))
        if dtype != "object" and not (by_type and dtype == "str"):
            names = {"name": field.name, "field_name": field.name}
            entries.append({**names, "pandas_type": "object", "numpy_type": dtype, "metadata": None})
    mapper = {"pyarrow": pd.ArrowDtype, "numpy_nullable": _nullable}.get(backend or "")
    if backend is None and by_type:  # a dtype for each text column by its name takes pandas long to find
        mapper = _text_mapper()
    described = table.replace_schema_metadata(_metadata(entries) if entries else None)
    has_work = table.num_rows * table.num_columns >= _LEAST_SHARED
    try:
        return described.to_pandas(types_mapper=mapper, use_threads=has_work)
    except pa.ArrowException as error:
        raise memory_error(error) from None


# ---- columns that pyarrow does not convert, or not exactly


def _special_columns(
    table: pa.Table, candidates: Sequence[int], description: Mapping[str, Any], backend: str | None
) -> dict[int, Array | pd.Series]:
    """Columns that pyarrow cannot convert, or would change or copy, as objects or as a series, by position.

    They are tensors, lists of numbers, values of other lists and structs that it changes, categories in a time zone.
    """
    converted: dict[int, Array | pd.Series] = {}
    for at in candidates:
        field, column = table.schema.field(at), table.column(at)
        dtype = _stated_dtype(field, description)
        if any(map(is_any_tensor, types_within(field.type))):
            is_scalar = is_any_tensor(field.type) and not element_and_shape(field)[1]
            converted[at] = _scalars_of_tensors(table, at) if is_scalar else _cells(table, at)
        elif backend == "pyarrow" or (dtype not in (None, "object") and restores(dtype, field.type)):
            continue
        elif dtype == f"{field.type}[pyarrow]":
            converted[at] = _undescribed_series(
                field.name, column, "pyarrow"
            )  # of a dtype that pandas does not find by its name
        elif is_bool8(field.type):  # which pyarrow makes integers, or floats if one is missing
            converted[at] = _undescribed_series(field.name, column.cast(pa.bool_()), backend)
        elif t.is_dictionary(field.type) and t.is_timestamp(field.type.value_type) and field.type.value_type.tz:
            converted[at] = _zoned_categories(table.select([at]))
        elif any(is_changed(chunk) for chunk in column.chunks):
            converted[at] = _exact_cells(table, at)
    if backend != "pyarrow":
        converted |= _lists_of_numbers(table, [at for at in candidates if at not in converted], description)
    return converted


def _columns_of_pandas(table: pa.Table, stated: Mapping[str, Any]) -> dict[int, Array | pd.Series]:
    """The columns of periods and intervals, and of categories of them, by position."""
    entries: Mapping[str, Any] = stated["columns"]
    columns: dict[int, Array | pd.Series] = {}
    for at, field in enumerate(table.schema):
        if field.metadata or isinstance(field.type, pa.BaseExtensionType):
            values = series_of_pandas(field, table.column(at))
        elif field.name in entries and (described := stated_categories(entries[field.name])) is not None:
            values = series_of_categories(table.column(at), described)
        else:
            continue
        if values is not None:
            columns[at] = values
    return columns


def _arrow_texts(table: pa.Table, description: Mapping[str, Any]) -> dict[int, pd.Series]:
    """Columns of text that was of Arrow's dtype: by its name, ``string[pyarrow]``, pandas finds its own dtype."""
    name = f"{pa.string()}[pyarrow]"
    named = {field for field, entry in description["columns"].items() if stated_dtype(entry) == name}
    if not named:
        return {}
    return {
        at: _undescribed_series(field.name, table.column(at), "pyarrow")
        for at, field in enumerate(table.schema)
        if field.name in named and is_text(field.type)
    }


def _insert_columns(frame: pd.DataFrame, columns: Mapping[int, tuple[str, Array | pd.Series]]) -> pd.DataFrame:
    """The frame with further columns, by their position."""
    import pandas as pd

    if len(columns) <= _MOST_INSERTED and frame.size >= _LEAST_SHARED:  # which pandas 2 copies when it joins frames
        for at, (name, values) in sorted(columns.items()):
            frame.insert(at, name, _series(values, frame.index))
        return frame
    are_objects = all(isinstance(values, np.ndarray) for _, values in columns.values())
    data = {name: values if are_objects else _series(values, frame.index) for name, values in columns.values()}
    added = pd.DataFrame(data, frame.index, dtype=object if are_objects else None, copy=False)
    present = [at for at in range(frame.shape[1] + len(columns)) if at not in columns]
    joined = pd.concat([frame, added], axis=1) if present else added
    return joined.take(np.argsort([*present, *columns]), axis=1)


def _series(values: Array | pd.Series, index: pd.Index) -> pd.Series:
    import pandas as pd

    return values if isinstance(values, pd.Series) else pd.Series(values, index, object, copy=False)


def _zoned_categories(table: pa.Table) -> pd.Series:
    """A column of categories in a time zone, which pyarrow makes naive."""
    import pandas as pd

    column = _merge_equal_categories(table.column(0))
    column = one_dictionary(table.column(0)).combine_chunks() if column is None else column
    name = table.column_names[0]
    categories = _undescribed_series(name, column.dictionary)
    codes = np.asarray(column.indices.cast(pa.int64()).fill_null(-1))
    with suppress(ValueError):  # NaT, which Arrow has as a value
        values = pd.Categorical.from_codes(codes, pd.Index(categories), ordered=column.type.ordered)
        return pd.Series(values)
    return _undescribed_series(name, table.column(0).cast(column.type.value_type))


def _undescribed_series(name: str, column: pa.Array | pa.ChunkedArray, backend: str | None = None) -> pd.Series:
    """The series, without a name, of a column of which no metadata states a dtype; warnings have its `name`."""
    return _frame(pa.table({name: column}), frame_description(pa.schema([])), backend).iloc[:, 0].rename(None)


def _merge_equal_categories(column: pa.ChunkedArray) -> pa.DictionaryArray | None:
    """A dictionary column with each category once and no null; None if it is so already, or Arrow cannot tell."""
    with suppress(*NO_PYTHON_FORM):
        array = one_dictionary(column).combine_chunks()
        if len(distinct := array.dictionary.drop_null().unique()) < len(array.dictionary):
            indices = pc.index_in(array.dictionary, value_set=distinct).take(array.indices)
            return pa.DictionaryArray.from_arrays(indices, distinct, ordered=array.type.ordered)
    return None


def is_changed(array: pa.Array) -> bool:
    """True if pyarrow changes values inside lists and structs on the way to pandas; other values it does not.

    Integers become floats if one is missing; in structs and maps, nanoseconds become integers; of extension types it
    has the storage, or nothing.

    >>> is_changed(pa.array([{"a": 1}, None])), is_changed(pa.array([{"a": 1}, {}])), is_changed(pa.array([1, None]))
    (True, True, False)
    """
    type_ = array.type
    if t.is_struct(type_):
        return any(_is_changed_inside(child, True) for child in struct_fields(array))
    if t.is_map(type_):  # whose rows are pairs of Python values, as those of structs are
        return _is_changed_inside(array.keys, True) or _is_changed_inside(array.items, True)
    if not is_list_like(type_):
        return False
    if t.is_fixed_size_list(type_):  # pyarrow converts the values below missing rows, too
        values = array.values.slice(array.offset * type_.list_size, len(array) * type_.list_size)
    else:
        values = array.values
        values = array.flatten() if values.null_count or t.is_nested(values.type) else values
    return _is_changed_inside(values, False)


def _is_changed_inside(array: pa.Array, in_struct: bool) -> bool:
    type_, nulls = array.type, array.null_count
    if t.is_dictionary(type_):
        type_, nulls = type_.value_type, nulls + array.dictionary.null_count
    if t.is_integer(type_):
        return bool(nulls)
    is_nanoseconds = (t.is_timestamp(type_) or t.is_duration(type_)) and type_.unit == "ns"
    return isinstance(type_, pa.BaseExtensionType) or (in_struct and is_nanoseconds) or is_changed(array)


def _exact_cells(table: pa.Table, at: int) -> Array:
    """The cells of a column of lists or structs that `is_changed`."""
    try:
        with memory_errors():
            values = [value for chunk in table.column(at).chunks for value in _exact_values(chunk)]
    except NO_PYTHON_FORM:
        return _cells(table, at)
    return np.fromiter(values, object, len(values))  # np.array would make one array of lists of one length


def _exact_values(array: pa.Array) -> list[Any]:
    """The values of an array as pyarrow converts them for pandas, but for values that pyarrow would change."""
    type_ = array.type
    if not (t.is_struct(type_) or is_list_like(type_)):
        return python_values(array)
    if not is_changed(array):
        return list(array.to_pandas())
    if t.is_struct(type_):
        names = [child.name for child in type_]
        values: list[Any] = [
            dict(zip(names, row, strict=True)) for row in zip(*map(_exact_values, struct_fields(array)), strict=True)
        ]
    else:
        values = _exact_lists(array)
    if array.null_count:
        values = [value if valid else None for value, valid in zip(values, array.is_valid().to_pylist(), strict=True)]
    return values


def _exact_lists(array: pa.Array) -> list[Array]:
    """The rows of lists; of a missing row, no values.

    Rows of integers, none of which is missing, are arrays of their type; other rows, if pyarrow would change a value of
    any row, are arrays of objects.
    """
    values, offsets = array.flatten(), offsets_of(ArrayBuffers(array).lengths)
    if not _is_changed_inside(values, False):
        return list(pa.LargeListArray.from_arrays(pa.array(offsets), values).to_pandas())
    objects = np.fromiter(_exact_values(values), object, len(values))
    rows = [objects[begin:end] for begin, end in pairwise(offsets.tolist())]
    if t.is_integer(values.type):
        dtype, missing = values.type.to_pandas_dtype(), np.concatenate(([0], np.cumsum(np.asarray(values.is_null()))))
        has_all = (missing[offsets[1:]] == missing[offsets[:-1]]).tolist()
        rows = [row.astype(dtype) if all_ else row for row, all_ in zip(rows, has_all, strict=True)]
    return rows


def _scalars_of_tensors(table: pa.Table, at: int) -> Array | pd.Series:
    """A column of tensors without axes: of their dtype if pandas has it, with NaN; else NumPy's scalars."""
    import pandas as pd

    field, column = table.schema.field(at), table.column(at)
    dtype = element_and_shape(field)[0].dtype
    if not column.null_count and dtype.kind in "biufc":
        return pd.Series(
            np.concatenate([np.empty(0, dtype), *(column_to_ndarray(chunk, field) for chunk in column.chunks)])
        )
    cells = _cells(table, at)
    missing = complex("nan") if dtype.kind == "c" else None
    for row, tensor in enumerate(cells):
        cells[row] = missing if tensor is None else tensor[()]
    return cells if missing is None else pd.Series(cells.astype(dtype.newbyteorder("=")))


def _cells(table: pa.Table, at: int) -> Array:
    """A column of tensors, or of lists of them, as ndarrays; of structs as dicts."""
    field, chunks = table.schema.field(at), table.column(at).chunks
    if has_nested_cells(field.type):
        return np.concatenate([np.empty(0, object), *(column_to_nested_cells(chunk, field) for chunk in chunks)])
    values = (cell(chunk, row, field) for chunk in chunks for row in range(len(chunk)))
    return np.fromiter(values, object, table.num_rows)


def _lists_of_numbers(table: pa.Table, columns: Iterable[int], stated: Mapping[str, Any]) -> dict[int, Array]:
    """The cells of those columns that are lists of numbers: views, where pyarrow copies a column of several chunks."""
    cells = {}
    for at in columns:
        field = table.schema.field(at)
        is_list = t.is_list(field.type) or t.is_large_list(field.type)
        if not is_list or number_dtype(field.type.value_type) is None:
            continue
        if _stated_dtype(field, stated) not in (None, "object"):
            continue
        chunks = table.column(at).chunks
        if any(chunk.values.null_count and chunk.flatten().null_count for chunk in chunks):  # pyarrow makes NaN of them
            continue
        plain = pa.field("", field.type)
        rows = [to_rows(chunk, plain) for chunk in chunks]
        cells[at] = Ragged.joined_objects(rows)  # type: ignore[arg-type]
    return cells if len(cells) <= _MOST_INSERTED else {}


def _distinct_bytes(table: pa.Table, description: Mapping[str, Any]) -> dict[int, Array]:
    """The cells of columns of bytes whose values rarely repeat: pyarrow would look for equal values in vain."""
    if table.num_rows < _SAMPLE:
        return {}
    columns = [at for at, type_ in enumerate(table.schema.types) if t.is_binary(type_)]
    columns = [at for at in columns if _stated_dtype(table.schema.field(at), description) in (None, "object")]
    if len(columns) > _MOST_INSERTED:
        return {}
    cells = {}
    for at in columns:
        longest = max(table.column(at).chunks, key=len)
        sample = longest.take(pa.array(np.arange(0, len(longest), -(-len(longest) // _SAMPLE))))
        if len(sample.unique()) * 8 > len(sample) * 7:
            cells[at] = Dense.of_bytes(table.column(at).chunks).values
    return cells


def _masked_integers(table: pa.Table, description: Mapping[str, Any]) -> dict[int, pd.Series]:
    """Columns of integers with nulls, if they have many values: pandas would copy each twice, in one thread."""
    import pandas as pd

    series: dict[int, pd.Series] = {}
    columns: dict[pa.DataType, list[int]] = {}
    for at, field in enumerate(table.schema):
        if not t.is_integer(field.type) or not table.column(at).null_count:
            continue
        if _dtype_name(field, table, at, _stated_dtype(field, description)) == _masked_integer(field.type):
            columns.setdefault(field.type, []).append(at)
    for type_, numbers_of_type in columns.items():
        shape = len(numbers_of_type), table.num_rows
        if math.prod(shape) < _LEAST_SHARED:
            continue
        values, missing = np.empty(shape, type_.to_pandas_dtype()), np.empty(shape, np.bool_)
        numbers = list(map(NumberColumn, range(len(numbers_of_type)), values, missing))
        NumberColumn.join(table.select(numbers_of_type).to_batches(), numbers, cpu_count())
        for at, column in zip(numbers_of_type, numbers, strict=True):
            series[at] = pd.Series(pd.arrays.IntegerArray(column.values, column.missing), copy=False)
    return series


def _dtype_name(field: pa.Field, table: pa.Table, at: int, stated: str | None) -> str:
    """Name of the dtype of column `at`; "object" means that Arrow chooses."""
    type_ = field.type
    if stated is not None and restores(stated, type_):
        return stated
    if t.is_integer(type_) and table.column(at).null_count:
        return _masked_integer(type_)
    if t.is_boolean(type_):
        has_nulls = table.column(at).null_count > 0
        return "object" if stated == ("object" if has_nulls else "bool") else "boolean"
    if is_text(type_):
        return "str"
    return "object"


def _masked_integer(type_: pa.DataType) -> str:
    return ("UInt" if t.is_unsigned_integer(type_) else "Int") + str(type_.bit_width)


def restores(stated: str, type_: pa.DataType) -> bool:
    """True if `stated` names an extension dtype that values of `type_` can be."""
    import pandas as pd

    try:
        dtype = pd.api.types.pandas_dtype(stated)
    except Exception:  # any writer may have made the metadata, and pandas raises errors of any type
        return False
    if isinstance(dtype, pd.ArrowDtype):
        arrow_type = dtype.pyarrow_dtype  # files have no large types, which pandas then makes again
        return bool(arrow_type == type_ or (is_text_or_bytes(arrow_type) and restored_type(arrow_type) == type_))
    if isinstance(dtype, pd.StringDtype):
        return is_text(type_)
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype) or not hasattr(dtype, "__from_arrow__"):
        return False  # pyarrow cannot make it, such as a sparse one
    kinds = {"i": t.is_signed_integer, "u": t.is_unsigned_integer, "f": t.is_floating, "b": t.is_boolean}
    is_masked = dtype.kind in kinds and kinds[dtype.kind](type_)
    return bool(is_masked and dtype.itemsize >= type_.bit_width // 8)


def _stated_dtype(field: pa.Field, stated: Mapping[str, Any]) -> str | None:
    return stated_dtype(stated["columns"].get(field.name, {}))


def _text_mapper() -> Callable[[pa.DataType], Any] | None:
    """The function from an Arrow type to pandas' dtype for text; None where pandas has no dtype of its own for it."""
    import pandas as pd

    dtype = pd.api.types.pandas_dtype("str")
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return None
    return lambda type_: dtype if is_text(type_) else None


def _nullable(type_: pa.DataType) -> Any:
    """pandas' nullable dtype for an Arrow type; None if it has none."""
    import pandas as pd

    if t.is_integer(type_):
        return pd.api.types.pandas_dtype(_masked_integer(type_))
    if t.is_float32(type_) or t.is_float64(type_):
        return pd.api.types.pandas_dtype(f"Float{type_.bit_width}")
    if t.is_boolean(type_):
        return pd.BooleanDtype()
    if is_text(type_):
        return pd.StringDtype()
    return pd.Int64Dtype() if t.is_null(type_) else None


def as_numpy_time(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Dates as timestamps, times of day as durations since midnight, which are NumPy's dtypes; None for other types.

    >>> as_numpy_time(pa.chunked_array([pa.array([1], pa.time64("ns"))])).type
    DurationType(duration[ns])
    """
    type_ = column.type
    if t.is_dictionary(type_):
        values = as_numpy_time(column.cast(type_.value_type))
        return None if values is None else values.dictionary_encode()
    if t.is_date(type_):
        return column.cast(pa.timestamp("s" if t.is_date32(type_) else "ms"))
    if t.is_time(type_):
        numbers = column.cast(pa.int32() if type_.bit_width == 32 else pa.int64())
        return numbers.cast(pa.int64()).cast(pa.duration(type_.unit))
    return None


def zones_that_python_has(table: pa.Table) -> pa.Table:
    """The table with time zones that Python can show.

    Timestamps of an unknown time zone are in UTC; those with years that Python lacks in a zone are in UTC, without a
    zone. A SchemaWarning names each such column.
    """
    changed = {}
    for at in uncommon_columns(table.schema):
        field, column = table.schema.field(at), table.column(at)
        is_categorical = t.is_dictionary(field.type)
        type_ = field.type.value_type if is_categorical else field.type
        if not t.is_timestamp(type_) or type_.tz is None:
            continue
        column, utc = column.cast(type_), pa.timestamp(type_.unit, "UTC")
        if (far := _far_times(column)) is not None:
            reason = f"{far} in a time zone: it is datetime64 in UTC, without a zone"
            column = column.cast(utc).cast(pa.timestamp(type_.unit))
        elif not _is_known(type_):
            reason = f"the time zone '{printable(type_.tz, 60)}' is unknown here: it is in UTC"
            column = column.cast(utc)
        else:
            continue
        warn(f"column '{printable(field.name)}': {reason}", SchemaWarning)
        column = column.dictionary_encode() if is_categorical else column
        changed[at] = field.with_type(column.type), column
    return replace_columns(table, changed)


def _far_times(column: pa.ChunkedArray) -> str | None:
    """What times of the column, in words, no time zone can hold; None if all can be in one."""
    ends, unit = pc.min_max(column.cast(pa.int64())), _PER_SECOND[column.type.unit]
    if not ends["min"].is_valid:
        return None
    if ends["min"].as_py() < _FIRST * unit or ends["max"].as_py() >= _END * unit:
        return "years before 1 or after 9999"
    limit = 2**63 - _DAY * unit  # local times are not representable at the very ends of the range
    return "the first or last day of datetime64[ns]" if max(-ends["min"].as_py(), ends["max"].as_py()) > limit else None


def _is_known(type_: pa.DataType) -> bool:
    try:
        pa.scalar(0, type_).as_py()
    except NO_PYTHON_FORM:
        return False
    return True
