"""NaN and infinities in JSON, which has no numbers for them: they are text, such as "NaN"."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.schema.types import is_list_like

_TEXT = re.compile(rb'(?<=[:\[,])(\s*)"(-?Infinity|NaN)"(?=\s*[,\]}])')
_NUMBERS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def with_numbers(lines: bytes, schema: pa.Schema) -> Iterator[bytes]:
    """JSON lines with bare NaN and Infinity, which pyarrow parses as numbers, in place of text.

    First in all places, then only in columns of floats; nothing if there is no such text.

    >>> list(with_numbers(b'{"x": "NaN", "s": "NaN"}', pa.schema({"x": pa.float32(), "s": pa.string()})))
    [b'{"x": NaN, "s": NaN}', b'{"x": NaN, "s": "NaN"}']
    """
    numbers, count = _TEXT.subn(rb"\1\2", lines)
    if count:
        yield numbers
        with suppress(ValueError):
            rows = [json.loads(line) for line in lines.split(b"\n") if line.strip()]
            type_ = pa.struct(list(schema))
            yield "\n".join(json.dumps(_number(row, type_)) for row in rows).encode()


def _number(value: Any, type_: pa.DataType | None) -> Any:
    if isinstance(value, str):
        return _NUMBERS.get(value, value) if type_ is not None and t.is_floating(type_) else value
    if isinstance(value, list):
        item = type_.value_type if type_ is not None and is_list_like(type_) else None
        return [_number(each, item) for each in value]
    if isinstance(value, dict):
        children = {child.name: child.type for child in type_} if type_ is not None and t.is_struct(type_) else {}
        return {name: _number(item, children.get(name)) for name, item in value.items()}
    return value
