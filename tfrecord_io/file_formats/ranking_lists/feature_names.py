"""The names of features in contexts and in examples: one that is in both would be one column with two meanings."""

from __future__ import annotations

from dataclasses import dataclass, replace

from tfrecord_io.engine.contract import Array, Engine, Fault, Plan
from tfrecord_io.file_formats.ranking_lists.list_block import POSITION, RECORD, ListBlock
from tfrecord_io.format.framing import HEADER_BYTES
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import ReadOptions
from tfrecord_io.schema.column_selection import Projection


@dataclass(frozen=True, slots=True)
class ListFault:
    """A list that cannot be read."""

    rows: int  # before the fault
    list: int  # its number in the block
    fault: Fault | None = None  # None: a name that is used twice
    example: int | None = None  # the faulty one
    name: str = ""


class _Names:
    """The names in framed Examples, whose values are not parsed."""

    def __init__(self, engine: Engine, max_features: int) -> None:
        plan = Plan(
            select=lambda name: False, record_type=RecordType.EXAMPLE, check_crc=False, max_features=max_features
        )
        self._decoder = engine.decoder(plan)
        self.names: set[str] = set()

    def feed(self, framed: Array, count: int) -> Fault | None:
        """Add the names in `count` Examples, up to the first that is none: its index is that of the fault."""
        done = begin = 0
        fault = None
        while done < count and fault is None:
            progress = self._decoder.feed(framed, begin)
            self._decoder.take()
            if progress.fault is not None:
                fault = replace(progress.fault, record=done + progress.fault.record)
            done, begin = done + progress.records, begin + progress.consumed
        if len(self._decoder.new_names) > len(self.names):
            self.names.update(name for name, _ in self._decoder.new_names)
        return fault


class FeatureNames:
    """The names so far, of the columns that are read."""

    def __init__(self, options: ReadOptions, part: str | None, engine: Engine) -> None:
        self._engine, self._limit = engine, options.max_features
        self._added = {RECORD} if part == "context" else {RECORD, POSITION}
        self._is_read = Projection(options.columns)
        self._contexts, self._examples = (_Names(engine, options.max_features) for _ in range(2))

    def check(self, block: ListBlock) -> ListFault | None:
        """The first fault of a block, whose names are added."""
        before = set(self._contexts.names), set(self._examples.names)
        faults = self._feed(self._contexts, self._examples, block)
        if self._twice(self._contexts.names, self._examples.names):
            faults.append(self._first_name(block, *before))
        return min(faults, key=lambda fault: (fault.rows, fault.list), default=None)

    def _feed(self, contexts: _Names, examples: _Names, block: ListBlock) -> list[ListFault]:
        faults = []
        engine = self._engine
        framed = engine.frame_extents(block.data, block.part_starts, block.part_lengths, 1)
        if (fault := contexts.feed(framed, len(block.parts))) is not None:
            at, start = int(block.parts[fault.record]), int(block.part_starts[fault.record])
            faults.append(ListFault(int(block.rows_before[at]), at, _moved(fault, block, at, start)))
        framed = engine.frame_extents(block.data, block.starts, block.lengths, 1)
        if (fault := examples.feed(framed, block.rows)) is not None:
            row = fault.record
            at = int(block.lists[row])
            moved = _moved(fault, block, at, int(block.starts[row]))
            faults.append(ListFault(row, at, moved, row - int(block.rows_before[at])))
        return faults

    def _twice(self, contexts: set[str], examples: set[str]) -> set[str]:
        """The names that are used twice."""
        twice = (contexts & examples) | ((contexts | examples) & self._added)
        return {name for name in twice if self._is_read(name)}

    def _first_name(self, block: ListBlock, contexts: set[str], examples: set[str]) -> ListFault:
        """The first list with which a name is used twice, after those with the names `contexts` and `examples`."""
        for at in range(len(block.payloads)):
            own = [_Names(self._engine, self._limit) for _ in range(2)]
            self._feed(own[0], own[1], block.only(at))
            contexts, examples = contexts | own[0].names, examples | own[1].names
            if twice := self._twice(contexts, examples):
                return ListFault(int(block.rows_before[at]), at, name=min(twice))
        raise AssertionError


def _moved(fault: Fault, block: ListBlock, at: int, start: int) -> Fault:
    """A fault of a part of a list, which begins at byte `start` of the block, as one of the record."""
    byte = start - int(block.payloads[at]) + fault.byte if fault.byte >= 0 else -1
    return replace(fault, record=at, offset=int(block.payloads[at]) - HEADER_BYTES, byte=byte)
