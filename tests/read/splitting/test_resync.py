"""The search for record boundaries, beside a plain model of its rule."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from records import framed, header, masked, written
from tfrecord_io.engine.contract import MAX_RECORD_BYTES
from tfrecord_io.engine.select import get_engine
from tfrecord_io.read.splitting import resync
from tfrecord_io.read.splitting.resync import find_boundaries
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.random_access import open_random_access

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
    monkeypatch.setattr(resync, "_WINDOW_BYTES", window)
    monkeypatch.setattr(resync, "_CHECKED_RECORDS", checked)
    content = bytearray(framed(*records))
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=3)):
        content[at] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    positions = sorted(data.draw(st.lists(st.integers(0, len(content)), min_size=1, max_size=5)))
    assert search(path, positions) == expected(bytes(content), positions)


@pytest.mark.parametrize("before", range(40, 90))
def test_a_header_at_the_border_of_a_window_is_found(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    monkeypatch.setattr(resync, "_WINDOW_BYTES", 64)
    path = written(tmp_path / "a.tfrecord", [bytes(before), b"second"])
    assert search(path, [1]) == [before + 16]


@pytest.mark.parametrize("records", range(1, 6))
def test_only_an_intact_last_record_proves_a_chain(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    """Behind the checked records too, and if it is the only one."""
    monkeypatch.setattr(resync, "_CHECKED_RECORDS", 1)
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
    monkeypatch.setattr(resync, "_CHECKED_RECORDS", 1)
    path = written(tmp_path / "a.tfrecord", [bytes(20)] * (records + 2))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert search(path, [1], 36 * records - 17, block_bytes=36) == [36]
    assert search(path, [1], 36 * records - 16, block_bytes=36) == [len(content)]


@given(st.lists(offsets, max_size=12), st.lists(st.integers(0, 70), max_size=4), st.integers(1, 4))
def test_a_set_of_offsets_has_what_was_added(
    monkeypatch: pytest.MonkeyPatch, added: list[list[int]], asked: list[int], arrays: int
) -> None:
    monkeypatch.setattr(resync, "_MAX_ARRAYS", arrays)
    found = resync._OffsetSet()
    for part in added:
        found.add(np.array(part, np.int64))
    assert found.intersects(np.array(asked, np.int64)) == bool({at for part in added for at in part} & {*asked})
    assert len(found._arrays) <= arrays
