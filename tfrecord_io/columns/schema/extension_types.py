"""Arrow's extension types: their name and parameters in a field's metadata, and the registered type of these.

Arrow's IPC format states an extension type in the metadata of a field of its storage. Where no type of that name is
registered, the field is handed out so: as the storage with this metadata, from which a later reader has the type.

Tests: tests/laws/test_extension_types.py and tests/columns/schema/test_types.py.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable, warn
from tfrecord_io.columns.schema.tensor_types import EXTENSION_METADATA, EXTENSION_NAME, extension_metadata
from tfrecord_io.errors import SchemaWarning

_EVALUATED = frozenset({b"arrow.py_extension_type"})  # whose parameters are a pickle: they are never loaded


def stated_extension(field: pa.Field) -> tuple[bytes, bytes] | None:
    """The name and the parameters of the extension type that a field's metadata names; None if it names none.

    >>> stated_extension(pa.field("x", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"}))
    (b'geoarrow.wkb', b'')
    """
    metadata = field.metadata or {}
    name = metadata.get(EXTENSION_NAME)
    return None if name is None else (name, metadata.get(EXTENSION_METADATA, b""))


def registered_field(field: pa.Field) -> pa.Field:
    """Give a field the extension type named in its metadata, if the type is registered; else leave it as it is.

    The parameters may be from an untrusted file. Only the class that the program has registered by this name reads
    them, as it does when Arrow reads its own files. If that refuses them, there is a SchemaWarning.

    >>> metadata = extension_metadata(pa.opaque(pa.int8(), "t", "v"))
    >>> registered_field(pa.field("x", pa.int8(), metadata=metadata)).type.type_name
    't'
    """
    registered = _registered_type(field)
    if registered is None:
        return field
    metadata = {key: value for key, value in field.metadata.items() if key not in (EXTENSION_NAME, EXTENSION_METADATA)}
    if isinstance(registered, pa.DataType):
        return field.with_type(registered).with_metadata(metadata or None)
    name = printable(field.metadata[EXTENSION_NAME].decode("utf-8", "backslashreplace"), 80)
    text = f"column '{printable(field.name)}': the extension type {name} does not take its parameters or its storage"
    warn(f"{text} ({registered}): the column is read as its storage, {printable(str(field.type), 80)}", SchemaWarning)
    return field


def _registered_type(field: pa.Field) -> pa.DataType | str | None:
    """The registered type named in a field's metadata; None if none is registered, the reason if the type refuses."""
    extension = stated_extension(field)
    is_made = isinstance(field.type, pa.BaseExtensionType)
    if extension is None or extension[0] in _EVALUATED or is_made or _holds_union(field.type):
        return None
    marks = dict(zip((EXTENSION_NAME, EXTENSION_METADATA), extension, strict=True))
    message = pa.schema([pa.field("", field.type, metadata=marks)]).serialize()
    try:
        type_ = pa.ipc.read_schema(message).field(0).type
    except Exception as error:  # the class may be of any package
        return type(error).__name__
    if not isinstance(type_, pa.BaseExtensionType):
        return None
    return type_ if type_.storage_type.equals(field.type) else f"its storage is {type_.storage_type}"


def _holds_union(type_: pa.DataType) -> bool:
    """True if a union is in a storage: Arrow (26.0) ends the process at nulls of an extension type over one."""
    if isinstance(type_, pa.BaseExtensionType):
        return _holds_union(type_.storage_type)
    if t.is_dictionary(type_):
        return _holds_union(type_.value_type)
    parts = (type_.field(at).type for at in range(type_.num_fields if t.is_nested(type_) else 0))
    return bool(t.is_union(type_)) or any(map(_holds_union, parts))


def extension_over(type_: pa.BaseExtensionType, storage: pa.DataType) -> pa.DataType:
    """The extension type over a storage of another layout; that storage, if the type does not take it, or has a union.

    >>> extension_over(pa.opaque(pa.large_string(), "t", "v"), pa.string()).storage_type
    DataType(string)
    """
    if storage.equals(type_.storage_type) and not _holds_union(storage):
        return type_
    extended = _registered_type(pa.field("", storage, metadata=extension_metadata(type_)))
    return extended if isinstance(extended, pa.DataType) else storage


def name_with_extension(name: str, field: pa.Field) -> str:
    """The name of a field's type, with the extension type that its metadata names.

    >>> name_with_extension("binary", pa.field("x", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"}))
    "binary of the extension type geoarrow.wkb ''"
    """
    extension = stated_extension(field)
    if extension is None:
        return name
    shown, parameters = (printable(part.decode("utf-8", "backslashreplace"), 80) for part in extension)
    return f"{name} of the extension type {shown} '{parameters}'"


def stated_extensions(field: pa.Field) -> dict[tuple[str, ...], tuple[bytes, bytes]]:
    """The `stated_extension` of a field and of its parts, by the names on the way to the part."""
    extensions: dict[tuple[str, ...], tuple[bytes, bytes]] = {}
    type_ = field.type
    if (extension := stated_extension(field)) is not None:
        extensions[()] = extension
    for at in range(type_.num_fields if t.is_nested(type_) else 0):
        part = type_.field(at)
        name = part.name if t.is_struct(type_) else str(at)
        extensions |= {(name, *path): mark for path, mark in stated_extensions(part).items()}
    return extensions
