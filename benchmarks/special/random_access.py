"""Single records by number and by key, and a thousand at once, from files in the page cache.

``make bench BENCH_ARGS=--random_access``. Peers that are installed are measured, too: ``tfd-utils``, which finds a
record by its key and returns a message of protobuf, and ``array_record``, of records with the same payloads, which it
does not parse. Times are CPU times of the process, the least of many. The exit code is 1 if a goal is missed.
"""

from __future__ import annotations

import io
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing, redirect_stdout, suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

import tfrecord_io as tfr

ROWS, ASKED, KEYS = 100_000, 1000, 1_000_000
GOALS = {"records[i]": 12.0, "records.lookup(key)": 20.0, "records[[i, …]]": 2.0}  # µs a record
PACKAGES = ("tfrecord_io", "pyarrow", "numpy", "array_record", "tfd-utils")


def measure(repeat: int = 7) -> tuple[str, bool]:
    """Time the ways to the same records; return the table, and whether all goals are reached."""
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "images.tfrecord"
        table = {
            "id": [f"img-{number:016}" for number in range(ROWS)],
            "label": rng.integers(0, 10, ROWS),
            "score": rng.random(ROWS, np.float32),
            "image": [rng.bytes(300) for _ in range(ROWS)],
            "embedding": list(rng.random((ROWS, 16), np.float32)),
        }
        tfr.write_tfrecord(table, path, embed_schema=False)
        tfr.build_index(path, columns=["id"])
        numbers = rng.integers(0, ROWS, ASKED).tolist()
        times = dict(_own(path, numbers, repeat))
        with suppress(ImportError):
            times |= dict(_tfd_utils(path, numbers, repeat))
        with suppress(ImportError):
            times |= dict(_array_record(path, numbers, repeat))
    lines = [f"{ROWS:,} records of {sum(map(len, table['id'])) // ROWS + 400} bytes, {ASKED:,} of them.", ""]
    lines += ["| | µs a record |", "|---|---|", *(f"| {name} | {us:.1f} |" for name, us in times.items())]
    lines += ["", _keys(repeat)]
    return "\n".join(lines), all(times[name] <= goal for name, goal in GOALS.items())


def _own(path: Path, numbers: list[int], repeat: int) -> Iterator[tuple[str, float]]:
    keys = [f"img-{number:016}" for number in numbers]
    with tfr.open_random(path, key="id") as records:
        yield "records[i]", _best(lambda: [records[number] for number in numbers], repeat)
        yield "records.lookup(key)", _best(lambda: [records.lookup(key) for key in keys], repeat)
        yield "records[[i, …]]", _best(lambda: records[numbers], repeat)
        yield "records.lookup([key, …])", _best(lambda: records.lookup(keys), repeat)
    source = tfr.dataset(path).to_grain()
    yield "dataset.to_grain()[i]", _best(lambda: [source[number] for number in numbers], repeat)
    yield "dataset.to_grain().arrays([i, …])", _best(lambda: source.arrays(numbers), repeat)
    with suppress(ImportError):
        rows = tfr.dataset(path).to_torch_map()
        yield "dataset.to_torch_map()[i]", _best(lambda: [rows[number] for number in numbers], repeat)
        yield "dataset.to_torch_map()[[i, …]]", _best(lambda: rows[numbers], repeat)
        batch = rows.__getitems__
        yield "dataset.to_torch_map(), collate_fn", _best(lambda: rows.collate_fn(batch(numbers)), repeat)


def _keys(repeat: int) -> str:
    """How long many keys take, and how much memory."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "keys.tfrecord"
        tfr.write_tfrecord({"id": [f"{hash((1, number)) % 10**19:020}" for number in range(KEYS)]}, path)
        tfr.build_index(path, columns=["id"])
        seconds = _best(lambda: tfr.open_random(path, key="id").close(), min(repeat, 3)) * ASKED / 1e6
        tracemalloc.start()
        before = pa.total_allocated_bytes()
        with tfr.open_random(path, key="id") as records:
            held = pa.total_allocated_bytes() - before + tracemalloc.get_traced_memory()[0]
            assert records._keys is not None
            held += records._keys._table.nbytes  # of C++
        tracemalloc.stop()
    return f"{KEYS:,} keys of 20 bytes are read in {seconds:.2f} s of CPU time, and take {held / KEYS:.0f} bytes each."


def _tfd_utils(path: Path, numbers: list[int], repeat: int) -> Iterator[tuple[str, float]]:
    from tfd_utils.random_access import TFRecordRandomAccess  # type: ignore[import-not-found,unused-ignore]

    keys = [f"img-{number:016}" for number in numbers]
    with redirect_stdout(io.StringIO()):  # it says how far it is
        records = TFRecordRandomAccess(str(path), key_feature_name="id")
        assert records[keys[0]] is not None
    yield "tfd-utils: records[key]", _best(lambda: [records[key] for key in keys], repeat)


def _array_record(path: Path, numbers: list[int], repeat: int) -> Iterator[tuple[str, float]]:
    from array_record.python import array_record_module  # type: ignore[import-not-found,unused-ignore]

    copy = str(path.with_suffix(".array_record"))
    with (
        closing(array_record_module.ArrayRecordWriter(copy, "group_size:1")) as writer,
        tfr.RecordReader(path) as reader,
    ):
        for payload in reader:
            writer.write(payload)
    records = array_record_module.ArrayRecordReader(copy)
    yield "array_record: read([i])", _best(lambda: [records.read([number]) for number in numbers], repeat)
    yield "array_record: read([i, …])", _best(lambda: records.read(numbers), repeat)


def _best(read: Callable[[], object], repeat: int) -> float:
    """The shortest time for a record, in µs."""
    best = float("inf")
    for _ in range(max(3, repeat) * 3):
        begin = time.process_time()
        read()
        best = min(best, time.process_time() - begin)
    return best / ASKED * 1e6
