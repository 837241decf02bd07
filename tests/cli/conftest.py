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

from tfrecord_io.cli import tfr as command

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """``run("head", path, …)`` in this process."""
    return lambda *arguments: CliRunner().invoke(command, [str(a) for a in arguments])


@pytest.fixture
def in_terminal() -> Callable[..., tuple[int, str]]:
    """``in_terminal("head", path, …, columns=80)``: the status and the output in a terminal."""
    return _in_terminal


def _in_terminal(*command: object, columns: int = 80, stdin: int | None = None, **environment: str) -> tuple[int, str]:
    terminal, end = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    variables = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    variables |= {"TERM": "xterm", **environment}
    arguments = [sys.executable, "-m", "tfrecord_io", *map(str, command)]
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
