"""Braces expand as in shells."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.store.paths.expand_braces import expand_braces

words = st.text("ab", min_size=1, max_size=3)


@given(st.lists(words, min_size=2, max_size=4), st.lists(words, min_size=2, max_size=4), words)
def test_braces_are_the_product_of_their_choices(first, second, middle):
    pattern = "{" + ",".join(first) + "}" + middle + "{" + ",".join(second) + "}"
    assert expand_braces(pattern) == [a + middle + b for a in first for b in second]


@given(st.text("ab{},.0129-", max_size=12))
def test_brace_expansion_takes_any_text(text):
    expanded = expand_braces(text)
    assert expanded
    assert expanded == [text] or all("{" not in e or "{" in text for e in expanded)


@given(st.integers(0, 2000), st.integers(0, 50), st.integers(1, 6))
def test_ranges_keep_their_zeros(first, more, width):
    expanded = expand_braces(f"{{{first:0{width}d}..{first + more:0{width}d}}}")
    assert expanded == [f"{i:0{width}d}" for i in range(first, first + more + 1)]


@pytest.mark.parametrize(
    ("pattern", "expanded"),
    [
        ("{a}", ["{a}"]),
        ("{}", ["{}"]),
        ("{a,b", ["{a,b"]),
        ("a}{b,c}", ["a}b", "a}c"]),
        ("{{a,b}", ["{a", "{b"]),
        ("{x}{a,b}", ["{x}a", "{x}b"]),
        ("{a,{b,c}d}", ["a", "bd", "cd"]),
        ("{3..1}", ["3", "2", "1"]),
        ("{a,}x", ["ax", "x"]),
    ],
)
def test_braces_as_in_a_shell(pattern, expanded):
    assert expand_braces(pattern) == expanded


@pytest.mark.parametrize("pattern", ["{0..99999999999}", "{0..999}" * 3])
def test_too_large_braces_are_refused(pattern):
    with pytest.raises(ValueError, match="more than 1,000,000"):
        expand_braces(pattern)


@pytest.mark.parametrize("pattern", ["{" * 3000, "{" * 3000 + "a" + "}" * 3000, "{1..1}" * 3000, "{" * 100_000])
def test_many_braces(pattern):
    assert expand_braces(pattern) == [pattern.replace("{1..1}", "1")]


def test_choices_nest_at_most_100_deep():
    assert len(expand_braces("{a," * 100 + "b" + "}" * 100)) == 101
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        expand_braces("{a," * 3000 + "b" + "}" * 3000)
