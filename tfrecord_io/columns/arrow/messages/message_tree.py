"""Build the tree of a message type's fields, with the Arrow types of the columns for them.

Tests: tests/columns/arrow/messages/test_message_batches.py and tests/bytes/engine/test_message_fields.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tfrecord_io.base import cached_property, printable
from tfrecord_io.bytes import Engine
from tfrecord_io.errors import SchemaError

VARINT, FIXED64, LEN, GROUP, GROUP_END, FIXED32 = range(6)  # wire types
_MOST_LEVELS = 100  # protobuf's limit of messages in messages

TIMES = {"google.protobuf.Timestamp": pa.timestamp("ns", "UTC"), "google.protobuf.Duration": pa.duration("ns")}
JSON = frozenset({"google.protobuf.Struct", "google.protobuf.Value", "google.protobuf.ListValue"})
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)


class Scalar(NamedTuple):
    """A scalar type of protobuf."""

    name: str
    wire_type: int
    type: pa.DataType
    dtype: Any = None  # of its numbers
    zigzag: bool = False


_SCALARS = {  # by the number of the type in descriptors
    1: Scalar("double", FIXED64, pa.float64(), np.float64),
    2: Scalar("float", FIXED32, pa.float32(), np.float32),
    3: Scalar("int64", VARINT, pa.int64(), np.int64),
    4: Scalar("uint64", VARINT, pa.uint64(), np.uint64),
    5: Scalar("int32", VARINT, pa.int32(), np.int32),
    6: Scalar("fixed64", FIXED64, pa.uint64(), np.uint64),
    7: Scalar("fixed32", FIXED32, pa.uint32(), np.uint32),
    8: Scalar("bool", VARINT, pa.bool_(), np.bool_),
    9: Scalar("string", LEN, pa.string()),
    12: Scalar("bytes", LEN, pa.binary()),
    13: Scalar("uint32", VARINT, pa.uint32(), np.uint32),
    14: Scalar("enum", VARINT, pa.string(), np.int32),
    15: Scalar("sfixed32", FIXED32, pa.int32(), np.int32),
    16: Scalar("sfixed64", FIXED64, pa.int64(), np.int64),
    17: Scalar("sint32", VARINT, pa.int32(), np.int32, zigzag=True),
    18: Scalar("sint64", VARINT, pa.int64(), np.int64, zigzag=True),
}
_GROUP_TYPE, _MESSAGE_TYPE = 10, 11
_SERIALIZED = Scalar("message", LEN, pa.binary())
MESSAGE_KEY = b"tfrecord_io.message"  # in the metadata of a field of bytes: the name of the message that they are


@dataclass(frozen=True, slots=True, eq=False)
class EnumNames:
    """The values of an enum."""

    names: dict[int, str]  # by number; of several names of one number, the first
    numbers: dict[str, int]
    is_closed: bool  # other numbers are unknown fields; else they are values

    def texts(self, numbers: pa.Array) -> pa.Array:
        """The names of numbers; of those without a name, the number."""
        encoded = numbers.dictionary_encode()
        texts = [self.names.get(number, str(number)) for number in encoded.dictionary.to_pylist()]
        return pa.array(texts, pa.string()).take(encoded.indices)


@dataclass(frozen=True, eq=False)
class MessageField:
    """A field of a message: a column, or the child of one."""

    name: str
    path: str
    number: int
    scalar: Scalar | None  # or
    message: MessageNode | None
    enum: EnumNames | None = None
    repeated: bool = False
    is_map: bool = False
    is_group: bool = False
    presence: bool = False  # absent is null; else it is the default
    required: bool = False
    packed: bool = False
    oneof: int = -1
    serialized: str = ""  # the name of the message whose bytes are the values

    @property
    def arrow(self) -> pa.Field:
        """The field of the column."""
        return pa.field(self.name, self.type, metadata={MESSAGE_KEY: self.serialized} if self.serialized else None)

    @cached_property
    def type(self) -> pa.DataType:
        """Type of the column."""
        if self.is_map:
            key, value = self.node.fields
            return pa.map_(key.type, value.arrow if value.serialized else value.type)
        return pa.list_(self.item_type) if self.repeated else self.item_type

    @property
    def item_type(self) -> pa.DataType:
        """Type of one value."""
        return self.scalar.type if self.scalar is not None else self.node.type

    @property
    def node(self) -> MessageNode:
        assert self.message is not None
        return self.message

    @property
    def width(self) -> int:
        """The bytes that it takes in each row, whatever the values are."""
        if self.repeated:
            return 4
        if self.scalar is None:
            return 1 + self.node.width
        return 1 + (4 if self.scalar.dtype is None or self.enum else np.dtype(self.scalar.dtype).itemsize)

    @property
    def wire_type(self) -> int:
        if self.scalar is not None:
            return self.scalar.wire_type
        return GROUP if self.is_group else LEN


@dataclass(frozen=True, eq=False)
class MessageNode:
    """A message type where it is used."""

    name: str
    fields: list[MessageField] = field(default_factory=list)  # in the order of their numbers
    skipped: list[Engine.FieldForm] = field(default_factory=list)  # of the other fields

    @property
    def is_wrapper(self) -> bool:
        """True if the message is a wrapper, such as Int64Value: its column has the wrapped value."""
        return self.name in _WRAPPERS

    @cached_property
    def type(self) -> pa.DataType:
        if self.name in JSON:
            return pa.string()
        if self.name in TIMES:
            return TIMES[self.name]
        if self.is_wrapper:
            return self.fields[0].item_type
        return pa.struct([field.arrow for field in self.fields])

    @cached_property
    def forms(self) -> list[Engine.FieldForm]:
        """How its fields are read, those of `fields` first."""
        closed = [f.presence and f.enum is not None and f.enum.is_closed for f in self.fields]
        pairs = zip(self.fields, closed, strict=True)
        read_forms = [
            Engine.FieldForm(f.number, f.wire_type, repeated=f.repeated, wanted=True, oneof=f.oneof, keeps_all=closes)
            for f, closes in pairs
        ]
        return [*read_forms, *self.skipped]

    @cached_property
    def width(self) -> int:
        """The bytes that its fields take in each row."""
        return sum(field.width for field in self.fields)


def message_tree(descriptor: Any, columns: Iterable[str] | None = None, most_fields: int = 100_000) -> MessageNode:
    """The tree of a message type. Where a message contains itself, its field has the bytes of the inner one.

    `columns` are those of its fields that are columns, in this order; by default all. SchemaError if messages are
    nested too deep, a group contains itself, or there are more than `most_fields` (`Limits.features`).
    """
    builder = _Builder(most_fields)
    chosen = [field.name for field in descriptor.fields] if columns is None else list(columns)
    return builder.node(descriptor, "", (), chosen)


class _Builder:
    def __init__(self, most_fields: int) -> None:
        self._most, self._count = most_fields, 0
        self._enums: dict[str, EnumNames] = {}

    def node(
        self, descriptor: Any, path: str, outer: Sequence[str], chosen: Sequence[str] | None = None
    ) -> MessageNode:
        name = descriptor.full_name
        if name in JSON:
            return MessageNode(name)
        if name in outer or len(outer) >= _MOST_LEVELS:
            column = path.partition(".")[0]
            reason = f"messages are nested deeper than {_MOST_LEVELS}"
            if name in outer:
                reason = f"the group '{printable(name)}' contains itself, so no type has all of it"
            advice = f"leave the column out, columns={['*', f'!{printable(column)}']!r}"
            raise SchemaError(
                reason,
                feature=path,
                hint=f'{advice}, or read record_type="bytes"',
                hint_cli=f"{advice}, or read --record-type bytes",
            )
        fields = sorted(descriptor.fields, key=lambda member: member.number)
        groups = [oneof.name for oneof in descriptor.oneofs if len(oneof.fields) > 1]
        members, skipped = [], []
        for member in fields:
            oneof = member.containing_oneof
            group = groups.index(oneof.name) if oneof is not None and oneof.name in groups else -1
            if chosen is None or member.name in chosen:
                members.append(
                    self._field(member, f"{path}.{member.name}" if path else member.name, group, (*outer, name))
                )
            else:
                type_ = member.type
                wire_type = GROUP if type_ == _GROUP_TYPE else LEN if type_ == _MESSAGE_TYPE else _SCALARS[type_][1]
                skipped.append(
                    Engine.FieldForm(member.number, wire_type, repeated=_is_repeated(member), wanted=False, oneof=group)
                )
        if chosen is not None:
            members.sort(key=lambda member: chosen.index(member.name))
        return MessageNode(name, members, skipped)

    def _field(self, one: Any, path: str, oneof: int, outer: Sequence[str]) -> MessageField:
        self._count += 1
        if self._count > self._most:
            advice = (
                "raise tfr.dataset(…, limits=tfr.Limits(features=…)) if they are intended, or choose fewer columns="
            )
            advice_cli = "choose fewer --columns"
            raise SchemaError(
                f"the message '{printable(outer[0])}' has more than {self._most} fields",
                hint=advice,
                hint_cli=advice_cli,
            )
        repeated = _is_repeated(one)
        message, scalar, serialized = None, _SCALARS.get(one.type), ""
        if one.type == _MESSAGE_TYPE and one.message_type.full_name in outer:
            scalar, serialized = _SERIALIZED, one.message_type.full_name
        elif one.message_type is not None:
            message = self.node(one.message_type, path, outer)
        is_map = message is not None and repeated and one.message_type.GetOptions().map_entry
        return MessageField(
            one.name,
            path,
            number=one.number,
            scalar=scalar,
            message=message,
            enum=None if one.enum_type is None else self._enum(one.enum_type),
            repeated=repeated,
            is_map=is_map,
            is_group=one.type == _GROUP_TYPE,
            # the key or the value of a map has its default where it is absent
            presence=not repeated and one.has_presence and not one.containing_type.GetOptions().map_entry,
            required=is_required(one),
            packed=repeated and is_packed(one),
            oneof=oneof,
            serialized=serialized,
        )

    def _enum(self, descriptor: Any) -> EnumNames:
        if descriptor.full_name not in self._enums:
            names: dict[int, str] = {}
            for value in descriptor.values:
                names.setdefault(value.number, value.name)
            numbers = {value.name: value.number for value in descriptor.values}
            self._enums[descriptor.full_name] = EnumNames(names, numbers, is_closed(descriptor))
        return self._enums[descriptor.full_name]


def _is_repeated(one: Any) -> bool:
    """As `is_repeated`, which the oldest versions do not have."""
    return bool(one.is_repeated if hasattr(one, "is_repeated") else one.label == one.LABEL_REPEATED)


def is_required(one: Any) -> bool:
    """True if a message must have a field, given by its descriptor."""
    return bool(one.is_required if hasattr(one, "is_required") else one.label == one.LABEL_REQUIRED)


def is_closed(enum: Any) -> bool:
    """True if an enum, by its descriptor, has the values of its definition alone: other numbers are unknown fields."""
    return bool(enum.is_closed) if hasattr(enum, "is_closed") else _is_proto2(enum.file)  # before protobuf 4.22


def is_packed(field: Any) -> bool:
    """True if the numbers of a repeated field, by its descriptor, are written as one value."""
    if hasattr(field, "is_packed"):
        return bool(field.is_packed)
    from google.protobuf.descriptor import FieldDescriptor

    options = field.GetOptions()  # before protobuf 5.29
    is_number = field.cpp_type not in (FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_MESSAGE)
    return bool(options.packed) if options.HasField("packed") else is_number and not _is_proto2(field.file)


def _is_proto2(file: Any) -> bool:
    from google.protobuf import descriptor_pb2

    message = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(message)
    return message.syntax in ("", "proto2")
