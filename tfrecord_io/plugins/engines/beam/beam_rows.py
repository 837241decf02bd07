"""Rows of Beam with a schema, from Arrow and to Arrow; this module imports Beam, and is imported on first use.

Tests: tests/plugins/engines/test_beam.py.
"""

from __future__ import annotations

import datetime
import decimal
import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Optional

import numpy as np
import pyarrow as pa
from apache_beam import Row
from apache_beam.typehints.arrow_type_compatibility import ATOMIC_TYPE_TO_PYARROW
from apache_beam.typehints.row_type import RowTypeConstraint
from apache_beam.typehints.schemas import Date, MicrosInstant, MillisInstant, typing_to_runner_api
from apache_beam.utils.timestamp import Timestamp
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import Column

# ---- rows to read

_SIMPLE: dict[pa.DataType, Any] = {
    pa.bool_(): bool,
    pa.int8(): np.int16,  # Beam (2.77) encodes bytes without their sign
    pa.uint8(): np.int16,
    pa.int16(): np.int16,
    pa.uint16(): np.int32,
    pa.int32(): np.int32,
    pa.uint32(): np.int64,
    pa.int64(): np.int64,
    pa.float16(): np.float32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.date32(): datetime.date,
}
_Convert = Callable[[Any], Any]
_INSTEAD = "leave the column out with columns=, declare another type with schema_overrides=, or read batches"


class RowForm:
    """Rows of Beam with a schema that has the columns of an Arrow schema.

    Unsigned integers and int8 are wider ones, uint64 are decimals; categories are their values, and tensors nested
    lists. SchemaError for a column without an equivalent: a name that is not an identifier, a time of day, a duration,
    a time in nanoseconds.
    """

    def __init__(self, schema: pa.Schema) -> None:
        Column.check_dtypes(schema, "Beam")
        self._fields = list(schema)
        self.element_type, self._converters = _fields_form(self._fields, "")

    def rows(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The rows of a batch."""
        columns = []
        for field, column, convert in zip(self._fields, batch.columns, self._converters, strict=True):
            values = Column(field).to_python(pa.chunked_array([column]))
            columns.append(values if convert is _same else list(map(convert, values)))
        names = batch.schema.names
        for row in zip(*columns, strict=True):
            yield Row(**dict(zip(names, row, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _form_of, (pa.schema(self._fields).serialize().to_pybytes(),)


def _form_of(schema: bytes) -> RowForm:
    """Unpickle a form: types of tensors cannot be pickled."""
    return RowForm(pa.ipc.read_schema(pa.py_buffer(schema)))


def _fields_form(fields: Sequence[pa.Field], path: str) -> tuple[Any, list[_Convert]]:
    """The Beam type of rows, or of structs at a path such as ``image/``, and what makes the value of each field."""
    typed, converters = [], []
    for field in fields:
        name, where = field.name, f"{path}{field.name}"
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            reason = "a field of Beam's rows has a name of letters, digits and underscores that begins with a letter"
            raise SchemaError(f"{reason}, and is not a keyword of Python", feature=where, hint=_INSTEAD)
        beam_type, convert = _form(field, where)
        typed.append((name, Optional[beam_type] if field.nullable else beam_type))  # noqa: UP045
        converters.append(convert)
    return RowTypeConstraint.from_fields(typed), converters


def _form(field: pa.Field, where: str) -> tuple[Any, _Convert]:
    """The Beam type of a field's values, and what makes one of a value of ``to_pylist``."""
    type_ = field.type
    column = Column(field)
    if column.is_tensor:
        element, shape = column.dtype_and_shape
        if element.kind not in "biuf":
            raise SchemaError(f"Beam's rows have no {element.name}", feature=where, got=element.name, hint=_INSTEAD)
        form = _form(pa.field("item", element.arrow), where)
        for _ in shape:
            form = _lists_of(*form)
        return form
    if isinstance(type_, pa.BaseExtensionType):
        return _form(field.with_type(type_.storage_type), where)
    if t.is_dictionary(type_):
        return _form(field.with_type(type_.value_type), where)
    if t.is_uint64(type_):
        return decimal.Decimal, _unless_null(decimal.Decimal)
    if type_ in _SIMPLE:
        return _SIMPLE[type_], _same
    if column.is_text:
        return str, _same
    if column.is_bytes or t.is_fixed_size_binary(type_):
        return bytes, _same
    if t.is_decimal(type_):
        return decimal.Decimal, _same
    if t.is_timestamp(type_) and type_.unit != "ns":
        return Timestamp, _unless_null(lambda time: Timestamp.from_utc_datetime(_in_utc(time)))
    if t.is_map(type_):
        (key, convert_key), (item, convert) = _form(type_.key_field, where), _form(type_.item_field, where)
        items = _unless_null(lambda pairs: {convert_key(key): convert(item) for key, item in pairs})
        return Mapping[key, Optional[item]], items  # type: ignore[valid-type]  # noqa: UP045
    if column.is_list:
        return _lists_of(*_form(type_.value_field, where))
    if t.is_struct(type_):
        struct, converters = _fields_form(list(type_), f"{where}/")
        parts = list(zip(type_.names, converters, strict=True))
        return struct, _unless_null(lambda value: Row(**{name: convert(value[name]) for name, convert in parts}))
    raise SchemaError(f"Beam's rows have no {type_}", feature=where, got=str(type_), hint=_INSTEAD)


def _lists_of(beam_type: Any, convert: _Convert) -> tuple[Any, _Convert]:
    lists = _same if convert is _same else _unless_null(lambda values: list(map(convert, values)))
    return Sequence[Optional[beam_type]], lists  # noqa: UP045


def _unless_null(convert: _Convert) -> _Convert:
    return lambda value: None if value is None else convert(value)


def _same(value: Any) -> Any:
    return value


def _in_utc(time: datetime.datetime) -> datetime.datetime:
    return time.replace(tzinfo=datetime.UTC) if time.tzinfo is None else time.astimezone(datetime.UTC)


# ---- rows to write


def arrow_schema(element_type: Any) -> pa.Schema | None:
    """The Arrow schema of a PCollection whose elements have a Beam schema; None if they have none.

    SchemaError for a type that TFRecord files do not get without ``schema=``, such as decimals of any precision.
    """
    row = (
        element_type if isinstance(element_type, RowTypeConstraint) else RowTypeConstraint.from_user_type(element_type)
    )
    if row is None:
        return None
    schema = typing_to_runner_api(row).row_type.schema
    return pa.schema([_arrow_field(field.name, field.type, field.name) for field in schema.fields])


def _arrow_field(name: str, type_: Any, where: str) -> pa.Field:
    """The Arrow field of a FieldType of Beam."""
    return pa.field(name, _arrow_type(type_, where), nullable=type_.nullable)


def _arrow_type(type_: Any, where: str) -> pa.DataType:
    kind = type_.WhichOneof("type_info")
    if kind == "atomic_type" and type_.atomic_type in ATOMIC_TYPE_TO_PYARROW:
        return ATOMIC_TYPE_TO_PYARROW[type_.atomic_type]
    if kind in ("array_type", "iterable_type"):
        return pa.list_(_arrow_field("item", getattr(type_, kind).element_type, where))
    if kind == "map_type":
        return pa.map_(*(_arrow_type(part, where) for part in (type_.map_type.key_type, type_.map_type.value_type)))
    if kind == "row_type":
        fields = type_.row_type.schema.fields
        return pa.struct([_arrow_field(field.name, field.type, f"{where}/{field.name}") for field in fields])
    logical = {
        Date.urn(): pa.date32(),
        MicrosInstant.urn(): pa.timestamp("us", "UTC"),
        MillisInstant.urn(): pa.timestamp("ms", "UTC"),
    }
    if kind == "logical_type" and type_.logical_type.urn in logical:
        return logical[type_.logical_type.urn]
    got = type_.logical_type.urn or str(kind)
    raise SchemaError(f"a field of Beam's type {got} has no Arrow type of its own", feature=where, hint="pass schema=")


def row_values(row: Any) -> dict[str, Any]:
    """A row of Beam, a NamedTuple or a dict as a dict of the values that `tfrecord_io.write_tfrecord` takes."""
    items = row if isinstance(row, Mapping) else row._asdict()
    return {name: _python_value(value) for name, value in items.items()}


def _python_value(value: Any) -> Any:
    if isinstance(value, Timestamp):
        return value.to_utc_datetime(has_tz=True)
    if isinstance(value, Row) or hasattr(value, "_asdict"):
        return row_values(value)
    if isinstance(value, list | tuple):
        return [_python_value(item) for item in value]
    return value
