"""The size of the package, and what the usual calls enter, stay within budgets.toml."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.format.dtypes import NUMPY_1

TESTS = Path(__file__).parent
BUDGETS: dict[str, Any] = tomllib.loads((TESTS / "budgets.toml").read_text(encoding="utf-8"))
_SPEC = importlib.util.find_spec("tfrecord_io")
assert _SPEC is not None
assert _SPEC.origin is not None
PACKAGE = Path(_SPEC.origin).parent
RAISED = "{} is {}, the budget {}: see docs/decisions/budgets.md"


def package_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "tfrecord_io"


@pytest.fixture(scope="module")
def sizes() -> dict[str, Counter[str]]:
    found: dict[str, Counter[str]] = {"files": Counter(), "lines": Counter()}
    for path in PACKAGE.rglob("*.py"):
        found["files"][package_of(path)] += 1
        found["lines"][package_of(path)] += len(path.read_text(encoding="utf-8").splitlines())
    return found


@pytest.mark.parametrize("what", ["files", "lines"])
def test_packages(what: str, sizes: dict[str, Counter[str]]) -> None:
    assert sizes[what].keys() == BUDGETS["packages"].keys()
    for package, count in sizes[what].items():
        budget = BUDGETS["packages"][package][what]
        assert count <= budget, RAISED.format(f"{what} of {package}", count, budget)


def test_public_names() -> None:
    assert len(tfr.__all__) <= BUDGETS["public_names"]


@pytest.mark.skipif(NUMPY_1, reason="the budgets are those of the newest libraries")
def test_functions_and_modules_that_calls_enter() -> None:
    program = [sys.executable, TESTS / "support" / "entered.py"]
    counts = json.loads(subprocess.run(program, capture_output=True, text=True, check=True).stdout)
    assert counts.keys() == BUDGETS["entered"].keys()
    for call, found in counts.items():
        for what, count in found.items():
            budget = BUDGETS["entered"][call][what]
            assert count <= budget, RAISED.format(f"{what} that {call} enters", count, budget)
