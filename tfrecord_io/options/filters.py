"""The condition of ``filters=``: a pyarrow expression, or tuples as in pandas and pyarrow."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    import pyarrow.compute as pc

_EXPECTED = "expected a pyarrow expression, such as pc.field('x') > 1, or a list of tuples, such as [('x', '>', 1)]"


def parse_filters(filters: Any) -> pc.Expression:
    """The expression of a filter; TypeError or ValueError if it is none."""
    import pyarrow.compute as pc

    if isinstance(filters, pc.Expression):
        expression = filters
    elif isinstance(filters, Iterable) and not isinstance(filters, str | bytes | tuple):
        from pyarrow.parquet import filters_to_expression

        terms = list(filters)
        alternatives = [terms] if terms and isinstance(terms[0], tuple) else terms
        for term in (term for alternative in alternatives for term in alternative):
            if not isinstance(term, tuple) or len(term) != 3:
                raise ValueError(f"filters={filters!r}: expected tuples (column, operator, value)")
        try:
            expression = filters_to_expression(terms)
        except OverflowError as error:
            raise ValueError(f"filters={filters!r}: a number is out of the range of 64 bits") from error
    else:
        raise TypeError(f"filters: got {type(filters).__name__}, {_EXPECTED}")
    try:
        pickle.dumps(expression)
    except pa.ArrowNotImplementedError as error:
        raise ValueError(f"the filter '{expression}' refers to columns by position: name them") from error
    return expression
