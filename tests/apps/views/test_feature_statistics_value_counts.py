"""Counts of values, compared with a Counter."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.apps.views.feature_statistics import MOST_DISTINCT, ValueCounter

VALUES = st.one_of(
    st.lists(st.sampled_from("abc") | st.text(max_size=3)),
    st.lists(st.binary(max_size=2)),
    st.lists(st.integers(-3, 3)),
    st.lists(st.booleans()),
)


@given(VALUES, st.integers(0, 5))
def test_counts_are_exact(values: list, at: int) -> None:
    counter = ValueCounter()
    whole = pa.array(values, None if values else pa.string())
    counter.add(whole[:at])
    counter.add(whole[at:])
    result = counter.result()
    if result is None:
        assert not values
        return
    assert result.counts == Counter(values)
    assert (result.total, result.distinct, result.exact) == (len(values), len(set(values)), True)
    assert [count for _, count in result.top] == sorted(Counter(values).values(), reverse=True)[:10]


def test_many_values_keep_the_frequent_ones() -> None:
    counter = ValueCounter()
    for i in range(5):
        unique = [f"{i}-{j}" for j in range(MOST_DISTINCT)]
        counter.add(pa.array([*unique, *["often"] * 100]))
    result = counter.result()
    assert result is not None
    assert not result.exact
    assert result.distinct == MOST_DISTINCT
    assert result.top[0] == ("often", 500)
    assert len(result.counts) <= MOST_DISTINCT


def test_long_values_are_not_counted() -> None:
    counter = ValueCounter()
    counter.add(pa.array([b"x" * 10_000]))
    assert counter.result() is None


@pytest.mark.plugins("report")
def test_bytes_are_values_where_python_refuses_to_compare_them_with_text() -> None:
    code = """
from tfrecord_io.apps.views.feature_statistics import ValueCounts
from tfrecord_io.plugins.report.report_html import value_text
print(ValueCounts(5, 3, True, {b"b": 1, b"a": 1, b"c": 3}).top, value_text(b""), value_text(""))
"""
    done = subprocess.run([sys.executable, "-bb", "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "[(b'c', 3), (b'a', 1), (b'b', 1)] b&#x27;&#x27; (empty)\n", done.stderr
