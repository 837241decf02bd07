"""The search for record boundaries, beside a plain model of its rule."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import framed, header, masked, written
from tfrecord_io.base.options.tuned_limits import LIMITS
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.read import find_boundaries as boundaries
from tfrecord_io.read.chunks import resync
from tfrecord_io.read.find_boundaries import IntactRecords, find_boundaries
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.random_access_file import RandomAccessFile

small = st.binary(max_size=30) | st.integers(0, 100).map(bytes)
nested = st.lists(small, max_size=8).map(lambda payloads: framed(*payloads))
cut = st.tuples(nested, st.integers(1, 40)).map(lambda pair: pair[0][: -pair[1]])
claims = st.lists(st.integers(0, 300).map(header), max_size=5).map(b"".join)
payloads = small | nested | cut | claims | st.tuples(small, nested, claims).map(b"".join)


CHAIN = 64  # bytes of a chain that are enough in the tests with a small file


@pytest.fixture
def short_chains(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is read at a time, and little proves a boundary."""
    monkeypatch.setattr(boundaries, "_CHAIN_BYTES", (CHAIN, CHAIN))


def search(path: Path, positions: list[int], max_record_bytes: int = LIMITS.MAX_RECORD_BYTES) -> list[int]:
    (source,) = resolve_inputs(path)
    with RandomAccessFile.open(source) as file:
        return find_boundaries(file, get_engine(), positions, max_record_bytes)


def expected(content: bytes, position: int, least: float = math.inf, records: int = 0) -> int:
    """The begin of the first chain of intact records that ends with the file, or is long.

    If intact records lie before it: where the records end that are followed from a boundary before the position.
    """
    proven = partial(first_proven, content, least=least, records=records)
    found = proven(position)
    if position == 0 or not any(intact_end(content, at) for at in range(position, found)):
        return found
    for distance in (2 * least, 5 * least):
        at = 0 if position <= distance else proven(position - int(distance))
        is_followed = at < position
        while at < position:
            if (end := stated_end(content, at)) is not None:
                at = min(end, len(content))
            else:
                at = proven(at + 1)
                is_followed = at < position
        if is_followed:
            return at
    return found


def first_proven(content: bytes, position: int, least: float, records: int) -> int:
    candidates = range(position, len(content)) if position else [0]
    return next((at for at in candidates if not at or leads_on(content, at, least, records)), len(content))


def stated_end(content: bytes, at: int) -> int | None:
    """The end of the record with an intact header."""
    stated = content[at : at + 12]
    if len(stated) < 12 or masked(stated[:8]) != stated[8:]:
        return None
    return at + 16 + int.from_bytes(stated[:8], "little")


def intact_end(content: bytes, at: int) -> int | None:
    end = stated_end(content, at)
    return end if end is not None and masked(content[at + 12 : end - 4]) == content[end - 4 : end] else None


def leads_on(content: bytes, begin: int, least: float, records: int) -> bool:
    """The rule of the search, but for records that are not read."""
    at = begin
    for number in itertools.count():
        if at == len(content) or (at - begin >= least and number >= records) or at - begin >= 4 * least:
            return True
        end = intact_end(content, at)
        if end is None:
            return False
        at = end
    raise AssertionError


@given(st.lists(payloads, min_size=1, max_size=8), st.data())
@pytest.mark.fault(21)
def test_boundaries_are_those_of_a_plain_search(
    engine: str, new_folder: Callable[[], Path], records: list[bytes], data: st.DataObject
) -> None:
    """Whatever the payloads hold and wherever bytes are damaged."""
    tmp_path = new_folder()
    content = bytearray(framed(*records))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[at] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    positions = data.draw(st.lists(st.integers(0, len(content)), min_size=1, max_size=5))
    assert search(path, positions) == [expected(bytes(content), position) for position in positions]


@given(st.lists(payloads, min_size=1, max_size=12), st.integers(0, 9), st.data())
def test_long_chains_are_those_of_a_plain_search(
    engine: str, new_folder: Callable[[], Path], records: list[bytes], least: int, data: st.DataObject
) -> None:
    """No record is too long to be read, but a chain need not lead to the end; whatever was searched before."""
    tmp_path = new_folder()
    size = data.draw(st.integers(500, 1500))
    content = bytearray(framed(*records))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[at] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    positions = data.draw(st.lists(st.integers(0, len(content)), min_size=1, max_size=5))
    with mock.patch.multiple(boundaries, _CHAIN_BYTES=(size, size), _CHAIN_RECORDS=least):
        found = search(path, positions)
    assert found == [expected(bytes(content), at, size, least) for at in positions]


@pytest.mark.parametrize("before", range(30, 130))
@pytest.mark.usefixtures("short_chains")
def test_a_header_at_the_border_of_a_window_is_found(engine: str, tmp_path: Path, before: int) -> None:
    path = written(tmp_path / "a.tfrecord", [bytes(before), b"second"])
    assert search(path, [1]) == [before + 16]


@pytest.mark.parametrize("records", range(1, 6))
def test_only_an_intact_last_record_proves_a_chain(engine: str, tmp_path: Path, records: int) -> None:
    """Where nothing before it does: its first record has a damaged header."""
    path = written(tmp_path / "a.tfrecord", [b"first", *[b"payload"] * records])
    assert search(damaged(path, 0), [1]) == [21]
    assert search(damaged(path, -1), [1]) == [path.stat().st_size]


@pytest.mark.parametrize("damage", [0, 8, 12, 22], ids=["length", "length_crc", "payload", "payload_crc"])
@pytest.mark.parametrize("records", [[3], [5], [3, 4], [2, 5], [3, 5], [1, 3, 5], [5, 5], []], ids=str)
@pytest.mark.parametrize("least", [32, 64, 1000])
def test_damage_moves_no_boundary_before_it(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: int, records: list[int], least: int
) -> None:
    """Of records of 23 bytes, behind the first ones; no chain in the file is long enough where it is damaged."""
    monkeypatch.setattr(boundaries, "_CHAIN_BYTES", (least, least))
    content = bytearray(framed(*[b"payload"] * 6))
    for record in records:
        content[record * 23 + damage] ^= 1
    for cut in (0, 1, 15) if not records else (0,):
        (tmp_path / "a.tfrecord").write_bytes(content[: len(content) - cut])
        found = search(tmp_path / "a.tfrecord", list(range(len(content) - cut)))
        first = min(records, default=6 if not cut else 5)
        assert found[: (first - 1) * 23 + 1] == [-(-position // 23) * 23 for position in range((first - 1) * 23 + 1)]
        assert found == sorted(found)


def damaged(path: Path, at: int) -> Path:
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("least", [1, 2, 3, 5])
@pytest.mark.usefixtures("short_chains")
def test_a_chain_is_long_with_enough_bytes_and_records(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int
) -> None:
    """Both; or with four times the bytes. One record less is not enough, and the damage behind it decides."""
    monkeypatch.setattr(boundaries, "_CHAIN_RECORDS", least)
    for size in (16, 32, 40, 64, 80):
        enough = next(n for n in range(1, 99) if n * size >= 4 * CHAIN or (n * size >= CHAIN and n >= least))
        for intact in (enough - 1, enough):
            records = [bytes(size - 16)] * (intact + 3)
            path = damaged(written(tmp_path / "a.tfrecord", records), (intact + 1) * size)
            damaged(path, 0)  # nothing is followed from the first record
            assert search(path, [1]) == [size if intact == enough else (intact + 2) * size], (size, intact)


LONG = 300  # bytes of a record that is longer than what is read at a time


@pytest.mark.parametrize("header_is_damaged", [False, True])
@pytest.mark.parametrize("at", range(1, 5))
@pytest.mark.usefixtures("short_chains")
def test_of_long_records_only_headers_are_read(engine: str, tmp_path: Path, at: int, header_is_damaged: bool) -> None:
    """One of them is long enough for a chain, if it leads to another header."""
    path = written(tmp_path / "a.tfrecord", [bytes(LONG - 16)] * 8)
    damaged(path, LONG * at + (0 if header_is_damaged else 20))
    damaged(path, 0)  # nothing is followed from the first record
    found = {1: 2, 2: 3}.get(at, 1) if header_is_damaged else 1
    assert search(path, [1]) == [LONG * found]


@pytest.mark.usefixtures("short_chains")
def test_the_last_record_of_a_file_is_read_however_long_it_is(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"first", bytes(LONG)])
    assert search(damaged(path, 0), [1]) == [21]
    assert search(damaged(path, 100), [1]) == [path.stat().st_size]


@pytest.mark.usefixtures("short_chains")
def test_a_record_that_is_longer_than_the_rest_of_the_file_is_none(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"first", header(LONG) + bytes(200), b"last"])
    assert search(path, [1, 22]) == [21, path.stat().st_size - 20]


def test_a_record_beyond_the_limit_is_none(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"first", bytes(100), b"last"])
    assert search(path, [1], 100) == [21]
    assert search(path, [1], 99) == [path.stat().st_size - 20]


def test_each_position_has_its_own_boundary(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 60)
    positions = [0, 1, 24, 300, 301, 800, 1379, 1380, 2000]
    found = [min(-(-position // 23) * 23, 1380) for position in positions]
    assert search(path, positions) == found
    with RandomAccessFile.open(resolve_inputs(path)[0]) as file:
        assert find_boundaries(file, get_engine(), positions, threads=3) == found


def test_a_search_among_false_headers_is_given_up(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them has a payload of half the file, whose checksum does not match."""
    path = written(tmp_path / "a.tfrecord", [header(20_000) * 1000 + bytes(21_000), b"after"])
    assert search(path, [1]) == [path.stat().st_size - 21]
    monkeypatch.setattr(resync, "_SPARE_BYTES", 1 << 20)
    with pytest.raises(tfr.errors.CorruptRecordError, match="no record boundary was found from byte 1 on") as caught:
        search(path, [1])
    assert caught.value.offset == 1


class CountedEngine:
    """Counts the bytes of records that are scanned."""

    seen = 0

    def find_header(self, *data: Any, **how: Any) -> int:
        return get_engine().find_header(*data, **how)

    def scan(self, data: Any, **how: Any) -> Any:
        frames, fault = get_engine().scan(data, **how)
        self.seen += frames.consumed
        return frames, fault


def test_a_false_chain_is_read_once_wherever_it_is_entered(engine: str, tmp_path: Path) -> None:
    """Claims that lead into the same nested file, which ends too early."""
    nested = framed(*[b"nested"] * 5000)[:-1]
    claims = b"".join(header(12 * (500 - at) - 16) for at in range(490)) + bytes(120)
    path = written(tmp_path / "a.tfrecord", [claims + nested + bytes(100), b"after"])
    counted: Any = CountedEngine()
    with RandomAccessFile.open(resolve_inputs(path)[0]) as file:
        assert find_boundaries(file, counted, [1]) == [file.size - 21]
        assert counted.seen < 3 * file.size


def test_records_that_several_chains_have_are_read_once(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boundaries, "_CHAIN_BYTES", (1 << 18, 1 << 18))
    path, counted, records = written(tmp_path / "a.tfrecord", [bytes(84)] * 9000), CountedEngine(), IntactRecords()
    with RandomAccessFile.open(resolve_inputs(path)[0]) as file:
        found = []
        for begin in range(1, file.size, 100_000):
            found += find_boundaries(file, counted, [begin, begin + 50_000], records=records)  # type: ignore[arg-type]
        assert found == [-(-position // 100) * 100 for position in range(1, file.size, 50_000)]
        assert counted.seen < 2 * file.size
