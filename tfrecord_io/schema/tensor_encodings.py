"""The registry of tensor encodings, and what a schema needs to know of one.

An encoding says how a cell of a column (one number, a list or a tensor) is stored in a feature. Each is a class in
`tfrecord_io.arrow.encodings`, loaded when it is first needed: code on this level asks it only for `EncodingRules`, and
an encoding's own dependencies (protobuf) cost nothing where it is not used.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import ClassVar, Protocol

from tfrecord_io.errors import say
from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.kinds import Kind, Layout
from tfrecord_io.registry import Registry, Row
from tfrecord_io.schema.tensor_types import Shape


class EncodingRules(ABC):
    """What columns an encoding stores, and what their features look like."""

    name: ClassVar[str]  # as in column_encoding=, tfr.tensor(encoding=) and the embedded schema
    aliases: ClassVar[tuple[str, ...]] = ()
    suffixes: ClassVar[tuple[str, ...]] = ()
    one_value_per_cell: ClassVar[bool] = True  # a cell is one bytes value; else it is a list of numbers
    companions: ClassVar[bool] = False  # the features x/shape and x/dtype are written next to x
    self_describing: ClassVar[bool] = False  # each bytes value states its dtype and its shape
    adaptive: ClassVar[bool] = False  # for reading only: a record's feature type decides between two other encodings
    dtype_kinds: ClassVar[str]  # NumPy's kinds of the dtypes that can be written; "V" stands for bfloat16
    stores_text: ClassVar[bool] = False  # text and bytes of any length can be written
    composed: ClassVar[bool] = False  # of columns of any type, which `tfrecord_io.schema.nested` makes plain columns of

    @property
    def rules(self) -> EncodingRules:
        return self

    @property
    def layout(self) -> Layout:
        """Layout of the feature."""
        return Layout.SCALAR if self.one_value_per_cell else Layout.LIST

    def kind(self, element: Element) -> Kind:
        """The feature type that tensors of this dtype are read from; ValueError if they cannot be stored so."""
        if not self.stores(element):
            raise ValueError(f'the encoding "{self.name}" does not store {element.name}')
        return Kind.BYTES

    def stores(self, element: Element | None) -> bool:
        """Whether values of this dtype can be written; None stands for text and bytes of any length."""
        if element is None:
            return self.stores_text
        return ("V" if element.name == "bfloat16" else element.dtype.kind) in self.dtype_kinds

    def check(self, element: Element | None, shape: Shape = ()) -> None:
        """Raise ValueError where cells of this dtype and shape cannot be written."""
        if not self.stores(element):
            what = "text and bytes" if element is None else element.name
            raise ValueError(f'the encoding "{self.name}" does not store {what}')


class _Registered(Row, Protocol):
    @property
    def rules(self) -> EncodingRules: ...


@dataclass(frozen=True)
class _Own:
    """An encoding of this package, which is loaded when its rules are asked for."""

    name: str
    place: str  # module in tfrecord_io.arrow.encodings, and class
    aliases: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    @cached_property
    def rules(self) -> EncodingRules:
        module, _, class_name = self.place.partition(".")
        made: EncodingRules = getattr(import_module(f"tfrecord_io.arrow.encodings.{module}"), class_name)()
        return made


IMAGE_ENCODINGS = ("jpeg", "png", "webp")  # of arrays, which become images when they are written
NESTED = "nested"
JSON = "json"


class _Composed(EncodingRules):
    """A column of any type as several plain columns, or as JSON."""

    one_value_per_cell = False
    dtype_kinds = ""
    composed = True

    def __init__(self, name: str) -> None:
        self.name = name  # type: ignore[misc]


_OWN = (  # a new encoding is a row here
    _Own("list", "values.Values"),
    _Own("raw", "raw.Raw"),
    _Own("tensor_proto", "tensor_proto.TensorProtos"),
    _Own("npy", "npy.Npy"),
    _Own("wire", "wire.Wire"),
    _Composed(NESTED),
    _Composed(JSON),
)
TENSOR_ENCODINGS: Registry[_Registered] = Registry(
    "tensor encoding", EncodingRules, _OWN, "tfrecord_io.tensor_encodings"
)


def encoding_rules(name: str) -> EncodingRules:
    """Find an encoding by its name; ValueError, with the valid names, if there is none.

    >>> encoding_rules("raw").companions
    True
    >>> encoding_rules("base64")
    Traceback (most recent call last):
    ValueError: 'base64' is not a tensor encoding; valid names: list, raw, ...
    """
    row = TENSOR_ENCODINGS.get(name)
    if row is None or row.name != name:
        raise ValueError(f"{name!r} is not a tensor encoding; valid names: {', '.join(TENSOR_ENCODINGS.names())}")
    return row.rules


def is_composed(name: str | None) -> bool:
    """Whether an encoding makes several plain columns of a column, or JSON.

    >>> is_composed("nested"), is_composed("raw"), is_composed(None)
    (True, False, False)
    """
    return name in (NESTED, JSON)


def written_encodings() -> list[str]:
    """The names of the encodings that columns can be written with."""
    return [*(row.name for row in TENSOR_ENCODINGS if not row.rules.adaptive), *IMAGE_ENCODINGS]


def check_column_encodings(column_encoding: Mapping[str, str] | None) -> None:
    """Raise ValueError for an unknown or adaptive encoding in a writer's ``column_encoding=``."""
    for column, name in (column_encoding or {}).items():
        if name not in IMAGE_ENCODINGS and (not TENSOR_ENCODINGS.has(name) or encoding_rules(name).adaptive):
            names = ", ".join(map(repr, written_encodings()))
            raise ValueError(say("{column_encoding=}: expected one of {}", names, column_encoding={column: name}))
