"""Unite the types that a column has in the embedded schemas of several files.

A column has the type that holds every value of its types in the files. Only conversions that change no value count, of
types that are written as the same feature type: int8 and int64 have int64, int64 and float have none. `common_field` is
commutative but for the order of the fields of structs, and associative, so the order of files changes no type.

Tests: tests/laws/test_united_schemas.py and tests/read/chunks/test_embedded_schemas.py.
"""

from __future__ import annotations

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns.schema.column_features import (
    ENCODING_KEY,
    RAW,
    extension_encoding_of,
    is_list_of_tensors,
    is_nested,
    needs_nesting,
    set_encoding,
)
from tfrecord_io.columns.schema.extension_types import stated_extension
from tfrecord_io.columns.schema.tensor_types import NESTED, element_and_shape, is_any_tensor, tensor_field
from tfrecord_io.columns.schema.types import (
    DIGITS,
    hashable,
    is_list_like,
    is_text_or_bytes,
    relist,
    replace_fields,
    value_type,
)


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
    if not _have_sizes_alike(a, b):
        return None
    encodings = {stored_form(a), stored_form(b)}
    if is_any_tensor(a.type) or is_any_tensor(b.type):
        tensor = _common_tensor(a, b) if len(encodings) == 1 else None
        return None if tensor is None else tensor.with_nullable(nullable)
    if encodings == {RAW.encode()} and (lists := _common_tensor_lists(a, b)) is not None:
        return lists.with_nullable(nullable)
    type_ = _common_type(a, b)
    if type_ is not None and any(_changes_items(f, f.type, type_) for f in (a, b)):
        return None
    if type_ is not None and NESTED.encode() in encodings <= {None, NESTED.encode()}:
        if not all(is_nested(f) or not needs_nesting(f) for f in (a, b)):  # else plain is nested without nulls
            return None
        return set_encoding(a.with_type(type_).with_nullable(nullable), NESTED)
    if type_ is None or any(stored_form(f) is not None and not f.type.equals(type_) for f in (a, b)):
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
    is_same = (stored_form(a), _holds_sizes(a)) == (stored_form(b), _holds_sizes(b))
    return common_field(a, b) if is_same or t.is_null(a.type) or t.is_null(b.type) else None


def _holds_sizes(part: pa.Field) -> bool:
    """True if the shapes of arrays in the field of a struct are stored in features that are not companions."""
    source = ShapeSource.from_metadata(part.metadata, part.name)
    return source is not None and source.holds_in_structs


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


def stored_form(field: pa.Field) -> bytes | None:
    """The encoding of the cells of a column; None: its values are those of the feature."""
    encoding: bytes | None = (field.metadata or {}).get(ENCODING_KEY)
    return None if encoding == b"list" else encoding


def _have_sizes_alike(a: pa.Field, b: pa.Field) -> bool:
    """True if the shapes of arrays stand in the same features in both files, or in both in none but companions."""
    entries = [ShapeSource.entry_of(field.metadata or {}) for field in (a, b)]
    if entries[0] == entries[1]:
        return True
    sources = [ShapeSource.from_metadata(field.metadata, field.name) for field in (a, b)]
    places = [None if source is None else (source.axes, source.dtype) for source in sources]
    return places[0] == places[1]


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


def _common_tensor_lists(a: pa.Field, b: pa.Field) -> pa.Field | None:
    """The lists of tensors of both, each of which is a value of its own, as are steps; None for other columns."""
    x, y = a.type, b.type
    if x.equals(y) or x.id != y.id or not (is_list_of_tensors(x) and is_list_of_tensors(y)):
        return None
    if t.is_fixed_size_list(x) and x.list_size != y.list_size:
        return None
    item = _common_tensor(a.with_type(x.value_type), b.with_type(y.value_type))
    return None if item is None else item.with_type(relist(x, item.type))


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
