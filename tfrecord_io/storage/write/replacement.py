"""Shards of a dataset are replaced by others, or taken out, by one replacement of its manifest.

The new shards are written under names that no reader reads (see `tfrecord_io.storage.write.publication`); the manifest
that names them also names the files to be removed after it. What is appended meanwhile is kept.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import replace
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


class Replacement(Publication):
    """Replaces shards of a dataset by new ones; the others keep their place in it.

    `plan` names the new shards; each is opened, written and made a shard by `written`, then `publish` is called.

    Parameters
    ----------
    version : ManifestVersion
        The manifest when the shards were looked up.
    path : str or PathLike
        For messages.
    verb : str
        What is done to the dataset, for messages: "compacted".
    """

    _completion = "tfr clean --yes removes the files that were replaced"

    def __init__(self, version: ManifestVersion, path: str | os.PathLike[str], verb: str) -> None:
        directory, slash, base = version.name.rpartition("/")
        self._version, self._verb, stem = version, verb, stem_of(base) or ""
        self._replaced: dict[str, list[ManifestFile]] = {}  # by the path of the new shard
        self._dropped: list[ManifestFile] = []
        self._expected: list[int] = []  # the records of the new shards
        self._names: list[str] = []  # their paths
        text = os.fspath(path)
        shown = version.path[: len(version.path) - len(base)]
        output = Output(text, True, None, base=f"{shown}{stem}", suffix=".tfrecord", grows=True)
        super().__init__(output, place_of(version.fs, directory + slash, stem), "append")

    def _check_existing(self) -> list[str]:
        self._known = self.place.read()
        if self._known is None or self._known.id != self._version.id:
            raise self._is_changed()
        self._check_settled(self._known)
        return []

    @property
    def manifest(self) -> Manifest:
        """That of the dataset, before anything is replaced."""
        assert self._known is not None  # `_check_existing` has refused it
        return self._known

    def path_of(self, source: Source) -> str:
        """The path of a shard, as the manifest states it."""
        return source.location[1].removeprefix(self.place.directory)

    def plan(self, files: Sequence[ManifestFile], records: int | None = None) -> str:
        """Plan a shard in the place of the first of `files`, with all of their records or so many.

        Returns its path.
        """
        # The new name comes after those of the shards before it, also for programs that go by names.
        folder, slash, base = files[0].path.rpartition("/")
        shard = parse_shard(base)  # none: a file that was adopted
        _, record, packed = split_suffixes(base if shard is None else shard.base + shard.suffix)
        suffix = (record if record.startswith(".") else ".tfrecord") + packed
        numbers = count(0 if shard is None else shard.index)
        names = (f"{folder}{slash}{shard_name(self.old.stem, at, None, self._id)}{suffix}" for at in numbers)
        name = next(name for name in names if name not in self._replaced)
        self._replaced[name] = [*files]
        self._expected.append(sum(file.records for file in files) if records is None else records)
        self._names.append(name)
        return name

    def drop(self, files: Sequence[ManifestFile]) -> None:
        """Plan to take shards out of the dataset."""
        self._dropped += files

    def _shard_name(self, index: int) -> str:
        return self._names[index].rpartition("/")[2]

    def open_planned(self, index: int) -> OutputFile:
        """Open a planned shard, by its number, for writing."""
        return self.place.open(self._names[index], None, ())

    def written(self, index: int, records: int, size: int, crc32c: int, output: OutputFile) -> WrittenShard:
        """A shard, after it was checked to have all of its records."""
        name, expected = self._names[index], self._expected[index]
        if records != expected:
            replaced = self._replaced[name]
            reason = f"{len(replaced)} shards from '{printable(replaced[0].path)}' on"
            reason = f"'{printable(replaced[0].path)}'" if len(replaced) == 1 else reason
            text = f"{reason} have {records} records, and the manifest states {expected}; nothing is changed"
            raise CorruptRecordError(text, path=self.place.path, expected=expected, got=records)
        folder = name[: len(name) - len(name.rpartition("/")[2])]
        return WrittenShard(index, records, size, crc32c, output, folder=folder)

    def _grown(self, files: tuple[ManifestFile, ...], schema: bytes | None, manifest: Manifest | None) -> Manifest:
        """The manifest with the new shards, each in the place of the first that it replaces."""
        if manifest is None:
            raise self._is_changed()
        self._check_settled(manifest)
        current = {file.path: replace(file, staged=None) for file in manifest.files}
        replaced = [*(file for run in self._replaced.values() for file in run), *self._dropped]
        if any(current.get(file.path) != replace(file, staged=None) for file in replaced):
            raise self._is_changed()
        new = {}
        for run, file in zip(self._replaced.values(), files, strict=True):
            sources = [source for each in run for source in each.sources] if all(each.sources for each in run) else ()
            new[run[0].path] = replace(file, joined=tuple(sources))
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

    def _is_changed(self) -> OSError:
        text = f"another writer has replaced this dataset meanwhile; nothing of it is {self._verb}: do so again"
        return OSError(errno.EBUSY, text, self.place.path)

    def _check_settled(self, manifest: Manifest) -> None:
        """Raise an error if a writer may be giving the files of the manifest their names.

        On a disk it has the lock until it has done so, or died: `publish` waits for that, and does what is left.
        """
        if not self.place.is_local and any(file.staged is not None for file in manifest.files):
            text = "a writer is replacing this dataset, or died while doing so: do this when it has ended"
            call = "tfr.convert(path, path, mode='overwrite')"
            advice = f"if it died, {call} completes the dataset first"
            raise OSError(errno.EBUSY, f"{text}; {advice}", self.place.path)
