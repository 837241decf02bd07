"""``filters=`` of every reader: the rows, values and types that filtering after reading leaves."""

from __future__ import annotations

import datetime
import io
import pickle
import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import assert_equal
from reading import read_by
from reading_modes import blocks_of, decoded_by, engine_of, matching_records_only, small_index_groups
from rounds import rounds
from suites.conditions import CONDITIONS, ROWS, TUPLES, VALUES, condition_files
from transfers import convert_flat

f = pc.field
INDEXED = [["n"], ["text", "x", "team"], [name for name in VALUES if name != "list"]]
DECLARED = {
    "n": "int64",
    "text": "string",
    "x": "double",
    "small": "int64",
    "flag": "bool",
    "raw": "binary",
    "list": pa.list_(pa.int64()),
    "time": pa.timestamp("ms", "UTC"),
    "team": "string",
}


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Path], dict[str, Any]]]:
    """Files with an embedded schema, with a declared one, and with none."""
    embedded = condition_files(tmp_path_factory.mktemp("embedded"))
    plain = condition_files(tmp_path_factory.mktemp("plain"), embed_schema=False)
    return [(embedded, {}), (embedded, {"schema": DECLARED}), (plain, {})]


@pytest.fixture(scope="module")
def indexed_forms(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[Path], dict[str, Any]]]:
    """Files with an embedded schema, and with none, two of three with an index, for each set of indexed columns."""
    found: list[tuple[list[Path], dict[str, Any]]] = []
    for embed in (True, False):
        for columns in INDEXED:
            found.append((condition_files(tmp_path_factory.mktemp("indexed"), embed_schema=embed), {}))
            with small_index_groups():
                tfr.build_index(found[-1][0][::2], columns=columns)
    return found


def test_indexes_are_used(indexed_forms: list[tuple[list[Path], dict[str, Any]]]) -> None:
    with matching_records_only() as used:
        for columns, (paths, _) in zip(INDEXED, indexed_forms[: len(INDEXED)], strict=True):
            tfr.read_table(paths, filters=f(columns[0]).is_null())
    assert len(used) == len(INDEXED)


def applies(table: pa.Table, condition: Any) -> bool:
    """Whether a condition applies to the types of a table."""
    try:
        table.filter(condition)
    except (pa.ArrowException, KeyError):
        return False
    return True


@settings(max_examples=rounds(400))
@given(
    data=st.data(),
    condition=CONDITIONS,
    form=st.integers(0, 2 + 2 * len(INDEXED)),
    by_index=st.booleans(),
    threads=st.sampled_from([1, 2, 4]),
    ways=st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 300])), min_size=1, max_size=3),
    block=st.sampled_from([1, 500, 1 << 20]),
)
def test_every_reader_filters_as_after_reading(
    forms: list[tuple[list[Path], dict[str, Any]]],
    indexed_forms: list[tuple[list[Path], dict[str, Any]]],
    data: st.DataObject,
    condition: Any,
    form: int,
    by_index: bool,
    threads: int,
    ways: list[tuple[bool, int | None]],
    block: int,
) -> None:
    files, keywords = [*forms, *indexed_forms][form]
    is_typed = form != 2 and form < 3 + len(INDEXED)
    with decoded_by(ways), blocks_of(block), matching_records_only() if by_index else nullcontext():
        filters_as_after_reading(files, keywords, data, condition, is_typed=is_typed, threads=threads)


def filters_as_after_reading(
    files: list[Path], keywords: dict[str, Any], data: st.DataObject, condition: Any, *, is_typed: bool, threads: int
) -> None:
    whole = read_by(tfr.read_table, files, **keywords)
    if not applies(whole, condition):
        with pytest.raises(tfr.errors.SchemaError):
            read_by(tfr.read_table, files, filters=condition, **keywords)
        return
    columns = data.draw(st.lists(st.sampled_from(list(VALUES)), unique=True, min_size=1))
    offset = data.draw(st.integers(0, ROWS if is_typed else 0))  # types are inferred from the rows behind it
    limit = data.draw(st.none() | st.integers(0, ROWS))
    expected = whole.slice(offset).filter(condition).select(columns).slice(0, limit)
    some = {**keywords, "columns": columns, "offset": offset, "limit": limit, "threads": threads}
    assert_equal(read_by(tfr.read_table, files, filters=condition, **some), expected)
    with read_by(tfr.open_reader, files, filters=condition, batch_size=data.draw(st.integers(1, 40)), **some) as reader:
        assert repr(pa.Table.from_batches(reader, reader.schema).to_pylist()) == repr(expected.to_pylist())
    dataset = tfr.dataset(files, filters=condition, **some)
    assert dataset.count_rows() == expected.num_rows
    if is_typed:
        assert_equal(pickle.loads(pickle.dumps(dataset)).to_table(), expected)
        assert_equal(dataset.head(3), expected.slice(0, 3))
    if limit is None and not offset:
        pieces = [piece.read() for piece in pickle.loads(pickle.dumps(dataset.pieces(data.draw(st.integers(1, 9)))))]
        assert repr(pa.concat_tables(pieces).to_pylist()) == repr(expected.to_pylist())
    columns = [name for name in columns if name in ("text", "raw", "x")]
    if columns:
        rows = {**some, "filters": condition, "columns": columns}
        arrays = read_by(tfr.read_arrays, files, missing="mask", **rows)
        frame = read_by(tfr.read_tfrecord, files, **rows)
        assert list(arrays) == list(frame.columns) == columns
        for name in columns:
            assert repr(arrays[name].tolist()) == repr(expected[name].to_pylist())
            if name != "x":  # whose NaN is a missing value in a frame
                of_frame = frame[name].astype(object).where(frame[name].notna(), None)
                assert of_frame.tolist() == expected[name].to_pylist()


@settings(max_examples=rounds(60))
@given(TUPLES, TUPLES, st.integers(0, 2), st.sampled_from([1, 2]))
def test_tuples_are_those_of_pyarrow(
    forms: list[tuple[list[Path], dict[str, Any]]], first: Any, second: Any, form: int, threads: int
) -> None:
    from pyarrow.parquet import filters_to_expression

    files, keywords = forms[form]
    whole = read_by(tfr.read_table, files, **keywords)
    for filters in (first, [first, first], [first, second]):
        expected = whole.filter(filters_to_expression(filters))
        assert_equal(read_by(tfr.read_table, files, filters=filters, threads=threads, **keywords), expected)


@settings(max_examples=rounds(60))
@given(
    st.sampled_from([f("n") > 0, f("text") == "a", (f("n") >= 0) & f("flag")]),
    st.integers(1, 9),
    st.sampled_from([0, 5, 40]),
    st.sampled_from([None, 1, 3]),
    st.sampled_from([1, 3]),
    st.none() | st.integers(0, 20),
)
def test_training_reads_the_rows_that_pass(
    forms: list[tuple[list[Path], dict[str, Any]]],
    condition: Any,
    batch_size: int,
    shuffle: int,
    workers: int | None,
    threads: int,
    limit: int | None,
) -> None:
    files, _ = forms[0]
    keywords: dict[str, Any] = {"filters": condition, "columns": ["raw", "text"], "seed": 3, "threads": threads}
    keywords |= {"shuffle_buffer": shuffle, "batch_size": batch_size, "epochs": 2, "limit": limit}
    rows = tfr.read_table(files, filters=condition, columns=["raw", "text"], limit=limit).to_pylist()
    found = []
    for worker in range(workers or 1):
        part = {**keywords, "worker": None if workers is None else (worker, workers)}
        batches = read_by(tfr.iter_arrays, files, **part)
        read, states = [], []
        for batch in batches:
            read += zip(*(values.tolist() for values in batch.values()), strict=True)
            states.append((len(read), batches.state()))
        for done, state in states[:: max(1, len(states) // 3)]:
            again = read_by(tfr.iter_arrays, files, **part, state=state)
            rest = [row for batch in again for row in zip(*(v.tolist() for v in batch.values()), strict=True)]
            assert rest == read[done:]
        found += read
    expected = [tuple(row.values()) for row in rows] * 2
    if shuffle or workers is not None:
        found, expected = sorted(found, key=repr), sorted(expected, key=repr)
    assert found == expected


def test_a_state_is_that_of_its_filter(forms: list[tuple[list[Path], dict[str, Any]]]) -> None:
    files, _ = forms[0]
    batches = tfr.iter_arrays(files, batch_size=2, columns=["raw"], filters=f("n") > 0)
    next(batches)
    state = batches.state()
    for filters in (None, f("n") > 1):
        with pytest.raises(ValueError, match="filter="):
            tfr.iter_arrays(files, batch_size=2, columns=["raw"], filters=filters, state=state)
    many = [*range(200), *range(201, 300)]
    state = tfr.iter_arrays(files, batch_size=2, columns=["raw"], filters=[("n", "in", range(300))]).state()
    tfr.iter_arrays(files, batch_size=2, columns=["raw"], filters=[("n", "in", range(300))], state=state)
    with pytest.raises(ValueError, match="filter=") as caught:
        tfr.iter_arrays(files, batch_size=2, columns=["raw"], filters=[("n", "in", many)], state=state)
    assert len(str(caught.value)) < 700
    part: dict[str, Any] = {"batch_size": 1, "columns": ["raw"], "filters": f("n") > 0, "uneven": "pad"}
    rows = [sum(1 for _ in read_by(tfr.iter_arrays, files, worker=(worker, 2), **part)) for worker in range(2)]
    assert rows[0] == rows[1] == -(-tfr.read_table(files, filters=f("n") > 0).num_rows // 2)


def test_columns_that_are_left_out_can_be_named(forms: list[tuple[list[Path], dict[str, Any]]]) -> None:
    files, _ = forms[0]
    whole = tfr.read_table(files)
    kept = whole.filter(f("n") > 0)
    for columns in (["!n"], ["*", "!n", "!t*"], "text", ["raw", "text"], ["t*"]):
        names = tfr.read_table(files, columns=columns).column_names
        assert_equal(tfr.read_table(files, columns=columns, filters=f("n") > 0), kept.select(names))
    paths = tfr.read_table(
        tfr.dataset(files, include_file_paths="path"), columns=["n", "path"], filters=f("path") == str(files[1])
    )
    assert_equal(paths.select(["n"]), whole.slice(20, 20).select(["n"]))
    assert paths["path"].unique().to_pylist() == [str(files[1])]


def test_a_column_that_is_not_there_is_a_schema_error(forms: list[tuple[list[Path], dict[str, Any]]]) -> None:
    def opened(files: list[Path], **keywords: Any) -> pa.Schema:
        return tfr.dataset(files, **keywords).schema

    for files, keywords in forms:
        for call in (tfr.read_table, tfr.read_tfrecord, tfr.open_reader, tfr.read_arrays, opened):
            with pytest.raises(
                tfr.errors.SchemaError, match="feature 'absent': the filter names a column that does not"
            ):
                call(files, filters=f("absent") > 1, **keywords)
        with pytest.raises(tfr.errors.SchemaError, match="names a column that does not exist"):
            read_by(tfr.iter_arrays, files, batch_size=2, filters=[("absent", "==", 1)], **keywords)


def test_a_stored_index_is_kept(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1, 2, 3, 4]}, index=pd.Index(["a", "b", "c", "d"], name="key"))
    tfr.write_tfrecord(frame, tmp_path / "named.tfrecord")
    tfr.write_tfrecord(frame.reset_index(drop=True), tmp_path / "range.tfrecord")
    for condition in (f("x") > 2, f("key") > "b"):
        pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "named.tfrecord", filters=condition), frame[2:])
        one = tfr.read_tfrecord(tmp_path / "named.tfrecord", columns=["x"], filters=condition)
        pd.testing.assert_frame_equal(one, frame[2:])
    rows = tfr.read_tfrecord(tmp_path / "range.tfrecord", filters=f("x") > 2)
    assert rows.to_dict("list") == {"x": [3, 4]}
    assert rows.index.tolist() == [0, 1]


@pytest.mark.parametrize("engine", ["native", "reference_engine"])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("two_steps", [False, True])
def test_damage_is_skipped_as_without_a_filter(tmp_path: Path, engine: str, threads: int, two_steps: bool) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": list(range(400)), "text": ["t"] * 400}, path)
    content = bytearray(path.read_bytes())
    for at in (0.2, 0.5, 0.51):
        content[int(len(content) * at)] ^= 1
    path.write_bytes(content)
    condition = (f("n") % 3 == 0) if hasattr(f("n"), "__mod__") else pc.bit_wise_and(f("n"), pc.scalar(1)) == 0
    with engine_of(engine), blocks_of(1000), decoded_by([(two_steps, None)]), warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        whole = tfr.read_table(tfr.dataset(path, threads=threads), on_error="skip")
        assert 390 < whole.num_rows < 400
        assert_equal(
            tfr.read_table(tfr.dataset(path, threads=threads), on_error="skip", filters=condition),
            whole.filter(condition),
        )
        with tfr.open_reader(
            tfr.dataset(path, threads=threads), on_error="skip", filters=condition, batch_size=7
        ) as reader:
            read = pa.Table.from_batches(reader, reader.schema)
            assert read["n"].to_pylist() == whole.filter(condition)["n"].to_pylist()
            assert reader.report.records == whole.num_rows
            assert len(reader.report.skipped) >= 2


def test_out_is_filled_with_the_rows_that_pass(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3, 4], "keep": [True, False, True, True]}, tmp_path / "a.tfrecord")
    out = {"n": np.zeros(3, np.int64)}
    tfr.read_arrays(tmp_path / "a.tfrecord", out=out, filters=f("keep"))
    assert out["n"].tolist() == [1, 3, 4]


@settings(max_examples=rounds(100))
@given(
    data=st.data(),
    name=st.sampled_from([name for name in VALUES if name not in ("list", "time")]),
    symbol=st.sampled_from(["==", "!=", "in", "not in"]),
    form=st.integers(0, 2),
)
def test_missing_values_are_values_of_tuples(
    forms: list[tuple[list[Path], dict[str, Any]]], data: st.DataObject, name: str, symbol: str, form: int
) -> None:
    files, keywords = forms[form]
    present = [value for value in VALUES[name][1] if value is None or value == value]  # NaN
    some: Any = None if symbol in ("==", "!=") else data.draw(st.lists(st.sampled_from(present), unique=True))
    table = read_by(tfr.read_table, files, **keywords)
    values = table[name].to_pylist()
    found = [(value is None) if some is None else (value in some) for value in values]
    expected = table.filter(pa.array([has == (symbol in ("==", "in")) for has in found]))
    for filters in ([(name, symbol, some)], [[(name, symbol, some)], [(name, symbol, some)]]):
        assert_equal(read_by(tfr.read_table, files, filters=filters, **keywords), expected)
        assert tfr.dataset(files, **keywords).filter(filters).count_rows() == expected.num_rows


@settings(max_examples=rounds(40))
@given(
    lists=st.lists(st.none() | st.lists(st.integers(0, 3), max_size=3), min_size=1, max_size=9),
    value=st.sampled_from([0, 1, 3, 9, 1.0, 1.5, 2**70]),
    pair=st.booleans(),
)
def test_lists_that_contain_a_value(lists: list[list[int] | None], value: Any, pair: bool) -> None:
    tags = [None if each is None else [f"t{n}" for n in each] for each in lists]
    days = [None if each is None else [datetime.date(2024, 1, 1 + n) for n in each] for each in lists]
    types = {"n": pa.list_(pa.int64()), "t": pa.list_(pa.string()), "d": pa.list_(pa.date32()), "row": pa.int64()}
    table = pa.table([lists, tags, days, range(len(lists))], schema=pa.schema(types))
    rows = [row for row, each in enumerate(lists) if each is not None and value in each]
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table, Path(folder) / "a.tfrecord", shards=2 if pair else 1)
        terms = [("n", "contains", value)]
        if value in range(9):
            terms += [("t", "contains", f"t{int(value)}"), ("d", "contains", f"2024-01-0{int(value) + 1}")]
        for filters in ([terms[:1], terms[-1:]], terms):
            keywords: dict[str, Any] = {"filters": filters, "columns": ["row"]}
            assert read_by(tfr.read_table, folder, **keywords)["row"].to_pylist() == rows
            assert tfr.dataset(folder, **keywords).count_rows() == len(rows)
            with read_by(tfr.open_reader, folder, batch_size=2, **keywords) as reader:
                assert [row for batch in reader for row in batch["row"].to_pylist()] == rows


def test_columns_that_a_schema_leaves_out_can_be_named(tmp_path: Path) -> None:
    table = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"], "c": [None, 5, 6]})
    for embed in (True, False):
        path = tmp_path / f"{embed}" / "day=1" / "a.tfrecord"
        path.parent.mkdir(parents=True)
        tfr.write_tfrecord(table, path, embed_schema=embed)
        keywords: dict[str, Any] = {"schema": {"b": "string"}, "filters": [("c", ">", 5), ("day", "==", 1)]}
        folder = tmp_path / f"{embed}"
        assert read_by(tfr.read_table, folder, **keywords).to_pydict() == {"b": ["z"], "day": [1]}
        assert read_by(tfr.read_tfrecord, folder, **keywords).to_dict("list") == {"b": ["z"], "day": [1]}
        assert read_by(tfr.read_arrays, path, **{**keywords, "filters": [("c", ">", 5)]})["b"].tolist() == ["z"]
        assert tfr.dataset(folder, **keywords).to_table().column_names == ["b", "day"]
        assert [b["b"].tolist() for b in read_by(tfr.iter_arrays, folder, batch_size=2, columns=["b"], **keywords)] == [
            ["z"]
        ]
        with read_by(tfr.open_reader, folder, **keywords) as reader:
            assert reader.schema.names == ["b", "day"]
            assert reader.read_all().num_rows == 1
        convert_flat(folder, tmp_path / "b.parquet", mode="overwrite", **keywords)
        assert pq.read_table(tmp_path / "b.parquet").to_pydict() == {"b": ["z"], "day": [1]}
        with pytest.raises(tfr.errors.FeatureNotFoundError, match="'c' matches no feature"):
            read_by(tfr.read_table, folder, columns=["c"], **keywords)
        for narrowed in ({"columns": ["b"]}, {"schema": {"b": "string"}}):
            with pytest.raises(tfr.errors.FeatureNotFoundError, match="valid names: a, b, c, day"):
                read_by(tfr.read_table, folder, filters=[("absent", "==", 1)], **narrowed)
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match=r"the source is read once: declare the column in schema="
    ):
        tfr.read_table(io.BytesIO(path.read_bytes()), schema={"b": "string"}, filters=[("c", ">", 5)])


@pytest.mark.parametrize(
    "filters",
    [
        [("n", "in", ["a" * 9, *range(10_000)])],
        [("n", "in", [f"value {n}" for n in range(10_000)])],
        f("text").isin(list(range(10_000))),
        [("n", "~" * 10_000, 1)],
        [("n", "==")] * 10_000,
        [("n" * 10_000, "<", None)],
        [("n", "==", "x" * 10_000)],
        f("n").isin(list(range(10_000))) & (f("text") == "a" * 10_000) & (f("n") == "b"),
    ],
)
def test_messages_are_short(forms: list[tuple[list[Path], dict[str, Any]]], filters: Any) -> None:
    with pytest.raises((tfr.errors.SchemaError, ValueError)) as caught:
        tfr.read_table(forms[0][0], filters=filters)
    assert len(str(caught.value)) < 700
    assert "\n" not in str(caught.value)
    if not isinstance(filters, list):
        assert len(repr(tfr.dataset(forms[0][0]).filter(f("n").isin(list(range(10_000)))))) < 1500
