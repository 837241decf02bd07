"""Features of TFDS (tensorflow_datasets) as their ``features.json`` describes them: the leaves that stand in a record.

Two forms of that file are in use. Old: ``{"type": "module.Class", "content": …}``, the content plain JSON or, where
``proto_cls`` says so, the JSON of a protobuf message. New (since 4.0): that of the message Feature, which is
``{"pythonClassName": "module.Class", "<content>": …}``. JSON of messages has camelCase names, and integers as text.

How a leaf is stored is in tensorflow_datasets/core: features/*.py (`get_serialized_info`), example_serializer.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.shapes import Shape

_DEEPEST = 64  # features inside features


@dataclass(frozen=True, slots=True)
class Leaf:
    """One tensor of a dataset.

    Parameters
    ----------
    name : str
        Keys of the dicts that lead to it, joined by "/".
    dtype : str
        NumPy's name, or "string".
    shape : tuple of int or None
        Of the tensor, without the sequences that it is in.
    sequence : tuple of int or None
        Lengths of those sequences, outermost first.
    encoding : {"none", "bytes", "zlib"}
    is_text : bool
        A string that is text for people, not bytes.
    optional : bool
        It may be None.
    labels : str, optional
        Stem of the file with the names of a ClassLabel.
    """

    name: str
    dtype: str
    shape: Shape = ()
    sequence: Shape = ()
    encoding: str = "none"
    is_text: bool = False
    optional: bool = False
    labels: str | None = None


@dataclass(frozen=True, slots=True)
class _At:
    """Where in the tree of features: what leaves below it inherit."""

    name: str = ""
    stem: str | None = None  # of files that belong to the feature
    sequence: Shape = ()
    depth: int = 0

    def child(self, key: str) -> _At:
        """As convert_feature_name_to_filename in features/feature.py says."""
        own = key.replace("/", ".")
        stem = own if self.stem is None else "-".join([*self.stem.split("/"), own])
        return replace(self, name=f"{self.name}/{key}" if self.name else key, stem=stem)

    def inside(self, length: int | None) -> _At:
        return replace(self, sequence=(*self.sequence, length))

    def leaf(self, dtype: str, shape: Shape = (), **more: Any) -> Leaf:
        return Leaf(self.name, dtype, shape, self.sequence, **more)


def leaves_of(document: Any) -> list[Leaf]:
    """The leaves of a parsed ``features.json``.

    Raises
    ------
    SchemaError
        It is none, or has a feature of a class that is not known here.

    Examples
    --------
    >>> leaves_of({"type": "x.FeaturesDict", "content": {"n": {"type": "x.Tensor", "content": {"shape": [2], "dtype": "int8"}}}})
    [Leaf(name='n', dtype='int8', shape=(2,), ...)]
    """
    try:
        found = list(_walk(document, _At()))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, SchemaError):
            raise
        raise SchemaError(f"the text is no features.json of TFDS ({type(error).__name__}: {error})") from error
    if any(not leaf.name for leaf in found):
        raise SchemaError("a features.json describes a dict of features, this one describes a single feature")
    return found


def _walk(described: dict[str, Any], at: _At) -> Iterator[Leaf]:
    if at.depth > _DEEPEST:
        raise SchemaError(f"features are nested more than {_DEEPEST} deep", feature=at.name)
    class_name, content = _opened(described)
    read = _CLASSES.get(class_name)
    if read is None:
        raise SchemaError(
            f"the TFDS feature class {class_name} is not known here",
            feature=at.name or None,
            got=class_name,
            advice="pass schema='infer', or a schema of your own",
        )
    yield from read(content, replace(at, depth=at.depth + 1))


# ---- the two forms

_CONTENTS = {  # of the message Feature: the class to take it for where its own is not known, a subclass perhaps
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


def _opened(described: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Name of the class, without its module, and its content with names in snake_case."""
    if "type" in described:
        class_name, content = described["type"], described["content"]
        if described.get("proto_cls"):
            content = _snake(json.loads(content) if isinstance(content, str) else content)
        elif class_name.rpartition(".")[2] == "FeaturesDict":
            content = {"features": content}
        return class_name.rpartition(".")[2], dict(content)
    class_name = described["pythonClassName"].rpartition(".")[2]
    if "jsonFeature" in described:
        content = json.loads(described["jsonFeature"]["json"])
        return class_name, {"features": content} if class_name == "FeaturesDict" else dict(content)
    key = next((key for key in _CONTENTS if key in described), None)
    if key is None:
        return class_name, {}
    return class_name if class_name in _CLASSES else _CONTENTS[key], _snake(described[key])


def _snake(content: dict[str, Any]) -> dict[str, Any]:
    return {re.sub("[A-Z]", lambda m: "_" + m[0].lower(), key): value for key, value in content.items()}


def _shape(source: Any) -> Shape:
    """A list of numbers and null, or a message Shape, in which −1 is free and a scalar has nothing."""
    sizes = source.get("dimensions", []) if isinstance(source, dict) else source or []
    return tuple(_length(size) for size in sizes)


def _length(source: Any) -> int | None:
    return None if source is None or int(source) < 0 else int(source)


# ---- the classes


def _features_dict(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    for key, described in content.get("features", {}).items():
        yield from _walk(described, at.child(key))


def _sequence(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    length = _length(content.get("length"))
    yield from _walk(content["feature"], at.inside(length or None))  # protobuf's JSON leaves out a 0


def _tensor(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    encoding = str(content.get("encoding") or "none").lower().rpartition(".")[2]
    yield at.leaf(
        content["dtype"], _shape(content.get("shape")), encoding=encoding, optional=bool(content.get("optional"))
    )


def _audio(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    if content.get("lazy_decode"):  # the file as it was
        yield at.leaf("string")
    else:
        yield from _tensor({"shape": [None], "dtype": "int64", **content}, at)


def _video(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    frames = _shape(content.get("shape"))[:1] or (None,)
    yield at.inside(frames[0]).leaf("string")


def _class_label(_: dict[str, Any], at: _At) -> Iterator[Leaf]:
    yield at.leaf("int64", labels=at.stem)


def _image(_: dict[str, Any], at: _At) -> Iterator[Leaf]:
    yield at.leaf("string")


def _box(_: dict[str, Any], at: _At) -> Iterator[Leaf]:
    yield at.leaf("float32", (4,))


def _text(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    if content.get("use_encoder"):  # of versions before 4.0: numbers of subwords
        yield at.leaf("int64", (None,))
    else:
        yield at.leaf("string", is_text=True)


def _translation(content: dict[str, Any], at: _At) -> Iterator[Leaf]:
    for language in content.get("languages", []):
        yield from _text(content, at.child(language))


def _translations(_: dict[str, Any], at: _At) -> Iterator[Leaf]:
    for key in ("language", "translation"):
        yield at.child(key).inside(None).leaf("string", is_text=True)


_CLASSES: dict[str, Callable[[dict[str, Any], _At], Iterator[Leaf]]] = {
    "FeaturesDict": _features_dict,
    "Sequence": _sequence,
    "Dataset": _sequence,
    "Tensor": _tensor,
    "Scalar": _tensor,
    "Audio": _audio,
    "Video": _video,
    "ClassLabel": _class_label,
    "Image": _image,
    "LabeledImage": _image,
    "BBox": _box,
    "BBoxFeature": _box,
    "Text": _text,
    "Translation": _translation,
    "TranslationVariableLanguages": _translations,
}
