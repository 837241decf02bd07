"""What the logger `tfrecord_io` says: what changed in storage, and why files are read as they are."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem import retries

ROWS: dict[str, Any] = {"n": list(range(200)), "pad": [b"p" * 3000] * 200}


@pytest.fixture(autouse=True)
def all_messages(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with caplog.at_level(logging.DEBUG, "tfrecord_io"):
        yield
    assert all(record.levelno < logging.WARNING for record in caplog.records)


def logged(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    """The messages of a level since the last call."""
    found = [record.getMessage() for record in caplog.records if record.levelno == level]
    caplog.clear()
    return found


def test_what_is_written_appended_replaced_compacted_removed_and_copied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path, data = tmp_path / "a.tfrecord", tmp_path / "data"
    tfr.write_tfrecord(ROWS, path)
    assert logged(caplog, logging.INFO) == [f"written: {path}, 200 records, {path.stat().st_size:,} bytes"]
    tfr.write_tfrecord(ROWS, f"{data}/", mode="append")
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith("written: ")
    assert text.endswith("1 file with 200 records; 0 files removed")
    tfr.write_tfrecord(ROWS, f"{data}/", mode="append")
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith("appended to: ")
    assert str(data) in text
    tfr.compact(data)
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith("compacted: ")
    assert text.endswith("1 file with 400 records; 2 files removed")
    tfr.write_tfrecord(ROWS, f"{data}/", mode="overwrite")
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith("replaced: ")
    assert text.endswith("with 200 records; 1 file removed")
    tfr.delete(data, filters=[("n", "<", 5)])
    assert f"removed: {data}, 5 records" in logged(caplog, logging.INFO)
    tfr.copy(data, tmp_path / "copied")
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith(f"copied: {tmp_path / 'copied'}, 1 file, ")
    (tmp_path / ".b.tfrecord.0123456789abcdef.tmp").touch()
    clean(tmp_path, remove=True, older_than=timedelta(0))
    (text,) = logged(caplog, logging.INFO)
    assert text.startswith("removed: ")
    assert ".b.tfrecord" in text
    tfr.build_index(path, columns=["n"])
    assert logged(caplog, logging.INFO) == [f"written: {path}.column_index, the index of 200 records"]


def test_a_dataset_with_a_number_of_shards(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for verb in ("written", "replaced"):
        tfr.write_tfrecord(ROWS, tmp_path / "train@3", mode="overwrite")
        (text,) = logged(caplog, logging.INFO)
        assert text.startswith(f"{verb}: ")
        assert "3 files with 200 records" in text


def test_whether_a_column_index_is_used_and_why_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(ROWS, path)
    dataset = tfr.dataset(path)

    def searched(condition: Any, **keywords: Any) -> list[str]:
        caplog.clear()
        tfr.read_table(tfr.dataset(path, **keywords).filter(condition))
        return [text for text in logged(caplog, logging.DEBUG) if "column index" in text]

    assert searched([("n", "==", 3)]) == [
        "column indexes are not used: no file has one with the columns that matches it"
    ]
    tfr.build_index(path, columns=["n"])
    assert searched([("n", "==", 3)])[-1] == (
        "column indexes are used, of 1 of 1 file: to open 1 file, by them 2 records"
    )
    assert searched([("n", ">=", 0)])[-1] == "column indexes are not used, of 1 of 1 file: they would not save reading"
    (text,) = searched([("n", "==", 3)], on_error="skip")
    assert text == "column indexes are not searched: damage is to be left out, wherever it is"
    assert dataset.count_rows() == 200


def test_an_index_of_offsets_and_a_manifest(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, data = tmp_path / "a.tfrecord", tmp_path / "data"
    tfr.write_tfrecord(ROWS, path, write_index=True)
    assert tfr.count(path) == 200
    messages = logged(caplog, logging.DEBUG)
    assert "files with an index: 1 of 1" in messages
    assert f"index used: {path}.index" in messages
    assert tfr.count(tmp_path) == 200
    assert any(text.startswith("no manifest among") for text in logged(caplog, logging.DEBUG))
    tfr.write_tfrecord(ROWS, f"{data}/")
    logged(caplog, logging.DEBUG)
    assert tfr.count(data) == 200
    (text,) = (text for text in logged(caplog, logging.DEBUG) if text.startswith("manifest read: "))
    assert text.endswith(", 1 file")


def test_a_request_that_is_made_again(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(retries.time, "sleep", lambda _: None)
    errors = [ConnectionResetError("reset by peer")]

    def call() -> int:
        if errors:
            raise errors.pop()
        return 1

    assert retries.retry(call) == 1
    (text,) = logged(caplog, logging.DEBUG)
    assert text.startswith("request made again in ")
    assert text.endswith("after ConnectionResetError: reset by peer")
    retries.note_retries({"ResponseMetadata": {"RetryAttempts": 2}})
    assert logged(caplog, logging.DEBUG) == ["request made again by botocore: 2 times"]


def test_no_message_for_each_record(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "a.tfrecord"
    counts = []
    for rows in (10, 1000):
        tfr.write_tfrecord({"n": list(range(rows))}, path)
        tfr.read_table(path)
        counts.append(len(caplog.records))
        caplog.clear()
    assert counts[0] == counts[1] <= 8


@pytest.mark.skipif(sys.platform != "linux", reason="file names are UTF-8, without control characters")
def test_messages_escape_the_names_of_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tfrecord_io")
    tfr.write_tfrecord(ROWS, tmp_path / "a\x1b[31m\udcff.tfrecord")
    assert "a\\x1b[31m\\udcff.tfrecord" in caplog.text
    assert "\udcff" not in caplog.text


@pytest.mark.usefixtures("own_log")
@pytest.mark.parametrize(("flags", "levels"), [([], set()), (["-v"], {"info"}), (["-v", "-v"], {"info", "debug"})])
def test_commands_show_the_messages(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], flags: list[str], levels: set[str]
) -> None:
    from tfrecord_io.apps.cli import tfr as command

    tfr.write_tfrecord(ROWS, tmp_path / "a.tfrecord")
    logging.getLogger("tfrecord_io").setLevel(logging.NOTSET)
    with warnings.catch_warnings():
        command.main(["index", str(tmp_path), "-c", "n", *flags], standalone_mode=False)
    sys.stderr.flush()
    printed = capfd.readouterr().err
    assert {level for level in ("info", "debug") if f"tfr: {level}: " in printed} == levels
