"""JSON of all values is JSON, and one line."""

from __future__ import annotations

import datetime
import json
import math

import pyarrow as pa
import pytest

from tfrecord_io.arrow.output.to_json import json_line, json_value, record_dicts


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
    line = json_line({"x": value})
    assert json.loads(line) == {"x": expected}
    assert line.isascii()
    assert "\n" not in line


def test_rows_without_columns() -> None:
    table = pa.table({"x": [1, 2]}).select([])
    assert record_dicts(table) == table.to_pylist()
