"""The fields of messages whose fields are messages."""

from __future__ import annotations

from typing import Any

import numpy as np
from google.protobuf.message import DecodeError

from tfrecord_io.engine.contract import Fault, FaultCode, Frames, Members
from tfrecord_io.engine.reference.frames import byte_view
from tfrecord_io.engine.reference.wire_tags import LEN, fields, parse
from tfrecord_io.format.example_messages import MembersShell
from tfrecord_io.format.framing import HEADER_BYTES


def members(data: Any, frames: Frames, most: int) -> tuple[Members, Fault | None]:
    """Find the length-delimited fields of messages; see `contract.Engine.members`."""
    view = byte_view(data)
    found: list[tuple[int, int, int, int]] = []
    fault = None
    for record, (start, length) in enumerate(zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)):
        payload = bytes(view[start : start + length])
        try:
            parse(MembersShell, payload, {})  # of which all fields are unknown
            own = [
                (number, record, start + begin, len(content))
                for number, wire_type, groups, content, begin in fields(payload)
                if wire_type == LEN and groups == 0 and number <= most
            ]
        except DecodeError:
            fault = Fault(FaultCode.WIRE, record, start - HEADER_BYTES)
            break
        found += own
    columns = np.array(found, np.int64).reshape(-1, 4).T
    return Members(*map(np.ascontiguousarray, columns)), fault
