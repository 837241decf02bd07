"""Files of an fsspec filesystem that are written atomically.

s3fs uploads the parts of an object one after the other, and adlfs publishes what a failed writer had begun; here
several parts are under way at a time, and are an object only when the writer commits it. An object smaller than a part
is one request.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import json
import os
import sys
from abc import abstractmethod
from base64 import b64encode
from collections import deque
from collections.abc import Coroutine, Iterator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from io import UnsupportedOperation
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

from fsspec.asyn import AsyncFileSystem

from tfrecord_io.base import LIMITS, MIB, quiet_at_exit
from tfrecord_io.bytes import crc32c
from tfrecord_io.store.filesystem.azure import MISSING, Blob
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.os_errors import raise_os_errors, request_async
from tfrecord_io.store.filesystem.remote import FsspecFileSystem, store_of, unwrap
from tfrecord_io.store.filesystem.retries import note_retries
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.read.range_requests import result_of
from tfrecord_io.store.write.object_body import ObjectBody, send_at_once, sign_without_body
from tfrecord_io.store.write.output_file import OutputFile, accepted_bytes, exists_error

T = TypeVar("T")

_FIXED_PART_BYTES = 64 << 20  # for servers that need parts of equal size
_GCS_UNIT = 256 << 10  # blocks are multiples of it
_GCS_BLOCK = 32 * MIB  # an upload is one stream of blocks, each of which costs a round trip
_PENDING_BYTES = 64 * MIB  # of the parts under way and the one being filled
_LEAST_GCS_BLOCK = 8 << 20  # as each costs a round trip
_EXISTS = ("PreconditionFailed", "412", "ConditionalRequestConflict")
_NO_UPLOAD = "NoSuchUpload"
_NO_UPLOAD_TEXT = (
    "the store has no such upload: another program, or a rule of the bucket, aborted it, or it was completed and the "
    "response was lost; write again"
)
_ID_SECONDS = 0.05  # to wait for the id of an upload that is to be aborted
_STORED_SECONDS = 10.0  # to wait for a small object: it could be stored after it is removed
_WRITING = "tfrecord-io-writing"  # the name of an id in the metadata of an object in S3
_DOUBLED_AFTER = 1400  # parts; an upload has at most 10,000 parts, and an object several TiB


def open_remote(
    fs: FsspecFileSystem,
    name: str,
    *,
    exclusive: bool,
    path: str | None = None,
    looks: bool = True,
    resolved: Output | None = None,
    memory: UploadMemory | None = None,
) -> OutputFile:
    """Open a remote file, published by the commit of its object store, or by moving a temporary file.

    Messages name `path`, by default the file's own. Unless it `looks`, no file should have this name, and none is
    looked for: if it is `exclusive`, the server refuses to replace one. What has the name is known if its path was just
    `resolved`. Several files may share a `memory`.
    """
    path = fs.display_path(name) if path is None else path
    Location(fs, name).check_writable()
    entry = None if not looks else fs.entry(name) if resolved is None else resolved.entry
    if entry is not None and entry.directory:
        raise IsADirectoryError(errno.EISDIR, "a directory, not a file", path)
    if entry is not None and exclusive:
        raise exists_error(path)
    inner, inner_name = unwrap(fs.fsspec, name)
    store = store_of(inner) if isinstance(inner, AsyncFileSystem) and not inner.asynchronous else None
    output: OutputFile
    if store == "s3":
        output = S3Output(inner, inner_name, path=path, exclusive=exclusive, memory=memory, looks=looks)
    elif store == "gcs":
        output = GcsOutput(fs, name, path=path, exclusive=exclusive, memory=memory)
    elif store == "azure":
        output = AzureOutput(inner, inner_name, path=path, exclusive=exclusive, memory=memory)
    else:
        output = MovedOutput(fs, name, path, exclusive)
    output.replaces = entry is not None
    return output


def _as_stated(value: int) -> str:
    """A CRC32C as stores state it."""
    return b64encode(value.to_bytes(4, "big")).decode()


async def insert_object(
    fs: Any,
    bucket: str,
    key: str,
    body: bytes | bytearray,
    generation: str | None,
    kind: str = "octet-stream",
    **metadata: str,
) -> Any:
    """Store a small object in Google Cloud Storage, replacing this generation ("0": none) or, with None, of any.

    The store refuses it if its `metadata` has another ``crc32c``. The request of gcsfs ends the body by a bare newline:
    an object that ends with a carriage return may lose it.
    """
    line = f"{ShardName.new_id()}{ShardName.new_id()}"  # between the parts
    name = json.dumps({"name": key, **metadata})
    head = f"--{line}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n{name}\r\n"
    head += f"--{line}\r\nContent-Type: application/{kind}\r\n\r\n"
    asked: dict[str, Any] = {"uploadType": "multipart", "json_out": True}
    if generation is not None:
        asked["ifGenerationMatch"] = generation
    asked["headers"] = {"Content-Type": f'multipart/related; boundary="{line}"'}
    path = f"{fs._location}/upload/storage/v1/b/{quote(bucket)}/o"
    return await fs._call("POST", path, data=head.encode() + body + f"\r\n--{line}--".encode(), **asked)


class MovedOutput(OutputFile):
    """A file under a temporary name, moved to its final one."""

    def __init__(self, fs: FsspecFileSystem, name: str, path: str, exclusive: bool) -> None:
        super().__init__(path)
        self._fs, self._name, self._exclusive = fs, name, exclusive
        directory, slash, base = name.rpartition("/")
        self._temporary = directory + slash + FileName.temporary(base)
        self._file = fs.fsspec.open(self._temporary, "wb")

    def _write(self, piece: memoryview) -> int:
        return accepted_bytes(self._file.write(piece), piece)

    def _finish(self) -> None:
        self._file.close()

    def _commit(self) -> None:
        self._file.close()
        if self._exclusive and self._fs.entry(self._name) is not None:
            raise exists_error(self.path)  # these filesystems have no atomic "move unless it exists"
        self._fs.move_file(self._temporary, self._name)

    def _discard(self) -> None:
        try:
            self._file.close()
        finally:
            if self._fs.entry(self._temporary) is not None:
                self._fs.fsspec.rm_file(self._temporary)


class UploadMemory:
    """The memory that uploads to object stores take: of one file, or of all shards of a dataset.

    It has what is under way, and shards that are smaller than a part and wait for their `commit`, as one request then
    stores them. Where these become too many, they are sent as parts, which appear no earlier. One thread writes.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._sent: deque[tuple[int, Future[Any]]] = deque()
        self._waiting: dict[ObjectOutput, int] = {}

    def add(self, size: int, request: Future[Any]) -> None:
        """Count the bytes of a request until it is done."""
        self._sent.append((size, request))

    def keep(self, output: ObjectOutput, size: int) -> None:
        """Count the bytes of a complete file that waits."""
        self._waiting[output] = size
        self.make_room(0)

    def release(self, output: ObjectOutput) -> None:
        """Count a file no more, as it does not wait any longer."""
        self._waiting.pop(output, None)

    def make_room(self, size: int) -> None:
        """Wait until so many bytes can be added."""
        while True:
            while self._sent and self._sent[0][1].done():
                self._sent.popleft()
            sent, waiting = sum(size for size, _ in self._sent), sum(self._waiting.values())
            if sent + waiting + size <= self.most_bytes or not (self._sent or self._waiting):
                return
            if self._waiting and 4 * sent < self.most_bytes:  # enough under way to use a network
                output = next(iter(self._waiting))
                self.release(output)
                output.send_part()
            else:
                with suppress(Exception):  # whose file raises it
                    result_of(self._sent.popleft()[1])


class ObjectOutput(OutputFile):
    """An object, stored by one request if small, else sent in parts.

    If it is `exclusive`, the server must refuse to replace an object, even one created during the upload.
    """

    def __init__(self, fs: Any, name: str, path: str, exclusive: bool, memory: UploadMemory | None = None) -> None:
        super().__init__(path)
        self._fs, self._name, self._exclusive = fs, name, exclusive
        self._is_one_of_many = memory is not None
        self._memory = UploadMemory(_PENDING_BYTES) if memory is None else memory
        self._part = bytearray()  # being filled
        self._has_parts = False  # that were sent
        self._put: Future[Any] | None = None  # of an object without parts, if it has begun
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin_commit(self) -> None:
        """Begin to store an object without parts; `commit` ends what has parts."""
        self._check_open()
        self._memory.release(self)
        if not self._has_parts and not self._failed:
            self._put = self._submit(self._track(self._put_whole()))
            self._memory.add(len(self._part), self._put)

    def cancel(self) -> None:
        self._submit(self._cancel())

    def _commit(self) -> None:
        self._end_parts()
        self._memory.release(self)
        try:
            if self._has_parts:
                self._complete()
            else:
                result_of(self._put or self._submit(self._track(self._put_whole())))
        except OSError as error:
            if (failure := self._failure(error)) is error:
                raise
            if failure is not None:
                raise failure from error
        self._part = bytearray()
        for name in (self._name, self._fs._parent(self._name)):
            self._fs.invalidate_cache(name)

    def _failure(self, error: OSError) -> OSError | None:
        """The error to raise after a failed request to store the object; None if the object was stored nevertheless."""
        is_refused = self._exclusive and (isinstance(error, FileExistsError) or error_code(error) in _EXISTS)
        try:
            if self._was_stored(error):
                return None
        except FileNotFoundError:  # nor is another one there any more
            pass
        except OSError as unanswered:  # what is there may be this object, and must not pass for that of another writer
            return unanswered if is_refused else error
        return exists_error(self.path) if is_refused else error

    def _discard(self) -> None:
        self._memory.release(self)
        if self._put is not None and self._may_be_stored():
            wait([self._put], _STORED_SECONDS)
        with raise_os_errors(self.path):
            result_of(self._submit(self._cancel()))

    def _may_be_stored(self) -> bool:
        """True if all of an object without parts was sent."""
        return True

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _track(self, request: Coroutine[Any, Any, T]) -> T:
        """Run a request that `_cancel` can cancel."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await request
        finally:
            self._tasks.discard(task)

    def _submit(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(request, self._fs.loop)

    @abstractmethod
    def send_part(self) -> None:
        """Send what was written as a part."""

    def _end_parts(self) -> None:
        """Send the last part, if there are others, and wait for all."""

    # ---- requests, after which errors are OSError

    @abstractmethod
    async def _put_whole(self) -> None:
        """Store an object without parts."""

    @abstractmethod
    def _complete(self) -> None:
        """Make the parts an object."""

    @abstractmethod
    def _was_stored(self, error: OSError) -> bool:
        """True if the object was stored after all: when a response is lost, the retry is refused as the object exists.

        OSError if the store does not say so.
        """


class PartedOutput(ObjectOutput):
    """An object whose parts are sent by requests of their own, several of them under way at a time."""

    def __init__(self, fs: Any, name: str, path: str, exclusive: bool, memory: UploadMemory | None = None) -> None:
        super().__init__(fs, name, path=path, exclusive=exclusive, memory=memory)
        self._size = self._part_size(0)
        self._last_number = 0  # of a part
        self._pending: deque[Future[None]] = deque()

    def _part_size(self, number: int) -> int:
        fixed = getattr(self._fs, "fixed_upload_size", False)
        return _FIXED_PART_BYTES if fixed else LIMITS.s3_part_bytes << (number // _DOUBLED_AFTER)

    def _write(self, piece: memoryview) -> int:
        piece = piece[: self._size - len(self._part)]
        self._part += piece
        if len(self._part) == self._size:
            self.send_part()
            self._memory.make_room(self._size)
            while self._pending and self._pending[0].done():
                result_of(self._pending.popleft())
        return len(piece)

    def send_part(self) -> None:
        """Start uploading the part."""
        number, part = self._last_number + 1, self._part
        self._last_number, self._part, self._size = number, bytearray(), self._part_size(number)
        self._has_parts = True
        self._pending.append(self._submit(self._track(self._put_part(number, part))))
        self._memory.add(len(part), self._pending[-1])

    def _finish(self) -> None:
        if self._is_one_of_many and not self._has_parts:
            self._memory.keep(self, len(self._part))
        elif self._is_one_of_many and self._part:
            self.send_part()
        else:
            self._end_parts()

    def _end_parts(self) -> None:
        if self._has_parts and self._part:
            self.send_part()
        while self._pending:
            result_of(self._pending.popleft())

    def _complete(self) -> None:
        result_of(self._submit(self._track(self._complete_parts())))

    @abstractmethod
    async def _put_part(self, number: int, part: bytearray) -> None: ...

    @abstractmethod
    async def _complete_parts(self) -> None: ...


class S3Output(PartedOutput):
    """A multipart upload by s3fs.

    If it `looks`, an object that is not to be replaced is looked for, too, as there are servers that ignore conditions.
    """

    def __init__(
        self, fs: Any, name: str, path: str, exclusive: bool, memory: UploadMemory | None = None, *, looks: bool = True
    ) -> None:
        super().__init__(fs, name, path=path, exclusive=exclusive, memory=memory)
        self._looks = looks and exclusive
        bucket, key, _ = fs.split_path(name)
        self._object = {"Bucket": bucket, "Key": key}
        self._condition = {"IfNoneMatch": "*"} if exclusive else {}
        # Tells the object from others, which an ETag does not: those of equal contents may share one, or differ.
        self._metadata = {**fs.s3_additional_kwargs.get("Metadata", {}), _WRITING: ShardName.new_id()}
        self._upload_id: str | None = None
        self._creation: Future[None] | None = None
        self._aborted = False
        self._process = os.getpid()
        self._tags: dict[int, dict[str, Any]] = {}  # of the uploaded parts, by number
        self._body: ObjectBody | None = None  # of an object whose size is known

    def expect(self, size: int, crc32c: int | None) -> None:
        if 0 < size <= self._size and not self._looks:
            self._body = ObjectBody(size, self._fs.loop, crc32c)

    def _write(self, piece: memoryview) -> int:
        if self._body is None:
            return super()._write(piece)
        if self.offset + len(piece) > len(self._body):
            raise OSError(errno.EIO, f"more than the {len(self._body)} bytes that were expected", self.path)
        self._body.append(piece)
        if self._put is None and self._body.crc32c is not None:
            self._put = self._submit(self._track(self._put_whole()))  # while the content arrives
        return len(piece)

    def send_part(self) -> None:
        if self._creation is None:
            self._creation = self._submit(self._create())
        super().send_part()

    async def _create(self) -> None:
        checksum = {"ChecksumAlgorithm": "CRC32C"} if self.states_crc32c else {}
        answer = await self._call("create_multipart_upload", Metadata=self._metadata, **checksum)
        self._upload_id = answer["UploadId"]
        if self._aborted:  # before the id arrived
            await self._abort()

    async def _put_part(self, number: int, part: bytearray) -> None:
        assert self._creation is not None
        await asyncio.shield(asyncio.wrap_future(self._creation))
        body = ObjectBody.from_content(part, self._fs.loop) if self.states_crc32c else part
        answer = await self._send(
            "upload_part", body, UploadId=self._upload_id, PartNumber=number, **self._checksum_argument(part)
        )
        tags = {k: v for k, v in answer.items() if k == "ETag" or (k.startswith("Checksum") and k != "ChecksumType")}
        self._tags[number] = {"PartNumber": number, **tags}

    def _checksum_argument(self, data: bytearray | memoryview, known: int | None = None) -> dict[str, str]:
        """The checksum that the server compares with what arrives."""
        if not self.states_crc32c:
            return {}
        return {"ChecksumCRC32C": _as_stated(crc32c(data) if known is None else known)}

    async def _put_whole(self) -> None:
        body = self._part if self._body is None else self._body
        checksum = (
            self._checksum_argument(self._part)
            if self._body is None
            else self._checksum_argument(self._body.content, self._body.crc32c)
        )
        await self._send("put_object", body, Metadata=self._metadata, **self._condition, **checksum)

    async def _send(self, method: str, body: bytearray | ObjectBody, **arguments: Any) -> dict[str, Any]:
        """Make a request with a body."""
        if isinstance(body, ObjectBody):
            await self._fs.set_session()
            events = (await self._fs.get_s3(self._object["Bucket"])).meta.events
            events.register("before-sign.s3", sign_without_body, unique_id=sign_without_body.__name__)
            events.register("before-send.s3", send_at_once, unique_id=send_at_once.__name__)
        return await self._call(method, Body=body, **arguments)

    async def _complete_parts(self) -> None:
        upload = {
            "UploadId": self._upload_id,
            "MultipartUpload": {"Parts": [self._tags[n] for n in sorted(self._tags)]},
        }
        await self._call("complete_multipart_upload", **upload, **self._condition)

    def _commit(self) -> None:
        body = self._body
        if body is not None:
            if self.offset != len(body):
                raise OSError(errno.EIO, f"{self.offset} bytes instead of {len(body)}", self.path)
            body.complete()
        if body is not None and self._put is not None:  # a request that was begun before all was there
            try:
                result_of(self._put)
            except UnsupportedOperation:  # its signature needs all
                self._put = None
            except OSError:
                pass  # the commit raises it
        self._end_parts()
        if self._looks and self._stored_metadata() is not None:  # its server may ignore the condition
            raise exists_error(self.path)
        super()._commit()
        self._upload_id = self._body = None

    def _may_be_stored(self) -> bool:
        return self._body is None or self._body.is_complete

    def _was_stored(self, error: OSError) -> bool:
        stored = self._stored_metadata() or {}
        return self._metadata[_WRITING] in stored.values()  # servers write names in upper or lower case

    def _stored_metadata(self) -> dict[str, str] | None:
        """The metadata of the stored object; None if it does not exist."""
        try:
            answer = result_of(self._submit(self._track(self._call("head_object"))))
        except FileNotFoundError:
            return None
        return dict(answer.get("Metadata", {}))

    async def _cancel(self) -> None:
        """Abort the upload by its id, so that no parts stay stored and are charged for."""
        await super()._cancel()  # a part that arrives after the abort would stay
        self._aborted = True
        if self._creation is not None and not self._creation.done():
            await asyncio.wait([asyncio.wrap_future(self._creation)], timeout=_ID_SECONDS)
        await self._abort()

    async def _abort(self) -> None:
        if self._upload_id is not None:
            upload_id, self._upload_id = self._upload_id, None
            try:
                await self._call("abort_multipart_upload", UploadId=upload_id)
            except OSError as error:
                if error_code(error) != _NO_UPLOAD:  # which it is where it has been aborted: a response was lost
                    raise

    @quiet_at_exit
    def __del__(self) -> None:
        alive = getattr(self, "_upload_id", None) is not None and self.is_open and not sys.is_finalizing()
        if alive and self._process == os.getpid():  # not in a forked process
            self.is_open = False
            self._submit(self._cancel())  # not waited for: the garbage collector may run in fsspec's own thread

    async def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Make a request; repeat it after transient errors."""
        call = partial(self._fs._call_s3, method, self._fs.req_kw, **self._object, **arguments)
        try:
            answer: dict[str, Any] = await request_async(call, self.path)
        except FileNotFoundError as error:
            if error_code(error) != _NO_UPLOAD:
                raise
            raise OSError(errno.EIO, _NO_UPLOAD_TEXT, self.path) from error
        note_retries(answer)
        return answer


class GcsOutput(ObjectOutput):
    """An object in Google Cloud Storage, whose parts are an upload by gcsfs, block by block.

    fsspec publishes what was written even if such a file is closed by an exception or the garbage collector, unless it
    was opened with ``autocommit=False``; then it must be closed *and* committed.
    """

    def __init__(
        self, fs: FsspecFileSystem, name: str, path: str, exclusive: bool, memory: UploadMemory | None
    ) -> None:
        super().__init__(*unwrap(fs.fsspec, name), path, exclusive, memory)
        self._outer, self._outer_name, self._is_complete = fs, name, False
        self._file: Any = None  # the upload, once the object is too large for one request
        self._crc = 0  # of its bytes

    def send_part(self) -> None:
        """Begin an upload with what was written."""
        with raise_os_errors(self.path):
            mode = "xb" if self._exclusive else "wb"
            size = min(_GCS_BLOCK, max(self._memory.most_bytes, _LEAST_GCS_BLOCK) & -_GCS_UNIT)
            self._file = self._outer.fsspec.open(self._outer_name, mode, autocommit=False, block_size=size)
        part, self._part, self._has_parts = memoryview(self._part), bytearray(), True
        while len(part):
            part = part[self._upload(part) :]
        if self._is_complete:
            self._end_upload()

    def _upload(self, piece: memoryview) -> int:
        with raise_os_errors(self.path):
            count = accepted_bytes(self._file.write(piece), piece)
        if self.states_crc32c:
            self._crc = crc32c(piece[:count], self._crc)
        return count

    def _end_upload(self) -> None:
        with raise_os_errors(self.path):
            self._file.close()

    def _write(self, piece: memoryview) -> int:
        if self._has_parts:
            return self._upload(piece)
        self._part += piece
        if len(self._part) > LIMITS.s3_part_bytes:
            self.send_part()
        return len(piece)

    def _finish(self) -> None:
        self._is_complete = True
        if self._has_parts:
            self._end_upload()
        elif self._is_one_of_many:
            self._memory.keep(self, len(self._part))

    def begin_commit(self) -> None:
        """Begin to store a small object; an upload, whose last block is in memory, is published at once."""
        if self._has_parts:
            self.commit()
        else:
            super().begin_commit()

    async def _put_whole(self) -> None:
        with raise_os_errors(self.path):
            bucket, key, *_ = self._fs.split_path(self._name)
            is_zonal = getattr(self._fs, "_is_zonal_bucket", None)  # which takes no such request
            if is_zonal is not None and await is_zonal(bucket):
                mode = "create" if self._exclusive else "overwrite"
                await self._fs._pipe_file(self._name, bytes(self._part), mode=mode)
            else:
                checksum = {"crc32c": _as_stated(crc32c(self._part))} if self.states_crc32c else {}
                await insert_object(
                    self._fs, bucket, key=key, body=self._part, generation="0" if self._exclusive else None, **checksum
                )

    def _complete(self) -> None:
        self._end_upload()
        with raise_os_errors(self.path):
            self._file.commit()
        if self.states_crc32c:
            entry = self._outer.entry(self._outer_name, is_file=True)
            stored, own_crc = ({} if entry is None else entry.info or {}), _as_stated(self._crc)
            is_own = self._file.generation in (None, stored.get("generation"))  # and not that of another writer
            if is_own and stored.get("crc32c", own_crc) != own_crc:
                self._outer.remove(self._outer_name)
                reason = f"the store received other bytes: their CRC32C is {stored['crc32c']}, of those sent"
                raise OSError(errno.EIO, f"{reason} {own_crc}; the object was removed, write it again", self.path)
        self._forget()

    def _was_stored(self, error: OSError) -> bool:
        if self._has_parts or not isinstance(error, FileExistsError):
            return False
        entry = self._outer.entry(self._outer_name, is_file=True)
        own_md5 = b64encode(hashlib.md5(self._part, usedforsecurity=False).digest()).decode()
        return entry is not None and (entry.info or {}).get("md5Hash") == own_md5

    def _discard(self) -> None:
        try:
            super()._discard()
        finally:
            if self._file is not None:
                self._discard_upload()

    def _discard_upload(self) -> None:
        """Abort the upload by its id, so that no parts stay stored and are charged for."""
        try:
            with raise_os_errors(self.path):
                self._file.discard()
        finally:
            try:
                self._file.closed = True  # else its garbage collection starts the upload again
            except AttributeError:
                self._file.close()
            self._forget()

    def _forget(self) -> None:
        """Remove the file from the filesystem's list of uncommitted files, so that its memory is freed."""
        files = self._fs.transaction.files
        if self._file in files:
            files.remove(self._file)


class AzureOutput(PartedOutput):
    """A blob of Azure, from blocks if it is large: they are not a blob before a list of them is committed.

    Azure removes blocks that were not committed after a week.
    """

    def __init__(self, fs: Any, name: str, path: str, exclusive: bool, memory: UploadMemory | None = None) -> None:
        super().__init__(fs, name, path=path, exclusive=exclusive, memory=memory)
        self._blob = Blob(fs, name, path)
        self._blocks: dict[int, str] = {}  # ids, by number

    async def _put_part(self, number: int, part: bytearray) -> None:
        block = uuid4().hex  # as long as those of adlfs: all of a blob must be, also those that a killed writer left
        await self._blob.put_block(block, part)
        self._blocks[number] = block

    async def _put_whole(self) -> None:
        await self._blob.put(bytes(self._part), MISSING if self._exclusive else None)

    async def _complete_parts(self) -> None:
        await self._blob.commit(self._ids(), MISSING if self._exclusive else None)

    def _ids(self) -> list[str]:
        return [self._blocks[number] for number in sorted(self._blocks)]

    def _was_stored(self, error: OSError) -> bool:
        if self._has_parts:
            return result_of(self._submit(self._blob.blocks())) == self._ids()
        own_md5 = hashlib.md5(self._part, usedforsecurity=False).digest()
        return result_of(self._submit(self._blob.md5())) == own_md5


def error_code(error: BaseException | None) -> str | None:
    """The S3 error code of an exception."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            code: str | None = response.get("Error", {}).get("Code")
            return code
        error = error.__cause__
    return None


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that is neither completed nor aborted."""

    name: str  # of the object, in its filesystem
    id: str
    started: datetime | None
    _fs: Any

    def size(self) -> int | None:
        """The bytes of the parts that are stored; None if the upload ended in the meantime."""
        with suppress(FileNotFoundError):
            pages = _pages(self._fs, "list_parts", self.name, **self._identity)
            return sum(part["Size"] for page in pages for part in page.get("Parts", []))
        return None

    def abort(self) -> None:
        """Remove the parts that are stored."""
        with suppress(FileNotFoundError):
            _call_s3(self._fs, "abort_multipart_upload", self.name, **self._identity)

    @property
    def _identity(self) -> dict[str, str]:
        return {"Key": self._fs.split_path(self.name)[1], "UploadId": self.id}


def unfinished_uploads(fs: FsspecFileSystem, prefix: str) -> Iterator[Upload]:
    """The unfinished multipart uploads of objects whose names begin with `prefix`; none of a filesystem but S3."""
    inner, name = unwrap(fs.fsspec, prefix)
    if store_of(inner) != "s3":
        return
    bucket, key, _ = inner.split_path(name)
    key = f"{key}/" if key and prefix.endswith("/") and not key.endswith("/") else key  # older versions drop the "/"
    for page in _pages(inner, "list_multipart_uploads", bucket, Prefix=key):
        for entry in page.get("Uploads", []):
            yield Upload(f"{bucket}/{entry['Key']}", entry["UploadId"], entry.get("Initiated"), inner)


def _pages(fs: Any, method: str, name: str, **arguments: Any) -> Iterator[dict[str, Any]]:
    """The pages of a listing: the markers that each returns are arguments of the next request."""
    page = _call_s3(fs, method, name, **arguments)
    yield page
    while page.get("IsTruncated"):
        markers = {name.removeprefix("Next"): value for name, value in page.items() if name.startswith("Next")}
        page = _call_s3(fs, method, name, **arguments, **markers)
        yield page


def _call_s3(fs: Any, method: str, name: str, **arguments: Any) -> dict[str, Any]:
    bucket = name.partition("/")[0]
    with raise_os_errors(f"s3://{bucket}"):
        response: dict[str, Any] = fs.call_s3(method, Bucket=bucket, **arguments)
        return response
