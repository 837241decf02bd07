"""A schema as the user sees it: an immutable list of fields, each a column and the feature it is read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import FeatureNotFoundError, SchemaError, printable
from tfrecord_io.schema.field import CONTEXT, DEFAULT_KEY, FEATURE_KEY, FEATURE_LIST, PART_KEY, SHAPE_KEY, Field
from tfrecord_io.schema.type_names import marked_tensor, type_of

__all__ = ["CONTEXT", "DEFAULT_KEY", "FEATURE_KEY", "FEATURE_LIST", "PART_KEY", "SHAPE_KEY", "Field", "Schema"]


class Schema:
    """The columns to read, in order, with their types; other features of the records are ignored.

    Parameters
    ----------
    fields : Schema, pa.Schema, mapping, or iterable of Field
        A mapping has names of columns as keys, and as values what the field makers give, Arrow types, dtypes or type
        names, mixed as you like.
    metadata : mapping of bytes to bytes, optional
        Metadata of the Arrow schema (pandas keeps its index there); no part of equality.

    Raises
    ------
    SchemaError
        A name is no type, or a column stands twice.
    TypeError
        `fields` is nothing of the kind.

    Examples
    --------
    >>> from tfrecord_io.schema.field_makers import scalar
    >>> Schema({"label": scalar("int32", required=True), "tokens": "list<int64>"})
    Schema of 2 columns
      label   int32              required
      tokens  list<item: int64>
    """

    __slots__ = ("_by_name", "fields", "metadata")
    fields: tuple[Field, ...]
    metadata: Mapping[bytes, bytes]
    _by_name: dict[str, Field]

    def __init__(self, fields: Any = (), metadata: Mapping[bytes, bytes] | None = None) -> None:
        made, own = _fields(fields)
        by_name = {f.column: f for f in made}
        if len(by_name) != len(made):
            twice = next(f.column for f in made if by_name[f.column] is not f)
            raise SchemaError("a schema names this column twice", feature=twice)
        object.__setattr__(self, "fields", made)
        object.__setattr__(self, "metadata", MappingProxyType(dict(own if metadata is None else metadata)))
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
            `source` is nothing of the kind; an iterable of fields is for the class itself.
        """
        if isinstance(source, Schema):
            return source
        if isinstance(source, pa.Schema | Mapping) or hasattr(source, "__arrow_c_schema__"):
            return cls(source)
        raise TypeError(
            f"a schema is a Schema, a pyarrow.Schema or a dict of names and types, not {type(source).__name__}"
        )

    # To and from other forms ----------------------------------------------------------------------------------

    @classmethod
    def from_arrow(cls, source: pa.Schema) -> Schema:
        """The Schema of the columns of a pa.Schema, with all that `to_arrow` has put into its metadata."""
        return cls((Field.from_arrow(f) for f in source), source.metadata)

    def to_arrow(self) -> pa.Schema:
        """The pa.Schema of a table read by this schema; `from_arrow` gives this schema back."""
        return pa.schema([f.to_arrow() for f in self.fields], metadata=dict(self.metadata) or None)

    @classmethod
    def from_json(cls, text: str | bytes) -> Schema:
        """The Schema that `to_json` has written.

        Raises
        ------
        SchemaError
            The text is nothing of the kind.
        """
        from tfrecord_io.schema.formats.json import schema_of

        return schema_of(text)

    def to_json(self, indent: int | None = 2) -> str:
        """The schema as JSON text; `from_json` reads it.

        Examples
        --------
        >>> print(Schema({"label": "int32"}).to_json())
        {
          "version": 1,
          "fields": [
            {
              "column": "label",
              "type": "int32"
            }
          ]
        }
        """
        from tfrecord_io.schema.formats.json import text_of

        return text_of(self, indent)

    def to_python(self) -> str:
        """Source code that makes this schema, ready to paste.

        Examples
        --------
        >>> print(Schema({"label": "int32"}).to_python())
        import tfrecord_io as tfr
        <BLANKLINE>
        schema = tfr.Schema({
            "label": "int32",
        })
        """
        from tfrecord_io.schema.formats.python_source import source_of

        return source_of(self)

    @classmethod
    def from_tfx(cls, source: Any, **keywords: Any) -> Schema:
        """The schema of a TFX ``schema.pbtxt``: a path, or its bytes or text; see `tfrecord_io.schema.formats.tfx.from_tfx`."""
        from tfrecord_io.schema.formats.tfx import from_tfx

        return from_tfx(source, **keywords)

    def to_tfx(self) -> str:
        """The schema as text of a TFX ``schema.pbtxt``; see `tfrecord_io.schema.formats.tfx.to_tfx`."""
        from tfrecord_io.schema.formats.tfx import to_tfx

        return to_tfx(self)

    @classmethod
    def from_tfds(cls, path: Any, **keywords: Any) -> Schema:
        """The schema of a dataset that TFDS wrote, from its ``features.json``; see `tfrecord_io.schema.formats.tfds.from_tfds`."""
        from tfrecord_io.schema.formats.tfds import from_tfds

        return from_tfds(path, **keywords)

    @classmethod
    def from_feature_description(
        cls, description: Mapping[str, Any], sequence_features: Mapping[str, Any] | None = None
    ) -> Schema:
        """The Schema of what TensorFlow's parsing would give.

        Parameters
        ----------
        description : mapping of str to feature
            As for ``tf.io.parse_example``, of TensorFlow's own objects or of `tfrecord_io`'s lookalikes.
        sequence_features : mapping of str to feature, optional
            As for ``tf.io.parse_sequence_example``, where `description` is its context_features.

        Raises
        ------
        SchemaError
            A dtype that is not int64, float32 or string, or a feature that is no feature description.

        Examples
        --------
        >>> from tfrecord_io.schema.formats.tf_features import FixedLenFeature, VarLenFeature
        >>> Schema.from_feature_description({"label": FixedLenFeature([], "int64", 0), "words": VarLenFeature("string")})
        Schema of 2 columns
          label  int64               default 0
          words  list<item: binary>
        """
        from tfrecord_io.schema.formats.feature_description import schema_of

        return schema_of(description, sequence_features)

    def to_feature_description(self, part: str = CONTEXT) -> dict[str, Any]:
        """The feature description of this schema, by the names of features, of `tfrecord_io`'s lookalikes.

        What may be null and has no default is a VarLenFeature: TensorFlow has no nulls.

        Parameters
        ----------
        part : {"context", "feature_list"}
            Of an Example, or of the context of a SequenceExample; or of its feature lists.

        Examples
        --------
        >>> Schema({"label": "int32"}).to_feature_description()
        {'label': VarLenFeature(dtype='int64')}
        """
        from tfrecord_io.schema.formats.feature_description import description_of

        return description_of(self, part)

    # As a sequence and a mapping ------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return [f.column for f in self.fields]

    @property
    def types(self) -> list[pa.DataType]:
        """Types of the columns, in order."""
        return [f.type for f in self.fields]

    def field(self, name: str) -> Field:
        """The field of a column; the same as ``schema[name]``."""
        return self[name]

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
        types = [f.type_name for f in self.fields]
        notes = [", ".join(f"{k} {v}".rstrip() for k, v in f.notes().items()) for f in self.fields]
        wide, wider = max(map(len, names), default=0), max(map(len, types), default=0)
        rows = [f"  {n:{wide}}  {t:{wider}}  {note}".rstrip() for n, t, note in zip(names, types, notes, strict=True)]
        return "\n".join([f"Schema of {len(self)} column{'' if len(self) == 1 else 's'}", *rows])


_DESCRIBED = {
    "FixedLenFeature",
    "VarLenFeature",
    "FixedLenSequenceFeature",
    "SparseFeature",
    "RaggedFeature",
}  # TensorFlow's, or ours


def _fields(source: Any) -> tuple[tuple[Field, ...], Mapping[bytes, bytes]]:
    """Fields and metadata of whatever a Schema is made of."""
    if isinstance(source, Schema):
        return source.fields, source.metadata
    if isinstance(source, Mapping) and source and all(type(kind).__name__ in _DESCRIBED for kind in source.values()):
        return Schema.from_feature_description(source).fields, {}
    if isinstance(source, Mapping):
        return tuple(field_of(name, kind) for name, kind in source.items()), {}
    if not isinstance(source, pa.Schema) and hasattr(source, "__arrow_c_schema__"):
        source = pa.schema(source)
    if isinstance(source, pa.Schema):
        return tuple(Field.from_arrow(f) for f in source), source.metadata or {}
    made = tuple(source)
    if not all(isinstance(f, Field) for f in made):
        raise TypeError("a schema is made of fields, or of a dict of names and types")
    return made, {}


def field_of(name: str, kind: Any) -> Field:
    """The field of a column: from a field, an Arrow type or field, a type's name or a dtype.

    Raises
    ------
    SchemaError
        A name that is no type.
    TypeError
        `kind` is nothing of the kind.
    """
    if not isinstance(name, str):
        raise TypeError(f"a column's name is a str, not {type(name).__name__}")
    if isinstance(kind, Field):
        return kind.named(name)
    if isinstance(kind, pa.Field):
        return Field.from_arrow(kind).named(name)
    if isinstance(kind, str) and (marked := marked_tensor(kind)) is not None:
        return Field(name, marked[0], metadata=marked[1])
    try:
        return Field(name, type_of(kind))
    except TypeError as error:
        raise TypeError(f"column '{printable(name)}': {error}") from None


def _unpickle(fields: tuple[Field, ...], metadata: dict[bytes, bytes]) -> Schema:
    return Schema(fields, metadata)
