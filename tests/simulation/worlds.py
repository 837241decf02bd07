"""The kinds of world: each has one dataset, which actors reach by a filesystem of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from bucket import NAME, Bucket, SimulatedS3
from process import InlineLoop
from scheduler import Actor

from tfrecord_io.storage.write import place_remote


class World(ABC):
    """A store with one dataset.

    Attributes
    ----------
    path : str
        Of its directory, with its slash.
    """

    path: str

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

    def close(self) -> None:  # noqa: B027 — a bucket is memory
        """Remove it."""


class S3World(World):
    """A bucket of S3."""

    path = f"s3://{NAME}/d/"

    def __init__(self) -> None:
        self.bucket = Bucket()

    def options(self, actor: Actor) -> dict[str, Any]:
        fs = SimulatedS3(self.bucket, InlineLoop())
        fs._pid = actor.process
        place_remote._CONDITIONS[fs] = {NAME: True}  # the look for them is the same in each program
        return {"filesystem": fs}

    def names(self) -> list[str]:
        return [key.removeprefix("d/") for key in self.bucket.objects]

    def content(self, name: str) -> bytes:
        return self.bucket.objects[f"d/{name}"].body

    def open_uploads(self) -> list[str]:
        return [upload.key for upload in self.bucket.uploads.values()]


WORLDS: dict[str, type[World]] = {"s3": S3World}
