"""The columns that an expression names, found without a schema."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.base.options.filters import condition_of

f = pc.field
NAMES = st.text(min_size=1, max_size=9)


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        (pc.scalar(True), ()),
        (f("a") > f("b"), ("a", "b")),
        ((f("b") > 1) & (f("a") == "b") & f("b").is_valid(), ("b", "a")),
        (f("s", "x", "y").isin([1, 2]) | f("x").cast(pa.int8()).is_null(), ("s", "x")),
        (pc.if_else(f("flag"), pc.utf8_length(f("text")), f("n")) == 1, ("flag", "text", "n")),
        (f("field_ref") == "nested_field_ref", ("field_ref",)),
    ],
)
def test_each_column_is_found_once(expression: pc.Expression, names: tuple[str, ...]) -> None:
    assert condition_of(expression).columns == names


@given(st.lists(NAMES, min_size=1, max_size=4, unique=True), NAMES)
def test_columns_of_any_name_are_found(names: list[str], value: str) -> None:
    expression = f(names[0]) == value
    for name in names[1:]:
        expression = expression & f(name, value).is_valid()
    assert condition_of(expression).columns == tuple(names)
