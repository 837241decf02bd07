"""The kinds of world: each has one dataset, which actors reach by a filesystem of their own."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import disk
from blobs import SimulatedAzure
from bucket import NAME, Bucket, PlainStore, SimulatedGcs, SimulatedS3
from process import InlineLoop
from scheduler import Actor, Scheduler

from tfrecord_io.store.write import commit_place_remote


class World(ABC):
    """A store with one dataset.

    Attributes
    ----------
    path : str
        Of its directory, with its slash.
    copies : int
        Files that were made next to it.
    takes_parts : bool
        Whether a file is stored in parts if it has more bytes than a limit.
    has_locks : bool
        A process that died changes nothing later, and what it left keeps no process from writing.
    """

    path: str
    copies = 0
    takes_parts = has_locks = False

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @abstractmethod
    def options(self, actor: Actor) -> dict[str, Any]:
        """Keywords by which an actor reaches it."""

    def other_options(self, actor: Actor) -> dict[str, Any]:
        """Keywords by which an actor reaches it as if it were another store, which copies nothing to this one."""
        return self.options(actor)

    @abstractmethod
    def names(self) -> list[str]:
        """Of all files, below the directory."""

    @abstractmethod
    def content(self, name: str) -> bytes: ...

    def open_uploads(self) -> list[str]:
        return []

    @abstractmethod
    def state(self) -> Any:
        """All that is in it, for `restore`."""

    @abstractmethod
    def restore(self, state: Any) -> None:
        """Put this into a world that is new."""

    def close(self) -> None:  # noqa: B027 — a bucket is memory
        """Remove it."""


_OTHER = 1000  # more than the number of an actor: of its filesystem for another store
_made: dict[tuple[type, int], Any] = {}  # filesystems, the same but for their bucket, loop and process


class S3World(World):
    """A bucket of S3."""

    path = f"s3://{NAME}/d/"
    takes_parts = True
    _filesystem: type = SimulatedS3
    _encrypted = False

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.bucket = Bucket(encrypted=self._encrypted)

    def options(self, actor: Actor) -> dict[str, Any]:
        return {"storage_options": self._made(actor.number, actor.process)}

    def other_options(self, actor: Actor) -> dict[str, Any]:
        return {"storage_options": self._made(actor.number + _OTHER, actor.process)}

    def _made(self, number: int, process: int) -> Any:
        which = self._filesystem, number
        if (fs := _made.get(which)) is None:
            # Every other process keeps listings, as these libraries do by default: what the code asks may be outdated.
            fs = _made[which] = self._filesystem(self.bucket, InlineLoop(), keeps_listings=number % 2 == 1)
            commit_place_remote._CONDITIONS[fs] = {NAME: True}  # the look for them is the same in each program
        fs.dircache.clear()
        fs.simulated, fs._loop, fs._pid = self.bucket, InlineLoop(), process
        return fs

    def names(self) -> list[str]:
        return [key.removeprefix("d/") for key in self.bucket.objects if key.startswith("d/")]

    def content(self, name: str) -> bytes:
        return self.bucket.objects[f"d/{name}"].body

    def open_uploads(self) -> list[str]:
        return [upload.key for upload in self.bucket.uploads.values() if upload.key.startswith("d/")]

    def state(self) -> Any:
        return dict(self.bucket.objects), dict(self.bucket.committed), self.bucket.number

    def restore(self, state: Any) -> None:
        objects, committed, self.bucket.number = state
        self.bucket.objects, self.bucket.committed = dict(objects), dict(committed)


class KmsWorld(S3World):
    """A bucket of S3 that is encrypted by a key of KMS."""

    _encrypted = True


class GcsWorld(S3World):
    """A bucket of Google Cloud Storage."""

    path = f"gs://{NAME}/d/"
    takes_parts = False  # gcsfs uploads are not simulated
    _filesystem = SimulatedGcs


class AzureWorld(S3World):
    """A container of Azure; blocks that are not committed are removed by it."""

    path = f"az://{NAME}/d/"
    _filesystem = SimulatedAzure


class PlainWorld(S3World):
    """A filesystem without conditional writes."""

    path = "plain://d/"
    takes_parts = False
    other_options = World.other_options

    def options(self, actor: Actor) -> dict[str, Any]:
        return {"storage_options": PlainStore(self.bucket)}


_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


class DiskWorld(World):
    """A local disk."""

    has_locks = True

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._root = f"{_MEMORY}/simulated-{os.getpid()}"
        os.mkdir(self._root)
        self.path = f"{self._root}/d/"
        self._disk = disk.Disk(self._root, scheduler)
        disk.attach(scheduler, self._disk)
        scheduler.on_death = disk.release
        scheduler.on_power_loss = self._lose_power

    @contextmanager
    def _detached(self) -> Iterator[disk.Disk]:
        """Make calls to the disk that are none of a process."""
        disk.detach(self._scheduler)
        try:
            yield self._disk
        finally:
            disk.attach(self._scheduler, self._disk)

    def _lose_power(self) -> None:
        with self._detached() as found:
            # Not by the generator of `main`, whose state depends on what was prepared for programs before.
            number = self._scheduler.actors[0].rng.getrandbits(32) + self._scheduler.step
            found.lose_power(random.Random(number))

    def state(self) -> Any:
        with self._detached() as found:
            return found.state()

    def restore(self, state: Any) -> None:
        with self._detached() as found:
            found.restore(state)

    def options(self, actor: Actor) -> dict[str, Any]:
        return {}

    def names(self) -> list[str]:
        folder = self.path.rstrip("/")
        try:
            return [
                f"{below}/{name}".removeprefix(self.path) for below, _, names in disk.walk(folder) for name in names
            ]
        except FileNotFoundError:
            return []

    def content(self, name: str) -> bytes:
        with disk.real_open(self.path + name, "rb") as file:
            return file.read()

    def close(self) -> None:
        disk.detach(self._scheduler)
        shutil.rmtree(self._root)


WORLDS: dict[str, type[World]] = {
    "s3": S3World,
    "kms": KmsWorld,
    "gcs": GcsWorld,
    "azure": AzureWorld,
    "plain": PlainWorld,
    "disk": DiskWorld,
}
