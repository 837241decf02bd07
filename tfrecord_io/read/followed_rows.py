"""Find the rows appended to a dataset since a version, by the history in its manifest.

Tests: tests/apps/test_follow.py.
"""

from __future__ import annotations

import errno
import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

import numpy as np

from tfrecord_io.base import for_cli, printable
from tfrecord_io.bytes import Array
from tfrecord_io.errors import ReplacedError
from tfrecord_io.read.dataset_version import Version, version_of
from tfrecord_io.read.live_scan import refresh_scan
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.sources import choose_records
from tfrecord_io.store import Manifest, Source

AnyScan = TypeVar("AnyScan", bound=Scan)
_BEFORE_ALL = -1  # the commit before the first one
_TRIES = 5  # while other writers replace the manifest


def check_followed(scan: Scan, since: Version | None) -> None:
    """Raise ValueError or ReplacedError if added rows of a scan cannot be distinguished from earlier rows."""
    if scan.selection.is_range:
        raise ValueError("follow() takes a dataset without offset and limit, which count rows in the order of files")
    version = version_of(scan)
    if version is None:
        path = printable(scan.sources[0].path) if scan.sources else "[]"
        text = "needs one dataset with a manifest, such as appends make"
        error = ValueError(f"'{path}': follow() {text}; tfrecord_io.adopt writes one for the files of other tools")
        raise for_cli(error, f"'{path}': following {text}; tfr adopt writes one for the files of other tools")
    if since is not None:
        _current(scan, since)


def find_added(scan: AnyScan, since: Version | None, until: Version | None = None) -> tuple[AnyScan | None, Version]:
    """Rows added after a version, in the order of the appends, and the version with these rows.

    None if there are none. Files are looked up again, for the same columns and the same condition. `since` None: all
    rows. `until`: the rows of this version only, although there may be a later one.

    Raises
    ------
    ReplacedError
        Rows were replaced since that version, or it is too old to be distinguished from later versions.
    ValueError
        As by `check_followed`, or the version is not one of the dataset.
    """
    if until is not None:
        _current(scan, until)
        since = Version(until.line, _BEFORE_ALL) if since is None else since
        if since.line == until.line and since.commit > until.commit:
            raise ValueError(f"since='{since}' is a later version than until='{until}'")
    elif since is not None:
        current = _current(scan, since)
        if current is not None and current.commit == since.commit:
            return None, since  # by one request
    for _ in range(_TRIES):
        latest = refresh_scan(scan)
        check_followed(latest, None)
        version = version_of(latest)
        assert version is not None
        if since is None:
            return latest, version
        current = _current(latest, since)
        if current is not None and current.id == _path_and_id(latest)[2]:
            until = version if until is None else until
            return _select_added(latest, current, since, until), until
    raise OSError(errno.EBUSY, "other writers replace this dataset again and again; do so later", latest.files[0])


def check_added_are_last(scan: Scan, version: str) -> None:
    """Raise ValueError if rows that were added after a version come before older ones; and ReplacedError."""
    since, latest = Version.parse(version), version_of(scan)
    if latest is None or (manifest := _current(scan, since)) is None:
        return
    records = dict(zip(manifest.paths, manifest.counts, strict=True))
    begins, count = dict[str, int](), 0
    for name in _names_in_manifest(scan):
        begins[name], count = count, count + records.get(name, 0)
    first, added = count, 0
    for name, _, rows in _added_rows(manifest, since, latest):
        if (begin := begins.get(name)) is not None:
            first, added = min(first, begin + int(rows[0])), added + len(rows)
    if first + added < count:
        text = "rows that were added since are not the last ones, as files are read in the order of their folders"
        raise ValueError(f"{text}: tfrecord_io.follow(path, since={version!r}) gives them")


def _names_in_manifest(scan: Scan) -> list[str]:
    """The files of a scan, named as in its manifest: by their paths from its directory on."""
    path = _path_and_id(scan)[1]
    directory = path[: len(path) - len(os.path.basename(path))]
    return [file.removeprefix(directory) for file in scan.sources.paths]


def _path_and_id(scan: Scan) -> tuple[str, str, str]:
    """The path of the manifest of a scan, in its filesystem and for messages, and the id that it had."""
    shard = scan.sources[0].shard
    assert shard is not None
    return shard.manifest.name, shard.manifest.path, shard.manifest.id


def _current(scan: Scan, since: Version) -> Manifest | None:
    """The current manifest of a scan; ReplacedError or ValueError if the rows since a version cannot be determined."""
    shard = scan.sources[0].shard
    manifest = None if shard is None else Manifest.read(shard.manifest)
    if manifest is None:
        return None
    version, path = Version(manifest.line, manifest.commit), _path_and_id(scan)[1]
    if since.line != version.line:
        text = f"rows were replaced since version {since}, or it is of another dataset; the version is {version} now"
        raise ReplacedError(errno.ESTALE, f"{text}: read the dataset again", path)
    oldest = 0 if manifest.history is None else manifest.history.oldest
    if _BEFORE_ALL < since.commit < oldest:
        text = f"version {since} is too old: appends are distinguished from {version.line}.{oldest} on"
        raise ReplacedError(errno.ESTALE, f"{text}: read the dataset again", path)
    if since.commit > version.commit:
        raise ValueError(f"version {since} is none yet: the dataset's version is {version}")
    return manifest


def _select_added(scan: AnyScan, manifest: Manifest, since: Version, until: Version) -> AnyScan | None:
    """The rows of a scan whose commits come after one version, up to another; the manifest is at least as new."""
    numbers = {name: number for number, name in enumerate(_names_in_manifest(scan))}
    chosen: list[tuple[Source, Array | None]] = []
    for name, records, rows in _added_rows(manifest, since, until):
        if (number := numbers.get(name)) is not None:  # else the scan is of other folders
            chosen.append((scan.sources[number], None if len(rows) == records else rows))
    if not chosen:
        return None
    return scan.with_sources(choose_records(scan, chosen))


def _added_rows(manifest: Manifest, since: Version, until: Version) -> Iterator[tuple[str, int, Array]]:
    """The rows whose commits come after one version, up to another: name and records of a file, and its rows' numbers.

    They are in the order of the commits, so that a file may come several times.
    """
    ends = [*accumulate(manifest.counts)]
    for _, begin, end in manifest.added_runs(since.commit, until.commit):
        for at, rows in _rows_in_files(ends, begin, end):
            file = manifest.files[at]
            yield file.path, file.records, rows


def _rows_in_files(ends: Sequence[int], begin: int, end: int) -> Iterator[tuple[int, Array]]:
    """The files, by number, of the rows from one number to another of a dataset, and their numbers in each.

    `ends` are those of the files, in rows.

    >>> [(at, rows.tolist()) for at, rows in _rows_in_files([2, 2, 5], 1, 4)]
    [(0, [1]), (2, [0, 1])]
    """
    at = bisect_right(ends, begin)
    while begin < end:
        first = ends[at - 1] if at else 0
        last = min(end, ends[at])
        if last > begin:
            yield at, np.arange(begin - first, last - first)
        begin, at = max(begin, last), at + 1
