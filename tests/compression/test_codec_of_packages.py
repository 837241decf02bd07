"""A compression that another package adds: that of docs/extend.md."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from installed import install
from rounds import COMPLETE

PAGE = Path(__file__).parents[2] / "docs" / "extend.md"
USES = """
import io, subprocess, sys
import tfrecord_io as tfr

rows = {"x": list(range(1000))}
for path, keywords in [("a.tfrecord.bz2", {}), ("d/b@2", {"compression": "BZIP2"})]:
    report = tfr.write_tfrecord(rows, path, **keywords)
    assert report.compression == "bzip2"
    assert tfr.read_table(path)["x"].to_pylist() == rows["x"]
assert sorted(file.path for file in report.files)[0].endswith("b-00000-of-00002.bz2")
assert tfr.read_table("d").num_rows == 1000
content = open("a.tfrecord.bz2", "rb").read()
open("unnamed", "wb").write(content)
assert tfr.read_table("unnamed").num_rows == 1000
open("cut.tfrecord.bz2", "wb").write(content[:-9])
assert tfr.read_table("cut.tfrecord.bz2", on_error="skip", schema={"x": "int64"}).num_rows <= 1000
try:
    tfr.read_table(tfr.dataset("unnamed", compression="lzma"))
except ValueError as error:
    assert "'lz4', 'bzip2', or 'none'" in str(error), error
else:
    raise AssertionError
tfr.convert("a.tfrecord.bz2", "x.csv.bz2")
assert tfr.convert("x.csv.bz2", "again.tfrecord").records == 1000
help = subprocess.run([sys.executable, "-m", "tfrecord_io", "head", "--help"], capture_output=True, text=True).stdout
assert "lz4 or bzip2" in " ".join(help.split()), help
"""


@pytest.fixture
def package(tmp_path: Path) -> dict[str, str]:
    """An environment with an installed package, whose code and tests are those of the page."""
    code = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    module = next(block for block in code if "class Bzip2(Codec)" in block) + "\n\nBZIP2 = Bzip2()\n"
    install(tmp_path, "tfrecord_bzip2", module, "tfrecord_io.compressions", {"bzip2": "tfrecord_bzip2:BZIP2"})
    (tmp_path / "test_bzip2.py").write_text(next(block for block in code if "CodecSuite" in block), "utf-8")
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # other installed packages have nothing to do with it
    return {**os.environ, **alone, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}


def run(package: dict[str, str], folder: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=package, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_calls_have_it(package: dict[str, str], tmp_path: Path) -> None:
    run(package, tmp_path, "-W", "error::RuntimeWarning", "-c", USES)


def test_it_passes_the_shipped_suite(package: dict[str, str], tmp_path: Path) -> None:
    slow = "" if COMPLETE else "not (bomb or threads or truncation or damaged_data or larger)"
    options = ["-q", "-x", "--strict-markers", "-p", "no:cacheprovider", "-k", slow]
    run(package, tmp_path, "-m", "pytest", *options, "test_bzip2.py")
