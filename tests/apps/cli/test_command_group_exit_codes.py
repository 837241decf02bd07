"""Errors and exit codes of the ``tfr`` command."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tfrecord_io as tfr
from forked import interpreter
from showing_commands import READING
from tfrecord_io.apps.cli import tfr as tfr_command
from tfrecord_io.apps.cli.command_group import SECTIONS
from tfrecord_io.apps.cli.exit_codes import exit_code


@pytest.mark.parametrize("command", READING)
def test_a_missing_file_is_a_usage_error(run, command: str) -> None:
    shown = run(command, "no/such/file.tfrecord")
    assert shown.exit_code == 2
    assert shown.stdout == ""
    assert shown.stderr.startswith("tfr: ")
    assert "no/such/file.tfrecord" in shown.stderr
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize("command", [name for name in READING if name != "verify"])
def test_a_damaged_file_is_invalid_data(run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "text\x1b[31m.tfrecord"
    path.write_text("hello, this is not a TFRecord file\n" * 10)
    shown = run(command, path)
    assert shown.exit_code == 1
    assert "not TFRecord" in shown.stderr
    assert "\x1b" not in shown.output
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", ""),
        ("head", "Missing argument"),
        ("nonsense", "No such command 'nonsense'"),
        ("version", "Did you mean 'tfr --version'?"),
        ("--json count a", "No such option '--json' before the command: it stands after it."),
        ("--nonsense count a", "No such option '--nonsense'."),
        ("head -n -1 a", "Invalid value for '-n'"),
        ("head --record-type csv a", "'csv' is not one of"),
        ("count --nonsense a", "No such option"),
        ("count --compression nonsense a", "nonsense"),
        ("head -c nonsense a", "nonsense"),
        ("head --where x==abc a", "abc"),
        ("head --where raw>1 a", "raw"),
        ("convert --type x=money a b.parquet", "unknown type 'money'"),
        ("split a parts --by lists", "single"),
        ("dedupe a b --by lists", "single"),
        ("index a -c lists", "single"),
    ],
)
def test_arguments_that_make_no_sense_are_a_usage_error(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2], "raw": [b"x", b"y"], "lists": [[1, 2], [3]]}, "a")
    shown = run(*line.split())
    assert (shown.exit_code, message in shown.stderr) == (2, True), shown.stderr


def test_a_file_of_text_has_no_key_because_it_is_none_of_records(run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("hello, this is not a TFRecord file\n" * 10)
    tfr.write_tfrecord({"x": [1]}, tmp_path / "b")
    for files in ("ab", "ba"):
        assert "not TFRecord" in run("diff", "--key", "x", *(tmp_path / name for name in files)).stderr


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        ("/dev/full", [], "No space left on device"),
        ("exists.tfrecord", ["--mode", "error"], "the file exists; --mode overwrite replaces it"),
        ("exists.parquet", ["--mode", "error"], "the file exists; --mode overwrite replaces it"),
        ("memory://folder/exists.tfrecord", ["--mode", "error"], "the file exists; --mode overwrite replaces it"),
    ],
)
def test_a_target_that_cannot_be_written_is_an_io_error(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, options: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2]}, "a.tfrecord")
    for name in ("exists.tfrecord", "exists.parquet", "memory://folder/exists.tfrecord"):
        assert run("convert", "a.tfrecord", name).exit_code == 0
    failed = run("convert", *options, "a.tfrecord", target)
    assert failed.exit_code == 3
    assert message in failed.stderr
    assert failed.stderr.count("\n") == 1


def test_a_server_that_does_not_answer_is_an_io_error(run) -> None:
    shown = run("count", "http://127.0.0.1:9/a.tfrecord")
    assert shown.exit_code == 3
    assert shown.stderr.startswith("tfr: http://127.0.0.1:9/a.tfrecord: ")
    assert shown.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (tfr.errors.CorruptRecordError("damaged"), 1),
        (tfr.errors.CompressionError("damaged"), 1),
        (tfr.errors.EncodeError("a complex number"), 1),
        (EOFError(), 1),
        (tfr.errors.FeatureNotFoundError("no column"), 2),
        (tfr.errors.MissingDependencyError("not installed"), 2),
        (FileNotFoundError(errno.ENOENT, "no such file", "x"), 2),
        (IsADirectoryError(errno.EISDIR, "a directory", "x"), 2),
        (ValueError("out of range"), 2),
        (PermissionError(errno.EACCES, "denied", "x"), 3),
        (FileExistsError(errno.EEXIST, "exists", "x"), 3),
        (ConnectionResetError(errno.ECONNRESET, "reset"), 3),
        (TimeoutError(), 3),
        (OSError(errno.ENOSPC, "disk full", "x"), 3),
        (OSError(errno.EIO, "input/output error", "x"), 3),
        (KeyError("x"), None),
    ],
    ids=repr,
)
def test_each_kind_of_error_has_its_exit_code(error: Exception, code: int | None) -> None:
    assert exit_code(error) == code


def test_help_and_version(run) -> None:
    assert "describe" in run("--help").stdout
    assert run("--version").stdout.startswith("tfr, version ")


@pytest.mark.fault(60)
def test_closed_pipe_ends_quietly(data: Path) -> None:
    code = "import sys; from tfrecord_io.apps.cli import main; sys.argv[0] = 'tfr'; main()"
    command = [*interpreter(), "-c", code, "head", "-n", "100000", "--json", str(data / "tutorial.tfrecord")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    "arguments", [["head", "no/such/file.tfrecord", "--debug"], ["--debug", "head", "no/such/file.tfrecord"]]
)
def test_debug_prints_the_traceback_before_the_error(run, arguments: list[str]) -> None:
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert shown.stderr.startswith("Traceback (most recent call last):\n")
    assert shown.stderr.splitlines()[-1] == run("head", "no/such/file.tfrecord").stderr.rstrip("\n")


def test_the_help_lists_each_command_in_one_section(run) -> None:
    listed = [command.name for commands in tfr_command.sections.values() for command in commands]
    assert sorted(listed) == sorted(tfr_command.commands)
    text = run("--help").stdout
    assert all(f"{title}:\n" in text for title in SECTIONS)


def test_a_warning_that_is_an_error_is_one_line_and_publishes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n0.1\n")
    target = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [0.1]}, target, float64="raw")
    before = target.read_bytes()
    command = [sys.executable, "-W", "error::UserWarning", "-m", "tfrecord_io", "convert", tmp_path / "a.csv", target]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(
        r"tfr: float64 values were rounded to float32 in 'x' \(1 value\); .*--float64.*\n", result.stderr
    )
    assert target.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "name", "code"),
    [
        (["head", "--json", "nothere"], "FileNotFoundError", 2),
        (["head", "--jsn", "--json", "a"], "NoSuchOption", 2),
        (["convert", "--json"], "MissingParameter", 2),
    ],
)
def test_errors_are_json_with_json(run, arguments: list[str], name: str, code: int) -> None:
    result = run(*arguments)
    value = json.loads(result.stderr)
    assert (value["error"]["class"], value["exit_code"], result.exit_code) == (name, code, code)
    assert result.stdout == ""


def test_warnings_are_json_with_json(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a")
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-1])
    result = run("count", "--json", "--on-error", "stop", tmp_path / "a")
    assert result.exit_code == 0
    assert json.loads(result.stderr)["warning"]["class"] == "StoppedEarlyWarning"


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(3_000_000)}, tmp_path / "a")
    limit = "import resource; from tfrecord_io.apps.cli import tfr, output; import tfrecord_io.read.verifying.verify; "
    limit += "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize(); "
    limit += "resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), -1)); tfr()"
    command = [sys.executable, "-c", limit, "verify", str(tmp_path / "a")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    text = done.stderr.partition("Exception ignored in atexit callback")[0]  # tqdm 4.66 joins the thread at exit
    *warnings, line = text.splitlines()  # tqdm warns of a thread that it cannot start
    assert line.startswith("tfr: out of memory")
    assert all(text.startswith("tfr: warning: ") for text in warnings)


@pytest.mark.parametrize("command", ["head", "count", "verify", "clean", "index", "compact"])
def test_an_empty_path_is_shown_as_one(run, command: str) -> None:
    shown = run(command, "")
    assert (shown.exit_code, shown.stderr.partition(": ")[2][:4]) == (2, "'': "), shown.stderr


def test_an_option_after_two_dashes_is_a_path(run, tmp_path: Path) -> None:
    """Its error is a line of text, and no JSON."""
    shown = run("verify", "--", tmp_path / "absent", "--json")
    assert shown.stderr.startswith("tfr: ")
