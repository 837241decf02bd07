"""Tests of the hints for the command in all modules: they have its words, and no Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import tfrecord_io
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.apps.cli.command_group import ADVICE_OF_OPTION
from tfrecord_io.base import OnDamage

PACKAGE = Path(tfrecord_io.__file__).parent
PYTHON = re.compile(
    r"--schema\b(?! FILE)|--[a-z-]+ [\[{]|[=:] ?[\[{(]|\b[a-z_]+=(?:$|[\s'\",;)])|\btfr\.\w+|schema_overrides="
)
IN_PYTHON = "in Python"  # the command has no option for it: the hint says so
NOT_FOR_THE_COMMAND = {("apps", "adapters"), ("apps", "tf_compat"), ("plugins", "engines"), ("rows", "training")}
OF_ARGUMENTS = {  # modules whose hints are about objects of Python, arrays for training, or the text of a type
    "columns/arrow/input/from_xarray.py",
    "columns/schema/image_form.py",
    "plugins/tensorflow/to_elwc.py",
    "rows/arrays/image_columns.py",
    "rows/arrays/stacked_or_ragged.py",
}


def options_of(commands: click.Command) -> set[str]:
    found = {name for option in commands.params for name in (*option.opts, *option.secondary_opts)}
    if isinstance(commands, click.Group):
        context = click.Context(commands)
        for name in commands.list_commands(context):
            below = commands.get_command(context, name)
            assert below is not None
            found |= options_of(below)
    return found


def assigned_hints(tree: ast.AST) -> Iterator[ast.expr]:
    """The values of keywords and variables whose names end in "cli"."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from (node.value for target in node.targets if is_hint(getattr(target, "id", "")))
        elif isinstance(node, ast.AugAssign | ast.keyword):
            name = getattr(node.target, "id", "") if isinstance(node, ast.AugAssign) else node.arg
            if is_hint(name or ""):
                yield node.value


def is_hint(name: str) -> bool:
    return name.lower().endswith("_cli")


def literal_text(node: ast.expr) -> str:
    """The text of a literal, with the source of the expressions in an f-string."""
    if isinstance(node, ast.JoinedStr):
        return "".join(map(literal_text, node.values))
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    return "\N{HORIZONTAL ELLIPSIS}"


def hints() -> dict[str, str]:
    """The literal texts of hints for the command, by the place where each stands."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for value in assigned_hints(ast.parse(path.read_text("utf-8"))):
            literals = [n for n in ast.walk(value) if isinstance(n, ast.JoinedStr | ast.Constant)]
            for literal in literals:
                found[f"{path.relative_to(PACKAGE)}:{literal.lineno}:{literal.col_offset}"] = literal_text(literal)
    return found


def test_hints_for_the_command_are_not_in_python() -> None:
    texts = hints()
    assert len(texts) > 100
    assert {place: text for place, text in texts.items() if PYTHON.search(text) and IN_PYTHON not in text} == {}


@pytest.mark.plugins("vision", "tensorflow")  # which add options
def test_hints_for_the_command_name_options_that_exist() -> None:
    options = options_of(command)
    named = {place: set(re.findall(r"--[a-z][a-z0-9-]*", text)) - options for place, text in hints().items()}
    assert {place: missing for place, missing in named.items() if missing} == {}


@pytest.mark.parametrize(
    "text", ["--columns ['*', '!x']", "--type {'x': 'int64'}", "columns=['x']", "pass schema=", "tfr.list_()"]
)
def test_python_is_recognized(text: str) -> None:
    assert PYTHON.search(text)


def hints_without_another() -> dict[str, str]:
    """The literal texts of hints and warnings that the command shows, too, as they have no form of its own."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE)
        if name.parts[:2] in NOT_FOR_THE_COMMAND or name.as_posix() in OF_ARGUMENTS:
            continue
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(call, ast.Call):
                for literal in (n for value in shown(call) for n in ast.walk(value)):
                    if isinstance(literal, ast.JoinedStr | ast.Constant):
                        found[f"{name}:{literal.lineno}"] = literal_text(literal)
    return found


def shown(call: ast.Call) -> list[ast.expr]:
    """The hint of an error, or the text of a warning, unless the call has one for the command as well."""
    name = getattr(call.func, "id", getattr(call.func, "attr", ""))
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if name in ("warn", "set_hint"):
        return call.args[:1] if len(call.args) < (3 if name == "warn" else 2) else []
    return [keywords["hint"]] if "hint" in keywords and "hint_cli" not in keywords else []


def test_hints_that_the_command_shows_too_are_not_in_python() -> None:
    texts = hints_without_another()
    assert len(texts) > 100
    assert {place: text for place, text in texts.items() if PYTHON.search(text) and IN_PYTHON not in text} == {}


def test_commands_without_the_option_leave_its_advice_out() -> None:
    assert OnDamage.ADVICE_CLI.startswith(ADVICE_OF_OPTION)
