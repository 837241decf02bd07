"""Shuffling and sampling files, in memory and through temporary files."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import Counter
from math import factorial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import example, int64s, written
from rounds import COMPLETE, rounds
from servers import Bucket


def payloads(path: Path | str) -> list[bytes]:
    return list(tfr.RecordReader(path))


@settings(max_examples=rounds(60))
@given(st.lists(st.binary(max_size=60), max_size=60), st.integers(0, 2**64), st.integers(1, 3000), st.integers(1, 3))
def test_the_order_depends_on_the_seed_alone(records: list[bytes], seed: int, memory_bytes: int, files: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "a", records)
        tfr.split(path, f"{folder}/s/x", shards=files, compression="gzip")
        tfr.shuffle(path, f"{folder}/b", seed=seed)
        tfr.shuffle(f"{folder}/s", f"{folder}/c@2", seed=seed, memory_bytes=memory_bytes)
        shuffled = payloads(f"{folder}/b")
        assert payloads(f"{folder}/c@2") == shuffled
    assert Counter(shuffled) == Counter(records)


@pytest.mark.parametrize("memory_bytes", [1, 1 << 20])
def test_all_orders_are_equally_likely(tmp_path: Path, memory_bytes: int) -> None:
    records, most = ([b"a", b"b", b"c", b"d"], 50.0) if COMPLETE else ([b"a", b"b", b"c"], 20.5)
    path, orders = written(tmp_path / "a", records), factorial(len(records))
    counts: Counter[bytes] = Counter()
    for seed in range(20 * orders):
        tfr.shuffle(path, tmp_path / "b", seed=seed, memory_bytes=memory_bytes)
        counts[b"".join(payloads(tmp_path / "b"))] += 1
    assert len(counts) == orders
    chi_square = sum((n - 20) ** 2 / 20 for n in counts.values())
    assert chi_square < most  # 23 or 5 degrees of freedom: the seeds are fixed, and 99.9 % of all seeds are below


def test_the_schema_is_in_front_again(engine: str, tmp_path: Path) -> None:
    table = pa.table({"n": pa.array(range(100), pa.uint8())})
    tfr.write_tfrecord(table, tmp_path / "a@3")
    for memory_bytes in (100, 10_000):
        tfr.shuffle(tmp_path / "a@3", tmp_path / "b", seed=5, memory_bytes=memory_bytes)
        shuffled = tfr.read_table(tmp_path / "b")
        assert shuffled.schema.equals(table.schema)
        assert shuffled["n"].to_pylist() != table["n"].to_pylist()
        assert sorted(shuffled["n"].to_pylist()) == table["n"].to_pylist()


def test_labels_of_a_range_index_do_not_go_to_other_rows(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": range(9)}, index=pd.RangeIndex(100, 109))
    source, target = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    tfr.write_tfrecord(frame, source)
    tfr.shuffle(source, target, seed=1)
    read = tfr.read_tfrecord(target)
    assert sorted(read["x"]) == list(range(9)) != read["x"].tolist()
    assert read.index.equals(pd.RangeIndex(9))
    tfr.write_tfrecord(frame.set_axis(pd.Index(range(100, 109), name="row")), source, index=True, mode="overwrite")
    tfr.shuffle(source, target, seed=1, mode="overwrite")
    read = tfr.read_tfrecord(target)
    assert (read.index == read["x"] + 100).all()
    assert read.index.name == "row"


def test_a_file_can_be_shuffled_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": list(range(100))}, path)
    tfr.shuffle(path, path)
    assert sorted(tfr.read_table(path)["n"].to_pylist()) == list(range(100))


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Shuffling 200 MB takes less than 200 MB beyond what a small file takes."""
    row = np.random.default_rng(0).bytes(100_000)
    with tfr.RecordWriter(tmp_path / "large") as writer:
        for i in range(2000):
            writer.write(i.to_bytes(8, "little") + row)
    written(tmp_path / "small", [b"x"])
    code = (
        "import sys, resource, tfrecord_io as tfr; "
        "tfr.shuffle(tfr.dataset(sys.argv[1], threads=1), sys.argv[2], memory_bytes=20_000_000); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for name in ("small", "large"):
        command = [sys.executable, "-c", code, tmp_path / name, tmp_path / "out"]
        peaks.append(int(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    unit = 1 if sys.platform == "darwin" else 1024
    assert (peaks[1] - peaks[0]) * unit < 120_000_000
    assert sorted(int.from_bytes(p[:8], "little") for p in payloads(tmp_path / "out")) == list(range(2000))


@settings(max_examples=rounds(60))
@given(st.integers(0, 60), st.integers(0, 70), st.integers(0, 2**64))
def test_a_sample_has_exactly_n_records(count: int, n: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "a", [example(n=int64s(i)) for i in range(count)])
        tfr.split(path, f"{folder}/s/x", shards=3, compression="gzip")
        assert tfr.sample(path, f"{folder}/b", n=n, seed=seed).records == min(n, count)
        tfr.sample(f"{folder}/s", f"{folder}/c@2", n=n, seed=seed)
        chosen, places = payloads(f"{folder}/b"), {p: i for i, p in enumerate(payloads(path))}
        assert payloads(f"{folder}/c@2") == chosen
    numbers = [places[payload] for payload in chosen]
    assert numbers == sorted(set(numbers))


def test_every_record_is_equally_likely_in_a_sample(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [bytes([i]) for i in range(10)])
    counts: Counter[bytes] = Counter()
    times = 400 if COMPLETE else 100
    for seed in range(times):
        tfr.sample(path, tmp_path / "b", n=3, seed=seed)
        counts.update(payloads(tmp_path / "b"))
    assert len(counts) == 10
    deviation = (0.3 * 0.7 * times) ** 0.5
    assert all(abs(n - 0.3 * times) < 3.8 * deviation for n in counts.values())


def test_fractions_and_refusals(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [bytes([i]) for i in range(50)])
    assert [tfr.sample(path, tmp_path / "b", fraction=f).records for f in (0, 0.29, 0.31, 1)] == [0, 15, 16, 50]
    for wrong in ({}, {"n": 1, "fraction": 0.5}, {"fraction": 1.5}, {"n": -1}):
        with pytest.raises(ValueError, match=r"n=|fraction="):
            tfr.sample(path, tmp_path / "c", **wrong)
    with pytest.raises(ValueError, match="memory_bytes=0"):
        tfr.shuffle(path, tmp_path / "c", memory_bytes=0)
    assert not (tmp_path / "c").exists()


def test_buckets(s3: Bucket, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": list(range(50))}, s3.url("a/x@2"), storage_options=s3.storage_options)
    tfr.shuffle(s3.url("a"), s3.url("b/x@3"), memory_bytes=500, storage_options=s3.storage_options)
    tfr.sample(s3.url("b"), tmp_path / "c", n=20, storage_options=s3.storage_options)
    assert len(set(tfr.read_table(tmp_path / "c")["n"].to_pylist())) == 20


def test_a_record_that_does_not_fit_into_memory_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, target = tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"
    with tfr.RecordWriter(source) as writer:
        for value in (b"small", bytes((20 << 20) - 25)):
            writer.write(tfr.encode_example({"x": value}))

    def no_memory(*_: Any) -> NoReturn:
        raise MemoryError

    leaves_out = r"tfr\.dataset\(source, limits=tfr\.Limits\(record_bytes=…\), on_error='skip'\) leaves out larger ones"
    with monkeypatch.context() as patched:
        patched.setattr("tfrecord_io.write.rearranging.shuffle.Spool.write", no_memory)
        with pytest.raises(MemoryError, match=f"a.tfrecord: record 1 has 20,971,523 bytes: .*; {leaves_out}$"):
            tfr.shuffle(source, target, memory_bytes=1 << 20)
    with monkeypatch.context() as patched:
        patched.setattr("tfrecord_io.write.rearranging.shuffle._write_sorted", no_memory)
        with pytest.raises(MemoryError, match=r"not enough memory to shuffle the records; pass less memory_bytes=$"):
            tfr.shuffle(source, target)
    monkeypatch.setattr("tfrecord_io.store.read.block_reader.Block.memory", no_memory)
    with pytest.raises(MemoryError, match=f"a.tfrecord: .* record 1 of 20,971,523 bytes at byte 34 .*; {leaves_out}$"):
        tfr.merge(source, target)
    monkeypatch.undo()
    kept = tfr.dataset(source, limits=tfr.Limits(record_bytes=1 << 20), on_error="skip")
    with pytest.warns(tfr.errors.DamagedDataWarning, match="over the limit"):
        assert tfr.shuffle(kept, target).records == 1
