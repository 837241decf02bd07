"""A replacement of shards has all that it needs from its beginning."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.format.framing import crc32c
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.paths.manifest import Manifest
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.write.replacement import ReplaceableDataset


@pytest.fixture
def dataset(tmp_path: Path) -> ReplaceableDataset:
    for day in range(4):
        tfr.write_tfrecord({"x": [day, day]}, f"{tmp_path}/", mode="append")
    return ReplaceableDataset(
        ReplaceableDataset.manifest_of(resolve_inputs(tmp_path), tmp_path, "joined", ""), tmp_path, "joined"
    )


def test_new_shards_are_written_and_published(dataset: ReplaceableDataset, tmp_path: Path) -> None:
    files = dataset.manifest.files
    data = b"".join((tmp_path / file.path).read_bytes() for file in files[:2])
    replacement = dataset.replacement([files[:2]], dropped=files[3:])
    output = replacement.open(0)
    output.write(data)
    shard = replacement.written_shard(0, records=4, size=len(data), crc32c=crc32c(data), output=output)
    replacement.publication.store(shard)
    replacement.publication.publish([shard], Manifest())
    assert tfr.read_table(tmp_path)["x"].to_pylist() == [0, 0, 1, 1, 2, 2]
    assert (tmp_path / replacement.paths[0]).read_bytes() == data


def test_each_new_shard_has_a_path_of_its_own(dataset: ReplaceableDataset) -> None:
    first, *_ = dataset.manifest.files
    replacement = dataset.replacement([[first], [first]], [[1], [0]])
    assert len({*replacement.paths, *(file.path for file in dataset.manifest.files)}) == 2 + 4
    assert sorted(replacement.paths) == [*replacement.paths]


def test_a_shard_without_all_of_its_records_is_refused(dataset: ReplaceableDataset) -> None:
    replacement = dataset.replacement([dataset.manifest.files[:2]])
    output = replacement.open(0)
    with pytest.raises(CorruptRecordError, match=r"2 shards .* have 3 records"):
        replacement.written_shard(0, records=3, size=0, crc32c=0, output=output)
    output.discard()


def test_a_dataset_that_was_replaced_is_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "t@2")
    version = ReplaceableDataset.manifest_of(resolve_inputs(tmp_path / "t@2"), tmp_path, "joined", "")
    tfr.write_tfrecord({"x": [2]}, tmp_path / "t@2", mode="overwrite")
    with pytest.raises(OSError, match="replaced this dataset meanwhile; nothing of it is joined"):
        ReplaceableDataset(version, tmp_path, "joined")
