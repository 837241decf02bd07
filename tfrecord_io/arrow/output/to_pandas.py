"""Arrow tables as pandas DataFrames, with the dtypes, index and labels that they were written with.

pandas stores a description of a frame in the schema's metadata (key ``pandas``). Arrow alone would convert integers
with missing values to float64 and such bools to objects. So a new description is made for each table: the embedded one
is checked against the table, and columns without a valid entry get the dtype of their Arrow type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.output.far_times import as_numpy_time, zones_that_python_has
from tfrecord_io.arrow.output.pandas_metadata import KEY, frame_description, is_unnamed, lost_levels, stored_index
from tfrecord_io.arrow.output.ragged import joined_objects
from tfrecord_io.arrow.output.to_numpy import memory_errors, to_rows
from tfrecord_io.arrow.output.to_python import NO_PYTHON_FORM, cell
from tfrecord_io.arrow.tensor_values import is_list_of_tensors, tensor_cells
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.types import is_list_like, uncommon
from tfrecord_io.typing import DtypeBackend

if TYPE_CHECKING:
    import pandas as pd

_FAR = 2**61  # beyond that a range has no length
_MOST_INSERTED = 50  # columns: of a frame that more are inserted into, pandas warns
_BACKENDS = (None, "numpy_nullable", "pyarrow")


def to_pandas(table: pa.Table, dtype_backend: DtypeBackend | None = None, *, whole_file: bool = False) -> pd.DataFrame:
    """The DataFrame of a table.

    `dtype_backend` is that of pandas' readers. None: NumPy dtypes, but `Int64` and its like for integers with missing
    values, `boolean` for bools and `str` for text; dtypes that the frame had when it was written win. If the table is
    a `whole_file`, a RangeIndex in the metadata is restored if it has the table's length. Levels without a name of an
    index that the metadata no longer states are left out.

    Examples
    --------
    >>> to_pandas(pa.table({"n": pa.array([1, None])})).dtypes["n"]
    Int64Dtype()
    """
    if dtype_backend not in _BACKENDS:
        raise ValueError(f"dtype_backend={dtype_backend!r}: expected one of {_BACKENDS}")
    stated = frame_description(table.schema)
    index_fields = stored_index(table.schema)
    others = {*index_fields, *lost_levels(table.schema)}
    data = table.select([name for name in table.column_names if name not in others]) if others else table
    frame = _frame(data, stated, dtype_backend)
    if index_fields:
        frame.index = _stored_index(table.select(index_fields), stated, dtype_backend)
    elif whole_file and (index := _range(stated, table.num_rows)) is not None:
        frame.index = index
    frame.columns = _labels(data.column_names, stated)
    frame.attrs = dict(stated["attributes"])
    return frame


# ---- the index and the labels


def _range(stated: Mapping[str, Any], rows: int) -> pd.RangeIndex | None:
    import pandas as pd

    indexes = [index for index in stated["index_columns"] if isinstance(index, dict)]
    described = next((index for index in indexes if index.get("kind") == "range"), None)
    if described is None:
        return None
    ends = [end for key in ("start", "stop", "step") if isinstance(end := described.get(key), int) and abs(end) < _FAR]
    if len(ends) < 3 or ends[2] == 0:
        return None
    values, name = range(*ends), described.get("name")
    return pd.RangeIndex(values, name=name if isinstance(name, str | int) else None) if len(values) == rows else None


def _stored_index(columns: pa.Table, stated: Mapping[str, Any], backend: str | None) -> pd.Index:
    import pandas as pd

    frame = _frame(columns, stated, backend)
    names = [_index_name(field, stated["columns"].get(field)) for field in columns.column_names]
    if len(names) > 1:
        return pd.MultiIndex.from_frame(_hashable(frame, columns.schema), names=names)
    level = frame.iloc[:, 0]
    return pd.Index(level, dtype=level.dtype).rename(names[0])


def _hashable(frame: pd.DataFrame, schema: pa.Schema) -> pd.DataFrame:
    """The levels of an index, lists as tuples; SchemaError if values of a level cannot be in an index."""
    for field in schema:
        if isinstance(field.type, pa.BaseExtensionType) or not (is_list_like(field.type) or t.is_struct(field.type)):
            continue
        try:
            if is_list_like(field.type):
                frame[field.name] = frame[field.name].map(tuple, na_action="ignore").astype(object)
            frame[field.name].map(hash)
        except TypeError as error:
            reason = f"the pandas metadata makes it a level of the index, which cannot have values of {field.type}"
            advice = "read the file with read_table, or pass schema='infer'"
            raise SchemaError(reason, feature=field.name, got=str(field.type), advice=advice) from error
    return frame


def _index_name(field: str, entry: Mapping[str, Any] | None) -> str | None:
    name = field if entry is None else entry.get("name")
    return None if name == field and is_unnamed(field) else name


def _labels(names: list[str], stated: Mapping[str, Any]) -> pd.Index:
    """The column labels: text, or those of the frame if it had every column."""
    import pandas as pd

    if not stated["column_indexes"] or not all(name in stated["columns"] for name in names):
        return pd.Index(names)
    entries = [{**stated["columns"][name], "field_name": name, "pandas_type": "object"} for name in names]
    empty = pa.table({name: pa.array([], pa.null()) for name in names})
    try:
        return empty.replace_schema_metadata(_metadata(entries, stated["column_indexes"])).to_pandas().columns
    except Exception:  # any writer may have made the metadata, and pandas raises errors of any type
        return pd.Index(names)


def _metadata(columns: list[dict[str, Any]], column_indexes: Sequence[Any] = ()) -> dict[bytes, str]:
    return {KEY: json.dumps({"index_columns": [], "column_indexes": column_indexes, "columns": columns})}


# ---- dtypes


def _frame(table: pa.Table, stated: Mapping[str, Any], backend: str | None) -> pd.DataFrame:
    """The columns of a table as a frame with text labels and no index of its own."""
    import pandas as pd

    if not table.num_columns:  # with new metadata a table without columns would lose its rows (pyarrow 26)
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    others = uncommon(table.schema)
    cells = {at: _cells(table, at) for at in others if _holds_tensors(table.schema.field(at).type)}
    if backend != "pyarrow":
        cells |= _lists_of_numbers(table, others, stated)
    if cells:
        frame = _frame(table.select([at for at in range(table.num_columns) if at not in cells]), stated, backend)
        for at in sorted(cells):
            frame.insert(at, table.schema.field(at).name, pd.Series(cells[at], frame.index, object))
        return frame
    if backend != "pyarrow":
        table = zones_that_python_has(table)
    try:
        return _converted(table, stated, backend)
    except NO_PYTHON_FORM as error:
        if table.num_columns > 1:
            parts = [_frame(table.select([at]), stated, backend) for at in range(table.num_columns)]
            return pd.concat(parts, axis=1)
        return _frame_of_one(table, stated, backend, error)


def _frame_of_one(table: pa.Table, stated: Mapping[str, Any], backend: str | None, error: Exception) -> pd.DataFrame:
    """The frame of a column that pandas does not convert as it is, because of `error`."""
    import pandas as pd

    field = table.schema.field(0)
    if field.name in stated["columns"]:
        return _frame(table, {**stated, "columns": {}}, backend)
    if (wider := as_numpy_time(table.column(0))) is not None:
        return _frame(pa.table({field.name: wider}), stated, backend)
    if is_list_like(field.type) or t.is_struct(field.type):
        return pd.DataFrame({field.name: pd.Series(_cells(table, 0), dtype=object)})
    reason = f"its values of {printable(field.type)} cannot be in a DataFrame ({type(error).__name__})"
    raise SchemaError(reason, feature=field.name, got=str(field.type), advice="read it with read_table") from error


def _converted(table: pa.Table, stated: Mapping[str, Any], backend: str | None) -> pd.DataFrame:
    """The frame of columns that are not tensors, as pyarrow converts them."""
    import pandas as pd

    entries, by_type = [], not stated["columns"]
    for at, field in enumerate(table.schema):
        dtype = _dtype_name(field, table, at, stated["columns"].get(field.name, {}).get("numpy_type"))
        if dtype != "object" and not (by_type and dtype == "str"):
            names = {"name": field.name, "field_name": field.name}
            entries.append({**names, "pandas_type": "object", "numpy_type": dtype, "metadata": None})
    mapper = {"pyarrow": pd.ArrowDtype, "numpy_nullable": _nullable}.get(backend or "")
    if backend is None and by_type:  # a dtype for each text column by its name takes pandas long to find
        mapper = _text_mapper()
    with memory_errors():
        return table.replace_schema_metadata(_metadata(entries) if entries else None).to_pandas(types_mapper=mapper)


def _holds_tensors(type_: pa.DataType) -> bool:
    if is_any_tensor(type_):
        return True
    if t.is_struct(type_):
        return any(_holds_tensors(child.type) for child in type_)
    return is_list_like(type_) and _holds_tensors(type_.value_type)


def _cells(table: pa.Table, at: int) -> Array:
    """A column of tensors, or of lists of them, as ndarrays; of structs as dicts."""
    field, chunks = table.schema.field(at), table.column(at).chunks
    if is_any_tensor(field.type) or is_list_of_tensors(field.type):
        return np.concatenate([np.empty(0, object), *(tensor_cells(chunk, field) for chunk in chunks)])
    nested = np.empty(table.num_rows, object)
    for number, value in enumerate(cell(chunk, row, field) for chunk in chunks for row in range(len(chunk))):
        nested[number] = value
    return nested


def _lists_of_numbers(table: pa.Table, columns: Iterable[int], stated: Mapping[str, Any]) -> dict[int, Array]:
    """The cells of those columns that are lists of numbers: views, where pyarrow copies a column of several chunks."""
    cells = {}
    for at in columns:
        field = table.schema.field(at)
        if not (t.is_list(field.type) or t.is_large_list(field.type)) or not _is_plain_number(field.type.value_type):
            continue
        chunks = table.column(at).chunks
        if stated["columns"].get(field.name, {}).get("numpy_type", "object") != "object":
            continue
        if any(chunk.flatten().null_count for chunk in chunks):  # floats with NaN, of pyarrow
            continue
        rows = [to_rows(chunk, pa.field("", field.type)) for chunk in chunks]
        cells[at] = joined_objects(rows)  # type: ignore[arg-type]
    return cells if len(cells) <= _MOST_INSERTED else {}


def _is_plain_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_float32(type_) or t.is_float64(type_))


def _dtype_name(field: pa.Field, table: pa.Table, at: int, stated: str | None) -> str:
    """Name of the dtype of column `at`; "object" means that Arrow chooses."""
    type_ = field.type
    if stated is not None and _restores(stated, type_):
        return stated
    if t.is_integer(type_) and table.column(at).null_count:
        return _masked_integer(type_)
    if t.is_boolean(type_) and (stated != "bool" or table.column(at).null_count):
        return "boolean"
    if t.is_string(type_) or t.is_large_string(type_):
        return "str"
    return "object"


def _masked_integer(type_: pa.DataType) -> str:
    return ("UInt" if t.is_unsigned_integer(type_) else "Int") + str(type_.bit_width)


def _restores(stated: str, type_: pa.DataType) -> bool:
    """Whether `stated` names an extension dtype that values of `type_` can be."""
    import pandas as pd

    try:
        dtype = pd.api.types.pandas_dtype(stated)
    except Exception:  # any writer may have made the metadata, and pandas raises errors of any type
        return False
    if isinstance(dtype, pd.ArrowDtype):
        return bool(dtype.pyarrow_dtype == type_)
    if isinstance(dtype, pd.StringDtype):
        return bool(t.is_string(type_) or t.is_large_string(type_))
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype) or not hasattr(dtype, "__from_arrow__"):
        return False  # pyarrow cannot make it, such as a sparse one
    kinds = {"i": t.is_signed_integer, "u": t.is_unsigned_integer, "f": t.is_floating, "b": t.is_boolean}
    is_masked = dtype.kind in kinds and kinds[dtype.kind](type_)
    return bool(is_masked and dtype.itemsize >= type_.bit_width // 8)


def _text_mapper() -> Callable[[pa.DataType], Any] | None:
    """The function from an Arrow type to pandas' dtype for text; None where pandas has no dtype of its own for it."""
    import pandas as pd

    dtype = pd.api.types.pandas_dtype("str")
    if not isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return None
    return lambda type_: dtype if t.is_string(type_) or t.is_large_string(type_) else None


def _nullable(type_: pa.DataType) -> Any:
    """pandas' nullable dtype for an Arrow type; None if it has none."""
    import pandas as pd

    if t.is_integer(type_):
        return pd.api.types.pandas_dtype(_masked_integer(type_))
    if t.is_float32(type_) or t.is_float64(type_):
        return pd.api.types.pandas_dtype(f"Float{type_.bit_width}")
    if t.is_boolean(type_):
        return pd.BooleanDtype()
    if t.is_string(type_) or t.is_large_string(type_):
        return pd.StringDtype()
    return pd.Int64Dtype() if t.is_null(type_) else None
