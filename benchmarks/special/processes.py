"""Dask and Ray with one and two processes, and Ray's own reader: contenders of `benchmarks.special.engines`."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.readers import library
from benchmarks.workloads import WORKLOADS, Workload, kind_of

HERE = "benchmarks.special.processes"
SHARDS = 16
SHARDED = Workload("sharded", "16 files of 25 k × 40 scalar columns, summarized", 400_000, WORKLOADS["wide"].make)
ROWS = Workload("ray", "50 k × 4 scalars, into Ray's object store", 50_000, WORKLOADS["tutorial"].make)
for added in (SHARDED, ROWS):
    WORKLOADS.setdefault(added.name, added)


def dataset_of(workload: Workload) -> Path:
    """The path of a workload as a dataset of `SHARDS` files, written if there is none."""
    folder = workload.path.with_suffix("")
    if not folder.exists():
        library().write_tfrecord(workload.table(workload.rows), folder / f"train@{SHARDS}")
    return folder / f"train@{SHARDS}"


def summarized(table: pa.Table) -> int:
    """Quantiles of the numbers, and the means of all of them by each three words; returns the number of rows."""
    words = [field.name for field in table.schema if kind_of(field.type) == "bytes"]
    numbers = [name for name in table.column_names if name not in words]
    for name in numbers:
        pc.quantile(table[name], [0.1, 0.5, 0.9])
    for three in combinations(words, 3):
        table.group_by(three, use_threads=False).aggregate([(name, "mean") for name in numbers])
    return table.num_rows


def _summarized_frame(frame: Any) -> Any:
    import pandas as pd

    return pd.Series([summarized(pa.Table.from_pandas(frame, preserve_index=False))])


def _summarized_block(block: pa.Table) -> dict[str, list[int]]:
    return {"rows": [summarized(block)]}


class Dask:
    """``Dataset.to_dask`` and a reduction of each partition, by workers that are processes of a thread each."""

    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, processes: int) -> None:
        from distributed import Client, LocalCluster

        self.tfr, self.path = library(), dataset_of(workload)
        options: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
        self.cluster = LocalCluster(n_workers=processes, **options)
        self.client = Client(self.cluster)
        self.run(())  # the workers import what they need

    def run(self, setting: tuple[()]) -> Any:
        frame = self.tfr.dataset(self.path).to_dask(npartitions=SHARDS)
        return frame.map_partitions(_summarized_frame, meta=("rows", "int64")).compute()

    @staticmethod
    def count(result: Any) -> int:
        return int(result.sum())

    def close(self) -> None:
        self.client.close()
        self.cluster.close()


class _OfRay:
    """A contender with a Ray of its own, in which so many tasks run at a time."""

    share = 1.0
    settings: Any = ((),)

    def __init__(self, workload: Workload, processes: int = 2) -> None:
        self.tfr, self.path = library(), workload.path
        start_ray(processes)

    @staticmethod
    def count(result: Any) -> int:
        return int(result.count())

    def close(self) -> None:
        import ray

        ray.shutdown()


class Ray(_OfRay):
    """``Dataset.to_ray`` and a reduction of each block."""

    def __init__(self, workload: Workload, processes: int) -> None:
        super().__init__(workload, processes)
        self.path = dataset_of(workload)
        self.run(())

    def run(self, setting: tuple[()]) -> int:
        dataset = self.tfr.dataset(self.path).to_ray(override_num_blocks=SHARDS)
        return int(dataset.map_batches(_summarized_block, batch_size=None, batch_format="pyarrow").sum("rows"))

    @staticmethod
    def count(result: int) -> int:
        return result


class RayRead(_OfRay):
    """``Dataset.to_ray`` of all columns, into Ray's object store."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        self.run(())

    def run(self, setting: tuple[()]) -> Any:
        return self.tfr.dataset(str(self.path)).to_ray().materialize()


class RayOwnRead(_OfRay):
    """``ray.data.read_tfrecords``."""

    def __init__(self, workload: Workload) -> None:
        super().__init__(workload)
        RayOwnRead.import_tensorflow()

    @staticmethod
    def import_tensorflow() -> None:
        """In the workers, which import it for the first file."""
        import ray

        @ray.remote
        def importing() -> None:
            import tensorflow  # noqa: F401

        ray.get([importing.remote() for _ in range(4)])

    def run(self, setting: tuple[()]) -> Any:
        import ray.data

        return ray.data.read_tfrecords(str(self.path)).materialize()


def start_ray(cpus: int) -> None:
    """On the loopback interface; its workers stay, so that no round waits for their imports."""
    import ray as engine

    options = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
    engine.init(
        "local",
        num_cpus=cpus,
        object_store_memory=3 << 30,
        _node_ip_address="127.0.0.1",
        _system_config={"idle_worker_killing_time_threshold_ms": 10**9},
        **options,
    )
    context = engine.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.op_resource_reservation_enabled = False  # it lets one task run at a time until outputs were measured
