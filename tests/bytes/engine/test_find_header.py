"""Finding a record header in any bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_comparison import ENGINES
from records import framed, header
from reference_engine import ENGINE as REFERENCE
from rounds import rounds
from tfrecord_io.bytes.engine.contract import Engine

BYTES = st.binary(max_size=60) | st.integers(0, 40).map(bytes)


@settings(max_examples=rounds(200))
@given(
    st.lists(BYTES | BYTES.map(lambda data: framed(data)) | st.integers(0, 2**40).map(header), max_size=6),
    st.integers(0, 80),
)
def test_engines_find_the_same_header(parts: list[bytes], begin: int) -> None:
    data = b"".join(parts)
    found = {engine.find_header(data, begin, max_record_bytes=2**20) for engine in ENGINES}
    assert len(found) == 1


@pytest.mark.parametrize("before", [b"", b"\0", b"junk", bytes(50), b"\xff" * 70])
def test_first_header_is_found(engine: Engine, before: bytes) -> None:
    data = before + framed(b"payload", b"other")
    assert engine.find_header(data) == len(before)
    assert engine.find_header(np.frombuffer(data, np.uint8), len(before) + 1) == len(before) + 23


def test_no_header_is_found(engine: Engine) -> None:
    assert engine.find_header(b"") == -1
    assert engine.find_header(bytes(1000)) == -1
    assert engine.find_header(header(5)[:-1]) == -1
    assert engine.find_header(header(5), 1) == -1
    assert engine.find_header(header(5), 100) == -1


def test_lengths_over_the_limit_are_skipped(engine: Engine) -> None:
    data = header(1001) + header(1000)
    assert engine.find_header(data, max_record_bytes=1000) == 12
    assert engine.find_header(header(2**63) + header(2**64 - 1)) == -1


@given(st.binary(max_size=100))
def test_header_of_a_single_record_is_at_its_start(payload: bytes) -> None:
    assert REFERENCE.find_header(framed(payload)) == 0
