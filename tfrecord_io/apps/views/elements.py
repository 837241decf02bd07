"""HTML of values and texts of any content: the only place where they are escaped.

Tests: tests/apps/views/test_media.py.
"""

from __future__ import annotations

import html
import math
from importlib import resources
from typing import Any

from tfrecord_io.kit import printable, short

_LARGE, _SMALL = 1e7, 1e-4  # numbers beyond them have an exponent
_SEPARATED = 10_000


def style() -> str:
    """The style sheet of what is here."""
    return resources.files("tfrecord_io.apps.views").joinpath("style.css").read_text("utf-8")


def text(value: object, limit: int = 200) -> str:
    """Any text as HTML: control characters and marks of direction are shown as escapes, long text is shortened.

    >>> text("<b>\\u202e"), text("x" * 5, limit=3)
    ('&lt;b&gt;\\\\u202e', 'xxx…')
    """
    return html.escape(printable(value, limit))


def value_text(value: Any, width: int = 40) -> str:
    """A value of a record as HTML, in about `width` characters."""
    if isinstance(value, str) and not value:
        return "(empty)"
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return html.escape(number(value) if is_number else short(value, width))


def element(tag: str, content: str = "", **attributes: object) -> str:
    """An element; `content` is HTML already, attributes are escaped, and left out where they are None.

    ``class_`` is the attribute "class"; other underscores become hyphens.

    >>> element("p", "a", class_="b", title='"')
    '<p class="b" title="&quot;">a</p>'
    """
    pairs = [
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return f"<{tag}{''.join(pairs)}>{content}</{tag}>"


def table(headings: list[tuple[str, str]], rows: list[list[str]], *, class_: str | None = None) -> str:
    """A table that scrolls sideways in its own frame; headings are (HTML, class of the column), cells HTML."""
    head = "".join(element("th", heading, class_=kind or None, scope="col") for heading, kind in headings)
    lines = [
        "".join(element("td", cell, class_=kind or None) for cell, (_, kind) in zip(row, headings, strict=True))
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    whole = element("table", f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>", class_=class_)
    return element("div", whole, class_="scroll", tabindex="0")


def number(value: float | None) -> str:
    """A number for people: thousands separated from 10,000 on, so that years are not, and four significant digits.

    >>> number(1234567), number(2007), number(0.1 + 0.2), number(4201.754), number(1.5e-7), number(None)
    ('1,234,567', '2007', '0.3', '4202', '1.5e-07', '–')
    """
    if value is None:
        return "–"
    if isinstance(value, int):
        return _whole(value) if abs(value) < 10**15 else f"{value:.4g}"
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "∞" if value > 0 else "−∞"
    if value and not _SMALL <= abs(value) < _LARGE:
        return _whole(value) if value == int(value) and abs(value) < 1e12 else f"{value:.4g}"
    if value == int(value) or abs(value) >= 1000:
        return _whole(value)
    return f"{value:.4g}"


def _whole(value: float) -> str:
    return f"{value:.0f}" if abs(value) < _SEPARATED else f"{value:,.0f}"


def percent(share: float) -> str:
    """A share in percent; only all is 100 %, and only nothing 0 %.

    >>> percent(1.0), percent(0.9999), percent(0.5), percent(0.00001), percent(0.0)
    ('100 %', '> 99.9 %', '50 %', '< 0.1 %', '0 %')
    """
    if share in (0.0, 1.0):
        return f"{share:.0%}".replace("%", " %")
    if share < 0.001:
        return "< 0.1 %"
    if share > 0.999:
        return "> 99.9 %"
    return f"{100 * share:.3g} %"
