"""pandas' periods and intervals: as Arrow columns and back, as categories, and as labels of columns in JSON.

pandas has an Arrow extension type for each of both, which it registers when it is first used. Before, a field of the
storage names it in its metadata; here both forms are read. Categories and labels are not a column: the schema's pandas
metadata has them as JSON, numbers of a period or pairs of the ends of an interval.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns.schema.extension_types import stated_extension
from tfrecord_io.columns.schema.tensor_types import extension_metadata
from tfrecord_io.columns.schema.types import is_text

if TYPE_CHECKING:
    import pandas as pd

_NAT = np.iinfo(np.int64).min
_CLOSED = ("left", "right", "both", "neither")
_INFINITE = {"inf": math.inf, "-inf": -math.inf}
# Raised by pandas for values or parameters that do not fit its types; any writer may have made them.
_REFUSED = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError, pa.ArrowException)


def is_of_pandas(dtype: Any) -> bool:
    """True for the dtypes of pandas' periods and intervals."""
    import pandas as pd

    return isinstance(dtype, pd.PeriodDtype | pd.IntervalDtype)


def has_categories_of_pandas(dtype: Any) -> bool:
    """True for a categorical dtype whose categories are periods or intervals, as ``pandas.cut`` makes it."""
    import pandas as pd

    return (
        isinstance(dtype, pd.CategoricalDtype) and dtype.categories is not None and is_of_pandas(dtype.categories.dtype)
    )


def categories_to_text(labels: pd.CategoricalIndex) -> pd.CategoricalIndex:
    """Replace categories that are periods or intervals by their text, which a dictionary of Arrow can have.

    >>> import pandas as pd
    >>> list(categories_to_text(pd.CategoricalIndex(pd.cut([1, 2], [0, 1, 2]))))
    ['(0, 1]', '(1, 2]']
    """
    return labels.rename_categories(_texts(labels.categories))


def _texts(categories: pd.Index) -> list[str]:
    """Distinct texts of categories: numbers where their own ones are not distinct."""
    texts = list(map(str, categories))
    return texts if len({*texts}) == len(texts) else list(map(str, range(len(texts))))


# ---- columns


def extension_of_pandas(field: pa.Field) -> tuple[str, Mapping[str, Any]] | None:
    """The name and the parameters of pandas' extension type of a field, be it registered or not; else None."""
    mark = stated_extension(field)
    if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name in _MADE:
        mark = next(zip(*[iter(extension_metadata(field.type).values())] * 2, strict=True))
    if mark is None or mark[0].decode("utf-8", "replace") not in _MADE:
        return None
    try:
        parameters = json.loads(mark[1])
    except (ValueError, RecursionError):
        return None
    return (mark[0].decode(), parameters) if isinstance(parameters, dict) else None


def series_of_pandas(field: pa.Field, column: pa.ChunkedArray) -> pd.Series | None:
    """The periods or intervals of a column of pandas' extension types; None for other columns, and for damaged ones."""
    import pandas as pd

    extension = extension_of_pandas(field)
    if extension is None:
        return None
    array = column.combine_chunks()
    array = array.storage if isinstance(array, pa.ExtensionArray) else array
    try:
        return pd.Series(_MADE[extension[0]](array, extension[1]))
    except _REFUSED:
        return None


def _periods(ordinals: pa.Array, parameters: Mapping[str, Any]) -> Any:
    import pandas as pd

    dtype = pd.PeriodDtype(parameters["freq"])
    return pd.arrays.PeriodArray(np.asarray(ordinals.fill_null(_NAT), np.int64), dtype=dtype)


def _intervals(ends: pa.Array, parameters: Mapping[str, Any]) -> Any:
    import pandas as pd

    if parameters["closed"] not in _CLOSED:
        raise ValueError(parameters["closed"])
    left, right = (_end(side) for side in ends.flatten())  # where the interval is null, both of its ends are
    return pd.arrays.IntervalArray.from_arrays(left, right, closed=parameters["closed"])


def _end(values: pa.Array) -> Any:
    """The left or right ends of intervals, as pandas has them."""
    import pandas as pd

    type_ = values.type
    if not (t.is_timestamp(type_) or t.is_duration(type_)):
        return pd.Index(values.to_numpy(zero_copy_only=False))
    numbers = np.asarray(values.cast(pa.int64()).fill_null(_NAT))
    times = pd.Index(numbers.view(f"{'M' if t.is_timestamp(type_) else 'm'}8[{type_.unit}]"))
    return times if t.is_duration(type_) or type_.tz is None else times.tz_localize("UTC").tz_convert(type_.tz)


_MADE: dict[str, Callable[[pa.Array, Mapping[str, Any]], Any]] = {
    "pandas.period": _periods,
    "pandas.interval": _intervals,
}


# ---- categories and labels


def labels_as_json(labels: Any) -> dict[str, Any]:
    """Periods, intervals, or categories of them, as JSON.

    >>> import pandas as pd
    >>> labels_as_json(pd.interval_range(0, 2))
    {'dtype': 'interval[int64, right]', 'values': [[0, 1], [1, 2]]}
    """
    import pandas as pd

    dtype = labels.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        of = labels_as_json(dtype.categories)
        return {"of": of, "ordered": bool(dtype.ordered), "codes": np.asarray(labels.codes).tolist()}
    missing = np.asarray(labels.isna())
    if isinstance(dtype, pd.PeriodDtype):
        values: list[Any] = np.asarray(labels.asi8).tolist()
    else:
        values = [list(pair) for pair in zip(_numbers(labels.left), _numbers(labels.right), strict=True)]
    return {"dtype": str(dtype), "values": [None if none else v for v, none in zip(values, missing, strict=True)]}


def _numbers(ends: Any) -> list[Any]:
    """Numbers that JSON has: of times those in their unit, infinite ones as text."""
    values = np.asarray(ends.asi8 if hasattr(ends, "asi8") else ends).tolist()
    return [str(value) if isinstance(value, float) and math.isinf(value) else value for value in values]


def labels_from_json(stated: Any) -> pd.Index | None:
    """The labels that `labels_as_json` describes; None if any writer made something else.

    >>> labels_from_json({"dtype": "period[M]", "values": [600, None]})
    PeriodIndex(['2020-01', 'NaT'], dtype='period[M]')
    """
    import pandas as pd

    try:
        if "of" in stated:
            categories = labels_from_json(stated["of"])
            if categories is None:
                return None
            categorical = pd.Categorical.from_codes(stated["codes"], categories, ordered=bool(stated["ordered"]))
            return pd.CategoricalIndex(categorical)
        dtype, values = pd.api.types.pandas_dtype(stated["dtype"]), stated["values"]
        if isinstance(dtype, pd.PeriodDtype):
            ordinals = np.array([_NAT if value is None else value for value in values], np.int64)
            return pd.PeriodIndex(pd.arrays.PeriodArray(ordinals, dtype=dtype))
        if not isinstance(dtype, pd.IntervalDtype):
            return None
        left, right = ([None if pair is None else _number(pair[at]) for pair in values] for at in (0, 1))
        ends = (_ends_of_dtype(side, dtype.subtype) for side in (left, right))
        return pd.IntervalIndex.from_arrays(*ends, closed=dtype.closed)
    except _REFUSED:
        return None


def categories_as_json(dtype: pd.CategoricalDtype) -> dict[str, Any]:
    """The categories of a dtype that `has_categories_of_pandas`, and the texts they are stored as, as JSON."""
    categories = dtype.categories
    return {"texts": _texts(categories), "of": labels_as_json(categories), "ordered": bool(dtype.ordered)}


def series_of_categories(column: pa.ChunkedArray, stated: Any) -> pd.Series | None:
    """The categories that the texts of a column stand for, by `categories_as_json`; None if it is something else.

    A text that is not one of the categories is None, too: another writer has changed the column.
    """
    import pandas as pd

    value = column.type.value_type if t.is_dictionary(column.type) else column.type
    if not is_text(value):
        return None
    try:
        categories, texts = labels_from_json(stated["of"]), pd.Index(stated["texts"], dtype=object)
        if categories is None or len(texts) != len(categories):
            return None
        codes = texts.get_indexer(pd.Index(column.cast(value).to_numpy(), dtype=object))
        if np.count_nonzero(codes < 0) != column.null_count:
            return None
        return pd.Series(pd.Categorical.from_codes(codes, categories, ordered=bool(stated["ordered"])))
    except _REFUSED:
        return None


def _number(value: Any) -> float:
    number = _INFINITE[value] if isinstance(value, str) else value
    if not isinstance(number, int | float):
        raise TypeError(type(value).__name__)
    return number


def _ends_of_dtype(values: Sequence[float | None], subtype: Any) -> Any:
    import pandas as pd

    if subtype.kind not in "mM":
        return pd.Index(np.array([math.nan if value is None else value for value in values], subtype))
    numbers = np.array([_NAT if value is None else value for value in values], np.int64)
    zone, unit = getattr(subtype, "tz", None), np.datetime_data(getattr(subtype, "base", subtype))[0]
    times = pd.Index(numbers.view(f"{subtype.kind}8[{unit}]"))
    return times if zone is None else times.tz_localize("UTC").tz_convert(zone)
