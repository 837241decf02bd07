"""Integers that a float64 would round: the neighbours of int64's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from limited import limited
from tfrecord_io.apps.file_formats.tables import csv_files
from tfrecord_io.apps.file_formats.tables.untyped_columns import may_be_rounded, refuse_rounding
from transfers import convert_flat


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "+" + "9" * 5000])
def test_integers_beyond_int64_are_refused(text: str) -> None:
    assert may_be_rounded(pa.array([[float(text)], None], pa.list_(pa.float64())))
    with pytest.raises(tfr.errors.DecodeError, match="does not fit int64") as caught:
        refuse_rounding(["1", text], "x", pa.list_(pa.float64()), "a.jsonl")
    assert (caught.value.feature, caught.value.got) == ("x", text)


def test_limits_of_int64_and_floats_pass() -> None:
    refuse_rounding([str(2**63 - 1), str(-(2**63)), "0" * 30], "x", pa.float64(), "a.csv")
    refuse_rounding([str(2**63), "1e3"], "x", pa.float64(), "a.csv")


@pytest.mark.parametrize(
    ("name", "text", "keywords", "place"),
    [
        ("a.csv", "n,x\n1,2\n\n,1e400\n", {}, ("x", 1)),
        ("a.csv", "x\n1\n\n-1e400\n", {}, ("x", 2)),
        ("a.csv", "n,x\n1,2\n3,1e39\n", {"schema_overrides": {"x": "float32"}}, ("x", 1)),
        ("a.csv", "n,x\n1,inf\n3,1e400\n", {"schema": {"x": "float64"}}, ("x", 1)),
        ("a.jsonl", '{"x": 1.5}\n\n{"x": 1e400}\n', {}, ("x", 1)),
        ("a.jsonl", '{"x": 1.5}\n{"x": "Infinity"}\n{"x": -1e400}\n', {}, ("x", 2)),
        ("a.jsonl", '{"x": 1.5}\n{"x": 1e39}\n', {"schema_overrides": {"x": "float32"}}, ("x", 1)),
        ("a.jsonl", '{"x": {"y": [1.5]}}\n{"x": {"y": [1e400]}}\n', {}, ("x", 1)),
        ("a.jsonl", '{"x": 1.5}\n{\n"x":\n 1e400}\n', {}, ("x", 1)),
        ("a.jsonl", '{"x":\n1.5} {"x": 1e39}\n', {"schema_overrides": {"x": "float32"}}, ("x", 1)),
    ],
)
def test_numbers_do_not_become_infinities(
    tmp_path: Path, name: str, text: str, keywords: dict[str, Any], place: tuple[str, int]
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(tfr.errors.DecodeError, match="the number is too large for") as caught:
        convert_flat(tmp_path / name, tmp_path / "a.tfrecord", float64="raw", **keywords)
    assert (caught.value.feature, caught.value.record) == place
    assert caught.value.path == str(tmp_path / name)


@pytest.mark.parametrize("block_bytes", [300, 1 << 20])
def test_the_row_of_a_number_that_is_too_large_is_counted_in_all_blocks(tmp_path: Path, block_bytes: int) -> None:
    (tmp_path / "a.csv").write_text("n,x\n" + 500 * "1,2.5\n" + "3,1e400\n")
    keywords: dict[str, Any] = {"schema": {"x": "float64"}, "float64": "raw"}
    blocks = mock.patch.object(csv_files, "_STREAMED_BYTES", block_bytes)
    with blocks, pytest.raises(tfr.errors.DecodeError, match="too large") as caught:
        convert_flat(tmp_path / "a.csv", tmp_path / "a.tfrecord", **keywords)
    assert (caught.value.feature, caught.value.record) == ("x", 500)


def test_infinities_and_text_stay(tmp_path: Path) -> None:
    inf = float("inf")
    for name, text in (("a.csv", "x\n1\ninf\n-Infinity\n"), ("a.jsonl", '{"x":1}\n{"x":"Infinity"}\n{"x":-Infinity}')):
        (tmp_path / name).write_text(text)
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", schema={"x": "float64"}, float64="raw", mode="overwrite")
        assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == [1, inf, -inf]
    for name, text in (("a.csv", "x\n1e400\n"), ("a.jsonl", '{"x": 1e400}\n')):
        (tmp_path / name).write_text(text)
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", schema={"x": "string"}, mode="overwrite")
        assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == ["1e400"]


ID, ROUNDED = 2**53 + 1, 2.0**53


@pytest.mark.parametrize(
    ("name", "text", "feature", "record"),
    [
        ("a.csv", f"n,id\n1,\n2,-{ID}\n3,nan\n", "id", 1),
        ("a.csv", f"id\n0.5\n\n {ID} \n", "id", 2),
        ("a.jsonl", f'{{"id": NaN}}\n\n{{"id": -{ID}}}\n', "id", 1),
        ("a.jsonl", f'{{"id": {ID}}}\n{{"id": "NaN"}}\n', "id", 0),
        ("a.jsonl", f'{{"id": 0.5}}\n{{\n"id":\n{ID}\n}}\n', "id", 1),
        ("a.jsonl", f'{{"n": [{ID}], "x": [{{"y": 0.5}}]}}\n{{"n": [1], "x": [{{"y": {ID}}}]}}\n', "x", 1),
    ],
)
def test_integers_are_not_rounded_because_others_are_floats(
    tmp_path: Path, name: str, text: str, feature: str, record: int
) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(tfr.errors.DecodeError, match=r"rounds this integer beyond 2\*\*53.*as text") as caught:
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", float64="raw")
    assert (caught.value.feature, caught.value.record) == (feature, record)


@pytest.mark.parametrize(("name", "row"), [("a.csv", "{}\n"), ("a.jsonl", '{{"id": {}}}\n')])
def test_integers_of_later_blocks_are_not_rounded(tmp_path: Path, name: str, row: str) -> None:
    header = "id\n" if name == "a.csv" else ""
    (tmp_path / name).write_text(header + "".join(map(row.format, [*[0.5] * 20, ID])))
    with (
        limited(text_block_bytes=24),
        mock.patch.object(csv_files, "_STREAMED_BYTES", 24),
        pytest.raises(tfr.errors.DecodeError, match="rounds this integer") as caught,
    ):
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", float64="raw")
    assert caught.value.record == 20


@pytest.mark.parametrize("number", [str(2**60), "590295810358705700000", "9007199254740993.0", "9.007199254740993e15"])
def test_large_floats_are_read_however_they_are_written(tmp_path: Path, number: str) -> None:
    for name, text in (("a.csv", f"x\n0.5\n{number}\n"), ("a.jsonl", f'{{"x": 0.5}}\n{{"x": {number}}}\n')):
        (tmp_path / name).write_text(text)
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", float64="raw", mode="overwrite")
        assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == [0.5, float(number)]


def test_integers_beside_nan_are_integers_where_that_is_a_missing_value(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"id\n{ID}\nnan\n")
    with pytest.raises(tfr.errors.DecodeError, match=r"if nan is a missing value, name it by .*null_values"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", float64="raw")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"null_values": ["", "nan"]})
    assert tfr.read_table(tmp_path / "a.tfrecord")["id"].to_pylist() == [ID, None]


def test_integers_are_rounded_where_the_column_is_declared_as_floats(tmp_path: Path) -> None:
    for name, text in (("a.csv", f"x\n{ID}\nnan\n"), ("a.jsonl", f'{{"x": {ID}}}\n{{"x": NaN}}\n')):
        (tmp_path / name).write_text(text)
        for declared in ({"source_options": {"schema_overrides": {"x": "float64"}}}, {"schema": {"x": "float64"}}):
            tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", float64="raw", mode="overwrite", **declared)
            assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist()[0] == ROUNDED
