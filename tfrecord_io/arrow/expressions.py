"""Conditions of pyarrow: the columns that one names, its evaluation where it is simple, and the types of its literals.

pyarrow has no call that lists the columns or the calls of an expression, but pickles it as an Arrow schema, whose
metadata has an entry for each step. Several entries have the same key, so that only the C data interface gives all of
them: https://arrow.apache.org/docs/format/CDataInterface.html.

pyarrow takes a fifth of a millisecond to bind an expression for each batch, as long as decoding thousands of records. A
simple condition is evaluated by the functions that it would use; where it would cast a column first, other than float32
to float64, the condition is not simple.

Literals get the type of the column that they are compared with, text that of dates, as in SQL. pyarrow would cast the
column instead, which rounds large integers, or fails where no decimal has the digits of both sides, but the values of
``in`` to the type of the column. Here all operators compare numbers exactly, whatever their type, but for floats among
floats of fewer bits, which are the nearest of these: 0.1 is what a float32 column has of 0.1 (`exact_comparison`,
`exact_members`).
"""

from __future__ import annotations

import ctypes
import datetime
import hashlib
import io
import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError, printable
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.type_names import short_type_name

if TYPE_CHECKING:
    import pyarrow.compute as pc


_MOST_KEY = 1000  # characters
COMPARISONS = frozenset(["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"])
_OF_BOOLS = frozenset(["and_kleene", "or_kleene", "invert"])
_FUNCTIONS = COMPARISONS | _OF_BOOLS | {"is_valid"}

Term = tuple[str, Any, tuple[Any, ...]]  # "field", its name; "literal", its value; "call", the function and its terms
_FORMS = {"date": "2024-01-31", "time": "12:30:00", "timestamp": "2024-01-31T12:30:00"}
MIRRORED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}


class _CSchema(ctypes.Structure):
    """The first members of struct ArrowSchema."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def expression_columns(expression: pc.Expression) -> tuple[str, ...]:
    """The names of the columns of an expression, each once; for a field of a struct, that of the struct.

    >>> import pyarrow.compute as pc
    >>> expression_columns((pc.field("b") > 1) & pc.field("a", "x").is_valid())
    ('b', 'a')
    """
    names = []
    entries = iter(expression_entries(expression)[0])
    for key, value in entries:
        if key == b"nested_field_ref":
            parts = [next(entries)[1] for _ in range(int(value))]
            names.append(parts[0])
        elif key == b"field_ref":
            names.append(value)
    return tuple(name.decode() for name in dict.fromkeys(names))


def condition_text(expression: pc.Expression) -> str:
    """A condition in one short line, for messages.

    >>> import pyarrow.compute as pc
    >>> condition_text(pc.field("n").isin([1, 2]))
    'is_in(n, {value_set=int64:[ 1, 2 ], null_matching_behavior=MATCH})'
    """
    return printable(" ".join(str(expression).split()))


def condition_key(expression: pc.Expression) -> str:
    """A text that tells conditions apart, also those whose text pyarrow shortens.

    >>> import pyarrow.compute as pc
    >>> condition_key(pc.field("n") > 1)
    '(n > 1)'
    >>> condition_key(pc.field("n").isin(range(99))) == condition_key(pc.field("n").isin([*range(50), *range(49, 98)]))
    False
    """
    whole = str(expression)
    if "..." not in whole and len(whole) <= _MOST_KEY:
        return whole
    digest = hashlib.sha256(repr(_plain(expression_tree(expression))).encode("utf-8", "surrogatepass")).hexdigest()
    return f"{condition_text(expression)} {digest}"


def _plain(node: Node) -> tuple[Any, ...]:
    value = None if node.value is None else (str(node.value.type), node.value.as_py())
    return node.kind, node.name, node.path, value, tuple(map(_plain, node.arguments))


def expression_entries(expression: pc.Expression) -> tuple[list[tuple[bytes, bytes]], pa.RecordBatch]:
    """The steps of an expression, a call and its ``end`` around its arguments, and a batch of its literals."""
    _, (pickled, *_) = expression.__reduce__()
    with pa.ipc.open_file(pickled) as file:
        return list(_metadata(file.schema)), file.get_batch(0)


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression.

    Attributes
    ----------
    kind : str
        "call", "field" or "literal".
    name : str
        Of the function.
    path : tuple of str
        Of a field: the column, and the names of fields inside structs.
    value : pa.Scalar or None
        Of a literal; of a call its options.
    arguments : tuple of Node
    """

    kind: str
    name: str = ""
    path: tuple[str, ...] = ()
    value: pa.Scalar | None = None
    arguments: tuple[Node, ...] = ()

    def replaced(self, arguments: Sequence[Node]) -> Node:
        """The node with other arguments; itself if they are the same objects."""
        if all(new is old for new, old in zip(arguments, self.arguments, strict=True)):
            return self
        return replace(self, arguments=tuple(arguments))


def expression_tree(expression: pc.Expression) -> Node:
    """The parts of an expression."""
    entries, literals = expression_entries(expression)
    following = iter(entries)
    return _node(next(following), following, literals)


def _node(entry: tuple[bytes, bytes], following: Iterator[tuple[bytes, bytes]], literals: pa.RecordBatch) -> Node:
    kind, value = entry
    if kind == b"field_ref":
        return Node("field", path=(value.decode(),))
    if kind == b"nested_field_ref":
        return Node("field", path=tuple(next(following)[1].decode() for _ in range(int(value))))
    if kind == b"literal":
        return Node("literal", value=literals.column(int(value))[0])
    arguments, options = [], None
    while (entry := next(following)) != (b"end", value):
        if entry[0] == b"options":
            options = literals.column(int(entry[1]))[0]
        else:
            arguments.append(_node(entry, following, literals))
    return Node("call", value.decode(), value=options, arguments=tuple(arguments))


def expression_of(tree: Node) -> pc.Expression:
    """The expression of a tree.

    >>> import pyarrow.compute as pc
    >>> expression_of(expression_tree((pc.field("a") > 1) & pc.field("b").is_valid()))
    <pyarrow.compute.Expression ((a > 1) and is_valid(b))>
    """
    import pyarrow.compute as pc

    literals: list[pa.Array] = []
    entries = list(_entries(tree, literals))
    columns = literals or [pa.nulls(1)]  # the batch has one row
    schema = pa.schema([pa.field("", each.type) for each in columns], pa.KeyValueMetadata(entries))
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    make, _ = pc.scalar(True).__reduce__()
    return make(pa.py_buffer(sink.getvalue()))


def _entries(node: Node, literals: list[pa.Array]) -> Iterator[tuple[bytes, bytes]]:
    if node.kind == "field":
        if len(node.path) > 1:
            yield b"nested_field_ref", str(len(node.path)).encode()
        for name in node.path:
            yield b"field_ref", name.encode()
    elif node.kind == "literal":
        yield b"literal", _number(node.value, literals)
    else:
        yield b"call", node.name.encode()
        for argument in node.arguments:
            yield from _entries(argument, literals)
        if node.value is not None:
            yield b"options", _number(node.value, literals)
        yield b"end", node.name.encode()


def _number(value: pa.Scalar, literals: list[pa.Array]) -> bytes:
    literals.append(pa.array([value.as_py()], value.type) if not value.is_valid else pa.repeat(value, 1))
    return str(len(literals) - 1).encode()


def _metadata(schema: pa.Schema) -> Iterator[tuple[bytes, bytes]]:
    """The entries of the metadata of a schema, also those with the same key."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    address = _CSchema.from_address(pointer(capsule, b"arrow_schema")).metadata
    if not address:
        return
    count, address = ctypes.c_int32.from_address(address).value, address + 4
    for _ in range(count):
        entry = []
        for _ in range(2):
            size = ctypes.c_int32.from_address(address).value
            entry.append(ctypes.string_at(address + 4, size))
            address += 4 + size
        yield entry[0], entry[1]
    del capsule  # which the metadata belongs to


class _NotSimple(Exception):
    pass


def simple_condition(expression: pc.Expression) -> Term | None:
    """The terms of a condition; None if it has others than comparisons, ``&``, ``|``, ``~`` and ``is_valid()``."""
    entries, literals = expression_entries(expression)
    following = iter(entries)
    try:
        return _term(next(following), following, literals)
    except _NotSimple:
        return None


def _term(entry: tuple[bytes, bytes], following: Iterator[tuple[bytes, bytes]], literals: pa.RecordBatch) -> Term:
    kind, value = entry
    if kind == b"field_ref":
        return "field", value.decode(), ()
    if kind == b"literal":
        return "literal", literals.column(int(value))[0], ()
    if kind != b"call" or value.decode() not in _FUNCTIONS:
        raise _NotSimple
    terms = []
    while (entry := next(following)) != (b"end", value):
        terms.append(_term(entry, following, literals))
    return "call", value.decode(), tuple(terms)


def values_of(condition: Term, batch: pa.RecordBatch) -> pa.BooleanArray | None:
    """The values of a condition for the rows of a batch; None if they depend on a cast, or on no column."""
    try:
        values = _values(condition, batch)
    except _NotSimple:
        return None
    return values if isinstance(values, pa.BooleanArray) else None


def _values(term: Term, batch: pa.RecordBatch) -> Any:
    import pyarrow.compute as pc

    kind, name, terms = term
    if kind == "literal":
        return name
    if kind == "field":
        return batch.column(name)
    arguments = [_values(each, batch) for each in terms]
    if name in COMPARISONS:
        arguments = _of_one_type(*arguments)
    elif name in _OF_BOOLS and not all(t.is_boolean(argument.type) for argument in arguments):
        raise _NotSimple
    return pc.call_function(name, arguments)


def _of_one_type(first: Any, second: Any) -> list[Any]:
    """The arguments of a comparison, a literal number in the type of the column if that has its value."""
    if isinstance(first, pa.Scalar) and not isinstance(second, pa.Scalar):
        return _of_one_type(second, first)[::-1]
    type_ = first.type
    if isinstance(first, pa.Scalar) or not _is_plain(type_):
        raise _NotSimple
    if second.type == type_:
        return [first, second]
    is_integer = t.is_integer(type_) and t.is_integer(second.type)
    is_float = t.is_float32(type_) and t.is_float64(second.type)
    if not isinstance(second, pa.Scalar) or not (is_integer or is_float) or not second.is_valid:
        raise _NotSimple
    try:
        cast = second.cast(type_)
    except pa.ArrowInvalid:
        raise _NotSimple from None
    if cast.as_py() == second.as_py():
        return [first, cast]
    if is_float:  # such as 0.1, which no float32 is
        return [first.cast(pa.float64()), second]
    raise _NotSimple


def _is_plain(type_: pa.DataType) -> bool:
    others = (pa.float32(), pa.float64(), pa.bool_(), pa.string(), pa.binary())
    return t.is_integer(type_) or type_ in others


def with_typed_literals(expression: pc.Expression, schema: pa.Schema) -> pc.Expression:
    """The same condition, where literals that are compared with a column have its type.

    Text is a date, time or timestamp where the column is; a timestamp without an offset from UTC is in the time zone of
    the column, and a date is its first moment there. Numbers of other types become one of the column's, and ``in`` has
    those that the column can have.

    >>> import pyarrow.compute as pc
    >>> with_typed_literals(pc.field("day") >= "2024-01-31", pa.schema({"day": pa.date32()}))
    <pyarrow.compute.Expression (day >= 2024-01-31)>
    >>> with_typed_literals(pc.field("n") > 1.5, pa.schema({"n": pa.int64()}))
    <pyarrow.compute.Expression (n > 1)>

    Raises
    ------
    SchemaError
        The text is not of this form, or a column of text is compared with a number.
    """
    tree = expression_tree(expression)
    typed = _typed(tree, schema)
    return expression if typed is tree else expression_of(typed)


def _typed(node: Node, schema: pa.Schema) -> Node:
    arguments = node.arguments
    if node.kind != "call":
        return node
    kinds = [argument.kind for argument in arguments]
    if node.name in COMPARISONS and kinds == ["literal", "field"]:
        mirrored = Node("call", MIRRORED[node.name], arguments=arguments[::-1])
        typed = _typed(mirrored, schema)
        return node if typed is mirrored else typed
    field = _field(arguments[0], schema) if kinds[:1] == ["field"] else None
    if field is not None and node.name in COMPARISONS and kinds == ["field", "literal"]:
        return _typed_comparison(node, field)
    if field is not None and node.name == "is_in" and kinds == ["field"]:
        return _typed_members(node, field)
    return node.replaced([_typed(argument, schema) for argument in arguments])


def _field(node: Node, schema: pa.Schema) -> pa.Field | None:
    """What a field refers to, of a dictionary its values; None if it is not there."""
    at = schema.get_field_index(node.path[0])
    field = schema.field(at) if at >= 0 else None
    for name in node.path[1:]:
        at = field.type.get_field_index(name) if field is not None and t.is_struct(field.type) else -1
        field = field.type.field(at) if field is not None and at >= 0 else None
    is_dictionary = field is not None and t.is_dictionary(field.type)
    return field.with_type(field.type.value_type) if field is not None and is_dictionary else field


def _typed_comparison(node: Node, field: pa.Field) -> Node:
    column, literal = node.arguments
    assert literal.value is not None
    converted = _converted(literal.value, field)
    exact = exact_comparison(node.name, literal.value if converted is None else converted, field.type)
    if exact is not None:
        other = column if exact[1] is None else Node("literal", value=exact[1])
        return Node("call", exact[0], arguments=(column, other))
    return node if converted is None else node.replaced([column, Node("literal", value=converted)])


def _typed_members(node: Node, field: pa.Field) -> Node:
    import pyarrow.compute as pc

    assert node.value is not None
    values = node.value["value_set"].values
    for value in values.drop_null()[:1]:
        _converted(value, field)  # refuses what cannot be compared
    if t.is_null(values.type):
        members = pa.nulls(len(values), field.type)
    elif t.is_timestamp(field.type) and (t.is_string(values.type) or t.is_date(values.type)):
        times = [pa.repeat(_converted(value, field), 1) for value in values.drop_null()]
        found = [time if time.type == field.type else exact_members(time, field.type) for time in times]
        members = pa.concat_arrays([*found, pa.nulls(values.null_count, field.type)])
    elif t.is_date(field.type) and t.is_timestamp(values.type):  # a cast would take the day of each
        days = values.cast(field.type, safe=False)
        members = days.filter(pc.equal(days.cast(values.type), values).fill_null(True))
    else:
        members = exact_members(values, field.type)
    if t.is_floating(field.type) and _has_zero(own := values if members is None else members):
        zeros = np.array([0.0, -0.0], own.type.to_pandas_dtype())  # which are equal, but not as members
        members = pa.concat_arrays([own, pa.array(zeros, own.type)])
    if members is None:
        return node
    children = dict(node.value.items())
    children["value_set"] = pa.ListArray.from_arrays([0, len(members)], members)[0]
    arrays = [pa.repeat(child, 1) for child in children.values()]
    return Node(
        "call", node.name, value=pa.StructArray.from_arrays(arrays, list(children))[0], arguments=node.arguments
    )


def _has_zero(values: pa.Array) -> bool:
    return t.is_floating(values.type) and bool((values.drop_null().to_numpy(zero_copy_only=False) == 0).any())


def _converted(value: pa.Scalar, field: pa.Field) -> pa.Scalar | None:
    """Text as a date or time; None if the comparison stays as it is."""
    if _is_number(field.type) and not (t.is_string(value.type) and value.is_valid):
        return None
    kind, refused = short_type_name(field.type, field.metadata), None
    if t.is_string(field.type) and (t.is_integer(value.type) or t.is_floating(value.type)):
        refused = f"the filter compares text with the number {value}", f'write text, such as "{value}"'
    elif _is_number(field.type):
        refused = f'the filter compares {kind} with the text "{printable(value.as_py())}"', "write a number, such as 5"
    elif t.is_date(field.type) and t.is_timestamp(value.type) and value.type.tz is not None:
        refused = "the filter compares dates with a time in a time zone", "write a date, such as 2024-01-31"
    elif value.is_valid and (t.is_nested(field.type) or is_any_tensor(field.type)):
        refused = f"a filter cannot compare values of {kind}", "name a column of single values"
    if refused is not None:
        raise SchemaError(refused[0], feature=field.name, expected=field.type, got=value.type, advice=refused[1])
    form = next((form for name, form in _FORMS.items() if getattr(t, f"is_{name}")(field.type)), None)
    is_day = t.is_timestamp(field.type) and t.is_date(value.type)
    if form is None or not (t.is_string(value.type) or is_day) or not value.is_valid:
        return None
    try:
        return _in_zone(value.cast(pa.timestamp("s")), field.type.tz) if is_day else _parsed(value, field.type)
    except _NotOneTime as error:
        reason = f"the filter compares {kind} with '{printable(str(value.as_py()))}', {error}"
        raise SchemaError(reason, feature=field.name, expected=kind, advice=error.advice) from error
    except (pa.ArrowException, ValueError) as error:
        reason = f"the filter compares {kind} with '{printable(value.as_py())}'"
        raise SchemaError(reason, feature=field.name, expected=kind, advice=f"write it as {form}") from error


def _parsed(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    if t.is_time(type_):
        time = datetime.time.fromisoformat(value.as_py())
        if time.tzinfo is not None:
            raise ValueError("a time has no offset")
        return pa.scalar(time, type_)
    if not t.is_timestamp(type_):
        return value.cast(type_)
    with suppress(pa.ArrowInvalid):  # it has more than six digits of a second
        return _parsed_timestamp(value, pa.timestamp("us", type_.tz))  # which has every year
    return _parsed_timestamp(value, pa.timestamp("ns", type_.tz))


def _parsed_timestamp(value: pa.Scalar, type_: pa.DataType) -> pa.Scalar:
    try:
        return value.cast(type_)
    except pa.ArrowInvalid:
        if type_.tz is None:
            raise
    return _in_zone(value.cast(pa.timestamp(type_.unit)), type_.tz)  # it has no offset


class _NotOneTime(ValueError):
    """A local time that a time zone has twice, or never."""

    def __init__(self, reason: str, advice: str) -> None:
        super().__init__(reason)
        self.advice = advice


def _in_zone(local: pa.Scalar, zone: str | None) -> pa.Scalar:
    """A local time in a time zone, if there is one."""
    import pyarrow.compute as pc

    if zone is None:
        return local
    around = [pc.assume_timezone(local, zone, ambiguous=one, nonexistent=one) for one in ("earliest", "latest")]
    first, second = (time.cast(pa.timestamp("s", zone), safe=False) for time in around)
    if first.value == second.value:
        return around[0]
    text = str(local.cast(pa.timestamp("s"), safe=False).as_py())
    with suppress(pa.ArrowInvalid):
        pc.assume_timezone(local, zone, ambiguous="earliest")
        times = " or ".join(f"'{first_or_second.as_py().isoformat()}'" for first_or_second in (first, second))
        raise _NotOneTime(f"and {text} occurs twice in {zone}", f"write the one that is meant: {times}")
    advice = f"write a time that exists, such as '{second.as_py().isoformat()}'"
    raise _NotOneTime(f"and {text} never occurs in {zone}: the clocks are put forward", advice)


def exact_comparison(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, pa.Scalar | None] | None:
    """The function and the value of the comparison of a column of `type_` with a number or time; None: as they are.

    Without a value, the column is compared with itself: no time of its type is as early, or as late. A float that is
    compared with decimals is the number as it is written: 0.1 is a tenth; one that is compared with floats of fewer
    bits is the nearest of these.

    >>> exact_comparison("greater", pa.scalar(1.5), pa.int64())
    ('greater', <pyarrow.Int64Scalar: 1>)
    >>> exact_comparison("equal", pa.scalar(1.5), pa.int8())  # which no value is
    ('less', <pyarrow.Int8Scalar: -128>)
    """
    if value.type == type_ or not value.is_valid or not _is_comparable(value.type, type_):
        return None
    if t.is_floating(type_):
        return _with_float(function, value, type_)
    low, high = _range(type_)
    number = _fraction(value, type_)
    if number is None:  # NaN
        return _constant(function == "not_equal", low, type_)
    scaled = number if isinstance(number, float) else number * Fraction(10) ** _scale(type_)
    if scaled > high or scaled < low:
        is_true = function == "not_equal" or function.startswith("less" if scaled > high else "greater")
        return _constant(is_true, low, type_)
    floor, ceil = math.floor(scaled), math.ceil(scaled)
    if function in ("equal", "not_equal") and floor != ceil:
        return _constant(function == "not_equal", low, type_)
    return function, _scalar_of(ceil if function in ("less", "greater_equal") else floor, type_)


def exact_members(values: pa.Array, type_: pa.DataType) -> pa.Array | None:
    """Those of the numbers or times that a column of `type_` can have, as its type; None: as they are."""
    if values.type == type_ or not _is_comparable(values.type, type_):
        return None
    if t.is_integer(type_) and t.is_integer(values.type):
        with suppress(pa.ArrowInvalid):
            return values.cast(type_)
    if not t.is_floating(type_):
        low, high = _range(type_)
        scale = Fraction(10) ** _scale(type_)
        numbers = [_fraction(value, type_) for value in values if value.is_valid]
        units = [number * scale for number in numbers if isinstance(number, Fraction)]
        found = [int(unit) for unit in units if unit.denominator == 1 and low <= unit <= high]
        nulls = [None] if values.null_count else []
        if t.is_timestamp(type_):
            return pa.array([*found, *nulls], pa.int64()).cast(type_)
        return pa.array([*(_scalar_of(unit, type_).as_py() for unit in found), *nulls], type_)
    floats = [(value, _nearest(value, type_)) for value in values.to_pylist()]
    return pa.array([near for value, near in floats if value is None or near is not None], type_)


def _nearest(number: Any, type_: pa.DataType) -> float | None:
    """The float of a type that stands for a number: for an integer exactly, else the nearest; None if there is none."""
    if number is None:
        return None
    with np.errstate(over="ignore"):
        near = float(type_.to_pandas_dtype()(float(number)))
    if isinstance(number, float):
        return None if math.isinf(near) and not math.isinf(number) else near
    is_integer = Fraction(number).denominator == 1
    return None if math.isinf(near) or (is_integer and near != number) else near


def _is_number(type_: pa.DataType) -> bool:
    return bool(t.is_integer(type_) or t.is_floating(type_) or t.is_decimal(type_))


def _is_comparable(own: pa.DataType, type_: pa.DataType) -> bool:
    """Whether both are numbers, or both times with a zone, or without."""
    if t.is_timestamp(own) and t.is_timestamp(type_):
        return (own.tz is None) == (type_.tz is None)
    return _is_number(own) and _is_number(type_)


def _scale(type_: pa.DataType) -> int:
    if t.is_timestamp(type_):
        return {"s": 0, "ms": 3, "us": 6, "ns": 9}[type_.unit]
    return int(type_.scale) if t.is_decimal(type_) else 0


def _range(type_: pa.DataType) -> tuple[int, int]:
    """The least and the largest value; of decimals without their point."""
    if t.is_decimal(type_):
        return 1 - 10**type_.precision, 10**type_.precision - 1
    info = np.iinfo(np.int64 if t.is_timestamp(type_) else type_.to_pandas_dtype())
    return int(info.min), int(info.max)


def _fraction(value: pa.Scalar, type_: pa.DataType) -> Fraction | float | None:
    """The number, or the seconds of a time; an infinite one as a float, None for NaN."""
    if t.is_timestamp(type_):
        return Fraction(value.value, 10 ** _scale(value.type))
    if not t.is_floating(value.type):
        return Fraction(value.as_py())
    number = float(value.as_py())
    if math.isnan(number):
        return None
    if math.isinf(number):
        return number
    if t.is_decimal(type_) and not number.is_integer():
        return Fraction(str(value.type.to_pandas_dtype()(number)))
    return Fraction(number)


def _constant(is_true: bool, low: int, type_: pa.DataType) -> tuple[str, pa.Scalar | None]:
    """A comparison that is true, or false, for all values, and null for null."""
    if t.is_timestamp(type_):  # Python does not have its least value
        return "equal" if is_true else "not_equal", None
    return "greater_equal" if is_true else "less", _scalar_of(low, type_)


def _scalar_of(unit: int, type_: pa.DataType) -> pa.Scalar:
    if t.is_integer(type_):
        return pa.scalar(unit, type_)
    if t.is_timestamp(type_):
        return pa.scalar(unit, pa.int64()).cast(type_)
    digits = tuple(map(int, str(abs(unit))))
    return pa.scalar(Decimal((int(unit < 0), digits, -_scale(type_))), type_)


def _with_float(function: str, value: pa.Scalar, type_: pa.DataType) -> tuple[str, Any]:
    """The comparison of a column of floats with a number of another type."""
    number = value.as_py()
    near = _nearest(number, type_)
    if near is not None:
        return function, pa.scalar(near, type_)
    if function in ("equal", "not_equal"):
        return function, pa.scalar(math.nan, type_)
    float_type = type_.to_pandas_dtype()
    with np.errstate(over="ignore"):
        near = float_type(float(number))  # the next one, or infinite
    below = near if float(near) < number else np.nextafter(near, float_type(-math.inf))
    return "less_equal" if function.startswith("less") else "greater", pa.scalar(below, type_)
