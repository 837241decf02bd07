"""Find the files of a read: all that a path means, or with ``split=`` those rows of a dataset that TFDS wrote.

A dataset of TFDS is in ``name/1.0.0/`` or ``name/config/1.0.0/``; its ``dataset_info.json`` lists how many records each
file has. A slice of a split is whole files and, at its ends, pieces of files, whose bytes are found by the headers of
their records.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from tfrecord_io.base import (
    FrameOptions,
    Registry,
    StorageOptions,
    counted,
    did_you_mean,
    for_cli,
    hide_secrets,
    printable,
)
from tfrecord_io.bytes import CODECS
from tfrecord_io.store import FileName, FileSystem, Kind, Location, Source, Sources, resolve_inputs

if TYPE_CHECKING:
    from tfrecord_io.base import CopyOptions
    from tfrecord_io.bytes import Format
    from tfrecord_io.columns import TfdsInfo

_VERSION = r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})"
_DEFAULT_CONFIG = ".config/metadata.json"
_LOOKED_UP = 1000  # files at a time: the first that is missing ends the look-up of millions that an info states


def resolve_sources(
    path: Any,
    options: FrameOptions | CopyOptions,
    storage: StorageOptions | None = None,
    *,
    as_they_are: bool = False,
    **how: Any,
) -> Sources:
    """Find the files of a read, by its options or another `storage`; `how` are keywords of `resolve_inputs`.

    Files of a dataset, alone or in a list, have only the records that are rows of the dataset, and the schema that the
    files embed, unless `as_they_are`.

    FileNotFoundError if nothing matched, no dataset of TFDS exists, or a file of the split is missing; ValueError if
    the dataset has no such split, or not these rows, or has several configurations; SchemaError if its
    ``dataset_info.json`` is damaged.
    """
    if isinstance(path, str | os.PathLike):
        return find_sources(path, options, storage, as_they_are=as_they_are, **how)
    from tfrecord_io.read.scan import Scan  # a path needs nothing that decodes records
    from tfrecord_io.read.sources import resolve_selection

    path, options = resolve_selection(path, options)
    if isinstance(path, Scan):
        return Sources(_dataset_sources([path], options, as_they_are))
    return find_sources(path, options, storage, as_they_are=as_they_are, **how)


def find_sources(
    path: Any,
    options: FrameOptions | CopyOptions,
    storage: StorageOptions | None = None,
    *,
    as_they_are: bool = False,
    **how: Any,
) -> Sources:
    """Find the files of a path, of a file object, or of a list of those and datasets; see `resolve_sources`."""
    if not isinstance(path, str) and isinstance(path, Sources):  # found before
        return path
    split: Any = options.split
    storage = storage or options.storage
    is_list = isinstance(path, list | tuple)
    has_datasets = is_list and _has_datasets(path)  # which have splits of their own
    if has_datasets:
        path = _dataset_sources(path, options, as_they_are)
    is_resolved = is_list and all(isinstance(item, Source) for item in path)
    if split is None or has_datasets or is_resolved:
        how.setdefault("allow_missing_shards", options.allow_missing_shards)
        try:
            sources = resolve_inputs(path, storage, other_formats=True, **how)
        except FileNotFoundError:
            _refuse_other_format(path, storage)
            raise
        return sources if sources.are_of_manifest else Sources(map(_open_content, sources))
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"split={split!r} takes the path of one dataset, not {type(path).__name__}")
    return Sources(_split_sources(path, options, storage))


def _has_datasets(parts: Sequence[Any]) -> bool:
    from tfrecord_io.read.scan import Scan

    return any(isinstance(part, Scan) for part in parts)


def _dataset_sources(parts: Sequence[Any], options: FrameOptions | CopyOptions, as_they_are: bool) -> list[Any]:
    """The files of the datasets in a list, and what else is in it."""
    from tfrecord_io.base import CopyOptions
    from tfrecord_io.read.scan import Scan
    from tfrecord_io.read.sources import record_sources

    sources: list[Any] = []
    for part in parts:
        if isinstance(part, Scan):
            sources += record_sources(part, as_they_are=as_they_are, intact=isinstance(options, CopyOptions))
        else:
            sources.append(part)
    return sources


def _split_sources(
    path: str | os.PathLike[str], options: FrameOptions | CopyOptions, storage: StorageOptions
) -> list[Source]:
    from tfrecord_io.store import Directory

    split: Any = options.split  # parsed
    fs, name, info = _find_dataset(path, storage)
    format, directory = info.record_format(), Directory.from_filesystem(fs, name)
    sources: list[Source] = []
    for of_split, begin, end in split.ranges({key: part.lengths for key, part in info.splits.items()}):
        files = info.splits[of_split].files_between(begin, end)
        while part := list(islice(files, _LOOKED_UP)):
            entries = fs.entries([directory.join(file) for file, _, _ in part], are_files=True)
            for (file, rows, length), entry in zip(part, entries, strict=True):
                if entry is None and options.allow_missing_shards:
                    continue
                if entry is None or entry.directory:
                    text = f"this file of the split '{of_split}' is missing; allow_missing_shards=True reads the others"
                    raise FileNotFoundError(errno.ENOENT, text, fs.display_path(directory.join(file)))
                source = Source.from_entry(fs, entry)
                if format is not None:
                    source = _record_source(format, source, *rows, length)
                else:
                    source = source if rows == (0, length) else _piece(source, *rows, length)
                sources.append(source)
    if not sources:
        raise ValueError(f"split={split!r} has no rows: '{printable(info.path)}' lists {_list_splits(info)}")
    return sources


def _refuse_other_format(path: Any, storage: StorageOptions) -> None:
    """Raise SchemaError if a directory is that of a dataset of TFDS whose files are of a format that is not read."""
    if isinstance(path, str | os.PathLike):
        from tfrecord_io.columns import TfdsInfo

        TfdsInfo.format_of(*Location.of(path, storage))


def _open_content(source: Source) -> Source:
    """The source; of a file of another format by its name, with the records that it has."""
    # The table of formats takes time to import, and the kind of a name with the usual suffix to find.
    if source.path.endswith(Registry.WRITTEN_SUFFIXES) or source.derived is not None or source.span is not None:
        return source
    if source.is_file_object or FileName.of_path(source.path).kind is Kind.RECORDS:
        return source
    from tfrecord_io.bytes import FORMATS

    format = FORMATS.of_records(source.path, CODECS.without_suffix(source.path))
    return source if format is None else _record_source(format, source, begin=0, end=None, length=None)


def _record_source(format: Format, source: Source, begin: int, end: int | None, length: int | None) -> Source:
    """The records of a file of another format from `begin` to `end`, of `length`, as those of a TFRecord file."""
    from tfrecord_io.bytes import Format

    assert format.content is not None
    source_of_records: Source = Format.load(format.content)(source, begin, end, length)
    return source_of_records


def _list_splits(info: TfdsInfo) -> str:
    sizes = {name: counted(sum(split.lengths), "row") for name, split in info.splits.items()}
    return ", ".join(f"'{name}' with {size}" for name, size in sizes.items()) or "no splits"


def _piece(source: Source, begin: int, end: int, length: int) -> Source:
    """The records of a file from number `begin` to `end`, of `length`, which ``dataset_info.json`` states."""
    from tfrecord_io.columns import TfdsInfo
    from tfrecord_io.read.index.find_index import find_indexes, read_index, unless_stale, warn_of_stale
    from tfrecord_io.read.index.header_scan import scan_sizes
    from tfrecord_io.read.index.record_index import RecordIndex
    from tfrecord_io.store import RandomAccessFile

    with RandomAccessFile.open_plain(source, "a slice of a split") as file:
        (sidecar,) = find_indexes([source])
        index, text = (None, "") if sidecar is None else unless_stale(lambda: read_index(sidecar, source, file))
        warn_of_stale([text])
        if index is None:
            sizes: list[int] = []
            for some in scan_sizes(source.path, file):
                sizes += some.tolist()
                if len(sizes) >= end:
                    break
            index = RecordIndex.from_sizes(sizes)
        if len(index) < end:
            TfdsInfo.check_count(source.path, len(index), length)
        bounds = index.bounds[[begin, end]].tolist()
        return source.piece(bounds[0], file.size if end == length else bounds[1], end - begin)


# ---- the directory of a dataset


def _find_dataset(path: str | os.PathLike[str], storage: StorageOptions) -> tuple[FileSystem, str, TfdsInfo]:
    """Find the directory of a dataset's version, from its own path or from a directory above."""
    from tfrecord_io.columns import TfdsInfo
    from tfrecord_io.store import Directory

    fs, name = Location.of(TfdsInfo.directory_of(path), storage)
    for directory in _versions(fs, name):
        info = TfdsInfo.read(Directory.from_filesystem(fs, directory))
        if info is not None:
            return fs, directory, info
    shown_path = fs.display_path(name)
    if fs.entry(name) is None:
        parent, _, base = name.rstrip("/").rpartition("/")
        siblings = [entry.basename for entry in fs.listing(parent)] if parent and fs.entry(parent) else []
        question = did_you_mean(base, siblings)
        raise FileNotFoundError(errno.ENOENT, "no such directory" + (question and f"; {question}"), shown_path)
    text = f"no dataset of TFDS: {{0}} needs a {Source.TFDS_INFO} here, in 1.0.0/ or in config/1.0.0/; "
    text += "omit {0} to read files by their names"
    raise for_cli(FileNotFoundError(errno.ENOENT, text.format("split="), shown_path), text.format("--split"))


def _versions(fs: FileSystem, name: str) -> Iterator[str]:
    """Directories that may have a ``dataset_info.json``, the best first."""
    yield name
    entry = fs.entry(name)
    if entry is None or not entry.directory or not fs.can_list:
        return
    folders = [child.basename for child in fs.listing(entry.name) if child.directory]
    root = f"{entry.name.rstrip('/')}/"
    versions = [folder for folder in folders if re.fullmatch(_VERSION, folder)]
    if versions:
        yield from (root + version for version in sorted(versions, key=_number, reverse=True))
        return
    configs = {}
    for folder in sorted(folders):
        if not folder.startswith("."):
            inside = [child.basename for child in fs.listing(root + folder) if child.directory]
            if numbered := [version_folder for version_folder in inside if re.fullmatch(_VERSION, version_folder)]:
                configs[folder] = sorted(numbered, key=_number, reverse=True)
    config = next(iter(configs)) if len(configs) == 1 else _default_config(fs, root, list(configs))
    if config is not None:
        yield from (f"{root}{config}/{version}" for version in configs[config])


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _default_config(fs: FileSystem, root: str, configs: Sequence[str]) -> str | None:
    """The default configuration of TFDS, named in a note next to the configurations; ValueError if there is none."""
    if not configs:
        return None
    import json  # for folders of configurations only

    from tfrecord_io.store import Directory

    text = Directory.from_filesystem(fs, root).read(_DEFAULT_CONFIG)
    try:
        default = json.loads(text)["default_config_name"] if text is not None else None
    except (ValueError, TypeError, LookupError, RecursionError):
        default = None
    if default in configs:
        return str(default)
    example = fs.display_path(root + configs[0])
    names = ", ".join(configs)
    reason = f"'{fs.display_path(root)}' has several configurations, {names}: name one, as in '{example}'"
    raise ValueError(hide_secrets(reason))
