"""Sidecars: files that have the name of another file, with a suffix added or replaced, and the age of both."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tfrecord_io.storage.filesystem.interface import Entry, FileSystem
from tfrecord_io.storage.filesystem.local import LocalFileSystem
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.paths.shard_names import split_suffixes
from tfrecord_io.storage.read.source import Source, source_of

_LISTING_PAYS = 8  # files in one directory from which on listing it is cheaper than looking up each


def find_sidecars(sources: Sequence[Source], suffixes: Sequence[str]) -> list[Source | None]:
    """For each file, its existing sidecar with the first of these suffixes; None if there is none.

    The sidecar of ``x.tfrecord`` is called ``x.tfrecord.index`` or, if there is none, ``x.index``.

    Pieces of files and file objects have none. For many files on a server that cannot list directories nothing is
    looked up, as it would take a request for each.
    """
    parents = [_parent(source) for source in sources]
    counts = Counter(parents)
    listings: dict[Any, dict[str, Entry]] = {}
    sidecars = []
    for source, parent in zip(sources, parents, strict=True):
        if counts[parent] >= _LISTING_PAYS and source.remote is not None and parent not in listings:
            fs = FsspecFileSystem(source.remote[0])
            with suppress(OSError, NotImplementedError):  # without permission to list, single look-ups may work
                listings[parent] = {entry.name: entry for entry in fs.listing(parent[1])} if fs.can_list else {}
        without = source.is_file_object or source.span is not None
        sidecars.append(None if without else _first(source, suffixes, listings.get(parent)))
    return sidecars


def _first(source: Source, suffixes: Sequence[str], listing: dict[str, Entry] | None) -> Source | None:
    fs, name = _location(source)
    front, record_suffix, compression_suffix = split_suffixes(name)
    stems = (name, front) if record_suffix and not compression_suffix else (name,)
    for sidecar in (stem + suffix for stem in stems for suffix in suffixes):
        entry = _entry(fs, sidecar) if listing is None else listing.get(sidecar)
        if entry is not None and not entry.directory:
            return source_of(fs, entry)
    return None


def _entry(fs: FileSystem, name: str) -> Entry | None:
    try:
        return fs.entry(name)
    except PermissionError:
        if isinstance(fs, FsspecFileSystem):
            return None  # without permission to list a bucket, absent names are reported like this
        raise


def _location(source: Source) -> tuple[FileSystem, str]:
    if source.remote is None:
        return LocalFileSystem(), source.path
    return FsspecFileSystem(source.remote[0]), source.remote[1]


def _parent(source: Source) -> Any:
    fs, name = _location(source)
    return (id(fs.fsspec), fs.fsspec._parent(name)) if isinstance(fs, FsspecFileSystem) else None


def modified(source: Source) -> float | None:
    """When a file was last changed, in seconds since the epoch; None if unknown."""
    if source.is_file_object:
        return None
    if source.remote is None:
        status = os.stat(source.path) if source.shard is None else source.shard.by_name(source.path, os.stat)
        return status.st_mtime
    fs, name = source.remote
    try:
        return float(fs.modified(name).timestamp())
    except (NotImplementedError, KeyError, AttributeError, TypeError):  # of filesystems that keep no times
        return None
