"""The test suite of engines that work in several processes: each row is there once, also if a process is killed."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from servers import Bucket

ROWS = 1_000
SHARDS = 6


@contextmanager
def ray_cluster() -> Iterator[None]:
    """Ray with two CPUs on the loopback interface; its processes end with the block."""
    import ray

    support = os.pathsep.join(path for path in (os.environ.get("PYTHONPATH"), *sys.path) if path)
    with chdir(tempfile.gettempdir()):  # from where workers import: here are the sources, without the kernel
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=200 << 20,
            logging_level="error",
            log_to_driver=False,
            _node_ip_address="127.0.0.1",
            runtime_env={"env_vars": {"PYTHONPATH": support}},
        )
    try:
        yield
    finally:
        ray.shutdown()


@dataclass(frozen=True)
class Place:
    """A directory on disk or in a bucket, which other processes reach too."""

    root: str
    storage: dict[str, Any]
    bucket: Bucket | None

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def names(self, dataset: str) -> list[str]:
        """All names in the directory of a dataset, hidden ones too."""
        if self.bucket is not None:
            return [name.removeprefix(f"{dataset}/") for name in self.bucket.names() if name.startswith(f"{dataset}/")]
        return sorted(os.listdir(self.path(dataset))) if os.path.isdir(self.path(dataset)) else []

    def numbers(self, dataset: str) -> list[int]:
        """The sorted values of the column ``n``, as tfrecord_io reads them."""
        return sorted(read_by(tfr.read_table, self.path(f"{dataset}/"), **self.storage)["n"].to_pylist())


def die_once(marker: str) -> None:
    """Kill this process, unless a process has been killed with this marker before."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


def dying(batch: Any, marker: str) -> Any:
    """The batch, after `die_once` if it has the row ``n == 777``; a DataFrame or a dict of arrays."""
    if (batch["n"] == 777).any():
        die_once(marker)
    return batch


def failing(batch: Any) -> Any:
    """The batch, unless it has the row ``n == 777``."""
    if (batch["n"] == 777).any():
        raise ValueError("seven")
    return batch


class DistributedSuite(ABC):
    """Subclasses read, transform and write by their engine, in at least two processes."""

    @abstractmethod
    def read(self, path: str, **keywords: Any) -> Any:
        """A frame of the engine, of several partitions."""

    @abstractmethod
    def count_and_sum(self, frame: Any) -> tuple[int, int]:
        """The number of rows and the sum of the column ``n``."""

    @abstractmethod
    def write(self, frame: Any, path: str, **keywords: Any) -> None:
        """Write a frame to a directory."""

    @abstractmethod
    def dying(self, frame: Any, marker: str) -> Any:
        """The frame, lazily; who computes the row ``n == 777`` calls `die_once`."""

    @abstractmethod
    def failing(self, frame: Any) -> Any:
        """The frame, lazily; who computes the row ``n == 777`` raises a ValueError."""

    @pytest.fixture(params=["disk", "s3"])
    def place(self, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
        if request.param == "disk":
            return Place(str(tmp_path), {}, None)
        bucket: Bucket = request.getfixturevalue("s3")
        return Place(bucket.url().rstrip("/"), {"storage_options": bucket.storage_options}, bucket)

    @pytest.fixture
    def source(self, place: Place) -> str:
        columns = {
            "n": range(ROWS),
            "text": [str(n) for n in range(ROWS)],
            "third": [f"{n % 3}/3" for n in range(ROWS)],
        }
        table = pa.table(columns)
        path = place.path(f"source@{SHARDS}")
        tfr.write_tfrecord(table, path, **place.storage)
        return path

    def assert_published(self, place: Place, dataset: str) -> None:
        names = place.names(dataset)
        shards = len(names) - 1
        assert names == ["_MANIFEST.json", *(f"part-{i:05d}-of-{shards:05d}.tfrecord" for i in range(shards))]
        assert place.numbers(dataset) == [*range(ROWS)]
        assert read_by(tfr.verify, place.path(f"{dataset}/"), **place.storage).ok

    def test_a_copy_has_the_same_rows(self, place: Place, source: str) -> None:
        frame = self.read(source, **place.storage)
        assert self.count_and_sum(frame) == (ROWS, sum(range(ROWS)))
        self.write(frame, place.path("copy/"), **place.storage)
        self.assert_published(place, "copy")
        assert self.count_and_sum(self.read(place.path("copy/"), **place.storage)) == (ROWS, sum(range(ROWS)))

    def test_a_worker_is_killed(self, place: Place, source: str, tmp_path: Path) -> None:
        marker = tmp_path / "killed"
        self.write(self.dying(self.read(source, **place.storage), str(marker)), place.path("copy/"), **place.storage)
        assert marker.exists()
        self.assert_published(place, "copy")

    def test_a_worker_is_killed_while_a_dataset_is_replaced(self, place: Place, source: str, tmp_path: Path) -> None:
        tfr.write_tfrecord({"n": [-1]}, place.path("copy/"), **place.storage)
        frame = self.dying(self.read(source, **place.storage), str(tmp_path / "killed"))
        self.write(frame, place.path("copy/"), mode="overwrite", **place.storage)
        assert (tmp_path / "killed").exists()
        self.assert_published(place, "copy")

    def assert_folders(self, place: Place, dataset: str, expected: list[int]) -> None:
        """The rows are in the folders of the column ``third``, and nothing else is in the directory."""
        table = read_by(tfr.read_table, place.path(f"{dataset}/"), **place.storage)
        assert sorted(table["n"].to_pylist()) == sorted(expected)
        assert table["third"].to_pylist() == [f"{n % 3}/3" for n in table["n"].to_pylist()]
        names = {name.partition("/")[0] for name in place.names(dataset)}
        assert names == {"_MANIFEST.json", *(f"third={number}%2F3" for number in range(3))}
        assert read_by(tfr.verify, place.path(f"{dataset}/"), **place.storage).ok

    def test_folders_and_a_worker_that_is_killed(self, place: Place, source: str, tmp_path: Path) -> None:
        frame = self.dying(self.read(source, **place.storage), str(tmp_path / "killed"))
        self.write(frame, place.path("copy/"), partition_by=["third"], **place.storage)
        assert (tmp_path / "killed").exists()
        self.assert_folders(place, "copy", [*range(ROWS)])

    def test_modes(self, place: Place, source: str) -> None:
        options: dict[str, Any] = {"partition_by": ["third"], **place.storage}
        everything, target = [*range(ROWS)], place.path("copy/")
        self.write(self.read(source, **place.storage), target, mode="append", **options)
        with pytest.raises(Exception, match="a sharded dataset of this name exists"):
            self.write(self.read(source, **place.storage), target, mode="error", **options)
        some = self.read(source, filters=[("third", "==", "1/3"), ("n", "<", 500)], **place.storage)
        few = [n for n in everything if n % 3 == 1 and n < 500]
        self.write(some, target, mode="append", **options)
        self.assert_folders(place, "copy", [*everything, *few])
        self.write(some, target, mode="overwrite_partitions", **options)
        self.assert_folders(place, "copy", [*(n for n in everything if n % 3 != 1), *few])
        with pytest.raises(Exception, match="seven"):
            self.write(self.failing(self.read(source, **place.storage)), target, mode="append", **options)
        assert place.numbers("copy") == sorted([*(n for n in everything if n % 3 != 1), *few])
        with pytest.raises(Exception, match="the dataset is partitioned by"):
            self.write(some, target, mode="append", **place.storage)
        self.write(self.read(source, **place.storage), target, mode="overwrite", **options)
        assert place.numbers("copy") == everything

    def test_a_task_that_fails_leaves_nothing(self, place: Place, source: str) -> None:
        with pytest.raises(Exception, match="seven"):
            self.write(self.failing(self.read(source, **place.storage)), place.path("copy/"), **place.storage)
        with pytest.raises(FileNotFoundError):
            read_by(tfr.read_table, place.path("copy/"), **place.storage)
        assert [name for name in place.names("copy") if not name.endswith((".staged", ".tmp"))] == []
