"""Shards of a dataset are replaced by others, or taken out, by one replacement of its manifest.

The new shards are written under names that no reader reads (see `tfrecord_io.storage.write.publication`); the manifest
that names them also names the files to be removed after it. What is appended meanwhile is kept.

`ReplaceableDataset` has the manifest by which a caller decides what to replace; its `replacement` has all new shards
from its beginning.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count

from tfrecord_io.errors import CorruptRecordError, printable
from tfrecord_io.storage.paths.file_names import parse_shard, shard_name, split_suffixes, stem_of
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.read.source import ManifestVersion, Source
from tfrecord_io.storage.write.atomic import place_of
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.publication import Publication, WrittenShard


def manifest_of(sources: Sequence[Source], path: str | os.PathLike[str], verb: str, advice: str) -> ManifestVersion:
    """The manifest that names all of these files; `verb` says what cannot be done without.

    Raises
    ------
    ValueError
        There is none, or there are several.
    """
    found = {source.shard.manifest.name: source.shard.manifest for source in sources if source.shard is not None}
    if len(found) != 1 or any(source.shard is None for source in sources):
        what = "a single file" if len(sources) == 1 else "these files have no manifest"
        what = f"{len(found)} datasets, each of which can be {verb}" if len(found) > 1 else what
        if len(found) == 1:
            other = next(source.path for source in sources if source.shard is None)
            what = f"its manifest does not name '{printable(other)}', which must be moved first"
        raise ValueError(f"'{printable(os.fspath(path))}': {what}: {advice}")
    return next(iter(found.values()))


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

    def __init__(self, version: ManifestVersion, path: str | os.PathLike[str], verb: str) -> None:
        directory, slash, base = version.name.rpartition("/")
        stem = stem_of(base) or ""
        shown = version.path[: len(version.path) - len(base)]
        self.verb, self.place = verb, place_of(version.fs, directory + slash, stem)
        self.output = Output(os.fspath(path), True, None, base=f"{shown}{stem}", suffix=".tfrecord", grows=True)
        manifest = self.place.read()
        if manifest is None or manifest.id != version.id:
            raise self.changed_error()
        self.check_settled(manifest)
        self.manifest: Manifest = manifest

    def path_of(self, source: Source) -> str:
        """The path of a shard, as the manifest states it."""
        return source.location[1].removeprefix(self.place.directory)

    def replacement(self, new: Sequence[NewShard], dropped: Sequence[ManifestFile] = ()) -> Replacement:
        """Begin to write new shards, and to take those that are `dropped` out of the dataset."""
        return Replacement(self, new, dropped)

    def changed_error(self) -> OSError:
        """The error for a dataset that another writer has replaced."""
        text = f"another writer has replaced this dataset meanwhile; nothing of it is {self.verb}: do so again"
        return OSError(errno.EBUSY, text, self.place.path)

    def check_settled(self, manifest: Manifest) -> None:
        """Raise an error if a writer may be giving the files of the manifest their names.

        On a disk it has the lock until it has done so, or died: `publish` waits for that, and does what is left.
        """
        if not self.place.is_local and any(file.staged is not None for file in manifest.files):
            text = "a writer is replacing this dataset, or died while doing so: do this when it has ended"
            call = "tfr.convert(path, path, mode='overwrite')"
            advice = f"if it died, {call} completes the dataset first"
            raise OSError(errno.EBUSY, f"{text}; {advice}", self.place.path)


@dataclass(frozen=True, slots=True)
class NewShard:
    """A shard in the place of the first of the `files` that it replaces."""

    files: tuple[ManifestFile, ...]
    records: int  # that it must have

    @classmethod
    def joined(cls, files: Sequence[ManifestFile]) -> NewShard:
        """The shard with all records of these files."""
        return cls(tuple(files), sum(file.records for file in files))


class Replacement(Publication):
    """Replaces shards of a dataset by new ones; the others keep their place in it.

    Each new shard is opened by its number, written, and made a shard by `written_shard`; then `publish` is called.

    Parameters
    ----------
    dataset : ReplaceableDataset
    new : list of NewShard
    dropped : list of ManifestFile
        Shards to take out of the dataset.

    Attributes
    ----------
    paths : tuple of str
        The path of each new shard, as the manifest will state it.
    """

    _completion = "tfr clean --yes removes the files that were replaced"

    def __init__(
        self, dataset: ReplaceableDataset, new: Sequence[NewShard], dropped: Sequence[ManifestFile] = ()
    ) -> None:
        self._dataset, self._new, self._dropped = dataset, tuple(new), tuple(dropped)
        self._verb = dataset.verb
        super().__init__(dataset.output, dataset.place, "append")
        self.paths = tuple(self._new_paths())

    def _check_existing(self) -> list[str]:
        self._known = self._dataset.manifest  # which was read, and checked, before
        return []

    def _new_paths(self) -> Iterator[str]:
        """The paths of the new shards: after those of the shards before each, also for programs that go by names."""
        used: set[str] = set()
        for shard in self._new:
            folder, slash, base = shard.files[0].path.rpartition("/")
            name = parse_shard(base)  # none: a file that was adopted
            _, record, packed = split_suffixes(base if name is None else name.base + name.suffix)
            suffix = (record if record.startswith(".") else ".tfrecord") + packed
            numbers = count(0 if name is None else name.index)
            paths = (f"{folder}{slash}{shard_name(self.old.stem, at, None, self._id)}{suffix}" for at in numbers)
            path = next(path for path in paths if path not in used)
            used.add(path)
            yield path

    def _shard_name(self, index: int) -> str:
        return self.paths[index].rpartition("/")[2]

    def open(self, index: int, folder: str = "") -> OutputFile:
        """Open a new shard, by its number, for writing; its folder is that of the shards that it replaces."""
        assert not folder, "a new shard states its folder"
        return self.place.open(self.paths[index], None, ())

    def written_shard(self, index: int, *, records: int, size: int, crc32c: int, output: OutputFile) -> WrittenShard:
        """A shard, after it was checked to have all of its records."""
        path, new = self.paths[index], self._new[index]
        if records != new.records:
            first = f"'{printable(new.files[0].path)}'"
            reason = first if len(new.files) == 1 else f"{len(new.files)} shards from {first} on"
            text = f"{reason} have {records} records, and the manifest states {new.records}; nothing is changed"
            raise CorruptRecordError(text, path=self.place.path, expected=new.records, got=records)
        folder = path[: len(path) - len(path.rpartition("/")[2])]
        return WrittenShard(index, records, size, crc32c, output, folder=folder)

    def _grown_manifest(
        self, files: tuple[ManifestFile, ...], schema: bytes | None, manifest: Manifest | None
    ) -> Manifest:
        """The manifest with the new shards, each in the place of the first that it replaces."""
        if manifest is None:
            raise self._dataset.changed_error()
        self._dataset.check_settled(manifest)
        current = {file.path: replace(file, staged=None) for file in manifest.files}
        replaced = [*(file for shard in self._new for file in shard.files), *self._dropped]
        if any(current.get(file.path) != replace(file, staged=None) for file in replaced):
            raise self._dataset.changed_error()
        new = {}
        for shard, file in zip(self._new, files, strict=True):
            has_sources = all(old.sources for old in shard.files)
            sources = [source for old in shard.files for source in old.sources] if has_sources else ()
            new[shard.files[0].path] = replace(file, joined=tuple(sources))
        gone = {file.path for file in replaced}
        kept = [new.get(file.path, file) for file in manifest.files if file.path in new or file.path not in gone]
        return replace(
            manifest,
            id=self._id,
            files=tuple(kept),
            replaces=(*manifest.replaces, *(file.path for file in replaced)),
            sources_without_rows=(
                *manifest.sources_without_rows,
                *(source for file in self._dropped for source in file.sources),
            ),
        )
