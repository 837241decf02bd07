"""The rules for file names: TFRecord files, shards and their families, and the names that writers give to files.

No other module makes, slices or matches such names. Each kind of name that a writer makes has one maker, and in the
same class one parser, which accepts whatever the maker makes: a manifest that names a file by a name that its parser
refuses could not be read any more. Makers return plain text, to be put after a directory; parsers take a name without.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from functools import lru_cache
from itertools import chain
from typing import ClassVar, NamedTuple

from tfrecord_io.base import Registry
from tfrecord_io.bytes import CODECS

# Patterns of names that few calls meet are text, which `re` compiles when they are first used.
_ID = "[0-9a-f]{16}"
_NUMBER = "(?:[0-9]{5}|[1-9][0-9]{5,17})"  # as "05d" writes it, below 10^18
_MANIFEST = r"(?s)_MANIFEST(?:-(?P<stem>.+))?\.json"
_STAGED = f"_{_ID}-{_NUMBER}(?:-{_NUMBER})?[.]staged"
_PART = f"_{_ID}-{_NUMBER}(?:-{_NUMBER})?[.]json"
_JOURNAL = r"(?s)_RESUME-(?P<stem>.+)\.json"
_SCHEMA = r"(?s)_SCHEMA(?:-(?P<stem>.+))?\.json"
_CLAIMS, _CLAIM_SUFFIX = "_APPEND-", ".claim"
_CLAIM = f"{_ID}[.]claim"
_MANIFEST_PARTS, _MANIFEST_PART_SUFFIX = "_MANIFEST", ".arrow.zst"
_MANIFEST_PART = f"{_ID}[.]arrow[.]zst"
_CONDITION = f"_{_ID}[.]condition"
_MOST_SHOWN = 32  # characters of a name that its temporary file's name has
_TEMPORARY = rf"(?s)\..{{0,{_MOST_SHOWN}}}\.{_ID}\.tmp"

_COUNTED_SHARD = re.compile(
    r"(?P<base>.+?)-(?P<index>[0-9]{1,18})-of-(?P<count>[0-9]{1,18})(?P<suffix>(?:\.[^-]*)?)", re.DOTALL
)
_NUMBERED = re.compile(rf"(?P<base>.+)-(?P<index>{_NUMBER})(?P<suffix>(?:\.[^-]+)?)", re.DOTALL)
_GROWN = re.compile(rf"(?P<base>.+)-(?P<index>{_NUMBER})-(?P<id>{_ID})(?P<suffix>\.[^-]+)", re.DOTALL)
# What stands between the base and the suffix of other shards that differ in their numbers alone.
_COUNTED_MIDDLE = re.compile(rf"-{_NUMBER}-of-[0-9]{{1,18}}")
_GROWN_MIDDLE = re.compile(f"-{_NUMBER}-{_ID}")
_NUMBERED_MIDDLE = re.compile("-[0-9]{5}")
_HADOOP = ("part", "part-r", "part-m")  # the stems of the files that Hadoop and Spark write
_DIGITS = re.compile("[0-9]+")
_END = "\0\0"  # of a part of a path, in `natural_key`: before all that may follow there
_OF_TOOL = r"(?s)\..*|_(SUCCESS|metadata|common_metadata|MANIFEST.*|SCHEMA(-.*)?\.json|RESUME-.*|.*\.staged)"
_WEB_ADDRESS = "(?i)https?://"
_EXTENSION = r"\.[A-Za-z_]\w*$"
_SPEC = r"(?s)(?P<stem>.*[^/])@(?:\*|(?P<count>[0-9]+))(?P<suffix>(?:\.[^@/]*)?)"


class ShardName:
    """The parts of a shard's file name: ``base-00001-of-00008suffix``, or ``base-00001suffix`` without a count.

    A shard that was added to a dataset has the id of its writing: ``base-00001-0123456789abcdefsuffix``.
    """

    __slots__ = ("base", "count", "count_text", "id", "index", "suffix", "width")

    def __init__(
        self, base: str, index: int, count: int | None, suffix: str, count_text: str, id: str = "", width: int = 5
    ) -> None:
        self.base = base
        self.index = index
        self.count = count
        self.suffix = suffix
        self.count_text = count_text  # as in the name
        self.id = id
        self.width = width  # digits that the numbers of all shards have at least

    @classmethod
    def parse(cls, name: str) -> ShardName | None:
        """Parse a file name; None if it has no shard number; a path is a ValueError.

        The forms are TensorFlow's ``train-00000-of-00008``, TFDS's ``mnist-train.tfrecord-00000-of-00008``, with a
        suffix at the end, ``train-00000-of-00008.tfrecord``, and without a count, if a record suffix follows,
        ``train-00000.tfrecord.gz``, or the name is that of Hadoop and Spark: ``part-r-00000``, ``part-00000.gz``.
        Shards that were added to a dataset have the id of their writing: ``train-00008-0123456789abcdef.tfrecord``.
        """
        if "/" in name:
            raise _path_error(name)
        match = _COUNTED_SHARD.fullmatch(name) if "-of-" in name else None
        if match is not None:
            index, count = match["index"], match["count"]
            # TensorFlow writes five digits, also of numbers below a count with more
            width = len(index) if index.startswith("0") else len(count) if count.startswith("0") else min(len(count), 5)
            return cls(
                match["base"], int(index), count=int(count), suffix=match["suffix"], count_text=count, width=width
            )
        match = _GROWN.fullmatch(name)
        if match is not None and CODECS.without_suffix(match["suffix"]).lower() in Registry.WRITTEN_SUFFIXES:
            return cls(
                match["base"], int(match["index"]), count=None, suffix=match["suffix"], count_text="", id=match["id"]
            )
        match = _NUMBERED.fullmatch(name)
        if match is None:
            return None
        suffix = CODECS.without_suffix(match["suffix"]).lower()
        is_hadoop = match["base"] in _HADOOP  # whose tasks may have longer numbers; in other names these may be dates
        if (is_hadoop and not suffix) or (
            suffix in Registry.WRITTEN_SUFFIXES and (is_hadoop or len(match["index"]) == 5)
        ):
            return cls(match["base"], int(match["index"]), count=None, suffix=match["suffix"], count_text="")
        return None

    @staticmethod
    def make(base: str, index: int, count: int | None, id: str = "") -> str:
        """The name of shard `index` of `count`, as TensorFlow names it; without a count if it is not known yet.

        A shard that is added to a dataset has the id of its writing instead of the count. A suffix may follow the name,
        and `base` may have a directory.

        >>> ShardName.make("out/train", 0, 8), ShardName.make("out/train", 0, None)
        ('out/train-00000-of-00008', 'out/train-00000')
        >>> ShardName.make("train", 8, None, "0123456789abcdef")
        'train-00008-0123456789abcdef'
        """
        if id:
            return f"{base}-{index:05d}-{id}"
        return f"{base}-{index:05d}" if count is None else f"{base}-{index:05d}-of-{count:05d}"

    @staticmethod
    def new_id() -> str:
        """An id for one writing of a dataset, of 16 hex digits."""
        return os.urandom(8).hex()

    @classmethod
    def first_spellings(cls, stem: str, count: int) -> Iterator[ShardName]:
        """The first shard of ``stem@count``, for each usual form of names, the most exact first.

        >>> [shard.sibling(0) for shard in ShardName.first_spellings("train", 2)][:3]
        ['train-00000-of-00002', 'train.tfrecord-00000-of-00002', 'train-00000-of-00002.tfrecord']
        """
        front = _strip_record_suffix(stem)
        suffix = stem[len(front) :]
        forms = [(stem, ""), (front, suffix)] if suffix else [(stem, ""), (f"{stem}.tfrecord", ""), (stem, ".tfrecord")]
        for compression in chain([""], (suffix for codec in CODECS for suffix in codec.suffixes[:1])):
            for base, end in forms:
                yield cls(base, 0, count=count, suffix=end + compression, count_text=f"{count:05d}")

    @classmethod
    def id_in(cls, path: str) -> str:
        """The id of the writing that added a shard, from its name with or without a directory; else no text."""
        shard = cls.parse(path.rpartition("/")[2])
        return "" if shard is None else shard.id

    @classmethod
    def with_id(cls, path: str, id: str) -> str:
        """The path of a shard that was added to a dataset, with the id of another writing.

        >>> ShardName.with_id("p=1/part-00008-0123456789abcdef.tfrecord", "1123456789abcdef")
        'p=1/part-00008-1123456789abcdef.tfrecord'
        """
        head, _, tail = path.rpartition(cls.id_in(path))
        return f"{head}{id}{tail}"

    @classmethod
    def dataset_of(cls, path: str) -> tuple[str, str] | None:
        """The directory and the name of the dataset that a file is a shard of; None for other files.

        >>> ShardName.dataset_of("data/train-00000-of-00008"), ShardName.dataset_of("data/notes.txt")
        (('data', 'train'), None)
        """
        directory, _, name = path.rpartition("/")
        shard = cls.parse(name)
        return None if shard is None else (directory, shard.stem)

    @staticmethod
    def numbers_of(present: Collection[int], count: int) -> range:
        """The numbers of a family of `count` shards, some of which are present: from 0, or from 1 as other tools count.

        They count from 1 if the one with the number `count` is there, and none has the number 0.

        >>> ShardName.numbers_of({1, 2, 3}, 3), ShardName.numbers_of({1, 2}, 3)
        (range(1, 4), range(0, 3))
        """
        return range(1, count + 1) if count in present and 0 not in present else range(count)

    @property
    def family(self) -> tuple[str, str]:
        """The part of a shard's name common to a dataset, whatever its compression and count."""
        return CODECS.without_suffix(self.base), CODECS.without_suffix(self.suffix)

    @property
    def stems(self) -> tuple[str, ...]:
        """The stems by which a shard spec may name this family: with and without its suffixes, the most exact first."""
        base, suffix = self.family
        stems = _stems(self.base + self.suffix, base + suffix)
        return tuple(dict.fromkeys((*stems[:-1], stems[-1] + self.suffix[len(suffix) :], stems[-1])))

    @property
    def stem(self) -> str:
        """The dataset's name, which is the same for all forms of its shards' names: the last of `stems`."""
        return _stem(self.base, self.suffix)

    def sibling(self, index: int) -> str:
        """Name of another shard of the same family, which has a count."""
        return f"{self.base}-{index:0{self.width}d}-of-{self.count_text}{self.suffix}"

    def is_like(self, name: str) -> bool:
        """True if a name differs in its numbers alone: it is a shard of the same dataset.

        To compare two names takes at most a quarter of the time of parsing one. A False says nothing.
        """
        if not (name.startswith(self.base) and name.endswith(self.suffix)):
            return False
        middle = _GROWN_MIDDLE if self.id else _NUMBERED_MIDDLE if self.count is None else _COUNTED_MIDDLE
        return middle.fullmatch(name, len(self.base), len(name) - len(self.suffix)) is not None

    def number_in(self, name: str) -> int:
        """The number in this shard's own name, or in a name for which `is_like` is true."""
        return int(name[len(self.base) + 1 : len(name) - len(self.suffix)].partition("-")[0])

    @property
    def pattern_of_similar(self) -> str:
        """A regular expression, as RE2 and `re` take it, for the names of which `is_like` is true."""
        middle = _GROWN_MIDDLE if self.id else _NUMBERED_MIDDLE if self.count is None else _COUNTED_MIDDLE
        return f"^{re.escape(self.base)}{middle.pattern}{re.escape(self.suffix)}$"

    def pattern(self, index: str) -> str:
        """A glob for the family, without its suffix; `index` stands for the numbers of one without a count."""
        return f"{glob.escape(self.base)}-{index if self.count is None else f'*-of-{self.count_text}'}"


@lru_cache(64)  # it takes as long as all else of a name, and all shards of a dataset have the same
def _stem(base: str, suffix: str) -> str:
    return _strip_record_suffix(CODECS.without_suffix(base) + CODECS.without_suffix(suffix))


def _stems(name: str, plain: str) -> tuple[str, ...]:
    """A dataset's name with and without its suffixes, the most exact first; `plain` has no compression suffix."""
    return tuple(dict.fromkeys((name, plain, _strip_record_suffix(plain))))


class ShardSpec(NamedTuple):
    """A dataset's name, with its suffix, and the number of its shards, None for any."""

    stem: str
    shards: int | None
    suffix_last: bool = False  # ``train@8.tfrecord``, for ``train-00000-of-00008.tfrecord``

    @classmethod
    def parse(cls, path: str) -> ShardSpec | None:
        """Parse ``train@8``, ``train@*``, ``train@8.tfrecord.gz`` or ``train@*.tfrecord``; None for other paths.

        >>> ShardSpec.parse("train@8.tfrecord"), ShardSpec.parse("logo@2.png")
        (ShardSpec(stem='train.tfrecord', shards=8, suffix_last=True), None)
        """
        match = re.fullmatch(_SPEC, path) if "@" in path else None
        suffix = "" if match is None else match["suffix"] or ""
        if match is None or FileName.split_suffixes("-" + suffix)[0] != "-":
            return None
        return cls(match["stem"] + suffix, int(match["count"]) if match["count"] else None, bool(suffix))


def is_id(text: str) -> bool:
    """True if a text is an id as of `ShardName.new_id`."""
    return re.fullmatch(_ID, text) is not None


class Kind(Enum):
    """The kind of a file of a directory, by its name: the first of these kinds that the name has the form of.

    Only the last five kinds share forms: a name can be that of an index, begin with a dot, and end as a sidecar's.
    """

    TEMPORARY = "a file or folder that is being written"
    STAGED = "a shard that waits until it is published, or a fence"
    PART = "the description of a staged file"
    CONDITION = "the object by which a bucket is asked whether it heeds conditions"
    JOURNAL = "the journal of a conversion that can be resumed"
    MANIFEST = "the manifest of a dataset"
    SCHEMA = "the saved schema of files that have none of their own"
    CLAIM = "the claim of a writer that adds to a dataset, in a folder of claims"
    MANIFEST_PART = "a part of a manifest, in a folder of its parts"
    INDEX = "the index of a file of records"
    HIDDEN = "a file without data, of another tool"
    SIDECAR = "a file beside data, of another tool"
    RECORDS = "a file that is read as data when its directory is read"
    OTHER = "another file"


class FileName:
    """A file's name in its directory, with what the name says: each fact is worked out when it is asked for.

    Attributes
    ----------
    name : str
        Without a directory.
    folder : str
        The name of the directory, which distinguishes claims from other files; empty if it does not matter.

    Examples
    --------
    >>> FileName.parse("train-00001-of-00008.index").kind, FileName.parse("_MANIFEST-train.json").dataset
    (<Kind.INDEX: 'the index of a file of records'>, 'train')
    """

    DIRECTORY_STEM: ClassVar = "part"  # of shards written to a directory
    INDEX_SUFFIX: ClassVar = ".index"  # of the index that a writer adds for a shard
    COLUMN_INDEX_SUFFIX: ClassVar = ".column_index"
    INDEX_SUFFIXES_OF_TOOLS: ClassVar = (".tfindex", ".idx")
    SIDECAR_SUFFIXES: ClassVar = (
        INDEX_SUFFIX,
        COLUMN_INDEX_SUFFIX,
        *INDEX_SUFFIXES_OF_TOOLS,
        *(".json", ".txt", ".pbtxt", ".classes", ".md5"),
    )
    MANIFEST_PREFIX: ClassVar = "_MANIFEST"  # of all manifests
    MANIFEST_PATTERN: ClassVar = "_MANIFEST*.json"
    SCHEMA_PREFIX: ClassVar = "_SCHEMA"  # of all saved schemas

    MOST_BYTES: ClassVar = 255  # on most filesystems

    __slots__ = ("_kind", "folder", "name")

    def __init__(self, name: str, folder: str = "") -> None:
        self.name = name
        self.folder = folder
        self._kind: Kind | None = None  # once it was asked for

    @classmethod
    def parse(cls, name: str) -> FileName:
        """Take the name of a file or folder; a path is a ValueError.

        The files that a manifest names are not asked for their kind, which is known: `ShardName` is enough for them.
        """
        if "/" in name:
            raise _path_error(name)
        return cls(name)

    @classmethod
    def of_path(cls, path: str) -> FileName:
        """The name of the file at a path.

        >>> FileName.of_path("data/_APPEND-train/0123456789abcdef.claim").dataset
        'train'
        """
        folder, _, name = path.rpartition("/")
        return cls(name, folder.rpartition("/")[2])

    @staticmethod
    def of_shard(base: str, index: int, count: int) -> str:
        """The name of shard `index` of `count`; a suffix may follow, and `base` may have a directory."""
        return ShardName.make(base, index, count)

    @staticmethod
    def new_id() -> str:
        """An id for one writing of a dataset, of 16 hex digits."""
        return ShardName.new_id()

    @property
    def is_records(self) -> bool:
        """True if it is the name of a file of records."""
        return self.kind is Kind.RECORDS

    @staticmethod
    def without_query(path: str) -> str:
        """The path; of a web address without its query and fragment.

        >>> FileName.without_query("https://example.com/a.csv?token=x.y"), FileName.without_query("a?.csv")
        ('https://example.com/a.csv', 'a?.csv')
        """
        is_address = "://" in path and re.match(_WEB_ADDRESS, path) is not None
        return re.split("[?#]", path, maxsplit=1)[0] if is_address else path

    @staticmethod
    def without_compression(path: str) -> str:
        """The path in lower case, without the query of a web address and the suffix of a compression."""
        return CODECS.without_suffix(FileName.without_query(path).lower())

    # ---- what writers make next to the shards; all of these names are hidden, except for claims and indexes

    @staticmethod
    def manifest(stem: str) -> str:
        """The name of a dataset's manifest.

        >>> FileName.manifest("part"), FileName.manifest("train")
        ('_MANIFEST.json', '_MANIFEST-train.json')
        """
        return "_MANIFEST.json" if stem == FileName.DIRECTORY_STEM else f"_MANIFEST-{stem}.json"

    @staticmethod
    def manifests_beside(manifest: str, names: Iterable[str]) -> list[str]:
        """Filter the names in a directory to those of manifests but one; of 100,000 folders, few are looked at.

        >>> names = ["_MANIFEST", "_MANIFEST.json", "day=3", "_MANIFEST-train.json"]
        >>> FileName.manifests_beside("_MANIFEST.json", names)
        ['_MANIFEST-train.json']
        """
        likely = [name for name in names if name.startswith(FileName.MANIFEST_PREFIX) and name != manifest]
        return [name for name in likely if FileName.parse(name).kind is Kind.MANIFEST]

    @staticmethod
    def manifest_part(stem: str, id: str) -> str:
        """The name of a part of a dataset's manifest, in a folder of its own.

        >>> FileName.manifest_part("part", "0123456789abcdef"), FileName.manifest_part("train", "0123456789abcdef")
        ('_MANIFEST/0123456789abcdef.arrow.zst', '_MANIFEST-train/0123456789abcdef.arrow.zst')
        """
        folder = _MANIFEST_PARTS if stem == FileName.DIRECTORY_STEM else f"{_MANIFEST_PARTS}-{stem}"
        return f"{folder}/{id}{_MANIFEST_PART_SUFFIX}"

    @classmethod
    def saved_schema(cls, stem: str = DIRECTORY_STEM) -> str:
        """The name of the saved schema of a file or of the shards of a dataset; by default of a whole directory.

        >>> FileName.saved_schema(), FileName.saved_schema("train"), FileName.saved_schema("a.tfrecord")
        ('_SCHEMA.json', '_SCHEMA-train.json', '_SCHEMA-a.tfrecord.json')
        """
        return f"{cls.SCHEMA_PREFIX}.json" if stem == FileName.DIRECTORY_STEM else f"{cls.SCHEMA_PREFIX}-{stem}.json"

    @staticmethod
    def staged(id: str, number: int, part: int | None = None) -> str:
        """The name of a staged file: a shard that waits until it is published.

        Its `number` is that of the shard, or of the task that wrote it. If a task writes several files, each has a
        `part`.

        >>> FileName.staged("0123456789abcdef", 3), FileName.staged("0123456789abcdef", 123456, 1)
        ('_0123456789abcdef-00003.staged', '_0123456789abcdef-123456-00001.staged')
        """
        return f"_{id}-{number:05d}{'' if part is None else f'-{part:05d}'}.staged"

    @classmethod
    def fence(cls, id: str) -> str:
        """The name of the file that exists while a writing may remove files whose names others may give again.

        It is that of a staged file, of which it takes the place: none of a whole dataset has a part.

        >>> FileName.fence("0123456789abcdef")
        '_0123456789abcdef-00000-00000.staged'
        """
        return cls.staged(id, 0, 0)

    @staticmethod
    def part(staged: str) -> str:
        """The name of the description of a staged file, for ``convert(resume=True)``.

        >>> FileName.part("_0123456789abcdef-00003.staged")
        '_0123456789abcdef-00003.json'
        """
        return staged.removesuffix(".staged") + ".json"

    @staticmethod
    def journal(stem: str) -> str:
        """The name of the journal of ``convert(resume=True)``."""
        return f"_RESUME-{stem}.json"

    @staticmethod
    def claim(stem: str, id: str) -> str:
        """The name of the claim of a writer that adds to a dataset, in a folder of its own.

        >>> FileName.claim("train", "0123456789abcdef")
        '_APPEND-train/0123456789abcdef.claim'
        """
        return f"{_CLAIMS}{stem}/{id}{_CLAIM_SUFFIX}"

    @staticmethod
    def condition(id: str) -> str:
        """The name of the object by which a bucket is asked whether it heeds conditions."""
        return f"_{id}.condition"

    @staticmethod
    def temporary(name: str) -> str:
        """A new name for a temporary file or folder, to stand next to the file or folder `name`."""
        return f".{name[:_MOST_SHOWN]}.{ShardName.new_id()}.tmp"

    @classmethod
    def indexes(cls, path: str) -> list[str]:
        """The paths of the indexes that a writer may have made of a file."""
        return [path + cls.INDEX_SUFFIX, path + cls.COLUMN_INDEX_SUFFIX]

    @classmethod
    def all_indexes(cls, path: str) -> list[str]:
        """Like `indexes`, with index files of other tools."""
        return [*cls.indexes(path), *(path + suffix for suffix in cls.INDEX_SUFFIXES_OF_TOOLS)]

    # ---- what a name says

    @staticmethod
    def split_suffixes(path: str) -> tuple[str, str, str]:
        """Split a name, or a path, into (without suffixes, record suffix, compression suffix).

        >>> FileName.split_suffixes("out/train.tfrecord.gz"), FileName.split_suffixes("out/train")
        (('out/train', '.tfrecord', '.gz'), ('out/train', '', ''))
        """
        plain = CODECS.without_suffix(path)
        front = _strip_record_suffix(plain)
        return front, plain[len(front) :], path[len(plain) :]

    @property
    def stems(self) -> tuple[str, ...]:
        """The name with and without its suffixes, by which a dataset of this name may be called, the most exact first.

        >>> FileName.parse("train.tfrecord.gz").stems
        ('train.tfrecord.gz', 'train.tfrecord', 'train')
        """
        return _stems(self.name, CODECS.without_suffix(self.name))

    @property
    def kind(self) -> Kind:
        """The first kind that the name has the form of, in the order of `Kind`."""
        if self._kind is None:
            self._kind = self._find_kind()
        return self._kind

    def _find_kind(self) -> Kind:
        name = self.name
        if self.is_hidden:
            return self._hidden_kind()
        if name.endswith(_CLAIM_SUFFIX) and self.folder.startswith(_CLAIMS) and re.fullmatch(_CLAIM, name) is not None:
            return Kind.CLAIM
        if self._is_in_parts and re.fullmatch(_MANIFEST_PART, name) is not None:
            return Kind.MANIFEST_PART
        if self.is_sidecar:
            return Kind.INDEX if self._is_index() else Kind.SIDECAR
        return Kind.RECORDS if self._is_of_records() else Kind.OTHER

    def _hidden_kind(self) -> Kind:
        name = self.name
        for kind, begin, end, form in _HIDDEN_FORMS:
            if name.startswith(begin) and name.endswith(end) and re.fullmatch(form, name) is not None:
                return kind
        return Kind.INDEX if self._is_index() else Kind.HIDDEN

    @property
    def _is_in_parts(self) -> bool:
        return self.folder == _MANIFEST_PARTS or self.folder.startswith(f"{_MANIFEST_PARTS}-")

    def _is_index(self) -> bool:
        return self.name.endswith((self.INDEX_SUFFIX, self.COLUMN_INDEX_SUFFIX))

    def _is_of_records(self) -> bool:
        plain = CODECS.without_suffix(self.name)
        shard = ShardName.parse(plain)
        if shard is None:
            return plain.lower().endswith(Registry.RECORD_SUFFIXES)
        plain = CODECS.without_suffix(shard.base) + shard.suffix
        if not shard.suffix and not re.search(_EXTENSION, plain):
            return True  # "train-00000-of-00008", but not a checkpoint's "model.data-00000-of-00001"
        return plain.lower().endswith(Registry.WRITTEN_SUFFIXES)

    @property
    def is_hidden(self) -> bool:
        """True if the name, of any kind, has the form of files without data: ``_SUCCESS``, ``.part.tmp``."""
        return self.name.startswith(("_", "."))

    @property
    def is_sidecar(self) -> bool:
        """True if the name, of any kind, ends as that of a file beside data: ``a.index``, ``_MANIFEST.json``."""
        return self.name.lower().endswith(self.SIDECAR_SUFFIXES)

    @property
    def is_of_tool(self) -> bool:
        """True if globs skip a file of this name; they may match other names with a leading ``_``."""
        return re.fullmatch(_OF_TOOL, self.name) is not None or self.kind in (Kind.PART, Kind.MANIFEST_PART)

    @property
    def of(self) -> str | None:
        """The file that an index is of, or the staged file that a part describes; None for other kinds."""
        kind = self.kind
        if kind is Kind.INDEX:
            return self.name.rpartition(".")[0]
        return self.name.removesuffix(".json") + ".staged" if kind is Kind.PART else None

    @property
    def shard(self) -> ShardName | None:
        """The number of a shard in the name, whatever its kind; None without one."""
        return ShardName.parse(self.name)

    @property
    def dataset(self) -> str | None:
        """The dataset of a shard, an index of one, a manifest, a part of it, a saved schema, a journal or a claim.

        None for other files.

        A saved schema of one file has the name of the file.
        """
        kind = self.kind
        if kind is Kind.CLAIM:
            return self.folder.removeprefix(_CLAIMS)
        if kind is Kind.MANIFEST_PART:
            return self.folder.removeprefix(_MANIFEST_PARTS).removeprefix("-") or FileName.DIRECTORY_STEM
        if kind in (Kind.MANIFEST, Kind.SCHEMA):
            match = re.fullmatch(_MANIFEST if kind is Kind.MANIFEST else _SCHEMA, self.name)
            return FileName.DIRECTORY_STEM if match is None else match["stem"] or FileName.DIRECTORY_STEM
        if kind is Kind.JOURNAL:
            match = re.fullmatch(_JOURNAL, self.name)
            return None if match is None else match["stem"]
        shard = self._shard_of(kind)
        return None if shard is None else shard.stem

    @property
    def id(self) -> str:
        """The id of the writing that a shard, an index of one, a claim or a hidden file is of; else no text."""
        kind = self.kind
        if kind in _WITH_ID:
            match = re.search(_ID, self.name)
            return "" if match is None else match[0]
        shard = self._shard_of(kind)
        return "" if shard is None else shard.id

    def _shard_of(self, kind: Kind) -> ShardName | None:
        """The shard that a file of this kind is, or is about."""
        return self.shard if kind is not Kind.INDEX else ShardName.parse(self.name.rpartition(".")[0])


_HIDDEN_FORMS = (  # with the begin and the end of each, which are compared first: no name has two of the forms
    (Kind.TEMPORARY, ".", ".tmp", _TEMPORARY),
    (Kind.STAGED, "_", ".staged", _STAGED),
    (Kind.CONDITION, "_", ".condition", _CONDITION),
    (Kind.JOURNAL, "_RESUME-", ".json", _JOURNAL),
    (Kind.MANIFEST, "_MANIFEST", ".json", _MANIFEST),
    (Kind.SCHEMA, "_SCHEMA", ".json", _SCHEMA),
    (Kind.PART, "_", ".json", _PART),
)
_WITH_ID = frozenset({Kind.STAGED, Kind.PART, Kind.CONDITION, Kind.CLAIM, Kind.MANIFEST_PART})


def _path_error(name: str) -> ValueError:
    return ValueError(f"'{name}' is a path: expected the name of a file in its directory")


def natural_key(path: str) -> tuple[str, str]:
    """Sort key by which ``file9`` comes before ``file10``.

    A sort holds the keys of all files, so it is one text: a number is a zero, the count of its digits, and these.
    """
    return _DIGITS.sub(_number_key, path.replace("/", _END)), path


def _number_key(match: re.Match[str]) -> str:
    digits = match[0].lstrip("0")
    return f"\0{chr(1 + len(digits))}{digits}"


def _strip_record_suffix(name: str) -> str:
    suffix = next(filter(name.lower().endswith, Registry.WRITTEN_SUFFIXES), "")
    return name[: len(name) - len(suffix)]
