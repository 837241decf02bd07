"""Every row of dev/faults.md has a test that carries its number, on both engines where engines differ."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parents[1]
TABLE = TESTS.parent / "dev" / "faults.md"

NUMBERS = range(1, 74)
# Why a row need not be shown on both engines: none takes part.
WITHOUT_ENGINE = {
    54: "arrays of objects and bad headers are refused when the array file is opened, before a value is encoded",
    55: "names in a manifest are refused while the path is resolved, before a file is opened",
    58: "the command line escapes what it prints, which the engine has returned before",
    60: "what is printed was returned by the engine before the pipe is written to",
    64: "the interpreter handles signals between two calls of an engine, or within the reference one, which is Python",
    67: "a killed process calls nothing: the target depends on the renames before, which no engine makes",
    68: "the file that is renamed last wins, whatever encoded it",
}
ENGINE_FIXTURES = {"engine"}


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


def marked_in(tree: ast.Module) -> Iterator[tuple[int, bool]]:
    """The numbers of a file, each with whether its test runs on both engines."""
    lists = {  # of parameters, by name
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    of_file = [*fault_calls(lists["pytestmark"])] if "pytestmark" in lists else []
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test_"):
            continue
        names = {argument.arg for argument in node.args.args}
        marks = [number for decorator in node.decorator_list for number in fault_calls(decorator)]
        used = {
            part.id for decorator in node.decorator_list for part in ast.walk(decorator) if isinstance(part, ast.Name)
        }
        of_lists = [number for name in used & {*lists} for number in fault_calls(lists[name])]
        yield from ((number, bool(names & ENGINE_FIXTURES)) for number in (*of_file, *marks, *of_lists))


@cache
def marked_numbers() -> dict[int, bool]:
    """The numbers of all tests, also in suites that others inherit; whether one of them runs on both engines."""
    numbers: dict[int, bool] = {}
    for path in sorted(TESTS.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.fault(" in text:
            for number, on_both in marked_in(ast.parse(text)):
                numbers[number] = on_both or numbers.get(number, False)
    return numbers


def test_each_fault_has_a_test() -> None:
    marked = marked_numbers()
    assert [number for number in NUMBERS if number not in marked] == [], "no test is marked fault(number)"
    exempt = {number for number in NUMBERS if number in WITHOUT_ENGINE}
    assert {number for number in NUMBERS if not marked[number]} == exempt, "shown without the fixture `engine`"


def test_marks_name_faults_of_the_table() -> None:
    assert numbers_in_table() == {*NUMBERS}
    assert {*marked_numbers()} <= {*NUMBERS}
