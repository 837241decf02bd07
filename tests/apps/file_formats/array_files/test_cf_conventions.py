"""Files with names of dimensions and packed values come in as xarray reads them."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from counted_calls import calls
from rounds import rounds
from transfers import convert_flat

xr = pytest.importorskip("xarray")
h5py = pytest.importorskip("h5py")
pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")


def stored(data: Any, folder: Path, kind: str, encoding: Any = None) -> Path:
    """A Dataset as a file or folder of this kind."""
    if kind.startswith("zarr"):
        data.to_zarr(folder / "a.zarr", zarr_format=int(kind[-1]), encoding=encoding, mode="w")
        return folder / "a.zarr"
    pytest.importorskip({"scipy": "scipy", "netcdf4": "netCDF4", "h5netcdf": "h5netcdf"}[kind])
    data.to_netcdf(folder / "a.nc", engine=kind, encoding=encoding)
    return folder / "a.nc"


def arrays(path: Path, **keywords: Any) -> Any:
    """The rows of a file through TFRecord."""
    target = path.with_name("a.tfrecord")
    convert_flat(path, target, float64="raw", mode="overwrite", **keywords)
    return tfr.dataset(target).to_xarray().load()


KINDS = ["scipy", "netcdf4", "h5netcdf", "zarr2", "zarr3"]
TIMES = np.array(["2020-01-01", "2020-01-02T12", "NaT"], "M8[ns]")
T2M = np.array([[[250.0, 281.26]], [[np.nan, 300.5]], [[273.15, 260]]])
DATA = xr.Dataset(
    {"t2m": (("time", "lat", "lon"), T2M, {"units": "K", "levels": [1, 2]}), "crs": ((), 7)},
    {"time": TIMES, "lat": [51.5], "name": ("time", ["a", "é", "ccc"])},
)
PACKED = {"t2m": {"dtype": "i2", "scale_factor": 0.01, "add_offset": 270.0, "_FillValue": -32768}}


@pytest.mark.parametrize("kind", KINDS)
def test_packed_values_and_times_are_decoded(tmp_path: Path, kind: str) -> None:
    path = stored(DATA, tmp_path, kind, PACKED)
    with xr.open_dataset(path, engine=None if path.suffix == ".nc" else "zarr") as expected:
        found = arrays(path)
        assert found.sizes["record"] == 3
        np.testing.assert_array_equal(found["t2m"], expected["t2m"])
        assert found["t2m"].dims == ("record", "lat", "lon")
        np.testing.assert_array_equal(found["time"], expected["time"])
    np.testing.assert_allclose(found["t2m"], T2M)
    np.testing.assert_array_equal(found["lat"], [[51.5]] * 3)
    assert found["name"].values.tolist() == ["a", "é", "ccc"]
    assert found["crs"].values.tolist() == [7, 7, 7]
    assert found["t2m"].attrs == {"units": "K", "levels": [1, 2]}
    assert "lon" not in found  # a dimension without coordinates


@pytest.mark.parametrize("kind", KINDS)
def test_another_dimension_some_columns_and_stored_values(tmp_path: Path, kind: str) -> None:
    path = stored(DATA.drop_vars("name"), tmp_path, kind, PACKED)
    found = arrays(path, record_dim="lon", columns=["t2m"])
    np.testing.assert_allclose(found["t2m"], np.moveaxis(T2M, 2, 0))
    assert arrays(path, filters=[("time", "<", np.datetime64("2020-01-02").item())]).sizes["record"] == 1
    raw = arrays(path, decode_cf=False, columns=["t2m", "time"])
    assert raw["t2m"].dtype == np.int16
    assert raw["t2m"].attrs["scale_factor"] == 0.01
    assert raw["t2m"].values[1, 0, 0] == -32768
    assert xr.decode_cf(raw[["t2m"]])["t2m"].values.tolist()[0] == pytest.approx(T2M[0], abs=0.006)
    with pytest.raises(tfr.errors.EncodeError, match="record_dim='x': no variable has this dimension"):
        arrays(path, record_dim="x")
    for record_dim, rows in ((None, 3), ("lon", 2)):  # which rows there are does not depend on the columns
        assert arrays(path, columns=["lat"], record_dim=record_dim)["lat"].values.tolist() == [[51.5]] * rows


@settings(max_examples=rounds(40), deadline=None)
@given(
    kind=st.sampled_from(["zarr2", "zarr3", "scipy"]),
    dtype=st.sampled_from(["i1", "i2", "i4", "f4", "f8"]),
    attributes=st.fixed_dictionaries(
        {},
        optional={
            "scale_factor": st.sampled_from([0.5, np.float32(0.25)]),
            "add_offset": st.sampled_from([-3.0, 100.0]),
            "_FillValue": st.sampled_from([-1, 0, 7]),
            "missing_value": st.just(5),
            "units": st.sampled_from(["K", "hours since 2000-01-01", "days since 1990-01-01 12:00"]),
        },
    ),
    order=st.permutations(["x", "y", "z"]),
    record_dim=st.sampled_from([None, "x", "y", "z"]),
)
def test_each_value_is_that_of_xarray(
    tmp_path_factory: pytest.TempPathFactory,
    kind: str,
    dtype: str,
    attributes: dict[str, Any],
    order: list[str],
    record_dim: str | None,
) -> None:
    sizes = {"x": 2, "y": 3, "z": 4}
    if "since" in attributes.get("units", ""):  # a time is not packed, too
        attributes = {name: value for name, value in attributes.items() if name in ("units", "_FillValue")}
    attributes = {
        k: np.array(v, dtype)[()] if k in ("_FillValue", "missing_value") else v for k, v in attributes.items()
    }
    fill = {"_FillValue": attributes.pop("_FillValue")} if "_FillValue" in attributes else {"_FillValue": None}
    values = (np.arange(24) % 11 - 2).astype(dtype).reshape([sizes[dim] for dim in order])
    data = xr.Dataset({"v": (order, values, attributes)})
    path = stored(data, tmp_path_factory.mktemp("cf"), kind, {"v": fill})
    with xr.open_dataset(path, engine="zarr" if kind != "scipy" else "scipy") as expected:
        dim = record_dim or order[0]
        np.testing.assert_array_equal(
            arrays(path, record_dim=record_dim)["v"], expected["v"].transpose(dim, ...), strict=True
        )


@pytest.mark.parametrize("kind", ["netcdf4", "h5netcdf", "zarr2"])
def test_text_that_stands_for_a_missing_one_is_missing(tmp_path: Path, kind: str) -> None:
    text = np.array([["a", "NA"], ["", "b"]], object)
    given = xr.Dataset({"one": ("t", text[0]), "two": (("t", "x"), text)})
    path = stored(given, tmp_path, kind, {name: {"_FillValue": "NA"} for name in given})
    convert_flat(path, tmp_path / "a.tfrecord")
    found = tfr.read_table(tmp_path / "a.tfrecord").to_pydict()
    assert found == {"one": ["a", None], "two": [["a", None], ["", "b"]]}
    convert_flat(path, tmp_path / "a.tfrecord", source_options={"decode_cf": False}, mode="overwrite")
    assert tfr.read_table(tmp_path / "a.tfrecord")["one"].to_pylist() == ["a", "NA"]


@pytest.mark.parametrize("encoding", [None, "utf-8"])
@pytest.mark.parametrize("format", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_characters_that_stand_for_missing_ones(tmp_path: Path, format: str, encoding: str | None) -> None:
    with pytest.importorskip("netCDF4").Dataset(tmp_path / "a.nc", "w", format=format) as file:
        file.createDimension("t", 3)
        file.createDimension("letters", 1)
        flag = file.createVariable("flag", "S1", ("t", "letters"), fill_value="-")
        flag[:] = np.array([[b"A"], [b"-"], [b"B"]])
        if encoding:
            flag._Encoding = encoding
    tfr.convert(tmp_path / "a.nc", tmp_path / "a.tfrecord")
    expected = ["A", None, "B"] if encoding else [b"A", None, b"B"]
    assert tfr.read_table(tmp_path / "a.tfrecord")["flag"].to_pylist() == expected


@pytest.mark.parametrize("kind", KINDS)
def test_texts_are_those_of_xarray_in_all_axes(tmp_path: Path, kind: str) -> None:
    text = np.array([["a", "é"], ["", "abc"]])
    variables = {"one": ("t", text[:, 1]), "two": (("t", "x"), text), "single": ((), "abc"), "n": ("t", [1, 2])}
    path = stored(xr.Dataset(variables), tmp_path, kind, {name: {"dtype": "S1"} for name in ("one", "two", "single")})
    found = arrays(path)
    assert found["one"].values.tolist() == ["é", "abc"]
    assert [list(row) for row in found["two"].values] == text.tolist()
    assert found["single"].values.tolist() == ["abc", "abc"]
    assert found["one"].attrs == {}


@pytest.mark.parametrize("kind", ["zarr2", "zarr3", "h5"])
def test_letters_of_an_axis_of_other_values_are_not_joined(tmp_path: Path, kind: str) -> None:
    letters = np.array([[b"a", b"b"], [b"c", b""]], "S1")
    if kind == "h5":  # without dimensions
        path = tmp_path / "a.h5"
        with h5py.File(path, "w") as file:
            file["letters"] = letters
    else:
        data = {"letters": (("t", "x"), letters), "n": (("t", "x"), np.eye(2)), "flag": ("t", letters[:, 0])}
        path = stored(xr.Dataset(data), tmp_path, kind)
        assert arrays(path)["flag"].values.tolist() == [b"a", b"c"]
    found = arrays(path)["letters"].values
    assert found.dtype == "S1"
    assert found.tolist() == letters.tolist()


def test_text_coordinates_of_classic_files(tmp_path: Path) -> None:
    """Classic files have a dimension of characters for text, which the values that xarray reads do not have."""
    given = xr.Dataset({"a": (("t", "x"), np.arange(6).reshape(3, 2))}, {"x": ["p", "qq"], "t": ["u", "v", "w"]})
    found = arrays(stored(given, tmp_path, "scipy"))
    assert found["a"].dims == ("record", "x")
    np.testing.assert_array_equal(found["a"], given["a"])
    assert found["t"].values.tolist() == ["u", "v", "w"]
    assert [list(row) for row in found["x"].values] == [["p", "qq"]] * 3
    found = arrays(stored(given, tmp_path, "scipy"), source_options={"record_dim": "x"})
    assert found["x"].values.tolist() == ["p", "qq"]


def test_groups(tmp_path: Path) -> None:
    for kind in ("netcdf4", "h5netcdf"):
        if pytest.importorskip({"netcdf4": "netCDF4"}.get(kind, kind)):
            DATA.drop_vars("name").to_netcdf(tmp_path / "a.nc", engine=kind, encoding=PACKED, group="PRODUCT/inner")
        found = arrays(tmp_path / "a.nc")
        np.testing.assert_allclose(found["PRODUCT/inner/t2m"], T2M)
        np.testing.assert_array_equal(found["PRODUCT/inner/lat"], [[51.5]] * 3)


def packed_hdf5(path: Path) -> Path:
    """As NetCDF-4 and MODIS files are: two dimensions, of which one has no variable."""
    with h5py.File(path, "w") as file:
        file["time"] = np.array([0, 36], "i4")
        file["time"].attrs["units"] = np.bytes_("hours since 2020-01-01")
        file["x"] = np.zeros(3, "f4")
        file["time"].make_scale("time")
        file["x"].make_scale("This is a netCDF dimension but not a netCDF variable.         3")
        file["v"] = np.array([[1, 2, -9], [4, 5, 6]], "i2")
        file["v"].dims[0].attach_scale(file["time"])
        file["v"].dims[1].attach_scale(file["x"])
        file["v"].attrs.update({"scale_factor": np.array([0.5]), "_FillValue": np.array([-9], "i2"), "units": "K"})
    return path


@pytest.mark.parametrize("suffix", [".h5", ".nc"])
def test_hdf5_with_scales(tmp_path: Path, suffix: str) -> None:
    found = arrays(packed_hdf5(tmp_path / f"a{suffix}"))
    assert set(found.variables) == {"time", "v"}
    np.testing.assert_array_equal(found["v"], [[0.5, 1, np.nan], [2, 2.5, 3]])
    assert found["time"].values.tolist() == np.array(["2020-01-01", "2020-01-02T12"], "M8[ns]").tolist()
    assert found["v"].attrs == {"units": "K"}


def test_packed_values_without_names_of_dimensions(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["grid/v"] = np.array([1, 2, 255], "u1")
        file["grid/v"].attrs.update({"scale_factor": np.array([0.1]), "_FillValue": np.array([255], "u1")})
        file["n"] = [1, 2, 3]
    np.testing.assert_allclose(arrays(tmp_path / "a.h5")["grid/v"], [0.1, 0.2, np.nan])
    with pytest.raises(tfr.errors.EncodeError, match=r"record_dim='x': its dimensions have no names"):
        arrays(tmp_path / "a.h5", record_dim="x")


def test_without_xarray_packed_values_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = packed_hdf5(tmp_path / "a.h5")
    monkeypatch.setitem(sys.modules, "xarray", None)
    target = tmp_path / "b.tfrecord"
    with pytest.raises(
        tfr.errors.MissingDependencyError, match=r"'(v|time)'.*pip install 'tfrecord_io\[xarray\]'.*decode_cf=False"
    ):
        tfr.convert(path, target)
    assert not target.exists()
    tfr.convert(path, target, source_options={"decode_cf": False})
    assert tfr.read_table(target)["time"].to_pylist() == [0, 36]


def test_what_cannot_be_decoded(tmp_path: Path) -> None:
    for units, calendar, error, reason in (
        (
            "fortnights since 2020-01-01",
            "standard",
            tfr.errors.DecodeError,
            "t: units of .* cannot be read.*decode_cf=False",
        ),
        ("days since 2020-01-01", "360_day", tfr.TFRecordError, "decode_cf=False"),
    ):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            file["t"] = [1, 2]
            file["t"].attrs.update({"units": units, "calendar": calendar})
        with pytest.raises(error, match=reason):
            arrays(tmp_path / "a.h5")
        assert arrays(tmp_path / "a.h5", decode_cf=False)["t"].values.tolist() == [1, 2]


@pytest.mark.matrix
@pytest.mark.parametrize(
    ("calendar", "since"),
    [
        *((name, "2000-02-01") for name in ("360_day", "noleap", "365_day", "all_leap", "366_day", "julian")),
        *((name, "1582-09-15") for name in ("standard", "gregorian")),  # before and after the days that were left out
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_xarray_decodes_dates_of_another_calendar_afterwards(
    tmp_path: Path, kind: str, calendar: str, since: str
) -> None:
    pytest.importorskip("cftime")
    days = ("time", np.arange(27, 33), {"units": f"days since {since}", "calendar": calendar})
    data = xr.Dataset({"x": ("time", np.arange(6))}, {"time": days})
    path = stored(data, tmp_path, kind)
    with pytest.raises(tfr.TFRecordError, match=r"(of a calendar.*that no type has|between).*decode_cf=False"):
        arrays(path)
    found = arrays(path, decode_cf=False)
    assert found["time"].attrs == days[2]
    assert xr.decode_cf(found)["time"].values.tolist() == xr.decode_cf(data)["time"].values.tolist()
    tfr.convert(path.with_name("a.tfrecord"), tmp_path / "b.nc")
    with xr.open_dataset(tmp_path / "b.nc") as again:
        assert again["time"].values.tolist() == xr.decode_cf(data)["time"].values.tolist()


def test_attributes_of_any_type_are_errors_or_do_no_harm(tmp_path: Path) -> None:
    """Also those that the HDF5 library itself ends the process for."""
    keys = (
        "scale_factor add_offset _FillValue missing_value _Unsigned units calendar dtype _Encoding coordinates bounds"
    )
    names = (*keys.split(), "CLASS", "NAME", "DIMENSION_LIST", "_Netcdf4Coordinates", "_Netcdf4Dimid")
    values = [0.5, "abc", b"x", [1, 2, 3], np.array([[1.0]]), np.nan, np.inf, -1, 2**63 - 1, True, "bool", np.zeros(0)]
    values += ["days since 2000", "s since 1", "days since -5000-01-01", "timedelta64[banana]", "noleap"]
    random = Random(1)
    for _ in range(rounds(1500, 50)):
        with h5py.File(tmp_path / "a.h5", "w") as file:
            for name in ("v", "w"):
                array = np.array([1, 2, 3]).astype(random.choice(["i1", "u2", "i8", "f4", "f8", "?"]))
                file[name] = array if random.random() < 0.8 else np.array([[b"a", b"b"]] * 3, "S1")
                for key in random.sample(names, random.choice([1, 2, 3])):
                    file[name].attrs[key] = random.choice([*values, "DIMENSION_SCALE"])
        with suppress(tfr.TFRecordError):
            arrays(tmp_path / "a.h5", decode_cf=random.random() < 0.9)


def test_arrays_that_share_no_dimension_are_not_joined_by_position(tmp_path: Path) -> None:
    data = xr.Dataset({"t": (("time", "lat"), np.eye(3)), "area": ("lat", np.arange(3.0))}, {"lat": np.arange(3.0)})
    data.to_zarr(tmp_path / "a.zarr", zarr_format=2)
    with pytest.raises(tfr.errors.EncodeError, match=r"'area': its dimensions are \(lat\).*exclude it with columns="):
        arrays(tmp_path / "a.zarr", record_dim="time")
    np.testing.assert_array_equal(
        arrays(tmp_path / "a.zarr", record_dim="time", columns="!area")["lat"], [[0, 1, 2]] * 3
    )


@pytest.mark.parametrize("target", ["b.zarr", "b.h5", "b.nc"])
def test_attributes_are_kept_where_the_target_has_a_place(tmp_path: Path, target: str) -> None:
    path = stored(DATA.drop_vars("name"), tmp_path, "zarr2", PACKED)
    strange = {} if target == "b.nc" else {"none": None, "ragged": [[1], [1, 2]]}  # NetCDF has no place for these
    data = {"n": xr.DataArray([1], dims="t", attrs={**strange, "words": ["a", "b"]})}
    tfr.write_tfrecord(data, tmp_path / "c.tfrecord")
    tfr.convert(tmp_path / "c.tfrecord", (tmp_path / "c").with_suffix(Path(target).suffix))
    tfr.convert(path, tmp_path / "a.tfrecord", float64="raw")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / target)
    again = arrays(tmp_path / target)
    np.testing.assert_allclose(again["t2m"], T2M)
    assert again["t2m"].attrs == {"units": "K", "levels": [1, 2]}


def test_a_written_zarr_folder_opens_in_xarray(tmp_path: Path, recwarn: Any) -> None:
    data = {"n": [0, 1, 2], "x/y": np.zeros((3, 2, 4), "f4"), "text": ["a", "", "c"], "at": TIMES[[0, 1, 1]]}
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.zarr")
    recwarn.clear()
    opened = xr.open_zarr(tmp_path / "a.zarr")
    assert opened["n"].dims == ("record",)
    assert opened["n"].values.tolist() == [0, 1, 2]
    assert opened["n"].dtype == np.int64
    assert opened["text"].values.tolist() == ["a", "", "c"]
    np.testing.assert_array_equal(opened["at"], data["at"])
    assert xr.open_zarr(tmp_path / "a.zarr", group="x")["y"].dims == ("record", "y_0", "y_1")
    assert not [w for w in recwarn if "consolidated" in str(w.message)]


def test_an_array_without_names_does_not_join_other_dimensions_by_position(tmp_path: Path) -> None:
    path = str(tmp_path / "a.zarr")
    data = xr.Dataset({"a": (("y", "x"), np.arange(4.0).reshape(2, 2)), "b": (("x",), [1.0, 2.0])})
    data.to_zarr(path, zarr_format=2, consolidated=False)
    pytest.importorskip("zarr").open_group(path, zarr_format=2).create_array("c", data=np.array([7, 8]))
    with pytest.raises(tfr.errors.EncodeError, match=r"no names.*'y'"):
        tfr.convert(path, tmp_path / "all.tfrecord")
    tfr.convert(path, tmp_path / "some.tfrecord", columns=["a", "c"])
    assert tfr.read_table(tmp_path / "some.tfrecord").to_pydict() == {"a": [[0, 1], [2, 3]], "c": [7, 8]}


@pytest.mark.parametrize("suffix", ["h5", "zarr"])
def test_the_attributes_of_many_arrays_are_looked_at_once(tmp_path: Path, suffix: str) -> None:
    counts = []
    for columns in (40, 320):
        path = tmp_path / f"{columns}"
        tfr.write_tfrecord({f"x{i}": [i] for i in range(columns)}, f"{path}.tfrecord")
        tfr.convert(f"{path}.tfrecord", f"{path}.{suffix}")
        counts.append(calls(lambda path=path: tfr.convert(f"{path}.{suffix}", f"{path}-again.tfrecord")))
    assert counts[1] < 9 * counts[0], counts
