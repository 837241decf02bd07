"""A TFX schema's message as fields."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.composite import Composite, assembly_of
from tfrecord_io.schema.field import CONTEXT, FEATURE_LIST, Field
from tfrecord_io.schema.field_makers import tensor
from tfrecord_io.schema.formats.json import schema_of
from tfrecord_io.schema.formats.tfx_messages import (
    BYTES,
    CATEGORICAL_YES,
    FLOAT,
    INT,
    STRUCT,
    TIME_UNITS,
    UNIX_DAYS,
    UNUSED_STAGES,
)
from tfrecord_io.schema.formats.tfx_tensors import SPARSE_KEY, representation_of
from tfrecord_io.schema.formats.tfx_write import INTEGERS, feature_of
from tfrecord_io.schema.shapes import Shape
from tfrecord_io.schema.tensor_types import is_any_tensor, value_type_of
from tfrecord_io.schema.type_names import type_name
from tfrecord_io.schema.types import is_number

SEQUENCE = "##SEQUENCE##"  # the STRUCT feature that tfx_bsl puts feature lists into
TAG = "tfrecord_io "  # an annotation's tag that starts so holds the field, where TFX's words do not say all of it

_Found = dict[tuple[str, str], Field]  # by part and feature
_TEXT_DOMAINS = {"string_domain", "natural_language_domain", "url_domain", "mid_domain", "time_domain", "bool_domain"}


class Import:
    """The fields of one message.

    Parameters
    ----------
    message : SchemaMessage
    group : str
        Which tensor_representation_group counts.
    """

    def __init__(self, message: Any, group: str = "") -> None:
        self._message = message
        self._domains = {d.name: ("string_domain", d) for d in message.string_domain}
        self._domains.update({d.name: ("int_domain", d) for d in message.int_domain})
        self._domains.update({d.name: ("float_domain", d) for d in message.float_domain})
        self._group = group

    def fields(self) -> list[Field]:
        """One for each feature that is in use, in the order of the message.

        Raises
        ------
        SchemaError
            A feature is described in a way that no record can be.
        """
        found: _Found = {}
        for feature in self._message.feature:
            for made in self._of_feature(feature):
                found[made.part, made.feature] = made
        assembled = [assembly for made in found.values() if (assembly := assembly_of(made)) is not None]
        self._represent(found)
        for sparse in self._message.sparse_feature:
            if _in_use(sparse):
                names = [each.name for each in sparse.index_feature]
                self._sparse(found, sparse.name, names, sparse.value_feature.name, sparse.dense_shape, sparse.is_sorted)
        for assembly in assembled:
            for feature_name, _ in list(assembly.parts())[1:]:
                found.pop((CONTEXT, feature_name), None)
        return list(found.values())

    def _of_feature(self, feature: Any) -> Iterator[Field]:
        if not _in_use(feature):
            return
        if feature.type == STRUCT and feature.name == SEQUENCE:
            for child in feature.struct_domain.feature:
                if _in_use(child):
                    yield self.field(child, FEATURE_LIST)
        else:
            yield self.field(feature)

    def field(self, feature: Any, part: str = CONTEXT) -> Field:
        """The field of a feature; in the part FEATURE_LIST a feature list, of which the message describes the steps."""
        return _tagged(feature, part) or self._by_words(feature, part)

    def _by_words(self, feature: Any, part: str) -> Field:
        required = bool(feature.type) and (feature.presence.min_fraction >= 1 or feature.group_presence.required)
        if feature.type == STRUCT:
            if part == FEATURE_LIST:
                raise SchemaError("a step of a feature list is no STRUCT", feature=feature.name)
            children = [self.field(child) for child in feature.struct_domain.feature if _in_use(child)]
            return Field(feature.name, pa.struct([(child.column, child.type) for child in children]))
        value = self._value_type(feature)
        if part == FEATURE_LIST:
            return Field(feature.name, pa.list_(_step_type(feature, value)), required=required, part=part)
        if feature.HasField("shape"):
            return replace(_shaped(value, _sizes(feature.shape)), required=required).named(feature.name)
        return Field(feature.name, _counted(value, _count(feature)), required=required)

    # ---- types

    def _value_type(self, feature: Any) -> pa.DataType:
        which = feature.WhichOneof("domain_info")
        domain: Any = None if which is None else getattr(feature, which)
        if which == "domain":
            which, domain = self._domains.get(feature.domain, (None, None))
        if feature.type == INT:
            return _integer(which, domain)
        if feature.type == FLOAT:
            return pa.float32()
        if feature.type != BYTES:
            return pa.null()
        if which == "string_domain" and domain.is_categorical == CATEGORICAL_YES:
            return pa.dictionary(pa.int32(), pa.string())
        return pa.string() if which in _TEXT_DOMAINS else pa.binary()

    # ---- tensors

    def _represent(self, found: _Found) -> None:
        """Let the tensor representations say what the columns are; a feature of several tensors is the first one's."""
        group = self._message.tensor_representation_group
        if self._group not in group:
            if self._group:
                raise SchemaError(
                    f"the schema has no tensor_representation_group {self._group!r}", expected=sorted(group)
                )
            return
        claimed: set[tuple[str, str]] = set()
        representations: Mapping[str, Any] = group[self._group].tensor_representation
        for name in sorted(representations):
            which = representations[name].WhichOneof("kind")
            if which is None:
                continue
            kind = getattr(representations[name], which)
            if which == "sparse_tensor":
                names = list(kind.index_column_names)
                self._sparse(found, name, names, kind.value_column_name, kind.dense_shape, kind.already_sorted)
                continue
            path = list(kind.feature_path.step) if which == "ragged_tensor" else [kind.column_name]
            part, path = (FEATURE_LIST, path[1:]) if path[:1] == [SEQUENCE] else (CONTEXT, path)
            key = (part, "/".join(path))
            if key not in found:
                raise SchemaError(
                    f"the tensor {name!r} is made of a feature that the schema does not have", feature=key[1]
                )
            if part == FEATURE_LIST and kind.partition:
                raise SchemaError(
                    f"the tensor {name!r} cuts the steps of a feature list into rows, which is not read", feature=key[1]
                )
            if key in claimed:
                continue
            claimed.add(key)
            found[key] = replace(self._reshaped(found[key], representations[name]), column=name, feature=key[1])
            for used in _used(kind) if which == "ragged_tensor" else ():
                found.pop((CONTEXT, used), None)

    @staticmethod
    def _reshaped(field: Field, representation: Any) -> Field:
        known = representation_of(field)  # of a field that stood in a tag
        if field.part == FEATURE_LIST or (
            known is not None and known[1] == representation
        ):  # feature lists are ragged as they are
            return field
        which = representation.WhichOneof("kind")
        return _RESHAPE[which](field, getattr(representation, which))

    @staticmethod
    def _sparse(found: _Found, tensor_name: str, indices: list[str], values: str, shape: Any, is_sorted: bool) -> None:
        """Indices and values are lists; what makes a sparse tensor of them goes along with the values."""
        for name in (*indices, values):
            made = found.get((CONTEXT, name))
            if made is None:
                raise SchemaError(
                    f"the sparse tensor {tensor_name!r} is made of it, and the schema does not have it", feature=name
                )
            found[CONTEXT, name] = _as_list(made)
        made = found[CONTEXT, values]
        note = {"name": tensor_name, "index": indices, "shape": list(_sizes(shape)), "sorted": is_sorted}
        found[CONTEXT, values] = replace(made, metadata={**made.metadata, SPARSE_KEY: json.dumps(note).encode()})


def _in_use(feature: Any) -> bool:
    return not feature.deprecated and feature.lifecycle_stage not in UNUSED_STAGES


def _sizes(shape: Any) -> Shape:
    return tuple(None if dim.size < 0 else dim.size for dim in shape.dim)


def _integer(which: str | None, domain: Any) -> pa.DataType:
    if which == "bool_domain":
        return pa.bool_()
    if which == "int_domain" and domain.HasField("min") and domain.HasField("max"):
        return INTEGERS.get((domain.min, domain.max), pa.int64())
    if which == "time_domain" and domain.integer_format == UNIX_DAYS:
        return pa.date32()
    if which == "time_domain" and domain.integer_format in TIME_UNITS:
        return pa.timestamp(TIME_UNITS[domain.integer_format])
    return pa.int64()


def _count(feature: Any) -> int | None:
    """How many values each record has, if that is one number."""
    counts = list(feature.value_counts.value_count)
    return _one(feature.value_count) if not counts else _one(counts[0]) if len(counts) == 1 else None


def _one(count: Any) -> int | None:
    return count.min if count.min == count.max and count.min > 0 else None


def _counted(value: pa.DataType, count: int | None) -> pa.DataType:
    if count is None:
        return pa.null() if t.is_null(value) else pa.list_(value)
    return value if count == 1 else pa.list_(value, count)


def _step_type(feature: Any, value: pa.DataType) -> pa.DataType:
    """Of steps only the second of value_counts speaks: TFX's tools do not agree of what a value_count alone does."""
    counts = list(feature.value_counts.value_count)
    return _counted(value, _one(counts[1])) if len(counts) == 2 else pa.list_(value)


def _shaped(value: pa.DataType, shape: Shape) -> Field:
    if not shape or t.is_null(value):
        return Field("", value)
    if len(shape) == 1:
        return Field("", pa.list_(value) if shape[0] is None else pa.list_(value, shape[0]))
    if is_number(value) or t.is_binary(value) or t.is_string(value):
        return tensor(value, shape, encoding="list")
    whole = 1
    for size in shape:
        whole *= size or 0
    return Field("", pa.list_(value) if None in shape else pa.list_(value, whole), shape=shape)


def _value_of(field: Field) -> pa.DataType:
    """Type of one value of a context feature."""
    type_ = field.type
    if is_any_tensor(type_):
        return value_type_of(type_)
    if t.is_list(type_) or t.is_fixed_size_list(type_):
        return type_.value_type
    return type_


def _as_list(field: Field, _: Any = None) -> Field:
    type_ = pa.list_(_value_of(field))
    return Field(field.column, type_, field.feature, required=field.required, metadata=field.metadata, part=CONTEXT)


def _as_dense(field: Field, kind: Any) -> Field:
    """TensorFlow's FixedLenFeature: absent is an error, unless there is a default."""
    shaped = _shaped(_value_of(field), _sizes(kind.shape))
    which = kind.default_value.WhichOneof("kind")
    if which is None:
        return replace(shaped, required=True, metadata=field.metadata)
    default = getattr(kind.default_value, which)
    if which == "bytes_value" and not t.is_binary(_value_of(field)):
        default = default.decode("utf-8", "replace")
    if t.is_boolean(_value_of(field)):
        default = bool(default)
    return replace(shaped, default=default, required=field.required, metadata=field.metadata)


def _as_ragged(field: Field, kind: Any) -> Field:
    if not kind.partition:
        return _as_list(field)
    sizes: list[int | None] = [None]
    lengths: list[str | None] = []
    for partition in kind.partition:
        uniform = partition.WhichOneof("kind") == "uniform_row_length"
        sizes.append(partition.uniform_row_length if uniform else None)
        lengths.append(None if uniform else partition.row_length)
    made = Composite(field.feature, type_name(_value_of(field)), sequence=tuple(sizes), lengths=tuple(lengths))
    return made.field(field.column, required=field.required)


_RESHAPE: dict[str, Callable[[Field, Any], Field]] = {
    "dense_tensor": _as_dense,
    "varlen_sparse_tensor": _as_list,
    "ragged_tensor": _as_ragged,
}


def _used(kind: Any) -> list[str]:
    return [partition.row_length for partition in kind.partition if partition.WhichOneof("kind") == "row_length"]


def _tagged(feature: Any, part: str) -> Field | None:
    """The field in the feature's tag, if the feature still is what that field is written as."""
    for tag in feature.annotation.tag:
        if not tag.startswith(TAG):
            continue
        try:
            (made,) = schema_of(tag.removeprefix(TAG))
            bare = type(feature)()
            bare.CopyFrom(feature)
            bare.ClearField("annotation")
            bare.DiscardUnknownFields()
            if made.part == part and feature_of(made) == bare:
                return made
        except (SchemaError, ValueError):
            continue
    return None
