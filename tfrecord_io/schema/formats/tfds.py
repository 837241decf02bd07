"""Schemas of datasets that TFDS (tensorflow_datasets) wrote, from the ``features.json`` next to the files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import CorruptRecordError, SchemaError
from tfrecord_io.options import DEFAULT_STORAGE, INT64_MAX, StorageOptions
from tfrecord_io.schema.composite import VALUES, Composite
from tfrecord_io.schema.field import CONTEXT, Field, check_names
from tfrecord_io.schema.formats.tfds_features import TfdsLeaf, leaves_of
from tfrecord_io.schema.type_names import type_name
from tfrecord_io.storage.paths.plain_files import Directory

FEATURES = "features.json"
INFO = "dataset_info.json"
CLASS_LABELS = ("codes", "names")

_FILE_NAME = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"  # where dataset_info.json has no filepathTemplate


def from_tfds(
    path: str | os.PathLike[str], class_labels: str, storage_options: Mapping[str, Any] | None, filesystem: Any
) -> list[Field]:
    """The fields of a dataset that TFDS wrote; see `Schema.from_tfds`."""
    if class_labels not in CLASS_LABELS:
        raise ValueError(f"class_labels={class_labels!r}: expected one of {', '.join(CLASS_LABELS)}")
    folder = Directory(_directory(path), StorageOptions(storage_options, filesystem))
    text = folder.read(FEATURES)
    file = folder.display_path(FEATURES)
    if text is None:
        raise FileNotFoundError(2, "no features.json, which TFDS writes next to a dataset's files", file)
    try:
        leaves = leaves_of(json.loads(text))
        fields = [_field(leaf, _labels(folder, leaf) if class_labels == "names" else None) for leaf in leaves]
        check_names(fields)
        return fields
    except SchemaError as error:
        error.path = file
        raise
    except (LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise SchemaError(f"it is not a features.json of TFDS ({type(error).__name__})", path=file) from error
    except (ValueError, RecursionError) as error:
        raise SchemaError(f"it is not valid JSON ({type(error).__name__})", path=file) from error


def shard_lengths(path: str | os.PathLike[str], storage: StorageOptions = DEFAULT_STORAGE) -> dict[str, int]:
    """The number of records of each file by name, from ``dataset_info.json``, if any; SchemaError if damaged."""
    folder = Directory(_directory(path), storage)
    text = folder.read(INFO)
    if text is None:
        return {}
    try:
        info = json.loads(text)
        records: dict[str, int] = {}
        for split in info.get("splits", []):
            lengths = [int(length) for length in split.get("shardLengths", [])]
            for index, length in enumerate(lengths):
                records[_file_name(info, split, index, len(lengths))] = length
        if min(records.values(), default=0) < 0 or sum(records.values()) > INT64_MAX:
            raise ValueError("its shardLengths are not numbers of records")
        return records
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        reason = f"it is not a dataset_info.json of TFDS ({type(error).__name__}: {error})"
        raise SchemaError(reason, path=folder.display_path(INFO)) from error


def check_shards(
    path: str | os.PathLike[str], counts: Mapping[str, int], storage: StorageOptions = DEFAULT_STORAGE
) -> None:
    """Compare numbers of records, by path or name of the file, with ``dataset_info.json``; other files are ignored.

    CorruptRecordError if a file has more or fewer records, SchemaError if ``dataset_info.json`` is damaged.
    """
    lengths = shard_lengths(path, storage)
    for file, count in counts.items():
        expected = lengths.get(file.replace(os.sep, "/").rpartition("/")[2], count)
        if count != expected:
            reason = f"the file has {count} records, dataset_info.json lists {expected}"
            advice = "it was truncated at the end of a record, or not the file that TFDS wrote: download it again"
            raise CorruptRecordError(reason, path=file, expected=expected, got=count, advice=advice)


def _directory(path: str | os.PathLike[str]) -> str:
    text = os.fspath(path)
    head, _, name = text.replace(os.sep, "/").rpartition("/")
    return (head or ".") if name == FEATURES else text


def _file_name(info: Mapping[str, Any], split: Mapping[str, Any], index: int, count: int) -> str:
    """The name of a shard, as built by ShardedFileTemplate in core/naming.py."""
    values = {
        "DATASET": info["name"],
        "SPLIT": split["name"],
        "FILEFORMAT": info.get("fileFormat") or "tfrecord",
        "SHARD_INDEX": f"{index:05d}",
        "NUM_SHARDS": f"{count:05d}",
        "SHARD_X_OF_Y": f"{index:05d}-of-{count:05d}",
    }
    name = split.get("filepathTemplate") or _FILE_NAME
    for key, text in values.items():
        name = name.replace(f"{{{key}}}", text)
    return str(name).rpartition("/")[2]


def _labels(folder: Directory, leaf: TfdsLeaf) -> list[str] | None:
    """The names of a ClassLabel: the non-blank lines of its file (class_label_feature.py)."""
    text = None if leaf.labels is None else folder.read(f"{leaf.labels}.labels.txt")
    return None if text is None else [line.strip() for line in text.decode().split("\n") if line.strip()]


def _field(leaf: TfdsLeaf, labels: list[str] | None) -> Field:
    value = _value_type(leaf)
    sentinel = leaf.optional and not leaf.sequence and leaf.encoding == "none" and _is_signed(value)
    is_plain = leaf.encoding == "none" and labels is None and not sentinel and value != pa.uint64()
    lists = leaf.sequence + leaf.shape
    if is_plain and len(lists) == 1:
        (size,) = lists
        return Field(leaf.name, pa.list_(value) if size is None else pa.list_(value, size), part=CONTEXT)
    if is_plain and not lists:
        return Field(leaf.name, value)
    return _composite(leaf, type_name(value), labels, sentinel).field(leaf.name)


def _composite(leaf: TfdsLeaf, dtype: str, labels: list[str] | None, sentinel: bool) -> Composite:
    """The features that TFDS writes for a leaf: its values, its shape, and the lengths of nested sequences."""
    values, shapes = leaf.name, None
    if leaf.shape.count(None) > 1:
        values, shapes = f"{leaf.name}/value", f"{leaf.name}/shape"
    lengths = tuple(f"{values}/ragged_row_lengths_{level}" for level in range(len(leaf.sequence) - 1))
    if lengths:
        values, shapes = f"{values}/ragged_flat_values", shapes and f"{shapes}/ragged_flat_values"
    encoding = VALUES if leaf.encoding == "none" else leaf.encoding
    names = None if labels is None else tuple(labels)
    return Composite(values, dtype, encoding, leaf.shape, shapes, leaf.sequence, lengths, names, sentinel)


def _value_type(leaf: TfdsLeaf) -> pa.DataType:
    if leaf.dtype in ("string", "object", "str", "bytes"):
        return pa.string() if leaf.is_text else pa.binary()
    if leaf.dtype == "bfloat16" and leaf.encoding == "none":
        return pa.float32()  # as it is stored in a record
    try:
        return pa.from_numpy_dtype(np.dtype(leaf.dtype))
    except (TypeError, pa.ArrowNotImplementedError) as error:
        reason = f"TFDS's dtype {leaf.dtype} has no Arrow type"
        raise SchemaError(reason, feature=leaf.name, got=leaf.dtype) from error


def _is_signed(type_: pa.DataType) -> bool:
    """Whether TFDS writes the least value of the type for None."""
    return bool(pa.types.is_signed_integer(type_) or pa.types.is_float16(type_) or pa.types.is_float32(type_))
