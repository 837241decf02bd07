"""A value of a record as HTML: small in a table, large on the page of a record."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tfrecord_io.apps.views.drawings import figure, heat_map, line, waveform
from tfrecord_io.apps.views.elements import element, number, text, value_text
from tfrecord_io.apps.views.media import MediaSample, Row, audio_mime, image_mime, media_of
from tfrecord_io.columns import Column
from tfrecord_io.kit import byte_size, counted, json_value, printable, short

_THUMBNAIL, _LARGE = 144, 640  # pixels of the longer side
_WIDTH, _LONG = 140, 20_000  # characters of a text in a table, and on the page of a record
_ITEMS, _MOST_ITEMS = 8, 500
_STRIP, _LONG_STRIP = 6, 120  # images of a list
_FEW = 5  # numbers, which are read as quickly as a line
_HEX = 512  # bytes
_JSON = re.compile(r"\s*[\[{]")
_VIDEO = {b"ftyp": "video/mp4", b"\x1a\x45\xdf\xa3": "video/webm"}
_BESIDE = re.compile(r"(?:^|/)(?:object|objects)/|(?:^|/)(?:height|width|label|class|caption|filename|text)$")
Url = Callable[[str], str]  # of the whole value of a column

NULL = element("span", "null", class_="null")
_NUMBER = re.compile(r"u?int\d+|float|double|halffloat|bool")


@dataclass(frozen=True, slots=True)
class LargeValue:
    """A value that is too large for a page: its first bytes, and how many it has."""

    head: bytes
    size: int


def value_of(column: pa.Array, at: int, field: pa.Field) -> Any:
    """The value of a row, as `value_cell` takes it.

    Text, bytes and lists of them need no import of pandas, which takes longer than a screen.
    """
    is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if Column(column.type).is_text_or_bytes:
        return column[at].as_py()
    items = column[at].values if is_list and column[at].is_valid else None
    if items is not None and Column(items.type).is_text_or_bytes:
        return np.fromiter(items.to_pylist(), object, len(items))
    is_number = items is not None and (pa.types.is_integer(items.type) or pa.types.is_floating(items.type))
    if items is not None and is_number and not items.null_count:
        return np.from_dlpack(items).copy()
    return Column(field).cell(column, at)


def cell_forms(schema: pa.Schema, rows: Mapping[str, Row | None]) -> dict[str, list[Any]]:
    """The types of columns as HTML and the kinds of their cells: each pair once, and the number of each column's pair.

    They are `forms` and `form_of`, for JSON that is short for 10^5 columns. A kind is "image", "audio", "number" or
    "text": how wide and high cells are. `rows` has, for columns that may be images, a row with a value.
    """
    forms: dict[tuple[str, str], int] = {}
    by_type: dict[str, int] = {}  # of columns about which their type says all
    numbers = []
    for field in schema:
        type_ = None if field.metadata or field.name in rows else str(field.type)
        number = None if type_ is None else by_type.get(type_)
        if number is None:
            form = text(Column(field).short_name, 80), _cell_kind(rows.get(field.name), field)
            number = forms.setdefault(form, len(forms))
            if type_ is not None:
                by_type[type_] = number
        numbers.append(number)
    return {"forms": [{"type": type_, "kind": kind} for type_, kind in forms], "form_of": numbers}


def _cell_kind(row: Row | None, field: pa.Field) -> str:
    value = None if row is None or not may_be_image(field) else row.get(field.name)
    if getattr(value, "ndim", 0) > 1 or (isinstance(value, bytes) and value_mime(value).startswith("video/")):
        return "image"
    if row is not None and value is not None and (shown := media_of(row, field, {}, 16)):
        return shown[0]
    return "number" if _NUMBER.fullmatch(str(field.type)) else "text"


def companions(name: str, names: Sequence[str]) -> list[str]:
    """The columns that are drawn over the images of a column, or stand below them."""
    folder = name.rpartition("/")[0]
    begin = f"{folder}/" if folder else ""
    return [
        other for other in names if (other.startswith(begin) or not folder) and other != name and _BESIDE.search(other)
    ]


def may_be_image(field: pa.Field) -> bool:
    """True if values of this type may be images."""
    type_ = field.type
    while pa.types.is_list(type_) or pa.types.is_large_list(type_):
        type_ = type_.value_type
    is_bytes = any(check(type_) for check in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view))
    return is_bytes or isinstance(type_, pa.BaseExtensionType)


def value_mime(data: bytes) -> str:
    """The media type of bytes by their beginning; those of no known image, sound or video are not shown by browsers."""
    video = next((mime for magic, mime in _VIDEO.items() if magic in data[:8]), None)
    return image_mime(data) or audio_mime(data) or video or "application/octet-stream"


def value_cell(row: Row, field: pa.Field, forms: Mapping[str, str], url: Url, *, large: bool = False) -> str:
    """A value as HTML; `url` is where the whole value is."""
    value = row.get(field.name)
    if value is None:
        return NULL
    if isinstance(value, LargeValue):
        return bytes_cell(value.head, url(field.name), large=large, size=value.size)
    if may_be_image(field):
        shown = _media(row, field, forms, url, large=large)
        if shown is not None:
            return shown
    return _value(value, url(field.name), large=large)


def _media(row: Row, field: pa.Field, forms: Mapping[str, str], url: Url, *, large: bool) -> str | None:
    side = _LARGE if large else _THUMBNAIL
    value = row[field.name]
    if isinstance(value, np.ndarray) and value.dtype == object and len(value) > 1:
        items = value[: _LONG_STRIP if large else _STRIP]
        found = [media_of({**row, field.name: item}, field, forms, side) for item in items if isinstance(item, bytes)]
        images = [sample for kind, sample in filter(None, found) if kind == "image"]
        if len(images) < len(items):
            return None
        more = element("span", f"{len(value):,} images", class_="note")
        return element(
            "div", "".join(figure(sample, "image", caption=False) for sample in images) + more, class_="strip"
        )
    found_one = media_of(row, field, forms, side)
    if found_one is not None:
        kind, sample = found_one
        wave = waveform(value) if kind == "audio" and isinstance(value, bytes) else ""
        return wave + _figure(kind, sample, url(field.name), large)
    if isinstance(value, bytes) and value_mime(value).startswith("video/"):
        note = element("span", f"{value_mime(value)}, {byte_size(len(value))}", class_="note")
        return (
            f'<video src="{url(field.name)}" controls preload="metadata" tabindex="{0 if large else -1}"></video>'
            + note
        )
    return None


def _figure(kind: str, sample: MediaSample, source: str | None, large: bool) -> str:
    shown = figure(sample, kind, source, caption=large)
    return shown if large or kind == "image" else shown.replace('preload="metadata"', 'preload="none" tabindex="-1"')


def _value(value: Any, url: str, *, large: bool) -> str:
    if value is None:
        return NULL
    if isinstance(value, bool | np.bool_):
        return element("span", str(bool(value)).lower(), class_="word")
    if isinstance(value, int | float | np.number) and not isinstance(value, np.timedelta64):
        plain = value.item() if isinstance(value, np.number) else value
        return element("span", text(plain if large else short(plain)), class_="num")
    if isinstance(value, str):
        return _text(value, url, large=large)
    if isinstance(value, bytes):
        return bytes_cell(value, url, large=large)
    if isinstance(value, np.ndarray):
        return _array(value, url, large=large)
    if isinstance(value, dict | list):
        return _foldable_json(value, large=large)
    return element("span", text(value))


def _text(value: str, url: str, *, large: bool) -> str:
    if not value:
        return _empty("empty text")
    if _JSON.match(value):
        try:
            return _foldable_json(json.loads(value), large=large)
        except (ValueError, RecursionError):
            pass
    if not large:
        return element("span", text(value.partition("\n")[0], _WIDTH), class_="text")
    lines = "\n".join(printable(part, _LONG) for part in value[:_LONG].split("\n"))
    more = _whole(url, f"all {len(value):,} characters") if len(value) > _LONG else ""
    return element("pre", text_of_lines(lines), tabindex=0) + more


def text_of_lines(lines: str) -> str:
    """Lines of any content as HTML."""
    return "\n".join(text(part, _LONG) for part in lines.split("\n"))


def bytes_cell(value: bytes, url: str, *, large: bool, size: int | None = None) -> str:
    """Bytes as text if they are, else in hex; `size`: how many there are, if these are only the first ones."""
    if not value:
        return _empty("0 bytes")
    size = len(value) if size is None else size
    whole = _whole(url, "save all bytes") if large else ""
    is_text = False
    try:
        decoded = value[:_LONG].decode()
        is_text = all(c.isprintable() or c in "\n\r\t" for c in decoded)
    except UnicodeDecodeError:
        decoded = ""
    note = element("span", byte_size(size), class_="note")
    if is_text:
        shown = element("span", note, class_="kind") + _text(decoded, url, large=large)
        return shown + (whole if size > len(decoded) else "")
    if not large:
        return element("span", note, class_="kind") + element(
            "code", value[:16].hex(" ") + (" …" if len(value) > 16 else "")
        )
    lines = []
    for at in range(0, min(len(value), _HEX), 16):
        part = value[at : at + 16]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        lines.append(f"{at:08x}  {part.hex(' '):<47}  {plain}")
    return element("pre", text_of_lines("\n".join(lines)), class_="hex", tabindex=0) + note + whole


def _array(value: NDArray[Any], url: str, *, large: bool) -> str:
    if not value.size:
        return _empty("empty list" if value.ndim == 1 else f"empty, {_shape(value)}")
    if value.ndim > 1:
        note = element("span", f"{_shape(value)} {text(value.dtype)}", class_="note")
        png = heat_map(value, _LARGE if large else _THUMBNAIL)
        if png is None:
            return element("span", text(short(value.tolist(), _WIDTH)), class_="text") + note
        is_small = max(value.shape[0], value.size // value.shape[0]) <= 96
        sample = MediaSample("image/png", png, "", (("heat map", f"heat map of {_shape(value)}"),), pixelated=is_small)
        drawn = figure(sample, "image", caption=False)
        return drawn + note + (_values(value) if large else "")
    note = element("span", counted(len(value), "value"), class_="note")
    if value.dtype.kind in "iuf" and len(value) > 1:
        first = ", ".join(text(number(item)) for item in value[:_ITEMS].tolist())
        more = ", …" if len(value) > _ITEMS else ""
        drawn = line(value) if len(value) > _FEW else ""
        shown = drawn + element("span", first + more, class_="text") + note
        return shown + (_values(value) if large and more else "")
    items = value.tolist()
    shown = ", ".join(value_text(text_if_any(item), 24) for item in items[: _MOST_ITEMS if large else _ITEMS])
    more = ", …" if len(items) > (_MOST_ITEMS if large else _ITEMS) else ""
    return element("span", shown + more, class_="text") + note


def text_if_any(item: Any) -> Any:
    """Bytes that are text as text."""
    if isinstance(item, bytes):
        try:
            return item.decode()
        except UnicodeDecodeError:
            return item
    return item


def _values(value: NDArray[Any]) -> str:
    flat = value.reshape(-1)
    shown = ", ".join(text(number(item)) for item in flat[:_MOST_ITEMS].tolist())
    more = ", …" if flat.size > _MOST_ITEMS else ""
    return element("details", element("summary", f"{flat.size:,} values") + element("p", shown + more, class_="mono"))


def _shape(value: NDArray[Any]) -> str:
    return " × ".join(map(str, value.shape))


def _foldable_json(value: Any, *, large: bool) -> str:
    """JSON, of which objects and lists can be folded on the page of a record."""
    plain = json_value(value)
    if not large:
        return element("code", text(json.dumps(plain, ensure_ascii=False), _WIDTH), class_="text")
    return element("div", _branch(plain, 0), class_="json")


def _branch(value: Any, depth: int) -> str:
    if not isinstance(value, dict | list) or not value or depth > 20:
        return element("code", text(json.dumps(value, ensure_ascii=False), 2000))
    pairs = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    rows = "".join(element("li", f"<b>{text(key)}</b> {_branch(item, depth + 1)}") for key, item in pairs[:_MOST_ITEMS])
    summary = element("summary", counted(len(pairs), "key" if isinstance(value, dict) else "item"))
    return element("details", summary + element("ul", rows), open="" if depth < 2 else None)


def _empty(what: str) -> str:
    return element("span", what, class_="null")


def _whole(url: str, words: str) -> str:
    return element("a", words, href=url, download="")
