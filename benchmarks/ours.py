"""tfrecord_io reading a file into an Arrow table, every CRC checked."""

from __future__ import annotations

import os

import pyarrow as pa

from benchmarks.workloads import Workload


class Ours:
    """``read_table``, types inferred, on one thread."""

    name = "tfrecord_io"
    share = 1.0
    settings = ((),)
    threads = 1

    def __init__(self, workload: Workload) -> None:
        os.environ["TFRECORD_IO_ENGINE"] = "native"  # a missing kernel is an error here, not a slow table
        import tfrecord_io as tfr

        self.read = tfr.read_table
        self.path = str(workload.path)

    def run(self, setting: tuple[()]) -> pa.Table:
        return self.read(self.path, threads=self.threads)

    @staticmethod
    def count(result: pa.Table) -> int:
        return result.num_rows


class OursTwoThreads(Ours):
    name = "tfrecord_io, 2 threads"
    threads = 2
