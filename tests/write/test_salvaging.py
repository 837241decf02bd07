"""Writing the intact records of damaged files to new files."""

from __future__ import annotations

import gzip
import json
import os
import random
import warnings
import zlib
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, flip, framed, int64s, written
from servers import Bucket
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.columns.schema.embedded import FIELD
from tfrecord_io.errors import SchemaWarning
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths.file_names import ShardName
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.write.salvage_writer import missing_shards
from tfrecord_io.write.salvaging import salvage

PAYLOADS = [example(n=int64s(i)) for i in range(10)]
SIZE = len(framed(PAYLOADS[0]))


def payloads_in(path: Path | str, **options: object) -> list[bytes]:
    return list(read_by(tfr.RecordReader, path, **options))  # type: ignore[arg-type]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """Four shards with an embedded schema and a manifest."""
    tfr.write_tfrecord(
        {"n": pa.array(range(40), pa.int32()), "s": [f"name {i}" for i in range(40)]}, tmp_path / "d" / "train@4"
    )
    return tmp_path / "d"


def test_intact_records_are_kept_in_their_order(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", PAYLOADS), 2 * SIZE + 5, 3 * SIZE + 14, 7 * SIZE + 14)
    report = salvage(path, tmp_path / "b")
    kept = [PAYLOADS[i] for i in (0, 1, 4, 5, 6, 8, 9)]
    assert payloads_in(tmp_path / "b") == kept
    (file,) = report.files
    assert [(r.begin, r.end, r.records_before) for r in file.regions] == [
        (2 * SIZE, 4 * SIZE, 2),
        (7 * SIZE, 8 * SIZE, 7),
    ]
    assert (file.records, file.bytes, file.bytes_lost, file.region_count) == (7, 7 * SIZE, 3 * SIZE, 2)
    assert (report.ok, report.records, report.bytes_lost) == (False, 7, 3 * SIZE)
    assert report.regions == list(file.regions)
    assert "1 file: 7 records kept, " in str(report)


def test_an_intact_file_is_copied(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [1, 2]}, path)
    report = salvage(path, tmp_path / "b.tfrecord")
    assert report.ok
    assert report.files[0].schema == "kept"
    assert (tmp_path / "b.tfrecord").read_bytes() == path.read_bytes()


def test_payloads_of_any_content_are_copied(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"", b"\x0a\xff", b"text", b"\0" * 100])
    assert salvage(path, tmp_path / "b").ok
    assert (tmp_path / "b").read_bytes() == path.read_bytes()


@pytest.mark.fault(21)
def test_a_file_inside_a_damaged_payload_does_not_surface(engine: str, tmp_path: Path) -> None:
    inner = framed(*(b"inner %d" % i for i in range(100)))
    outer = [example(n=int64s(0)), example(f=blobs(inner), n=int64s(1)), example(n=int64s(2))]
    begin = len(framed(outer[0]))
    for at in (begin + 3, begin + 20, begin + len(framed(outer[1])) - 30):
        path = flip(written(tmp_path / "a", outer), at)
        salvage(path, tmp_path / "b")
        assert payloads_in(tmp_path / "b") == [outer[0], outer[2]]


@pytest.mark.fault(21)
@pytest.mark.fault(28)
@pytest.mark.parametrize("records", [20, 600])
def test_a_compressed_file_inside_a_payload_does_not_surface(tmp_path: Path, records: int) -> None:
    """The bytes of the inner file stand unchanged in the outer one, as they cannot be compressed further."""
    rng = random.Random(records)
    deflate = zlib.compressobj(wbits=31)
    inner = b"".join(
        deflate.compress(framed(rng.randbytes(300))) + deflate.flush(zlib.Z_FULL_FLUSH) for _ in range(records)
    )
    inner += deflate.flush() + gzip.compress(framed(rng.randbytes(300)))
    filler = [rng.randbytes(2000) for _ in range(5)]
    path = tmp_path / "a.tfrecord.gz"
    content = bytearray(gzip.compress(framed(*filler, inner, *filler), 0))
    assert inner[:1000] in content
    content[10:15] = b"\xff" * 5  # the header of the outer data: nothing of it can be read behind this
    path.write_bytes(content)
    report = salvage(path, tmp_path / "b")
    assert (report.records, report.files[0].compressed_bytes_lost) == (0, len(content) - 10)


def test_the_schema_of_a_lost_first_record_is_that_of_the_manifest(engine: str, dataset: Path, tmp_path: Path) -> None:
    flip(dataset / "train-00001-of-00004", 20)
    before = tfr.read_table(dataset / "train-00000-of-00004").schema
    report = salvage(dataset, tmp_path / "out/")
    assert [file.schema for file in report.files] == ["kept", "restored", "kept", "kept"]
    table = tfr.read_table(tmp_path / "out")
    assert table.schema == before
    assert table["n"].to_pylist() == [i for i in range(40) if i != 10]
    assert tfr.read_table(tmp_path / "out" / "train-00001-of-00004").schema == before
    assert tfr.verify(tmp_path / "out").ok


def test_the_schema_of_a_lost_first_record_is_that_of_another_shard(dataset: Path, tmp_path: Path) -> None:
    (dataset / "_MANIFEST-train.json").unlink()
    flip(dataset / "train-00000-of-00004", 20)
    flip(dataset / "train-00001-of-00004", 20)
    report = salvage(dataset, tmp_path / "out/")
    assert [file.schema for file in report.files] == ["restored", "restored", "kept", "kept"]
    assert str(tfr.read_table(tmp_path / "out").schema.field("n").type) == "int32"


@pytest.mark.parametrize("damaged", [(0,), (1,), (2,), (1, 2), (0, 2), (0, 1, 2)], ids=str)
def test_a_dataset_with_added_columns_is_read_after_its_first_records_were_lost(
    tmp_path: Path, damaged: tuple[int, ...]
) -> None:
    """Without a manifest, a schema is put only before records that it describes."""
    for columns in ("x", "xy", "xyz"):
        columns_of_round = {name: pa.array(range(10), pa.int32()) for name in columns}
        tfr.write_tfrecord(pa.table(columns_of_round), tmp_path / "d/", mode="append", evolve=True)
    (tmp_path / "d/_MANIFEST.json").unlink()
    files = sorted((tmp_path / "d").iterdir())
    for number in damaged:
        flip(files[number], 20)
    report = salvage(tmp_path / "d", tmp_path / "out/")
    assert report.records == 30 - len(damaged)
    for path in (tmp_path / "out", *sorted((tmp_path / "out").glob("part-*"))):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SchemaWarning)  # the types of some columns are inferred
            table = tfr.read_table(path)
        if path == tmp_path / "out":
            assert sorted(table.schema.names) == ["x", "y", "z"]
            assert (table.num_rows, len(table["z"].drop_null())) == (30 - len(damaged), 10 - (2 in damaged))
    assert tfr.verify(tmp_path / "out").ok


def test_no_schema_is_put_where_there_was_none(tmp_path: Path) -> None:
    """Neither in front of records that are not messages."""
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a-00000-of-00003")
    written(tmp_path / "a-00001-of-00003", PAYLOADS)
    flip(written(tmp_path / "a-00002-of-00003", [b"any", b"\xff" * 10]), 14)
    report = salvage(tmp_path / "a@3", tmp_path / "out/")
    assert [file.schema for file in report.files] == ["kept", None, None]
    assert payloads_in(tmp_path / "out" / "a-00001-of-00003") == PAYLOADS
    assert payloads_in(tmp_path / "out" / "a-00002-of-00003") == [b"\xff" * 10]
    assert FIELD == 21574


def test_a_file_without_intact_records_becomes_an_empty_one(tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", [b"x" * 50]), 20)
    report = salvage(path, tmp_path / "b")
    assert (report.records, (tmp_path / "b").read_bytes()) == (0, b"")


def test_shards_keep_their_names_and_get_a_manifest(dataset: Path, tmp_path: Path) -> None:
    (dataset / "train-00002-of-00004").unlink()
    flip(dataset / "train-00001-of-00004", -1)
    report = salvage(dataset, tmp_path / "out/")
    assert report.missing == (str(dataset / "train-00002-of-00004"),)
    assert "the file is missing" in str(report)
    assert sorted(os.listdir(tmp_path / "out")) == [
        "_MANIFEST-train.json",
        *(f"train-0000{i}-of-00004" for i in (0, 1, 3)),
    ]
    assert tfr.count(tmp_path / "out") == 29
    assert tfr.read_table(tmp_path / "out")["n"].to_pylist() == [*range(19), *range(30, 40)]
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        salvage(dataset, tmp_path / "out/")
    assert salvage(dataset, tmp_path / "out/", mode="overwrite").records == 29


@pytest.mark.parametrize("name", ["train-00000-of-00002.tfrecord.gz", "train.tfrecord-00000-of-00002", "part-r-00000"])
def test_names_of_all_forms_are_kept(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    for index in range(2):
        with tfr.RecordWriter(folder / name.replace("00000", f"0000{index}", 1)) as writer:
            writer.write(PAYLOADS[index])
    salvage(folder, tmp_path / "out/")
    assert {name.replace("00000", f"0000{i}", 1) for i in range(2)} < set(os.listdir(tmp_path / "out"))
    assert payloads_in(tmp_path / "out") == PAYLOADS[:2]


@pytest.mark.parametrize("names", [["a/x", "b/x"], ["a/x", "a/n/x"], ["a/n/x"]], ids=str)
@pytest.mark.parametrize("directory", [".", "d"])
def test_folders_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: list[str], directory: str) -> None:
    monkeypatch.chdir(tmp_path)
    for name in names:
        path = Path(directory, f"label={name}.tfrecord")
        path.parent.mkdir(parents=True, exist_ok=True)
        written(path, PAYLOADS)
    salvage(os.path.normpath(f"{directory}/**/*.tfrecord"), tmp_path / "out")
    table = tfr.read_table(tmp_path / "out" / "**" / "*.tfrecord")
    assert sorted(table["label"].to_pylist()) == [name[0] for name in names for _ in PAYLOADS]


def test_the_only_file_of_a_dataset_with_folders_stays_in_its_folder(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1], "day": [2]}, f"{tmp_path}/src/", partition_by="day")
    salvage(tmp_path / "src", tmp_path / "dst")
    assert tfr.read_table(tmp_path / "dst").to_pylist() == [{"x": 1, "day": 2}]


@pytest.mark.fault(56)
def test_a_manifest_that_cannot_be_used_is_reported(dataset: Path, tmp_path: Path) -> None:
    manifest = dataset / "_MANIFEST-train.json"
    manifest.write_text(manifest.read_text()[:-30])
    report = salvage(dataset, tmp_path / "out/")
    assert not report.ok
    assert "it is not JSON" in report.manifests[0]
    assert tfr.read_table(tmp_path / "out").num_rows == 40


def test_nothing_is_written_over_its_source(dataset: Path, tmp_path: Path) -> None:
    path = dataset / "train-00000-of-00004"
    before = path.read_bytes()
    os.symlink(path, tmp_path / "link")
    os.link(path, tmp_path / "hard")
    for src, dst in ((path, path), (dataset, f"{dataset}/"), (path, tmp_path / "link"), (path, tmp_path / "hard")):
        with pytest.raises(ValueError, match="is a file that is read"):
            salvage(src, dst, mode="overwrite")
    assert path.read_bytes() == before


def test_a_dry_run_writes_nothing(dataset: Path, tmp_path: Path) -> None:
    flip(dataset / "train-00001-of-00004", 20)
    before = sorted(path.name for path in tmp_path.rglob("*"))
    planned = salvage(dataset, tmp_path / "out/", dry_run=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before
    assert planned.dry_run
    assert "would be kept" in str(planned)
    assert planned.files == salvage(dataset, tmp_path / "out/").files


def test_the_report_is_written_as_json(tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", PAYLOADS), SIZE + 14)
    report = salvage(path, tmp_path / "b", report=tmp_path / "report.json")
    document = json.loads((tmp_path / "report.json").read_text())
    assert document == json.loads(json.dumps(report.to_dict()))
    (region,) = document["files"][0]["regions"]
    assert (region["file"], region["begin"], region["end"], region["records_before"]) == (str(path), SIZE, 2 * SIZE, 1)
    assert "CRC mismatch" in region["reason"]


@pytest.mark.parametrize("name", ["a", "link", "b"])
def test_the_report_replaces_no_file_that_is_read_or_written(tmp_path: Path, name: str) -> None:
    path = flip(written(tmp_path / "a", PAYLOADS), SIZE + 14)
    before = path.read_bytes()
    (tmp_path / "link").hardlink_to(path)
    for dry_run in (True, False):
        with pytest.raises(ValueError, match="choose another file for the report"):
            salvage(path, tmp_path / "b", report=tmp_path / name, dry_run=dry_run)
    assert path.read_bytes() == before
    assert not (tmp_path / "b").exists()


def test_existing_files(tmp_path: Path) -> None:
    path = written(tmp_path / "a", PAYLOADS)
    target = written(tmp_path / "b", [b"old"])
    with pytest.raises(FileExistsError):
        salvage(path, target, mode="error")
    assert payloads_in(target) == [b"old"]
    salvage(path, target)
    assert payloads_in(target) == PAYLOADS


@pytest.mark.fault(14)
def test_a_file_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    with pytest.raises(tfr.errors.CorruptRecordError, match="looks like"):
        salvage(path, tmp_path / "b")
    assert os.listdir(tmp_path) == ["a"]


def test_a_damaged_start_does_not_hide_the_records(tmp_path: Path) -> None:
    """Also where the first bytes now look like another format."""
    path = written(tmp_path / "a", PAYLOADS)
    path.write_bytes(b"<html><body>" + path.read_bytes()[12:])
    salvage(path, tmp_path / "b")
    assert payloads_in(tmp_path / "b") == PAYLOADS[1:]


def test_targets_that_make_no_sense(tmp_path: Path) -> None:
    path = written(tmp_path / "a", PAYLOADS)
    for dst, text in (("b.parquet", "suffix of another format"), ("b@3", "shards keep their names")):
        with pytest.raises(ValueError, match=text):
            salvage(path, tmp_path / dst)
    with pytest.raises(ValueError, match="name each file once"):
        salvage([path, path], tmp_path / "out/")
    with pytest.raises(FileNotFoundError):
        salvage(tmp_path / "none", tmp_path / "b")


@pytest.mark.parametrize("suffix", ["", *CODECS.suffixes()])
def test_compression_is_that_of_the_target(tmp_path: Path, suffix: str) -> None:
    with tfr.RecordWriter(tmp_path / "a.tfrecord.gz") as writer:
        for payload in PAYLOADS:
            writer.write(payload)
    target = tmp_path / f"b.tfrecord{suffix}"
    report = salvage(tmp_path / "a.tfrecord.gz", target)
    assert report.files[0].compression == "gzip"
    codec = CODECS.of_path(target.name)
    assert tfr.verify(target).files[0].compression == (codec.name if codec is not None else None)
    assert payloads_in(target) == PAYLOADS


def test_buckets(s3: Bucket) -> None:
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"n": list(range(40))}, s3.url("d/train@2"), **options)
    name = f"{s3.name}/d/train-00000-of-00002"
    content = bytearray(s3.fs.cat(name))
    content[20] ^= 1
    s3.fs.pipe(name, bytes(content))
    report = salvage(s3.url("d"), s3.url("out/"), report=s3.url("report.json"), **options)
    assert [(file.records, file.schema) for file in report.files] == [(19, "restored"), (20, "kept")]
    assert read_by(tfr.verify, s3.url("out"), **options).ok
    assert read_by(tfr.read_table, s3.url("out"), **options)["n"].to_pylist() == list(range(1, 40))
    assert json.loads(s3.fs.cat(f"{s3.name}/report.json"))["records"] == 39
    with pytest.raises(ValueError, match="is a file that is read"):
        salvage(s3.url("d"), s3.url("d/"), **options)
    with pytest.raises(FileExistsError):
        salvage(s3.url("d"), s3.url("out/"), **options)


def test_a_dataset_in_a_bucket_is_replaced(s3: Bucket) -> None:
    options = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"n": list(range(40))}, s3.url("d/train@2"), **options)
    tfr.write_tfrecord({"n": [1, 2]}, s3.url("out/train@2"), **options)
    salvage(s3.url("d"), s3.url("out/"), mode="overwrite", **options)
    assert read_by(tfr.verify, s3.url("out"), **options).ok
    assert read_by(tfr.read_table, s3.url("out"), **options)["n"].to_pylist() == list(range(40))


def test_an_unknown_way_to_overwrite_is_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1]}, tmp_path / "a")
    with pytest.raises(ValueError, match="expected one of"):
        salvage(tmp_path / "a", tmp_path / "b", mode="inplace")  # type: ignore[arg-type]


def test_from_a_bucket_to_the_local_disk(s3: Bucket, tmp_path: Path) -> None:
    data = gzip.compress(framed(*PAYLOADS))
    s3.fs.pipe(f"{s3.name}/a.tfrecord.gz", data[:-4] + b"\xff" * 4)
    report = salvage(s3.url("a.tfrecord.gz"), tmp_path / "b", storage_options=s3.storage_options)
    assert payloads_in(tmp_path / "b") == PAYLOADS
    assert not report.ok
    assert report.files[0].compressed_bytes_lost == 8


@pytest.mark.parametrize("mode", [None, "overwrite"])
def test_a_file_is_not_put_beside_the_shards_of_a_manifest(tmp_path: Path, mode: Any) -> None:
    tfr.write_tfrecord({"a": [1, 2]}, f"{tmp_path}/dst/", shards=2)
    tfr.write_tfrecord({"b": [1]}, tmp_path / "src.tfrecord")
    with pytest.raises(FileExistsError, match=r"a dataset, whose manifest would not name '.*src\.tfrecord'"):
        tfr.salvage(tmp_path / "src.tfrecord", tmp_path / "dst", mode=mode)
    assert tfr.read_table(tmp_path / "dst").column_names == ["a"]
    (tmp_path / "src.tfrecord").rename(tmp_path / "dst" / "b.tfrecord")
    with pytest.warns(UserWarning, match=r"does not name them: '.*b\.tfrecord'"):
        assert tfr.compact(tmp_path / "dst").records == 2


def test_a_dataset_with_folders_is_one_dataset_again(tmp_path: Path) -> None:
    days = pa.array([date(2026, 1, 1 + at % 3) for at in range(6)], pa.date32())
    table = pa.table({"x": range(6), "day": days})
    for _ in range(2):
        tfr.write_tfrecord(table, f"{tmp_path}/src/", partition_by="day", mode="append", compression="gzip")
    report = tfr.salvage(f"{tmp_path}/src/", f"{tmp_path}/dst/")
    assert (report.ok, report.missing, report.manifests, len(report.files)) == (True, (), (), 6)
    assert all(os.path.exists(file.target) for file in report.files)
    src, dst = (tfr.read_table(f"{tmp_path}/{name}/") for name in ("src", "dst"))
    assert dst.equals(src)
    assert dst.schema.field("day").type == pa.date32()
    assert tfr.verify(f"{tmp_path}/dst/").ok
    with pytest.raises(FileExistsError, match="a sharded dataset of this name exists"):
        tfr.salvage(f"{tmp_path}/src/", f"{tmp_path}/dst/")
    tfr.write_tfrecord(table, f"{tmp_path}/dst/", partition_by="day", mode="append")
    assert tfr.count(f"{tmp_path}/dst/") == 18
    assert tfr.salvage(f"{tmp_path}/src/", f"{tmp_path}/dst/", mode="overwrite").ok
    assert tfr.count(f"{tmp_path}/dst/") == 12


def test_files_that_were_adopted_stay_in_the_dataset(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    tfr.write_tfrecord({"x": [1]}, tmp_path / "src" / "of-spark.tfrecord")
    tfr.adopt(tmp_path / "src")
    tfr.write_tfrecord({"x": [2]}, tmp_path / "src", mode="append")
    for mode in (None, "overwrite"):
        salvage(tmp_path / "src", tmp_path / "dst", mode=mode)
        assert tfr.read_table(tmp_path / "dst")["x"].to_pylist() == [1, 2]
        assert tfr.verify(tmp_path / "dst").ok


@pytest.mark.parametrize("folders", [("", ""), ("day=1", "day=2")])
def test_shards_beside_other_files_get_no_manifest(tmp_path: Path, folders: tuple[str, str]) -> None:
    for folder, name in zip(folders, ("other", "part-00000-of-00001"), strict=True):
        (tmp_path / "src" / folder).mkdir(parents=True, exist_ok=True)
        written(tmp_path / "src" / folder / f"{name}.tfrecord", PAYLOADS)
    salvage(tmp_path / "src", tmp_path / "dst")
    assert tfr.count(tmp_path / "dst") == 2 * len(PAYLOADS)


@pytest.mark.parametrize("has_manifest", [True, False])
def test_the_manifest_has_the_columns_of_all_shards(tmp_path: Path, has_manifest: bool) -> None:
    for rows in ({"x": [1]}, {"x": [2], "y": [3]}):
        tfr.write_tfrecord(rows, tmp_path / "src" / "train@*", mode="append", evolve=True)
    if not has_manifest:
        (tmp_path / "src" / "_MANIFEST-train.json").unlink()
    salvage(tmp_path / "src" / "train-*", tmp_path / "dst")
    assert tfr.dataset(tmp_path / "dst", columns=["y"]).to_table()["y"].to_pylist() == [None, 3]


def test_the_shards_that_names_state_are_looked_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, sibling = [f"t-{i:05d}-of-100" for i in range(90)], ShardName.sibling
    for name in names:
        (tmp_path / name).write_bytes(framed(PAYLOADS[0]))
    calls: list[int] = []
    monkeypatch.setattr(ShardName, "sibling", lambda self, index: calls.append(index) or sibling(self, index))
    sources = resolve_inputs(tmp_path, allow_missing_shards=True)
    assert missing_shards(sources, tmp_path) == [str(tmp_path / f"t-{i:05d}-of-100") for i in range(90, 100)]
    assert len(calls) == 10


def test_shards_of_several_compressions_are_one_dataset(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("t-00000-of-00004.tfrecord", "t-00001-of-00004.tfrecord.gz", "t-00003-of-00004.tfrecord"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "src" / name)
    report = salvage(tmp_path / "src", tmp_path / "dst/")
    assert (report.ok, report.records) == (False, 3)
    assert report.missing == (str(tmp_path / "src/t-00002-of-00004.tfrecord"),)


@pytest.mark.parametrize("name", ["b.tfrecord", "t-00001-of-00002.tfrecord"])
def test_a_link_that_leads_nowhere_is_a_missing_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "src").mkdir()
    for other in ("a.tfrecord", "c.tfrecord", "t-00000-of-00002.tfrecord"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / "src" / other)
    (tmp_path / "src" / name).symlink_to("nowhere")
    missing = [str(tmp_path / "src" / each) for each in {name, "t-00001-of-00002.tfrecord"}]
    report = salvage(tmp_path / "src", tmp_path / "dst/")
    assert (report.ok, report.records, sorted(report.missing)) == (False, 3, sorted(missing))
    assert "the file is missing" in str(report)
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/b.tfrecord").symlink_to("nowhere")
    with pytest.raises(FileNotFoundError, match=r"b\.tfrecord"):
        salvage(tmp_path / "alone", tmp_path / "none/")
    assert not (tmp_path / "none").exists()


def test_a_name_that_states_more_shards_than_any_dataset_has(tmp_path: Path) -> None:
    path = tmp_path / f"t-00000-of-{10**17}"
    path.write_bytes(framed(PAYLOADS[0]))
    with pytest.raises(ValueError, match=f"states {10**17} shards, expected at most 1,000,000; name the files one by"):
        salvage(tmp_path, tmp_path / "out/")
    assert salvage([path], tmp_path / "out/").records == 1


def test_damage_and_missing_shards_in_folders_are_reported(tmp_path: Path) -> None:
    table = pa.table({"x": range(6), "day": [1, 2, 3] * 2})
    files = tfr.write_tfrecord(table, f"{tmp_path}/src/", partition_by="day").files
    os.unlink(files[0].path)
    Path(files[1].path).write_bytes(Path(files[1].path).read_bytes()[:-1])
    report = tfr.salvage(f"{tmp_path}/src/", f"{tmp_path}/dst/")
    assert (report.ok, report.missing, len(report.regions)) == (False, (files[0].path,), 1)
    assert tfr.read_table(f"{tmp_path}/dst/").num_rows == 3
    one = tfr.salvage(f"{tmp_path}/src/day=3", f"{tmp_path}/one/")
    assert (one.ok, one.missing, one.records) == (True, (), 2)


def test_targets_of_many_files_are_compared_by_a_few_look_ups_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = 0

    class Places(set[Any]):
        """A set that counts how many items are looked up, or copied."""

        def __and__(self, others: Any) -> set[Any]:
            nonlocal looked_up
            looked_up += min(len(self), len(others))
            return set.__and__(self, others)

        def __or__(self, others: Any) -> set[Any]:
            nonlocal looked_up
            looked_up += len(self) + len(others)
            return set.__or__(self, others)

    real = Location.identities
    monkeypatch.setattr(Location, "identities", lambda location: Places(real(location)))
    for i in range(200):
        (tmp_path / f"{i}.tfrecord").write_bytes(framed(PAYLOADS[0]))
    assert salvage(f"{tmp_path}/*.tfrecord", f"{tmp_path}/out/", report=tmp_path / "report.json").records == 200
    assert 0 < looked_up <= 4 * 200
