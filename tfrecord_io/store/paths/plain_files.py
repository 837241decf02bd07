"""Find files that are not TFRecord files, of arrays and tables, by their path; and warn of those left out.

Tests: tests/store/paths/test_resolve.py.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from tfrecord_io.base import StorageOptions, and_more, listed, printable, secret_url, warn
from tfrecord_io.bytes import CODECS, FORMATS, ForeignFile, Format
from tfrecord_io.errors import TFRecordError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, natural_key
from tfrecord_io.store.paths.path_search import has_magic, list_directory
from tfrecord_io.store.paths.similar_files import file_in_folders
from tfrecord_io.store.paths.sniff_files import MOST_CHECKED
from tfrecord_io.store.read.source import Source

_HEAD_BYTES = 64 << 10  # two lines of a wide table
_DELIMITER = re.compile(rb"[,;\t|](?! )")
_NUMBER = re.compile("[0-9]+")
_TFDS, _DESCRIPTION_BYTES = b"tensorflow_datasets", 1 << 16  # in the names of classes of features


class PathMatch(NamedTuple):
    """The files that a path means."""

    path: str
    sources: list[Source]  # at least one, in natural order
    is_directory: bool = False  # they are all files of a directory,
    fs: FileSystem | None = None  # of this filesystem,
    name: str = ""  # which has this name there,
    listing: Sequence[Entry] = ()  # and all of this

    def single(self, advice: str) -> Source:
        """The only one. A directory is an IsADirectoryError, several files a ValueError that ends with `advice`."""
        if self.is_directory:
            raise IsADirectoryError(errno.EISDIR, "expected a file, got a directory", secret_url(self.path))
        if len(self.sources) > 1:
            raise ValueError(f"'{printable(self.path)}' matches {len(self.sources)} files: {advice}")
        return self.sources[0]

    def warn_of_left_out(self, formats: Sequence[Format]) -> None:
        """Warn of files in a directory that look like data of `formats` but are not read.

        A file counts by its content; of text, which says little, also by a name like those of the files that are read:
        ``part-1`` beside ``part-0.csv``. In a bucket, where each look is a request, only files with such names are
        looked at.
        """
        if self.fs is None or not self.is_directory:
            return
        suffixes = tuple(suffix for format in formats for suffix in format.suffixes)

        def is_read(name: str) -> bool:
            return not FileName.parse(name).is_hidden and CODECS.without_suffix(name.lower()).endswith(suffixes)

        directory = self.fs.display_path(self.name)
        is_local = self.fs.is_local
        if is_local and (text := file_in_folders(self.name, self.listing, is_read)):
            warn(f"{printable(directory)}: {text}", UserWarning)
        left_out = [] if not self.sources else _left_out(self, self.fs, formats, suffixes, only_names=not is_local)
        if left_out:
            kinds, first = listed("or", *(format.title for format in formats)), min(left_out, key=natural_key)
            reason = (
                f"'{printable(first)}'{and_more(len(left_out) - 1)} not read: it looks like {kinds}, but the name does"
                f" not end in {' or '.join(suffixes)}"
            )
            text, text_cli = (
                f"{printable(directory)}: {reason}; rename it, or name all files with a glob and {option}"
                for option in ("source_format=", "--from")
            )
            warn(text, UserWarning, text_cli)

    @staticmethod
    def find(
        path: Any,
        suffixes: str | tuple[str, ...],
        storage: StorageOptions = StorageOptions.DEFAULT,
        *,
        partitioned: bool = False,
        listed: list[Entry] | None = None,
    ) -> PathMatch:
        """Find the files that a path means; of a directory those whose names end with one of `suffixes`.

        A file of exactly this name wins over what it matches as a glob. If there is none, this is a FileNotFoundError.
        With `partitioned`, a directory has the files of its partition folders too, and the sources have the values of
        these; `listed`, if it is given, is what `list_directory` has found in it.
        Left out are names that begin with ``_`` or a dot; of a glob a dot, unless it states that, and names of tools.
        """
        fs, name = Location.of(path, storage)
        entry = fs.entry(name)
        everything: Sequence[Entry] = ()
        if entry is not None and not entry.directory:
            return PathMatch(os.fspath(path), [Source.from_entry(fs, entry)])
        if entry is not None:
            if listed is not None:
                everything = listed
            else:
                everything = list_directory(fs, entry.name) if partitioned else fs.listing(entry.name)
            listing = [child for child in everything if child.basename.lower().endswith(suffixes)]
            kinds = suffixes if isinstance(suffixes, str) else " or ".join(suffixes)
            nothing = f"this directory has no {kinds} files" if kinds else "this directory has no files"
        elif has_magic(fs, name):
            listing, nothing = fs.glob(name), "no file matches the pattern"
        else:
            listing, nothing = [], "no such file"
        described = tfds_descriptions(fs, listing)
        listing = [child for child in listing if child.name not in described]
        names = ((child, FileName.of_path(child.name)) for child in listing if not child.directory)
        if entry is not None:
            files = [child for child, file in names if not file.is_hidden]
        else:
            has_dot = name.rpartition("/")[2].startswith(".")
            files = [child for child, file in names if has_dot or not file.is_of_tool]
        if not files:
            raise FileNotFoundError(errno.ENOENT, nothing, secret_url(os.fspath(path)))
        files.sort(key=lambda child: natural_key(child.name))
        sources = [Source.from_entry(fs, child) for child in files]
        if partitioned:
            root = ColumnFolder.root_of(name) if entry is None else f"{entry.name.rstrip('/')}/"
            folders = [ColumnFolder.pairs_in(child.name, root) for child in files]
            sources = [
                source.replace(partitions=partitions) for source, partitions in zip(sources, folders, strict=True)
            ]
        if entry is None:
            return PathMatch(os.fspath(path), sources)
        return PathMatch(os.fspath(path), sources, is_directory=True, fs=fs, name=entry.name, listing=everything)


def tfds_descriptions(fs: FileSystem, listing: Sequence[Entry]) -> set[str]:
    """The names in a listing of the files by which TFDS describes a dataset, which are JSON, and no data.

    A file of such a name that says nothing of TFDS, and is not next to the other one, may be data.
    """
    by_name = {entry.basename: entry for entry in listing if entry.basename in (Source.TFDS_FEATURES, Source.TFDS_INFO)}
    if len(by_name) == 1 and Source.TFDS_FEATURES in by_name:
        entry = by_name[Source.TFDS_FEATURES]
        if entry.directory or _TFDS not in Source.from_entry(fs, entry).read(_DESCRIPTION_BYTES):
            return set()
    return {entry.name for entry in by_name.values()}


def _left_out(
    match: PathMatch, fs: FileSystem, formats: Sequence[Format], suffixes: tuple[str, ...], *, only_names: bool
) -> list[str]:
    """The names of the files that look like data of the formats."""
    families = {_family(source.path.rpartition("/")[2]) for source in match.sources}
    read = {source.location[1] for source in match.sources}
    unread = [
        e
        for e in match.listing
        if not (e.directory or FileName.parse(e.basename).is_hidden) and e.size and e.name not in read
    ]
    like = {entry.name: _family(entry.basename) in families or _has_inside(entry, suffixes) for entry in unread}
    if only_names:
        unread = [entry for entry in unread if like[entry.name]]
    else:
        unread = [entry for entry in unread if like[entry.name] or not _is_of_other_format(entry)]
    is_text = not {FORMATS.csv, FORMATS.tsv}.isdisjoint(formats)
    is_table = _table_of_text(match.sources[0]) if is_text and unread else None
    names = []
    for entry in islice(unread, MOST_CHECKED):
        head = _head(Source.from_entry(fs, entry))
        kind = None if head is None else ForeignFile.looks_like(head)
        is_data = any(kind in format.looks for format in formats)
        if is_text and is_data and head is not None:
            is_data = like[entry.name] if is_table is None else is_table(head)
        is_packed = _has_inside(entry, suffixes) and kind not in (None, *FORMATS.csv.looks)  # as a.csv.bz2
        if is_data or is_packed:
            names.append(entry.basename)
    return names


def _family(name: str) -> str:
    """The part of a name that shards of a dataset share: no suffixes, and 0 instead of each number.

    >>> _family("part-12.csv.gz") == _family("part-3") != _family("README")
    True
    """
    return _NUMBER.sub("0", name.partition(".")[0])


def _has_inside(entry: Entry, suffixes: tuple[str, ...]) -> bool:
    """True if one of the suffixes is within a name: ``a.csv.bz2``, ``a.csv-1``."""
    return any(re.search(rf"{re.escape(suffix)}[^A-Za-z]", entry.basename.lower()) for suffix in suffixes)


def _is_of_other_format(entry: Entry) -> bool:
    return FORMATS.of_path(CODECS.without_suffix(entry.basename.lower())) is not None


def _head(source: Source) -> bytes | None:
    """The first bytes of a file, decompressed; None if they cannot be read."""
    head = memoryview(bytearray(_HEAD_BYTES))
    done = 0
    with suppress(TFRecordError, OSError):
        stream = source.open_stream()
        try:
            while done < len(head) and (n := stream.readinto(head[done:])):
                done += n
        finally:
            stream.close()
    return bytes(head[:done]) or None


def _table_of_text(source: Source) -> Callable[[bytes], bool] | None:
    """Make a predicate for text of the same table as a file: two lines with as many delimiters as its first line.

    None if that line has no delimiter, so that text of the table looks like any other.
    """
    head = _head(source)
    first = [] if head is None else _delimiters(head)[:1]
    if not first or not any(first[0]):
        return None
    return lambda head: all(line == first[0] for line in _delimiters(head))


def _delimiters(head: bytes) -> list[tuple[int, ...]]:
    """Count each delimiter in the first two lines, except before a space, as in a sentence."""
    lines = [[match[0] for match in _DELIMITER.finditer(line)] for line in head.splitlines()[:2]]
    return [tuple(map(line.count, (b",", b";", b"\t", b"|"))) for line in lines]
