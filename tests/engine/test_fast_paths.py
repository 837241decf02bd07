"""The kernel's fast paths for a processor or a form of record equal the general ones, value for value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import NATIVE, compare
from strategies import datasets, plans
from tfrecord_io.engine.contract import ColumnBuffers, Plan
from tfrecord_io.engine.reference import ENGINE as REFERENCE
from tfrecord_io.format.kinds import Kind, Layout

if NATIVE is None:
    pytest.skip("the native engine is not built", allow_module_level=True)

from tfrecord_io._native import _kernel

BALLAST = b"\x52\xff\x01" + bytes(255)  # an unknown field behind the records, so that whole vectors can be loaded

names = st.text(min_size=0, max_size=70)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**7), 2**7) | st.integers(0, 62).map(lambda bits: 1 << bits)
texts = (
    st.binary(max_size=130)
    | st.text(max_size=40).map(str.encode)
    | st.sampled_from([b"a" * n for n in (0, 16, 17, 117, 128)])
)


@st.composite
def scalar_columns(draw: st.DrawFn) -> list[ColumnBuffers]:
    rows = draw(st.integers(1, 8))
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        kind = draw(st.sampled_from([Kind.INT64, Kind.FLOAT, Kind.BYTES]))
        value_offsets: Any = None
        if kind == Kind.BYTES:
            cells = draw(st.lists(texts, min_size=rows, max_size=rows))
            if draw(st.booleans()):  # long values of one length have a shape of their own
                cells = [cell.ljust(200, b"\xff")[:200] for cell in cells]
            value_offsets = np.cumsum([0, *map(len, cells)])
            values: Any = np.frombuffer(b"".join(cells), np.uint8)
        elif kind == Kind.INT64:
            values = np.array(draw(st.lists(numbers, min_size=rows, max_size=rows)), np.int64)
        else:
            values = np.array(draw(st.lists(st.floats(width=32), min_size=rows, max_size=rows)), np.float32)
        mask = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows))) | draw(st.booleans())
        validity = None if mask.all() else np.packbits(mask, bitorder="little")
        columns.append(
            ColumnBuffers(name, kind, Layout.SCALAR, rows, int((~mask).sum()), validity, None, value_offsets, values)
        )
    return columns


@given(scalar_columns(), st.randoms(use_true_random=False))
def test_scalar_records_of_any_length_decode_alike(columns: list[ColumnBuffers], random: Any) -> None:
    assert NATIVE is not None
    records = []
    for row in range(columns[0].rows):  # map order on the wire means nothing
        order = random.sample(columns, len(columns)) if random.random() < 0.3 else columns
        records.append(bytes(REFERENCE.encode(order, row, row + 1)[0]))
    compare(Plan(), b"".join(records) + REFERENCE.frame([BALLAST]), [])


@given(datasets(), plans())
def test_any_records_decode_alike_where_vectors_can_be_loaded(payloads: list[bytes], plan: Plan) -> None:
    compare(plan, REFERENCE.frame([*payloads, BALLAST]), [])


@given(st.binary(max_size=700), st.integers(0, 2**32 - 1), st.integers(0, 7))
def test_crc_is_the_same_without_processor_support(data: bytes, value: int, skip: int) -> None:
    array = np.frombuffer(data, np.uint8)[skip:]
    assert _kernel.crc32c(array, value) == _kernel.crc32c_portable(array, value)


@pytest.mark.parametrize("size", [191, 192, 1535, 1536, 12_287, 12_288, 12_289, 100_003])
def test_crc_is_the_same_at_the_borders_of_its_lanes(size: int) -> None:
    array = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert _kernel.crc32c(array, 1) == _kernel.crc32c_portable(array, 1) == REFERENCE.crc32c(array, 1)


@given(st.lists(numbers, max_size=80), st.binary(max_size=60), st.booleans())
def test_packed_runs_decode_alike(values: list[int], junk: bytes, broken: bool) -> None:
    run = b"".join(_varint(value % 2**64) for value in values) + (junk if broken else b"")
    array = np.frombuffer(run, np.uint8)
    fast, portable = _kernel.decode_run(array), _kernel.decode_run(array, portable=True)
    assert (fast is None) == (portable is None)
    if fast is not None:
        np.testing.assert_array_equal(fast, portable)
    if not broken:
        np.testing.assert_array_equal(fast, np.array(values, np.int64))


def test_portable_paths_pass_the_engine_suite() -> None:
    here = Path(__file__).parent
    suite = [str(here / name) for name in ("test_wire.py", "test_golden.py", "test_reference.py")]
    environment = {**os.environ, "TFRECORD_IO_PORTABLE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *suite]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=here.parent.parent)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])
