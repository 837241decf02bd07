"""Which libraries' types are recognized, and what is advised for values that cannot be stored."""

from __future__ import annotations

import datetime as dt
import math
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from dateutil.relativedelta import relativedelta
from dateutil.tz import gettz, tzoffset, tzutc
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.sparse import coo_array, csr_array

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.columns.arrow.input.batch_source import open_input
from tfrecord_io.columns.arrow.input.from_arrays import table_of_arrays
from tfrecord_io.columns.arrow.input.from_pandas import table_of_frame
from tfrecord_io.errors import EncodeError, SchemaError

WRITE_IN_THREADS = """
import sys, threading, tfrecord_io as tfr
errors, barrier, imports = [], threading.Barrier(8), sys.argv[2]

def write(number):
    barrier.wait()
    if imports and number == 7:
        __import__(imports)
    try:
        tfr.write_tfrecord({"a": [1, 2, 3], "b": ["x", "y", "z"]}, f"{sys.argv[1]}/{number}.tfrecord")
    except BaseException as error:
        errors.append(error)

threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if errors:
    raise errors[0]
"""


@pytest.mark.storm
@pytest.mark.parametrize("imports", ["", "pandas"])
def test_threads_write_while_pandas_is_being_imported(tmp_path: Path, imports: str) -> None:
    for _ in range(rounds(20, 1)):
        subprocess.run([sys.executable, "-c", WRITE_IN_THREADS, tmp_path, imports], check=True, timeout=120)
        assert len(list(tmp_path.iterdir())) == 8


@pytest.mark.parametrize(
    ("cells", "type_"),
    [
        ([b"\xffa", "b", None], pa.binary()),
        ([pd.DataFrame({"x": [1, 2]})], pa.struct({"x": pa.list_(pa.int64())})),
        ([tfr.train.Example(), tfr.train.Example()], pa.binary()),
        ([2**70, 1], pa.string()),
        ([1, "a", None], pa.string()),
        ([pd.Series([1, 2]), None], pa.list_(pa.int64())),
    ],
    ids=["bytes and text", "frames", "messages", "large integers", "numbers and text", "arrays"],
)
def test_the_advised_conversion_of_values_works_and_loses_nothing(cells: list[Any], type_: pa.DataType) -> None:
    """Neither the repr of bytes nor that of an object is advised."""
    with pytest.raises(EncodeError, match="for example with ") as caught:
        table_of_arrays({"c": cells})
    names = {"numpy": np, "values": [c for c in cells if c is not None]}
    converted = eval(caught.value.advice.split("for example with ")[1], names)
    assert pa.array(converted).type == type_
    frame = pd.DataFrame({"c": pd.Series(cells, dtype=object)})
    with pytest.raises(EncodeError, match="for example with ") as caught:
        table_of_frame(frame)
    frame["c"] = eval(caught.value.advice.split("for example with ")[1], {**names, "df": frame.dropna()})
    assert table_of_frame(frame).table["c"].type in (type_, pa.large_string() if type_ == pa.string() else type_)


def test_bytes_among_numbers_have_no_conversion() -> None:
    with pytest.raises(EncodeError, match=r"types bytes, int are mixed types; write a column for each type"):
        table_of_arrays({"c": [b"a", 1]})


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70])
def test_integers_out_of_range_name_the_row(number: int) -> None:
    for cells in ([1, number], pd.Series([1, number], dtype=object)):
        with pytest.raises(EncodeError, match=r"record 1: feature 'c': an integer is outside the range of int64"):
            table_of_arrays({"c": cells})


LONE = "\ud800"
VALUES = [
    ([Decimal(1), Decimal("NaN")], 1, "a Decimal that is NaN or infinite"),
    ([Decimal("Infinity")], 0, "a Decimal that is NaN or infinite"),
    ([Decimal("1e100"), Decimal("1e-3")], None, "more than 76 digits"),
    (["a", None, LONE], 2, "a text with a lone surrogate"),
    ([["a"], None, ["b", LONE]], 2, "in the lists, a text with a lone surrogate"),
    ([[Decimal(1)], [Decimal("NaN")]], 1, "in the lists, a Decimal that is NaN"),
    ([["a"], ["b", float("nan")]], 1, "a list has NaN among values of the type str"),
    ([["a"], [1]], None, "in the lists, values of the Python types int, str are mixed types"),
    ([[1], [2, 2**70]], 1, "in the lists, an integer is outside the range of int64"),
]


@pytest.mark.parametrize(("cells", "row", "reason"), VALUES, ids=[reason for _, _, reason in VALUES])
def test_a_value_that_cannot_be_stored_is_told_from_its_type(cells: list[Any], row: int | None, reason: str) -> None:
    with pytest.raises(EncodeError, match=reason) as caught:
        table_of_arrays({"c": cells})
    assert (caught.value.feature, caught.value.record) == ("c", row)
    assert caught.value.advice
    assert caught.value.__suppress_context__


def test_a_value_that_no_record_can_hold_is_named() -> None:
    with pytest.raises(EncodeError, match="exceed 2147483647 bytes, protobuf's limit") as caught:
        table_of_arrays({"c": [b"", bytes(2**31)]})  # whose pages are never touched
    assert (caught.value.feature, caught.value.record) == ("c", 1)


@pytest.mark.parametrize("shape", [(0, 2**31), (0, 2**20, 2**20, 2**10)], ids=str)
def test_an_array_whose_rows_no_record_can_hold_is_named(shape: tuple[int, ...]) -> None:
    with pytest.raises(EncodeError, match="more values than a record can hold") as caught:
        open_input({"x": np.zeros(shape, np.uint8)})
    assert caught.value.feature == "x"


@pytest.mark.parametrize("wrap", [lambda inner: [inner], lambda inner: {"a": inner}], ids=["lists", "dicts"])
def test_values_that_are_nested_too_deep_are_refused(wrap: Any) -> None:
    value = 1
    for _ in range(5000):
        value = wrap(value)
    for data in ({"x": [value]}, [{"x": value, "y": 1}], pd.DataFrame({"x": [value]})):
        with pytest.raises(EncodeError, match="nested more than 120 levels deep") as caught:
            open_input(data)
        assert caught.value.feature == "x"


@pytest.mark.parametrize(
    "data",
    [
        {LONE: [1]},
        [{LONE: 1}],
        pd.DataFrame([[1]], columns=pd.Index([LONE], dtype=object)),
        pd.DataFrame({"a": [1]}, index=pd.Index([5], name=LONE)),
    ],
    ids=["dict", "rows", "frame", "index"],
)
def test_a_name_with_a_lone_surrogate(data: Any, tmp_path: Path) -> None:
    with pytest.raises(EncodeError, match=r"name has a lone surrogate.*rename") as caught:
        tfr.write_tfrecord(data, tmp_path / "x.tfrecord")
    assert caught.value.feature == LONE
    with pytest.raises(SchemaError, match="name cannot be encoded as UTF-8"):
        tfr.write_tfrecord({"a": [1]}, tmp_path / "x.tfrecord", schema={LONE: int})


class Sparse:
    shape = (2, 2)

    def toarray(self) -> None: ...

    def __iter__(self) -> None: ...


FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"]})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pd.DataFrame, "expected a table, got the class pandas.*DataFrame: pass an object of it"),
        (Sparse(), r"Sparse is a sparse matrix, not a table: pass \{'x': matrix.toarray\(\)\}"),
        (csr_array(np.eye(2)), r"csr_array is one column and has no name: pass a dict, \{'x': matrix\}"),
        ([(1, 2)], "expected a table, got list of tuple: pass"),
        ([1, 2], "expected a table, got list of int: pass"),
        (FRAME.groupby("a"), "got pandas.*DataFrameGroupBy of tuple: pass"),
    ],
    ids=["class", "sparse", "scipy", "tuples", "numbers", "groups"],
)
def test_what_is_not_a_table_is_named(data: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        open_input(data)
    assert caught.type is TypeError


def test_a_row_of_a_frame_has_its_own_advice() -> None:
    with pytest.raises(EncodeError, match=r"pass df.iloc\[\[0\]\] instead"):
        open_input(FRAME.iloc[0])
    assert open_input(FRAME.iloc[[0]]).rows == 1


def test_an_index_of_objects_is_named_as_the_index() -> None:
    with pytest.raises(EncodeError, match=r"'__index_level_0__': .*df\.index\.map\(str\)"):
        open_input(FRAME.set_index(pd.Index([1, "a"])))


def test_a_series_of_polars_is_a_column_if_it_has_a_name() -> None:
    polars = pytest.importorskip("polars")
    assert open_input(polars.Series("n", [1, 2])).schema.names == ["n"]
    with pytest.raises(TypeError, match=r"polars\.Series without a name"):
        open_input(polars.Series([1, 2]))


@pytest.mark.parametrize("text", [["a\0b", "x"], [b"a\0b", b"x"], ["\0ü", "\0"]], ids=["text", "bytes", "first"])
def test_text_of_fixed_width_keeps_its_inner_nuls(text: list[Any], tmp_path: Path) -> None:
    """NumPy pads with NULs: only those at the end cannot be distinguished from the padding."""
    values = np.array(text)
    expected = values.tolist()
    forms = [
        values,
        np.repeat(values, 2)[::2],
        values.astype(values.dtype.newbyteorder()),
        np.ma.masked_array(values, [False, False]),
        [np.array(cell) for cell in values],
    ]
    for form in forms:
        assert table_of_arrays({"x": form}).table["x"].to_pylist() == expected
    masked = np.ma.masked_array(values, [False, True])
    assert table_of_arrays({"x": masked}).table["x"].to_pylist() == [expected[0], None]
    np.save(tmp_path / "x.npy", values)
    assert tfr.formats.open_npy(tmp_path / "x.npy").read_all()["x"].to_pylist() == expected
    np.savez(tmp_path / "z.npz", x=values)
    assert tfr.formats.open_npz(tmp_path / "z.npz").read_all()["x"].to_pylist() == expected
    for folder, cells in [("single", [values[0], values[1]]), ("lists", [values[:1], values[1:]])]:
        (tmp_path / folder).mkdir()
        for number, cell in enumerate(cells):
            np.save(tmp_path / folder / f"{number}.npy", cell)
        read = tfr.formats.open_npy(tmp_path / folder).read_all()[folder].to_pylist()
        assert read == [cell.tolist() for cell in cells]


ZONE = dt.UTC
EAST = tzoffset("EST", 3600)  # the name of a zone that is five hours west
DAY, TIME = dt.date(2020, 1, 1), dt.datetime(2020, 1, 1)


@pytest.mark.parametrize("form", ["array", "frame", "series"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([300, np.float16(0.5)], "float16, int are mixed types"),
        ([2**62, UUID(int=3)], "UUID, int are mixed types"),
        ([TIME, 1], "datetime, int are mixed types"),
        ([TIME, UUID(int=3)], "UUID, datetime are mixed types"),
        ([DAY, Decimal("1.5")], "Decimal, date are mixed types"),
        ([pd.Timestamp(TIME), 0.5, math.nan], "Timestamp, float are mixed types"),
        ([dt.timedelta(1), np.float32(0.5)], "float32, timedelta are mixed types"),
        ([DAY, TIME], "date, datetime are mixed types"),
        ([bytearray(b"a"), "b"], "bytearray, str are mixed types"),
        ([DAY, 1], "date, int are mixed types"),
        ([dt.time(1), np.int64(1)], "int64, time are mixed types"),
        ([dt.timedelta(1), 1], "int, timedelta are mixed types"),
        ([TIME, TIME.replace(tzinfo=ZONE)], "times with and without a time zone are mixed"),
        ([dt.time(1, tzinfo=ZONE)], "a time of day has a time zone"),
        ([pd.Timestamp("2020-01-01 00:00:00.000000001")], "record 0: .*a time has nanoseconds"),
        ([pd.Timedelta(1, "ns")], "record 0: .*a time has nanoseconds"),
        ([None, TIME.replace(tzinfo=EAST)], "its time zone, .*, would be read as 'EST'"),
        ([None, TIME.replace(tzinfo=tzoffset("mine", 60))], "its time zone, .*, would be read as 'mine'"),
        ([pd.DateOffset(months=1), pd.DateOffset(2, months=1)], "record 1: .*no interval that is <2 [*] DateOffsets"),
        ([pd.DateOffset(3)], "record 0: .*no interval that is <3 [*] DateOffsets>"),
        ([pd.DateOffset(months=1, normalize=True)], "record 0: .*no interval that is"),
        ([relativedelta(days=1, weekday=0)], "record 0: .*no interval that is relativedelta"),
        ([relativedelta(hours=1.5)], "record 0: .*no interval that is relativedelta"),
    ],
)
def test_values_that_arrow_would_change_are_refused(tmp_path: Path, values: list[Any], message: str, form: str) -> None:
    cells = pd.Series(values, dtype=object)
    data = pd.DataFrame({"x": cells}) if form == "frame" else {"x": cells if form == "series" else cells.to_numpy()}
    with pytest.raises(tfr.errors.EncodeError, match=message):
        tfr.write_tfrecord(data, tmp_path / "x.tfrecord")


@pytest.mark.parametrize("value", [TIME, DAY, dt.time(1), dt.timedelta(1), 2**62, np.array([1.5]), [math.nan, None]])
@pytest.mark.parametrize("missing", [math.nan, pd.NA, pd.NaT, None], ids=repr)
def test_a_series_in_a_mapping_is_written_as_in_a_frame(tmp_path: Path, value: Any, missing: Any) -> None:
    column = pd.Series([None, None, None], dtype=object)
    column[0], column[2] = value, missing
    tfr.write_tfrecord({"x": column}, tmp_path / "series", float64="raw")
    tfr.write_tfrecord(pd.DataFrame({"x": column}), tmp_path / "frame", float64="raw")
    found, expected = (tfr.read_table(tmp_path / name)["x"] for name in ("series", "frame"))
    assert (found.type, repr(found.to_pylist())) == (expected.type, repr(expected.to_pylist()))
    assert found.null_count == 2


NANOSECOND = pd.Timestamp("2020-01-01 00:00:00.000000001")


@pytest.mark.parametrize("form", ["list", "tuple", "array", "frame", "dicts", "lists of dicts", "dicts of lists"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([300, np.float16(0.5)], "float16, int are mixed types"),
        ([b"a", "b"], "bytes, str are mixed types"),
        ([DAY, TIME], "date, datetime are mixed types"),
        ([dt.time(1), 1], None),
        ([dt.timedelta(1), 1], None),
        ([TIME, TIME.replace(tzinfo=ZONE)], "times with and without a time zone are mixed"),
        ([dt.time(1, tzinfo=ZONE)], "a time of day has a time zone"),
        ([NANOSECOND], "a time has nanoseconds"),
        ([pd.Timedelta(1, "ns")], "a time has nanoseconds"),
        ([TIME.replace(tzinfo=EAST)], "would be read as 'EST'"),
        ([relativedelta(days=1, weekday=0)], "no interval that is"),
    ],
    ids=str,
)
def test_values_in_lists_and_dicts_that_arrow_would_change_are_refused(
    tmp_path: Path, values: list[Any], message: str | None, form: str
) -> None:
    dicts = [{"a": value} for value in values]
    cells: dict[str, Any] = {
        "list": [None, [], values],
        "tuple": [None, [], tuple(values)],
        "array": [None, [], np.array(values, dtype=object)],
        "frame": [None, [], values],
        "dicts": [None, {}, *dicts],
        "lists of dicts": [None, [], dicts],
        "dicts of lists": [None, {}, {"a": values}],
    }
    data = pd.DataFrame({"x": cells[form]}) if form == "frame" else {"x": cells[form]}
    with pytest.raises(tfr.errors.EncodeError, match=message) as caught:
        tfr.write_tfrecord(data, tmp_path / "x.tfrecord")
    assert caught.value.feature == "x"
    has_record = "nanoseconds" in str(caught.value) or "interval" in str(caught.value)
    assert caught.value.record == (2 if has_record else None)


@pytest.mark.parametrize(
    ("values", "message"),
    [([DAY, TIME], "date, datetime are mixed types"), ([NANOSECOND] * 2, "a time has nanoseconds")],
)
def test_levels_of_an_index_that_arrow_would_change_are_refused(
    tmp_path: Path, values: list[Any], message: str
) -> None:
    level = pd.Index(values, dtype=object, name="k")
    several = pd.MultiIndex.from_arrays([[1, 2], level])
    for index in [level, several][: 1 if several.levels[1].dtype == "M8[ns]" else 2]:  # of pandas 2, which keeps them
        with pytest.raises(tfr.errors.EncodeError, match=f"'k': .*{message}"):
            tfr.write_tfrecord(pd.DataFrame({"x": [1, 2]}, index), tmp_path / "x.tfrecord")


@pytest.mark.parametrize("form", ["list", "lists", "dicts", "frame", "series"])
@pytest.mark.parametrize("other", [np.array([]), np.array([1]), np.array(["a"])], ids=str)
def test_arrays_of_times_among_others_are_refused(tmp_path: Path, other: Any, form: str) -> None:
    times = np.array(["2020-01-01"], "datetime64[s]")  # Arrow ends the process
    cells: dict[str, Any] = {"lists": [[times], [other]], "dicts": [{"a": times}, {"a": other}]}
    column: Any = cells.get(form, [times, other])
    column = pd.Series(column) if form == "series" else column
    data = pd.DataFrame({"x": pd.Series(column)}) if form == "frame" else {"x": column}
    with pytest.raises(tfr.errors.EncodeError, match=r"have the dtypes .*datetime64"):
        tfr.write_tfrecord(data, tmp_path / "x.tfrecord")


def test_arrays_of_times_beside_other_fields_of_dicts(tmp_path: Path) -> None:
    times = np.array(["2020-01-01"], "datetime64[s]")
    tfr.write_tfrecord({"x": [{"a": times, "b": np.array([1])}, {"a": None, "b": np.array([2])}]}, tmp_path / "x")
    assert tfr.read_table(tmp_path / "x")["x"].to_pylist() == [{"a": [TIME], "b": [1]}, {"a": None, "b": [2]}]


TIMES = [DAY, TIME, TIME.replace(tzinfo=ZONE), dt.timedelta(1), np.timedelta64(1, "ns")]


@pytest.mark.parametrize("value", TIMES, ids=str)
def test_missing_times_among_others(tmp_path: Path, value: Any) -> None:
    tfr.write_tfrecord(pd.DataFrame({"x": pd.Series([value, None, pd.NaT], dtype=object)}), tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord")["x"].null_count == 2


@pytest.mark.parametrize("form", ["column", "categories", "index", "level", "series", "times"])
def test_times_of_pandas_keep_their_zone_or_are_refused(tmp_path: Path, form: str) -> None:
    for zone in (
        EAST,
        tzoffset("mine", 60),
        gettz("Europe/Berlin"),
        tzutc(),
        dt.timezone(dt.timedelta(hours=3), "EST"),
    ):
        times = pd.DatetimeIndex(["2020-01-01", None, "2020-07-01"], tz="UTC").tz_convert(zone)
        data: dict[str, Any] = {
            "column": pd.DataFrame({"x": times}),
            "categories": pd.DataFrame({"x": pd.Categorical(times)}),
            "index": pd.DataFrame({"n": [1, 2, 3]}, times.rename("x")),
            "level": pd.DataFrame({"n": [1, 2, 3]}, pd.MultiIndex.from_arrays([times, [1, 2, 3]], names=["x", "y"])),
            "series": {"x": pd.Series(times)},
            "times": {"x": times},
        }
        if isinstance(zone, tzoffset):
            with pytest.raises(
                tfr.errors.EncodeError, match=r"'x': its time zone, .*; convert the times to a zoneinfo"
            ):
                tfr.write_tfrecord(data[form], tmp_path / "x.tfrecord")
            continue
        tfr.write_tfrecord(data[form], tmp_path / "x.tfrecord")
        read = pd.DatetimeIndex(tfr.read_tfrecord(tmp_path / "x.tfrecord").reset_index()["x"])
        assert read.tz_convert("UTC").equals(times.tz_convert("UTC"))
        assert read.tz_localize(None).equals(times.tz_localize(None))


@pytest.mark.parametrize("as_frame", [False, True])
@pytest.mark.parametrize("value", [pa.MonthDayNano([1, 2, 3]), pd.DateOffset(months=1, days=2, nanoseconds=3)], ids=str)
def test_intervals_of_months_days_and_nanoseconds(tmp_path: Path, value: Any, as_frame: bool) -> None:
    data = pd.DataFrame({"x": pd.Series([value, None], dtype=object)}) if as_frame else {"x": [value, None]}
    tfr.write_tfrecord(data, tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord")["x"].to_pylist() == [pa.MonthDayNano([1, 2, 3]), None]


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ([np.array([1], "M8[s]"), np.array([1], "M8[ms]")], "its arrays have the dtypes datetime64[ms], datetime64[s]"),
        (
            [np.array([1], "m8[s]"), np.array([1], "m8[ms]")],
            "its arrays have the dtypes timedelta64[ms], timedelta64[s]",
        ),
        ([np.int64([2**53 + 1]), np.float32([0.5])], "its arrays have the dtypes float32, int64"),
        ([np.zeros(2, "V4")], "arrays of dtype |V4 cannot be stored in a TFRecord"),
    ],
)
def test_arrays_that_cannot_be_stored_are_told_from_their_dtypes(cells: list[Any], reason: str) -> None:
    for data in ({"x": cells}, pd.DataFrame({"x": pd.Series(cells, dtype=object)})):
        with pytest.raises(EncodeError) as caught:
            open_input(data)
        assert (caught.value.reason, caught.value.feature) == (reason, "x")


def test_an_array_of_another_library_says_how_to_convert_it() -> None:
    for values, advice in ((coo_array([0, 1]), "pass its toarray()"), (da.arange(3), "with numpy.asarray")):
        with pytest.raises(EncodeError, match="a column is an array of NumPy or a list, not") as caught:
            open_input({"x": values})
        assert advice in caught.value.advice


class Sparse:
    """An array of the library sparse, of pydata, which NumPy refuses to make dense."""

    dtype, shape, ndim, size = np.dtype(float), (3, 3), 2, 9

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise RuntimeError("Cannot convert a sparse array to dense automatically.")

    def __len__(self) -> int:
        return 3

    def __getitem__(self, at: int) -> Sparse:
        return Sparse()

    def todense(self) -> np.ndarray:
        return np.eye(3)


def test_a_sparse_array_of_pydata_says_how_to_make_it_dense() -> None:
    with pytest.raises(EncodeError, match=r"a column is an array of NumPy or a list, not .*; pass its todense\(\)"):
        open_input({"x": Sparse()})


@pytest.mark.parametrize("text", [np.dtype(object), getattr(np.dtypes, "StringDType", lambda: np.dtype(object))()])
def test_the_advice_for_text_of_two_axes_works(text: Any, tmp_path: Path) -> None:
    array = np.array([["a", "bb"], ["c", "é"]], dtype=text)
    with pytest.raises(EncodeError, match=r"numpy\.array\(array\.tolist\(\)\)"):
        open_input({"x": array})
    tfr.write_tfrecord({"x": np.array(array.tolist())}, tmp_path / "a.tfrecord")
    assert tfr.read_arrays(tmp_path / "a.tfrecord")["x"].tolist() == array.tolist()


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2 has it")
@pytest.mark.parametrize("shape", [(2,), (1, 2)])
def test_the_advice_for_rows_of_text_of_any_width_works(shape: tuple[int, ...], tmp_path: Path) -> None:
    rows = [np.array(values, np.dtypes.StringDType()).reshape(shape) for values in (["a", "bb"], ["c", "é"])]
    with pytest.raises(EncodeError, match=r"StringDType\(\) cannot .* by numpy\.array\(array\.tolist\(\)\)"):
        open_input({"x": rows})
    tfr.write_tfrecord({"x": [np.array(row.tolist()) for row in rows]}, tmp_path / "a.tfrecord")
    assert [each.tolist() for each in tfr.read_arrays(tmp_path / "a.tfrecord")["x"]] == [row.tolist() for row in rows]


class Tensor:
    """An array of another library, such as PyTorch."""

    def __init__(self, values: np.ndarray, error: Exception | None = None) -> None:
        self.values, self.error = values, error
        self.shape, self.ndim, self.dtype = values.shape, values.ndim, f"torch.{values.dtype}"

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of a 0-d tensor")
        return len(self.values)

    def __dlpack__(self) -> None:
        raise AssertionError

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if self.error is not None:
            raise self.error
        return self.values


def test_arrays_of_another_library_are_columns() -> None:
    assert table_of_arrays({"x": Tensor(np.arange(3)[::-1])}).table["x"].to_pylist() == [2, 1, 0]


@pytest.mark.parametrize("dtype", [">i2", ">u8", ">f4", ">f8"])
@pytest.mark.parametrize("nan_to_null", [True, False])
def test_a_series_of_the_other_byte_order_is_that_of_a_frame(dtype: str, nan_to_null: bool) -> None:
    frame = pd.DataFrame({"x": np.array([1, 2, 0], dtype)})
    expected = table_of_frame(frame, None, nan_to_null, {}).table["x"]
    assert table_of_arrays({"x": frame["x"]}, nan_to_null).table["x"] == expected
    assert table_of_arrays({"x": pd.Index(frame["x"])}, nan_to_null).table["x"] == expected


def exchanged(values: np.ndarray, *names: str) -> Any:
    """An array that has only the protocols of these names."""

    def method(call: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *arguments, **keywords: call(*arguments, **keywords)

    protocols = {name: getattr(values, name) for name in names}
    return type("Exchanged", (), {name: method(of) if callable(of) else of for name, of in protocols.items()})()


@given(hnp.arrays(hnp.integer_dtypes(endianness="=") | hnp.boolean_dtypes(), hnp.array_shapes(max_dims=3)))
def test_arrays_with_one_protocol_are_those_of_numpy(values: np.ndarray) -> None:
    expected = table_of_arrays({"x": values})
    for names in (
        ["__dlpack__", "__dlpack_device__"],
        ["__dlpack__", "__dlpack_device__", "__len__"],
        ["__array__", "__len__"],
        ["__array_interface__", "__len__"],
    ):
        found = table_of_arrays({"x": exchanged(values, *names)})
        assert found.schema == expected.schema
        assert list(found.batches(1 << 20)) == list(expected.batches(1 << 20))


def test_an_object_that_only_has_a_length_is_no_column() -> None:
    for names in (["__len__"], ["__len__", "__cuda_array_interface__"]):
        with pytest.raises(EncodeError, match="feature 'x': a column is an array or a list, not Exchanged"):
            open_input({"x": type("Exchanged", (), dict.fromkeys(names, lambda self: 1))()})


@pytest.mark.parametrize("error", [RuntimeError, TypeError, ValueError, BufferError])
def test_an_array_that_numpy_cannot_have_keeps_its_librarys_advice(error: type[Exception]) -> None:
    values = Tensor(np.zeros(2), error("Use tensor.detach().numpy() instead."))
    with pytest.raises(EncodeError, match=r"feature 'x': this .*Tensor does not become .*: Use tensor\.detach\(\)"):
        open_input({"x": values})


def test_a_tensor_without_dimensions_is_one_value() -> None:
    one, row = Tensor(np.array(1)), Tensor(np.arange(2))
    with pytest.raises(EncodeError, match="feature 'x': an array without dimensions has no rows"):
        open_input({"x": one})
    with pytest.raises(EncodeError, match=r"feature 'x': .* Tensor cannot be stored .*numpy\.asarray\(v\)"):
        open_input([{"x": row, "k": one}])


@pytest.mark.parametrize(
    ("values", "message"),
    [(np.arange(2), r"Tensor of shape \(2,\) .* has no name: pass a dict"), (np.array(1), "got a single value of dt")],
)
def test_a_tensor_alone_is_no_table(values: np.ndarray, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        open_input(Tensor(values))


def test_fields_that_would_be_one_column_are_refused(tmp_path: Path) -> None:
    values = np.zeros(2, [("a", [("b", "i4")]), ("a/b", "i4")])
    with pytest.raises(tfr.errors.EncodeError, match="feature 'a/b': two fields of the structured array"):
        tfr.write_tfrecord(values, tmp_path / "a.tfrecord")


@given(st.lists(st.integers(-(2**31) - 2, 2**31 + 1) | st.integers(1 - 2**63, 2**63 - 1), min_size=1, max_size=5))
def test_days_are_kept_or_refused(days: list[int]) -> None:
    values = np.array(days, np.int64).view("M8[D]")
    far = [row for row, day in enumerate(days) if not -(2**31) <= day < 2**31]
    if far:
        with pytest.raises(EncodeError, match="feature 'x': a date has more than") as caught:
            table_of_arrays({"x": values})
        assert caught.value.record == far[0]
    else:
        assert table_of_arrays({"x": values}).table["x"].cast(pa.int32()).to_pylist() == days


def test_days_that_are_missing_may_be_any() -> None:
    values = np.ma.array(np.array([2**40, 1], np.int64).view("M8[D]"), mask=[True, False])
    found = table_of_arrays({"x": values, "y": np.array(["NaT", "1970-01-02"], "M8[D]")}).table.to_pylist()
    assert found == [{"x": None, "y": None}, {"x": dt.date(1970, 1, 2), "y": dt.date(1970, 1, 2)}]


TEXTS = pa.map_(pa.string(), pa.list_(pa.string()))
PAIR = [{"key": "a", "value": 1}, {"key": "b", "value": None}]
MAPS = pa.table(
    {
        "m": pa.array([[("a", 1), ("b", None)], [], None], pa.map_(pa.string(), pa.int64())),
        "floats": pa.array([[(1, 0.5)], None, []], pa.map_(pa.int8(), pa.float32())),
        "inner": pa.array(
            [{"m": [("a", ["x"])]}, None, {"m": None}], pa.struct({"m": pa.map_(pa.string(), pa.list_(pa.string()))})
        ),
        "lists": pa.array([[[("a", dt.date(2020, 1, 1))], []], [], None], pa.list_(pa.map_(pa.string(), pa.date32()))),
        "n": [1, 2, 3],
    }
)
AS_DICTS = {"m": [{"a": 1, "b": None}, {}, None], "n": [1, 2, 3]}
PYTHON: dict[str, Any] = {
    "to_pydict": MAPS.to_pydict,
    "to_pandas": MAPS.to_pandas,
    "to_pandas of columns": lambda: MAPS.to_pandas().to_dict("series"),
    "to_pylist": MAPS.to_pylist,
    "an iterator of rows": lambda: iter(MAPS.to_pylist()),
    "dicts": lambda: MAPS.to_pydict(maps_as_pydicts="strict"),
    "a frame of dicts": lambda: MAPS.to_pandas(maps_as_pydicts="strict"),
    "lists of structs": lambda: {
        **MAPS.to_pydict(),
        "m": [[{"key": "a", "value": 1}, {"key": "b", "value": None}], [], None],
    },
}


@pytest.mark.parametrize("data", PYTHON.values(), ids=PYTHON)
def test_maps_of_python_are_written_under_a_schema(tmp_path: Path, data: Any) -> None:
    tfr.write_tfrecord(data(), tmp_path / "a.tfrecord", schema=MAPS.schema)
    read = tfr.read_table(tmp_path / "a.tfrecord")
    assert read.schema.types == MAPS.schema.types
    assert read.to_pydict() == MAPS.to_pydict()
    frame = tfr.read_tfrecord(tmp_path / "a.tfrecord")
    tfr.write_tfrecord(frame, tmp_path / "b.tfrecord", schema=MAPS.schema)
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pydict() == MAPS.to_pydict()


def test_a_value_that_is_no_map_is_named(tmp_path: Path) -> None:
    schema = {"m": pa.map_(pa.string(), pa.int64())}
    for data in ({"m": [{"a": 1}, [("b", "x")]]}, pd.DataFrame({"m": [{"a": 1}, "text"]}), [{"m": {}}, {"m": {1: 2}}]):
        with pytest.raises(EncodeError, match=r"record 1: feature 'm': .* schema's type, map<string, int64>") as caught:
            tfr.write_tfrecord(data, tmp_path / "a.tfrecord", schema=schema)
        assert caught.value.record == 1
    floats = {"m": pa.map_(pa.string(), pa.float32())}
    with pytest.raises(EncodeError, match="record 0: feature 'm': the schema declares float32"):
        tfr.write_tfrecord({"m": [{"a": 0.1}]}, tmp_path / "a.tfrecord", schema=floats, float64="error")


def test_series_of_other_rows_are_refused(tmp_path: Path) -> None:
    """As pandas aligns them, so that a position is not a row."""
    first, second = pd.Series([1, 2], index=["x", "y"]), pd.Series([3, 4], index=["y", "x"])
    with pytest.raises(EncodeError, match=r"feature 'b': its index differs from that of 'a'; align the Series"):
        tfr.write_tfrecord({"a": first, "c": [5, 6], "b": second}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"a": first, "c": [5, 6], "b": second.to_numpy()}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"a": first, "b": first + 1, "c": second.index}, tmp_path / "a.tfrecord")
