"""``--where``: what is a condition, and the rows that it keeps."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as group
from tfrecord_io.base.options.condition_text import parse_condition


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("label == 3", ("label", "==", 3)),
        ("label=3", ("label", "==", 3)),
        ("label/text != cat and dog", ("label/text", "!=", "cat and dog")),
        (" my column >= -1.5 ", ("my column", ">=", -1.5)),
        ("a<b", ("a", "<", "b")),
        ('x in ["a", "b"]', ("x", "in", ["a", "b"])),
        ("x not in[1]", ("x", "not in", [1])),
        ("index == 1", ("index", "==", 1)),
        ("within in [1]", ("within", "in", [1])),
        ("ok == true", ("ok", "==", True)),
        ('s == "=="', ("s", "==", "==")),
        ("c is null", ("c", "is null", None)),
        (" my column  IS NOT  NULL ", ("my column", "is not null", None)),
        ("c != null", ("c", "!=", None)),
        ("c == NULL", ("c", "==", None)),
        ("path == ~/a=b", ("path", "==", "~/a=b")),
        ("c in [null, 3]", ("c", "in", [None, 3])),
        ("s == this is null", ("s", "==", "this is null")),
        ("tags contains cat", ("tags", "contains", "cat")),
        ("boxes contains 1.5", ("boxes", "contains", 1.5)),
        ("contains == 1", ("contains", "==", 1)),
        ("day < '2024-05-02'", ("day", "<", "2024-05-02")),
        ("s = ''", ("s", "==", "")),
        ("s = 'O''Hara \\ \"x\"'", ("s", "==", 'O\'Hara \\ "x"')),
        ("""s in ["it's", 'a', 1]""", ("s", "in", ["it's", "a", 1])),
        ("n == '3'", ("n", "==", "3")),
        ("contains contains contains", ("contains", "contains", "contains")),
    ],
)
def test_conditions(text: str, expected: tuple[str, str, Any]) -> None:
    assert parse_condition(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "== 3",
        "a ==",
        "x in 3",
        "x == [1]",
        "x < null",
        'x == {"a": 1}',
        "xin[1]",
        "is null",
        "x contains",
        "x contains [1]",
        "x contains null",
    ],
)
def test_what_is_not_a_condition(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_condition(text)


@given(
    column=st.text("abc/_-. ", min_size=1).filter(lambda name: name == name.strip()),
    operator=st.sampled_from(["==", "!=", "<", "<=", ">", ">="]),
    value=st.integers() | st.booleans() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
)
def test_values_are_json(column: str, operator: str, value: Any) -> None:
    assert parse_condition(f"{column} {operator} {json.dumps(value)}") == (column, operator, value)


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("day <> 3", ("day", "!=", 3)),
        ("flag = TRUE", ("flag", "==", True)),
        ("flag != False", ("flag", "!=", False)),
        ("day = NULL", ("day", "==", None)),
    ],
)
def test_operators_and_constants_of_sql(text: str, condition: tuple[str, str, Any]) -> None:
    assert parse_condition(text) == condition


@given(
    operator=st.sampled_from(["=>", "=<", "=!", "!==", "<=>", ">>", "<<", "=~", "! ="]),
    value=st.integers().map(str) | st.sampled_from(["x", "2024-05-02", "'x'", "null"]),
)
def test_no_part_of_an_unknown_operator_becomes_text(operator: str, value: str) -> None:
    """``day << x`` would be all days before ``< x``."""
    with pytest.raises(ValueError, match="is null, is not null"):
        parse_condition(f"day {operator} {value}")


@pytest.mark.parametrize("operator", ["! =", "< =", ">  =", "= ="])
def test_an_operator_with_a_space_in_it_is_refused(operator: str) -> None:
    """``day ! = 0`` was a column named ``day ! ``."""
    with pytest.raises(ValueError, match=f"cannot read '{operator}': write '{''.join(operator.split())}'"):
        parse_condition(f"day {operator} 0")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": [1, 2, 3, 4], "s": ["a", "b", "a", "c"]}, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


def test_commands_keep_the_rows(run, path: Path, tmp_path: Path) -> None:
    lines = run("cat", path, "--where", "n > 1", "--where", 's in ["a", "b"]').stdout.splitlines()
    assert [json.loads(line)["n"] for line in lines] == [2, 3]
    assert [row["n"] for row in json.loads(run("head", path, "-n", "1", "--where", "s == c", "--json").stdout)] == [4]
    assert json.loads(run("describe", path, "--where", "s == a", "--json").stdout)["records"] == 2
    for target in ("b.tfrecord", "b.csv", "b.jsonl", "b.parquet", "b.csv.gz", "b.npy"):
        column = ("-c", "n") if target == "b.npy" else ()
        done = run("convert", path, tmp_path / target, "--where", "n == 3", "--json", *column)
        assert (done.exit_code, json.loads(done.stdout)["records"]) == (0, 1)
    assert tfr.read_table(tmp_path / "b.tfrecord").to_pylist() == [{"n": 3, "s": "a"}]
    for source in ("b.csv", "b.jsonl"):
        for where, count in (("n == 3", 1), ("n == 4", 0)):
            done = run("convert", tmp_path / source, tmp_path / "c.tfrecord", "--where", where, "-c", "s")
            assert done.exit_code == 0
            assert tfr.count(tmp_path / "c.tfrecord") == count
    for where in ("n", "z == 1", 's in ["a"', "n == a"):
        refused = run("convert", path, tmp_path / "d.tfrecord", "--where", where)
        assert refused.exit_code in (1, 2), where
        assert not (tmp_path / "d.tfrecord").exists()


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("cat", 'Only rows that meet a condition, such as "label == 3"'),
        ("delete", 'Remove rows that meet a condition, such as "label == 3"'),
        ("copy", 'Only partition folders (day=1/) that meet a condition, such as "day >= 5"'),
    ],
)
def test_the_help_says_what_it_selects_with_an_example(command: str, words: str) -> None:
    option = next(param for param in group.commands[command].params if param.name == "filters")
    assert isinstance(option, click.Option)
    assert (option.help or "").startswith(words)


@pytest.mark.parametrize(
    "where",
    [
        *("n == 'x", "s == it's", "s = 'x' and n", 's == "x" and', "s in [a, b]"),
        *("s >= w AND s << x", "s == x OR n>>1", "s == w, s == x"),
    ],
)
def test_values_that_are_no_plain_text_are_a_usage_error(run: Any, tmp_path: Path, where: str) -> None:
    tfr.write_tfrecord({"n": [1], "s": ["x"]}, tmp_path / "a.tfrecord")
    shown = run("head", tmp_path / "a.tfrecord", "--where", where)
    assert shown.exit_code == 2
    assert "quote text as in" in shown.output or "expected a list" in shown.output


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n is null", [1]),
        ("n is not null", [0, 2]),
        ("n in [null, 5]", [1, 2]),
        ("n < 99999999999999999999", [0, 2]),
        ("price > 0.1", [1]),
        ("price == 0.1", [0]),
        ("tags contains cat", [0, 2]),
        ("n between 3 and 4.5", [0]),
        ("price BETWEEN 0.1 AND 0.25", [0, 1]),
        ("name startswith ca", [1, 2]),
        ("name startswith 'cat' and n is not null", [2]),
    ],
)
def test_missing_values_lists_and_any_number(run: Any, tmp_path: Path, where: str, rows: list[int]) -> None:
    prices = [Decimal("0.10"), Decimal("0.25"), None]
    table = {"row": [0, 1, 2], "n": [3, None, 5], "price": prices, "tags": [["cat"], None, ["dog", "cat"]]}
    table["name"] = ["Cat", "ca", "cat"]
    tfr.write_tfrecord(pa.table(table), tmp_path / "a.tfrecord")
    lines = run("cat", tmp_path / "a.tfrecord", "--where", where, "-c", "row").stdout.splitlines()
    assert [json.loads(line)["row"] for line in lines] == rows
