"""Protobuf message classes built from tables of fields, each table in a descriptor pool of its own.

In protobuf's default pool the classes would clash with those of TensorFlow and tensorflow_metadata. Messages of two
pools exchange bytes only.

Tests: tests/plugins/tensorflow/test_from_elwc.py and tests/bytes/engine/test_reference_members.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError

_PROTO = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: getattr(_PROTO, f"TYPE_{name.upper()}")
    for name in "bool bytes double fixed32 fixed64 float int32 int64 string uint32 uint64".split()
}

# tensorflow/core/example/feature.proto and example.proto
EXAMPLE_MESSAGES = {
    "BytesList": "value 1 *bytes",
    "FloatList": "value 1 *float",
    "Int64List": "value 1 *int64",
    "Feature": "bytes_list 1 BytesList|kind, float_list 2 FloatList|kind, int64_list 3 Int64List|kind",
    "Features": "feature 1 *Features.FeatureEntry",
    "Features.FeatureEntry": "key 1 string, value 2 Feature",
    "FeatureList": "feature 1 *Feature",
    "FeatureLists": "feature_list 1 *FeatureLists.FeatureListEntry",
    "FeatureLists.FeatureListEntry": "key 1 string, value 2 FeatureList",
    "Example": "features 1 Features",
    "SequenceExample": "context 1 Features, feature_lists 2 FeatureLists",
}


class MessageClasses(dict[str, Any]):
    """Message classes, by name, in a private pool.

    `messages` has the fields of each message as "name number type, …"; a "*" before the type makes the field repeated,
    a "|group" after it makes it a member of that oneof. A nested message is named "Outer.Inner" and follows its outer
    one; one whose name ends in "Entry" is a map's. `enums` has the values of each enum as "NAME number, …".
    """

    def __init__(
        self,
        file: str,
        package: str,
        messages: Mapping[str, str],
        enums: Mapping[str, str] | None = None,
        *,
        syntax: str = "proto3",
    ) -> None:
        enums = enums or {}
        proto = descriptor_pb2.FileDescriptorProto(name=file, package=package, syntax=syntax)
        protos: dict[str, Any] = {}
        for name, fields in messages.items():
            outer, _, base = name.rpartition(".")
            message = protos[name] = (
                protos[outer].nested_type.add(name=base) if outer else proto.message_type.add(name=base)
            )
            message.options.map_entry = base.endswith("Entry")
            for field in fields.split(",") if fields else ():
                field_name, number, type_ = field.split()
                _add_field(message, field_name, number=int(number), type_=type_, package=package, enums=enums)
        for name, values in enums.items():
            outer, _, base = name.rpartition(".")
            enum = (protos[outer] if outer else proto).enum_type.add(name=base)
            for value_name, value in enum_values(values).items():
                enum.value.add(name=value_name, number=value)
        pool = descriptor_pool.DescriptorPool()
        pool.AddSerializedFile(proto.SerializeToString())
        super().__init__(
            {
                name: message_class(pool.FindMessageTypeByName(f"{package}.{name}"))
                for name in messages
                if not protos[name].options.map_entry
            }
        )

    @classmethod
    @cache
    def from_examples(cls) -> MessageClasses:
        """The classes of tensorflow/core/example."""
        classes = cls("tfrecord_io/example.proto", "tensorflow", EXAMPLE_MESSAGES)
        for message_class in classes.values():
            message_class.__module__ = "tfrecord_io.bytes.format.example_messages"  # where pickle and help() find it
        return classes

    @staticmethod
    def parse(message_class: Any, data: bytes) -> Any:
        """A message; protobuf's DecodeError if `data` is not one, in pure Python also for text that is not UTF-8."""
        try:
            return message_class.FromString(data)
        except UnicodeDecodeError as error:
            raise DecodeError(str(error)) from error


def message_class(descriptor: Any) -> Any:
    """The class of a message, by its descriptor."""
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(descriptor)
    return message_factory.MessageFactory().GetPrototype(descriptor)  # before protobuf 4.22


def enum_values(values: str) -> dict[str, int]:
    """The numbers of an enum by name, from "NAME number, …"."""
    return {name: int(number) for name, number in (value.split() for value in values.split(","))}


def _add_field(message: Any, name: str, number: int, type_: str, package: str, enums: Mapping[str, str]) -> None:
    kind, _, group = type_.removeprefix("*").partition("|")
    label = _PROTO.LABEL_REPEATED if type_.startswith("*") else _PROTO.LABEL_OPTIONAL
    field = message.field.add(name=name, number=number, label=label)
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
    else:
        field.type = _PROTO.TYPE_ENUM if kind in enums else _PROTO.TYPE_MESSAGE
        field.type_name = f".{package}.{kind}"
    if group:
        groups = [oneof.name for oneof in message.oneof_decl]
        if group not in groups:
            message.oneof_decl.add(name=group)
            groups.append(group)
        field.oneof_index = groups.index(group)
