"""How filesystems are asked for a range of an object, and how one notices that the object was replaced meanwhile.

Requests run on fsspec's own loop, where they are cancelled when nobody wants them any more; a thread that waits in a call
could not be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from concurrent.futures import Future
from threading import Lock
from typing import Any, TypeVar

from fsspec.asyn import AsyncFileSystem, get_loop
from fsspec.implementations.arrow import ArrowFSWrapper
from fsspec.implementations.dirfs import DirFileSystem

from tfrecord_io.storage.filesystem.errors import replaced
from tfrecord_io.storage.filesystem.local import protocols

T = TypeVar("T")

_VERSION_KEYS = (
    "ETag",
    "etag",
    "generation",
    "size",
    "mtime",
    "LastModified",
    "Last-Modified",
    "last_modified",
    "content_md5",
)


class NoRanges(Exception):
    """The server gives whole objects only."""


class Fetch:
    """Ranges of one object, by any asynchronous filesystem of fsspec.

    Parameters
    ----------
    fs : fsspec.asyn.AsyncFileSystem
    name : str
        The object's, in the filesystem.
    info : mapping
        What the filesystem says about it: the version that is read.
    path : str
        For messages.
    """

    def __init__(self, fs: Any, name: str, info: Mapping[str, Any], path: str) -> None:
        self._fs, self._name, self._info, self._path = fs, name, info, path

    def start(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        """Let a request run; its future can be cancelled."""
        return asyncio.run_coroutine_threadsafe(request, self._fs.loop)

    async def range(self, begin: int, end: int) -> bytes:
        """Bytes from `begin` to `end`; fewer where the connection was cut quietly."""
        data: bytes = await self._fs._cat_file(self._name, start=begin, end=end)
        return data

    async def check(self) -> None:
        """Raise OSError if several ranges may have come from several versions."""
        self._fs.invalidate_cache(self._fs._parent(self._name))
        self._compare(await self._fs._info(self._name))

    def _compare(self, now: Mapping[str, Any]) -> None:
        for key in _VERSION_KEYS:
            if key in self._info and key in now and self._info[key] != now[key]:
                raise replaced(self._path)


class S3Fetch(Fetch):
    """Of S3 and what speaks its protocol: each request names the version by its ETag."""

    async def range(self, begin: int, end: int) -> bytes:
        bucket, key, version = self._fs.split_path(self._name)
        tag = self._info.get("ETag")
        conditional = tag and not getattr(
            self._fs, "local_expiry_check", False
        )  # which is for servers without conditions
        asked = {"VersionId": version} if version else {"IfMatch": tag} if conditional else {}
        try:
            answer = await self._fs._call_s3(
                "get_object", self._fs.req_kw, Bucket=bucket, Key=key, Range=f"bytes={begin}-{end - 1}", **asked
            )
        except OSError as error:
            code = (getattr(error.__cause__, "response", None) or {}).get("Error", {}).get("Code")
            if code in ("PreconditionFailed", "412", "InvalidRange", "416"):
                raise replaced(self._path) from error
            raise
        try:
            if tag and not version and answer.get("ETag", tag) != tag:
                raise replaced(self._path)
            data: bytes = await answer["Body"].read()
            return data
        finally:
            answer["Body"].close()

    async def check(self) -> None:
        """Every request has."""


class GcsFetch(Fetch):
    """Of Google Cloud Storage: each request names the generation, as far as gcsfs passes it on; older ones do not."""

    async def range(self, begin: int, end: int) -> bytes:
        try:
            data: bytes = await self._fs._cat_file(
                self._name, start=begin, end=end, generation=self._info.get("generation")
            )
            return data
        except FileNotFoundError as error:
            raise replaced(self._path) from error


class HttpFetch(Fetch):
    """Of a web server: each answer says what it is a range of."""

    async def range(self, begin: int, end: int) -> bytes:
        session = await self._fs.set_session()
        headers = {
            "Range": f"bytes={begin}-{end - 1}",
            "Accept-Encoding": "identity",
        }  # aiohttp would undo a compression
        asked = {**self._fs.kwargs, "headers": {**self._fs.kwargs.get("headers", {}), **headers}}
        async with session.get(self._fs.encode_url(self._name), **asked) as answer:
            if answer.status == 404:
                raise replaced(self._path)
            answer.raise_for_status()
            if answer.status != 206:
                raise NoRanges
            total = answer.headers.get("Content-Range", "").rpartition("/")[2]
            changed = total.isdigit() and int(total) != self._info["size"]
            for key in ("ETag", "Last-Modified"):
                changed |= key in self._info and answer.headers.get(key, self._info[key]) != self._info[key]
            if changed:
                raise replaced(self._path)
            data: bytes = await answer.read()
            return data

    async def check(self) -> None:
        """Every answer was."""


class ArrowFetch(Fetch):
    """Of a filesystem of pyarrow, whose files may be read from several threads at once."""

    def __init__(self, fs: Any, name: str, info: Mapping[str, Any], path: str) -> None:
        super().__init__(fs, name, info, path)
        self._lock = Lock()
        self._file: Any = None

    def start(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(request, get_loop())

    async def range(self, begin: int, end: int) -> bytes:
        return await asyncio.to_thread(self._read, begin, end)

    def _read(self, begin: int, end: int) -> bytes:
        with self._lock:
            if self._file is None:
                self._file = self._fs.fs.open_input_file(self._name)
        data: bytes = self._file.read_at(end - begin, begin)
        return data

    async def check(self) -> None:
        self._compare(await asyncio.to_thread(self._fs.info, self._name))


_KINDS: dict[str, type[Fetch]] = {
    "s3": S3Fetch,
    "s3a": S3Fetch,
    "gs": GcsFetch,
    "gcs": GcsFetch,
    "http": HttpFetch,
    "https": HttpFetch,
}


def inner(fs: Any, name: str) -> tuple[Any, str]:
    """The filesystem below those that only put a directory in front of names."""
    while isinstance(fs, DirFileSystem):
        fs, name = fs.fs, fs._join(name)
    return fs, name


def fetch_of(fs: Any, name: str, info: Mapping[str, Any] | None, path: str) -> Fetch | None:
    """How to ask for ranges of an object; None where the filesystem's own file is what reads it best.

    That is: filesystems that answer one call at a time, caches of whole files, and objects of unknown size.
    """
    fs, name = inner(fs, name)
    if info is None or info.get("size") is None:
        return None
    if isinstance(fs, ArrowFSWrapper) and fs.fs.type_name != "local":
        return ArrowFetch(fs, name, info, path)
    if not isinstance(fs, AsyncFileSystem) or fs.asynchronous:
        return None
    if info.get("partial") is False:
        return None
    return next((_KINDS[p] for p in protocols(fs) if p in _KINDS), Fetch)(fs, name, info, path)
