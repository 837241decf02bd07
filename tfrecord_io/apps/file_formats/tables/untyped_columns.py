"""Types of columns in formats without types, such as CSV: declared or inferred; checks of too large numbers.

pyarrow infers float64 for integers beyond int64 and for those beside NaN or other floats, which rounds them, and reads
some floats as infinities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types as t

from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions
from tfrecord_io.columns import Column, Overrides, Projection
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.kit import printable

ADVICE = "declare the types of such columns with schema_overrides=, for example as text"
ADVICE_CLI = "declare the types of such columns with --type, for example as text"
_ROUND = "declare the type of floats, which rounds it"
_BEYOND = 2.0**63  # the least float64 that no int64 is
_EXACT = 2.0**53  # up to it, float64 has each integer
_MOST_DIGITS = 19  # of int64
_INTEGER = re.compile(r"[+-]?\d+")


def declared_types(inferred: pa.Schema, options: SourceOptions, can_parse: Callable[[pa.DataType], bool]) -> pa.Schema:
    """The inferred schema with the types that ``schema=`` and ``schema_overrides=`` declare.

    A type of ``schema=`` that the format cannot parse is left to the writer, which casts the values of the inferred
    type. Decimals that the format cannot parse are read as text if it can, as floats would round them.

    Raises
    ------
    FeatureNotFoundError
        An override matches no column.
    SchemaError
        The format cannot parse the type of an override.
    """
    types = {field.name: field.type for field in inferred}
    if options.schema is not None:
        import tfrecord_io

        for field in tfrecord_io.Schema.parse(options.schema):
            declared = field.to_arrow().type
            parsed = declared if can_parse(declared) or not t.is_decimal(declared) else pa.string()
            if field.column in types and can_parse(parsed):
                types[field.column] = parsed
    if options.schema_overrides:
        for field in Overrides(options.schema_overrides).apply(pa.schema(list(types.items()))):
            arrow = field.to_arrow()
            if arrow.type != types[field.column] and not can_parse(arrow.type):
                name = Column(arrow.type, arrow.metadata).logical_name
                advice = "declare it with schema=, or declare it as text"
                advice_cli = "declare it as text with --type"
                raise SchemaError(
                    f"the file format cannot hold {name}",
                    feature=field.column,
                    got=name,
                    hint=advice,
                    hint_cli=advice_cli,
                )
            types[field.column] = arrow.type
    return pa.schema([field.with_type(types[field.name]) for field in inferred])


def inferred_names(names: Sequence[str], options: SourceOptions) -> list[str]:
    """The columns whose types are inferred: none with ``schema=``."""
    keys = options.schema_overrides or {}
    declared = {name for name in names if any(Projection.entry_takes(key, name) for key in keys)}
    return [] if options.schema is not None else [name for name in names if name not in declared]


def floats_in(array: pa.Array) -> Iterator[pa.Array]:
    """The floats of an array, or of its items and fields at any level."""
    if t.is_struct(array.type):
        for field in Column.struct_fields(array):
            yield from floats_in(field)
    elif Column(array.type).is_list:
        yield from floats_in(array.flatten())
    elif t.is_floating(array.type):
        yield array


def may_be_rounded(column: pa.ChunkedArray | pa.Array) -> bool:
    """True if all floats of a column, or of a field in it, are whole, and one is beyond int64.

    >>> may_be_rounded(pa.array([1.0, 2.0**63])), may_be_rounded(pa.array([0.5, 2.0**63]))
    (True, False)
    """
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    whole = (floats for floats in floats_in(array) if pc.all(pc.equal(pc.floor(floats), floats)).as_py())
    return any(
        t.is_float64(floats.type) and pc.any(pc.greater_equal(pc.abs(floats), _BEYOND)).as_py() for floats in whole
    )


def has_large(array: pa.Array) -> bool:
    """True if a float64 of an array, or of a field in it, is beyond 2**53, where integers are rounded.

    >>> has_large(pa.array([[0.5, -(2.0**53)]])), has_large(pa.array([0.5, 1e15, None])), has_large(pa.array([2**53]))
    (True, False, False)
    """
    extents = (pc.min_max(floats).values() for floats in floats_in(array) if t.is_float64(floats.type))
    return any(low.is_valid and (high.as_py() >= _EXACT or low.as_py() <= -_EXACT) for low, high in extents)


def is_rounded(text: str) -> bool:
    """True if a number in text is an integer that float64 cannot hold or print back.

    >>> is_rounded("9007199254740993"), is_rounded("9007199254740992"), is_rounded("9007199254740993.0")
    (True, False, False)
    >>> is_rounded("590295810358705700000")  # as JavaScript writes 2.0**69
    False
    """
    if not _INTEGER.fullmatch(text) or np.isinf(number := float(text)):
        return False
    return int(text) not in (int(number), Decimal(repr(number)))


def is_too_large(text: str, type_: pa.DataType) -> bool:
    """True if a number, in digits, is an infinity in a type of floats.

    >>> is_too_large("1e400", pa.float64()), is_too_large("-1e39", pa.float32()), is_too_large("inf", pa.float32())
    (True, True, False)
    """
    if not any(map(str.isdigit, text)):
        return False
    try:
        number = float(text)
    except ValueError:
        return False
    with np.errstate(over="ignore"):
        return bool(np.isinf(type_.to_pandas_dtype()(number)))


def refuse_rounding(texts: Iterable[str], name: str, type_: pa.DataType, path: str) -> None:
    """Raise DecodeError if all numbers are written as integers, of which one is beyond int64."""
    texts = list(texts)
    if all(_INTEGER.fullmatch(text) for text in texts):
        for text in texts:
            digits = text.lstrip("+-0")
            if len(digits) > _MOST_DIGITS or not -(2**63) <= int(text) < 2**63:
                hint, hint_cli = text_hints(name, type_)
                reason = f"the integer {printable(text, 60)} does not fit int64, and a float64 would round it"
                raise DecodeError(
                    reason, path=path, feature=name, expected="int64", got=text, hint=hint, hint_cli=hint_cli
                )


def rounding_error(
    path: str, row: int, name: str, type_: pa.DataType, alternatives: tuple[str, str] = (_ROUND, _ROUND)
) -> DecodeError:
    """The error for an integer that `is_rounded`, in a column inferred as `type_`.

    `alternatives` are further advice, in Python and for the command.
    """
    reason = f"{type_} rounds this integer beyond 2**53; the column has this type because of its floats or NaN"
    hints = zip(text_hints(name, type_), alternatives, strict=True)
    hint, hint_cli = (f"{hint}, or {alternative}" for hint, alternative in hints)
    return DecodeError(reason, path=path, record=row, feature=name, expected=str(type_), hint=hint, hint_cli=hint_cli)


def text_hints(name: str, type_: pa.DataType) -> tuple[str, str]:
    """Hints to declare a column of numbers as text, in Python and for the command."""
    as_text = str(_as_text(type_)).replace("item: ", "")
    hint, hint_cli = (f"declare the column as text with {way}" for way in Column.declaration(name, as_text))
    return hint, hint_cli


def _as_text(type_: pa.DataType) -> pa.DataType:
    if Column(type_).is_list:
        return pa.list_(_as_text(type_.value_type))
    if t.is_struct(type_):
        return pa.struct([(child.name, _as_text(child.type)) for child in type_])
    return pa.string() if t.is_floating(type_) else type_
