"""A bucket in memory, and the filesystems of S3, Google Cloud Storage and a store without conditions over it.

The filesystems are those of s3fs and gcsfs, of which only the request to the server is replaced: what the package and
these libraries make of answers runs. Each request is one step, done at once, before or after which it can fail.
"""

from __future__ import annotations

import hashlib
import io
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType, SimpleNamespace
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from botocore.exceptions import ClientError
from fsspec.spec import AbstractFileSystem
from gcsfs.core import GCSFileSystem
from gcsfs.retry import validate_response
from s3fs.core import S3FileSystem
from s3fs.errors import translate_boto_error
from scheduler import Scheduler, running

from tfrecord_io.bytes.format.framing import crc32c

READ_FAULTS = ("timeout", "slow")
WRITE_FAULTS = ("timeout", "timeout+", "slow", "slow+")
"""``timeout`` is made again by who asked; of ``slow`` (503) a library has given up; ``+``: the server did it."""

NAME = "b"
PAGE = 5  # objects and folders in an answer about them, or in a part of a folder of a disk: 1,000 in S3
_NO_METADATA: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Object:
    """One version of an object."""

    body: bytes
    etag: str  # without quotes
    generation: int
    time: float
    metadata: Mapping[str, str] = field(hash=False)

    @property
    def modified(self) -> datetime:
        return datetime.fromtimestamp(int(self.time), UTC)  # stores state seconds


@dataclass(slots=True)
class Upload:
    """A multipart upload that is open."""

    key: str
    time: float
    metadata: Mapping[str, str]
    parts: dict[int, bytes] = field(default_factory=dict)


class Refused(Exception):
    """A request whose condition does not hold, or that names what does not exist."""

    def __init__(self, code: str, status: int, condition: str = "") -> None:
        super().__init__(code)
        self.code, self.status, self.condition = code, status, condition


class Bucket:
    """Objects by key, each replaced in one step.

    Attributes
    ----------
    encrypted : bool
        Each object has an ETag of its own, as where S3 encrypts by a key of KMS: else it is a hash of the content.
    """

    def __init__(self, *, encrypted: bool = False) -> None:
        self.encrypted = encrypted
        self.objects: dict[str, Object] = {}
        self.uploads: dict[str, Upload] = {}
        self.blocks: dict[str, dict[str, bytes]] = {}  # of Azure, by key: not committed
        self.committed: dict[tuple[str, Object | None], dict[str, bytes]] = {}  # of Azure, of a version
        self.number = 1_000

    def put(
        self, key: str, body: bytes, time: float, etag: str | None = None, metadata: Mapping[str, str] = _NO_METADATA
    ) -> Object:
        self.number += 1
        if etag is None or self.encrypted:
            hashed = b"%d" % self.number if self.encrypted else body
            etag = hashlib.md5(hashed, usedforsecurity=False).hexdigest()
        found = self.objects[key] = Object(body, etag, self.number, time, metadata)
        return found

    def get(self, key: str) -> Object:
        if (found := self.objects.get(key)) is None:
            raise Refused("NoSuchKey", 404)
        return found

    def check_generation(self, key: str, arguments: Mapping[str, Any]) -> None:
        wanted, found = arguments.get("ifGenerationMatch"), self.objects.get(key)
        if wanted is not None and int(wanted) != (0 if found is None else found.generation):
            raise Refused("conditionNotMet", 412)

    def listed(self, prefix: str, delimiter: str) -> tuple[list[tuple[str, Object]], list[str]]:
        """The objects below a prefix, in order, and the folders."""
        found, folders = [], dict[str, None]()
        for key in sorted(self.objects):
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in (rest := key[len(prefix) :]):
                folders[prefix + rest.partition(delimiter)[0] + delimiter] = None
            else:
                found.append((key, self.objects[key]))
        return found, list(folders)

    def page(
        self, prefix: str, delimiter: str, after: str = "", most: int = PAGE
    ) -> tuple[list[tuple[str, Object]], list[str], str]:
        """A page of objects and folders whose names are after another one; and its last name, or "" if it ends all."""
        objects, folders = self.listed(prefix, delimiter)
        found = dict(objects)
        names = [name for name in sorted([*found, *folders]) if name > after]
        page = names[: min(most, PAGE)]
        following = page[-1] if len(names) > len(page) else ""
        return [(name, found[name]) for name in page if name in found], [n for n in page if n not in found], following


def is_manifest(key: str) -> bool:
    """True if the object of this key is a manifest, by which a writer publishes."""
    return key.endswith(".json") and "/_MANIFEST" in key


@lru_cache(maxsize=2000)
def _crc32c(body: bytes) -> str:
    """The checksum of a body as stores state it."""
    return b64encode(crc32c(body).to_bytes(4, "big")).decode()


class _Body:
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def read(self, size: int | None = None) -> bytes:
        data, self._data = self._data[:size], b"" if size is None else self._data[size:]
        return data

    def close(self) -> None:
        pass


def _shown(method: str, arguments: Mapping[str, Any]) -> str:
    key = arguments.get("Key", arguments.get("Prefix", ""))
    conditions = {
        name: arguments[name] for name in ("IfMatch", "IfNoneMatch", "Range", "PartNumber") if name in arguments
    }
    more = "".join(f" {name}={value}" for name, value in conditions.items())
    if "CopySource" in arguments:
        more += f" from {arguments['CopySource']}"
    if "Delete" in arguments:
        more += f" {[each['Key'] for each in arguments['Delete']['Objects']]}"
    return f"{method} {key}{more}"


class SimulatedS3(S3FileSystem):  # type: ignore[misc]
    """s3fs, whose requests go to a `Bucket`."""

    cachable = False

    def __init__(self, bucket: Bucket, loop: Any, *, keeps_listings: bool) -> None:
        more = {"skip_instance_cache": True, "use_listings_cache": keeps_listings}
        super().__init__(anon=True, loop=loop, asynchronous=False, **more)
        self.simulated = bucket
        self.retries = 1

    async def set_session(self, refresh: bool = False, kwargs: Any = None) -> None:
        pass

    async def get_s3(self, bucket: str | None = None) -> Any:
        """A client whose events have no handlers."""
        return SimpleNamespace(meta=SimpleNamespace(events=SimpleNamespace(register=lambda *_, **__: None)))

    async def _call_s3(self, method: str, *akwarglist: Any, **kwargs: Any) -> Any:
        if hasattr(body := kwargs.get("Body"), "read"):
            kwargs["Body"] = body.read()  # to sign it: a request begins when all of it is there
            body.seek(0)
        arguments = {name: value for each in (*akwarglist, kwargs) for name, value in each.items()}
        actor = running()
        if actor is None:
            return self._answer(method, arguments, 0.0)
        scheduler = actor[0]
        faults = WRITE_FAULTS if _METHODS[method] else READ_FAULTS
        text = _shown(method, arguments) if scheduler.trace is not None else method
        fault = scheduler.point(text, faults, commits=method == "put_object" and is_manifest(arguments["Key"]))
        if fault and not fault.endswith("+"):
            raise _s3_fault(fault, method)
        answer = self._answer(method, arguments, scheduler.now)
        if fault:
            raise _s3_fault(fault, method)
        return answer

    call_s3 = None  # set below

    def _answer(self, method: str, arguments: dict[str, Any], now: float) -> Any:
        try:
            return getattr(self, f"_on_{method}")(now=now, **arguments)
        except Refused as error:
            shown = {"Code": error.code, "Message": error.code}
            if error.condition:
                shown["Condition"] = error.condition
            answer = {"Error": shown, "ResponseMetadata": {"HTTPStatusCode": error.status, "RetryAttempts": 0}}
            raise translate_boto_error(ClientError(answer, method))  # noqa: B904 — it has set the cause

    def _on_head_bucket(self, **_: Any) -> dict[str, Any]:
        return {}

    def _on_head_object(self, Key: str, **_: Any) -> dict[str, Any]:
        if Key not in self.simulated.objects:
            raise Refused("404", 404)
        found = self.simulated.get(Key)
        return {
            "ETag": f'"{found.etag}"',
            "LastModified": found.modified,
            "ContentLength": len(found.body),
            "Metadata": dict(found.metadata),
        }

    def _on_get_object(self, Key: str, Range: str = "", IfMatch: str = "", **_: Any) -> dict[str, Any]:
        found = self.simulated.get(Key)
        if IfMatch and IfMatch.strip('"') != found.etag:
            raise Refused("PreconditionFailed", 412, "If-Match")
        body = found.body
        if Range:
            first, _, last = Range.removeprefix("bytes=").partition("-")
            begin, end = (len(body) - int(last), len(body)) if not first else (int(first), int(last or len(body)) + 1)
            if begin >= len(body):
                raise Refused("InvalidRange", 416)
            body = body[begin:end]
        return {
            "ETag": f'"{found.etag}"',
            "Body": _Body(body),
            "ContentLength": len(body),
            "LastModified": found.modified,
        }

    def _check(self, key: str, if_match: str | None, if_none_match: str | None) -> None:
        found = self.simulated.objects.get(key)
        if if_none_match and found is not None:
            raise Refused("PreconditionFailed", 412, "If-None-Match")
        if if_match and found is None:
            raise Refused("NoSuchKey", 404)
        if if_match and found is not None and found.etag != if_match.strip('"'):
            raise Refused("PreconditionFailed", 412, "If-Match")

    def _on_put_object(
        self,
        Key: str,
        now: float,
        Body: Any = b"",
        IfMatch: str | None = None,
        IfNoneMatch: str | None = None,
        Metadata: Mapping[str, str] = _NO_METADATA,
        **_: Any,
    ) -> dict[str, Any]:
        self._check(Key, IfMatch, IfNoneMatch)
        return {"ETag": f'"{self.simulated.put(Key, bytes(Body), now, metadata=Metadata).etag}"'}

    def _on_copy_object(
        self,
        Key: str,
        CopySource: Any,
        now: float,
        IfMatch: str | None = None,
        IfNoneMatch: str | None = None,
        CopySourceIfMatch: str = "",
        **more: Any,
    ) -> dict[str, Any]:
        source = CopySource["Key"] if isinstance(CopySource, dict) else CopySource.partition("/")[2]
        found = self.simulated.get(source)
        if CopySourceIfMatch and CopySourceIfMatch.strip('"') != found.etag:
            raise Refused("PreconditionFailed", 412, "x-amz-copy-source-If-Match")
        self._check(Key, IfMatch, IfNoneMatch)
        stored = self.simulated.put(Key, found.body, now, found.etag, found.metadata)
        checksum = {"ChecksumCRC32C": _crc32c(found.body)} if "ChecksumAlgorithm" in more else {}
        return {"CopyObjectResult": {"ETag": f'"{stored.etag}"', **checksum}}

    def _on_delete_object(self, Key: str, IfMatch: str | None = None, **_: Any) -> dict[str, Any]:
        self._check(Key, IfMatch, None)
        self.simulated.objects.pop(Key, None)
        return {}

    def _on_delete_objects(self, Delete: Any, **_: Any) -> dict[str, Any]:
        for each in Delete["Objects"]:
            self.simulated.objects.pop(each["Key"], None)
        return {}

    def _on_list_objects_v2(
        self, Prefix: str = "", Delimiter: str = "", MaxKeys: int = PAGE, ContinuationToken: str = "", **_: Any
    ) -> dict[str, Any]:
        objects, folders, following = self.simulated.page(Prefix, Delimiter, ContinuationToken, MaxKeys)
        contents = [
            {"Key": key, "Size": len(each.body), "ETag": f'"{each.etag}"', "LastModified": each.modified}
            for key, each in objects
        ]
        return {
            "Contents": contents,
            "CommonPrefixes": [{"Prefix": name} for name in folders],
            "KeyCount": len(objects) + len(folders),
            "IsTruncated": bool(following),
            **({"NextContinuationToken": following} if following else {}),
        }

    def _on_create_multipart_upload(
        self, Key: str, now: float, Metadata: Mapping[str, str] = _NO_METADATA, **_: Any
    ) -> dict[str, Any]:
        self.simulated.number += 1
        id = f"upload-{self.simulated.number}"
        self.simulated.uploads[id] = Upload(Key, now, Metadata)
        return {"UploadId": id}

    def _upload(self, id: str) -> Upload:
        if (upload := self.simulated.uploads.get(id)) is None:
            raise Refused("NoSuchUpload", 404)
        return upload

    def _on_upload_part(self, UploadId: str, PartNumber: int, Body: Any, **_: Any) -> dict[str, Any]:
        self._upload(UploadId).parts[PartNumber] = bytes(Body)
        return {"ETag": f'"{hashlib.md5(bytes(Body), usedforsecurity=False).hexdigest()}"'}

    def _on_complete_multipart_upload(
        self, Key: str, UploadId: str, MultipartUpload: Any, now: float, IfNoneMatch: str | None = None, **_: Any
    ) -> dict[str, Any]:
        self._check(Key, None, IfNoneMatch)
        upload = self._upload(UploadId)
        bodies = [upload.parts[part["PartNumber"]] for part in MultipartUpload["Parts"]]
        digests = b"".join(hashlib.md5(body, usedforsecurity=False).digest() for body in bodies)
        etag = f"{hashlib.md5(digests, usedforsecurity=False).hexdigest()}-{len(bodies)}"
        del self.simulated.uploads[UploadId]
        stored = self.simulated.put(Key, b"".join(bodies), now, etag, upload.metadata)
        return {"ETag": f'"{stored.etag}"'}

    def _on_abort_multipart_upload(self, UploadId: str, **_: Any) -> dict[str, Any]:
        self._upload(UploadId)
        del self.simulated.uploads[UploadId]
        return {}

    def _on_list_multipart_uploads(self, Prefix: str = "", **_: Any) -> dict[str, Any]:
        found = [
            {"Key": upload.key, "UploadId": id, "Initiated": datetime.fromtimestamp(upload.time, UTC)}
            for id, upload in self.simulated.uploads.items()
            if upload.key.startswith(Prefix)
        ]
        return {"Uploads": found}

    def _on_list_parts(self, UploadId: str, **_: Any) -> dict[str, Any]:
        parts = self._upload(UploadId).parts
        return {"Parts": [{"PartNumber": number, "Size": len(body)} for number, body in parts.items()]}


def _call(fs: SimulatedS3, method: str, *lists: Any, **keywords: Any) -> Any:
    return fs.loop.result(fs._call_s3(method, *lists, **keywords))


SimulatedS3.call_s3 = _call  # type: ignore[assignment]

_METHODS = {  # whether it changes something
    **dict.fromkeys(("head_bucket", "head_object", "get_object", "list_objects_v2"), False),
    **dict.fromkeys(("list_multipart_uploads", "list_parts"), False),
    **dict.fromkeys(("put_object", "copy_object", "delete_object", "delete_objects"), True),
    **dict.fromkeys(("create_multipart_upload", "upload_part"), True),
    **dict.fromkeys(("complete_multipart_upload", "abort_multipart_upload"), True),
}


def _s3_fault(fault: str, method: str) -> Exception:
    if fault.startswith("timeout"):
        return ConnectionResetError(104, "Connection reset by peer")
    shown = {"Code": "SlowDown", "Message": "Please reduce your request rate."}
    answer = {"Error": shown, "ResponseMetadata": {"HTTPStatusCode": 503, "RetryAttempts": 5}}
    return translate_boto_error(ClientError(answer, method))


class SimulatedGcs(GCSFileSystem):  # type: ignore[misc]
    """gcsfs, whose requests go to a `Bucket`. What it makes again by itself is not made again here."""

    cachable = False

    def __init__(self, bucket: Bucket, loop: Any, *, keeps_listings: bool) -> None:
        more = {"skip_instance_cache": True, "use_listings_cache": keeps_listings}
        super().__init__(token="anon", loop=loop, asynchronous=False, **more)
        self.simulated = bucket

    async def _request(
        self, method: str, path: str, *args: Any, headers: Any = None, json: Any = None, data: Any = None, **kwargs: Any
    ) -> Any:
        arguments = {name: value for name, value in kwargs.items() if value is not None}
        if "/download/" in path:
            url = urlsplit(path)
            arguments |= dict(parse_qsl(url.query))
            path, args = "b/{}/o/{}", tuple(map(unquote, url.path.partition("/b/")[2].split("/o/", 1)))
        actor = running()
        scheduler: Scheduler | None = None if actor is None else actor[0]
        now, fault = 0.0, ""
        if scheduler is not None:
            now = scheduler.now
            shown = (
                f"{method} {path.format(*args) if args else path} {arguments}"
                if scheduler.trace is not None
                else method
            )
            commits = method == "POST" and data is not None and is_manifest(_posted_name(data))
            fault = scheduler.point(shown, READ_FAULTS if method == "GET" else WRITE_FAULTS, commits=commits)
            if fault and not fault.endswith("+"):
                raise _gcs_fault(fault)
        try:
            answer, content = self._answered(method, path, args, arguments, data, now)
        except Refused as error:
            validate_response(error.status, b"{}", path, args)
            raise
        if fault:
            raise _gcs_fault(fault)
        if asked := (headers or {}).get("Range"):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            content = content[int(first) : int(last) + 1]
        return 200, answer, None, content

    def _answered(
        self, method: str, path: str, args: tuple[str, ...], arguments: dict[str, Any], data: Any, now: float
    ) -> tuple[dict[str, str], bytes]:
        bucket = self.simulated
        if path.endswith("/o") and method == "POST":
            key, rest = _posted_name(data), bytes(data).split(b"\r\n\r\n", 2)[2]
            body = rest.rpartition(b"\r\n--")[0]
            bucket.check_generation(key, arguments)
            return {}, self._shown(key, bucket.put(key, body, now))
        if "rewriteTo" in path:
            found = bucket.get(args[1])
            bucket.check_generation(args[3], arguments)
            if int(arguments.get("sourceGeneration") or found.generation) != found.generation:
                raise Refused("notFound", 404)
            return {}, json.dumps(
                {"done": True, "resource": json.loads(self._shown(args[3], bucket.put(args[3], found.body, now)))}
            ).encode()
        if path == "b/{}/o/{}":
            key = args[1]
            if method == "DELETE":
                bucket.get(key)
                bucket.check_generation(key, arguments)
                del bucket.objects[key]
                return {}, b""
            found = bucket.get(key)
            generation = arguments.get("generation")
            if generation and int(generation) != found.generation:
                raise Refused("notFound", 404)
            if arguments.get("alt") != "media":
                return {}, self._shown(key, found)
            return {"x-goog-generation": str(found.generation)}, found.body
        if path == "b/{}/o":
            asked = [arguments.get(name) or "" for name in ("prefix", "delimiter", "pageToken")]
            objects, folders, following = bucket.page(*asked, int(arguments.get("maxResults") or PAGE))
            items = [json.loads(self._shown(key, each)) for key, each in objects]
            answer = {"kind": "storage#objects", "items": items, "prefixes": folders}
            return {}, json.dumps(answer | ({"nextPageToken": following} if following else {})).encode()
        raise NotImplementedError(f"{method} {path} {args}")

    async def _cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> bytes:
        bucket, key, _ = self.split_path(path)
        _, content = await self._call("GET", "b/{}/o/{}", bucket, key, alt="media", generation=kwargs.get("generation"))
        return bytes(content[start:end])

    async def _rm_files(self, paths: list[str]) -> list[str]:
        for path in paths:
            await self._call("DELETE", "b/{}/o/{}", *self.split_path(path)[:2])
        return paths

    @staticmethod
    def _shown(key: str, found: Object) -> bytes:
        digest = hashlib.md5(found.body, usedforsecurity=False).digest()
        at = datetime.fromtimestamp(found.time, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        shown = {"name": key, "size": str(len(found.body)), "generation": str(found.generation), "updated": at}
        shown |= {"timeCreated": at, "md5Hash": b64encode(digest).decode(), "crc32c": _crc32c(found.body)}
        return json.dumps(shown).encode()


def _posted_name(data: bytes) -> str:
    """The key of an object that is stored by a request in parts, of which the first describes it."""
    described = bytes(data).split(b"\r\n\r\n", 2)[1].partition(b"\r\n--")[0]
    return str(json.loads(described)["name"])


def _gcs_fault(fault: str) -> Exception:
    if fault.startswith("timeout"):
        return ConnectionResetError(104, "Connection reset by peer")
    return PermissionError(13, "the server gave up")  # not made again, whatever it was


class PlainStore(AbstractFileSystem):  # type: ignore[misc]
    """A filesystem of fsspec with folders that need not be made, renames, and no conditions."""

    protocol = "plain"
    cachable = False

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(skip_instance_cache=True)
        self.simulated = bucket

    def _step(
        self, text: str, path: str, call: Callable[[str, float], Any], faults: tuple[str, ...] = READ_FAULTS
    ) -> Any:
        key = self._strip_protocol(path).strip("/")
        actor, commits = running(), faults is not READ_FAULTS and is_manifest(key)
        fault = "" if actor is None else actor[0].point(f"{text} {key}", faults, commits=commits)
        now = 0.0 if actor is None else actor[0].now
        if fault and not fault.endswith("+"):
            raise _plain_fault(fault)
        try:
            result = call(key, now)
        except Refused:
            raise FileNotFoundError(2, "no such file", path) from None
        if fault:
            raise _plain_fault(fault)
        return result

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        infos: list[Any] = []
        following = ""

        def add_page(key: str, now: float) -> None:
            nonlocal following
            if key in self.simulated.objects:
                infos.append(self._described(key))
                return
            found, folders, following = self.simulated.page(f"{key}/" if key else "", "/", following)
            infos.extend(self._described(name) for name, _ in found)
            infos.extend({"name": name.rstrip("/"), "size": 0, "type": "directory"} for name in folders)
            if not infos:
                raise Refused("absent", 404)

        self._step("ls", path, add_page)
        while following:
            self._step("ls", path, add_page)
        return infos if detail else [info["name"] for info in infos]

    def _described(self, key: str) -> dict[str, Any]:
        found = self.simulated.get(key)
        return {"name": key, "size": len(found.body), "type": "file", "mtime": found.time, "created": found.time}

    def info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        def described(key: str, now: float) -> dict[str, Any]:
            if key in self.simulated.objects:
                return self._described(key)
            if key and not any(name.startswith(f"{key}/") for name in self.simulated.objects):
                raise Refused("absent", 404)
            return {"name": key, "size": 0, "type": "directory"}

        return dict(self._step("info", path, described))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any) -> bytes:
        return bytes(self._step("get", path, lambda key, now: self.simulated.get(key).body)[start:end])

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any) -> None:
        self._step("put", path, lambda key, now: self.simulated.put(key, bytes(value), now), WRITE_FAULTS)

    def rm_file(self, path: str) -> None:
        def remove(key: str, now: float) -> None:
            self.simulated.get(key)
            del self.simulated.objects[key]

        self._step("rm", path, remove, WRITE_FAULTS)

    def cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        target = self._strip_protocol(path2).strip("/")
        self._step(
            "cp", path1, lambda key, now: self.simulated.put(target, self.simulated.get(key).body, now), WRITE_FAULTS
        )

    def mv(self, path1: str, path2: str, recursive: bool = False, maxdepth: Any = None, **kwargs: Any) -> None:
        def move(key: str, now: float) -> None:
            self.simulated.put(self._strip_protocol(path2).strip("/"), self.simulated.get(key).body, now)
            del self.simulated.objects[key]

        self._step("mv", path1, move, WRITE_FAULTS)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        pass

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> Any:
        if "r" in mode:
            return io.BytesIO(self.cat_file(path))
        return _PlainFile(self, path)


class _PlainFile(io.BytesIO):
    """A file that is stored when it is closed."""

    def __init__(self, fs: PlainStore, path: str) -> None:
        super().__init__()
        self._fs, self._path = fs, path

    def close(self) -> None:
        if not self.closed:
            value = self.getvalue()
            super().close()
            self._fs.pipe_file(self._path, value)


def _plain_fault(fault: str) -> OSError:
    if fault.startswith("timeout"):
        return ConnectionResetError(104, "Connection reset by peer")
    return PermissionError(13, "the server gave up")
