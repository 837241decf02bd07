"""One record of each key: duplicates are found by hashes of columns, and the other records are copied as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from typing import Literal

import numpy as np
import pyarrow as pa

from tfrecord_io.call_errors import check_keywords
from tfrecord_io.engine.contract import Array
from tfrecord_io.options import INT64_MAX, MIB, check_integer, check_names
from tfrecord_io.options.transfer import CopyOptions
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.tools.row_hashes import HASH, row_hashes, run_starts
from tfrecord_io.tools.split_assignment import LEFT_OUT, each_key, write_labelled
from tfrecord_io.typing import (
    UNSET,
    Compression,
    FileMode,
    IndexLike,
    InputPath,
    Partitions,
    Path,
    ProgressLike,
    StorageLike,
    Unset,
)
from tfrecord_io.write.copied_records import CopiedRecords
from tfrecord_io.write.sharded_sink import Spool
from tfrecord_io.write.writer import WriteReport

_ROW = np.dtype([*HASH.descr, ("row", "<i8")])
_BITS = 5  # of a hash that choose a temporary file
_FILES = 1 << _BITS


@check_keywords
def dedupe(
    source: InputPath,
    target: Path,
    *,
    by: str | Sequence[str],
    keep: Literal["first", "last"] = "first",
    memory_bytes: int = 256 * MIB,
    partitions: Partitions = "features",
    compression: Compression | None = "infer",
    compression_level: int | None = None,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    write_index: IndexLike = False,
    mode: FileMode | None = None,
    storage_options: StorageLike | None = None,
    progress: ProgressLike | Unset = UNSET,
) -> WriteReport:
    """Write one record of each key: the first or the last of the records that agree in some columns.

    Records are copied as bytes and keep their order; the embedded schema is in the first record of each file written.
    Values in the names of folders (``day=1/``) become features, and may be part of the key. The files are read twice,
    first the columns of the key alone. Keys are compared by a hash of 128 bits; a missing value equals a missing value,
    NaN equals NaN, and -0.0 equals 0.0. Each record takes a byte of memory and its key 24 bytes, which beyond
    `memory_bytes` go through temporary files in the folder that ``TMPDIR`` names.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord(
    ...     {"id": [1, 2, 1, 3], "price": [10, 20, 30, 40]}, "prices.tfrecord"
    ... )
    >>> tfr.dedupe("prices.tfrecord", "latest.tfrecord", by="id", keep="last").records
    3
    >>> tfr.read_table("latest.tfrecord").to_pylist()
    [{'id': 2, 'price': 20}, {'id': 1, 'price': 30}, {'id': 3, 'price': 40}]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As for `dataset`.
    target : str, PathLike or binary file object
        As for `write_tfrecord`.
    by : str or sequence of str
        The columns of the key: texts, bytes, numbers, bools or times, one value a record.
    keep : {"first", "last"}, default "first"
        Which of the records with one key is written, and stays where it is in the order.
    memory_bytes : int, default 256 MiB
        Bytes of keys to hold in memory; about twice as much is used.
    partitions, compression, compression_level, shards, max_shard_bytes, write_index, mode
        As for `merge`.
    storage_options, progress
        As for `write_tfrecord`; a source with others is a `dataset`.

    Returns
    -------
    WriteReport

    Raises
    ------
    FeatureNotFoundError, FeatureTypeError
        A column does not exist, or has lists or arrays.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    FileExistsError
        As `write_tfrecord`.
    """
    names = check_names("by", by)
    if keep not in ("first", "last"):
        raise ValueError(f"keep={keep!r}: expected 'first' or 'last'")
    memory_bytes = check_integer("memory_bytes", memory_bytes, 1, INT64_MAX)
    options = options_from_call(
        CopyOptions,
        dedupe,
        source,
        partitions=partitions,
        compression=compression,
        compression_level=compression_level,
        shards=shards,
        max_shard_bytes=max_shard_bytes,
        write_index=write_index,
        mode=mode,
        storage_options=storage_options,
        progress=progress,
    )
    copied = CopiedRecords(source, options)
    return write_labelled(copied, target, _one_of_each(copied, names, keep == "last", memory_bytes))


def _one_of_each(copied: CopiedRecords, names: Sequence[str], keeps_last: bool, memory_bytes: int) -> Array:
    """Label 0 for the first or the last record of each key."""
    with ExitStack() as stack:
        spools: list[Spool] = []
        keys_in_memory: list[Array] = []
        count = 0

        def use(columns: list[pa.Array]) -> None:
            nonlocal count
            keys = np.empty(len(columns[0]), _ROW)
            keys[["first", "second"]] = row_hashes(columns, len(keys))
            keys["row"] = np.arange(count, count + len(keys))
            keys_in_memory.append(keys)
            count += len(keys)
            if sum(block.nbytes for block in keys_in_memory) > memory_bytes:
                spools.extend(stack.enter_context(closing(Spool(MIB))) for _ in range(0 if spools else _FILES))
                _distribute(keys_in_memory, spools)

        each_key(copied, names, "by", use)
        labels = np.full(count, LEFT_OUT, np.uint8)
        if spools:
            _distribute(keys_in_memory, spools)
        spooled_keys = ((np.frombuffer(part, _ROW) for part in spool.parts()) for spool in spools)
        parts = map(_concat_keys, spooled_keys) if spools else iter([_concat_keys(keys_in_memory)])
        keys_in_memory.clear()  # before they are sorted
        for keys in parts:
            labels[_find_kept_rows(keys, keeps_last)] = 0
    return labels


def _distribute(keys_in_memory: list[Array], spools: list[Spool]) -> None:
    """Move keys to the temporary files that their first bits choose."""
    for keys in keys_in_memory:
        numbers = (keys["first"] >> np.uint64(64 - _BITS)).astype(np.intp)
        for number in np.unique(numbers).tolist():
            keys_of_file = keys[numbers == number]
            spools[number].write(keys_of_file)
    keys_in_memory.clear()


def _concat_keys(keys: Iterable[Array]) -> Array:
    return np.concatenate([np.empty(0, _ROW), *keys])


def _find_kept_rows(keys: Array, keeps_last: bool) -> Array:
    """Find the number of the first or last row of each key; `keys` has the rows in ascending order."""
    order = np.lexsort((keys["second"], keys["first"]))  # stable, so that the rows of a key ascend
    starts = run_starts(keys, order)
    is_kept = np.roll(starts, -1) if keeps_last else starts
    return np.asarray(keys["row"][order[is_kept]])
