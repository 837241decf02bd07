"""``tfr verify`` and ``tfr salvage``: what they print, and their exit codes."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from PIL import Image

import tfrecord_io as tfr
from interposed import before_opening


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Three shards, of which the second is damaged."""
    tfr.write_tfrecord({"n": list(range(30))}, tmp_path / "d" / "a@3")
    path = tmp_path / "d" / "a-00001-of-00003"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    return tmp_path / "d"


def test_verify_prints_a_table_of_the_files(run, dataset: Path) -> None:
    shown = run("verify", dataset)
    assert shown.exit_code == 1
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("3 files: 1 damaged, 2 good; 29 intact records, ")
    assert lines[1].split() == ["file", "bytes", "records", "compression", "status", "problems"]
    rows = [["10", "none", "good"], ["9", "none", "damaged", "2"], ["10", "none", "good"]]
    assert [line.rpartition("-of-00003")[2].split()[1:] for line in lines[3:6]] == rows
    assert "record 9 at byte" in lines[6]
    assert "CRC32C" in lines[7]


def test_verify_as_json(run, dataset: Path) -> None:
    shown = run("verify", "--json", dataset)
    assert shown.exit_code == 1
    document = json.loads(shown.stdout)
    assert (document["ok"], document["intact"]) == (False, 29)
    file = document["files"][1]
    assert (file["status"], file["records"], file["intact"], file["problem_count"]) == ("damaged", 9, 9, 2)
    assert [(p["part"], p["record"]) for p in file["problems"]] == [("frames", 9), ("manifest", None)]
    assert document["files"][0]["problems"] == []


def test_verify_of_good_and_missing_files(run, dataset: Path) -> None:
    good = run("verify", "--threads", 2, dataset / "a-00000-of-00003", dataset / "a-00002-of-00003")
    assert good.exit_code == 0
    assert good.stdout.startswith("2 files: good, 20 intact records, ")
    assert "problems" not in good.stdout
    assert run("verify", dataset / "none").exit_code == 2
    assert run("verify", "--threads", 0, dataset).exit_code == 2
    for options in ([], ["--threads", 2]):
        both = run("verify", *options, dataset / "none", dataset / "a-00000-of-00003")
        assert both.exit_code == 2
        assert "10 intact records" in both.stdout


@pytest.mark.parametrize(("damaged", "code"), [(True, 1), (False, 3)])
def test_verify_of_files_that_cannot_be_read(
    run, dataset: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool, code: int
) -> None:
    def refuse(path: str) -> None:
        if path.endswith("00000-of-00003"):
            raise PermissionError(13, "Permission denied", path)

    before_opening(monkeypatch, refuse)
    shown = run("verify", *(dataset / f"a-0000{i}-of-00003" for i in ([0, 1, 2] if damaged else [0, 2])))
    assert shown.exit_code == code
    assert "unreadable" in shown.stdout
    assert "Permission denied" in shown.stdout


def test_salvage_prints_what_is_kept_and_lost(run, dataset: Path, tmp_path: Path) -> None:
    planned = run("salvage", "--dry-run", dataset, tmp_path / "out/")
    assert planned.exit_code == 1
    assert planned.stdout.startswith("3 files: 29 records would be kept, ")
    assert not (tmp_path / "out").exists()
    done = run("salvage", "--report", tmp_path / "report.json", dataset, tmp_path / "out")
    assert done.exit_code == 1
    assert "3 files: 29 records kept, " in done.stdout
    assert "record 9 at byte" in done.stdout
    assert json.loads((tmp_path / "report.json").read_text())["records"] == 29
    assert run("verify", tmp_path / "out").exit_code == 0
    assert run("salvage", tmp_path / "out", tmp_path / "again").exit_code == 0


def test_salvage_as_json(run, dataset: Path, tmp_path: Path) -> None:
    shown = run("salvage", "--json", dataset / "a-00001-of-00003", tmp_path / "b.tfrecord.gz")
    document = json.loads(shown.stdout)
    assert (shown.exit_code, document["records"], document["missing"]) == (1, 9, [])
    assert document["files"][0]["target"] == str(tmp_path / "b.tfrecord.gz")


def test_salvage_refuses(run, dataset: Path, tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"old")
    shard = dataset / "a-00001-of-00003"
    assert run("salvage", dataset / "none", tmp_path / "b").exit_code == 2
    assert run("salvage", shard, shard).exit_code == 2
    refused = run("salvage", "--mode", "error", shard, tmp_path / "old")
    assert refused.exit_code == 3
    assert "--mode overwrite" in refused.stderr
    assert (tmp_path / "old").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["d", "old"]


def test_diff(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a")
    tfr.write_tfrecord({"n": [2, 1]}, tmp_path / "b")
    same = run("diff", tmp_path / "a", tmp_path / "a")
    assert (same.exit_code, same.stdout) == (0, "equal: 2 records\n")
    other = run("diff", tmp_path / "a", tmp_path / "b")
    assert other.exit_code == 1
    assert [line.split() for line in other.stdout.splitlines()[-2:]] == [["0", "n", "1", "2"], ["1", "n", "2", "1"]]
    assert run("diff", "--any-order", tmp_path / "a", tmp_path / "b").exit_code == 0
    assert json.loads(run("diff", "--json", tmp_path / "a", tmp_path / "b").stdout)["differing"] == 2
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:-1])
    damaged = run("diff", tmp_path / "a", tmp_path / "b")
    assert (damaged.exit_code, damaged.stdout) == (2, "")
    assert run("diff", tmp_path / "a", tmp_path / "none").exit_code == 2


def test_bombs_are_refused(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [b"\0" * 10_000] * 300}, tmp_path / "a.tfrecord.gz")
    for command in (["verify"], ["count"]):
        shown = run(*command, "--max-decompression-ratio", "4", tmp_path / "a.tfrecord.gz")
        assert shown.exit_code == 1
        assert "more than 4 times as many" in shown.stderr + shown.stdout
        assert run(*command, "--max-decompression-ratio", "3000", tmp_path / "a.tfrecord.gz").exit_code == 0
    salvage = ["salvage", "--max-decompression-ratio", "4", tmp_path / "a.tfrecord.gz", tmp_path / "b.tfrecord"]
    assert run(*salvage).exit_code == 1
    assert 0 < tfr.count(tmp_path / "b.tfrecord") < 300


def test_verify_images(run, tmp_path: Path) -> None:
    file = io.BytesIO()
    Image.effect_noise((32, 24), 50).save(file, "JPEG")
    images = {"image/encoded": [file.getvalue(), file.getvalue()[:-200], b""]}
    tfr.write_tfrecord(images, tmp_path / "a.tfrecord", embed_schema=False)
    assert run("verify", tmp_path / "a.tfrecord").exit_code == 0
    for arguments, count in (
        (["--images", tmp_path / "a.tfrecord"], 1),
        ([tmp_path / "a.tfrecord", "--images"], 1),
        (["--images=full", tmp_path / "a.tfrecord"], 2),
    ):
        shown = run("verify", *arguments)
        assert shown.exit_code == 1
        assert f"bad images, 3 intact records, 3 images, {count} of them bad" in shown.stdout
        assert "record 2: feature 'image/encoded': it has no bytes" in shown.stdout
    document = json.loads(run("verify", "--json", "--images", tmp_path / "a.tfrecord").stdout)
    assert (document["files"][0]["images"], document["files"][0]["bad_images"]) == (3, 1)
    assert "'some'" in run("verify", "--images=some", tmp_path / "a.tfrecord").output


def test_records_without_checksums_are_written_anew(run, tmp_path: Path) -> None:
    path, target = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    payload = b"any bytes"
    path.write_bytes((len(payload).to_bytes(8, "little") + bytes(4) + payload + bytes(4)) * 3)
    shown = run("verify", path)
    assert (
        "all checksums of its first 3 records are 0; write them again with tfr salvage --no-check-crc" in shown.stdout
    )
    assert run("salvage", "--no-check-crc", path, target).exit_code == 0
    assert [*tfr.RecordReader(target)] == [payload] * 3
