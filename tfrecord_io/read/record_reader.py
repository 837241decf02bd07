"""Iterate over the payloads of TFRecord files, whatever they contain."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

from tfrecord_io.base import ConsumedOnce, FrameOptions, OnDamage, check_keywords
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.find_sources import resolve_sources
from tfrecord_io.read.report import ReadReport
from tfrecord_io.store import SourcePrefetcher
from tfrecord_io.typing import InputPath, OnErrorCollecting, StorageLike


class _Options(FrameOptions):
    """Keywords of `RecordReader`, whose result has a report."""

    _takes = staticmethod(OnDamage.is_taken_by_all)


class RecordReader(ConsumedOnce[bytes]):
    """Iterate once over the payloads of TFRecord files.

    >>> from tfrecord_io import RecordWriter
    >>> with RecordWriter("lines.tfrecord") as writer:
    ...     writer.write(b"first")
    ...     writer.write(b"")
    >>> with RecordReader("lines.tfrecord") as reader:
    ...     list(reader)
    [b'first', b'']

    Parameters
    ----------
    source : str, PathLike, Dataset, list of those, or binary file object
        As in `read_tfrecord`; a `dataset` has more reading options.
    on_error : {"raise", "stop", "skip", "collect"} or callable, optional
        "stop" ends at the first damage with a StoppedEarlyWarning. "skip" continues after it: see ``report`` for what
        was left out, and a DamagedDataWarning gives the totals at the end. "collect" does, too, and
        ``report.skipped_table()`` has a row for each region, instead of the warning. A callable gets each error, with
        its ``region``, and returns True to continue after it, or False to raise it.
    storage_options : dict or filesystem, optional
        Options for fsspec, as in pandas; or the filesystem of all paths, of fsspec or pyarrow.
    filesystem : filesystem, optional
        The same as passing it as `storage_options`.

    Attributes
    ----------
    report : ReadReport
        The numbers of records, bytes and files so far, and the regions that were ``skipped``.

    Yields
    ------
    bytes
        A copy of each payload.

    Raises
    ------
    CorruptRecordError, TruncatedRecordError, CompressionError
        After all records before the damage were delivered.
    FileNotFoundError
        Nothing matches `source`.
    ValueError
        It was already consumed, or it is closed.
    """

    _word = "reader"

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            from tfrecord_io.base import OTHER_NAMES  # for mistakes only

            raise OTHER_NAMES.attribute_error(self, name)

    @check_keywords
    def __init__(
        self,
        source: InputPath,
        *,
        on_error: OnErrorCollecting | None = None,
        storage_options: StorageLike | None = None,
        filesystem: Any = None,
    ) -> None:
        super().__init__()
        options = options_from_call(
            _Options, RecordReader, source, on_error=on_error, storage_options=storage_options, filesystem=filesystem
        ).with_report()
        sources = resolve_sources(source, options, as_they_are=True)
        self._damage = options.damage
        self.report, recovery = ReadReport(schema_source='record_type="bytes"'), None
        if options.damage.goes_on:
            from tfrecord_io.read.chunks.recovery import Recovery

            recovery = Recovery(options.on_error, sources)
            self.report.skipped = recovery.skipped
        self._sources = sources
        self._prefetcher = SourcePrefetcher(sources)
        self._walker = BlockWalker.from_options(self._prefetcher, options, recover=recovery)
        self._ready: deque[bytes] = deque()  # threads take from it without the lock, which costs more than the rest
        self._blocks = self._walk(options.check_crc)
        for input_source in sources:
            input_source.read_once()

    def _walk(self, check_crc: bool) -> Iterator[list[bytes]]:
        walker, report = self._walker, self.report
        try:
            for frames in walker.intact_frames(check_crc=check_crc):
                report.records += len(frames.starts)
                report.bytes, report.files = walker.bytes + frames.consumed, walker.number + 1
                view = memoryview(walker.data.data)
                places = zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)
                yield [bytes(view[start : start + length]) for start, length in places]
            report.warn_of_skipped()
        except Exception as error:
            if error is not walker.error:  # as of a file that cannot be opened
                raise
            report.stopped = self._damage.end_read(error)
        finally:
            report.files = walker.number + 1

    def __next__(self) -> bytes:
        try:
            while True:
                if not self._ready:
                    self._ready.extend(self._take(self._blocks))
                try:
                    return self._ready.popleft()
                except IndexError:  # another thread took it
                    continue
        except Exception:
            raise
        except BaseException as interrupt:
            self._mark_interrupted(interrupt)
            raise

    def _mark_interrupted(self, interrupt: BaseException) -> None:
        super()._mark_interrupted(interrupt)
        self._ready.clear()

    def _after_fork(self) -> None:
        super()._after_fork()
        self._ready.clear()

    def _close(self) -> None:
        self._ready.clear()
        self._blocks = iter(())
        self._prefetcher.close()
        self._walker.close()
