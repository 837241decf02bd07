"""``tf.io.parse_example`` without TensorFlow: from serialized Examples and a feature description to arrays.

`feature_parser` makes a function of each described feature, which makes its array of the values of a `FeatureBatch`
(`columns/feature_values.py`); rows of a RaggedFeature are found by `apps/tf_compat/row_partitions.py`. The
functions have a batch axis for all records, unless the batch `is_single`.

Tests: tests/apps/tf_compat/test_parse_example.py; with TensorFlow: tests/conformance/test_parse_example.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.apps.tf_compat.row_partitions import row_lengths
from tfrecord_io.apps.tf_compat.tf_features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RowSplits,
    SparseFeature,
    UniformRowLength,
    VarLenFeature,
    as_description,
)
from tfrecord_io.base import Limits
from tfrecord_io.columns import FeatureBatch, FeatureValues
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError, TFRecordError
from tfrecord_io.kit import Array, check_keywords, printable

Parsed = Any
"""An ndarray, a SparseTensor or a RaggedTensor; of a single record also a NumPy scalar or bytes."""

_DTYPES: dict[str, Any] = {"int64": np.int64, "float32": np.float32, "string": object}


@check_keywords
def parse_example(
    serialized: Any, features: Mapping[str, Any], *, limits: Limits = Limits.DEFAULT
) -> dict[str, Parsed]:
    """Parse serialized Examples by a feature description, like ``tf.io.parse_example``.

    >>> import tfrecord_io as tfr
    >>> batch = [
    ...     tfr.encode_example({"label": 3, "name": b"cat"}),
    ...     tfr.encode_example({"name": [b"a", b"dog"]}),
    ... ]
    >>> features = {
    ...     "label": tfr.io.FixedLenFeature([], "int64", -1),
    ...     "name": tfr.io.VarLenFeature("string"),
    ... }
    >>> parsed = tfr.io.parse_example(batch, features)
    >>> parsed["label"]
    array([ 3, -1])
    >>> parsed["name"].to_dense()
    array([[b'cat', b''],
           [b'a', b'dog']], dtype=object)

    Parameters
    ----------
    serialized : bytes, or sequence of bytes
        A batch of serialized Examples: a list, an array of objects, an Arrow array of binary. A single record is parsed
        like `parse_single_example` does: the results have no batch axis.
    features : mapping of str to feature
        `FixedLenFeature`, `VarLenFeature`, `FixedLenSequenceFeature`, `RaggedFeature` and `SparseFeature`, of this
        package or of TensorFlow.
    limits : Limits, optional
        Bytes that the padding of FixedLenSequenceFeatures may take beyond 512 times the bytes of the records.

    Returns
    -------
    dict of str to ndarray, SparseTensor or RaggedTensor
        In the description's order. FixedLenFeature: an array of shape [records, *shape]; FixedLenSequenceFeature: of
        shape [records, longest, *shape], padded; VarLenFeature and SparseFeature: a `SparseTensor`; RaggedFeature: a
        `RaggedTensor`. dtypes are int64, float32 and object (of bytes).

    Raises
    ------
    FeatureNotFoundError
        A record lacks a FixedLenFeature that has no default; the error's `record` is its index in the batch.
    FeatureTypeError
        A record has the feature with another feature type.
    DecodeError
        A record has a wrong number of values, or indices or rows that do not fit them, or is not an Example; or padding
        to the longest record takes more than `Limits.expansion_bytes` allows.
    SchemaError
        The description is one that TensorFlow rejects.

    Notes
    -----
    If several records are faulty, the error of the first one is raised. Row partitions and sparse indices that do not
    fit their values are always errors; TensorFlow may return a broken tensor.
    """
    described = as_description(features)
    if not described:
        raise SchemaError("the feature description is empty")
    dtypes = feature_dtypes(described)
    is_single = isinstance(serialized, bytes | bytearray | memoryview)
    payloads = [bytes(serialized)] if is_single else as_payloads(serialized)
    parsers = {name: feature_parser(name, feature) for name, feature in described.items()}
    batch = FeatureBatch.decode(payloads, dtypes, is_single=is_single, limits=limits)
    if is_single and batch.fault is not None:
        raise batch.fault
    parsed, faults = parse_columns(parsers, batch)
    raise_first([batch.fault, *faults])
    return parsed


@check_keywords
def parse_single_example(
    serialized: bytes | bytearray | memoryview, features: Mapping[str, Any], *, limits: Limits = Limits.DEFAULT
) -> dict[str, Parsed]:
    """Parse a serialized Example by a feature description, like ``tf.io.parse_single_example``.

    >>> import tfrecord_io as tfr
    >>> record = tfr.encode_example({"label": 3})
    >>> tfr.io.parse_single_example(record, {"label": tfr.io.FixedLenFeature([], "int64")})
    {'label': np.int64(3)}

    Parameters
    ----------
    serialized : bytes
    features, limits
        As in `parse_example`.

    Returns
    -------
    dict of str to ndarray, NumPy scalar, bytes, SparseTensor or RaggedTensor
        As of `parse_example`, without the batch axis.

    Raises
    ------
    FeatureNotFoundError, FeatureTypeError, DecodeError, SchemaError
        As in `parse_example`.
    """
    if not isinstance(serialized, bytes | bytearray | memoryview):
        raise TypeError(f"expected the bytes of a record, got {type(serialized).__name__}; parse_example takes several")
    return parse_example(serialized, features, limits=limits)


def as_payloads(records: Any) -> Sequence[bytes]:
    if callable(getattr(records, "to_pylist", None)):
        payloads = records.to_pylist()
    elif isinstance(records, np.ndarray):
        if records.dtype != object:  # NumPy's bytes drop trailing NULs
            raise TypeError(f"expected records as bytes or an array of objects, got an array of {records.dtype}")
        payloads = records.tolist()
    elif isinstance(records, str) or not isinstance(records, Iterable):
        raise TypeError(f"expected the bytes of a record, or of several, got {type(records).__name__}")
    else:
        payloads = list(records)
    for i, payload in enumerate(payloads):
        if not isinstance(payload, bytes):
            raise TypeError(f"record {i}: expected bytes, got {type(payload).__name__}")
    return payloads


def feature_dtypes(features: Mapping[str, Feature]) -> dict[str, str]:
    """The dtypes of the features to decode; each is dense, sparse or ragged, and has one dtype, as in TensorFlow."""
    roles: dict[str, tuple[str, ...]] = {}

    def add(name: str, *role: str) -> None:
        if roles.setdefault(name, role) != role:
            reason = f"it is described both as {' '.join(roles[name])} and as {' '.join(role)}"
            raise SchemaError(reason, feature=name, expected=roles[name], got=role)

    for name, feature in features.items():
        if isinstance(feature, SparseFeature):
            add(feature.value_key, "sparse", feature.dtype)
            for key in feature.index_keys:
                add(key, "sparse", "int64")
        elif isinstance(feature, RaggedFeature):
            add(feature.value_key or name, "ragged", feature.dtype, feature.row_splits_dtype)
            for partition in feature.partitions:
                if not isinstance(partition, UniformRowLength):
                    add(partition.key, "ragged", "int64", feature.row_splits_dtype)
        else:
            add(name, "sparse" if isinstance(feature, VarLenFeature) else "dense", feature.dtype)
    return {name: role[1] for name, role in roles.items()}


def parse_columns(
    parsers: Mapping[str, Callable[[FeatureBatch], Parsed]], batch: FeatureBatch
) -> tuple[dict[str, Parsed], list[TFRecordError]]:
    """The values of each parser, and the errors of those that failed."""
    parsed: dict[str, Parsed] = {}
    faults: list[TFRecordError] = []
    for name, parse in parsers.items():
        try:
            parsed[name] = parse(batch)
        except TFRecordError as error:
            faults.append(error)
    return parsed, faults


def raise_first(faults: Sequence[TFRecordError | None]) -> None:
    """Raise the error of the first faulty record, if any."""
    raised = [fault for fault in faults if fault is not None]
    if raised:
        raise min(raised, key=lambda fault: fault.record or 0)


def feature_parser(name: str, feature: Feature) -> Callable[[FeatureBatch], Parsed]:
    """The function that makes the array of a feature; SchemaError for a description that TensorFlow rejects."""
    if isinstance(feature, FixedLenFeature):
        return partial(_parse_fixed, name, feature, _default(name, feature))
    if isinstance(feature, FixedLenSequenceFeature):
        default = _default(name, feature)
        assert default is not None
        return partial(padded_sequence, name, feature, default)
    if isinstance(feature, VarLenFeature):
        return partial(_parse_varlen, name)
    return partial(_sparse, feature) if isinstance(feature, SparseFeature) else partial(ragged_rows, name, feature)


def _default(name: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> Array | None:
    """The default values, flat; None if the feature is required."""
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise SchemaError("a FixedLenSequenceFeature in an Example needs allow_missing=True", feature=name)
        default, count = feature.default_value, 1
        if default is None:
            default = b"" if feature.dtype == "string" else 0
    else:
        default, count = feature.default_value, math.prod(feature.shape)
        if default is None or count == 0:  # to TensorFlow, a default without values is not a default
            return None
    values = _as_values(name, feature.dtype, default)
    if len(values) != count:
        raise SchemaError(f"the default has {len(values)} values", feature=name, expected=count, got=len(values))
    return values


def _as_values(name: str, dtype: str, default: Any) -> Array:
    items = np.array(default, object).reshape(-1).tolist()
    shown = printable(repr(default))
    if dtype == "string":
        try:
            items = [item.encode() if isinstance(item, str) else item for item in items]
        except UnicodeEncodeError as error:
            reason = f"the default {shown} has a lone surrogate, which UTF-8 cannot hold"
            raise SchemaError(reason, feature=name, expected="text or bytes", got=default) from error
    allowed = {"int64": int, "float32": int | float, "string": bytes}[dtype]
    if not all(isinstance(item, allowed) for item in items):
        raise SchemaError(f"the default {shown} is not of {dtype}", feature=name, expected=dtype, got=default)
    values = np.empty(len(items), _DTYPES[dtype])
    try:
        with np.errstate(over="raise"):  # a finite float that would become infinite
            values[:] = items
    except (OverflowError, FloatingPointError) as error:
        reason = f"the default {shown} is out of range of {dtype}"
        raise SchemaError(reason, feature=name, expected=dtype, got=default) from error
    return values


def _parse_fixed(name: str, feature: FixedLenFeature, default: Array | None, batch: FeatureBatch) -> Parsed:
    column = batch.columns[name]
    size, records, present = math.prod(feature.shape), len(column.counts), column.present
    if default is None and not present.all():
        reason = "the record has no value for it, and it has no default"
        advice = "describe it as FixedLenFeature(default_value=…), or describe it as a VarLenFeature"
        advice_cli = "describe it as a VarLenFeature"
        raise FeatureNotFoundError(
            reason, record=int((~present).argmax()), feature=name, hint=advice, hint_cli=advice_cli
        )
    column.refuse_records(present & (column.counts != size), size)
    rows = column.values
    if default is not None and not present.all():
        rows = np.empty((records, size), column.values.dtype)
        rows[present] = column.values.reshape(-1, size)
        rows[~present] = default
    array = rows.reshape(records, *feature.shape)
    return array[0] if batch.is_single else array


def padded_sequence(name: str, feature: FixedLenSequenceFeature, default: Array, batch: FeatureBatch) -> Parsed:
    column = batch.columns[name]
    size = math.prod(feature.shape)
    column.refuse_records(column.counts % size != 0, f"a multiple of {size}")
    if batch.is_single:
        return column.values.reshape(len(column.values) // size, *feature.shape)
    records, longest = len(column.counts), int(column.counts.max(initial=0))
    _take_padding(column, batch)
    padded = np.empty((records, longest), column.values.dtype)
    filled = np.arange(longest) < column.counts[:, None]
    padded[filled] = column.values
    padded[~filled] = default[0]
    return padded.reshape(records, longest // size, *feature.shape)


def _take_padding(column: FeatureValues, batch: FeatureBatch) -> None:
    """Count the padding of all records to the longest; DecodeError at the record whose padding exceeds the room."""
    expansion = batch.padding
    width, counts = column.values.dtype.itemsize, column.counts.astype(np.float64)
    cells = np.arange(1, len(counts) + 1) * np.maximum.accumulate(counts)
    sizes = cells * (width + 1) - np.cumsum(counts) * width  # with a mask of all cells
    if not len(sizes) or expansion.take(int(sizes[-1])):
        return
    record = int((sizes > expansion.room).argmax())
    size = int(sizes[record])
    reason = f"{record + 1} records padded to the longest take {size} bytes more than their values"
    reason = expansion.excess(reason)
    advice = f"{expansion.advice(int(sizes[-1]))}, or describe it as a VarLenFeature or RaggedFeature"
    raise DecodeError(reason, record=record, feature=column.name, expected=expansion.room, got=size, hint=advice)


def _parse_varlen(name: str, batch: FeatureBatch) -> SparseTensor:
    column = batch.columns[name]
    within = np.arange(len(column.values)) - np.repeat(column.starts, column.counts)
    longest = int(column.counts.max(initial=0))
    if batch.is_single:
        return SparseTensor(within[:, None], column.values, np.array([longest]))
    indices = np.column_stack([column.records, within])
    return SparseTensor(indices, column.values, np.array([len(column.counts), longest]))


def _sparse(feature: SparseFeature, batch: FeatureBatch) -> SparseTensor:
    column = batch.columns[feature.value_key]
    axes = [] if batch.is_single else [column.records]
    for key, size in zip(feature.index_keys, feature.dense_shape, strict=True):
        index = batch.columns[key]
        reason = "expected {} indices, one per value, got {}"
        index.refuse_records(index.counts != column.counts, column.counts, reason=reason)
        if np.any(bad := (index.values < 0) | (index.values >= size)):
            first = int(bad.argmax())
            record, got = int(index.records[first]), int(index.values[first])
            reason = f"the index {got} is out of range for size {size}"
            raise DecodeError(reason, record=record, feature=key, expected=f"0 to {size - 1}", got=got)
        axes.append(index.values)
    indices, values = np.column_stack(axes), column.values
    if not feature.already_sorted:
        order = np.lexsort(axes[::-1])
        indices, values = indices[order], values[order]
    shape = feature.dense_shape if batch.is_single else (len(column.counts), *feature.dense_shape)
    return SparseTensor(indices, values, np.array(shape, np.int64))


def ragged_rows(name: str, feature: RaggedFeature, batch: FeatureBatch) -> Array | RaggedTensor:
    column = batch.columns[feature.value_key or name]
    flat, counts = column.values, column.counts
    levels: list[Array] = []  # row lengths, the outermost level first
    for partition in reversed(feature.partitions):
        if isinstance(partition, UniformRowLength):
            size = partition.length
            column.refuse_records(counts % size != 0, f"rows of {size}")
            counts = counts // size
            if levels:
                levels.insert(0, np.full(int(counts.sum()), size))
            else:  # the innermost rows have the same length: they become an axis
                flat = flat.reshape(-1, size, *flat.shape[1:])
        else:
            splits = batch.columns[partition.key]
            needed = (counts > 0) | (batch.is_single and isinstance(partition, RowSplits))
            _refuse_missing(
                name, type(partition).__name__, splits=splits, items=counts, missing=~splits.present & needed
            )
            lengths, counts = row_lengths(partition, splits, counts, batched=not batch.is_single)
            levels.insert(0, lengths)
    if not batch.is_single:
        levels.insert(0, counts)
    return RaggedTensor(flat, tuple(row_splits_of(name, feature, lengths) for lengths in levels)) if levels else flat


def _refuse_missing(name: str, partition: str, splits: FeatureValues, items: Array, missing: Array) -> None:
    """Raise DecodeError for the first record that lacks the partition of its values, if any."""
    if np.any(missing):
        record = int(missing.argmax())
        split = f"the {items[record]} items of the RaggedFeature '{printable(name)}'"
        reason = f"the record lacks the {partition} that split {split} into rows"
        raise DecodeError(reason, record=record, feature=splits.name, expected=int(items[record]), got=0)


def row_splits_of(name: str, feature: RaggedFeature, lengths: Array) -> Array:
    splits = np.concatenate([[0], np.cumsum(lengths)])
    dtype = np.dtype(feature.row_splits_dtype)
    if splits[-1] > np.iinfo(dtype).max:
        reason = f"{splits[-1]} values are too many for {dtype}"
        raise SchemaError(reason, feature=name, hint='describe it by RaggedFeature(row_splits_dtype="int64")')
    return splits.astype(dtype)


class SparseTensor(NamedTuple):
    """The values of a tensor that are present, and their indices; like ``tf.sparse.SparseTensor``.

    Attributes
    ----------
    indices : int64 ndarray of shape [values, rank]
    values : ndarray of shape [values]
    dense_shape : int64 ndarray of shape [rank]

    Examples
    --------
    >>> SparseTensor(np.array([[0, 2]]), np.array([7]), np.array([1, 3])).to_dense()
    array([[0, 0, 7]])
    """

    indices: Array
    values: Array
    dense_shape: Array

    def to_dense(self, default_value: Any = None) -> Array:
        """The dense tensor; absent values are `default_value`, by default 0 or b""."""
        if default_value is None:
            default_value = b"" if self.values.dtype == object else 0
        dense = np.full(tuple(self.dense_shape), default_value, self.values.dtype)
        dense[tuple(self.indices.T)] = self.values
        return dense


class RaggedTensor(NamedTuple):
    """Nested rows of different lengths; like ``tf.RaggedTensor``.

    Attributes
    ----------
    flat_values : ndarray
        All values, one after another; of rank 2 or more if the innermost rows all have the same length.
    nested_row_splits : tuple of ndarray
        The outermost first: row i of a level is the items from split i to split i + 1 of the next inner level.

    Examples
    --------
    >>> RaggedTensor(np.array([1, 2, 3]), (np.array([0, 2, 2, 3]),)).to_list()
    [[1, 2], [], [3]]
    """

    flat_values: Array
    nested_row_splits: tuple[Array, ...]

    @property
    def row_splits(self) -> Array:
        """The outermost splits."""
        return self.nested_row_splits[0]

    @property
    def values(self) -> Array | RaggedTensor:
        """The items that the outermost splits divide."""
        inner = self.nested_row_splits[1:]
        return RaggedTensor(self.flat_values, inner) if inner else self.flat_values

    def to_list(self) -> list[Any]:
        """The rows as nested lists."""
        values = self.values
        items = values.to_list() if isinstance(values, RaggedTensor) else values.tolist()
        splits = self.row_splits.tolist()
        return [items[begin:end] for begin, end in pairwise(splits)]
