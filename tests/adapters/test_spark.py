"""Spark reads and writes TFRecord files by the data source ``tfrecord``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from suites.adapter_suite import AdapterSuite, columns
from suites.distributed_suite import DistributedSuite, die_once

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
