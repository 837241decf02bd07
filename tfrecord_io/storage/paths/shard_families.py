"""Families of shards among files: which there are, and whether each is complete."""

from __future__ import annotations

import errno
import glob
from collections.abc import Sequence

from tfrecord_io.storage.filesystem.local import Entry, FileSystem
from tfrecord_io.storage.paths.shard_names import ShardName, parse_shard

_Shards = list[tuple[Entry, ShardName]]
_NAMED = 10  # families named in a message


class ShardFamilies:
    """The shard families of some files. Files without a shard number are in none."""

    def __init__(self, tree: FileSystem, files: Sequence[Entry]) -> None:
        self.files = files
        self.tree = tree
        self._families: dict[tuple[str, str, str], _Shards] = {}
        for entry in files:
            shard = parse_shard(entry.basename)
            if shard is not None:
                directory = entry.name[: len(entry.name) - len(entry.basename)]
                self._families.setdefault((directory, *shard.family), []).append((entry, shard))

    def refuse_several(self, where: str) -> None:
        """Raise ValueError if there are several families, or one in several counts, with a glob for each."""
        globs = [g for shards in self._families.values() for g in self._globs(shards)]
        if len(globs) > 1:
            named = ", ".join(repr(g) for g in sorted(globs)[:_NAMED])
            more = f" and {len(globs) - _NAMED} more" if len(globs) > _NAMED else ""
            raise ValueError(
                f"'{where}' has {len(globs)} families of shards; name one: {named}{more}, or join them by a glob of your own"
            )

    def _globs(self, shards: _Shards) -> list[str]:
        by_count: dict[str, set[str]] = {}
        for entry, shard in shards:
            directory = entry.name[: len(entry.name) - len(entry.basename)]
            rest = "?????" if shard.count is None else f"*-of-{shard.count_text}"
            pattern = f"{glob.escape(self.tree.shown(directory) if directory else '')}{glob.escape(shard.base)}-{rest}"
            by_count.setdefault(pattern, set()).add(shard.suffix)
        return [p + (s.pop() if len(s) == 1 else "*") for p, s in by_count.items()]

    def refuse_incomplete(self) -> None:
        """Raise FileNotFoundError if a family has an index missing or twice, naming it.

        Whether one without a count in its names is complete, only a manifest can say.
        """
        for shards in self._families.values():
            self._refuse_twice(shards)
            self._refuse_missing(shards)

    def _refuse_missing(self, shards: _Shards) -> None:
        entry, shard = shards[0]
        if shard.count is None:
            return
        present = {s.index for _, s in shards if s.index < shard.count}
        lacking = shard.count - len(present)
        if lacking:
            first = next(i for i in range(shard.count) if i not in present)
            directory = entry.name[: len(entry.name) - len(entry.basename)]
            rest = f" (and {lacking - 1} more)" if lacking > 1 else ""
            text = f"shard {first} of {shard.count} is missing{rest}; allow_missing_shards=True reads the others"
            raise FileNotFoundError(errno.ENOENT, text, self.tree.shown(directory + shard.sibling(first)))

    def _refuse_twice(self, shards: _Shards) -> None:
        seen: dict[int, Entry] = {}
        for entry, shard in shards:
            other = seen.setdefault(shard.index, entry)
            if other is not entry:
                text = f"shard {shard.index} is there twice, also as '{other.basename}'; allow_missing_shards=True reads both"
                raise FileNotFoundError(errno.ENOENT, text, self.tree.shown(entry.name))
