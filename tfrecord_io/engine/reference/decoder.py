"""Records to columns."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from tfrecord_io.engine.contract import ColumnBuffers, EmbeddedHook, Fault, FaultCode, Plan, PlanColumn, Progress
from tfrecord_io.engine.reference.columns import Column, Misfit
from tfrecord_io.engine.reference.framing import byte_view, check_payload, is_cut, read_header
from tfrecord_io.engine.reference.parsing import Record, read_embedded, read_record
from tfrecord_io.schema.kinds import RecordType

_OFFSET_LIMIT = 2**31 - 1  # a column has fewer values than its records have bytes, so its int32 offsets fit below this


class ReferenceDecoder:
    """Appends records to columns until they are taken; see `contract.Decoder`."""

    def __init__(self, plan: Plan, on_embedded: EmbeddedHook | None = None) -> None:
        self._plan = plan
        self._on_embedded = on_embedded
        self._columns: dict[str, Column] = {}
        self.rows = 0
        self.value_bytes = 0
        self.seen = 0
        self.foreign = 0
        self.sequence = plan.record_type == RecordType.SEQUENCE_EXAMPLE
        self._start_anew()

    def feed(self, data: Any, begin: int = 0, *, max_records: int = -1, max_bytes: int = -1, final: bool = True) -> Progress:
        """Decode the records of `data` from byte `begin` on; see `contract.Decoder.feed`."""
        view = byte_view(data)
        limit = _OFFSET_LIMIT if max_bytes < 0 else min(max_bytes, _OFFSET_LIMIT)
        at, records, fault = begin, 0, None
        while at < len(view) and records != max_records:
            framed = read_header(view, at, records, self._plan.max_record_bytes)
            if isinstance(framed, Fault):
                fault = framed
                break
            if self.rows and self.value_bytes + framed.length > limit:
                break
            fault = check_payload(view, framed, records, self._plan.check_crc)
            if fault is None:
                fault = self._add(bytes(view[framed.start : framed.start + framed.length]), records, at)
            if fault is not None:
                break
            at = framed.end
            records += 1
        if fault is not None and is_cut(fault) and not final:
            fault = None
        return Progress(records, at - begin, fault)

    def take(self) -> list[ColumnBuffers]:
        """Hand over the rows as columns, in the plan's order and then in that of discovery, and start anew."""
        taken = [column.take() for column in self._columns.values()]
        self._start_anew()
        return taken

    def _start_anew(self) -> None:
        self._columns = {column.name: Column(column) for column in self._plan.columns}
        self.rows = 0
        self.value_bytes = 0

    def _add(self, payload: bytes, index: int, offset: int) -> Fault | None:
        """Decode one record; where it is faulty nothing of it is kept."""
        try:
            if self._on_embedded is not None:
                for content in read_embedded(payload):
                    self._on_embedded(index, offset, content)
            record = read_record(payload, RecordType.SEQUENCE_EXAMPLE if self.sequence else self._plan.record_type, self._is_wanted)
        except DecodeError:
            return Fault(FaultCode.WIRE, index, offset)
        columns = {**self._columns, **self._discovered(record)}
        for name, column in columns.items():
            misfit = self._judge(column, record)
            if misfit is not None:
                return Fault(misfit.code, index, offset, feature=name, expected=misfit.expected, got=misfit.got)
        if self._plan.unknown == "fault" and record.left_out:
            return Fault(FaultCode.UNKNOWN_FEATURE, index, offset, feature=record.left_out[0][0])
        if len(columns) > max(self._plan.max_features, len(self._columns)):
            first_over = list(columns)[max(self._plan.max_features, len(self._columns))]
            return Fault(FaultCode.TOO_MANY_FEATURES, index, offset, feature=first_over, expected=self._plan.max_features, got=len(columns))
        self._commit(record, columns, len(payload))
        return None

    def _is_wanted(self, name: str) -> bool:
        if name in self._columns:
            return True
        return self._plan.unknown == "discover" and (self._plan.select is None or bool(self._plan.select(name)))

    def _discovered(self, record: Record) -> dict[str, Column]:
        found: dict[str, Column] = {}
        for name, is_list in record.order:
            if name not in self._columns and name not in found:
                found[name] = Column(PlanColumn(name, text=self._plan.text, steps=is_list))
        return found

    def _judge(self, column: Column, record: Record) -> Misfit | None:
        other = record.features if column.plan.steps else record.lists
        if column.plan.name in other:
            return Misfit(FaultCode.NAME_IN_BOTH)
        return column.judge(_row(column, record))

    def _commit(self, record: Record, columns: dict[str, Column], payload_bytes: int) -> None:
        for column in columns.values():
            if len(column.rows) < self.rows:  # found just now: null in the rows before
                column.rows = [None] * self.rows
            column.append(_row(column, record))
        self._columns = columns
        self.rows += 1
        self.value_bytes += payload_bytes
        self.sequence = self.sequence or record.is_sequence
        if payload_bytes:
            self.seen += 1
            self.foreign += record.has_unknown and not record.has_feature


def _row(column: Column, record: Record) -> Any:
    return record.lists.get(column.plan.name) if column.plan.steps else record.features.get(column.plan.name)
