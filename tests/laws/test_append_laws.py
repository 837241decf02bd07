"""A dataset that grew is a dataset: what reads or copies it gives what it gives for the same rows written at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from nested_tables import plain_value
from reading_modes import engine_of
from rounds import rounds
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.write.distributed import DistributedWriter

STEPS = {
    "plain": {"x": pa.array([[1, 2]], pa.list_(pa.int32()))},
    "null in a list": {"x": pa.array([[1, None]], pa.list_(pa.int32()))},
    "wider": {"x": pa.array([[2**40]], pa.list_(pa.int64()))},
    "no value": {"x": pa.array([None], pa.null())},
    "lists of lists": {"y": pa.array([[[1], [], None]], pa.list_(pa.list_(pa.int8())))},
    "wider lists of lists": {"y": pa.array([[[2**40], [None]]], pa.list_(pa.list_(pa.int64())))},
    "struct": {"s": pa.array([{"a": 1}], pa.struct({"a": pa.int8()}))},
    "struct of more": {
        "s": pa.array([{"a": None, "b": ["u"]}], pa.struct({"a": pa.int16(), "b": pa.list_(pa.string())}))
    },
    "no type": {"x": pa.array([[None]], pa.list_(pa.null()))},
    "empty list": {"x": pa.array([[]], pa.list_(pa.null()))},
    "structs": {"t": pa.array([[{"a": 1}]], pa.list_(pa.struct({"a": pa.int8()})))},
    "wider structs": {"t": pa.array([[{"a": 300}, None]], pa.list_(pa.struct({"a": pa.int16()})))},
    "structs of more": {"t": pa.array([[{"a": 1, "b": "u"}]], pa.list_(pa.struct({"a": pa.int8(), "b": pa.string()})))},
    "text": {"c": pa.array(["w"])},
    "map": {"m": pa.array([[("a", 1), ("b", None)]], pa.map_(pa.string(), pa.int64()))},
    "categories": {"c": pa.array(["u"]).dictionary_encode()},
    "other categories": {"c": pa.array(["v"]).dictionary_encode()},
}
COPIES: dict[str, Callable[[Any, Path], Any]] = {
    "merge": lambda src, dst: tfr.merge(src, dst),
    "dedupe": lambda src, dst: tfr.dedupe(src, dst, by="k"),
    "shuffle": lambda src, dst: tfr.shuffle(src, dst, seed=1),
    "sample": lambda src, dst: tfr.sample(src, dst, fraction=1.0),
    "split": lambda src, dst: tfr.split(src, dst, shards=2),
}


REFUSED = [
    ("plain", "no type"),
    ("empty list", "plain"),
    ("structs", "structs of more"),
    ("structs of more", "wider structs"),
]
ACCEPTED = [
    ("plain", "null in a list"),
    ("plain", "wider"),
    ("plain", "empty list"),
    ("null in a list", "no type"),
    ("lists of lists", "plain"),
    ("structs", "wider structs"),
    ("categories", "text"),
]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows = plain_value(table.select(sorted(table.column_names)).to_pylist())
    return sorted(rows, key=lambda row: row["k"])


def grown_by(names: Sequence[str], path: Path, partition_by: list[str] | None = None) -> list[dict[str, Any]]:
    """What was appended; what has no type in common with that is left out."""
    appended = list[dict[str, Any]]()
    for number, name in enumerate(names):
        rows = pa.table({"k": [number], "p": [number % 2], **STEPS[name]})
        with suppress(tfr.errors.SchemaError, tfr.errors.EncodeError):
            tfr.write_tfrecord(rows, f"{path}/", mode="append", evolve=True, partition_by=partition_by)
            appended += plain_value(rows.to_pylist())
    return appended


def restored(value: Any, like: Any) -> Any:
    """A value without the fields of structs that another lacks."""
    if isinstance(like, dict):
        return {name: restored(value[name], item) for name, item in like.items()}
    return value


@settings(max_examples=rounds(20))
@given(
    names=st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=5),
    partition_by=st.sampled_from([None, ["p"]]),
    copy=st.sampled_from(list(COPIES)),
    engine=st.sampled_from(["native", "reference_engine"]),
)
def test_what_evolved_is_read_and_copied(names: Sequence[str], partition_by: Any, copy: str, engine: str) -> None:
    with tempfile.TemporaryDirectory() as folder, engine_of(engine):
        grown, copied = Path(folder, "grown"), Path(folder, "copied.tfrecord")
        appended = grown_by(names, grown, partition_by)
        table = tfr.read_table(tfr.dataset(grown, threads=4))
        rows = rows_of(table)
        assert [restored(row, like) for row, like in zip(rows, appended, strict=True)] == appended
        with tfr.open_reader(grown) as reader:
            batches = pa.Table.from_batches(reader, reader.schema)
            assert batches.equals(table)
        assert [row for piece in tfr.dataset(grown).pieces(3) for row in piece.read().to_pylist()] == table.to_pylist()
        with tfr.open_random(grown, key="k") as records:
            keys = table["k"].to_pylist()
            assert records.lookup(keys).to_pylist() == table.to_pylist()
        COPIES[copy](grown, copied)
        read = tfr.read_table(f"{copied}@*" if copy == "split" else copied)
        assert {f.name: f.type for f in read.schema} == {f.name: f.type for f in table.schema}
        assert rows_of(read) == rows


@pytest.mark.parametrize(("names", "count"), [(names, 1) for names in REFUSED] + [(names, 2) for names in ACCEPTED])
def test_types_evolve_where_their_values_are_kept(names: Sequence[str], count: int, tmp_path: Path) -> None:
    assert len(grown_by(names, tmp_path)) == count


@pytest.mark.parametrize("form", [{"record_type": "sequence_example"}, {"column_encoding": {"y": "json"}}])
def test_another_form_of_the_same_type_is_refused(form: Any, tmp_path: Path) -> None:
    rows = STEPS["lists of lists"]
    tfr.write_tfrecord(rows, f"{tmp_path}/", mode="append")
    with pytest.raises(tfr.errors.SchemaError, match="stored in another form"):
        tfr.write_tfrecord(rows, f"{tmp_path}/", mode="append", evolve=True, **form)
    assert tfr.read_table(tmp_path)["y"].to_pylist() == rows["y"].to_pylist()


def test_a_dataset_of_empty_lists_is_written_again(tmp_path: Path) -> None:
    tfr.write_tfrecord(STEPS["empty list"], f"{tmp_path}/", mode="append")
    with pytest.raises(tfr.errors.SchemaError, match="without a type of items; write the dataset again, with schema="):
        tfr.write_tfrecord(STEPS["plain"], f"{tmp_path}/", mode="append", evolve=True)
    with pytest.raises(tfr.errors.SchemaError, match="no type holds both; cast the column"):
        tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/", mode="append", evolve=True)


CHOICES: dict[str, tuple[pa.Array, dict[str, Any], dict[str, Any]]] = {
    "float64": (pa.array([0.1, None, 2.0]), {"float64": "raw"}, {"float64": "round"}),
    "lists of float64": (pa.array([[0.1], [], [2.0, 3.0]]), {"float64": "raw"}, {"float64": "round"}),
    "raw": (pa.array([1, 2**40, None]), {"column_encoding": {"x": "raw"}}, {}),
    "tensors": (
        pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(12.0, dtype=np.float32).reshape(3, 2, 2)),
        {"column_encoding": {"x": "tensor_proto"}},
        {"column_encoding": {"x": "raw"}},
    ),
    "json": (
        pa.array([[{"a": 1}], [], None]),
        {"column_encoding": {"x": "json"}},
        {"column_encoding": {"x": "nested"}},
    ),
    "list": (pa.array([[1], [], [2, 3]]), {}, {"column_encoding": {"x": "raw"}}),
    "rounded": (pa.array([0.5, None, 2.0]), {}, {"float64": "raw"}),
}


@pytest.mark.parametrize("folders", [False, True], ids=["shards", "folders"])
@pytest.mark.parametrize("case", CHOICES)
def test_what_a_dataset_chose_holds_for_what_is_added(tmp_path: Path, case: str, folders: bool) -> None:
    """An append without keywords writes what the first writer would have written; a stated difference is an error."""
    column, chosen, other = CHOICES[case]
    table = pa.table({"x": column, "p": [1] * len(column)})
    columns = {"partition_by": "p"} if folders else {}
    tfr.write_tfrecord(pa.concat_tables([table, table]), f"{tmp_path}/whole/", **chosen, **columns)
    for step in range(2):
        tfr.write_tfrecord(table, f"{tmp_path}/d/", mode="append", **columns, **({} if step else chosen))
    whole, grown = tfr.read_table(tmp_path / "whole"), tfr.read_table(tmp_path / "d")
    assert grown.equals(whole, check_metadata=True)
    if other:
        with pytest.raises(tfr.errors.SchemaError, match="stored in another form"):
            tfr.write_tfrecord(table, f"{tmp_path}/d/", mode="append", **other, **columns)
    assert tfr.read_table(tmp_path / "d").equals(whole)


@pytest.mark.parametrize("partition_by", [None, "p"])
@pytest.mark.parametrize("schema", [None, {"k": "int64", "p": "string"}])
def test_a_writer_without_rows_changes_nothing(partition_by: Any, schema: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"k": [1], "p": ["a"]}, f"{tmp_path}/d/", partition_by=partition_by)
    before = tfr.read_table(tmp_path / "d")
    with tfr.open_writer(tmp_path / "d", schema, mode="append", partition_by=partition_by):
        pass
    assert tfr.read_table(tmp_path / "d").equals(before)


def test_the_index_of_a_dataset_is_that_of_what_is_added(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 9], name="user"))
    rows = [*zip([5, 9], [1, 2], strict=True)] * 3
    for name, first in (("index", frame), ("column", frame.reset_index())):
        path = f"{tmp_path}/{name}/"
        tfr.write_tfrecord(first, path)
        for added in (frame, frame.reset_index()):
            tfr.write_tfrecord(added, path, mode="append")
        read = tfr.read_tfrecord(path)
        assert read.index.name == first.index.name
        assert [*zip(read.reset_index()["user"], read["x"], strict=True)] == rows
        with pytest.raises(tfr.errors.SchemaError) if name == "index" else nullcontext():
            tfr.write_tfrecord(frame.reset_index(drop=True), path, mode="append")


def test_distributed_tasks_write_what_the_dataset_chose(tmp_path: Path) -> None:
    path = f"{tmp_path}/d/"
    tfr.write_tfrecord({"x": [0.1]}, path, float64="raw")
    writer = DistributedWriter.begin(path, WriteOptions(mode="append"))
    writer._check(pa.schema([("x", pa.float64())]))
    writer.commit([writer.write_part(0, [pa.table({"x": [0.2]})])])
    assert tfr.read_table(path)["x"].to_pylist() == [0.1, 0.2]


@pytest.mark.parametrize("column", ["size", "sizes", "of"])
@pytest.mark.parametrize("ordered", [True, False], ids=["ordered", "unordered"])
@pytest.mark.parametrize("sizes", [[2, 0], [0, 2], [1, 0, 1], [0, 0, 2, 0]], ids=str)
def test_categories_stay_where_no_rows_are_appended(
    tmp_path: Path, column: str, sizes: list[int], ordered: bool
) -> None:
    values = pa.DictionaryArray.from_arrays([2, 0], ["small", "medium", "large"], ordered=ordered)
    columns = {
        "size": values,
        "sizes": pa.ListArray.from_arrays([0, 1, 2], values),
        "of": pa.StructArray.from_arrays([values], ["what"]),
    }
    table = pa.table({column: columns[column], "n": [1, 2]})
    tfr.write_tfrecord(table, tmp_path / "whole.tfrecord")
    begin = 0
    for size in sizes:
        tfr.write_tfrecord(table.slice(begin, size), f"{tmp_path}/parts/", mode="append", shards=1)
        begin += size
    found, expected = tfr.read_table(tmp_path / "parts"), tfr.read_table(tmp_path / "whole.tfrecord")
    assert found.equals(expected)
    assert str(found.unify_dictionaries()) == str(expected)  # which shows the categories
