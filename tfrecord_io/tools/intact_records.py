"""The intact records of a damaged file, as whole frames, and what is left out between them."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from typing import Any

from tfrecord_io.compression.recovering_stream import Gap
from tfrecord_io.engine.contract import Plan
from tfrecord_io.engine.fault_messages import is_other_format
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import CorruptRecordError, SkippedRegion, TFRecordError
from tfrecord_io.format.framing import FRAME_BYTES
from tfrecord_io.format.kinds import RecordType
from tfrecord_io.options import FrameOptions
from tfrecord_io.progress import ProgressMeter
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.record_file import RecordFile
from tfrecord_io.read.chunks.recovery import MOST_REGIONS, Recovery
from tfrecord_io.storage.read.source import Source


class IntactRecords:
    """The intact records of one file, in order.

    Attributes
    ----------
    records, bytes : int
        Number of the records so far, and their bytes, with frames and uncompressed.
    compression : str or None
    regions : list of SkippedRegion
        What was left out, the first 1,000 regions; damaged records that follow one another are one. A region of a
        compressed file that cannot be read begins and ends at the same uncompressed byte; its reason has the bytes of
        the file.
    region_count : int
        Number of all regions.
    lost : int
        Bytes of all regions.
    unread : int
        Number of bytes of a compressed file that cannot be read.
    lost_first : bool
        Whether the first record of the file was left out.
    """

    def __init__(self, source: Source, options: FrameOptions, progress: ProgressMeter | None = None) -> None:
        self.records = self.bytes = self.unread = self.lost = self.region_count = 0
        self.regions: list[SkippedRegion] = []
        self.compression: str | None = None
        self.lost_first = False
        self._source, self._options = source, options
        self._file: RecordFile | None = None
        self._gaps = 0  # of the compressed file that were noted
        longest, recovery = options.max_record_bytes, Recovery("skip")
        self._walker = BlockWalker(
            iter([source]), self._open, max_record_bytes=longest, progress=progress, recover=recovery
        )

    def open(self) -> None:
        """Open the file, so that `compression` is known."""
        self._walker.open_next()

    def frames(self) -> Generator[tuple[Any, Any]]:
        """Yield (bytes of whole frames, their sizes): they are valid until the next step.

        Raises
        ------
        CorruptRecordError
            The file is of another format, and no record was found in it.
        OSError
            The file cannot be read.
        """
        engine, walker = get_engine(), self._walker
        other_format: TFRecordError | None = None
        try:
            while walker.load():
                if walker.error is not None:
                    raise walker.error
                self._note_gaps(walker.offset)
                frames, fault = walker.frames(engine, check_crc=True)
                if len(frames.starts):
                    self.lost_first |= not self.records and self.region_count > 0
                    self.records += len(frames.starts)
                    self.bytes += frames.consumed
                    yield walker.data[: frames.consumed], frames.lengths + FRAME_BYTES
                error = None if fault is None else walker.fault_error(fault)
                walker.advance(len(frames.starts), frames.consumed)
                if error is None:
                    walker.read_on()
                    continue
                if is_other_format(error):
                    other_format = error
                    error = CorruptRecordError(error.reason, path=error.path, record=0, offset=0)
                if not walker.recover(error):
                    raise error
                if error.region is not None:
                    self._add(error.region)
        finally:
            walker.close()
        self._note_gaps(None)
        if other_format is not None and not self.records:
            raise other_format

    def _open(self, source: Source) -> RecordFile:
        ratio = self._options.max_decompression_ratio
        self._file = RecordFile(source, self._options.compression, recover=True, max_decompression_ratio=ratio)
        self.compression = self._file.compression
        return self._file

    def _add(self, region: SkippedRegion) -> None:
        last = self.regions[-1] if self.regions else None
        self.lost += region.bytes or 0
        if last is not None and last.end == region.begin and last.bytes and region.bytes:
            self.regions[-1] = replace(last, end=region.end)
        else:
            self.region_count += 1
            if len(self.regions) < MOST_REGIONS:
                self.regions.append(region)

    def _note_gaps(self, offset: int | None) -> None:
        """Note what was left out of a compressed file before an uncompressed offset; None: the file's end."""
        gaps: list[Gap] = [] if self._file is None else self._file.gaps
        for gap in gaps[self._gaps :]:
            if offset is not None and gap.offset > offset:
                break
            region = SkippedRegion(
                self._source.path, gap.offset, gap.offset, str(gap), self._walker.record, "CompressionError"
            )
            self._add(region)
            self.unread += gap.end - gap.begin
            self._gaps += 1


def is_message(frame: Any) -> bool:
    """Whether a record parses as an Example or SequenceExample."""
    plan = Plan(unknown="skip", record_type=RecordType.DETECT)
    return get_engine().decoder(plan).feed(frame).fault is None
