"""Records by address, with the offsets of few of them known."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base import ReadOptions
from tfrecord_io.read import record_map
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.record_map import MappedFrames, RecordMap
from waiting import wait_for


def opened(path: object) -> RecordMap:
    scan = CallSource(path).dataset(ReadOptions(record_type="bytes"))
    return RecordMap(scan)


def completed(path: object) -> RecordMap:
    found = opened(path)
    found.begin()
    found.note_read()  # it has not to wait for a first screen
    wait_for(lambda: found.is_complete)
    return found


def payloads(path: Path, contents: list[bytes]) -> Path:
    with tfr.RecordWriter(path) as writer:
        for content in contents:
            writer.write(content)
    return path


@settings(max_examples=20)
@given(sizes=st.lists(st.sampled_from([0, 1, 50, 3000, 70_000, 200_000]), max_size=60), data=st.data())
def test_records_are_those_of_the_file(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    contents = [bytes([at % 256]) * size for at, size in enumerate(sizes)]
    found = completed(payloads(tmp_path_factory.mktemp("map") / "a.tfrecord", contents))
    assert found.total == len(contents)
    numbers = data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=20)) if sizes else []
    addresses = np.array([found.address(number) for number in numbers], np.int64)
    mapped = MappedFrames(found, frozenset())
    frames, bounds = mapped.join_frames(addresses)
    for at, number in enumerate(numbers):
        assert frames[bounds[at] : bounds[at + 1]].tobytes()[12:-4] == contents[number]
        assert found.number(int(addresses[at])) == number
    assert [n for part in mapped.chunks(addresses, 100_000) for n in part.tolist()] == addresses.tolist()
    with pytest.raises(IndexError):
        found.address(len(contents))
    found.close()


def test_the_first_records_are_known_at_once(tmp_path: Path) -> None:
    found = opened(payloads(tmp_path / "a.tfrecord", [b"x" * 1000] * 50_000))
    found.stored(found.address(3)).payload.read()
    assert 3 < found.total < 50_000
    assert not found.is_complete
    found.close()


def test_a_map_takes_a_hundredth_of_an_index(tmp_path: Path) -> None:
    found = completed(payloads(tmp_path / "a.tfrecord", [b"x" * 30] * 100_000))
    assert found.total == 100_000
    assert len(found.files[0]._numbers) < 1000
    found.close()


def test_compressed_files_are_decompressed_once_beside(tmp_path: Path) -> None:
    plain = payloads(tmp_path / "a.tfrecord", [b"%d" % at for at in range(1000)])
    packed = tmp_path / "b.tfrecord.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    found = completed([plain, packed])
    assert found.total == 2000
    assert found.stored(found.address(1999)).payload.read() == b"999"
    assert found.place(found.address(1999)) == (1, 999)
    folder = Path(found._folder())
    assert [*folder.iterdir()]
    found.close()
    assert not folder.exists()


def test_damaged_regions_are_records_of_their_own(tmp_path: Path) -> None:
    path = payloads(tmp_path / "a.tfrecord", [b"%05d" % at for at in range(100)])
    data = bytearray(path.read_bytes())
    data[50 * 21 + 2] ^= 1  # in the header of record 50
    path.write_bytes(data)
    found = completed(path)
    assert found.total == 100
    assert found.damage(49) is None
    damage = found.damage(50)
    assert damage is not None
    assert (damage.begin, damage.end) == (50 * 21, 51 * 21)
    assert "length CRC" in damage.reason
    assert found.stored(51).payload.read() == b"00051"
    found.close()


def test_a_file_that_is_being_written_ends_with_damage_and_is_stale_later(tmp_path: Path) -> None:
    path = payloads(tmp_path / "a.tfrecord", [b"first", b"second"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-3])
    found = completed(path)
    assert found.total == 2
    damage = found.damage(1)
    assert damage is not None
    assert "still being written" in damage.reason
    assert not found.is_stale
    path.write_bytes(whole)
    assert found.is_stale
    found.close()


def test_a_bucket_is_not_read_whole_unless_it_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    for name in ("a", "b", "c"):
        files.pipe_file(f"/map/{name}.tfrecord", payloads(tmp_path / name, [b"x" * 1000] * 100).read_bytes())
    monkeypatch.setattr(record_map, "_UNASKED", 150_000)
    found = opened(["memory://map/a.tfrecord", "memory://map/b.tfrecord", "memory://map/c.tfrecord"])
    found.begin()
    wait_for(lambda: found.total >= 100)
    assert found.unread > 150_000
    assert not found.is_complete
    assert found.stored(found.address_in(2, 99)).payload.read() == b"x" * 1000
    found.may_read_all = True
    wait_for(lambda: found.is_complete)
    assert found.total == 300
    found.close()
