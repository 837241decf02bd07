"""A fixture that runs the command."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from click.testing import CliRunner, Result

from tfrecord_io.cli import tfr as command

Run = Callable[..., Result]


@pytest.fixture
def run() -> Run:
    """``run("head", path, …)`` in this process."""
    return lambda *arguments: CliRunner().invoke(command, [str(a) for a in arguments])
