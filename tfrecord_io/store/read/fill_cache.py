"""Download a file of a store into a cache of fsspec."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

from tfrecord_io.bytes import Raw
from tfrecord_io.store.filesystem.remote import protocols, unwrap

_PIECE = 1 << 20


def fill_cache(fsspec: Any, name: str, open_stored: Callable[[Any, str], Raw | None]) -> None:
    """Download a missing file into a ``simplecache``, by the same requests as other reads of its store.

    `open_stored` opens a file of the filesystem below by its name, or returns None to leave the download to fsspec,
    which asks first whether the file exists. A download that is interrupted leaves no file under the name.
    """
    cache, name = unwrap(fsspec, name)
    if "simplecache" not in protocols(cache) or cache.compression or cache._check_file(name):
        return
    stored = open_stored(cache.fs, name)
    if stored is None:
        return
    cache._mkcache()
    copy = os.path.join(cache.storage[-1], cache._mapper(name))
    begun = f"{copy}.{uuid.uuid4().hex}"
    buffer = memoryview(bytearray(_PIECE))
    try:
        with closing(stored), open(begun, "wb") as file:
            while n := stored.readinto(buffer):
                file.write(buffer[:n])
        os.replace(begun, copy)
    except BaseException:
        with suppress(FileNotFoundError):
            os.remove(begun)
        raise
    cache._cache_size = None
