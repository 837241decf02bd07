"""Check one file: frames, checksums and messages, embedded schema, manifest and index.

`FileChecker` reads the file once and passes its blocks to the checks of records (`record_check.py`), keeps the
`RecordTotals` and the problems (`file_check_result.py`), and compares the file with its manifest and its index.

Tests: tests/read/verifying/test_file_check.py; of calls: tests/read/verifying/test_verify.py.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tfrecord_io.base import LIMITS, Flag, FrameOptions, ProgressMeter
from tfrecord_io.bytes import Fault, FrameHeader, RecordCounts, get_engine
from tfrecord_io.errors import CompressionError, CorruptRecordError, ReplacedError, TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.chunks.segments import SegmentWalk
from tfrecord_io.read.file_indexes import compare_index
from tfrecord_io.read.source_resolution import Files
from tfrecord_io.read.verifying.file_check_result import FileCheck, ProblemList
from tfrecord_io.read.verifying.record_check import FileContents, RecordChecker, RecordPart
from tfrecord_io.store import RandomAccessFile, RawFile, Source, Sources


class Stopped(Exception):
    """The caller has set the event that stops the check."""


@dataclass(slots=True)
class RecordTotals:
    """Numbers of records of a file, and their uncompressed bytes, while the file is checked.

    Attributes
    ----------
    intact, intact_bytes : int
        Of records without a problem.
    others, other_bytes : int
        Of records with an intact frame whose payload may be another message than an Example.
    before_problem : tuple of int, optional
        Number and bytes of the records before the first problem of a record; None: there is none.
    before_damage : tuple of int, optional
        The same, where the `others` are not a problem.
    """

    intact: int = 0
    intact_bytes: int = 0
    others: int = 0
    other_bytes: int = 0
    before_problem: tuple[int, int] | None = None
    before_damage: tuple[int, int] | None = None

    def add_intact(self, records: int, size: int) -> None:
        self.intact += records
        self.intact_bytes += size

    def add_other(self, size: int) -> None:
        self.others += 1
        self.other_bytes += size

    def begin_problem(self, record: int, offset: int, *, is_other: bool) -> None:
        """Note the record of a problem, which may be the first; `is_other`: of one of the `others`."""
        if self.before_problem is None:
            self.before_problem = record, offset
        if self.before_damage is None and not is_other:
            self.before_damage = record, offset

    def take_others_as_intact(self) -> None:
        """Count the `others` as intact: their payloads are not a problem."""
        self.add_intact(self.others, self.other_bytes)
        self.before_problem = self.before_damage


@dataclass(slots=True)
class FileChecker:
    """Checks a file; see `check`. The options are those of `tfrecord_io.verify`, with the threads for this file."""

    source: Source
    indexes: tuple[Source, ...]
    record_type: str | None
    options: FrameOptions
    progress: ProgressMeter
    stopped: Flag
    contents: FileContents = field(default_factory=FileContents)  # filled by `check`
    totals: RecordTotals = field(default_factory=RecordTotals)  # likewise
    problems: ProblemList = field(init=False)
    _file: RecordFile | None = None
    _summed: RawFile.Summed | None = None
    _reported_gaps: int = 0  # of the compressed file

    def __post_init__(self) -> None:
        self.problems = ProblemList(keeps_all=self.options.damage.hands_over)

    def check(self) -> FileCheck:
        """Check everything.

        Raises
        ------
        OSError
            The file cannot be opened or read.
        Stopped
            `stopped` was set.
        """
        if not self.indexes or not self.source.is_small:
            return self._check()
        self.source = self.source.holding()  # as indexes are compared with the content, too
        try:
            with RandomAccessFile.open(self.source) as file:
                file.read(0, file.size)
            return self._check()
        finally:
            if self.source.held is not None:
                self.source.held.drop()

    def _check(self) -> FileCheck:
        source = self.source
        if source.shard is None and not self.indexes:
            source.read_once()
        records, end = self._check_records()
        totals, problems = self.totals, self.problems
        if self._has_no_examples():
            self._join_problems_of_others()
            end = totals.intact_bytes
        if totals.before_problem is not None:
            records, end = totals.before_problem
        elif self.record_type != "bytes" and not problems.kept:
            error = self.contents.counts.not_examples(source.path, is_declared=self.record_type is not None)
            if error is not None:
                problems.add("records", error)
        if source.shard is not None:
            self._check_manifest(None if totals.before_problem is not None else records)
        compression = None if self._file is None else self._file.compression
        if compression is None:
            for index in self.indexes:
                self._check_index(index)
        if problems.kept:  # what was compared may be of two versions
            source.check_unchanged()
        sequence = "sequence_example" if self.contents.sequence else "example"
        return FileCheck(
            path=source.path,
            records=records,
            bytes=end,
            record_type="bytes" if self.record_type == "bytes" else sequence,
            error=problems.kept[0].error if problems.kept else None,
            intact=totals.intact,
            intact_bytes=totals.intact_bytes,
            compression=compression,
            problems=problems.listed_problems(),
            problem_count=problems.count,
            size=source.size,
        )

    # Records ----------------------------------------------------------------------------------------------------

    def _check_records(self) -> tuple[int, int]:
        """Check all records; returns their number, and where the last one ends."""
        walker = BlockWalker(
            iter([self.source]),
            self._open,
            max_record_bytes=self.options.limits.record_bytes,
            progress=self.progress,
            recover=Recovery("skip"),
        )
        checker = RecordChecker(self.contents, self.source.path, self.record_type, self.options.limits.record_bytes)
        end = 0
        try:
            with SegmentWalk.threads(self.options.thread_count) as pool:
                walk = SegmentWalk(pool, checker.part, checker.join, max_record_bytes=self.options.limits.record_bytes)
                while walker.load():
                    if self.stopped.is_set:
                        raise Stopped
                    end = self._check_segments(walker, walk) or self._check_block(walker, checker)
        except TFRecordError as error:  # of a file that is not compressed as stated
            self.problems.add("compression", error)
            self.totals.before_problem = 0, 0
        finally:
            walker.close()
        self._report_gaps()
        checker.finish()
        return walker.record, end

    def _check_segments(self, walker: BlockWalker, walk: SegmentWalk[RecordPart]) -> int:
        """Check records on all threads, once the features of the first ones are known; returns where they end, or 0."""
        if not walker.record or walker.error is not None:
            return 0
        begin, before = walker.offset, walker.bytes
        records = walk.advance(walker)
        size = walker.bytes - before
        self.totals.add_intact(records, size)
        return begin + size if records else 0

    def _open(self, source: Source) -> RecordFile:
        ratio = self.options.limits.decompression_ratio
        raw = None if source.remote is None else source.open_whole(LIMITS.pending_range_bytes)
        # The manifest states the checksum of a file: a remote one is read once for that and its records.
        if raw is not None and source.shard is not None:
            raw = self._summed = RawFile.Summed(raw, get_engine().crc32c)
        compression = self.options.compression
        self._file = RecordFile(source, compression, recover=True, max_decompression_ratio=ratio, raw=raw)
        return self._file

    def _check_block(self, walker: BlockWalker, checker: RecordChecker) -> int:
        """Check some records at the start of the walker's data; returns where they end."""
        self._report_gaps()
        error: Exception | None = walker.error
        fault: Fault | None = None
        if error is None:
            progress = checker.feed(walker.data, walker.final)
            fault = progress.fault
            error = None if fault is None else walker.fault_error(fault, plan=checker.plan)
            walker.advance(progress.records, progress.consumed)
            self.totals.add_intact(progress.records, progress.consumed)
            for content in progress.embedded:
                problem = checker.check_schema(content, walker.record, walker.offset)
                if problem is not None:
                    self.problems.add("schema", problem)
        end = walker.offset if walker.block is not None else walker.bytes
        if error is not None:
            self._handle(walker, error, is_other=fault is not None and fault.is_of_message)
        elif not progress.consumed and not progress.embedded:
            walker.read_on()
        return end

    def _handle(self, walker: BlockWalker, error: Exception, *, is_other: bool) -> None:
        """Report damage, and go on after it if that is possible; `is_other`: the payload may be another message."""
        if not isinstance(error, TFRecordError):
            raise error
        offset = walker.offset if walker.block is not None else walker.bytes
        self.totals.begin_problem(walker.record, offset, is_other=is_other)
        if walker.block is not None and not isinstance(error, CorruptRecordError):  # the frame is intact
            size = FrameHeader(walker.data[: FrameHeader.BYTES]).frame_size
            self.problems.add("records", error, walker.offset + size)
            if is_other:
                self.totals.add_other(size)
            walker.advance(1, size)
        elif walker.recover(error):
            self.problems.add("frames", error, None if error.region is None else error.region.end)
        else:
            self.problems.add("frames", error)
            walker.fail(error)

    def _has_no_examples(self) -> bool:
        """True if no record is an Example, and some are not valid messages of its form."""
        counts = self.contents.counts
        return self.totals.others > 0 and counts.seen == counts.foreign

    def _join_problems_of_others(self) -> None:
        """Make the problems of records that are not Examples one problem, as their frames are intact."""
        first = self.problems.first_of_records()
        error = RecordCounts.no_examples(self.source.path, first.reason, record=first.record or 0)
        self.problems.join_records(error, self.totals.others)
        self.totals.take_others_as_intact()

    def _report_gaps(self) -> None:
        """Report what was left out of a damaged compressed file since the last call."""
        for gap in [] if self._file is None else self._file.gaps[self._reported_gaps :]:
            path, offset = self.source.path, gap.offset
            self.problems.add(
                "compression",
                CompressionError(gap.text, path=path, offset=offset, hint=gap.hint, hint_cli=gap.hint_cli),
            )
            self._reported_gaps += 1

    # Other files ------------------------------------------------------------------------------------------------

    def _check_manifest(self, records: int | None) -> None:
        """Compare the number of records, if it is known, the size and the checksum with the manifest."""
        shard, path = self.source.shard, self.source.path
        assert shard is not None
        if self._summed is not None and self._summed.size == self.source.size:
            size, crc = self._summed.size, self._summed.crc
        else:
            size, crc = self.source.checksum(get_engine().crc32c)
        checks = [(shard.check_size, size), (shard.check_checksum, crc)]
        for check, value in [*([] if records is None else [(shard.check_records, records)]), *checks]:
            try:
                check(value, path)
            except TFRecordError as error:
                self.problems.add("manifest", error)

    def _check_index(self, index: Source, *, is_latest: bool = False) -> None:
        """Compare an index file with the headers of all records."""
        try:
            with RandomAccessFile.open_plain(self.source, "an index") as file:
                compare_index(self.source, index, file, self.options.limits.record_bytes)
        except (FileNotFoundError, ReplacedError) as error:
            self.source.check_unchanged()
            if isinstance(error, ReplacedError) and error.filename != index.path:
                raise
            # The index was removed or written again since files were looked up.
            listed_again = Files(Sources([self.source.replace(beside=None)]), self.options)
            for latest in () if is_latest else listed_again.find_all_indexes()[0]:
                if latest.path == index.path:
                    self._check_index(latest, is_latest=True)
        except TFRecordError as error:
            if error.path == index.path or self.totals.before_problem is None:  # else the damage has been reported
                self.problems.add("index", error)
