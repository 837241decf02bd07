"""``filters=`` on files with bad values: what is an error depends on the rows alone, not on how they are decoded.

The columns of the filter are checked in all rows, the others in rows that pass.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of, decoded_by, engine_of
from records import blobs, example, floats, framed, int64s
from rounds import rounds
from tfrecord_io.base.options.on_damage import OnDamage

f = pc.field
SCHEMA = {"n": "int8", "x": "int16", "t": "string", "v": pa.list_(pa.float32(), 2)}
BAD: dict[str, Any] = {  # feature: a value that does not fit, found by the engine or when the column is made
    "n": int64s(1000),
    "x": int64s(1 << 20),
    "t": blobs(b"\xff"),
    "v": floats(1.0),
    "n_kind": floats(1.0),
    "x_kind": floats(1.0),
}
WAYS = st.lists(st.tuples(st.booleans(), st.sampled_from([None, 1, 300])), min_size=1, max_size=3)
ROWS = st.lists(
    st.tuples(st.sampled_from([0, 0, 0, 0, 1]), st.sampled_from([None] * 14 + list(BAD))), min_size=1, max_size=40
)


def record(number: int, n: int, bad: str | None) -> bytes:
    features = {"n": int64s(n), "x": int64s(number), "t": blobs(b"abc"), "v": floats(1.0, 2.0)}
    if bad is not None:
        features[bad.partition("_")[0]] = BAD[bad]
    return example(**features)


def counts(n: int, bad: str | None) -> bool:
    """Whether a bad value is an error where rows with n = 1 pass."""
    return bad is not None and (n == 1 or bad.startswith("n"))


@settings(max_examples=rounds(80))
@given(
    rows=ROWS,
    ways=WAYS,
    block=st.sampled_from([1, 200, 1 << 20]),
    threads=st.sampled_from([1, 3]),
    engine=st.sampled_from(["native", "native", "reference_engine"]),
    batch_size=st.none() | st.integers(1, 50),
)
@pytest.mark.parametrize("on_error", OnDamage.names(OnDamage.needs_no_report))
def test_errors_do_not_depend_on_the_way_of_decoding(
    tmp_path_factory: pytest.TempPathFactory,
    on_error: Any,
    rows: list[tuple[int, str | None]],
    ways: list[tuple[bool, int | None]],
    block: int,
    threads: int,
    engine: str,
    batch_size: int | None,
) -> None:
    path = tmp_path_factory.mktemp("bad") / "a.tfrecord"
    path.write_bytes(framed(*(record(number, n, bad) for number, (n, bad) in enumerate(rows))))
    first = next((number for number, row in enumerate(rows) if counts(*row)), None)
    end = len(rows) if first is None or OnDamage.of(on_error).goes_on else first
    expected = [number for number in range(end) if rows[number][0] == 1 and not counts(*rows[number])]
    keywords: dict[str, Any] = {"schema": SCHEMA, "filters": f("n") == 1, "threads": threads, "on_error": on_error}
    got: list[int] = []
    error = None
    with engine_of(engine), blocks_of(block), decoded_by(ways), warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        warnings.simplefilter("ignore", tfr.errors.StoppedEarlyWarning)
        try:
            if batch_size is None:
                got = read_by(tfr.read_table, path, **keywords)["x"].to_pylist()
            else:
                with read_by(tfr.open_reader, path, batch_size=batch_size, **keywords) as reader:
                    for batch in reader:
                        got += batch["x"].to_pylist()
                    left_out = 0 if not OnDamage.of(on_error).goes_on else sum(counts(*row) for row in rows)
                    assert reader.report.records == end - left_out
        except tfr.TFRecordError as caught:
            error = caught
    if OnDamage.of(on_error).is_strict and first is not None:
        assert error is not None
        assert error.record == first
        assert error.records_intact == first
        assert error.feature == str(rows[first][1]).partition("_")[0]
        assert got == (expected if batch_size is not None else [])
    else:
        assert error is None
        assert got == expected


@pytest.mark.parametrize("two_steps", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_framing_and_checksums_are_checked_in_all_rows(tmp_path: Path, two_steps: bool, threads: int) -> None:
    content = bytearray(framed(*[record(0, 0, None)] * 200))
    size = len(content) // 200
    content[150 * size + 20] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    with decoded_by([(two_steps, None)]), blocks_of(3000), pytest.raises(tfr.errors.CorruptRecordError) as caught:
        tfr.read_table(tfr.dataset(path, threads=threads), schema=SCHEMA, filters=f("n") == 1)
    assert caught.value.record == 150


@pytest.mark.parametrize("two_steps", [False, True])
def test_a_new_feature_is_an_error_in_any_row(tmp_path: Path, two_steps: bool) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [0, 1, 0], "x": [1, 2, 3]}, path)
    path.write_bytes(path.read_bytes() + framed(record(3, 0, None)))
    with decoded_by([(two_steps, None)]), pytest.raises(tfr.errors.SchemaError, match=r"'[tv]'"):
        tfr.read_table(path, filters=f("n") == 1)


@pytest.mark.parametrize("two_steps", [False, True])
@pytest.mark.parametrize("present", [False, True])
def test_absent_columns_are_those_of_no_row(tmp_path: Path, two_steps: bool, present: bool) -> None:
    path = tmp_path / "a.tfrecord"
    rows = [example(n=int64s(0), x=int64s(1)), example(n=int64s(0)), example(n=int64s(1))]
    path.write_bytes(framed(*rows[0 if present else 1 :]))
    schema = {"n": "int64", "x": "int64"}
    with decoded_by([(two_steps, None)]), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert tfr.read_table(path, schema=schema, filters=f("n") == 1).to_pylist() == [{"n": 1, "x": None}]
    assert [str(w.message).partition(".")[0] for w in caught] == ["'x' occurs in none of 2 records"] * (not present)


@pytest.mark.parametrize("two_steps", [False, True])
def test_categories_are_those_of_all_rows(tmp_path: Path, two_steps: bool) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(*(example(n=int64s(n), c=blobs(c)) for n, c in [(0, b"a"), (1, b"b"), (0, b"c")])))
    schema = {"n": "int64", "c": pa.dictionary(pa.int8(), pa.string())}
    with decoded_by([(two_steps, None)]):
        frame = tfr.read_tfrecord(path, schema=schema, filters=f("n") == 1)
    assert frame["c"].cat.categories.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("two_steps", [False, True])
@pytest.mark.parametrize("batch_size", [1, 7, 1000])
def test_a_condition_that_cannot_be_applied_is_an_error(tmp_path: Path, two_steps: bool, batch_size: int) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(*(example(t=blobs(t), x=int64s(1)) for t in [b"1"] * 20 + [b"2", b"x", b"2"])))
    schema = {"t": "string", "x": "int64"}
    with (
        decoded_by([(two_steps, None)]),
        tfr.open_reader(path, schema=schema, filters=f("t").cast("int64") == 2, batch_size=batch_size) as reader,
        pytest.raises(tfr.errors.SchemaError, match="cannot be applied: Failed to parse string: 'x'"),
    ):
        reader.read_all()


@pytest.mark.parametrize("two_steps", [False, True])
def test_parts_about_features_apply_early_next_to_folder_columns(tmp_path: Path, two_steps: bool) -> None:
    for team in ("a", "b"):
        (tmp_path / f"team={team}").mkdir()
        rows = [record(number, number % 2, "x" if number == 2 else None) for number in range(4)]
        (tmp_path / f"team={team}" / "1.tfrecord").write_bytes(framed(*rows))
    conditions = [(f("team") == "b") & (f("n") == 1), (f("n") == 1) & (f("path") == "") | (f("team") == "c")]
    keywords: dict[str, Any] = {"schema": SCHEMA, "include_file_paths": "path"}
    with decoded_by([(two_steps, None)]):
        table = read_by(tfr.read_table, tmp_path, filters=conditions[0], **keywords)
        assert table.select(["x", "team"]).to_pylist() == [{"x": 1, "team": "b"}, {"x": 3, "team": "b"}]
        with pytest.raises(tfr.errors.DecodeError, match="'x'"):  # it has no part about features alone
            read_by(tfr.read_table, tmp_path, filters=conditions[1], **keywords)
