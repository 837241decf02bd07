"""The notation of ``split=``: what it means, and what is refused."""

from __future__ import annotations

import re
import string
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rounds import rounds
from tfrecord_io.base.options.split_slices import Split, parse_split

LENGTHS = {"train": (21, 20, 21, 20, 21), "test": (3, 0, 4)}


def ranges(value: object) -> list[tuple[str, int, int]]:
    return list(parse_split(value).ranges(LENGTHS))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("train", [("train", 0, 103)]),
        ("all", [("train", 0, 103), ("test", 0, 7)]),
        ("test + train[:1]", [("test", 0, 7), ("train", 0, 1)]),
        ("test[50%:]", [("test", 4, 7)]),  # 3.5 is rounded to the even number
        ("test[:-50%]", [("test", 0, 3)]),
        ("test[10%:90]", [("test", 1, 6)]),  # one unit is that of both
        ("test[1shard]", [("test", 3, 3)]),
        ("train[-1shard]", [("train", 82, 103)]),
        ("train[1_0:]", [("train", 10, 103)]),
    ],
)
def test_meaning(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert ranges(text) == expected


@pytest.mark.parametrize("text", ["train[:104]", "train[-7shard:]", "test[5:3]", "none[:1]"])
def test_an_error_states_the_slice_as_it_was_passed(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"split='{text}'")):
        ranges(text)


def test_a_read_instruction_of_tfds_is_read_by_its_attributes() -> None:
    percent = SimpleNamespace(split_name="train", from_=50, to=None, unit="%", rounding="pct1_dropremainder")
    closest = SimpleNamespace(split_name="test", from_=None, to=-2, unit="abs", rounding="closest")
    assert ranges(SimpleNamespace(left=percent, right=closest)) == [("train", 50, 103), ("test", 0, 5)]
    percent.split_name = "test"
    with pytest.raises(ValueError, match="at least 100 rows"):
        ranges(percent)


@pytest.mark.parametrize("value", [1, b"train", ["train"], SimpleNamespace(split_name="a", from_="x", to=1)])
def test_other_values_are_type_errors(value: object) -> None:
    with pytest.raises((TypeError, AttributeError), match=r"split=|no attribute"):
        parse_split(value)


@given(st.sampled_from(["train", "test"]), st.integers(0, 7), st.integers(0, 7), st.booleans(), st.booleans())
def test_negative_boundaries_count_from_the_end(name: str, a: int, b: int, x: bool, y: bool) -> None:
    first, last = sorted((a, b))
    count = sum(LENGTHS[name])
    begin = first - count if x and first < count else first
    end = last - count if y and last < count else last
    assert ranges(f"{name}[{begin}:{end}]") == [(name, first, last)]


@given(st.integers(0, 100), st.integers(0, 100), st.integers(0, 100))
def test_neighbouring_percentages_share_no_row_and_leave_none_out(a: int, b: int, c: int) -> None:
    cuts = [0, *sorted((a, b, c)), 100]
    text = "+".join(f"train[{begin}%:{end}%]" for begin, end in pairwise(cuts))
    found = ranges(text)
    assert found[0][1] == 0
    assert found[-1][2] == 103
    assert all(left[2] == right[1] for left, right in pairwise(found))


def test_any_text_has_a_meaning_or_a_clear_error() -> None:
    """Mutants of valid text, with a fixed seed."""
    import random

    rng = random.Random(5)
    seeds = ["train[:80%]+test", "train[2shard:-1shard]", "test[-3:]", "all", "train[12.5%:50%]"]
    letters = string.printable + "[]:%+-.0123456789shard٣ \x00𐀀"
    for _ in range(rounds(100_000)):
        text = list(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text) + 1)
            text[at : at + rng.randint(0, 2)] = rng.choices(letters, k=rng.randint(0, 3))
        try:
            split = parse_split("".join(text))
            found = list(split.ranges(LENGTHS))
        except ValueError as error:
            assert str(error).startswith("split="), error  # noqa: PT017
            continue
        assert isinstance(split, Split)
        assert all(0 <= begin <= end <= sum(LENGTHS[name]) for name, begin, end in found)
        assert list(parse_split(str(split)).ranges(LENGTHS)) == found
