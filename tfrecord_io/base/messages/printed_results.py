"""The base class of results that print as a line and a table, in terminals and notebooks.

Tests: tests/base/messages/test_display.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from tfrecord_io.base.messages.display import LINE_WIDTH, LateText, counted, shorten

REPR_ROWS = 30  # rows of a table, and lines after it, in a repr
CELL_WIDTH = 120  # characters in a cell


class Summary(NamedTuple):
    """Content of a report: a line, a table, and further lines. Control characters in cells are already escaped.

    Cells below the headings `paths` are not cut at `CELL_WIDTH`: a path without its middle cannot be pasted.
    """

    title: str  # the line
    headings: Sequence[str] = ()  # of the table
    rows: Sequence[Sequence[str]] = ()  # of the table
    lines: Sequence[str] = ()  # below the table
    paths: Sequence[str] = ()

    def _head(self, count: int) -> Summary:
        """The first rows and lines, and the number of the others."""
        rows, lines = self.rows[:count], list(self.lines[:count])
        if len(self.rows) > count:
            lines = [f"… and {counted(len(self.rows) - count, 'more row')}", *lines]
        if len(self.lines) > count:
            lines.append(f"… and {len(self.lines) - count:,} more")
        return self._replace(rows=rows, lines=lines)

    def text(self) -> str:
        """The whole content as text."""
        table = [plain_table(self.headings, self.rows, self.paths)] if self.rows else []
        return "\n".join(
            [*([self.title] if self.title else []), *table, *(shorten(line, LINE_WIDTH) for line in self.lines)]
        )

    def html(self) -> str:
        """The summary as HTML, everything escaped."""
        import html

        table = html_table(self.headings, self.rows, self.paths) if self.rows else ""
        lines = (f"<div>{html.escape(shorten(line, LINE_WIDTH))}</div>" for line in (self.title, *self.lines) if line)
        title = next(lines, "") if self.title else ""
        return f"<div>{title}{table}{''.join(lines)}</div>"


class Report(ABC):
    """Base of results that print as a line and a table, and show the same table in notebooks.

    ``str()`` has all rows; ``repr()`` and HTML have the first `REPR_ROWS`.
    """

    __slots__ = ("__weakref__",)

    @abstractmethod
    def _summary(self) -> Summary:
        """Make the summary to show."""

    def __str__(self) -> str:
        return self._summary().text()

    def __repr__(self) -> str:
        return self._summary()._head(REPR_ROWS).text()

    def _repr_html_(self) -> str:
        return self._summary()._head(REPR_ROWS).html()

    if not TYPE_CHECKING:  # where every name would be an attribute

        def __getattr__(self, name: str) -> NoReturn:
            def text() -> str:
                advice = "" if name.startswith("_") else f"; {self._advice(name)}"
                return f"{type(self).__name__!r} object has no attribute {name!r}{advice}"

            # of no object: a traceback would add a question about it
            raise AttributeError(LateText(text), name=name, obj=None)

        def __getitem__(self, key: object) -> NoReturn:
            raise TypeError(f"{type(self).__name__!r} object is not subscriptable; {self._advice('')}")

        def _advice(self, name: str) -> str:
            from tfrecord_io.base.messages.similar_names import did_you_mean  # for mistakes only

            return did_you_mean(name, [name for name in dir(self) if not name.startswith("_")], lists_names=True)


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]], paths: Sequence[str] = ()) -> str:
    """Rows under headings as an HTML table; empty columns are omitted, and long cells but those of `paths` shortened.

    >>> html_table(["name", "note"], [["<a>", ""]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;a&gt;</td></tr></tbody></table>'
    """
    import html

    head, *body = _cells(headings, rows, paths)
    lines = ["".join(f"<td>{html.escape(cell)}</td>" for cell in line) for line in body]
    heads = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{table}</tbody></table>"


def _cells(headings: Sequence[str], rows: Sequence[Sequence[str]], paths: Sequence[str]) -> list[list[str]]:
    """The headings and the rows without empty columns, each cell of bounded width but those below `paths`."""
    kept = [i for i, _ in enumerate(headings) if not rows or any(row[i] for row in rows)]
    whole = {i for i in kept if headings[i] in paths}
    return [
        [str(cells[i]) if i in whole else _shorten_middle(str(cells[i])) for i in kept] for cells in [headings, *rows]
    ]


def _shorten_middle(text: str) -> str:
    """Keep both ends: the end of a path is its most specific part."""
    half = (CELL_WIDTH - 1) // 2
    return text if len(text) <= CELL_WIDTH else f"{text[: CELL_WIDTH - 1 - half]}…{text[-half:]}"


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]], paths: Sequence[str] = ()) -> str:
    """Lay out rows under headings; empty columns are omitted, and long cells but those of `paths` are shortened.

    >>> print(plain_table(["name", "n", "note"], [["a", "1", ""], ["bb", "20", ""]]))
    name  n
    a     1
    bb    20
    """
    lines = _cells(headings, rows, paths)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
