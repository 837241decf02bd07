"""Numbers that pyarrow does not parse in JSON: NaN and infinities, which are text, and numbers in columns of text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.file_formats.tables.large_integers import is_too_large
from tfrecord_io.schema.types import is_list_like

_TEXT = re.compile(rb'(?<=[:\[,])(\s*)"(-?Infinity|NaN)"(?=\s*[,\]}])')
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_ITEM = None  # of a list, in a path
_Path = tuple[str | None, ...]


class _Number(str):
    """A number as it is written."""


def with_numbers(lines: bytes, schema: pa.Schema, *, inferring: bool) -> Iterator[bytes]:
    """JSON lines with bare NaN and Infinity, which pyarrow parses as numbers, in place of text, and text for numbers.

    First NaN in all places, if the types are known; then by type: text becomes a number in columns of floats and, while
    `inferring`, in unknown ones that hold numbers; numbers become text in columns of text. None if a number is beyond
    float64.

    >>> list(with_numbers(b'{"x": "NaN", "s": 1.50}', pa.schema({"x": pa.float32(), "s": pa.string()}), inferring=True))
    [b'{"x": NaN, "s": "1.50"}']
    """
    if not inferring:
        numbers, count = _TEXT.subn(rb"\1\2", lines)
        if count:
            yield numbers
    with suppress(ValueError):
        rows = parse_rows(lines)
        numeric = set(numbers_by_path(rows)) if inferring else set()
        type_ = pa.struct(list(schema))
        yield "\n".join(json.dumps(_converted(row, type_, (), numeric)) for row in rows).encode()


def parse_rows(lines: bytes) -> list[Any]:
    """The values of JSON lines, their numbers as text. ValueError if a line is not JSON, or repeats a key."""
    return [
        json.loads(line.decode(), parse_int=_Number, parse_float=_Number, object_pairs_hook=_unique)
        for line in lines.split(b"\n")
        if line.strip()
    ]


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(value := dict(pairs)) < len(pairs):
        raise ValueError("an object has a key twice")
    return value


def numbers_by_path(rows: list[Any]) -> dict[_Path, list[str]]:
    """The numbers of rows, by the keys that lead to them; that of the items of a list is None.

    >>> numbers_by_path(parse_rows(b'{"a": [1, "x"]}'))
    {('a', None): ['1']}
    """
    found: dict[_Path, list[str]] = {}

    def collect(value: Any, path: _Path) -> None:
        if isinstance(value, _Number):
            found.setdefault(path, []).append(value)
        elif isinstance(value, list):
            for item in value:
                collect(item, (*path, _ITEM))
        elif isinstance(value, dict):
            for name, item in value.items():
                collect(item, (*path, name))

    for row in rows:
        collect(row, ())
    return found


def overflowing(value: Any, type_: pa.DataType | None) -> pa.DataType | None:
    """The type of floats that cannot hold a number in a value of parsed rows; None if there is none."""
    if isinstance(value, _Number):
        of_floats = pa.float64() if type_ is None or not t.is_floating(type_) else type_
        is_text = type_ is not None and not t.is_primitive(type_)
        return of_floats if not is_text and is_too_large(value, of_floats) else None
    if isinstance(value, list):
        item_type = type_.value_type if type_ is not None and is_list_like(type_) else None
        return next(filter(None, (overflowing(item, item_type) for item in value)), None)
    if isinstance(value, dict):
        children = {child.name: child.type for child in type_} if type_ is not None and t.is_struct(type_) else {}
        return next(filter(None, (overflowing(item, children.get(name)) for name, item in value.items())), None)
    return None


def has_infinity(array: pa.Array) -> bool:
    """Whether one of the floats in a column, at any level, is infinite."""
    if t.is_floating(array.type):
        return bool(pc.any(pc.is_inf(array)).as_py())
    if t.is_struct(array.type):
        return any(map(has_infinity, array.flatten()))
    return is_list_like(array.type) and has_infinity(array.flatten())


def _converted(value: Any, type_: pa.DataType | None, path: _Path, numeric: set[_Path]) -> Any:
    """A value for pyarrow; `numeric` has the paths of numbers whose types are inferred."""
    if isinstance(value, _Number):
        if type_ is not None and (t.is_string(type_) or t.is_large_string(type_)):
            return str(value)
        if math.isinf(number := float(value)):
            raise ValueError("the number is too large")
        return number if set(value) & set(".eE") or value == "-0" else int(value)
    if isinstance(value, str):
        is_number = path in numeric if type_ is None else t.is_floating(type_)
        return _NUMBERS.get(value, value) if is_number else value
    if isinstance(value, list):
        item = type_.value_type if type_ is not None and is_list_like(type_) else None
        return [_converted(each, item, (*path, _ITEM), numeric) for each in value]
    if isinstance(value, dict):
        children = {child.name: child.type for child in type_} if type_ is not None and t.is_struct(type_) else {}
        return {name: _converted(item, children.get(name), (*path, name), numeric) for name, item in value.items()}
    return value
