"""Local files that are written atomically.

Tests: tests/store/write/test_publication.py and tests/write/test_side_by_side.py.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from tfrecord_io.base import Remark, quiet_at_exit, undo_after
from tfrecord_io.store import system
from tfrecord_io.store.filesystem.directories import create_directories
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.output_file import FileObjectOutput, OutputFile, exists_error
from tfrecord_io.store.write.place import Place

_OPEN_DESCRIPTOR = re.compile("/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]+)|/proc/[0-9]+/fd/[0-9]+")
_STANDARD = {"stdout": 1, "stderr": 2}
_SYNC_STEP = 2 << 20  # bytes that are stored while more are written, so that the sync at the end has little to do
_READABLE = Remark.unconfirmed("the complete file can be read, but a loss of power may take it")
_STAGED = Remark("the complete file has its staged name")

T = TypeVar("T")
P = ParamSpec("P")


def open_local(
    path: str, *, exclusive: bool, model: os.stat_result | None = None, after: Remark = _READABLE
) -> OutputFile:
    """Open a local file; a device or pipe is written directly. A new file gets the owner and mode of `model`.

    An error that comes after the file got its name ends with `after`.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    try:
        status = os.stat(system.current.full_name(path))
    except FileNotFoundError:
        status = None
    if status is None:
        return LocalOutput(path, target, model=model, exclusive=exclusive, after=after)
    if stat.S_ISDIR(status.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", path)
    if exclusive:
        raise exists_error(path)
    descriptor = _OPEN_DESCRIPTOR.fullmatch(path)
    if descriptor is not None and descriptor.lastindex:  # of this process; by its name, a file would be truncated
        number = _STANDARD.get(descriptor[1]) or int(descriptor[2])
        return FileObjectOutput(open(os.dup(number), "wb", buffering=0), path, owned=True)
    if not stat.S_ISREG(status.st_mode) or descriptor is not None:
        return FileObjectOutput(open(path, "wb", buffering=0), path, owned=True)
    try:
        system.current.check_writable(target)
    except FileNotFoundError:
        pass  # it has been removed meanwhile
    except PermissionError as error:
        raise PermissionError(error.errno, "the file is not writable", path) from error
    return LocalOutput(path, target, status, after=after)


class LocalOutput(OutputFile):
    """A local file, written to a temporary file in the directory of `target`, whose name commit gives it.

    Messages name `path`, which a staged file gets later. It gets the owner and mode of the file that it replaces, or
    of `model`. An error that comes after it got its name ends with `after`. Without `syncs_name`, who has opened it
    makes its name durable, together with those of other files.
    """

    def __init__(
        self,
        path: str,
        target: str,
        replaced: os.stat_result | None = None,
        model: os.stat_result | None = None,
        *,
        exclusive: bool = False,
        after: Remark = _STAGED,
        syncs_name: bool = True,
    ) -> None:
        super().__init__(path)
        self._after, self._syncs_name = after, syncs_name
        self.is_open, self._fd = False, -1  # there is nothing to discard yet
        self._syncing = 0  # bytes that the system stores or has stored
        self._target, self._exclusive, self._process = target, exclusive, os.getpid()
        self._directory, name = os.path.split(target)
        self._temporary = os.path.join(self._directory, FileName.temporary(name))
        try:
            model = replaced or model
            mode = 0o666 if model is None else 0o600  # until it has the other's: what is private stays private
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | system.current.open_flags
            self._fd = os.open(system.current.full_name(self._temporary), flags, mode)
        except FileNotFoundError as error:
            text = f"the directory '{self._directory or '.'}' does not exist"
            raise FileNotFoundError(errno.ENOENT, text, path) from error
        except OSError as error:
            text = f"{error.strerror}, while creating a temporary file in its directory"
            raise OSError(error.errno, text, path) from error
        except BaseException:  # Ctrl-C, perhaps after the file was created
            self._discard()
            raise
        try:
            self.is_open = True
            self.replaces = replaced is not None
            if model is not None:
                system.current.give_ownership(self._fd, model)
        except BaseException as error:
            undo_after(error, self.discard, self.path)
            if isinstance(error, OSError):
                text = f"{error.strerror}, while giving the temporary file the owner and mode of the old file"
                raise OSError(error.errno, text, path) from error
            raise

    def _write(self, piece: memoryview) -> int:
        n = os.write(self._fd, piece)
        if (end := self.offset + n) - self._syncing >= _SYNC_STEP:
            system.current.begin_sync(self._fd, self._syncing, end - self._syncing)
            self._syncing = end
        return n

    def _finish(self) -> None:
        try:
            if self._fd >= 0:
                os.fsync(self._fd)
                self._close()
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error

    def _commit(self) -> None:
        try:
            self._finish()
            if self._exclusive:
                system.current.publish_new(self._temporary, self._target)
            else:
                system.current.replace(self._temporary, self._target)
        except FileExistsError:
            raise exists_error(self.path) from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error
        if not self._syncs_name:
            return
        try:
            system.current.sync_directory(self._directory or ".")
        except OSError as error:
            failure = OSError(error.errno, error.strerror, self.path)
            self._after.add_to(failure)
            raise failure from error

    def _discard(self) -> None:
        try:
            self._close()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(system.current.full_name(self._temporary))

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @quiet_at_exit
    def __del__(self) -> None:
        if getattr(self, "is_open", False) and self._process == os.getpid():  # not in a forked process
            self.discard()


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
        self._is_durable = False  # the manifest that is there: its writer may have failed before it was
        self._written: Manifest | None = None  # since the directory is locked

    @contextmanager
    def _exclusion(self, required: bool) -> Iterator[bool]:
        with system.current.lock_directory(os.path.dirname(self._name) or ".") as locked:
            if required and not locked:
                text = "its filesystem has no locks, without which two writers could lose shards of each other"
                raise OSError(errno.ENOLCK, f"{text}; write a dataset of its own, or to another filesystem", self.path)
            try:
                yield locked
            finally:
                self._written = None

    def read(self) -> Manifest | None:
        return self._written or super().read()

    def _write(self, manifest: Manifest) -> None:  # a link is replaced and not followed: it leads to another directory
        name, is_link = self._name, os.path.islink(self._name)
        self._written = None  # if this fails, it is unknown which one is there
        with LocalOutput(name, name) if is_link else open_local(name, exclusive=False, after=_NAMED) as file:
            file.write(self.text_of(manifest))
        self._written = manifest if self.is_exclusive else None

    def create(self, name: str = "") -> None:
        """Create the directory, or the folder of a shard, if it is missing.

        A shard in a folder must not outlive the manifest by which readers pass over it until it is published.
        """
        if name and not self._is_durable:
            system.current.sync_directory(os.path.dirname(self.directory) or ".")
            self._is_durable = True
        created = create_directories(os.path.dirname(self.directory + name))
        self.created = created + self.created
        self._changed.update(map(os.path.dirname, created))

    def model(self, names: Sequence[str]) -> os.stat_result | None:
        for name in (*names, self._name.removeprefix(self.directory)):
            with suppress(FileNotFoundError):
                return os.stat(system.current.full_name(self.directory + name))
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
            system.current.replace(f"{self.directory}{staged}", target)
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
            system.current.sync_directory(directory or ".")
            self._changed.discard(directory)
