"""Resolve a path to the file or files to write."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

from tfrecord_io.base import Registry, StorageOptions, for_cli, printable
from tfrecord_io.bytes import CODECS
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem, existing_files
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, ShardSpec

if TYPE_CHECKING:
    from tfrecord_io.store.read.source import Source

_SUFFIX = ".tfrecord"  # added to shard names that need a suffix

_ONE_FILE = (
    "which is always written as a whole; append to a directory ('name/') or to shards "
    "('name@*'); {} makes the first shard from a file"
)
_EXTENSION = re.compile(r"\.(?!v[0-9]+$)([a-z_]\w*|7z)")  # "model.v2" is a version
_SIMILARITY = 0.7  # of difflib: "parq" and "parquet" have 0.73


class OtherSuffix(NamedTuple):
    """The suffix of a name that is not TFRecord's."""

    suffix: str
    is_known: bool  # a format of this package has it

    @classmethod
    def of_path(cls, path: str) -> OtherSuffix | None:
        """The suffix that the name of a file, dataset or directory has, if it is not one of TFRecord; None without one.

        It is in lower case, and not that of a compression. One that no format of this package has begins with a letter.
        Versions are none, nor are numbers, dates and names of event files.

        >>> tuple(OtherSuffix.of_path("out/m.csv.gz")), tuple(OtherSuffix.of_path("m.parq-0-of-8"))
        (('.csv', True), ('.parq', False))
        >>> [OtherSuffix.of_path(name) for name in ("m", "m.tfrecord", "m.v2", "m.2024-01-01", "m.1", "a.b/m")]
        [None, None, None, None, None, None]
        """
        name = FileName.without_query(path).rstrip("/").rpartition("/")[2]
        spec = ShardSpec.parse(name)
        plain = FileName.without_compression(name if spec is None else spec.stem)
        shard = ShardName.parse(plain)
        base = plain if shard is None else FileName.without_compression(shard.base) + shard.suffix
        suffix = os.path.splitext(base)[1]
        if not suffix or suffix in Registry.RECORD_SUFFIXES:
            return None
        from tfrecord_io.bytes import FORMATS

        if FORMATS.of_path(f"x{suffix}") is not None:
            return cls(suffix, is_known=True)
        is_event_file = ".tfevents." in f"{path.rpartition('/')[2]}."
        is_none = not _EXTENSION.fullmatch(suffix) or suffix in Registry.WRITTEN_SUFFIXES or is_event_file
        return None if is_none else cls(suffix, is_known=False)

    @classmethod
    def check_none(cls, path: str) -> None:
        """Refuse the name of a file of another format as that of a TFRecord file."""
        if (other := cls.of_path(path)) is not None:
            raise other.error(path)

    def error(self, path: str) -> ValueError:
        """The error of a path of a TFRecord file that has this suffix."""
        from tfrecord_io.bytes import FORMATS

        is_other = "is the suffix of another format" if self.is_known else "is not a suffix of its files"
        similar = self.suffix if self.is_known else self.similar
        text = f"'{printable(path)}': this writes TFRecord, and {self.suffix} {is_other}; end the name in {_SUFFIX}"
        row = None if similar is None else FORMATS.of_path(f"x{similar}")
        if row is None or not row.is_target:
            return ValueError(text)
        advice = f"makes {similar} files of TFRecord files"
        return for_cli(ValueError(f"{text}; tfr.convert {advice}"), f"{text}; tfr convert {advice}")

    @property
    def similar(self) -> str | None:
        """The suffix of a format, or of TFRecord, that this one was probably meant to be.

        >>> [OtherSuffix(suffix, is_known=False).similar for suffix in (".parq", ".jsonlines", ".tfrecrod", ".zip")]
        ['.parquet', '.jsonl', '.tfrecord', None]
        """
        from difflib import get_close_matches

        from tfrecord_io.bytes import FORMATS

        known = {each[1:]: each for each in (*Registry.WRITTEN_SUFFIXES, *FORMATS.suffixes()) if each.startswith(".")}
        return next((known[name] for name in get_close_matches(self.suffix[1:], known, 1, _SIMILARITY)), None)


class Output:
    """Where a writer writes: one file, or the shards of a dataset."""

    OtherFormat = OtherSuffix

    MOST_SHARDS: ClassVar = 100_000  # so that names with five digits sort correctly

    def __init__(
        self,
        path: str,
        sharded: bool = False,
        count: int | None = 1,
        max_shard_bytes: int | None = None,
        compression: str | None = None,
        file: Any = None,
        directory: bool = False,
        base: str = "",
        suffix: str = "",
        grows: bool = False,
        inferred: bool = False,
        first: int = 0,
        id: str = "",
        entry: Entry | None = None,
    ) -> None:
        self.path = path  # for messages
        self.sharded = sharded  # else one file, or a file object
        self.count = count  # number of shards, if it is known before writing
        self.max_shard_bytes = max_shard_bytes  # a record that would make the uncompressed shard larger starts another
        self.compression = compression  # name of the codec of the shards
        self.file = file
        self.directory = directory  # the path is a directory, which is read as a whole
        self.base = base  # of the shards' names, in `path`'s form
        self.suffix = suffix
        self.grows = grows  # the shards are added to those of the dataset, under names that have the id of the writing
        self.inferred = inferred  # neither the path nor the caller states the compression
        self.first = first  # number of the first shard that is added
        self.id = id
        self.entry = entry  # of one file: what had its name when the path was resolved

    def replace(self, **attributes: Any) -> Self:
        """Copy this output with other values of these attributes."""
        return type(self)(**{**vars(self), **attributes})

    def shard(self, index: int) -> str:
        """Path of one shard, for `tfrecord_io.store.write.atomic.open_output`."""
        if index >= Output.MOST_SHARDS:
            raise ValueError(f"'{self.path}': more than {Output.MOST_SHARDS} shards; pass a larger max_shard_bytes=")
        if self.grows:
            return ShardName.make(self.base, self.first + index, None, self.id or "0" * 16) + self.suffix
        return ShardName.make(self.base, index, self.count) + self.suffix

    def added_by(self, id: str, first: int, compression: str | None) -> Output:
        """The output of a writing that adds shards, from number `first` on, in the dataset's compression."""
        if not self.inferred or compression is None:
            return self.replace(id=id, first=first)
        codec = CODECS.find(compression)
        suffix = self.suffix + ("" if codec is None else codec.suffixes[0])
        return self.replace(id=id, first=first, compression=compression, suffix=suffix)

    @property
    def folder(self) -> str:
        """The directory of the shards, with its slash, as users write it."""
        return self.base[: len(self.base) - len(self.base.rpartition("/")[2])]

    @property
    def stem(self) -> str:
        """The dataset's name, without directory; see `tfrecord_io.store.paths.file_names.ShardName.stem`."""
        shard = ShardName.parse(self.shard(0).rpartition("/")[2])
        assert shard is not None
        return shard.stem

    @staticmethod
    def resolve(
        path: Any,
        storage: StorageOptions = StorageOptions.DEFAULT,
        *,
        shards: int | None = None,
        max_shard_bytes: int | None = None,
        compression: str | None = "infer",
        grows: bool = False,
        stated: bool = False,
    ) -> Output:
        """Resolve a path to write; nothing is created. With `grows`, its shards are added to those of a dataset.

        A name with a suffix that is not TFRecord's is refused. Where the caller has `stated` that it is TFRecord, or it
        is a directory, only suffixes of formats that this package knows are refused.

        An existing directory, or a path that ends in "/", gets shards ``part-00000-of-00008.tfrecord``; so does, if it
        `grows`, a new `pathlib.Path` without the suffix of a file, as it cannot end in "/". ``name@8`` means shards
        ``name-00000-of-00008``, and ``name@8.tfrecord`` shards ``name-00000-of-00008.tfrecord``, unless a file of
        exactly this name exists. Any other path is a file, or with `shards` or `max_shard_bytes` the base of shards;
        with `max_shard_bytes` their names have no count: ``name-00000.tfrecord``. `compression` is that of shards,
        whose names get its suffix; "infer" uses the suffix in `path`. Arguments that contradict each other are a
        ValueError, shards next to a file of this name a FileExistsError.

        >>> output = Output.resolve("out/train@2")
        >>> [output.shard(i) for i in range(output.count)]
        ['out/train-00000-of-00002', 'out/train-00001-of-00002']
        """
        if shards is not None and max_shard_bytes is not None:
            error = ValueError(
                "shards= fixes the number of files, max_shard_bytes= leaves it open: pass only one of them"
            )
            raise for_cli(
                error, "--shards fixes the number of files, --max-shard-bytes leaves it open: pass only one of them"
            )
        if hasattr(path, "write"):
            if grows:
                raise ValueError(f"mode='append': a file object is one file, {_ONE_FILE.format('tfr.merge')}")
            if shards is not None or max_shard_bytes is not None:
                raise ValueError("a file object is one file: shards= and max_shard_bytes= need a path")
            return Output(f"<{type(path).__name__}>", file=path)
        if not isinstance(path, (str, os.PathLike)):
            raise no_output_path(path)
        text = Location.text_of(path)
        location = Location.of(path, storage)
        location.check_writable()
        fs, name = location
        other = OtherSuffix.of_path(text)
        if other is not None and other.is_known:  # before the first request
            raise other.error(text)
        request = _Request(
            fs=fs,
            name=name,
            text=text,
            shards=shards,
            max_shard_bytes=max_shard_bytes,
            compression=compression,
            grows=grows,
            is_path_object=not isinstance(path, str),
        )
        entry = None if grows and text.endswith("/") else fs.entry(name)
        is_directory = request.is_directory(entry)
        if other is not None and not stated and not is_directory:
            raise other.error(text)
        spec = ShardSpec.parse(text) if entry is None and not is_directory else None
        if is_directory:
            output = _shards_in_directory(request)
        elif spec is not None:
            output = _shards_of_spec(request, spec)
        else:
            output = _file_or_shards(request, entry)
        if output.sharded and not isinstance(fs, LocalFileSystem) and "//" in name.rstrip("/"):
            reason = (
                "names of shards in a bucket must not have empty parts ('//'), as listings do not show these objects"
            )
            raise ValueError(f"'{printable(text)}': {reason}; choose another name")
        return output

    @staticmethod
    def directory_of_folders(
        path: Any, option: str, option_cli: str, advice: str = "pass a directory, as in 'name/'"
    ) -> str:
        """The directory, with its slash, for the folders of `option`, which the command calls `option_cli`.

        >>> Output.directory_of_folders("out/visits", "partition_by=", "--partition-by")
        'out/visits/'
        """
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"{option} writes to a directory, not to a {type(path).__name__}")
        text = os.fspath(path)
        if ShardSpec.parse(text) is not None or FileName.of_path(text).kind is Kind.RECORDS:
            name, reason = printable(text), "this is a directory, and not the name of a file or of shards"
            error = ValueError(f"'{name}': with {option} {reason}; {advice}")
            raise for_cli(error, f"'{name}': with {option_cli} {reason}; {advice}")
        return text if text.endswith("/") else f"{text}/"

    @staticmethod
    def check_outside(
        src: Any, source: StorageOptions, target: Any, storage: StorageOptions, sources: Sequence[Source] = ()
    ) -> None:
        """Refuse to write TFRecord files into a directory that is read: later readers would read them with the dataset.

        `src` are paths, `sources` the files that were found; those of a manifest are of its directory, however they
        were named.

        Raises
        ------
        ValueError
            `target` would be a file of such a directory, or of folders of columns in it.
        """
        if not isinstance(target, str | os.PathLike):
            return
        location = Location.of(target, storage)
        fs, name = location
        store, path = location.identity
        paths = src if isinstance(src, list | tuple) else [src]
        read = {Location.of(path, source).identity for path in paths if isinstance(path, str | os.PathLike)}
        versions = {id(s.shard.manifest): s.shard.manifest for s in sources if s.shard is not None}
        of_directory = FileName.manifest(FileName.DIRECTORY_STEM)
        for version in versions.values():
            if version.name.endswith(f"/{of_directory}"):
                read.add(Location(version.fs, version.name.removesuffix(of_directory)).identity)
        for _, directory in [each for each in read if each[0] == store and path.startswith(f"{each[1]}/")]:
            entry = fs.entry(name)
            is_directory = os.fspath(target).endswith("/")  # of which names in buckets have no slash
            inside = f"{path}/part" if is_directory or (entry is not None and entry.directory) else path
            if ColumnFolder.has_only(inside, f"{directory}/"):
                reason = "is in the directory of a dataset that is read, and would be read with it from then on"
                raise ValueError(f"'{printable(os.fspath(target))}' {reason}; choose another directory")

    @staticmethod
    def check_named(path: str | os.PathLike[str], storage: StorageOptions) -> None:
        """Refuse to write one TFRecord file into the directory of a dataset, or a folder of it: see `unnamed_error`."""
        fs, name = Location.of(path, storage)
        base = name.rpartition("/")[2]
        if not fs.can_list or FileName.parse(base).kind is not Kind.RECORDS:
            return
        directory = name.removesuffix(base)
        places = [directory, *ColumnFolder.roots_of(directory)]
        for manifest in existing_files(
            fs, [place + FileName.manifest(FileName.DIRECTORY_STEM) for place in places]
        ).values():
            raise unnamed_error(fs.display_path(manifest.parent), fs.display_path(name))

    @staticmethod
    def of_names(path: str, base: str, names: tuple[str, ...]) -> Output:
        """The shards of a dataset with given names; `base` is its directory and name, `path` names it in messages."""
        return NamedShards(path, names=names, sharded=True, count=len(names), base=base)

    def location(self, storage: StorageOptions) -> Location:
        """The directory of the shards, with its slash, in its filesystem."""
        fs, base = Location.of(self.base, storage)
        return Location(fs, base[: len(base) - len(base.rpartition("/")[2])])

    def absolute(self, storage: StorageOptions) -> Output:
        """A copy with an absolute path, for processes with another working directory."""
        if storage.filesystem is None and not Location.is_url(self.base):
            return self.replace(base=os.path.abspath(self.base))
        return self


class NamedShards(Output):
    """The shards of a dataset with given names, of which some may be missing; `base` is its directory and name."""

    def __init__(self, path: str, *, names: tuple[str, ...], **attributes: Any) -> None:
        super().__init__(path, **attributes)
        self.names = names

    @property
    def stem(self) -> str:
        return self.base.rpartition("/")[2]

    def shard(self, index: int) -> str:
        return self.folder + self.names[index]


def no_output_path(got: object) -> TypeError:
    """The error for a path to write to that is neither a path nor a file."""
    is_data = isinstance(got, Mapping) or hasattr(got, "__arrow_c_stream__") or hasattr(got, "__array__")
    order = "; the data comes first, as in write_tfrecord(data, path)" if is_data else ""
    return TypeError(f"path is a str, a PathLike or a binary file object, not {type(got).__name__}{order}")


def unnamed_error(directory: str, path: str) -> FileExistsError:
    """The error for a file that would be put into the directory of a dataset, whose readers would not see it."""
    reason = f"a dataset, whose manifest would not name '{printable(path)}'"
    text = f"{reason}; choose another directory, or append to it by"
    error = FileExistsError(errno.EEXIST, f"{text} tfr.convert(source, directory, mode='append')", directory)
    return for_cli(error, f"{text} tfr convert SOURCE DIRECTORY --mode append")


class _Request(NamedTuple):
    """A path to write, and the shards that are to be there; see `Output.resolve`."""

    fs: FileSystem
    name: str  # of the path in `fs`
    text: str  # the path as the caller wrote it
    shards: int | None = None
    max_shard_bytes: int | None = None
    compression: str | None = "infer"
    grows: bool = False
    is_path_object: bool = False  # a `pathlib.Path`, which cannot end in "/"

    @property
    def has_shards(self) -> bool:
        """True if the caller asks for shards, by their number or their size."""
        return self.shards is not None or self.max_shard_bytes is not None

    def is_directory(self, entry: Entry | None) -> bool:
        """True if the path, at which there is this `entry`, is a directory, or a new one if a dataset begins there."""
        if self.text.endswith("/"):
            return True
        if entry is not None:
            return entry.directory
        may_begin = self.grows and self.is_path_object and FileName.split_suffixes(self.name)[1:] == ("", "")
        if not may_begin or self.has_shards:
            return False
        from tfrecord_io.store.paths.manifest import is_dataset

        return ShardSpec.parse(self.text) is None and not is_dataset(self.fs, self.name)

    def base_of(self, name: str, text: str) -> str:
        """The base of paths that are passed to `Location.of` again: "~" is expanded here, URLs stay unchanged."""
        return name if isinstance(self.fs, LocalFileSystem) and "://" not in text else text


def _shards_in_directory(request: _Request) -> Output:
    """The shards in a directory: one, unless the request says otherwise."""
    directory = request.base_of(request.name, request.text)
    base = (directory if directory.endswith("://") else directory.rstrip("/") + "/") + FileName.DIRECTORY_STEM + _SUFFIX
    count = request.shards or (None if request.max_shard_bytes else 1)
    return _named_shards(request, base, count, in_directory=True)


def _shards_of_spec(request: _Request, spec: ShardSpec) -> Output:
    """The shards of a path such as ``name@8``."""
    text, shards, max_shard_bytes = request.text, request.shards, request.max_shard_bytes
    stem, count, suffix_last = spec
    if count == 0:
        raise ValueError(f"'{text}' asks for 0 shards")
    if (shards is not None and count not in (None, shards)) or (max_shard_bytes is not None and count is not None):
        name, value = ("max_shard_bytes", max_shard_bytes) if shards is None else ("shards", shards)
        error = ValueError(f"'{text}' and {name}={value!r} contradict each other")
        raise for_cli(error, f"'{text}' and --{name.replace('_', '-')} {value} contradict each other")
    if request.grows and count is None and max_shard_bytes is None:
        shards = shards or 1
    if count is None and shards is None and max_shard_bytes is None:
        reason = f"'{text}' leaves the number of shards open; pass"
        error = ValueError(f"{reason} shards= or max_shard_bytes=")
        raise for_cli(error, f"{reason} --shards or --max-shard-bytes")
    return _named_shards(request, request.base_of(stem, stem), count or shards, suffix_last=suffix_last)


def _file_or_shards(request: _Request, entry: Entry | None) -> Output:
    """One file, at which there is this `entry`; or shards, if the request asks for them or the path has a dataset."""
    count = request.shards
    if not request.has_shards:
        if not request.grows:
            return Output(request.text, entry=entry)
        from tfrecord_io.store.paths.manifest import is_dataset

        if entry is not None or not is_dataset(request.fs, request.name):
            reason = f"'{printable(request.text)}': mode='append': this path is one file, "
            error = ValueError(reason + _ONE_FILE.format("tfr.merge"))
            raise for_cli(error, reason + _ONE_FILE.format("tfr merge"))
        count = 1
    if entry is not None:
        reason = "a file of exactly this name exists, which would be read instead of the shards"
        path = request.fs.display_path(request.name)
        raise FileExistsError(errno.EEXIST, f"{reason}; delete it, or choose another name", path)
    return _named_shards(request, request.base_of(request.name, request.text), count)


def _named_shards(
    request: _Request, base: str, count: int | None, *, in_directory: bool = False, suffix_last: bool = False
) -> Output:
    """Shards are named as by TensorFlow, with the count last; in a directory, or without a count, suffixes are last."""
    if count is not None and count > Output.MOST_SHARDS:
        raise ValueError(f"'{request.text}': {count} shards; expected at most {Output.MOST_SHARDS}")
    infers = request.compression == "infer"
    codec = CODECS.of_path(base) if infers else CODECS.find(request.compression)
    front, record, packed = FileName.split_suffixes(base)
    added = "" if codec is None or packed else codec.suffixes[0]
    if count is None or in_directory or suffix_last or request.grows:
        if not record.startswith("."):  # "_tfrecord", or no suffix, only works before a number
            front, record = front + record, _SUFFIX
        base, added = front, record + (packed or added)
    output = Output(
        request.text,
        sharded=True,
        count=count,
        max_shard_bytes=request.max_shard_bytes,
        compression=None if codec is None else codec.name,
        directory=in_directory,
        base=base,
        suffix=added,
        grows=request.grows,
        inferred=request.grows and infers and codec is None,
    )
    if re.search("[\\\\\ud800-\udfff]", output.stem):  # not valid in a manifest
        reason = "names of shards must be UTF-8 without backslashes"
        raise ValueError(f"'{printable(request.text)}': {reason}; choose another name")
    return output
