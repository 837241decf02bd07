"""Decode only the records that can pass a filter: its columns first, then all columns of those records.

A `FilteringDecoder` has two decoders of the engine, and takes the records of a block some at a time, in one of two
ways:

    in one go     `_main` decodes all columns of all records
    in two steps  `_filter` decodes the columns of the filter, `Prefilter.may_pass` says which records can pass, and
                  `_main` decodes all columns of these

`DecodingChoice` chooses the way that takes less time.

Tests: tests/read/chunks/test_filtering_decoder.py and tests/read/chunks/test_filtering_decoder_decoding_choice.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.base import Expansion
from tfrecord_io.bytes import (
    Array,
    Checks,
    ColumnBuffers,
    Decoder,
    Engine,
    Fault,
    FaultCode,
    FeatureColumns,
    FrameHeader,
    Plan,
    RecordCounts,
    RecordType,
)
from tfrecord_io.store import Block

_MOST_BYTES = 2**31 - 1
_LEAST_BYTES = 1 << 18  # of data that is worth a second step
_LEAST_RECORDS = 4  # fewer, as at the end of a segment, do not tell the share of records that pass
# Two steps take less time than one go and a copy of the rows up to this share of the bytes in records that pass; and up
# to a smaller one where the columns have few of the bytes, as the names of all features are read twice, or where the
# rows are not copied.
_FEW, _FEW_OF_COLUMNS, _FEW_COLUMNS, _FEW_WITHOUT_COPY = 0.98, 1.4, 0.1, 0.5
_TRIED_BLOCKS = 8  # where more pass, one of so many blocks begins with two steps,
_TRIED_PART = 16  # with this part of it


class DecodingChoice:
    """Choose between decoding the next records in one go and in two steps; that changes no result.

    In two steps, the columns of the filter are decoded first, and then all columns of the records that pass: as long as
    at most 98 % of the bytes that were decoded in two steps last are in records that pass, or fewer where there are
    many other features. The beginning of the first block is decoded in two steps to find that share, and of each eighth
    one to find it again. Decoders on several threads share it; they may overwrite each other's.
    """

    def __init__(self, *, copies: bool = True) -> None:
        # True: rows that pass are copied if not all pass. False: the caller gets all decoded rows.
        self.copies = copies
        self.share: float | None = None  # of the bytes, expected in records that pass; None: unknown
        self.of_columns = 1.0  # the bytes of a record's values in the columns / those of the record; 1 if unknown
        self._blocks = 0

    @property
    def in_two_steps(self) -> bool:
        limit = min(_FEW, _FEW_OF_COLUMNS * self.of_columns - _FEW_COLUMNS)
        return self.share is not None and self.share <= (limit if self.copies else _FEW_WITHOUT_COPY * limit)

    def next(self, available: int) -> tuple[bool, int | None]:
        """Decide if the next of `available` bytes are decoded in two steps, and at most how many; None: all."""
        if self.in_two_steps or available < _LEAST_BYTES:
            return self.in_two_steps, None
        block, self._blocks = self._blocks, self._blocks + 1
        is_tried = self.share is None or block % _TRIED_BLOCKS == 0
        return is_tried, available // _TRIED_PART if is_tried else None


@dataclass(frozen=True, slots=True)
class Prefilter:
    """A condition on records that needs some of the columns of a plan."""

    features: frozenset[str]  # the features of the columns that it needs
    # Takes these columns, by feature, and the number of their rows. Returns an array of bool: False for the rows that
    # are known not to pass. Any thread may call it.
    may_pass: Callable[[Mapping[str, ColumnBuffers], int], Array]
    choice: DecodingChoice = field(default_factory=DecodingChoice)


class _Step(NamedTuple):
    """Records that were decoded; `must_filter` if the next one is faulty and counts only if it passes."""

    records: int = 0
    consumed: int = 0
    fault: Fault | None = None
    embedded: tuple[bytes, ...] = ()
    must_filter: bool = False
    is_partial: bool = False  # more may follow


class FilteringDecoder:
    """A `tfrecord_io.bytes.engine.contract.Decoder` that leaves out rows which are known not to pass a filter.

    Its plan does not "discover" unknown features. All numbers of rows are of all records, so batches end where they
    would without the filter; the columns have the rows `kept`: the rows that pass, and some that do not, as was
    fastest to decode. The caller filters again.

    The framing, the checksum and the features' names of each record are checked, and the columns of the filter. The
    other columns are checked in records that may pass only: where a record is faulty that was decoded in one go, the
    filter decides whether that counts. So the fault that is found does not depend on the way of decoding.
    """

    def __init__(self, engine: Engine, plan: Plan, prefilter: Prefilter) -> None:
        self._engine, self._plan, self._prefilter = engine, plan, prefilter
        unfiltered = {column.name for column in plan.columns} - prefilter.features
        columns = tuple(column for column in plan.columns if column.name in prefilter.features)
        filter_plan = plan._replace(
            columns=columns,
            ignored=plan.ignored | unfiltered,
            max_features=max(0, plan.max_features - len(plan.columns) + len(columns)),
            max_expansion=None,
            keep_lengths=True,
        )
        self._filter = engine.decoder(filter_plan)
        self._main = engine.decoder(plan._replace(max_expansion=None))
        self._stopped: Decoder | None = None  # before a record with an embedded schema
        self._names: dict[FeatureColumns.Name, None] = {}
        self.rows = 0  # this and the next three are of the rows since the columns were taken
        self.value_bytes = 0
        self._kept: list[Array | range] = []  # numbers of rows
        self._lengths: list[Array] = []
        self.counts = RecordCounts()

    def _forget_rows(self) -> None:
        self.rows = self.value_bytes = 0
        self._kept, self._lengths = [], []

    @property
    def kept(self) -> Array | None:
        if sum(map(len, self._kept)) == self.rows:
            return None
        return np.concatenate([np.arange(r.start, r.stop) if isinstance(r, range) else r for r in self._kept])

    @property
    def new_names(self) -> list[FeatureColumns.Name]:
        return list(self._names)

    @property
    def integer_bytes(self) -> int:
        """The most that these may be: how many are decoded depends on the way of decoding."""
        return 8 * self.value_bytes

    def lengths(self, begin: int = 0) -> Array:
        return np.concatenate([np.empty(0, np.int64), *self._lengths])[begin:]

    @property
    def sequence(self) -> bool:
        return self._main.sequence or self._filter.sequence

    def know(self, names: Iterable[FeatureColumns.Name]) -> None:
        new_names = list(names)
        self._main.know(new_names)
        self._filter.know(new_names)

    def expect(self, payload_bytes: int) -> None:
        choice = self._prefilter.choice
        share = choice.share if choice.in_two_steps and choice.share is not None else 1.0
        self._main.expect(round(payload_bytes * share))

    def feed_file(self, file: Engine.FileView, begin: int, end: int, *, max_bytes: int) -> int:
        at, limit = begin, _MOST_BYTES if max_bytes < 0 else min(max_bytes, _MOST_BYTES)
        while at < end:
            consumed = self._step_of_file(file, at, end, limit - self.value_bytes)
            if not consumed:
                break
            at += consumed
        return at - begin

    def accept_embedded(self) -> None:
        assert self._stopped is not None
        self._stopped.accept_embedded()

    def take_columns(self) -> Mapping[str, ColumnBuffers]:
        self._forget_rows()
        return self._main.take_columns()

    def complete(self) -> None:
        self._main.complete()

    def clear(self) -> None:
        self._forget_rows()
        self.counts = RecordCounts()
        self._stopped = None
        self._main.clear()

    def append(self, part: FilteringDecoder, begin: int, end: int, payload_bytes: int) -> bool:
        is_whole = (begin, end) == (0, part.rows)
        all_alike = not part.counts.foreign and part.counts.seen in (0, part.rows)
        room = self._room()
        if part.new_names or self.sequence != part.sequence or not (is_whole or all_alike):
            return False
        if room is not None and end - begin > room:
            return False
        kept = np.arange(part.rows) if part.kept is None else part.kept
        first, last = np.searchsorted(kept, [begin, end]).tolist()
        size = part._main.value_bytes * (last - first) // max(len(kept), 1)
        if first < last and not self._main.append(part._main, first, last, size):
            return False
        self._kept.append(
            kept[first:last] + (self.rows - begin) if last - first < end - begin else self._next_rows(end - begin)
        )
        self.rows += end - begin
        self.value_bytes += payload_bytes
        if self._plan.keep_lengths:
            self._lengths.append(part.lengths(begin)[: end - begin])
        self.counts += part.counts if is_whole else RecordCounts(min(end - begin, part.counts.seen))
        return True

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Engine.Progress:
        block = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
        limit = _MOST_BYTES if max_bytes < 0 else min(max_bytes, _MOST_BYTES)
        records, at, must_filter = 0, begin, False
        while at < len(block) and records != max_records:
            room = self._room()
            if room is not None and room <= 0 and self.rows:
                return Engine.Progress(records, at - begin, full=True)
            most_records = max_records if max_records < 0 else max_records - records
            if room is not None:
                most_records = max(room, 1) if most_records < 0 else min(max(room, 1), most_records)
            step = self._step(block, at, most=most_records, limit=limit, final=final, must_filter=must_filter)
            fault = step.fault and step.fault._replace(record=step.fault.record + records)
            records, at = records + step.records, at + step.consumed
            if fault is not None or step.embedded:
                return Engine.Progress(records, at - begin, fault, step.embedded)
            must_filter = step.must_filter
            if not must_filter and not (step.records and (step.is_partial or step.records == most_records)):
                break
        return Engine.Progress(records, at - begin)

    def _room(self) -> int | None:
        """How many further rows `max_expansion` allows, if it limits them."""
        limit, columns = self._plan.max_expansion, len(self._plan.columns)
        if limit is None or not columns:
            return None
        return (limit + Expansion.RATIO * self.value_bytes) // (Expansion.BYTES_PER_CELL * columns) - self.rows

    def _step(self, block: Array, at: int, most: int, limit: int, final: bool, *, must_filter: bool) -> _Step:
        """Decode records in one of the ways; at most so many, and up to so many payload bytes of all rows held."""
        if self._main.sequence and not self._filter.sequence:  # once a record was one, all that follow are
            self._filter = self._engine.decoder(self._filter.plan._replace(record_type=RecordType.SEQUENCE_EXAMPLE))
            self._filter.know(self._names)
        in_two_steps, size = self._prefilter.choice.next(len(block) - at)
        if must_filter or (self._filter.sequence and not self._main.sequence):
            in_two_steps, size = True, None
        if self._stopped is not None:
            in_two_steps, self._stopped = self._stopped is self._filter, None
        left = limit - self.value_bytes
        if self.rows and (left < 0 or (left < len(block) - at and self._next_length(block, at) > left)):
            return _Step()
        if size is not None:
            left = min(left, max(size, self._next_length(block, at)))

        def feed(decoder: Engine.Decoder) -> Engine.Progress:
            return decoder.feed(block, at, max_records=most, max_bytes=decoder.value_bytes + left, final=final)

        step = self._decode_in_two_steps(feed, block, at) if in_two_steps else self._decode_whole(feed)
        return step if size is None else step._replace(is_partial=True)

    def _step_of_file(self, file: Engine.FileView, at: int, end: int, left: int) -> int:
        """Decode records of a file in one of the ways, unless a limit may be near; returns how many bytes they have."""
        room = self._room()
        if left < end - at or self._stopped is not None or self._main.sequence != self._filter.sequence:
            return 0
        if room is not None and room <= 0:
            return 0
        in_two_steps, size = self._prefilter.choice.next(end - at)
        stop = end if size is None else min(end, at + size)

        def feed(decoder: Engine.Decoder) -> Engine.Progress:
            max_records, max_bytes = -1 if room is None else room, decoder.value_bytes + left
            consumed = decoder.feed_file(
                file, at, stop, max_records=max_records, max_bytes=max_bytes, keeps=decoder is self._filter
            )
            return Engine.Progress(0, consumed)

        step = (
            self._decode_in_two_steps(feed, file.memory, at % Block.PAGE) if in_two_steps else self._decode_whole(feed)
        )
        return step.consumed

    def _next_length(self, block: Array, at: int) -> int:
        """Payload bytes of the next record; 0 if that is faulty or truncated."""
        limit = self._plan.max_record_bytes
        checks = Checks.from_check_crc(self._plan.check_crc)
        frames, _ = self._engine.scan(block, at, max_records=1, checks=checks, max_record_bytes=limit, final=False)
        return int(frames.lengths.sum())

    def _share_names(self, met: Decoder, other: Decoder) -> None:
        """Count the new names of one decoder in the second decoder, too."""
        if len(met.new_names) and (new := [name for name in met.new_names if name not in self._names]):
            self._names.update(dict.fromkeys(new))
            other.know(new)

    def _decode_whole(self, feed: Callable[[Engine.Decoder], Engine.Progress]) -> _Step:
        """Decode records in one go."""
        main = self._main
        counts, rows, size = main.counts, main.rows, main.value_bytes
        progress = feed(main)
        size = main.value_bytes - size
        lengths = main.lengths(rows) if self._plan.keep_lengths else None
        self._count(main.rows - rows, size, main.counts - counts, lengths)
        self._share_names(main, self._filter)
        fault = progress.fault
        if fault is not None and fault.code >= FaultCode.VARINT_TRUNCATED:  # it counts if the record may pass
            return _Step(progress.records, progress.consumed, must_filter=True)
        self._stopped = main if progress.embedded else None
        return _Step(progress.records, progress.consumed, fault, progress.embedded)

    def _decode_in_two_steps(self, feed: Callable[[Engine.Decoder], Engine.Progress], block: Array, at: int) -> _Step:
        """Decode the columns of the filter, then all columns of the records that may pass; the first record is `at`."""
        first = self._filter
        counts, was_sequence = first.counts, first.sequence
        progress = feed(first)
        rows, size, lengths = first.rows, first.value_bytes, first.lengths()
        mask = self._prefilter.may_pass(first.take_columns(), rows) if rows else np.empty(0, bool)
        kept = np.flatnonzero(mask)
        self._share_names(first, self._main)
        main, choice = self._main, self._prefilter.choice
        value_bytes, column_bytes = main.value_bytes, main.column_bytes
        fault = self._decode_kept(block, at, lengths, mask) if len(kept) else None
        passing = main.value_bytes - value_bytes
        if size and (rows >= _LEAST_RECORDS or choice.share is None):
            choice.share = passing / size
        if passing:
            choice.of_columns = (main.column_bytes - column_bytes) / passing
        if fault is not None:
            return self._count_before(
                fault, block, at=at, kept=kept, lengths=lengths[: fault.record], was_sequence=was_sequence
            )
        self._count(rows, size, counts=first.counts - counts, lengths=lengths, kept=kept)
        self._stopped = first if progress.embedded else None
        fault = progress.fault
        if fault is not None and fault.code is FaultCode.TOO_MANY_FEATURES:  # of as many as the whole plan allows
            moved = len(self._plan.columns) - len(first.plan.columns)
            fault = fault._replace(expected=fault.expected + moved, got=fault.got + moved)
        return _Step(progress.records, progress.consumed, fault, progress.embedded)

    def _decode_kept(self, block: Array, at: int, lengths: Array, mask: Array) -> Fault | None:
        """Decode all columns of some of the records from `at` on; the fault of the first one that is faulty."""
        row = 0
        while row < len(lengths):
            progress = self._main.feed_kept(block, at, lengths[row:], mask[row:])
            row, at = row + progress.records, at + progress.consumed
            if progress.fault is not None:
                return progress.fault._replace(record=row)
            self._main.accept_embedded()  # they were checked with the columns of the filter
        return None

    def _count_before(
        self, fault: Fault, block: Array, at: int, kept: Array, lengths: Array, was_sequence: bool
    ) -> _Step:
        """Count the records before one that passes and is faulty: the filter's columns of these are decoded again."""
        rows = len(lengths)
        type_ = RecordType.SEQUENCE_EXAMPLE if was_sequence else self._filter.plan.record_type
        again = self._engine.decoder(self._filter.plan._replace(record_type=type_, stop_at_embedded=False))
        again.know(self._names)
        if rows:
            again.feed(block, at, max_records=rows)
        size = int(lengths.sum())
        self._count(rows, size, counts=again.counts, lengths=lengths, kept=kept[kept < rows])
        consumed = size + rows * FrameHeader.FRAME_BYTES
        return _Step(rows, consumed, fault._replace(offset=at + consumed))

    def _next_rows(self, rows: int) -> range:
        """The numbers of the next rows."""
        return range(self.rows, self.rows + rows)

    def _count(
        self, rows: int, size: int, counts: RecordCounts, lengths: Array | None, kept: Array | None = None
    ) -> None:
        """Count records that were decoded, and `size` payload bytes; `kept` are those with columns, None: all."""
        if lengths is not None and self._plan.keep_lengths:
            self._lengths.append(lengths)
        self._kept.append(self._next_rows(rows) if kept is None or len(kept) == rows else kept + self.rows)
        self.rows += rows
        self.value_bytes += size
        self.counts += counts
