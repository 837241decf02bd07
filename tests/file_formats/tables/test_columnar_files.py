"""Parquet and Arrow IPC files: several must have the same schema, and damage raises."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr


def open_files(folder: Path) -> list[str]:
    paths = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    return [path for path in paths if path.startswith(str(folder))]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"x": ["a"]}, "feature 'x': it is string here, but int64 in"),
        ({"x": pa.array([1], pa.int32())}, "feature 'x': it is int32 here, but int64 in"),
        ({"y": [1]}, "feature 'y': it is int64 here, but absent in"),
        ({"x": [1], "y": [1]}, "feature 'y': it is int64 here, but absent in"),
        ({}, "feature 'x': it is absent here, but int64 in"),
    ],
)
def test_files_with_other_columns_are_not_concatenated(tmp_path: Path, second: dict[str, object], reason: str) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(second), tmp_path / "2.parquet")
    with pytest.raises(tfr.SchemaError, match=reason) as caught:
        tfr.convert([tmp_path / "1.parquet", tmp_path / "2.parquet"], tmp_path / "x.tfrecord")
    assert caught.value.path.endswith("2.parquet")
    assert not (tmp_path / "x.tfrecord").exists()
    assert open_files(tmp_path) == []


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_damaged_files_raise(tmp_path: Path, suffix: str) -> None:
    good = tmp_path / f"good.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"x": list(range(1000))}), good)
    else:
        with pa.OSFile(str(good), "wb") as sink, pa.ipc.new_stream(sink, pa.schema({"x": pa.int64()})) as writer:
            writer.write_table(pa.table({"x": list(range(1000))}))
    content = good.read_bytes()
    damaged = {
        "empty": b"",
        "cut": content[:-40],
        "other": b"nonsense" * 20,
        "holed": content[:20] + b"\xff" * 60 + content[80:],
    }
    for name, some in damaged.items():
        path = tmp_path / f"{name}.{suffix}"
        path.write_bytes(some)
        with pytest.raises(
            tfr.DecodeError, match=r"damaged, or not a file of the format (Parquet|Arrow IPC)"
        ) as caught:
            tfr.convert(path, tmp_path / "x.tfrecord")
        assert caught.value.path == str(path)
        assert not (tmp_path / "x.tfrecord").exists()
        assert open_files(tmp_path) == []


def test_an_arrow_ipc_stream_is_read(tmp_path: Path) -> None:
    table = pa.table({"x": [1, None], "s": ["a", "b"]})
    with pa.OSFile(str(tmp_path / "x.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    tfr.convert(tmp_path / "x.arrow", tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord").equals(table)
    assert open_files(tmp_path) == []


def test_folders_and_globs_are_concatenated(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    for i in (10, 9, 2):
        pq.write_table(pa.table({"x": [i]}), tmp_path / "parts" / f"{i}.parquet")
    for source in (tmp_path / "parts", tmp_path / "parts" / "*.parquet"):
        tfr.convert(source, tmp_path / "x.tfrecord")
        assert tfr.read_table(tmp_path / "x.tfrecord")["x"].to_pylist() == [2, 9, 10]


FAR = pa.array([0, 2**63 - 1], pa.timestamp("s"))
UNFIT = {
    "plain": FAR,
    "struct": pa.StructArray.from_arrays([FAR], ["inner"]),
    "list": pa.ListArray.from_arrays(pa.array([0, 1, 2]), FAR),
    "dictionary": FAR.dictionary_encode(),
    "zone": FAR.cast(pa.timestamp("s", "Asia/Tokyo")),
    "tensor": np.array([[0], [2**63 - 1]], "M8[s]"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_value_that_parquet_cannot_hold_names_column_and_record(name: str, tmp_path: Path) -> None:
    source = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"n": [1, 2], "x": UNFIT[name]}, source)
    with pytest.raises(tfr.EncodeError, match=r"out of range for this file format.*columns=") as caught:
        tfr.convert(source, tmp_path / "x.parquet", batch_size=1)
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(source), 1, "x")
    assert "9223372036854775807" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tfrecord"]
    tfr.convert(source, tmp_path / "x.arrow")


def test_a_type_that_parquet_does_not_have_names_the_column(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": pa.array([Decimal("1E2")], pa.decimal128(5, -2))}, tmp_path / "x.tfrecord")
    with pytest.raises(tfr.EncodeError, match=r"a column of decimal128\(5, -2\) cannot be stored") as caught:
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / "x.parquet")
    assert caught.value.feature == "x"
    assert not (tmp_path / "x.parquet").exists()
