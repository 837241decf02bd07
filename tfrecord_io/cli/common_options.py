"""The arguments and options that several commands have, and how their text becomes the keywords of the library."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import wraps
from typing import Any

import click

from tfrecord_io.cli.command_group import tfr
from tfrecord_io.compression import CODECS, INFER, PLAIN
from tfrecord_io.registry import listed

STDIN, STDOUT = "/dev/stdin", "/dev/stdout"
_TIME_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
SCHEMA_FORMATS = ("arrow", "tfx", "feature_description", "json", "python")  # those of cli.schema_text


def _storage_options(ctx: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, Any] | None:
    """KEY=VALUE pairs as a dict: a.b=x is nested, and a value that is JSON is parsed. No message shows a value."""
    options: dict[str, Any] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        *outer, last = key.split(".")
        nested = options
        for name in outer:
            nested = nested.setdefault(name, {})
            if not isinstance(nested, dict):
                break
        if not separator or not last or not isinstance(nested, dict):
            raise click.BadParameter("expected KEY=VALUE, such as anon=true or client_kwargs.region_name=eu-west-1")
        try:
            nested[last] = json.loads(text)
        except ValueError:
            nested[last] = text
    return options or None


def duration(ctx: click.Context, option: click.Parameter, text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _TIME_UNITS or not number.isdigit():
        raise click.BadParameter(f"'{text}' is not a duration: expected 30m, 12h or 2d")
    return timedelta(**{_TIME_UNITS[unit]: int(number)})


def with_stdin(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    if paths.count("-") > 1:
        raise click.BadParameter("- is standard input, which can be read only once")
    if "-" in paths and sys.stdin is None:
        raise click.BadParameter("standard input is closed")
    return tuple(STDIN if path == "-" else path for path in paths)


def _one_or_list(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> str | list[str]:
    paths = with_stdin(ctx, argument, paths)
    return paths[0] if len(paths) == 1 else list(paths)


def pairs(example: str) -> Callable[[Any, Any, tuple[str, ...]], dict[str, str] | None]:
    """A callback that makes a dict of NAME=VALUE pairs; names may contain "="."""

    def parse(ctx: click.Context, option: click.Parameter, texts: tuple[str, ...]) -> dict[str, str] | None:
        for pair in texts:
            if not all(pair.rpartition("=")[::2]):
                raise click.BadParameter(f"'{pair}': expected {option.metavar}, such as {example}")
        return {name: value for name, _, value in (pair.rpartition("=") for pair in texts)} or None

    return parse


paths = click.argument("path", metavar="PATH...", nargs=-1, required=True, callback=_one_or_list)
json_flag = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class ListingOption(click.Option):
    """NAMES in its help stands for names that are looked up to show it, as other packages add some."""

    def __init__(self, *arguments: Any, names: Callable[[], Iterable[str]], **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._names = names

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = (self.help or "").replace("NAMES", listed("or", *self._names()))
        return super().get_help_record(ctx)


def compression_option(**keywords: Any) -> Callable[[Any], Any]:
    names = lambda: (PLAIN, *CODECS.names())  # noqa: E731
    return click.option("--compression", cls=ListingOption, names=names, metavar="NAME", **keywords)


compression = compression_option(
    default=INFER,
    show_default=True,
    callback=lambda _ctx, _param, name: None if name == PLAIN else name,
    help=f"{INFER}, NAMES.",
)
record_type = click.option(
    "--record-type",
    type=click.Choice(["example", "sequence_example", "bytes"]),
    help="What each record is; detected by default.",
)
columns = click.option(
    "-c",
    "--columns",
    multiple=True,
    metavar="NAME",
    callback=lambda _ctx, _param, names: list(names) or None,
    help="A name, a glob, or !NAME to exclude; may be repeated.",
)


allow_missing_shards = click.option(
    "--allow-missing-shards", is_flag=True, help="Read the existing files if shards are missing or duplicated."
)


on_error = click.option(
    "--on-error",
    type=click.Choice(["raise", "stop", "skip"]),
    default="raise",
    show_default=True,
    help="At damaged data, fail, use the records before it, or leave it out.",
)


def in_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Declare --in-place, which becomes ``overwrite="in_place"``."""

    @wraps(command)
    def run(*arguments: Any, in_place: bool, **options: Any) -> Any:
        if in_place:
            if options.get("overwrite") is False:
                raise click.UsageError("--in-place replaces the target: it cannot be combined with --no-overwrite")
            options["overwrite"] = "in_place"
        return command(*arguments, **options)

    text = "Replace the shards of a dataset in a bucket one by one, without copies of them."
    return click.option("--in-place", is_flag=True, help=text)(run)


threads = click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Number of threads.")


max_decompression_ratio = click.option(
    "--max-decompression-ratio",
    type=click.FloatRange(min=1),
    metavar="RATIO",
    help="Refuse compressed files that decompress to more than RATIO times their size.",
)


def storage(name: str, keyword: str, what: str) -> Callable[[Any], Any]:
    """An option with KEY=VALUE pairs for fsspec."""
    text = f"Option for {what}, such as anon=true; may be repeated."
    return click.option(name, keyword, multiple=True, metavar="KEY=VALUE", callback=_storage_options, help=text)


storage_option = storage("--storage-option", "storage_options", "remote storage")


def inspection(*options: Callable[[Any], Any], section: str = "Show") -> Callable[[Any], click.Command]:
    """Declare a command that has PATH and the options that all have, besides `options`."""

    def declare(function: Any) -> click.Command:
        for option in (json_flag, storage_option, allow_missing_shards, *reversed(options), paths):
            function = option(function)
        return tfr.declare(section)(function)

    return declare
