"""The protobuf class of TensorProto, in a descriptor pool of its own.

From tensorflow/core/framework/tensor.proto and tensor_shape.proto. Floats are declared as the bits they are: fixed32 and
float are the same on the wire, but a Python float quiets a signalling NaN. An enum is an int32 there. What stands in the
fields of resources, variants and 8 bit floats is no array: they are left unknown, and skipped.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE = "tensorflow"
_FieldSpec = tuple[str, int, str]  # name, number, type; a leading "*" repeats it
_Message = descriptor_pb2.FieldDescriptorProto

_MESSAGES: dict[str, tuple[_FieldSpec, ...]] = {
    "Dim": (("size", 1, "int64"), ("name", 2, "string")),
    "TensorShapeProto": (("dim", 2, "*Dim"), ("unknown_rank", 3, "bool")),
    "TensorProto": (
        ("dtype", 1, "int32"),
        ("tensor_shape", 2, "TensorShapeProto"),
        ("version_number", 3, "int32"),
        ("tensor_content", 4, "bytes"),
        ("float_val", 5, "*fixed32"),
        ("double_val", 6, "*fixed64"),
        ("int_val", 7, "*int32"),
        ("string_val", 8, "*bytes"),
        ("scomplex_val", 9, "*fixed32"),
        ("int64_val", 10, "*int64"),
        ("bool_val", 11, "*bool"),
        ("dcomplex_val", 12, "*fixed64"),
        ("half_val", 13, "*int32"),
        ("uint32_val", 16, "*uint32"),
        ("uint64_val", 17, "*uint64"),
    ),
}


def _file() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="tfrecord_io/tensor.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for field_name, number, kind in fields:
            label = _Message.LABEL_REPEATED if kind.startswith("*") else _Message.LABEL_OPTIONAL
            field = message.field.add(name=field_name, number=number, label=label)
            kind = kind.removeprefix("*")
            if kind in _MESSAGES:
                field.type = _Message.TYPE_MESSAGE
                field.type_name = f".{_PACKAGE}.{kind}"
            else:
                field.type = getattr(_Message, f"TYPE_{kind.upper()}")
    return file


_pool = descriptor_pool.DescriptorPool()
_pool.AddSerializedFile(_file().SerializeToString())
TensorProto = message_factory.GetMessageClass(_pool.FindMessageTypeByName(f"{_PACKAGE}.TensorProto"))
