"""The ``tfr`` command: parses arguments, calls the library and shows the results."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tfrecord_io.apps.cli.exit_codes import interruption
from tfrecord_io.apps.cli.process import echo, ending_by_signals, prepare_streams, settle_streams
from tfrecord_io.kit import ProgressMeter

if TYPE_CHECKING:
    from tfrecord_io.apps.cli.command_group import tfr

__all__ = ["main", "tfr"]


def __getattr__(name: str) -> Any:
    if name == "tfr":
        from tfrecord_io.apps.cli.command_group import all_commands

        return all_commands()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Run the command; the entry point of the installed script."""
    try:
        with ending_by_signals():
            prepare_streams()
            # Storage libraries log failed requests with tracebacks: the error line of the command says what failed.
            logging.getLogger().addHandler(logging.NullHandler())
            ProgressMeter.delay = 0.5  # no bar for what ends soon
            from tfrecord_io.apps.cli.command_group import tfr

            tfr()  # importing its commands takes the longest
    except KeyboardInterrupt as error:  # before the first command began
        code, text = interruption(error)
        with suppress(OSError):
            echo(f"tfr: {text}", err=True)
        raise SystemExit(code) from None
    finally:
        settle_streams()
