"""The reference engine: protobuf and crc32c, plain and obviously right.

It shares no code with the native engine, is its oracle in every test, and runs where the native one was not built.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfrecord_io.engine.contract import Engine, PlainForm
from tfrecord_io.engine.reference import columns, framing, members
from tfrecord_io.engine.reference.decoder import ReferenceDecoder
from tfrecord_io.engine.reference.encoder import ReferenceEncoder


class ReferenceEngine:
    """See `tfrecord_io.engine.contract.Engine`."""

    name = "reference"
    crc32c = staticmethod(framing.crc32c)
    crc32c_combine = staticmethod(framing.crc32c_combine)
    scan = staticmethod(framing.scan)
    find_header = staticmethod(framing.find_header)
    payloads = staticmethod(framing.payloads)
    frame = staticmethod(framing.frame)
    frame_extents = staticmethod(framing.frame_extents)
    members = staticmethod(members.members)
    decoder = ReferenceDecoder
    text = staticmethod(columns.text)
    bytes_objects = staticmethod(columns.bytes_objects)
    join_numbers = staticmethod(columns.join_numbers)
    row_views = staticmethod(columns.row_views)
    encoder = ReferenceEncoder

    def arrow_reader(self, forms: Sequence[PlainForm | None]) -> None:
        return None

    def memory(self) -> None:
        return None


ENGINE: Engine = ReferenceEngine()
