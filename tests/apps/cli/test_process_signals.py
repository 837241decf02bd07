"""Ctrl-C, SIGTERM and SIGHUP end the command with its temporary files removed, at any moment."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import tfrecord_io as tfr
from forked import interpreter

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


def start(*arguments: object, words: list[str] | None = None, **streams: int) -> subprocess.Popen[bytes]:
    command = [*(words or interpreter()), "-m", "tfrecord_io", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.Popen(command, preexec_fn=_default_signals, **pipes)


def _default_signals() -> None:
    """Signals that this process ignores, as under nohup, would be ignored by the command too."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def wait_for_a_file(folder: Path) -> None:
    deadline = time.monotonic() + 30
    while not names(folder) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert names(folder), "the command has created no temporary file"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signals") / "a.tfrecord"
    tfr.write_tfrecord(
        {"x": np.arange(400_000), "y": np.random.default_rng(0).normal(size=(400_000, 4)).astype("f4")}, path
    )
    return path


@pytest.mark.matrix
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("target", ["out.tfrecord", "out.tfrecord.gz", "out.parquet", "out --max-shard-bytes=1000000"])
def test_a_signal_in_the_middle_of_a_conversion_removes_temporary_files(
    source: Path, tmp_path: Path, target: str, number: signal.Signals
) -> None:
    """The records come from a pipe that stays open, so that the command is at work until the signal."""
    name, *options = target.split()
    with start("convert", *options, "-", tmp_path / name, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(source.read_bytes()[:-1000])
        process.stdin.flush()
        wait_for_a_file(tmp_path)
        process.send_signal(number)
        assert process.wait(timeout=30) == 128 + number
        word = "interrupted" if number is signal.SIGINT else "terminated"
        assert process.stderr.read().decode() == f"tfr: {word}\n"
    assert names(tmp_path) == []


def after_signal(
    arguments: Sequence[object], delay: float, number: signal.Signals, words: list[str] | None = None
) -> tuple[int, str]:
    with start(*arguments, words=words) as process:
        assert process.stderr is not None
        time.sleep(delay)
        process.send_signal(number)
        status = process.wait(timeout=30)
        return status, process.stderr.read().decode()


@pytest.mark.parametrize("number", SIGNALS[:2], ids=lambda number: number.name)
def test_a_signal_at_any_moment_leaves_the_whole_file_or_none(
    source: Path, tmp_path: Path, number: signal.Signals
) -> None:
    for tenths in range(1, 7):
        target = tmp_path / "out.tfrecord.gz"
        status, message = after_signal(["convert", source, target], tenths / 10, number, [sys.executable])
        # Python itself reports Ctrl-C before the command handles it, and turns it into another error in some imports.
        not_begun = status == -number or "<frozen importlib._bootstrap>" in message
        assert not_begun or "Traceback" not in message
        if status == 0 or not_begun:
            assert names(tmp_path) in ([], [target.name])
        else:
            assert (status, message) == (
                128 + number,
                f"tfr: {'interrupted' if number == signal.SIGINT else 'terminated'}\n",
            )
            assert names(tmp_path) in ([], [target.name])  # interrupted after the commit
        if target.exists():
            assert tfr.count(target) == 400_000
            target.unlink()


def test_a_second_signal_does_not_disturb_the_cleanup(source: Path, tmp_path: Path) -> None:
    """``timeout`` sends SIGTERM twice: to the command, and to its process group."""
    with start("convert", "--max-shard-bytes=1000000", "-", tmp_path / "out", stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(source.read_bytes()[:-1000])
        process.stdin.flush()
        wait_for_a_file(tmp_path)
        for _ in range(20):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                time.sleep(0.002)
        assert process.wait(timeout=30) == 143
    assert names(tmp_path) == []


def test_an_ignored_signal_stays_ignored(source: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "tfrecord_io", "convert", str(source), str(tmp_path / "out.tfrecord.gz")]
    command = f"trap '' HUP; exec {shlex.join(words)}"
    with subprocess.Popen(["sh", "-c", command], stdout=subprocess.PIPE) as process:
        for _ in range(5):
            time.sleep(0.1)
            process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 0


@pytest.mark.matrix
@pytest.mark.parametrize("delay", [1, 2.5])
@pytest.mark.parametrize("of_files", [False, True])
@pytest.mark.parametrize("number", SIGNALS[:2], ids=lambda number: number.name)
def test_a_signal_ends_a_query(source: Path, number: signal.Signals, of_files: bool, delay: float) -> None:
    """The signal ends a query that DuckDB computes for hours, too, and one that is reading files."""
    pytest.importorskip("duckdb")
    a, b = (f"'{source}' a", f"'{source}' b") if of_files else ("range(100000000) a(x)", "range(100000000) b(x)")
    query = f"SELECT count(*) FROM {a}, {b} WHERE (CAST(a.x AS HUGEINT) * b.x) % 7 = 3"
    status, message = after_signal(["sql", query], delay, number)
    if status != -number and "<frozen importlib._bootstrap>" not in message:
        word = "interrupted" if number == signal.SIGINT else "terminated"
        assert (status, message) == (128 + number, f"tfr: {word}\n")
