"""A compression of another package whose members have no magic bytes: bzip2 of docs/extend.md without its header."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from installed import install, install_of_page
from rounds import COMPLETE

CODEC = """
from tfrecord_bzip2 import Bzip2, Bzip2Compressor, Bzip2Decompressor
from tfrecord_io.bytes.compression.codec import Codec

HEADER = b"BZh9"


class Bare(Bzip2):
    name, suffixes, looks_like = "bare", (".bare",), Codec.looks_like

    def accepts(self, head):
        return True

    def decompressor(self, *, exact=False):
        made = Bzip2Decompressor(exact)
        made._inner.decompress(HEADER)
        return made

    def new_compressor(self, level, threads):
        return BareCompressor(9 if level is None else level)


class BareCompressor(Bzip2Compressor):
    def __init__(self, level):
        super().__init__(level)
        self._to_drop = len(HEADER)

    def compress(self, data):
        yield from map(self._without_header, super().compress(data))

    def flush(self):
        yield from map(self._without_header, super().flush())

    def _without_header(self, data):
        dropped, self._to_drop = self._to_drop, max(0, self._to_drop - len(data))
        return data[dropped:]


BARE = Bare()
"""

SUITE = """
import bz2
from tfrecord_bare import HEADER
from tfrecord_io.testing import CodecSuite


class TestBare(CodecSuite):
    name = "bare"
    has_magic = False

    def elsewhere(self, data):
        return bz2.compress(data)[len(HEADER):]

    def decodable(self, data):
        return bz2.BZ2Decompressor().decompress(HEADER + data)
"""

USES = """
import tfrecord_io as tfr

rows = {"x": list(range(1000))}
assert tfr.write_tfrecord(rows, "a.tfrecord.bare").compression == "bare"
assert tfr.read_table("a.tfrecord.bare")["x"].to_pylist() == rows["x"]
for name, compression in [("plain.tfrecord", None), ("b.tfrecord.gz", "gzip"), ("c.tfrecord.bz2", "bzip2")]:
    tfr.write_tfrecord(rows, name)
    open("unnamed", "wb").write(open(name, "rb").read())
    assert tfr.read_table("unnamed").num_rows == 1000
    assert tfr.verify("unnamed").files[0].compression == compression
open("unnamed", "wb").write(open("a.tfrecord.bare", "rb").read())
assert tfr.read_table(tfr.dataset("unnamed", compression="bare")).num_rows == 1000
open("zeros.tfrecord", "wb").write(bytes(100))
try:
    tfr.read_table("zeros.tfrecord")
except tfr.errors.CorruptRecordError:
    pass
else:
    raise AssertionError
"""


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., None]:
    made = install_of_page(
        tmp_path, "tfrecord_bzip2", "Bzip2", "CodecSuite", group="tfrecord_io.compressions", key="bzip2"
    )
    install(tmp_path, "tfrecord_bare", CODEC, "tfrecord_io.compressions", {"bare": "tfrecord_bare:BARE"})
    (tmp_path / "test_bare.py").write_text(SUITE, "utf-8")
    return made


def test_files_are_known_by_suffix_or_name_and_no_other_file_is_taken_for_one(run: Callable[..., None]) -> None:
    run("-W", "error::RuntimeWarning", "-c", USES)


def test_it_passes_the_shipped_suite(run: Callable[..., None]) -> None:
    slow = "" if COMPLETE else "not (bomb or threads or truncation or damaged_data or larger)"
    run("-m", "pytest", "-q", "-x", "--strict-markers", "-p", "no:cacheprovider", "-k", slow, "test_bare.py")
