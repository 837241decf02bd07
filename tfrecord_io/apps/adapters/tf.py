"""tf.data: a Dataset of batches, whose element_spec follows from the schema."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any

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
        schema tells. With ``missing="mask"`` there is a bool tensor ``<column>/mask`` for each
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
        self._ragged: dict[str, np.dtype[Any]] = {}
        layouts = options.layouts or None
        for field in Column.leaves(iteration.schema):
            column = ColumnRepresentation(field, options, False, iteration.lengths.get(field.name), layouts=layouts)
            for name, array in column.empty_arrays().items():
                self._add(name, array, column=column, field=field)

    def _add(self, name: str, array: Any, column: ColumnRepresentation, field: pa.Field) -> None:
        """Describe the tensors of an array, of which `array` has no rows."""
        import tensorflow as tf

        if isinstance(array, tuple):
            is_bytes_list = not Column(field).is_variable_tensor and Column(field.type.value_type).is_bytes
            self._add_ragged(name, array[0] if is_bytes_list or array[0].dtype.kind != "O" else _list_values(field))
            return
        padded = column.padded_shape(array, name)
        inner = array.shape[1:] if padded is None else padded
        type_ = field.type.value_type if array.ndim > 1 and Column(field).is_list else field.type
        if array.dtype.kind == "T" or (not column.is_image and array.dtype.kind == "O" and Column(type_).is_bytes):
            self._text.add(name)
            self.spec[name] = tf.TensorSpec((self._rows, *inner), tf.string)
        elif array.dtype.kind == "O":
            self._add_ragged(
                name, _image_values(column, field.name) if column.is_image else self._values(field, column)
            )
        else:
            self.spec[name] = tf.TensorSpec((self._rows, *inner), _dtype(name, array))
        if self._masks:
            shape = (self._rows,) if name in self._ragged else self.spec[name].shape
            if isinstance(array, np.ma.MaskedArray) or array.dtype.kind in "OT":
                self.spec[f"{name}/mask"] = tf.TensorSpec(shape, tf.bool)

    @staticmethod
    def _values(field: pa.Field, column: ColumnRepresentation) -> Array:
        """An empty array with the shape and dtype of the items of lists, which may be tensors of one shape."""
        if t.is_list(field.type) and isinstance(field.type.value_type, pa.FixedShapeTensorType):
            options = replace(column.options, ragged="offsets")
            in_lists = ColumnRepresentation(field, options, False, None, layouts=options.layouts)
            (values, _), *_ = in_lists.empty_arrays().values()
            return values
        return _list_values(field)

    def _add_ragged(self, name: str, values: Array) -> None:
        import tensorflow as tf

        self._ragged[name] = values.dtype
        shape = (self._rows, None, *values.shape[1:])
        self.spec[name] = tf.RaggedTensorSpec(shape, _dtype(name, values), ragged_rank=1)

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
        present = [cell for cell in array if cell is not None]
        values = np.concatenate(present) if present else np.empty(0, self._ragged[name])
        lengths = np.array([0 if cell is None else len(cell) for cell in array], np.int64)
        return tf.RaggedTensor.from_row_splits(_numbers(values), np.append(0, np.cumsum(lengths)))


def _cells(array: Array) -> tuple[Array, Array]:
    """Text, bytes or lists as objects, and a mask of the cells that are None."""
    cells = np.ma.getdata(array).astype(object)
    return cells, np.fromiter((cell is None for cell in cells.flat), np.bool_, cells.size).reshape(cells.shape)


def _list_values(field: pa.Field) -> Array:
    """Empty array with the dtype of the values of lists; SchemaError if rows are not lists of numbers or times."""
    values = field.type.value_type if t.is_list(field.type) or t.is_large_list(field.type) else None
    array = None if values is None else pa.nulls(0, values).to_numpy(zero_copy_only=False)
    if array is None or array.dtype.kind == "O":
        reason = f"TensorFlow has no tensor for rows of {field.type}"
        column = None if values is None else Column(values)
        is_text = column is not None and (column.is_text or column.is_bytes)
        has_strings = is_text or (values is not None and t.is_dictionary(values))
        is_padded = has_strings or Column(field).is_variable_tensor
        advice = 'exclude it, or pass ragged="pad"' if is_padded else "exclude it"
        if column is not None and column.is_variable_tensor:
            advice = "exclude it, or declare tfr.image(…, resize=(height, width)) in its place"
        raise SchemaError(reason, feature=field.name, got=str(field.type), hint=advice)
    return array


def _image_values(column: ColumnRepresentation, name: str) -> Array:
    """Empty array with the shape of the images in lists; SchemaError if sizes vary, or images are not in lists."""
    if (images := column.no_images()) is not None:
        return images
    advice = 'declare tfr.image(resize=(height, width)), or its whole shape; or pass ragged="pad"'
    advice_cli = "its whole shape"
    raise SchemaError(
        "images whose size varies are not a tensor of TensorFlow", feature=name, hint=advice, hint_cli=advice_cli
    )


def _dtype(name: str, array: Array) -> Any:
    import tensorflow as tf

    row = Dtype.extension_of(array.dtype)
    if row is not None and not row.is_in_tf_data:
        raise SchemaError(f"tf.data has no {row.name}", feature=name, got=row.name, hint="leave it out by select")
    return tf.as_dtype(_numbers(array[:0]).dtype)


def _numbers(array: Array) -> Array:
    """View times as counts of their unit."""
    return array.view(np.int64) if array.dtype.kind in "mM" else array
