"""Daft on Ray, in two processes: each row is read and written once, also if a worker is killed.

A process has one runner of Daft: other tests run in another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tfrecord_io as tfr
from suites.distributed_suite import DistributedSuite, dying, failing, ray_cluster

daft = pytest.importorskip("daft")
pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    with ray_cluster():
        daft.set_runner_ray(noop_if_initialized=True)
        yield


class TestDaftOnRay(DistributedSuite):
    def read(self, path: str, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_daft(max_bytes=5000)

    def count_and_sum(self, frame: Any) -> tuple[int, int]:
        return frame.count_rows(), frame.sum("n").to_pydict()["n"][0]

    def write(self, frame: Any, path: str, **keywords: Any) -> None:
        tfr.write_tfrecord(frame, path, **keywords)

    def dying(self, frame: Any, marker: str) -> Any:
        @daft.func.batch(return_dtype=daft.DataType.int64())
        def numbers(n: daft.Series) -> daft.Series:
            return dying({"n": n.to_arrow().to_numpy()}, marker) and n

        return frame.with_column("n", numbers(frame["n"]))

    def failing(self, frame: Any) -> Any:
        @daft.func.batch(return_dtype=daft.DataType.int64())
        def numbers(n: daft.Series) -> daft.Series:
            return failing({"n": n.to_arrow().to_numpy()}) and n

        return frame.with_column("n", numbers(frame["n"]))
