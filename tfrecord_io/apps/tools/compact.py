"""Join small neighbouring shards of a dataset, whose rows and their order stay.

Tests: tests/write/test_compacting.py.
"""

from __future__ import annotations

from tfrecord_io.base import MIB, CopyOptions, check_keywords
from tfrecord_io.read import CallSource, options_from_call
from tfrecord_io.typing import UNSET, IndexLike, OpenedDataset, Path, ProgressLike, StorageLike, Unset
from tfrecord_io.write import WriteReport, compact_shards


@check_keywords
def compact(
    source: Path | OpenedDataset,
    *,
    max_shard_bytes: int = 256 * MIB,
    write_index: IndexLike = False,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Join small neighbouring shards of a dataset, which keeps its rows and their order.

    Records are copied as bytes, their checksums checked; the schema of the dataset is in the first record of each new
    shard. Shards that have no small neighbour in their folder stay as they are. One replacement of the manifest
    publishes the new shards: a killed call leaves the dataset as it was or compacted, and files that
    `tfr clean` finds. What is appended meanwhile is kept, behind the other rows.

    The old shards are removed at the end. As when a dataset is overwritten, readers that were open before then get an
    OSError that says that the dataset was replaced, and never a mixture; those that start again have all rows.

    >>> import tfrecord_io as tfr
    >>> for day in range(5):
    ...     _ = tfr.write_tfrecord({"day": [day]}, "days/", mode="append")
    >>> report = tfr.compact("days/")
    >>> len(report.files), report.records
    (1, 5)
    >>> tfr.read_table("days/")["day"].to_pylist()
    [0, 1, 2, 3, 4]

    Parameters
    ----------
    source : str, PathLike or Dataset
        A dataset with a manifest, as it was written to a directory or to shards; or a folder of it (``day=1/``) or some
        shards, of which only these are joined.
    max_shard_bytes : int, default 256 MiB
        Neighbours are joined as long as their files have at most so many bytes together, compressed if they are.
    write_index, storage_options, progress
        As for `write_tfrecord`.

    Returns
    -------
    WriteReport
        Of the new shards; without files if there was nothing to join.

    Raises
    ------
    ValueError
        This is not a dataset with a manifest, or several: see `merge`.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A shard is damaged; nothing is changed.
    OSError
        Another writer has replaced the shards meanwhile, or is about to; nothing is changed.

    Notes
    -----
    The new shards have names like those of appended ones, and the manifest names them. ``convert(resume=True)``
    recognises the dataset as long as all of its sources are the same; else it converts those of joined shards again.
    """
    options = options_from_call(
        CopyOptions,
        compact,
        source,
        CallSource(source).storage_keywords,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        storage_options=storage_options,
        progress=progress,
        partitions="drop",
    )
    path = CallSource(source).one_path("compact")
    return compact_shards(path, options, max_shard_bytes)
