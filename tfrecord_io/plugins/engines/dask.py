"""Dask: a DataFrame with a partition for each piece of the files, and a shard for each partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import EncodeError
from tfrecord_io.kit import Column, DistributedWriter, LateTypes, Scan, WriteOptions, WrittenPart, empty_batch, needs
from tfrecord_io.typing import OpenedDataset, OutputPath, WriteReport

if TYPE_CHECKING:
    import dask.dataframe as dd
    import pandas as pd
else:
    dd = LateTypes("dask.dataframe")


def to_dask(
    dataset: OpenedDataset, *, npartitions: int | None = None, max_bytes: int = Scan.PIECE_BYTES
) -> dd.DataFrame:
    """A Dask DataFrame, whose partitions any worker reads by itself.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"label": [3, 1, 3], "name": ["a", "b", "c"]}, "letters.tfrecord"
    ... )
    >>> letters = tfr.dataset("letters.tfrecord").to_dask(npartitions=2)
    >>> letters["label"].sum().compute()
    np.int64(7)

    Parameters
    ----------
    npartitions : int, optional
        At most so many partitions, of about the same number of bytes.
    max_bytes : int, default 128 MiB
        Without `npartitions`: partitions of about this size, compressed if the files are.

    Returns
    -------
    dask.dataframe.DataFrame
        With Arrow-backed columns; tensors keep their extension type. The stored index of a DataFrame is among the
        columns. Partitions decode only the columns that the query needs.

    Raises
    ------
    MissingDependencyError
        dask.dataframe is not installed.
    ValueError
        The dataset has an `offset`, a `limit` or ``on_error="stop"``: such a read cannot be split.
    SchemaError
        A column has a dtype of ml_dtypes, arrays of text, or times in units that Arrow does not have.
    """
    scan = Scan.of(dataset)
    with needs("dask"):
        import dask.dataframe as dd
    Column.check_dtypes(scan.schema, "Dask")
    from_map: Any = dd.from_map
    meta = _frame(empty_batch(scan.schema))
    parts = scan.tasks(npartitions, max_bytes)
    return from_map(_load, parts, meta=meta, label="read-tfrecord", enforce_metadata=False)


def write_frame(frame: dd.DataFrame, path: OutputPath, options: WriteOptions) -> WriteReport:
    """Write a Dask DataFrame, a shard for each partition, by the workers that compute them.

    They write under hidden names; this process publishes the shards when all are written. Partitions without rows get
    no shard, and one that is computed twice, because a worker was lost, is in the dataset once. Without
    ``index=``, the index is written unless Dask announces it as a RangeIndex without a name. A column that Dask
    announces as integers has them in all partitions, also where pandas made it float64 because some are null.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"label": [3, 1, 3]}, "letters.tfrecord")
    >>> letters = tfr.dataset("letters.tfrecord").to_dask(npartitions=2)
    >>> report = tfr.write_tfrecord(letters[letters["label"] == 3], "threes")
    >>> report.records, tfr.read_table("threes@2")["label"].to_pylist()
    (2, [3, 3])
    """
    with needs("dask"):
        from dask.base import compute
        from dask.delayed import delayed
    run: Any = compute  # without types
    partitions: Any = frame.to_delayed
    write = delayed(_write, pure=False)
    types = frame._meta.dtypes if options.schema is None else frame._meta.dtypes[:0]
    integers = {name: type_ for name, type_ in types.items() if isinstance(type_, np.dtype) and type_.kind in "iu"}
    if options.index is None:  # pandas has a RangeIndex in those partitions alone whose labels are evenly spaced
        import pandas as pd

        index = frame._meta.index
        options = replace(options, index=not isinstance(index, pd.RangeIndex) or index.name is not None)
    with DistributedWriter.begin(path, options) as writer:
        if writer.is_repeated:
            return writer.commit(())
        parts = run(*(write(writer, task, part, integers) for task, part in enumerate(partitions())))
        return writer.commit(parts)


def _write(
    writer: DistributedWriter, task: int, frame: pd.DataFrame, integers: Mapping[str, np.dtype[Any]]
) -> WrittenPart:
    """An attempt to write a partition, with the integers that Dask announces."""
    frame = frame.copy(deep=False)
    for name, dtype in frame.dtypes.items():
        if name in integers and dtype.kind == "f":
            frame[name] = _restore_nulls(frame[name], integers[name])
    return writer.write_part(task, [frame])


def _restore_nulls(floats: pd.Series, announced: np.dtype[Any]) -> pd.Series:
    """Integers, which pandas has as floats because some are null."""
    import pandas as pd

    try:
        return floats.astype(pd.ArrowDtype(pa.from_numpy_dtype(announced)))
    except pa.ArrowInvalid as error:
        reason = f"Dask announces {announced}, and a partition has {floats.dtype} ({error})"
        raise EncodeError(reason, feature=str(floats.name), hint="cast the column with astype") from error


def _load(scan: Scan, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """A partition; Dask passes the columns that are needed."""
    return _frame((scan if columns is None else scan.only(columns)).read())


def _frame(table: pa.Table | pa.RecordBatch) -> pd.DataFrame:
    """An Arrow-backed frame without an index of its own, so that all partitions are alike.

    Dask turns object columns into text; these have other types.
    """
    import pandas as pd

    if not table.num_columns:
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    return table.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
