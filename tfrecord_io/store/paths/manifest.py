"""The format of manifests: the files of a sharded dataset with their records, sizes and checksums.

A manifest is a JSON object in the directory of the files: ``_MANIFEST.json`` for the dataset ``part``, the default name
in a directory, and ``_MANIFEST-train.json`` for ``train``, so that each dataset of a directory has one::

    {"format": "tfrecord_io manifest", "version": 1, "id": 16 hex digits, different for each writing,
     "dataset": "train", "complete": true, "compression": null or a codec's name,
     "records": sum, "bytes": sum, "schema": base64 of the content of field 21574 (the embedded schema), or null,
     "files": [{"path": "train-00000-of-00008", "records": 125, "bytes": 81920,
                "crc32c": 8 hex digits, of the file's bytes}, …]}

A dataset that was written with ``partition_by=`` also has "partition_by", the names of these columns, and
"partition_schema", base64 of an Arrow schema with their types; the paths of its files begin with a folder for each.

A file that was made of one other file, by ``convert(resume=True)``, also has "source": its path, size and version, and
a digest of the conversion's keywords. One in which several such files were joined has "joined", their names.
"sources_without_rows" has those of which no file was made. "metadata" has what the caller states about the dataset:
texts by name. "txn" has the last transaction of each job whose rows are in: its number, and when it was published, in
seconds since 1970. "history" says which commit added which rows, if there were several, or the files were replaced by
others with the same rows (`tfrecord_io.store.paths.history`): "commit" is the last one, "line" the id of the writing
since which no rows were replaced, "oldest" the first distinguished commit, and "runs" has [commit, rows] for all
rows, in the order of "files".

While a dataset is being published, each file also has "staged", the name it may still have, and "replaces" lists
files of the old dataset; afterwards, those that could not be removed. "staged_before" has the staged files of writers
that were overtaken, without which they can change nothing: these are removed first. "replaced_ids" has the ids of the
last writings whose shards were replaced, or that added none: so a writer whose answer was lost knows that it
had published, and a copy that it must not use their names again.

The manifest of a large dataset has its files in parts (`tfrecord_io.store.paths.manifest_parts`): "version" is a text
that names the release that is needed, "parts" has what it states of each, and "files" only has the last files.
"revision" rises with each replacement of such a manifest, so that no two are equal; "retired" has the ids of parts that
it does not name any more, and which readers of the manifests before may still need. "alone_in" is the number of its
directory on a disk, in which it is the only manifest: a reader lists the directory unless this is its number.

``"complete": false`` means that files are being replaced one by one, as in a bucket. A manifest may be hostile: it is
plain JSON of limited size, and each name must be that of a shard of this dataset, in this directory or in folders of
its partition columns.
The dataset ``part`` may also have files that `tfrecord_io.adopt` found: TFRecord files that are not shards of another.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from tfrecord_io.base import printable
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, existing_files
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, is_id
from tfrecord_io.store.paths.folder_bounds import FolderBounds
from tfrecord_io.store.paths.manifest_files import SIZES, AllFiles, ManifestColumns, ManifestFiles, all_files
from tfrecord_io.store.paths.manifest_parts import (
    ManifestPart,
    PartedFiles,
    PartReader,
    StoredPart,
    ask_again,
    unpack_alone,
)
from tfrecord_io.store.read.source import (
    MOST_MANIFEST_BYTES,
    ManifestFile,
    ManifestShard,
    ManifestVersion,
    Source,
    read_manifest,
)

if TYPE_CHECKING:
    from tfrecord_io.store.paths.history import History

FORMAT = "tfrecord_io manifest"
VERSION = 1
VERSION_IN_PARTS = "2, for tfrecord_io 0.1 or later"  # older releases show it when they refuse the manifest
INCOMPLETE = "the dataset is incomplete: a writer is replacing its files, or died while doing so"

_KEYS = dict.fromkeys(("path", "records", "bytes", "crc32c")).keys()  # of a file without further entries
_CRC = re.compile("[0-9a-f]{8}")
_COUNTS = range(2**63)
_MOST_IDS = 1000  # of writings whose shards were replaced
_MOST_JOBS, _JOB_DAYS = 1000, 30  # with a transaction, and how long each stays also if there are more


class Txn(NamedTuple):
    """The last transaction of a job that is in a dataset: an earlier one, or the same again, adds nothing."""

    job: str
    number: int
    published: int = 0  # in seconds since 1970

    @property
    def end(self) -> int:
        """The time from which on a manifest of too many jobs may forget this one."""
        return self.published + _JOB_DAYS * 86_400

    @staticmethod
    def add(old: tuple[Txn, ...], new: tuple[Txn, ...]) -> tuple[Txn, ...]:
        """The transactions of a dataset after new ones: each replaces that of its job.

        Raises
        ------
        ValueError
            There are too many jobs, each of which has published too lately to be forgotten: its rows, written again,
            would be there twice.
        """
        by_job = {txn.job: txn for txn in (*old, *new)}
        if (excess := len(by_job) - _MOST_JOBS) > 0 and new:
            now = max(txn.published for txn in new)
            oldest = sorted(by_job.values(), key=lambda txn: txn.published)[:excess]
            if young := next((txn for txn in oldest if txn.end > now), None):
                reason = f"txn={new[0][:2]!r}: {_MOST_JOBS:,} jobs have written to this dataset within {_JOB_DAYS} days"
                advice = "let jobs share a name and count on, as ('daily', 17)"
                raise ValueError(f"{reason}, and none of them ('{printable(young.job)}') may be forgotten; {advice}")
            for txn in oldest:
                del by_job[txn.job]
        return tuple(by_job.values())


_OF_WRITING = (  # fields that say how files were written, and not what is in them
    *("dataset", "id", "files", "compression", "complete", "replaces", "sources_without_rows", "partition_by"),
    *("replaced_ids", "staged_before", "history", "upkeep"),
)


@dataclass(frozen=True, slots=True, eq=False)
class Upkeep:
    """Facts for the writers of parts: no content, so that any two are equal."""

    revision: int = 0  # how often it was replaced since it has had parts
    retired: tuple[str, ...] = ()  # ids of parts that it does not name any more
    alone_in: int | None = None  # the number (inode) of its directory, if that has no other manifest

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Upkeep)

    def __hash__(self) -> int:
        return 0


ParseManifest = Callable[[bytes, FileSystem, str], "Manifest | None"]
"""Parses the text of the manifest of this name in a filesystem."""


class Manifest(NamedTuple):
    """The content of a manifest; see the module's docstring."""

    # The content of a writing has none of these three: a publication adds them.
    dataset: str = ""
    id: str = ""
    files: ManifestFiles = ()
    compression: str | None = None
    schema: bytes | None = None
    complete: bool = True
    replaces: tuple[str, ...] = ()
    sources_without_rows: tuple[Mapping[str, str | int], ...] = ()
    partition_by: tuple[str, ...] = ()
    partition_schema: bytes | None = None
    replaced_ids: tuple[str, ...] = ()
    staged_before: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    txns: tuple[Txn, ...] = ()
    history: History | None = None  # None: all rows were there from the beginning, at commit 0
    upkeep: Upkeep = Upkeep()

    @staticmethod
    def txns_of(txn: tuple[str, int] | None) -> tuple[Txn, ...]:
        """The transaction of a writing that publishes about now, as a fact of its manifest."""
        return () if txn is None else (Txn(*txn, int(time.time())),)

    @property
    def _all(self) -> AllFiles:
        return all_files(self.files)

    @property
    def is_begun(self) -> bool:
        """True if nothing is published yet; a schema without rows is published content."""
        return not self.files and self.schema is None and self.partition_schema is None

    def version(self, fs: FileSystem, name: str) -> ManifestVersion:
        """The statements about the dataset as a whole, for its sources; `name` is the manifest's in the filesystem."""
        return ManifestVersion(
            fs,
            name,
            id=self.id,
            schema=self.schema,
            partition_schema=self.partition_schema,
            metadata=self.metadata,
            line=self.line,
            commit=self.commit,
        )

    @property
    def facts(self) -> Manifest:
        """Facts of the records, which a dataset of copies states, too: all but its files and how they were written."""
        return self._replace(**{name: self._field_defaults[name] for name in _OF_WRITING})

    @property
    def line(self) -> str:
        """The id of the writing since which no rows were replaced."""
        return (self.history and self.history.line) or self.id

    @property
    def commit(self) -> int:
        """The number of the last change of its rows."""
        return 0 if self.history is None else self.history.commit

    def added_runs(self, since: int, until: int) -> list[tuple[int, int, int]]:
        """The commits after `since`, up to `until`, and the begin and end of each run of their rows, by commit."""
        from tfrecord_io.store.paths.history import History  # which few datasets have

        return (self.history or History()).added_runs(self.records, since, until)

    @staticmethod
    def read(version: ManifestVersion) -> Manifest | None:
        """The manifest by which files were found, as it is now; None if it is gone or cannot be used."""
        with suppress(CorruptRecordError):
            return Manifest.current(version)
        return None

    @staticmethod
    def current(version: ManifestVersion, *, loads: bool = True) -> Manifest | None:
        """The manifest by which files were found, as it is now; None if it is gone, CorruptRecordError if damaged.

        Unless it `loads`, parts are read when they are needed.
        """
        return Manifest.at(version.fs, version.fs.entry(version.name, is_file=True), loads=loads)

    @staticmethod
    def at(
        fs: FileSystem, entry: Entry | None, *, loads: bool = True, parse: ParseManifest | None = None
    ) -> Manifest | None:
        """The manifest that has this entry; None if that is None, or a file of another tool.

        Unless it `loads`, parts are read when they are needed.
        """
        parse = parse or Manifest.parse
        unread = entry  # None once it was read: if a part is gone then, the manifest was replaced, and is looked up

        def read() -> Manifest | None:
            nonlocal unread
            current, unread = unread, None
            if current is None and entry is not None:
                current = fs.entry(entry.name, is_file=True)
            return None if current is None else parse(read_manifest(fs, current), fs, current.name)

        return ask_again(read, lambda manifest: manifest and manifest.load()) if loads else read()

    @staticmethod
    def files_in_lost_parts(fs: FileSystem, directory: str, dataset: str) -> dict[str, ManifestFile]:
        """The files in the parts of a manifest that is lost, by their names below `directory`, with its slash.

        Only those whose names no other file gets, and of which all parts state the same: some parts may be outdated.
        """
        by_path: dict[str, ManifestFile | None] = {}
        folder = directory + FileName.manifest_part(dataset, "").rpartition("/")[0]
        entries: Sequence[Entry] = ()
        with suppress(FileNotFoundError, NotADirectoryError):
            entries = fs.listing(f"{folder}/")
        for entry in entries:
            if FileName.of_path(f"{folder}/{entry.basename}").kind is not Kind.MANIFEST_PART or entry.directory:
                continue
            files = unpack_alone(read_manifest(fs, entry))
            for file in () if files is None else files:
                if ShardName.id_in(file.path):
                    by_path[file.path] = file if by_path.get(file.path, file) == file else None
        return {path: file for path, file in by_path.items() if file is not None}

    @staticmethod
    def parse(text: bytes, fs: FileSystem, name: str) -> Manifest | None:
        """Parse the text of the manifest `name` in a filesystem, whose parts are read when they are needed."""
        manifest = parse_manifest(text, fs.display_path(name))
        return None if manifest is None else manifest.with_reader(fs, name)

    def with_reader(self, fs: FileSystem, name: str) -> Manifest:
        """The manifest `name` of a filesystem, to read its parts from there."""
        if not isinstance(self.files, PartedFiles):
            return self
        directory = name[: len(name) - len(name.rpartition("/")[2])]
        reader = PartReader(fs, directory, self.dataset, partial(self.check_columns, fs.display_path(name)))
        return self._replace(files=self.files.with_reader(reader))

    def load(self) -> Manifest:
        """The manifest, all of whose parts are in memory; PartGoneError if one does not exist any more."""
        if isinstance(self.files, PartedFiles):
            self.files.load()
        return self

    def check_columns(self, path: str, files: ManifestColumns) -> None:
        """Raise CorruptRecordError if this manifest, with this path, must not name one of the files."""
        columns = list(self.partition_by)
        files.check_paths(partial(_Parser(path).check_path, dataset=self.dataset, columns=columns), columns)

    def sources(self, version: ManifestVersion) -> list[Source]:
        """The files as sources, by their paths in the manifest, with what it states of them; none is looked up."""
        sources = []
        for file in self.files:
            shard = ManifestShard(
                version, file.records, bytes=file.bytes, crc32c=file.crc32c, staged=None, watched=False
            )
            partitions = ColumnFolder.pairs_in(f"/{file.path}", "/")
            sources.append(Source(file.path, file.bytes, True, shard=shard, partitions=partitions))
        return sources

    def has_txn(self, txns: Iterable[Txn]) -> bool:
        """True if a given transaction, or a later transaction of the same job, is in."""
        numbers = {txn.job: txn.number for txn in self.txns}
        return any(numbers.get(txn.job, -1) >= txn.number for txn in txns)

    def has_shards_of(self, id: str) -> bool:
        """True if the writing `id` is in: it has added shards, perhaps joined or replaced since, or had none."""
        if id in self.replaced_ids or any(id in name for name in self.replaces):
            return True
        return self._all.has_path_with(id)

    def paths_without(self, other: Manifest) -> list[str]:
        """The names of the shards that another manifest does not name, in their order."""
        if other.files is self.files:
            return []
        return self._all.paths_without(other._all)

    def has_shards_of_since(self, id: str, before: Manifest | None) -> bool:
        """Like `has_shards_of`, of a writing whose shards an earlier manifest does not name."""
        files = self.files if before is None else self._all.without_parts_of(before.files)
        return self._replace(files=files).has_shards_of(id)

    def numbers_of(self, paths: Sequence[str]) -> list[int | None]:
        """The numbers of the shards of these names; None for one that is not there."""
        return self._all.numbers_of(paths)

    def first_rows(self, paths: Sequence[str]) -> dict[str, int]:
        """Count the rows in all shards before each of these shards; a name without a shard is left out."""
        numbers = {path: at for path, at in zip(paths, self.numbers_of(paths), strict=True) if at is not None}
        return dict(zip(numbers, self._all.rows_before([*numbers.values()]), strict=True))

    def files_of(self, paths: Sequence[str]) -> list[ManifestFile]:
        """Look up shards by their names; a name without a shard is left out."""
        return [self.files[number] for number in self.numbers_of(paths) if number is not None]

    def folders_without(self, gone: Sequence[str]) -> list[str]:
        """List the folders that are empty without these shards, in the order of their names."""
        folders = dict.fromkeys(map(os.path.dirname, gone))
        numbers = [number for number in self.numbers_of(gone) if number is not None]
        left = all_files(self.files_after(numbers, [])).folders_among(folders)
        return [folder for folder in folders if folder not in left]

    def files_after(self, gone: Sequence[int], new: Sequence[tuple[int, ManifestFile]]) -> ManifestFiles:
        """The files without those of the numbers `gone`; each of `new` replaces the file of its number."""
        return self._all.replace(gone, new)

    @property
    def folders(self) -> set[str]:
        """The folders of the shards, without a slash; "" for those next to the manifest."""
        return set(self._all.folder_names)

    @property
    def staged(self) -> list[ManifestFile]:
        """The shards that may still have their staged names."""
        return self._all.staged

    @property
    def largest_number(self) -> int:
        """The largest number of a shard in the names; -1 if none has one."""
        return self._all.largest_number

    @property
    def parts(self) -> list[ManifestPart]:
        """The parts that have its files."""
        return self.files.parts if isinstance(self.files, PartedFiles) else []

    @property
    def part_ids(self) -> frozenset[str]:
        """The ids of its parts, and of the parts that are kept for readers of the manifests before."""
        return frozenset([*self.upkeep.retired, *(part.id for part in self.parts)])

    @property
    def have_ids(self) -> bool:
        """True if all names have the id of the write that added the shard: no other shard gets the name."""
        return self._all.have_ids

    @property
    def paths(self) -> list[str]:
        """The names of the shards, in their order."""
        return self._all.path_list

    @property
    def records(self) -> int:
        return self._all.record_count

    @property
    def counts(self) -> list[int]:
        """The number of records in each file."""
        return self._all.counts

    @property
    def bytes(self) -> int:
        return self._all.byte_count


def manifests_for(name: str) -> list[str]:
    """The manifests that a dataset of exactly this name may have."""
    parent, slash, base = name.rpartition("/")
    return [f"{parent}{slash}{FileName.manifest(stem)}" for stem in FileName.parse(base).stems] if base else []


def is_dataset(fs: FileSystem, name: str) -> bool:
    """True if a dataset of exactly this name, with a manifest, stands next to other files."""
    return fs.can_list and bool(existing_files(fs, manifests_for(name)))


def ids_replaced(manifest: Manifest | None, new: Manifest, *, is_conditional: bool) -> tuple[str, ...]:
    """The `replaced_ids` of the manifest `new` that follows `manifest`.

    In a store with conditions also the id of numbered shards, whose names do not have it: their writer may still wait
    for the answer to the request that published them.
    """
    if manifest is None:
        return ()
    ids = dict.fromkeys(filter(None, map(ShardName.id_in, manifest.paths_without(new))))
    if is_conditional and manifest.complete and manifest.id != new.id and not manifest.have_ids:
        ids[manifest.id] = None
    return (*manifest.replaced_ids, *ids)[-_MOST_IDS:]


def format_manifest(manifest: Manifest) -> bytes:
    """Format a manifest as JSON."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION_IN_PARTS if manifest.parts else VERSION,
        "id": manifest.id,
        "dataset": manifest.dataset,
        "complete": manifest.complete,
        "compression": manifest.compression,
        "records": manifest.records,
        "bytes": manifest.bytes,
        "schema": None if manifest.schema is None else base64.b64encode(manifest.schema).decode(),
    }
    if manifest.partition_by:
        schema = manifest.partition_schema
        document["partition_by"] = list(manifest.partition_by)
        document["partition_schema"] = None if schema is None else base64.b64encode(schema).decode()
    for name in ("replaces", "staged_before", "replaced_ids"):
        if values := getattr(manifest, name):
            document[name] = list(values)
    if manifest.metadata:
        document["metadata"] = dict(manifest.metadata)
    if manifest.txns:
        document["txn"] = {txn.job: txn[1:] for txn in manifest.txns}
    if manifest.history is not None:
        document["history"] = manifest.history._asdict()
    if manifest.upkeep.revision:
        document["revision"] = manifest.upkeep.revision
    if manifest.upkeep.retired:
        document["retired"] = list(manifest.upkeep.retired)
    if manifest.upkeep.alone_in is not None:
        document["alone_in"] = manifest.upkeep.alone_in
    if manifest.sources_without_rows:
        document["sources_without_rows"] = [dict(source) for source in manifest.sources_without_rows]
    # The path of a source may have bytes that are not UTF-8, which only escapes can hold.
    head = json.dumps(document, ensure_ascii=bool(manifest.sources_without_rows))
    text = io.BytesIO()
    text.write(head[:-1].encode())
    _write_files(text, manifest.files)
    text.write(b"}\n")
    return text.getvalue()


def _write_files(text: io.BytesIO, files: ManifestFiles) -> None:
    """Append "parts", if there are any, and "files" to the text, line by line: there may be a million files."""
    if isinstance(files, PartedFiles):
        text.write(b', "parts": [')
        for number, part in enumerate(files.parts):
            entry = {**part._asdict(), "crc32c": f"{part.crc32c:08x}"}
            entry["values"] = {column: bounds._asdict() for column, bounds in part.values}
            line = json.dumps(entry)
            text.write(f"{',' if number else ''}\n  {line}".encode())
        text.write(b"\n]")
        files = () if files.tail is None else tuple(files.tail)
    text.write(b', "files": [')
    if isinstance(files, tuple):
        for number, file in enumerate(files):
            line = json.dumps(_entry(file), ensure_ascii=bool(file.sources))
            text.write(f"{',' if number else ''}\n  {line}".encode())
    else:
        text.write(b"\n" + files.columns.text)
    text.write(b"\n]")


def _entry(file: ManifestFile) -> dict[str, Any]:
    entry: dict[str, Any] = {"path": file.path, "records": file.records, "bytes": file.bytes}
    entry["crc32c"] = f"{file.crc32c:08x}"
    if file.staged is not None:
        entry["staged"] = file.staged
    if file.joined:
        entry["joined"] = [dict(source) for source in file.joined]
    return entry if file.source is None else {**entry, "source": dict(file.source)}


def parse_manifest(text: bytes, path: str) -> Manifest | None:
    """Parse a manifest; None if it is a file of another tool.

    If it is damaged, has another version, or names a file that is not a shard of its dataset, this is a
    CorruptRecordError.
    """
    if len(text) > MOST_MANIFEST_BYTES:
        _refuse(path, f"it has {len(text)} bytes, over the limit of {MOST_MANIFEST_BYTES}")
    text, columns = _split_off_files(text)
    try:
        document = json.loads(text, object_hook=_pack_entry)
    except (ValueError, RecursionError) as error:
        _refuse(path, f"it is not JSON ({type(error).__name__})")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    version = document.get("version")
    if version != VERSION_IN_PARTS and (type(version) is not int or version != VERSION):
        _refuse(path, f"it has version {printable(repr(version), 40)}, this release reads version {VERSION}")
    return _Parser(path).manifest(document, columns)


def _split_off_files(text: bytes) -> tuple[bytes, ManifestColumns | None]:
    """The text of a manifest, and the files as columns, if these are many; their paths are not checked yet."""
    if len(text) < SIZES.large_bytes:
        return text, None
    return ManifestColumns.parse(text) or (text, None)


def _described_dataset(path: str) -> str | None:
    """The dataset that a manifest describes by its name; None if the file has another name."""
    file = FileName.parse(os.path.basename(path))
    return file.dataset if file.kind is Kind.MANIFEST else None


def _is_staged(name: str) -> bool:
    return "/" not in name and FileName.parse(name).kind is Kind.STAGED


class _Parser:
    """Parses a document and checks the types of its values."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._parsed: ShardName | None = None  # the last name of a shard that was parsed
        self._folders = set[str]()  # those whose names are known to be of the partition columns

    def manifest(self, document: dict[str, Any], many: ManifestColumns | None = None) -> Manifest:
        dataset = self._get(document, "dataset", str)
        if _described_dataset(self._path) not in (dataset, None):
            _refuse(self._path, f"it describes '{printable(dataset)}', which does not match its file name")
        columns = self._get_list(document, "partition_by", str)
        files = self._files(document, many, dataset, columns)
        if document["version"] == VERSION_IN_PARTS:
            files = self._parted(document, files)
        compression = document.get("compression")
        sources = map(_unpack_entry, self._get_list(document, "sources_without_rows"))
        manifest = Manifest(
            dataset=dataset,
            id=self._get(document, "id", str, is_id),
            files=files,
            compression=compression if isinstance(compression, str) else None,
            schema=self._schema(document, "schema"),
            complete=self._get(document, "complete", bool),
            replaces=tuple(self.check_path(name, dataset, columns) for name in self._get_list(document, "replaces")),
            sources_without_rows=tuple(source for source in sources if isinstance(source, dict)),
            partition_by=tuple(columns),
            partition_schema=self._schema(document, "partition_schema"),
            replaced_ids=tuple(self._get_list(document, "replaced_ids", str)),
            staged_before=tuple(self._get_list(document, "staged_before", str, _is_staged)),
            metadata=self._metadata(document),
            txns=self._txns(document),
            history=self._history(document),
            upkeep=self._upkeep(document),
        )
        self._check_sums(document, manifest)
        return manifest

    def _files(
        self, document: dict[str, Any], many: ManifestColumns | None, dataset: str, columns: Sequence[str]
    ) -> ManifestFiles:
        """The files in the manifest itself, checked; `many` were parsed as columns before."""
        files: ManifestFiles
        files = many or tuple(self._file(entry, dataset, columns) for entry in self._get(document, "files", list))
        if isinstance(files, tuple):
            is_twice = len({file.path for file in files}) < len(files)
        else:
            files.check_paths(partial(self.check_path, dataset=dataset, columns=columns), columns)
            is_twice = files.has_one_twice
        if is_twice:
            _refuse(self._path, "it names a file twice")
        return files

    def _check_sums(self, document: dict[str, Any], manifest: Manifest) -> None:
        """Refuse a manifest whose sums, or the rows of whose history, are not those of its files."""
        for name in ("records", "bytes"):
            if self._get(document, name, int, _COUNTS.__contains__) != getattr(manifest, name):
                _refuse(self._path, f"its number of {name} is not the sum over its files")
        runs = () if manifest.history is None else manifest.history.runs
        if runs and sum(rows for _, rows in runs) != manifest.records:
            _refuse(self._path, "its history does not have the rows of its files")

    def _parted(self, document: dict[str, Any], tail: ManifestFiles) -> PartedFiles:
        """The files of the parts, which are read later, and the files in the manifest itself."""
        pieces: list[StoredPart] = []
        for entry in self._get_list(document, "parts", dict):
            files, records, size = (
                self._get(entry, name, int, _COUNTS.__contains__) for name in ("files", "records", "bytes")
            )
            part = ManifestPart(
                id=self._get(entry, "id", str, is_id),
                files=files,
                records=records,
                bytes=size,
                largest=self._get(entry, "largest", int, range(-1, 2**63).__contains__),
                have_ids=self._get(entry, "have_ids", bool),
                folders=self._get_pair(entry, "folders", str),
                size=self._get(entry, "size", int, _COUNTS.__contains__),
                raw=self._get(entry, "raw", int, _COUNTS.__contains__),
                crc32c=int(self._get(entry, "crc32c", str, _CRC.fullmatch), 16),
                values=tuple(self._values_of_part(entry)),
            )
            if not part.can_be_read:
                _refuse(self._path, f"its part '{part.id}' has {part.files} files and {part.raw} bytes")
            pieces.append(StoredPart(part))
        if len({piece.part.id for piece in pieces}) < len(pieces):
            _refuse(self._path, "it names a part twice")
        last = ManifestColumns.of(tail)
        if last is None:
            _refuse(self._path, "a file beside its parts states more than a part has")
        return PartedFiles([*pieces, last])

    def _values_of_part(self, entry: dict[str, Any]) -> Iterator[tuple[str, FolderBounds]]:
        """The bounds of the values of partition columns in a part, which older releases do not state."""
        for column, bounds in (self._get(entry, "values", dict) if "values" in entry else {}).items():
            if not isinstance(bounds, dict):
                _refuse(self._path, f"the 'values' of a part are {printable(repr(bounds), 80)}")
            texts = self._get_pair(bounds, "texts", str, ascends=True)
            integers = self._get_pair(bounds, "integers", int, ascends=True)
            yield column, FolderBounds(texts, integers, self._get(bounds, "nulls", bool))

    def _upkeep(self, document: dict[str, Any]) -> Upkeep:
        if "revision" not in document:
            return Upkeep()
        revision = self._get(document, "revision", int, _COUNTS.__contains__)
        retired = self._get_list(document, "retired", str, is_id)
        alone_in = self._get(document, "alone_in", int, lambda number: number >= 0) if "alone_in" in document else None
        return Upkeep(revision, tuple(retired), alone_in)

    def _file(self, entry: Any, dataset: str, columns: Sequence[str]) -> ManifestFile:
        if isinstance(entry, ManifestFile):
            self.check_path(entry.path, dataset, columns)
            return entry
        if not isinstance(entry, dict):
            _refuse(self._path, "an entry of its files is not an object")
        path = self.check_path(entry.get("path"), dataset, columns)
        records, size = (self._get(entry, name, int, _COUNTS.__contains__) for name in ("records", "bytes"))
        staged = self._get(entry, "staged", str, _is_staged) if "staged" in entry else None
        crc32c, source = int(self._get(entry, "crc32c", str, _CRC.fullmatch), 16), _unpack_entry(entry.get("source"))
        joined = tuple(map(_unpack_entry, self._get_list(entry, "joined", (dict, ManifestFile))))
        return ManifestFile(
            path,
            records,
            bytes=size,
            crc32c=crc32c,
            staged=staged,
            source=source if isinstance(source, dict) else None,
            joined=joined,
        )

    def check_path(self, name: Any, dataset: str, columns: Sequence[str] = ()) -> str:
        """Return the name, if it leads to a shard in the manifest's directory or its partition folders."""
        if not isinstance(name, str) or not name:
            _refuse(self._path, "the name of a file is not text")
        base = name.rpartition("/")[2]
        folders = name[: len(name) - len(base)]
        if folders and folders not in self._folders:
            is_place = [ColumnFolder.column_of(folder) for folder in folders[:-1].split("/")] == columns
            self._folders.update([folders] if is_place else [])
        if "\\" in name or "\0" in name or (folders and folders not in self._folders):
            _refuse(self._path, f"it names '{printable(name)}', which leads out of its directory")
        if self._parsed is not None and self._parsed.is_like(base):  # as most of 100,000 are
            return name
        shard = ShardName.parse(base)
        if shard is not None and shard.stem == dataset:
            self._parsed = shard
            return name
        # `adopt` names the files of other tools: in a directory those that are not a shard of another dataset.
        if (
            dataset != FileName.DIRECTORY_STEM
            or FileName.parse(base).kind is not Kind.RECORDS
            or (shard is not None and not folders)
        ):
            _refuse(self._path, f"it names '{printable(name)}', which is not a shard of '{printable(dataset)}'")
        return name

    def _schema(self, document: Mapping[str, Any], name: str) -> bytes | None:
        if (text := document.get(name)) is None:
            return None
        try:
            return base64.b64decode(text, validate=True)
        except (TypeError, ValueError):
            _refuse(self._path, f"its {name} is not base64")

    def _metadata(self, document: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        texts = self._get(document, "metadata", dict) if "metadata" in document else {}
        if not all(isinstance(text, str) for text in texts.values()):
            _refuse(self._path, f"its 'metadata' is {printable(repr(texts), 80)}")
        return tuple(texts.items())

    def _txns(self, document: dict[str, Any]) -> tuple[Txn, ...]:
        txns = self._get(document, "txn", dict) if "txn" in document else {}
        for pair in txns.values():
            is_pair = isinstance(pair, list) and len(pair) == 2
            if not is_pair or not all(type(number) is int and number in _COUNTS for number in pair):
                _refuse(self._path, f"its 'txn' is {printable(repr(txns), 80)}")
        return tuple(Txn(job, *pair) for job, pair in txns.items())

    def _history(self, document: dict[str, Any]) -> History | None:
        if "history" not in document:
            return None
        from tfrecord_io.store.paths.history import History  # which few datasets have

        stated = self._get(document, "history", dict)
        commit, oldest = (self._get(stated, name, int, _COUNTS.__contains__) for name in ("commit", "oldest"))
        line = self._get(stated, "line", str, lambda line: not line or is_id(line))
        runs = self._get_list(stated, "runs", list)
        are_pairs = all(len(run) == 2 and all(type(number) is int for number in run) for run in runs)
        if not are_pairs or not all(oldest <= run[0] <= commit and run[1] in _COUNTS for run in runs):
            _refuse(self._path, f"its 'history' is {printable(repr(stated), 80)}")
        return History(commit, line, oldest, tuple(map(tuple, runs)))

    def _get(
        self, document: dict[str, Any], name: str, type_: type, holds: Callable[[Any], object] | None = None
    ) -> Any:
        """Get the value `name` of the document, and check that it is of exactly this type, and `holds`."""
        value = document.get(name)
        if type(value) is not type_ or (holds is not None and not holds(value)):
            _refuse(self._path, f"its '{name}' is {printable(repr(value), 80)}")
        return value

    def _get_pair(
        self, document: dict[str, Any], name: str, type_: type, *, ascends: bool = False
    ) -> tuple[Any, Any] | None:
        """Get the pair `name` of the document, None by default, of exactly this type, perhaps ascending."""

        def holds(pair: list[Any]) -> bool:
            are_typed = len(pair) == 2 and all(type(value) is type_ for value in pair)
            return are_typed and (not ascends or pair[0] <= pair[1])

        if document.get(name) is None:
            return None
        first, last = self._get(document, name, list, holds)
        return first, last

    def _get_list(
        self, document: dict[str, Any], name: str, types: Any = object, holds: Callable[[Any], object] | None = None
    ) -> list[Any]:
        """Get the list `name` of the document, empty by default, and check each value by `types` and `holds`."""
        values = self._get(document, name, list) if name in document else []
        if not all(isinstance(value, types) and (holds is None or holds(value)) for value in values):
            _refuse(self._path, f"its '{name}' is {printable(repr(values), 80)}")
        return values


def _pack_entry(entry: dict[str, Any]) -> dict[str, Any] | ManifestFile:
    """The entry of a file as soon as it is parsed, so that a million do not exist as dicts; others as they are."""
    if entry.keys() != _KEYS:
        return entry
    path, records, size, crc = map(entry.__getitem__, _KEYS)
    if type(path) is not str or type(records) is not int or type(size) is not int or type(crc) is not str:
        return entry
    is_right = records in _COUNTS and size in _COUNTS and _CRC.fullmatch(crc)
    return ManifestFile(path, records, size, int(crc, 16)) if is_right else entry


def _unpack_entry(value: Any) -> Any:
    """The object of which `_pack_entry` has made the entry of a file, where it is none."""
    return _entry(value) if isinstance(value, ManifestFile) else value


def _refuse(path: str, what: str) -> NoReturn:
    advice = "write the dataset again, or delete the manifest to read the files without it"
    raise CorruptRecordError(f"the manifest cannot be used: {what}", path=path, hint=advice)
