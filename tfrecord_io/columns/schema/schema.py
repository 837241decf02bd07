"""A schema: an immutable list of fields, each a column and the feature it is read from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from tfrecord_io.base import Options, Point, Summary, check_keywords, counted, did_you_mean, printable
from tfrecord_io.columns.schema.field import CONTEXT, Field, check_columns
from tfrecord_io.columns.schema.types import common_type
from tfrecord_io.errors import FeatureNotFoundError
from tfrecord_io.typing import OpenedDataset, Path, SchemaLike, StorageLike

# The classes of feature descriptions, of TensorFlow and of `tfrecord_io.io`.
DESCRIPTIONS = frozenset(
    ("FixedLenFeature", "VarLenFeature", "FixedLenSequenceFeature", "SparseFeature", "RaggedFeature")
)

_SCHEMAS = "tfrecord_io.schemas"  # entry points


class Schema:
    """The columns to read, in order, with their types; other features of the records are ignored.

    >>> import tfrecord_io as tfr
    >>> tfr.Schema({"label": tfr.scalar("int32", required=True), "tokens": "list<int64>"})
    Schema of 2 columns
      label   int32              required
      tokens  list<item: int64>

    Parameters
    ----------
    fields : Schema, pa.Schema, mapping, or iterable of Field
        A mapping has names of columns as keys and, as values, any mix of what the field makers return, Arrow types,
        dtypes, type names and Python types: ``int`` is int64, ``float`` is float32, ``str`` is string, ``bytes`` is
        binary, and ``list[int]`` a list. Such a mapping as a value is a struct: the field ``a`` of the column ``x`` is
        the feature ``x/a``.
    metadata : mapping of bytes to bytes, optional
        Metadata of the Arrow schema (pandas stores its index there); not compared.

    Raises
    ------
    SchemaError
        A name is not a type, or a column is named twice.
    TypeError
        `fields` is none of these.
    """

    __slots__ = ("__weakref__", "_arrow", "_by_name", "_columns", "common_types", "fields", "metadata", "others")
    fields: tuple[Field, ...]
    metadata: Mapping[bytes, bytes]
    others: Mapping[int, Field]  # by number, the columns of which name and `common_type` do not say all
    common_types: dict[int, pa.DataType]  # by `id`, the types of the columns that are not among the others
    _columns: tuple[list[str], list[pa.DataType]] | None  # names and types; None: what was given are fields
    _by_name: dict[str, Field]
    _arrow: pa.Schema | None  # what it was made from

    def __init__(
        self, fields: SchemaLike | Iterable[Field] = (), metadata: Mapping[bytes, bytes] | None = None
    ) -> None:
        if not isinstance(fields, Schema | pa.Schema | Mapping) and hasattr(fields, "__arrow_c_schema__"):
            fields = pa.schema(fields)
        if isinstance(fields, pa.Schema):
            columns = _columns_of_arrow(fields)
            self._set_columns(*columns, fields.metadata if metadata is None else metadata)
            if metadata is None:
                object.__setattr__(self, "_arrow", fields)
            return
        own_fields, own_metadata = _fields_and_metadata(fields)
        names = list(map(attrgetter("column"), own_fields))
        check_columns(names, map(attrgetter("feature"), own_fields))
        object.__setattr__(self, "fields", own_fields)
        object.__setattr__(self, "metadata", MappingProxyType(dict(own_metadata if metadata is None else metadata)))
        object.__setattr__(self, "others", dict(enumerate(own_fields)))
        object.__setattr__(self, "_columns", None)
        object.__setattr__(self, "_arrow", None)

    @classmethod
    def from_common_types(
        cls,
        names: Sequence[str],
        types: Sequence[pa.DataType | None],
        metadata: Mapping[bytes, bytes] | None = None,
        others: Mapping[int, Field] | None = None,
    ) -> Schema:
        """Make a schema of columns of types of which most are a `common_type`, without a field for each of these.

        `others` are the fields, by number, of the columns of which name and type do not say all; their types need not
        be stated.
        """
        schema = cls.__new__(cls)
        own, fields = list(types), dict(others or {})
        keys = list(map(id, own))
        different = dict(zip(keys, own, strict=True))
        shared = {key: common_type(type_) for key, type_ in different.items() if type_ is not None}
        if not fields and None not in shared.values():
            schema._set_columns(list(names), list(map(shared.__getitem__, keys)), {}, metadata)
            object.__setattr__(schema, "common_types", {id(type_): type_ for type_ in shared.values()})
            return schema
        for at, (name, type_) in enumerate(zip(names, own, strict=True)):
            if at not in fields and (common := shared[id(type_)]) is not None:
                own[at] = common
                continue
            if at not in fields:
                fields[at] = Field(name, type_)
            own[at] = fields[at].type
        schema._set_columns(list(names), own, fields, metadata)
        return schema

    def _set_columns(
        self,
        names: list[str],
        types: list[pa.DataType],
        others: Mapping[int, Field],
        metadata: Mapping[bytes, bytes] | None,
    ) -> None:
        check_columns(names, map(attrgetter("feature"), others.values()))
        object.__setattr__(self, "metadata", MappingProxyType(dict(metadata or {})))
        object.__setattr__(self, "others", others)
        object.__setattr__(self, "_columns", (names, types))
        object.__setattr__(self, "_arrow", None)

    def __getattr__(self, name: str) -> Any:
        """Make what was not asked for yet."""
        value: object
        if name == "fields" and self._columns is not None:
            value = tuple(map(self._field_at, range(len(self))))
        elif name == "_by_name":
            value = {f.column: f for f in self.fields}
        elif name == "common_types":
            types = self.types
            if self.others:
                types = [type_ for at, type_ in enumerate(types) if at not in self.others]
            value = dict(zip(map(id, types), types, strict=True))
        else:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        object.__setattr__(self, name, value)
        return value

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema is immutable; make a new one ({name})")

    def __delattr__(self, name: str) -> None:
        self.__setattr__(name, None)

    def __reduce__(self) -> tuple[Any, ...]:
        if self._columns is not None:  # types of tensors of varying shapes cannot be pickled, their fields can
            types = [None if at in self.others else type_ for at, type_ in enumerate(self._columns[1])]
            return Schema.from_common_types, (self._columns[0], types, dict(self.metadata), self.others)
        return Schema, (self.fields, dict(self.metadata))

    @classmethod
    def parse(cls, source: Any) -> Schema:
        """A Schema from a Schema, a pa.Schema, or a mapping of names to fields, Arrow types or type names.

        Raises
        ------
        SchemaError
            A name is not a type, or a column is named twice.
        TypeError
            `source` is none of these; only the class itself accepts an iterable of fields.
        """
        if isinstance(source, Schema):
            return source
        if isinstance(source, pa.Schema | Mapping) or hasattr(source, "__arrow_c_schema__"):
            return cls(source)
        got = type(source).__name__
        text = f"schema: expected a Schema, a pyarrow.Schema or a dict of names and types, got {got}"
        raise TypeError(f"{text}; columns= selects columns by name" if isinstance(source, list | tuple) else text)

    # To and from other formats --------------------------------------------------------------------------------

    @classmethod
    @check_keywords
    def from_arrow(cls, source: pa.Schema) -> Schema:
        """Convert a pa.Schema, including what `to_arrow` has put into its metadata."""
        return cls(source)

    def to_arrow(self) -> pa.Schema:
        """The pa.Schema of a table read with this schema; `from_arrow` converts it back."""
        source = self._arrow
        if source is not None and all(map(_says_the_same, self.others.values(), map(source.field, self.others))):
            return source  # a second one of 10^5 columns takes 20 MB
        columns = list[Any](zip(self.names, self.types, strict=True))
        for at, f in self.others.items():
            if not f.is_common or f.required or f.metadata or f.feature != f.column:
                columns[at] = f.to_arrow()  # which takes three times as long as a name and a type
        return pa.schema(columns, metadata=dict(self.metadata) or None)

    def __arrow_c_schema__(self) -> object:
        """The schema for other Arrow libraries: ``pa.schema(schema)``."""
        return self.to_arrow().__arrow_c_schema__()

    @classmethod
    @check_keywords
    def from_json(cls, text: str | bytes) -> Schema:
        """Read the output of `to_json`; SchemaError if the text is something else."""
        from tfrecord_io.columns.schema.formats import text_forms

        return cls(*text_forms.from_json(text))

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
        from tfrecord_io.columns.schema.formats import text_forms

        return text_forms.to_json(self.fields, self.metadata, indent)

    @check_keywords
    def save(self, source: Path | OpenedDataset) -> str:
        """Save the schema beside files that carry none; from then on all calls read the files with it.

        >>> import tfrecord_io as tfr
        >>> with tfr.RecordWriter("ages.tfrecord") as writer:
        ...     writer.write(tfr.encode_example({"age": 30, "name": b"Ada"}))
        >>> tfr.Schema({"age": "uint8", "name": "binary"}).save("ages.tfrecord")
        '_SCHEMA-ages.tfrecord.json'
        >>> tfr.read_table("ages.tfrecord").schema.field("age").type
        DataType(uint8)

        A saved schema comes after ``schema=`` and a schema that files or their manifest carry, and before a
        ``features.json`` of TFDS and the types that are inferred. ``schema="infer"`` ignores it. It says which columns
        there are, as ``schema=`` does.

        Parameters
        ----------
        source : str, PathLike or Dataset
            What the schema is for: a directory (``_SCHEMA.json`` in it, also for its folders of columns), the shards of
            a name (``train@*`` or a glob: ``_SCHEMA-train.json``), or one file (``_SCHEMA-a.tfrecord.json``). A dataset
            brings its ``storage_options``.

        Returns
        -------
        str
            The path of the saved schema; an older one is replaced.

        Raises
        ------
        SchemaError
            The files carry a schema, there are no records, or none has a feature of the schema.
        ValueError
            The files are neither those of a directory nor the shards of one name.

        Notes
        -----
        With it goes a fingerprint of the first records: names and kinds of features. Records with a new feature, or
        with values of another kind, or without a feature that all had, are read as if no schema was saved, with a
        `SchemaWarning`. Only the first records of a read are compared, without their values, sizes and numbers of
        values; rows may be appended.
        """
        path: str = Point.load_own(_SCHEMAS, "saved").save(self, source)
        return path

    def to_python(self) -> str:
        """Source code that makes this schema.

        Examples
        --------
        >>> print(Schema({"label": "int32"}).to_python())
        import tfrecord_io as tfr
        <BLANKLINE>
        schema = tfr.Schema({
            "label": "int32",
        })
        """
        from tfrecord_io.columns.schema.formats import text_forms

        return text_forms.to_python(self.fields)

    @classmethod
    @check_keywords
    def from_tfx(
        cls,
        source: str | bytes | os.PathLike[str],
        *,
        tensor_representation_group: str = "",
        sequence_feature: str | None = None,
        storage_options: StorageLike | None = None,
    ) -> Schema:
        """Convert a TFX schema; the module `tfrecord_io.plugins.tensorflow.tfx` lists the conversions.

        >>> Schema.from_tfx('''
        ... feature { name: "age" type: INT presence { min_fraction: 1 } shape {} int_domain { min: 0 max: 255 } }
        ... feature { name: "tokens" type: BYTES string_domain { value: "a" } }
        ... ''')
        Schema of 2 columns
          age     uint8
          tokens  list<item: string>

        Parameters
        ----------
        source : str, PathLike or bytes
            A file, local or behind a URL, in text (``schema.pbtxt``) or binary form; or its content. A str with a "{"
            is content.
        tensor_representation_group : str
            The group of tensors to use, if there are several.
        sequence_feature : str, optional
            Name of the STRUCT feature that contains the feature lists of SequenceExamples. By default
            ``##SEQUENCE##``, or the only STRUCT of the schema.
        storage_options
            As for `read_tfrecord`.

        Raises
        ------
        FileNotFoundError
            The file does not exist.
        SchemaError
            It is not a TFX schema, or describes what no record can have.
        """

        return cls(
            Point.load_own(_SCHEMAS, "tfx").from_tfx(
                source, tensor_representation_group, sequence_feature, storage_options
            )
        )

    def to_tfx(self) -> str:
        """Convert to a TFX schema, as the text of a ``schema.pbtxt``.

        `from_tfx` reads the same schema, except that structs, and lists of them, become the features they are written
        as. A required value of fixed shape is written as a dense tensor without a default, so TensorFlow's parser
        requires it as well.

        Raises
        ------
        SchemaError
            A type cannot be stored in a TFRecord.

        Examples
        --------
        >>> print(Schema({"label": "bool"}).to_tfx())
        feature {
          name: "label"
          value_count {
            min: 1
            max: 1
          }
          type: INT
          bool_domain {
          }
        }
        <BLANKLINE>
        """
        text: str = Point.load_own(_SCHEMAS, "tfx").to_tfx(self.fields)
        return text

    @classmethod
    @check_keywords
    def from_tfds(
        cls, path: str | os.PathLike[str], *, class_labels: str = "codes", storage_options: StorageLike | None = None
    ) -> Schema:
        """The schema of a dataset that TFDS wrote.

        >>> import os
        >>> os.makedirs("mnist")
        >>> _ = open("mnist/features.json", "w").write('''{"type": "tfds.FeaturesDict", "content": {
        ...   "image": {"type": "tfds.Image", "content": {"shape": [28, 28, 1], "dtype": "uint8"}},
        ...   "label": {"type": "tfds.ClassLabel", "content": {"num_classes": 10}}}}''')
        >>> Schema.from_tfds("mnist")
        Schema of 2 columns
          image  binary
          label  int64

        Parameters
        ----------
        path : str or PathLike
            The directory of the record files, which has a ``features.json``, or that file; local or a URL.
        class_labels : {"codes", "names"}
            How a ClassLabel is read: as its int64 code, or as a dictionary column of the names in
            ``<feature>.labels.txt``, in which −1 (TFDS's "no label") is null. Without such a file it is the code.
        storage_options
            As for `read_tfrecord`.

        Returns
        -------
        Schema
            A column for each leaf, with nested keys joined by "/", of these types:

            - a Tensor of shape ``()`` is a value, ``(n,)`` a fixed_size_list, of more axes a fixed_shape_tensor; an
              unknown dimension makes lists of the dimensions after it
            - a Sequence, Dataset or Video is a list of its items (fixed_size_list if its length is known);
              tensors in it are fixed_size_lists
            - Text is string; other strings, images and lazily decoded audio are binary
            - float64 is double, although a record stores float32 unless the tensor is encoded as bytes

            A missing tensor is null; an optional one also where it has TFDS's value for None, the least of a signed
            number type.

        Raises
        ------
        FileNotFoundError
            The directory has no ``features.json``.
        SchemaError
            It is damaged, or has a feature of an unsupported class.
        """
        from tfrecord_io.columns.schema.formats.tfds_info import read_features

        folder, text = read_features(path, Options(storage_options=storage_options).storage)
        return cls(Point.load_own(_SCHEMAS, "tfds").from_tfds(folder, text, class_labels))

    @classmethod
    @check_keywords
    def from_feature_description(
        cls, description: Mapping[str, Any], sequence_features: Mapping[str, Any] | None = None
    ) -> Schema:
        """The schema of what TensorFlow's parsing would return.

        >>> import tfrecord_io as tfr
        >>> description = {"label": tfr.io.FixedLenFeature([], "int64", 0), "words": tfr.io.VarLenFeature("string")}
        >>> tfr.Schema.from_feature_description(description)
        Schema of 2 columns
          label  int64               default 0
          words  list<item: binary>

        Parameters
        ----------
        description : mapping of str to feature
            As for ``tf.io.parse_example``, with TensorFlow's own objects or the classes of `tfrecord_io`.
        sequence_features : mapping of str to feature, optional
            As for ``tf.io.parse_sequence_example``, where `description` is its context_features.

        Raises
        ------
        SchemaError
            A dtype that is not int64, float32 or string, or a value that is not a feature.
        """
        return cls(
            Point.load_own(_SCHEMAS, "feature_description").from_feature_description(description, sequence_features)
        )

    def to_feature_description(self, part: str = CONTEXT) -> dict[str, Any]:
        """The feature description of this schema by feature name, in the classes of `tfrecord_io`.

        A column that may be null and has no default is a VarLenFeature: TensorFlow has no nulls.

        >>> Schema({"label": "int32"}).to_feature_description()
        {'label': VarLenFeature(dtype='int64')}

        Parameters
        ----------
        part : {"context", "feature_list"}
            Describe an Example or the context of a SequenceExample, or the feature lists of a SequenceExample.
        """
        description: dict[str, Any] = Point.load_own(_SCHEMAS, "feature_description").to_feature_description(
            self.fields, part
        )
        return description

    # As a sequence and a mapping ------------------------------------------------------------------------------

    @property
    def names(self) -> list[str]:
        """Names of the columns, in order."""
        return list(map(attrgetter("column"), self.fields) if self._columns is None else self._columns[0])

    @property
    def types(self) -> list[pa.DataType]:
        """Types of the columns, in order."""
        return list(map(attrgetter("type"), self.fields) if self._columns is None else self._columns[1])

    def field(self, name: str) -> Field:
        """Return ``schema[name]``."""
        return self[name]

    def select(self, names: Iterable[str]) -> Schema:
        """The schema of these columns only, in this order."""
        selected = list(names)
        if selected == self.names:
            return self
        if self._columns is not None:
            names, types = self._columns
            wanted, places = set(selected), dict[str, int]()
            for at, name in enumerate(names):
                if name in wanted:
                    places[name] = at
            if places.keys() == wanted:
                numbers, others = list(map(places.__getitem__, selected)), dict[int, Field]()
                for at, number in enumerate(numbers if self.others else ()):
                    if number in self.others:
                        others[at] = self.others[number]
                schema = Schema.__new__(Schema)
                schema._set_columns(selected, list(map(types.__getitem__, numbers)), others, self.metadata)
                return schema
        return Schema(map(self.__getitem__, selected), self.metadata)

    def replace_fields(self, fields: Mapping[int, Field]) -> Schema:
        """Replace fields, by number; without any, return this schema."""
        if not fields:
            return self
        if self._columns is None:
            return Schema([fields.get(at, f) for at, f in enumerate(self.fields)], self.metadata)
        names = self.names
        for at, f in fields.items():
            names[at] = f.column
        return Schema.from_common_types(names, self.types, self.metadata, {**self.others, **fields})

    def _field_at(self, at: int) -> Field:
        """The field of a column, of a schema of names and types."""
        assert self._columns is not None
        return self.others.get(at) or Field(self._columns[0][at], self._columns[1][at])

    def __len__(self) -> int:
        return len(self.fields if self._columns is None else self._columns[0])

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def __getitem__(self, key: int | str) -> Field:
        if isinstance(key, int):
            return self.fields[key]
        if key not in self._by_name:
            advice = did_you_mean(str(key), self.names, lists_names=True)
            raise FeatureNotFoundError("the schema has no such column", feature=key, hint=advice)
        return self._by_name[key]

    def __eq__(self, other: object) -> bool:
        return self.fields == other.fields if isinstance(other, Schema) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.fields)

    def __repr__(self) -> str:
        title, _, rows, *_ = self._summary()
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
        return "\n".join([title, *(f"  {line}" for line in lines)])

    def _repr_html_(self) -> str:
        return self._summary().html()

    def _summary(self) -> Summary:
        notes = [", ".join(f"{k} {v}".rstrip() for k, v in f.notes().items()) for f in self.fields]
        rows = [(printable(f.column), f.type_name, note) for f, note in zip(self.fields, notes, strict=True)]
        return Summary(f"Schema of {counted(len(self), 'column')}", ("column", "type", "notes"), rows)


def _columns_of_arrow(source: pa.Schema) -> tuple[list[str], list[pa.DataType], dict[int, Field]]:
    """Names and types of the columns of an Arrow schema, and the fields of those of which these do not say all."""
    types, others = [], dict[int, Field]()
    for at, column in enumerate(source):
        type_ = common_type(column.type)
        if type_ is None or column.metadata or not column.nullable:
            field = others[at] = Field.from_arrow(column)
            type_ = field.type
        types.append(type_)
    return source.names, types, others


def _says_the_same(column: Field, source: pa.Field) -> bool:
    """True if a column is converted to the Arrow field that it was made from."""
    return not source.metadata if column.is_common else column.to_arrow().equals(source, check_metadata=True)


def _fields_and_metadata(source: Any) -> tuple[tuple[Field, ...], Mapping[bytes, bytes]]:
    """Fields and metadata of any accepted source of a Schema."""
    if isinstance(source, Schema):
        return source.fields, source.metadata
    if isinstance(source, Mapping):
        from tfrecord_io.columns.schema.field_makers import as_field

        if source and all(type(value).__name__ in DESCRIPTIONS for value in source.values()):  # of TensorFlow or tfr.io
            return Schema.from_feature_description(source).fields, {}
        return tuple(as_field(name, value) for name, value in source.items()), {}
    fields = tuple(source)
    if not all(isinstance(f, Field) for f in fields):
        raise TypeError("a schema is made of fields, or of a dict of names and types")
    return fields, {}
