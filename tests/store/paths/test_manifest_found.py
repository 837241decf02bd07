"""Files are validated against the manifests of their datasets."""

from __future__ import annotations

import base64
import json
import os
import pickle
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import framed
from tfrecord_io.store.filesystem.interface import Entry, LocalFileSystem
from tfrecord_io.store.paths.manifest import Manifest, parse_manifest
from tfrecord_io.store.paths.resolve import resolve_inputs

TABLE = pa.table({"n": range(12)})
SHARDS = [f"train-{i:05d}-of-00004" for i in range(4)]
READS = [tfr.read_table, tfr.read_tfrecord, tfr.count, tfr.read_metadata, lambda path: list(tfr.RecordReader(path))]


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    tfr.write_tfrecord(TABLE, tmp_path / "train@4")
    return tmp_path


def manifest(dataset: Path) -> Path:
    return dataset / "_MANIFEST-train.json"


def edit(dataset: Path, **changes: Any) -> None:
    text = json.loads(manifest(dataset).read_text())
    manifest(dataset).write_text(json.dumps({**text, **changes}))


def edit_files(dataset: Path, **changes: Any) -> None:
    """Change the entry of shard 2 and the sums in a manifest."""
    files = json.loads(manifest(dataset).read_text())["files"]
    files[2].update(changes)
    edit(dataset, files=files, records=sum(f["records"] for f in files), bytes=sum(f["bytes"] for f in files))


def forms(dataset: Path) -> list[Any]:
    return [dataset, dataset / "train@4", dataset / "train@*", dataset / "train-*"]


def test_counts_are_taken_from_the_manifest(dataset: Path) -> None:
    for path in forms(dataset):
        assert (tfr.count(path), tfr.read_metadata(path).records) == (12, 12)
    assert tfr.count(dataset / "train-0000[12]*") == 6
    (dataset / SHARDS[1]).write_bytes(bytes((dataset / SHARDS[1]).stat().st_size))
    assert tfr.count(dataset) == 12
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.read_table(dataset)
    manifest(dataset).unlink()
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.count(dataset)


@pytest.mark.fault(56)
@pytest.mark.parametrize("read", READS)
def test_missing_file_is_named_on_every_read(dataset: Path, read: Any) -> None:
    (dataset / SHARDS[2]).unlink()
    for path in forms(dataset):
        with pytest.raises(FileNotFoundError, match=r"_MANIFEST-train\.json") as caught:
            read(path)
        assert caught.value.filename == str(dataset / SHARDS[2])
    read(str(dataset / "train-0000[01]*"))
    read([dataset / SHARDS[0], dataset / SHARDS[3]])
    assert tfr.count(tfr.dataset(dataset, allow_missing_shards=True)) == 9


@pytest.mark.fault(56)
def test_missing_last_files_of_a_family_without_a_count_are_detected(tmp_path: Path) -> None:
    report = tfr.write_tfrecord(TABLE, tmp_path, max_shard_bytes=200)
    for file in report.files[::-1]:
        os.unlink(file.path)
        with pytest.raises(FileNotFoundError, match=r"_MANIFEST\.json"):
            tfr.read_table(tmp_path)
        assert (
            tfr.read_table(tfr.dataset(tmp_path, allow_missing_shards=True)).num_rows
            if file is not report.files[0]
            else True
        )


@pytest.mark.fault(56)
@pytest.mark.parametrize("read", READS)
def test_file_of_wrong_size_is_named_on_every_read(dataset: Path, read: Any) -> None:
    (dataset / SHARDS[2]).write_bytes(framed(b""))
    for path in forms(dataset):
        with pytest.raises(tfr.errors.CorruptRecordError, match="the file has 16 bytes, but") as caught:
            read(path)
        assert (caught.value.path, caught.value.got) == (str(dataset / SHARDS[2]), 16)
    read(dataset / "train-0000[013]*")


@pytest.mark.fault(56)
def test_file_with_changed_bytes_is_detected_by_verify(dataset: Path) -> None:
    assert tfr.verify(dataset).ok
    table = pa.table({"n": [100 + i for i in range(12)]})
    other = Path(tfr.write_tfrecord(table, dataset / "other/train@4").files[2].path)
    assert other.stat().st_size == (dataset / SHARDS[2]).stat().st_size
    other.rename(dataset / SHARDS[2])
    assert tfr.count(dataset) == 12
    (bad,) = [file for file in tfr.verify(dataset).files if file.error is not None]
    assert bad.path == str(dataset / SHARDS[2])
    assert "CRC32C" in str(bad.error)
    edit_files(dataset, bytes=5)
    assert [type(f.error) for f in tfr.verify(dataset / "train@4").files].count(tfr.errors.CorruptRecordError) == 1


@pytest.mark.fault(56)
@pytest.mark.parametrize("threads", [1, 3])
def test_file_with_wrong_record_count_is_detected_when_read(dataset: Path, threads: int) -> None:
    edit_files(dataset, records=4)
    with pytest.raises(
        tfr.errors.CorruptRecordError, match=r"the file has 3 records, but .* states 4 records"
    ) as caught:
        tfr.read_table(tfr.dataset(dataset, threads=threads))
    assert caught.value.path == str(dataset / SHARDS[2])
    with tfr.open_reader(tfr.dataset(dataset, threads=threads)) as reader, pytest.raises(tfr.errors.CorruptRecordError):
        list(reader)
    assert tfr.read_table(dataset, limit=12).num_rows == 12
    assert not tfr.verify(dataset).ok
    assert tfr.read_table(dataset / "train-0000[013]*").num_rows == 9


@pytest.mark.fault(56)
def test_a_shard_that_the_manifest_does_not_name_is_left_out_and_named(dataset: Path) -> None:
    (dataset / "train-00004-of-00005").write_bytes(framed(b""))
    for path in (dataset, dataset / "train-*", dataset / "train@*"):
        with pytest.warns(UserWarning, match="does not name them: '.*train-00004-of-00005'$") as caught:
            assert tfr.read_table(path) == TABLE
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            report = tfr.verify(path)
        (bad,) = [file for file in report.files if file.error is not None]
        assert (bad.path, [p.part for p in bad.problems]) == (str(dataset / "train-00004-of-00005"), ["manifest"])
        assert "does not name it" in report.problem_lines()[0]
    for path in ("train@5", "train-*-of-00005"):
        with pytest.raises(FileNotFoundError, match=r"does not name '.*train-00004-of-00005', which its own"):
            tfr.read_table(dataset / path)
    assert tfr.read_table(dataset / "train@4") == TABLE


@pytest.mark.fault(56)
def test_a_damaged_manifest_is_an_error_that_names_it(dataset: Path) -> None:
    whole = manifest(dataset).read_bytes()
    for text in (whole[:-5], b"", b"\0" * 10, b"[1, 2"):
        manifest(dataset).write_bytes(text)
        for path in forms(dataset):
            with pytest.raises(tfr.errors.CorruptRecordError, match="delete the manifest") as caught:
                tfr.read_table(path)
            assert caught.value.path == str(manifest(dataset))
    assert tfr.read_table([dataset / name for name in SHARDS]) == TABLE
    manifest(dataset).unlink()
    assert tfr.read_table(dataset) == TABLE


@pytest.mark.fault(55)
def test_manifest_naming_other_directories_is_refused_before_anything_is_opened(dataset: Path) -> None:
    for name in ("../train-00002-of-00004", "/etc/train-00000-of-00001", "memory://x/train-00002-of-00004"):
        edit_files(dataset, path=name)
        for path in forms(dataset):
            with pytest.raises(tfr.errors.CorruptRecordError, match="the manifest cannot be used"):
                tfr.read_table(path)


def test_an_incomplete_dataset_is_refused(dataset: Path) -> None:
    edit(dataset, complete=False)
    for path in forms(dataset):
        with pytest.raises(tfr.errors.CorruptRecordError, match="incomplete"):
            tfr.read_table(path)
    tfr.write_tfrecord(TABLE, dataset / "train@4", mode="overwrite")
    assert tfr.read_table(dataset) == TABLE


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_staged_shards_are_read(tmp_path: Path, scheme: str) -> None:
    """A writer was killed after publishing: some shards are renamed, and an old one still exists."""
    directory = tmp_path / "d"
    tfr.write_tfrecord(TABLE, directory / "train@4")
    files = json.loads(manifest(directory).read_text())["files"]
    for i, file in enumerate(files):
        file["staged"] = f"_0123456789abcdef-{i:05d}.staged"
    for i in (1, 3):
        (directory / SHARDS[i]).rename(directory / files[i]["staged"])
    (directory / "train-00000-of-00001").write_bytes(b"old")
    edit(directory, files=files, replaces=["train-00000-of-00001"])
    folder = f"{scheme}{tmp_path}"
    for path in ("d", "d/train@4", "d/train@*", "d/train-*", "*/train-*", "**/train-*"):
        assert tfr.read_table(f"{folder}/{path}") == TABLE, path
        assert tfr.count(f"{folder}/{path}") == 12
    assert tfr.read_table(f"{folder}/d/train-0000[13]*")["n"].to_pylist() == [3, 4, 5, 9, 10, 11]
    assert tfr.verify(f"{folder}/d").ok
    tfr.write_tfrecord(TABLE.slice(0, 3), f"{folder}/d/train@2", mode="overwrite")
    assert tfr.read_table(f"{folder}/d") == TABLE.slice(0, 3)


@pytest.mark.fault(56)
def test_dataset_replaced_while_it_is_read_is_an_error(dataset: Path) -> None:
    with tfr.open_reader(tfr.dataset(dataset, threads=1), batch_size=1) as reader:
        assert reader.read_next_batch()["n"].to_pylist() == [0]
        tfr.write_tfrecord(pa.table({"n": [100 + i for i in range(12)]}), dataset / "train@4", mode="overwrite")
        with pytest.raises(OSError, match="was replaced while it was read"):
            list(reader)
        assert reader.report.records == 3
    with tfr.RecordReader(dataset) as records:
        next(records)
        tfr.write_tfrecord(TABLE, dataset / "train@2", mode="overwrite")
        with pytest.raises(OSError, match="was replaced while it was read"):
            list(records)


@pytest.mark.parametrize("schema", [b"", b"TFRA\1\0" + bytes(50), None])
def test_unusable_schema_in_the_manifest_is_ignored(tmp_path: Path, schema: bytes | None) -> None:
    tfr.write_tfrecord(TABLE.slice(0, 0), tmp_path / "train@2")
    assert tfr.read_table(tmp_path).schema == TABLE.schema
    edit(tmp_path, schema=None if schema is None else base64.b64encode(schema).decode())
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert tfr.read_table(tmp_path).num_columns == 0
    assert [w.category for w in warned] == [tfr.errors.SchemaWarning] * (1 if schema is None else 2)
    assert "no records, so the columns are unknown" in str(warned[-1].message)


def test_sources_of_a_dataset_can_be_pickled(dataset: Path) -> None:
    sources = resolve_inputs(dataset)
    again = pickle.loads(pickle.dumps(sources))
    assert [s.shard.crc32c for s in again] == [s.shard.crc32c for s in sources]
    assert again[3].open().readinto(bytearray(1)) == 1


def test_damaged_manifest_does_not_affect_other_datasets(dataset: Path) -> None:
    tfr.write_tfrecord(TABLE, dataset / "test@2")
    manifest(dataset).write_bytes(b"{")
    assert tfr.read_table(dataset / "test@2") == tfr.read_table(dataset / "te*") == TABLE
    for path in (dataset / "train@4", dataset / "t*", dataset / "train-00003*"):
        with pytest.raises(tfr.errors.CorruptRecordError, match="not JSON"):
            tfr.read_table(path)


@pytest.mark.parametrize("read", [*READS, None], ids=lambda read: getattr(read, "__name__", "copy"))
@pytest.mark.parametrize("name", ["test@2", ""])
def test_a_dataset_that_is_removed_does_not_affect_others(
    dataset: Path, read: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    read = read or partial(tfr.copy, target=tmp_path_factory.mktemp("copy"))
    tfr.write_tfrecord(TABLE, dataset / "test@2")
    at = Manifest.at

    def remove_then_read(*args: Any, **keywords: Any) -> Manifest | None:
        for path in (manifest(dataset), *(dataset / shard for shard in SHARDS)):
            path.unlink(missing_ok=True)  # after it was listed
        return at(*args, **keywords)

    monkeypatch.setattr(Manifest, "at", staticmethod(remove_then_read))
    read(dataset / name)
    assert tfr.count(dataset) == 12


def test_a_dataset_that_begins_while_it_is_listed(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing takes several calls: its names may be those of before and after the manifest was put."""
    listing = LocalFileSystem.listing

    def begun_meanwhile(fs: LocalFileSystem, directory: str) -> list[Entry]:
        return [e for e in listing(fs, directory) if e.basename not in (manifest(dataset).name, SHARDS[0])]

    monkeypatch.setattr(LocalFileSystem, "listing", begun_meanwhile)
    for path in (dataset, dataset / "train@*"):
        assert tfr.read_table(path) == TABLE


def test_manifest_does_not_affect_other_datasets_and_files(dataset: Path) -> None:
    tfr.write_tfrecord(TABLE, dataset / "lone.tfrecord")
    (dataset / "train-extra-00000-of-00001").write_bytes(framed(b""))
    assert tfr.read_table(dataset / "lone.tfrecord") == TABLE
    assert tfr.count(dataset / "train-*") == 13
    assert parse_manifest(manifest(dataset).read_bytes(), "x/_MANIFEST-train.json") is not None
