"""What is done for each shard of a dataset does not grow with the number of its shards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from counted_calls import calls
from rounds import COMPLETE
from servers import Bucket
from tfrecord_io.store.paths.file_names import FileName, ShardName
from tfrecord_io.store.paths.manifest import Manifest, format_manifest, parse_manifest
from tfrecord_io.store.read.source import ManifestFile

FEW, MANY = (1000, 10_000) if COMPLETE else (400, 4000)


def grow(path: Path, files: int, folder: str = "", *, ids: bool = True) -> None:
    """Name so many shards in the manifest of a dataset."""
    name = path / FileName.manifest("part")
    manifest = parse_manifest(name.read_bytes(), str(name))
    assert manifest is not None
    names = [f"{ShardName.make('part', i, None, '0' * 16 if ids else '')}.tfrecord" for i in range(1, files)]
    added = [ManifestFile(folder.format(i) + name, 1, 60, 0) for i, name in enumerate(names)]
    grown = Manifest(
        manifest.dataset,
        manifest.id,
        (*manifest.files, *added),
        schema=manifest.schema,
        partition_by=manifest.partition_by,
        partition_schema=manifest.partition_schema,
    )
    name.write_bytes(format_manifest(grown))


WAYS: dict[str, tuple[dict[str, Any], str, dict[str, Any]]] = {
    "append": ({}, "", {"mode": "append"}),
    "append to folders": ({"partition_by": "p"}, "p={}/", {"mode": "append"}),
    "overwrite folders": ({"partition_by": "p"}, "p={}/", {"mode": "overwrite_partitions"}),
    "overwrite all folders": ({"partition_by": "p"}, "p={}/", {"mode": "overwrite"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_datasets_of_many_shards(tmp_path: Path, way: str) -> None:
    columns, folder, mode = WAYS[way]
    table = pa.table({"p": [1], "x": [1]})
    counts = []
    for files in (FEW, MANY):
        path = tmp_path / f"{files}"
        tfr.write_tfrecord(table, path, mode="append", **columns)
        grow(path, files, folder)
        counts.append(calls(lambda path=path: tfr.write_tfrecord(table, path, **columns, **mode)))
    assert counts[1] < 11 * counts[0], counts


@pytest.mark.parametrize("ids", [True, False], ids=["appended", "numbered"])
def test_overwriting_many_shards(tmp_path: Path, ids: bool) -> None:
    table = pa.table({"x": [1, 2, 3]})
    counts = []
    for files in (100, 1000):
        path = tmp_path / f"{files}"
        tfr.write_tfrecord(table, f"{path}/", mode="append")
        grow(path, files, ids=ids)
        for i in range(1, files):
            (path / f"{ShardName.make('part', i, None, '0' * 16 if ids else '')}.tfrecord").touch()
        counts.append(calls(lambda path=path: tfr.write_tfrecord(table, path, shards=3, mode="overwrite", threads=1)))
        assert len(list(path.iterdir())) == 4
    assert counts[1] < 11 * counts[0], counts


def test_compacting_many_shards(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/one/")
    (shard,) = (tmp_path / "one").glob("part-*")
    content = shard.read_bytes()
    counts = []
    for files in (50, 500):
        path = tmp_path / f"{files}"
        tfr.write_tfrecord({"x": [1]}, f"{path}/", mode="append")
        grow(path, files)
        name = path / FileName.manifest("part")
        text = name.read_text()
        manifest = parse_manifest(text.encode(), str(name))
        assert manifest is not None
        for file in manifest.files[1:]:
            (path / file.path).write_bytes(content)
        same = tuple(
            ManifestFile(f.path, 1, len(content), 0) if f is not manifest.files[0] else f for f in manifest.files
        )
        name.write_bytes(format_manifest(Manifest(manifest.dataset, manifest.id, same, schema=manifest.schema)))
        counts.append(calls(lambda path=path: tfr.compact(tfr.dataset(path, threads=1))))
        assert tfr.count(path) == files
    assert counts[1] < 11 * counts[0], counts


def test_an_overwrite_in_a_bucket_reads_its_manifest_a_few_times(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks whether its manifest is still there before each few copies: by its version."""
    for files in (20, 80):
        options = {"storage_options": s3.storage_options}
        tfr.write_tfrecord({"x": range(files)}, s3.url("d/train@2"), mode="overwrite", **options)
        read: list[str] = []
        real = type(s3.fs)._cat_file

        async def cat(self: Any, path: str, *a: Any, real: Any = real, read: Any = read, **k: Any) -> Any:
            read.append(path)
            return await real(self, path, *a, **k)

        with monkeypatch.context() as patch:
            patch.setattr(type(s3.fs), "_cat_file", cat)
            tfr.write_tfrecord({"x": range(files)}, s3.url(f"d/train@{files}"), mode="overwrite", **options)
        assert len([path for path in read if "_MANIFEST" in path]) <= 4
