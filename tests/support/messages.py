"""Find keywords of calls and options of commands in messages."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

import tfrecord_io as tfr
from border import PUBLIC, public
from tfrecord_io.base.closing import Published

PACKAGE = Path(inspect.getfile(tfr)).parent

# float64="raw", mode='overwrite', limit=5, column_encoding={"x": "raw"}, columns=; not day=1/a.tfrecord, or 'a=1'
_MENTION = re.compile(
    r"""(?<![\w./'"\\-])(?P<name>[a-z_][a-z_0-9]*)=(?:"""
    r"""(?:"[^"]*"|'[^']*'|True\b|False\b|None\b|-?\d+\b|\{[^{}]*\}|\[[^\][]*\]|\([^()]*\))(?![\w/])"""
    r"""|(?![^\s,;:.)]))"""
)
_CALL = re.compile(r"[\w.]+\((?:[^()]|\([^()]*\))*=(?:[^()]|\([^()]*\))*\)")  # with keywords of its own


def _parameters(value: object) -> set[str]:
    try:
        return set(inspect.signature(value).parameters)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return set()


KEYWORDS = {name: _parameters(public(name)) for name in PUBLIC if callable(public(name))}
ALL_KEYWORDS = set().union(*KEYWORDS.values())


def mentions(text: str) -> list[str]:
    """The keywords that a text names as those of the caller."""
    calls = [call.span() for call in _CALL.finditer(text)]
    found = [match for match in _MENTION.finditer(text) if not any(a <= match.start() < b for a, b in calls)]
    return [match["name"] for match in found]


def foreign_keywords(text: str, own: set[str]) -> list[str]:
    """Keywords in a message that the caller's function does not have."""
    return [name for name in mentions(text) if name in ALL_KEYWORDS - own]


def options_of(command: click.Command) -> set[str]:
    return {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}


def unknown_options(text: str, group: click.Group) -> list[str]:
    """The options that a message of a command names and no command has."""
    known = set().union(*map(options_of, group.commands.values()))
    return [option for option in re.findall(r"(?<![\w'/-])--[a-z][a-z0-9-]*(?![\w/.])", text) if option not in known]


def published_by(error: BaseException) -> Published | None:
    """Remark of an error that says which files were published before it."""
    remark: Published | None = getattr(error, "published", None)
    return remark


def message_strings() -> Iterator[tuple[str, str]]:
    """The texts with spaces in the package that are not docstrings, and where they are; ``{}`` are values."""
    for path in sorted(PACKAGE.rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name in ("call_errors.py", "plugins/report/report_html.py", "apps/views/elements.py"):
            continue  # texts of documentation, and HTML
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        joined = [node for node in nodes if isinstance(node, ast.JoinedStr)]
        inner = docstrings | {id(child) for node in joined for child in ast.walk(node) if child is not node}
        for node in nodes:
            is_text = isinstance(node, ast.JoinedStr | ast.Constant) and id(node) not in inner
            if is_text and (text := _text(node)) is not None and " " in text:
                yield f"{name}:{node.lineno}", text  # type: ignore[attr-defined]


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        return "".join(map(str, parts))
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
