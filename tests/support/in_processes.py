"""What tests have other processes do; a module by its name, for a spawned process to import."""

from __future__ import annotations

import pickle
from typing import Any


def sum_of(records: Any, numbers: list[int]) -> int:
    """The sum of the ids of some records."""
    return sum(records[number]["id"] for number in numbers)


def first_of(pickled: bytes) -> int:
    """The id of the first record of what was pickled."""
    return int(pickle.loads(pickled)[0]["id"])
