"""Columns of TFRecord files as `.npy` and `.npz`."""

from __future__ import annotations

import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as nps

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.array_files import to_numpy_files
from tfrecord_io.errors import DecodeError, SchemaWarning
from tfrecord_io.read.scan_rows import ScanRows

dtypes = st.one_of(
    nps.boolean_dtypes(),
    nps.integer_dtypes(endianness="<"),
    nps.floating_dtypes(endianness="<"),
    nps.complex_number_dtypes(endianness="<"),
)


@given(nps.arrays(dtypes, nps.array_shapes(min_dims=1, max_dims=3, min_side=1)), st.booleans())
def test_arrays_round_trip(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, compressed: bool) -> None:
    folder = tmp_path_factory.mktemp("npy")
    tfr.write_tfrecord({"x": array, "n": np.arange(len(array))}, folder / "x.tfrecord", float64="raw")
    report = tfr.formats.write_npy(folder / "x.tfrecord", folder / "x.npy", "x")
    assert (report.records, report.columns) == (len(array), ("x",))
    assert report.bytes == (folder / "x.npy").stat().st_size
    actual = np.load(folder / "x.npy", allow_pickle=False)
    assert (actual.dtype, actual.shape, actual.tobytes()) == (
        array.dtype,
        array.shape,
        np.ascontiguousarray(array).tobytes(),
    )
    tfr.formats.write_npz(folder / "x.tfrecord", folder / "x.npz", compressed=compressed)
    with np.load(folder / "x.npz", allow_pickle=False) as archive:
        assert archive["x"].tobytes() == actual.tobytes()
        assert archive["n"].tolist() == list(range(len(array)))


@pytest.mark.parametrize("group_bytes", [0, 100, 1 << 20])
@given(shapes=st.lists(st.sampled_from([(), (2,), (0,), (3, 2)]), min_size=1, max_size=6), rows=st.integers(1, 9))
def test_columns_are_written_in_groups(
    tmp_path_factory: pytest.TempPathFactory, group_bytes: int, shapes: list[tuple[int, ...]], rows: int
) -> None:
    folder = tmp_path_factory.mktemp("npz")
    rng, groups = np.random.default_rng(0), pytest.MonkeyPatch()
    data = {f"c{at}": rng.integers(0, 100, (rows, *shape)) for at, shape in enumerate(shapes)}
    tfr.write_tfrecord(
        {**data, "text": [str(row) * row for row in range(rows)]},
        folder / "x.tfrecord",
        column_encoding=dict.fromkeys(data, "raw"),
    )
    source = tfr.dataset(folder / "x.tfrecord", batch_size=2)
    reported: list[tfr.typing.Progress] = []
    with groups.context() as patch:
        patch.setattr(to_numpy_files, "_GROUP_BYTES", group_bytes)
        assert tfr.formats.write_npz(source, folder / "x.npz", progress=reported.append).records == rows
    with np.load(folder / "x.npz") as archive:
        for name, array in data.items():
            np.testing.assert_array_equal(archive[name], array, strict=True)
        assert archive["text"].tolist() == [str(row) * row for row in range(rows)]
    assert not reported or reported[-1].done == reported[-1].total


@pytest.mark.parametrize("write", [tfr.formats.write_npz, tfr.formats.write_npy])
def test_many_columns_are_read_twice(tmp_path: Path, write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({f"c{at}": [at, 2] for at in range(50)}, tmp_path / "x.tfrecord")
    opened: list[object] = []
    monkeypatch.setattr(to_numpy_files, "ScanRows", lambda scan: opened.append(scan) or ScanRows(scan))
    write(tmp_path / "x.tfrecord", tmp_path / "x")
    assert len(opened) == 2


def test_text_has_the_width_of_the_longest_value(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": ["a", "böse", ""] * 50_000}, tmp_path / "x.tfrecord")
    tfr.formats.write_npy(tfr.dataset(tmp_path / "x.tfrecord", batch_size=1000), tmp_path / "x.npy")
    actual = np.load(tmp_path / "x.npy")
    assert actual.dtype == np.dtype("U4")
    assert actual.tolist() == ["a", "böse", ""] * 50_000


def test_lists_of_one_length_are_an_axis(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2], [3, 4], [5, 6]]}, tmp_path / "x.tfrecord")
    tfr.formats.write_npy(tfr.dataset(tmp_path / "x.tfrecord", batch_size=1), tmp_path / "x.npy")
    assert np.load(tmp_path / "x.npy").tolist() == [[1, 2], [3, 4], [5, 6]]


def test_no_records_are_an_empty_array(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.zeros((4, 2, 2), np.int16)}, tmp_path / "x.tfrecord")
    tfr.formats.write_npy(tfr.dataset(tmp_path / "x.tfrecord", limit=0), tmp_path / "x.npy")
    actual = np.load(tmp_path / "x.npy")
    assert (actual.shape, actual.dtype) == ((0, 2, 2), np.int16)


def test_no_records_are_an_empty_array_of_text(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": ["a"], "y": [["b"]]}, tmp_path / "x.tfrecord")
    tfr.formats.write_npz(tfr.dataset(tmp_path / "x.tfrecord", limit=0), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        found = [(name, archive[name].dtype.kind, len(archive[name])) for name in archive]
    assert found == [("x", "U", 0), ("y", "U", 0)]


@pytest.mark.parametrize(
    ("column", "reason", "record"),
    [
        ([[1], [2, 3]], "several shapes", 0),
        ([1, None], "has no value", 1),
        ([b"\xff", b"\xfe"], "pickles", None),
        (["a\0b", "c\0"], "a text ends in a NUL", 1),
        ([["a", "b"], ["\0", "a"]], "a text ends in a NUL", 1),
    ],
)
def test_values_that_do_not_form_an_array_are_refused_and_leave_no_file(
    tmp_path: Path, column: list[object], reason: str, record: int | None
) -> None:
    tfr.write_tfrecord({"x": column}, tmp_path / "x.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=reason) as caught:
        tfr.formats.write_npy(tmp_path / "x.tfrecord", tmp_path / "x.npy")
    assert caught.value.record == record
    assert [path.name for path in tmp_path.iterdir()] == ["x.tfrecord"]


@pytest.mark.parametrize("target", ["x.npy", "x.npz", "x.h5", "x.zarr", "x.nc"])
@pytest.mark.parametrize("shape", [(2, 3), (2,), (0, 3)])
def test_bfloat16_is_refused_by_name(tmp_path: Path, target: str, shape: tuple[int, ...]) -> None:
    bfloat16 = pytest.importorskip("ml_dtypes").bfloat16
    data = {"x": np.ones(shape, bfloat16)}
    tfr.write_tfrecord(data, tmp_path / "a" / "x.tfrecord", shards=1, embed_schema=True)
    with pytest.raises(tfr.errors.EncodeError, match="feature 'x': the file format has no bfloat16"):
        tfr.convert(tmp_path / "a", tmp_path / target)
    assert not (tmp_path / target).exists()


@pytest.mark.parametrize("target", ["x.npy", "x.npz", "x.h5", "x.zarr", "x.nc"])
@pytest.mark.parametrize(
    "column",
    [
        [[b"a"], [b"b"]],
        [[b"\xff"], [b""]],
        [[[1], [2, 3]], [[4], [5]]],
        [[["a"]], [["b"]]],
        [[Decimal("1.10")], [Decimal("2.00")]],
        [Decimal("1.10"), Decimal("2.00")],
    ],
)
def test_values_that_are_objects_in_numpy_do_not_become_text(tmp_path: Path, target: str, column: list[Any]) -> None:
    tfr.write_tfrecord({"x": column}, tmp_path / "x.tfrecord")
    with pytest.raises(
        tfr.errors.EncodeError, match=r"feature 'x': the file format has no .*; (else )?exclude the column"
    ):
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / target)
    assert not (tmp_path / target).exists()


def test_bytes_that_may_be_arrays_are_to_be_declared(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [bytes(4), bytes(4)]}, tmp_path / "x.tfrecord")
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / "x.npz")
    assert 'schema_overrides={"x": tfr.tensor(' in caught.value.hint
    assert "--type 'x=tensor(uint8,(28,28))'" in caught.value.hint_cli
    overrides = {"x": tfr.tensor("uint8", (2, 2))}
    tfr.convert(tmp_path / "x.tfrecord", tmp_path / "x.npz", source_options={"schema_overrides": overrides})
    assert np.load(tmp_path / "x.npz")["x"].shape == (2, 2, 2)


def test_files_without_columns_are_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.empty(0)}, tmp_path / "none.tfrecord")
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="the files have no column"):
        tfr.formats.write_npy(tmp_path / "none.tfrecord", tmp_path / "x.npy")


STRUCTURED = [
    np.array([(1, 0.5), (2, 1.5)], [("id", "<i8"), ("größe", "<f4")]),
    np.array([(1, [[1, 2], [3, 4]], True)] * 3, [("id", "<u2"), ("名", "<f2", (2, 2)), ("ok", "?")]),
    np.array([(("2020-01-01", 1j), "abc")] * 5, [("at", [("day", "<M8[s]"), ("z", "<c16")]), ("name", "<U3")]),
]


@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
@pytest.mark.parametrize("array", STRUCTURED, ids=lambda array: str(len(array)))
def test_structured_arrays_round_trip(tmp_path: Path, array: np.ndarray) -> None:
    """Fields are columns, and those of fields ``field/inner``."""
    np.save(tmp_path / "x.npy", array)
    report = tfr.convert(tmp_path / "x.npy", tmp_path / "x.tfrecord", float64="raw")
    assert report.records == len(array)
    assert (
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / "y.npy", source_options={"batch_size": 2}).columns
        == report.columns
    )
    actual = np.load(tmp_path / "y.npy")
    assert actual.dtype.names == report.columns
    for name in report.columns:
        outer, *inner = name.split("/")
        expected = array[outer][inner[0]] if inner else array[outer]
        np.testing.assert_array_equal(actual[name], expected, strict=True)


def test_rows_that_differ_in_shape_are_no_structured_array(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "y": [[1], [2, 3]]}, tmp_path / "x.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="several shapes"):
        tfr.formats.write_npy(tmp_path / "x.tfrecord", tmp_path / "x.npy")
    assert not (tmp_path / "x.npy").exists()


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns", "Y", "M", "h"])
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_missing_times_are_nat(tmp_path: Path, kind: str, unit: str) -> None:
    array = np.array([0, 7, "NaT", -3, "NaT"], f"{kind}[{unit}]")
    np.save(tmp_path / "x.npy", array)
    tfr.convert(tmp_path / "x.npy", tmp_path / "x.tfrecord")
    tfr.convert(tmp_path / "x.tfrecord", tmp_path / "y.npy", source_options={"batch_size": 2})
    assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a", b"abc", b"", b"\xff\x00z"], "S5"),
        np.array(["a", "böse", ""], "U7"),
        np.array([2**64 - 1, 0], np.uint64),
        np.array([0.1, np.nan]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_raw_columns_round_trip(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", x=array)
    for source in (tmp_path / "x.npy", tmp_path / "x.npz"):
        tfr.convert(source, tmp_path / "x.tfrecord", target_options={"column_encoding": {"x": "raw"}})
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / "y.npy")
        assert (tmp_path / "y.npy").read_bytes() == (tmp_path / "x.npy").read_bytes()


def test_bytes_are_refused_with_advice_to_store_them_raw(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([b"a", b"abc"]))
    tfr.convert(tmp_path / "x.npy", tmp_path / "x.tfrecord")
    with pytest.raises(
        tfr.errors.EncodeError, match=r'\(S3\), write them with write_tfrecord\(…, column_encoding=\{"x": "raw"\}\)'
    ):
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / "y.npy")


def test_filters_keep_rows(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"x": list(range(10)), "y": [[1]] * 9 + [[1, 2]], "s": ["a", "b"] * 5}, path)
    assert (
        tfr.formats.write_npy(tfr.dataset(path, filters=[("s", "==", "b")], limit=3), tmp_path / "x.npy", "x").records
        == 3
    )
    assert np.load(tmp_path / "x.npy").tolist() == [1, 3, 5]
    report = tfr.formats.write_npz(tfr.dataset(path, filters=[("x", "<", 4)]), tmp_path / "x.npz", columns=["y"])
    assert (report.records, report.columns) == (4, ("y",))
    with np.load(tmp_path / "x.npz") as archive:
        assert archive["y"].shape[0] == 4
    report = tfr.convert(path, tmp_path / "none.npy", target_options={"column": "x"}, filters=[("x", ">", 10)])
    assert report.records == len(np.load(tmp_path / "none.npy")) == 0
    source = tfr.dataset(path, batch_size=1, schema=RAGGED)
    with pytest.raises(tfr.errors.EncodeError, match="have the shape") as caught:
        tfr.formats.write_npy(tfr.dataset(source, filters=[("x", ">", 5)]), tmp_path / "y.npy", "y")
    assert caught.value.record == 9
    assert not (tmp_path / "y.npy").exists()


RAGGED = {"x": "int64", "y": "list<int64>"}


@pytest.mark.parametrize("name", ["!x", "*", "[a]"])
def test_a_name_that_is_a_pattern_in_columns_is_that_of_an_array(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({name: [1, 2], "x": [3, 4]}, tmp_path / "x.tfrecord")
    tfr.formats.write_npz(tmp_path / "x.tfrecord", tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        assert {name: archive[name].tolist() for name in archive} == {name: [1, 2], "x": [3, 4]}
    tfr.formats.write_npy(tmp_path / "x.tfrecord", tmp_path / "x.npy", name)
    assert np.load(tmp_path / "x.npy").tolist() == [1, 2]


@pytest.mark.fault(55)
@pytest.mark.parametrize("name", ["../x", "/etc/x", "a/../../x", "..", "a\0b", "..\\x", "c:/x", "C:\\x", "x" * 65_532])
def test_arrays_stay_inside_an_archive(tmp_path: Path, name: str) -> None:
    tfr.write_tfrecord({name: [1, 2], "y": [3, 4]}, tmp_path / "x.tfrecord")
    expected = f"{name}.npy"
    if name == "..":  # a plain file, "...npy"
        tfr.formats.write_npz(tmp_path / "x.tfrecord", tmp_path / "x.npz")
        assert expected in zipfile.ZipFile(tmp_path / "x.npz").namelist()
        return
    with pytest.raises(tfr.errors.EncodeError, match="its name cannot be that of a file in an archive") as caught:
        tfr.formats.write_npz(tmp_path / "x.tfrecord", tmp_path / "x.npz")
    assert caught.value.feature == name
    assert not (tmp_path / "x.npz").exists()
    assert tfr.formats.write_npz(tmp_path / "x.tfrecord", tmp_path / "x.npz", columns=["y"]).columns == ("y",)


DAY = [0, 86_399_000]
OTHER_TIMES = [
    *(pa.timestamp(unit, zone) for unit in ("s", "ms", "us", "ns") for zone in ("UTC", "Europe/Berlin", "+02:30")),
    *(pa.time32("ms"), pa.time64("us"), pa.time64("ns")),
]


@pytest.mark.parametrize("suffix", ["h5", "zarr", "nc"])
def test_zones_and_times_of_day_come_back_of_formats_with_attributes(tmp_path: Path, suffix: str) -> None:
    table = pa.table({str(type_): pa.array(DAY, pa.int64()).cast(_storage(type_)).cast(type_) for type_ in OTHER_TIMES})
    table = table.rename_columns([f"x{at}" for at in range(len(OTHER_TIMES))])
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"b.{suffix}")
    tfr.convert(tmp_path / f"b.{suffix}", tmp_path / "c.tfrecord")
    found = tfr.read_table(tmp_path / "c.tfrecord")
    assert found.select(table.column_names).cast(table.schema).equals(table)
    assert [found[name].type for name in table.column_names] == OTHER_TIMES


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("suffix", ["h5", "zarr", "nc"])
def test_times_come_back_in_their_unit_of_formats_with_attributes(tmp_path: Path, suffix: str, unit: str) -> None:
    years = [1700, 2262] if unit == "ns" else [1, 9999]
    values = [int(np.datetime64(f"{year:04}-01-01", unit).astype("i8")) + 1 for year in years]
    table = pa.table({"x": pa.array([*values, None], pa.timestamp(unit))})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"b.{suffix}")
    tfr.convert(tmp_path / f"b.{suffix}", tmp_path / "c.tfrecord")
    assert tfr.read_table(tmp_path / "c.tfrecord").select(["x"]).equals(table)


def _storage(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if pa.types.is_time32(type_) else pa.int64()


@pytest.mark.parametrize("target", ["b.npy", "b.npz", "b.h5", "b.zarr", "b.nc"])
def test_times_that_come_back_as_others_are_a_warning(tmp_path: Path, target: str) -> None:
    """In lists also where formats have attributes."""
    day = pa.FixedSizeListArray.from_arrays(pa.array(DAY, pa.time64("us")), 1)
    tfr.write_tfrecord({"x": day}, tmp_path / "a.tfrecord")
    with pytest.warns(SchemaWarning, match=r"column 'x': NumPy has no time64\[us\].* durations"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / target)
    zoned = pa.FixedSizeListArray.from_arrays(pa.array(DAY, pa.timestamp("s", "UTC")), 1)
    tfr.write_tfrecord({"x": zoned}, tmp_path / "a.tfrecord", mode="overwrite")
    with pytest.warns(SchemaWarning, match=r"column 'x': NumPy has no timestamp\[s, tz=UTC\].* without a zone"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"2{target}")


@pytest.mark.parametrize("stated", ["int8", "list<time64[us]>", "timestamp[us]", "time64[us]", "?", ""])
def test_a_stated_type_that_its_times_do_not_have_is_an_error(tmp_path: Path, stated: str) -> None:
    zarr = pytest.importorskip("zarr")
    tfr.write_tfrecord({"x": pa.array([1], pa.timestamp("us", "UTC"))}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b.zarr")
    zarr.open_group(tmp_path / "b.zarr", use_consolidated=False)["x"].attrs["tfrecord_io.type"] = stated
    zarr.consolidate_metadata(tmp_path / "b.zarr")
    with pytest.raises(DecodeError, match="x"):
        tfr.convert(tmp_path / "b.zarr", tmp_path / "c.tfrecord")
