"""Any Arrow table comes back as it was written."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, example, given

import tfrecord_io as tfr
from nested_tables import has_union_in_union, tables, values_of
from tfrecord_io.columns.schema.column_features import nested_restored

HAS_SLICES = int(pa.__version__.split(".")[0]) >= 25  # earlier, Python's values of slices of unions in unions are None
CODES = [5, 7]
WITHIN = pa.UnionArray.from_sparse(pa.array([7, 5, 7], "int8"), [pa.array([1, 2, 3]), pa.nulls(3)], ["a", "b"], CODES)
DOUBLES = pa.array([0.1, None, 1e-300, -0.0])
LISTS = pa.array([[0.1], None, [1e-300, None], []], pa.list_(pa.float64()))
STRUCTS = pa.array([{"a": 0.1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": None, "b": None}])
INDEX = pa.array([0, 3, None, 2], pa.int8())
UNION = pa.UnionArray.from_sparse(pa.array([5, 7, 7], "int8"), [pa.array([4, 5, 6]), WITHIN], ["a", "b"], CODES)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@given(table=tables())
@example(table=pa.table({"x": pa.ListArray.from_arrays([0, 1, 3], UNION)}))
def test_any_table_comes_back(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    tmp_path = new_folder()
    assume(HAS_SLICES or not any(has_union_in_union(field.type) for field in table.schema))
    path = tmp_path / "any.tfrecord"
    tfr.write_tfrecord(table, path, float64="raw")
    if not table.num_rows:
        return
    read = tfr.read_table(path)
    for name in table.column_names:
        assert read.schema.field(name).type == nested_restored(table.schema.field(name).type)
        assert values_of(read[name]) == values_of(table[name])
    read.validate(full=True)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@given(table=tables(max_columns=1))
def test_any_column_comes_back_as_json(table: pa.Table, new_folder: Callable[[], Path]) -> None:
    tmp_path = new_folder()
    path = tmp_path / "any.tfrecord"
    try:
        tfr.write_tfrecord(table, path, column_encoding={"x": "json"})
    except tfr.errors.EncodeError as error:
        if "JSON has no NaN" not in error.reason:
            raise
        return
    if table.num_rows:
        read = tfr.read_table(path)["x"]
        assert read.type == nested_restored(table["x"].type)
        assert values_of(read) == values_of(table["x"])


class Stored(pa.ExtensionType):
    """An extension type that this package does not know, of any storage."""

    def __init__(self, storage: pa.DataType) -> None:
        super().__init__(storage, "tests.stored")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> "Stored":
        return cls(storage)


@pytest.mark.parametrize("encoding", [None, "nested", "json"])
@pytest.mark.parametrize("values", [DOUBLES, LISTS, STRUCTS], ids=["doubles", "lists", "structs"])
@pytest.mark.parametrize("form", ["dictionary", "run-ends", "extension", "extension of a dictionary", "in lists"])
@pytest.mark.filterwarnings("error::tfrecord_io.errors.PrecisionWarning")
def test_raw_floats_are_exact_in_any_form(tmp_path: Path, form: str, values: pa.Array, encoding: str | None) -> None:
    ends = pa.array([1, 2, 3, 4], pa.int32())
    dictionary = pa.DictionaryArray.from_arrays(INDEX, values)
    column = {
        "dictionary": lambda: dictionary,
        "run-ends": lambda: pa.RunEndEncodedArray.from_arrays(ends, values),
        "extension": lambda: pa.ExtensionArray.from_storage(Stored(values.type), values),
        "extension of a dictionary": lambda: pa.ExtensionArray.from_storage(Stored(dictionary.type), dictionary),
        "in lists": lambda: pa.ListArray.from_arrays([0, 1, 1, 2, 4], dictionary),
    }[form]()
    table = pa.table({"x": column})
    column_encoding = None if encoding is None else {"x": encoding}
    with tfr.open_writer(tmp_path / "a.tfrecord", float64="raw", column_encoding=column_encoding) as writer:
        writer.write(table)
        writer.write(table)
    assert values_of(tfr.read_table(tmp_path / "a.tfrecord")["x"]) == 2 * values_of(table["x"])


@pytest.mark.parametrize("encoding", ["nested", "json"])
@pytest.mark.parametrize("form", ["values", "lists", "maps"])
def test_categories_have_no_order_that_is_not_stored(tmp_path: Path, form: str, encoding: str) -> None:
    sizes = pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array(["small", "large"]), ordered=True)
    column = {
        "values": lambda: sizes,
        "lists": lambda: pa.ListArray.from_arrays([0, 2, 3], sizes),
        "maps": lambda: pa.MapArray.from_arrays([0, 2, 3], pa.array(["a", "b", "c"]), sizes),
    }[form]()
    tfr.write_tfrecord({"x": column}, tmp_path / "a.tfrecord", column_encoding={"x": encoding})
    read = tfr.read_table(tmp_path / "a.tfrecord")["x"].combine_chunks()
    items = {"values": lambda: read, "lists": lambda: read.values, "maps": lambda: read.items}[form]()
    assert items.to_pylist() == sizes.to_pylist()
    assert items.dictionary.to_pylist() == (["small", "large"] if items.type.ordered else ["large", "small"])
    assert items.type.ordered == (form == "values" and encoding == "nested")  # which is not nested


def test_an_encoding_that_a_dictionary_cannot_have_is_refused(tmp_path: Path) -> None:
    doubles = pa.DictionaryArray.from_arrays(INDEX, DOUBLES)
    table = pa.table({"x": pa.DictionaryArray.from_arrays(INDEX, doubles)})
    with pytest.raises(tfr.errors.EncodeError, match=r'feature \'x\': the encoding "raw" .*; cast the column to dict'):
        tfr.write_tfrecord(table, tmp_path / "a.tfrecord", column_encoding={"x": "raw"})


def test_tensors_have_no_parts_to_be_nested(tmp_path: Path) -> None:
    table = pa.table({"x": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(6.0).reshape(3, 2) / 10)})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord", column_encoding={"x": "nested"})
    assert tfr.read_table(tmp_path / "a.tfrecord").equals(table)
