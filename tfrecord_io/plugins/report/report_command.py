"""``tfr report``."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from tfrecord_io.apps.cli.command_group import tfr
from tfrecord_io.apps.cli.common_options import modes, number, options, read_from
from tfrecord_io.apps.cli.exit_codes import INVALID_DATA
from tfrecord_io.kit import printable


@tfr.declare("Show")
@click.argument("paths", metavar="PATH... OUT.html", nargs=-1, required=True)
@click.option("--compare", metavar="OTHER", help="Show another dataset next to this one, and how they differ.")
@click.option(
    "--fail-over",
    metavar="DISTANCE",
    type=click.FloatRange(0, 1),
    help="With --compare: exit code 1 if a feature differs by more than this, from 0 to 1, or in its type.",
)
@options("columns", "schema", "schema_overrides", "record_type", "compression", "on_error")
@number("--sample-records", least=1, help="Number of records to read; by default, 50000.")
@number("--sample-bytes", least=1, help="Number of bytes to read; by default, 67108864.")
@number("--seed", default=0, help="Seed of the random sample.")
@click.option("--verify", is_flag=True, help="Verify all files completely.")
@partial(modes, default="a page is replaced", target="OUT.html")
@options("split", "allow_missing_shards", "storage_options", "json")
def report(paths: tuple[str, ...], as_json: bool, fail_over: float | None, **keywords: Any) -> None:
    """Write an HTML page about a dataset.

    The page shows statistics and histograms of each feature, images, sounds and the first records. Of large data it
    shows a sample, and says which. --json also prints the statistics; without OUT.html it only prints them. --fail-over
    needs no page, and names the features that differ by more than its limit.
    """
    from tfrecord_io.apps.cli import output
    from tfrecord_io.plugins.report.dataset_report import is_page
    from tfrecord_io.plugins.report.dataset_report import report as write_report

    if fail_over is not None and keywords["compare"] is None:
        raise click.UsageError("--fail-over is for --compare OTHER, which is missing")
    needs_page = not as_json and fail_over is None
    out = paths[-1] if needs_page or is_page(paths[-1]) else None
    path = paths if out is None else paths[:-1]
    if not path:
        raise click.UsageError("OUT.html is missing: name the page to write, or pass --json")
    if "-" in (*paths, keywords["compare"]):
        raise click.UsageError(
            "a report needs paths of files, which are read several times, not standard input or output"
        )
    options = {name: value for name, value in keywords.items() if value is not None or name == "compression"}
    sides = {"source": path, "compare": options.pop("compare", None)}
    of_all = {side: dict(options) for side in sides}
    source, compare = (
        side_path and read_from(side_path, of_all[side], write_report) for side, side_path in sides.items()
    )
    written = write_report(source, out, compare=compare, progress=True, **of_all["source"])
    over = [drift for drift in written.drift if fail_over is not None and drift.exceeds(fail_over)]
    if as_json:
        failed = {} if fail_over is None else {"over": [drift.name for drift in over]}
        output.print_result(as_json, {**written.to_dict(), **failed})
    elif out is not None:
        _print_page(written, out)
    if fail_over is not None and not as_json:
        lines = [f"{drift.text}, over {fail_over:g}" for drift in over]
        output.print_result(as_json, None, lines=lines or [f"no feature differs by more than {fail_over:g}"])
    if over:
        click.get_current_context().exit(INVALID_DATA)


def _print_page(written: Any, out: str) -> None:
    """Print the path and the content of the page."""
    from tfrecord_io.apps.cli import output
    from tfrecord_io.kit import byte_size

    size = byte_size(len(written.html.encode()))
    text = f"{printable(out, 1024)}: {size}. {' '.join(statistics.sampling.text for statistics in written.statistics)}"
    output.print_result(as_json=False, value=None, text=text)
