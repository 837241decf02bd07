"""Chunks of files of which some are not opened, as a column index has all values that are read.

Tests: tests/laws/test_indexed_values_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from itertools import groupby
from typing import Any

from tfrecord_io.base import ScanOptions, Selection
from tfrecord_io.read.chunks.chunk import DecodedChunk, DecodeSettings, RowBudget
from tfrecord_io.read.chunks.chunk_reader import ChunkReader
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck
from tfrecord_io.read.index.column_search import FileValues
from tfrecord_io.read.index.picked_records import PickedSource
from tfrecord_io.store import Source


class IndexedChunks:
    """The chunks of files, in order: those with values are made of these, the others are decoded by a `ChunkReader`.

    It reads as a `ChunkReader` does under ``on_error="raise"`` or ``"stop"``. Each of the files has a source; an offset
    ends in the first one. `whole`: all rows are held at once.
    """

    recovery = None

    def __init__(
        self, files: Sequence[PickedSource], options: ScanOptions, selection: Selection, *, whole: bool = False
    ) -> None:
        self.check = EmbeddedSchemaCheck(obey=False)
        self.bytes = self.files = 0  # of the files that were opened
        self._files, self._options, self._selection, self._whole = files, options, selection, whole
        self._settings: tuple[Any, ...] = ()  # arguments of `ChunkReader.decode_by`
        self._reader: ChunkReader | None = None  # the open one

    def decode_by(
        self, settings: Callable[[], DecodeSettings], filtering: Callable[[], DecodeSettings] | None = None
    ) -> None:
        """See `ChunkReader.decode_by`."""
        self._settings = settings, filtering

    def chunks(self, budget: RowBudget) -> Generator[DecodedChunk]:
        """All chunks in order, as `budget` allows."""
        number = 0
        for has_values, run in groupby(self._files, lambda file: file.values is not None):
            files = list(run)
            skipped = self._options.damage.split_offset(self._selection.offset)[0] if number == 0 else 0
            if has_values:
                for at, file in enumerate(files, number):
                    assert file.source is not None
                    assert file.values is not None
                    yield from self._chunks_of_values(
                        file.source, file.values, number=at, skipped=skipped, budget=budget
                    )
                    skipped = 0
            else:
                yield from self._decode_files(
                    [file.source for file in files if file.source is not None], number, budget
                )
            number += len(files)
            if not budget.max_rows:
                return

    def _chunks_of_values(
        self, source: Source, values: FileValues, number: int, skipped: int, budget: RowBudget
    ) -> Generator[DecodedChunk]:
        if values.embedded is not None:
            self.check.check(source.path, 0, 0, values.embedded)  # which the plan covers
        record = skipped
        for batch in values.table.slice(skipped).to_batches():
            begin = 0
            while rows := min(len(batch) - begin, budget.max_rows):
                chunk = DecodedChunk(
                    source.path, number, first_record=record, rows=rows, columns={}, batch=batch.slice(begin, rows)
                )
                chunk.ends_batch = self._whole or rows == budget.batch_rows - budget.rows
                begin, record = begin + rows, record + rows
                budget.take(chunk)
                yield chunk

    def _decode_files(self, sources: Sequence[Source], number: int, budget: RowBudget) -> Generator[DecodedChunk]:
        selection = self._selection if number == 0 else self._selection._replace(offset=0)
        self._reader = reader = ChunkReader(sources, self._options, selection, whole=self._whole)
        reader.check = self.check
        if self._settings:
            reader.decode_by(*self._settings)
        read, files = self.bytes, self.files
        for chunk in reader.chunks(budget):
            chunk.file += number
            chunk.more_files = [(path, file + number, row, at) for path, file, row, at in chunk.more_files]
            self.bytes, self.files = read + reader.bytes, files + reader.files
            yield chunk
            if chunk.ends_read:
                return
            del chunk  # only the consumer keeps it while the next one is decoded
        self.bytes, self.files = read + reader.bytes, files + reader.files
        reader.close()

    def close(self) -> None:
        """Close the open file; no more chunks."""
        if self._reader is not None:
            self._reader.close()
