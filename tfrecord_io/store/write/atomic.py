"""Open files and sharded datasets that are written atomically.

A local file is written under a hidden temporary name, synced, and renamed; an object of S3, GCS or Azure appears when
its upload is complete, and a file of another filesystem is moved. Until `commit` the target is unchanged; an exception
in the ``with`` block, Ctrl-C included, leaves it unchanged. A file object is written directly: nothing can be taken
back.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from tfrecord_io.base import StorageOptions, check_mode
from tfrecord_io.store import system
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.filesystem.locate import is_remote, locate
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.resolve_output import Output, no_output_path
from tfrecord_io.store.write.atomic_local import LocalPlace, create_directories, open_local, remove_directories
from tfrecord_io.store.write.output_file import FileObjectOutput, OutputFile
from tfrecord_io.store.write.place import Place

if TYPE_CHECKING:
    from tfrecord_io.store.write.change import Change
    from tfrecord_io.store.write.publication import Publication


def open_output(
    path: Any,
    storage: StorageOptions = StorageOptions.DEFAULT,
    *,
    mode: str | None = None,
    model: os.stat_result | None = None,
    looks: bool = True,
    resolved: Output | None = None,
) -> OutputFile:
    """Open one file for writing: a str, PathLike, URL or binary file object.

    The path is taken literally: no globs, no braces. As a context manager, the file is published unless an exception
    ends the block. In the `mode` "error" an existing file is a FileExistsError, here or, if it is created before, by
    ``commit``; every other value replaces it. A new local file gets the owner and mode of `model`, one that replaces
    another those of the other. Unless it `looks`, a store is not asked what has that name; nor if the path was just
    `resolved`, which has asked.
    """
    check_mode(mode)
    if hasattr(path, "write"):
        return FileObjectOutput(path)
    if not isinstance(path, (str, os.PathLike)):
        raise no_output_path(path)
    if os.fspath(path).endswith("/"):  # in a bucket, it would be an object without the slash
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", os.fspath(path))
    return open_named(*locate(path, storage), exclusive=mode == "error", model=model, looks=looks, resolved=resolved)


def open_named(
    fs: FileSystem,
    name: str,
    *,
    exclusive: bool,
    path: str | None = None,
    model: os.stat_result | None = None,
    looks: bool = True,
    resolved: Output | None = None,
    upload_bytes: int | None = None,
) -> OutputFile:
    """Open the file of this name in a filesystem, see `open_output`; messages name `path`.

    An upload takes about `upload_bytes` of memory.
    """
    if not is_remote(fs):
        return open_local(name, exclusive=exclusive, model=model)
    from tfrecord_io.store.write.atomic_remote import UploadMemory, open_remote  # imports fsspec

    memory = None if upload_bytes is None else UploadMemory(upload_bytes)
    return open_remote(fs, name, exclusive=exclusive, path=path, looks=looks, resolved=resolved, memory=memory)


def is_local(path: str, storage: StorageOptions = StorageOptions.DEFAULT) -> bool:
    """True if a path is that of a local file."""
    return not is_remote(locate(path, storage)[0])


def file_status(path: str, storage: StorageOptions = StorageOptions.DEFAULT) -> os.stat_result | None:
    """The owner and mode of a local file; None if it does not exist or is remote."""
    fs, name = locate(path, storage)
    if is_remote(fs):
        return None
    try:
        return os.stat(system.current.full_name(name))
    except OSError:  # `open_output` reports it
        return None


def make_parent(path: str, storage: StorageOptions = StorageOptions.DEFAULT) -> tuple[str, ...]:
    """Make the directory of a local file; buckets have none. Returns the directories this made, the deepest first."""
    fs, name = locate(path, storage)
    return () if is_remote(fs) else create_directories(os.path.dirname(name))


@contextmanager
def new_parent(path: str, storage: StorageOptions = StorageOptions.DEFAULT) -> Iterator[None]:
    """Make the directory of a local file; an exception in the block removes the directories this made, if empty."""
    created = make_parent(path, storage)
    try:
        yield
    except BaseException:
        remove_directories(created)
        raise


def remove_file(path: str, storage: StorageOptions = StorageOptions.DEFAULT) -> None:
    """Remove a file if it exists and may be removed."""
    fs, name = locate(path, storage)
    with suppress(PermissionError, IsADirectoryError):
        fs.remove(name)


def open_publication(
    output: Output,
    change: Change,
    storage: StorageOptions = StorageOptions.DEFAULT,
    *,
    id: str | None = None,
    is_staged: bool = False,
    keeps_stored: bool = False,
) -> Publication:
    """Start writing a sharded dataset, see `Publication`; a missing directory is created."""
    from tfrecord_io.store.write.publication import Publication  # one file needs none

    place = place_of(*directory_of(output, storage), output.stem)
    return Publication(output, place, change, id, is_staged=is_staged, keeps_stored=keeps_stored)


def directory_of(output: Output, storage: StorageOptions) -> tuple[FileSystem, str]:
    """The filesystem of the shards, and their directory there, with its slash."""
    fs, base = locate(output.base, storage)
    return fs, base[: len(base) - len(base.rpartition("/")[2])]


def place_of(fs: FileSystem, directory: str, stem: str) -> Place:
    """The place of the dataset `stem`; `directory` ends with a slash."""
    manifest = directory + FileName.manifest(stem)
    if is_remote(fs):
        from tfrecord_io.store.write.place_remote import remote_place  # imports fsspec

        return remote_place(fs, directory, manifest)
    return LocalPlace(fs, directory, manifest)
