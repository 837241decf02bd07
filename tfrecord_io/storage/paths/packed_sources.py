"""Compact lists of sources for pickling: what several files have in common is stored once."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tfrecord_io.errors import secret_url, without_secrets
from tfrecord_io.storage.filesystem.google import is_encoded
from tfrecord_io.storage.paths.file_names import id_in
from tfrecord_io.storage.read.source import INCOMPLETE, ManifestShard, ManifestVersion, Source
from tfrecord_io.value_class import value_class

_SEPARATOR = "\0"  # not in a path
_VERSION_KEYS = ("generation", "ETag", "etag")  # of fsspec, by which object stores answer for one version only
_ONLY_VERSION = "="  # of a name that is given once: a key and a value of no characters


@value_class
class _PackedText:
    """Texts that begin and end alike, such as shard names."""

    prefix: str
    suffix: str
    count: int
    first: int | None  # the parts between are consecutive numbers of `width` digits,
    width: int
    parts: bytes  # or these, compressed

    @classmethod
    def pack(cls, texts: Sequence[str]) -> _PackedText:
        prefix = _common_prefix(texts)
        suffix = _common_prefix([text[len(prefix) :][::-1] for text in texts])[::-1]
        parts = [text[len(prefix) : len(text) - len(suffix)] for text in texts]
        if all(part.isascii() and part.isdigit() for part in parts) and parts:
            first, width = int(parts[0]), len(parts[0])
            if parts == [f"{first + at:0{width}}" for at in range(len(parts))]:
                return cls(prefix, suffix, len(parts), first, width, b"")
        joined = _SEPARATOR.join(parts).encode("utf-8", "surrogateescape")
        return cls(prefix, suffix, len(parts), None, 0, zlib.compress(joined, 9))

    def texts(self) -> list[str]:
        if self.count == 0:
            return []
        if self.first is not None:
            parts = [f"{self.first + at:0{self.width}}" for at in range(self.count)]
        else:
            parts = zlib.decompress(self.parts).decode("utf-8", "surrogateescape").split(_SEPARATOR)
        return [f"{self.prefix}{part}{self.suffix}" for part in parts]


@value_class
class _PackedNumbers:
    """Integers or None, as differences to the least in as few bytes as they need."""

    least: int
    dtype: str
    content: bytes

    @classmethod
    def pack(cls, numbers: Iterable[int | None]) -> _PackedNumbers:
        values = np.array([-1 if number is None else number for number in numbers], np.int64)
        least = int(values.min()) if len(values) else 0
        differences = (values - least).astype(np.uint64)
        dtype = np.min_scalar_type(int(differences.max(initial=0)))
        return cls(least, dtype.str, zlib.compress(differences.astype(dtype).tobytes(), 9))

    def numbers(self) -> list[int | None]:
        differences = np.frombuffer(zlib.decompress(self.content), self.dtype)
        values = [int(difference) + self.least for difference in differences.tolist()]
        return [None if value < 0 else value for value in values]


@value_class
class PackedSources:
    """Sources without the state of this process: open requests, and most of the descriptions of objects from listings.

    Of an object its version is kept, so that another process reads the same one or none, and asks for ranges at once.
    """

    paths: _PackedText
    names: _PackedText  # in the filesystem, of remote files
    sizes: _PackedNumbers
    begins: _PackedNumbers
    ends: _PackedNumbers
    file_sizes: _PackedNumbers
    filesystems: tuple[Any, ...]
    filesystem_of: _PackedNumbers
    manifests: tuple[ManifestVersion, ...]
    manifest_of: _PackedNumbers
    records: _PackedNumbers
    checksums: _PackedNumbers
    staged: tuple[str | None, ...] | None
    watched: bytes
    partitions: tuple[tuple[tuple[str, str | None], ...], ...] | None
    derived: dict[int, tuple[Any, Any]]  # what their content and its origin are, of some
    versions: _PackedText | None  # of objects, each ``key=value``; none where there is no text
    object_sizes: _PackedNumbers  # of those that pieces are of

    @classmethod
    def pack(cls, sources: Sequence[Source]) -> PackedSources:
        """Pack sources. A file object or a pipe, which only this process can read, is a TypeError."""
        for source in sources:
            if source.is_file_object:
                raise TypeError(
                    f"{without_secrets(source.path)}: a read of a file object cannot be pickled: pass a path"
                )
            if source.pipe is not None:
                reason = "a read of a pipe cannot be pickled, as only this process has its data: save it to a file"
                raise TypeError(f"{without_secrets(source.path)}: {reason}")
        remote = [source.remote for source in sources]
        filesystems = {id(found[0]): found[0] for found in remote if found is not None}
        positions = {key: position for position, key in enumerate(filesystems)}
        shards = [source.shard for source in sources]
        manifests = list(dict.fromkeys(shard.manifest for shard in shards if shard is not None))
        numbers = {manifest: number for number, manifest in enumerate(manifests)}
        manifest_of = [None if shard is None else numbers[shard.manifest] for shard in shards]
        staged = tuple(None if shard is None else shard.staged for shard in shards)
        partitions = tuple(source.partitions for source in sources)
        versions = [*map(_version, sources)]
        pieces = [
            None if s.span is None or not version else s.info for s, version in zip(sources, versions, strict=True)
        ]
        return cls(
            paths=_PackedText.pack([source.path for source in sources]),
            names=_PackedText.pack([found[1] for found in remote if found is not None]),
            sizes=_PackedNumbers.pack(source.size for source in sources),
            begins=_PackedNumbers.pack(None if source.span is None else source.span[0] for source in sources),
            ends=_PackedNumbers.pack(None if source.span is None else source.span[1] for source in sources),
            file_sizes=_PackedNumbers.pack(source.file_bytes for source in sources),
            filesystems=tuple(filesystems.values()),
            filesystem_of=_PackedNumbers.pack(None if found is None else positions[id(found[0])] for found in remote),
            manifests=tuple(manifests),
            manifest_of=_PackedNumbers.pack(manifest_of),
            records=_PackedNumbers.pack(s.records if s.shard is None else s.shard.records for s in sources),
            checksums=_PackedNumbers.pack(None if shard is None else shard.crc32c for shard in shards),
            staged=staged if any(staged) else None,
            watched=zlib.compress(bytes(shard is not None and shard.watched for shard in shards), 9),
            partitions=partitions if any(partitions) else None,
            derived={at: (s.derived, s.origin) for at, s in enumerate(sources) if s.derived is not None},
            versions=_PackedText.pack(versions) if any(versions) else None,
            object_sizes=_PackedNumbers.pack(None if info is None else info["size"] for info in pieces),
        )

    def unpack(self) -> tuple[Source, ...]:
        """The sources."""
        names, watched = iter(self.names.texts()), zlib.decompress(self.watched)
        paths = self.paths.texts()
        versions = [""] * len(paths) if self.versions is None else self.versions.texts()
        packed = [self.sizes, self.begins, self.ends, self.file_sizes, self.filesystem_of, self.manifest_of]
        packed += [self.records, self.checksums, self.object_sizes]
        rows = zip(paths, versions, *(each.numbers() for each in packed), strict=True)
        sources = []
        for at, row in enumerate(rows):
            path, version_of, size, begin, end, file_bytes, fs, manifest, records, crc32c, object_size = row
            span = None if begin is None or end is None else (begin, end)
            shard = None
            if manifest is not None:
                staged = None if self.staged is None else self.staged[at]
                file_size = size if span is None and size is not None else 0
                version = self.manifests[manifest]
                shard = ManifestShard(version, records or 0, file_size, crc32c, staged, bool(watched[at]))
                records = None
            partitions = () if self.partitions is None else self.partitions[at]
            fsspec, name = (None, None) if fs is None else (self.filesystems[fs], next(names))
            path = path if fs is None else secret_url(path)
            where = (path, size, fs is None, fsspec, name, None, span)
            derived, origin = self.derived.get(at, (None, None))
            info = _description(version_of, size if object_size is None else object_size)
            source = Source(*where, shard, partitions, info, file_bytes=file_bytes, records=records)
            sources.append(source if derived is None else replace(source, local=False, derived=derived, origin=origin))
        return tuple(sources)


def _version(source: Source) -> str:
    """The version of a source in an object store, as ``key=value``; no text if it is not known, or of no use."""
    info = source.info
    if info is None or info.get("size") is None or info.get("partial") is False or is_encoded(info):
        return ""
    if source.shard is not None and id_in(source.path):
        return _ONLY_VERSION
    return next((f"{key}={info[key]}" for key in _VERSION_KEYS if info.get(key)), "")


def _description(version: str, size: int | None) -> Mapping[str, Any] | None:
    """What `_version` kept of fsspec's description of an object."""
    key, _, value = version.partition("=")
    return {INCOMPLETE: True, "size": size, **({key: value} if key else {})} if version else None


def _common_prefix(texts: Sequence[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")
    differing = (at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differing, min(len(first), len(last)))]
