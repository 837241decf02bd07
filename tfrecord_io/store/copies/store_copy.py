"""Copy an object within a store; the store moves the bytes, and states the CRC32C of the copy.

Ceph, older releases of MinIO and some emulators state none, but the MD5 of the copy, which is compared with that of the
source. The first answer of a store decides what proves its copies; where nothing does, as with keys of the user's
encryption, its objects are read and stored, as those of two stores are.

Tests: tests/store/copies/test_copy_files_stores.py.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from fsspec.asyn import AsyncFileSystem, sync

from tfrecord_io.base import logger, ordered
from tfrecord_io.bytes import get_engine
from tfrecord_io.store.filesystem.google import rewrite
from tfrecord_io.store.filesystem.interface import FileSystem
from tfrecord_io.store.filesystem.os_errors import raise_os_errors, replaced_error
from tfrecord_io.store.filesystem.remote import FsspecFileSystem, store_of, unwrap
from tfrecord_io.store.filesystem.retries import http_status, retry
from tfrecord_io.store.read.source import Source
from tfrecord_io.store.write.atomic_remote import error_code

_PART = 1 << 30  # bytes
_PARTS = 8  # at a time
_LARGEST = 5 << 30  # bytes that S3 copies by one request
_REPLACED = ("PreconditionFailed", "412", "NoSuchKey", "404")


class Proof(Enum):
    """The statements of a store that prove its copies."""

    CRC32C = "a CRC32C"
    MD5 = "an MD5, but no CRC32C"
    NOTHING = "no checksum that proves a copy"


@dataclass(frozen=True, slots=True)
class StoreCopy:
    """A copy that a store has made, by its answer."""

    bytes: int  # of the source as it was listed
    crc32c: int | None  # of the copy
    md5: str | None = None  # of the copy
    md5_of_source: str | None = None

    @property
    def is_proven(self) -> bool:
        """True if the store's checksums are of the right bytes, or comparable with them."""
        return self.crc32c is not None or (self.md5 is not None and self.md5 == self.md5_of_source)

    @property
    def proof(self) -> Proof:
        """The proof for other copies of this store; an MD5 may, if only that of the source is unknown here."""
        if self.crc32c is not None:
            return Proof.CRC32C
        return Proof.MD5 if self.md5 is not None and self.md5_of_source in (None, self.md5) else Proof.NOTHING


# By filesystem: what proves the copies of whole objects, and (True) of those that are copied in parts.
_PROOFS: WeakKeyDictionary[Any, dict[bool, Proof]] = WeakKeyDictionary()


def can_copy(source: Source, fs: FileSystem) -> bool:
    """True if one store holds both the source and the target, and may prove the copy."""
    if not _is_in_store(source, fs):
        return False
    proof = _known_proof(source, fs)
    return proof is not Proof.NOTHING and (proof is not Proof.MD5 or "md5" in stated_digests(source.info))


def is_proof_known(source: Source, fs: FileSystem) -> bool:
    """True if the store has answered a copy as that of the source, or the source is not copied by it."""
    return not _is_in_store(source, fs) or _known_proof(source, fs) is not None


def stated_digests(info: Mapping[str, Any] | None) -> dict[str, str]:
    """The checksums of an object that its store states, in hex."""
    found: dict[str, str] = {}
    stated = info or {}
    tag = str(stated.get("ETag", "")).strip('"')
    if len(tag) == 32 and "-" not in tag and "LastModified" in stated:  # of S3; others have tags of other kinds
        found["md5"] = tag
    for key, kind in (("md5Hash", "md5"), ("crc32c", "crc32c")):
        if isinstance(stated.get(key), str):
            found[kind] = b64decode(stated[key]).hex()
    return found


def _known_proof(source: Source, fs: FileSystem) -> Proof | None:
    """The proof for copies of such a source, by the first answer of the store; None if there was none."""
    assert isinstance(fs, FsspecFileSystem)
    return _PROOFS.get(unwrap(fs.fsspec, "")[0], {}).get((source.size or 0) > _LARGEST)


def _note_proof(fs: Any, proof: Proof, *, is_in_parts: bool) -> None:
    """Keep what an answer of a store proves; the weakest answer counts."""
    proofs = _PROOFS.setdefault(fs, {})
    known = proofs.get(is_in_parts, Proof.CRC32C)
    proofs[is_in_parts] = weakest = max(known, proof, key=list(Proof).index)
    if weakest is not known:
        logger.info("the store states %s of what it copies", weakest.value)


def _is_in_store(source: Source, fs: FileSystem) -> bool:
    if not isinstance(fs, FsspecFileSystem) or source.remote is None or source.size is None:
        return False
    if source.remote[0] is not fs.fsspec:
        return False
    inner = unwrap(fs.fsspec, "")[0]
    return isinstance(inner, AsyncFileSystem) and not inner.asynchronous and store_of(inner) in ("s3", "gcs")


def copy_within(
    source: Source, fs: FsspecFileSystem, target: str, largest: int = _LARGEST, *, exclusive: bool = False
) -> StoreCopy:
    """Copy an object to another name in its store; more than `largest` bytes in parts, as S3 demands.

    Raises
    ------
    ReplacedError
        The source is no longer the object that was looked up; or with `exclusive`, an object has the name already.
    """
    name, info = source.current_name()
    inner, inner_name = unwrap(fs.fsspec, name)
    inner_target = unwrap(fs.fsspec, target)[1]
    is_in_parts = False
    with raise_os_errors(source.path):
        if store_of(inner) == "gcs":
            generation = "0" if exclusive else None
            try:
                copied = retry(lambda: sync(inner.loop, rewrite, inner, inner_name, inner_target, generation))
            except Exception as error:  # of any library
                if isinstance(error, FileNotFoundError | FileExistsError) or http_status(error) == 412:
                    raise replaced_error(source.path) from error
                raise
            crc = copied.get("crc32c")
        else:
            is_in_parts = (source.size or 0) > largest
            try:
                tag = (info or {}).get("ETag")
                copy = _S3Copy(inner, inner_name, inner_target, tag, exclusive=exclusive)
                copied = copy.parts(source.size or 0) if is_in_parts else copy.whole()
            except OSError as error:
                if error_code(error) in _REPLACED or isinstance(error, FileNotFoundError | FileExistsError):
                    raise replaced_error(source.path) from error
                raise
            crc = _crc32c_in(copied)
        inner.invalidate_cache(inner_target)
    answer = StoreCopy(
        bytes=(info or {}).get("size", source.size or 0),
        crc32c=None if crc is None else int.from_bytes(b64decode(crc), "big"),
        md5=stated_digests(copied).get("md5"),
        md5_of_source=stated_digests(info).get("md5"),
    )
    _note_proof(inner, answer.proof, is_in_parts=is_in_parts)
    return answer


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

    def whole(self) -> dict[str, Any]:
        answer = self._call("copy_object", **self._source, **self._condition, ChecksumAlgorithm="CRC32C")
        copied: dict[str, Any] = answer["CopyObjectResult"]
        return copied

    def parts(self, size: int) -> dict[str, Any]:
        """Copy parts side by side, once the first has a checksum; returns their checksums as that of one object."""
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
                return {}
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
                return {}
            part_crc = int.from_bytes(b64decode(text), "big")
            crc = get_engine().crc32c_combine(crc, part_crc, min(part, size - begin))
        return {"ChecksumCRC32C": b64encode(crc.to_bytes(4, "big")).decode()}

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
