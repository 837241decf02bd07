"""An index file is used only if it matches its data file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import tfrecord_io as tfr
from records import framed, header, written
from tfrecord_io.index import find_indexes, read_index
from tfrecord_io.index.record_index import RecordIndex
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.random_access import open_random_access
from tfrecord_io.tools.index_files import write_indexes


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = written(tmp_path / "a.tfrecord", [b"one", b"", b"three"])
    write_indexes(found)
    return found


def read(path: Path) -> RecordIndex:
    (source,) = resolve_inputs(path)
    (index_source,) = find_indexes([source])
    assert index_source is not None
    with open_random_access(source) as ranges:
        return read_index(index_source, source, ranges)


@pytest.mark.parametrize("stem", ["a.tfrecord", "a"])
@pytest.mark.parametrize("suffix", [".index", ".tfindex", ".idx"])
def test_every_name_is_found(engine: str, path: Path, stem: str, suffix: str) -> None:
    index_source = path.with_name("a.tfrecord.index")
    index_source.rename(path.with_name(stem + suffix))
    assert read(path).bounds.tolist() == [0, 19, 35, 56]


@pytest.mark.parametrize("name", ["a.tfrecord.idx", "a.index"])
def test_first_suffix_and_full_name_win(path: Path, name: str) -> None:
    path.with_name(name).write_text("nonsense")
    assert len(read(path)) == 3


def test_folder_of_that_name_is_ignored(tmp_path: Path) -> None:
    written(tmp_path / "a.tfrecord", [b"one"])
    (tmp_path / "a.tfrecord.index").mkdir()
    assert find_indexes(resolve_inputs(tmp_path / "a.tfrecord")) == [None]


def test_indexes_are_not_read_as_data(path: Path) -> None:
    assert [source.path for source in resolve_inputs(path.parent)] == [str(path)]


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    ("content", "text", "reason"),
    [
        (framed(b"one", b"", b"three", b"four"), None, "its last record ends at byte 56, the file has 76"),
        (framed(b"one", b""), None, "its last record ends at byte 56, the file has 35"),
        (b"", None, "its last record ends at byte 56, the file has 0"),
        (None, "", "its last record ends at byte 0, the file has 56"),
        (None, "0 56\n", "record 0 at byte 0 has 19 bytes, not 56"),
        (None, "0 19\n19 37\n", "record 1 at byte 19 has 16 bytes, not 37"),
        (None, "0 19\n19 20\n39 17\n", "there is no record header at byte 39, the offset of record 2"),
        (bytes(56), None, "there is no record header at byte 0"),
    ],
)
def test_mismatch_names_both_files(
    engine: str, path: Path, content: bytes | None, text: str | None, reason: str
) -> None:
    index_source = path.with_name("a.tfrecord.index")
    if content is not None:
        path.write_bytes(content)
    if text is not None:
        index_source.write_text(text)
    index_source.touch()
    with pytest.raises(tfr.CorruptRecordError, match=reason) as caught:
        read(path)
    assert caught.value.path == str(index_source)
    assert f"does not match {path}" in str(caught.value)
    assert "tfr index" in str(caught.value)


@pytest.mark.fault(56)
def test_an_index_older_than_its_file_is_refused(path: Path) -> None:
    stamp = path.stat().st_mtime
    os.utime(path.with_name("a.tfrecord.index"), (stamp - 60, stamp - 60))
    with pytest.raises(tfr.CorruptRecordError, match="it is 60 s older, so the file may have been rewritten"):
        read(path)
    os.utime(path.with_name("a.tfrecord.index"), (stamp, stamp))
    assert len(read(path)) == 3


@pytest.mark.fault(22)
def test_offsets_beyond_four_gib(tmp_path: Path) -> None:
    """A sparse file: three records of 2 GiB of zeros, whose checksums are not read, and a valid record after them."""
    path = tmp_path / "a.tfrecord"
    large = 2**31 - 1
    with path.open("wb") as file:
        for at in range(3):
            file.seek(at * (large + 16))
            file.write(header(large))
        file.seek(3 * (large + 16))
        file.write(framed(b"behind"))
    for indexed in (False, True):
        if indexed:
            write_indexes(path)
        assert tfr.count_records(path) == 4
        with tfr.open_random(path, record_type="bytes") as records:
            assert records[3] == {"record": b"behind"}
    assert read(path).bounds.tolist() == [0, large + 16, 2 * (large + 16), 3 * (large + 16), 3 * (large + 16) + 22]
