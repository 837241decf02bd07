"""Plan a write: which features the columns of a schema become, and in which encoding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.base import printable
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns.arrow.encode.lossless_values import Rounding
from tfrecord_io.columns.schema.column_features import (
    LIST,
    OF_FLOAT64,
    RAW,
    Leaf,
    Node,
    column_leaves,
    encoding_of,
    extension_encoding_of,
    is_list_of_arrays,
    is_marked_feature_list,
    is_nested,
    layout_of,
    leaves,
    needs_nesting,
    nested_restored,
    nested_restored_field,
    set_encoding,
    set_extension_encoding,
    step_field,
    union_names,
    unmark_feature_list,
)
from tfrecord_io.columns.schema.tensor_types import (
    JSON,
    NESTED,
    TENSOR_ENCODINGS,
    encoding_rules,
    image_encodings,
    is_any_tensor,
    no_column_to_encode,
)
from tfrecord_io.columns.schema.types import (
    UnsupportedType,
    drop_run_ends,
    has_dictionary,
    is_list_like,
    map_fields,
    plain_kind,
    refuse_deep,
    types_within,
    value_type,
)
from tfrecord_io.errors import EncodeError


class WritePlan(NamedTuple):
    """A schema compiled for writing."""

    schema: pa.Schema  # of the input; the metadata of each field states its encoding, see `embedded_schema`
    columns: tuple[tuple[Leaf, ...], ...]  # the leaves of each column, in order; of a feature list those of one step
    in_steps: tuple[bool, ...]  # which columns are feature lists, or lists of arrays
    trees: tuple[Node | None, ...]  # of the columns that are stored as several features, or as JSON
    float64: str | None  # for float64 values that are written as float32: None, "round" or "error"
    rounding: Rounding  # filled by `encode_columns`
    checked: dict[str, pa.Array]  # by `dictionaries`, of each feature

    @property
    def leaves(self) -> Iterator[Leaf]:
        """All leaves, in the order of the features."""
        return (leaf for column in self.columns for leaf in column)

    @property
    def ordered(self) -> set[str]:
        """The features of ordered categories."""
        return {leaf.feature for leaf in self.leaves if has_dictionary(leaf.type, ordered=True)}


def plan_writing(
    schema: pa.Schema,
    *,
    column_encoding: Mapping[str, str] | None = None,
    float64: str | None = None,
    sequence: bool = False,
) -> WritePlan:
    """Decide how each column of the batches to come is written.

    A field that was read from raw bytes says so in its metadata and is written raw again. `column_encoding` has tensor
    encodings by column or feature name; the name of a struct column means all of its children, and tensors are raw by
    default. `float64`, None, "round", "error" or "raw": the last writes every float64 column raw for which neither
    `column_encoding` nor its metadata says otherwise. In a `sequence`, of SequenceExamples, lists of lists, and lists
    whose field says so, become feature lists.

    EncodeError if a column cannot be stored in a TFRecord, or two columns become the same feature; FeatureNotFoundError
    if `column_encoding` names a column that does not exist.
    """
    asked = dict(column_encoding or {})
    if asked and (images := image_encodings(asked)):
        from tfrecord_io.columns.arrow.image_encoding import declare_images

        schema = declare_images(schema, images)
        for column in images:
            del asked[column]
    try:
        fields = [_annotate_column(column, asked, float64 == RAW, sequence) for column in schema]
        if asked:
            raise no_column_to_encode(next(iter(asked)))
        planned = [_plan_column(column, sequence) for column in fields]
    except UnsupportedType as error:
        raise EncodeError(error.reason, feature=error.feature, hint=error.advice) from None
    except UnicodeDecodeError as error:
        raise EncodeError("a column's name is not UTF-8", hint="rename it") from error
    columns, in_steps, trees = zip(*planned, strict=True) if planned else ((), (), ())
    _refuse_collisions(fields, columns)
    annotated = pa.schema(fields, metadata=schema.metadata)
    float64 = None if float64 == RAW else float64
    return WritePlan(annotated, columns, in_steps, trees, float64=float64, rounding=Rounding(), checked={})


def _annotate_column(column: pa.Field, asked: dict[str, str], raw_float64: bool, sequence: bool) -> pa.Field:
    """Put the encodings into the metadata of a column; a column that plain features cannot store becomes nested."""
    annotate = partial(_annotate, feature=column.name, asked=asked, above=None, raw_float64=raw_float64)
    if plain_kind(column.type) is not None and column.name not in asked and not column.metadata:
        return annotate(column) if raw_float64 else column
    refuse_deep(column.name, column.type)
    form = asked.get(column.name) or encoding_of(column)
    if form == JSON:
        asked.pop(column.name, None)
        return set_encoding(unmark_feature_list(column), JSON)
    if form != NESTED and not needs_nesting(column, in_steps=sequence):
        annotated = annotate(column)
        if not (_has_extension(column) and _has_encoding(annotated)):
            return annotated
        column, form = annotated, encoding_of(annotated)
    elif form == NESTED:
        asked.pop(column.name, None)
        column, form = unmark_feature_list(column), None
    if sequence and is_marked_feature_list(column):
        reason = f"a feature list of type {column.type} cannot be stored in a TFRecord"
        raise UnsupportedType(column.name, reason, "declare it as a list, which becomes features of the context")
    column = set_encoding(column, form)
    bare = column.with_type(drop_run_ends(column.type))
    if not t.is_nested(bare.type) and not _has_extension(bare) and not needs_nesting(bare):  # which has no parts
        return annotate(bare)
    annotated = annotate(nested_restored_field(column), nested=True)
    if (encoding := encoding_of(annotated)) is not None:  # a dictionary has no field for that of its values
        reason = f'the encoding "{encoding}" does not store values of type {column.type}'
        raise UnsupportedType(column.name, reason, f"cast the column to {nested_restored(column.type)}")
    return set_encoding(annotated, NESTED)


def _plan_column(column: pa.Field, sequence: bool) -> tuple[tuple[Leaf, ...], bool, Node | None]:
    """The leaves of a column, whether it is a feature list or a list of arrays, and its tree: see `WritePlan`."""
    if plain_kind(column.type) is not None and not column.metadata:
        return (*leaves(column),), False, None
    if not sequence and is_marked_feature_list(column):
        text = "the column is declared as a feature list, which an Example does not have"
        advice = 'write it with record_type="sequence_example", or declare it as a list'
        advice_cli = "write it with --record-type sequence_example, or declare it as a list"
        raise EncodeError(text, feature=column.name, hint=advice, hint_cli=advice_cli)
    may_have_steps = sequence or is_list_of_arrays(column)
    in_steps = may_have_steps and not is_nested(column) and step_field(column) is not None
    tree = None if in_steps else layout_of(column)
    return (*column_leaves(column, in_steps=may_have_steps),), in_steps, tree


def _annotate(
    field: pa.Field, feature: str, asked: dict[str, str], above: str | None, raw_float64: bool, *, nested: bool = False
) -> pa.Field:
    """Put the encoding that the caller, the metadata or a type around asks for into the metadata of the leaves.

    Leaves are values, also inside lists, where a column is `nested`, else whole lists of them.
    """
    encoding = asked.pop(feature, None)
    if encoding in (NESTED, JSON):
        reason = f'"{encoding}" is an encoding of columns, not of their parts'
        raise EncodeError(
            reason,
            feature=feature,
            hint="name the whole column in column_encoding=",
            hint_cli="name the whole column in --column-encoding",
        )
    encoding = encoding or encoding_of(field) or above
    type_ = field.type
    below = partial(_annotate, asked=asked, above=encoding, raw_float64=raw_float64, nested=nested)
    if nested and _is_extension(field):  # a type whose parts have no metadata
        has_doubles = raw_float64 and any(map(t.is_float64, types_within(type_, storage=True)))
        of_doubles = OF_FLOAT64 + RAW if has_doubles else None
        encoding = encoding or extension_encoding_of(field) or of_doubles
        return set_extension_encoding(set_encoding(field, None), encoding)
    if is_list_like(type_) and (nested or t.is_struct(type_.value_type)):
        type_ = map_fields(type_, partial(below, feature=feature))
    elif t.is_struct(type_):
        type_ = map_fields(type_, lambda child: below(child, f"{feature}/{child.name}"))
    elif nested and t.is_dictionary(type_) and t.is_nested(type_.value_type):
        values = below(field.with_type(type_.value_type), feature)
        type_ = pa.dictionary(type_.index_type, values.type, type_.ordered)
    elif nested and (t.is_map(type_) or t.is_union(type_)):
        names = iter(("key", "value") if t.is_map(type_) else union_names(type_))
        type_ = map_fields(type_, lambda child: below(child, f"{feature}/{next(names)}"))
    elif t.is_null(value_type(type_)):  # of which nothing is written
        return set_encoding(field, None)
    else:
        holds_tensors = not nested and _holds_tensors(type_)
        if encoding is None:
            source = ShapeSource.from_metadata(field.metadata, feature) if holds_tensors else None
            if source is not None and source.encoding == LIST:
                return set_encoding(field, None)
            encoding = RAW if holds_tensors or (raw_float64 and t.is_float64(value_type(type_))) else None
        elif holds_tensors and TENSOR_ENCODINGS.has(encoding) and encoding_rules(encoding).adaptive:
            encoding = RAW
        return set_encoding(field, encoding)
    return set_encoding(field.with_type(type_), None)


def _is_extension(field: pa.Field) -> bool:
    if isinstance(field.type, pa.BaseExtensionType) and not is_any_tensor(field.type):
        return True
    if not field.metadata:
        return False
    from tfrecord_io.columns.schema.extension_types import stated_extension

    return stated_extension(field) is not None


def _has_extension(column: pa.Field) -> bool:
    """True if a column or a part has an extension type, or metadata that names one; tensors do not count."""
    if plain_kind(column.type) is not None and not column.metadata:
        return False
    from tfrecord_io.columns.schema import extension_types

    types = (part for part in types_within(column.type) if isinstance(part, pa.BaseExtensionType))
    return any(not is_any_tensor(part) for part in types) or bool(extension_types.stated_extensions(column))


def _has_encoding(field: pa.Field) -> bool:
    """True if a column, or a part of it, has an encoding in its metadata."""
    type_ = field.type
    parts = (type_.field(at) for at in range(type_.num_fields if t.is_nested(type_) else 0))
    return encoding_of(field) is not None or any(map(_has_encoding, parts))


def _holds_tensors(type_: pa.DataType) -> bool:
    """True if the values are tensors: of a column, or of the steps of a feature list."""
    while is_list_like(type_) or t.is_run_end_encoded(type_):
        type_ = type_.value_type
    return is_any_tensor(type_)


def _refuse_collisions(fields: list[pa.Field], columns: tuple[tuple[Leaf, ...], ...]) -> None:
    """Refuse two columns that become one feature, and a companion with the name of a feature that states sizes.

    A column may have the name of such a feature: its values are compared with the sizes.
    """
    owners, stated, companions = dict[str, str](), dict[str, str](), set[str]()
    for column, parts in zip(fields, columns, strict=True):
        for leaf in parts:
            leaf_companions = leaf.companions
            for name in (leaf.feature, *leaf_companions):
                if name in owners:
                    first, second = printable(owners[name]), printable(column.name)
                    reason = f"the columns '{first}' and '{second}' would both be written as this feature"
                    raise EncodeError(reason, feature=name, hint="rename one of them")
                owners[name] = column.name
            companions.update(leaf_companions)
            for name in () if leaf.shape_source is None else leaf.shape_source.features:
                stated.setdefault(name, column.name)
    for name, array in stated.items():
        if name in companions:
            reason = f"it states the shape of '{printable(array)}', and is a companion of '{printable(owners[name])}'"
            raise EncodeError(reason, feature=name, hint="rename one of the columns")
