"""Tests against TensorFlow and tfx_bsl themselves: `make conformance`, in an environment that holds them.

Elsewhere they are skipped. Where TFRECORD_IO_CONFORMANCE=1 asks for them and TensorFlow is missing they fail.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import pytest

ENABLED = os.environ.get("TFRECORD_IO_CONFORMANCE") == "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def _required(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        pytest.fail(f"TFRECORD_IO_CONFORMANCE=1 asks for {module}, which cannot be imported: {error}")


@pytest.fixture(scope="session", autouse=True)
def conformance() -> None:
    if not ENABLED:
        pytest.skip("needs TensorFlow: make conformance")


@pytest.fixture(scope="session")
def tf(conformance: None) -> Any:
    return _required("tensorflow")


@pytest.fixture(scope="session")
def tfx_decode(conformance: None) -> Any:
    """tfx_bsl's function from serialized Examples to a record batch."""
    return _required("tfx_bsl.coders.example_coder").ExamplesToRecordBatchDecoder().DecodeBatch


@pytest.fixture(scope="session")
def tfx_decode_sequences(tf: Any) -> Any:
    """tfx_bsl's function from serialized SequenceExamples to a record batch."""
    return (
        importlib.import_module("tfx_bsl.coders.sequence_example_coder")
        .SequenceExamplesToRecordBatchDecoder("##SEQUENCE##")
        .DecodeBatch
    )


@pytest.fixture
def write_records(tf: Any) -> Any:
    """Write payloads by TensorFlow's TFRecordWriter."""

    def write(path: Path, payloads: list[bytes], compression: str = "") -> str:
        with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for payload in payloads:
                writer.write(payload)
        return str(path)

    return write
