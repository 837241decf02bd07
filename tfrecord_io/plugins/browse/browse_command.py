"""``tfr browse``.

Tests: tests/plugins/browse/test_browse_server.py.
"""

from __future__ import annotations

from typing import Any

import click

from tfrecord_io.apps.cli.command_group import tfr
from tfrecord_io.apps.cli.common_options import options, paths, type_option


@tfr.declare("Show")
@paths
@click.option("--compare", metavar="OTHER", help="Show the values of another dataset where they differ.")
@click.option("--key", metavar="NAME", help="With --compare: the column that names rows; by default, their number.")
@click.option("--no-open", is_flag=True, help="Do not open the browser.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve at; 0.0.0.0 lets others in.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to serve at; by default, any.")
@options("columns", "record_type", "compression")
@type_option("of the files", "image_raw=image(uint8,(height,width,3))")
@options("split", "allow_missing_shards", "storage_options", "json")
def browse(
    path: Any, compare: str | None, key: str | None, no_open: bool, host: str, port: int, as_json: bool, **keywords: Any
) -> None:
    """Look at records in a browser: rows, images, filters, damage.

    The server ends with Ctrl-C, with its terminal, or when the page that it opened is closed. Only this machine can
    reach it, and only by the address that it prints.
    """
    import webbrowser

    from tfrecord_io.apps.cli import output
    from tfrecord_io.plugins.browse.browse_server import has_browser, make_server

    if key is not None and compare is None:
        raise click.UsageError("--key is for --compare, which is missing")
    stated = {name: value for name, value in keywords.items() if value is not None or name == "compression"}
    server = make_server(path, stated, compare, key=key, host=host, port=port)
    output.print_result(as_json, {"url": server.url}, server.url)
    opens = not no_open and has_browser()
    if opens:
        webbrowser.open(server.url)
    server.run(ends_with_page=opens)
