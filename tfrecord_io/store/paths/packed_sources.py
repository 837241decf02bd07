"""Compact lists of sources for pickling: what several files have in common is stored once.

`PackedSources.pack` makes a `_Row` of each source and stores the rows column by column; `unpack` makes the sources of
them again.

Tests: tests/store/paths/test_packed_sources.py.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tfrecord_io.base import hide_secrets, secret_url
from tfrecord_io.store.filesystem.google import is_encoded
from tfrecord_io.store.paths.file_names import ShardName
from tfrecord_io.store.read.source import INCOMPLETE, ManifestShard, ManifestVersion, Source

_SEPARATOR = "\0"  # not in a path
_VERSION_KEYS = ("generation", "ETag", "etag")  # of fsspec, by which object stores answer for one version only
_ONLY_VERSION = "="  # of a name that is given once: a key and a value of no characters


class _Row(NamedTuple):
    """A stored source: the facts besides its path, and its name in a filesystem."""

    size: int | None
    local: bool
    span: tuple[int, int] | None
    partitions: tuple[tuple[str, str | None], ...]
    file_bytes: int | None
    records: int | None
    filesystem: int | None  # its number in `PackedSources.filesystems`; None of a local file
    version: str  # of the object, as `_version` returns it
    object_size: int | None  # of the object that a source with a span and a version is a piece of
    manifest: int | None  # its number in `PackedSources.manifests`; None if no manifest states anything of the file
    shard_records: int | None = None  # this and all below: what the manifest states
    shard_crc32c: int | None = None
    shard_staged: str | None = None
    shard_watched: bool | None = None
    shard_unseen: bool | None = None
    shard_bytes: int | None = None  # of the file, where the source is a piece of it

    @classmethod
    def of(cls, source: Source, filesystem: int | None, manifest: int | None) -> _Row:
        version, shard = _version(source), source.shard
        row = cls(
            size=source.size,
            local=source.local,
            span=source.span,
            partitions=source.partitions,
            file_bytes=source.file_bytes,
            records=source.records,
            filesystem=filesystem,
            version=version,
            object_size=source.info["size"] if source.info and version and source.span is not None else None,
            manifest=manifest,
        )
        if shard is None:
            return row
        return row._replace(
            shard_records=shard.records,
            shard_crc32c=shard.crc32c,
            shard_staged=shard.staged,
            shard_watched=shard.watched,
            shard_unseen=shard.is_unseen,
            shard_bytes=None if source.span is None else shard.bytes,
        )

    def shard(self, manifests: Sequence[ManifestVersion]) -> ManifestShard | None:
        """The facts of the file in the manifest."""
        if self.manifest is None:
            return None
        assert self.shard_records is not None
        return ManifestShard(
            manifests[self.manifest],
            records=self.shard_records,
            bytes=(self.size if self.span is None else self.shard_bytes) or 0,
            crc32c=self.shard_crc32c,
            staged=self.shard_staged,
            watched=bool(self.shard_watched),
            is_unseen=bool(self.shard_unseen),
        )


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
    columns: bytes  # of the `_Row`s, pickled and compressed: equal values are next to each other

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
            filesystem = manifest = None
            if (remote := source.remote) is not None:
                filesystem, _ = filesystems.setdefault(id(remote[0]), (len(filesystems), remote[0]))
                names.append(remote[1])
            if source.shard is not None:
                manifest = manifests.setdefault(source.shard.manifest, len(manifests))
            rows.append(_Row.of(source, filesystem, manifest))
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
        rows = map(_Row._make, zip(*pickle.loads(zlib.decompress(self.columns)), strict=True))
        sources = []
        for at, (path, row) in enumerate(zip(self.paths.texts(), rows, strict=True)):
            is_local = row.filesystem is None
            derived, origin = self.derived.get(at, (None, None))
            sources.append(
                Source(
                    path=path if is_local else secret_url(path),
                    size=row.size,
                    local=row.local,
                    _fsspec=None if row.filesystem is None else self.filesystems[row.filesystem],
                    _name=None if is_local else next(names),
                    span=row.span,
                    shard=row.shard(self.manifests),
                    partitions=row.partitions,
                    info=_description(row.version, row.size if row.object_size is None else row.object_size),
                    origin=origin,
                    derived=derived,
                    file_bytes=row.file_bytes,
                    records=row.records,
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
