"""The kinds of world: each has one dataset, which actors reach by a filesystem of their own."""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import disk
from bucket import NAME, Bucket, PlainStore, SimulatedGcs, SimulatedS3
from process import InlineLoop
from scheduler import Actor, Scheduler

from tfrecord_io.storage.write import place_remote


class World(ABC):
    """A store with one dataset.

    Attributes
    ----------
    path : str
        Of its directory, with its slash.
    copies : int
        Files that were made beside it.
    """

    path: str
    copies = 0

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    @abstractmethod
    def options(self, actor: Actor) -> dict[str, Any]:
        """Keywords by which an actor reaches it."""

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


_made: dict[tuple[type, int], Any] = {}  # filesystems, the same but for their bucket, loop and process


class S3World(World):
    """A bucket of S3."""

    path = f"s3://{NAME}/d/"
    _filesystem: type = SimulatedS3

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self.bucket = Bucket()

    def options(self, actor: Actor) -> dict[str, Any]:
        which = self._filesystem, actor.number
        if (fs := _made.get(which)) is None:
            # Every other process keeps listings, as these libraries do by default: what the code asks may be outdated.
            fs = _made[which] = self._filesystem(self.bucket, InlineLoop(), keeps_listings=actor.number % 2 == 1)
            place_remote._CONDITIONS[fs] = {NAME: True}  # the look for them is the same in each program
        fs.dircache.clear()
        fs.simulated, fs._loop, fs._pid = self.bucket, InlineLoop(), actor.process
        return {"filesystem": fs}

    def names(self) -> list[str]:
        return [key.removeprefix("d/") for key in self.bucket.objects if key.startswith("d/")]

    def content(self, name: str) -> bytes:
        return self.bucket.objects[f"d/{name}"].body

    def open_uploads(self) -> list[str]:
        return [upload.key for upload in self.bucket.uploads.values()]

    def state(self) -> Any:
        return dict(self.bucket.objects), self.bucket.number

    def restore(self, state: Any) -> None:
        objects, self.bucket.number = state
        self.bucket.objects = dict(objects)


class GcsWorld(S3World):
    """A bucket of Google Cloud Storage."""

    path = f"gs://{NAME}/d/"
    _filesystem = SimulatedGcs


class PlainWorld(S3World):
    """A filesystem without conditional writes."""

    path = "plain://d/"

    def options(self, actor: Actor) -> dict[str, Any]:
        return {"filesystem": PlainStore(self.bucket)}


_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()


class DiskWorld(World):
    """A local disk."""

    def __init__(self, scheduler: Scheduler) -> None:
        super().__init__(scheduler)
        self._root = f"{_MEMORY}/simulated-{os.getpid()}"
        os.mkdir(self._root)
        self.path = f"{self._root}/d/"
        self._disk = disk.Disk(self._root)
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
            found.lose_power(self._scheduler.main.rng)

    def state(self) -> Any:
        with self._detached() as found:
            return found.state()

    def restore(self, state: Any) -> None:
        with self._detached() as found:
            found.restore(state)

    def options(self, actor: Actor) -> dict[str, Any]:
        return {}

    def names(self) -> list[str]:
        found = glob.glob("**", root_dir=self.path, recursive=True, include_hidden=True)
        return [name for name in found if not os.path.isdir(self.path + name)]

    def content(self, name: str) -> bytes:
        with open(self.path + name, "rb") as file:
            return file.read()

    def close(self) -> None:
        disk.detach(self._scheduler)
        shutil.rmtree(self._root)


WORLDS: dict[str, type[World]] = {"s3": S3World, "gcs": GcsWorld, "plain": PlainWorld, "disk": DiskWorld}
