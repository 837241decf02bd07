"""How many rows, and how many bytes of them, the next chunk may have."""

from __future__ import annotations

from dataclasses import dataclass

from tfrecord_io.engine.contract import Decoder, Plan
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.options import LIMITS, MIB, ReadOptions
from tfrecord_io.read.chunks.chunk import DecodedChunk

_WHOLE_ROWS = 2**62
_WHOLE_BATCH_BYTES = 64 * MIB
_INTEGER_BYTES = 8


@dataclass(slots=True)
class RowBudget:
    """How many rows and payload bytes the next chunk may have: what remains of its batch and of the whole read.

    Attributes
    ----------
    batch_rows, batch_bytes : int
        Limits of a batch.
    remaining : int or None
        Rows that may still be read; None: all.
    rows, bytes, integer_bytes : int
        Of the current batch so far.
    """

    batch_rows: int
    batch_bytes: int
    remaining: int | None = None
    rows: int = 0
    bytes: int = 0
    integer_bytes: int = 0

    @property
    def max_rows(self) -> int:
        room = self.batch_rows - self.rows
        return room if self.remaining is None else min(room, self.remaining)

    @property
    def max_bytes(self) -> int:
        return self.batch_bytes - self.bytes

    @property
    def max_integer_bytes(self) -> int:
        return self.batch_bytes - self.integer_bytes

    @property
    def is_whole(self) -> bool:
        """Whether all records are read, in batches as large as possible."""
        return self.batch_rows == _WHOLE_ROWS and self.remaining is None

    @property
    def joins(self) -> bool:
        """Whether one thread decodes a file into one batch, so that no column is copied to join its parts."""
        return self.is_whole and self.batch_bytes > _WHOLE_BATCH_BYTES

    def count_slots(self, plan: Plan) -> None:
        """Limit the rows of a batch so that their slots, which absent values have too, fit into its bytes."""
        fixed = {Kind.INT64: 8, Kind.FLOAT: 4}  # the numbers of scalar columns, and an offset of the others
        size = sum(fixed.get(c.kind, 4) if c.layout is Layout.SCALAR else 4 for c in plan.columns)
        self.batch_rows = min(self.batch_rows, max(1, self.batch_bytes // max(1, size)))

    @property
    def begun(self) -> bool:
        """Whether the current batch has rows already."""
        return self.rows > 0

    def give_back(self, rows: int) -> None:
        """Let others take the place of rows that were counted, but are left out."""
        if self.remaining is not None:
            self.remaining += rows

    def take(self, chunk: DecodedChunk) -> None:
        """Count a chunk."""
        if self.remaining is not None:
            self.remaining -= chunk.rows
        if chunk.ends_batch:
            self.rows = self.bytes = self.integer_bytes = 0
        else:
            self.rows, self.bytes = self.rows + chunk.rows, self.bytes + chunk.payload_bytes
            self.integer_bytes += chunk.integer_bytes


def row_budget(options: ReadOptions, *, whole: bool) -> RowBudget:
    """The budget of a read; the batches of a `whole` read are as large as possible."""
    batch_bytes = min(options.batch_bytes, LIMITS.batch_bytes)
    limit = None if options.limit is None else options.limit + options.rows_to_drop
    if whole:
        return RowBudget(_WHOLE_ROWS, max(batch_bytes, _WHOLE_BATCH_BYTES), limit)
    return RowBudget(options.batch_size, batch_bytes, limit)


class BatchLimit:
    """The payload bytes that a decoder may hold, so that neither they nor its integers in lists exceed a limit.

    A byte of a packed list is at most one integer, of eight bytes, so payloads are allowed in steps: an eighth of what
    the integers may still take, and after these were decoded an eighth of the rest. Where a batch ends depends on its
    records alone.

    Parameters
    ----------
    decoder : Decoder
    max_bytes : int
        Of payloads.
    max_integer_bytes : int or None
        None: integers do not count.

    Attributes
    ----------
    max_bytes : int
        Payload bytes that are allowed now.
    """

    def __init__(self, decoder: Decoder, max_bytes: int, max_integer_bytes: int | None = None) -> None:
        self._decoder, self._most, self._max_integer_bytes = decoder, max_bytes, max_integer_bytes
        self.max_bytes = max_bytes if max_integer_bytes is None else 0
        self.extend()

    def extend(self) -> bool:
        """Allow more bytes, if the integers so far leave room; called where the next record exceeds `max_bytes`."""
        if self._max_integer_bytes is None:
            return False
        room = max(0, self._max_integer_bytes - self._decoder.integer_bytes)
        allowed = min(self._most, self._decoder.value_bytes + room // _INTEGER_BYTES)
        if allowed <= self.max_bytes:
            return False
        self.max_bytes = allowed
        return True


def may_have_lists(plan: Plan) -> bool:
    """Whether a column of the plan may hold lists of integers."""
    return any(
        column.kind in (Kind.INT64, Kind.NONE) and column.layout in (Layout.LIST, Layout.ANY) for column in plan.columns
    )
