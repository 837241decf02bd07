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
from functools import lru_cache
from typing import Any, NamedTuple, Self

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable
from tfrecord_io.bytes import Dtype, Plan, RecordType, get_engine
from tfrecord_io.columns.schema.column_features import (
    COMPOSITE_KEY,
    DEFAULT_KEY,
    EMPTY_KEY,
    FEATURE_KEY,
    column_leaves,
    is_nested,
    nested_restored_field,
)
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
    replace_fields,
    restored_field,
    share_types,
    uncommon_columns,
    value_type,
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


_NONE: Mapping[str, Any] = {}


class _Facts(NamedTuple):
    schema: pa.Schema  # columns as they are read back; field metadata tfrecord_io.encoding marks raw columns
    # Categories by feature. Other dictionary columns build their categories from the values.
    dictionaries: Mapping[str, pa.Array] = _NONE
    path: str = ""
    origins: Mapping[str, str] = _NONE  # the other files that columns were added from, by column
    # By column: the error for reading a column whose types in the files have no common type.
    conflicts: Mapping[str, SchemaError] = _NONE
    content: bytes | None = None  # the bytes it was read from, if from one file
    united: frozenset[bytes] = frozenset()  # the digests of covered schemas


class EmbeddedSchema(_Facts):
    """An embedded schema, of one file or united from several files, and the path of the first file."""

    __slots__ = ()

    Unreadable = EmbeddedSchemaUnreadable  # raised for the content of a field that is none

    @classmethod
    def of(cls, schema: pa.Schema, dictionaries: Mapping[str, pa.Array] | None = None, path: str = "") -> Self:
        """The schema to embed in a file, with which a table of the written `schema` is read back."""
        return cls(embedded_schema(schema), dictionaries or {}, path)

    @classmethod
    def parse(cls, content: bytes, path: str = "") -> EmbeddedSchema:
        """The schema that a record of a file, or the manifest at `path`, carries; errors as `unpack`."""
        return unpack(content)._replace(path=path, content=content)

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
        return self if schema is self.schema else self._replace(schema=schema)

    def merge(self, other: EmbeddedSchema) -> EmbeddedSchema:
        """The schema that covers both: this one itself if it covers the other.

        Columns are united by name: their type is the one that holds the values of both (`common_field`), a missing
        column is null. A column whose types have none in common stays that of this one, and is one of the `conflicts`.
        An index that only one of them has is not one of the result; its levels are columns.
        """
        from tfrecord_io.columns.schema.merged_schema import common_field
        from tfrecord_io.columns.schema.pandas_metadata import describe_both, feature_descriptions, united_features

        a, b = self, other
        fields = {f.name: f for f in a.schema}
        origins, conflicts = dict(a.origins), {**b.conflicts, **a.conflicts}
        names_of_b = set(b.schema.names)
        for field_of_a in a.schema:
            if field_of_a.name not in names_of_b:
                fields[field_of_a.name] = field_of_a.with_nullable(True)
        for field_of_b in b.schema:
            before = fields.get(field_of_b.name)
            if before is None:
                fields[field_of_b.name] = field_of_b.with_nullable(True)
                origins[field_of_b.name] = b.origin(field_of_b.name)
            elif field_of_b.name not in conflicts:
                common = common_field(before, field_of_b)
                if common is None:
                    conflicts[field_of_b.name] = _conflict(a, b, before, field_of_b)
                elif pa.types.is_null(before.type) and not pa.types.is_null(field_of_b.type):
                    origins[field_of_b.name] = b.origin(field_of_b.name)
                fields[field_of_b.name] = common or before
        united = _drop_other_orders(pa.schema(list(fields.values())), a, b)
        dictionaries = _joined_dictionaries(a, b, united)
        is_covered = dictionaries.keys() == a.dictionaries.keys() and len(conflicts) == len(a.conflicts)
        is_covered &= all(values is a.dictionaries.get(name) for name, values in dictionaries.items())
        is_covered &= united_features(a.schema, b.schema) == feature_descriptions(a.schema)
        is_covered &= len(united) == len(a.schema)
        if is_covered and all(f.equals(g, check_metadata=True) for f, g in zip(united, a.schema, strict=True)):
            return a
        return EmbeddedSchema(
            describe_both(united, a.schema, b.schema), dictionaries, path=a.path, origins=origins, conflicts=conflicts
        )

    def prefer(self, read: EmbeddedSchema) -> EmbeddedSchema:
        """Resolve conflicts between the types of all files by the schema of the files that are read.

        Columns and their order are those of all files. Of the conflicts, those between files that are read are left.
        """
        merged = read.merge(self)
        fields = [merged.schema.field(name) for name in self.schema.names]
        schema = pa.schema(fields, metadata=merged.schema.metadata)
        return merged._replace(schema=schema, conflicts=read.conflicts, content=None)

    @staticmethod
    def index_levels(schema: pa.Schema) -> list[str]:
        """Names of the columns of a schema that are levels of the index of the DataFrame that was written."""
        if schema.metadata is None:
            return []
        from tfrecord_io.columns.schema.pandas_metadata import stored_index

        return stored_index(schema)

    @staticmethod
    def drop_index(schema: pa.Schema) -> pa.Schema:
        """Remove the index from the metadata of a schema: its levels become columns."""
        from tfrecord_io.columns.schema.pandas_metadata import drop_index

        return drop_index(schema)

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


def _conflict(a: EmbeddedSchema, b: EmbeddedSchema, before: pa.Field, other: pa.Field) -> SchemaError:
    """The error for a column whose types in two files have no type in common."""
    from tfrecord_io.columns.schema.column_advice import conflict_hints
    from tfrecord_io.columns.schema.extension_types import name_with_extension, stated_extension
    from tfrecord_io.columns.schema.merged_schema import stored_form

    name = other.name
    types = [value_type(f.type) for f in (before, other)]
    common_type = None
    are_values = stored_form(before) is None and stored_form(other) is None
    if are_values and any(map(pa.types.is_integer, types)) and any(map(pa.types.is_floating, types)):
        common_type = "list<float64>" if is_list_like(before.type) or is_list_like(other.type) else "float64"
    hint, hint_cli = conflict_hints(name, common_type=common_type)
    where = printable(a.origin(name)), printable(b.origin(name))
    reason = f"its type is {before.type} in {where[0]} and {other.type} in {where[1]}"
    if before.type == other.type and stated_extension(before) != stated_extension(other):
        names = [name_with_extension(str(f.type), f) for f in (before, other)]
        reason = f"its type is {names[0]} in {where[0]} and {names[1]} in {where[1]}"
    elif before.type == other.type:
        reason = f"its type is {before.type} in {where[0]} and in {where[1]}, but it is stored in another form"
    return SchemaError(
        reason,
        path=b.origin(name),
        feature=name,
        expected=str(before.type),
        got=str(other.type),
        hint=hint,
        hint_cli=hint_cli,
    )


def _drop_other_orders(united: pa.Schema, a: EmbeddedSchema, b: EmbeddedSchema) -> pa.Schema:
    """Replace ordered categories by plain values where neither schema states an order of all categories."""

    def differ(feature: str) -> bool:
        values_a, values_b = a.dictionaries.get(feature), b.dictionaries.get(feature)
        if values_a is None or values_b is None:
            return False
        length = min(len(values_a), len(values_b))
        return not values_a[:length].cast(values_b.type).equals(values_b[:length])

    return drop_orders(united, differ) if a.dictionaries and b.dictionaries else united


def _joined_dictionaries(a: EmbeddedSchema, b: EmbeddedSchema, united: pa.Schema) -> Mapping[str, pa.Array]:
    """Join the categories of both schemas; columns of `united` with plain values in a schema have none."""
    from tfrecord_io.columns.schema.merged_schema import common_field, join_categories

    if not a.dictionaries and not b.dictionaries:
        return a.dictionaries
    of_a, of_b = _dictionary_features(a.schema), _dictionary_features(b.schema)
    joined = {name: values for name, values in a.dictionaries.items() if name not in of_b}
    joined |= {name: values for name, values in b.dictionaries.items() if name not in of_a}
    for name in a.dictionaries.keys() & b.dictionaries.keys():
        values_a, values_b = a.dictionaries[name], b.dictionaries[name]
        common = common_field(pa.field(name, values_a.type), pa.field(name, values_b.type))
        if common is not None:
            values_a = values_a if values_a.type == common.type else values_a.cast(common.type)
            joined[name] = join_categories(values_a, values_b)
    of_both = _dictionary_features(united)
    return {name: values for name, values in joined.items() if name in of_both}


def _dictionary_features(schema: pa.Schema) -> set[str]:
    """The features whose values have categories."""
    columns = [schema.field(at) for at in uncommon_columns(schema)]
    leaves = [leaf for column in columns for leaf in column_leaves(column, in_steps=True)]
    return {leaf.feature for leaf in leaves if has_dictionary(leaf.type)}


def embedded_schema(schema: pa.Schema) -> pa.Schema:
    """Make the schema to embed in a file, with which a table of the written schema is read back.

    Names, order, metadata, nullability and types do not change, except for what belongs to memory and not to the
    values: views become plain, run-ends their values, and large offsets 32-bit ones. A float64 column stays float64.
    Tensors are in C order with their axis names in that order, and their dtype in the metadata if the type does not
    determine it. What a field's metadata says about reading is removed: a column is written under its own name.
    """
    changed = {}
    for at, column in enumerate(schema):
        if column.metadata or not is_restored_as_it_is(column.type):
            restored = nested_restored_field(column) if is_nested(column) else restored_field(column)
            written = _as_written(restored)
            if not written.equals(column, check_metadata=True):
                changed[at] = written
    return replace_fields(schema, changed)


def _as_written(column: pa.Field) -> pa.Field:
    if not column.metadata:
        return column
    how_to_read = (FEATURE_KEY, DEFAULT_KEY, EMPTY_KEY, COMPOSITE_KEY)
    metadata = {key: value for key, value in column.metadata.items() if key not in how_to_read}
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
    from tfrecord_io.bytes import FieldTag

    return FieldTag.of(FIELD).field(content)


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
        inert = share_types(reader.schema)
        batch = reader.read_next_batch() if has_batch else None
    if batch is not None:
        batch.validate(full=True)
    metadata = {key: value.replace(INERT_NAME, EXTENSION_NAME) for key, value in (inert.metadata or {}).items()}
    restored, names = dict[int, pa.Field](), []
    for at, column in enumerate(inert):
        if is_restored_as_it_is(column.type) and not column.metadata:
            names.append(column.name)
        else:
            field = _as_written(_restore(column))
            field = nested_restored_field(field) if is_nested(field) else field
            if not field.equals(column, check_metadata=True):
                restored[at] = field
            for leaf in column_leaves(field, in_steps=True):
                names += [leaf.feature, *leaf.companions]
    schema = replace_fields(inert, restored)  # the same one in most cases: a wide one takes much memory
    if metadata != (inert.metadata or {}):
        schema = schema.with_metadata(metadata)
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
    return embedded._replace(schema=pa.schema(columns, embedded.schema.metadata))


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
