"""We read what TensorFlow writes, value for value."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from wire_forms import BYTES, FLOAT_BITS, INTS, comparable, is_text

KINDS = ("int64", "float", "bytes")


def _float(bits: int) -> float:
    return float(np.uint32(bits).view(np.float32))


def _draw(rng: random.Random, kind: str, count: int) -> list[Any]:
    if kind == "int64":
        return [rng.choice(INTS) for _ in range(count)]
    if kind == "float":
        quiet = [b for b in FLOAT_BITS if b != 0x7FA12345]  # Python's protobuf quiets a signalling NaN as it writes
        return [_float(rng.choice(quiet)) for _ in range(count)]
    return [rng.choice(BYTES) for _ in range(count)]


def _random_examples(
    tf: Any, seed: int, rows: int
) -> tuple[list[bytes], dict[str, tuple[str, list[list[Any] | None]]]]:
    """Serialized Examples, and per feature its kind and rows: values, or None where absent or without a kind."""
    rng = random.Random(seed)
    kinds = {f"f{i}": rng.choice(KINDS) for i in range(rng.randint(1, 12))}
    scalar = {name: rng.random() < 0.5 for name in kinds}
    columns: dict[str, tuple[str, list[list[Any] | None]]] = {name: (kind, []) for name, kind in kinds.items()}
    payloads = []
    for _ in range(rows):
        example = tf.train.Example()
        for name in rng.sample(list(kinds), len(kinds)):
            kind, column = columns[name]
            state = rng.random()
            if state < 0.1:
                if state < 0.05:
                    example.features.feature[name].SetInParent()
                column.append(None)
                continue
            values = _draw(rng, kind, 1 if scalar[name] else rng.choice([0, 1, 2, 5, 40]))
            target = getattr(example.features.feature[name], f"{kind}_list")
            target.SetInParent()
            target.value.extend(values)
            column.append(values)
        payloads.append(example.SerializeToString())
    return payloads, columns


def _expected(kind: str, rows: list[list[Any] | None]) -> tuple[pa.DataType, list[Any]]:
    """The type and the values that the design gives a column."""
    present = [row for row in rows if row is not None]
    if not present:
        return pa.null(), rows
    item = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}[kind]
    if kind == "bytes" and all(is_text(v) for row in present for v in row):
        item = pa.string()
        rows = [None if row is None else [v.decode() for v in row] for row in rows]
    if all(len(row) == 1 for row in present):
        return item, [None if row is None else row[0] for row in rows]
    return pa.list_(item), rows


def _assert_read(table: pa.Table, columns: dict[str, tuple[str, list[list[Any] | None]]], seed: int) -> None:
    met = {name for name, (_, rows) in columns.items() if any(row is not None for row in rows)}
    assert met <= set(table.schema.names) <= set(columns), f"seed {seed}"
    assert table.schema.names == sorted(table.schema.names), f"seed {seed}"
    for name in table.schema.names:
        type_, rows = _expected(*columns[name])
        assert table.schema.field(name).type == type_, f"seed {seed}, {name}"
        assert comparable(table[name].to_pylist()) == comparable(rows), f"seed {seed}, {name}"


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_random_examples(engine: str, compression: str, tf: Any, write_records: Any, tmp_path: Path) -> None:
    for seed in range(25):
        payloads, columns = _random_examples(tf, seed, rows=60)
        path = write_records(tmp_path / f"{seed}.tfrecord", payloads, compression)
        _assert_read(tfr.read_table(path), columns, seed)


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_any_payloads(compression: str, write_records: Any, tmp_path: Path) -> None:
    payloads = [random.Random(3).randbytes(n) for n in (0, 1, 100, 0, 70_000, 3_000_000)]
    path = write_records(tmp_path / "any.tfrecord", payloads, compression)
    assert list(tfr.RecordReader(path)) == payloads
    assert tfr.read_table(tfr.dataset(path, record_type="bytes"))["record"].to_pylist() == payloads


def test_decode_example_is_the_tutorials_dict(engine: str, tf: Any) -> None:
    payloads, columns = _random_examples(tf, seed=11, rows=30)
    for row, payload in enumerate(payloads):
        decoded = tfr.decode_example(payload)
        for name, (_kind, rows) in columns.items():
            values = None if decoded.get(name) is None else decoded[name].tolist()
            assert comparable(values) == comparable(rows[row]), (row, name)


def test_the_last_record_of_many_files(engine: str, tf: Any, write_records: Any, tmp_path: Path) -> None:
    payloads, columns = _random_examples(tf, seed=5, rows=90)
    for shard in range(3):
        write_records(tmp_path / f"data.tfrecord-{shard:05}-of-00003", payloads[shard * 30 : shard * 30 + 30])
    _assert_read(tfr.read_table(tmp_path), columns, 5)
    _assert_read(tfr.read_table(tfr.dataset(tmp_path, threads=2)), columns, 5)


def test_serialized_messages_are_accepted(tf: Any) -> None:
    payloads, _ = _random_examples(tf, seed=2, rows=20)
    for payload in payloads:
        actual = tfr.train.Example.FromString(payload)
        assert tf.train.Example.FromString(actual.SerializeToString()) == tf.train.Example.FromString(payload)
