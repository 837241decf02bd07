"""Groups files into shard families, and checks that each family is complete."""

from __future__ import annotations

import errno
import glob
from collections.abc import Sequence

from tfrecord_io.storage.filesystem.base import Entry, FileSystem
from tfrecord_io.storage.paths.shard_names import ShardName, parse_shard

_Shards = list[tuple[Entry, ShardName]]
_MOST_NAMED = 10  # families in a message


class ShardFamilies:
    """The shard families of some files. Files without a shard number belong to none."""

    def __init__(self, fs: FileSystem, files: Sequence[Entry]) -> None:
        self.files = files
        self.fs = fs
        self._families: dict[tuple[str, str, str], _Shards] = {}
        for entry in files:
            shard = parse_shard(entry.basename)
            if shard is not None:
                self._families.setdefault((entry.parent, *shard.family), []).append((entry, shard))

    def check_single(self, path: str) -> None:
        """Raise ValueError, with a glob for each, if there are several families, or several shard counts in one."""
        globs = [g for shards in self._families.values() for g in self._globs(shards)]
        if len(globs) > 1:
            named = ", ".join(repr(g) for g in sorted(globs)[:_MOST_NAMED])
            more = f" and {len(globs) - _MOST_NAMED} more" if len(globs) > _MOST_NAMED else ""
            text = f"'{path}' has {len(globs)} families of shards; name one: {named}{more}, or join them by a glob"
            raise ValueError(text)

    def _globs(self, shards: _Shards) -> list[str]:
        by_count: dict[str, set[str]] = {}
        for entry, shard in shards:
            rest = "?????" if shard.count is None else f"*-of-{shard.count_text}"
            directory = self.fs.display_path(entry.parent) if entry.parent else ""
            by_count.setdefault(f"{glob.escape(directory)}{glob.escape(shard.base)}-{rest}", set()).add(shard.suffix)
        return [p + (s.pop() if len(s) == 1 else "*") for p, s in by_count.items()]

    def check_complete(self) -> None:
        """Raise FileNotFoundError if a family has a missing or duplicate index, naming it.

        For shard names without a count, a missing index can only be detected with a manifest.
        """
        for shards in self._families.values():
            self._check_duplicates(shards)
            self._check_missing(shards)

    def _check_missing(self, shards: _Shards) -> None:
        entry, shard = shards[0]
        if shard.count is None:
            return
        present = {s.index for _, s in shards if s.index < shard.count}
        missing = shard.count - len(present)
        if missing:
            first = next(i for i in range(shard.count) if i not in present)
            rest = f" (and {missing - 1} more)" if missing > 1 else ""
            text = f"shard {first} of {shard.count} is missing{rest}; allow_missing_shards=True reads the others"
            raise FileNotFoundError(errno.ENOENT, text, self.fs.display_path(entry.parent + shard.sibling(first)))

    def _check_duplicates(self, shards: _Shards) -> None:
        seen: dict[int, Entry] = {}
        for entry, shard in shards:
            other = seen.setdefault(shard.index, entry)
            if other is not entry:
                text = f"shard {shard.index} exists twice, also as '{other.basename}'"
                text += "; allow_missing_shards=True reads both"
                raise FileNotFoundError(errno.ENOENT, text, self.fs.display_path(entry.name))
