"""Commands that check files: ``tfr verify``, ``salvage`` and ``diff``."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import click

from tfrecord_io.apps.cli.command_group import ERROR_CODE, error_line, options_of, tfr
from tfrecord_io.apps.cli.common_options import (
    STDIN,
    inspection,
    modes,
    number,
    options,
    plain_record_type,
    read_from,
    replace_dash,
    sources,
    storage,
    target_path,
)
from tfrecord_io.apps.cli.exit_codes import INVALID_DATA, USAGE_ERROR, report_exit_code


def _input(ctx: click.Context, argument: click.Parameter, path: str) -> str:
    dashes = ["-" for value in ctx.params.values() if value == STDIN]  # of the path before this one
    return replace_dash(ctx, argument, (path, *dashes))[0]


class _Verify(click.Command):
    """Command whose option ``--images`` may stand without a value, before a path."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        options = options_of(args)
        changed = ["--images=headers" if argument == "--images" else argument for argument in options]
        return super().parse_args(ctx, [*changed, *args[len(options) :]])


@inspection(
    click.option(
        "--images",
        type=click.Choice(["headers", "full"]),
        metavar="[=full]",
        help="Check images, too: empty, broken or mislabelled ones, and sizes; with =full, decode their pixels.",
    ),
    click.option(
        "--schema",
        metavar="FILE",
        help="Check the values, too, against a TFX schema (schema.pbtxt): anomalies have the names of TFDV.",
    ),
    plain_record_type,
    "compression",
    "max_decompression_ratio",
    "threads",
    section="Check and repair",
    cls=_Verify,
)
def verify(path: str | list[str], as_json: bool, images: str | None, schema: str | None, **keywords: Any) -> None:
    """Check checksums, records, schema, manifest and index.

    Prints a table of the files and a line for each problem. Exit codes: 0 all files are good, 1 problems were found,
    2 no such file, 3 a file cannot be read.
    """
    from tfrecord_io.apps.cli import output
    from tfrecord_io.kit import ReadOptions
    from tfrecord_io.read import check_files

    source, record_type = read_from(path, keywords), keywords.pop("record_type")
    checked: bool | Literal["full"] = "full" if images == "full" else images is not None
    options = ReadOptions.from_keywords({"progress": True, **keywords})
    report = check_files(source, options, record_type=record_type, images=checked, schema=schema)
    table = partial(output.TextTable, report.HEADINGS, report.rows(report.files))
    output.print_result(
        as_json, report.to_dict(), text=report.title(), table=table, lines=report.problem_lines(error_line)
    )
    if not report.ok:
        click.get_current_context().exit(report_exit_code(report.files))


@tfr.declare("Check and repair")
@sources
@target_path
@options("compression", "max_decompression_ratio")
@click.option(
    "--check-crc/--no-check-crc",
    default=True,
    help="Without: keep records whatever their checksums are, and write valid ones.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing; report what can be kept and what is lost.")
@click.option("--report", metavar="FILE", help="Write the report as JSON to FILE.")
@modes
@options("storage_options", "source_storage", "target_storage", "json")
def salvage(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Write the intact records of damaged files to new files.

    Lost data is reported. TARGET is a file if SOURCE is one file, otherwise a directory, in which files keep their
    names. Exit codes: 0 nothing was lost, 1 something was lost.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    source = read_from(list(sources), keywords, tfrecord_io.salvage, record_type="bytes")
    report = tfrecord_io.salvage(source, target, progress=True, **keywords)
    table = partial(output.TextTable, report.HEADINGS, report.rows())
    output.print_result(as_json, report.to_dict(), text=report.title(), table=table, lines=report.loss_lines())
    if not report.ok:
        click.get_current_context().exit(INVALID_DATA)


@tfr.declare("Show")
@click.argument("a", metavar="A", callback=_input)
@click.argument("b", metavar="B", callback=_input)
@click.option("--any-order", is_flag=True, help="Ignore the order of the records.")
@click.option(
    "--key",
    multiple=True,
    metavar="COLUMN",
    help="Match records by this column, and show which are changed, added or removed; may be repeated.",
)
@number("-n", "limit", default=10, help="Number of differing records to show.")
@options(
    "storage_options",
    storage("--a-option", "a_storage", "the storage of A"),
    storage("--b-option", "b_storage", "the storage of B"),
    "json",
)
def diff(a: str, b: str, as_json: bool, key: tuple[str, ...], **keywords: Any) -> None:
    """Compare columns, record counts and values of two datasets.

    Exit codes: 0 equal, 1 different, 2 usage error, or a file is damaged or cannot be read.
    """
    import tfrecord_io
    from tfrecord_io.apps.cli import output

    context = click.get_current_context()
    context.meta[ERROR_CODE] = USAGE_ERROR
    sides = []
    for path, storage_options in ((a, keywords.pop("a_storage")), (b, keywords.pop("b_storage"))):
        sides.append(read_from(path, {"source_storage": storage_options}))
    report = tfrecord_io.diff(*sides, key=key or None, progress=True, **keywords)
    table = (lambda: output.TextTable(report.headings, report.rows())) if report.values else None
    output.print_result(as_json, report.to_dict(), "\n".join([report.title(), *report.schema_lines()]), table)
    if not report.equal:
        context.exit(INVALID_DATA)
