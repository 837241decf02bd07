"""Schemas of records of very many features, of which a part is decoded at a time: those of a decoder of all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from strategies import int64s, sequence_example
from tfrecord_io.base import Limits, ReadOptions
from tfrecord_io.errors import SchemaError
from tfrecord_io.read import plan_many_features
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.scan_rows import ScanRows

ROWS: list[dict[str, Any]] = [
    {f"n{at}": at for at in range(20)}
    | {"text": "é", "bytes": b"\xff", "list": [1, 2], "empty": np.empty(0, np.int64), "": 1, "a/dtype": b"x"},
    {f"n{at}": -at for at in range(10, 30)} | {"text": "b", "late": [0.5], "empty": [1.5], "list": [1]},
    {"n3": [1, 2], "bytes": b"", "x/y/shape": [3]},
]
TENSORS: dict[str, Any] = {f"t{at}": bytes(12) for at in range(4)} | {"t0/shape/shape": [1], "t0/shape/dtype": b"int8"}
TENSORS |= {f"t{at}/shape": [2, 3] for at in range(4)} | {f"t{at}/dtype": b"int16" for at in range(4)}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of eight features have very many."""
    monkeypatch.setattr(plan_many_features, "_WIDE", 10)
    monkeypatch.setattr(plan_many_features, "_PART", 4)


def write(path: Path, *records: bytes, **keywords: Any) -> Path:
    with tfr.RecordWriter(path, **keywords) as writer:
        for record in records:
            writer.write(record)
    return path


def dataset(path: Any, first_files: int | None = 8, **keywords: Any) -> Any:
    return CallSource(path).dataset(ReadOptions(**keywords), first_files)


def planned_in_parts(path: Any, **keywords: Any) -> Any:
    found = dataset(path, None, **keywords)
    return plan_many_features.plan_many_features(
        found.sources, ReadOptions(**keywords).of_scan, ReadOptions(**keywords).selection
    )


def facts(scan: Any) -> list[Any]:
    resolved, schema = scan.resolved, scan.schema
    fields = [(field.name, field.type, field.metadata, field.nullable) for field in schema]
    seen = {name: str(observation) for name, observation in resolved.observations.items()}
    how = resolved.source, resolved.record_type, resolved.folded, resolved.companions
    return [fields, schema.metadata, *how, dict(sorted(seen.items())), scan.files, scan.options.changes]


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"infer_text": False},
        {"stable_types": True},
        {"record_type": "example"},
        {"on_error": "skip"},
        {"sample": 1},
    ],
    ids=str,
)
@pytest.mark.parametrize("compression", [None, "gzip"])
@pytest.mark.parametrize("tensors", [{}, TENSORS], ids=["plain", "tensors"])
def test_the_schema_is_that_of_whole_records(
    tmp_path: Path, tensors: dict[str, Any], compression: str | None, keywords: dict[str, Any]
) -> None:
    records = [tfr.encode_example(row | tensors) for row in ROWS[: 2 if "sample" in keywords else 3]]
    path = write(tmp_path / "a.tfrecord", *records, compression=compression)
    in_parts = planned_in_parts(path, **keywords)
    assert in_parts is not None
    assert facts(in_parts) == facts(dataset(path, None, **keywords))
    found = dataset(path, **keywords)
    assert [source.derived for source in found.sources] == [None]
    assert "sample" in keywords or ScanRows(found).read().equals(tfr.dataset(path, **keywords).to_table())


def test_files_are_sampled_as_one_read(tmp_path: Path) -> None:
    for name, rows in {"a": ROWS[:1], "b": ROWS[1:2], "c": ROWS[2:]}.items():
        write(tmp_path / f"{name}.tfrecord", *map(tfr.encode_example, rows))
    for sample in (1, 2, 3, 10):
        scan = planned_in_parts(tmp_path / "*.tfrecord", sample=sample)
        assert facts(scan) == facts(dataset(tmp_path / "*.tfrecord", None, sample=sample))


@pytest.mark.parametrize("keywords", [{"columns": ["n1"]}, {"schema": {"n1": "int64"}}, {"sample": "all"}], ids=str)
def test_what_a_call_says_about_columns_is_planned_as_usual(tmp_path: Path, keywords: dict[str, Any]) -> None:
    path = write(tmp_path / "a.tfrecord", *map(tfr.encode_example, ROWS))
    assert planned_in_parts(path, **keywords) is None
    assert facts(dataset(path, **keywords)) == facts(dataset(path, None, **keywords))


def test_other_records_are_planned_as_usual(tmp_path: Path) -> None:
    example = tfr.encode_example(ROWS[0])
    sequence = sequence_example({f"n{at}": int64s(at) for at in range(20)}, {"steps": [int64s(1), int64s(2)]})
    tfr.write_tfrecord({f"n{at}": [at] for at in range(20)}, tmp_path / "embedded")
    other_field = example + b"\x1a\x01x"
    cases = {
        "few": [tfr.encode_example({"n": 1})],
        "sequence": [sequence],
        "later_sequence": [example, sequence],
        "other_field": [other_field],
        "no_message": [example, b"\xff" * 20],
        "none": [],
    }
    for name, records in cases.items():
        write(tmp_path / name, *records)
    for name in [*cases, "embedded"]:
        assert planned_in_parts(tmp_path / name) is None, name
    saved = write(tmp_path / "saved.tfrecord", example)
    tfr.Schema({f"n{at}": "int32" for at in range(20)}).save(saved)
    assert dataset(saved).schema == dataset(saved, None).schema
    assert dataset(saved).schema_source == "saved"
    write(tmp_path / "mixed-a", example)
    (tmp_path / "mixed-b").write_bytes((tmp_path / "embedded").read_bytes())
    assert facts(dataset(tmp_path / "mixed-*")) == facts(dataset(tmp_path / "mixed-*", None))


def test_records_that_contradict_each_other_end_the_sample_of_their_features(tmp_path: Path) -> None:
    first = {f"n{at}": at for at in range(20)}
    records = [first, {"n1": b"x", "late": 1}, {"later": 1}]
    path = write(tmp_path / "a.tfrecord", *map(tfr.encode_example, records))
    schema = dataset(path).schema
    assert schema.names == sorted([*first, "late", "later"])
    assert schema.field("n1").type == pa.int64()
    with pytest.raises(SchemaError, match="record 1: feature 'n1'"):
        ScanRows(dataset(path)).read()


def test_faults_are_those_of_a_read_of_whole_records(tmp_path: Path) -> None:
    example = tfr.encode_example({f"n{at}": at for at in range(20)})
    faulty = {
        "utf8": [example, tfr.encode_example({"n1": 1}).replace(b"n1", b"n\xff")],
        "many": [tfr.encode_example({f"n{at}": at for at in range(40)})],
    }
    for name, records in faulty.items():
        path = write(tmp_path / name, *records)
        found = []
        for first_files in (8, None):
            try:
                found.append(facts(dataset(path, first_files, limits=Limits(features=30))))
            except tfr.TFRecordError as error:
                found.append(str(error))
        assert found[0] == found[1], name
