"""``tfr cat`` and ``tfr get``."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

import tfrecord_io as tfr
from forked import interpreter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": [1, 2, 3], "b": [b"\xff" * 50] * 3, "l": [[1] * 20] * 3}, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


def test_cat_prints_json_lines(run, engine: str, path: Path) -> None:
    shown = run("cat", path, "-c", "n", "-c", "b")
    records = [json.loads(line) for line in shown.stdout.splitlines()]
    assert [record["n"] for record in records] == [1, 2, 3]
    assert records[0]["b"] == {"base64": "/" * 66 + "8="}
    (first, _, _) = map(json.loads, run("cat", "--short", path).stdout.splitlines())
    assert first == {"n": 1, "b": "50 bytes ffffffffffffffff…", "l": "20 values [1, 1, 1, 1, …]"}
    assert run("cat", path, "-c", "none").exit_code == 2


def test_get_shows_records_by_number(run, path: Path) -> None:
    shown = run("get", path, 2, -3, "-c", "n", "--json")
    assert json.loads(shown.stdout) == [{"n": 3}, {"n": 1}]
    assert run("get", path, 1, "-c", "n").stdout.split()[-1] == "2"
    outside = run("get", path, 3)
    assert outside.exit_code == 2
    assert "record 3 is out of range" in outside.output
    assert run("get", path).exit_code == 2


def test_shells_complete_the_names_of_commands() -> None:
    variables = {**os.environ, "_TFR_COMPLETE": "bash_complete", "COMP_WORDS": "tfr sh", "COMP_CWORD": "1"}
    code = "import sys; sys.argv[0] = 'tfr'; from tfrecord_io.apps.cli import main; main()"
    done = subprocess.run([*interpreter(), "-c", code], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["plain,shuffle"]
