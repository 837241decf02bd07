"""Open any tabular input as a stream of record batches of one schema.

`open_input` takes the data of a write call and returns a `BatchSource`; what is not a table raises TypeError. By way of
`_open`, which tries the forms in order, it goes to one function for each form, `_source_of_…` here or in ``from_….py``.

Tests: tests/columns/arrow/input/test_batch_source.py, and a file for each ``from_….py``.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS
from tfrecord_io.columns.arrow.buffers import value_bytes
from tfrecord_io.columns.arrow.input.array_likes import (
    class_name,
    imported_module,
    is_frame,
    is_single,
    is_sparse_matrix,
)
from tfrecord_io.columns.arrow.input.from_arrays import (
    refuse_duckdb_types,
    structured_columns,
    table_of_arrays,
    table_of_rows,
)
from tfrecord_io.columns.arrow.row_fault import errors_of_rows
from tfrecord_io.columns.schema.column_features import (
    encoding_of,
    is_marked_feature_list,
    needs_nesting,
    nested_handed,
    set_encoding,
)
from tfrecord_io.columns.schema.tensor_types import NESTED, image_encodings
from tfrecord_io.columns.schema.types import (
    drop_run_ends,
    has_dictionary,
    has_required_parts,
    is_deep,
    is_list_like,
    replace_fields,
    uncommon_columns,
)
from tfrecord_io.errors import EncodeError

PART_BYTES = 8 << 20  # of batches that are converted, of several parts at a time


class BatchSource:
    """A schema and its batches, which can be iterated over once. Errors of the input are raised as they are.

    If all rows are in memory anyway, `part` makes the batches of rows [begin, end), to be used instead of `batches`,
    when the first of them is needed.

    `schema` has its metadata, pandas' among it. `batches` have at most 65,536 rows and about 64 MiB. `rows` is their
    number, if it is known in advance.
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        rows: int | None = None,
        part: Callable[[int, int], Iterator[pa.RecordBatch]] | None = None,
    ) -> None:
        self.schema, self.batches, self.rows, self.part = schema, batches, rows, part

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        return self.batches

    def map_batches(self, schema: pa.Schema, convert: Convert, row_base: int) -> BatchSource:
        """Convert the batches by `convert`; `row_base` rows come before the first batch."""
        part = self.part
        parts = (
            None if part is None else lambda begin, end: convert(cut(part(begin, end), PART_BYTES), row_base + begin)
        )
        return BatchSource(schema, convert(self.batches, row_base), self.rows, parts)

    def with_plain_layouts(self) -> BatchSource:
        """Replace views and run-ends of data by plain layouts."""
        schema = pa.schema([f.with_type(nested_handed(f.type)) for f in self.schema], self.schema.metadata)
        if schema.equals(self.schema):
            return self
        from tfrecord_io.columns.arrow.casts import plain_layout

        arrays = (map(plain_layout, batch.columns) for batch in self.batches)
        batches = (pa.RecordBatch.from_arrays(list(columns), schema=schema) for columns in arrays)
        return BatchSource(schema, batches, self.rows)

    def fit_to(self, first: pa.Schema, who: str) -> BatchSource:
        """This source, which `who` names, converted to the schema of the data before it, or a SchemaError."""
        if self.schema.equals(first, check_metadata=True):
            return self
        from tfrecord_io.columns.arrow.input.fit_to_first import conversion_to_first

        convert = conversion_to_first(self.schema, first, who)
        return self if convert is None else self.map_batches(first, lambda batches, _: convert(batches), 0)


Convert = Callable[[Iterator[pa.RecordBatch], int], Iterator[pa.RecordBatch]]
"""Converts batches that follow so many rows."""
Conform = Callable[[BatchSource, int], BatchSource]
"""Converts one table of the input, which follows so many rows, to the schema that all must have."""


@dataclass(slots=True, eq=False, repr=False)
class _InputOptions:
    """The caller's options for the input."""

    index: bool | None
    record_dim: str | None
    nan_to_null: bool
    encodings: Mapping[str, str]
    conform: Conform | None
    maps: Mapping[str, pa.DataType]


def open_input(
    data: Any,
    *,
    index: bool | None = None,
    record_dim: str | None = None,
    nan_to_null: bool = True,
    encodings: Mapping[str, str] | None = None,
    row_base: int = 0,
    conform: Conform | None = None,
    maps: Mapping[str, pa.DataType] | None = None,
) -> BatchSource:
    """Open any tabular input.

    >>> open_input({"x": [1, 2, None]}).schema.types
    [DataType(int64)]

    `data` is a DataFrame, Table, RecordBatch, RecordBatchReader, Reader, mapping of arrays or structured array; a list
    or an iterable of dicts with single values, one for each row; a Series of pandas or polars with a name; a Dataset or
    Scanner of pyarrow; a Dataset, a DataArray or a dict of DataArrays of xarray; a polars LazyFrame, which is run batch
    by batch; a dataset of Hugging Face datasets; anything with ``__arrow_c_stream__`` or ``__arrow_c_array__``; or an
    iterable of such tables, whose first item is read at once.

    `index`, for DataFrames, is as in ``pandas.DataFrame.to_parquet``: None keeps a RangeIndex without a name as
    metadata and any other as columns, True keeps all as columns, False none. With `nan_to_null`, NaN in a float column
    of a DataFrame is a missing value; Arrow's and NumPy's NaN are always values. `record_dim`, for objects of xarray,
    is the dimension whose positions are the rows, by default the first that all share. `encodings` is the
    ``column_encoding=`` of a writer, which decides which arrays become tensors; `row_base` the number of rows before
    these, for messages. `conform` is applied to each table of the input: with a schema, the items of an iterable may
    have different types. `maps` are the `map_types` of that schema: Python values alone do not say what is a map.

    EncodeError if a column cannot be converted to Arrow, for example an object column of mixed types, or two columns
    have one name; TypeError if `data` holds no table; while iterating, SchemaError if a batch of an iterable has
    another schema than the first.
    """
    options = _InputOptions(
        index, record_dim, nan_to_null=nan_to_null, encodings=encodings or {}, conform=conform, maps=maps or {}
    )
    source = _open_table(data, options, row_base)
    try:
        names = Counter(source.schema.names)
    except UnicodeDecodeError as error:
        raise EncodeError("a column's name is not UTF-8", hint="rename it") from error
    for name, count in names.items():
        if count > 1:
            raise EncodeError(f"{count} columns have this name", feature=name, hint="rename them")
    if any(not field.nullable or has_required_parts(field.type) for field in source.schema):
        source = _refuse_missing(source, row_base)
    if encodings and (images := image_encodings(encodings)):
        from tfrecord_io.columns.arrow.image_encoding import declare_images, encoded_images

        schema = declare_images(source.schema, images)
        source = source.map_batches(schema, lambda batches, row: encoded_images(batches, schema, images, row), row_base)
    return source


def _refuse_missing(source: BatchSource, row_base: int) -> BatchSource:
    """The source, in which a null of a field that is not nullable is an EncodeError."""
    from tfrecord_io.columns.arrow.input.schema_cast import refuse_missing

    def check_batches(batches: Iterator[pa.RecordBatch], row: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            with errors_of_rows(row):
                for column, field in zip(batch.columns, source.schema, strict=True):
                    refuse_missing(column, field)
            yield batch
            row += batch.num_rows

    return source.map_batches(source.schema, check_batches, row_base)


def _open_table(data: Any, options: _InputOptions, row_base: int) -> BatchSource:
    try:
        return _open(data, options, row_base)
    except _NoTableError as error:
        raise TypeError(str(error)) from None


def _open(data: Any, options: _InputOptions, row_base: int) -> BatchSource:
    """The batches of a table, or of an iterable of tables; anything else is a TypeError that says what to pass."""
    if isinstance(data, type):
        raise TypeError(f"expected a table, got the class {data.__module__}.{data.__qualname__}: pass an object of it")
    table = data
    try:
        table = _known_form(data)
        source = _source_of_xarray(table, options, row_base)
        if source is None:
            source = _source_of_single_table(table, options, row_base)
            if source is not None and options.record_dim is not None:
                raise TypeError(f"record_dim= is for objects of xarray, and this is {class_name(data)}")
    except EncodeError as error:
        if _is_row(data):
            error.set_hint(
                "a row of a DataFrame has its dtypes as a DataFrame: pass df.iloc[[0]] instead of df.iloc[0]"
            )
        raise
    if source is not None:
        return source if options.conform is None else options.conform(source, row_base)
    _refuse_single_columns(data)
    if callable(getattr(data, "read", None)) and not _is_read_in_chunks(data):
        # Its lines are not rows, also if it is at its end and has none.
        advice = "pass its iter_batches()" if hasattr(data, "iter_batches") else "pass tfr.dataset(file)"
        raise TypeError(f"expected a table, got a file object, {class_name(data)}: {advice}")
    if isinstance(table, Iterable) and not isinstance(table, (str, bytes, bytearray, memoryview)):
        try:
            return _source_of_iterable(iter(table), options, row_base)
        except _NoTableError as error:
            raise _NoTableError(class_name(data), error.data) from None
    if callable(getattr(data, "SerializeToString", None)):
        advice = "write its bytes, SerializeToString(), with tfr.RecordWriter"
        raise TypeError(f"{class_name(data)} is one message, not a table: {advice}")
    raise _NoTableError(class_name(data))


def _is_read_in_chunks(data: Any) -> bool:
    """True for what ``pd.read_csv(path, chunksize=1000)`` and the like return, an iterator of DataFrames."""
    return hasattr(data, "chunksize") and isinstance(data, Iterator) and not isinstance(data, io.IOBase)


def _refuse_single_columns(data: Any) -> None:
    """Refuse an array and a sparse matrix, which are one column without a name."""
    if hasattr(data, "__array__") and hasattr(data, "dtype"):
        if not data.ndim:
            raise TypeError(f"expected a table, got a single value of dtype {data.dtype}")
        what = "an ndarray" if isinstance(data, np.ndarray) else class_name(data)
        what = f"{what} of shape {tuple(data.shape)} and dtype {data.dtype} is one column and has no name"
        raise TypeError(f"{what}: pass a dict, {{'x': array}}")
    if hasattr(data, "toarray") and hasattr(data, "shape"):
        if is_sparse_matrix(data):
            raise TypeError(f"{class_name(data)} is one column and has no name: pass a dict, {{'x': matrix}}")
        raise TypeError(f"{class_name(data)} is a sparse matrix, not a table: pass {{'x': matrix.toarray()}}")


_RECORDS = "tfr.RecordWriter writes records of bytes"
_FILES = "tfr.convert(source, target) converts files"
_NOT_TABLES = {"builtins.bytes": _RECORDS, "builtins.bytearray": _RECORDS, "builtins.str": _FILES}
_PATHS = "pathlib."  # the module of classes of paths


class _NoTableError(TypeError):
    """The input is not a table, nor is its first `item`, if any."""

    def __init__(self, data: str, item: str | None = None) -> None:
        self.data = data
        got = " of ".join(name.removeprefix("builtins.") for name in (data, item) if name is not None)
        valid = "a DataFrame, Arrow data, a mapping of arrays, dicts of rows or an iterable of record batches"
        name = item or data
        advice = _FILES if name.startswith(_PATHS) else _NOT_TABLES.get(name, "")
        super().__init__(f"expected a table, got {got}: pass {valid}{advice and f'; {advice}'}")


def _is_row(data: Any) -> bool:
    """True if this looks like one row of a DataFrame: a Series of objects whose index has the names of columns."""
    pandas = imported_module("pandas")
    is_objects = pandas is not None and isinstance(data, pandas.Series) and data.dtype == object
    return is_objects and not isinstance(data.name, str) and all(isinstance(name, str) for name in data.index)


def _source_of_single_table(data: Any, options: _InputOptions, row_base: int) -> BatchSource | None:
    """The batches of a single table; None if `data` is not one."""
    if isinstance(data, np.ndarray) and data.dtype.names is not None and data.ndim:
        data = structured_columns(data)
    if is_frame(data) or isinstance(data, Mapping):
        return _source_of_columns(data, options, row_base)
    if isinstance(data, pa.Table):
        return _source_of_table(data)
    if isinstance(data, list | tuple) and (chunks := _chunks(data)) is not None:
        return _source_of_chunks(chunks, nest_lossy_columns(chunks.schema, chunks.to_batches()))
    if isinstance(data, pa.RecordBatch):
        return _source_of_table(pa.Table.from_batches([data]))
    if isinstance(getattr(data, "schema", None), pa.Schema) and hasattr(data, "read_next_batch"):
        return _source_of_reader(data, options)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _source_of_capsules(data)
    return None


def _source_of_capsules(data: Any) -> BatchSource:
    """The batches of an object of any library that exports an Arrow stream, or an Arrow array of structs."""
    is_stream = hasattr(data, "__arrow_c_stream__")
    try:
        if is_stream:
            rows = _length(data)
            reader = pa.RecordBatchReader.from_stream(data)
            return _source_of_stream(reader.schema, reader, rows)
        batch = _batch_of_structs(data)
        return BatchSource(batch.schema, cut([batch]), batch.num_rows)
    except pa.ArrowInvalid as error:
        form = "stream" if is_stream else "array"
        if "format string" in str(error):  # of a type that pyarrow does not have, such as 128-bit integers of Polars
            reason = f"{class_name(data)} has a column of a type that pyarrow does not read ({error}): cast it"
        elif "Cannot import" not in str(error):  # an error of what makes the stream, such as a damaged file
            raise
        else:
            reason = f"{class_name(data)} gives an Arrow {form}, but not of a table: pass a table with this as a column"
        raise TypeError(reason) from error
    except OverflowError as error:  # of pandas, for Python's integers
        reason = f"{class_name(data)} has an integer that its Arrow stream cannot have: {error}"
        advice = "pass the frame of the library itself, whose error names the column, or convert the column to text"
        raise EncodeError(reason, expected="-2**63 to 2**63 - 1", hint=advice) from error


def _batch_of_structs(data: Any) -> pa.RecordBatch:
    """The batch of an Arrow array of structs, which may be a slice of another."""
    try:
        return pa.record_batch(data)
    except pa.ArrowInvalid as error:
        if "non-zero" not in str(error):  # an offset or a number of nulls, with which pyarrow (26.0) makes no batch
            raise
    structs = pa.array(data)
    if structs.null_count:
        row, advice = structs.is_null().index(True).as_py(), "drop it, or pass a table with the array as a column"
        raise EncodeError("a struct that is null cannot be a row", record=row, hint=advice)
    return pa.RecordBatch.from_struct_array(structs)


def _length(data: Any) -> int | None:
    """The number of rows, if it can be had without reading them: for that of a query, DuckDB runs it, ibis fails."""
    is_query = type(data).__module__.partition(".")[0] in ("duckdb", "_duckdb", "ibis")
    try:
        return len(data) if isinstance(data, Sized) and not is_query else None
    except TypeError:  # a `Dataset` of files whose records nothing counts
        return None


def _known_form(data: Any) -> Any:
    """Inputs of other libraries, and rows, as a table that `_source_of_single_table` knows; anything else as it is."""
    modules = ("pandas", "polars", "pyarrow.dataset", "duckdb", "narwhals", "datasets")
    pandas, polars, arrow_dataset, duckdb, narwhals, hugging_face = map(imported_module, modules)
    if narwhals is not None and isinstance(data, narwhals.LazyFrame | narwhals.DataFrame | narwhals.Series):
        data = data.to_native()
        if pandas is not None and isinstance(data, pandas.DataFrame | pandas.Series):
            data = data.reset_index(drop=True)  # which narwhals does not have
    if isinstance(data, list | tuple) and data and all(isinstance(row, Mapping) for row in data):
        return table_of_rows(data) if any(is_single(v) for row in data for v in row.values()) else data
    if pandas is not None and isinstance(data, pandas.Series):
        if data.name is None:
            raise TypeError("a pandas.Series without a name: pass series.to_frame('x'), with the name of its column")
        return data.to_frame()
    if polars is not None and isinstance(data, polars.Series | polars.DataFrame | polars.LazyFrame):
        from tfrecord_io.columns.arrow.input.from_polars import table_of_polars

        return table_of_polars(data)
    if duckdb is not None and isinstance(data, duckdb.DuckDBPyRelation):
        for name, type_ in zip(data.columns, data.types, strict=True):
            refuse_duckdb_types(name, type_)
    if arrow_dataset is not None and isinstance(data, arrow_dataset.Dataset | arrow_dataset.Scanner):
        return (data.scanner() if isinstance(data, arrow_dataset.Dataset) else data).to_reader()
    hugging_face_classes = ("Dataset", "IterableDataset", "DatasetDict", "IterableDatasetDict")
    if hugging_face is not None and isinstance(data, tuple(getattr(hugging_face, c) for c in hugging_face_classes)):
        from tfrecord_io.columns.arrow.input.from_hugging_face import tables_of_hugging_face

        return tables_of_hugging_face(data)
    return data


def _source_of_reader(data: Any, options: _InputOptions) -> BatchSource:
    """Readers of tfrecord_io refuse to be read a second time; those of pyarrow do not report it."""
    if hasattr(data, "apply_encodings"):
        data = data.apply_encodings(options.encodings)
    elif hasattr(data, "from_start"):
        data = data.from_start()
    rows = getattr(data, "num_rows", None) if hasattr(data, "apply_encodings") else None  # of an ArrayStream
    return _source_of_stream(data.schema, data, rows)  # iterated, not exported, so that errors keep their class


def _source_of_columns(data: Any, options: _InputOptions, row_base: int) -> BatchSource:
    with errors_of_rows(row_base):
        if is_frame(data):
            from tfrecord_io.columns.arrow.input.from_pandas import table_of_frame

            columns = table_of_frame(
                data, options.index, nan_to_null=options.nan_to_null, encodings=options.encodings, maps=options.maps
            )
        else:
            columns = table_of_arrays(data, options.nan_to_null, options.encodings, options.maps)
    if not columns.tensors:
        return _source_of_table(columns.table)
    table = _one_dictionary(columns.table)
    columns = columns._replace(table=table)
    part, schema = partial(columns.batches, PART_BYTES), nest_lossy_columns(columns.schema, table.to_batches())
    return BatchSource(schema, cut(columns.batches(LIMITS.batch_bytes)), table.num_rows, part)


def _source_of_xarray(data: Any, options: _InputOptions, row_base: int) -> BatchSource | None:
    """The rows of objects of xarray, block by block; None if `data` is not one.

    Columns of objects are converted at once: all decide the type.
    """
    if imported_module("xarray") is None:
        return None
    from tfrecord_io.columns.arrow.input.from_xarray import labelled_rows

    rows = labelled_rows(data, options.record_dim)
    if rows is None:
        return None
    whole = _source_of_columns(rows.objects, options, row_base)
    objects = pa.Table.from_batches([b.replace_schema_metadata() for b in whole.batches] or [], whole.schema)

    def block(begin: int, end: int) -> BatchSource:
        part = objects.slice(begin, end - begin)
        columns = {**rows.numbers(begin, end), **dict(zip(part.column_names, part.columns, strict=True))}
        return _source_of_columns({name: columns[name] for name in rows.names}, options, row_base + begin)

    are_objects = {field.name: field for field in whole.schema}
    fields = [are_objects.get(field.name, field) for field in block(0, 0).schema]
    batches = (batch for begin, end in rows.blocks(LIMITS.batch_bytes) for batch in block(begin, end))
    return BatchSource(rows.add_labels(pa.schema(fields)), batches, rows.count)


def _source_of_table(table: pa.Table) -> BatchSource:
    if not uncommon_columns(table.schema):
        return _source_of_chunks(table, table.schema)
    table = _one_dictionary(table)
    return _source_of_chunks(table, nest_lossy_columns(table.schema, table.to_batches()))


def _source_of_stream(schema: pa.Schema, batches: Iterable[pa.RecordBatch], rows: int | None) -> BatchSource:
    """A stream; whether a column has to be stored nested is decided by the first batch that has rows."""
    if any(map(_may_lose, schema)):
        with_rows = (batch for batch in batches if batch.num_rows)
        begin = list(islice(with_rows, 1))
        schema, batches, rows = nest_lossy_columns(schema, begin), chain(begin, with_rows), rows if begin else 0
    return BatchSource(schema, cut(batches), rows)


def nest_lossy_columns(schema: pa.Schema, batches: Sequence[pa.RecordBatch]) -> pa.Schema:
    """Store columns as nested where plain features would lose a part of the content of the batches."""
    candidates = [at for at in uncommon_columns(schema) if _may_lose(schema.field(at))]
    if not candidates:
        return schema
    from tfrecord_io.columns.arrow import flatten

    nested = [at for at in candidates if any(flatten.loses(batch.column(at)) for batch in batches)]
    return replace_fields(schema, {at: set_encoding(schema.field(at), NESTED) for at in nested})


def _may_lose(field: pa.Field) -> bool:
    type_ = drop_run_ends(field.type)
    is_list_or_struct = is_list_like(type_) or pa.types.is_struct(type_)
    if not is_list_or_struct or is_deep(type_):  # which the plan refuses
        return False
    if is_marked_feature_list(field):  # whose steps may be null
        return False
    return encoding_of(field) is None and not needs_nesting(field.with_name(""))


def _chunks(data: Sequence[Any]) -> pa.Table | None:
    """A list of record batches of one schema as a table, whose length is known; None if it is another list."""
    if not data or not all(isinstance(item, pa.RecordBatch) for item in data):
        return None
    if not all(batch.schema.equals(data[0].schema, check_metadata=True) for batch in data):
        return None
    return pa.Table.from_batches(data)


def _source_of_chunks(table: pa.Table, schema: pa.Schema) -> BatchSource:
    return BatchSource(
        schema,
        cut(table.to_batches()),
        table.num_rows,
        lambda begin, end: cut(table.slice(begin, end - begin).to_batches()),
    )


def _one_dictionary(table: pa.Table) -> pa.Table:
    """One dictionary for all chunks, where Arrow can make one: the embedded schema then holds all categories."""
    if not any(has_dictionary(table.schema.field(at).type) for at in uncommon_columns(table.schema)):
        return table
    from tfrecord_io.columns.arrow.casts import unify_table

    with suppress(pa.ArrowInvalid, pa.ArrowNotImplementedError):  # it would need larger indices
        table = unify_table(table)
    return table


def _source_of_iterable(items: Iterator[Any], options: _InputOptions, row_base: int) -> BatchSource:
    """The batches of all items; without any, a table without rows and columns."""
    from tfrecord_io.columns.arrow.input.row_batches import join_rows

    items = join_rows(items)
    first = next((_open(item, options, row_base) for item in items), None)
    if first is None:
        return BatchSource(pa.schema([]), iter(()), 0)
    schema, rows = first.schema, row_base

    def open_following() -> Iterator[BatchSource]:
        for number, item in enumerate(items, 1):
            who = f"item {number} of the input" if not isinstance(item, list) else f"the data from row {rows} on"
            yield _open_table(item, options, rows).fit_to(schema, who)

    following_sources = open_following()
    while first.rows == 0 and (following := next(following_sources, None)) is not None:
        first, schema = following, following.schema  # whether columns are nested is decided by rows

    def all_batches() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in chain.from_iterable(chain([first], following_sources)):
            rows += batch.num_rows
            yield batch

    return BatchSource(schema, all_batches())


def cut(batches: Iterable[pa.RecordBatch], most_bytes: int | None = None) -> Iterator[pa.RecordBatch]:
    """Slices of limited size, so that copies of converted values need little memory."""
    most_bytes = LIMITS.batch_bytes if most_bytes is None else most_bytes
    for batch in batches:
        rows = LIMITS.batch_rows
        if batch.get_total_buffer_size() > most_bytes:  # those of a slice are counted exactly, which takes long
            heavy = -(-sum(map(value_bytes, batch.columns)) // most_bytes) or 1
            rows = max(1, min(rows, -(-batch.num_rows // heavy)))
        for begin in range(0, batch.num_rows, rows):
            yield batch.slice(begin, rows) if rows < batch.num_rows else batch
