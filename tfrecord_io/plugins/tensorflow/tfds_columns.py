"""Tables in the features of TFDS: the tree that ``features.json`` describes, and the columns of its leaves.

A leaf is stored as tensorflow_datasets/core/example_serializer.py does it: the values of all its items one after
another; of sequences inside sequences ``x/ragged_flat_values`` and the lengths of the inner ones,
``x/ragged_row_lengths_0``; of tensors with several sizes of their own ``x/value``, bytes, and ``x/shape``.

Tests: tests/plugins/tensorflow/test_write_tfds.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.columns import Column, ImageForm, ImageHeader
from tfrecord_io.errors import DecodeError, EncodeError, FeatureNotFoundError, SchemaError
from tfrecord_io.kit import Array, printable
from tfrecord_io.plugins.tensorflow.copied_tfds_features import SourceFeatures
from tfrecord_io.plugins.tensorflow.tfds import has_least
from tfrecord_io.store import Folder

_PACKAGE = "tensorflow_datasets.core.features."
_MODES = tuple(ImageForm.MODES_BY_CHANNELS.values())
_DECODED = ("jpeg", "png", "bmp")  # TFDS decodes them to arrays [height, width, channels]
_CAST = "cast it to a number, text or bytes"
Json = dict[str, Any]


@dataclass(slots=True)
class DecodedImages:
    """Dtype and channels to which TFDS decodes the images of a column, by their headers."""

    name: str
    mode: str | None  # as the caller states it
    of_other_splits: tuple[str, int] | None = None  # the dtype and channels in other splits
    dtype: str = ""
    channels: int = 0
    of_bmp: int = 0  # the channels of images that TFDS does not convert

    def feature(self) -> Json:
        """The feature in ``features.json``."""
        dtype, channels = self.of_other_splits or (
            self.dtype or "uint8",
            self.channels or ImageForm.CHANNELS_BY_MODE.get(self.mode or "RGB", 3),
        )
        content = {"dtype": dtype, "shape": _dimensions((None, None, channels))}
        return _feature("image_feature.Image", image=content)

    def note(self, data: bytes, row: int) -> None:
        """Take an image into account; EncodeError if TFDS cannot say what it is."""
        try:
            header = ImageHeader.read(data, "", self.name)
        except DecodeError as error:
            raise EncodeError(error.reason, feature=self.name, record=row, expected=error.expected) from None
        if header.format not in _DECODED:
            description = f"is a {header.format.upper()}"
            advice = "encode it as PNG, or leave the column out of images="
            raise self._error(row, description, "JPEG, PNG or BMP", advice)
        if header.has_palette and self.mode not in ImageForm.MODES_BY_CHANNELS.values():
            description = "has a palette, whose numbers TFDS replaces by colours"
            advice = f"store the numbers as a grey image, or pass images={ {self.name: 'RGB'}!r} for the colours"
            raise self._error(row, description, "grey or colours", advice)
        if self.mode == ImageForm.INDEX_MODE and header.bits != 8:
            description = f"has {header.bits} bits, which TFDS stretches or keeps"
            raise self._error(row, description, "numbers of 8 bits", "store it with 8 bits")
        dtype = "uint16" if header.bits == 16 else "uint8"
        if self.dtype not in ("", dtype):
            raise self._error(row, f"has values of {dtype}", f"{self.dtype}, as of those before it", "convert it")
        header_channels = 3 if header.mode == "CMYK" else header.channels
        channels = (
            header_channels
            if self.mode in (None, ImageForm.INDEX_MODE)
            else ImageForm.CHANNELS_BY_MODE[self.mode or ""]
        )
        if channels not in ImageForm.MODES_BY_CHANNELS or not _is_decoded(header, channels):
            description = f"is a {header.format.upper()} of {header.mode}"
            expected = f"what TFDS decodes to {channels} channels"
            advice = f'convert it, or pass another mode by images={{"{self.name}": mode}}'
            raise self._error(row, description, expected, advice)
        before = self.channels or channels
        if before != channels and {before, channels} != {1, 3}:
            advice = f'pass images={{"{self.name}": mode}} with one of {", ".join(_MODES)}'
            raise self._error(row, f"has {channels} channels", f"{before}, as of those before it", advice)
        self.dtype, self.channels = dtype, max(before, channels)
        if header.format == "bmp":
            self.of_bmp = channels
        if self.of_bmp not in (0, self.channels):
            expected = f"{self.channels}, as of others, of which TFDS makes none of a BMP"
            raise self._error(row, f"has {self.of_bmp} channels", expected, "convert it")
        if self.of_other_splits is not None and (
            dtype != self.of_other_splits[0] or channels not in (self.of_other_splits[1], self.of_other_splits[1] - 2)
        ):
            expected = f"{self.of_other_splits[1]} channels of {self.of_other_splits[0]}, as of the other splits"
            raise self._error(row, f"has {channels} channels of {dtype}", expected, "convert it")

    def _error(self, row: int, description: str, expected: str, advice: str) -> EncodeError:
        reason = f"the image {description}; expected {expected}"
        return EncodeError(reason, feature=self.name, record=row, expected=expected, got=description, hint=advice)


@dataclass(slots=True)
class LeafColumn:
    """A leaf of the tree of features, and what was found in its values."""

    name: str  # keys of the dicts that lead to it, joined by "/"
    type: pa.DataType  # of an item
    levels: int = 0  # of sequences around an item
    shape: tuple[int | None, ...] = ()
    dtype: str = ""  # NumPy's name
    image: DecodedImages | None = None
    names: dict[str, int] | None = None  # of a ClassLabel, and their numbers; it grows
    optional: bool = False  # a row had none, or another split has the feature as optional
    least_rows: list[int] = field(default_factory=list)  # the first of each batch with the least value of the type

    @property
    def is_stored_as_bytes(self) -> bool:
        """True if the sizes of an item are stored, and its values as bytes."""
        return self.shape.count(None) > 1

    def feature(self) -> Json:
        """The feature, without the sequences around it, as in ``features.json``."""
        if self.image is not None:
            return self.image.feature()
        if self.names is not None:
            return _feature("class_label_feature.ClassLabel", classLabel={"numClasses": str(len(self.names))})
        optional: Json = {"optional": True} if self.optional else {}
        if Column(self.type).is_text and not optional:
            return _feature("text_feature.Text", text={})
        encoding = "bytes" if self.is_stored_as_bytes else "none"
        kind = "tensor_feature.Tensor" if self.shape or Column(self.type).is_bytes else "scalar.Scalar"
        content = {"dtype": self.dtype, "encoding": encoding, **optional, "shape": _dimensions(self.shape)}
        return _feature(kind, tensor=content)


def _is_decoded(header: ImageHeader, channels: int) -> bool:
    """True if TensorFlow decodes an image to so many channels, with the right values."""
    if header.format == "png":  # of few bits it sets the opacity to 1 of 255
        return channels < 4 or (header.bits >= 8 and not header.has_palette)
    if header.format == "bmp":
        return header.channels == channels > 1
    return channels == 3 or (channels == 1 and header.mode != "CMYK")


def _feature(class_name: str, **content: Any) -> Json:
    return {"pythonClassName": _PACKAGE + class_name, **content}


def _dimensions(shape: Sequence[int | None]) -> Json:
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def _sequence(feature: Json, kind: str = "sequence_feature.Sequence", length: int | None = None) -> Json:
    return _feature(kind, sequence={"feature": feature, "length": str(-1 if length is None else length)})


class TfdsColumns:
    """Stores the columns of a schema as TFDS would, with the arguments of `write_tfds`.

    `source` has the features of the dataset that the rows were read from. SchemaError: a type has no feature in TFDS, a
    name is that of a group of columns, or a named column is of another type. FeatureNotFoundError: none of the
    name, or none with the prefix.
    """

    def __init__(
        self,
        schema: pa.Schema,
        prefix: str | None,
        images: Mapping[str, str | None],
        class_names: Mapping[str, Sequence[str]],
        source: SourceFeatures | None = None,
    ) -> None:
        self._images, self._class_names, self._source = dict(images), dict(class_names), source
        for column in schema:
            if (form := ImageForm.from_metadata(column.metadata, column.name)) is not None:
                self._images.setdefault(column.name, form.mode if form.channels else None)
        self.leaves: list[LeafColumn] = []
        tree: dict[str, Any] = {}
        self._prefix = None if prefix is None else f"{prefix.rstrip('/')}/"
        for column in schema:
            _insert(tree, column.name.split("/"), self._node(column, column.name, 0), column.name)
        self._check_named()
        if self._prefix is not None and not any(map(self._is_of_steps, schema.names)):
            raise FeatureNotFoundError(
                "no column has this prefix",
                feature=self._prefix,
                hint="pass prefix=None",
                hint_cli="pass --prefix none",
            )
        self._tree = tree

    def _check_named(self) -> None:
        """Refuse `images` and `class_names` of columns that are not there, or of another type."""
        leaf_of_name = {leaf.name: leaf for leaf in self.leaves}
        named = (
            ("images", self._images, "image", "bytes"),
            ("class_names", self._class_names, "names", "integers or categories"),
        )
        for keyword, columns, attribute, expected in named:
            for name in columns:
                if name not in leaf_of_name:
                    raise FeatureNotFoundError("no column of this name", feature=name, expected=sorted(leaf_of_name))
                if getattr(leaf_of_name[name], attribute) is None:
                    reason = f"{keyword}= is for columns of {expected}"
                    raise SchemaError(reason, feature=name, expected=expected, got=str(leaf_of_name[name].type))

    def _is_of_steps(self, name: str) -> bool:
        return self._prefix is not None and f"{name}/".startswith(self._prefix)

    def features(self) -> Json:
        """The content of ``features.json``, after the last batch: it says which features were missing in some row."""
        root = self._describe_node(self._tree)
        if self._source is not None:
            merged = self._source.merge_features(root, {*self._images, *self._class_names})
            if merged is not None:
                return merged
        if self._prefix is None:
            return root
        *outer, key = self._prefix.rstrip("/").split("/")
        parent = root
        for name in outer:
            parent = parent["featuresDict"]["features"][name]
        inside = parent["featuresDict"]["features"]
        inside[key] = _sequence(inside[key], "dataset_feature.Dataset")
        return root

    def _describe_node(self, node: Any) -> Json:
        if isinstance(node, list):
            inner, length = node
            return _sequence(self._describe_node(inner), length=length)
        if isinstance(node, dict):
            features = {key: self._describe_node(node[key]) for key in sorted(node)}
            return _feature("features_dict.FeaturesDict", featuresDict={"features": features})
        return self.leaves[node].feature()

    def _node(self, column: pa.Field, name: str, levels: int) -> Any:
        """The tree of a column: a dict, of a sequence its items' tree and its length, or the number of a leaf."""
        type_ = column.type
        if t.is_struct(type_):
            children = {child.name: self._node(child, f"{name}/{child.name}", levels) for child in type_}
            if not children or any("/" in key or not key for key in children):
                raise SchemaError("a struct needs children whose names have no slash", feature=name, got=str(type_))
            return children
        leaf = self._leaf(column, name, levels)
        if leaf is not None:
            self.leaves.append(leaf)
            return len(self.leaves) - 1
        if Column(type_).is_list:
            inner = self._node(type_.value_field.with_metadata(column.metadata), name, levels + 1)
            # In a sequence of features with a fixed length, TFDS looks for values under other names.
            is_alone = not levels and isinstance(inner, int)
            length = type_.list_size or None if t.is_fixed_size_list(type_) and is_alone else None
            return inner if not levels and self._is_of_steps(name) else [inner, length]
        reason = "TFDS has no feature of this type"
        raise SchemaError(reason, feature=name, got=str(type_), hint=f"{_CAST}, or leave the column out")

    def _leaf(self, column: pa.Field, name: str, levels: int) -> LeafColumn | None:
        type_, (item, shape) = column.type, _item_of(column, name)
        if not levels and self._is_of_steps(name):
            if Column(type_).is_list:
                return None
            advice = "rename it, or make it a list with a value for each step"
            raise SchemaError("a column of steps is a list", feature=name, got=str(type_), hint=advice)
        has_names = name in self._class_names and t.is_integer(item) and not shape
        if has_names or (t.is_dictionary(item) and Column(item.value_type).is_text):
            class_names = self._class_names.get(name, ())
            Folder.check_class_names(class_names)
            names = {class_name: number for number, class_name in enumerate(class_names)}
            return LeafColumn(name, item, levels=levels, shape=(), dtype="int64", image=None, names=names)
        if Column(item).is_text or Column(item).is_bytes:
            mode = self._images.get(name)
            if mode not in (None, ImageForm.INDEX_MODE, *_MODES):
                raise SchemaError(f"unknown image mode {mode!r}", feature=name, expected=_MODES)
            image = DecodedImages(name, mode) if name in self._images else None
            return LeafColumn(name, item, levels=levels, shape=(), dtype="string", image=image) if not shape else None
        if not (t.is_boolean(item) or Column(item).is_number) or t.is_decimal(item):
            return None
        if levels and None in shape:
            reason = "TFDS has no sequence of tensors of several shapes in TFRecord files"
            raise SchemaError(reason, feature=name, got=str(type_), hint="pad them to one shape")
        element = Column(column).dtype_and_shape[0].name if Column(type_).is_tensor else None
        return LeafColumn(name, item, levels=levels, shape=shape, dtype=element or str(item.to_pandas_dtype()().dtype))

    # ---- data

    def batch(self, batch: pa.RecordBatch, row: int) -> pa.RecordBatch:
        """The columns of the leaves of a batch, whose first row has the number `row`."""
        self._leaf_number, self._row = 0, row
        self._steps: tuple[str, Array] | None = None  # a column of steps, and how many each episode has
        columns: dict[str, pa.Array] = {}
        for column, array in zip(batch.schema, batch.columns, strict=True):
            for name, stored in self._stored_columns(column, array, []):
                if name in columns:
                    raise SchemaError("two columns are stored under this name", feature=name, hint="rename one")
                columns[name] = stored
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))

    def _stored_columns(
        self, column: pa.Field, array: pa.Array, lengths: list[Array]
    ) -> Iterator[tuple[str, pa.Array]]:
        if t.is_struct(column.type):
            for child, values in zip(column.type, array.flatten(), strict=True):
                yield from self._stored_columns(child, values, lengths)
            return
        leaf = self.leaves[self._leaf_number]
        if len(lengths) == leaf.levels:
            self._leaf_number += 1
            yield from self._items(leaf, column, array, lengths)
            return
        import pyarrow.compute as pc

        self._refuse_nulls(leaf, array)
        counts = pc.list_value_length(array).to_numpy(zero_copy_only=False).astype(np.int64)
        if not lengths and self._is_of_steps(leaf.name):
            self._check_steps(leaf.name, counts)
        inner = column.type.value_field.with_metadata(column.metadata)
        yield from self._stored_columns(inner, array.flatten(), [*lengths, counts])

    def _check_steps(self, name: str, counts: Array) -> None:
        """Refuse episodes whose columns have different numbers of steps, of which TFDS makes no dataset."""
        first, expected = self._steps = self._steps or (name, counts)
        wrong = np.flatnonzero(counts != expected)
        if len(wrong):
            got, steps = int(counts[wrong[0]]), int(expected[wrong[0]])
            reason = f"the episode has {got} steps here, and {steps} in '{printable(first)}'"
            advice = "give each column of steps a value for each step, or name it without the prefix"
            row = self._row + int(wrong[0])
            raise EncodeError(reason, feature=name, record=row, expected=steps, got=got, hint=advice)

    def _items(
        self, leaf: LeafColumn, column: pa.Field, array: pa.Array, lengths: list[Array]
    ) -> Iterator[tuple[str, pa.Array]]:
        """The columns of a leaf, by its items and how many the sequences around them have."""
        if leaf.names is not None:
            array = _codes(leaf, array)
        if leaf.image is not None:
            self._refuse_nulls(leaf, array)
            ends = np.cumsum(_count_items(np.ones(len(array), np.int64), lengths))
            for at, cell in enumerate(array):
                leaf.image.note(cell.as_buffer().to_pybytes(), self._row + int(ends.searchsorted(at, side="right")))
        if not leaf.shape and not lengths:
            leaf.optional |= array.null_count > 0
            if array.null_count and (t.is_unsigned_integer(leaf.type) or t.is_boolean(leaf.type)):
                self._refuse_nulls(leaf, array)
            self._refuse_least(leaf, array)
            yield leaf.name, _as_signed(array)
            return
        self._refuse_nulls(leaf, array)
        if leaf.is_stored_as_bytes:
            tensors = Column(column).tensors(array)
            cells = [bytes(tensors.data[a:b]) for a, b in zip(tensors.offsets, tensors.offsets[1:], strict=False)]
            yield f"{leaf.name}/value", pa.array(cells, pa.binary())
            shapes = np.ascontiguousarray(tensors.shape_matrix)
            sizes = pa.array(shapes.reshape(-1), pa.int64())
            yield f"{leaf.name}/shape", _lists(sizes, np.full(len(cells), shapes.shape[1]))
            return
        values, counts = _values(leaf, column, array)
        values = _as_signed(values)
        flat = f"{leaf.name}/ragged_flat_values" if len(lengths) > 1 else leaf.name
        if lengths:
            size = int(np.prod(leaf.shape, dtype=np.int64))  # type: ignore[arg-type]  # none is unknown
            counts = _count_items(np.ones(len(array), np.int64), lengths) * size
        yield flat, _lists(values, counts)
        for level, inner in enumerate(lengths[1:]):
            per_row = _count_items(np.ones(len(inner), np.int64), lengths[: level + 1])
            yield f"{leaf.name}/ragged_row_lengths_{level}", _lists(pa.array(inner, pa.int64()), per_row)

    def _refuse_least(self, leaf: LeafColumn, array: pa.Array) -> None:
        """Refuse the least value of a signed type in an optional feature: TFDS has it for a missing value."""
        import pyarrow.compute as pc

        if not has_least(array.type):
            return
        dtype = np.dtype(array.type.to_pandas_dtype())
        least_value = np.iinfo(dtype).min if dtype.kind == "i" else float(np.finfo(dtype).min)
        values = array.cast(pa.float32()) if t.is_float16(array.type) else array  # pyarrow does not search half floats
        at = pc.index(values, pa.scalar(least_value, values.type)).as_py()
        if at >= 0:
            leaf.least_rows.append(self._row + at)
        if leaf.least_rows and leaf.optional:
            reason = f"the least value of {array.type} stands for a missing value in this feature, which has some"
            wider = "" if t.is_int64(array.type) else ", or cast the column to a wider type"
            advice = f"replace it or fill the missing values{wider}"
            raise EncodeError(reason, feature=leaf.name, record=leaf.least_rows[0], hint=advice)

    def _refuse_nulls(self, leaf: LeafColumn, array: pa.Array) -> None:
        if array.null_count:
            reason = "TFDS stores no missing value in this feature"
            first = int(np.asarray(array.is_null()).argmax())
            row = self._row + first if len(array) else None
            raise EncodeError(reason, feature=leaf.name, record=row, hint="fill it, or leave the row out")


def _insert(tree: dict[str, Any], path: Sequence[str], node: Any, name: str) -> None:
    *outer, key = path
    for part in outer:
        tree = tree.setdefault(part, {})
        if not isinstance(tree, dict):
            break
    if not isinstance(tree, dict) or key in tree or not all(path):
        reason = f"'{printable(name)}' cannot be a feature of TFDS: a part of its name is that of another, or empty"
        raise SchemaError(reason, feature=name, hint="rename it")
    tree[key] = node


def _item_of(column: pa.Field, name: str) -> tuple[pa.DataType, tuple[int | None, ...]]:
    """The type of the values of a column's items, and the shape of an item: of tensors and lists of fixed length."""
    type_: Any = column.type
    if Column(type_).is_tensor:
        element, axes = Column(column).dtype_and_shape
        if element.plain is None:
            reason, advice = f"TFDS has no feature of {element.name} in TFRecord files", "split or cast it"
            raise SchemaError(reason, feature=name, got=element.name, hint=advice)
        return element.plain, tuple(axes)
    shape: list[int | None] = []
    while t.is_fixed_size_list(type_):
        shape.append(type_.list_size)
        type_ = type_.value_type
    is_plain = t.is_boolean(type_) or (Column(type_).is_number and not t.is_decimal(type_))
    return (type_, tuple(shape)) if is_plain or not shape else (column.type, ())


def _values(leaf: LeafColumn, column: pa.Field, array: pa.Array) -> tuple[pa.Array, Array]:
    """All values of a leaf's items, and how many each has."""
    if Column(column.type).is_tensor:
        tensors = Column(column).tensors(array)
        return pa.array(tensors.ndarray()), tensors.counts
    while t.is_fixed_size_list(array.type):
        array = array.flatten()
    if array.null_count:
        raise EncodeError("TFDS stores no missing value in a tensor", feature=leaf.name, hint="fill it")
    rows = len(array) // (size := int(np.prod(leaf.shape, dtype=np.int64)) or 1)  # type: ignore[arg-type]
    return array, np.full(rows, size)


def _count_items(ones: Array, lengths: Sequence[Array]) -> Array:
    """Count the items of each row, in sequences of these lengths, outermost first."""
    counts = ones
    for inner in reversed(lengths):
        offsets = np.concatenate([[0], np.cumsum(counts)])
        ends = np.cumsum(inner)
        counts = offsets[ends] - offsets[ends - inner]
    return counts


def _lists(values: pa.Array, counts: Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def _as_signed(values: pa.Array) -> pa.Array:
    """Values that the writer takes: those of uint64 as the same bits."""
    return values.view(pa.int64()) if values.type == pa.uint64() else values


def _codes(leaf: LeafColumn, array: pa.Array) -> pa.Array:
    """The numbers of classes, −1 where a class is missing; names that are new get the next numbers."""
    import pyarrow.compute as pc

    assert leaf.names is not None
    numbers: list[int] = []
    if t.is_dictionary(array.type):
        numbers = [leaf.names.setdefault(name, len(leaf.names)) for name in array.dictionary.to_pylist()]
    for name in leaf.names:
        if name is None or not name.strip() or name.strip() != name or {"\n", "\r"} & {*name}:
            reason = f"the class {name!r} cannot be a line of a file of labels"
            raise EncodeError(reason, feature=leaf.name, got=name, hint="rename it")
    if t.is_dictionary(array.type):
        return pc.fill_null(pa.array(numbers, pa.int64()).take(array.indices), -1)
    codes = array.cast(pa.int64())
    extent = pc.min_max(codes).as_py()
    if len(array) > array.null_count and not -1 <= extent["min"] <= extent["max"] < len(leaf.names):
        got = extent["min"] if extent["min"] < -1 else extent["max"]
        raise EncodeError(f"{got} is not a number of {len(leaf.names)} classes", feature=leaf.name, got=got)
    return pc.fill_null(codes, -1)
