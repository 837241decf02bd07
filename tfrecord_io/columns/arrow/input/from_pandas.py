"""Convert a pandas DataFrame to an Arrow table: as pandas writes Parquet, but without guessing types.

`table_of_frame` returns the table, with the index and the dtypes in its metadata, and the columns that are tensors.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tfrecord_io.base import and_more, printable, warn
from tfrecord_io.columns.arrow.buffers import replace_columns
from tfrecord_io.columns.arrow.input.array_likes import dense, is_object_dtype
from tfrecord_io.columns.arrow.input.arrow_guesses import refuse_mixture, refuse_times_among_others
from tfrecord_io.columns.arrow.input.from_arrays import (
    NOT_ARROW,
    Columns,
    check_name,
    lists_with_nan,
    map_array,
    plain_cells,
    tensors_of,
)
from tfrecord_io.columns.arrow.input.masked_cells import unmask_column
from tfrecord_io.columns.arrow.input.no_arrow_form import no_arrow_form
from tfrecord_io.columns.arrow.input.tensor_cast import Tensors
from tfrecord_io.columns.arrow.input.unstorable_time_zones import refuse_lost_zone, restore_zone, zone_of
from tfrecord_io.columns.arrow.periods_and_intervals import (
    categories_as_json,
    categories_to_text,
    has_categories_of_pandas,
    is_of_pandas,
    labels_as_json,
)
from tfrecord_io.columns.arrow.plain_values import native
from tfrecord_io.columns.schema.pandas_metadata import (
    add_labels,
    arrow_entry,
    categories_entry,
    frame_description,
    sparse_entry,
    update_entries,
)
from tfrecord_io.columns.schema.types import restored_type
from tfrecord_io.errors import EncodeError, SchemaWarning

if TYPE_CHECKING:
    import pandas as pd
_MISSING = ("nan", "NaT", "<NA>")  # names that pandas has no description for
_RESTORED = {"string", "bytes", "integer", "floating", "boolean", "datetime64"}  # labels, as pandas calls their types


def table_of_frame(
    frame: pd.DataFrame,
    index: bool | None = None,
    nan_to_null: bool = True,
    encodings: Mapping[str, str] | None = None,
    maps: Mapping[str, pa.DataType] | None = None,
) -> Columns:
    """Convert by ``pyarrow.Table.from_pandas``, whose metadata restores index and dtypes; arrays become tensors.

    `index` is that of ``DataFrame.to_parquet``, but None makes columns of a named index and of levels, whatever their
    values: pandas takes a RangeIndex wherever they are evenly spaced. `encodings` is the ``column_encoding=`` of a
    writer, `maps` the `map_types` of its schema. Without `nan_to_null` NaN in columns of a NumPy float dtype are
    values, as they always are inside arrays. Two columns of one name, or values of mixed types, are EncodeErrors.
    """
    import pandas as pd

    _check_names(frame)
    if index is None and (frame.index.nlevels > 1 or frame.index.name is not None):
        index = True
    # Most frames have neither levels that become columns, nor dtypes that need more than pyarrow does.
    has_levels = index or (index is None and not isinstance(frame.index, pd.RangeIndex))
    kinds = {*map(type, frame.dtypes)}
    may_have_categories = has_levels or pd.CategoricalDtype in kinds
    # What pyarrow cannot convert is replaced in the frame, and put in the table after the conversion.
    frame, fills = _dense(_make_levels_exact(frame) if has_levels else frame)
    frame, geometries = _blank_geometries(frame) if hasattr(frame, "to_arrow") else (frame, {})
    frame, categories = _turn_categories_into_text(frame) if may_have_categories else (frame, {})
    frame, complex_levels = _blank_complex_levels(frame) if has_levels else (frame, {})
    frame, prepared, exact = _prepare_columns(frame, nan_to_null, encodings or {}, maps or {})
    table = _convert_by_pyarrow(frame, index)
    table = _improve_columns(frame, table, prepared=prepared, exact=exact, nan_to_null=nan_to_null)
    if may_have_categories or pd.DatetimeTZDtype in kinds:
        table = _keep_zones(frame, table)
    if table.num_columns > frame.shape[1]:
        _refuse_mixed_levels(frame, table)
        for level, values in complex_levels.items():
            tensors = tensors_of(values, nan_to_null, None)
            assert tensors is not None
            prepared[frame.shape[1] + level] = tensors
        table = _nulls_at(table, [frame.shape[1] + level for level in complex_levels])
    if frame.columns.nlevels > 1 or frame.columns.inferred_type not in _RESTORED:
        table = _add_labels(frame, table)
        _warn_of_labels(frame, table)
    table = replace_columns(table, geometries)
    changes = {name: sparse_entry(fill) for name, fill in fills.items()}
    if has_levels or pd.ArrowDtype in kinds:
        changes |= _arrow_entries(frame, table)
    changes |= {table.field(at).name: {"numpy_type": "object"} for at in (*prepared, *geometries)}
    changes |= {
        table.field(at).name: categories_entry(len(dtype.categories), categories_as_json(dtype))
        for at, dtype in categories.items()
        if at < table.num_columns
    }
    if changes:
        table = table.replace_schema_metadata(update_entries(table.schema, changes).metadata)
    return Columns(table, {at: column for at, column in prepared.items() if not isinstance(column, pa.Array)})


def _check_names(frame: pd.DataFrame) -> None:
    """Refuse two columns of one name, and names that a feature cannot have."""
    if not frame.columns.is_unique:
        name = str(frame.columns[frame.columns.duplicated()][0])
        raise EncodeError("two columns have this name", feature=name, hint="rename one of them")
    for label in [*frame.columns, *frame.index.names]:
        check_name(_column_name(label))


def _convert_by_pyarrow(frame: pd.DataFrame, index: bool | None) -> pa.Table:
    """The table that pyarrow makes of a frame; EncodeError with the column that cannot be converted."""
    try:
        with warnings.catch_warnings():  # `_warn_of_labels` names the labels that are not restored
            warnings.filterwarnings("ignore", "The DataFrame has column names of mixed type")
            return pa.Table.from_pandas(frame, preserve_index=index)
    except NOT_ARROW as error:
        if culprit := _culprit(frame):
            raise culprit from None  # Arrow's message holds the value
        for axis, names in (("index", frame.index.names), ("columns", frame.columns.names)):
            if missing := [name for name in names if name is not None and str(name) in _MISSING]:
                advice = f"rename it, for example with df.rename_axis({axis}='{axis}')"
                raise EncodeError(f"the {axis} of the DataFrame has the name {missing[0]}", hint=advice) from None
        raise EncodeError("the DataFrame cannot be converted to Arrow", hint="see the cause above") from error


def _improve_columns(
    frame: pd.DataFrame, table: pa.Table, prepared: Collection[int], exact: Collection[int], nan_to_null: bool
) -> pa.Table:
    """Replace columns of a table whose values pyarrow has changed; EncodeError for objects of several types.

    Without `nan_to_null`, columns of floats are among them. Columns that are `prepared` are as they should be, and
    objects of columns that are `exact` have one type.
    """
    kinds, better = "O" if nan_to_null else "Of", {}
    for at, dtype in enumerate(frame.dtypes):
        if at in prepared or not isinstance(dtype, np.dtype) or dtype.kind not in kinds:
            continue
        values = frame.iloc[:, at]
        if dtype.kind == "O" and at not in exact:
            refuse_mixture(table.field(at).name, values, table.field(at).type)
        column = _better_column(values, table.column(at))
        if column is not None:
            better[at] = table.field(at).with_type(column.type), column
    return replace_columns(table, better)


def _column_name(label: Any) -> str:
    """The name of the column, or the level of an index, that a label has in Arrow."""
    if isinstance(label, tuple):
        return str(tuple(map(_part_of_name, label)))
    return label.decode("utf-8", "surrogateescape") if isinstance(label, bytes) else str(label)


def _part_of_name(part: Any) -> Any:
    is_missing = part is None or (isinstance(part, float) and part != part)
    return part if is_missing or isinstance(part, str) else _column_name(part)


def _warn_of_labels(frame: pd.DataFrame, table: pa.Table) -> None:
    """Warn of labels of columns that a reader cannot restore, such as labels of several types."""
    labels = frame.columns
    names = table.column_names[: len(labels)]
    if len({*names}) < len(names):  # `open_input` refuses these
        return
    from tfrecord_io.columns.arrow.output.to_pandas import column_labels

    restored = column_labels(names, frame_description(table.schema))
    if restored.equals(labels):
        return
    pairs = ((repr(before), repr(after)) for before, after in zip(labels, restored, strict=True))
    changed = [f"{printable(before)} as {printable(after)}" for before, after in pairs if before != after]
    if changed:
        text = f"labels of columns that are not restored are read as text: {changed[0]}{and_more(len(changed) - 1)}"
        warn(f"{text}; make all labels text", SchemaWarning)


def _prepare_columns(
    frame: pd.DataFrame, nan_to_null: bool, encodings: Mapping[str, str], maps: Mapping[str, pa.DataType]
) -> tuple[pd.DataFrame, dict[int, Tensors | pa.Array], set[int]]:
    """The frame with None for each masked array; the columns that Arrow need not, or cannot, convert, by number.

    In the frame these are columns of Arrow, which are not converted again, and nulls instead of tensors. Last the
    numbers of columns of objects that Arrow converts without a guess.
    """
    columns, masked, exact = dict[int, Tensors | pa.Array](), dict[int, Any](), set[int]()
    for at, (name, values) in enumerate(frame.items()):
        is_objects = is_object_dtype(values.dtype)
        if is_objects and (map_type := maps.get(_column_name(name))) is not None:
            columns[at] = map_array(_column_name(name), values, map_type)
            continue
        plain = is_objects and plain_cells(values.to_numpy(), nan_is_missing=True)
        try:
            if plain is None:
                exact.add(at)
            elif is_objects and isinstance(plain, bool):
                refuse_times_among_others(values)
            unmasked = unmask_column(values) if is_objects and plain is False else values
            prepared = tensors_of(unmasked, nan_to_null, encodings.get(_column_name(name))) if plain is False else plain
        except EncodeError as error:
            error.feature = _column_name(name)
            raise
        if unmasked is not values:
            masked[at] = unmasked.array
        if prepared is not None and prepared is not True:
            columns[at] = prepared
    if columns:
        from pandas.arrays import ArrowExtensionArray

        arrays = {at: part if isinstance(part, pa.Array) else pa.nulls(len(frame)) for at, part in columns.items()}
        masked |= {at: ArrowExtensionArray(array) for at, array in arrays.items()}
    return _replace_columns(frame, masked), columns, exact


def _replace_columns(frame: pd.DataFrame, columns: Mapping[int, Any]) -> pd.DataFrame:
    if columns:
        frame = frame.copy(deep=False)
        for at, values in columns.items():
            frame.isetitem(at, values)
    return frame


def _dense(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, float]]:
    """The frame in native byte order, with all values of its sparse columns; the value that each of numbers leaves out.

    A warning names the others.
    """
    fills, columns = dict[str, float](), dict[int, Any]()
    for at, (name, dtype) in enumerate(zip(frame.columns, frame.dtypes, strict=True)):
        if isinstance(dtype, np.dtype) and not dtype.isnative:
            columns[at] = frame.iloc[:, at].astype(dtype.newbyteorder("="))
        if type(dtype).__name__ != "SparseDtype":
            continue
        columns[at] = dense(frame.iloc[:, at])
        fill = dtype.fill_value
        if not isinstance(dtype.subtype, np.dtype) or dtype.subtype.kind not in "biuf":
            reason = f"is {dtype}: it is read without gaps, as {dtype.subtype}"
            warn(f"column '{printable(_column_name(name))}' {reason}", SchemaWarning)
        else:
            fills[_column_name(name)] = np.asarray(fill, dtype.subtype).item()
    return _replace_columns(frame, columns), fills


def _nulls_at(table: pa.Table, columns: list[int]) -> pa.Table:
    """The table with columns of nulls for those that are not converted yet."""
    nulls = pa.chunked_array([pa.nulls(table.num_rows)])
    return replace_columns(table, {at: (table.field(at).with_type(pa.null()), nulls) for at in columns})


def _blank_geometries(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, tuple[pa.Field, pa.ChunkedArray]]]:
    """The frame with nulls in the columns of geometries of a GeoDataFrame; these as GeoPandas has them in Arrow.

    The metadata of their fields has the name of GeoArrow's type and the reference system of the coordinates.
    """
    import pandas as pd

    at = [number for number, dtype in enumerate(frame.dtypes) if dtype.name == "geometry"]
    if not at:
        return frame, {}
    geometries = pa.table(frame.iloc[:, at].to_arrow(index=False))
    fields = dict(zip(at, zip(geometries.schema, geometries.columns, strict=True), strict=True))
    return _replace_columns(pd.DataFrame(frame), dict.fromkeys(at, None)), fields


def _turn_categories_into_text(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, Any]]:
    """The frame with texts as categories of columns and levels where these are periods or intervals; what each was.

    The latter are by the number of the column in a table that has the levels of the index last.
    """
    import pandas as pd

    original_dtypes = {at: d for at, d in enumerate(frame.dtypes) if has_categories_of_pandas(d)}
    columns = {at: categories_to_text(pd.CategoricalIndex(frame.iloc[:, at])).array for at in original_dtypes}
    frame, index = _replace_columns(frame, columns), frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    changed = {at: categories_to_text(lv) for at, lv in enumerate(levels) if has_categories_of_pandas(lv.dtype)}
    original_dtypes |= {frame.shape[1] + at: levels[at].dtype for at in changed}
    return _replace_levels(frame, changed), original_dtypes


def _blank_complex_levels(frame: pd.DataFrame) -> tuple[pd.DataFrame, dict[int, pd.Series]]:
    """Replace index levels of complex numbers, which Arrow does not have, by zeros; also return the levels."""
    import pandas as pd

    levels = [frame.index.get_level_values(level) for level in range(frame.index.nlevels)]
    complex_levels = {
        at: level for at, level in enumerate(levels) if isinstance(level.dtype, np.dtype) and level.dtype.kind == "c"
    }
    zeros = {at: pd.Index(np.zeros(len(frame)), name=level.name) for at, level in complex_levels.items()}
    return _replace_levels(frame, zeros), {at: pd.Series(level) for at, level in complex_levels.items()}


def _replace_levels(frame: pd.DataFrame, levels: Mapping[int, pd.Index]) -> pd.DataFrame:
    """The frame with other levels of its index, by number."""
    import pandas as pd

    if not levels:
        return frame
    index = frame.index
    if index.nlevels == 1:
        return frame.set_axis(levels[0])
    arrays = [levels[at] if at in levels else index.get_level_values(at) for at in range(index.nlevels)]
    return frame.set_axis(pd.MultiIndex.from_arrays(arrays, names=index.names))


def _add_labels(frame: pd.DataFrame, table: pa.Table) -> pa.Table:
    """The table, in whose metadata are the labels of columns that are periods, intervals or categories of them."""
    labels = frame.columns
    levels = [labels.get_level_values(level) for level in range(labels.nlevels)]
    labels_by_level = {
        at: labels_as_json(level)
        for at, level in enumerate(levels)
        if is_of_pandas(level.dtype) or has_categories_of_pandas(level.dtype)
    }
    if not labels_by_level:
        return table
    return table.replace_schema_metadata(
        add_labels(table.schema, labels_by_level, table.column_names[: len(labels)]).metadata
    )


def _make_levels_exact(frame: pd.DataFrame) -> pd.DataFrame:
    """Use `Int64` and its like for levels of integers that have missing values.

    As NumPy integers, pandas would turn such levels into floats, which do not have all integers.
    """
    index, levels = frame.index, {}
    for at in range(index.nlevels if index.nlevels > 1 else 0):
        dtype = index.levels[at].dtype
        if isinstance(dtype, np.dtype) and dtype.kind in "iu" and (index.codes[at] < 0).any():
            levels[at] = index.levels[at].astype(dtype.name.replace("i", "I").replace("u", "U"))
    return frame.set_axis(index.set_levels(list(levels.values()), level=list(levels))) if levels else frame


def _better_column(values: pd.Series, column: pa.ChunkedArray) -> pa.Array | None:
    """A column of objects, or of floats whose NaN are values, if from_pandas lost something; else None."""
    if values.dtype != object:
        return pa.array(native(values.to_numpy())) if column.null_count else None
    return lists_with_nan(values, column)


def _refuse_mixed_levels(frame: pd.DataFrame, table: pa.Table) -> None:
    """`refuse_mixture` of the levels of the index, the last columns of the table."""
    index, begin = frame.index, frame.shape[1]
    for at in range(begin, table.num_columns):
        level = index.get_level_values(at - begin)
        if is_object_dtype(level.dtype):
            refuse_mixture(table.field(at).name, level, table.field(at).type)


def _dtypes(frame: pd.DataFrame, table: pa.Table) -> list[Any]:
    """Dtypes of the columns, and of the index levels that the table has."""
    levels = range(table.num_columns - frame.shape[1])
    return [*frame.dtypes, *(frame.index.get_level_values(level).dtype for level in levels)]


def _keep_zones(frame: pd.DataFrame, table: pa.Table) -> pa.Table:
    """Give categories the time zone that pyarrow leaves out; refuse times whose zone Arrow would not keep."""
    width, columns = frame.shape[1], {}
    for at, dtype in enumerate(_dtypes(frame, table)):
        if zone_of(dtype) is not None:
            values = frame.iloc[:, at] if at < width else frame.index.get_level_values(at - width)
            refuse_lost_zone(table.field(at).name, values)
        if hasattr(dtype, "categories"):
            column = restore_zone(table.column(at), dtype)
            columns[at] = table.field(at).with_type(column.type), column
    return replace_columns(table, columns)


def _arrow_entries(frame: pd.DataFrame, table: pa.Table) -> dict[str, dict[str, Any]]:
    """The entries of columns and levels of the index whose dtypes, of Arrow, pandas does not find by their names."""
    import pandas as pd

    of_arrow = [(at, dtype) for at, dtype in enumerate(_dtypes(frame, table)) if isinstance(dtype, pd.ArrowDtype)]
    if not of_arrow:
        return {}
    from tfrecord_io.columns.arrow.output.to_pandas import restores

    entries = {}
    for at, dtype in of_arrow:
        type_ = restored_type(dtype.pyarrow_dtype)
        if not restores(str(dtype), type_):
            entries[table.field(at).name] = arrow_entry(type_)
    return entries


def _culprit(frame: pd.DataFrame) -> Exception | None:
    """The error for the first column that Arrow refuses."""
    import pandas as pd

    index = frame.index
    levels: list[Any] = [index.get_level_values(i) for i in range(index.nlevels)]
    names = [f"__index_level_{i}__" if name is None else name for i, name in enumerate(index.names)]
    for name, values in [*frame.items(), *zip(names, levels, strict=True)]:
        try:
            pa.Table.from_pandas(pd.DataFrame({"x": values}), preserve_index=False)
        except NOT_ARROW:
            return no_arrow_form(_column_name(name), values)
    return None
