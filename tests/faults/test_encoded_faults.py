"""Rows whose rules stand outside of the engines, through whole reads and writes by both of them."""

from __future__ import annotations

import datetime
import gzip
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, framed, written


@pytest.mark.fault(32)
def test_a_wrong_compression_is_told(engine: str, tmp_path: Path) -> None:
    content = framed(*[example(x=blobs(b"x"))] * 3)
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    plain.write_bytes(content)
    packed.write_bytes(gzip.compress(content))
    for path, compression, looks in ((plain, "gzip", "a plain TFRecord file"), (packed, "zlib", "gzip data")):
        with pytest.raises(tfr.errors.CompressionError, match=f"the file looks like {looks}"):
            tfr.read_table(tfr.dataset(path, compression=compression))
        assert tfr.read_table(path).num_rows == 3


@pytest.mark.fault(34)
def test_a_length_that_looks_like_gzip(engine: str, tmp_path: Path) -> None:
    size = int.from_bytes(b"\x1f\x8b\x08", "little")
    rest = size - len(example(x=blobs(b""))) - 12
    payload = next(p for n in range(rest, size) if len(p := example(x=blobs(bytes(n)))) == size)
    path = written(tmp_path / "a.tfrecord.gz", [payload, example(x=blobs(b"x"))])
    assert path.read_bytes().startswith(b"\x1f\x8b\x08")
    assert [len(value) for value in tfr.read_table(tfr.dataset(path, infer_text=False))["x"].to_pylist()][1] == 1


WORDS = pa.array(["a", None, "bc", "d", "a", ""])


@pytest.mark.fault(52)
@pytest.mark.parametrize(
    "array",
    [
        WORDS.slice(1, 4),
        WORDS.dictionary_encode().slice(2),
        WORDS.cast(pa.string_view()),
        pa.array([[1], None, [2, 3], []]).slice(1),
        pa.chunked_array([[1, None], [3]]),
        pa.RunEndEncodedArray.from_arrays([2, 5], pa.array([7, None])),
        pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]).slice(1),
    ],
    ids=["slice", "dictionary", "view", "lists", "chunks", "runs", "structs"],
)
def test_arrow_input_of_any_layout(engine: str, tmp_path: Path, array: Any) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(pa.table({"x": array}), path)
    assert tfr.read_table(path)["x"].to_pylist() == array.to_pylist()


@pytest.mark.fault(72)
@pytest.mark.parametrize(
    ("value", "type_"),
    [(2, pa.bool_()), ("007", pa.int64()), (datetime.datetime(2020, 1, 1, 12), pa.date32())],
    ids=["bool", "integer", "date"],
)
def test_values_that_a_declared_type_would_change(engine: str, tmp_path: Path, value: Any, type_: Any) -> None:
    with pytest.raises(tfr.errors.EncodeError) as caught:
        tfr.write_tfrecord(pa.table({"x": [value, value]}), tmp_path / "a", schema={"x": type_})
    assert caught.value.feature == "x"
    assert not (tmp_path / "a").exists()
