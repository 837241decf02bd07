"""CF conventions of NetCDF files and of xarray: names of dimensions, packed values, and times.

https://cfconventions.org: ``scale_factor``, ``add_offset`` and ``_FillValue`` of packed numbers, ``units`` of times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tfrecord_io.apps.file_formats.array_files.array_stream import ArrayStream, Project, needed_arrays, stream_of
from tfrecord_io.apps.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    library_errors,
    text_column,
)
from tfrecord_io.columns import Column, record_dimension
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError
from tfrecord_io.kit import Array, needs, printable

PACKING = ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned")
FILLS = ("_FillValue", "missing_value")
_Unit = Literal["s", "ms", "us", "ns"]
_UNITS_OF_NUMPY: Mapping[str, _Unit] = {"seconds": "s", "milliseconds": "ms", "microseconds": "us"}
_EPOCH = "1970-01-01"
_LISTS = ("coordinates", "bounds", "grid_mapping")  # attributes that name other variables
_RAW = "decode_cf=False reads the stored values"
_RAW_CLI = "--no-decode-cf reads the stored values"


@dataclass(slots=True)
class Label:
    """Dimensions and attributes of an array, or, under the path of a group with its slash, of a group."""

    dims: tuple[str, ...] | None = None  # None: they have no names
    attributes: dict[str, Any] = field(default_factory=dict)


def stream_of_group(
    names: Mapping[str, np.dtype[Any]],
    open: Callable[[str], StoredArray],
    files: ExitStack,
    path: str,
    project: Project,
    labels: Mapping[str, Label],
    *,
    record_dim: str | None = None,
    decode_cf: bool = True,
) -> ArrayStream:
    """A stream of the arrays of a file, of those whose columns are needed; `files` are closed with it.

    `names` and `labels` are those of all arrays; the rows are the positions of `record_dim`, by default the first
    dimension that all share, if dimensions have names.
    """
    if not names:
        raise DecodeError("it has no arrays", path=path, expected="arrays with a row for each record")
    texts = _texts(names, labels) if decode_cf else {}
    labels = {**labels, **{name: replace(labels[name], dims=dims) for name, dims in texts.items()}}
    arrays = put_rows_first({name: open(name) for name in needed_arrays(names, project)}, labels, record_dim, open)
    units_of_bounds = _units_of_bounds(labels) if decode_cf else {}
    for name, array in arrays.items():
        type_name = labels[name].attributes.pop(Column.TYPE_ATTRIBUTE, None)
        if decode_cf:
            group, _, local_name = name.rpartition("/")
            attributes = {**units_of_bounds.get((group, local_name), {}), **labels[name].attributes}
            array = decode_array(name, array, attributes, name in texts)
        else:
            array.attributes = labels[name].attributes
        arrays[name] = array if type_name is None else _restore_time_type(array, str(type_name))
    return stream_of(arrays, files, 1, advice=EXCLUDE)


def _restore_time_type(array: StoredArray, type_name: str) -> StoredArray:
    """Cast decoded times back to the type from which they were written."""
    empty = array.empty()
    if not isinstance(empty, np.ndarray) or empty.dtype.kind not in "mM" or empty.ndim > 1:
        return array
    try:
        type_ = Column.parse(type_name).type
    except (SchemaError, TypeError):
        type_ = pa.null()
    is_time = pa.types.is_time(type_)
    if not Column(type_).is_other_time or is_time != (empty.dtype.kind == "m"):
        reason = (
            f"its attribute '{Column.TYPE_ATTRIBUTE}' is '{printable(type_name)}', and its values are {empty.dtype}"
        )
        raise DecodeError(reason, path=array.path, expected="times of day, or with a zone", got=type_name)
    steps = [pa.timestamp(type_.unit)] if not is_time else [pa.duration(type_.unit), pa.int64()]
    if is_time and type_.bit_width == 32:
        steps.append(pa.int32())

    def convert(values: Array) -> pa.Array:
        with library_errors(array.path):
            return reduce(pa.Array.cast, [*steps, type_], pa.array(array.convert(values)))

    return replace(array, convert=convert)


def plain_attribute(value: Any) -> Any:
    """Convert an attribute to Python's and NumPy's types: text, a number instead of an array of length 1."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind != "V":
        value = value.reshape(())[()]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def put_rows_first(
    arrays: Mapping[str, StoredArray],
    labels: Mapping[str, Label],
    record_dim: str | None,
    open: Callable[[str], StoredArray],
) -> dict[str, StoredArray]:
    """The arrays with rows of one dimension first; coordinates and single values without it are repeated.

    They stay as they are if one has no names of dimensions; EncodeError if the first ones of others differ then.
    """
    dims = {name: labels[name].dims for name in arrays}
    named = {name: array_dims for name, array_dims in dims.items() if array_dims is not None}
    if len(named) < len(dims):
        if record_dim is not None:
            nameless = next(name for name in dims if name not in named)
            reason: str = f"record_dim={record_dim!r}: its dimensions have no names"
            raise EncodeError(reason, feature=nameless, path=arrays[nameless].path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        first = {array_dims[0]: name for name, array_dims in named.items() if array_dims}
        if len(first) > 1:  # arrays would be joined by position, for lack of names
            shown = ", ".join(f"'{printable(dim)}' ({printable(name)})" for dim, name in list(first.items())[:8])
            nameless = next(name for name in dims if name not in named)
            reason = f"its dimensions have no names, and the first ones of other arrays differ: {shown}"
            raise EncodeError(reason, feature=nameless, path=arrays[nameless].path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        return dict(arrays)
    coordinates = _coordinates(labels)
    dims_of_candidates = named
    if not any(array_dims and name not in coordinates for name, array_dims in named.items()):
        # rows are those of all variables
        every = {name: label.dims for name, label in labels.items() if label.dims is not None}
        dims_of_candidates = {
            name: array_dims for name, array_dims in every.items() if record_dim is None or record_dim in array_dims
        } or every
    dim = record_dimension(dims_of_candidates, coordinates, record_dim, advice=EXCLUDE)
    name_with_dim = next(name for name, array_dims in dims_of_candidates.items() if dim in array_dims)
    count = (arrays.get(name_with_dim) or open(name_with_dim)).shape[dims_of_candidates[name_with_dim].index(dim)]
    placed_arrays = {}
    for name, array in arrays.items():
        rows_first = array.along(named[name].index(dim)) if dim in named[name] else array.repeat_rows(count)
        placed_arrays[name] = replace(
            rows_first, dims=[dim_name.rpartition("/")[2] for dim_name in named[name] if dim_name != dim]
        )
    return placed_arrays


def _coordinates(labels: Mapping[str, Label]) -> set[str]:
    """Names of coordinate variables: named like their dimension, or listed in an attribute of other variables."""
    coordinates = set()
    for name, label in labels.items():
        group, _, local_name = name.rpartition("/")
        if label.dims is not None and [dim.rpartition("/")[2] for dim in label.dims] == [local_name]:
            coordinates.add(name)
        for key in _LISTS:
            if isinstance(coordinate_names := label.attributes.get(key), str):
                coordinates |= {
                    f"{group}/{word.rstrip(':')}" if group else word.rstrip(":") for word in coordinate_names.split()
                }
    return coordinates


def decode_array(name: str, array: StoredArray, attributes: Mapping[str, Any], is_text: bool) -> StoredArray:
    """Decode an array with xarray if the attributes ask for it, or the last axis has characters.

    Raises
    ------
    MissingDependencyError
        xarray is not installed.
    EncodeError
        Its dates are of a calendar that no type has.
    """
    missing = _missing_texts(attributes) if array.dtype.kind in "OSTU" else []
    if missing:  # xarray does not find bytes that stand for missing text, or text for bytes
        attributes = {key: value for key, value in attributes.items() if key not in FILLS}
        stored = array.convert
        array = replace(array, convert=lambda values: _mask_missing(stored(values), missing))
    reason = "characters" if is_text else _encoding(attributes, array.dtype)
    if reason is None:
        return replace(array, attributes=_attributes_of_content(attributes))
    what = f"decoding of values that are encoded by the CF conventions ({reason})"
    with needs("xarray", what, hint=_RAW, hint_cli=_RAW_CLI, path=array.path, feature=name):
        import xarray as xr
    is_time = _is_time(attributes)
    times = xr.coders.CFDatetimeCoder(time_unit=_unit_of_numbers(attributes, array.dtype))

    def as_variable(values: Array) -> Any:
        if values.dtype == "S1" and not is_text:
            values = values.astype("S2")  # xarray does not join S1 alone
        variable = (tuple(f"{name}_axis_{i}" for i in range(values.ndim)), values, attributes)
        durations = str(attributes.get("dtype", "")).startswith("timedelta64")
        with library_errors(f"{array.path}: {reason}", _RAW):
            dataset = xr.decode_cf(
                xr.Dataset({name: variable}), decode_coords=False, decode_times=times, decode_timedelta=durations
            )
            result = dataset.variables[name]
            return result.copy(data=result.values)  # `values` decodes

    ends = [array.rows_of(0, 1), array.rows_of(array.rows - 1, array.rows)] if array.rows and is_time else []
    sample = as_variable(np.concatenate(ends) if ends else np.empty((0, *array.shape[1:]), array.dtype))
    if sample.dtype.kind == "O" and is_time:
        what = f"its dates ({reason}) are of a calendar, or in years, that no type has"
        raise EncodeError(
            what, path=array.path, feature=name, hint=f"{_RAW}, or {EXCLUDE}", hint_cli=f"{_RAW_CLI}, or {EXCLUDE_CLI}"
        )

    def convert(values: Array) -> Any:
        result = as_variable(values).values if len(values) else sample.values[:0]
        if result.dtype != sample.dtype and is_time:
            what = f"its times ({reason}) are {sample.dtype} at both ends and {result.dtype} between"
            raise DecodeError(what, path=array.path, feature=name, hint=_RAW, hint_cli=_RAW_CLI)
        return _mask_missing(text_column(result) if result.dtype.kind == "O" else result, missing)

    return replace(array, convert=convert, attributes=_attributes_of_content(sample.attrs))


def _texts(names: Mapping[str, np.dtype[Any]], labels: Mapping[str, Label]) -> dict[str, tuple[str, ...]]:
    """Arrays of characters, without their last dimension, if it only counts the characters of texts.

    As in xarray, a dimension that other arrays have, or that has coordinates, does not.
    """
    dims = {name: dimensions for name in names if (dimensions := labels[name].dims)}
    shared_dims = {
        dim for name, dimensions in dims.items() for dim in (dimensions[:-1] if names[name].kind == "S" else dimensions)
    }
    texts = [name for name in dims if names[name] == "S1" and (shared_dims or len(dims[name]) > 1)]
    return {name: dims[name][:-1] for name in texts if not {dims[name][-1]} & {*shared_dims, *names}}


def _missing_texts(attributes: Mapping[str, Any]) -> list[str]:
    """The texts that stand for missing ones."""
    values = [attributes.get(key) for key in FILLS]
    flat = [item for value in values for item in (value if isinstance(value, list | np.ndarray) else [value])]
    return [item for item in flat if isinstance(item, str)]


def _mask_missing(values: Any, missing: list[str]) -> Any:
    """Replace markers of missing values by nulls, in a column of text, of bytes, or of lists of these."""
    if not missing:
        return values
    if isinstance(values, np.ndarray):
        values = bytes_column(values) if values.dtype.kind == "S" else text_column(values)
    if pa.types.is_list(values.type):
        return pa.ListArray.from_arrays(values.offsets, _mask_missing(values.values, missing))
    if not pa.types.is_string(values.type) and not pa.types.is_binary(values.type):
        return values
    return pc.if_else(pc.is_in(values, pa.array(missing).cast(values.type)), None, values)


def _attributes_of_content(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes of the content, without those of the packing."""
    return {name: value for name, value in attributes.items() if name not in (*PACKING, "coordinates")}


def _units_of_bounds(labels: Mapping[str, Label]) -> dict[tuple[str, str], dict[str, Any]]:
    """Map bounds of times, by group and name, to the units of their variables, as bounds state none."""
    attributes_of_bounds: dict[tuple[str, str], dict[str, Any]] = {}
    for name, label in labels.items():
        if "bounds" in label.attributes and _is_time(label.attributes):
            bounds = name.rpartition("/")[0], str(label.attributes["bounds"])
            kept_keys = "units", "calendar"
            attributes_of_bounds.setdefault(
                bounds, {key: value for key, value in label.attributes.items() if key in kept_keys}
            )
    return attributes_of_bounds


def _unit_of_numbers(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> _Unit:
    """The unit of times as xarray decodes them: of integers that count from NumPy's own epoch, what they count."""
    unit, _, epoch = str(attributes.get("units", "")).partition(" since ")
    return _UNITS_OF_NUMPY.get(unit, "ns") if dtype.kind in "iu" and epoch == _EPOCH else "ns"


def _is_time(attributes: Mapping[str, Any]) -> bool:
    return " since " in str(attributes.get("units", ""))


def _encoding(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> str | None:
    """The encoding that makes stored values differ from the real values, in words; None if they are equal."""
    if dtype.kind == "S" and "_Encoding" in attributes:
        return "_Encoding"
    if dtype.kind not in "iuf":
        return None
    if _is_time(attributes):
        return f"units of {printable(attributes['units'])!r}"
    if (attribute_dtype := str(attributes.get("dtype", ""))) == "bool" or attribute_dtype.startswith("timedelta64"):
        return f"dtype {attribute_dtype}"
    floats = {key: value for key, value in attributes.items() if isinstance(value, float | np.floating)}
    nans = {key for key in FILLS if key in floats and math.isnan(floats[key])}
    keys = [key for key in PACKING if key in attributes and key not in nans]
    return ", ".join(keys) or None
