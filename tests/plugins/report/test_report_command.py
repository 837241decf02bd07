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


def test_a_gate_fails_where_features_differ(run, tmp_path: Path) -> None:
    old = {"n": [1.0, 2.0, 3.0, 4.0] * 5, "word": ["a", "b"] * 10}
    tfr.write_tfrecord(old, tmp_path / "old", float64="round", schema={"n": "float32", "word": "string"})
    tfr.write_tfrecord(
        {"n": old["n"], "word": ["a"] * 14 + ["b"] * 6}, tmp_path / "new", schema={"n": "float32", "word": "string"}
    )
    tfr.write_tfrecord({"n": [1, 2], "more": [1, 2]}, tmp_path / "other")
    gate = ["report", tmp_path / "new", "--compare", tmp_path / "old", "--fail-over"]
    passed = run(*gate, 0.2)
    assert (passed.exit_code, "no feature differs by more than 0.2" in passed.stdout) == (0, True)
    failed = run(*gate, 0.1)
    assert (failed.exit_code, failed.stdout) == (1, "word: L-infinity 0.200, presence 1.000 → 1.000, over 0.1\n")
    page = tmp_path / "out.html"
    assert run("report", tmp_path / "new", page, "--compare", tmp_path / "old", "--fail-over", 0.1).exit_code == 1
    assert page.exists()
    shown = run("report", tmp_path / "other", "--compare", tmp_path / "old", "--fail-over", 1, "--json")
    assert (shown.exit_code, json.loads(shown.stdout)["over"]) == (1, ["more", "word", "n"])
    refused = run("report", tmp_path / "new", page, "--fail-over", 0.1)
    assert (refused.exit_code, "--fail-over is for --compare OTHER" in refused.stderr) == (2, True)
    assert run(*gate, 2).exit_code == 2
