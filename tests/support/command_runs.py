"""Fixtures that run the command."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from forked import interpreter
from messages import unknown_options
from tfrecord_io.apps.cli import tfr as command

Run = Callable[..., Result]
AT_START = ("PYTHON", "LC_")  # variables that Python reads when it starts


@pytest.fixture
def run() -> Run:
    """``run("head", path, …)`` in this process; a message that names an option of no command is a failure."""

    def invoke(*arguments: object) -> Result:
        texts = [str(argument) for argument in arguments]
        result = CliRunner().invoke(command, texts)
        name = next((text for text in texts if text in command.commands), None)
        if name is not None and "No such option" not in result.stderr and "--debug" not in texts:
            lines = result.stderr + (result.stdout if name in ("verify", "salvage") and "--json" not in texts else "")
            unknown = unknown_options(lines, command)
            assert unknown == [], f"tfr {name} names {unknown}: {lines}"
        return result

    return invoke


@pytest.fixture
def in_terminal() -> Callable[..., tuple[int, str]]:
    """``in_terminal("head", path, …, columns=80)``: the status and the output in a terminal."""
    return _in_terminal


def _in_terminal(*command: object, columns: int = 80, stdin: int | None = None, **environment: str) -> tuple[int, str]:
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables |= {"TERM": "xterm", **environment}
    start = [sys.executable] if any(name.startswith(AT_START) for name in environment) else interpreter()
    arguments = [*start, "-m", "tfrecord_io", *map(str, command)]
    with subprocess.Popen(arguments, stdin=stdin or end, stdout=end, stderr=end, env=variables) as process:
        os.close(end)
        output = b""
        try:
            while data := os.read(terminal, 65536):
                output += data
        except OSError:  # the command has closed the terminal
            pass
    os.close(terminal)
    return process.returncode, output.decode().replace("\r\n", "\n")
