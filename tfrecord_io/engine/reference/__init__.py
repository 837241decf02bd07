"""The reference engine: protobuf and crc32c, plain and obviously right.

It shares no code with the native engine, is its oracle in every test, and stands in where that one is not built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, ColumnBuffers, Engine, Fault, Frames, Plan
from tfrecord_io.engine.reference import encoder, framing
from tfrecord_io.engine.reference.decoder import ReferenceDecoder


class ReferenceEngine:
    """Fulfils `contract.Engine`."""

    name = "reference"

    def crc32c(self, data: Any, value: int = 0) -> int:
        return framing.crc32c(data, value)

    def scan(
        self,
        data: Any,
        begin: int = 0,
        *,
        max_records: int = -1,
        check_crc: bool = True,
        max_record_bytes: int = MAX_RECORD_BYTES,
        final: bool = True,
    ) -> tuple[Frames, Fault | None]:
        return framing.scan(
            data, begin, max_records=max_records, check_crc=check_crc, max_record_bytes=max_record_bytes, final=final
        )

    def find_header(self, data: Any, begin: int = 0, *, max_record_bytes: int = MAX_RECORD_BYTES) -> int:
        return framing.find_header(data, begin, max_record_bytes)

    def payloads(self, data: Any, frames: Frames) -> Array:
        return framing.payloads(data, frames)

    def frame(self, payloads: Sequence[Any]) -> bytes:
        return framing.frame(payloads)

    def decoder(self, plan: Plan) -> ReferenceDecoder:
        return ReferenceDecoder(plan)

    def encode(
        self, columns: Sequence[ColumnBuffers], begin: int, end: int, *, prefix: bytes = b"", sequence: bool = False
    ) -> tuple[bytes, int]:
        return encoder.encode(columns, begin, end, prefix=prefix, sequence=sequence)


ENGINE: Engine = ReferenceEngine()
