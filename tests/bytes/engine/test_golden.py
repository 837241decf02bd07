"""Files written by TensorFlow are read as TensorFlow reads them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rows import decode, records
from tfrecord_io.bytes.engine.contract import Engine, Plan
from tfrecord_io.bytes.format.feature_types import RecordType
from tfrecord_io.columns.example import decode_example


def plain(cell: dict[str, list[Any]] | None) -> Any:
    """A feature of the JSON as rows.py returns it; floats as bits, since NaN equals nothing."""
    if cell is None or not cell:
        return None
    ((kind, values),) = cell.items()
    if kind == "bytes":
        return kind, [base64.b64decode(v) for v in values]
    return kind, values if kind == "int64" else bits([np.float32(v) for v in values])


def bits(values: list[Any]) -> bytes:
    return np.array(values, np.float32).tobytes()


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """A decoded row without its nulls, floats as bits."""
    return {name: comparable_value(value) for name, value in row.items() if value is not None}


def comparable_value(value: Any) -> Any:
    if isinstance(value, list):
        return [comparable_value(step) for step in value]
    return (value[0], bits(value[1])) if value is not None and value[0] == "float" else value


def without_nulls(features: dict[str, Any]) -> dict[str, Any]:
    return {name: plain(cell) for name, cell in features.items() if plain(cell) is not None}


@pytest.mark.fault(45)
@pytest.mark.parametrize("name", ["tutorial", "extremes", "ragged", "images"])
@pytest.mark.parametrize("record_type", [RecordType.EXAMPLE, RecordType.DETECT])
def test_examples_are_read_as_by_tensorflow(engine: Engine, data: Path, name: str, record_type: RecordType) -> None:
    expected = json.loads((data / f"{name}.json").read_text())
    rows = records(decode(engine, (data / f"{name}.tfrecord").read_bytes(), Plan(record_type=record_type)))
    assert [comparable(row) for row in rows] == [without_nulls(record) for record in expected]


@pytest.mark.parametrize("record_type", [RecordType.SEQUENCE_EXAMPLE, RecordType.DETECT])
def test_sequence_examples_are_read_as_by_tensorflow(engine: Engine, data: Path, record_type: RecordType) -> None:
    expected = json.loads((data / "sequence.json").read_text())
    rows = records(decode(engine, (data / "sequence.tfrecord").read_bytes(), Plan(record_type=record_type)))
    for row, record in zip(rows, expected, strict=True):
        lists = {name: [plain(step) for step in steps] for name, steps in record["feature_lists"].items()}
        assert comparable(row) == {**without_nulls(record["context"]), **lists}


def test_payloads_of_any_content_are_found(engine: Engine, data: Path) -> None:
    file = (data / "bytes.tfrecord").read_bytes()
    frames, fault = engine.scan(file)
    assert fault is None
    assert frames.consumed == len(file)
    found = [file[start : start + length] for start, length in zip(frames.starts, frames.lengths, strict=True)]
    assert found == [base64.b64decode(payload) for payload in json.loads((data / "bytes.json").read_text())]
    assert bytes(engine.frame(found)) == file


@pytest.mark.parametrize("name", ["tutorial", "extremes", "ragged"])
def test_decode_example_reads_as_by_tensorflow(engine: Engine, data: Path, name: str) -> None:
    file = (data / f"{name}.tfrecord").read_bytes()
    frames, _ = engine.scan(file)
    for start, length, record in zip(
        frames.starts, frames.lengths, json.loads((data / f"{name}.json").read_text()), strict=True
    ):
        found = {key: value for key, value in decode_example(file[start : start + length]).items() if value is not None}
        kinds = {"i": "int64", "f": "float", "O": "bytes"}
        rows = {key: (kinds[value.dtype.kind], value.tolist()) for key, value in found.items()}
        assert comparable(rows) == without_nulls(record)
