"""What each place promises of the manifest: one that its parser refuses is not written, and nothing is moved before."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from reading import read_by
from servers import Bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.paths import manifest
from tfrecord_io.store.paths.file_names import FileName
from tfrecord_io.store.paths.manifest import Manifest, format_manifest, parse_manifest
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.commit_place import Place
from tfrecord_io.store.write.publication import place_of


@pytest.fixture(params=["disk", "s3", "gcs", "azure"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, Any]]:
    if request.param == "disk":
        return f"{tmp_path}/d/", {}
    bucket: Bucket = request.getfixturevalue(request.param)
    return bucket.url("d/"), {"storage_options": bucket.storage_options}


def place_at(folder: tuple[str, dict[str, Any]]) -> Place:
    path, keywords = folder
    fs, name = Location.of(path, StorageOptions(**keywords))
    return place_of(fs, f"{name.rstrip('/')}/", "part")


WAYS: dict[str, dict[str, Any]] = {
    "new": {},
    "overwrite": {"mode": "overwrite"},
    "append": {"mode": "append"},
    "folders": {"partition_by": "n"},
    "folders appended": {"partition_by": "n", "mode": "append"},
}


@pytest.mark.matrix
@pytest.mark.parametrize("way", WAYS)
def test_a_manifest_that_is_too_large_is_found_before_a_file_is_moved(
    folder: tuple[str, dict[str, Any]], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, storage = folder
    columns = {"partition_by": "n"} if "folders" in way else {}
    if way not in ("new", "folders"):
        tfr.write_tfrecord({"n": [1], "x": ["a"]}, path, **columns, **storage)
        before = (read_by(tfr.verify, path, **storage).ok, read_by(tfr.read_table, path, **storage))
    monkeypatch.setattr(manifest, "MOST_MANIFEST_BYTES", 1500)
    moved: list[str] = []
    kind = type(place_at(folder))
    monkeypatch.setattr(kind, "move", lambda self, staged, name, **keywords: moved.append(name))
    data = {"n": range(40), "x": ["b" * 50] * 40}
    shards = {} if columns else {"shards": 40}
    with pytest.raises(ValueError, match=r"no reader would accept the manifest .* bytes, over the limit of 1500"):
        tfr.write_tfrecord(data, path, **shards, **WAYS[way], **storage)
    assert moved == []
    monkeypatch.undo()
    if way not in ("new", "folders"):
        assert before == (True, read_by(tfr.read_table, path, **storage))
        assert clean(path, older_than=timedelta(0), **storage) == []


def test_a_manifest_that_is_read_back_as_another_is_not_written(folder: tuple[str, dict[str, Any]]) -> None:
    path, storage = folder
    tfr.write_tfrecord({"n": [1]}, path, **storage)
    place = place_at(folder)
    wrong = ManifestFile("other-00000-of-00001.tfrecord", 1, 1, 0)

    def change(manifest: Any) -> Any:
        return type(manifest)(manifest.dataset, manifest.id, (*manifest.files, wrong))

    with pytest.raises(ValueError, match=r"'other-00000-of-00001\.tfrecord', which is not a shard of 'part'"):
        place.update(change, lambda manifest: False)
    assert read_by(tfr.read_table, path, **storage)["n"].to_pylist() == [1]


def test_shards_are_numbered_on_beyond_six_digits(tmp_path: Path) -> None:
    """After a million appends."""
    path = tmp_path / "d"
    tfr.write_tfrecord({"n": [1]}, f"{path}/", mode="append")
    name = path / FileName.manifest("part")
    manifest = parse_manifest(name.read_bytes(), str(name))
    assert manifest is not None
    (file,) = manifest.files
    later = file.path.replace("00000", "999999")
    (path / file.path).rename(path / later)
    renamed = ManifestFile(later, file.records, file.bytes, file.crc32c)
    name.write_bytes(format_manifest(type(manifest)(manifest.dataset, manifest.id, (renamed,), schema=manifest.schema)))
    for n in (2, 3):
        tfr.write_tfrecord({"n": [n]}, path, mode="append")
    assert tfr.read_table(path)["n"].to_pylist() == [1, 2, 3]
    assert any(each.name.startswith("part-1000001-") for each in path.iterdir())
    tfr.compact(path)
    assert tfr.read_table(path)["n"].to_pylist() == [1, 2, 3]


def test_a_claim_keeps_no_writer_away_that_replaces_the_dataset(tmp_path: Path) -> None:
    folder = f"memory://{tmp_path.name}/", {}
    one, other = place_at(folder), place_at(folder)
    mine, its = Manifest("part", "0" * 16, ()), Manifest("part", "1" * 16, ())
    with one.alone():
        one.update(lambda manifest: mine, lambda manifest: True)
        other.update(lambda manifest: its, lambda manifest: True)  # it does not claim
        assert one.update(lambda manifest: manifest or mine, lambda manifest: True) == (its, its)
