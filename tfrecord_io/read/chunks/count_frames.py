"""Count or skip the records of files by their frames, without decoding them.

Tests: tests/read/test_counting.py and tests/read/index/test_find_index.py.
"""

from __future__ import annotations

import errno
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from typing import Any

from tfrecord_io.base import MIB, FrameOptions, ProgressMeter, WorkerPool, ordered
from tfrecord_io.bytes import Checks, Fault, get_engine
from tfrecord_io.errors import CorruptRecordError, TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker, Recover, Step
from tfrecord_io.read.chunks.segments import SegmentWalk, segment_pool
from tfrecord_io.read.index.known_counts import KnownCounts
from tfrecord_io.store import Source, SourcePrefetcher

_LARGE_REMOTE_BYTES = 8 * MIB  # reading only headers pays for larger remote files
_SMALL_BYTES = 64 * MIB  # smaller files are counted side by side, larger ones in segments
_FILES_OF_CALL, _BYTES_OF_CALL = 8, MIB // 4  # at most, unless of one file


def skip_records(walker: BlockWalker, records: int, threads: int) -> None:
    """Skip the next records of a walk by their lengths, without parsing them."""
    with segment_pool(threads) as pool:
        _pass_records(walker, pool, records)


def _pass_records(walker: BlockWalker, pool: WorkerPool, most: int | None = None, *, check_crc: bool = False) -> int:
    """Walk over the next records, all or at most `most`, up to an `error` of the walk; return their number."""
    walk, passed = _frame_walk(pool, walker.max_record_bytes, walker.checks(payloads=check_crc)), 0
    while passed != most and walker.load():
        left, error = None if most is None else most - passed, walker.error
        if error is None and (records := walk.advance(walker, left)):
            passed += records
            continue
        if error is None:
            frames, fault = walker.frames(get_engine(), -1 if left is None else left, check_crc=check_crc)
            error = None if fault is None else walker.fault_error(fault)
            walker.advance(len(frames.starts), frames.consumed)
            passed += len(frames.starts)
        if error is not None and not walker.recover(error):
            walker.error = error
            break
        if error is None and passed != most:
            walker.read_on()
    return passed


def _frame_walk(pool: WorkerPool, max_record_bytes: int, checks: Checks) -> SegmentWalk[Step]:
    engine = get_engine()

    def step(data: Any, final: bool) -> tuple[int, int, Fault | None]:
        frames, fault = engine.scan(data, checks=checks, max_record_bytes=max_record_bytes, final=final)
        return len(frames.starts), frames.consumed, fault

    skips = None if checks is Checks.ALL else checks
    return SegmentWalk(pool, lambda: step, max_record_bytes=max_record_bytes, skips_payloads=skips)


def count_each(
    sources: Sequence[Source],
    indexes: Sequence[Source | None],
    known: KnownCounts,
    *,
    named: bool = False,
    recover: Recover | None = None,
    threads: int = 1,
    progress: ProgressMeter | None = None,
) -> Iterator[int]:
    """Count the records of each file by the cheapest method that applies; `indexes` has the index files.

    With `named`, an index is checked and used even where a manifest states the number, and its errors are raised at
    once. Errors of a file are raised at its turn, unless `recover` passes them: see `tfrecord_io.count`.
    """
    numbers: list[int | None] = []
    for source, index in zip(sources, indexes, strict=True):
        try:
            numbers.append(_count_without_reading(source, index, known, named=named))
            if numbers[-1] is not None and progress is not None:
                progress.advance(source.size or 0)
        except CorruptRecordError:
            if recover is None or named:
                raise
            numbers.append(None)
    unknown = [source for source, number in zip(sources, numbers, strict=True) if number is None]
    counted = count_by_reading(unknown, known, recover=recover, threads=threads, progress=progress)
    return _fill_counts(numbers, counted)


def records_of_files(sources: Sequence[Source], options: FrameOptions) -> list[int]:
    """Count the records of each file; files without an index or a manifest are read."""
    counts = KnownCounts(options)
    return list(count_each(sources, counts.indexes(sources), counts, threads=options.thread_count))


def _fill_counts(known: Sequence[int | None], counted: Generator[int]) -> Iterator[int]:
    """Yield the known numbers, and counted numbers instead of None."""
    with closing(counted):
        for number in known:
            yield next(counted) if number is None else number


def count_by_reading(
    sources: Sequence[Source],
    known: KnownCounts,
    *,
    check_crc: bool = False,
    recover: Recover | None = None,
    threads: int = 1,
    progress: ProgressMeter | None = None,
) -> Generator[int]:
    """The number of records of each file, by reading them; large payloads of plain local files only to `check_crc`."""
    count = partial(_count_file, known=known, check_crc=check_crc)
    with (
        segment_pool(threads) as pool,
        SourcePrefetcher(sources) as prefetched,
        closing(_count_side_by_side(sources, pool.threads, count)) as tried,
    ):
        for file, (source, number) in enumerate(zip(prefetched, tried, strict=True)):
            if number is None:
                number = count(source, pool, recover=recover, file=file, progress=progress)
            elif progress is not None:
                progress.advance(source.size or 0)
            yield number


def _count_side_by_side(sources: Sequence[Source], threads: int, count: Any) -> Generator[int | None]:
    """Count the records of small local files, several at a time; None for a file to be counted in order.

    A damaged file is counted in order: for its error, or to go on after the damage.
    """

    def count_alone(source: Source) -> int | None:
        if not _is_small(source):
            return None
        with suppress(TFRecordError, OSError), segment_pool(1) as alone:
            return int(count(source, alone))
        return None

    def count_part(part: Sequence[Source]) -> list[int | None]:
        return list(map(count_alone, part))

    if threads < 2 or sum(map(_is_small, sources)) < 2:
        yield from [None] * len(sources)
        return
    parts = _parts(sources, min(_FILES_OF_CALL, len(sources) // (WorkerPool.AHEAD * threads)))
    for numbers in ordered((partial(count_part, part) for part in parts), threads, "count"):
        yield from numbers


def _parts(sources: Iterable[Source], most_files: int) -> Iterator[list[Source]]:
    """Files for one call of a thread each, as handing a call over takes as long as counting a file of some kilobytes.

    Each part has one file, or at most `most_files` with little content together.
    """
    part: list[Source] = []
    room = _BYTES_OF_CALL
    for source in sources:
        if part and (len(part) >= most_files or (source.size or 0) > room):
            yield part
            part, room = [], _BYTES_OF_CALL
        part.append(source)
        room -= source.size or 0
    if part:
        yield part


def _is_small(source: Source) -> bool:
    return source.local and source.span is None and 0 < (source.size or 0) < _SMALL_BYTES


def _count_file(
    source: Source,
    pool: WorkerPool,
    *,
    known: KnownCounts,
    check_crc: bool,
    recover: Recover | None = None,
    file: int = 0,
    progress: ProgressMeter | None = None,
) -> int:
    """Count the records of a file by reading it; `file` is its number in the order of reading.

    TFRecordError at the first fault that `recover` does not pass; ``records_intact`` and ``offset`` show how far the
    walk got.
    """
    walker = BlockWalker.from_options(iter([source]), known.options, progress=progress, recover=recover)
    walker.number = file - 1
    with closing(walker):
        total = _pass_records(walker, pool, check_crc=check_crc)
        if walker.error is not None:
            raise walker.locate_error(walker.error)
    return total


def _count_without_reading(source: Source, index: Source | None, known: KnownCounts, *, named: bool) -> int | None:
    """Count by known facts, else by the headers of a large plain remote file, without its payloads; None if neither."""
    records = known.record_count(source, index, prefer_index=named)
    if records is not None:
        return records
    if source.remote is None or (source.size or 0) < _LARGE_REMOTE_BYTES or source.span is not None:
        return None  # reading many small ones in parallel is faster
    if not known.may_be_plain:
        return None
    from tfrecord_io.read.index.header_scan import scan_sizes  # for large files in buckets only
    from tfrecord_io.store import RandomAccessFile

    try:
        with RandomAccessFile.open(source) as ranges:
            if ranges.codec is not None:
                return None
            limit, checks = known.options.limits.record_bytes, Checks.from_check_crc(known.options.check_crc)
            return sum(len(sizes) for sizes in scan_sizes(source.path, ranges, limit, checks))
    except OSError as error:
        if error.errno != errno.ESPIPE:  # of a web server without range requests, which may not say so before
            raise
        return None
