"""Mutations of schemas that files carry and of the documents next to files, and the calls that read them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

import tfrecord_io as tfr
from tfrecord_io.apps.cli import output
from tfrecord_io.apps.cli.schema_text import resolve_schema, schema_text
from tfrecord_io.columns.arrow.output.to_python import json_value

Call = Callable[[Path], object]

FRAME = pd.DataFrame(
    {
        "i": pd.array([1, None, 3], "Int64"),
        "f": [1.5, 2.0, 3.0],
        "s": ["a", "b", None],
        "l": [[1, 2], [3], []],
        "c": pd.Categorical(["x", "y", "x"]),
        "t": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Paris"),
    }
)
TIMES = pa.table(
    {
        "dt": pa.array([1, 2**60]).view(pa.timestamp("s", "UTC")),
        "d": pa.array([2**31 - 1, 3], pa.int32()).view(pa.date32()),
        "tm": pa.array([1, 3]).view(pa.time64("ns")),
        "du": pa.array([2**62, 3]).view(pa.duration("s")),
        "st": pa.array([{"a": 1, "b": [1]}, None]),
        "de": pa.array(["1.5", "2"]).cast(pa.decimal128(10, 2)),
    }
)
PLAIN = pa.table({"x": [b"abc", b"d"], "v": pa.array([[1.0, 2, 3, 4]] * 2, pa.list_(pa.float32(), 4)), "q": [[1], [2]]})
TABLES = [*(pa.Table.from_pandas(f) for f in (FRAME, FRAME.set_index(["s", "i"]), FRAME.set_index("l"))), TIMES, PLAIN]

NONSENSE: list[Any] = [
    *(
        None,
        True,
        -1,
        0,
        2**31,
        2**64,
        10**400,
        1.5,
        float("inf"),
        "",
        "x",
        "\x00",
        "\ud800",
        "é",
        [],
        {},
        [None],
        [[]],
    ),
    *("Sparse[int64]", "decimal", "category", "period[D]", "datetime64[ns, No/Where]", "Int64", "object", "string"),
    *("decimal128(500,2)[pyarrow]", "timestamp[ns, tz=No/Where][pyarrow]", "M8[as]", "bytes", "empty", "datetimetz"),
    *("__index_level_0__", "s", "i", "l", {"a": 1}),
]
KEYS = "shape image dtype encoding default assembly feature empty part tfx.sparse".split()
NOTES = [
    *(b"", b"{", b"[]", b"{}", b"null", b"[null]", b"[2,2]", b"[null,2]", b"[-1]", b"[1e400]", b'"x"', b"1", b"NaN"),
    *(b"[99999999999999999999]", b"raw", b"wire", b"tensor_proto", b"context", b"feature_list", b"int8", b"S3", b"U2"),
    *(b"complex64", b"datetime64[D]", b'{"mode":"RGB"}', b'{"mode":1}', b'{"mode":"RGB","resize":["a"]}', b"[" * 5000),
    *(b'{"values":"x","dtype":"float","encoding":"zip"}', b'{"values":1,"dtype":2}', b'{"x":1}', b"\xff\xfe"),
    *(b'{"index":1,"shape":2,"name":3}', b'{"float":"inf"}', b'{"bytes":"!!"}', b'{"mode":"RGB","resize":[-1,0]}'),
]
TYPES = [
    *(
        pa.int8(),
        pa.uint64(),
        pa.float16(),
        pa.string(),
        pa.binary(),
        pa.binary(3),
        pa.bool_(),
        pa.date32(),
        pa.date64(),
    ),
    *(
        pa.time32("s"),
        pa.time64("ns"),
        pa.timestamp("s"),
        pa.timestamp("ns", "No/Where"),
        pa.timestamp("us", "\x1b[0m"),
    ),
    *(pa.timestamp("us", "+99:99"), pa.duration("ns"), pa.decimal256(76, 76), pa.decimal32(5, 2), pa.null()),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.timestamp("s", "No/Where"))),
    *(pa.list_(pa.int64(), 2), pa.list_(pa.list_(pa.int64())), pa.struct([]), pa.uuid(), pa.bool8(), pa.json_()),
    *(pa.fixed_shape_tensor(pa.float32(), (2, 2)), pa.list_(pa.date32()), pa.list_(pa.timestamp("s", "No/Where"))),
    *(pa.map_(pa.string(), pa.int64()), pa.list_(pa.struct([("z", pa.time64("ns"))])), pa.list_(pa.string(), 0)),
]


def mutated(rng: random.Random, node: Any) -> Any:
    """A JSON document, one of its values replaced or removed."""
    if isinstance(node, dict | list) and node and rng.random() < 0.85:
        node = node.copy()
        key = rng.choice(list(node)) if isinstance(node, dict) else rng.randrange(len(node))
        if rng.random() < 0.1:
            del node[key]
        else:
            node[key] = mutated(rng, node[key])
        return node
    return rng.choice(NONSENSE)


def mutated_schema(rng: random.Random, schema: pa.Schema) -> pa.Schema:
    """A schema with nonsense in the metadata of pandas or of a field, or with another type of a column."""
    kind, at = rng.randrange(3), rng.randrange(len(schema))
    if kind == 0 and schema.metadata:
        return schema.with_metadata({"pandas": json.dumps(mutated(rng, json.loads(schema.metadata[b"pandas"])))})
    column = schema.field(at)
    if kind == 1:
        return schema.set(at, column.with_type(rng.choice(TYPES)))
    note = {f"tfrecord_io.{rng.choice(KEYS)}".encode(): rng.choice(NOTES)}
    return schema.set(at, column.with_metadata({**(column.metadata or {}), **note}))


# ---- calls


def head(path: Path) -> None:
    records = tfr.read_table(tfr.dataset(path, threads=1))
    json.dumps(json_value(output.record_dicts(records)))
    output.records_table(records)


def describe(path: Path) -> None:
    description = tfr.describe(path)
    json.dumps(description.to_dict(), allow_nan=False)
    str(description)


def at_random(path: Path) -> None:
    with tfr.open_random(path) as records:
        for number in range(len(records)):
            records[number]


def in_batches(path: Path) -> None:
    try:
        list(tfr.iter_arrays(tfr.dataset(path, threads=1), batch_size=2, missing="mask"))
    except ValueError as error:
        if isinstance(error, tfr.TFRecordError) or "no column to read" not in str(error):
            raise


def metadata(path: Path) -> None:
    str(tfr.read_metadata(path))


def printed_as(form: str) -> Call:
    return lambda path: schema_text(resolve_schema(path, form, {})[0], form)


CALLS: list[Call] = [
    head,
    describe,
    at_random,
    in_batches,
    metadata,
    lambda path: tfr.read_tfrecord(tfr.dataset(path, threads=1)),
    lambda path: tfr.read_tfrecord(tfr.dataset(path, threads=1), dtype_backend="numpy_nullable"),
    lambda path: tfr.read_tfrecord(tfr.dataset(path, threads=1), dtype_backend="pyarrow"),
    lambda path: tfr.read_arrays(tfr.dataset(path, threads=1), missing="mask"),
    lambda path: list(tfr.open_reader(tfr.dataset(path, threads=1), batch_size=1)),
    lambda path: tfr.count(path),
    lambda path: str(tfr.verify(path)),
    *map(printed_as, ("json", "tfx", "python", "arrow", "feature_description")),
]
