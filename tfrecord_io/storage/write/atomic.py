"""Files that are written whole or not at all.

A local file is written under a name that directory reading passes over, synced, and renamed; a remote one
is published by its filesystem's commit. Until `commit` the target is what it was; an exception in the
``with`` block, Ctrl-C included, leaves it so. A file object is written as it is: nothing can be taken back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from tfrecord_io.storage.filesystem.local import locate
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.write.atomic_local import open_local
from tfrecord_io.storage.write.output_file import FileObjectOutput, OutputFile


def open_output(
    path: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    overwrite: bool | None = None,
) -> OutputFile:
    """Open one file for writing.

    Parameters
    ----------
    path : str, PathLike, URL or binary file object
        Taken literally: no globs, no braces.
    storage_options, filesystem
        As for `resolve_inputs`.
    overwrite : bool, optional
        None or True replaces a file that is there, False refuses, also where it comes into being meanwhile.

    Returns
    -------
    OutputFile
        A context manager: publishes at the end of its block, and nothing if an exception ends it.

    Raises
    ------
    FileExistsError
        By this call, or by ``commit``: `overwrite` is False and there is a file.
    FileNotFoundError
        The directory is missing.
    IsADirectoryError, PermissionError
        With the path.
    """
    if hasattr(path, "write"):
        return FileObjectOutput(path)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is a str, a PathLike or a binary file object, not {type(path).__name__}")
    tree, name = locate(path, storage_options, filesystem)
    if isinstance(tree, FsspecFileSystem):
        from tfrecord_io.storage.write.atomic_remote import open_remote  # imports fsspec

        return open_remote(tree, name, exclusive=overwrite is False)
    return open_local(name, exclusive=overwrite is False)
