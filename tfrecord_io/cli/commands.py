"""The commands of ``tfr``: each calls one function of the library, with options named like its keywords.

The library is imported inside the commands, so that ``tfr --help`` starts quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

from tfrecord_io.cli.exit_codes import INVALID_DATA, CommandGroup, error_line, print_error
from tfrecord_io.errors import printable

STDIN, STDOUT = "/dev/stdin", "/dev/stdout"
_TIME_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
SCHEMA_FORMATS = ("arrow", "tfx", "feature_description", "json", "python")  # those of cli.schema_text


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tfrecord_io", prog_name="tfr")
def tfr() -> None:
    """Inspect and convert TFRecord files.

    PATH is a file, a URL, a quoted glob, a directory or a shard spec such as train@8. Several paths are read one
    after the other. - is standard input.

    Exit codes: 0 success, 1 invalid data, 2 usage error.
    """


def _encodings(ctx: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str] | None:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"'{pair}': expected NAME=ENCODING, such as x=raw")
    return {name: encoding for name, _, encoding in (pair.rpartition("=") for pair in pairs)} or None


def _duration(ctx: click.Context, option: click.Parameter, text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _TIME_UNITS or not number.isdigit():
        raise click.BadParameter(f"'{text}' is not a duration: expected 30m, 12h or 2d")
    return timedelta(**{_TIME_UNITS[unit]: int(number)})


def _with_stdin(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    if paths.count("-") > 1:
        raise click.BadParameter("- is standard input, which can be read only once")
    return tuple(STDIN if path == "-" else path for path in paths)


def _one_or_list(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> str | list[str]:
    paths = _with_stdin(ctx, argument, paths)
    return paths[0] if len(paths) == 1 else list(paths)


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
    "--allow-missing-shards", is_flag=True, help="Read the files that there are if shards are missing or exist twice."
)


def inspection(*options: Callable[[Any], Any]) -> Callable[[Any], click.Command]:
    """Declare a command that has PATH, --allow-missing-shards and --json, besides `options`."""

    def declare(function: Any) -> click.Command:
        for option in (*reversed(options), allow_missing_shards, json_flag, paths):
            function = option(function)
        return tfr.command()(function)

    return declare


@inspection(compression, record_type, columns)
@click.option("-n", "limit", type=click.IntRange(min=0), default=5, show_default=True, help="Number of records.")
def head(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show the first records."""
    from tfrecord_io.api import read_table
    from tfrecord_io.cli import output

    records = read_table(path, **options)
    value = output.record_dicts(records) if as_json else None
    output.print_result(as_json, value, table=lambda: output.records_table(records))


@inspection(compression, record_type)
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
        click.echo(schema_text.schema_text(resolved, format))
    else:
        schema = resolved.to_arrow()
        fields = [{"name": f.name, "type": short_type_name(f.type, f.metadata)} for f in schema]
        text, value = f"{len(schema):,} columns, {source}", {"source": source, "fields": fields}
        output.print_result(as_json, value, text, lambda: output.schema_table(schema))


@inspection(compression)
def count(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Count the records."""
    from tfrecord_io.cli import output
    from tfrecord_io.tools.count import count_records

    records = count_records(path, **options)
    output.print_result(as_json, {"records": records}, records)


@inspection()
@click.option("--check", is_flag=True, help="Write nothing: check the existing index of each file.")
def index(path: str | list[str], as_json: bool, check: bool, **options: Any) -> None:
    """Write the record offsets of each file to FILE.index.

    Random access and counting use the index.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.index_files import check_indexes, write_indexes

    if STDIN in ([path] if isinstance(path, str) else path):
        raise click.UsageError("an index is written next to its file: pass the path of a file, not standard input")
    indexes = check_indexes(path, **options) if check else write_indexes(path, **options)
    value = [index.to_dict() for index in indexes]
    output.print_result(as_json, value, table=lambda: output.indexes_table(indexes))
    errors = [index.error for index in indexes if index.error is not None]
    for error in errors:
        print_error(error_line(error))
    if errors:
        click.get_current_context().exit(INVALID_DATA)


@inspection(compression, record_type)
def verify(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Check every checksum, and parse every record."""
    from tfrecord_io.cli import output
    from tfrecord_io.tools.verify import verify as verify_files

    report = verify_files(path, **options)
    output.print_result(as_json, report.to_dict(), report)
    if not report.ok:
        click.get_current_context().exit(INVALID_DATA)


@inspection(compression, record_type, columns)
def describe(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show type, missing values, range and lengths of each column."""
    from tfrecord_io.cli import output
    from tfrecord_io.tools.describe import describe as describe_files

    description = describe_files(path, **options)
    text = f"{description.records:,} records"
    output.print_result(as_json, description.to_dict(), text, lambda: output.description_table(description))


@tfr.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, callback=_with_stdin)
@click.argument("target", metavar="TARGET")
@click.option("--overwrite/--no-overwrite", default=None, help="Replace an existing target, or fail.")
@columns
@click.option("--column", metavar="NAME", help="The column to write to a .npy file, if there are several.")
@click.option(
    "--float64",
    type=click.Choice(["round", "error", "raw"]),
    help="How to store float64, which TFRecord does not have; rounded to float32 by default.",
)
@click.option(
    "--column-encoding",
    multiple=True,
    metavar="NAME=ENCODING",
    callback=_encodings,
    help="list, raw or tensor_proto; may be repeated.",
)
@click.option(
    "--compression",
    metavar="NAME",
    help="none, gzip, zlib or zstd; by default from the name or content of the TFRecord file.",
)
@click.option("--shards", type=click.IntRange(min=1), metavar="N", help="Number of TFRecord files to write.")
@click.option("--max-shard-bytes", type=click.IntRange(min=1), metavar="N", help="Maximum bytes of a TFRecord file.")
@allow_missing_shards
@json_flag
def convert(sources: tuple[str, ...], target: str, as_json: bool, **options: Any) -> None:
    """Convert other files to TFRecord, or TFRecord to other files.

    The format of SOURCE and TARGET is detected from the name: .npy, .npz, IDX (train-images-idx3-ubyte.gz), .parquet,
    .arrow; anything else is TFRecord. Several .npy or IDX files are zipped by their leading axis; each file of a
    directory of .npy or .npz files becomes one record. As SOURCE or TARGET, - is standard input or output, with
    TFRecord data; if it is TARGET, the summary is printed on stderr.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.file_formats.convert import convert as convert_files

    given = {name: value for name, value in options.items() if value is not None}
    if given.get("compression") == "none":
        given["compression"] = None
    to_stdout = target == "-"
    if to_stdout and not {"shards", "max_shard_bytes"}.isdisjoint(given):
        raise click.UsageError("--shards and --max-shard-bytes need a path as TARGET, not -")
    target = STDOUT if to_stdout else target
    report = convert_files(sources[0] if len(sources) == 1 else list(sources), target, **given)
    value = {name: getattr(report, name) for name in ("path", "records", "bytes", "columns")}
    size = f"{report.records:,} records, {report.bytes:,} bytes"
    text = f"{printable(report.path)}: {size}, columns {printable(', '.join(report.columns))}"
    output.print_result(as_json, value, text, err=to_stdout)


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
@json_flag
def clean(path: str, as_json: bool, **options: Any) -> None:
    """List or remove what killed writers left behind.

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
