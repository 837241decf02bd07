"""Blocks of whole JSON lines, whose nesting is limited: pyarrow parses nested values by recursion."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError

BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = 256 << 20
MAX_DEPTH = 100

_STEPS = np.zeros(256, np.int8)  # of the depth, at each byte
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1
_IS_MARK = _STEPS != 0
_IS_MARK[ord('"')] = True


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines, and the number of rows before them in the file."""

    data: bytes
    row: int


def line_blocks(file: Any, path: str) -> Iterator[Block]:
    """The lines of a binary file in blocks of about 8 MiB; blocks of blank lines are left out.

    Raises
    ------
    DecodeError
        A line is longer than 256 MiB, or nested more than 100 levels deep.
    """
    row, parts, ended = 0, [b""], False
    while not ended:
        data = file.read(BLOCK_BYTES)
        ended = len(data) < BLOCK_BYTES
        end = len(data) if ended else data.rfind(b"\n") + 1
        if not end and not ended:
            parts.append(data)
            if sum(map(len, parts)) > MAX_LINE_BYTES:
                reason = f"a line is longer than {MAX_LINE_BYTES >> 20} MiB"
                advice = "JSON lines have one object in each line: convert an array with jq -c '.[]'"
                raise DecodeError(reason, path=path, record=row, expected=MAX_LINE_BYTES, advice=advice)
            continue
        block = b"".join([*parts, data[:end]])
        parts = [data[end:]]
        if block.strip():
            _check_depth(block, path, row)
            yield Block(block, row)
            row += 0 if ended else _rows(block)


def count_fields(block: bytes, most: int) -> tuple[int, int]:
    """The number of objects in a block of at most 100 levels, and of their different fields at all levels.

    It ends where there are more than `most` fields, or text that is not JSON, on which pyarrow ends, too.

    >>> count_fields(b'{"a": 1, "b": [{"a": 2}]}\\n{"a": {"c": 3}}\\n', 10)
    (2, 4)
    """
    text = block.decode("utf-8", "surrogateescape").removeprefix("\ufeff")
    text = text.replace("Infinity", "Inf").replace("Inf", "Infinity")  # pyarrow parses both
    decode = json.JSONDecoder(object_pairs_hook=tuple, parse_int=float, strict=False).raw_decode
    tree: _Tree = {}
    fields = rows = at = 0
    with suppress(ValueError):
        while fields <= most and at < len(text):
            if text[at] in " \t\r\n":
                at += 1
                continue
            value, at = decode(text, at)
            fields, rows = fields + _new_fields(value, tree), rows + 1
    return rows, fields


_Tree = dict[str, "_Tree"]


def _new_fields(value: Any, known: _Tree) -> int:
    """Add the fields of a value, whose objects are tuples of pairs, to those that are known; returns their number."""
    if isinstance(value, list):
        return sum(_new_fields(item, known) for item in value if isinstance(item, list | tuple))
    new = 0
    for name, item in value if isinstance(value, tuple) else ():
        if name not in known:
            known[name] = {}
            new += 1
        if isinstance(item, list | tuple):
            new += _new_fields(item, known[name])
    return new


def cut(block: Block, most_rows: int, path: str) -> Iterator[Block]:
    """The same rows in blocks of at most `most_rows`."""
    if block.data.count(b"\n") < most_rows:
        yield block
        return
    lines = [line for line in block.data.split(b"\n") if line.strip()]
    if not all(line.strip().startswith(b"{") and line.strip().endswith(b"}") for line in lines):
        reason, advice = "an object with so many columns is not in one line", "convert the file with jq -c ."
        raise DecodeError(reason, path=path, record=block.row, expected="JSON lines", advice=advice)
    for begin in range(0, len(lines), most_rows):
        yield Block(b"\n".join(lines[begin : begin + most_rows]) + b"\n", block.row + begin)


def _rows(block: bytes) -> int:
    return sum(1 for line in block.split(b"\n") if line.strip())


def _check_depth(block: bytes, path: str, row: int) -> None:
    """Refuse values that are nested too deep, in one line or over several: pyarrow parses a block as one text."""
    if b"\\" in block:  # the quotes that are left begin and end strings
        block = block.replace(b"\\\\", b"  ").replace(b'\\"', b"  ")
    codes = np.frombuffer(block, np.uint8)
    marks = codes[_IS_MARK[codes]]
    steps = _STEPS[marks]
    steps[np.cumsum(marks == ord('"')) % 2 == 1] = 0  # in strings
    depth = np.cumsum(steps)
    if depth.max(initial=0) > MAX_DEPTH:
        before = slice(int(np.argmax(depth > MAX_DEPTH)))
        rows = np.count_nonzero((depth[before] == 0) & (steps[before] < 0))
        reason = f"values are nested more than {MAX_DEPTH} levels deep"
        raise DecodeError(reason, path=path, record=row + int(rows), expected=MAX_DEPTH)
