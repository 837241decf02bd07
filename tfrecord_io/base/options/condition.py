"""A condition on rows as a tree, which is parsed once: of tuples as in pandas, or of an expression of pyarrow.

pyarrow has no call that lists the columns or the calls of an expression, but pickles it as an Arrow file: the metadata
of its schema has an entry for each step, and the columns of its batch are the literals. Several entries have the same
key, so that only the C data interface gives all of them:
https://arrow.apache.org/docs/format/CDataInterface.html. This form is not documented; it is the one of pyarrow 19 to
26, and the tests of this module fail if it changes.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.base.closing import cached_property
from tfrecord_io.base.messages.display import printable
from tfrecord_io.base.options.operators import BY_FUNCTION, BY_SYMBOL, Operand, Operator

if TYPE_CHECKING:
    import pyarrow.compute as pc

_AND, _OR, _NOT = "and_kleene", "or_kleene", "invert"
_NEGATED = {BY_SYMBOL[operator.negates].function: operator for operator in Operator.ALL if operator.negates is not None}
_MOST_DEEP = 100  # parts of a chain of these that are nested in each other
_MOST_NESTED = 300  # calls inside each other: what goes through them is recursive
_MOST_KEY = 1000  # characters
_MOST_MEMBERS = 10  # that a text shows of a list


@dataclass(frozen=True)
class Condition:
    """A condition on rows, or a part of one. It can be pickled, and threads may share it."""

    kind: str  # "call", "field" or "literal"
    name: str = ""  # of the function that is called, as `Operator.function` or another one of `pyarrow.compute`
    path: tuple[str, ...] = ()  # of a field: the column, and the names of fields inside structs
    value: pa.Scalar | None = None  # of a literal; of a call its options
    arguments: tuple[Condition, ...] = ()  # of a call

    @property
    def operator(self) -> Operator | None:
        """The operator that it applies; None for other calls, columns and literals."""
        return BY_FUNCTION.get(self.name)

    @property
    def is_comparison(self) -> bool:
        """True if it compares two values by ``==``, ``!=``, ``<``, ``<=``, ``>`` or ``>=``."""
        return self.name in Operator.COMPARISONS

    @classmethod
    def all_of(cls, parts: Sequence[Condition]) -> Condition:
        """Conjunction of one or more conditions."""
        return _join(_AND, parts)

    @classmethod
    def any_of(cls, parts: Sequence[Condition]) -> Condition:
        """Disjunction of one or more conditions."""
        return _join(_OR, parts)

    def __and__(self, other: Condition) -> Condition:
        both = _both(_AND, self, other)
        return _shallow(both) if both._depth > _MOST_DEEP else both

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_expression, (self.expression,)

    @cached_property
    def expression(self) -> pc.Expression:
        """The condition as pyarrow takes it."""
        import pyarrow.compute as pc

        literals: list[pa.Array] = []
        entries = list(_entries(self, literals))
        columns = literals or [pa.nulls(1)]  # the batch has one row
        schema = pa.schema([pa.field("", column.type) for column in columns], pa.KeyValueMetadata(entries))
        sink = io.BytesIO()
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
        make, _ = pc.field("").__reduce__()  # pc.scalar would import pandas
        return make(pa.py_buffer(sink.getvalue()))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns, each once; for a field of a struct, that of the struct."""
        paths = filter(None, map(attrgetter("path"), self.walk()))
        return tuple(dict.fromkeys(map(itemgetter(0), paths)))

    @property
    def text(self) -> str:
        """The condition in one short line, for messages: a text for ``filters=`` if these have all its operators.

        >>> import pyarrow.compute as pc
        >>> parse_expression(pc.field("n").isin([1, 2]) & pc.field("s").is_valid()).text
        'n in [1, 2] and s is not null'
        """
        return printable(_words(self))

    @property
    def key(self) -> str:
        """A text that differs between conditions, also those whose text pyarrow shortens.

        >>> import pyarrow.compute as pc
        >>> parse_expression(pc.field("n") > 1).key
        '(n > 1)'
        >>> one, other = ([*range(50), *range(first, 98)] for first in (50, 49))
        >>> parse_expression(pc.field("n").isin(one)).key == parse_expression(pc.field("n").isin(other)).key
        False
        """
        whole = str(self.expression)
        if "..." not in whole and len(whole) <= _MOST_KEY:
            return whole
        digest = hashlib.sha256(repr(_plain(self)).encode("utf-8", "surrogatepass")).hexdigest()
        return f"{printable(' '.join(whole.split()))} {digest}"

    @property
    def conjuncts(self) -> list[Condition]:
        """The conditions that it connects by ``&``: a row fulfils it if it fulfils all of these.

        >>> import pyarrow.compute as pc
        >>> [part.text for part in parse_expression(pc.field("a").is_valid() & (pc.field("b") > 1)).conjuncts]
        ['a is not null', 'b > 1']
        """
        return _operands(self, _AND)

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of the functions that are called in it; a field inside a struct is taken by one."""
        functions = set()
        for part in self.walk():
            if part.kind == "call":
                functions.add(part.name)
            elif len(part.path) > 1:
                functions.add("struct_field")
        return frozenset(functions)

    @cached_property
    def _depth(self) -> int:
        """How many calls are inside each other."""
        return 1 + max(map(attrgetter("_depth"), self.arguments), default=0)

    def walk(self) -> Iterator[Condition]:
        """Yield the condition and all its parts, each before its arguments.

        >>> import pyarrow.compute as pc
        >>> [part.name or part.text for part in parse_expression(pc.field("a").is_valid() & (pc.field("b") > 1)).walk()]
        ['and_kleene', 'is_valid', 'a', 'greater', 'b', '1']
        """
        following = [self]
        while following:
            part = following.pop()
            yield part
            following += reversed(part.arguments)

    def replace_arguments(self, arguments: Sequence[Condition]) -> Condition:
        """A copy with other arguments; itself if they are the same objects."""
        if all(new is old for new, old in zip(arguments, self.arguments, strict=True)):
            return self
        return replace(self, arguments=tuple(arguments))


def parse_expression(expression: pc.Expression) -> Condition:
    """The condition of an expression; ValueError if it refers to columns by position, or is nested too deeply.

    >>> import pyarrow.compute as pc
    >>> parse_expression((pc.field("b") > 1) & pc.field("a", "x").is_valid()).columns
    ('b', 'a')
    """
    try:
        _, (pickled, *_) = expression.__reduce__()
        with pa.ipc.open_file(pickled) as file:
            condition = _part(_metadata(file.schema), file.get_batch(0))
    except pa.ArrowNotImplementedError as error:
        text = printable(expression)
        raise ValueError(f"the filter '{text}' refers to columns by position: name them") from error
    condition.__dict__["expression"] = expression
    return condition


def _plain(part: Condition) -> tuple[Any, ...]:
    value = None if part.value is None else (str(part.value.type), _exact(part.value))
    return part.kind, part.name, part.path, value, tuple(map(_plain, part.arguments))


def _exact(value: pa.Scalar) -> Any:
    """The value in Python, or in Arrow's bytes if there is a time or a duration that Python does not have."""
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return pa.record_batch([pa.repeat(value, 1)], [""]).serialize().to_pybytes()


# ---- parts that are connected by one function, of which any number may be given


def _join(function: str, parts: Sequence[Condition]) -> Condition:
    joined = partial(_both, function)
    if len(parts) <= _MOST_DEEP:
        return reduce(joined, parts)
    while len(parts) > 1:  # in pairs, so that many parts may be added before the tree is deep again
        last = parts[len(parts) // 2 * 2 :]
        parts = [*map(joined, parts[::2], parts[1::2]), *last]
    return parts[0]


def _both(function: str, first: Condition, second: Condition) -> Condition:
    return Condition("call", function, arguments=(first, second))


def _operands(condition: Condition, function: str) -> list[Condition]:
    operands, following = [], [condition]
    while following:
        part = following.pop()
        if part.name == function:
            following += reversed(part.arguments)
        else:
            operands.append(part)
    return operands


def _shallow(condition: Condition) -> Condition:
    """Rebuild a condition of many parts as a tree of little depth; others are returned as they are."""
    parts = _operands(condition, condition.name) if condition.name in (_AND, _OR) else []
    return _join(condition.name, parts) if len(parts) > _MOST_DEEP else condition


# ---- the words of a condition


def _words(part: Condition) -> str:
    if part.kind == "field":
        return ".".join(part.path)
    if part.kind == "literal":
        return _literal(part.value)
    if part.name in (_AND, _OR):
        texts = [(_words(operand), operand.name) for operand in _operands(part, part.name)]
        joined = [f"({text})" if name == _OR else text for text, name in texts]
        return (" and " if part.name == _AND else " or ").join(joined)
    if part.name == _NOT:
        (inner,) = part.arguments
        return _operation(inner, _NEGATED.get(inner.name)) or f"not ({_words(inner)})"
    return _operation(part, part.operator) or " ".join(str(part.expression).split())


def _operation(part: Condition, operator: Operator | None) -> str:
    """A column, the symbol of an operator and its operand; empty where the options of the function say more."""
    if operator is None:
        return ""
    column, *operands = part.arguments
    if operator.operand is Operand.LIST:
        operand = _members(part.value["value_set"].values)  # type: ignore[index]
    elif operator.operand is Operand.NONE:
        if part.value is not None and part.value["nan_is_null"].as_py():
            return ""
        operand = ""
    elif column.kind == "literal" and (mirror := operator.mirror()) is not None:
        operator, operand, column = mirror, _words(column), operands[0]
    else:
        operand = " and ".join(map(_words, operands))
    return f"{_words(column)} {operator.symbol} {operand}".rstrip()


def _members(values: pa.Array) -> str:
    shown = list(map(_literal, values if len(values) <= _MOST_MEMBERS else values[: _MOST_MEMBERS - 1]))
    if len(values) > _MOST_MEMBERS:
        shown += ["…", _literal(values[-1])]
    return f"[{', '.join(shown)}]"


def _literal(value: pa.Scalar | None) -> str:
    if value is None or not value.is_valid:
        return "null"
    type_ = value.type
    if pa.types.is_temporal(type_) and not pa.types.is_duration(type_):
        kind = "DATE " if pa.types.is_date(type_) else "TIMESTAMP " if pa.types.is_timestamp(type_) else ""
        return f"{kind}'{value.cast(pa.string())}'"
    if pa.types.is_duration(type_):
        with suppress(OverflowError, ValueError):  # of more days than Python's have
            return str(value.as_py())
        return f"{value.value} {type_.unit}"
    plain = value.as_py()
    if isinstance(plain, str):
        return "'" + plain.replace("'", "''") + "'"
    return str(plain).lower() if isinstance(plain, bool) else str(plain)


# ---- the form in which pyarrow pickles expressions


class _CSchema(ctypes.Structure):
    """The first members of struct ArrowSchema."""

    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p)]


def _part(entries: Iterator[tuple[bytes, bytes]], literals: pa.RecordBatch) -> Condition:
    calls = [_Call("")]  # those that have begun, inside each other
    for kind, value in entries:
        if kind == b"call":
            calls.append(_Call(value.decode()))
        elif kind == b"options":
            calls[-1].options = literals.column(int(value))[0]
        elif kind == b"field_ref":
            calls[-1].arguments.append(Condition("field", path=(value.decode(),)))
        elif kind == b"nested_field_ref":
            path = tuple(next(entries)[1].decode() for _ in range(int(value)))
            calls[-1].arguments.append(Condition("field", path=path))
        elif kind == b"literal":
            calls[-1].arguments.append(Condition("literal", value=literals.column(int(value))[0]))
        else:  # the end of a call
            call = calls.pop()
            part = Condition("call", call.name, value=call.options, arguments=tuple(call.arguments))
            if call.name != calls[-1].name or call.name not in (_AND, _OR):
                part = _shallow(part)
                if part._depth > _MOST_NESTED:
                    reason = f"the filter has more than {_MOST_NESTED} calls inside each other"
                    raise ValueError(f"{reason}: write it as a list of lists of tuples, or with isin")
            calls[-1].arguments.append(part)
    return calls[0].arguments[0]


@dataclass(slots=True)
class _Call:
    """A call whose end has not been met."""

    name: str
    arguments: list[Condition] = field(default_factory=list)
    options: pa.Scalar | None = None


def _entries(part: Condition, literals: list[pa.Array]) -> Iterator[tuple[bytes, bytes]]:
    if part.kind == "field":
        if len(part.path) > 1:
            yield b"nested_field_ref", str(len(part.path)).encode()
        for name in part.path:
            yield b"field_ref", name.encode()
    elif part.kind == "literal":
        yield b"literal", _number(part.value, literals)
    else:
        yield b"call", part.name.encode()
        for argument in part.arguments:
            yield from _entries(argument, literals)
        if part.value is not None:
            yield b"options", _number(part.value, literals)
        yield b"end", part.name.encode()


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
