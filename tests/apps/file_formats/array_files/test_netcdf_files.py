"""NetCDF files: what other programs read of those that are written, what they cannot hold, and CDF-5."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds

xr = pytest.importorskip("xarray")
pytest.importorskip("h5netcdf")
pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")

DTYPES = ["i1", "u2", "i8", "f4", "f8", "?", "U", "M8[D]", "M8[s]", "M8[us]", "M8[ns]", "m8[ms]", "m8[ns]"]
SIZES = {"lat": 2, "lon": 3, "none": 0}
ATTRIBUTES = st.dictionaries(
    st.sampled_from(["long_name", "levels", "valid_min", "comment"]),
    st.sampled_from(["K", "é", "", 1, -2.5, [1, 2], [0.5, 2], ["a", "b"]]),
)


@st.composite
def datasets(draw: st.DrawFn) -> Any:
    rows = draw(st.sampled_from([1, 5]))
    variables = {}
    for name in draw(st.lists(st.sampled_from(["t", "u_0", "lat", "record", "é b"]), min_size=1, unique=True)):
        dims = draw(st.permutations([*SIZES]))[: draw(st.sampled_from([0, 0, 1, 2]))]
        dims = {"record": [], "lat": ["lat"]}.get(name, dims)  # an index, and a coordinate that is repeated
        shape = (rows, *(SIZES[dim] for dim in dims))
        dtype, missing = draw(st.sampled_from(DTYPES)), draw(st.booleans())
        numbers = np.random.default_rng(0).integers(0, 100, shape)
        values = numbers.astype(str if dtype == "U" else dtype)
        if missing and dtype[0] in "Mmf" and not dims:
            values[:1] = "NaT" if dtype[0] in "Mm" else np.nan
        variables[name] = (("record", *dims), values, draw(ATTRIBUTES))
    return xr.Dataset(variables)


@settings(max_examples=rounds(25), deadline=None)
@given(data=datasets(), target=st.sampled_from(["b.nc", "b.zarr"]), compressed=st.booleans())
def test_what_to_xarray_returns_is_what_xarray_opens_of_the_target(
    tmp_path_factory: pytest.TempPathFactory, data: Any, target: str, compressed: bool
) -> None:
    folder = tmp_path_factory.mktemp("x")
    tfr.write_tfrecord(data, folder / "a.tfrecord", float64="raw")
    expected = tfr.dataset(folder / "a.tfrecord").to_xarray().load()
    options = {"target_options": {"compressed": True}} if compressed and target == "b.nc" else {}
    tfr.convert(folder / "a.tfrecord", folder / target, **options)
    for engine in ("h5netcdf", "netcdf4") if target == "b.nc" else ("zarr",):
        if engine == "netcdf4":
            pytest.importorskip("netCDF4")
        with xr.open_dataset(folder / target, engine=engine, decode_timedelta=True) as opened:
            xr.testing.assert_identical(opened.load(), expected)
    tfr.convert(folder / target, folder / "c.tfrecord", float64="raw")
    xr.testing.assert_identical(tfr.dataset(folder / "c.tfrecord").to_xarray().load(), expected)


def test_several_batches_and_groups(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    data = {"n": np.arange(30_000), "g/x": np.arange(60_000, dtype="f4").reshape(30_000, 2), "g/n": ["ä", "b"] * 15_000}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    assert tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc").records == 30_000
    with netcdf.Dataset(tmp_path / "a.nc") as file:
        assert file["n"].dimensions == ("record",)
        assert file["g/x"].dimensions == ("record", "x_0")
        for name, values in data.items():
            np.testing.assert_array_equal(file[name][:], values)


def test_stored_values_keep_their_fill_and_their_units(tmp_path: Path) -> None:
    attributes = {"scale_factor": 0.5, "_FillValue": -1, "missing_value": -1, "units": "K"}
    time = {"units": "days since 2000-02-01", "calendar": "360_day"}
    data = xr.Dataset({"v": ("x", np.array([1, -1], "i2"), attributes), "time": ("x", [27, 30], time)})
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")
    for engine in ("h5netcdf", "netcdf4"):
        pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
        with xr.open_dataset(tmp_path / "a.nc", engine=engine, decode_cf=False) as opened:
            assert opened["v"].attrs == attributes
            assert opened["v"].attrs["_FillValue"].dtype == np.int16
            assert opened["time"].attrs == time
        with xr.open_dataset(tmp_path / "a.nc", engine=engine, decode_times=False) as opened:
            np.testing.assert_array_equal(opened["v"], [0.5, np.nan])


@pytest.mark.parametrize(
    ("values", "attributes", "reason"),
    [
        ([b"\xff", b""], {}, "feature 'x': NetCDF has no type for bytes; convert to HDF5 or Zarr"),
        (np.ones(2, "f2"), {}, "feature 'x': NetCDF has no type for float16"),
        (np.zeros(2, "M8[Y]"), {}, "feature 'x': NetCDF has no type for datetime64[Y]; convert to HDF5 or Zarr"),
        (np.zeros(2, "m8[ps]"), {}, "feature 'x': NetCDF has no type for timedelta64[ps]"),
        ([[1], [1, 2]], {}, "feature 'x': its lists differ in length"),
        ([1, None], {}, "record 1: feature 'x': it has no value"),
        (["a", "b\0"], {}, "record 1: feature 'x': a text has a NUL"),
        ([1, 2], {"flag": True}, "feature 'x': its attribute 'flag' is neither text nor a number"),
        ([1, 2], {"none": None}, "its attribute 'none'"),
        ([1, 2], {"nested": [[1], [2]]}, "its attribute 'nested'"),
        ([1, 2], {"both": [1, "a"]}, "its attribute 'both'"),
        ([1, 2], {"large": 2**70}, "its attribute 'large'"),
        ([1, 2], {"a/b": 1}, "feature 'x': NetCDF does not permit the name 'a/b'; rename it"),
        ([1, 2], {"CLASS": "a"}, "NetCDF does not permit the name 'CLASS'"),
        (np.zeros(2, "M8[s]"), {"units": "K"}, "its attribute 'units' is one by which NetCDF stores times"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_what_netcdf_does_not_have_is_named(tmp_path: Path, values: Any, attributes: Any, reason: str) -> None:
    data = xr.DataArray(values, dims="r", attrs=attributes).rename("x") if attributes else {"x": values}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")
    assert reason in str(caught.value)
    assert not (tmp_path / "a.nc").exists()


@pytest.mark.parametrize("dtype", ["M8[D]", "M8[h]", "m8[m]"])
def test_times_in_coarse_units_are_those_that_xarray_reads(tmp_path: Path, dtype: str) -> None:
    values = np.array([0, -2, 30_000], dtype)
    tfr.write_tfrecord({"x": values}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")
    with xr.open_dataset(tmp_path / "a.nc", decode_timedelta=True) as opened:
        np.testing.assert_array_equal(opened["x"].values, values)


@pytest.mark.parametrize("name", ["a b ", "x/ y", "x/-y", "é" * 129, "a\nb", "_NCProperties"])
def test_names_that_netcdf_does_not_permit(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({name: [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="NetCDF does not permit the name"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")


def test_a_dimension_with_the_name_of_another_column(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x_0": [1, 2], "x": np.zeros((2, 3))}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="'x': its dimension 'x_0' has the name of a column before it"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")


@pytest.mark.parametrize("engine", ["h5netcdf", "netcdf4"])
def test_a_variable_with_the_name_of_a_dimension_that_it_does_not_measure(tmp_path: Path, engine: str) -> None:
    """The libraries store it under another name."""
    pytest.importorskip({"netcdf4": "netCDF4"}.get(engine, engine))
    data = xr.Dataset({"lat": (("time", "lat"), np.eye(2)), "t": (("time", "lat"), np.ones((2, 2)))})
    data.to_netcdf(tmp_path / "a.nc", engine=engine)
    tfr.convert(tmp_path / "a.nc", tmp_path / "a.tfrecord", float64="raw")
    found = tfr.dataset(tmp_path / "a.tfrecord").to_xarray()
    xr.testing.assert_equal(found.load(), data.rename_dims(time="record"))


def test_names_of_other_hdf5_files_are_kept(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["b_nc4_non_coord_c"] = file["g/_nc4_non_coord_x"] = np.arange(3)
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").column_names == ["b_nc4_non_coord_c", "g/_nc4_non_coord_x"]


# ---- CDF-5


def test_cdf5_is_read_by_netcdf4(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    with netcdf.Dataset(tmp_path / "a.nc", "w", format="NETCDF3_64BIT_DATA") as file:
        file.createDimension("time", None)
        file.createDimension("x", 2)
        file.createVariable("time", "i8", ("time",))[:] = [0, 36]
        file["time"].units = "hours since 2020-01-01"
        file.createVariable("v", "i2", ("time", "x"), fill_value=-9).set_auto_maskandscale(False)
        file["v"].setncatts({"scale_factor": 0.5, "long_name": "volume"})
        file["v"][:] = [[1, 2], [-9, 4]]
        file.createVariable("u", "u4", ("time",))[:] = [1, 2**32 - 1]
    assert (tmp_path / "a.nc").read_bytes().startswith(b"CDF\x05")
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as opened:
        expected = opened.load().rename_dims(time="record").reset_coords()
    for source in (tmp_path / "a.nc", "memory://cdf5/a.nc"):
        if str(source).startswith("memory"):
            import fsspec

            fsspec.filesystem("memory").pipe("/cdf5/a.nc", (tmp_path / "a.nc").read_bytes())
        tfr.convert(source, tmp_path / "a.tfrecord", float64="raw", mode="overwrite")
        found = tfr.dataset(tmp_path / "a.tfrecord").to_xarray().load()
        for name in ("time", "v", "u"):
            np.testing.assert_array_equal(found[name], expected[name], strict=True)
            assert found[name].attrs == expected[name].attrs
    raw = {"source_options": {"decode_cf": False, "record_dim": "x"}, "columns": ["v"]}
    tfr.convert(tmp_path / "a.nc", tmp_path / "b.tfrecord", **raw)
    assert tfr.read_table(tmp_path / "b.tfrecord")["v"].to_pylist() == [[1, -9], [2, 4]]


def test_cdf5_without_netcdf4_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "netCDF4", None)
    (tmp_path / "a.nc").write_bytes(b"CDF\x05" + bytes(60))
    with pytest.raises(
        tfr.errors.MissingDependencyError, match=r"a\.nc: .*CDF-5.*pip install 'netCDF4'; .*nccopy -k nc4"
    ):
        tfr.convert(tmp_path / "a.nc", tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


def test_a_damaged_cdf5_file_is_named(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    (tmp_path / "a.nc").write_bytes(b"CDF\x05" + b"\xff" * 20)
    with pytest.raises(tfr.errors.DecodeError, match=r"a\.nc: damaged"):
        tfr.convert(tmp_path / "a.nc", tmp_path / "a.tfrecord")


def test_the_size_of_the_dimension_is_looked_for_once_for_each_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library looks for it in all variables."""
    from h5netcdf.dimensions import Dimension

    looks, real = 0, Dimension.size.fget

    def size(dimension: Any) -> Any:
        nonlocal looks
        looks += 1
        return real(dimension)

    monkeypatch.setattr(Dimension, "size", property(size))
    tfr.write_tfrecord({f"x{i}": range(3) for i in range(20)}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.nc")
    assert 0 < looks <= 22
    with xr.open_dataset(tmp_path / "a.nc", engine="h5netcdf") as found:
        assert found["x19"].values.tolist() == [0, 1, 2]
