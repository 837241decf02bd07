"""``tfr report``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tfrecord_io as tfr


@pytest.fixture
def words(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": [1, 2, 3], "word": ["a", "b", None]}, tmp_path / "words.tfrecord")
    return tmp_path / "words.tfrecord"


def test_report_says_what_it_wrote(run, words: Path, tmp_path: Path) -> None:
    shown = run("report", words, tmp_path / "out.html", "--verify")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout.startswith(f"{tmp_path}/out.html: ")
    assert shown.stdout.endswith("kB. All 3 records.\n")
    assert "no problems were found" in (tmp_path / "out.html").read_text("utf-8")


def test_report_as_json(run, words: Path, tmp_path: Path) -> None:
    shown = run("report", "--json", "--compare", words, "-c", "n", words, words, tmp_path / "out.html")
    value = json.loads(shown.stdout)
    assert [feature["name"] for feature in value["features"]] == ["n"]
    assert (value["sampling"]["records"], value["compare"]["sampling"]["records"]) == (6, 3)
    assert value["drift"][0]["name"] == "n"
    assert (tmp_path / "out.html").exists()


def test_report_refuses_a_wrong_target(run, words: Path, tmp_path: Path) -> None:
    before = words.read_bytes()
    shown = run("report", words, words)
    assert shown.exit_code == 2
    assert "ends in .html" in shown.stderr
    assert words.read_bytes() == before
    assert run("report", words).exit_code == 2
    assert "standard input" in run("report", "-", tmp_path / "out.html").stderr
    (tmp_path / "out.html").write_text("old")
    assert run("report", "--mode", "error", words, tmp_path / "out.html").exit_code == 3
    assert (tmp_path / "out.html").read_text() == "old"


def test_statistics_alone(run, words: Path, tmp_path: Path) -> None:
    shown = run("report", words, words, "--json")
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["sampling"]["records"] == 6
    assert [path.name for path in tmp_path.iterdir()] == ["words.tfrecord"]
    assert "OUT.html is missing" in run("report", words).stderr
