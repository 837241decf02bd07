"""A dataset that grew is a dataset: what reads or copies it gives what it gives for the same rows written at once."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from nested_tables import plain_value
from reading_modes import engine_of
from rounds import rounds

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


REFUSED = [("plain", "no type"), ("structs", "structs of more"), ("structs of more", "wider structs")]
ACCEPTED = [("plain", "null in a list"), ("plain", "wider"), ("structs", "wider structs"), ("categories", "text")]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows = plain_value(table.select(sorted(table.column_names)).to_pylist())
    return sorted(rows, key=lambda row: row["k"])


def grown_by(names: Sequence[str], path: Path, partition_by: list[str] | None = None) -> list[dict[str, Any]]:
    """What was appended; what has no type in common with that is left out."""
    appended = list[dict[str, Any]]()
    for number, name in enumerate(names):
        rows = pa.table({"k": [number], "p": [number % 2], **STEPS[name]})
        with suppress(tfr.SchemaError):
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
    engine=st.sampled_from(["native", "reference"]),
)
def test_what_evolved_is_read_and_copied(names: Sequence[str], partition_by: Any, copy: str, engine: str) -> None:
    with tempfile.TemporaryDirectory() as folder, engine_of(engine):
        grown, copied = Path(folder, "grown"), Path(folder, "copied.tfrecord")
        appended = grown_by(names, grown, partition_by)
        table = tfr.read_table(grown, threads=4)
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
    with pytest.raises(tfr.SchemaError, match="stored in another form"):
        tfr.write_tfrecord(rows, f"{tmp_path}/", mode="append", evolve=True, **form)
    assert tfr.read_table(tmp_path)["y"].to_pylist() == rows["y"].to_pylist()
