"""Spark: the data source ``tfrecord``, with a partition for each piece of the files, and a shard for each to write."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from tfrecord_io.kit import LateTypes, Scan, check_keywords, needs
from tfrecord_io.typing import OpenedDataset

if TYPE_CHECKING:
    import pyspark.sql as sql
else:
    sql = LateTypes("pyspark.sql")


@check_keywords
def register_spark(session: sql.SparkSession) -> None:
    """Make ``tfrecord`` a format of a Spark session: ``spark.read.format("tfrecord")`` and ``df.write``.

    Options are the keywords of `tfrecord_io.dataset` and `write_tfrecord`, as text or JSON, and ``npartitions`` or
    ``max_bytes`` as in ``Dataset.to_dask``. ``.schema(…)`` selects columns, as Spark does not tell a Python data source
    which ones a query needs. Its names are found in any case, as Spark does by default: ``ID`` is the feature ``id``
    unless there is an ``ID``, too. A SchemaWarning names those that no feature has.

    Spark applies the filters of a query, ``frame.filter(…)``, after reading; those of the option ``filters``, such as
    ``[["label", "==", 3], ["score", ">", 0.5]]``, apply while reading, as do those of `Dataset.filter` with
    ``dataset.to_spark(session)``. ``recordType`` and ``codec``, as spark-tfrecord has them, are ``record_type`` and
    ``compression``.

    ``frame.write.format("tfrecord").mode("append").save("out")`` adds shards to the dataset in the directory ``out``,
    which is created; the mode "overwrite" replaces it. Spark refuses its other modes for Python data sources: the
    option ``mode`` states them, "error", "ignore" and "overwrite_partitions". A partition is a shard, or one in each
    folder; with ``maxRecordsPerFile``, several of at most so many records. All shards are published together, and
    each partition once, also if tasks are retried. Any thread may write: ``format("tfrecord")`` of a DataFrameWriter
    makes its session the active one of the thread, where Spark looks for the format.

    ``spark.readStream.format("tfrecord").load("out")`` is a stream of the rows that appends add to a dataset with a
    manifest: all rows at first, or those after the version that the option ``since`` states; see `tfrecord_io.follow`.

    Tensors are nested arrays whose field keeps the type in its metadata, by which they are written as tensors again.
    Where Spark drops the metadata, as for computed columns, the option ``schema`` declares the type.

    >>> import os, sys, tfrecord_io as tfr
    >>> from pyspark.sql import SparkSession
    >>> os.environ["PYSPARK_PYTHON"] = sys.executable  # the Python of the workers
    >>> spark = (
    ...     SparkSession.builder.master("local[1]")
    ...     .config("spark.ui.enabled", "false")
    ...     .getOrCreate()
    ... )
    >>> tfr.register_spark(spark)
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3]}, "letters.tfrecord")
    >>> spark.read.format("tfrecord").load(os.path.abspath("letters.tfrecord")).filter(
    ...     "label = 3"
    ... ).count()
    2
    >>> spark.stop()

    Parameters
    ----------
    session : pyspark.sql.SparkSession
        Spark 4.1 or later. The Python of its workers has tfrecord_io.

    Raises
    ------
    MissingDependencyError
        pyspark is not installed.
    """
    with needs("spark"):
        from tfrecord_io.plugins.engines.spark_source import TFRecordSource, set_sessions_of_writers
    session.dataSource.register(TFRecordSource)
    set_sessions_of_writers()


def to_spark(dataset: OpenedDataset, session: sql.SparkSession) -> sql.DataFrame:
    """A DataFrame of a Spark session, whose tasks read the pieces of the dataset; see `tfrecord_io.register_spark`.

    Its selected columns and its filters apply while reading.
    """
    with needs("spark"):
        from tfrecord_io.plugins.engines.spark_source import TFRecordSource
    scan = Scan.of(dataset)
    names = {"bound": scan.absolute(), "label": f"{TFRecordSource.label}_{uuid.uuid4().hex}"}
    source: Any = type("TFRecordDatasetSource", (TFRecordSource,), names)
    session.dataSource.register(source)
    return session.read.format(source.name()).load()
