"""The numbers of the model in dev/performance.md: ``python -m benchmarks.special.distributed model``.

It needs s3fs and moto. Rates are per second of CPU time, so that other programs on the machine change them little. How
Dask and Ray scale is measured by ``make bench BENCH_ARGS=--engines``.
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
        write = lambda: tfr.write_tfrecord(rows, f"{folder}/out@4", threads=1, mode="overwrite")  # noqa: E731
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
        assert remote.schema == local.schema  # opens both
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="+", choices=["model"])
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = write_dataset(Path(folder))
        for line in model(path, options.repeat):
            print(line, flush=True)


if __name__ == "__main__":
    main()
