"""Range requests to an object, by the kind of filesystem, and how a replaced object is detected.

Requests run on fsspec's event loop, where they can be cancelled; a thread blocked in a call could not be.

Tests: tests/store/read/test_ranges_ahead.py and tests/store/copies/test_copy_files_stores.py.
"""

from __future__ import annotations

import asyncio
import errno
import os
import re
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import Future, wait
from contextlib import aclosing
from threading import Lock
from typing import Any, TypeVar

from fsspec import asyn
from fsspec.asyn import AsyncFileSystem, get_loop
from fsspec.implementations.arrow import ArrowFSWrapper

from tfrecord_io.base import Task
from tfrecord_io.store.filesystem import google
from tfrecord_io.store.filesystem.azure import Blob
from tfrecord_io.store.filesystem.os_errors import replaced_error, to_os_error
from tfrecord_io.store.filesystem.remote import store_of, unwrap
from tfrecord_io.store.filesystem.retries import ARGUMENT_ERRORS, is_transient, log_retry, note_retries, pauses

T = TypeVar("T")

_PIECE = 256 << 10  # bytes of a range that are used before all are there
_SPAN = re.compile(r"\s*bytes[\s=:]*([0-9]+)", re.IGNORECASE)  # of Content-Range; some servers write "="
_VERSION_KEYS = (
    *("ETag", "etag", "generation", "size", "mtime"),
    *("LastModified", "Last-Modified", "last_modified", "content_md5"),
)

if hasattr(os, "register_at_fork") and not hasattr(asyn, "reset_after_fork"):
    os.register_at_fork(after_in_child=asyn.reset_lock)  # a forked process lacks the thread of the event loop


def result_of(future: Future[T]) -> T:
    """The result of a request, once it is there; Ctrl-C ends the wait."""
    while not future.done():
        wait([future], timeout=Task.WAIT_SECONDS)
    return future.result()


async def receive(
    pieces: Callable[[int, int], AsyncGenerator[bytes]], begin: int, end: int, path: str
) -> AsyncGenerator[bytes]:
    """All bytes of a range, in the pieces in which they come; a retry continues after the bytes received.

    Raises
    ------
    OSError
        Behind the bytes that were received before it.
    """
    for pause in pauses():
        try:
            async with aclosing(pieces(begin, end)) as answer:
                async for data in answer:
                    if len(data) > end - begin:
                        raise OSError(errno.EIO, f"expected {end - begin} bytes, received {len(data)}")
                    begin += len(data)
                    yield data
            if begin == end:
                return
            error: Exception = OSError(errno.EIO, f"the server ended the body {end - begin} bytes early")
        except (RangesUnsupported, *ARGUMENT_ERRORS):
            raise
        except FileNotFoundError as caught:  # it is gone since it was looked up
            raise replaced_error(path) from caught
        except Exception as caught:  # of any library
            error = caught
            if not is_transient(error):
                raise to_os_error(error, path) from error
        if pause is None:
            raise to_os_error(error, path, retried=True) from error
        log_retry(error, pause, path)
        await asyncio.sleep(pause)


def check_version(known: Mapping[str, Any], now: Mapping[str, Any], path: str) -> None:
    """Raise ReplacedError if two descriptions by fsspec are of several versions of an object."""
    if any(known[key] != now[key] for key in _VERSION_KEYS if key in known and key in now):
        raise replaced_error(path)


class RangesUnsupported(Exception):
    """The server only sends whole objects."""


class RemoteObject:
    """Range requests to one object of any asynchronous fsspec filesystem.

    `info` is fsspec's description of the object, which identifies the version that is read; `path` is for messages.
    """

    arrives = False  # whether the bytes of a range can be used before all of them are there
    is_checked = False  # whether each answer states its version, which `read_range` compares

    def __init__(self, fs: Any, name: str, info: Mapping[str, Any], path: str) -> None:
        self._fs, self._name, self._info, self.path = fs, name, info, path

    def submit(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a request; its future can be cancelled."""
        return asyncio.run_coroutine_threadsafe(request, self._fs.loop)

    async def read_range(self, begin: int, end: int) -> bytes:
        """Bytes from `begin` to `end`; fewer if the connection ended early without an error."""
        return bytes(await self._fs._cat_file(self._name, start=begin, end=end))

    async def pieces(self, begin: int, end: int) -> AsyncGenerator[bytes]:
        """Bytes of a range in pieces as they arrive if `arrives`, else in one piece."""
        yield await self.read_range(begin, end)

    async def check_unchanged(self) -> None:
        """Raise OSError if several ranges may have come from several versions."""
        if self.is_checked:
            return
        self._fs.invalidate_cache(self._fs._parent(self._name))
        try:
            check_version(self._info, await self._fs._info(self._name), self.path)
        except FileNotFoundError as error:
            raise replaced_error(self.path) from error


class S3Object(RemoteObject):
    """S3 and compatible servers: each request names the version by its ETag."""

    arrives = is_checked = True

    async def read_range(self, begin: int, end: int) -> bytes:
        body = await self._body(begin, end)
        try:
            return bytes(await body.read())
        finally:
            body.close()

    async def pieces(self, begin: int, end: int) -> AsyncGenerator[bytes]:
        body = await self._body(begin, end)
        try:
            while data := await _read_piece(body):
                yield data
        finally:
            body.close()

    async def _body(self, begin: int, end: int) -> Any:
        """The body of the answer, which is of the version that was looked up."""
        bucket, key, version = self._fs.split_path(self._name)
        tag = self._info.get("ETag")
        # local_expiry_check is set for servers that do not support conditional requests
        conditional = tag and not getattr(self._fs, "local_expiry_check", False)
        condition = {"VersionId": version} if version else {"IfMatch": tag} if conditional else {}
        try:
            span = {"Bucket": bucket, "Key": key, "Range": f"bytes={begin}-{end - 1}"}
            answer = await self._fs._call_s3("get_object", self._fs.req_kw, **span, **condition)
            note_retries(answer)
        except OSError as error:
            code = (getattr(error.__cause__, "response", None) or {}).get("Error", {}).get("Code")
            if code in ("PreconditionFailed", "412", "InvalidRange", "416"):
                raise replaced_error(self.path) from error
            raise
        if tag and not version and answer.get("ETag", tag) != tag:
            answer["Body"].close()
            raise replaced_error(self.path)
        return answer["Body"]


async def _read_piece(body: Any) -> bytes:
    """The next bytes of a body: so many that handing them over costs little; fewer only at the end."""
    parts, size = [], 0
    while size < _PIECE and (data := await body.read(_PIECE - size)):
        parts.append(data)
        size += len(data)
    return b"".join(parts)


class GcsObject(RemoteObject):
    """Google Cloud Storage: each request names the generation."""

    async def read_range(self, begin: int, end: int) -> bytes:
        if begin == end:
            return b""
        return await google.read_range(
            self._fs, self._name, begin=begin, end=end, generation=self._info.get("generation")
        )


class AzureObject(RemoteObject):
    """Azure: each request names the version by its ETag."""

    is_checked = True

    async def read_range(self, begin: int, end: int) -> bytes:
        content, _ = await Blob(self._fs, self._name, self.path).read(begin, end, self._info.get("etag"))
        return content


class HttpObject(RemoteObject):
    """A web server: each response states which object its range is of."""

    is_checked = True

    async def read_range(self, begin: int, end: int) -> bytes:
        session = await self._fs.set_session()
        # "identity" keeps aiohttp from decompressing the content
        headers = {"Range": f"bytes={begin}-{end - 1}", "Accept-Encoding": "identity"}
        options = {**self._fs.kwargs, "headers": {**self._fs.kwargs.get("headers", {}), **headers}}
        async with session.get(self._fs.encode_url(self._name), **options) as answer:
            if answer.status in (404, 416):
                raise replaced_error(self.path)
            answer.raise_for_status()
            if answer.status != 206:
                raise RangesUnsupported
            span, _, total = answer.headers.get("Content-Range", "").rpartition("/")
            match = _SPAN.match(span)
            if match is None or int(match[1]) != begin:
                sent = "does not state which it sent" if match is None else f"answered with those from {match[1]}"
                raise OSError(errno.EIO, f"asked for the bytes from {begin}, the server {sent}")
            changed = total.isdigit() and int(total) != self._info["size"]
            for key in ("ETag", "Last-Modified"):
                changed |= key in self._info and answer.headers.get(key, self._info[key]) != self._info[key]
            if changed:
                raise replaced_error(self.path)
            return bytes(await answer.read())


class ArrowObject(RemoteObject):
    """A pyarrow filesystem, whose files can be read from several threads at once."""

    def __init__(self, fs: Any, name: str, info: Mapping[str, Any], path: str) -> None:
        super().__init__(fs, name, info, path)
        self._lock = Lock()
        self._file: Any = None

    def submit(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(request, get_loop())

    async def read_range(self, begin: int, end: int) -> bytes:
        return await asyncio.to_thread(self._read, begin, end)

    def _read(self, begin: int, end: int) -> bytes:
        with self._lock:
            if self._file is None:
                self._file = self._fs.fs.open_input_file(self._name)
        return bytes(self._file.read_at(end - begin, begin))

    async def check_unchanged(self) -> None:
        check_version(self._info, await asyncio.to_thread(self._fs.info, self._name), self.path)


_OF_STORES = {"s3": S3Object, "gcs": GcsObject, "azure": AzureObject, "web": HttpObject}


def open_object(fs: Any, name: str, info: Mapping[str, Any] | None, path: str) -> RemoteObject | None:
    """Prepare range requests to an object; None if the filesystem's own file object reads it better.

    That is the case for filesystems that handle one call at a time, caches of whole files, and objects of unknown size.
    """
    fs, name = unwrap(fs, name)
    if info is None or info.get("size") is None:
        return None
    if isinstance(fs, ArrowFSWrapper) and fs.fs.type_name != "local":
        return ArrowObject(fs, name, info, path)
    if not isinstance(fs, AsyncFileSystem) or fs.asynchronous or info.get("partial") is False:
        return None
    return _OF_STORES.get(store_of(fs) or "", RemoteObject)(fs, name, info, path)
