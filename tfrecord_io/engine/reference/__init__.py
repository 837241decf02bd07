"""The reference engine: protobuf and crc32c, plain and obviously right.

It shares no code with the native engine, is its oracle in every test, and runs where the native one was not built.
"""

from __future__ import annotations

from collections.abc import Sequence

from tfrecord_io.engine.contract import Engine, PlainForm
from tfrecord_io.engine.reference import frames, members
from tfrecord_io.engine.reference.decoder import ReferenceDecoder
from tfrecord_io.engine.reference.encoder import ReferenceEncoder


class ReferenceEngine:
    """See `tfrecord_io.engine.contract.Engine`."""

    name = "reference"
    crc32c = staticmethod(frames.crc32c)
    crc32c_combine = staticmethod(frames.crc32c_combine)
    scan = staticmethod(frames.scan)
    find_header = staticmethod(frames.find_header)
    payloads = staticmethod(frames.payloads)
    frame = staticmethod(frames.frame)
    frame_extents = staticmethod(frames.frame_extents)
    members = staticmethod(members.members)
    decoder = ReferenceDecoder
    encoder = ReferenceEncoder

    def arrow_reader(self, forms: Sequence[PlainForm | None]) -> None:
        return None

    def memory(self) -> None:
        return None


ENGINE: Engine = ReferenceEngine()
