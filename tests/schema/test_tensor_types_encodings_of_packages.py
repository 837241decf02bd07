"""A tensor encoding that another package adds: that of docs/extend.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from installed import install

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"
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
    assert "'npy', 'nested', 'json', 'raw_zlib'" in str(error), error
else:
    raise AssertionError
"""


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    """An environment with an installed package, whose code and tests are those of the page."""
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    module = next(block for block in code if "class RawZlib" in block) + "\n\nRAW_ZLIB = RawZlib()\n"
    install(tmp_path, "tfr_zlib", module, "tfrecord_io.tensor_encodings", {"raw_zlib": "tfr_zlib:RAW_ZLIB"})
    (tmp_path / "test_raw_zlib.py").write_text(next(block for block in code if "EncodingSuite" in block), "utf-8")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other installed packages have nothing to do with it
    return {**os.environ, **alone, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}


def run(package: dict[str, str], folder: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_column_is_written_and_read(package: dict[str, str], tmp_path: Path) -> None:
    run(package, tmp_path, "-c", USES)


def test_it_passes_the_shipped_suite(package: dict[str, str], tmp_path: Path) -> None:
    run(package, tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "test_raw_zlib.py")
