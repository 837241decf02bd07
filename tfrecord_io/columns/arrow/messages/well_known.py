"""Messages of protobuf itself that have an Arrow type of their own: times, and JSON.

Tests: tests/columns/arrow/messages/test_message_batches.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.bytes import Array
from tfrecord_io.columns.arrow.buffers import bitmap_buffer
from tfrecord_io.columns.arrow.messages.message_tree import TIMES
from tfrecord_io.columns.arrow.row_fault import RowFault

NANOS = 1_000_000_000
_MOST_SECONDS = (2**63 - 1) // NANOS


def time_numbers(name: str, path: str, seconds: pa.Array, nanos: pa.Array, mask: Array | None) -> pa.Array:
    """Timestamps or Durations as nanoseconds; null where `mask` is False.

    RowFault for what 64 bits of nanoseconds do not have, and for nanoseconds that are not those of protobuf.
    """
    whole, fraction = np.asarray(seconds), np.asarray(nanos).astype(np.int64)
    if name.endswith("Timestamp"):
        bad = (fraction < 0) | (fraction >= NANOS)
    else:
        bad = (np.abs(fraction) >= NANOS) | (whole * np.sign(fraction) < 0)
    if np.any(bad):
        row = int(bad.argmax())
        reason = f"{fraction[row]} nanoseconds besides {whole[row]} seconds are not a {name}"
        raise RowFault(row, reason, feature=path, expected=name, got=int(fraction[row]))
    bad = (whole > _MOST_SECONDS - 1) | (whole < 1 - _MOST_SECONDS)
    if np.any(bad):
        row = int(bad.argmax())
        reason = f"{whole[row]} seconds are out of the range of 64 bits of nanoseconds, 1677 to 2262"
        advice = 'leave the column out with columns=, or read record_type="bytes"'
        advice_cli = "leave the column out with --columns, or read --record-type bytes"
        raise RowFault(row, reason, feature=path, expected=name, got=int(whole[row]), hint=advice, hint_cli=advice_cli)
    buffers = [bitmap_buffer(mask), pa.py_buffer(whole * NANOS + fraction)]
    return pa.Array.from_buffers(TIMES[name], len(whole), buffers)


def time_parts(name: str, array: pa.Array) -> tuple[Array, Array]:
    """The seconds and nanoseconds of times; null slots hold anything."""
    numbers = np.asarray(array.fill_null(0).view(pa.int64()))
    whole, fraction = np.divmod(numbers, NANOS)
    if not name.endswith("Timestamp"):  # both have the sign of the duration
        whole, fraction = np.where((whole < 0) & (fraction > 0), [whole + 1, fraction - NANOS], [whole, fraction])
    return whole, fraction


def json_texts(name: str, path: str, messages: Sequence[bytes], mask: Array | None) -> tuple[pa.Array, int]:
    """Messages of `JSON` as texts, null where `mask` is False; and how many have unknown fields."""
    from google.protobuf.json_format import MessageToDict

    message_class, texts, partly = _class(name), list[str | None](), 0
    for row, data in enumerate(messages):
        if mask is not None and not mask[row]:
            texts.append(None)
            continue
        try:
            message = message_class.FromString(data)
            size, known_size = drop_unknown_fields(message)
            partly += known_size < size
            value = MessageToDict(message)
            texts.append(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
        except _not_json() as error:
            reason = f"the {name} cannot be JSON ({error})"
            advice = 'leave the column out with columns=, or read record_type="bytes"'
            advice_cli = "leave the column out with --columns, or read --record-type bytes"
            raise RowFault(row, reason, feature=path, expected=name, hint=advice, hint_cli=advice_cli) from None
    return pa.array(texts, pa.string()), partly


def json_messages(name: str, path: str, texts: pa.Array) -> list[bytes]:
    """Messages of `JSON` from texts; nothing of nulls."""
    from google.protobuf.json_format import ParseDict

    message_class, messages = _class(name), []
    for row, text in enumerate(texts.to_pylist()):
        try:
            message = message_class()
            if text is not None:
                ParseDict(json.loads(text, parse_constant=_refuse), message)
            messages.append(message.SerializeToString(deterministic=True))
        except _not_json() as error:
            reason = f"the text is not the JSON of a {name} ({error})"
            raise RowFault(row, reason, feature=path, expected=name) from None
    return messages


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _not_json() -> tuple[type[Exception], ...]:
    from google.protobuf.json_format import Error
    from google.protobuf.message import DecodeError

    return DecodeError, Error, ValueError, TypeError, RecursionError


def _class(name: str) -> Any:
    from google.protobuf import struct_pb2

    return getattr(struct_pb2, name.rpartition(".")[2])


def drop_unknown_fields(message: Any) -> tuple[int, int]:
    """Drop the unknown fields of a message; returns its size in bytes before and after."""
    size = message.ByteSize()
    message.DiscardUnknownFields()
    return size, len(message.SerializePartialToString())  # ByteSize() of protobuf in pure Python stays as it was
