"""The tests that each tensor encoding inherits: a subclass states how other code makes a cell of it.

Tests: tests/columns/arrow/encodings.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tfrecord_io import RecordWriter, Schema, encode_example, read_arrays, scalar, tensor
from tfrecord_io.apps.api import read_table, read_tfrecord, write_tfrecord
from tfrecord_io.columns import Column, TensorValues
from tfrecord_io.errors import DecodeError, EncodeError, SchemaError, StoppedEarlyWarning
from tfrecord_io.kit import Dtype, RowFault, TensorEncoding

PLAIN = [name for name, row in Dtype.TABLE.items() if row.plain is not None]
MARKED = [name for name in Dtype.TABLE if name not in PLAIN]
MARKED += "S1 S3 U1 U2 datetime64[M] datetime64[D] timedelta64[ps]".split()
TIMES = ["datetime64[s]", "datetime64[ns]", "timedelta64[ms]", "timedelta64[us]"]
NAMES = PLAIN + MARKED + TIMES  # all rows of the table


def dtype_of(name: str) -> np.dtype[Any]:
    """The dtype of a name of the table."""
    return Dtype.of_name(name).dtype


def values_of(name: str, shape: tuple[int, ...], seed: int) -> np.ndarray[Any, Any]:
    """An array of any bits that its dtype may have; no NaT, which Arrow takes for a null."""
    rng = np.random.default_rng(seed)
    dtype = dtype_of(name)
    count = int(np.prod(shape))
    if dtype.kind == "U":
        letters = np.array([chr(c) for c in rng.integers(0, 0xD800, count * 2)], "U1")
        return letters.view("U2")[:count].astype(dtype).reshape(shape)
    raw = rng.integers(0, 256, count * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == "b":
        raw %= 2
    if dtype.kind in "mM":
        return rng.integers(-(10**6), 10**6, count).astype(dtype).reshape(shape)
    return raw.view(dtype).reshape(shape)


def tensor_column(cells: Sequence[Any]) -> tuple[pa.Array, Dtype]:
    """A column of the arrays of a sequence, None where one is missing."""
    arrays = [None if cell is None else np.asarray(cell) for cell in cells]
    return TensorValues.array_of(arrays)


def _table(cells: Sequence[Any], shape: tuple[int | None, ...]) -> pa.Table:
    column, of = tensor_column(cells)
    return pa.Table.from_arrays([column], schema=pa.schema([Column.of_tensors("x", of, shape).field]))


SHAPES = [(), (3,), (0,), (2, 3), (2, 0, 3), (1, 2, 3)]


class TensorEncodingSuite(ABC):
    name: str
    dtypes: ClassVar[list[str]] = NAMES  # those that can be written
    hostile: ClassVar[list[bytes]] = []  # bytes that are not an int32 tensor of shape (3,)

    @abstractmethod
    def elsewhere(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        """The features of a record with this tensor as x, made by other code."""

    @property
    def encoding(self) -> TensorEncoding:
        return TensorEncoding.of(self.name)

    def written(self, path: Any, columns: Any, **options: Any) -> Any:
        write_tfrecord(columns, path, column_encoding={"x": self.name}, **options)
        return path

    def foreign(self, path: Any, cells: list[Any]) -> Any:
        """A file of records made by other code, None: without the feature."""
        with RecordWriter(path) as writer:
            for cell in cells:
                features = {} if cell is None else cell if isinstance(cell, dict) else self.elsewhere(cell)
                writer.write(encode_example({"id": 1, **features}))
        return path

    def declared(self, dtype: str, shape: tuple[int | None, ...], **keywords: Any) -> dict[str, Any]:
        return {"x": tensor(dtype, shape, encoding=self.name, **keywords)}

    def values(self, dtype: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """An array of any bits, or if a cell is a list of numbers, of numbers that such a list holds."""
        array = values_of(dtype, shape, 1)
        if not self.encoding.one_value_per_cell and array.dtype.kind in "fu":
            return (np.arange(array.size) % 100).reshape(shape).astype(dtype)
        return array

    # ---- encode and decode

    def test_the_table_has_it_under_its_name(self) -> None:
        assert self.encoding.name == self.name
        assert TensorEncoding.of(self.name) is self.encoding

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_decodes_what_it_encodes(self, shape: tuple[int, ...]) -> None:
        for dtype in self.dtypes:
            array = self.values(dtype, (4, *shape))
            field = Column.of_tensors("x", Dtype.of_name(dtype), shape).field
            column, _ = tensor_column(list(array))
            tensors = Column(field).tensors(column)
            values, offsets = self.encoding.encode(tensors)
            assert len(offsets) == 5
            if not self.encoding.one_value_per_cell:
                values = values.astype("f4" if values.dtype.kind == "f" else "i8")
            cells = self.encoding.decode(values, offsets, Dtype.of_name(dtype), shape)
            assert cells.data.tobytes() == array.tobytes()
            assert cells.sizes.tolist() == [array[0].nbytes] * 4
            if cells.shapes is not None:
                assert cells.shapes.tolist() == [list(shape)] * 4

    def test_decodes_tensors_whose_shapes_vary(self) -> None:
        arrays = [np.arange(2 * n, dtype="i4").reshape(2, n) for n in (3, 0, 1, 3)]
        tensors = TensorValues(
            Dtype.of_name("int32"),
            np.concatenate([a.reshape(-1) for a in arrays]).view(np.uint8),
            np.cumsum([0, *(a.nbytes for a in arrays)]),
            np.array([a.shape for a in arrays]),
        )
        values, offsets = self.encoding.encode(tensors)
        if not self.encoding.one_value_per_cell:
            values = values.astype("i8")
        cells = self.encoding.decode(values, offsets, Dtype.of_name("int32"), (2, None))
        assert cells.sizes.tolist() == [a.nbytes for a in arrays]
        shapes = np.array([(2, size // 8) for size in cells.sizes]) if cells.shapes is None else cells.shapes
        decoded = TensorValues(Dtype.of_name("int32"), cells.data, np.cumsum([0, *cells.sizes]), shapes)
        for cell, array in zip(decoded.cells(), arrays, strict=True):
            np.testing.assert_array_equal(cell, array)

    def test_no_cells(self) -> None:
        dtype = np.uint8 if self.encoding.one_value_per_cell else np.int64
        cells = self.encoding.decode(np.empty(0, dtype), np.zeros(1, np.int64), Dtype.of_name("int32"), (3,))
        assert (len(cells.data), len(cells.sizes)) == (0, 0)

    def test_a_dtype_that_it_does_not_store_is_refused(self, tmp_path: Path) -> None:
        for dtype in sorted(set(NAMES) - set(self.dtypes)):
            assert not self.encoding.stores(Dtype.of_name(dtype))
            table = _table(list(values_of(dtype, (2, 2), 1)), (2,))
            with pytest.raises(EncodeError, match=f'"{self.name}" does not store {dtype}'.replace("[", r"\[")):
                self.written(tmp_path / "a", table)
            assert not (tmp_path / "a").exists()

    # ---- files

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_files_come_back_by_their_embedded_schema(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        array = values_of("int32", (5, *shape), 2)
        path = self.written(tmp_path / "a", {"x": array})
        np.testing.assert_array_equal(read_arrays(path)["x"], array)

    def test_every_dtype_comes_back(self, tmp_path: Path) -> None:
        for dtype in self.dtypes:
            array = self.values(dtype, (3, 2))
            table = _table(list(array), (2,))
            path = self.written(tmp_path / "a", table, mode="overwrite")
            assert read_arrays(path)["x"].tobytes() == array.tobytes()

    def test_reads_what_others_write(self, tmp_path: Path) -> None:
        arrays = [np.arange(3, dtype="i4") + n for n in range(4)]
        path = self.foreign(tmp_path / "a", arrays)
        stacked = read_arrays(path, schema=self.declared("int32", (3,)))["x"]
        np.testing.assert_array_equal(stacked, np.stack(arrays))

    def test_null_rows_sliced_input_and_many_shapes(self, tmp_path: Path) -> None:
        rank = 2 if self.encoding.one_value_per_cell else 1  # lists store no more than the number of values
        sizes = (None, 1, None, 3, 0)
        cells = [None if size is None else np.ones((2, size)[-rank:], "i4") for size in sizes]
        table = _table([np.zeros((2, 1)[-rank:], "i4"), *cells], (None,) * rank).slice(1)
        back = read_table(self.written(tmp_path / "a", table))
        values = read_tfrecord(tmp_path / "a")["x"]
        for got, expected in zip(values, cells, strict=True):
            assert (got is None or got is pd.NA) if expected is None else np.array_equal(got, expected)
        assert back["x"].null_count == 2

    def test_a_file_of_nulls(self, tmp_path: Path) -> None:
        schema = Schema({"x": tensor("int32", (3,), encoding=self.name), "id": scalar("int64")})
        table = read_table(self.foreign(tmp_path / "a", [None, None]), schema=schema)
        assert table["x"].null_count == 2
        assert read_table(self.foreign(tmp_path / "b", []), schema=schema).num_rows == 0

    def test_single_numbers_and_lists(self, tmp_path: Path) -> None:
        table = pa.table(
            {
                "n": pa.array([1, None, 3], pa.int16()),
                "b": pa.array([True, False, None]),
                "l": pa.array([[1.5, 2.0], None, []], pa.list_(pa.float32())),
                "f": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
            }
        )
        write_tfrecord(table, tmp_path / "a", column_encoding=dict.fromkeys(table.column_names, self.name))
        back = read_table(tmp_path / "a")
        assert back.equals(table)
        back["b"].combine_chunks().validate(full=True)

    # ---- damaged values

    def test_bytes_that_are_no_such_tensor_name_their_record(self, tmp_path: Path) -> None:
        good = np.arange(3, dtype="i4")
        for cell in self.hostile:
            path = self.foreign(tmp_path / "a", [good, None, {"x": cell}])
            with pytest.raises(DecodeError) as caught:
                read_table(path, schema=self.declared("int32", (3,)))
            assert (caught.value.record, caught.value.feature) == (2, "x"), cell
            with pytest.warns(StoppedEarlyWarning):
                assert read_table(path, schema=self.declared("int32", (3,)), on_error="stop").num_rows == 2

    def test_a_wrong_number_of_values_names_its_record(self, tmp_path: Path) -> None:
        for bad in (np.arange(2, dtype="i4"), np.arange(4, dtype="i4"), np.arange(0, dtype="i4")):
            path = self.foreign(tmp_path / "a", [np.arange(3, dtype="i4"), bad])
            with pytest.raises(DecodeError, match="record 1") as caught:
                read_table(path, schema=self.declared("int32", (3,)))
            assert caught.value.feature == "x"

    # ---- schemas

    def test_schemas_keep_it(self) -> None:
        schema = Schema(self.declared("int32", (3, None), required=True))
        assert schema["x"].encoding == self.name
        assert Schema.from_json(schema.to_json()) == schema
        assert Schema(schema.to_arrow()) == schema
        assert self.name in repr(schema) or self.name == "list"

    def test_tensorflow_is_told_bytes_if_a_cell_is_one_value(self) -> None:
        schema = Schema(self.declared("int32", (3,), required=True))
        description = schema.to_feature_description()["x"]
        is_bytes = self.encoding.one_value_per_cell
        assert (description.dtype, tuple(description.shape)) == (("string", ()) if is_bytes else ("int64", (3,)))

    def test_the_writer_takes_it_by_name_and_no_other(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match=rf"column_encoding=\{{'x': 'rot13'\}}: expected one of .*'{self.name}'"):
            write_tfrecord({"x": [1]}, tmp_path / "a", column_encoding={"x": "rot13"})
        with pytest.raises(SchemaError, match=f"'rot13' is not a tensor encoding; valid names: .*{self.name}"):
            tensor("int32", (3,), encoding="rot13")
        assert not (tmp_path / "a").exists()


class BytesEncodingSuite(TensorEncodingSuite):
    """For encodings that store a cell as one bytes value."""

    def test_lists_of_tensors_are_feature_lists(self, tmp_path: Path) -> None:
        step, of = tensor_column([np.full((2, 2), n, "i4") for n in range(3)])
        field = pa.field("x", pa.list_(Column.of_tensors("item", of, (2, 2)).field))
        lists = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), step, field.type)
        table = pa.Table.from_arrays([lists], schema=pa.schema([field]))
        path = self.written(tmp_path / "a", table, record_type="sequence_example")
        back = read_table(path)["x"].combine_chunks()
        assert back.type.value_type == step.type
        assert back.values.storage.equals(step.storage)

    def test_a_truncated_value_is_an_error_or_another_tensor(self) -> None:
        column, of = tensor_column([np.arange(3, dtype="i4")])
        values, _ = self.encoding.encode(Column(Column.of_tensors("x", of, (3,)).field).tensors(column))
        for size in range(len(values)):
            offsets = np.array([0, size])
            with suppress(RowFault):
                cells = self.encoding.decode(values[:size], offsets, Dtype.of_name("int32"), (3,))
                assert cells.data.tobytes() != np.arange(3, dtype="i4").tobytes()

    def test_a_bool_is_0_or_1(self) -> None:
        column, of = tensor_column([np.array([True, True])] * 2)
        values, offsets = self.encoding.encode(Column(Column.of_tensors("x", of, (2,)).field).tensors(column))
        bad = values.copy()
        bad[-1] = 2
        with pytest.raises(RowFault) as caught:
            self.encoding.decode(bad, offsets, Dtype.of_name("bool"), (2,))
        assert caught.value.row == 1
