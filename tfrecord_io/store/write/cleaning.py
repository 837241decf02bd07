"""Clean up after killed writers: list what they left, or remove it.

Tests: tests/store/write/test_leftovers.py.
"""

from __future__ import annotations

import os
from datetime import timedelta

from tfrecord_io.base import Options, check_keywords
from tfrecord_io.store.write.leftovers import Leftover
from tfrecord_io.typing import StorageLike

DAY = timedelta(days=1)


@check_keywords
def clean(
    path: str | os.PathLike[str],
    *,
    remove: bool = False,
    older_than: timedelta = DAY,
    storage_options: StorageLike | None = None,
) -> list[Leftover]:
    """Find and optionally remove what killed writers left behind, the oldest first.

    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> open(f"{folder}/.a.tfrecord.0123456789abcdef.tmp", "wb").close()
    >>> [os.path.basename(leftover.path) for leftover in clean(folder, older_than=timedelta(0))]
    ['.a.tfrecord.0123456789abcdef.tmp']

    `path` is a folder, searched recursively; on S3, a bucket or a prefix of keys. Shards that were uploaded but not
    published are found in folders, and what ``convert(resume=True)`` has written before it stopped: without it, the
    next call converts all files again. What is younger than `older_than` may belong to a running writer. S3 does not
    say which program began an upload, so all uploads below `path` are listed; Google Cloud Storage and Azure remove
    unfinished uploads after a week, and they are not listed here.

    Raises
    ------
    FileNotFoundError
        The folder or bucket does not exist.
    NotADirectoryError, PermissionError
        `path` is a file, or must not be read; a folder below it that must not be read is a warning.
    ValueError
        A web server: nothing is written there.
    """
    storage = Options(storage_options=storage_options).storage
    return Leftover.clean(path, storage, remove=remove, older_than=older_than)
