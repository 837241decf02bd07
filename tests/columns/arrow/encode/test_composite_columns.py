"""Columns that a schema builds of several features are written as these features, under the names of the schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.encode.composite_columns import component_columns
from tfrecord_io.columns.schema.composite import Composite
from tfrecord_io.errors import EncodeError, SchemaError

pytestmark = pytest.mark.plugins("tensorflow")
IO = tfr.io
TFX = """
feature { name: "v" type: INT } feature { name: "l" type: INT }
tensor_representation_group { key: "" value { tensor_representation { key: "x" value {
  ragged_tensor { feature_path { step: "v" } partition { row_length: "l" } } } } } }
"""


def _records(path: Path) -> list[dict[str, Any]]:
    found = [tfr.decode_example(record) for record in tfr.RecordReader(path)]
    return [{name: values.tolist() for name, values in sorted(record.items())} for record in found]


def test_a_tensor_representation_names_the_features_of_a_nested_column(tmp_path: Path) -> None:
    schema = tfr.Schema.from_tfx(TFX)
    rows = [[[1, 2], [], [3]], [], None]
    for data in (pa.table({"x": pa.array(rows, pa.list_(pa.list_(pa.int64())))}), [{"x": row} for row in rows]):
        report = tfr.write_tfrecord(data, tmp_path / "a", schema=schema)
        assert report.columns == ("v", "l")
        assert _records(tmp_path / "a") == [{"v": [1, 2, 3], "l": [2, 0, 1]}, {"v": [], "l": []}, {}]
        assert tfr.read_table(tmp_path / "a", schema=schema)["x"].to_pylist() == rows


def test_what_was_read_by_a_schema_is_written_by_it_in_every_way(tmp_path: Path) -> None:
    schema = tfr.Schema.from_tfx(TFX)
    tfr.write_tfrecord({"v": [[1, 2, 3]], "l": [[2, 1]]}, tmp_path / "theirs", embed_schema=False)
    table = tfr.read_table(tmp_path / "theirs", schema=schema)
    with tfr.open_writer(tmp_path / "ours", schema) as writer:
        writer.write(table)
        writer.write(table.to_pandas())
    pq.write_table(pa.table({"x": [[[1, 2], [3]]]}), tmp_path / "nested.parquet")
    tfr.convert(tmp_path / "nested.parquet", tmp_path / "converted", schema=schema)
    tfr.write_tfrecord(table, tmp_path / "d@2", schema=schema)
    tfr.write_tfrecord(table, tmp_path / "d@*", schema=schema, mode="append")
    for path, count in (("ours", 2), ("converted", 1), ("d@*", 2)):
        assert _records(tmp_path / path) == [{"v": [1, 2, 3], "l": [2, 1]}] * count


PARTITIONS = {
    "lengths": [IO.RaggedFeature.RowLengths("l")],
    "uniform": [IO.RaggedFeature.UniformRowLength(2)],
    "both": [IO.RaggedFeature.RowLengths("l"), IO.RaggedFeature.UniformRowLength(2)],
    "twice": [IO.RaggedFeature.RowLengths("l"), IO.RaggedFeature.RowLengths("m")],
}


def _rows(partitions: list[Any]) -> st.SearchStrategy[Any]:
    """Lists of the depth of the partitions; a uniform one has as many items as it states."""
    items: Any = st.integers(-9, 9)
    for partition in reversed(partitions):
        size = getattr(partition, "length", None)
        items = st.lists(items, min_size=size or 0, max_size=size or 3)
    return st.lists(items, max_size=3)


@pytest.mark.parametrize("partitions", PARTITIONS)
@given(data=st.data())
def test_rows_come_back_and_parse_as_the_feature_is_described(
    partitions: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    feature = IO.RaggedFeature("int64", "v", PARTITIONS[partitions])
    rows = data.draw(st.lists(_rows(PARTITIONS[partitions]), min_size=1, max_size=4))
    schema = tfr.Schema.from_feature_description({"x": feature})
    path = tmp_path_factory.mktemp("a") / "a"
    tfr.write_tfrecord({"x": pa.array(rows, schema.to_arrow().field("x").type)}, path, schema=schema)
    assert tfr.read_table(path, schema=schema)["x"].to_pylist() == rows
    parsed = IO.parse_example(list(tfr.RecordReader(path)), {"x": feature})["x"]
    assert parsed.to_list() == rows


def test_parts_of_arrays_and_wide_lists_are_split() -> None:
    composite = Composite("v", "int64", sequence=(None, None), lengths=("l",))
    array = pa.array([[[9]], [[1, 2], []], None, [[3]]], composite.type).slice(1)
    values, lengths = component_columns(composite, array, "x", 0)
    assert values.to_pylist() == [[1, 2], None, [3]]
    assert lengths.to_pylist() == [[2, 0], None, [1]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[[1]], [[2], None]], "row 1: column 'x': a list inside is null, which its features 'v', 'l' cannot hold"),
        ([[[1]], [[2], [3, None]]], "row 1: column 'x': a value is null, which its features 'v', 'l' cannot hold"),
    ],
)
def test_nulls_inside_are_refused(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(EncodeError, match=message.replace("row 1: column", "record 1: feature")):
        tfr.write_tfrecord({"x": rows}, tmp_path / "a", schema=tfr.Schema.from_tfx(TFX))
    assert not (tmp_path / "a").exists()


def test_a_feature_of_two_columns_is_refused(tmp_path: Path) -> None:
    lengths = [IO.RaggedFeature.RowLengths("l")]
    schema = tfr.Schema.from_feature_description(
        {"x": IO.RaggedFeature("int64", "v", lengths), "y": IO.RaggedFeature("int64", "w", lengths)}
    )
    with pytest.raises(SchemaError, match="'l': two columns of the schema are written to it"):
        tfr.write_tfrecord({"x": [[[1]]], "y": [[[1]]]}, tmp_path / "a", schema=schema)
