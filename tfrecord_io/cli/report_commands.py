"""The command ``tfr report``, which writes an HTML page."""

from __future__ import annotations

from typing import Any

import click

from tfrecord_io.cli.command_group import tfr
from tfrecord_io.cli.common_options import (
    allow_missing_shards,
    columns,
    compression,
    json_flag,
    on_error,
    record_type,
    storage_option,
)
from tfrecord_io.errors import printable


@tfr.declare("Show")
@click.argument("path", metavar="PATH...", nargs=-1, required=True)
@click.argument("out", metavar="OUT.html")
@click.option("--compare", metavar="OTHER", help="Another dataset, to show both side by side and how they differ.")
@columns
@record_type
@compression
@on_error
@click.option("--sample-records", type=click.IntRange(min=1), metavar="N", help="Records to read; 50000 by default.")
@click.option("--sample-bytes", type=click.IntRange(min=1), metavar="N", help="Bytes to read; 67108864 by default.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the random choice.")
@click.option("--verify", is_flag=True, help="Verify all files completely.")
@click.option("--overwrite/--no-overwrite", default=None, help="Replace OUT (the default), or fail if it exists.")
@allow_missing_shards
@storage_option
@json_flag
def report(path: tuple[str, ...], out: str, as_json: bool, **options: Any) -> None:
    """Write an HTML page about a dataset.

    The page shows statistics and histograms of each feature, images, sounds and the first records. Of large data it
    shows a sample, and says which. --json prints the statistics, too.
    """
    from tfrecord_io.cli import output
    from tfrecord_io.display import byte_size
    from tfrecord_io.reports.dataset_report import report as write_report

    if "-" in (*path, out, options["compare"]):
        raise click.UsageError(
            "a report needs paths of files, which are read several times, not standard input or output"
        )
    given = {name: value for name, value in options.items() if value is not None or name == "compression"}
    made = write_report(path[0] if len(path) == 1 else list(path), out, progress=True, **given)
    size = byte_size(len(made.html.encode()))
    text = f"{printable(out, 1024)}: {size}. {' '.join(each.sampling.text for each in made.statistics)}"
    output.print_result(as_json, made.to_dict() if as_json else None, text)
