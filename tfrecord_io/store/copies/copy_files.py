"""Copy files and datasets from any place to any other: the bytes unchanged, each record checked on the way."""

from __future__ import annotations

import errno
import hashlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, get_args

from tfrecord_io.base import (
    LIMITS,
    MIB,
    ProgressMeter,
    Report,
    Summary,
    TransferOptions,
    byte_size,
    check_choice,
    counted,
    cpu_count,
    for_cli,
    logger,
    ordered,
    printable,
)
from tfrecord_io.bytes import crc32c
from tfrecord_io.errors import ReplacedError, TFRecordError
from tfrecord_io.store.copies.copied_dataset import CopiedDataset, Plan, check_may_write, plan, with_unused_names
from tfrecord_io.store.copies.copied_files import (
    ChooseFiles,
    Found,
    FoundDataset,
    everything_below,
    find,
    is_found_by,
    known_manifest,
)
from tfrecord_io.store.copies.file_transfer import Passed, Traffic, check_passed, parse_rate, transfer
from tfrecord_io.store.copies.store_copy import can_copy, copy_within, is_proof_known, stated_digests
from tfrecord_io.store.filesystem.directories import create_directories
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem, is_dangling
from tfrecord_io.store.filesystem.locate import Location, is_remote
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.filesystem.retries import counting_retries
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardSpec
from tfrecord_io.store.paths.history import History
from tfrecord_io.store.paths.manifest import Manifest, Upkeep
from tfrecord_io.store.paths.path_search import list_directory, record_files
from tfrecord_io.store.paths.resolve_output import Output, unnamed_error
from tfrecord_io.store.read.source import SMALL_BYTES, Source
from tfrecord_io.store.write.atomic import open_named
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.typing import FileMode, ProgressLike

Verify = Literal["records", "bytes"]
_Done = tuple[str, Passed]  # a file, and what has passed of it

_TRIES = 5  # of a source that is replaced again and again
_MOST_TRANSFERS = 32  # at a time, from or to a store
_MEMORY = 160 * MIB  # for what is under way
_LARGE = 40 * MIB  # of it, for a file that is read and stored in parts
_BESIDE = 5 * MIB // 2  # for what a small file takes beside its bytes
_GCS_UPLOAD = 72 * MIB  # for one that is stored block by block
_READ = 1 << 20  # bytes of a local file at a time


@dataclass(frozen=True, slots=True, repr=False)
class CopyReport(Report):
    """The result of `copy`.

    Attributes
    ----------
    path : str
        The target.
    copied : tuple of str
        Names of the files that were copied, or with ``dry_run=True`` would be, below the target.
    bytes : int
        Their size.
    records : int or None
        The number of their records, as far as these were checked; None if none were.
    kept : int
        Number of files that the target had already.
    removed : tuple of str
        Names of the files that the source has not any more.
    retries : int
        Number of requests, and of datasets replaced meanwhile, that were begun again.
    dry_run : bool
    """

    path: str
    copied: tuple[str, ...]
    bytes: int
    records: int | None
    kept: int
    removed: tuple[str, ...]
    retries: int
    dry_run: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Convert to types of JSON."""
        return {
            "path": self.path,
            "files": len(self.copied),
            "bytes": self.bytes,
            "records": self.records,
            "kept": self.kept,
            "removed": len(self.removed),
            "retries": self.retries,
            "dry_run": self.dry_run,
        }

    def title(self) -> str:
        """Summary in a line."""
        parts = [f"{counted(len(self.copied), 'file')}, {byte_size(self.bytes)}"]
        if self.records is not None:
            parts.append(counted(self.records, "record"))
        parts += [f"{self.kept:,} kept"] if self.kept else []
        parts += [f"{len(self.removed):,} removed"] if self.removed else []
        parts += ["1 retry" if self.retries == 1 else f"{self.retries:,} retries"] if self.retries else []
        return f"{printable(self.path)}: {'would copy ' if self.dry_run else ''}{', '.join(parts)}"

    def lines(self) -> list[str]:
        """Lines of text for a dry run, one for each file."""
        verbs = ("copy", self.copied), ("remove", self.removed)
        return [f"{verb} {printable(name)}" for verb, names in verbs for name in names] if self.dry_run else []

    def _summary(self) -> Summary:
        return Summary(self.title(), lines=self.lines())


@dataclass(frozen=True, kw_only=True, eq=False, repr=False, init=False)
class FileCopyOptions(TransferOptions):
    """How files are copied."""

    verify: Verify = "records"
    update: bool = False
    mode: FileMode | None = None
    all_files: bool = False
    dry_run: bool = False
    limit_rate: Any = None  # bytes a second, once it is parsed
    threads: int | None = None
    progress: ProgressLike = False

    @property
    def replaces(self) -> bool:
        """True if files of the target may be replaced."""
        return self.update or self.mode == "overwrite"

    def copy_files(self, paths: Sequence[Any], target: Any, choose: ChooseFiles | None = None) -> CopyReport:
        """Copy files and datasets by these options; see `copy_files`."""
        return copy_files(paths, target, self, choose)

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check_progress()
        check_choice("verify", self.verify, ("records", "bytes"))
        self._check_flags("update", "all_files", "dry_run")
        check_choice("mode", self.mode, (None, *get_args(FileMode)))
        if self.update and self.mode is not None:
            what = "keeps what is equal and replaces what differs"
            error = ValueError(f"update=True {what}, mode={self.mode!r} does not: pass only one of them")
            raise for_cli(error, f"--update {what}, --mode {self.mode} does not: pass only one of them")
        self._check_integer("threads", 1, optional=True)
        object.__setattr__(self, "limit_rate", parse_rate(self.limit_rate))


def copy_files(
    paths: Sequence[Any], target: Any, options: FileCopyOptions, choose: ChooseFiles | None = None
) -> CopyReport:
    """Copy files and datasets as they are, and check them on the way; begin again if a dataset is replaced meanwhile.

    `choose` says which files of a dataset are copied: all by default. With `update`, the target keeps its others.
    """
    for path in (*paths, target):
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"copy takes paths, as str or PathLike, not {type(path).__name__}")
    if not paths:
        raise FileNotFoundError(errno.ENOENT, "an empty list of paths has no files", "[]")
    call = _Call(paths, target, options, choose)
    while True:
        try:
            return call.run()
        except ReplacedError:
            if call.tries == _TRIES:
                raise


@dataclass(slots=True)
class _Moved:
    """Counts of the files that were copied: as sums, since there may be a million."""

    names: list[str] = field(default_factory=list)
    bytes: int = 0
    records: int | None = None  # None: they were not checked

    def add(self, name: str, passed: Passed) -> None:
        """Add a file."""
        self.names.append(name)
        self.bytes += passed.bytes
        if passed.records is not None:
            self.records = (self.records or 0) + passed.records


@dataclass(slots=True)
class _DatasetCopy:
    """Dataset to copy, and the plan for it."""

    found: FoundDataset
    known: Manifest | None
    plan: Plan


@dataclass
class _Call:
    """State of a call of `copy`, which starts over if the source is replaced meanwhile."""

    paths: Sequence[Any]
    target: Any
    options: FileCopyOptions
    choose: ChooseFiles | None
    tries: int = 0
    written: set[str] = field(default_factory=set)  # files and manifests that this call has written
    folders: set[str] = field(default_factory=set)  # folders that this call has made by fsspec
    retries: int = 0  # of requests

    def run(self) -> CopyReport:
        """Resolve the paths, and copy their files."""
        self.tries += 1
        options = self.options
        fs, name = Location.of(self.target, options.target)
        Location(fs, name).check_writable()
        found = find(self.paths, options.source, all_files=options.all_files)
        if self.choose is not None:
            found = _choose_files(found, self.choose)
        directory, found = _place(self.target, fs, name, found)
        _check_names(fs, found)
        _check_apart(found, fs, directory, paths=self.paths, target=self.target, options=options)
        listing = _list_target(fs, directory, found, all_files=options.all_files)
        target = _Target(
            path=self.target,
            fs=fs,
            directory=directory,
            listing=listing,
            options=options,
            choose=self.choose,
            written=self.written,
        )
        work = _Work.of(target, found)
        return self._dry_report(work) if options.dry_run else self._move(work)

    def _move(self, work: _Work) -> CopyReport:
        """Copy and remove files, and report it."""
        target = work.target
        with ProgressMeter(self.options.progress, work.total_bytes(), "bytes") as bar:
            mover = _Mover(target, self, Traffic(bar.advance, self.options.limit_rate))
            mover.move_files(work.files, records=self.options.verify == "records")
            for copied in work.datasets:
                mover.move_dataset(copied)
            companions = target.changed_files(work.found.others)
            mover.move_files([companion for companion in companions if not is_found_by(companion[0])], records=False)
            mover.move_files([companion for companion in companions if is_found_by(companion[0])], records=False)
            for name in work.gone:
                target.fs.remove(target.directory + name)
        report = CopyReport(
            path=os.fspath(self.target),
            copied=tuple(mover.moved.names),
            bytes=mover.moved.bytes,
            records=mover.moved.records,
            kept=work.kept + len(work.found.others) - len(companions),
            removed=work.removed,
            retries=self.retries + self.tries - 1,
        )
        amounts = counted(len(report.copied), "file"), counted(report.bytes, "byte"), counted(report.kept, "file")
        logger.info("copied: %s, %s, %s; %s kept, %d removed", report.path, *amounts, len(report.removed))
        return report

    def _dry_report(self, work: _Work) -> CopyReport:
        shards = [copied.plan.wanted.files[number] for copied in work.datasets for number in copied.plan.moved]
        indexes = [index for copied in work.datasets for index in work.target.indexes(copied)]
        others = [*work.files, *indexes, *work.target.changed_files(work.found.others)]
        return CopyReport(
            path=os.fspath(self.target),
            copied=(*(file.path for file in shards), *(name for name, _ in others)),
            bytes=sum(file.bytes for file in shards) + sum(source.size or 0 for _, source in others),
            records=None,
            kept=work.kept,
            removed=work.removed,
            retries=self.tries - 1,
            dry_run=True,
        )


# ---- the target


def _choose_files(found: Found, choose: ChooseFiles) -> Found:
    """Restrict datasets to the files that are to be copied."""
    if found.files or not found.datasets:
        raise ValueError("filters= selects folders of datasets with a manifest, and these files have none")
    has_files = any(dataset.manifest.files for dataset in found.datasets)  # an emptied dataset has no folder
    datasets = [dataset.select(choose) for dataset in found.datasets]
    if has_files and not any(dataset.manifest.files for dataset in datasets):
        raise FileNotFoundError(errno.ENOENT, "no folder meets filters=", datasets[0].version.path)
    return replace(found, datasets=datasets)


def _place(target: Any, fs: FileSystem, name: str, found: Found) -> tuple[str, Found]:
    """Directory of the target, with its slash, and the files to copy, renamed if the target is a file."""
    text = os.fspath(target)
    is_single = not (found.directories or found.datasets) and len(found.files) == 1
    entry = fs.entry(name) if is_single and not text.endswith("/") else None
    if is_single and not text.endswith("/") and (entry is None or not entry.directory):
        parent, slash, base = name.rpartition("/")
        old, source = found.files[0]
        others = [(base + other.removeprefix(old), each) for other, each in found.others]
        return parent + slash, replace(found, files=[(base, source)], others=others)
    # Files keep their names in a directory, which is not named like TFRecord files.
    base = name.rpartition("/")[2]
    if not text.endswith("/") and (FileName.parse(base).kind is Kind.RECORDS or ShardSpec.parse(base)):
        entry = fs.entry(name)
        if entry is None or not entry.directory:
            reason = "is named like TFRecord files, and several files, or a dataset, are copied to a directory"
            reason = f"'{printable(text)}' {reason}; write '{printable(text)}/' for one of this name"
            error = ValueError(f"{reason}; tfr.merge writes other files")
            raise for_cli(error, f"{reason}; tfr merge writes other files")
    if name.startswith("/") and not name.rstrip("/"):
        return "/", found
    return f"{name.rstrip('/')}/" if name else "", found


def _check_names(fs: FileSystem, found: Found) -> None:
    """Refuse keys of objects that would lead elsewhere as names in a file system: out of the target, too."""
    if is_remote(fs) and fs.is_object_store:
        return
    for name, source in (*found.files, *found.others):
        if wrong := {"", ".", ".."} & {*name.split("/")}:
            text = f"'{printable(source.path)}' cannot be copied to a disk, as its key has the part '{min(wrong)}'"
            raise ValueError(f"{text}: give the object another key, or copy to a bucket")


def _check_apart(
    found: Found, fs: FileSystem, directory: str, *, paths: Sequence[Any], target: Any, options: FileCopyOptions
) -> None:
    """Refuse a target in a directory that is copied, and files that would replace themselves."""
    Output.check_outside(paths, options.source, target, options.target)
    store, written = Location(fs, directory).identity
    for path in paths if options.all_files else ():
        other, read = Location.of(path, options.source).identity
        if other == store and f"{written}/".startswith(f"{read.rstrip('/')}/"):
            text = "is in the directory of which all_files=True copies all: choose another directory"
            raise ValueError(f"'{printable(os.fspath(target))}' {text}")
    for dataset in found.datasets:
        if Location(dataset.fs, dataset.root).identity == (store, written):
            raise ValueError(f"'{printable(os.fspath(target))}' is the directory that is copied")
    for name, source in (*found.files, *found.others):
        if source.location.identity == Location(fs, directory + name).identity:
            raise ValueError(f"'{printable(source.path)}' is the file that would be written")


def _list_target(fs: FileSystem, directory: str, found: Found, *, all_files: bool) -> Mapping[str, Entry]:
    """List the target by names below it; for a single file, only the entries that matter for it."""
    if not (found.directories or found.datasets) and len(found.files) == 1:
        names = [*(name for name, _ in (*found.files, *found.others)), FileName.manifest(FileName.DIRECTORY_STEM)]
        entries = fs.entries([directory + name for name in names])
        return {name: entry for name, entry in zip(names, entries, strict=True) if entry is not None}
    try:
        listed = list_directory(fs, directory.rstrip("/") or directory)
        if all_files:
            listed += everything_below(fs, directory)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    below = len(directory)
    return {entry.name[below:]: entry for entry in listed if not entry.directory}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Target:
    """Target directory with its listing; decides what has to be copied and removed."""

    path: Any  # as the caller wrote it
    fs: FileSystem
    directory: str  # with its slash
    listing: Mapping[str, Entry]  # by the name below the directory
    options: FileCopyOptions
    choose: ChooseFiles | None  # which files of a dataset are copied, if not all
    written: set[str]  # names below the directory that this call has written

    def plan_copy(self, found: FoundDataset) -> _DatasetCopy:
        """Plan the copy of a dataset."""
        wanted, name = found.manifest, FileName.manifest(found.manifest.dataset)
        files = tuple(file if file.staged is None else file._replace(staged=None) for file in wanted.files)
        history = None if found.is_part else (wanted.history or History())._replace(line=wanted.line)
        wanted = wanted._replace(files=files, replaces=(), history=history, upkeep=Upkeep())
        known, version = known_manifest(self.fs, self.listing, name)
        is_own, is_local = name in self.written, isinstance(self.fs, LocalFileSystem)
        if not is_local:
            wanted = with_unused_names(wanted, known)
        if found.is_part and self.options.update and self.choose is None:
            text = "update=True would remove the other files of the dataset from the target"
            raise ValueError(f"'{found.version.path}': {text}: copy the whole dataset, or select folders by filters=")
        check_may_write(
            self.fs,
            self.directory,
            wanted=wanted,
            known=known,
            listing=self.listing,
            replaces=self.options.replaces or is_own,
        )
        choose = self.choose if self.options.update else None
        if choose is not None and known is not None and version is not None and known.complete:
            chosen = choose(known.sources(version))
            names = set(wanted.paths)
            others = [file for file in known.files if file.path not in chosen and file.path not in names]
            wanted = wanted._replace(files=(*wanted.files, *others), history=None)
        by_store = bool(found.manifest.files) and can_copy(found.source(found.manifest.files[0]), self.fs)
        keeps = self.options.mode != "overwrite" or is_own
        planned = plan(wanted, known, self.listing, keeps=keeps, stages_all=is_local, by_store=by_store)
        lost = next((number for number in planned.moved if number >= len(found.manifest.files)), None)
        if lost is not None:
            text = "the target's manifest names this file, but it is missing; copy the whole dataset with update=True"
            raise FileNotFoundError(errno.ENOENT, text, self.fs.display_path(self.directory + wanted.files[lost].path))
        return _DatasetCopy(found, known, planned)

    def changed_files(self, files: Sequence[tuple[str, Source]]) -> list[tuple[str, Source]]:
        """Select the files that are missing in the target, or differ there."""
        if not self.options.replaces:
            existing = next((name for name, _ in files if name in self.listing and name not in self.written), None)
            if existing is not None:
                text = "the file exists; update=True copies what differs, mode='overwrite' replaces it"
                error = FileExistsError(errno.EEXIST, text, self.fs.display_path(self.directory + existing))
                raise for_cli(error, "the file exists; --update copies what differs, --mode overwrite replaces it")
        if self.options.mode == "overwrite":
            return list(files)
        return [(name, source) for name, source in files if not self._is_same(source, self.listing.get(name))]

    def _is_same(self, source: Source, entry: Entry | None) -> bool:
        """True if a file of the target has the content of a file of the source, by checksums."""
        if entry is None or (source.size is not None and entry.size is not None and source.size != entry.size):
            return False
        of_source, of_target = stated_digests(source.info), stated_digests(entry.info)
        for kind in of_source.keys() & of_target.keys():
            return of_source[kind] == of_target[kind]
        target = Source.from_entry(self.fs, entry)
        kind = next(iter((*of_source, *of_target)), "crc32c")
        digest = of_source[kind] if kind in of_source else _digest(source, kind)
        return digest == (of_target[kind] if kind in of_target else _digest(target, kind))

    def gone(self, found: Found) -> list[str]:
        """List record files of the target that the source, directories without a manifest, no longer has."""
        if not self.options.update or not found.directories or found.datasets or not found.files:
            return []
        names = {name for name, _ in (*found.files, *found.others)}
        listed = [entry for name, entry in self.listing.items() if ColumnFolder.has_only(name, "")]
        named = {entry.name[len(self.directory) :] for entry in record_files(listed)}
        gone = sorted(named - names)
        return [*gone, *(index for name in gone for index in FileName.indexes(name) if index in self.listing)]

    def check_datasets(self, found: Found, gone: Sequence[str]) -> None:
        """Refuse to add files without an entry in the target's manifest, and to remove files with an entry."""
        names = [
            *(name for name, _ in found.files),
            *(FileName.manifest(dataset.manifest.dataset) for dataset in found.datasets),
        ]
        self._check_folder([self.directory + name for name in names])
        if not found.files or found.datasets:
            return
        files = [FileName.parse(name) for name in self.listing if "/" not in name]
        for manifest in [file.name for file in files if file.kind is Kind.MANIFEST]:
            known, _ = known_manifest(self.fs, self.listing, manifest)
            named = () if known is None else {*known.paths}
            lost = next((name for name in gone if name in named), None)
            if lost is not None:
                text = (
                    f"the dataset has '{printable(lost)}', which the source does not have: update=True would remove it"
                )
                path = self.fs.display_path(self.directory + manifest)
                raise FileExistsError(errno.EEXIST, f"{text}; choose another directory", path)
            new = next((name for name, _ in found.files if name not in named), None)
            if new is not None and FileName.parse(manifest).dataset == FileName.DIRECTORY_STEM:
                raise unnamed_error(os.fspath(self.path), self.fs.display_path(self.directory + new))

    def _check_folder(self, paths: Sequence[str]) -> None:
        """Refuse files for a target that is a folder of a dataset, unless the dataset names them."""
        name, roots = FileName.manifest(FileName.DIRECTORY_STEM), ColumnFolder.roots_of(self.directory)
        found = self.fs.entries([root + name for root in roots], are_files=True)
        for root, entry in zip(roots, found, strict=True):
            known, _ = known_manifest(self.fs, {} if entry is None else {name: entry}, name)
            named = set(paths) if known is None else {root + path for path in known.paths}
            if (new := next((path for path in paths if path not in named), None)) is not None:
                raise unnamed_error(self.fs.display_path(root), self.fs.display_path(new))

    def indexes(self, copied: _DatasetCopy) -> list[tuple[str, Source]]:
        """List the indexes of a dataset to copy."""
        return copied.found.indexes(copied.plan.wanted.paths, copied.plan.new(), self.listing)


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """Datasets and files to copy to a target, and files to remove from it."""

    target: _Target
    found: Found
    datasets: list[_DatasetCopy]
    files: list[tuple[str, Source]]
    gone: list[str]

    @classmethod
    def of(cls, target: _Target, found: Found) -> _Work:
        """Plan the copy; raise an error if it is not possible."""
        datasets = [target.plan_copy(dataset) for dataset in found.datasets]
        files = target.changed_files(found.files)
        gone = target.gone(found)
        target.check_datasets(found, gone)
        return cls(target, found, datasets=datasets, files=files, gone=gone)

    @property
    def kept(self) -> int:
        """Number of shards and files of records that the target has already."""
        shards = sum(copied.plan.kept + len(copied.plan.stored) for copied in self.datasets)
        return shards + len(self.found.files) - len(self.files)

    @property
    def removed(self) -> tuple[str, ...]:
        """Names of all files that the source no longer has."""
        return (*self.gone, *(name for copied in self.datasets for name in copied.plan.gone))

    def total_bytes(self) -> int:
        """Bytes to copy, for a progress bar."""
        total = sum(source.size or 0 for _, source in (*self.files, *self.found.others))
        for copied in self.datasets:
            total += sum(copied.plan.wanted.files[number].bytes for number in copied.plan.moved)
            total += sum(source.size or 0 for _, source in self.target.indexes(copied))
        return total


class _Mover:
    """Moves the bytes of files and datasets to a target, several at a time, and counts them."""

    def __init__(self, target: _Target, call: _Call, traffic: Traffic) -> None:
        self.target, self.fs, self.directory = target, target.fs, target.directory
        self.options, self.traffic = call.options, traffic
        self.moved = _Moved()
        self._call = call
        self._lock = threading.Lock()

    def move_dataset(self, copied: _DatasetCopy) -> None:
        """Copy the shards of a dataset, publish them, and copy their indexes."""
        found, planned = copied.found, copied.plan
        target = CopiedDataset(self.fs, self.directory, copied.known, planned)
        try:
            target.begin()
            sizes = [planned.wanted.files[number].bytes for number in planned.moved]
            share = self._share(sizes, [found.fs])
            calls = [partial(self._move_shard, found, target, number, share) for number in planned.moved]
            first = [found.source(found.manifest.files[number]) for number in planned.moved[:1] if planned.by_store]
            self._together(calls, share, first)
            target.publish(self.target.listing)
            self.target.written.add(FileName.manifest(planned.wanted.dataset))
            self._move_indexes(copied)
        except BaseException as error:
            target.discard(error)
            raise
        target.warn_of_left()

    def _move_shard(self, found: FoundDataset, target: CopiedDataset, number: int, share: _Share) -> _Done:
        file, records = target.plan.wanted.files[number], self.options.verify == "records"
        source, is_exclusive = found.source(found.manifest.files[number]), target.is_exclusive(number)
        if target.plan.by_store and can_copy(source, self.fs):
            make_room = partial(target.make_room, number) if is_exclusive else None
            passed = self._copy_by_store(source, target.target_of(number), make_room)
            if passed is not None:
                self.traffic.throttle(passed.bytes)
                return file.path, passed
        open_file = partial(target.open_file, number, share.upload)
        try:
            return file.path, self._pass(source, open_file, share, records)
        except FileExistsError:
            if not is_exclusive:
                raise
        target.make_room(number)
        try:
            return file.path, self._pass(source, open_file, share, records)
        except FileExistsError as error:
            raise target.overtaken_error() from error

    def _move_indexes(self, copied: _DatasetCopy) -> None:
        """Copy the indexes of a published dataset, which are those of the same version."""
        if indexes := self.target.indexes(copied):
            self.move_files(indexes, records=False, found=copied.found)
            copied.found.version.check_unchanged()

    def move_files(
        self, files: Sequence[tuple[str, Source]], *, records: bool, found: FoundDataset | None = None
    ) -> None:
        """Copy files; those of a dataset that was `found` are its indexes."""
        move = self._move_file if found is None else partial(self._move_index, found)
        stores = [FsspecFileSystem(source.remote[0]) for _, source in files[:1] if source.remote is not None]
        share = self._share([source.size or SMALL_BYTES + 1 for _, source in files], stores)
        self._together([partial(move, *each, records, share) for each in files], share, [file[1] for file in files[:1]])

    def _move_index(self, found: FoundDataset, name: str, source: Source, records: bool, share: _Share) -> _Done | None:
        """Copy an index; None if it was removed, by a writer that is about to replace the dataset or the index."""
        try:
            return self._move_file(name, source, records, share)
        except (FileNotFoundError, ReplacedError):
            found.version.check_unchanged()
            if found.fs.entry(source.location[1], is_file=True) is not None:
                raise  # what is missing is of the target
            return None

    def _move_file(self, name: str, source: Source, records: bool, share: _Share) -> _Done:
        path = self.directory + name
        is_new = name not in self.target.listing
        by_store = self._copy_by_store(source, path) if can_copy(source, self.fs) else None
        if by_store is not None:
            self.target.written.add(name)  # also if another file has failed
            self.traffic.throttle(by_store.bytes)
            return name, by_store
        open_file = partial(self._open, path, share.upload, exclusive=is_new)
        try:
            passed = self._pass(source, open_file, share, records)
        except FileNotFoundError as error:
            fs, place = source.location
            if fs.entry(place, is_file=True) is not None or (fs.is_local and is_dangling(place)):
                raise  # what is missing is of the target, or what a link leads to
            raise source.replaced_error() from error  # who removed it may be replacing it: the copy begins again
        self.target.written.add(name)
        return name, passed

    def _open(self, path: str, upload: int, *, exclusive: bool) -> OutputFile:
        folder = os.path.dirname(path)
        if not isinstance(self.fs, FsspecFileSystem):
            create_directories(folder)
        elif folder not in self._call.folders:
            self.fs.make_directory(folder)
            self._call.folders.add(folder)
        return open_named(self.fs, path, exclusive=exclusive, looks=False, upload_bytes=upload)

    def _pass(self, source: Source, open_file: Callable[[], OutputFile], share: _Share, records: bool) -> Passed:
        """Let the bytes of a file pass to another, which is published if they are right."""
        with open_file() as output:
            output.states_crc32c = True
            return transfer(source, output, self.traffic, records=records, window_bytes=share.window)

    def _copy_by_store(self, source: Source, target: str, make_room: Callable[[], None] | None = None) -> Passed | None:
        """Let the store copy a file; None if it states nothing that proves the copy, which is removed then.

        With `make_room`, which removes it, a copy is made only if no file has the name.
        """
        assert isinstance(self.fs, FsspecFileSystem)
        assert source.size is not None, "it was listed"
        with suppress(TFRecordError):  # read it, to tell where it is damaged
            answer = copy_within(source, self.fs, target, exclusive=make_room is not None)
            if answer.is_proven:
                passed = Passed(answer.bytes, answer.crc32c, None)
                check_passed(source, passed)
                return passed
        (make_room or partial(self.fs.remove, target))()
        return None

    def _together(self, calls: Sequence[Callable[[], _Done | None]], share: _Share, first: Sequence[Source]) -> None:
        """Make calls on several threads, and count the requests that they make again.

        The file of the first one goes alone if its store's answer decides how all go.
        """

        def counted_call(call: Callable[[], _Done | None]) -> _Done | None:
            with counting_retries(self._count):
                return call()

        alone = 0 if all(is_proof_known(source, self.fs) for source in first) else 1
        stop = self.traffic.stopped.set
        for some in (calls[:alone], calls[alone:]):
            for done in ordered((partial(counted_call, call) for call in some), share.threads, "copy", stop):
                if done is not None:
                    self.moved.add(*done)

    def _count(self, made: int) -> None:
        with self._lock:
            self._call.retries += made

    def _share(self, sizes: Sequence[int], stores: Sequence[FileSystem]) -> _Share:
        """Decide how many files are copied at a time, and the memory of each."""
        largest = max(sizes, default=0)
        remote = [fs for fs in (self.fs, *stores) if isinstance(fs, FsspecFileSystem)]
        needed = _LARGE
        if largest <= SMALL_BYTES:
            is_held_once = largest <= LIMITS.s3_part_bytes and all(fs.is_s3 for fs in remote)
            needed = largest + _BESIDE if is_held_once else 7 * largest // 2
        elif self.fs.display_path("x").startswith("g"):
            needed = _GCS_UPLOAD
        most = _MOST_TRANSFERS if remote else cpu_count()
        threads = self.options.threads or min(most, _MEMORY // max(needed, 1))
        threads = max(1, min(threads, len(sizes)))
        return _Share(threads, _MEMORY // threads // 4, _MEMORY // threads // 5)


@dataclass(frozen=True, slots=True)
class _Share:
    """Number of threads that copy files, and bytes of memory of each for reading and for storing."""

    threads: int
    window: int
    upload: int


def _digest(source: Source, kind: str) -> str:
    """Read a file to compute its checksum."""
    crc, md5 = 0, hashlib.md5(usedforsecurity=False)
    buffer = memoryview(bytearray(_READ))
    with closing(source.open()) as raw:
        while n := raw.readinto(buffer):
            if kind == "md5":
                md5.update(buffer[:n])
            else:
                crc = crc32c(buffer[:n], crc)
    return md5.hexdigest() if kind == "md5" else f"{crc:08x}"
