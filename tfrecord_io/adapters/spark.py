"""Spark: the data source ``tfrecord``, which reads a partition for each piece of the files and writes a shard for each.

The data source is a subclass of Spark's class, which is made when it is registered. Spark runs it in Python processes
of its own: to plan, to read, to write, and to commit.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.adapters.requirements import needs
from tfrecord_io.errors import SchemaError
from tfrecord_io.options import ReadOptions, WriteOptions
from tfrecord_io.read.query import PIECE_BYTES, Query, open_query
from tfrecord_io.schema.types import is_list_like
from tfrecord_io.write.distributed import DistributedWriter, WrittenPart

if TYPE_CHECKING:
    import pyspark.sql as sql

FORMAT = "tfrecord"
_WIDER = {  # Spark has no unsigned integers and no float16
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
}


def register_spark(session: sql.SparkSession) -> None:
    """Make ``tfrecord`` a format of a Spark session: ``spark.read.format("tfrecord")`` and ``df.write``.

    Options are the keywords of `tfrecord_io.dataset` and `write_tfrecord`, as text or JSON, and ``npartitions`` or
    ``max_bytes`` as in `read_dask`. ``.schema(…)`` selects columns, as Spark does not tell a Python data source which
    ones a query needs. Spark applies the filters of a query, ``frame.filter(…)``, after reading; those of the option
    ``filters``, such as ``[["label", "==", 3], ["score", ">", 0.5]]``, apply while reading, as do those of
    `Dataset.filter` with ``dataset.to_spark(session)``. A write in the mode "append" makes a new dataset, one in the
    mode "overwrite" replaces it; both publish all shards together, and each partition once, also if tasks are retried.

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        Spark 4.1 or later. The Python of its workers has tfrecord_io.

    Raises
    ------
    MissingDependencyError
        pyspark is not installed.

    Examples
    --------
    >>> import os, sys, tfrecord_io as tfr
    >>> from pyspark.sql import SparkSession
    >>> os.environ["PYSPARK_PYTHON"] = sys.executable  # the Python of the workers
    >>> spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    >>> tfr.register_spark(spark)
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3]}, "letters.tfrecord")
    >>> spark.read.format("tfrecord").load(os.path.abspath("letters.tfrecord")).filter("label = 3").count()
    2
    >>> spark.stop()
    """
    session.dataSource.register(_source_class())


def to_spark(query: Query, session: sql.SparkSession) -> sql.DataFrame:
    """A DataFrame of a Spark session, whose tasks read the pieces of the dataset; see `tfrecord_io.register_spark`.

    Its selected columns and its filters apply while reading.
    """
    names = {"bound": query.absolute(), "label": f"{FORMAT}_{uuid.uuid4().hex}"}
    source: Any = type("TFRecordDatasetSource", (_source_class(),), names)
    session.dataSource.register(source)
    return session.read.format(source.name()).load()


@cache
def _source_class() -> type[Any]:
    with needs("spark"):
        from pyspark import TaskContext
        from pyspark.sql.datasource import (
            DataSource,
            DataSourceArrowWriter,
            DataSourceReader,
            InputPartition,
            WriterCommitMessage,
        )

    class WrittenMessage(WriterCommitMessage):  # type: ignore[misc]
        """What a task wrote."""

        def __init__(self, part: WrittenPart) -> None:
            self.part = part

    class TFRecordReader(DataSourceReader):  # type: ignore[misc]
        """The pieces of a query as partitions, in the types of a Spark schema.

        It takes no filters: Spark 4.3 keeps those of one query for the next ones of the same DataFrame.
        """

        def __init__(self, query: Query, schema: pa.Schema, split: tuple[int | None, int]) -> None:
            self._query, self._schema, self._split = query, schema, split

        def partitions(self) -> list[InputPartition]:
            return [InputPartition(part) for part in self._query.tasks(*self._split)]

        def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
            return _batches(partition.value, self._schema)

    class TFRecordWriter(DataSourceArrowWriter):  # type: ignore[misc]
        """Stages a shard in each task, and publishes those of the tasks that Spark has committed."""

        def __init__(self, writer: DistributedWriter, schema: pa.Schema) -> None:
            self._writer, self._schema = writer, schema

        def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
            context = TaskContext.get()
            assert context is not None  # Spark calls this in a task
            batches = _or_empty(iterator, self._schema)
            return WrittenMessage(self._writer.write_part(context.partitionId(), batches))

        def commit(self, messages: list[Any]) -> None:
            self._writer.commit(message.part for message in messages if message is not None)

        def abort(self, messages: list[Any]) -> None:
            self._writer.abort()

    class TFRecordSource(DataSource):  # type: ignore[misc]
        """The format ``tfrecord``."""

        bound: Query | None = None  # of `to_spark`
        label = FORMAT

        @classmethod
        def name(cls) -> str:
            return cls.label

        def schema(self) -> Any:
            return spark_schema(self._query().schema)

        def reader(self, schema: Any) -> DataSourceReader:
            wanted = _arrow_schema(schema)
            query = self._query()
            if self.bound is None and not _has(query.schema, wanted):
                query = self._query(schema=wanted)
            return TFRecordReader(query.only(wanted.names), wanted, self._split())

        def writer(self, schema: Any, overwrite: bool) -> DataSourceArrowWriter:
            options = {"overwrite": overwrite, **_values(self.options)}
            path = options.pop("path")
            return TFRecordWriter(DistributedWriter.begin(path, WriteOptions.of(options)), _arrow_schema(schema))

        def _query(self, **changes: Any) -> Query:
            if self.bound is not None:
                return self.bound
            keywords = {**_values(self.options), **changes}
            path = keywords.pop("path")
            for name in ("npartitions", "max_bytes"):
                keywords.pop(name, None)
            return open_query(path, ReadOptions.of(keywords))

        def _split(self) -> tuple[int | None, int]:
            options = _values(self.options)
            return options.get("npartitions"), options.get("max_bytes", PIECE_BYTES)

    return TFRecordSource


def _values(options: Mapping[str, str]) -> dict[str, Any]:
    """The keywords of options, whose values are JSON or else text; several paths are a list in JSON.

    >>> _values({"path": "a.tfrecord", "threads": "2", "compression": "null", "columns": '["x", "y"]'})
    {'path': 'a.tfrecord', 'threads': 2, 'compression': None, 'columns': ['x', 'y']}
    """
    values: dict[str, Any] = {}
    for name, text in options.items():
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        values["path" if name == "paths" else name] = text if name == "path" else value
    return values


# ---- types


def spark_schema(schema: pa.Schema) -> Any:
    """The Spark schema of a dataset: tensors are nested arrays, categories their values, unsigned integers wider."""
    with needs("spark"):
        from pyspark.sql.pandas.types import from_arrow_schema
    plain = pa.schema([pa.field(field.name, _plain(field.type), field.nullable) for field in schema])
    return from_arrow_schema(plain, prefer_timestamp_ntz=True)


def _arrow_schema(schema: Any) -> pa.Schema:
    """The Arrow schema of the batches that Spark expects."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone="UTC")


def _has(schema: pa.Schema, wanted: pa.Schema) -> bool:
    """Whether the columns of a dataset have the names and types that Spark asks for."""
    own = _arrow_schema(spark_schema(schema))
    return all(field.name in own.names and own.field(field.name).type == field.type for field in wanted)


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
    if is_list_like(type):
        return pa.list_(_plain(type.value_type))
    if t.is_struct(type):
        return pa.struct([pa.field(field.name, _plain(field.type), field.nullable) for field in type])
    if t.is_timestamp(type):
        return pa.timestamp("us", type.tz)
    return _WIDER.get(type, type)


def _batches(query: Query, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The batches of a partition, in the types of Spark."""
    with query.open() as batches:
        for batch in batches:
            columns = [_converted(batch[field.name], field) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _converted(column: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return _nested(column).cast(field.type)
    except pa.ArrowInvalid as error:
        advice = "select other columns, or declare a type that holds them by schema_overrides="
        raise SchemaError(f"Spark cannot hold its values ({error})", feature=field.name, advice=advice) from error


def _nested(column: pa.Array) -> pa.Array:
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


def _or_empty(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[Any]:
    """The batches; if there are none, an empty one, so that the columns are known."""
    first = next(batches, None)
    if first is None:
        yield schema.empty_table()
        return
    yield first
    yield from batches
