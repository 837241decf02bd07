"""The ``tfr`` command: it parses arguments, calls the library and shows what that gives."""

from __future__ import annotations

from tfrecord_io.cli.commands import tfr

__all__ = ["main", "tfr"]


def main() -> None:
    """Run the command; the entry point of the installed script."""
    tfr()
