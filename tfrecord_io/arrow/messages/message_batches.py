"""Record batches of decoded records that are messages, on several threads."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.messages.decode import MessageReader, Unknown
from tfrecord_io.arrow.messages.message_tree import message_tree
from tfrecord_io.arrow.row_fault import RowFault
from tfrecord_io.background import ordered
from tfrecord_io.display import and_more, counted
from tfrecord_io.engine.contract import Array, ColumnBuffers
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import SchemaWarning, printable, warn
from tfrecord_io.options import MIB
from tfrecord_io.options.expansion import Expansion
from tfrecord_io.options.record_types import MessageType

_PART_BYTES = MIB  # that are worth a thread
_MOST_SHOWN = 8  # unknown fields in a warning

Columns = Mapping[str, ColumnBuffers]


class MessageBatchBuilder:
    """Makes batches of the one column with payloads; see `tfrecord_io.arrow.decode.batch_builder.BatchBuilder`.

    Parameters
    ----------
    type_ : MessageType
    columns : sequence of str
    max_features : int
    threads : int

    Attributes
    ----------
    schema : pyarrow.Schema
    unknown : Counter
        The fields that were left out of all batches.
    """

    def __init__(self, type_: MessageType, columns: Sequence[str], *, max_features: int, threads: int) -> None:
        self._type, self._threads = type_, threads
        self._tree = message_tree(type_.descriptor, columns, max_features)
        self.schema = pa.schema([field.arrow for field in self._tree.fields])
        self.unknown: Unknown = Counter()

    def counting(self) -> Self:
        """The same, for one read: `unknown` counts what it leaves out."""
        own = copy.copy(self)
        own.unknown = Counter()
        return own

    def batch(
        self, columns: Columns, rows: int, expansion: Expansion | None = None
    ) -> tuple[pa.RecordBatch, RowFault | None]:
        """The batch of `rows` payloads; it ends before the first that does not fit, whose fault is returned, too."""
        (payloads,), expansion = columns.values(), expansion or Expansion()
        offsets, values = payloads.value_offsets, payloads.values
        assert offsets is not None
        assert values is not None
        if not self._tree.fields and not rows:
            return _batch(self.schema, [], 0), None
        room, fault = expansion.room, None
        while True:
            made = self._parts(np.asarray(offsets[: rows + 1]), np.asarray(values), expansion)
            first = next((part for part in made if isinstance(part, RowFault)), None)
            if first is None:
                break
            fault, rows, expansion.room = first, first.row, room
        parts = [part for part in made if not isinstance(part, RowFault)]
        for part in parts:
            self.unknown.update(part[1])
        batches = [_batch(self.schema, arrays, count) for arrays, _, count in parts]
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches), fault

    def _parts(
        self, offsets: Array, values: Array, expansion: Expansion
    ) -> list[tuple[list[pa.Array], Unknown, int] | RowFault]:
        """The columns of runs of payloads, each of which a thread reads."""
        rows = len(offsets) - 1
        count = max(1, min(self._threads, rows, int(offsets[-1] - offsets[0]) // _PART_BYTES))
        bounds = [rows * at // count for at in range(count + 1)]
        tasks: list[Callable[[], tuple[list[pa.Array], Unknown, int] | RowFault]] = [
            partial(self._part, offsets, values, begin, end, expansion) for begin, end in pairwise(bounds)
        ]
        return [task() for task in tasks] if count == 1 else list(ordered(iter(tasks), count))

    def _part(
        self, offsets: Array, values: Array, begin: int, end: int, expansion: Expansion
    ) -> tuple[list[pa.Array], Unknown, int] | RowFault:
        reader = MessageReader(get_engine(), values, expansion)
        own = offsets[begin : end + 1].astype(np.int64)
        try:
            return reader.columns(self._tree, own[:-1], np.diff(own)), reader.unknown, end - begin
        except RowFault as fault:
            return fault.at(begin + fault.row)

    def warn_of_unknown(self, path: str) -> None:
        """Warn of the fields that were left out, if there are any."""
        if not self.unknown:
            return
        most = self.unknown.most_common(_MOST_SHOWN)
        shown = ", ".join(f"{printable(place)} ({counted(count, 'time')})" for place, count in most)
        more = and_more(len(self.unknown) - len(most))
        reason = f"fields were left out that the message '{printable(self._type.name)}' does not have, by number"
        advice = "a newer descriptor may have them"
        warn(f"{printable(path)}: {reason}: {shown}{more}; {advice}", SchemaWarning)


AnyBatchBuilder = BatchBuilder | MessageBatchBuilder


def _batch(schema: pa.Schema, arrays: list[pa.Array], rows: int) -> pa.RecordBatch:
    if arrays:
        return pa.RecordBatch.from_arrays(arrays, schema=schema)
    return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
