"""Decode the records of several parts of plain local files side by side, by one decoder, as rows of each are asked for.

A chunk has rows of many parts, a few of each: so many parts take as much memory, and nearly as few steps, as one.
It is for records as they should be: `Irregular` ends the chunks where anything else comes, with all rows before it.

Tests: tests/rows/training/test_interleaved_parts.py and tests/laws/test_order_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfrecord_io.base import MIB, ScanOptions, Selection
from tfrecord_io.bytes import CODECS, Checks, PlainStream, get_engine
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.chunks.chunk import BatchLimit, ChunkDecoder, DecodedChunk, DecodeSettings, RowBudget
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.chunks.segments import FileWindows
from tfrecord_io.store import Block, BlockReader, OpenPlainFile

if TYPE_CHECKING:
    from tfrecord_io.store import Source

_WINDOW_BYTES = MIB // 2  # most bytes that are read at a time: those that are decoded next are still in the caches
_FIRST_BYTES = 64 << 10  # read of a part whose records have no known size
_SPARE = 1.05  # times the mean size of the last records: the next ones differ a little
_ALL = 1 << 31  # records

RunBegin = tuple[str, int, int, int]
"""Path, number of the file, first row and its record index: as in `DecodedChunk.more_files`."""


class Irregular(TFRecordError):
    """Something that the reader of a part has to meet: an error, which it raises, or a compressed file."""


@dataclass(slots=True, eq=False)
class PartOfFiles:
    """The position in the records of one part, which may be of several files."""

    sources: Sequence[Source]
    first_file: int  # the number of the first one among the files of all parts
    skipped: int  # records that are passed before the next one
    left: int | None  # records until the part ends; None: those of all files
    wanted: int = 0  # rows to read next
    file: int = -1  # the one that is read, counted from the first
    windows: FileWindows | None = None  # None between two files
    offset: int = 0  # of the next record
    end: int = 0  # of the part of the file
    record: int = 0  # the next one, counted from the begin of that part
    record_bytes: float = 0.0  # mean size of the last records; 0 if unknown
    ended: bool = False  # True if all rows were read


class InterleavedChunks:
    """Chunks of rows of several parts.

    Set `wanted` of some `parts` before each chunk. A chunk has these rows, or as many as the memory of a chunk has room
    for; of a part with small records it has more, as a chunk of few rows takes as long.
    """

    BATCHES = 4  # as large as which a chunk is, as each part of it takes time of its own
    recovery = None  # no damage is left out

    def __init__(self, parts: Sequence[tuple[Sequence[Source], Selection]], options: ScanOptions) -> None:
        self.check = EmbeddedSchemaCheck(obey=False)
        self.bytes = self.files = 0
        self.parts = list[PartOfFiles]()
        first = 0
        for sources, selection in parts:
            self.parts.append(PartOfFiles(sources, first, selection.offset, selection.limit))
            first += len(sources)
        self.ended = False  # True if all parts have ended
        self._options = options
        self._settings: Callable[[], DecodeSettings] | None = None
        self._buffer = Block.memory(_WINDOW_BYTES + Block.PAGE + Block.SPARE)
        self._next = 0  # the part that the next chunk begins with

    @staticmethod
    def may_read(sources: Sequence[Source], options: ScanOptions) -> bool:
        """True if files may be read so: plain ones of this machine, of which no damaged record is left out."""
        is_plain = options.compression in (CODECS.INFER, CODECS.PLAIN, None)
        is_strict = options.damage.is_strict and options.progress is False
        return is_plain and is_strict and all(map(_is_plain_file, sources))

    def decode_by(
        self, settings: Callable[[], DecodeSettings], filtering: Callable[[], DecodeSettings] | None = None
    ) -> None:
        """See `ChunkReader.decode_by`."""
        self._settings = settings

    def chunks(self, budget: RowBudget) -> Generator[DecodedChunk]:
        """Chunks until all parts have ended. Raises Irregular; a last chunk has the rows before."""
        assert self._settings is not None
        settings = self._settings()
        if settings.plan.unknown == "discover":
            raise Irregular("the parts have to be read one by one")
        budget.fit_to(settings.plan)
        decoder = ChunkDecoder(settings, self.check)
        while not self.ended:
            runs = list[RunBegin]()
            is_regular = self._decode(decoder, runs, budget)
            if runs:
                (path, file, _, record), *more = runs
                chunk = DecodedChunk(path, file, first_record=record, rows=0, columns={}, more_files=more)
                decoder.take(chunk)
                chunk.ends_batch = True
                yield chunk
                del chunk
            if not is_regular:
                raise Irregular("the parts have to be read one by one")

    def close(self) -> None:
        """Close all files."""
        for part in self.parts:
            part.windows = None

    def _decode(self, decoder: ChunkDecoder, runs: list[RunBegin], budget: RowBudget) -> bool:
        """Decode the wanted rows; without any, rows of the next part that has not ended.

        False if they end with something irregular.
        """
        engine_decoder = decoder.engine_decoder
        limit = BatchLimit(engine_decoder, budget.max_bytes, budget.max_integer_bytes)
        while not runs and not self.ended:
            order = [part for part in (*self.parts[self._next :], *self.parts[: self._next]) if not part.ended]
            if not any(part.wanted for part in order):
                order[0].wanted = 1
            most_rows = budget.batch_rows // len(order)  # else a chunk would have many rows of a few parts
            for part in order:  # chunks of one size use the same memory again
                if part.record_bytes:
                    rows = min(int(budget.batch_bytes // len(order) / part.record_bytes), most_rows)
                    part.wanted = max(part.wanted, rows)
            engine_decoder.expect(budget.batch_bytes)
            for part in order:
                while part.wanted and not part.ended:
                    try:
                        outcome = self._decode_part(part, decoder, runs, limit=limit, most_rows=budget.batch_rows)
                    except (OSError, TFRecordError):
                        return False
                    if outcome is not None:  # the chunk ends
                        self._next = self.parts.index(part)
                        return outcome
                part.wanted = 0
            self.ended = all(part.ended for part in self.parts)
        return True

    def _decode_part(
        self, part: PartOfFiles, decoder: ChunkDecoder, runs: list[RunBegin], *, limit: BatchLimit, most_rows: int
    ) -> bool | None:
        """Decode the next records of a part: None if the chunk goes on, False if it ends with something irregular."""
        if not self._open(part):
            return None if part.ended else False
        engine_decoder, source = decoder.engine_decoder, part.sources[part.file]
        wanted = part.wanted if part.left is None else min(part.wanted, part.left)
        data, final = self._window(part, wanted)
        has_room, rows = limit.extend(), engine_decoder.rows
        result = decoder.feed(
            data,
            source.path,
            record=part.record,
            offset=part.offset,
            max_records=min(wanted, most_rows - rows),
            max_bytes=limit.max_bytes,
            final=final,
        )
        if result.records:
            self._add_run(runs, (source.path, part.first_file + part.file, rows, part.record))
            part.record_bytes = result.consumed / result.records
            self._pass(part, result.records, result.consumed)
            part.wanted = max(0, part.wanted - result.records)
            if part.left is not None:
                part.left -= result.records
                part.ended = not part.left
        if result.fault is not None or result.error is not None or result.revision is not None:
            return False
        is_full = result.full or engine_decoder.rows >= most_rows or not (result.records or has_room)
        return True if is_full else None

    @staticmethod
    def _add_run(runs: list[RunBegin], run: RunBegin) -> None:
        """Add a run of rows, unless it goes on with the records of the last one."""
        if runs:
            _, file, row, record = runs[-1]
            if (file, record - row) == (run[1], run[3] - run[2]):
                return
        runs.append(run)

    def _pass(self, part: PartOfFiles, records: int, size: int) -> None:
        """Count the records that were read, and close a file after its last record."""
        part.record += records
        part.offset += size
        self.bytes += size
        if part.offset == part.end:
            part.windows = None
            part.ended = part.file + 1 == len(part.sources)

    def _open(self, part: PartOfFiles) -> bool:
        """True if the next record of a part can be read now; opens the next file for it if none is open."""
        while part.windows is None:
            if part.file + 1 == len(part.sources):
                part.ended = True
                return False
            part.file += 1
            source = part.sources[part.file]
            if source.size == 0:
                continue
            whole = source.whole_file()
            with closing(whole.open_stream(self._options.compression)) as stream:
                file = OpenPlainFile.from_stream(stream) if isinstance(stream, PlainStream) else None
            if file is None:
                return False
            part.windows, part.record = FileWindows(file), 0
            part.offset, part.end = source.span or (0, file.size)
            self.files += 1
            if part.skipped and not self._skip(part):
                return False
        return True

    def _skip(self, part: PartOfFiles) -> bool:
        """Pass records of a file by their headers; False at something irregular."""
        checks, limit = Checks.from_check_crc(self._options.check_crc), self._options.limits.record_bytes
        while part.skipped and part.windows is not None:
            data, final = self._window(part, _ALL)
            frames, fault = get_engine().scan(
                data, max_records=part.skipped, checks=checks, max_record_bytes=limit, final=final
            )
            if fault is not None or not len(frames.starts):
                return False
            part.skipped -= len(frames.starts)
            self._pass(part, len(frames.starts), frames.consumed)
        return True

    def _window(self, part: PartOfFiles, records: int) -> tuple[BlockReader.Buffer, bool]:
        """The next bytes of a part, with about so many records, and True if the file ends with them."""
        assert part.windows is not None
        size = min(_WINDOW_BYTES, int(records * part.record_bytes * _SPARE) or _FIRST_BYTES)
        stop = min(part.offset + size, part.end)
        data, _ = part.windows.window(self._buffer, part.offset, stop, self._options.limits.record_bytes)
        if len(data) > len(self._buffer) - Block.PAGE - Block.SPARE:
            self._buffer = Block.memory(len(data) + len(data) // 4 + Block.PAGE + Block.SPARE)
        data = data[: part.end - part.offset]
        return data, part.offset + len(data) == part.end


def _is_plain_file(source: Source) -> bool:
    """True for a file of this machine that is not compressed by its name."""
    is_file = source.local and source.pipe is None and source.derived is None and source.origin is None
    return is_file and not source.is_file_object and source.size is not None and CODECS.of_path(source.path) is None
