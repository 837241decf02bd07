"""The commands of ``tfr`` about damaged files: ``verify`` and ``salvage``."""

from __future__ import annotations

from typing import Any

import click

from tfrecord_io.cli.commands import (
    compression,
    inspection,
    json_flag,
    record_type,
    storage,
    storage_option,
    tfr,
    with_stdin,
)
from tfrecord_io.cli.exit_codes import INVALID_DATA, report_exit_code, with_option_names
from tfrecord_io.cli.process import echo

__all__ = ["salvage", "tfr", "verify"]  # importing `tfr` from here declares all commands


@inspection(record_type, compression)
@click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Number of files checked at a time.")
def verify(path: str | list[str], as_json: bool, **options: Any) -> None:
    """Check checksums, records, schema, manifest and index.

    Prints a table of the files and a line for each problem. Exit codes: 0 all files are good, 1 something is wrong with
    a file, 2 there is no such file, 3 a file cannot be read.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.verify import verify as verify_files

    context = click.get_current_context()
    report = verify_files(path, progress=True, **options)
    output.print_result(as_json, report.to_dict(), report.title(), lambda: output.verified_table(report))
    if not as_json:
        for line in report.problem_lines():
            echo(with_option_names(line, context.command))
    if not report.ok:
        context.exit(report_exit_code(report.files))


@tfr.command()
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True, callback=with_stdin)
@click.argument("target", metavar="TARGET")
@compression
@click.option("--dry-run", is_flag=True, help="Write nothing: report what can be kept, and what is lost.")
@click.option("--report", metavar="FILE", help="Write the report as JSON to FILE.")
@click.option("--overwrite/--no-overwrite", default=None, help="Replace existing files (the default), or fail.")
@storage_option
@storage("--source-option", "src_storage_options", "the storage of SOURCE")
@storage("--target-option", "dst_storage_options", "the storage of TARGET")
@json_flag
def salvage(sources: tuple[str, ...], target: str, as_json: bool, **options: Any) -> None:
    """Write the intact records of damaged files to new ones.

    What is lost is reported. TARGET is a file for one SOURCE file, or a directory, where files keep their names. Exit
    codes: 0 nothing is lost, 1 something is.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.salvage import salvage as salvage_files

    context = click.get_current_context()
    report = salvage_files(sources[0] if len(sources) == 1 else list(sources), target, progress=True, **options)
    output.print_result(as_json, report.to_dict(), report.title(), lambda: output.salvaged_table(report))
    if not as_json:
        for line in report.loss_lines():
            echo(with_option_names(line, context.command))
    if not report.ok:
        context.exit(INVALID_DATA)
