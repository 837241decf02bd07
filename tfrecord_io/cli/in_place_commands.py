"""The commands of ``tfr`` that change a dataset where it is."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from tfrecord_io.cli.command_group import tfr
from tfrecord_io.cli.common_options import EXAMPLES, options, read_from, type_option, where_option
from tfrecord_io.display import counted


@tfr.declare("Write")
@options(
    click.argument("path", metavar="PATH"),
    where_option(f"Remove rows that meet a condition, such as {EXAMPLES}"),
    click.option("--dry-run", is_flag=True, help="Change nothing; report what would be removed."),
    type_option("in the condition", "user=string"),
    "storage_options",
    "json",
)
def delete(path: str, filters: Any, as_json: bool, **keywords: Any) -> None:
    """Remove the rows that meet all conditions of --where.

    PATH is a dataset with a manifest, one of its folders, or a single file. Shards with such rows are dropped or
    rewritten in one step; other shards are left alone. Rows where a condition is null are kept.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.delete import delete as delete_rows

    if filters is None:
        raise click.UsageError("--where is required: it selects the rows to remove")
    source = read_from(path, keywords, delete_rows)
    report = delete_rows(source, filters=filters, progress=True, **keywords)
    output.print_result(as_json, asdict(report), report._summary().text())


@tfr.declare("Write")
@options(click.argument("path", metavar="PATH"), "storage_options", "json")
def adopt(path: str, as_json: bool, **keywords: Any) -> None:
    """Write a manifest for files written by another tool.

    PATH is a directory, with or without partition folders (day=1/). The files are read, but not changed. Afterwards,
    rows can be appended, deleted and replaced.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.tools.adopt import adopt as adopt_files

    report = adopt_files(path, progress=True, **keywords)
    value = {name: getattr(report, name) for name in ("path", "records", "bytes", "columns")}
    line = report._line(counted(report.bytes, "byte"))
    output.print_result(as_json, {**value, "files": len(report.files)}, line)
