"""A journal of the finished parts of a writing, so that another process can resume after a stop.

Next to the dataset ``train``, ``_RESUME-train.json`` has the id of the writing, what its parts depend on
and what they are made of::

    {"format": "tfrecord_io resume", "version": 1, "id": 16 hex digits, "settings": {"columns": "['x']", …},
     "sources": [{"path": "a.csv", "size": 81920, "version": "mtime_ns=…"}, …]}

Each also has "checksum", the CRC32C of the rest as JSON with sorted names: what is damaged, or has none, is not used.

Each finished part is a staged file, ``_<id><attempt>-00003.staged``; after it is written, ``_<id><attempt>-00003.json``
describes it (see `tfrecord_io.write.resumable`). All of them are removed once the dataset is published.

Tests: tests/write/test_resumable.py and tests/laws/test_resumed_damage.py.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tfrecord_io.base import StorageOptions, hide_secrets, printable
from tfrecord_io.bytes import crc32c
from tfrecord_io.errors import CorruptRecordError, ReplacedError
from tfrecord_io.store import operating_systems
from tfrecord_io.store.filesystem.interface import Entry, FileSystem, LocalFileSystem
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths.file_names import FileName, Kind, ShardName, is_id
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.read.random_access_file import RandomAccessFile
from tfrecord_io.store.read.source import Source, read_manifest
from tfrecord_io.store.write.atomic import open_output
from tfrecord_io.store.write.sharded_dataset_distributed import JOB_DIGITS

FORMAT = "tfrecord_io resume"
_ADVICE = "delete it to convert all files again"
_ADVICE_CLI = "delete it to convert all files again"
_CHECKSUM = "checksum"
VERSION = 1
_AT_WORK = "another process converts to this dataset with resume=True; wait for it"

Document = dict[str, Any]
# "path", "size" and "version", such as ``mtime_ns=…`` or ``ETag=…``; of a local file "ctime_ns" and "inode", too
SourceVersion = dict[str, str | int]


@dataclass(frozen=True, slots=True)
class Begun:
    """A writing that was begun."""

    id: str
    settings: Mapping[str, str]
    sources: Sequence[SourceVersion]


@dataclass(frozen=True, slots=True)
class ResumeJournal:
    """The journal of a dataset, and the descriptions of finished parts."""

    output: Output
    storage: StorageOptions

    @property
    def path(self) -> str:
        return self.output.folder + self._name

    @property
    def _name(self) -> str:
        return FileName.journal(self.output.stem)

    @staticmethod
    def new(settings: Mapping[str, str], sources: Sequence[SourceVersion]) -> Begun:
        """A writing that is to begin, with an id of its own."""
        return Begun(ShardName.new_id(), settings, list(sources))

    @staticmethod
    def version_of(source: Source) -> SourceVersion:
        """The path, size and version of a file.

        That of a shard that a manifest names has no time of its last change, which its writer changes when it gives a
        staged shard its name; the manifest shows whether it was replaced. One in a bucket that was not looked up, as
        those of large datasets, has the checksum that the manifest states.

        Raises
        ------
        ValueError
            Nothing says whether its content is still the same: a pipe, a file object, or a server without ETag and
            times.
        """
        if source.can_be_read_again:
            stated = None if source.shard is None else source.shard.crc32c
            with closing(RandomAccessFile.open(source)) as file:
                if version := file.version or (f"crc32c={stated:08x}" if stated is not None else ""):
                    path = hide_secrets(FileName.without_query(source.path))
                    identity = {
                        name: n for name, n in file.identity.items() if source.shard is None or name != "ctime_ns"
                    }
                    return {"path": path, "size": file.size, "version": version, **identity}
        reason = (
            "resume=True needs files whose changes are seen, by an ETag or a time of change, and this one has neither"
        )
        raise ValueError(f"'{printable(source.path)}': {reason}")

    @staticmethod
    def check_version(source: Source, version: SourceVersion) -> None:
        """Raise ReplacedError if a file has another version by now."""
        current = source
        if source.remote is not None and source.shard is None:
            fs = FsspecFileSystem(source.remote[0])
            entry = fs.entry(source.remote[1])
            if entry is None:
                raise ReplacedError(errno.ESTALE, "the file was removed while it was read", source.path)
            current = Source.from_entry(fs, entry)
        if {**ResumeJournal.version_of(current), "path": version["path"]} != version:
            raise ReplacedError(errno.ESTALE, "the file was changed while it was read; convert it again", source.path)

    def read(self) -> Begun | None:
        """The writing that was begun; None if there is none to go on with.

        Raises
        ------
        CorruptRecordError
            The journal is damaged.
        """
        fs, directory = self.output.location(self.storage)
        entry = fs.entry(directory + self._name, is_file=True)
        if entry is None:
            return None
        try:
            document = self._document(fs, entry)
        except FileNotFoundError:  # another process has published the dataset, and removed its journal
            return None
        id, settings, sources = (document.get(name) for name in ("id", "settings", "sources"))
        is_known = document.get("format") == FORMAT and document.get("version") == VERSION
        has_id = isinstance(id, str) and is_id(id)
        if not is_known or not has_id or not isinstance(settings, dict) or not isinstance(sources, list):
            reason = f"the journal for resume=True is not of version {VERSION}"
            raise CorruptRecordError(reason, path=self.path, hint=_ADVICE, hint_cli=_ADVICE_CLI)
        return Begun(str(id), {name: str(value) for name, value in settings.items()}, sources)

    def write(self, begun: Begun, *, overwrite: bool) -> None:
        """Begin a journal or, to `overwrite` it, change it; without that, OSError (EBUSY) if there is one."""
        document = {"format": FORMAT, "version": VERSION, "id": begun.id}
        document |= {"settings": dict(begun.settings), "sources": list(begun.sources)}
        try:
            with open_output(self.path, self.storage, mode="overwrite" if overwrite else "error") as file:
                file.write(_as_json(document))
        except FileExistsError as error:
            raise OSError(errno.EBUSY, _AT_WORK, self.path) from error

    def remove(self) -> None:
        Location.of(self.path, self.storage).remove()

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Keep other processes from going on with the same writing. A bucket has no locks.

        Raises
        ------
        OSError
            Another process is at work, or has just finished.
        """
        fs, directory = self.output.location(self.storage)
        if not isinstance(fs, LocalFileSystem):
            yield
            return
        with ExitStack() as lock:
            try:
                lock.enter_context(operating_systems.current.lock_file(directory + self._name))
            except (BlockingIOError, FileNotFoundError) as error:
                raise OSError(errno.EBUSY, _AT_WORK, self.path) from error
            yield

    def add_part(self, staged: str, document: Document) -> None:
        """Describe a part whose staged file is complete."""
        with open_output(self.output.folder + FileName.part(staged), self.storage, looks=False) as file:
            file.write(_as_json({**document, "staged": staged}))

    def parts(self, id: str) -> Iterator[tuple[Document, Source]]:
        """The descriptions of the parts of a writing, and their files; those that are damaged or gone are left out."""
        fs, directory = self.output.location(self.storage)
        entries = {entry.basename: entry for entry in fs.listing(directory)}
        for name in sorted(entries):
            part = FileName.parse(name)
            staged = part.of if part.kind is Kind.PART and part.id[:JOB_DIGITS] == id[:JOB_DIGITS] else None
            if staged is not None and staged in entries:
                with suppress(CorruptRecordError, FileNotFoundError):
                    document = self._document(fs, entries[name])
                    if document.get("staged") == staged:
                        yield document, Source.from_entry(fs, entries[staged])

    def _document(self, fs: FileSystem, entry: Entry) -> Document:
        """The JSON object in a file."""
        path = fs.display_path(entry.name)
        try:
            document = json.loads(read_manifest(fs, entry))
        except (ValueError, RecursionError) as error:
            reason = f"it is not JSON ({printable(type(error).__name__)})"
            raise CorruptRecordError(reason, path=path, hint=_ADVICE, hint_cli=_ADVICE_CLI) from error
        checksum = document.pop(_CHECKSUM, None) if isinstance(document, dict) else None
        if checksum is None:
            reason = "it is damaged: it has no checksum"
            raise CorruptRecordError(reason, path=path, hint=_ADVICE, hint_cli=_ADVICE_CLI)
        if checksum != _checksum(document):
            raise CorruptRecordError(
                "it is damaged: its checksum does not match", path=path, hint=_ADVICE, hint_cli=_ADVICE_CLI
            )
        return dict(document)


def _as_json(document: Document) -> bytes:
    return (json.dumps({**document, _CHECKSUM: _checksum(document)}, indent=1) + "\n").encode()


def _checksum(document: Document) -> str:
    return f"{crc32c(json.dumps(document, sort_keys=True).encode()):08x}"
