"""Selections of datasets, and keywords beside a dataset that states them, too."""

from __future__ import annotations

import inspect
import shutil
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from source_calls import ROWS, f
from tfrecord_io.base import ReadOptions, Selection
from tfrecord_io.read.scan import Origin, Scan
from tfrecord_io.typing import UNSET


@pytest.mark.parametrize("source", ["a.tfrecord", ["a.tfrecord"], Path("a.tfrecord")])
def test_a_dataset_is_made_by_the_function_and_not_by_its_class(source: Any) -> None:
    with pytest.raises(TypeError, match=r"call tfrecord_io\.dataset\(source\)"):
        tfr.Dataset(source)


def test_selections_follow_one_another(files: Path) -> None:
    source = tfr.dataset(files / "a")
    assert source.offset(2).limit(6).offset(1).to_table()["n"].to_pylist() == [3, 4, 5, 6, 7]
    assert source.limit(3).offset(5).to_table().num_rows == 0
    assert tfr.read_table(tfr.dataset(source.offset(2), offset=3), limit=2)["n"].to_pylist() == [5, 6]
    assert tfr.read_table(source.filter(f("n") > 3), filters=f("n") < 6)["n"].to_pylist() == [4, 5]
    with pytest.raises(ValueError, match=r"call offset\(\) before filter\(\)"):
        source.filter(f("n") > 3).offset(1)
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.read_table(source.select(["key"]), columns=["n"])


def test_a_description_selects_more_of_a_dataset_with_a_selection(files: Path) -> None:
    """A read for inspection counts the records of a kind itself, which does not contradict the dataset."""
    source = tfr.dataset(files / "a", filters=f("n") > 3)
    assert tfr.describe(source, filters=f("n") < 6).records == 2


def test_the_files_of_a_sum_are_looked_up_again(files: Path, tmp_path: Path) -> None:
    shutil.copytree(files, tmp_path / "files")
    a, b = tmp_path / "files" / "a", tmp_path / "files" / "b"
    both = tfr.dataset(a) + tfr.dataset(b)
    tfr.write_tfrecord(ROWS[:3], f"{b}/", mode="append")
    assert (both.count_rows(), both.refresh().count_rows()) == (24, 27)
    with pytest.raises(ValueError, match="opened as a whole"):
        (tfr.dataset(a).limit(3) + b).refresh()
    with pytest.raises(TypeError):
        tfr.dataset(a) + ROWS


def test_a_split_of_tfds_is_no_whole_dataset(files: Path) -> None:
    source = tfr.dataset(files / "a")
    options = replace(Scan.unwrap(source).options, split="train")
    source = tfr.Dataset(
        replace(Scan.unwrap(source), options=options, origin=Origin(files / "a", options, Selection.ALL))
    )
    refused = r"takes no split= of a dataset: .* write its rows first with tfr\.write_tfrecord"
    for call in (tfr.salvage, tfr.copy):
        with pytest.raises(ValueError, match=f"{call.__name__} {refused}"):
            call(source, "out")
    with pytest.raises(ValueError, match=f"delete {refused}"):
        tfr.delete(source, filters=f("n") > 2)


@given(data=st.data())
@settings(max_examples=rounds(15), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_rows_of_any_selections_are_read_and_copied(data: st.DataObject, tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    suffix = data.draw(st.sampled_from(["", ".gz"]))
    count = data.draw(st.integers(1, 30))
    numbers = [None if n % 7 == 3 else n for n in range(count)]
    letters = pa.array([f"c{n % 3}" for n in range(count)])
    rows = pa.table({"n": pa.array(numbers, pa.int16()), "c": letters.dictionary_encode()})
    path = folder / f"in{data.draw(st.sampled_from(['', '@3']))}.tfrecord{suffix}"
    has_schema = data.draw(st.booleans())
    tfr.write_tfrecord(rows, path, embed_schema=has_schema)
    options: dict[str, Any] = {"schema_overrides": {"n": "int32"}} if has_schema else {}
    parts: list[Any] = []
    for _ in range(data.draw(st.integers(1, 3))):
        part: Any = tfr.dataset(path, **options)
        if data.draw(st.booleans()):
            pieces = part.pieces(data.draw(st.integers(1, 4)))
            part = pieces[data.draw(st.integers(0, len(pieces) - 1))]
        elif data.draw(st.booleans()):
            part = part.offset(data.draw(st.integers(0, count)))
        if data.draw(st.booleans()):
            part = part.filter(f("n") >= data.draw(st.integers(0, count)))
        if isinstance(part, tfr.Dataset) and data.draw(st.booleans()):
            part = part.limit(data.draw(st.integers(0, count)))
        parts.append(part)
    tables = [pa.table(part) for part in parts]
    expected = [pair for each in tables for pair in pairs(each)]
    assert tfr.count(parts) == sum(map(tfr.count, parts)) == len(expected)
    if not expected:
        return
    found = tfr.read_table(parts)
    tfr.merge(parts, folder / "out.tfrecord")
    copy = tfr.read_table(folder / "out.tfrecord")
    assert pairs(found) == pairs(copy) == expected
    if has_schema:
        assert found.schema.types == copy.schema.types == tables[0].schema.types


def pairs(rows: pa.Table) -> list[tuple[Any, ...]]:
    """The rows of the columns that a file without a schema may lack."""
    return [(row.get("n"), row.get("c")) for row in rows.to_pylist()]


def test_what_a_call_states_of_a_dataset_holds_or_is_refused(files: Path) -> None:
    """Whether or not its schema was looked at."""
    path = files / "a"
    for look in (False, True):
        source = tfr.dataset(path)
        if look:
            assert source.schema.names
        with pytest.raises(tfr.TFRecordError, match="limit of 5"):
            tfr.dataset(source, limits=tfr.Limits(record_bytes=5)).to_table()
        assert tfr.dataset(source, schema={"n": "int32"}).schema == pa.schema({"n": pa.int32()})
        with pytest.raises(ValueError, match=r"split= differs from that of the dataset"):
            tfr.dataset(source, split="train")
        with pytest.raises(ValueError, match=r"storage_options= differs from that of the dataset"):
            tfr.read_table(source, storage_options={"anon": True})
        filtered = tfr.dataset(path, filters=f("n") > 2)
        if look:
            assert filtered.schema.names
        assert tfr.read_table(filtered, on_error="skip") == tfr.read_table(path, filters=f("n") > 2)
        named = tfr.dataset(path, include_file_paths="file")
        if look:
            assert named.schema.names
        assert tfr.read_table(named, columns=["n"]).column_names == ["n"]
        assert tfr.read_table(named, columns=["file"]).column_names == ["file"]
        typed = tfr.dataset(path, schema_overrides={"n": "int32"})
        if look:
            assert typed.schema.names
        other = next(name for name in tfr.dataset(path).columns if name != "n")
        assert tfr.read_table(typed, columns=[other]).column_names == [other]
        assert tfr.read_table(typed).schema.field("n").type == pa.int32()


@pytest.mark.parametrize(
    "call",
    [tfr.read_tfrecord, tfr.read_table, tfr.read_arrays, tfr.open_reader, tfr.dataset, tfr.count, tfr.RecordReader],
)
def test_a_call_that_states_the_default_contradicts_a_dataset_that_states_another_value(call: Any, files: Path) -> None:
    for other in (tfr.dataset(files / "a", on_error="skip"), [tfr.dataset(files / "a", on_error="skip")]):
        with pytest.raises(ValueError, match="on_error= differs from that of the dataset"):
            call(other, on_error="raise")
    call(tfr.dataset(files / "a"), on_error="raise")


OTHER_VALUES: dict[str, Any] = {  # by keyword of `dataset` whose default is UNSET: another value
    "stable_types": True,
    "infer_text": False,
    "sample": 5,
    "on_new": "ignore",
    "compression": None,
    "allow_missing_shards": True,
    "check_crc": False,
    "limits": tfr.Limits(features=50),
    "large_offsets": True,
    "batch_size": 4,
    "batch_bytes": 1000,
    "progress": print,
}


@pytest.mark.parametrize("look", [False, True])
@pytest.mark.parametrize("name", OTHER_VALUES)
def test_a_default_that_is_written_beside_a_dataset_holds_or_is_refused(name: str, look: bool, files: Path) -> None:
    default = getattr(ReadOptions, name)
    source = tfr.dataset(files / "a", **{name: OTHER_VALUES[name]})
    assert not look or source.schema.names
    assert getattr(Scan.unwrap(tfr.dataset(source)).stated, name) == OTHER_VALUES[name]
    if name in ("batch_size", "batch_bytes", "progress"):
        assert getattr(Scan.unwrap(tfr.dataset(source, **{name: default})).stated, name) == default
        return
    with pytest.raises(ValueError, match=f"^dataset: {name}= differs from that of the dataset"):
        tfr.dataset(source, **{name: default})


@pytest.mark.parametrize("name", OTHER_VALUES)
def test_what_is_stated_of_a_dataset_whose_schema_was_looked_at_holds_or_is_refused(name: str, files: Path) -> None:
    source, other = tfr.dataset(files / "a"), OTHER_VALUES[name]
    assert source.schema.names
    if name == "allow_missing_shards":
        with pytest.raises(ValueError, match=f"^dataset: {name}= differs from that of the dataset"):
            tfr.dataset(source, **{name: other})
        return
    assert getattr(Scan.unwrap(tfr.dataset(source, **{name: other})).stated, name) == other


def test_other_values_are_those_of_all_keywords_with_a_default() -> None:
    parameters = inspect.signature(tfr.dataset).parameters.values()
    assert {p.name for p in parameters if p.default is UNSET} == {*OTHER_VALUES}


def test_batches_have_the_default_size_if_the_call_says_so(files: Path) -> None:
    source = tfr.dataset(files / "a", batch_size=3)
    for size, expected in ({}, 3), ({"batch_size": 65_536}, 16):
        with tfr.open_reader(source, **size) as reader:
            assert reader.read_next_batch().num_rows == expected


SHOWS_PROGRESS = {
    "read_table": lambda source, out, **keywords: tfr.read_table(source, **keywords),
    "read_arrays": lambda source, out, **keywords: tfr.read_arrays(source, **keywords),
    "open_reader": lambda source, out, **keywords: tfr.open_reader(source, **keywords).read_all(),
    "infer_schema": lambda source, out, **keywords: tfr.infer_schema(source, **keywords),
    "describe": lambda source, out, **keywords: tfr.describe(source, **keywords),
    "verify": lambda source, out, **keywords: tfr.verify(source, **keywords),
    "merge": lambda source, out, **keywords: tfr.merge(source, out / "out.tfrecord", **keywords),
    "convert": lambda source, out, **keywords: tfr.convert(source, out / "out.tfrecord", **keywords),
    "convert to CSV": lambda source, out, **keywords: tfr.convert(
        tfr.dataset(source).select(["n"]), out / "n.csv", **keywords
    ),
}


@pytest.mark.parametrize("call", SHOWS_PROGRESS)
def test_a_call_that_says_no_progress_shows_none(call: str, files: Path, tmp_path: Path) -> None:
    shown: list[Any] = []
    source = tfr.dataset(files / "a", progress=shown.append)
    SHOWS_PROGRESS[call](source, tmp_path, progress=False)
    assert not shown
    SHOWS_PROGRESS[call](source, tmp_path)
    assert shown


def test_options_of_convert_that_are_defaults_are_compared_with_those_of_a_dataset(files: Path, tmp_path: Path) -> None:
    source = tfr.dataset(files / "a", check_crc=False)
    with pytest.raises(ValueError, match="check_crc= differs from that of the dataset"):
        tfr.convert(source, tmp_path / "a.parquet", source_options={"check_crc": True})
    assert tfr.convert(source, tmp_path / "a.parquet", source_options={"check_crc": False}).records == 16


def test_none_leaves_what_it_is_to_the_dataset(files: Path) -> None:
    source = tfr.dataset(files / "a", schema={"n": "int64"}, limit=3, filters=f("n") > 4, on_error="skip")
    found = tfr.read_table(source, schema=None, limit=None, filters=None, columns=None, on_error=None)
    assert found == pa.table({"n": pa.array([5, 6, 7], pa.int64())})


def test_threads_ask_for_the_schema_of_a_dataset_at_the_same_time(files: Path) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(40):
                source = tfr.dataset(files / "a")
                names = [
                    pool.submit(lambda each: (each.schema.names, each.options.batch_size), Scan.unwrap(source))
                    for _ in range(8)
                ]
                assert len({str(name.result()) for name in names}) == 1
    finally:
        sys.setswitchinterval(interval)


_WITH_PATHS: dict[str, Callable[[tfr.Dataset], list[str]]] = {
    "list": lambda dataset: (dataset + dataset).schema.names,
    "rows of a list": lambda dataset: (dataset.filter([("path", "!=", "")]) + dataset).to_table().schema.names,
    "describe": lambda dataset: [column.name for column in tfr.describe(dataset).columns],
    "describe rows": lambda dataset: [
        column.name for column in tfr.describe(dataset.filter([("path", "!=", "")])).columns
    ],
    "table": lambda dataset: tfr.read_table(dataset, filters=[("path", "!=", "")]).schema.names,
}


@pytest.mark.parametrize("embed", [False, True])
@pytest.mark.parametrize("columns", [["n"], ["path", "n"], ["n", "path"], ["path"], ["!path"], ["!n"]])
def test_the_column_of_paths_is_one_of_those_that_are_selected(tmp_path: Path, columns: list[str], embed: bool) -> None:
    tfr.write_tfrecord({"n": [1], "word": ["a"]}, tmp_path / "a", embed_schema=embed)
    dataset = tfr.dataset(tmp_path / "a", include_file_paths="path")
    selected = dataset.select(columns)
    expected = selected.schema.names
    assert {name: read(selected) for name, read in _WITH_PATHS.items()} == dict.fromkeys(_WITH_PATHS, expected)
    with tfr.open_random(selected) as records:
        assert sorted(records[0]) == sorted(records[:].schema.names) == sorted(expected)
    filters = [("path", "!=", "")]
    assert tfr.read_table(dataset, columns=columns, filters=filters).schema.names == expected
    if "path" in columns or "!path" in columns:
        asked = tfr.dataset(tmp_path / "a", include_file_paths="path", columns=columns, filters=filters)
        assert asked.to_table().schema.names == expected
