"""Hugging Face datasets: an IterableDataset whose shards are pieces of the files, or a Dataset in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Literal, overload

import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.errors import SchemaError
from tfrecord_io.kit import (
    Column,
    ImageColumns,
    LateTypes,
    ListLengths,
    RepresentationOptions,
    Rows,
    Scan,
    empty_batch,
    feature_descriptions,
    needs,
)
from tfrecord_io.typing import Lengths, OpenedDataset

if TYPE_CHECKING:
    import datasets
else:
    datasets = LateTypes("datasets")


@overload
def to_hf(
    dataset: OpenedDataset | Rows,
    *,
    streaming: Literal[True] = True,
    shards: int | None = None,
    max_bytes: int = Scan.PIECE_BYTES,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
) -> datasets.IterableDataset: ...
@overload
def to_hf(
    dataset: OpenedDataset | Rows,
    *,
    streaming: Literal[False],
    shards: int | None = None,
    max_bytes: int = Scan.PIECE_BYTES,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
) -> datasets.Dataset: ...
@overload
def to_hf(
    dataset: OpenedDataset | Rows,
    *,
    streaming: bool,
    shards: int | None = None,
    max_bytes: int = Scan.PIECE_BYTES,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
) -> datasets.IterableDataset | datasets.Dataset: ...
def to_hf(
    dataset: OpenedDataset | Rows,
    *,
    streaming: bool = True,
    shards: int | None = None,
    max_bytes: int = Scan.PIECE_BYTES,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
) -> datasets.IterableDataset | datasets.Dataset:
    """A dataset of Hugging Face datasets; `tfrecord_io.write_tfrecord` writes both kinds again.

    Parameters
    ----------
    streaming : bool, default True
        An IterableDataset, which reads the files when it is iterated over; else a Dataset of all rows in memory, which
        has a length and rows by number.
    shards : int, optional
        The maximum number of shards of the IterableDataset, which workers and ranks share. A dataset with `offset`,
        `limit` or ``on_error="stop"`` has one.
    max_bytes : int, default 128 MiB
        Without `shards`: the approximate size of a shard, compressed if the files are.
    pad_value, max_length, pad_to
        As in `read_arrays`.

    Returns
    -------
    datasets.IterableDataset or datasets.Dataset
        Tensors of one shape are lists of fixed length, nested to that shape, also in lists and structs, and so are the
        pixels of images (lists of any length where their size varies); ``with_format("numpy")`` makes arrays of them.
        Categories are text. Labels that were written from a ``ClassLabel`` feature are one again, with its names,
        unless files disagree on them;
        so is an ``Array2D`` to ``Array5D`` of one shape.

    Raises
    ------
    MissingDependencyError
        datasets is not installed.
    SchemaError
        A list is longer than `pad_to`, or is one of tensors or lists. Images have the mode "unchanged". A column has
        dtypes of ml_dtypes, arrays of text, times in units that Arrow does not have, or arrays without elements.
    """
    source = Rows.of(dataset)
    Column.check_dtypes(source.schema, "datasets")
    for field in source.schema:
        if isinstance(field.type, pa.FixedShapeTensorType) and 0 in field.type.shape:
            reason = f"datasets has no arrays without elements, such as of shape {tuple(field.type.shape)}"
            raise SchemaError(reason, feature=field.name, got=str(field.type), hint="leave the column out by select")
    images = ImageColumns(source.schema, source.options.thread_count)
    options = RepresentationOptions(pad_value=pad_value, max_length=max_length, pad_to=pad_to)
    lists = ListLengths(source.schema, options, images, "to_hf")
    with needs("hf"):
        import datasets
        from datasets.iterable_dataset import ArrowExamplesIterable
    empty = images.decode(lists.cut(_empty_table(source.schema)))
    if not streaming:
        if images:
            table = pa.concat_tables([_plain(empty), *(table for _, table in _tables([source], lists, images))])
        else:
            table = lists.cut(source.to_table())
        features = _features(empty.schema if images else table.schema)
        return datasets.Dataset(_plain(table).cast(features.arrow_schema))
    pieces = [source] if source.is_indivisible else source.split(shards, max_bytes)
    features = _features(empty.schema)
    examples = ArrowExamplesIterable(_tables, {"pieces": pieces, "lists": lists, "images": images})
    return datasets.IterableDataset(examples, info=datasets.DatasetInfo(features=features))


def _features(schema: pa.Schema) -> datasets.Features:
    """Features of the columns of a dataset.

    Only labels and arrays are taken from the descriptions in the files: an ``Image``, say, would open any path in its
    values.
    """
    import datasets

    features = datasets.Features.from_arrow_schema(_plain(_empty_table(schema)).schema)
    for name, description in feature_descriptions(schema).items():
        features[name] = _apply_description(features[name], description)
    return features


def _apply_description(feature: Any, description: Any) -> Any:
    """Turn a feature into labels with names, or an ``Array2D``, if its description, from JSON, says so and fits."""
    import datasets

    if not isinstance(description, dict):
        return feature
    if str(description.get("_type")) in ("Array2D", "Array3D", "Array4D", "Array5D"):
        lengths, inner = list[int](), feature
        while hasattr(inner, "feature"):
            lengths, inner = [*lengths, inner.length], inner.feature
        is_same = lengths == description.get("shape") and inner == datasets.Value(str(description.get("dtype")))
        return getattr(datasets, description["_type"])(tuple(lengths), inner.dtype) if is_same else feature
    if isinstance(feature, dict):
        return {name: _apply_description(child, description.get(name)) for name, child in feature.items()}
    if hasattr(feature, "feature"):  # a list, whose class has another name in datasets 3
        return replace(feature, feature=_apply_description(feature.feature, description.get("feature")))
    names = description.get("names")
    if description.get("_type") != "ClassLabel" or feature != datasets.Value("int64") or not isinstance(names, list):
        return feature
    is_valid = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
    return datasets.ClassLabel(names=names) if is_valid else feature


def _tables(pieces: Sequence[Any], lists: ListLengths, images: ImageColumns) -> Iterator[tuple[int, pa.Table]]:
    """Read pieces of a dataset as numbered tables."""
    number = count()
    for piece in pieces:
        with closing(piece.batches()) as batches:
            tables = (lists.cut(pa.Table.from_batches([batch])) for batch in batches)
            decoded = images.decode_all(tables, batches, piece.options) if images else tables
            yield from ((next(number), _plain(table)) for table in decoded)


def _empty_table(schema: pa.Schema) -> pa.Table:
    return pa.Table.from_batches([empty_batch(schema)])


def _plain(table: pa.Table) -> pa.Table:
    """Convert a table to types that datasets has."""
    columns = [
        pa.chunked_array(
            [_plain_array(c, field) for c in column.chunks], _plain_array(pa.nulls(0, field.type), field).type
        )
        for field, column in zip(table.schema, table.columns, strict=True)
    ]
    return pa.table(dict(zip(table.column_names, columns, strict=True)))


def _plain_array(array: pa.Array, field: pa.Field) -> pa.Array:
    if t.is_dictionary(array.type):
        return array.dictionary_decode()
    if not isinstance(array, pa.ExtensionArray):
        if not _holds_extensions(array.type):
            return array
        return _plain_structs(array) if t.is_struct(array.type) else _plain_lists(array, field)
    storage = array.storage
    column = Column(field)
    if column.is_tensor and column.dtype_and_shape[0].name == "bool":  # which Arrow has as uint8
        bools = pa.list_(pa.bool_(), getattr(storage.type, "list_size", -1))
        is_fixed = isinstance(array.type, pa.FixedShapeTensorType)
        storage = storage.cast(bools if is_fixed else pa.struct([("data", bools), storage.type.field("shape")]))
    return _nest_lists(storage, array.type.shape) if isinstance(array.type, pa.FixedShapeTensorType) else storage


def _holds_extensions(type_: pa.DataType) -> bool:
    """True if an extension type is in lists or in the fields of structs."""
    if t.is_struct(type_):
        inner = [child.type for child in type_]
    else:
        inner = [type_.value_type] if t.is_list(type_) or t.is_large_list(type_) else []
    return any(isinstance(part, pa.BaseExtensionType) or _holds_extensions(part) for part in inner)


def _plain_structs(array: pa.StructArray) -> pa.Array:
    """Convert the fields of structs."""
    fields = list(array.type)
    arrays = [_plain_array(array.field(at), field) for at, field in enumerate(fields)]
    fields = [pa.field(field.name, part.type, field.nullable) for field, part in zip(fields, arrays, strict=True)]
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=array.is_null() if array.null_count else None)


def _plain_lists(array: pa.Array, field: pa.Field) -> pa.Array:
    """Convert lists of tensors, such as the frames of a feature list, or of structs that have tensors."""
    maker = pa.LargeListArray if t.is_large_list(array.type) else pa.ListArray
    step = array.type.value_field.with_metadata(field.metadata)
    mask = array.is_null() if array.null_count else None
    if array.offset:  # a mask is for offsets that begin at 0
        array = pa.concat_arrays([array, array[:0]])
    return maker.from_arrays(array.offsets, _plain_array(array.values, step), mask=mask)


def _nest_lists(storage: pa.Array, shape: Sequence[int]) -> pa.Array:
    """Nest the values of tensors as lists of fixed length, to their shape."""
    import pyarrow.compute as pc

    size = storage.type.list_size
    values = storage.values.slice(storage.offset * size, len(storage) * size)
    if not shape:
        return pc.list_element(storage, 0)
    for length in reversed(shape[1:]):
        values = pa.FixedSizeListArray.from_arrays(values, length)
    return pa.FixedSizeListArray.from_arrays(values, shape[0], mask=storage.is_null())
