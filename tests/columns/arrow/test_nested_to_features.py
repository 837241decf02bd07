"""The features that columns of nested types are stored as."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr

LISTS = pa.list_(pa.list_(pa.int32()))
INTERVAL = pa.month_day_nano_interval()
STRUCTS = pa.list_(pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]))
UNION = pa.UnionArray.from_sparse(
    pa.array([0, 1], pa.int8()), [pa.array([7, 0]), pa.array(["-", "t"])], ["number", "text"]
)


def records(column: pa.Array, path: Path, **options: Any) -> list[dict[str, Any]]:
    """The features of each record, as another reader sees them."""
    tfr.write_tfrecord(pa.table({"x": column}), path, **options)
    return [
        {name: values.tolist() for name, values in tfr.decode_example(record).items()}
        for record in tfr.RecordReader(path)
    ]


@pytest.mark.parametrize(
    ("column", "features"),
    [
        (
            pa.array([[[1, 2], []], []], LISTS),
            [
                {"x/ragged_row_lengths_0": [2, 0], "x/ragged_flat_values": [1, 2]},
                {"x/ragged_row_lengths_0": [], "x/ragged_flat_values": []},
            ],
        ),
        (
            pa.array([[[[1], []], None], None], pa.list_(LISTS)),
            [
                {
                    "x/ragged_row_lengths_0": [2, 0],
                    "x/ragged_row_lengths_0/null_positions": [1],
                    "x/ragged_row_lengths_1": [1, 0],
                    "x/ragged_flat_values": [1],
                },
                {},
            ],
        ),
        (pa.array([[1, None, None], [2]]), [{"x": [1, 0, 0], "x/null_positions": [1, 2]}, {"x": [2]}]),
        (pa.array([["a", None]]), [{"x": [b"a", b""], "x/null_positions": [1]}]),
        (
            pa.array([[("a", 1), ("b", None)], []], pa.map_(pa.string(), pa.int8())),
            [{"x/key": [b"a", b"b"], "x/value": [1, 0], "x/value/null_positions": [1]}, {"x/key": [], "x/value": []}],
        ),
        (
            pa.array([[{"a": 1, "b": ["s"]}, None]], STRUCTS),
            [
                {
                    "x/null_positions": [1],
                    "x/a": [1, 0],
                    "x/b/ragged_row_lengths_0": [1, 0],
                    "x/b/ragged_flat_values": [b"s"],
                }
            ],
        ),
        (pa.array([{}, None], pa.struct([])), [{"x/not_null": [1]}, {}]),
        (pa.array([{"a": None}, {"a": 1}], pa.struct([("a", pa.int8())])), [{"x/not_null": [1]}, {"x/a": [1]}]),
        (pa.array([[None, None], []], pa.list_(pa.null())), [{"x": [0, 0]}, {"x": []}]),
        (pa.array([(1, 2, 3)], INTERVAL), [{"x/months": [1], "x/days": [2], "x/nanoseconds": [3]}]),
        (UNION, [{"x/type_id": [0], "x/number": [7]}, {"x/type_id": [1], "x/text": [b"t"]}]),
        (pa.DictionaryArray.from_arrays(pa.array([1, None], pa.int8()), pa.array([[1], [2, 3]])), [{"x": [2, 3]}, {}]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_the_features_of_a_column(engine: str, tmp_path: Path, column: pa.Array, features: list[Any]) -> None:
    assert records(column, tmp_path / "a") == features
    read = tfr.read_table(tmp_path / "a")["x"]
    assert read.type == column.type
    assert read.to_pylist() == column.to_pylist()


def test_values_below_nulls_are_not_written(engine: str, tmp_path: Path) -> None:
    bad = pa.array([b"\xff", b"a"]).view(pa.string())
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), bad, mask=pa.array([True, False]))
    outer = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), lists)
    assert records(outer, tmp_path / "a")[0]["x/ragged_flat_values"] == [b"a"]


def test_a_list_without_nulls_has_one_feature(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1], [2, 3]]}, tmp_path / "a")
    assert tfr.read_table(tmp_path / "a").schema.field("x").metadata is None


@pytest.mark.parametrize("encoding", ["raw", "tensor_proto"])
def test_the_encoding_of_the_values(engine: str, tmp_path: Path, encoding: str) -> None:
    values = pa.array([[[0.1], []], None, [None, [2.0**-80]]], pa.list_(pa.list_(pa.float64())))
    read = records(values, tmp_path / "a", column_encoding={"x": encoding})
    assert len(read[0]["x/ragged_flat_values"]) == 1
    assert tfr.read_table(tmp_path / "a")["x"].to_pylist() == values.to_pylist()
    big = pa.array([[("k", 2**64 - 1)]], pa.map_(pa.string(), pa.uint64()))
    records(big, tmp_path / "b", column_encoding={"x/value": encoding})
    assert tfr.read_table(tmp_path / "b")["x"].to_pylist() == big.to_pylist()


def test_a_stream_is_nested_by_its_first_batch_or_on_request(engine: str, tmp_path: Path) -> None:
    parts = [pa.record_batch({"x": pa.array(rows, pa.list_(pa.int64()))}) for rows in ([[1]], [[None]])]
    for batches in (parts, parts[::-1]):
        reader = pa.RecordBatchReader.from_batches(parts[0].schema, batches)
        keywords = {"column_encoding": {"x": "nested"}} if batches is parts else {}
        tfr.write_tfrecord(reader, tmp_path / "a", mode="overwrite", **keywords)
        assert tfr.read_table(tmp_path / "a")["x"].to_pylist() == [
            *batches[0]["x"].to_pylist(),
            *batches[1]["x"].to_pylist(),
        ]
    with pytest.raises(tfr.errors.EncodeError, match="column_encoding") as caught:
        tfr.write_tfrecord(pa.RecordBatchReader.from_batches(parts[0].schema, parts), tmp_path / "b")
    assert caught.value.record == 1


def test_names_that_collide(engine: str, tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.EncodeError, match="rename one of them") as caught:
        tfr.write_tfrecord(pa.table({"x": [[[1]]], "x/ragged_row_lengths_0": [1]}), tmp_path / "a")
    assert caught.value.feature == "x/ragged_row_lengths_0"
    assert not (tmp_path / "a").exists()


def test_a_sequence_example_has_feature_lists_and_nested_columns(engine: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "x": [[[1], None], []],
            "y": [[[[1]], []], None],
            "m": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int8())),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a", record_type="sequence_example")
    read = tfr.read_table(tmp_path / "a")
    assert read.schema.types == table.schema.types
    assert read.to_pydict() == table.to_pydict()


# --- what plain features would not say

HIDDEN = pa.array([{"f": 1}, {"f": None}], pa.struct([("f", pa.int64())]))


@pytest.mark.parametrize("values", [HIDDEN, pa.array([[1], [None]])], ids=["struct", "list"])
def test_a_later_batch_of_a_stream_cannot_be_nested_by_itself(tmp_path: Path, values: pa.Array) -> None:
    batch = pa.record_batch({"x": values})
    halves = [batch[:1], batch[1:]]
    with pytest.raises(tfr.errors.EncodeError, match=r"pass column_encoding=\{'x': 'nested'\}") as caught:
        tfr.write_tfrecord(iter(halves), tmp_path / "a.tfrecord")
    assert caught.value.record == 1
    for data, options in ((batch, {}), (iter(halves), {"column_encoding": {"x": "nested"}})):
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord", mode="overwrite", **options)
        assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == values.to_pylist()


@pytest.mark.parametrize("values", [HIDDEN, pa.array([[1], [None]]), pa.array([{"f": [1, None]}, None])])
def test_runs_of_values_that_plain_features_would_lose_are_nested(tmp_path: Path, values: pa.Array) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([2, 5], pa.int32()), values)
    tfr.write_tfrecord(pa.table({"x": runs.slice(1)}), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == runs.slice(1).to_pylist()


@pytest.mark.parametrize("encoding", ["nested", "json"])
def test_a_part_has_no_encoding_of_columns(tmp_path: Path, encoding: str) -> None:
    with pytest.raises(tfr.errors.EncodeError, match="name the whole column") as caught:
        tfr.write_tfrecord(pa.table({"x": HIDDEN}), tmp_path / "a.tfrecord", column_encoding={"x/f": encoding})
    assert caught.value.feature == "x/f"
