"""Read files block by block and decode their records into chunks, on one thread or several, in order.

A `ChunkReader` decodes a file in the first of these ways that applies: many small files together (`_small_files`),
segments of a large plain file on all threads (`_files`), or one block after the other (`read`).

Tests: tests/read/test_reader.py and tests/laws/test_small_file_laws.py.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from tfrecord_io.base import LIMITS, ScanOptions, Selection, cached_property
from tfrecord_io.bytes import CODECS, Fault, FaultCode, FeatureColumns, FrameHeader, Layout, Plan, Text, get_engine
from tfrecord_io.errors import FeatureTypeError, TFRecordError
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.chunks.chunk import (
    MAX_BATCH_BYTES,
    BatchLimit,
    ChunkDecoder,
    DecodedChunk,
    DecodeSettings,
    FeedResult,
    KnownRecords,
    RowBudget,
    first_record_settings,
    is_little,
)
from tfrecord_io.read.chunks.embedded_schemas import EmbeddedSchemaCheck, SchemaRevision
from tfrecord_io.store import OpenPlainFile, Source, SourcePrefetcher, Sources

if TYPE_CHECKING:  # a read of a small intact file needs none of these
    from tfrecord_io.base import ProgressMeter, WorkerPool
    from tfrecord_io.read.chunks.parallel_file_decoder import FileDecoder, Position
    from tfrecord_io.read.chunks.recovery import Recovery
    from tfrecord_io.read.chunks.segmented_files import SegmentedFiles, SegmentFeed

_SAMPLED_RECORDS = 100  # whose mean size stands for that of the records of a batch
_FEW_FILES = 64
_FEW_ROWS = 1000  # of a read that a limit ends so early that its blocks are small
_SMALLER = 16  # times: the blocks of a read of few rows


def reads_on(selection: Selection) -> bool:
    """True if files are requested far ahead, as many rows are read."""
    return selection.limit is None or selection.limit > _FEW_ROWS


class ChunkReader:
    """Decodes the records of files. A read that starts again passes on its `progress` and its `prefetcher`.

    Unless `ahead`, nothing behind the current block is read, as only a sample is decoded. `whole`: all rows are held at
    once.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        options: ScanOptions,
        selection: Selection = Selection.ALL,
        *,
        prefetcher: SourcePrefetcher | None = None,
        progress: ProgressMeter | None = None,
        ahead: bool = True,
        whole: bool = False,
    ) -> None:
        self._settings: Callable[[], DecodeSettings] = partial(DecodeSettings, Plan())
        self._filtering: Callable[[], DecodeSettings] | None = None  # replaces these
        self.check = EmbeddedSchemaCheck(obey=False)  # it and the `settings` may be replaced between two chunks
        self._sources = sources
        self._options, self._selection = options, selection
        self._ahead, self._whole = ahead, whole
        self._prefetcher = prefetcher or SourcePrefetcher(sources, stream=reads_on(selection))
        if progress is None and options.progress is not False:
            from tfrecord_io.base import ProgressMeter

            progress = ProgressMeter(options.progress, Sources.of(sources).bytes, "bytes")
        self.recovery: Recovery | None = None  # goes on after damage, if that is allowed
        if options.damage.goes_on:
            from tfrecord_io.read.chunks.recovery import Recovery

            self.recovery = Recovery(options.on_error, sources)
        self._walker = BlockWalker(
            self._prefetcher,
            self._open,
            max_record_bytes=options.limits.record_bytes,
            progress=progress,
            recover=self.recovery,
            check_crc=options.check_crc,
        )
        self._to_skip, _ = options.damage.split_offset(selection.offset)
        joins = whole and selection.limit is None and self.recovery is None
        self._joins_small = joins and options.compression in (CODECS.INFER, CODECS.PLAIN, None)
        self._first: tuple[Source, memoryview] | None = None  # the first file and its content, if that was read
        self._segmented: SegmentedFiles | None = None  # where threads decode parts of batches
        self._feed: SegmentFeed | None = None  # of the current file
        self._last_bytes = 0  # payload bytes of the last chunk, if a limit ended it

    @cached_property
    def _is_little(self) -> bool:
        """True if all files are local, not compressed by their names, and together not worth another thread."""
        sources = Sources.of(self._sources)
        size = sources.bytes if sources.are_local else None
        if size is None or not is_little(size):
            return False
        return not any(map(CODECS.of_path, map(attrgetter("path"), self._sources)))

    @property
    def settings(self) -> DecodeSettings:
        return (self._filtering or self._settings)()

    @settings.setter
    def settings(self, settings: DecodeSettings) -> None:
        self._settings, self._filtering = lambda: settings, None

    def decode_by(
        self, settings: Callable[[], DecodeSettings], filtering: Callable[[], DecodeSettings] | None = None
    ) -> None:
        """Set `settings`, which are asked for when there is something to decode; `filtering`: by a prefilter."""
        self._settings, self._filtering = settings, filtering

    @property
    def bytes(self) -> int:
        """Uncompressed bytes of the records that were read."""
        return self._walker.bytes

    @property
    def files(self) -> int:
        """Number of files opened."""
        return self._walker.number + 1

    def restart(self) -> ChunkReader:
        """Replace this reader by one that starts again; data from a network is not requested twice."""
        prefetcher = self._prefetcher if self._prefetcher.rewind() else None
        if prefetcher is not None:
            self._prefetcher = SourcePrefetcher([])
        progress, self._walker.progress = self._walker.progress, None  # stays as it is
        self.close()
        if progress is not None:
            progress.restart()
        return ChunkReader(
            self._sources,
            self._options,
            self._selection,
            prefetcher=prefetcher,
            progress=progress,
            ahead=self._ahead,
            whole=self._whole,
        )

    def close(self) -> None:
        """Close the open file; no more chunks."""
        if self._walker.progress is not None:
            self._walker.progress.close()
        self._prefetcher.close()  # first: the thread that reads ahead may wait for a request that this cancels
        self._walker.close()

    def peek(self) -> tuple[bool, SchemaRevision | None]:
        """Decode record 0 of the first file without consuming it.

        Returns whether it is a SequenceExample, and the embedded schema that it carries.
        """
        walker, decoder = self._walker, ChunkDecoder(first_record_settings(self._options), self.check)
        source = next(walker.next_sources(), None) if self._joins_small and not self._to_skip else None
        data = None if source is None else _content_of_small(source)
        if source is not None and data is not None:
            result = decoder.feed(data, source.path, 0, 0, max_records=1)
            self._first = source, data
            if result.fault is None and result.error is None:
                return decoder.engine_decoder.sequence, result.revision
        revision = None
        while walker.load() and walker.error is None and walker.number == 0:
            result = self._feed_block(decoder, max_records=1)
            if result.error is not None:
                raise result.error
            revision = result.revision
            if result.records or revision is not None or result.fault is not None:
                break
            walker.read_on()
        return decoder.engine_decoder.sequence, revision

    def decoder(self, known: KnownRecords | None = None) -> ChunkDecoder:
        """A decoder for the current settings, of records that come after those `known`."""
        if known is None:
            return ChunkDecoder(self.settings, self.check)
        decoder = ChunkDecoder(known.applied_to(self.settings), self.check)
        decoder.engine_decoder.know(known.names)
        return decoder

    def read(
        self,
        decoder: ChunkDecoder,
        max_rows: int,
        max_bytes: int,
        *,
        begun: bool = False,
        max_integer_bytes: int | None = None,
    ) -> DecodedChunk | None:
        """Decode at most `max_rows` and `max_bytes` of payloads from one file; None at the end of the files.

        With `max_integer_bytes`, the integers in lists may not take more than that either; see `BatchLimit`.

        A chunk that does not end a batch is short because its file ended. The first record of a batch may be larger
        than `max_bytes`; where the batch was `begun` by earlier chunks, such a record makes a chunk without rows that
        ends it. A chunk also ends where a damaged part of the file is left out, as its records are consecutive.
        """
        walker = self._walker
        if not max_rows or not (self._begin_segments() or self._load()):
            return None
        chunk = DecodedChunk(walker.opened.path, walker.number, first_record=walker.record, rows=0, columns={})
        engine_decoder = decoder.engine_decoder
        engine_decoder.expect(min(max_bytes, self._expected_bytes(max_rows)))
        limit = BatchLimit(engine_decoder, max_bytes, max_integer_bytes)
        while walker.file is not None:
            if walker.error is not None:
                chunk.error = walker.error
                break
            if self._feed is not None:
                chunk.ends_batch = self._feed.fill(engine_decoder, max_rows, limit, begun=begun)
                if chunk.ends_batch:
                    break
                self._feed = None
                continue
            if walker.block is not None:
                self._decode_block(decoder, chunk, max_rows, limit, begun=begun)
                if chunk.ends_read or chunk.ends_batch:
                    break
            walker.read_on()
        if chunk.error is not None and self._recovers(chunk.error):
            chunk.error = None
        if chunk.error is not None:
            walker.fail(chunk.error)
            self.close()
        decoder.take(chunk)
        self._last_bytes = chunk.payload_bytes if chunk.ends_batch else 0
        return chunk

    def _decode_block(
        self, decoder: ChunkDecoder, chunk: DecodedChunk, max_rows: int, limit: BatchLimit, *, begun: bool
    ) -> None:
        """Decode records of the current block for a chunk, until that ends, or no whole record is left; see `read`."""
        walker, engine_decoder = self._walker, decoder.engine_decoder
        while True:
            if begun and not engine_decoder.rows and walker.next_length() > limit.max_bytes:
                chunk.ends_batch = True
                return
            left = max_rows - engine_decoder.rows
            result = self._feed_block(decoder, max_records=left, max_bytes=limit.max_bytes)
            chunk.error, chunk.revision = result.error, result.revision
            if result.fault is not None:
                chunk.error = self._fault_error(result.fault)
            walker.advance(result.records, result.consumed)
            if chunk.ends_read:
                return
            chunk.full = result.full
            is_full = engine_decoder.rows >= max_rows or chunk.full
            if is_full or walker.splits_record or not limit.extend():
                chunk.ends_batch = is_full or not walker.splits_record
                return

    def _fault_error(self, fault: Fault) -> TFRecordError:
        settings, goes_on = self.settings, self.recovery is not None
        if goes_on and settings.contradicts_sample:
            fault = self._fault_beside(fault)
        may_be_left_out = goes_on and fault.code is FaultCode.KIND
        contradicts_sample = settings.contradicts_sample and not may_be_left_out
        return self._walker.fault_error(fault, contradicts_sample=contradicts_sample, plan=settings.plan)

    def _fault_beside(self, fault: Fault) -> Fault:
        """Where a record contradicts the sample: another fault of it, because of which it was not in the sample."""
        if fault.code not in (FaultCode.VALUE_COUNT, FaultCode.NOT_TEXT):
            return fault
        plan, data = self.settings.plan, self._walker.data[fault.offset :]
        columns = tuple(column._replace(layout=Layout.ANY, text=Text.NO) for column in plan.columns)
        decoder = get_engine().decoder(plan._replace(columns=columns, unknown="skip"))
        first_fault = decoder.feed(data[: FrameHeader(data[: FrameHeader.BYTES]).frame_size]).fault
        return fault if first_fault is None else first_fault._replace(record=fault.record, offset=fault.offset)

    def _recovers(self, error: Exception) -> bool:
        """True if the walk goes on after the cause of an error."""
        if self.recovery is None:
            return False
        plan = self.settings.plan
        if isinstance(error, FeatureTypeError) and error.feature not in {column.name for column in plan.columns}:
            return False  # it contradicts an earlier record, not a declared type
        return not self.check.is_of_foreign_feature(error) and self._walker.recover(error)

    def chunks(self, budget: RowBudget) -> Generator[DecodedChunk, None, None]:
        """All further chunks in order, as `budget` allows."""
        if budget.is_whole:
            yield from self._whole_chunks(budget)
            return
        budget.fit_to(self.settings.plan)
        decoder = self.decoder()
        has_few = budget.remaining is not None and budget.remaining <= _FEW_ROWS
        # The few parts of a small batch would only wait for each other.
        is_small = self._is_little or has_few or budget.max_bytes <= LIMITS.block_bytes
        knows_columns = self.settings.plan.unknown != "discover"
        has_parts = self._options.thread_count > 1 and not is_small and knows_columns
        with ExitStack() as segments:
            if has_parts:
                from tfrecord_io.read.chunks.parallel_file_decoder import MOST_PARTS
                from tfrecord_io.read.chunks.segments import segment_pool

                pool = segments.enter_context(segment_pool(self._options.thread_count, MOST_PARTS))
                self._segmented = segments.enter_context(self._files(pool, budget, KnownRecords()))
            while chunk := self.read(
                decoder,
                budget.max_rows,
                budget.max_bytes,
                begun=budget.rows > 0,
                max_integer_bytes=budget.max_integer_bytes,
            ):
                budget.take(chunk)
                ends_read = chunk.ends_read  # the caller may give it another error
                yield chunk
                if ends_read:
                    return
                del chunk  # only the consumer keeps it while the next one is decoded
        if budget.remaining == 0:
            self.close()

    def _files(self, pool: WorkerPool, budget: RowBudget, known: KnownRecords) -> SegmentedFiles:
        """The segments of the files: chunks of a whole read, else parts of batches."""
        from tfrecord_io.read.chunks.parallel_file_decoder import FileDecoder, SegmentRows
        from tfrecord_io.read.chunks.segmented_files import SegmentedFiles

        if budget.is_whole:
            rows, max_bytes = SegmentRows.JOINED if budget.joins else SegmentRows.CHUNKS, budget.batch_bytes
        else:
            rows, max_bytes = SegmentRows.PARTS, MAX_BATCH_BYTES

        def decoder(file: OpenPlainFile, position: Position) -> FileDecoder:
            settings, check = self.settings, self.check
            return FileDecoder(
                file, settings, check=check, known=known, pool=pool, position=position, max_bytes=max_bytes, rows=rows
            )

        return SegmentedFiles(
            self._walker, self._sources, pool, decoder, decompress_ahead=budget.is_whole, joins_little=self._joins_small
        )

    def _whole_chunks(self, budget: RowBudget) -> Generator[DecodedChunk, None, None]:
        """All further chunks of a whole read: those of plain files in segments, the others in order."""
        known_records, decoder = KnownRecords(), None
        yield from self._small_chunks(known_records, budget)
        is_over = self._walker.file is None and self.files == len(self._sources)
        if is_over or not self._open_next():
            self.close()
            return
        from tfrecord_io.read.chunks.segments import segment_pool

        with segment_pool(self._options.thread_count) as pool, self._files(pool, budget, known_records) as segmented:
            while self._open_next():
                for chunk in segmented.chunks() if pool.threads or not budget.joins else ():
                    decoder = None  # it does not know the names of this chunk
                    budget.take(chunk)
                    yield chunk
                if self._walker.file is not None:
                    segmented.look_ahead()
                    decoder = decoder or self.decoder(known_records)
                    following = self.read(decoder, budget.max_rows, budget.max_bytes, begun=budget.rows > 0)
                    if following is None:
                        return
                    known_records.add(following)
                    budget.take(following)
                    ends_read = following.ends_read
                    yield following
                    if ends_read:
                        return
                for chunk in self._small_chunks(known_records, budget):
                    decoder = None
                    yield chunk
        self.close()

    def _small_chunks(self, known: KnownRecords, budget: RowBudget) -> Iterator[DecodedChunk]:
        """The chunks of the next files, as long as these are decoded together."""
        while (chunk := self._small_files(known, budget)) is not None:
            known.add(chunk)
            budget.take(chunk)
            yield chunk

    def _small_files(self, known: KnownRecords, budget: RowBudget, most: int | None = None) -> DecodedChunk | None:
        """Decode the rows of the next files together, as long as files are small, local and plain; None if none is.

        Each file is read by one request. The rows end before a file with anything but whole records that agree with the
        rows so far: such a file is examined where files are read one by one. At most `most` files are taken, or as many
        as were read before: a reader that stops early reads twice as many files as it needs.
        """
        walker = self._walker
        if self._to_skip or not self._joins_small or walker.file is not None or self.files == len(self._sources):
            return None
        settings = known.applied_to(self._settings())  # by a prefilter, few records take long
        decoder = ChunkDecoder(settings, self.check)
        if known.names:
            decoder.engine_decoder.know(known.names)
        files, size = list[tuple[str, int, int, int]](), 0
        for source in islice(walker.next_sources(), most or max(_FEW_FILES, self.files)):
            first, self._first = self._first, None
            data = first[1] if first is not None and first[0] is source else _content_of_small(source)
            if data is None or len(data) > budget.max_bytes - size:
                break
            row = decoder.engine_decoder.rows
            if decoder.feed(data, source.path, 0, 0).consumed < len(data):
                return self._small_files(known, budget, len(files)) if files else None
            files.append((source.path, self.files + len(files), row, 0))
            size += len(data)
        if not files:
            return None
        (path, number, *_), *more = files
        chunk = decoder.take(DecodedChunk(path, number, first_record=0, rows=0, columns={}, more_files=more))
        if settings.plan.splits and FeatureColumns.facts_of(chunk.columns)[:, FeatureColumns.Fact.HAS_OTHERS].any():
            self._joins_small = False  # a contradiction
            return None
        walker.pass_files(len(files), size)
        return chunk

    def _begin_segments(self) -> bool:
        """True if segments have the next rows; opens the next file if none is open."""
        if self._feed is None and self._segmented is not None and self._open_next():
            file = self._segmented.begin()
            if file is not None:
                from tfrecord_io.read.chunks.segmented_files import SegmentFeed

                self._feed = SegmentFeed(file, self._segmented, self._walker)
                if self._walker.block is not None:  # its memory is not needed
                    self._walker.seek(file.position.record, file.position.offset)
        return self._feed is not None

    def _open_next(self) -> bool:
        return self._load() if self._to_skip else self._walker.open_next()

    def _load(self) -> bool:
        if self._to_skip:
            records, self._to_skip = self._to_skip, 0
            from tfrecord_io.read.chunks.count_frames import skip_records

            skip_records(self._walker, records, self._options.thread_count)
        if self._walker.load():
            return True
        self.close()
        return False

    def _feed_block(self, decoder: ChunkDecoder, *, max_records: int, max_bytes: int = -1) -> FeedResult:
        walker = self._walker
        return decoder.feed(
            walker.data,
            walker.opened.path,
            walker.record,
            walker.offset,
            max_records=max_records,
            max_bytes=max_bytes,
            final=walker.final,
        )

    def _expected_bytes(self, max_rows: int) -> int:
        """An estimate of the next chunk's payload bytes; 0 if unknown. A larger one costs memory: see `Arena`."""
        walker = self._walker
        source = self._sources[walker.number]
        if source.size is None or walker.opened.compression is not None:
            return self._last_bytes
        if self._feed is not None:
            remaining = source.size - self._feed.position.offset
        else:
            remaining = source.size - (0 if walker.block is None else walker.offset - source.begin)
        if self._is_little:
            return remaining
        expected = self._last_bytes or max_rows * self._next_record_bytes()
        return min(remaining, expected * 5 // 4) if expected else remaining

    def _next_record_bytes(self) -> int:
        """The mean payload of some of the next records; 0 if unknown."""
        if self._feed is not None:
            return self._feed.record_bytes()
        if self._walker.block is None:
            return 0
        frames, _ = self._walker.frames(get_engine(), _SAMPLED_RECORDS)
        return int(frames.lengths.mean()) if len(frames.lengths) else 0

    def _open(self, source: Source) -> RecordFile:
        options = self._options
        is_file = bool(source.size)  # not a pipe or a file object
        ahead = self._ahead and options.thread_count > 1 and is_file and not self._is_little
        is_long = self._ahead and reads_on(self._selection)
        return RecordFile(
            source,
            options.compression,
            block_bytes=LIMITS.block_bytes if is_long else -(-LIMITS.block_bytes // _SMALLER),
            ahead=ahead,
            in_segments=self._whole,
            recover=self.recovery is not None,
            asks=True,
            max_decompression_ratio=options.limits.decompression_ratio,
        )


def _content_of_small(source: Source) -> memoryview | None:
    """All bytes of a small, whole, local file, in one request; None if it is anything else."""
    size = source.size or 0
    if not (source.is_whole_file and source.origin is None and size and is_little(size)):
        return None
    try:
        with closing(source.open()) as raw:
            count = raw.readinto(buffer := memoryview(bytearray(size + 1)))  # one more: it may have grown
    except OSError:
        return None
    return buffer[:size] if count == size else None
