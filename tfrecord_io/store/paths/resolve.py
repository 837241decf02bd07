"""Resolve a path to the files to read, in order.

A string is interpreted as the first of these that matches: a file or directory of exactly this name; a dataset of this
name that has a manifest; braces; a shard spec ``name@8`` or ``name@*``; a glob. Files of a pattern are in natural
order, those of a list in the given order. A shard family must be complete, unless its files are listed one by one; of a
glob, all shards must exist that it matches. A directory without names of TFRecord files is read if some of its files
begin with a record. Next to files with such names, those are not read; in a local directory a warning names them.

`resolve_inputs` takes a local file of exactly this name as it is, and looks other paths up by a `PathSearch`.

Tests: tests/store/paths/test_resolve.py, and test_resolve_….py next to it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tfrecord_io.base import StorageOptions, and_more, printable, warn
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.filesystem.interface import Entry, LocalFileSystem
from tfrecord_io.store.filesystem.locate import IN_MEMORY, Location
from tfrecord_io.store.paths.file_names import natural_key
from tfrecord_io.store.read.source import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.store.paths.manifest import Manifest

_BYTES_LIKE = (bytes, bytearray, memoryview)
_MOST_NAMED = 10  # families in a message


def resolve_inputs(
    path: Any,
    storage: StorageOptions = StorageOptions.DEFAULT,
    *,
    allow_missing_shards: bool = False,
    check_sizes: bool = True,
    manifest_faults: list[CorruptRecordError] | None = None,
    unnamed: dict[str, str] | None = None,
    missing: list[str] | None = None,
    other_formats: bool = False,
) -> Sources:
    """Find the files that a path means, at least one.

    `path` is a str, a PathLike, a binary file object, or an iterable of those; see the module's docstring.
    `allow_missing_shards` accepts shard families with a missing or duplicate index, and missing files that a manifest
    names. With `check_sizes`, files must have the sizes that a manifest states. A directory whose manifest names more
    than 1,024 files is not listed, unless one of the other arguments asks what is in it: the files are those of the
    manifest, and a missing one, or another size, is an error where it is opened. With `manifest_faults`, errors about a
    manifest are appended to it, and the files are read without that manifest. Files of a dataset that its manifest does
    not name are left out with a warning; with `unnamed`, they are added to it, each with the path of the manifest.
    Files that a manifest names, and that may be missing, are appended to `missing`. With `other_formats`, a directory
    without TFRecord files has those of formats with the same records, such as ArrayRecord.

    Raises
    ------
    FileNotFoundError
        Nothing matched, or a shard is missing or exists twice; ``filename`` is the path looked up.
    ValueError
        A directory or a spec has several shard families; the message has a glob for each.
    CorruptRecordError
        A dataset's manifest is damaged, or does not match its files.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("a-00000-of-00002", "a-00001-of-00002", "a.json"):
    ...     _ = open(f"{folder}/{name}", "wb").write(b"")
    >>> [os.path.basename(source.path) for source in resolve_inputs(folder)]
    ['a-00000-of-00002', 'a-00001-of-00002']
    """
    lookup = _Lookup(
        storage,
        allow_missing_shards=allow_missing_shards,
        check_sizes=check_sizes,
        other_formats=other_formats,
        manifest_faults=manifest_faults,
        unnamed=unnamed,
        missing=missing,
        parsed={},
    )
    if hasattr(path, "read") and not _is_dataset(path):
        return Sources([_file_object(path, storage)])
    if isinstance(path, (str, os.PathLike)):
        return lookup.sources(path, complete=not allow_missing_shards)
    if isinstance(path, Sources):  # resolved before
        return path
    if hasattr(path, "__arrow_c_stream__"):
        raise TypeError(f"expected a path, got data (a {type(path).__name__}), which write_tfrecord takes")
    if isinstance(path, _BYTES_LIKE) or not isinstance(path, Iterable):
        raise _no_path("path is a str, a PathLike, a binary file object or a list of those", path)
    if isinstance(path, set | frozenset):
        raise TypeError(f"a {type(path).__name__} has no order that the rows could be in: pass a list")
    sources: list[Source] = []
    for item in path:  # an explicit list is not checked for completeness
        if isinstance(item, Source):  # resolved before, or a piece of a file
            sources.append(item)
        elif _is_dataset(item):  # its options are looked for in a list only
            reason = f"a {type(item).__name__} is given alone, or in a list, not in another iterable"
            raise TypeError(f"{reason}: pass list(…)")
        elif hasattr(item, "read"):
            sources.append(_file_object(item, storage))
        elif isinstance(item, (str, os.PathLike)):
            sources.extend(lookup.sources(item, complete=False))
        else:
            raise _no_path("a list of paths holds str, PathLike or binary file objects", item)
    if not sources:
        raise FileNotFoundError(errno.ENOENT, "an empty list of paths has no files", "[]")
    return Sources(sources)


def _is_dataset(value: object) -> bool:
    """True if a value is a dataset or a piece of one, as `tfrecord_io.typing.OpenedDataset` describes them.

    Its class counts rows and makes an Arrow stream, neither of which a file object does.
    """
    return hasattr(type(value), "count_rows") and hasattr(type(value), "__arrow_c_stream__")


def _no_path(expected: str, got: Any) -> TypeError:
    return TypeError(f"{expected}, not {type(got).__name__}{IN_MEMORY if isinstance(got, _BYTES_LIKE) else ''}")


def _file_object(file: Any, storage: StorageOptions) -> Source:
    if storage.storage_options or storage.filesystem is not None:
        raise ValueError("storage_options= and filesystem= are for paths, not for file objects")
    return Source.from_file_object(file)


def _warn_of_unnamed(files: Mapping[str, str]) -> None:
    names = sorted(files, key=natural_key)
    shown = ", ".join(f"'{printable(name)}'" for name in names[:_MOST_NAMED]) + and_more(len(names) - _MOST_NAMED)
    manifest = printable(files[names[0]])
    warn(f"not read, as the manifest of the dataset, '{manifest}', does not name them: {shown}", UserWarning)


class _Lookup(NamedTuple):
    """The options of one call of `resolve_inputs`, and what it finds besides the files; see there."""

    storage: StorageOptions
    allow_missing_shards: bool
    check_sizes: bool
    other_formats: bool
    manifest_faults: list[CorruptRecordError] | None
    unnamed: dict[str, str] | None
    missing: list[str] | None
    parsed: dict[str, tuple[bytes, Manifest | None]]  # folders of one dataset have the same manifest

    @property
    def _looks_at_files(self) -> bool:
        """True if the caller wants the files on the store, besides those of a manifest."""
        found = (self.unnamed, self.missing, self.manifest_faults)
        return any(argument is not None for argument in found) or not self.check_sizes

    def sources(self, path: str | os.PathLike[str], *, complete: bool) -> Sources:
        """The files that one path means; if `complete`, no shard may be missing."""
        fs, name = Location.of(path, self.storage)
        if isinstance(fs, LocalFileSystem) and (entry := fs.entry(name)) is not None and not entry.directory:
            return Sources([Source.from_entry(fs, entry)])  # a file of exactly this name: no manifest says more of it
        from tfrecord_io.store.paths.found_manifests import Manifests
        from tfrecord_io.store.paths.path_search import PathSearch

        is_directory = not isinstance(fs, LocalFileSystem) and os.fspath(path).endswith("/")

        def find(manifests: Manifests) -> tuple[PathSearch, list[Entry]]:
            search = PathSearch(
                fs,
                manifests,
                allow_missing=self.allow_missing_shards,
                complete=complete,
                is_directory=is_directory,
                other_formats=self.other_formats,
                lists_all=self._looks_at_files or not complete,
            )
            return search, search.entries(name)

        begin = partial(Manifests, fs, self.check_sizes, self.manifest_faults, parsed=self.parsed)
        search, entries = Manifests.look(begin, find)
        if search.named is not None:
            return search.named
        sources = search.sources(name, entries)
        if self.missing is not None:
            self.missing.extend(map(fs.display_path, search.manifests.missing))
        if search.manifests.unnamed:
            left_out = {fs.display_path(file): manifest for file, manifest in search.manifests.unnamed.items()}
            if self.unnamed is None:
                _warn_of_unnamed(left_out)
            else:
                self.unnamed.update(left_out)
        return Sources(sources)
