"""FAULTS 26–33 for whole files: a damaged compressed file returns the records before the damage, then an error."""

from __future__ import annotations

import random
import threading
import tracemalloc
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import fsspec
import pytest

import tfrecord_io as tfr
from records import blobs, example, framed, header, int64s
from rounds import rounds
from running_threads import ends, running
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.compression.stream import DecompressedStream
from tfrecord_io.testing.codec_suite import read, write

pytestmark = pytest.mark.matrix

VALUES = [(i * 7919) % 2503 for i in range(250)]


@cache
def framed_records() -> list[bytes]:
    """Large records, which give several blocks with few rows."""
    texts = (bytes(range(256)) * 100 + bytes([i % 251]) * (100 * i) for i in range(len(VALUES)))
    return [framed(example(n=int64s(value), s=blobs(text))) for value, text in zip(VALUES, texts, strict=True)]


@cache
def plain() -> bytes:
    return b"".join(framed_records())


def packed(codec: str, data: bytes) -> bytes:
    return write(CODECS.find(codec), [data])  # type: ignore[no-any-return]


@cache
def compressed(codec: str) -> bytes:
    return packed(codec, plain())


@cache
def bomb(codec: str, head: bytes) -> bytes:
    """A small file of `head` and zeros, 1 GiB in the complete run."""
    made: bytes = write(CODECS.find(codec), [head] + [bytes(1 << 20)] * rounds(1024))
    assert len(made) < 5 << 20
    return made


@pytest.fixture(params=CODECS.names())
def codec(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[1, 2, 4])
def threads(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def intact(length: int) -> tuple[int, int]:
    """The number of complete records in the first `length` bytes, and their size."""
    end = count = 0
    while count < len(VALUES) and end + len(framed_records()[count]) <= length:
        end += len(framed_records()[count])
        count += 1
    return count, end


def read_until_error(path: Path, threads: int) -> tuple[list[int], tfr.errors.CompressionError]:
    rows: list[int] = []
    with (
        tfr.open_reader(tfr.dataset(path, threads=threads), batch_size=10) as reader,
        pytest.raises(tfr.errors.CompressionError) as caught,
    ):
        rows.extend(value for batch in reader for value in batch["n"].to_pylist())
    return rows, caught.value


def check(path: Path, threads: int, length: int, reason: str) -> None:
    """The records in the `length` decodable bytes are returned, then an error with this reason and both offsets."""
    count, _ = intact(length)
    rows, error = read_until_error(path, threads)
    assert rows == VALUES[:count]
    assert (error.path, error.offset, error.record, error.records_intact) == (str(path), length, count, count)
    message = str(error)
    assert reason in message
    assert f"byte {length}:" in message
    assert "of the compressed file" in message
    assert f"the {count} records before it are intact" in message
    assert message.endswith("see on_error=, or keep the intact records with tfr.salvage(path, target)")
    with pytest.raises(tfr.errors.CompressionError) as caught:
        tfr.read_table(tfr.dataset(path, threads=threads))
    assert caught.value.records_intact == count
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.read_table(tfr.dataset(path, threads=threads), on_error="stop")["n"].to_pylist() == VALUES[:count]
    payloads = []
    with pytest.raises(tfr.errors.CompressionError, match="of the compressed file"):
        payloads.extend(tfr.RecordReader(path))
    assert framed(*payloads) == plain()[: intact(length)[1]]


@pytest.mark.fault(26)
@pytest.mark.parametrize("part", [0.5, 0.99])
def test_truncated_file(engine: str, tmp_path: Path, codec: str, threads: int, part: float) -> None:
    made = compressed(codec)[: int(len(compressed(codec)) * part)]
    check(
        written(tmp_path / "a", made),
        threads,
        len(read(made, CODECS.find(codec))[0]),
        "the file is truncated or incomplete",
    )


@pytest.mark.matrix
@pytest.mark.fault(27)
@pytest.mark.fault(28)
@pytest.mark.parametrize(
    ("codec", "at"), [("gzip", 5), ("gzip", 8), *((codec, at) for codec in CODECS.names() for at in (1, 4))]
)
def test_a_bad_checksum_or_length_in_the_trailer(
    engine: str, tmp_path: Path, codec: str, threads: int, at: int
) -> None:
    made = bytearray(compressed(codec))
    made[-at] ^= 0x10
    message = "length mismatch" if codec == "gzip" and at <= 4 else "mismatch (stored"
    check(written(tmp_path / "a", bytes(made)), threads, len(plain()), message)


@pytest.mark.fault(29)
def test_members_and_members_without_bytes(engine: str, tmp_path: Path, codec: str, threads: int) -> None:
    middle = len(plain()) // 2 + 5
    made = b"".join(packed(codec, part) for part in (b"", plain()[:middle], b"", plain()[middle:], b""))
    assert tfr.read_table(tfr.dataset(written(tmp_path / "a", made), threads=threads))["n"].to_pylist() == VALUES


@pytest.mark.fault(30)
def test_other_data_after_the_last_member(engine: str, tmp_path: Path, codec: str, threads: int) -> None:
    check(written(tmp_path / "a", compressed(codec) + b"junk"), threads, len(plain()), "other data after")


@pytest.mark.fault(31)
def test_decompression_bomb_is_read_in_bounded_memory(engine: str, tmp_path: Path, codec: str, threads: int) -> None:
    zeros, record = bomb(codec, b""), bomb(codec, header(1 << 30))
    tracemalloc.start()
    try:
        with pytest.raises(tfr.errors.CorruptRecordError, match="record 0 at byte 0"):
            tfr.read_table(tfr.dataset(written(tmp_path / "a", zeros), threads=threads))
        with pytest.raises(tfr.errors.CorruptRecordError, match=r"limits=tfr\.Limits\(record_bytes="):
            tfr.read_table(
                tfr.dataset(written(tmp_path / "b", record), threads=threads, limits=tfr.Limits(record_bytes=1 << 24))
            )
        assert tracemalloc.get_traced_memory()[1] < 100 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.fault(33)
@pytest.mark.parametrize("compression", ["infer", None, *CODECS.names()])
def test_empty_file_has_no_rows(engine: str, tmp_path: Path, compression: str | None, threads: int) -> None:
    for suffix in ("", *CODECS.suffixes()):
        path = written(tmp_path / f"a.tfrecord{suffix}", b"")
        assert tfr.read_table(tfr.dataset(path, compression=compression, threads=threads)).num_rows == 0
        assert list(tfr.RecordReader(tfr.dataset(path, compression=compression))) == []


def test_a_table_is_the_same_file_on_any_threads(engine: str, tmp_path: Path, codec: str) -> None:
    table = {"n": list(range(2500)), "text": [str(n) * (n % 50) for n in range(2500)]}
    paths = [tmp_path / f"{threads}" for threads in (1, 2, 4)]
    reports = [tfr.write_tfrecord(table, path, compression=codec, threads=int(path.name)) for path in paths]
    assert len({path.read_bytes() for path in paths}) == 1
    assert {(report.compression, report.bytes) for report in reports} == {(codec, paths[0].stat().st_size)}
    assert tfr.read_table(paths[0]).to_pydict() == table


def test_a_compressor_that_fails_at_the_end_publishes_nothing(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = CODECS.find(codec)
    assert made is not None
    compressor = made.new_compressor(None, 1)

    def fail() -> Iterator[bytes]:
        yield b"some"
        raise MemoryError("mine")

    monkeypatch.setattr(compressor, "flush", fail)
    monkeypatch.setattr(type(made), "new_compressor", lambda self, level, threads: compressor)
    with pytest.raises(MemoryError, match="mine"):
        tfr.write_tfrecord({"n": VALUES}, tmp_path / "a", compression=codec)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.fault(66)
def test_full_disk_is_an_error_and_stops_the_threads(codec: str, threads: int) -> None:
    noise = {"noise": [random.Random(i).randbytes(1 << 20) for i in range(8)]}
    with pytest.raises(OSError, match="No space left"):
        tfr.write_tfrecord(noise, "/dev/full", compression=codec, threads=threads)
    for thread in running():
        assert ends(thread)


@pytest.mark.parametrize("where", ["local", "memory"])
def test_another_thread_decompresses_ahead_of_the_decoder(
    tmp_path: Path, codec: str, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(written(tmp_path / f"a{CODECS.get(codec).suffixes[0]}", compressed(codec)))
    if where == "memory":
        path = f"memory://{tmp_path.name}-{codec}"
        fsspec.filesystem("memory").pipe(path, compressed(codec))
    threads: list[int] = []
    real = DecompressedStream.readinto

    def readinto(self: DecompressedStream, buffer: memoryview) -> int:
        threads.append(threading.get_ident())
        return real(self, buffer)

    monkeypatch.setattr(DecompressedStream, "readinto", readinto)
    assert tfr.read_table(tfr.dataset(path, threads=2)).num_rows == len(VALUES)
    assert threads[0] == threading.get_ident()  # small files need no thread
    assert threads[-1] != threading.get_ident()


def test_a_decompression_ratio_ends_the_reading_of_a_bomb(
    engine: str, tmp_path: Path, codec: str, threads: int
) -> None:
    """The records before are returned; a file that does not reach the ratio is not affected."""
    noise = random.Random(0)
    texts = [*(noise.randbytes(20_000) for _ in range(40)), *(bytes(1 << 20) for _ in range(8))]
    content = b"".join(framed(example(n=int64s(n), s=blobs(text))) for n, text in enumerate(texts))
    path = written(tmp_path / "a", packed(codec, content))
    whole = tfr.read_table(tfr.dataset(path, threads=threads, limits=tfr.Limits(decompression_ratio=20)))
    with pytest.raises(tfr.errors.CompressionError, match="more than 4 times as many") as caught:
        tfr.read_table(tfr.dataset(path, threads=threads, limits=tfr.Limits(decompression_ratio=4)))
    assert caught.value.expected == 4 < caught.value.got
    intact = caught.value.records_intact
    assert 40 < intact < 46
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match=r"limits=tfr\.Limits\(decompression_ratio="):
        stopped = tfr.read_table(
            tfr.dataset(path, threads=threads, limits=tfr.Limits(decompression_ratio=4)), on_error="stop"
        )
    assert stopped.equals(whole[:intact])
    with pytest.raises(tfr.errors.CompressionError, match=r"limits=tfr\.Limits\(decompression_ratio="):
        list(tfr.RecordReader(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=4))))


def test_a_small_file_may_be_uniform(tmp_path: Path, codec: str) -> None:
    content = framed(example(s=blobs(bytes(900 << 10))))
    path = written(tmp_path / "a", packed(codec, content))
    assert tfr.read_table(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=1))).num_rows == 1


@pytest.mark.parametrize(("ratio", "error"), [(0.5, ValueError), (float("nan"), ValueError), ("9", TypeError)])
def test_invalid_ratios(ratio: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="decompression_ratio="):
        tfr.Limits(decompression_ratio=ratio)
