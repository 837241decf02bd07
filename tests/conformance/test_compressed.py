"""Compressed files, of any size and written on any number of threads, are exchanged with TensorFlow both ways."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr

MIB = 1 << 20


@pytest.fixture(params=["gzip", "zlib"])
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def payloads_of(size: int) -> list[bytes]:
    """About `size` bytes: noise, runs and text, in records of 0 to 20,000 bytes, and of 3 MiB."""
    rng = np.random.default_rng(size)
    payloads: list[bytes] = []
    total = 0
    while total < size:
        length = int(rng.integers(0, 20_000))
        noise = rng.bytes(length // 3)
        payloads.append(noise + b"feature" * (length // 21) + bytes(length // 3))
        total += length
    if size > 6 * MIB:
        payloads[5] = rng.bytes(3 * MIB)
    return payloads


def read_by_tensorflow(tf: Any, path: Path, codec: str) -> list[bytes]:
    return [
        bytes(record)
        for record in tf.data.TFRecordDataset(str(path), compression_type=codec.upper()).as_numpy_iterator()
    ]


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("size", [1, 50_000, 70 * MIB], ids=["tiny", "small", "large"])
def test_tensorflow_reads_our_tables(tf: Any, codec: str, threads: int, size: int, tmp_path: Path) -> None:
    payloads = payloads_of(size)
    table = pa.table({"record": pa.array(payloads, pa.large_binary())})
    tfr.write_tfrecord(table, tmp_path / "a", record_type="bytes", compression=codec, threads=threads)
    assert read_by_tensorflow(tf, tmp_path / "a", codec) == payloads


def test_tensorflow_reads_our_records(tf: Any, codec: str, tmp_path: Path) -> None:
    payloads = payloads_of(8 * MIB)
    with tfr.RecordWriter(tmp_path / "a", compression=codec) as writer:
        for payload in payloads:
            writer.write(payload)
    assert read_by_tensorflow(tf, tmp_path / "a", codec) == payloads


def test_tensorflow_reads_a_file_of_no_records(tf: Any, codec: str, tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a", compression=codec):
        pass
    assert read_by_tensorflow(tf, tmp_path / "a", codec) == []


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_we_read_what_tensorflow_writes(tf: Any, codec: str, write_records: Any, threads: int, tmp_path: Path) -> None:
    payloads = payloads_of(20 * MIB)
    path = write_records(tmp_path / "tf", payloads, codec.upper())
    assert tfr.read_table(tfr.dataset(path, record_type="bytes", threads=threads))["record"].to_pylist() == payloads
    assert list(tfr.RecordReader(path)) == payloads


def test_concatenated_gzip_files_are_read_by_both(tf: Any, write_records: Any, tmp_path: Path) -> None:
    payloads = payloads_of(200_000)
    reference = Path(write_records(tmp_path / "tf", payloads, "GZIP")).read_bytes()
    with tfr.RecordWriter(tmp_path / "a", compression="gzip") as writer:
        for payload in payloads:
            writer.write(payload)
    both = tmp_path / "both"
    both.write_bytes((tmp_path / "a").read_bytes() + reference)
    assert list(tfr.RecordReader(both)) == 2 * payloads
    assert read_by_tensorflow(tf, both, "gzip") == 2 * payloads


def test_tensorflow_cannot_read_zstd(tf: Any, tmp_path: Path) -> None:
    """As the documents say."""
    with tfr.RecordWriter(tmp_path / "plain") as writer:
        writer.write(b"payload")
    plain = (tmp_path / "plain").read_bytes()
    frame = (
        b"\x28\xb5\x2f\xfd\x20" + bytes([len(plain)]) + (len(plain) << 3 | 1).to_bytes(3, "little") + plain
    )  # one block, raw
    (tmp_path / "a.zst").write_bytes(frame)
    for compression_type in ("", "zstd"):
        with pytest.raises(tf.errors.OpError):
            read_by_tensorflow(tf, tmp_path / "a.zst", compression_type)
