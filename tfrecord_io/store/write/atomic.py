"""Open files and sharded datasets that are written atomically.

A local file is written under a hidden temporary name, synced, and renamed; an object of S3, GCS or Azure appears when
its upload is complete, and a file of another filesystem is moved. Until `commit` the target is unchanged; an exception
in the ``with`` block, Ctrl-C included, leaves it unchanged. A file object is written directly: nothing can be taken
back.
"""

from __future__ import annotations

import errno
import os
from typing import Any, get_args

from tfrecord_io.base import StorageOptions, check_choice
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.filesystem.locate import Location, is_remote
from tfrecord_io.store.paths.resolve_output import Output, no_output_path
from tfrecord_io.store.write.atomic_local import open_local
from tfrecord_io.store.write.output_file import FileObjectOutput, OutputFile
from tfrecord_io.typing import FileMode


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
    check_choice("mode", mode, (None, *get_args(FileMode)))
    if hasattr(path, "write"):
        return FileObjectOutput(path)
    if not isinstance(path, (str, os.PathLike)):
        raise no_output_path(path)
    if os.fspath(path).endswith("/"):  # in a bucket, it would be an object without the slash
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", os.fspath(path))
    return open_named(
        *Location.of(path, storage), exclusive=mode == "error", model=model, looks=looks, resolved=resolved
    )


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
