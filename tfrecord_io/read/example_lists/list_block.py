"""The lists of a block of records of TensorFlow Ranking (ExampleListWithContext): where their parts are.

A row is made of bytes of its list alone: Examples that lie one after the other are one Example to a parser, so a row
is the context, one example, and an Example with the numbers of the list and the row.

Tests: tests/read/example_lists/test_list_block.py; of files: tests/plugins/tensorflow/test_from_elwc.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfrecord_io.bytes import Array, Engine, FieldTag
from tfrecord_io.columns import runs_within

RECORD, POSITION = "record", "position"
EXAMPLES, CONTEXT = 1, 2  # fields of ExampleListWithContext (tensorflow_serving/apis/input.proto)
PARTS = ("examples", "context")

_PIECE_BYTES = 4 << 20
_FEATURES = _ENTRY = _KEY = _VALUES = FieldTag.of(1)  # Example.features, Features.feature, its key, Int64List.value
_VALUE, _INT64_LIST = FieldTag.of(2), FieldTag.of(3)  # of an entry, of a Feature


@dataclass(frozen=True, slots=True)
class ListBlock:
    """Where the parts of the lists of a block are; a row is an example, or a list if only contexts are read.

    All arrays are int64 but those of bytes. Offsets are in `data`, if nothing else is stated.

    Attributes
    ----------
    data : uint8 ndarray
        The bytes of the block.
    payloads
        By list: where its record's payload begins.
    part_lists, part_starts, part_lengths
        By part of a context, as a list may have the field several times: the number of its list, and its extent.
    contexts : uint8 ndarray
        All parts of contexts in order, which makes one of the parts of each list, as parsers merge them.
    context_starts, context_lengths
        By list: the extent of its context in `contexts`.
    context_offsets
        By list: where its context begins in the payload; −1 unless it has exactly one part.
    row_lists, example_starts, example_lengths
        By row: the number of its list in the block, and the extent of its example.
    """

    data: Array
    payloads: Array
    part_lists: Array
    part_starts: Array
    part_lengths: Array
    contexts: Array
    context_starts: Array
    context_lengths: Array
    context_offsets: Array
    row_lists: Array
    example_starts: Array
    example_lengths: Array

    @classmethod
    def from_frames(
        cls, data: Array, frames: Engine.Frames, members: Engine.Members, part: str | None, engine: Engine
    ) -> ListBlock:
        """The lists of `frames`, whose fields are `members`; of one of `PARTS` only, or of both."""
        payloads, count = frames.starts, len(frames.starts)
        extents = (members.records, members.starts, members.lengths)
        is_context = (members.fields == CONTEXT) & (part != "examples")
        part_lists, part_starts, part_lengths = (array[is_context] for array in extents)
        row_lists, example_starts, example_lengths = (array[members.fields == EXAMPLES] for array in extents)
        if part == "context":
            row_lists, example_starts, example_lengths = np.arange(count), *np.zeros((2, count), np.int64)
        context_lengths = np.zeros(count, np.int64)
        np.add.at(context_lengths, part_lists, part_lengths)
        context_offsets = np.full(count, -1, np.int64)
        context_offsets[part_lists] = part_starts - payloads[part_lists]
        context_offsets[np.bincount(part_lists, minlength=count) != 1] = -1
        return cls(
            data=data,
            payloads=payloads,
            part_lists=part_lists,
            part_starts=part_starts,
            part_lengths=part_lengths,
            contexts=engine.payloads(data, Engine.Frames(part_starts, part_lengths, 0)),
            context_starts=np.cumsum(context_lengths) - context_lengths,
            context_lengths=context_lengths,
            context_offsets=context_offsets,
            row_lists=row_lists,
            example_starts=example_starts,
            example_lengths=example_lengths,
        )

    @property
    def rows(self) -> int:
        return len(self.row_lists)

    def first_row(self, at: int) -> int:
        """The number of the first row of a list in the block."""
        return int(self.row_lists.searchsorted(at))

    def numbers(self, first: int, part: str | None) -> Array:
        """Examples with the numbers of each row, where the block begins with the list `first` of all files."""
        columns = {RECORD: self.row_lists + first}
        if part != "context":
            columns[POSITION] = np.arange(self.rows) - self.row_lists.searchsorted(self.row_lists)
        return np.concatenate([_number_examples(name.encode(), values) for name, values in columns.items()], axis=1)

    def sizes(self, numbers: Array) -> Array:
        """The payload bytes of each row."""
        return self.context_lengths[self.row_lists] + self.example_lengths + numbers.shape[1]

    def frames(self, numbers: Array, rows: int, engine: Engine) -> Iterator[Array]:
        """The first `rows` rows as framed Examples, in pieces: each the context, the example and the numbers."""
        combined = np.concatenate([self.data, self.contexts, numbers.ravel()])
        width = numbers.shape[1]
        for begin, end in runs_within(self.sizes(numbers)[:rows], _PIECE_BYTES):
            lists, examples = self.row_lists[begin:end], self.example_starts[begin:end]
            contexts = self.context_starts[lists] + len(self.data)
            number_starts = np.arange(begin, end) * width + len(self.data) + len(self.contexts)
            starts = np.stack([contexts, examples, number_starts], axis=1)
            widths = np.full(end - begin, width)
            lengths = np.stack([self.context_lengths[lists], self.example_lengths[begin:end], widths], axis=1)
            yield engine.frame_extents(combined, starts.ravel(), lengths.ravel(), 3)


def _number_examples(name: bytes, values: Array) -> Array:
    """Examples of a feature with a number each, not negative: uint8 [rows, bytes], as all have the same size.

    >>> _number_examples(b"n", np.array([7])).tobytes().hex(" ")
    '0a 0c 0a 0a 0a 01 6e 12 05 1a 03 0a 01 07'
    """
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))  # of all varints, that of the longest
    digits = values[:, None] >> (7 * np.arange(width)) & 0x7F
    digits[:, :-1] |= 0x80
    head = b""
    for tag in (_VALUES, _INT64_LIST, _VALUE):
        head = tag.head(len(head) + width) + head
    head = _KEY.field(name) + head
    for tag in (_ENTRY, _FEATURES):
        head = tag.head(len(head) + width) + head
    heads = np.broadcast_to(np.frombuffer(head, np.uint8), (len(values), len(head)))
    return np.concatenate([heads, digits.astype(np.uint8)], axis=1)
