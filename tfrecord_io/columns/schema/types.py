"""Arrow types: the feature type of their values, the type of one value, the type a column is restored with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Dtype, Kind
from tfrecord_io.columns.schema.tensor_types import (
    Shape,
    dtype_metadata,
    element_and_shape,
    extension_metadata,
    is_any_tensor,
    logical_dim_names,
    tensor_type,
    tensor_value_type,
)

_PLAIN_LISTS = frozenset({pa.lib.Type_LIST, pa.lib.Type_LARGE_LIST, pa.lib.Type_FIXED_SIZE_LIST})
_TEXT = frozenset({pa.lib.Type_STRING, pa.lib.Type_LARGE_STRING})
_BYTES = frozenset({pa.lib.Type_BINARY, pa.lib.Type_LARGE_BINARY})
_LISTS = _PLAIN_LISTS | {pa.lib.Type_LIST_VIEW, pa.lib.Type_LARGE_LIST_VIEW}
_PLAIN = {  # by type id: the feature type, and the bytes of a null row
    pa.lib.Type_BOOL: (Kind.INT64, 1),
    **dict.fromkeys((pa.lib.Type_INT8, pa.lib.Type_UINT8), (Kind.INT64, 1)),
    **dict.fromkeys((pa.lib.Type_INT16, pa.lib.Type_UINT16), (Kind.INT64, 2)),
    **dict.fromkeys((pa.lib.Type_INT32, pa.lib.Type_UINT32), (Kind.INT64, 4)),
    **dict.fromkeys((pa.lib.Type_INT64, pa.lib.Type_UINT64), (Kind.INT64, 8)),
    pa.lib.Type_FLOAT: (Kind.FLOAT, 4),
    pa.lib.Type_DOUBLE: (Kind.FLOAT, 8),
    **dict.fromkeys((pa.lib.Type_STRING, pa.lib.Type_BINARY), (Kind.BYTES, 4)),
    **dict.fromkeys((pa.lib.Type_LARGE_STRING, pa.lib.Type_LARGE_BINARY), (Kind.BYTES, 8)),
}
_NOT_PLAIN = (None, None)
_ID = attrgetter("id")  # of a type
_COMMON = {
    type.id: type
    for type in (
        *(pa.bool_(), pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()),
        *(pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.large_string(), pa.large_binary()),
    )
}
_COMMON_LISTS = {  # by the id of their values, and the name of the items: that of Arrow, or that of Parquet
    (id_, name): pa.list_(pa.field(name, type)) for id_, type in _COMMON.items() for name in ("item", "element")
}
_NUMBERS: dict[int, np.dtype[Any]] = {pa.lib.Type_FLOAT: np.dtype("float32"), pa.lib.Type_DOUBLE: np.dtype("float64")}
_NUMBERS |= {
    getattr(pa.lib, f"Type_{name.upper()}"): np.dtype(name)
    for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
}

# By type id: the type of the same values with offsets of 32 bits, and without views.
NARROW = {pa.lib.Type_LARGE_STRING: pa.string(), pa.lib.Type_LARGE_BINARY: pa.binary()}
VIEWS = {pa.lib.Type_STRING_VIEW: pa.string(), pa.lib.Type_BINARY_VIEW: pa.binary()}
_NOT_VALUES = frozenset(
    {
        *(pa.lib.Type_DICTIONARY, pa.lib.Type_RUN_END_ENCODED, pa.lib.Type_NA, pa.lib.Type_INTERVAL_MONTH_DAY_NANO),
        pa.uuid().id,  # of extension types
    }
)
_WIDE = frozenset({*NARROW, pa.lib.Type_LARGE_LIST, pa.lib.Type_LARGE_LIST_VIEW})

DAY = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}  # values of a time of this unit

# The extension types that are written as their storage and restored; see also schema.embedded.
EXTENSIONS = ("arrow.bool8", "arrow.json", "arrow.uuid")


_MOST_LEVELS = 120  # of a type; Arrow reads a schema with up to 123


class UnsupportedType(TypeError):
    """A type that cannot be stored in a TFRecord; callers turn it into an EncodeError or SchemaError."""

    def __init__(self, feature: str, reason: str, advice: str) -> None:
        super().__init__(f"feature '{feature}': {reason}; {advice}")
        self.feature = feature
        self.reason = reason
        self.advice = advice


def supported_element_and_shape(field: pa.Field, feature: str) -> tuple[Dtype, Shape]:
    """The dtype and the shape of a column of tensors; UnsupportedType where its type and its metadata do not fit."""
    try:
        return element_and_shape(field)
    except ValueError as error:
        raise UnsupportedType(feature, str(error), "cast the column to its storage type") from error


# ---- the feature type of values


def plain_kind(type: pa.DataType) -> Kind | None:
    """The feature type of the most common types, which have no parameters and are handed over as they are; else None.

    Wide schemas are compiled in half the time with it.
    """
    return _PLAIN.get(type.id, _NOT_PLAIN)[0]


def plain_list_kind(type: pa.DataType) -> Kind | None:
    """The feature type of lists of the most common types, which are handed over as they are, too; else None."""
    return plain_kind(type.value_type) if type.id in _PLAIN_LISTS else None


def common_type(type: pa.DataType) -> pa.DataType | None:
    """The object for a type that many columns may share: one of the most common types, or lists of one; else None.

    >>> common_type(pa.list_(pa.int64())) is common_type(pa.list_(pa.int64()))
    True
    """
    if type.id != pa.lib.Type_LIST:
        return _COMMON.get(type.id)
    values = type.value_field  # not compared as a whole: Arrow would keep what it compares, 300 bytes for each list
    is_bare = values.nullable and not values.metadata
    return _COMMON_LISTS.get((values.type.id, values.name)) if is_bare else None


def share_types(schema: pa.Schema) -> pa.Schema:
    """The schema with one object for each `common_type`: Arrow reads one for each list, which takes 300 bytes."""
    if not any(column.type.id == pa.lib.Type_LIST for column in schema):
        return schema
    shared = (
        (column.name, type)
        if (type := common_type(column.type)) is not None and column.nullable and not column.metadata
        else column
        for column in schema
    )
    return pa.schema(shared, schema.metadata)


def uncommon_columns(schema: pa.Schema) -> list[int]:
    """The positions of the columns whose types are not of the most common ones, of which there may be thousands."""
    types = schema.types
    if all(map(_PLAIN.__contains__, map(_ID, types))):
        return []
    return [at for at, type in enumerate(types) if plain_kind(type) is None]


def replace_fields(schema: pa.Schema, fields: Mapping[int, pa.Field]) -> pa.Schema:
    """Replace fields of a schema, by number; ``schema.set`` would copy all fields for each of them.

    >>> replace_fields(pa.schema([("a", pa.int8()), ("b", pa.int8())]), {1: pa.field("b", pa.string())}).types
    [DataType(int8), DataType(string)]
    """
    if not fields:
        return schema
    return pa.schema([fields.get(at, field) for at, field in enumerate(schema)], schema.metadata)


def kind_of(type: pa.DataType, feature: str = "") -> Kind:
    """The feature type of one value of `type`, which is neither a list nor a struct; NONE for the null type."""
    if t.is_null(type):
        return Kind.NONE
    if t.is_dictionary(type):
        value = type.value_type
        if t.is_nested(value) or t.is_null(value) or t.is_dictionary(value) or isinstance(value, pa.BaseExtensionType):
            raise UnsupportedType(
                feature, f"a dictionary of {value} values", "decode it first (Array.dictionary_decode)"
            )
        return kind_of(value, feature)
    if is_any_tensor(type):
        return kind_of(tensor_value_type(type), feature)
    if isinstance(type, pa.BaseExtensionType):
        if not is_value_extension(type):
            reason = f"values of the extension type {type.extension_name} are not stored as single values"
            raise UnsupportedType(feature, reason, "cast the column to its storage type")
        return kind_of(type.storage_type, feature)
    if t.is_boolean(type) or t.is_integer(type) or (t.is_temporal(type) and not t.is_interval(type)):
        return Kind.INT64
    if t.is_floating(type):
        return Kind.FLOAT
    if t.is_decimal(type):
        digits = DIGITS[type.bit_width]  # of other scales Arrow (26.0) writes no text, and crashes on reading one
        if type.scale > digits or type.precision - type.scale > digits:
            reason = f"numbers of {type} cannot be written as text"
            raise UnsupportedType(feature, reason, "cast it to a scale from 0 to its precision")
        return Kind.BYTES
    if is_text_or_bytes(type):
        return Kind.BYTES
    if t.is_map(type):
        advice = "make it a list of structs, or two list columns, one of keys and one of values"
    elif t.is_union(type):
        advice = "make it a struct with one child for each type"
    else:
        advice = "cast the column to integers or text"
    raise UnsupportedType(feature, f"values of type {type} cannot be stored in a TFRecord", advice)


@cache
def integer_range(type_: pa.DataType) -> tuple[int, int]:
    """Least and greatest int64 that is a value of the type."""
    if t.is_boolean(type_):
        return 0, 1
    if t.is_time(type_):
        return 0, DAY[type_.unit] - 1
    bits = type_.bit_width
    if t.is_unsigned_integer(type_):
        return 0, min(2**bits, 2**63) - 1
    return -(2 ** (bits - 1)), 2 ** (bits - 1) - 1


def other_kinds(type_: pa.DataType) -> tuple[Kind, ...]:
    """Kinds that values of a type, or of lists of it, are read from besides their kind when written.

    Decimals, which are written as text, are read from numbers, and floats from integers that they can hold exactly.
    """
    value = type_.value_type if is_list_like(type_) else type_
    if t.is_decimal(value):
        return Kind.FLOAT, Kind.INT64
    return (Kind.INT64,) if t.is_floating(value) else ()


DIGITS = {32: 9, 64: 18, 128: 38, 256: 76}  # the most that a decimal has, by its width in bits


# ---- predicates


def is_text(type: pa.DataType) -> bool:
    """True if values of `type` are text, with offsets of 32 or 64 bits."""
    return type.id in _TEXT


def is_bytes(type: pa.DataType) -> bool:
    """True if values of `type` are bytes of any number, with offsets of 32 or 64 bits."""
    return type.id in _BYTES


def is_text_or_bytes(type: pa.DataType) -> bool:
    """True if values of `type` are text or bytes, of any layout."""
    has_views = t.is_string_view(type) or t.is_binary_view(type)
    return bool(is_text(type) or is_bytes(type) or t.is_fixed_size_binary(type) or has_views)


def is_number(type: pa.DataType) -> bool:
    """True if values of `type` are plain NumPy numbers, so that "raw" applies."""
    return bool(t.is_boolean(type) or t.is_integer(type) or t.is_floating(type))


def number_dtype(type: pa.DataType) -> np.dtype[Any] | None:
    """The dtype of integers and floats of a common width; None of other types."""
    return _NUMBERS.get(type.id)


def is_list_like(type: pa.DataType) -> bool:
    """True if `type` is a list of any layout; a map is not one."""
    return type.id in _LISTS


def is_list_view(type: pa.DataType) -> bool:
    """True if `type` is a list view or a large one."""
    return bool(t.is_list_view(type) or t.is_large_list_view(type))


def has_wide_offsets(type: pa.DataType) -> bool:
    """True if `type`, of text, bytes or lists, has offsets of 64 bits."""
    return type.id in _WIDE


def is_bool8(type: pa.DataType) -> bool:
    """True if `type` is the extension type of bools in bytes, whose storage is int8."""
    return isinstance(type, pa.BaseExtensionType) and type.extension_name == "arrow.bool8"


def is_value_extension(type_: pa.DataType) -> bool:
    """True if `type_` is an extension type, but not one of tensors, whose storage is a single value of a plain layout.

    >>> is_value_extension(pa.uuid()), is_value_extension(pa.opaque(pa.list_(pa.int8()), "t", "v"))
    (True, False)
    """
    if not isinstance(type_, pa.BaseExtensionType) or is_any_tensor(type_):
        return False
    return type_.extension_name in EXTENSIONS or is_value_storage(type_.storage_type)


def is_value_storage(type_: pa.DataType) -> bool:
    """True if a type has single values in a plain layout: an extension type over it is a single feature."""
    if plain_kind(type_) is not None:
        return True
    return type_.id not in _NOT_VALUES and not t.is_nested(type_) and type_.id not in VIEWS


def types_within(type_: pa.DataType, *, storage: bool = False) -> Iterator[pa.DataType]:
    """The type and all those nested in it; with `storage`, those in which extension types are stored, too.

    >>> [str(part) for part in types_within(pa.list_(pa.dictionary(pa.int8(), pa.string())))][1:]
    ['dictionary<values=string, indices=int8, ordered=0>', 'string']
    """
    waiting = [type_]
    while waiting:  # types may have more levels than Python has for calls
        yield (part := waiting.pop())
        if t.is_dictionary(part):
            waiting.append(part.value_type)
        elif storage and isinstance(part, pa.BaseExtensionType):
            waiting.append(part.storage_type)
        elif t.is_nested(part):
            waiting += [part.field(at).type for at in reversed(range(part.num_fields))]


def has_dictionary(type_: pa.DataType, *, ordered: bool = False) -> bool:
    """True if a dictionary is in a type, whose order counts if `ordered`."""
    if plain_kind(type_) is not None or plain_list_kind(type_) is not None:  # as those of most columns
        return False
    dictionaries = filter(t.is_dictionary, types_within(type_))
    return any(dictionary.ordered or not ordered for dictionary in dictionaries)


def has_required_parts(type_: pa.DataType) -> bool:
    """True if a field in a type is not nullable, such as the key of a map.

    >>> has_required_parts(pa.map_(pa.string(), pa.int8())), has_required_parts(pa.list_(pa.int8()))
    (True, False)
    """
    if plain_kind(type_) is not None:  # as those of thousands of columns
        return False
    nested = [part for part in types_within(type_, storage=True) if t.is_nested(part)]
    return any(not part.field(at).nullable for part in nested for at in range(part.num_fields))


# ---- types from types


def relist(outer: pa.DataType, values: pa.DataType | pa.Field) -> pa.DataType:
    """The list type `outer` with other values."""
    if t.is_fixed_size_list(outer):
        return pa.list_(values, outer.list_size)
    if t.is_large_list(outer):
        return pa.large_list(values)
    if t.is_list_view(outer):
        return pa.list_view(values)
    return pa.large_list_view(values) if t.is_large_list_view(outer) else pa.list_(values)


def map_fields(type: pa.DataType, change: Callable[[pa.Field], pa.Field]) -> pa.DataType:
    """Change the fields of a list, struct, map or union; any other type stays as it is.

    >>> map_fields(pa.struct({"a": pa.int8()}), lambda field: field.with_type(pa.int16()))
    StructType(struct<a: int16>)
    """
    if is_list_like(type):
        return relist(type, change(type.value_field))
    if t.is_struct(type):
        return pa.struct([change(field) for field in type])
    if t.is_map(type):
        return pa.map_(change(type.key_field), change(type.item_field), type.keys_sorted)
    return pa.union([change(field) for field in type], type.mode, type.type_codes) if t.is_union(type) else type


def is_deep(type: pa.DataType) -> bool:
    """True if a type has more levels than Arrow could read again from an embedded schema."""
    types, level = [type], 0
    while level <= _MOST_LEVELS and (types := [part.field(at).type for part in types for at in range(part.num_fields)]):
        level += 1
    return level > _MOST_LEVELS


def refuse_deep(feature: str, type: pa.DataType) -> None:
    """Raise UnsupportedType for a type that `is_deep`."""
    if is_deep(type):
        raise UnsupportedType(feature, f"its type has more than {_MOST_LEVELS} levels", "flatten it")


def drop_run_ends(type: pa.DataType) -> pa.DataType:
    """The type of the values of a run-end encoded type; any other type as it is."""
    while t.is_run_end_encoded(type):
        type = type.value_type
    return type


def value_type(type: pa.DataType) -> pa.DataType:
    """The type of one value: list, dictionary, run-end, extension and view wrappers are removed.

    >>> value_type(pa.list_(pa.dictionary(pa.int8(), pa.string_view())))
    DataType(string)
    """
    if is_list_like(type) or t.is_dictionary(type) or t.is_run_end_encoded(type):
        return value_type(type.value_type)
    if is_any_tensor(type):
        return tensor_value_type(type)
    if isinstance(type, pa.BaseExtensionType):
        return value_type(type.storage_type)
    return VIEWS.get(type.id, type)


def null_bytes(type: pa.DataType) -> int:
    """The bytes that a null row of a column takes.

    >>> null_bytes(pa.list_(pa.float32(), 1000)), null_bytes(pa.list_(pa.float32())), null_bytes(pa.string())
    (4000, 4, 4)
    """
    plain = _PLAIN.get(type.id, _NOT_PLAIN)[1]
    if plain is not None:
        return plain
    if isinstance(type, pa.BaseExtensionType):
        return null_bytes(type.storage_type)
    if t.is_struct(type):
        return sum(null_bytes(child.type) for child in type)
    if t.is_fixed_size_list(type):
        return int(type.list_size) * null_bytes(type.value_type)
    if t.is_dictionary(type):
        return null_bytes(type.index_type)
    if t.is_null(type):
        return 0
    if t.is_fixed_size_binary(type):
        return int(type.byte_width)
    try:
        return int(max(type.bit_width // 8, 1))
    except ValueError:  # the offsets of values of any length
        return 8 if has_wide_offsets(type) else 4


def is_restored_as_it_is(type: pa.DataType) -> bool:
    """True if `type` is one of the most common types, or a list of one, and `restored_type` returns it.

    >>> is_restored_as_it_is(pa.list_(pa.string())), is_restored_as_it_is(pa.large_string())
    (True, False)
    """
    if type.id in _PLAIN:
        return type.id not in NARROW
    return common_type(type) is not None and type.value_type.id not in NARROW


def restored_type(type: pa.DataType) -> pa.DataType:
    """The type a column is read back with: no views, no run-ends, 32-bit offsets; all else as it is."""
    if t.is_run_end_encoded(type):
        return restored_type(type.value_type)
    if is_list_like(type):
        return _list_of(restored_field(type.value_field), type)
    if t.is_struct(type):
        return pa.struct([restored_field(child) for child in type])
    if t.is_dictionary(type):
        return pa.dictionary(type.index_type, restored_type(type.value_type), type.ordered)
    if isinstance(type, pa.BaseExtensionType) and type.extension_name == "arrow.json":
        return pa.json_(pa.string())
    if is_value_extension(type):
        from tfrecord_io.columns.schema.extension_types import extension_over  # most schemas have none

        return extension_over(type, restored_type(type.storage_type))
    return VIEWS.get(type.id) or NARROW.get(type.id) or type


def restored_field(field: pa.Field) -> pa.Field:
    """The field a column is read back with: of `restored_type`, tensors in C order, their dtype in its metadata.

    UnsupportedType if the type or the metadata of tensors is not supported.
    """
    if plain_kind(field.type) is not None:
        return field.with_type(NARROW.get(field.type.id, field.type))
    type = drop_run_ends(field.type)
    if is_any_tensor(type):
        element, shape = supported_element_and_shape(field.with_type(type), field.name)
        metadata = {key: value for key, value in (field.metadata or {}).items() if key != Dtype.KEY}
        restored = field.with_type(tensor_type(element, shape, logical_dim_names(type)))
        return restored.with_metadata(metadata | dtype_metadata(element) or None)
    if is_list_like(type) and is_any_tensor(drop_run_ends(type.value_type)):
        step = restored_field(field.with_type(type.value_type))
        return step.with_type(_list_of(type.value_field.with_type(step.type), type))
    return restore_type(field, restored_type(type))


def restore_type(field: pa.Field, type_: pa.DataType) -> pa.Field:
    """Give a field the type that it is read back with; an extension type that this is not stays in its metadata."""
    if not isinstance(field.type, pa.BaseExtensionType) or isinstance(type_, pa.BaseExtensionType):
        return field.with_type(type_)
    return field.with_type(type_).with_metadata({**(field.metadata or {}), **extension_metadata(field.type)})


def store_bools_as_bytes(field: pa.Field) -> pa.Field:
    """Type tensors of bools as uint8, with their dtype in the metadata; also those inside lists and structs.

    Arrow packs bools, so that NumPy cannot view them; this is the type that `tfrecord_io.tensor` makes.
    """
    type = field.type
    if is_any_tensor(type):
        if not t.is_boolean(tensor_value_type(type)):
            return field
        element, shape = supported_element_and_shape(field, field.name)
        metadata = (field.metadata or {}) | dtype_metadata(element)
        return field.with_type(tensor_type(element, shape, logical_dim_names(type))).with_metadata(metadata)
    if is_list_like(type) and is_any_tensor(type.value_type):
        step = store_bools_as_bytes(field.with_type(type.value_type))
        if step.type == type.value_type:
            return field
        return step.with_type(relist(type, type.value_field.with_type(step.type)))
    if not t.is_struct(type.value_type if is_list_like(type) else type):
        return field
    changed = map_fields(type, store_bools_as_bytes)
    return field if changed == type else field.with_type(changed)


def _list_of(child: pa.Field, outer: pa.DataType) -> pa.DataType:
    return pa.list_(child, outer.list_size) if t.is_fixed_size_list(outer) else pa.list_(child)


def hashable(values: pa.Array) -> pa.Array:
    """The values as a type that Arrow (26.0) has a hash of, none of them changed: of an extension type, the storage."""
    if isinstance(values.type, pa.BaseExtensionType):
        return hashable(values.cast(values.type.storage_type))
    if t.is_float16(values.type):
        return values.cast(pa.float32())
    if t.is_decimal32(values.type) or t.is_decimal64(values.type):
        return values.cast(pa.decimal128(values.type.precision, values.type.scale))
    return values
