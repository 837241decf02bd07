"""What a person sees when something goes wrong: one line, and an exit code."""

from __future__ import annotations

import os
import re
import sys
import warnings
from typing import Any, TextIO

import click

from tfrecord_io.errors import FeatureNotFoundError, MissingDependencyError, TFRecordError, printable

BAD_DATA = 1
WRONG_USAGE = 2

# float64="raw", overwrite=True, column_encoding={"x": "raw"}, columns=
_KEYWORD = re.compile(
    r'\b(?P<name>[a-z_0-9]+)=(?:"(?P<word>\w+)"|True\b|\{"(?P<column>[^"]+)": "(?P<encoding>\w+)"\}|(?![^\s,;:.)]))'
)

# What the library raises about its arguments. Other OSErrors are about the data's bytes.
_USAGE = (
    FeatureNotFoundError,
    MissingDependencyError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)


def exit_code(error: Exception) -> int | None:
    """The exit code of an error; ``None`` for one that is a bug of ours and deserves its traceback.

    >>> exit_code(FileNotFoundError("no such file")), exit_code(KeyError("x"))
    (2, None)
    """
    if isinstance(error, _USAGE):
        return WRONG_USAGE
    if isinstance(error, TFRecordError | OSError):
        return BAD_DATA
    if isinstance(error, ValueError | TypeError | NotImplementedError):
        return WRONG_USAGE
    return None


def sentence(error: Exception) -> str:
    """An error in one line, control characters escaped."""
    if isinstance(error, TFRecordError):
        return str(error)
    if isinstance(error, OSError) and error.strerror and error.filename is not None:
        return printable(f"{error.filename}: {error.strerror}", 1024)
    return printable(error, 1024)


def say(text: str) -> None:
    click.echo(f"tfr: {text}", err=True)


def spelled(text: str, command: click.Command) -> str:
    """A text that names keywords of the library, with the command's options in their place, where it has them.

    >>> option = click.Option(["--float64"])
    >>> spelled('float64="raw" keeps the bits, see on_error=', click.Command("convert", params=[option]))
    '--float64 raw keeps the bits, see on_error='
    """
    options = {each.name: max(each.opts, key=len) for each in command.params if isinstance(each, click.Option)}

    def option(match: re.Match[str]) -> str:
        name = options.get(match["name"])
        if name is None:
            return match[0]
        pair = f"{match['column']}={match['encoding']}" if match["column"] else None
        return " ".join(each for each in (name, match["word"] or pair) if each)

    return _KEYWORD.sub(option, text)


class GuardedGroup(click.Group):
    """A group of commands whose errors and warnings are lines on stderr, and that a closed pipe ends quietly."""

    def invoke(self, ctx: click.Context) -> Any:
        def told(text: str) -> None:
            say(spelled(text, self.commands.get(ctx.invoked_subcommand or "", self)))

        def show_warning(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            told(f"warning: {printable(message, 1024)}")

        try:
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                result = super().invoke(ctx)
            sys.stdout.flush()
            return result
        except BrokenPipeError:
            _forget_stdout()
            ctx.exit(0)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except Exception as error:
            code = exit_code(error)
            if code is None:
                raise
            told(sentence(error))
            ctx.exit(code)


def _forget_stdout() -> None:
    """Point stdout at nothing, or Python would complain about the closed pipe once more at its end."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
