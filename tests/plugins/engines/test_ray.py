"""Ray reads and writes TFRecord files in its tasks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading_modes import opened_scans
from suites.distributed_suite import DistributedSuite, dying, failing, ray_cluster
from tfrecord_io.kit import Scan
from tfrecord_io.testing.adapter_suite import AdapterSuite, columns

pytest.importorskip("ray")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    import ray.data

    with ray_cluster():
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        yield


def table_of(dataset: Any) -> pa.Table:
    """The blocks of a dataset in a table."""
    import ray

    blocks = ray.get(dataset.to_arrow_refs())
    return pa.concat_tables(blocks).unify_dictionaries() if blocks else dataset.schema().base_schema.empty_table()


class TestRay(AdapterSuite):
    keeps_class = False  # an error is Ray's, and of our class too; its attributes are those of the cause

    def open(self, path: Any, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_ray(override_num_blocks=3)

    def rows(self, opened: Any, names: list[str] | None = None) -> dict[str, list[Any]]:
        table = table_of(opened if names is None else opened.select_columns(names))
        values = {name: table[name].to_pylist() for name in table.column_names}
        if "images" in values:
            values["images"] = table["images"].combine_chunks().to_numpy_ndarray().tolist()
        return values

    def above(self, opened: Any, least: int) -> Any:
        from ray.data.expressions import col

        return opened.filter(expr=col("ints") > least)

    def first(self, opened: Any, n: int) -> Any:
        return opened.limit(n)

    def count(self, opened: Any) -> int:
        return int(opened.count())

    def names(self, opened: Any) -> list[str]:
        return list(opened.columns())

    def test_the_schema_is_known_before_anything_is_read(self, path: Path, table: pa.Table) -> None:
        opened = self.open(path)
        for file in path.parent.glob("*"):
            file.write_bytes(b"damaged")
        assert opened.schema().types == table.schema.types

    def test_errors_are_of_our_class(self, path: Path) -> None:
        opened = self.open(path)
        damaged = path.parent / "b.tfrecord"
        damaged.write_bytes(damaged.read_bytes()[:-1])
        with pytest.raises(tfr.errors.TruncatedRecordError, match=r"b\.tfrecord"):
            self.rows(opened)

    def test_batches_hold_arrays(self, path: Path) -> None:
        (batch,) = self.open(path).select_columns(["images", "ints"]).iter_batches(batch_size=15)
        assert batch["images"].shape == (15, 2, 2)
        assert batch["ints"].dtype == "int16"

    def test_pieces_and_paths(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)  # that of the workers is another
        part = tfr.dataset("*.tfrecord").filter([("ints", ">", 3)]).select(["text", "int"])
        assert self.rows(part.to_ray()) == {"text": ["é", "b"] * 3, "int": [4, None] * 3}
        with pytest.raises(ValueError, match="cannot be split"):
            tfr.dataset("*.tfrecord", limit=3).to_ray()


def test_only_what_is_needed_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.data.expressions import col

    from tfrecord_io.plugins.engines.ray import _datasource_class

    tfr.write_tfrecord({"a": [1, 2, 3], "b": [4, 5, 6], "c": [7, 8, 9]}, tmp_path / "in.tfrecord")
    source = _datasource_class()(Scan.of(tfr.dataset(tmp_path / "in.tfrecord")))
    pruned = source.apply_predicate(col("a") > 1).apply_projection({"b": "b"})
    (task,) = pruned.get_read_tasks(1)
    opened = opened_scans(monkeypatch)
    assert [block.to_pydict() for block in task()] == [{"b": [5, 6]}]
    assert [scan.compiled.schema.names for scan in opened] == [["b", "a"]]


def test_tasks_of_whole_files_state_the_rows_of_the_manifest(tmp_path: Path) -> None:
    from tfrecord_io.plugins.engines.ray import _datasource_class

    tfr.write_tfrecord({"x": [*range(100)]}, tmp_path / "d@4")

    def stated(dataset: tfr.Dataset, limit: int | None = None) -> list[int | None]:
        tasks = _datasource_class()(Scan.of(dataset)).get_read_tasks(4, limit)
        return [task.metadata.num_rows for task in tasks]

    assert stated(tfr.dataset(tmp_path / "d@4")) == [25] * 4  # `count` reads nothing
    assert stated(tfr.dataset(tmp_path / "d@4"), 7) == [7] * 4
    assert stated(tfr.dataset(tmp_path / "d@4").filter("x > 3")) == [None] * 4
    assert stated(tfr.dataset(tmp_path / "d@4", on_error="skip")) == [None] * 4


def test_a_float_is_compared_as_ray_does_in_memory(tmp_path: Path) -> None:
    from ray.data.expressions import col

    from tfrecord_io.plugins.engines.ray import _datasource_class

    table = pa.table({"x": pa.array([0.1, 0.5, None, 2.0**24, float("nan")], pa.float32()), "n": range(5)})
    tfr.write_tfrecord(table, tmp_path / "in.tfrecord")
    source = _datasource_class()(Scan.of(tfr.dataset(tmp_path / "in.tfrecord")))
    x = col("x")
    for condition in (x == 0.1, x > 0.1, ~(x <= 0.1), x != 2.0**24 + 1, (x >= 0.5) & (col("n") < 4), x.is_in([0.1])):
        (task,) = source.apply_predicate(condition).get_read_tasks(1)
        (block,) = task()
        assert block["n"].equals(table.filter(condition.to_pyarrow())["n"]), condition


def test_columns_that_a_projection_renames(tmp_path: Path) -> None:
    from tfrecord_io.plugins.engines.ray import _datasource_class

    tfr.write_tfrecord({"a": [1, 2], "b": [4, 5], "c": [7, 8]}, tmp_path / "in.tfrecord")
    source = _datasource_class()(Scan.of(tfr.dataset(tmp_path / "in.tfrecord")))
    source._projection_map = {"a": "b", "b": "a"}  # as Ray 2.54 does for rename_columns; 2.59 renames by itself
    (task,) = source.get_read_tasks(1)
    assert task.schema.names == ["b", "a"]
    assert [block.to_pydict() for block in task()] == [{"b": [1, 2], "a": [4, 5]}]


# ---- writing


def test_a_shard_for_each_task(tmp_path: Path) -> None:
    table = pa.table(columns())
    for name in "abc":
        tfr.write_tfrecord(table, tmp_path / f"{name}.tfrecord")
    report = tfr.write_tfrecord(tfr.dataset(tmp_path / "*.tfrecord").to_ray(override_num_blocks=3), tmp_path / "out")
    assert report.records == 15
    again, before = tfr.read_table(tmp_path / "out@*"), tfr.read_table(tmp_path / "*.tfrecord")
    assert again.schema.types == before.schema.types
    assert repr(again.to_pylist()) == repr(before.to_pylist())


def test_bfloat16_is_refused(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tfr.write_tfrecord({"b": np.ones((2, 3), ml_dtypes.bfloat16), "a": [1, 2]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="feature 'b': Ray has no bfloat16; leave the column out"):
        dataset.to_ray()
    assert dataset.select(["a"]).to_ray().sum("a") == 3


@pytest.mark.parametrize("dtype", ["U3", "datetime64[D]", "timedelta64[m]"])
def test_arrays_of_which_ray_would_have_bytes_or_integers_are_refused(tmp_path: Path, dtype: str) -> None:
    tfr.write_tfrecord({"b": np.zeros((2, 3), dtype)}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match=r"feature 'b': Ray has no .*; leave the column out"):
        tfr.dataset(tmp_path / "a.tfrecord").to_ray()


def test_tensors_of_ray(tmp_path: Path) -> None:
    import ray.data

    images = np.arange(24, dtype="uint8").reshape(4, 2, 3)
    tfr.write_tfrecord(ray.data.from_numpy(images), tmp_path / "images")
    np.testing.assert_array_equal(tfr.read_arrays(tmp_path / "images@*")["data"], images)


def test_an_error_leaves_nothing(tmp_path: Path) -> None:
    import ray.data

    with pytest.raises(tfr.errors.EncodeError, match="x"):
        tfr.write_tfrecord(ray.data.from_items([{"x": 0.1}]), tmp_path / "d" / "out", float64="error")
    assert not (tmp_path / "d" / "out-00000-of-00001").exists()
    with pytest.raises(tfr.errors.EncodeError, match="pickled Python objects"):
        tfr.write_tfrecord(ray.data.from_items([{"x": object()}]), tmp_path / "out")
    with pytest.raises(TypeError, match="shards=3: only a writer in one process has this keyword"):
        tfr.write_tfrecord(ray.data.range(3), tmp_path / "out", shards=3)


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
@pytest.mark.parametrize("values", [[5, 6, 7, 8], list("abcd"), [[1], [2, 3], [], [4]]], ids=["int", "text", "lists"])
def test_blocks_whose_column_is_null_throughout(tmp_path: Path, values: list[Any], order: int) -> None:
    import ray.data

    rows = [{"n": n, "x": x} for n, x in enumerate([None] * 4 + values)][::order]
    tfr.write_tfrecord(ray.data.from_items(rows, override_num_blocks=4), tmp_path / "out")
    assert tfr.read_table(tmp_path / "out@*").to_pylist() == rows
    in_one_task = ray.data.from_items(rows, override_num_blocks=4).repartition(1)
    tfr.write_tfrecord(in_one_task, tmp_path / "one")
    assert tfr.read_table(tmp_path / "one@*").to_pylist() == rows


class TestRayDistributed(DistributedSuite):
    def read(self, path: str, **keywords: Any) -> Any:
        return tfr.dataset(path, **keywords).to_ray(override_num_blocks=6)

    def count_and_sum(self, frame: Any) -> tuple[int, int]:
        return int(frame.count()), int(frame.sum("n"))

    def write(self, frame: Any, path: str, **keywords: Any) -> None:
        tfr.write_tfrecord(frame, path, **keywords)

    def dying(self, frame: Any, marker: str) -> Any:
        return frame.map_batches(dying, fn_args=[marker], batch_size=10)

    def failing(self, frame: Any) -> Any:
        return frame.map_batches(failing, batch_size=10)
