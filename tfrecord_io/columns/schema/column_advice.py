"""Advice about one column, in Python and in the words of the command ``tfr``.

Each function returns two texts, the ``hint`` and the ``hint_cli`` of an error.

Tests: tests/columns/schema/test_column_advice.py.
"""

from __future__ import annotations

import shlex


def declaration(name: str, type_name: str) -> tuple[str, str]:
    """How to declare the type of a column.

    >>> declaration("x", "float64")
    ("schema_overrides={'x': 'float64'}", '--type x=float64')
    """
    return f"schema_overrides={ {name: type_name}!r}", f"--type {shlex.quote(f'{name}={type_name}')}"


def exclusion(name: str) -> tuple[str, str]:
    """How to read all columns but one.

    >>> exclusion("x")
    ("columns=['*', '!x']", "--columns '*,!x'")
    """
    without_comma = name.replace(",", "?")  # the command splits names at commas
    return f"columns={['*', f'!{name}']!r}", f"--columns {shlex.quote(f'*,!{without_comma}')}"


def conflict_hints(name: str, *, common_type: str | None = None, can_skip: bool = False) -> tuple[str, str]:
    """Hints for a column whose types differ between records or files.

    `common_type` can hold the values of all of them. With `can_skip`, records of the less frequent type can be left
    out.
    """
    exclude, exclude_cli = exclusion(name)
    hint, hint_cli = (f"leave it out by {way}, or read the files separately" for way in (exclude, exclude_cli))
    if common_type is not None:
        declare, declare_cli = declaration(name, common_type)
        hint = f"declare a type for both with {declare}, or {hint}"
        hint_cli = f"declare a type for both with {declare_cli}, or {hint_cli}"
    elif can_skip:
        result = "which leaves out the records of the less frequent type"
        hint = f"{hint}, or pass on_error='skip', {result}"
        hint_cli = f"{hint_cli}, or pass --on-error skip, {result}"
    return hint, hint_cli
