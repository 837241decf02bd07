"""What tests have other processes do; a module by its name, for a spawned process to import."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any


def in_spawned_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function of this module gives in a process that was spawned, not forked."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def table_of_scan(pickled: bytes) -> list[dict[str, Any]]:
    """The rows that a pickled scan reads."""
    rows: list[dict[str, Any]] = pickle.loads(pickled).open().read_all().to_pylist()
    return rows


def sum_of(records: Any, numbers: list[int]) -> int:
    """The sum of the ids of some records."""
    return sum(records[number]["id"] for number in numbers)


def first_of(pickled: bytes) -> int:
    """The id of the first record of what was pickled."""
    return int(pickle.loads(pickled)[0]["id"])
