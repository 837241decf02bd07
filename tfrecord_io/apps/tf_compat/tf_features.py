"""TensorFlow's feature descriptions without TensorFlow: classes like ``tf.io.FixedLenFeature``.

TensorFlow's own objects are accepted wherever these are, and read by their attributes.

Tests: tests/plugins/tensorflow/test_feature_description.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, get_args

import numpy as np
import pyarrow as pa

from tfrecord_io.columns import Column, FeatureBatch
from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import printable

KINDS = FeatureBatch.KINDS  # the dtypes that TensorFlow parses
DTYPES = {kind: name for name, kind in KINDS.items()}
_NAMES = {"float": "float32", "bytes": "string", "binary": "string", "str": "string", "object": "string"}


@dataclass(frozen=True)
class _Keyed:
    """Rows by the values of the feature `key`."""

    key: str


class RowSplits(_Keyed):
    """Rows by the offset at which each begins, and the end of the last one: 0 first."""


class RowLengths(_Keyed):
    """Rows by their numbers of values."""


class RowStarts(_Keyed):
    """Rows by the offset at which each begins."""


class RowLimits(_Keyed):
    """Rows by the offset at which each ends."""


class ValueRowIds(_Keyed):
    """Rows by the row number of each value."""


@dataclass(frozen=True)
class UniformRowLength:
    """Rows of one length."""

    length: int

    def __post_init__(self) -> None:
        if not hasattr(self.length, "__index__") or self.length < 1:
            raise SchemaError(f"length={self.length!r}: expected a number of at least 1", got=self.length)


Partition = RowSplits | RowLengths | RowStarts | RowLimits | ValueRowIds | UniformRowLength
PARTITIONS: dict[str, type[Any]] = {class_.__name__: class_ for class_ in get_args(Partition)}


def as_instance(source: Any, classes: Mapping[str, type[Any]]) -> Any:
    """Convert an object to the class in `classes` with the name of the object's class or a base class.

    SchemaError if no class has that name, or an attribute is missing.
    """
    class_ = next((classes[base.__name__] for base in type(source).__mro__ if base.__name__ in classes), None)
    if class_ is None:
        reason = f"{printable(repr(source))} is not one of {', '.join(classes)}"
        raise SchemaError(reason, expected=tuple(classes), got=type(source).__name__)
    if isinstance(source, class_):
        return source
    try:
        return class_(*(getattr(source, f.name) for f in fields(class_)))
    except AttributeError as error:
        raise SchemaError(f"{printable(repr(source))} is not a {class_.__name__}: {error}") from error


def parse_dtype(dtype: Any) -> str:
    """Return "int64", "float32" or "string" for a name, a NumPy dtype, an Arrow type or TensorFlow's DType.

    SchemaError for another dtype: TensorFlow parses only these.
    """
    name = str(dtype) if isinstance(dtype, str | pa.DataType) else getattr(dtype, "name", None)
    if not isinstance(name, str):
        try:
            name = np.dtype(dtype).name
        except TypeError:
            name = repr(dtype)
    name = "string" if name.startswith(("bytes", "str")) else _NAMES.get(name, name)
    if name not in KINDS:
        advice = "use int64, float32 or string, and cast the result"
        raise SchemaError(f"unsupported dtype of a feature: {name}", expected=tuple(KINDS), got=name, hint=advice)
    return name


@dataclass(frozen=True)
class FixedLenFeature:
    """A feature with a fixed number of values.

    >>> FixedLenFeature([], "int64", default_value=0)
    FixedLenFeature(shape=(), dtype='int64', default_value=0)

    Parameters
    ----------
    shape : sequence of int
        ``[]`` for a single value.
    dtype : str or dtype
        int64, float32 or string.
    default_value : object, optional
        For records without the feature; if not given, such a record is an error.

    Raises
    ------
    SchemaError
        A dimension is unknown, or the dtype is not supported.
    """

    shape: Sequence[int]
    dtype: Any
    default_value: Any = None

    def __post_init__(self) -> None:
        shape, dtype = _fixed_shape(self.shape), parse_dtype(self.dtype)
        _set(self, shape=shape, dtype=dtype, default_value=_plain(self.default_value))


@dataclass(frozen=True)
class VarLenFeature:
    """A feature with any number of values: a sparse tensor.

    >>> VarLenFeature("float32")
    VarLenFeature(dtype='float32')

    Parameters
    ----------
    dtype : str or dtype
        int64, float32 or string.
    """

    dtype: Any

    def __post_init__(self) -> None:
        _set(self, dtype=parse_dtype(self.dtype))


@dataclass(frozen=True)
class FixedLenSequenceFeature:
    """A feature with any number of values, or of blocks of values: an array, padded to the longest of the batch.

    >>> FixedLenSequenceFeature([2], "float32", allow_missing=True)
    FixedLenSequenceFeature(shape=(2,), dtype='float32', allow_missing=True, default_value=None)

    Parameters
    ----------
    shape : sequence of int
        Of one block.
    dtype : str or dtype
        int64, float32 or string.
    allow_missing : bool
        Must be True in an Example; in a feature list, whether the list may be absent.
    default_value : object, optional
        The padding value; 0 or b"" if not given.
    """

    shape: Sequence[int]
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None

    def __post_init__(self) -> None:
        shape = _fixed_shape(self.shape)
        if math.prod(shape) == 0:
            raise SchemaError(f"blocks of the shape {shape} have no values, so they cannot be counted", got=shape)
        _set(self, shape=shape, dtype=parse_dtype(self.dtype), default_value=_plain(self.default_value))


@dataclass(frozen=True)
class SparseFeature:
    """A sparse tensor whose indices and values are features of their own.

    >>> SparseFeature("at", "weight", "float32", 100).size
    100

    Parameters
    ----------
    index_key : str or sequence of str
        A feature of int64 indices for each dimension.
    value_key : str
        The feature of the values.
    dtype : str or dtype
        Of the values: int64, float32 or string.
    size : int or sequence of int
        The dense shape; a sequence if and only if `index_key` is one.
    already_sorted : bool
        The indices need no sorting.
    """

    index_key: str | tuple[str, ...]
    value_key: str
    dtype: Any
    size: int | tuple[int, ...]
    already_sorted: bool = False

    def __post_init__(self) -> None:
        is_single = isinstance(self.index_key, str)
        if is_single != hasattr(self.size, "__index__"):
            reason = "index_key= and size= are both single values or both lists"
            raise SchemaError(reason, expected=self.index_key, got=self.size)
        keys, shape = _keys(self.index_key), _fixed_shape(self.size, is_sparse=True)
        if not keys or not all(keys) or not self.value_key or len(keys) != len(shape):
            reason = "a sparse feature needs value_key=, and as many names in index_key= as sizes"
            raise SchemaError(reason, expected=keys, got=shape)
        _set(
            self,
            index_key=keys[0] if is_single else keys,
            size=shape[0] if is_single else shape,
            dtype=parse_dtype(self.dtype),
        )

    @property
    def index_keys(self) -> tuple[str, ...]:
        """All index keys."""
        return _keys(self.index_key)

    @property
    def dense_shape(self) -> tuple[int, ...]:
        """All sizes."""
        return self.size if isinstance(self.size, tuple) else (self.size,)


@dataclass(frozen=True)
class RaggedFeature:
    """A feature with any number of values, in rows: a ragged tensor.

    >>> RaggedFeature("int64", "ids", [RaggedFeature.RowLengths("lengths")]).partitions
    (RowLengths(key='lengths'),)

    Parameters
    ----------
    dtype : str or dtype
        int64, float32 or string.
    value_key : str, optional
        The feature of the values; by default the key of this description.
    partitions : sequence
        From the outermost to the innermost: `RaggedFeature.RowSplits`, `RowLengths`, `RowStarts`, `RowLimits`,
        `ValueRowIds`, each with the ``key`` of a feature, and `UniformRowLength` with a ``length``.
    row_splits_dtype : {"int32", "int64"}
    validate : bool
        For compatibility with TensorFlow. Here rows that do not fit the values are always an error.
    """

    RowSplits: ClassVar = RowSplits
    RowLengths: ClassVar = RowLengths
    RowStarts: ClassVar = RowStarts
    RowLimits: ClassVar = RowLimits
    ValueRowIds: ClassVar = ValueRowIds
    UniformRowLength: ClassVar = UniformRowLength

    dtype: Any
    value_key: str | None = None
    partitions: tuple[Partition, ...] = ()
    row_splits_dtype: str = "int32"
    validate: bool = False

    def __post_init__(self) -> None:
        if self.value_key is not None and not (isinstance(self.value_key, str) and self.value_key):
            reason = f"value_key={self.value_key!r}: expected the name of a feature"
            raise SchemaError(reason, got=self.value_key)
        splits = self.row_splits_dtype
        if not isinstance(splits, str):
            splits = np.dtype(getattr(splits, "as_numpy_dtype", splits)).name  # tf.DType
        if splits not in ("int32", "int64"):
            reason = f"row_splits_dtype={splits}: expected int32 or int64"
            raise SchemaError(reason, got=splits)
        if not isinstance(self.partitions, list | tuple):
            raise TypeError(f"partitions: expected a list, got {type(self.partitions).__name__}")
        partitions = tuple(as_instance(partition, PARTITIONS) for partition in self.partitions)
        _set(self, dtype=parse_dtype(self.dtype), partitions=partitions, row_splits_dtype=splits)


Feature = FixedLenFeature | VarLenFeature | FixedLenSequenceFeature | SparseFeature | RaggedFeature
FEATURES: dict[str, type[Any]] = {class_.__name__: class_ for class_ in get_args(Feature)}


def as_description(source: Mapping[str, Any]) -> dict[str, Feature]:
    """A feature description in the classes of this module.

    SchemaError if a value is not a feature, or one that TensorFlow would refuse; TypeError if `source` is not a mapping
    of names.
    """
    if not isinstance(source, Mapping) or not all(isinstance(name, str) for name in source):
        raise TypeError("a feature description is a dict of names and features")
    description = {}
    for name, feature in source.items():
        try:
            description[name] = as_instance(feature, FEATURES)
        except SchemaError as error:
            error.feature = name
            raise
    return description


def _set(feature: Any, **values: Any) -> None:
    for name, value in values.items():
        object.__setattr__(feature, name, value)


def _keys(source: str | Sequence[str]) -> tuple[str, ...]:
    return (source,) if isinstance(source, str) else tuple(source)


def _fixed_shape(source: Any, *, is_sparse: bool = False) -> tuple[int, ...]:
    shape = Column.parse_shape(source, is_sparse=is_sparse)
    sizes = tuple(axis for axis in shape if axis is not None)
    if len(sizes) < len(shape):
        reason = f"the shape {shape} has an unknown dimension"
        raise SchemaError(reason, got=shape, hint="use FixedLenSequenceFeature")
    return sizes


def _plain(default: Any) -> Any:
    """A default as Python values, so that descriptions compare."""
    if not isinstance(default, np.ndarray | np.generic) and callable(getattr(default, "numpy", None)):
        default = default.numpy()  # an eager tensor
    if isinstance(default, list | tuple):
        items = map(_plain, default)
        return list(items) if isinstance(default, list) else tuple(items)
    return default.tolist() if isinstance(default, np.ndarray | np.generic) else default
