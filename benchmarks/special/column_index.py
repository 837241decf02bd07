"""Records of one label out of many, from an object store behind a slow link: with a column index, and by reading all.

``make bench BENCH_ARGS=--column_index``. The exit code is 1 if the records found by the index take more than
`MOST_SECONDS`, or more than half the time to read all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import tfrecord_io as tfr
from benchmarks.special.remote import DELAY_MS, MB_PER_S, object_store
from tfrecord_io.store.read import range_requests

ROWS, LABELS, IMAGE_BYTES = 1_000_000, 1000, 1000
URL = "s3://bucket/labeled.tfrecord"
MOST_SECONDS = 10
LABEL = 7


def _batches() -> Iterator[pa.RecordBatch]:
    rng = np.random.default_rng(0)
    rows = 50_000
    offsets = np.arange(rows + 1, dtype=np.int32) * IMAGE_BYTES
    for begin in range(0, ROWS, rows):
        payload = rng.integers(0, 256, rows * IMAGE_BYTES, dtype=np.uint8)
        image = pa.Array.from_buffers(pa.binary(), rows, [None, pa.py_buffer(offsets), pa.py_buffer(payload)])
        labels = np.random.default_rng(begin).permutation(rows) % LABELS
        numbers = np.arange(begin, begin + rows)
        yield pa.record_batch({"id": numbers, "label": labels, "image": image})


@contextmanager
def _counted() -> Iterator[list[int]]:
    """The bytes of each range request."""
    sizes: list[int] = []
    original = range_requests.S3Object.read_range

    async def counting(self: Any, begin: int, end: int) -> bytes:
        sizes.append(end - begin)
        return await original(self, begin, end)

    range_requests.S3Object.read_range = counting  # type: ignore[method-assign]
    try:
        yield sizes
    finally:
        range_requests.S3Object.read_range = original  # type: ignore[method-assign]


def measure(repeat: int = 3) -> tuple[str, bool]:
    """Time the ways to the same rows; return the table, and whether the index is fast enough."""
    condition = pc.field("label") == LABEL
    schema = _batches().__next__().schema
    with object_store() as options:
        keywords: dict[str, Any] = {"storage_options": options}
        reader = pa.RecordBatchReader.from_batches(schema, _batches())
        size = tfr.write_tfrecord(reader, URL, **keywords).bytes

        def select() -> pa.Table:
            with tfr.open_random(URL, **keywords) as records:
                return records.select(condition).to_table()

        def filtered() -> pa.Table:
            return tfr.read_table(URL, filters=condition, **keywords)

        def iterated() -> pa.Table:
            batches = tfr.iter_arrays(URL, batch_size=100, filters=condition, **keywords)
            return pa.table({"id": np.concatenate([batch["id"] for batch in batches])})

        whole = _best(filtered, 1)
        begin = time.perf_counter()
        (built,) = tfr.build_index(URL, columns=["label"], **keywords)
        build_seconds = time.perf_counter() - begin
        ways = {
            "read_table(filters=) without an index": whole,
            "read_table(filters=)": _best(filtered, min(repeat, 3)),
            "open_random().select().to_table()": _best(select, min(repeat, 3)),
            "iter_arrays(filters=)": _best(iterated, min(repeat, 3)),
        }
    assert built.records == ROWS
    lines = [f"{ROWS:,} records, {size / 1e6:.0f} MB, of which {ROWS // LABELS:,} match; {DELAY_MS} ms per request,"]
    lines += [f"{MB_PER_S} MB/s; the index was built in {build_seconds:.0f} s.", ""]
    lines += ["| | s | requests | MB |", "|---|---|---|---|"]
    for name, (seconds, sizes) in ways.items():
        lines.append(f"| {name} | {seconds:.2f} | {len(sizes):,} | {sum(sizes) / 1e6:.1f} |")
    slowest = max(seconds for name, (seconds, _) in ways.items() if "without" not in name)
    return "\n".join(lines), slowest < min(MOST_SECONDS, whole[0] / 2)


def _best(read: Callable[[], pa.Table], repeat: int) -> tuple[float, list[int]]:
    """The shortest time, and the bytes of the requests."""
    best, requests = float("inf"), []
    for _ in range(repeat):
        with _counted() as sizes:
            begin = time.perf_counter()
            table = read()
            seconds = time.perf_counter() - begin
        assert table.num_rows == ROWS // LABELS
        if seconds < best:
            best, requests = seconds, sizes
    return best, requests
