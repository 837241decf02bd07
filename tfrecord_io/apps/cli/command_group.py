"""Group of the commands of ``tfr``: turns errors, warnings and signals into lines on stderr and exit codes."""

from __future__ import annotations

import importlib
import json
import logging
import os
import pkgutil
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NoReturn

import click

from tfrecord_io.apps.cli.exit_codes import exit_code, interruption
from tfrecord_io.apps.cli.process import echo, swallowed_interrupt
from tfrecord_io.base import OTHER_NAMES, Point, hide_secrets
from tfrecord_io.errors import MissingDependencyError, TFRecordError
from tfrecord_io.kit import printable

_COMMANDS = "tfrecord_io.commands"  # entry points

ADVICE_OF_OPTION = "see --on-error, or "  # how errors about damage advise the commands that have the option
_LESS_MEMORY = "pass --threads 1; choose columns by --columns"


def options_of(args: Sequence[str]) -> Sequence[str]:
    """The arguments that can be options: those before ``--``.

    >>> options_of(["--json", "--", "--images"])
    ['--json']
    """
    return args[: args.index("--")] if "--" in args else args


def error_line(error: BaseException) -> str:
    """Word an error or a warning in one line for the command, with control characters escaped."""
    if isinstance(error, TFRecordError):
        text = error.text_cli()
        command = _running_command()
        has_option = command is not None and _has_option(command, "--on-error")
        return text if has_option else text.replace(ADVICE_OF_OPTION, "")
    message = str(error.args[0] if len(error.args) == 1 else error)
    own_words: str | None = getattr(error, "message_cli", None)
    if isinstance(error, MemoryError):
        message = f"out of memory{f' ({error})' if str(error) else ''}; {_LESS_MEMORY}"
    elif isinstance(error, OSError) and error.strerror:
        message = error.strerror if own_words is None else own_words
        if error.filename is not None:
            message = f"{error.filename or repr('')}: {message}"
    elif own_words is not None:
        message = own_words
    return hide_secrets(printable(message, 1024), shorten=True)


def _running_command() -> click.Command | None:
    """The command that runs, also where its context has ended; None outside of commands."""
    context = click.get_current_context(silent=True)
    if context is None:
        return None
    command = context.command
    if isinstance(command, click.Group) and context.invoked_subcommand:
        return command.get_command(context, context.invoked_subcommand) or command
    return command


def _has_option(command: click.Command, name: str) -> bool:
    return any(name in parameter.opts for parameter in command.params)


def print_error(text: str) -> None:
    with suppress(OSError):  # stderr is closed or full: only the exit code is left
        echo(text, err=True)


ERROR_CODE = "tfrecord_io.error_code"  # in the ``meta`` of a command's context: its exit code for all errors
DEBUG = "tfrecord_io.debug"  # also in ``meta``: true if errors are printed with their tracebacks
AS_JSON = "tfrecord_io.as_json"  # also in ``meta``: true if errors and warnings are printed as JSON

_OTHER_COMMANDS = {  # commands of other programs, with the command that does the same here
    "help": "tfr --help",
    "version": "tfr --version",
    **dict.fromkeys(("info", "stat", "stats", "ls", "inspect"), "describe"),
    **dict.fromkeys(("check", "validate", "test", "fsck"), "verify"),
    **dict.fromkeys(("repair", "fix", "recover"), "salvage"),
    **dict.fromkeys(("show", "view", "peek"), "head"),
    **dict.fromkeys(("print", "dump", "less"), "cat"),
    **dict.fromkeys(("cp", "sync", "rsync", "mv", "move", "upload", "download"), "copy"),
    **dict.fromkeys(("rm", "remove", "drop", "expire"), "delete"),
    **dict.fromkeys(("append", "add"), "convert --append"),
    **dict.fromkeys(("filter", "grep"), "convert --where"),
    **dict.fromkeys(("import", "export", "read", "write"), "convert"),
    **dict.fromkeys(("gc", "vacuum", "cleanup"), "clean"),
    **dict.fromkeys(("optimize", "optimise"), "compact"),
    **dict.fromkeys(("dedup", "unique", "uniq", "distinct"), "dedupe"),
    **dict.fromkeys(("compare", "cmp"), "diff"),
    **dict.fromkeys(("first", "last"), "head"),
    **dict.fromkeys(("lookup", "find"), "get"),
    **dict.fromkeys(("wc", "len"), "count"),
    **dict.fromkeys(("query", "select"), "sql"),
    **dict.fromkeys(("concat", "join"), "merge"),
    "shard": "split",
}

SECTIONS = ("Show", "Check and repair", "Write")  # of the help


def debug_option() -> click.Option:
    """Make the option ``--debug``, which may stand before the command and after it."""

    def note(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        ctx.meta[DEBUG] = value or ctx.meta.get(DEBUG, False)

    text = "Print the traceback of errors."
    return click.Option(["--debug"], is_flag=True, expose_value=False, callback=note, help=text)


def verbose_option() -> click.Option:
    """Make the option ``--verbose``, which may stand before the command and after it."""

    def show(_ctx: click.Context, _: click.Parameter, value: int) -> None:
        if value:
            logger = logging.getLogger("tfrecord_io")
            logger.setLevel(logging.INFO if value == 1 and logger.level != logging.DEBUG else logging.DEBUG)
            if not any(isinstance(handler, _ToStderr) for handler in logger.handlers):
                logger.addHandler(_ToStderr())

    text = "Log changes in storage to stderr; -vv also logs how files are read."
    return click.Option(["-v", "--verbose"], count=True, expose_value=False, callback=show, help=text)


class _ToStderr(logging.Handler):
    """Prints messages as the other lines of commands."""

    def emit(self, record: logging.LogRecord) -> None:
        print_error(f"tfr: {record.levelname.lower()}: {printable(record.getMessage(), 1024)}")


class CommandGroup(click.Group):
    """A command group that ends every failure with an exit code and one line on stderr.

    A command ends silently when the reading end of a pipe on stdout is closed.
    """

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self.sections: dict[str, list[click.Command]] = {title: [] for title in SECTIONS}
        self._has_others = False

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        as_json = "--json" in options_of(args)  # also where parsing the arguments fails
        with self._exit_codes(None, as_json):
            context = super().make_context(info_name, args, parent, **extra)
            context.meta[AS_JSON] = as_json
            return context

    def invoke(self, ctx: click.Context) -> Any:
        with self._exit_codes(ctx, ctx.meta.get(AS_JSON, False)):
            result = super().invoke(ctx)
            sys.stdout.flush()
            return result

    def declare(self, section: str, **keywords: Any) -> Callable[[Callable[..., Any]], click.Command]:
        """Declare a command, which the help lists in a section."""

        def add(function: Callable[..., Any]) -> click.Command:
            command = self.command(**keywords)(function)
            self.sections[section].append(command)
            return command

        return add

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Add a command, with ``--verbose`` and ``--debug`` as its last options."""
        if (name or cmd.name) in self.commands:
            raise ValueError(f"the command {name or cmd.name!r} is taken")
        cmd.params += [verbose_option(), debug_option()]
        super().add_command(cmd, name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Get a command of this package, or else of another package."""
        all_commands()
        if cmd_name not in self.commands:
            for point in Point.own_points(_COMMANDS):
                if point.name == cmd_name:
                    point.load()  # raises an error that names the library which the plugin lacks
            self._declare_others()
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command; for a name from another program, fail with the name of the command here."""
        name = args[0]
        if name in _OTHER_COMMANDS and self.get_command(ctx, name) is None:
            ctx.fail(f"No such command {name!r}. Did you mean {_OTHER_COMMANDS[name]!r}?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List the names of all commands, including commands of other packages."""
        self._declare_others()
        return super().list_commands(ctx)

    def _declare_others(self) -> None:
        """Import the modules of other packages that declare commands, after those of this package."""
        all_commands()
        for point in () if self._has_others else Point.others(_COMMANDS):
            try:
                point.load()
            except Exception as error:  # a module may raise anything: the commands of this package go on without it
                reason = f"{point.value!r} cannot be loaded ({type(error).__name__}: {printable(error)})"
                what = f"the command {point.name!r} of the package {point.package!r}"
                warnings.warn(f"{what} is left out: {reason}", RuntimeWarning, stacklevel=2)
        self._has_others = True

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by section; first sentences are wrapped, where click would shorten them."""
        self._declare_others()
        width = max(map(len, self.commands))
        for title, commands in self.sections.items():
            texts = {command.name or "": command.get_short_help_str(1000) for command in commands}
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), texts[name]) for name in sorted(texts)])

    @contextmanager
    def _exit_codes(self, ctx: click.Context | None, as_json: bool) -> Iterator[None]:
        """End with the exit code of an error, after one line about it: text, or with `as_json` an object."""
        reporter = _Reporter(as_json)
        try:
            with warnings.catch_warnings():
                warnings.showwarning = reporter.warn
                yield
        except click.ClickException as error:
            reporter.end_usage(error)
        except (click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt as error:
            reporter.end_interrupted(error)
        except Exception as error:
            if (interrupt := swallowed_interrupt()) is not None:
                reporter.end_interrupted(interrupt)
            if isinstance(error, BrokenPipeError) and error.filename is None:  # the reader of stdout has closed it
                raise click.exceptions.Exit(0) from None
            code = exit_code(error)
            if code is None:
                raise
            if ctx is not None and ctx.meta.get(DEBUG):
                traceback.print_exc()
            reporter.end(error, error_line(error), code if ctx is None else ctx.meta.get(ERROR_CODE, code))


class _Reporter:
    """Prints errors and warnings to stderr, as text or as JSON; after an error, the command ends with its exit code."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json

    def warn(self, message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        """Print a warning; replaces `warnings.showwarning`."""
        text = message if isinstance(message, str) else error_line(message)
        if self._as_json:
            print_error(json.dumps({"warning": {"class": category.__name__, "message": text}}))
        else:
            print_error(f"tfr: warning: {text}")

    def end(self, error: BaseException, text: str, code: int) -> NoReturn:
        """End after an error."""
        if self._as_json:
            print_error(json.dumps({"error": {"class": type(error).__name__, "message": text}, "exit_code": code}))
        else:
            print_error(f"tfr: {text}")
        raise click.exceptions.Exit(code) from None

    def end_interrupted(self, error: KeyboardInterrupt) -> NoReturn:
        """End after Ctrl-C, or a signal that ends the process."""
        code, text = interruption(error)
        self.end(error, text, code)

    def end_usage(self, error: click.ClickException) -> NoReturn:
        """End after an error of click, whose text is of several lines: with the usage of the command."""
        if isinstance(error, click.NoSuchOption) and (similar := _find_similar_option(error)) is not None:
            text = f"No such option {error.option_name!r}. Did you mean {similar!r}?"
            error = click.NoSuchOption(error.option_name, text, ctx=error.ctx)
        elif isinstance(error, click.NoSuchOption) and _is_of_commands(error):
            text = f"No such option {error.option_name!r} before the command: it stands after it."
            error = click.NoSuchOption(error.option_name, text, ctx=error.ctx)
        if self._as_json:
            self.end(error, error.format_message(), error.exit_code)
        with suppress(OSError):
            error.show()
        raise click.exceptions.Exit(error.exit_code) from None


def _find_similar_option(error: click.NoSuchOption) -> str | None:
    """Find the option for a name or form (``-20``) from other programs."""
    params = [] if error.ctx is None else error.ctx.command.params
    option = error.option_name.lstrip("-").replace("-", "_")
    if option.isdecimal():
        return "-n N" if any("-n" in param.opts for param in params) else None
    names = (option, *OTHER_NAMES.meant_keywords(option))
    return next((max(param.opts, key=len) for name in names for param in params if param.name == name), None)


def _is_of_commands(error: click.NoSuchOption) -> bool:
    """True if an option stands before the command, and a command has it."""
    if error.ctx is None or not isinstance(error.ctx.command, CommandGroup):
        return False
    return any(_has_option(command, error.option_name) for command in all_commands().commands.values())


def _show_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Print the version; click would ask the metadata of the installation, whose modules take longer to import."""
    if value and not ctx.resilient_parsing:
        import tfrecord_io as package

        click.echo(f"tfr, version {package.__version__}")
        ctx.exit()


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_show_version,
    help="Show the version and exit.",
)
def tfr() -> None:
    """Inspect and convert TFRecord files.

    PATH is a file, a URL, a quoted glob, a directory or a shard spec such as train@8. Several paths are read one
    after the other. Use - for standard input.

    Exit codes: 0 success, 1 invalid data or (diff) a difference, 2 usage error, 3 I/O error (disk full, target exists,
    permission, network) or out of memory, 130 interrupted, 143 terminated.
    """


tfr.params += [verbose_option(), debug_option()]


@cache
def all_commands() -> CommandGroup:
    """Return the group with all commands declared by the modules ``*commands`` of this package, and by its plugins.

    The group asks for them when it looks for a command: ``tfr --version`` needs none. Commands of other packages are
    declared when a command is unknown, or when all are listed.
    """
    for module in pkgutil.iter_modules([os.path.dirname(__file__)]):
        if module.name.endswith("commands"):
            importlib.import_module(f"tfrecord_io.apps.cli.{module.name}")
    for point in Point.own_points(_COMMANDS):
        with suppress(MissingDependencyError):  # raised when the command is called
            point.load()
    return tfr
