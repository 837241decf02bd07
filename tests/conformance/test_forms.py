"""The output of ``tfr schema --as feature_description`` parses the file in TensorFlow, tensors and companions too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.cli.schema_text import resolve_schema, schema_text


def printed(path: Path, tf: Any) -> tuple[dict[str, Any], list[str]]:
    """The description, and the hints below it."""
    schema, _ = resolve_schema(path, "feature_description", {})
    text = schema_text(schema, "feature_description")
    found: dict[str, Any] = {}
    exec(text, found)  # our own words, for pasting
    return found["feature_description"], [
        line.removeprefix("# ") for line in text.splitlines() if line.startswith("# '")
    ]


@pytest.mark.parametrize("embedded", [True, False], ids=["embedded", "companions"])
def test_the_printed_description_of_tensors_parses_and_decodes(tf: Any, tmp_path: Path, embedded: bool) -> None:
    path = tmp_path / "digits.tfrecord"
    names = ["float32", "float64", "uint8", "bool", "complex64", "float16", "int64"]
    data = {name: np.arange(12).reshape(2, 3, 2).astype(name) for name in names}
    varying = [np.ones((2, 1, 3), "f4"), np.zeros((1, 2, 3), "f4")]
    tfr.write_tfrecord(
        {**data, "varying": varying, "maybe": [None, np.ones((2, 2), "f4")]}, path, embed_schema=embedded
    )
    description, hints = printed(path, tf)
    assert description["float32"] == tf.io.FixedLenFeature((), tf.string)
    assert description["float32/shape"] == tf.io.FixedLenFeature((2,), tf.int64)
    assert description["float32/dtype"] == tf.io.FixedLenFeature((), tf.string)
    assert description["varying/shape"] == tf.io.FixedLenFeature((3,), tf.int64)
    assert [description[f"maybe{end}"] for end in ("", "/shape", "/dtype")] == [
        tf.io.VarLenFeature(tf.string),
        tf.io.VarLenFeature(tf.int64),
        tf.io.VarLenFeature(tf.string),
    ]
    with tfr.RecordReader(path) as records:
        for row, record in enumerate(records):
            parsed = tf.io.parse_single_example(record, description)
            assert parsed["float32/dtype"].numpy() == b"float32"
            present = [hint for hint in hints if row == 1 or not hint.startswith("'maybe'")]  # the first has none
            decoded = eval("{" + ",".join(present) + "}", {"tf": tf, "parsed": parsed})
            assert set(decoded) == {*names, "varying", *(["maybe"] if row == 1 else [])}
            expected = {name: values[row] for name, values in data.items()}
            expected |= {"varying": varying[row], "maybe": np.ones((2, 2), "f4")}
            for name, tensor in decoded.items():
                np.testing.assert_array_equal(tensor.numpy(), expected[name], strict=True)


def test_the_printed_description_of_steps_parses(tf: Any, tmp_path: Path) -> None:
    path = tmp_path / "steps.tfrecord"
    steps = tfr.Schema({"x": tfr.sequence(tfr.tensor("float32", (2, 2)))}).to_arrow()
    values = {"x": [[[1.0, 2, 3, 4], [5, 6, 7, 8]]]}
    storage = pa.array(values["x"], pa.list_(pa.list_(pa.float32(), 4)))
    column = pa.ListArray.from_arrays(
        storage.offsets, pa.ExtensionArray.from_storage(steps.field("x").type.value_type, storage.values)
    )
    tfr.write_tfrecord(pa.table({"x": column}), path, record_type="sequence_example")
    schema, _ = resolve_schema(path, "feature_description", {})
    found: dict[str, Any] = {}
    exec(schema_text(schema, "feature_description"), found)
    with tfr.RecordReader(path) as records:
        _, lists = tf.io.parse_single_sequence_example(
            next(records), found["feature_description"], found["sequence_features"]
        )
    assert lists["x/shape"].numpy().tolist() == [[2, 2], [2, 2]]
    assert lists["x"].shape == (2,)
