"""What writers that were killed left behind: uploads that nobody ended, and temporary files.

A writer that ends by an exception leaves nothing. One that is killed cannot tidy up: a bucket then stores, and charges for, the
parts of an upload that is never completed, and a folder keeps a hidden file. Uploads are ended one by one, by their ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tfrecord_io.storage.filesystem.errors import told_as_os_error
from tfrecord_io.storage.filesystem.local import locate, protocols
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.paths.manifest import MAX_BYTES, STAGED, parse_manifest, stem_of

DAY = timedelta(days=1)

_TEMPORARY = re.compile(
    r"\..{0,32}\.[0-9a-f]{16}\.tmp", re.DOTALL
)  # as storage.commit_local and storage.commit_remote name them
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "http", "https"}  # they publish by themselves: no temporary files of ours
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class Leftover:
    """One thing left behind.

    Attributes
    ----------
    path : str
        The file, or the object that was to be.
    upload : str or None
        Id of an upload; None for a temporary file.
    started : datetime or None
        When it was begun, or last written to.
    bytes : int or None
        What it takes up, where that is known.
    """

    path: str
    upload: str | None
    started: datetime | None
    bytes: int | None
    _name: str = field(default="", repr=False)


def clean(
    path: str | os.PathLike[str],
    *,
    remove: bool = False,
    older_than: timedelta = DAY,
    storage_options: Mapping[str, Any] | None = None,
    filesystem: Any = None,
) -> list[Leftover]:
    """Find, and remove, what writers that were killed left behind.

    Parameters
    ----------
    path : str or PathLike
        A folder, with all below it; of S3 a bucket or a prefix of keys.
    remove : bool
        False: only look.
    older_than : timedelta
        Younger ones may belong to a writer that is at work. Nobody can tell whose an upload is: all below `path` are listed.
    storage_options, filesystem
        For fsspec.

    Returns
    -------
    list of Leftover
        Oldest first.

    Raises
    ------
    FileNotFoundError
        There is no such folder or bucket.
    ValueError
        There can be nothing left: a web server. Google Cloud Storage neither lists unfinished uploads nor charges for them,
        and drops them after a week.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> open(f"{folder}/.a.tfrecord.0123456789abcdef.tmp", "wb").close()
    >>> [os.path.basename(left.path) for left in clean(folder, older_than=timedelta(0))]
    ['.a.tfrecord.0123456789abcdef.tmp']
    """
    tree, name = locate(path, storage_options, filesystem)
    kind: _Uploads | _RemoteFiles | _LocalFiles
    if not isinstance(tree, FsspecFileSystem):
        kind = _LocalFiles(name)
    elif {"s3", "s3a"} & set(protocols(tree.fs)):
        kind = _Uploads(tree, name.rstrip("/") + "/" * os.fspath(path).endswith("/"))
    elif _OBJECT_STORES & set(protocols(tree.fs)):
        raise ValueError(
            f"'{os.fspath(path)}': this kind of store keeps nothing of a writer that was killed, or drops it by itself"
        )
    else:
        kind = _RemoteFiles(tree, name)
    latest = datetime.now(UTC) - older_than
    found = [left for left in kind.find() if left.started is not None and left.started <= latest]
    found.sort(key=lambda left: (left.started, left.path))
    if remove:
        for left in found:
            kind.remove(left)
    return found


class _LocalFiles:
    """Temporary files below a folder, and shards that were written and never published."""

    def __init__(self, folder: str) -> None:
        self._folder = folder or "."

    def find(self) -> Iterator[Leftover]:
        os.stat(self._folder)  # os.walk passes over what is not there
        for folder, _, names in os.walk(self._folder):
            unpublished = {name for name in names if STAGED.fullmatch(name)}
            if unpublished:
                unpublished -= _awaited(folder, names)
            for name in sorted({*filter(_TEMPORARY.fullmatch, names), *unpublished}):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                yield Leftover(path, None, datetime.fromtimestamp(status.st_mtime, UTC), status.st_size)

    def remove(self, left: Leftover) -> None:
        os.unlink(left.path)


def _awaited(folder: str, names: list[str]) -> set[str]:
    """Shards that a manifest speaks of: they are its dataset's data until the next writer gives them their names."""
    awaited: set[str] = set()
    for name in names:
        if stem_of(name) is None:
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            manifest = parse_manifest(file.read(MAX_BYTES + 1), path)
        awaited.update(each.staged for each in (() if manifest is None else manifest.files) if each.staged is not None)
    return awaited


class _RemoteFiles:
    """Temporary files below a folder of a filesystem that cannot publish in one step."""

    def __init__(self, tree: FsspecFileSystem, folder: str) -> None:
        self._tree, self._folder = tree, folder

    def find(self) -> Iterator[Leftover]:
        fs, shown = self._tree.fs, self._tree.shown(self._folder)
        entry = self._tree.entry(self._folder)
        if entry is None or not entry.directory:
            raise FileNotFoundError(2, "no such folder", shown)
        with told_as_os_error(shown):
            files = fs.find(self._folder, detail=True)
        for name, info in files.items():
            if _TEMPORARY.fullmatch(name.rpartition("/")[2]):
                yield Leftover(self._tree.shown(name), None, _time_of(info), info.get("size"), name)

    def remove(self, left: Leftover) -> None:
        with told_as_os_error(left.path):
            self._tree.fs.rm_file(left._name)


class _Uploads:
    """Unfinished multipart uploads of a bucket."""

    def __init__(self, tree: FsspecFileSystem, prefix: str) -> None:
        self._fs = tree.fs
        self._tree = tree
        self._bucket, self._prefix, _ = self._fs.split_path(prefix)

    def find(self) -> Iterator[Leftover]:
        markers: dict[str, Any] = {}
        while True:
            page = self._call("list_multipart_uploads", Prefix=self._prefix, **markers)
            for upload in page.get("Uploads", []):
                name = f"{self._bucket}/{upload['Key']}"
                size = self._size(upload["Key"], upload["UploadId"])
                yield Leftover(self._tree.shown(name), upload["UploadId"], upload.get("Initiated"), size, upload["Key"])
            if not page.get("IsTruncated"):
                return
            markers = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}

    def _size(self, key: str, upload: str) -> int | None:
        size = 0
        markers: dict[str, Any] = {}
        while True:
            try:
                page = self._call("list_parts", Key=key, UploadId=upload, **markers)
            except FileNotFoundError:
                return None  # it ended meanwhile
            size += sum(part["Size"] for part in page.get("Parts", []))
            if not page.get("IsTruncated"):
                return size
            markers = {"PartNumberMarker": page["NextPartNumberMarker"]}

    def remove(self, left: Leftover) -> None:
        try:
            self._call("abort_multipart_upload", Key=left._name, UploadId=left.upload)
        except FileNotFoundError:
            return  # it ended meanwhile

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        with told_as_os_error(f"s3://{self._bucket}"):
            answer: dict[str, Any] = self._fs.call_s3(method, Bucket=self._bucket, **arguments)
            return answer


def _time_of(info: Mapping[str, Any]) -> datetime | None:
    """When a file was last written, as its filesystem says it."""
    said = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(said, (int, float)):
        return datetime.fromtimestamp(said, UTC)
    if isinstance(said, datetime):
        return said if said.tzinfo else said.replace(tzinfo=UTC)
    return None
