"""Schemas as text: JSON, and Python source that calls the field makers."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns.schema import field_makers as makers
from tfrecord_io.columns.schema.column_features import BY_WIRE, FEATURE_LIST, LIST, shape_of
from tfrecord_io.columns.schema.field import (
    CONVERSION_ERRORS,
    RAW_IMAGE_KEY,
    Field,
    from_json_value,
    json_text,
    to_json_value,
)
from tfrecord_io.columns.schema.image_form import RawImageForm, image_form, is_image
from tfrecord_io.columns.schema.tensor_types import element_and_shape, is_any_tensor
from tfrecord_io.columns.schema.type_names import type_from_name, type_name
from tfrecord_io.columns.schema.types import is_list_like
from tfrecord_io.errors import SchemaError

_MODULE = "tfr"
_NAMES = {"<item: ": "<", "halffloat": "float16", "float": "float32", "double": "float64"}  # by Arrow's name
_ARROW_NAMES = re.compile(r"<item: |\bhalffloat\b|\bfloat\b|\bdouble\b")
VERSION = 1
_AS_THEY_ARE = ("feature", "encoding", "required", "shape", "part", "empty")  # attributes that JSON has as they are
_KEYS = {"column", "type", "default", "metadata", *_AS_THEY_ARE}


@dataclass(frozen=True)
class _Call:
    """A call of a field maker, to be executed or printed."""

    maker: Callable[..., Field]
    args: tuple[Any, ...]
    keywords: dict[str, Any]

    def execute(self) -> Field:
        return self.maker(*(arg.execute() if isinstance(arg, _Call) else arg for arg in self.args), **self.keywords)

    def __str__(self) -> str:
        parts = [*map(_literal, self.args), *(f"{k}={_literal(v)}" for k, v in self.keywords.items())]
        return f"{_MODULE}.{self.maker.__name__}({', '.join(parts)})"


def to_python(fields: Iterable[Field]) -> str:
    """Statements that assign a schema of these fields to the variable ``schema``."""
    rows = "".join(f"    {_literal(f.column)}: {_expression(f)},\n" for f in fields)
    return f"import tfrecord_io as {_MODULE}\n\nschema = {_MODULE}.Schema({{\n{rows}}})"


def _expression(f: Field) -> str:
    if (name := _plain_name(f)) is not None:
        return _literal(name)
    with suppress(SchemaError):
        if (struct := _struct_expression(f)) is not None:
            return struct
        call = _call(f)
        if f.shape_source is not None:  # which decides the type when files are read
            return str(call)
        if call.execute().named(f.column) == f:
            return str(call)
    return f"{_MODULE}.Schema.from_json({_literal(to_json([f]))})[0]"


def _struct_expression(f: Field) -> str | None:
    """A dict of the fields of a struct, or a list of them, if it makes the same column; None for other columns."""
    is_list = t.is_list(f.type) and t.is_struct(f.type.value_type)
    struct = f.type.value_type if is_list else f.type
    if not t.is_struct(struct):
        return None
    fields = {child.name: Field.from_arrow(child) for child in struct}
    declared: Any = makers.list_(fields) if is_list else fields
    if len(fields) != struct.num_fields or makers.as_field(f.column, declared) != f:
        return None
    parts = ", ".join(f"{_literal(name)}: {_expression(child)}" for name, child in fields.items())
    return f"{_MODULE}.list_({{{parts}}})" if is_list else f"{{{parts}}}"


def _plain_name(f: Field) -> str | None:
    """The name of the type, if it alone makes the same field."""
    with suppress(SchemaError):
        name = _name(f.type)
        return name if not is_image(f) and makers.as_field(f.column, type_from_name(name)) == f else None
    return None


def _call(f: Field) -> _Call:
    keywords = {"default": f.default} if f.default is not None else {}
    keywords |= {"required": True} if f.required else {}
    keywords |= {"feature": f.feature} if f.feature != f.column else {}
    keywords |= {"empty": f.empty} if f.empty is not None else {}
    form = image_form(f)
    image = None if form is None else _Call(makers.image, () if form.shape is None else (form.shape,), form.keywords())
    if f.part == FEATURE_LIST:
        if image is not None:
            return _Call(makers.sequence, (image,), keywords)
        metadata = f.metadata if is_any_tensor(f.value) else {}
        step = Field("", f.value, encoding=f.encoding, shape=f.shape, metadata=metadata)
        if ShapeSource.entry_of(f.metadata) is not None:
            return _Call(makers.sequence, (_call(replace(step, metadata=f.metadata)),), keywords)
        return _Call(makers.sequence, (_plain_name(step) or _call(step),), keywords)
    source = f.shape_source
    if source is not None and is_list_like(f.type):
        item = Field("", f.type.value_type, encoding=f.encoding, shape=f.shape, metadata=f.metadata)
        length = (f.type.list_size,) if t.is_fixed_size_list(f.type) else ()
        return _Call(makers.list_, (_call(item), *length), keywords)
    if (raw := RawImageForm.from_metadata(f.metadata, f.column)) is not None:
        metadata = {key: value for key, value in f.metadata.items() if key != RAW_IMAGE_KEY}
        return _Call(makers.image, (_call(replace(f, metadata=metadata)),), raw.keywords())
    if source is not None:
        keywords |= {"encoding": source.encoding} if source.is_open and source.encoding is not None else {}
        return _Call(makers.tensor, (source.dtype or source.element, source.axes), keywords)
    if is_any_tensor(f.type):
        element, shape = element_and_shape(f.tensor)
        return _Call(makers.tensor, (element.name, shape), _add_encoding(f, keywords, BY_WIRE))
    if is_list_like(f.type) and f.shape != shape_of(f.type):
        return _Call(makers.tensor, (_name(f.type.value_type), f.shape), _add_encoding(f, keywords, LIST))
    if is_list_like(f.type):
        length = (f.type.list_size,) if t.is_fixed_size_list(f.type) else ()
        return _Call(makers.list_, (image or _name(f.type.value_type), *length), _add_encoding(f, keywords, LIST))
    if image is not None or (t.is_binary(f.type) and f.shape is not None):
        image = image or _Call(makers.image, (f.shape,), {})
        return _Call(image.maker, image.args, {**image.keywords, **keywords})
    if f.encoding == BY_WIRE:
        return _Call(makers.tensor, (_name(f.type), ()), keywords)
    return _Call(makers.scalar, (_name(f.type),), _add_encoding(f, keywords, LIST))


def _add_encoding(f: Field, keywords: dict[str, Any], default: str) -> dict[str, Any]:
    return keywords if f.encoding == default else {**keywords, "encoding": f.encoding}


def _name(type_: pa.DataType) -> str:
    """The usual name of a type; SchemaError where no name is parsed as the same type."""
    exact = type_name(type_)
    for name in (_ARROW_NAMES.sub(lambda match: _NAMES[match[0]], exact), exact):
        if type_from_name(name).equals(type_, check_metadata=True):
            return name
    raise SchemaError("no name describes the whole type", got=exact)


def _literal(value: Any) -> str:
    """Source of a value; SchemaError where it has none."""
    if isinstance(value, _Call):
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if value.isprintable() else repr(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    is_finite = not isinstance(value, float) or math.isfinite(value)
    if isinstance(value, bool | int | float | bytes | tuple | None) and is_finite:
        return repr(value)
    raise SchemaError("a value has no literal", got=value)


def to_json(fields: Iterable[Field], metadata: Mapping[bytes, bytes] | None = None, indent: int | None = None) -> str:
    """The document of a schema with these fields and metadata; characters that are not printable are escaped."""
    document: dict[str, Any] = {"version": VERSION, "fields": [_entry(f) for f in fields]}
    if metadata:
        document["metadata"] = _pairs(metadata)
    text = json_text(document, indent)
    return "".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)


def from_json(text: str | bytes) -> tuple[list[Field], dict[bytes, bytes]]:
    """Fields and metadata of the schema in a document; SchemaError if it is damaged, or of another version."""
    try:
        document = json.loads(text)
        if document["version"] != VERSION:
            raise SchemaError(f"the schema is of version {document['version']!r}, this version reads {VERSION}")
        return [_field(entry) for entry in document["fields"]], _metadata(document)
    except SchemaError:
        raise
    except CONVERSION_ERRORS as error:
        reason = f"the text is not a schema as written by to_json ({type(error).__name__}: {error})"
        raise SchemaError(reason) from error


def _entry(f: Field) -> dict[str, Any]:
    entry: dict[str, Any] = {"column": f.column, "type": _type_entry(f.type)}
    default = Field(f.column, f.type, metadata=f.metadata)
    for name in _AS_THEY_ARE:
        if getattr(f, name) != getattr(default, name) and (name != "required" or f.required):
            entry[name] = getattr(f, name)
    if f.default is not None:
        entry["default"] = to_json_value(f.default)
    if f.metadata:
        entry["metadata"] = _pairs(f.metadata)
    return entry


def _field(entry: dict[str, Any]) -> Field:
    if unknown := set(entry) - _KEYS:
        raise ValueError(f"unknown keys of a field: {sorted(unknown)}")
    if not isinstance(entry.get("required"), bool | None):
        raise ValueError(f"required is true or false, not {entry['required']!r}")
    attributes = {name: entry[name] for name in _AS_THEY_ARE if name in entry}
    default, metadata = from_json_value(entry.get("default")), _metadata(entry)
    return Field(entry["column"], _type_of(entry["type"]), default=default, metadata=metadata, **attributes)


def _type_entry(type_: pa.DataType) -> Any:
    """A type's name; if it is parsed as another type, the fields of a struct, or of structs in a list.

    Arrow's own bytes for other types, and where two fields of a struct have one name.
    """
    name = type_name(type_)
    with suppress(SchemaError):
        if type_from_name(name).equals(type_, check_metadata=True):
            return name
    struct, key = (type_.value_type, "structs") if t.is_list(type_) else (type_, "struct")
    if t.is_struct(struct):
        with suppress(SchemaError):
            entry = {key: [_entry(Field.from_arrow(child)) for child in struct]}
            if _type_of(entry).equals(type_, check_metadata=True):
                return entry
    return {"arrow": base64.b64encode(pa.schema([pa.field("", type_)]).serialize().to_pybytes()).decode()}


def _type_of(entry: Any) -> pa.DataType:
    if isinstance(entry, str):
        return type_from_name(entry)
    if (key := next((key for key in ("struct", "structs") if key in entry), None)) is not None:
        struct = pa.struct([_field(child).to_arrow() for child in entry[key]])
        return pa.list_(struct) if key == "structs" else struct
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(entry["arrow"]))).field(0).type


def _pairs(metadata: Any) -> list[list[Any]]:
    return [[to_json_value(_text(key)), to_json_value(_text(value))] for key, value in metadata.items()]


def _metadata(entry: dict[str, Any]) -> dict[bytes, bytes]:
    return {_bytes(from_json_value(key)): _bytes(from_json_value(value)) for key, value in entry.get("metadata", [])}


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
