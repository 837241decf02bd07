"""Exit codes of the ``tfr`` command, and its errors as single lines."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from tfrecord_io.cli.process import echo
from tfrecord_io.errors import (
    FeatureNotFoundError,
    MissingDependencyError,
    TFRecordError,
    printable,
    say,
    within_message_limit,
)
from tfrecord_io.remedies import Call, Keyword, Message, Speaker

if TYPE_CHECKING:
    from tfrecord_io.tools.file_check import FileCheck

INVALID_DATA = 1
USAGE_ERROR = 2
IO_ERROR = 3

_LESS_MEMORY = say("pass {threads=1}") & say("choose columns by {columns=}")
_PATH_ERRORS = FileNotFoundError | IsADirectoryError | NotADirectoryError
_USAGE_ERRORS = FeatureNotFoundError | MissingDependencyError | _PATH_ERRORS  # about arguments


def exit_code(error: Exception) -> int | None:
    """The exit code for an error; None for an unexpected one, whose traceback is shown.

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


def report_exit_code(files: Sequence[FileCheck]) -> int:
    """The exit code for files of which some are not good: damage before files that cannot be read."""
    if any(file.status == "damaged" for file in files):
        return INVALID_DATA
    unreadable = next(file.error for file in files if file.error is not None)
    return exit_code(unreadable) or IO_ERROR


def error_line(error: BaseException, speaker: Speaker = lambda part: part) -> str:
    """The message of an error, or of a warning, in one line, in the words of a command, control characters escaped."""
    if isinstance(error, TFRecordError):
        return error.said(*error.speakers, speaker)
    text = error.args[0] if len(error.args) == 1 else error
    if isinstance(error, MemoryError):
        text = "out of memory" + (f" ({error})" if str(error) else "") & _LESS_MEMORY
    elif isinstance(error, OSError) and error.strerror:
        text = error.strerror
    said = text.said(*text.speakers, speaker) if isinstance(text, Message) else str(error if text is error else text)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        said = f"{error.filename}: {said}"
    return within_message_limit(printable(said, 1024))


def print_error(text: str) -> None:
    with suppress(OSError):  # stderr is closed or full: only the exit code is left
        echo(text, err=True)


def option_names(command: click.Command) -> Speaker:
    """The options of a command in place of keywords, and commands in place of calls; it does not have others.

    >>> options = [click.Option(["--float64"]), click.Option(["--type", "schema_overrides"])]
    >>> command = option_names(click.Command("convert", params=options))
    >>> text = "odd" & say('{float64="raw"} keeps the bits') | say("pass {embed_schema=False}") & say("see {on_error=}")
    >>> text.said(command)
    'odd; --float64 raw keeps the bits'
    >>> say("pass {schema_overrides=}", schema_overrides={"id": "string"}).said(command)
    'pass --type id=string'
    """
    options = {param.name: param for param in command.params if isinstance(param, click.Option)}

    def word(part: Keyword | Call) -> str | None:
        if isinstance(part, Call):
            return part.command
        option = options.get(part.name.replace("limits.", "max_"))
        return None if option is None else _written(option, part.value)

    return word


def _written(option: click.Option, text: str | None) -> str | None:
    """An option with a value of Python, as it is typed; None if it has no such value."""
    name = max(option.opts, key=len)
    if text is None:
        return name
    if option.is_flag:
        return {"True": name, "False": max(option.secondary_opts, key=len, default=None)}.get(text)
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):  # an example with more than literals
        return f"{name} {text}"
    if isinstance(value, dict):
        return " ".join(f"{name} {shlex.quote(f'{key}={item}')}" for key, item in value.items())
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(f"{name} {shlex.quote(item)}" for item in value)
    return f"{name} {shlex.quote(value) if isinstance(value, str) else str(value).lower()}"
