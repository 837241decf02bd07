"""The rules for file names: which ones are TFRecord files, and which shard of which family."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from tfrecord_io.compression import CODECS
from tfrecord_io.registry import RECORD_SUFFIXES

_INDEX_SUFFIXES = (".index", ".tfindex", ".idx", ".column_index", ".columns.parquet")
SIDECAR_SUFFIXES = (*_INDEX_SUFFIXES, ".json", ".txt", ".pbtxt", ".classes", ".md5")

_SHARD = re.compile(r"(?P<base>.+?)-(?P<index>[0-9]+)-of-(?P<count>[0-9]+)(?P<suffix>(?:\.[^-]*)?)", re.DOTALL)
_NUMBERED = re.compile(r"(?P<base>.+)-(?P<index>[0-9]{5})(?P<suffix>(?:\.[^-]+)?)", re.DOTALL)
_GROWN = re.compile(r"(?P<base>.+)-(?P<index>[0-9]{5,6})-(?P<id>[0-9a-f]{16})(?P<suffix>\.[^-]+)", re.DOTALL)
_HADOOP = ("part", "part-r", "part-m")  # the stems of the files that Hadoop and Spark write
_EXTENSION = re.compile(r"\.[A-Za-z_]\w*$")
_SPEC = re.compile(r"(?P<stem>.*[^/])@(?:\*|(?P<count>[0-9]+)(?P<suffix>(?:\.[^@/]*)?))", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ShardName:
    """The parts of a shard's file name: ``base-00001-of-00008suffix``, or ``base-00001suffix`` without a count.

    A shard that was added to a dataset has the id of its writing: ``base-00001-0123456789abcdefsuffix``.
    """

    base: str
    index: int
    count: int | None
    suffix: str
    count_text: str  # as in the name
    id: str = ""

    @property
    def family(self) -> tuple[str, str]:
        """What all shards of a dataset share, independent of their compression and count."""
        return CODECS.without_suffix(self.base), CODECS.without_suffix(self.suffix)

    @property
    def stems(self) -> tuple[str, ...]:
        """The stems by which a shard spec may name this family: with and without its suffixes, the most exact first."""
        base, suffix = self.family
        stems = stems_of(self.base + self.suffix, base + suffix)
        return tuple(dict.fromkeys((*stems[:-1], stems[-1] + self.suffix[len(suffix) :], stems[-1])))

    @property
    def stem(self) -> str:
        """The dataset's name, which is the same for all forms of its shards' names."""
        return self.stems[-1]

    def sibling(self, index: int) -> str:
        """Name of another shard of the same family, which has a count."""
        width = len(self.count_text)
        return f"{self.base}-{index:0{width}d}-of-{self.count_text}{self.suffix}"


def stems_of(name: str, plain: str | None = None) -> tuple[str, ...]:
    """A dataset's name with and without its suffixes, the most exact first; `plain` has no compression suffix.

    >>> stems_of("train.tfrecord.gz")
    ('train.tfrecord.gz', 'train.tfrecord', 'train')
    """
    plain = CODECS.without_suffix(name) if plain is None else plain
    return tuple(dict.fromkeys((name, plain, _without_record_suffix(plain))))


def parse_shard(name: str) -> ShardName | None:
    """Parse a file name (without directory); None if it has no shard number.

    The forms are TensorFlow's ``train-00000-of-00008``, TFDS's ``mnist-train.tfrecord-00000-of-00008``, with a suffix
    at the end, ``train-00000-of-00008.tfrecord``, and without a count, if a record suffix follows,
    ``train-00000.tfrecord.gz``, or the name is that of Hadoop and Spark: ``part-r-00000``, ``part-00000.gz``. Shards
    that were added to a dataset have the id of their writing: ``train-00008-0123456789abcdef.tfrecord``.
    """
    match = _SHARD.fullmatch(name)
    if match is not None:
        return ShardName(match["base"], int(match["index"]), int(match["count"]), match["suffix"], match["count"])
    match = _GROWN.fullmatch(name)
    if match is not None and CODECS.without_suffix(match["suffix"]).lower() in RECORD_SUFFIXES:
        return ShardName(match["base"], int(match["index"]), None, match["suffix"], "", match["id"])
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return None
    suffix = CODECS.without_suffix(match["suffix"]).lower()
    if suffix in RECORD_SUFFIXES or (not suffix and match["base"] in _HADOOP):
        return ShardName(match["base"], int(match["index"]), None, match["suffix"], "")
    return None


def dataset_of(path: str) -> tuple[str, str] | None:
    """The directory and the name of the dataset that a file is a shard of; None for other files.

    >>> dataset_of("data/train-00000-of-00008"), dataset_of("data/notes.txt")
    (('data', 'train'), None)
    """
    directory, _, name = path.rpartition("/")
    shard = parse_shard(name)
    return None if shard is None else (directory, shard.stem)


def shard_name(base: str, index: int, count: int | None) -> str:
    """The name of shard `index` of `count`, as TensorFlow names it; without a count if it is not known yet.

    >>> shard_name("out/train", 0, 8), shard_name("out/train", 0, None)
    ('out/train-00000-of-00008', 'out/train-00000')
    """
    return f"{base}-{index:05d}" if count is None else f"{base}-{index:05d}-of-{count:05d}"


def split_suffixes(name: str) -> tuple[str, str, str]:
    """Split a name into (name without suffixes, record suffix, compression suffix).

    >>> split_suffixes("out/train.tfrecord.gz"), split_suffixes("out/train")
    (('out/train', '.tfrecord', '.gz'), ('out/train', '', ''))
    """
    plain = CODECS.without_suffix(name)
    front = _without_record_suffix(plain)
    return front, plain[len(front) :], name[len(plain) :]


def spelled_shards(stem: str, count: int) -> Iterator[list[str]]:
    """The names of all shards of ``stem@count``, for each usual form of names, the most exact first.

    >>> [names[0] for names in spelled_shards("train", 2)][:3]
    ['train-00000-of-00002', 'train.tfrecord-00000-of-00002', 'train-00000-of-00002.tfrecord']
    """
    front = _without_record_suffix(stem)
    suffix = stem[len(front) :]
    forms = [(stem, ""), (front, suffix)] if suffix else [(stem, ""), (f"{stem}.tfrecord", ""), (stem, ".tfrecord")]
    for compression in chain([""], (suffix for codec in CODECS for suffix in codec.suffixes[:1])):
        for base, end in forms:
            yield [shard_name(base, i, count) + end + compression for i in range(count)]


class ShardSpec(NamedTuple):
    """A dataset's name, with its suffix, and the number of its shards, None for any."""

    stem: str
    shards: int | None
    suffix_last: bool = False  # ``train@8.tfrecord``, for ``train-00000-of-00008.tfrecord``


def parse_spec(name: str) -> ShardSpec | None:
    """Parse ``train@8``, ``train@*`` or ``train@8.tfrecord.gz``; None if the name is not a shard spec.

    >>> parse_spec("train@8.tfrecord"), parse_spec("logo@2.png")
    (ShardSpec(stem='train.tfrecord', shards=8, suffix_last=True), None)
    """
    match = _SPEC.fullmatch(name)
    suffix = "" if match is None else match["suffix"] or ""
    if match is None or split_suffixes("-" + suffix)[0] != "-":
        return None
    return ShardSpec(match["stem"] + suffix, int(match["count"]) if match["count"] else None, bool(suffix))


def is_record_file(name: str) -> bool:
    """Whether a file of this name (without directory) is read as data when its directory is read."""
    if is_hidden(name) or is_sidecar(name):
        return False
    plain = CODECS.without_suffix(name)
    shard = parse_shard(plain)
    if shard is not None:
        plain = CODECS.without_suffix(shard.base) + shard.suffix
        if not shard.suffix and not _EXTENSION.search(plain):
            return True  # "train-00000-of-00008", but not a checkpoint's "model.data-00000-of-00001"
    return plain.lower().endswith(RECORD_SUFFIXES)


def is_hidden(name: str) -> bool:
    """Whether the name is of the form that tools use for files without data: ``_SUCCESS``, ``.part.tmp``."""
    return name.startswith(("_", "."))


def is_sidecar(name: str) -> bool:
    """Whether the name is that of a sidecar."""
    return name.lower().endswith(SIDECAR_SUFFIXES)


def natural_key(path: str) -> list[list[str | int]]:
    """Sort key by which ``file9`` comes before ``file10``."""
    keys = [[int(t) if i % 2 else t for i, t in enumerate(re.split("([0-9]+)", part))] for part in path.split("/")]
    return [*keys, [path]]


def _without_record_suffix(name: str) -> str:
    return next((name[: -len(suffix)] for suffix in RECORD_SUFFIXES if name.lower().endswith(suffix)), name)
