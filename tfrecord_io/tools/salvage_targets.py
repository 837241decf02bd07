"""Where the salvaged records of each file go: one file, or files of the same names in a directory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tfrecord_io.compression import CODECS
from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.options import StorageOptions
from tfrecord_io.storage.filesystem.locate import check_writable, locate
from tfrecord_io.storage.filesystem.remote import FsspecFileSystem
from tfrecord_io.storage.paths.manifest import parse_manifest
from tfrecord_io.storage.paths.resolve_output import Output, check_suffix
from tfrecord_io.storage.paths.shard_names import dataset_of, parse_shard, parse_spec
from tfrecord_io.storage.read.source import Source, read_manifest


@dataclass(frozen=True, slots=True)
class Target:
    """A file to write, and the file that its records are from.

    Attributes
    ----------
    dataset : tuple of str or None
        The directory and the name of the dataset that it is a shard of.
    same_name : bool
        Whether it has the name of its source, and so its compression; else the suffix of `path` decides.
    """

    source: Source
    path: str
    dataset: tuple[str, str] | None
    same_name: bool

    def codec(self, source_compression: str | None) -> str | None:
        """Name of the compression to write with."""
        codec = CODECS.of_path(self.path)
        return source_compression if codec is None and self.same_name else None if codec is None else codec.name


@dataclass(frozen=True, slots=True)
class NamedShards(Output):
    """The shards of a dataset with given names, of which some may be missing."""

    names: tuple[str, ...] = ()

    def shard(self, index: int) -> str:
        return self.base.rpartition("/")[0] + "/" + self.names[index]


def plan_targets(sources: Sequence[Source], dst: str | os.PathLike[str], storage: StorageOptions) -> list[Target]:
    """The target of each source. Nothing is created.

    A single file is written to `dst`, unless that is a directory or ends in "/"; several files go to the directory
    `dst`, below which they are where they are below their common directory.

    Raises
    ------
    ValueError
        A target is its own source, or `dst` has the suffix of another format, or is a shard spec.
    """
    text = os.fspath(dst)
    fs, name = locate(dst, storage)
    check_writable(fs, name)
    entry = fs.entry(name)
    into_directory = len(sources) > 1 or text.endswith("/") or (entry is not None and entry.directory)
    if entry is None and parse_spec(text) is not None:
        raise ValueError(f"'{printable(text)}' is a shard spec: shards keep their names, so pass a directory")
    if not into_directory:
        check_suffix(text)
        targets = [Target(sources[0], text, None, same_name=False)]
    else:
        root = text.rstrip("/") + "/"
        targets = []
        for source, relative in zip(sources, _relative_paths([source.path for source in sources]), strict=True):
            path = root + relative
            targets.append(Target(source, path, dataset_of(path), same_name=True))
    paths = [target.path for target in targets]
    twice = next((path for path in paths if paths.count(path) > 1), None) if len({*paths}) < len(paths) else None
    if twice is not None:
        raise ValueError(f"two files would be written to '{printable(twice)}': name each file once")
    for target in targets:
        _refuse_source(target, sources, storage)
    return targets


def _relative_paths(paths: Sequence[str]) -> list[str]:
    """The paths below their common directory."""
    parents = [path.split("/")[:-1] for path in paths]
    common = 0
    while all(len(parent) > common and parent[common] == parents[0][common] for parent in parents):
        common += 1
    return ["/".join(path.split("/")[common:]) for path in paths]


def _refuse_source(target: Target, sources: Sequence[Source], storage: StorageOptions) -> None:
    """Refuse to write over a file that is read."""
    fs, name = locate(target.path, storage)
    for source in sources:
        if isinstance(fs, FsspecFileSystem):
            same = source.remote is not None and _object(*source.remote) == _object(fs.fsspec, name)
        else:
            same = source.local and (
                os.path.realpath(source.path) == os.path.realpath(name)
                or (os.path.exists(name) and os.path.exists(source.path) and os.path.samefile(source.path, name))
            )
        if same:
            raise ValueError(f"'{printable(target.path)}' is a file that is read: choose another target")


def _object(fs: Any, name: str) -> tuple[Any, ...]:
    """What distinguishes the objects of buckets."""
    options = getattr(fs, "storage_options", None) or {}
    protocol = fs.protocol if isinstance(fs.protocol, str) else tuple(fs.protocol)
    return protocol, str(options.get("endpoint_url")), fs._strip_protocol(name)


def missing_shards(sources: Sequence[Source], src: Any) -> list[str]:
    """The paths of shards that do not exist: those that a manifest names, or that the count in the names includes.

    Files that `src` names one by one need no others.
    """
    named = {os.fspath(item) for item in (src if isinstance(src, list | tuple) else [src]) if _is_path(item)}
    sources = [source for source in sources if source.path not in named]
    present = {source.path for source in sources}
    missing: dict[str, None] = {}
    manifests: set[str] = set()
    for source in sources:
        directory, slash, base = source.path.rpartition("/")
        shard = parse_shard(base)
        if source.shard is not None:
            version = source.shard.manifest
            if version.path not in manifests:
                manifests.add(version.path)
                entry = version.fs.entry(version.name)
                try:
                    manifest = None if entry is None else parse_manifest(read_manifest(version.fs, entry), version.path)
                except CorruptRecordError:
                    manifest = None
                names = [] if manifest is None else [file.path for file in manifest.files]
                missing.update((directory + slash + name, None) for name in names)
        elif shard is not None and shard.count is not None:
            missing.update((directory + slash + shard.sibling(i), None) for i in range(shard.count))
    return [path for path in missing if path not in present]


def _is_path(item: Any) -> bool:
    return isinstance(item, str | os.PathLike)
