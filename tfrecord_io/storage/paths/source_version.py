"""Which content a file has: by its path, its size and what its filesystem changes with the content."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from contextlib import closing
from typing import Any

from tfrecord_io.errors import printable
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.paths.resolve_output import without_query
from tfrecord_io.storage.read.random_access import open_random_access
from tfrecord_io.storage.read.source import Source, source_of

# "path", "size" and "version", such as ``mtime_ns=…`` or ``ETag=…``; of a local file "ctime_ns" and "inode", too
SourceVersion = dict[str, str | int]

_OPTIONAL = {"ctime_ns", "inode"}  # not in what older releases noted


def version_of(source: Source) -> SourceVersion:
    """The path, size and version of a file.

    Raises
    ------
    ValueError
        Nothing says whether its content is still the same: a pipe, a file object, or a server without ETag and times.
    """
    if source.can_be_read_again:
        with closing(open_random_access(source)) as file:
            if file.version:
                path = without_query(source.path)
                return {"path": path, "size": file.size, "version": file.version, **file.identity}
    reason = "resume=True needs files whose changes are seen, by an ETag or a time of change, and this one has neither"
    raise ValueError(f"'{printable(source.path)}': {reason}")


def is_version(noted: Mapping[str, Any], version: SourceVersion) -> bool:
    """Whether a version that was noted, perhaps by an older release, is this one."""
    return noted == {name: value for name, value in version.items() if name in noted or name not in _OPTIONAL}


def check_version(source: Source, version: SourceVersion) -> None:
    """Raise OSError if a file has another version by now."""
    current = source
    if source.remote is not None and source.shard is None:
        fs = FsspecFileSystem(source.remote[0])
        entry = fs.entry(source.remote[1])
        if entry is None:
            raise FileNotFoundError(errno.ENOENT, "the file was removed while it was read", source.path)
        current = source_of(fs, entry)
    if {**version_of(current), "path": version["path"]} != version:
        raise OSError(errno.ESTALE, "the file was changed while it was read; convert it again", source.path)
