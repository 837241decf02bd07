"""Build record batches from decoded records that are messages, on several threads."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, Expansion, MessageType, and_more, counted, ordered, printable, warn
from tfrecord_io.bytes import Array, ColumnBuffers, Engine, Frames, get_engine
from tfrecord_io.columns.arrow.buffers import bitmap_buffer, bitmap_of, list_array, offsets_of, scatter, variable_width
from tfrecord_io.columns.arrow.decode.batch_builder import batch_of
from tfrecord_io.columns.arrow.messages.message_tree import JSON, TIMES, MessageField, MessageNode, Scalar, message_tree
from tfrecord_io.columns.arrow.messages.well_known import json_texts, time_numbers
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists, first_failing
from tfrecord_io.errors import SchemaWarning

_PART_BYTES = MIB  # that are worth a thread
_MOST_SHOWN = 8  # unknown fields in a warning

Columns = Mapping[str, ColumnBuffers]


class MessageBatchBuilder:
    """Makes batches of the one column with payloads; see `BatchBuilder` of `columns.arrow.decode`."""

    def __init__(self, type_: MessageType, columns: Sequence[str], *, max_features: int, threads: int) -> None:
        self._type, self._threads = type_, threads
        self._tree = message_tree(type_.descriptor, columns, max_features)
        self.schema = pa.schema([field.arrow for field in self._tree.fields])
        self.unknown: Unknown = Counter()  # the fields that were left out of all batches

    def counting(self) -> Self:
        """Make a copy for one read, whose `unknown` counts the values that the read leaves out."""
        counter = copy.copy(self)
        counter.unknown = Counter()
        return counter

    def batch(
        self, columns: Columns, rows: int, expansion: Expansion | None = None
    ) -> tuple[pa.RecordBatch, RowFault | None]:
        """The batch of `rows` payloads; it ends before the first that does not fit, whose fault is returned, too."""
        (payloads,), expansion = columns.values(), expansion or Expansion()
        offsets, values = payloads.value_offsets, payloads.values
        assert offsets is not None
        assert values is not None
        if not self._tree.fields and not rows:
            return batch_of([], 0, self.schema), None
        room, fault = expansion.room, None
        while True:
            results = self._parts(np.asarray(offsets[: rows + 1]), np.asarray(values), expansion)
            first = next((part for part in results if isinstance(part, RowFault)), None)
            if first is None:
                break
            fault, rows, expansion.room = first, first.row, room
        parts = [part for part in results if not isinstance(part, RowFault)]
        for part in parts:
            self.unknown.update(part[1])
        batches = [batch_of(arrays, count, self.schema) for arrays, _, count in parts]
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches), fault

    def _parts(self, offsets: Array, values: Array, expansion: Expansion) -> list[_Read | RowFault]:
        """The columns of runs of payloads, each of which a thread reads."""
        rows = len(offsets) - 1
        count = max(1, min(self._threads, rows, int(offsets[-1] - offsets[0]) // _PART_BYTES))
        bounds = [rows * at // count for at in range(count + 1)]
        tasks = [
            partial(self._part, offsets, values, begin=begin, end=end, expansion=expansion)
            for begin, end in pairwise(bounds)
        ]
        return [task() for task in tasks] if count == 1 else list(ordered(iter(tasks), count))

    def _part(self, offsets: Array, values: Array, begin: int, end: int, expansion: Expansion) -> _Read | RowFault:
        reader = MessageReader(get_engine(), values, expansion)
        bounds = offsets[begin : end + 1].astype(np.int64)
        try:
            return reader.columns(self._tree, bounds[:-1], np.diff(bounds)), reader.unknown, end - begin
        except RowFault as fault:
            return fault.renumber(begin + fault.row)

    def warn_of_unknown(self, path: str) -> None:
        """Warn of the fields that were left out, if there are any."""
        if not self.unknown:
            return
        frequent = self.unknown.most_common(_MOST_SHOWN)
        shown = ", ".join(f"{printable(place)} ({counted(count, 'time')})" for place, count in frequent)
        more = and_more(len(self.unknown) - len(frequent))
        reason = f"fields were left out that the message '{printable(self._type.name)}' does not have, by number"
        advice = "a newer descriptor may have them"
        warn(f"{printable(path)}: {reason}: {shown}{more}; {advice}", SchemaWarning)


Unknown = Counter[str]
"""How many fields the message type does not have, by their place: the path of the message, and the number."""
_Read = tuple[list[pa.Array], Unknown, int]  # the columns of a run of payloads, what was not read of them, their number


@dataclass(frozen=True, slots=True)
class _Parts:
    """Extents of the data with messages: those of one row are parts of one message."""

    starts: Array  # int64
    lengths: Array  # int64
    rows: Array  # int32, ascending
    count: int  # of all rows, also those without a message


class MessageReader:
    """Reads messages in `data`; used by one thread."""

    def __init__(self, engine: Engine, data: Array, expansion: Expansion) -> None:
        self._engine, self._data, self._expansion = engine, data, expansion
        self.unknown: Unknown = Counter()  # what was not read

    def columns(self, node: MessageNode, starts: Array, lengths: Array) -> list[pa.Array]:
        """The columns of messages, one in each extent; RowFault for the first that does not fit, or close after it."""
        rows = np.arange(len(starts), dtype=np.int32)
        return self._fields(node, _Parts(starts, lengths, rows, len(starts)), "")

    def _fields(self, node: MessageNode, parts: _Parts, path: str) -> list[pa.Array]:
        """The fields of messages; each has a value for every row."""
        size = parts.count * node.width
        if not self._expansion.take(size):
            fields = f"its fields take {node.width} bytes in each row, and {parts.count} rows {size}"
            reason, advice = self._expansion.excess(fields), self._expansion.advice(size)
            raise RowFault(int(self._expansion.room // node.width), reason, hint=advice, of_memory=True)
        extents = Frames(parts.starts, parts.lengths, 0)
        result, fault = self._engine.message_fields(self._data, extents, parts.rows, node.forms)
        if fault is not None:
            reason, feature = fault.wire_reason("field" if path else "payload"), path.rstrip(".") or None
            raise RowFault(int(parts.rows[fault.record]), reason, feature=feature, expected=node.name)
        for number, count in result.unknown.items():
            self.unknown[f"{path}{number}"] += count
        return [
            self._field(field, values, parts.count) for field, values in zip(node.fields, result.fields, strict=False)
        ]

    def _field(self, field: MessageField, values: Engine.FieldValues, count: int) -> pa.Array:
        if field.enum is not None and field.enum.is_closed and (field.repeated or field.presence):  # not in a map
            values = self._drop_unknown(field, values)
        if field.is_map:
            return self._map(field, values, count)
        if not field.repeated:
            return self._value(field, values, count, field.presence)
        items = len(values.rows)
        offsets = offsets_of(np.bincount(values.rows, minlength=count), np.int32)
        every = values._replace(rows=np.arange(items, dtype=np.int32))
        with faults_of_lists(offsets):
            inner = self._value(field, every, items, False)
        return list_array(field.type, count, nulls=0, validity=None, offsets=offsets, values=inner)

    def _value(self, field: MessageField, values: Engine.FieldValues, count: int, nullable: bool) -> pa.Array:
        """One value for each of `count` rows: if absent null, or the default."""
        if field.scalar is None:
            return self._message(field, values, count, nullable or field.presence)
        if field.scalar.dtype is None:
            return self._content(field, values, count, nullable)
        rows = values.rows
        numbers = _convert_bits(values.values, field.scalar)
        present = _present(rows, count)
        if present is not None:
            default = next(iter(field.enum.names), 0) if field.enum else 0
            every = np.full(count, default, field.scalar.dtype)
            every[present] = numbers
            numbers = every
        mask = ~present if nullable and present is not None else None
        if field.enum is not None:
            return field.enum.texts(pa.array(numbers, mask=mask))
        if field.scalar.dtype is np.bool_:
            return pa.array(numbers, pa.bool_(), mask=mask)
        buffers = [bitmap_buffer(present if nullable else None), pa.py_buffer(np.ascontiguousarray(numbers))]
        return pa.Array.from_buffers(field.scalar.type, count, buffers)

    def _content(self, field: MessageField, values: Engine.FieldValues, count: int, nullable: bool) -> pa.Array:
        rows, starts, lengths = values
        last = np.flatnonzero(rows[1:] == rows[:-1])
        if len(last) and not field.serialized:  # of several values in a message, the last one
            rows, starts, lengths = (np.delete(array, last) for array in (rows, starts, lengths))
        data = self._engine.payloads(self._data, Frames(starts, lengths, 0))
        if len(last) and field.serialized:  # messages are merged: their bytes follow one another
            every = np.bincount(rows, weights=lengths, minlength=count).astype(np.int64)
            rows = np.unique(rows)
            lengths = every[rows]
        present, valid = _present(rows, count), None
        if present is not None:
            lengths = scatter(lengths, present)
            valid = bitmap_of(present) if nullable else None
        offsets = offsets_of(lengths, np.int32)
        array = variable_width(
            field.item_type,
            count,
            nulls=count - len(rows) if nullable else 0,
            validity=valid,
            offsets=offsets,
            values=data,
        )
        if field.item_type == pa.string():
            try:
                array.validate(full=True)
            except pa.ArrowInvalid:
                row = first_failing(count, lambda begin, end: array[begin:end].validate(full=True), pa.ArrowInvalid)
                reason, advice = "expected UTF-8, got other bytes", "leave the column out with columns="
                raise RowFault(row, reason, feature=field.path, expected="UTF-8", hint=advice) from None
        return array

    def _message(self, field: MessageField, values: Engine.FieldValues, count: int, nullable: bool) -> pa.Array:
        node = field.node
        parts = _Parts(values.values, values.lengths, values.rows, count)
        mask = _present(values.rows, count) if nullable else None  # several rows may be parts of one message
        if node.name in JSON:
            texts, partly = json_texts(node.name, field.path, self._join_messages(parts), mask)
            if partly:
                self.unknown[f"{field.path}.?"] += partly
            return texts
        children = self._fields(node, parts, f"{field.path}.")
        if node.name in TIMES:
            seconds, nanos = children
            return time_numbers(node.name, field.path, seconds=seconds, nanos=nanos, mask=mask)
        if node.is_wrapper:
            return children[0] if mask is None else children[0].take(pa.array(np.arange(count), mask=~mask))
        return pa.Array.from_buffers(field.item_type, count, [bitmap_buffer(mask)], children=children)

    def _join_messages(self, parts: _Parts) -> list[bytes]:
        """The bytes of the message of each row."""
        data = self._engine.payloads(self._data, Frames(parts.starts, parts.lengths, 0)).tobytes()
        sizes = np.bincount(parts.rows, weights=parts.lengths, minlength=parts.count).astype(np.int64)
        bounds = offsets_of(sizes).tolist()
        return [data[begin:end] for begin, end in pairwise(bounds)]

    def _map(self, field: MessageField, values: Engine.FieldValues, count: int) -> pa.Array:
        import pyarrow.compute as pc

        items = len(values.rows)
        offsets = offsets_of(np.bincount(values.rows, minlength=count), np.int32)
        every = _Parts(values.values, values.lengths, np.arange(items, dtype=np.int32), items)
        value = field.node.fields[1]
        with faults_of_lists(offsets):
            keys, contents = self._fields(field.node, every, f"{field.path}.")
        kept = _last_of_each_key(keys, values.rows)
        if value.enum is not None and value.enum.is_closed:  # an entry with another number is an unknown field
            is_known = np.asarray(pc.is_in(contents, pa.array(value.enum.numbers, pa.string())))
            if not is_known.all():
                self.unknown[field.path] += int(items - np.count_nonzero(is_known))
                kept = np.flatnonzero(is_known) if kept is None else kept[is_known[kept]]
        if kept is not None:
            offsets = offsets_of(np.bincount(values.rows[kept], minlength=count), np.int32)
            keys, contents = keys.take(pa.array(kept)), contents.take(pa.array(kept))
        entries = pa.StructArray.from_arrays([keys, contents], fields=[field.type.key_field, field.type.item_field])
        return list_array(field.type, count, nulls=0, validity=None, offsets=offsets, values=entries)

    def _drop_unknown(self, field: MessageField, values: Engine.FieldValues) -> Engine.FieldValues:
        """Drop values that a closed enum does not have: they count as unknown fields."""
        assert field.enum is not None
        rows = values.rows
        is_known = np.isin(values.values.astype(np.int32), np.fromiter(field.enum.names, np.int32))
        if not is_known.all():
            self.unknown[field.path] += int(len(is_known) - np.count_nonzero(is_known))
        if not field.repeated:  # the last known one counts
            numbers = np.flatnonzero(is_known)
            is_known[numbers[:-1][rows[numbers[:-1]] == rows[numbers[1:]]]] = False
        return Engine.FieldValues(rows[is_known], values.values[is_known], values.lengths)


def _present(rows: Array, count: int) -> Array | None:
    """Which of `count` rows are among `rows`; None if all are."""
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    return None if mask.all() else mask


def _convert_bits(values: Array, scalar: Scalar) -> Array:
    """Convert the 64 bits of numbers to a type; protobuf drops the bits that do not fit."""
    dtype = scalar.dtype
    if dtype is np.bool_:
        return values != 0
    if dtype is np.float64 or (dtype is np.uint64 and not scalar.zigzag):
        return values.view(dtype)
    if dtype is np.float32:
        return values.astype(np.uint32).view(np.float32)
    if scalar.zigzag:
        bits = values.astype(np.uint32) if dtype is np.int32 else values.view(np.uint64)
        unit = bits.dtype.type(1)
        return ((bits >> unit) ^ (~(bits & unit) + unit)).view(dtype)
    return values if dtype is np.int64 else values.astype(dtype)


def _last_of_each_key(keys: pa.Array, rows: Array) -> Array | None:
    """The positions of entries whose key no later entry of the row has; None if that are all."""
    if len(keys) < 2 or not np.any(rows[1:] == rows[:-1]):
        return None
    encoded = keys.dictionary_encode()
    pairs = rows.astype(np.int64) * max(1, len(encoded.dictionary)) + np.asarray(encoded.indices)
    distinct, first = np.unique(pairs[::-1], return_index=True)
    return None if len(distinct) == len(pairs) else np.sort(len(pairs) - 1 - first)
