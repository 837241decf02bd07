"""A declared schema as an engine's plan: which features, of which kind, and what to refuse."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.decode.structs import has_struct
from tfrecord_io.arrow.decode.tensor_column import tensor_leaf
from tfrecord_io.engine.contract import PlanColumn
from tfrecord_io.errors import SchemaError
from tfrecord_io.format.kinds import Kind, Layout, Text
from tfrecord_io.schema.field import Field
from tfrecord_io.schema.leaf import FEATURE_LIST, RAW, Leaf, companions, leaves, with_encoding
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.tensor_encodings import encoding_rules
from tfrecord_io.schema.tensor_types import is_any_tensor, without_permutation
from tfrecord_io.schema.types import UnsupportedType, is_list_like, value_type


@dataclass(frozen=True, slots=True)
class CompiledPlan:
    """What a decoder is to be told for a schema.

    Attributes
    ----------
    columns : tuple of PlanColumn
        One for each feature that the schema's columns are read from, and for the companions that are read along with them.
    ignored : frozenset of str
        Features that stand beside raw leaves of structs and are no columns themselves: their shape and dtype companions.
    companions : frozenset of str
        Features in `columns` that are read along only: the shapes and dtypes of tensors and of other raw columns.
    """

    columns: tuple[PlanColumn, ...]
    ignored: frozenset[str]
    companions: frozenset[str] = frozenset()

    @property
    def asked_for(self) -> frozenset[str]:
        """The features that columns are read from."""
        return frozenset(column.name for column in self.columns) - self.companions


def plan_columns(
    schema: Schema | pa.Schema, *, text: Text = Text.UTF8, steps: Collection[str] = (), folded: Collection[str] = ()
) -> CompiledPlan:
    """Compile a declared schema.

    Parameters
    ----------
    text : Text
        What string columns ask: UTF8 where the schema was declared, STRICT where it was inferred.
    steps : collection of str
        Features that are feature lists though their columns are plain lists (one value a step).
    folded : collection of str
        Columns that were inferred from their companions: those must be of the kinds that we write.

    Raises
    ------
    SchemaError
        A type cannot be stored in a TFRecord, or two columns are read from one feature.
    """
    columns: dict[str, PlanColumn] = {}
    ignored: set[str] = set()
    beside: dict[str, PlanColumn] = {}
    for field in Schema.parse(schema):
        in_steps = field.part == FEATURE_LIST or field.feature in steps
        for leaf in field_leaves(field, in_steps):
            if leaf.feature in columns:
                raise SchemaError("two columns of the schema are read from it", feature=leaf.feature)
            required = field.required and field.default is None and not leaf.path
            is_adaptive = encoding_rules(leaf.encoding).adaptive
            kind, layout = (Kind.NONE, Layout.ANY) if is_adaptive else (leaf.kind, leaf.layout)
            columns[leaf.feature] = PlanColumn(leaf.feature, kind, layout, _text(leaf, text), required, in_steps)
            if reads_companions(field) or (leaf.companions and is_any_tensor(leaf.type)):
                beside |= _companion_columns(leaf.feature, in_steps, ours=field.column in folded)
            else:
                ignored.update(leaf.companions)
    read_along = frozenset(beside.keys() - columns.keys())
    along = [column for name, column in beside.items() if name in read_along]
    return CompiledPlan((*columns.values(), *along), frozenset(ignored - columns.keys() - read_along), read_along)


def reads_companions(field: Field) -> bool:
    """Whether the features with shape and dtype are read along: of raw bytes, and where only they say how long free axes are."""
    if has_struct(field.type) or (field.part == FEATURE_LIST and not is_any_tensor(field.value)):
        return False
    encoding = encoding_rules(field.encoding)
    has_unknown_shape = is_any_tensor(field.value) and (field.shape or ()).count(None) > 1
    return encoding.companions or (has_unknown_shape and not encoding.self_describing)


def _companion_columns(feature: str, in_steps: bool, ours: bool) -> dict[str, PlanColumn]:
    """What others have put under the names of our companions may be anything, and then says nothing."""
    shape, dtype = companions(feature)
    if not ours:
        return {name: PlanColumn(name, Kind.NONE, Layout.ANY, Text.NO, steps=in_steps) for name in (shape, dtype)}
    return {
        shape: PlanColumn(shape, Kind.INT64, Layout.LIST, Text.NO),
        dtype: PlanColumn(dtype, Kind.BYTES, Layout.SCALAR, Text.NO),
    }


def field_leaves(field: Field, in_steps: bool = False) -> list[Leaf]:
    """The leaves of a field, named as its feature; of a feature list those of one step."""
    type_ = handed_type(field.type)
    if in_steps and is_list_like(type_):
        type_ = type_.value_type
        if t.is_struct(type_):
            raise SchemaError(
                "a step of a feature list is no struct", feature=field.feature, advice="make its fields feature lists"
            )
    if is_any_tensor(type_):
        return [tensor_leaf(replace(field, type=handed_type(field.type)), type_)]
    adaptive = encoding_rules(field.encoding).adaptive
    column = pa.field(field.feature, type_)
    try:
        found = leaves(with_encoding(column, None if adaptive else field.encoding))
        if adaptive:
            leaves(with_encoding(column, RAW))  # the types it may have are fewer
    except UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), advice=error.advice) from error
    return [replace(leaf, encoding=field.encoding) for leaf in found] if adaptive else found


def handed_type(type_: pa.DataType) -> pa.DataType:
    """The type a column is handed over with: `type_` without views, run-ends and permuted axes, which too few consumers know."""
    if is_any_tensor(type_):
        return without_permutation(type_)
    if is_list_like(type_) and is_any_tensor(type_.value_type):
        return pa.list_(type_.value_field.with_type(without_permutation(type_.value_type)))
    if t.is_run_end_encoded(type_):
        return handed_type(type_.value_type)
    if not any(_is_view(each) for each in _within(type_)):
        return type_
    if t.is_struct(type_):
        return pa.struct([child.with_type(handed_type(child.type)) for child in type_])
    if is_list_like(type_):
        child = type_.value_field.with_type(handed_type(type_.value_type))
        if t.is_fixed_size_list(type_):
            return pa.list_(child, type_.list_size)
        return pa.large_list(child) if t.is_large_list(type_) or t.is_large_list_view(type_) else pa.list_(child)
    if t.is_dictionary(type_):
        return pa.dictionary(type_.index_type, handed_type(type_.value_type), type_.ordered)
    return value_type(type_)


def _is_view(type_: pa.DataType) -> bool:
    views = (t.is_string_view, t.is_binary_view, t.is_list_view, t.is_large_list_view, t.is_run_end_encoded)
    return any(is_one(type_) for is_one in views)


def _within(type_: pa.DataType) -> Iterator[pa.DataType]:
    """The type and all those nested in it."""
    yield type_
    if t.is_dictionary(type_):
        yield type_.value_type
    for at in range(type_.num_fields if t.is_nested(type_) else 0):
        yield from _within(type_.field(at).type)


def _text(leaf: Leaf, text: Text) -> Text:
    value = value_type(leaf.type)
    is_text = leaf.kind is Kind.BYTES and (t.is_string(value) or t.is_large_string(value))
    return text if is_text and not encoding_rules(leaf.encoding).one_value_per_cell else Text.NO
