"""Schemas of datasets that TFDS (tensorflow_datasets) wrote, from the ``features.json`` next to the files.

The file has one of two forms. Old: ``{"type": "module.Class", "content": …}``, the content plain JSON or, if there is a
``proto_cls``, the JSON of a protobuf message. New (since 4.0): the JSON of the message Feature,
``{"pythonClassName": "module.Class", "<content>": …}``. JSON of messages has camelCase names, and integers as text.

How a leaf is stored is in tensorflow_datasets/core: features/*.py (`get_serialized_info`), example_serializer.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io import Schema
from tfrecord_io.columns import Column, Composite
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import Dtype, printable
from tfrecord_io.store import Directory, Source
from tfrecord_io.typing import Field

CLASS_LABELS = ("codes", "names")

_MAX_DEPTH = 64  # of nested features
_MAX_LENGTH = 2**31 - 1  # of a dimension: no record has more values
_ENCODINGS = ("none", "bytes", "zlib")


def from_tfds(folder: Directory, text: bytes, class_labels: str) -> list[Field]:
    """The fields of a dataset by the text of its ``features.json``; see `Schema.from_tfds`."""
    if class_labels not in CLASS_LABELS:
        raise ValueError(f"class_labels={class_labels!r}: expected one of {', '.join(CLASS_LABELS)}")
    leaves = read_leaves(folder, text)
    has_names = class_labels == "names"
    try:
        fields = [_field(leaf, label_names(folder, leaf) if has_names and not leaf.pixels else None) for leaf in leaves]
        noted = [{Column.BOXES_KEY: leaf.boxes.encode()} if leaf.boxes else {} for leaf in leaves]
        fields = [replace(f, metadata={**f.metadata, **note}) for f, note in zip(fields, noted, strict=True)]
        Schema(fields)
        return fields
    except SchemaError as error:
        error.path = error.path or folder.display_path(Source.TFDS_FEATURES)
        raise


def read_leaves(folder: Directory, text: bytes) -> list[TfdsLeaf]:
    """The leaves of the text of a ``features.json``."""
    try:
        return leaves_of(json.loads(text))
    except SchemaError as error:
        error.path = folder.display_path(Source.TFDS_FEATURES)
        raise
    except (ValueError, RecursionError) as error:
        path = folder.display_path(Source.TFDS_FEATURES)
        raise SchemaError(f"it is not valid JSON ({type(error).__name__})", path=path) from error


def label_names(folder: Directory, leaf: TfdsLeaf) -> list[str] | None:
    """The names of a ClassLabel: the non-blank lines of its file (class_label_feature.py)."""
    name = f"{leaf.labels}.labels.txt"
    content = None if leaf.labels is None else folder.read(name)
    if content is None:
        return None
    return [line.strip() for line in label_text(content, folder.display_path(name)).split("\n") if line.strip()]


def label_text(content: bytes, path: str) -> str:
    """The text of a file with the names of classes."""
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise SchemaError("the names of classes are not UTF-8", path=path) from error


def _field(leaf: TfdsLeaf, labels: list[str] | None) -> Field:
    value = _value_type(leaf)
    sentinel = leaf.optional and not leaf.sequence and leaf.encoding == "none" and has_least(value)
    is_plain = leaf.encoding == "none" and labels is None and not sentinel and value != pa.uint64()
    lists = leaf.sequence + leaf.shape
    if is_plain and len(lists) == 1:
        (size,) = lists
        return Field(leaf.name, pa.list_(value) if size is None else pa.list_(value, size), part=Column.CONTEXT)
    if is_plain and not lists:
        return Field(leaf.name, value)
    return _composite(leaf, Column(value).type_name, labels, sentinel).field(leaf.name)


def _composite(leaf: TfdsLeaf, dtype: str, labels: list[str] | None, sentinel: bool) -> Composite:
    """The features that TFDS writes for a leaf: its values, its shape, and the lengths of nested sequences."""
    values, shapes = leaf.name, None
    if leaf.shape.count(None) > 1:
        values, shapes = f"{leaf.name}/value", f"{leaf.name}/shape"
    lengths = tuple(f"{values}/ragged_row_lengths_{level}" for level in range(len(leaf.sequence) - 1))
    if lengths:
        values, shapes = f"{values}/ragged_flat_values", shapes and f"{shapes}/ragged_flat_values"
    encoding = Composite.BY_VALUE if leaf.encoding == "none" else leaf.encoding
    names = None if labels is None else tuple(labels)
    return Composite(
        values=values,
        dtype=dtype,
        encoding=encoding,
        shape=leaf.shape,
        shape_feature=shapes,
        sequence=leaf.sequence,
        lengths=lengths,
        labels=names,
        sentinel=sentinel,
    )


def _value_type(leaf: TfdsLeaf) -> pa.DataType:
    if leaf.dtype in ("string", "object", "str", "bytes"):
        return pa.string() if leaf.is_text else pa.binary()
    if (row := Dtype.extension_of(leaf.dtype)) is not None and leaf.encoding == "none":
        return pa.from_numpy_dtype(row.wide)  # as it is stored in a record
    try:
        return pa.from_numpy_dtype(np.dtype(leaf.dtype))
    except (TypeError, ValueError, SyntaxError, pa.ArrowNotImplementedError) as error:
        reason = f"TFDS's dtype {leaf.dtype} has no Arrow type"
        raise SchemaError(reason, feature=leaf.name, got=leaf.dtype) from error


def has_least(type_: pa.DataType) -> bool:
    """True if TFDS writes the least value of the type for None."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_float16(type_) or pa.types.is_float32(type_))


@dataclass(frozen=True, slots=True)
class TfdsLeaf:
    """One tensor of a dataset."""

    name: str  # keys of the dicts that lead to it, joined by "/"
    dtype: str  # NumPy's name, or "string"
    shape: tuple[int | None, ...] = ()  # of the tensor, without the sequences around it
    sequence: tuple[int | None, ...] = ()  # lengths of the sequences around it, outermost first
    encoding: str = "none"  # or "bytes", "zlib"
    is_text: bool = False  # a string that is text, not bytes
    optional: bool = False  # it may be None
    labels: str | None = None  # stem of the file with the names of a ClassLabel, or of the values of an image's pixels
    pixels: tuple[str, int] | None = None  # of an image: dtype and channels after decoding
    boxes: str | None = None  # of a box: order and unit of the numbers, where unusual


@dataclass(frozen=True, slots=True)
class _Position:
    """A position in the tree of features: what the leaves below it inherit."""

    name: str = ""
    stem: str | None = None  # of files that belong to the feature
    sequence: tuple[int | None, ...] = ()
    depth: int = 0

    def child(self, key: str) -> _Position:
        """The position of a dict's entry; `stem` as in convert_feature_name_to_filename in features/feature.py."""
        escaped_key = key.replace("/", ".")
        stem = escaped_key if self.stem is None else "-".join([*self.stem.split("/"), escaped_key])
        return replace(self, name=f"{self.name}/{key}" if self.name else key, stem=stem)

    def inside(self, length: int | None) -> _Position:
        return replace(self, sequence=(*self.sequence, length))

    def leaf(self, dtype: str, shape: tuple[int | None, ...] = (), **more: Any) -> TfdsLeaf:
        return TfdsLeaf(self.name, dtype, shape, self.sequence, **more)


def leaves_of(document: Any) -> list[TfdsLeaf]:
    """The leaves of a parsed ``features.json``.

    SchemaError if it is not a features.json, or has a feature of an unsupported class.

    >>> tensor = {"type": "x.Tensor", "content": {"shape": [2], "dtype": "int8"}}
    >>> leaves_of({"type": "x.FeaturesDict", "content": {"n": tensor}})
    [TfdsLeaf(name='n', dtype='int8', shape=(2,), ...)]
    """
    try:
        leaves = list(_walk(document, _Position()))
    except SchemaError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise SchemaError(f"the text is not a features.json of TFDS ({type(error).__name__}: {error})") from error
    if any(not leaf.name for leaf in leaves):
        raise SchemaError("expected a features.json with a dict of features, got a single feature")
    return leaves


def _walk(feature: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    if position.depth > _MAX_DEPTH:
        raise SchemaError(f"features are nested more than {_MAX_DEPTH} deep", feature=position.name)
    class_name, content = _class_and_content(feature)
    read = _CLASSES.get(class_name)
    if read is None:
        reason = f"the TFDS feature class {class_name} is not supported"
        advice = "pass schema='infer', or declare the columns with schema="
        advice_cli = "read it in Python with tfr.dataset(path, schema='infer')"
        raise SchemaError(reason, feature=position.name or None, got=class_name, hint=advice, hint_cli=advice_cli)
    yield from read(content, replace(position, depth=position.depth + 1))


# ---- the two forms

_CONTENTS = {  # of the message Feature: the class to use where its own, perhaps a subclass, is unknown
    "featuresDict": "FeaturesDict",
    "tensor": "Tensor",
    "classLabel": "ClassLabel",
    "image": "Image",
    "video": "Video",
    "audio": "Audio",
    "boundingBox": "BBoxFeature",
    "text": "Text",
    "translation": "Translation",
    "sequence": "Sequence",
}


def _class_and_content(feature: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name of the class, without its module, and its content with names in snake_case."""
    if "type" in feature:
        class_name, content = feature["type"].rpartition(".")[2], feature["content"]
        if feature.get("proto_cls"):
            content = _snake(json.loads(content) if isinstance(content, str) else content)
        elif class_name == "FeaturesDict":
            content = {"features": content}
        return class_name, dict(content)
    class_name = feature["pythonClassName"].rpartition(".")[2]
    if "jsonFeature" in feature:
        content = json.loads(feature["jsonFeature"]["json"])
        return class_name, {"features": content} if class_name == "FeaturesDict" else dict(content)
    key = next((key for key in _CONTENTS if key in feature), None)
    if key is None:
        return class_name, {}
    return class_name if class_name in _CLASSES else _CONTENTS[key], _snake(feature[key])


def _snake(content: dict[str, Any]) -> dict[str, Any]:
    return {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): value for key, value in content.items()}


def _shape(source: Any) -> tuple[int | None, ...]:
    """Parse a shape: a list of numbers and null, or a message Shape, with −1 for unknown sizes."""
    sizes = source.get("dimensions", []) if isinstance(source, dict) else source or []
    return tuple(_length(size) for size in sizes)


def _length(source: Any) -> int | None:
    if source is None or int(source) < 0:
        return None
    if int(source) > _MAX_LENGTH:
        raise SchemaError(f"a dimension of {printable(source, 40)} is more than a record can hold")
    return int(source)


# ---- the classes


def _features_dict(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    for key, feature in content.get("features", {}).items():
        yield from _walk(feature, position.child(key))


def _sequence(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    length = _length(content.get("length"))
    yield from _walk(content["feature"], position.inside(length or None))  # protobuf's JSON omits a 0


def _tensor(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    encoding = str(content.get("encoding") or "none").lower().rpartition(".")[2]
    if encoding not in _ENCODINGS:
        reason = f"the TFDS encoding '{printable(encoding, 60)}' is not supported"
        raise SchemaError(reason, feature=position.name or None, expected=_ENCODINGS, got=encoding)
    optional = bool(content.get("optional"))
    yield position.leaf(content["dtype"], _shape(content.get("shape")), encoding=encoding, optional=optional)


def _audio(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    if content.get("lazy_decode"):  # the unchanged file
        yield position.leaf("string")
    else:
        yield from _tensor({"shape": [None], "dtype": "int64", **content}, position)


def _image(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    shape = _shape(content.get("shape")) or (None, None, 3)
    yield position.leaf("string", pixels=(str(content.get("dtype") or "uint8"), shape[-1] or 0))


def _box(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    form = content.get("bbox_format")
    yield position.leaf("float32", (4,), boxes=None if form in (None, "REL_YXYX") else str(form))


def _video(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    frames = _shape(content.get("shape"))[:1] or (None,)
    yield position.inside(frames[0]).leaf("string")


def _text(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    if content.get("use_encoder"):  # before version 4.0: numbers of subwords
        yield position.leaf("int64", (None,))
    else:
        yield position.leaf("string", is_text=True)


def _translation(content: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    for language in content.get("languages", []):
        yield from _text(content, position.child(language))


def _translations(_: dict[str, Any], position: _Position) -> Iterator[TfdsLeaf]:
    for key in ("language", "translation"):
        yield position.child(key).inside(None).leaf("string", is_text=True)


_CLASSES: dict[str, Callable[[dict[str, Any], _Position], Iterable[TfdsLeaf]]] = {
    "FeaturesDict": _features_dict,
    "Sequence": _sequence,
    "Dataset": _sequence,
    "Tensor": _tensor,
    "Scalar": _tensor,
    "Audio": _audio,
    "Video": _video,
    "ClassLabel": lambda _, position: [position.leaf("int64", labels=position.stem)],
    "Image": _image,
    "LabeledImage": lambda content, position: [
        replace(leaf, labels=position.stem) for leaf in _image(content, position)
    ],
    "BBox": _box,
    "BBoxFeature": _box,
    "Text": _text,
    "Translation": _translation,
    "TranslationVariableLanguages": _translations,
}
