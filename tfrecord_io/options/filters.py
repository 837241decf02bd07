"""The condition of ``filters=``: a pyarrow expression, or tuples as in pandas and pyarrow."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.compute as pc

_EXPECTED = "expected a pyarrow expression, such as pc.field('x') > 1, or a list of tuples, such as [('x', '>', 1)]"

_OPERATORS = ("==", "=", "!=", "<", ">", "<=", ">=", "in", "not in")  # of pyarrow's filters


def parse_filters(filters: Any) -> pc.Expression:
    """The expression of a filter; TypeError or ValueError if it is none."""
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        expression = filters
    elif isinstance(filters, Iterable) and not isinstance(filters, str | bytes | tuple):
        from pyarrow.parquet import filters_to_expression

        terms = list(filters)
        alternatives = [terms] if terms and _is_term(terms[0]) else terms
        if not all(isinstance(terms, tuple | list) and all(map(_is_term, terms)) for terms in alternatives):
            raise ValueError(f"filters={filters!r}: expected tuples (column, operator, value)")
        for term in (term for terms in alternatives for term in terms):
            if isinstance(term[1], str) and term[1] not in _OPERATORS:
                raise ValueError(f"filters: {term[1]!r} is no operator; use one of {', '.join(_OPERATORS)}")
        try:
            expression = filters_to_expression([[tuple(term) for term in terms] for terms in alternatives])
        except OverflowError as error:
            raise ValueError(f"filters={filters!r}: a number is out of the range of 64 bits") from error
    else:
        raise TypeError(f"filters: got {type(filters).__name__}, {_EXPECTED}")
    try:
        pickle.dumps(expression)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"the filter '{expression}' refers to columns by position: name them") from error
    return expression


def _is_term(value: Any) -> bool:
    """Whether a value is (column, operator, value): a tuple, or a list, as JSON has no tuples."""
    return isinstance(value, tuple | list) and len(value) == 3 and all(isinstance(part, str) for part in value[:2])
