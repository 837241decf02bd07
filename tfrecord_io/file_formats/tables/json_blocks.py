"""Blocks of whole JSON lines, whose nesting is limited: pyarrow parses nested values by recursion."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrecord_io.errors import DecodeError

BLOCK_BYTES = 8 << 20
MAX_LINE_BYTES = 256 << 20
MAX_DEPTH = 100

_STRING = re.compile(rb'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING, _CLOSING = b"[{", b"]}"


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


def _rows(block: bytes) -> int:
    return sum(1 for line in block.split(b"\n") if line.strip())


def _check_depth(block: bytes, path: str, row: int) -> None:
    """Refuse lines that are nested too deep; only those with many brackets are looked at one by one."""
    codes = np.frombuffer(block, np.uint8)
    opening = np.isin(codes, np.frombuffer(_OPENING, np.uint8))
    ends = np.append(np.flatnonzero(codes == ord("\n")) + 1, len(codes))
    begins = np.append(0, ends[:-1])
    counts = np.append(0, np.cumsum(opening))
    for at in np.flatnonzero(counts[ends] - counts[begins] > MAX_DEPTH):
        line = np.frombuffer(_STRING.sub(b"", block[begins[at] : ends[at]]), np.uint8)
        steps = np.isin(line, np.frombuffer(_OPENING, np.uint8)).astype(np.int64)
        steps -= np.isin(line, np.frombuffer(_CLOSING, np.uint8))
        if steps.cumsum().max(initial=0) > MAX_DEPTH:
            reason = f"values are nested more than {MAX_DEPTH} levels deep"
            raise DecodeError(reason, path=path, record=row + _rows(block[: begins[at]]), expected=MAX_DEPTH)
