"""The earlier files of a dataset, to be removed by a writer once its manifest has replaced the earlier one.

Tests: tests/store/write/test_write_modes.py.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import partial

from tfrecord_io.base import counted, printable, warn
from tfrecord_io.store.filesystem.interface import Entry
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName
from tfrecord_io.store.write.commit_place import Place, version_of

_LISTED_ALONE = 4  # folders


class OldFiles:
    """The files in the directory of a dataset, by their names in it.

    Parameters
    ----------
    place : Place
        The directory.
    stem : str
        Of the dataset.
    grows : bool
        Whether the dataset may have folders, and shards of several writings.

    Attributes
    ----------
    place : Place
    stem : str
    existing : list of str
        The dataset's shards and its manifest, as the publication has found them; of a dataset that grows, none.
    versions : dict of str to str or None
        Of the files, as the last look found them.
    fences : set of str
        The own ones that were put.
    left : dict of str to OSError
        The files that could not be removed, and why.
    """

    def __init__(self, place: Place, stem: str, *, grows: bool) -> None:
        self.place, self.stem, self._grows = place, stem, grows
        self.existing: list[str] = []
        self.versions: dict[str, str | None] = {}
        self.fences: set[str] = set()
        self.left: dict[str, OSError] = {}
        self._last: ShardName | None = None  # the last name of a shard that was parsed
        self._beside: dict[str, set[str]] = {}  # names in the folders of shards that are replaced

    def path_of(self, name: str) -> str:
        """The path of a file, for messages."""
        return self.place.fs.display_path(self.place.directory + name)

    def name_of(self, entry: Entry) -> str:
        """The name of a file in the directory."""
        return entry.name.removeprefix(self.place.directory)

    def listing(self, folder: str = "") -> list[str]:
        """The names of the files in a folder, without it; none if there is no such folder."""
        try:
            entries = self.place.fs.listing(os.path.join(self.place.directory, folder))
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [entry.basename for entry in entries if not entry.directory]

    def is_shard(self, name: str) -> bool:
        """True if a file has the name of a shard of the dataset."""
        if "/" in name:  # those in folders have the id of their writing
            return False
        if self._last is not None and self._last.is_like(name):  # as most are
            return True
        shard = ShardName.parse(name)
        if shard is None or shard.stem != self.stem:
            return False
        self._last = shard
        return True

    def is_numbered(self, name: str) -> bool:
        """True if another writer may give a shard the same name, in a store where versions tell them apart."""
        return self.place.is_conditional and self.is_shard(os.path.basename(name)) and not ShardName.id_in(name)

    def indexes(self) -> list[str]:
        """The indexes of the dataset's shards, which are outdated once the shards are replaced."""
        suffixes = (FileName.INDEX_SUFFIX, FileName.COLUMN_INDEX_SUFFIX)
        files = (FileName.parse(name) for name in self.listing() if name.endswith(suffixes))
        return [file.name for file in files if file.kind is Kind.INDEX and file.dataset == self.stem]

    def note_versions(self, listing: Sequence[Entry] | None = None, names: Iterable[str] = ()) -> None:
        """Note the versions of the files in the directory, as a listing states them, and of `names` in its folders."""
        fs, directory = self.place.fs, self.place.directory
        entries = list(fs.listing(directory) if listing is None else listing)
        if in_folders := [directory + name for name in names if "/" in name]:
            entries += filter(None, fs.entries(in_folders, are_files=True))
        self.versions = {self.name_of(entry): version_of(entry) for entry in entries}

    def prepare_removal(self, names: Iterable[str], id: str) -> None:
        """Note the versions of files, and put the fence of a writing, with this id, if there are any.

        That comes before the look whether they may be removed.
        """
        if numbered := set(filter(self.is_numbered, names)):
            self.note_versions(names=numbered)
            fence = self.place.fence(id)
            if fence is not None and not numbered.isdisjoint(self.versions):
                self.fences.add(fence)
                self.place.put_fence(id)

    def remove(self, names: Sequence[str]) -> None:
        """Remove files; those whose names another writer may give again, only if they are what the last look found."""
        if not names:
            return
        seen = [name for name in names if self.is_numbered(name) and name in self.versions]
        not_removed = self.place.remove_many([name for name in names if not self.is_numbered(name)])
        self.place.each(partial(self._try_to_remove, name) for name in (*seen, *not_removed))

    def _try_to_remove(self, name: str) -> None:
        try:
            self.place.remove(name, self.versions.get(name) if self.is_numbered(name) else None)
        except OSError as error:
            self.left[name] = error

    def remove_replaced(self, names: Sequence[str]) -> None:
        """Remove files that were replaced, and their indexes."""
        if not names:
            return
        to_remove: list[str] = []
        folders = {os.path.dirname(name) for name in names if self._grows}.difference(self._beside)
        for folder in {""} & folders if len(folders) > _LISTED_ALONE else folders:
            self._beside[folder] = {os.path.join(folder, name_in_folder) for name_in_folder in self.listing(folder)}
        left = folders.difference(self._beside)  # of many folders, by a listing of all
        self._beside.update((folder, set()) for folder in left)
        for entry in self.place.fs.files_in_partition_folders(self.place.directory) if left else ():
            name = self.name_of(entry)
            if (folder := os.path.dirname(name)) in left:
                self._beside[folder].add(name)
        for name in names:
            beside = self._beside.get(os.path.dirname(name), ())
            to_remove += [index for index in FileName.indexes(name) if index in beside]
            to_remove.append(name)
        self.remove(to_remove)

    def warn_of_left(self) -> None:
        """Warn of files that should have been removed, when nothing else is to be done."""
        if self.left:
            name, error = next(iter(self.left.items()))
            path = printable(self.path_of(name))
            first = "" if len(self.left) == 1 else ", of which this is the first"
            reason = f"{counted(len(self.left), 'old file')} could not be removed{first}"
            why = printable(error.strerror or error)
            advice = "this package does not read such files, other programs may: delete them"
            warn(f"{path}: the new dataset is published, but {reason} ({why}); {advice}", UserWarning)
