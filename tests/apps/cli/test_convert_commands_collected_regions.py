"""``tfr convert --on-error collect`` prints the damaged regions that it leaves out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_runs import Run
from records import example, flip, framed, int64s, written


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    payloads = [example(x=int64s(number)) for number in range(5)]
    return flip(written(tmp_path / "a.tfrecord", payloads), 14, len(framed(*payloads[:3])) + 14)


def test_the_command_prints_the_table(path: Path, run: Run) -> None:
    done = run("convert", path, "o.csv", "--on-error", "collect")
    assert done.exit_code == 0
    line, heads, *rows = done.stdout.splitlines()
    assert line.startswith("o.csv: 3 records")
    assert heads.split()[:3] == ["file", "records", "before"]
    assert [row.split()[:2] for row in rows] == [[str(path), "0"], [str(path), "3"]]


def test_the_table_is_in_its_json(path: Path, run: Run) -> None:
    done = run("convert", path, "o.parquet", "--on-error", "collect", "--json")
    value = json.loads(done.stdout)
    assert [(row["file"], row["first_record"], row["begin_byte"]) for row in value["skipped"]] == [
        (str(path), 0, 0),
        (str(path), 3, len(framed(*(example(x=int64s(number)) for number in range(3))))),
    ]
    done = run("convert", path, "p.parquet", "--on-error", "skip", "--json")
    assert "skipped" not in json.loads(done.stdout)


def test_records_on_stdout_are_not_mixed_with_it(path: Path, run: Run) -> None:
    done = run("convert", path, "-", "--to", "csv", "--on-error", "collect")
    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("payload CRC mismatch") == 2
    assert "mismatch" not in done.stdout


@pytest.mark.parametrize("command", ["head", "tail", "schema", "count", "describe"])
def test_commands_without_a_report_refuse_it(path: Path, run: Run, command: str) -> None:
    done = run(command, path, "--on-error", "collect")
    assert done.exit_code == 2
    assert "'collect' is not one of 'raise', 'stop', 'skip'" in done.stderr


def test_a_resumed_conversion_refuses_it(path: Path, run: Run) -> None:
    done = run("convert", path, "d/", "--on-error", "collect", "--resume")
    assert "--on-error collect cannot be used with --resume: files that an earlier call" in done.stderr
