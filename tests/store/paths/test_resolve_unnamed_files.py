"""A directory with a manifest is what the manifest names; tools write nothing else into it."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from servers import Bucket

TOOLS: dict[str, Callable[..., Any]] = {
    "merge": tfr.merge,
    "shuffle": tfr.shuffle,
    "sample": lambda src, dst, **storage: tfr.sample(src, dst, n=2, **storage),
    "dedupe": lambda src, dst, **storage: tfr.dedupe(src, dst, by="x", **storage),
    "split": lambda src, dst, **storage: tfr.split(src, dst, shards=2, **storage),
    "convert": tfr.convert,
    "salvage": tfr.salvage,
    "write_tfrecord": lambda src, dst, **storage: tfr.write_tfrecord(tfr.dataset(src, **storage), dst, **storage),
}


@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_a_backup_and_a_sample_are_left_out_and_named_once(tmp_path: Path, partition_by: list[str] | None) -> None:
    for _ in range(2):
        tfr.write_tfrecord({"x": [1, 2], "p": [1, 2]}, f"{tmp_path}/", mode="append", partition_by=partition_by)
    table = tfr.read_table(tmp_path)
    first = Path(tfr.dataset(tmp_path).files[0])
    others = [tmp_path / "sample.tfrecord", first.with_name("backup.tfrecord"), first.parent / f"copy-{first.name}"]
    for other in others:
        shutil.copy(first, other)
    shutil.copy(first, f"{first}.bak")  # with a name that is not read anyway
    for read in (tfr.read_table, lambda path: tfr.dataset(path).to_table()):
        with pytest.warns(UserWarning, match="does not name them") as caught:
            assert read(tmp_path).equals(table)
        assert len(caught) == 1
        assert all(f"'{other}'" in str(caught[0].message) for other in others)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = tfr.verify(tmp_path)
        assert [file.path for file in report.files if file.error is not None] == sorted(map(str, others))
        assert not report.ok
        assert tfr.read_table(others[0]).num_rows > 0, "by its own name"
    for other in others:
        other.unlink()
    assert tfr.verify(tmp_path).ok


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("partition_by", [None, ["p"]])
def test_a_target_inside_the_dataset_that_is_read_is_refused(
    tmp_path: Path, name: str, partition_by: list[str] | None
) -> None:
    path = f"{tmp_path}/d/"
    report = tfr.write_tfrecord({"x": [1, 2], "p": [1, 2]}, path, mode="append", partition_by=partition_by)
    (tmp_path / "link").symlink_to(tmp_path / "d")
    inside = "" if partition_by is None else "p=1/"
    for src in (path, tmp_path / "d", f"{path}{inside}*.tfrecord", f"{tmp_path}/link", [report.files[0].path, path]):
        for dst in (f"{path}s.tfrecord", f"{path}s@2.tfrecord", f"{tmp_path}/link/{inside}s.tfrecord"):
            with pytest.raises(ValueError, match="in the directory of a dataset that is read"):
                TOOLS[name](src, dst)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.count(path) == 2
    (tmp_path / "d" / "other").mkdir()
    for dst in (f"{tmp_path}/s.tfrecord", f"{path}other/s.tfrecord"):
        if name != "salvage" or partition_by is None:
            TOOLS[name](path, dst)


@pytest.mark.parametrize("name", [name for name in TOOLS if name != "split"])
def test_a_target_inside_another_dataset_is_refused(tmp_path: Path, name: str) -> None:
    src, path = f"{tmp_path}/in.tfrecord", f"{tmp_path}/d/"
    tfr.write_tfrecord({"x": [1, 2]}, src)
    for partition_by, inside in ((None, ""), (["p"], "p=1/")):
        tfr.write_tfrecord({"x": [3], "p": [1]}, path, mode="overwrite", partition_by=partition_by)
        with pytest.raises(FileExistsError, match=r"would not name '.*s\.tfrecord'.* append to it by tfr\.convert"):
            TOOLS[name](src, f"{path}{inside}s.tfrecord")
        assert tfr.count(path) == 1


def test_parts_inside_another_dataset_are_refused_and_can_be_appended(tmp_path: Path) -> None:
    src, path = f"{tmp_path}/in.tfrecord", f"{tmp_path}/d/"
    tfr.write_tfrecord({"x": [1, 2]}, src)
    tfr.write_tfrecord({"x": [3]}, path, mode="append")
    with pytest.raises(FileExistsError, match=r"would not name '.*train\.tfrecord'"):
        tfr.split(src, path, fractions={"train": 0.5, "test": 0.5})
    tfr.convert(src, path, mode="append")
    assert tfr.read_table(path)["x"].to_pylist() == [3, 1, 2]


def test_a_target_inside_a_dataset_in_a_bucket_is_refused(s3: Bucket) -> None:
    storage = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": [1, 2]}, s3.url("d/"), mode="append", **storage)
    for src in ("d", "d/", "d/*.tfrecord"):
        with pytest.raises(ValueError, match="in the directory of a dataset that is read"):
            tfr.merge(s3.url(src), s3.url("d/s.tfrecord"), **storage)
    assert tfr.merge(s3.url("d"), s3.url("s.tfrecord"), **storage).records == 2
    with pytest.raises(FileExistsError, match="append to it by"):
        tfr.salvage(s3.url("s.tfrecord"), s3.url("d/s.tfrecord"), **storage)


@pytest.mark.parametrize("name", TOOLS)
def test_a_directory_without_a_manifest_may_get_a_file_that_a_glob_leaves_out(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "in.tfrecord")
    TOOLS[name](f"{tmp_path}/in*.tfrecord", f"{tmp_path}/out.tfrecord")
    with pytest.raises(ValueError, match="in the directory of a dataset that is read"):
        TOOLS[name](tmp_path, f"{tmp_path}/again.tfrecord")
