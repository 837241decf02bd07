"""Open a dataset of Hugging Face datasets, in memory or a stream, as a stream of Arrow tables.

Tests: tests/apps/adapters/test_hf.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

import pyarrow as pa

from tfrecord_io.base import LIMITS
from tfrecord_io.bytes import Dtype
from tfrecord_io.columns.arrow.input.array_likes import class_name, imported_module
from tfrecord_io.columns.arrow.input.from_arrays import table_of_arrays, table_of_rows
from tfrecord_io.columns.arrow.input.no_arrow_form import no_arrow_form
from tfrecord_io.columns.arrow.input.row_batches import join_dicts
from tfrecord_io.columns.arrow.input.tensor_cast import tensor_cast
from tfrecord_io.columns.arrow.row_fault import errors_of_rows
from tfrecord_io.columns.schema.tensor_types import is_any_tensor, tensor_field

_STREAMED_ROWS = 1000  # of a stream, as datasets writes its own files in batches of so many


def tables_of_hugging_face(data: Any) -> pa.RecordBatchReader | Iterator[pa.Table]:
    """The rows of a Dataset or an IterableDataset; a dict of those is a TypeError that names one of them.

    The metadata of the schema describes the features, such as the names of labels. They are unknown after a ``map``,
    say: then the result is an iterator of tables, whose types are those of their values.
    """
    hugging_face = imported_module("datasets")
    if isinstance(data, hugging_face.DatasetDict | hugging_face.IterableDatasetDict):
        which = f"write one of them, such as data[{next(iter(data))!r}]" if data else "and this one has none"
        raise TypeError(f"{class_name(data)} is a dict of datasets, not a table: {which}")
    features = data.features
    if features is None:
        return map(_table_of_examples, join_dicts(_examples(data)))
    # A table of rows in another order has a chunk for each of them.
    batches = chain.from_iterable(table.combine_chunks().to_batches() for table in _arrow_tables(data))
    fields = [_array_field(field, features[field.name]) for field in features.arrow_schema]
    schema = pa.schema(fields, features.arrow_schema.metadata)
    return pa.RecordBatchReader.from_batches(schema, _lists_to_tensors(batches, schema))


def _arrow_tables(data: Any) -> Iterator[pa.Table]:
    """The rows of a dataset whose features are known, some at a time.

    Of rows that Python code makes, datasets makes a table each, whose types differ where a value is missing.
    """
    is_in_memory = hasattr(data, "data")  # or in a mapped file
    if not is_in_memory and not data._ex_iterable.iter_arrow:
        return _tables_of_features(data)
    rows = _STREAMED_ROWS
    if is_in_memory:
        rows = min(LIMITS.batch_rows, max(1, LIMITS.batch_bytes * len(data.data) // max(data.data.nbytes, 1)))
    tables: Iterator[pa.Table] = data.with_format("arrow").iter(batch_size=rows)
    return tables


def _array_field(field: pa.Field, feature: Any) -> pa.Field:
    """The field of a column of Hugging Face datasets; of an ``Array2D`` to ``Array5D`` of one shape that of tensors."""
    shape = getattr(feature, "shape", (None,))  # which datasets stores as lists of any length
    element = None if None in shape else Dtype.find(feature.dtype)
    return field if element is None else tensor_field(field.name, element, shape)


def _lists_to_tensors(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    rows = 0
    for batch in batches:
        columns = batch.columns
        for at, field in enumerate(schema):
            if is_any_tensor(field.type):
                lists = columns[at].storage
                with errors_of_rows(rows):
                    columns[at] = tensor_cast(lists, field.with_type(lists.type), field)
        yield pa.RecordBatch.from_arrays(columns, schema=schema)
        rows += batch.num_rows


def _examples(data: Any) -> Iterator[dict[str, Any]]:
    """The rows of a dataset of Hugging Face without features, with bytes for images."""
    convert = imported_module("datasets.features.features").cast_to_python_objects
    return map(partial(convert, only_1d_for_numpy=True), data.with_format(None))


def _tables_of_features(data: Any) -> Iterator[pa.Table]:
    """The rows of an IterableDataset as tables with its features."""
    cast, missing = imported_module("datasets.table").cast_table_to_features, dict.fromkeys(data.features)
    module = imported_module("datasets.features.features")
    # Of JSON, whose values may have any types: an Arrow column of them changes them.
    encoded = {name: f for name, f in data.features.items() if module.require_decoding(f, ignore_decode_attribute=True)}
    examples = (
        row | {name: module.encode_nested_example(f, row.get(name), level=1) for name, f in encoded.items()}
        for row in _examples(data.cast(None))
    )
    begin = 0
    while rows := list(islice(examples, _STREAMED_ROWS)):
        rows[0] = missing | rows[0]
        with errors_of_rows(begin):
            yield cast(_table_of_dicts(rows), data.features)
        begin += len(rows)


def _table_of_dicts(rows: list[dict[str, Any]]) -> pa.Table:
    """The table of dicts, one for each row; EncodeError for an integer beyond int64."""
    try:
        return pa.Table.from_pylist(rows)
    except OverflowError:
        for name in rows[0]:
            values = [row.get(name) for row in rows]
            try:
                pa.array(values)
            except OverflowError:
                raise no_arrow_form(name, values) from None
        raise


def _table_of_examples(rows: Sequence[Mapping[Any, Any]]) -> pa.Table:
    columns = table_of_arrays(table_of_rows(rows))
    return pa.Table.from_batches(columns.batches(LIMITS.batch_bytes), columns.schema)
