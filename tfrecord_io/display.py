"""Values and tables as plain text, control characters escaped, for the ``str()`` of reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tfrecord_io.errors import printable

SHOWN_ITEMS = 4
SHOWN_BYTES = 8
_MOST_FIXED = 1e21  # larger numbers are shown with an exponent


def plain_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out rows under headings; empty columns are omitted.

    >>> print(plain_table(["name", "n", "note"], [["a", "1", ""], ["bb", "20", ""]]))
    name  n
    a     1
    bb    20
    """
    kept = [i for i, _ in enumerate(headings) if not rows or any(row[i] for row in rows)]
    lines = [[str(cells[i]) for i in kept] for cells in [headings, *rows]]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def short(value: Any, width: int = 32) -> str:
    """Show a value in about `width` characters, control characters escaped.

    >>> short(None), short(0.1 + 0.2), short([1, 2, 3, 4, 5]), short(b"\\xff\\xd8" * 50)
    ('null', '0.3', '5 values [1, 2, 3, 4, …]', '100 bytes ffd8ffd8ffd8ffd8…')
    """
    if value is None:
        return "null"
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):
        return _short_float(value)
    if isinstance(value, bytes):
        return _short_bytes(value, width)
    if isinstance(value, str):
        return _shorten(printable(value, width), width)
    if isinstance(value, list | tuple):
        return _short_list(value, width)
    if isinstance(value, dict):
        return _shorten("{" + ", ".join(f"{printable(k)}: {short(v, width)}" for k, v in value.items()) + "}", width)
    return _shorten(printable(value), width)


def ranges(low: Any, high: Any) -> str:
    """Show an interval; nothing if there is none.

    >>> ranges(1, 3), ranges(2, 2), ranges(None, None)
    ('1 … 3', '2', '')
    """
    if low is None:
        return ""
    return short(low) if low == high else f"{short(low)} … {short(high)}"


def shape_ranges(least: tuple[int, ...] | None, most: tuple[int, ...] | None) -> str:
    """Show the range of sizes of each axis.

    >>> shape_ranges((1, 3), (2, 3))
    '[1 … 2, 3]'
    """
    return "[" + ", ".join(ranges(low, high) for low, high in zip(least or (), most or (), strict=True)) + "]"


def error_dict(error: Exception | None) -> dict[str, str] | None:
    """Class and message of an error, for JSON."""
    return None if error is None else {"class": type(error).__name__, "message": str(error)}


def _short_float(value: float) -> str:
    """Six digits, but all digits before the point: 1700000000, not 1.7e+09."""
    text = f"{value:.6g}"
    return f"{value:.0f}" if "e+" in text and abs(value) < _MOST_FIXED else text


def _short_bytes(value: bytes, width: int) -> str:
    """As text if it is short and printable, else its length and first bytes."""
    if len(value) <= width and value.isascii() and value.decode().isprintable():
        return repr(value)
    more = "…" if len(value) > SHOWN_BYTES else ""
    return f"{len(value):,} bytes {value[:SHOWN_BYTES].hex()}{more}"


def _short_list(value: list[Any] | tuple[Any, ...], width: int) -> str:
    """The first values that fit, and the number of all."""
    shown: list[str] = []
    for item in value[:SHOWN_ITEMS]:
        text = short(item, width // 2)
        if shown and sum(map(len, shown)) + len(text) > width:
            break
        shown.append(text)
    if len(shown) < len(value):
        return f"{len(value):,} values [{', '.join(shown)}, …]"
    return f"[{', '.join(shown)}]"


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
