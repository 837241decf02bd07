"""From what a user calls ``path`` to the files to read, in order.

A text is tried in this order: a file or directory of that very name; braces; a shard spec ``name@8``
or ``name@*``; a glob. Records come in file order, files of a pattern in natural order, those of a list
as listed. A family of shards must be complete, unless its files were listed one by one; where a manifest says
which files there are, a pattern may be for a part of them.
"""

from __future__ import annotations

import errno
import fnmatch
import functools
import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tfrecord_io.storage.filesystem.local import Entry, FileSystem, locate
from tfrecord_io.storage.paths.braces import expand_braces
from tfrecord_io.storage.paths.manifests_found import Datasets
from tfrecord_io.storage.paths.partitions import folders_of, is_below_folders, parse_folder, root_of
from tfrecord_io.storage.paths.shard_families import ShardFamilies
from tfrecord_io.storage.paths.shard_names import (
    RECORD_SUFFIXES,
    is_hidden,
    is_record_file,
    is_sidecar,
    natural_key,
    parse_shard,
    parse_spec,
    shard_name,
    spelled_shards,
)
from tfrecord_io.storage.read.source import Source, source_of, source_of_file

_LOOKS = 3
_FORMS = "a file, a directory, a glob, {a,b}, {000..999} and name@8 were tried"


def resolve_inputs(
    path: Any,
    *,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
    allow_missing_shards: bool = False,
    check_sizes: bool = True,
) -> list[Source]:
    """Find the files that a path means.

    Parameters
    ----------
    path : str, PathLike, binary file object, or iterable of those
        A local path or a URL; of a file or a directory, a glob, with braces, or a shard spec; see the module's text.
    storage_options : dict, optional
        For the fsspec filesystem of a URL.
    filesystem : fsspec or pyarrow filesystem, optional
        Where `path` is, instead of what its URL says.
    allow_missing_shards : bool
        Accept families of shards with an index missing or there twice, and files missing that a manifest names.
    check_sizes : bool
        Whether files must have the sizes that a manifest says.

    Returns
    -------
    list of Source
        At least one.

    Raises
    ------
    FileNotFoundError
        Nothing matched, or a shard is missing or there twice; ``filename`` is what was looked for.
    ValueError
        A directory or a spec means several families of shards; the message has a glob for each.
    CorruptRecordError
        A dataset's manifest is damaged, or does not fit its files.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> for name in ("a-00000-of-00002", "a-00001-of-00002", "a.json"):
    ...     _ = open(f"{folder}/{name}", "wb").write(b"")
    >>> [os.path.basename(source.path) for source in resolve_inputs(folder)]
    ['a-00000-of-00002', 'a-00001-of-00002']
    """
    search = _Search(storage_options, filesystem, allow_missing_shards, check_sizes)
    if hasattr(path, "read"):
        return [search.file_object(path)]
    if isinstance(path, (str, os.PathLike)):
        return search.text(path, check=True)
    if hasattr(path, "__arrow_c_stream__"):
        raise TypeError(
            f"this is data already, a {type(path).__name__}, and no path: it need not be read, and write_tfrecord takes it"
        )
    if isinstance(path, (bytes, bytearray, memoryview)) or not isinstance(path, Iterable):
        raise TypeError(
            f"path is a str, a PathLike, a binary file object or a list of those, not {type(path).__name__}"
        )
    return search.listed(list(path))


class _Search:
    """The path rules, with the arguments that all of them need."""

    def __init__(
        self, storage_options: Mapping[str, Any] | None, filesystem: Any, allow_missing: bool, check_sizes: bool
    ) -> None:
        self.storage_options, self.filesystem = storage_options, filesystem
        self.allow_missing, self.check_sizes = allow_missing, check_sizes
        self.datasets: Datasets  # of the path at hand

    def file_object(self, file: Any) -> Source:
        if self.storage_options or self.filesystem is not None:
            raise ValueError("storage_options and filesystem are for paths; a file object is read as it is")
        return source_of_file(file)

    def listed(self, paths: list[Any]) -> list[Source]:
        """Resolve an explicit list; whether its shards are complete is nobody's business."""
        if not paths:
            raise FileNotFoundError(errno.ENOENT, "an empty list of paths has no files", "[]")
        found: list[Source] = []
        for path in paths:
            if isinstance(path, Source):  # a file found before, or a piece of one
                found.append(path)
            elif hasattr(path, "read"):
                found.append(self.file_object(path))
            elif isinstance(path, (str, os.PathLike)):
                found.extend(self.text(path, check=False))
            else:
                raise TypeError(
                    f"a list of paths holds str, PathLike or binary file objects, not {type(path).__name__}"
                )
        return found

    def text(self, path: str | os.PathLike[str], *, check: bool) -> list[Source]:
        tree, name = locate(path, self.storage_options, self.filesystem)
        sources = []
        for entry in self._steady_entries(tree, name, check=check):
            inside = entry.name.startswith(f"{name.rstrip('/')}/")
            folders = (
                folders_of(entry.name, f"{name.rstrip('/')}/" if inside else root_of(name))
                if entry.name != name
                else ()
            )
            sources.append(
                replace(source_of(tree, entry), shard=self.datasets.shards.get(entry.name), partitions=folders)
            )
        return sources

    def _steady_entries(self, tree: FileSystem, name: str, *, check: bool) -> list[Entry]:
        """The entries; looked up anew where they do not fit a manifest, as its writer may be at work between two looks."""
        for _ in range(_LOOKS - 1):
            self.datasets = Datasets(tree, self.check_sizes)
            try:
                return self._entries(tree, name, check=check)
            except (OSError, ValueError):
                if not self.datasets.found:
                    raise
        self.datasets = Datasets(tree, self.check_sizes)
        return self._entries(tree, name, check=check)

    def _entries(self, tree: FileSystem, name: str, *, check: bool) -> list[Entry]:
        if name.endswith("/") and not tree.lists:
            tree.listing(name)  # raises
        words = expand_braces(name)
        entry = _literal(tree, name, words)
        if entry is not None:
            return self._existing(tree, entry, check=check)
        if words == [name]:
            return self._pattern(tree, name, check=check)
        found: dict[str, Entry] = {}
        for word, entry in zip(words, tree.entries(words), strict=True):
            try:
                several = self._existing(tree, entry, check=check) if entry else self._pattern(tree, word, check=check)
            except FileNotFoundError:
                if not self.allow_missing:
                    raise
            else:
                found.update((e.name, e) for e in several)
        if not found:
            raise _nothing(tree, name, "no file matches; " + _FORMS)
        return sorted(found.values(), key=lambda e: natural_key(e.name))

    def _existing(self, tree: FileSystem, entry: Entry, *, check: bool) -> list[Entry]:
        return self._directory(tree, entry.name, check=check) if entry.directory else [entry]

    def _pattern(self, tree: FileSystem, name: str, *, check: bool) -> list[Entry]:
        spec = parse_spec(name)
        if spec is not None:
            return self._spec(tree, name, *spec)
        if has_magic(tree, name):
            return self._glob(tree, name, check=check)
        raise _nothing(tree, name, "no such file")

    def _directory(self, tree: FileSystem, directory: str, *, check: bool) -> list[Entry]:
        everything = tree.listing(directory)
        inside = (
            self._in_folders(tree, directory)
            if any(e.directory and parse_folder(e.basename) for e in everything)
            else []
        )
        listing = self.datasets.look_into([*everything, *inside])
        files = [e for e in listing if not e.directory and is_record_file(e.basename)]
        self.datasets.check(files, lambda name: True, complete=check and not self.allow_missing)
        if not files:
            wanted = f"this directory has no TFRecord files, whose names end in {' '.join(RECORD_SUFFIXES)} or have a shard number"
            others = f"; it has {len(everything)} other entries, which a glob can name" if everything else ""
            raise _nothing(tree, directory, wanted + others)
        for folder in sorted({_parent(e) for e in files}):
            ShardFamilies(tree, [e for e in files if _parent(e) == folder]).refuse_several(
                tree.shown(folder.rstrip("/") or folder)
            )
        return self._sorted(ShardFamilies(tree, files), check=check)

    def _in_folders(self, tree: FileSystem, directory: str) -> list[Entry]:
        """What is below folders that stand for a column's value, and below no others."""
        root = f"{directory.rstrip('/')}/" if directory else ""
        return [
            e for e in tree.glob(f"{glob.escape(root)}*=*/**") if not e.directory and is_below_folders(e.name, root)
        ]

    def _glob(self, tree: FileSystem, pattern: str, *, check: bool) -> list[Entry]:
        everything = tree.glob(pattern)
        base = pattern.rpartition("/")[2]
        named = {e.name for e in everything}
        listing = self.datasets.look_into([*everything, *self._manifests(tree, pattern, everything)])
        asked_hidden = is_hidden(base)
        files = [
            e
            for e in listing
            if (e.name in named or fnmatch.fnmatchcase(e.basename, base))
            and not (e.directory or is_sidecar(e.basename))
            and (asked_hidden or not is_hidden(e.basename))
        ]
        wanted = functools.partial(fnmatch.fnmatchcase, pat=base)
        self.datasets.check(files, wanted, complete=check and not self.allow_missing)
        if not files:
            also = f"; what matches ({len(everything)}) is directories or no data" if everything else ""
            raise _nothing(tree, pattern, "no file matches the pattern" + also)
        return self._sorted(ShardFamilies(tree, files), check=check)

    @staticmethod
    def _manifests(tree: FileSystem, pattern: str, matched: Sequence[Entry]) -> list[Entry]:
        """The manifests beside what a pattern matches, where that may be shards."""
        if matched and all(parse_shard(e.basename) is None for e in matched):
            return []
        parent, slash, base = pattern.rpartition("/")
        return tree.glob(f"{parent}{slash}{'**/' if '**' in base else ''}_MANIFEST*.json")

    def _spec(self, tree: FileSystem, name: str, stem: str, count: int | None) -> list[Entry]:
        """Find ``name@8``: the family that has the stem most exactly, with this count."""
        if not tree.lists:
            return self._unlisted_spec(tree, name, stem, count)
        parent, _, base = stem.rpartition("/")
        directory = parent if parent or not stem.startswith("/") else "/"
        try:
            listing: Sequence[Entry] = tree.listing(directory)
        except (FileNotFoundError, NotADirectoryError):
            listing = []
        files = [e for e in self.datasets.look_into(listing) if not e.directory and not is_sidecar(e.basename)]
        shards = [(e, s) for e in files if (s := parse_shard(e.basename)) is not None and base in s.stems]
        fitting = [(e, s) for e, s in shards if count is None or s.count == count]

        def wanted(name: str) -> bool:
            shard = parse_shard(name)
            return shard is not None and base in shard.stems and count in (None, shard.count)

        self.datasets.check([e for e, _ in fitting], wanted, complete=not self.allow_missing)
        if not fitting:
            there = sorted({"*" if s.count is None else str(s.count) for _, s in shards}, key=natural_key)
            others = f"; there is {', '.join(f'{base}@{n}' for n in there)}" if there else ""
            raise _nothing(tree, name, f"no shards such as '{base}-00000-of-{count or 8:05d}'{others}")
        best = min(s.stems.index(base) for _, s in fitting)
        families = ShardFamilies(tree, [e for e, s in fitting if s.stems.index(base) == best])
        families.refuse_several(tree.shown(name))
        return self._sorted(families, check=True)

    def _unlisted_spec(self, tree: FileSystem, name: str, stem: str, count: int | None) -> list[Entry]:
        """Find ``name@8`` by asking for the names that it may mean, the most exact first."""
        if count is None:
            raise ValueError(
                f"'{tree.shown(name)}': a web server has no listing of its files; write how many shards there are, as name@8"
            )
        form = next((form for form in spelled_shards(stem, count) if form and tree.entry(form[0]) is not None), None)
        if form is None:
            raise _nothing(tree, name, f"no shard such as '{shard_name(stem.rpartition('/')[2], 0, count)}'")
        found = [entry for entry in tree.entries(form) if entry is not None]
        return self._sorted(ShardFamilies(tree, found), check=True)

    def _sorted(self, families: ShardFamilies, *, check: bool) -> list[Entry]:
        if check and not self.allow_missing:
            told = self.datasets.shards  # complete, as far as asked for, by their manifests
            ShardFamilies(families.tree, [e for e in families.files if e.name not in told]).refuse_incomplete()
        return sorted(families.files, key=lambda e: natural_key(e.name))


def _parent(entry: Entry) -> str:
    return entry.name[: len(entry.name) - len(entry.basename)]


def _literal(tree: FileSystem, name: str, words: list[str]) -> Entry | None:
    """Look up a file of the very name. A web server may refuse one that is only a pattern, in whatever way."""
    try:
        return tree.entry(name)
    except OSError:
        if tree.lists or (words == [name] and parse_spec(name) is None and not has_magic(tree, name)):
            raise
        return None


def has_magic(tree: FileSystem, name: str) -> bool:
    """Whether a name is a pattern; a web address may have a question mark."""
    return glob.has_magic(name if tree.lists else name.replace("?", ""))


def _nothing(tree: FileSystem, name: str, text: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, text, tree.shown(name))
