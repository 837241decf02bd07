"""Check the shard families of files: that there is only one, and that each is complete."""

from __future__ import annotations

import errno
import glob
from collections.abc import Callable, Iterable, Sequence

from tfrecord_io.storage.filesystem.base import Entry, FileSystem
from tfrecord_io.storage.paths.shard_names import ShardName, parse_shard

_Shards = list[tuple[Entry, ShardName]]
_MOST_NAMED = 10  # families in a message
_MOST_MATCHED = 1_000_000  # names of shards that are compared with a pattern


def _families(files: Sequence[Entry]) -> Iterable[_Shards]:
    """Group files into shard families. Files without a shard number belong to none."""
    families: dict[tuple[str, str, str], _Shards] = {}
    for entry in files:
        shard = parse_shard(entry.basename)
        if shard is not None:
            families.setdefault((entry.parent, *shard.family), []).append((entry, shard))
    return families.values()


def check_single_family(fs: FileSystem, files: Sequence[Entry], path: str) -> None:
    """Raise ValueError, with a glob for each, if there are several families, or several shard counts in one."""
    globs = [g for shards in _families(files) for g in _globs(fs, shards)]
    if len(globs) > 1:
        named = ", ".join(repr(g) for g in sorted(globs)[:_MOST_NAMED])
        more = f" and {len(globs) - _MOST_NAMED} more" if len(globs) > _MOST_NAMED else ""
        text = f"'{path}' has {len(globs)} families of shards; name one: {named}{more}, or join them by a glob"
        raise ValueError(text)


def _globs(fs: FileSystem, shards: _Shards) -> list[str]:
    by_count: dict[str, set[str]] = {}
    for entry, shard in shards:
        rest = "?????" if shard.count is None else f"*-of-{shard.count_text}"
        directory = fs.display_path(entry.parent) if entry.parent else ""
        by_count.setdefault(f"{glob.escape(directory)}{glob.escape(shard.base)}-{rest}", set()).add(shard.suffix)
    return [p + (s.pop() if len(s) == 1 else "*") for p, s in by_count.items()]


def check_complete(fs: FileSystem, files: Sequence[Entry], wanted: Callable[[str], bool] | None = None) -> None:
    """Raise FileNotFoundError if a family has a missing or duplicate index, naming it.

    `wanted` selects the base names that the path asks for, as others are not missing; None: all. For shard names
    without a count, a missing index can only be detected with a manifest.
    """
    for shards in _families(files):
        seen: dict[int, Entry] = {}
        for entry, shard in shards:
            other = seen.setdefault(shard.index, entry)
            if other is not entry:
                text = f"shard {shard.index} exists twice, also as '{other.basename}'"
                text += "; allow_missing_shards=True reads both"
                raise FileNotFoundError(errno.ENOENT, text, fs.display_path(entry.name))
        entry, shard = shards[0]
        count = shard.count or 0  # may be huge
        missing = count - sum(index < count for index in seen)
        absent: Iterable[int] = (index for index in range(count) if index not in seen)
        if missing and wanted is not None and count <= _MOST_MATCHED:
            forms = list({(s.base, s.suffix, s.count_text): s for _, s in shards}.values())
            absent = [index for index in absent if any(wanted(form.sibling(index)) for form in forms)]
            missing = len(absent)
        if missing:
            first = next(iter(absent))
            rest = f" (and {missing - 1} more)" if missing > 1 else ""
            text = f"shard {first} of {count} is missing{rest}; allow_missing_shards=True reads the others"
            raise FileNotFoundError(errno.ENOENT, text, fs.display_path(entry.parent + shard.sibling(first)))
