"""Results on the terminal, as tables or JSON; rich is imported when the first table is shown.

Tests: tests/apps/cli/test_commands.py.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.apps.cli.process import echo, has_unicode
from tfrecord_io.columns import Column
from tfrecord_io.kit import json_value, printable, short

MAX_COLUMNS = 8  # a table with more columns than this is transposed
RIGHT_ALIGNED = {"nulls", "mean", "length", "distinct", "records", "bytes", "bytes lost", "regions", "problems"}
LEAST_CELL = 12  # characters to which long cells may be folded
UNBOUNDED = 10_000  # width in characters where the output is not a terminal


def print_result(
    as_json: bool,
    value: Any,
    text: object = None,
    table: Callable[[], TextTable] | None = None,
    lines: Sequence[str] = (),
    *,
    err: bool = False,
) -> None:
    """Print `value` as JSON, or else a line of text, a table and more lines; with `err`, JSON and text go to stderr."""
    if as_json:
        echo(json.dumps(json_value(value), indent=2), err=err)
        return
    if text is not None:
        echo(text, err=err)
    if table is not None:
        show(table())
    for line in lines:
        echo(line)


@dataclass(frozen=True, slots=True)
class TextTable:
    """Rows of cells whose control characters are already escaped; empty columns are not shown."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def filled_columns(self) -> list[int]:
        """Numbers of the columns that are not empty."""
        return [i for i, _ in enumerate(self.headings) if not self.rows or any(row[i] for row in self.rows)]

    def least_width(self, i: int) -> int:
        """Characters that a column needs: its heading, and names of columns, are not broken; other cells are folded."""
        longest = max((len(row[i]) for row in self.rows), default=0)
        return max(len(self.headings[i]), longest if self.headings[i] == "column" else min(LEAST_CELL, longest))

    def fits(self, width: int) -> bool:
        """True if the columns fit on a line, each with its least width."""
        return sum(self.least_width(i) + 2 for i in self.filled_columns()) <= width + 2


def show(table: TextTable) -> None:
    """Print a table: in the width of the terminal, or without line breaks where the output is not a terminal."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else UNBOUNDED
    text = _as_table(table, width) if table.fits(width) else _as_blocks(table)
    echo("\n".join(line.rstrip() for line in text.splitlines()))


def _as_blocks(table: TextTable) -> str:
    """Lay out each row as a block of lines, for a terminal too narrow for a table."""
    columns = table.filled_columns()
    margin = max((len(table.headings[i]) for i in columns), default=0) + 2
    blocks = ["\n".join(f"{table.headings[i]:<{margin}}{row[i]}" for i in columns if row[i]) for row in table.rows]
    return "\n\n".join(blocks)


def _as_table(table: TextTable, width: int) -> str:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    styled = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    grid = Table(
        box=box.SIMPLE_HEAD if has_unicode(sys.stdout) else box.ASCII2,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1),
        collapse_padding=True,
    )
    columns = table.filled_columns()
    for i in columns:
        justify: Any = "right" if table.headings[i] in RIGHT_ALIGNED else "left"
        grid.add_column(Text(table.headings[i]), justify=justify, overflow="fold", min_width=table.least_width(i))
    for row in table.rows:
        grid.add_row(*(Text(row[i], style="dim" if row[i] == "null" else "") for i in columns))
    text = io.StringIO()
    console = Console(
        file=text, force_terminal=styled, width=width, highlight=False, emoji=False, markup=False, height=100
    )
    console.print(grid)
    return text.getvalue()


def indexes_table(indexes: Sequence[Any]) -> TextTable:
    """Make a table with a row for each `FileIndex` that `tfrecord_io.build_index` returns."""
    rows = [
        (printable(i.path), f"{i.bytes:,}", f"{i.records:,}", printable(i.index or "none"), "bad" if i.error else "")
        for i in indexes
    ]
    return TextTable(["file", "bytes", "records", "index", ""], rows)


def schema_table(schema: pa.Schema) -> TextTable:
    """Make a table of column names and types."""
    return TextTable(["column", "type"], [(printable(f.name) or '""', Column(f).shown_as(_type(f))) for f in schema])


def record_dicts(table: pa.Table) -> list[dict[str, Any]]:
    """Make a dict of Python values for each record; tensors are nested lists."""
    if not table.num_columns:
        return [{} for _ in range(table.num_rows)]
    columns = [Column(f).python_rows(column) for f, column in zip(table.schema, table.columns, strict=True)]
    return [dict(zip(table.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def records_table(table: pa.Table) -> TextTable:
    """Make a table with a row for each record, or of a wide table with a row for each column."""
    names = [printable(name) or '""' for name in table.column_names]
    columns = []
    for f, column in zip(table.schema, table.columns, strict=True):
        is_tensor = Column(f.type).is_tensor
        shorten = partial(short, dtype=Column(f).dtype_and_shape[0].name) if is_tensor else short
        columns.append(list(map(shorten, Column(f).python_rows(column))))
    if len(names) <= MAX_COLUMNS:
        return TextTable(names, list(zip(*columns, strict=True)))
    rows = [(name, _type(f), *cells) for name, f, cells in zip(names, table.schema, columns, strict=True)]
    return TextTable(["column", "type", *(f"record {i}" for i in range(table.num_rows))], rows)


def _type(field: pa.Field) -> str:
    return printable(Column(field.type, field.metadata).short_name)
