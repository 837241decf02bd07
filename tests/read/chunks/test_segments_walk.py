"""Records are counted and skipped in segments, and the segments used only where they are as in a walk in order."""

from __future__ import annotations

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of
from records import framed, written
from tfrecord_io.bytes.engine.contract import Checks
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.bytes.format.framing import FrameHeader
from tfrecord_io.read.chunks import count_frames
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.chunks.segments import SegmentWork, segment_pool
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.plain_file import OpenPlainFile

ROWS = 3000


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    return written(tmp_path / "a.tfrecord", [b"%d" % i for i in range(ROWS)])


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each walk over a segment, whether it was repeated in order."""
    repeated: list[bool] = []
    work = SegmentWork.segment

    def recorded(self: Any, part: Any, begin: int, end: int, **keywords: Any) -> Any:
        repeated.append(keywords["is_boundary"] and begin > 0)
        return work(self, part, begin, end, **keywords)

    monkeypatch.setattr(SegmentWork, "segment", recorded)
    return repeated


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_segments_walked_over_in_advance_are_used(
    engine: str, numbers: Path, walks: list[bool], check_crc: bool, threads: int
) -> None:
    with blocks_of(1000):
        assert tfr.count(tfr.dataset(numbers, threads=threads), check_crc=check_crc) == ROWS
    assert len(walks) == -(-numbers.stat().st_size // 1000)
    assert not any(walks)


def test_segments_are_used_again_behind_damage(engine: str, numbers: Path) -> None:
    content = bytearray(numbers.read_bytes())
    content[content.index(b"777")] ^= 1
    numbers.write_bytes(content)
    (source,) = resolve_inputs(numbers)
    walker = BlockWalker(iter([source]), lambda source: RecordFile(source, block_bytes=100))
    steps = []
    with blocks_of(1000), segment_pool(2) as pool, closing(walker):
        walk = count_frames._frame_walk(pool, 100, Checks.ALL)
        while walker.load():
            steps.append(walk.advance(walker))
            if steps[-1]:
                continue
            frames, fault = walker.frames(get_engine(), check_crc=True)
            walker.advance(len(frames.starts), frames.consumed)
            if fault is None:
                walker.read_on()
            else:
                walker.discard(FrameHeader(walker.data).frame_size)
    assert sum(steps) > ROWS // 2
    assert walker.record == ROWS - 1


@pytest.mark.parametrize("check_crc", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_records_in_payloads_are_not_counted(engine: str, tmp_path: Path, check_crc: bool, threads: int) -> None:
    inner = framed(*[b"inner"] * 300)
    path = written(tmp_path / "a", [inner] * 41)
    with blocks_of(1000):
        assert tfr.count(tfr.dataset(path, threads=threads), check_crc=check_crc) == 41


def test_many_files_are_counted_side_by_side(engine: str, numbers: Path, tmp_path: Path) -> None:
    other = written(tmp_path / "b", [b"x"] * 5)
    assert tfr.count(tfr.dataset([numbers, other] * 5, threads=3), check_crc=True) == 5 * (ROWS + 5)
    bad, worse = tmp_path / "bad", tmp_path / "worse"
    bad.write_bytes(numbers.read_bytes()[:-1])
    worse.write_bytes(b"\x89PNG" + bytes(100))
    for threads in (1, 2, 8):
        with pytest.raises(tfr.errors.TruncatedRecordError, match="bad") as caught:
            tfr.count(tfr.dataset([numbers, other, bad, worse], threads=threads), check_crc=True)
        assert caught.value.records_intact == ROWS - 1


def skipped_bytes(path: Path, offset: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes that are read at their offsets to skip records, after which the next one is read."""
    read_bytes, read = [], OpenPlainFile.read_into

    def counted(self: OpenPlainFile, buffer: Any, begin: int) -> int:
        read_bytes.append(len(buffer))
        return read(self, buffer, begin)

    with monkeypatch.context() as patch:
        patch.setattr(OpenPlainFile, "read_into", counted)
        table = tfr.read_table(tfr.dataset(path, record_type="bytes", offset=offset, threads=threads), limit=1)
    assert table["record"].to_pylist() == [bytes([offset]) * 400_000]
    return sum(read_bytes)


@pytest.mark.parametrize("threads", [1, 4])
def test_large_payloads_are_skipped_without_reading_them(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    path = written(tmp_path / "a", [bytes([i]) * 400_000 for i in range(40)])
    assert skipped_bytes(path, 35, threads, monkeypatch) == 35 * 12


sizes = st.lists(st.integers(0, 60), max_size=30) | st.lists(st.sampled_from([0, 9, 300, 2000]), max_size=12)


@given(sizes, st.integers(0, 100), st.integers(0, 40), st.sampled_from([16, 40, 300]), st.booleans())
def test_any_offset_is_found_on_any_number_of_threads(
    native_engine: None, sizes: list[int], repeats: int, offset: int, block: int, checked: bool
) -> None:
    payloads = [bytes([i % 256]) * size for i, size in enumerate(sizes)] + [b"end"] * repeats
    on_error = "skip" if checked else "raise"
    with tempfile.TemporaryDirectory() as folder:
        paths = [written(Path(folder) / f"{i}.tfrecord", payloads) for i in range(2)]
        with blocks_of(block):
            for threads in (1, 2, 3, 4, 8):
                options = {"record_type": "bytes", "on_error": on_error, "threads": threads}
                assert (
                    read_by(tfr.read_table, paths, offset=offset, **options)["record"].to_pylist()
                    == (2 * payloads)[offset:]
                )
                assert tfr.count(tfr.dataset(paths, threads=threads), check_crc=checked) == 2 * len(payloads)
