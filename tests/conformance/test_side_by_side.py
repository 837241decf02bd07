"""TensorFlow may be imported before or after tfrecord_io; both work in one process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TENSORFLOW = "import tensorflow as tf"
TFRECORD_IO = "import tfrecord_io as tfr; first = tfr.train.Example()"
USE = """
import sys
import pyarrow as pa

path = sys.argv[1]
feature = {"n": tfr.io.int64_feature([1, 2]), "s": tfr.io.bytes_feature(b"x")}
mirrored = tfr.train.Example(features=tfr.train.Features(feature=feature))
original = tf.train.Example.FromString(mirrored.SerializeToString())
assert list(original.features.feature["n"].int64_list.value) == [1, 2]
assert tfr.train.Example.FromString(original.SerializeToString()) == mirrored
assert tf.train.Example is not tfr.train.Example

table = pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]})
tfr.write_tfrecord(table, path)
assert tfr.read_table(path).equals(table)
records = next(iter(tf.data.TFRecordDataset(path).batch(3)))
parsed = tf.io.parse_example(records, {"n": tf.io.FixedLenFeature([], tf.int64)})
assert parsed["n"].numpy().tolist() == [1, 2, 3]
print("both work")
"""
ORDERS = {
    "tensorflow first": [TENSORFLOW, TFRECORD_IO],
    "tfrecord_io first": [TFRECORD_IO, TENSORFLOW],
    "tfx_bsl first": ["from tfx_bsl.coders import example_coder", TENSORFLOW, TFRECORD_IO],
    "tfx_bsl last": [TFRECORD_IO, TENSORFLOW, "from tfx_bsl.coders import example_coder"],
}


@pytest.mark.parametrize("order", ORDERS)
def test_both_work_in_one_process(engine: str, order: str, tmp_path: Path) -> None:
    program = "\n".join([*ORDERS[order], USE])
    result = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "a.tfrecord")],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TFRECORD_IO_ENGINE": engine, "TF_CPP_MIN_LOG_LEVEL": "3"},
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "both work" in result.stdout


def test_we_never_import_tensorflow() -> None:
    program = (
        "import sys, tfrecord_io as tfr; tfr.encode_example({'a': 1}); "
        "print([m for m in sys.modules if m.startswith('tensorflow')])"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
