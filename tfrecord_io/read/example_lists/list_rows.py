"""Lists of TensorFlow Ranking, ExampleListWithContext, as TFRecord of Examples: a row for each, with its context.

Serialized messages that follow one another are merged when they are parsed: the bytes of a context and of an example
are an Example with the features of both. Nothing is parsed here but the fields of lists, and the names of features.

Tests: tests/plugins/tensorflow/test_from_elwc.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tfrecord_io.base import (
    LIMITS,
    DatasetOptions,
    Expansion,
    OnDamage,
    ProgressMeter,
    ReadOptions,
    check_choice,
    for_cli,
    printable,
)
from tfrecord_io.bytes import Array, Engine, Fault, FieldTag, FrameHeader, Plan, RecordType, get_engine
from tfrecord_io.columns import Projection
from tfrecord_io.errors import DecodeError, SchemaError, TFRecordError
from tfrecord_io.read.call_options import options_from_call
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.derived_records import DerivedRecords
from tfrecord_io.read.example_lists.list_block import CONTEXT, EXAMPLES, PARTS, POSITION, RECORD, ListBlock
from tfrecord_io.store import Origin, Source, SourcePrefetcher

_OTHER_MESSAGE = 'read tf.train.Examples with read_table, or any bytes of tfr.dataset(path, record_type="bytes")'
_OTHER_MESSAGE_CLI = "read tf.train.Examples without --from, or other messages with --record-type bytes"
_PARTS = 'read its parts as two tables: open_elwc(part="examples") and open_elwc(part="context")'
_EXAMPLE_TAG, _CONTEXT_TAG = FieldTag.of(EXAMPLES), FieldTag.of(CONTEXT)
_MOST_ROWS = 4 << 20  # whose records are kept, of the last blocks; of those before, the file is known


class ListRows(DerivedRecords):
    """The rows of lists in files of ExampleListWithContext, of which `part` is read: a row is an Example."""

    RECORD, POSITION = RECORD, POSITION  # names of the columns that are added: the number of the list, that of the row
    PARTS = PARTS

    def __init__(self, files: Sequence[Source], options: ReadOptions, part: str | None) -> None:
        super().__init__(files)
        self._options, self._part = options, part
        self._origins = ListOrigins()
        self._progress = ProgressMeter(options.progress, Source.total(file.size for file in files), "bytes")

    @classmethod
    def resolve(
        cls, path: Any, keywords: dict[str, Any], part: Literal["examples", "context"] | None = None
    ) -> tuple[list[Source], dict[str, Any]]:
        """The rows of lists as a source of Examples, and the keywords with which it is to be read."""
        check_choice("part", part, (None, *PARTS))
        options = options_from_call(DatasetOptions, None, path, **keywords)
        path, options = CallSource(path).resolve_selection(options)
        # Of a dataset that can be opened, the records of lists are bytes.
        is_of_payloads = options.record_type == "bytes" and "record_type" not in keywords
        for name in ("include_file_paths",) if is_of_payloads else ("include_file_paths", "record_type"):
            if getattr(options, name) is not None:
                reason = "is not possible for ExampleListWithContext"
                raise for_cli(TypeError(f"{name}= {reason}"), f"--{name.replace('_', '-')} {reason}")
        advice = "to leave out damaged lists, salvage the files first"
        OnDamage.check(options.on_error, lambda damage: not damage.goes_on, advice)
        sources = CallSource(path).files(options)
        if (partitioned := next((source for source in sources if source.partitions), None)) is not None:
            column = partitioned.partitions[0][0]
            raise ValueError(
                f"'{printable(partitioned.path)}': the column '{printable(column)}' of folders: read one of them"
            )
        records, changed = cls(sources, options, part).to_read(options)
        return records, {**options.changes, "record_type": "example", **changed}

    @staticmethod
    def serialize(examples: Iterable[bytes], context: bytes | None) -> bytes:
        """The payload of a list of serialized Examples; None: it has no context."""
        parts = [_EXAMPLE_TAG.field(example) for example in examples]
        return b"".join(parts if context is None else [*parts, _CONTEXT_TAG.field(context)])

    def frames(self) -> Generator[Array]:
        self._origins.clear()
        self._progress.restart()
        return _ListSplitter(self._options, self._part, self._origins).frames(self.files, self._progress)

    def place(self, record: int) -> tuple[str | None, int | None, int | None] | None:
        return self._origins(record)

    def byte(self, record: int, byte: int) -> int:
        return self._origins.byte(record, byte)


class _ListSplitter:
    """Makes the rows of lists."""

    def __init__(self, options: ReadOptions, part: str | None, origins: ListOrigins) -> None:
        self._options, self._part, self._origins = options, part, origins
        self._engine = get_engine()
        self._names = FeatureNames(options, part, self._engine)
        self._expansion = Expansion(options.limits.expansion_bytes)
        self._lists = 0  # so far, of all files

    def frames(self, sources: Sequence[Source], progress: ProgressMeter) -> Generator[Array]:
        """The framed rows of all files, in pieces."""
        options = self._options
        try:
            with (
                closing(progress),
                SourcePrefetcher(sources) as prefetcher,
                closing(BlockWalker.from_options(prefetcher, options, progress=progress)) as walker,
            ):
                for frames in walker.intact_frames(check_crc=options.check_crc):
                    if (error := (yield from self._block(walker, frames))) is not None:
                        raise error
        except TFRecordError as error:
            self._origins.failed = Origin(error.path, error.record, error.offset)
            raise

    def _block(self, walker: BlockWalker, frames: Engine.Frames) -> Generator[Array, None, Exception | None]:
        """The rows of complete records; returns the error of the first one that cannot be read."""
        engine, error = self._engine, None
        members, fault = engine.members(walker.data, frames, max(EXAMPLES, CONTEXT))
        if fault is not None:
            error = walker.fault_error(fault, message="ExampleListWithContext")
            error.set_hint(_OTHER_MESSAGE, _OTHER_MESSAGE_CLI)
            frames = Engine.Frames(frames.starts[: fault.record], frames.lengths[: fault.record], 0)
        block = ListBlock.from_frames(walker.data, frames, members=members, part=self._part, engine=engine)
        numbers = block.numbers(self._lists, self._part)
        rows = block.rows
        if (name_fault := self._names.check(block)) is not None:
            rows, error = name_fault.rows, self._list_error(walker, block, name_fault)
        sizes = block.sizes(numbers)[:rows]
        self._expansion.add(int(frames.lengths.sum()))
        if len(sizes) and (sizes.max() > LIMITS.MAX_RECORD_BYTES or not self._expansion.take(int(sizes.sum()))):
            rows, error = self._size_error(walker, block, sizes)
        self._lists += len(frames.starts)
        offsets = frames.starts + (walker.offset - FrameHeader.BYTES)
        starts = block.example_starts[:rows] - block.payloads[block.row_lists[:rows]]
        contexts, context_at = block.context_lengths, block.context_offsets
        extents = (block.row_lists[:rows], starts, block.example_lengths[:rows])
        self._origins.add(BlockOrigins(walker.opened.path, walker.record, offsets, contexts, context_at, *extents))
        yield from block.frames(numbers, rows, engine)
        return error

    def _list_error(self, walker: BlockWalker, block: ListBlock, fault: ListFault) -> TFRecordError:
        if fault.fault is not None:
            error = walker.fault_error(fault.fault)
            part = "its context" if fault.example is None else f"its example {fault.example}"
            error.reason = f"{part}: {error.reason}"
            error.set_hint(_OTHER_MESSAGE, _OTHER_MESSAGE_CLI)
            return error
        reason = "the name is used in the context and in the examples"
        if fault.name in (RECORD, POSITION):
            reason = "open_elwc adds a column of this name"
        error = SchemaError(
            reason,
            feature=fault.name,
            hint=f"exclude it with columns=, or {_PARTS}",
            hint_cli=f"exclude it with --columns, or {_PARTS}",
        )
        return self._locate_error(error, walker, block, fault.list)

    def _size_error(self, walker: BlockWalker, block: ListBlock, sizes: Array) -> tuple[int, TFRecordError]:
        """The number of rows within the limits, and the error of the next row."""
        room, totals = self._expansion.room, np.cumsum(sizes)
        row = int(((sizes > LIMITS.MAX_RECORD_BYTES) | (totals > room)).argmax())
        at, size = int(block.row_lists[row]), int(totals[row])
        if sizes[row] > LIMITS.MAX_RECORD_BYTES:
            reason = f"an example and its context have {sizes[row]} bytes, more than a record can have"
            error = DecodeError(reason, expected=LIMITS.MAX_RECORD_BYTES, got=int(sizes[row]))
        else:
            length = int(block.context_lengths[at])
            reason = f"a context of {length} bytes for each example, which takes {size} bytes with the rows before it"
            advice = f"{self._expansion.advice(size)}, or {_PARTS}"
            excess = self._expansion.excess(reason)
            error = DecodeError(excess, expected=room, got=size, hint=advice, of_memory=True)
        return row, self._locate_error(error, walker, block, at)

    def _locate_error(self, error: TFRecordError, walker: BlockWalker, block: ListBlock, at: int) -> TFRecordError:
        """The error, of a list of a block."""
        offset = walker.offset + int(block.payloads[at]) - FrameHeader.BYTES
        error.path, error.record, error.offset = walker.opened.path, walker.record + at, offset
        return error


@dataclass(frozen=True, slots=True)
class ListFault:
    """A list that cannot be read."""

    rows: int  # before the fault
    list: int  # its number in the block
    fault: Fault | None = None  # None: a name that is used twice
    example: int | None = None  # the faulty one
    name: str = ""


class _Names:
    """The names in Examples, whose values are not parsed."""

    def __init__(self, engine: Engine, max_features: int) -> None:
        self._engine = engine
        plan = Plan(
            select=lambda name: False, record_type=RecordType.EXAMPLE, check_crc=False, max_features=max_features
        )
        self._decoder = engine.decoder(plan)
        self.names: set[str] = set()

    def feed(self, data: Array, starts: Array, lengths: Array) -> Fault | None:
        """Add the names in the Examples at these extents, up to the first invalid Example: the fault has its index."""
        framed, count = self._engine.frame_extents(data, starts, lengths, 1), len(starts)
        done = begin = 0
        fault = None
        while done < count and fault is None:
            progress = self._decoder.feed(framed, begin)
            self._decoder.take_columns()
            if progress.fault is not None:
                fault = progress.fault._replace(record=done + progress.fault.record)
            done, begin = done + progress.records, begin + progress.consumed
        if len(self._decoder.new_names) > len(self.names):
            self.names.update(name for name, _ in self._decoder.new_names)
        return fault


class FeatureNames:
    """The names so far, of the columns that are read."""

    def __init__(self, options: ReadOptions, part: str | None, engine: Engine) -> None:
        self._engine, self._limit = engine, options.limits.features
        self._added = {RECORD} if part == "context" else {RECORD, POSITION}
        self._is_read = Projection(options.columns)
        self._contexts, self._examples = (_Names(engine, options.limits.features) for _ in range(2))

    def check(self, block: ListBlock) -> ListFault | None:
        """The first fault of a block, whose names are added."""
        before = set(self._contexts.names), set(self._examples.names)
        faults = []
        if (fault := self._contexts.feed(block.data, block.part_starts, block.part_lengths)) is not None:
            at, start = int(block.part_lists[fault.record]), int(block.part_starts[fault.record])
            faults.append(ListFault(block.first_row(at), at, _move_fault(fault, block, at, start)))
        if (fault := self._examples.feed(block.data, block.example_starts, block.example_lengths)) is not None:
            row = fault.record
            at = int(block.row_lists[row])
            moved = _move_fault(fault, block, at, int(block.example_starts[row]))
            faults.append(ListFault(row, at, moved, row - block.first_row(at)))
        if self._twice(self._contexts.names, self._examples.names):
            faults.append(self._first_name(block, *before))
        return min(faults, key=lambda fault: (fault.rows, fault.list), default=None)

    def _twice(self, contexts: set[str], examples: set[str]) -> set[str]:
        """The names that are used twice."""
        twice = (contexts & examples) | ((contexts | examples) & self._added)
        return {name for name in twice if self._is_read(name)}

    def _first_name(self, block: ListBlock, contexts: set[str], examples: set[str]) -> ListFault:
        """The first list with which a name is used twice, after those with the names `contexts` and `examples`."""
        for at in range(len(block.payloads)):
            block_names = [_Names(self._engine, self._limit) for _ in range(2)]
            of_list, rows = block.part_lists == at, block.row_lists == at
            block_names[0].feed(block.data, block.part_starts[of_list], block.part_lengths[of_list])
            block_names[1].feed(block.data, block.example_starts[rows], block.example_lengths[rows])
            contexts, examples = contexts | block_names[0].names, examples | block_names[1].names
            if twice := self._twice(contexts, examples):
                return ListFault(block.first_row(at), at, name=min(twice))
        raise AssertionError


def _move_fault(fault: Fault, block: ListBlock, at: int, start: int) -> Fault:
    """A fault of a part of a list, which begins at byte `start` of the block, as one of the record."""
    byte = start - int(block.payloads[at]) + fault.byte if fault.byte >= 0 else -1
    return fault._replace(record=at, offset=int(block.payloads[at]) - FrameHeader.BYTES, byte=byte)


@dataclass(frozen=True, slots=True)
class BlockOrigins:
    """The rows of a block of records: arrays by record, or by row."""

    path: str
    record: int  # of the first one
    offsets: Array  # of the records' headers
    contexts: Array  # the bytes of each context
    context_starts: Array  # its offset in the payload; −1 for several parts
    list_of: Array  # by row: the number of the record in the block
    starts: Array  # by row: first byte of the example in the payload
    lengths: Array  # by row: bytes of the example

    @property
    def rows(self) -> int:
        return len(self.list_of)

    def byte(self, row: int, byte: int) -> int:
        """See `tfrecord_io.store.read.source.Origins.byte`: a row has the context, the example, and numbers."""
        at = int(self.list_of[row])
        start, inside = int(self.context_starts[at]), byte - int(self.contexts[at])
        if inside < 0:
            return start + byte if start >= 0 else -1
        return int(self.starts[row]) + inside if inside <= int(self.lengths[row]) else -1


class ListOrigins:
    """The origins of rows; see `tfrecord_io.store.read.source.Origins`."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.failed: Origin | None = None  # where the error is that ended the rows
        self._rows = self._dropped = self._held = 0
        self._first_rows: list[int] = []
        self._blocks: list[BlockOrigins | str] = []  # or the path of a dropped block

    def add(self, block: BlockOrigins) -> None:
        """Add the rows of the next block."""
        self._first_rows.append(self._rows)
        self._blocks.append(block)
        self._rows += block.rows
        self._held += block.rows
        while self._held > _MOST_ROWS and self._dropped < len(self._blocks) - 1:
            dropped = self._blocks[self._dropped]
            assert isinstance(dropped, BlockOrigins)
            self._blocks[self._dropped] = dropped.path
            self._dropped, self._held = self._dropped + 1, self._held - dropped.rows

    def _find(self, row: int) -> tuple[BlockOrigins | str, int]:
        at = bisect_right(self._first_rows, row) - 1
        return self._blocks[at], row - self._first_rows[at]

    def __call__(self, record: int) -> Origin | None:
        if record >= self._rows:
            return self.failed
        block, row = self._find(record)
        if isinstance(block, str):
            return Origin(block, None, None)
        at = int(block.list_of[row])
        return Origin(block.path, block.record + at, int(block.offsets[at]))

    def byte(self, record: int, byte: int) -> int:
        if record >= self._rows:
            return -1
        block, row = self._find(record)
        return -1 if isinstance(block, str) else block.byte(row, byte)
