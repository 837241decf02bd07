"""The exit codes of ``tfr``: 0, those of errors and of reports with problems, and 128 + the number of a signal.

Tests: tests/apps/cli/test_command_group_exit_codes.py.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from typing import Any

from tfrecord_io.apps.cli.process import Terminated
from tfrecord_io.errors import FeatureNotFoundError, MissingDependencyError, TFRecordError

INVALID_DATA = 1
USAGE_ERROR = 2
IO_ERROR = 3
_SIGNAL_BASE = 128  # the exit code after a signal, as shells report it, is 128 + its number

_PATH_ERRORS = FileNotFoundError | IsADirectoryError | NotADirectoryError
_USAGE_ERRORS = FeatureNotFoundError | MissingDependencyError | _PATH_ERRORS  # about arguments


def exit_code(error: Exception) -> int | None:
    """Exit code for an error; None for an unexpected error, whose traceback is shown.

    >>> exit_code(FileNotFoundError("no such file")), exit_code(PermissionError("denied")), exit_code(KeyError("x"))
    (2, 3, None)
    """
    if isinstance(error, _USAGE_ERRORS) or getattr(error, "of_argument", False):
        return USAGE_ERROR
    if isinstance(error, TFRecordError | EOFError | Warning):  # a warning that is an error, by python -W
        return INVALID_DATA
    if isinstance(error, OSError | MemoryError):
        return IO_ERROR
    return USAGE_ERROR if isinstance(error, ValueError | TypeError | NotImplementedError) else None


def report_exit_code(files: Sequence[Any]) -> int:
    """Exit code for the files of a report of `tfrecord_io.verify` with problems, of which some may not be of a file.

    Damaged files take precedence over files that cannot be read.
    """
    unreadable = next((file.error for file in files if file.error is not None), None)
    if unreadable is None or any(file.status == "damaged" for file in files):
        return INVALID_DATA
    return exit_code(unreadable) or IO_ERROR


def interruption(error: KeyboardInterrupt) -> tuple[int, str]:
    """Exit code and message after Ctrl-C or a signal.

    >>> interruption(KeyboardInterrupt()), interruption(Terminated(15))
    ((130, 'interrupted'), (143, 'terminated'))
    """
    if isinstance(error, Terminated):
        return _SIGNAL_BASE + error.number, "terminated"
    return _SIGNAL_BASE + signal.SIGINT, "interrupted"
