"""Unite the embedded schemas of several files in one schema.

A column has the type that holds every value of its types in the files. Only conversions that change no value count, of
types that are written as the same feature type: int8 and int64 have int64, int64 and float have none. `common_field` is
commutative but for the order of the fields of structs, and associative, so the order of files changes no type.

Tests: tests/laws/test_united_schemas.py and tests/read/chunks/test_embedded_schemas.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable
from tfrecord_io.columns.schema.column_features import (
    ENCODING_KEY,
    column_leaves,
    extension_encoding_of,
    is_nested,
    needs_nesting,
    set_encoding,
)
from tfrecord_io.columns.schema.embedded import EmbeddedSchema, drop_orders
from tfrecord_io.columns.schema.extension_types import name_with_extension, stated_extension
from tfrecord_io.columns.schema.pandas_metadata import describe_both, feature_descriptions, united_features
from tfrecord_io.columns.schema.tensor_types import NESTED, element_and_shape, is_any_tensor, tensor_field
from tfrecord_io.columns.schema.types import (
    DIGITS,
    has_dictionary,
    hashable,
    is_list_like,
    is_text_or_bytes,
    replace_fields,
    uncommon_columns,
    value_type,
)
from tfrecord_io.errors import SchemaError


def merge_embedded(a: EmbeddedSchema, b: EmbeddedSchema) -> EmbeddedSchema:
    """The schema that covers both: `a` itself if it covers `b`.

    Columns are united by name: their type is the one that holds the values of both (`common_field`), a missing column
    is null. A column whose types have none in common stays that of `a`, and is one of the `conflicts`. An index that
    only one of them has is not one of the result; its levels are columns.
    """
    fields = {f.name: f for f in a.schema}
    origins, conflicts = dict(a.origins), {**b.conflicts, **a.conflicts}
    names_of_b = set(b.schema.names)
    for field in a.schema:
        if field.name not in names_of_b:
            fields[field.name] = field.with_nullable(True)
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


def prefer_read_files(every: EmbeddedSchema, read: EmbeddedSchema) -> EmbeddedSchema:
    """Resolve conflicts between the types of all files by the types of the files that are read.

    Columns and their order are those of all files. Of the conflicts, those between files that are read are left.
    """
    merged = merge_embedded(read, every)
    fields = [merged.schema.field(name) for name in every.schema.names]
    schema = pa.schema(fields, metadata=merged.schema.metadata)
    return replace(merged, schema=schema, conflicts=read.conflicts, content=None)


def _conflict(a: EmbeddedSchema, b: EmbeddedSchema, before: pa.Field, other: pa.Field) -> SchemaError:
    """The error for a column whose types in two files have no type in common."""
    from tfrecord_io.columns.schema.column_advice import conflict_hints

    name = other.name
    types = [value_type(f.type) for f in (before, other)]
    common_type = None
    are_values = _encoding(before) is None and _encoding(other) is None
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


def join_categories(known: pa.Array, others: pa.Array) -> pa.Array:
    """`known`, followed by the new values of `others`; `known` itself if there are none."""
    if others.equals(known):  # also where it has a value twice
        return known
    joined = hashable(pa.concat_arrays([known, others.cast(known.type)])).unique()
    return known if len(joined) == len(known) else joined.cast(known.type)


# ---- the type of two columns


def common_field(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """The field for a column that is `a` in one file and `b` in another; None if no type holds the values of both.

    It has the name and the metadata of `a`, and is nullable if one of them is.

    >>> common_field(pa.field("x", pa.int8()), pa.field("x", pa.int64())).type
    DataType(int64)
    >>> common_field(pa.field("x", pa.int64()), pa.field("x", pa.string())) is None
    True
    """
    nullable = a.nullable or b.nullable
    if t.is_null(b.type):
        return a.with_nullable(True)
    if t.is_null(a.type):
        return b.with_name(a.name).with_nullable(True)
    if stated_extension(a) != stated_extension(b) or extension_encoding_of(a) != extension_encoding_of(b):
        return None
    encodings = {_encoding(a), _encoding(b)}
    if is_any_tensor(a.type) or is_any_tensor(b.type):
        tensor = _common_tensor(a, b) if len(encodings) == 1 else None
        return None if tensor is None else tensor.with_nullable(nullable)
    type_ = _common_type(a, b)
    if type_ is not None and any(_changes_items(f, f.type, type_) for f in (a, b)):
        return None
    if type_ is not None and NESTED.encode() in encodings <= {None, NESTED.encode()}:
        if not all(is_nested(f) or not needs_nesting(f) for f in (a, b)):  # else plain is nested without nulls
            return None
        return set_encoding(a.with_type(type_).with_nullable(nullable), NESTED)
    if type_ is None or any(_encoding(f) is not None and not f.type.equals(type_) for f in (a, b)):
        return None  # the bytes of a cell are those of its own type
    if len(encodings) == 1:
        return a.with_type(type_).with_nullable(nullable)
    is_one_feature = not t.is_nested(value_type(type_))
    if is_one_feature and encodings <= {None, b"raw", b"wire"}:  # the feature type of a record decides which it is
        metadata = {**(a.metadata or {}), ENCODING_KEY: b"wire"}
        return a.with_type(type_).with_metadata(metadata).with_nullable(nullable)
    return None


def lacks_only_values(own: pa.DataType, type_: pa.DataType) -> bool:
    """True if a type is `type_`, or would be if its columns, fields or items that are null throughout had a type.

    >>> lacks_only_values(pa.list_(pa.null()), pa.list_(pa.int64()))
    True
    >>> lacks_only_values(pa.int32(), pa.int64())
    False
    """
    if _is_of_nulls(own) or own.equals(type_):
        return True
    if t.is_struct(own) and t.is_struct(type_) and own.num_fields == type_.num_fields:
        pairs = zip(own, type_, strict=True)
        return all(a.name == b.name and lacks_only_values(a.type, b.type) for a, b in pairs)
    is_list = own.id == type_.id and is_list_like(own)
    if is_list and t.is_fixed_size_list(own) and own.list_size != type_.list_size:
        return False
    return is_list and lacks_only_values(own.value_type, type_.value_type)


def lacks_type(type_: pa.DataType) -> bool:
    """True if a column of this type is null throughout, or has fields or items that are."""
    if is_list_like(type_):
        return lacks_type(type_.value_type)
    return _is_of_nulls(type_) or (t.is_struct(type_) and any(lacks_type(child.type) for child in type_))


def _is_of_nulls(type_: pa.DataType) -> bool:
    """True if all values are null; of categories, pandas has the type then, if those of an object column are."""
    return bool(t.is_null(type_.value_type if t.is_dictionary(type_) else type_))


def fill_in_types(schema: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Give the columns without a type the type that they have in another schema.

    >>> fill_in_types(pa.schema({"x": pa.null(), "y": pa.int8()}), pa.schema({"x": pa.string(), "y": pa.int64()})).types
    [DataType(string), DataType(int8)]
    """
    of_other, changed = {*other.names}, {}
    for at, field in enumerate(schema):
        if field.name in of_other and lacks_type(field.type):
            untyped, typed = pa.field("", field.type), other.field(field.name)
            common = common_field(untyped, pa.field("", typed.type))
            if common is not None and lacks_only_values(field.type, common.type):
                changed[at] = typed.with_type(common.type)
    return replace_fields(schema, changed)


def _common_part(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """The field for a part of a column, whose values are stored in one form: they cannot be distinguished."""
    is_same = _encoding(a) == _encoding(b) or t.is_null(a.type) or t.is_null(b.type)
    return common_field(a, b) if is_same else None


def _changes_items(field: pa.Field, type_: pa.DataType, common: pa.DataType, *, in_list: bool = False) -> bool:
    """True if items of lists in a column would change or vanish in the type `common`.

    The features of structs in lists have a value for each item. Nulls of the null type are integers without positions.
    """
    if t.is_null(type_):
        return in_list and is_nested(field) and not t.is_null(common)
    if is_list_like(type_):
        return _changes_items(field, type_.value_type, common.value_type, in_list=True)
    if not t.is_struct(type_):
        return False
    if in_list and type_.num_fields != common.num_fields:
        return True
    return any(_changes_items(field, child.type, common.field(child.name).type, in_list=in_list) for child in type_)


def _encoding(field: pa.Field) -> bytes | None:
    """The encoding of the cells of a column; None: its values are those of the feature."""
    encoding: bytes | None = (field.metadata or {}).get(ENCODING_KEY)
    return None if encoding == b"list" else encoding


def _common_tensor(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """The tensors of both, where they have the same dtype and rank: sizes of axes that differ are unknown."""
    if not (is_any_tensor(a.type) and is_any_tensor(b.type)):
        return None
    (element, shape), (other_element, axes) = element_and_shape(a), element_and_shape(b)
    if element != other_element or len(shape) != len(axes):
        return None
    if shape == axes:
        return a
    united = tuple(m if m == n else None for m, n in zip(shape, axes, strict=True))
    field = tensor_field(a.name, element, united)
    return field.with_metadata({**(a.metadata or {}), **(field.metadata or {})} or None)


def _common_type(a: pa.Field, b: pa.Field) -> pa.DataType | None:
    """The type of both columns, which are not tensors."""
    x, y = a.type, b.type
    if x.equals(y, check_metadata=True):
        return x
    if t.is_dictionary(x) or t.is_dictionary(y):
        return _common_dictionary(x, y)
    if is_list_like(x) and is_list_like(y):
        item = _common_part(x.value_field, y.value_field.with_name(x.value_field.name))
        is_fixed = t.is_fixed_size_list(x) and t.is_fixed_size_list(y) and x.list_size == y.list_size
        return None if item is None else pa.list_(item, x.list_size if is_fixed else -1)
    if t.is_struct(x) and t.is_struct(y):
        return _common_struct(x, y)
    if x.equals(y):
        return _unify_parts(x, y)
    if t.is_integer(x) and t.is_integer(y):
        return _common_integer(x, y)
    if t.is_floating(x) and t.is_floating(y):
        return max(x, y, key=lambda type_: type_.bit_width)
    if t.is_decimal(x) and t.is_decimal(y):
        return _common_decimal(x, y)
    if is_text_or_bytes(x) and is_text_or_bytes(y):
        return pa.binary()
    return None


def _unify_parts(x: pa.DataType, y: pa.DataType) -> pa.DataType | None:
    """The type of both, a map or a union, whose parts may be stored differently; other types as they are."""
    if not (t.is_map(x) or t.is_union(x)):
        return x
    parts = [(x.key_field, y.key_field), (x.item_field, y.item_field)] if t.is_map(x) else zip(x, y, strict=True)
    common = [_common_part(*part) for part in parts]
    if any(field is None for field in common):
        return None
    return pa.map_(*common, x.keys_sorted) if t.is_map(x) else pa.union(common, x.mode, x.type_codes)


def _common_dictionary(x: pa.DataType, y: pa.DataType) -> pa.DataType | None:
    """Categories of both; plain values, where one has no categories or the order of categories counts in one only."""
    values = [type_.value_type if t.is_dictionary(type_) else type_ for type_ in (x, y)]
    value = common_field(*(pa.field("", type_) for type_ in values))
    if value is None or not (t.is_dictionary(x) and t.is_dictionary(y)) or x.ordered != y.ordered:
        return None if value is None else value.type
    return pa.dictionary(_common_integer(x.index_type, y.index_type), value.type, x.ordered)


def _common_struct(x: pa.StructType, y: pa.StructType) -> pa.DataType | None:
    """Unite the fields of both structs, in the order of `x`; a field of only one struct becomes nullable."""
    of_y = {child.name: child for child in y}
    children: list[pa.Field] = []
    for child in x:
        counterpart = of_y.pop(child.name, None)
        common = child.with_nullable(True) if counterpart is None else _common_part(child, counterpart)
        if common is None:
            return None
        children.append(common)
    return pa.struct([*children, *(child.with_nullable(True) for child in of_y.values())])


def _common_integer(x: pa.DataType, y: pa.DataType) -> pa.DataType:
    """The narrowest integer for the values of both. Of uint64 a TFRecord holds the values below 2**63 only."""
    if t.is_signed_integer(x) == t.is_signed_integer(y):
        return max(x, y, key=lambda type_: type_.bit_width)
    signed, unsigned = (x, y) if t.is_signed_integer(x) else (y, x)
    bits = max(signed.bit_width, min(2 * unsigned.bit_width, 64))
    return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]


def _common_decimal(x: pa.DataType, y: pa.DataType) -> pa.DataType | None:
    """The narrowest decimal with the whole digits and the fraction of both."""
    scale = max(x.scale, y.scale)
    digits = max(x.precision - x.scale, y.precision - y.scale) + scale
    width = max(x.bit_width, y.bit_width)
    widths = [bits for bits, max_digits in DIGITS.items() if digits <= max_digits and bits >= width]
    return getattr(pa, f"decimal{widths[0]}")(digits, scale) if widths else None
