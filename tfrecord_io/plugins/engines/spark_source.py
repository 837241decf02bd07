"""Spark's data source ``tfrecord``: a module that imports pyspark, and is imported when the source is registered.

Spark runs the source in Python processes of its own: to plan, to read, to write, and to commit.

Tests: tests/plugins/engines/test_spark.py.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, wraps
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.readwriter import DataFrameWriter
from pyspark.sql.types import UserDefinedType

from tfrecord_io.errors import EncodeError, SchemaError, SchemaWarning
from tfrecord_io.kit import Column, DistributedWriter, Scan, WriteOptions, WrittenPart, empty_batch, printable, warn

Array = npt.NDArray[Any]

FORMAT = "tfrecord"
_TENSOR_KEY, _OPTIONS_KEY = "tfrecord_io.tensor", "tfrecord_io.options"  # of the metadata of Spark's fields
_OPTION = "option."
_LOCAL = re.compile("file:/(?!/)")  # as Spark writes a local path

# As spark-tfrecord calls and spells them.
_ALIASES = {"paths": "path", "recordtype": "record_type", "codec": "compression"}
_MERGE, _MOST_ROWS = "mergeschema", "maxrecordsperfile"  # to write: `evolve`; how many rows a shard has at most
_MOST_PARTS = 1 << 20  # of a task
# Options of Spark's own file sources, in lower case, and what to do instead.
_OPTIONS_OF_FILES = {
    "basepath": "load the whole dataset, and select its folders by the option filters",
    "ignorecorruptfiles": "the option on_error says what becomes of damaged records",
    _MOST_ROWS: "it is one of writing; to read, npartitions or max_bytes decides the size of partitions",
    _MERGE: "columns are those of the dataset's manifest, or else of its first records; state others by .schema(…)",
    "modifiedafter": "spark.readStream, or tfr.follow, has the rows that were added since a version",
    "pathglobfilter": "load a glob, such as 'data/*.tfrecord'",
    "recursivefilelookup": "load a glob, such as 'data/**/*.tfrecord'",
}
_RECORD_TYPES = {"example": "example", "sequenceexample": "sequence_example", "bytearray": "bytes"}
_MODES = {"errorifexists": "error", "default": "error", "ignore": "error"}
_SINCE = "since"  # the option of streams
_OF_READS = ("npartitions", "max_bytes", _SINCE)  # options that are no keywords of a dataset
_VERSION = "version"  # of the offsets of streams
_PARTITION_MODE = "partitionoverwritemode"  # Spark's option, whose names come in lower case
_PARTITION_MODES = {"static": "overwrite", "dynamic": "overwrite_partitions"}
_CODECS = {"": None, "default": "zlib", "deflate": "zlib", "zstandard": "zstd"}

# What to do without a path.
_NOT_READ = (
    "pass it, as in load('train'); of a table that states its columns Spark passes none: state none, as in "
    "CREATE TABLE t USING tfrecord OPTIONS (path '…'), or the path, as in SELECT … FROM t WITH (path = '…')"
)
_NOT_WRITTEN = (
    "pass it, as in save('train'); Spark passes none to INSERT INTO a table and to CREATE TABLE … AS SELECT: use "
    "INSERT INTO t WITH (path = '…') SELECT …, or CREATE TEMPORARY VIEW v USING tfrecord OPTIONS (path '…') and "
    "INSERT INTO v SELECT …"
)

_VECTORS = ("dense", "sparse")  # the forms that the option `vectors` has
_MOST_DENSE_BYTES = 1 << 30  # of the numbers of a batch
_WIDER = {  # Spark has no unsigned integers and no float16
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


@cache
def set_sessions_of_writers() -> None:
    """Let writers set the active session of their thread, as ``createDataFrame`` and readers do.

    Spark (4.3) looks there for Python data sources. Without it, a thread that made no frame does not find the format.
    """
    original = DataFrameWriter.format

    @wraps(original)
    def format(self: Any, source: str) -> Any:
        if source == FORMAT:
            session = self._spark
            session._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
        return original(self, source)

    DataFrameWriter.format = format


class WrittenMessage(WriterCommitMessage):  # type: ignore[misc]
    """The parts that a task wrote."""

    def __init__(self, parts: list[WrittenPart]) -> None:
        self.parts = parts


class _Form(NamedTuple):
    """What the rows of a query become."""

    selected_schema: pa.Schema  # the columns, with the names that the dataset has for them
    schema: pa.Schema  # the same in the names and types of Spark
    split: tuple[int | None, int]  # the number of partitions, or the most bytes of each

    def partitions(self, scan: Scan) -> list[InputPartition]:
        return [InputPartition(part) for part in scan.only(self.selected_schema.names).tasks(*self.split)]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return _batches(partition.value, self.selected_schema, self.schema)


class _Query(NamedTuple):
    """A query of the rows of a path."""

    scan: Scan
    options: Mapping[str, str]
    changes: dict[str, Any]  # keywords of the dataset that follow from the schema of the query
    form: _Form


class TFRecordReader(DataSourceReader):  # type: ignore[misc]
    """Reads the rows that a query finds.

    It takes no filters: Spark 4.3 keeps those of one query for the next ones of the same DataFrame.
    """

    def __init__(self, scan: Scan, form: _Form) -> None:
        self._scan, self._form = scan, form

    def partitions(self) -> list[InputPartition]:
        return self._form.partitions(self._scan)

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return self._form.read(partition)


class TFRecordStreamReader(DataSourceStreamReader):  # type: ignore[misc]
    """Reads the rows that appends add to a dataset: an offset of the stream is a version of the dataset.

    The rows between two offsets are the same however often Spark asks for them, also after `compact`.
    """

    def __init__(self, dataset: Any, since: str | None, form: _Form) -> None:
        self._dataset, self._since, self._form = dataset, since, form  # of `tfrecord_io.dataset`

    def initialOffset(self) -> dict[str, str]:
        return {_VERSION: self._since or ""}  # "": before all rows

    def latestOffset(self) -> dict[str, str]:
        return {_VERSION: self._dataset.refresh().version or ""}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> list[InputPartition]:
        import tfrecord_io as tfr

        added = tfr.follow(self._dataset, start[_VERSION] or None, until=end[_VERSION])
        return [partition for rows in added for partition in self._form.partitions(Scan.of(rows))]

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        return self._form.read(partition)


class TFRecordWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Stages shards in each task, and publishes those of the tasks that Spark has committed.

    `most_rows` is how many rows a shard has at most; 0: a task writes one shard, or one in each folder.
    """

    def __init__(
        self,
        writer: DistributedWriter,
        schema: pa.Schema,
        *,
        ignores: bool,
        vectors: Mapping[int, str | None],
        most_rows: int,
    ) -> None:
        self._writer, self._ignores, self._vectors, self._most_rows = writer, ignores, vectors, most_rows
        self._serialized = schema.serialize().to_pybytes()  # tensor types cannot be pickled

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None  # Spark calls this in a task
        schema = pa.ipc.read_schema(pa.py_buffer(self._serialized))
        batches = _add_vectors(iterator, self._vectors) if self._vectors else iterator
        first = context.partitionId() * _MOST_PARTS  # the number of the first part, so that parts are in order
        runs = split_runs(batches, self._most_rows) if self._most_rows else [batches]
        parts = [self._writer.write_part(at, _restore_tensors(run, schema)) for at, run in enumerate(runs, first)]
        return WrittenMessage(parts or [self._writer.write_part(first, [empty_batch(schema)])])

    def commit(self, messages: list[Any]) -> None:
        with suppress(*([FileExistsError] if self._ignores else [])):  # of a dataset that is there meanwhile
            self._writer.commit(part for message in messages if message is not None for part in message.parts)

    def abort(self, messages: list[Any]) -> None:
        self._writer.abort()


class IgnoringWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Leaves a dataset as it is: it exists, or has the rows of this transaction."""

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return WriterCommitMessage()


class TFRecordSource(DataSource):  # type: ignore[misc]
    """The format ``tfrecord``."""

    bound: Scan | None = None  # of `to_spark`
    label = FORMAT

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> Any:
        schema = spark_schema(self._scan(self.options).schema)
        if _is_catalog_table(self.options) and len(schema.fields):
            # Spark (4.3) passes the schema of a catalog's table to Python data sources, but not its properties.
            first = schema.fields[0]
            first.metadata = {**first.metadata, _OPTIONS_KEY: json.dumps(dict(self.options))}
        return schema

    def reader(self, schema: Any) -> DataSourceReader:
        if _SINCE in self.options:
            raise ValueError(f"the option {_SINCE} is one of spark.readStream; tfr.follow has the rows since a version")
        query = self._plan(schema)
        return TFRecordReader(query.scan, query.form)

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        import tfrecord_io as tfr

        query = self._plan(schema)
        path, keywords = _path_and_keywords(query.options, _NOT_READ)
        since = keywords.get(_SINCE)
        dataset = tfr.dataset(path, **{**_dataset_keywords(keywords), **query.changes})
        tfr.follow(dataset, since)  # raises the error for a dataset that cannot be followed
        return TFRecordStreamReader(dataset, since, query.form)

    def _plan(self, schema: Any) -> _Query:
        """Plan a query whose columns are those of a schema of Spark."""
        options = self.options
        if not options:  # perhaps a catalog's table, with options in the schema
            texts = [field.metadata[_OPTIONS_KEY] for field in schema.fields if _OPTIONS_KEY in field.metadata]
            options = json.loads(texts[0]) if texts else {}
        wanted, changes = _arrow_schema(schema), dict[str, Any]()
        scan = self._scan(options)
        dataset_schema = _arrow_schema(spark_schema(scan.schema))
        selected_schema = pa.schema(_named_as(list(wanted), list(dataset_schema)))
        types = dict(zip(dataset_schema.names, dataset_schema.types, strict=True))
        has_types = all(types.get(field.name) == field.type for field in selected_schema)
        if self.bound is None and not has_types:
            read = _read_as(list(selected_schema), list(dataset_schema), list(scan.schema))
            stored = [field for field in read if field.name != scan.options.include_file_paths]
            changes["schema"] = pa.schema(stored)
            scan = self._scan(options, **changes)
        if lacking := [name for name in selected_schema.names if name not in scan.schema.names]:
            reason = "the schema states it, and the option 'columns' leaves it out"
            raise SchemaError(reason, feature=lacking[0], hint="state the columns by one of the two")
        values = _values(options)
        split = values.get("npartitions"), values.get("max_bytes", Scan.PIECE_BYTES)
        return _Query(scan, options, changes, _Form(selected_schema, wanted, split))

    def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
        import tfrecord_io as tfr

        options = {name: value for name, value in self.options.items() if name.lower() != _MOST_ROWS}
        options = {"evolve" if name.lower() == _MERGE else name: value for name, value in options.items()}
        path, keywords = _path_and_keywords(options, _NOT_WRITTEN)
        path, ignores = DistributedWriter.as_directory(path), str(keywords.get("mode")).lower() == "ignore"
        form = keywords.pop("vectors", None)
        if form not in (None, *_VECTORS):
            raise ValueError(f"the option vectors={form!r}: expected {' or '.join(map(repr, _VECTORS))}")
        write_options = WriteOptions.from_keywords(_add_mode(keywords, overwrite))
        if not schema.fields:
            raise SchemaError("Spark passes no rows of a frame without columns", hint="select a column")
        arrow_schema, tensors = _arrow_schema(schema), {}
        vectors = {at: form for at, field in enumerate(schema.fields) if _is_vector(field.dataType)}
        for field in schema.fields if write_options.schema is None else ():
            if text := field.metadata.get(_TENSOR_KEY):  # it was read from tensors
                tensors[field.name] = tfr.Schema.from_json(text).to_arrow().field(0).with_name(field.name)
        columns = [vector_fields(field, form) if at in vectors else [field] for at, field in enumerate(arrow_schema)]
        written = pa.schema([tensors.get(field.name, field) for fields in columns for field in fields])
        with suppress(*([FileExistsError] if ignores else [])):
            writer = DistributedWriter.begin(path, write_options, written)
            if writer.is_repeated:
                writer.commit(())
                return IgnoringWriter()
            most_rows = _most_rows(self.options)
            return TFRecordWriter(writer, written, ignores=ignores, vectors=vectors, most_rows=most_rows)
        return IgnoringWriter()

    def _scan(self, options: Mapping[str, str], **changes: Any) -> Scan:
        if self.bound is not None:
            return self.bound
        path, keywords = _path_and_keywords(options, _NOT_READ)
        return Scan.of(path, **{**_dataset_keywords(keywords), **changes})


# ---- options


def _values(options: Mapping[str, str]) -> dict[str, Any]:
    """The keywords of options, whose values are JSON or else text; several paths are a list in JSON.

    >>> _values({"path": "a.tfrecord", "threads": "2", "codec": "", "columns": '["x", "y"]'})
    {'path': 'a.tfrecord', 'threads': 2, 'compression': None, 'columns': ['x', 'y']}
    """
    if _is_catalog_table(options):  # with properties of the table, which are not options, and options twice
        names = ["path", *(name.removeprefix(_OPTION) for name in options if name.startswith(_OPTION))]
        options = {name: options[name] for name in names if name in options}
    values: dict[str, Any] = {}
    for name, text in options.items():
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        keyword = _ALIASES.get(name.lower(), name)
        values[keyword] = _understood(keyword, text if name == "path" else value)
    return values


def _understood(keyword: str, value: Any) -> Any:
    """Translate the value of an option: a path, which Spark rewrites, a schema as JSON, or spark-tfrecord's word.

    >>> _understood("compression", "org.apache.hadoop.io.compress.Lz4Codec")
    'org.apache.hadoop.io.compress.Lz4Codec'
    >>> _understood("partition_by", "day,country")
    ['day', 'country']
    >>> _understood("record_type", "ByteArray"), _understood("compression", "org.apache.hadoop.io.compress.GzipCodec")
    ('bytes', 'gzip')
    """
    if keyword == "path":
        values = value if isinstance(value, list) else [value]
        paths = [path.removeprefix("file:") if _LOCAL.match(path) else path for path in values]
        return paths if isinstance(value, list) else paths[0]
    if keyword == "record_type" and isinstance(value, str):
        return _RECORD_TYPES.get(value.lower(), value)
    if keyword == "compression" and isinstance(value, str):
        codec = value.rpartition(".")[2].lower().removesuffix("codec")
        if codec == "lz4" and "." in value:  # Hadoop's class writes a form of its own, not LZ4 frames
            return value
        return _CODECS.get(codec, codec)
    if keyword == "partition_by" and isinstance(value, str):
        return [name.strip() for name in value.split(",")]
    if keyword == "txn" and isinstance(value, str):
        job, _, number = value.rpartition("=")
        return (job, int(number)) if job and number.isdecimal() else value
    if keyword == "schema" and isinstance(value, dict) and isinstance(value.get("version"), int):
        import tfrecord_io as tfr

        return tfr.Schema.from_json(json.dumps(value))
    return value


def _path_and_keywords(options: Mapping[str, str], advice: str) -> tuple[Any, dict[str, Any]]:
    """Split options into paths and keywords; without a path, raise an error with advice."""
    values = _values(options)
    if "path" not in values:
        raise ValueError(f"no path is given: {advice}")
    if foreign := next((name for name in values if name.lower() in _OPTIONS_OF_FILES), None):
        raise ValueError(f"tfrecord has no option {foreign}: {_OPTIONS_OF_FILES[foreign.lower()]}")
    return values.pop("path"), values


def _most_rows(options: Mapping[str, str]) -> int:
    """Spark's option ``maxRecordsPerFile``; 0 or less means no limit, as in Spark.

    >>> _most_rows({"maxRecordsPerFile": "100"}), _most_rows({"maxrecordsperfile": "-1"}), _most_rows({})
    (100, 0, 0)
    """
    text = next((value for name, value in options.items() if name.lower() == _MOST_ROWS), "0")
    try:
        return max(0, int(text))
    except ValueError:
        raise ValueError(f"the option maxRecordsPerFile={text!r}: expected a number of rows") from None


def split_runs(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[Iterator[pa.RecordBatch]]:
    """Split the rows of batches into runs of so many, each of which is to be read before the next one.

    >>> batches = [pa.record_batch({"x": [1, 2, 3]}), pa.record_batch({"x": [4, 5]})]
    >>> [[batch["x"].to_pylist() for batch in run] for run in split_runs(batches, 2)]
    [[[1, 2]], [[3], [4]], [[5]]]
    """

    def numbered_slices() -> Iterator[tuple[int, pa.RecordBatch]]:
        row = 0
        for batch in batches:
            at = 0
            while at < len(batch):
                part = batch.slice(at, most - row % most)
                yield row // most, part
                at, row = at + len(part), row + len(part)

    for _, run in groupby(numbered_slices(), itemgetter(0)):
        yield (part for _, part in run)


def _add_mode(keywords: Mapping[str, Any], overwrite: bool) -> dict[str, Any]:
    """Add the mode to the keywords of writing: the stated one, or else Spark's "overwrite" or "append".

    >>> _add_mode({}, False), _add_mode({"mode": "ErrorIfExists"}, False)
    ({'mode': 'append'}, {'mode': 'error'})
    >>> _add_mode({"partitionoverwritemode": "dynamic", "partition_by": ["day"]}, True)
    {'partition_by': ['day'], 'mode': 'overwrite_partitions'}
    """
    values = {name: value for name, value in keywords.items() if name != _PARTITION_MODE}
    mode = values.pop("mode", None)
    if mode is not None:
        mode = _MODES.get(str(mode).lower(), mode)
        if overwrite and mode not in ("overwrite", "overwrite_partitions"):
            reason = "and the mode 'overwrite' contradict each other: use mode('append')"
            raise ValueError(f"the option mode={mode!r} {reason}")
    elif not overwrite:
        mode = "append"
    elif _PARTITION_MODE in keywords or not values.get("partition_by"):
        mode = _PARTITION_MODES.get(str(keywords.get(_PARTITION_MODE, "static")).lower())
        if mode is None:
            raise ValueError(f"partitionOverwriteMode={keywords[_PARTITION_MODE]!r}: expected 'dynamic' or 'static'")
    else:
        reason = "Spark keeps its setting spark.sql.sources.partitionOverwriteMode from Python data sources"
        choice = "'dynamic' to replace the folders that the data has or 'static' to replace the dataset"
        advice = f"add the option partitionOverwriteMode, {choice}"
        raise ValueError(f"partition_by= and the mode 'overwrite': {reason}; {advice}")
    return {**values, "mode": mode}


def _dataset_keywords(keywords: dict[str, Any]) -> dict[str, Any]:
    """The keywords of `tfrecord_io.dataset` among the options of a read."""
    return {name: value for name, value in keywords.items() if name not in _OF_READS}


def _is_catalog_table(options: Mapping[str, str]) -> bool:
    """True if Spark passes the properties of a table made by CREATE TABLE."""
    return options.get("provider") == FORMAT and "owner" in options


# ---- types


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema of a dataset: tensors are nested arrays, categories their values, unsigned integers wider."""
    import tfrecord_io as tfr

    plain = pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])
    spark_type = from_arrow_schema(plain, prefer_timestamp_ntz=True)
    for field, column in zip(schema, spark_type.fields, strict=True):
        if Column(field).is_tensor:
            column.metadata = {_TENSOR_KEY: tfr.Schema.from_arrow(pa.schema([field])).to_json()}
    return spark_type


def _arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow schema of the batches that Spark expects."""
    named = "timezone" in inspect.signature(to_arrow_schema).parameters  # Spark 4.1 has none, and means UTC
    arrow_schema: pa.Schema = to_arrow_schema(schema, **({"timezone": "UTC"} if named else {}))
    return arrow_schema


def _named_as(wanted: list[pa.Field], dataset_fields: list[pa.Field], struct: str = "") -> list[pa.Field]:
    """Columns, or fields of a struct, with the names that the dataset has for them, perhaps in another case.

    >>> _named_as([pa.field("ID", pa.int32())], [pa.field("id", pa.int64()), pa.field("x", pa.int64())])
    [pyarrow.Field<id: int32>]
    """
    by_name, exact_names = {field.name: field for field in dataset_fields}, {field.name for field in wanted}
    named = []
    for field in wanted:
        matches = [by_name[field.name]] if field.name in by_name else []
        matches = matches or [
            f for f in dataset_fields if f.name.lower() == field.name.lower() and f.name not in exact_names
        ]
        if len(matches) > 1:
            reason = f"the dataset has {' and '.join(repr(f.name) for f in matches)}, which differ in case only"
            raise SchemaError(reason, feature=field.name, hint="write the name as the dataset has it")
        if matches:
            type_ = _type_named_as(field.type, matches[0].type, f"{struct}{field.name}.")
            field = field.with_name(matches[0].name).with_type(type_)
        else:
            text = (
                f"column '{struct}{field.name}' of the schema: the dataset has no such feature, in any case, or none "
            )
            text += f"in its first records; the column is null where a record has none. Known are {', '.join(by_name)}"
            warn(printable(text, 1024), SchemaWarning)
        named.append(field)
    return named


def _type_named_as(wanted: pa.DataType, dataset_type: pa.DataType, struct: str) -> pa.DataType:
    if t.is_struct(wanted) and t.is_struct(dataset_type):
        return pa.struct(_named_as(list(wanted), list(dataset_type), struct))
    if Column(wanted).is_list and Column(dataset_type).is_list:
        return pa.list_(
            wanted.value_field.with_type(_type_named_as(wanted.value_type, dataset_type.value_type, struct))
        )
    return wanted


def _read_as(wanted: list[pa.Field], dataset_fields: list[pa.Field], scan_fields: list[pa.Field]) -> list[pa.Field]:
    """The fields to read, of columns or of a struct: `scan_fields`, unless Spark wants another type.

    `dataset_fields` are the `scan_fields` in Spark's types. A column that Spark wants as it is keeps its unit of
    time and its encoding.
    """
    pairs = {pair[0].name: pair for pair in zip(dataset_fields, scan_fields, strict=True)}
    return [_field_read_as(field, *pairs[field.name]) if field.name in pairs else field for field in wanted]


def _field_read_as(wanted: pa.Field, dataset_field: pa.Field, scan_field: pa.Field) -> pa.Field:
    types = (wanted.type, dataset_field.type, scan_field.type)
    if wanted.type == dataset_field.type:
        return scan_field
    if all(map(t.is_struct, types)):  # keep the dataset's fields, as any of them shows that the struct is not null
        asked = [part for part in wanted.type if scan_field.type.get_field_index(part.name) >= 0]
        other_fields = [part for part in scan_field.type if wanted.type.get_field_index(part.name) < 0]
        return wanted.with_type(
            pa.struct(_read_as(asked, list(dataset_field.type), list(scan_field.type)) + other_fields)
        )
    if all(Column(type_).is_list for type_ in types):
        return wanted.with_type(pa.list_(_field_read_as(*(type_.value_field for type_ in types))))
    if t.is_temporal(wanted.type) and t.is_temporal(dataset_field.type):
        if wanted.type.id == dataset_field.type.id:  # in UTC or without a time zone
            return scan_field
        reason = f"the dataset has {dataset_field.type}, whose numbers would have another unit as {wanted.type}"
        advice = "state the type of the dataset, and cast the column in Spark"
        raise SchemaError(
            reason, feature=wanted.name, expected=str(dataset_field.type), got=str(wanted.type), hint=advice
        )
    return wanted


def _plain(type: pa.DataType) -> pa.DataType:
    """The type that Spark has for a type."""
    if isinstance(type, pa.FixedShapeTensorType):
        plain = _plain(type.value_type)
        for _ in type.shape:
            plain = pa.list_(plain)
        return plain
    if isinstance(type, pa.BaseExtensionType):
        return _plain(type.storage_type)
    if t.is_dictionary(type):
        return _plain(type.value_type)
    if Column(type).is_list:
        return pa.list_(_plain(type.value_type))
    if t.is_struct(type) and not any(b"variant" in (field.metadata or ()) for field in type):  # a VARIANT stays
        return pa.struct([pa.field(field.name, _plain(field.type), field.nullable) for field in type])
    if t.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    return _WIDER.get(type, type)


# ---- vectors of Spark ML


def _is_vector(type_: Any) -> bool:
    """True for the type of vectors, of pyspark.ml and of pyspark.mllib."""
    return isinstance(type_, UserDefinedType) and type(type_).__name__ == "VectorUDT"


def vector_fields(field: pa.Field, form: str | None) -> list[pa.Field]:
    """Columns for vectors: the numbers of dense vectors, then the parts of sparse vectors.

    `form`, "dense" or "sparse", is the one that all are written in.

    >>> [column.name for column in vector_fields(pa.field("x", pa.struct([])), None)]
    ['x', 'x/indices', 'x/values', 'x/size']
    """
    numbers = pa.list_(pa.float64())
    parts = {"indices": pa.list_(pa.int32()), "values": numbers, "size": pa.int32()}
    dense = [] if form == "sparse" else [pa.field(field.name, numbers)]
    return dense + ([] if form == "dense" else [pa.field(f"{field.name}/{part}", parts[part]) for part in parts])


def _add_vectors(batches: Iterator[pa.RecordBatch], vectors: Mapping[int, str | None]) -> Iterator[pa.RecordBatch]:
    """The batches, with the columns of `vector_fields` instead of the structs that Spark has for vectors."""
    for batch in batches:
        columns: dict[str, pa.Array] = {}
        for at, (field, column) in enumerate(zip(batch.schema, batch.columns, strict=True)):
            if at not in vectors:
                columns[field.name] = column
                continue
            fields = vector_fields(field, vectors[at])
            columns |= zip((part.name for part in fields), vector_columns(column, vectors[at]), strict=True)
        yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def vector_columns(vectors: pa.StructArray, form: str | None) -> list[pa.Array]:
    """The columns of `vector_fields` for structs of type (0: sparse, 1: dense), size, indices and values.

    >>> structs = pa.array([{"type": 1, "size": None, "indices": None, "values": [0.0, 2.0]},
    ...                     {"type": 0, "size": 3, "indices": [2], "values": [5.0]}])
    >>> [column.to_pylist() for column in vector_columns(structs, "dense")]
    [[[0.0, 2.0], [0.0, 0.0, 5.0]]]
    >>> [column.to_pylist() for column in vector_columns(structs, "sparse")]
    [[[1], [2]], [[2.0], [5.0]], [2, 3]]
    """
    kinds, sizes, indices, values = vectors.flatten()
    kind, size = np.asarray(kinds.fill_null(-1)), np.asarray(sizes.fill_null(-1)).astype(np.int64)
    lengths = np.asarray(values.value_lengths().fill_null(0)).astype(np.int64)
    is_dense, is_sparse = kind == 1, kind == 0
    rows, flat = np.repeat(np.arange(len(vectors)), lengths), np.asarray(values.flatten(), np.float64)
    places = np.arange(len(flat)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # of each value in its vector
    places[is_sparse[rows]] = np.asarray(indices.filter(pa.array(is_sparse)).flatten())
    size = np.where(is_dense, lengths, np.maximum(size, 0))
    if form == "dense":
        _refuse_large(int(size.sum()))
        offsets = np.append(0, np.cumsum(size))
        numbers = np.zeros(int(offsets[-1]))
        numbers[offsets[rows] + places] = flat
        return [_number_lists(numbers, size, is_dense | is_sparse)]
    if form == "sparse":
        is_stored = is_sparse[rows] | (flat != 0)
        is_kept = is_dense | is_sparse
    else:
        is_stored, is_kept = is_sparse[rows], is_sparse
    counts = np.bincount(rows[is_stored], minlength=len(vectors))
    sparse = [
        _number_lists(places[is_stored].astype(np.int32), counts, is_kept),
        _number_lists(flat[is_stored], counts, is_kept),
        pa.array(size.astype(np.int32), mask=~is_kept),
    ]
    if form == "sparse":
        return sparse
    dense_rows = is_dense[rows]
    return [_number_lists(flat[dense_rows], np.where(is_dense, lengths, 0), is_dense), *sparse]


def _number_lists(numbers: Array, counts: Array, valid: Array) -> pa.Array:
    """Lists of so many numbers each, null where they are not valid."""
    offsets = pa.array(np.append(0, np.cumsum(counts)).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, pa.array(numbers), mask=pa.array(~valid))


def _refuse_large(count: int) -> None:
    if count * 8 > _MOST_DENSE_BYTES:
        reason = f"the vectors of a batch have {count} numbers when they are dense, more than fit in memory"
        advice = "leave out the option vectors, or lower spark.sql.execution.arrow.maxRecordsPerBatch"
        raise EncodeError(reason, expected=_MOST_DENSE_BYTES // 8, got=count, hint=advice)


def _batches(scan: Scan, fields: pa.Schema, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of a partition, in the types of Spark, with the names that it asks for."""
    with scan.open() as batches:
        for batch in batches:
            columns = (_convert_column(batch[field.name], field) for field in fields)
            pairs = zip(columns, schema.types, strict=True)  # names differ inside structs, too
            named = [column if column.type == type_ else column.view(type_) for column, type_ in pairs]
            yield pa.RecordBatch.from_arrays(named, schema=schema) if named else batch


def _convert_column(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.null_count and not field.nullable:  # Spark would read the filler of a null as a value
        reason, advice = "it has a null, but the schema states that it has none", "state a nullable column"
        raise SchemaError(reason, feature=field.name, expected="not null", got="null", hint=advice)
    try:
        nested = _to_nested_lists(column)
        return nested if nested.type == field.type else nested.cast(field.type)  # pyarrow (26) may refuse its own type
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        advice = "select other columns, or declare a type that holds them with schema_overrides="
        raise SchemaError(f"Spark cannot hold its values ({error})", feature=field.name, hint=advice) from error


def _to_nested_lists(column: pa.Array) -> pa.Array:
    """A tensor column as nested lists, or another one as it is."""
    if not isinstance(column.type, pa.BaseExtensionType):
        return column
    storage = column.storage
    if not isinstance(column.type, pa.FixedShapeTensorType):
        return storage
    shape = column.type.shape
    size, rows = storage.type.list_size, len(storage)
    nested = storage.values.slice(storage.offset * size, rows * size)
    for axis in range(len(shape) - 1, 0, -1):
        nested = _lists(nested, rows * int(np.prod(shape[:axis])), shape[axis])
    return _lists(nested, rows, shape[0], storage.is_null() if storage.null_count else None)


def _lists(values: pa.Array, count: int, length: int, mask: pa.Array | None = None) -> pa.Array:
    """Lists of one length."""
    return pa.ListArray.from_arrays(pa.array(np.arange(count + 1, dtype=np.int32) * length), values, mask=mask)


def _restore_tensors(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of Spark with their nested arrays as the tensors that a schema declares; at least an empty one."""
    is_empty = True
    for batch in batches:
        is_empty = False
        columns = [_as_tensors(column, field) for column, field in zip(batch.columns, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
    if is_empty:  # so that the columns are known
        yield empty_batch(schema)


def _as_tensors(column: pa.Array, field: pa.Field) -> pa.Array:
    """The inverse of `_convert_column` for a column of tensors, or another column as it is."""
    type_ = field.type
    if not Column(type_).is_tensor:
        return column
    try:
        if not isinstance(type_, pa.FixedShapeTensorType):
            return pa.ExtensionArray.from_storage(type_, column.cast(type_.storage_type))
        nested = type_.value_type
        for _ in type_.shape:
            nested = pa.list_(nested)
        plain = pa.field(field.name, pa.fixed_shape_tensor(type_.value_type, type_.shape))
        tensors = Column(plain).cast(column.cast(nested), pa.field(field.name, nested))
        return pa.ExtensionArray.from_storage(type_, tensors.storage)
    except (pa.ArrowInvalid, EncodeError) as error:
        advice = "declare its type by the option schema, or change the column, so that Spark drops its metadata"
        reason = f"its values are not the tensors that were read ({printable(error)})"
        raise EncodeError(reason, feature=field.name, expected=str(type_), hint=advice) from error
