"""Check one file: frames, checksums and messages, embedded schema, manifest and index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tfrecord_io.apps.tools.build_index import compare_index
from tfrecord_io.base import LIMITS, Flag, FrameOptions, ProgressMeter, error_dict
from tfrecord_io.bytes import (
    HEADER_BYTES,
    RECORD_TYPES,
    Decoder,
    Fault,
    FeatureName,
    Kind,
    Layout,
    Plan,
    PlanColumn,
    Progress,
    RecordCounts,
    RecordType,
    Text,
    crc32c,
    frame_size,
    get_engine,
    is_about_no_examples,
    is_wire_fault,
    no_examples,
    not_examples,
)
from tfrecord_io.columns import EmbeddedSchema, EmbeddedSchemaUnreadable, equal_types, plan_columns, unpack
from tfrecord_io.errors import (
    CompressionError,
    CorruptRecordError,
    FeatureTypeError,
    ReplacedError,
    SchemaError,
    TFRecordError,
)
from tfrecord_io.read import BlockWalker, RecordFile, Recovery, SegmentWalk, SkippedRegion, find_again, segment_pool
from tfrecord_io.store import RandomAccessFile, Source, SummedFile

MOST_PROBLEMS = 100  # that are kept for each file
_OF_RECORDS = frozenset({"frames", "records", "compression", "images"})  # parts of which a problem is a region
_MAX_EXPANSION = 64 << 20
_PARSED_BYTES = 1 << 20  # of payloads at a time, so that records of many names take little memory
_MOST_PLANNED = 10_000  # features whose types are compared over the whole file


class Stopped(Exception):
    """The caller has set the event that stops the check."""


@dataclass(slots=True)
class FileContents:
    """Schema and features of the good records of a file."""

    schema: EmbeddedSchema | None = None  # the embedded schema
    # Feature type of each feature with values that the schema does not have, by name and True for a feature list.
    kinds: dict[tuple[str, bool], Kind] = field(default_factory=dict)
    sequence: bool = False  # True if records are SequenceExamples
    counts: RecordCounts = field(default_factory=RecordCounts)


class RecordPart:
    """Parses the records of a segment by a plan, in a thread, independent of earlier records."""

    def __init__(self, plan: Plan | None, max_record_bytes: int) -> None:
        self.plan = plan  # None: only frames are checked
        self.decoder = None if plan is None else get_engine().decoder(plan)
        self.is_plain = True  # so far no embedded schema, and no values of features outside the plan
        self._max_record_bytes = max_record_bytes

    def __call__(self, data: Any, final: bool) -> tuple[int, int, Fault | None]:
        """Check records as a `tfrecord_io.read.chunks.block_walker.Step`; stops at the first that is not plain."""
        if self.plan is None or self.decoder is None:
            frames, fault = get_engine().scan(data, max_record_bytes=self._max_record_bytes, final=final)
            return len(frames.starts), frames.consumed, fault
        records = consumed = 0
        while self.is_plain:
            progress = self.decoder.feed(data, consumed, max_bytes=_PARSED_BYTES, final=final)
            records, consumed = records + progress.records, consumed + progress.consumed
            kinds = _kinds(self.decoder, self.plan)
            self.is_plain = not progress.embedded and not kinds
            if not progress.consumed or progress.fault is not None:
                return records, consumed, progress.fault
        return records, consumed, None


class RecordChecker:
    """Parses all values of records, and discards them.

    A feature must have one type: that of the embedded schema or, without one, of the first record that has values.
    """

    def __init__(self, contents: FileContents, path: str, record_type: str | None, max_record_bytes: int) -> None:
        self._contents, self._path = contents, path
        self._engine = get_engine()
        self._max_record_bytes = max_record_bytes
        self.plan: Plan | None = None  # None: only frames are checked
        self._decoder: Decoder | None = None
        if record_type != "bytes":
            self._decode_by(
                Plan(
                    text=Text.NO,
                    record_type=RECORD_TYPES[record_type],
                    max_record_bytes=max_record_bytes,
                    max_expansion=_MAX_EXPANSION,
                    names_in_both=True,
                    stop_at_embedded=True,
                )
            )

    def feed(self, data: Any, final: bool) -> Progress:
        """Check some of the records in `data`; where this stops at an embedded schema, call `check_schema`."""
        if self._decoder is None:
            frames, fault = self._engine.scan(data, max_record_bytes=self._max_record_bytes, final=final)
            return Progress(len(frames.starts), frames.consumed, fault)
        progress = self._decoder.feed(data, max_bytes=_PARSED_BYTES, final=final)
        kinds = _kinds(self._decoder, self.plan)
        if kinds and len(self._contents.kinds) < _MOST_PLANNED:
            self._contents.kinds = kinds | self._contents.kinds
            columns = [
                PlanColumn(name, kind, Layout.ANY, Text.NO, steps=steps)
                for (name, steps), kind in self._contents.kinds.items()
            ]
            assert self.plan is not None
            if len(columns) > len(self.plan.columns):
                self._decode_by(replace(self.plan, columns=tuple(columns), record_type=self._record_type()))
        return progress

    def part(self) -> RecordPart:
        """Make a checker of records that follow, to run beside this one; see `join`."""
        return RecordPart(self.plan, self._max_record_bytes)

    def join(self, part: RecordPart) -> bool:
        """True if the records of a faultless part bring nothing new; then they count as checked."""
        if part.plan is not self.plan:
            return False
        if part.decoder is not None and self._decoder is not None:
            is_known = set(part.decoder.new_names) <= set(self._decoder.new_names)
            if not part.is_plain or not is_known or part.decoder.sequence != self._decoder.sequence:
                return False
            self._contents.counts += part.decoder.counts
        return True

    def check_schema(self, content: bytes, record: int, offset: int) -> SchemaError | None:
        """Check the embedded schema of the next record, and decode the record by it; return the fault."""
        assert self._decoder is not None
        schema, error = self._contents.schema, None
        try:
            embedded = unpack(content)
        except EmbeddedSchemaUnreadable as unreadable:
            error = unreadable.reason
        else:
            if schema is None:
                self._contents.schema = embedded
                self._plan_schema(embedded)
            elif not equal_types(schema.schema, embedded.schema):
                error = "it carries an embedded schema that differs from that of the file's first record"
        self._decoder.accept_embedded()
        return None if error is None else SchemaError(error, path=self._path, record=record, offset=offset)

    def finish(self) -> None:
        """Add the last records to the contents."""
        if self._decoder is not None:
            self._contents.counts += self._decoder.counts
            self._contents.sequence |= self._decoder.sequence

    def _decode_by(self, plan: Plan) -> None:
        self.finish()
        self.plan, self._decoder = plan, self._engine.decoder(plan)

    def _plan_schema(self, embedded: EmbeddedSchema) -> None:
        assert self.plan is not None
        compiled = plan_columns(embedded.schema)
        self._contents.kinds = {}
        has_steps = any(column.steps for column in compiled.columns)
        record_type = RecordType.SEQUENCE_EXAMPLE if has_steps else self._record_type()
        plan = replace(self.plan, columns=compiled.columns, ignored=compiled.ignored, unknown="fault")
        self._decode_by(replace(plan, record_type=record_type))

    def _record_type(self) -> RecordType:
        assert self.plan is not None
        assert self._decoder is not None
        return RecordType.SEQUENCE_EXAMPLE if self._decoder.sequence else self.plan.record_type


def _kinds(decoder: Decoder, plan: Plan | None) -> dict[FeatureName, Kind]:
    """Take the rows from a decoder; return the feature types of names outside the plan that have values."""
    columns = decoder.take_columns().values()
    new = [] if plan is None or not decoder.new_names else [*columns][len(plan.columns) :]
    kinds = [(column, column.kind if column.steps is None else column.steps.kind) for column in new]
    return {(column.name, column.steps is not None): Kind(kind) for column, kind in kinds if kind != Kind.NONE}


@dataclass(frozen=True, slots=True)
class Problem:
    """Fault of a file.

    Attributes
    ----------
    part : str
        Part of the file: "frames", "compression", "records" (payloads that are not valid, or contradict the schema),
        "schema" (the embedded one), "manifest", "index", "storage" or "images".
    error : TFRecordError or OSError
        As reading would raise it.
    end : int or None
        Where the intact bytes of the uncompressed file go on, after damaged records: one or several.
    """

    part: str
    error: TFRecordError | OSError
    end: int | None = None

    @property
    def record(self) -> int | None:
        """Index of the record in its file; of several damaged ones the first."""
        return getattr(self.error, "record", None)

    @property
    def offset(self) -> int | None:
        """First byte of the record, in the uncompressed file."""
        return getattr(self.error, "offset", None)

    @property
    def reason(self) -> str:
        """The fault, in a clause."""
        return getattr(self.error, "reason", None) or str(self.error)

    def to_dict(self) -> dict[str, Any]:
        names = ("part", "record", "offset", "end", "reason")
        return {**{name: getattr(self, name) for name in names}, "error": error_dict(self.error)}


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The result of `verify` for one file.

    Attributes
    ----------
    path : str
    records, bytes : int
        Number of records before the first damage, and their uncompressed bytes.
    record_type : str
        As which records were parsed; "bytes": only framing was checked.
    error : TFRecordError or OSError, optional
        Of the first problem.
    intact, intact_bytes : int
        Number of all records without a problem, those after damage included, and their uncompressed bytes. Of a file
        whose records are not Examples: those with intact frames.
    compression : str or None
        None: not compressed.
    problems : tuple of Problem
        The first 100; of a dataset with ``on_error="collect"``, all.
    problem_count : int
        The number of all.
    size : int or None
        Bytes of the file as it is stored, compressed or not; None: unknown, as of a pipe.
    images, bad_images : int or None
        Number of the images that were checked, and of those with a problem, which are in intact records; None: images
        were not checked.
    """

    path: str
    records: int
    bytes: int
    record_type: str
    error: TFRecordError | OSError | None = None
    intact: int = 0
    intact_bytes: int = 0
    compression: str | None = None
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    size: int | None = None
    images: int | None = None
    bad_images: int | None = None

    @property
    def status(self) -> str:
        """ "good", "damaged", "mixed types", "bad images", "not Examples" or "unreadable".

        "mixed types": all records are intact, but a feature has values of several feature types. "bad images": the file
        is good, but for its images. "not Examples": all records are intact, and none is an Example or SequenceExample.
        "unreadable": the storage failed.
        """
        if self.problem_count == 0:
            return "good"
        if all(problem.part == "images" for problem in self.problems):
            return "bad images"
        if all(isinstance(problem.error, FeatureTypeError) for problem in self.problems):
            return "mixed types"
        if all(is_about_no_examples(problem.error) for problem in self.problems):
            return "not Examples"
        return "unreadable" if any(problem.part == "storage" for problem in self.problems) else "damaged"

    @property
    def regions(self) -> list[SkippedRegion]:
        """The damaged regions of the file: the problems of its records, which name one or a byte."""
        return [
            SkippedRegion(
                self.path,
                begin=each.offset,
                end=each.end,
                reason=each.reason,
                records_before=each.record or 0,
                error=type(each.error).__name__,
            )
            for each in self.problems
            if each.part in _OF_RECORDS and not (each.record is None and each.offset is None)
        ]

    def with_problem(self, problem: Problem) -> FileCheck:
        """Return this result with one more problem."""
        return self.with_problems([problem], 1)

    def with_problems(self, problems: Sequence[Problem], count: int, *, keeps_all: bool = False) -> FileCheck:
        """Return this result with the first of `count` more problems; 100 are kept together, unless `keeps_all`."""
        room = len(problems) if keeps_all else max(0, MOST_PROBLEMS - len(self.problems))
        return replace(
            self,
            error=self.error or (problems[0].error if problems else None),
            problems=(*self.problems, *problems[:room]),
            problem_count=self.problem_count + count,
        )

    def to_dict(self) -> dict[str, Any]:
        names = ["path", "status", "size", "records", "bytes", "intact", "intact_bytes", "compression", "record_type"]
        names += [] if self.images is None else ["images", "bad_images"]
        problems = [problem.to_dict() for problem in self.problems]
        values = {name: getattr(self, name) for name in names}
        counted = {"problem_count": self.problem_count, "problems": problems}
        return {**values, "error": error_dict(self.error), **counted}


@dataclass(slots=True)
class FileChecker:
    """Checks a file; see `check`. The options are those of `tfrecord_io.verify`, with the threads for this file."""

    source: Source
    index: Source | None
    record_type: str | None
    options: FrameOptions
    progress: ProgressMeter
    stopped: Flag
    contents: FileContents = field(default_factory=FileContents)  # filled by `check`
    _file: RecordFile | None = None
    _summed: SummedFile | None = None
    _problems: list[Problem] = field(default_factory=list)
    _count: int = 0
    _gaps: int = 0  # of the compressed file that were reported
    _intact: int = 0
    _intact_bytes: int = 0
    _before: tuple[int, int] | None = None  # records and bytes before the first damage
    _before_damage: tuple[int, int] | None = None  # the same, but records that are not Examples do not end the count
    _others: int = 0  # records with intact frames that are not Examples
    _other_bytes: int = 0

    def check(self) -> FileCheck:
        """Check everything.

        Raises
        ------
        OSError
            The file cannot be opened or read.
        Stopped
            `stopped` was set.
        """
        if self.index is None or not self.source.is_small:
            return self._check()
        self.source = self.source.holding()  # as the index is compared with the content, too
        try:
            with RandomAccessFile.open(self.source) as file:
                file.read(0, file.size)
            return self._check()
        finally:
            if self.source.held is not None:
                self.source.held.drop()

    def _check(self) -> FileCheck:
        source = self.source
        if source.shard is None and self.index is None:
            source.read_once()
        records, end = self._check_records()
        if self._has_no_examples():
            end = self._intact_bytes
        if self._before is not None:
            records, end = self._before
        elif self.record_type != "bytes" and not self._problems:
            error = not_examples(self.contents.counts, source.path, is_declared=self.record_type is not None)
            if error is not None:
                self._add("records", error)
        if source.shard is not None:
            self._check_manifest(None if self._before is not None else records)
        compression = None if self._file is None else self._file.compression
        if self.index is not None and compression is None:
            self._check_index(self.index)
        if self._problems:  # what was compared may be of two versions
            source.check_unchanged()
        sequence = "sequence_example" if self.contents.sequence else "example"
        return FileCheck(
            path=source.path,
            records=records,
            bytes=end,
            record_type="bytes" if self.record_type == "bytes" else sequence,
            error=self._problems[0].error if self._problems else None,
            intact=self._intact,
            intact_bytes=self._intact_bytes,
            compression=compression,
            problems=tuple(self._problems if self.options.damage.hands_over else self._problems[:MOST_PROBLEMS]),
            problem_count=self._count,
            size=source.size,
        )

    def _add(self, part: str, error: TFRecordError | OSError, end: int | None = None) -> None:
        """Add a problem; consecutive damaged records are one problem."""
        last = self._problems[-1] if self._problems else None
        if last is not None and part == last.part == "frames" and last.end == getattr(error, "offset", None):
            self._problems[-1] = replace(last, end=end)
            return
        self._count += 1
        if self.options.damage.hands_over or self._number_of_alike(part) < MOST_PROBLEMS:
            self._problems.append(Problem(part, error, end))

    def _number_of_alike(self, part: str) -> int:
        """The number of problems kept of records, or of all else: many records may be one, see `_has_no_examples`."""
        return sum((problem.part == "records") == (part == "records") for problem in self._problems)

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
            with segment_pool(self.options.thread_count) as pool:
                walk = SegmentWalk(pool, checker.part, checker.join, max_record_bytes=self.options.limits.record_bytes)
                while walker.load():
                    if self.stopped.is_set:
                        raise Stopped
                    end = self._check_segments(walker, walk) or self._check_block(walker, checker)
        except TFRecordError as error:  # of a file that is not compressed as stated
            self._add("compression", error)
            self._before = 0, 0
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
        self._intact += records
        self._intact_bytes += walker.bytes - before
        return begin + walker.bytes - before if records else 0

    def _open(self, source: Source) -> RecordFile:
        ratio = self.options.limits.decompression_ratio
        raw = None if source.remote is None else source.open_whole(LIMITS.pending_range_bytes)
        # The manifest states the checksum of a file: a remote one is read once for that and its records.
        if raw is not None and source.shard is not None:
            raw = self._summed = SummedFile(raw, crc32c)
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
            self._intact += progress.records
            self._intact_bytes += progress.consumed
            for content in progress.embedded:
                problem = checker.check_schema(content, walker.record, walker.offset)
                if problem is not None:
                    self._add("schema", problem)
        end = walker.offset if walker.block is not None else walker.bytes
        if error is not None:
            self._handle(walker, error, is_other=fault is not None and is_wire_fault(fault))
        elif not progress.consumed and not progress.embedded:
            walker.read_on()
        return end

    def _handle(self, walker: BlockWalker, error: Exception, *, is_other: bool) -> None:
        """Report damage, and go on behind it if that is possible; `is_other`: the payload may be another message."""
        if not isinstance(error, TFRecordError):
            raise error
        if self._before is None:
            self._before = walker.record, walker.offset
        if self._before_damage is None and not is_other:
            self._before_damage = walker.record, walker.offset
        if not isinstance(error, CorruptRecordError):  # the frame is intact
            size = frame_size(walker.data[:HEADER_BYTES])
            self._add("records", error, walker.offset + size)
            if is_other:
                self._others, self._other_bytes = self._others + 1, self._other_bytes + size
            walker.advance(1, size)
        elif walker.recover(error):
            self._add("frames", error, None if error.region is None else error.region.end)
        else:
            self._add("frames", error)
            walker.fail(error)

    def _has_no_examples(self) -> bool:
        """True if no record is an Example: all together are one problem, as the frames are intact."""
        counts = self.contents.counts
        if not self._others or counts.seen != counts.foreign:
            return False
        first = next(problem for problem in self._problems if problem.part == "records")
        error = no_examples(self.source.path, first.reason, record=first.record or 0)
        other_problems = [problem for problem in self._problems if problem.part != "records"]
        self._problems, self._count = [Problem("records", error), *other_problems], self._count - self._others + 1
        self._before = self._before_damage
        self._intact, self._intact_bytes = self._intact + self._others, self._intact_bytes + self._other_bytes
        return True

    def _report_gaps(self) -> None:
        """Report what was left out of a damaged compressed file since the last call."""
        for gap in [] if self._file is None else self._file.gaps[self._gaps :]:
            path, offset = self.source.path, gap.offset
            self._add(
                "compression",
                CompressionError(gap.text, path=path, offset=offset, hint=gap.hint, hint_cli=gap.hint_cli),
            )
            self._gaps += 1

    # Other files ------------------------------------------------------------------------------------------------

    def _check_manifest(self, records: int | None) -> None:
        """Compare the number of records, if it is known, the size and the checksum with the manifest."""
        shard, path = self.source.shard, self.source.path
        assert shard is not None
        if self._summed is not None and self._summed.size == self.source.size:
            size, crc = self._summed.size, self._summed.crc
        else:
            size, crc = self.source.checksum(crc32c)
        checks = [(shard.check_size, size), (shard.check_checksum, crc)]
        for check, value in [*([] if records is None else [(shard.check_records, records)]), *checks]:
            try:
                check(value, path)
            except TFRecordError as error:
                self._add("manifest", error)

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
            if not is_latest and (latest := find_again(self.source)) is not None:
                self._check_index(latest, is_latest=True)
        except TFRecordError as error:
            if error.path == index.path or self._before is None:  # else the damage has been reported
                self._add("index", error)
