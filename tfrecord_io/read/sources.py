"""Resolve the source of a call: a path, a file object, a dataset or a piece of one, or a list of those.

A path is found by `tfrecord_io.store.paths.resolve`. A dataset, as a `Scan`, has its files already, its options
(`options_from_call` brings them to a call) and a selection. Calls that read rows narrow the scan itself
(`resolve_source` in `source_resolution`). Calls that go through records get files which have the selected
records only (`record_sources`), and calls that change or check files get their paths (`CallSource` in `call_source`).
Where a dataset states what a call does not take, that is an error, when the options of the call are made.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Options, ReadOptions, ScanOptions, Selection, StorageOptions, TransferOptions
from tfrecord_io.bytes import Array, FrameHeader, get_engine
from tfrecord_io.columns import EmbeddedSchema, Projection
from tfrecord_io.errors import TFRecordError
from tfrecord_io.read.added_columns import AddedColumns
from tfrecord_io.read.call_options import PACE, PLACES, add_path_column, differing
from tfrecord_io.read.chunks.block_walker import BlockWalker
from tfrecord_io.read.chunks.recovery import Recovery
from tfrecord_io.read.reader import open_as_it_is
from tfrecord_io.read.scan import Scan
from tfrecord_io.store import Location, Origin, Source, SourcePrefetcher

AnyScan = TypeVar("AnyScan", bound=Scan)
AnyOptions = TypeVar("AnyOptions", bound=Options)
_STATED = tuple(field.name for field in fields(ScanOptions) if field.name not in PACE | PLACES)


def resolve_selection(
    source: Any, options: AnyOptions, *, whole: bool = False, keeps_filter: bool = False
) -> tuple[Any, AnyOptions]:
    """Resolve the source of a call to files and a selection: a dataset without a schema becomes its files.

    A dataset without a schema is thus read as its path would be. A dataset with a schema becomes its files, too, if the
    call has further options for reading, or if the read is `whole` and the schema was taken from the first rows only;
    with `keeps_filter` not if it has a filter, whose rows are found under its schema.
    Several parts of one dataset become one scan of their rows. ValueError if the call has further options for reading,
    and both the call and the dataset select rows or columns: no single read does that.
    """
    source, options = Scan.unwrap(source), add_folder_types(source, options)
    if isinstance(source, list | tuple) and isinstance(options, ReadOptions) and _are_of_one_dataset(source):
        return unite_parts(*source), options.changed(columns=None) if source[0].chooses_columns else options
    if not isinstance(source, Scan) or source.origin is None or isinstance(options, TransferOptions):
        return source, options
    opened, selected = source.origin.options, source.origin.selection
    names = _STATED if isinstance(options, ReadOptions) else ("on_error",)
    more = [
        name for name in names if hasattr(options, name) and not _is_same(getattr(options, name), getattr(opened, name))
    ]
    if source.has_schema:
        infers = whole and source.is_of_first_rows
        if not (infers or more) or not source.is_as_stated:
            return source, options
    of_files = _complete_columns(options)
    if selected == Selection.ALL:
        return list(source.sources), of_files
    combined = selected.then(of_files.selection) if isinstance(of_files, ReadOptions) else None
    if combined is None:
        if more and not (isinstance(options, ScanOptions) and options.damage.inspects):
            raise differing(more[0])
        return source, options
    if keeps_filter and selected.filters is not None:
        return source, options
    return list(source.sources), of_files.changed(**combined.choices)


def add_folder_types(source: Any, options: AnyOptions) -> AnyOptions:
    """Take over the types of partition columns from a dataset of which a list has pieces.

    Beside other sources, whose folders may have any names: with those that are text.
    """
    parts = list(map(Scan.unwrap, source if isinstance(source, list | tuple) else [source]))
    pieces = [part for part in parts if isinstance(part, Scan) and part.origin is None]
    if not pieces or not hasattr(options, "schema_overrides"):
        return options
    inferred = {*AddedColumns.from_folders([source for part in pieces for source in part.sources]).fields}
    by_piece = [{field.with_metadata(None) for field in part.partitions.fields} for part in pieces]
    types = {
        field.name: field.type
        for field in set.union(*by_piece) - inferred
        if all(field in fields for fields in by_piece)
    }
    if len(pieces) < len(parts):
        types = {name: type_ for name, type_ in types.items() if pa.types.is_string(type_)}
    return options.changed(schema_overrides={**types, **(options.schema_overrides or {})}) if types else options


def _complete_columns(options: AnyOptions) -> AnyOptions:
    """Make a selection of columns of a dataset, the paths of files among them, one of a read of the files."""
    paths, columns = getattr(options, "include_file_paths", None), getattr(options, "columns", None)
    chosen = Projection(columns)
    if columns is None or paths is None or chosen(paths):
        return options
    left_out = (f"!{paths}",) if chosen.leaves_out(paths) else add_path_column((), paths)
    return options.changed(columns=(*columns, *left_out))


def _is_same(value: Any, own: Any) -> bool:
    """True if an option is that of a dataset; columns of a schema have an order."""
    return bool(value == own) and (not isinstance(own, Mapping) or list(value) == list(own))


def absolute_paths(path: Any, storage: StorageOptions, directory: str) -> Any:
    """Make the relative paths of a source absolute, for a process with another working directory."""
    if isinstance(path, list | tuple):
        return [absolute_paths(part, storage, directory) for part in path]
    if not isinstance(path, str | os.PathLike):
        return path
    location = Location.of(path, storage)
    return os.path.join(directory, location.name) if location.is_local else path


def record_sources(scan: Scan, *, as_they_are: bool = False, intact: bool = False) -> list[Source]:
    """The files of a scan, with the records only that are rows of it.

    The first record of each has the schema that the files of the scan embed, unless they are to be `as_they_are`.
    `intact`: without those that its ``on_error=`` leaves out.
    """
    scan = scan.align_ranges()
    is_chosen = bool(scan.row_selection) or (intact and not scan.stated.damage.is_strict)
    if not is_chosen and (as_they_are or all(source.begins_file for source in scan.sources)):
        return list(scan.sources)  # whose schema is not looked for
    carries = not as_they_are and scan.resolved.embedded is not None
    if not is_chosen and not carries:
        return list(scan.sources)
    chosen = _RecordNumbers(scan, is_chosen)
    return [ChosenRecords(chosen, number, carries=carries).source() for number in range(len(scan.sources))]


def unite_parts(*parts: AnyScan) -> AnyScan:
    """Make one scan of the rows of parts of a dataset, so that an added filter counts after a limit."""
    sources = (record_sources(part) if part.row_selection else part.align_ranges().sources for part in parts)
    return replace(parts[0].with_sources(chain.from_iterable(sources), offset=0, limit=None), row_filter=None)


def _are_of_one_dataset(parts: Sequence[Any]) -> bool:
    """True if parts are of one dataset and not all are whole, to be read under the dataset's schema."""
    if not all(isinstance(part, Scan) for part in parts) or all(part.is_as_stated for part in parts):
        return False
    read = [(part.resolved, part.partitions) for part in parts]
    return all(schema == read[0] for schema in read)


class PieceStream:
    """A `tfrecord_io.bytes.compression.stream.Stream` that consists of pieces."""

    compression: str | None = None

    def __init__(self, pieces: Generator[Array]) -> None:
        self.offset = 0
        self._pieces = pieces
        self._rest = memoryview(b"")

    @property
    def raw_offset(self) -> int:
        """Bytes returned: the pieces are not compressed."""
        return self.offset

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


class _RecordNumbers:
    """The numbers of the records in a scan, found when the first of its files is opened."""

    def __init__(self, scan: Scan, is_chosen: bool) -> None:
        self.scan, self._is_chosen = scan, is_chosen
        self._numbers: list[Array] | None = None
        self._lock = Lock()

    def numbers_in(self, file: int) -> Array | None:
        """The numbers in a file, ascending; None: all."""
        if not self._is_chosen:
            return None
        with self._lock:
            if self._numbers is None:
                self._numbers = self._find_numbers()
            return self._numbers[file]

    def _find_numbers(self) -> list[Array]:
        scan = self.scan.prune_files()
        place = {id(source): number for number, source in enumerate(self.scan.sources)}
        numbers: list[list[Array]] = [[np.empty(0, np.int64)] for _ in self.scan.sources]
        if not scan.sources:
            return [parts[0] for parts in numbers]
        with open_as_it_is(scan.drop_columns().with_required_columns().with_options(progress=False)) as reader:
            for _ in reader:
                pass
            for file, records in reader.origins.numbers():
                numbers[place[id(scan.sources[file])]].append(records)
        return [np.concatenate(parts) for parts in numbers]

    def __reduce__(self) -> tuple[Any, ...]:
        return _RecordNumbers, (self.scan.absolute(), self._is_chosen)


class _GivenNumbers:
    """As `_RecordNumbers`, of numbers that are known."""

    def __init__(self, scan: Scan, numbers: Sequence[Array | None]) -> None:
        self.scan, self._numbers = scan, numbers

    def numbers_in(self, file: int) -> Array | None:
        """The numbers in a file, ascending; None: all."""
        return self._numbers[file]

    def __reduce__(self) -> tuple[Any, ...]:
        return _GivenNumbers, (self.scan.absolute(), self._numbers)


def choose_records(scan: Scan, chosen: Sequence[tuple[Source, Array | None]]) -> list[Source]:
    """The files, in this order, each with the records of these numbers only; None: all of them as they are."""
    plain = replace(scan, row_filter=None).with_sources(source for source, _ in chosen)
    numbers = _GivenNumbers(plain, [rows for _, rows in chosen])
    return [
        source if rows is None else ChosenRecords(numbers, at, carries=False).source()
        for at, (source, rows) in enumerate(chosen)
    ]


class ChosenRecords:
    """The records of a file that are rows of a scan; see `tfrecord_io.store.read.source.DerivedContent`."""

    can_be_read_again = True

    def __init__(self, chosen: _RecordNumbers | _GivenNumbers, number: int, *, carries: bool) -> None:
        self._chosen, self._number, self.scan = chosen, number, chosen.scan
        self._file = chosen.scan.sources[number]
        self.shard = self._file.stated_shard
        embedded = chosen.scan.resolved.embedded if carries else None
        self.schema = None if embedded is None else embedded.pack()
        self._carries = carries
        self._places: list[tuple[Array, Array]] = []  # the number and the offset of each record, of those read so far
        self._failed: Origin | None = None  # the record that ended the reading

    def source(self) -> Source:
        """The file that has no other records."""
        partitions = self._file.partitions
        return Source(self._file.path, None, False, partitions=partitions, origin=self, derived=self)

    def open(self) -> PieceStream:
        self._places.clear()
        self._failed = None
        return PieceStream(self._frames())

    def read_once(self) -> None:
        """Open a file twice: to find the rows, and to read them."""

    def __call__(self, record: int) -> Origin | None:
        """The position of a record in its file; see `tfrecord_io.store.read.source.Origins`."""
        for numbers, offsets in self._places:
            if record < len(numbers):
                place = Origin(self._file.path, int(numbers[record]), int(offsets[record]))
                origin = None if self._file.origin is None else self._file.origin(int(numbers[record]))
                return place if origin is None else origin
            record -= len(numbers)
        return self._failed

    def byte(self, record: int, byte: int) -> int:
        """Only the first record is changed, at its start."""
        return byte if record or self.schema is None else -1

    def _frames(self) -> Generator[Array]:
        options, engine, begins = self._chosen.scan.options, get_engine(), self.schema is not None
        try:
            chosen, recovery = self._chosen.numbers_in(self._number), Recovery.of(options.on_error, [self._file])
            if chosen is not None and not len(chosen):
                return
            with (
                SourcePrefetcher([self._file]) as sources,
                closing(BlockWalker.from_options(sources, options, recover=recovery)) as walker,
            ):
                for frames in walker.intact_frames(check_crc=options.check_crc):
                    first, end = walker.record, walker.record + len(frames.starts)
                    numbers = (
                        np.arange(first, end) if chosen is None else chosen[slice(*chosen.searchsorted([first, end]))]
                    )
                    if len(numbers):
                        rows = numbers - first
                        starts, sizes = (
                            frames.starts[rows] - FrameHeader.BYTES,
                            frames.lengths[rows] + FrameHeader.FRAME_BYTES,
                        )
                        self._places.append((numbers, self._file.begin + walker.offset + starts))
                        data = walker.data
                        if begins:
                            yield self._first(data[int(starts[0]) : int(starts[0] + sizes[0])])
                            starts, sizes, begins = starts[1:], sizes[1:], False
                        yield engine.payloads(data, frames._replace(starts=starts, lengths=sizes))  # of whole frames
                    if chosen is not None and end > chosen[-1]:
                        return
        except TFRecordError as error:
            self._failed = Origin(error.path, error.record, error.offset)
            raise

    def _first(self, frame: Array) -> Array:
        """The first record, with the schema of the files instead of its own."""
        assert self.schema is not None
        embedded = EmbeddedSchema.content_of(frame, check_crc=False)
        payload = frame[FrameHeader.BYTES : len(frame) - (FrameHeader.FRAME_BYTES - FrameHeader.BYTES)].tobytes()
        payload = payload if embedded is None else payload.removeprefix(EmbeddedSchema.field_of(embedded))
        return np.frombuffer(get_engine().frame([EmbeddedSchema.field_of(self.schema) + payload]), np.uint8)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(ChosenRecords, carries=self._carries), (self._chosen, self._number)
