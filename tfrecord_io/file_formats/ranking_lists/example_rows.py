"""ExampleListWithContext as TFRecord of Examples: a row for each, with the features of its context and two numbers.

Serialized messages that follow one another are merged when they are parsed: the bytes of a context and of an example
are an Example with the features of both. Nothing is parsed here but the fields of lists, and the names of features.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial

import numpy as np

from tfrecord_io.engine.contract import MAX_RECORD_BYTES, Array, Frames
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import DecodeError, SchemaError, TFRecordError
from tfrecord_io.file_formats.ranking_lists.feature_names import FeatureNames, ListFault
from tfrecord_io.file_formats.ranking_lists.list_block import CONTEXT, EXAMPLES, POSITION, RECORD, ListBlock
from tfrecord_io.file_formats.ranking_lists.row_origins import BlockRows, ListOrigins
from tfrecord_io.format.expansion import Expansion
from tfrecord_io.format.framing import HEADER_BYTES
from tfrecord_io.options import ReadOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.record_file import RecordFile
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.source import Origin, Source, total

_OTHER_MESSAGE = 'read tf.train.Examples with read_table, or other messages with read_table(record_type="bytes")'
_PARTS = 'read its parts as two tables: from_elwc(part="examples") and from_elwc(part="context")'


class ListRows:
    """The rows of lists; see `tfrecord_io.storage.read.source.DerivedContent`.

    Parameters
    ----------
    sources : sequence of Source
    options : ReadOptions
        How the lists are read, and which columns.
    part : {"examples", "context"} or None
        What a row has: an example, a context, or both.
    """

    def __init__(self, sources: Sequence[Source], options: ReadOptions, part: str | None) -> None:
        self._sources, self._options, self._part = sources, options, part
        self.origins = ListOrigins()
        self._progress = ProgressMeter(options.progress, total(source.size for source in sources), "bytes")

    def open(self) -> RowStream:
        self.origins.clear()
        self._progress.restart()
        return RowStream(_Rows(self._options, self._part, self.origins).frames(self._sources, self._progress))

    def read_once(self) -> None:
        for source in self._sources:
            source.read_once()


class RowStream:
    """A `tfrecord_io.compression.stream.Stream` that consists of pieces."""

    compression: str | None = None

    def __init__(self, pieces: Generator[Array]) -> None:
        self.offset = 0
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readinto(self, buffer: memoryview, /) -> int:
        while not len(self._rest):
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece.data
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self.offset += count
        return count

    def close(self) -> None:
        self._pieces.close()


class _Rows:
    """Makes the rows of lists."""

    def __init__(self, options: ReadOptions, part: str | None, origins: ListOrigins) -> None:
        self._options, self._part, self._origins = options, part, origins
        self._engine = get_engine()
        self._names = FeatureNames(options, part, self._engine)
        self._expansion = Expansion(options.max_expansion)
        self._lists = 0  # so far, of all files

    def frames(self, sources: Sequence[Source], progress: ProgressMeter) -> Generator[Array]:
        """The framed rows of all files, in pieces."""
        options = self._options
        prefetcher = SourcePrefetcher(list(sources))
        open_file = partial(
            RecordFile, compression=options.compression, max_decompression_ratio=options.max_decompression_ratio
        )
        walker = BlockWalker(prefetcher, open_file, max_record_bytes=options.max_record_bytes, progress=progress)
        try:
            while walker.load():
                error = walker.error
                if error is None:
                    frames, fault = walker.frames(self._engine, check_crc=options.check_crc)
                    if len(frames.starts):
                        error = yield from self._block(walker, frames)
                    if error is None and fault is not None:
                        error = walker.fault_error(fault)
                    walker.advance(len(frames.starts), frames.consumed)
                if error is not None:
                    if isinstance(error, TFRecordError):
                        self._origins.failed = Origin(error.path, error.record, error.offset)
                    progress.close()
                    raise walker.fail(error)
                walker.read_on()
            progress.close()
        finally:
            prefetcher.close()
            walker.close()

    def _block(self, walker: BlockWalker, frames: Frames) -> Generator[Array, None, Exception | None]:
        """The rows of complete records; returns the error of the first one that cannot be read."""
        engine, error = self._engine, None
        members, fault = engine.members(walker.data, frames, max(EXAMPLES, CONTEXT))
        if fault is not None:
            error = walker.fault_error(fault)
            error.advice = _OTHER_MESSAGE
            frames = Frames(frames.starts[: fault.record], frames.lengths[: fault.record], 0)
        block = ListBlock.of(walker.data, frames, members, self._part, engine)
        numbers = block.numbers(self._lists, self._part)
        rows = block.rows
        if (found := self._names.check(block)) is not None:
            rows, error = found.rows, self._list_error(walker, block, found)
        sizes = block.sizes(numbers)[:rows]
        self._expansion.add(int(frames.lengths.sum()))
        if len(sizes) and (sizes.max() > MAX_RECORD_BYTES or not self._expansion.take(int(sizes.sum()))):
            rows, error = self._size_error(walker, block, sizes)
        self._lists += len(frames.starts)
        assert walker.file is not None
        offsets = frames.starts + (walker.offset - HEADER_BYTES)
        starts = block.starts[:rows] - block.payloads[block.lists[:rows]]
        contexts, context_at = block.context_lengths, block.context_at
        extents = (block.lists[:rows], starts, block.lengths[:rows])
        self._origins.add(BlockRows(walker.file.path, walker.record, offsets, contexts, context_at, *extents))
        yield from block.frames(numbers, rows, engine)
        return error

    def _list_error(self, walker: BlockWalker, block: ListBlock, found: ListFault) -> TFRecordError:
        if found.fault is not None:
            error = walker.fault_error(found.fault)
            part = "its context" if found.example is None else f"its example {found.example}"
            error.reason = f"{part}: {error.reason}"
            error.advice = _OTHER_MESSAGE
            return error
        reason = "the name is used in the context and in the examples"
        if found.name in (RECORD, POSITION):
            reason = "from_elwc adds a column of this name"
        error = SchemaError(reason, feature=found.name, advice=f"exclude it with columns=, or {_PARTS}")
        return self._located(error, walker, block, found.list)

    def _size_error(self, walker: BlockWalker, block: ListBlock, sizes: Array) -> tuple[int, TFRecordError]:
        """How many rows there is room for, and the error of the next one."""
        room = self._expansion.room
        row = int(((sizes > MAX_RECORD_BYTES) | (np.cumsum(sizes) > room)).argmax())
        at, size = int(block.lists[row]), int(np.cumsum(sizes)[row])
        if sizes[row] > MAX_RECORD_BYTES:
            reason = f"an example and its context have {sizes[row]} bytes, more than a record can have"
            error = DecodeError(reason, expected=MAX_RECORD_BYTES, got=int(sizes[row]))
        else:
            length = int(block.context_lengths[at])
            reason = f"a context of {length} bytes for each example, which takes {size} bytes with the rows before it"
            advice = f"{self._expansion.advice(size)}, or {_PARTS}"
            excess = self._expansion.excess(reason)
            error = DecodeError(excess, expected=room, got=size, advice=advice, of_memory=True)
        return row, self._located(error, walker, block, at)

    def _located(self, error: TFRecordError, walker: BlockWalker, block: ListBlock, at: int) -> TFRecordError:
        """The error, of a list of a block."""
        assert walker.file is not None
        offset = walker.offset + int(block.payloads[at]) - HEADER_BYTES
        error.path, error.record, error.offset = walker.file.path, walker.record + at, offset
        return error
