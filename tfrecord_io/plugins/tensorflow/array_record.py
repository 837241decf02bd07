"""ArrayRecord files, of Grain and TFDS: their records are those of TFRecord files, and are copied as bytes.

The package `array_record` reads and writes them. It says of a file that it cannot read only that it cannot.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from tfrecord_io import Limits, RecordReader
from tfrecord_io.apps.file_formats.choose_formats import format_of_source
from tfrecord_io.apps.lazy_dataset import dataset
from tfrecord_io.base import ExportOptions
from tfrecord_io.columns import TfdsInfo
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.kit import Array, ProgressMeter, ReadOptions, check_choice, check_integer, for_cli, needs, printable
from tfrecord_io.plugins.tensorflow.tensorflow_rows import ARRAY_RECORD
from tfrecord_io.read import CallSource, DerivedRecords
from tfrecord_io.store import FileName, Listing, Location, Source, resolve_inputs
from tfrecord_io.typing import FileMode, Path, WriteReport
from tfrecord_io.write import FrameSink

COMPRESSIONS = ("zstd", "brotli", "snappy", "uncompressed")
_PLACES = {"storage_options", "filesystem"}
_READ_BYTES = 4 << 20  # to read at once, estimated from earlier records
_FIRST_RECORDS = 64
_OPEN = "readahead_buffer_size:1M,max_parallelism:0"


def _module() -> ModuleType:
    with needs("array_record", "ArrayRecord"):
        from array_record.python import array_record_module
    return array_record_module


# ---- reading


def array_record_rows(paths: Any, keywords: dict[str, Any]) -> tuple[list[Source], dict[str, Any]]:
    """Present ArrayRecord files as one TFRecord file, with the keywords to read it."""
    options = ReadOptions.from_keywords(keywords)
    rows = ArrayRecordFiles(_sources(paths, options), options)
    _module()
    records, changed = rows.to_read(options)
    return records, {**keywords, **changed}


def array_record_source(file: Source, begin: int, end: int | None, length: int | None) -> Source:
    """The records of an ArrayRecord file from number `begin` to `end`, by default to its last, as a TFRecord file.

    `length` is the number of records that its dataset states.
    """
    return _Records([file], begin, end, length).source_like(file, None if end is None else end - begin)


class _Records(DerivedRecords):
    """Records of an ArrayRecord file."""

    def __init__(self, files: Sequence[Source], begin: int, end: int | None, length: int | None) -> None:
        super().__init__(files)
        (self.file,) = files
        self.begin, self.end, self.length = begin, end, length
        self.can_be_read_again = self.file.can_be_read_again

    def read_once(self) -> None:
        """The file can be read any number of times."""

    def place(self, record: int) -> tuple[str, int, None]:
        return self.file.path, self.begin + record, None

    def frames(self) -> Generator[Array]:
        with _local_copy(self.file) as file:
            if self.length is not None:
                TfdsInfo.check_count(self.file.path, len(_OpenedFile(file, self.file.path, 0)), self.length)
            for payloads in _payloads(
                file, self.file.path, max_record_bytes=Limits().record_bytes, begin=self.begin, end=self.end
            ):
                yield self.frame(payloads)

    def __reduce__(self) -> tuple[Any, ...]:
        return self.reduction(self.begin, self.end, self.length)


def _sources(paths: Any, options: ReadOptions) -> Sequence[Source]:
    """The files that paths mean; of a folder those whose names are of ArrayRecord files, if there are any."""
    if isinstance(paths, list):
        paths = [file for path in paths for file in _files_in_folder(path, options) or [path]]
    else:
        paths = _files_in_folder(paths, options) or paths
    return resolve_inputs(paths, options.storage, allow_missing_shards=options.allow_missing_shards)


def _files_in_folder(path: Any, options: ReadOptions) -> list[Source]:
    if not isinstance(path, str):
        return []
    fs, name = Location.of(path, options.storage)
    folder = fs.entry(name)
    if folder is None or not folder.directory:
        return []
    names = (
        entry
        for entry in fs.listing(folder.name)
        if not entry.directory and not FileName.parse(entry.basename).is_hidden
    )
    files = [entry for entry in names if format_of_source(entry.basename) is ARRAY_RECORD]
    return Listing(fs, folder.name, files).shards(path, complete=not options.allow_missing_shards)


class ArrayRecordFiles(DerivedRecords):
    """The records of ArrayRecord files."""

    def __init__(self, sources: Sequence[Source], options: ReadOptions) -> None:
        super().__init__(sources)
        self.can_be_read_again = all(file.can_be_read_again for file in sources)
        self._options = options
        self._progress = ProgressMeter(options.progress, Source.total(source.size for source in sources), "bytes")
        self._firsts: list[int] = []  # the number of the first record of each file that was opened

    def read_once(self) -> None:
        """Files can be read any number of times."""

    def place(self, record: int) -> tuple[str, int, None] | None:
        for source, first in reversed(list(zip(self.files, self._firsts, strict=False))):
            if record >= first:
                return source.path, record - first, None
        return None

    def frames(self) -> Generator[Array]:
        self._firsts.clear()
        self._progress.restart()
        return self._frames_of_files()

    def _frames_of_files(self) -> Generator[Array]:
        before = 0
        for source in self.files:
            self._firsts.append(before)
            with _local_copy(source) as file:
                for payloads in _payloads(file, source.path, self._options.limits.record_bytes):
                    before += len(payloads)
                    yield self.frame(payloads)
            self._progress.advance(source.size or 0)
        self._progress.close()


@contextmanager
def _local_copy(source: Source) -> Iterator[str]:
    """The local path of a file for array_record; a file in a bucket is copied."""
    if source.local and source.pipe is None:
        yield source.path
        return
    with tempfile.TemporaryDirectory(prefix="array_record-") as folder_name:
        copy = os.path.join(folder_name, "records")
        with source.open_file() as remote, open(copy, "wb") as file:
            shutil.copyfileobj(remote, file, _READ_BYTES)
        yield copy


def _payloads(
    file: str, path: str, max_record_bytes: int, begin: int = 0, end: int | None = None
) -> Generator[list[bytes]]:
    """Records of a file, in batches; near damage one by one, so that all earlier records are returned."""
    at, step = begin, _FIRST_RECORDS
    count = len(_OpenedFile(file, path, 0))
    count = count if end is None else min(count, end)
    while at < count:
        opened = _OpenedFile(file, path, at)
        while at < count:
            try:
                payloads = opened.read(at, min(at + step, count))
            except CorruptRecordError:
                if step == 1:
                    raise
                step = 1
                break  # a reader that has failed fails on
            largest = max(map(len, payloads))
            if largest > max_record_bytes:
                reason = (
                    f"a record has {largest} bytes, more than tfr.dataset(…, limits=tfr.Limits(record_bytes="
                    f"{max_record_bytes}))"
                )
                raise CorruptRecordError(reason, path=path, record=at)
            yield payloads
            at += len(payloads)
            step = max(1, min(2 * step, _READ_BYTES // (sum(map(len, payloads)) // len(payloads) + 1)))


class _OpenedFile:
    """An open file; errors name its `path`."""

    def __init__(self, file: str, path: str, record: int) -> None:
        module = _module()
        self._path = path
        with self._faults_at(record):
            self._reader = module.ArrayRecordReader(file, _OPEN)
            self._check()

    def __len__(self) -> int:
        return int(self._reader.num_records())

    def read(self, begin: int, end: int) -> list[bytes]:
        """The records [begin, end); CorruptRecordError if they are not all there."""
        with self._faults_at(begin):
            payloads: list[bytes] = self._reader.read(begin, end)
            self._check()
            if len(payloads) != end - begin:
                raise RuntimeError(f"{len(payloads)} records instead of {end - begin}")
        return payloads

    def _check(self) -> None:
        if not self._reader.ok():
            raise RuntimeError("array_record cannot read it")

    @contextmanager
    def _faults_at(self, record: int) -> Iterator[None]:
        """Raise errors of array_record as those of a record."""
        try:
            yield
        except (IndexError, RuntimeError, ValueError, MemoryError) as error:
            reason = f"the ArrayRecord file is damaged, or is none: {printable(str(error))}"
            raise CorruptRecordError(reason, path=self._path, record=record, records_intact=record) from error


# ---- writing


def to_array_record(
    source: Any,
    target: Path,
    *,
    group_size: int = 1,
    record_compression: str = "zstd",
    mode: FileMode | None = None,
    **keywords: Any,
) -> WriteReport:
    """Write the records of TFRecord files, as they are, to an ArrayRecord file.

    `group_size` records are compressed together: 1 is the fastest for random access, more take less space.
    `record_compression` is one of `COMPRESSIONS`, also with a level, ``"zstd:19"``. TypeError: a keyword that chooses
    or changes columns, as records are copied without being parsed.
    """
    group_size = check_integer("group_size", group_size, 1, 2**31 - 1)
    name, _, level = record_compression.partition(":")
    check_choice("record_compression", name, COMPRESSIONS)
    if level and not (level.isascii() and level.isdecimal() and len(level) < 3):
        raise ValueError(f"record_compression={record_compression!r}: expected a level, as in 'zstd:19'")
    places = {key: keywords.pop(key) for key in _PLACES & keywords.keys()}
    storage = ExportOptions.from_keywords(places)
    if keywords.pop("record_type", None) not in (None, "bytes"):
        keywords["record_type"] = None
    progress = keywords.pop("progress", False)
    for keyword in keywords.keys() - (CallSource.FRAME_KEYWORDS - {"threads"}):
        reason = "does not apply to ArrayRecord files, to which records are copied as they are"
        option = {"filters": "where", "schema_overrides": "type"}.get(keyword, keyword.replace("_", "-"))
        raise for_cli(TypeError(f"{keyword}= {reason}"), f"--{option} {reason}")
    options = f"group_size:{group_size},{record_compression}"
    # A dataset has the storage of its files itself, and so have the records of another format.
    paths = [path for path in CallSource(source).paths if not isinstance(path, Source)]
    of_files = {} if CallSource(source).datasets else Location.storage_for(paths, storage.source).keywords
    sink = FrameSink(target, storage.target, mode=mode)
    try:
        folder = os.path.dirname(target) if Location.of(os.fspath(target), storage.target).is_local else None
        with (
            tempfile.TemporaryDirectory(prefix=".array_record-", dir=folder or None) as stage,
            RecordReader(dataset(source, **keywords, **of_files)) as records,
            ProgressMeter(progress, None, "records") as meter,
        ):
            written = os.path.join(stage, "records")
            count = _write(written, options, records=records, meter=meter, target=os.fspath(target))
            with open(written, "rb") as file:
                while data := file.read(_READ_BYTES):
                    sink.write_bytes(data)
    except BaseException:
        sink.discard()
        raise
    sink.commit()
    return WriteReport(os.fspath(target), count, bytes=sink.bytes, compression=name, columns=("record",), rounded={})


def _write(path: str, options: str, records: Iterable[bytes], meter: ProgressMeter, target: str) -> int:
    """Write all records to the file `path`, which becomes `target`; returns their number."""
    module, count = _module(), 0
    try:
        writer = module.ArrayRecordWriter(path, options)
    except (ValueError, RuntimeError) as error:
        raise ValueError(f"group_size= or record_compression=: {error}") from None
    for record in records:
        try:
            writer.write(record)
        except RuntimeError as error:  # as where the disk is full
            raise OSError(errno.EIO, f"array_record: {error}", target) from error
        count += 1
        meter.advance(1)
    try:
        writer.close()
    except RuntimeError as error:
        raise OSError(errno.EIO, f"array_record: {error}", target) from error
    reader = module.ArrayRecordReader(path, _OPEN)
    complete = reader.ok() and reader.num_records() == count
    reader.close()
    if not complete:
        raise OSError(errno.EIO, f"array_record did not write all of {count} records: is the disk full?", target)
    return count
