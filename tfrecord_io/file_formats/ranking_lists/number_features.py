"""Numbers as serialized Examples, of which each has one feature for each column."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tfrecord_io.engine.contract import Array
from tfrecord_io.format.protobuf import varint

_FEATURES = _ENTRY = _KEY = _VALUES = b"\x0a"  # Example.features, Features.feature, its key, Int64List.value: field 1
_VALUE, _INT64_LIST = b"\x12", b"\x1a"  # of an entry, of a Feature


def number_features(columns: Mapping[str, Array]) -> Array:
    """The Examples of rows of numbers that are not negative: uint8, all rows have the same number of bytes.

    >>> number_features({"n": np.array([7])}).tobytes().hex(" ")
    '0a 0c 0a 0a 0a 01 6e 12 05 1a 03 0a 01 07'
    """
    return np.concatenate([_examples(name.encode(), values) for name, values in columns.items()], axis=1)


def _examples(name: bytes, values: Array) -> Array:
    numbers = _varints(values)
    head = b""
    for tag in (_VALUES, _INT64_LIST, _VALUE):
        head = tag + varint(len(head) + numbers.shape[1]) + head
    head = _KEY + varint(len(name)) + name + head
    for tag in (_ENTRY, _FEATURES):
        head = tag + varint(len(head) + numbers.shape[1]) + head
    heads = np.broadcast_to(np.frombuffer(head, np.uint8), (len(values), len(head)))
    return np.concatenate([heads, numbers], axis=1)


def _varints(values: Array) -> Array:
    """The varints of numbers, all as long as the longest."""
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))
    digits = values[:, None] >> (7 * np.arange(width)) & 0x7F
    digits[:, :-1] |= 0x80
    return digits.astype(np.uint8)
