"""The protobuf classes of tensorflow/core/example, and the shells by which this engine reads them.

All live in a private descriptor pool: in protobuf's default pool they would clash with TensorFlow's own. Messages of
the two pools exchange bytes only.

Python's protobuf (upb) drops a map entry that holds an unknown field, C++ protobuf keeps it. So records are read by
shells, in which a map is what it is on the wire: a repeated message with a key and a value. Values stay bytes there,
so that a feature that is left out is never parsed.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tfrecord_io.engine.contract import EMBEDDED_FIELD

_PACKAGE = "tensorflow"
_FieldSpec = tuple[str, int, str]  # name, number, type: "bytes", "int64", … or a message; a leading "*" repeats it
_SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in ("bytes", "float", "int64", "string")
}

# tensorflow/core/example/feature.proto and example.proto
_MESSAGES: dict[str, tuple[_FieldSpec, ...]] = {
    "BytesList": (("value", 1, "*bytes"),),
    "FloatList": (("value", 1, "*float"),),
    "Int64List": (("value", 1, "*int64"),),
    "Feature": (("bytes_list", 1, "BytesList"), ("float_list", 2, "FloatList"), ("int64_list", 3, "Int64List")),
    "Features": (("feature", 1, "*Features.FeatureEntry"),),
    "FeatureList": (("feature", 1, "*Feature"),),
    "FeatureLists": (("feature_list", 1, "*FeatureLists.FeatureListEntry"),),
    "Example": (("features", 1, "Features"),),
    "SequenceExample": (("context", 1, "Features"), ("feature_lists", 2, "FeatureLists")),
}
_MAPS = {"Features": ("FeatureEntry", "Feature"), "FeatureLists": ("FeatureListEntry", "FeatureList")}

# A value is parsed inside as many messages as in a record, since those count towards protobuf's limit of nesting.
_SHELLS: dict[str, tuple[_FieldSpec, ...]] = {
    "EntryShell": (("key", 1, "*string"), ("value", 2, "*bytes")),
    "MapShell": (("entry", 1, "*EntryShell"),),
    "ExampleShell": (("features", 1, "*MapShell"), ("embedded", EMBEDDED_FIELD, "*bytes")),
    "SequenceShell": (("features", 1, "*MapShell"), ("lists", 2, "*MapShell"), ("embedded", EMBEDDED_FIELD, "*bytes")),
    "FeatureDepth2": (("value", 1, "Feature"),),
    "FeatureDepth1": (("inner", 1, "FeatureDepth2"),),
    "FeatureDepth0": (("inner", 1, "FeatureDepth1"),),
    "FeatureListDepth2": (("value", 1, "FeatureList"),),
    "FeatureListDepth1": (("inner", 1, "FeatureListDepth2"),),
    "FeatureListDepth0": (("inner", 1, "FeatureListDepth1"),),
}


def _add_field(message: Any, name: str, number: int, kind: str) -> Any:
    repeated = kind.startswith("*")
    kind = kind.removeprefix("*")
    labels = descriptor_pb2.FieldDescriptorProto
    field = message.field.add(
        name=name, number=number, label=labels.LABEL_REPEATED if repeated else labels.LABEL_OPTIONAL
    )
    if kind in _SCALARS:
        field.type = _SCALARS[kind]
        if repeated and kind in ("float", "int64"):
            field.options.packed = True
    else:
        field.type = labels.TYPE_MESSAGE
        field.type_name = f".{_PACKAGE}.{kind}"
    return field


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="tfrecord_io/example.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in {**_MESSAGES, **_SHELLS}.items():
        message = file.message_type.add(name=name)
        for spec in fields:
            _add_field(message, *spec)
        if name in _MAPS:
            entry_name, value = _MAPS[name]
            entry = message.nested_type.add(name=entry_name)
            entry.options.map_entry = True
            _add_field(entry, "key", 1, "string")
            _add_field(entry, "value", 2, value)
        if name == "Feature":
            message.oneof_decl.add(name="kind")
            for field in message.field:
                field.oneof_index = 0
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())


def _class(name: str) -> Any:
    message_class = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
    message_class.__module__ = __name__  # where pickle and help() find it
    return message_class


BytesList = _class("BytesList")
FloatList = _class("FloatList")
Int64List = _class("Int64List")
Feature = _class("Feature")
Features = _class("Features")
FeatureList = _class("FeatureList")
FeatureLists = _class("FeatureLists")
Example = _class("Example")
SequenceExample = _class("SequenceExample")

EntryShell = _class("EntryShell")
MapShell = _class("MapShell")
ExampleShell = _class("ExampleShell")
SequenceShell = _class("SequenceShell")
FeatureDepth0 = _class("FeatureDepth0")
FeatureListDepth0 = _class("FeatureListDepth0")
