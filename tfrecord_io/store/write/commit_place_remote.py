"""Shards of a dataset in a bucket; see `tfrecord_io.store.write.publication`.

What makes the replacement of the manifest one step:

- in S3 and Azure a conditional ``PUT``, ``If-Match`` the ETag that was read, ``If-None-Match: *`` for the first, and in
  Google Cloud Storage one with ``ifGenerationMatch``. Servers that ignore conditions are found by one that cannot hold;
- in all other stores, and on such servers, claims: a writer puts an object ``_APPEND-train/<id>.claim``, and goes on if
  it then finds no other. Of two writers at least one sees the claim of the other, as both put before they look. A
  claim that a killed writer left stops the others, with an error that names it, until it is removed.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from fsspec.asyn import AsyncFileSystem, sync

from tfrecord_io.base import MIB
from tfrecord_io.store.filesystem.azure import MISSING, MOST_DELETED, Blob, delete_blobs
from tfrecord_io.store.filesystem.google import rewrite
from tfrecord_io.store.filesystem.os_errors import raise_os_errors, request_async
from tfrecord_io.store.filesystem.remote import FsspecFileSystem, store_of, unwrap
from tfrecord_io.store.filesystem.retries import ARGUMENT_ERRORS, http_status, retry
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.paths.manifest_parts import PartGoneError, ask_again
from tfrecord_io.store.paths.path_search import list_directory
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.atomic_remote import UploadMemory, error_code, insert_object, open_remote
from tfrecord_io.store.write.commit_place import NextManifest, Place, version_of
from tfrecord_io.store.write.output_file import OutputFile

_PENDING_BYTES = 256 * MIB  # of parts, of all shards of a dataset; it has those that wait, too
_TRIES = 40  # of a claim
_PUTS = 200  # conditional ones that others precede
_LONGEST_PAUSE = 1.0  # seconds between two tries of a claim
_FIRST_PAUSE, _LONGEST_FIRST_PAUSE = 0.2, 3.0  # seconds, at most, after the first refusal of a conditional put
_REQUESTS_IN_PAUSE = 10  # that the first pause takes at most: shorter ones do not tell old writers from new ones
_PAUSE_FACTOR = 0.8  # from one pause to the next
_MOVES = 64  # shards that are copied or uploaded at a time: a request takes about as long as a few MiB
_LARGEST_COPY = 5 * 2**30  # bytes, of S3 by one request
_REFUSED = ("PreconditionFailed", "ConditionalRequestConflict", "412", "409")
_T = TypeVar("_T")


class RemotePlace(Place):
    """A bucket, or a folder of another filesystem of fsspec."""

    fs: FsspecFileSystem

    def __init__(self, fs: FsspecFileSystem, directory: str, name: str) -> None:
        super().__init__(fs, directory, name)
        self._is_object_store = isinstance(unwrap(fs.fsspec, "")[0], AsyncFileSystem)
        self.moves = _MOVES if self._is_object_store else 1
        self._memory = UploadMemory(_PENDING_BYTES)
        self._folders: set[str] = set()  # that exist

    def open(self, name: str, staged: str | None, models: Sequence[str], *, exclusive: bool = False) -> OutputFile:
        path, memory = self.fs.display_path(self.directory + name), self._memory
        stored = self.directory + (staged or name)
        self._make_folder(stored)
        return open_remote(self.fs, stored, exclusive=exclusive, path=path, looks=False, memory=memory)

    def _make_folder(self, name: str) -> None:
        if (folder := name.rpartition("/")[0]) not in self._folders:
            self.fs.make_directory(folder)
            self._folders.add(folder)

    def move(self, staged: str, name: str, *, size: int | None = None, version: str | None = None) -> bool:
        """Copy a shard within the store, in one atomic step; filesystems other than object stores rename it."""
        with raise_os_errors(self.fs.display_path(self.directory + name)):
            try:
                retry(lambda: self._copy(staged, name, size, version))
            except ARGUMENT_ERRORS:
                raise
            except Exception as error:  # of any library
                if (version is None or isinstance(error, FileNotFoundError)) and self._is_renamed(staged, name, size):
                    return True
                if version is None or not (_is_refused(error) or (version and isinstance(error, FileNotFoundError))):
                    raise
                return False
        return True

    def _is_renamed(self, staged: str, name: str, size: int | None) -> bool:
        """True if a shard has its final name: from before, by a request whose answer was lost, or by another writer.

        In an object store, whose copies keep the staged shard, only an id in the name shows that no other stored it.
        """
        if self._is_object_store and not ShardName.id_in(name):
            return False
        before, after = self.fs.entries([self.directory + staged, self.directory + name], are_files=True)
        return before is None and after is not None and after.size in (None, size)

    def _copy(self, staged: str, name: str, size: int | None, version: str | None) -> None:
        copy = self.fs.fsspec.cp_file if self._is_object_store else self.fs.move_file
        copy(f"{self.directory}{staged}", self.directory + name)

    def check(self, moved: Sequence[ManifestFile]) -> None:
        sizes = {entry.name: entry.size for entry in (list_directory(self.fs, self.directory) if moved else ())}
        for file in moved:
            if sizes.get(self.directory + file.path, -1) not in (None, file.bytes):
                text = "the copy of a staged shard is missing, or has another size; write the dataset again"
                raise OSError(errno.EIO, text, self.fs.display_path(self.directory + file.path))


class ClaimedPlace(RemotePlace):
    """In a filesystem without conditional writes and locks."""

    def __init__(self, fs: FsspecFileSystem, directory: str, name: str) -> None:
        super().__init__(fs, directory, name)
        self._stem = FileName.of_path(name).dataset or ""

    @contextmanager
    def _exclusion(self, required: bool) -> Iterator[bool]:
        claim = self._claim() if required else None  # one that was left must not stop who replaces the whole dataset
        try:
            yield required
        finally:
            if claim is not None:
                self.fs.remove(claim)

    def _write(self, manifest: Manifest) -> None:
        self._make_folder(self._name)
        with open_remote(self.fs, self._name, exclusive=False) as file:
            file.write(self.text_of(manifest))

    def _store_part(self, name: str, body: bytes) -> None:
        self._make_folder(self.directory + name)
        with open_remote(self.fs, self.directory + name, exclusive=False) as file:
            file.write(body)

    def _claim(self) -> str:
        """Put a claim, unless another writer has one."""
        name = self.directory + FileName.claim(self._stem, ShardName.new_id())
        folder, _, own_name = name.rpartition("/")
        fsspec, other_claims = self.fs.fsspec, []
        for attempt in range(_TRIES):
            with raise_os_errors(self.path):
                with suppress(FileExistsError):
                    fsspec.makedirs(folder, exist_ok=True)
                retry(lambda: fsspec.pipe_file(name, b""))
            try:
                other_claims = [entry for entry in self.fs.listing(folder) if entry.basename != own_name]
            except BaseException:
                self.fs.remove(name)
                raise
            if not other_claims:
                return name
            self.fs.remove(name)
            _pause(attempt)
        shown = self.fs.display_path(other_claims[0].name)
        text = f"another writer adds to this dataset; if it was killed, delete its claim, '{shown}' (tfr clean does so)"
        raise self._busy(text)


class ConditionalPlace(RemotePlace):
    """A place in a store with conditional writes: an object is replaced only in the version read before."""

    is_conditional = True
    _impossible: str  # a version that no object has
    _most_deleted: int  # objects by one request

    def __init__(self, fs: FsspecFileSystem, directory: str, name: str) -> None:
        super().__init__(fs, directory, name)
        self._inner, inner_name = unwrap(fs.fsspec, name)
        self._bucket, self._key, *_ = self._inner.split_path(inner_name)
        self._known: tuple[Manifest | None, str | None] | None = None  # what was read, and its version
        self._is_unanswered = False  # the last request to replace it, which may be carried out later

    def read(self) -> Manifest | None:
        response = self._try(self._get, self._key)
        self._known = (None, None) if response is None else (self._usable(response[0]), response[1])
        return self._known[0]

    def update(self, change: NextManifest, is_done: Callable[[Manifest], bool]) -> tuple[Manifest | None, Manifest]:
        unused: list[str] = []  # parts of manifests that were refused
        for attempt in range(_PUTS):
            last = [] if self._known is None else [self._known[0]]
            try:
                old, new, arranged = ask_again(self.read, partial(self._change, change), *last)
            except BaseException:
                self._remove_parts(unused)
                raise
            if arranged is None:
                self._remove_parts(unused)
                return old, new
            version, self._known = self._known_version, None
            try:
                text = self.text_of(new)
            except BaseException:
                self._remove_parts([*unused, *arranged.new])
                raise
            self._is_unanswered, begin = True, time.monotonic()
            stored = self._try(self._put, self._key, text, version)
            self._is_unanswered, request_seconds = False, time.monotonic() - begin
            if stored is not None:
                self._known = (new, stored) if stored else None
                self._inner.invalidate_cache(self._inner._parent(f"{self._bucket}/{self._key}"))
                self._remove_parts([*unused, *arranged.gone])
                return old, new
            # Before the next look, after which every moment lets others precede.
            _pause_after_refusal(attempt, request_seconds)
            # That of another writer, or of this one, if a response was lost.
            current, has_change = ask_again(self.read, lambda found: (found, found is not None and is_done(found)))
            if current is not None and has_change:
                return old, _confirmed(old, new, current)
            if self._known_version != version:  # else the request that was refused may still be under way
                used = set() if current is None else current.part_ids
                unused += [name for name in arranged.new if FileName.of_path(name).id not in used]
        self._remove_parts(unused)
        raise self._busy(f"other writers preceded this one {_PUTS} times")

    def end_request(self) -> bool:
        if not self._is_unanswered:
            return False
        self.takes_incomplete = True
        self._renew()
        return True

    @property
    def _known_version(self) -> str | None:
        return None if self._known is None else self._known[1]

    def _store_part(self, name: str, body: bytes) -> None:
        self._try(self._put, self._key_of(name), body, None)  # its name is new: a refusal says that it is there

    def expect_none(self) -> None:
        self._known = None, None

    def remove_many(self, names: Sequence[str]) -> Sequence[str]:
        """Remove many files a request; those for which that fails, or which are few, are left."""
        left: list[str] = []
        for first in range(0, len(names), self._most_deleted):
            keys = {self._key_of(name): name for name in names[first : first + self._most_deleted]}
            try:
                kept = sync(self._inner.loop, self._delete, list(keys)) if len(keys) > 1 else keys
            except Exception as error:  # of any library; the reason shows where each is removed by itself
                if isinstance(error, ARGUMENT_ERRORS):
                    raise
                kept = keys
            left += [keys[key] for key in kept]
        return left

    async def _delete(self, keys: Sequence[str]) -> Collection[str]:
        """Delete objects by one request; returns those that may be left."""
        raise NotImplementedError

    def _key_of(self, name: str) -> str:
        return self._key[: len(self._key) - len(self._name) + len(self.directory)] + name

    def remove(self, name: str, version: str | None = None) -> None:
        if version is None:
            super().remove(name)
            return
        self._remove_version(self._key_of(name), version)

    def withdraw(self) -> None:
        if self._found[0] is not None:
            self._remove_version(self._key, self._found[0])

    def _remove_version(self, key: str, version: str) -> bool:
        is_removed = self._try(self._delete_version, key, version)
        self._inner.invalidate_cache(self._inner._parent(f"{self._bucket}/{key}"))
        return bool(is_removed)

    async def _delete_version(self, key: str, version: str) -> bool:
        """Delete an object if its version is this one; an error is raised otherwise."""
        raise NotImplementedError

    def has_conditions(self) -> bool:
        """True if the server refuses a ``PUT`` whose condition does not hold; asked once for each bucket."""
        conditions = _CONDITIONS.setdefault(self._inner, {})
        if self._bucket not in conditions:
            key = f"{self._key.rpartition('/')[0]}/{FileName.condition(ShardName.new_id())}".lstrip("/")
            is_stored = self._try(self._put, key, b"{}", self._impossible) is not None
            if is_stored:
                with suppress(FileNotFoundError), raise_os_errors(self.path):
                    self._inner.rm_file(f"{self._bucket}/{key}")
            conditions[self._bucket] = not is_stored
        return conditions[self._bucket]

    async def _get(self, key: str) -> tuple[bytes, str]:
        """Content and version of an object."""
        raise NotImplementedError

    async def _put(self, key: str, body: bytes, version: str | None) -> str:
        """Write an object over this version only (None: over no object); returns the new version.

        If the answer does not tell the version, this returns "".
        """
        raise NotImplementedError

    def _try(self, request: Callable[..., Awaitable[_T]], *arguments: Any) -> _T | None:
        """Make a request, again after transient errors; None if the object does not exist, or is another version."""

        async def attempt() -> _T | None:
            try:
                return await request(*arguments)
            except FileNotFoundError:
                if arguments[-1] is None:  # not even its bucket exists
                    raise
            except Exception as error:  # of any library
                if isinstance(error, ARGUMENT_ERRORS) or not _is_refused(error):
                    raise
            return None

        return sync(self._inner.loop, request_async, attempt, self.path)


def _confirmed(old: Manifest | None, new: Manifest, current: Manifest) -> Manifest:
    """The manifest that is there, with the change of a request whose answer was lost.

    If parts by which it differs from the `old` one are gone by now, this is the `new` one as it was written.
    """
    with suppress(PartGoneError):
        if old is not None:
            old.paths_without(current)
        return current
    return new


def _is_refused(error: Exception) -> bool:
    """True if a condition did not hold; s3fs from 2026.9 on raises FileExistsError for refusals by `IfNoneMatch`."""
    return isinstance(error, FileExistsError) or error_code(error) in _REFUSED or http_status(error) in (409, 412)


_CONDITIONS: WeakKeyDictionary[Any, dict[str, bool]] = WeakKeyDictionary()  # by filesystem and bucket


class S3Place(ConditionalPlace):
    """In S3, and on servers that speak its protocol; a version is an ETag, which objects of equal contents share."""

    _impossible = '"00000000000000000000000000000000"'
    _most_deleted = 1000
    _fence: str | None = None  # the one that was put

    def fence(self, id: str) -> str:
        return FileName.fence(id)

    def put_fence(self, id: str) -> None:
        self._fence = FileName.fence(id)
        self._try(partial(self._call, "put_object", Body=self._fence.encode()), self._key_of(self._fence))

    def remove(self, name: str, version: str | None = None) -> None:
        """See `Place.remove`: a copy of the fence replaces the file, and is removed by its own ETag."""
        if version is None or self._fence is None:
            super().remove(name, version)
            return
        key, fence = self._key_of(name), self._fence
        copied = self._try(self._copy_object, self._key_of(fence), key, version)
        if not copied:  # perhaps it is a copy of the fence, made by a request whose answer was lost
            entry, content = self.fs.entry(self.directory + name, is_file=True), fence.encode()
            is_copy = entry is not None and entry.size == len(content) and self.fs.content(entry.name) == content
            # The ETag is looked up: where the server encrypts by a key of KMS, each copy has one of its own.
            copied = version_of(entry) if entry is not None and is_copy else None
        if copied is not None:
            self._remove_version(key, copied)
        elif self.fs.entry(self.directory + name, is_file=True) is not None:
            text = "another writer has written this dataset at the same time"
            raise OSError(errno.EBUSY, text, self.fs.display_path(self.directory + name))

    async def _get(self, key: str) -> tuple[bytes, str]:
        answer = await self._call("get_object", key)
        return await answer["Body"].read(), answer["ETag"]

    async def _put(self, key: str, body: bytes, version: str | None) -> str:
        answer = await self._call("put_object", key, Body=body, **_s3_condition(version))
        return str(answer.get("ETag") or "")

    def _copy(self, staged: str, name: str, size: int | None, version: str | None) -> None:
        """Copy a shard of a known size by one request: s3fs looks each up first.

        Clients and servers that know no condition of copies ignore it; copies of larger ones have none.
        """
        if size is None or size > _LARGEST_COPY:
            super()._copy(staged, name, size, None)
            return
        sync(self._inner.loop, self._copy_object, self._key_of(staged), self._key_of(name), version)

    async def _copy_object(self, source: str, target: str, version: str | None) -> str:
        condition = {} if version is None else _s3_condition(version)
        copied = {"Bucket": self._bucket, "Key": source}
        answer = await self._call("copy_object", target, CopySource=copied, **condition)
        return str(answer["CopyObjectResult"]["ETag"])

    async def _delete_version(self, key: str, version: str) -> bool:
        await self._call("delete_object", key, IfMatch=version)
        return True

    async def _delete(self, keys: Sequence[str]) -> Collection[str]:
        request = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
        answer = await self._inner._call_s3("delete_objects", self._inner.req_kw, Bucket=self._bucket, Delete=request)
        return [error["Key"] for error in answer.get("Errors", ())]

    async def _call(self, method: str, key: str, **arguments: Any) -> Any:
        return await self._inner._call_s3(method, self._inner.req_kw, Bucket=self._bucket, Key=key, **arguments)


def _s3_condition(version: str | None) -> dict[str, str]:
    return {"IfMatch": version} if version else {"IfNoneMatch": "*"}


class GcsPlace(ConditionalPlace):
    """In Google Cloud Storage; a version is a generation."""

    _impossible = "1"
    _most_deleted = 100

    async def _get(self, key: str) -> tuple[bytes, str]:
        headers, content = await self._inner._call("GET", "b/{}/o/{}", self._bucket, key, alt="media")
        return content, headers["x-goog-generation"]

    async def _put(self, key: str, body: bytes, version: str | None) -> str:
        answer = await insert_object(
            self._inner, self._bucket, key=key, body=body, generation=version or "0", kind="json"
        )
        return str(answer.get("generation") or "")

    def _copy(self, staged: str, name: str, size: int | None, version: str | None) -> None:
        source, target = (f"{self._bucket}/{self._key_of(shard)}" for shard in (staged, name))
        sync(self._inner.loop, rewrite, self._inner, source, target, "0" if version == "" else version)

    async def _delete_version(self, key: str, version: str) -> bool:
        await self._inner._call("DELETE", "b/{}/o/{}", self._bucket, key, ifGenerationMatch=version)
        return True

    async def _delete(self, keys: Sequence[str]) -> Collection[str]:
        paths = {f"{self._bucket}/{key}": key for key in keys}
        deleted = await self._inner._rm_files(list(paths))  # has errors instead of those that it could not delete
        return set(keys).difference(paths[path] for path in deleted if path in paths)


class AzurePlace(ConditionalPlace):
    """In Azure, which has conditions everywhere; a version is an ETag."""

    _most_deleted = MOST_DELETED

    def has_conditions(self) -> bool:
        return True

    def _blob(self, key: str) -> Blob:
        return Blob(self._inner, f"{self._bucket}/{key}", self.path)

    async def _get(self, key: str) -> tuple[bytes, str]:
        return await self._blob(key).read()

    async def _put(self, key: str, body: bytes, version: str | None) -> str:
        return await self._blob(key).put(body, version or MISSING)

    def _copy(self, staged: str, name: str, size: int | None, version: str | None) -> None:
        source, target = self._blob(self._key_of(staged)), self._blob(self._key_of(name))
        sync(self._inner.loop, source.copy_to, target, MISSING if version == "" else version)

    async def _delete_version(self, key: str, version: str) -> bool:
        await self._blob(key).delete(version)
        return True

    async def _delete(self, keys: Sequence[str]) -> Collection[str]:
        return await delete_blobs(self._inner, self._bucket, keys)


_CONDITIONAL: dict[str | None, type[ConditionalPlace]] = {"s3": S3Place, "gcs": GcsPlace, "azure": AzurePlace}


def remote_place(fs: FsspecFileSystem, directory: str, name: str) -> RemotePlace:
    """The directory of a dataset whose manifest has this name, and is replaced in the way that its store has."""
    inner = unwrap(fs.fsspec, name)[0]
    kind = _CONDITIONAL.get(store_of(inner))
    if kind is not None and isinstance(inner, AsyncFileSystem) and not inner.asynchronous:
        place = kind(fs, directory, name)
        if place.has_conditions():
            return place
    return ClaimedPlace(fs, directory, name)


def _pause(attempt: int) -> None:
    """Wait for about as long as other writers need, each for another time."""
    time.sleep(random.uniform(0, min(_LONGEST_PAUSE, 0.02 * 2**attempt)))


def _pause_after_refusal(attempt: int, request_seconds: float) -> None:
    """Wait, the shorter the more often this writer was refused, so that who has waited longest comes first.

    Of the writers that put the manifest at a time one succeeds, so that longer pauses would gain nothing: with those
    that grow, the unluckiest of 30 writers waits 30 times as long as most, with these 3 times. Where requests are slow,
    as with many writers, pauses are longer, or all writers would be as likely to succeed.
    """
    first = min(max(_FIRST_PAUSE, _REQUESTS_IN_PAUSE * request_seconds), _LONGEST_FIRST_PAUSE)
    time.sleep(random.uniform(0, first * _PAUSE_FACTOR**attempt))
