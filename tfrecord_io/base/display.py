"""Values and tables as text and HTML, control characters escaped, and the base class of reports that show them.

Messages show no secrets of URLs, and warnings the line of the caller.

In the log, INFO is what has changed in storage: files written, appended, replaced, compacted, removed, copied. DEBUG is
why a read or write took the way that it took: requests made again, indexes, manifests, the engine. Warnings are not
logged. There is at most one message for a file, request or call, and none for a record.
"""

from __future__ import annotations

import logging
import re
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from numbers import Number
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

SHOWN_ITEMS = 4
SHOWN_BYTES = 8
_MOST_FIXED = 1e21  # larger numbers are shown with an exponent
REPR_ROWS = 30  # rows of a table, and lines after it, in a repr
CELL_WIDTH = 120  # characters in a cell
_LINE_WIDTH = 1000  # characters in another line
_SIMILARITY = 0.78  # of difflib: "lable" and "label" have 0.8
_LEAST_PART = 3  # characters of a name that is a part of another
_LISTED = 20  # names
_UNITS = ("kB", "MB", "GB", "TB", "PB")
_MESSAGE_BYTES = 1024
_PACKAGE = __name__.partition(".")[0]
_INSIDE = (_PACKAGE, "contextlib")  # modules whose frames are between a warning and the caller
logger = logging.getLogger(_PACKAGE)


# URLs in a text, or urllib3's part of a URL; not paths of the local disk, where names may have all these signs.
# The patterns are compiled when needed.
_URL = r"(?:(?<![\w./+-])(?!file:|local:)[A-Za-z][A-Za-z0-9+.-]*://|(?<=exceeded with url: )/)[^\s\"<>]+"
_PASSWORD = r"(?<=://)([^/?#:]*:)[^/?#]+(?=@)"
_SECRET = (
    r"(?i)([?&;#](?:[\w.-]*(?:signature|token|secret|passw|credential|access_?key|api_?key)[\w.-]*"
    r"|(?:[\w.-]*[._-])?(?:sig|key|pwd|pass|auth|authorization|code|jwt))=)[^\s&;#'\"]*[^\s&;#'\".:,)\]}]"
)


def hide_secrets(text: str, *, shorten: bool = False) -> str:
    """Hide passwords in URLs, and signatures and tokens in their queries; paths stay as they are.

    If asked, shorten the text to what a message has at most, 1,024 bytes of UTF-8.

    >>> hide_secrets("https://user:x@host/a.tfrecord?v=1&sig=x: not found"), hide_secrets("a?sig=b")
    ('https://user:…@host/a.tfrecord?v=1&sig=…: not found', 'a?sig=b')
    """
    if "@" in text or "?" in text or "#" in text:
        text = re.sub(_URL, lambda url: re.sub(_SECRET, r"\1…", re.sub(_PASSWORD, r"\1…", url[0])), text)
    if not shorten or len(encoded := text.encode("utf-8", "backslashreplace")) <= _MESSAGE_BYTES:
        return text
    return encoded[: _MESSAGE_BYTES - len("…".encode())].decode("utf-8", "ignore") + "…"


class SecretURL(str):
    """A URL with secrets: programs have it as it is, and no message of an OSError, and no ``repr``, shows these."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(hide_secrets(self))


def secret_url(path: str) -> str:
    """The ``filename`` for an OSError: the path, as a `SecretURL` if it is a URL with secrets."""
    return path if hide_secrets(path) == path else SecretURL(path)


def printable(text: object, limit: int | None = 200) -> str:
    """Hide the secrets of URLs, escape control characters and shorten to `limit` characters, for any message.

    None is the limit of a line in a report, where paths are to be whole.

    >>> printable("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    raw = hide_secrets(text.decode("utf-8", "backslashreplace") if isinstance(text, bytes) else str(text))
    limit = _LINE_WIDTH if limit is None else limit
    cut = raw if len(raw) <= limit else raw[:limit] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def _escape_arguments(record: logging.LogRecord) -> bool:
    """Hide the secrets of URLs in the arguments of a log message, and escape them; a filter of the logger.

    Paths may have control characters and bytes that are not UTF-8, also in the text of an error.
    """
    if isinstance(record.args, tuple):
        record.args = tuple(value if isinstance(value, Number) else printable(value, None) for value in record.args)
    return True


logger.addFilter(_escape_arguments)
logger.addHandler(logging.NullHandler())


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
            [*([self.title] if self.title else []), *table, *(_shorten(line, _LINE_WIDTH) for line in self.lines)]
        )

    def html(self) -> str:
        """The summary as HTML, everything escaped."""
        import html

        table = html_table(self.headings, self.rows, self.paths) if self.rows else ""
        lines = (f"<div>{html.escape(_shorten(line, _LINE_WIDTH))}</div>" for line in (self.title, *self.lines) if line)
        title = next(lines, "") if self.title else ""
        return f"<div>{title}{table}{''.join(lines)}</div>"


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
            return did_you_mean(name, [name for name in dir(self) if not name.startswith("_")], lists_names=True)


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
    shown = ", ".join(printable(name) or '""' for name in names[:_LISTED])
    return f"columns {shown}{and_more(len(names) - _LISTED)}" if names else ""


def did_you_mean(
    name: str, names: Iterable[str], shown: Callable[[str], str] = str, *, lists_names: bool = False
) -> str:
    """The question after a name that does not exist; empty if no name is similar.

    Similar are a slip of the keyboard, and the only name that begins with `name` or has it after a slash. `shown`
    is what to write instead of a name. If asked, the first of the names follow in order.

    >>> did_you_mean("lable", ["label", "image"]), did_you_mean("x", ["label"])
    ("did you mean 'label'?", '')
    >>> did_you_mean("lable", ["label", "image"], lists_names=True)
    "did you mean 'label'? valid names: image, label"
    """
    from difflib import get_close_matches

    if lists_names:
        valid = sorted(names)
        listed = ", ".join(candidate or '""' for candidate in valid[:_LISTED])
        return f"{did_you_mean(name, valid, shown)} valid names: {listed or 'none'}".lstrip()
    by_key = {candidate.casefold(): candidate for candidate in names}
    key = name.casefold()
    similar = get_close_matches(key, by_key, 1, _SIMILARITY)
    if not similar and len(key) >= _LEAST_PART:
        longer = [candidate for candidate in by_key if candidate.startswith(key) or candidate.endswith(f"/{key}")]
        similar = longer if len(longer) == 1 else []
    return f"did you mean '{printable(shown(by_key[similar[0]]))}'?" if similar else ""


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
        return _shorten(printable(value, width), width)
    if isinstance(value, list | tuple):
        return _short_list(value[:SHOWN_ITEMS], len(value) if count is None else count, width)
    if isinstance(value, dict):
        return _shorten("{" + ", ".join(f"{printable(k)}: {short(v, width)}" for k, v in value.items()) + "}", width)
    return _shorten(printable(value), width)


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


def _shorten(text: str, width: int) -> str:
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


def warn(text: str, category: type[Warning], text_cli: str | None = None) -> None:
    """Warn at the line of the caller outside this package, at any depth of calls."""
    warning = category(hide_secrets(text, shorten=True))
    if text_cli is not None:
        for_cli(warning, text_cli)
    warnings.warn(warning, stacklevel=_caller()[1])


def caller_line() -> tuple[str, int]:
    """The file and line of the caller outside this package, at any depth of calls."""
    frame, _ = _caller()
    return frame.f_code.co_filename, frame.f_lineno


def _caller() -> tuple[FrameType, int]:
    """The frame of the caller outside this package, and its level above the caller of this function."""
    level = 0
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        frame = frame.f_back
        level += 1
    return frame, level
