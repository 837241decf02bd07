"""Compact lists of sources for pickling: what several files have in common is stored once."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from tfrecord_io.errors import hide_secrets, secret_url
from tfrecord_io.store.filesystem.google import is_encoded
from tfrecord_io.store.paths.file_names import ShardName
from tfrecord_io.store.read.source import INCOMPLETE, ManifestShard, ManifestVersion, Source

_SEPARATOR = "\0"  # not in a path
_VERSION_KEYS = ("generation", "ETag", "etag")  # of fsspec, by which object stores answer for one version only
_ONLY_VERSION = "="  # of a name that is given once: a key and a value of no characters
_SOURCE = attrgetter("size", "local", "span", "partitions", "file_bytes", "records")
_SHARD = attrgetter("records", "crc32c", "staged", "watched")
_NO_SHARD: tuple[Any, ...] = (None,) * 5


@dataclass(frozen=True, slots=True)
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
                return cls(prefix, suffix, count=len(parts), first=first, width=width, parts=b"")
        joined = _SEPARATOR.join(parts).encode("utf-8", "surrogateescape")
        return cls(prefix, suffix, count=len(parts), first=None, width=0, parts=zlib.compress(joined, 9))

    def texts(self) -> list[str]:
        if self.count == 0:
            return []
        if self.first is not None:
            parts = [f"{self.first + at:0{self.width}}" for at in range(self.count)]
        else:
            parts = zlib.decompress(self.parts).decode("utf-8", "surrogateescape").split(_SEPARATOR)
        return [f"{self.prefix}{part}{self.suffix}" for part in parts]


@dataclass(frozen=True, slots=True)
class PackedSources:
    """Sources without the state of this process: open requests, and most of the descriptions of objects from listings.

    Of an object its version is kept, so that another process reads the same one or none, and asks for ranges at once.
    """

    paths: _PackedText
    names: _PackedText  # in the filesystem, of remote files
    filesystems: tuple[Any, ...]
    manifests: tuple[ManifestVersion, ...]
    derived: dict[int, tuple[Any, Any]]  # what their content and its origin are, of some
    columns: bytes  # of all else, pickled and compressed: equal values are next to each other

    @classmethod
    def pack(cls, sources: Sequence[Source]) -> PackedSources:
        """Pack sources. A file object or a pipe, which only this process can read, is a TypeError."""
        filesystems: dict[int, tuple[int, Any]] = {}  # with their numbers
        manifests: dict[ManifestVersion, int] = {}
        names, rows = [], []
        for source in sources:
            if source.is_file_object:
                path = hide_secrets(source.path)
                raise TypeError(f"{path}: a read of a file object cannot be pickled: pass a path")
            if source.pipe is not None:
                reason = "a read of a pipe cannot be pickled, as only this process has its data: save it to a file"
                raise TypeError(f"{hide_secrets(source.path)}: {reason}")
            place, version, statements = None, _version(source), _NO_SHARD
            if (remote := source.remote) is not None:
                place, _ = filesystems.setdefault(id(remote[0]), (len(filesystems), remote[0]))
                names.append(remote[1])
            if (shard := source.shard) is not None:
                statements = (manifests.setdefault(shard.manifest, len(manifests)), *_SHARD(shard))
            whole = source.info["size"] if source.info is not None and version and source.span is not None else None
            rows.append((place, version, whole, *_SOURCE(source), *statements))
        return cls(
            paths=_PackedText.pack([source.path for source in sources]),
            names=_PackedText.pack(names),
            filesystems=tuple(fs for _, fs in filesystems.values()),
            manifests=tuple(manifests),
            derived={at: (s.derived, s.origin) for at, s in enumerate(sources) if s.derived is not None},
            columns=zlib.compress(pickle.dumps([*zip(*rows, strict=True)]), 9),
        )

    def unpack(self) -> tuple[Source, ...]:
        """The sources."""
        names = iter(self.names.texts())
        rows = zip(*pickle.loads(zlib.decompress(self.columns)), strict=True)
        sources = []
        for at, (path, row) in enumerate(zip(self.paths.texts(), rows, strict=True)):
            place, version, whole, size, local, span, partitions, file_bytes, records, manifest, count, *statements = (
                row
            )
            file_size = size if span is None and size is not None else 0
            shard = None if manifest is None else ManifestShard(self.manifests[manifest], count, file_size, *statements)
            info = _description(version, size if whole is None else whole)
            fsspec, name = (None, None) if place is None else (self.filesystems[place], next(names))
            path = path if place is None else secret_url(path)
            derived, origin = self.derived.get(at, (None, None))
            origins = {"origin": origin, "derived": derived, "file_bytes": file_bytes, "records": records}
            sources.append(
                Source(
                    path=path,
                    size=size,
                    local=local,
                    _fsspec=fsspec,
                    _name=name,
                    _file=None,
                    span=span,
                    shard=shard,
                    partitions=partitions,
                    info=info,
                    **origins,
                )
            )
        return tuple(sources)


def _version(source: Source) -> str:
    """The version of a source in an object store, as ``key=value``; no text if it is not known, or of no use."""
    info = source.info
    if info is None or info.get("size") is None or info.get("partial") is False or is_encoded(info):
        return ""
    if source.shard is not None and ShardName.id_in(source.path):
        return _ONLY_VERSION
    return next((f"{key}={info[key]}" for key in _VERSION_KEYS if info.get(key)), "")


def _description(version: str, size: int | None) -> Mapping[str, Any] | None:
    """The part of fsspec's description of an object kept by `_version`."""
    key, _, value = version.partition("=")
    return {INCOMPLETE: True, "size": size, **({key: value} if key else {})} if version else None


def _common_prefix(texts: Sequence[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")
    differing = (at for at, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    return first[: next(differing, min(len(first), len(last)))]
