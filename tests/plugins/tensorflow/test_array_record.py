"""ArrayRecord files: the package array_record, which Grain reads them by, decides what is right."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from forked import interpreter
from pictures import jpeg
from rounds import rounds
from servers import Bucket
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
    assert "split= reads one" in str(caught.value)
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


def test_records_go_from_one_file_to_another(tmp_path: Path, s3: Bucket) -> None:
    source = write(tmp_path / "a.array_record", PAYLOADS)
    target = tmp_path / "b.array_record"
    for options in ({}, {"storage_options": s3.storage_options}):
        assert tfr.convert(source, target, **options).records == len(PAYLOADS)
        assert read(target) == PAYLOADS
    tfr.convert([source, source], target, target_options={"group_size": 16, "record_compression": "brotli"})
    assert read(target) == PAYLOADS * 2
    s3.fs.pipe_file(s3.url("a.array_record").removeprefix("s3://"), source.read_bytes())
    tfr.convert(s3.url("a.array_record"), target, storage_options=s3.storage_options)
    assert read(target) == PAYLOADS


@pytest.mark.parametrize("options", [{"target_format": "voc"}, {"target_format": "yolo"}, {"files": "images"}], ids=str)
def test_images_become_files(tmp_path: Path, options: dict[str, Any]) -> None:
    """Their records are read twice: first to find the columns."""
    image = jpeg(40, 20)
    row: dict[str, Any] = {"image/encoded": [image], "image/filename": ["a.jpg"]}
    if "files" not in options:
        row |= {"image/height": [20], "image/width": [40], "image/object/class/text": [["x"]]}
        row |= {f"image/object/bbox/{side}": [[at]] for side, at in zip(("xmin", "ymin"), (0.0, 0.0), strict=True)}
        row |= {f"image/object/bbox/{side}": [[at]] for side, at in zip(("xmax", "ymax"), (0.5, 0.5), strict=True)}
    tfr.write_tfrecord(row, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.array_record")
    assert tfr.convert(tmp_path / "a.array_record", tmp_path / "out", **options).records == 1
    assert next((tmp_path / "out").rglob("a.jpg")).read_bytes() == image


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
        ({"record_compression": "zstd:99"}, ValueError, "record_compression="),
        ({"compressed": True}, TypeError, "which ArrayRecord does not have"),
    ],
)
def test_keywords_that_do_not_apply(tmp_path: Path, keywords: Any, error: type[Exception], match: str) -> None:
    source = tfrecords(tmp_path / "a.tfrecord")
    with pytest.raises(error, match=match):
        convert_flat(source, tmp_path / "a.array_record", **keywords)
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("on_error", ["collect", "skip"])
def test_records_of_a_dataset_that_leaves_out_damage(tmp_path: Path, on_error: Any) -> None:
    source, target = tfrecords(tmp_path / "a.tfrecord", PAYLOADS[3:]), tmp_path / "a.array_record"
    tfr.convert(tfr.dataset(source, record_type="bytes", on_error=on_error), target)
    assert read(target) == PAYLOADS[3:]


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


@pytest.mark.parametrize("intact", [0, 1500])
def test_calls_that_go_on_after_damage(tmp_path: Path, intact: int) -> None:
    """They have the records before it, and never fail in another way than a plain read."""
    path = tmp_path / "a.array_record"
    if intact:
        tfr.write_tfrecord({"n": range(5000)}, tmp_path / "a.tfrecord")
        tfr.convert(tmp_path / "a.tfrecord", path)
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0xFF
        path.write_bytes(content)
    else:
        path.write_bytes(b"hello")
    for call in (tfr.read_table, tfr.describe, tfr.infer_schema):
        with pytest.raises(tfr.errors.CorruptRecordError, match="ArrayRecord file is damaged") as info:
            call(path)
        assert (info.value.path, (info.value.record or 0) >= intact) == (str(path), True)
    checked = tfr.verify(path)
    assert (checked.ok, checked.files[0].intact) == (False, info.value.record)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        table = tfr.read_table(path, on_error="skip")
    assert table.to_pydict() == ({"n": [*range(checked.files[0].intact)]} if intact else {})
    with pytest.warns(tfr.errors.DamagedDataWarning), tfr.RecordReader(path, on_error="skip") as records:
        assert sum(1 for _ in records) == checked.files[0].intact


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


ROWS = {"x": pa.array(range(10), pa.int16()), "image": [np.full((2, 2), n, np.uint8) for n in range(10)]}
SPLITS = ["train", "test", "train[2:7]", "train[-3:]", "train[:50%]+test", "train[1shard]", "all"]


def tfds_folders(root: Path, form: str) -> tuple[Path, Path]:
    """A dataset as TFDS writes it in TFRecord files, and the same in those of another format."""
    first, other = root / "tfrecord" / "mine" / "1.0.0", root / form / "mine" / "1.0.0"
    for split in ("train", "test"):
        tfr.formats.write_tfds(ROWS, first, split=split, shards=3)
    other.mkdir(parents=True)
    (other / "features.json").write_bytes((first / "features.json").read_bytes())
    info = json.loads((first / "dataset_info.json").read_text())
    info["fileFormat"] = form
    for split in info["splits"]:
        split["filepathTemplate"] = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"
    (other / "dataset_info.json").write_text(json.dumps(info))
    for file in first.glob("*.tfrecord-*"):
        target = other / file.name.replace("tfrecord", form)
        if form == "array_record":
            tfr.convert(file, target, target_format=form)
        else:
            target.write_bytes(b"data of another format")
    return first, other


@pytest.mark.parametrize("split", SPLITS)
def test_a_dataset_of_tfds_is_read_by_the_calls_for_tfrecord(tmp_path: Path, split: str) -> None:
    first, other = tfds_folders(tmp_path, "array_record")
    expected = tfr.dataset(first.parent, split=split)
    table = tfr.read_table(expected)
    for path in (other, other.parent):
        found = tfr.dataset(path, split=split)
        assert tfr.read_table(found).equals(table)
        assert tfr.read_table(pickle.loads(pickle.dumps(found))).equals(table)
        assert tfr.read_table(found).schema.equals(table.schema)
        assert tfr.count(found) == found.count_rows() == table.num_rows
        assert tfr.read_table(found, filters=[("x", ">", 3)]).equals(tfr.read_table(expected, filters=[("x", ">", 3)]))
        arrays, expected_arrays = tfr.read_arrays(found), tfr.read_arrays(expected)
        assert np.array_equal(arrays["image"], expected_arrays["image"])
        for keywords in ({}, {"shuffle_buffer": 4, "seed": 1}, {"epochs": 2}):
            batches = [tfr.iter_arrays(each, batch_size=3, **keywords) for each in (found, expected)]
            assert len({str([batch["x"].tolist() for batch in every]) for every in batches}) == 1
        for target in ("a.parquet", "a.tfrecord"):
            tfr.convert(path, tmp_path / target, mode="overwrite", source_options={"split": split})
        assert pq.read_table(tmp_path / "a.parquet")["x"].equals(table["x"])
        assert tfr.read_table(tmp_path / "a.tfrecord").equals(table)


def test_files_of_a_dataset_are_read_with_its_types(tmp_path: Path) -> None:
    first, other = tfds_folders(tmp_path, "array_record")
    expected = tfr.read_table(tfr.dataset(first, split="test"))
    assert tfr.read_table(f"{other}/mine-test*").equals(expected)
    assert tfr.read_table(sorted(other.glob("mine-test*"))).equals(expected)
    for file in other.glob("mine-train*"):
        file.unlink()
    assert tfr.read_table(other).equals(expected)
    assert [batch["x"].dtype for batch in tfr.iter_arrays(other, batch_size=10)] == [np.int16]
    assert tfr.verify(other)
    with pytest.raises(ValueError, match="are of another format, and are read from the first to the last"):
        tfr.open_random(other)
    write(other / "mine-test.array_record-00000-of-00003", [b""])
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"has 1 records, dataset_info\.json lists"):
        tfr.read_table(tfr.dataset(other, split="test"))
    (other / "mine-test.array_record-00001-of-00003").unlink()
    with pytest.raises(FileNotFoundError, match="shard 1 of 3 is missing"):
        tfr.read_table(other)
    with pytest.raises(FileNotFoundError, match="of the split 'test' is missing"):
        tfr.read_table(tfr.dataset(other, split="test"))


def test_iteration_goes_on_from_a_state(tmp_path: Path) -> None:
    _, other = tfds_folders(tmp_path, "array_record")
    train = tfr.dataset(other, split="train")
    keywords: dict[str, Any] = {"batch_size": 2, "shuffle_buffer": 3, "seed": 5}
    whole = [batch["x"].tolist() for batch in tfr.iter_arrays(train, **keywords)]
    begun = tfr.iter_arrays(train, **keywords)
    first = [next(begun)["x"].tolist() for _ in range(2)]
    rest = [batch["x"].tolist() for batch in tfr.iter_arrays(train, **keywords, state=begun.state())]
    assert [*first, *rest] == whole


def test_a_dataset_of_tfds_in_a_bucket(s3: Bucket, tmp_path: Path) -> None:
    first, other = tfds_folders(tmp_path, "array_record")
    for file in other.iterdir():
        s3.fs.pipe_file(s3.url(f"mine/1.0.0/{file.name}").removeprefix("s3://"), file.read_bytes())
    for split in ("train[2:7]", "test"):
        found = tfr.dataset(s3.url("mine"), split=split, storage_options=s3.storage_options)
        assert tfr.read_table(found).equals(tfr.read_table(tfr.dataset(first, split=split)))


@pytest.mark.parametrize("form", ["riegeli", "parquet", "bagz"])
def test_other_formats_of_tfds_are_named(tmp_path: Path, form: str) -> None:
    _, other = tfds_folders(tmp_path, form)
    out = tmp_path / "out.tfrecord"
    calls: list[Callable[[], object]] = [
        lambda: tfr.read_table(other),
        lambda: tfr.read_table(tfr.dataset(other, split="train")),
        lambda: tfr.read_table(tfr.dataset(other.parent, split="train")),
        lambda: next(iter(tfr.iter_arrays(other, batch_size=1))),
        lambda: tfr.convert(other, out),
        lambda: tfr.convert(f"{other}/", out),
        lambda: tfr.convert(other, out, source_options={"split": "train"}),
    ]
    for call in calls:
        with pytest.raises(tfr.errors.SchemaError, match=f"of the format '{form}', not TFRecord or ArrayRecord"):
            call()
    assert not out.exists()


@pytest.mark.parametrize("keywords", [{}, {"source_format": "jsonl"}], ids=str)
@pytest.mark.parametrize("pattern", ["", "/*", "/*.json"])
def test_descriptions_of_tfds_are_no_data(tmp_path: Path, keywords: dict[str, Any], pattern: str) -> None:
    _, other = tfds_folders(tmp_path, "array_record")
    for file in other.glob("mine-*"):
        file.unlink()
    for _ in range(2):  # with one description, and with both
        with pytest.raises((FileNotFoundError, tfr.errors.TFRecordError)):
            tfr.convert(f"{other}{pattern}", tmp_path / "out.tfrecord", **keywords)
        (other / "dataset_info.json").unlink(missing_ok=True)
    (other / "a.jsonl").write_text('{"x": 1}\n')
    if pattern != "/*.json":
        tfr.convert(f"{other}{pattern}", tmp_path / "out.tfrecord", source_format="jsonl")
        assert tfr.read_table(tmp_path / "out.tfrecord").to_pylist() == [{"x": 1}]


def test_features_of_another_program_are_data(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "features.json").write_text('{"type": "Point"}\n')
    assert tfr.convert(tmp_path / "in", tmp_path / "out.tfrecord").records == 1
