"""SequenceExamples through the public calls: context features as columns, feature lists as list columns."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import field, floats, int64s, written
from strategies import sequence_example
from tfrecord_io.columns.schema.column_features import PART_KEY

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
    rows = read_by(tfr.read_table, DATA / "sequence.tfrecord", **options).to_pylist()
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
    stable = tfr.read_table(tfr.dataset(DATA / "sequence.tfrecord", stable_types=True)).schema
    assert stable.field("words").type == pa.list_(pa.list_(pa.int64()))
    with tfr.open_reader(tfr.dataset(DATA / "sequence.tfrecord", sample=20), batch_size=64) as reader:
        assert [len(batch) for batch in reader] == [64, 64, 64, 8]


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_table_comes_back_from_a_lone_file(engine: str, tmp_path: Path, threads: int) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a", record_type="sequence_example", threads=threads)
    back = tfr.read_table(tfr.dataset(tmp_path / "a", threads=threads))
    assert back.schema.equals(TABLE.schema)
    assert back.to_pylist() == TABLE.to_pylist()
    inferred = tfr.read_table(tfr.dataset(tmp_path / "a", threads=threads), schema="infer")
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
            a, b = (tfr.train.SequenceExample.FromString(payload) for payload in (mine, other))
            assert a.feature_lists == b.feature_lists
            assert a.context == b.context


def test_lists_of_lists_in_an_example_are_nested_columns(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a")
    assert tfr.read_table(tmp_path / "a").equals(TABLE)


def test_a_null_inside_a_step_names_its_row(engine: str, tmp_path: Path) -> None:
    table = pa.table({"x": pa.array([[[1]], [[2], [3, None]]], pa.list_(pa.list_(pa.int64())))})
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.write_tfrecord(table, tmp_path / "a", record_type="sequence_example")
    assert (caught.value.feature, caught.value.record) == ("x", 1)


def test_a_schema_says_which_lists_are_feature_lists(engine: str) -> None:
    path = DATA / "sequence.tfrecord"
    table = tfr.read_table(path, schema={"words": tfr.sequence("int32"), "length": "int8"})
    assert table.schema.types == [pa.list_(pa.int32()), pa.int8()]
    assert table.column("words").to_pylist() == tfr.read_table(path, columns=["words"]).column("words").to_pylist()
    with pytest.raises(tfr.errors.SchemaError, match=r"tfr\.sequence") as caught:
        tfr.read_table(path, schema={"words": "list<int64>"})
    assert caught.value.feature == "words"


@pytest.fixture
def twins(tmp_path: Path) -> Path:
    """A file of records with one name in both parts, with companions, or in one of them or none."""
    both = sequence_example({"x": int64s(1), "y": floats(1)}, {"x": [int64s(2), int64s(3)], "y/shape": [int64s(7)]})
    context, lists = sequence_example({"x": int64s(4)}, {}), sequence_example({}, {"x": [int64s(5)]})
    return written(tmp_path / "a", [both, context, lists, both, b""])


STEPS = {"x_steps": tfr.sequence("int64", feature="x")}
VALUE = {"x": tfr.scalar("int64", part="context")}
TWINS = {"x": [1, 4, None, 1, None], "x_steps": [[2, 3], None, [5], [2, 3], None]}


@pytest.mark.parametrize("schema", [VALUE | STEPS, STEPS | VALUE, VALUE, STEPS, {"x": tfr.scalar("int64")}])
@pytest.mark.parametrize(
    "more", [{}, {"threads": 3}, {"columns": ["x"]}, {"columns": ["x_steps"]}, {"columns": ["*s"]}]
)
def test_one_name_in_both_parts_is_read_as_two_columns(
    engine: str, twins: Path, schema: dict[str, Any], more: dict[str, Any]
) -> None:
    chosen = {"x": ["x"], "x_steps": ["x_steps"], "*s": ["x_steps"]}.get(more.get("columns", [""])[0], list(schema))
    if not set(chosen) <= set(schema):
        return
    expected = {name: TWINS[name] for name in chosen}
    assert read_by(tfr.read_table, twins, schema=schema, **more).to_pydict() == expected
    with read_by(tfr.open_reader, twins, schema=schema, batch_size=2, **more) as reader:
        assert reader.read_all().to_pydict() == expected
    with read_by(
        tfr.open_random, twins, schema=schema, **{key: more[key] for key in more if key == "columns"}
    ) as records:
        record = {name: np.asarray(value).tolist() for name, value in records[3].items()}
    assert record == {name: values[3] for name, values in expected.items()}


def test_companions_in_one_part_are_not_those_of_the_other(engine: str, twins: Path) -> None:
    schema = {
        "y": tfr.tensor("float32", (None,), required=False),
        "steps": tfr.sequence("int64", feature="y/shape"),
        **STEPS,
        **VALUE,
    }
    table = tfr.read_table(twins, schema=schema)
    assert table["steps"].to_pylist() == [[7], None, None, [7], None]
    assert table.select(["x", "x_steps"]).to_pydict() == TWINS


def test_one_name_in_both_parts_is_an_error_that_says_what_to_do(engine: str, twins: Path) -> None:
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table(twins)
    advice = "schema={'x': tfr.scalar(…, part='context'), 'x_steps': tfr.sequence(…, feature='x')}"
    assert str(caught.value).endswith(advice)
    with pytest.raises(tfr.errors.SchemaError, match="a feature list is a list of its steps"):
        tfr.scalar("int64", part="feature_list")
    assert tfr.list_("int64", part="feature_list") == tfr.sequence("int64")
    schema = tfr.Schema(VALUE | STEPS)
    assert tfr.Schema.from_json(schema.to_json()) == schema
    assert tfr.Schema.from_arrow(schema.to_arrow()) == schema


def test_one_name_in_both_parts_is_valid(engine: str, twins: Path) -> None:
    report = tfr.verify(twins)
    assert (report.ok, report.records, report.files[0].record_type) == (True, 5, "sequence_example")
    broken = sequence_example({"x": int64s(1)}, {}) + field(2, field(1, field(1, b"x") + field(2, b"\xff")))
    path = written(twins.with_name("broken"), [broken])
    (check,) = tfr.verify(tfr.dataset(path, record_type="sequence_example")).files
    assert isinstance(check.error, tfr.errors.DecodeError)
    assert tfr.read_table(twins, columns=["!x"]).column_names == ["y", "y/shape"]


@pytest.mark.parametrize("schema", [{"y": tfr.sequence("int64")}, {"z": tfr.scalar("int64"), "y/shape": "list<int64>"}])
def test_a_feature_that_is_only_in_the_other_part_is_an_error(engine: str, twins: Path, schema: dict[str, Any]) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="it is in the"):
        tfr.read_table(twins, schema=schema)
    optional = tfr.Schema({"y": tfr.sequence("int64", required=False)})
    assert tfr.read_table(twins, schema=optional)["y"].null_count == 5


def test_absent_lists_and_kindless_steps_are_null(engine: str, tmp_path: Path) -> None:
    first, second = tfr.train.SequenceExample(), tfr.train.SequenceExample()
    steps = first.feature_lists.feature_list["x"].feature
    steps.add().float_list.value.extend([1.0, 2.0])
    steps.add()
    second.feature_lists.feature_list["y"].feature.add().int64_list.value.append(1)
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(first.SerializeToString())
        writer.write(second.SerializeToString())
    assert tfr.read_table(tmp_path / "a").to_pydict() == {"x": [[[1.0, 2.0], None], None], "y": [None, [1]]}


def test_feature_lists_with_null_steps_and_without_types_are_written_again(engine: str, tmp_path: Path) -> None:
    record = tfr.train.SequenceExample()
    steps = record.feature_lists.feature_list["x"].feature
    steps.add().int64_list.value.append(1)
    steps.add()
    record.feature_lists.feature_list["empty"].SetInParent()
    with tfr.RecordWriter(tmp_path / "a") as writer:
        writer.write(record.SerializeToString())
    source = tfr.dataset(tmp_path / "a", schema_overrides={"x": tfr.sequence("int64")})
    table = tfr.read_table(source)
    assert table.to_pydict() == {"empty": [[]], "x": [[1, None]]}
    for data in (table, tfr.open_reader(source), iter(table.to_batches())):
        tfr.write_tfrecord(data, tmp_path / "b", record_type="sequence_example")
        (payload,) = tfr.RecordReader(tmp_path / "b")
        again = tfr.train.SequenceExample.FromString(payload)
        assert again.feature_lists == record.feature_lists
        assert not again.context.feature
        assert tfr.read_table(tmp_path / "b").equals(table)


@pytest.mark.parametrize("encoding", ["nested", "json"])
def test_a_feature_list_with_an_encoding_of_columns_is_in_the_context(
    engine: str, tmp_path: Path, encoding: str
) -> None:
    schema = tfr.Schema({"x": tfr.sequence("int64")})
    table = pa.table({"x": [[1, None], [], None]}).cast(schema.to_arrow())
    tfr.write_tfrecord(table, tmp_path / "a", record_type="sequence_example", column_encoding={"x": encoding})
    assert tfr.read_table(tmp_path / "a").to_pydict() == table.to_pydict()


@pytest.mark.parametrize("step", [pa.struct({"a": pa.int64()}), pa.map_(pa.string(), pa.int64())], ids=str)
def test_feature_lists_whose_steps_are_several_features_are_refused(
    engine: str, tmp_path: Path, step: pa.DataType
) -> None:
    schema = pa.schema([pa.field("x", pa.list_(step), metadata={PART_KEY: "feature_list"})])
    with pytest.raises(
        tfr.errors.EncodeError, match=r"feature 'x': a feature list of type list<.*declare it as a list"
    ):
        tfr.write_tfrecord(schema.empty_table(), tmp_path / "a", record_type="sequence_example")


@pytest.mark.parametrize("record_type", [None, "example"])
def test_a_declared_feature_list_needs_sequence_examples(engine: str, tmp_path: Path, record_type: Any) -> None:
    """An Example would have its values in the context, where the embedded schema does not allow them."""
    schema = tfr.Schema({"length": "int64", "words": tfr.sequence("int64")})
    table = pa.table({"length": [2, 1], "words": [[1, 2], [3]]})
    for data, declared in ((table, schema), (table.cast(schema.to_arrow()), None)):
        with pytest.raises(
            tfr.errors.EncodeError, match=r"feature 'words'.*write it with record_type=\"sequence_example\""
        ):
            tfr.write_tfrecord(data, tmp_path / "a", schema=declared, record_type=record_type)
        assert not (tmp_path / "a").exists()
        tfr.write_tfrecord(data, tmp_path / "b", schema=declared, record_type="sequence_example")
        assert tfr.read_table(tmp_path / "b").to_pydict() == table.to_pydict()
