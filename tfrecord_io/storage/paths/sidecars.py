"""Files that stand beside others and have their names with a suffix."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tfrecord_io.storage.filesystem.local import Entry, FileSystem, LocalFileSystem
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.read.source import Source, source_of

_LISTING_PAYS = 8  # so many files in one directory are looked up by listing it


def find_sidecars(sources: Sequence[Source], suffixes: Sequence[str]) -> list[Source | None]:
    """For each file the first that is there of its name with a suffix; None where there is none.

    Pieces of files and file objects have none. Where many files are on a server that has no listing, nothing is looked for: it would
    be a request for each.
    """
    parents = Counter(_parent(source) for source in sources)
    listings: dict[Any, dict[str, Entry]] = {}
    found = []
    for source in sources:
        key = _parent(source)
        if parents[key] >= _LISTING_PAYS and source.remote is not None and key not in listings:
            tree = FsspecFileSystem(source.remote[0])
            with suppress(OSError, NotImplementedError):  # a server that must not list can still answer for each name
                listings[key] = {entry.name: entry for entry in tree.listing(key[1])} if tree.lists else {}
        alone = source.is_file_object or source.span is not None
        found.append(None if alone else _first(source, suffixes, listings.get(key)))
    return found


def _first(source: Source, suffixes: Sequence[str], listing: dict[str, Entry] | None) -> Source | None:
    tree, name = _place(source)
    for suffix in suffixes:
        entry = _entry(tree, name + suffix) if listing is None else listing.get(name + suffix)
        if entry is not None and not entry.directory:
            return source_of(tree, entry)
    return None


def _entry(tree: FileSystem, name: str) -> Entry | None:
    try:
        return tree.entry(name)
    except PermissionError:
        if isinstance(tree, FsspecFileSystem):
            return None  # what a bucket that must not be listed says of a name that is not there
        raise


def _place(source: Source) -> tuple[FileSystem, str]:
    return (
        (LocalFileSystem(), source.path)
        if source.remote is None
        else (FsspecFileSystem(source.remote[0]), source.remote[1])
    )


def _parent(source: Source) -> Any:
    tree, name = _place(source)
    return (id(tree.fs), tree.fs._parent(name)) if isinstance(tree, FsspecFileSystem) else None


def modified(source: Source) -> float | None:
    """When a file was last changed, in seconds; None where nobody knows."""
    if source.is_file_object:
        return None
    if source.remote is None:
        return (os.stat(source.path) if source.shard is None else source.shard.status(source.path)).st_mtime
    fs, name = source.remote
    try:
        return float(fs.modified(name).timestamp())
    except (
        NotImplementedError,
        KeyError,
        AttributeError,
        TypeError,
    ):  # filesystems that keep no times say so in many ways
        return None
