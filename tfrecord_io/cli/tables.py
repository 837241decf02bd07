"""Results as tables on a terminal; rich is imported when the first one is shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from tfrecord_io.arrow.tensor_values_rest import rows_of
from tfrecord_io.errors import printable
from tfrecord_io.tools.column_summary import type_name
from tfrecord_io.tools.describe import HEADINGS, Description
from tfrecord_io.tools.index_files import FileIndex
from tfrecord_io.words import short

if TYPE_CHECKING:
    from rich.table import Table

WIDE = 8  # a table of more columns than this is shown with its records side by side
NUMBERS = {"nulls", "mean", "length", "distinct", "records", "bytes"}
UNBOUNDED = 10_000  # characters a line may have where no terminal cuts it


def show(table: Table) -> None:
    """Print a table: to a terminal in its width, else in as much as it takes."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False, markup=False, width=None if sys.stdout.isatty() else UNBOUNDED)
    console.print(table)


def text_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of cells that are safe already; columns without content are left out."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), collapse_padding=True)
    kept = [i for i, _ in enumerate(headings) if not rows or any(row[i] for row in rows)]
    for i in kept:
        table.add_column(Text(headings[i]), justify="right" if headings[i] in NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(row[i], style="dim" if row[i] == "null" else "") for i in kept))
    return table


def description_table(description: Description) -> Table:
    """What `describe` found."""
    return text_table(HEADINGS, description.rows())


def indexes_table(found: Sequence[FileIndex]) -> Table:
    """Indexes and the files that they stand beside."""
    rows = [
        (
            printable(each.path),
            f"{each.bytes:,}",
            f"{each.records:,}",
            printable(each.index or "none"),
            "" if each.error is None else "bad",
        )
        for each in found
    ]
    return text_table(["file", "bytes", "records", "index", ""], rows)


def schema_table(schema: pa.Schema) -> Table:
    """Names and types."""
    return text_table(
        ["column", "type"], [(printable(f.name), printable(type_name(f.type, f.metadata))) for f in schema]
    )


def records_table(table: pa.Table) -> Table:
    """Rows as records; those of a wide table side by side, a line a column."""
    names = [printable(name) for name in table.column_names]
    columns: list[list[str]] = [
        [short(value) for value in rows_of(*each)] for each in zip(table.columns, table.schema, strict=True)
    ]
    if len(names) <= WIDE:
        return text_table(names, list(zip(*columns, strict=True)))
    types = [printable(type_name(f.type, f.metadata)) for f in table.schema]
    rows = [(name, kind, *cells) for name, kind, cells in zip(names, types, columns, strict=True)]
    return text_table(["column", "type", *(f"record {i}" for i in range(table.num_rows))], rows)
