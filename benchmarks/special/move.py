"""Moving a dataset between buckets and the disk, beside rclone, s3fs and Arrow.

The buckets are behind a network: each request takes 50 ms, and a connection carries 20 MB/s. What is printed is the
median, and the exit code is 1 if `tfrecord_io.copy` takes longer than its share of the time of rclone with 16
transfers. Without rclone on the path, its rows are missing.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs as arrow

import tfrecord_io as tfr
from benchmarks.special.remote import object_store

PACKAGES = ("tfrecord_io", "pyarrow", "s3fs")
DELAY_MS, MB_PER_S, MB_PER_S_EACH = 50, 10_000, 20
SHARDS, SHARD_BYTES, ROW_BYTES = 64, 4 << 20, 64 << 10
TRANSFERS = 16
MOST = {"across stores": 1.2, "within a store": 1.2, "to the disk": 1.5, "from the disk": 1.5}  # times rclone

Tools = dict[str, Callable[[], Any]]


def _table() -> pa.Table:
    rows = SHARDS * SHARD_BYTES // ROW_BYTES
    payload = np.random.default_rng(0).integers(0, 256, rows * ROW_BYTES, dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int32) * ROW_BYTES
    return pa.table(
        {"image": pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(payload)])}
    )


def _rclone(places: dict[str, str], source: str, target: str) -> Callable[[], Any]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    for name, endpoint in places.items():
        keys = {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": endpoint, "LIST_VERSION": "2"}
        keys |= {"ACCESS_KEY_ID": "k", "SECRET_ACCESS_KEY": "s", "NO_CHECK_BUCKET": "true"}
        environment |= {f"RCLONE_CONFIG_{name.upper()}_{key}": value for key, value in keys.items()}
    command = ["rclone", "copy", source, target, "--transfers", str(TRANSFERS), "--checkers", str(TRANSFERS)]
    return lambda: subprocess.run(command, env=environment, check=True, capture_output=True)


def _arrow(options: dict[str, Any]) -> arrow.S3FileSystem:
    endpoint = options["endpoint_url"].removeprefix("http://")
    return arrow.S3FileSystem(anonymous=True, endpoint_override=endpoint, scheme="http", region="us-east-1")


def _ways(a: dict[str, Any], b: dict[str, Any], disk: str) -> dict[str, Tools]:
    """For each way, what each tool does; targets have a number, so that each is new."""
    import fsspec

    first, second = fsspec.filesystem("s3", **a), fsspec.filesystem("s3", **b)
    number = iter(range(10**6))
    both = {"a": a["endpoint_url"], "b": b["endpoint_url"]}
    source = tfr.dataset("s3://bucket/d/", storage_options=a, record_type="bytes")
    src, dst = {"storage_options": a}, {"storage_options": b}
    names = [f"train-{at:05d}-of-{SHARDS:05d}" for at in range(SHARDS)]

    def new(prefix: str) -> str:
        return f"{prefix}{next(number)}/"

    def by_s3fs() -> None:
        content = first.cat([f"bucket/d/{name}" for name in names])
        folder = new("bucket/s")
        second.pipe({folder + path.rpartition("/")[2]: data for path, data in content.items()})

    def by_arrow(source: Any, path: str, target: Any, folder: str) -> None:
        arrow.copy_files(path, folder, source_filesystem=source, destination_filesystem=target)

    def on_disk() -> str:
        folder = new(f"{disk}/o")
        os.makedirs(folder)
        return folder

    local = arrow.LocalFileSystem()
    return {
        "across stores": {
            "tfr.copy": lambda: tfr.copy(source, new("s3://bucket/t"), **dst),
            "rclone": lambda: _rclone(both, "a:bucket/d", new("b:bucket/r"))(),
            "s3fs, cat and pipe": by_s3fs,
            "pyarrow.fs.copy_files": lambda: by_arrow(_arrow(a), "bucket/d", _arrow(b), new("bucket/p").rstrip("/")),
        },
        "within a store": {
            "tfr.copy": lambda: tfr.copy("s3://bucket/d/", new("s3://bucket/t"), storage_options=a),
            "rclone": lambda: _rclone(both, "a:bucket/d", new("a:bucket/r"))(),
            "s3fs, copy": lambda: first.copy([f"bucket/d/{n}" for n in names], [new("bucket/s") + n for n in names]),
        },
        "to the disk": {
            "tfr.copy": lambda: tfr.copy("s3://bucket/d/", new(f"{disk}/t"), **src),
            "rclone": lambda: _rclone(both, "a:bucket/d", new(f"{disk}/r"))(),
            "s3fs, get": lambda: first.get([f"bucket/d/{n}" for n in names], on_disk()),
            "pyarrow.fs.copy_files": lambda: by_arrow(_arrow(a), "bucket/d", local, on_disk()),
        },
        "from the disk": {
            "tfr.copy": lambda: tfr.copy(f"{disk}/d/", new("s3://bucket/t"), **dst),
            "rclone": lambda: _rclone(both, f"{disk}/d", new("b:bucket/r"))(),
            "s3fs, put": lambda: second.put([f"{disk}/d/{n}" for n in names], new("bucket/s")),
            "pyarrow.fs.copy_files": lambda: by_arrow(local, f"{disk}/d", _arrow(b), new("bucket/p").rstrip("/")),
        },
    }


def measure(repeat: int) -> tuple[str, bool]:
    """The table, and whether all copies are fast enough."""
    lines = [
        f"{SHARDS} shards of {SHARD_BYTES >> 20} MiB; {DELAY_MS} ms a request, {MB_PER_S_EACH} MB/s a connection; "
        f"median of {repeat}.",
        "",
        "| | | seconds | of rclone |",
        "|---|---|---|---|",
    ]
    passed = True
    with ExitStack() as stack:
        a = stack.enter_context(object_store(DELAY_MS, MB_PER_S, MB_PER_S_EACH))
        b = stack.enter_context(object_store(DELAY_MS, MB_PER_S, MB_PER_S_EACH))
        disk = stack.enter_context(tempfile.TemporaryDirectory())
        os.makedirs(f"{disk}/d")
        tfr.write_tfrecord(_table(), f"{disk}/d/train@{SHARDS}")
        tfr.copy(f"{disk}/d/", "s3://bucket/d/", storage_options=a)
        for way, tools in _ways(a, b, disk).items():
            medians: dict[str, float] = {}
            for name in [name for name in tools if name != "rclone" or shutil.which("rclone")]:
                medians[name] = statistics.median(_timed(tools[name], disk) for _ in range(repeat))
            for name, seconds in medians.items():
                share = f"{seconds / medians['rclone']:.2f}" if "rclone" in medians else ""
                lines.append(f"| {way} | {name} | {seconds:.2f} | {share} |")
            passed &= "rclone" not in medians or medians["tfr.copy"] <= MOST[way] * medians["rclone"]
    return "\n".join(lines), passed


def _timed(work: Callable[[], Any], disk: str) -> float:
    begin = time.perf_counter()
    work()
    seconds = time.perf_counter() - begin
    for folder in Path(disk).iterdir():
        if folder.name != "d":
            shutil.rmtree(folder)
    return seconds
