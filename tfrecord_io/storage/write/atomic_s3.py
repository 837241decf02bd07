"""Objects of S3, and what speaks its protocol, that are written whole or not at all.

s3fs uploads the parts of an object one after the other, each when the last has arrived; here several are under way. An
object of less than a part is one request.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from tfrecord_io.storage.filesystem.errors import ARGUMENTS, TRIES, may_pass, pauses, to_os_error, told_as_os_error
from tfrecord_io.storage.write.output_file import OutputFile, exists_error

T = TypeVar("T")

_PART_BYTES = 6 << 20
_FIXED_PART_BYTES = 64 << 20  # where all parts must have one size
_DOUBLED_AFTER = 1400  # parts: an upload has at most 10,000, an object several TiB
_MOST_BYTES = 64 << 20  # of parts under way and the one that is being filled
_PATIENCE = 0.05  # seconds for an upload's id to come, so that the upload can be ended


class S3Output(OutputFile):
    """A multipart upload whose parts travel side by side.

    Parameters
    ----------
    fs : s3fs.S3FileSystem
    name : str
        Bucket and key.
    shown : str
        For messages.
    exclusive : bool
        The server must refuse to replace an object; also one that came meanwhile.
    """

    def __init__(self, fs: Any, name: str, shown: str, exclusive: bool) -> None:
        super().__init__(shown)
        self._fs, self._name = fs, name
        bucket, key, _ = fs.split_path(name)
        self._object = {"Bucket": bucket, "Key": key}
        self._condition = {"IfNoneMatch": "*"} if exclusive else {}
        self._upload: str | None = None
        self._begun: Future[None] | None = None
        self._ended = False
        self._process = os.getpid()
        self._part = bytearray()  # that is being filled
        self._size = self._part_size(0)
        self._tags: dict[int, dict[str, Any]] = {}  # by number, of the parts that arrived
        self._numbers = 0
        self._under_way: deque[tuple[int, Future[None]]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()

    def _part_size(self, number: int) -> int:
        return (
            _FIXED_PART_BYTES
            if getattr(self._fs, "fixed_upload_size", False)
            else _PART_BYTES << (number // _DOUBLED_AFTER)
        )

    def _write(self, piece: memoryview) -> int:
        piece = piece[: self._size - len(self._part)]
        self._part += piece
        if len(self._part) == self._size:
            self._send_part()
        return len(piece)

    def _send_part(self) -> None:
        """Let the part travel; wait where too many do."""
        if self._upload is None:
            self._begun = self._start(self._begin())
            self._begun.result()
        number, part = self._numbers + 1, self._part
        self._numbers, self._part, self._size = number, bytearray(), self._part_size(number)
        self._under_way.append((len(part), self._start(self._noted(self._put_part(number, part)))))
        while self._under_way and sum(size for size, _ in self._under_way) + self._size > _MOST_BYTES:
            self._arrived()
        while self._under_way and self._under_way[0][1].done():
            self._arrived()

    async def _begin(self) -> None:
        self._upload = (await self._call("create_multipart_upload"))["UploadId"]
        if self._ended:  # while its id was on the way
            await self._abort()

    def _arrived(self) -> None:
        self._under_way.popleft()[1].result()

    async def _put_part(self, number: int, part: bytearray) -> None:
        answer = await self._call("upload_part", UploadId=self._upload, PartNumber=number, Body=part)
        self._tags[number] = {
            "PartNumber": number,
            **{k: v for k, v in answer.items() if k == "ETag" or k.startswith("Checksum")},
        }
        self._tags[number].pop("ChecksumType", None)

    def _finish(self) -> None:
        if self._upload is not None and self._part:
            self._send_part()
        while self._under_way:
            self._arrived()

    def _commit(self) -> None:
        self._finish()
        if self._condition and self._found() is not None:
            raise exists_error(self.path)  # servers that know no conditions ignore them
        try:
            if self._upload is None:
                self._ask("put_object", Body=self._part, **self._condition)
            else:
                parts = {"Parts": [self._tags[n] for n in sorted(self._tags)]}
                self._ask("complete_multipart_upload", UploadId=self._upload, MultipartUpload=parts, **self._condition)
        except OSError as error:
            if not self._is_there():
                raise self._worded(error) from error
        self._upload = None
        self._fs.invalidate_cache(self._name)

    def _worded(self, error: OSError) -> OSError:
        refused = isinstance(error, FileExistsError) or _code(error) in ("PreconditionFailed", "412")
        return exists_error(self.path) if self._condition and refused else error

    def _is_there(self) -> bool:
        """Whether the object is ours after all: an answer may be lost on its way, and a second try be refused for the first one's sake."""
        hashes = [str(self._tags[n]["ETag"]).strip('"') for n in sorted(self._tags)]
        try:
            if self._upload is None:
                expected = hashlib.md5(self._part, usedforsecurity=False).hexdigest()
            else:
                expected = f"{hashlib.md5(b''.join(map(bytes.fromhex, hashes)), usedforsecurity=False).hexdigest()}-{len(hashes)}"
            return self._found() == expected
        except (OSError, ValueError):  # hashes of another kind, or no answer
            return False

    def _found(self) -> str | None:
        """The hash of the object that is there."""
        try:
            return str(self._ask("head_object")["ETag"]).strip('"')
        except FileNotFoundError:
            return None

    def _discard(self) -> None:
        """End the upload by its id, so that no part of it is stored and paid for."""
        with told_as_os_error(self.path):
            self._start(self._end()).result()

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # a part that arrives after the end would stay
        self._ended = True
        if self._begun is not None and not self._begun.done():
            await asyncio.wait([asyncio.wrap_future(self._begun)], timeout=_PATIENCE)
        await self._abort()

    async def _abort(self) -> None:
        if self._upload is not None:
            upload, self._upload = self._upload, None
            with suppress(FileNotFoundError):  # it is no more: an answer was lost
                await self._call("abort_multipart_upload", UploadId=upload)

    def __del__(self) -> None:
        alive = getattr(self, "_upload", None) is not None and self._open and not sys.is_finalizing()
        if alive and self._process == os.getpid():  # not a fork's copy of us
            self._open = False
            self._start(
                self._end()
            )  # not waited for: the garbage collector may run anywhere, on fsspec's own thread as well

    # Requests ---------------------------------------------------------------------------------------------------

    def _ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Make a request and wait for its answer."""
        return self._start(self._noted(self._call(method, **arguments))).result()

    async def _noted(self, request: Coroutine[Any, Any, T]) -> T:
        """Let `_end` know of a request under way."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            return await request
        finally:
            self._tasks.discard(task)

    def _start(self, request: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(request, self._fs.loop)

    async def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        """Make a request, again if it failed by what may pass."""
        for pause in pauses():
            try:
                answer: dict[str, Any] = await self._fs._call_s3(method, self._fs.req_kw, **self._object, **arguments)
                return answer
            except ARGUMENTS:
                raise
            except Exception as error:  # of whatever library
                if pause is None or not may_pass(error):
                    raise to_os_error(error, self.path, f" (tried {TRIES} times)" if pause is None else "") from error
            await asyncio.sleep(pause)
        raise AssertionError("the last try returns or raises")


def _code(error: BaseException | None) -> str | None:
    """What S3 calls an error."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            code: str | None = response.get("Error", {}).get("Code")
            return code
        error = error.__cause__
    return None
