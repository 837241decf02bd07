"""A record that the kernel makes a dict of equals the row of the batch that is made of it, in values and in types."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import batches
from records import blobs, example, floats, int64s, written
from strategies import datasets
from tfrecord_io.read.random_access import RandomAccess


@pytest.fixture(autouse=True)
def native(native_engine: None) -> None:
    """The reference engine makes rows in the general way only."""


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal, and of the same types."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape or a.flags.writeable != b.flags.writeable:
            return False
        if a.dtype == object:
            return all(same(one, other) for one, other in zip(a, b, strict=True))
        return a.tobytes() == b.tobytes()
    return bool(a == b or (a != a and b != b))  # NaN and NaT


def outcome(records: RandomAccess, number: int) -> Any:
    try:
        return records[number]
    except (tfr.TFRecordError, NotImplementedError) as error:
        return {"class": type(error).__name__, **getattr(error, "__dict__", {}), "region": None}


def compare(paths: Any, **keywords: Any) -> None:
    """Rows in both ways, one after the other, as one decoder decodes them all."""
    try:
        quick, general = tfr.open_random(paths, **keywords), tfr.open_random(paths, **keywords)
    except (tfr.TFRecordError, NotImplementedError):
        return
    with quick, general:
        general.__dict__["_python_rows"] = None
        for number in [*range(len(quick)), *range(len(quick))]:
            assert same(outcome(quick, number), outcome(general, number))
        assert (quick.report.records, quick.report.bytes) == (general.report.records, general.report.bytes)


@pytest.mark.filterwarnings("ignore")
@given(batches())
def test_rows_of_any_table(batch: pa.RecordBatch) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        try:
            tfr.write_tfrecord(batch, path, float64="round")
        except (tfr.TFRecordError, NotImplementedError, ValueError):
            return
        compare(path)
        compare(path, schema="infer")


@pytest.mark.filterwarnings("ignore")
@given(datasets(), st.sampled_from(["raise", "ignore"]), st.sampled_from([1, 1000]))
def test_rows_of_any_payloads(payloads: list[bytes], on_new: Any, sample: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / "a.tfrecord", payloads)
        compare(path, on_new=on_new, sample=sample)
        compare(path, on_new=on_new, sample=sample, columns=["*a*"])


TYPES: dict[str, Any] = {
    "int8": pa.int8(),
    "uint8": pa.uint8(),
    "int64": pa.int64(),
    "uint64": pa.uint64(),
    "bool": pa.bool_(),
    "float": pa.float32(),
    "double": pa.float64(),
    "text": pa.string(),
    "large_text": pa.large_string(),
    "bytes": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("ns", "Europe/Berlin"),
    "time": pa.time64("ns"),
    "duration": pa.duration("s"),
    "category": pa.dictionary(pa.int32(), pa.string()),
    "float16": pa.float16(),
}
VALUES = [
    int64s(1), int64s(0), int64s(-1), int64s(2**63 - 1), int64s(-(2**63)), int64s(200), int64s(1, 2), int64s(),
    floats(1.5), floats(float("nan")), floats(1, 2), floats(), blobs(b"text"), blobs("ü".encode()), blobs(b"\xff"),
    blobs(b""), blobs(b"a", b"b"), blobs(), None,
]  # fmt: skip


@pytest.mark.parametrize("nesting", ["value", "list", "large_list", "fixed"])
@pytest.mark.parametrize("name", TYPES)
def test_values_that_fit_a_declared_type_and_others(tmp_path: Path, name: str, nesting: str) -> None:
    type_ = TYPES[name]
    wrapped = {"value": type_, "list": pa.list_(type_), "large_list": pa.large_list(type_), "fixed": pa.list_(type_, 2)}
    records = [example(y=int64s(1), **({} if value is None else {"x": value})) for value in VALUES]
    path = written(tmp_path / "a.tfrecord", records)
    compare(path, schema={"x": wrapped[nesting]})
    compare(path, schema=tfr.Schema([tfr.Field("x", wrapped[nesting], required=True)]))


def test_arrays_are_the_callers_own(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2], [3, 4]], "t": [["a"], ["b", "c"]]}, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord") as records:
        first, second = records[1]["x"], records[1]["x"]
        assert first.flags.writeable
        assert first.base is None
        first[0] = 9
        assert second.tolist() == [3, 4]
        assert records[1]["t"].tolist() == ["b", "c"]


def test_columns_that_are_no_features(tmp_path: Path) -> None:
    for day in ("mon", "tue"):
        folder = tmp_path / f"day={day}" / "n=3"
        folder.mkdir(parents=True)
        tfr.write_tfrecord({"x": [1, 2], "z": ["a", "b"]}, folder / "a.tfrecord")
    compare(tmp_path)
    compare(tmp_path, include_file_paths="path")
    compare(tmp_path, columns=["n", "x", "day"], schema={"day": "string", "x": "int64", "n": "string"})
    with tfr.open_random(tmp_path, columns=["day", "x"]) as records:
        assert records[2] == {"x": 1, "day": "tue"}


def test_many_new_names_are_no_fault(tmp_path: Path) -> None:
    """Each record counts for itself, although one decoder decodes them all."""
    rows = [example(x=int64s(at), **{f"n{at}_{extra}": int64s(1) for extra in range(50)}) for at in range(60)]
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(0)), *rows])
    with tfr.open_random(path, sample=1, on_new="ignore", max_features=100) as records:
        assert [records[at]["x"] for at in range(1, 61)] == list(range(60))


def test_a_date(tmp_path: Path) -> None:
    tfr.write_tfrecord({"d": [date(2024, 2, 29), None]}, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord") as records:
        assert [records[1], records[0]] == [{"d": None}, {"d": date(2024, 2, 29)}]
