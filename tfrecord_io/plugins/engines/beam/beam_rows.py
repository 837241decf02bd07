"""Rows of Beam with a schema, from Arrow and to Arrow; this module imports Beam, and is imported on first use."""

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

from tfrecord_io.arrow.output.to_python import rows_of
from tfrecord_io.errors import SchemaError
from tfrecord_io.schema.tensor_types import axes_of, is_any_tensor, refuse_unknown_dtypes, tensor_value_type
from tfrecord_io.schema.types import is_bytes, is_list_like, is_text

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
    pa.uint64(): decimal.Decimal,
    pa.float16(): np.float32,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
    pa.date32(): datetime.date,
}
_INSTEAD = "leave the column out with columns=, declare another type with schema_overrides=, or read batches"


class RowForm:
    """Rows of Beam with a schema that has the columns of an Arrow schema.

    Unsigned integers and int8 are wider ones, uint64 are decimals; categories are their values, and tensors nested
    lists. SchemaError for a column without an equivalent: a name that is no identifier, a time of day, a duration, a
    time in nanoseconds.
    """

    def __init__(self, schema: pa.Schema) -> None:
        refuse_unknown_dtypes(schema, "Beam")
        self._fields = list(schema)
        self._types = [_plain(field.type) for field in schema]
        self._convert = [_converter(type_) for type_ in self._types]
        self.element_type = row_type(self._fields, self._types, "")

    def rows(self, batch: pa.RecordBatch) -> Iterator[Any]:
        """The rows of a batch."""
        columns = []
        for field, column, convert in zip(self._fields, batch.columns, self._convert, strict=True):
            values = rows_of(pa.chunked_array([column]), field)
            columns.append(values if convert is None else list(map(convert, values)))
        names = batch.schema.names
        for row in zip(*columns, strict=True):
            yield Row(**dict(zip(names, row, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return _form_of, (pa.schema(self._fields).serialize().to_pybytes(),)


def _form_of(schema: bytes) -> RowForm:
    """Unpickle a form: types of tensors cannot be pickled."""
    return RowForm(pa.ipc.read_schema(pa.py_buffer(schema)))


def row_type(fields: Sequence[pa.Field], types: Sequence[pa.DataType], path: str) -> Any:
    """The Beam type of rows, or of structs, at a path such as ``image/``; SchemaError if there is none."""
    typed = []
    for field, type_ in zip(fields, types, strict=True):
        name, where = field.name, f"{path}{field.name}"
        if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
            reason = "a field of Beam's rows has a name of letters, digits and underscores that begins with a letter"
            raise SchemaError(f"{reason}, and is no keyword of Python", feature=where, hint=_INSTEAD)
        beam_type = _beam_type(type_, where)
        typed.append((name, Optional[beam_type] if field.nullable else beam_type))  # noqa: UP045
    return RowTypeConstraint.from_fields(typed)


def _beam_type(type_: pa.DataType, where: str) -> Any:
    """The Beam type of values of a plain type."""
    if type_ in _SIMPLE:
        return _SIMPLE[type_]
    if is_text(type_):
        return str
    if is_bytes(type_) or t.is_fixed_size_binary(type_):
        return bytes
    if t.is_decimal(type_):
        return decimal.Decimal
    if t.is_timestamp(type_) and type_.unit != "ns":
        return Timestamp
    if t.is_map(type_):
        return Mapping[_beam_type(type_.key_type, where), Optional[_beam_type(type_.item_type, where)]]  # type: ignore[misc]  # noqa: UP045
    if is_list_like(type_):
        return Sequence[Optional[_beam_type(type_.value_type, where)]]  # type: ignore[misc]  # noqa: UP045
    if t.is_struct(type_):
        return row_type(list(type_), [field.type for field in type_], f"{where}/")
    raise SchemaError(f"Beam's rows have no {type_}", feature=where, got=str(type_), hint=_INSTEAD)


def _plain(type_: pa.DataType) -> pa.DataType:
    """The type of a column's values in Python: those of categories, nested lists for tensors."""
    if is_any_tensor(type_):
        plain = _plain(tensor_value_type(type_))
        for _ in axes_of(type_):
            plain = pa.list_(plain)
        return plain
    if isinstance(type_, pa.BaseExtensionType):
        return _plain(type_.storage_type)
    if t.is_dictionary(type_):
        return _plain(type_.value_type)
    if t.is_map(type_):
        return pa.map_(_plain(type_.key_type), _plain(type_.item_type))
    if is_list_like(type_):
        return pa.list_(_plain(type_.value_type))
    if t.is_struct(type_):
        return pa.struct([field.with_type(_plain(field.type)) for field in type_])
    return type_


def _converter(type_: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes Beam's value of one of ``to_pylist``; None if they are the same."""
    convert: Callable[[Any], Any]
    if t.is_uint64(type_):
        convert = decimal.Decimal
    elif t.is_timestamp(type_):

        def convert(value: datetime.datetime) -> Any:
            return Timestamp.from_utc_datetime(_in_utc(value))

    elif t.is_map(type_):
        convert_item = _converter(type_.item_type) or _same

        def convert(value: Any) -> Any:
            return {key: convert_item(item) for key, item in value}

    elif t.is_struct(type_):
        parts = [(field.name, _converter(field.type) or _same) for field in type_]

        def convert(value: Any) -> Any:
            return Row(**{name: convert_part(value[name]) for name, convert_part in parts})

    elif is_list_like(type_) and (convert_value := _converter(type_.value_type)) is not None:

        def convert(value: Any) -> Any:
            return list(map(convert_value, value))

    else:
        return None
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
