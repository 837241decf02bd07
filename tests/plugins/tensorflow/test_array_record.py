"""ArrayRecord files: the package array_record, which Grain reads them by, decides what is right."""

from __future__ import annotations

import os
import random
import subprocess
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from forked import interpreter
from rounds import rounds
from transfers import convert_flat

module = pytest.importorskip("array_record.python.array_record_module")
PAYLOADS = [b"", b"a", b"\x00" * 3, *(bytes([i]) * (i * 7) for i in range(200))]


def read(path: Path) -> list[bytes]:
    reader = module.ArrayRecordReader(str(path))
    assert reader.ok()
    records: list[bytes] = reader.read(0, reader.num_records()) if reader.num_records() else []
    reader.close()
    return records


def write(path: Path, records: Sequence[bytes], options: str = "group_size:1") -> Path:
    writer = module.ArrayRecordWriter(str(path), options)
    for record in records:
        writer.write(record)
    writer.close()
    return path


def tfrecords(path: Path, records: Sequence[bytes] = PAYLOADS) -> Path:
    with tfr.RecordWriter(path) as writer:
        for record in records:
            writer.write(record)
    return path


@pytest.mark.parametrize("records", [[], [b""], PAYLOADS], ids=len)
def test_records_are_copied_in_order_and_back(tmp_path: Path, records: list[bytes]) -> None:
    source = tfrecords(tmp_path / "a.tfrecord", records)
    report = tfr.convert(source, tmp_path / "a.array_record")
    assert (report.records, report.bytes) == (len(records), (tmp_path / "a.array_record").stat().st_size)
    assert read(tmp_path / "a.array_record") == records
    assert tfr.convert(tmp_path / "a.array_record", tmp_path / "b.tfrecord").records == len(records)
    assert (tmp_path / "b.tfrecord").read_bytes() == source.read_bytes()


@pytest.mark.parametrize("options", ["group_size:1", "group_size:7,brotli:3", "group_size:1000,uncompressed"])
def test_files_of_other_writers_are_read(tmp_path: Path, options: str) -> None:
    paths = [write(tmp_path / f"{name}.array_record", PAYLOADS, options) for name in "ab"]
    tfr.convert(paths, tmp_path / "a.tfrecord.gz")
    with tfr.RecordReader(tmp_path / "a.tfrecord.gz") as records:
        assert list(records) == PAYLOADS * 2


def test_shards_as_tfds_names_them(tmp_path: Path) -> None:
    parts = [PAYLOADS[:3], PAYLOADS[3:]]
    paths = [write(tmp_path / f"a.array_record-0000{i}-of-00002", part) for i, part in enumerate(parts)]
    for source, expected in (
        (paths[1], parts[1]),
        (paths, PAYLOADS),
        (tmp_path / "a.array_record-*", PAYLOADS),
        (tmp_path / "a.*-of-00002", PAYLOADS),
    ):
        tfr.convert(source, tmp_path / "b.tfrecord", target_options={"mode": "overwrite"})
        with tfr.RecordReader(tmp_path / "b.tfrecord") as records:
            assert list(records) == expected
    named_after_its_source = tfrecords(tmp_path / "c").rename(tmp_path / "a.csv-00000-of-00001")
    assert tfr.convert(named_after_its_source, tmp_path / "c.array_record").records == len(PAYLOADS)


def test_a_folder_of_tfds_is_its_array_record_files(tmp_path: Path) -> None:
    """The files that describe them are not rows, and say their types."""
    folder = tmp_path / "mine" / "1.0.0"
    tfr.formats.write_tfds({"x": pa.array(range(5), pa.int16())}, tmp_path / "tfrecord" / "mine" / "1.0.0", shards=2)
    folder.mkdir(parents=True)
    for file in (tmp_path / "tfrecord" / "mine" / "1.0.0").glob("[!_]*"):
        if file.suffix == ".json":
            file.rename(folder / file.name)
        else:
            tfr.convert(file, folder / file.name.replace("tfrecord", "array_record"), target_format="array_record")
    for source in (folder, f"{folder}/", [folder]):
        tfr.convert(source, tmp_path / "a.parquet", mode="overwrite")
        assert pq.read_table(tmp_path / "a.parquet").equals(pa.table({"x": pa.array(range(5), pa.int16())}))
        assert tfr.convert(source, tmp_path / "a.tfrecord", mode="overwrite").records == 5
    write(folder / "mine-test.array_record-00000-of-00001", [b""])
    with pytest.raises(ValueError, match=r"2 families of shards; name one: .*mine-test\.array_record") as caught:
        tfr.convert(folder, tmp_path / "b.tfrecord")
    assert "split=" not in str(caught.value)
    (folder / "mine-test.array_record-00000-of-00001").unlink()
    (folder / "mine-train.array_record-00001-of-00002").unlink()
    with pytest.raises(FileNotFoundError, match="shard 1 of 2 is missing"):
        tfr.convert(folder, tmp_path / "b.tfrecord")
    options = {"allow_missing_shards": True}
    assert 0 < tfr.convert(folder, tmp_path / "b.tfrecord", source_options=options).records < 5


def test_groups_and_compressions(tmp_path: Path) -> None:
    source = tfrecords(tmp_path / "a.tfrecord")
    for group, compression in ((1, "zstd"), (16, "zstd:19"), (3, "brotli:2"), (5, "snappy"), (1, "uncompressed")):
        path = tmp_path / f"{compression}.array_record".replace(":", "")
        tfr.convert(source, path, target_options={"group_size": group, "record_compression": compression})
        reader = module.ArrayRecordReader(str(path))
        options = reader.writer_options_string()
        reader.close()
        assert f"group_size:{group}," in options
        assert compression.partition(":")[0] in options
        assert read(path) == PAYLOADS


def test_examples_become_tables(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(100), "name": [f"n{i}" for i in range(100)]}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.array_record")
    tfr.convert(tmp_path / "a.array_record", tmp_path / "a.parquet", columns=["x"], filters=[("x", ">=", 97)])
    assert pq.read_table(tmp_path / "a.parquet").to_pylist() == [{"x": 97}, {"x": 98}, {"x": 99}]
    tfr.convert(tmp_path / "a.array_record", tmp_path / "some.tfrecord", filters=[("x", "<", 2)])
    assert tfr.read_table(tmp_path / "some.tfrecord")["name"].to_pylist() == ["n0", "n1"]


@pytest.mark.parametrize(
    ("keywords", "error", "match"),
    [
        ({"columns": ["x"]}, TypeError, "copied as they are"),
        ({"filters": [("x", ">", 0)]}, TypeError, "copied as they are"),
        ({"record_type": "example"}, TypeError, "copied as they are"),
        ({"group_size": 0}, ValueError, "expected at least 1"),
        ({"record_compression": "lzma"}, ValueError, "expected one of 'zstd'"),
        ({"record_compression": "zstd:x"}, ValueError, "expected a level"),
        ({"record_compression": "zstd:99"}, ValueError, "'record_compression': …"),
        ({"compressed": True}, TypeError, "which ArrayRecord does not have"),
    ],
)
def test_keywords_that_do_not_apply(tmp_path: Path, keywords: Any, error: type[Exception], match: str) -> None:
    source = tfrecords(tmp_path / "a.tfrecord")
    with pytest.raises(error, match=match):
        convert_flat(source, tmp_path / "a.array_record", **keywords)
    assert list(tmp_path.iterdir()) == [source]


def test_existing_files(tmp_path: Path) -> None:
    source, target = tfrecords(tmp_path / "a.tfrecord"), tmp_path / "a.array_record"
    target.write_bytes(b"kept")
    with pytest.raises(FileExistsError):
        tfr.convert(source, target, mode="error")
    damaged = tmp_path / "damaged.tfrecord"
    damaged.write_bytes(source.read_bytes()[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.convert(damaged, target)
    assert target.read_bytes() == b"kept"
    tfr.convert(source, target)
    assert read(target) == PAYLOADS
    assert {path.name for path in tmp_path.iterdir()} == {"a.tfrecord", "a.array_record", "damaged.tfrecord"}


def test_damage_ends_the_read_behind_intact_records(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.array_record", [bytes([i % 256]) * 500 for i in range(2000)], "group_size:1,uncompressed"
    )
    content = bytearray(path.read_bytes())
    content[len(content) // 4] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(tfr.errors.CorruptRecordError, match="ArrayRecord file is damaged") as info:
        tfr.convert(path, tmp_path / "a.tfrecord")
    assert info.value.path == str(path)
    assert info.value.record
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        report = tfr.convert(path, tmp_path / "a.tfrecord", on_error="stop")
    assert report.records == info.value.record


def test_other_files_are_refused(tmp_path: Path) -> None:
    for content in (b"", b"nothing" * 10_000, tfrecords(tmp_path / "a.tfrecord").read_bytes() * 100):
        (tmp_path / "a.array_record").write_bytes(content)
        with pytest.raises(tfr.errors.CorruptRecordError):
            tfr.convert(tmp_path / "a.array_record", tmp_path / "b.tfrecord")
    assert not (tmp_path / "b.tfrecord").exists()


def test_mutants_are_refused_or_read(tmp_path: Path) -> None:
    rng = random.Random(2)
    seed = write(tmp_path / "a.array_record", PAYLOADS[:20], "group_size:3").read_bytes()
    path, target = tmp_path / "b.array_record", tmp_path / "b.tfrecord"
    for _ in range(rounds(4_000, 120)):
        content = bytearray(seed)
        for _ in range(rng.randrange(1, 4)):
            begin = rng.randrange(min(len(content), 2_000) if rng.random() < 0.7 else len(content))
            content[begin : begin + rng.randrange(3)] = rng.randbytes(rng.randrange(3))
        path.write_bytes(content)
        try:
            tfr.convert(path, target)
        except tfr.TFRecordError:
            continue


def test_grain_reads_what_is_written(tmp_path: Path) -> None:
    grain = pytest.importorskip("grain")
    tfr.convert(tfrecords(tmp_path / "a.tfrecord"), tmp_path / "a.array_record")
    source = grain.sources.ArrayRecordDataSource([str(tmp_path / "a.array_record")])
    assert [source[i] for i in range(len(source))] == PAYLOADS


@pytest.mark.fault(66)
def test_a_full_disk_is_an_error_of_the_target(tmp_path: Path) -> None:
    source = tfrecords(tmp_path / "a.tfrecord", [random.Random(0).randbytes(1000) for _ in range(200)])
    code = f"""
        import resource
        import tfrecord_io as tfr
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            tfr.convert({str(source)!r}, {str(tmp_path / "a.array_record")!r})
        except OSError as error:
            assert error.filename == {str(tmp_path / "a.array_record")!r} and "too large" in str(error), repr(error)
        else:
            raise SystemExit("no error")
    """
    subprocess.run([*interpreter(), "-c", textwrap.dedent(code)], check=True)
    assert os.listdir(tmp_path) == [source.name]
