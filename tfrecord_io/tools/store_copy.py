"""Copy an object within a store; the store moves the bytes, and states the CRC32C of the copy.

Ceph, older releases of MinIO and some emulators state no checksum. The first answer of a store decides: without a
checksum, objects are read and stored again, as between two stores.
"""

from __future__ import annotations

from base64 import b64decode
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from fsspec.asyn import AsyncFileSystem, sync

from tfrecord_io.background import ordered
from tfrecord_io.engine.select import get_engine
from tfrecord_io.storage.filesystem.google import rewrite
from tfrecord_io.storage.filesystem.interface import FileSystem
from tfrecord_io.storage.filesystem.os_errors import raise_os_errors, replaced_error
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem, store_of, unwrap
from tfrecord_io.storage.filesystem.retries import http_status, retry
from tfrecord_io.storage.read.source import Source
from tfrecord_io.storage.write.atomic_remote import error_code

_PART = 1 << 30  # bytes
_PARTS = 8  # at a time
_LARGEST = 5 << 30  # bytes that S3 copies by one request
_REPLACED = ("PreconditionFailed", "412", "NoSuchKey", "404")
# By filesystem: True if its store states the checksum of a copied object (key False), or of copied parts (key True).
_STATED: WeakKeyDictionary[Any, dict[bool, bool]] = WeakKeyDictionary()


def can_copy(source: Source, fs: FileSystem) -> bool:
    """True if one store holds both the source and the target, and has not answered a copy without a checksum."""
    return _is_in_store(source, fs) and _states_checksum(source, fs) is not False


def is_known_to_state_checksums(source: Source, fs: FileSystem) -> bool:
    """True if the store has answered a copy with a checksum, or the source is not copied by it."""
    return not _is_in_store(source, fs) or _states_checksum(source, fs) is not None


def _states_checksum(source: Source, fs: FileSystem) -> bool | None:
    """True if the store has answered such a copy with a checksum, False without one; None before an answer."""
    assert isinstance(fs, FsspecFileSystem)
    return _STATED.get(unwrap(fs.fsspec, "")[0], {}).get((source.size or 0) > _LARGEST)


def _is_in_store(source: Source, fs: FileSystem) -> bool:
    if not isinstance(fs, FsspecFileSystem) or source.remote is None or source.size is None:
        return False
    if source.remote[0] is not fs.fsspec:
        return False
    inner = unwrap(fs.fsspec, "")[0]
    return isinstance(inner, AsyncFileSystem) and not inner.asynchronous and store_of(inner) in ("s3", "gcs")


def copy_within(
    source: Source, fs: FsspecFileSystem, target: str, largest: int = _LARGEST, *, exclusive: bool = False
) -> int | None:
    """Copy an object to another name in its store; more than `largest` bytes in parts, as S3 demands.

    Returns
    -------
    int or None
        CRC32C of the copy that the store states; None if it states none.

    Raises
    ------
    ReplacedError
        The source is no longer the object that was looked up; or with `exclusive`, an object has the name already.
    """
    name, info = source.current_name()
    inner, inner_name = unwrap(fs.fsspec, name)
    inner_target = unwrap(fs.fsspec, target)[1]
    with raise_os_errors(source.path):
        if store_of(inner) == "gcs":
            generation = "0" if exclusive else None
            try:
                copied = retry(lambda: sync(inner.loop, rewrite, inner, inner_name, inner_target, generation))
            except Exception as error:  # of any library
                if isinstance(error, FileNotFoundError | FileExistsError) or http_status(error) == 412:
                    raise replaced_error(source.path) from error
                raise
            checksum = copied.get("crc32c")
        else:
            try:
                tag = (info or {}).get("ETag")
                copy = _S3Copy(inner, inner_name, inner_target, tag, exclusive=exclusive)
                checksum = copy.whole() if (source.size or 0) <= largest else copy.parts(source.size or 0)
            except OSError as error:
                if error_code(error) in _REPLACED or isinstance(error, FileNotFoundError | FileExistsError):
                    raise replaced_error(source.path) from error
                raise
        inner.invalidate_cache(inner_target)
    is_in_parts = store_of(inner) == "s3" and (source.size or 0) > largest
    answers = _STATED.setdefault(inner, {})
    answers[is_in_parts] = checksum is not None and answers.get(is_in_parts, True)
    if checksum is None or isinstance(checksum, int):
        return checksum
    return int.from_bytes(b64decode(checksum), "big")


class _S3Copy:
    """Requests to S3, each of which names the version of the source."""

    def __init__(self, fs: Any, source: str, target: str, tag: str | None, *, exclusive: bool) -> None:
        self._fs = fs
        bucket, key, _ = fs.split_path(target)
        self._target = {"Bucket": bucket, "Key": key}
        bucket, key, _ = fs.split_path(source)
        self._source: dict[str, Any] = {"CopySource": {"Bucket": bucket, "Key": key}}
        if tag:
            self._source["CopySourceIfMatch"] = tag
        self._condition = {"IfNoneMatch": "*"} if exclusive else {}

    def whole(self) -> str | None:
        answer = self._call("copy_object", **self._source, **self._condition, ChecksumAlgorithm="CRC32C")
        return _crc32c_in(answer["CopyObjectResult"])

    def parts(self, size: int) -> int | None:
        """Copy parts side by side, once the first has a checksum; returns their checksums as one."""
        upload = {"UploadId": self._call("create_multipart_upload", ChecksumAlgorithm="CRC32C")["UploadId"]}
        part = _PART
        begins = range(0, size, part)

        def one(number: int, begin: int) -> dict[str, Any]:
            span = {"CopySourceRange": f"bytes={begin}-{min(begin + part, size) - 1}", "PartNumber": number}
            answer: dict[str, Any] = self._call("upload_part_copy", **self._source, **upload, **span)["CopyPartResult"]
            return answer

        try:
            answers = [one(1, 0)]
            if _crc32c_in(answers[0]) is None:
                self._call("abort_multipart_upload", **upload)
                return None
            answers += ordered((partial(one, n, begin) for n, begin in enumerate(begins[1:], 2)), _PARTS, "copy")
            tags = [{"PartNumber": n, **_tags(answer)} for n, answer in enumerate(answers, 1)]
            self._call("complete_multipart_upload", **upload, **self._condition, MultipartUpload={"Parts": tags})
        except BaseException:
            self._call("abort_multipart_upload", **upload)
            raise
        checksums = [_crc32c_in(answer) for answer in answers]
        crc = 0
        for begin, text in zip(begins, checksums, strict=True):
            if text is None:
                return None
            part_crc = int.from_bytes(b64decode(text), "big")
            crc = get_engine().crc32c_combine(crc, part_crc, min(part, size - begin))
        return crc

    def _call(self, method: str, **arguments: Any) -> dict[str, Any]:
        call = partial(self._fs._call_s3, method, self._fs.req_kw, **self._target, **arguments)
        answer: dict[str, Any] = retry(lambda: sync(self._fs.loop, call))
        return answer


def _tags(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name == "ETag" or name.startswith("Checksum")}


def _crc32c_in(answer: dict[str, Any]) -> str | None:
    """CRC32C of a whole object or part in an answer of S3, in base64; None without one."""
    text = answer.get("ChecksumCRC32C")
    return None if text is None or "-" in text else str(text)
