"""Tables become frames with the dtypes that pandas has for them, or those that were written."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import TEXT_DTYPE
from tfrecord_io.apps.adapters.pandas import register_pandas
from tfrecord_io.columns.arrow.output.to_pandas import to_pandas
from tfrecord_io.errors import SchemaError


def restored(frame: pd.DataFrame, **options: Any) -> pd.DataFrame:
    return to_pandas(pa.Table.from_pandas(frame), whole_file=True, **options)


def same(frame: pd.DataFrame, **options: Any) -> None:
    pd.testing.assert_frame_equal(restored(frame, **options), frame)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (pa.array([1, None], pa.int8()), "Int8"),
        (pa.array([1, None], pa.uint64()), "UInt64"),
        (pa.array([1, 2], pa.int16()), "int16"),
        (pa.array([True, None]), "boolean"),
        (pa.array([True, False]), "boolean"),
        (pa.array(["a", None]), TEXT_DTYPE),
        (pa.array(["a"], pa.large_string()), TEXT_DTYPE),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0], pa.int8())), "boolean"),
        (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())), "boolean"),
        (pa.array([1.5, None], pa.float32()), "float32"),
        (pa.array(["a", None]).dictionary_encode(), "category"),
        (pa.array([0, None], pa.timestamp("us", "UTC")), "datetime64[us, UTC]"),
        (pa.array([0], pa.duration("s")), "timedelta64[s]"),
        (pa.array([dt.date(2020, 1, 1)]), "object"),
        (pa.array([b"\xff", None]), "object"),
        (pa.array([[1], None]), "object"),
        (pa.nulls(2), "object"),
    ],
)
def test_dtypes_of_inferred_columns(array: pa.Array, dtype: str) -> None:
    frame = to_pandas(pa.table({"x": array}))
    assert str(frame.dtypes["x"]) == dtype
    assert len(frame) == len(array)


@given(st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_integers_are_exact_whatever_is_missing(values: list[int | None]) -> None:
    column = to_pandas(pa.table({"x": pa.array(values, pa.int64())}))["x"]
    assert [None if pd.isna(v) else int(v) for v in column] == values
    assert column.dtype == ("Int64" if None in values else "int64")


def test_lists_are_arrays() -> None:
    cells = to_pandas(pa.table({"x": pa.array([[1, 2], []], pa.list_(pa.float32()))}))["x"]
    assert [type(cell) for cell in cells] == [np.ndarray, np.ndarray]
    assert cells[0].dtype == np.float32


def test_backends() -> None:
    table = pa.table({"n": pa.array([1], pa.int8()), "s": ["a"], "f": pa.array([1.0], pa.float32()), "b": [True]})
    assert [str(d) for d in to_pandas(table, "numpy_nullable").dtypes] == ["Int8", "string", "Float32", "boolean"]
    assert [str(d) for d in to_pandas(table, "pyarrow").dtypes] == [
        "int8[pyarrow]",
        "string[pyarrow]",
        "float[pyarrow]",
        "bool[pyarrow]",
    ]
    with pytest.raises(ValueError, match="dtype_backend"):
        to_pandas(table, "polars")


def test_text_is_that_of_pandas_with_and_without_a_description() -> None:
    table = pa.table({"s": ["a", None], "l": pa.array(["b", "c"], pa.large_string()), "n": [1, None], "x": [1, 2]})
    described = table.replace_schema_metadata(table.select(["x"]).to_pandas().pipe(pa.Schema.from_pandas).metadata)
    dtypes = [TEXT_DTYPE] * 2 + ["Int64", "int64"]
    assert [str(dtype) for dtype in to_pandas(table).dtypes] == dtypes
    pd.testing.assert_frame_equal(to_pandas(table), to_pandas(described))


FRAME = pd.DataFrame(
    {
        "i8": np.array([1, 2], "i1"),
        "flag": [True, False],
        "text": ["a", None],
        "Int64": pd.array([1, None], dtype="Int64"),
        "full": pd.array([1, 2], dtype="Int16"),
        "boolean": pd.array([True, None], dtype="boolean"),
        "Float32": pd.array([1.5, None], dtype="Float32"),
        "string": pd.array(["a", None], dtype="string"),
        "arrow": pd.array([1, 2], dtype="int64[pyarrow]"),
        "tz": pd.to_datetime(["2020", None]).tz_localize("Europe/Paris"),
        "td": pd.to_timedelta([1, 2], unit="s"),
        "cat": pd.Categorical(["x", None], categories=["z", "y", "x"], ordered=True),
    }
)


def test_written_dtypes_come_back() -> None:
    same(FRAME)
    assert list(restored(FRAME)["cat"].cat.categories) == ["z", "y", "x"]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([[1, 2], None]),
        pa.array([[[1.5]], []], pa.list_(pa.list_(pa.float64(), 1))),
        pa.array([{"a": 1, "b": "x"}, None]),
        pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int32())),
        pa.array(["a", None]).dictionary_encode(),
    ],
)
def test_dtypes_of_nested_arrow_types_come_back(array: pa.Array) -> None:
    frame = pd.DataFrame({"x": pd.array(array, dtype=pd.ArrowDtype(array.type)), "n": [1, 2]})
    same(frame)
    same(frame.set_index("n"))


@pytest.mark.parametrize(
    ("array", "read"),
    [
        (pa.array([Decimal("1.50"), None], pa.decimal128(10, 2)), pa.decimal128(10, 2)),
        (pa.array([Decimal("1.50"), None], pa.decimal256(50, 2)), pa.decimal256(50, 2)),
        (pa.array([[1], None], pa.large_list(pa.int64())), pa.list_(pa.int64())),
        (pa.array([["a"], None], pa.list_(pa.large_string())), pa.list_(pa.string())),
        (
            pa.array([{"a": ["b"]}], pa.struct({"a": pa.large_list(pa.string())})),
            pa.struct({"a": pa.list_(pa.string())}),
        ),
        (pa.array([[1], None], pa.list_view(pa.int64())), pa.list_(pa.int64())),
        (pa.array([1, 1, None], pa.run_end_encoded(pa.int32(), pa.int64())), pa.int64()),
        (
            pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["a"], pa.large_string())),
            pa.dictionary(pa.int8(), pa.string()),
        ),
    ],
    ids=lambda each: str(each) if isinstance(each, pa.DataType) else "",
)
def test_arrow_dtypes_without_a_name_in_pandas_come_back_from_files(
    array: pa.Array, read: pa.DataType, tmp_path: Path
) -> None:
    """Those with 64-bit offsets and run-ends as the column is read."""
    frame = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(array), "y": 1})
    expected = pd.DataFrame({"x": pd.array(array.to_pylist(), dtype=pd.ArrowDtype(read)), "y": 1})
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a.tfrecord"), expected)
    assert len(tfr.read_table(tmp_path / "a.tfrecord").to_pandas()) == len(array)  # pyarrow knows no such names
    if pa.types.is_decimal(read):
        tfr.write_tfrecord(frame.set_index("x"), tmp_path / "b.tfrecord")
        pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "b.tfrecord"), expected.set_index("x"))


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        (["a", None], pd.ArrowDtype(pa.string())),  # pandas has another dtype of its name
        (["a", None], "large_string[pyarrow]"),
        ([b"a"], "large_binary[pyarrow]"),
    ],
    ids=str,
)
def test_text_and_bytes_of_arrow_come_back_from_files(
    values: list[str | bytes | None], dtype: Any, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"x": pd.array(values, dtype=dtype), "y": 1})
    for at, written in enumerate((frame, frame.set_index("x"))):
        tfr.write_tfrecord(written, tmp_path / f"{at}.tfrecord")
        assert tfr.read_table(tmp_path / f"{at}.tfrecord").schema.field("x").type in (pa.string(), pa.binary())
        pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / f"{at}.tfrecord"), written)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(3, 7, 2, name="r"),
        pd.Index([5, 6], name="text"),  # a column has that name, too
        pd.Index([1, None], dtype="Int64"),
        pd.Index(["a", "b"]),
        pd.Index([True, False], name="flag"),
        pd.CategoricalIndex(["q", "r"], name="c"),
        pd.DatetimeIndex(["2020", "2021"], tz="UTC"),
        pd.MultiIndex.from_arrays([[1, 2], ["a", "b"]], names=["p", None]),
    ],
)
def test_written_index_comes_back(index: pd.Index) -> None:
    same(FRAME.set_axis(index))


@pytest.mark.parametrize(
    "columns",
    [
        pd.Index([0, 1], name="c"),
        pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["x", "y"]),
        pd.DatetimeIndex(["2020", "2021"], tz="UTC"),
        pd.Index([None, "a"], dtype=object),
        pd.Index([np.nan, "a"], dtype=TEXT_DTYPE),
        pd.Index([np.nan, 1.5], name="c"),
        pd.Index([True, False], name="is_new"),
        pd.Index([False, True], dtype="boolean"),
        pd.MultiIndex.from_tuples([("a", True), ("a", False)], names=["x", "y"]),
        pd.MultiIndex.from_tuples([(False, "a"), (False, "b")]),
    ],
)
def test_written_labels_come_back(columns: pd.Index) -> None:
    same(pd.DataFrame([[1, 2.0], [3, 4.0]], columns=columns))


def test_attributes_come_back() -> None:
    frame = FRAME.copy()
    frame.attrs = {"source": "x"}
    if b"attributes" not in pa.Table.from_pandas(frame).schema.metadata[b"pandas"]:
        pytest.skip("this version of Arrow does not store them")
    assert restored(frame).attrs == {"source": "x"}


@pytest.mark.filterwarnings("ignore:labels of columns")
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64", "float32", "float64", "bool"])
@pytest.mark.parametrize("fill", [0, 1, np.nan])
def test_sparse_columns_come_back(tmp_path: Path, dtype: str, fill: float) -> None:
    if fill != fill and np.dtype(dtype).kind != "f":
        return
    values = np.array([0, 1, 1, 0], dtype)
    column = pd.arrays.SparseArray(values, fill_value=np.dtype(dtype).type(fill))
    frame = pd.DataFrame({"x": column, 5: column, "y": range(4)})
    tfr.write_tfrecord(frame, tmp_path / "a")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a"), frame.rename(columns={5: "5"}))
    assert tfr.read_table(tmp_path / "a").to_pandas()["x"].tolist() == values.tolist()  # by pyarrow
    tfr.write_tfrecord(frame.iloc[:2], tmp_path / "d@*", mode="append")
    tfr.write_tfrecord(frame.iloc[2:], tmp_path / "d@*", mode="append")
    assert tfr.read_tfrecord(tmp_path / "d@*").dtypes["x"] == frame.dtypes["x"]
    tfr.write_tfrecord({"x": [None], "y": [4]}, tmp_path / "d@*", mode="append")
    assert tfr.read_tfrecord(tmp_path / "d@*")["x"].isna().sum() == 1
    for backend in ("pyarrow", "numpy_nullable"):
        assert "Sparse" not in str(tfr.read_tfrecord(tmp_path / "a", dtype_backend=backend).dtypes["x"])


@pytest.mark.parametrize("label", [("a", 0), ("a", None), (b"a", 2.5), (pd.Timestamp("2024-01-01"), ("b", 1)), b"a"])
@pytest.mark.filterwarnings("ignore:labels of columns")
def test_sparse_columns_come_back_under_any_label(tmp_path: Path, label: Any) -> None:
    frame = pd.DataFrame({"x": pd.arrays.SparseArray([0.0, 1.0])})
    frame.columns = pd.Index([label], tupleize_cols=True)
    tfr.write_tfrecord(frame, tmp_path / "a")
    assert tfr.read_tfrecord(tmp_path / "a").dtypes.tolist() == frame.dtypes.tolist()


@pytest.mark.parametrize("backend", ["pyarrow", "numpy_nullable"])
def test_levels_of_categories_are_read_with_each_backend(backend: Any) -> None:
    levels = [pd.Categorical(["b", "a"]), [1, 2]]
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.MultiIndex.from_arrays(levels, names=["k", "n"]))
    assert restored(frame, dtype_backend=backend).index.tolist() == [("b", 1), ("a", 2)]


def test_sparse_columns_that_are_read_without_gaps_are_named(tmp_path: Path) -> None:
    frame = pd.DataFrame({"when": pd.arrays.SparseArray(pd.to_datetime(["2020", "2021"]))})
    with pytest.warns(tfr.errors.SchemaWarning, match="column 'when' is Sparse.*read without gaps"):
        tfr.write_tfrecord(frame, tmp_path / "a")
    assert tfr.read_tfrecord(tmp_path / "a")["when"].tolist() == frame["when"].tolist()


@pytest.mark.parametrize("fill", ['"x"', "300", "0.5", "true", "[]", "1e999", "-1", "null"])
def test_what_sparse_columns_leave_out_is_checked(fill: str) -> None:
    entry = f'{{"name": "x", "numpy_type": "uint8", "metadata": {{"tfrecord_io.sparse": {fill}}}}}'
    table = pa.table({"x": pa.array([1, 2], "uint8")}, metadata={b"pandas": f'{{"columns": [{entry}]}}'})
    assert to_pandas(table).dtypes["x"] == np.uint8


def test_a_range_is_restored_for_a_whole_file_of_its_length_only() -> None:
    table = pa.Table.from_pandas(FRAME.set_axis(pd.RangeIndex(3, 7, 2, name="r")))
    assert to_pandas(table).index.equals(pd.RangeIndex(2))
    assert to_pandas(table.slice(1), whole_file=True).index.equals(pd.RangeIndex(1))
    assert to_pandas(pa.concat_tables([table, table]), whole_file=True).index.equals(pd.RangeIndex(4))
    assert to_pandas(table, whole_file=True).index.name == "r"


def test_projections_keep_what_is_there() -> None:
    frame = FRAME.set_index(["i8", "text"])
    table = pa.Table.from_pandas(frame)
    part = to_pandas(table.select(["cat", "text", "Int64"]))
    pd.testing.assert_frame_equal(part, frame[["cat", "Int64"]].reset_index("i8", drop=True))
    assert to_pandas(table.select(["flag"])).index.equals(pd.RangeIndex(2))
    assert to_pandas(table.select([])).shape == (2, 0)
    assert to_pandas(table.select(["text", "i8"])).index.names == ["i8", "text"]


def test_columns_that_the_metadata_does_not_know() -> None:
    numbered = pa.Table.from_pandas(pd.DataFrame({0: [1], 1: [True]})).append_column("path", pa.array(["a"]))
    frame = to_pandas(numbered)
    assert list(frame.columns) == ["0", "1", "path"]
    assert [str(d) for d in frame.dtypes] == ["int64", "bool", TEXT_DTYPE]


def test_values_that_went_missing_since_do_not_lose_bits() -> None:
    table = pa.Table.from_pandas(pd.DataFrame({"n": [2**62 + 1], "b": [True]}))
    metadata = table.schema.metadata
    more = pa.table({"n": [2**62 + 1, None], "b": [True, None]}).replace_schema_metadata(metadata)
    frame = to_pandas(more)
    assert [str(d) for d in frame.dtypes] == ["Int64", "boolean"]
    assert frame["n"][0] == 2**62 + 1


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"columns": 3, "index_columns": {}, "column_indexes": "x", "attributes": []}',
        b'{"columns": [3, {}, {"name": "x"}, {"name": 3, "field_name": "x", "numpy_type": "int64"}]}',
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "nonsense[3]"}]}).encode(),
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "string"}]}).encode(),
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "period[M]"}]}).encode(),
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "Sparse[int64]"}]}).encode(),
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "datetime64[ns, No/Where]"}]}).encode(),
        json.dumps({"columns": [{"name": "x", "field_name": "x", "numpy_type": "Int8"}]}).encode(),
        json.dumps(
            {"index_columns": ["y", 3, None, {"kind": "range", "start": 0, "stop": 10**30, "step": 1}]}
        ).encode(),
        json.dumps({"index_columns": [{"kind": "range", "start": 0, "stop": 2, "step": 0}]}).encode(),
        json.dumps({"index_columns": [{"kind": "range", "start": 0, "stop": 2, "step": 1, "name": {}}]}).encode(),
        json.dumps(
            {
                "columns": [{"name": "(" * 5000, "field_name": "x", "numpy_type": "int64"}],
                "column_indexes": [{"name": 1}, {}],
            }
        ).encode(),
        json.dumps(
            {
                "columns": [{"name": "x", "field_name": "x", "numpy_type": "int64"}],
                "column_indexes": [{"name": None, "pandas_type": "datetimetz"}],
            }
        ).encode(),
        json.dumps(
            {
                "columns": [{"name": "x", "field_name": "x", "numpy_type": "int64"}],
                "column_indexes": [{"name": None, "pandas_type": "decimal", "numpy_type": "object"}],
            }
        ).encode(),
    ],
)
def test_metadata_that_makes_no_sense_is_passed_over(metadata: bytes) -> None:
    table = pa.table({"x": [300, None]}).replace_schema_metadata({b"pandas": metadata})
    frame = to_pandas(table, whole_file=True)
    assert list(frame.columns) == ["x"]
    assert str(frame.dtypes["x"]) == "Int64"
    assert frame.index.equals(pd.RangeIndex(2))


def test_register_pandas_may_be_called_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pd, "read_tfrecord", None, raising=False)
    monkeypatch.setattr(pd.DataFrame, "to_tfrecord", None, raising=False)
    calls: list[Any] = []
    for name in ("read_tfrecord", "write_tfrecord"):
        monkeypatch.setattr(tfr, name, lambda *given, **options: calls.append((*given, options)))
    register_pandas()
    register_pandas()
    pd.read_tfrecord("a", limit=1)
    FRAME.to_tfrecord("b", shards=2)
    assert calls[0] == ("a", {"limit": 1})
    assert calls[1][0] is FRAME
    assert calls[1][1:] == ("b", {"shards": 2})


def test_a_level_of_the_index_that_has_no_hash_is_an_error() -> None:
    description = json.dumps({"index_columns": ["s", "x"]})
    table = pa.table({"x": [1], "s": [{"a": [1]}], "y": [2]}).replace_schema_metadata({b"pandas": description})
    with pytest.raises(SchemaError, match="feature 's': the pandas metadata makes it a level of the index"):
        to_pandas(table)


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.large_list(pa.uint8()), pa.list_(pa.float32())], ids=str)
def test_lists_of_numbers_are_arrays_as_pyarrow_makes_them(type_: pa.DataType) -> None:
    """Views, where pyarrow copies the values of several chunks: nothing but their memory differs."""
    chunks = [pa.array(rows, type_) for rows in ([[9], [1, 2], None, [3]], [[]], [], [[4, 5, 6], None])]
    table = pa.table({"x": pa.chunked_array([chunks[0].slice(1), *chunks[1:]]), "n": range(6)})
    frame = to_pandas(table)
    pd.testing.assert_frame_equal(frame, table.to_pandas())
    cells = frame["x"].to_numpy()
    assert [type(cell) for cell in cells] == [type(cell) for cell in table.to_pandas()["x"]]
    assert {(cell.dtype, cell.flags.writeable) for cell in cells if cell is not None} == {
        (np.dtype(type_.value_type.to_pandas_dtype()), True)
    }
    assert cells[0].base is not None


@pytest.mark.parametrize("rows", [0, 3, 5000], ids=["none", "joined", "inserted"])
@given(kinds=st.lists(st.sampled_from(["list", "number", "text", "struct"]), min_size=1, max_size=6))
def test_columns_stand_where_they_do_in_the_table(rows: int, kinds: list[str]) -> None:
    values = {"list": [[1, 2]], "number": [7], "text": ["a"], "struct": [{"n": [2**60, None]}]}
    row = pa.table({f"{kind} {at}": values[kind] for at, kind in enumerate(kinds)})
    table = row.take(np.zeros(rows, np.int64))
    frame = to_pandas(table)
    assert list(frame) == table.column_names
    assert len(frame) == table.num_rows
    for name in table.column_names:
        pd.testing.assert_series_equal(frame[name], to_pandas(table.select([name]))[name])


def test_lists_with_missing_numbers_and_many_columns_of_lists_are_those_of_pyarrow(
    recwarn: pytest.WarningsRecorder,
) -> None:
    wide = pa.table({f"x{n}": [[n], [n, n]] for n in range(120)})
    for table in (pa.table({"x": [[1.5, None], [2]]}), wide):
        pd.testing.assert_frame_equal(to_pandas(table), table.to_pandas())
    assert not recwarn.list
    assert to_pandas(wide, "pyarrow").dtypes.iloc[0] == pd.ArrowDtype(pa.list_(pa.int64()))


def test_integers_in_lists_and_structs_stay_integers_beside_missing_ones() -> None:
    big = 2**60 + 1
    structs = pa.array([{"a": big, "b": [{"c": big}]}, None, {"a": None, "b": [{"c": None}]}])
    frame = to_pandas(pa.table({"s": structs, "l": [[big, None], [1], None]}))
    assert frame["s"][1] is None
    assert [(row["a"], row["b"][0]["c"]) for row in (frame["s"][0], frame["s"][2])] == [(big, big), (None, None)]
    assert frame["l"][0].tolist() == [big, None]
    assert frame["l"][1].dtype == np.int64
    fixed = to_pandas(pa.table({"x": pa.array([[big], None], pa.list_(pa.int64(), 1))}))["x"]
    np.testing.assert_array_equal(fixed[0], np.array([big]), strict=True)


def test_nanoseconds_in_structs_are_those_of_pandas() -> None:
    type_ = pa.struct({"t": pa.timestamp("ns"), "z": pa.timestamp("ns", "Europe/Paris"), "d": pa.duration("ns")})
    (row,) = to_pandas(pa.table({"s": pa.array([{"t": 1, "z": 1, "d": 1}], type_)}))["s"]
    assert row == {"t": pd.Timestamp(1), "z": pd.Timestamp(1, tz="Europe/Paris"), "d": pd.Timedelta(1)}


def test_categories_in_a_time_zone_of_no_rows() -> None:
    type_ = pa.dictionary(pa.int8(), pa.timestamp("us", "Europe/Berlin"))
    frame = to_pandas(pa.table({"x": pa.chunked_array([], type_)}))
    assert frame.dtypes["x"].categories.dtype == "datetime64[us, Europe/Berlin]"


def test_categories_keep_their_time_zone() -> None:
    times = pa.array([5, None, 1, 5], pa.timestamp("us", "Europe/Paris"))
    chunks = pa.chunked_array([times.dictionary_encode(), times.slice(2).dictionary_encode()])
    column = to_pandas(pa.table({"t": chunks, "n": range(6)}))["t"]
    assert str(column.cat.categories.dtype) == "datetime64[us, Europe/Paris]"
    expected = [None if pd.isna(value) else value.value for value in column]
    assert expected == [5000, None, 1000, 5000, 1000, 5000]


@pytest.mark.parametrize(
    ("categories", "dtype"),
    [
        (pa.array([None, "a"]), "category"),
        (pa.array(["a", "a"]), "category"),
        (pa.array([0.0, -0.0]), "float64"),
        (pa.array([0.0, float("nan")]), "float64"),
        (pa.array([1, 0], pa.uint16()).view(pa.float16()), "float16"),
    ],
    ids=str,
)
def test_categories_that_pandas_does_not_have(categories: pa.Array, dtype: str) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([1, 0, 1], pa.uint8()), categories)
    frame = to_pandas(pa.table({"x": column, "n": range(3)}))
    assert str(frame["x"].dtype) == dtype
    expected = column.dictionary_decode().to_pandas()
    values = frame["x"].astype(expected.dtype)
    assert repr(values.where(values.notna(), None).tolist()) == repr(expected.where(expected.notna(), None).tolist())


def test_many_columns_of_structs_cause_no_warning_of_pandas(recwarn: pytest.WarningsRecorder) -> None:
    table = pa.table({"n": [1, 2], **{f"x{n}": [{"a": n}, None] for n in range(120)}, "m": [1, 2]})
    frame = to_pandas(table)
    assert list(frame.columns) == table.column_names
    assert frame["x7"].tolist() == [{"a": 7}, None]
    assert not recwarn.list


@pytest.mark.parametrize("backend", [None, "numpy_nullable"])
@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary()])
def test_bytes_that_rarely_repeat_are_as_pyarrow_makes_them(type_: pa.DataType, backend: Any) -> None:
    values = [None if row % 7 == 0 else b"%d" % row * (row % 5) for row in range(3000)]
    array = pa.array([b"before", *values], type_)[1:]
    column = pa.chunked_array([array[:10], array[10:10], array[10:]])
    table = pa.table({"n": range(3000), "x": column, "same": pa.array([b"x"] * 3000), "y": column})
    frame = to_pandas(table, backend)
    assert list(frame.columns) == table.column_names
    assert [*frame["x"]] == values == [*frame["y"]]
    assert frame["x"].dtype == object
    assert len(set(map(id, frame["same"]))) == 1  # one object, as in pyarrow
    assert [*to_pandas(table, "pyarrow")["x"]] == [pd.NA if value is None else value for value in values]
    assert frame.drop(columns=["x", "y"]).equals(to_pandas(table.select(["n", "same"]), backend))


@pytest.mark.parametrize("columns", [1, 3, 60])
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint32"])
def test_many_integers_with_nulls_are_those_of_pandas(dtype: str, columns: int) -> None:
    """They are copied once, from all chunks; between columns of other types, and with null values that are not zero."""
    rows = 10_001
    values = np.arange(rows).astype(dtype)
    lacking = np.random.default_rng(columns).random((columns, rows)) < 0.5
    arrays = {f"n{at}": pa.array(values, mask=mask) for at, mask in enumerate(lacking)}
    arrays["n0"] = pa.Array.from_buffers(arrays["n0"].type, rows, [arrays["n0"].buffers()[0], pa.py_buffer(values)])
    table = pa.table({"text": ["x"] * rows} | arrays | {"number": values})
    table = pa.concat_tables([table.slice(3, 1000), table.slice(1003)])
    frame, name = to_pandas(table), pd.api.types.pandas_dtype(dtype.replace("i", "I").replace("u", "U")).name
    assert list(frame) == table.column_names
    for at, mask in enumerate(lacking):
        expected = pd.array(np.where(mask, 0, values)[3:], dtype=name)
        expected[mask[3:]] = pd.NA
        pd.testing.assert_extension_array_equal(frame[f"n{at}"].array, expected)
    frame.loc[0, "n0"] = 5  # the memory is the frame's own
    assert frame["n0"][0] == 5
    assert frame["number"].dtype == dtype


def test_objects_of_bools_with_missing_values_stay_objects() -> None:
    """As the dtype that the frame had wins; other bools with missing values are `boolean`."""
    values = [True, None, False]
    frame = pd.DataFrame({"a": np.array(values, dtype=object)}, index=pd.Index(values, dtype=object))
    pd.testing.assert_frame_equal(to_pandas(pa.Table.from_pandas(frame)), frame)
    assert to_pandas(pa.table({"a": values})).dtypes["a"] == "boolean"
    assert to_pandas(pa.Table.from_pandas(frame.astype("boolean"))).dtypes["a"] == "boolean"
