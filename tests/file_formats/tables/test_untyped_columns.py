"""Integers that a float64 would round: the neighbours of int64's limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.file_formats.tables.untyped_columns import may_be_rounded, refuse_rounding
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
