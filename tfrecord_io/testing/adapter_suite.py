"""Tests that each adapter inherits: a library gets the rows, types and errors that tfrecord_io reads.

Tests: tests/apps/adapters.
"""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tfrecord_io import RecordWriter, build_index, encode_example
from tfrecord_io.apps.api import write_tfrecord
from tfrecord_io.errors import CorruptRecordError, SchemaError

ZONE = "Europe/Paris"
DAYS = [datetime.datetime(2020, 1, day, 12, tzinfo=datetime.UTC) for day in (1, 2, 3)]


def columns() -> dict[str, pa.Array]:
    """Columns of each kind, of five rows; a column without nulls has a name that ends in "s"."""
    return {
        "ints": pa.array([1, 2, 3, 4, 5], pa.int16()),
        "int": pa.array([1, None, 3, 4, None], pa.int64()),
        "float": pa.array([1.5, float("nan"), None, -0.25, 2.0], pa.float32()),
        "flag": pa.array([True, None, False, True, False]),
        "text": pa.array(["a", None, "", "é", "b"]),
        "raw": pa.array([b"a", None, b"", b"\xff\0", b"b"]),
        "list": pa.array([[1], [], None, [1, 2], [3]], pa.list_(pa.int64())),
        "time": pa.array([*DAYS, None, DAYS[0]], pa.timestamp("us", ZONE)),
        "day": pa.array([day.date() for day in DAYS] + [None, None]),
        "team": pa.array(["red", "blue", None, "red", "red"]).dictionary_encode(),
        "images": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(20, dtype="uint8").reshape(5, 2, 2)),
    }


class AdapterSuite(ABC):
    """Base class of the tests of an adapter; a subclass opens paths with its library, and converts values to Python.

    Attributes
    ----------
    leaves_out : set of str
        The columns of `columns` that the library has no type for.
    keeps_class : bool
        True if the library raises the exceptions of tfrecord_io; else it raises its own, with their text.
    """

    leaves_out: frozenset[str] = frozenset()
    keeps_class = True

    @abstractmethod
    def open(self, path: Any, **keywords: Any) -> Any:
        """Open a path with the library; nothing is read yet."""

    @abstractmethod
    def rows(self, opened: Any, names: list[str] | None = None) -> dict[str, list[Any]]:
        """Read the values of all columns, or some, by the library: None if missing, tensors as nested lists."""

    @abstractmethod
    def above(self, opened: Any, least: int) -> Any:
        """Filter the rows whose column ``ints`` is more than `least`."""

    @abstractmethod
    def first(self, opened: Any, n: int) -> Any:
        """Limit to the first `n` rows."""

    @abstractmethod
    def count(self, opened: Any) -> int:
        """Count the rows."""

    @abstractmethod
    def names(self, opened: Any) -> list[str]:
        """Names of the columns, known before anything is read."""

    # ---- what is read

    @pytest.fixture
    def table(self) -> pa.Table:
        return pa.table({name: values for name, values in columns().items() if name not in self.leaves_out})

    @pytest.fixture
    def path(self, table: pa.Table, tmp_path: Path) -> Path:
        """Three files of five rows each."""
        for name in "abc":
            write_tfrecord(table, tmp_path / f"{name}.tfrecord")
        return tmp_path / "*.tfrecord"

    def expected(self, table: pa.Table) -> dict[str, list[Any]]:
        values = {name: table[name].to_pylist() for name in table.column_names}
        if "images" in values:
            values["images"] = table["images"].combine_chunks().to_numpy_ndarray().tolist()
        return values

    def assert_rows(self, got: dict[str, list[Any]], table: pa.Table) -> None:
        expected = self.expected(table)
        assert list(got) == list(expected)
        for name, values in expected.items():  # equal, or NaN; time zones may be of another class
            assert got[name] == values or repr(got[name]) == repr(values), name

    def test_values_and_nulls_of_every_type(self, path: Path, table: pa.Table) -> None:
        opened = self.open(path)
        assert self.names(opened) == table.column_names
        self.assert_rows(self.rows(opened), pa.concat_tables([table] * 3).unify_dictionaries())
        self.assert_rows(self.rows(opened), pa.concat_tables([table] * 3).unify_dictionaries())  # any number of times

    def test_selected_columns_in_their_order(self, path: Path, table: pa.Table) -> None:
        opened = self.open(path)
        for names in (["text", "ints"], ["float"]):
            present = [name for name in names if name in table.column_names]
            self.assert_rows(self.rows(opened, present), pa.concat_tables([table.select(present)] * 3))

    def test_a_filter(self, path: Path, table: pa.Table) -> None:
        whole = pa.concat_tables([table] * 3)
        for bound in (3, 5, 0):
            kept = whole.filter(pa.compute.greater(whole["ints"], bound))
            above = self.above(self.open(path), bound)
            assert self.count(above) == kept.num_rows
            self.assert_rows(self.rows(self.above(self.open(path), bound), ["text"]), kept.select(["text"]))

    def test_a_filter_on_files_with_column_indexes(self, path: Path, table: pa.Table) -> None:
        build_index([path.with_name("a.tfrecord"), path.with_name("c.tfrecord")], columns=["ints"])
        self.test_a_filter(path, table)
        first_of_some = self.first(self.above(self.open(path), 3), 3)
        self.assert_rows(self.rows(first_of_some, ["ints"]), pa.table({"ints": pa.array([4, 5, 4], pa.int16())}))

    def test_the_first_rows(self, path: Path, table: pa.Table) -> None:
        whole = pa.concat_tables([table] * 3)
        for n in (0, 2, 7, 99):
            self.assert_rows(self.rows(self.first(self.open(path), n), ["ints"]), whole.slice(0, n).select(["ints"]))
        first_of_some = self.first(self.above(self.open(path), 3), 3)
        self.assert_rows(self.rows(first_of_some, ["ints"]), pa.table({"ints": pa.array([4, 5, 4], pa.int16())}))

    def test_the_number_of_rows(self, path: Path) -> None:
        assert self.count(self.open(path)) == 15

    def test_no_rows(self, table: pa.Table, tmp_path: Path) -> None:
        write_tfrecord(table.slice(0, 0), tmp_path / "none@2")
        opened = self.open(tmp_path / "none@2")
        assert self.names(opened) == table.column_names
        self.assert_rows(self.rows(opened, ["ints", "text"]), table.slice(0, 0).select(["ints", "text"]))
        assert self.count(opened) == 0

    def test_keywords_of_reading(self, path: Path) -> None:
        opened = self.open(path, columns=["text", "ints"], schema_overrides={"ints": "int32"})
        assert sorted(self.names(opened)) == ["ints", "text"]
        assert self.rows(opened, ["ints"])["ints"] == [1, 2, 3, 4, 5] * 3
        with pytest.raises(TypeError, match="unexpected keyword argument 'nrows'"):
            self.open(path, nrows=3)

    def test_folder_columns(self, tmp_path: Path) -> None:
        for label in (1, 2):
            (tmp_path / f"ints={label}").mkdir()
            write_tfrecord({"x": [label, label]}, tmp_path / f"ints={label}" / "a.tfrecord")
        assert self.rows(self.open(tmp_path), ["ints", "x"]) == {"ints": [1, 1, 2, 2], "x": [1, 1, 2, 2]}
        assert self.rows(self.above(self.open(tmp_path), 1), ["x"]) == {"x": [2, 2]}

    # ---- errors

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"absent\.tfrecord"):
            self.rows(self.open(tmp_path / "absent.tfrecord"))

    def test_damage_is_reported_with_its_place(self, path: Path) -> None:
        opened = self.open(path)
        damaged = Path(str(path).replace("*", "b"))
        content = bytearray(damaged.read_bytes())
        content[-6] ^= 1
        damaged.write_bytes(content)
        with pytest.raises(Exception, match=r"b\.tfrecord: .*record 4 at byte \d+: payload CRC mismatch") as caught:
            self.rows(opened)
        if self.keeps_class:
            assert isinstance(caught.value, CorruptRecordError)
            assert caught.value.record == 4

    def test_a_record_that_contradicts_the_schema(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tfrecord"
        with RecordWriter(path) as writer:
            for values in ([1], [1, 2]):
                writer.write(encode_example({"ints": values}))
        opened = self.open(path, sample=1)
        with pytest.raises(Exception, match="expected exactly 1 value, got 2") as caught:
            self.rows(opened)
        if self.keeps_class:
            assert isinstance(caught.value, SchemaError)
