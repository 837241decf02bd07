"""A schema as the user sees it: an immutable list of fields, each a column and the feature it is read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from tfrecord_io.errors import FeatureNotFoundError, SchemaError, printable
from tfrecord_io.schema.names import type_from_name
from tfrecord_io.schema.types import ENCODING_KEY, ENCODINGS, LIST, encoding_of

FEATURE_KEY = b"tfrecord_io.feature"  # in the metadata of a pa.Field: the feature's name, where it is not the column's


@dataclass(frozen=True, slots=True)
class Field:
    """One column and the feature that it is read from.

    Parameters
    ----------
    column : str
        Name of the column.
    type : pa.DataType
        Type of the column.
    feature : str, optional
        Name of the feature in the records; the column's name if not given.
    encoding : {"list", "raw", "tensor_proto"}
        "list": values are values; "raw": the bytes of an array; "tensor_proto": a serialized TensorProto.
    required : bool
        A record without the feature is an error. In Arrow: a field that is not nullable.
    default : object, optional
        Stands where the feature is absent or has no kind. None: null. pa.Schema has no place for it.
    metadata : mapping of bytes to bytes
        Metadata of the Arrow field; no part of equality.

    Examples
    --------
    >>> Field("label", pa.int32())
    Field(label: int32)
    """

    column: str
    type: pa.DataType
    feature: str = None  # type: ignore[assignment]  # always a str once made
    encoding: str = LIST
    required: bool = False
    default: Any = None
    metadata: Mapping[bytes, bytes] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if self.feature is None:
            object.__setattr__(self, "feature", self.column)
        if self.encoding not in ENCODINGS:
            raise SchemaError(f"there is no encoding {self.encoding!r}", feature=self.feature, expected=ENCODINGS, got=self.encoding)
        if isinstance(self.default, np.ndarray | np.generic):
            object.__setattr__(self, "default", self.default.tolist())
        if self.default is not None:
            self._check_default()
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def _check_default(self) -> None:
        try:
            pa.array([self.default], _value_type(self.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = f"the default {printable(repr(self.default))} is no {self.type}"
            raise SchemaError(reason, feature=self.feature, expected=str(self.type), got=self.default) from error

    def __repr__(self) -> str:
        notes = "".join(f", {k} {v}" for k, v in _notes(self).items())
        return f"Field({printable(self.column)}: {self.type}{notes})"

    def __hash__(self) -> int:
        return hash((self.column, self.type, self.feature, self.encoding, self.required))

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle_field, (self.to_arrow(), self.default)

    def named(self, column: str) -> Field:
        """The same field as column `column`; the feature goes along unless it was named on its own."""
        return replace(self, column=column, feature=column if self.feature == self.column else self.feature)

    @classmethod
    def from_arrow(cls, source: pa.Field) -> Field:
        """The field that a pa.Field describes; one that is not nullable is required."""
        metadata = dict(source.metadata or {})
        metadata.pop(ENCODING_KEY, None)
        feature = metadata.pop(FEATURE_KEY, source.name.encode()).decode("utf-8", "replace")
        return cls(source.name, source.type, feature, encoding_of(source) or LIST, not source.nullable, metadata=metadata)

    def to_arrow(self) -> pa.Field:
        """The pa.Field of this; encoding and a feature name of its own go into its metadata."""
        metadata = dict(self.metadata)
        if self.feature != self.column:
            metadata[FEATURE_KEY] = self.feature.encode()
        if self.encoding != LIST:
            metadata[ENCODING_KEY] = self.encoding.encode()
        return pa.field(self.column, self.type, nullable=not self.required, metadata=metadata or None)


class Schema:
    """The columns to read, in order, with their types; other features of the records are ignored.

    Parameters
    ----------
    fields : iterable of Field
    metadata : mapping of bytes to bytes, optional
        Metadata of the Arrow schema (pandas keeps its index there); no part of equality.

    Examples
    --------
    >>> Schema.parse({"label": "int32", "tokens": "list<int64>"})
    Schema of 2 columns
      label   int32
      tokens  list<item: int64>
    """

    __slots__ = ("_by_name", "fields", "metadata")
    fields: tuple[Field, ...]
    metadata: Mapping[bytes, bytes]
    _by_name: dict[str, Field]

    def __init__(self, fields: Any = (), metadata: Mapping[bytes, bytes] | None = None) -> None:
        made = tuple(fields)
        by_name = {f.column: f for f in made}
        if len(by_name) != len(made):
            twice = next(f.column for f in made if by_name[f.column] is not f)
            raise SchemaError("a schema names this column twice", feature=twice)
        object.__setattr__(self, "fields", made)
        object.__setattr__(self, "metadata", MappingProxyType(dict(metadata or {})))
        object.__setattr__(self, "_by_name", by_name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema does not change; make a new one ({name})")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self.fields, dict(self.metadata))

    @classmethod
    def parse(cls, source: Any) -> Schema:
        """A Schema from a Schema, a pa.Schema, or a mapping of names to fields, Arrow types or type names.

        Raises
        ------
        SchemaError
            A name is no type, or a column stands twice.
        TypeError
            `source` is nothing of the kind.
        """
        if isinstance(source, Schema):
            return source
        if isinstance(source, pa.Schema):
            return cls.from_arrow(source)
        if isinstance(source, Mapping):
            return cls(_field(name, kind) for name, kind in source.items())
        if hasattr(source, "__arrow_c_schema__"):
            return cls.from_arrow(pa.schema(source))
        raise TypeError(f"a schema is a Schema, a pyarrow.Schema or a dict of names and types, not {type(source).__name__}")

    @classmethod
    def from_arrow(cls, source: pa.Schema) -> Schema:
        """The Schema of the columns of a pa.Schema."""
        return cls((Field.from_arrow(f) for f in source), source.metadata)

    def to_arrow(self) -> pa.Schema:
        """The pa.Schema that a table read by this schema has."""
        return pa.schema([f.to_arrow() for f in self.fields], metadata=dict(self.metadata) or None)

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [f.column for f in self.fields]

    def select(self, names: Any) -> Schema:
        """The schema of these columns only, in this order."""
        return Schema((self[name] for name in names), self.metadata)

    def __len__(self) -> int:
        return len(self.fields)

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, key: int | str) -> Field:
        if isinstance(key, int):
            return self.fields[key]
        if key not in self._by_name:
            raise FeatureNotFoundError("the schema has no such column", feature=key)
        return self._by_name[key]

    def __eq__(self, other: object) -> bool:
        return self.fields == other.fields if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        names = [printable(f.column) for f in self.fields]
        types = [str(f.type) for f in self.fields]
        notes = [", ".join(f"{k} {v}" if v else k for k, v in _notes(f).items()) for f in self.fields]
        wide, wider = max(map(len, names), default=0), max(map(len, types), default=0)
        rows = [f"  {n:{wide}}  {t:{wider}}  {note}".rstrip() for n, t, note in zip(names, types, notes, strict=True)]
        return "\n".join([f"Schema of {len(self)} column{'' if len(self) == 1 else 's'}", *rows])


def _notes(f: Field) -> dict[str, str]:
    """What a field has besides a name and a type."""
    notes = {}
    if f.feature != f.column:
        notes["feature"] = printable(f.feature)
    if f.encoding != LIST:
        notes["encoding"] = f.encoding
    if f.required:
        notes["required"] = ""
    if f.default is not None:
        notes["default"] = printable(repr(f.default))
    return notes


def _field(name: str, kind: Any) -> Field:
    if not isinstance(name, str):
        raise TypeError(f"a column's name is a str, not {type(name).__name__}")
    if isinstance(kind, Field):
        return kind.named(name)
    if isinstance(kind, pa.DataType):
        return Field(name, kind)
    if isinstance(kind, str):
        return Field(name, type_from_name(kind))
    if isinstance(kind, pa.Field):
        return Field.from_arrow(kind).named(name)
    if isinstance(kind, np.dtype) or (isinstance(kind, type) and issubclass(kind, np.generic)):
        return Field(name, pa.from_numpy_dtype(kind))
    raise TypeError(f"the type of column '{printable(name)}' is a field, a pyarrow type or a type's name, not {type(kind).__name__}")


def _value_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _unpickle_field(source: pa.Field, default: Any) -> Field:
    return replace(Field.from_arrow(source), default=default)


def _unpickle(fields: tuple[Field, ...], metadata: dict[bytes, bytes]) -> Schema:
    return Schema(fields, metadata)
