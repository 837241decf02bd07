"""Decoding of records into columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from reference_engine.column_builder import Column
from reference_engine.frames import byte_view, check_payload, check_whole, is_truncated, read_header
from reference_engine.record_parser import Record, read_embedded, read_record
from tfrecord_io.base.options.limits import Expansion
from tfrecord_io.bytes.engine.contract import (
    Array,
    ColumnBuffers,
    ColumnNames,
    Fault,
    FaultCode,
    FeatureName,
    FileView,
    Plan,
    PlanColumn,
    Progress,
    RecordCounts,
)
from tfrecord_io.bytes.format.feature_types import Kind, RecordType
from tfrecord_io.bytes.format.framing import FrameHeader

_OFFSET_LIMIT = 2**31 - 1  # a column has fewer values than its records have bytes, so its int32 offsets fit below this


class ReferenceDecoder:
    """Appends records to columns until they are taken; see `contract.EngineDecoder`."""

    kept = None

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._embedded_accepted = False
        self._columns = {(column.name, column.steps): Column(column, plan.typed_empties) for column in plan.columns}
        self._left_out: set[FeatureName] = set()  # counted for max_features
        self.new_names: list[FeatureName] = []
        self.rows = 0
        self.value_bytes = 0
        self._lengths: list[int] = []
        self.counts = RecordCounts()
        self.sequence = plan.record_type == RecordType.SEQUENCE_EXAMPLE

    @property
    def integer_bytes(self) -> int:
        """See `contract.Decoder.integer_bytes`."""
        return 8 * sum(column.integers_in_lists for column in self._columns.values())

    @property
    def column_bytes(self) -> int:
        """See `contract.EngineDecoder.column_bytes`: those of the records."""
        return self.value_bytes

    def lengths(self, begin: int = 0) -> Array:
        """See `contract.Decoder.lengths`."""
        assert self.plan.keep_lengths
        return np.array(self._lengths[begin:], np.int64)

    def expect(self, payload_bytes: int) -> None:
        """Ignore the hint; see `contract.Decoder.expect`."""

    def feed(
        self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True
    ) -> Progress:
        """Decode the records of `data` from byte `begin` on; see `contract.Decoder.feed`."""
        view = byte_view(data)
        limit = _OFFSET_LIMIT if max_bytes < 0 else min(max_bytes, _OFFSET_LIMIT)
        at, records, fault, full = begin, 0, None, False
        embedded: tuple[bytes, ...] = ()
        while at < len(view) and records != max_records:
            if full := self._is_full(len(self._columns)):
                break
            framed = read_header(view, at, records, self.plan.max_record_bytes, check_length=self.plan.check_crc)
            if isinstance(framed, Fault):
                fault = framed
                break
            fault = check_whole(view, framed, records)
            if fault is None and self.rows and self.value_bytes + framed.length > limit:
                break
            if fault is None and self.plan.check_crc:
                fault = check_payload(view, framed, records)
            if fault is None:
                payload = bytes(view[framed.start : framed.start + framed.length])
                fault, embedded, full = self._add(payload, records, at)
            if fault is not None or embedded or full:
                break
            at = framed.end
            records += 1
        if fault is not None and is_truncated(fault) and not final:
            fault = None
        return Progress(records, at - begin, fault, embedded, full)

    def _is_full(self, columns: int) -> bool:
        """True if another row of this many columns takes too much memory."""
        limit = self.plan.max_expansion
        if not self.rows or not columns or limit is None:
            return False
        return self.rows >= (limit + Expansion.RATIO * self.value_bytes) // (Expansion.BYTES_PER_CELL * columns)

    def know(self, names: Iterable[FeatureName]) -> None:
        """See `contract.Decoder.know`."""
        for name, is_list in names:
            if self.plan.unknown == "discover" and self._is_selected(name):
                self._columns[name, is_list] = Column(self._discovered_column(name, is_list), self.plan.typed_empties)
            else:
                self._left_out.add((name, is_list))

    def feed_kept(self, data: Any, begin: int, lengths: Array, kept: Array) -> Progress:
        """See `contract.EngineDecoder.feed_kept`."""
        plan, self.plan = self.plan, self.plan._replace(check_crc=False)
        progress = self._fed_kept(data, begin, lengths, kept)
        self.plan = plan
        return progress

    def _fed_kept(self, data: Any, begin: int, lengths: Array, kept: Array) -> Progress:
        records, at = 0, begin
        for length, is_kept in zip(lengths.tolist(), kept.tolist(), strict=True):
            if is_kept:
                progress = self.feed(data, at, max_records=1)
                if not progress.records:
                    fault = progress.fault and progress.fault._replace(record=records)
                    return Progress(records, at - begin, fault, progress.embedded, progress.full)
            records, at = records + 1, at + FrameHeader.FRAME_BYTES + length
        return Progress(records, at - begin)

    def feed_file(
        self, file: FileView, begin: int, end: int, *, max_records: int = -1, max_bytes: int, keeps: bool = False
    ) -> int:
        """See `contract.EngineDecoder.feed_file`: all is left to `feed`."""
        return 0

    def accept_embedded(self) -> None:
        """See `contract.Decoder.accept_embedded`."""
        self._embedded_accepted = True

    def take(self) -> list[ColumnBuffers]:
        """Return the rows as columns, in the plan's order and then in that of discovery, and reset the decoder.

        Discovered columns are kept: they are null until their feature appears again.
        """
        taken = [column.take() for column in self._columns.values()]
        self.rows = self.value_bytes = 0
        self._lengths = []
        return taken

    def take_columns(self) -> dict[str, ColumnBuffers]:
        """See `contract.Decoder.take_columns`."""
        columns = self.take()
        names = ColumnNames([(column.name, column.is_list) for column in columns])
        return {feature: columns[at] for feature, at in names.index.items()}

    def complete(self) -> None:
        """See `contract.Decoder.complete`."""

    def append(self, part: ReferenceDecoder, begin: int, end: int, payload_bytes: int) -> bool:
        """See `contract.Decoder.append`."""
        is_whole = (begin, end) == (0, part.rows)
        all_alike = not part.counts.foreign and part.counts.seen in (0, part.rows)
        if part.new_names or self._columns.keys() != part._columns.keys() or self.sequence != part.sequence:
            return False
        if not (is_whole or all_alike):
            return False
        limit = self.plan.max_expansion
        cells = (self.rows + end - begin) * len(self._columns)
        if limit is not None and cells * Expansion.BYTES_PER_CELL > limit + Expansion.RATIO * self.value_bytes:
            return False
        pairs = [(column, part._columns[key]) for key, column in self._columns.items()]
        if not all(column.kind in (Kind.NONE, other.kind) or other.kind is Kind.NONE for column, other in pairs):
            return False
        if any(other.has_others for _, other in pairs):
            return False
        for column, other in pairs:
            column.rows += [None] * (self.rows - len(column.rows))
            for row in other.rows[begin:end]:
                column.append(row)
        self.rows += end - begin
        self.value_bytes += payload_bytes
        self._lengths += part._lengths[begin:end]
        self.counts += part.counts if is_whole else RecordCounts(min(end - begin, part.counts.seen))
        return True

    def clear(self) -> None:
        """See `contract.Decoder.clear`."""
        self.take()
        self.counts = RecordCounts()

    def _add(self, payload: bytes, index: int, offset: int) -> tuple[Fault | None, tuple[bytes, ...], bool]:
        """Decode one record; nothing is kept of it if it is faulty, embeds schemas to stop at, or is too much.

        Returns the fault, the embedded schemas, and whether there is no memory for the record's names.
        """
        record_type = RecordType.SEQUENCE_EXAMPLE if self.sequence else self.plan.record_type
        try:
            record = read_record(payload, record_type, lambda *key: key in self._columns)
            if self.plan.stop_at_embedded and not self._embedded_accepted and (embedded := read_embedded(payload)):
                return None, tuple(embedded), False
            fault, full = self._judge_number(record)
            if fault is None and not full:
                record = read_record(payload, record_type, self._is_wanted)
                fault, full = self._judge_number(record)
        except DecodeError as error:
            return Fault(FaultCode.WIRE, index, offset, feature=getattr(error, "feature", None)), (), False
        if fault is not None or full:
            return fault and fault._replace(record=index, offset=offset), (), full
        found = self._discovered(record)
        columns = {**self._columns, **found}
        faults = (column.check(_row(column, record)) for column in columns.values())
        fault = next((fault for fault in faults if fault is not None), None) or self._judge_names(found, record)
        if fault is not None:
            return fault._replace(record=index, offset=offset), (), False
        self._commit(record, columns, len(payload))
        return None, (), False

    def _discovered_column(self, name: str, is_list: bool) -> PlanColumn:
        return PlanColumn(name, text=self.plan.text, steps=is_list, splits=self.plan.splits)

    def _is_wanted(self, name: str, is_list: bool) -> bool:
        if (name, is_list) in self._columns:
            return True
        return self.plan.unknown == "discover" and self._is_selected(name)

    def _is_selected(self, name: str) -> bool:
        return name not in self.plan.ignored and (self.plan.select is None or bool(self.plan.select(name)))

    def _discovered(self, record: Record) -> dict[FeatureName, Column]:
        return {
            (name, is_list): Column(self._discovered_column(name, is_list), self.plan.typed_empties)
            for name, is_list in record.entries
            if self.plan.unknown == "discover"
            and (name, is_list) not in self._columns
            and name in (record.lists if is_list else record.features)
        }

    def _judge_number(self, record: Record) -> tuple[Fault | None, bool]:
        """A fault if the record has too many new names, and whether there is no memory for their columns."""
        new = self._new_names(record) if self.plan.unknown == "discover" else []
        if new and self._is_full(len(self._columns) + len(new)):
            return None, True
        return self._too_many(new), False

    def _too_many(self, new: list[FeatureName]) -> Fault | None:
        total, limit = len(self._columns) + len(self._left_out) + len(new), self.plan.max_features
        if not new or total <= limit:
            return None
        return Fault(FaultCode.TOO_MANY_FEATURES, 0, 0, feature=new[-1][0], expected=limit, got=total)

    def _judge_names(self, found: dict[FeatureName, Column], record: Record) -> Fault | None:
        new = self._new_names(record)
        if (fault := self._too_many(new)) is not None:
            return fault
        unknown = next((name for name, _ in new if self.plan.unknown == "fault" and self._is_selected(name)), None)
        if unknown is not None:
            return Fault(FaultCode.UNKNOWN_FEATURE, 0, 0, feature=unknown)
        for name, is_list in () if self.plan.names_in_both else found:
            if (name, not is_list) in self._columns or (name, not is_list) in found:
                return Fault(FaultCode.NAME_IN_BOTH, 0, 0, feature=name)
        return None

    def _new_names(self, record: Record) -> list[FeatureName]:
        if self.plan.unknown == "skip":
            return []
        known = {*self._columns, *self._left_out}
        return [key for key in dict.fromkeys(record.entries) if key not in known and key[0] not in self.plan.ignored]

    def _commit(self, record: Record, columns: dict[FeatureName, Column], payload_bytes: int) -> None:
        for column in columns.values():
            if len(column.rows) < self.rows:  # discovered in this record: null in the rows before
                column.rows = [None] * self.rows
            column.append(_row(column, record))
        new = self._new_names(record)
        self.new_names += new
        self._left_out.update(key for key in new if key not in columns)
        self._columns = columns
        self._embedded_accepted = False
        self._lengths.append(payload_bytes)
        self.rows += 1
        self.value_bytes += payload_bytes
        self.sequence = self.sequence or record.is_sequence
        if record.has_feature or record.has_unknown:
            nested = record.has_feature and not record.has_plain
            self.counts += RecordCounts(1, int(nested or not record.has_feature), int(nested))


def _row(column: Column, record: Record) -> Any:
    return record.lists.get(column.plan.name) if column.plan.steps else record.features.get(column.plan.name)
