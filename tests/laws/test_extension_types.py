"""Extension types come back with name, parameters and storage, be they registered or not, in any type around them."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from nested_tables import values_of
from tfrecord_io.columns.schema.tensor_types import extension_metadata


class Measured(pa.ExtensionType):
    """A type of any storage with a parameter. As many of users do, it has an equality and so no hash."""

    def __init__(self, storage: pa.DataType, unit: str) -> None:
        self.unit = unit
        super().__init__(storage, "tests.measured")

    def __arrow_ext_serialize__(self) -> bytes:
        return self.unit.encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, serialized: bytes) -> Measured:
        return cls(storage, serialized.decode())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Measured) and (self.storage_type, self.unit) == (other.storage_type, other.unit)


@pytest.fixture
def registered() -> Iterator[None]:
    pa.register_extension_type(Measured(pa.int8(), ""))
    yield
    pa.unregister_extension_type("tests.measured")


STORAGES = {
    "integers": pa.array([1, None, 3]),
    "doubles": pa.array([0.1, None, 1e300]),
    "halves": pa.array([1.0, None, 2.0], pa.float16()),
    "bools": pa.array([True, None, False]),
    "text": pa.array(["a", None, ""]),
    "times": pa.array([1, None, 3], pa.timestamp("ns", "UTC")),
    "decimals": pa.array([Decimal("1.5"), None, Decimal("2.5")], pa.decimal128(5, 2)),
    "bytes of one size": pa.array([b"ab", None, b"cd"], pa.binary(2)),
    "nulls": pa.nulls(3),
    "lists": pa.array([[0.1, None], None, []]),
    "lists of one size": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.float64(), 2)),
    "structs": pa.array([{"a": 0.1, "b": "x"}, None, {"a": None, "b": None}]),
    "maps": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())),
    "categories": pa.array(["a", None, "a"]).dictionary_encode(),
    "intervals": pa.array([(1, 2, 3), None, (4, 5, 6)], pa.month_day_nano_interval()),
}
AROUND: dict[str, Any] = {
    "column": lambda array: array,
    "lists": lambda array: pa.ListArray.from_arrays([0, 2, 2, 3], array),
    "structs": lambda array: pa.StructArray.from_arrays([array], ["f"]),
    "maps": lambda array: pa.MapArray.from_arrays([0, 1, 3], pa.array(["a", "b", "c"]), array),
}


@pytest.mark.parametrize("record_type", ["example", "sequence_example"])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.usefixtures("registered")
def test_registered_types_come_back(tmp_path: Path, storage: str, around: str, record_type: Any) -> None:
    values = STORAGES[storage]
    for type_ in (pa.opaque(values.type, "t", "v"), Measured(values.type, "kg")):
        table = pa.table({"x": AROUND[around](pa.ExtensionArray.from_storage(type_, values))})[:2]
        tfr.write_tfrecord(table, tmp_path / "a.tfrecord", float64="raw", record_type=record_type)
        read = tfr.read_table(tmp_path / "a.tfrecord")
        assert read["x"].type == table["x"].type
        assert values_of(read["x"]) == values_of(table["x"])
        read.validate(full=True)
        tfr.write_tfrecord(read, tmp_path / "b.tfrecord", record_type=record_type)  # what was raw is raw again
        assert tfr.read_table(tmp_path / "b.tfrecord").equals(read)


@pytest.mark.parametrize("storage", STORAGES)
def test_types_that_are_not_registered_are_named_by_metadata(tmp_path: Path, storage: str) -> None:
    """A later reader that registers them has them, whoever wrote them."""
    values = STORAGES[storage]
    typed = pa.table({"x": pa.ExtensionArray.from_storage(Measured(values.type, "kg"), values)})
    mark = extension_metadata(typed["x"].type)
    assert mark == {b"ARROW:extension:name": b"tests.measured", b"ARROW:extension:metadata": b"kg"}
    named = pa.table([values], schema=pa.schema([pa.field("x", values.type, metadata=mark)]))
    for table in (typed, named):
        tfr.write_tfrecord(table, tmp_path / "a.tfrecord", float64="raw")
        read = tfr.read_table(tmp_path / "a.tfrecord")
        assert read["x"].type == values.type
        assert (read.schema.field("x").metadata or {}).items() >= mark.items()
        assert values_of(read["x"]) == values_of(named["x"])
        pa.register_extension_type(Measured(pa.int8(), ""))
        try:
            read = tfr.read_table(tmp_path / "a.tfrecord")
        finally:
            pa.unregister_extension_type("tests.measured")
        assert read["x"].type == typed["x"].type
        assert values_of(read["x"]) == values_of(typed["x"])


@pytest.mark.parametrize("storage", [pa.large_string(), pa.string_view(), pa.large_list(pa.int8())], ids=str)
@pytest.mark.usefixtures("registered")
def test_a_storage_of_another_layout_is_the_plain_one(tmp_path: Path, storage: pa.DataType) -> None:
    plain = pa.list_(pa.int8()) if pa.types.is_large_list(storage) else pa.string()
    values = pa.array([None, [1] if plain != pa.string() else "a"], storage)
    tfr.write_tfrecord({"x": pa.ExtensionArray.from_storage(Measured(storage, "kg"), values)}, tmp_path / "a.tfrecord")
    read = tfr.read_table(tmp_path / "a.tfrecord")["x"]
    assert read.type == Measured(plain, "kg")
    assert read.to_pylist() == values.to_pylist()


def test_categories_of_an_extension_type_are_its_values(tmp_path: Path) -> None:
    values = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "t", "v"), pa.array(["a", "b"]))
    tfr.write_tfrecord({"x": pa.DictionaryArray.from_arrays([1, None, 0], values)}, tmp_path / "a.tfrecord")
    read = tfr.read_table(tmp_path / "a.tfrecord")["x"]
    assert read.type == values.type
    assert read.to_pylist() == ["b", None, "a"]


def test_files_of_other_parameters_have_no_type_in_common(tmp_path: Path) -> None:
    """Months must not be read as days, also where the type is not registered."""
    for unit in ("kg", "t"):
        mark = extension_metadata(Measured(pa.int64(), unit))
        schema = pa.schema([pa.field("x", pa.int64(), metadata=mark)])
        tfr.write_tfrecord(pa.table([[1]], schema=schema), tmp_path / f"{unit}.tfrecord")
    with pytest.raises(
        tfr.errors.SchemaError, match=r"'x': its type is int64 of the extension type tests.measured 'kg' in"
    ):
        tfr.read_table([tmp_path / "kg.tfrecord", tmp_path / "t.tfrecord"])
    with tfr.open_writer(tmp_path / "both.tfrecord") as writer:
        writer.write(tfr.read_table(tmp_path / "kg.tfrecord"))
        with pytest.raises(
            tfr.errors.SchemaError, match=r"'x': .* another type than .*: expected int64 of .* 'kg', got"
        ):
            writer.write(tfr.read_table(tmp_path / "t.tfrecord"))


@pytest.mark.usefixtures("registered")
def test_every_other_reader_has_the_storage(tmp_path: Path) -> None:
    table = pa.table({"x": pa.ExtensionArray.from_storage(Measured(pa.int64(), "kg"), pa.array([1, 2, 3]))})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    path = tmp_path / "a.tfrecord"
    assert tfr.read_arrays(path)["x"].tolist() == [1, 2, 3]
    assert tfr.read_tfrecord(path)["x"].tolist() == [1, 2, 3]
    assert tfr.read_table(path, filters=[("x", ">", 1)])["x"].to_pylist() == [2, 3]
    assert tfr.open_random(path)[[2, 0]]["x"].to_pylist() == [3, 1]
    assert np.concatenate([batch["x"] for batch in tfr.iter_arrays(path, batch_size=2)]).tolist() == [1, 2, 3]
    for suffix in ("parquet", "arrow", "jsonl", "csv"):
        tfr.convert(path, tmp_path / f"b.{suffix}")
        tfr.convert(tmp_path / f"b.{suffix}", tmp_path / "c.tfrecord", mode="overwrite")
        assert tfr.read_table(tmp_path / "c.tfrecord")["x"].to_pylist() == [1, 2, 3]


WKB = bytes.fromhex("0101000000000000000000f03f0000000000000840")
CRS = b'{"crs": {"type": "GeographicCRS", "name": "WGS 84"}}'


@pytest.mark.parametrize("encoding", ["wkb", "point"])
def test_geometries_keep_name_and_reference_system(tmp_path: Path, encoding: str) -> None:
    """As GeoPandas writes them in Arrow."""
    type_ = pa.binary() if encoding == "wkb" else pa.list_(pa.field("xy", pa.float64(), nullable=False), 2)
    mark = {b"ARROW:extension:name": f"geoarrow.{encoding}".encode(), b"ARROW:extension:metadata": CRS}
    values = pa.array([WKB, None] if encoding == "wkb" else [[1.0, 3.0], None], type_)
    table = pa.table([values], schema=pa.schema([pa.field("geometry", type_, metadata=mark)]))
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    read = tfr.read_table(tmp_path / "a.tfrecord")
    assert read["geometry"].to_pylist() == values.to_pylist()
    assert read.schema.field("geometry").metadata.items() >= mark.items()


def test_a_geo_data_frame_comes_back(tmp_path: Path) -> None:
    geopandas = pytest.importorskip("geopandas")
    frame = geopandas.GeoDataFrame({"n": [1, 2]}, geometry=geopandas.points_from_xy([1, 2], [3, 4]), crs="EPSG:4326")
    for data in (frame, frame.to_arrow(), frame.to_arrow(geometry_encoding="geoarrow")):
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord", float64="raw")
        read = geopandas.GeoDataFrame.from_arrow(tfr.read_table(tmp_path / "a.tfrecord"))
        assert read.crs == frame.crs
        assert read.equals(frame)
