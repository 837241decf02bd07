"""A pandas DataFrame as an Arrow table: as pandas writes Parquet, but nothing is guessed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.arrays import NOT_ARROW, native, no_arrow_form, refuse_mixture, refuse_tensors
from tfrecord_io.errors import EncodeError
from tfrecord_io.schema.types import is_list_like, value_type

if TYPE_CHECKING:
    import pandas as pd


def table_of_frame(frame: pd.DataFrame, index: bool | None = None, nan_to_null: bool = True) -> pa.Table:
    """Convert by ``pyarrow.Table.from_pandas``, whose metadata restores index and dtypes.

    Parameters
    ----------
    frame : pandas.DataFrame
    index : bool, optional
        As in ``DataFrame.to_parquet``.
    nan_to_null : bool
        False: NaN in columns of a NumPy float dtype are values. NaN inside the arrays of a column of arrays always are.

    Raises
    ------
    EncodeError
        A column name comes twice, or a column's values have no one type.
    """
    if not frame.columns.is_unique:
        name = str(frame.columns[frame.columns.duplicated()][0])
        raise EncodeError("two columns have this name", feature=name, advice="rename one of them")
    frame = _in_native_order(frame)
    try:
        table = pa.Table.from_pandas(frame, preserve_index=index)
    except NOT_ARROW as error:
        raise _culprit(frame) or EncodeError("the DataFrame has no Arrow form", advice="see the cause above") from error
    for i in range(frame.shape[1]):
        kept = _better_column(frame.iloc[:, i], table.column(i), table.field(i).name, nan_to_null)
        if kept is not None:
            table = table.set_column(i, table.field(i).with_type(kept.type), kept)
    return table


def _in_native_order(frame: pd.DataFrame) -> pd.DataFrame:
    swapped = {name: dtype.newbyteorder("=") for name, dtype in frame.dtypes.items() if isinstance(dtype, np.dtype) and not dtype.isnative}
    return frame.astype(swapped) if swapped else frame


def _better_column(values: pd.Series, found: pa.ChunkedArray, name: str, nan_to_null: bool) -> pa.Array | None:
    """The column, converted again where from_pandas lost something; an error where it guessed."""
    if not isinstance(values.dtype, np.dtype):
        return None
    if values.dtype.kind == "f":
        return None if nan_to_null or not found.null_count else pa.array(native(values.to_numpy()))
    if values.dtype != object:
        return None
    refuse_mixture(name, values, found.type)
    if is_list_like(found.type) and t.is_floating(value_type(found.type)) and any(c.values.null_count for c in found.chunks):
        # from_pandas takes NaN inside an array for a null; only a missing cell is one
        return pa.array(values.to_numpy(), mask=values.isna().to_numpy(), from_pandas=False)
    return None


def _culprit(frame: pd.DataFrame) -> Exception | None:
    """An error that names the first column that Arrow refuses."""
    import pandas as pd

    index = frame.index
    levels: list[Any] = [index.get_level_values(i) for i in range(index.nlevels)]
    for name, values in [*frame.items(), *zip(index.names, levels, strict=True)]:
        try:
            pa.Table.from_pandas(pd.DataFrame({"x": values}), preserve_index=False)
        except NOT_ARROW:
            if values.dtype == object:
                refuse_tensors(str(name), values)
            return no_arrow_form(str(name), values)
    return None
