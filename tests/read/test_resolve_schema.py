"""Which schema governs a read: types that are declared while the others are inferred."""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from counted_calls import calls
from reading import read_by
from records import blobs, example, floats, int64s, written
from strategies import sequence_example
from tfrecord_io.columns.schema.column_features import ENCODING_KEY, PART_KEY
from tfrecord_io.columns.schema.embedded import field_bytes, pack
from tfrecord_io.columns.schema.field import SHAPE_KEY
from tfrecord_io.errors import SchemaError

NUMBERS = [example(x=int64s(1)), example(x=int64s(2)), example(x=floats(0.5))]
MIXED = [example(x=value) for value in (int64s(2), int64s(1), int64s(1), blobs(b"a"), blobs(b"b"))]


@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("files", [[NUMBERS], [NUMBERS[:2], NUMBERS[2:]]])
@pytest.mark.parametrize(
    ("type_", "expected"),
    [
        ("float64", [1.0, 2.0, 0.5]),
        ("float32", [1.0, 2.0, 0.5]),
        ("list<float>", [[1.0], [2.0], [0.5]]),
        ("decimal128(5, 2)", [Decimal("1.00"), Decimal("2.00"), Decimal("0.50")]),
    ],
)
def test_an_override_is_the_type_of_integers_and_floats(
    engine: str, tmp_path: Path, files: list[list[bytes]], type_: str, expected: list[Any], on_error: str
) -> None:
    paths = [written(tmp_path / str(number), payloads) for number, payloads in enumerate(files)]
    options: dict[str, Any] = {"schema_overrides": {"x": type_}, "on_error": on_error}
    assert read_by(tfr.read_table, paths, **options)["x"].to_pylist() == expected
    with tfr.open_reader(tfr.dataset(paths, schema_overrides={"*": type_}), on_error=on_error) as reader:
        assert reader.read_all()["x"].to_pylist() == expected
        assert not reader.report.skipped


def test_every_record_of_an_overridden_column_is_described(tmp_path: Path) -> None:
    path = written(tmp_path / "a", NUMBERS)
    assert tfr.read_arrays(tfr.dataset(path, schema_overrides={"x": "float64"}))["x"].tolist() == [1, 2, 0.5]
    assert tfr.describe(tfr.dataset(path, schema_overrides={"x": "float64"})).records == 3
    assert tfr.infer_schema(tfr.dataset(path, schema_overrides={"x": "float64"})).evidence["x"].records == 3


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_an_override_states_which_values_are_left_out(engine: str, tmp_path: Path) -> None:
    """Not the more frequent kind, which is kept of a column whose type is inferred."""
    path = written(tmp_path / "a", MIXED)
    assert tfr.read_table(tfr.dataset(path, schema_overrides={"x": "string"}), on_error="skip")["x"].to_pylist() == [
        "a",
        "b",
    ]
    assert tfr.read_table(tfr.dataset(path, schema_overrides={"x": "int8"}), on_error="skip")["x"].to_pylist() == [
        2,
        1,
        1,
    ]
    with pytest.raises(tfr.errors.FeatureTypeError, match=r"record 3 .*'x': expected an Int64List, got a BytesList"):
        tfr.read_table(tfr.dataset(path, schema_overrides={"x": "int64"}))
    both = written(tmp_path / "b", [example(x=int64s(1), y=int64s(1)), example(x=floats(0.5), y=blobs(b"y"))])
    with pytest.raises(tfr.errors.SchemaError, match=r"'y': it is an Int64List .* and a BytesList"):
        tfr.read_table(tfr.dataset(both, schema_overrides={"x": "float64"}))


@pytest.mark.parametrize(
    "type_", [pa.fixed_shape_tensor(pa.float32(), (2,)), pa.list_(pa.float32()), pa.list_(pa.int64())]
)
def test_bytes_of_arrays_that_are_declared_as_numbers(tmp_path: Path, type_: pa.DataType) -> None:
    path = written(tmp_path / "a", [example(x=blobs(bytes(8)))])
    with pytest.raises(
        tfr.errors.FeatureTypeError, match=r"got a BytesList; declare arrays .* with tfr.tensor\(dtype, shape\)"
    ):
        tfr.read_table(path, schema={"x": type_})
    assert tfr.read_table(path, schema={"x": tfr.tensor("float32", (2,))})["x"].to_pylist() == [[0, 0]]
    with pytest.raises(tfr.errors.FeatureTypeError, match="got a BytesList; pass schema="):
        tfr.read_table(path, schema={"x": "int64"})


@pytest.mark.parametrize("type_", [tfr.sequence("float64"), "list<double>"])
def test_an_override_is_the_type_of_feature_lists(engine: str, tmp_path: Path, type_: Any) -> None:
    path = written(tmp_path / "a", [sequence_example({}, {"x": [value]}) for value in (int64s(1), floats(0.5))])
    assert tfr.read_table(tfr.dataset(path, schema_overrides={"x": type_}))["x"].to_pylist() == [[1], [0.5]]


def _of_dataset(path: Path, **keywords: Any) -> Any:
    return tfr.dataset(path, **keywords).to_table()


def _of_arrays(path: Path, **keywords: Any) -> Any:
    return list(read_by(tfr.iter_arrays, path, batch_size=1, **keywords))


def _of_polars(path: Path, **keywords: Any) -> Any:
    pytest.importorskip("polars")
    return read_by(tfr.scan_polars, path, **keywords).collect()


def _of_duckdb(path: Path, **keywords: Any) -> Any:
    duckdb = pytest.importorskip("duckdb")
    if duckdb.__version__.startswith("1."):
        pytest.skip("DuckDB 1 selects the columns that it knows by name")
    with duckdb.connect() as connection:
        tfr.register_duckdb(connection, tfr.dataset(path, **keywords), name="rows")
        return connection.sql("SELECT * FROM rows").fetchall()


@pytest.mark.parametrize("read", [_of_dataset, _of_arrays, _of_polars, _of_duckdb])
@pytest.mark.parametrize("columns", [None, "*", "!z"])
@pytest.mark.parametrize("column", ["x", "z"])
def test_a_filter_hides_no_feature_that_the_schema_does_not_name(
    tmp_path: Path, read: Any, columns: str | None, column: str
) -> None:
    embedded, rows = tmp_path / "embedded", [example(x=int64s(1), y=int64s(3), z=int64s(2)), example(x=int64s(2))]
    tfr.write_tfrecord({"x": [1], "z": [2]}, embedded)
    both = tmp_path / "both"
    both.write_bytes(embedded.read_bytes() + written(tmp_path / "foreign", rows).read_bytes())
    options: dict[str, Any] = {"columns": columns, "filters": [(column, ">", 0)]}
    with pytest.raises(Exception, match="'y': the schema does not name this feature"):  # DuckDB has errors of its own
        read(both, **options)


@pytest.mark.parametrize("read", [_of_dataset, _of_arrays, _of_polars, _of_duckdb])
def test_a_filter_hides_no_feature_that_the_sample_lacks(tmp_path: Path, read: Any) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example(x=int64s(1), y=int64s(3))])
    with pytest.raises(Exception, match="'y': the schema does not name this feature"):
        read(path, sample=1, on_new="raise", filters=[("x", ">", 0)])


@pytest.mark.parametrize(
    "filters",
    [[("y", "in", ["b", "c"])], [("y", "not in", ["a", None])], pc.utf8_length(pc.field("y")) == 1, [("y", "==", "b")]],
)
def test_a_filter_is_on_the_type_that_a_column_without_values_has_in_a_later_file(tmp_path: Path, filters: Any) -> None:
    tfr.write_tfrecord({"x": [1], "y": pa.nulls(1)}, tmp_path / "0")
    tfr.write_tfrecord({"x": [2, 3], "y": [None, "b"]}, tmp_path / "1")
    paths = [tmp_path / "0", tmp_path / "1"]
    assert read_by(tfr.read_table, paths, filters=filters)["x"].to_pylist() == [3]
    assert tfr.dataset(paths[0], filters=[("y", "in", ["b"])]).count_rows() == 0
    with pytest.raises(tfr.errors.SchemaError, match="compares text with the number 1"):
        tfr.read_table(paths, filters=[("y", "in", [1])])


@pytest.mark.parametrize(
    "read",
    [
        lambda dataset, **selected: tfr.read_table(dataset, **selected)["x"].to_pylist(),
        lambda dataset, **selected: list(tfr.read_tfrecord(dataset, **selected)["x"]),
        lambda dataset, **selected: tfr.read_arrays(dataset, **selected)["x"].tolist(),
        lambda dataset, filters, columns: (
            (dataset.filter(filters).select(columns) + dataset.select(columns)).head(2)["x"].to_pylist()
        ),
        lambda dataset, **selected: list(range(1, 1 + tfr.describe(dataset, **selected).records)),
    ],
    ids=["table", "frame", "arrays", "list", "describe"],
)
@pytest.mark.parametrize(
    ("overrides", "filters"),
    [({"y": "float64"}, [("y", ">", 0.1)]), ({"y*": "float64", "n": "timestamp[s]"}, [("n", "<", "1970-01-02")])],
)
def test_an_override_holds_for_a_column_of_the_filter_that_is_not_selected(
    tmp_path: Path, read: Any, overrides: dict[str, str], filters: Any
) -> None:
    rows = [example(x=int64s(1), y=floats(0.1), n=int64s(0)), example(x=int64s(2), y=floats(0.5), n=int64s(1))]
    dataset = tfr.dataset(written(tmp_path / "a", rows), schema_overrides=overrides)
    assert read(dataset, columns=["x"], filters=filters) == [1, 2]  # 0.1 of float32 is more than that of float64


@pytest.mark.parametrize("columns", [["x"], "!y", "*"])
def test_an_override_of_a_feature_that_no_record_has_is_an_error_whichever_columns_are_selected(
    tmp_path: Path, columns: Any
) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1), y=floats(0.1))])
    assert tfr.dataset(path, columns=columns, schema_overrides={"y": "float64"}).count_rows() == 1
    for key in ("z", "z*"):
        with pytest.raises(tfr.errors.FeatureNotFoundError, match="matches no column"):
            tfr.dataset(path, columns=columns, schema_overrides={key: "float64"}).count_rows()


@pytest.fixture(params=[False, True], ids=["foreign first", "embedded first"])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> list[Path]:
    """Of two files with x, the one without an embedded schema also has y."""
    tfr.write_tfrecord({"x": [1]}, tmp_path / "embedded")
    paths = [written(tmp_path / "foreign", [example(x=int64s(2), y=int64s(3))]), tmp_path / "embedded"]
    return paths[::-1] if request.param else paths


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"columns": ["y"]}, {"y": [3]}),
        ({"columns": "y*"}, {"y": [3]}),
        ({"columns": "!y"}, {"x": [2]}),
        ({"schema_overrides": {"y": "float32"}}, {"x": [2], "y": [3.0]}),
        ({"schema_overrides": {"y": "int8"}, "columns": ["y", "x"]}, {"y": [3], "x": [2]}),
    ],
)
def test_columns_of_files_without_an_embedded_schema_can_be_named(
    engine: str, mixed: list[Path], options: dict[str, Any], expected: dict[str, Any]
) -> None:
    whole = read_by(tfr.read_table, mixed, **options)
    rows = slice(None) if mixed[0].name == "foreign" else slice(None, None, -1)
    assert {name: whole[name].to_pylist()[rows][:1] for name in whole.column_names} == expected
    assert len(whole) == 2
    assert read_by(tfr.read_table, mixed, filters=[("y", "==", 3)], **options).to_pydict() == expected


def test_an_override_is_the_type_of_a_column_that_no_embedded_schema_has(engine: str, mixed: list[Path]) -> None:
    mixed.append(written(mixed[0].with_name("other"), [example(x=int64s(4), y=floats(0.5))]))
    assert tfr.read_table(tfr.dataset(mixed, schema_overrides={"y": "float32"}), filters=[("y", "<", 9)])[
        "y"
    ].to_pylist() == [3, 0.5]


@pytest.mark.parametrize(
    "options", [{"columns": "z"}, {"filters": [("z", "==", 1)]}, {"schema_overrides": {"z": "int8"}}]
)
def test_a_wrong_name_is_answered_with_the_columns_of_all_files(mixed: list[Path], options: dict[str, Any]) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"'z'.*valid names: x, y$"):
        read_by(tfr.read_table, mixed, **options)


@pytest.mark.parametrize("embed", [False, True])
def test_a_filter_that_names_the_feature_of_a_renamed_column_is_told_the_column(tmp_path: Path, embed: bool) -> None:
    tfr.write_tfrecord({"tags": [["a"], ["b"]], "n": [1, 2]}, tmp_path / "a", embed_schema=embed)
    schema = {"words": tfr.list_("string", feature="tags")}
    message = r"feature 'tags': the filter names the feature, which is the column 'words' of schema=; name the column"
    for read in (tfr.read_table, tfr.open_reader, lambda *a, **k: tfr.dataset(*a, **k).schema, tfr.read_arrays):
        with pytest.raises(tfr.errors.FeatureNotFoundError, match=message):
            read(tmp_path / "a", schema=schema, filters=[("tags", "contains", "b")])
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=message):
        tfr.dataset(tmp_path / "a", schema=schema).filter([("tags", "contains", "b")])
    for condition in (("words", "contains", "b"), ("n", "==", 2)):
        assert tfr.read_table(tmp_path / "a", schema=schema, filters=[condition])["words"].to_pylist() == [["b"]]


def test_overrides_of_several_kinds_in_a_file_beside_one_with_a_schema(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a")
    with tfr.RecordWriter(tmp_path / "b") as writer:
        for value in (1.5, 3):
            writer.write(tfr.encode_example({"x": 5, "z": value}))
    found = tfr.read_table(tfr.dataset([tmp_path / "a", tmp_path / "b"], schema_overrides={"z": "float64"}))
    assert found["z"].to_pylist() == [None, 1.5, 3.0]


def test_a_scalar_type_for_a_feature_list_is_named(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [sequence_example({}, {}), sequence_example({}, {"x": [int64s(1)]})])
    with pytest.raises(
        tfr.errors.FeatureTypeError, match="record 1: feature 'x': expected one value, got a feature list"
    ):
        tfr.read_table(tfr.dataset(path, schema_overrides={"x": tfr.scalar("int64")}))
    assert tfr.read_table(tfr.dataset(path, schema_overrides={"x": "list<int64>"}))["x"].to_pylist() == [None, [1]]


# ---- columns that are stored as several features

LISTS = [[1.0, None, 3.0], None, [], [None]]
OTHER_LISTS = [pa.list_(pa.float64()), pa.large_list(pa.float32()), tfr.list_("float16"), "list<float>"]


def lists_written(path: Path, lists: list[Any] = LISTS) -> Path:
    tfr.write_tfrecord(pa.table({"x": pa.array(lists, pa.list_(pa.float32()))}), path)
    return path


@pytest.mark.parametrize("keyword", ["schema", "schema_overrides"])
@pytest.mark.parametrize("type_", OTHER_LISTS)
@pytest.mark.parametrize("name", ["x.tfrecord", "x@3"])
def test_a_declared_type_of_lists_keeps_their_nulls(
    engine: str, tmp_path: Path, name: str, type_: Any, keyword: str
) -> None:
    """They are in another feature, which a type does not name; the embedded schema does."""
    dataset = tfr.dataset(lists_written(tmp_path / name), **{keyword: {"x": type_}})
    assert tfr.read_table(dataset)["x"].to_pylist() == LISTS
    assert [x for batch in tfr.open_reader(dataset, batch_size=1) for x in batch["x"].to_pylist()] == LISTS
    assert tfr.read_table(dataset, columns=["x"], filters=pc.field("x").is_valid())["x"].to_pylist() == [
        x for x in LISTS if x is not None
    ]
    with tfr.open_random(dataset) as records:
        assert records.select(pc.field("x").is_valid()).to_table()["x"].null_count == 0
        assert records.select(pc.scalar(True)).to_table()["x"].to_pylist() == LISTS


def test_declared_lists_of_a_stream_that_cannot_seek_keep_their_nulls(tmp_path: Path) -> None:
    content = lists_written(tmp_path / "x.tfrecord").read_bytes()
    read_end, write_end = os.pipe()
    os.write(write_end, content)
    os.close(write_end)
    with os.fdopen(read_end, "rb") as file:
        assert tfr.read_table(file, schema={"x": "list<float>"})["x"].to_pylist() == LISTS


def test_nulls_of_declared_lists_in_a_later_file_are_read_or_an_error(engine: str, tmp_path: Path) -> None:
    files = [lists_written(tmp_path / "a", [[1.0]]), lists_written(tmp_path / "b")]
    assert tfr.read_table(files, schema={"x": "list<float>"})["x"].to_pylist() == [[1.0], *LISTS]
    with tfr.open_reader(tfr.dataset(files, schema={"x": "list<float>"})) as reader:
        with pytest.raises(SchemaError, match="encoding='nested'") as error:
            list(reader)
        assert (error.value.feature, error.value.path, error.value.record) == ("x", str(files[1]), 0)
    declared = {"x": tfr.list_("float32", encoding="nested")}
    with tfr.open_reader(tfr.dataset(files, schema=declared)) as reader:
        assert [x for batch in reader for x in batch["x"].to_pylist()] == [[1.0], *LISTS]


@pytest.mark.parametrize("keyword", ["schema", "schema_overrides"])
@pytest.mark.parametrize("type_", ["float32", tfr.tensor("float32", (None,)), tfr.tensor("float32", ())])
def test_a_declared_type_that_cannot_have_the_nulls_of_lists_is_refused(
    tmp_path: Path, type_: Any, keyword: str
) -> None:
    dataset = tfr.dataset(lists_written(tmp_path / "x", [[None]]), **{keyword: {"x": type_}})
    with pytest.raises(SchemaError, match=r"x.* positions of nulls.* declare list<item: float>"):
        tfr.read_table(dataset)


@pytest.mark.parametrize("metadata", [{SHAPE_KEY: b"["}, {ENCODING_KEY: b"nested", PART_KEY: b"?"}])
def test_a_damaged_embedded_schema_is_no_matter_for_declared_lists(
    tmp_path: Path, metadata: dict[bytes, bytes]
) -> None:
    content = pack(pa.schema([pa.field("x", pa.list_(pa.float32()), metadata=metadata)]))
    path = written(tmp_path / "a", [field_bytes(content) + example(x=floats(0.5))])
    assert tfr.read_table(path, schema={"x": "list<float>"})["x"].to_pylist() == [[0.5]]


def test_features_of_lists_with_nulls_can_be_declared_as_columns_of_their_own(tmp_path: Path) -> None:
    """As TensorFlow reads them."""
    schema = {"x": "list<float>", "x/null_positions": "list<int64>"}
    dataset = tfr.dataset(lists_written(tmp_path / "x"), schema=schema)
    rows = tfr.read_table(dataset).to_pydict()
    assert rows == {"x": [[1.0, 0.0, 3.0], None, [], [0.0]], "x/null_positions": [[1], None, None, [0]]}
    assert tfr.read_table(dataset, columns=["x"])["x"].to_pylist() == rows["x"]


@pytest.mark.parametrize(
    ("values", "type_", "declared"),
    [
        ([[[1, None], None], None, []], pa.list_(pa.list_(pa.int64())), pa.list_(pa.list_(pa.int8()))),
        ([{"a": None}, None, {"a": 1}], pa.struct({"a": pa.int64()}), pa.struct({"a": pa.int8()})),
        ([[{"a": 1}, None], None], pa.list_(pa.struct({"a": pa.int64()})), pa.list_(pa.struct({"a": pa.int8()}))),
    ],
)
def test_a_declared_type_of_nested_values_keeps_how_they_are_stored(
    tmp_path: Path, values: list[Any], type_: pa.DataType, declared: pa.DataType
) -> None:
    tfr.write_tfrecord(pa.table({"x": pa.array(values, type_)}), tmp_path / "x")
    table = tfr.read_table(tmp_path / "x", schema={"x": declared})
    assert (table["x"].to_pylist(), table["x"].type) == (values, declared)


TIMES = [
    (pa.timestamp("ns"), pa.timestamp("us")),
    (pa.timestamp("s", "UTC"), pa.timestamp("ms", "UTC")),
    (pa.list_(pa.duration("ms")), pa.list_(pa.duration("s"))),
    (pa.list_(pa.list_(pa.time32("s"))), pa.list_(pa.list_(pa.time64("us")))),
    (pa.struct({"a": pa.date32()}), pa.struct({"a": pa.timestamp("s")})),
    (pa.date32(), pa.date64()),
]


@pytest.mark.filterwarnings("ignore:'x")
@pytest.mark.parametrize("keyword", ["schema", "schema_overrides"])
@pytest.mark.parametrize(("stored", "declared"), [*TIMES, *(pair[::-1] for pair in TIMES)])
def test_a_declared_unit_other_than_the_stored_one_is_an_error(
    tmp_path: Path, stored: pa.DataType, declared: pa.DataType, keyword: str
) -> None:
    """The numbers would be taken for those of other times."""
    tfr.write_tfrecord(pa.table({"x": pa.nulls(2, stored), "y": [1, 2]}), tmp_path / "x")
    dataset = tfr.dataset(tmp_path / "x", **{keyword: {"x": declared}})
    with pytest.raises(SchemaError, match=r"stored as .* would take the numbers of \w+ as \w+") as error:
        tfr.read_table(dataset)
    assert error.value.feature.startswith("x")
    same = tfr.dataset(tmp_path / "x", **{keyword: {"x": stored}})
    assert tfr.read_table(same, columns=["x"]).to_pydict() == {"x": [None, None]}


def test_a_wrong_unit_in_an_embedded_schema_can_be_corrected(tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"x": pa.array([7], pa.timestamp("ms"))}), tmp_path / "x")
    dataset = tfr.dataset(tmp_path / "x", schema="infer", schema_overrides={"x": pa.timestamp("s")})
    assert tfr.read_table(dataset)["x"].cast(pa.int64()).to_pylist() == [7]
    numbers = tfr.read_table(tmp_path / "x", schema={"x": pa.int64()})
    assert numbers["x"].to_pylist() == [7]


def test_units_of_times_that_differ_in_a_later_file_are_an_error(tmp_path: Path) -> None:
    for name, unit in (("a", "ns"), ("b", "us")):
        tfr.write_tfrecord(pa.table({"x": pa.array([7], pa.timestamp(unit))}), tmp_path / name)
    files = [tmp_path / "a", tmp_path / "b"]
    with pytest.raises(SchemaError, match="stored as timestamp") as error:
        tfr.read_table(files, schema={"x": pa.timestamp("ns")})
    assert (error.value.path, error.value.record) == (str(files[1]), 0)


@pytest.mark.parametrize("embed", [True, False])
@pytest.mark.parametrize(
    ("stored", "type_", "features"),
    [
        (pa.array([1]), pa.struct({"a": pa.int64()}), "'x/a'"),
        (pa.array([1]), pa.list_(pa.struct({"a": pa.int64(), "b": pa.int8()})), "'x/a', 'x/b'"),
        (pa.array([{"a": 1}]), pa.int64(), "'x'"),
        (pa.array([[[1]]]), pa.struct({"a": pa.int64()}), "'x/a'"),
    ],
)
def test_an_override_that_reads_no_feature_of_its_column_is_an_error(
    tmp_path: Path, stored: pa.Array, type_: pa.DataType, features: str, embed: bool
) -> None:
    tfr.write_tfrecord({"x": stored, "y": [1]}, tmp_path / "a.tfrecord", embed_schema=embed)
    if "x" not in tfr.dataset(tmp_path / "a.tfrecord").schema.names:  # whose features are columns of their own
        return
    for columns in (None, ["x"], ["x", "y"]):
        with pytest.raises(
            tfr.errors.SchemaError, match=f"'x': it is stored as .* read from other features: {features};"
        ):
            tfr.read_table(tfr.dataset(tmp_path / "a.tfrecord", schema_overrides={"x": type_}), columns=columns)


@pytest.mark.parametrize("embed_schema", [True, False])
def test_many_overrides_take_the_same_for_each(tmp_path: Path, embed_schema: bool) -> None:
    counts = []
    for columns in (100, 1000):
        names = [f"x{i}" for i in range(columns)]
        path = tmp_path / f"{columns}.tfrecord"
        tfr.write_tfrecord({name: pa.array([0.5], "float32") for name in names}, path, embed_schema=embed_schema)
        dataset = tfr.dataset(path, schema_overrides=dict.fromkeys(names[::2], "float64"), threads=1)
        counts.append(calls(lambda dataset=dataset: dataset.to_table()))
        assert dataset.schema.types.count(pa.float64()) == columns // 2
    assert counts[1] < 11 * counts[0], counts
