"""Types of records: an Example, a SequenceExample, plain bytes, or a message of any other type.

Tests: tests/columns/arrow/messages/test_message_batches.py and tests/base/options/test_options.py.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple, get_args

from tfrecord_io.base.messages.display import printable
from tfrecord_io.errors import SchemaError
from tfrecord_io.typing import RecordTypeName

_WELL_KNOWN = ("any", "descriptor", "duration", "empty", "field_mask", "struct", "timestamp", "wrappers")
_EXPECTED = "a message class, or (descriptor set, name of the message)"
_PROTOC = "protoc --include_imports --descriptor_set_out=FILE"


class MessageType(NamedTuple):
    """A type of messages, which can be pickled."""

    descriptors: bytes  # a serialized FileDescriptorSet, with the file of the message and all that it imports
    name: str  # the full name of the message

    def __repr__(self) -> str:
        return f"<message {printable(self.name)}>"

    @property
    def descriptor(self) -> Any:
        """The message's ``google.protobuf.descriptor.Descriptor``, in a pool of its own.

        SchemaError if the descriptor set is not valid, or does not have the message.
        """
        return _descriptor(self)

    @staticmethod
    def takes_payloads(record_type: object) -> bool:
        """True if the engines leave the content of records as it is: for ``record_type="bytes"`` and for messages."""
        return isinstance(record_type, MessageType) or record_type == "bytes"


def checked_record_type(value: object) -> RecordTypeName | MessageType | None:
    """The value of a keyword ``record_type=``; ValueError if it is none, SchemaError as `MessageType.descriptor`."""
    names = (None, *get_args(RecordTypeName))
    if value is None or isinstance(value, MessageType) or (isinstance(value, str) and value in names):
        return value  # type: ignore[return-value]
    descriptor: Any = getattr(value, "DESCRIPTOR", None)
    if hasattr(descriptor, "fields_by_number"):
        record_type = MessageType(_descriptors_of(descriptor.file), descriptor.full_name)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes) and len(value) == 2:
        record_type = _from_set(*value)
    else:
        shown = printable(repr(value))
        text = f"record_type={shown}: expected one of {', '.join(map(repr, names))}"
        raise ValueError(f"{text}, or {_EXPECTED}")
    _ = record_type.descriptor  # now, as it may raise
    return record_type


def _from_set(descriptors: object, name: object) -> MessageType:
    if not isinstance(name, str):
        raise TypeError(f"record_type=(…, {name!r}): expected the full name of a message, such as 'pkg.Frame'")
    if isinstance(descriptors, str | os.PathLike):
        with open(descriptors, "rb") as file:
            descriptors = file.read()
    elif hasattr(descriptors, "SerializeToString"):
        descriptors = descriptors.SerializeToString()
    if not isinstance(descriptors, bytes | bytearray | memoryview):
        raise TypeError(
            f"record_type={(type(descriptors).__name__, name)!r}: expected the path or the bytes of a descriptor set"
        )
    return MessageType(bytes(descriptors), name)


def _descriptors_of(file: Any) -> bytes:
    """The descriptor set of a file and its imports at any depth, each after its own imports."""
    from google.protobuf import descriptor_pb2

    files: dict[str, Any] = {}

    def add(one: Any) -> None:
        if one.name not in files:
            for imported in one.dependencies:
                add(imported)
            proto = descriptor_pb2.FileDescriptorProto()
            one.CopyToProto(proto)
            files[one.name] = proto

    add(file)
    return descriptor_pb2.FileDescriptorSet(file=files.values()).SerializeToString(deterministic=True)


@lru_cache(maxsize=64)
def _descriptor(type_: MessageType) -> Any:
    from difflib import get_close_matches

    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(type_.descriptors).file
    except DecodeError:
        reason = "the descriptor set is not valid: it is not a serialized FileDescriptorSet"
        raise SchemaError(reason, hint=f"compile it by {_PROTOC}") from None
    pool, named = descriptor_pool.DescriptorPool(), {file.name: file for file in files}
    for file in _order_imports(named):
        try:
            pool.AddSerializedFile(file.SerializeToString())
        except (TypeError, ValueError, DecodeError) as error:
            lacking = [name for name in file.dependency if name not in named and _well_known(name) is None]
            reason = f"'{printable(file.name)}' imports '{printable(lacking[0])}'" if lacking else str(error)
            advice = f"it must have all imported files: {_PROTOC}" if lacking else f"compile it by {_PROTOC}"
            raise SchemaError(f"the descriptor set is not valid: {printable(reason)}", hint=advice) from None
    try:
        return pool.FindMessageTypeByName(type_.name)
    except KeyError:
        names = [name for file in files for name in _message_names(file.message_type, file.package)]
        near = get_close_matches(type_.name, names, 3, 0.4) or names[:8]
        shown = ", ".join(f"'{printable(name)}'" for name in near) or "no messages"
        reason = f"the descriptor set has no message '{printable(type_.name)}'"
        raise SchemaError(reason, hint=f"it has: {shown}") from None


def _order_imports(named: dict[str, Any]) -> list[Any]:
    """Files, each after its imports; those of protobuf itself are added."""
    ordered: dict[str, Any] = {}
    waiting = [(name, False) for name in reversed(named)]
    begun: set[str] = set()
    while waiting:
        name, is_complete = waiting.pop()
        file = named.get(name) or _well_known(name)
        if file is None or name in ordered:
            continue
        if is_complete:
            ordered[name] = file
        elif name not in begun:
            begun.add(name)
            waiting += [(name, True), *((imported, False) for imported in file.dependency)]
    return list(ordered.values())


def _well_known(name: str) -> Any:
    """A file that comes with protobuf; None for others."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    if not isinstance(name, str):  # bytes that are not UTF-8
        return None
    module = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if module not in _WELL_KNOWN or name != f"google/protobuf/{module}.proto":
        return None
    proto = FileDescriptorProto()
    import_module(f"google.protobuf.{module}_pb2").DESCRIPTOR.CopyToProto(proto)
    return proto


def _message_names(messages: Sequence[Any], outer: str) -> list[str]:
    names = []
    for message in messages[:100]:
        name = f"{outer}.{message.name}" if outer else message.name
        if not message.options.map_entry:
            names += [name, *_message_names(message.nested_type, name)]
    return names
