"""The commands of ``tfr``: each calls one function of the library, with options named like its keywords.

The library is imported inside the commands, so that ``tfr --help`` starts quickly.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from typing import Any

import click

from tfrecord_io.cli.command_group import CommandGroup, debug_option
from tfrecord_io.cli.conditions import where
from tfrecord_io.cli.exit_codes import INVALID_DATA, error_line, print_error, with_option_names
from tfrecord_io.cli.process import echo
from tfrecord_io.display import counted
from tfrecord_io.errors import printable
from tfrecord_io.options.read import is_of_other_type

STDIN, STDOUT = "/dev/stdin", "/dev/stdout"
_TIME_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
SCHEMA_FORMATS = ("arrow", "tfx", "feature_description", "json", "python")  # those of cli.schema_text


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tfrecord_io", prog_name="tfr")
def tfr() -> None:
    """Inspect and convert TFRecord files.

    PATH is a file, a URL, a quoted glob, a directory or a shard spec such as train@8. Several paths are read one
    after the other. Use - for standard input.

    Exit codes: 0 success, 1 invalid data, 2 usage error, 3 I/O error (disk full, target exists, permission, network),
    130 interrupted, 143 terminated.
    """


tfr.params.append(debug_option())


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


def _duration(ctx: click.Context, option: click.Parameter, text: str) -> timedelta:
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
compression = click.option(
    "--compression",
    default="infer",
    show_default=True,
    metavar="NAME",
    callback=lambda _ctx, _param, name: None if name == "none" else name,
    help="infer, none, gzip, zlib or zstd.",
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


def inspection(*options: Callable[[Any], Any]) -> Callable[[Any], click.Command]:
    """Declare a command that has PATH and the options that all have, besides `options`."""

    def declare(function: Any) -> click.Command:
        for option in (json_flag, storage_option, allow_missing_shards, *reversed(options), paths):
            function = option(function)
        return tfr.command()(function)

    return declare


@inspection(columns, record_type, compression, on_error, where)
@click.option("-n", "limit", type=click.IntRange(min=0), default=5, show_default=True, help="Number of records.")
def head(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show the first records."""
    from tfrecord_io.api import read_table
    from tfrecord_io.arrow.output.to_json import record_dicts
    from tfrecord_io.cli import output

    if options["on_error"] == "raise":
        options["on_error"] = is_of_other_type
    records = read_table(path, **options)
    value = record_dicts(records) if as_json else None
    output.print_result(as_json, value, table=lambda: output.records_table(records))


@inspection(record_type, compression, on_error)
@click.option(
    "--as",
    "format",
    type=click.Choice(SCHEMA_FORMATS),
    help="Print code or text for pyarrow, TFX or TensorFlow, or the schema as JSON or Python.",
)
def schema(path: str | list[str], as_json: bool, format: str | None, **options: Any) -> None:
    """Show the columns and their types.

    They come from the schema in the file or, without one, from its first records.
    """
    from tfrecord_io.cli import output, schema_text
    from tfrecord_io.schema.type_names import short_type_name

    resolved, source = schema_text.resolve_schema(path, format, options)
    if format is not None:
        echo(schema_text.schema_text(resolved, format))
    else:
        schema = resolved.to_arrow()
        fields = [{"name": f.name, "type": short_type_name(f.type, f.metadata)} for f in schema]
        text, value = f"{len(schema):,} columns, {source}", {"source": source, "fields": fields}
        output.print_result(as_json, value, text, lambda: output.schema_table(schema))


@inspection(compression, max_decompression_ratio, on_error)
@click.option("--index", multiple=True, metavar="FILE", help="The index file of PATH; repeat it for several files.")
@threads
def count(path: str | list[str], as_json: bool, index: tuple[str, ...], **options: Any) -> None:
    """Count the records, for several PATHs also of each."""
    from tfrecord_io.cli import output
    from tfrecord_io.tools.count import count_records

    several = isinstance(path, list)
    given = path if isinstance(path, list) else [path]
    if several and index and len(index) != len(given):
        raise click.UsageError(f"--index is given {len(index)} times for {len(given)} PATHs: pass it once for each")
    indexes = [[file] for file in index] if several and index else [list(index) or None] * len(given)
    counts = [
        count_records(one, index=file, progress=True, **options) for one, file in zip(given, indexes, strict=True)
    ]
    total = sum(counts)
    value = {"records": total, "paths": [{"path": p, "records": n} for p, n in zip(given, counts, strict=True)]}
    lines = [(n, printable(p, 1024)) for n, p in zip(counts, given, strict=True)]
    width = len(str(total))
    text = "\n".join(f"{n:>{width}}  {name}" for n, name in [*lines, (total, "total")])
    output.print_result(as_json, value, text if several else total)


@inspection()
@click.option("--check", is_flag=True, help="Write nothing: check the existing index of each file.")
@click.option(
    "-c",
    "--columns",
    multiple=True,
    metavar="NAME,...",
    callback=lambda _ctx, _param, lists: [name for names in lists for name in names.split(",") if name],
    help="Write the offsets and the values of these columns to FILE.column_index; may be repeated.",
)
def index(path: str | list[str], as_json: bool, check: bool, columns: list[str], **options: Any) -> None:
    """Write the record offsets of each file to FILE.index.

    Random access and counting use the index; filters use that with --columns.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.index_files import build_index, check_indexes, write_indexes

    if STDIN in ([path] if isinstance(path, str) else path):
        raise click.UsageError("an index is written next to its file: pass the path of a file, not standard input")
    if check and columns:
        raise click.UsageError("--check compares the offsets in an index with its file: it takes no --columns")
    if columns:
        indexes = build_index(path, columns=columns, progress=True, **options)
    else:
        indexes = (check_indexes if check else write_indexes)(path, progress=True, **options)
    value = [index.to_dict() for index in indexes]
    output.print_result(as_json, value, table=lambda: output.indexes_table(indexes))
    errors = [index.error for index in indexes if index.error is not None]
    for error in errors:
        print_error(with_option_names(error_line(error), click.get_current_context().command))
    if errors:
        click.get_current_context().exit(INVALID_DATA)


@inspection(columns, record_type, compression, on_error, where)
def describe(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show the type, missing values, range and lengths of each column."""
    from tfrecord_io.cli import output
    from tfrecord_io.tools.describe import describe as describe_files

    description = describe_files(path, progress=True, **options)
    text = counted(description.records, "record")
    output.print_result(as_json, description.to_dict(), text, lambda: output.description_table(description))


@tfr.command()
@click.argument("query", metavar="QUERY")
@compression
@allow_missing_shards
@storage_option
@json_flag
def sql(query: str, as_json: bool, **options: Any) -> None:
    """Run an SQL query by DuckDB, whose tables are quoted PATHs.

    Only the columns and rows that the query needs are decoded: tfr sql "SELECT count(*) FROM 'train-*.tfrecord'"
    """
    from tfrecord_io.adapters.duckdb import query_files
    from tfrecord_io.arrow.output.to_json import record_dicts
    from tfrecord_io.cli import output

    rows = query_files(query, **options)
    value = record_dicts(rows) if as_json else None
    output.print_result(as_json, value, table=lambda: output.records_table(rows))


@tfr.command()
@click.argument("path", metavar="PATH")
@click.option(
    "--older-than",
    default="1d",
    show_default=True,
    metavar="TIME",
    callback=_duration,
    help="Minimum age: 30m, 12h, 2d.",
)
@click.option("--yes", "remove", is_flag=True, help="Remove them; by default they are only listed.")
@storage_option
@json_flag
def clean(path: str, as_json: bool, **options: Any) -> None:
    """List or remove what killed writers have left behind.

    These are unfinished uploads to S3 and temporary files below PATH. Unfinished uploads of other programs are
    listed too: S3 does not say which program began an upload.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.leftovers import clean as find_leftovers

    leftovers = find_leftovers(path, **options)
    names = ("path", "upload", "started", "bytes")
    lines = []
    for leftover in leftovers:
        size = "" if leftover.bytes is None else f"  {leftover.bytes:,} bytes"
        upload = "" if leftover.upload is None else f"  upload {leftover.upload}"
        lines.append(printable(f"{leftover.path}{upload}  {leftover.started:%Y-%m-%d %H:%M:%S}{size}", 1024))
    action = "removed" if options["remove"] else "found; use --yes to remove them"
    lines.append(f"{len(leftovers):,} {action}" if leftovers else "no leftovers found")
    value = [{name: getattr(leftover, name) for name in names} for leftover in leftovers]
    output.print_result(as_json, value, "\n".join(lines))
