"""Find and remove what killed writers left behind: unfinished uploads and temporary files.

A writer that ends with an exception leaves nothing behind. A killed one cannot clean up: a bucket then stores, and
charges for, the parts of an upload that is never completed, and a folder keeps a hidden file. Uploads are aborted by
id.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.filesystem.errors import raise_os_errors
from tfrecord_io.storage.filesystem.locate import locate
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem, protocols
from tfrecord_io.storage.paths.manifest import STAGED, parse_manifest, stem_of
from tfrecord_io.storage.read.source import MAX_MANIFEST_BYTES

DAY = timedelta(days=1)

_TEMPORARY = re.compile(r"\..{0,32}\.[0-9a-f]{16}\.tmp", re.DOTALL)  # as storage.write names them
_OBJECT_STORES = {"s3", "s3a", "gs", "gcs", "http", "https"}  # atomic by themselves: without temporary files
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")


@dataclass(frozen=True, slots=True)
class Leftover:
    """A file or upload left behind.

    Attributes
    ----------
    path : str
        The file, or the object that the upload would have created.
    upload : str or None
        Id of an upload; None for a temporary file.
    started : datetime or None
        When it was begun or last written.
    bytes : int or None
        Its size, if known.
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
    """Find and optionally remove what killed writers left behind.

    Parameters
    ----------
    path : str or PathLike
        A folder, searched recursively; on S3, a bucket or a prefix of keys.
    remove : bool
        Whether to remove what was found.
    older_than : timedelta
        Minimum age: what is younger may belong to a running writer. S3 does not say which program began an upload, so
        all uploads below `path` are listed.
    storage_options, filesystem
        As in `tfrecord_io.read_table`.

    Returns
    -------
    list of Leftover
        Oldest first.

    Raises
    ------
    FileNotFoundError
        The folder or bucket does not exist.
    ValueError
        Writers leave nothing behind on this kind of storage, such as a web server. Google Cloud Storage neither lists
        unfinished uploads nor charges for them, and removes them after a week.

    Examples
    --------
    >>> import os, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> open(f"{folder}/.a.tfrecord.0123456789abcdef.tmp", "wb").close()
    >>> [os.path.basename(leftover.path) for leftover in clean(folder, older_than=timedelta(0))]
    ['.a.tfrecord.0123456789abcdef.tmp']
    """
    fs, name = locate(path, StorageOptions(storage_options, filesystem))
    store: _Uploads | _RemoteFiles | _LocalFiles
    if not isinstance(fs, FsspecFileSystem):
        store = _LocalFiles(name)
    elif {"s3", "s3a"} & set(protocols(fs.fsspec)):
        store = _Uploads(fs, name.rstrip("/") + "/" * os.fspath(path).endswith("/"))
    elif _OBJECT_STORES & set(protocols(fs.fsspec)):
        reason = "killed writers leave nothing behind on this kind of storage, or it removes that by itself"
        raise ValueError(f"'{os.fspath(path)}': {reason}")
    else:
        store = _RemoteFiles(fs, name)
    latest = datetime.now(UTC) - older_than
    leftovers = [leftover for leftover in store.find() if leftover.started is not None and leftover.started <= latest]
    leftovers.sort(key=lambda leftover: (leftover.started, leftover.path))
    if remove:
        for leftover in leftovers:
            store.remove(leftover)
    return leftovers


class _LocalFiles:
    """Temporary files below a folder, and shards that were written but not published."""

    def __init__(self, folder: str) -> None:
        self._folder = folder or "."

    def find(self) -> Iterator[Leftover]:
        os.stat(self._folder)  # os.walk ignores a missing folder
        for folder, _, names in os.walk(self._folder):
            unpublished = {name for name in names if STAGED.fullmatch(name)}
            if unpublished:
                unpublished -= _in_manifests(folder, names)
            for name in sorted({*filter(_TEMPORARY.fullmatch, names), *unpublished}):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                yield Leftover(path, None, datetime.fromtimestamp(status.st_mtime, UTC), status.st_size)

    def remove(self, leftover: Leftover) -> None:
        os.unlink(leftover.path)


def _in_manifests(folder: str, names: list[str]) -> set[str]:
    """Staged shards that a manifest lists: they are data of its dataset until the next writer renames them."""
    staged: set[str] = set()
    for name in names:
        if stem_of(name) is None:
            continue
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            manifest = parse_manifest(file.read(MAX_MANIFEST_BYTES + 1), path)
        staged.update(shard.staged for shard in (manifest.files if manifest else ()) if shard.staged is not None)
    return staged


class _RemoteFiles:
    """Temporary files below a folder of a remote filesystem whose writes are not atomic."""

    def __init__(self, fs: FsspecFileSystem, folder: str) -> None:
        self._fs, self._folder = fs, folder

    def find(self) -> Iterator[Leftover]:
        path = self._fs.display_path(self._folder)
        entry = self._fs.entry(self._folder)
        if entry is None or not entry.directory:
            raise FileNotFoundError(2, "no such folder", path)
        with raise_os_errors(path):
            files = self._fs.fsspec.find(self._folder, detail=True)
        for name, info in files.items():
            if _TEMPORARY.fullmatch(name.rpartition("/")[2]):
                yield Leftover(self._fs.display_path(name), None, _time_of(info), info.get("size"), name)

    def remove(self, leftover: Leftover) -> None:
        with raise_os_errors(leftover.path):
            self._fs.fsspec.rm_file(leftover._name)


class _Uploads:
    """Unfinished multipart uploads of a bucket."""

    def __init__(self, fs: FsspecFileSystem, prefix: str) -> None:
        self._fs = fs
        self._bucket, self._prefix, _ = fs.fsspec.split_path(prefix)

    def find(self) -> Iterator[Leftover]:
        for page in self._pages("list_multipart_uploads", Prefix=self._prefix):
            for upload in page.get("Uploads", []):
                key, id_ = upload["Key"], upload["UploadId"]
                path = self._fs.display_path(f"{self._bucket}/{key}")
                yield Leftover(path, id_, upload.get("Initiated"), self._size(key, id_), key)

    def _size(self, key: str, upload: str) -> int | None:
        try:
            pages = list(self._pages("list_parts", Key=key, UploadId=upload))
        except FileNotFoundError:
            return None  # the upload ended in the meantime
        return sum(part["Size"] for page in pages for part in page.get("Parts", []))

    def _pages(self, method: str, **arguments: Any) -> Iterator[dict[str, Any]]:
        """The pages of a listing: the markers that each returns are arguments of the next request."""
        page = self._call(method, **arguments)
        yield page
        while page.get("IsTruncated"):
            markers = {name.removeprefix("Next"): value for name, value in page.items() if name.startswith("Next")}
            page = self._call(method, **arguments, **markers)
            yield page

    def remove(self, leftover: Leftover) -> None:
        with suppress(FileNotFoundError):  # the upload ended in the meantime
            self._call("abort_multipart_upload", Key=leftover._name, UploadId=leftover.upload)

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        with raise_os_errors(f"s3://{self._bucket}"):
            response: dict[str, Any] = self._fs.fsspec.call_s3(method, Bucket=self._bucket, **arguments)
            return response


def _time_of(info: Mapping[str, Any]) -> datetime | None:
    """When a file was last written, from the entry of its filesystem."""
    time = next((info[key] for key in _TIMES if info.get(key) is not None), None)
    if isinstance(time, (int, float)):
        return datetime.fromtimestamp(time, UTC)
    if isinstance(time, datetime):
        return time if time.tzinfo else time.replace(tzinfo=UTC)
    return None
