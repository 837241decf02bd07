"""The fields of messages of other types than Example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from reference_engine.frames import byte_view
from reference_engine.shells import MembersShell
from reference_engine.wire_tags import GROUP_BEGIN, GROUP_END, LEN, VARINT, fields, parse, read_varint
from tfrecord_io.bytes.engine.contract import (
    Array,
    Fault,
    FaultCode,
    FieldForm,
    FieldValues,
    Frames,
    Members,
    MessageFields,
)
from tfrecord_io.bytes.format.framing import FrameHeader


def members(data: Any, frames: Frames, most: int) -> tuple[Members, Fault | None]:
    """Find the length-delimited fields of messages; see `contract.Engine.members`."""
    view = byte_view(data)
    found: list[tuple[int, int, int, int]] = []
    fault = None
    for record, (start, length) in enumerate(zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)):
        payload = bytes(view[start : start + length])
        try:
            parse(MembersShell, payload, {})  # of which all fields are unknown
            own = [
                (number, record, start + begin, len(content))
                for number, wire_type, groups, content, begin in fields(payload)
                if wire_type == LEN and groups == 0 and number <= most
            ]
        except DecodeError:
            fault = Fault(FaultCode.WIRE, record, start - FrameHeader.BYTES)
            break
        found += own
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return Members(*map(np.ascontiguousarray, columns)), fault


Value = tuple[int, int, int]  # row, number or start, length


def message_fields(
    data: Any, extents: Frames, rows: Array, forms: Sequence[FieldForm]
) -> tuple[MessageFields, Fault | None]:
    """Read fields of messages of any type; see `contract.Engine.message_fields`."""
    view, unknown, fault = byte_view(data), Counter[int](), None
    slots = {form.number: at for at, form in enumerate(forms)}
    found: list[list[Value]] = [[] for _ in forms]
    extent = zip(extents.starts.tolist(), extents.lengths.tolist(), rows.tolist(), strict=True)
    for record, (start, length, row) in enumerate(extent):
        try:
            own = list(_top_fields(bytes(view[start : start + length])))
            packed = [_values(form_of(forms, slots, number), kind, content) for number, kind, content, _ in own]
        except DecodeError:
            fault = Fault(FaultCode.WIRE, record, 0)
            break
        for (number, _, content, begin), values in zip(own, packed, strict=True):
            if values is None:
                unknown[number] += 1
                continue
            slot = slots[number]
            form = forms[slot]
            _leave_oneof(found, forms, slot, row)
            if not form.wanted:
                continue
            if form.wire_type in (LEN, GROUP_BEGIN):
                found[slot].append((row, start + begin, len(content)))
                continue
            if not form.repeated and not form.keeps_all and values and found[slot] and found[slot][-1][0] == row:
                found[slot].pop()
            found[slot] += [(row, value, 0) for value in values]
    columns = [np.array(values, np.int64).reshape(-1, 3).T for values in found]
    return MessageFields(
        [
            FieldValues(
                column[0].astype(np.int32),
                np.ascontiguousarray(column[1]),
                np.ascontiguousarray(column[2] if form.wire_type in (LEN, GROUP_BEGIN) else column[2][:0]),
            )
            for column, form in zip(columns, forms, strict=True)
        ],
        dict(unknown),
    ), fault


def form_of(forms: Sequence[FieldForm], slots: dict[int, int], number: int) -> FieldForm | None:
    """The form of the field with a number, if there is one."""
    return forms[slots[number]] if number in slots else None


def _top_fields(payload: bytes) -> list[tuple[int, int, bytes, int]]:
    """(number, wire type, content, its start) of each field; a group is one field."""
    found, groups, end = [], list[int](), 0
    parse(MembersShell, payload, {})  # of which all fields are unknown
    for number, wire_type, open_groups, content, begin in fields(payload):
        if wire_type == GROUP_BEGIN:
            groups.append(begin)
        elif wire_type == GROUP_END:
            first = groups.pop()
            if not groups:
                found.append((number, GROUP_BEGIN, payload[first:end], first))
        elif open_groups == 0:
            found.append((number, wire_type, content, begin))
        end = begin + len(content)
    return found


def _values(form: FieldForm | None, wire_type: int, content: bytes) -> list[int] | None:
    """The numbers of a field, none of content; None if it is unknown."""
    if form is None:
        return None
    if wire_type == form.wire_type:
        return [] if not form.wanted or wire_type in (LEN, GROUP_BEGIN) else _numbers(wire_type, content)
    is_packed = form.repeated and wire_type == LEN and form.wire_type not in (LEN, GROUP_BEGIN)
    return (_numbers(form.wire_type, content) if form.wanted else []) if is_packed else None


def _numbers(wire_type: int, content: bytes) -> list[int]:
    if wire_type != VARINT:
        dtype = np.dtype("<u8" if wire_type == 1 else "<u4")
        if len(content) % dtype.itemsize:
            raise DecodeError("a packed number is truncated")
        return np.frombuffer(content, dtype).astype(np.uint64).view(np.int64).tolist()
    numbers, at = [], 0
    while at < len(content):
        value, at = read_varint(content, at)
        numbers.append(value & 0xFFFFFFFFFFFFFFFF)
    return np.array(numbers, np.uint64).view(np.int64).tolist()


def _leave_oneof(found: list[list[Value]], forms: Sequence[FieldForm], slot: int, row: int) -> None:
    """Remove the values of the other fields of a oneof from a message in which one field is set."""
    for at, form in enumerate(forms):
        if form.oneof >= 0 and form.oneof == forms[slot].oneof and at != slot:
            while found[at] and found[at][-1][0] == row:
                found[at].pop()
