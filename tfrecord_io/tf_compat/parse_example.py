"""``tf.io.parse_example`` without TensorFlow: serialized Examples and a feature description to arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError, TFRecordError, printable
from tfrecord_io.schema.formats.row_partitions import UniformRowLength
from tfrecord_io.schema.formats.tf_features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    as_description,
)
from tfrecord_io.schema.shapes import fixed_part
from tfrecord_io.tf_compat.composite import RaggedTensor, SparseTensor
from tfrecord_io.tf_compat.feature_batch import Batch, BatchValues, Demands, decode
from tfrecord_io.tf_compat.row_partitions import Runs, row_lengths

__all__ = ["parse_example"]

Parsed = Any
"""An ndarray, a SparseTensor or a RaggedTensor; of a single record also a NumPy scalar or bytes."""

_DTYPES: dict[str, Any] = {"int64": np.int64, "float32": np.float32, "string": object}


def parse_example(records: Any, description: Mapping[str, Any]) -> dict[str, Parsed]:
    """Parse serialized Examples by a feature description, as ``tf.io.parse_example`` does.

    Parameters
    ----------
    records : bytes, or sequence of bytes
        A batch of serialized Examples: a list, an array of objects, an Arrow array of binary. One record on its own
        is parsed as ``tf.io.parse_single_example`` does: what comes out has no batch axis.
    description : mapping of str to feature
        `FixedLenFeature`, `VarLenFeature`, `FixedLenSequenceFeature`, `RaggedFeature`, `SparseFeature`: ours, or
        TensorFlow's own.

    Returns
    -------
    dict of str to ndarray, SparseTensor or RaggedTensor
        In the description's order. FixedLenFeature: an array of shape [records, *shape]; FixedLenSequenceFeature: of
        shape [records, longest, *shape], padded; VarLenFeature and SparseFeature: a `SparseTensor`; RaggedFeature: a
        `RaggedTensor`. dtypes are int64, float32 and object (of bytes).

    Raises
    ------
    FeatureNotFoundError
        A record lacks a FixedLenFeature that has no default; its `record` counts in the batch.
    FeatureTypeError
        A record has a feature of another kind.
    DecodeError
        A record has another number of values, indices or rows that fit none, or is no Example.
    SchemaError
        The description is none that TensorFlow takes.

    Notes
    -----
    Of several faults that of the first record is raised. Row partitions and sparse indices that do not fit their values
    are always errors, where TensorFlow may give a broken tensor.

    Examples
    --------
    >>> from tfrecord_io.tf_compat.example import encode_example
    >>> from tfrecord_io.schema.formats.tf_features import FixedLenFeature, VarLenFeature
    >>> batch = [encode_example({"label": 3, "name": b"cat"}), encode_example({"name": [b"a", b"dog"]})]
    >>> found = parse_example(batch, {"label": FixedLenFeature([], "int64", -1), "name": VarLenFeature("string")})
    >>> found["label"]
    array([ 3, -1])
    >>> found["name"].to_dense()
    array([[b'cat', b''],
           [b'a', b'dog']], dtype=object)
    """
    features = as_description(description)
    if not features:
        raise SchemaError("a feature description with no feature")
    demands = _demands(features)
    makers = {name: _maker(name, feature) for name, feature in features.items()}
    single = isinstance(records, bytes | bytearray | memoryview)
    batch = decode([bytes(records)] if single else _payloads(records), demands)
    return _made(makers, batch, single)


def _made(makers: Mapping[str, Callable[[Batch, bool], Parsed]], batch: Batch, single: bool) -> dict[str, Parsed]:
    """What the makers give; else the first record's fault."""
    if single and batch.fault is not None:
        raise batch.fault
    found, faults = {}, [] if batch.fault is None else [batch.fault]
    for name, make in makers.items():
        try:
            found[name] = make(batch, single)
        except TFRecordError as error:
            faults.append(error)
    if faults:
        raise min(faults, key=lambda fault: fault.record or 0)
    return found


def _payloads(records: Any) -> Sequence[bytes]:
    if callable(getattr(records, "to_pylist", None)):
        payloads = records.to_pylist()
    elif isinstance(records, np.ndarray):
        if records.dtype != object:  # NumPy's own bytes lose NULs at their end
            raise TypeError(f"records of dtype {records.dtype}: expected bytes, or an array of objects")
        payloads = records.tolist()
    elif isinstance(records, str):
        raise TypeError("records are bytes, not text")
    else:
        payloads = list(records)
    for at, payload in enumerate(payloads):
        if not isinstance(payload, bytes):
            raise TypeError(f"record {at} is of type {type(payload).__name__}, not bytes")
    return payloads


def _demands(features: Mapping[str, Feature]) -> Demands:
    """Which features to decode, as which dtype; one feature is dense, sparse or ragged, and of one dtype, as in TensorFlow."""
    roles: dict[str, tuple[str, ...]] = {}

    def demand(name: str, *role: str) -> None:
        if roles.setdefault(name, role) != role:
            raise SchemaError(
                f"it is described as {' '.join(roles[name])} and as {' '.join(role)}",
                feature=name,
                expected=roles[name],
                got=role,
            )

    for name, feature in features.items():
        if isinstance(feature, SparseFeature):
            demand(feature.value_key, "sparse", feature.dtype)
            for key in feature.index_keys:
                demand(key, "sparse", "int64")
        elif isinstance(feature, RaggedFeature):
            demand(feature.value_key or name, "ragged", feature.dtype, feature.row_splits_dtype)
            for each in feature.partitions:
                if not isinstance(each, UniformRowLength):
                    demand(each.key, "ragged", "int64", feature.row_splits_dtype)
        else:
            demand(name, "sparse" if isinstance(feature, VarLenFeature) else "dense", feature.dtype)
    return {name: role[1] for name, role in roles.items()}


def _maker(name: str, feature: Feature) -> Callable[[Batch, bool], Parsed]:
    if isinstance(feature, FixedLenFeature):
        return partial(_fixed, name, feature, _default(name, feature))
    if isinstance(feature, FixedLenSequenceFeature):
        default = _default(name, feature)
        assert default is not None
        return partial(_blocks, name, feature, default)
    if isinstance(feature, VarLenFeature):
        return partial(_varying, name)
    return partial(_sparse, feature) if isinstance(feature, SparseFeature) else partial(_ragged, name, feature)


def _default(name: str, feature: FixedLenFeature | FixedLenSequenceFeature) -> Array | None:
    """The default values, flat; None where the feature is required."""
    if isinstance(feature, FixedLenSequenceFeature):
        if not feature.allow_missing:
            raise SchemaError("a FixedLenSequenceFeature of an Example needs allow_missing=True", feature=name)
        given, count = feature.default_value, 1
        given = {"string": b""}.get(feature.dtype, 0) if given is None else given
    else:
        given, count = feature.default_value, fixed_part(feature.shape)
        if given is None or count == 0:  # TensorFlow takes no values for no default
            return None
    values = _as_values(name, feature.dtype, given)
    if len(values) != count:
        raise SchemaError(f"the default has {len(values)} values", feature=name, expected=count, got=len(values))
    return values


def _as_values(name: str, dtype: str, given: Any) -> Array:
    nested = np.array(given, object)
    values = [
        each.encode() if isinstance(each, str) and dtype == "string" else each for each in nested.reshape(-1).tolist()
    ]
    allowed = {"int64": int, "float32": int | float, "string": bytes}[dtype]
    if not all(isinstance(each, allowed) for each in values):
        raise SchemaError(
            f"the default {printable(repr(given))} is not of {dtype}", feature=name, expected=dtype, got=given
        )
    out = np.empty(len(values), _DTYPES[dtype])
    try:
        out[:] = values
    except OverflowError as error:
        raise SchemaError(
            f"the default {printable(repr(given))} is outside of {dtype}", feature=name, expected=dtype, got=given
        ) from error
    return out


def _fixed(name: str, feature: FixedLenFeature, default: Array | None, batch: Batch, single: bool) -> Parsed:
    held = batch.columns[name]
    size, records = fixed_part(feature.shape), len(held.counts)
    if default is None and not held.present.all():
        record = int((~held.present).argmax())
        raise FeatureNotFoundError("the record has no value for it, and it has no default", record=record, feature=name)
    _refuse_counts(name, held, held.present & (held.counts != size), size)
    rows = held.values
    if default is not None and not held.present.all():
        rows = np.empty((records, size), held.values.dtype)
        rows[held.present] = held.values.reshape(-1, size)
        rows[~held.present] = default
    whole = rows.reshape(records, *feature.shape)
    return whole[0] if single else whole


def _blocks(name: str, feature: FixedLenSequenceFeature, default: Array, batch: Batch, single: bool) -> Parsed:
    held = batch.columns[name]
    size = fixed_part(feature.shape)
    _refuse_counts(name, held, held.counts % size != 0, f"a multiple of {size}")
    if single:
        return held.values.reshape(len(held.values) // size, *feature.shape)
    records, longest = len(held.counts), int(held.counts.max(initial=0))
    padded = np.empty((records, longest), held.values.dtype)
    there = np.arange(longest) < held.counts[:, None]
    padded[there] = held.values
    padded[~there] = default[0]
    return padded.reshape(records, longest // size, *feature.shape)


def _varying(name: str, batch: Batch, single: bool) -> SparseTensor:
    held = batch.columns[name]
    within = np.arange(len(held.values)) - np.repeat(np.cumsum(held.counts) - held.counts, held.counts)
    longest = int(held.counts.max(initial=0))
    if single:
        return SparseTensor(within[:, None], held.values, np.array([longest]))
    return SparseTensor(np.column_stack([held.records, within]), held.values, np.array([len(held.counts), longest]))


def _sparse(feature: SparseFeature, batch: Batch, single: bool) -> SparseTensor:
    held = batch.columns[feature.value_key]
    axes = [] if single else [held.records]
    for key, size in zip(feature.index_keys, feature.dense_shape, strict=True):
        at = batch.columns[key]
        if np.any(bad := at.counts != held.counts):
            record = int(bad.argmax())
            want, got = int(held.counts[record]), int(at.counts[record])
            raise DecodeError(f"{got} indices for {want} values", record=record, feature=key, expected=want, got=got)
        if np.any(bad := (at.values < 0) | (at.values >= size)):
            wrong = int(bad.argmax())
            got = int(at.values[wrong])
            reason = f"the index {got} is outside of the size {size}"
            raise DecodeError(reason, record=int(at.records[wrong]), feature=key, expected=f"0 to {size - 1}", got=got)
        axes.append(at.values)
    indices, values = np.column_stack(axes), held.values
    if not feature.already_sorted:
        order = np.lexsort(axes[::-1])
        indices, values = indices[order], values[order]
    shape = feature.dense_shape if single else (len(held.counts), *feature.dense_shape)
    return SparseTensor(indices, values, np.array(shape, np.int64))


def _ragged(name: str, feature: RaggedFeature, batch: Batch, single: bool) -> Array | RaggedTensor:
    held = batch.columns[feature.value_key or name]
    flat, have = held.values, held.counts
    levels: list[Array] = []  # lengths of rows, the outermost first
    for partition in reversed(feature.partitions):
        if isinstance(partition, UniformRowLength):
            size = partition.length
            _refuse_counts(feature.value_key or name, held, have % size != 0, f"rows of {size}")
            have = have // size
            if levels:
                levels.insert(0, np.full(int(have.sum()), size))
            else:  # the innermost rows have one length: an axis
                flat = flat.reshape(-1, size, *flat.shape[1:])
        else:
            said = batch.columns[partition.key]
            lengths, have = row_lengths(
                partition, Runs(partition.key, said.values, said.counts), have, batched=not single
            )
            levels.insert(0, lengths)
    if not single:
        levels.insert(0, have)
    return RaggedTensor(flat, tuple(_splits(name, feature, lengths) for lengths in levels)) if levels else flat


def _splits(name: str, feature: RaggedFeature, lengths: Array) -> Array:
    splits = np.concatenate([[0], np.cumsum(lengths)])
    dtype = np.dtype(feature.row_splits_dtype)
    if splits[-1] > np.iinfo(dtype).max:
        raise SchemaError(
            f"{splits[-1]} values are too many for {dtype}", feature=name, advice='pass row_splits_dtype="int64"'
        )
    return splits.astype(dtype)


def _refuse_counts(name: str, held: BatchValues, bad: Array, expected: object) -> None:
    if np.any(bad):
        record = int(bad.argmax())
        got = int(held.counts[record])
        raise DecodeError(
            f"expected {expected} values, got {got}", record=record, feature=name, expected=expected, got=got
        )
