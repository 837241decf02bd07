"""The command of ``tfr`` that copies files as they are: ``copy``."""

from __future__ import annotations

from typing import Any, get_args

import click

from tfrecord_io.cli.command_group import tfr
from tfrecord_io.cli.common_options import SourcesArgument, modes, options, read_from, target, where_option, with_stdin
from tfrecord_io.typing import FileMode


def _files(ctx: click.Context, argument: click.Parameter, paths: tuple[str, ...]) -> tuple[str, ...]:
    if "-" in paths:
        raise click.BadParameter("standard input cannot be copied: pass the path of a file")
    return with_stdin(ctx, argument, paths)


@tfr.declare("Write")
@options(
    click.argument("sources", cls=SourcesArgument, metavar="SOURCE...", nargs=-1, required=True, callback=_files),
    target,
    click.option(
        "--verify",
        type=click.Choice(["records", "bytes"]),
        default="records",
        show_default=True,
        help="Verify the checksums of all records, or only those of the files.",
    ),
    click.option(
        "--update",
        is_flag=True,
        help="Copy files that differ, by checksum, and remove those that SOURCE no longer has.",
    ),
    modes(*get_args(FileMode), default="that is an error"),
    click.option("--all-files", is_flag=True, help="Copy all files of a directory, not only TFRecord files."),
    where_option(
        'Only partition folders (day=1/) that meet a condition, such as "day >= 5" or "day in [1, 2]". With --update, '
        "the other folders of TARGET are kept."
    ),
    click.option("--dry-run", is_flag=True, help="Write nothing; print what would be copied and removed."),
    click.option("--limit-rate", metavar="RATE", help="Maximum bytes per second, such as 100MB."),
    click.option("--threads", type=click.IntRange(min=1), metavar="N", help="Number of files copied at a time."),
    "storage_options",
    "source_storage",
    "target_storage",
    "json",
)
def copy(sources: tuple[str, ...], target: str, as_json: bool, **keywords: Any) -> None:
    """Copy files or whole datasets, and check every record on the way.

    Files are copied unchanged. A dataset appears in one step, as one version; the same command continues a copy that
    was killed. Within one store, such as S3, the store copies the files.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.copy import copy as copy_files

    source = read_from(list(sources), keywords, record_type="bytes")
    report = copy_files(source, target, progress=True, **keywords)
    names = {"copied": list(report.copied), "removed": list(report.removed)} if report.dry_run else {}
    output.print_result(as_json, {**report.to_dict(), **names}, report.title(), lines=report.lines())
