"""The lists of a block of records: where their contexts and examples are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tfrecord_io.bytes import Array, Engine, Frames, Members, varint
from tfrecord_io.columns import runs_within

RECORD, POSITION = "record", "position"
EXAMPLES, CONTEXT = 1, 2  # fields of ExampleListWithContext (tensorflow_serving/apis/input.proto)
PARTS = ("examples", "context")

_PIECE_BYTES = 4 << 20
_FEATURES = _ENTRY = _KEY = _VALUES = b"\x0a"  # Example.features, Features.feature, its key, Int64List.value: field 1
_VALUE, _INT64_LIST = b"\x12", b"\x1a"  # of an entry, of a Feature


@dataclass(frozen=True, slots=True)
class ListBlock:
    """Arrays by list, and by row: a row is an example, or a list if only contexts are read."""

    data: Array
    payloads: Array  # by list: its first byte in `data`
    parts: Array  # by part of a context, as the field may occur several times: the number of its list,
    part_starts: Array  # and its extent in `data`
    part_lengths: Array
    contexts: Array  # the parts of contexts in order, as parsers merge them
    context_starts: Array  # by list, in `contexts`
    context_lengths: Array
    context_at: Array  # by list: offset of the context in the payload; −1 unless there is exactly one
    lists: Array  # by row: the number of its list in the block,
    starts: Array  # its example, in `data`
    lengths: Array

    @classmethod
    def from_frames(cls, data: Array, frames: Frames, members: Members, part: str | None, engine: Engine) -> ListBlock:
        """The lists of `frames`, of which `part` is read."""
        payloads, count = frames.starts, len(frames.starts)
        is_context = (members.fields == CONTEXT) & (part != "examples")
        fields = (members.records, members.starts, members.lengths)
        part_lists, part_starts, part_lengths = (array[is_context] for array in fields)
        contexts = engine.payloads(data, Frames(part_starts, part_lengths, 0))
        context_lengths = np.zeros(count, np.int64)
        np.add.at(context_lengths, part_lists, part_lengths)
        context_at = np.full(count, -1, np.int64)
        context_at[part_lists] = part_starts - payloads[part_lists]
        context_at[np.bincount(part_lists, minlength=count) != 1] = -1
        context_starts = np.cumsum(context_lengths) - context_lengths
        lists, starts, lengths = (array[members.fields == EXAMPLES] for array in fields)
        if part == "context":
            lists, starts, lengths = np.arange(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
        return cls(
            data=data,
            payloads=payloads,
            parts=part_lists,
            part_starts=part_starts,
            part_lengths=part_lengths,
            contexts=contexts,
            context_starts=context_starts,
            context_lengths=context_lengths,
            context_at=context_at,
            lists=lists,
            starts=starts,
            lengths=lengths,
        )

    @property
    def rows(self) -> int:
        return len(self.lists)

    def first_row(self, at: int) -> int:
        """The number of the first row of a list in the block."""
        return int(self.lists.searchsorted(at))

    def numbers(self, first: int, part: str | None) -> Array:
        """The features of each row with its numbers, where the block begins with the list `first` of all files."""
        columns = {RECORD: self.lists + first}
        if part != "context":
            columns[POSITION] = np.arange(self.rows) - self.lists.searchsorted(self.lists)
        return np.concatenate([_examples(name.encode(), values) for name, values in columns.items()], axis=1)

    def sizes(self, numbers: Array) -> Array:
        """The payload bytes of each row."""
        return self.context_lengths[self.lists] + self.lengths + numbers.shape[1]

    def frames(self, numbers: Array, rows: int, engine: Engine) -> Iterator[Array]:
        """The first `rows` rows as framed Examples, in pieces."""
        combined = np.concatenate([self.data, self.contexts, numbers.ravel()])
        for begin, end in runs_within(self.sizes(numbers)[:rows], _PIECE_BYTES):
            part = slice(begin, end)
            lists, width = self.lists[part], numbers.shape[1]
            contexts = self.context_starts[lists] + len(self.data)
            example_starts = np.arange(begin, end) * width + len(self.data) + len(self.contexts)
            starts = np.stack([contexts, self.starts[part], example_starts], axis=1)
            widths = np.full(end - begin, width)
            lengths = np.stack([self.context_lengths[lists], self.lengths[part], widths], axis=1)
            yield engine.frame_extents(combined, starts.ravel(), lengths.ravel(), 3)


def _examples(name: bytes, values: Array) -> Array:
    """Examples of a feature with a number each, not negative: uint8 [rows, bytes], as all have the same size.

    >>> _examples(b"n", np.array([7])).tobytes().hex(" ")
    '0a 0c 0a 0a 0a 01 6e 12 05 1a 03 0a 01 07'
    """
    width = max(1, -(-int(values.max(initial=0)).bit_length() // 7))  # of all varints, that of the longest
    digits = values[:, None] >> (7 * np.arange(width)) & 0x7F
    digits[:, :-1] |= 0x80
    head = b""
    for tag in (_VALUES, _INT64_LIST, _VALUE):
        head = tag + varint(len(head) + width) + head
    head = _KEY + varint(len(name)) + name + head
    for tag in (_ENTRY, _FEATURES):
        head = tag + varint(len(head) + width) + head
    heads = np.broadcast_to(np.frombuffer(head, np.uint8), (len(values), len(head)))
    return np.concatenate([heads, digits.astype(np.uint8)], axis=1)
