"""What it takes until the tasks of a dataset can run: requests, and seconds behind a delay, beside the CPU's time.

The files are in memory, behind a filesystem that answers each request after `DELAY` seconds, a listing once for each
`PAGE` names, as buckets do. The schema is declared, so that no file is read for it. The number of requests does not
depend on the machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from fsspec.implementations.memory import MemoryFileSystem

from benchmarks.readers import library
from benchmarks.results import Row
from benchmarks.workload_files import ensure, records
from benchmarks.workloads import WORKLOADS

DELAY = 0.02
PAGE = 1000
CASES = {"shards=20": (20, 30, 2000), "shards=10000": (10_000, 400, 10)}  # shards, tasks, records of a shard


class DelayedFiles(MemoryFileSystem):
    """Files in memory that are asked for over a network; `requests` are counted."""

    protocol = "delayed"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    requests: ClassVar[int] = 0
    delay: ClassVar[float] = 0.0

    def _wait(self, requests: int = 1) -> None:
        type(self).requests += requests
        time.sleep(requests * self.delay)

    def info(self, path: str, **how: Any) -> Any:
        self._wait()
        return super().info(path, **how)

    def ls(self, path: str, detail: bool = True, **how: Any) -> Any:
        found = super().ls(path, detail, **how)
        self._wait(-(-max(1, len(found)) // PAGE))
        return found

    def _open(self, path: str, *how: Any, **more: Any) -> Any:
        self._wait()
        return super()._open(path, *how, **more)

    def cat_file(self, path: str, *how: Any, **more: Any) -> Any:
        self._wait()
        return super().cat_file(path, *how, **more)


def _rows(case: str) -> Iterator[Row]:
    shards, tasks, count = CASES[case]
    tfr, files = library(), DelayedFiles()
    tutorial = WORKLOADS["tutorial"]
    ensure([tutorial.name])
    content, schema = b"".join(records(tutorial.path, count)), tutorial.table(1).schema
    files.store.clear()
    DelayedFiles.delay = 0.0
    for shard in range(shards):
        files.pipe_file(f"/data/{shard:05}.tfrecord", content)
    DelayedFiles.delay = DELAY
    found: dict[str, Any] = {}

    def dataset() -> Any:
        opened = tfr.dataset("/data", filesystem=files, schema=schema)
        assert opened.schema.names
        return opened

    def filtered() -> Any:
        column = found["dataset"].schema.names[0]
        return found["dataset"].filter([(column, "==", 0)]).pieces(tasks)

    steps: dict[str, Callable[[], Any]] = {
        "dataset": dataset,
        f"pieces({tasks})": lambda: found["dataset"].pieces(tasks),
        f"pieces({tasks}) of a filter": filtered,
        "the first task": lambda: found[f"pieces({tasks})"][1].read(),
    }
    for name, step in steps.items():
        DelayedFiles.requests = 0
        begin, begin_cpu = time.perf_counter(), time.process_time()
        found[name] = step()
        seconds, cpu = time.perf_counter() - begin, time.process_time() - begin_cpu
        yield Row("planning", case, name, seconds=seconds, numbers={"requests": DelayedFiles.requests, "cpu": cpu})


def rows(settings: Any) -> Iterator[Row]:
    """The steps from the path of a dataset to its first task."""
    for case in CASES:
        print(f"planning: {case} …", file=sys.stderr, flush=True)
        yield from _rows(case)
