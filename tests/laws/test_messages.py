"""Messages hold no payload: a marker in values never occurs in an error, its cause or a warning."""

from __future__ import annotations

import base64
import datetime as dt
import gzip
import warnings
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, floats, framed, int64s, written
from rounds import rounds

TEXT, DIGITS = "qzMarker", "7320418"
NUMBER, SMALL, FLOAT = 7_320_418_653, 7_320_418, 7_320_418.5
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAAAAACcgYFdAAAAEUlEQVQImWNkZGRgYGBgYgAAACUABhVeS0sAAAAASUVORK5CYII="
)
BYTES = TEXT.encode() + b"\xff"

TYPES = [
    *(pa.bool_(), pa.int8(), pa.uint8(), pa.int32(), pa.uint64(), pa.int64(), pa.float16(), pa.float32(), pa.float64()),
    *(pa.string(), pa.binary(), pa.binary(3), pa.date32(), pa.date64(), pa.time32("s"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.duration("ms"), pa.decimal128(5, 2), pa.decimal256(40, 1)),
    *(pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int8(), pa.int8()), pa.list_(pa.int8())),
    *(pa.list_(pa.string(), 2), pa.list_(pa.list_(pa.int16())), pa.struct([("a", pa.int8())]), pa.uuid(), pa.bool8()),
    *(pa.fixed_shape_tensor(pa.int8(), (2,)), pa.fixed_shape_tensor(pa.float16(), (1, 1))),
]
VALUES: list[Any] = [
    *([TEXT, "a"], [BYTES, b"a"], [NUMBER, 1], [-NUMBER, 2], [SMALL, 3], [float(NUMBER), 0.5], [FLOAT, float("nan")]),
    *([Decimal(f"{NUMBER}.77"), None], [dt.datetime(7320, 4, 18), dt.datetime(1, 1, 1)], [float(NUMBER) * 1e300, 1.0]),
    *([[NUMBER], [1, 2]], [[TEXT], ["a", "b"]], [{"a": NUMBER}, {"a": None}], [{"a": TEXT}, {"a": "b"}]),
    *([TEXT, 1], [NUMBER, TEXT], [BYTES, TEXT], [[NUMBER], TEXT], [{"a": TEXT}, NUMBER], [2 * 10**30 + NUMBER, 1]),
]


def clean(call: Callable[[], Any]) -> str | None:
    """Make a call; the class of its error. Neither that nor any warning holds a marker, or is too long."""
    error: BaseException | None = None
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            call()
        except (tfr.TFRecordError, ValueError, TypeError, OSError) as caught:
            error = caught
    messages = [str(warning.message) for warning in warned] + [str(each) for each in chain(error)]
    for message in messages:
        assert TEXT not in message, message
        assert DIGITS not in message, message
        assert "qzMa" not in message, message
        assert BYTES.hex()[:12] not in message, message
        assert len(message.encode()) <= 1024, message
    return None if error is None else type(error).__name__


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """The errors that a traceback shows."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


@pytest.mark.parametrize("values", VALUES, ids=range(len(VALUES)))
def test_wrong_writes(tmp_path: Path, values: list[Any]) -> None:
    path, failed = tmp_path / "a", 0
    columns: list[Any] = [values, pd.Series(values, dtype=object)]
    for column, types in zip(columns, (TYPES, TYPES[1:20:6]), strict=True):
        clean(lambda column=column: tfr.write_tfrecord({"x": column}, path, mode="overwrite", float64="error"))
        clean(lambda column=column: tfr.write_tfrecord(pd.DataFrame({"x": column}), path, mode="overwrite"))
        for type_ in types:
            schema = {"x": type_}
            write = partial(tfr.write_tfrecord, {"x": column}, path, schema=schema)
            failed += clean(write) is not None
            path.unlink(missing_ok=True)
    assert failed
    for value in values:
        clean(lambda value=value: tfr.encode_example({"x": value}))
        clean(lambda value=value: tfr.encode_example({"x": [value, None]}))
        clean(lambda value=value: tfr.encode_example({"x": [value, object]}))


RECORDS = [
    [example(x=blobs(b"a")), example(x=blobs(BYTES))],
    [example(x=blobs(b"a")), example(x=blobs(TEXT.encode(), TEXT.encode()))],
    [example(x=int64s(1)), example(x=int64s(NUMBER))],
    [example(x=int64s(1, 2)), example(x=int64s(-NUMBER, SMALL))],
    [example(x=floats(1.0)), example(x=floats(FLOAT))],
    [example(x=blobs(PNG)), example(x=blobs(PNG.replace(b"IDAT", b"qzMa")))],
    [example(x=blobs(b"a")), example(x=blobs(BYTES), **{"x/dtype": blobs(TEXT.encode()), "x/shape": int64s(NUMBER)})],
]
FIELDS: list[Any] = [
    *TYPES,
    *(tfr.image(), tfr.tensor("uint8", (2,)), tfr.tensor("float32", (None, 2)), tfr.tensor("bool", (None,))),
    *(tfr.tensor("int8", (2,), encoding=encoding) for encoding in ("raw", "tensor_proto", "npy")),
]


def calls(path: Path, **keywords: Any) -> list[Callable[[], Any]]:
    def at_random() -> None:
        with read_by(tfr.open_random, path, **keywords) as records:
            for number in range(len(records)):
                records[number]

    return [
        lambda: read_by(tfr.read_table, path, **keywords),
        lambda: read_by(tfr.read_table, path, **keywords, on_error="stop"),
        lambda: read_by(tfr.read_tfrecord, path, **keywords),
        lambda: read_by(tfr.read_arrays, path, **keywords),
        lambda: list(read_by(tfr.iter_arrays, path, batch_size=2, **keywords)),
        at_random,
    ]


@pytest.mark.matrix
@pytest.mark.parametrize("payloads", RECORDS, ids=range(len(RECORDS)))
def test_records_that_do_not_fit_a_schema(engine: str, tmp_path: Path, payloads: list[bytes]) -> None:
    path, failed = written(tmp_path / "a", payloads), 0
    for field in FIELDS:
        for call in calls(path, schema={"x": field}):
            failed += clean(call) is not None
    assert failed
    for call in calls(path):
        clean(call)
    clean(lambda: [tfr.io.parse_example(payload, {"x": tfr.io.FixedLenFeature((), "int64")}) for payload in payloads])


MARKED = framed(*(payload for payloads in RECORDS for payload in payloads))


@settings(max_examples=rounds(200), deadline=None)
@given(st.integers(0, len(MARKED) - 1), st.binary(min_size=0, max_size=3), st.sampled_from(["", "gzip"]), st.booleans())
def test_damaged_files(tmp_path_factory: pytest.TempPathFactory, at: int, put: bytes, codec: str, whole: bool) -> None:
    path = tmp_path_factory.mktemp("damaged") / ("a.gz" if codec else "a")
    content = bytearray(gzip.compress(MARKED, mtime=0) if codec else MARKED)
    at %= len(content)
    content[at : at + len(put)] = put
    if not put:
        del content[at:]
    path.write_bytes(bytes(content))
    keywords = {"compression": "gzip"} if codec else {}
    for call in calls(path, **({} if whole else keywords)):
        clean(call)
    clean(lambda: tfr.verify(path))
    clean(lambda: list(tfr.RecordReader(path)))
    assert TEXT not in str(tfr.verify(path))


def test_files_that_are_no_tfrecords(tmp_path: Path) -> None:
    path = tmp_path / "a"
    for content in (f"{TEXT} " * 9, f'{{"{TEXT}": {NUMBER}}}', f"<html>{TEXT}", TEXT):
        path.write_text(content)
        assert "CorruptRecordError" in {clean(call) for call in calls(path)}


def test_json_examples() -> None:
    for text in (
        f'{{"features": "{TEXT}"}}',
        f'{{"features": {{"feature": {{"x": {NUMBER}}}}}}}',
        f'{{"features": {{"feature": {{"x": {{"int64List": {{"value": ["{TEXT}"]}}}}}}}}}}',
        f'{{"features": {{"feature": {{"x": {{"int64List": {{"value": [{NUMBER}.5]}}}}}}}}}}',
        f'{{"features": {{"feature": {{"x": {{"floatList": {{"value": [{NUMBER}e999]}}}}}}}}}}',
        f'{{"features": {{"feature": {{"x": {{"bytesList": {{"value": ["{TEXT}!"]}}}}}}}}}}',
        f"{TEXT} {{",
    ):
        assert clean(lambda text=text: tfr.io.decode_json_example([text])) == "DecodeError"


def test_messages_are_limited_in_bytes() -> None:
    long = "é" * 3000
    for error in (
        tfr.TFRecordError(long, path=long, feature=long, advice=long),
        tfr.TFRecordError("\U0010ffff" * 999, path="\ud800" * 999, advice="𝄞" * 999),
    ):
        assert 1000 < len(str(error).encode()) <= 1024
    assert str(tfr.TFRecordError("é" * 400)) == "é" * 400


def test_values_stay_in_attributes(tmp_path: Path) -> None:
    path = written(tmp_path / "a", RECORDS[2])
    with pytest.raises(tfr.errors.DecodeError, match="the value is not a valid int8") as caught:
        tfr.read_table(path, schema={"x": pa.int8()})
    assert caught.value.got == NUMBER
