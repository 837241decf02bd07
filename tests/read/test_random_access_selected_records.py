"""`RandomAccess.select` gives the records that filtering after reading leaves, with a column index and without."""

from __future__ import annotations

import os
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from rounds import rounds
from servers import Bucket
from suites.conditions import CONDITIONS, ROWS, VALUES, condition_table

f = pc.field
SCALARS = [name for name in VALUES if name != "list"]
INDEXED: list[list[str]] = [[], ["n"], ["text", "x"], SCALARS]


@pytest.fixture(scope="module", params=["embedded", "inferred"])
def forms(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    """Files whose column indexes have no column, some, and all that are of single values; the last file has none."""
    found = []
    for columns in INDEXED:
        folder = tmp_path_factory.mktemp(request.param)
        paths = [folder / f"{at}.tfrecord" for at in range(3)]
        for at, path in enumerate(paths):
            table = condition_table().slice(20 * at, 20)
            tfr.write_tfrecord(table, path, embed_schema=request.param == "embedded")
        if columns:
            tfr.build_index(paths[:2], columns=columns)
        found.append(paths)
    return found


@settings(max_examples=rounds(150))
@given(data=st.data(), condition=CONDITIONS, form=st.integers(0, len(INDEXED) - 1))
def test_selected_records_are_those_of_the_filtered_table(
    forms: list[list[Path]], data: st.DataObject, condition: pc.Expression, form: int
) -> None:
    columns = data.draw(st.none() | st.lists(st.sampled_from(list(VALUES)), unique=True, min_size=1))
    if "inferred" in forms[0][0].as_posix():
        columns = None  # others are not known
    with tfr.open_random(forms[form], columns=columns) as records, tfr.open_random(forms[0]) as everything:
        whole = everything[:].append_column("number", pa.array(range(ROWS)))
        try:
            expected = whole.filter(condition)
        except pa.ArrowException:
            with pytest.raises(tfr.errors.SchemaError):
                records.select(condition)
            return
        chosen = records.select(condition)
        assert chosen.numbers.tolist() == expected["number"].to_pylist()
        assert len(chosen) == expected.num_rows
        expected = expected.select(records.schema.names)
        assert repr(chosen.to_table().to_pylist()) == repr(expected.to_pylist())
        assert chosen.to_table().schema.equals(records.schema, check_metadata=True)
        if len(chosen):
            some = data.draw(st.lists(st.integers(-len(chosen), len(chosen) - 1), max_size=5))
            assert repr(chosen[some].to_pylist()) == repr(
                [expected.slice(i % len(chosen), 1).to_pylist()[0] for i in some]
            )
            assert repr(chosen[1:3].to_pylist()) == repr(expected.slice(1, 2).to_pylist())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.tfrecord"
    rows = {"id": np.arange(100), "label": np.arange(100) % 10, "image": [bytes([i]) * 400 for i in range(100)]}
    tfr.write_tfrecord(rows, found)
    tfr.build_index(found, columns=["label"])
    return found


def test_it_is_a_sequence(path: Path) -> None:
    with tfr.open_random(path, columns=["id"]) as records:
        chosen = records.select([("label", "==", 3)])
        assert [record["id"] for record in chosen] == list(range(3, 100, 10))
        assert chosen[-1] == {"id": 93}
        assert chosen[np.array([1, 0])]["id"].to_pylist() == [13, 3]
        assert chosen.schema == records.schema
        assert "10 of <RandomAccess" in repr(chosen)
        for key in (10, -11, [0, 10]):
            with pytest.raises(IndexError, match="the selection has 10 records"):
                chosen[key]
        with pytest.raises(TypeError, match="not a bool"):
            chosen[True]
        assert len(records.select(f("label") > 10)) == 0
        assert records.select(f("label") > 10).to_table().num_rows == 0
        copy = pickle.loads(pickle.dumps(chosen))
        assert copy.to_table() == chosen.to_table()


def test_a_closed_file_and_unknown_columns(path: Path) -> None:
    records = tfr.open_random(path)
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="names a column that does not exist"):
        records.select(f("absent") == 1)
    with pytest.raises(tfr.errors.SchemaError, match="is not a condition"):
        records.select(f("label"))
    records.close()
    with pytest.raises(ValueError, match="closed"):
        records.select(f("label") == 1)


def test_only_matching_records_are_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tfr.open_random(path) as records:
        set_limits(monkeypatch, gap_bytes=(0, 0))
        chosen = records.select((f("label") == 3) & (f("id") > 50))
        assert records.report.records == 0
        assert chosen.to_table()["id"].to_pylist() == [53, 63, 73, 83, 93]
        assert records.report.records == 5


def test_the_offsets_of_a_column_index_are_used(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tfrecord_io.read.index.indexed_files.scan_index", None)
    with tfr.open_random(path) as records:
        assert len(records) == 100


def test_a_stale_index_is_not_used(path: Path) -> None:
    with tfr.open_random(path) as records:
        index = path.with_name("a.tfrecord.column_index")
        kept = index.read_bytes()
        tfr.write_tfrecord({"id": [1], "label": [2]}, path)
        assert not index.exists()  # the writer removes it
        index.write_bytes(kept)
    with pytest.warns(tfr.errors.StaleIndexWarning, match="column index does not match"):
        records = tfr.open_random(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it has been warned of
        assert records.select(f("label") == 2).numbers.tolist() == [0]
    assert records[0] == {"id": 1, "label": 2}
    records.close()


def test_damaged_records_are_left_out(path: Path) -> None:
    content = bytearray(path.read_bytes())
    with tfr.open_random(path) as records:
        at = records._files.offset(0, 13) + 100
    content[at] ^= 1
    modified = path.stat().st_mtime_ns
    path.write_bytes(content)
    os.utime(path, ns=(modified, modified))  # else the index does not match
    with tfr.open_random(path, on_error="skip") as records:
        chosen = records.select(f("label") == 3)
        assert len(chosen) == 10  # by the index
        with pytest.warns(tfr.errors.DamagedDataWarning):
            assert chosen.to_table().num_rows == 9
    with tfr.open_random(path, on_error="skip") as records, pytest.warns(tfr.errors.DamagedDataWarning):
        assert records.select((f("label") == 3) & (f("id") >= 0)).numbers.tolist() == [3, *range(23, 100, 10)]
    with tfr.open_random(path) as records, pytest.raises(tfr.errors.CorruptRecordError, match="record 13"):
        records.select((f("label") == 3) & (f("id") >= 0))


def test_another_schema_has_no_use_for_the_index(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord([{"x": 1, "y": 0}, {"y": 1}, {"x": 2, "y": 2}], path, embed_schema=False)
    tfr.build_index(path, columns=["x"])
    for schema, numbers in (
        ({"x": "int64"}, [0]),
        ({"x": tfr.scalar("int64", default=1)}, [0, 1]),
        ({"z": tfr.scalar("int64", feature="x"), "x": tfr.scalar("int64", feature="y")}, [1]),
    ):
        with tfr.open_random(path, schema=schema) as records:
            assert records.select(f("x") == 1).numbers.tolist() == numbers


def test_partition_columns_and_paths(tmp_path: Path) -> None:
    for label in (1, 2):
        (tmp_path / f"label={label}").mkdir()
        tfr.write_tfrecord({"n": [1, 2, 3]}, tmp_path / f"label={label}" / "a.tfrecord")
    tfr.build_index(tmp_path, columns=["n"])
    with tfr.open_random(tfr.dataset(tmp_path, include_file_paths="path")) as records:
        assert records.select((f("label") == 2) & (f("n") > 1)).numbers.tolist() == [4, 5]
        condition = (f("path") == str(tmp_path / "label=1" / "a.tfrecord")) & (f("n") > 1)
        assert records.select(condition).numbers.tolist() == [1, 2]
    with pytest.raises(tfr.errors.SchemaError, match="directory names"):
        tfr.build_index(tmp_path, columns=["n", "label"])


def test_in_a_bucket(s3: Bucket) -> None:
    keywords: dict[str, Any] = {"storage_options": s3.storage_options}
    rows = {"id": np.arange(200), "label": np.arange(200) % 50, "image": [bytes([i]) * 10_000 for i in range(200)]}
    tfr.write_tfrecord(rows, s3.url("a@2"), **keywords)
    built = read_by(tfr.build_index, s3.url("a@2"), columns=["label"], **keywords)
    assert [index.records for index in built] == [100, 100]
    assert sum(name.endswith(".column_index") for name in s3.names()) == 2
    with read_by(tfr.open_random, s3.url("a@2"), **keywords) as records:
        chosen = records.select(f("label") == 7)
        assert chosen.to_table()["id"].to_pylist() == [7, 57, 107, 157]
    tfr.write_tfrecord({"label": [7]}, s3.url("a@2"), mode="overwrite", **keywords)
    assert not [name for name in s3.names() if name.endswith(".column_index")]
