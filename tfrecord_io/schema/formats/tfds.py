"""Schemas of datasets that TFDS (tensorflow_datasets) wrote: from the ``features.json`` beside the files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.schema.composite import VALUES, Composite
from tfrecord_io.schema.field import CONTEXT, Field
from tfrecord_io.schema.formats.tfds_features import Leaf, leaves_of
from tfrecord_io.schema.schema import Schema
from tfrecord_io.schema.type_names import type_name
from tfrecord_io.storage.paths.folders import Folder

FEATURES = "features.json"
INFO = "dataset_info.json"
CLASS_LABELS = ("codes", "names")

_NAMES = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # where dataset_info.json has no filepathTemplate


def from_tfds(
    path: str | os.PathLike[str],
    *,
    class_labels: str = "codes",
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> Schema:
    """The schema of a dataset that TFDS wrote.

    Parameters
    ----------
    path : str or PathLike
        The directory of the record files, where ``features.json`` is, or that file; local or a URL.
    class_labels : {"codes", "names"}
        What a ClassLabel is: its int64 code, or a dictionary column of the names in ``<feature>.labels.txt``, in which
        −1 (TFDS's "no label") is null. Without such a file it is its code.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    Schema
        A column for each leaf, nested keys joined by "/", of these types:

        - a Tensor of shape ``()`` is a value, ``(n,)`` a fixed_size_list, of more axes a fixed_shape_tensor; a free axis makes
          lists of the axes after it
        - a Sequence, Dataset or Video is a list of its items (fixed_size_list where its length is given), in which tensors are
          fixed_size_lists
        - Text is string; other strings, images and lazily decoded audio are binary
        - float64 comes as double, though a record holds float32 unless the tensor is encoded as bytes

        A tensor that is absent is null, and one that is optional also where it holds TFDS's stand-in for None: the least value of
        a signed number type.

    Raises
    ------
    FileNotFoundError
        There is no ``features.json``.
    SchemaError
        It is damaged, or has a feature class that is not known here.

    Examples
    --------
    >>> import os
    >>> os.makedirs("mnist")
    >>> _ = open("mnist/features.json", "w").write('''{
    ...   "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
    ...   "featuresDict": {"features": {
    ...     "image": {"pythonClassName": "tensorflow_datasets.core.features.image_feature.Image",
    ...               "image": {"shape": {"dimensions": ["28", "28", "1"]}, "dtype": "uint8", "encodingFormat": "png"}},
    ...     "label": {"pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
    ...               "classLabel": {"numClasses": "10"}}}}}''')
    >>> from_tfds("mnist")
    Schema of 2 columns
      image  binary
      label  int64
    """
    if class_labels not in CLASS_LABELS:
        raise ValueError(f"class_labels={class_labels!r}: expected one of {', '.join(CLASS_LABELS)}")
    folder = Folder(_directory(path), storage_options, filesystem)
    text = folder.read(FEATURES)
    if text is None:
        raise FileNotFoundError(
            2, "TFDS writes one beside the files of a dataset, and there is none", folder.shown(FEATURES)
        )
    try:
        leaves = leaves_of(json.loads(text))
        return Schema(_field(leaf, _labels(folder, leaf) if class_labels == "names" else None) for leaf in leaves)
    except SchemaError as error:
        error.path = folder.shown(FEATURES)
        raise
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it is no JSON ({type(error).__name__})", path=folder.shown(FEATURES)) from error


def shard_lengths(
    path: str | os.PathLike[str], *, storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
) -> dict[str, int]:
    """How many records each file of a TFDS dataset has, by its name, as ``dataset_info.json`` says; empty if there is none.

    Raises
    ------
    SchemaError
        The file is damaged.
    """
    folder = Folder(_directory(path), storage_options, filesystem)
    text = folder.read(INFO)
    if text is None:
        return {}
    try:
        info = json.loads(text)
        found: dict[str, int] = {}
        for split in info.get("splits", []):
            lengths = [int(length) for length in split.get("shardLengths", [])]
            for at, length in enumerate(lengths):
                found[_file_name(info, split, at, len(lengths))] = length
        return found
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        reason = f"it is no dataset_info.json of TFDS ({type(error).__name__}: {error})"
        raise SchemaError(reason, path=folder.shown(INFO)) from error


def check_shards(
    path: str | os.PathLike[str],
    counts: Mapping[str, int],
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> None:
    """Compare numbers of records with those of ``dataset_info.json``; files that it does not name are passed over.

    Parameters
    ----------
    path : str or PathLike
        The directory of the dataset.
    counts : mapping of str to int
        Records that were found, by path or name of the file.

    Raises
    ------
    CorruptRecordError
        A file has more or fewer.
    SchemaError
        ``dataset_info.json`` is damaged.
    """
    said = shard_lengths(path, storage_options=storage_options, filesystem=filesystem)
    for file, count in counts.items():
        expected = said.get(file.replace(os.sep, "/").rpartition("/")[2], count)
        if count != expected:
            raise CorruptRecordError(
                f"the file has {count} records, dataset_info.json says {expected}",
                path=file,
                expected=expected,
                got=count,
                advice="it was cut at the end of a record, or is not the file that TFDS wrote: get it again",
            )


def _directory(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    head, _, name = text.replace(os.sep, "/").rpartition("/")
    return (head or ".") if name == FEATURES else text


def _file_name(info: Mapping[str, Any], split: Mapping[str, Any], at: int, count: int) -> str:
    """As ShardedFileTemplate in core/naming.py makes it."""
    words = {
        "DATASET": info["name"],
        "SPLIT": split["name"],
        "FILEFORMAT": info.get("fileFormat") or "tfrecord",
        "SHARD_INDEX": f"{at:05d}",
        "NUM_SHARDS": f"{count:05d}",
        "SHARD_X_OF_Y": f"{at:05d}-of-{count:05d}",
    }
    name = split.get("filepathTemplate") or _NAMES
    for word, text in words.items():
        name = name.replace(f"{{{word}}}", text)
    return str(name).rpartition("/")[2]


def _labels(folder: Folder, leaf: Leaf) -> list[str] | None:
    """The names of a ClassLabel: the lines of its file that are not blank (class_label_feature.py)."""
    text = None if leaf.labels is None else folder.read(f"{leaf.labels}.labels.txt")
    return None if text is None else [line.strip() for line in text.decode().split("\n") if line.strip()]


def _field(leaf: Leaf, labels: list[str] | None) -> Field:
    value = _value_type(leaf)
    sentinel = leaf.optional and not leaf.sequence and leaf.encoding == "none" and _is_signed(value)
    is_plain = leaf.encoding == "none" and labels is None and not sentinel and value != pa.uint64()
    lists = leaf.sequence + leaf.shape
    if is_plain and len(lists) == 1:
        (size,) = lists
        return Field(leaf.name, pa.list_(value) if size is None else pa.list_(value, size), part=CONTEXT)
    if is_plain and not lists:
        return Field(leaf.name, value)
    return _assembly(leaf, type_name(value), labels, sentinel).field(leaf.name)


def _assembly(leaf: Leaf, dtype: str, labels: list[str] | None, sentinel: bool) -> Composite:
    """The features that TFDS makes of a leaf: beside its values its shape, and the lengths of sequences in sequences."""
    values, shapes = leaf.name, None
    if leaf.shape.count(None) > 1:
        values, shapes = f"{leaf.name}/value", f"{leaf.name}/shape"
    lengths = tuple(f"{values}/ragged_row_lengths_{at}" for at in range(len(leaf.sequence) - 1))
    if lengths:
        values, shapes = f"{values}/ragged_flat_values", shapes and f"{shapes}/ragged_flat_values"
    return Composite(
        values,
        dtype,
        VALUES if leaf.encoding == "none" else leaf.encoding,
        leaf.shape,
        shapes,
        leaf.sequence,
        lengths,
        None if labels is None else tuple(labels),
        sentinel,
    )


def _value_type(leaf: Leaf) -> pa.DataType:
    if leaf.dtype in ("string", "object", "str", "bytes"):
        return pa.string() if leaf.is_text else pa.binary()
    if leaf.dtype == "bfloat16" and leaf.encoding == "none":
        return pa.float32()  # as which a record has it
    try:
        return pa.from_numpy_dtype(np.dtype(leaf.dtype))
    except (TypeError, pa.ArrowNotImplementedError) as error:
        raise SchemaError(
            f"there is no Arrow type for TFDS's {leaf.dtype}", feature=leaf.name, got=leaf.dtype
        ) from error


def _is_signed(type_: pa.DataType) -> bool:
    """Whether the least value is one that nobody means."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_float16(type_) or pa.types.is_float32(type_))
