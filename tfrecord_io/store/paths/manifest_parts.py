"""The files of a large dataset in parts: objects next to the manifest, which names them, and the last files itself.

A part is written once, under a name of its own, and never changed: ``_MANIFEST/<id>.arrow.zst`` for the dataset
``part``, ``_MANIFEST-train/<id>.arrow.zst`` for ``train``. It is a stream of Arrow IPC, compressed as a whole by zstd,
with the columns of `_SCHEMA`. So a change of a dataset of a million shards writes the manifest, of some kilobytes, and
the parts that it touches; and a reader reads the parts that it needs, when it needs them.

A part that the manifest does not name any more is kept for a while, as a reader may still have the manifest before.
Who finds no part reads the manifest again, see `ask_again`: with the same id, it names the same files first.

Tests: tests/store/paths/test_manifest_parts.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, chain, pairwise
from typing import NamedTuple, TypeVar, overload

import numpy as np
import pyarrow as pa

from tfrecord_io.base import MIB, cached_property
from tfrecord_io.bytes import Array, get_engine
from tfrecord_io.errors import CorruptRecordError, ReplacedError, SchemaError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import is_remote
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.folder_bounds import FolderBounds
from tfrecord_io.store.paths.manifest_files import (
    MOST_SUM,
    SIZES,
    AllFiles,
    ManifestColumns,
    ManifestFiles,
    ManyFiles,
    ReadingOrder,
    is_folder_before,
)
from tfrecord_io.store.read.source import ManifestFile, Source

T = TypeVar("T")
M = TypeVar("M")

_MOST_RAW = 64 * MIB  # of a part, unpacked
_SCHEMA = pa.schema(
    {
        "folder": pa.dictionary(pa.int32(), pa.string()),  # without a slash at the end; "" next to the manifest
        "name": pa.string(),
        "records": pa.int64(),
        "bytes": pa.int64(),
        "crc32c": pa.uint32(),
    }
)
_LOOKS = 40  # at a manifest whose parts are replaced again and again


class ManifestPart(NamedTuple):
    """The facts of a part that the manifest states."""

    id: str  # of 16 hex digits
    files: int
    records: int  # of the files
    bytes: int  # of the files
    largest: int  # number of a shard in a name; -1 if none has one
    have_ids: bool  # all names have the id of the writing that added the shard
    folders: tuple[str, str] | None  # the first and the last one, if the files are in the order of folders
    size: int  # of the part, in bytes
    raw: int  # bytes of the part, unpacked
    crc32c: int  # of its `size` bytes
    values: tuple[tuple[str, FolderBounds], ...] = ()  # of partition columns; one that is left out may have any

    @property
    def can_be_read(self) -> bool:
        """True if it may have as many bytes as it states."""
        return self.files > 0 and self.raw <= _MOST_RAW


class PartGoneError(ReplacedError):
    """A part does not exist any more: the manifest that named it was replaced."""

    def __init__(self, path: str) -> None:
        text = "this part of the manifest is gone, as the manifest was replaced: read the dataset again"
        super().__init__(errno.ESTALE, text, path)


def ask_again(read: Callable[[], M], question: Callable[[M], T], *known: M) -> T:
    """Ask a manifest, and read it again if a part is gone; one that is `known` is asked first.

    Raises
    ------
    CorruptRecordError
        The manifest still names the part.
    """
    gone = ""
    for look in range(_LOOKS):
        manifest = known[look] if look < len(known) else read()
        try:
            return question(manifest)
        except PartGoneError as error:
            if error.filename == gone:
                raise lost_part_error(gone) from None
            gone = str(error.filename)
    raise PartGoneError(gone)


def lost_part_error(path: str) -> CorruptRecordError:
    """The error for a part that a manifest names, and that is gone."""
    advice = "remove the manifest, and let tfrecord_io.adopt write another of the files that are there"
    return CorruptRecordError("the manifest names this part, but it is missing", path=path, hint=advice)


def working_directory(fs: FileSystem, name: str) -> str:
    """The directory to which a relative local name refers, to be kept for later reads; "" for other names."""
    return "" if is_remote(fs) or os.path.isabs(name) else os.getcwd()


class PartReader:
    """Reads the parts of a manifest, and compares them with the manifest.

    Parameters
    ----------
    fs : FileSystem
    directory : str
        Of the manifest, with its slash.
    dataset : str
    check : callable
        Raises an error about files whose paths the manifest must not name.
    """

    def __init__(
        self, fs: FileSystem, directory: str, dataset: str, check: Callable[[ManifestColumns], object]
    ) -> None:
        self._fs, self._directory, self._dataset, self._check = fs, directory, dataset, check
        self._root = working_directory(fs, directory)

    def read(self, part: ManifestPart) -> ManifestColumns:
        """The files of a part; PartGoneError if it does not exist."""
        name = self._directory + FileName.manifest_part(self._dataset, part.id)
        path = self._fs.display_path(name)
        try:
            if is_remote(self._fs):
                body = self._fs.read_object(name)
            else:
                entry = Entry(os.path.join(self._root, name), part.size, False, None)
                body = Source.from_entry(self._fs, entry).read(part.size)
        except FileNotFoundError:
            raise PartGoneError(path) from None
        files = unpack(body, part, path)
        self._check(files)
        return files


def pack(files: ManifestColumns, dataset: str) -> tuple[ManifestPart, bytes]:
    """The bytes of a new part with these files, and the entry for the manifest."""
    folders, of_files = files.folders
    folder = pa.DictionaryArray.from_arrays(pa.array(of_files, pa.int32()), pa.array(folders, pa.string()))
    columns = [folder, files.names, pa.array(files.records), pa.array(files.sizes), pa.array(files.checksums)]
    schema = _SCHEMA.with_metadata({"dataset": dataset})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    raw = sink.getvalue()
    body: bytes = pa.compress(raw, codec="zstd", asbytes=True)
    if raw.size > _MOST_RAW:
        raise ValueError(f"{len(files)} files have names of {raw.size} bytes, over the limit of {_MOST_RAW}")
    part = ManifestPart(
        id=ShardName.new_id(),
        files=len(files),
        records=files.record_count,
        bytes=files.byte_count,
        largest=files.largest_number,
        have_ids=files.have_ids,
        folders=files.ordered_folders,
        size=len(body),
        raw=raw.size,
        crc32c=get_engine().crc32c(body),
        values=tuple(FolderBounds.from_folders(folders).items()),
    )
    return part, body


def unpack(body: bytes, part: ManifestPart, path: str) -> ManifestColumns:
    """The files of a part, whose paths are still to be checked; CorruptRecordError if it is not what was stated."""
    if len(body) != part.size or get_engine().crc32c(body) != part.crc32c or part.raw > _MOST_RAW:
        raise _damaged(path, "its size or checksum is another")
    try:
        files = _files_in(pa.decompress(body, decompressed_size=part.raw, codec="zstd"))
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _damaged(path, f"it cannot be unpacked ({type(error).__name__})") from error
    if files is None or len(files) != part.files:
        raise _damaged(path, "its columns, or the number of its files, are others")
    totals = files.record_count, files.byte_count
    facts = files.largest_number, files.have_ids
    if totals != (part.records, part.bytes) or facts != (part.largest, part.have_ids) or files.has_one_twice:
        raise _damaged(path, "its files are not those that the manifest states")
    values = FolderBounds.from_folders(files.folder_names) if part.values else {}
    if not all(bounds.contain(values.get(column)) for column, bounds in part.values):
        raise _damaged(path, "its folders are not those that the manifest states")
    return files


def unpack_alone(body: bytes) -> ManifestColumns | None:
    """The files of a part that no manifest names any more, whose paths are still to be checked; None if damaged."""
    try:
        with pa.CompressedInputStream(pa.BufferReader(body), "zstd") as stream:
            raw = stream.read(_MOST_RAW + 1)
        return None if len(raw) > _MOST_RAW else _files_in(raw)
    except (pa.ArrowException, OSError, ValueError):
        return None


def _files_in(raw: bytes | pa.Buffer) -> ManifestColumns | None:
    """The files of an unpacked part; None if it has none, or other columns, or numbers that are out of range."""
    table = pa.ipc.open_stream(raw).read_all().combine_chunks()
    table.validate(full=True)
    if table.schema != _SCHEMA or not table.num_rows or any(c.null_count for c in table.columns):
        return None
    folder, names, records, sizes, checksums = (column.chunk(0) for column in table.columns)
    numbers = records.to_numpy(), sizes.to_numpy()
    if folder.dictionary.null_count or any(
        column.min() < 0 or column.sum(dtype=np.float64) >= MOST_SUM for column in numbers
    ):
        return None
    return ManifestColumns((folder, names), *numbers, checksums.to_numpy())


def _damaged(path: str, why: str) -> CorruptRecordError:
    advice = "remove the manifest, and let tfrecord_io.adopt write another of the files that are there"
    return CorruptRecordError(f"this part of the manifest cannot be used: {why}", path=path, hint=advice)


class StoredPart:
    """A part whose files are read when they are first needed.

    Attributes
    ----------
    part : ManifestPart
    """

    def __init__(
        self, part: ManifestPart, reader: PartReader | None = None, files: ManifestColumns | None = None
    ) -> None:
        self.part, self._reader = part, reader
        if files is not None:
            self.__dict__["files"] = files

    @cached_property
    def files(self) -> ManifestColumns:
        """The files; PartGoneError if the part does not exist any more."""
        assert self._reader is not None, "parts of a manifest whose directory is not known"
        return self._reader.read(self.part)

    def __len__(self) -> int:
        return self.part.files

    @property
    def record_count(self) -> int:
        """The number of records in all files."""
        return self.part.records

    @property
    def byte_count(self) -> int:
        """The size of all files in bytes."""
        return self.part.bytes

    @property
    def largest_number(self) -> int:
        """The largest number of a shard in the names; -1 if none has one."""
        return self.part.largest

    @property
    def have_ids(self) -> bool:
        """True if all names have the id of the write that added the shard."""
        return self.part.have_ids

    @property
    def ordered_folders(self) -> tuple[str, str] | None:
        """The first and the last folder, if the files are in the order of folders."""
        return self.part.folders

    @property
    def bounds(self) -> Mapping[str, FolderBounds]:
        """The bounds of partition columns; a column that is left out may have any value."""
        return dict(self.part.values)

    def with_reader(self, reader: PartReader) -> StoredPart:
        """The part, to be read by a reader."""
        return StoredPart(self.part, reader, self.__dict__.get("files"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredPart) and self.part == other.part

    def __hash__(self) -> int:
        return hash(self.part)


Piece = StoredPart | ManifestColumns


class PartedFiles(ManyFiles):
    """The files of stored parts, and those that are in memory: in a manifest, these are the last ones.

    Parameters
    ----------
    pieces : sequence of StoredPart or ManifestColumns
        Each with at least one file.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = _join_columns(pieces)
        self._ends = [*accumulate(map(len, self.pieces))]

    @property
    def parts(self) -> list[ManifestPart]:
        """The stored parts."""
        return [piece.part for piece in self.pieces if isinstance(piece, StoredPart)]

    @property
    def tail(self) -> ManifestColumns | None:
        """The files after the last stored part, if there are any."""
        last = self.pieces[-1] if self.pieces else None
        return last if isinstance(last, ManifestColumns) else None

    @cached_property
    def columns(self) -> ManifestColumns:
        """All files as columns."""
        return ManifestColumns.concat([_columns(piece) for piece in self.pieces])

    def load(self) -> None:
        """Read all parts; PartGoneError if one does not exist any more."""
        for piece in self.pieces:
            _columns(piece)

    def with_reader(self, reader: PartReader) -> PartedFiles:
        """The files, whose parts a reader reads."""
        return PartedFiles([p.with_reader(reader) if isinstance(p, StoredPart) else p for p in self.pieces])

    @cached_property
    def are_in_order(self) -> bool:
        """True if the files are known to be in the order of folders, without a look at the parts."""
        last: str | None = None
        for piece in self.pieces:
            folders = piece.ordered_folders
            if folders is None or not (last in (None, folders[0]) or is_folder_before(str(last), folders[0])):
                return False
            last = folders[1]
        return True

    @property
    def is_order_found(self) -> bool:
        return PartedFiles([piece for piece in self.pieces if isinstance(piece, StoredPart)]).are_in_order

    @property
    def reading_order(self) -> ReadingOrder:
        if self.are_in_order:
            return ReadingOrder(len(self))
        order = self._order_with_tail() if self.tail is not None else None
        return self.columns.reading_order if order is None else order

    def _order_with_tail(self) -> ReadingOrder | None:
        """The order of reading where the files before the tail are in this order; None if that is not known.

        Files of the tail come after those of their folder: of the parts, those in which it can be are read.
        """
        tail, parts = self.pieces[-1], PartedFiles(self.pieces[:-1])
        assert isinstance(tail, ManifestColumns)
        if not parts.are_in_order:
            return None
        order = tail.reading_order.all_numbers
        folders = [tail.folders[0][at] for at in tail.folders[1][order]]
        if not all(a == b or is_folder_before(a, b) for a, b in pairwise(folders)):
            return None
        places: dict[str, int] = {}
        for folder in dict.fromkeys(folders):
            if (place := parts._end_of_folder(folder)) is None:
                return None
            places[folder] = place
        begins = np.array([places[folder] for folder in folders])
        return ReadingOrder(len(self), places=begins + np.arange(len(begins)), inserted=order + len(parts))

    def _end_of_folder(self, folder: str) -> int | None:
        """The number after the files of a folder, or where they would be, of files in order; None if unknown."""
        begin = 0
        for piece, end in zip(self.pieces, self._ends, strict=True):
            assert piece.ordered_folders is not None
            first, last = piece.ordered_folders
            if is_folder_before(folder, first):
                return begin
            if folder != last and not is_folder_before(last, folder):
                return _end_of_folder_in(_columns(piece), folder, begin)
            begin = end
        return begin

    @property
    def bounds_of_pieces(self) -> list[tuple[Mapping[str, FolderBounds], int]]:
        return [(piece.bounds, end) for piece, end in zip(self.pieces, self._ends, strict=True)]

    @property
    def are_in_parts(self) -> bool:
        return any(isinstance(piece, StoredPart) for piece in self.pieces)

    @property
    def counts_of_pieces(self) -> list[tuple[int, int]]:
        return [(len(piece), piece.record_count) for piece in self.pieces]

    def records_of_piece(self, piece: int) -> Array:
        return _columns(self.pieces[piece]).records

    def first(self, count: int) -> PartedFiles:
        if count == len(self):
            return self
        last = int(np.searchsorted(self._ends, count, side="right"))
        left = count - (self._ends[last - 1] if last else 0)
        return PartedFiles([*self.pieces[:last], *([_columns(self.pieces[last])[:left]] if left else [])])

    def take(self, numbers: Array) -> ManifestColumns:
        """The files of these numbers, in this order; the parts of others are not read."""
        which = np.searchsorted(self._ends, numbers, side="right")
        is_ascending, taken = bool((np.diff(which) >= 0).all()), []
        for at in np.unique(which).tolist():
            first, piece = self._ends[at - 1] if at else 0, self.pieces[at]
            chosen = slice(*np.searchsorted(which, [at, at + 1])) if is_ascending else which == at
            places = numbers[chosen] - first
            is_whole = len(places) == len(piece) and np.array_equal(places, np.arange(len(piece)))
            taken.append(_columns(piece) if is_whole else _columns(piece).take(places))
        files = ManifestColumns.concat(taken)
        if is_ascending:
            return files
        order = np.argsort(which, kind="stable")
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return files.take(back)

    # ---- a sequence

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, at: int) -> ManifestFile: ...
    @overload
    def __getitem__(self, at: slice) -> ManifestColumns: ...
    def __getitem__(self, at: int | slice) -> ManifestFile | ManifestColumns:
        if isinstance(at, slice):
            return self.columns[at]
        number = range(len(self))[at]
        which = int(np.searchsorted(self._ends, number, side="right"))
        first = self._ends[which - 1] if which else 0
        return _columns(self.pieces[which])[number - first]

    def __iter__(self) -> Iterator[ManifestFile]:
        return chain.from_iterable(map(_columns, self.pieces))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, PartedFiles) and self.parts == other.parts and self.pieces == other.pieces:
            return True
        if isinstance(other, PartedFiles):
            return len(self) == len(other) and self.columns == other.columns
        return isinstance(other, ManifestColumns | tuple) and len(self) == len(other) and self.columns == other

    __hash__ = None  # type: ignore[assignment]

    # ---- all files

    @property
    def path_list(self) -> list[str]:
        return [path for piece in self.pieces for path in _columns(piece).path_list]

    @property
    def counts(self) -> list[int]:
        return [count for piece in self.pieces for count in _columns(piece).counts]

    @property
    def record_count(self) -> int:
        return sum(piece.record_count for piece in self.pieces)

    @property
    def byte_count(self) -> int:
        return sum(piece.byte_count for piece in self.pieces)

    @property
    def folder_names(self) -> Sequence[str]:
        return self.folder_names_where(lambda bounds: True)

    @property
    def largest_number(self) -> int:
        return max((piece.largest_number for piece in self.pieces), default=-1)

    @property
    def have_ids(self) -> bool:
        return all(piece.have_ids for piece in self.pieces)

    def has_path_with(self, text: str) -> bool:
        return any(_columns(piece).has_path_with(text) for piece in reversed(self.pieces))

    def without_parts_of(self, other: ManifestFiles) -> ManifestFiles:
        if not isinstance(other, PartedFiles):
            return self
        parts = set(other.parts)
        return PartedFiles([p for p in self.pieces if not (isinstance(p, StoredPart) and p.part in parts)])

    def numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        if len(paths) > SIZES.part:  # of so many files, most parts have some
            return self.columns.numbers_of(paths)
        numbers: dict[str, int] = {}
        may_be_in = _folder_filter(path.rpartition("/")[0] for path in paths)
        for piece, end in zip(reversed(self.pieces), reversed(self._ends), strict=True):
            folders = {*may_be_in(piece)}
            left = [path for path in paths if path not in numbers and path.rpartition("/")[0] in folders]
            if left:
                places = zip(left, _columns(piece).numbers_of(left), strict=True)
                numbers.update((path, end - len(piece) + at) for path, at in places if at is not None)
        return list(map(numbers.get, paths))

    def folder_names_where(self, may_be: Callable[[Mapping[str, FolderBounds]], bool]) -> Sequence[str]:
        pieces = (piece for piece in self.pieces if may_be(piece.bounds))
        return list(dict.fromkeys(name for piece in pieces for name in _columns(piece).folder_names))

    def folders_among(self, names: Collection[str]) -> set[str]:
        used: set[str] = set()
        may_be_in = _folder_filter(names)
        for piece in reversed(self.pieces):
            left = [name for name in may_be_in(piece) if name not in used]
            used |= _columns(piece).folders_among(left) if left else set()
        return used

    def leave_out_folders(self, names: Collection[str]) -> ManifestFiles:
        pieces: list[Piece] = []
        may_be_in = _folder_filter(names)
        for piece in self.pieces:
            gone = may_be_in(piece)
            left = _columns(piece).leave_out_folders(gone) if gone else piece
            pieces += [piece if len(left) == len(piece) else left] if len(left) else []
        return PartedFiles(pieces)

    def rows_before(self, numbers: Sequence[int]) -> list[int]:
        begins, all_numbers = [0, *accumulate(piece.record_count for piece in self.pieces)], np.array(numbers, np.int64)
        which, rows = np.searchsorted(self._ends, all_numbers, side="right"), np.empty(len(numbers), np.int64)
        for at in np.unique(which).tolist():
            inside = all_numbers[which == at] - (self._ends[at - 1] if at else 0)
            rows[which == at] = np.array(_columns(self.pieces[at]).rows_before(inside)) + begins[at]
        before: list[int] = rows.tolist()
        return before

    def then(self, files: ManifestFiles) -> ManifestFiles:
        if not files:
            return self
        added = ManifestColumns.of(files)
        return (*self, *files) if added is None else PartedFiles([*self.pieces, added])

    def replace(self, numbers: Sequence[int], files: Sequence[tuple[int, ManifestFile]]) -> ManifestFiles:
        if files and ManifestColumns.of(tuple(file for _, file in files)) is None:
            return self.columns.replace(numbers, files)
        pieces: list[Piece] = []
        touched = np.array([*numbers, *(number for number, _ in files)], np.int64)
        for piece, end in zip(self.pieces, self._ends, strict=True):
            first = end - len(piece)
            if not ((touched >= first) & (touched < end)).any():
                pieces.append(piece)
                continue
            gone = [number - first for number in numbers if first <= number < end]
            new = [(number - first, file) for number, file in files if first <= number < end]
            left = ManifestColumns.of(_columns(piece).replace(gone, new))
            assert left is not None, "files of columns, and others that were looked at"
            pieces += [left] if len(left) else []
        return PartedFiles(pieces)

    def paths_without(self, others: AllFiles) -> list[str]:
        if not isinstance(others, PartedFiles):
            return self.columns.paths_without(others)
        # No path is in two pieces of a manifest, so that pieces of both have nothing to be found.
        own_parts, other_parts = set(self.parts), set(others.parts)
        pieces = [p for p in self.pieces if not (isinstance(p, StoredPart) and p.part in other_parts)]
        left = [p for p in others.pieces if not (isinstance(p, StoredPart) and p.part in own_parts)]
        if self.tail is not None and self.tail == others.tail:
            pieces, left = pieces[:-1], left[:-1]
        paths: list[str] = []
        for piece in pieces:  # a part that was written again has most of the files of the one before, in their order
            files: ManifestColumns = _columns(piece)
            for changed in left:
                files = files.leave_out(_columns(changed)) if len(files) else files
            paths += files.path_list
        return paths


def _columns(piece: Piece) -> ManifestColumns:
    return piece.files if isinstance(piece, StoredPart) else piece


def _folder_filter(names: Iterable[str]) -> Callable[[Piece], list[str]]:
    """Return a function that filters these folders to the ones a piece may have, by its bounds."""
    pairs_of: dict[str, Sequence[tuple[str, str | None]]] = dict.fromkeys(names, ())
    for name in pairs_of:
        with suppress(SchemaError):  # of a folder whose values nobody can read: it can be anywhere
            pairs_of[name] = ColumnFolder.pairs_in(f"/{name}/", "/")

    def may_be_in(piece: Piece) -> list[str]:
        bounds = piece.bounds
        return [
            name
            for name, pairs in pairs_of.items()
            if all(bounds[column].may_have_text(text) for column, text in pairs if column in bounds)
        ]

    return may_be_in


def _end_of_folder_in(files: ManifestColumns, folder: str, begin: int) -> int | None:
    """The number after the files of a folder, or where they would be, of files in order, which `begin` at a number."""
    folders, of_files = files.folders
    if folder in folders:
        return begin + int(np.searchsorted(of_files, folders.index(folder), side="right"))
    behind = next((at for at, name in enumerate(folders) if is_folder_before(folder, name)), len(folders))
    if behind and not is_folder_before(folders[behind - 1], folder):
        return None
    return begin + int(np.searchsorted(of_files, behind))


def _join_columns(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    """The pieces, of which neighbours in memory are one."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and isinstance(piece, ManifestColumns) and isinstance(joined[-1], ManifestColumns):
            joined[-1] = ManifestColumns.concat([joined[-1], piece])
        elif len(piece):
            joined.append(piece)
    return tuple(joined)


def arrange(
    files: ManifestFiles, store: Callable[[ManifestColumns], StoredPart], *, in_parts: bool = True
) -> ManifestFiles:
    """The files of a manifest to be written, of which `store` stores those of new parts.

    Few files, those that state more than a part has, and all unless they may be `in_parts`, are in the manifest.
    """
    if not in_parts or len(files) <= SIZES.many:
        return files if isinstance(files, tuple) else tuple(files)
    columns = files if isinstance(files, PartedFiles) else ManifestColumns.of(files)
    if columns is None:
        return files
    arranged: list[Piece] = []
    pieces = columns.pieces if isinstance(columns, PartedFiles) else (columns,)
    for at, piece in enumerate(pieces):
        is_last = at == len(pieces) - 1
        if isinstance(piece, StoredPart) or (is_last and at > 0 and len(piece) <= SIZES.tail):
            arranged.append(piece)
            continue
        # Files that are added fill the last part; elsewhere, two parts that are together half full become one.
        before, most = arranged[-1] if arranged else None, SIZES.part if is_last else SIZES.part // 2
        if before is not None and len(before) + len(piece) <= most:
            piece = ManifestColumns.concat([_columns(before), piece])
            arranged.pop()
        arranged += [store(piece[first : first + SIZES.part]) for first in range(0, len(piece), SIZES.part)]
    return PartedFiles(arranged)
