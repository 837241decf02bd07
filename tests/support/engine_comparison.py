"""The engines, and a comparison of both on the same data: columns, progress and faults."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from reference_engine import ENGINE as REFERENCE
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Decoder, Engine, Fault, FaultCode, FileView, Plan, Progress
from tfrecord_io.bytes.engine.native import ENGINE as NATIVE

ENGINES: list[Engine] = [NATIVE, REFERENCE]
SPARE = 64  # bytes behind the memory of the windows, which may be read


def same_columns(actual: list[ColumnBuffers], expected: list[ColumnBuffers]) -> None:
    assert [c.name for c in actual] == [c.name for c in expected]
    for mine, other in zip(actual, expected, strict=True):
        same_column(mine, other)


def same_column(mine: ColumnBuffers, other: ColumnBuffers) -> None:
    for name, a in vars(mine).items():
        b = getattr(other, name)
        if name == "steps" and a is not None:
            same_column(a, b)
        elif name == "others":
            assert len(a) == len(b), f"column {mine.name!r}: {a!r} and {b!r}"
            for x, y in zip(a, b, strict=True):
                same_column(x, y)
        else:  # the text of arrays takes longer than their comparison
            assert comparable(a) == comparable(b), f"column {mine.name!r}: {name}: {a!r} and {b!r}"


def comparable(value: Any) -> Any:
    return (value.dtype, value.tobytes()) if isinstance(value, np.ndarray) else value


def essence(fault: Fault | None) -> Any:
    """Parts of a fault that must agree: framing in full, a broken wire format as such, values with their place."""
    if fault is None:
        return None
    if FaultCode.VARINT_TRUNCATED <= fault.code <= FaultCode.WIRE:
        return ("wire", fault.record, fault.offset)
    if fault.code < FaultCode.VARINT_TRUNCATED:
        return fault
    numbers = (
        (fault.expected, fault.got)
        if fault.code in (FaultCode.KIND, FaultCode.VALUE_COUNT, FaultCode.TOO_MANY_FEATURES)
        else ()
    )
    return (fault.code, fault.record, fault.offset, fault.feature, *numbers)


def feed_on(
    decoder: Any, data: bytes, begin: int, max_records: int, max_bytes: int, final: bool
) -> tuple[Progress, list[tuple[int, tuple[bytes, ...]]]]:
    """One `feed` that accepts all embedded schemas; and these, with the offsets of their records.

    Those of a record that turns out to be a fault are left out: an engine may stop at them first, or not.
    """
    records = consumed = 0
    embedded = []
    while True:
        left = max_records if max_records < 0 else max_records - records
        step = decoder.feed(data, begin + consumed, max_records=left, max_bytes=max_bytes, final=final)
        fault = None if step.fault is None else step.fault._replace(record=step.fault.record + records)
        records, consumed = records + step.records, consumed + step.consumed
        if not step.embedded:
            kept = [stop for stop in embedded if fault is None or stop[0] != fault.offset]
            return Progress(records, consumed, fault), kept
        embedded.append((begin + consumed, step.embedded))
        decoder.accept_embedded()


def decoded_from_file(decoder: Decoder, data: bytes, window: int, room: int, most: int, max_bytes: int) -> Progress:
    """Decode a file: by `feed_file`, and the next record by `feed` where that stops."""
    records, begin = 0, 0
    memory = np.zeros(4096 + room + SPARE, np.uint8)[:-SPARE]
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        view = FileView(file.fileno(), len(data), memory, window, 2**31 - 1, most)
        while True:
            before = decoder.rows
            begin += decoder.feed_file(view, begin, len(data), max_bytes=max_bytes)
            records += decoder.rows - before
            step, _ = feed_on(decoder, data, begin, 1, max_bytes, True)
            begin += step.consumed
            if step.fault is not None or not step.consumed:
                fault = None if step.fault is None else step.fault._replace(record=records + step.fault.record)
                return Progress(records + step.records, begin, fault)
            records += step.records


def run(engine: Engine, plan: Plan, data: bytes, cuts: list[int], max_records: int, max_bytes: int) -> list[Any]:
    """Feed `data` up to each cut and then to its end, taking where a call stopped short; all that can be seen."""
    seen: list[Any] = []
    decoder = engine.decoder(plan)
    begin = 0
    for end in [*cuts, len(data)]:
        final = end == len(data)
        while True:
            progress, embedded = feed_on(decoder, data[:end], begin, max_records, max_bytes, final)
            begin += progress.consumed
            seen.append(
                (
                    progress.records,
                    progress.consumed,
                    essence(progress.fault),
                    decoder.rows,
                    decoder.value_bytes,
                    decoder.integer_bytes,
                )
            )
            seen.append((decoder.counts, decoder.sequence, embedded))
            if progress.fault is not None or progress.records == 0:
                break
            if max_bytes >= 0:
                seen.append(list(decoder.take()))
        seen.append(list(decoder.take()))
        if progress.fault is not None:
            break
    return seen


def compare(plan: Plan, data: bytes, cuts: list[int], max_records: int = -1, max_bytes: int = -1) -> None:
    for mine, other in zip(
        *(run(e, plan, data, cuts, max_records, max_bytes) for e in (NATIVE, REFERENCE)), strict=True
    ):
        if mine and isinstance(mine, list) and isinstance(mine[0], ColumnBuffers):
            same_columns(mine, other)
        else:
            assert mine == other, f"{mine} and {other}"
