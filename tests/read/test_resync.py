"""The search for record boundaries, beside a plain model of its rule."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from limited import set_limits
from records import framed, header, masked, written
from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.read import resync
from tfrecord_io.read.resync import find_boundaries
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.random_access_file import open_random_access

small = st.binary(max_size=30) | st.integers(0, 100).map(bytes)
nested = st.lists(small, max_size=8).map(lambda payloads: framed(*payloads))
cut = st.tuples(nested, st.integers(1, 40)).map(lambda pair: pair[0][: -pair[1]])
claims = st.lists(st.integers(0, 300).map(header), max_size=5).map(b"".join)
payloads = small | nested | cut | claims | st.tuples(small, nested, claims).map(b"".join)
offsets = st.lists(st.integers(0, 60), max_size=8, unique=True).map(sorted)


def search(
    path: Path, positions: list[int], max_record_bytes: int = MAX_RECORD_BYTES, *, block_bytes: int = 1 << 15
) -> list[int]:
    """The boundaries, found with small blocks."""
    (source,) = resolve_inputs(path)
    with open_random_access(source) as file:
        file.block_bytes = block_bytes
        return find_boundaries(file, get_engine(), positions, max_record_bytes)


def expected(content: bytes, positions: list[int]) -> list[int]:
    """From the last position to the first: the begin of the first intact chain that ends at the last one found."""
    boundary = len(content)
    found = []
    for begin, end in list(pairwise([*positions, len(content)]))[::-1]:
        boundary = next((at for at in range(begin, end) if leads_to(content, at, boundary)), boundary)
        found.append(boundary)
    return found[::-1]


def leads_to(content: bytes, at: int, boundary: int) -> bool:
    while at < boundary:
        stated = content[at : at + 12]
        if len(stated) < 12 or masked(stated[:8]) != stated[8:]:
            return False
        payload_end = at + 12 + int.from_bytes(stated[:8], "little")
        if payload_end + 4 > boundary:
            return False
        if masked(content[at + 12 : payload_end]) != content[payload_end : payload_end + 4]:
            return False
        at = payload_end + 4
    return at == boundary


@given(st.lists(payloads, min_size=1, max_size=8), st.integers(12, 80), st.integers(1, 5), st.data())
@pytest.mark.fault(21)
def test_boundaries_are_those_of_a_plain_search(
    engine: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    records: list[bytes],
    window: int,
    checked: int,
    data: st.DataObject,
) -> None:
    """Whatever the payloads hold and wherever bytes are damaged, for any window and any number of checked records."""
    set_limits(monkeypatch, search_window_bytes=window, checked_records=checked)
    content = bytearray(framed(*records))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[at] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    positions = sorted(data.draw(st.lists(st.integers(0, len(content)), min_size=1, max_size=5)))
    assert search(path, positions) == expected(bytes(content), positions)


@pytest.mark.parametrize("before", range(30, 90))
def test_a_header_at_the_border_of_a_window_is_found(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    set_limits(monkeypatch, search_window_bytes=64)
    path = written(tmp_path / "a.tfrecord", [bytes(before), b"second"])
    assert search(path, [1]) == [before + 16]


@pytest.mark.parametrize("records", range(1, 6))
def test_only_an_intact_last_record_proves_a_chain(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """Behind the checked records too, and if it is the only one."""
    set_limits(monkeypatch, checked_records=1)
    path = written(tmp_path / "a.tfrecord", [b"first", *[b"payload"] * records])
    assert search(path, [1]) == [21]
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert search(path, [1]) == [len(content)]


@pytest.mark.parametrize("records", [2, 3, 10])
def test_a_chain_is_accepted_once_it_is_longer_than_any_record(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """One byte decides; a block is one record, so that the end of the chain is known exactly."""
    set_limits(monkeypatch, checked_records=1)
    path = written(tmp_path / "a.tfrecord", [bytes(20)] * (records + 2))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert search(path, [1], 36 * records - 17, block_bytes=36) == [36]
    assert search(path, [1], 36 * records - 16, block_bytes=36) == [len(content)]


LARGE = 300  # bytes of a record that is more than a block of the tests below


def damage(path: Path, record: int) -> None:
    """Flip a bit of the payload of a record of `LARGE` bytes."""
    content = bytearray(path.read_bytes())
    content[LARGE * record + 20] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("first", [1, 7])
@pytest.mark.parametrize("checked", [1, 2, 4])
@pytest.mark.parametrize("limit", ["checked_records", "checked_bytes"])
def test_the_first_records_of_a_chain_are_intact_whatever_their_size(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, checked: int, first: int
) -> None:
    """So many records, or those that begin within so many bytes; only headers are read of the ones behind them."""
    set_limits(monkeypatch, **{limit: checked + 1 if limit == "checked_records" else checked * LARGE})
    for damaged in range(1, 7):
        path = written(tmp_path / "a.tfrecord", [bytes(LARGE - 16)] * (first + 9))
        damage(path, first + damaged)
        is_checked = damaged < checked
        begin = first + damaged + 1 if is_checked else first
        position = LARGE * (first - 1) + 1
        assert search(path, [position], block_bytes=100) == [LARGE * begin], (damaged, is_checked)


def test_a_record_with_a_damaged_payload_is_no_boundary(engine: str, tmp_path: Path) -> None:
    """With all numbers as they are: the chain goes on behind the damage, and no small record is left out of it."""
    path = written(tmp_path / "a.tfrecord", [bytes(LARGE - 16)] * 9)
    damage(path, 1)
    assert search(path, [1], block_bytes=100) == [LARGE * 2]
    content = bytearray(path.read_bytes())
    content[LARGE + 20] ^= 1
    path.write_bytes(content)
    assert search(path, [1], block_bytes=100) == [LARGE]


@pytest.mark.parametrize("records", [1, 2, 3, 30])
@pytest.mark.parametrize("block_bytes", [100, 1000, 3000])
def test_a_chain_whose_last_record_is_damaged_is_not_accepted(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int, block_bytes: int
) -> None:
    """Also if only headers of it were read."""
    set_limits(monkeypatch, checked_records=1)
    path = written(tmp_path / "a.tfrecord", [bytes(LARGE - 16)] * (1 + records))
    assert search(path, [1], block_bytes=block_bytes) == [LARGE]
    damage(path, records)
    assert search(path, [1], block_bytes=block_bytes) == [LARGE * (1 + records)]


def test_a_chain_that_is_accepted_once_leads_there_again(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each position has its own boundary, however many records are between two of them."""
    set_limits(monkeypatch, checked_records=2)
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 60)
    positions = [1, 24, 300, 301, 800, 1379]
    assert search(path, positions) == [-(-position // 23) * 23 for position in positions]


def empty_then(length: int) -> bytes:
    """An empty record, and a header that states so many bytes."""
    return framed(b"") + header(length)


@pytest.mark.parametrize(("claims", "found"), [(1, True), (6, True), (7, True), (9, False), (20, False)])
@pytest.mark.parametrize("before", [0, 8000])
def test_false_chains_are_followed_for_four_times_the_size_of_the_file(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, claims: int, found: bool, before: int
) -> None:
    """Each claim is a chain of an empty record and of one over half the file; no certain boundary is the file's end."""
    set_limits(monkeypatch, checked_records=1, spare_search_bytes=0)
    size = 20_000 + before
    inner = bytes(before) + empty_then(size // 2) * claims
    path = written(tmp_path / "a.tfrecord", [inner + bytes(size - len(inner) - 16 - 21), b"after"])
    assert path.stat().st_size == size
    assert search(path, [1], block_bytes=100) == [size - 21 if found else size]


def test_a_small_file_is_searched_however_many_false_headers_it_has(engine: str, tmp_path: Path) -> None:
    """Each of them has a payload of half the file, which is read; the true boundary is found."""
    path = written(tmp_path / "a.tfrecord", [header(20_000) * 1000 + bytes(21_000), b"after"])
    assert search(path, [1]) == [path.stat().st_size - 21]


def test_a_false_chain_is_read_once_wherever_it_is_entered(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Claims that lead into the same nested file, which ends too early."""
    set_limits(monkeypatch, checked_records=1)
    nested = framed(*[b"nested"] * 5000)[:-1]
    claims = b"".join(header(12 * (500 - at) - 16) for at in range(490)) + bytes(120)
    path = written(tmp_path / "a.tfrecord", [claims + nested + bytes(100), b"after"])
    with open_random_access(resolve_inputs(path)[0]) as file:
        file.block_bytes = 3000
        seen, read = 0, file.read

        def counted(begin: int, end: int, *more: Any) -> Any:
            nonlocal seen
            seen += end - begin
            return read(begin, end, *more)

        file.read = counted  # type: ignore[method-assign]
        assert find_boundaries(file, get_engine(), [1]) == [file.size - 21]
        assert seen < 30 * file.size


@given(st.lists(offsets, max_size=12), st.lists(st.integers(0, 70), max_size=4), st.integers(1, 4))
def test_a_set_of_offsets_has_what_was_added(
    monkeypatch: pytest.MonkeyPatch, added: list[list[int]], asked: list[int], arrays: int
) -> None:
    set_limits(monkeypatch, search_arrays=arrays)
    found = resync._OffsetSet()
    for part in added:
        found.add(np.array(part, np.int64))
    assert found.intersects(np.array(asked, np.int64)) == bool({at for part in added for at in part} & {*asked})
    assert len(found._arrays) <= arrays
