"""Files of each released version are read by this one, with the same values and without a warning."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr

VERSIONS = Path(__file__).parents[1] / "data" / "versions"
ROWS = {"id": [f"id{number:03}" for number in range(60)], "day": [number % 3 for number in range(60)]}


@pytest.fixture(params=sorted(path.name for path in VERSIONS.iterdir() if path.is_dir() and path.name[0].isdigit()))
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A copy, with the time that the column index knows the data by."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = Path(shutil.copytree(VERSIONS / request.param, tmp_path / "files"))
        os.utime(copy / "indexed.tfrecord", ns=(10**18, 10**18))  # as make.py
        yield copy


@pytest.mark.parametrize("suffix", ["", ".gz", ".zlib", ".lz4"])
def test_every_type(folder: Path, suffix: str) -> None:
    if suffix == ".lz4":
        pytest.importorskip("lz4")
    with pa.OSFile(str(folder / "every_type.arrow")) as file:
        expected = pa.ipc.open_file(file).read_all()
    found = tfr.read_table(folder / f"every_type.tfrecord{suffix}")
    assert found.schema.equals(expected.schema, check_metadata=False)
    assert found.to_pylist() == expected.to_pylist()


def test_frames_and_arrays(folder: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(3)}, index=pd.Index(["a", "b", "c"], name="key"))
    pd.testing.assert_frame_equal(tfr.read_tfrecord(folder / "frame.tfrecord"), frame)
    for name in ("arrays", "protos"):
        found = tfr.read_arrays(folder / f"{name}.tfrecord")
        assert np.array_equal(found["image"], np.arange(24, dtype=np.uint8).reshape(2, 3, 4))
        assert found["half"].dtype == np.float16


def test_datasets(folder: Path) -> None:
    assert tfr.read_table(folder / "shards").to_pydict() == ROWS
    parts = tfr.read_table(folder / "parts", filters=[("day", "==", 1)])
    assert sorted(parts["id"].to_pylist()) == ROWS["id"][1::3]
    assert tfr.read_table(folder / "grown").to_pydict() == {name: values * 2 for name, values in ROWS.items()}
    for name in ("shards", "parts", "grown"):
        assert tfr.verify(folder / name).ok
    assert tfr.read_table(folder / "plain.tfrecord").to_pydict() == {"n": [0, 1, 2]}


def test_datasets_grow(folder: Path) -> None:
    tfr.write_tfrecord(ROWS, f"{folder}/grown/", mode="append")
    assert tfr.count(folder / "grown") == 180


def test_indexes(folder: Path) -> None:
    with tfr.open_random(folder / "indexed.tfrecord", key="id") as records:
        assert records.lookup("id007") == {"id": "id007", "day": 1}
        assert records[59]["id"] == "id059"
    assert tfr.read_table(folder / "indexed.tfrecord", filters=[("id", "==", "id059")]).to_pydict() == {
        "id": ["id059"],
        "day": [2],
    }
