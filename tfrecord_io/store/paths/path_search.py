"""Search for the files of a path by the rules of `tfrecord_io.store.paths.resolve`.

`PathSearch.entries` tries the forms of a path in their order, a method for each.

Tests: tests/store/paths/test_resolve.py, and test_resolve_….py next to it.
"""

from __future__ import annotations

import errno
import fnmatch
import functools
import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from tfrecord_io.base import Registry, and_more, for_cli, hide_secrets, printable, warn
from tfrecord_io.bytes import CODECS
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem, existing_files, literal_prefix
from tfrecord_io.store.filesystem.locate import is_remote
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, ShardSpec, natural_key
from tfrecord_io.store.read.source import Source, Sources

if TYPE_CHECKING:
    from tfrecord_io.store.paths.found_manifests import Manifests

_FORMS = "a file, a directory, a glob, {a,b}, {000..999} and name@8 were tried"
_MOST_SHARDS = 1_000_000  # that are looked up by their names on a web server
_Shards = list[tuple[Entry, ShardName]]
_MOST_NAMED = 10  # families in a message
_MOST_MATCHED = 1_000_000  # names of shards that are compared with a pattern


@dataclass(slots=True, eq=False, repr=False)
class PathSearch:
    """The path rules, for one path.

    With `complete`, no shard that the path asks for may be missing. `is_directory`: it is a URL that ends with a slash.
    Unless it `lists_all`, a directory whose manifest names many files is not listed: `named` are its files then.
    """

    fs: FileSystem
    manifests: Manifests
    allow_missing: bool
    complete: bool
    is_directory: bool
    other_formats: bool
    lists_all: bool = True
    named: Sources | None = None
    listed: dict[str, Entry] = field(default_factory=dict)  # what was listed of whole directories in a bucket, by name

    def sources(self, name: str, entries: Sequence[Entry]) -> list[Source]:
        """The `entries` of a name as files, with what their manifests and folders tell."""
        folder, beside, sources = f"{name.rstrip('/')}/", self.listed or None, []
        for entry in entries:
            if (empty := self.manifests.without_rows.get(entry.name)) is not None:
                sources.append(empty)
                continue
            partitions: tuple[tuple[str, str | None], ...] = ()
            if entry.name != name and "=" in entry.name:
                root = folder if entry.name.startswith(folder) else ColumnFolder.root_of(name)
                partitions = ColumnFolder.pairs_in(entry.name, root)
            sources.append(
                Source.from_entry(
                    self.fs, entry, shard=self.manifests.shards.get(entry.name), partitions=partitions, beside=beside
                )
            )
        return sources

    def entries(self, name: str) -> list[Entry]:
        """The entries of the files that a name means, by the first rule of the module's docstring that matches."""
        if name.endswith("/") and not self.fs.can_list:
            self.fs.listing(name)  # raises
        names = _expand(name)
        spec = ShardSpec.parse(name)
        is_store = is_remote(self.fs) and self.fs.is_object_store
        is_pattern = names == [name] and spec is None and has_magic(self.fs, name)
        if is_store and not self.is_directory and is_pattern and "[" not in name:
            return self._glob(name)  # which matches its own name
        entry = self.fs.entry(name, is_file=True) if is_store and not self.is_directory else None
        if entry is None and self.fs.can_list and (is_store or self.is_directory):  # it is looked up by listing it
            root = f"{name.rstrip('/')}/" if name else ""
            first = None
            with suppress(FileNotFoundError, NotADirectoryError):
                pages = self.fs.pages_below(root)
                page = next(pages, None)
                if page is not None and page[1] and self._is_named(root, page[0]):
                    return []
                listed = walk_directory(self.fs, name, None if page is None else chain([page], pages))
                first = next(listed, None)
            if first is not None:  # with the store's name of the directory, which may differ from the URL in a slash
                return self._directory(first.parent.rstrip("/"), chain([first], listed))
        if entry is None and (self.is_directory or not is_store):
            entry = _literal(self.fs, name, names)
        if entry is not None:
            is_local = entry.directory and isinstance(self.fs, LocalFileSystem)
            return [] if is_local and self._is_named(f"{name.rstrip('/')}/") else self._existing(entry)
        stem, count, _ = spec or (name, None, False)
        from tfrecord_io.store.paths.manifest import is_dataset  # no file of this name needs it

        if (spec is None or names != [name]) and is_dataset(self.fs, stem):
            return self._spec(name, stem, count)
        return self._pattern(name) if names == [name] else self._files_of_braces(name, names)

    def _is_named(self, directory: str, listed: Sequence[Entry] = ()) -> bool:
        """True if the only manifest of a directory names many files; `named` has them then.

        In a bucket, `listed` are its first files, in the order of their names.
        """
        if self.lists_all or "//" in directory:
            return False
        found = None
        with suppress(PermissionError):  # of the directory, which is listed then
            found = self.manifests.of_many_files(directory, listed)
        if found is None:
            return False
        from tfrecord_io.store.paths.manifest_sources import ManifestSources

        self.named = ManifestSources.of_manifest(self.fs, *found)
        return self.named is not None

    def _files_of_braces(self, name: str, names: Sequence[str]) -> list[Entry]:
        """The files of all `names` that the braces of `name` expand to."""
        from tfrecord_io.store.paths.manifest import is_dataset

        by_name: dict[str, Entry] = {}
        for expanded, entry in zip(names, self.fs.entries(names), strict=True):
            try:
                if entry is None and is_dataset(self.fs, expanded):
                    entries = self._spec(expanded, expanded, None)
                else:
                    entries = self._existing(entry) if entry else self._pattern(expanded)
            except FileNotFoundError:
                if not self.allow_missing:
                    raise
            else:
                by_name.update((e.name, e) for e in entries)
        if not by_name:
            raise _nothing(self.fs, name, "no file matches; " + _FORMS)
        return sorted(by_name.values(), key=lambda e: natural_key(e.name))

    def _existing(self, entry: Entry) -> list[Entry]:
        return self._directory(entry.name) if entry.directory else [entry]

    def _pattern(self, name: str) -> list[Entry]:
        spec = ShardSpec.parse(name)
        if spec is not None:
            return self._spec(name, spec.stem, spec.shards)
        if has_magic(self.fs, name):
            return self._glob(name)
        from tfrecord_io.store.paths.similar_files import similar_files

        raise _nothing(self.fs, name, "; ".join(filter(None, ["no such file", similar_files(self.fs, name)])))

    def _directory(self, directory: str, begun: Iterator[Entry] | None = None) -> list[Entry]:
        """The files of a directory, by a new walk or one already `begun`."""
        below = f"{directory.rstrip('/')}/" if directory else ""
        walks = [] if begun is None else [begun]

        def list_files() -> Iterator[Entry]:
            yield from walks.pop() if walks else walk_directory(self.fs, directory)
            yield from self._manifests_above(below, [directory])

        def is_wanted(name: str) -> bool:
            return name.startswith(below)

        listing = self._apply_manifests(list_files, is_wanted, whole=True)
        everything = [entry for entry in self.manifests.listed.values() if is_wanted(entry.name)]
        files = record_files(listing)
        self.manifests.check(files, is_wanted, complete=self.complete)
        if files:
            self._warn_of_ignored(directory, listing, everything)
        else:
            files = self._files_by_content(listing)
        if not files and (manifests := self.manifests.empty_manifests(below)):
            if not self.manifests.without_rows:
                raise _nothing(self.fs, directory, "the dataset has no rows yet: its manifest names no file")
            return manifests
        if not files:
            raise self._no_records(directory, listing, everything)
        by_folder: dict[str, list[Entry]] = {}
        for entry in files:
            by_folder.setdefault(entry.parent, []).append(entry)
        for folder in sorted(by_folder):
            self._check_single_family(by_folder[folder], folder.rstrip("/") or folder)
        if not self.manifests.datasets:  # whose files are one dataset, whatever their names
            from tfrecord_io.store.paths.split_names import warn_of_splits

            warn_of_splits(self.fs, directory, files, listing)
        return self._sort(files, complete=self.complete)

    def _files_by_content(self, listing: Sequence[Entry]) -> list[Entry]:
        """The files of a directory without names of TFRecord files: of other formats, or that begin with a record."""
        files: list[Entry] = []
        if self.other_formats:
            from tfrecord_io.bytes import FORMATS

            names = ((e, e.basename) for e in other_files(listing))
            files = [e for e, base in names if FORMATS.of_records(base, CODECS.without_suffix(base)) is not None]
        if not files:
            from tfrecord_io.store.paths.sniff_files import files_with_records

            files = files_with_records(self.fs, other_files(listing))
        return files

    def _no_records(self, directory: str, listing: Sequence[Entry], everything: Sequence[Entry]) -> FileNotFoundError:
        """The error of a directory in which no file has records."""
        from tfrecord_io.store.paths.similar_files import files_below
        from tfrecord_io.store.paths.sniff_files import MOST_SNIFFED

        suffixes, uninspected = " ".join(Registry.RECORD_SUFFIXES), len(other_files(listing))
        text = f"this directory has no TFRecord files, whose names end in {suffixes} or have a shard number"
        if uninspected > MOST_SNIFFED:
            text += f"; its {uninspected} other files were not inspected, as there are more than {MOST_SNIFFED}"
        below = files_below(self.fs, directory, everything)
        if below:
            text += f"; {below}"
        elif everything:
            entries = f"{len(everything)} other {'entry' if len(everything) == 1 else 'entries'}"
            text += f"; it has {entries}, which a glob can name; "
            offer = "makes TFRecord files of other formats"
            return for_cli(_nothing(self.fs, directory, f"{text}tfr.convert {offer}"), f"{text}tfr convert {offer}")
        return _nothing(self.fs, directory, text)

    def _apply_manifests(
        self, list_files: Callable[[], Iterable[Entry]], wanted: Callable[[str], bool], *, whole: bool = False
    ) -> list[Entry]:
        """As `Manifests.apply`, of whole directories."""
        listing = self.manifests.apply(list_files, wanted, whole=whole)
        if not isinstance(self.fs, LocalFileSystem):  # where a look for one more file costs nothing
            self.listed.update(self.manifests.listed)
        return listing

    def _check_single_family(self, files: Sequence[Entry], name: str) -> None:
        """As `check_single_family`; the files of a manifest are one family, whatever their names."""
        families = {self.manifests.family(entry.name): entry for entry in reversed(files)}
        if len(families) > 1:
            check_single_family(self.fs, list(families.values()), self.fs.display_path(name))

    def _manifests_above(self, path: str, directories: Iterable[str]) -> list[Entry]:
        """The manifest of the dataset of these partition folders, next to the outermost folder.

        It may be next to a later one, as far as `path` names these.
        """
        roots = set[str]()
        for first, *inner_roots in filter(None, map(ColumnFolder.roots_of, directories)):
            roots.update([first, *filter(path.startswith, inner_roots)])
        manifests = [root + FileName.manifest(FileName.DIRECTORY_STEM) for root in sorted(roots)]
        return list(existing_files(self.fs, manifests).values())

    def _warn_of_ignored(self, directory: str, kept: Sequence[Entry], listing: Sequence[Entry]) -> None:
        """Warn of files ignored because of their names, although they have records, and of data in folders."""
        if not isinstance(self.fs, LocalFileSystem):  # a request for each file
            return
        if self.manifests.datasets:  # the directory is what they name, and no other name would be read
            return
        from tfrecord_io.store.paths.similar_files import file_in_folders

        if text := file_in_folders(directory, listing):
            warn(f"{printable(self.fs.display_path(directory))}: {text}", UserWarning)
        from tfrecord_io.store.paths.sniff_files import MOST_CHECKED, readable_files_with_records

        ignored = readable_files_with_records(self.fs, other_files(kept), most=MOST_CHECKED)
        if ignored:
            first = min((e.basename for e in ignored), key=natural_key)
            more = and_more(len(ignored) - 1)
            text = f"'{printable(first)}'{more} not read: the content is TFRecord, but the name is not"
            text += (
                f" ({' '.join(Registry.RECORD_SUFFIXES)} or a shard number); rename it, or name all files with a glob"
            )
            warn(f"{printable(self.fs.display_path(directory))}: {text}", UserWarning)

    def _glob(self, pattern: str) -> list[Entry]:
        """The files that match a pattern, and their manifests, if these are of exactly this name."""
        everything: list[Entry] = []
        is_hidden, parts = FileName.of_path(pattern).is_hidden, pattern.split("/")
        named: set[str] = set()
        literal = literal_prefix(self.fs, pattern)

        def list_files() -> list[Entry]:
            everything[:] = self._matches_of(pattern, literal)
            named.update(entry.name for entry in everything)
            above = self._manifests_above(pattern, {e.parent for e in everything if not e.directory})
            return [*everything, *self._manifests_of(pattern, literal, everything), *above]

        def is_wanted(name: str) -> bool:
            return name in named or _matches(name.split("/"), parts)

        listing = self.manifests.apply(list_files, is_wanted)
        if pattern in self.manifests.listed:  # of exactly this name
            return self._existing(self.manifests.listed[pattern])
        from tfrecord_io.store.paths.manifest import manifests_for

        if any(self.manifests.listed.get(name) for name in manifests_for(pattern)):
            return self._spec(pattern, pattern, None)
        files = []
        for entry in listing:
            if not entry.directory and is_wanted(entry.name):
                file = FileName.parse(entry.basename)
                if not file.is_sidecar and (is_hidden or not file.is_hidden):
                    files.append(entry)
        self.manifests.check(files, is_wanted, complete=self.complete)
        if not files:
            clause = f"; the {len(everything)} matches are directories or not data" if everything else ""
            clause = self._clause_about_unnamed() or clause
            from tfrecord_io.store.paths.similar_files import files_next_to

            clause = clause or "".join(f"; {files}" for files in filter(None, [files_next_to(self.fs, pattern)]))
            raise _nothing(self.fs, pattern, "no file matches the pattern" + clause)
        return self._sort(files, complete=self.complete, wanted=functools.partial(fnmatch.fnmatchcase, pat=parts[-1]))

    def _matches_of(self, pattern: str, literal: int) -> list[Entry]:
        """Matches of a pattern whose first `literal` characters have no magic; objects rather than their folders."""
        entries = self.fs.glob(pattern, literal)
        folders = [e.name for e in entries if e.directory and FileName.parse(e.basename).kind is Kind.RECORDS]
        if not folders or not (is_remote(self.fs) and self.fs.is_object_store):
            return entries
        # fsspec has a folder for an object that is one, too, as "a" by the key "a/b".
        objects = existing_files(self.fs, folders)
        return [objects.get(entry.name, entry) for entry in entries]

    def _clause_about_unnamed(self) -> str:
        """A clause about existing files left out by their manifest."""
        names = sorted(self.manifests.unnamed, key=natural_key)
        if not names:
            return ""
        text = f"; '{self.manifests.unnamed[names[0]]}' does not name '{self.fs.display_path(names[0])}'"
        return f"{hide_secrets(text)}{and_more(len(names) - 1)}, which its own name reads"

    def _manifests_of(self, pattern: str, literal: int, matched: Sequence[Entry]) -> list[Entry]:
        """The manifests in the directory of a pattern, if it may match shards and does not match them, too."""
        parent, slash, base = pattern.rpartition("/")
        if base == "*" or (matched and all(FileName.parse(e.basename).shard is None for e in matched)):
            return []
        return self.fs.glob(f"{parent}{slash}{'**/' if '**' in base else ''}{FileName.MANIFEST_PATTERN}", literal)

    def _spec(self, name: str, stem: str, count: int | None) -> list[Entry]:
        """Find ``name@8``: the family with this count that matches the stem most exactly."""
        parent, _, base = stem.rpartition("/")
        directory = parent if parent or not stem.startswith("/") else "/"
        folder = f"{parent}/" if parent or stem.startswith("/") else ""

        def list_files() -> list[Entry]:
            if not self.fs.can_list:
                return self._looked_up(name, stem, count)
            try:
                return self.fs.listing(directory)
            except (FileNotFoundError, NotADirectoryError):
                return []

        def shard_of(name: str) -> ShardName | None:
            below = name.removeprefix(folder)
            shard = None if "/" in below else ShardName.parse(below)
            return shard if shard is not None and base in shard.stems else None

        entries = self._apply_manifests(list_files, lambda name: shard_of(name) is not None)
        files = [e for e in entries if not e.directory and not FileName.parse(e.basename).is_sidecar]
        shards = [(e, s) for e in files if (s := shard_of(e.basename)) is not None]
        counts_of_all = {s.count for _, s in shards}
        has_count = count in counts_of_all or counts_of_all == {None}  # whose first shards may be replaced since

        def fits(shard: ShardName) -> bool:  # to all shards of a count belong those that were added later
            return count in (None, shard.count) or (bool(shard.id) and has_count)

        def is_wanted(name: str) -> bool:
            shard = shard_of(name)
            return shard is not None and fits(shard)

        fitting = [(e, s) for e, s in shards if fits(s)]

        self.manifests.check([e for e, _ in fitting], is_wanted, complete=not self.allow_missing)
        if not fitting:
            counts = sorted({"*" if s.count is None else str(s.count) for _, s in shards}, key=natural_key)
            raise self._no_shards(name, stem, count, counts)
        ranked = [(e, s.id, s.stems.index(base)) for e, s in fitting]
        best = min(rank for _, _, rank in ranked)
        family = [e for e, id, rank in ranked if rank == best or id]
        self._check_single_family(family, name)
        return self._sort(family, complete=not self.allow_missing)

    def _no_shards(self, name: str, stem: str, count: int | None, counts: Sequence[str]) -> FileNotFoundError:
        """The error of a spec without shards; `counts` are those of its stem that there are."""
        from tfrecord_io.store.paths.similar_files import similar_files

        base = stem.rpartition("/")[2]
        clause = f"there is {', '.join(f'{base}@{n}' for n in counts)}" if counts else similar_files(self.fs, stem)
        clause += self._clause_about_unnamed()
        text = f"no shards such as '{ShardName.make(base, 0, count or 8)}'"
        return _nothing(self.fs, name, "; ".join(filter(None, [text, clause])))

    def _looked_up(self, name: str, stem: str, count: int | None) -> list[Entry]:
        """Look up the manifest of ``name@8`` and its possible shards, in the most exact existing form of names."""
        from tfrecord_io.store.paths.manifest import manifests_for
        from tfrecord_io.store.paths.sidecars import sidecar_entries

        manifests = [*sidecar_entries(self.fs, manifests_for(stem), stem).values()]
        if count is None and not manifests:
            text = "a web server has no listing of its files; state the number of shards, as in name@8"
            raise ValueError(hide_secrets(f"'{self.fs.display_path(name)}': {text}"))
        shards = [(number, form) for number in (0, count or 0) for form in ShardName.first_spellings(stem, count or 0)]
        exists = (shard for shard in shards if count and self.fs.entry(shard[1].sibling(shard[0])) is not None)
        present, form = next(exists, (0, None))  # the last one, if they count from 1
        if form is None:
            if not manifests:
                raise _nothing(self.fs, name, f"no shard such as '{ShardName.make(stem.rpartition('/')[2], 0, count)}'")
            return manifests
        assert count is not None
        if count > _MOST_SHARDS:
            shown = hide_secrets(self.fs.display_path(name))
            raise ValueError(f"'{shown}': expected at most {_MOST_SHARDS:,} shards on a web server")
        entries = self.fs.entries([*map(form.sibling, ShardName.numbers_of({present}, count))])
        return [*manifests, *(entry for entry in entries if entry is not None)]

    def _sort(
        self, files: Sequence[Entry], *, complete: bool, wanted: Callable[[str], bool] | None = None
    ) -> list[Entry]:
        if complete:
            checked = self.manifests.shards  # against their manifests
            check_complete(self.fs, [e for e in files if e.name not in checked], wanted)
        return sorted(files, key=lambda e: self.manifests.sort_key(e.name))


def _matches(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """True if the parts of a path match a pattern's parts; leading directories may have the names of patterns."""
    if not pattern or not names:
        return not pattern and not names
    if pattern[0] == "**" and _matches(names, pattern[1:]):
        return True
    if pattern[0] == "**":
        return _matches(names[1:], pattern)
    first = names[0] == pattern[0] or fnmatch.fnmatchcase(names[0], pattern[0])
    return first and _matches(names[1:], pattern[1:])


def list_directory(fs: FileSystem, directory: str) -> list[Entry]:
    """List a directory, and the files in its partition folders."""
    return list(walk_directory(fs, directory))


def walk_directory(
    fs: FileSystem, directory: str, pages: Iterable[tuple[list[Entry], bool]] | None = None
) -> Iterator[Entry]:
    """As `list_directory`: what is in the directory before the files in its folders.

    `pages` are those of `FileSystem.pages_below`, if they are being listed already.
    """
    root = f"{directory.rstrip('/')}/" if directory else ""
    seen: dict[str, Entry] = {}
    inside: list[Entry] = []
    more = True
    for page, more in fs.pages_below(root) if pages is None else pages:
        for entry in page:
            name, slash, _ = entry.name[len(root) :].partition("/")
            if slash:
                inside.append(entry)
            if name and root + name not in seen:  # else an empty part, as in "d//a"
                yield seen.setdefault(root + name, Entry(root + name, 0, True) if slash else entry)
        if more and inside and not _has_partitions(seen.values()):  # other folders may have any number of files
            break
    if more:
        for entry in fs.listing(directory):
            if not entry.name.startswith(root):  # its store's name of the directory differs from this one in a slash
                root = entry.parent
            if entry.name not in seen:
                yield seen.setdefault(entry.name, entry)
    if not _has_partitions(seen.values()):
        return
    if more:
        inside = [e for e in fs.files_in_partition_folders(root) if "/" in e.name[len(root) :] and not e.directory]
    has_manifest = any(FileName.parse(e.basename).kind is Kind.MANIFEST for e in seen.values())
    if not has_manifest:  # its first writer may have put it meanwhile
        manifest = fs.entry(root + FileName.manifest(FileName.DIRECTORY_STEM))
        if manifest is not None and not manifest.directory:
            yield manifest
    yield from (e for e in inside if ColumnFolder.has_only(e.name, root))


def _has_partitions(entries: Iterable[Entry]) -> bool:
    return any(entry.directory and ColumnFolder.parse(entry.basename) for entry in entries)


def record_files(listing: Iterable[Entry]) -> list[Entry]:
    """The files of a listing that are read as data when their directory is read."""
    return [e for e in listing if not e.directory and FileName.parse(e.basename).kind is Kind.RECORDS]


def other_files(listing: Iterable[Entry]) -> list[Entry]:
    """The other files of a listing that may hold records, whatever their names."""
    return [e for e in listing if not e.directory and FileName.parse(e.basename).kind is Kind.OTHER]


def _literal(fs: FileSystem, name: str, names: list[str]) -> Entry | None:
    """Look up a file of exactly this name. A web server may answer a request for a pattern with any error."""
    try:
        return fs.entry(name)
    except OSError:
        if fs.can_list or (names == [name] and ShardSpec.parse(name) is None and not has_magic(fs, name)):
            raise
        return None


def _expand(name: str) -> list[str]:
    """The names that the braces of a name expand to; without braces, the name itself."""
    if "{" not in name:
        return [name]
    from tfrecord_io.store.paths.expand_braces import expand_braces

    return expand_braces(name)


def has_magic(fs: FileSystem, name: str) -> bool:
    """True if a name is a pattern; in a web address a question mark is literal."""
    return glob.has_magic(name if fs.can_list else name.replace("?", ""))


def _nothing(fs: FileSystem, name: str, text: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, text, fs.display_path(name))


def _families(files: Sequence[Entry]) -> Iterable[_Shards]:
    """Group files into shard families. Files without a shard number belong to none."""
    families: dict[tuple[str, str, str], _Shards] = {}
    for entry in files:
        shard = ShardName.parse(entry.basename)
        if shard is not None:
            families.setdefault((entry.parent, *shard.family), []).append((entry, shard))
    return families.values()


def check_single_family(fs: FileSystem, files: Sequence[Entry], path: str) -> None:
    """Raise ValueError, with a glob for each, if there are several families, or several shard counts in one."""
    globs = [g for shards in _families(files) for g in _globs(fs, shards)]
    if len(globs) > 1:
        named = ", ".join(repr(g) for g in sorted(globs)[:_MOST_NAMED]) + and_more(len(globs) - _MOST_NAMED)
        text = f"'{path}' has {len(globs)} families of shards; name one: {named}, or join them by a glob"
        if any(
            fs.entry(f"{folder}dataset_info.json", is_file=True) is not None
            for folder in {entry.parent for entry in files}
        ):
            text += "; of a dataset of TFDS, split= reads one, such as 'train[:80%]'"
        raise ValueError(text)


def _globs(fs: FileSystem, shards: _Shards) -> list[str]:
    by_count: dict[str, set[str]] = {}
    number = "?????" if all(shard.index < 10**5 and not shard.id for _, shard in shards) else "?????*"
    for entry, shard in shards:
        directory = fs.display_path(entry.parent) if entry.parent else ""
        by_count.setdefault(f"{glob.escape(directory)}{shard.pattern(number)}", set()).add(shard.suffix)
    return [p + (s.pop() if len(s) == 1 else "*") for p, s in by_count.items()]


def check_complete(fs: FileSystem, files: Sequence[Entry], wanted: Callable[[str], bool] | None = None) -> None:
    """Raise FileNotFoundError if a family has a missing or duplicate index, naming it.

    `wanted` selects the base names that the path asks for, as others are not missing; None: all. For shard names
    without a count, a missing index can only be detected with a manifest.
    """
    for shards in _families(files):
        seen: dict[int, Entry] = {}
        for entry, shard in shards:
            first_entry = seen.setdefault(shard.index, entry)
            if first_entry is not entry:
                text = f"shard {shard.index} exists twice, also as '{first_entry.basename}'"
                error = FileNotFoundError(
                    errno.ENOENT, f"{text}; allow_missing_shards=True reads both", fs.display_path(entry.name)
                )
                raise for_cli(error, f"{text}; --allow-missing-shards reads both")
        entry, shard = shards[0]
        count = shard.count or 0  # may be huge
        numbers = ShardName.numbers_of(seen, count)
        missing = count - sum(index in numbers for index in seen)
        absent: Iterable[int] = (index for index in numbers if index not in seen)
        if missing and wanted is not None and count <= _MOST_MATCHED:
            forms = list({(s.base, s.suffix, s.count_text, s.width): s for _, s in shards}.values())
            absent = [index for index in absent if any(wanted(form.sibling(index)) for form in forms)]
            missing = len(absent)
        if missing:
            first = next(iter(absent))
            more = f" (and {missing - 1} more)" if missing > 1 else ""
            text, path = (
                f"shard {first} of {count} is missing{more}",
                fs.display_path(entry.parent + shard.sibling(first)),
            )
            error = FileNotFoundError(errno.ENOENT, f"{text}; allow_missing_shards=True reads the others", path)
            raise for_cli(error, f"{text}; --allow-missing-shards reads the others")
