"""Handmade wire forms are read as by C++ protobuf, whose results are in data/wire.json."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from rows import decode, records
from tfrecord_io.bytes.engine.contract import Engine, FaultCode, Plan
from tfrecord_io.columns import example

CASES = json.loads((Path(__file__).parents[2] / "data" / "wire.json").read_text())


def expected(case: dict[str, Any]) -> dict[str, Any]:
    return {name: cell and from_json(*next(iter(cell.items()))) for name, cell in case["expect"].items()}


def from_json(kind: str, values: list[Any]) -> tuple[str, list[Any]]:
    return kind, [base64.b64decode(v) for v in values] if kind == "bytes" else values


def pick(good: bool) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in CASES if (case["expect"] != "error") == good]


@pytest.mark.fault(40)
@pytest.mark.parametrize("case", pick(good=True))
def test_decoder_reads_what_protobuf_reads(engine: Engine, case: dict[str, Any]) -> None:
    columns = decode(engine, engine.frame([bytes.fromhex(case["hex"])]))
    assert records(columns) == ([expected(case)] if columns else [])
    assert {c.name for c in columns} == set(case["expect"])


@pytest.mark.fault(35)
@pytest.mark.fault(36)
@pytest.mark.fault(37)
@pytest.mark.fault(38)
@pytest.mark.parametrize("case", pick(good=False))
def test_decoder_refuses_what_protobuf_refuses(engine: Engine, case: dict[str, Any]) -> None:
    good = bytes.fromhex(CASES[0]["hex"])
    data = engine.frame([good, bytes.fromhex(case["hex"])])
    decoder = engine.decoder(Plan())
    progress = decoder.feed(data)
    assert (progress.records, progress.consumed) == (1, len(good) + 16)
    assert progress.fault is not None
    assert FaultCode.VARINT_TRUNCATED <= progress.fault.code <= FaultCode.WIRE
    assert (progress.fault.record, progress.fault.offset) == (1, len(good) + 16)
    assert decoder.rows == 1


@pytest.mark.parametrize("case", pick(good=True))
def test_decode_example_reads_what_protobuf_reads(case: dict[str, Any]) -> None:
    found = example.decode_example(bytes.fromhex(case["hex"]))
    dtypes = {"int64": "int64", "float": "float32", "bytes": "object"}
    assert found.keys() == case["expect"].keys()
    for name, cell in expected(case).items():
        if cell is None:
            assert found[name] is None
        else:
            assert (found[name].dtype, found[name].tolist()) == (dtypes[cell[0]], cell[1])


@pytest.mark.parametrize("case", pick(good=False))
def test_decode_example_refuses_what_protobuf_refuses(case: dict[str, Any]) -> None:
    with pytest.raises(example.DecodeError):
        example.decode_example(bytes.fromhex(case["hex"]))


def padded_varint(value: int, size: int) -> bytes:
    return bytes((value >> 7 * i) & 0x7F | (0x80 if i < size - 1 else 0) for i in range(size))


@pytest.mark.fault(36)
@pytest.mark.parametrize("size", range(1, 11))
def test_lengths_have_at_most_five_bytes_whatever_protobuf_is_installed(engine: Engine, size: int) -> None:
    for padded in range(5):  # the length of the value, the BytesList, the Feature, the entry or the Features
        payload = b"cat"
        for level, tag in enumerate([b"\x0a", b"\x0a", b"\x12", b"\x0a", b"\x0a"]):
            payload = tag + padded_varint(len(payload), size if level == padded else 1) + payload
            if level == 2:
                payload = b"\x0a\x01x" + payload
        fault = engine.decoder(Plan()).feed(engine.frame([payload])).fault
        assert (fault is None) == (size <= 5), (padded, fault)
