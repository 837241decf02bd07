"""Counting records."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

from records import written
from tfrecord_io import Limits, RecordReader, RecordWriter, dataset, formats, write_tfrecord
from tfrecord_io.errors import (
    CorruptRecordError,
    DamagedDataWarning,
    SchemaWarning,
    StaleIndexWarning,
    StoppedEarlyWarning,
    TruncatedRecordError,
)
from tfrecord_io.read.counting import count
from tfrecord_io.read.file_indexes import write_indexes


@pytest.mark.parametrize("name", ["tutorial", "ragged", "sequence", "images", "extremes", "empty"])
def test_golden_files_are_counted(engine: str, data: Path, name: str) -> None:
    assert count(data / f"{name}.tfrecord") == len(json.loads((data / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", ["tutorial_gzip.tfrecord.gz", "tutorial_zlib.tfrecord.zlib"])
def test_compressed_files_are_counted(engine: str, data: Path, name: str) -> None:
    assert count(data / name) > 0
    assert count([data / name, data / name]) == 2 * count(data / name)


def test_file_objects_are_counted(engine: str, data: Path) -> None:
    content = (data / "tutorial.tfrecord").read_bytes()
    assert count(io.BytesIO(content * 2)) == 2 * count(data / "tutorial.tfrecord")


def test_damage_raises_with_the_number_of_intact_records(engine: str, data: Path, flipped) -> None:
    records = count(data / "tutorial.tfrecord")
    path = flipped("tutorial.tfrecord", -1)
    with pytest.raises(CorruptRecordError) as caught:
        count(path, check_crc=True)
    assert caught.value.records_intact == records - 1
    assert count(path) == records


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("check_crc", [None, True])
@pytest.mark.parametrize("damaged", [0, 1, 2, 3])
def test_stop_counts_up_to_the_first_damage(
    engine: str, tmp_path: Path, damaged: int, check_crc: bool | None, threads: int
) -> None:
    """The records that `RecordReader` returns, whichever numbers are known without reading."""
    paths = [written(tmp_path / f"{i}", [b"payload"] * (5 + i)) for i in range(4)]
    write_indexes(paths[2])  # a known number between two that are counted
    content = bytearray(paths[damaged].read_bytes())
    content[2 * (7 + 16)] ^= 1
    paths[damaged].write_bytes(content)
    if damaged == 2:
        Path(f"{paths[2]}.index").unlink()
    with pytest.warns(StoppedEarlyWarning, match=f"{re.escape(str(paths[damaged]))}: record 2"):
        counted = count(dataset(paths, threads=threads), on_error="stop", check_crc=check_crc)
    with pytest.warns(StoppedEarlyWarning), RecordReader(paths, on_error="stop") as records:
        assert counted == len(list(records)) == sum(5 + i for i in range(damaged)) + 2
    with pytest.warns(DamagedDataWarning):
        assert count(dataset(paths, threads=threads), on_error="skip", check_crc=check_crc) == 25


def test_a_damaged_header_raises_with_its_offset(engine: str, data: Path, flipped) -> None:
    path = flipped("tutorial.tfrecord", 0)
    with pytest.raises(CorruptRecordError, match="length CRC") as caught:
        count(path)
    assert (caught.value.record, caught.value.offset) == (0, 0)


def test_a_truncated_file_raises(engine: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tfrecord"
    path.write_bytes((data / "tutorial.tfrecord").read_bytes()[:-7])
    with pytest.raises(TruncatedRecordError):
        count(path)


@pytest.mark.parametrize("check_crc", [False, True])
def test_other_files_raise_with_their_name(engine: str, tmp_path: Path, check_crc: bool) -> None:
    (tmp_path / "image.tfrecord").write_bytes(b"\x89PNG" + bytes(100))
    with pytest.raises(CorruptRecordError, match="looks like a PNG image"):
        count(tmp_path / "image.tfrecord", check_crc=check_crc)


def test_large_and_small_records_are_counted(engine: str, tmp_path: Path) -> None:
    sizes = [0, 5, 3_000_000, 1, 70_000, 80_000, 2_500_000, 7, 7]
    path = written(tmp_path / "mixed.tfrecord", [bytes(size) for size in sizes])
    assert count(path) == count(path, check_crc=True) == len(sizes)
    assert count([path, path]) == 2 * len(sizes)


def test_small_files_are_counted_side_by_side(tmp_path: Path) -> None:
    """Several are counted by one call of a thread; a larger one by a call of its own, a damaged one again in order."""
    for number in range(40):
        size = 300_000 if number == 7 else 10
        with RecordWriter(tmp_path / f"{number:02}.tfrecord") as writer:
            for _ in range(number + 1):
                writer.write(b"x" * size)
    files = dataset(tmp_path / "*.tfrecord", threads=4)
    assert count(files) == count(dataset(tmp_path / "*.tfrecord", threads=1)) == sum(range(1, 41))
    damaged = tmp_path / "20.tfrecord"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    with pytest.raises(TruncatedRecordError) as raised:
        count(files)
    assert (raised.value.path, raised.value.records_intact) == (str(damaged), 20)


@pytest.mark.parametrize("size", [100, 70_000, 2_500_000])
@pytest.mark.parametrize("cut", [1, 4, 5, 20])
def test_truncated_files_raise_alike_by_headers_and_by_reading(
    engine: str, tmp_path: Path, size: int, cut: int
) -> None:
    path = written(tmp_path / "cut.tfrecord", [bytes(size)] * 3)
    path.write_bytes(path.read_bytes()[:-cut])
    errors = []
    for check_crc in (False, True):
        with pytest.raises(TruncatedRecordError) as caught:
            count(path, check_crc=check_crc)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_too_long_records_raise(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "long.tfrecord"
    with RecordWriter(path) as writer:
        writer.write(bytes(1000))
    for check_crc in (False, True):
        with pytest.raises(CorruptRecordError, match="999 bytes"):
            count(dataset(path, limits=Limits(record_bytes=999)), check_crc=check_crc)


def test_the_index_of_a_file_is_used(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    write_tfrecord({"x": range(10)}, path, write_index=True)
    content = bytearray(path.read_bytes())
    content[-40] ^= 1  # so that reading would fail
    stamp = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert count(path) == 10


@pytest.mark.fault(56)
@pytest.mark.parametrize(("record_bytes", "is_used"), [(10, False), (5000, True)])
def test_a_text_index_is_used_where_reading_it_takes_less_than_the_file(
    tmp_path: Path, record_bytes: int, is_used: bool
) -> None:
    path, index, records = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.index", 1_000_000 // record_bytes
    written(path, [b"x" * record_bytes] * records)
    index.write_text("no index\n" * (records if not is_used else 1))
    with pytest.warns(StaleIndexWarning) if is_used else nullcontext():
        assert count(path) == records
    with pytest.raises(CorruptRecordError):
        count(path, index=index)


def test_index_that_does_not_match_is_skipped_or_an_error_if_it_was_named(tmp_path: Path) -> None:
    path, index = tmp_path / "a.tfrecord", tmp_path / "a.tfrecord.index"
    write_tfrecord({"x": range(10)}, path, write_index=True)
    content = index.read_bytes()
    write_tfrecord({"x": range(11)}, path)
    index.write_bytes(content)
    message = r"a\.tfrecord\.index: the index does not match .*a\.tfrecord"
    with pytest.warns(StaleIndexWarning, match=message):
        assert count(path) == 11
    with pytest.raises(CorruptRecordError, match=message):
        count(path, index=index)
    assert count(path, check_crc=True) == 11


def test_shard_lengths_of_tfds_are_used(data: Path) -> None:
    folder = data / "tfds" / "everything"
    assert count(folder) == count(folder, check_crc=True)


@pytest.mark.parametrize("dataset_of_tfds", ["everything", "splits", "episodes", "written"])
@pytest.mark.parametrize("is_relative", [False, True])
def test_shard_lengths_of_tfds_are_used_while_its_files_are_there(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dataset_of_tfds: str, is_relative: bool
) -> None:
    """Nothing is read for them; once a file is another one, it is."""
    folder = tmp_path / "mine" / "1.0.0"
    if dataset_of_tfds == "written":
        formats.write_tfds({"x": range(10)}, folder, shards=2)
        (folder / "_MANIFEST-mine-train.json").unlink()
    else:
        shutil.copytree(data / "tfds" / dataset_of_tfds, folder)
    monkeypatch.chdir(folder)
    files = [Path(path.name) if is_relative else path for path in sorted(folder.glob("*train.tfrecord-*"))]
    contents = [path.read_bytes() for path in files]
    counts = [count(path, check_crc=True) for path in files]
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(b"\xff" * len(content))
    assert [count(path) for path in files] == counts
    for path, content in zip(files, contents, strict=True):
        path.write_bytes(content)
    write_tfrecord({"x": range(100)}, files[0], mode="overwrite")
    assert [count(path) for path in files] == [100, *counts[1:]]


def test_damaged_shard_lengths_of_tfds_warn(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes((data / "tutorial.tfrecord").read_bytes())
    (tmp_path / "dataset_info.json").write_text("[")
    with pytest.warns(SchemaWarning, match="dataset_info.json"):
        assert count(path) > 0


def test_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        count("no/such/file.tfrecord")
