"""The filesystem of Azure over a `Bucket`: adlfs and the requests of the package, of which Azure's client is replaced.

That client makes a request again by itself whose answer was lost, so that a condition may fail which held.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from typing import Any

from adlfs import AzureBlobFileSystem
from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceModifiedError, ResourceNotFoundError
from azure.storage.blob import BlobBlock, BlobProperties, ContainerProperties
from azure.storage.blob.aio import BlobPrefix
from bucket import READ_FAULTS, WRITE_FAULTS, Bucket, Object, Refused, is_manifest
from fsspec.asyn import AsyncFileSystem
from scheduler import running

_KINDS: dict[int, type[HttpResponseError]] = {
    404: ResourceNotFoundError,
    409: ResourceExistsError,
    412: ResourceModifiedError,
}


def _error(code: str, status: int) -> HttpResponseError:
    error = _KINDS.get(status, HttpResponseError)(code)
    error.error_code, error.status_code = code, status  # type: ignore[attr-defined]
    return error


_stripped = lru_cache(maxsize=4000)(AzureBlobFileSystem._strip_protocol)


class SimulatedAzure(AzureBlobFileSystem):  # type: ignore[misc]
    """adlfs, whose client is a `_Service`."""

    cachable = False

    def __init__(self, bucket: Bucket, loop: Any, *, keeps_listings: bool) -> None:
        AsyncFileSystem.__init__(self, loop=loop, skip_instance_cache=True, use_listings_cache=keeps_listings)
        self.simulated, self.service_client = bucket, _Service(self)
        self.version_aware, self.max_concurrency, self._timeout_kwargs = False, 1, dict[str, Any]()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:  # of adlfs, which parses the same paths again and again
        return _stripped(path) if isinstance(path, str) else super()._strip_protocol(path)


class _Client:
    def __init__(self, fs: SimulatedAzure, container: str, key: str = "") -> None:
        self._fs, self._container, self._key = fs, container, key

    async def __aenter__(self) -> _Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    @property
    def _bucket(self) -> Bucket:
        found: Bucket = self._fs.simulated
        return found

    def _made(self, text: str, call: Callable[[float], Any], *, changes: bool = False) -> Any:
        """Make a request, which is one step."""
        if (actor := running()) is None:
            return self._answer(call, 0.0)
        scheduler = actor[0]
        faults = WRITE_FAULTS if changes else READ_FAULTS
        fault = scheduler.point(f"{text} {self._key}", faults, commits=changes and is_manifest(self._key))
        if fault != "slow":
            answer = self._answer(call, scheduler.now)
            if fault != "slow+":
                return self._answer(call, scheduler.now) if fault == "timeout+" else answer
        raise _error("ServerBusy", 503)

    @staticmethod
    def _answer(call: Callable[[float], Any], now: float) -> Any:
        try:
            return call(now)
        except Refused as error:
            raise _error(error.code, error.status) from None

    def _properties(self, key: str, found: Object) -> BlobProperties:
        headers = {"ETag": f'"{found.generation}"', "Last-Modified": found.modified, "Content-Length": len(found.body)}
        properties = BlobProperties(name=key, metadata={}, **headers)
        properties.container = self._container
        properties.content_settings.content_md5 = hashlib.md5(found.body, usedforsecurity=False).digest()
        return properties


class _Blob(_Client):
    """The client of a blob; its version is a number, as an ETag of Azure says nothing of the content."""

    @property
    def url(self) -> str:
        return f"azure://{self._container}/{self._key}"

    def _get(self) -> Object:
        if self._key not in self._bucket.objects:
            raise Refused("BlobNotFound", 404)
        return self._bucket.get(self._key)

    def _check(self, match_condition: Any = None, etag: str = "", **_: Any) -> None:
        found = self._bucket.objects.get(self._key)
        if match_condition is MatchConditions.IfMissing and found is not None:
            raise Refused("BlobAlreadyExists", 409)
        if match_condition is MatchConditions.IfNotModified and (
            found is None or etag.strip('"') != str(found.generation)
        ):
            raise Refused("ConditionNotMet", 412)

    def _put(self, body: bytes, now: float) -> dict[str, Any]:
        self._bucket.blocks.pop(self._key, None)
        return {"etag": f'"{self._bucket.put(self._key, body, now).generation}"', "copy_status": "success"}

    async def upload_blob(self, data: Any, overwrite: bool = False, **condition: Any) -> dict[str, Any]:
        def put(now: float) -> dict[str, Any]:
            self._check(**({} if overwrite else {"match_condition": MatchConditions.IfMissing}), **condition)
            return self._put(bytes(data), now)

        if not overwrite:
            condition.pop("match_condition", None)
        return dict(self._made(f"put {condition.get('etag', '' if overwrite else '*')}", put, changes=True))

    async def stage_block(self, block_id: str, data: bytes, **_: Any) -> None:
        def put(now: float) -> None:
            self._bucket.blocks.setdefault(self._key, {})[block_id] = bytes(data)

        self._made("put block", put, changes=True)

    async def commit_block_list(self, block_list: list[BlobBlock], **condition: Any) -> dict[str, Any]:
        ids = [block.id for block in block_list]

        def commit(now: float) -> dict[str, Any]:
            self._check(**condition)
            found = self._bucket.objects.get(self._key)
            known = {**self._bucket.committed.get((self._key, found), {}), **self._bucket.blocks.get(self._key, {})}
            if not known.keys() >= set(ids):
                raise Refused("InvalidBlockList", 400)
            answer = self._put(b"".join(known[id] for id in ids), now)
            self._bucket.committed[self._key, self._get()] = {id: known[id] for id in ids}
            return answer

        return dict(self._made("commit blocks", commit, changes=True))

    async def get_block_list(self, kind: str) -> tuple[list[BlobBlock], list[BlobBlock]]:
        blocks = self._made("blocks", lambda now: self._bucket.committed.get((self._key, self._get()), {}))
        return [BlobBlock(id) for id in blocks], []

    async def get_blob_properties(self, **_: Any) -> BlobProperties:
        return self._properties(self._key, self._made("head", lambda now: self._get()))

    async def exists(self, **_: Any) -> bool:
        return bool(self._made("exists", lambda now: self._key in self._bucket.objects))

    async def download_blob(
        self, offset: int | None = None, length: int | None = None, etag: str = "", **more: Any
    ) -> _Download:
        def get(now: float) -> _Download:
            found = self._get()
            self._check(etag=etag, **more)
            if offset and offset >= len(found.body):
                raise Refused("InvalidRange", 416)
            end = None if length is None else (offset or 0) + length
            return _Download(found.body[offset or 0 : end], self._properties(self._key, found))

        answer: _Download = self._made(f"get {'' if offset is None else offset}", get)
        return answer

    async def delete_blob(self, **condition: Any) -> None:
        def delete(now: float) -> None:
            self._get()
            self._check(**condition)
            del self._bucket.objects[self._key]

        self._made(f"delete {condition.get('etag') or ''}", delete, changes=True)

    async def start_copy_from_url(self, url: str, **condition: Any) -> dict[str, Any]:
        source = _Blob(self._fs, self._container, url.removeprefix(f"azure://{self._container}/"))

        def copy(now: float) -> dict[str, Any]:
            body = source._get().body
            self._check(**condition)
            return self._put(body, now)

        return dict(self._made(f"copy {source._key} to {condition.get('etag', '')}", copy, changes=True))


class _Download:
    def __init__(self, body: bytes, properties: BlobProperties) -> None:
        self._body, self.properties = body, properties

    async def readall(self) -> bytes:
        return self._body


class _Container(_Client):
    def get_blob_client(self, blob: str) -> _Blob:
        return _Blob(self._fs, self._container, blob)

    async def download_blob(self, blob: str, **arguments: Any) -> _Download:
        return await self.get_blob_client(blob).download_blob(**arguments)

    async def delete_blob(self, blob: str, **_: Any) -> None:
        await self.get_blob_client(blob).delete_blob()

    async def delete_blobs(self, *keys: str, raise_on_any_failure: bool) -> AsyncIterator[_Status]:
        def delete(now: float) -> list[int]:
            return [404 if self._bucket.objects.pop(key, None) is None else 202 for key in keys]

        statuses = self._made(f"delete {keys}", delete, changes=True)

        async def answers() -> AsyncIterator[_Status]:
            for status in statuses:
                yield _Status(status)

        return answers()

    async def get_container_properties(self, **_: Any) -> ContainerProperties:
        properties = ContainerProperties()
        properties.name = self._container
        return properties

    def _pages(self, text: str, prefix: str, delimiter: str) -> Iterator[tuple[list[tuple[str, Object]], list[str]]]:
        """The pages of a listing, of which each is a request."""
        after: str | None = ""
        while after is not None:
            made = self._made(text, lambda now, after=after: self._bucket.page(prefix, delimiter, after))
            found, folders, following = made
            yield found, folders
            after = following or None

    async def list_blobs(self, name_starts_with: str = "", **_: Any) -> AsyncIterator[BlobProperties]:
        for found, _folders in self._pages(f"list {name_starts_with}", name_starts_with, ""):
            for key, each in found:
                yield self._properties(key, each)

    async def walk_blobs(self, name_starts_with: str = "", **_: Any) -> AsyncIterator[BlobProperties | BlobPrefix]:
        for found, folders in self._pages(f"list folder {name_starts_with}", name_starts_with, "/"):
            for folder in folders:
                yield _Folder(self, folder)
            for key, each in found:
                yield self._properties(key, each)


class _Folder(BlobPrefix):  # type: ignore[misc]
    def __init__(self, container: _Container, name: str) -> None:
        self._of, self.name, self.container = container, name, container._container

    def __aiter__(self) -> Any:
        return self._of.walk_blobs(self.name)


class _Status:
    def __init__(self, status: int) -> None:
        self.status_code = status


class _Service:
    """What adlfs calls of ``BlobServiceClient``."""

    def __init__(self, fs: SimulatedAzure) -> None:
        self._fs = fs

    def get_container_client(self, container: str) -> _Container:
        return _Container(self._fs, container)

    def get_blob_client(self, container: str, blob: str) -> _Blob:
        return _Blob(self._fs, container, blob)
