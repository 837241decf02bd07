"""Frames and faults of an engine's scan, beside a plain reading of the format."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import framed, header, masked
from tfrecord_io.bytes.engine.contract import Checks, Engine, Fault, FaultCode

PAYLOADS = st.lists(st.binary(max_size=20), max_size=4)


def number(data: bytes) -> int:
    return int.from_bytes(data, "little")


def fault_at(data: bytes, at: int, record: int, limit: int, checks: Checks) -> Fault | None:
    """What is wrong with the record at `at`, by the format's description."""
    left = data[at:]
    if len(left) < 12:
        return Fault(FaultCode.TRUNCATED_HEADER, record, at, expected=12, got=len(left))
    length, stored = struct.unpack("<QI", left[:12])
    if checks is not Checks.NONE and left[8:12] != masked(left[:8]):
        return Fault(FaultCode.LENGTH_CRC, record, at, expected=number(masked(left[:8])), got=stored)
    if length > limit:
        return Fault(FaultCode.LENGTH_TOO_LARGE, record, at, expected=limit, got=length)
    payload, footer = left[12 : 12 + length], left[12 + length : 16 + length]
    if len(payload) < length:
        return Fault(FaultCode.TRUNCATED_PAYLOAD, record, at, expected=length, got=len(payload))
    if len(footer) < 4:
        return Fault(FaultCode.TRUNCATED_FOOTER, record, at, expected=4, got=len(footer))
    if checks is Checks.ALL and footer != masked(payload):
        return Fault(FaultCode.PAYLOAD_CRC, record, at, length, expected=number(masked(payload)), got=number(footer))
    return None


def check_scan(engine: Engine, data: bytes, begin: int, most: int, limit: int, checks: Checks, final: bool) -> None:
    at, extents, fault = begin, [], None
    while at < len(data) and len(extents) != most:
        fault = fault_at(data, at, len(extents), limit, checks)
        if fault is not None:
            break
        length = number(data[at : at + 8])
        extents.append((at + 12, length))
        at += length + 16
    if fault is not None and not final and fault.code.name.startswith("TRUNCATED"):
        fault = None
    options = {"max_records": most, "checks": checks, "max_record_bytes": limit, "final": final}
    frames, found = engine.scan(data, begin, **options)
    assert list(zip(frames.starts.tolist(), frames.lengths.tolist(), strict=True)) == extents
    assert frames.consumed == at - begin
    assert found == fault
    assert bytes(engine.payloads(data, frames)) == b"".join(data[start : start + size] for start, size in extents)


@given(PAYLOADS, st.data())
def test_a_scan_is_a_plain_reading(engine: Engine, payloads: list[bytes], data: st.DataObject) -> None:
    file = bytearray(framed(*payloads))
    if file and data.draw(st.booleans()):
        file[data.draw(st.integers(0, len(file) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    cut = data.draw(st.sampled_from([0, 0, 1, 4, 5, 16, 17]))
    begin = data.draw(st.sampled_from([0, *(16 + len(payload) for payload in payloads[:1])]))
    limit = data.draw(st.sampled_from([2**31 - 1, 10, 0]))
    most = data.draw(st.sampled_from([-1, -1, 0, 1, 2]))
    content = bytes(file[: max(begin, len(file) - cut)])
    check_scan(engine, content, begin, most, limit, data.draw(st.sampled_from(Checks)), data.draw(st.booleans()))


FILE = framed(b"first", b"", b"third payload")


@pytest.mark.parametrize("final", [True, False])
def test_every_truncation(engine: Engine, final: bool) -> None:
    for cut in range(len(FILE) + 1):
        check_scan(engine, FILE[:cut], 0, -1, 2**31 - 1, Checks.ALL, final)


@pytest.mark.parametrize("checks", Checks)
def test_every_flipped_byte(engine: Engine, checks: Checks) -> None:
    for at in range(len(FILE)):
        damaged = FILE[:at] + bytes([FILE[at] ^ 0x10]) + FILE[at + 1 :]
        check_scan(engine, damaged, 0, -1, 2**31 - 1, checks, True)


@pytest.mark.parametrize("limit", [0, 4, 5, 12, 13])
def test_limits_of_a_record(engine: Engine, limit: int) -> None:
    check_scan(engine, FILE, 0, -1, limit, True, True)
    at = engine.find_header(FILE, 1, max_record_bytes=limit)
    assert at == 21  # the empty record


@pytest.mark.parametrize("length", [2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_lengths_over_the_default_limit(engine: Engine, length: int) -> None:
    _, fault = engine.scan(header(length))
    assert fault is not None
    expected = FaultCode.TRUNCATED_PAYLOAD if length < 2**31 else FaultCode.LENGTH_TOO_LARGE
    assert (fault.code, fault.expected) == (expected, min(length, 2**31 - 1))
    assert engine.find_header(header(length)) == (0 if length < 2**31 else -1)


@given(PAYLOADS)
def test_payloads_are_framed(engine: Engine, payloads: list[bytes]) -> None:
    assert bytes(engine.frame(payloads)) == framed(*payloads)
    assert bytes(engine.frame([memoryview(payload) for payload in payloads])) == framed(*payloads)


def test_all_records_are_scanned_and_checked_by_default(engine: Engine) -> None:
    frames, fault = engine.scan(FILE)
    assert (frames.lengths.tolist(), fault) == ([5, 0, 13], None)
    _, fault = engine.scan(FILE[:14] + b"\0" + FILE[15:])
    assert fault is not None
    assert fault.code is FaultCode.PAYLOAD_CRC
    _, fault = engine.scan(FILE[:-1])
    assert fault is not None
    assert fault.code is FaultCode.TRUNCATED_FOOTER


def test_an_array_without_elements_has_no_bytes(engine: Engine) -> None:
    nothing = np.empty((0, 3), np.uint8)
    assert bytes(engine.frame([nothing])) == framed(b"")
    assert engine.crc32c(np.empty(0, np.uint8), 5) == 5
