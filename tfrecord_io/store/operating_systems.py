"""Differences between operating systems: reads at an offset, locks, and how files get their names.

`current` is that of this process. The part for Windows is tested on other systems, with a stand-in for the calls that
they lack; it never ran on Windows.
"""

from __future__ import annotations

import errno
import importlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from io import FileIO
from typing import Any

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EROFS)
_NO_LOCK = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EACCES)  # network filesystems
_SYNC_FILE_RANGE_WRITE = 2  # <linux/fs.h>: start to write pages that are not under way, and wait for nothing
_LARGE = 16 << 20  # bytes of a file, to free which takes some milliseconds
# Others, such as NFS, first rename a file that is open, so that for a moment no file has its name.
_REPLACES_OPEN_FILES = (b"ext2", b"ext3", b"ext4", b"f2fs", b"overlay", b"tmpfs", b"xfs")


@cache
def _sync_file_range() -> Any:
    """The call of Linux (https://man7.org/linux/man-pages/man2/sync_file_range.2.html), or None."""
    import ctypes  # only large files need it

    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]
    return function


@cache
def _syncfs() -> Any:
    """The call of Linux (https://man7.org/linux/man-pages/man2/syncfs.2.html), or None."""
    import ctypes

    return getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)


def _filesystem(device: int) -> bytes:
    """The type of a filesystem (https://man7.org/linux/man-pages/man5/proc_pid_mountinfo.5.html); empty if unknown."""
    number = f"{os.major(device)}:{os.minor(device)}".encode()
    with suppress(OSError), open("/proc/self/mountinfo", "rb") as mounts:
        for fields in map(bytes.split, mounts):
            if fields[2] == number:
                return fields[fields.index(b"-") + 1]
    return b""


def _opened_if_large(path: str, flags: int) -> FileIO | None:
    """Open a large file before its replacement, to free its blocks by closing; None if freeing takes no time."""
    with suppress(OSError):
        status = os.lstat(path)
        is_large = status.st_size >= _LARGE and stat.S_ISREG(status.st_mode) and status.st_nlink == 1
        if is_large and _filesystem(status.st_dev) in _REPLACES_OPEN_FILES:
            return FileIO(os.open(path, os.O_RDONLY | flags))
    return None


def _sync_each(folder: str, sync_directory: Callable[[str], None]) -> None:
    for directory, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(directory, name), "r+b") as file:  # Windows syncs only what may be written
                os.fsync(file.fileno())
        sync_directory(directory)


class System:
    """An operating system: the calls of Linux, macOS and others, some of which a subclass has in another way.

    Attributes
    ----------
    open_flags : int
        For each `os.open`: bytes as they are, and not for child processes.
    has_pread : bool
        Several threads can read a file by one descriptor at a time.
    plain_name : callable
        A path with "/" between its parts.
    full_name : callable
        The name under which the system opens a path, whatever its length.
    """

    open_flags = getattr(os, "O_CLOEXEC", 0)
    has_pread = True
    plain_name = full_name = staticmethod(os.fspath)  # as they are

    def read_at(self, descriptor: int, view: memoryview, offset: int) -> int:
        """Read bytes at an offset of a file; returns how many, 0 at its end. Any thread may call it."""
        return os.preadv(descriptor, [view], offset)

    def check_writable(self, path: str) -> None:
        """OSError if a file may not be written to."""
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK | self.open_flags))

    def give_ownership(self, descriptor: int, model: os.stat_result) -> None:
        """Give a file the owner and mode of another, as far as the system has them."""
        status = os.fstat(descriptor)
        if (status.st_uid, status.st_gid) != (model.st_uid, model.st_gid):
            with suppress(PermissionError):  # only root can change the owner
                os.fchown(descriptor, model.st_uid, model.st_gid)
        os.fchmod(descriptor, stat.S_IMODE(model.st_mode))

    def replace(self, source: str, target: str) -> None:
        """Rename a file over an existing one; readers see either the old content or the new."""
        old = _opened_if_large(target, self.open_flags)
        try:
            os.replace(source, target)
        finally:
            if old is not None:  # the system takes 0.1 to 0.2 ms for each MB
                from tfrecord_io.base import Task  # for large files only

                Task.start(old.close, "free")

    def publish_new(self, source: str, target: str) -> None:
        """Give a file its name; FileExistsError if another one has it."""
        try:
            os.link(source, target)  # which fails where a rename replaces
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | self.open_flags))  # reserve the name
            os.replace(source, target)
        else:
            with suppress(OSError):  # a second name of the file, which `clean` finds
                os.unlink(source)

    def rename_folder(self, source: str, target: str) -> None:
        """Rename a folder, also over an empty one; a target with content raises OSError with ENOTEMPTY or EEXIST."""
        os.rename(source, target)

    def begin_sync(self, descriptor: int, offset: int, size: int) -> None:
        """Let the system begin to store bytes that were written, so that a later `os.fsync` has little to wait for."""
        if (sync_file_range := _sync_file_range()) is not None:
            sync_file_range(descriptor, offset, size, _SYNC_FILE_RANGE_WRITE)  # what fails is told by fsync

    def directory_number(self, directory: str) -> int:
        """The number (inode) of a directory, which a copy does not have; 0 where the filesystem gives none."""
        return os.stat(self.full_name(directory or ".")).st_ino

    def sync_directory(self, directory: str) -> None:
        """Make the names in a directory durable."""
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | self.open_flags)
        except PermissionError:
            return  # write permission without read permission
        try:
            os.fsync(fd)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise OSError(error.errno, f"{error.strerror}, while making its names durable", directory) from error
        finally:
            os.close(fd)

    def sync_folder(self, folder: str) -> None:
        """Make all files and names below a folder durable, of which there may be many."""
        syncfs = _syncfs()
        if syncfs is None:
            _sync_each(folder, self.sync_directory)
            return
        import ctypes

        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | self.open_flags)
        try:
            if syncfs(fd):  # one call, as one for each of many files takes 20 times as long
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number), folder)
        finally:
            os.close(fd)

    @contextmanager
    def lock_directory(self, directory: str) -> Iterator[bool]:
        """A context in which no other process has this lock; its value is False if the filesystem has no locks."""
        while True:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | self.open_flags)
            try:
                is_locked = self._lock(fd, directory, "directory", waits=True)
                # While this process waited, the directory may have been removed, and another one been created.
                if not is_locked or os.path.samestat(os.fstat(fd), os.stat(directory)):
                    yield is_locked
                    return
            finally:
                os.close(fd)

    def remove_directory(self, directory: str) -> None:
        """Remove an empty directory; BlockingIOError if another process has its lock, so that it may write there."""
        try:
            fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | self.open_flags)
        except PermissionError:  # write permission without read permission
            os.rmdir(directory)
            return
        try:
            self._lock(fd, directory, "directory", waits=False)
            os.rmdir(directory)
        finally:
            os.close(fd)

    @contextmanager
    def lock_file(self, path: str) -> Iterator[None]:
        """A context in which no other process has this lock; BlockingIOError if one has it."""
        fd = os.open(path, os.O_RDONLY | self.open_flags)
        try:
            self._lock(fd, path, "file", waits=False)
            yield
        finally:
            os.close(fd)

    def _lock(self, fd: int, path: str, kind: str, *, waits: bool) -> bool:
        import fcntl  # not on Windows

        try:
            fcntl.flock(fd, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCK:
                raise OSError(error.errno, f"{error.strerror}, while locking the {kind}", path) from error
            return False
        return True


class WindowsSystem(System):
    """Windows: https://learn.microsoft.com/windows/win32/fileio/naming-a-file, and Python's ``msvcrt``.

    Parameters
    ----------
    msvcrt : module
        Python's, or what stands in for it.
    """

    open_flags = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    has_pread = False

    _LOCK_NAME = ".tfrecord_io.lock"
    _LOCKED_BYTE = 0x7FFFFFFE  # it cannot be read meanwhile, so it is beyond the end; the C library takes 31 bits
    _MOST_CHARACTERS = 247  # of a path without prefix, as a directory needs room for a file name
    _PAUSES = (0.01, 0.05, 0.2, 0.5, 1.0)  # seconds; a scanner of viruses may hold a new file for some time

    def __init__(self, msvcrt: Any) -> None:
        self._msvcrt = msvcrt
        self._reading = threading.Lock()

    def plain_name(self, path: str) -> str:
        return path if path.startswith("\\\\?\\") else path.replace("\\", "/")

    def full_name(self, path: str) -> str:
        import ntpath  # on Windows it is os.path

        if len(path) <= self._MOST_CHARACTERS and ntpath.isabs(path):
            return path
        full = ntpath.abspath(path)
        if len(full) <= self._MOST_CHARACTERS or full.startswith("\\\\?\\"):
            return path
        return f"\\\\?\\UNC\\{full[2:]}" if full.startswith("\\\\") else f"\\\\?\\{full}"

    def read_at(self, descriptor: int, view: memoryview, offset: int) -> int:
        with self._reading:  # its C library has no pread: the position in the file is moved
            os.lseek(descriptor, offset, os.SEEK_SET)
            data = os.read(descriptor, len(view))
        view[: len(data)] = data
        return len(data)

    def check_writable(self, path: str) -> None:
        os.close(os.open(self.full_name(path), os.O_WRONLY | self.open_flags))

    def give_ownership(self, descriptor: int, model: os.stat_result) -> None:
        pass  # a new file inherits them from its directory

    def replace(self, source: str, target: str) -> None:
        for pause in (*self._PAUSES, None):
            try:
                os.replace(self.full_name(source), self.full_name(target))
                return
            except PermissionError as error:
                if pause is None:
                    advice = "on Windows, a file that a program has open cannot be replaced: close it and try again"
                    raise PermissionError(error.errno, f"{error.strerror}; {advice}", target) from error
            time.sleep(pause)

    def publish_new(self, source: str, target: str) -> None:
        os.rename(self.full_name(source), self.full_name(target))  # which does not replace

    def rename_folder(self, source: str, target: str) -> None:
        with suppress(FileNotFoundError):
            os.rmdir(self.full_name(target))
        self.publish_new(source, target)

    def begin_sync(self, descriptor: int, offset: int, size: int) -> None:
        pass  # there is no such call

    def sync_directory(self, directory: str) -> None:
        pass  # the journal of NTFS has the names

    def sync_folder(self, folder: str) -> None:
        _sync_each(self.full_name(folder), self.sync_directory)

    def remove_directory(self, directory: str) -> None:
        os.rmdir(self.full_name(directory))  # one that is locked is not empty

    @contextmanager
    def lock_directory(self, directory: str) -> Iterator[bool]:
        path = self.full_name(f"{directory}/{self._LOCK_NAME}")
        fd = os.open(path, os.O_RDWR | os.O_CREAT | self.open_flags)
        try:
            while not self._try_lock(fd):
                time.sleep(self._PAUSES[0])
            yield True
        finally:
            self._unlock(fd)
            with suppress(OSError):  # another process has it open
                os.unlink(path)

    @contextmanager
    def lock_file(self, path: str) -> Iterator[None]:
        fd = os.open(self.full_name(path), os.O_RDWR | self.open_flags)
        try:
            if not self._try_lock(fd):
                raise BlockingIOError(errno.EAGAIN, "another process has it locked, while locking the file", path)
            yield
        finally:
            self._unlock(fd)

    def _try_lock(self, fd: int) -> bool:
        os.lseek(fd, self._LOCKED_BYTE, os.SEEK_SET)
        try:
            self._msvcrt.locking(fd, self._msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
            return False
        return True

    def _unlock(self, fd: int) -> None:
        with suppress(OSError):  # closing it does so, too, but perhaps later
            os.lseek(fd, self._LOCKED_BYTE, os.SEEK_SET)
            self._msvcrt.locking(fd, self._msvcrt.LK_UNLCK, 1)
        os.close(fd)


current: System = WindowsSystem(importlib.import_module("msvcrt")) if os.name == "nt" else System()


@contextmanager
def use(other: System) -> Iterator[None]:
    """Work by the calls of another system in a block, in all threads."""
    global current
    before, current = current, other
    try:
        yield
    finally:
        current = before


_FULL = {errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC)}


@contextmanager
def named_temporary_folder() -> Iterator[None]:
    """Name the folder of temporary files in an error about a full disk that names no file.

    Examples
    --------
    >>> with named_temporary_folder():
    ...     raise OSError(errno.ENOSPC, "No space left on device")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device, for a temporary file in ... (TMPDIR names another folder): '...'
    """
    try:
        yield
    except OSError as error:
        if error.filename is not None or error.errno not in _FULL:
            raise
        import tempfile  # with random and the archives of shutil

        folder = tempfile.gettempdir()
        text = f"{error.strerror}, for a temporary file in {folder} (TMPDIR names another folder)"
        raise OSError(error.errno, text, folder) from error
