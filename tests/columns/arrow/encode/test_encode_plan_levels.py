"""Types whose schema Arrow could not read again are refused when they are written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.errors import EncodeError, SchemaError


def _type(levels: int) -> pa.DataType:
    type_ = pa.int64()
    for _ in range(levels):
        type_ = pa.struct([("a", type_)])
    return type_


def _nested(levels: int) -> pa.Table:
    value: object = 7
    type_ = pa.int64()
    for _ in range(levels):
        value, type_ = {"a": value}, pa.struct([("a", type_)])
    return pa.table({"x": pa.array([value], type_)})


def test_structs_inside_structs(tmp_path: Path) -> None:
    table = _nested(120)
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").equals(table)
    with pytest.raises(EncodeError, match="'x': its type has more than 120 levels; flatten it"):
        tfr.write_tfrecord(_nested(121), tmp_path / "b.tfrecord")
    with pytest.raises(EncodeError, match="'x': its type has more than 120 levels; flatten it"):
        tfr.write_tfrecord(pa.table({"x": pa.nulls(1, _type(900))}), tmp_path / "b.tfrecord")
    assert not (tmp_path / "b.tfrecord").exists()


@pytest.mark.parametrize("levels", [121, 900])
def test_a_deep_type_is_refused_where_it_is_declared(levels: int, tmp_path: Path) -> None:
    path, type_ = tmp_path / "a.tfrecord", _type(levels)
    tfr.write_tfrecord({"x": [1]}, path, embed_schema=False)
    declared = pa.schema([("x", type_)])
    calls: list[Callable[[], object]] = [
        lambda: tfr.Schema.from_arrow(declared),
        lambda: tfr.read_table(path, schema=declared),
        lambda: tfr.dataset(path, schema_overrides={"x": type_}).to_table(),
        lambda: tfr.write_tfrecord({"x": []}, tmp_path / "b.tfrecord", schema=declared),
    ]
    for call in calls:
        with pytest.raises(SchemaError, match="'x': its type has more than 120 levels; flatten it"):
            call()


def test_lists_inside_lists(tmp_path: Path) -> None:
    type_ = pa.int64()
    for _ in range(1000):
        type_ = pa.list_(type_)
    with pytest.raises(EncodeError, match="'x': its type has more than 120 levels; flatten it"):
        tfr.write_tfrecord(pa.table({"x": pa.nulls(1, type_)}), tmp_path / "a.tfrecord")
