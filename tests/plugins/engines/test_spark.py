"""Spark reads and writes TFRecord files by the data source ``tfrecord``."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from suites.distributed_suite import ROWS, DistributedSuite, Place, die_once
from tfrecord_io.testing.adapter_suite import AdapterSuite, columns

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Two tasks at a time, each tried up to four times, on the loopback interface."""
    from pyspark.sql import SparkSession

    root = str(Path(__file__).parents[3])  # tests are modules of a folder below it
    paths = os.pathsep.join(path for path in (os.environ.get("PYTHONPATH"), *sys.path, root) if path)
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYTHONPATH=paths, SPARK_LOCAL_IP="127.0.0.1")
    options = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.session.timeZone": "Europe/Paris",
        "spark.sql.shuffle.partitions": "2",
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    tfr.register_spark(session)
    yield session
    session.stop()


def option(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def opened(spark: Any, path: Any, **keywords: Any) -> Any:
    options = {name: option(value) for name, value in {"npartitions": 3, **keywords}.items()}
    return spark.read.format("tfrecord").options(**options).load(str(path))


class TestSpark(AdapterSuite):
    keeps_class = False

    @pytest.fixture(autouse=True)
    def session(self, spark: Any) -> None:
        self.spark = spark

    def open(self, path: Any, **keywords: Any) -> Any:
        return opened(self.spark, path, **keywords)

    def rows(self, opened: Any, names: list[str] | None = None) -> dict[str, list[Any]]:
        frame = opened if names is None else opened.select(*names)
        rows = frame.collect()
        values = {name: [row[name] for row in rows] for name in frame.columns}
        if "raw" in values:
            values["raw"] = [None if value is None else bytes(value) for value in values["raw"]]
        return values

    def expected(self, table: pa.Table) -> dict[str, list[Any]]:
        values = super().expected(table)
        if "time" in values:  # Spark's times are naive, in the zone of this machine
            local = [None if time is None else time.astimezone().replace(tzinfo=None) for time in values["time"]]
            values["time"] = local
        return values

    def above(self, opened: Any, least: int) -> Any:
        return opened.filter(opened["ints"] > least)

    def first(self, opened: Any, n: int) -> Any:
        return opened.limit(n)

    def count(self, opened: Any) -> int:
        return int(opened.count())

    def names(self, opened: Any) -> list[str]:
        return list(opened.columns)

    @pytest.mark.parametrize("name", ["FileNotFound"])
    def test_nothing_there(self, name: str, tmp_path: Path) -> None:
        with pytest.raises(Exception, match=rf"{name}Error: .*absent\.tfrecord"):
            self.open(tmp_path / "absent.tfrecord")

    def test_keywords_of_reading(self, path: Path) -> None:
        opened = self.open(path, columns=["text", "ints"], schema_overrides={"ints": "int32"})
        assert opened.dtypes == [("ints", "int"), ("text", "string")] or sorted(opened.columns) == ["ints", "text"]
        assert self.rows(opened, ["ints"])["ints"] == [1, 2, 3, 4, 5] * 3
        with pytest.raises(Exception, match="nrows"):
            self.open(path, nrows=3)

    def test_a_schema_selects_and_casts_columns(self, path: Path) -> None:
        reader = self.spark.read.format("tfrecord").schema("text string, ints long")
        assert reader.load(str(path)).dtypes == [("text", "string"), ("ints", "bigint")]
        assert self.rows(reader.load(str(path)))["ints"] == [1, 2, 3, 4, 5] * 3

    def test_filters_apply_while_reading(self, path: Path) -> None:
        opened = self.open(path, filters=[["ints", ">", 3]], columns=["text", "int"])
        assert self.rows(opened) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}
        either = self.open(path, filters=[[["ints", "==", 1]], [["text", "in", ["é"]]]])
        assert self.rows(either)["ints"] == [1, 4] * 3
        assert either.filter("ints = 4").count() == 3
        assert either.count() == 6
        with pytest.raises(Exception, match=r"absent.*does not exist"):
            self.open(path, filters=[["absent", ">", 3]])

    def test_several_paths(self, path: Path) -> None:
        files = [str(path.parent / f"{name}.tfrecord") for name in "ab"]
        assert self.spark.read.format("tfrecord").load(files).count() == 10

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        part = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"]).to_spark(self.spark)
        assert self.rows(part) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}


CASES = {
    "id": [1, 2],
    "Text": ["a", None],
    "day": ["05-01", "05-02"],
    "box": [{"top": 1, "tags": [{"Name": "x"}]}, {"top": 2, "tags": []}],
}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("ID long, tEXT string", [(1, "a"), (2, None)]),
        ("Id int, text binary", [(1, b"a"), (2, None)]),
        ("DAY string, ID long", [("05-01", 1), ("05-02", 2)]),
        ("BOX struct<TOP: long, Tags: array<struct<name: string>>>", [((1, [("x",)]),), ((2, []),)]),
        ("Box struct<tags: array<struct<NAME: binary>>, top: int>", [(([(b"x",)], 1),), (([], 2),)]),
    ],
)
@pytest.mark.parametrize("form", ["embedded", "inferred", "folders"])
def test_names_are_found_in_any_case(
    spark: Any, tmp_path: Path, asked: str, expected: list[Any], form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """As Spark finds them in Parquet files, with the types that are asked for."""
    folder, columns = f"{tmp_path}/in/", dict(CASES)
    if form == "inferred":  # only an embedded schema states structs
        del columns["box"]
        if "ox " in asked.lower():
            return
    tfr.write_tfrecord(
        pa.table(columns), folder, embed_schema=form != "inferred", partition_by=["day"] if form == "folders" else None
    )
    frame = spark.read.format("tfrecord").schema(asked).load(folder)
    assert frame.columns == [column.split()[0] for column in re.sub("<.*>", "", asked).split(", ")]
    assert sorted(frame.collect()) == sorted(expected)
    assert "SchemaWarning" not in capfd.readouterr().err


def test_a_schema_that_changes_one_column_leaves_the_unit_of_others(spark: Any, tmp_path: Path) -> None:
    moment = datetime(2020, 3, 29, 0, 30)
    columns = {
        "id": pa.array([1]),
        "ns": pa.array([moment], pa.timestamp("ns")),
        "s": pa.array([moment], pa.timestamp("s", "Europe/Paris")),
        "span": pa.array([timedelta(1)], pa.duration("s")),
        "box": pa.array([{"n": 1, "ms": moment}], pa.struct({"n": pa.int64(), "ms": pa.timestamp("ms")})),
        "list": pa.array([[moment]], pa.list_(pa.timestamp("ms"))),
        "bits": pa.array([0.1]),
        "large": pa.array([2**64 - 1], pa.uint64()),
    }
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table(columns), path, float64="raw", column_encoding={"large": "raw"})
    whole = opened(spark, path)
    same = "timestamp_ntz, s timestamp, span interval day to second"
    narrow = f"id int, ns {same}, box struct<n: int, ms: timestamp_ntz>, list array<timestamp_ntz>, bits double"
    read = spark.read.format("tfrecord").schema(f"{narrow}, large decimal(20,0), absent int")
    assert read.load(str(path)).collect() == whole.selectExpr("*", "null").collect()


@pytest.mark.parametrize(
    "asked",
    [
        "box struct<b: string>",
        "box struct<B: binary, c: int>",
        "box struct<c: int>",
        "deep struct<x: struct<t: timestamp_ntz>>",
        "deep struct<y: array<long>, x: struct<c: int>>",
        "list array<struct<b: string>>",
        "list array<struct<c: int>>",
    ],
)
def test_a_part_of_a_struct_is_null_where_it_is(spark: Any, tmp_path: Path, asked: str) -> None:
    moment = datetime(2020, 3, 29)
    columns = {
        "box": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}, None, {"a": None, "b": None}]),
        "deep": pa.array([{"x": {"a": 1, "t": moment}, "y": [1]}, {"x": {"a": 1, "t": None}}, {"y": [2]}, {}]),
        "list": pa.array([[{"a": 1, "b": "x"}, {"a": 2}], [], None, [None, {}]]),
    }
    tfr.write_tfrecord(pa.table(columns), tmp_path / "a.tfrecord")
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    found, expected = (spark.read.format(f).schema(asked).load(f"{tmp_path}/a.{f}") for f in ("tfrecord", "parquet"))
    assert found.collect() == expected.collect()


@pytest.mark.parametrize(("name", "asked"), [("day", "timestamp_ntz"), ("day", "timestamp"), ("time", "date")])
def test_a_schema_does_not_read_a_time_in_another_unit(spark: Any, tmp_path: Path, name: str, asked: str) -> None:
    moment = datetime(2020, 3, 29)
    tfr.write_tfrecord(pa.table({"day": [moment.date()], "time": [moment]}), tmp_path / "a.tfrecord")
    with pytest.raises(Exception, match=rf"SchemaError.*'{name}'.*another unit.*cast the column in Spark"):
        spark.read.format("tfrecord").schema(f"{name} {asked}").load(str(tmp_path / "a.tfrecord")).collect()


def test_a_null_of_a_column_that_the_schema_states_not_null(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"n": pa.array([1, None])}), tmp_path / "a.tfrecord")
    read = spark.read.format("tfrecord").schema("n long not null")
    with pytest.raises(Exception, match=r"SchemaError.*'n': it has a null, but the schema states that it has none"):
        read.load(str(tmp_path / "a.tfrecord")).collect()


def test_names_that_no_feature_has(spark: Any, tmp_path: Path) -> None:
    from tfrecord_io.plugins.engines.spark_source import _arrow_schema, _named_as, spark_schema

    tfr.write_tfrecord(pa.table({"id": [1], "Id": [2], "box": [{"top": 1}]}), tmp_path / "a.tfrecord")
    frame = spark.read.format("tfrecord").schema("Id long, absent string").load(str(tmp_path / "a.tfrecord"))
    assert frame.collect() == [(2, None)]
    known = list(_arrow_schema(spark_schema(tfr.dataset(tmp_path / "a.tfrecord").schema)))
    with pytest.warns(tfr.errors.SchemaWarning, match=r"column 'absent' .*no such feature.*Known are id, Id, box"):
        _named_as(list(_arrow_schema(frame.schema)), known)
    with pytest.warns(tfr.errors.SchemaWarning, match=r"column 'BOX\.left' .*Known are top"):
        _named_as([pa.field("BOX", pa.struct({"left": pa.int64()}))], known)
    with pytest.raises(Exception, match="feature 'ID': the dataset has 'id' and 'Id', which differ in case only"):
        spark.read.format("tfrecord").schema("ID long").load(str(tmp_path / "a.tfrecord")).collect()


def test_rows_without_columns(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3]}, tmp_path / "n.tfrecord")
    read = spark.read.format("tfrecord").schema(spark.range(1).select().schema)
    assert read.load(str(tmp_path / "n.tfrecord")).count() == 3
    assert opened(spark, tmp_path / "n.tfrecord", columns=[]).selectExpr("1").collect() == [(1,)] * 3
    with pytest.raises(Exception, match=r"SchemaError.*no rows of a frame without columns"):
        save(spark.range(3).select(), tmp_path / "out")


def test_a_schema_beside_options(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1], "text": ["a"]}, tmp_path / "n.tfrecord")
    read = spark.read.format("tfrecord").option("include_file_paths", "file").schema("FILE string, n int")
    assert read.load(str(tmp_path / "n.tfrecord")).collect() == [(str(tmp_path / "n.tfrecord"), 1)]
    read = spark.read.format("tfrecord").option("columns", '["n"]').schema("n long, text string")
    with pytest.raises(Exception, match=r"SchemaError.*'text'.*the option 'columns' leaves it out"):
        read.load(str(tmp_path / "n.tfrecord")).collect()


def test_queries_of_one_frame_are_independent(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [*range(10)]}, tmp_path / "n.tfrecord")
    frame = opened(spark, tmp_path / "n.tfrecord", npartitions=1)
    assert frame.filter("n > 7").count() == 2
    assert frame.count() == 10
    assert frame.filter("n < 1").union(frame.filter("n > 8")).count() == 2


# ---- writing


def test_types_come_back(spark: Any, tmp_path: Path) -> None:
    table = pa.table(columns()).drop_columns(["images"])
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    frame = opened(spark, tmp_path / "a.tfrecord")
    frame.write.format("tfrecord").mode("append").save(str(tmp_path / "out"))
    again = opened(spark, tmp_path / "out")
    assert again.dtypes == frame.dtypes
    assert repr(again.collect()) == repr(frame.collect())
    assert tfr.read_table(tmp_path / "out").schema.field("ints").type == pa.int16()


def test_structs_that_are_null_and_whose_fields_are_not(spark: Any, tmp_path: Path) -> None:
    box = "if(id = 1, null, named_struct('id', id, 'list', array(named_struct('a', id)))) AS box"
    frame = spark.range(3).selectExpr("id", box, "if(id = 1, null, parse_json(concat('{\"a\":', id, '}'))) AS json")
    save(frame, tmp_path / "out")
    again = opened(spark, tmp_path / "out")
    assert again.dtypes == frame.dtypes
    query = "id", "box", "json:a::int"
    assert sorted(again.selectExpr(*query).collect()) == sorted(frame.selectExpr(*query).collect())


def save(frame: Any, path: Any, mode: str = "append", **options: Any) -> None:
    """Write by a mode of Spark; the option ``mode`` is ``modes``."""
    texts = {name.replace("modes", "mode"): option(value) for name, value in options.items()}
    frame.write.format("tfrecord").mode(mode).options(**texts).save(str(path))


def ids(path: Any) -> list[int]:
    return sorted(tfr.read_table(path)["id"].to_pylist())


def counted(spark: Any, frame: Any) -> tuple[Any, Any]:
    """The frame, and the number of tasks that have begun to compute it."""
    started = spark.sparkContext.accumulator(0)

    def count(batches: Any) -> Any:
        started.add(1)
        yield from batches

    return frame.mapInArrow(count, frame.schema), started


@pytest.mark.parametrize("name", ["deep/out", "out.tfrecord/", "train@*"])
def test_modes(spark: Any, tmp_path: Path, name: str) -> None:
    out = f"{tmp_path}/{name}"
    save(spark.range(6).repartition(3), out, "append")
    assert ids(out) == [*range(6)]
    assert os.path.isdir(out) == ("@" not in name)
    save(spark.range(6, 9), out, "append")
    assert tfr.read_table(out)["id"].to_pylist()[6:] == [6, 7, 8]
    assert opened(spark, out).count() == 9
    before = sorted(tmp_path.rglob("*"))
    frame, started = counted(spark, spark.range(5))
    for mode in ("error", "ErrorIfExists"):
        with pytest.raises(Exception, match=r"FileExistsError.*mode='overwrite' replaces it"):
            save(frame, out, modes=mode)
    assert started.value == 0
    save(frame, out, modes="Ignore")
    assert sorted(tmp_path.rglob("*")) == before
    save(spark.range(7), out, "overwrite")
    assert ids(out) == [*range(7)]
    save(spark.range(2), out, "overwrite")
    assert ids(out) == [0, 1]
    save(spark.range(3), out, modes="overwrite")
    assert ids(out) == [0, 1, 2]
    for mode in ("ignore", "error"):
        save(spark.range(4), f"{tmp_path}/{mode}/", modes=mode)
        assert ids(tmp_path / mode) == [0, 1, 2, 3]
    for mode in ("append", "ignore", "replace"):
        with pytest.raises(Exception, match=f"mode='{mode.replace('ignore', 'error')}'.*contradict"):
            save(frame, out, "overwrite", modes=mode)


def test_partition_columns(spark: Any, tmp_path: Path) -> None:
    columns, out = "id long, day string, place string", tmp_path / "out"
    frame = spark.createDataFrame([(1, "a", "x/y"), (2, "b", None), (3, "a", "x/y")], columns)
    save(frame, out, partition_by="day, place")
    folders = {str(file.parent.relative_to(out)) for file in out.rglob("*.tfrecord")}
    assert folders == {"day=a/place=x%2Fy", "day=b/place=__HIVE_DEFAULT_PARTITION__"}
    assert sorted(opened(spark, out).select(*frame.columns).collect()) == sorted(frame.collect())
    with pytest.raises(Exception, match=r"ValueError.*is partitioned by \['day', 'place'\]"):
        save(frame, out)
    with pytest.raises(Exception, match=r"FeatureNotFoundError.*absent.*partition_by= names a column"):
        save(frame, tmp_path / "absent", partition_by="absent")
    assert not (tmp_path / "absent").exists()

    new, options = spark.createDataFrame([(4, "a", "x/y")], columns), {"partition_by": ["day", "place"]}
    with pytest.raises(Exception, match="add the option partitionOverwriteMode"):
        save(new, out, "overwrite", **options)
    with pytest.raises(Exception, match="expected 'dynamic' or 'static'"):
        save(new, out, "overwrite", partitionOverwriteMode="some", **options)
    save(new, out, "overwrite", partitionOverwriteMode="Dynamic", **options)
    assert ids(out) == [2, 4]
    spark.sql(f"CREATE TABLE places USING tfrecord OPTIONS (path '{out}')")
    try:
        into = f"WITH (path = '{out}', partition_by = 'day,place', mode = 'overwrite_partitions')"
        spark.sql(f"INSERT INTO places {into} (id, day, place) VALUES (5, 'a', 'x/y'), (6, 'c', '')")
        assert sorted(spark.sql("SELECT id FROM places WHERE day < 'c'").collect()) == [(2,), (5,)]
    finally:
        spark.sql("DROP TABLE places")
    save(new, out, "overwrite", partitionOverwriteMode="static", **options)
    assert ids(out) == [4]


def test_what_spark_refuses(spark: Any, tmp_path: Path) -> None:
    """For Python data sources, before they are asked; the page of Spark says what does the same."""
    save(spark.range(3), tmp_path / "out")
    frame = spark.range(5).write.format("tfrecord")
    for mode in ("error", "ignore"):
        with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
            frame.mode(mode).save(str(tmp_path / "out"))
    with pytest.raises(Exception, match="partitioning"):
        frame.mode("append").partitionBy("id").save(str(tmp_path / "out"))
    assert ids(tmp_path / "out") == [0, 1, 2]


def test_what_is_appended_has_the_columns_of_the_dataset(spark: Any, tmp_path: Path) -> None:
    save(spark.range(3), tmp_path / "out")
    wider, started = counted(spark, spark.range(3, 5).selectExpr("id", "cast(id as string) as text"))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(Exception, match=r"SchemaError.*feature 'text'.*pass evolve=True to add it"):
        save(wider, tmp_path / "out")
    assert (started.value, sorted(tmp_path.rglob("*"))) == (0, before)
    save(wider, tmp_path / "out", evolve=True)
    assert tfr.read_table(tmp_path / "out")["text"].to_pylist() == [None, None, None, "3", "4"]


def test_a_single_file_is_not_appended_to(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": [1]}, tmp_path / "a.tfrecord")
    for mode in ("append", "overwrite"):
        with pytest.raises(Exception, match=r"(NotADirectory|FileExists)Error.*a\.tfrecord"):
            save(spark.range(3), tmp_path / "a.tfrecord", mode)
    assert ids(tmp_path / "a.tfrecord") == [1]


def test_appenders_at_the_same_time(spark: Any, tmp_path: Path) -> None:
    """Each row of each job is there once."""

    def job(number: int) -> None:
        rows = [(row,) for row in range(100 * number, 100 * number + 100)]
        save(spark.createDataFrame(rows, "id long").repartition(2), tmp_path / "out")

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(job, range(8))] == [None] * 8
    assert ids(tmp_path / "out") == [*range(800)]
    assert not [path for path in (tmp_path / "out").iterdir() if path.name.endswith(".staged")]


def test_a_thread_of_the_driver_writes_what_another_one_made(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(6)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(save, frame, tmp_path / "out").result()
        pool.submit(frame.write.mode("append").save, str(tmp_path / "out"), "tfrecord").result()
    with ThreadPoolExecutor(1) as pool:
        read = spark.read.format("tfrecord")
        assert pool.submit(lambda: read.load(str(tmp_path / "out")).count()).result() == 12


def test_without_rows(spark: Any, tmp_path: Path) -> None:
    for mode in ("append", "overwrite", "append"):
        save(spark.range(0), tmp_path / "none", mode)
        assert tfr.read_table(tmp_path / "none").schema.names == ["id"]


# ---- tensors


SHAPES = tfr.tensor("int16", (None, None)).type


def tensor_file(path: Path) -> Path:
    fixed = np.arange(24, dtype="uint8").reshape(3, 2, 2, 2)
    free = pa.array([{"data": [*range(n)], "shape": [n, 1]} for n in range(3)], SHAPES.storage_type)
    table = pa.table(
        {
            "fixed": pa.FixedShapeTensorArray.from_numpy_ndarray(fixed),
            "free": pa.ExtensionArray.from_storage(SHAPES, free),
            "half": pa.FixedShapeTensorArray.from_numpy_ndarray(fixed.astype("float16")),
            "large": pa.FixedShapeTensorArray.from_numpy_ndarray(fixed.astype("uint64") + 2**63),
            "n": [1, 2, 3],
        }
    )
    nulls = pa.table({**{name: [None] for name in table.column_names if name != "n"}, "n": [4]})
    tfr.write_tfrecord(pa.concat_tables([table, nulls.cast(table.schema)]), path)
    return path


def test_tensors_that_were_read_are_written_as_tensors(spark: Any, tmp_path: Path) -> None:
    frame = opened(spark, tensor_file(tmp_path / "a.tfrecord"))
    frame.write.format("tfrecord").mode("append").save(str(tmp_path / "all") + "/")
    expected = tfr.read_table(tmp_path / "a.tfrecord")
    found = tfr.read_table(tmp_path / "all")
    assert found.sort_by("n").equals(expected)
    chosen = frame.filter("n > 1").select("fixed", "n").withColumnRenamed("fixed", "image")
    chosen.write.format("tfrecord").mode("append").save(str(tmp_path / "some") + "/")
    found = tfr.read_table(tmp_path / "some").sort_by("n")
    assert found["image"].equals(expected["fixed"][1:])


def test_computed_tensors_are_declared(spark: Any, tmp_path: Path) -> None:
    nested = spark.createDataFrame([([[1.0, 2.0], [3.0, 4.0]], 1)], "x array<array<float>>, n long")
    declared = json.dumps({"x": "tensor<float32>[2,2]", "n": "int64"})
    nested.write.format("tfrecord").mode("append").option("schema", declared).save(str(tmp_path / "x") + "/")
    assert tfr.read_arrays(tmp_path / "x")["x"].tolist() == [[[1, 2], [3, 4]]]
    document = tfr.Schema.from_arrow(tfr.read_table(tmp_path / "x").schema).to_json()
    nested.write.format("tfrecord").mode("append").option("schema", document).save(str(tmp_path / "y") + "/")
    assert tfr.read_table(tmp_path / "y").equals(tfr.read_table(tmp_path / "x"))


def test_columns_that_cannot_be_written_start_no_task(spark: Any, tmp_path: Path) -> None:
    nested = spark.createDataFrame([([[1.0]], 1)], "x array<array<float>>, `x/ragged_flat_values` long")
    frame, started = counted(spark, nested)
    for options, message in (
        ({}, "would both be written as this feature"),
        ({"schema": '{"x": "int64"}'}, "cannot become"),
    ):
        with pytest.raises(Exception, match=message):
            frame.write.format("tfrecord").mode("append").options(**options).save(str(tmp_path / "x") + "/")
    assert started.value == 0
    assert not [*tmp_path.iterdir()]


def test_values_that_are_no_tensors_any_more(spark: Any, tmp_path: Path) -> None:
    frame = opened(spark, tensor_file(tmp_path / "a.tfrecord")).select("fixed")
    other = spark.createDataFrame([([[[1]]],)], frame.schema)
    with pytest.raises(Exception, match=r"feature 'fixed': its values are not the tensors that were read.*\(2, 2, 2\)"):
        frame.union(other).write.format("tfrecord").mode("append").save(str(tmp_path / "out") + "/")


# ---- SQL, and options of others


def test_a_table_of_the_catalog(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3], "x": [0.5, 1.5, 2.5]}, tmp_path / "my numbers.tfrecord")
    path = tmp_path / "my numbers.tfrecord"
    spark.sql(f"CREATE TABLE by_option USING tfrecord OPTIONS (path '{path}', columns '[\"n\"]')")
    spark.sql(f"CREATE TABLE by_location USING tfrecord LOCATION '{path}' COMMENT 'hi' TBLPROPERTIES ('a' = 'b')")
    spark.sql(f"CREATE TEMPORARY VIEW by_view USING tfrecord OPTIONS (path '{path}')")
    try:
        assert spark.sql("SELECT * FROM by_option WHERE n > 1").collect() == [(2,), (3,)]
        assert spark.sql("SELECT sum(x), sum(n) FROM by_location").collect() == [(4.5, 6)]
        assert spark.table("by_view").count() == 3
    finally:
        for table in ("by_option", "by_location"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_insert_into_a_table(spark: Any, tmp_path: Path) -> None:
    """Spark passes no path: it is stated, as the columns that a query selects may be those of another table."""
    for name in ("first", "second"):
        tfr.write_tfrecord({"id": [1], "x": pa.array([0.5], pa.float32())}, f"{tmp_path / name}/")
        spark.sql(f"CREATE TABLE {name} USING tfrecord OPTIONS (path '{tmp_path / name}')")
    spark.sql(f"CREATE TABLE stated (id BIGINT, x FLOAT) USING tfrecord OPTIONS (path '{tmp_path / 'first'}')")
    try:
        for query in ("VALUES (1, 2.0)", "SELECT * FROM second", "SELECT id + 1, x FROM second"):
            for table in ("first", "stated"):
                with pytest.raises(Exception, match=r"no path is given.*INSERT INTO t WITH"):
                    spark.sql(f"INSERT INTO {table} {query}")
        with pytest.raises(Exception, match=r"no path is given.*INSERT INTO t WITH"):
            spark.sql(f"CREATE TABLE made USING tfrecord OPTIONS (path '{tmp_path / 'made'}') AS SELECT 1 AS id")
        with pytest.raises(Exception, match=r"no path is given.*SELECT … FROM t WITH"):
            spark.table("stated").count()
        assert not spark.catalog.tableExists("made")
        assert ids(tmp_path / "first") == ids(tmp_path / "second") == [1]
        to = f"WITH (path = '{tmp_path / 'first'}')"
        spark.sql(f"INSERT INTO first {to} VALUES (2, 2.0), (3, 3.0)")
        spark.sql(f"INSERT INTO first {to} SELECT id + 9, x FROM second")
        assert sorted(spark.sql("SELECT id FROM first").collect()) == [(1,), (2,), (3,), (10,)]
        assert spark.sql(f"SELECT * FROM stated {to}").count() == 4
        spark.sql(f"INSERT OVERWRITE first {to} SELECT * FROM second")
        spark.table("second").writeTo("first").option("path", str(tmp_path / "first")).append()
        assert spark.sql("SELECT id FROM first").collect() == [(1,), (1,)]
    finally:
        for table in ("first", "second", "stated", "made"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_insert_into_a_view(spark: Any, tmp_path: Path) -> None:
    save(spark.range(2), tmp_path / "out")
    view = f"CREATE OR REPLACE TEMPORARY VIEW growing USING tfrecord OPTIONS (path '{tmp_path / 'out'}')"
    spark.sql(view)
    spark.sql("INSERT INTO growing SELECT id + 2 FROM growing")
    spark.sql(view)
    assert spark.table("growing").count() == 4
    spark.sql("INSERT OVERWRITE growing VALUES (7)")
    assert ids(tmp_path / "out") == [7]


def test_without_a_path(spark: Any) -> None:
    with pytest.raises(Exception, match="ValueError: no path is given: pass it"):
        spark.read.format("tfrecord").load()
    with pytest.raises(Exception, match="ValueError: no path is given: pass it"):
        spark.range(3).write.format("tfrecord").mode("append").save()


@pytest.mark.parametrize("columns", [{}, {"partition_by": "day"}], ids=["files", "folders"])
def test_folders_that_spark_tfrecord_wrote(spark: Any, tmp_path: Path, columns: dict[str, str]) -> None:
    """With Hadoop's names and files, and without a manifest: the error and the page say how rows are added."""
    folder = tmp_path / "out"
    for day in (1, 2):
        name = f"part-0000{day}-9f2c1c1e-0b5b-4c57-8a38-5d3f0b3b0f0{day}-c000.tfrecord.gz"
        into = folder / f"day={day}" if columns else folder
        into.mkdir(parents=True, exist_ok=True)
        values = {"id": [day]} if columns else {"id": [day], "day": [day]}
        tfr.write_tfrecord(values, into / name, embed_schema=False)
        (into / f".{name}.crc").write_bytes(b"crc\0")
    for name in ("_SUCCESS", "._SUCCESS.crc"):
        (folder / name).write_bytes(b"")
    assert opened(spark, folder).filter("day = 2").select("id").collect() == [(2,)]
    added = spark.createDataFrame([(3, 3)], "id long, day long")
    with pytest.raises(Exception, match=r"FileExistsError.*tfrecord_io\.adopt writes one"):
        save(added, folder, **columns)
    with pytest.raises(Exception, match=r"FileExistsError.*as in name@\*"):
        save(added, folder, "overwrite", **(columns and {**columns, "partitionOverwriteMode": "static"}))
    assert ids(folder) == [1, 2]
    save(opened(spark, folder), tmp_path / "by spark", **columns)  # a copy
    tfr.adopt(folder)  # as the error says
    for copy in (folder, tmp_path / "by spark"):
        save(added, copy, **columns)
        assert ids(copy) == [1, 2, 3]
        assert sorted(opened(spark, copy).select("day").collect()) == [(1,), (2,), (3,)]


def test_options_of_spark_tfrecord(spark: Any, tmp_path: Path) -> None:
    nested = spark.createDataFrame([([[1], [2, 3]],)], "steps array<array<long>>")
    options = {"recordType": "SequenceExample", "codec": "org.apache.hadoop.io.compress.GzipCodec"}
    nested.write.format("tfrecord").mode("append").options(**options).save(str(tmp_path / "out") + "/")
    assert [path.suffix for path in (tmp_path / "out").glob("*.tfrecord*")] == [".gz"]
    frame = opened(spark, tmp_path / "out", recordType="SequenceExample", codec="gzip")
    assert frame.collect() == [([[1], [2, 3]],)]
    payload = opened(spark, tmp_path / "out", recordType="ByteArray").collect()[0][0]
    assert isinstance(bytes(payload), bytes)
    with pytest.raises(Exception, match="record_type='Sample'"):
        opened(spark, tmp_path / "out", recordType="Sample")


def dying_batches(batches: Any, marker: str) -> Any:
    for batch in batches:
        if 777 in batch["n"].to_pylist():
            die_once(marker)
        yield batch


def failing_batches(batches: Any) -> Any:
    for batch in batches:
        if 777 in batch["n"].to_pylist():
            raise ValueError("seven")
        yield batch


class TestSparkDistributed(DistributedSuite):
    @pytest.fixture(autouse=True)
    def session(self, spark: Any) -> None:
        self.spark = spark

    def read(self, path: str, **keywords: Any) -> Any:
        return opened(self.spark, path, **{**keywords, "npartitions": 6})

    def count_and_sum(self, frame: Any) -> tuple[int, int]:
        return frame.count(), frame.agg({"n": "sum"}).collect()[0][0]

    def write(self, frame: Any, path: str, **keywords: Any) -> None:
        modes = keywords.pop("mode", "overwrite" if keywords.pop("overwrite", False) else "error")
        try:
            save(frame, path, modes=modes, **keywords)
        except Exception as error:  # of Spark, whose text has the exception of this package
            for kind in (FileExistsError, ValueError):
                if f"{kind.__name__}:" in str(error):
                    raise kind(str(error)) from error
            raise

    def dying(self, frame: Any, marker: str) -> Any:
        return frame.mapInArrow(lambda batches: dying_batches(batches, marker), frame.schema)

    def failing(self, frame: Any) -> Any:
        return frame.mapInArrow(failing_batches, frame.schema)

    def test_a_worker_is_killed_while_rows_are_appended(self, place: Place, source: str, tmp_path: Path) -> None:
        frame = self.read(source, **place.storage)
        save(frame.filter("n < 400"), place.path("copy"), **place.storage)
        dying = self.dying(frame.filter("n >= 400"), str(tmp_path / "killed"))
        save(dying, place.path("copy"), **place.storage)
        assert (tmp_path / "killed").exists()
        assert place.numbers("copy") == [*range(ROWS)]
        with pytest.raises(Exception, match="seven"):
            save(self.failing(frame), place.path("copy"), **place.storage)
        assert place.numbers("copy") == [*range(ROWS)]


class TestVectors:
    """Spark's ML vectors are lists of numbers, or indices and values with their size."""

    def written(self, spark: Any, path: Path, library: str, **options: str) -> pa.Table:
        from importlib import import_module

        linalg = import_module(f"pyspark.{library}.linalg")
        vectors = [
            linalg.Vectors.dense([0.0, 0.5, 2.0]),
            linalg.Vectors.sparse(5, [1, 4], [3.0, 0.0]),
            None,
            linalg.Vectors.dense([]),
            linalg.Vectors.sparse(2, [], []),
        ]
        rows = spark.createDataFrame(list(enumerate(vectors)), ["n", "v"])
        rows.coalesce(1).write.format("tfrecord").options(**options).mode("append").save(str(path))
        return tfr.read_table(path)

    DENSE = ([0.0, 0.5, 2.0], [0.0, 3.0, 0.0, 0.0, 0.0], None, [], [0.0, 0.0])

    @pytest.mark.parametrize("library", ["ml", "mllib"])
    def test_each_vector_is_written_as_what_it_is(self, spark: Any, tmp_path: Path, library: str) -> None:
        table = self.written(spark, tmp_path / "out", library).sort_by("n")
        assert table.column_names == ["n", "v", "v/indices", "v/values", "v/size"]
        assert table["v"].to_pylist() == [[0.0, 0.5, 2.0], None, None, [], None]
        assert table["v/indices"].to_pylist() == [None, [1, 4], None, None, []]
        assert table["v/values"].to_pylist() == [None, [3.0, 0.0], None, None, []]
        assert table["v/size"].to_pylist() == [None, 5, None, None, 2]

    def test_all_are_dense_or_sparse_by_an_option(self, spark: Any, tmp_path: Path) -> None:
        dense = self.written(spark, tmp_path / "dense", "ml", vectors="dense").sort_by("n")
        assert dense.column_names == ["n", "v"]
        assert dense["v"].to_pylist() == list(self.DENSE)
        sparse = self.written(spark, tmp_path / "sparse", "ml", vectors="sparse").sort_by("n")
        assert sparse.column_names == ["n", "v/indices", "v/values", "v/size"]
        for row, numbers in zip(sparse.to_pylist(), self.DENSE, strict=True):
            if numbers is None:
                assert row["v/indices"] is row["v/values"] is row["v/size"] is None
                continue
            made = np.zeros(row["v/size"])
            made[row["v/indices"]] = row["v/values"]
            assert made.tolist() == numbers
        with pytest.raises(Exception, match="the option vectors='other': expected 'dense' or 'sparse'"):
            self.written(spark, tmp_path / "other", "ml", vectors="other")


@pytest.mark.parametrize("text", ["clicks=7", '["clicks", 7]'])
def test_a_transaction_is_written_once(spark: Any, tmp_path: Path, text: str) -> None:
    frame = spark.createDataFrame([(1,), (2,)], "x long")
    for _ in range(2):
        frame.write.format("tfrecord").option("txn", text).mode("append").save(f"{tmp_path}/d")
    assert tfr.count(f"{tmp_path}/d") == 2
    assert not [name for name in os.listdir(tmp_path / "d") if name.endswith(".staged")]
    frame.write.format("tfrecord").option("txn", "clicks=8").mode("append").save(f"{tmp_path}/d")
    assert tfr.count(f"{tmp_path}/d") == 4


class Stream:
    """A query of the rows that appends add to a dataset, whose batches are kept."""

    def __init__(self, spark: Any, path: Any, checkpoint: Path, **options: str) -> None:
        self.spark, self.path, self.checkpoint, self.options = spark, f"{path}", checkpoint, options
        self.batches: dict[int, list[int]] = {}

    def run(self, fails: bool = False) -> None:
        """Process all rows that are there, or fail after they were read."""

        def take(batch: Any, number: int) -> None:
            self.batches[number] = sorted(row.x for row in batch.collect())
            if fails:
                raise OSError("the target is full")

        rows = self.spark.readStream.format("tfrecord").options(**self.options).load(self.path)
        writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination(120)
        if query.exception() is not None:
            raise query.exception()


def test_a_stream_takes_each_appended_row_once(spark: Any, tmp_path: Path) -> None:
    """Also after a batch that failed, while shards are joined and rows deleted."""
    path = f"{tmp_path}/events/"

    def add(x: list[int], day: list[int], mode: Any = "append") -> None:
        tfr.write_tfrecord({"x": x, "day": day}, path, mode=mode, partition_by="day")

    add([0, 1, 2], day=[1, 2, 1])
    first = tfr.dataset(path).version
    stream = Stream(spark, path, tmp_path / "all")
    late = Stream(spark, path, tmp_path / "late", since=str(first), filters='[["day", "==", 2]]', columns='["x"]')
    for each in (stream, late):
        each.run()
    add([3], day=[2])
    add([4, 5], day=[1, 2])
    for each in (stream, late):
        with pytest.raises(Exception, match="the target is full"):
            each.run(fails=True)
    add([6], day=[2])
    tfr.compact(path)
    for each in (stream, late):
        each.run()
        each.run()
    assert [*stream.batches.values()] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [*filter(None, late.batches.values())] == [[3, 5], [6]]  # without rows, Spark begins with an empty batch
    tfr.delete(path, filters=[("x", "<", 3)])
    add([7], day=[1])
    stream.run()
    assert stream.batches[3] == [7]
    add([8], day=[1], mode="overwrite")
    with pytest.raises(Exception, match="rows were replaced since version"):
        stream.run()


def test_what_is_no_stream(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(Exception, match="needs one dataset with a manifest"):
        Stream(spark, tmp_path / "a.tfrecord", tmp_path / "checkpoint").run()
    tfr.write_tfrecord({"x": [1]}, tmp_path / "d/", mode="append")
    with pytest.raises(Exception, match="since='yesterday': expected a version"):
        Stream(spark, tmp_path / "d/", tmp_path / "checkpoint", since="yesterday").run()
    with pytest.raises(Exception, match=r"the option since is one of spark\.readStream"):
        opened(spark, tmp_path / "d/", since=tfr.dataset(tmp_path / "d/").version).count()


def test_a_shard_has_at_most_max_records_per_file(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(25).selectExpr("id", "id % 2 as day").coalesce(1)
    save(frame, f"{tmp_path}/d/", maxRecordsPerFile=10)
    counts = [tfr.count(file) for file in tfr.dataset(tmp_path / "d/").files]
    assert counts == [10, 10, 5]
    assert tfr.read_table(tmp_path / "d/")["id"].to_pylist() == [*range(25)]
    save(frame, f"{tmp_path}/days/", maxRecordsPerFile=10, partition_by="day")
    assert len([*(tmp_path / "days" / "day=0").iterdir()]) == 3
    assert sorted(tfr.read_table(tmp_path / "days/")["id"].to_pylist()) == [*range(25)]
    save(frame.limit(0), f"{tmp_path}/none/", maxRecordsPerFile=10)
    assert tfr.dataset(tmp_path / "none/").columns == ["id", "day"]
    with pytest.raises(Exception, match="maxRecordsPerFile='many': expected a number of rows"):
        save(frame, f"{tmp_path}/bad/", maxRecordsPerFile="many")
    with pytest.raises(Exception, match="one of writing"):
        opened(spark, tmp_path / "d/", maxRecordsPerFile=10).count()


def test_options_of_other_file_sources(spark: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "day": [1, 2]}, tmp_path / "d/", mode="append", partition_by="day")
    for name, advice in {"basePath": "by the option filters", "ignoreCorruptFiles": "on_error"}.items():
        with pytest.raises(Exception, match=rf"tfrecord has no option (?i:{name}): .*{advice}"):
            opened(spark, tmp_path / "d/", **{name: True})
    with pytest.raises(
        Exception, match=r"'nrows': did you mean limit=\? valid names: allow_missing_shards, .*, threads"
    ):
        opened(spark, tmp_path / "d/", nrows=3)
    wider = spark.createDataFrame([(3, 0.5, 1)], "x long, z float, day long")
    save(wider, f"{tmp_path}/d/", partition_by="day", mergeSchema="true")
    assert sorted(opened(spark, tmp_path / "d/").collect()) == [(1, None, 1), (2, None, 2), (3, 0.5, 1)]
