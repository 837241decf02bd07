"""Files that a web server states to be compressed, as ``Content-Encoding``."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

import tfrecord_io as tfr
from limited import limited
from servers import Web


@pytest.fixture
def parts(tmp_path: Path) -> list[bytes]:
    for i in range(2):
        tfr.write_tfrecord({"x": list(range(500 * i, 500 * i + 500))}, tmp_path / f"{i}.tfrecord")
    return [(tmp_path / f"{i}.tfrecord").read_bytes() for i in range(2)]


@pytest.mark.parametrize("name", ["a.tfrecord", "a.tfrecord.gz"])
def test_all_members_of_gzip_are_read(web: Web, parts: list[bytes], name: str) -> None:
    """aiohttp before 3.14 ends with the first one."""
    web.files[name], web.encoding = b"".join(map(gzip.compress, parts)), "gzip"
    for _ in range(2):
        assert tfr.read_table(web.url(name))["x"].to_pylist() == list(range(1000))
    assert tfr.count(web.url(name)) == 1000


def test_what_aiohttp_decompresses_is_asked_for_so(web: Web, parts: list[bytes]) -> None:
    web.files["a.tfrecord"], web.encoding = zlib.compress(b"".join(parts)), "deflate"
    assert tfr.read_table(web.url("a.tfrecord"))["x"].to_pylist() == list(range(1000))


def test_an_encoding_that_is_unknown_is_that_of_the_file(web: Web, parts: list[bytes]) -> None:
    web.files["a.tfrecord"], web.encoding = gzip.compress(b"".join(parts)), "x-gzip"
    assert tfr.read_table(web.url("a.tfrecord"))["x"].to_pylist() == list(range(1000))


def test_content_that_ends_early_is_an_error_also_at_the_end_of_a_record(web: Web, parts: list[bytes]) -> None:
    codec = zlib.compressobj(wbits=31)
    web.files["a.tfrecord"] = codec.compress(parts[0]) + codec.flush(zlib.Z_SYNC_FLUSH)
    web.encoding = "gzip"
    with limited(backoff_seconds=0.001), pytest.raises(OSError, match="ended before the end-of-stream marker"):
        tfr.read_table(web.url("a.tfrecord"))
