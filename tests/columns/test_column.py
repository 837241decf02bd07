"""What a column says of its type, its tensors, its features and its rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tfrecord_io.bytes import Dtype, Kind
from tfrecord_io.columns import Column


def test_types_and_names() -> None:
    words = Column(pa.field("words", pa.list_(pa.string())))
    assert (words.is_list, words.is_text, Column(words.value_type).is_text) == (True, False, True)
    assert (words.short_name, words.type_name) == ("list<string>", "list<item: string>")
    assert Column(pa.dictionary(pa.int8(), pa.string())).has_dictionary()
    assert Column(pa.float32()).kind is Column(pa.float32()).plain_kind is Kind.FLOAT


def test_a_column_without_a_name_is_a_type_and_its_metadata() -> None:
    tensors = Column.of_tensors("x", Dtype.of_name("complex64"), (None, 4))
    same = Column(tensors.type, tensors.metadata)
    assert same.dtype_and_shape[1] == (None, 4)
    assert same.logical_name == tensors.logical_name == "tensor<complex64>[?,4]"
    with pytest.raises(ValueError, match="not a type of tensors"):
        _ = Column(pa.int8()).dtype_and_shape


def test_features_and_encodings() -> None:
    numbers = Column(pa.field("x", pa.float64()))
    assert (numbers.stored_as, numbers.shown_as("double")) == ("float32", "double, stored as float32")
    assert [leaf.feature for leaf in numbers.leaves] == ["x"]
    raw = Column(pa.field("x", pa.float64(), metadata={Column.ENCODING_KEY: Column.RAW.encode()}))
    assert (raw.encoding, raw.stored_as, numbers.encoding) == (Column.RAW, None, None)


def test_rows_and_cells() -> None:
    column = Column.of_tensors("x", Dtype.of_name("int8"), (2,))
    array = pa.ExtensionArray.from_storage(column.type, pa.array([[1, 2], None], pa.list_(pa.int8(), 2)))
    assert column.cells(array)[0].tolist() == [1, 2]
    assert column.cells(array)[1] is None
    assert column.cell(array, 0).tolist() == [1, 2]
    assert len(column.tensors(array)) == 1
    assert np.asarray(Column(pa.int64()).rows(pa.array([1, 2])).values).tolist() == [1, 2]


def test_tensors_are_not_made_of_too_few_values() -> None:
    values = pa.array([1.0, 2.0, 3.0])
    assert len(Column.fixed_shape_tensors(values[:0], [2, 0], 5)) == 5
    with pytest.raises(pa.ArrowInvalid):
        Column.fixed_shape_tensors(values, [2], 2)
