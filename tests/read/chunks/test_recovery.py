"""Reading compressed files on behind damage: all readers return the records that `salvage` keeps."""

from __future__ import annotations

import gzip
import random
import zlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from packed import packed
from reading import read_by
from reading_modes import blocks_of
from records import blobs, example, framed, int64s, written
from rounds import COMPLETE
from tfrecord_io.base import FrameOptions
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.read.scan import Scan
from tfrecord_io.write.salvage_writer import IntactRecords

pytestmark = [
    pytest.mark.fault(26),
    pytest.mark.fault(28),
    pytest.mark.fault(30),
    pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning"),
]

RNG = random.Random(3)
ROWS = [example(x=int64s(i), t=blobs(RNG.randbytes(300))) for i in range(3000)]


def damaged(path: Path, name: str, seed: int) -> Path:
    """A file of several members, or of one, damaged in one or two places, or cut."""
    rng = random.Random(seed)
    step = rng.choice([250, 1000, len(ROWS)])
    content = bytearray().join(packed(name, framed(*ROWS[i : i + step])) for i in range(0, len(ROWS), step))
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(content))
        kind = rng.choice(["flip", "zeros", "cut out", "insert", "end"])
        if kind == "flip":
            content[at] ^= 1 << rng.randrange(8)
        elif kind == "zeros":
            content[at : at + 4096] = bytes(len(content[at : at + 4096]))
        elif kind == "cut out":
            del content[at : at + rng.randrange(1, 5000)]
        elif kind == "insert":
            content[at:at] = rng.randbytes(rng.randrange(1, 50))
        else:
            del content[at:]
    path.write_bytes(content)
    return path


def salvaged(path: Path) -> list[bytes]:
    [source] = Scan.unwrap(tfr.dataset(path, schema={"x": "int64"})).sources
    payloads = []
    for frames, sizes in IntactRecords(source, FrameOptions()).frames():
        ends = sizes.cumsum()
        payloads += [bytes(frames[end - size + 12 : end - 4]) for end, size in zip(ends, sizes, strict=True)]
    return payloads


@pytest.mark.matrix
@pytest.mark.parametrize("seed", range(12 if COMPLETE else 6))
@pytest.mark.parametrize("name", CODECS.names())
def test_readers_return_what_can_be_salvaged(tmp_path: Path, name: str, seed: int) -> None:
    path = damaged(tmp_path / f"a.tfrecord.{name}", name, seed)
    expected = salvaged(path)
    reader = tfr.RecordReader(tfr.dataset(path, compression=name), on_error="skip")
    assert list(reader) == expected
    numbers = [tfr.decode_example(record)["x"].item() for record in expected]
    assert numbers == sorted(set(numbers))
    keywords: dict[str, Any] = {"schema": {"x": "int64"}, "on_error": "skip", "compression": name}
    for threads in (1, 2):
        assert read_by(tfr.read_table, path, threads=threads, **keywords)["x"].to_pylist() == numbers
        with read_by(tfr.open_reader, path, threads=threads, batch_size=500, **keywords) as batches:
            assert pa.Table.from_batches(batches, batches.schema)["x"].to_pylist() == numbers
            assert batches.report.records == len(numbers)
    assert tfr.count(tfr.dataset(path, compression=name), on_error="skip", check_crc=True) == len(numbers)
    if len(numbers) < len(ROWS):
        assert reader.report.skipped.total


@pytest.mark.parametrize("damaged_record", [0, 4])
def test_records_before_a_cut_are_kept(tmp_path: Path, damaged_record: int) -> None:
    """A file is damaged and then cut at any byte: 4 or 9 bytes of a header look like the checksum of a payload."""
    content = bytearray(framed(*ROWS[:10]))
    last = len(framed(*ROWS[:9]))
    content[len(framed(*ROWS[:damaged_record])) + 15] ^= 1
    expected = [number for number in range(9) if number != damaged_record]
    for size in range(last + 1, len(content)):
        path = tmp_path / "a.tfrecord"
        path.write_bytes(content[:size])
        table = read_by(tfr.read_table, path, schema={"x": "int64"}, on_error="skip")
        assert table["x"].to_pylist() == expected, f"cut {size - last} bytes into the last record"


def test_what_is_left_out_is_stated(engine: str, tmp_path: Path) -> None:
    members = [gzip.compress(framed(*ROWS[i : i + 100])) for i in range(0, 500, 100)]
    middle = bytearray(members[2])
    middle[len(middle) // 2] ^= 1
    path = tmp_path / "a.gz"
    path.write_bytes(b"".join([*members[:2], middle, *members[3:]]))
    asked: list[tfr.TFRecordError] = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append(error)
        return True

    for step in (50, 1 << 20):
        asked.clear()
        with blocks_of(step):
            table = tfr.read_table(path, on_error=decide, schema={"x": "int64"})
        numbers = table["x"].to_pylist()
        assert numbers[:200] == list(range(200))
        assert numbers[-200:] == list(range(300, 500))
        broken = next(error for error in asked if isinstance(error, tfr.errors.CompressionError))
        region = broken.region
        assert region is not None
        assert region.begin == region.end
        assert "of the compressed file are not read" in region.reason
        assert region.begin is not None
        assert region.begin >= len(framed(*ROWS[:200]))
        with pytest.raises(tfr.TFRecordError) as caught:
            tfr.read_table(path, on_error=lambda error: False, schema={"x": "int64"})
        assert caught.value.records_intact == asked[0].record


def test_a_bomb_ends_its_file(tmp_path: Path) -> None:
    bomb = tmp_path / "a.gz"
    bomb.write_bytes(gzip.compress(framed(*[example(x=int64s(1), t=blobs(bytes(10_000)))] * 300)))
    good = written(tmp_path / "b", ROWS[:5])
    limit: dict[str, Any] = {"limits": tfr.Limits(decompression_ratio=4), "on_error": "skip"}
    numbers = read_by(tfr.read_table, [bomb, good], schema={"x": "int64"}, **limit)["x"].to_pylist()
    assert 5 < len(numbers) < 305
    assert numbers[-5:] == list(range(5))
    assert len(list(read_by(tfr.RecordReader, [bomb, good], **limit))) == len(numbers)
    assert read_by(tfr.count, [bomb, good], **limit) == len(numbers)


def test_tools_refuse_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(zlib.compress(framed(*[example(x=int64s(1), t=blobs(bytes(10_000)))] * 300)))
    with pytest.raises(tfr.errors.CompressionError, match="more than 4 times as many"):
        tfr.count(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=4)))
    assert tfr.count(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=2000))) == 300
    report = tfr.verify(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=4)))
    (file,) = report.files
    assert {problem.part for problem in file.problems} >= {"compression"}
    assert "pass a larger tfr.dataset(…, limits=tfr.Limits(decompression_ratio=…)) if you trust the file" in str(
        file.problems[0].error
    )
    assert 0 < file.intact < 300
    assert tfr.verify(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=2000))).ok
    saved = tfr.salvage(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=4)), tmp_path / "b")
    assert saved.records == file.intact == tfr.count(tmp_path / "b")
    assert any("more than 4 times as many" in region.reason for region in saved.regions)
    assert tfr.salvage(tfr.dataset(path, limits=tfr.Limits(decompression_ratio=2000)), tmp_path / "b").ok
    with pytest.raises(ValueError, match="expected at least 1"):
        tfr.Limits(decompression_ratio=0.5)
    with pytest.raises(TypeError, match="expected a number"):
        tfr.Limits(decompression_ratio="4")  # type: ignore[arg-type]
