"""A table in plain text, for ``str()`` of reports."""

from __future__ import annotations

from collections.abc import Sequence


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under headings; columns without any content are left out.

    >>> print(plain_table(["name", "n", "note"], [["a", "1", ""], ["bb", "20", ""]]))
    name  n
    a     1
    bb    20
    """
    kept = [i for i, _ in enumerate(headings) if any(row[i] for row in rows) or not rows]
    lines = [[str(cells[i]) for i in kept] for cells in [headings, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
