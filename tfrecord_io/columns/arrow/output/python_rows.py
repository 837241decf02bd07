"""Single records as dicts of Python values, equal to those of `tfrecord_io.columns.arrow.output.to_python.cell`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.bytes import Array, Checks, Engine, FeatureColumns, FrameHeader, Plan, ShapeSource, get_engine
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder, Form, Nesting, Value
from tfrecord_io.columns.arrow.output.to_python import python_value
from tfrecord_io.columns.schema.column_features import LIST, RAW
from tfrecord_io.columns.schema.field import CONTEXT, Field
from tfrecord_io.columns.schema.tensor_types import element_and_shape, is_fixed_shape_tensor
from tfrecord_io.columns.schema.types import is_bytes, is_list_like, is_number, is_text


class _General(Exception):
    """A value that the general way has to look at."""


class RecordDicts:
    """Makes dicts of records, by the plan of the decoder; threads may share it.

    `finish` makes the values of some columns, in the dict of a record, those of their types; `_General` if they are not
    plainly of these.
    """

    def __init__(
        self, plan: Plan, forms: Sequence[Engine.ObjectForm], finish: Sequence[Callable[[dict[str, Any]], None]]
    ) -> None:
        self._plan, self._forms, self._finish = plan, forms, finish
        self._idle: list[Engine.ObjectDecoder] = []

    @classmethod
    def from_builder(cls, builder: BatchBuilder, plan: Plan, *, as_bytes: bool = False) -> RecordDicts | None:
        """The rows of a schema; None if one of its columns, or the engine, does not allow it.

        With `as_bytes`, a record is its bytes, under the name of the one column.
        """
        if as_bytes:
            return PayloadDicts(plan, builder.schema.names[0]) if len(builder.schema) == 1 else None
        slots = {column.name: slot for slot, column in enumerate(plan.columns)}
        columns = builder.column_forms()
        if len(columns) < len(builder.schema) or len(slots) < len(plan.columns):
            return None
        forms: list[Engine.ObjectForm] = []
        finish: list[Callable[[dict[str, Any]], None]] = []
        for field, form in columns:
            added = _plan_column(field, form, slots, builder.dictionaries.get(field.feature))
            if added is None:
                return None
            forms += added[0]
            finish += added[1]
        rows = cls(plan, forms, finish)
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
        if row is not None and self._finish:
            try:
                for finish in self._finish:
                    finish(row)
            except _General:
                return None
        return row


class PayloadDicts(RecordDicts):
    """Dicts of records that are read as bytes, with the bytes under the name of the column."""

    def __init__(self, plan: Plan, name: str) -> None:
        super().__init__(plan, (), ())
        self._name = name

    def row(self, frame: Any) -> dict[str, Any] | None:
        """See `RecordDicts.row`."""
        plan = self._plan
        checks = Checks.from_check_crc(plan.check_crc, payloads=True)
        frames, fault = get_engine().scan(frame, checks=checks, max_record_bytes=plan.max_record_bytes)
        if fault is not None or len(frames.starts) != 1 or frames.consumed != len(frame):
            return None
        return {self._name: frame[FrameHeader.BYTES : -FrameHeader.FOOTER_BYTES].tobytes()}


_Added = tuple[list[Engine.ObjectForm], list[Callable[[dict[str, Any]], None]]]


def _plan_column(field: Field, form: Array, slots: Mapping[str, int], dictionary: pa.Array | None) -> _Added | None:
    """How the values of a column are decoded, and what finishes them; None if it needs the general way."""
    name, type_ = field.column, field.type
    if field.feature not in slots:
        return None

    def as_is(form: Array, dtype: np.dtype[Any] | None = None) -> list[Engine.ObjectForm]:
        return [Engine.ObjectForm(name, slots[field.feature], np.ascontiguousarray(form), dtype)]

    if int(form[0]) == Value.OTHER:  # NumPy's comparison looks for methods of the enum, and ignores Ctrl-C meanwhile
        if not (field.default is None and field.empty is None and field.part == CONTEXT):
            return None
        if t.is_dictionary(type_) and is_text(type_.value_type) and field.encoding == LIST:
            categories = None if dictionary is None else frozenset(dictionary.to_pylist())
            return as_is(_TEXT), [] if categories is None else [partial(_check_category, name, categories)]
        return _tensor(field, slots)
    if not is_list_like(type_):
        if not t.is_temporal(type_):
            return as_is(form), []
        return as_is(form), [partial(_convert, name, lambda number: python_value(pa.scalar(number, type_)))]  # a time
    value = type_.value_type
    dtype = np.dtype(value.to_pandas_dtype()) if is_number(value) else None
    if dtype is None and not (is_text(value) or is_bytes(value)):
        return None
    return as_is(form, dtype), [partial(_convert, name, partial(np.fromiter, dtype=object))] if dtype is None else []


def _tensor(field: Field, slots: Mapping[str, int]) -> _Added | None:
    """Tensors of numbers of a fixed shape as raw bytes, which their companions may state, too."""
    if not is_fixed_shape_tensor(field.type) or field.encoding != RAW:
        return None
    element, shape = element_and_shape(field.tensor)
    is_plain = element.dtype.kind in "iuf" and not element.inner and element.dtype.isnative
    hidden = [(feature, slots[feature]) for feature in ShapeSource.companions(field.feature) if feature in slots]
    if not is_plain or not shape or len(hidden) not in (0, 2):
        return None
    of_shape = _INTEGERS if len(shape) > 1 else _INTEGER  # a feature with one value in each record is not a list
    forms = [Engine.ObjectForm(field.column, slots[field.feature], _BINARY, None)]
    forms += [
        Engine.ObjectForm(feature + FeatureColumns.LIST_MARK, slot, form, dtype)
        for (feature, slot), form, dtype in zip(hidden, (of_shape, _BINARY), (np.dtype(np.int64), None), strict=False)
    ]
    companion_names = tuple(feature + FeatureColumns.LIST_MARK for feature, _ in hidden)
    finish = partial(
        _finish_tensor,
        name=field.column,
        companion_names=companion_names,
        dtype=element.dtype,
        shape=shape,
        word=element.name.encode(),
    )
    return forms, [finish]


def _finish_tensor(
    row: dict[str, Any],
    *,
    name: str,
    companion_names: tuple[str, ...],
    dtype: np.dtype[Any],
    shape: Sequence[Any],
    word: bytes,
) -> None:
    content = row[name]
    for companion, expected in zip(companion_names, (list(shape), word), strict=False):
        value = row.pop(companion)
        value = [value] if isinstance(value, int) else value.tolist() if isinstance(value, np.ndarray) else value
        if value is not None and (content is None or value != expected):
            raise _General
    if content is not None:
        if len(content) != math.prod(shape) * dtype.itemsize:
            raise _General
        row[name] = np.frombuffer(content, dtype).reshape(shape).copy()


def _check_category(name: str, known: frozenset[str], row: dict[str, Any]) -> None:
    if row[name] is not None and row[name] not in known:
        raise _General


def _convert(name: str, convert: Callable[[Any], Any], row: dict[str, Any]) -> None:
    value = row[name]
    if value is not None:
        row[name] = convert(value)


_TEXT = np.array(Form(Value.TEXT), np.int64)
_BINARY = np.array(Form(Value.BYTES), np.int64)
_INTEGER = np.array(Form(Value.INT, bits=64, low=-(2**63), high=2**63 - 1), np.int64)
_INTEGERS = np.array(Form(Value.INT, Nesting.LIST, bits=64, low=-(2**63), high=2**63 - 1), np.int64)
