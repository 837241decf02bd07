"""DuckDB queries TFRecord files."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from reading_modes import opened_scans
from tfrecord_io.apps.adapters import duckdb as adapter
from tfrecord_io.apps.adapters.duckdb import _include_nan, open_query
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

# Before 1.4, DuckDB takes the name of a common table expression for itself in its own query and in those before it.
OWN_NAME = pytest.mark.skipif(duckdb.__version__.startswith("1.3."), reason="needs DuckDB 1.4")


def query_files(sql: str) -> pa.Table:
    with open_query(sql) as rows:
        return rows.read_all()


class TestDuckDB(AdapterSuite):
    keeps_class = False

    @pytest.fixture(autouse=True)
    def connection(self) -> Any:
        self.duckdb = duckdb.connect()
        self.duckdb.execute(f"SET TimeZone = '{ZONE}'")
        yield
        self.duckdb.close()

    def open(self, path: Any, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_duckdb(self.duckdb)

    def rows(self, opened: Any, names: list[str] | None = None) -> dict[str, list[Any]]:
        chosen = opened if names is None else opened.project(", ".join(f'"{name}"' for name in names))
        table = chosen.to_arrow_table()
        values = {name: table[name].to_pylist() for name in table.column_names}
        if "images" in values:
            values["images"] = np.reshape(values["images"], (-1, 2, 2)).tolist()
        return values

    def above(self, opened: Any, least: int) -> Any:
        return opened.filter(f"ints > {least}")

    def first(self, opened: Any, n: int) -> Any:
        return opened.limit(n)

    def count(self, opened: Any) -> int:
        return int(opened.count("*").fetchall()[0][0])

    def names(self, opened: Any) -> list[str]:
        return list(opened.columns)

    def test_files_are_a_table_by_their_path(self, path: Path) -> None:
        tfr.register_duckdb(self.duckdb, path)
        tfr.register_duckdb(self.duckdb, tfr.dataset([str(path)], columns=["ints", "text"]), name="train")
        query = "SELECT text, sum(ints) FROM {} WHERE ints BETWEEN 4 AND 5 GROUP BY text ORDER BY text"
        for table in (f"'{path}'", "train"):
            assert self.duckdb.sql(query.format(table)).fetchall() == [("b", 15), ("é", 12)]
        with pytest.raises(ValueError, match="pass name="):
            tfr.register_duckdb(self.duckdb, [path])

    @pytest.mark.parametrize(
        ("condition", "ints"),
        [
            ("text IN ('a', 'b')", [1, 5]),
            ("text IS NULL", [2]),
            ("text IS NOT NULL AND ints BETWEEN 2 AND 4", [3, 4]),
            ("starts_with(text, 'b')", [5]),
            ("float > 1", [1, 2, 5]),  # NaN is the greatest number
            ("team = 'red' AND ints > 1", [4, 5]),
            ("day = DATE '2020-01-02' OR raw = '\\xFF\\x00'::BLOB", [2, 4]),
            ("time > TIMESTAMPTZ '2020-01-02 00:00:00+00'", [2, 3]),
            ("flag", [1, 4]),
            ("NOT flag", [3, 5]),
            ("length(text) = 0", [3]),
            ("list[1] = 1", [1, 4]),
            ("int IS DISTINCT FROM 1", [2, 3, 4, 5]),
        ],
    )
    def test_conditions_of_sql(self, path: Path, condition: str, ints: list[int]) -> None:
        found = self.open(path).filter(condition).project("ints").fetchall()
        assert sorted({n for (n,) in found}) == ints
        assert len(found) == 3 * len(ints)

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        train = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"]).to_duckdb(self.duckdb)
        assert train.filter("int IS NULL").fetchall() == [("b", None)] * 3

    def test_a_result_is_written_again(self, path: Path, tmp_path: Path) -> None:
        (tmp_path / "out").mkdir()
        tfr.write_tfrecord(self.open(path).filter("flag").project("ints"), tmp_path / "out" / "flags.tfrecord")
        assert tfr.read_table(tmp_path / "out" / "flags.tfrecord")["ints"].to_pylist() == [1, 4] * 3


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord({"a": [1, 2], "b": [3, 4], "c": [5, 6]}, tmp_path / "a.tfrecord")
    connection = duckdb.connect()
    relation = tfr.dataset(tmp_path / "a.tfrecord").to_duckdb(connection)
    opened = opened_scans(monkeypatch)
    assert relation.filter("a > 1").project("c").fetchall() == [(6,)]
    assert sorted(opened[-1].compiled.schema.names) == ["a", "c"]


def test_the_dataset_is_for_duckdb_alone(tmp_path: Path) -> None:
    from tfrecord_io.apps.adapters.duckdb import _arrow_dataset
    from tfrecord_io.kit import Scan

    tfr.write_tfrecord({"a": [1, 2]}, tmp_path / "a.tfrecord")
    dataset = _arrow_dataset(Scan.of(tmp_path / "a.tfrecord"))
    for name in ("to_table", "count_rows", "head", "take", "join", "sort_by", "get_fragments"):
        with pytest.raises(NotImplementedError, match="for DuckDB alone"):
            getattr(dataset, name)()
    with pytest.raises(NotImplementedError):
        _ = dataset.partition_expression
    assert pickle.loads(pickle.dumps(dataset)).schema == pa.schema({"a": pa.int64()})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("path", ["a.tfrecord", "train@8", "data/a", "train-00000-of-00008.tfrecord"])
def test_a_path_without_quotes_is_told(path: str) -> None:
    with pytest.raises(ValueError, match=f"quote paths: FROM '{path}'"):
        query_files(f"SELECT count(*) FROM {path} WHERE x = 1")


@pytest.mark.parametrize("sql", ["", " ; ", "-- SELECT 1"])
def test_an_empty_query_is_refused(sql: str) -> None:
    with pytest.raises(ValueError, match="the query is empty"), open_query(sql):
        pass


def test_functions_for_other_formats_are_no_advice_about_a_path_without_quotes() -> None:
    with pytest.raises(ValueError) as caught, open_query("SELECT * FROM words.tfrecord"):
        pass
    assert "read_csv" not in str(caught.value)


def test_variables_of_python_are_no_tables() -> None:
    for name in ("keywords", "connection", "paths", "sql"):  # of `query_files`
        with pytest.raises(ValueError, match=f"{name} does not exist"):
            query_files(f"SELECT * FROM {name}")
    with pytest.raises(ValueError, match="folder does not exist"):
        query_files('SELECT * FROM "folder"')


@pytest.mark.parametrize("value", ["'101'::BIT", "TIMETZ '12:00:00+02'", "1::UHUGEINT"])
def test_a_result_that_arrow_has_no_type_for_is_refused(value: str) -> None:
    """Arrow would get other values."""
    with pytest.raises(tfr.errors.EncodeError, match=r"'x': Arrow has no type for DuckDB's .*; cast it to VARCHAR"):
        query_files(f"SELECT 1 AS n, {value} AS x")


def test_paths_that_differ_only_in_case_are_refused(folder: Path) -> None:
    for i, name in enumerate(["A.tfrecord", "b.tfrecord", "É.tfrecord", "é.tfrecord"]):
        tfr.write_tfrecord({"x": [i]}, name)
    with pytest.raises(ValueError, match=r"'A\.tfrecord' and 'a\.tfrecord' for the same table.*rename a file"):
        query_files("SELECT x FROM 'A.tfrecord' UNION ALL SELECT x FROM 'a.tfrecord'")
    both = query_files("SELECT x FROM 'É.tfrecord' UNION ALL SELECT x FROM 'é.tfrecord' ORDER BY x")
    assert both["x"].to_pylist() == [2, 3]
    with duckdb.connect() as connection:
        for name in ("A.tfrecord", "b.tfrecord", "A.tfrecord"):
            tfr.register_duckdb(connection, name)
        with pytest.raises(ValueError, match=r"'A\.tfrecord' and 'a\.tfrecord'.*name="):
            tfr.register_duckdb(connection, "a.tfrecord")
        tfr.register_duckdb(connection, "b.tfrecord", name="other")
        assert connection.sql("SELECT x FROM 'A.tfrecord'").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("WITH data AS (SELECT 1 AS x) SELECT x FROM data", [1]),
        ("WITH DATA AS (SELECT 1 AS x) SELECT x FROM data", [1]),
        ('WITH "my-cte" AS (SELECT 1 AS x) SELECT x FROM (SELECT * FROM "my-cte")', [1]),
        ("WITH a AS (SELECT 1 AS x), \"b-c\" AS (SELECT x + 1 AS x FROM a) SELECT x FROM \"b-c\"", [2]),
        pytest.param("WITH data AS (SELECT x + 1 AS x FROM data) SELECT x FROM data", [8], marks=OWN_NAME),
        pytest.param(
            "WITH a AS (SELECT x FROM data), data AS (SELECT 1 AS x) SELECT x FROM a UNION ALL FROM data", [7, 1],
            marks=OWN_NAME,
        ),
        ("WITH RECURSIVE data AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM data WHERE x < 3) SELECT x FROM data",
         [1, 2, 3]),
        ("SELECT x FROM (WITH data AS (SELECT 1 AS x) SELECT x FROM data) UNION ALL SELECT x FROM data", [1, 7]),
    ],
)  # fmt: skip
def test_the_name_of_a_cte_is_no_path(folder: Path, sql: str, expected: list[int]) -> None:
    (folder / "data").mkdir()
    tfr.write_tfrecord({"x": [7]}, folder / "data" / "a.tfrecord")
    assert query_files(sql)["x"].to_pylist() == expected


def test_conditions_of_older_versions_get_the_rows_of_nan() -> None:
    x, y = pc.field("x"), pc.field("y")
    for condition, expected in (
        (x > 1.0, (x > 1.0) | x.is_nan()),
        ((x >= 1.0) & (y < 2.0), ((x >= 1.0) | x.is_nan()) & (y < 2.0)),
        ((x > 1) & (y <= 2.0), (x > 1) & (y <= 2.0)),
    ):
        assert _include_nan(condition_of(condition)).expression.equals(expected)


HALF = np.array([0.5, 1.5, np.nan], np.float16)


def test_float16_is_float32(tmp_path: Path) -> None:
    """DuckDB has no float16, also in columns that a query does not use."""
    path = tmp_path / "a.tfrecord"
    nested = {"list": pa.array([HALF, [], None], pa.list_(pa.float16())), "struct": pa.array([{"k": HALF[0]}] * 3)}
    tfr.write_tfrecord(pa.table({"x": HALF, "y": [1, 2, 3], **nested}), path)
    assert query_files(f"SELECT y FROM '{path}' WHERE x BETWEEN 1 AND 2")["y"].to_pylist() == [2]
    table = query_files(f"SELECT x, list, struct FROM '{path}' LIMIT 2")
    assert table["x"].type == pa.float32()
    assert table["x"].to_pylist() == [0.5, 1.5]
    assert table["list"].to_pylist()[0][:2] == [0.5, 1.5]
    assert table["struct"].to_pylist() == [{"k": 0.5}] * 2


@pytest.mark.parametrize(
    "column",
    [
        pa.array([10**60, None], pa.decimal256(70, 0)),
        np.zeros((2, 2, 2), np.float16),
        np.ones((2, 3), ml_dtypes.bfloat16),
        np.array([["a"], ["b"]]),
        pa.array([100, None], pa.decimal128(20, -2)),
        pa.UnionArray.from_dense(pa.array([0, 0], pa.int8()), pa.array([0, 1], pa.int32()), [pa.array([1, 2])]),
        pa.UnionArray.from_sparse(pa.array([5, 5], pa.int8()), [pa.array([1, 2])], ["a"], [5]),
    ],
    ids=["decimal256", "tensors", "bfloat16", "arrays of text", "negative scale", "dense union", "codes"],
)
def test_columns_that_duckdb_cannot_hold_are_named_where_they_are_used(tmp_path: Path, column: Any) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": column, "y": [1, 2]}, path)
    assert query_files(f"SELECT y FROM '{path}' WHERE y > 1")["y"].to_pylist() == [2]
    assert query_files(f"SELECT count(*) AS n FROM '{path}'")["n"].to_pylist() == [2]
    assert query_files(f"SELECT * EXCLUDE x FROM '{path}'").to_pydict() == {"y": [1, 2]}
    with pytest.raises(ValueError, match="feature 'x': DuckDB has no type for this column"):
        query_files(f"SELECT * FROM '{path}'")


def test_files_without_columns_are_no_table(tmp_path: Path) -> None:
    path = tmp_path / "none.tfrecord"
    path.touch()
    with pytest.raises(tfr.errors.SchemaError, match="the files have no columns, which a table of DuckDB needs"):
        query_files(f"SELECT count(*) FROM '{path}'")


def test_half_floats_in_columns_whose_names_are_patterns(tmp_path: Path) -> None:
    tfr.write_tfrecord({"a*": pa.array([np.float16(1.5)], pa.float16()), "ab": [5]}, tmp_path / "x.tfrecord")
    connection = duckdb.connect()
    tfr.register_duckdb(connection, tmp_path / "x.tfrecord", name="t")
    assert connection.execute("SELECT * FROM t").fetchall() == [(1.5, 5)]


PAIR = pa.ListArray.from_arrays([0, 2], pa.array(HALF[:2]))
STRUCT = pa.StructArray.from_arrays([pa.array(HALF[:1])], ["k"])
NESTED = pa.ListArray.from_arrays([0, 1], PAIR)


@pytest.mark.parametrize(
    ("column", "encoding"),
    [(PAIR, {"x": "raw"}), (PAIR, {"x": "npy"}), (STRUCT, {"x/k": "raw"}), (NESTED, {}), (NESTED, {"x": "json"})],
    ids=["raw", "npy", "struct", "nested", "json"],
)
def test_half_floats_stored_as_bytes_are_named_where_they_are_used(tmp_path: Path, column: Any, encoding: Any) -> None:
    """Such bytes are of float16 and cannot be read as float32, unlike a list of floats."""
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord(pa.table({"x": column, "y": [1]}), path, column_encoding=encoding)
    assert query_files(f"SELECT y FROM '{path}'")["y"].to_pylist() == [1]
    with pytest.raises(ValueError, match="feature 'x': DuckDB has no type for this column"):
        query_files(f"SELECT * FROM '{path}'")


def test_an_interrupt_while_a_query_begins_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal may arrive when the thread of the query runs, but before the pool has returned its future."""
    interrupted, seen = threading.Event(), []

    class Connection:
        def interrupt(self) -> None:
            interrupted.set()

    class Pool(ThreadPoolExecutor):
        def submit(self, *arguments: Any) -> Any:
            super().submit(*arguments)
            raise KeyboardInterrupt

    monkeypatch.setattr(adapter, "ThreadPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt):
        adapter._interruptible(Connection(), lambda: seen.append(interrupted.wait(10)))
    assert seen in ([True], [])  # it was interrupted, or it never began
