"""Read Parquet, Arrow IPC and ORC files as streams of record batches, and write Parquet and ORC files."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, partial
from itertools import chain
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import (
    SourceOptions,
    TableFiles,
    TableSource,
    arrow_errors,
    check_schema,
    meter_batches,
)
from tfrecord_io.columns import Column
from tfrecord_io.errors import DecodeError
from tfrecord_io.kit import FORMATS, Format, ProgressMeter, empty_batch
from tfrecord_io.store import Source

_ARROW = FORMATS.arrow

_BATCH_ROWS, _BATCH_BYTES = 16_384, 16 << 20  # whichever is less
_AHEAD_BYTES = 64 << 20  # of row groups that are read in advance
_BUFFER_BYTES = 1 << 20  # of a column that is read by itself
_REWRITE = "rewrite it: pyarrow.feather.write_feather(pyarrow.feather.read_table(path), target)"

# Schema of an open file, number of rows if known, and a function that reads batches of some or all columns.
Opened = tuple[pa.Schema, int | None, Callable[[list[str] | None], Iterator[pa.RecordBatch]]]


def _source(format: Format, open: Callable[[Any], Opened], paths: list[str], options: SourceOptions) -> TableSource:
    """Read files that have one schema, in the order of their paths; folders and globs in natural order."""
    files = TableFiles.resolve(paths, (format,), options)
    first = files.sources[0]

    @contextmanager
    def open_rows(source: Source) -> Iterator[Opened]:
        with closing(source.open_file()) as file:
            if file.peek(4).startswith(b"FEA1"):
                raise DecodeError("Feather version 1", path=source.path, expected=format.title, hint=_REWRITE)
            with arrow_errors(source.path, format.title):
                opened_file = open(file)
            yield opened_file

    with open_rows(first) as (schema, _, _):
        names = files.select_names(schema.names)

    @cache
    def categories() -> dict[str, pa.Array]:
        """Collect the categories of each dictionary column from all files, as each row group or batch may add some."""
        by_name: dict[str, _Categories] = {}
        categorical = (
            [] if any(not source.can_be_read_again for source in files.sources) else _categorical(schema, names)
        )
        for source in files.sources if categorical else ():
            with open_rows(source) as (file_schema, _, parts):
                check_schema(file_schema, schema, source.path, first.path)
                for batch in _batches(parts, categorical, source.path, format.title):
                    for name in categorical:
                        by_name.setdefault(name, _Categories()).add(batch.column(name).dictionary)
        united = {name: dictionary.unite() for name, dictionary in by_name.items()}
        return {
            name: dictionary
            for name, dictionary in united.items()
            if len(dictionary) <= _most_categories(schema.field(name).type)
        }

    def batches(source: Source, meter: ProgressMeter) -> Generator[pa.RecordBatch]:
        with open_rows(source) as (file_schema, rows, parts):
            check_schema(file_schema, schema, source.path, first.path)
            parts_with_progress = meter_batches(
                _batches(parts, names, source.path, format.title), rows, source.size, meter
            )
            yield from _apply_categories(parts_with_progress, categories())

    return TableSource(files, schema, batches)


def _batches(parts: Any, names: list[str] | None, path: str, title: str) -> Iterator[pa.RecordBatch]:
    with arrow_errors(path, title):
        batches = parts(names)
    while True:
        with arrow_errors(path, title):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def _categorical(schema: pa.Schema, names: list[str] | None) -> list[str]:
    """The columns of categories in no order, which are those of the writer's choice."""
    fields = (field for field in schema if t.is_dictionary(field.type) and not field.type.ordered)
    counts, selected = Counter(schema.names), {*(schema.names if names is None else names)}
    wanted = (field.name for field in fields if Column(field.type).can_unify)
    return [name for name in wanted if counts[name] == 1 and name in selected]


def _most_categories(type_: pa.DictionaryType) -> int:
    return int(2 ** (type_.index_type.bit_width - t.is_signed_integer(type_.index_type)))


class _Categories:
    """The categories of a column, in order of first appearance."""

    def __init__(self) -> None:
        self._parts: list[pa.Array] = []
        self._held = 0  # categories of all parts

    def add(self, categories: pa.Array) -> None:
        if self._parts and _begins_with(categories, self._parts[-1]):  # Arrow's reader of Parquet adds to those before
            self._held -= len(self._parts.pop())
        self._held += len(categories)
        self._parts.append(categories)
        if self._held > 2 * len(self._parts[0]):  # to unite in linear time altogether
            self._parts = [self.unite()]
            self._held = len(self._parts[0])

    def unite(self) -> pa.Array:
        none = pa.array([], pa.int64())  # indices wide enough for all categories
        parts = pa.chunked_array([pa.DictionaryArray.from_arrays(none, part) for part in self._parts])
        return Column.one_dictionary(parts).chunk(0).dictionary


def _apply_categories(batches: Iterator[pa.RecordBatch], by_name: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    """The batches with these categories of their columns."""
    for run in _runs_of(batches, max(map(len, by_name.values()), default=0)):
        columns = {name: _beginning_with(by_name[name], [batch.column(name) for batch in run]) for name in by_name}
        for at, batch in enumerate(run):
            named = zip(batch.schema.names, batch.columns, strict=True)
            arrays = [columns[name][at] if name in columns else column for name, column in named]
            yield pa.RecordBatch.from_arrays(arrays, schema=batch.schema) if columns else batch


def _runs_of(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[list[pa.RecordBatch]]:
    """Successive batches of about so many rows together, or of `_AHEAD_BYTES`."""
    run, count, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        run.append(batch)
        count, size = count + len(batch), size + Column.bytes_of(batch)
        if count >= rows or size >= _AHEAD_BYTES:
            yield run
            run, count, size = [], 0, 0
    if run:
        yield run


def _beginning_with(categories: pa.Array, columns: list[pa.DictionaryArray]) -> list[pa.DictionaryArray]:
    """The chunks of a column with these categories."""
    make = pa.DictionaryArray.from_arrays
    other_columns = [column for column in columns if not _begins_with(categories, column.dictionary)]
    first = make(pa.array([], columns[0].type.index_type), categories)
    combined = iter(Column.one_dictionary(pa.chunked_array([first, *other_columns])).chunks[1:])
    combined_ids = set(map(id, other_columns))
    return [next(combined) if id(column) in combined_ids else make(column.indices, categories) for column in columns]


def _begins_with(categories: pa.Array, first: pa.Array) -> bool:
    return bool(categories[: len(first)].equals(first))


def _parquet(file: Any) -> Opened:
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(file)
    sizes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
    # With pre-buffering, pyarrow keeps all bytes until the end of a call; without, it reads column by column.
    ahead = max(sizes, default=0) <= _AHEAD_BYTES
    options = {"pre_buffer": True} if ahead else {"pre_buffer": False, "buffer_size": _BUFFER_BYTES}
    opened = pq.ParquetFile(file, metadata=metadata, **options)
    runs = list(_runs(sizes)) if ahead else [range(len(sizes))]
    batch_rows = min(_BATCH_ROWS, 1 + _BATCH_BYTES * metadata.num_rows // max(1, sum(sizes)))

    def batches(names: list[str] | None) -> Iterator[pa.RecordBatch]:
        return chain.from_iterable(opened.iter_batches(batch_rows, list(run), names) for run in runs)

    return opened.schema_arrow, metadata.num_rows, batches


def _runs(sizes: Sequence[int]) -> Iterator[range]:
    """Successive row groups of about `_AHEAD_BYTES` each, given the bytes of all.

    >>> list(_runs([9, 1, 1 << 26]))
    [range(0, 2), range(2, 3)]
    """
    begin = total = 0
    for i, size in enumerate(sizes):
        if total and total + size > _AHEAD_BYTES:
            yield range(begin, i)
            begin, total = i, 0
        total += size
    yield range(begin, len(sizes))


def parquet_writer(sink: Any, schema: pa.Schema) -> Any:
    """Open a writer of Parquet; ArrowTypeError if rows of a column have no values, which pyarrow does not read back."""
    import pyarrow.parquet as pq

    inner = (inner_type for type_ in schema.types for inner_type in Column(type_).types_within(storage=True))
    if any(t.is_fixed_size_list(inner_type) and not inner_type.list_size for inner_type in inner):
        raise pa.ArrowTypeError("Parquet holds no lists of the fixed size 0")
    return pq.ParquetWriter(sink, schema)


def _arrow(file: Any) -> Opened:
    (magic,) = _ARROW.magic
    is_file = file.read(len(magic)) == magic  # a stream begins with the length of its schema
    file.seek(0)
    if not is_file:
        stream = pa.ipc.open_stream(file)
        return stream.schema, None, lambda _: map(_valid, stream)
    opened = pa.ipc.open_file(file)
    rows = opened.count_rows() if hasattr(opened, "count_rows") else None  # since Arrow 20
    return opened.schema, rows, lambda _: map(_valid, map(opened.get_batch, range(opened.num_record_batches)))


def _valid(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, whose offsets are as the file states them: ArrowInvalid if one is not within the data."""
    batch.validate(full=True)
    return batch


def _orc(file: Any) -> Opened:
    from pyarrow import orc

    opened = orc.ORCFile(file)

    def stripes(names: list[str] | None) -> Iterator[pa.RecordBatch]:
        by_name = names and not any("." in name for name in names)  # "a.b" is a field of the column "a" to pyarrow
        return (opened.read_stripe(i, names if by_name else None) for i in range(opened.nstripes))

    return opened.schema, opened.nrows, stripes


# Of Parquet and ORC only the selected columns are read, of ORC a stripe is a batch; Arrow's may be IPC streams.
parquet_source = partial(_source, FORMATS.parquet, _parquet)
arrow_source = partial(_source, _ARROW, _arrow)
orc_source = partial(_source, FORMATS.orc, _orc)


class _PatientSink(io.RawIOBase):
    """A stream whose errors wait: where one is raised while ORC's library closes a file, that ends the process."""

    def __init__(self, sink: Any) -> None:
        self._sink, self._error = sink, list[BaseException]()

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        if not self._error:
            try:
                self._sink.write(data)
            except BaseException as error:
                self._error.append(error)
        return memoryview(data).nbytes

    def check(self) -> None:
        """Raise the first error."""
        if self._error:
            raise self._error[0]


class OrcWriter(AbstractContextManager["OrcWriter"]):
    """Writes batches as an ORC file that zstd compresses, as ``pyarrow.parquet.ParquetWriter`` writes Parquet."""

    def __init__(self, sink: Any, schema: pa.Schema) -> None:
        from pyarrow import orc

        self._schema = pa.schema([field.with_type(_orc_type(field.type)) for field in schema])
        self._sink = _PatientSink(sink)
        self._writer = orc.ORCWriter(self._sink, compression="zstd")
        self._writer.write(pa.Table.from_batches([empty_batch(self._schema)]))  # a file without rows has columns, too

    def __exit__(self, kind: object, *_: object) -> None:
        self._writer.close()
        if kind is None:
            self._sink.check()

    def write_batch(self, batch: pa.RecordBatch) -> None:
        self._writer.write(pa.Table.from_batches([batch]).cast(self._schema))
        self._sink.check()


_OF_ORC = (
    *(t.is_boolean, t.is_signed_integer, t.is_float32, t.is_float64, t.is_date32),
    *(t.is_binary, t.is_large_binary, t.is_fixed_size_binary, t.is_string, t.is_large_string),
)


def _orc_type(type_: pa.DataType) -> pa.DataType:
    """Map a type of Arrow to ORC's; ArrowTypeError if there is none, as some types crash the process.

    Times are in nanoseconds: pyarrow writes others, but those beyond the range of nanoseconds as other times.
    """
    if t.is_timestamp(type_):
        return pa.timestamp("ns", type_.tz)
    if t.is_dictionary(type_):
        return _orc_type(type_.value_type)
    if t.is_struct(type_):
        return pa.struct([field.with_type(_orc_type(field.type)) for field in type_])
    if Column(type_).is_list:
        return pa.list_(type_.value_field.with_type(_orc_type(type_.value_type)))
    if t.is_decimal128(type_) and 0 <= type_.scale <= type_.precision:
        return type_
    if any(is_one(type_) for is_one in _OF_ORC):
        return type_
    raise pa.ArrowTypeError(f"ORC has no {type_}")
