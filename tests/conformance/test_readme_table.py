"""The table of the README about damaged and incomplete files: what each library makes of the same three files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import tfrecord_io as tfr

# Each program prints the labels that it has read from a file; an error is its last line.
TFRECORD_IO = "import tfrecord_io as tfr; labels = tfr.read_table(path)['label'].to_pylist()"
TF_DATA = """
import tensorflow as tf

description = {"label": tf.io.FixedLenFeature([], tf.int64)}
parsed = tf.data.TFRecordDataset(path).map(lambda record: tf.io.parse_single_example(record, description))
labels = [int(row["label"]) for row in parsed]
"""
TFX_BSL = """
import tensorflow as tf
from tfx_bsl.coders.example_coder import ExamplesToRecordBatchDecoder

records = [record.numpy() for record in tf.data.TFRecordDataset(path)]
column = ExamplesToRecordBatchDecoder().DecodeBatch(records).column("label").to_pylist()
labels = [values and values[0] for values in column]
"""
TFRECORD = """
from tfrecord.reader import tfrecord_loader

labels = [int(record["label"][0]) for record in tfrecord_loader(path, None, {"label": "int"})]
"""
PROGRAM = "import json, sys\npath = sys.argv[1]\n{}\nprint(json.dumps(labels))"

FLIPPED, TRUNCATED, ABSENT = "a flipped bit", "a truncated header", "an absent feature"
EXPECTED = {
    (TFRECORD_IO, FLIPPED): "CorruptRecordError",
    (TF_DATA, FLIPPED): "DataLossError",
    (TFX_BSL, FLIPPED): "DataLossError",
    (TFRECORD, FLIPPED): [0, 0, 2],  # a wrong value
    (TFRECORD_IO, TRUNCATED): "TruncatedRecordError",
    (TF_DATA, TRUNCATED): [0, 1],
    (TFX_BSL, TRUNCATED): [0, 1],
    (TFRECORD, TRUNCATED): "RuntimeError",
    (TFRECORD_IO, ABSENT): [0, None, 2],
    (TF_DATA, ABSENT): "InvalidArgumentError",
    (TFX_BSL, ABSENT): [0, None, 2],
    (TFRECORD, ABSENT): "KeyError",
}


def make(path: Path, fault: str) -> None:
    """Write three records with the labels 0, 1 and 2, and damage one."""
    payloads = [tfr.encode_example({"label": i, "name": "cat"}) for i in range(3)]
    if fault == ABSENT:
        payloads[1] = tfr.encode_example({"name": "cat"})
    with tfr.RecordWriter(path) as writer:
        for payload in payloads:
            writer.write(payload)
    content = bytearray(path.read_bytes())
    size = len(content) // 3
    if fault == FLIPPED:
        begin = size + 12
        at = next(i for i in range(len(payloads[1])) if _label(_flipped(payloads[1], i)) == 0)
        content[begin : begin + len(payloads[1])] = _flipped(payloads[1], at)
    elif fault == TRUNCATED:
        del content[2 * size + 5 :]
    path.write_bytes(content)


def _flipped(payload: bytes, at: int) -> bytes:
    return payload[:at] + bytes([payload[at] ^ 1]) + payload[at + 1 :]


def _label(payload: bytes) -> int | None:
    try:
        values = tfr.decode_example(payload).get("label")
    except tfr.errors.DecodeError:
        return None
    return values.tolist()[0] if values is not None and values.dtype == "int64" and len(values) else None


@pytest.mark.parametrize("fault", [FLIPPED, TRUNCATED, ABSENT])
@pytest.mark.parametrize(
    "program", [TFRECORD_IO, TF_DATA, TFX_BSL, TFRECORD], ids=["own", "tf.data", "tfx", "tfrecord"]
)
def test_what_the_libraries_read(program: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    make(path, fault)
    command = [sys.executable, "-c", PROGRAM.format(program), str(path)]  # TensorFlow and tfrecord clash in one process
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    expected = EXPECTED[program, fault]
    if isinstance(expected, str):
        assert done.returncode != 0
        assert expected in done.stderr.strip().splitlines()[-1] or f"{expected}:" in done.stderr
    else:
        assert done.returncode == 0, done.stderr[-2000:]
        assert json.loads(done.stdout.splitlines()[-1]) == expected
