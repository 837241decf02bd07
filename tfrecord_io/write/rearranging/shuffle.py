"""Shuffle and sample: a random order, or a random choice, of the records of files of any size.

Each record gets a random key of 64 bits, and the order is that of the keys. Records that do not fit into memory are
distributed by the first bits of their keys to temporary files, which are ordered one after the other. So the order
depends neither on the memory nor on the files.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from fractions import Fraction
from itertools import groupby
from operator import itemgetter

import numpy as np

from tfrecord_io.base import LIMITS, MIB, CopyOptions, check_integer, check_keywords, for_cli, printable
from tfrecord_io.bytes import Array
from tfrecord_io.read import BlockWalker, options_from_call
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
from tfrecord_io.write.rearranging.split import exact_fraction
from tfrecord_io.write.rearranging.split_assignment import random_labels, write_labelled
from tfrecord_io.write.record_output import RecordOutput
from tfrecord_io.write.sharded_sink import Spool
from tfrecord_io.write.writer import WriteReport

_NUMBER_BYTES = 8  # of a key or a size
_BITS = 5  # of a key, which choose a temporary file; the next group of so many at each depth
_FILES = 1 << _BITS
_DEEPEST = 64 // _BITS  # where no group is left, records stay in memory
_BUFFER_BYTES = 64 << 10  # of each temporary file
_WRITE_BYTES = 4 * MIB

Keyed = tuple[CopiedRecords.Frames, Array]  # records and their keys


@check_keywords
def shuffle(
    source: InputPath,
    target: Path,
    *,
    seed: int = 0,
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
    """Write the records of files in a random order, of which all are equally likely.

    Records are copied as bytes; the embedded schema is in the first record of each file written. Values in the names of
    folders (``day=1/``) become features; with ``partitions="folders"`` each folder is shuffled. Files may be larger
    than memory: beyond `memory_bytes` their records are distributed to temporary files in the folder that ``TMPDIR``
    names, which needs room for the uncompressed data.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(8))}, "ordered.tfrecord")
    >>> tfr.shuffle("ordered.tfrecord", "shuffled@2", seed=3).records
    8
    >>> tfr.read_table("shuffled@2")["x"].to_pylist()
    [0, 4, 7, 1, 5, 6, 3, 2]

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As for `dataset`.
    target : str, PathLike or binary file object
        As for `write_tfrecord`.
    seed : int, default 0
        The same seed gives the same order of the same records, whatever `memory_bytes` is and however they are divided
        among files.
    memory_bytes : int, default 256 MiB
        Bytes of records to hold in memory; about twice as much is used.
    partitions, compression, compression_level, shards, max_shard_bytes, write_index, mode
        As for `merge`.
    storage_options, progress
        As for `write_tfrecord`; a source with others is a `dataset`.

    Returns
    -------
    WriteReport

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    FileExistsError
        As `write_tfrecord`.
    """
    seed = check_integer("seed", seed, 0)
    memory_bytes = check_integer("memory_bytes", memory_bytes, 1, LIMITS.INT64_MAX)
    options = options_from_call(
        CopyOptions,
        shuffle,
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
    copied, bits = CopiedRecords(source, options), np.random.PCG64(seed)
    copied.schema = copied.schema.drop_range_index()
    try:
        with RecordOutput.open_all(copied, target) as (output,):
            for folder, records in groupby(copied.frames(), key=itemgetter(0)):
                # The i-th number of the seed for the i-th record of all folders.
                keyed = ((frames, bits.random_raw(len(frames[1]))) for _, frames in records)
                _write_in_key_order(keyed, memory_bytes, 0, output.folder(folder))
    except MemoryError as error:
        raise _no_memory(error, copied, memory_bytes) from error
    return output.report


@check_keywords
def sample(
    source: InputPath,
    target: Path,
    *,
    n: int | None = None,
    fraction: float | None = None,
    seed: int = 0,
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
    """Write a random sample of the records of files, in their order; every sample is equally likely.

    Records are copied as bytes; the embedded schema is in the first record of each file written. Values in the names of
    folders (``day=1/``) become features. The records are counted first, as by `count`; each takes a byte of
    memory.

    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": list(range(100))}, "hundred.tfrecord")
    >>> tfr.sample("hundred.tfrecord", "ten.tfrecord", n=10).records
    10
    >>> tfr.sample("hundred.tfrecord", "third.tfrecord", fraction=0.333).records
    33

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As for `dataset`.
    target : str, PathLike or binary file object
        As for `write_tfrecord`.
    n : int, optional
        Number of records to write; all, if there are no more.
    fraction : float, optional
        Fraction of the records to write, from 0 to 1: of m records exactly ``floor(m * fraction + 1/2)``.
    seed : int, default 0
        The same seed and number of records give the same sample.
    partitions, compression, compression_level, shards, max_shard_bytes, write_index, mode
        As for `merge`.
    storage_options, progress
        As for `write_tfrecord`; a source with others is a `dataset`.

    Returns
    -------
    WriteReport

    Raises
    ------
    ValueError
        Not exactly one of `n` and `fraction` is given.
    CorruptRecordError, TruncatedRecordError, CompressionError
        A file is damaged; nothing is written.
    FileExistsError
        As `write_tfrecord`.
    """
    if (n is None) == (fraction is None):
        text = "pass either {}, the number of records, or {}, the part of them"
        raise for_cli(ValueError(text.format("n=", "fraction=")), text.format("-n", "--fraction"))
    n = check_integer("n", n, 0, optional=True)
    part = None if fraction is None else exact_fraction("fraction", fraction)
    options = options_from_call(
        CopyOptions,
        sample,
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
    count = copied.count()
    size = min(n or 0, count) if part is None else math.floor(count * part + Fraction(1, 2))
    return write_labelled(copied, target, random_labels([size], count, seed))


def _no_memory(error: MemoryError, copied: CopiedRecords, memory_bytes: int) -> MemoryError:
    """Word the error of too little memory to shuffle records; a single record that does not fit is named."""
    size, number, path = copied.largest
    if size <= memory_bytes:
        text = error.args[0] if error.args else "not enough memory to shuffle the records"
        return MemoryError(f"{text}; pass less memory_bytes=")
    reason = f"{printable(path)}: record {number} has {size:,} bytes: to shuffle it takes four times as much memory"
    return MemoryError(f"{reason}; {BlockWalker.LEAVES_OUT}")


def _write_in_key_order(records: Iterable[Keyed], memory_bytes: int, depth: int, output: RecordOutput) -> None:
    """Write records in the order of their keys, which agree in the first `depth` groups of bits."""
    with ExitStack() as stack:
        in_memory, count, spools = _gather_records(records, memory_bytes, depth, stack)
        if depth == 0:
            output.expect(count)
        _write_sorted(in_memory, output.write)
        for spool in spools:
            _write_in_key_order(_read_spool(spool), memory_bytes, depth + 1, output)
            spool.close()


def _gather_records(
    records: Iterable[Keyed], memory_bytes: int, depth: int, stack: ExitStack
) -> tuple[list[Keyed], int, list[Spool]]:
    """Collect records in memory, or in temporary files if they do not fit; the second result is their number.

    A single record stays in memory: alone in a file, it would fit no better.
    """
    in_memory: list[Keyed] = []
    size = count = 0
    spools: list[Spool] = []
    for (data, sizes), keys in records:
        kept = data if depth else data.copy()  # at depth 0, the data of `CopiedRecords.frames` is valid for a step
        in_memory.append(((kept, sizes), keys))
        count += len(sizes)
        size += len(data) + len(sizes) * 2 * _NUMBER_BYTES
        if size > memory_bytes and depth < _DEEPEST and count > 1:
            if not spools:
                spools = [stack.enter_context(closing(Spool(_BUFFER_BYTES))) for _ in range(_FILES)]
            _distribute(in_memory, depth, spools)
            in_memory, size = [], 0
    if spools:
        _distribute(in_memory, depth, spools)
        in_memory = []
    return in_memory, count, spools


def _distribute(in_memory: Iterable[Keyed], depth: int, spools: list[Spool]) -> None:
    """Append records to the temporary files that the next bits of their keys choose."""
    shift = np.uint64(64 - _BITS * (depth + 1))
    for frames, keys in in_memory:
        file_numbers = (keys >> shift).astype(np.int64) & (_FILES - 1)
        for number in np.unique(file_numbers).tolist():
            indices = np.flatnonzero(file_numbers == number)
            data, _ = CopiedRecords.select(frames, indices)
            lengths = np.array([len(data), len(indices)], np.int64)
            spools[number].write(lengths, data, frames[1][indices].astype(np.int64), keys[indices])


def _read_spool(spool: Spool) -> Iterator[Keyed]:
    """Read the records of a temporary file: of each write the frames, their sizes and their keys."""
    for part in spool.parts():
        unread = part
        while len(unread):
            lengths, unread = np.split(unread, [2 * _NUMBER_BYTES])
            size, records = lengths.copy().view(np.int64).tolist()
            data, numbers, unread = np.split(unread, [size, size + 2 * _NUMBER_BYTES * records])
            sizes, keys = np.split(numbers.copy().view(np.uint64), 2)
            yield (data, sizes.astype(np.int64)), keys


def _write_sorted(in_memory: list[Keyed], write: Callable[[CopiedRecords.Frames], None]) -> None:
    """Write records in memory in the order of their keys; records with equal keys keep their order."""
    if not in_memory:
        return
    data = in_memory[0][0][0] if len(in_memory) == 1 else np.concatenate([frames[0] for frames, _ in in_memory])
    sizes = np.concatenate([frames[1] for frames, _ in in_memory])
    order = np.argsort(np.concatenate([keys for _, keys in in_memory]), kind="stable")
    in_memory.clear()
    bounds = np.searchsorted(np.cumsum(sizes[order]), np.arange(_WRITE_BYTES, len(data), _WRITE_BYTES))
    for indices in np.split(order, np.unique(bounds)):
        if len(indices):
            write(CopiedRecords.select((data, sizes), indices) if len(order) > 1 else (data, sizes))
