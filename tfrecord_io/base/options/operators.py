"""The operators of conditions: a row each, from which text, tuples, messages and the pushdown of libraries are derived.

A new operator is one row of `Operator.ALL`. Parsing and printing follow from its symbol and operand. Tables, column
indexes, folders and random access evaluate its comparisons, or else its function.

Tests: tests/laws/test_operator_rows.py and tests/base/options/test_condition_text.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import pyarrow as pa

Comparisons = Callable[["Sequence[pa.Scalar]", "pa.DataType"], "list[tuple[str, pa.Scalar]]"]


class Operand(Enum):
    """The operand after an operator, as messages say it."""

    NONE = "no value"
    VALUE = "a number, text or another value of Arrow"
    TEXT = "text or bytes"
    LIST = "a list of values"
    PAIR = "two values, the least and the greatest"


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Families of column types that an operator takes, and the error for a column of another type."""

    families: frozenset[str]  # of `column_family` in `columns/arrow/type_literals.py`
    reason: str  # "{}" is the type of the column
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """An operator of a condition. No attribute has a default, so that a new operator answers every question."""

    ALL: ClassVar[tuple[Operator, ...]]  # the table
    COMPARISONS: ClassVar[frozenset[str]]  # functions of those that compare two values: ==, !=, <, <=, > and >=

    symbol: str  # in tuples and text
    aliases: tuple[str, ...]  # other symbols of the same meaning
    function: str  # of `pyarrow.compute`, as DuckDB and Ray pass it; the symbol where pyarrow has none
    operand: Operand  # what follows it
    types: ColumnTypes  # of the columns that it takes
    mirrored: str | None  # the symbol with column and value exchanged; None: they cannot be
    negates: str | None  # the symbol of the operator that it inverts
    for_missing: str | None  # the symbol that is meant with a missing value; None: an error
    # Functions and literals that are all true where the operator is; None: `function` is evaluated. It gets the
    # literals of the operand and the type of the column.
    comparisons: Comparisons | None
    finds_nan: bool  # true of NaN in a library for which NaN is greater than all numbers
    polars: tuple[Any, ...]  # its "op" or "function" in the JSON of expressions; empty: polars filters alone
    daft: str | None  # its method `visit_…` of visitors; None: Daft filters alone

    @property
    def takes_pair(self) -> bool:
        """True if two values follow it, the least and the greatest."""
        return self.operand is Operand.PAIR

    def mirror(self) -> Operator | None:
        """Return the operator that means the same with column and value exchanged, as > for <; None if none does."""
        return None if self.mirrored is None else BY_SYMBOL[self.mirrored]


_OTHER_OPERATOR = "compare it by ==, in or another operator"
_SINGLE = frozenset(["bools", "numbers", "text", "times", "others"])
_SINGLE_VALUES = ColumnTypes(_SINGLE, "a filter cannot compare values of {}", "name a column of single values")
_ANY = ColumnTypes(_SINGLE | {"lists", "structs"}, "", "")
_TEXT = ColumnTypes(
    frozenset(["text", "others"]), "the filter asks how text begins, but the column is {}", _OTHER_OPERATOR
)
_LISTS = ColumnTypes(
    frozenset(["lists"]), "the filter asks whether lists contain a value, but the column is {}", _OTHER_OPERATOR
)


def _between(bounds: Sequence[pa.Scalar], type_: pa.DataType) -> list[tuple[str, pa.Scalar]]:
    return list(zip(("greater_equal", "less_equal"), bounds, strict=True))


def _starts_with(prefix: Sequence[pa.Scalar], type_: pa.DataType) -> list[tuple[str, pa.Scalar]]:
    """Compare with the prefix, and with the first value after all values with the prefix, if any.

    >>> import pyarrow as pa
    >>> _starts_with([pa.scalar("ca")], pa.string())
    [('greater_equal', <pyarrow.StringScalar: 'ca'>), ('less', <pyarrow.StringScalar: 'cb'>)]
    """
    import pyarrow as pa

    content = prefix[0].as_buffer().to_pybytes()
    lower: str | bytes = content
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        with suppress(UnicodeDecodeError):  # a part of a character; bytes are compared with those of the text
            lower = content.decode()
    upper = _text_behind(lower) if isinstance(lower, str) else _bytes_behind(lower)
    bounds = [("greater_equal", pa.scalar(lower))]
    return [*bounds, ("less", pa.scalar(upper))] if upper else bounds


def _bytes_behind(prefix: bytes) -> bytes:
    kept = prefix.rstrip(b"\xff")
    return kept[:-1] + bytes([kept[-1] + 1]) if kept else b""


def _text_behind(prefix: str) -> str:
    """The text with its last character replaced by the next one: UTF-8 has the order of code points."""
    kept = prefix.rstrip("\U0010ffff")
    following = "\ue000" if kept.endswith("\ud7ff") else chr(ord(kept[-1]) + 1) if kept else ""  # no surrogates
    return kept[:-1] + following


def _comparison(
    symbol: str,
    *,
    aliases: tuple[str, ...],
    function: str,
    mirrored: str,
    for_missing: str | None,
    polars: str,
    daft: str,
) -> Operator:
    return Operator(
        symbol=symbol,
        aliases=aliases,
        function=function,
        operand=Operand.VALUE,
        types=_SINGLE_VALUES,
        mirrored=mirrored,
        negates=None,
        for_missing=for_missing,
        comparisons=None,
        finds_nan=symbol.startswith(">"),
        polars=(polars,),
        daft=daft,
    )


Operator.ALL = (
    _comparison(
        "==", aliases=("=",), function="equal", mirrored="==", for_missing="is null", polars="Eq", daft="equal"
    ),
    _comparison(
        "!=",
        aliases=("<>",),
        function="not_equal",
        mirrored="!=",
        for_missing="is not null",
        polars="NotEq",
        daft="not_equal",
    ),
    _comparison("<", aliases=(), function="less", mirrored=">", for_missing=None, polars="Lt", daft="less_than"),
    _comparison(
        "<=",
        aliases=(),
        function="less_equal",
        mirrored=">=",
        for_missing=None,
        polars="LtEq",
        daft="less_than_or_equal",
    ),
    _comparison(">", aliases=(), function="greater", mirrored="<", for_missing=None, polars="Gt", daft="greater_than"),
    _comparison(
        ">=",
        aliases=(),
        function="greater_equal",
        mirrored="<=",
        for_missing=None,
        polars="GtEq",
        daft="greater_than_or_equal",
    ),
    Operator(
        symbol="in",
        aliases=(),
        function="is_in",
        operand=Operand.LIST,
        types=_SINGLE_VALUES,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=None,
        finds_nan=False,
        polars=(),
        daft=None,
    ),
    Operator(
        symbol="not in",
        aliases=(),
        function="is_in",
        operand=Operand.LIST,
        types=_SINGLE_VALUES,
        mirrored=None,
        negates="in",
        for_missing=None,
        comparisons=None,
        finds_nan=False,
        polars=(),
        daft=None,
    ),
    Operator(
        symbol="contains",
        aliases=(),
        function="contains",  # of `EVALUATED_HERE` in `read/row_filter.py`
        operand=Operand.VALUE,
        types=_LISTS,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=None,
        finds_nan=False,
        polars=(),
        daft=None,
    ),
    Operator(
        symbol="startswith",
        aliases=(),
        function="startswith",
        operand=Operand.TEXT,
        types=_TEXT,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=_starts_with,
        finds_nan=False,
        polars=({"StringExpr": "StartsWith"}, {"BinaryExpr": "StartsWith"}),
        daft="starts_with",
    ),
    Operator(
        symbol="between",
        aliases=(),
        function="between",
        operand=Operand.PAIR,
        types=_SINGLE_VALUES,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=_between,
        finds_nan=False,
        polars=({"Boolean": {"IsBetween": {"closed": "Both"}}},),
        daft="between",
    ),
    Operator(
        symbol="is null",
        aliases=(),
        function="is_null",
        operand=Operand.NONE,
        types=_ANY,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=None,
        finds_nan=False,
        polars=({"Boolean": "IsNull"},),
        daft="is_null",
    ),
    Operator(
        symbol="is not null",
        aliases=(),
        function="is_valid",
        operand=Operand.NONE,
        types=_ANY,
        mirrored=None,
        negates=None,
        for_missing=None,
        comparisons=None,
        finds_nan=False,
        polars=({"Boolean": "IsNotNull"},),
        daft="not_null",
    ),
)
Operator.COMPARISONS = frozenset(operator.function for operator in Operator.ALL if operator.mirrored is not None)
BY_SYMBOL = {symbol: operator for operator in Operator.ALL for symbol in (operator.symbol, *operator.aliases)}
# By the function of Arrow.
BY_FUNCTION = {operator.function: operator for operator in Operator.ALL if operator.negates is None}
NAMES = ", ".join(operator.symbol for operator in Operator.ALL)  # for messages
