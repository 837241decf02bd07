"""Compares the native engine, the reference engine and protobuf on mutants of records: values and errors.

``python tests/fuzz/differential.py --seconds 60``. Of each mutant both engines give the same columns, and the same
faults, as a single record and among others; what they read is what protobuf's Example has. Of a few, the same
exceptions are raised for a file.
"""

from __future__ import annotations

import os
import random
import re
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "support")]

from google.protobuf.message import DecodeError as ProtobufError
from google.protobuf.unknown_fields import UnknownFieldSet

import tfrecord_io as tfr
from engine_comparison import NATIVE, compare
from mutation import SEEDS, Target, main
from reference_engine import ENGINE as REFERENCE
from reference_engine.shells import SequenceShell
from rows import records
from tfrecord_io.bytes.engine.contract import FaultCode, Plan, PlanColumn
from tfrecord_io.bytes.format import example_messages as messages
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text
from tfrecord_io.bytes.format.varint import varint
from tfrecord_io.columns.schema.embedded import FIELD
from wire_forms import NAMES, WireForms

OPTIONS = {"frames": 6, "example": 7, "sequence": 7, "encoder": 3}  # bytes of a seed before its records
NAMES_OF_SEEDS = ["a", "b", "label", "x", "tokens", *NAMES]
_EVERY = 64  # mutants for one file
_LONG_TAG = re.compile(rb"[\x80-\xff]{4}[\x10-\x7f]")  # over 32 bits: Python's protobuf refuses it
# A stricter rule of C++ protobuf than that of Python's.
_STRICTER = {FaultCode.VARINT_TOO_LONG, FaultCode.FIELD_ZERO, FaultCode.TAG_TOO_LONG}


def payloads() -> list[bytes]:
    """The records of the seeds, and random ones in odd forms."""
    found: dict[bytes, None] = {}
    for folder, options in OPTIONS.items():
        for path in sorted((SEEDS / folder).iterdir()):
            data = path.read_bytes()[options:]
            frames, _ = REFERENCE.scan(data)
            found |= {data[at : at + size]: None for at, size in zip(frames.starts, frames.lengths, strict=True)}
    for seed in range(40):
        found |= dict.fromkeys(WireForms(seed, plain=seed % 4 == 0).records(2))
    return [payload for payload in found if len(payload) < 700]


def draw_plan(draw: random.Random) -> Plan:
    columns = {}
    for name in draw.sample(NAMES_OF_SEEDS, draw.choice([0, 0, 1, 3])):
        steps = draw.random() < 0.2
        column = PlanColumn(
            name,
            draw.choice(list(Kind)),
            draw.choice(list(Layout)),
            draw.choice(list(Text)),
            not steps and draw.random() < 0.1,
            steps,
            draw.random() < 0.3,
        )
        if column.kind is Kind.NONE and column.layout in (Layout.SCALAR, Layout.LIST):
            continue
        columns[name, steps] = column
    return Plan(
        tuple(columns.values()),
        draw.choice(["discover", "discover", "skip", "fault"]),
        ignored=frozenset({"b"} if draw.random() < 0.1 and not any(key[0] == "b" for key in columns) else ()),
        text=draw.choice(list(Text)),
        record_type=draw.choice(list(RecordType)),
        check_crc=draw.random() < 0.9,
        max_features=draw.choice([100_000, 100_000, 2]),
        stop_at_embedded=draw.random() < 0.5,
        names_in_both=draw.random() < 0.5,
        splits=draw.random() < 0.3,
    )


def feature_cell(feature: Any) -> tuple[str, list[Any]] | None:
    """Kind and values of protobuf's Feature, floats as their bytes."""
    name = feature.WhichOneof("kind")
    if name is None:
        return None
    values = getattr(feature, name).value
    if name == "float_list":
        return "float", [struct.pack("<f", value) if value == value else "NaN" for value in values]
    return name.removesuffix("_list"), list(values)


def comparable(cell: Any) -> Any:
    """A cell of an engine's column as `feature_cell` gives it; protobuf's floats lose the bits of a NaN."""
    if cell is None or isinstance(cell, list):
        return None if cell is None else [comparable(step) for step in cell]
    kind, values = cell
    return kind, [v.tobytes() if v == v else "NaN" for v in values] if kind == "float" else values


def has_unknown_in_entries(payload: bytes) -> bool:
    """Whether a map entry has an unknown field: Python's protobuf drops such an entry, C++ protobuf keeps it."""
    try:
        shell = SequenceShell.FromString(payload)
    except ProtobufError:
        return True
    maps = [*shell.features, *shell.lists]
    return any(len(UnknownFieldSet(entry)) for map_ in maps for entry in map_.entry)


def check_protobuf(payload: bytes, sequence: bool) -> None:
    """What protobuf reads from a record equals what the native engine reads."""
    plan = Plan(record_type=RecordType.SEQUENCE_EXAMPLE if sequence else RecordType.EXAMPLE, names_in_both=True)
    decoder = NATIVE.decoder(plan)
    fault = decoder.feed(REFERENCE.frame([payload])).fault
    try:
        message = (messages.SequenceExample if sequence else messages.Example).FromString(payload)
    except ProtobufError:
        assert fault is not None or _LONG_TAG.search(payload), "protobuf refuses the record"
        return
    if fault is not None:
        assert fault.code in _STRICTER or has_unknown_in_entries(payload), f"protobuf accepts the record: {fault}"
        return
    if has_unknown_in_entries(payload):
        return
    columns = list(decoder.take())
    context = records([c for c in columns if c.steps is None])
    lists = records([c for c in columns if c.steps is not None])
    maps = (
        [(message.context if sequence else message.features).feature, message.feature_lists.feature_list]
        if sequence
        else [message.features.feature]
    )
    for rows, expected in zip([context, lists], maps, strict=False):
        found = {name: comparable(cell) for name, cell in (rows[0] if rows else {}).items()}
        if expected is maps[0]:
            assert found == {name: feature_cell(feature) for name, feature in expected.items()}
        else:
            assert found == {name: [feature_cell(step) for step in steps.feature] for name, steps in expected.items()}


def outcome(path: Path, engine: str) -> Any:
    """What reading a file gives: a table, or the exception's class and place."""
    os.environ["TFRECORD_IO_ENGINE"] = engine
    try:
        return tfr.read_table(path)
    except tfr.TFRecordError as error:
        return type(error), error.record, error.offset, error.records_intact
    finally:
        del os.environ["TFRECORD_IO_ENGINE"]


def check(folder: Path, seeds: Sequence[bytes]) -> Callable[[bytes], None]:
    runs = 0

    def run(payload: bytes) -> None:
        nonlocal runs
        runs += 1
        draw = random.Random(payload)
        sequence = draw.random() < 0.4
        compare(Plan(record_type=draw.choice(list(RecordType))), REFERENCE.frame([payload]), [])
        check_protobuf(payload, sequence)
        if runs % 4 == 0:  # among other records, by a plan, in two parts
            file = bytearray(REFERENCE.frame([draw.choice(seeds), payload, draw.choice(seeds)]))
            if draw.random() < 0.1:
                file[draw.randrange(len(file))] ^= 1 << draw.randrange(8)
            cuts = [draw.randrange(len(file) + 1)]
            compare(draw_plan(draw), bytes(file), cuts, draw.choice([-1, -1, 1]), draw.choice([-1, -1, 0, 30]))
        if runs % _EVERY == 0:
            path = folder / "mutant.tfrecord"
            path.write_bytes(REFERENCE.frame([draw.choice(seeds), payload]))
            if _may_stop_first(payload):
                return
            native, reference = outcome(path, "native"), outcome(path, "reference_engine")
            same = native.equals(reference) if hasattr(native, "equals") else native == reference
            assert same or _same_bits(native, reference), f"{native} and {reference}"

    return run


def _may_stop_first(payload: bytes) -> bool:
    """Whether an engine may use the embedded schema of a record before it refuses the record; see `Decoder.feed`."""
    is_refused = (
        REFERENCE.decoder(Plan(record_type=RecordType.DETECT)).feed(REFERENCE.frame([payload])).fault is not None
    )
    return is_refused and varint(FIELD << 3 | 2) in payload


def _same_bits(a: Any, b: Any) -> bool:
    """Whether two tables are equal up to NaN."""
    return (
        hasattr(a, "schema")
        and hasattr(b, "schema")
        and a.schema.equals(b.schema)
        and str(a.to_pylist()) == str(b.to_pylist())
    )


def targets(folder: Path) -> dict[str, Target]:
    seeds = payloads()
    return {"engines": Target(check(folder, seeds), seeds, ())}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        main(__doc__ or "", lambda: targets(Path(place)))
