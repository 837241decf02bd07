"""SequenceExamples through the public calls: context features as columns, feature lists as list columns."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.schema.leaf import PART_KEY

DATA = Path(__file__).parents[1] / "data"
TABLE = pa.table(
    {
        "length": pa.array([2, 0, None], pa.int32()),
        "words": pa.array([[["a"], ["b", "c"]], [], None], pa.list_(pa.list_(pa.string()))),
        "scores": pa.array([[[1.0, 2.0], None], [[]], None], pa.list_(pa.list_(pa.float32()))),
        "plain": pa.array([[1, 2], [], None], pa.list_(pa.int64())),
        "flags": pa.array([[[True]], [[False, True]], [[]]], pa.list_(pa.list_(pa.bool_()))),
    }
)


def values(feature: dict[str, Any] | None) -> list[Any] | None:
    if feature is None:
        return None
    (kind, found), *_ = feature.items()
    return [base64.b64decode(value) for value in found] if kind == "bytes" else found


def as_list(cell: Any) -> list[Any] | None:
    if cell is None:
        return None
    cells = cell if isinstance(cell, list) else [cell]
    return [each.encode() if isinstance(each, str) else each for each in cells]


@pytest.mark.parametrize(
    "options", [{}, {"record_type": "sequence_example"}, {"stable_types": True}, {"threads": 3}], ids=str
)
def test_golden_file_reads_as_its_json_says(engine: str, options: dict[str, Any]) -> None:
    rows = tfr.read_table(DATA / "sequence.tfrecord", **options).to_pylist()
    expected = json.loads((DATA / "sequence.json").read_text())
    assert len(rows) == len(expected) == 200
    for row, record in zip(rows, expected, strict=True):
        for name, cell in row.items():
            if name in record["feature_lists"]:
                assert [as_list(step) for step in cell] == [values(step) for step in record["feature_lists"][name]]
            else:
                assert as_list(cell) == values(record["context"].get(name))


def test_one_value_in_every_step_is_a_list_else_a_list_of_lists(engine: str) -> None:
    schema = tfr.read_table(DATA / "sequence.tfrecord").schema
    assert schema.field("words").type == pa.list_(pa.int64())
    assert schema.field("frames").type == pa.list_(pa.list_(pa.float32()))
    assert schema.field("length").type == pa.int64()
    stable = tfr.read_table(DATA / "sequence.tfrecord", stable_types=True).schema
    assert stable.field("words").type == pa.list_(pa.list_(pa.int64()))
    with tfr.open_reader(DATA / "sequence.tfrecord", sample=20, batch_size=64) as reader:
        assert [len(batch) for batch in reader] == [64, 64, 64, 8]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_table_comes_back_from_a_lone_file(engine: str, tmp_path: Path, threads: int) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a", record_type="sequence_example", threads=threads)
    back = tfr.read_table(tmp_path / "a", threads=threads)
    assert back.schema.equals(TABLE.schema)
    assert back.to_pylist() == TABLE.to_pylist()
    inferred = tfr.read_table(tmp_path / "a", schema="infer", threads=threads)
    assert inferred.column("words").to_pylist() == TABLE.column("words").to_pylist()


def test_an_inferred_table_is_written_as_what_it_was_read_from(engine: str, tmp_path: Path) -> None:
    read = tfr.read_table(DATA / "sequence.tfrecord")
    assert read.schema.field("words").metadata == {PART_KEY: b"feature_list"}
    tfr.write_tfrecord(read, tmp_path / "a", record_type="sequence_example", embed_schema=False)
    with (
        tfr.RecordReader(tmp_path / "a") as written_records,
        tfr.RecordReader(DATA / "sequence.tfrecord") as golden_records,
    ):
        for mine, other in zip(written_records, golden_records, strict=True):
            a, b = (tfr.SequenceExample.FromString(payload) for payload in (mine, other))
            assert a.feature_lists == b.feature_lists
            assert a.context == b.context


def test_lists_of_lists_need_a_sequence_example(engine: str, tmp_path: Path) -> None:
    with pytest.raises(tfr.EncodeError, match="sequence_example"):
        tfr.write_tfrecord(TABLE, tmp_path / "a")
    assert not (tmp_path / "a").exists()


def test_a_null_inside_a_step_names_its_row(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([[[1]], [[2], [3, None]]], pa.list_(pa.list_(pa.int64())))})
    with pytest.raises(tfr.EncodeError) as caught:
        tfr.write_tfrecord(table, tmp_path / "a", record_type="sequence_example")
    assert (caught.value.feature, caught.value.record) == ("x", 1)


def test_a_schema_says_which_lists_are_feature_lists(engine: str) -> None:
    path = DATA / "sequence.tfrecord"
    table = tfr.read_table(path, schema={"words": tfr.sequence("int32"), "length": "int8"})
    assert table.schema.types == [pa.list_(pa.int32()), pa.int8()]
    assert table.column("words").to_pylist() == tfr.read_table(path, columns=["words"]).column("words").to_pylist()
    with pytest.raises(tfr.SchemaError, match=r"tfr\.sequence") as caught:
        tfr.read_table(path, schema={"words": "list<int64>"})
    assert caught.value.feature == "words"


def test_one_name_in_both_parts_is_an_error_that_says_what_to_do(engine: str, tmp_path: Path) -> None:
    message = tfr.SequenceExample()
    message.context.feature["x"].int64_list.value.append(1)
    message.feature_lists.feature_list["x"].feature.add().int64_list.value.append(2)
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(message.SerializeToString())
    with pytest.raises(tfr.SchemaError, match="schema="):
        tfr.read_table(tmp_path / "a")


def test_absent_lists_and_kindless_steps_are_null(engine: str, tmp_path: Path) -> None:
    first, second = tfr.SequenceExample(), tfr.SequenceExample()
    steps = first.feature_lists.feature_list["x"].feature
    steps.add().float_list.value.extend([1.0, 2.0])
    steps.add()
    second.feature_lists.feature_list["y"].feature.add().int64_list.value.append(1)
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(first.SerializeToString())
        writer.write(second.SerializeToString())
    assert tfr.read_table(tmp_path / "a").to_pydict() == {"x": [[[1.0, 2.0], None], None], "y": [None, [1]]}
