"""Sharded datasets are published by one replacement of their manifest, which names all new shards, or none.

Where the shards wait until then follows from their names:

- Shards that are added to a dataset have names that no other writer uses, ``train-00008-<id>.tfrecord`` with the id of
  the writing. Readers do not read such a file before the manifest names it: it is written under its own name.
- Names that follow from the number of shards, ``train-00000-of-00008``, may be those of the dataset that is replaced.
  The shards wait under staged names, ``_<id>-00000.staged``. The new manifest states both names of each; then they are
  given their names, the old files are removed, and the manifest is written without the staged names.
- In a bucket, where that takes copies, a dataset that does not exist yet is written under its names behind a manifest
  that readers refuse.

A writer killed before the manifest is replaced leaves the old dataset, one killed after it the new one; `tfr clean`
removes what is left. `tfrecord_io.store.write.commit_place` has what makes the replacement one step.
"""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias, TypeVar

from tfrecord_io.base import Remark, StorageOptions, and_more, counted, for_cli, logger, printable
from tfrecord_io.store.filesystem.directories import remove_directories
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.filesystem.locate import Location, is_remote
from tfrecord_io.store.paths.column_folder import ColumnFolder
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import Manifest, Txn, ids_replaced
from tfrecord_io.store.paths.manifest_parts import PartGoneError
from tfrecord_io.store.paths.path_search import list_directory, other_files, record_files
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.paths.sniff_files import readable_files_with_records
from tfrecord_io.store.read.source import ManifestFile, Source
from tfrecord_io.store.write.commit_place import Place
from tfrecord_io.store.write.commit_place_local import LocalPlace
from tfrecord_io.store.write.old_files import OldFiles
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.write_modes import Change, Rules, Unite, change_of

_REPLACED = Remark.published("what was written now was published, and has been replaced since")
_MOST_ROUNDS = 8  # of files that are stored or copied, each after a look at the manifest

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WrittenShard:
    """A completely written shard, to be published."""

    index: int
    records: int
    bytes: int
    crc32c: int
    output: OutputFile | None = None  # to commit; None: it is committed, under the name `staged`
    staged: str | None = None  # by default, the writer's own name for it
    source: Mapping[str, str | int] | None = None  # see `ManifestFile`
    folder: str = ""  # of partition columns, with its slash


def place_of(fs: FileSystem, directory: str, stem: str) -> Place:
    """The `Place` of the dataset `stem`; `directory` ends with a slash."""
    manifest = directory + FileName.manifest(stem)
    if is_remote(fs):
        from tfrecord_io.store.write.commit_place_remote import remote_place  # imports fsspec

        return remote_place(fs, directory, manifest)
    return LocalPlace(fs, directory, manifest)


class PublishedDataset:
    """A published dataset: what is left to do, and to say, after `Publication.publish`.

    It `is_repeated` if its transaction was in, so that nothing was published now.
    """

    def __init__(self, publication: Publication, *, is_repeated: bool = False) -> None:
        self._publication, self.is_repeated = publication, is_repeated

    @property
    def left(self) -> dict[str, OSError]:
        """The old files that could not be removed, and why; the caller adds its own."""
        return self._publication.old.left

    def warn_of_left(self) -> None:
        """Warn of files that should have been removed, when nothing else is to be done."""
        self._publication.old.warn_of_left()

    def withdraw_indexes(self) -> None:
        """Remove the indexes of shards that another writer has replaced before they were written."""
        self._publication._withdraw_indexes()

    def remark_published(self, error: BaseException) -> None:
        """Let an error of what follows say that the dataset is published."""
        is_there = True
        with suppress(OSError):
            is_there = self._publication._own_published() is not None
        self._publication._remark_published(error, is_there=is_there)


class Publication:
    """A sharded dataset being written to a `Place`.

    It is used in this order: `open` the shards, write them, `publish`, which returns what can be done afterwards; after
    an error, `discard`. Everything that is known before the first shard is an argument of the constructor, everything
    that the written rows decide one of `publish`.

    Parameters
    ----------
    output : Output
    place : Place
        The directory of `output.base`.
    change : Change
        What happens to an existing dataset. Other TFRecord files are refused in a directory that is written as a whole,
        because a reader of the directory would read them, too.
    id : str, optional
        The id of the writing.
    is_staged : bool
        Other processes stage the shards: see `tfrecord_io.store.write.sharded_dataset_distributed`.
    keeps_stored : bool
        Shards that are stored stay if publishing fails, for a later call that goes on.

    Attributes
    ----------
    output : Output
        Where the shards are written, under their names.
    old : OldFiles
        The files of the dataset that is replaced.
    """

    Shard: TypeAlias = WrittenShard
    File: TypeAlias = ManifestFile
    Published: TypeAlias = PublishedDataset

    @staticmethod
    def change_of(mode: str | None, unite: Unite, partition_by: tuple[str, ...] = (), *, grows: bool) -> Change:
        """The change for a caller's `mode`, by default "error", of a dataset that `grows` or has numbered names."""
        return change_of(mode, unite, partition_by, grows=grows)

    @classmethod
    def start(
        cls,
        output: Output,
        change: Change,
        storage: StorageOptions = StorageOptions.DEFAULT,
        *,
        id: str | None = None,
        is_staged: bool = False,
        keeps_stored: bool = False,
    ) -> Publication:
        """Start writing a sharded dataset; a missing directory is created."""
        place = place_of(*output.location(storage), output.stem)
        return cls(output, place, change, id, is_staged=is_staged, keeps_stored=keeps_stored)

    @staticmethod
    def publish_in_place(fs: FileSystem, directory: str, manifest: Manifest) -> None:
        """Publish a new dataset of files that are in the directory, under their names, by its manifest alone.

        Raises
        ------
        FileExistsError
            There is a manifest by now.
        """
        place = place_of(fs, directory, manifest.dataset)

        def new(existing: Manifest | None) -> Manifest:
            if existing is not None:
                text = "it has a manifest by now, which another writer has written"
                raise FileExistsError(errno.EEXIST, text, place.path)
            return manifest

        with place.alone():
            place.update(new, lambda current: current.id == manifest.id)

    @staticmethod
    def find_whole(output: Output, storage: StorageOptions) -> Manifest | None:
        """The manifest of a dataset all of whose files exist and have the stated sizes; None if there is none."""
        place = place_of(*output.location(storage), output.stem)
        manifest = place.ask(_load)
        if manifest is None or not manifest.complete or manifest.staged:
            return None
        entries = place.fs.entries([place.directory + file.path for file in manifest.files], are_files=True)
        sizes = [None if entry is None else entry.size for entry in entries]
        return manifest if sizes == [file.bytes for file in manifest.files] else None

    @staticmethod
    def manifest_naming(file: Location) -> str | None:
        """The path of the manifest that names a file, next to it or above its folders of columns; None if none does."""
        fs, name = file
        folder = name[: len(name) - len(name.rpartition("/")[2])]
        shard = ShardName.parse(name.removeprefix(folder))
        stems = dict.fromkeys([FileName.DIRECTORY_STEM, FileName.DIRECTORY_STEM if shard is None else shard.stem])
        places = [(folder, stem) for stem in stems]
        places += [(root, FileName.DIRECTORY_STEM) for root in ColumnFolder.roots_of(folder)]
        for directory, stem in places:
            manifest = place_of(fs, directory, stem).ask(_load)
            if manifest is not None and name.removeprefix(directory) in manifest.paths:
                return fs.display_path(directory + FileName.manifest(stem))
        return None

    def __init__(
        self,
        output: Output,
        place: Place,
        change: Change,
        id: str | None = None,
        *,
        is_staged: bool = False,
        keeps_stored: bool = False,
    ) -> None:
        self.place, self._change, self.output = place, change, output
        self._id, self._is_staged, self._keeps_stored = id or ShardName.new_id(), is_staged, keeps_stored
        place.replaces_damaged = self._rules.replaces_all or not output.grows
        self.old = OldFiles(place, output.stem, grows=output.grows)
        self._is_published = False  # the manifest is replaced, and the store has confirmed it
        self._is_readable = False  # it is replaced, but that failed, so that a loss of power may take it
        self._overtaken: OSError | None = None  # the error that says that another writer has replaced it
        self._known = self._check_existing()  # the manifest, if the dataset grows
        # The last manifest without a shard of this writing: its parts are not read again. Another attempt of a job may
        # have published before.
        self._without_own = None if is_staged else self._known
        self._stages = not output.grows and bool(place.is_local or self.old.existing or is_staged)
        # Another writer may write to the names of a new dataset, too; a shard that is added is stored once, also if an
        # answer is lost: one that is stored again is another version than the one that a reader has listed.
        self._is_exclusive = place.is_conditional and not self._stages
        self._stored: set[str] = set()  # shards that have a name
        self._seen_ids: set[str | None] = set()  # of manifests that were to be replaced
        self._others: set[str] = set()  # replaced files that another writer removes
        self._sent: list[OutputFile] = []  # whose `commit` has begun
        place.create()
        if output.grows:
            first = 0 if self._known is None else 1 + self._known.largest_number
            self.output = output.added_by(self._id, first, None if self._known is None else self._known.compression)

    @property
    def _rules(self) -> Rules:
        return self._change.rules

    @property
    def known(self) -> Manifest | None:
        """The manifest of the dataset to which shards are added; None if there is none, or nothing of it stays."""
        known = self._known
        return None if known is None or known.is_begun or self._rules.replaces_all else known

    @property
    def model(self) -> list[str]:
        """A shard that exists, if one does: new ones get its owner and mode."""
        manifest = FileName.manifest(self.old.stem)
        return next(([name] for name in self.old.existing if name != manifest), [])

    @property
    def side_by_side(self) -> bool:
        """True if threads may open and write shards at the same time."""
        return self.place.is_local

    @property
    def keeps_empty(self) -> bool:
        """True if shards without records are published."""
        return not self.output.grows or self._known is None or not self._known.files

    # ---- what there is

    def _check_existing(self, handed_over: frozenset[str] = frozenset()) -> Manifest | None:
        """Look at the dataset's files, of which `old` notes those that exist; returns the manifest of one that grows.

        Raises
        ------
        FileExistsError
            The dataset must not be written.
        FileNotFoundError
            Shards that other processes have staged, and `handed_over`, are gone.
        """
        known = self.place.read() if self.output.grows else None
        if known is not None or self._rules.is_planned:
            self._change.check(known, self.old)
            return known
        listing: list[Entry] = []  # one for both checks: between two, another writer may publish its shards
        with suppress(FileNotFoundError, NotADirectoryError):
            list_all = list_directory if self.output.directory else type(self.place.fs).listing
            listing = list_all(self.place.fs, self.place.directory)
        # Another writer may have begun the dataset meanwhile.
        if self.output.grows and listing and (known := self.place.read()) is not None:
            self._change.check(known, self.old)
            return known
        if self.place.is_conditional:
            self.old.note_versions(listing)
        names = [self.old.name_of(entry) for entry in listing if not entry.directory]
        for missing in handed_over.difference(names):
            text = "a finished part was removed, perhaps by another process: write the dataset again, which makes it"
            raise FileNotFoundError(errno.ENOENT, text, self.old.path_of(missing))
        # A manifest that was listed, and is gone by now, is that of a writer which has failed.
        manifest = None if self.output.grows else FileName.manifest(self.old.stem)
        existing = [name for name in names if self.old.is_shard(name) or name == manifest]
        if self.output.directory:
            self._check_no_foreign_files(existing, listing)
        if existing and (self.output.grows or not self._rules.replaces_all):
            raise self._change.exists_error(min(existing), self.old)
        self.old.existing = existing
        return None

    def _check_no_foreign_files(self, existing: Sequence[str], listing: Sequence[Entry]) -> None:
        """Without a manifest, files of the dataset's name are foreign too: the caller named only the directory."""
        record_entries = [*record_files(listing), *readable_files_with_records(self.place.fs, other_files(listing))]
        foreign = {self.old.name_of(entry) for entry in record_entries}
        foreign.difference_update(existing if FileName.manifest(self.old.stem) in existing else ())
        old = self.place.ask(_load) if foreign else None
        if old is not None:
            named = foreign.intersection(old.paths)
            if old.partition_by and named == foreign:
                columns = list(old.partition_by)
                reason = f"the dataset is partitioned by {columns}, and output without folders does not replace it"
                text: str = f"{reason}; pass partition_by={columns!r}, or choose another directory"
                error = FileExistsError(errno.EEXIST, text, self.place.fs.display_path(self.place.directory))
                options = " ".join(f"--partition-by {column}" for column in columns)
                raise for_cli(error, f"{reason}; pass {options}, or choose another directory")
            # Another writer has published them since the directory was listed, or is publishing them.
            foreign.difference_update(named, existing)
        if not foreign:
            return
        first, mode = min(foreign), self._rules.mode
        text = f"the directory has TFRecord files that are not of the dataset to write ('{printable(first)}'"
        text += f"{and_more(len(foreign) - 1)})"
        if self._rules.needs_manifest:
            names = (name for name in sorted(foreign) if "/" not in name)
            stem = next((shard.stem for shard in map(ShardName.parse, names) if shard is not None), None)
            if stem is not None and any(entry.basename == FileName.manifest(stem) for entry in listing):
                base = self.place.fs.display_path(self.place.directory + stem)
                advice = advice_cli = f"name their dataset, '{printable(base)}@*'"
            else:
                advice, advice_cli = (
                    f"{option} needs a manifest that names them; {adopt} writes one, or name the dataset, as in name@*"
                    for option, adopt in ((f"mode={mode!r}", "tfrecord_io.adopt"), (f"--mode {mode}", "tfr adopt"))
                )
        else:
            advice, advice_cli = (
                f"reading the directory would mix them, and {option} does not delete them: choose another directory, "
                f"or name the dataset, as in name@{'*' if self._is_staged else 8}"
                for option in ("mode='overwrite'", "--mode overwrite")
            )
        error = FileExistsError(errno.EEXIST, f"{text}; {advice}", self.old.path_of(first))
        raise for_cli(error, f"{text}; {advice_cli}")

    def last_sidecar(self, suffix: str) -> tuple[Source, int] | None:
        """The last earlier shard with rows: its sidecar with this suffix, and the shard's size in bytes."""

        def last_in(manifest: Manifest | None) -> ManifestFile | None:
            files: Sequence[ManifestFile] = () if manifest is None else manifest.files
            return next((file for file in reversed(files) if file.records), None)

        last = None if self.known is None else self.place.ask(last_in, self.known)
        if last is None:
            return None
        entry = self.place.fs.entry(f"{self.place.directory}{last.path}{suffix}", is_file=True)
        return None if entry is None or entry.directory else (Source.from_entry(self.place.fs, entry), last.bytes)

    def has_txn(self, txns: Sequence[Txn]) -> bool:
        """True if one of these transactions was in when the dataset was looked at: nothing is to be written."""
        return self._known is not None and self._known.has_txn(txns)

    def check(self, content: Manifest) -> None:
        """Raise SchemaError if rows of the schemas of `content` cannot be added."""
        self._change.check_schemas(self._known, content, self.place.path)

    # ---- shards

    def open(self, index: int, folder: str = "") -> OutputFile:
        """Open a shard for writing."""
        name = folder + self._shard_name(index)
        staged = FileName.staged(self._id, index) if self._stages else None
        models = [name, *self.model]  # the old dataset may have had fewer shards
        return self.place.open(name, staged, models, exclusive=self._is_exclusive)

    def _shard_name(self, index: int) -> str:
        return self.output.shard(index).rpartition("/")[2]

    def store(self, shard: WrittenShard) -> None:
        """Begin to store a shard before the publication, if memory would hold its content until then."""
        if self.output.grows and not self.side_by_side:
            self._begin_growing()
            assert shard.output is not None
            self._stored.add(shard.folder + self._shard_name(shard.index))
            self._sent.append(shard.output)
            shard.output.begin_commit()

    def _begin_growing(self) -> None:
        """Write the first manifest of a dataset that grows, if it has none."""
        if self._known is None:
            with self.place.alone():  # or that of another writer would be lost
                self._known = self.place.update(self._first_manifest, lambda manifest: True)[1]
                self.place.confirm()  # it may be that of another writer, and shards may be named in folders now

    def _first_manifest(self, manifest: Manifest | None) -> Manifest:
        """The given manifest, or a first one without files, so that readers see no shard before the publication."""
        return manifest or self._change.first_manifest(Manifest(self.old.stem, self._id, ()))

    def _put(self, shard: WrittenShard, name: str) -> None:
        """Give a shard the name under which it is published."""
        is_stored = name in self._stored
        self._stored.add(name)
        if shard.output is None:
            if not is_stored and shard.staged != name:
                version = "" if self._is_exclusive else None
                if not self.place.move(str(shard.staged), name, size=shard.bytes, version=version):
                    self.place.check([ManifestFile(name, shard.records, shard.bytes, shard.crc32c)])
        elif shard.output.is_open:
            try:
                shard.output.commit()
            except FileExistsError as error:
                if self.output.grows:  # no other writer has its name
                    raise
                self._stored.discard(name)
                self._check_still_begun()
                raise (self.overtaken_error() if self._rules.replaces_all else error) from None

    # ---- publishing

    def begin(self, begun: Callable[[Manifest | None], Manifest | None]) -> None:
        """Replace the manifest by one with which readers refuse the dataset, and stop the writers before.

        `begun` returns that manifest for the one that is there, or None if another writer has replaced the dataset.
        """

        def first_manifest(manifest: Manifest | None) -> Manifest:
            if (new := begun(manifest)) is None:
                raise self.overtaken_error()
            return new._replace(staged_before=self._staged_before(manifest, new))

        self._stop_others(self.place.update(first_manifest, self._has_id)[1].staged_before)

    def remove_stale(self, names: Sequence[str]) -> None:
        """Remove files with names of the dataset and other content, while the manifest is that of `begin`."""
        self.old.prepare_removal(names, self._id)
        self._check_still_begun()
        self.old.remove(names)

    def make_room(self, name: str) -> None:
        """Remove a stale file left by a writer that lost the race; raises the error of removing it."""
        self.old.prepare_removal([name], self._id)
        self._check_still_begun()
        if name in self.old.versions:
            self.place.remove(name, self.old.versions[name])

    def publish(self, shards: Sequence[WrittenShard], content: Manifest) -> PublishedDataset:
        """Put the shards in their places, replace the manifest, and clean up after the replacement.

        If that fails before the manifest is replaced, nothing of the shards is left; an error after it says that they
        are published. Old files that cannot be removed are not an error: `PublishedDataset` warns of them. If the
        transaction of `content` is in, nothing is published, nor left.

        Parameters
        ----------
        shards : sequence of WrittenShard
        content : Manifest
            The facts of what is written, without files, a `Manifest()` with some.
        """
        handed_over = frozenset(shard.staged for shard in shards if shard.staged is not None)
        own_manifest = self._own_manifest(shards, content)
        changed = partial(self._next_manifest, own_manifest)
        named = [(shard, file.staged or file.path) for shard, file in zip(shards, own_manifest.files, strict=True)]
        try:
            if not self._rules.is_planned:
                before = (
                    self._known or self._first_manifest(None)
                    if self.output.grows
                    else own_manifest._replace(complete=False)
                )
                with suppress(PartGoneError):  # of the manifest as it was: it is changed as it will be then
                    self.place.check_next(before, changed(before))  # before any file is moved
            if self._stages:
                self._put_all(named)
            with self.place.alone(required=self._rules.needs_lock):
                # A store refuses what would replace an object, but not other files in a directory.
                if not self.output.grows and (self.output.directory or not self._is_exclusive):
                    self._check_existing(handed_over)
                try:
                    if not self._stages:
                        self._begin(own_manifest)
                        self._put_all(named)
                    old, new = self.place.update(changed, self._has_own)
                    if new is old and new.has_txn(content.txns) and not self._is_in(new):
                        self._drop()
                        return PublishedDataset(self, is_repeated=True)
                    self._is_published = True
                    gone = [] if old is None else old.paths_without(new)
                    self._settle(new, gone)
                    self._log(own_manifest, old, len(gone))
                except KeyboardInterrupt:  # renames are fast: the published dataset is better left in order
                    if self.place.is_local and (published := self._own_published()) is not None:
                        self._settle(published)
                    raise
                except BaseException:
                    self._note_whether_readable()
                    raise
        except BaseException as error:
            self._withdraw(error)
            raise
        return PublishedDataset(self)

    def _drop(self) -> None:
        """Remove what was stored, as another attempt of the job has published its rows."""
        logger.info("txn is in, nothing is appended: %s", self.place.path)
        self._keeps_stored = False
        self._withdraw()

    def _note_whether_readable(self) -> None:
        """Look at the manifest after an error: on a disk while other writers are locked out."""
        with suppress(OSError):
            self._is_readable = self.place.ask(
                lambda manifest: manifest is not None and (self._has_own(manifest) or self._was_replaced(manifest))
            )

    def _log(self, own: Manifest, old: Manifest | None, gone: int) -> None:
        """Log what was published: so many files that are not in the new manifest are removed."""
        if (done := self._rules.done) is None:
            return
        is_new = old is None or not old.files or (old.id == self._id and not self.output.grows)
        if is_new and not self._rules.is_planned:
            done = "replaced" if self.old.existing else "written"
        amounts = counted(len(own.files), "file"), counted(own.records, "record"), counted(gone, "file")
        logger.info("%s: %s, %s with %s; %s removed", done, self.place.path, *amounts)

    def _put_all(self, named: Sequence[tuple[WrittenShard, str]]) -> None:
        outputs = [shard.output for shard, _ in named if shard.output is not None]
        for some in [named] if self._stages or self.output.grows or self._is_exclusive else self._rounds(named):
            if some is not named:  # another writer may write to these names, too
                self._check_still_begun()
            self.place.each((partial(self._put, shard, name) for shard, name in some), partial(_cancel, outputs))
        self.place.sync()

    def _rounds(self, items: Sequence[T]) -> Iterator[Sequence[T]]:
        """Split items into rounds; callers check before each round that no other writer has overtaken this one."""
        size = max(self.place.moves, -(-len(items) // _MOST_ROUNDS))
        for first in range(0, len(items), size):
            yield items[first : first + size]

    def _begin(self, own: Manifest) -> None:
        """Write the manifest by which readers pass over the shards, or refuse the dataset, which is new."""
        if self.output.grows:
            if not self._rules.is_planned:
                self._begin_growing()
            return

        def begin(manifest: Manifest | None) -> Manifest:
            if manifest is not None or self.old.existing:
                if self._rules.replaces_all:
                    raise self.overtaken_error()
                raise self._change.exists_error(FileName.manifest(self.old.stem), self.old)
            return own._replace(complete=False)

        if not self.old.existing:
            self.place.expect_none()
        self.place.update(begin, self._has_id)

    def _own_manifest(self, shards: Sequence[WrittenShard], content: Manifest) -> Manifest:
        """The manifest of the shards of this writing alone."""
        files = []
        for shard in shards:
            name = shard.folder + self._shard_name(shard.index)
            staged = shard.staged or FileName.staged(self._id, shard.index) if self._stages else None
            files.append(
                ManifestFile(name, shard.records, shard.bytes, shard.crc32c, staged=staged, source=shard.source)
            )
        compression = self.output.compression
        return content._replace(dataset=self.old.stem, id=self._id, files=tuple(files), compression=compression)

    def _next_manifest(self, own: Manifest, manifest: Manifest | None) -> Manifest:
        """The manifest with the new shards, replacing `manifest`."""
        if not self.output.grows:
            self._check_not_overtaken(own, manifest)
        new = self._change.next(manifest, own, self.old)
        if new is None:
            self._is_published |= manifest is not None and self._was_replaced(manifest)  # the answer was lost
            raise self.overtaken_error()
        if new is manifest:
            return new
        ids = ids_replaced(manifest, new, is_conditional=self.place.is_conditional)
        if (id := self._change.id_to_state(own, self.old)) is not None:
            ids = (*ids, id)
        return new._replace(staged_before=self._staged_before(manifest, new), replaced_ids=ids)

    def _check_not_overtaken(self, own: Manifest, manifest: Manifest | None) -> None:
        """Raise OSError if another writer has replaced a dataset whose names do not have the id of this writing."""
        is_own = manifest is not None and manifest.id == self._id
        if manifest is not None and not is_own and self._was_replaced(manifest):  # the answer was lost
            self._is_published = True
            raise self.overtaken_error()
        if is_own:
            return
        if not self._stages:
            raise self.overtaken_error()
        if self._seen_ids:  # it is not the first try
            self._check_never_published(own, manifest)
        self._seen_ids.add(None if manifest is None else manifest.id)

    def _check_never_published(self, own: Manifest, manifest: Manifest | None) -> None:
        """Raise OSError if the shards were published, the answer was lost, and another writer has replaced them."""
        staged = next((file.staged for file in own.staged), None)
        if staged is not None and manifest is not None and manifest.id not in self._seen_ids:
            is_there = self.place.fs.entry(self.place.directory + staged, is_file=True) is not None
            if not is_there or staged in manifest.staged_before:
                raise self.overtaken_error()

    def _staged_before(self, manifest: Manifest | None, new: Manifest) -> tuple[str, ...]:
        """The files without which the writers before can change nothing once their manifest is replaced."""
        if manifest is None or manifest.id == new.id:
            return () if manifest is None else manifest.staged_before
        kept = {file.staged for file in new.staged}
        names = [f.staged for f in manifest.staged if f.staged not in kept]
        if self.place.is_conditional:  # elsewhere a lock or a claim stops the writers before that one
            names = [*manifest.staged_before, *names]
        if not self.output.grows or names or manifest.replaces:  # else its writer removes nothing any more
            names.append(self.place.fence(manifest.id))
        # A copy that is made again has the names of the one before, of which writers in between have a note.
        return tuple(dict.fromkeys(name for name in names if name is not None and name not in kept))

    # ---- afterwards

    def _settle(self, new: Manifest, replaced: Sequence[str] = ()) -> None:
        """Give staged shards their names, remove what the manifest replaced, and write it without either.

        `replaced` are the files of the manifest before that `new` does not name; none if another process replaced that
        manifest, and was then stopped.
        """
        staged = new.staged if new.id == self._id else []
        self._stop_others(new.staged_before, {file.path for file in staged})
        staged = self._name_all(staged)
        gone = list(replaced)
        if new.replaces:
            gone = list(dict.fromkeys([*gone, *self._unnamed(new, new.replaces)]))
        if gone and (staged or not all(map(ShardName.id_in, gone))):  # another writer may have given these names again
            gone = self._still_gone(gone)
        unseen = {name for name in gone if self.old.is_numbered(name) and name not in self.old.versions}
        self.old.remove_replaced(gone)
        if staged or new.replaces or new.staged_before:
            self.place.update(
                partial(self._settled_manifest, new), lambda manifest: manifest == self._settled_manifest(new, manifest)
            )
        # Those of the shards that a writer that was overtaken has stored since they were looked for: it does not state
        # them itself if it saw them stated, before this writer settled.
        if unseen:
            self.old.note_versions(names=unseen)
            if late := sorted(unseen & self.old.versions.keys()):
                self._state(late, self.place.find())
        if not self.place.is_local:  # copies were made
            self.old.remove_replaced([*(str(file.staged) for file in staged), *self.old.fences])

    def _unnamed(self, manifest: Manifest, names: Sequence[str]) -> list[str]:
        """Filter names to the ones missing in a manifest, or if its parts are gone in the current manifest."""

        def unnamed_in(manifest: Manifest | None) -> list[str]:
            if manifest is None:
                return []
            return [name for name, number in zip(names, manifest.numbers_of(names), strict=True) if number is None]

        return self.place.ask(unnamed_in, manifest)

    def _still_gone(self, gone: Sequence[str]) -> list[str]:
        """Filter replaced files to the ones this writer may remove by the current manifest."""
        self.old.prepare_removal(gone, self._id)
        current = self.place.ask(lambda manifest: _load(self._if_own(manifest)))
        if current is None and not self.output.grows:
            raise self.overtaken_error()
        if self.place.is_conditional and (current is None or current.id != self._id):  # its writer has a fence
            self._others.update(filter(self.old.is_numbered, gone))
        used = set(() if current is None else current.paths)
        gone = [name for name in gone if ShardName.id_in(name) or (current is not None and name not in used)]
        return [name for name in gone if name not in self._others]

    def _stop_others(self, staged: Sequence[str], named: Set[str] = frozenset()) -> None:
        """Remove the files without which a writer that was overtaken changes nothing, and the indexes of old shards.

        These are all of the dataset that is replaced; of one that grows, those of names that are given now.
        """
        outdated = self.old.indexes() if self.old.existing or (self.output.grows and named) else []
        if self.output.grows:
            outdated = [name for name in outdated if FileName.parse(name).of in named]
        self.old.remove([*staged, *outdated])
        if failed := self.old.left.keys() & set(staged):
            # Most were not there: who may remove nothing can write still.
            still = failed.intersection(self.old.listing())
            for name in failed:
                error = self.old.left.pop(name)
                if name in still:
                    raise error

    def _name_all(self, staged: list[ManifestFile]) -> list[ManifestFile]:
        """Give staged shards their names; returns those that no other writer has replaced meanwhile."""
        while True:
            try:
                for some in self._rounds(staged):
                    self._name_staged(some)
                self.place.check(staged)
            except OSError as error:
                current = self.place.ask(lambda manifest: _load(self._if_own(manifest)))
                if current is None:  # another writer removed the staged shards
                    raise self.overtaken_error() from error
                waiting = {file.path for file in current.staged}
                kept = [file for file in staged if file.path in waiting]
                if len(kept) == len(staged):
                    raise
                staged = kept  # without partitions that were overwritten, and files that another writer has named
            else:
                return staged

    def _name_staged(self, files: Sequence[ManifestFile]) -> None:
        """Give staged shards their names, each replacing the version that was there before a look at the manifest.

        A writer that was overtaken replaces no shard of the other: its staged ones are gone before the other gives a
        name, and for a copy that is under way then, its target is another version.
        """
        for _ in range(_MOST_ROUNDS):
            if not self.place.is_exclusive and self._own_published() is None:
                raise self.overtaken_error()
            calls = []
            for file in files:
                version = self.old.versions.get(file.path, "") if self.place.is_conditional else None
                calls.append(partial(self.place.move, str(file.staged), file.path, size=file.bytes, version=version))
            files = [file for file, is_moved in zip(files, self.place.each(calls), strict=True) if not is_moved]
            if not files:
                return
            self.old.note_versions(names=[file.path for file in files])
        raise self.overtaken_error()

    def _settled_manifest(self, new: Manifest, current: Manifest | None) -> Manifest:
        """The manifest at the end, with the shards that other writers have added meanwhile."""
        if current is None or not self._has_own(current):
            if self.output.grows:
                return current or new
            raise self.overtaken_error()
        # A manifest that has replaced this one may have files of the same names, which its writer has yet to move.
        files = current.files
        if current.staged:
            own_names = set(new.paths if current.id == new.id == self._id else ())
            files = tuple(file._replace(staged=None) if file.path in own_names else file for file in files)
        removed = set(new.replaces).difference(self.old.left, self._others)
        left = tuple(name for name in current.replaces if name not in removed)
        before = tuple(name for name in current.staged_before if name not in new.staged_before)
        settled = current._replace(files=files, replaces=left, staged_before=before)
        return current if settled == current else settled

    def complete(self) -> tuple[Manifest, PublishedDataset] | None:
        """The manifest of this writer, if it is published; what its process did not do before it stopped is done."""
        manifest = None if self.output.grows else self.place.ask(lambda manifest: _load(self._if_own(manifest)))
        if manifest is None:
            return None
        if manifest.replaces or manifest.staged_before or manifest.staged:
            with self.place.alone(required=False):
                self._settle(manifest)
        files = tuple(file._replace(staged=None) for file in manifest.files)
        return manifest._replace(files=files, replaces=(), staged_before=()), PublishedDataset(self)

    def _withdraw(self, error: BaseException | None = None) -> None:
        """Remove the stored shards, unless their manifest was written in spite of an error."""
        is_there = was_there = self._was_published(error)
        with suppress(OSError):  # `error` is the one to report; `clean` finds what is left
            for _ in range(_MOST_ROUNDS):
                self.old.left.clear()
                is_there = self._try_to_withdraw()
                if not any(map(self.old.is_numbered, self.old.left)):  # or another writer replaces the manifest now
                    break
        if error is not None and (is_there or was_there):
            self._remark_published(error, is_there=is_there)

    def _was_published(self, error: BaseException | None) -> bool:
        """True if readers may have seen the manifest, and this error does not say so yet."""
        return (self._is_published or self._is_readable) and error is not self._overtaken

    def _try_to_withdraw(self) -> bool:
        """Remove what was stored; returns whether the manifest names it, and it stays."""
        is_new = not (self.output.grows or self._stages)
        self.old.prepare_removal(self._stored, self._id)
        current, has_own = self.place.ask(lambda manifest: (manifest, self._if_own(manifest) is not None))
        if not has_own and self.place.end_request():
            current, has_own = self.place.ask(lambda manifest: (manifest, self._if_own(manifest) is not None))
        if has_own:
            return True
        is_own = current is not None and current.id == self._id
        if is_new and not is_own and not self.place.is_conditional:
            return False  # the names are those of another writer now
        for output in self._sent:  # or what is under way would be stored after it was removed
            if output.is_open:
                with suppress(OSError):
                    output.discard()
        if not self._keeps_stored:
            stored = self._stored
            if current is not None and not is_own:
                stored = stored - set(self._leave(current))
            self.old.remove(sorted(stored))
        if is_new and is_own and not self.old.left:
            self.place.withdraw()
        self.old.remove(sorted(self.old.fences))
        return False

    def _remark_published(self, error: BaseException, *, is_there: bool) -> None:
        """Let an error say that the manifest names what was written, or did: rows added again would be there twice."""
        appends = self._rules.is_addition
        if not is_there:
            remark = _REPLACED
        elif self.place.is_local and not self._is_published:
            completion = self._rules.completion
            what_to_do = "look for the rows before they are appended again" if appends else completion
            remark = Remark.unconfirmed(f"the new dataset can be read, but a loss of power may take it; {what_to_do}")
        elif appends:
            remark = Remark.published("the rows are appended nevertheless, and can be read: do not append them again")
        else:
            remark = Remark.published(
                f"the new dataset is published nevertheless, and can be read; {self._rules.completion}"
            )
        remark.add_to(error)

    def _leave(self, current: Manifest) -> list[str]:
        """List the numbered shards in another writer's manifest, so that the next writer removes them; returns all.

        Only the writer of a manifest removes such files, as a writer that replaces it removes its fence.
        """
        numbered = sorted(filter(self.old.is_numbered, self._stored))
        self._state([name for name in numbered if name in self.old.versions], current)
        return numbered

    def _state(self, left: Sequence[str], current: Manifest | None) -> None:
        """List numbered shards in the `replaces` of a foreign manifest, so that the next writer removes them."""

        if not left:
            return

        def list_left(manifest: Manifest | None) -> Manifest:
            if manifest is None:
                raise self.overtaken_error()
            listed = {*manifest.paths, *manifest.replaces}
            new = [name for name in left if name not in listed]
            return manifest._replace(replaces=(*manifest.replaces, *new)) if new else manifest

        is_listed = False
        with suppress(PartGoneError):  # of a manifest that was replaced
            is_listed = list_left(current) is current
        if not is_listed:
            self.place.read()  # the one that this writer knows may be older
            self.place.update(list_left, lambda manifest: list_left(manifest) is manifest)

    def leave(self, names: Sequence[str]) -> None:
        """Leave stored files to a resumed write, or numbered names to the faster writer.

        Created directories are removed, if they are empty.
        """
        with suppress(OSError):  # the error before is the one to report
            if names and (current := self.place.find()) is not None and not self._has_id(current):
                self._stored = {*names}
                self.old.note_versions(names=self._stored)
                self._leave(current)
            self.old.remove(sorted(self.old.fences))
        remove_directories(self.place.created)

    def discard(self) -> None:
        """Remove what was stored and is not published, and directories that were created."""
        if self.output.grows and self._stored:
            self._withdraw()
        remove_directories(self.place.created)

    def _has_id(self, manifest: Manifest) -> bool:
        """True if a manifest has the id of this write, as begun."""
        return manifest.id == self._id

    def _has_own(self, manifest: Manifest) -> bool:
        """True if a manifest has this writer's shards; the id alone does not tell, as a begun manifest has it, too."""
        has_own = self._change.is_in(manifest, self._id, before=self._without_own)
        if not has_own:
            self._without_own = manifest
        return has_own

    def _is_in(self, manifest: Manifest) -> bool:
        """Like `_has_own`, or, if parts of the manifest are gone by now, of the one that is there."""
        return self.place.ask(self._if_own, manifest) is not None

    def _if_own(self, manifest: Manifest | None) -> Manifest | None:
        """The manifest, if it has this writer's shards."""
        return manifest if manifest is not None and self._has_own(manifest) else None

    def _was_replaced(self, manifest: Manifest) -> bool:
        """True if a manifest has replaced this writer's, which was published then."""
        return self._change.is_replaced_in(manifest, self._id)

    def _own_published(self) -> Manifest | None:
        """The manifest, if it is that of this writer."""
        return self.place.ask(self._if_own)

    def _check_still_begun(self) -> None:
        if (manifest := self.place.find()) is None or not self._has_id(manifest):
            raise self.overtaken_error()

    def overtaken_error(self) -> OSError:
        """The error for a dataset, or a shard, that another writer was faster to write."""
        self._overtaken = OSError(errno.EBUSY, self._rules.overtaken, self.place.path)
        if self._is_published:
            _REPLACED.add_to(self._overtaken)
        return self._overtaken

    def _withdraw_indexes(self) -> None:
        """Remove the indexes of shards that another writer has replaced before they were written."""
        if not self.output.grows and self._own_published() is None:
            self.old.remove(self.old.indexes())


def _load(manifest: Manifest | None) -> Manifest | None:
    return None if manifest is None else manifest.load()


def _cancel(outputs: Sequence[OutputFile]) -> None:
    """Let uploads end early after Ctrl-C. After an error those under way end by themselves: they are removed then."""
    for output in outputs:
        if output.is_open and not isinstance(sys.exception(), Exception):
            output.cancel()
