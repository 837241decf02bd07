"""Make the directories of local files, and remove them if nothing was written.

Tests: tests/store/filesystem/test_directories.py and tests/store/write/test_publication.py.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from tfrecord_io.store import operating_systems


def remove_directories(created: Iterable[str]) -> None:
    """Remove directories that a writer created, the deepest first, unless they hold something, or are locked."""
    for directory in created:
        with suppress(OSError):
            operating_systems.current.remove_directory(directory)


def create_directories(directory: str) -> tuple[str, ...]:
    """Create a directory and its parents; returns those that were missing, the deepest first."""
    if not directory or os.path.isdir(directory):
        return ()
    is_other = False
    with suppress(OSError):  # asked once, as another process may create or remove a directory of this name
        is_other = not stat.S_ISDIR(os.lstat(directory).st_mode)
    if is_other:
        raise NotADirectoryError(errno.ENOTDIR, "expected a directory, got a file or a dangling link", directory)
    parent = os.path.dirname(directory)
    created = create_directories(parent)
    try:
        os.mkdir(directory)
    except FileExistsError:  # another process has just created it, or the look-up above failed
        return created
    except FileNotFoundError:
        if not parent or os.path.isdir(parent):  # the working directory is gone, or a filesystem such as /proc
            raise
        return (*create_directories(directory), *created)  # another writer had made the parent, failed and removed it
    return (directory, *created)
