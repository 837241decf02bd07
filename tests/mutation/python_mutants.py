"""Mutants of a Python module: its syntax tree with one change each."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

_SKIPPED = {"annotation", "returns", "decorator_list", "ctx"}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change: class or function, first line of the statement before and after, and the code of the module."""

    place: str
    before: str
    after: str
    code: CodeType

    @property
    def key(self) -> str:
        return f"{self.place}: {self.before} -> {self.after}"


def python_mutants(source: str, path: str) -> Iterator[Mutant]:
    """All mutants of a module.

    Comparisons get or lose equality or are negated, numbers are one more and one less, `and` and `or` are exchanged, as
    are operators; conditions are always true or false; results are None; calls, `raise`, `break`, `continue` and
    augmented assignments are removed. Docstrings, texts and annotations stay as they are.
    """
    tree = ast.parse(source)
    for place, before, after in _changes(tree, None, ""):
        yield Mutant(place, before, after, compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True))


def _changes(node: ast.AST, statement: ast.stmt | None, place: str) -> Iterator[tuple[str, str, str]]:
    """Change the tree below a node in one place after the other; it is as before between two changes."""
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED:
            continue
        for index, child in enumerate(value if isinstance(value, list) else [value]):
            if not isinstance(child, ast.AST) or _is_text(child):
                continue
            inside = child if isinstance(child, ast.stmt) else statement
            for replacement in _replacements(node, field, child):
                assert inside is not None
                before = _first_line(inside)
                _put(node, field, index, replacement)
                yield place, before, _first_line(replacement if inside is child else inside)
                _put(node, field, index, child)
            name = getattr(child, "name", None) if isinstance(child, ast.FunctionDef | ast.ClassDef) else None
            yield from _changes(child, inside, f"{place}.{name}".lstrip(".") if name else place)


def _put(node: ast.AST, field: str, index: int, child: ast.AST) -> None:
    value = getattr(node, field)
    if isinstance(value, list):
        value[index] = child
    else:
        setattr(node, field, child)


def _is_text(node: ast.AST) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    return isinstance(node, ast.JoinedStr)


def _first_line(statement: ast.AST) -> str:
    return ast.unparse(statement).split("\n", 1)[0]


def _replacements(parent: ast.AST, field: str, node: ast.AST) -> Iterator[ast.AST]:
    if field == "test":
        yield ast.Constant(False)
        if not isinstance(parent, ast.While):
            yield ast.Constant(True)
    if isinstance(node, ast.cmpop):
        yield _COMPARISONS[type(node)]()
    elif isinstance(node, ast.operator) and type(node) in _OPERATORS:
        yield _OPERATORS[type(node)]()
    elif isinstance(node, ast.boolop):
        yield ast.Or() if isinstance(node, ast.And) else ast.And()
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield ast.Constant(node.value + 1)
        yield ast.Constant(node.value - 1)
    elif isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
        yield ast.Return(ast.Constant(None))
    elif isinstance(node, ast.Raise | ast.AugAssign | ast.Break | ast.Continue) or (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    ):
        yield ast.Pass()


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
