"""Objects of xarray as data: rows are those of one dimension, and what `to_xarray` returns is written back equal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds

xr = pytest.importorskip("xarray")

TIMES = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[ns]")
DATA = xr.Dataset(
    {
        "t2m": (("time", "lat", "lon"), np.arange(60, dtype="f4").reshape(3, 4, 5), {"units": "K"}),
        "code": ("time", ["a", None, "c"]),
        "crs": ((), 7),
    },
    {"time": TIMES, "lat": np.arange(4.0, dtype="f4"), "station": ("time", ["x", "y", "z"])},
)


def read(data: Any, path: Path, **keywords: Any) -> Any:
    tfr.write_tfrecord(data, path, mode="overwrite", float64="raw", **keywords)
    return tfr.dataset(path).to_xarray().load()


@pytest.mark.parametrize("in_chunks", [False, True])
@pytest.mark.parametrize("record_dim", [None, "time"])
def test_variables_are_columns_over_one_dimension(tmp_path: Path, record_dim: str | None, in_chunks: bool) -> None:
    data = DATA.chunk(time=2) if in_chunks else DATA
    found = read(data, tmp_path / "a.tfrecord", record_dim=record_dim)
    assert list(found.variables) == ["time", "lat", "station", "t2m", "code", "crs"]
    np.testing.assert_array_equal(found["t2m"], DATA["t2m"])
    np.testing.assert_array_equal(found["time"], TIMES)
    np.testing.assert_array_equal(found["lat"], np.broadcast_to(DATA["lat"], (3, 4)))
    assert found["code"].values.tolist() == ["a", None, "c"]
    assert found["crs"].values.tolist() == [7, 7, 7]
    assert found["t2m"].attrs == {"units": "K"}
    assert found["t2m"].dims == ("record", "lat", "lon")
    assert found["lat"].dims == ("record", "lat")
    assert tfr.read_table(tmp_path / "a.tfrecord").schema.field("t2m").metadata[b"attributes"] == b'{"units": "K"}'


def test_another_dimension_as_rows(tmp_path: Path) -> None:
    found = read(DATA.drop_vars("code"), tmp_path / "a.tfrecord", record_dim="lat")
    np.testing.assert_array_equal(found["t2m"], DATA["t2m"].transpose("lat", "time", "lon"))
    np.testing.assert_array_equal(found["lat"], DATA["lat"])
    np.testing.assert_array_equal(found["time"], np.broadcast_to(TIMES, (4, 3)))


@settings(max_examples=rounds(25))
@given(
    st.lists(st.lists(st.sampled_from(["y", "x", "record", "v0_0"]), max_size=2, unique=True), min_size=1, max_size=3)
)
def test_dimensions_have_their_names_unless_these_would_differ_in_size(
    tmp_path_factory: pytest.TempPathFactory, dims: list[list[str]]
) -> None:
    """Columns of several files, joined to one table, may have dimensions of one name and two sizes."""
    folder = tmp_path_factory.mktemp("xarray")
    values = [np.zeros((3, *[2 + i] * len(own)), "f4") for i, own in enumerate(dims)]
    variables = [{f"v{i}": (["row", *own], each)} for i, (own, each) in enumerate(zip(dims, values, strict=True))]
    frames = [tfr.read_table(write(xr.Dataset(each), folder / f"{i}")) for i, each in enumerate(variables)]
    schema = pa.schema([field for frame in frames for field in frame.schema])
    table = pa.table([column for frame in frames for column in frame.columns], schema=schema)
    found = tfr.dataset(write(table, folder / "all")).to_xarray().load()
    for i, own in enumerate(dims):
        variable, others = found[f"v{i}"], [dim for j, other in enumerate(dims) if j != i for dim in other]
        assert variable.shape == (3, *[2 + i] * len(own))
        if not {"record", "v0_0", *others} & {*own} and "v0_0" not in others:
            assert variable.dims == ("record", *own)


def test_variables_of_other_dimensions_are_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    data = DATA.assign(mask=(("lat", "lon"), np.ones((4, 5))))
    with pytest.raises(
        tfr.errors.EncodeError, match=r"'mask': its dimensions are \(lat, lon\).*rows are those of 'time'"
    ):
        tfr.write_tfrecord(data, path, record_dim="time")
    with pytest.raises(
        tfr.errors.EncodeError, match=r"share no dimension.*code\(time\), mask\(lat, lon\).*record_dim="
    ):
        tfr.write_tfrecord(data, path)
    with pytest.raises(tfr.errors.EncodeError, match="record_dim='day': no variable has this dimension"):
        tfr.write_tfrecord(DATA, path, record_dim="day")
    with pytest.raises(tfr.errors.EncodeError, match="single values"):
        tfr.write_tfrecord(DATA[["crs"]], path)
    with pytest.raises(TypeError, match=r"record_dim= is for objects of xarray, and this is builtins\.dict"):
        tfr.write_tfrecord({"x": [1]}, path, record_dim="x")
    assert not path.exists()


def test_data_arrays(tmp_path: Path) -> None:
    path, array = tmp_path / "a.tfrecord", DATA["t2m"]
    np.testing.assert_array_equal(read(array, path)["t2m"], array)
    for coordinate in ("time", "station"):  # of which xarray makes no Dataset
        np.testing.assert_array_equal(read(DATA[coordinate], path)[coordinate], DATA[coordinate])
    found = read({"label": [1, 2, 3], "x": array, "y": array.isel(lat=0, drop=True)}, path)
    assert list(found.variables) == ["time", "lat", "station", "label", "x", "y"]
    np.testing.assert_array_equal(found["y"], array[:, 0])
    for data, reason in (
        ({"x": array, "y": array[:2]}, "do not have the same coordinates"),
        ({"x": array, "y": array[::-1]}, "do not have the same coordinates"),
        ({"x": array, "label": [1, 2]}, "feature 'label': has 2 values, where 'time' has 3"),
    ):
        with pytest.raises(tfr.errors.EncodeError, match=reason):
            tfr.write_tfrecord(data, path, mode="overwrite")
    for other in (array.rename(None), array.variable, xr.DataTree(DATA)):
        with pytest.raises(TypeError, match="name"):
            tfr.write_tfrecord(other, path, mode="overwrite")


@pytest.mark.parametrize("as_coordinate", [False, True])
@pytest.mark.parametrize(
    ("values", "type_"),
    [
        (pd.array([1, None, 3], dtype="Int64"), pa.int64()),
        (pd.array([1, None, 3], dtype="int64[pyarrow]"), pa.int64()),
        (pd.array([1.5, None, 3], dtype="Float32"), pa.float32()),
        (pd.array([True, None, False], dtype="boolean"), pa.bool_()),
        (pd.array(["a", None, "b"], dtype="string"), pa.string()),
        (np.array(["a", pd.NA, "b"], dtype=object), pa.string()),  # as xarray 2025.7 has the one before
        (pd.Categorical([5, None, 7]), pa.dictionary(pa.int8(), pa.int64())),
        (pd.Categorical(["a", None, "b"]), pa.dictionary(pa.int8(), pa.string())),
    ],
    ids=lambda each: str(getattr(each, "dtype", each)),
)
def test_arrays_of_pandas_keep_their_missing_values(
    tmp_path: Path, values: Any, type_: pa.DataType, as_coordinate: bool
) -> None:
    dataset = xr.Dataset({"row": ("t", [0, 1, 2]), "x": ("t", values)})
    dataset = dataset.set_coords("x") if as_coordinate else dataset
    tfr.write_tfrecord(dataset, tmp_path / "a.tfrecord")
    column = tfr.read_table(tmp_path / "a.tfrecord")["x"]
    assert column.type == type_
    assert column.to_pylist() == pa.array(values, from_pandas=True).to_pylist()


def test_several_datasets_and_levels_of_an_index(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    parts = [DATA.isel(time=[0]), DATA.isel(time=[1, 2])]
    assert read(parts, path, record_dim="time").equals(read(DATA, path))
    frame = pd.DataFrame({"n": [1, 2]}, pd.MultiIndex.from_tuples([("a", 0), ("b", 1)], names=["k", "i"]))
    stacked = frame.to_xarray().stack(row=("k", "i"))
    assert list(tfr.read_table(write(stacked, path)).column_names) == ["k", "i", "n"]
    assert list(tfr.read_table(write(stacked["row"], path)).column_names) == ["k", "i"]


def write(data: Any, path: Path) -> Path:
    tfr.write_tfrecord(data, path, mode="overwrite")
    return path


KINDS = {
    "ints": [1, -2, 3, 4],
    "floats": np.array([0.5, np.nan, 2, -0.0], "f4"),
    "flags": [True, False, True, True],
    "text": ["ä", None, "", "b"],
    "blobs": [b"a", None, b"", b"\0"],
    "times": np.array(["2020-01-01", "NaT", "1969-12-31", "2262-01-01"], "M8[us]"),
    "spans": np.array([1, -1, 3, "NaT"], "m8[ms]"),
    "lists": [[1, 2], [], None, [3]],
    "image": np.arange(48, dtype="u1").reshape(4, 2, 6),
    "complex": np.arange(8, dtype="c8").reshape(4, 2),
}


@settings(max_examples=rounds(25))
@given(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, unique=True), st.integers(0, 4))
def test_what_to_xarray_returns_is_written_back_equal(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], rows: int
) -> None:
    folder = tmp_path_factory.mktemp("xarray")
    tfr.write_tfrecord({name: KINDS[name] for name in names}, folder / "a.tfrecord")
    before = tfr.dataset(folder / "a.tfrecord", **({"limit": rows} if rows else {})).to_xarray()
    tfr.write_tfrecord(before, folder / "b.tfrecord")
    after = tfr.dataset(folder / "b.tfrecord").to_xarray()
    for name, variable in before.variables.items():
        expected, actual = variable.values, after[name].values
        assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape)
        if expected.dtype.kind == "O":
            np.testing.assert_equal(list(actual), list(expected))
        else:
            np.testing.assert_array_equal(actual, expected)
    assert after.sizes == before.sizes


def test_sparse_arrays_say_how_to_make_them_dense(tmp_path: Path) -> None:
    sparse = pytest.importorskip("sparse")
    data = xr.Dataset({"x": (("r", "c"), sparse.COO.from_numpy(np.eye(3, dtype="f4")))})
    for each in (data, data["x"], {"x": data["x"]}):
        with pytest.raises(tfr.errors.EncodeError, match=r"feature 'x': .*; make it dense, by dataset\.as_numpy\(\)"):
            tfr.write_tfrecord(each, tmp_path / "a.tfrecord")
    assert read(data.as_numpy(), tmp_path / "a.tfrecord")["x"].values.tolist() == np.eye(3).tolist()
