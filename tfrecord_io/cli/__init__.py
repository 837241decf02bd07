"""The ``tfr`` command: parses arguments, calls the library and shows the results."""

from __future__ import annotations

from tfrecord_io.cli.commands import tfr

__all__ = ["main", "tfr"]


def main() -> None:
    """Run the command; the entry point of the installed script."""
    tfr()
