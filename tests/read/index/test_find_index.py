"""An index file is used only if it matches its data file."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import fsspec
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import framed, header, written
from tfrecord_io.read.chunks import count_frames
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.index import find_index, indexed_files
from tfrecord_io.read.index.find_index import find_indexes, read_index
from tfrecord_io.read.index.record_index import RecordIndex
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.random_access_file import RandomAccessFile


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = written(tmp_path / "a.tfrecord", [b"one", b"", b"three"])
    write_indexes(found)
    return found


def read(path: Path) -> RecordIndex:
    (source,) = resolve_inputs(path)
    (index_source,) = find_indexes([source])
    assert index_source is not None
    with RandomAccessFile.open(source) as ranges:
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


def elsewhere(path: Path) -> Path:
    """The index of a file, moved to where it is not found."""
    named = path.parent / "indexes" / "offsets of a.txt"
    named.parent.mkdir(exist_ok=True)
    return path.with_name(f"{path.name}.index").rename(named)


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files whose headers are read."""
    paths: list[str] = []
    scan, count = indexed_files.scan_index, count_frames._count_file
    monkeypatch.setattr(indexed_files, "scan_index", lambda path, *rest: (paths.append(path), scan(path, *rest))[1])
    monkeypatch.setattr(
        count_frames, "_count_file", lambda s, *a, **k: (paths.append(s.path), read_by(count, s, *a, **k))[1]
    )
    return paths


@pytest.mark.parametrize("as_text", [False, True])
def test_an_index_is_named(path: Path, scanned: list[str], as_text: bool) -> None:
    index = elsewhere(path)
    with tfr.open_random(tfr.dataset(path, record_type="bytes"), index=str(index) if as_text else index) as records:
        assert records[:]["record"].to_pylist() == [b"one", b"", b"three"]
        with pickle.loads(pickle.dumps(records)) as other:
            assert other[2] == {"record": b"three"}
    assert tfr.count(path, index=index) == 3
    assert not scanned
    assert tfr.count(path) == 3
    assert scanned == [str(path)]


def test_indexes_of_several_files_are_named_in_their_order(path: Path, scanned: list[str]) -> None:
    other = written(path.with_name("b.tfrecord"), [b"four", b"five"])
    write_indexes(other)
    indexes = [elsewhere(path), other.with_name("b.tfrecord.index")]
    with tfr.open_random(tfr.dataset([path, other], record_type="bytes"), index=indexes) as records:
        assert records[:]["record"].to_pylist() == [b"one", b"", b"three", b"four", b"five"]
    assert tfr.count([path, other], index=indexes) == 5
    assert not scanned
    with pytest.raises(
        tfr.errors.CorruptRecordError, match=r"does not match .*a\.tfrecord: its last record ends at byte 40"
    ):
        tfr.count([path, other], index=indexes[::-1])


@pytest.mark.parametrize("call", [tfr.count, lambda path, **index: read_by(tfr.open_random, path, **index).close()])
def test_a_named_index_that_does_not_belong_to_the_file(path: Path, call: Any) -> None:
    other = written(path.with_name("b.tfrecord"), [b"four", b"five"])
    write_indexes(other)
    index = other.with_name("b.tfrecord.index")
    with pytest.raises(
        tfr.errors.CorruptRecordError, match="its last record ends at byte 40, but the file has 56"
    ) as caught:
        call(path, index=index)
    assert caught.value.path == str(index)
    with pytest.raises(FileNotFoundError, match=r"index=: No such file or directory: .*none"):
        call(path, index=path.with_name("none"))
    with pytest.raises(IsADirectoryError, match="index=: Is a directory"):
        call(path, index=path.parent)
    with pytest.raises(ValueError, match="2 index files for 1 data file: pass a list with one for each"):
        call(path, index=[index, index])
    with pytest.raises(ValueError, match="1 index file for 2 data files"):
        call([path, other], index=index)
    with pytest.raises(TypeError, match="index=True: expected the path of an index file"):
        call(path, index=True)


def test_a_named_index_is_not_ignored_in_silence(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2, 3]}, tmp_path / "a@1")
    (path,) = tmp_path.glob("a-*")
    (tmp_path / "index").write_text("0 30\n")
    with pytest.raises(tfr.errors.CorruptRecordError, match="does not match"):  # though the manifest states the number
        tfr.count(tmp_path / "a@1", index=tmp_path / "index")
    with pytest.raises(ValueError, match="index= cannot be used: check_crc=True reads all records"):
        tfr.count(path, index=tmp_path / "index", check_crc=True)
    with pytest.raises(ValueError, match=r"index= cannot be used: compression='gzip': only"):
        tfr.count(tfr.dataset(path, compression="gzip"), index=tmp_path / "index")


def test_a_named_index_of_another_filesystem(path: Path, scanned: list[str]) -> None:
    index = elsewhere(path)
    files = fsspec.filesystem("memory")
    files.pipe("/named/a.tfrecord", path.read_bytes())
    files.pipe("/named/offsets", index.read_bytes())
    for data, named in [(path, "memory://named/offsets"), ("memory://named/a.tfrecord", "memory://named/offsets")]:
        with tfr.open_random(tfr.dataset(data, record_type="bytes"), index=named) as records:
            assert tfr.count(data, index=named) == len(records) == 3
    index.touch()
    assert tfr.count("memory://named/a.tfrecord", index=index, storage_options={"asynchronous": False}) == 3
    assert not scanned
    files.rm("/named", recursive=True)


def test_indexes_are_not_read_as_data(path: Path) -> None:
    assert [source.path for source in resolve_inputs(path.parent)] == [str(path)]


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    ("content", "text", "reason"),
    [
        (framed(b"one", b"", b"three", b"four"), None, "its last record ends at byte 56, but the file has 76"),
        (framed(b"one", b""), None, "its last record ends at byte 56, but the file has 35"),
        (b"", None, "its last record ends at byte 56, but the file has 0"),
        (None, "", "its last record ends at byte 0, but the file has 56"),
        (None, "0 56\n", "record 0 at byte 0 has 19 bytes, not 56"),
        (None, "0 19\n19 37\n", "record 1 at byte 19 has 16 bytes, not 37"),
        (None, "0 19\n19 20\n39 17\n", "no record header at byte 39, the offset of record 2"),
        (bytes(56), None, "no record header at byte 0"),
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
    with pytest.raises(tfr.errors.CorruptRecordError, match=reason) as caught:
        read(path)
    assert caught.value.path == str(index_source)
    assert f"does not match {path}" in str(caught.value)
    assert "tfr index" in str(caught.value)


def test_the_age_of_an_index_says_nothing(path: Path) -> None:
    """A copy of both may have any."""
    stamp = path.stat().st_mtime
    for seconds in (-60, 0, 60):
        os.utime(path.with_name("a.tfrecord.index"), (stamp + seconds, stamp + seconds))
        assert len(read(path)) == 3


@pytest.mark.fault(56)
@pytest.mark.parametrize("small", [True, False])
def test_other_sizes_between_the_first_and_the_last_record(
    engine: str, path: Path, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not small:
        monkeypatch.setattr(find_index, "SMALL_BYTES", 0)
    path.write_bytes(framed(b"one", b"1", b"22", b"three"))
    path.with_name("a.tfrecord.index").write_text("0 19\n19 18\n37 17\n54 21\n")
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 1 at byte 19 has 17 bytes, not 18"):
        read(path)
    content = bytearray(path.read_bytes())
    content[19] ^= 1  # the index leads past damage
    path.write_bytes(content)
    assert len(read(path)) == 4


@pytest.mark.parametrize("line", ["99 17", "1000000 17", f"{2**63 - 5} 17", f"{2**64} 17", "54 17"])
def test_an_index_whose_lines_do_not_follow_one_another_is_not_used(
    path: Path, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_index, "SMALL_BYTES", 0)
    path.write_bytes(framed(b"one", b"1", b"22", b"three"))
    path.with_name("a.tfrecord.index").write_text(f"0 19\n{line}\n36 18\n54 21\n")
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the index is not used"):
        assert tfr.count(path) == 4


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
        assert tfr.count(path) == 4
        with tfr.open_random(tfr.dataset(path, record_type="bytes")) as records:
            assert records[3] == {"record": b"behind"}
    assert read(path).bounds.tolist() == [0, large + 16, 2 * (large + 16), 3 * (large + 16), 3 * (large + 16) + 22]


def remove_before_opening(patch: pytest.MonkeyPatch, path: Path) -> None:
    """Remove the index of a file before it is opened."""
    opened = RandomAccessFile.open

    def removed_first(source: Any) -> Any:
        if source.path != str(path):
            os.unlink(source.path)
        return opened(source)

    patch.setattr(RandomAccessFile, "open", staticmethod(removed_first))


@pytest.mark.parametrize("call", [tfr.count, lambda path: len(tfr.open_random(path))])
def test_an_index_that_is_removed_after_it_was_listed_is_no_index(
    path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove_before_opening(monkeypatch, path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert call(path) == 3


def test_a_named_index_that_is_removed_is_an_error(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_before_opening(monkeypatch, path)
    with pytest.raises(FileNotFoundError):
        tfr.open_random(path, index=elsewhere(path))


@pytest.mark.filterwarnings("error")
def test_an_index_that_is_a_pickle_is_of_another_package(tmp_path: Path) -> None:
    """tfd-utils names it as an index of DALI may be named."""
    path, pickled = tmp_path / "a.tfrecord", tmp_path / "a.index"
    tfr.write_tfrecord({"x": [1, 2, 3]}, path)
    pickled.write_bytes(pickle.dumps({"k": 1}))
    with tfr.open_random(path) as records:
        assert len(records) == 3
    assert tfr.verify(path).ok
    with pytest.raises(tfr.errors.CorruptRecordError, match="never loaded"), tfr.open_random(path, index=pickled):
        pass
