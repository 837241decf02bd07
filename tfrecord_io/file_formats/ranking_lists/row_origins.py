"""Where the rows made of lists come from: the file, the record and the byte of each, for error messages."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

from tfrecord_io.engine.contract import Array
from tfrecord_io.storage.read.source import Origin

_MOST_ROWS = 4 << 20  # whose records are kept, of the last blocks; of those before, the file is known


@dataclass(frozen=True, slots=True)
class BlockRows:
    """The rows of a block of records: arrays by record, or by row."""

    path: str
    record: int  # of the first one
    offsets: Array  # of the records' headers
    contexts: Array  # the bytes of each context,
    context_starts: Array  # its first byte in the payload; −1 if it has several parts
    list_of: Array  # by row: the number of the record in the block
    starts: Array  # by row: first byte of the example in the payload
    lengths: Array  # by row: bytes of the example

    @property
    def rows(self) -> int:
        return len(self.list_of)

    def origin(self, row: int) -> Origin:
        at = int(self.list_of[row])
        return Origin(self.path, self.record + at, int(self.offsets[at]))

    def byte(self, row: int, byte: int) -> int:
        """See `tfrecord_io.storage.read.source.Origins.byte`: a row has the context, the example, and numbers."""
        at = int(self.list_of[row])
        start, inside = int(self.context_starts[at]), byte - int(self.contexts[at])
        if inside < 0:
            return start + byte if start >= 0 else -1
        return int(self.starts[row]) + inside if inside <= int(self.lengths[row]) else -1


class ListOrigins:
    """See `tfrecord_io.storage.read.source.Origins`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.failed: Origin | None = None  # where the error is that ended the rows
        self._rows = self._dropped = self._held = 0
        self._first_rows: list[int] = []
        self._blocks: list[BlockRows | str] = []  # or the path of one that was dropped

    def add(self, block: BlockRows) -> None:
        """Add the rows of the next block."""
        self._first_rows.append(self._rows)
        self._blocks.append(block)
        self._rows += block.rows
        self._held += block.rows
        while self._held > _MOST_ROWS and self._dropped < len(self._blocks) - 1:
            dropped = self._blocks[self._dropped]
            assert isinstance(dropped, BlockRows)
            self._blocks[self._dropped] = dropped.path
            self._dropped, self._held = self._dropped + 1, self._held - dropped.rows

    def _find(self, row: int) -> tuple[BlockRows | str, int]:
        at = bisect_right(self._first_rows, row) - 1
        return self._blocks[at], row - self._first_rows[at]

    def __call__(self, record: int) -> Origin | None:
        if record >= self._rows:
            return self.failed
        block, row = self._find(record)
        return Origin(block, None, None) if isinstance(block, str) else block.origin(row)

    def byte(self, record: int, byte: int) -> int:
        if record >= self._rows:
            return -1
        block, row = self._find(record)
        return -1 if isinstance(block, str) else block.byte(row, byte)
