"""A schema as text that other tools take: what ``tfr schema --as`` prints."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from tfrecord_io.schema.dtypes import DTYPE_KEY
from tfrecord_io.schema.fields import Schema
from tfrecord_io.schema.tensor_types import axes_of, is_fixed_shape_tensor, is_variable_shape_tensor, value_type_of
from tfrecord_io.schema.types import ENCODING_KEY, FEATURE_LIST


def schema_text(found: Schema | pa.Schema, form: str) -> str:
    """The schema as "arrow", "tfx", "feature_description", "json" or "python"."""
    return _FORMS[form](Schema.parse(found))


def _arrow(schema: Schema) -> str:
    fields = [f"    pa.field({f.name!r}, {_arrow_type(f.type)}, nullable={f.nullable}{_metadata(f)})," for f in schema.to_arrow()]
    imports = ["import pyarrow as pa"] + ["import tfrecord_io as tfr"] * any(is_variable_shape_tensor(f.value) for f in schema)
    return "\n".join([*imports, "", "schema = pa.schema([", *fields, "])"])


def _metadata(field: pa.Field) -> str:
    """What the type does not say: how the values are stored, and the dtype of tensors."""
    said = {key: value for key, value in (field.metadata or {}).items() if key in (DTYPE_KEY, ENCODING_KEY)}
    return f", metadata={said}" if said else ""


def _arrow_type(type_: pa.DataType) -> str:
    """Source code of an Arrow type."""
    t = pa.types
    if is_fixed_shape_tensor(type_):
        return f"pa.fixed_shape_tensor({_arrow_type(type_.value_type)}, {tuple(type_.shape)})"
    if is_variable_shape_tensor(type_):  # pyarrow has no function for it
        return f"tfr.tensor({_arrow_type(value_type_of(type_))}, {axes_of(type_)}).type"
    if t.is_fixed_size_list(type_):
        return f"pa.list_({_arrow_type(type_.value_type)}, {type_.list_size})"
    if t.is_list(type_) or t.is_large_list(type_):
        return f"pa.{'list_' if t.is_list(type_) else 'large_list'}({_arrow_type(type_.value_type)})"
    if t.is_struct(type_):
        return f"pa.struct([{', '.join(f'({child.name!r}, {_arrow_type(child.type)})' for child in type_)}])"
    if t.is_dictionary(type_):
        return f"pa.dictionary({_arrow_type(type_.index_type)}, {_arrow_type(type_.value_type)}, ordered={bool(type_.ordered)})"
    if t.is_timestamp(type_):
        return f"pa.timestamp({type_.unit!r}" + (f", tz={type_.tz!r})" if type_.tz else ")")
    if t.is_time(type_) or t.is_duration(type_):
        return f"pa.{str(type_).split('[')[0]}({type_.unit!r})"
    if t.is_decimal(type_):
        return f"pa.decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if t.is_fixed_size_binary(type_):
        return f"pa.binary({type_.byte_width})"
    names = {
        "bool": "bool_",
        "halffloat": "float16",
        "float": "float32",
        "double": "float64",
        "date32[day]": "date32",
        "date64[ms]": "date64",
    }
    return f"pa.{names.get(str(type_), str(type_))}()"


def _description(schema: Schema) -> str:
    """TensorFlow's feature descriptions, as code for either `tf.io` or `tfrecord_io`."""
    parts = [("context", schema.to_feature_description())]
    if any(f.part == FEATURE_LIST for f in schema):
        parts.append(("sequence", schema.to_feature_description(part=FEATURE_LIST)))
    lines = ["import tensorflow as tf", ""]
    for name, described in parts:
        lines += ["feature_description = {" if name == "context" else "sequence_features = {"]
        lines += [f"    {key!r}: {_feature(feature)}," for key, feature in described.items()]
        lines += ["}"]
    return "\n".join(lines)


def _feature(feature: Any) -> str:
    text = repr(feature).replace(", default_value=None", "").replace(", value_key=None", "")
    text = re.sub(r"dtype='(\w+)'", r"dtype=tf.\1", text)
    text = re.sub(r"\b(RowSplits|RowLengths|RowStarts|RowLimits|ValueRowIds|UniformRowLength)\(", r"tf.io.RaggedFeature.\1(", text)
    return f"tf.io.{text}"


_FORMS: dict[str, Callable[[Schema], str]] = {
    "arrow": _arrow,
    "tfx": Schema.to_tfx,
    "feature_description": _description,
    "json": Schema.to_json,
    "python": Schema.to_python,
}
