"""xarray opens TFRecord files, and reads the records that are indexed."""

from __future__ import annotations

import pickle
import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pytest
import xarray as xr

import tfrecord_io as tfr
from counted_calls import calls
from records import blobs, example, int64s, written
from tfrecord_io.apps.adapters import xarray as adapter
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

ROOT = Path(__file__).parents[3]


def opened_by_xarray(path: Any, **keywords: Any) -> xr.Dataset:
    return xr.open_dataset(path, engine=adapter.TFRecordBackend, **keywords)


class TestXarray(AdapterSuite):
    leaves_out = frozenset({"int", "flag"})  # NumPy's integers and bools have no missing value
    options: ClassVar[dict[str, Any]] = {}

    def open(self, path: Any, **keywords: Any) -> xr.Dataset:
        return opened_by_xarray(path, **self.options, **keywords)

    def rows(self, opened: xr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        loaded = {name: opened[name].values for name in names or opened.variables}
        return {name: self.cells(values) for name, values in loaded.items()}

    def cells(self, values: np.ndarray) -> list[Any]:
        if values.dtype.kind == "M":
            type_ = pa.date32() if values.dtype == "datetime64[s]" else pa.timestamp("us", ZONE)
            return pa.array(values).cast(type_).to_pylist()
        return [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in values.tolist()]

    def expected(self, table: pa.Table) -> dict[str, list[Any]]:
        values = super().expected(table)
        if "float" in values:
            values["float"] = [float("nan") if value is None else value for value in values["float"]]
        return values

    def above(self, opened: xr.Dataset, least: int) -> xr.Dataset:
        return opened.isel(record=(opened["ints"] > least).values)

    def first(self, opened: xr.Dataset, n: int) -> xr.Dataset:
        return opened.isel(record=slice(n))

    def count(self, opened: xr.Dataset) -> int:
        return int(opened.sizes["record"])

    def names(self, opened: xr.Dataset) -> list[str]:
        return list(opened.variables)

    @pytest.mark.parametrize("suffix", ["", ".gz"])
    def test_any_index_gives_what_it_gives_of_an_array(self, table: pa.Table, tmp_path: Path, suffix: str) -> None:
        tfr.write_tfrecord(table.select(["images"]), tmp_path / f"a.tfrecord{suffix}")
        images = np.arange(20, dtype="uint8").reshape(5, 2, 2)
        opened = self.open(tmp_path / f"a.tfrecord{suffix}")["images"].variable
        for key in (
            3, -1, slice(None), slice(4, None, -2), slice(2, 2), [4, 0, 4], (3, 1), (slice(1, 4), 0, [1, 0]),
            ([0, 2], slice(None), 1), (np.array([1, 3]),), (..., 0), (2, slice(None), slice(1, None)),
        ):  # fmt: skip
            orthogonal = images
            parts = key if isinstance(key, tuple) else (key,)
            if parts[0] is ...:
                parts = (slice(None), slice(None), *parts[1:])
            for axis in range(len(parts) - 1, -1, -1):
                orthogonal = orthogonal[(slice(None),) * axis + (parts[axis],)]
            np.testing.assert_array_equal(opened[key].values, orthogonal, str(key))

    def test_a_part_of_a_dataset_is_read_at_once(self, path: Path) -> None:
        part = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "images"]).to_xarray()
        assert self.rows(part, ["text"]) == {"text": ["é", "b"] * 3}
        assert part["images"].shape == (6, 2, 2)
        assert self.rows(tfr.dataset(path, offset=2, limit=2).to_xarray(), ["ints"]) == {"ints": [3, 4]}

    def test_a_dataset_pickles(self, path: Path) -> None:
        copy = pickle.loads(pickle.dumps(self.open(path)))
        assert int(copy["ints"].sum()) == 45

    def test_left_out_variables(self, path: Path) -> None:
        assert "text" not in self.open(path, drop_variables="text").variables


@pytest.mark.skipif(tuple(map(int, xr.__version__.split(".")[:2])) < (2026, 9), reason="it chunks no globs and shards")
class TestXarrayInChunks(TestXarray):
    options: ClassVar[dict[str, Any]] = {"chunks": {"record": 4}}

    def test_chunks(self, path: Path) -> None:
        assert self.open(path)["images"].chunks == ((4, 4, 4, 3), (2,), (2,))
        assert float(self.open(path)["images"].mean()) == 9.5


def test_only_indexed_records_are_read(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(9)])
    opened = opened_by_xarray(path)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    assert opened["n"][2:5].values.tolist() == [2, 3, 4]
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 8 at byte"):
        _ = opened["n"].values


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_opening_many_columns_takes_the_same_for_each(tmp_path: Path, suffix: str) -> None:
    counts = []
    for columns in (50, 400):
        path = tmp_path / f"{columns}.tfrecord{suffix}"
        tfr.write_tfrecord({f"x{i}": [i, i] for i in range(columns)}, path)
        dataset = tfr.dataset(path)
        opened: list[xr.Dataset] = []
        counts.append(calls(lambda dataset=dataset, opened=opened: opened.append(dataset.to_xarray())))
        assert opened[0][f"x{columns - 1}"].values.tolist() == [columns - 1] * 2
    assert counts[1] < 9 * counts[0], counts


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_one_record_of_objects_is_what_it_is_of_an_array(tmp_path: Path, suffix: str) -> None:
    data = {"text": ["é", None, "c"], "bytes": [b"a", b"", None], "lists": [[1], None, [2, 3]]}
    tfr.write_tfrecord(data, tmp_path / f"a.tfrecord{suffix}")
    opened = opened_by_xarray(tmp_path / f"a.tfrecord{suffix}")
    loaded = opened.copy(deep=True).load()
    for name in data:
        for row in (0, 1, -1):
            found, expected = opened[name].isel(record=row).values, loaded[name].isel(record=row).values
            assert (found.dtype, found.shape) == (expected.dtype, ()) == (np.dtype(object), ())
            assert repr(found.item()) == repr(expected.item())


def test_a_missing_integer_is_named_with_its_record(tmp_path: Path) -> None:
    for name, ints in (("a", [1, 2]), ("b", [3, None])):
        tfr.write_tfrecord({"ints": pa.array(ints, pa.int64())}, tmp_path / f"{name}.tfrecord")
    opened = opened_by_xarray(tmp_path)
    assert opened["ints"][:3].values.tolist() == [1, 2, 3]
    with pytest.raises(tfr.errors.DecodeError, match="an array of int64 cannot mark missing values") as caught:
        _ = opened["ints"].values
    assert (caught.value.path, caught.value.record) == (str(tmp_path / "b.tfrecord"), 1)
    with_default = opened_by_xarray(tmp_path, schema={"ints": tfr.scalar("int64", default=-1)})
    assert with_default["ints"].values.tolist() == [1, 2, 3, -1]


@pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="not a source tree")
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_null_in_a_list_is_named_with_its_record(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.tfrecord{suffix}"
    tfr.write_tfrecord({"x": pa.array([[1, 2], [3, None], [4, 5]])}, path)
    opened = opened_by_xarray(path)
    assert opened["x"][:1].values[0].tolist() == [1, 2]
    with pytest.raises(tfr.errors.DecodeError, match="feature 'x': an item of its list has no value") as caught:
        _ = opened["x"][[2, 1]].values
    assert caught.value.record == 1
    with pytest.raises(tfr.errors.DecodeError, match="feature 'x': an item of its list has no value"):
        tfr.dataset(path).filter([("x", "!=", None)]).to_xarray()


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.StoppedEarlyWarning")
@pytest.mark.parametrize("suffix", ["", ".gz"])
@pytest.mark.parametrize(("on_error", "rows"), [("skip", [0, 1, 3, 4, 5]), ("stop", [0, 1])])
def test_all_variables_leave_out_the_same_records(tmp_path: Path, suffix: str, on_error: Any, rows: list[int]) -> None:
    records = [example(n=blobs(b"text") if n == 2 else int64s(n), x=int64s(n)) for n in range(6)]
    with tfr.RecordWriter(path := tmp_path / f"a.tfrecord{suffix}") as writer:
        for record in records:
            writer.write(record)
    dataset = tfr.dataset(path, schema={"n": "int64", "x": "int64"}, on_error=on_error)
    opened = dataset.to_xarray()
    assert dict(opened.sizes) == {"record": len(rows)}
    assert opened["x"].values.tolist() == opened["n"].values.tolist() == rows
    assert opened.isel(record=slice(1, 3))["x"].values.tolist() == rows[1:3]


def test_the_entry_point_is_the_backend() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    ((name, value),) = project["entry-points"]["xarray.backends"].items()
    assert name == "tfrecord"
    assert EntryPoint(name, value, "xarray.backends").load() is adapter.TFRecordBackend


def test_images(tmp_path: Path) -> None:
    pixels = np.arange(2 * 3 * 4 * 3, dtype="uint8").reshape(2, 3, 4, 3)
    for missing in (False, True):
        cells = [None, pixels[1]] if missing else list(pixels)
        tfr.write_tfrecord({"x": cells}, tmp_path / "a.tfrecord", column_encoding={"x": "png"})
        data = xr.open_dataset(tmp_path / "a.tfrecord", engine="tfrecord")
        if missing:
            with pytest.raises(tfr.errors.DecodeError, match="record 0: feature 'x': it has no value"):
                data["x"].load()
        else:
            assert (data["x"].values == pixels).all()
