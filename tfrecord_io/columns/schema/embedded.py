"""The Arrow schema that writers put in front of a file's first record, as an unknown protobuf field.

Content of the field: ``TFRA``, a version byte, a flags byte, then an Arrow IPC stream (compressed with zlib if the flag
is set): the schema with its metadata and, if there are categories, their dictionary batches and one batch of no rows.

The field may come from an untrusted file. So its size is limited, also after inflating; buffers may not be compressed
again; only types that a writer of this package produces are accepted. Extension types are built from a closed table,
after their parameters are checked; of the other ones, those that the program has registered with Arrow. All others stay
the metadata that names them. Nothing of a file is evaluated or unpickled.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Self

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Dtype, Plan, RecordType, get_engine
from tfrecord_io.columns.schema.column_features import column_leaves, is_nested, nested_restored_field
from tfrecord_io.columns.schema.field import COMPOSITE_KEY, DEFAULT_KEY, EMPTY_KEY, FEATURE_KEY
from tfrecord_io.columns.schema.tensor_types import (
    EXTENSION_METADATA,
    EXTENSION_NAME,
    FIXED_SHAPE,
    INERT_NAME,
    VARIABLE_SHAPE,
    is_any_tensor,
    tensor_type_from_metadata,
)
from tfrecord_io.columns.schema.types import (
    EXTENSIONS,
    UnsupportedType,
    has_dictionary,
    is_list_like,
    is_restored_as_it_is,
    is_value_storage,
    map_fields,
    relist,
    restored_field,
    uncommon_columns,
)
from tfrecord_io.errors import MissingDependencyError, SchemaError

FIELD = 21574  # number of the unknown field
MAGIC = b"TFRA"
VERSION = 1
MAX_BYTES = 16 << 20  # of the content, and of the stream once inflated
_MOST_KEPT, _KEPT_BYTES = 8, 64 << 10  # schemas that were read, and the most bytes of one
_ZLIB = 1  # flag
_ZLIB_ABOVE = 16 << 10
_DICTIONARY_BYTES = 1 << 20  # of one column
_DICTIONARIES_BYTES = 8 << 20  # of all columns, so that the content is always below MAX_BYTES
# What the reading of damaged bytes raises.
_DAMAGED = (pa.ArrowException, OSError, MemoryError, ValueError, LookupError, TypeError, ArithmeticError, struct.error)


class EmbeddedSchemaUnreadable(Exception):
    """The field's content is not a schema that this version reads; callers warn and infer."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class EmbeddedSchema:
    """An embedded schema, of one file or united from several files, and the path of the first file."""

    schema: pa.Schema  # columns as they are read back; field metadata tfrecord_io.encoding marks raw columns
    # Categories by feature. Other dictionary columns build their categories from the values.
    dictionaries: Mapping[str, pa.Array] = field(default_factory=dict)
    path: str = ""
    origins: Mapping[str, str] = field(default_factory=dict)  # the other files that columns were added from, by column
    # By column: the error for reading a column whose types in the files have no common type.
    conflicts: Mapping[str, SchemaError] = field(default_factory=dict)
    content: bytes | None = None  # the bytes it was read from, if from one file
    united: frozenset[bytes] = field(default=frozenset(), compare=False)  # the digests of covered schemas

    @classmethod
    def of(cls, schema: pa.Schema, dictionaries: Mapping[str, pa.Array] | None = None, path: str = "") -> Self:
        """The schema to embed in a file, with which a table of the written `schema` is read back."""
        return cls(embedded_schema(schema), dictionaries or {}, path)

    @classmethod
    def parse(cls, content: bytes, path: str = "") -> EmbeddedSchema:
        """The schema that a record of a file, or the manifest at `path`, carries; errors as `unpack`."""
        return replace(unpack(content), path=path, content=content)

    @staticmethod
    def content_of(frame: Any, *, check_crc: bool = True) -> bytes | None:
        """The content of the embedded schema of a framed record; None if it has none, or is not a message."""
        return embedded_content(frame, check_crc=check_crc)

    @staticmethod
    def field_of(content: bytes) -> bytes:
        """The field as it is stored in a record: tag, length, content."""
        return field_bytes(content)

    def pack(self) -> bytes:
        """The content of the field; SchemaError if it is above 16 MiB."""
        return pack(self.schema, self.dictionaries)

    def has_types(self, schema: pa.Schema) -> bool:
        """True if a schema has the same names in the same order, types, extension types and dtypes of tensors."""
        return equal_types(self.schema, schema)

    def without_range_index(self) -> EmbeddedSchema:
        """The schema without a RangeIndex of pandas, which other rows do not have; the same object if it has none."""
        from tfrecord_io.columns.schema.pandas_metadata import drop_range_index

        schema = drop_range_index(self.schema)
        return self if schema is self.schema else replace(self, schema=schema)

    def __reduce__(self) -> tuple[Any, ...]:  # pyarrow does not pickle tensors of shapes that vary
        state = (self.dictionaries, self.path, self.origins, self.conflicts)
        return _unpickle, (self.schema.serialize().to_pybytes(), *state)

    def origin(self, column: str) -> str:
        """The path of the file that a column and its type are from."""
        return self.origins.get(column, self.path)

    def refuse_conflicts(self) -> None:
        """Raise SchemaError if a column has types that no type has in common."""
        for error in self.conflicts.values():
            raise error


def embedded_schema(schema: pa.Schema) -> pa.Schema:
    """Make the schema to embed in a file, with which a table of the written schema is read back.

    Names, order, metadata, nullability and types do not change, except for what belongs to memory and not to the
    values: views become plain, run-ends their values, and large offsets 32-bit ones. A float64 column stays float64.
    Tensors are in C order with their axis names in that order, and their dtype in the metadata if the type does not
    determine it. What a field's metadata says about reading is removed: a column is written under its own name.
    """
    fields = [
        column if is_restored_as_it_is(column.type) and not column.metadata else _as_written(_restore_field(column))
        for column in schema
    ]
    return pa.schema(fields, metadata=schema.metadata)


def _restore_field(column: pa.Field) -> pa.Field:
    return nested_restored_field(column) if is_nested(column) else restored_field(column)


def _as_written(column: pa.Field) -> pa.Field:
    how_to_read = (FEATURE_KEY, DEFAULT_KEY, EMPTY_KEY, COMPOSITE_KEY)
    metadata = {key: value for key, value in (column.metadata or {}).items() if key not in how_to_read}
    return column.with_metadata(metadata or None)


def equal_types(a: pa.Schema, b: pa.Schema) -> bool:
    """True if two schemas have the same names in the same order, types, extension types and dtypes of tensors.

    All else is ignored.
    """
    if a.equals(b, check_metadata=True):
        return True
    from tfrecord_io.columns.schema.extension_types import stated_extensions

    return a.names == b.names and all(
        _bare(x.type) == _bare(y.type) and _dtypes(x) == _dtypes(y) and stated_extensions(x) == stated_extensions(y)
        for x, y in zip(a, b, strict=True)
    )


def _dtypes(field: pa.Field) -> list[bytes | None]:
    """The dtypes of tensors in the metadata."""
    type = field.type
    if t.is_struct(type):
        return [dtype for child in type for dtype in _dtypes(child)]
    while is_list_like(type):
        type = type.value_type
    return [(field.metadata or {}).get(Dtype.KEY)] if is_any_tensor(type) else []


def _bare(type: pa.DataType) -> pa.DataType:
    """The type without nullability and names of list items."""
    if is_list_like(type):
        return relist(type, _bare(type.value_type))
    if t.is_struct(type):
        return pa.struct([(child.name, _bare(child.type)) for child in type])
    return type


def embedded_content(frame: Any, *, check_crc: bool = True) -> bytes | None:
    """The content of the embedded schema of a framed record; None if it has none, or is not a message."""
    plan = Plan(unknown="skip", record_type=RecordType.DETECT, check_crc=check_crc, stop_at_embedded=True)
    embedded = get_engine().decoder(plan).feed(frame).embedded
    return embedded[0] if embedded else None


def field_bytes(content: bytes) -> bytes:
    """The field as it is stored in a record: tag, length, content."""
    from tfrecord_io.bytes import delimited_field

    return delimited_field(FIELD, content)


def embedded_dictionaries(dictionaries: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """The categories, by feature name, for which `pack` has room: up to 1 MiB each, and 8 MiB together."""
    kept: dict[str, pa.Array] = {}
    left = _DICTIONARIES_BYTES
    for name, values in dictionaries.items():
        if values.nbytes <= min(left, _DICTIONARY_BYTES):
            kept[name] = values
            left -= values.nbytes
    return kept


def pack(schema: pa.Schema, dictionaries: Mapping[str, pa.Array] | None = None) -> bytes:
    """The content of the field for a schema from `embedded_schema`; SchemaError if it is above 16 MiB.

    Of the `dictionaries`, it has the `embedded_dictionaries`. Ordered categories that are left out are plain values
    then, as nothing else states their order.
    """
    kept = embedded_dictionaries(dictionaries or {})
    if left_out := (dictionaries or {}).keys() - kept.keys():
        schema = drop_orders(schema, left_out.__contains__)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        if kept:
            columns = [
                pa.nulls(0, column.type) if is_nested(column) else _no_rows(column.type, column.name, kept)
                for column in schema
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    stream = sink.getvalue().to_pybytes()
    if len(stream) > MAX_BYTES:
        reason = f"the schema of {len(schema)} columns takes {len(stream)} bytes"
        raise SchemaError(reason, expected=MAX_BYTES, hint="pass embed_schema=False", hint_cli="pass --no-embed-schema")
    small = len(stream) <= _ZLIB_ABOVE
    return MAGIC + bytes([VERSION, 0 if small else _ZLIB]) + (stream if small else zlib.compress(stream))


def _no_rows(type: pa.DataType, feature: str, dictionaries: Mapping[str, pa.Array]) -> pa.Array:
    """An array of no rows that carries the dictionaries of its leaves."""
    if t.is_dictionary(type):
        values = dictionaries.get(feature, pa.array([], type.value_type))
        return pa.DictionaryArray.from_arrays(pa.array([], type.index_type), values, ordered=type.ordered)
    if t.is_struct(type):
        children = [_no_rows(child.type, f"{feature}/{child.name}", dictionaries) for child in type]
        return pa.StructArray.from_arrays(children, fields=list(type))
    if t.is_fixed_size_list(type):
        return pa.Array.from_buffers(type, 0, [None], children=[_no_rows(type.value_type, feature, dictionaries)])
    if t.is_list(type):
        offsets = pa.array([0], pa.int32())
        return pa.ListArray.from_arrays(offsets, _no_rows(type.value_type, feature, dictionaries), type=type)
    return pa.nulls(0, type)


def drop_orders(schema: pa.Schema, is_lost: Callable[[str], bool]) -> pa.Schema:
    """Replace ordered categories by plain values in features whose order `is_lost`."""

    def plain(field: pa.Field, feature: str) -> pa.Field:
        type_ = field.type
        if t.is_dictionary(type_) and type_.ordered and is_lost(feature):
            type_ = type_.value_type
        is_struct = t.is_struct(type_)
        below = map_fields(type_, lambda child: plain(child, f"{feature}/{child.name}" if is_struct else feature))
        return field.with_type(below)

    fields = list(schema)
    for at in uncommon_columns(schema):
        fields[at] = plain(fields[at], fields[at].name)
    return pa.schema(fields, schema.metadata)


def dictionary_at(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    """The dictionary of the leaf of a column at a path of struct children."""
    while not t.is_dictionary(array.type):
        if t.is_struct(array.type):
            array, path = array.field(path[0]), path[1:]
        elif isinstance(array, pa.ExtensionArray):
            array = array.storage
        else:  # a list or run-ends
            array = array.values
    return array.dictionary


def unpack(content: bytes) -> EmbeddedSchema:
    """Read the content of the field; EmbeddedSchemaUnreadable, and nothing else, if it is not one of this version."""
    try:
        stream = _stream_of(bytes(content))
        embedded = _read_again(stream) if len(stream) <= _KEPT_BYTES else _read_stream(stream)
        return _restore_registered_types(embedded) if INERT_NAME in stream else embedded
    except MissingDependencyError as error:
        raise EmbeddedSchemaUnreadable(f"the embedded schema cannot be used: {error.reason}") from error
    except (UnsupportedType, NotImplementedError) as error:
        raise EmbeddedSchemaUnreadable("the embedded schema uses types that this version does not read") from error
    except _DAMAGED as error:
        raise EmbeddedSchemaUnreadable(f"the embedded schema is damaged ({type(error).__name__})") from error


def _stream_of(content: bytes) -> bytes:
    """The IPC stream, checked for size, its extension types made inert."""
    if not content.startswith(MAGIC) or len(content) < len(MAGIC) + 2:
        raise EmbeddedSchemaUnreadable(f"field {FIELD} does not start with TFRA")
    version, flags = content[4], content[5]
    if version != VERSION or flags & ~_ZLIB:
        reason = f"the embedded schema is of version {version} with flags {flags}, this version reads {VERSION}"
        raise EmbeddedSchemaUnreadable(reason)
    if len(content) > MAX_BYTES:
        raise EmbeddedSchemaUnreadable(f"the embedded schema of {len(content)} bytes is above the limit of {MAX_BYTES}")
    stream = content[6:]
    if flags & _ZLIB:
        inflater = zlib.decompressobj()
        try:
            stream = inflater.decompress(stream, MAX_BYTES + 1)
        except zlib.error as error:
            raise EmbeddedSchemaUnreadable("the embedded schema does not inflate") from error
        if len(stream) > MAX_BYTES or not inflater.eof:
            reason = f"the embedded schema is truncated, or inflates to more than {MAX_BYTES} bytes"
            raise EmbeddedSchemaUnreadable(reason)
    end = 8 + int.from_bytes(stream[4:8], "little")  # of the schema message; dictionaries may hold any text
    return stream[:end].replace(EXTENSION_NAME, INERT_NAME) + stream[end:]


def _read_stream(stream: bytes) -> EmbeddedSchema:
    has_batch = _check_messages(stream)
    # The byte order is not converted, as that would happen before the buffers are checked.
    with pa.ipc.open_stream(stream, options=pa.ipc.IpcReadOptions(ensure_native_endian=False)) as reader:
        inert = reader.schema
        batch = reader.read_next_batch() if has_batch else None
    if batch is not None:
        batch.validate(full=True)
    metadata = {key: value.replace(INERT_NAME, EXTENSION_NAME) for key, value in (inert.metadata or {}).items()}
    fields, names = [], []
    for column in inert:
        if is_restored_as_it_is(column.type) and not column.metadata:
            names.append(column.name)
        else:
            column = _as_written(_restore(column))
            column = _restore_field(column) if is_nested(column) else column
            for leaf in column_leaves(column, in_steps=True):
                names += [leaf.feature, *leaf.companions]
        fields.append(column)
    schema = pa.schema(fields, metadata=metadata or None)
    if len(set(names)) < len(names) or not schema.equals(embedded_schema(schema)):
        raise EmbeddedSchemaUnreadable("the embedded schema has types or names that are never written")
    return EmbeddedSchema(schema, {} if batch is None else _dictionaries(batch, schema))


_read_again = lru_cache(_MOST_KEPT)(_read_stream)  # calls in turn often read files of the same schema


def _restore_registered_types(embedded: EmbeddedSchema) -> EmbeddedSchema:
    """The schema with the extension types that are registered now, where the column is stored as it would be."""
    from tfrecord_io.columns.schema.extension_types import registered_field  # most schemas have none

    def use_registered_type(field: pa.Field, nested: bool) -> pa.Field:
        field = field.with_type(map_fields(field.type, lambda child: use_registered_type(child, nested)))
        may_be = field.metadata and (nested or is_value_storage(field.type))
        return registered_field(field) if may_be else field

    columns = [use_registered_type(column, is_nested(column)) for column in embedded.schema]
    return replace(embedded, schema=pa.schema(columns, embedded.schema.metadata))


def _dictionaries(batch: pa.RecordBatch, schema: pa.Schema) -> dict[str, pa.Array]:
    dictionaries = {}
    for array, column in zip(batch.columns, schema, strict=True):
        for leaf in column_leaves(column, in_steps=True):
            if has_dictionary(leaf.type):
                values = dictionary_at(array, leaf.path)
                if len(values) > MAX_BYTES:  # only values of no bytes can be so many
                    raise EmbeddedSchemaUnreadable("the embedded schema has a dictionary that is too long")
                if len(values):
                    dictionaries[leaf.feature] = values
    return dictionaries


def _restore(column: pa.Field) -> pa.Field:
    """The field with the extension types of the closed table; others stay in its metadata."""
    type = column.type
    if t.is_timestamp(type) and type.tz is not None:
        type = pa.timestamp(type.unit, type.tz)  # raises if the zone's name is not text
    type = map_fields(type, _restore)
    metadata = dict(column.metadata or {})
    name = metadata.pop(INERT_NAME, b"").decode()
    type_metadata = metadata.pop(EXTENSION_METADATA, b"")
    if name in EXTENSIONS:
        extension = {"arrow.bool8": pa.bool8, "arrow.json": lambda: pa.json_(type), "arrow.uuid": pa.uuid}[name]()
        type = extension if extension.storage_type == type else type
    elif name in (FIXED_SHAPE, VARIABLE_SHAPE):
        type = tensor_type_from_metadata(name, type, type_metadata)
    elif name:
        metadata |= {EXTENSION_NAME: name.encode(), EXTENSION_METADATA: type_metadata}
    return column.with_type(type).with_metadata(metadata or None)


def _check_messages(stream: bytes) -> bool:
    """True if the stream has a record batch; only a schema, dictionaries and one batch are allowed."""
    reader = pa.ipc.MessageReader.open_stream(stream)
    kinds = []
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            break
        kinds.append(message.type)
        if message.type != "schema":
            _check_batch(message.metadata.to_pybytes(), message.type == "dictionary")
    if kinds[:1] != ["schema"] or set(kinds[1:-1]) - {"dictionary"} or kinds[1:][-1:] not in ([], ["record batch"]):
        raise EmbeddedSchemaUnreadable("the embedded schema is not a stream of one schema and its dictionaries")
    return len(kinds) > 1


def _check_batch(metadata: bytes, is_dictionary: bool) -> None:
    """Refuse compressed buffers, whose size is unlimited, and deltas, which Arrow joins unvalidated."""
    (root,) = struct.unpack_from("<I", metadata)
    table = _table(metadata, root, 2)  # Message.header
    if is_dictionary:
        if _slot(metadata, table, 2) and metadata[_slot(metadata, table, 2)]:  # DictionaryBatch.isDelta
            raise EmbeddedSchemaUnreadable("the embedded schema has a dictionary in parts")
        table = _table(metadata, table, 1)  # DictionaryBatch.data
    if _slot(metadata, table, 3):  # RecordBatch.compression
        raise EmbeddedSchemaUnreadable("the embedded schema has compressed dictionaries")


def _slot(buffer: bytes, table: int, number: int) -> int:
    """The offset of a field of a flatbuffer table, 0 if it is missing."""
    vtable = table - struct.unpack_from("<i", buffer, table)[0]
    size = struct.unpack_from("<H", buffer, vtable)[0]
    entry = 4 + 2 * number
    offset = struct.unpack_from("<H", buffer, vtable + entry)[0] if entry < size else 0
    return table + offset if offset else 0


def _table(buffer: bytes, table: int, number: int) -> int:
    """The offset of the table that a field refers to."""
    slot = _slot(buffer, table, number)
    return int(slot + struct.unpack_from("<I", buffer, slot)[0])


def _unpickle(schema: bytes, *state: Any) -> EmbeddedSchema:
    return EmbeddedSchema(pa.ipc.read_schema(pa.py_buffer(schema)), *state)
