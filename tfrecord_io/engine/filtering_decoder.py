"""Decode only the records that can pass a filter: its columns first, then all columns of those records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.engine.contract import (
    Array,
    ColumnBuffers,
    Decoder,
    Engine,
    Fault,
    FaultCode,
    FeatureName,
    Frames,
    Plan,
    Progress,
    RecordCounts,
)
from tfrecord_io.engine.decoded_columns import by_feature
from tfrecord_io.format.expansion import BYTES_PER_CELL, RATIO
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.format.kinds import RecordType

_MOST_BYTES = 2**31 - 1
_LEAST_BYTES = 1 << 19  # decoded in one go before anything is tried
_FIRST_BYTES = 1 << 20  # of the first attempt
_HOPELESS = 3  # times as long as in one go: the first attempt, which takes longest, is not repeated soon
_TRIED_SHARE = 0.05  # of the time, after the second attempt
_CLEARLY_TRIED_SHARE = 0.02  # the same where one way takes far longer
_CLEARLY = 0.75  # of the time of the other way
_MANY = 0.5  # share of the bytes in records that pass from which on two steps hardly pay
_GAIN = 0.95  # the time that decoding in two steps may take at most, in comparison
_KEPT = 0.7  # of the weight of earlier measurements, after each


@dataclass(slots=True)
class _Rate:
    """An amount for each byte, the last measurements counting most."""

    amount: float = 0.0
    size: float = 0.0

    @property
    def value(self) -> float | None:
        return self.amount / self.size if self.size else None

    def add(self, amount: float, size: int) -> None:
        if size:
            self.amount, self.size = _KEPT * self.amount + amount, _KEPT * self.size + size


class DecodingChoice:
    """Which way of decoding is faster for the next records of a read, by those decoded so far.

    All columns of all records are decoded in one go, or the columns of the filter first and then all columns of the
    records that pass. The way changes no result. Decoders on several threads share it: what one thread overwrites of
    another is a measurement.

    Attributes
    ----------
    fixed : bool or None
        Always or never decode in two steps; None: as measured.
    """

    def __init__(self, fixed: bool | None = None) -> None:
        self.fixed = fixed
        self._whole, self._selection, self._filter, self._passing = _Rate(), _Rate(), _Rate(), _Rate()
        self._share = _Rate()  # of the bytes, in records that pass
        self._seconds = self._tried_seconds = 0.0
        self._bytes = self._attempts = 0

    @property
    def in_two_steps(self) -> bool:
        """Whether two steps take less time."""
        if self.fixed is not None:
            return self.fixed
        return self._filter.value is not None and 0 < self._ratio() < _GAIN

    @property
    def share(self) -> float:
        """The share of the bytes that are expected in records that pass; 1 if unknown."""
        return 1.0 if self._share.value is None else min(1.0, self._share.value)

    def next(self, available: int) -> tuple[bool, int | None]:
        """Whether to decode the next of `available` bytes in two steps, and at most how many of them; None: all."""
        best = self.in_two_steps
        if self.fixed is not None or available < _FIRST_BYTES:
            return best, None
        if self._bytes < _LEAST_BYTES:
            return False, _LEAST_BYTES
        if self._attempts == 0:
            return True, _FIRST_BYTES
        hardly_pays = self.share >= _MANY and not best
        if self._attempts == 1 and self._ratio() < _HOPELESS and not hardly_pays:
            return True, None
        is_clear = hardly_pays or not _CLEARLY < self._ratio() < 1 / _CLEARLY
        tries = self._tried_seconds < (_CLEARLY_TRIED_SHARE if is_clear else _TRIED_SHARE) * self._seconds
        return best != tries, _FIRST_BYTES if tries else None

    def _ratio(self) -> float:
        """How long two steps take, in comparison with one go; 0 if that is unknown."""
        whole, first, share = self._whole.value, self._filter.value, self._share.value
        if whole is None or first is None or share is None:
            return 0.0
        second = whole if self._passing.value is None else self._passing.value
        whole += self._selection.value or 0.0
        return (first + share * second) / whole if whole else 1.0

    def note_whole(self, size: int, seconds: float) -> None:
        """Count records that were decoded in one go."""
        self._count(size, seconds, tried=self.in_two_steps)
        self._whole.add(seconds, size)

    def note_selection(self, size: int, seconds: float) -> None:
        """Count how long it took to copy the rows that pass, of records that were all decoded in one go."""
        self._selection.add(seconds, size)

    def note_two_steps(self, size: int, seconds: float, passing: int, passing_seconds: float) -> None:
        """Count records that were decoded in two steps, the second step of which was that of `passing` bytes."""
        self._count(size, seconds + passing_seconds, tried=not self.in_two_steps)
        if self._attempts == 1 and size:
            self._filter, self._passing = _Rate(), _Rate()  # the first attempt was slow
        self._attempts += size > 0
        self._filter.add(seconds, size)
        self._passing.add(passing_seconds, passing)
        self._share.add(passing, size)

    def _count(self, size: int, seconds: float, *, tried: bool) -> None:
        self._bytes += size
        self._seconds += seconds
        if tried:
            self._tried_seconds += seconds


@dataclass(frozen=True, slots=True)
class Prefilter:
    """A condition on records that needs some of the columns of a plan.

    Attributes
    ----------
    features : frozenset of str
        The features of the columns that it needs.
    may_pass : callable
        Takes these columns, by feature, and the number of their rows. Returns an array of bool: False for the rows that
        are known not to pass. Any thread may call it.
    choice : DecodingChoice
    """

    features: frozenset[str]
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
    """A `tfrecord_io.engine.contract.Decoder` that leaves out rows which are known not to pass a filter.

    All numbers of rows are of all records, so batches end where they would without the filter; the columns have the
    rows `kept`. These are the rows that pass, and others, which depend on how it was fastest to decode: the caller
    filters again.

    The framing, the checksum and the features' names of each record are checked, and the columns of the filter. The
    other columns are checked in records that may pass only: where a record is faulty that was decoded in one go, the
    filter decides whether that counts. So the fault that is found does not depend on the way of decoding.

    Parameters
    ----------
    engine : Engine
    plan : Plan
        Its unknown features are not "discover"ed.
    prefilter : Prefilter
    """

    def __init__(self, engine: Engine, plan: Plan, prefilter: Prefilter) -> None:
        self._engine, self._plan, self._prefilter = engine, plan, prefilter
        others = {column.name for column in plan.columns} - prefilter.features
        columns = tuple(column for column in plan.columns if column.name in prefilter.features)
        self._moved = len(plan.columns) - len(columns)
        self._filter_plan = replace(
            plan,
            columns=columns,
            ignored=plan.ignored | others,
            max_features=max(0, plan.max_features - self._moved),
            max_expansion=None,
            keep_lengths=True,
        )
        self._filter = engine.decoder(self._filter_plan)
        self._main = engine.decoder(replace(plan, max_expansion=None, keep_lengths=True))
        self._stopped: Decoder | None = None  # before a record with an embedded schema
        self._names: dict[FeatureName, None] = {}
        self._start()
        self.counts = RecordCounts()

    def _start(self) -> None:
        self.rows = self.value_bytes = 0
        self._kept: list[Array | range] = []  # numbers of rows
        self._lengths: list[Array] = []

    @property
    def kept(self) -> Array | None:
        """The numbers of the rows that the columns have; None: all."""
        if sum(map(len, self._kept)) == self.rows:
            return None
        return np.concatenate([np.asarray(rows, np.int64) for rows in self._kept])

    @property
    def new_names(self) -> list[FeatureName]:
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

    def know(self, names: Iterable[FeatureName]) -> None:
        known = list(names)
        self._main.know(known)
        self._filter.know(known)

    def expect(self, payload_bytes: int) -> None:
        choice = self._prefilter.choice
        self._main.expect(round(payload_bytes * choice.share) if choice.in_two_steps else payload_bytes)

    def accept_embedded(self) -> None:
        assert self._stopped is not None
        self._stopped.accept_embedded()

    def take(self) -> Sequence[ColumnBuffers]:
        self._start()
        return self._main.take()

    def complete(self) -> None:
        self._main.complete()

    def clear(self) -> None:
        self._start()
        self.counts = RecordCounts()
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
            kept[first:last] + (self.rows - begin) if last - first < end - begin else self._next(end - begin)
        )
        self.rows += end - begin
        self.value_bytes += payload_bytes
        self._lengths.append(part.lengths(begin)[: end - begin])
        self.counts += part.counts if is_whole else RecordCounts(min(end - begin, part.counts.seen))
        return True

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        block = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
        limit = _MOST_BYTES if max_bytes < 0 else min(max_bytes, _MOST_BYTES)
        records, at, must_filter = 0, begin, False
        while at < len(block) and records != max_records:
            room = self._room()
            if room is not None and room <= 0 and self.rows:
                return Progress(records, at - begin, full=True)
            most = max_records if max_records < 0 else max_records - records
            if room is not None:
                most = max(room, 1) if most < 0 else min(max(room, 1), most)
            step = self._step(block, at, most, limit, final, must_filter=must_filter)
            fault = step.fault and replace(step.fault, record=step.fault.record + records)
            records, at = records + step.records, at + step.consumed
            if fault is not None or step.embedded:
                return Progress(records, at - begin, fault, step.embedded)
            must_filter = step.must_filter
            if not must_filter and not (step.records and (step.is_partial or step.records == most)):
                break
        return Progress(records, at - begin)

    def _room(self) -> int | None:
        """How many further rows `max_expansion` allows, if it limits them."""
        limit, columns = self._plan.max_expansion, len(self._plan.columns)
        if limit is None or not columns:
            return None
        return (limit + RATIO * self.value_bytes) // (BYTES_PER_CELL * columns) - self.rows

    def _step(self, block: Array, at: int, most: int, limit: int, final: bool, *, must_filter: bool) -> _Step:
        """Decode records in one of the ways; at most so many, and up to so many payload bytes of all rows held."""
        self._share_types()
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
        step = (self._filtered if in_two_steps else self._whole)(block, at, most, left, final)
        return step if size is None else step._replace(is_partial=True)

    def _next_length(self, block: Array, at: int) -> int:
        """Payload bytes of the next record; 0 if that is faulty or truncated."""
        frames, _ = self._scan(block, at, 1)
        return int(frames.lengths.sum())

    def _scan(self, block: Array, at: int, records: int) -> tuple[Frames, Fault | None]:
        limit = self._plan.max_record_bytes
        return self._engine.scan(block, at, max_records=records, check_crc=False, max_record_bytes=limit, final=False)

    def _share_types(self) -> None:
        """Once a record was a SequenceExample, all that follow are."""
        if self._main.sequence and not self._filter.sequence:
            self._filter = self._engine.decoder(replace(self._filter_plan, record_type=RecordType.SEQUENCE_EXAMPLE))
            self._filter.know(self._names)

    def _share_names(self, met: Decoder, other: Decoder) -> None:
        """Count the names that one decoder met first in the other, too."""
        if len(met.new_names) and (new := [name for name in met.new_names if name not in self._names]):
            self._names.update(dict.fromkeys(new))
            other.know(new)

    def _whole(self, block: Array, at: int, most: int, left: int, final: bool) -> _Step:
        """Decode records in one go."""
        main = self._main
        counts, rows, size, began = main.counts, main.rows, main.value_bytes, thread_time()
        progress = main.feed(block, at, max_records=most, max_bytes=size + left, final=final)
        size = main.value_bytes - size
        self._prefilter.choice.note_whole(size, thread_time() - began)
        self._count(main.lengths(rows), size, main.counts - counts)
        self._share_names(main, self._filter)
        fault = progress.fault
        if fault is not None and fault.code >= FaultCode.VARINT_TRUNCATED:  # it counts if the record may pass
            return _Step(progress.records, progress.consumed, must_filter=True)
        self._stopped = main if progress.embedded else None
        return _Step(progress.records, progress.consumed, fault, progress.embedded)

    def _filtered(self, block: Array, at: int, most: int, left: int, final: bool) -> _Step:
        """Decode the columns of the filter, then all columns of the records that may pass."""
        first, began = self._filter, thread_time()
        counts, was_sequence = first.counts, first.sequence
        progress = first.feed(block, at, max_records=most, max_bytes=left, final=final)
        rows, size, lengths = first.rows, first.value_bytes, first.lengths()
        kept = np.arange(0)
        if rows:
            kept = np.flatnonzero(self._prefilter.may_pass(by_feature(first.take()), rows))
        self._share_names(first, self._main)
        filtered, before = thread_time(), self._main.value_bytes
        fault = self._decode_kept(block, at, kept, lengths)
        passing, seconds = self._main.value_bytes - before, thread_time() - filtered
        self._prefilter.choice.note_two_steps(size, filtered - began, passing, seconds)
        if fault is not None:
            return self._up_to(fault, block, at, kept, lengths[: fault.record], was_sequence)
        self._count(lengths, size, first.counts - counts, kept)
        self._stopped = first if progress.embedded else None
        return _Step(progress.records, progress.consumed, self._of_all_names(progress.fault), progress.embedded)

    def _decode_kept(self, block: Array, at: int, kept: Array, lengths: Array) -> Fault | None:
        """Decode all columns of some of the records from `at` on; the fault of the first one that is faulty."""
        if not len(kept):
            return None
        data, begin = block, at
        if len(kept) < len(lengths):
            sizes = lengths.astype(np.int64) + FRAME_BYTES
            starts, sizes = at + (sizes.cumsum() - sizes)[kept], sizes[kept]
            base, end = int(starts[0]), int(starts[-1] + sizes[-1])
            if sizes.sum() == end - base:  # they follow one another
                begin = base
            else:
                data = self._engine.payloads(block[base:end], Frames(starts - base, sizes, 0))
                begin = 0
        records = 0
        while records < len(kept):
            progress = self._main.feed(data, begin, max_records=len(kept) - records)
            records, begin = records + progress.records, begin + progress.consumed
            if progress.fault is not None:
                return replace(progress.fault, record=int(kept[records]))
            self._main.accept_embedded()  # they were checked with the columns of the filter
        return None

    def _up_to(self, fault: Fault, block: Array, at: int, kept: Array, lengths: Array, was_sequence: bool) -> _Step:
        """Count the records before one that passes and is faulty."""
        rows = len(lengths)
        type_ = RecordType.SEQUENCE_EXAMPLE if was_sequence else self._filter_plan.record_type
        again = self._engine.decoder(replace(self._filter_plan, record_type=type_, stop_at_embedded=False))
        again.know(self._names)
        if rows:
            again.feed(block, at, max_records=rows)
        size = int(lengths.sum())
        self._count(lengths, size, again.counts, kept[kept < rows])
        consumed = size + rows * FRAME_BYTES
        return _Step(rows, consumed, replace(fault, offset=at + consumed))

    def _next(self, rows: int) -> range:
        return range(self.rows, self.rows + rows)

    def _count(self, lengths: Array, size: int, counts: RecordCounts, kept: Array | None = None) -> None:
        rows = len(lengths)
        self._lengths.append(lengths)
        self._kept.append(self._next(rows) if kept is None or len(kept) == rows else kept + self.rows)
        self.rows += rows
        self.value_bytes += size
        self.counts += counts

    def _of_all_names(self, fault: Fault | None) -> Fault | None:
        """A fault of the filter's decoder, with the number of names that the plan allows."""
        if fault is None or fault.code is not FaultCode.TOO_MANY_FEATURES:
            return fault
        return replace(fault, expected=fault.expected + self._moved, got=fault.got + self._moved)
