"""Schemas of TFX (TensorFlow Data Validation's ``schema.pbtxt``), read and written without tensorflow_metadata.

How TFX's descriptions are converted:

========================================  ==============================================================================
TFX                                       this package
========================================  ==============================================================================
type INT, FLOAT, BYTES, none              int64, float, binary, null
bool_domain, of INT                       bool
int_domain                                an integer type where the range is exactly that type's, else int64
time_domain with integer_format           timestamp of that unit, date32 for UNIX_DAYS
string, natural language, URL, MID …      string; a categorical string_domain (CATEGORICAL_YES) a dictionary of strings
domains                                   the values of a domain are not enforced: TFX only reports other values
shape                                     ``{}`` a value, one axis a fixed_size_list, more a tensor
value_count, value_counts                 min = max = 1 a value, min = max a fixed_size_list, else a list
presence                                  nothing: a feature that is absent or has no type is null, as in tfx_bsl
STRUCT ``##SEQUENCE##``, or the only one  feature lists: list<list<T>>, or list<T> if the second value_count is 1;
                                          ``##SEQUENCE##.x`` is the column of a list x if the context has an x too
other STRUCTs                             a struct column, read from ``outer/inner``
deprecated, lifecycle stages not in use   left out, as tfx_bsl does
tensor_representation_group               dense: shape, and a default or required; varlen: list; ragged: nested lists;
                                          columns are named after the tensors
sparse_feature, sparse tensors            the features of indices and values, as lists
========================================  ==============================================================================

Writing is the reverse. What TFX cannot describe (images, text that is not categorical, int16 in a tensor, …) is written
to an annotation's tag, which is used as long as the feature is as it was written; other programs ignore it.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pyarrow as pa
from google.protobuf import text_format
from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.message import Message
from pyarrow import types as t

from tfrecord_io import Schema, tensor
from tfrecord_io.base import StorageOptions
from tfrecord_io.columns import Column, Composite, ImageForm, SparseColumn
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import Options
from tfrecord_io.plugins.tensorflow.tfx_messages import (
    BYTES,
    CATEGORICAL_YES,
    FLOAT,
    INT,
    STRUCT,
    TIME_UNITS,
    UNIX_DAYS,
    UNUSED_STAGES,
    FeatureMessage,
    RepresentationMessage,
    SchemaMessage,
)
from tfrecord_io.store import Directory
from tfrecord_io.typing import Field, StorageLike

_BINARY_BYTES = bytes(set(range(32)) - set(b"\t\n\v\f\r"))  # in a message's tags and lengths, never in its text
SEQUENCE = "##SEQUENCE##"  # the STRUCT feature that contains feature lists in tfx_bsl
TAG = "tfrecord_io "  # an annotation's tag with this prefix holds the field, where TFX cannot describe all of it

_Fields = dict[tuple[str, str], Field]  # by part and feature
_TEXT_DOMAINS = {"string_domain", "natural_language_domain", "url_domain", "mid_domain", "time_domain", "bool_domain"}


def from_tfx(
    source: str | bytes | os.PathLike[str],
    tensor_representation_group: str,
    sequence_feature: str | None,
    storage_options: StorageLike | None,
) -> list[Field]:
    """The fields that a TFX schema describes; see `Schema.from_tfx`."""
    path = _path_of(source)
    try:
        message = read_message(source, storage_options)
        fields = TfxSchemaReader(message, tensor_representation_group, sequence_feature).fields()
        Schema(fields)
        return fields
    except SchemaError as error:
        error.path = path
        raise


def read_message(source: str | bytes | os.PathLike[str], storage_options: StorageLike | None = None) -> Any:
    """The message of a TFX schema: of its content, or of the file of a path; SchemaError if it is none."""
    path = _path_of(source)
    if path is not None:
        try:
            return _parse(_read(path, Options(storage_options=storage_options).storage))
        except SchemaError as error:
            error.path = path
            raise
    return _parse(source.encode() if isinstance(source, str) else bytes(cast(bytes, source)))


def _path_of(source: str | bytes | os.PathLike[str]) -> str | None:
    """The path of a schema; None of its content."""
    if isinstance(source, bytes | bytearray | memoryview):
        return None
    is_content = isinstance(source, str) and ("{" in source or not source.strip())
    return None if is_content else os.fspath(source)


def _read(path: str, storage: StorageOptions) -> bytes:
    head, _, name = path.replace(os.sep, "/").rpartition("/")
    content = Directory(head or ("/" if path.startswith("/") else "."), storage).read(name)
    if content is None:
        raise FileNotFoundError(2, "no such file", path)
    return content


def _parse(content: bytes) -> Any:
    message = SchemaMessage()
    try:
        if content.translate(None, _BINARY_BYTES) == content:
            text_format.Parse(content.decode(), message, allow_unknown_extension=True, allow_unknown_field=True)
        else:
            message.ParseFromString(content)
    except (text_format.ParseError, ProtobufError, UnicodeDecodeError, RecursionError) as error:
        raise SchemaError(f"it is not a TFX schema ({error})") from error
    if not _is_text_valid(message):
        raise SchemaError("it is not a TFX schema (a name or another text in it is not UTF-8)")
    return message


def _is_text_valid(message: Any) -> bool:
    """True if all strings of a message are UTF-8, as parsers of proto2 do not check."""
    try:
        for field, value in message.ListFields():
            is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
            single = isinstance(value, Message | str | bytes | int | float)
            values = [value] if single else [*value, *value.values()] if is_map else value
            for item in values:
                if isinstance(item, bytes):
                    if field.type != field.TYPE_BYTES:
                        return False
                elif isinstance(item, Message) and not _is_text_valid(item):
                    return False
    except UnicodeDecodeError:
        return False
    return True


def to_tfx(fields: Iterable[Field]) -> str:
    """A schema of these fields as the text of a ``schema.pbtxt``; see `Schema.to_tfx`."""
    message = SchemaMessage()
    for column in fields:
        for field in _flat(column):
            single = SchemaMessage()  # of this feature, and of its tensor if made of it alone
            _add_feature(field, single)
            _add_representation(field, single, with_sparse=False)
            target = _add_feature(field, message)
            if ImageForm.KEY in field.metadata or TfxSchemaReader(single).fields() != [field]:
                target.annotation.tag.append(TAG + Schema([field]).to_json(None))
            _add_components(field, message)
            _add_representation(field, message)
    text = text_format.MessageToString(message, as_utf8=True)
    return "".join(c if c.isprintable() or c == "\n" else "".join(f"\\{byte:03o}" for byte in c.encode()) for c in text)


def _add_feature(field: Field, message: Any) -> Any:
    """Add the feature to the message, or to its ``##SEQUENCE##``; returns it."""
    target = message.feature
    if field.part == Column.FEATURE_LIST:
        steps = next((f for f in message.feature if f.name == SEQUENCE and f.type == STRUCT), None)
        target = (steps or message.feature.add(name=SEQUENCE, type=STRUCT)).struct_domain.feature
    added = target.add()
    added.CopyFrom(feature_message(field))
    return added


def _add_representation(field: Field, message: Any, *, with_sparse: bool = True) -> None:
    tensor = representation_of(field)
    if tensor is not None and (with_sparse or tensor[1].WhichOneof("kind") != "sparse_tensor"):
        message.tensor_representation_group[""].tensor_representation[tensor[0]].CopyFrom(tensor[1])


def _flat(field: Field) -> Iterator[Field]:
    """The field, or for a struct or a list of structs a field for each leaf, as it is stored."""
    if field.encoding in (Column.NESTED, Column.JSON):
        yield field
        return
    if Column(field.type).is_list and t.is_struct(field.type.value_type):
        yield from map(_stored_field, Column(field.to_arrow().with_name(field.feature)).leaves)
        return
    if not t.is_struct(field.type):
        yield field
        return
    for child in field.type:
        part = Field.from_arrow(child.with_nullable(True))  # a struct that is null has none of its fields
        names = f"{field.column}/{child.name}", f"{field.feature}/{child.name}"
        yield from _flat(replace(part, column=names[0], feature=names[1]))


def _add_components(field: Field, message: Any) -> None:
    """Add the features of a composite or nested column other than the first."""
    for component in _components(field)[1:]:
        message.feature.add().CopyFrom(feature_message(component))


def _components(field: Field) -> list[Field]:
    """The features of a composite or nested column as plain fields, a field for each; none of other columns."""
    if field.encoding == Column.NESTED:
        return [_stored_field(part.leaf) for part in Column(field.to_arrow().with_name(field.feature)).nested_leaves]
    composite = Composite.of(field)
    return [] if composite is None else [Field(feature, type_) for feature, type_ in composite.components()]


def _stored_field(leaf: Any) -> Field:
    """The field of a feature that a part of a column is written as."""
    is_plain = leaf.encoding == Column.LIST
    return Field(leaf.feature, leaf.type if is_plain else pa.list_(pa.binary()), part=Column.CONTEXT)


class TfxSchemaReader:
    """Converts one SchemaMessage to fields.

    `group` is the tensor_representation_group to use, `sequence_feature` the STRUCT that contains the feature lists, as
    in `Schema.from_tfx`.
    """

    def __init__(self, message: Any, group: str = "", sequence_feature: str | None = None) -> None:
        self._message = message
        self._domains = {
            domain.name: (kind, domain)
            for kind in ("string_domain", "int_domain", "float_domain")
            for domain in getattr(message, kind)
        }
        self._group = group
        self._sequence = _sequence_name(message, sequence_feature)

    def fields(self) -> list[Field]:
        """One field for each feature that is in use, in the order of the message.

        SchemaError if a feature is described in a way that no record can have.
        """
        fields: _Fields = {}
        for feature in filter(is_in_use, self._message.feature):
            described, part = [feature], Column.CONTEXT
            if feature.type == STRUCT and feature.name == self._sequence:
                described, part = (
                    [child for child in feature.struct_domain.feature if is_in_use(child)],
                    Column.FEATURE_LIST,
                )
            for feature_of_part in described:
                field = self.field(feature_of_part, part)
                fields[field.part, field.feature] = field
        components = [part.feature for field in fields.values() for part in _components(field)[1:]]
        self._represent(fields)
        for sparse in self._message.sparse_feature:
            if is_in_use(sparse):
                names, values = [index.name for index in sparse.index_feature], sparse.value_feature.name
                _sparse(
                    fields,
                    sparse.name,
                    indices=names,
                    values=values,
                    shape=sparse.dense_shape,
                    is_sorted=sparse.is_sorted,
                )
        for feature_name in components:
            fields.pop((Column.CONTEXT, feature_name), None)
        # A feature list whose column another field has is named as TFX names its tensor.
        counts = Counter(field.column for field in fields.values())
        return [
            replace(field, column=f"{self._sequence}.{field.feature}")
            if field.part == Column.FEATURE_LIST and counts[field.column] > 1 and field.column == field.feature
            else field
            for field in fields.values()
        ]

    def field(self, feature: Any, part: str = Column.CONTEXT) -> Field:
        """The field of a feature; in the part FEATURE_LIST a feature list, whose steps the message describes."""
        return _field_of_tag(feature, part) or self._describe_feature(feature, part)

    def _describe_feature(self, feature: Any, part: str) -> Field:
        if feature.type == STRUCT:
            if part == Column.FEATURE_LIST:
                raise SchemaError("a step of a feature list cannot be a STRUCT", feature=feature.name)
            children = [self.field(child) for child in feature.struct_domain.feature if is_in_use(child)]
            return Field(feature.name, pa.struct([(child.column, child.type) for child in children]))
        value = self._value_type(feature)
        if part == Column.FEATURE_LIST:
            # By the second of value_counts: TFX's tools do not agree on what a value_count alone means.
            steps = feature.value_counts.value_count
            step = _type_for_counts(value, steps[1:]) if len(steps) == 2 else pa.list_(value)
            return Field(feature.name, pa.list_(step), part=part)
        if feature.HasField("shape"):
            return _apply_shape(value, _sizes(feature.shape)).named(feature.name)
        counts = feature.value_counts.value_count or [feature.value_count]
        return Field(feature.name, _type_for_counts(value, counts))

    # ---- types

    def domain_of(self, feature: Any) -> tuple[str | None, Any]:
        """The kind of a feature's domain and the domain, which may be one that the schema names; None without one."""
        which = feature.WhichOneof("domain_info")
        if which == "domain":
            return self._domains.get(feature.domain, (None, None))
        return which, None if which is None else getattr(feature, which)

    def _value_type(self, feature: Any) -> pa.DataType:
        which, domain = self.domain_of(feature)
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

    def _represent(self, fields: _Fields) -> None:
        """Apply the tensor representations; a feature of several tensors is converted for the first of them."""
        groups = self._message.tensor_representation_group
        if self._group not in groups:
            if self._group:
                reason = f"the schema has no tensor_representation_group {self._group!r}"
                raise SchemaError(reason, expected=sorted(groups))
            return
        claimed: set[tuple[str, str]] = set()
        representations: Mapping[str, Any] = groups[self._group].tensor_representation
        for name in sorted(representations):
            which = representations[name].WhichOneof("kind")
            if which is None:
                continue
            tensor_ = getattr(representations[name], which)
            if which == "sparse_tensor":
                indices, values = list(tensor_.index_column_names), tensor_.value_column_name
                _sparse(
                    fields,
                    name,
                    indices=indices,
                    values=values,
                    shape=tensor_.dense_shape,
                    is_sorted=tensor_.already_sorted,
                )
                continue
            path = list(tensor_.feature_path.step) if which == "ragged_tensor" else [tensor_.column_name]
            part, path = (Column.FEATURE_LIST, path[1:]) if path[:1] == [self._sequence] else (Column.CONTEXT, path)
            key = (part, "/".join(path))
            if key not in fields:
                raise SchemaError(f"the tensor {name!r} uses a feature that the schema does not have", feature=key[1])
            if part == Column.FEATURE_LIST and tensor_.partition:
                reason = f"the tensor {name!r} partitions the steps of a feature list, which is not supported"
                raise SchemaError(reason, feature=key[1])
            if key in claimed:
                continue
            claimed.add(key)
            fields[key] = replace(
                _apply_representation(fields[key], representations[name]), column=name, feature=key[1]
            )
            for partition in tensor_.partition if which == "ragged_tensor" else ():
                if partition.WhichOneof("kind") == "row_length":
                    fields.pop((Column.CONTEXT, partition.row_length), None)


def _apply_representation(field: Field, representation: Any) -> Field:
    tag_representation = representation_of(field)  # of a field from a tag
    if field.part == Column.FEATURE_LIST or (
        tag_representation is not None and tag_representation[1] == representation
    ):
        return field  # feature lists are ragged already
    which = representation.WhichOneof("kind")
    return _RESHAPE[which](field, getattr(representation, which))


def _sparse(fields: _Fields, name: str, indices: list[str], values: str, shape: Any, is_sorted: bool) -> None:
    """Make lists of indices and values, and add the description of the sparse tensor to the values' metadata."""
    for feature_name in (*indices, values):
        field = fields.get((Column.CONTEXT, feature_name))
        if field is None:
            reason = f"the sparse tensor {name!r} uses this feature, and the schema does not have it"
            raise SchemaError(reason, feature=feature_name)
        fields[Column.CONTEXT, feature_name] = _as_list(field)
    sparse = SparseColumn(name, tuple(indices), _sizes(shape), is_sorted)
    field = fields[Column.CONTEXT, values]
    metadata = {**field.metadata, **sparse.metadata}
    fields[Column.CONTEXT, values] = replace(field, metadata=metadata)


def _sequence_name(message: Any, sequence_feature: str | None) -> str | None:
    """The STRUCT feature that contains the feature lists, if the schema has one."""
    structs = {feature.name: feature for feature in message.feature if feature.type == STRUCT and is_in_use(feature)}
    if sequence_feature is not None:
        if sequence_feature not in structs:
            reason = f"sequence_feature={sequence_feature!r}: the schema has no STRUCT of this name"
            raise SchemaError(reason, expected=sorted(structs), got=sequence_feature)
        return sequence_feature
    if SEQUENCE in structs or len(structs) != 1:
        return SEQUENCE
    ((name, only),) = structs.items()
    return None if any(child.type == STRUCT for child in only.struct_domain.feature) else name


def is_in_use(feature: Any) -> bool:
    """True if TFX's tools look at a feature."""
    return not feature.deprecated and feature.lifecycle_stage not in UNUSED_STAGES


def _sizes(shape: Any) -> tuple[int | None, ...]:
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


def _type_for_counts(value: pa.DataType, counts: Sequence[Any]) -> pa.DataType:
    """The type of as many values as the only one of `counts` has; a list if there are several, or it is a range."""
    count = counts[0].min if len(counts) == 1 and counts[0].min == counts[0].max else 0
    if count <= 0:
        return pa.null() if t.is_null(value) else pa.list_(value)
    return value if count == 1 else pa.list_(value, count)


def _apply_shape(value: pa.DataType, shape: tuple[int | None, ...]) -> Field:
    if not shape or t.is_null(value):
        return Field("", value)
    if len(shape) == 1:
        return Field("", pa.list_(value) if shape[0] is None else pa.list_(value, shape[0]))
    if Column(value).is_number or t.is_binary(value) or t.is_string(value):
        return tensor(value, shape, encoding=Column.LIST)
    sizes = [axis for axis in shape if axis is not None]
    return Field("", pa.list_(value, math.prod(sizes) if len(sizes) == len(shape) else -1), shape=shape)


def _value_of(field: Field) -> pa.DataType:
    """Type of one value of a context feature."""
    if Column(field.type).is_tensor:
        return Column(field.type).value_type
    return field.type.value_type if t.is_list(field.type) or t.is_fixed_size_list(field.type) else field.type


def _as_list(field: Field, _: Any = None) -> Field:
    type_ = pa.list_(_value_of(field))
    return Field(
        field.column, type_, field.feature, required=field.required, metadata=field.metadata, part=Column.CONTEXT
    )


def _as_dense(field: Field, kind: Any) -> Field:
    """Read a field like TensorFlow's FixedLenFeature: a missing feature is an error, unless there is a default."""
    value = _value_of(field)
    shaped = _apply_shape(value, _sizes(kind.shape))
    which = kind.default_value.WhichOneof("kind")
    if which is None:
        return replace(shaped, required=True, metadata=field.metadata)
    default = getattr(kind.default_value, which)
    if which == "bytes_value" and not t.is_binary(value):
        default = default.decode("utf-8", "replace")
    elif t.is_boolean(value):
        default = bool(default)
    return replace(shaped, default=default, required=bool(field.required), metadata=field.metadata)


def _as_ragged(field: Field, kind: Any) -> Field:
    if not kind.partition:
        return _as_list(field)
    sizes = [p.uniform_row_length if p.HasField("uniform_row_length") else None for p in kind.partition]
    lengths = [None if p.HasField("uniform_row_length") else p.row_length for p in kind.partition]
    value = Column(_value_of(field)).type_name
    composite = Composite(field.feature, value, sequence=(None, *sizes), lengths=tuple(lengths))
    return composite.field(field.column, required=field.required)


_RESHAPE: dict[str, Callable[[Field, Any], Field]] = {
    "dense_tensor": _as_dense,
    "varlen_sparse_tensor": _as_list,
    "ragged_tensor": _as_ragged,
}


def _field_of_tag(feature: Any, part: str) -> Field | None:
    """The field in the feature's tag, if the feature is still as it was written."""
    for tag in feature.annotation.tag:
        if not tag.startswith(TAG):
            continue
        try:
            (field,) = Schema.from_json(tag.removeprefix(TAG))
            bare = type(feature)()
            bare.CopyFrom(feature)
            bare.ClearField("annotation")
            bare.DiscardUnknownFields()
            if field.part == part and feature_message(field) == bare:
                return field
        except (SchemaError, ValueError):
            continue
    return None


# Ranges of an int_domain equal to the range of a type.
INTEGERS = {
    (-(2**7), 2**7 - 1): pa.int8(),
    (-(2**15), 2**15 - 1): pa.int16(),
    (-(2**31), 2**31 - 1): pa.int32(),
    (0, 2**8 - 1): pa.uint8(),
    (0, 2**16 - 1): pa.uint16(),
    (0, 2**32 - 1): pa.uint32(),
}
_TYPES = {"bytes_list": BYTES, "int64_list": INT, "float_list": FLOAT}
_TIME_FORMATS = {unit: number for number, unit in TIME_UNITS.items()}
_RANGES = {type_: ends for ends, type_ in INTEGERS.items()}


def feature_message(field: Field) -> Any:
    """The FeatureMessage of a field, without annotation; for a composite or nested column that of the first feature."""
    if (composite := Composite.of(field)) is not None:
        feature, type_ = next(composite.components())
        field = Field(field.column, type_, feature, required=field.required, part=Column.CONTEXT)
    elif field.encoding == Column.NESTED:
        field = _components(field)[0]
    message = FeatureMessage(name=field.feature)
    if field.required:
        message.presence.min_fraction = 1
        message.presence.min_count = 1
    if field.is_stored_as_bytes or field.encoding == Column.JSON:
        message.type = BYTES
        if not field.is_list_of_arrays:
            _set_single(message, bool(field.required))
        elif t.is_fixed_size_list(field.type):
            message.value_count.min = message.value_count.max = field.type.list_size
        else:
            message.value_count.min = 0
        return message
    value = _value_type(field)
    _set_domain(message, value, field)
    if field.part == Column.FEATURE_LIST:
        message.value_counts.value_count.add(min=0)
        is_list = Column(field.value).is_list
        step = message.value_counts.value_count.add(min=(field.size or 0) if is_list else 1)
        if not is_list or field.size is not None:
            step.max = step.min
    elif field.type == value:
        _set_single(message, bool(field.required))
    elif field.shape is None or None in field.shape:
        message.value_count.min = 0
    elif field.required:
        set_shape(message.shape, field.shape)
    else:
        message.value_count.min = message.value_count.max = field.size
    return message


def set_shape(target: Any, shape: tuple[int | None, ...]) -> None:
    """Fill a FixedShape; −1 is an unknown dimension."""
    target.SetInParent()
    for size in shape:
        target.dim.add(size=-1 if size is None else size)


def _value_type(field: Field) -> pa.DataType:
    type_ = field.value
    while Column(type_).is_list or Column(type_).is_tensor:
        type_ = Column(type_).value_type if Column(type_).is_tensor else type_.value_type
    return type_


def _set_single(message: Any, required: bool) -> None:
    """Describe a single value: TFX accepts a shape only for required features, and a value_count for others."""
    if required:
        message.shape.SetInParent()
    else:
        message.value_count.min = message.value_count.max = 1


def _set_domain(message: Any, value: pa.DataType, field: Field) -> None:
    """Describe the type and the domain of a value."""
    try:
        kind = Column(pa.field(field.feature, value)).kind.list_name
    except Column.UnsupportedType as error:
        raise SchemaError(error.reason, feature=error.feature, expected=str(field.type), hint=error.advice) from error
    if not kind:  # a column of nulls
        return
    message.type = _TYPES[kind]
    if t.is_dictionary(value) and message.type == BYTES:
        message.string_domain.is_categorical = CATEGORICAL_YES
    elif t.is_boolean(value):
        message.bool_domain.SetInParent()
    elif value in _RANGES:
        message.int_domain.min, message.int_domain.max = _RANGES[value]
    elif t.is_timestamp(value):
        message.time_domain.integer_format = _TIME_FORMATS[value.unit]
    elif t.is_date32(value):
        message.time_domain.integer_format = UNIX_DAYS


# ---- tensor representations


def representation_of(field: Field) -> tuple[str, Any] | None:
    """Name and message of the tensor, if needed: for defaults, shapes, required values, nested rows, sparse tensors."""
    message = RepresentationMessage()
    if (composite := Composite.of(field)) is not None:
        is_nested = len(composite.sequence) > 1 and composite.sequence[0] is None and composite.shape == ()
        if not is_nested or composite.encoding != Composite.BY_VALUE or composite.labels is not None:
            return None
        message.ragged_tensor.feature_path.step.append(composite.values)
        for size, lengths in zip(composite.sequence[1:], composite.lengths, strict=True):
            kind = {"uniform_row_length": size} if lengths is None else {"row_length": lengths}
            message.ragged_tensor.partition.add(**kind)
        return field.column, message
    if (sparse := SparseColumn.from_metadata(field.metadata, field.feature)) is not None:
        return _set_sparse(message.sparse_tensor, field, sparse), message
    shape = field.shape or ()
    has_count = None not in shape and not (field.shape is None and Column(field.type).is_list)
    is_dense = has_count and field.part == Column.CONTEXT and not field.is_stored_as_bytes
    default = field.default
    while isinstance(default, list) and default and all(item == default[0] for item in default):
        default = default[0]
    if not isinstance(default, bool | int | float | str | bytes):
        default = None  # its values differ, or TFX has no type for them
    if not is_dense or (default is None and not field.required and len(shape) < 2):
        return None
    message.dense_tensor.column_name = field.feature
    set_shape(message.dense_tensor.shape, shape)
    if isinstance(default, str | bytes):
        message.dense_tensor.default_value.bytes_value = default.encode() if isinstance(default, str) else default
    elif isinstance(default, float):
        message.dense_tensor.default_value.float_value = default
    elif default is not None:
        message.dense_tensor.default_value.int_value = int(default)
    return field.column, message


def _set_sparse(message: Any, field: Field, sparse: SparseColumn) -> str:
    message.value_column_name = field.feature
    message.index_column_names.extend(sparse.index)
    set_shape(message.dense_shape, sparse.shape)
    if sparse.is_sorted:
        message.already_sorted = True
    return sparse.name
