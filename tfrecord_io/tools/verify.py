"""Verify files: check every checksum, and parse every record."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from tfrecord_io.display import LINE_WIDTH, Report, Summary, byte_size, counted, error_dict
from tfrecord_io.engine.contract import Decoder, Fault, Plan
from tfrecord_io.engine.fault_messages import not_examples
from tfrecord_io.engine.select import get_engine
from tfrecord_io.errors import TFRecordError, printable
from tfrecord_io.format.kinds import RECORD_TYPES, Text
from tfrecord_io.keyword_docs import check_keywords
from tfrecord_io.options import MAX_RECORD_BYTES, StorageOptions
from tfrecord_io.progress import Progress
from tfrecord_io.read.chunks.block_walker import Step, frame_step, walk_file
from tfrecord_io.storage.paths.resolve import resolve_inputs
from tfrecord_io.storage.read.prefetch import SourcePrefetcher
from tfrecord_io.storage.read.source import Source, checksum
from tfrecord_io.typing import Compression, InputPath, RecordTypeName

_PARSED_BYTES = 1 << 20  # of payloads parsed at a time, so that records of many names take little memory
_MAX_EXPANSION = 64 << 20


@dataclass(frozen=True, slots=True)
class FileCheck:
    """The result of `verify` for one file."""

    path: str
    records: int  # number of intact records before the error, if any
    bytes: int  # of these records, uncompressed
    record_type: str  # as which records were parsed; "bytes": only framing was checked
    error: TFRecordError | None = None

    def to_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "error": error_dict(self.error)}


@dataclass(frozen=True, slots=True, repr=False)
class VerifyReport(Report):
    """The result of `verify`; it prints as a line, and a line for each bad file."""

    files: tuple[FileCheck, ...]

    @property
    def ok(self) -> bool:
        return all(file.error is None for file in self.files)

    @property
    def records(self) -> int:
        return sum(file.records for file in self.files)

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        files = [file.to_dict() for file in self.files]
        return {"ok": self.ok, "records": self.records, "bytes": self.bytes, "files": files}

    def _summary(self) -> Summary:
        bad = [file for file in self.files if file.error is not None]
        files = printable(self.files[0].path) if len(self.files) == 1 else counted(len(self.files), "file")
        state = f"{len(bad):,} bad" if bad else "good"
        title = f"{files}: {state}, {counted(self.records, 'intact record')}, {byte_size(self.bytes)}"
        return Summary(
            title, lines=[printable(f"{type(file.error).__name__}: {file.error}", LINE_WIDTH) for file in bad]
        )


@check_keywords
def verify(
    path: InputPath,
    *,
    record_type: RecordTypeName | None = None,
    compression: Compression | None = "infer",
    max_record_bytes: int = MAX_RECORD_BYTES,
    allow_missing_shards: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    progress: bool = False,
) -> VerifyReport:
    """Check every record of files, and compare the files with their manifest; bad data is reported, not raised.

    Parameters
    ----------
    path : str, os.PathLike, list or binary file object
        As in `read_tfrecord`.
    record_type : {"example", "sequence_example", "bytes"}, optional
        Expected type of the records; "bytes" checks only framing. By default, records must parse as Examples or
        SequenceExamples.
    compression, max_record_bytes, allow_missing_shards, storage_options, filesystem, progress
        As in `read_tfrecord`.

    Returns
    -------
    VerifyReport
        ``ok``, ``records``, ``bytes``, and a `FileCheck` per file with its first error.

    Examples
    --------
    >>> import tfrecord_io as tfr
    >>> _ = tfr.write_tfrecord({"x": [1, 2, 3]}, "three.tfrecord")
    >>> report = tfr.verify("three.tfrecord")
    >>> report.ok, report.records
    (True, 3)
    """
    if record_type not in (*RECORD_TYPES, "bytes"):
        raise ValueError(f"record_type={record_type!r}: expected one of {', '.join(map(repr, RECORD_TYPES))}, 'bytes'")
    storage = StorageOptions(storage_options, filesystem)
    sources = resolve_inputs(path, storage, allow_missing_shards=allow_missing_shards, check_sizes=False)
    sizes = [source.size for source in sources]
    total = None if None in sizes else sum(filter(None, sizes))
    with closing(Progress(progress, total, "B")) as bar, SourcePrefetcher(sources) as prefetched:
        return VerifyReport(
            tuple(_check(source, record_type, compression, max_record_bytes, bar) for source in prefetched)
        )


def _check(
    source: Source, record_type: str | None, compression: str | None, max_record_bytes: int, progress: Progress
) -> FileCheck:
    engine = get_engine()
    decoder: Decoder | None = None
    if record_type == "bytes":
        step = frame_step(engine, check_crc=True, max_record_bytes=max_record_bytes)
    else:
        plan = Plan(
            text=Text.NO,
            record_type=RECORD_TYPES[record_type],
            max_record_bytes=max_record_bytes,
            max_expansion=_MAX_EXPANSION,
            names_in_both=True,
        )
        decoder = engine.decoder(plan)
        step = _parse_step(decoder)
    error: TFRecordError | None = None
    if source.shard is None:
        source.read_once()
    try:
        records, size = walk_file(source, step, compression, progress)
    except TFRecordError as fault:
        records, size, error = fault.records_intact or 0, fault.offset or 0, fault
    if error is None and decoder is not None:
        error = not_examples(decoder.counts, source.path, is_declared=record_type is not None)
        if error is not None:
            records = size = 0
    if error is None and source.shard is not None:
        error = _manifest_error(source, records)
    parsed_as = "bytes" if decoder is None else "sequence_example" if decoder.sequence else "example"
    return FileCheck(source.path, records, size, parsed_as, error)


def _manifest_error(source: Source, records: int) -> TFRecordError | None:
    """An error if records, size or checksum of a file differ from its manifest."""
    assert source.shard is not None
    try:
        size, crc = checksum(source, get_engine().crc32c)
        source.shard.check_records(records, source.path)
        source.shard.check_size(size, source.path)
        source.shard.check_checksum(crc, source.path)
    except TFRecordError as error:
        return error
    return None


def _parse_step(decoder: Decoder) -> Step:
    """A step that parses all values of some payloads, and discards them."""

    def step(data: Any, final: bool) -> tuple[int, int, Fault | None]:
        progress = decoder.feed(data, max_bytes=_PARSED_BYTES, final=final)
        decoder.take()
        return progress.records, progress.consumed, progress.fault

    return step
