"""The commands; each only calls the library, with options named as the library's keywords."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import click

import tfrecord_io
from tfrecord_io.cli.exit_codes import BAD_DATA, GuardedGroup, say, sentence
from tfrecord_io.errors import printable

Command = Callable[..., Any]
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
FORMS = ("arrow", "tfx", "feature_description", "json", "python")  # of cli.forms, which is imported when needed


@click.group(cls=GuardedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(tfrecord_io.__version__, prog_name="tfr")
def tfr() -> None:
    """Look into TFRecord files, and convert them.

    PATH is a file, a URL, a glob in quotes, a directory or a shard spec such as train@8; several are read one after the other.

    Exit codes: 0 all is well, 1 the data is bad, 2 the command is used in a wrong way.
    """


def _path(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> str | list[str]:
    return paths[0] if len(paths) == 1 else list(paths)  # a directory or a shard spec stands alone


def _compression(ctx: click.Context, option: click.Parameter, value: str) -> str | None:
    return None if value == "none" else value


def _columns(ctx: click.Context, option: click.Parameter, names: tuple[str, ...]) -> list[str] | None:
    return list(names) or None


def _encodings(ctx: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str] | None:
    for pair in pairs:
        if "=" not in pair:
            raise click.BadParameter(f"'{pair}': write NAME=HOW, as in x=raw")
    return {name: how for name, _, how in (pair.rpartition("=") for pair in pairs)} or None


def plain_inputs(command: Command) -> Command:
    """The arguments that every command has."""
    command = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)
    return click.argument("path", metavar="PATH...", nargs=-1, required=True, callback=_path)(command)


def inputs(command: Command) -> Command:
    """The arguments of every command that reads compressed files as well."""
    command = click.option(
        "--compression",
        default="infer",
        show_default=True,
        metavar="NAME",
        callback=_compression,
        help="infer, none, gzip, zlib or zstd.",
    )(command)
    return plain_inputs(command)


record_type = click.option(
    "--record-type",
    type=click.Choice(["example", "sequence_example", "bytes"]),
    help="What a record is; found out if not given.",
)
columns = click.option(
    "-c",
    "--columns",
    multiple=True,
    metavar="NAME",
    callback=_columns,
    help="A name, a glob, or !NAME to leave out; may be repeated.",
)


def print_json(value: Any) -> None:
    from tfrecord_io.cli.json_output import plain_values

    click.echo(json.dumps(plain_values(value), indent=2))


@tfr.command()
@inputs
@record_type
@columns
@click.option("-n", "limit", type=click.IntRange(min=0), default=5, show_default=True, help="How many records.")
def head(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show the first records."""
    table = tfrecord_io.read_table(path, **options)
    if as_json:
        from tfrecord_io.arrow.tensor_values_rest import rows_of

        columns = [rows_of(*each) for each in zip(table.columns, table.schema, strict=True)]
        print_json(
            [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]
            if columns
            else table.to_pylist()
        )
    else:
        from tfrecord_io.cli import tables

        tables.show(tables.records_table(table))


@tfr.command()
@inputs
@record_type
@click.option(
    "--as",
    "form",
    type=click.Choice(FORMS),
    help="Print it to be pasted: for pyarrow, TFX, TensorFlow, as JSON or as Python.",
)
def schema(path: str | list[str], as_json: bool, form: str | None, **options: Any) -> None:
    """Show the columns and their types, as the file says or as its first records show."""
    from tfrecord_io.tools.column_summary import type_name

    with tfrecord_io.open_reader(path, **options) as reader:
        next(reader, None)  # damage in front of all records is an error, not a schema without columns
        found, origin = reader.schema, reader.report.schema_source
    if form is not None:
        from tfrecord_io.cli.schema_text import schema_text, strict_schema

        click.echo(schema_text(strict_schema(path, found, origin, form, options), form))
    elif as_json:
        print_json(
            {
                "source": origin,
                "fields": [{"name": field.name, "type": type_name(field.type, field.metadata)} for field in found],
            }
        )
    else:
        from tfrecord_io.cli import tables

        click.echo(f"{len(found):,} columns, {origin}")
        tables.show(tables.schema_table(found))


@tfr.command()
@inputs
def count(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Count the records."""
    records = tfrecord_io.count_records(path, **options)
    if as_json:
        print_json({"records": records})
    else:
        click.echo(records)


@tfr.command()
@plain_inputs
@click.option("--check", is_flag=True, help="Write nothing: say whether the index beside each file fits it.")
def index(path: str | list[str], as_json: bool, check: bool) -> None:
    """Write the places of the records beside each file, as FILE.index: for random access and counting."""
    from tfrecord_io.tools.index_files import check_indexes, write_indexes

    found = check_indexes(path) if check else write_indexes(path)
    if as_json:
        print_json([each.to_dict() for each in found])
    else:
        from tfrecord_io.cli import tables

        tables.show(tables.indexes_table(found))
    bad = [each.error for each in found if each.error is not None]
    for error in bad:
        say(sentence(error))
    if bad:
        click.get_current_context().exit(BAD_DATA)


@tfr.command()
@inputs
@record_type
def verify(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Check every checksum, and that every record parses."""
    report = tfrecord_io.verify(path, **options)
    if as_json:
        print_json(report.to_dict())
    else:
        click.echo(report)
    if not report.ok:
        click.get_current_context().exit(BAD_DATA)


@tfr.command()
@inputs
@record_type
@columns
def describe(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Show types, missing values, ranges and lengths of all columns."""
    description = tfrecord_io.describe(path, **options)
    if as_json:
        print_json(description.to_dict())
    else:
        from tfrecord_io.cli import tables

        click.echo(f"{description.records:,} records")
        tables.show(tables.description_table(description))


@tfr.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.argument("target", metavar="TARGET")
@click.option(
    "--overwrite/--no-overwrite",
    default=None,
    help="Replace an existing file, or refuse to; by default it is replaced.",
)
@columns
@click.option("--column", metavar="NAME", help="Of several the one that a .npy file is to hold.")
@click.option(
    "--float64",
    type=click.Choice(["round", "error", "raw"]),
    help="What to do about it: TFRecord has none, so it is rounded.",
)
@click.option(
    "--column-encoding",
    multiple=True,
    metavar="NAME=HOW",
    callback=_encodings,
    help="list, raw or tensor_proto; may be repeated.",
)
@click.option(
    "--compression",
    metavar="NAME",
    help="none, gzip, zlib or zstd, instead of what the TFRecord file's name or content says.",
)
@click.option("--shards", type=click.IntRange(min=1), metavar="N", help="Write so many TFRecord files.")
@click.option(
    "--max-shard-bytes", type=click.IntRange(min=1), metavar="N", help="Begin a new TFRecord file before one is larger."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def convert(sources: tuple[str, ...], target: str, as_json: bool, **options: Any) -> None:
    """Make TFRecord files of other files, or other files of TFRecord files.

    SOURCE and TARGET are known by their names: .npy, .npz, IDX (train-images-idx3-ubyte.gz), .parquet, .arrow; anything else is TFRecord.
    Several .npy or IDX files are zipped by their leading axis; a directory of .npy or .npz files gives a record for each.
    """
    given = {name: value for name, value in options.items() if value is not None}
    if given.get("compression") == "none":
        given["compression"] = None
    report = tfrecord_io.convert(sources[0] if len(sources) == 1 else list(sources), target, **given)
    if as_json:
        print_json(
            {"path": report.path, "records": report.records, "bytes": report.bytes, "columns": list(report.columns)}
        )
    else:
        columns = printable(", ".join(report.columns))
        click.echo(f"{printable(report.path)}: {report.records:,} records, {report.bytes:,} bytes, columns {columns}")


def _duration(ctx: click.Context, option: click.Parameter, text: str) -> timedelta:
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdigit():
        raise click.BadParameter(f"'{text}' is no duration; write 30m, 12h or 2d")
    return timedelta(**{_UNITS[unit]: int(number)})


@tfr.command()
@click.argument("path", metavar="PATH")
@click.option(
    "--older-than",
    default="1d",
    show_default=True,
    metavar="TIME",
    callback=_duration,
    help="Leave younger ones: 30m, 12h, 2d.",
)
@click.option("--yes", "remove", is_flag=True, help="Remove them; else they are only listed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
def clean(path: str, as_json: bool, **options: Any) -> None:
    """List, or remove, what killed writers left below PATH: unfinished uploads to S3 and temporary files.

    Uploads of other programs are among them: nobody can tell whose one is.
    """
    from tfrecord_io.tools.leftovers import clean as find

    found = find(path, **options)
    if as_json:
        print_json(
            [{"path": left.path, "upload": left.upload, "started": left.started, "bytes": left.bytes} for left in found]
        )
        return
    for left in found:
        size = "" if left.bytes is None else f"  {left.bytes:,} bytes"
        upload = "" if left.upload is None else f"  upload {left.upload}"
        click.echo(printable(f"{left.path}{upload}  {left.started:%Y-%m-%d %H:%M:%S}{size}", 1024))
    done = "removed" if options["remove"] else "found, and left; --yes removes them"
    click.echo(f"{len(found):,} {done}" if found else "nothing was left behind")
