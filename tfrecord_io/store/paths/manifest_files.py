"""The files that a manifest names: few of them one by one, those of a large dataset one column for each fact.

`AllFiles` are the questions about all files that both answer, as does `tfrecord_io.store.paths.manifest_parts`. A
dataset may have a million shards, of which a call needs few: `ManifestColumns` are made of a part, or of the text of a
manifest, by Arrow, and checked as a whole; a file becomes a `ManifestFile` where it is asked for.

Tests: tests/store/paths/test_manifest_files.py.
"""

from __future__ import annotations

import json
import os
import re
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise, starmap
from typing import TypeAlias, overload

import numpy as np
import pyarrow as pa

from tfrecord_io.base import cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import ShardName, natural_key
from tfrecord_io.store.paths.folder_bounds import FolderBounds
from tfrecord_io.store.read.source import ManifestFile

ManifestFiles: TypeAlias = "tuple[ManifestFile, ...] | ManyFiles"


@dataclass(slots=True)
class Sizes:
    """From when on manifests have columns and parts, and how large these are."""

    large_bytes: int = 64 << 10  # of a manifest that may name so many files that they are columns
    many: int = 1024  # files; more are columns, and a manifest that is written has them in parts
    part: int = 16_384  # files at most
    tail: int = 64  # files that a manifest may have after its parts
    retired: int = 16  # parts that are not named any more, and are kept until so many follow


SIZES = Sizes()
NOTHING: Array = np.empty(0, np.int64)
_BEGIN, _END = b'"files": [\n', b"\n]}\n"  # of the list of files, which is the last entry of a manifest
MOST_SUM = 2**62
_MOST_COUNTED = 64  # places for each file, in which pairs of numbers are counted
_HEX = 8  # digits of a checksum


class AllFiles(ABC):
    """Questions about all files of a manifest, which are numbered in their order, from 0 on."""

    @property
    @abstractmethod
    def columns(self) -> ManifestColumns | None:
        """All files as columns; None of files one by one."""

    @property
    @abstractmethod
    def path_list(self) -> list[str]:
        """The path of each file."""

    @property
    @abstractmethod
    def counts(self) -> list[int]:
        """The number of records in each file."""

    @property
    @abstractmethod
    def record_count(self) -> int:
        """The number of records in all files."""

    @property
    @abstractmethod
    def byte_count(self) -> int:
        """The size of all files in bytes."""

    @property
    @abstractmethod
    def staged(self) -> list[ManifestFile]:
        """The files that may still have their staged names."""

    @property
    @abstractmethod
    def folder_names(self) -> Sequence[str]:
        """The folders of the files, each once, without a slash; "" for files next to the manifest."""

    @property
    @abstractmethod
    def largest_number(self) -> int:
        """The largest number of a shard in the names; -1 if none has one."""

    @property
    @abstractmethod
    def have_ids(self) -> bool:
        """True if all names have the id of the write that added the shard: no other shard gets the name."""

    @abstractmethod
    def has_path_with(self, text: str) -> bool:
        """True if a path contains a text."""

    @abstractmethod
    def without_parts_of(self, other: ManifestFiles) -> ManifestFiles:
        """The files outside of parts that other files have, too."""

    @abstractmethod
    def numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        """The numbers of the files of these paths; None for one that is not there."""

    def folder_names_where(self, may_be: Callable[[Mapping[str, FolderBounds]], bool]) -> Sequence[str]:
        """The `folder_names` without those in parts whose bounds of values `may_be` rules out."""
        return self.folder_names

    def folders_among(self, names: Collection[str]) -> set[str]:
        """Filter folders to those with files."""
        return {*names}.intersection(self.folder_names)

    @abstractmethod
    def leave_out_folders(self, names: Collection[str]) -> ManifestFiles:
        """Leave out the files in these folders."""

    @abstractmethod
    def rows_before(self, numbers: Sequence[int]) -> list[int]:
        """The number of records in all files before each of these numbers."""

    @abstractmethod
    def then(self, files: ManifestFiles) -> ManifestFiles:
        """The files, followed by others."""

    @abstractmethod
    def replace(self, numbers: Sequence[int], files: Sequence[tuple[int, ManifestFile]]) -> ManifestFiles:
        """Remove the files of these numbers, and give each new file the position of a removed file.

        `files` has the number of that one before each.
        """

    def paths_without(self, others: AllFiles) -> list[str]:
        """The paths that others do not have, in their order."""
        paths = set(others.path_list)
        return [path for path in self.path_list if path not in paths]


class ListedFiles(AllFiles):
    """Files one by one."""

    def __init__(self, files: tuple[ManifestFile, ...]) -> None:
        self._files = files

    @property
    def columns(self) -> ManifestColumns | None:
        return None

    @property
    def path_list(self) -> list[str]:
        return [file.path for file in self._files]

    @property
    def counts(self) -> list[int]:
        return [file.records for file in self._files]

    @property
    def record_count(self) -> int:
        return sum(self.counts)

    @property
    def byte_count(self) -> int:
        return sum([file.bytes for file in self._files])

    @property
    def staged(self) -> list[ManifestFile]:
        return [file for file in self._files if file.staged is not None]

    @property
    def folder_names(self) -> Sequence[str]:
        return list(dict.fromkeys(os.path.dirname(file.path) for file in self._files))

    @property
    def largest_number(self) -> int:
        largest, last = -1, None
        for file in self._files:
            name = file.path.rpartition("/")[2]
            if last is None or not last.is_like(name):  # most are
                last = ShardName.parse(name)
            if last is not None:
                largest = max(largest, last.number_in(name))
        return largest

    @property
    def have_ids(self) -> bool:
        return all(ShardName.id_in(file.path) for file in self._files)

    def has_path_with(self, text: str) -> bool:
        return any(text in file.path for file in self._files)

    def without_parts_of(self, other: ManifestFiles) -> ManifestFiles:
        return self._files

    def numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        numbers = {file.path: number for number, file in enumerate(self._files)}
        return list(map(numbers.get, paths))

    def leave_out_folders(self, names: Collection[str]) -> ManifestFiles:
        return tuple(file for file in self._files if os.path.dirname(file.path) not in names)

    def rows_before(self, numbers: Sequence[int]) -> list[int]:
        before = [0, *accumulate(self.counts)]
        return [before[number] for number in numbers]

    def then(self, files: ManifestFiles) -> ManifestFiles:
        return (*self._files, *files)

    def replace(self, numbers: Sequence[int], files: Sequence[tuple[int, ManifestFile]]) -> ManifestFiles:
        by_number: dict[int, ManifestFile] = dict(enumerate(self._files))
        for number in numbers:
            by_number.pop(number, None)
        by_number.update(files)
        return tuple(by_number[number] for number in sorted(by_number))


class ReadingOrder:
    """The numbers of files in the order of reading: by folder, and in each by their numbers.

    Parameters
    ----------
    count : int
        Of the files.
    order : ndarray of int64, optional
        Their numbers; by default, their places.
    places, inserted : ndarray of int64
        The last files, which stand between the others: their places, ascending, and their numbers.
    """

    def __init__(
        self, count: int, order: Array | None = None, *, places: Array = NOTHING, inserted: Array = NOTHING
    ) -> None:
        self.count, self._order, self._places, self._inserted = count, order, places, inserted

    def numbers(self, places: Array) -> Array:
        """The numbers of the files at some places."""
        if self._order is not None:
            return self._order[places]
        if not len(self._places):
            return places
        before = np.searchsorted(self._places, places, side="right")  # of the inserted files, this one included
        last = np.maximum(before - 1, 0)
        return np.where(
            (before > 0) & (self._places[last] == places), self._inserted[last], np.asarray(places) - before
        )

    @property
    def all_numbers(self) -> Array:
        """The numbers of all files."""
        return self.numbers(np.arange(self.count))

    @property
    def last(self) -> int:
        """The number of the file that is read last."""
        return int(self.numbers(np.array([self.count - 1]))[0])


class ManyFiles(Sequence[ManifestFile], AllFiles):
    """Files that state nothing but path, records, size and checksum, in columns."""

    @property
    @abstractmethod
    def columns(self) -> ManifestColumns:
        """All files as columns."""

    @property
    @abstractmethod
    def are_in_order(self) -> bool:
        """True if the files are known to be in the order of folders."""

    @property
    def is_order_found(self) -> bool:
        """True if the order of reading is found without a look at most files."""
        return self.are_in_order

    @property
    @abstractmethod
    def reading_order(self) -> ReadingOrder:
        """The order in which the files are read."""

    @property
    @abstractmethod
    def bounds_of_pieces(self) -> list[tuple[Mapping[str, FolderBounds], int]]:
        """For pieces of the files the bounds of partition columns, as far as known, and the number after each."""

    @property
    def are_in_parts(self) -> bool:
        """True if some of the files are in parts."""
        return False

    @property
    @abstractmethod
    def counts_of_pieces(self) -> list[tuple[int, int]]:
        """For pieces of the files the number of files and of their records."""

    @abstractmethod
    def records_of_piece(self, piece: int) -> Array:
        """The number of records in each file of a piece."""

    @abstractmethod
    def first(self, count: int) -> ManyFiles:
        """The first files."""

    def run(self, at: int, count: int) -> tuple[int, int]:
        """The numbers of the first file, and after the last one, of one of `count` runs: no more than there are files.

        Run n begins with the file in which its share of all records does, as record `records * n // count`, or with
        the next one; if it would have no file then, the later runs begin later. So a run depends on the records of the
        files alone, and not on the pieces; those are read in which it begins and ends, and perhaps one before.
        """
        begins = _RunBegins(self, count)
        return begins.begin(at), begins.begin(at + 1)

    @abstractmethod
    def take(self, numbers: Array) -> ManifestColumns:
        """The files of these numbers, in this order."""

    @property
    def staged(self) -> list[ManifestFile]:
        return []  # such a file states more


class _RunBegins:
    """Where the runs of `ManyFiles.run` begin."""

    def __init__(self, files: ManyFiles, count: int) -> None:
        self._files, self._count = files, count
        counts = files.counts_of_pieces
        self._file_begins = [0, *accumulate(n for n, _ in counts)]
        self._record_begins = [0, *accumulate(n for _, n in counts)]
        records = self._record_begins[-1]
        # Of each piece the first run whose share begins in it, or after it.
        self._first_runs = [-(-begin * count // records) for begin in self._record_begins] if records else []

    def begin(self, run: int) -> int:
        """The number of the first file of a run; of the run after the last one, that of files."""
        total = self._file_begins[-1]
        if run in (0, self._count) or not self._first_runs:
            return total * run // self._count
        last_piece = bisect_right(self._first_runs, run) - 1
        before = 0  # most files before a run, without one of each earlier run
        for piece in range(last_piece, -1, -1):
            first, last = self._first_runs[piece], min(self._first_runs[piece + 1], run + 1)
            if first < last and self._file_begins[piece + 1] - first > before:
                before = max(before, int((self._begins_in(piece, first, last) - np.arange(first, last)).max()))
        return min(before, total - self._count) + run

    def _begins_in(self, piece: int, first: int, last: int) -> Array:
        """The numbers of the files with which some runs begin whose shares do so in a piece."""
        records = self._record_begins[-1]
        shares = [records * run // self._count - self._record_begins[piece] for run in range(first, last)]
        behind = np.cumsum(self._files.records_of_piece(piece))
        of_shares = np.searchsorted(behind, shares, side="right")
        is_within = np.append(0, behind)[of_shares] < shares
        return self._file_begins[piece] + of_shares + is_within


class ManifestColumns(ManyFiles):
    """Files that state nothing but path, records, size and checksum, column by column.

    Parameters
    ----------
    paths : pa.StringArray, or tuple of pa.DictionaryArray and pa.StringArray
        Without nulls, characters of control, quotes and backslashes; or the folder of each file and the name in it.
    records, sizes : ndarray of int64
        From 0 on; their sums are below 2^62.
    checksums : ndarray of uint32
    """

    def __init__(
        self,
        paths: pa.StringArray | tuple[pa.DictionaryArray, pa.StringArray],
        records: Array,
        sizes: Array,
        checksums: Array,
    ) -> None:
        self._paths, self.records, self.sizes, self.checksums = paths, records, sizes, checksums

    @cached_property
    def paths(self) -> pa.StringArray:
        """The path of each file."""
        if not isinstance(self._paths, tuple):
            return self._paths
        import pyarrow.compute as pc

        folder, names = self._paths
        used = folder.dictionary
        if len(folder) < len(used):  # of some files of a part
            used = folder.dictionary.take(folder.indices)
            folder = pa.DictionaryArray.from_arrays(np.arange(len(used), dtype=np.int32), used)
        prefixes = pa.array([f"{name}/" if name else "" for name in used.to_pylist()], pa.string())
        return pc.binary_join_element_wise(prefixes.take(folder.indices), names, "")

    @cached_property
    def names(self) -> pa.StringArray:
        """The name of each file, without its folder."""
        return self._paths[1] if isinstance(self._paths, tuple) else _split_paths(self._paths)[1]

    @cached_property
    def folders(self) -> tuple[list[str], Array]:
        """The different folders of the files, in the order of their first files, and the number of each file's folder.

        A file next to the manifest is in the folder "".
        """
        folder = self._paths[0] if isinstance(self._paths, tuple) else _split_paths(self._paths)[0].dictionary_encode()
        used = folder.indices.to_numpy()
        if np.array_equal(used[_first_places(used)], np.arange(len(folder.dictionary))):  # as in a part
            return folder.dictionary.to_pylist(), used.astype(np.int64)
        used, first, of_files = np.unique(used, return_index=True, return_inverse=True)
        order = np.argsort(first)
        numbers = np.empty(len(used), np.int64)
        numbers[order] = np.arange(len(used))
        return folder.dictionary.take(pa.array(used[order])).to_pylist(), numbers[of_files]

    @property
    def _first_in_folders(self) -> Array:
        """The number of the first file in each of the `folders`."""
        return _first_places(self.folders[1])

    @property
    def columns(self) -> ManifestColumns:
        return self

    @classmethod
    def of(cls, files: ManifestFiles) -> ManifestColumns | None:
        """The files as columns; None if one states more, or its path cannot be in a column."""
        if not isinstance(files, tuple):
            return files.columns
        if not all(file.is_plain for file in files):
            return None
        paths = [file.path for file in files]
        if any(json.dumps(path, ensure_ascii=False) != f'"{path}"' for path in paths):
            return None
        records, sizes = (np.array([getattr(file, name) for file in files], np.int64) for name in ("records", "bytes"))
        checksums = np.array([file.crc32c for file in files], np.uint32)
        return cls(pa.array(paths, pa.string()), records, sizes, checksums)

    @classmethod
    def concat(cls, columns: Sequence[ManifestColumns]) -> ManifestColumns:
        """The files of several columns, one after the other."""
        if len(columns) == 1:
            return columns[0]
        records, sizes = (
            np.concatenate([np.empty(0, np.int64), *(getattr(each, name) for each in columns)])
            for name in ("records", "sizes")
        )
        checksums = np.concatenate([np.empty(0, np.uint32), *(each.checksums for each in columns)])
        split = [each._paths for each in columns if isinstance(each._paths, tuple)]
        if len(split) < len(columns) or not split:
            texts = [each.paths for each in columns]
            return cls(pa.concat_arrays(texts) if texts else pa.array([], pa.string()), records, sizes, checksums)
        folders = pa.chunked_array([folder for folder, _ in split]).unify_dictionaries().chunks
        folder = pa.DictionaryArray.from_arrays(pa.concat_arrays([f.indices for f in folders]), folders[-1].dictionary)
        return cls((folder, pa.concat_arrays([names for _, names in split])), records, sizes, checksums)

    @overload
    def __getitem__(self, at: int) -> ManifestFile: ...
    @overload
    def __getitem__(self, at: slice) -> ManifestColumns: ...
    def __getitem__(self, at: int | slice) -> ManifestFile | ManifestColumns:
        if isinstance(at, slice):
            return self.take(np.arange(*at.indices(len(self))))
        path = self._path(range(len(self))[at])
        return ManifestFile(path, int(self.records[at]), int(self.sizes[at]), int(self.checksums[at]))

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[ManifestFile]:
        columns = self.paths.to_pylist(), self.records.tolist(), self.sizes.tolist(), self.checksums.tolist()
        return starmap(ManifestFile, zip(*columns, strict=True))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, ManifestColumns):
            numbers = (self.records, self.sizes, self.checksums), (other.records, other.sizes, other.checksums)
            return all(map(np.array_equal, *numbers)) and self._have_paths_of(other)
        if not isinstance(other, tuple):
            return NotImplemented
        return len(self) == len(other) and tuple(self) == other

    __hash__ = None  # type: ignore[assignment]

    def _have_paths_of(self, files: ManifestColumns) -> bool:
        """True if both, which are of one length, have the same paths in the same order."""
        if not isinstance(self._paths, tuple) or not isinstance(files._paths, tuple):
            return self.paths.equals(files.paths)
        return self.names.equals(files.names) and np.array_equal(*self._folders_as_in(files))

    @property
    def are_in_order(self) -> bool:
        return self.ordered_folders is not None

    @property
    def reading_order(self) -> ReadingOrder:
        if self.are_in_order or not len(self):
            return ReadingOrder(len(self))
        folders, of_files = self.folders
        places = np.empty(len(folders), np.int64)
        if (numbers := numbers_in_folders(folders)) is not None:
            places[np.argsort(numbers)] = np.arange(len(folders))
        else:
            keys = [natural_key(self.paths[at].as_py()) for at in self._first_in_folders]
            places[sorted(range(len(folders)), key=keys.__getitem__)] = np.arange(len(folders))
        return ReadingOrder(len(self), np.argsort(places[of_files], kind="stable"))

    @property
    def bounds(self) -> Mapping[str, FolderBounds]:
        """The bounds of partition columns that are known without a look at the files: none."""
        return {}

    @property
    def bounds_of_pieces(self) -> list[tuple[Mapping[str, FolderBounds], int]]:
        return [(self.bounds, len(self))]

    @property
    def counts_of_pieces(self) -> list[tuple[int, int]]:
        return [(len(self), self.record_count)]

    def records_of_piece(self, piece: int) -> Array:
        return self.records

    def first(self, count: int) -> ManifestColumns:
        return self if count == len(self) else self[:count]

    @cached_property
    def ordered_folders(self) -> tuple[str, str] | None:
        """The first and the last folder, if the files are in the order of folders, which is that of their reading."""
        folders, of_files = self.folders
        if not folders or (np.diff(of_files) < 0).any():
            return None
        if (numbers := numbers_in_folders(folders)) is not None:
            is_ordered = bool((np.diff(numbers) > 0).all())
        else:
            is_ordered = all(is_folder_before(first, second) for first, second in pairwise(folders))
        return (folders[0], folders[-1]) if is_ordered else None

    def take(self, numbers: Array) -> ManifestColumns:
        chosen = pa.array(numbers)
        if isinstance(self._paths, tuple):
            folder = pa.DictionaryArray.from_arrays(self._paths[0].indices.take(chosen), self._paths[0].dictionary)
            paths = folder, self._paths[1].take(chosen)
        else:
            paths = self._paths.take(chosen)
        return ManifestColumns(paths, self.records[numbers], self.sizes[numbers], self.checksums[numbers])

    def then(self, files: ManifestFiles) -> tuple[ManifestFile, ...] | ManifestColumns:
        if not files:  # one by one if one of the others states more
            return self
        added = self.of(files)
        return (*self, *files) if added is None else ManifestColumns.concat([self, added])

    def replace(
        self, numbers: Sequence[int], files: Sequence[tuple[int, ManifestFile]]
    ) -> tuple[ManifestFile, ...] | ManifestColumns:
        kept = np.delete(np.arange(len(self)), numbers)
        places = np.concatenate([kept, [number for number, _ in files]]).astype(np.int64)
        with_added = self.then(tuple(file for _, file in files))
        order = np.concatenate([kept, np.arange(len(self), len(with_added))])[np.argsort(places, kind="stable")]
        if isinstance(with_added, tuple):
            return tuple(map(with_added.__getitem__, order.tolist()))
        return with_added.take(order)

    def numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        places = self._in_folders({path.rpartition("/")[0] for path in paths})
        numbers = self.take(places)._numbers_of(paths)
        return [None if number is None else int(places[number]) for number in numbers]

    def _numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        import pyarrow.compute as pc

        numbers: list[int | None] = pc.index_in(pa.array(paths, pa.string()), self.paths).to_pylist()
        return numbers

    def _in_folders(self, names: Collection[str]) -> Array:
        """The numbers of the files in some folders."""
        wanted = {*names}
        return np.flatnonzero(np.array([name in wanted for name in self.folder_names], bool)[self.folders[1]])

    def has_path_with(self, text: str) -> bool:
        import pyarrow.compute as pc

        return bool(pc.any(pc.match_substring(self.paths, text)).as_py())

    def without_parts_of(self, other: ManifestFiles) -> ManifestFiles:
        return self

    def leave_out_folders(self, names: Collection[str]) -> ManifestColumns:
        is_left = np.array([folder not in names for folder in self.folder_names], bool)
        return self if is_left.all() else self.take(np.flatnonzero(is_left[self.folders[1]]))

    def rows_before(self, numbers: Sequence[int]) -> list[int]:
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(self.records)])
        rows: list[int] = before[np.array(numbers, np.int64)].tolist()
        return rows

    def paths_without(self, others: AllFiles) -> list[str]:
        if (columns := others.columns) is None:
            return super().paths_without(others)
        return self.leave_out(columns).path_list

    def leave_out(self, files: ManifestColumns) -> ManifestColumns:
        """Leave out the files whose paths are among those of `files`; the rest keeps its order."""
        import pyarrow.compute as pc

        first, last = self._count_equal(files)  # of a part that was written again, nearly all
        left, removed = self, files
        if first or last:
            left, removed = self[first : len(self) - last], files[first : len(files) - last]
        if not len(left) or not len(removed):
            return left
        if len(left) < len(removed):  # a lookup among fewer names
            removed = removed.take(_places_of(removed.names, left.names))
        places = _places_of(left.names, removed.names)
        is_gone = pc.is_in(left.take(places).paths, removed.paths).to_numpy(zero_copy_only=False)
        return left.take(np.delete(np.arange(len(left)), places[is_gone])) if is_gone.any() else left

    def _count_equal(self, files: ManifestColumns) -> tuple[int, int]:
        """The numbers of equal paths at the beginning and at the end of both."""
        import pyarrow.compute as pc

        folders, of_files = self._folders_as_in(files)
        count = min(len(self), len(files))

        def count_equal(begin: int, begin_in_files: int, step: int) -> int:
            are_equal = pc.equal(self.names.slice(begin, count), files.names.slice(begin_in_files, count))
            differs = ~are_equal.to_numpy(zero_copy_only=False)
            differs |= folders[begin : begin + count] != of_files[begin_in_files : begin_in_files + count]
            return int(differs[::step].argmax()) if differs.any() else count

        at_begin = count_equal(0, 0, 1)
        at_end = count_equal(len(self) - count, len(files) - count, -1)
        return at_begin, min(at_end, count - at_begin)

    def _folders_as_in(self, files: ManifestColumns) -> tuple[Array, Array]:
        """Numbers of the folders of both, equal where the folders are."""
        import pyarrow.compute as pc

        if isinstance(self._paths, tuple) and isinstance(files._paths, tuple):
            folders, of_files = self._paths[0], files._paths[0]
            if folders.dictionary.equals(of_files.dictionary):  # as of files of which some were removed
                return folders.indices.to_numpy(), of_files.indices.to_numpy()
        names = pa.array(self.folder_names, pa.string())
        numbers = pc.fill_null(pc.index_in(pa.array(files.folder_names, pa.string()), names), -1)
        of_others = numbers.to_numpy()
        return self.folders[1], of_others[files.folders[1]]

    @property
    def path_list(self) -> list[str]:
        paths: list[str] = self.paths.to_pylist()
        return paths

    @property
    def counts(self) -> list[int]:
        counts: list[int] = self.records.tolist()
        return counts

    @property
    def record_count(self) -> int:
        return int(self.records.sum())

    @property
    def byte_count(self) -> int:
        return int(self.sizes.sum())

    @property
    def folder_names(self) -> Sequence[str]:
        return self.folders[0]

    @property
    def largest_number(self) -> int:
        import pyarrow.compute as pc

        largest = -1
        for shard, _, names in self._similar_names:
            if shard is not None:
                largest = max(largest, pc.max(_numbers_in(names, f"{shard.base}-")).as_py())
        return largest

    @property
    def have_ids(self) -> bool:
        """True if all names have the id of the write that added the shard: no other shard gets the name."""
        return all(shard is not None and shard.id for shard, _, _ in self._similar_names)

    @property
    def has_one_twice(self) -> bool:
        """True if two files have the same path."""
        import pyarrow.compute as pc

        is_split = isinstance(self._paths, tuple)
        if not is_split or pc.count_distinct(self._paths[0].dictionary).as_py() < len(self._paths[0].dictionary):
            return pc.count_distinct(self.paths).as_py() < len(self)
        names = self._different_names
        if (count := len(names.dictionary)) == len(self):
            return False
        pairs = self._paths[0].indices.to_numpy().astype(np.int64) * count + names.indices.to_numpy()
        if count * len(self._paths[0].dictionary) <= _MOST_COUNTED * len(self):
            return bool(np.bincount(pairs).max(initial=0) > 1)
        return len(np.unique(pairs)) < len(self)

    def check_paths(self, check: Callable[[str], object], columns: Sequence[str]) -> None:
        """Let `check` raise an error about a path that the manifest must not name.

        It is asked about one of each folder that does not simply state values of these `columns`, and about one of all
        similar names: those of shards of one dataset that differ in numbers alone.
        """
        for number in self._first_in_folders[~ColumnFolder.are_plain(self.folders[0], columns)]:
            check(self._path(number))
        for _, name, _ in self._similar_names:
            check(self._path(self.names.index(name).as_py()))

    def _path(self, number: int) -> str:
        if not isinstance(self._paths, tuple):
            path: str = self._paths[int(number)].as_py()
            return path
        folder, name = (column[int(number)].as_py() for column in self._paths)
        return f"{folder}/{name}" if folder else name

    @cached_property
    def _different_names(self) -> pa.DictionaryArray:
        """The names of the files, without folders; those that a writing gives in each folder are there once."""
        return self.names.dictionary_encode()

    @cached_property
    def _similar_names(self) -> list[tuple[ShardName | None, pa.StringScalar, pa.StringArray]]:
        """The different names of the files, without folders, in groups of similar ones.

        Of each the parts of its first name, None for one that has no shard number, and that name.
        """
        import pyarrow.compute as pc

        groups: list[tuple[ShardName | None, pa.StringScalar, pa.StringArray]] = []
        names = self._different_names.dictionary
        while len(names):
            shard = ShardName.parse(names[0].as_py())
            are_similar = np.arange(len(names)) == 0
            if shard is not None:
                are_similar |= pc.match_substring_regex(names, shard.pattern_of_similar).to_numpy(zero_copy_only=False)
            groups.append((shard, names[0], names.filter(pa.array(are_similar))))
            names = names.filter(pa.array(~are_similar))
        return groups

    # ---- text

    @property
    def text(self) -> bytes:
        """The entries of a manifest in JSON, one a line."""
        import pyarrow.compute as pc

        texts = ['  {"path": "', self.paths, '", "records": ', self.records, ', "bytes": ', self.sizes]
        digits = pa.py_buffer(self.checksums.astype(">u4").tobytes().hex().encode())
        bounds = pa.py_buffer(np.arange(0, _HEX * len(self) + 1, _HEX, dtype=np.int32))
        texts += [', "crc32c": "', pa.StringArray.from_buffers(len(self), bounds, digits), '"}']
        parts = [pa.array(part).cast(pa.string()) if isinstance(part, np.ndarray) else part for part in texts]
        return b",\n".join(pc.binary_join_element_wise(*parts, "").cast(pa.binary()).to_pylist())

    @classmethod
    def parse(cls, text: bytes) -> tuple[bytes, ManifestColumns] | None:
        """The text of a manifest without its files, and these as columns, whose paths are still to be checked.

        None if the entries are to be parsed one by one: there are few, or they are not as this package writes them.
        """
        begin = text.find(_BEGIN)
        if begin < 0 or not text.endswith(_END):
            return None
        body = text[begin + len(_BEGIN) : -len(_END)]
        count = body.count(b"\n") + 1
        if count <= SIZES.many or b"\\" in body or np.count_nonzero(np.frombuffer(body, np.uint8) < ord(" ")) >= count:
            return None
        try:
            files = cls._of_lines(body, count)
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        return None if files is None else (text[:begin] + b'"files": []}', files)

    @classmethod
    def _of_lines(cls, body: bytes, count: int) -> ManifestColumns | None:
        """The entries of files, one a line; None if one has other keys, or a value that is out of range."""
        from pyarrow import json as arrow_json

        types = {"path": pa.string(), "records": pa.int64(), "bytes": pa.int64(), "crc32c": pa.string()}
        table = arrow_json.read_json(
            pa.BufferReader(body.replace(b"},\n", b"}\n")),
            arrow_json.ReadOptions(use_threads=False, block_size=len(body) + 1),
            arrow_json.ParseOptions(explicit_schema=pa.schema(types), unexpected_field_behavior="error"),
        ).combine_chunks()
        if table.num_rows != count or any(column.null_count for column in table.columns):
            return None
        paths, records, sizes, checksums = (column.chunk(0) for column in table.columns)
        paths.validate(full=True)  # UTF-8
        if not _are_hex(checksums):
            return None
        numbers = np.frombuffer(bytes.fromhex("".join(checksums.to_pylist())), ">u4").astype(np.uint32)
        files = cls(paths, records.to_numpy(), sizes.to_numpy(), numbers)
        columns = files.records, files.sizes
        is_wrong = any(column.min() < 0 or column.sum(dtype=np.float64) >= MOST_SUM for column in columns)
        return None if is_wrong else files


def _are_hex(texts: pa.StringArray) -> bool:
    """True if each checksum has 8 digits of lower case."""
    _, ends, data = texts.buffers()
    bounds = np.frombuffer(ends, np.int32, len(texts) + 1, texts.offset * 4)
    digits = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]]
    is_digit = ((digits >= ord("0")) & (digits <= ord("9"))) | ((digits >= ord("a")) & (digits <= ord("f")))
    return bool((np.diff(bounds) == _HEX).all() and is_digit.all())


def _numbers_in(names: pa.StringArray, prefix: str) -> pa.Int64Array:
    """The numbers after the prefix of all names, of which there is at least one."""
    import pyarrow.compute as pc

    digits = re.match("[0-9]+", names[0].as_py()[len(prefix) :])
    assert digits is not None, "a name of a shard"
    end = len(prefix) + len(digits[0])
    behind = pc.utf8_slice_codeunits(names, end, end + 1)
    is_alike = pc.equal(behind, behind[0])  # which is no digit
    with suppress(pa.ArrowInvalid):  # a number with fewer digits
        if pc.all(is_alike).as_py():
            return pc.utf8_slice_codeunits(names, len(prefix), end).cast(pa.int64())
    numbers = pc.extract_regex(names, f"^{re.escape(prefix)}(?P<number>[0-9]+)").field(0)
    return numbers.cast(pa.int64())


def is_folder_before(first: str, second: str) -> bool:
    """True if the files of a folder are known to be read before those of another one, whatever their names."""
    before, behind = _folder_key(first), _folder_key(second)
    return bool(first and second) and before < behind and not behind.startswith(before)


@lru_cache(4096)  # the bounds of all parts are compared with each folder of the last files
def _folder_key(folder: str) -> str:
    return natural_key(f"{folder}/")[0]


def numbers_in_folders(folders: Sequence[str]) -> Array | None:
    """Numbers of folders whose names differ in one number, ``day=7``: their natural order; else None."""
    import pyarrow.compute as pc

    column = folders[0].partition("=")[0] if folders else ""
    if not ColumnFolder.are_plain(folders, [column]).all():
        return None
    texts = pc.utf8_slice_codeunits(pa.array(folders, pa.string()), len(column) + 1)
    if not pc.all(pc.match_substring_regex(texts, "^(0|[1-9][0-9]{0,17})$")).as_py():
        return None
    return texts.cast(pa.int64()).to_numpy()


def _first_places(numbers: Array) -> Array:
    """The places at which a greater number than before stands, as numbers that are given in turn, from 0, do first."""
    before = np.maximum.accumulate(numbers)
    return np.flatnonzero(np.diff(before, prepend=-1) > 0)


def all_files(files: ManifestFiles) -> AllFiles:
    """The files of a manifest as a whole."""
    return ListedFiles(files) if isinstance(files, tuple) else files


def _places_of(names: pa.StringArray, wanted: pa.StringArray) -> Array:
    """The indices of the names that are among those wanted."""
    import pyarrow.compute as pc

    return np.flatnonzero(pc.is_in(names, wanted).to_numpy(zero_copy_only=False))


def _split_paths(paths: pa.StringArray) -> tuple[pa.StringArray, pa.StringArray]:
    """The folder of each path, and the name of the file."""
    import pyarrow.compute as pc

    parts = pc.split_pattern(paths, "/", max_splits=1, reverse=True)
    bounds, texts = parts.offsets.to_numpy() - parts.offsets[0].as_py(), parts.flatten()
    folders = pc.if_else(pa.array(np.diff(bounds) == 2), texts.take(pa.array(bounds[:-1])), "")
    return folders, texts.take(pa.array(bounds[1:] - 1))
