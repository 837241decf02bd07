"""Encode columns as records that are not Examples: as protobuf messages, or a column of bytes as it is.

Each field of a message becomes extents of bytes in every row, which the engine joins.

Tests: tests/columns/arrow/messages/test_message_batches.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS, MessageType, printable
from tfrecord_io.bytes import Array, Engine, FieldTag, Frames
from tfrecord_io.columns.arrow.buffers import ArrayBuffers, bitmap_buffer, offsets_of, scatter
from tfrecord_io.columns.arrow.messages.message_tree import (
    FIXED32,
    FIXED64,
    GROUP,
    GROUP_END,
    JSON,
    LEN,
    TIMES,
    VARINT,
    MessageField,
    MessageNode,
    Scalar,
    is_required,
    message_tree,
)
from tfrecord_io.columns.arrow.messages.well_known import json_messages, time_parts
from tfrecord_io.columns.arrow.row_fault import RowFault, faults_of_lists, first_failing
from tfrecord_io.columns.schema.types import is_text_or_bytes
from tfrecord_io.errors import EncodeError, SchemaError

_INT32 = range(-(2**31), 2**31)
_CLASSES = (t.is_boolean, t.is_timestamp, t.is_duration)  # a column of such a type becomes one of the same
_LISTS = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_map)

Rounded = Callable[[str, int], None]
"""Gets the path of a field and how many of its values were rounded to float32."""


def encoded_fields(type_: MessageType, schema: pa.Schema) -> list[MessageField]:
    """The fields that the columns of a schema become.

    SchemaError if the message does not have such a field, its type cannot be made of the column's, or a required field
    is not among them.
    """
    descriptor = type_.descriptor
    names = [field.name for field in descriptor.fields]
    for name in schema.names:
        if name not in names:
            shown = ", ".join(f"'{printable(field.name)}'" for field in descriptor.fields[:8])
            reason = f"the message '{printable(type_.name)}' has no such field"
            raise SchemaError(reason, feature=name, hint=f"leave the column out; it has: {shown}")
    for field in descriptor.fields:
        if is_required(field) and field.name not in schema.names:
            reason = f"the message '{printable(type_.name)}' requires the field, and no column has its name"
            raise SchemaError(reason, feature=field.name, hint="add the column")
    fields = message_tree(descriptor, schema.names).fields
    for field, message_field in zip(schema, fields, strict=True):
        Conformer().column(pa.array([], field.type), message_field.type, message_field)
    return fields


@dataclass(frozen=True)
class Conformer:
    """Casts columns to the types of fields.

    A RowFault is about the first row that does not fit. A SchemaError is about the types.
    """

    rounded: Rounded | None = None  # None: a float that would be rounded does not fit

    def column(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        if column.type == type_:
            return column
        if t.is_null(column.type):
            return pa.nulls(len(column), type_)
        if t.is_dictionary(column.type) or t.is_run_end_encoded(column.type):
            column = column.cast(column.type.value_type)
        if t.is_struct(type_):
            return self._struct(column, type_, field)
        if t.is_list(type_) or t.is_map(type_):
            return self._lists(column, type_, field)
        if field.enum is not None and t.is_integer(column.type):
            return field.enum.texts(column.cast(pa.int64()))
        is_same = [of_class(column.type) == of_class(type_) for of_class in _CLASSES]
        is_same.append(is_text_or_bytes(column.type) == is_text_or_bytes(type_))
        if not all(is_same) or t.is_nested(column.type):
            raise _other_type(column.type, type_, field)
        return self._cast(column, type_, field)

    def _cast(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        try:
            cast = column.cast(type_)
        except pa.ArrowNotImplementedError:
            raise _other_type(column.type, type_, field) from None
        except pa.ArrowInvalid as error:
            row = first_failing(len(column), lambda begin, end: column[begin:end].cast(type_), pa.ArrowException)
            reason = f"a value of {column.type} does not fit {type_} ({error})"
            raise RowFault(row, reason, feature=field.path, error=EncodeError, expected=str(type_)) from None
        if not (t.is_floating(type_) and t.is_floating(column.type) and type_.bit_width < column.type.bit_width):
            return cast
        before, after = (np.asarray(array.fill_null(0.0)).astype(np.float64) for array in (column, cast))
        infinite = np.isinf(after) & ~np.isinf(before)
        changed = (before != after) & ~(np.isnan(before) & np.isnan(after))
        bad = changed if self.rounded is None else infinite
        if np.any(bad):
            row = int(bad.argmax())
            reason = f"{before[row]} is not a float of 32 bits"
            raise RowFault(
                row,
                reason,
                feature=field.path,
                error=EncodeError,
                hint='pass float64="round"',
                hint_cli="pass --float64 round",
            )
        if self.rounded is not None and np.any(changed):
            self.rounded(field.path, int(np.count_nonzero(changed)))
        return cast

    def _struct(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        """Children by name; those that the column lacks are null."""
        if not t.is_struct(column.type):
            raise _other_type(column.type, type_, field)
        members = {member.name: member for member in field.node.fields}
        for child in column.type:
            if child.name not in members:
                reason = f"the message '{printable(field.node.name)}' has no field '{printable(child.name)}'"
                raise SchemaError(reason, feature=field.path, hint=f"it has: {', '.join(list(members)[:8])}")
        children = []
        for child in type_:
            at = column.type.get_field_index(child.name)
            part = pa.nulls(len(column)) if at < 0 else column.field(at)
            children.append(self.column(part, child.type, members[child.name]))
        return pa.Array.from_buffers(
            type_, len(column), [bitmap_buffer(ArrayBuffers(column).valid)], -1, children=children
        )

    def _lists(self, column: pa.Array, type_: pa.DataType, field: MessageField) -> pa.Array:
        if not any(is_list(column.type) for is_list in _LISTS):
            raise _other_type(column.type, type_, field)
        if t.is_fixed_size_list(column.type):
            column = column.cast(pa.list_(column.type.value_type))
        offsets = ArrayBuffers(column).offsets
        items = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets = (offsets - offsets[0]).astype(np.int32)
        with faults_of_lists(offsets):
            if not t.is_map(type_):
                values = self.column(items, type_.value_type, field)
            elif not t.is_struct(items.type) or items.type.num_fields != 2:
                raise _other_type(pa.list_(items.type), type_, field)
            else:
                parts = zip((items.field(0), items.field(1)), field.node.fields, strict=True)
                entries = [self.column(part, member.type, member) for part, member in parts]
                values = pa.StructArray.from_arrays(entries, fields=[type_.key_field, type_.item_field])
        buffers = [bitmap_buffer(ArrayBuffers(column).valid), pa.py_buffer(offsets)]
        return pa.Array.from_buffers(type_, len(column), buffers, -1, children=[values])


def _other_type(got: pa.DataType, expected: pa.DataType, field: MessageField) -> SchemaError:
    reason = f"a column of {got} cannot become {expected}, the type of the field"
    return SchemaError(reason, feature=field.path, expected=str(expected), got=str(got), hint="cast the column")


def enum_numbers(column: pa.Array, field: MessageField) -> Array:
    """The numbers of an enum's names, or of numbers as text; 0 for nulls."""
    assert field.enum is not None
    encoded = column.dictionary_encode()
    numbers = np.zeros(len(encoded.dictionary) + 1, np.int64)
    for at, text in enumerate(encoded.dictionary.to_pylist()):
        number = field.enum.numbers.get(text)
        digits = text.removeprefix("-")
        is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 10 and int(text) in _INT32
        if number is None and not field.enum.is_closed and is_number:
            number = int(text)
        if number is None:
            row = int(np.flatnonzero(np.asarray(encoded.indices.fill_null(-1)) == at)[0])
            names = ", ".join(list(field.enum.numbers)[:8])
            reason = f"'{printable(text)}' is not a value of the enum"
            raise RowFault(row, reason, feature=field.path, error=EncodeError, got=text, hint=f"it has: {names}")
        numbers[at] = number
    return numbers[np.asarray(encoded.indices.fill_null(len(encoded.dictionary)))]


_NOTHING = np.empty(0, np.uint8)


@dataclass(frozen=True, slots=True)
class Extents:
    """A part of each row: extents of `data`."""

    data: Array  # uint8
    starts: Array
    lengths: Array

    @classmethod
    def adjacent(cls, data: Array, lengths: Array) -> Extents:
        """Extents of these lengths, without gaps from the first byte on."""
        return cls(data, np.cumsum(lengths) - lengths, lengths)

    def where(self, mask: Array | None) -> Extents:
        """Empty the rows where `mask` is False."""
        return self if mask is None else Extents(self.data, self.starts, np.where(mask, self.lengths, 0))

    def merge_rows(self, offsets: Array) -> Extents:
        """Merge the extents of adjacent runs of rows."""
        bounds = np.append(self.starts, self.starts[-1:] + self.lengths[-1:] if len(self.starts) else 0)
        return Extents(self.data, bounds[offsets[:-1]], bounds[offsets[1:]] - bounds[offsets[:-1]])


class MessageEncoder:
    """Encodes rows as framed messages; see `tfrecord_io.bytes.engine.contract.Encoder`, and for `rounded` `Conformer`.

    `fields` are those of the columns of the batch, and `row` is the number of its first row, for errors.
    """

    def __init__(
        self, fields: Sequence[MessageField], batch: pa.RecordBatch, row: int, engine: Engine, rounded: Rounded | None
    ) -> None:
        self._engine, conformer = engine, Conformer(rounded)
        try:
            columns = [
                (field, conformer.column(column, field.type, field))
                for field, column in zip(fields, batch.columns, strict=True)
            ]
            parts = encode_messages(columns, len(batch), engine)
        except RowFault as fault:
            fault.error = EncodeError
            raise fault.to_error(None, row + fault.row) from None
        self._parts = max(1, len(parts))
        self._data, self._starts, self._lengths = side_by_side(parts, len(batch))

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[Any, int]:
        span = slice(begin * self._parts, end * self._parts)
        starts, lengths = self._starts[span], self._lengths[span]
        exceeds = lengths.reshape(-1, self._parts).sum(axis=1) > LIMITS.MAX_RECORD_BYTES
        rows = int(exceeds.argmax()) if np.any(exceeds) else end - begin
        count = rows * self._parts
        return self._engine.frame_extents(self._data, starts[:count], lengths[:count], self._parts), rows


def encode_messages(
    columns: Sequence[tuple[MessageField, pa.Array]], rows: int, engine: Engine, present: Array | None = None
) -> list[Extents]:
    """Rows as messages: the parts that follow one another in each, in the order of the fields' numbers.

    A column has the type of its field. Without the rows that are `present`, all have a message; what is in the others
    does not matter. RowFault if a value cannot be in a message.
    """
    _check_oneofs(columns, rows)
    parts: list[Extents] = []
    for field, column in sorted(columns, key=lambda pair: pair[0].number):
        parts += _Field(field, engine, present).parts(column)
    return parts


def side_by_side(parts: Sequence[Extents], rows: int) -> tuple[Array, Array, Array]:
    """The data of all parts, and for each row where they start and their lengths, part by part."""
    parts = parts or [Extents(_NOTHING, np.zeros(rows, np.int64), np.zeros(rows, np.int64))]
    distinct = {id(part.data): part.data for part in parts}
    begins = offsets_of(np.array([len(data) for data in distinct.values()], np.int64))
    begin_of = dict(zip(distinct, begins.tolist(), strict=False))
    starts, lengths = np.empty((rows, len(parts)), np.int64), np.empty((rows, len(parts)), np.int64)
    for at, part in enumerate(parts):
        starts[:, at], lengths[:, at] = part.starts + begin_of[id(part.data)], part.lengths
    return np.concatenate(list(distinct.values())), starts.ravel(), lengths.ravel()


def _check_oneofs(pairs: Sequence[tuple[MessageField, pa.Array]], rows: int) -> None:
    """RowFault for a row with values for two fields of a oneof."""
    for oneof in {field.oneof for field, _ in pairs} - {-1}:
        members = [(field, column) for field, column in pairs if field.oneof == oneof]
        counts = np.zeros(rows, np.int64)
        for _, column in members:
            mask = ArrayBuffers(column).valid
            counts += 1 if mask is None else mask
        if np.any(counts > 1):
            row = int((counts > 1).argmax())
            names = [f"'{printable(field.path)}'" for field, column in members if column[row].is_valid]
            advice = "make the others null"
            reason = f"{' and '.join(names)} are members of one oneof, of which a message has one"
            raise RowFault(row, reason, feature=members[0][0].path, error=EncodeError, hint=advice)


class _Field:
    """Encodes one field."""

    def __init__(self, field: MessageField, engine: Engine, present: Array | None) -> None:
        self._field, self._engine, self._present = field, engine, present

    def parts(self, column: pa.Array) -> list[Extents]:
        """The parts that a column has of each row."""
        field = self._field
        if not field.repeated:
            return self._values(column, ArrayBuffers(column).valid, skips_default=not field.presence)
        offsets = ArrayBuffers(column).offsets.astype(np.int64)
        mask = ArrayBuffers(column).valid
        if mask is not None and np.any(np.diff(offsets)[~mask]):  # hidden under nulls
            column = column.take(pa.array(np.arange(len(column)), mask=~mask))
            offsets = ArrayBuffers(column).offsets.astype(np.int64)
        items = column.values.slice(offsets[0], offsets[-1] - offsets[0])
        offsets -= offsets[0]
        with faults_of_lists(offsets):
            if field.is_map:
                pairs = list(zip(field.node.fields, (items.field(0), items.field(1)), strict=True))
                for entry, content in pairs:
                    _refuse_nulls(content, field, f"a {entry.name}")
                entries = encode_messages(pairs, len(items), self._engine)
                return [self._delimit_messages(entries, len(items)).merge_rows(offsets)]
            _refuse_nulls(items, field, "an element")
            if field.packed:
                assert field.scalar is not None
                numbers = Extents.adjacent(*_add_tags(b"", _bits(items, field), field.scalar))
                return self._prefix_sizes(numbers.merge_rows(offsets), np.diff(offsets) > 0)
            return [
                self._join_rows_at_once(self._values(items, None, skips_default=False), len(items)).merge_rows(offsets)
            ]

    def _values(self, column: pa.Array, mask: Array | None, *, skips_default: bool) -> list[Extents]:
        """Encode the value of each row that is not null, behind its tag."""
        field = self._field
        missing = ~mask if mask is not None and field.required else np.zeros(0, np.bool_)
        missing = missing if self._present is None or not len(missing) else missing & self._present
        if np.any(missing):
            row = int(missing.argmax())
            raise RowFault(row, "a required field cannot be null", feature=field.path, error=EncodeError)
        if field.scalar is None:
            return self._messages(column, mask)
        if field.scalar.dtype is None:
            offsets = ArrayBuffers(column).offsets.astype(np.int64)
            lengths = np.diff(offsets)
            if skips_default:
                mask = lengths > 0 if mask is None else mask & (lengths > 0)
            return self._prefix_sizes(Extents(ArrayBuffers(column).content, offsets[:-1], lengths), mask)
        numbers = _bits(column, field)
        if skips_default:
            mask = numbers != 0 if mask is None else mask & (numbers != 0)
        tag = FieldTag.of(field.number, field.scalar.wire_type)
        if mask is None or mask.all():
            return [Extents.adjacent(*_add_tags(tag, numbers, field.scalar))]
        data, lengths = _add_tags(tag, numbers[mask], field.scalar)
        return [Extents.adjacent(data, scatter(lengths, mask))]

    def _messages(self, column: pa.Array, mask: Array | None) -> list[Extents]:
        """A message in each row."""
        field, node = self._field, self._field.node
        if node.name in JSON:
            contents = json_messages(node.name, field.path, column)
            lengths = np.fromiter(map(len, contents), np.int64, len(contents))
            return self._prefix_sizes(Extents.adjacent(np.frombuffer(b"".join(contents), np.uint8), lengths), mask)
        parts = encode_messages(_children(node, column), len(column), self._engine, mask)
        if field.is_group:
            return [self._group(parts, len(column), mask)]
        return [self._delimit_messages(parts, len(column), mask)]

    def _prefix_sizes(self, content: Extents, mask: Array | None) -> list[Extents]:
        """Tags and lengths, and the content after them."""
        return [self._header(content.lengths).where(mask), content.where(mask)]

    def _header(self, lengths: Array) -> Extents:
        return Extents.adjacent(*_add_tags(FieldTag.of(self._field.number, LEN), lengths, _SIZE))

    def _delimit_messages(self, parts: list[Extents], rows: int, mask: Array | None = None) -> Extents:
        """Messages with tag and length, at once."""
        sizes = sum((part.lengths for part in parts), np.zeros(rows, np.int64))
        if rows and sizes.max() > LIMITS.MAX_RECORD_BYTES:
            reason = LIMITS.too_large("the message")
            raise RowFault(int(sizes.argmax()), reason, feature=self._field.path, error=EncodeError)
        return self._join_rows_at_once([self._header(sizes), *parts], rows, mask)

    def _group(self, parts: list[Extents], rows: int, mask: Array | None) -> Extents:
        none = np.zeros(rows, np.int64)
        first, last = (
            Extents(np.frombuffer(tag, np.uint8), none, np.full(rows, len(tag)))
            for tag in (FieldTag.of(self._field.number, kind) for kind in (GROUP, GROUP_END))
        )
        return self._join_rows_at_once([first, *parts, last], rows, mask)

    def _join_rows_at_once(self, parts: Sequence[Extents], rows: int, mask: Array | None = None) -> Extents:
        """The bytes of all rows where `mask` is True, one after the other."""
        parts = [part.where(mask) for part in parts]
        data, starts, lengths = side_by_side(parts, rows)
        sizes = sum((part.lengths for part in parts), np.zeros(rows, np.int64))
        return Extents.adjacent(self._engine.payloads(data, Frames(starts, lengths, 0)), sizes)


_SIZE = Scalar("uint64", VARINT, pa.uint64(), np.uint64)


def _children(node: MessageNode, column: pa.Array) -> list[tuple[MessageField, pa.Array]]:
    """The fields of a column of messages."""
    if node.name in TIMES:
        seconds, nanos = time_parts(node.name, column)
        parts = [pa.array(seconds, pa.int64()), pa.array(nanos, pa.int32())]
    elif node.is_wrapper:
        if column.null_count:  # any value: their messages are left out
            empty: object = b"" if t.is_binary(column.type) else "" if t.is_string(column.type) else 0
            column = column.fill_null(pa.scalar(empty).cast(column.type))
        parts = [column]
    else:
        mask = ArrayBuffers(column).valid  # below a null there may be anything
        at = None if mask is None else pa.array(np.arange(len(column)), mask=~mask)
        children = [column.field(number) for number in range(len(node.fields))]
        parts = children if at is None else [child.take(at) for child in children]
    return list(zip(node.fields, parts, strict=True))


def _refuse_nulls(items: pa.Array, field: MessageField, what: str) -> None:
    mask = ArrayBuffers(items).valid
    if mask is not None:
        row = int((~mask).argmax())
        reason = f"{what} is null, which messages do not have"
        raise RowFault(row, reason, feature=field.path, error=EncodeError, hint="drop it, or fill it")


def _bits(column: pa.Array, field: MessageField) -> Array:
    """The numbers of a column as 64 bits without a sign; null slots have 0."""
    scalar = field.scalar
    assert scalar is not None
    if field.enum is not None:
        numbers = enum_numbers(column, field)
    else:
        numbers = ArrayBuffers(column).numbers
        mask = ArrayBuffers(column).valid
        if mask is not None:
            numbers = np.where(mask, numbers, numbers.dtype.type(0))
    if scalar.zigzag:
        wide = numbers.astype(np.int64)
        return ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    if scalar.dtype is np.float32:
        return np.ascontiguousarray(numbers).view(np.uint32).astype(np.uint64)
    if scalar.dtype is np.float64:
        return np.ascontiguousarray(numbers).view(np.uint64)
    return numbers.astype(np.int64).view(np.uint64) if numbers.dtype.kind in "ib" else numbers.astype(np.uint64)


def _add_tags(tag: bytes, numbers: Array, scalar: Scalar) -> tuple[Array, Array]:
    """Each number after a tag: all bytes, and how many each has."""
    prefix = np.frombuffer(tag, np.uint8)
    if scalar.wire_type != VARINT:
        width = {FIXED32: 4, FIXED64: 8}[scalar.wire_type]
        out = np.empty((len(numbers), len(tag) + width), np.uint8)
        out[:, : len(tag)] = prefix
        out[:, len(tag) :] = numbers.astype("<u8").view(np.uint8).reshape(-1, 8)[:, :width]
        return out.ravel(), np.full(len(numbers), out.shape[1], np.int64)
    numbers = numbers.astype(np.uint64, copy=False)
    widths = np.ones(len(numbers), np.int64)
    largest = int(numbers.max()) if len(numbers) else 0
    for bits in range(7, max(largest.bit_length(), 1), 7):
        widths += numbers >= np.uint64(1 << bits)
    lengths = widths + len(tag)
    if largest < 128:
        out = np.empty((len(numbers), len(tag) + 1), np.uint8)
        out[:, : len(tag)], out[:, len(tag)] = prefix, numbers
        return out.ravel(), lengths
    starts = np.cumsum(lengths) - lengths
    flat = np.empty(int(lengths.sum()), np.uint8)
    for at, byte in enumerate(tag):
        flat[starts + at] = byte
    starts += len(tag)
    for at in range(int(widths.max())):
        chosen = np.flatnonzero(widths > at) if at else slice(None)
        part = (numbers[chosen] >> np.uint64(7 * at)).astype(np.uint8) & np.uint8(0x7F)
        part |= (widths[chosen] > at + 1).astype(np.uint8) << np.uint8(7)
        flat[starts[chosen] + at] = part
    return flat, lengths


class PayloadEncoder:
    """Frames the values of a binary column; see `tfrecord_io.bytes.engine.contract.Encoder`."""

    def __init__(self, engine: Engine, batch: pa.RecordBatch, row: int) -> None:
        self._engine, self._column = engine, batch.column(0)
        if self._column.null_count:
            null = row + self._column.is_null().index(True).as_py()
            name = batch.schema.names[0]
            raise EncodeError("a record cannot be null", record=null, feature=name, hint="drop the nulls")

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[Any, int]:
        payloads = [memoryview(value.as_buffer()) for value in self._column[begin:end]]
        return self._engine.frame(payloads), end - begin
