"""Values, numbers, sizes and names as text for people, control characters escaped.

Tests: tests/base/messages/test_display.py and tests/laws/test_secrets_of_urls.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from tfrecord_io.base.messages.url_secrets import hide_secrets

SHOWN_ITEMS = 4
SHOWN_BYTES = 8
_MOST_FIXED = 1e21  # larger numbers are shown with an exponent
LINE_WIDTH = 1000  # characters in a line of a report
LISTED = 20  # names
_UNITS = ("kB", "MB", "GB", "TB", "PB")


def printable(text: object, limit: int | None = 200) -> str:
    """Hide the secrets of URLs, escape control characters and shorten to `limit` characters, for any message.

    None is the limit of a line in a report, where paths are to be whole.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    raw = hide_secrets(text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text))
    limit = LINE_WIDTH if limit is None else limit
    cut = raw if len(raw) <= limit else raw[:limit] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


class LateText:
    """The message of an error, made when it is shown: `hasattr` asks many objects, and drops the error.

    >>> str(AttributeError(LateText(lambda: "no such name")))
    'no such name'
    """

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def __str__(self) -> str:
        return self._text()

    def __repr__(self) -> str:
        return repr(str(self))

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)


def counted(count: int, noun: str) -> str:
    """A number and its noun.

    >>> counted(1, "file"), counted(1000, "file")
    ('1 file', '1,000 files')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def and_more(count: int, noun: str = "") -> str:
    """The end of a list of which `count` items are not shown; empty if there are none.

    >>> and_more(2), and_more(1000, "file"), and_more(0)
    (' and 2 more', ' and 1,000 more files', '')
    """
    if count <= 0:
        return ""
    return f" and {counted(count, f'more {noun}')}" if noun else f" and {count:,} more"


def column_list(names: Sequence[str]) -> str:
    """The names of columns in the line about a file, the first ones of many; empty if there are none.

    >>> column_list(["id", "label"]), column_list([])
    ('columns id, label', '')
    """
    shown = ", ".join(printable(name) or '""' for name in names[:LISTED])
    return f"columns {shown}{and_more(len(names) - LISTED)}" if names else ""


def byte_size(size: int) -> str:
    """A size in bytes with two digits or more.

    >>> byte_size(1), byte_size(999), byte_size(1_234_567_890)
    ('1 byte', '999 bytes', '1.2 GB')
    """
    if size < 1000:
        return counted(size, "byte")
    exponent = min((len(f"{size}") - 1) // 3, len(_UNITS))
    value = size / 1000**exponent
    if value >= 999.5 and exponent < len(_UNITS):  # rounded to the next unit
        value, exponent = value / 1000, exponent + 1
    return f"{value:.1f} {_UNITS[exponent - 1]}" if value < 9.95 else f"{value:,.0f} {_UNITS[exponent - 1]}"


def short(value: Any, width: int = 32, *, dtype: str | None = None, count: int | None = None) -> str:
    """Show a value in about `width` characters, control characters escaped.

    With a `dtype`, an array or nested lists are a tensor: the dtype, the shape and the first values. With a `count`, a
    list has the first of so many values.

    >>> short(None), short(0.1 + 0.2), short([1, 2, 3, 4, 5]), short(b"\\xff\\xd8" * 50)
    ('null', '0.3', '5 values [1, 2, 3, 4, …]', '100 bytes ffd8ffd8ffd8ffd8…')
    >>> short([[1, 2, 3], [4, 5, 6]], dtype="uint8"), short([1, 2], count=1000)
    ('uint8[2, 3] 1, 2, 3, 4, …', '1,000 values [1, 2, …]')
    """
    if value is None:
        return "null"
    if dtype is not None:
        return _short_tensor(value, dtype)
    if isinstance(value, bool | int):
        return str(value)
    if isinstance(value, float):  # six digits, but all digits before the point: 1700000000, not 1.7e+09
        text = f"{value:.6g}"
        return f"{value:.0f}" if "e+" in text and abs(value) < _MOST_FIXED else text
    if isinstance(value, bytes):
        if len(value) <= width and value.isascii() and value.decode().isprintable():
            return repr(value)
        more = "…" if len(value) > SHOWN_BYTES else ""
        return f"{counted(len(value), 'byte')} {value[:SHOWN_BYTES].hex()}{more}"
    if isinstance(value, str):
        return shorten(printable(value, width), width)
    if isinstance(value, list | tuple):
        return _short_list(value[:SHOWN_ITEMS], len(value) if count is None else count, width)
    if isinstance(value, dict):
        return shorten("{" + ", ".join(f"{printable(k)}: {short(v, width)}" for k, v in value.items()) + "}", width)
    return shorten(printable(value), width)


def _short_list(first: Sequence[Any], count: int, width: int = 32) -> str:
    """The first `SHOWN_ITEMS` values, as far as they fit, and the number of all."""
    shown: list[str] = []
    for item in first:
        text = short(item, width // 2)
        if shown and sum(map(len, shown)) + len(text) > width:
            break
        shown.append(text)
    if len(shown) < count:
        return f"{count:,} values [{', '.join(shown)}, …]"
    return f"[{', '.join(shown)}]"


def _short_tensor(value: Any, dtype: str) -> str:
    if hasattr(value, "shape"):
        shape, first = list(value.shape), value.ravel()[: SHOWN_ITEMS + 1].tolist()
    else:
        shape, inner = [], value
        while isinstance(inner, list):
            shape.append(len(inner))
            inner = inner[0] if inner else None
        first = list(islice(_scalars(value), SHOWN_ITEMS + 1))
    shown = [*map(short, first[:SHOWN_ITEMS]), *(["…"] if len(first) > SHOWN_ITEMS else [])]
    return f"{dtype}{shape} {', '.join(shown)}".rstrip()


def _scalars(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _scalars(item)
    else:
        yield value


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


E = TypeVar("E", bound=BaseException)


def for_cli(error: E, message: str) -> E:
    """Give an error or a warning of Python the message that the command ``tfr`` shows instead of its own.

    >>> error = for_cli(ValueError("shards=0: expected at least 1"), "--shards 0: expected at least 1")
    >>> error.message_cli
    '--shards 0: expected at least 1'
    """
    error.message_cli = message  # type: ignore[attr-defined]
    return error
