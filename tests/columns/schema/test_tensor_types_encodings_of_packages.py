"""A tensor encoding that another package adds: that of docs/extend.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from installed import install_of_page

USES = """
import zlib
import numpy as np
import tfrecord_io as tfr

arrays = {"x": np.arange(12, dtype="int32").reshape(2, 2, 3)}
tfr.write_tfrecord(arrays, "a.tfrecord", column_encoding={"x": "raw_zlib"})
assert tfr.Schema.from_arrow(tfr.dataset("a.tfrecord").schema)["x"].encoding == "raw_zlib"
np.testing.assert_array_equal(tfr.read_arrays("a.tfrecord")["x"], arrays["x"])
tfr.write_tfrecord(arrays, "b.tfrecord", column_encoding={"x": "raw_zlib"}, embed_schema=False)
schema = {"x": tfr.tensor("int32", (2, 3), encoding="raw_zlib")}
np.testing.assert_array_equal(tfr.read_arrays("b.tfrecord", schema=schema)["x"], arrays["x"])
try:
    tfr.write_tfrecord(arrays, "c.tfrecord", column_encoding={"x": "RAW_ZLIB"})
except ValueError as error:
    assert "'json', 'raw_zlib'" in str(error), error
else:
    raise AssertionError
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    group = "tfrecord_io.tensor_encodings"
    return install_of_page(tmp_path, "tfr_zlib", "RawZlib", "EncodingSuite", group=group, key="raw_zlib")


def test_a_column_is_written_and_read(run: Callable[..., None]) -> None:
    run("-c", USES)


def test_it_passes_the_shipped_suite(run: Callable[..., None]) -> None:
    run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_raw_zlib.py")
