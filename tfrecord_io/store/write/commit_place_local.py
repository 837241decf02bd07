"""A local directory to which a dataset is published.

Tests: tests/store/write/test_publication.py and tests/store/write/test_commit_place.py.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from tfrecord_io.base import Remark
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.directories import create_directories
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest import Manifest, Upkeep
from tfrecord_io.store.read.source import ManifestFile, read_manifest
from tfrecord_io.store.write.atomic_local import LocalOutput, open_local
from tfrecord_io.store.write.commit_place import Place
from tfrecord_io.store.write.output_file import OutputFile

T = TypeVar("T")
P = ParamSpec("P")

_MOST_REMOVALS = 8  # of a directory in which a writer begins
_NAMED = Remark("the complete file has its name")  # which does not say whether the rows are published


def _recreate_directory(call: Callable[Concatenate[LocalPlace, P], T]) -> Callable[Concatenate[LocalPlace, P], T]:
    """Repeat a call if failed writers removed the directory after creating it."""

    @wraps(call)
    def repeat(place: LocalPlace, /, *arguments: P.args, **keywords: P.kwargs) -> T:
        for _ in range(_MOST_REMOVALS):
            with suppress(FileNotFoundError):
                return call(place, *arguments, **keywords)
            place.create()
        return call(place, *arguments, **keywords)

    return repeat


class LocalPlace(Place):
    """A local directory, created if missing, and locked while its manifest is replaced."""

    is_local = True

    def __init__(self, fs: FileSystem, directory: str, name: str) -> None:
        super().__init__(fs, directory, name)
        self._changed: set[str] = set()  # directories whose names are not durable yet
        self._parent = os.path.dirname(os.path.dirname(directory))
        self._has_durable_name = False  # the directory, in its parent; where a manifest is, its writer has synced it
        self._is_durable = False  # a manifest, which may be replaced, but is not removed
        self._written: Manifest | None = None  # since the directory is locked

    @contextmanager
    def _exclusion(self, required: bool) -> Iterator[bool]:
        with ExitStack() as stack:
            locked = self._lock(stack)
            if required and not locked:
                text = "its filesystem has no locks, without which two writers could lose shards of each other"
                raise OSError(errno.ENOLCK, f"{text}; write a dataset of its own, or to another filesystem", self.path)
            try:
                yield locked
            finally:
                self._written = None

    @_recreate_directory
    def _lock(self, stack: ExitStack) -> bool:
        """Lock the directory until the stack is closed; False if its filesystem has no locks."""
        return stack.enter_context(operating_systems.current.lock_directory(os.path.dirname(self._name) or "."))

    def read(self) -> Manifest | None:
        return self._written or super().read()

    def _write(self, manifest: Manifest) -> None:  # a link is replaced and not followed: it leads to another directory
        self._end_being_alone()
        name, is_link = self._name, os.path.islink(self._name)
        self._written = None  # if this fails, it is unknown which one is there
        if not (self._has_durable_name or os.path.lexists(name)):  # another writer may have created the directory
            self._sync(self._parent)
        with LocalOutput(name, name) if is_link else open_local(name, exclusive=False, after=_NAMED) as file:
            file.write(self.text_of(manifest))
        self._written = manifest if self.is_exclusive else None
        self._is_durable = True

    def confirm(self) -> None:
        """Make the manifest that is there, if any, durable: its writer may have failed before it was.

        A shard in a folder must not outlive the manifest by which readers pass over it until it is published.
        """
        if not self._is_durable and os.path.lexists(self._name):
            operating_systems.current.sync_directory(os.path.dirname(self.directory) or ".")
            self._is_durable = True

    @property
    def _of_directory(self) -> str:
        """The name of the manifest of the dataset that readers of the whole directory read."""
        return self.directory + FileName.manifest(FileName.DIRECTORY_STEM)

    def _directory_if_alone(self, before: Upkeep) -> int | None:
        if not self.is_exclusive or self._name != self._of_directory:
            return None
        number = operating_systems.current.directory_number(self.directory)
        if number and before.alone_in != number:  # whoever puts another manifest there clears that first
            names = os.listdir(operating_systems.current.full_name(self.directory or "."))
            if FileName.manifests_beside(FileName.manifest(FileName.DIRECTORY_STEM), names):
                return None
        return number or None

    def _end_being_alone(self) -> None:
        """Clear the mark of the directory's manifest that it is alone, before a second manifest is stored."""
        if self._name == self._of_directory or self.fs.entry(self._of_directory) is None:
            return
        beside = LocalPlace(self.fs, self.directory, self._of_directory)
        beside.is_exclusive = self.is_exclusive  # the lock is that of the directory
        manifest = beside.find()
        if manifest is None or manifest.upkeep.alone_in is None:
            return
        if not self.is_exclusive:
            text = "its filesystem has no locks here, without which a writer of the dataset beside it could lose shards"
            raise OSError(errno.ENOLCK, f"{text}; write to another directory", self.path)
        upkeep = replace(manifest.upkeep, revision=manifest.upkeep.revision + 1, alone_in=None)
        beside._write(manifest._replace(upkeep=upkeep))

    @_recreate_directory
    def _store_part(self, name: str, body: bytes) -> None:
        self.create(name)
        path = self.directory + name
        with open_local(path, exclusive=False, model=self.model([]), after=_NAMED) as file:
            file.write(body)
        self.sync()  # the folder, too, before the manifest

    def _withdraw_parts(self, names: Sequence[str]) -> None:
        with suppress(OSError):
            entry = self.fs.entry(self._name, is_file=True)
            text = b"" if entry is None else read_manifest(self.fs, entry)
            ids = (FileName.of_path(self.directory + name).id for name in names)
            if not any(id.encode() in text for id in ids):
                self._remove_parts(names)

    def create(self, name: str = "") -> None:
        """Create the directory, or the folder of a shard, if it is missing."""
        if name:
            self.confirm()
        created = create_directories(os.path.dirname(self.directory + name))
        self.created = created + self.created
        self._changed.update(map(os.path.dirname, created))
        self._has_durable_name &= self._parent not in self._changed

    def model(self, names: Sequence[str]) -> os.stat_result | None:
        for name in (*names, self._name.removeprefix(self.directory)):
            with suppress(FileNotFoundError):
                return os.stat(operating_systems.current.full_name(self.directory + name))
        return None

    @_recreate_directory
    def open(self, name: str, staged: str | None, models: Sequence[str], *, exclusive: bool = False) -> OutputFile:
        path, model = self.directory + name, self.model(models)
        if staged is not None:
            self._changed.add(os.path.dirname(self.directory))
            return LocalOutput(path, self.directory + staged, model, syncs_name=False)
        if "/" in name:
            self.create(name)
        return open_local(path, exclusive=False, model=model, after=_NAMED)

    @_recreate_directory
    def move(self, staged: str, name: str, *, size: int | None = None, version: str | None = None) -> bool:
        if "/" in name:
            self.create(name)
        target = self.directory + name
        try:
            operating_systems.current.replace(f"{self.directory}{staged}", target)
        except OSError as error:
            if not (isinstance(error, FileNotFoundError) and os.path.exists(target)):  # else it was moved before
                raise OSError(error.errno, error.strerror, target) from error  # that of the system names both
        self._changed.add(os.path.dirname(target))
        return True

    def check(self, moved: Sequence[ManifestFile]) -> None:
        if moved:  # the names next to the manifest are made durable with its next version, those in folders are not
            self._changed.discard(os.path.dirname(self.directory))
            self.sync()

    def sync(self) -> None:
        for directory in sorted(self._changed):
            self._sync(directory)

    def _sync(self, directory: str) -> None:
        """Make the names in a directory durable."""
        operating_systems.current.sync_directory(directory or ".")
        self._changed.discard(directory)
        self._has_durable_name |= directory == self._parent
