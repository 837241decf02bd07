"""Counting records."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from tfrecord_io.errors import CorruptRecordError, TruncatedRecordError
from tfrecord_io.tools.count import count_records


@pytest.mark.parametrize("name", ["tutorial", "ragged", "sequence", "images", "extremes", "empty"])
def test_count_is_that_of_the_golden_file(engine: str, data: Path, name: str) -> None:
    assert count_records(data / f"{name}.tfrecord") == len(json.loads((data / f"{name}.json").read_text()))


@pytest.mark.parametrize("name", ["tutorial_gzip.tfrecord.gz", "tutorial_zlib.tfrecord.zlib"])
def test_compressed_files_count_as_well(engine: str, data: Path, name: str) -> None:
    assert count_records(data / name) > 0
    assert count_records([data / name, data / name]) == 2 * count_records(data / name)


def test_file_objects_count(engine: str, data: Path) -> None:
    content = (data / "tutorial.tfrecord").read_bytes()
    assert count_records(io.BytesIO(content * 2)) == 2 * count_records(data / "tutorial.tfrecord")


def test_damage_raises_and_says_how_many_are_intact(engine: str, data: Path, flipped) -> None:
    records = count_records(data / "tutorial.tfrecord")
    path = flipped("tutorial.tfrecord", -1)
    with pytest.raises(CorruptRecordError) as caught:
        count_records(path)
    assert caught.value.records_intact == records - 1
    assert count_records(path, check_crc=False) == records


def test_cut_file_raises(engine: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.tfrecord"
    path.write_bytes((data / "tutorial.tfrecord").read_bytes()[:-7])
    with pytest.raises(TruncatedRecordError):
        count_records(path, check_crc=False)


def test_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        count_records("no/such/file.tfrecord")
