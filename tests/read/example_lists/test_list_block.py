"""Tests of read/example_lists/list_block.py: the lists of one block, without a file."""

from __future__ import annotations

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, example, field, framed, int64s
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.read.example_lists.list_block import CONTEXT, EXAMPLES, ListBlock

QUERY, OTHER = example(query=blobs(b"q")), example(other=int64s(7))
DOCUMENTS = [example(doc=blobs(b"d%d" % number)) for number in range(3)]
LISTS = [
    field(2, QUERY) + field(1, DOCUMENTS[0]) + field(1, DOCUMENTS[1]),
    field(2, QUERY),
    field(1, DOCUMENTS[2]) + field(2, QUERY) + field(2, OTHER),
]


def block_of(part: str | None) -> ListBlock:
    engine, data = get_engine(), np.frombuffer(framed(*LISTS), np.uint8)
    frames, fault = engine.scan(data, max_record_bytes=1 << 20, final=True)
    assert fault is None
    members, fault = engine.members(data, frames, max(EXAMPLES, CONTEXT))
    assert fault is None
    return ListBlock.from_frames(data, frames, members, part=part, engine=engine)


def content(data: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> list[bytes]:
    return [data[start : start + length].tobytes() for start, length in zip(starts, lengths, strict=True)]


def test_where_the_parts_of_lists_are() -> None:
    block = block_of(None)
    assert block.row_lists.tolist() == [0, 0, 2]
    assert content(block.data, block.example_starts, block.example_lengths) == DOCUMENTS
    assert block.part_lists.tolist() == [0, 1, 2, 2]
    assert content(block.data, block.part_starts, block.part_lengths) == [QUERY, QUERY, QUERY, OTHER]
    assert content(block.contexts, block.context_starts, block.context_lengths) == [QUERY, QUERY, QUERY + OTHER]
    assert block.context_offsets.tolist() == [2, 2, -1]  # behind a tag and a length; the last one has two parts
    assert [block.first_row(at) for at in range(3)] == [0, 2, 2]


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (
            None,
            [
                {"doc": b"d0", "query": b"q", "record": 5, "position": 0},
                {"doc": b"d1", "query": b"q", "record": 5, "position": 1},
                {"doc": b"d2", "query": b"q", "other": 7, "record": 7, "position": 0},
            ],
        ),
        (
            "context",
            [{"query": b"q", "record": 5}, {"query": b"q", "record": 6}, {"query": b"q", "other": 7, "record": 7}],
        ),
        ("examples", [{"doc": b"d%d" % n, "record": (5, 5, 7)[n], "position": (0, 1, 0)[n]} for n in range(3)]),
    ],
)
def test_rows_are_examples(part: str | None, expected: list[dict[str, object]]) -> None:
    block, engine = block_of(part), get_engine()
    numbers = block.numbers(5, part)
    data = b"".join(piece.tobytes() for piece in block.frames(numbers, block.rows, engine))
    frames, fault = engine.scan(data, max_record_bytes=1 << 20, final=True)
    assert fault is None
    assert block.sizes(numbers).tolist() == frames.lengths.tolist()
    payloads = content(np.frombuffer(data, np.uint8), frames.starts, frames.lengths)
    assert [tfr.decode_example(row) for row in payloads] == expected
