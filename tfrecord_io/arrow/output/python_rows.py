"""Single records as dicts of Python values, equal to those of `tfrecord_io.arrow.output.to_python.cell`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.arrow.decode.batch_builder import BatchBuilder
from tfrecord_io.arrow.output.to_python import python_value
from tfrecord_io.engine.contract import Array, Plan, RowDecoder, RowForm
from tfrecord_io.engine.select import get_engine
from tfrecord_io.schema.types import is_bytes, is_list_like, is_text


class PythonRows:
    """Makes dicts of records; threads may share it.

    Parameters
    ----------
    plan : Plan
        Of the decoder.
    forms : sequence of RowForm
    converted : mapping of str to callable
        How the values of some columns become those of their types.
    """

    def __init__(self, plan: Plan, forms: Sequence[RowForm], converted: dict[str, Callable[[Any], Any]]) -> None:
        self._plan, self._forms, self._converted = plan, forms, list(converted.items())
        self._idle: list[RowDecoder] = []

    @classmethod
    def of(cls, builder: BatchBuilder, plan: Plan) -> PythonRows | None:
        """The rows of a schema; None if one of its columns, or the engine, does not allow it."""
        slots = {column.name: slot for slot, column in enumerate(plan.columns)}
        columns = builder.column_forms()
        if len(columns) < len(builder.schema) or len(slots) < len(plan.columns):
            return None
        forms: list[RowForm] = []
        converted: dict[str, Callable[[Any], Any]] = {}
        for field, form in columns:
            type_ = field.type
            value = type_.value_type if is_list_like(type_) else type_
            dtype = None if type_ is value else _dtype_of(value)
            if field.feature not in slots or (type_ is not value and dtype is None and not _is_text(value)):
                return None
            if type_ is not value and dtype is None:
                converted[field.column] = _objects
            elif t.is_temporal(type_):
                converted[field.column] = partial(_of_number, type_)
            forms.append(RowForm(field.column, slots[field.feature], np.ascontiguousarray(form), dtype))
        rows = cls(plan, forms, converted)
        decoder = get_engine().row_decoder(plan, forms)
        if decoder is None:
            return None
        rows._idle.append(decoder)
        return rows

    def row(self, frame: Any) -> dict[str, Any] | None:
        """The record of a frame by its columns; None if it has to be decoded in the general way."""
        try:
            decoder = self._idle.pop()
        except IndexError:  # other threads use them
            new = get_engine().row_decoder(self._plan, self._forms)
            assert new is not None
            decoder = new
        row = decoder.row(frame)
        self._idle.append(decoder)
        if row is not None:
            for name, convert in self._converted:
                value = row[name]
                if value is not None:
                    row[name] = convert(value)
        return row


def _is_text(type_: pa.DataType) -> bool:
    return is_text(type_) or is_bytes(type_)


def _dtype_of(type_: pa.DataType) -> np.dtype[Any] | None:
    """The dtype of the array that a list of numbers becomes."""
    is_number = t.is_integer(type_) or t.is_floating(type_) or t.is_boolean(type_)
    return np.dtype(type_.to_pandas_dtype()) if is_number else None


def _of_number(type_: pa.DataType, number: int) -> Any:
    """A time as Python has it."""
    return python_value(pa.scalar(number, type_))


def _objects(values: list[Any]) -> Array:
    array = np.empty(len(values), object)
    array[:] = values
    return array
