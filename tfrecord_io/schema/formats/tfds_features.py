"""The features of TFDS (tensorflow_datasets) in a ``features.json``, as the leaves that a record stores.

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

from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.tensor_types import Shape

_MAX_DEPTH = 64  # of nested features
_MAX_LENGTH = 2**31 - 1  # of a dimension: no record has more values
_ENCODINGS = ("none", "bytes", "zlib")


@dataclass(frozen=True, slots=True)
class TfdsLeaf:
    """One tensor of a dataset."""

    name: str  # keys of the dicts that lead to it, joined by "/"
    dtype: str  # NumPy's name, or "string"
    shape: Shape = ()  # of the tensor, without the sequences around it
    sequence: Shape = ()  # lengths of the sequences around it, outermost first
    encoding: str = "none"  # or "bytes", "zlib"
    is_text: bool = False  # a string that is text, not bytes
    optional: bool = False  # it may be None
    labels: str | None = None  # stem of the file with the names of a ClassLabel


@dataclass(frozen=True, slots=True)
class _Position:
    """A position in the tree of features: what the leaves below it inherit."""

    name: str = ""
    stem: str | None = None  # of files that belong to the feature
    sequence: Shape = ()
    depth: int = 0

    def child(self, key: str) -> _Position:
        """The position of a dict's entry; `stem` as in convert_feature_name_to_filename in features/feature.py."""
        own = key.replace("/", ".")
        stem = own if self.stem is None else "-".join([*self.stem.split("/"), own])
        return replace(self, name=f"{self.name}/{key}" if self.name else key, stem=stem)

    def inside(self, length: int | None) -> _Position:
        return replace(self, sequence=(*self.sequence, length))

    def leaf(self, dtype: str, shape: Shape = (), **more: Any) -> TfdsLeaf:
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
        advice = "pass schema='infer', or declare the columns by schema="
        raise SchemaError(reason, feature=position.name or None, got=class_name, advice=advice)
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


def _shape(source: Any) -> Shape:
    """From a list of numbers and null, or a message Shape, in which −1 is unknown and a scalar has no dimensions."""
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
    "Image": lambda _, position: [position.leaf("string")],
    "LabeledImage": lambda _, position: [position.leaf("string")],
    "BBox": lambda _, position: [position.leaf("float32", (4,))],
    "BBoxFeature": lambda _, position: [position.leaf("float32", (4,))],
    "Text": _text,
    "Translation": _translation,
    "TranslationVariableLanguages": _translations,
}
