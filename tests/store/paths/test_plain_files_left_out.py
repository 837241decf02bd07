"""Folders of tables and arrays: what looks like data of the format is read, or named in one warning."""

from __future__ import annotations

import bz2
import gzip
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, feather, orc

import tfrecord_io as tfr
from servers import Bucket

TABLE = pa.table({"x": [1, 2], "s": ["a", "b"]})


def _tar(path: Path) -> None:
    tfr.write_tfrecord({"__key__": ["a"], "txt": ["x"]}, f"{path}.tfrecord")
    tfr.convert(f"{path}.tfrecord", path, target_format="tar")
    Path(f"{path}.tfrecord").unlink()


WRITERS: dict[str, Callable[[Path], object]] = {
    "csv": lambda path: csv.write_csv(TABLE, path),
    "tsv": lambda path: csv.write_csv(TABLE, path, csv.WriteOptions(delimiter="\t")),
    "jsonl": lambda path: TABLE.to_pandas().to_json(path, orient="records", lines=True),
    "parquet": lambda path: pq.write_table(TABLE, path),
    "arrow": lambda path: feather.write_feather(TABLE, str(path)),
    "orc": lambda path: orc.write_table(TABLE, str(path)),
    "tar": _tar,
    "npz": lambda path: np.savez(path.open("wb"), x=[1, 2]),
    "npy": lambda path: np.save(path.open("wb"), [1, 2]),
}


def warnings_of(source: Path, **keywords: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tfr.convert(source, source.parent / "out.tfrecord", mode="overwrite", **keywords)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("suffix", WRITERS)
def test_a_file_with_the_content_of_the_others_is_named(tmp_path: Path, suffix: str, named: bool) -> None:
    """As exports of clusters name them; also where the caller names the format."""
    folder = tmp_path / "in"
    folder.mkdir()
    WRITERS[suffix](folder / f"part-0.{suffix}")
    keywords = {"source_format": suffix} if named else {}
    assert warnings_of(folder, **keywords) == []
    (folder / "README").write_text("A table of numbers and texts, made by a program.\nIt has two rows, as you see.\n")
    (folder / "LICENSE.md").write_text("# MIT\n")
    (folder / "_SUCCESS").write_text("x,s\n1,2\n")
    (folder / "thumbnail").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(90))
    assert warnings_of(folder, **keywords) == []
    for number in (1, 2, 10):
        WRITERS[suffix](folder / f"part-{number}")
    (text,) = warnings_of(folder, **keywords)
    assert str(folder) in text
    assert "'part-1' and 2 more not read" in text
    assert f".{suffix}" in text
    assert tfr.count(tmp_path / "out.tfrecord") in (1, 2)


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("name", ["part-1", "other", "part-1.dat", "000001_0", "part-0.{}.bak", "part-0.{}-1", "a.txt"])
def test_names_that_exports_and_editors_give(tmp_path: Path, suffix: str, name: str) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    WRITERS[suffix](folder / f"part-0.{suffix}")
    WRITERS[suffix](folder / name.format(suffix))
    (text,) = warnings_of(folder)
    assert name.format(suffix) in text


@pytest.mark.parametrize(("name", "is_named"), [("part-1", True), ("README", False), ("part-1.csv.old", True)])
def test_a_table_of_one_column_has_no_delimiter_to_look_for(tmp_path: Path, name: str, is_named: bool) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for file in ("part-0.csv", name):
        (folder / file).write_text("x\n1\n")
    assert len(warnings_of(folder)) == is_named


def test_packed_files_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    WRITERS["csv"](folder / "part-0.csv")
    content = (folder / "part-0.csv").read_bytes()
    (folder / "part-1").write_bytes(gzip.compress(content))
    (folder / "part-2.csv.bz2").write_bytes(bz2.compress(content))
    (text,) = warnings_of(folder)
    assert "'part-1' and 1 more" in text


def test_files_of_folders_that_are_no_partitions_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    (folder / "more").mkdir(parents=True)
    (folder / "day=1").mkdir()
    for path in ("a", "more/b", "day=1/c"):
        WRITERS["parquet"](folder / f"{path}.parquet")
    (text,) = warnings_of(folder)
    assert "'more/b.parquet' not read: in a folder that is not a partition" in text


def test_partition_folders_and_buckets(bucket: Bucket, tmp_path: Path) -> None:
    for name in ("part-0.csv", "part-1", "notes"):
        bucket.fs.pipe_file(bucket.url(f"in/day=1/{name}").removeprefix(f"{bucket.protocol}://"), b"x,y\n1,2\n")
    with pytest.warns(UserWarning, match="'part-1' not read"):
        tfr.convert(
            bucket.url("in"), tmp_path / "out.tfrecord", source_options={"storage_options": bucket.storage_options}
        )
    assert tfr.count(tmp_path / "out.tfrecord") == 1
