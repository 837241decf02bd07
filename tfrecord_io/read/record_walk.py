"""Going through a file block by block, for tools that look at every record and keep none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tfrecord_io.engine.contract import Engine, Fault
from tfrecord_io.read.record_reader import RecordFile

Step = Callable[[Any, bool], tuple[int, int, Fault | None]]
"""Takes (data, whether it is the last), gives (records, bytes of them, what is wrong with the next)."""


def walk(file: RecordFile, step: Step) -> tuple[int, int]:
    """Hand every block of `file` to `step`; (records, uncompressed bytes).

    Raises
    ------
    TFRecordError
        At the first fault; its ``records_intact`` and ``offset`` say how far it went.
    """
    records = end = 0
    while (block := file.blocks.next_block()) is not None:
        done, consumed, fault = step(block.data, block.final)
        if fault is not None:
            raise file.error(fault, record=records, offset=block.start, data=block.data)
        records += done
        end = block.start + consumed
        file.blocks.consume(consumed)
    return records, end


def scan_step(engine: Engine, *, check_crc: bool, max_record_bytes: int) -> Step:
    """The step that looks at framing alone."""

    def step(data: Any, final: bool) -> tuple[int, int, Fault | None]:
        frames, fault = engine.scan(data, check_crc=check_crc, max_record_bytes=max_record_bytes, final=final)
        return len(frames.starts), frames.consumed, fault

    return step
