"""Parsing of a payload into the cells of one record, by the rules of C++ protobuf (golden/wire.json)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from google.protobuf.message import DecodeError

from reference_engine import shells
from reference_engine import wire_tags as tags
from tfrecord_io.bytes.format.feature_types import Kind, RecordType
from tfrecord_io.bytes.format.varint import varint
from tfrecord_io.columns.schema.embedded import FIELD

_LIST_FIELDS = {"bytes_list": Kind.BYTES, "float_list": Kind.FLOAT, "int64_list": Kind.INT64}


class Cell(NamedTuple):
    """A Feature with values of a type."""

    kind: Kind
    values: Any  # BYTES: list of bytes; FLOAT: float32 array; INT64: int64 array


Steps = list[Cell | None]
Wanted = Callable[[str, bool], bool]  # name, is a feature list


@dataclass(slots=True)
class Record:
    """The content of a payload."""

    features: dict[str, Cell | None] = field(default_factory=dict)  # None: no feature type
    lists: dict[str, Steps] = field(default_factory=dict)
    entries: list[tuple[str, bool]] = field(default_factory=list)  # (name, is a feature list) in the order of the wire
    has_feature: bool = False  # a map entry has a key or a value
    has_plain: bool = False  # one of these has a value, or a key that is not itself a map entry
    has_unknown: bool = False  # at the top, in a map or in an entry
    is_sequence: bool = False  # a feature list's entry has a key or a value


def read_embedded(payload: bytes) -> list[bytes]:
    """Contents of the fields 21574 at the top level of `payload`; protobuf's DecodeError if that is malformed."""
    return [content for number, content in _top_level(payload) if number == FIELD]


def read_record(payload: bytes, record_type: RecordType, wanted: Wanted) -> Record:
    """Parse `payload`; features whose name is not `wanted` are skipped.

    protobuf's DecodeError if C++ protobuf would refuse `payload`.
    """
    if record_type == RecordType.EXAMPLE:
        return _read_example(payload, wanted)
    if record_type == RecordType.SEQUENCE_EXAMPLE:
        return _read_sequence(payload, wanted)
    try:
        record = _read_sequence(payload, wanted)
    except DecodeError:
        return _read_example(payload, wanted)  # field 2 is not a feature list, so it is an unknown field of an Example
    if not record.is_sequence:
        record.lists = {}
        record.entries = [entry for entry in record.entries if not entry[1]]
    return record


def _read_example(payload: bytes, wanted: Wanted) -> Record:
    shell, has_unknown = tags.parse(shells.ExampleShell, payload, tags.EXAMPLE)
    record = Record(has_unknown=has_unknown)
    for features in shell.features:
        _read_features(features, wanted, record)
    return record


def _read_sequence(payload: bytes, wanted: Wanted) -> Record:
    shell, has_unknown = tags.parse(shells.SequenceShell, payload, tags.SEQUENCE)
    record = Record(has_unknown=has_unknown)
    features, lists = iter(shell.features), iter(shell.lists)
    for number, _ in _top_level(payload):
        if number == 1:
            _read_features(next(features), wanted, record)
        elif number == 2:
            _read_lists(next(lists), wanted, record)
    return record


def _top_level(payload: bytes) -> list[tuple[int, bytes]]:
    """The length-delimited fields of `payload` in the order of the wire, which a parsed message does not keep."""
    return [
        (number, content)
        for number, wire_type, groups, content, _ in tags.fields(payload)
        if wire_type == tags.LEN and groups == 0
    ]


def _entries(shell: Any, record: Record, wanted: Wanted, is_list: bool) -> Iterator[tuple[str, list[bytes]]]:
    for entry in shell.entry:
        present = bool(entry.key or entry.value)
        record.has_feature |= present
        record.is_sequence |= present and is_list
        name = entry.key[-1] if entry.key else ""
        record.has_plain |= present and (bool(entry.value) or not tags.is_map_entry(name))
        record.entries.append((name, is_list))
        if wanted(name, is_list):
            yield name, list(entry.value)


def _read_features(shell: Any, wanted: Wanted, record: Record) -> None:
    for name, values in _entries(shell, record, wanted, is_list=False):
        with _named_in_error(name):
            top, _ = tags.parse(shells.FeatureDepth0, _at_depth(values), tags.FEATURE_AT_DEPTH)
        record.features[name] = _cell(top.inner.inner.value)


def _read_lists(shell: Any, wanted: Wanted, record: Record) -> None:
    for name, values in _entries(shell, record, wanted, is_list=True):
        with _named_in_error(name):
            top, _ = tags.parse(shells.FeatureListDepth0, _at_depth(values), tags.FEATURE_LIST_AT_DEPTH)
        record.lists[name] = [_cell(step) for step in top.inner.inner.value.feature]


@contextmanager
def _named_in_error(name: str) -> Iterator[None]:
    """Add the name of the feature to protobuf's error."""
    try:
        yield
    except DecodeError as error:
        error.feature = name
        raise


def _at_depth(values: list[bytes]) -> bytes:
    """Wrap each value of an entry in the three messages of `FeatureDepth0`; several are merged by protobuf."""
    return b"".join(_wrapped(_wrapped(_wrapped(value))) for value in values)


def _wrapped(content: bytes) -> bytes:
    return b"\x0a" + varint(len(content)) + content  # field 1, length-delimited


def _cell(feature: Any) -> Cell | None:
    which = feature.WhichOneof("kind")
    if which is None:
        return None
    kind = _LIST_FIELDS[which]
    values = getattr(feature, which)
    if kind == Kind.BYTES:
        return Cell(kind, list(values.value))
    if kind == Kind.INT64:
        return Cell(kind, np.array(list(values.value), dtype=np.int64))
    return Cell(kind, _float_bits(values))


def _float_bits(float_list: Any) -> Any:
    """The floats of a FloatList, bit for bit: Python floats would quiet signalling NaNs."""
    count = len(float_list.value)
    packed = float_list.SerializeToString()  # one packed run: tag, length, values; unknown fields were dropped
    return np.frombuffer(packed, dtype="<f4", offset=len(packed) - 4 * count).astype(np.float32, copy=False)
