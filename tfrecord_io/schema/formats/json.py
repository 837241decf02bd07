"""A schema as a JSON document and back: a field has only what differs from the plain."""

from __future__ import annotations

import base64
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.jsons import DEFECTS, dumps, from_plain, loads, to_plain
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import type_from_name, type_name
from tfrecord_io.schema.types import LIST

VERSION = 1
_KEYS = {"column", "type", "feature", "encoding", "required", "default", "shape", "part", "metadata"}


def text_of(schema: Schema, indent: int | None = None) -> str:
    """The document of a schema."""
    document: dict[str, Any] = {"version": VERSION, "fields": [_entry(f) for f in schema]}
    if schema.metadata:
        document["metadata"] = _pairs(schema.metadata)
    return dumps(document, indent)


def schema_of(text: str | bytes) -> Schema:
    """The schema of a document.

    Raises
    ------
    SchemaError
        It is damaged, or of another version.
    """
    try:
        document = loads(text)
        if document["version"] != VERSION:
            raise SchemaError(f"the schema is of version {document['version']!r}, this version reads {VERSION}")
        return Schema([_field(entry) for entry in document["fields"]], _metadata(document))
    except SchemaError:
        raise
    except DEFECTS as error:
        raise SchemaError(f"the text is no schema as to_json writes it ({type(error).__name__}: {error})") from error


def _entry(f: Field) -> dict[str, Any]:
    entry: dict[str, Any] = {"column": f.column, "type": _type_entry(f.type)}
    plain = Field(f.column, f.type, metadata=f.metadata)
    for name in ("feature", "encoding", "required", "shape", "part"):
        if getattr(f, name) != getattr(plain, name):
            entry[name] = getattr(f, name)
    if f.default is not None:
        entry["default"] = to_plain(f.default)
    if f.metadata:
        entry["metadata"] = _pairs(f.metadata)
    return entry


def _field(entry: dict[str, Any]) -> Field:
    if unknown := set(entry) - _KEYS:
        raise ValueError(f"a field has no {sorted(unknown)}")
    return Field(
        entry["column"],
        _type_of(entry["type"]),
        entry.get("feature", entry["column"]),
        entry.get("encoding", LIST),
        entry.get("required", False),
        from_plain(entry.get("default")),
        _metadata(entry),
        entry.get("shape"),
        entry.get("part"),  # type: ignore[arg-type]
    )


def _type_entry(type_: pa.DataType) -> Any:
    """A type's name; where a name does not say all (names of a struct's children may be any text), Arrow's own bytes."""
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
    return [[to_plain(_text(key)), to_plain(_text(value))] for key, value in metadata.items()]


def _metadata(entry: dict[str, Any]) -> dict[bytes, bytes]:
    return {_bytes(from_plain(key)): _bytes(from_plain(value)) for key, value in entry.get("metadata", [])}


def _text(raw: bytes) -> str | bytes:
    """Text where it is text, for people to read."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
