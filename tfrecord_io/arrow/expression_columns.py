"""What a pyarrow expression consists of: its columns, and its calls as a tree, which can be changed.

pyarrow has no call for it, but pickles an expression as an Arrow schema, whose metadata has an entry for each step of
the expression. Several entries have the same key, so that only the C data interface gives all of them:
https://arrow.apache.org/docs/format/CDataInterface.html.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tfrecord_io.errors import printable

if TYPE_CHECKING:
    import pyarrow.compute as pc


_MOST_KEY = 1000  # characters


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
