"""``tf.io.parse_sequence_example`` without TensorFlow: context features and feature lists to arrays.

A feature list is parsed as a batch whose records are its steps; the steps of all records are decoded as one column.

Tests: tests/apps/tf_compat/test_parse_sequence_example.py; with TensorFlow:
tests/conformance/test_parse_sequence_example.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np

from tfrecord_io.apps.tf_compat.parse_example import (
    Parsed,
    RaggedTensor,
    SparseTensor,
    as_payloads,
    feature_dtypes,
    feature_parser,
    padded_sequence,
    parse_columns,
    ragged_rows,
    raise_first,
    row_splits_of,
)
from tfrecord_io.apps.tf_compat.tf_features import (
    Feature,
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    UniformRowLength,
    VarLenFeature,
    as_description,
)
from tfrecord_io.base import Limits
from tfrecord_io.columns import FeatureBatch
from tfrecord_io.errors import DecodeError, FeatureNotFoundError, SchemaError, TFRecordError
from tfrecord_io.kit import Array, check_keywords

T = TypeVar("T")
_IN_CONTEXT = (FixedLenFeature, VarLenFeature, RaggedFeature)
_IN_LISTS = (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)


@check_keywords
def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_names: Sequence[str] | None = None,
    name: str | None = None,
    *,
    limits: Limits = Limits.DEFAULT,
) -> tuple[dict[str, Parsed], dict[str, Parsed], dict[str, Parsed]]:
    """Parse serialized SequenceExamples by feature descriptions, like ``tf.io.parse_sequence_example``.

    >>> import tfrecord_io as tfr
    >>> clips = {"id": [7, 8], "frames": [[[1, 2], [3, 4]], [[5, 6]]]}
    >>> batch = tfr.io.encode_examples(
    ...     clips, record_type="sequence_example", embed_schema=False
    ... )
    >>> context, lists, lengths = tfr.io.parse_sequence_example(
    ...     batch,
    ...     {"id": tfr.io.FixedLenFeature([], "int64")},
    ...     {"frames": tfr.io.FixedLenSequenceFeature([2], "int64")},
    ... )
    >>> context["id"]
    array([7, 8])
    >>> lists["frames"]
    array([[[1, 2],
            [3, 4]],
    <BLANKLINE>
           [[5, 6],
            [0, 0]]])
    >>> lengths["frames"]
    array([2, 1])

    Parameters
    ----------
    serialized : bytes, or sequence of bytes
        A batch of serialized SequenceExamples: a list, an array of objects, an Arrow array of binary. The results of a
        single record have no batch axis.
    context_features : mapping of str to feature, optional
        `FixedLenFeature`, `VarLenFeature` and `RaggedFeature`, of this package or of TensorFlow.
    sequence_features : mapping of str to feature, optional
        Of feature lists: `FixedLenSequenceFeature`, `VarLenFeature` and `RaggedFeature`.
    example_names : sequence of str, optional
        A name for each record, which errors have as their path.
    name : str, optional
        No effect: TensorFlow names an operation of a graph by it.
    limits : Limits, optional
        Bytes that the padding of FixedLenSequenceFeatures may take beyond 512 times the bytes of the records.

    Returns
    -------
    context : dict of str to ndarray, SparseTensor or RaggedTensor
        As of `parse_example`.
    lists : dict of str to ndarray, SparseTensor or RaggedTensor
        FixedLenSequenceFeature: an array of shape [records, most steps, *shape], padded with 0 or b"". VarLenFeature: a
        `SparseTensor` with the indices [record, step, position]. RaggedFeature: a `RaggedTensor` of the steps of each
        record, each with its values, in the rows of the feature's partitions if it has some.
    lengths : dict of str to int64 ndarray
        The number of steps of each record, for each FixedLenSequenceFeature.

    Raises
    ------
    FeatureNotFoundError
        A record lacks a FixedLenFeature without a default, or a FixedLenSequenceFeature without ``allow_missing``.
    FeatureTypeError
        A record has the feature with another feature type.
    DecodeError
        A record has a wrong number of values, or row partitions that do not fit them, or is not a SequenceExample; or
        padding to the longest record takes more than `Limits.expansion_bytes` allows.
    SchemaError
        No feature is described, or a description is one that TensorFlow rejects.

    Notes
    -----
    If several records are faulty, the error of the first one is raised. Row partitions that do not fit their values are
    always errors; TensorFlow may return a broken tensor. A context feature without a type counts as missing, as in
    `parse_example`; TensorFlow refuses the record if the feature is a FixedLenFeature.
    """
    context = as_description(context_features or {})
    lists = as_description(sequence_features or {})
    if not context and not lists:
        raise SchemaError("no feature is described", hint="pass context_features=, sequence_features= or both")
    _refuse_others(context, _IN_CONTEXT, "the context of a SequenceExample")
    _refuse_others(lists, _IN_LISTS, "a feature list")
    dtypes, list_dtypes = feature_dtypes(context), feature_dtypes(lists)
    is_single = isinstance(serialized, bytes | bytearray | memoryview)
    payloads = [bytes(serialized)] if is_single else as_payloads(serialized)
    names = _check_names(example_names, len(payloads), allows_one_text=is_single)
    in_context = {key: feature_parser(key, feature) for key, feature in context.items()}
    in_lists = {key: _list_parser(key, feature) for key, feature in lists.items()}
    try:
        batch = FeatureBatch.decode(payloads, dtypes, list_dtypes, is_single=is_single, limits=limits)
        if is_single:
            raise_first([batch.fault])
        parsed_context, faults = parse_columns(in_context, batch)
        parsed_lists, faults_of_lists = parse_columns(in_lists, batch)
        raise_first([batch.fault, *faults, *faults_of_lists])
    except TFRecordError as error:
        if names is not None and error.record is not None:
            error.path = names[error.record]
        raise
    lengths: dict[str, Parsed] = {
        key: batch.lists[key].counts[0] if is_single else batch.lists[key].counts
        for key, feature in lists.items()
        if isinstance(feature, FixedLenSequenceFeature)
    }
    return parsed_context, parsed_lists, lengths


@check_keywords
def parse_single_sequence_example(
    serialized: bytes | bytearray | memoryview,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    example_name: str | None = None,
    name: str | None = None,
    *,
    limits: Limits = Limits.DEFAULT,
) -> tuple[dict[str, Parsed], dict[str, Parsed]]:
    """Parse a serialized SequenceExample by feature descriptions, like ``tf.io.parse_single_sequence_example``.

    >>> import tfrecord_io as tfr
    >>> (record,) = tfr.io.encode_examples(
    ...     {"words": [[["a", "dog"], ["barks"]]]}, record_type="sequence_example"
    ... )
    >>> context, lists = tfr.io.parse_single_sequence_example(
    ...     record.as_py(), sequence_features={"words": tfr.io.RaggedFeature("string")}
    ... )
    >>> lists["words"].to_list()
    [[b'a', b'dog'], [b'barks']]

    Parameters
    ----------
    serialized : bytes
    context_features, sequence_features, name, limits
        As in `parse_sequence_example`.
    example_name : str, optional
        A name for the record, which errors have as their path.

    Returns
    -------
    context, lists : dict of str to ndarray, NumPy scalar, bytes, SparseTensor or RaggedTensor
        As of `parse_sequence_example`, without the batch axis: FixedLenSequenceFeature has the shape [steps, *shape].

    Raises
    ------
    FeatureNotFoundError, FeatureTypeError, DecodeError, SchemaError
        As in `parse_sequence_example`.
    """
    if not isinstance(serialized, bytes | bytearray | memoryview):
        advice = "parse_sequence_example takes several"
        raise TypeError(f"expected the bytes of a record, got {type(serialized).__name__}; {advice}")
    names = None if example_name is None else [example_name]
    context, lists, _ = parse_sequence_example(serialized, context_features, sequence_features, names, limits=limits)
    return context, lists


def _refuse_others(description: Mapping[str, Feature], allowed: tuple[type, ...], place: str) -> None:
    for name, feature in description.items():
        if not isinstance(feature, allowed):
            names = ", ".join(type_.__name__ for type_ in allowed)
            reason = f"{place} has no {type(feature).__name__}, only {names}"
            raise SchemaError(reason, feature=name, expected=names, got=type(feature).__name__)


def _check_names(names: Any, records: int, *, allows_one_text: bool) -> list[str] | None:
    """Convert the names of records to text; ValueError if there are not as many names as records."""
    if names is None:
        return None
    texts = [names] if allows_one_text and isinstance(names, str | bytes) else list(names)
    if len(texts) != records:
        raise ValueError(f"example_names= has {len(texts)} names for {records} records: pass one for each")
    return [text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in texts]


def _list_parser(name: str, feature: Feature) -> Callable[[FeatureBatch], Parsed]:
    if isinstance(feature, FixedLenSequenceFeature):
        if feature.default_value is not None:
            reason = "a FixedLenSequenceFeature of a feature list is padded with 0 or b'', and takes no default_value"
            raise SchemaError(reason, feature=name, got=feature.default_value)
        return partial(_dense_steps, name, feature)
    if isinstance(feature, VarLenFeature):
        return partial(_sparse_steps, name)
    assert isinstance(feature, RaggedFeature)
    return partial(_ragged_steps, name, feature)


def _dense_steps(name: str, feature: FixedLenSequenceFeature, batch: FeatureBatch) -> Array:
    column = batch.lists[name]
    if not feature.allow_missing and not column.present.all():
        reason = "the record lacks the feature list, which may not be missing"
        advice = "describe it with allow_missing=True"
        raise FeatureNotFoundError(reason, record=int((~column.present).argmax()), feature=name, hint=advice)
    size = math.prod(feature.shape)
    wrong = column.values.counts != size
    column.parse(lambda: column.values.refuse_records(wrong, size))
    default = np.array([b""], object) if feature.dtype == "string" else np.zeros(1, column.values.values.dtype)
    rows = replace(column.values, counts=column.counts * size, present=column.present)
    of_steps = replace(batch, columns={name: rows})
    array: Array = padded_sequence(name, feature, default, of_steps)
    return array


def _sparse_steps(name: str, batch: FeatureBatch) -> SparseTensor:
    column = batch.lists[name]
    steps = column.values
    first_step = np.cumsum(column.counts) - column.counts
    within_record = np.arange(len(steps.counts)) - np.repeat(first_step, column.counts)
    within_step = np.arange(len(steps.values)) - np.repeat(steps.starts, steps.counts)
    axes = [within_record[steps.records], within_step]
    shape = [int(column.counts.max(initial=0)), int(steps.counts.max(initial=0))]
    if not batch.is_single:
        axes, shape = [column.records[steps.records], *axes], [len(column.counts), *shape]
    return SparseTensor(np.column_stack(axes), steps.values, np.array(shape))


def _ragged_steps(name: str, feature: RaggedFeature, batch: FeatureBatch) -> RaggedTensor:
    column = batch.lists[feature.value_key or name]
    keys = [part.key for part in feature.partitions if not isinstance(part, UniformRowLength)]
    for key in keys:
        partition = batch.lists[key]
        if np.any(bad := partition.counts != column.counts):
            record = int(bad.argmax())
            want, got = int(column.counts[record]), int(partition.counts[record])
            reason = f"expected {want} steps, as many as the values of the RaggedFeature '{name}' have, got {got}"
            raise DecodeError(reason, record=record, feature=key, expected=want, got=got)
    columns = {key: batch.lists[key].values for key in (column.values.name, *keys)}
    rows = column.parse(lambda: ragged_rows(name, feature, FeatureBatch(columns, None)))
    assert isinstance(rows, RaggedTensor)
    if batch.is_single:
        return rows
    splits = row_splits_of(name, feature, column.counts)
    return RaggedTensor(rows.flat_values, (splits, *rows.nested_row_splits))
