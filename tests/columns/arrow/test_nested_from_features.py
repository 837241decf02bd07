"""Columns of nested types read from the features of damaged files and of other writers."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr

LISTS = pa.list_(pa.list_(pa.int64()))
MAPS = pa.map_(pa.string(), pa.int64())
UNION = pa.sparse_union([pa.field("a", pa.int64()), pa.field("b", pa.string())])


def foreign(path: Path, *records: dict[str, Any]) -> Path:
    with tfr.RecordWriter(path) as writer:
        for record in records:
            writer.write(tfr.encode_example({"id": 1, **record}))
    return path


def nested(type_: pa.DataType) -> dict[str, Any]:
    return {"x": tfr.list_(type_.value_type, encoding="nested") if type_ == LISTS else tfr.scalar(type_)}


def test_ragged_features_of_tfds(engine: str, tmp_path: Path) -> None:
    record = {"x/ragged_flat_values": [1, 2, 3], "x/ragged_row_lengths_0": [2, 0, 1]}
    path = foreign(tmp_path / "a", record, {"y": 1})
    assert tfr.read_table(path, schema=nested(LISTS))["x"].to_pylist() == [[[1, 2], [], [3]], None]
    arrow = pa.schema([pa.field("x", LISTS, metadata={"tfrecord_io.encoding": "nested"})])
    assert tfr.read_table(path, schema=arrow)["x"].to_pylist() == [[[1, 2], [], [3]], None]


FLAT, LENGTHS = "x/ragged_flat_values", "x/ragged_row_lengths_0"
NONE, ONE = np.zeros(0, np.int64), {FLAT: [1], LENGTHS: [1]}


@pytest.mark.parametrize(
    ("type_", "record", "feature", "message"),
    [
        (LISTS, {FLAT: [1], LENGTHS: [1, 1]}, FLAT, f"has 1 value, and there are 2 by '{LENGTHS}'"),
        (LISTS, {FLAT: [1]}, FLAT, "has 1 value, and there are 0"),
        (LISTS, {LENGTHS: [1]}, FLAT, "has 0 values, and there are 1"),
        (LISTS, {FLAT: [1], LENGTHS: [2, -1]}, LENGTHS, "-1 is not the length of a list"),
        (LISTS, {FLAT: [1], LENGTHS: [2**62] * 4}, LENGTHS, "not the length"),
        (LISTS, {FLAT: NONE, LENGTHS: [2**31 - 1] * 9}, FLAT, "has 0 values"),
        (LISTS, ONE | {f"{FLAT}/null_positions": [1]}, f"{FLAT}/null_positions", "1 is not the position of a value"),
        (LISTS, ONE | {f"{LENGTHS}/null_positions": [-1]}, f"{LENGTHS}/null_positions", "-1 is not the position"),
        (MAPS, {"x/key": [b"a", b"b"], "x/value": [1]}, "x/value", "has 1 value, and there are 2 by 'x/key'"),
        (UNION, {"x/type_id": [2], "x/a": [1]}, "x/type_id", "2 is not a type of the union"),
        (pa.list_(pa.list_(pa.int64(), 2)), ONE, LENGTHS, "1 is the length of a list of 2"),
    ],
)
def test_features_that_contradict_each_other(
    engine: str, tmp_path: Path, type_: pa.DataType, record: dict[str, Any], feature: str, message: str
) -> None:
    good = {"x/key": [b"a"], "x/value": [1]} if type_ == MAPS else {}
    path = foreign(tmp_path / "a", good, record, good)
    field = pa.field("x", type_, metadata={"tfrecord_io.encoding": "nested"})
    with pytest.raises(tfr.errors.DecodeError, match=message) as caught:
        tfr.read_table(path, schema=pa.schema([field]))
    assert (caught.value.record, caught.value.feature, caught.value.path) == (1, feature, str(path))
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.read_table(path, schema=pa.schema([field]), on_error="skip").num_rows == 2


def test_more_categories_than_the_index_has_numbers_for(engine: str, tmp_path: Path) -> None:
    path = foreign(tmp_path / "a", *({"x": [row]} for row in range(130)))
    field = pa.field("x", pa.dictionary(pa.int8(), pa.list_(pa.int64())), metadata={"tfrecord_io.encoding": "nested"})
    with pytest.raises(tfr.errors.DecodeError, match="129th different value") as caught:
        tfr.read_table(path, schema=pa.schema([field]))
    assert caught.value.record == 128


@pytest.mark.parametrize("columns", [["x"], ["id"], ["!x"], ["id", "x"]])
def test_projections(engine: str, tmp_path: Path, columns: list[str]) -> None:
    table = pa.table({"id": [1, 2, 3], "x": pa.array([[[1], None], None, []], LISTS)})
    tfr.write_tfrecord(table, tmp_path / "a")
    names = ["id"] if columns == ["!x"] else columns
    assert tfr.read_table(tmp_path / "a", columns=columns).to_pydict() == table.select(names).to_pydict()


def test_filters(engine: str, tmp_path: Path) -> None:
    table = pa.table({"id": [1, 2, 3], "x": pa.array([[[1], None], None, []], LISTS)})
    tfr.write_tfrecord(table, tmp_path / "a")
    assert tfr.read_table(tmp_path / "a", filters=pc.field("id") > 1)["x"].to_pylist() == [None, []]
    assert tfr.read_table(tmp_path / "a", filters=pc.field("x").is_null())["id"].to_pylist() == [2]
    assert tfr.read_table(tmp_path / "a", columns=["id"], filters=pc.field("x").is_valid())["id"].to_pylist() == [1, 3]


def test_required_and_default(engine: str, tmp_path: Path) -> None:
    path = foreign(tmp_path / "a", {"x/ragged_flat_values": [1], "x/ragged_row_lengths_0": [1]}, {})
    with pytest.raises(tfr.errors.FeatureNotFoundError) as caught:
        tfr.read_table(path, schema={"x": tfr.list_(pa.list_(pa.int64()), encoding="nested", required=True)})
    assert (caught.value.record, caught.value.feature) == (1, "x")
    default = {"x": tfr.list_(pa.list_(pa.int64()), encoding="nested", default=[[7], []])}
    assert tfr.read_table(path, schema=default)["x"].to_pylist() == [[[1]], [[7], []]]


def test_shards_with_and_without_nulls_are_read_together(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1], [2]]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord(pa.table({"x": pa.array([[None, 3], None], pa.list_(pa.int64()))}), tmp_path / "b.tfrecord")
    for pattern in ("[ab].tfrecord",):
        assert tfr.read_table(str(tmp_path / pattern))["x"].to_pylist() == [[1], [2], [None, 3], None]
    both = [tmp_path / "b.tfrecord", tmp_path / "a.tfrecord"]
    assert tfr.read_table(both)["x"].to_pylist() == [[None, 3], None, [1], [2]]


def test_dictionaries_are_the_same_in_all_batches_where_arrow_can_unify_them(engine: str, tmp_path: Path) -> None:
    lists = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None], pa.int8()), pa.array([[1], [2, 3]]))
    tfr.write_tfrecord(pa.table({"x": lists, "c": pa.array(list("abca")).dictionary_encode()}), tmp_path / "a")
    with tfr.open_reader(tmp_path / "a", batch_size=2) as reader:
        read = reader.read_all()
    assert read["x"].to_pylist() == [[1], [2, 3], [1], None]
    assert read["c"].to_pylist() == list("abca")


@pytest.mark.parametrize("mode", ["sparse", "dense"])
@pytest.mark.parametrize("encoding", ["nested", "json"])
def test_unions_of_fields_that_are_not_nullable(tmp_path: Path, mode: str, encoding: str) -> None:
    """awkward arrays are such unions."""
    fields = [pa.field("a", pa.int64(), False), pa.field("b", pa.string(), False, metadata={"k": "v"})]
    buffers = [None, *(pa.py_buffer(np.array(values)) for values in (np.int8([5, 7, 5]), np.int32([0, 1, 2])))]
    children = [pa.array([1, 2, 3]), pa.array(["a", "b", "c"])]
    type_ = pa.union(fields, mode, type_codes=[5, 7])
    union = pa.Array.from_buffers(type_, 3, buffers[: 2 if mode == "sparse" else 3], 0, children=children)
    struct = pa.StructArray.from_arrays([union], ["u"], mask=pa.array([False, True, False]))
    for column in (union, struct, pa.ListArray.from_arrays([0, 2, 3, 3], union)):
        path = tmp_path / f"{column.type.id}.tfrecord"
        tfr.write_tfrecord({"x": column}, path, column_encoding={"x": encoding})
        read = tfr.read_table(path)
        read.validate(full=True)
        assert read.schema.field("x").type == column.type
        assert read["x"].to_pylist() == column.to_pylist()


@pytest.mark.parametrize("form", ["list", "struct", "struct in dictionary"])
@pytest.mark.parametrize(
    "column",
    [
        pa.DictionaryArray.from_arrays([0, 1, 0], pa.array(["a", None])),
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["a", None])),
    ],
    ids=lambda column: str(column.type).partition("<")[0],
)
def test_a_null_of_a_dictionary_or_a_run_where_the_type_has_none(tmp_path: Path, column: pa.Array, form: str) -> None:
    field = pa.field("item", column.type, nullable=False)
    outer = pa.StructArray.from_arrays([column], fields=[field])
    if form == "list":
        outer = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), column, pa.list_(field))
    elif form == "struct in dictionary":
        outer = pa.DictionaryArray.from_arrays([0, 1, 1], outer)
    tfr.write_tfrecord({"x": outer[:1]}, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == outer[:1].to_pylist()
    with pytest.raises(tfr.errors.EncodeError, match="null where its type") as caught:
        tfr.write_tfrecord({"x": outer}, tmp_path / "b.tfrecord")
    assert caught.value.record == 1


NUMBERS = pa.list_(pa.field("item", pa.int64(), nullable=False))
PAIRS = pa.struct([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.int64())])
PAIR_LISTS = pa.list_(pa.field("item", PAIRS, nullable=False))
DICTS = pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False))
some = st.none() | st.integers(0, 9)
pairs = st.none() | st.fixed_dictionaries({"a": some, "b": some})


def has_misplaced_null(value: Any, type_: pa.DataType) -> bool:
    if value is None:
        return False
    if pa.types.is_struct(type_):
        parts = [(value[field.name], field) for field in type_]
    elif pa.types.is_map(type_):
        parts = [(item, type_.item_field) for _, item in value]
    elif pa.types.is_list(type_):
        parts = [(item, type_.value_field) for item in value]
    else:
        return False
    return any((part is None and not field.nullable) or has_misplaced_null(part, field.type) for part, field in parts)


def nullable(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(field.name, nullable(field.type)) for field in type_])
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, nullable(type_.item_type))
    return pa.list_(nullable(type_.value_type)) if pa.types.is_list(type_) else type_


@pytest.mark.parametrize("form", ["nested", "json"])
@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (NUMBERS, st.lists(some, max_size=3)),
        (PAIRS, pairs),
        (PAIR_LISTS, st.lists(pairs, max_size=3)),
        (pa.list_(PAIR_LISTS), st.lists(st.none() | st.lists(pairs, max_size=2), max_size=2)),
        (pa.struct([pa.field("x", NUMBERS)]), st.fixed_dictionaries({"x": st.none() | st.lists(some, max_size=2)})),
        (DICTS, st.lists(st.tuples(st.sampled_from("abc"), some), max_size=3, unique_by=lambda pair: pair[0])),
    ],
    ids=["list", "struct", "structs", "lists", "list in struct", "map"],
)
@pytest.mark.filterwarnings("ignore:'x' occurs in none")
@given(data=st.data())
def test_a_null_where_the_type_has_none_is_an_error_of_reader_and_writer(
    tmp_path_factory: pytest.TempPathFactory, form: str, type_: pa.DataType, values: Any, data: Any
) -> None:
    rows = data.draw(st.lists(st.none() | values, min_size=1, max_size=4))
    path = tmp_path_factory.mktemp("nulls") / "a.tfrecord"
    tfr.write_tfrecord(pa.table({"x": pa.array(rows, nullable(type_))}), path, column_encoding={"x": form})
    schema = pa.schema([pa.field("x", type_, metadata={"tfrecord_io.encoding": form})])
    declared = pa.table({"x": pa.array(rows, type_)}, schema=schema)
    bad = [row for row, value in enumerate(rows) if has_misplaced_null(value, type_)]
    if not bad:
        assert tfr.read_table(path, schema=schema)["x"].to_pylist() == declared["x"].to_pylist()
        tfr.write_tfrecord(declared, path, mode="overwrite")
        assert tfr.read_table(path)["x"].to_pylist() == declared["x"].to_pylist()
        return
    with pytest.raises(tfr.errors.DecodeError, match="null where its type") as reading:
        tfr.read_table(path, schema=schema)
    with pytest.raises(tfr.errors.EncodeError, match="null where its type") as writing:
        tfr.write_tfrecord(declared, path, mode="overwrite")
    assert reading.value.record == writing.value.record == bad[0]
