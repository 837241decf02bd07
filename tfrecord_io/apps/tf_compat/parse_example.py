"""``tf.io.parse_example`` without TensorFlow: from serialized Examples and a feature description to arrays.

Every form of partition is converted to row lengths, for a whole batch at once. TensorFlow checks partitions only on
request, and not all of them; here partitions that do not fit the values are always errors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrecord_io.apps.tf_compat.tf_features import (
    KINDS,
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    Partition,
    RaggedFeature,
    RowLengths,
    RowLimits,
    RowSplits,
    RowStarts,
    SparseFeature,
    UniformRowLength,
    ValueRowIds,
    VarLenFeature,
    as_description,
)
from tfrecord_io.base import DEFAULT_LIMITS, Expansion, Limits, check_keywords
from tfrecord_io.bytes import (
    Array,
    ColumnBuffers,
    Kind,
    Layout,
    Plan,
    PlanColumn,
    RecordType,
    Text,
    get_engine,
    not_examples,
    to_error,
)
from tfrecord_io.columns import column_mask, listed_values, runs_within
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError, TFRecordError, printable

Parsed = Any
"""An ndarray, a SparseTensor or a RaggedTensor; of a single record also a NumPy scalar or bytes."""

_DTYPES: dict[str, Any] = {"int64": np.int64, "float32": np.float32, "string": object}
_CHUNK_BYTES = 1 << 30  # of payloads, so that no column overflows its 32-bit offsets
_MAX_EMPTY_ROWS = 1 << 24  # in a batch: ValueRowIds can claim empty rows without a byte for each
# The exact types: where np.int64 is long, an array of long long prints as another dtype.
_NUMBERS: dict[Kind, type] = {Kind.INT64: np.int64, Kind.FLOAT: np.float32}


@check_keywords
def parse_example(
    serialized: Any, features: Mapping[str, Any], *, limits: Limits = DEFAULT_LIMITS
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
    single = isinstance(serialized, bytes | bytearray | memoryview)
    payloads = [bytes(serialized)] if single else as_payloads(serialized)
    expansion = Expansion(limits.expansion_bytes, sum(map(len, payloads)))
    parsers = {name: feature_parser(name, feature, expansion) for name, feature in described.items()}
    batch = decode(payloads, dtypes)
    if single and batch.fault is not None:
        raise batch.fault
    parsed, faults = parse_columns(parsers, batch, single)
    raise_first([batch.fault, *faults])
    return parsed


@check_keywords
def parse_single_example(
    serialized: bytes | bytearray | memoryview, features: Mapping[str, Any], *, limits: Limits = DEFAULT_LIMITS
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
    elif isinstance(records, str):
        raise TypeError("expected records as bytes, got str")
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
    parsers: Mapping[str, Callable[[Batch, bool], Parsed]], batch: Batch, single: bool
) -> tuple[dict[str, Parsed], list[TFRecordError]]:
    """The values of each parser, and the errors of those that failed."""
    parsed: dict[str, Parsed] = {}
    faults: list[TFRecordError] = []
    for name, parse in parsers.items():
        try:
            parsed[name] = parse(batch, single)
        except TFRecordError as error:
            faults.append(error)
    return parsed, faults


def raise_first(faults: Sequence[TFRecordError | None]) -> None:
    """Raise the error of the first faulty record, if any."""
    raised = [fault for fault in faults if fault is not None]
    if raised:
        raise min(raised, key=lambda fault: fault.record or 0)


def feature_parser(name: str, feature: Feature, expansion: Expansion) -> Callable[[Batch, bool], Parsed]:
    if isinstance(feature, FixedLenFeature):
        return partial(_parse_fixed, name, feature, _default(name, feature))
    if isinstance(feature, FixedLenSequenceFeature):
        default = _default(name, feature)
        assert default is not None
        return partial(padded_sequence, name, feature, default, expansion)
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
    if dtype == "string":
        items = [item.encode() if isinstance(item, str) else item for item in items]
    allowed = {"int64": int, "float32": int | float, "string": bytes}[dtype]
    shown = printable(repr(default))
    if not all(isinstance(item, allowed) for item in items):
        raise SchemaError(f"the default {shown} is not of {dtype}", feature=name, expected=dtype, got=default)
    values = np.empty(len(items), _DTYPES[dtype])
    try:
        values[:] = items
    except OverflowError as error:
        reason = f"the default {shown} is out of range of {dtype}"
        raise SchemaError(reason, feature=name, expected=dtype, got=default) from error
    return values


def _parse_fixed(name: str, feature: FixedLenFeature, default: Array | None, batch: Batch, single: bool) -> Parsed:
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
    return array[0] if single else array


def padded_sequence(
    name: str, feature: FixedLenSequenceFeature, default: Array, expansion: Expansion, batch: Batch, single: bool
) -> Parsed:
    column = batch.columns[name]
    size = math.prod(feature.shape)
    column.refuse_records(column.counts % size != 0, f"a multiple of {size}")
    if single:
        return column.values.reshape(len(column.values) // size, *feature.shape)
    records, longest = len(column.counts), int(column.counts.max(initial=0))
    _take_padding(column, expansion)
    padded = np.empty((records, longest), column.values.dtype)
    filled = np.arange(longest) < column.counts[:, None]
    padded[filled] = column.values
    padded[~filled] = default[0]
    return padded.reshape(records, longest // size, *feature.shape)


def _take_padding(column: FeatureValues, expansion: Expansion) -> None:
    """Count the padding of all records to the longest; DecodeError at the record whose padding exceeds the room."""
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


def _parse_varlen(name: str, batch: Batch, single: bool) -> SparseTensor:
    column = batch.columns[name]
    within = np.arange(len(column.values)) - np.repeat(column.starts, column.counts)
    longest = int(column.counts.max(initial=0))
    if single:
        return SparseTensor(within[:, None], column.values, np.array([longest]))
    indices = np.column_stack([column.records, within])
    return SparseTensor(indices, column.values, np.array([len(column.counts), longest]))


def _sparse(feature: SparseFeature, batch: Batch, single: bool) -> SparseTensor:
    column = batch.columns[feature.value_key]
    axes = [] if single else [column.records]
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
    shape = feature.dense_shape if single else (len(column.counts), *feature.dense_shape)
    return SparseTensor(indices, values, np.array(shape, np.int64))


def ragged_rows(name: str, feature: RaggedFeature, batch: Batch, single: bool) -> Array | RaggedTensor:
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
            needed = (counts > 0) | (single and isinstance(partition, RowSplits))
            _refuse_missing(
                name, type(partition).__name__, splits=splits, items=counts, missing=~splits.present & needed
            )
            lengths, counts = row_lengths(partition, splits, counts, batched=not single)
            levels.insert(0, lengths)
    if not single:
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


def row_lengths(partition: Partition, splits: FeatureValues, items: Array, *, batched: bool) -> tuple[Array, Array]:
    """Compute the lengths of all rows, and the number of rows of each record.

    `splits` is the feature that describes the partition, `items` (int64) the number of items of each record, which are
    split into rows. If `batched`, empty row splits mean no rows: TensorFlow accepts them in a batch only.
    """
    if not isinstance(partition, ValueRowIds):
        _refuse(splits, (splits.values < 0) | (splits.values > items[splits.records]), items, "is out of range")
    lengths, rows = _LENGTHS[type(partition)](splits, items)
    split = replace(splits, values=lengths, counts=rows)
    _refuse(split, lengths < 0, items, "is a negative row length")
    ends = np.concatenate([[0], np.cumsum(lengths)])
    total = ends[split.starts + rows] - ends[split.starts]
    if isinstance(partition, RowSplits) and not batched:
        splits.refuse_records(splits.counts == 0, 1, reason="expected at least {} row split, got {}")
    splits.refuse_records(total != items, items, total, "there are {} values, but the rows have {}")
    return lengths, rows


def _split_by_limits(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    before = np.roll(splits.values, 1)
    before[splits.starts[splits.counts > 0]] = 0
    return splits.values - before, splits.counts


def _split_by_splits(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    first = np.zeros(len(splits.values), bool)
    first[splits.starts[splits.counts > 0]] = True
    _refuse(splits, first & (splits.values != 0), items, "is the first of the row splits, which must be 0")
    limits = replace(splits, values=splits.values[~first], counts=np.maximum(splits.counts - 1, 0))
    return _split_by_limits(limits, items)


def _split_by_starts(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    after = np.roll(splits.values, -1)
    filled = splits.counts > 0
    after[(splits.starts + splits.counts - 1)[filled]] = items[filled]
    return after - splits.values, splits.counts


def _split_by_row_ids(splits: FeatureValues, items: Array) -> tuple[Array, Array]:
    splits.refuse_records(splits.counts != items, items, reason="expected {} row numbers, one per value, got {}")
    _refuse(splits, (splits.values < 0) | (splits.values > items.sum() + _MAX_EMPTY_ROWS), items, "is not a row number")
    steps, _ = _split_by_limits(splits, items)
    _refuse(splits, steps < 0, items, "is less than the one before")
    rows = np.zeros(len(items), np.int64)
    filled = splits.counts > 0
    rows[filled] = splits.values[(splits.starts + splits.counts - 1)[filled]] + 1
    if np.any(bad := np.cumsum(rows) > np.cumsum(items) + _MAX_EMPTY_ROWS):
        reason, record = "too many rows without a value", int(bad.argmax())
        raise DecodeError(reason, record=record, feature=splits.name, expected=_MAX_EMPTY_ROWS)
    first_row = np.cumsum(rows) - rows
    return np.bincount(splits.values + first_row[splits.records], minlength=int(rows.sum())), rows


_LENGTHS: dict[type, Callable[[FeatureValues, Array], tuple[Array, Array]]] = {
    RowLengths: lambda splits, items: (splits.values, splits.counts),
    RowLimits: _split_by_limits,
    RowSplits: _split_by_splits,
    RowStarts: _split_by_starts,
    ValueRowIds: _split_by_row_ids,
}


def _refuse(splits: FeatureValues, bad: Array, items: Array, problem: str) -> None:
    """Raise DecodeError for the first bad value, if any."""
    if np.any(bad):
        first = int(bad.argmax())
        record, got = int(splits.records[first]), int(splits.values[first])
        reason, expected = f"the row partition's {got} {problem}", f"0 to {items[record]}"
        raise DecodeError(reason, record=record, feature=splits.name, expected=expected, got=got)


@dataclass(frozen=True, slots=True)
class FeatureValues:
    """Values of one feature in all records."""

    name: str
    values: Array  # int64, float32 or object (bytes)
    counts: Array  # int64: number of values of each record
    present: Array  # bool: True if a record has the feature, with a type

    @property
    def starts(self) -> Array:
        """Index of the first value of each record."""
        return np.cumsum(self.counts) - self.counts

    @property
    def records(self) -> Array:
        """Record of each value."""
        return np.repeat(np.arange(len(self.counts)), self.counts)

    def refuse_records(
        self, bad: Array, expected: Any, got: Array | None = None, reason: str = "expected {} values, got {}"
    ) -> None:
        """Raise DecodeError for the first bad record; `reason` is a format string for what it expected and got."""
        if np.any(bad):
            record = int(bad.argmax())
            want = int(expected[record]) if isinstance(expected, np.ndarray) else expected
            have = int((self.counts if got is None else got)[record])
            raise DecodeError(reason.format(want, have), record=record, feature=self.name, expected=want, got=have)


@dataclass(frozen=True, slots=True)
class StepValues:
    """Values of one feature list in all records."""

    values: FeatureValues  # here a step counts as a record
    counts: Array  # int64: number of steps of each record
    present: Array  # bool: True if a record has the feature list

    @property
    def records(self) -> Array:
        """Record of each step."""
        return np.repeat(np.arange(len(self.counts)), self.counts)


@dataclass(frozen=True, slots=True)
class Batch:
    """Features of all records, or of the records before a fault."""

    columns: dict[str, FeatureValues]
    fault: TFRecordError | None
    lists: dict[str, StepValues] = field(default_factory=dict)  # the feature lists of SequenceExamples


def decode(payloads: Sequence[bytes], dtypes: Mapping[str, str], lists: Mapping[str, str] | None = None) -> Batch:
    """Decode features of dtype int64, float32 or string, up to the first record that is damaged or has another kind.

    With `lists`, the dtypes of feature lists, records are SequenceExamples, and `dtypes` those of their contexts.
    """
    columns = [PlanColumn(name, KINDS[dtype], Layout.LIST, Text.NO) for name, dtype in dtypes.items()]
    columns += [
        PlanColumn(name, KINDS[dtype], Layout.LIST, Text.NO, steps=True) for name, dtype in (lists or {}).items()
    ]
    record_type = RecordType.EXAMPLE if lists is None else RecordType.SEQUENCE_EXAMPLE
    plan = Plan(
        tuple(columns), unknown="skip", check_crc=False, record_type=record_type, names_in_both=True, typed_empties=True
    )
    engine = get_engine()
    decoder = engine.decoder(plan)
    parts: list[Sequence[ColumnBuffers]] = []
    fault: TFRecordError | None = None
    runs = runs_within(np.fromiter(map(len, payloads), np.int64, len(payloads)), _CHUNK_BYTES)
    for begin, end in [*runs] or [(0, 0)]:
        progress = decoder.feed(engine.frame(payloads[begin:end]))
        parts.append(decoder.take())
        if progress.fault is not None:
            fault = to_error(progress.fault, record=begin)
            fault.offset = fault.records_intact = fault.advice = None  # they make sense for files only
            break
    if lists is None:
        fault = fault or not_examples(decoder.counts, None, is_declared=True)
    chunks = dict(zip(columns, zip(*parts, strict=True), strict=True))
    return Batch(
        {c.name: _concat_values(c.name, part, c.kind) for c, part in chunks.items() if not c.steps},
        fault,
        {c.name: _concat_steps(c.name, part, c.kind) for c, part in chunks.items() if c.steps},
    )


def _concat_steps(name: str, chunks: Sequence[ColumnBuffers], kind: Kind) -> StepValues:
    counts, present = [], []
    for chunk in chunks:
        offsets = chunk.offsets if chunk.is_list else None  # None: no record has the feature list
        counts.append(np.zeros(chunk.rows, np.int64) if offsets is None else np.diff(offsets).astype(np.int64))
        present.append(np.zeros(chunk.rows, bool) if offsets is None else column_mask(chunk))
    return StepValues(
        _concat_values(name, [chunk.steps for chunk in chunks], kind), np.concatenate(counts), np.concatenate(present)
    )


def _concat_values(name: str, chunks: Sequence[ColumnBuffers | None], kind: Kind) -> FeatureValues:
    parts = [listed_values(chunk, kind) for chunk in chunks]
    values, counts, present = parts[0] if len(parts) == 1 else map(np.concatenate, zip(*parts, strict=True))
    return FeatureValues(name, values.view(_NUMBERS[kind]) if kind in _NUMBERS else values, counts, present)
