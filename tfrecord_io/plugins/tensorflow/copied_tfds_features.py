"""The features of a dataset of TFDS that is copied, which the columns do not tell: classes, images, nested datasets.

Tests: tests/plugins/tensorflow/test_write_tfds.py.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.columns import TfdsInfo
from tfrecord_io.kit import printable, warn
from tfrecord_io.plugins.tensorflow.tfds import TfdsLeaf, leaves_of
from tfrecord_io.read import CallSource
from tfrecord_io.store import Directory, Source
from tfrecord_io.typing import Reader

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
    def from_data(cls, data: Any) -> SourceFeatures | None:
        """Features of a Reader or a Dataset with a stated schema or a ``features.json``; None for other data."""
        if isinstance(data, list | tuple):  # of several datasets, whose features may differ
            return None
        scans = [data.scan] if isinstance(data, Reader) else CallSource(data).datasets
        if not scans or scans[0].resolved.source not in (Source.TFDS_FEATURES, "schema="):
            return None
        folder = scans[0].description_folder()
        if folder is None:
            return None
        text = folder.read(Source.TFDS_FEATURES)
        if text is None:
            return None
        document = json.loads(text)  # read before without fault
        return cls(document, {leaf.name: leaf for leaf in leaves_of(document)}, folder)

    def about(self, columns: Iterable[str]) -> Json:
        """Facts of the dataset in ``dataset_info.json``, and its supervised keys if all columns are there."""
        info = TfdsInfo.read(self.folder)
        keys = (*_ABOUT, "supervisedKeys") if {*columns} >= {*self.leaves} else _ABOUT
        return {} if info is None else {key: info.document[key] for key in keys if key in info.document}

    def merge_features(self, new_tree: Json, chosen: set[str]) -> Json | None:
        """Merge two trees: features of the source for columns stored alike, features of `new_tree` for the rest.

        `chosen` are columns of which the caller states a feature. None if the two trees do not fit.
        """
        new_leaves = {leaf.name: leaf for leaf in leaves_of(new_tree)}
        kept_names = {
            name for name, leaf in new_leaves.items() if name not in chosen and self._is_stored_alike(name, leaf)
        }
        if "type" in self.document:  # the form of old versions, of which no part can be left out
            return self.document if kept_names == {*self.leaves} == {*new_leaves} else None
        _drop_parts(self.document, kept_names, "")
        tree = _copy_columns(self.document, kept_names, "")
        is_joined = tree is not None and _join(new_tree, tree, kept=kept_names, name="", levels=0)
        changed = (new_leaves.keys() & self.leaves.keys()) - (kept_names if is_joined else set()) - chosen
        if new := sorted(changed - self._warned):
            self._warned.update(new)
            reason = "these columns are stored in another way than there, so they have features by their types"
            warn(
                f"{self.folder.display_path(Source.TFDS_FEATURES)}: {reason}: {printable(', '.join(new), 300)}",
                UserWarning,
            )
        return tree if is_joined else None

    def _is_stored_alike(self, name: str, leaf: TfdsLeaf) -> bool:
        """True if a column is written as the feature of the source states."""
        source = self.leaves.get(name)
        if source is None or (leaf.labels is not None and source.labels is None):
            return False
        return _storage_of(source) == _storage_of(leaf) and (source.optional or not leaf.optional)


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


def _path_below(name: str, key: str) -> str:
    return f"{name}/{key}" if name else key


def _drop_parts(node: Json, kept: set[str], name: str) -> None:
    """Leave the columns of a feature out of `kept`, of which others are not there."""
    children, inner = _children(node), _inner(node)
    if children is not None:
        for key, child in children.items():
            _drop_parts(child, kept, _path_below(name, key))
    elif inner is not None:
        _drop_parts(inner, kept, name)
    elif not (names := _names(node, name)) <= kept:
        kept -= names


def _copy_columns(node: Json, kept: set[str], name: str) -> Json | None:
    """A copy of a tree of features with the columns to keep; None if it has none of them."""
    children, inner = _children(node), _inner(node)
    if children is not None:
        copied_children = {
            key: copy for key, child in children.items() if (copy := _copy_columns(child, kept, _path_below(name, key)))
        }
        return (
            {**node, "featuresDict": {**node["featuresDict"], "features": copied_children}} if copied_children else None
        )
    if inner is not None:
        copied_inner = _copy_columns(inner, kept, name)
        return {**node, "sequence": {**node["sequence"], "feature": copied_inner}} if copied_inner else None
    return node if _names(node, name) <= kept else None


def _join(new_tree: Json, tree: Json, kept: set[str], name: str, levels: int) -> bool:
    """Put the features of columns that are not kept into a tree, inside so many sequences; whether they fit."""
    while (inner := _inner(tree)) is not None:
        tree, levels = inner, levels + 1
    children, new_children = _children(tree), _children(new_tree)
    if children is None or new_children is None:
        return False
    for key, child in new_children.items():
        below = _path_below(name, key)
        if _names(child, below) <= kept:
            continue
        if key in children:
            if not _join(child, children[key], kept=kept, name=below, levels=levels):
                return False
            continue
        inner_tree = _inside(child, levels)
        if inner_tree is None:
            return False
        children[key] = inner_tree
    return True


def _inside(tree: Json, levels: int) -> Json | None:
    """The feature of the items of so many sequences around each leaf; None if there are not as many."""
    children = _children(tree)
    if children is not None:
        inner_children = {key: _inside(child, levels) for key, child in children.items()}
        if None in inner_children.values():
            return None
        return {**tree, "featuresDict": {"features": inner_children}}
    for _ in range(levels):
        inner = _inner(tree)
        if inner is None:
            return None
        tree = inner
    return tree


def _storage_of(leaf: TfdsLeaf) -> tuple[Any, ...]:
    """Facts of a leaf that decide how to store its values: a list of one length is stored like a tensor."""
    dtype = "string" if leaf.dtype in ("string", "object", "str", "bytes") else leaf.dtype
    ragged = max(len(leaf.sequence) - 1, 0)
    return dtype, leaf.encoding, leaf.sequence + leaf.shape, ragged, leaf.shape.count(None) > 1
