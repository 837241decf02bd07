"""The commands; each only calls the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tfrecord_io.cli.guard import BAD_DATA, GuardedGroup

F = TypeVar("F", bound=Callable[..., Any])


@click.group(cls=GuardedGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tfrecord_io", prog_name="tfr")
def tfr() -> None:
    """Look into TFRecord files.

    PATH is a file, a URL, a glob in quotes, a directory or a shard spec such as train@8; several are read one after the other.

    Exit codes: 0 all is well, 1 the data is bad, 2 the command is used in a wrong way.
    """


def inputs(function: F) -> F:
    """The arguments that every command has."""
    options = [
        click.argument("paths", metavar="PATH...", nargs=-1, required=True),
        click.option("--compression", default="infer", show_default=True, help="infer, none, gzip or zlib"),
        click.option("--json", "as_json", is_flag=True, help="print JSON, for programs"),
    ]
    for option in reversed(options):
        function = option(function)
    return function


record_type = click.option(
    "--record-type", type=click.Choice(["example", "sequence_example", "bytes"]), help="what a record is; found out if not given"
)
columns = click.option("-c", "--columns", multiple=True, metavar="NAME", help="a name, a glob, or !NAME to leave out; may be repeated")


def source(paths: tuple[str, ...]) -> Any:
    """One path as it is, with all the forms a path may have; several as a list."""
    return paths[0] if len(paths) == 1 else list(paths)


def print_json(value: Any) -> None:
    from tfrecord_io.cli.tables import plain_values

    click.echo(json.dumps(plain_values(value), indent=2))


@tfr.command()
@inputs
@record_type
@columns
@click.option("-n", "count", type=click.IntRange(min=0), default=5, show_default=True, help="how many records")
def head(paths: tuple[str, ...], compression: str, as_json: bool, record_type: str | None, columns: tuple[str, ...], count: int) -> None:
    """Show the first records."""
    from tfrecord_io.reader import read_table

    table = read_table(source(paths), compression=compression, record_type=record_type, columns=list(columns) or None, limit=count)
    if as_json:
        print_json(table.to_pylist())
    else:
        from tfrecord_io.cli import tables

        tables.show(tables.records_table(table))


@tfr.command()
@inputs
@record_type
def schema(paths: tuple[str, ...], compression: str, as_json: bool, record_type: str | None) -> None:
    """Show the columns and their types."""
    from tfrecord_io.cli import tables
    from tfrecord_io.reader import open_reader
    from tfrecord_io.tools.summary import type_name

    with open_reader(source(paths), compression=compression, record_type=record_type) as reader:
        found = reader.schema
    if as_json:
        print_json([{"name": field.name, "type": type_name(field.type)} for field in found])
    else:
        tables.show(tables.schema_table(found))


@tfr.command()
@inputs
def count(paths: tuple[str, ...], compression: str, as_json: bool) -> None:
    """Count the records."""
    from tfrecord_io.tools.count import count_records

    records = count_records(source(paths), compression=compression)
    print_json({"records": records}) if as_json else click.echo(records)


@tfr.command()
@inputs
@record_type
@click.pass_context
def verify(ctx: click.Context, paths: tuple[str, ...], compression: str, as_json: bool, record_type: str | None) -> None:
    """Check every checksum, and that every record parses."""
    from tfrecord_io.tools.verify import verify as check

    report = check(source(paths), compression=compression, record_type=record_type)
    print_json(report.to_dict()) if as_json else click.echo(report)
    if not report.ok:
        ctx.exit(BAD_DATA)


@tfr.command()
@inputs
@record_type
@columns
def describe(paths: tuple[str, ...], compression: str, as_json: bool, record_type: str | None, columns: tuple[str, ...]) -> None:
    """Show types, missing values, ranges and lengths of all columns."""
    from tfrecord_io.tools.describe import describe as look

    description = look(source(paths), compression=compression, record_type=record_type, columns=list(columns) or None)
    if as_json:
        print_json(description.to_dict())
    else:
        from tfrecord_io.cli import tables

        click.echo(f"{description.records:,} records")
        tables.show(tables.description_table(description))
