"""Every bad input that docs/faults.md promises something about has a test that carries its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "docs" / "faults.md"

REQUIRED = {*range(1, 18), 19, 20, *range(22, 44), *range(45, 48), *range(49, 57), 61, 62, *range(64, 73)}


def numbers_in_table() -> set[int]:
    numbers: set[int] = set()
    for first, last in re.findall(r"^\| (\d+)(?:–(\d+))? \|", TABLE.read_text(encoding="utf-8"), re.MULTILINE):
        numbers |= set(range(int(first), int(last or first) + 1))
    return numbers


def fault_calls(node: ast.AST) -> Iterator[int]:
    """Numbers in ``pytest.mark.fault(n)``, as decorators, module marks or marks of a parameter."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.func.attr == "fault":
            yield from (a.value for a in part.args if isinstance(a, ast.Constant) and isinstance(a.value, int))


@cache
def marked_numbers() -> set[int]:
    """The numbers of all marks, also in suites of tests that others inherit, which are not in files named test_*."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(TESTS.rglob("*.py")))
    return {number for text in texts if "mark.fault(" in text for number in fault_calls(ast.parse(text))}


@pytest.mark.parametrize("number", sorted(REQUIRED))
def test_fault_has_a_test(number: int) -> None:
    assert number in marked_numbers(), f"no test is marked fault({number})"


def test_marks_name_faults_of_the_table() -> None:
    table = numbers_in_table()
    assert table == set(range(1, 73))
    assert marked_numbers() <= table
