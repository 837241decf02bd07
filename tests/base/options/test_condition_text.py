"""Conditions as text: their grammar, and every call that has ``filters=`` takes them."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.options.condition_text import parse_alternatives
from tfrecord_io.base.options.filters import condition_of
from tfrecord_io.base.options.operators import Operand, Operator
from tfrecord_io.base.public_names import SHOWN_IN

TEXT = "label = 1 and day >= DATE '2026-01-01'"
DAYS = [datetime.date(2025, 12, 31), datetime.date(2026, 1, 1), datetime.date(2026, 1, 2), datetime.date(2026, 1, 3)]
NAMES = ["cat", "cow", "dog", "ca"]
TABLE = pa.table({"n": [0, 1, 2, 3], "label": [1, 1, 0, 1], "day": pa.array(DAYS, pa.date32()), "name": NAMES})
KEPT = [1, 3]


def test_groups_of_alternatives_are_not_multiplied() -> None:
    text = " and ".join(f"(n = {number} or label = {number})" for number in range(40))
    assert condition_of(text).text.startswith("(n == 0 or label == 0) and (n == 1 or label == 1) and ")
    assert len(condition_of(text).conjuncts) == 40


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", [[("a", "==", 1)]]),
        (TEXT, [[("label", "==", 1), ("day", ">=", "2026-01-01")]]),
        ("a=1 AND b>2 Or c is null", [[("a", "==", 1), ("b", ">", 2)], [("c", "is null", None)]]),
        ("a=1 and(b=2 or c=3)", [[("a", "==", 1), [[("b", "==", 2)], [("c", "==", 3)]]]]),
        ("(a = 1) and ((b in [1, 2]))", [[[[("a", "==", 1)]], [[[[("b", "in", [1, 2])]]]]]]),
        ("s = 'x and y = 1' and n = 2", [[("s", "==", "x and y = 1"), ("n", "==", 2)]]),
        ("s in ['a and b = 1', 'c'] or n = 1", [[("s", "in", ["a and b = 1", "c"])], [("n", "==", 1)]]),
        ("n in (1, 2) and s in('it''s', \"x\")", [[("n", "in", [1, 2]), ("s", "in", ["it's", "x"])]]),
        ("day not in (DATE '2026-01-01', date '2026-02-01')", [[("day", "not in", ["2026-01-01", "2026-02-01"])]]),
        ("s in [\"date 'x'\", null]", [[("s", "in", ["date 'x'", None])]]),
        ("s = cat and dog", [[("s", "==", "cat and dog")]]),  # plain text
        ("s = cat and dog and n = 1", [[("s", "==", "cat and dog"), ("n", "==", 1)]]),
        ("salt and pepper = 1 and n = 2", [[("salt and pepper", "==", 1), ("n", "==", 2)]]),
        ("at < TIMESTAMP '2026-01-01 10:30:00'", [[("at", "<", "2026-01-01 10:30:00")]]),
        ("s = (x)", [[("s", "==", "(x)")]]),
        ("n between 1 and 5", [[("n", "between", [1, 5])]]),
        ("n = 1 and n BETWEEN 1 AND 5 and s = x", [[("n", "==", 1), ("n", "between", [1, 5]), ("s", "==", "x")]]),
        ("s between 'a and b' and 'c' or n is null", [[("s", "between", ["a and b", "c"])], [("n", "is null", None)]]),
        ("day between DATE '2026-01-01' and DATE '2026-01-31'", [[("day", "between", ["2026-01-01", "2026-01-31"])]]),
        (
            "not null = 1 or(s startswith ca and s IS NOT NULL)",
            [[("not null", "==", 1)], [[[("s", "startswith", "ca"), ("s", "is not null", None)]]]],
        ),
        ("between = 1 and startswith = 2", [[("between", "==", 1), ("startswith", "==", 2)]]),
        ("s = between us and n = 1", [[("s", "==", "between us"), ("n", "==", 1)]]),
        ("s STARTSWITH 'it''s' and n NOT  IN [1]", [[("s", "startswith", "it's"), ("n", "not in", [1])]]),
    ],
)
def test_conditions_are_joined(text: str, expected: list[Any]) -> None:
    assert parse_alternatives(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a = 1 and",
        "a = x or",
        "a = 1 b = 2",
        "day > DATE '2026-13-01'",
        "()",
        "n between 1",
        "n between 1 and",
        "n between 1 and m = 2",
        "(" * 60 + "n = 1" + ")" * 60,
    ],
)
def test_what_is_no_condition_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"filters=.*: (expected|cannot read)"):
        tfr.read_table("absent.tfrecord", filters=text)


def terms() -> st.SearchStrategy[tuple[str, bool]]:
    """Conditions on n and label as text, each with its function."""
    compared = st.tuples(st.sampled_from(["n", "label"]), st.sampled_from(["=", "!=", "<", ">="]), st.integers(-1, 4))
    return compared.map(lambda term: " ".join(map(str, term)))


def joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    parts = st.lists(inner, min_size=2, max_size=3)
    return st.tuples(st.sampled_from([" and ", " or ", " OR "]), parts).map(lambda it: f"({it[0].join(it[1])})")


@given(st.recursive(terms(), joined, max_leaves=6))
def test_and_or_and_parentheses_mean_what_python_means(text: str) -> None:
    python = text.replace(" = ", " == ").replace(" OR ", " or ")
    expected = [row["n"] for row in TABLE.to_pylist() if eval(python, {}, {"n": row["n"], "label": row["label"]})]
    batch = TABLE.to_batches()[0]
    from tfrecord_io.read.row_filter import RowFilter

    mask = RowFilter.for_schema(text, TABLE.schema).mask(batch)
    assert batch.filter(mask)["n"].to_pylist() == expected


LITERALS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text("ab'\" é%[(,=<", max_size=5).filter(lambda text: not text or text == text.strip()),
    st.booleans(),
)


@given(st.data(), st.sampled_from(Operator.ALL), st.sampled_from(["n", "my column", "a/b", "is", "between"]))
def test_the_text_of_a_condition_is_read_as_that_condition(data: st.DataObject, operator: Operator, name: str) -> None:
    values = {
        Operand.NONE: st.none(),
        Operand.VALUE: LITERALS,
        Operand.TEXT: LITERALS.filter(lambda value: isinstance(value, str)),
        Operand.LIST: st.lists(st.integers(), max_size=9) | st.lists(st.text("a'é", max_size=3), max_size=9),
        Operand.PAIR: st.tuples(LITERALS, LITERALS),
    }[operator.operand]
    first, second = ((name, operator.symbol, data.draw(values)) for _ in range(2))
    for filters in ([first], [first, second], [[first], [second]], [[first, second], [second]]):
        condition = condition_of(filters)
        if "…" not in condition.text:  # which is shown in part
            assert condition_of(condition.text).key == condition.key


def numbers(table: pa.Table) -> list[int]:
    return list(table["n"].to_pylist())


def of_arrays(batches: Any) -> list[int]:
    return [n for batch in batches for n in batch["n"].tolist()]


def by_pandas() -> list[int]:
    tfr.register_pandas()
    return list(pd.read_tfrecord("a.tfrecord", filters=TEXT)["n"])  # type: ignore[attr-defined]


def by_number() -> list[int]:
    with tfr.open_random("a.tfrecord") as records:
        return numbers(records.select(TEXT)[:])


def converted() -> list[int]:
    tfr.convert("a.tfrecord", "b.tfrecord", filters=TEXT)
    return numbers(tfr.read_table("b.tfrecord"))


def converted_from(suffix: str) -> list[int]:
    tfr.convert("a.tfrecord", f"b.{suffix}")
    tfr.convert(f"b.{suffix}", "c.tfrecord", filters=TEXT)
    return numbers(tfr.read_table("c.tfrecord"))


def deleted() -> list[int]:
    tfr.delete("a.tfrecord", filters=TEXT)
    return [n for n in range(4) if n not in numbers(tfr.read_table("a.tfrecord"))]


def copied() -> list[int]:
    tfr.write_tfrecord(TABLE, "parts/", partition_by=["label", "day", "name"])
    tfr.copy("parts/", "copy/", filters=TEXT)
    return sorted(numbers(tfr.read_table("copy/")))


CALLS: dict[str, Callable[[], list[int]]] = {
    "read_table": lambda: numbers(tfr.read_table("a.tfrecord", filters=TEXT)),
    "read_tfrecord": lambda: list(tfr.read_tfrecord("a.tfrecord", filters=TEXT)["n"]),
    "open_reader": lambda: numbers(tfr.open_reader("a.tfrecord", filters=TEXT).read_all()),
    "read_arrays": lambda: of_arrays([tfr.read_arrays("a.tfrecord", filters=TEXT)]),
    "iter_arrays": lambda: of_arrays(tfr.iter_arrays("a.tfrecord", batch_size=3, columns=["n"], filters=TEXT)),
    "dataset": lambda: numbers(tfr.dataset("a.tfrecord", filters=TEXT).to_table()),
    "describe": lambda: KEPT if tfr.describe("a.tfrecord", filters=TEXT).records == len(KEPT) else [],
    "convert": converted,
    "delete": deleted,
    "copy": copied,
}
OTHERS: dict[str, Callable[[], list[int]]] = {
    "Dataset.filter": lambda: numbers(tfr.dataset("a.tfrecord").filter(TEXT).to_table()),
    "DatasetPiece.filter": lambda: numbers(tfr.dataset("a.tfrecord").pieces(1)[0].filter(TEXT).read()),
    "a dataset that is read": lambda: numbers(tfr.read_table(tfr.dataset("a.tfrecord"), filters=TEXT)),
    "batches of a dataset": lambda: of_arrays(
        tfr.dataset("a.tfrecord").filter(TEXT).select(["n"]).iter_arrays(batch_size=3)
    ),
    "pandas": by_pandas,
    "records by number": by_number,
    "convert from Parquet": lambda: converted_from("parquet"),
    "polars": lambda: tfr.dataset("a.tfrecord").filter(TEXT).to_polars().collect()["n"].to_list(),
    "duckdb": lambda: [
        n for (n,) in tfr.dataset("a.tfrecord").filter(TEXT).to_duckdb().project("n").order("n").fetchall()
    ],
    "hf": lambda: list(tfr.dataset("a.tfrecord").filter(TEXT).to_hf()["n"]),
}


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        "name startswith 'c' and label is not null and day between DATE '2026-01-01' and DATE '2026-01-31'",
        "name not in ('cat', 'dog') and label between 1 and 3",
    ],
)
@pytest.mark.parametrize("call", [*CALLS, *OTHERS])
def test_every_call_takes_text(call: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.TEXT", text)
    for library in ("polars", "duckdb"):
        if call == library:
            pytest.importorskip(library)
    if call == "hf":
        pytest.importorskip("datasets")
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord(TABLE, "a.tfrecord")
    assert {**CALLS, **OTHERS}[call]() == KEPT


def test_no_call_with_filters_is_left_out() -> None:
    def calls() -> Iterator[tuple[str, Any]]:
        for module in (tfr, *(getattr(tfr, name) for name in SHOWN_IN)):
            for name in getattr(module, "__all__", dir(module)):
                if inspect.isfunction(call := getattr(module, name)):
                    yield name, call

    assert {name for name, call in calls() if "filters" in inspect.signature(call).parameters} == {*CALLS}
