"""The features of a dataset of TFDS that is copied, which the columns do not tell: classes, images, nested datasets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.errors import printable, warn
from tfrecord_io.options import unwrapped
from tfrecord_io.plugins.tensorflow.tfds import TfdsLeaf, leaves_of
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.record_checks import sidecar_schema, split_folders
from tfrecord_io.read.scan import Scan
from tfrecord_io.schema.formats.tfds_info import FEATURES, read_info
from tfrecord_io.storage.paths.plain_files import Directory

Json = dict[str, Any]
_ABOUT = ("description", "citation", "location", "redistributionInfo")  # of dataset_info.json


@dataclass(slots=True)
class SourceFeatures:
    """The description of the dataset that the rows were read from."""

    document: Json  # features.json
    leaves: Mapping[str, TfdsLeaf]
    folder: Directory
    _warned: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, data: Any) -> SourceFeatures | None:
        """Those of a Reader or a Dataset whose schema is stated, or that of a ``features.json``; None for others."""
        scan = data.scan if isinstance(data, Reader) else unwrapped(data)
        if not isinstance(scan, Scan) or scan.resolved.source not in (FEATURES, "schema="):
            return None
        found, _ = sidecar_schema(scan.sources, scan.options)
        if found is None:
            return None
        directory, _ = split_folders(scan.sources[0].path, found.depth)
        folder = Directory(directory, found.storage)
        text = folder.read(FEATURES)
        if text is None:
            return None
        document = json.loads(text)  # which was read before
        return cls(document, {leaf.name: leaf for leaf in leaves_of(document)}, folder)

    def about(self, columns: Iterable[str]) -> Json:
        """What ``dataset_info.json`` says of the dataset, and its supervised keys, if all columns are there."""
        info = read_info(self.folder)
        keys = (*_ABOUT, "supervisedKeys") if {*columns} >= {*self.leaves} else _ABOUT
        return {} if info is None else {key: info.document[key] for key in keys if key in info.document}

    def merged(self, own: Json, chosen: set[str]) -> Json | None:
        """The features of the source for columns that are stored as there, and those of `own` for the others.

        `chosen` are columns of which the caller states a feature. None if the two trees do not fit.
        """
        made = {leaf.name: leaf for leaf in leaves_of(own)}
        kept = {name for name, leaf in made.items() if name not in chosen and self._is_stored_alike(name, leaf)}
        if "type" in self.document:  # the form of old versions, of which no part can be left out
            return self.document if kept == {*self.leaves} == {*made} else None
        _drop_parts(self.document, kept, "")
        tree = _kept(self.document, kept, "")
        joined = tree is not None and _join(own, tree, kept, "", 0)
        changed = (made.keys() & self.leaves.keys()) - (kept if joined else set()) - chosen
        if new := sorted(changed - self._warned):
            self._warned.update(new)
            reason = "these columns are stored in another way than there, so they have features by their types"
            warn(f"{self.folder.display_path(FEATURES)}: {reason}: {printable(', '.join(new), 300)}", UserWarning)
        return tree if joined else None

    def _is_stored_alike(self, name: str, leaf: TfdsLeaf) -> bool:
        """Whether what is written of a column is what the feature of the source states."""
        source = self.leaves.get(name)
        if source is None or (leaf.labels is not None and source.labels is None):
            return False
        return _stored(source) == _stored(leaf) and (source.optional or not leaf.optional)


def _children(node: Json) -> dict[str, Json] | None:
    """The features of a dict."""
    return node["featuresDict"].setdefault("features", {}) if "featuresDict" in node else None


def _inner(node: Json) -> Json | None:
    """The feature of a sequence's items, or of a nested dataset's."""
    return node["sequence"]["feature"] if "sequence" in node else None


def _names(node: Json, name: str) -> set[str]:
    """The columns below a feature."""
    return {
        leaf.name for leaf in leaves_of({"pythonClassName": "FeaturesDict", "featuresDict": {"features": {name: node}}})
    }


def _below(name: str, key: str) -> str:
    return f"{name}/{key}" if name else key


def _drop_parts(node: Json, kept: set[str], name: str) -> None:
    """Leave the columns of a feature out of `kept`, of which others are not there."""
    children, inner = _children(node), _inner(node)
    if children is not None:
        for key, child in children.items():
            _drop_parts(child, kept, _below(name, key))
    elif inner is not None:
        _drop_parts(inner, kept, name)
    elif not (names := _names(node, name)) <= kept:
        kept -= names


def _kept(node: Json, kept: set[str], name: str) -> Json | None:
    """A copy of a tree of features with the columns to keep; None if it has none of them."""
    children, inner = _children(node), _inner(node)
    if children is not None:
        found = {key: made for key, child in children.items() if (made := _kept(child, kept, _below(name, key)))}
        return {**node, "featuresDict": {**node["featuresDict"], "features": found}} if found else None
    if inner is not None:
        made = _kept(inner, kept, name)
        return {**node, "sequence": {**node["sequence"], "feature": made}} if made else None
    return node if _names(node, name) <= kept else None


def _join(own: Json, tree: Json, kept: set[str], name: str, levels: int) -> bool:
    """Put the features of columns that are not kept into a tree, inside so many sequences; whether they fit."""
    while (inner := _inner(tree)) is not None:
        tree, levels = inner, levels + 1
    children, others = _children(tree), _children(own)
    if children is None or others is None:
        return False
    for key, child in others.items():
        below = _below(name, key)
        if _names(child, below) <= kept:
            continue
        if key in children:
            if not _join(child, children[key], kept, below, levels):
                return False
            continue
        made = _inside(child, levels)
        if made is None:
            return False
        children[key] = made
    return True


def _inside(own: Json, levels: int) -> Json | None:
    """The feature of the items of so many sequences around each leaf; None if there are not as many."""
    children = _children(own)
    if children is not None:
        made = {key: _inside(child, levels) for key, child in children.items()}
        if None in made.values():
            return None
        return {**own, "featuresDict": {"features": made}}
    for _ in range(levels):
        inner = _inner(own)
        if inner is None:
            return None
        own = inner
    return own


def _stored(leaf: TfdsLeaf) -> tuple[Any, ...]:
    """What decides how the values of a leaf are stored: a list of one length is stored as a tensor is."""
    dtype = "string" if leaf.dtype in ("string", "object", "str", "bytes") else leaf.dtype
    ragged = max(len(leaf.sequence) - 1, 0)
    return dtype, leaf.encoding, leaf.sequence + leaf.shape, ragged, leaf.shape.count(None) > 1
