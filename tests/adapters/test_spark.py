"""Spark reads and writes TFRecord files by the data source ``tfrecord``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from suites.distributed_suite import DistributedSuite, die_once
from tfrecord_io.testing.adapter_suite import AdapterSuite, columns

pytest.importorskip("pyspark")


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    """Two tasks at a time, each tried up to four times, on the loopback interface."""
    from pyspark.sql import SparkSession

    root = str(Path(__file__).parents[2])  # tests are modules of a folder below it
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
        with pytest.raises(Exception, match=r"absent.*not there"):
            self.open(path, filters=[["absent", ">", 3]])

    def test_several_paths(self, path: Path) -> None:
        files = [str(path.parent / f"{name}.tfrecord") for name in "ab"]
        assert self.spark.read.format("tfrecord").load(files).count() == 10

    def test_a_part_of_a_dataset(self, path: Path) -> None:
        part = tfr.dataset(path).filter([("ints", ">", 3)]).select(["text", "int"]).to_spark(self.spark)
        assert self.rows(part) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}


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
    again = opened(spark, tmp_path / "out-*")
    assert again.dtypes == frame.dtypes
    assert repr(again.collect()) == repr(frame.collect())
    assert tfr.read_table(tmp_path / "out@*").schema.field("ints").type == pa.int16()


def test_modes(spark: Any, tmp_path: Path) -> None:
    frame = spark.range(100).repartition(3)
    out = str(tmp_path / "out") + "/"
    frame.write.format("tfrecord").mode("append").save(out)
    with pytest.raises(Exception, match="overwrite=True replaces it"):
        frame.write.format("tfrecord").mode("append").save(out)
    spark.range(7).write.format("tfrecord").mode("overwrite").save(out)
    assert sorted(tfr.read_table(out)["id"].to_pylist()) == [*range(7)]


def test_without_rows(spark: Any, tmp_path: Path) -> None:
    spark.range(0).write.format("tfrecord").mode("append").save(str(tmp_path / "none"))
    assert tfr.read_table(tmp_path / "none@1").schema.names == ["id"]


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
    started = spark.sparkContext.accumulator(0)

    def counted(batches: Any) -> Any:
        started.add(1)
        yield from batches

    frame = nested.mapInArrow(counted, nested.schema)
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
        with pytest.raises(Exception, match=r"there is no path.*CREATE TEMPORARY VIEW"):
            spark.sql("INSERT INTO by_location VALUES (1, 2.0)")
    finally:
        for table in ("by_option", "by_location"):
            spark.sql(f"DROP TABLE IF EXISTS {table}")


def test_without_a_path(spark: Any) -> None:
    with pytest.raises(Exception, match="ValueError: there is no path: pass it"):
        spark.read.format("tfrecord").load()
    with pytest.raises(Exception, match="ValueError: there is no path: pass it"):
        spark.range(3).write.format("tfrecord").mode("append").save()


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
        mode = "overwrite" if keywords.pop("overwrite", False) else "append"
        options = {name: option(value) for name, value in keywords.items()}
        frame.write.format("tfrecord").mode(mode).options(**options).save(path)

    def dying(self, frame: Any, marker: str) -> Any:
        return frame.mapInArrow(lambda batches: dying_batches(batches, marker), frame.schema)

    def failing(self, frame: Any) -> Any:
        return frame.mapInArrow(failing_batches, frame.schema)
