"""A compression that another package adds: that of docs/extend.md."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from installed import install_of_page
from rounds import COMPLETE

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
    assert "'bzip2', or 'none'" in str(error), error
else:
    raise AssertionError
tfr.convert("a.tfrecord.bz2", "x.csv.bz2")
assert tfr.convert("x.csv.bz2", "again.tfrecord").records == 1000
help = subprocess.run([sys.executable, "-m", "tfrecord_io", "head", "--help"], capture_output=True, text=True).stdout
assert " or bzip2" in " ".join(help.split()), help
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    return install_of_page(
        tmp_path, "tfrecord_bzip2", "Bzip2", "CodecSuite", group="tfrecord_io.compressions", key="bzip2"
    )


def test_all_calls_have_it(run: Callable[..., None]) -> None:
    run("-W", "error::RuntimeWarning", "-c", USES)


def test_it_passes_the_shipped_suite(run: Callable[..., None]) -> None:
    slow = "" if COMPLETE else "not (bomb or threads or truncation or damaged_data or larger)"
    run("-m", "pytest", "-q", "-x", "--strict-markers", "-p", "no:cacheprovider", "-k", slow, "test_bzip2.py")
