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
from reading import read_by
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
        quick, general = read_by(tfr.open_random, paths, **keywords), read_by(tfr.open_random, paths, **keywords)
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
        compare(path, record_type="bytes")
        content = bytearray(path.read_bytes())
        if content:
            content[-1 - sample % len(content)] ^= 1
            path.write_bytes(content)
            compare(path, record_type="bytes", on_error="skip")
            compare(path, record_type="bytes", on_error="skip", check_crc=False, include_file_paths="path")


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


@pytest.mark.matrix
@pytest.mark.parametrize("nesting", ["value", "list", "large_list", "fixed"])
@pytest.mark.parametrize("name", TYPES)
def test_values_that_fit_a_declared_type_and_others(tmp_path: Path, name: str, nesting: str) -> None:
    type_ = TYPES[name]
    wrapped = {"value": type_, "list": pa.list_(type_), "large_list": pa.large_list(type_), "fixed": pa.list_(type_, 2)}
    records = [example(y=int64s(1), **({} if value is None else {"x": value})) for value in VALUES]
    path = written(tmp_path / "a.tfrecord", records)
    compare(path, schema={"x": wrapped[nesting]})
    compare(path, schema=tfr.Schema([tfr.typing.Field("x", wrapped[nesting], required=True)]))


@pytest.mark.matrix
@pytest.mark.parametrize("dtype", ["uint8", "int64", "float32", "float16", "bool", "complex64", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (4,), (2, 2), (2, 0), (1, 2, 2)], ids=str)
def test_tensors_and_what_their_companions_state(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    width = {"bfloat16": 2, "bool": 1}.get(dtype) or np.dtype(dtype).itemsize
    content = bytes(width * int(np.prod(shape)))
    stated, swapped = int64s(*shape), int64s(*shape[::-1], 1)
    shapes, words = [None, stated, swapped, blobs(b"x")], [None, blobs(dtype.encode()), blobs(b"int8"), int64s(1)]
    good, word = blobs(content), blobs(dtype.encode())
    triples = [(good, one, other) for one in shapes for other in words]
    triples += [(cell, stated, word) for cell in (blobs(content + b"1"), blobs(b"\2" * len(content)), int64s(1), None)]
    records = []
    for triple in [*triples, (None, None, None)]:
        named = zip(("t", "t/shape", "t/dtype"), triple, strict=True)
        records.append(example(y=int64s(1), **{name: value for name, value in named if value is not None}))
    path = written(tmp_path / "a.tfrecord", records)
    compare(path, schema={"t": tfr.tensor(dtype, shape), "y": "int64"})
    compare(path, schema={"t": tfr.tensor(dtype, (None, *shape[1:]))})
    compare(path, sample=2, on_new="ignore")


def test_tensors_and_categories_that_were_written(tmp_path: Path) -> None:
    images = np.arange(24, dtype=np.uint8).reshape(3, 2, 4)
    grades = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), pa.array(["low", "high"]))
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"image": list(images), "grade": grades, "name": ["a", "b", "c"]}, path)
    for keywords in ({}, {"schema": "infer"}, {"columns": ["image"]}, {"columns": ["grade"]}):
        compare(path, **keywords)
    with tfr.open_random(path) as records:
        assert records._python_rows is not None
        np.testing.assert_array_equal(records[2]["image"], images[2], strict=True)
        assert [records[at]["grade"] for at in range(3)] == ["high", None, "low"]


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
    with tfr.open_random(tfr.dataset(path, sample=1, on_new="ignore", limits=tfr.Limits(features=100))) as records:
        assert [records[at]["x"] for at in range(1, 61)] == list(range(60))


def test_a_date(tmp_path: Path) -> None:
    tfr.write_tfrecord({"d": [date(2024, 2, 29), None]}, tmp_path / "a.tfrecord")
    with tfr.open_random(tmp_path / "a.tfrecord") as records:
        assert [records[1], records[0]] == [{"d": None}, {"d": date(2024, 2, 29)}]
