"""Sharded datasets whose shards other processes write, and one process publishes.

Each attempt at a task writes a file of its own. Its staged name, ``_<id><attempt>-00000.staged``, has the id of the
writing and the number of the task. So a task may be tried again, or twice at the same time, on any machine. With
partition columns, it writes files for each of its folders, ``_<id><attempt>-00000-00000.staged``, with a number each:
all are in the directory of the dataset, so that one listing finds those of all attempts.

`DistributedTarget.publish` publishes one attempt of each task, as any sharded dataset is published (see
`tfrecord_io.store.write.publication`), and then removes the files of all other attempts. A process killed before
that leaves staged files, which no reader reads. Uploads of attempts that were killed are aborted with the other files.

Tests: tests/write/test_distributed.py and tests/laws/test_distributed_laws.py.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from tfrecord_io.base import StorageOptions
from tfrecord_io.store.filesystem.directories import remove_directories
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import Manifest, Txn
from tfrecord_io.store.paths.resolve_output import Output
from tfrecord_io.store.write.atomic import open_named
from tfrecord_io.store.write.atomic_local import LocalOutput
from tfrecord_io.store.write.output_file import OutputFile
from tfrecord_io.store.write.publication import Publication, WrittenShard, place_of
from tfrecord_io.store.write.write_modes import Change, Whole

JOB_DIGITS = 8  # of an id, that all attempts of a writing share


class Attempt:
    """The files of an attempt at a task, in folders of partition columns; like a `Publication`.

    Attributes
    ----------
    shards : sequence of WrittenShard
        Those that are complete, after `publish`.
    content : Manifest
        The facts of what was written, without files.
    """

    keeps_empty = False

    def __init__(self, target: DistributedTarget, task: int) -> None:
        self._target, self._task, self._id = target, task, target._new_attempt()
        self.output, self.known = target.output, target.known
        self.side_by_side = not isinstance(target.output.location(target.storage)[0], FsspecFileSystem)
        self.shards: Sequence[WrittenShard] = ()
        self.content = Manifest()
        self._names: dict[tuple[str, int], str] = {}

    def open(self, index: int, folder: str) -> OutputFile:
        """Open a shard of a folder."""
        name = self._names[folder, index] = FileName.staged(self._id, self._task, len(self._names))
        return self._target._open(self._task, name)

    def store(self, shard: WrittenShard) -> None:
        """Make a shard appear under its staged name."""
        assert shard.output is not None
        shard.output.commit()

    def has_txn(self, txns: Sequence[Txn]) -> bool:
        """False: the process that publishes asks."""
        return False

    def check(self, content: Manifest) -> None:
        """Do nothing: the process that publishes compares the schemas."""

    def publish(self, shards: Sequence[WrittenShard], content: Manifest) -> None:
        """Take the shards, which the process that began publishes."""
        names, self.content = self._names, content
        self.shards = [replace(shard, output=None, staged=names[shard.folder, shard.index]) for shard in shards]

    def discard(self) -> None:
        """Remove the files that have appeared."""
        folder = self._target.output.folder
        for name in self._names.values():
            Location.of(folder + name, self._target.storage).remove()


@dataclass(frozen=True, slots=True)
class DistributedTarget:
    """Where the tasks of one writing put their shards; it can be pickled.

    Attributes
    ----------
    output : Output
        A local path is absolute, as other processes may have another working directory.
    id : str
        Of the writing, in the manifest.
    created : tuple of str
        Local directories that were created for it, the deepest first.
    model : os.stat_result or None
        A local file whose owner and mode the shards get.
    resumable : bool
        A later process may go on: what was written stays until the dataset is published.
    change : Change
        What happens to an existing dataset.
    known : Manifest or None
        The manifest of the dataset to which shards are added, when that was begun, without its files.
    """

    output: Output
    storage: StorageOptions
    change: Change
    id: str
    created: tuple[str, ...] = ()
    model: os.stat_result | None = None
    resumable: bool = False
    known: Manifest | None = None

    @classmethod
    def begin(
        cls, output: Output, storage: StorageOptions, change: Change, *, id: str | None = None, resumable: bool = False
    ) -> DistributedTarget:
        """Check that the dataset may be written, and create its directory; with an `id`, go on with that writing.

        Raises
        ------
        FileExistsError
            As by `tfrecord_io.store.write.publication.Publication`.
        """
        output, id = output.absolute(storage), id or ShardName.new_id()
        writer = Publication.start(output, change, storage, id=id, is_staged=True)
        output = writer.output.replace(inferred=False)  # all tasks write the compression that the dataset has now
        known = None if writer.known is None else writer.known._replace(files=())
        model = writer.place.model([posixpath.basename(output.shard(0)), *writer.model])
        return cls(
            output,
            storage,
            change=change,
            id=id,
            created=writer.place.created,
            model=model,
            resumable=resumable,
            known=known,
        )

    def begin_publication(self, output: Output, content: Manifest) -> Publication:
        """The writer that publishes shards of this content to `output`; SchemaError if they cannot be added."""
        writer = Publication.start(
            output, self.change, self.storage, id=self.id, is_staged=True, keeps_stored=self.resumable
        )
        writer.check(content)  # before anything is moved
        return writer

    def open(self, task: int) -> tuple[str, OutputFile]:
        """Open the file of a new attempt at a task, which ``commit`` makes appear; also returns its name."""
        name = FileName.staged(self._new_attempt(), task)
        return name, self._open(task, name)

    def _new_attempt(self) -> str:
        """A new id of an attempt, with the beginning of the writing's id."""
        return self.id[:JOB_DIGITS] + ShardName.new_id()[JOB_DIGITS:]

    def _open(self, task: int, name: str) -> OutputFile:
        fs, directory = self.output.location(self.storage)
        path = f"{self.output.path}: task {task}"
        if isinstance(fs, FsspecFileSystem):
            fs.make_directory(directory.rstrip("/"))
            return open_named(fs, directory + name, exclusive=False, path=path, looks=False)
        try:
            return LocalOutput(path, directory + name, self.model)
        except FileNotFoundError as error:
            text = f"{error.strerror}, which was there when the writing began: begin it again if another writer, which "
            text += "failed, or the end of this writing removed it; else all machines that write need this directory"
            raise FileNotFoundError(errno.ENOENT, text, path) from error

    def publish(
        self, shards: Sequence[WrittenShard], content: Manifest
    ) -> tuple[Output, Sequence[WrittenShard] | None]:
        """Publish the shards, one attempt of each task; afterwards, remove the files of all other attempts.

        Returns where they are, and those that were published: without records, a dataset that grows needs none. None
        instead if the transaction of `content` was in.
        """
        writer = self.begin_publication(self.output.replace(count=len(shards)), content)
        shards = [shard for shard in shards if shard.records or writer.keeps_empty]
        try:
            published = writer.publish(shards, content)
        except BaseException:
            writer.discard()
            raise
        self._remove_attempts(published.left)
        published.warn_of_left()
        return writer.output, None if published.is_repeated else shards

    def find_published(self) -> Manifest | None:
        """The manifest of the dataset, if this writing has published its shards, and not only begun the dataset."""

        def own(manifest: Manifest | None) -> Manifest | None:
            is_own = manifest is not None and self.change.is_in(manifest, self.id)
            return manifest.load() if manifest is not None and is_own else None

        return place_of(*self.output.location(self.storage), self.output.stem).ask(own)

    def complete(self) -> Manifest | None:
        """The manifest if the dataset is published; what a process did not do before it was killed is done."""
        if self.output.grows:
            return None
        change = Whole(overwrite=True)  # whatever is there is looked at
        writer = Publication.start(self.output, change, self.storage, id=self.id, is_staged=True)
        completed = writer.complete()
        if completed is None:
            return None
        manifest, published = completed
        self._remove_attempts(published.left)
        published.warn_of_left()
        return manifest

    def abort(self) -> None:
        """Remove the files of all attempts, and directories that were created, unless the dataset is published.

        What can be resumed stays.
        """
        if self.resumable:
            return
        if self.find_published() is not None:
            return
        self._remove_attempts({})  # `clean` finds those that are left
        remove_directories(self.created)

    def _remove_attempts(self, left: dict[str, OSError]) -> None:
        """Remove the files of all attempts; those that are left are added to `left`, with the error.

        Uploads of attempts that were killed are aborted: their parts would stay stored and be charged for.
        """
        fs, directory = self.output.location(self.storage)
        prefix = f"_{self.id[:JOB_DIGITS]}"
        names: list[str] = []  # of staged files, and of temporary files of attempts that were killed
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                listed = [entry.basename for entry in fs.listing(directory)]
                names = [name for name in listed if name.startswith((prefix, f".{prefix}"))]
        except OSError as error:
            left[""] = error
        for name in place_of(fs, directory, self.output.stem).remove_many(names) if names else ():
            try:
                Location.of(self.output.folder + name, self.storage).remove()
            except OSError as error:
                left[name] = error
        if isinstance(fs, FsspecFileSystem):
            from tfrecord_io.store.write.atomic_remote import unfinished_uploads  # imports fsspec

            with suppress(OSError):  # a bucket may permit writers no listing of uploads: `clean` finds them
                for upload in unfinished_uploads(fs, f"{directory}{prefix}"):
                    upload.abort()
