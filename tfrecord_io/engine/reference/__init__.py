"""The reference engine: protobuf and crc32c, plain and obviously right.

It shares no code with the native engine, is its oracle in every test, and runs where the native one was not built.
"""

from __future__ import annotations

from tfrecord_io.engine.contract import Engine
from tfrecord_io.engine.reference import encoder, framing
from tfrecord_io.engine.reference.decoder import ReferenceDecoder


class ReferenceEngine:
    """See `tfrecord_io.engine.contract.Engine`."""

    name = "reference"
    crc32c = staticmethod(framing.crc32c)
    scan = staticmethod(framing.scan)
    find_header = staticmethod(framing.find_header)
    payloads = staticmethod(framing.payloads)
    frame = staticmethod(framing.frame)
    decoder = ReferenceDecoder
    encode = staticmethod(encoder.encode)


ENGINE: Engine = ReferenceEngine()
