"""From what a user calls ``path`` to the file or files to write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tfrecord_io.storage.shards import parse_spec, shard_name
from tfrecord_io.storage.trees import LocalTree, Tree, locate


@dataclass(frozen=True, slots=True)
class Output:
    """Where a writer writes: one file, or the shards of a dataset.

    Attributes
    ----------
    path : str
        What people see.
    sharded : bool
        Whether it is a dataset of shards; else one file, or a file object.
    count : int or None
        Number of shards where it is known before writing; 1 for a file.
    max_shard_bytes : int or None
        A new shard begins before a record that would bring the uncompressed size above this.
    """

    path: str
    sharded: bool = False
    count: int | None = 1
    max_shard_bytes: int | None = None
    file: Any = None
    base: str = field(default="", repr=False)  # of the shards' names, in `path`'s form
    suffix: str = field(default="", repr=False)

    def shard(self, index: int, count: int) -> str:
        """Path of one shard, for `tfrecord_io.storage.commit.open_output`."""
        return shard_name(self.base, index, count) + self.suffix

    def targets(self) -> Iterator[Any]:
        """Give what to open, one after the other; only where `count` is known."""
        if not self.sharded:
            yield self.path if self.file is None else self.file
            return
        if self.count is None:
            raise ValueError("the number of shards is known only at the end; name them by shard(index, count)")
        for i in range(self.count):
            yield self.shard(i, self.count)


def resolve_output(
    path: Any,
    *,
    shards: int | None = None,
    max_shard_bytes: int | None = None,
    suffix: str = ".tfrecord",
    storage_options: dict[str, Any] | None = None,
    filesystem: Any = None,
) -> Output:
    """Decide what a path to write means; nothing is created.

    Parameters
    ----------
    path : str, PathLike or binary file object
        A file; a directory (it is there, or the path ends in "/"): shards ``part-00000-of-00008.tfrecord``;
        ``name@8``: shards ``name-00000-of-00008``, unless a file has that very name.
    shards, max_shard_bytes : int, optional
        Make shards of any path.
    suffix : str
        Of shards in a directory, with that of the compression.
    storage_options, filesystem
        As for `resolve_inputs`.

    Raises
    ------
    ValueError
        The arguments contradict each other.

    Examples
    --------
    >>> list(resolve_output("out/train@2").targets())
    ['out/train-00000-of-00002', 'out/train-00001-of-00002']
    """
    for name, value in (("shards", shards), ("max_shard_bytes", max_shard_bytes)):
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{name}={value!r}: a whole number from 1 on")
    several = shards is not None or max_shard_bytes is not None
    if hasattr(path, "write"):
        if several:
            raise ValueError("a file object is one file: shards= and max_shard_bytes= need a path")
        return Output(f"<{type(path).__name__}>", file=path)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"path is a str, a PathLike or a binary file object, not {type(path).__name__}")
    text = os.fspath(path)
    tree, name = locate(path, storage_options, filesystem)
    entry = tree.entry(name)
    if text.endswith("/") or (entry is not None and entry.directory):
        base = _base(tree, name, text).rstrip("/") + "/part"
        return Output(text, True, shards if several else 1, max_shard_bytes, base=base, suffix=suffix)
    spec = parse_spec(text) if entry is None else None
    if spec is not None:
        stem, count = spec
        if count == 0:
            raise ValueError(f"'{text}' asks for 0 shards")
        if shards is not None and count not in (None, shards):
            raise ValueError(f"'{text}' and shards={shards} contradict each other")
        if count is None and not several:
            raise ValueError(f"'{text}' leaves the number of shards open; say shards= or max_shard_bytes=")
        return Output(text, True, count or shards, max_shard_bytes, base=stem)
    if several:
        return Output(text, True, shards, max_shard_bytes, base=text)
    return Output(text)


def _base(tree: Tree, name: str, text: str) -> str:
    """Base for paths that `locate` will see again: "~" is expanded once, URLs stay as they were given."""
    return name if isinstance(tree, LocalTree) and "://" not in text else text
