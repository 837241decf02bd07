"""Verification of files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tfrecord_io import RecordWriter
from tfrecord_io.tools.verify import verify


@pytest.mark.parametrize("name", ["tutorial", "ragged", "sequence", "images", "extremes", "empty"])
def test_golden_files_are_good(engine: str, data: Path, name: str) -> None:
    path = data / f"{name}.tfrecord"
    report = verify(path)
    assert report.ok
    assert report.records == len(json.loads((data / f"{name}.json").read_text()))
    assert report.bytes == path.stat().st_size
    assert report.files[0].record_type == ("sequence_example" if name == "sequence" else "example")
    assert ": good, " in str(report)


@pytest.mark.parametrize("name", ["tutorial_gzip.tfrecord.gz", "tutorial_zlib.tfrecord.zlib"])
def test_compressed_files_are_good(engine: str, data: Path, name: str) -> None:
    report = verify(data / name)
    assert report.ok
    assert report.records > 0


def test_every_flipped_bit_of_a_record_is_found(engine: str, flipped) -> None:
    for byte in range(-60, 0):
        report = verify(flipped("tutorial.tfrecord", byte, -byte % 8))
        assert not report.ok, f"byte {byte}"


def test_a_bad_file_does_not_hide_the_others(engine: str, data: Path, flipped) -> None:
    good = data / "tutorial.tfrecord"
    bad = flipped("tutorial.tfrecord", -1)
    report = verify([good, bad, good])
    assert [file.error is None for file in report.files] == [True, False, True]
    assert report.files[1].records == report.files[0].records - 1
    first, second = str(report).splitlines()
    assert "1 bad" in first
    assert second.startswith("CorruptRecordError: ")
    assert "flipped.tfrecord" in second
    assert json.loads(json.dumps(report.to_dict()))["ok"] is False


def test_payloads_that_do_not_parse_are_reported_with_their_record(engine: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.tfrecord"
    with RecordWriter(path) as writer:
        writer.write(b"")
        writer.write(b"\x0a\xff")
    report = verify(path)
    assert report.files[0].error is not None
    assert report.files[0].error.record == 1
    assert verify(path, record_type="bytes").ok


@pytest.mark.fault(70)
def test_other_messages_are_not_examples(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "events.tfrecord"
    with RecordWriter(path) as writer:
        for step in range(3):
            writer.write(b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10" + bytes([step]))  # Event: wall_time = 1.0, step
    report = verify(path)
    assert not report.ok
    assert 'record_type="bytes"' in str(report)
    assert verify(path, record_type="bytes").records == 3


def test_wrong_record_type_is_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="record_type"):
        verify(data / "tutorial.tfrecord", record_type="csv")
