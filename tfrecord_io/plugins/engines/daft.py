"""Daft: a DataFrame with a scan task for each piece of the files, and a shard for each partition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tfrecord_io.errors import EncodeError
from tfrecord_io.kit import Column, DistributedWriter, LateTypes, Scan, WriteOptions, needs
from tfrecord_io.typing import OpenedDataset, OutputPath, WriteReport

if TYPE_CHECKING:
    import daft
else:
    daft = LateTypes("daft")


def to_daft(dataset: OpenedDataset, *, max_bytes: int = Scan.PIECE_BYTES) -> daft.DataFrame:
    """A Daft DataFrame, whose scan tasks read the pieces on any machine.

    >>> import daft, tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord"
    ... )
    >>> letters = tfr.dataset("letters.tfrecord").to_daft()
    >>> letters.where(daft.col("label") == 3).select("name").to_pydict()
    {'name': ['a', 'c']}

    Parameters
    ----------
    max_bytes : int, default 128 MiB
        Scan tasks of about this size, compressed if the files are.

    Returns
    -------
    daft.DataFrame
        Categories are their values. Only the columns that a query needs are decoded, and conditions on integers, text,
        bytes, bools and dates are applied while reading. Reading stops after the rows of a ``limit`` that no condition
        precedes.

    Raises
    ------
    MissingDependencyError
        daft is not installed.
    ValueError
        The dataset has an `offset`, a `limit` or ``on_error="stop"``: such a read cannot be split.
    SchemaError
        A column has a dtype of ml_dtypes, arrays of text, or times in units that Arrow does not have.
    """
    with needs("daft"):
        from tfrecord_io.plugins.engines.daft_source import TFRecordSource
    scan = Scan.of(dataset)
    Column.check_dtypes(scan.schema, "Daft")
    scan.split(1, max_bytes)  # raises if it cannot be split
    return TFRecordSource(scan.absolute(), max_bytes).read()


def write_frame(frame: daft.DataFrame, path: OutputPath, options: WriteOptions) -> WriteReport:
    """Write a Daft DataFrame, a shard for each partition, by the processes that compute them.

    They write under hidden names; this process publishes the shards when all are written. Partitions without rows get
    no shard; ``frame.into_batches(rows)`` chooses their size. Daft writes partitions in any order, so the shards are
    not in the order of the rows. ``frame.sort(…)`` makes one partition, in order, where Daft runs in one process. An
    error in a partition is a RuntimeError of Daft's, with its text.

    Examples
    --------
    >>> import daft, tfrecord_io as tfr
    >>> report = tfr.write_tfrecord(daft.from_pydict({"label": [3, 1, 3]}), "labels/")
    >>> report.records, tfr.read_table("labels/")["label"].to_pylist()
    (3, [3, 1, 3])
    """
    with needs("daft"):
        from tfrecord_io.plugins.engines.daft_source import TFRecordSink
    schema = frame.schema().to_pyarrow_schema()
    for field in schema:
        extensions = [type_ for type_ in Column(field).walk() if isinstance(type_, pa.ExtensionType)]
        daft_types = [type_ for type_ in extensions if type_.extension_name == "daft.super_extension"]
        if any(b'"Python"' in type_.__arrow_ext_serialize__() for type_ in daft_types):
            reason = "a Daft column of Python objects cannot be stored in a TFRecord, and is not pickled"
            raise EncodeError(reason, feature=field.name, hint="cast it to another type, or drop it")
    with DistributedWriter.begin(path, options) as writer:
        if writer.is_repeated:
            return writer.commit(())
        sink = TFRecordSink(writer, schema)
        frame.write_sink(sink)
    return sink.report
