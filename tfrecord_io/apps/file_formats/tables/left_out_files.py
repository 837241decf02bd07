"""Warn once of files in a folder that look like data of the format but are left out for their names."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from tfrecord_io.base import and_more, listed, printable, warn
from tfrecord_io.bytes import CODECS, FORMATS, Format, looks_like
from tfrecord_io.errors import TFRecordError
from tfrecord_io.store import (
    MOST_CHECKED,
    Entry,
    FileName,
    FileSystem,
    LocalFileSystem,
    PathMatch,
    Source,
    file_in_folders,
    natural_key,
    open_source,
    source_of,
)

_CSV = FORMATS.csv

_HEAD_BYTES = 64 << 10  # two lines of a wide table
_DELIMITER = re.compile(rb"[,;\t|](?! )")
_NUMBER = re.compile("[0-9]+")


def warn_of_left_out(match: PathMatch, formats: Sequence[Format]) -> None:
    """Warn of files in a directory that look like data of `formats` but are not read.

    A file counts by its content; of text, which says little, also by a name like those of the files that are read:
    ``part-1`` beside ``part-0.csv``. In a bucket, where each look is a request, only files with such names are looked
    at.
    """
    if match.fs is None or not match.is_directory:
        return
    suffixes = tuple(suffix for format in formats for suffix in format.suffixes)

    def is_read(name: str) -> bool:
        return not FileName.parse(name).is_hidden and CODECS.without_suffix(name.lower()).endswith(suffixes)

    directory = match.fs.display_path(match.name)
    is_local = isinstance(match.fs, LocalFileSystem)
    if is_local and (text := file_in_folders(match.name, match.listing, is_read)):
        warn(f"{printable(directory)}: {text}", UserWarning)
    left_out = [] if not match.sources else _left_out(match, match.fs, formats, suffixes, only_names=not is_local)
    if left_out:
        kinds, first = listed("or", *(format.title for format in formats)), min(left_out, key=natural_key)
        text = f"'{printable(first)}'{and_more(len(left_out) - 1)} not read: it looks like {kinds}, but the name does"
        text += f" not end in {' or '.join(suffixes)}; rename it"
        warn(f"{printable(directory)}: {text}, or name all files with a glob and source_format=", UserWarning)


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
    is_text = not {_CSV, FORMATS.tsv}.isdisjoint(formats)
    is_table = _table_of_text(match.sources[0]) if is_text and unread else None
    names = []
    for entry in islice(unread, MOST_CHECKED):
        head = _head(source_of(fs, entry))
        kind = None if head is None else looks_like(head)
        is_data = any(kind in format.looks for format in formats)
        if is_text and is_data and head is not None:
            is_data = like[entry.name] if is_table is None else is_table(head)
        is_packed = _has_inside(entry, suffixes) and kind not in (None, *_CSV.looks)  # as a.csv.bz2
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
        stream = open_source(source)
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
