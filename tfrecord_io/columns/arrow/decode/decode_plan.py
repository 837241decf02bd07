"""Compile a schema to the plan that an engine decodes by: features, their feature types, what to refuse.

Tests: tests/columns/arrow/decode/test_batch_builder.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import starmap
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Kind, Layout, PlanColumn, ShapeSource, Text
from tfrecord_io.columns.schema.column_features import (
    COMPOSITE_KEY,
    EXTENSION_ENCODING_KEY,
    FEATURE_LIST,
    LIST,
    RAW,
    Leaf,
    Node,
    column_leaves,
    handed_type,
    has_struct,
    layout_of,
    leaves,
    set_encoding,
    set_extension_encoding,
)
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import element_and_shape, encoding_rules, is_any_tensor, is_composed
from tfrecord_io.columns.schema.types import (
    UnsupportedType,
    is_list_like,
    is_text,
    other_kinds,
    plain_kind,
    plain_list_kind,
    value_type,
)
from tfrecord_io.errors import SchemaError

if TYPE_CHECKING:
    from tfrecord_io.columns.schema.composite import Built


class CompiledPlan(NamedTuple):
    """The features that a schema is decoded from."""

    columns: tuple[PlanColumn, ...]  # those that the schema's columns are read from, and the companions read with them
    ignored: frozenset[str]  # companions of raw leaves of structs, which are not columns themselves
    companions: frozenset[str] = frozenset()  # those in `columns` that are read only as companions of other columns

    def other_part(self, schema: Schema) -> tuple[PlanColumn, ...]:
        """Columns for features of the declared `schema` with names of these columns, but in the other part.

        One part is the context, the other the feature lists. They are decoded and left out: without them, the decoder
        would take them for unknown features.
        """
        read = {(column.name, column.steps) for column in self.columns}
        parts = {(field.feature, field.part == FEATURE_LIST) for field in schema}
        unread = [(name, steps) for name, steps in parts - read if (name, not steps) in read]
        return tuple(PlanColumn(name, Kind.NONE, Layout.ANY, Text.NO, steps=steps) for name, steps in sorted(unread))


def plan_columns(
    schema: Schema | pa.Schema,
    *,
    text: Text = Text.UTF8,
    steps: Collection[str] = (),
    folded: Collection[str] = (),
    promoted: Callable[[str], bool] | None = None,
) -> CompiledPlan:
    """Compile a declared schema.

    `text` is the check of string columns: UTF8 if the schema was declared, STRICT if it was inferred. The features
    `steps` are feature lists though their columns are plain lists (one value a step). The columns `folded` were
    inferred from their companions, which must then have the feature types of companions. `promoted` says whether a
    column of floats is also read from integers; by default all are.

    SchemaError if a type cannot be stored in a TFRecord, or two columns are read from one feature. The context and the
    feature lists of a SequenceExample may each have a feature of the same name.
    """
    parsed = Schema.parse(schema)
    if not parsed.others and not steps:
        return CompiledPlan(tuple(_common_columns(parsed, text, promoted)), frozenset())
    columns: dict[tuple[str, bool], PlanColumn] = {}  # by name, and whether it is a feature list
    ignored: set[str] = set()
    along: dict[tuple[str, bool], PlanColumn] = {}  # read to decode others: companions, and features with shapes
    for field in parsed.fields:
        in_steps = field.part == FEATURE_LIST or field.feature in steps
        if (plain := _plain_column(field, text, in_steps)) is not None:
            if plain.kind is Kind.FLOAT and (promoted is None or promoted(field.column)):
                plain = plain._replace(splits=True)
            if (field.feature, in_steps) in columns:
                raise _read_twice(field.feature)
            columns[field.feature, in_steps] = plain
            continue
        for at, leaf in enumerate(field_leaves(field, in_steps)):
            key = (leaf.feature, in_steps)
            if key in columns:
                raise _read_twice(leaf.feature)
            is_whole = not at and not leaf.path and not is_composed(field.encoding)
            is_promoted = promoted is None or promoted(field.column)
            columns[key] = _leaf_column(field, leaf, text, in_steps, is_whole=is_whole, is_promoted=is_promoted)
            needed = _columns_along(field, leaf, in_steps, inferred_from=field.column in folded)
            if needed is None:
                ignored.update(leaf.companions)
            else:
                along |= needed
    if not along and not ignored:
        return CompiledPlan(tuple(columns.values()), frozenset())
    only_along = {key: column for key, column in along.items() if key not in columns}
    ignored -= {name for name, _ in (*columns, *only_along)}
    only_names = {name for name, _ in only_along} - {name for name, _ in columns}
    return CompiledPlan((*columns.values(), *only_along.values()), frozenset(ignored), frozenset(only_names))


def _common_columns(schema: Schema, text: Text, promoted: Callable[[str], bool] | None) -> Iterator[PlanColumn]:
    """The features of columns of common types that say all, without a field for each of them."""
    plans = dict[int, PlanColumn]()
    for key, type_ in schema.common_types.items():
        plans[key] = _common_plan(type_, text)
    for name, type_ in zip(schema.names, schema.types, strict=True):
        plan = plans[id(type_)]
        splits = plan.kind is Kind.FLOAT and (promoted is None or promoted(name))
        yield PlanColumn(name, plan.kind, plan.layout, plan.text, splits=splits)


@lru_cache
def _common_plan(type_: pa.DataType, text: Text) -> PlanColumn:
    """The plan of a column of a `common_type`, without its name."""
    plan = _plain_column(Field("", type_), text, False)
    assert plan is not None
    return plan


def _leaf_column(
    field: Field, leaf: Leaf, text: Text, in_steps: bool, *, is_whole: bool, is_promoted: bool
) -> PlanColumn:
    """The plan of the feature of a leaf; with `is_whole`, the leaf alone is the column of its field."""
    is_adaptive = encoding_rules(leaf.encoding).adaptive
    kind, layout = (Kind.NONE, Layout.ANY) if is_adaptive else (leaf.kind, leaf.layout)
    if field.is_list_of_arrays:
        layout = Layout.LIST
    if field.empty is not None and layout is Layout.SCALAR:
        layout = Layout.ANY  # `empties_to_nulls` makes it scalar
    return PlanColumn(
        leaf.feature,
        kind,
        layout=layout,
        text=_text(leaf, text),
        required=bool(field.required) and field.default is None and is_whole,
        steps=in_steps,
        splits=is_adaptive or _takes_other_kinds(leaf, is_promoted),
    )


def _columns_along(
    field: Field, leaf: Leaf, in_steps: bool, *, inferred_from: bool
) -> dict[tuple[str, bool], PlanColumn] | None:
    """Plans of the features that a leaf cannot be decoded without; None if its companions are ignored."""
    if (source := leaf.shape_source if leaf.path else field.shape_source) is not None:
        parts = (False, True) if in_steps else (False,)
        return {(name, steps): _any_column(name, steps) for name in source.features for steps in parts}
    if reads_companions(field) or (leaf.companions and is_any_tensor(leaf.type)):
        return _companion_columns(leaf.feature, in_steps, inferred_from)
    return None


def _takes_other_kinds(leaf: Leaf, is_promoted: bool) -> bool:
    """True if values of other kinds are read, too: of decimals always, of floats where they are promoted."""
    if encoding_rules(leaf.encoding).one_value_per_cell:
        return False
    kinds = other_kinds(leaf.type if leaf.element is None else leaf.element.arrow)
    return bool(kinds) and (is_promoted or Kind.FLOAT in kinds)


def _plain_column(field: Field, text: Text, in_steps: bool) -> PlanColumn | None:
    """The feature of a column of a common type, or of lists of such a type; None for any other column."""
    kind, value = plain_kind(field.type), field.type
    layout = Layout.SCALAR if field.empty is None else Layout.ANY
    if kind is None and not in_steps and (kind := plain_list_kind(field.type)) is not None:
        layout, value = Layout.LIST, field.type.value_type
        if field.type.value_field.metadata:  # which may have an encoding
            return None
    if kind is None or field.encoding != LIST or COMPOSITE_KEY in field.metadata:
        return None
    check = text if is_text(value) else Text.NO
    return PlanColumn(
        field.feature,
        kind,
        layout=layout,
        text=check,
        required=bool(field.required) and field.default is None,
        steps=in_steps,
    )


def _read_twice(feature: str) -> SchemaError:
    return SchemaError("two columns of the schema are read from it", feature=feature)


def reads_companions(field: Field) -> bool:
    """True if the companions are read too: of raw bytes, and where only they state unknown dimensions."""
    if ShapeSource.entry_of(field.metadata) is not None:
        return False
    if field.is_common or is_composed(field.encoding) or has_struct(field.type):
        return False
    if field.part == FEATURE_LIST and not is_any_tensor(field.value):
        return False
    encoding = encoding_rules(field.encoding)
    has_unknown_shape = is_any_tensor(field.value) and (field.shape or ()).count(None) > 1
    return encoding.companions or (has_unknown_shape and not encoding.self_describing)


def _any_column(feature: str, in_steps: bool) -> PlanColumn:
    """The plan of a feature that is read whatever its feature type is."""
    return PlanColumn(feature, Kind.NONE, Layout.ANY, Text.NO, steps=in_steps)


def _companion_columns(feature: str, in_steps: bool, inferred_from: bool) -> dict[tuple[str, bool], PlanColumn]:
    """Plans of companion features, which must have their feature types if the column was `inferred_from` them.

    Else features of these names, of another type, are those of another writer: they are read, and then ignored.
    """
    shape, dtype = ShapeSource.companions(feature)
    if not inferred_from:
        return {(name, in_steps): _any_column(name, in_steps) for name in (shape, dtype)}
    return {
        (shape, False): PlanColumn(shape, Kind.INT64, Layout.LIST, Text.NO),
        (dtype, False): PlanColumn(dtype, Kind.BYTES, Layout.SCALAR, Text.NO),
    }


def _built_tree(field: Field) -> Built | None:
    """The tree of a column that is built of several features."""
    if COMPOSITE_KEY not in field.metadata:
        return None
    from tfrecord_io.columns.schema.composite import Built, composite_of

    composite = composite_of(field)
    assert composite is not None
    parts = tuple(starmap(pa.field, composite.components()))
    return Built(field.type, field.feature, 0, parts, composite=composite)


def field_layout(field: Field) -> Node | None:
    """The tree of a column that is read, as `layout_of`; its features are named as that of the field."""
    if (built := _built_tree(field)) is not None:
        return built
    with _raise_schema_errors(field):
        return layout_of(_column(field))


def field_leaves(field: Field, in_steps: bool = False) -> list[Leaf]:
    """The leaves of a field, named as its feature; of a feature list those of one step."""
    if (built := _built_tree(field)) is not None:
        return [leaf for stored in built.fields for leaf in leaves(stored)]
    kind = plain_kind(field.type)
    if kind is not None and field.encoding == LIST:
        return [Leaf(field.feature, (), type=field.type, kind=kind, layout=Layout.SCALAR)]
    column = _column(field)
    if (in_steps or field.is_list_of_arrays) and is_list_like(column.type):
        column = column.with_type(column.type.value_type)
        if t.is_struct(column.type):
            reason, advice = "a step of a feature list cannot be a struct", "make its fields feature lists"
            raise SchemaError(reason, feature=field.feature, hint=advice)
    if is_any_tensor(column.type) and not is_composed(field.encoding):
        return [_tensor_leaf(field, column.type)]
    with _raise_schema_errors(field):
        collected = column_leaves(column)
        if encoding_rules(field.encoding).adaptive:
            leaves(set_encoding(column, RAW))  # the types it may have are fewer
            return [leaf._replace(encoding=field.encoding) for leaf in collected]
    return collected


def _tensor_leaf(field: Field, type_: pa.DataType) -> Leaf:
    """The only leaf of a field of tensors, whose column, or one step of it, has this type."""
    element, shape = element_and_shape(field.tensor)
    encoding = encoding_rules(field.encoding)
    try:
        kind = encoding.kind(element)
    except ValueError as error:
        advice = 'declare it with tfr.tensor(encoding="raw")'
        raise SchemaError(str(error), feature=field.feature, hint=advice) from None
    return Leaf(
        feature=field.feature,
        path=(),
        type=type_,
        kind=kind,
        layout=encoding.layout,
        encoding=encoding.name,
        element=element,
        shape=shape,
    )


def _column(field: Field) -> pa.Field:
    """The column as handed out, with the feature's name; the metadata has the encoding, unless records decide it."""
    type_ = field.type if is_composed(field.encoding) else handed_type(field.type)
    encoding = None if encoding_rules(field.encoding).adaptive else field.encoding
    column = set_encoding(pa.field(field.feature, type_), encoding)
    of_values = field.metadata.get(EXTENSION_ENCODING_KEY)
    return column if of_values is None else set_extension_encoding(column, of_values.decode("utf-8", "replace"))


@contextmanager
def _raise_schema_errors(field: Field) -> Iterator[None]:
    """Raise SchemaError where a type cannot be stored."""
    try:
        yield
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), hint=error.advice) from error


def _text(leaf: Leaf, text: Text) -> Text:
    """The check `text` for a leaf whose values are text; none for other leaves, and for encoded text."""
    holds_text = leaf.kind is Kind.BYTES and is_text(value_type(leaf.type))
    return text if holds_text and not encoding_rules(leaf.encoding).one_value_per_cell else Text.NO
