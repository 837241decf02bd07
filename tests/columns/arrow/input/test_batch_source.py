"""Everything that holds a table is opened as batches of one schema, nothing in it guessed."""

from __future__ import annotations

import datetime as dt
import io
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from tfrecord_io.base import LIMITS
from tfrecord_io.columns.arrow.input.batch_source import BatchSource, open_input
from tfrecord_io.columns.schema.column_features import encoding_of
from tfrecord_io.errors import EncodeError, SchemaError, SchemaWarning


def type_name(value: object) -> str:
    return type(value).__name__


def table(source: BatchSource) -> pa.Table:
    return pa.Table.from_batches(list(source), source.schema)


TABLE = pa.table({"a": pa.array([1, None, 3], pa.int16()), "b": ["x", "y", None]}, metadata={b"k": b"v"})


class Stream:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return TABLE.__arrow_c_stream__(requested_schema)


class Struct:
    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return TABLE.to_batches()[0].__arrow_c_array__(requested_schema)


class Failing:
    """Like our Reader: an iterator with a schema, whose errors keep their class."""

    schema = TABLE.schema

    def read_next_batch(self) -> pa.RecordBatch:
        raise KeyError("mine")

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        yield TABLE.to_batches()[0]
        raise KeyError("mine")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: TABLE,
        lambda: TABLE.to_batches()[0],
        lambda: TABLE.to_reader(),
        Stream,
        Struct,
        lambda: [TABLE.slice(0, 1), TABLE.slice(1).to_batches()[0]],
        lambda: (TABLE.slice(i, 1) for i in range(3)),
        lambda: [Stream()],
    ],
    ids=["table", "batch", "reader", "stream", "array", "list", "generator", "list of streams"],
)
def test_every_form_of_arrow(make: Any) -> None:
    found = table(open_input(make()))
    assert found.equals(TABLE)
    assert found.schema.metadata == TABLE.schema.metadata


class Structs:
    """An array of the C data interface alone."""

    def __init__(self, structs: pa.Array) -> None:
        self.structs = structs

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.structs.__arrow_c_array__(requested_schema)


STRUCTS = pa.array([{"a": 1, "b": "x"}, {"a": None, "b": "yy"}, {"a": 3, "b": None}, None])


@pytest.mark.parametrize("form", [Structs, lambda structs: structs], ids=["interface", "pyarrow"])
@pytest.mark.parametrize(("begin", "end"), [(0, 3), (1, 3), (2, 2)])
def test_slices_of_structs_are_batches(form: Any, begin: int, end: int) -> None:
    assert table(open_input(form(STRUCTS[begin:end]))).to_pylist() == STRUCTS[begin:end].to_pylist()


@pytest.mark.parametrize("begin", [0, 1])
def test_a_struct_that_is_null_is_no_row(begin: int) -> None:
    with pytest.raises(EncodeError, match="a struct that is null cannot be a row") as caught:
        open_input(Structs(STRUCTS[begin:]))
    assert caught.value.record == 3 - begin


def test_a_readers_errors_keep_their_class() -> None:
    source = open_input(Failing())
    assert next(iter(source)).num_rows == 3
    with pytest.raises(KeyError, match="mine"):
        next(iter(source))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3, None, None]),
        pa.array(["a", "a", "b", None, "b"]).dictionary_encode(),
        pa.array([[1], [], [2], None, [3]]),
        pa.RunEndEncodedArray.from_arrays([3, 5], pa.array(["a", None])),
        pa.DictionaryArray.from_arrays([0, 0, 0, 1, 0], pa.array(["a", None])),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
@pytest.mark.parametrize("form", ["table", "batches", "stream"])
def test_a_null_of_a_field_that_is_not_nullable_is_refused(tmp_path: Path, column: pa.Array, form: str) -> None:
    """The schema in the file would refuse the record."""
    schema = pa.schema([pa.field("n", pa.int64()), pa.field("x", column.type, nullable=False)])
    whole = pa.record_batch([pa.array([None] * 5, pa.int64()), column], schema=schema)
    batches = [whole[:2], whole[2:]]
    data = {"table": pa.Table.from_batches(batches), "batches": (batch for batch in batches)}
    data["stream"] = pa.RecordBatchReader.from_batches(schema, batches)
    with pytest.raises(EncodeError, match="feature 'x': it is missing, and the schema requires it") as caught:
        tfr.write_tfrecord(data[form], tmp_path / "a.tfrecord")
    assert caught.value.record == 3
    assert not list(tmp_path.iterdir())
    tfr.write_tfrecord(pa.Table.from_batches(batches)[:3], tmp_path / "a.tfrecord")
    assert not tfr.read_table(tmp_path / "a.tfrecord").schema.field("x").nullable


@pytest.mark.parametrize("values", [pd.cut([0.1, 0.7], [0, 0.5, 1]), pd.period_range("2024-01", periods=2, freq="M")])
def test_categories_of_types_of_pandas_are_their_values_in_arrow(tmp_path: Path, values: Any) -> None:
    categories = pd.Series(pd.Categorical(values)).cat
    plain = pa.array(categories.categories)
    column = pa.DictionaryArray.from_arrays(pa.array(categories.codes), plain)
    tfr.write_tfrecord(pa.table({"x": column}), tmp_path / "a.tfrecord", float64="raw")
    read = tfr.read_table(tmp_path / "a.tfrecord")["x"].combine_chunks()
    assert read.equals(plain.take(column.indices))


@pytest.mark.parametrize("name", ["pandas.period", "pandas.interval"])
def test_types_of_pandas_are_named_where_they_are_not_registered(tmp_path: Path, name: str) -> None:
    """Arrow then has their storage, and the type's name in the metadata."""
    script = f"""
import pyarrow as pa, tfrecord_io as tfr
storage = pa.struct({{"left": pa.int64(), "right": pa.int64()}}) if {name!r} == "pandas.interval" else pa.int64()
mark = {{"ARROW:extension:name": {name!r}, "ARROW:extension:metadata": '{{"freq": "M", "closed": "left"}}'}}
field = pa.field("x", storage, metadata=mark)
rows = [{{"left": 1, "right": 3}}] if {name!r} == "pandas.interval" else [600]
tfr.write_tfrecord(pa.table([rows], schema=pa.schema([field])), {str(tmp_path / "a.tfrecord")!r})
read = tfr.read_table({str(tmp_path / "a.tfrecord")!r}).schema.field("x")
assert read.type == storage and read.metadata.items() >= field.metadata.items(), read
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    (value,) = tfr.read_tfrecord(tmp_path / "a.tfrecord")["x"]
    assert value == (pd.Period("2020-01") if name == "pandas.period" else pd.Interval(1, 3, "left"))


def test_large_batches_are_cut() -> None:
    rows = open_input(pa.table({"a": np.zeros(LIMITS.batch_rows * 2 + 1)}))
    assert rows.rows == LIMITS.batch_rows * 2 + 1
    assert [b.num_rows for b in rows] == [LIMITS.batch_rows, LIMITS.batch_rows, 1]
    wide = pa.table(
        {"a": pa.FixedSizeListArray.from_arrays(np.zeros(LIMITS.batch_bytes // 4, np.float32).repeat(3), 1 << 18)}
    )
    assert [b.num_rows for b in open_input(wide)] == [64, 64, 64]


def test_rows_without_columns_are_kept() -> None:
    assert [b.num_rows for b in open_input(TABLE.select([]))] == [3]
    assert [b.num_rows for b in open_input(pd.DataFrame(index=range(3)))] == [3]


@pytest.mark.parametrize(
    "data", [5, "a.csv", b"x", np.zeros(3), None, [1, 2], pa.array([1]), pd.Series([1])], ids=type_name
)
def test_what_holds_no_table_is_a_type_error(data: Any) -> None:
    with pytest.raises((TypeError, pa.ArrowInvalid)):
        open_input(data)


# --- what is meant, in another form


@pytest.mark.parametrize("form", [list, tuple])
def test_dicts_with_single_values_are_rows(form: Any) -> None:
    rows = form([{"a": 1, "b": "x"}, {"b": "y", "c": [1.5]}, {"a": None, "d": {"p": b"q"}}])
    assert table(open_input(rows)) == pa.table(
        {"a": [1, None, None], "b": ["x", "y", None], "c": [None, [1.5], None], "d": [None, None, {"p": b"q"}]}
    )
    assert table(open_input(iter([rows[:1], rows[:1]]))).num_rows == 2


def test_dicts_of_columns_are_tables() -> None:
    assert table(open_input([{"a": np.array([1, 2])}, {"a": np.array([3])}])).to_pydict() == {"a": [1, 2, 3]}


@pytest.mark.parametrize("begin", [[], [{"a": np.array([1])}]])
def test_dicts_of_lists_among_several_are_refused(begin: list[Any]) -> None:
    """Tables, or rows with lists, such as tokens: other libraries take them for rows."""
    with pytest.raises(TypeError, match=r"pass pyarrow.Table.from_pylist\(rows\) for rows, or a pandas.DataFrame"):
        list(open_input([*begin, {"a": [1, 2]}, {"a": (3,)}]))
    assert table(open_input({"a": [1, 2]})).to_pydict() == {"a": [1, 2]}, "a single one is a table"


def test_a_series_with_a_name_is_a_column() -> None:
    assert table(open_input(pd.Series([1, 2], name="a"))).to_pydict() == {"a": [1, 2]}
    with pytest.raises(TypeError, match="to_frame"):
        open_input(pd.Series([1]))


def test_sparse_columns_are_written_with_all_values() -> None:
    for values in ([0, 0, 3], [None, 0.5, None]):
        sparse = pd.arrays.SparseArray(values)
        for data in (pd.DataFrame({"a": sparse}), {"a": pd.Series(sparse)}):
            assert table(open_input(data)).to_pydict() == {"a": values}


def test_datasets_of_pyarrow_are_streams() -> None:
    dataset = ds.dataset(TABLE)
    assert (
        table(open_input(dataset)).to_pylist() == table(open_input(dataset.scanner())).to_pylist() == TABLE.to_pylist()
    )


def test_frames_of_polars() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1, 2]})
    assert table(open_input(frame.lazy())).to_pydict() == {"a": [1, 2]}
    pointers = pl.Series("o", [object()] * 2, dtype=pl.Object)
    for data in (frame.with_columns(pointers), frame.with_columns(pointers).lazy(), {"o": pointers}):
        with pytest.raises(EncodeError, match="feature 'o': a polars Object column holds pointers"):
            open_input(data)
    for nul in (pl.DataFrame({"a\0b": [1]}), pl.LazyFrame({"s": [{"a\0b": 1}]}), pl.Series("a\0b", [1])):
        with pytest.raises(EncodeError, match="NUL"):  # polars would end the process
            open_input(nul)


def test_a_query_that_refuses_to_count_its_rows_is_read() -> None:
    def refuse(self: object) -> int:
        raise RuntimeError("Use .count() instead")

    query = type("Table", (Stream,), {"__len__": refuse, "__module__": "ibis.expr.types.relations"})
    assert table(open_input(query())).equals(TABLE)


def test_a_query_of_duckdb_runs_once() -> None:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute("CREATE SEQUENCE runs")
    source = open_input(connection.sql("SELECT nextval('runs') AS n FROM range(3)"))
    assert source.rows is None
    assert table(source)["n"].to_pylist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        ("'101'::BIT", "BIT"),
        ("TIMETZ '01:02:03+05:30'", "TIME WITH TIME ZONE"),
        ("1::BIGNUM", "BIGNUM"),
        ("340282366920938463463374607431768211455::UHUGEINT", "UHUGEINT"),
        ("['1'::BIT]", "BIT"),
        ("['1'::BIT]::BIT[1]", "BIT"),
        ("{'a': MAP {'k': '1'::BIT}}", "BIT"),
        ("union_value(b := '1'::BIT)", "BIT"),
    ],
)
def test_types_of_duckdb_that_arrow_does_not_have_are_named(value: str, type_: str) -> None:
    """Of its bits and large integers Arrow gets DuckDB's bytes, of times of day no offset, of UHUGEINT also -1."""
    connection = pytest.importorskip("duckdb", "1.4").connect()
    with pytest.raises(EncodeError, match=f"feature 'x': Arrow has no type for DuckDB's {type_}; cast it to VARCHAR"):
        open_input(connection.sql(f"SELECT 1 AS n, {value} AS x"))


class Message:
    def SerializeToString(self) -> bytes:
        return b""


@pytest.mark.parametrize("data", [Message(), [Message()]], ids=type_name)
def test_messages_are_not_tables(data: Any) -> None:
    with pytest.raises(TypeError, match=r"Message is one message, not a table: .*tfr\.RecordWriter"):
        open_input(data)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([object()], r"the Python type object cannot .*df\['x'\]\.map\(str\)"),
        ([1, "a"], r"the Python types int, str are mixed types.*df\['x'\]\.map\(str\)"),
        (pd.Series([pd.Period("2020-01"), None], dtype=object), "the Python type Period"),
    ],
    ids=["object", "mixed", "period"],
)
def test_objects_are_refused_with_their_type_and_a_conversion(values: Any, message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        open_input(pd.DataFrame({"x": values}))


# --- iterables


def test_an_iterable_of_nothing_has_no_rows() -> None:
    source = open_input([])
    assert (source.schema, list(source)) == (pa.schema([]), [])


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"a": ["x"], "b": ["x"]}, "item 1.*another type"),
        ({"a": [1]}, "item 1.*'b'"),
        ({"b": ["x"], "a": [1]}, "order"),
    ],
)
def test_items_of_another_schema_are_refused(other: dict[str, Any], message: str) -> None:
    source = open_input(map(pd.DataFrame, [{"a": [1], "b": ["x"]}, other]))
    with pytest.raises(SchemaError, match=message):
        list(source)


@pytest.mark.parametrize("of_nulls", ["object", "category"])
@pytest.mark.parametrize("dtype", ["object", "category"])
def test_a_column_of_nulls_fits_any_type(dtype: str, of_nulls: str) -> None:
    columns = [pd.Series(["x"], dtype=dtype), pd.Series([None, None], dtype=object).astype(of_nulls)]
    frames = [pd.DataFrame({"a": column}) for column in columns]
    assert table(open_input(iter(frames)))["a"].to_pylist() == ["x", None, None]
    with pytest.raises(SchemaError, match="declare the type of all in advance"):
        list(open_input(reversed(frames)))


@pytest.mark.parametrize(
    ("typed", "others"),
    [
        ([[1], [2, 3]], [[None], [[]]]),
        ([[[1]], []], [[None], [[]], [[[]], []]]),
        ([{"a": 1, "b": ["x"]}], [[None], [{"a": None, "b": ["y"]}], [{"a": 2, "b": []}], [{"a": 2, "b": None}]]),
        ([[{"a": 1}]], [[None], [[]]]),
    ],
    ids=["lists", "nested", "structs", "lists of structs"],
)
def test_items_and_fields_that_are_null_throughout_fit_any_type(typed: list[Any], others: list[list[Any]]) -> None:
    found = table(open_input(pa.table({"a": values}) for values in [typed, *others]))["a"]
    assert found.type == pa.array(typed).type
    assert found.to_pylist() == [*typed, *(value for values in others for value in values)]


LISTS = pa.table({"a": pa.array([[1, None], [2]]), "b": [1, 2]})
SOME = LISTS.to_batches()
NONE = [SOME[0][:0]]


@pytest.mark.parametrize(
    "make",
    [
        lambda: iter([LISTS[:0], LISTS[:0], LISTS]),
        lambda: iter(NONE + SOME),
        lambda: pa.RecordBatchReader.from_batches(LISTS.schema, NONE * 2 + SOME),
        lambda: iter([pa.RecordBatchReader.from_batches(LISTS.schema, NONE), LISTS]),
    ],
    ids=["tables", "batches", "reader", "readers"],
)
def test_data_without_rows_does_not_decide_what_is_nested(make: Any) -> None:
    source = open_input(make())
    assert encoding_of(source.schema.field("a")) == "nested"
    assert pa.Table.from_batches(list(source)).column("a").to_pylist() == [[1, None], [2]]


def test_dictionaries_are_made_one() -> None:
    chunks = pa.chunked_array([pa.array([v]).dictionary_encode() for v in "ab"])
    batches = list(open_input(pa.table({"d": chunks})))
    assert [b.column(0).dictionary.to_pylist() for b in batches] == [["a", "b"]] * 2


# --- pandas


def test_pandas_keeps_its_metadata_and_index() -> None:
    frame = pd.DataFrame(
        {"a": pd.array([1, None], "Int8"), "c": pd.Categorical(["x", "y"])}, index=pd.Index([5, 6], name="i")
    )
    found = open_input(frame)
    assert found.schema.names == ["a", "c", "i"]
    assert json.loads(found.schema.metadata[b"pandas"])["index_columns"] == ["i"]
    pd.testing.assert_frame_equal(table(found).to_pandas(types_mapper={pa.int8(): pd.Int8Dtype()}.get), frame)


@pytest.mark.parametrize(("index", "names"), [(None, ["a"]), (True, ["a", "__index_level_0__"]), (False, ["a"])])
def test_index_as_in_parquet(index: bool | None, names: list[str]) -> None:
    assert open_input(pd.DataFrame({"a": [1]}), index=index).schema.names == names


def test_nan_is_missing_unless_told() -> None:
    frame = pd.DataFrame(
        {"a": [1.5, math.nan], "t": pd.to_datetime(["2020", None]), "n": pd.array([1.0, None], "Float64")}
    )
    assert table(open_input(frame)).column("a").null_count == 1
    kept = table(open_input(frame, nan_to_null=False))
    assert [c.null_count for c in kept.columns] == [0, 1, 1]
    assert math.isnan(kept["a"][1].as_py())
    assert kept.schema.equals(table(open_input(frame)).schema, check_metadata=True)


def test_nan_inside_an_array_is_a_value() -> None:
    frame = pd.DataFrame({"a": pd.Series([np.array([1.0, math.nan]), None, math.nan], dtype=object)})
    found = table(open_input(frame))["a"].to_pylist()
    assert found[0][0] == 1.0
    assert math.isnan(found[0][1])
    assert found[1:] == [None, None]


@pytest.mark.parametrize("form", [list, tuple, lambda items: np.array(items, object)], ids=["list", "tuple", "array"])
def test_na_inside_a_list_is_null_beside_nan(form: Any) -> None:
    frame = pd.DataFrame({"a": pd.Series([form([pd.NA, math.nan, None, 1.5]), None, pd.NA, [2.5]], dtype=object)})
    found = table(open_input(frame))["a"]
    assert found.type == pa.list_(pa.float64())
    assert str(found.to_pylist()) == "[[None, nan, None, 1.5], None, None, [2.5]]"


def test_nan_inside_lists_of_lists_is_a_value() -> None:
    cells = [[[math.nan, 1.5], []], [None, [pd.NA]], [np.array([math.nan])]]
    found = table(open_input(pd.DataFrame({"a": cells})))["a"].to_pylist()
    assert str(found) == "[[[nan, 1.5], []], [None, [None]], [[nan]]]"


@pytest.mark.parametrize(
    "cells",
    [
        [1, "x"],
        [b"x", "y"],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)],
        [1, True],
        [2**70],
        [object()],
        [[1], "x"],
    ],
)
def test_mixed_objects_name_their_column(cells: list[Any]) -> None:
    with pytest.raises(EncodeError) as caught:
        open_input(pd.DataFrame({"fine": 1, "odd": pd.Series(cells, dtype=object)}))
    assert caught.value.feature == "odd"


def test_dtypes_without_a_form_name_their_column() -> None:
    column = np.array([1, 2], "g")
    with pytest.raises(EncodeError, match="dtype") as caught:
        open_input(pd.DataFrame({"fine": 1, "odd": column}))
    assert caught.value.feature == "odd"


def test_odd_column_names() -> None:
    assert open_input(pd.DataFrame({0: [1], 1: [2]})).schema.names == ["0", "1"]
    with pytest.warns(SchemaWarning, match="1 as '1'"):
        assert open_input(pd.DataFrame({1: [1], "a": [2]})).schema.names == ["1", "a"]
    with pytest.raises(EncodeError, match="this name") as caught:
        open_input(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    assert caught.value.feature == "a"
    with pytest.raises(EncodeError, match="this name"):
        open_input(pd.DataFrame([[1, 2]], columns=[1, "1"]))
    with pytest.raises(EncodeError, match="this name"):
        open_input(pa.table([[1], [2]], names=["a", "a"]))


def test_big_endian_columns_are_turned() -> None:
    values = np.array([1, 2], ">i4")
    assert table(open_input(pd.DataFrame({"a": values})))["a"].to_pylist() == [1, 2]
    assert table(open_input({"a": values}))["a"].to_pylist() == [1, 2]


def test_pandas_is_not_imported_for_others() -> None:
    code = (
        "import sys, pyarrow as pa, tfrecord_io.columns.arrow.input.batch_source as i\n"
        "table = pa.RecordBatch.from_arrays([pa.nulls(2)], ['a'])\n"
        "sum(b.num_rows for b in i.open_input([table]))\n"
        "print('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


# --- mappings of arrays


def test_arrays_and_lists_become_columns() -> None:
    data = {
        "f": np.array([1.0, math.nan]),
        "l": [[1, 2], None],
        "m": np.ma.array([1, 2], mask=[False, True]),
        "s": np.array(["x", "y"]),
        "d": np.array(["2020-01-01", "NaT"], "datetime64[ms]"),
        "p": pd.Series([1.0, math.nan]),
        "a": pa.chunked_array([[1], [2]]),
        "r": [np.arange(2), np.arange(0)],
        "strided": np.arange(4)[::2],
    }
    found = table(open_input(data))
    assert math.isnan(found["f"][1].as_py())
    assert found.schema.field("d").type == pa.timestamp("ms")
    rest = found.drop_columns(["f", "d"]).to_pydict()
    assert rest == {
        "l": [[1, 2], None],
        "m": [1, None],
        "s": ["x", "y"],
        "p": [1.0, None],
        "a": [1, 2],
        "r": [[0, 1], []],
        "strided": [0, 2],
    }
    assert math.isnan(table(open_input(data, nan_to_null=False))["p"][1].as_py())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1], "b": [1, 2]}, "2 values"),
        ({1: [1]}, "int"),
        ({"a": [1, "x"]}, "int, str"),
        ({"a": np.array([1], "g")}, "float128|longdouble"),
        ({"a": 5}, "array"),
        ({"a": "text"}, "array"),
        ({"a": np.array(5)}, "array"),
        ({"a": {1, 2}}, "not set"),
        ({"a": frozenset([1, 2])}, "not frozenset"),
        ({"a": [2**70]}, "int"),
        ({"a": [b"x", "y"]}, "bytes, str"),
    ],
)
def test_mappings_that_are_no_table(data: dict[Any, Any], message: str) -> None:
    with pytest.raises(EncodeError, match=message):
        open_input(data)


@pytest.mark.parametrize(
    "of", [lambda x: x, lambda x: [x], lambda x: iter([x])], ids=["alone", "in a list", "iterated"]
)
@pytest.mark.parametrize(
    "array", [np.zeros((2, 3)), np.zeros(3), np.array(["a"]), np.array([{}])], ids=lambda x: str(x.dtype)
)
def test_an_array_alone_has_no_name(of: Any, array: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"an ndarray of shape .* has no name: pass a dict, \{'x': array\}"):
        open_input(of(array))


def test_a_single_value_is_no_table() -> None:
    with pytest.raises(TypeError, match="expected a table, got a single value of dtype float64"):
        open_input([np.float64(1)])


@given(
    rows=st.lists(
        st.fixed_dictionaries({"n": st.integers(0, 9)}, optional={"t": st.text(max_size=3), "l": st.just([1, 2])}),
        min_size=1,
        max_size=20,
    ),
    most=st.integers(1, 30),
)
def test_rows_of_a_generator_are_those_of_a_list(rows: list[dict[str, Any]], most: int) -> None:
    """They are converted some at a time; the first of these have the types."""
    expected = table(open_input(rows))
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, batch_rows=most)
        if {name for row in rows[:most] for name in row} == {name for row in rows for name in row}:
            assert table(open_input(row for row in rows)).equals(expected)
        else:
            with pytest.raises(SchemaError, match=r"the data from row \d+ on differs in the column"):
                table(open_input(iter(rows)))


@pytest.mark.parametrize("value", [[b"x" * 50] * 2, {"p": b"x" * 100}, [[b"x" * 100]], [np.zeros(100, "uint8")]])
def test_what_is_in_lists_and_dicts_counts_for_the_rows_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch, value: Any
) -> None:
    set_limits(monkeypatch, batch_bytes=1000)
    rows = iter([{"n": n, "v": value} for n in range(100)])
    next(iter(open_input(rows)))
    assert next(rows)["n"] == 10


def test_rows_of_a_generator_are_read_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, batch_bytes=1000)
    taken = []

    def rows() -> Iterator[dict[str, Any]]:
        for n in range(100):
            taken.append(n)
            yield {"n": n, "b": b"x" * 100}

    batches = iter(open_input(rows()))
    first = next(batches).num_rows
    assert len(taken) == 10
    assert first + sum(batch.num_rows for batch in batches) == 100
    mixed = ({"n": n if n < 50 else "text", "b": b"x" * 100} for n in range(100))
    with pytest.raises(SchemaError, match="the data from row 50 on has another type than the data before it"):
        list(open_input(mixed))
    with pytest.raises(TypeError, match=r"row 1 after the first dict is builtins.int: expected dicts, one a row"):
        list(open_input(iter([{"n": 1}, 2])))


@pytest.mark.parametrize(
    ("values", "later", "advice"),
    [
        (pa.array([1]), pa.array([0.5]), "declare the type of all in advance with schema=: double"),
        (pa.array([[1]]), pa.array([[0.5]]), "declare the type of all in advance with schema=: list<item: double>"),
        (pa.array([1], "int8"), pa.array([1]), "declare the type of all in advance with schema=: int64"),
        (pa.array([0.5]), pa.array([1]), "cast int64 to double"),
        (pa.array([1]), pa.array([[0.5]]), "cast list<item: double> to int64"),
    ],
)
def test_advice_on_values_of_another_type_changes_none(values: pa.Array, later: pa.Array, advice: str) -> None:
    with pytest.raises(SchemaError) as caught:
        list(open_input(iter([pa.table({"x": values}), pa.table({"x": later})])))
    assert str(caught.value).endswith(f"; {advice}")


BIG = 2**63


class Exported:
    """Any object with an Arrow stream."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


LARGE: dict[str, Any] = {
    "narwhals of pandas": lambda: narwhals.from_native(pd.DataFrame({"x": [1, 2 * BIG]})),
    "narwhals of unsigned": lambda: narwhals.from_native(pd.DataFrame({"x": np.array([1, BIG], "u8")})),
    "narwhals of polars": lambda: narwhals.from_native(pl.DataFrame({"x": pl.Series([1, BIG], dtype=pl.UInt64)})),
    "a lazy one": lambda: narwhals.from_native(pl.LazyFrame({"x": pl.Series([1, BIG], dtype=pl.UInt64)})),
    "a series": lambda: narwhals.from_native(pd.Series([1, 2 * BIG], name="x"), series_only=True),
    "duckdb": lambda: duckdb.sql(f"SELECT unnest([1, {BIG}])::UBIGINT AS x"),
    "pandas": lambda: pd.DataFrame({"x": [1, 2 * BIG]}),
}


@pytest.mark.parametrize("data", LARGE.values(), ids=LARGE)
def test_an_integer_beyond_int64_is_named(data: Any) -> None:
    with pytest.raises(EncodeError, match=r"record 1: feature 'x': an (unsigned )?integer (is outside|above)"):
        tfr.write_tfrecord(data(), io.BytesIO())


def test_an_integer_beyond_int64_in_a_stream_of_pandas_is_an_error_of_ours() -> None:
    with pytest.raises(EncodeError, match=r"Exported has an integer that its Arrow stream cannot have.*; pass"):
        tfr.write_tfrecord(Exported(pd.DataFrame({"x": [2 * BIG]})), io.BytesIO())


def test_the_index_that_narwhals_does_not_have_is_no_column(tmp_path: Path) -> None:
    frame = narwhals.from_native(pd.DataFrame({"x": [1, 2]}, index=[7, 9]))
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"x": [1, 2]}


def test_frames_that_pandas_reads_in_chunks(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": range(7), "b": list("abcdefg")})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    readers = [
        pd.read_csv(tmp_path / "a.csv", chunksize=3),
        pd.read_json(tmp_path / "a.jsonl", lines=True, chunksize=2),
    ]
    for reader in readers:
        tfr.write_tfrecord(reader, tmp_path / "a.tfrecord")
        pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a.tfrecord"), frame, check_dtype=False)


def test_a_file_of_another_format_says_how_to_pass_its_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pq.ParquetFile(tmp_path / "a.parquet") as file, pytest.raises(TypeError, match=r"pass its iter_batches\(\)$"):
        tfr.write_tfrecord(file, tmp_path / "a.tfrecord")
    with open(tmp_path / "a.parquet", "rb") as file, pytest.raises(TypeError, match=r"pass tfr.dataset\(file\)$"):
        tfr.write_tfrecord(file, tmp_path / "a.tfrecord")
