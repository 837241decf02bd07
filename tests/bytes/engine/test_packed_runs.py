"""Packed runs of varints: every implementation that this processor supports equals the reference engine."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import compare
from reference_engine import ENGINE as REFERENCE
from rounds import near, rounds
from tfrecord_io.bytes._native import _kernel
from tfrecord_io.bytes.engine.contract import Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, Text
from wire_forms import delimited, tag, varint

PATHS = _kernel.run_paths()
LISTS = Plan(columns=(PlanColumn("n", Kind.INT64, Layout.LIST, Text.NO),))

numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**7), 2**7) | st.integers(0, 63).map(lambda bits: 1 << bits)


def record(*parts: bytes) -> bytes:
    """An Example with an Int64List that consists of these fields."""
    return delimited(1, delimited(1, delimited(1, b"n") + delimited(2, delimited(3, b"".join(parts)))))


def decoded(run: bytes) -> list[int] | None:
    """The values of a run that the reference engine decodes; None if it finds it malformed."""
    decoder = REFERENCE.decoder(LISTS)
    if decoder.feed(REFERENCE.frame([record(delimited(1, run))])).fault is not None:
        return None
    values: list[int] = next(iter(decoder.take())).values.tolist()
    return values


def same_values(run: bytes) -> None:
    array, expected = np.frombuffer(run, np.uint8), decoded(run)
    for path in PATHS:
        values = _kernel.decode_run(array, path)
        assert (None if values is None else values.tolist()) == expected, path


def any_varint(random: Any, size: int) -> bytes:
    """A varint of `size` bytes, maybe longer than it need be, and with any bits in a tenth byte."""
    return bytes([*(byte | 0x80 for byte in random.randbytes(size - 1)), random.getrandbits(7)])


def test_the_portable_implementation_is_among_those_that_are_compared() -> None:
    assert PATHS[0] == "portable"
    with pytest.raises(ValueError, match="no such implementation"):
        _kernel.decode_run(np.zeros(1, np.uint8), "no such path")


@given(st.lists(numbers, max_size=80), st.binary(max_size=60), st.booleans())
def test_runs_of_values_decode_alike(values: list[int], junk: bytes, broken: bool) -> None:
    run = b"".join(map(varint, values))
    same_values(run + (junk if broken else b""))
    if not broken:
        assert decoded(run) == [value - (value >> 63 << 64 if value > 0 else 0) for value in values]  # as int64


@given(
    st.lists(st.tuples(st.integers(1, 10), st.integers(1, 70)), max_size=6),
    st.randoms(use_true_random=False),
    st.sampled_from(["", "", "longer", "truncated", "any"]),
)
def test_runs_of_each_length_decode_as_in_protobuf(runs: list[tuple[int, int]], random: Any, fault: str) -> None:
    """Also varints that are longer than needed, have more than ten bytes, or do not end."""
    varints = [any_varint(random, size) for size, count in runs for _ in range(count)]
    if fault == "longer":
        varints.insert(random.randint(0, len(varints)), b"\xff" * random.randint(10, 80) + b"\x01")
    elif fault == "truncated":
        varints.append(b"\x81" * random.randint(1, 80))
    run = bytearray(b"".join(varints))
    if fault == "any" and run:
        run[random.randrange(len(run))] = random.getrandbits(8)
    same_values(bytes(run))


@pytest.mark.parametrize("seed", range(rounds(40)))
def test_mixes_of_all_lengths_decode_alike(seed: int) -> None:
    random = Random(seed)
    sizes = random.choice([range(1, 3), range(1, 5), range(3, 9), range(5, 11), range(8, 11), range(1, 11)])
    varints = [any_varint(random, random.choice(sizes)) for _ in range(random.choice([3, 30, 300]))]
    same_values(b"".join(varints))


@pytest.mark.parametrize("size", range(1, 13))
@pytest.mark.parametrize("neighbour", [b"\x05", b"\x81\x02", b"\x83" * 9 + b"\x01"])
def test_varints_of_each_size_decode_alike_at_each_byte_of_a_register(size: int, neighbour: bytes) -> None:
    """Across the borders of 32 and 64 bytes, whole and with more than ten bytes."""
    random = Random(size)
    for before in near([32, 64, 128], range(140), reach=10)[:: len(neighbour)]:
        run = neighbour * (before // len(neighbour)) + any_varint(random, size)
        same_values(run)
        same_values(run + neighbour * random.choice([1, 2, 15, 70]))


@pytest.mark.parametrize("sizes", [[1, 2, 3], [10, 9, 1, 5], [8, 4, 10, 10, 10, 10, 10, 10, 10, 2]])
def test_runs_that_are_truncated_at_each_byte(sizes: list[int]) -> None:
    random = Random(1)
    run = b"".join(any_varint(random, size) for size in sizes * 4)
    for size in range(len(run)):
        same_values(run[:size])


@given(st.lists(numbers | st.integers(0, 127), max_size=80), st.integers(0, 9))
def test_runs_encode_alike(values: list[int], skip: int) -> None:
    array = np.array([0] * skip + [value % 2**64 for value in values], np.uint64)[skip:]
    expected = b"".join(map(varint, values))
    for path in ("", *PATHS):
        assert bytes(_kernel.encode_run(array, path)) == expected, path


@pytest.mark.parametrize("bits", near(range(0, 65, 7), range(65), reach=1))
def test_runs_encode_alike_at_the_borders_of_lengths(bits: int) -> None:
    values = [max(0, (1 << bits) - 1), (1 << bits) % 2**64]
    neighbours = [[number] for number in (0, 127, 2**28 - 1, 2**56 - 1, 2**64 - 1)]
    for run in (values * 20, *(other * 5 + values + other * 4 + values + other * 23 for other in neighbours)):
        whole, varints = np.array(run, np.uint64), list(map(varint, run))
        for count in range(len(run) - 17, len(run) + 1):  # what is left after steps of up to 16
            expected = b"".join(varints[:count])
            for path in PATHS:
                encoded = _kernel.encode_run(whole[:count], path)
                assert bytes(encoded) == expected, (path, count)
                assert np.array_equal(_kernel.decode_run(encoded, path).astype(np.uint64), whole[:count])


@contextmanager
def between_guards() -> Iterator[np.ndarray]:
    """A page before which and after which no byte may be read."""
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 3 * page)
    whole = np.frombuffer(pages, np.uint8)
    library = ctypes.CDLL(None, use_errno=True)
    protect = [ctypes.c_void_p(whole.ctypes.data + at) for at in (0, 2 * page)]
    for start in protect:
        assert library.mprotect(start, ctypes.c_size_t(page), 0) == 0, os.strerror(ctypes.get_errno())
    try:
        yield whole[page : 2 * page]
    finally:
        for start in protect:
            library.mprotect(start, ctypes.c_size_t(page), mmap.PROT_READ | mmap.PROT_WRITE)


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by mprotect")
@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_read_beside_a_run(path: str) -> None:
    random = Random(7)
    with between_guards() as page:
        for sizes in ([1], [1, 2, 3], [9, 10], range(1, 11)):
            for count in range(45):
                run = b"".join(any_varint(random, random.choice(sizes)) for _ in range(count))
                for start in (0, len(page) - len(run)):
                    at = page[start : start + len(run)]
                    at[:] = np.frombuffer(run, np.uint8)
                    assert _kernel.decode_run(at, path).tolist() == decoded(run)
                    for cut in (1, 2, 11):
                        assert (_kernel.decode_run(at[:-cut], path) is None) == (decoded(run[:-cut]) is None)


@pytest.mark.skipif(sys.platform == "win32", reason="pages are protected by mprotect")
@pytest.mark.parametrize("path", PATHS)
def test_nothing_is_read_beside_values(path: str) -> None:
    random = Random(8)
    with between_guards() as page:
        room = page.view(np.uint64)
        for bits in (7, 20, 28, 56, 64):
            for count in range(40):
                values = [random.getrandbits(bits) for _ in range(count)]
                for start in (0, len(room) - count):
                    at = room[start : start + count]
                    at[:] = values
                    assert bytes(_kernel.encode_run(at, path)) == b"".join(map(varint, values))


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_lists_of_records_decode_alike(seed: int) -> None:
    """Packed, not packed and mixed; whole, truncated, with varints that are too long; the same faults."""
    random = Random(seed)
    records = []
    for _ in range(random.choice([3, 30])):
        parts = []
        for _ in range(random.choice([1, 1, 1, 2, 4])):
            varints = [any_varint(random, random.randint(1, 10)) for _ in range(random.choice([0, 1, 5, 40]))]
            if random.random() < 0.3:
                parts += [tag(1, 0) + one for one in varints]
            else:
                parts.append(delimited(1, b"".join(varints)))
        records.append(record(*parts))
    if random.random() < 0.5:
        run = any_varint(random, random.randint(1, 10)) * random.randint(0, 30)
        run += random.choice([b"\xff" * 10 + b"\x01", b"\x80", b"\x80" * 70, b"\xff" * 9 + b"\x7f"])
        run += random.choice([b"", b"\x01" * random.randint(1, 70)])
        records.insert(random.randint(0, len(records)), record(delimited(1, run)))
    frames = REFERENCE.frame(records)
    compare(LISTS, frames, [])
    compare(Plan(), frames, sorted(random.sample(range(len(frames)), 2)))
