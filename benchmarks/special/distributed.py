"""Several processes on one dataset: how Dask and Ray scale, and the numbers of the model in docs/howto/scale.md.

``python -m benchmarks.special.distributed model`` needs nothing but tfrecord_io, s3fs and moto; ``dask`` needs
``dask[distributed]``, ``ray`` needs ray, ``ray-own`` also tensorflow, which Ray's own reader imports. Rates are per
second of CPU time, so that other programs on the machine change them little; those of one and two workers, of time.
"""

from __future__ import annotations

import argparse
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import tfrecord_io as tfr

SHARDS = 16
ROWS = 25_000  # of a shard


def table(rows: int) -> pa.Table:
    """Rows of 64 floats, an id and a text: about 310 bytes of a record."""
    rng = np.random.default_rng(0)
    vectors = pa.array(list(rng.random((rows, 64), "float32")), pa.list_(pa.float32()))
    return pa.table({"id": np.arange(rows), "text": [f"row {n % 1000}" for n in range(rows)], "vector": vectors})


def write_dataset(directory: Path) -> str:
    path = f"{directory}/train@{SHARDS}"
    tfr.write_tfrecord(pa.concat_tables([table(ROWS)] * SHARDS), path)
    return path


def best(measure: Callable[[], float], repeat: int) -> float:
    return min(measure() for _ in range(repeat))


def cpu_seconds(call: Callable[[], Any]) -> float:
    begin = time.process_time()
    call()
    return time.process_time() - begin


def wall_seconds(call: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


# ---- the model


def model(path: str, repeat: int) -> Iterator[str]:
    """The rates of one core, the costs of a request, a file and a task."""
    dataset = tfr.dataset(path, threads=1)
    size = dataset.bytes or 0
    yield f"dataset: {SHARDS} shards, {size / 1e6:.0f} MB"
    for name, chosen in {"all columns": dataset, "one number of each record": dataset.select(["id"])}.items():
        seconds = best(lambda chosen=chosen: cpu_seconds(lambda: [None for _ in chosen.to_batches()]), repeat)
        yield f"read, {name}: {size / seconds / 1e9:.2f} GB/s of CPU time"
    rows = dataset.to_table()
    with tempfile.TemporaryDirectory() as folder:
        write = lambda: tfr.write_tfrecord(rows, f"{folder}/out@4", threads=1, overwrite=True)  # noqa: E731
        yield f"write: {size / best(lambda: cpu_seconds(write), repeat) / 1e9:.2f} GB/s of CPU time"
    pieces = dataset.pieces(SHARDS)
    yield f"a piece, pickled: {max(len(pickle.dumps(piece)) for piece in pieces):,} bytes"
    yield from requests(path, repeat)
    yield from memory(path)


def requests(path: str, repeat: int) -> Iterator[str]:
    """What reading from a bucket costs beyond reading from disk: CPU time for each request."""
    command = [sys.executable, "-c", _SERVER]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert server.stdout is not None
    try:
        storage = {"key": "k", "secret": "s", "endpoint_url": server.stdout.readline().strip()}
        import fsspec

        fs = fsspec.filesystem("s3", **storage)
        fs.mkdir("bench")
        tfr.write_tfrecord(tfr.dataset(path), f"s3://bench/train@{SHARDS}", storage_options=storage)
        remote = tfr.dataset(f"s3://bench/train@{SHARDS}", storage_options=storage, threads=1)
        local = tfr.dataset(path, threads=1)
        count = [0]
        original = type(fs)._call_s3

        async def counted(self: Any, *arguments: Any, **keywords: Any) -> Any:
            count[0] += 1
            return await original(self, *arguments, **keywords)

        type(fs)._call_s3 = counted
        read = [cpu_seconds(lambda: remote.to_table()) for _ in range(repeat)]
        each = count[0] / repeat
        here = best(lambda: cpu_seconds(lambda: local.to_table()), repeat)
        yield f"bucket: {each:.0f} requests, of {(remote.bytes or 0) / each / 1e6:.1f} MB each"
        yield f"bucket: {(min(read) - here) / each * 1e3:.1f} ms of CPU time a request"
    finally:
        server.kill()
        server.wait()


_SERVER = """
from moto.server import ThreadedMotoServer
import time
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
time.sleep(600)
"""


def memory(path: str) -> Iterator[str]:
    """The memory of a process that reads a piece in batches, or at once, beyond the imports."""
    piece = pickle.dumps(tfr.dataset(path, threads=1).pieces(2)[0])
    size = pickle.loads(piece).bytes
    for name, call in {"in batches": "[None for _ in piece.to_batches()]", "at once": "piece.read()"}.items():
        code = f"import pandas, pickle, sys; piece = pickle.loads(sys.stdin.buffer.read()); {call}; " + _PEAK
        done = subprocess.run([sys.executable, "-c", code], input=piece, capture_output=True, check=True)
        idle = subprocess.run([sys.executable, "-c", _IDLE + _PEAK], capture_output=True, check=True)
        used = (int(done.stdout) - int(idle.stdout)) * 1024
        yield f"memory of a piece of {size / 1e6:.0f} MB, {name}: {used / 1e6:.0f} MB"


_PEAK = "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
_IDLE = "import pandas, tfrecord_io as tfr; tfr.dataset, tfr.read_table; "


# ---- engines


def count_rows(frame: Any) -> Any:
    return len(frame)


def dask(path: str, repeat: int) -> Iterator[str]:
    """Reading all columns by one and by two workers of a thread each."""
    from distributed import Client, LocalCluster

    seconds = {}
    for workers in (1, 2):
        options = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
        with LocalCluster(n_workers=workers, **options) as cluster, Client(cluster):
            frame = tfr.read_dask(path, npartitions=SHARDS)
            run = lambda frame=frame: frame.map_partitions(count_rows, meta=("n", "int64")).compute()  # noqa: E731
            run()
            seconds[workers] = best(lambda run=run: wall_seconds(run), repeat)
    yield f"dask: two workers {seconds[1] / seconds[2]:.2f} times as fast as one"


def count_batch(batch: pa.Table) -> dict[str, list[int]]:
    return {"n": [batch.num_rows]}


def ray(path: str, repeat: int) -> Iterator[str]:
    """Reading all columns by one and by two CPUs."""
    import ray as engine

    seconds = {}
    for cpus in (1, 2):
        start_ray(cpus)
        dataset = tfr.read_ray(path, override_num_blocks=SHARDS)
        run = lambda: dataset.map_batches(count_batch, batch_size=None, batch_format="pyarrow").sum("n")  # noqa: E731, B023
        run()
        seconds[cpus] = best(lambda run=run: wall_seconds(run), repeat)
        engine.shutdown()
    yield f"ray: two CPUs {seconds[1] / seconds[2]:.2f} times as fast as one"


def ray_own(path: str, repeat: int) -> Iterator[str]:
    """CPU time of the read tasks of Ray's own reader and of this one, run in this process on one file."""
    import ray as engine
    from ray.data._internal.datasource.tfrecords_datasource import TFRecordDatasource

    from tfrecord_io.adapters.ray import _datasource_class

    start_ray(1)
    file = tfr.dataset(path).files[0]
    sources = {
        "own": TFRecordDatasource([file], file_extensions=None),
        "tfrecord_io": _datasource_class()(tfr.dataset(file, threads=1)),
    }
    seconds = {}
    for name, source in sources.items():
        (task,) = source.get_read_tasks(1)
        seconds[name] = best(lambda task=task: cpu_seconds(lambda: sum(block.num_rows for block in task())), repeat)
    engine.shutdown()
    yield f"ray: this source takes 1/{seconds['own'] / seconds['tfrecord_io']:.0f} of the CPU time of read_tfrecords"


def start_ray(cpus: int) -> None:
    import ray as engine

    options = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
    engine.init(num_cpus=cpus, object_store_memory=300 << 20, _node_ip_address="127.0.0.1", **options)
    engine.data.DataContext.get_current().enable_progress_bars = False


PARTS = {"model": model, "dask": dask, "ray": ray, "ray-own": ray_own}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = write_dataset(Path(folder))
        for part in options.parts:
            for line in PARTS[part](path, options.repeat):
                print(line, flush=True)


if __name__ == "__main__":
    main()
