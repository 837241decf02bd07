"""Datasets in a bucket: writing, beside storing the same bytes, and counting and verifying many files.

``python -m benchmarks.special.bucket_writes``.

The bucket is behind a network: each request takes 50 ms, and a connection carries 20 MB/s. The exit code is 1 if a
call takes longer than its share of the time of ``s3fs.pipe``, or than its seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa

import tfrecord_io as tfr
from benchmarks.special.remote import object_store

DELAY_MS, MB_PER_S, MB_PER_S_EACH = 50, 10_000, 20
SHARDS = 64
ROW_BYTES = 64 << 10
FILES = 1000
SECONDS = {"count": 0.3, "verify": 8.0}  # of 1,000 folders, and of 1,000 small shards
MOST = {"write": 1.5, "append": 1.5, "overwrite": 2.5, "merge": 2.0}  # times as long as storing the bytes


def _requests(options: dict[str, Any]) -> dict[str, int]:
    with urllib.request.urlopen(f"{options['endpoint_url']}/.requests") as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def _calls(table: pa.Table, shard_bytes: int, options: dict[str, Any]) -> Iterator[tuple[str, Callable[[], Any]]]:
    fs = fsspec.filesystem("s3", **options)  # as s3fs comes
    raw, train, by_size = os.urandom(shard_bytes), f"s3://bucket/d/train@{SHARDS}", shard_bytes + ROW_BYTES
    storage: dict[str, Any] = {"storage_options": options}
    growing: dict[str, Any] = {"max_shard_bytes": by_size, **storage}
    tfr.write_tfrecord(table.slice(0, 1), "s3://bucket/a/", **growing)
    yield "pipe", lambda: fs.pipe({f"bucket/raw/{at}": raw for at in range(SHARDS)})
    yield "write", lambda: tfr.write_tfrecord(table, train, **storage)
    yield "overwrite", lambda: tfr.write_tfrecord(table, train, mode="overwrite", **storage)
    yield "append", lambda: tfr.write_tfrecord(table, "s3://bucket/a/", mode="append", **growing)
    yield "merge", lambda: tfr.merge(train, f"s3://bucket/m/train@{SHARDS // 2}", **storage)
    back = tfr.read_table("s3://bucket/m/", **storage)
    assert back.equals(table), "the merged rows are others"


def measure(shard_mib: int) -> Iterator[tuple[str, float, dict[str, int]]]:
    """Seconds and requests of each call."""
    rows = SHARDS * (shard_mib << 20) // ROW_BYTES
    payload = np.random.default_rng(0).integers(0, 256, rows * ROW_BYTES, dtype=np.uint8)
    offsets = np.arange(rows + 1, dtype=np.int64) * ROW_BYTES
    images = pa.Array.from_buffers(pa.large_binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(payload)])
    table = pa.table({"image": images.cast(pa.binary())})
    with object_store(DELAY_MS, MB_PER_S, MB_PER_S_EACH) as options:
        for name, call in _calls(table, shard_mib << 20, options):
            _requests(options)
            begin = time.perf_counter()
            call()
            yield name, time.perf_counter() - begin, _requests(options)


def measure_many() -> Iterator[tuple[str, float, dict[str, int]]]:
    """Seconds and requests of calls on many files."""
    rows = pa.table({"x": range(10 * FILES), "p": [f"{at // 10:04d}" for at in range(10 * FILES)]})
    with object_store(DELAY_MS, MB_PER_S, MB_PER_S_EACH) as options:
        storage: dict[str, Any] = {"storage_options": options}
        tfr.write_tfrecord(rows, "s3://bucket/folders/", partition_by=["p"], **storage)
        tfr.write_tfrecord(rows, f"s3://bucket/shards/train@{FILES}", **storage)
        calls: dict[str, Callable[[], Any]] = {
            "count": lambda: tfr.count("s3://bucket/folders/", **storage) == 10 * FILES,
            "verify": lambda: tfr.verify("s3://bucket/shards/", **storage).ok,
        }
        for name, call in calls.items():
            _requests(options)
            begin = time.perf_counter()
            assert call(), name
            yield name, time.perf_counter() - begin, _requests(options)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=1, help="of each of the 64 shards")
    mib = parser.parse_args().mib
    print(f"{SHARDS} shards of {mib} MiB; {DELAY_MS} ms a request, {MB_PER_S_EACH} MB/s a connection\n")
    print("| | seconds | of pipe | requests |\n|---|---|---|---|")
    raw, passed = 0.0, True
    for name, seconds, requests in measure(mib):
        raw = raw or seconds
        passed &= seconds <= MOST.get(name, 1.0) * raw
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(requests.items()))
        print(f"| {name} | {seconds:.2f} | {seconds / raw:.1f} | {sum(requests.values())} ({shown}) |", flush=True)
    print(f"\n{FILES:,} folders, {FILES:,} shards\n\n| | seconds | requests |\n|---|---|---|")
    for name, seconds, requests in measure_many():
        passed &= seconds <= SECONDS[name]
        shown = ", ".join(f"{count} {kind}" for kind, count in sorted(requests.items()))
        print(f"| {name} | {seconds:.2f} | {sum(requests.values())} ({shown}) |", flush=True)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
