"""The files of a large dataset with a manifest, none of which is looked up: columns, as the manifest has them.

A file becomes a `Source` where it is opened; what a read asks of all files is answered from the columns. Pickled, they
are the name and id of the manifest, and which of its files are meant: another process reads the manifest when it needs
more than their number and size.

Tests: tests/store/paths/test_manifest_sources.py.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, overload

import numpy as np
import pyarrow as pa

from tfrecord_io.base import cached_property
from tfrecord_io.bytes import Array
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import is_remote
from tfrecord_io.store.filesystem.os_errors import replaced_error
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.folder_bounds import FolderBounds
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.paths.manifest_files import NOTHING, ManifestColumns, ManyFiles, ReadingOrder
from tfrecord_io.store.paths.manifest_parts import ask_again, working_directory
from tfrecord_io.store.read.source import (
    INCOMPLETE,
    ManifestFile,
    ManifestShard,
    ManifestVersion,
    Source,
    Sources,
    united_metadata,
)

T = TypeVar("T")
_MOST_PIECES = 16  # that are asked one by one for the files in wanted folders


class _Dataset:
    """All files that a manifest names; the sequences of some of them share it.

    Parameters
    ----------
    version : ManifestVersion
    columns : tuple of str
        Of the folders.
    count : int
        So many files, the first ones of the manifest: others may have been added to it since.
    files : ManyFiles, optional
        These, and perhaps others after them. By default, they are read when they are first needed.
    """

    def __init__(
        self, version: ManifestVersion, columns: tuple[str, ...], count: int, files: ManyFiles | None = None
    ) -> None:
        self.version, self.columns, self.count, self._all = version, columns, count, files
        self.fs: FileSystem = version.fs
        self._root = working_directory(self.fs, version.name)
        self.directory = version.name[: len(version.name) - len(version.name.rpartition("/")[2])]
        self._made: dict[int, Source] = {}  # as `id` tells a file from others

    @cached_property
    def files(self) -> ManifestColumns:
        """All files as columns."""
        return self._ask(lambda files: files.first(self.count).columns)

    def take(self, numbers: Array) -> ManifestColumns:
        """Some files, by their numbers in the manifest, as columns."""
        return self._ask(lambda files: files.take(numbers))

    def file(self, number: int) -> ManifestFile:
        """One file, by its number in the manifest."""
        return self._ask(lambda files: files[number])

    def _ask(self, question: Callable[[ManyFiles], T]) -> T:
        """Ask the files; where parts of their manifest are gone, those of the manifest that is there by now."""

        def read() -> ManyFiles:
            self._all = self._read()
            return self._all

        return ask_again(read, question, *([] if self._all is None else [self._all]))

    def _read(self) -> ManyFiles:
        """Read the files from the manifest; ReplacedError if it is not the one any more that they were found by."""
        version = self.version._replace(name=os.path.join(self._root, self.version.name))
        manifest = Manifest.current(version, loads=False)
        if manifest is None or manifest.id != self.version.id or len(manifest.files) < self.count:
            raise replaced_error(self.version.path, "dataset")
        files = ManifestColumns.of(manifest.files) if isinstance(manifest.files, tuple) else manifest.files
        if files is None:  # of a version with this id that another program has written
            raise replaced_error(self.version.path, "dataset")
        return files

    @cached_property
    def order(self) -> ReadingOrder:
        """The order in which the files are read: by folder, and in each by their order in the manifest."""
        if self.are_in_order:
            return ReadingOrder(self.count)
        return self._ask(lambda files: files.first(self.count).reading_order)

    @cached_property
    def are_in_order(self) -> bool:
        """True if the files of the manifest are known to be in the order of reading, without a look at each."""
        return self._ask(lambda files: files.are_in_order)

    @property
    def has_order(self) -> bool:
        """True if the order of reading is known, without a look at each file."""
        return self.are_in_order or "order" in self.__dict__

    @cached_property
    def are_in_parts(self) -> bool:
        """True if the manifest has files in parts."""
        return self._ask(lambda files: files.are_in_parts)

    def run(self, at: int, count: int) -> tuple[int, int]:
        """The numbers of the first file, and after the last one, of a run; see `ManyFiles.run`."""
        return self._ask(lambda files: files.first(self.count).run(at, count))

    @cached_property
    def bounds(self) -> tuple[list[Mapping[str, FolderBounds]], Array]:
        """The bounds of partition columns in pieces of the files, and the number of the file after each piece."""
        pieces = self._ask(lambda files: files.bounds_of_pieces)
        return [bounds for bounds, _ in pieces], np.array([min(end, self.count) for _, end in pieces])

    def source(self, number: int) -> Source:
        """A file, by its number in the manifest."""
        if (source := self._made.get(number)) is None:
            source = self._made.setdefault(number, self._make(number))
        return source

    def _make(self, number: int) -> Source:
        file, is_in_store = self.file(number), is_remote(self.fs)
        # In a bucket, where to watch a shard costs a request, only the last one is watched, for all of them.
        watched = not is_in_store or number == (self.order.last if self.has_order else self.count - 1)
        shard = ManifestShard(
            self.version,
            file.records,
            bytes=file.bytes,
            crc32c=file.crc32c,
            staged=None,
            watched=watched,
            is_unseen=True,
        )
        # The name of a shard in a bucket has the id of its writing, so that it is that of one version only.
        info = {INCOMPLETE: True, "size": file.bytes} if is_in_store else None
        entry = Entry(self.directory + file.path, file.bytes, False, info)
        return Source.from_entry(self.fs, entry, shard=shard, partitions=ColumnFolder.pairs_in(f"/{file.path}", "/"))

    def absolute(self, directory: str) -> _Dataset:
        """The files by absolute paths; `directory` is the working directory in which they were looked up."""
        version = self.version._replace(name=os.path.join(directory, self.version.name))
        return _Dataset(version, self.columns, self.count, self._all)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Dataset, (self.version, self.columns, self.count)


class ManifestSources(Sources):
    """Files of a dataset that are not looked up: the manifest states what is known of them.

    Parameters
    ----------
    dataset : _Dataset
    picked : range or ndarray of int64
        Positions of the files in the order of reading all; or, `by_number`, their numbers in the manifest, which are
        known without the order of all. Both are in the order of reading.
    """

    def __init__(self, dataset: _Dataset, picked: range | Array, *, by_number: bool = False) -> None:
        self._dataset, self._picked, self._by_number = dataset, picked, by_number
        self.have_partitions = bool(dataset.columns) and len(picked) > 0

    @classmethod
    def of_manifest(cls, fs: FileSystem, name: str, manifest: Manifest) -> Self | None:
        """The files of a manifest `name` of many files, in the order of reading.

        None if they must be looked up: some of them, in a bucket, may be replaced under their names.
        """
        files = manifest.files
        if isinstance(files, tuple) or (is_remote(fs) and not files.have_ids):
            return None
        dataset = _Dataset(manifest.version(fs, name), manifest.partition_by, len(files), files)
        sources = cls(dataset, range(len(files)))
        sources.__dict__["_totals"] = manifest.bytes, manifest.records
        return sources

    @cached_property
    def _numbers(self) -> Array:
        """Numbers of the files in the manifest."""
        return self._numbers_at(_as_array(self._picked))

    def _numbers_at(self, picked: Array) -> Array:
        return picked if self._by_number else self._dataset.order.numbers(picked)

    @overload
    def __getitem__(self, at: int) -> Source: ...
    @overload
    def __getitem__(self, at: slice) -> Sources: ...
    def __getitem__(self, at: int | slice) -> Source | Sources:
        if isinstance(at, slice):
            return type(self)(self._dataset, self._picked[at], by_number=self._by_number)
        return self._dataset.source(int(self._numbers_at(np.array([self._picked[at]]))[0]))

    def __len__(self) -> int:
        return len(self._picked)

    def __iter__(self) -> Iterator[Source]:
        return map(self._dataset.source, self._numbers.tolist())

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ManifestSources) and other._dataset is self._dataset:
            if self._by_number == other._by_number:
                return np.array_equal(self._picked, other._picked)
            return np.array_equal(self._numbers, other._numbers)
        return Sources.__eq__(self, other)

    __hash__ = None

    def take(self, numbers: Array) -> Sources:
        picked = numbers if self._is_whole else _as_array(self._picked)[numbers]
        return type(self)(self._dataset, picked, by_number=self._by_number)

    def run(self, worker: int, workers: int) -> tuple[int, int] | None:
        """The run of a worker among the files of a manifest in parts, so that it reads few parts.

        Of all files, it has numbers in the order of the manifest. The runs have about equally many records.
        """
        if not self._dataset.are_in_parts:
            return None
        return self._dataset.run(worker, workers) if self._is_whole else self._files.run(worker, workers)

    def share(self, worker: int, workers: int) -> Sources:
        if (run := self.run(worker, workers)) is None:
            return super().share(worker, workers)
        if not self._is_whole or self._dataset.are_in_order:
            return self[slice(*run)]
        numbers = np.arange(*run)
        order = self._dataset.take(numbers).reading_order.all_numbers
        return type(self)(self._dataset, numbers[order], by_number=True)

    def select_by_folder(
        self,
        fields: Sequence[pa.Field],
        may_be_in: Callable[[pa.RecordBatch], Array],
        are_wanted: Callable[[Sources], Array],
    ) -> Sources:
        all_bounds, ends = self._dataset.bounds
        are_possible = (
            may_be_in(FolderBounds.batch(all_bounds, fields)) if any(all_bounds) else np.ones(len(ends), bool)
        )
        pieces = np.flatnonzero(are_possible)
        if self._by_number or self._dataset.has_order or not self._is_whole or len(pieces) > _MOST_PIECES:
            some: Sources = self
            if not are_possible.all():
                some = self.take(np.flatnonzero(are_possible[np.searchsorted(ends, self._numbers, side="right")]))
            return some._where(are_wanted(some))
        begins, wanted = np.append(0, ends[:-1]), [NOTHING]
        for piece in pieces:  # whose folders are not those of the others: one by one, they need not be joined
            numbers = np.arange(begins[piece], ends[piece])
            if len(numbers):
                wanted.append(numbers[are_wanted(type(self)(self._dataset, numbers, by_number=True))])
        numbers = np.concatenate(wanted)
        if len(numbers) == len(self):
            return self
        order = self._dataset.take(numbers).reading_order if len(numbers) else ReadingOrder(0)
        return type(self)(self._dataset, numbers[order.all_numbers], by_number=True)

    @property
    def _is_whole(self) -> bool:
        """True if these are all files of the dataset, in the order of reading."""
        return isinstance(self._picked, range) and self._picked == range(self._dataset.count)

    @property
    def are_of_manifest(self) -> bool:
        return True

    @property
    def have_stated_schemas(self) -> bool:
        return not len(self) or self._dataset.version.schema is not None

    @property
    def are_local(self) -> bool:
        return not is_remote(self._dataset.fs)

    @property
    def can_be_read_again(self) -> bool:
        return True

    @property
    def bytes(self) -> int | None:
        return self._totals[0]

    @property
    def stated_records(self) -> int | None:
        return self._totals[1]

    @cached_property
    def _totals(self) -> tuple[int, int]:
        """Bytes and records of the files."""
        return int(self._files.sizes.sum()), int(self._files.records.sum())

    @cached_property
    def _files(self) -> ManifestColumns:
        return self._dataset.take(self._numbers)

    @property
    def sizes(self) -> Array:
        return self._files.sizes

    @property
    def paths(self) -> list[str]:
        of = self._dataset
        return [of.fs.display_path(of.directory + path) for path in self._files.paths.to_pylist()]

    @property
    def manifests(self) -> dict[ManifestVersion | None, Source]:
        return {self._dataset.version: self[0]} if len(self) else {}

    @property
    def manifest_versions(self) -> list[ManifestVersion | None]:
        return [self._dataset.version] if len(self) else []

    @property
    def partition_names(self) -> list[str]:
        return [*self._dataset.columns] if len(self) else []

    @property
    def metadata(self) -> dict[str, str]:
        return united_metadata([self._dataset.version] if len(self) else [])

    def folders(self, columns: Sequence[str]) -> tuple[dict[str, pa.StringArray], Array]:
        folders, numbers = self._files.folders
        return ColumnFolder.texts_in(folders, columns), numbers

    def absolute(self, directory: str | None = None) -> Sources:
        if self.working_directory is None:
            return self
        dataset = self._dataset.absolute(os.getcwd() if directory is None else directory)
        return type(self)(dataset, self._picked, by_number=self._by_number)

    @property
    def working_directory(self) -> str | None:
        return None if not self.are_local or os.path.isabs(self._dataset.directory) else os.getcwd()

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._dataset, _pack_places(_as_array(self._picked)), self._totals, self._by_number)


def _unpickle(dataset: _Dataset, picked: bytes, totals: tuple[int, int], by_number: bool) -> ManifestSources:
    sources = ManifestSources(dataset, _unpack_places(picked), by_number=by_number)
    sources.__dict__["_totals"] = totals
    return sources


def _as_array(picked: range | Array) -> Array:
    return np.arange(picked.start, picked.stop, picked.step) if isinstance(picked, range) else picked


def _pack_places(places: Array) -> bytes:
    """Places as runs of equal steps, as of files in a row or every n-th: the first place, the step and the count."""
    steps = np.diff(places)
    first_steps = np.flatnonzero(np.append(True, np.diff(steps) != 0)) if len(steps) else np.empty(0, np.int64)
    counts = np.diff(np.append(first_steps, len(steps)))
    return zlib.compress(np.concatenate([places[:1], np.ravel([steps[first_steps], counts])]).astype("<i8").tobytes())


def _unpack_places(packed: bytes) -> range | Array:
    numbers = np.frombuffer(zlib.decompress(packed), "<i8")
    steps, counts = numbers[1:].reshape(2, -1)
    if len(steps) == 1 and steps[0]:
        first, step, count = int(numbers[0]), int(steps[0]), int(counts[0])
        return range(first, first + step * (count + 1), step)
    return np.cumsum(np.append(numbers[:1], np.repeat(steps, counts)))
