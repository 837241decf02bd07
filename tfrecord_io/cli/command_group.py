"""The group of commands, which turns errors, warnings and signals into lines on stderr and exit codes."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from tfrecord_io.cli.exit_codes import error_line, exit_code, print_error, with_option_names
from tfrecord_io.cli.process import interruption
from tfrecord_io.errors import printable

ERROR_CODE = "tfrecord_io.error_code"  # in the ``meta`` of a command's context: its exit code for all errors
DEBUG = "tfrecord_io.debug"  # in the same: whether errors are printed with their tracebacks

SECTIONS = {
    "Show": ("head", "cat", "get", "schema", "count", "describe", "report", "sql", "diff"),
    "Check and repair": ("verify", "salvage", "clean"),
    "Write": ("convert", "split", "merge", "shuffle", "sample", "index"),
}


def debug_option() -> click.Option:
    """The option ``--debug``, which is taken before the command and after it."""

    def note(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[DEBUG] = value or ctx.meta.get(DEBUG, False)

    text = "Print the traceback of an error."
    return click.Option(["--debug"], is_flag=True, expose_value=False, callback=note, help=text)


class CommandGroup(click.Group):
    """A command group that ends every failure with an exit code and one line on stderr.

    When the reading end of a pipe on stdout is closed, it ends silently.
    """

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        with self._exit_codes(None):
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with self._exit_codes(ctx):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with ``--debug`` as its last option."""

        cmd.params.append(debug_option())
        super().add_command(cmd, name)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by `SECTIONS`; first sentences are wrapped, where click would shorten them."""
        width = max(map(len, self.commands))
        for title, names in SECTIONS.items():
            with formatter.section(title):
                rows = [(name.ljust(width), self.commands[name].get_short_help_str(1000)) for name in names]
                formatter.write_dl(rows)

    @contextmanager
    def _exit_codes(self, ctx: click.Context | None) -> Iterator[None]:
        """End with the exit code of an error, after one line about it."""

        def report(text: str) -> None:
            name = ctx.invoked_subcommand if ctx is not None else None
            print_error(with_option_names(text, self.commands.get(name or "", self)))

        try:
            with warnings.catch_warnings():
                warnings.showwarning = lambda message, *_, **__: report(f"warning: {printable(message, 1024)}")
                yield
        except click.ClickException as error:
            with suppress(OSError):
                error.show()
            raise click.exceptions.Exit(error.exit_code) from None
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as error:
            code, text = interruption(error)
            report(text)
            raise click.exceptions.Exit(code) from None
        except Exception as error:
            if isinstance(error, BrokenPipeError) and error.filename is None:  # the reader of stdout has closed it
                raise click.exceptions.Exit(0) from None
            number = exit_code(error)
            if number is None:
                raise
            if ctx is not None and ctx.meta.get(DEBUG):
                traceback.print_exc()
            report(error_line(error))
            raise click.exceptions.Exit(number if ctx is None else ctx.meta.get(ERROR_CODE, number)) from None
