"""decode_json_example gives the Examples that TensorFlow's gives; stricter JSON rules are listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "json_examples.json").read_text())


def facts(payload: bytes) -> Any:
    """The features of an Example, floats by their bits."""
    example = tfr.decode_example(payload)
    return {
        n: v if v is None else (str(v.dtype), v.tolist() if v.dtype == object else v.tobytes())
        for n, v in example.items()
    }


@pytest.mark.parametrize("text", TEXTS["accepted"])
def test_the_same_example(tf: Any, text: str) -> None:
    assert facts(tfr.io.decode_json_example(text)) == facts(tf.io.decode_json_example(text).numpy())


@pytest.mark.parametrize("text", TEXTS["refused"])
def test_refused_by_both(tf: Any, text: str) -> None:
    with pytest.raises((tf.errors.InvalidArgumentError, UnicodeDecodeError)):  # the latter in TensorFlow's message
        tf.io.decode_json_example(text)


@pytest.mark.parametrize("text", TEXTS["refused_though_tensorflow_accepts"])
def test_stricter_than_tensorflow(tf: Any, text: str) -> None:
    tf.io.decode_json_example(text)
    with pytest.raises(tfr.errors.DecodeError):
        tfr.io.decode_json_example(text)
