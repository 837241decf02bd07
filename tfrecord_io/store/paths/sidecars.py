"""Files beside data files, found by the data files' names, such as indexes.

Tests: tests/read/index/test_find_index.py and tests/store/paths/test_resolve_costs_of_folders.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

from tfrecord_io.store.filesystem.interface import Entry, FileSystem, existing_files
from tfrecord_io.store.filesystem.locate import is_remote
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.read.source import Source

_LISTING_PAYS = 8  # files in one directory from which on listing it is cheaper than looking up each


def find_sidecars(sources: Sequence[Source], suffixes: Sequence[str]) -> list[Source | None]:
    """For each file, its existing sidecar with the first of these suffixes; None if there is none.

    The sidecar of ``x.tfrecord`` is called ``x.tfrecord.index`` or, if there is none, ``x.index``. Of a directory in a
    bucket that was listed to find the files, those that it had then are known. A local file without one may have an
    index in the user's cache.

    Pieces of files, records chosen of one, file objects and staged shards have none, nor has the URL of a web server
    with a query, which the names of sidecars would be put behind. For many files on a server that cannot list
    directories nothing is looked up, as it would take a request for each.
    """
    from tfrecord_io.store.read.index_cache import CachedIndexes

    parents = list(map(_parent, sources))
    counts = Counter(parents) if any(parents) else {}  # of folders in buckets
    listings: dict[Any, dict[str, Entry]] = {}
    cached, sidecars = CachedIndexes(), []
    for source, parent in zip(sources, parents, strict=True):
        is_unknown = parent is not None and source.beside is None and parent not in listings
        if is_unknown and counts[parent] >= _LISTING_PAYS:
            fs, _ = source.location
            with suppress(OSError, NotImplementedError):  # without permission to list, single look-ups may work
                listings[parent] = {entry.name: entry for entry in fs.listing(parent[1])} if fs.can_list else {}
        listing = listings.get(parent) if source.beside is None else source.beside
        sidecar = _first(source, suffixes, listing) if (may_have := _may_have_sidecars(source)) else None
        if sidecar is None and source.local and may_have and not cached.is_empty:
            sidecar = _cached(source, cached.find(source.path, suffixes))
        sidecars.append(sidecar)
    return sidecars


def _may_have_sidecars(source: Source) -> bool:
    """True for a whole file under its own name; a staged shard may have the name of the shard that it replaces."""
    is_staged = source.shard is not None and source.shard.staged is not None
    return not (is_staged or source.is_file_object or source.span is not None or source.derived is not None)


def _cached(source: Source, path: str | None) -> Source | None:
    if path is None:
        return None
    fs, _ = source.location
    entry = fs.entry(path)
    return None if entry is None else Source.from_entry(fs, entry)


def _first(source: Source, suffixes: Sequence[str], listing: Mapping[str, Entry] | None) -> Source | None:
    fs, name = source.location
    if not fs.can_list and "?" in name:
        return None
    front, record_suffix, compression_suffix = FileName.split_suffixes(name)
    stems = (name, front) if record_suffix and not compression_suffix else (name,)
    names = list(map("".join, product(stems, suffixes)))
    if listing is None and is_remote(fs):
        listing = sidecar_entries(fs, names, f"{stems[-1]}.")
    for entry in filter(None, map(fs.entry if listing is None else listing.get, names)):
        if not entry.directory:
            return Source.from_entry(fs, entry)
    return None


def sidecar_entries(fs: FileSystem, names: Sequence[str], prefix: str) -> Mapping[str, Entry]:
    """Entries of the existing files among names with this prefix: by one listing where the store can.

    Names that may not be looked at are taken for absent: without permission to list a bucket, a store says of absent
    objects, too, that access is denied.
    """
    if not is_remote(fs):
        return {name: entry for name in names if (entry := fs.entry(name)) is not None}
    with suppress(PermissionError):
        entries = fs.beginning(prefix)
        if entries is not None:
            return {entry.name: entry for entry in entries}
    with suppress(PermissionError):
        return existing_files(fs, names)
    return {}


def _parent(source: Source) -> Any:
    fs, name = source.location
    return (id(fs.fsspec), fs.fsspec._parent(name)) if is_remote(fs) else None
