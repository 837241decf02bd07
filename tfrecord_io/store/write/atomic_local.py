"""Local files that are written atomically.

Tests: tests/store/write/test_publication.py and tests/write/test_parallel_sequences.py.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from contextlib import suppress

from tfrecord_io.base import Remark, quiet_at_exit, undo_after
from tfrecord_io.store import operating_systems
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.write.output_file import FileObjectOutput, OutputFile, exists_error

_OPEN_DESCRIPTOR = re.compile("/dev/(stdout|stderr)|/(?:dev|proc/self)/fd/([0-9]+)|/proc/[0-9]+/fd/[0-9]+")
_STANDARD = {"stdout": 1, "stderr": 2}
_SYNC_STEP = 2 << 20  # bytes that are stored while more are written, so that the sync at the end has little to do
_READABLE = Remark.unconfirmed("the complete file can be read, but a loss of power may take it")
_STAGED = Remark("the complete file has its staged name")


def open_local(
    path: str, *, exclusive: bool, model: os.stat_result | None = None, after: Remark = _READABLE
) -> OutputFile:
    """Open a local file; a device or pipe is written directly. A new file gets the owner and mode of `model`.

    An error that comes after the file got its name ends with `after`.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    try:
        status = os.stat(operating_systems.current.full_name(path))
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
        operating_systems.current.check_writable(target)
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
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | operating_systems.current.open_flags
            self._fd = os.open(operating_systems.current.full_name(self._temporary), flags, mode)
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
                operating_systems.current.give_ownership(self._fd, model)
        except BaseException as error:
            undo_after(error, self.discard, self.path)
            if isinstance(error, OSError):
                text = f"{error.strerror}, while giving the temporary file the owner and mode of the old file"
                raise OSError(error.errno, text, path) from error
            raise

    def _write(self, piece: memoryview) -> int:
        n = os.write(self._fd, piece)
        if (end := self.offset + n) - self._syncing >= _SYNC_STEP:
            operating_systems.current.begin_sync(self._fd, self._syncing, end - self._syncing)
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
                operating_systems.current.publish_new(self._temporary, self._target)
            else:
                operating_systems.current.replace(self._temporary, self._target)
        except FileExistsError:
            raise exists_error(self.path) from None
        except OSError as error:
            raise OSError(error.errno, error.strerror, self.path) from error
        if not self._syncs_name:
            return
        try:
            operating_systems.current.sync_directory(self._directory or ".")
        except OSError as error:
            failure = OSError(error.errno, error.strerror, self.path)
            self._after.add_to(failure)
            raise failure from error

    def _discard(self) -> None:
        try:
            self._close()
        finally:
            with suppress(FileNotFoundError):
                os.unlink(operating_systems.current.full_name(self._temporary))

    def _close(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @quiet_at_exit
    def __del__(self) -> None:
        if getattr(self, "is_open", False) and self._process == os.getpid():  # not in a forked process
            self.discard()
