"""The schema that is embedded in copies: declared wholly, or by the types of some columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import example, int64s, written

Copy = Callable[..., Any]
COPIES: dict[str, Copy] = {
    "merge": tfr.merge,
    "split": lambda src, dst, **keywords: tfr.split(src, dst, shards=2, **keywords),
    "shuffle": tfr.shuffle,
    "sample": lambda src, dst, **keywords: tfr.sample(src, dst, fraction=1, **keywords),
    "parts": lambda src, dst, **keywords: tfr.split(src, dst, fractions=[0.5, 0.5], **keywords),
    "parts of values": lambda src, dst, **keywords: tfr.split(src, dst, by="name", **keywords),
}


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Two files whose schemas disagree about the column ``at``."""
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    names, numbers = ["cat", "dog"], [1, 2]
    for path, unit in zip(paths, ("s", "ms"), strict=True):
        table = pa.table(
            {"at": pa.array(numbers, pa.timestamp(unit)), "n": pa.array(numbers, pa.uint8()), "name": names}
        )
        tfr.write_tfrecord(table, path)
    return paths


def payloads(path: Any) -> list[bytes]:
    return sorted(tfr.RecordReader(path))


SCHEMA = pa.schema({"name": pa.string(), "n": pa.int16(), "at": pa.int64()})


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_declared_schema_is_embedded(engine: str, files: list[Path], tmp_path: Path, copy: Copy) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=r"schema_overrides=, or copy the files one by one"):
        copy(files, f"{tmp_path}/out/")
    copy(tfr.dataset(files, schema=SCHEMA), f"{tmp_path}/out/")
    table = tfr.read_table(tmp_path / "out")
    assert table.schema.equals(SCHEMA)
    expected = tfr.read_table(files, schema=SCHEMA)
    assert sorted(map(str, table.to_pylist())) == sorted(map(str, expected.to_pylist()))


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_the_type_of_one_column_settles_a_conflict(files: list[Path], tmp_path: Path, copy: Copy) -> None:
    copy(tfr.dataset(files, schema_overrides={"a*": "int32"}), f"{tmp_path}/out/")
    expected = pa.schema({"at": pa.int32(), "n": pa.uint8(), "name": pa.string()})
    assert tfr.read_table(tmp_path / "out").schema.equals(expected)


def test_the_records_stay_as_they_are(files: list[Path], tmp_path: Path) -> None:
    bare = [tfr.write_tfrecord(tfr.read_table(path), f"{path}-bare", embed_schema=False).path for path in files]
    report = tfr.merge(tfr.dataset(files, schema=SCHEMA), tmp_path / "out")
    assert report.columns == ("name", "n", "at")
    embedded, *others = tfr.RecordReader(tmp_path / "out")
    expected = [payload for path in bare for payload in tfr.RecordReader(path)]
    assert embedded.endswith(expected[0])
    assert others == expected[1:]


def test_files_without_a_schema_get_one(tmp_path: Path) -> None:
    written(tmp_path / "a", [example(n=int64s(1)), example(n=int64s(2), m=int64s(3))])
    tfr.write_tfrecord({"n": [1]}, tmp_path / "b")
    for source, rows in ((tmp_path / "a", 2), ([tmp_path / "a", tmp_path / "b"], 3)):
        tfr.merge(tfr.dataset(source, schema={"m": "int8", "n": "int32"}), tmp_path / "out")
        table = tfr.read_table(tmp_path / "out")
        assert table.schema.equals(pa.schema({"m": pa.int8(), "n": pa.int32()}))
        assert len(table) == rows


def test_a_schema_of_feature_lists(tmp_path: Path) -> None:
    table = pa.table({"words": [[[1], [2, 3]], [[4]]], "length": [2, 1]})
    tfr.write_tfrecord(table, tmp_path / "a", record_type="sequence_example", embed_schema=False)
    schema = pa.schema({"length": pa.int16(), "words": pa.list_(pa.list_(pa.int32()))})
    tfr.merge(tfr.dataset(tmp_path / "a", schema=schema), tmp_path / "out")
    assert tfr.read_table(tmp_path / "out").equals(table.select(["length", "words"]).cast(schema))


@pytest.mark.parametrize(
    ("schema", "feature"),
    [
        ({"n": "uint8", "at": "int64"}, "name"),  # it does not name all features
        ({"n": "string", "name": "string", "at": "int64"}, "n"),  # of another kind
        ({"n": "list<float>", "name": "string", "at": "int64"}, "n"),
        (pa.schema([pa.field("z", pa.int64(), nullable=False), *SCHEMA]), "z"),  # that no record has
        (pa.schema({"n": pa.dictionary(pa.int8(), pa.float32()), "name": pa.string(), "at": pa.int64()}), "n"),
    ],
)
@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_a_schema_that_does_not_describe_the_records_is_refused(
    engine: str, files: list[Path], tmp_path: Path, schema: Any, feature: str, copy: Copy
) -> None:
    advice = "the schema to embed has to name all features of the records, with types that fit their values"
    with pytest.raises((tfr.errors.SchemaError, tfr.errors.DecodeError), match=advice) as caught:
        copy(tfr.dataset(files, schema=schema), tmp_path / "out")
    assert caught.value.feature == feature
    assert not (tmp_path / "out").exists()


def test_values_that_do_not_fit_are_refused(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 300]}, tmp_path / "a")
    for keywords in ({"schema": {"n": "int8"}}, {"schema_overrides": {"n": "int8"}}):
        with pytest.raises(tfr.errors.DecodeError, match="types that fit their values") as caught:
            tfr.merge(tfr.dataset(tmp_path / "a", **keywords), tmp_path / "out")
        assert (caught.value.record, caught.value.feature) == (1, "n")
    assert not (tmp_path / "out").exists()


def test_overrides_name_columns_that_exist(files: list[Path], tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"did you mean 'name'\?"):
        tfr.merge(tfr.dataset(files[0], schema_overrides={"nam": "string"}), tmp_path / "out")
    with pytest.raises(tfr.errors.SchemaError, match="unknown type 'int46'"):
        tfr.merge(tfr.dataset(files[0], schema_overrides={"n": "int46"}), tmp_path / "out")
    with pytest.raises(TypeError, match=r"expected a Schema, a pyarrow.Schema or a dict"):
        tfr.merge(tfr.dataset(files[0], schema=["n"]), tmp_path / "out")  # type: ignore[arg-type]


def test_categories_of_other_columns_are_kept(tmp_path: Path) -> None:
    table = pa.table({"c": pa.array(["a", "b"]).dictionary_encode(), "n": pa.array([1, 2], pa.uint8())})
    tfr.write_tfrecord(table, tmp_path / "a")
    tfr.merge(tfr.dataset(tmp_path / "a", schema_overrides={"n": "int32"}), tmp_path / "out")
    assert tfr.read_table(tmp_path / "out").schema.types == [table.schema.field("c").type, pa.int32()]
    tfr.merge(tfr.dataset(tmp_path / "a", schema_overrides={"c": "string"}), tmp_path / "out")
    assert tfr.read_table(tmp_path / "out")["c"].to_pylist() == ["a", "b"]


@pytest.mark.parametrize("keywords", [{"schema_overrides": {"day": "date32"}}, {}], ids=["overrides", "schema"])
@pytest.mark.parametrize("embed", [True, False])
def test_the_types_of_folders(tmp_path: Path, keywords: dict[str, Any], embed: bool) -> None:
    keywords = keywords or {"schema": pa.schema({"day": pa.date32(), "x": pa.int64()})}
    for day in (1, 2):
        folder = tmp_path / "d" / f"day=2024-01-0{day}"
        folder.mkdir(parents=True)
        tfr.write_tfrecord({"x": [day]}, folder / "a.tfrecord", embed_schema=embed)
    tfr.merge(tfr.dataset(tmp_path / "d", **keywords), tmp_path / "out")
    read = {} if embed or "schema" in keywords else {"schema": {"x": "int64", "day": "date32"}}
    table = read_by(tfr.read_table, tmp_path / "out", **read)
    assert (
        table.select(["day", "x"]).to_pydict()
        == tfr.read_table(tmp_path / "d", schema={"day": "date32", "x": "int64"}).to_pydict()
    )
    if "schema" in keywords:
        assert table.schema.names == ["day", "x"]
    with pytest.raises(tfr.errors.SchemaError, match="is not a value of the declared type int32"):
        tfr.merge(tfr.dataset(tmp_path / "d", schema={"day": "int32", "x": "int64"}), tmp_path / "out")


def test_folders_that_the_schema_does_not_name_are_added(tmp_path: Path) -> None:
    (tmp_path / "d" / "day=1").mkdir(parents=True)
    tfr.write_tfrecord({"x": [5]}, tmp_path / "d" / "day=1" / "a.tfrecord")
    tfr.merge(tfr.dataset(tmp_path / "d", schema={"x": "int16"}), tmp_path / "out")
    assert tfr.read_table(tmp_path / "out").schema.equals(pa.schema({"x": pa.int16(), "day": pa.int64()}))


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_of_a_dataset_that_evolved_only_the_united_schema_is_embedded(engine: str, tmp_path: Path, copy: Copy) -> None:
    tfr.write_tfrecord({"n": pa.array([1, 2], pa.int8()), "name": ["cat", "dog"]}, f"{tmp_path}/in/")
    wide = {"n": pa.array([2**40, 3], pa.int64()), "name": ["cat", "dog"], "new": ["a", "b"]}
    tfr.write_tfrecord(wide, f"{tmp_path}/in/", mode="append", evolve=True)
    tfr.write_tfrecord({"n": pa.array([5], pa.int8()), "name": ["cat"]}, f"{tmp_path}/in/", mode="append")
    before = tfr.read_table(f"{tmp_path}/in/")
    copy(f"{tmp_path}/in/", f"{tmp_path}/out/")
    paths = [str(path) for path in (tmp_path / "out").iterdir() if path.name.endswith(".tfrecord")]
    after = tfr.read_table(paths)
    assert after.schema.equals(before.schema)
    assert after.sort_by("n").equals(before.sort_by("n"))
    assert not any(payload.startswith(b"\xb2\xc4\x0a") for path in paths for payload in [*tfr.RecordReader(path)][1:])


@pytest.mark.parametrize("form", ["a.tfrecord", "a/"])
def test_a_selection_without_rows_keeps_its_columns(tmp_path: Path, form: str) -> None:
    tfr.write_tfrecord({"n": pa.array([1, 2], pa.int8()), "name": ["cat", "dog"]}, f"{tmp_path}/{form}")
    for empty in (
        tfr.dataset(f"{tmp_path}/{form}").filter([("n", ">", 2)]),
        tfr.dataset(f"{tmp_path}/{form}").limit(0),
    ):
        for copy in (
            tfr.merge,
            tfr.shuffle,
            COPIES["sample"],
            lambda *paths, **given: tfr.dedupe(*paths, by="n", **given),
        ):
            copy(empty, f"{tmp_path}/out/", shards=1, mode="overwrite")
            assert tfr.read_table(f"{tmp_path}/out").schema.equals(empty.to_table().schema)
        assert tfr.split(empty, f"{tmp_path}/parts", by="name") == {}
        reports = tfr.split(empty, f"{tmp_path}/parts", fractions=[0.5, 0.5], group="name", shards=1, mode="overwrite")
        assert [report.records for report in reports.values()] == [0, 0]
