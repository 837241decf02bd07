"""The group of commands, which turns errors, warnings and signals into lines on stderr and exit codes."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from tfrecord_io.cli.exit_codes import error_line, exit_code, print_error, with_option_names
from tfrecord_io.cli.process import interruption
from tfrecord_io.errors import printable

ERROR_CODE = "tfrecord_io.error_code"  # in the ``meta`` of a command's context: its exit code for all errors


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

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands; first sentences are wrapped, where click would shorten them on a narrow terminal."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, self.commands[name].get_short_help_str(1000)) for name in sorted(self.commands)])

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
            report(error_line(error))
            raise click.exceptions.Exit(number if ctx is None else ctx.meta.get(ERROR_CODE, number)) from None
