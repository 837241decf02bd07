"""Replace or remove shards of a dataset by one replacement of its manifest.

The new shards are written under names that no reader reads (see `tfrecord_io.store.write.publication`); the manifest
that names them also names the files to be removed after it. What is appended meanwhile is kept.

`ReplaceableDataset` has the manifest by which a caller decides what to replace; its `replacement` has all new shards
from its beginning. `ReplaceShards` is the change that a publication makes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TypeAlias, TypeVar

from tfrecord_io.base import printable
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.history import History, Runs, merge, without_rows
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.paths.manifest_parts import ask_again
from tfrecord_io.store.paths.resolve_output import NamedShards
from tfrecord_io.store.read.source import ManifestFile, ManifestVersion, Source, Sources
from tfrecord_io.store.write.commit_place import Place
from tfrecord_io.store.write.old_files import OldFiles
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import Publication, WrittenShard, place_of
from tfrecord_io.store.write.write_modes import OVERTAKEN, ChangeById, Rules

T = TypeVar("T")


class Replacement:
    """New shards that replace shards of a dataset; the others keep their position in it.

    Each new shard is opened by its number, written, and made a shard by `written_shard`; then the publication publishes
    them.

    Parameters
    ----------
    dataset : ReplaceableDataset
    new : list of NewShard
    dropped : list of ManifestFile
        Shards to take out of the dataset.
    sorts : bool
        The manifest of many shards names them in the order of reading then.

    Attributes
    ----------
    paths : tuple of str
        The path of each new shard, as the manifest will state it.
    publication : Publication
    """

    def __init__(
        self,
        dataset: ReplaceableDataset,
        new: Sequence[NewShard],
        dropped: Sequence[ManifestFile] = (),
        *,
        sorts: bool = False,
    ) -> None:
        self._new, self._place, id = tuple(new), dataset.place, ShardName.new_id()
        self.paths = _new_paths(self._new, dataset.stem, id)
        names = tuple(path.rpartition("/")[2] for path in self.paths)
        output = NamedShards(dataset.path, names=names, sharded=True, count=None, base=dataset.base, grows=True)
        change = ReplaceShards(dataset.manifest, self._new, tuple(dropped), dataset.verb, sorts=sorts)
        self.publication = Publication(output, self._place, change, id)

    def open(self, index: int) -> OutputFile:
        """Open a new shard, by its number, for writing; its folder is that of the shards that it replaces."""
        return self.publication.open(index, self._folder(index))

    def _folder(self, index: int) -> str:
        """The folder of a new shard, with its slash."""
        return self.paths[index][: len(self.paths[index]) - len(self.paths[index].rpartition("/")[2])]

    def written_shard(self, index: int, *, records: int, size: int, crc32c: int, output: OutputFile) -> WrittenShard:
        """A shard, after it was checked to have all of its records."""
        new = self._new[index]
        if records != new.records:
            first = f"'{printable(new.files[0].path)}'"
            reason = first if len(new.files) == 1 else f"{len(new.files)} shards from {first} on"
            text = f"{reason} have {records} records, and the manifest states {new.records}; nothing is changed"
            raise CorruptRecordError(text, path=self._place.path, expected=new.records, got=records)
        return WrittenShard(index, records, bytes=size, crc32c=crc32c, output=output, folder=self._folder(index))


class ReplaceableDataset:
    """A dataset some of whose shards are to be replaced, with its manifest before that.

    Parameters
    ----------
    version : ManifestVersion
        The manifest when the shards were looked up.
    path : str or PathLike
        For messages.
    verb : str
        What is done to the dataset, for messages: "compacted".

    Raises
    ------
    OSError
        Another writer has replaced the manifest since, or is about to.
    """

    New: TypeAlias = Replacement

    def __init__(self, version: ManifestVersion, path: str | os.PathLike[str], verb: str) -> None:
        directory, slash, base = version.name.rpartition("/")
        self.path, self.verb, self.stem = os.fspath(path), verb, FileName.parse(base).dataset or ""
        self.base = version.path[: len(version.path) - len(base)] + self.stem  # of the shards' names
        self.place = place_of(version.fs, directory + slash, self.stem)
        self._id = version.id
        self.manifest = self._read()

    def _read(self) -> Manifest:
        manifest = self.place.read()
        if manifest is None or manifest.id != self._id:
            raise _changed_error(self.place, self.verb)
        _check_settled(manifest, self.place)
        return manifest

    def ask(self, question: Callable[[Manifest], T]) -> T:
        """Ask the manifest, whose parts are read when they are needed.

        Where one is gone, the manifest is read again: it names the same files, and perhaps others after them.
        """

        def read() -> Manifest:
            self.manifest = self._read()
            return self.manifest

        return ask_again(read, question, self.manifest)

    @staticmethod
    def manifest_of(sources: Sequence[Source], path: str | os.PathLike[str], verb: str, advice: str) -> ManifestVersion:
        """The manifest that names all of these files; `verb` says what cannot be done without.

        Raises
        ------
        ValueError
            There is none, or there are several.
        """
        manifests = Sources.of(sources).manifest_versions
        found = {manifest.name: manifest for manifest in manifests if manifest is not None}
        if len(found) != 1 or None in manifests:
            what = "a single file" if len(sources) == 1 else "these files have no manifest"
            what = f"{len(found)} datasets, each of which can be {verb}" if len(found) > 1 else what
            if len(found) == 1:
                other = next(source.path for source in sources if source.shard is None)
                what = f"its manifest does not name '{printable(other)}', which must be moved first"
            raise ValueError(f"'{printable(os.fspath(path))}': {what}: {advice}")
        return next(iter(found.values()))

    def path_of(self, source: Source) -> str:
        """The path of a shard, as the manifest states it."""
        return source.location[1].removeprefix(self.place.directory)

    def replacement(
        self,
        replaced: Sequence[Sequence[ManifestFile]],
        removed: Sequence[Sequence[int]] | None = None,
        dropped: Sequence[ManifestFile] = (),
        *,
        sorts: bool = False,
    ) -> Replacement:
        """Begin to write new shards, each at the position of the first of the files that it replaces.

        They must have the records of these, without those that are `removed`, by their numbers among them, in
        ascending order. Shards that are `dropped` are taken out of the dataset. With `sorts`, the manifest names all
        shards by folder, and in each in their order.
        """
        runs_of = self._runs_of({file.path: file.records for old in replaced for file in old})
        new = []
        for at, old in enumerate(replaced):
            runs = merge(run for file in old for run in runs_of[file.path])
            new.append(NewShard(tuple(old), runs if removed is None else without_rows(runs, removed[at])))
        return Replacement(self, new, dropped, sorts=sorts)

    def _runs_of(self, files: Mapping[str, int]) -> dict[str, Runs]:
        """The runs of files, whose paths and numbers of records these are."""
        history = self.manifest.history or History()
        if not history.runs:
            return {path: history.runs_of(records) for path, records in files.items()}
        pieces = self.ask(lambda manifest: [*_split_history(manifest, files)])
        return {path: runs for path, (_, runs) in pieces if path is not None}


@dataclass(frozen=True, slots=True)
class NewShard:
    """A shard at the position of the first of the `files` that it replaces."""

    files: tuple[ManifestFile, ...]
    runs: Runs  # of the rows that it must have, by the commits that added them

    @property
    def records(self) -> int:
        """How many records it must have."""
        return sum(rows for _, rows in self.runs)


def _new_paths(new: Sequence[NewShard], stem: str, id: str) -> tuple[str, ...]:
    """The paths of new shards: after those of the shards before each, also for programs that go by names."""
    paths: dict[str, None] = {}
    for shard in new:
        folder, slash, base = shard.files[0].path.rpartition("/")
        name = ShardName.parse(base)  # none: a file that was adopted
        _, record, packed = FileName.split_suffixes(base if name is None else name.base + name.suffix)
        suffix = (record if record.startswith(".") else ".tfrecord") + packed
        numbers = count(0 if name is None else name.index)
        candidates = (f"{folder}{slash}{ShardName.make(stem, at, None, id)}{suffix}" for at in numbers)
        paths[next(path for path in candidates if path not in paths)] = None
    return tuple(paths)


@dataclass(frozen=True, slots=True)
class ReplaceShards(ChangeById):
    """`new` shards, each at the position of the first shard that it replaces; some shards are `dropped`.

    `verb` says in messages what is done to the dataset. With `sorts`, many shards are named in the order of reading.
    """

    manifest: Manifest
    new: tuple[NewShard, ...]
    dropped: tuple[ManifestFile, ...]
    verb: str
    sorts: bool = False

    @property
    def rules(self) -> Rules:
        return Rules(
            mode="append",
            done=self.verb,
            overtaken=OVERTAKEN,
            completion="tfr clean --yes removes the files that were replaced",
            is_addition=False,
            replaces_all=False,
            needs_manifest=True,
            needs_lock=True,
            is_planned=True,
        )

    def check(self, manifest: Manifest | None, old: OldFiles) -> None:
        if manifest is None or manifest.id != self.manifest.id:
            raise _changed_error(old.place, self.verb)
        _check_settled(manifest, old.place)

    def check_schemas(self, manifest: Manifest | None, own: Manifest, path: str) -> None:
        """Do nothing: the records are those of the dataset."""

    def next(self, manifest: Manifest | None, own: Manifest, old: OldFiles) -> Manifest | None:
        if manifest is None:
            raise _changed_error(old.place, self.verb)
        _check_settled(manifest, old.place)
        replaced = [*(file for shard in self.new for file in shard.files), *self.dropped]
        new, number_of = [], dict[str, int]()
        for file, number in zip(replaced, manifest.numbers_of([file.path for file in replaced]), strict=True):
            if number is None or manifest.files[number]._replace(staged=None) != file._replace(staged=None):
                raise _changed_error(old.place, self.verb)
            number_of[file.path] = number
        for shard, file in zip(self.new, own.files, strict=True):
            has_sources = all(old_file.sources for old_file in shard.files)
            sources = [source for old_file in shard.files for source in old_file.sources] if has_sources else ()
            new.append((number_of[shard.files[0].path], file._replace(joined=tuple(sources))))
        files = manifest.files_after([*number_of.values()], new)
        history = (manifest.history or History()).change(self._runs_in(manifest), manifest.line)
        if self.sorts and not isinstance(files, tuple) and not files.are_in_order:
            order = files.reading_order.all_numbers
            history = history.reorder(files.counts, order.tolist())
            files = files.columns.take(order)
        return manifest._replace(
            history=history,
            id=own.id,
            files=files,
            replaces=(*manifest.replaces, *(file.path for file in replaced)),
            sources_without_rows=(
                *manifest.sources_without_rows,
                *(source for file in self.dropped for source in file.sources),
            ),
        )

    def _runs_in(self, manifest: Manifest) -> Iterator[tuple[int, int]]:
        """The runs of all rows after the change, in the order of the files."""
        if manifest.history is None or not manifest.history.runs:
            return
        new = {shard.files[0].path: shard.runs for shard in self.new}
        gone = {file.path: file.records for shard in self.new for file in shard.files}
        gone.update((file.path, file.records) for file in self.dropped)
        for path, (before, _) in _split_history(manifest, gone):
            yield from before
            yield from () if path is None else new.get(path, ())


def _split_history(manifest: Manifest, files: Mapping[str, int]) -> Iterator[tuple[str | None, tuple[Runs, Runs]]]:
    """The paths of files in the manifest's order, with the runs before each, and those of its rows.

    `files` has the number of records by path. At the end, None with the runs after them, and none.
    """
    begins = manifest.first_rows([*files])
    order = sorted(files, key=begins.__getitem__)
    history = manifest.history or History()
    pieces = history.split_at([(begins[path], files[path]) for path in order], manifest.records)
    return zip([*order, None], pieces, strict=True)


def _changed_error(place: Place, verb: str) -> OSError:
    """The error for a dataset that another writer has replaced."""
    text = f"another writer has replaced this dataset meanwhile; nothing of it is {verb}: do so again"
    return OSError(errno.EBUSY, text, place.path)


def _check_settled(manifest: Manifest, place: Place) -> None:
    """Raise an error if a writer may be giving the files of the manifest their names.

    On a disk it has the lock until it has done so, or died: `publish` waits for that, and does what is left.
    """
    if not place.is_local and manifest.staged:
        text = "a writer is replacing this dataset, or died while doing so: do this when it has ended"
        call = "tfr.convert(path, path, mode='overwrite')"
        advice = f"if it died, {call} completes the dataset first"
        raise OSError(errno.EBUSY, f"{text}; {advice}", place.path)
