"""Files in, units of decoded columns out: block by block, on one thread or on several, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from queue import SimpleQueue

from tfrecord_io.engine.contract import Fault, Frames, Plan
from tfrecord_io.errors import TFRecordError
from tfrecord_io.format.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, payload_length
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import MIB, ReadOptions
from tfrecord_io.progress import Progress
from tfrecord_io.read.chunk import ChunkDecoder, DecodedChunk, DecodeSettings, DecodeTask
from tfrecord_io.read.record_reader import RecordFile
from tfrecord_io.storage.read.block_reader import Block, BlockReader
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.source import Source

_BLOCK_BYTES = 4 * MIB
_READ_AHEAD = 2  # threads: one reads and decompresses, one decodes; with more, one reads and the others decode
_SMALL_BLOCK_BYTES = MIB // 4  # for a look at the first records,
_FEW_ROWS = 1000  # so many at most


class ChunkReader:
    """Walks through the files and decodes them.

    Parameters
    ----------
    sources : list of Source
    options : ReadOptions
    setup : DecodeSettings
        May be replaced between two units.
    upcoming : SourcePrefetcher, optional
        The sources, where some of them have been asked for.
    """

    def __init__(
        self,
        sources: list[Source],
        options: ReadOptions,
        setup: DecodeSettings,
        upcoming: SourcePrefetcher | None = None,
    ) -> None:
        self.setup = setup
        self.bytes = 0  # uncompressed bytes of the records that were read
        self.files = 0  # that were opened
        self._sources = sources
        self._options = options
        self._file: RecordFile | None = None
        self._block: Block | None = None
        self._begin = 0  # byte of the block at which decoding goes on
        self._record = 0  # its record in the file
        self._upcoming = upcoming or SourcePrefetcher(
            sources, stream=options.limit is None or options.limit > _FEW_ROWS
        )
        self._skip = options.offset
        self._left = options.limit  # rows that may still be read
        self._error: Exception | None = None  # to be told behind the rows before it
        self._last_bytes = 0  # payload bytes of the last unit that a limit ended
        sizes = [source.size for source in sources]
        self._progress = Progress(options.progress, None if None in sizes else sum(filter(None, sizes)), "B")
        self._fresh = False  # each block has a buffer of its own

    def again(self, setup: DecodeSettings) -> ChunkReader:
        """A reader that begins anew, in place of this one; what came over a network is not asked for twice."""
        rewound = self._upcoming.rewind()
        kept = self._upcoming
        if rewound:
            self._upcoming = SourcePrefetcher([])
        self.close()
        return ChunkReader(self._sources, self._options, setup, kept if rewound else None)

    def close(self) -> None:
        """Close the open file; no more units."""
        self._progress.close()
        self._left = 0
        self._block = None
        self._upcoming.close()  # first: the thread that reads ahead may wait for what is cancelled by this
        if self._file is not None:
            self._file.close()
            self._file = None

    def peek(self) -> bool:
        """Decode record 0 of the first file and forget it: what it carries is met before anything is planned.

        Gives whether it is a SequenceExample.
        """
        skip, left, self._skip, self._left = self._skip, self._left, 0, None
        options = self._options
        plan = Plan(
            unknown="skip",
            record_type=RecordType.DETECT,
            check_crc=options.check_crc,
            max_record_bytes=options.max_record_bytes,
        )
        setup, self.setup = self.setup, replace(self.setup, plan=plan)
        worker = self.worker()
        try:
            while self._load() and self._error is None and self.files == 1:
                assert self._block is not None
                assert self._file is not None
                worker.locate(self._file.path, 0, 0)
                progress = worker.decoder.feed(self._block.data, max_records=1, final=self._block.final)
                if progress.records or progress.fault is not None:
                    break
                self._refill()
        finally:
            self.setup, self._skip, self._left = setup, skip, left
        if skip and self._file is not None:
            self._pass_over()
        return worker.decoder.sequence

    def worker(self) -> ChunkDecoder:
        """A decoder for the setup as it is now."""
        return ChunkDecoder(self.setup)

    def read(self, worker: ChunkDecoder, max_rows: int, max_bytes: int, *, begun: bool = False) -> DecodedChunk | None:
        """Decode up to so many rows and payload bytes of one file; None at the end of the files.

        A unit that does not end a batch is short because its file ended. A first record may be larger than `max_bytes`,
        but not where the batch was `begun` by units before: then the unit has no rows and ends the batch.
        """
        if not self._load():
            return None
        unit = self._new_unit()
        decoder = worker.decoder
        decoder.expect(min(max_bytes, self._to_come()))
        while self._file is not None:
            if self._error is not None:
                unit.error = self._error
                break
            if self._block is not None:
                if not decoder.rows:
                    unit.first_record = self._record  # a refill may have passed over some
                if begun and not decoder.rows and self._next_length() > max_bytes:
                    unit.ends_batch = True
                    break
                wanted = max_rows if self._left is None else min(max_rows, decoder.rows + self._left)
                unit.error = self._feed(worker, wanted - decoder.rows, max_bytes)
                unit.ends_batch = decoder.rows >= wanted or not self._rest_is_cut()
                if unit.error is not None or unit.ends_batch:
                    break
            self._refill()
        if unit.error is not None:
            self.close()
        worker.take(unit)
        self._last_bytes = unit.payload_bytes if unit.ends_batch else 0
        return unit

    def _to_come(self) -> int:
        """Payload bytes that the next unit will have at most, as far as one knows: 0 if one does not."""
        assert self._file is not None
        source = self._sources[self.files - 1]
        if source.size is None or self._file.compression is not None:
            return self._last_bytes
        left = source.size - (0 if self._block is None else self._block.start + self._begin - source.begin)
        return min(left, self._last_bytes * 5 // 4) if self._last_bytes else left

    def units(
        self, threads: int, max_rows: int, max_bytes: int, rows: int = 0, size: int = 0
    ) -> Generator[DecodedChunk, None, None]:
        """All units from here on, in order; batches of so many rows and bytes end with one that says so.

        `rows` and `size` are those of the batch that units before have begun.
        """
        if threads > _READ_AHEAD:
            yield from self._parallel(threads - 1, max_rows, max_bytes, rows, size)
            return
        worker = self.worker()
        while (unit := self.read(worker, max_rows - rows, max_bytes - size, begun=rows > 0)) is not None:
            yield unit
            rows, size = (0, 0) if unit.ends_batch else (rows + unit.rows, size + unit.payload_bytes)

    def _parallel(
        self, threads: int, max_rows: int, max_bytes: int, rows: int, size: int
    ) -> Generator[DecodedChunk, None, None]:
        workers: SimpleQueue[ChunkDecoder] = SimpleQueue()
        for _ in range(threads):
            workers.put(self.worker())
        pending: deque[tuple[Future[DecodedChunk], RecordFile, Block | None]] = deque()
        if self._block is not None:  # its buffer is the reader's own, and will be used again
            self._block = replace(self._block, data=self._block.data.copy())
        self._fresh = True
        pool = ThreadPoolExecutor(threads, thread_name_prefix="tfrecord_io")
        try:
            while True:
                while len(pending) <= threads and self._load():
                    file = self._file
                    assert file is not None
                    job, whole = self._cut(max_rows - rows, max_bytes - size, begun=rows > 0)
                    unit = job.unit
                    rows, size = (0, 0) if unit.ends_batch else (rows + unit.rows, size + unit.payload_bytes)
                    pending.append((pool.submit(job.run, workers), file, whole))
                if not pending:
                    return
                future, file, done = pending.popleft()
                unit = future.result()
                if done is not None:
                    assert isinstance(file.blocks, BlockReader)
                    file.blocks.release(done)
                if unit.error is not None:
                    self.close()
                yield unit
                if unit.error is not None:
                    return
        finally:
            for future, _, _ in pending:
                future.cancel()
            pool.shutdown(
                wait=False
            )  # the garbage collector may be who runs this, anywhere: to wait for threads there can be forever

    def _cut(self, max_rows: int, max_bytes: int, *, begun: bool) -> tuple[DecodeTask, Block | None]:
        """The next whole records of the block, as `read` takes them, for a thread; with the block itself once it is used up."""
        unit = self._new_unit()
        if self._error is not None:
            unit.error, self._error = self._error, None
            self.close()
            return DecodeTask(unit, None, 0, self.setup), None
        assert self._block is not None
        block, begin = self._block, self._begin
        wanted = max_rows if self._left is None else min(max_rows, self._left)
        frames, fault = self._scan(wanted)
        rows, consumed = len(frames.starts), frames.consumed
        fitting = int(frames.lengths.cumsum().searchsorted(max_bytes, side="right"))
        if fitting < rows:
            rows = max(fitting, 0 if begun else 1)
            consumed = int(frames.starts[rows - 1] + frames.lengths[rows - 1]) + FOOTER_BYTES if rows else 0
        else:
            unit.error = None if fault is None else self._to_error(fault)
        unit.rows, unit.payload_bytes = rows, int(frames.lengths[:rows].sum())
        unit.ends_batch = rows >= wanted or fitting < len(frames.starts)
        job = DecodeTask(unit, block.data[begin : begin + consumed], block.start + begin, self.setup)
        self._moved(rows, consumed)
        if unit.error is not None:
            self.close()
            return job, None
        used_up = not unit.ends_batch or self._begin == len(block.data)
        if used_up:
            self._refill()
        return job, block if used_up else None

    def _load(self) -> bool:
        """Make `_block` one that has bytes to decode, or have an error to tell; False at the end of the files."""
        while self._left is None or self._left > 0:
            if self._error is not None or (self._block is not None and self._begin < len(self._block.data)):
                return True
            if self._file is None:
                source = next(self._upcoming, None)
                if source is None:
                    break
                ahead = self._options.thread_count == _READ_AHEAD and bool(source.size)  # no pipe, nobody's file object
                self._file = RecordFile(
                    source, self._options.compression, block_bytes=self._block_bytes(source), ahead=ahead
                )
                self.files += 1
                self._record = 0
            self._refill()
        self.close()
        return False

    def _block_bytes(self, source: Source) -> int:
        """Size of a file's blocks: small for a look at its start, for threads large, as long as each has several."""
        options = self._options
        if options.limit is not None and options.limit <= _FEW_ROWS:
            return _SMALL_BLOCK_BYTES
        if options.thread_count <= _READ_AHEAD:
            return _BLOCK_BYTES
        share = (source.size or 0) // (4 * options.thread_count)
        return min(max(share, _BLOCK_BYTES // 4), 4 * _BLOCK_BYTES)

    def _refill(self) -> None:
        """The next block of the file without the records that `offset` leaves out, or the end of the file."""
        assert self._file is not None
        blocks = self._file.blocks
        if self._block is not None:
            blocks.consume(self._begin)
        self._begin = 0
        try:
            self._block = (
                blocks.fresh_block() if self._fresh and isinstance(blocks, BlockReader) else blocks.next_block()
            )
        except (TFRecordError, OSError) as error:
            if isinstance(error, TFRecordError):
                error.record = error.records_intact = self._record
            self._error = error
            self._block = None
            return
        if self._block is None:
            self._file.close()
            self._file = None
        elif self._skip:
            self._pass_over()

    def _pass_over(self) -> None:
        """Leave out the records that `offset` says: by their lengths, unread."""
        if self._block is None:
            return
        frames, fault = self._scan(self._skip)
        self._skip -= len(frames.starts)
        if fault is not None:
            self._error = self._to_error(fault)
        self._moved(len(frames.starts), frames.consumed, skipped=True)

    def _scan(self, max_records: int) -> tuple[Frames, Fault | None]:
        assert self._block is not None
        return self.setup.engine.scan(
            self._block.data[self._begin :],
            max_records=max_records,
            check_crc=False,
            max_record_bytes=self._options.max_record_bytes,
            final=self._block.final,
        )

    def _feed(self, worker: ChunkDecoder, max_records: int, max_bytes: int) -> Exception | None:
        assert self._block is not None
        assert self._file is not None
        worker.locate(self._file.path, self._record, self._block.start + self._begin)
        try:
            progress = worker.decoder.feed(
                self._block.data[self._begin :], max_records=max_records, max_bytes=max_bytes, final=self._block.final
            )
        except TFRecordError as error:
            return error
        misfit = None if progress.fault is None else self._to_error(progress.fault)
        self._moved(progress.records, progress.consumed)
        return misfit

    def _moved(self, records: int, consumed: int, *, skipped: bool = False) -> None:
        self._record += records
        self._begin += consumed
        self.bytes += consumed
        self._progress.advance(consumed)
        if self._left is not None and not skipped:
            self._left -= records

    def _to_error(self, fault: Fault) -> Exception:
        """The exception for a fault of a call on the bytes from here on."""
        assert self._file is not None
        assert self._block is not None
        return self._file.error(
            fault,
            record=self._record,
            offset=self._block.start + self._begin,
            data=self._block.data[self._begin :],
            contradicts_sample=self.setup.contradicts_sample,
            plan=self.setup.plan,
        )

    def _new_unit(self) -> DecodedChunk:
        assert self._file is not None
        return DecodedChunk(self._file.path, self.files - 1, self._record, 0, {})

    def _rest_is_cut(self) -> bool:
        """Whether the block's rest is less than a record, so that decoding stopped for want of bytes."""
        assert self._block is not None
        rest = self._block.data[self._begin :]
        return len(rest) < HEADER_BYTES or len(rest) < self._next_length() + FRAME_BYTES

    def _next_length(self) -> int:
        """What the next record's header says its length is; −1 where it is cut."""
        assert self._block is not None
        header = self._block.data[self._begin : self._begin + HEADER_BYTES]
        return -1 if len(header) < HEADER_BYTES else payload_length(header)
