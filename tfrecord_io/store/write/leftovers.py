"""Find and remove what killed writers left behind: unfinished uploads, temporary files and unpublished shards.

A writer that ends with an exception leaves nothing behind. A killed one cannot clean up: a bucket then stores, and
charges for, the parts of an upload that is never completed, and a folder or bucket keeps files with hidden names.
Uploads are aborted by id.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any

from tfrecord_io.base import StorageOptions, hide_secrets, logger, printable, warn
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.filesystem.interface import FileSystem, LocalFileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.os_errors import raise_os_errors
from tfrecord_io.store.filesystem.remote import FsspecFileSystem, store_of
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.write.atomic_remote import unfinished_uploads

LEFT = frozenset({Kind.TEMPORARY, Kind.PART, Kind.CONDITION, Kind.JOURNAL, Kind.CLAIM})
"""What no finished writer leaves, whatever a manifest says."""

_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created", "modify")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file, folder or upload left behind."""

    path: str  # of the file, or of the object that the upload would have created
    upload: str | None  # its id; None for a temporary file
    started: datetime | None  # when it was begun or last written
    bytes: int | None  # its size, if known
    _remove: Callable[[], None] = field(repr=False, compare=False)

    @property
    def is_part(self) -> bool:
        """True if it is a part of a manifest."""
        return self.upload is None and FileName.of_path(self.path).kind is Kind.MANIFEST_PART

    @staticmethod
    def clean(
        path: str | os.PathLike[str], storage: StorageOptions, *, remove: bool, older_than: timedelta
    ) -> list[Leftover]:
        """Find what killed writers left behind, the oldest first, and `remove` it.

        See `tfrecord_io.store.write.cleaning`.
        """
        fs, name = Location.of(path, storage)
        if not isinstance(fs, FsspecFileSystem):
            candidates = _local_files(name)
        elif not fs.can_list:
            shown = hide_secrets(os.fspath(path))
            raise ValueError(f"'{shown}': a web server is read-only: writers leave nothing behind there")
        elif store_of(fs.fsspec) == "s3":
            prefix = name.rstrip("/") + "/" * os.fspath(path).endswith("/")
            uploads = (
                Leftover(
                    fs.display_path(upload.name),
                    upload.id,
                    started=upload.started,
                    bytes=upload.size(),
                    _remove=upload.abort,
                )
                for upload in unfinished_uploads(fs, prefix)
            )
            candidates = chain(uploads, _remote_files(fs, name, optional=True))
        else:
            candidates = _remote_files(fs, name)
        latest = datetime.now(UTC) - older_than
        leftovers = [leftover for leftover in candidates if leftover.started is not None and leftover.started <= latest]
        leftovers.sort(key=lambda leftover: (leftover.started, leftover.path))
        if remove:
            # Parts of manifests last: without conditions, they are removed by who has the only claim.
            for leftover in sorted(leftovers, key=lambda leftover: leftover.is_part):
                leftover._remove()
                logger.info("removed: %s, left by a writer", leftover.path)
        return leftovers


def _local_files(root: str) -> Iterator[Leftover]:
    """Find temporary files below a folder, and shards that were written but not published."""

    def warn_below(error: OSError) -> None:
        if error.filename == root:
            raise error
        warn(f"{printable(error.filename)}: this folder was not searched ({error.strerror})", UserWarning)

    manifests = _Manifests(LocalFileSystem())
    for folder, folders, names in os.walk(root, onerror=warn_below):
        of_folders = [name for name in folders if FileName.parse(name).kind is Kind.TEMPORARY]
        for name in sorted(of_folders):  # of writers of a folder of files
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                folders.remove(name)
                yield from _left_folder(path)
        for name in sorted(_find_left_names(manifests, f"{folder.rstrip('/')}/", names)):
            path = os.path.join(folder, name)
            for status in _statuses(path):
                time = datetime.fromtimestamp(status.st_mtime, UTC)
                yield Leftover(path, None, started=time, bytes=status.st_size, _remove=partial(manifests.remove, path))


def _left_folder(path: str) -> Iterator[Leftover]:
    """Describe a temporary folder, which is as old as its latest change."""
    statuses = _statuses(path)
    for folder, folders, names in os.walk(path):
        statuses += _statuses(*(os.path.join(folder, name) for name in (*folders, *names)))
    if statuses:
        time = datetime.fromtimestamp(max(status.st_mtime for status in statuses), UTC)
        size = sum(status.st_size for status in statuses if stat.S_ISREG(status.st_mode))
        yield Leftover(path, None, started=time, bytes=size, _remove=partial(_remove_folder, path))


def _remove_folder(path: str) -> None:
    """Remove a temporary folder, unless its writer has renamed or removed it, or another process has."""
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # one of its files was removed meanwhile: the others are left
            shutil.rmtree(path)


def _statuses(*paths: str) -> list[os.stat_result]:
    """Look up listed files and folders, except those that a writer has renamed or removed since."""
    statuses = []
    for path in paths:
        with suppress(FileNotFoundError):
            statuses.append(os.lstat(path))
    return statuses


@dataclass(frozen=True, slots=True)
class _ManifestFacts:
    """Facts of a manifest: names of files, with the directory of the manifest."""

    dataset: str
    listed: frozenset[str]  # shards, also under their staged names
    replaced: frozenset[str]
    part_ids: frozenset[str]  # of its parts, also of those that are kept for readers


class _Manifests:
    """Cache of manifests: all partition folders share a manifest, which may be large.

    In a store, where all names were listed before, each manifest is read once. On a disk, where folders are listed
    meanwhile, a replaced manifest is read again.
    """

    def __init__(self, fs: FileSystem) -> None:
        self.fs = fs
        self._found: dict[str, tuple[object, _ManifestFacts | None]] = {}
        self._parts: dict[str, frozenset[str]] = {}  # ids of those that are needed, by their folder

    def remove(self, path: str) -> None:
        """Remove what a writer has left; of parts, those that no writer will name."""
        file = FileName.of_path(path)
        if file.kind is Kind.MANIFEST_PART:
            from tfrecord_io.store.write.publication import place_of  # only where there are parts

            folder = path[: path.rindex("/") + 1]
            if folder not in self._parts:
                directory = folder[: folder[:-1].rindex("/") + 1]
                self._parts[folder] = place_of(self.fs, directory, file.dataset or "").part_ids_for_good()
            if file.id in self._parts[folder]:
                return
        self.fs.remove(path)

    def read(self, path: str) -> _ManifestFacts | None:
        """Read a manifest; None if the file is not of this package. CorruptRecordError or OSError if unusable."""
        version: object = None
        if isinstance(self.fs, LocalFileSystem):
            with suppress(FileNotFoundError, NotADirectoryError):
                status = os.stat(path)
                version = status.st_ino, status.st_mtime_ns, status.st_size
        if path not in self._found or self._found[path][0] != version:
            self._found[path] = version, self._parse(path)
        return self._found[path][1]

    def _parse(self, path: str) -> _ManifestFacts | None:
        manifest = Manifest.at(self.fs, self.fs.entry(path))
        if manifest is None:
            return None
        directory = path[: path.rindex("/") + 1]
        listed = frozenset(directory + name for file in manifest.files for name in (file.path, file.staged) if name)
        replaced = frozenset(directory + name for name in manifest.replaces)
        return _ManifestFacts(manifest.dataset, listed, replaced, manifest.part_ids)


def _find_left_names(manifests: _Manifests, folder: str, names: Collection[str]) -> set[str]:
    """Find temporary files, unpublished and replaced shards in a folder, whose path ends in a slash."""
    files = {name: FileName.of_path(folder + name) for name in names}
    kinds = {name: file.kind for name, file in files.items()}
    parts = _find_left_parts(manifests, folder, {name for name, kind in kinds.items() if kind is Kind.MANIFEST_PART})
    written = {name for name, file in files.items() if kinds[name] is Kind.STAGED or _is_added(file)}
    # Indexes of shards that were replaced during the indexing.
    alone = {name: file for name, file in files.items() if kinds[name] is Kind.INDEX and file.of not in files}
    alone = {name: file for name, file in alone.items() if file.dataset is not None}
    paths = [folder + name for name, kind in kinds.items() if kind is Kind.MANIFEST]
    if written or alone or paths:
        paths += [root + FileName.manifest(FileName.DIRECTORY_STEM) for root in ColumnFolder.roots_of(folder)]
        used, replaced, stems = _find_used_shards(manifests, folder, files, written, paths=paths)
        written = (written | replaced) - used
        written.update(index for shard in [*written] for index in FileName.indexes(shard) if index in files)
        # Other tools call files so, too, as "faiss-00000-of-00008.index".
        written.update(name for name, file in alone.items() if file.id or file.dataset in stems)
    return written | parts | {name for name, kind in kinds.items() if kind in LEFT}


def _find_left_parts(manifests: _Manifests, folder: str, names: set[str]) -> set[str]:
    """Find the parts, in their folder, that their manifest does not need; those of one that cannot be read are kept."""
    if not names:
        return set()
    try:
        manifest = manifests.read(_manifest_of_parts(folder))
    except (CorruptRecordError, OSError) as error:
        reason = "its parts are kept, as the manifest cannot be read"
        warn(f"{printable(manifests.fs.display_path(folder))}: {reason} ({error})", UserWarning)
        return set()
    used = frozenset[str]() if manifest is None else manifest.part_ids
    return {name for name in names if FileName.of_path(folder + name).id not in used}


def _manifest_of_parts(folder: str) -> str:
    """The manifest whose parts are in a folder, whose path ends in a slash."""
    return f"{folder.rstrip('/')}.json"


def _is_added(file: FileName) -> bool:
    """True if a file is a shard that was added to a dataset, with the id of its writing."""
    return file.shard is not None and bool(file.shard.id)


def _find_used_shards(
    manifests: _Manifests, folder: str, files: Mapping[str, FileName], written: set[str], paths: Iterable[str]
) -> tuple[set[str], set[str], set[str]]:
    """Find the shards in use, the replaced shards that manifests at `paths` state, and the stems of their datasets.

    Shards in use are those that a manifest lists, staged ones too, and those appended to a dataset whose manifest is
    gone. Replaced shards are those that the writer of the manifest has not removed.
    """
    used: set[str] = set()
    replaced: set[str] = set()
    stems: set[str] = set()
    for path in paths:
        try:
            manifest = manifests.read(path)
        except (CorruptRecordError, OSError) as error:
            reason = "its staged shards are kept, as a manifest that may list them cannot be read"
            if written:
                warn(f"{printable(manifests.fs.display_path(folder))}: {reason} ({error})", UserWarning)
            return written, set(), set()
        if manifest is not None:
            used.update(name for name in files if folder + name in manifest.listed)
            replaced.update(name for name in files if folder + name in manifest.replaced)
            stems.add(manifest.dataset)
    added_shards = {name for name in written if _is_added(files[name]) and files[name].dataset not in stems}
    return used | added_shards, replaced, stems


def _remote_files(fs: FsspecFileSystem, folder: str, *, optional: bool = False) -> Iterator[Leftover]:
    """Find temporary files and unpublished shards below a remote folder, which must exist unless `optional`.

    Writes to object stores are atomic without temporary files.
    """
    path = fs.display_path(folder)
    entry = fs.entry(folder)
    if entry is None or not entry.directory:
        if optional:
            return
        raise FileNotFoundError(2, "no such folder", path)
    with raise_os_errors(path):
        files = fs.fsspec.find(folder, detail=True)
    folders: dict[str, dict[str, str]] = {}  # names by name without the folder
    for name in files:
        parent, slash, base = name.rpartition("/")
        folders.setdefault(parent + slash, {})[base] = name
    manifests = _Manifests(fs)
    for parent, names in folders.items():
        for name in sorted(names[base] for base in _find_left_names(manifests, parent, names)):
            path, info = fs.display_path(name), files[name]
            yield Leftover(
                path, None, started=_time_of(info), bytes=info.get("size"), _remove=partial(manifests.remove, name)
            )


def _time_of(info: Mapping[str, Any]) -> datetime | None:
    """Time of the last write of a file, from its entry in a listing."""
    time = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(time, (int, float)):
        return datetime.fromtimestamp(time, UTC)
    if isinstance(time, datetime):
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    if isinstance(time, str) and re.fullmatch(r"\d{14}(\.\d+)?", time):  # of FTP
        return datetime.strptime(time[:14], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    return None
