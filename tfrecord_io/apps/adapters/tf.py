"""tf.data: a Dataset of batches, whose element_spec follows from the schema."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import types as t

from tfrecord_io.apps.adapters.mask_tensors import split_masks
from tfrecord_io.errors import DecodeError, SchemaError
from tfrecord_io.kit import Column, ColumnRepresentation, Dtype, LateTypes, RepresentationOptions, Rows, needs
from tfrecord_io.typing import ArrayIterator, ArrayLayout, Lengths, Missing, OpenedDataset, UnevenParts

if TYPE_CHECKING:
    import tensorflow as tf
else:
    tf = LateTypes("tensorflow")
Array = npt.NDArray[Any]

_SEED_BITS = 48
_NO_VALUE = "a record has no value, and a tensor cannot mark missing values"


def to_tf(
    dataset: OpenedDataset | Rows,
    *,
    batch_size: int,
    shuffle_buffer: int | None = None,
    seed: int | None = None,
    drop_last: bool = False,
    worker: tuple[int, int] | None = None,
    uneven: UnevenParts = "keep",
    parts: int | tuple[int, int] | None = None,
    ragged: ArrayLayout | Mapping[str, ArrayLayout] | None = None,
    pad_value: Any = 0,
    max_length: Lengths | Mapping[str, Lengths] | None = None,
    pad_to: Lengths | Mapping[str, Lengths] | None = None,
    missing: Missing = "error",
    bucket_by: Sequence[str] | str | None = None,
    bucket_sizes: Sequence[int] | None = None,
    pack: Mapping[str, int] | None = None,
    cut: bool = False,
    end_token: Any = None,
) -> tf.data.Dataset:
    """A tf.data.Dataset of batches, with a static element_spec.

    Parameters
    ----------
    batch_size, shuffle_buffer, seed, drop_last, worker, uneven, parts, bucket_by, bucket_sizes, pack, cut, end_token
        As in `iter_arrays`.
    ragged, pad_value, max_length, pad_to, missing
        As in `read_arrays`.

    Returns
    -------
    tf.data.Dataset
        Of dicts by column. Numbers, bools, times and tensors are dense tensors; times and durations are int64, counts
        of the unit in the schema. Text and bytes are tf.string. Lists of a fixed length are dense tensors, others
        RaggedTensors, or as `ragged` says: the schema states the length, or all lists of the sample have one where no
        schema tells. Tensors and images of several shapes, and lists of such, are RaggedTensors: each axis is ragged up
        to the last one that varies. With ``missing="mask"`` there is a bool tensor ``<column>/mask`` for each
        column that may lack a value: those that are missing are 0, "" or empty. Each iteration over the dataset is
        one epoch, which is shuffled differently from the one before; ``tf.random.set_seed`` determines the order where
        `seed` does not. With `worker`, ``tf.distribute`` does not shard the dataset again. Errors in files are
        TensorFlow's own, with the same text.

    Raises
    ------
    MissingDependencyError
        TensorFlow is not installed.
    SchemaError
        TensorFlow has no type for a column.
    TypeError, ValueError
        A keyword does not exist, or its value is invalid.
    """
    RepresentationOptions.refuse_matrices(ragged, "TensorFlow")
    with needs("tf"):
        import tensorflow as tf
    iteration = Rows.of(dataset).iterate(
        batch_size=batch_size,
        shuffle_buffer=shuffle_buffer,
        seed=seed,
        drop_last=drop_last,
        worker=worker,
        uneven=uneven,
        parts=parts,
        ragged=ragged,
        pad_value=pad_value,
        max_length=max_length,
        pad_to=pad_to,
        missing=missing,
        bucket_by=bucket_by,
        bucket_sizes=bucket_sizes,
        pack=pack,
        cut=cut,
        end_token=end_token,
    )
    if iteration.options.seed is None:  # the epochs are shuffled differently, by one seed
        with tf.init_scope():
            drawn = tf.random.uniform((), maxval=2**_SEED_BITS, dtype=tf.int64)
        iteration = iteration.begin_epoch(0, seed=int(drawn))
    columns = _Columns(iteration)
    epochs = count()

    def batches() -> Iterator[dict[str, Any]]:
        epoch = next(epochs)
        with iteration.begin_epoch(epoch, epochs=epoch + 1) as iterator:
            for batch in iterator:
                yield columns.convert(batch)

    batched = tf.data.Dataset.from_generator(batches, output_signature=columns.spec)
    if (worker or (0, 1))[1] > 1:  # a strategy of several workers would split the part of each worker again
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
        batched = batched.with_options(options)
    try:
        batch_count = len(iteration)
    except TypeError:  # unknown without reading the files
        return batched
    if not iteration.options.damage.is_strict:
        return batched
    return batched.apply(tf.data.experimental.assert_cardinality(batch_count))


class _Columns:
    """Converts the arrays of a batch to tensors, and describes these by a `spec`."""

    def __init__(self, iteration: ArrayIterator) -> None:
        options = iteration.options
        self._masks = options.missing == "mask"
        self._rows = options.batch_size if options.drop_last and options.bucket_sizes is None else None
        self.spec: dict[str, Any] = {}  # tf.TypeSpec by name
        self._text: set[str] = set()
        self._ragged: dict[str, _Ragged] = {}
        layouts = options.layouts if options.has_layouts else None
        for field in Column.leaves(iteration.schema):
            column = ColumnRepresentation(field, options, False, iteration.lengths.get(field.name), layouts=layouts)
            for name, array in column.empty_arrays().items():
                self._add(name, array, column=column, field=field)

    def _add(self, name: str, array: Any, column: ColumnRepresentation, field: pa.Field) -> None:
        """Describe the tensors of an array, of which `array` has no rows."""
        import tensorflow as tf

        if isinstance(array, tuple):
            *_, item = Column(field).walk()
            values = array[0] if Column(item).is_bytes or array[0].dtype.kind != "O" else _list_values(field)
            self._add_ragged(name, _Ragged.of_lists(values))
            return
        padded = column.padded_shape(array, name)
        inner = array.shape[1:] if padded is None else padded
        type_ = field.type
        for _ in array.shape[1:]:
            type_ = type_.value_type if Column(type_).is_list else type_
        if array.dtype.kind == "T" or (not column.is_image and array.dtype.kind == "O" and Column(type_).is_bytes):
            self._text.add(name)
            self.spec[name] = tf.TensorSpec((self._rows, *inner), tf.string)
        elif array.dtype.kind == "O":
            self._add_ragged(name, self._rows_of_cells(field, column))
        else:
            self.spec[name] = tf.TensorSpec((self._rows, *inner), _dtype(name, array))
        if self._masks:
            shape = (self._rows,) if name in self._ragged else self.spec[name].shape
            if isinstance(array, np.ma.MaskedArray) or array.dtype.kind in "OT":
                self.spec[f"{name}/mask"] = tf.TensorSpec(shape, tf.bool)

    @staticmethod
    def _rows_of_cells(field: pa.Field, column: ColumnRepresentation) -> _Ragged:
        """Describe the tensors of rows that are objects: lists, tensors of several shapes, or lists of such."""
        if column.is_image:
            return _image_rows(field, column)
        of_field, is_list = Column(field), Column(field).is_list
        value = field.type.value_type if is_list else None
        has_tensors = of_field.is_variable_tensor or (is_list and Column(value).is_variable_tensor)
        has_fixed = is_list and (isinstance(value, pa.FixedShapeTensorType) or t.is_fixed_size_list(value))
        if not has_tensors and not has_fixed:
            return _list_rows(field)
        offsets = replace(column.options, ragged={field.name: "offsets"}, pad_value=0)
        as_offsets = ColumnRepresentation(field, offsets, False, None, layouts=offsets.layouts)
        (values, _), *_ = as_offsets.empty_arrays().values()
        if values.dtype.kind in "OT":
            return _list_rows(field)
        return _Ragged(values, of_field.tensor_axes, in_lists=is_list) if has_tensors else _Ragged.of_lists(values)

    def _add_ragged(self, name: str, rows: _Ragged) -> None:
        import tensorflow as tf

        self._ragged[name] = rows
        shape = (self._rows, *rows.shape)
        self.spec[name] = tf.RaggedTensorSpec(shape, _dtype(name, rows.values), ragged_rank=rows.rank)

    def convert(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Convert a batch to tensors, in the order of the spec."""
        tensors: dict[str, Any] = {}
        for name, array in split_masks(
            {name: self._mask_missing(name, values) for name, values in batch.items()}
        ).items():
            tensors[name] = self._tensor(name, array if isinstance(array, tuple) else self._restore_shape(name, array))
        return {name: tensors[name] for name in self.spec}

    def _restore_shape(self, name: str, array: Array) -> Array:
        """Give an array without a value, as all rows of a batch lack one, the axes of the spec."""
        spec_shape = self.spec[name].shape.as_list()[1:] if name not in self._ragged else []
        pairs = zip(array.shape[1:], spec_shape, strict=False)
        shape = [actual if length is None else length for actual, length in pairs]
        if array.size or shape == [*array.shape[1 : len(shape) + 1]]:
            return array
        return np.full((len(array), *shape), name.endswith("/mask"), array.dtype)

    def _mask_missing(self, name: str, array: Any) -> Any:
        """Mask missing values; DecodeError without ``missing="mask"``."""
        if name not in self._text and not (name in self._ragged and not isinstance(array, tuple)):
            return array
        if name in self._ragged and array.ndim > 1:  # lists of tensors, all of one length
            array = _one_axis(array)
        cells, missing = _cells(array)
        if self._masks:
            return np.ma.MaskedArray(cells, missing | np.ma.getmaskarray(array))
        if missing.any():
            advice = 'pass missing="mask", or declare a default with schema='
            raise DecodeError(_NO_VALUE, feature=name, hint=advice)
        return cells

    def _tensor(self, name: str, array: Any) -> Any:
        import tensorflow as tf

        if name in self._text:
            cells, missing = _cells(array)
            cells[missing] = ""
            return cells
        if name not in self._ragged:
            return _numbers(array)
        if isinstance(array, tuple):
            values, offsets = array
            if values.dtype.kind in "OT":
                values, missing = _cells(values)
                if missing.any():
                    raise DecodeError(_NO_VALUE, feature=name, hint='pass ragged="pad" and missing="mask"')
            return tf.RaggedTensor.from_row_splits(_numbers(values), offsets)
        return self._ragged[name].tensor(name, array)


class _Ragged(NamedTuple):
    """Rows of several shapes: tensors, or lists of them. A list of values is a tensor whose first axis varies."""

    values: Array  # an empty array of the dtype of the values
    axes: tuple[int | None, ...]  # of each tensor, None where they vary
    in_lists: bool = False

    @classmethod
    def of_lists(cls, values: Array) -> _Ragged:
        """Lists of any length, of values of one shape."""
        return cls(values, (None, *values.shape[1:]))

    @property
    def shape(self) -> tuple[int | None, ...]:
        """The static shape of a row."""
        return (None, *self.axes) if self.in_lists else self.axes

    @property
    def rank(self) -> int:
        """The number of partitions of a RaggedTensor: one for each axis up to the last one that varies."""
        return len(self.shape) - self.shape[::-1].index(None)

    def tensor(self, name: str, cells: Iterable[Any]) -> Any:
        """The RaggedTensor of rows; those that are None are empty."""
        import tensorflow as tf

        if not self.in_lists:
            empty = np.empty([size or 0 for size in self.axes], self.values.dtype)
            return self._tensors([empty if cell is None else cell for cell in cells])
        lists = [[] if cell is None else list(cell) for cell in cells]
        tensors = [tensor for row in lists for tensor in row]
        if any(tensor is None for tensor in tensors):
            advice = "read it with read_table, which returns null, or exclude it"
            raise DecodeError(f"an item of its list: {_NO_VALUE}", feature=name, hint=advice)
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return tf.RaggedTensor.from_row_lengths(self._tensors(tensors), lengths)

    def _tensors(self, tensors: Sequence[Array]) -> Any:
        """Join tensors, some of whose axes vary, to a RaggedTensor."""
        import tensorflow as tf

        shapes = np.array([tensor.shape for tensor in tensors], np.int64).reshape(len(tensors), len(self.axes))
        count = len(self.axes) - self.axes[::-1].index(None)  # of the axes that are partitions
        flat = np.concatenate([self.values.reshape(-1), *(tensor.reshape(-1) for tensor in tensors)])
        joined = _numbers(flat.reshape(int(shapes[:, :count].prod(axis=1).sum()), *self.axes[count:]))
        for axis in reversed(range(count)):
            blocks = shapes[:, :axis].prod(axis=1)  # each of which the axis divides
            size = self.axes[axis]
            if size is None:
                joined = tf.RaggedTensor.from_row_lengths(joined, np.repeat(shapes[:, axis], blocks))
            else:
                joined = tf.RaggedTensor.from_uniform_row_length(joined, size, nrows=int(blocks.sum()))
        return joined


def _cells(array: Array) -> tuple[Array, Array]:
    """Text, bytes or lists as objects, and a mask of the cells that are None."""
    cells = np.ma.getdata(array).astype(object)
    return cells, np.fromiter((cell is None for cell in cells.flat), np.bool_, cells.size).reshape(cells.shape)


def _one_axis(lists: Array) -> Array:
    """Lists of one length as an array of objects with a cell for each list, None where all its items are."""
    rows = np.empty(len(lists), object)
    for row, items in enumerate(np.ma.getdata(lists)):
        rows[row] = None if len(items) and all(item is None for item in items) else items
    return rows


def _list_rows(field: pa.Field) -> _Ragged:
    """Describe rows of lists of numbers or times, or of lists of such lists; SchemaError for other rows."""
    is_nested = Column(field).is_list and Column(field.type.value_type).is_list
    lists = pa.field(field.name, field.type.value_type, metadata=field.metadata) if is_nested else field
    return _Ragged(_list_values(field, lists), Column(lists).list_shape or (None,), in_lists=is_nested)


def _list_values(field: pa.Field, lists: pa.Field | None = None) -> Array:
    """Empty array with the dtype of the values of lists; SchemaError if rows are not lists of numbers or times."""
    type_ = field.type if lists is None else lists.type
    values = type_.value_type if t.is_list(type_) or t.is_large_list(type_) else None
    array = None if values is None else pa.nulls(0, values).to_numpy(zero_copy_only=False)
    if array is None or array.dtype.kind == "O":
        reason = f"TensorFlow has no tensor for rows of {field.type}"
        column = None if values is None else Column(values)
        is_text = column is not None and (column.is_text or column.is_bytes)
        has_strings = is_text or (values is not None and t.is_dictionary(values))
        advice = 'exclude it, or pass ragged="pad"' if has_strings else "exclude it"
        raise SchemaError(reason, feature=field.name, got=str(field.type), hint=advice)
    return array


def _image_rows(field: pa.Field, column: ColumnRepresentation) -> _Ragged:
    """Describe images of several sizes, or lists of images; SchemaError if these have no dtype in common."""
    if column.image_form is None:
        reason = 'images of mode "unchanged" are not a tensor of TensorFlow'
        raise SchemaError(reason, feature=field.name, hint='declare tfr.image(mode="RGB"), "L" or "RGBA"')
    dtype, axes = column.image_form
    if None in axes:
        return _Ragged(np.empty(0, dtype), axes, in_lists=Column(field).is_list)
    return _Ragged(np.empty(0, dtype), (None, *axes))


def _dtype(name: str, array: Array) -> Any:
    import tensorflow as tf

    row = Dtype.extension_of(array.dtype)
    if row is not None and not row.is_in_tf_data:
        raise SchemaError(f"tf.data has no {row.name}", feature=name, got=row.name, hint="leave it out by select")
    return tf.as_dtype(_numbers(array[:0]).dtype)


def _numbers(array: Array) -> Array:
    """View times as counts of their unit."""
    return array.view(np.int64) if array.dtype.kind in "mM" else array
