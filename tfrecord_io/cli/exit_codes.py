"""Exit codes of the ``tfr`` command, and its errors and warnings as single lines on stderr."""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Any

import click

from tfrecord_io.errors import FeatureNotFoundError, MissingDependencyError, TFRecordError, printable

INVALID_DATA = 1
USAGE_ERROR = 2

# float64="raw", overwrite=True, column_encoding={"x": "raw"}, columns=
_KEYWORD = re.compile(
    r'\b(?P<name>[a-z_0-9]+)=(?:"(?P<word>\w+)"|True\b|\{"(?P<column>[^"]+)": "(?P<encoding>\w+)"\}|(?![^\s,;:.)]))'
)

# Errors about arguments. Other OSErrors are about the bytes of the data.
_PATH_ERRORS = FileNotFoundError | IsADirectoryError | NotADirectoryError | PermissionError
_USAGE_ERRORS = FeatureNotFoundError | MissingDependencyError | _PATH_ERRORS


def exit_code(error: Exception) -> int | None:
    """The exit code for an error; None for an unexpected one, whose traceback is shown.

    >>> exit_code(FileNotFoundError("no such file")), exit_code(KeyError("x"))
    (2, None)
    """
    if isinstance(error, _USAGE_ERRORS):
        return USAGE_ERROR
    if isinstance(error, TFRecordError | OSError):
        return INVALID_DATA
    return USAGE_ERROR if isinstance(error, ValueError | TypeError | NotImplementedError) else None


def error_line(error: Exception) -> str:
    """The message of an error in one line, control characters escaped."""
    if isinstance(error, TFRecordError):
        return str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return printable(f"{error.filename}: {error.strerror}", 1024)
    return printable(error, 1024)


def print_error(text: str) -> None:
    click.echo(f"tfr: {text}", err=True)


def with_option_names(text: str, command: click.Command) -> str:
    """Replace the library's keywords in a message by the options of `command`, where it has them.

    >>> option = click.Option(["--float64"])
    >>> with_option_names('float64="raw" keeps the bits, see on_error=', click.Command("convert", params=[option]))
    '--float64 raw keeps the bits, see on_error='
    """
    options = {param.name: max(param.opts, key=len) for param in command.params if isinstance(param, click.Option)}

    def option(match: re.Match[str]) -> str:
        name = options.get(match["name"])
        if name is None:
            return match[0]
        value = f"{match['column']}={match['encoding']}" if match["column"] else match["word"]
        return f"{name} {value}" if value else name

    return _KEYWORD.sub(option, text)


class CommandGroup(click.Group):
    """A command group that prints errors and warnings as one line on stderr, and ends silently on a closed pipe."""

    def invoke(self, ctx: click.Context) -> Any:
        def report(text: str) -> None:
            print_error(with_option_names(text, self.commands.get(ctx.invoked_subcommand or "", self)))

        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: report(f"warning: {printable(message, 1024)}")
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            _discard_stdout()
            ctx.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            report(error_line(error))
            ctx.exit(code)


def _discard_stdout() -> None:
    """Redirect stdout to the null device, or Python would report the closed pipe again when it exits."""
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), sys.stdout.fileno())
