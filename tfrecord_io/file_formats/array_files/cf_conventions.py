"""Names of dimensions and packed values, as NetCDF files, and those that xarray writes, have them: the CF conventions.

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

from tfrecord_io.arrow.input.from_xarray import record_dimension
from tfrecord_io.engine.contract import Array
from tfrecord_io.errors import DecodeError, EncodeError, MissingDependencyError, SchemaError, printable
from tfrecord_io.file_formats.array_files.array_stream import ArrayStream, Project, needed_arrays, stream_of
from tfrecord_io.file_formats.array_files.stored_arrays import (
    EXCLUDE,
    EXCLUDE_CLI,
    StoredArray,
    bytes_column,
    library_errors,
    text_column,
)
from tfrecord_io.schema.array_attributes import TYPE, is_other_time
from tfrecord_io.schema.type_names import as_arrow_type

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
    """What a file says about an array, or, under the path of a group with its slash, about a group."""

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
    arrays = placed({name: open(name) for name in needed_arrays(names, project)}, labels, record_dim, open)
    units_of_bounds = _units_of_bounds(labels) if decode_cf else {}
    for name, array in arrays.items():
        stated = labels[name].attributes.pop(TYPE, None)
        if decode_cf:
            group, _, own = name.rpartition("/")
            attributes = {**units_of_bounds.get((group, own), {}), **labels[name].attributes}
            array = decoded(name, array, attributes, name in texts)
        else:
            array.attributes = labels[name].attributes
        arrays[name] = array if stated is None else _typed(array, str(stated))
    return stream_of(arrays, files, 1, advice=EXCLUDE)


def _typed(array: StoredArray, stated: str) -> StoredArray:
    """An array of times with the type that it was written of, if these are decoded."""
    empty = array.empty()
    if not isinstance(empty, np.ndarray) or empty.dtype.kind not in "mM" or empty.ndim > 1:
        return array
    try:
        type_ = as_arrow_type(stated)
    except (SchemaError, TypeError):
        type_ = pa.null()
    is_time = pa.types.is_time(type_)
    if not is_other_time(type_) or is_time != (empty.dtype.kind == "m"):
        reason = f"its attribute '{TYPE}' is '{printable(stated)}', and its values are {empty.dtype}"
        raise DecodeError(reason, path=array.path, expected="times of day, or with a zone", got=stated)
    steps = [pa.timestamp(type_.unit)] if not is_time else [pa.duration(type_.unit), pa.int64()]
    if is_time and type_.bit_width == 32:
        steps.append(pa.int32())

    def convert(values: Array) -> pa.Array:
        with library_errors(array.path):
            return reduce(pa.Array.cast, [*steps, type_], pa.array(array.convert(values)))

    return replace(array, convert=convert)


def plain_attribute(value: Any) -> Any:
    """An attribute as Python and NumPy have it: text, one number instead of an array of one."""
    if isinstance(value, np.ndarray) and value.size == 1 and value.dtype.kind != "V":
        value = value.reshape(())[()]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def placed(
    arrays: Mapping[str, StoredArray],
    labels: Mapping[str, Label],
    record_dim: str | None,
    open: Callable[[str], StoredArray],
) -> dict[str, StoredArray]:
    """The arrays with rows of one dimension first; coordinates and single values without it are repeated.

    They stay as they are if one has no names of dimensions; EncodeError if the first ones of others differ then.
    """
    dims = {name: labels[name].dims for name in arrays}
    named = {name: own for name, own in dims.items() if own is not None}
    if len(named) < len(dims):
        if record_dim is not None:
            nameless = next(name for name in dims if name not in named)
            reason: str = f"record_dim={record_dim!r}: its dimensions have no names"
            raise EncodeError(reason, feature=nameless, path=arrays[nameless].path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        first = {own[0]: name for name, own in named.items() if own}
        if len(first) > 1:  # of which positions would be joined, as others tell nothing
            shown = ", ".join(f"'{printable(dim)}' ({printable(name)})" for dim, name in list(first.items())[:8])
            nameless = next(name for name in dims if name not in named)
            reason = f"its dimensions have no names, and the first ones of other arrays differ: {shown}"
            raise EncodeError(reason, feature=nameless, path=arrays[nameless].path, hint=EXCLUDE, hint_cli=EXCLUDE_CLI)
        return dict(arrays)
    coordinates = _coordinates(labels)
    chosen = named
    if not any(own and name not in coordinates for name, own in named.items()):  # rows are those of all variables
        every = {name: label.dims for name, label in labels.items() if label.dims is not None}
        chosen = {name: own for name, own in every.items() if record_dim is None or record_dim in own} or every
    dim = record_dimension(chosen, coordinates, record_dim, advice=EXCLUDE)
    sized = next(name for name, own in chosen.items() if dim in own)
    count = (arrays.get(sized) or open(sized)).shape[chosen[sized].index(dim)]
    found = {}
    for name, array in arrays.items():
        own = array.along(named[name].index(dim)) if dim in named[name] else array.repeated(count)
        found[name] = replace(own, dims=[each.rpartition("/")[2] for each in named[name] if each != dim])
    return found


def _coordinates(labels: Mapping[str, Label]) -> set[str]:
    """The variables that say where values are: those named as their dimension, and those that others name."""
    found = set()
    for name, label in labels.items():
        group, _, own = name.rpartition("/")
        if label.dims is not None and [dim.rpartition("/")[2] for dim in label.dims] == [own]:
            found.add(name)
        for key in _LISTS:
            if isinstance(listed := label.attributes.get(key), str):
                found |= {f"{group}/{each.rstrip(':')}" if group else each.rstrip(":") for each in listed.split()}
    return found


def decoded(name: str, array: StoredArray, attributes: Mapping[str, Any], is_text: bool) -> StoredArray:
    """An array that decodes its values, by xarray, where its attributes ask for it, or its last axis has characters.

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
        array = replace(array, convert=lambda values: _masked(stored(values), missing))
    reason = "characters" if is_text else _encoding(attributes, array.dtype)
    if reason is None:
        return replace(array, attributes=_kept(attributes))
    try:
        import xarray as xr
    except ImportError as error:
        what = f"its values are encoded by the CF conventions ({reason}), which xarray decodes, and it is not installed"
        advice = f"pip install 'tfrecord_io[xarray]'; {_RAW}"
        advice_cli = f"pip install 'tfrecord_io[xarray]'; {_RAW_CLI}"
        raise MissingDependencyError(what, path=array.path, feature=name, hint=advice, hint_cli=advice_cli) from error
    is_time = _is_time(attributes)
    times = xr.coders.CFDatetimeCoder(time_unit=_unit_of_numbers(attributes, array.dtype))

    def as_variable(values: Array) -> Any:
        if values.dtype == "S1" and not is_text:
            values = values.astype("S2")  # which xarray does not join
        variable = (tuple(f"{name}_axis_{i}" for i in range(values.ndim)), values, attributes)
        durations = str(attributes.get("dtype", "")).startswith("timedelta64")
        with library_errors(f"{array.path}: {reason}", _RAW):
            dataset = xr.decode_cf(
                xr.Dataset({name: variable}), decode_coords=False, decode_times=times, decode_timedelta=durations
            )
            result = dataset.variables[name]
            return result.copy(data=result.values)  # which decodes them

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
        return _masked(text_column(result) if result.dtype.kind == "O" else result, missing)

    return replace(array, convert=convert, attributes=_kept(sample.attrs))


def _texts(names: Mapping[str, np.dtype[Any]], labels: Mapping[str, Label]) -> dict[str, tuple[str, ...]]:
    """Arrays of characters, without their last dimension, if it only counts the characters of texts.

    As in xarray, a dimension that other arrays have, or that has coordinates, does not.
    """
    dims = {name: own for name in names if (own := labels[name].dims)}
    others = {dim for name, own in dims.items() for dim in (own[:-1] if names[name].kind == "S" else own)}
    texts = [name for name in dims if names[name] == "S1" and (others or len(dims[name]) > 1)]
    return {name: dims[name][:-1] for name in texts if not {dims[name][-1]} & {*others, *names}}


def _missing_texts(attributes: Mapping[str, Any]) -> list[str]:
    """The texts that stand for missing ones."""
    values = [attributes.get(key) for key in FILLS]
    flat = [each for value in values for each in (value if isinstance(value, list | np.ndarray) else [value])]
    return [each for each in flat if isinstance(each, str)]


def _masked(values: Any, missing: list[str]) -> Any:
    """A column of text or bytes, or of lists of these, with nulls instead of values that stand for missing ones."""
    if not missing:
        return values
    if isinstance(values, np.ndarray):
        values = bytes_column(values) if values.dtype.kind == "S" else text_column(values)
    if pa.types.is_list(values.type):
        return pa.ListArray.from_arrays(values.offsets, _masked(values.values, missing))
    if not pa.types.is_string(values.type) and not pa.types.is_binary(values.type):
        return values
    return pc.if_else(pc.is_in(values, pa.array(missing).cast(values.type)), None, values)


def _kept(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those that say more than how values were stored."""
    return {name: value for name, value in attributes.items() if name not in (*PACKING, "coordinates")}


def _units_of_bounds(labels: Mapping[str, Label]) -> dict[tuple[str, str], dict[str, Any]]:
    """By group and name of the bounds of times: the units of their variables, as bounds have none of their own."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for name, label in labels.items():
        if "bounds" in label.attributes and _is_time(label.attributes):
            bounds = name.rpartition("/")[0], str(label.attributes["bounds"])
            kept = "units", "calendar"
            found.setdefault(bounds, {key: value for key, value in label.attributes.items() if key in kept})
    return found


def _unit_of_numbers(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> _Unit:
    """The unit of times as xarray decodes them: of integers that count from NumPy's own epoch, what they count."""
    unit, _, epoch = str(attributes.get("units", "")).partition(" since ")
    return _UNITS_OF_NUMPY.get(unit, "ns") if dtype.kind in "iu" and epoch == _EPOCH else "ns"


def _is_time(attributes: Mapping[str, Any]) -> bool:
    return " since " in str(attributes.get("units", ""))


def _encoding(attributes: Mapping[str, Any], dtype: np.dtype[Any]) -> str | None:
    """Why the stored values are not those that are meant; None if they are."""
    if dtype.kind == "S" and "_Encoding" in attributes:
        return "_Encoding"
    if dtype.kind not in "iuf":
        return None
    if _is_time(attributes):
        return f"units of {printable(attributes['units'])!r}"
    if (meant := str(attributes.get("dtype", ""))) == "bool" or meant.startswith("timedelta64"):
        return f"dtype {meant}"
    floats = {key: value for key, value in attributes.items() if isinstance(value, float | np.floating)}
    nans = {key for key in FILLS if key in floats and math.isnan(floats[key])}
    found = [key for key in PACKING if key in attributes and key not in nans]
    return ", ".join(found) or None
