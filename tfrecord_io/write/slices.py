"""Parts of record batches that threads encode to pieces of a file.

A batch is split twice. The columns of a *slice* are converted together, as that costs time for each column; its rows
are encoded in *pieces* that stay in the processor's cache until they are written. A piece is written to memory that was
used for another one before, as the first use of a page costs more than encoding its content.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from tfrecord_io.arrow.encode.columns import encode_columns
from tfrecord_io.arrow.encode.forms import plain_forms
from tfrecord_io.arrow.encode.plan import Rounding, WritePlan
from tfrecord_io.engine.contract import MAX_RECORD_BYTES, ArrowReader, Encoder, Engine
from tfrecord_io.errors import EncodeError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.options import MIB
from tfrecord_io.write.piece import Piece

_PIECE_BYTES = 1 * MIB  # about; a record that is larger is a piece
_SLICE_BYTES = 4 * MIB  # of Arrow data, about
_FEATURE_BYTES = 10  # of an entry with one value, besides name and value
_KEPT_BYTES = 4 * MIB  # memory of larger pieces is not kept for the next one

Prepare = Callable[[Any, int, int], Piece]
"""Makes a piece of frames, their number and the row of the first one: `Sink.prepare`."""


class Memory:
    """Memory for pieces, used again and again."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._free: list[Any] = []

    def take(self) -> Any:
        try:
            return self._free.pop()  # the last one, which may still be in a cache
        except IndexError:
            return self._engine.memory()

    def give_back(self, memory: Any) -> None:
        """Let the next piece overwrite the one in `memory`."""
        if memory is not None and memory.capacity <= _KEPT_BYTES:
            self._free.append(memory)


class EncodedPiece:
    """A piece in memory that `release` gives back; `rounding` is that of its slice, with its first piece."""

    def __init__(self, piece: Piece, rounding: Rounding | None, memory: Any, pool: Memory) -> None:
        self.piece, self.rounding = piece, rounding
        self._memory, self._pool = memory, pool

    def release(self) -> None:
        self._pool.give_back(self._memory)


class Slice:
    """Rows whose columns are converted together, by the first thread that encodes some of them.

    `convert` returns the encoder of the rows, `row` is the number of the first one in the file, and `prefix` is put in
    front of its payload. `rounding` is counted by `convert`.
    """

    def __init__(self, convert: Callable[[], Encoder], row: int, prefix: bytes, rounding: Rounding) -> None:
        self._convert, self._row, self._prefix, self._rounding = convert, row, prefix, rounding
        self._encoder: Encoder | None = None
        self._lock = threading.Lock()

    def encode(self, begin: int, end: int, pool: Memory, prepare: Prepare) -> EncodedPiece:
        """Encode rows [begin, end) of the slice."""
        with self._lock:
            if self._encoder is None:
                self._encoder = self._convert()
        memory = pool.take()
        framed, rows = self._encoder.encode(begin, end, prefix=b"" if begin else self._prefix, memory=memory)
        if begin + rows < end:
            reason = f"the record would exceed {MAX_RECORD_BYTES} bytes, protobuf's limit"
            advice = "write its large columns to separate files"
            raise EncodeError(reason, record=self._row + begin + rows, advice=advice)
        return EncodedPiece(prepare(framed, rows, self._row + begin), None if begin else self._rounding, memory, pool)


class SliceEncoder:
    """Splits batches of one schema into tasks; each takes a `Memory` and a `Prepare`."""

    def __init__(self, engine: Engine, plan: WritePlan, record_type: str | None) -> None:
        self._engine, self._plan = engine, plan
        self._as_bytes, self._sequence = record_type == "bytes", record_type == "sequence_example"
        self._columns = self._columns_of(plan.schema)
        self._names = 0 if self._as_bytes else sum(len(leaf.feature) + _FEATURE_BYTES for leaf in plan.leaves)

    def split(
        self, batch: pa.RecordBatch, row: int, begin: Callable[[pa.RecordBatch, int], bytes]
    ) -> Iterator[Callable[[Memory, Prepare], EncodedPiece]]:
        """The tasks that encode a batch, whose first row is `row`.

        `begin` takes each slice and its first row, before the slice's tasks, and returns the prefix of that payload.
        """
        if not batch.schema.equals(self._columns.schema):  # offsets of another width, or views
            self._columns = self._columns_of(batch.schema)
        width = self._columns.value_bytes(batch) // max(1, len(batch)) + 1
        rows = max(1, _PIECE_BYTES // (width + self._names + FRAME_BYTES))
        slice_rows = rows * max(1, _SLICE_BYTES // (width * rows))
        for first in range(0, len(batch), slice_rows):
            part = batch.slice(first, slice_rows) if slice_rows < len(batch) else batch
            at, rounding = row + first, Rounding()
            convert = partial(self._convert, self._columns.reader, part, at, rounding)
            piece = Slice(convert, at, begin(part, at), rounding)
            for i in range(0, len(part), rows):
                yield partial(piece.encode, i, min(i + rows, len(part)))

    def _columns_of(self, schema: pa.Schema) -> _BatchColumns:
        forms = plain_forms(replace(self._plan, schema=schema))
        reader = self._engine.arrow_reader(forms) if any(forms) and not self._as_bytes else None
        return _BatchColumns(schema, reader, [at for at, form in enumerate(forms) if form is None])

    def _convert(self, reader: ArrowReader | None, batch: pa.RecordBatch, row: int, rounding: Rounding) -> Encoder:
        if self._as_bytes:
            return PayloadEncoder(self._engine, batch, row)
        arrow = None if reader is None else reader.read(batch)
        plan, taken = replace(self._plan, rounding=rounding), () if arrow is None else arrow.taken
        columns = encode_columns(batch, plan, row_base=row, taken=taken)
        return self._engine.encoder(columns, sequence=self._sequence, arrow=arrow)


@dataclass(frozen=True, slots=True)
class _BatchColumns:
    """How the columns of batches of one schema are read: some by `reader`, which trusts their types, and the others."""

    schema: pa.Schema
    reader: ArrowReader | None
    others: list[int]

    def value_bytes(self, batch: pa.RecordBatch) -> int:
        """The bytes of a batch's values, of which Arrow takes long to count those of many columns."""
        if self.reader is None:
            return int(batch.nbytes)
        return self.reader.value_bytes(batch) + sum(batch.column(at).nbytes for at in self.others)


class PayloadEncoder:
    """Frames the values of a binary column; see `tfrecord_io.engine.contract.Encoder`."""

    def __init__(self, engine: Engine, batch: pa.RecordBatch, row: int) -> None:
        self._engine, self._column = engine, batch.column(0)
        if self._column.null_count:
            null = row + self._column.is_null().index(True).as_py()
            name = batch.schema.names[0]
            raise EncodeError("a record cannot be null", record=null, feature=name, advice="drop the nulls")

    def encode(self, begin: int, end: int, *, prefix: bytes = b"", memory: Any = None) -> tuple[Any, int]:
        payloads = [memoryview(value.as_buffer()) for value in self._column[begin:end]]
        return self._engine.frame(payloads), end - begin
