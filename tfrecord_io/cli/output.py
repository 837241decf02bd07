"""Results on the terminal, as tables or JSON; rich is imported when the first table is shown."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa

from tfrecord_io.arrow.tensor_values import rows_of
from tfrecord_io.display import short
from tfrecord_io.errors import printable
from tfrecord_io.schema.type_names import short_type_name
from tfrecord_io.tools.column_summary import HEADINGS
from tfrecord_io.tools.describe import Description
from tfrecord_io.tools.index_files import FileIndex

if TYPE_CHECKING:
    from rich.table import Table

MAX_COLUMNS = 8  # a table with more columns than this is transposed
RIGHT_ALIGNED = {"nulls", "mean", "length", "distinct", "records", "bytes"}
UNBOUNDED = 10_000  # width in characters where the output is not a terminal


def print_result(
    as_json: bool, value: Any, text: object = None, table: Callable[[], Table] | None = None, *, err: bool = False
) -> None:
    """Print `value` as JSON, or else a line of text and a table, if given; with `err`, JSON and text go to stderr."""
    if as_json:
        click.echo(json.dumps(json_value(value), indent=2), err=err)
        return
    if text is not None:
        click.echo(text, err=err)
    if table is not None:
        show(table())


def json_value(value: Any) -> Any:
    """Convert a value to what JSON supports: bytes to base64, NaN and infinities to text.

    >>> json_value([b"\\xff", float("nan"), 1])
    [{'base64': '/w=='}, 'NaN', 1]
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(k): json_value(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(v) for v in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def record_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a table as dicts; tensors are nested lists."""
    if not table.num_columns:
        return list(table.to_pylist())
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*_columns(table), strict=True)]


def show(table: Table) -> None:
    """Print a table: in the width of the terminal, or without line breaks where the output is not a terminal."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, markup=False, width=None if sys.stdout.isatty() else UNBOUNDED)
    console.print(table)


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of cells whose control characters are already escaped; empty columns are omitted."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    kept = [i for i, _ in enumerate(headings) if not rows or any(row[i] for row in rows)]
    for i in kept:
        justify: Any = "right" if headings[i] in RIGHT_ALIGNED else "left"
        table.add_column(Text(headings[i]), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[i], style="dim" if row[i] == "null" else "") for i in kept))
    return table


def description_table(description: Description) -> Table:
    """A row for each column that `describe` reports."""
    return text_table(HEADINGS, description.rows())


def indexes_table(indexes: Sequence[FileIndex]) -> Table:
    """A row for each file and its index."""
    rows = [
        (printable(i.path), f"{i.bytes:,}", f"{i.records:,}", printable(i.index or "none"), "bad" if i.error else "")
        for i in indexes
    ]
    return text_table(["file", "bytes", "records", "index", ""], rows)


def schema_table(schema: pa.Schema) -> Table:
    """Column names and types."""
    return text_table(["column", "type"], [(printable(f.name), _type(f)) for f in schema])


def records_table(table: pa.Table) -> Table:
    """A row for each record, or, for a wide table, a row for each column and a column for each record."""
    names = [printable(name) for name in table.column_names]
    columns = [list(map(short, values)) for values in _columns(table)]
    if len(names) <= MAX_COLUMNS:
        return text_table(names, list(zip(*columns, strict=True)))
    rows = [(name, _type(f), *cells) for name, f, cells in zip(names, table.schema, columns, strict=True)]
    return text_table(["column", "type", *(f"record {i}" for i in range(table.num_rows))], rows)


def _columns(table: pa.Table) -> list[list[Any]]:
    return [rows_of(column, field) for column, field in zip(table.columns, table.schema, strict=True)]


def _type(field: pa.Field) -> str:
    return printable(short_type_name(field.type, field.metadata))
