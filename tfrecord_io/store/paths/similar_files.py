"""Which files were probably meant by a path that does not exist."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from glob import has_magic
from itertools import islice

from tfrecord_io.base import counted, did_you_mean, printable
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, natural_key

_MOST_COMPARED = 10_000  # names in a directory
_MOST_FOLDERS = 20


def similar_files(fs: FileSystem, name: str) -> str:
    """A clause about a missing local file: similar names in its directory, or that there is no directory; else empty.

    Of a link it says where its missing target would be.

    Directories of buckets are not listed for it. Names are compared without their suffixes, and shards by the name of
    their dataset.
    """
    if not isinstance(fs, LocalFileSystem):
        return ""
    parent, base = os.path.split(name)
    if os.path.islink(name) and not os.path.exists(name):
        return f"'{printable(base)}' is a link to '{printable(os.readlink(name))}', which does not exist"
    try:
        names = os.listdir(parent or ".")
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no directory '{printable(parent)}'"
    except OSError:
        return ""
    by_stem: dict[str, str] = {}
    for existing in sorted(names)[:_MOST_COMPARED]:
        file = FileName.parse(existing)
        if file.is_hidden or file.is_sidecar:
            continue
        if (shard := file.shard) is None:
            by_stem.setdefault(FileName.split_suffixes(existing)[0], existing)
        else:  # what to read instead are those of its dataset
            by_stem.setdefault(shard.stem, f"{shard.stem}@{'*' if shard.count is None else shard.count}")
    stem, before = FileName.split_suffixes(base)[0], base.partition(".")[0]
    stem = before if before in by_stem else stem  # where the suffix is misspelt
    return did_you_mean(stem, by_stem, by_stem.__getitem__)


def _is_record_file(name: str) -> bool:
    return FileName.parse(name).kind is Kind.RECORDS


def files_next_to(fs: FileSystem, pattern: str) -> str:
    """A clause about the TFRecord files in the directory of a pattern that matches no file; empty if there is none."""
    parent = os.path.dirname(pattern)
    if not isinstance(fs, LocalFileSystem) or has_magic(parent):
        return ""
    try:
        files = [name for name in os.listdir(parent or ".") if _is_record_file(name)]
    except (FileNotFoundError, NotADirectoryError):
        return f"there is no directory '{printable(parent)}'"
    except OSError:
        return ""
    return f"its directory has {counted(len(files), 'file')} such as '{printable(min(files))}'" if files else ""


def files_below(
    fs: FileSystem, directory: str, listing: Iterable[Entry], is_wanted: Callable[[str], bool] = _is_record_file
) -> str:
    """A clause about the files in the folders of a directory that has none itself; empty if there is none.

    It has a glob for all of them, and one of the folders. At most 20 folders are looked into.
    """
    matches: list[Entry] = []
    folders = _folders(listing)
    for number in range(_MOST_FOLDERS):
        if number < len(folders):
            with suppress(OSError):  # a folder without permission
                inside = fs.listing(folders[number].name)
                matches += [entry for entry in inside if not entry.directory and is_wanted(entry.basename)]
                folders += _folders(inside)
    if not matches:
        return ""
    root = directory.rstrip("/")
    depth = "*" if all(entry.parent.rstrip("/").rpartition("/")[0] == root for entry in matches) else "**"
    patterns = sorted({_pattern(entry.basename) for entry in matches})
    pattern = patterns[0] if len(patterns) == 1 else f"{{{','.join(patterns)}}}"
    all_files = f"{glob.escape(fs.display_path(directory).rstrip('/'))}/{depth}/{pattern}"
    glob_all, glob_one = printable(all_files, 1000), printable(fs.display_path(matches[0].parent.rstrip("/")), 1000)
    return f"its folders have such files: '{glob_all}' names all, '{glob_one}' those of one folder"


def file_in_folders(
    directory: str, listing: Iterable[Entry], is_wanted: Callable[[str], bool] = _is_record_file
) -> str:
    """A clause about the first such file in folders of a local directory that are not partitions; empty if none."""
    others = (entry for entry in listing if ColumnFolder.column_of(entry.basename) is None)
    for folder in _folders(others)[:_MOST_FOLDERS]:
        with suppress(OSError), os.scandir(folder.name) as inside:
            for name in (e.name for e in islice(inside, _MOST_COMPARED) if is_wanted(e.name) and not e.is_dir()):
                path, every = f"{folder.basename}/{name}", os.path.join(glob.escape(directory), "**", _pattern(name))
                text = f"'{printable(path)}' not read: in a folder that is not a partition"
                return f"{text} (name=value); the glob '{printable(every, 1000)}' names all"
    return ""


def _folders(entries: Iterable[Entry]) -> list[Entry]:
    folders = [
        e
        for e in entries
        if e.directory and (ColumnFolder.column_of(e.basename) is not None or not FileName.parse(e.basename).is_hidden)
    ]
    return sorted(folders, key=lambda entry: natural_key(entry.name))


def _pattern(name: str) -> str:
    """A glob for the files like this one: with its suffix, or shards of its name."""
    suffix, shard = name[len(FileName.split_suffixes(name)[0]) :], ShardName.parse(name)
    suffix = suffix or ("" if shard else os.path.splitext(name)[1])  # of another format
    return f"*{glob.escape(suffix)}" if suffix or shard is None else f"{glob.escape(shard.base)}-*"
