"""Options are made by name; UNSET and None leave a keyword to a dataset, or to its default."""

from __future__ import annotations

from typing import Any

import pytest

from tfrecord_io.base import FrameOptions, ReadOptions
from tfrecord_io.rows.training.iter_options import IterOptions
from tfrecord_io.typing import UNSET, Unset


@pytest.mark.parametrize("value", [None, UNSET])
def test_keywords_that_are_not_stated_have_their_defaults(value: Any) -> None:
    names = ("columns", "on_error", "limit", "threads")
    assert ReadOptions.stated(dict.fromkeys(names, value)) == {}
    assert vars(ReadOptions.from_keywords(dict.fromkeys(names, value))) == vars(ReadOptions())
    assert IterOptions.from_keywords({"batch_size": 2, "shuffle_buffer": value}).shuffle_buffer == 0


def test_none_is_a_value_where_it_is_not_the_default() -> None:
    assert ReadOptions.stated({"compression": None, "progress": UNSET}) == {"compression": None}
    assert IterOptions.from_keywords({"batch_size": 2, "epochs": None}).epochs is None
    with pytest.raises(TypeError, match="sample=None: expected an integer"):
        ReadOptions.from_keywords({"sample": None})
    with pytest.raises(TypeError, match="unexpected keyword argument 'colums'"):
        FrameOptions.stated({"colums": UNSET})


def test_unset_shows_its_name() -> None:
    assert (repr(UNSET), str(UNSET), list(Unset)) == ("UNSET", "UNSET", [UNSET])
