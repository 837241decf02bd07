"""The commands of ``tfr`` that print records: ``cat`` and ``get``."""

from __future__ import annotations

from typing import Any

import click

from tfrecord_io.cli.command_group import tfr
from tfrecord_io.cli.common_options import (
    columns,
    compression,
    inspection,
    json_flag,
    on_error,
    record_type,
    storage_option,
)
from tfrecord_io.cli.conditions import where
from tfrecord_io.cli.process import echo


@inspection(
    columns,
    record_type,
    compression,
    on_error,
    where,
    click.option("--short", is_flag=True, help="Shorten bytes and long lists, in place of base64 and all values."),
)
def cat(path: str | list[str], as_json: bool, short: bool, **options: Any) -> None:
    """Print all records as JSON lines, with or without --json.

    Bytes are base64.
    """
    import pyarrow as pa

    from tfrecord_io.api import open_reader
    from tfrecord_io.arrow.output.to_python import json_line, record_dicts
    from tfrecord_io.display import SHOWN_ITEMS
    from tfrecord_io.display import short as shortened

    def value(record: dict[str, Any]) -> dict[str, Any]:
        if not short:
            return record
        is_long = {k: isinstance(v, bytes) or (isinstance(v, list) and len(v) > SHOWN_ITEMS) for k, v in record.items()}
        return {name: shortened(item) if is_long[name] else item for name, item in record.items()}

    with open_reader(path, **options) as reader:
        for batch in reader:
            records = record_dicts(pa.Table.from_batches([batch], reader.schema))
            lines = [json_line(value(record)) for record in records]
            if lines:
                echo("\n".join(lines))


@tfr.declare("Show", context_settings={"ignore_unknown_options": True})
@click.argument("path", metavar="PATH")
@click.argument("numbers", metavar="N...", nargs=-1, required=True, type=int)
@columns
@record_type
@storage_option
@json_flag
def get(path: str, numbers: tuple[int, ...], as_json: bool, **options: Any) -> None:
    """Show records by number, from 0; -1 is the last.

    PATH is not compressed. An index (tfr index) saves reading the record headers.
    """
    from tfrecord_io.arrow.output.to_python import record_dicts
    from tfrecord_io.cli import output
    from tfrecord_io.read.random_access import open_random

    with open_random(path, **options) as records:
        try:
            table = records[list(numbers)]
        except IndexError as error:
            raise click.UsageError(str(error)) from None
    output.print_result(as_json, record_dicts(table), table=lambda: output.records_table(table))
