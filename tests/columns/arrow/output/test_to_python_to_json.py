"""JSON of all values is JSON, and one line."""

from __future__ import annotations

import datetime
import json
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.columns.arrow.output.to_python import JsonRows, json_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, "NaN"),
        (-math.inf, "-Infinity"),
        (b"", {"base64": ""}),
        ({"a": [b"\x00"]}, {"a": [{"base64": "AA=="}]}),
        (datetime.date(2020, 1, 2), "2020-01-02"),
        ("a\nb\u2028", "a\nb\u2028"),
    ],
)
def test_values(value: object, expected: object) -> None:
    assert json_value(value) == expected
    line = json.dumps(json_value({"x": value}))
    assert json.loads(line) == {"x": expected}
    assert line.isascii()
    assert "\n" not in line


@given(
    rows=st.lists(
        st.fixed_dictionaries(
            {
                "n": st.none() | st.integers(-(2**63), 2**63 - 1),
                "x": st.floats(width=32),
                '100% "s"': st.text(st.characters(exclude_categories=["Cs"])),
                "b": st.none() | st.booleans(),
                "l": st.lists(st.floats(width=32)),
            }
        ),
        max_size=5,
    )
)
def test_lines_by_column_equal_those_by_row(rows: Any) -> None:
    types = [pa.int64(), pa.float32(), pa.string(), pa.bool_(), pa.list_(pa.float32())]
    schema = pa.schema(list(zip(["n", "x", '100% "s"', "b", "l"], types, strict=True)))
    table = pa.Table.from_pylist(rows, schema)
    assert JsonRows(table).json_lines() == [json.dumps(json_value(record)) for record in table.to_pylist()]
    assert JsonRows(table.select([])).json_lines() == ["{}"] * len(rows)
