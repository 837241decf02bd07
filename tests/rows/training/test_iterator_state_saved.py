"""States that an earlier version saved go on with the same batches; rows by number stay in their order."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from rounds import COMPLETE

FOLDER = Path(__file__).parents[2] / "data" / "states"
SPEC = importlib.util.spec_from_file_location("states_make", FOLDER / "make.py")
assert SPEC is not None
assert SPEC.loader is not None
make = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make)
SAVED = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.json"))]
SOURCES = {case["name"]: case["source"] for saved in SAVED for cases in saved.values() for case in cases}


def cases_of(kind: str, name: str) -> list[Any]:
    return [case for saved in SAVED for case in saved[kind] if case["name"] == name]


def without_state(found: dict[str, Any]) -> dict[str, Any]:
    return {key: found[key] for key in ("next", "batches", "digest")}


@pytest.mark.parametrize("name", SOURCES)
def test_saved_states_go_on(name: str) -> None:
    for case in cases_of("states", name):
        data = make.opened(case["source"], case["keywords"])
        for saved in case["positions"][:: 1 if COMPLETE else 3]:
            batches = data.iter_arrays(**case["keywords"], state={**case["shared"], **saved["state"]})
            found = make.followed(make.iter_on(batches))
            assert found == without_state(saved), (case["keywords"], saved["state"])


@pytest.mark.parametrize("name", SOURCES)
def test_rows_by_number_have_their_order(name: str) -> None:
    found = list(make.numbered_cases(SOURCES[name]))
    for case in cases_of("numbered", name):
        assert {key: case[key] for key in ("keywords", "next", "batches", "digest")} in found
