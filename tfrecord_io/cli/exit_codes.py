"""Exit codes of the ``tfr`` command, and its errors as single lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING

import click

from tfrecord_io.cli.process import echo
from tfrecord_io.errors import (
    FeatureNotFoundError,
    MissingDependencyError,
    TFRecordError,
    printable,
    within_message_limit,
)
from tfrecord_io.options import ArrayOptions, WriteOptions

if TYPE_CHECKING:
    from tfrecord_io.tools.file_check import FileCheck

INVALID_DATA = 1
USAGE_ERROR = 2
IO_ERROR = 3

# float64="raw", overwrite=True, column_encoding={"x": "raw"}, columns=
_KEYWORD = re.compile(
    r"""\b(?P<name>[a-z_0-9]+)=(?:["'](?P<word>\w+)["']|(?P<flag>True|False)\b"""
    r"""|\{"(?P<column>[^"]+)": "(?P<encoding>\w+)"\}|(?![^\s,;:.)]))"""
)

_KEYWORDS = {f.name for cls in (ArrayOptions, WriteOptions) for f in fields(cls)}

_PATH_ERRORS = FileNotFoundError | IsADirectoryError | NotADirectoryError
_USAGE_ERRORS = FeatureNotFoundError | MissingDependencyError | _PATH_ERRORS  # about arguments


def exit_code(error: Exception) -> int | None:
    """The exit code for an error; None for an unexpected one, whose traceback is shown.

    >>> exit_code(FileNotFoundError("no such file")), exit_code(PermissionError("denied")), exit_code(KeyError("x"))
    (2, 3, None)
    """
    if isinstance(error, _USAGE_ERRORS):
        return USAGE_ERROR
    if isinstance(error, TFRecordError | EOFError):
        return INVALID_DATA
    if isinstance(error, OSError):
        return IO_ERROR
    return USAGE_ERROR if isinstance(error, ValueError | TypeError | NotImplementedError) else None


def report_exit_code(files: Sequence[FileCheck]) -> int:
    """The exit code for files of which some are not good: damage before files that cannot be read."""
    if any(file.status == "damaged" for file in files):
        return INVALID_DATA
    unreadable = next(file.error for file in files if file.error is not None)
    return exit_code(unreadable) or IO_ERROR


def error_line(error: Exception) -> str:
    """The message of an error in one line, control characters escaped."""
    if isinstance(error, TFRecordError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        text = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
        return within_message_limit(printable(text, 1024))
    return within_message_limit(printable(error, 1024))


def print_error(text: str) -> None:
    with suppress(OSError):  # stderr is closed or full: only the exit code is left
        echo(f"tfr: {text}", err=True)


def with_option_names(text: str, command: click.Command) -> str:
    """Replace the library's keywords in a message by the options of `command`; say so where it does not have them.

    >>> option = click.Option(["--float64"])
    >>> with_option_names('float64="raw" keeps the bits, see on_error=', click.Command("convert", params=[option]))
    '--float64 raw keeps the bits'
    >>> with_option_names("declare it in schema=", click.Command("head"))
    'declare it in schema= (schema= is a keyword of the Python functions)'
    """
    options = {param.name: param for param in command.params if isinstance(param, click.Option)}
    if "on_error" not in options:
        text = text.replace("; see on_error=", "").replace(", see on_error=", "")
    keywords: dict[str, None] = {}

    def option(match: re.Match[str]) -> str:
        option = options.get(match["name"])
        if option is None or (match["flag"] == "False" and not option.secondary_opts):
            if match["name"] in _KEYWORDS:
                keywords[f"{match['name']}="] = None
            return match[0]
        name = max(option.secondary_opts if match["flag"] == "False" else option.opts, key=len)
        value = f"{match['column']}={match['encoding']}" if match["column"] else match["word"]
        return f"{name} {value}" if value else name

    text = _KEYWORD.sub(option, text)
    if not keywords:
        return text
    verb = "is a keyword" if len(keywords) == 1 else "are keywords"
    return f"{text} ({', '.join(keywords)} {verb} of the Python functions)"
