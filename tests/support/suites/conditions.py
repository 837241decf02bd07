"""Conditions on rows, and files with the columns that they name."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import tfrecord_io as tfr

UTC = datetime.UTC
ROWS = 60
VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "n": (pa.int64(), [None, 0, 1, 2, -5, 2**62]),
    "small": (pa.int8(), [None, 1, 2, 127]),
    "x": (pa.float32(), [None, float("nan"), 0.0, -1.5, float("inf")]),
    "text": (pa.string(), [None, "", "a", "b", "é"]),
    "raw": (pa.binary(), [None, b"", b"\xff", b"a"]),
    "flag": (pa.bool_(), [None, True, False]),
    "list": (pa.list_(pa.int64()), [None, [], [1], [1, 2]]),
    "time": (pa.timestamp("ms", "UTC"), [None, *(datetime.datetime(2020, 1, day, tzinfo=UTC) for day in (1, 2))]),
    "team": (pa.dictionary(pa.int8(), pa.string()), [None, "red", "blue"]),
}
f = pc.field


def neighbours(value: Any) -> list[Any]:
    """Values next to one, which the type of its column may not have: a float64 between two of float32, 128 of int8."""
    match value:
        case bool():
            return []
        case int():
            return [value - 1, value + 1]
        case float():
            return [float(np.nextafter(value, end)) for end in (-np.inf, np.inf)]
        case str():
            return [value[:-1], value + "\0"]
        case bytes():
            return [value[:-1], value + b"\0"]
        case datetime.datetime():
            return [value + sign * datetime.timedelta(microseconds=1) for sign in (-1, 1)]
    raise TypeError(type(value))


def literals(name: str) -> list[Any]:
    """The values of a column, and their neighbours."""
    values = [value for value in VALUES[name][1] if value is not None]
    return [*values, *(near for value in values for near in neighbours(value))]


def compared(name: str) -> st.SearchStrategy[pc.Expression]:
    """Comparisons of a column with one of its values, or with what is next to one."""
    values = st.sampled_from(literals(name))
    operators = ["__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"]
    if name in ("flag", "team"):
        operators = operators[:2]
    return st.builds(lambda operator, value: getattr(f(name), operator)(value), st.sampled_from(operators), values)


TERMS = st.one_of(
    *(compared(name) for name in VALUES if name != "list"),
    st.sampled_from([f(name).is_null(nan_is_null=nan) for name in VALUES for nan in (False, name == "x")]),
    st.sampled_from([f(name).is_valid() for name in VALUES]),
    st.sampled_from([f("n").isin([1, 2]), f("n").isin([0, None]), f("text").isin(["a", "é"]), f("raw").isin([b"a"])]),
    st.sampled_from([f("x").is_nan(), ~f("flag"), f("flag"), pc.scalar(True), pc.scalar(None).cast(pa.bool_())]),
    st.sampled_from(
        [f("small").cast("float64") > 1.5, f("n").cast("string") == "1", f("small").cast("int32") + 1 == f("n")]
    ),
    st.sampled_from([pc.list_value_length(f("list")) > 0, pc.utf8_length(f("text")) == 1, f("n") > 0.5]),
)


def join_terms(terms: st.SearchStrategy[pc.Expression]) -> st.SearchStrategy[pc.Expression]:
    """Up to four terms, joined by and, or and not."""
    return st.recursive(
        terms,
        lambda inner: st.one_of(
            st.builds(lambda a, b: a & b, inner, inner),
            st.builds(lambda a, b: a | b, inner, inner),
            inner.map(lambda a: ~a),
        ),
        max_leaves=4,
    )


CONDITIONS = join_terms(TERMS)
ORDERS = ["<", ">", "<=", ">="]
TUPLES = st.lists(
    st.one_of(
        *(
            st.tuples(st.just(name), st.sampled_from(["=", "==", "!=", *ORDERS]), st.sampled_from(literals(name)))
            for name in ("n", "small", "text")
        ),
        st.tuples(st.just("x"), st.sampled_from(ORDERS), st.just(0.0)),  # others are rounded, as pandas rounds them
        st.tuples(st.just("text"), st.sampled_from(["in", "not in"]), st.sampled_from([["a"], {"a", "b"}, ("é",)])),
    ),
    min_size=1,
    max_size=3,
)


def condition_table() -> pa.Table:
    """The columns that conditions name."""
    columns = {
        name: pa.array([values[(7 * row + row // 5 + at) % len(values)] for row in range(ROWS)], type_)
        for at, (name, (type_, values)) in enumerate(VALUES.items())
    }
    return pa.table(columns)


def condition_files(folder: Path, **keywords: Any) -> list[Path]:
    """Three files, one of them compressed, of 20 rows each."""
    table = condition_table()
    paths = [folder / "a.tfrecord", folder / "b.tfrecord.gz", folder / "c.tfrecord"]
    for at, path in enumerate(paths):
        tfr.write_tfrecord(table.slice(20 * at, 20), path, **keywords)
    return paths
