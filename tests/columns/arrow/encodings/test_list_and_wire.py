"""The encodings "list" and "wire": the numbers of a cell are the values of the feature."""

from typing import Any, ClassVar

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.encodings.tensor_encoding import tensor_encoding
from tfrecord_io.columns.schema.tensor_types import TENSOR_ENCODINGS
from tfrecord_io.testing import TensorEncodingSuite
from tfrecord_io.testing.tensor_encoding_suite import NAMES


@pytest.mark.usefixtures("engine")
class TestValues(TensorEncodingSuite):
    name = "list"
    dtypes: ClassVar = [name for name in NAMES if Dtype.of_name(name).kind not in "cVSU"]
    hostile: ClassVar = [b"bytes", [1.5, 2.5, 3.5], [2**40, 0, 0]]

    def elsewhere(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"x": array.reshape(-1)}


def test_wire_reads_bytes_and_numbers(tmp_path: Any) -> None:
    array = np.arange(3, dtype="i4")
    schema = {"x": tfr.tensor("int32", (3,))}
    assert schema["x"].encoding == "wire"
    for name, value in (("a", array.tobytes()), ("b", array.tolist())):
        with tfr.RecordWriter(tmp_path / name) as writer:
            writer.write(tfr.encode_example({"x": value}))
        np.testing.assert_array_equal(tfr.read_arrays(tmp_path / name, schema=schema)["x"], [array])


def test_only_wire_is_for_reading_only() -> None:
    assert [name for name in TENSOR_ENCODINGS.names() if tensor_encoding(name).adaptive] == ["wire"]
