"""Requests to Azure that adlfs does not make: on conditions, of blocks, of many blobs.

Azure's own library makes a request again, at most three times, with pauses of about 15 s.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from tfrecord_io.store.filesystem.os_errors import azure_code, raise_os_errors, replaced_error
from tfrecord_io.store.filesystem.retries import http_status

MISSING = "*"  # instead of a version: no blob must have the name
MOST_DELETED = 256  # blobs in a request
_COPY_SECONDS = 0.5  # between two looks at a copy that the store has not made at once
_DELETED = (202, 404)


class Blob:
    """A blob by its name in a filesystem of adlfs; a version is its ETag. `path` is for messages."""

    def __init__(self, fs: Any, name: str, path: str) -> None:
        self._fs, self._path = fs, path
        self._container, self._key, self._version_id = fs.split_path(name)

    @property
    def _client(self) -> Any:
        return self._fs.service_client.get_blob_client(self._container, self._key)

    async def read(
        self, begin: int | None = None, end: int | None = None, version: str | None = None
    ) -> tuple[bytes, str]:
        """The bytes of a range, as they are stored, and the version. ReplacedError if it is not the one asked for."""
        part = {"offset": begin, "length": None if end is None else end - (begin or 0)}
        condition = {"version_id": self._version_id} if self._version_id else _condition(version)
        with raise_os_errors(self._path):
            try:
                stream = await self._client.download_blob(**part, max_concurrency=1, decompress=False, **condition)
                return bytes(await stream.readall()), str(stream.properties.etag)
            except Exception as error:  # of Azure's library, which is not imported here
                if azure_code(error) in ("ConditionNotMet", "InvalidRange"):
                    raise replaced_error(self._path) from error
                raise

    async def put(self, body: bytes, version: str | None = None) -> str:
        """Store a small blob, replacing this version or, with None, of any; returns its version."""
        condition = _condition(version)
        with raise_os_errors(self._path):
            answer = await self._client.upload_blob(body, overwrite=version != MISSING, max_concurrency=1, **condition)
            return str(answer["etag"])

    async def put_block(self, block: str, body: bytes | bytearray) -> None:
        """Store a block, which is not a part of the blob before `commit`."""
        with raise_os_errors(self._path):
            await self._client.stage_block(block, bytes(body), length=len(body))

    async def commit(self, blocks: Sequence[str], version: str | None = None) -> None:
        """Make the blob of blocks, replacing this version or, with None, of any."""
        from azure.storage.blob import BlobBlock

        with raise_os_errors(self._path):
            try:
                await self._client.commit_block_list([BlobBlock(block) for block in blocks], **_condition(version))
            except Exception as error:  # of Azure's library
                if azure_code(error) != "InvalidBlockList":
                    raise
                if version == MISSING and await self._client.exists():
                    raise FileExistsError(errno.EEXIST, "the blob exists", self._path) from error
                text = "another writer stored this blob meanwhile, and Azure dropped what was uploaded; write it again"
                raise OSError(errno.EBUSY, text, self._path) from error

    async def blocks(self) -> list[str]:
        """The blocks of which the blob was made."""
        with raise_os_errors(self._path):
            return [block.id for block in (await self._client.get_block_list("committed"))[0]]

    async def md5(self) -> bytes:
        """The hash that Azure computed of a small blob."""
        with raise_os_errors(self._path):
            return bytes((await self._client.get_blob_properties()).content_settings.content_md5 or b"")

    async def delete(self, version: str) -> None:
        """Delete the blob if its version is this one."""
        with raise_os_errors(self._path):
            await self._client.delete_blob(**_condition(version))

    async def copy_to(self, other: Blob, version: str | None = None) -> None:
        """Let the store copy the blob within its account, replacing this version or, with None, of any.

        A copy that is refused since one is under way, as a request whose answer was lost has begun it, ends after that.
        """
        with raise_os_errors(other._path):
            try:
                answer = await other._client.start_copy_from_url(self._client.url, **_condition(version))
            except Exception as error:  # of Azure's library
                if http_status(error) in (409, 412):
                    with suppress(FileNotFoundError), raise_os_errors(other._path):
                        await other._wait_for_copy(await other._copy_status())
                raise
            status = await other._wait_for_copy(answer["copy_status"])
        if status != "success":
            raise OSError(errno.EIO, f"the store did not copy a staged file: {status}", other._path)

    async def _wait_for_copy(self, status: str | None) -> str | None:
        """Wait as long as a copy to the blob is pending; returns its status."""
        while status == "pending":
            await asyncio.sleep(_COPY_SECONDS)
            status = await self._copy_status()
        return status

    async def _copy_status(self) -> str | None:
        """How far the copy to the blob is; None if it is not one."""
        status: str | None = (await self._client.get_blob_properties()).copy.status
        return status


async def delete_blobs(fs: Any, container: str, keys: Sequence[str]) -> list[str]:
    """Delete at most `MOST_DELETED` blobs by one request; returns those that were not deleted."""
    client = fs.service_client.get_container_client(container)
    answers = [answer.status_code async for answer in await client.delete_blobs(*keys, raise_on_any_failure=False)]
    answers += [0] * (len(keys) - len(answers))  # one, if the request as a whole was refused
    return [key for key, status in zip(keys, answers, strict=True) if status not in _DELETED]


def _condition(version: str | None) -> Mapping[str, Any]:
    from azure.core import MatchConditions

    if version is None:
        return {}
    if version == MISSING:
        return {"match_condition": MatchConditions.IfMissing}
    return {"match_condition": MatchConditions.IfNotModified, "etag": version}
