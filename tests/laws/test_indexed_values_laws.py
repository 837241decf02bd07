"""Reads of columns that a column index has: the rows, values, types and errors of a read of the files."""

from __future__ import annotations

import os
import pickle
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import assert_equal
from limited import set_limits
from reading import read_by
from reading_modes import matching_records_only, small_index_groups
from rounds import rounds
from suites.conditions import CONDITIONS, ROWS, VALUES, condition_table
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import Scan

f = pc.field
SCALARS = [name for name in VALUES if name != "list"]


@pytest.fixture(autouse=True, scope="module")
def no_file_is_too_small() -> Iterator[None]:
    with matching_records_only(), pytest.MonkeyPatch.context() as patch:
        set_limits(patch, decoded_file_bytes=0)
        yield


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Scan]:
    """The scans that are read."""
    scans: list[Scan] = []
    begin = Reader._begin
    monkeypatch.setattr(Reader, "_begin", lambda self, planned: (scans.append(planned.scan), begin(self, planned))[1])
    return scans


def indexed(folder: Path, names: list[list[str]], **keywords: Any) -> list[Path]:
    """Four files with a part of the rows each, and an index of some of the columns, of which one may have none."""
    paths = [folder / f"{at}.tfrecord" for at in range(len(names))]
    for at, (path, columns) in enumerate(zip(paths, names, strict=True)):
        tfr.write_tfrecord(condition_table().slice(15 * at, 15), path, **keywords)
        if columns:
            with small_index_groups():
                tfr.build_index(path, columns=columns)
    return paths


FORMS = [[SCALARS] * 4, [SCALARS, ["n"], [], SCALARS], [[], SCALARS, SCALARS, ["text", "x"]]]


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> list[list[Path]]:
    folders = (tmp_path_factory.mktemp("indexed") for _ in range(2 * len(FORMS)))
    embedded = [indexed(next(folders), names) for names in FORMS]
    return embedded + [indexed(next(folders), names, embed_schema=False) for names in FORMS]


OVERRIDES: list[dict[str, Any] | None] = [None, None, {"n": "float64"}, {"text": "bytes"}, {"n": "int32"}]


@settings(max_examples=rounds(150))
@given(data=st.data(), form=st.integers(0, 2 * len(FORMS) - 1))
def test_every_reader_gives_what_is_in_the_files(forms: list[list[Path]], data: st.DataObject, form: int) -> None:
    paths, is_embedded = forms[form], form < len(FORMS)
    columns = data.draw(st.lists(st.sampled_from(SCALARS), unique=True, min_size=1))
    options: dict[str, Any] = {"schema_overrides": data.draw(st.sampled_from(OVERRIDES)) if is_embedded else None}
    try:
        whole = read_by(tfr.read_table, paths, on_error="skip", **options)  # which reads the files
    except tfr.errors.TFRecordError as error:
        with pytest.raises(type(error)):
            read_by(tfr.read_table, paths, columns=columns, **options)
        return
    offset = data.draw(st.integers(0, 70) if is_embedded else st.just(0))
    limit = data.draw(st.none() | st.integers(0, ROWS))
    condition = data.draw(st.none() | CONDITIONS)
    rows = whole.slice(offset)
    try:
        rows = rows if condition is None else rows.filter(condition)
    except pa.ArrowException:
        return
    expected = rows.select(columns).slice(0, limit)
    some = {**options, "columns": columns, "offset": offset, "limit": limit, "filters": condition}
    assert_equal(read_by(tfr.read_table, paths, **some), expected)
    with read_by(tfr.open_reader, paths, batch_size=(size := data.draw(st.integers(1, 40))), **some) as reader:
        batches = list(reader)
        if condition is None:
            assert all(len(batch) == size for batch in batches[:-1])
        assert repr(pa.Table.from_batches(batches, reader.schema).to_pylist()) == repr(expected.to_pylist())
        for row in range(0 if condition is None else expected.num_rows, expected.num_rows):
            assert reader.origins.locate(row) == (str(paths[(offset + row) // 15]), (offset + row) % 15)
    dataset = tfr.dataset(paths, **some)
    assert repr(dataset.to_table().to_pylist()) == repr(expected.to_pylist())
    assert dataset.count_rows() == expected.num_rows
    if limit is None and not offset:
        pieces = [piece.read() for piece in pickle.loads(pickle.dumps(dataset.pieces(data.draw(st.integers(1, 9)))))]
        assert repr(pa.concat_tables(pieces).to_pylist()) == repr(expected.to_pylist())


def test_files_are_not_opened(forms: list[list[Path]], opened: list[Scan]) -> None:
    """Neither are those beside a file without an index."""
    for paths, count in zip(forms[:3], (4, 2, 2), strict=True):
        for read in (tfr.read_table, tfr.read_tfrecord, lambda *a, **k: tfr.dataset(*a, **k).to_table()):
            del opened[:]
            read(paths, columns=["text", "team"])
            picked = opened[-1].picked or ()
            assert sum(file.values is not None for file in picked) == count
    for read, _ in ((tfr.read_table, 0), (tfr.open_reader, 1)):
        for more in ({}, {"columns": "*"}, {"columns": ["list"]}, {"columns": ["n"], "on_error": "skip"}):
            read(forms[0], **more).close() if read is tfr.open_reader else read(forms[0], **more)
            assert not opened[-1].has_values


def test_wider_schema_of_a_later_file(tmp_path: Path) -> None:
    """What a read of the files finds in a later one is found with indexes, too."""
    tfr.write_tfrecord({"x": pa.array([1, 2], pa.int32()), "y": [1, 2]}, tmp_path / "0.tfrecord")
    tfr.write_tfrecord({"x": pa.array([2**40, None]), "z": ["a", "b"]}, tmp_path / "1.tfrecord")
    tfr.write_tfrecord({"x": [5], "w": [1]}, tmp_path / "2.tfrecord", embed_schema=False)
    files = [tmp_path / f"{at}.tfrecord" for at in range(3)]
    reads: list[dict[str, Any]] = [
        {"columns": ["x"]},
        {"columns": ["z", "x"]},
        {"columns": ["x"], "filters": f("x") > 1},
    ]
    before = [[read_by(tfr.read_table, part, **some) for some in reads] for part in (files[:2], files)]
    for each in files:
        tfr.build_index(each, columns=["x"])
    for part, expected in zip((files[:2], files), before, strict=True):
        for some, table in zip(reads, expected, strict=True):
            assert_equal(read_by(tfr.read_table, part, **some), table)
    tfr.build_index(files, columns=["x"])
    for part, expected in zip((files[:2], files), before, strict=True):
        for some, table in zip(reads, expected, strict=True):
            assert_equal(read_by(tfr.read_table, part, **some), table)


def test_labels_partitions_and_paths(tmp_path: Path, opened: list[Scan]) -> None:
    frame = condition_table().select(["n", "text"]).to_pandas().rename_axis("key")
    tfr.write_tfrecord(frame.assign(part=[1, 2] * 30), tmp_path / "d", partition_by="part", index=True)
    options: dict[str, Any] = {"columns": ["n", "part"], "include_file_paths": "path"}
    expected, labelled = (
        read_by(tfr.read_table, tmp_path / "d", **options),
        tfr.read_tfrecord(tmp_path / "d", columns=["n"]),
    )
    tfr.build_index(tmp_path / "d", columns=["n", "key"])
    assert_equal(read_by(tfr.read_table, tmp_path / "d", **options), expected)
    assert tfr.read_tfrecord(tmp_path / "d", columns=["n"]).equals(labelled)
    assert opened[-1].has_values


def test_what_is_damaged_and_what_is_another_file(tmp_path: Path, opened: list[Scan]) -> None:
    """A file that was changed in place, or replaced, is read; payloads that were damaged since are not looked at."""
    path, size = tmp_path / "a.tfrecord", 4000
    rows = {"x": list(range(size)), "image": [bytes([n % 256]) * 200 for n in range(size)]}
    tfr.write_tfrecord(rows, path)
    time.sleep(0.1)
    tfr.build_index(path, columns=["x"])
    content, status = bytearray(path.read_bytes()), path.stat()
    assert tfr.read_table(path, columns=["x"])["x"].to_pylist() == rows["x"]
    assert opened[-1].has_values
    content[-50] ^= 1  # in the payload of the last record
    path.write_bytes(content)
    os.utime(path, ns=(status.st_mtime_ns, status.st_mtime_ns))
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 3999"):  # not all of a large file is compared
        tfr.read_table(path, columns=["x"])
    assert not opened[-1].has_values
    tfr.write_tfrecord({**rows, "x": rows["x"][::-1]}, tmp_path / "b.tfrecord")
    path.write_bytes((tmp_path / "b.tfrecord").read_bytes())
    with pytest.warns(tfr.errors.StaleIndexWarning, match="does not match"):
        assert tfr.read_table(path, columns=["x"])["x"].to_pylist() == rows["x"][::-1]


def ways_of_reading(dataset: tfr.Dataset) -> dict[str, int]:
    return Counter(file.read for file in dataset.explain().files)


def test_all_scalars_and_what_is_said_of_the_files(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"a": range(9), "b": ["x", None, ""] * 3, "c": [[1], [2, 3], []] * 3}, path)
    dataset = tfr.dataset(path)
    assert ways_of_reading(dataset.select(["a"])) == {"whole": 1}
    tfr.build_index(path, columns="*scalars")
    assert ways_of_reading(dataset.select(["a", "b"])) == {"index": 1}
    assert ways_of_reading(dataset.select(["a", "c"])) == {"whole": 1}
    assert ways_of_reading(dataset.select(["c"]).filter(f("a") == 2)) == {"records": 1}
    tfr.build_index(path, columns=["*scalars", "!a"])
    assert ways_of_reading(dataset.select(["a"])) == {"whole": 1}
    assert ways_of_reading(dataset.select(["b"])) == {"index": 1}
    tfr.write_tfrecord({"c": [[1]]}, path)
    with pytest.raises(tfr.errors.SchemaError):
        tfr.build_index(path, columns="*scalars")


def test_other_libraries(forms: list[list[Path]], opened: list[Scan]) -> None:
    pl, duckdb = pytest.importorskip("polars"), pytest.importorskip("duckdb")
    paths = forms[0]
    whole = tfr.read_table(paths)
    mean = pc.mean(whole["n"]).as_py()
    assert tfr.scan_polars(paths).select(pl.col("n").mean()).collect().item() == pytest.approx(mean)
    assert opened[-1].has_values
    connection = duckdb.connect()
    tfr.register_duckdb(connection, paths, name="t")
    assert connection.execute("SELECT avg(n) FROM t").fetchone()[0] == pytest.approx(mean)
    assert opened[-1].has_values
    count = whole.filter(f("text") == "a").num_rows
    assert connection.execute("SELECT count(*) FROM t WHERE text = 'a'").fetchone() == (count,)
    assert tfr.dataset(paths).filter(f("text") == "a").count_rows() == count
    assert tfr.scan_polars(paths).filter(pl.col("text") == "a").select("n").collect().height == count
    assert tfr.describe(paths, columns=["n"]).columns[0].nulls == whole["n"].null_count
    assert opened[-1].has_values


COLUMNS: list[Any] = [["n"], ["n", "text"], "*scalars", ["te*", "x"]]


@settings(max_examples=rounds(20))
@given(data=st.data())
def test_a_dataset_keeps_its_column_indexes(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Its rows are the same with and without them, and no file is read for columns that they have."""
    folder, table = tmp_path_factory.mktemp("grown"), condition_table()
    indexed, plain = f"{folder}/indexed/", f"{folder}/plain/"
    columns, at = data.draw(st.sampled_from(COLUMNS)), 0
    many: dict[str, Any] = data.draw(st.sampled_from([{}, {"shards": 2}, {"max_shard_bytes": 400}]))
    for number, size in enumerate(data.draw(st.lists(st.integers(1, 20), min_size=1, max_size=4))):
        part, at = table.slice(at, size), at + size
        mode = "append" if number else data.draw(st.sampled_from(["error", "overwrite", "append"]))
        own = {"write_index": columns} if not number or data.draw(st.booleans()) else {}
        tfr.write_tfrecord(part, indexed, mode=mode, **own, **many)
        tfr.write_tfrecord(part, plain, mode=mode)
    dataset = tfr.dataset(indexed)
    names = [name for name in ("n", "text", "x") if name in columns or columns == "*scalars"] or ["text", "x"]
    assert set(ways_of_reading(dataset.select(names))) <= {"index", "left out"}
    condition = data.draw(st.none() | CONDITIONS)
    for selected in (names, None):
        some = {"columns": selected, "filters": condition}
        try:
            expected = tfr.read_table(plain, **some)
        except pa.ArrowException:
            return
        assert_equal(tfr.read_table(indexed, **some), expected)
