"""Columns and rows of a scan: chosen by any name, counted without reading, split, and traced back to their records."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from in_processes import in_other_process, rows_of_piece
from records import blobs, example, flip, framed, int64s, written
from tfrecord_io.read.reader import Reader
from tfrecord_io.read.scan import Scan
from tfrecord_io.read.scan_rows import ScanRows

f = pc.field

EXAMPLE_OF_TEXT = example(x=blobs(b"s"), v=int64s(1))


def opened(dataset: tfr.Dataset, **keywords: Any) -> Reader:
    return ScanRows(Scan.unwrap(dataset)).open(**keywords)


def query(path: Any, **keywords: Any) -> tfr.Dataset:
    return tfr.dataset(path, **keywords)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    """Six records whose features have names that are globs or begin with "!"."""
    records = [
        example(**{"n": int64s(n), "a*": int64s(2 * n), "ab": int64s(3 * n), "!x": int64s(-n)}) for n in range(6)
    ]
    return written(tmp_path / "a.tfrecord", records)


@pytest.mark.parametrize("names", [["a[*]"], ["n", "ab"], ["ab", "n"], ["?x"], ["n", "*x"], [], ["!ab"]])
@pytest.mark.parametrize("condition", [None, f("n") > 2, f("a*") > 4, f("!x") < -2])
def test_selected_columns_come_in_their_order(numbers: Path, names: list[str], condition: Any) -> None:
    table = tfr.read_table(numbers)
    whole = query(numbers)
    narrowed = whole.select(names) if condition is None else whole.filter(condition).select(names)
    expected = table if condition is None else table.filter(condition)
    assert narrowed.to_table() == expected.select(narrowed.schema.names)
    assert narrowed.to_table().num_rows == expected.num_rows


def test_a_second_selection_chooses_among_the_first(numbers: Path) -> None:
    first = query(numbers).select(["n", "ab"])
    assert first.select(["*", "!n"]).schema.names == ["ab"]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="'a\\*'"):
        first.select(["n", "a*"]).select(["n"]).select(["a*"])


def test_a_filter_may_name_what_is_not_selected(numbers: Path) -> None:
    assert query(numbers).select(["ab"]).filter(f("n") == 2).to_table().to_pydict() == {"ab": [6]}
    for keywords in ({"columns": ["ab"]}, {"schema": {"ab": "int64"}}, {"columns": ["ab"], "schema": "infer"}):
        narrowed = query(numbers, **keywords).filter(f("n") == 2)
        assert narrowed.schema.names == ["ab"]
        assert narrowed.filter(f("ab") > 0).to_table().to_pydict() == {"ab": [6]}
        assert narrowed.count_rows() == 1
        with pytest.raises(tfr.errors.SchemaError, match=r"does not exist; valid names: !x, a\*, ab, n"):
            query(numbers, **keywords).filter(f("absent") == 2)


def test_only_needed_columns_are_decoded(numbers: Path) -> None:
    narrowed = query(numbers).filter(f("n") > 1).select(["ab"])
    assert Scan.unwrap(narrowed).without_filter().schema.names in (["n", "ab"], ["ab", "n"])
    assert Scan.unwrap(query(numbers, include_file_paths="path").select(["ab"])).without_filter().schema.names == ["ab"]


def test_the_column_of_paths_is_one_of_them(numbers: Path) -> None:
    whole = query(numbers, include_file_paths="path")
    assert whole.select(["path"]).limit(1).to_table().to_pydict() == {"path": [str(numbers)]}
    assert whole.filter(f("path") == str(numbers)).select(["n"]).to_table().num_rows == 6
    assert whole.filter(f("path") == "other").to_table().num_rows == 0


@pytest.mark.parametrize("keywords", [{}, {"offset": 2}, {"limit": 3}, {"offset": 4, "limit": 9}, {"offset": 99}])
@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz", "a@3"])
def test_rows_are_counted_as_they_are_read(tmp_path: Path, keywords: dict[str, Any], name: str) -> None:
    tfr.write_tfrecord({"n": list(range(10))}, tmp_path / name)
    whole = query(tmp_path / name, **keywords)
    rows = whole.to_table().num_rows
    assert whole.count_rows() == rows
    assert whole.rows == (rows if "@" in name else None)
    assert whole.limit(2).count_rows() == min(2, rows)
    above = whole.filter(f("n") > 5)
    assert (above.count_rows(), above.rows) == (above.to_table().num_rows, None)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.StoppedEarlyWarning")
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.StaleIndexWarning")
@pytest.mark.parametrize("keywords", [{}, {"offset": 2}, {"limit": 3}, {"offset": 1, "limit": 5}], ids=str)
@pytest.mark.parametrize("on_error", ["skip", "stop", lambda error: True], ids=["skip", "stop", "function"])
@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize("at", [0, -1], ids=["length", "payload"])
def test_rows_are_counted_as_they_are_read_from_a_damaged_file(
    tmp_path: Path, at: int, indexed: bool, on_error: Any, keywords: dict[str, Any]
) -> None:
    """One record is damaged, and one has a value that does not fit."""
    records = [example(n=blobs(b"text") if n == 5 else int64s(n), x=int64s(n)) for n in range(9)]
    path = written(tmp_path / "a.tfrecord", records)
    if indexed:
        tfr.build_index(path, columns=["x"])
    flip(path, len(framed(*records[:3])) if at == 0 else len(framed(*records[:4])) - 1)
    whole = query(path, schema={"n": "int64", "x": "int64"}, on_error=on_error, **keywords)
    assert whole.count_rows() == whole.to_table().num_rows
    assert whole.select(["x"]).count_rows() == whole.select(["x"]).to_table().num_rows
    above = whole.filter(f("x") > 1)
    assert above.count_rows() == above.to_table().num_rows


def test_a_limit_counts_the_rows_after_the_filter(numbers: Path) -> None:
    limited = query(numbers, limit=2, batch_size=1).filter(f("n") > 1)
    assert limited.to_table()["n"].to_pylist() == [2, 3]
    with opened(limited) as reader:
        assert [batch["n"].to_pylist() for batch in reader] == [[2], [3]]
    assert limited.limit(1).count_rows() == 1
    assert limited.limit(0).to_table().num_rows == 0


@pytest.mark.parametrize("filters", [[("b", "==", 1)], [("b", ">=", 0)], [("b", "==", 5)]])
@pytest.mark.parametrize("columns", [None, ["a"], ["c", "a"], ["*", "!b"]])
@pytest.mark.parametrize("limit", [0, 1, 2, 9])
def test_types_after_a_limit_and_a_filter_are_those_of_both_keywords(
    tmp_path: Path, limit: int, columns: list[str] | None, filters: Any
) -> None:
    records = [example(a=int64s(n), b=int64s(0), c=blobs(b"t")) for n in range(3)]
    records += [example(a=int64s(1, 2), b=int64s(1), c=blobs(), d=int64s(4))]
    path = written(tmp_path / "a.tfrecord", records)
    expected = tfr.read_table(path, columns=columns, limit=limit, filters=filters)
    assert query(path, columns=columns, limit=limit).filter(filters).to_table() == expected
    assert query(path, columns=columns, limit=limit).filter(f("b") >= 0).filter(filters).to_table() == expected


def test_a_piece_is_read_in_a_spawned_process(numbers: Path) -> None:
    parts = query(numbers).filter(f("n") > 0).select(["n"]).pieces(2)
    rows = [row for part in parts for row in in_other_process(rows_of_piece, pickle.dumps(part))]
    assert rows == [{"n": n} for n in range(1, 6)]


def test_pieces_of_many_files_pickle_small(tmp_path: Path) -> None:
    for number in range(1000):
        written(
            tmp_path / f"train-{number:05d}-of-01000.tfrecord", [example(n=int64s(1, 2), name=blobs(b"x" * number))]
        )
    whole = query(tmp_path).filter(f("n").is_valid()).select(["name"])
    assert len(pickle.dumps(whole)) < 8000
    assert all(len(pickle.dumps(part)) < 8000 for part in whole.pieces(10))


@pytest.mark.parametrize("limit", [None, 1])
@pytest.mark.parametrize("names", [None, ["u", "x"], ["p", "u"], ["t"], ["v", "x"]])
def test_a_filter_on_folders_keeps_columns_that_no_file_has_which_is_left(
    tmp_path: Path, names: list[str] | None, limit: int | None
) -> None:
    """The other columns have the types of the files that are left."""
    tensor = {"t": blobs(bytes(8)), "t/shape": int64s(2), "t/dtype": blobs(b"float32")}
    for folder, record in (("p=1", example(x=int64s(1), u=blobs(b"a"), **tensor)), ("p=2", EXAMPLE_OF_TEXT)):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "a.tfrecord", [record])
    whole, condition = query(tmp_path), [("p", "==", 2)]
    types = {**dict(zip(whole.schema.names, whole.schema.types, strict=True)), "x": pa.string(), "v": pa.int64()}
    whole = whole if limit is None else whole.limit(limit)
    table = (whole if names is None else whole.select(names)).filter(condition).to_table()
    names = names or whole.schema.names
    assert table.schema.names == names
    assert table.schema.types == [types[name] for name in names]
    row = {"x": "s", "v": 1, "p": 2}
    assert table.to_pylist() == [{name: row.get(name) for name in names}]


def test_an_error_names_the_record_and_its_offset(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(n)) for n in range(100)])
    whole = query(path, batch_size=10).filter(f("n") > 20)
    content = bytearray(path.read_bytes())
    content[-6] ^= 1
    path.write_bytes(content)
    batches = []
    with pytest.raises(tfr.errors.CorruptRecordError, match="record 99 at byte") as caught, opened(whole) as reader:
        batches.extend(reader)
    assert (sum(map(len, batches)), caught.value.records_intact) == (78, 99)


def test_what_was_left_out_is_reported(numbers: Path) -> None:
    content = bytearray(numbers.read_bytes())
    content[-6] ^= 1
    numbers.write_bytes(content)
    with (
        pytest.warns(tfr.errors.DamagedDataWarning),
        opened(query(numbers, on_error="skip").filter(f("n") > 2)) as reader,
    ):
        assert [n for batch in reader for n in batch["n"].to_pylist()] == [3, 4]
    assert reader.report.records == 5
    assert len(reader.report.skipped) == 1


def test_rows_after_a_filter_have_their_origin(numbers: Path) -> None:
    with opened(query([numbers, numbers]).filter(f("n") >= 4), whole=True) as reader:
        assert reader.read_all().num_rows == 4
        assert [reader.origins.locate(row)[1] for row in range(4)] == [4, 5, 4, 5]
        with pytest.raises(IndexError):
            reader.origins.locate(4)


def test_a_file_object_is_refused(numbers: Path) -> None:
    with numbers.open("rb") as file, pytest.raises(TypeError, match="a file object, or a pipe, is read once"):
        query(file).select(["n"])


def test_nothing_is_read_behind_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrecord_io.store.read.block_reader import FIRST_BYTES
    from tfrecord_io.store.read.blocks_ahead import ReadAhead

    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": range(1000), "raw": [bytes(1000)] * 1000}, path, embed_schema=False)
    assert path.stat().st_size > 2 * FIRST_BYTES
    monkeypatch.setattr(ReadAhead, "start", lambda *_: pytest.fail("a thread reads in advance"))
    dataset = tfr.dataset(path, sample=500, threads=2)
    assert dataset.schema.names == ["n", "raw"]
    monkeypatch.undo()
    assert dataset.select(["n"]).to_table().equals(pa.table({"n": range(1000)}))
