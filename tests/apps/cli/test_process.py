"""The process of the command: standard streams that are closed, full or of odd encodings; terminals of any width."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import tfrecord_io as tfr
from command_runs import Run
from forked import interpreter

InTerminal = Callable[..., tuple[int, str]]
PRINTING = [
    "--help",
    "--version",
    "head --help",
    "head PATH",
    "head --json PATH",
    "schema --as arrow PATH",
    "count PATH",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("process") / "words.tfrecord"
    tfr.write_tfrecord({"word": ["ant", "bée 漢字", None], "blob": [b"\xff" * 100, None, b"x"]}, path)
    return path


def words_of(arguments: str, path: Path) -> list[str]:
    """The words of a command line; a path may have spaces."""
    return [word.replace("PATH", str(path)) for word in arguments.split()]


def shell(redirection: str, arguments: str, path: Path) -> subprocess.CompletedProcess[str]:
    command = f'exec "$0" "$@" -m tfrecord_io {shlex.join(words_of(arguments, path))} {redirection}'
    words = [sys.executable] if "&-" in redirection else interpreter()  # a stream may be missing when Python starts
    return subprocess.run(["sh", "-c", command, *words], capture_output=True, text=True, timeout=60, check=False)


def unread(arguments: str, path: Path) -> tuple[int, bytes]:
    """The status and the messages of a command whose output goes to a pipe that is not read."""
    reading, writing = os.pipe()
    os.close(reading)
    command = [*interpreter(), "-m", "tfrecord_io", *words_of(arguments, path)]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, timeout=60, check=False)
    os.close(writing)
    return done.returncode, done.stderr


@pytest.mark.fault(60)
@pytest.mark.matrix
@pytest.mark.parametrize("arguments", PRINTING)
@pytest.mark.parametrize("redirection", [">&-", ">/dev/full", "a pipe that is not read"])
def test_output_that_cannot_be_written_is_an_io_error(path: Path, redirection: str, arguments: str) -> None:
    """But for a pipe that is not read, where the command ends quietly."""
    if not redirection.startswith(">"):
        assert unread(arguments, path) == (0, b"")
        return
    done = shell(redirection, arguments, path)
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith('{"error": ' if "--json" in arguments else "tfr: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("arguments", "status"), [("head PATH", 0), ("--help", 0), ("count no/such/file", 2), ("head", 2)]
)
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_messages_that_cannot_be_written_change_nothing(
    path: Path, redirection: str, arguments: str, status: int
) -> None:
    assert shell(redirection, arguments, path).returncode == status


def test_records_that_cannot_be_written_are_an_error(path: Path) -> None:
    status, message = unread("convert PATH -", path)
    assert (status, b"Broken pipe" in message) == (3, True)
    done = shell(">&-", "convert PATH -", path)
    assert (done.returncode, "standard output" in done.stderr) == (3, True)


def test_a_closed_input_is_an_error(path: Path) -> None:
    done = shell("<&-", "count -", path)
    assert done.returncode == 2
    assert "standard input is closed" in done.stderr


def test_what_storage_libraries_log_is_not_printed_beside_the_error() -> None:
    """gcsfs logs a request that failed with a traceback."""
    code = """
import logging, sys
import tfrecord_io
from tfrecord_io.apps.cli import main

def count(*arguments, **keywords):
    try:
        raise ConnectionError("no host")
    except ConnectionError:
        logging.getLogger("gcsfs").exception("out of retries")
    raise OSError(5, "no host", "gs://bucket/a")

tfrecord_io.count = count
sys.argv[1:] = ["count", "gs://bucket/a"]
main()
"""
    done = subprocess.run([*interpreter(), "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (3, "tfr: gs://bucket/a: no host\n")


@pytest.mark.parametrize("command", ["head", "describe", "schema"])
def test_tables_begin_with_their_first_line_and_end_without_padding(run: Run, path: Path, command: str) -> None:
    lines = run(command, path).stdout.split("\n")
    assert lines[0]
    assert [line.rstrip() for line in lines] == lines
    assert lines[-2:] != ["", ""]


@pytest.mark.matrix
@pytest.mark.parametrize("arguments", ["--help", "head PATH"])
@pytest.mark.parametrize(
    "environment",
    [
        {"TERM": "dumb"},
        {"TERM": "unknown"},
        {"COLUMNS": "0"},
        {"COLUMNS": "1"},
        {"COLUMNS": "1000000"},
        {"COLUMNS": "-5"},
        {"COLUMNS": "wide"},
        {"NO_COLOR": "1"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    ],
    ids=str,
)
def test_odd_terminals(in_terminal: InTerminal, path: Path, environment: dict[str, str], arguments: str) -> None:
    status, output = in_terminal(*words_of(arguments, path), **environment)
    assert status == 0, output
    assert "Traceback" not in output
    if "NO_COLOR" in environment or environment.get("TERM") == "dumb":
        assert "\x1b" not in output
    if "PYTHONUTF8" in environment or "PYTHONIOENCODING" in environment:
        assert output.isascii()


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 200])
def test_a_table_is_as_wide_as_the_terminal_or_has_a_line_for_each_value(
    in_terminal: InTerminal, path: Path, columns: int
) -> None:
    _, output = in_terminal("describe", path, columns=columns, NO_COLOR="1")
    if columns < 80:
        assert "example   100 bytes ffffffffffffffff…" in output
    else:
        assert max(map(len, output.splitlines())) <= columns
        assert output.splitlines()[1].startswith("column  type")


@pytest.mark.parametrize("columns", [40, 60, 80])
def test_help_is_wrapped_but_not_shortened(in_terminal: InTerminal, columns: int) -> None:
    _, output = in_terminal("--help", columns=columns)
    assert "..." not in output.split("Show:")[1]
    assert max(map(len, output.splitlines())) <= max(columns, 50)  # click wraps at 50 or more
