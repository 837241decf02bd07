"""Which paths are refused before a file is opened."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr

CALLS: dict[str, Callable[[str], Any]] = {
    "read": tfr.read_table,
    "count": tfr.count,
    "write": lambda path: tfr.write_tfrecord({"x": [1]}, path),
    "shards": lambda path: tfr.write_tfrecord({"x": [1]}, path, shards=2),
    "records": tfr.RecordWriter,
    "convert": lambda path: tfr.convert(path, "x.parquet"),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_lone_surrogate_in_a_path(call: str) -> None:
    with pytest.raises(ValueError, match=r"ud800.*lone surrogate") as caught:
        CALLS[call]("\ud800")
    assert not isinstance(caught.value, UnicodeError)


@pytest.mark.parametrize("call", CALLS)
def test_a_path_of_bytes(call: str) -> None:
    class Path(os.PathLike[bytes]):
        def __fspath__(self) -> bytes:
            return b"x"

    with pytest.raises(TypeError, match="a path is str or PathLike, not bytes"):
        CALLS[call](Path())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a path is str or PathLike, not bytes"):
        tfr.convert("x.parquet", Path())  # type: ignore[arg-type]


def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    """Python has surrogates for the bytes of such names; they are paths."""
    path = tmp_path / "\udcff.tfrecord"
    tfr.write_tfrecord({"x": [1]}, path)
    assert tfr.count(path) == 1


@pytest.mark.parametrize(
    "url", ["s3:///x", "s3://", "gs:///x", "gcs://", "s3a:////x/y", "az:///x", "simplecache::s3:///x"]
)
def test_a_url_without_a_bucket_is_refused_at_once(url: str) -> None:
    for call in (tfr.read_table, lambda path: tfr.write_tfrecord({"x": [1]}, path)):
        with pytest.raises(ValueError, match="names no bucket: expected s3://bucket/name"):
            call(url)
