"""The type map: which features a column is written as, each of which feature type and with how many values.

This is the only place that decides it. A column is written as its *leaves*: itself, or the children of a struct, whose
names are joined by "/". The writer, the embedded schema and the reader that restores a column all use the same leaves.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes import Dtype, Kind, Layout, ShapeSource
from tfrecord_io.columns.schema.tensor_types import (
    EXTENSION_NAME,
    JSON,
    TENSOR_ENCODINGS,
    EncodingRules,
    Shape,
    check_size,
    drop_permutation,
    element_and_shape,
    encoding_rules,
    is_any_tensor,
    is_composed,
    permutation_of,
)
from tfrecord_io.columns.schema.types import (
    NARROW,
    VIEWS,
    UnsupportedType,
    drop_run_ends,
    has_wide_offsets,
    is_bytes,
    is_list_like,
    is_text,
    is_text_or_bytes,
    is_value_extension,
    is_value_storage,
    kind_of,
    map_fields,
    plain_kind,
    plain_list_kind,
    relist,
    restore_type,
    supported_element_and_shape,
    value_type,
)
from tfrecord_io.errors import SchemaError

# Keys in the metadata of a pa.Field, each only where name and type do not determine the value.
FEATURE_KEY = b"tfrecord_io.feature"  # the feature's name, where it is not the column's
DEFAULT_KEY = b"tfrecord_io.default"  # JSON
EMPTY_KEY = b"tfrecord_io.empty"  # "null": a feature of a type but without values is null
COMPOSITE_KEY = b"tfrecord_io.assembly"  # JSON: a `schema.composite.Composite`
ENCODING_KEY = b"tfrecord_io.encoding"  # field metadata; absent means LIST
# Field metadata: the encoding of the values in an extension type, whose own parts have no metadata; "float64:raw" is
# that of those of float64 alone.
EXTENSION_ENCODING_KEY = b"tfrecord_io.extension_encoding"
PART_KEY = b"tfrecord_io.part"  # field metadata: the part of a SequenceExample that holds a list column
CONTEXT = "context"
FEATURE_LIST = "feature_list"
NULL_POSITIONS = "/null_positions"  # ends the name of the feature of the positions of nulls
LIST = "list"  # the values themselves
OF_FLOAT64 = "float64:"  # begins an encoding of the values of float64 alone
RAW = "raw"  # the values' bytes, C order, little-endian, with companion features
BY_WIRE = "wire"  # of a declared tensor: RAW where a record has bytes, LIST where it has numbers


class Leaf(NamedTuple):
    """A feature and the Arrow values that it holds.

    `kind` and `layout` are those of the feature in a record: NONE and NULL where nothing is written, BYTES and SCALAR
    where a cell is one bytes value.
    """

    feature: str  # the names of a struct's children are joined by "/"
    path: tuple[str, ...]  # struct children from the column down to the leaf, empty for a plain column
    type: pa.DataType  # logical, without run-ends; inside a list of structs it is a list of the child's type
    kind: Kind
    layout: Layout
    encoding: str = LIST
    element: Dtype | None = None  # of a column of tensors, as is `shape`
    shape: Shape | None = None
    shape_source: ShapeSource | None = None  # the features of another program that state the shape

    @property
    def companions(self) -> tuple[str, ...]:
        """Names of the companion features: shape (INT64, LIST) and dtype (BYTES, SCALAR)."""
        if self.encoding == LIST or self.shape_source is not None or not encoding_rules(self.encoding).companions:
            return ()
        return ShapeSource.companions(self.feature)


def encoding_of(field: pa.Field) -> str | None:
    """The encoding in a field's metadata, or None."""
    value = (field.metadata or {}).get(ENCODING_KEY)
    return None if value is None else value.decode("utf-8", "backslashreplace")


def set_encoding(field: pa.Field, encoding: str | None) -> pa.Field:
    """Set the encoding in the metadata of a field; None and "list", the default, remove the entry."""
    metadata = {k: v for k, v in (field.metadata or {}).items() if k != ENCODING_KEY}
    if encoding not in (None, LIST):
        metadata[ENCODING_KEY] = encoding.encode()
    return field.with_metadata(metadata or None)


def extension_encoding_of(field: pa.Field) -> str | None:
    """The encoding of the values in an extension type, by the metadata of its field, or None."""
    value = (field.metadata or {}).get(EXTENSION_ENCODING_KEY)
    return None if value is None else value.decode("utf-8", "backslashreplace")


def set_extension_encoding(field: pa.Field, encoding: str | None) -> pa.Field:
    """Set the encoding of the stored values in the metadata of an extension type's field; None removes the entry."""
    metadata = {key: value for key, value in (field.metadata or {}).items() if key != EXTENSION_ENCODING_KEY}
    if encoding not in (None, LIST):
        metadata[EXTENSION_ENCODING_KEY] = encoding.encode()
    return field.with_metadata(metadata or None)


def _encoding_of_values(encoding: str, type_: pa.DataType) -> str:
    """The encoding of values of a type, which may be stated for those of float64 alone."""
    of_doubles = encoding.removeprefix(OF_FLOAT64)
    return encoding if of_doubles == encoding else of_doubles if t.is_float64(type_) else LIST


def is_nested(field: pa.Field) -> bool:
    """True if the metadata of a field says that the column is stored as several features, or as JSON."""
    return bool(field.metadata) and is_composed(encoding_of(field))


def is_marked_feature_list(field: pa.Field) -> bool:
    """True if the metadata says that the column is a feature list."""
    metadata = field.metadata
    return metadata is not None and metadata.get(PART_KEY) == FEATURE_LIST.encode()


def unmark_feature_list(field: pa.Field) -> pa.Field:
    """The field without the mark of a feature list: where the column is several features of the context instead."""
    if not is_marked_feature_list(field):
        return field
    metadata = {key: value for key, value in field.metadata.items() if key != PART_KEY}
    return field.with_metadata(metadata or None)


def is_list_of_arrays(field: pa.Field) -> bool:
    """True if the values of a context feature are the arrays of a row, and features state their shapes.

    Other lists of arrays are feature lists, or nested.
    """
    metadata = field.metadata
    if metadata is None:
        return False
    return metadata.get(PART_KEY) == CONTEXT.encode() and ShapeSource.entry_of(metadata) is not None


def shape_entries(
    type_: pa.DataType, metadata: Mapping[bytes, bytes] | None, path: tuple[str, ...] = ()
) -> dict[tuple[str, ...], bytes]:
    """The entries of `ShapeSource` in a column and the fields of its structs, each by the names of the fields.

    >>> source = ShapeSource(("height", "width"))
    >>> shape_entries(pa.struct([pa.field("image", pa.binary(), metadata=source.metadata)]), None)
    {('image',): b'{"axes": ["height", "width"]}'}
    """
    entry = ShapeSource.entry_of(metadata or {})
    entries = {} if entry is None else {path: entry}
    struct = type_.value_type if is_list_like(type_) else type_
    for child in struct if t.is_struct(struct) else ():
        entries |= shape_entries(child.type, child.metadata, (*path, child.name))
    return entries


def field_at(field: pa.Field, path: tuple[str, ...]) -> pa.Field | None:
    """The field of the structs in a column, which may be in a list, by the names of fields; None if it has none.

    >>> field_at(pa.field("x", pa.list_(pa.struct({"a": pa.int8()}))), ("a",)).type
    DataType(int8)
    """
    for name in path:
        struct = field.type.value_type if is_list_like(field.type) else field.type
        at = struct.get_field_index(name) if t.is_struct(struct) else -1
        if at < 0:
            return None
        field = struct.field(at)
    return field


def is_list_of_tensors(type_: pa.DataType) -> bool:
    """True if a type is one of lists of tensors: the steps of a feature list, or the values of a feature."""
    return is_list_like(type_) and is_any_tensor(type_.value_type)


def step_field(field: pa.Field) -> pa.Field | None:
    """The field of one step, if the column is a feature list: lists of lists, or lists marked as a feature list.

    UnsupportedType if the steps are structs.
    """
    type = drop_run_ends(field.type)
    if not is_list_like(type):
        return None
    is_marked = is_marked_feature_list(field)
    step = drop_run_ends(type.value_type)
    if not is_marked and not is_list_like(step) and not is_any_tensor(step):
        return None
    if t.is_struct(step.value_type if is_list_like(step) else step):
        reason = f"a feature list of structs ({field.type}) cannot be stored in a TFRecord"
        raise UnsupportedType(field.name, reason, "make its fields columns of their own")
    return field.with_type(type.value_type)


def leaves(field: pa.Field) -> list[Leaf]:
    """List the features that a column is written as.

    The metadata of the field, or of a struct's child, may contain ``tfrecord_io.encoding``. UnsupportedType if the type
    cannot be stored in a TFRecord, or not with this encoding.

    >>> [leaf.feature for leaf in leaves(pa.field("a", pa.struct([("x", pa.int8()), ("y", pa.string())])))]
    ['a/x', 'a/y']
    """
    kind = plain_kind(field.type)
    if kind is not None and not field.metadata:
        return [Leaf(field.name, (), type=field.type, kind=kind, layout=Layout.SCALAR)]
    kind = plain_list_kind(field.type)
    if kind is not None and not field.metadata and not field.type.value_field.metadata:
        return [Leaf(field.name, (), type=relist(field.type, field.type.value_type), kind=kind, layout=Layout.LIST)]
    collected: list[Leaf] = []
    _collect(field, field.name, path=(), outer=None, encoding=LIST, collected=collected)
    return collected


def _collect(
    field: pa.Field,
    feature: str,
    path: tuple[str, ...],
    outer: pa.DataType | None,
    encoding: str,
    collected: list[Leaf],
) -> None:
    """Add the leaves of `field`, which is inside the list type `outer`, if any."""
    encoding = encoding_of(field) or encoding
    type = drop_run_ends(field.type)
    if t.is_struct(type):
        if type.num_fields == 0:
            raise UnsupportedType(feature, "a struct without fields has no values to write", "leave the column out")
        for child in type:
            _collect(
                child,
                f"{feature}/{child.name}",
                path=(*path, child.name),
                outer=outer,
                encoding=encoding,
                collected=collected,
            )
    elif is_any_tensor(type):
        collected.append(_tensor_leaf(field.with_type(type), feature, path=path, outer=outer, encoding=encoding))
    elif is_list_like(type):
        if outer is not None:
            advice = 'write it with record_type="sequence_example", declare a tensor with schema='
            reason = f"a list of lists ({field.type}) cannot be stored in an Example"
            raise UnsupportedType(feature, reason, f"{advice}, or flatten it")
        item = type.value_field
        if path and ShapeSource.entry_of(field.metadata or {}) is not None:  # a list of arrays
            item = item.with_metadata(field.metadata)
        _collect(item, feature, path=path, outer=type, encoding=encoding, collected=collected)
    else:
        logical = type if outer is None else relist(outer, type)
        kind = kind_of(type, feature)
        layout = Layout.NULL if kind == Kind.NONE else Layout.SCALAR if outer is None else Layout.LIST
        if _has_one_value(encoding, type, feature):
            kind, layout = Kind.BYTES, Layout.SCALAR
        else:
            encoding = LIST
        collected.append(Leaf(feature, path, type=logical, kind=kind, layout=layout, encoding=encoding))


def _has_one_value(encoding: str, type: pa.DataType, feature: str) -> bool:
    """True if all values of a row are stored as one bytes value; the encoding is checked."""
    rules = _rules(encoding, feature)
    if not rules.one_value_per_cell or t.is_null(type):
        return False
    value = type.value_type if t.is_dictionary(type) else type
    try:
        rules.check(None if is_text_or_bytes(value) else Dtype.of_arrow(value))
    except ValueError:
        reason = f'the encoding "{encoding}" does not store values of type {type}'
        raise UnsupportedType(feature, reason, "cast the column or leave its encoding out") from None
    return True


def _rules(encoding: str, feature: str) -> EncodingRules:
    if not TENSOR_ENCODINGS.has(encoding):
        reason = f"{encoding!r} is not a tensor encoding"
        raise UnsupportedType(feature, reason, f"valid names: {', '.join(TENSOR_ENCODINGS.names())}")
    return encoding_rules(encoding)


def _tensor_leaf(
    field: pa.Field, feature: str, path: tuple[str, ...], outer: pa.DataType | None, encoding: str
) -> Leaf:
    source = ShapeSource.from_metadata(field.metadata, feature)
    if path and source is not None and not source.holds_in_structs:
        source = None  # an array that is in a struct since it was read has companions
    if outer is not None and source is None:
        advice = 'write it with record_type="sequence_example"'
        raise UnsupportedType(feature, "a list of tensors cannot be stored in an Example", advice)
    element, shape = supported_element_and_shape(field, feature)
    if source is not None:
        source.check_rank(len(shape), feature)
    rules = _rules(encoding, feature)
    is_stated = source is not None or (rules.adaptive and bool(path))  # other features state what a list does not
    try:
        rules.check(element, () if is_stated else shape)
    except ValueError as error:
        raise UnsupportedType(feature, str(error), f'use the encoding "{RAW}"') from None
    if rules.adaptive and not path:
        rules = encoding_rules(LIST)
    return Leaf(
        feature=feature,
        path=path,
        type=field.type if outer is None else relist(outer, field.type),
        kind=rules.kind(element),
        layout=rules.layout if outer is None else Layout.LIST,
        encoding=rules.name,
        element=element,
        shape=shape,
        shape_source=source,
    )


def as_shape(source: Any, *, is_sparse: bool = False) -> Shape:
    """A shape from numbers, None and −1, from one number, or from TensorFlow's TensorShape; SchemaError for others.

    >>> as_shape([28, -1])
    (28, None)

    One that `is_sparse` may have more values than a record can hold; its indices are int64.
    """
    if hasattr(source, "as_list"):  # tf.TensorShape
        source = source.as_list()
    try:
        sizes = [source] if hasattr(source, "__index__") or isinstance(source, str | bytes) else source
        axes = tuple(None if axis is None or operator.index(axis) == -1 else operator.index(axis) for axis in sizes)
    except TypeError:
        raise SchemaError(f"{source!r} is not a shape", got=source) from None
    if any(axis is not None and axis < 0 for axis in axes):
        raise SchemaError(f"the shape {axes} has a negative axis", got=source)
    if not is_sparse:
        check_size(axes)
    elif any(axis is not None and axis > LIMITS.INT64_MAX for axis in axes):
        raise SchemaError(f"the shape {axes} has an axis of more than {LIMITS.INT64_MAX} values", got=source)
    return axes


def fixed_part(shape: Shape) -> int:
    """The product of the known dimensions, of which the number of values is a multiple.

    >>> fixed_part((None, 2, 3))
    6
    """
    return math.prod(axis for axis in shape if axis is not None)


def size_of(shape: Shape) -> int | None:
    """The number of values, None where a dimension is unknown."""
    return None if None in shape else fixed_part(shape)


def shape_of(type_: pa.DataType, metadata: Mapping[bytes, bytes] | None = None) -> Shape | None:
    """The shape that a type of tensors or of fixed size implies; the field's `metadata` has the dtype of tensors.

    ValueError if that dtype does not fit the type.
    """
    if is_any_tensor(type_):
        return element_and_shape(pa.field("", type_, metadata=dict(metadata or {})))[1]
    return (type_.list_size,) if t.is_fixed_size_list(type_) else None


def check_shape(shape: Shape, type_: pa.DataType, implied: Shape | None) -> None:
    """Raise ValueError where values of `type_`, which implies the shape `implied`, cannot have `shape`."""
    if is_any_tensor(type_):
        if shape != implied:
            raise ValueError(f"the shape {shape} is not that of the type, {implied}")
    elif t.is_fixed_size_list(type_):
        if size_of(shape) != type_.list_size:
            raise ValueError(f"the shape {shape} does not have the {type_.list_size} values of the type")
    elif not (is_list_like(type_) or is_text(type_) or is_bytes(type_)) and shape != ():
        raise ValueError(f"a single value cannot have the shape {shape}")


_MOST_LEVELS = 64  # that Arrow's IPC format reads
_NUMBERS = pa.list_(pa.int64())  # of a row: lengths, positions


@dataclass(slots=True, repr=False)
class Node:
    """A part of a type, inside `depth` lists."""

    type: pa.DataType
    feature: str
    depth: int
    # The features of this part alone, as plain columns: of single values, or of lists if the part is inside a list.
    # In lists, the first feature has an entry for each item, unless `children` have it; the last feature has the
    # positions of nulls in a row, and is missing in rows without nulls.
    fields: tuple[pa.Field, ...] = ()
    children: tuple[Node, ...] = ()

    def all_features(self) -> Iterator[pa.Field]:
        """All features of this part and of the parts below it, in order."""
        yield from self.fields
        for child in self.children if not isinstance(self, AsJson) else ():
            yield from child.all_features()

    @property
    def counter(self) -> int:
        """Which feature of `stored` has one entry for each item: a list has as many items as values."""
        return 0


class Values(Node):
    """Values of a plain type."""


class Lists(Node):
    """Lists of one child. Inside another list they have a feature of lengths."""


class Struct(Node):
    """A struct. Outside of lists its one feature is 1 where the struct is not null and all its children are."""

    @property
    def counter(self) -> int:
        first = len(self.fields) if self.children else 0
        children = enumerate(self.children, first)  # other writers leave out those that are always null
        return next((at + child.counter for at, child in children if not t.is_null(child.type)), first)


class PlainStruct(Struct):
    """A struct without a feature of its own, null where all fields are null."""


class PlainLists(Lists):
    """Lists of a `PlainStruct`, each of whose fields is a feature with a list for each row."""


class Represented(Node):
    """A type that is stored as another type, the type of the only child."""

    @property
    def counter(self) -> int:
        return self.children[0].counter


class AsJson(Node):
    """Any type as a text of JSON for each row. Its children are the trees of the type and of its `json_type`."""


# ---- types that are stored as other ones


class Representation(NamedTuple):
    """How a type is stored: as what. Its `name` finds the functions that convert the arrays, in both directions."""

    name: str
    matches: Callable[[pa.DataType], bool]
    stored: Callable[[pa.DataType], pa.DataType]


def map_entries(type_: pa.MapType) -> pa.DataType:
    """The list of structs that a map is.

    >>> map_entries(pa.map_(pa.string(), pa.int8()))
    ListType(list<entries: struct<key: string not null, value: int8> not null>)
    """
    key = type_.key_field.with_name("key").with_nullable(False)
    return pa.list_(pa.field("entries", pa.struct([key, type_.item_field.with_name("value")]), nullable=False))


def union_names(type_: pa.UnionType) -> list[str]:
    """Distinct names of the types of a union: their own, or numbers."""
    names = [child.name for child in type_]
    return names if all(names) and len(set(names)) == len(names) else [str(at) for at in range(len(names))]


def _union_struct(type_: pa.UnionType) -> pa.DataType:
    children = [child.with_name(name) for name, child in zip(union_names(type_), type_, strict=True)]
    return pa.struct([pa.field("type_id", pa.int8()), *children])


INTERVAL = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])

REPRESENTATIONS = (
    Representation(
        "extension", lambda type_: isinstance(type_, pa.BaseExtensionType), lambda type_: type_.storage_type
    ),
    Representation("dictionary", t.is_dictionary, lambda type_: type_.value_type),
    Representation("run_ends", t.is_run_end_encoded, lambda type_: type_.value_type),
    Representation("map", t.is_map, map_entries),
    Representation("union", t.is_union, _union_struct),
    Representation("interval", lambda type_: type_.id == pa.lib.Type_INTERVAL_MONTH_DAY_NANO, lambda _: INTERVAL),
)


def representation_of(type_: pa.DataType) -> Representation | None:
    """How a type is stored as another one; None for values, lists and structs."""
    return next((row for row in REPRESENTATIONS if row.matches(type_)), None)


# ---- the tree of a column


def layout_of(field: pa.Field) -> Node | None:
    """The tree of a column; None for one that is a single plain feature. UnsupportedType if it cannot be stored.

    >>> layout_of(pa.field("x", pa.list_(pa.int8()))) is None
    True
    >>> pairs = layout_of(pa.field("x", pa.list_(pa.struct([("a", pa.int8()), ("b", pa.string())]))))
    >>> [stored.name for stored in pairs.all_features()]
    ['x/a', 'x/b']
    """
    if plain_kind(field.type) is not None and not field.metadata:
        return None
    if is_nested(field):
        return nested_tree(field)
    return _plain_tree(field.type, field.name, 0, iter(leaves(field))) if has_struct(field.type) else None


def has_struct(type_: pa.DataType) -> bool:
    """True if a type is a struct, or a list of structs."""
    type_ = drop_run_ends(type_)
    return bool(t.is_struct(type_) or (is_list_like(type_) and has_struct(type_.value_type)))


def _plain_tree(type_: pa.DataType, feature: str, depth: int, features: Iterator[Leaf]) -> Node:
    type_ = drop_run_ends(type_)
    if t.is_struct(type_):
        fields = [_plain_tree(child.type, f"{feature}/{child.name}", depth, features) for child in type_]
        return PlainStruct(type_, feature, depth=depth, fields=(), children=tuple(fields))
    if is_list_like(type_) and has_struct(type_):
        return PlainLists(
            type_,
            feature,
            depth=depth,
            fields=(),
            children=(_plain_tree(type_.value_type, feature, depth + 1, features),),
        )
    leaf = next(features)
    return Values(type_, feature, depth, (set_encoding(pa.field(leaf.feature, leaf.type), leaf.encoding),))


def nested_tree(field: pa.Field) -> Node:
    """The tree of a column that is stored as several features, or as JSON; UnsupportedType if it cannot be."""
    if encoding_of(field) == JSON:
        types = (field.type, json_type(field.type))
        children = tuple(
            _node(pa.field(field.name, type_), field.name, depth=0, encoding=LIST, level=0) for type_ in types
        )
        return AsJson(field.type, field.name, depth=0, fields=(pa.field(field.name, pa.string()),), children=children)
    return _node(set_encoding(field, None), field.name, depth=0, encoding=LIST, level=0)


def _node(
    field: pa.Field, feature: str, depth: int, encoding: str, level: int, *, filled: bool = False, of_map: bool = False
) -> Node:
    """The tree of `field` inside `depth` lists.

    `filled`: it has no nulls of its own, as the entries and the keys of maps. `of_map`: it is the list that a map is.
    """
    if level > _MOST_LEVELS:
        raise UnsupportedType(feature, f"its type has more than {_MOST_LEVELS} levels", "flatten it")
    encoding, type_ = encoding_of(field) or encoding, field.type
    encoding = LIST if is_composed(encoding) else encoding
    encoding = extension_encoding_of(field) or encoding
    inner = partial(_node, encoding=encoding, level=level + 1)
    stem = feature if depth < 2 else f"{feature}/ragged_flat_values"
    if is_any_tensor(type_) and permutation_of(type_) is not None:
        advice = "make them tensors without a permutation, of the same values in the order of their axes"
        raise UnsupportedType(feature, "the axes of tensors in a nested column are permuted", advice)
    if (row := representation_of(type_)) is not None:
        stored = set_extension_encoding(field.with_type(row.stored(type_)), None)
        child = inner(stored, feature, depth, filled=filled, of_map=row.name == "map")
        return Represented(type_, feature, depth=depth, fields=(), children=(child,))
    if is_list_like(type_):
        lengths = pa.field(f"{feature}/ragged_row_lengths_{depth - 1}", _NUMBERS)
        features = (lengths, _nulls(lengths.name)) if depth else ()
        return Lists(
            type_,
            feature,
            depth=depth,
            fields=features,
            children=(inner(type_.value_field, feature, depth + 1, filled=of_map),),
        )
    if t.is_struct(type_):
        children = tuple(
            inner(child, f"{feature}/{child.name}", depth, filled=filled and not at) for at, child in enumerate(type_)
        )
        if not depth:
            return Struct(
                type_, feature, depth=0, fields=(pa.field(f"{feature}/not_null", pa.int64()),), children=children
            )
        items = () if children else (pa.field(stem, _NUMBERS),)
        return Struct(
            type_, feature, depth=depth, fields=items if filled else (*items, _nulls(stem)), children=children
        )
    encoding = _encoding_of_values(encoding, type_)
    if not depth:
        return Values(type_, feature, 0, (set_encoding(pa.field(feature, type_), encoding),))
    if t.is_null(type_):
        return Values(type_, feature, depth, (pa.field(stem, _NUMBERS),))
    values = set_encoding(pa.field(stem, pa.list_(type_)), encoding)
    return Values(type_, feature, depth, (values,) if filled else (values, _nulls(stem)))


def _nulls(stem: str) -> pa.Field:
    return pa.field(f"{stem}{NULL_POSITIONS}", _NUMBERS)


def column_leaves(field: pa.Field, *, in_steps: bool = False) -> list[Leaf]:
    """The features that a column of any type is written as; those of one step, if it is a feature list.

    >>> [leaf.feature for leaf in column_leaves(set_encoding(pa.field("x", pa.list_(pa.list_(pa.int8()))), "nested"))]
    ['x/ragged_row_lengths_0', 'x/ragged_row_lengths_0/null_positions', 'x/ragged_flat_values', ...]
    """
    if not is_nested(field):
        return leaves((step_field(field) if in_steps else None) or field)
    return [leaf for stored in nested_tree(field).all_features() for leaf in leaves(stored)]


class NestedLeaf(NamedTuple):
    """A feature of a nested column, with the part of the column, such as ``x/b``, whose values it has."""

    part: str  # of lengths and positions of nulls the name of the feature
    leaf: Leaf
    lengths: tuple[str, ...] = ()  # features with the lengths of the lists in the outermost one, around the values


def nested_leaves(field: pa.Field) -> Iterator[NestedLeaf]:
    """The features of a nested column.

    >>> lists = set_encoding(pa.field("x", pa.list_(pa.list_(pa.int8()))), "nested")
    >>> values = next(leaf for leaf in nested_leaves(lists) if leaf.lengths)
    >>> values.part, values.leaf.feature, values.lengths
    ('x', 'x/ragged_flat_values', ('x/ragged_row_lengths_0',))
    """

    def visit(node: Node, lengths: tuple[str, ...]) -> Iterator[NestedLeaf]:
        for leaf in (leaf for stored in node.fields for leaf in leaves(stored)):
            has_values = not isinstance(node, Lists) and not leaf.feature.endswith(NULL_POSITIONS)
            yield NestedLeaf(node.feature, leaf, lengths) if has_values else NestedLeaf(leaf.feature, leaf)
        if isinstance(node, Lists) and node.fields:
            lengths = (*lengths, node.fields[0].name)
        for child in node.children if not isinstance(node, AsJson) else ():
            yield from visit(child, lengths)

    return visit(nested_tree(field), ())


def stored_as(field: pa.Field) -> str | None:
    """The type in which a record has the numbers of a column, if it holds less than the column's; else None.

    That is float32, for columns of float64 that are not stored as bytes.

    >>> stored_as(pa.field("x", pa.list_(pa.float64()))), stored_as(set_encoding(pa.field("x", pa.float64()), "raw"))
    ('float32', None)
    """
    if encoding_of(field) == BY_WIRE:  # which is bytes when it is written
        return None
    is_feature_list = is_list_of_arrays(field) or (needs_nesting(field) and not is_nested(field))
    try:
        stored = column_leaves(field, in_steps=is_feature_list)
    except UnsupportedType:  # only messages of other types have such a column
        return None
    is_narrow = any(leaf.kind is Kind.FLOAT and t.is_float64(value_type(leaf.type)) for leaf in stored)
    return "float32" if is_narrow else None


def shown_type(name: str, field: pa.Field) -> str:
    """The name of a column's type for display, followed by the type of its stored values where that differs.

    >>> shown_type("double", pa.field("x", pa.float64())), shown_type("int8", pa.field("x", pa.int8()))
    ('double, stored as float32', 'int8')
    """
    stored = stored_as(field)
    return name if stored is None else f"{name}, stored as {stored}"


def needs_nesting(field: pa.Field, *, in_steps: bool = False) -> bool:
    """True if a column's type cannot be stored as plain features; of a feature list that of one step.

    >>> needs_nesting(pa.field("x", pa.list_(pa.list_(pa.int8())))), needs_nesting(pa.field("x", pa.list_(pa.int8())))
    (True, False)
    """
    type_ = drop_run_ends(field.type)
    if is_list_of_arrays(field):
        return False
    if has_named_extension(field):
        return True
    step = drop_run_ends(type_.value_type) if in_steps and is_list_like(type_) else None
    if step is None or not (is_list_like(step) or is_any_tensor(step) or is_marked_feature_list(field)):
        return not _is_plain(type_)
    return t.is_struct(step.value_type if is_list_like(step) else step) or not _is_plain(step)


def _is_plain(type_: pa.DataType, inside_list: bool = False, source: ShapeSource | None = None) -> bool:
    """True if plain features store a type; the features of `source` state the shapes of its arrays."""
    type_ = drop_run_ends(type_)
    if plain_kind(type_) is not None:
        return True
    if is_any_tensor(type_):
        return not inside_list or (source is not None and source.holds_in_structs)
    if is_list_like(type_):
        return not inside_list and _is_plain(type_.value_type, True, source)
    if t.is_struct(type_):
        sources = ((child.type, ShapeSource.from_metadata(child.metadata, child.name)) for child in type_)
        return type_.num_fields > 0 and all(_is_plain(child, inside_list, stated) for child, stated in sources)
    if t.is_dictionary(type_):
        value = type_.value_type
        return not (t.is_nested(value) or t.is_null(value) or representation_of(value) is not None)
    return is_value_extension(type_) or representation_of(type_) is None


# ---- the types that nested columns are read back with


def nested_restored(type_: pa.DataType) -> pa.DataType:
    """The type a nested column is read back with: no views, no run-ends, 32-bit offsets; extension types as they are.

    A dictionary, whose categories are not stored, has no order. It holds no dictionaries; one of extension types is
    these. An extension type whose storage is read in another layout has that storage, if the type takes it.

    >>> nested_restored(pa.large_list(pa.map_(pa.string_view(), pa.large_binary())))
    ListType(list<item: map<string, binary>>)
    """
    return _rebuild_type(type_, narrow=True)


def nested_restored_field(field: pa.Field) -> pa.Field:
    """The field of a nested column as it is read back: of the type `nested_restored`."""
    return restore_type(field, nested_restored(field.type))


def nested_handed(type_: pa.DataType) -> pa.DataType:
    """The type of a declared nested column in a result: without views and run-ends; large types stay."""
    return _rebuild_type(type_, narrow=False)


def handed_type(type_: pa.DataType) -> pa.DataType:
    """The type of a declared column in a result: `nested_handed`, and without permuted axes, which few support."""
    is_plain = plain_kind(type_) is not None or plain_list_kind(type_) is not None
    return type_ if is_plain else _rebuild_type(type_, narrow=False, permuted=False)


def json_type(type_: pa.DataType) -> pa.DataType:
    """The type of the values of JSON that a type is written as: what its features hold, bytes as base64.

    Lists of a fixed size have any length: where an item of a union is of another type, the size is 0.

    >>> json_type(pa.list_(pa.timestamp("s"))), json_type(pa.decimal128(5, 2))
    (ListType(list<item: int64>), DataType(string))
    """
    if (row := representation_of(type_)) is not None:
        return json_type(row.stored(type_))
    if is_list_like(type_):
        return pa.list_(json_type(type_.value_type))
    if t.is_struct(type_):
        return pa.struct([(child.name, json_type(child.type)) for child in type_])
    if t.is_floating(type_):
        return pa.float64()
    if t.is_temporal(type_):
        return pa.int64()
    is_same = t.is_null(type_) or t.is_boolean(type_) or t.is_integer(type_)
    return type_ if is_same else pa.string()


def has_named_extension(field: pa.Field) -> bool:
    """True if the metadata of a field, or of a part of it, names an extension type that needs several features.

    Arrow returns such types in this way where they are not registered.

    >>> point = {"ARROW:extension:name": "geoarrow.point"}
    >>> has_named_extension(pa.field("x", pa.struct({"x": pa.float64()}), metadata=point))
    True
    """
    type_ = field.type
    if plain_kind(type_) is not None:
        return False
    if EXTENSION_NAME in (field.metadata or {}) and not isinstance(type_, pa.BaseExtensionType):
        return not is_value_storage(type_)
    return t.is_nested(type_) and any(has_named_extension(type_.field(at)) for at in range(type_.num_fields))


def _rebuild_type(type_: pa.DataType, narrow: bool, permuted: bool = True) -> pa.DataType:
    def child(field: pa.Field) -> pa.Field:
        return restore_type(field, _rebuild_type(field.type, narrow, permuted))

    if t.is_run_end_encoded(type_):
        return _rebuild_type(type_.value_type, narrow, permuted)
    if is_list_like(type_):
        item = child(type_.value_field)
        if t.is_fixed_size_list(type_):
            return relist(type_, item)
        return pa.large_list(item) if not narrow and has_wide_offsets(type_) else pa.list_(item)
    if t.is_struct(type_) or t.is_map(type_) or t.is_union(type_):
        return map_fields(type_, child)
    if t.is_dictionary(type_):
        value = _rebuild_type(type_.value_type, narrow, permuted)
        if narrow and isinstance(value, pa.BaseExtensionType):  # which Arrow's IPC format does not have as categories
            return value
        while narrow and t.is_dictionary(value):
            value = value.value_type
        return pa.dictionary(type_.index_type, value, type_.ordered and not narrow)
    if isinstance(type_, pa.BaseExtensionType):
        if is_any_tensor(type_) and (not permuted or permutation_of(type_) is None):
            return drop_permutation(type_)
        if narrow and type_.extension_name == "arrow.json":
            return pa.json_(pa.string())
        if not narrow or is_any_tensor(type_):
            return type_
        from tfrecord_io.columns.schema.extension_types import extension_over  # most schemas have none

        return extension_over(type_, _rebuild_type(type_.storage_type, narrow))
    return VIEWS.get(type_.id) or (NARROW.get(type_.id) if narrow else None) or type_
