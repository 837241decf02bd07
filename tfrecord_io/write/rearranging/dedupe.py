"""One record of each key: duplicates are found by hashes of columns, and the other records are copied as bytes.

Tests: tests/write/rearranging/test_split_assignment.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from typing import Literal

import numpy as np
import pyarrow as pa

from tfrecord_io.base import LIMITS, MIB, CopyOptions, Selection, check_integer, check_keywords
from tfrecord_io.bytes import Array
from tfrecord_io.columns import RowHashes
from tfrecord_io.read import options_from_call
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
from tfrecord_io.write.rearranging.split_assignment import LEFT_OUT, each_key, write_labelled
from tfrecord_io.write.sharded_sink import Spool
from tfrecord_io.write.writer import WriteReport

_ROW = np.dtype([*RowHashes.DTYPE.descr, ("row", "<i8")])
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
    names = Selection.check_names("by", by)
    if keep not in ("first", "last"):
        raise ValueError(f"keep={keep!r}: expected 'first' or 'last'")
    memory_bytes = check_integer("memory_bytes", memory_bytes, 1, LIMITS.INT64_MAX)
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
    with closing(_Keys(memory_bytes)) as keys:
        each_key(copied, names, "by", keys.add)
        labels = np.full(keys.count, LEFT_OUT, np.uint8)
        for part in keys.parts():
            labels[_find_kept_rows(part, keeps_last)] = 0
    return labels


class _Keys:
    """The hashed keys of all rows, in memory or, beyond `memory_bytes`, in temporary files, until it is closed."""

    def __init__(self, memory_bytes: int) -> None:
        self.count = 0  # of rows
        self._memory_bytes = memory_bytes
        self._in_memory: list[Array] = []
        self._files: list[Spool] = []  # none, or `_FILES`

    def add(self, columns: list[pa.Array]) -> None:
        """Add the next rows, by the columns of their keys."""
        keys = np.empty(len(columns[0]), _ROW)
        keys[["first", "second"]] = RowHashes.from_columns(columns, len(keys)).values
        keys["row"] = np.arange(self.count, self.count + len(keys))
        self.count += len(keys)
        self._in_memory.append(keys)
        if sum(block.nbytes for block in self._in_memory) > self._memory_bytes:
            while len(self._files) < _FILES:
                self._files.append(Spool(MIB))
            self._distribute()

    def parts(self) -> Iterator[Array]:
        """Take the keys in parts, each with all rows of its keys, in ascending order."""
        if not self._files:
            part = _concat_keys(self._in_memory)
            self._in_memory.clear()  # before they are sorted
            yield part
            return
        self._distribute()
        for file in self._files:
            yield _concat_keys(np.frombuffer(block, _ROW) for block in file.parts())

    def _distribute(self) -> None:
        """Move keys to the temporary files that their first bits choose."""
        for keys in self._in_memory:
            numbers = (keys["first"] >> np.uint64(64 - _BITS)).astype(np.intp)
            for number in np.unique(numbers).tolist():
                self._files[number].write(keys[numbers == number])
        self._in_memory.clear()

    def close(self) -> None:
        for file in self._files:
            file.close()


def _concat_keys(keys: Iterable[Array]) -> Array:
    return np.concatenate([np.empty(0, _ROW), *keys])


def _find_kept_rows(keys: Array, keeps_last: bool) -> Array:
    """Find the number of the first or last row of each key; `keys` has the rows in ascending order."""
    order, starts = RowHashes(keys).runs()  # the rows of a key ascend
    is_kept = np.roll(starts, -1) if keeps_last else starts
    return np.asarray(keys["row"][order[is_kept]])
