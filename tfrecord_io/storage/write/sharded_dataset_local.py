"""The shards of a dataset on the local disk, published by one rename; see `tfrecord_io.storage.write.sharded_dataset`."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from tfrecord_io.storage.filesystem.local import FileSystem
from tfrecord_io.storage.paths.manifest import Manifest, format_manifest
from tfrecord_io.storage.paths.resolve_output import Output
from tfrecord_io.storage.write.atomic_local import open_local, open_staged, sync_directory
from tfrecord_io.storage.write.output_file import OutputFile
from tfrecord_io.storage.write.sharded_dataset import ShardedDatasetWriter, WrittenShard

_NO_LOCK = (errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EACCES)  # network filesystems


class LocalShardedDatasetWriter(ShardedDatasetWriter):
    """Shards under names of their own until the manifest says that they are the dataset."""

    def __init__(self, tree: FileSystem, base: str, output: Output, overwrite: bool | None) -> None:
        super().__init__(tree, base, output, overwrite)
        self._made = _make(self._directory.rstrip("/"))

    def open(self, index: int) -> OutputFile:
        return open_staged(self._directory + self._name(index), self._directory + self._staged(index))

    def _staged(self, index: int) -> str:
        return f"_{self._id}-{index:05d}.staged"

    def discard(self) -> None:
        with suppress(OSError):  # somebody else has put something into it
            for directory in self._made:
                os.rmdir(directory)

    def publish(self, shards: Sequence[WrittenShard], schema: bytes | None) -> None:
        made = self._of(shards, schema)
        staged = replace(
            made, files=tuple(replace(f, staged=self._staged(s.index)) for f, s in zip(made.files, shards, strict=True))
        )
        try:
            for shard in shards:
                shard.output.commit()
            sync_directory(self._directory or ".")
            with _turn(self._directory or ".") as alone:
                self._put_in_force(staged, made, alone)
        except BaseException as error:
            if self._is_ours():
                error.add_note(
                    "the dataset is published all the same: its manifest names its files, some by temporary names"
                )
            else:
                for shard in shards:
                    self._remove(self._staged(shard.index))
            raise

    def _put_in_force(self, staged: Manifest, made: Manifest, alone: bool) -> None:
        """From here on it is our turn; the first line that writes is the moment."""
        present, old = self._present(), self._read_manifest()
        if self._overwrite is not True:
            self._refuse_existing(present)
        names = {file.path for file in made.files}
        replaces = tuple(name for name in present if self._belongs(name) and name not in names)
        waiting = [file.staged for file in (old.files if old is not None else ()) if file.staged is not None]
        self._put(replace(staged, replaces=replaces))
        for name in self._indexes():
            self._remove(name)
        for file in staged.files:
            if not alone:
                self._refuse_another()
            self._give_name(str(file.staged), file.path)
        for name in (*replaces, *waiting):
            self._remove(name)
        self._refuse_another()
        self._put(made)

    def _put(self, manifest: Manifest) -> None:
        """Write the manifest, in the place of a link as the shards are: what that leads to is about another directory's files."""
        link = os.path.islink(self._manifest)
        with (
            open_staged(self._manifest, self._manifest) if link else open_local(self._manifest, exclusive=False) as file
        ):
            file.write(format_manifest(manifest))

    def _give_name(self, staged: str, name: str) -> None:
        """Rename a shard over the one it replaces, whose mode it keeps."""
        source, target = self._directory + staged, self._directory + name
        with suppress(FileNotFoundError, PermissionError):
            os.chmod(source, stat.S_IMODE(os.stat(target).st_mode))
        os.replace(source, target)

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._directory + name)


def _make(directory: str) -> list[str]:
    """Make a directory and those above it; gives those that were missing, the deepest first."""
    missing = []
    above = directory
    while above and not os.path.isdir(above):
        if os.path.lexists(above):
            raise NotADirectoryError(
                errno.ENOTDIR, "a file, or a link that leads nowhere, and no directory to put shards in", above
            )
        missing.append(above)
        above = os.path.dirname(above)
    for each in reversed(missing):
        os.makedirs(each, exist_ok=True)
    return missing


@contextmanager
def _turn(directory: str) -> Iterator[bool]:
    """One writer at a time; the lock ends with the process that holds it. False where the filesystem has none."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        alone = True
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCK:
                raise
            alone = False
        yield alone
    finally:
        os.close(fd)
