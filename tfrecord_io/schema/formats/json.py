"""Schemas as JSON documents and back: an entry of a field has only what differs from the default."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.default_values import CONVERSION_ERRORS, from_json_value, json_text, to_json_value
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.leaf import LIST
from tfrecord_io.schema.type_names import type_from_name, type_name

VERSION = 1
_KEYS = {"column", "type", "feature", "encoding", "required", "default", "shape", "part", "empty", "metadata"}


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
    for name in ("feature", "encoding", "required", "shape", "part", "empty"):
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
    return Field(
        entry["column"],
        _type_of(entry["type"]),
        entry.get("feature", entry["column"]),
        entry.get("encoding", LIST),
        entry.get("required"),
        from_json_value(entry.get("default")),
        _metadata(entry),
        entry.get("shape"),
        entry.get("part"),  # type: ignore[arg-type]
        entry.get("empty"),
    )


def _type_entry(type_: pa.DataType) -> Any:
    """A type's name; Arrow's own bytes if it is parsed as another type (names of struct children may be any text)."""
    name = type_name(type_)
    try:
        if type_from_name(name) == type_:
            return name
    except SchemaError:
        pass
    return {"arrow": base64.b64encode(pa.schema([pa.field("", type_)]).serialize().to_pybytes()).decode()}


def _type_of(entry: Any) -> pa.DataType:
    if isinstance(entry, str):
        return type_from_name(entry)
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
