"""A schema as source code or text for other tools: the output of ``tfr schema --as``."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.api import infer_schema
from tfrecord_io.apps.lazy_dataset import dataset
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns import Column, Overrides
from tfrecord_io.kit import Dtype, ReadOptions, TensorEncoding
from tfrecord_io.read import CallSource
from tfrecord_io.typing import Field, Reader, Suggestion

if TYPE_CHECKING:
    import tfrecord_io


def schema_text(schema: tfrecord_io.Schema | pa.Schema, format: str) -> str:
    """Write a schema in one of the `_FORMATS`."""
    import tfrecord_io

    return _FORMATS[format](tfrecord_io.Schema.parse(schema))


def resolve_schema(
    path: Any, format: str | None, keywords: Mapping[str, Any]
) -> tuple[tfrecord_io.Schema, str, tuple[Suggestion, ...]]:
    """Return the schema to print, its source, and suggestions for columns of an inferred schema.

    For TFX and TensorFlow, all records are read, as features that every record has are required, and partition columns
    are left out, as no record has them; "feature_description" also lists the companion features of tensors.
    """
    import tfrecord_io

    strict = format in ("tfx", "feature_description")
    options = ReadOptions.from_keywords(keywords).for_inspection()
    files = CallSource(path).found_files(options)
    planned = files.plan_scan(whole=strict, with_evidence=strict, keeps_conflicts=True)
    suggestions: tuple[Suggestion, ...] = ()
    with Reader(planned) as reader:
        reader.report.warn_of_skipped()
        if strict and planned.error is not None:
            raise planned.error
        if not strict and not planned.scan.conflicts():
            first = next(reader, None)  # a file damaged from its first record on is an error, not a schema of nothing
            if first is not None and planned.scan.resolved.source == "inferred":
                suggestions = planned.scan.suggest_types(first)
    rows, features = tfrecord_io.Schema.parse(planned.scan.schema), planned.scan.features
    # Columns of features say how these are stored, which Arrow types do not.
    schema = tfrecord_io.Schema((features[f.column] if f.column in features.names else f for f in rows), rows.metadata)
    source = planned.scan.resolved.source
    if not strict:
        return schema, source, suggestions
    of_folders = {*planned.scan.partitions.names}
    schema = schema.select([name for name in schema.names if name not in of_folders])
    if source not in ("embedded", "companions", "inferred"):
        return schema, source, ()
    sources: Any = planned.scan.sources
    inferred = planned.inferred or infer_schema(dataset(sources, **keywords))
    schema = inferred.strict(schema if source == "embedded" else None)
    schema = schema.select([name for name in schema.names if name not in of_folders])
    return inferred.with_companions(schema) if format == "feature_description" else schema, source, ()


def save_overridden_schema(path: str, keywords: Mapping[str, Any]) -> tuple[tfrecord_io.Schema, str]:
    """Save the schema of files next to them, with the types that ``schema_overrides`` declares, and return its path.

    An older saved schema is not looked at.
    """
    options = ReadOptions.from_keywords(keywords)
    asked = options.for_inspection()
    files = CallSource(path).found_files(asked)
    scan = files.plan_scan(only_sample=True, uses_saved=False).close()
    # Once more: a size that another feature states is now that of the sample, and later records may have others.
    schema = Overrides(options.schema_overrides).apply(scan.features)
    of_files = {name: value for name, value in keywords.items() if name != "schema_overrides"}
    return schema, schema.save(dataset(path, **of_files))


def _arrow(schema: tfrecord_io.Schema) -> str:
    lines = ["import pyarrow as pa"]
    if any(Column(f.value).is_variable_shape_tensor for f in schema):
        lines.append("import tfrecord_io as tfr")
    lines += ["", "schema = pa.schema(["]
    for f in schema.to_arrow():
        # What the type does not tell: how the values are stored, and the dtype of tensors.
        entries = f.metadata or {}
        has_source = ShapeSource.entry_of(entries) is not None
        kept = {k: value for k, value in entries.items() if has_source or k in (Dtype.KEY, Column.ENCODING_KEY)}
        metadata = f", metadata={kept}" if kept else ""
        lines.append(f"    pa.field({f.name!r}, {_arrow_type(f.type)}, nullable={f.nullable}{metadata}),")
    return "\n".join([*lines, "])"])


def _arrow_type(type_: pa.DataType) -> str:
    """Source code of an Arrow type."""
    if Column(type_).is_fixed_shape_tensor:
        return f"pa.fixed_shape_tensor({_arrow_type(type_.value_type)}, {tuple(type_.shape)})"
    if Column(type_).is_variable_shape_tensor:  # pyarrow has no function for it
        return f"tfr.tensor({_arrow_type(Column(type_).value_type)}, {Column(type_).axes}).type"
    if t.is_fixed_size_list(type_):
        return f"pa.list_({_arrow_type(type_.value_type)}, {type_.list_size})"
    if t.is_list(type_) or t.is_large_list(type_):
        return f"pa.{'list_' if t.is_list(type_) else 'large_list'}({_arrow_type(type_.value_type)})"
    if t.is_struct(type_):
        return f"pa.struct([{', '.join(f'({child.name!r}, {_arrow_type(child.type)})' for child in type_)}])"
    if t.is_map(type_):
        sorted_ = ", keys_sorted=True" if type_.keys_sorted else ""
        return f"pa.map_({_arrow_type(type_.key_type)}, {_arrow_type(type_.item_type)}{sorted_})"
    if t.is_dictionary(type_):
        index, value = _arrow_type(type_.index_type), _arrow_type(type_.value_type)
        return f"pa.dictionary({index}, {value}, ordered={bool(type_.ordered)})"
    if t.is_timestamp(type_):
        return f"pa.timestamp({type_.unit!r}" + (f", tz={type_.tz!r})" if type_.tz else ")")
    if t.is_time(type_) or t.is_duration(type_):
        return f"pa.{str(type_).split('[')[0]}({type_.unit!r})"
    if t.is_decimal(type_):
        return f"pa.decimal{type_.bit_width}({type_.precision}, {type_.scale})"
    if t.is_fixed_size_binary(type_):
        return f"pa.binary({type_.byte_width})"
    names = {"bool": "bool_", "halffloat": "float16", "float": "float32", "double": "float64"}
    names |= {"date32[day]": "date32", "date64[ms]": "date64"}
    return f"pa.{names.get(str(type_), str(type_))}()"


def _feature_description(schema: tfrecord_io.Schema) -> str:
    """TensorFlow's feature descriptions, as code that works with `tf.io` and `tfrecord_io`."""
    description = schema.to_feature_description()
    parts = [("feature_description", description)]
    if any(f.part == Column.FEATURE_LIST for f in schema):
        parts.append(("sequence_features", schema.to_feature_description(part=Column.FEATURE_LIST)))
    lines = ["import tensorflow as tf", ""]
    for name, features in parts:
        lines += [f"{name} = {{", *(f"    {key!r}: {_feature(feature)}," for key, feature in features.items()), "}"]
    hints = [hint for f in schema if f.part != Column.FEATURE_LIST and (hint := _decode_raw_hint(f, description))]
    if hints:
        lines += ["", "# raw bytes, of parsed = tf.io.parse_single_example(record, feature_description):", *hints]
    return "\n".join(lines)


def _decode_raw_hint(f: Field, description: Mapping[str, Any]) -> str:
    """A comment that shows how TensorFlow decodes raw bytes; empty for other columns and unsupported dtypes."""
    if f.is_list_of_arrays or not TensorEncoding.of(f.encoding).companions:
        return ""
    if Column(f.type).is_tensor:
        element, shape = Column(f.tensor).dtype_and_shape
    else:
        type_, shape = f.type, ()
        while Column(type_).is_list:
            type_, shape = type_.value_type, (*shape, type_.list_size if t.is_fixed_size_list(type_) else None)
        element = Dtype.of_arrow(type_, f.metadata)
    if not element.is_decoded_raw:
        return ""
    source = f.shape_source
    if source is not None:
        to = _stated_shape(source, description)
    elif shape.count(None) > 1:
        to = f"parsed[{ShapeSource.companions(f.feature)[0]!r}]"
    else:
        to = str([-1 if axis is None else axis for axis in shape])
    content = f"parsed[{f.feature!r}]" if f.required else f"parsed[{f.feature!r}].values[0]"
    return f"# {f.column!r}: tf.reshape(tf.io.decode_raw({content}, tf.{element.name}), {to})"


def _stated_shape(source: ShapeSource, description: Mapping[str, Any]) -> str:
    """The shape of a column whose sizes are stored in other features, which the feature description has, too."""
    sparse = {name for name, feature in description.items() if not hasattr(feature, "shape")}
    if isinstance(source.axes, str):
        return f"parsed[{source.axes!r}]{'.values' if source.axes in sparse else ''}"
    values = {axis: f"parsed[{axis!r}]{'.values[0]' if axis in sparse else ''}" for axis in source.sizes}
    axes = [values[axis] if isinstance(axis, str) else axis for axis in source.axes]
    return f"[{', '.join('-1' if axis is None else str(axis) for axis in axes)}]"


def _feature(feature: Any) -> str:
    text = repr(feature).replace(", default_value=None", "").replace(", value_key=None", "")
    text = re.sub(r"dtype='(\w+)'", r"dtype=tf.\1", text)
    text = re.sub(
        r"\b((Row(Splits|Lengths|Starts|Limits)|ValueRowIds|UniformRowLength)\()", r"tf.io.RaggedFeature.\1", text
    )
    return f"tf.io.{text}"


_FORMATS: dict[str, Callable[[tfrecord_io.Schema], str]] = {
    "arrow": _arrow,
    "tfx": methodcaller("to_tfx"),
    "feature_description": _feature_description,
    "json": methodcaller("to_json"),
    "python": methodcaller("to_python"),
}
