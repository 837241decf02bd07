"""Encoding of columns as framed records."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from reference_engine.frames import frame
from reference_engine.shells import EntryShell, MapShell
from tfrecord_io.base.options.tuned_limits import LIMITS
from tfrecord_io.bytes.engine.contract import ArrowColumns, ColumnBuffers
from tfrecord_io.bytes.format import example_messages as messages
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.bytes.format.varint import varint


class ReferenceEncoder:
    """See `contract.Encoder`. As in TensorFlow, `features` is written even if empty, `feature_lists` if there are any.

    `memory` is not used.
    """

    def __init__(
        self, columns: Sequence[ColumnBuffers | int], *, sequence: bool = False, arrow: ArrowColumns | None = None
    ) -> None:
        assert arrow is None, "no columns are taken from Arrow"
        self._columns = [column for column in columns if isinstance(column, ColumnBuffers)]
        if not sequence and any(column.steps is not None for column in self._columns):
            raise ValueError("a feature list needs sequence=True")

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[bytes, int]:
        payloads: list[bytes] = []
        for row in range(begin, end):
            payload = (prefix if row == begin else b"") + _payload(self._columns, row)
            if len(payload) > LIMITS.MAX_RECORD_BYTES:
                break
            payloads.append(payload)
        return frame(payloads), len(payloads)


def feature_of(kind: Kind, values: Any) -> Any:
    """A Feature message of `kind`; FLOAT: a float32 array, kept bit for bit."""
    feature = messages.Feature()
    if kind == Kind.BYTES:
        feature.bytes_list.value.extend(values)
        feature.bytes_list.SetInParent()
    elif kind == Kind.INT64:
        feature.int64_list.value.extend(values)
        feature.int64_list.SetInParent()
    elif kind == Kind.FLOAT:
        raw = np.asarray(values, dtype="<f4").tobytes()
        packed = b"\x0a" + varint(len(raw)) + raw  # Python floats would quiet signalling NaNs
        feature.float_list.MergeFromString(packed)
        feature.float_list.SetInParent()
    return feature


def entries(named: Sequence[tuple[str, bytes]]) -> bytes:
    """A Features or FeatureLists message with its entries in the given order, which a protobuf map does not keep."""
    shells = [EntryShell(key=[name], value=[value]) for name, value in named]
    return MapShell(entry=shells).SerializeToString()


def _payload(columns: Sequence[ColumnBuffers], row: int) -> bytes:
    features, lists = [], []
    for column in columns:
        if not _is_valid(column, row):
            continue
        if column.steps is not None:
            lists.append((column.name, _feature_list(column, row)))
        elif column.kind != Kind.NONE:
            features.append((column.name, bytes(feature_of(column.kind, _values(column, row)).SerializeToString())))
    has_lists = any(column.steps is not None for column in columns)
    return _field(1, entries(features)) + (_field(2, entries(lists)) if has_lists else b"")


def _field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def _feature_list(column: ColumnBuffers, row: int) -> bytes:
    steps = column.steps
    assert steps is not None
    assert column.offsets is not None
    message = messages.FeatureList()
    for step in range(int(column.offsets[row]), int(column.offsets[row + 1])):
        kind_set = steps.kind != Kind.NONE and _is_valid(steps, step)
        message.feature.append(feature_of(steps.kind, _values(steps, step)) if kind_set else messages.Feature())
    return bytes(message.SerializeToString())


def _is_valid(column: ColumnBuffers, row: int) -> bool:
    if column.layout == Layout.NULL:
        return False
    return column.validity is None or bool(column.validity[row >> 3] >> (row & 7) & 1)


def _values(column: ColumnBuffers, row: int) -> Any:
    first, last = row, row + 1
    if column.layout == Layout.LIST:
        assert column.offsets is not None
        first, last = int(column.offsets[row]), int(column.offsets[row + 1])
    assert column.values is not None
    if column.kind == Kind.BYTES:
        assert column.value_offsets is not None
        ends = column.value_offsets[first : last + 1].tolist()
        return [column.values[begin:end].tobytes() for begin, end in pairwise(ends)]
    values = column.values[first:last]
    return values if column.kind == Kind.FLOAT else values.tolist()
