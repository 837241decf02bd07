"""Partition columns, in every way of reading."""

from __future__ import annotations

import gzip
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from arrow_tables import TEXT_DTYPE
from reading import read_by


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for n, (label, year) in enumerate([("cat", "2020"), ("big%20dog", "2021"), ("__HIVE_DEFAULT_PARTITION__", "-5")]):
        tfr.write_tfrecord({"x": [n, 10 + n], "a": ["p", "q"]}, f"{tmp_path}/label={label}/year={year}/", shards=2)
    return tmp_path


EXPECTED = {
    "x": [2, 12, 1, 11, 0, 10],
    "a": ["p", "q"] * 3,
    "label": [None, None, "big dog", "big dog", "cat", "cat"],
    "year": [-5, -5, 2021, 2021, 2020, 2020],
}
TYPES = {"x": pa.int64(), "a": pa.string(), "label": pa.string(), "year": pa.int64()}

MODES: list[dict[str, Any]] = [
    {},
    {"schema": "infer"},
    {"schema": {"x": "int64", "a": "string"}},
    {"schema_overrides": {"x": "int64"}},
    {"threads": 1},
    {"threads": 3},
]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_partition_columns_follow_the_features(engine: str, root: Path, mode: dict[str, Any]) -> None:
    features = ["a", "x"] if mode.get("schema") == "infer" else ["x", "a"]
    expected = pa.table({n: pa.array(EXPECTED[n], TYPES[n]) for n in [*features, "label", "year"]})
    table = read_by(tfr.read_table, root, **mode)
    table.validate(full=True)
    assert table == expected
    with read_by(tfr.open_reader, root, batch_size=1, **mode) as reader:
        assert reader.schema == table.schema
        assert pa.Table.from_batches(list(reader)).to_pydict() == expected.to_pydict()
    frame = read_by(tfr.read_tfrecord, root, **mode)
    assert [str(t) for t in frame.dtypes[["label", "year"]]] == [TEXT_DTYPE, "int64"]
    assert frame.year.tolist() == EXPECTED["year"]


@pytest.mark.parametrize("mode", MODES[:3], ids=str)
def test_columns_selects_partition_columns(engine: str, root: Path, mode: dict[str, Any]) -> None:
    for columns in (["x"], ["year", "x"], ["label"], ["x", "label", "a"], "year"):
        wanted = [columns] if isinstance(columns, str) else columns
        table = read_by(tfr.read_table, root, columns=columns, **mode)
        assert table.to_pydict() == {n: EXPECTED[n] for n in wanted}
        assert table.column_names == wanted
    assert set(read_by(tfr.read_table, root, columns=["*", "!label"], **mode).column_names) == {"x", "a", "year"}
    assert read_by(tfr.read_table, root, columns=["ye*"], **mode).column_names == ["year"]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"valid names: a, label, x, year"):
        read_by(tfr.read_table, root, columns=["gone"], **mode)


def test_globs_limits_paths_and_metadata(root: Path) -> None:
    table = tfr.read_table(
        tfr.dataset(root / "label=*" / "**" / "*.tfrecord", include_file_paths="path", offset=1), limit=3
    )
    assert table.column_names == ["x", "a", "label", "year", "path"]
    assert table["year"].to_pylist() == EXPECTED["year"][1:4]
    assert tfr.read_table(root / "label=cat" / "*" / "*").column_names == ["x", "a", "year"]
    found = tfr.read_metadata(root)
    assert (found.records, found.schema) == (6, tfr.read_table(root).schema)
    assert tfr.count(root) == 6
    assert tfr.describe(root).records == 6
    assert tfr.read_table(tfr.dataset(root, record_type="bytes")).column_names == ["record", "label", "year"]


def test_values_that_are_not_all_integers_are_text(tmp_path: Path) -> None:
    for value in ("1", "02", "9223372036854775808"):
        tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/big={value}/mixed={value}x/n={len(value)}/")
    table = tfr.read_table(tmp_path)
    assert table.schema.types == [pa.int64(), pa.string(), pa.string(), pa.int64()]
    assert tfr.read_table([tmp_path]).schema == table.schema
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/only=__HIVE_DEFAULT_PARTITION__/")
    assert tfr.read_table(tmp_path, columns=["only"]).schema.types == [pa.string()]


DAY = date(2024, 5, 1)


@pytest.mark.parametrize("listed", [False, True], ids=["sum", "list"])
@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (pa.array(["01"]), pa.array([2]), pa.array(["01", "2"])),
        (pa.array([2]), pa.array(["01"]), pa.array(["2", "01"])),
        (pa.array(["01"]), None, pa.array(["01", "7"])),  # of a folder without a manifest
        (pa.array([1], pa.int8()), pa.array([2]), pa.array([1, 2])),
        (pa.array([DAY]), pa.array(["x"]), pa.array(["2024-05-01", "x"])),
        (pa.array([DAY]), pa.array([DAY]), pa.array([DAY, DAY])),
    ],
)
def test_several_datasets_have_what_their_manifests_state(
    first: pa.Array, second: pa.Array | None, expected: pa.Array, listed: bool, tmp_path: Path
) -> None:
    """Text of digits in the names of folders stays text, whatever is read with it."""
    paths = [str(tmp_path / name) for name in "ab"]
    for path, values in zip(paths, (first, second), strict=True):
        if values is None:
            (tmp_path / "b" / "p=7").mkdir(parents=True)
            tfr.write_tfrecord({"x": [1]}, tmp_path / "b" / "p=7" / "a.tfrecord")
        else:
            tfr.write_tfrecord({"x": [1], "p": values}, path, partition_by=["p"])
    data = tfr.dataset(paths) if listed else tfr.dataset(paths[0]) + tfr.dataset(paths[1])
    assert data.select(["p"]).to_table()["p"].combine_chunks().equals(expected)


@pytest.mark.parametrize("other", ["flat", "q=1"])
def test_a_type_stays_that_of_its_manifest_beside_files_without_the_column(other: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1], "p": [DAY]}, tmp_path / "d", partition_by=["p"])
    (tmp_path / other).mkdir()
    tfr.write_tfrecord({"x": [2]}, tmp_path / other / "a.tfrecord")
    table = tfr.read_table([tmp_path / "d", tmp_path / other / "a.tfrecord"])
    assert table["p"].combine_chunks().equals(pa.array([DAY, None]))


@pytest.mark.parametrize("mode", [{}, {"schema": "infer"}, {"stable_types": True}], ids=str)
def test_types_of_folders_are_overridden(engine: str, root: Path, mode: dict[str, Any]) -> None:
    plain = read_by(tfr.read_table, root, **mode)
    table = read_by(tfr.read_table, root, schema_overrides={"year": "string", "x": "int32"}, **mode)
    assert table.column_names == plain.column_names
    assert table["year"].to_pylist() == ["-5", "-5", "2021", "2021", "2020", "2020"]
    assert [str(table.schema.field(name).type) for name in ("x", "label")] == ["int32", "string"]
    only = tfr.dataset(root, schema_overrides={"year": "float32"}, **mode).filter([("year", ">", 0)]).to_table()
    assert sorted(only["year"].to_pylist()) == [2020, 2020, 2021, 2021]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'yaer'"):
        read_by(tfr.read_table, root, schema_overrides={"yaer": "string"}, **mode)
    with pytest.raises(tfr.errors.SchemaError, match="'label=big dog' is not a value of the declared type int8"):
        read_by(tfr.read_table, root, schema_overrides={"label": "int8"}, **mode)


@pytest.mark.parametrize("mode", [{}, {"schema": "infer"}], ids=str)
def test_a_feature_of_the_same_name_is_an_error_that_names_both(tmp_path: Path, mode: dict[str, Any]) -> None:
    tfr.write_tfrecord({"label": ["dog"], "x": [1]}, f"{tmp_path}/d/label=cat/")
    for columns in (None, ["x"], ["label"]):
        with pytest.raises(tfr.errors.SchemaError, match=r"feature 'label'.*directory 'label=cat'"):
            read_by(tfr.read_table, tmp_path / "d", columns=columns, **mode)
    assert tfr.read_table(tmp_path / "d" / "label=cat")["label"].to_pylist() == ["dog"]


def test_a_declared_column_may_be_a_partition_column(engine: str, root: Path) -> None:
    with tfr.open_reader(root) as reader:
        found = reader.schema
    assert tfr.read_table(root, schema=found) == tfr.read_table(root)
    assert tfr.read_table(root, schema=tfr.Schema(found)).schema == found
    declared = {"year": "float32", "x": "int32", "label": pa.dictionary(pa.int8(), pa.string())}
    table = tfr.read_table(root, schema=declared)
    assert table.schema.types == [pa.float32(), pa.int32(), declared["label"]]
    assert table.to_pydict() == {name: EXPECTED[name] for name in declared}
    assert tfr.read_table(root, schema=declared, columns=["x", "label"]).column_names == ["x", "label"]
    assert tfr.read_table(root, schema={"year": "int16"}, columns=["year"])["year"].to_pylist() == EXPECTED["year"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"label": "int64"}, r"label=(cat|big dog)' is not a value of the declared type int64"),
        ({"label": tfr.scalar("string", required=True)}, "the file has no value in 'label=__HIVE_DEFAULT_PARTITION__'"),
        ({"year": "uint8"}, "year=.*uint8"),
    ],
)
def test_a_folder_name_that_does_not_fit_the_declared_type_is_an_error(
    root: Path, declared: dict[str, Any], message: str
) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=message) as caught:
        tfr.read_table(root, schema=declared)
    assert caught.value.feature == next(iter(declared))


def test_a_declared_default_is_the_value_of_files_without_one(engine: str, root: Path) -> None:
    tfr.write_tfrecord({"x": [3], "a": ["r"]}, root / "z.tfrecord")  # in no such directory
    schema = {"year": tfr.scalar("int16", default=-1, required=False), "label": tfr.scalar("string", default="none")}
    labels, years = ["none" if label is None else label for label in EXPECTED["label"]], EXPECTED["year"]
    expected = {"year": [*years, -1], "label": [*labels, "none"]}
    for keywords in ({"schema": schema}, {"schema_overrides": schema, "columns": ["year", "label"]}):
        assert read_by(tfr.read_table, root, **keywords).to_pydict() == expected
        for missing in (("label", "==", "none"), ("year", "<", 0)):
            rows = read_by(tfr.read_table, root, filters=[missing], **keywords)
            assert sorted(rows["label"].to_pylist()) == ["none"] * 3
        assert not len(read_by(tfr.read_table, root, filters=[("label", "==", None)], **keywords))
    assert tfr.read_arrays(root, schema=schema)["year"].tolist() == expected["year"]


@pytest.mark.parametrize(
    "value",
    [
        *(pa.int8(), pa.int64(), pa.uint16(), pa.float16(), pa.float32(), pa.float64()),
        *(pa.decimal32(3), pa.decimal128(3), pa.string()),
    ],
    ids=str,
)
def test_the_default_of_a_folder_column_is_one_of_its_categories(tmp_path: Path, value: pa.DataType) -> None:
    for folder in ("p=3", "p=4", "."):
        (tmp_path / folder).mkdir(exist_ok=True)
        tfr.write_tfrecord({"x": [1]}, tmp_path / folder / "a.tfrecord")
    expected = pa.array(["5", "3", "4"]).cast(value)
    type_ = pa.dictionary(pa.int8(), value)
    schema = {"x": "int64", "p": tfr.scalar(type_, default=expected[0].as_py())}
    table = tfr.read_table(tmp_path, schema=schema)
    assert table["p"].type == type_
    assert table["p"].to_pylist() == expected.to_pylist()
    if value not in (pa.float16(), pa.decimal32(3)):  # which Arrow does not compare
        found = tfr.read_table(tmp_path, schema=schema, filters=[("p", "==", expected[0].as_py())])
        assert found["p"].to_pylist() == expected[:1].to_pylist()


def test_shuffling_and_workers_keep_partition_columns(tmp_path: Path) -> None:
    for k in range(6):
        tfr.write_tfrecord({"x": [k] * 3}, f"{tmp_path}/k={k}/")
    for keywords in (
        {"shuffle_buffer": 4, "seed": 1, "epochs": 2},
        {"worker": (1, 2)},
        {"shuffle_buffer": 2, "seed": 2, "worker": (0, 3)},
    ):
        for batch in read_by(tfr.iter_arrays, tmp_path, batch_size=4, **keywords):
            assert batch["x"].tolist() == batch["k"].tolist()


def test_random_access_adds_partition_columns(root: Path) -> None:
    whole = tfr.read_table(root)
    with tfr.open_random(root) as records:
        assert records[:] == whole
        assert records[[5, 0, 3, 1]] == whole.take([5, 0, 3, 1])
        assert [records[at] for at in range(6)] == whole.to_pylist()


def test_pandas_index_and_categories_are_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": pd.Categorical(["a", "b"])}, index=pd.Index([5, 6], name="id"))
    for k in (1, 2):
        tfr.write_tfrecord(frame, f"{tmp_path}/k={k}/")
    again = tfr.read_tfrecord(tmp_path)
    assert (list(again.index), list(again.columns), again.k.tolist()) == ([5, 6, 5, 6], ["x", "k"], [1, 1, 2, 2])
    assert tfr.read_tfrecord(tmp_path, columns=["k"]).index.name == "id"


@pytest.mark.parametrize("added", ["a", "z"])
@pytest.mark.parametrize("stated", [True, False])
def test_the_order_of_columns_does_not_depend_on_the_folders_that_are_read(
    tmp_path: Path, added: str, stated: bool
) -> None:
    """It is the manifest's, or, without one, that of the first of all files."""
    for rows, mode in (
        ({"b": [1, 2], "a": [3, 4], "p": ["x", "y"]}, "error"),
        ({"a": [1, 2], "b": [3, 4], "p": [added, "y"]}, "append"),
    ):
        tfr.write_tfrecord(rows, f"{tmp_path}/d/", partition_by=["p"], mode=mode)
    if not stated:
        (tmp_path / "d" / "_MANIFEST.json").unlink()
    whole = tfr.read_table(tmp_path / "d").column_names
    assert whole == (["b", "a", "p"] if stated or added == "z" else ["a", "b", "p"])
    for condition in ([("p", "==", value)] for value in ("x", "y", added, "absent")):
        assert tfr.read_table(tmp_path / "d", filters=condition).column_names == whole
        assert tfr.dataset(tmp_path / "d").filter(condition).to_table().column_names == whole
        assert tfr.dataset(tmp_path / "d", filters=condition).schema.names == whole
        with tfr.open_reader(tmp_path / "d", filters=condition) as reader:
            assert reader.schema.names == whole
        with tfr.open_random(tmp_path / "d") as records:
            assert records.schema.names == whole


@pytest.mark.parametrize("empty", [b"", gzip.compress(b"")], ids=["empty", "compressed"])
@pytest.mark.parametrize("embed", [True, False])
def test_folders_without_records_have_the_columns_of_the_others(tmp_path: Path, empty: bytes, embed: bool) -> None:
    for folder in ("p=1", "p=2"):
        (tmp_path / folder).mkdir()
    (tmp_path / "p=1" / "a.tfrecord").write_bytes(empty)
    tfr.write_tfrecord({"n": [1, 2], "l": [[1], [2, 3]]}, tmp_path / "p=2" / "a.tfrecord", embed_schema=embed)
    whole = tfr.read_table(tmp_path).slice(0, 0)
    for condition in ([("p", "==", 1)], [("p", "==", 1), ("n", ">", 0)], [("p", "==", 3), ("n", ">", 0)]):
        assert tfr.read_table(tmp_path, filters=condition).equals(whole)
        assert tfr.dataset(tmp_path, filters=condition).to_table().equals(whole)
        assert tfr.read_table(tmp_path, filters=condition, columns=["l"]).equals(whole.select(["l"]))


@pytest.mark.skipif(sys.platform != "linux", reason="its file names are UTF-8")
def test_a_name_that_is_not_utf_8_is_an_error_that_names_the_column(tmp_path: Path) -> None:
    odd = tmp_path / "k=\udcff" / "\udcfe.tfrecord"
    odd.parent.mkdir()
    tfr.write_tfrecord({"x": [1]}, odd)
    assert tfr.read_table(tmp_path, columns=["x"])["x"].to_pylist() == [1]
    with pytest.raises(tfr.errors.SchemaError, match=r"feature 'k': the name .*udcff' is not UTF-8.*leave") as caught:
        tfr.read_table(tmp_path)
    assert caught.value.path == str(odd)
    paths = tfr.dataset(odd, include_file_paths="path")
    with pytest.raises(tfr.errors.SchemaError, match=r"feature 'path': the name .*udcfe.tfrecord' is not UTF-8"):
        paths.to_table()
