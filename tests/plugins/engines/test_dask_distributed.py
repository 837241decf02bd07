"""Dask with workers in two processes: each row is read and written once, also if a worker is killed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tfrecord_io as tfr
from suites.distributed_suite import DistributedSuite, dying, failing

pytest.importorskip("distributed")
pytestmark = pytest.mark.complete  # a cluster for each test takes seconds


@pytest.fixture(autouse=True)
def cluster() -> Iterator[None]:
    """Two worker processes for each test, on the loopback interface; a killed one is replaced."""
    from distributed import Client, LocalCluster

    options: dict[str, Any] = {"dashboard_address": None, "host": "127.0.0.1", "silence_logs": 50}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster, Client(cluster):
        yield


class TestDaskDistributed(DistributedSuite):
    def read(self, path: str, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_dask(npartitions=6)

    def count_and_sum(self, frame: Any) -> tuple[int, int]:
        return len(frame), int(frame["n"].sum().compute())

    def write(self, frame: Any, path: str, **keywords: Any) -> None:
        tfr.write_tfrecord(frame, path, **keywords)

    def dying(self, frame: Any, marker: str) -> Any:
        return frame.map_partitions(dying, marker, meta=frame._meta)

    def failing(self, frame: Any) -> Any:
        return frame.map_partitions(failing, meta=frame._meta)
