"""Where the shards of a dataset are put, and its manifest is replaced in one step: a local directory, or a bucket."""

from __future__ import annotations

import errno
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from tfrecord_io.base import ordered
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.filesystem.interface import Entry, FileSystem
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import INCOMPLETE, Manifest, Upkeep, format_manifest, parse_manifest
from tfrecord_io.store.paths.manifest_files import SIZES, ManifestColumns
from tfrecord_io.store.paths.manifest_parts import (
    ManifestPart,
    PartedFiles,
    PartGoneError,
    StoredPart,
    arrange,
    ask_again,
    pack,
    unpack,
)
from tfrecord_io.store.read.source import ManifestFile, read_manifest
from tfrecord_io.store.write.output_file import OutputFile

T = TypeVar("T")
_VERSIONS = ("generation", "ETag", "etag")  # of fsspec


def version_of(entry: Entry) -> str | None:
    """The version of a file that a store states with its size, as most do."""
    versions = map(entry.info.get, _VERSIONS) if entry.info else ()
    return next(map(str, filter(None, versions)), None)


NextManifest = Callable[[Manifest | None], Manifest]
"""Returns the manifest to write instead of another, or that itself if nothing is to be written."""


class Arrangement(NamedTuple):
    """A manifest to be written, the new parts of which are stored."""

    manifest: Manifest
    new: tuple[str, ...] = ()  # names of the new parts
    gone: tuple[str, ...] = ()  # of parts that nobody needs once it is written


class Place(ABC):
    """A directory (with a slash), and the manifest `name` of one dataset there. Names of shards may have folders."""

    replaces_damaged = False  # whether a manifest that cannot be used names no file, and is not an error
    takes_incomplete = False  # whether the manifest of an incomplete dataset is accepted
    is_exclusive = False  # whether other writers are kept away now
    # Whether threads may open and write shards at the same time; also the shards of a new dataset are staged, as moves
    # are renames; and a loss of power takes what was not synced.
    is_local = False
    is_conditional = False  # whether a shard can be stored only if no file has its name
    moves = 1  # shards that are stored or moved at a time
    created: tuple[str, ...] = ()  # directories that were missing, the deepest first

    def __init__(self, fs: FileSystem, directory: str, name: str) -> None:
        self.fs, self.directory, self._name = fs, directory, name
        self.path = fs.display_path(name)
        self._packed: list[tuple[ManifestColumns, ManifestPart, bytes]] = []  # parts that were made and not stored
        self._formatted: tuple[Manifest, bytes] | None = None  # that was not asked for again
        self._last: tuple[bytes, Manifest | None] = b"", None  # the last one that was parsed, after its text's digest
        self._found: tuple[str | None, Manifest | None] = None, None  # the last one that was found, after its version

    # ---- shards

    def create(self) -> None:  # noqa: B027 — buckets have no directories
        """Create the directory, if it is missing."""

    @abstractmethod
    def open(self, name: str, staged: str | None, models: Sequence[str], *, exclusive: bool = False) -> OutputFile:
        """Open a shard, to be committed under its staged name, if any, else its own; `exclusive`: only a free one."""

    def model(self, names: Sequence[str]) -> os.stat_result | None:
        """Owner and mode of the first of these files that exists."""
        return None

    @abstractmethod
    def move(self, staged: str, name: str, *, size: int | None = None, version: str | None = None) -> bool:
        """Give a staged shard of `size` bytes its final name; no error if the shard was renamed before.

        With `version`, in a store with conditions: replacing only this one ("": of none). Returns whether it was.
        """

    def fence(self, id: str) -> str | None:
        """The file without which a writing cannot remove files of a version; None if none is needed.

        It is where a version is one of contents, which another writer may write again, so that no condition of a
        removal distinguishes them: a writer that replaces the manifest of a writing removes its fence first.
        """
        return None

    def put_fence(self, id: str) -> None:  # noqa: B027 — most need none
        """Put the fence of a writing where needed, before reading the manifest by which files are removed."""

    def remove(self, name: str, version: str | None = None) -> None:
        """Remove a file if it exists; with `version`, in a store with conditions, only if it is this one.

        Raises
        ------
        OSError
            EBUSY: the fence that was put last is gone, and the file was not removed.
        """
        self.fs.remove(self.directory + name)

    def remove_many(self, names: Sequence[str]) -> Sequence[str]:
        """Remove files by few requests, as far as the store can; returns those that `remove` is left to remove."""
        return names

    @abstractmethod
    def check(self, moved: Sequence[ManifestFile]) -> None:
        """Raise OSError unless these files have their names, durably, and the sizes that are stated."""

    def sync(self) -> None:  # noqa: B027 — an object is durable once it is stored
        """Make the names of shards durable."""

    def each(self, calls: Iterable[Callable[[], T]], stop: Callable[[], None] | None = None) -> list[T]:
        """Make calls, several at a time where the filesystem supports that; after an error, `stop` those under way."""
        return list(ordered(iter(calls), self.moves, "publish", stop))

    # ---- the manifest

    @contextmanager
    def alone(self, *, required: bool = True) -> Iterator[None]:
        """Keep other writers away during a block, where updates are not conditional."""
        if self.is_exclusive:
            yield
            return
        with self._exclusion(required) as self.is_exclusive:
            try:
                yield
            finally:
                self.is_exclusive = False

    def _exclusion(self, required: bool) -> AbstractContextManager[bool]:
        """Keep other writers away during a block; False if that cannot be done and is not required."""
        return nullcontext(False)

    def expect_none(self) -> None:  # noqa: B027 — only requests are saved
        """Assume that no manifest exists, until an update finds one."""

    def confirm(self) -> None:  # noqa: B027 — an object is durable once it is stored
        """Make the manifest that is there durable."""

    def read(self) -> Manifest | None:
        """The manifest; None if there is none.

        Raises
        ------
        CorruptRecordError
            It is damaged, or declares the dataset incomplete.
        """
        text = self._text(self.fs.entry(self._name, is_file=True))
        return None if text is None else self._usable(text)

    def find(self) -> Manifest | None:
        """The manifest, also of an incomplete dataset; None if there is none, or it cannot be used.

        A version that was found before, which most stores state with its size, is not read again: a writer looks for
        its manifest many times while it gives shards their names.
        """
        entry = self.fs.entry(self._name, is_file=True)
        version = None if entry is None else version_of(entry)
        if version is None or self._found[0] != version:
            manifest = None
            with suppress(CorruptRecordError):
                text = self._text(entry)
                manifest = None if text is None else self._parse(text)
            self._found = version, manifest
        return self._found[1]

    def ask(self, question: Callable[[Manifest | None], T], *known: Manifest | None) -> T:
        """Ask the `known` manifest, else the current one, and ask again if another writer has replaced it."""
        return ask_again(self.find, question, *known)

    def withdraw(self) -> None:
        """Remove the manifest that was found last."""
        self.remove(self._name.removeprefix(self.directory))

    def _text(self, entry: Entry | None) -> bytes | None:
        for last in (False, True):
            try:
                return None if entry is None else read_manifest(self.fs, entry)
            except OSError as error:  # another writer may have replaced it between the two requests
                if last or error.errno not in (errno.ESTALE, errno.ENOENT):
                    raise
            entry = self.fs.entry(self._name, is_file=True)
        raise AssertionError("the second try returns or raises")

    def update(self, change: NextManifest, is_done: Callable[[Manifest], bool]) -> tuple[Manifest | None, Manifest]:
        """Replace the manifest by the result of `change`, in one step; returns the old and the new manifest.

        If a response is lost, `is_done` returns whether a manifest has the change.
        """
        with self.alone(required=False):
            old, new, arranged = ask_again(self.read, partial(self._change, change))
            if arranged is not None:
                try:
                    self._write(new)
                except BaseException:
                    self._withdraw_parts(arranged.new)
                    raise
                self._remove_parts(arranged.gone)
            return old, new

    def _change(
        self, change: NextManifest, old: Manifest | None
    ) -> tuple[Manifest | None, Manifest, Arrangement | None]:
        """The old and the new manifest, and how it is arranged if it is to be written."""
        new = change(old)
        if new is old:
            return old, new, None
        arranged = self._arrange(old, new)
        return old, arranged.manifest, arranged

    def _arrange(self, old: Manifest | None, new: Manifest, *, stores: bool = True) -> Arrangement:
        """Store the new parts of a manifest that replaces another one; without `stores`, only make them.

        What fails leaves none: no manifest names them yet.
        """
        names: list[str] = []

        def store(files: ManifestColumns) -> StoredPart:
            files, part, body = self._pack(files, new.dataset)
            new.check_columns(self.path, files)
            if not stores:
                self._packed.append((files, part, body))
            else:
                names.append(FileName.manifest_part(new.dataset, part.id))
                self._store_part(names[-1], body)
            return StoredPart(part, files=files)

        try:
            files = arrange(new.files, store, in_parts=new.complete)
        except BaseException:
            self._remove_parts(names)
            raise
        before = Upkeep() if old is None else old.upkeep
        parts = files.parts if isinstance(files, PartedFiles) else []
        revision = max(before.revision, new.upkeep.revision)
        if not (parts or revision):
            return Arrangement(new._replace(files=files))
        named = {part.id for part in parts}
        retired = [part.id for part in (() if old is None else old.parts) if part.id not in named]
        gone: tuple[str, ...] = ()
        if len(before.retired) > SIZES.retired:  # by changes before this one
            gone = tuple(FileName.manifest_part(new.dataset, id) for id in before.retired)
        else:
            retired = [*before.retired, *retired]
        alone_in = self._directory_if_alone(before) if parts else None
        manifest = new._replace(files=files, upkeep=Upkeep(revision + 1, tuple(retired), alone_in))
        return Arrangement(manifest.with_reader(self.fs, self._name), tuple(names), gone)

    def _directory_if_alone(self, before: Upkeep) -> int | None:
        """The number of a local directory that has no other manifest, and gets none unnoticed; see `Upkeep`."""
        return None

    def _pack(self, files: ManifestColumns, dataset: str) -> tuple[ManifestColumns, ManifestPart, bytes]:
        """Pack files as a new part, or take the part from a check before: the files, the entry and the bytes."""
        for at, (packed, _, _) in enumerate(self._packed):
            if packed == files:
                return self._packed.pop(at)
        part, body = pack(files, dataset)
        if unpack(body, part, self.path) != files:
            raise ValueError(f"'{self.path}': a part of the manifest is read back as another")
        return files, part, body

    @abstractmethod
    def _store_part(self, name: str, body: bytes) -> None:
        """Store a part of a manifest, durably, before a manifest names it."""

    def part_ids_for_good(self) -> frozenset[str]:
        """The ids of the parts that the manifest needs: no other part that is there now will ever be needed.

        A writer may have stored one, and be about to name it. So the manifest is replaced by itself before: a writer
        that has read the one before is refused, and stores others. Without a manifest, only the age of a part decides.
        """
        self.takes_incomplete = True
        with self.alone():
            if self.read() is not None:
                self._renew()
            manifest = self.read()
        return frozenset() if manifest is None else manifest.part_ids

    def end_request(self) -> bool:
        """Make sure that a request to replace the manifest that got no answer is not carried out later.

        Returns whether there was one: the manifest may be another one by now. OSError if that cannot be made sure.
        """
        return False

    def _renew(self) -> None:
        """Replace the manifest by itself: a request to replace the one that is there now is refused then."""
        revisions = [0]

        def again(manifest: Manifest | None) -> Manifest:
            if manifest is None:
                raise OSError(errno.EBUSY, "another writer has removed the manifest meanwhile", self.path)
            revisions[0] = manifest.upkeep.revision + 1
            return manifest._replace(upkeep=replace(manifest.upkeep, revision=revisions[0]))

        self.update(again, lambda manifest: manifest.upkeep.revision >= revisions[0])

    def _withdraw_parts(self, names: Sequence[str]) -> None:  # noqa: B027 — elsewhere the request may be under way
        """Remove the parts of a manifest that could not be written, unless it may be there, or come."""

    def _remove_parts(self, names: Sequence[str]) -> None:
        """Remove parts that no manifest names; `clean` finds those that are left."""
        with suppress(OSError):
            for name in self.remove_many(names) if names else ():
                self.remove(name)

    def _write(self, manifest: Manifest) -> None:
        """Replace the manifest by another, where `update` is not conditional."""
        raise NotImplementedError

    def check_next(self, old: Manifest | None, new: Manifest) -> None:
        """Raise ValueError if the manifest that follows another one could not be read; see `text_of`."""
        self._packed.clear()
        with suppress(PartGoneError):  # it is arranged again before it is written
            self.text_of(self._arrange(old, new, stores=False).manifest)

    def text_of(self, manifest: Manifest) -> bytes:
        """The text of a manifest, after its parser has read it back: one that it refuses would lose the dataset.

        Raises
        ------
        ValueError
            It is too large, or is read back as another. Nothing was written.
        """
        formatted, self._formatted = self._formatted, None  # large ones need as much memory as the manifest
        if formatted is not None and formatted[0] == manifest:
            return formatted[1]
        text = format_manifest(manifest)
        try:
            again = parse_manifest(text, self._name)
            reason = None if again == manifest else "it is read back as another"
        except CorruptRecordError as error:
            reason = error.reason
        if reason is not None:
            advice = "nothing was published; write fewer, larger shards (max_shard_bytes=), or rename them"
            raise ValueError(f"'{self.path}': no reader would accept the manifest of this dataset: {reason}; {advice}")
        is_arranged = manifest.parts or manifest.upkeep.revision
        if not is_arranged:  # else an equal one may have another text
            self._formatted = manifest, text
        return text

    def _parse(self, text: bytes) -> Manifest | None:
        from hashlib import blake2b

        digest = blake2b(text).digest()
        if self._last[0] != digest:
            self._last = digest, Manifest.parse(text, self.fs, self._name)
        return self._last[1]

    def _usable(self, text: bytes) -> Manifest:
        """The manifest of this text; see `read` for the errors."""
        try:
            manifest = self._parse(text)
        except CorruptRecordError:
            if not self.replaces_damaged:
                raise
            return Manifest(FileName.of_path(self._name).dataset or "", ShardName.new_id(), (), complete=False)
        if manifest is None:
            advice = "rename that file, or choose another name for the dataset"
            raise CorruptRecordError("it is not a manifest of this package", path=self.path, hint=advice)
        if not (manifest.complete or self.replaces_damaged or self.takes_incomplete):
            raise CorruptRecordError(
                INCOMPLETE,
                path=self.path,
                hint="write it again by mode='overwrite'",
                hint_cli="write it again by --mode overwrite",
            )
        return manifest

    def _busy(self, text: str) -> OSError:
        return OSError(errno.EBUSY, f"{text}; nothing of this writing is left: write it again", self.path)
