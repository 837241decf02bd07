"""Files of stores that are downloaded into a cache of fsspec."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import fsspec
import pytest

import tfrecord_io as tfr
from servers import Bucket, requests_of
from tfrecord_io.base import MIB

TABLE = {"x": list(range(1000))}


def options_of(bucket: Bucket, copies: Path) -> dict[str, Any]:
    return {bucket.protocol: bucket.storage_options, "simplecache": {"cache_storage": str(copies)}}


@pytest.mark.parametrize(("store", "heads"), [("s3", 0), ("azure", 1)])
def test_a_cache_takes_one_request_a_file(
    store: str, heads: int, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket: Bucket = request.getfixturevalue(store)
    count = 6
    tfr.write_tfrecord(TABLE, bucket.url("d/"), shards=count, storage_options=bucket.storage_options)
    options = options_of(bucket, tmp_path)

    def read() -> None:
        got = tfr.read_table(f"simplecache::{bucket.url('d/part-*')}", storage_options=options)
        assert got.to_pydict() == TABLE

    first, again = (requests_of(bucket, monkeypatch, read) for _ in range(2))
    assert first - again == Counter(get_object=count + 1) + Counter(head_object=heads), (
        "of the manifest, beside the files"
    )
    assert not again["get_object"]
    assert len(os.listdir(tmp_path)) == count + 1


def test_a_large_file_comes_into_a_cache_by_ranges_side_by_side(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = [os.urandom(MIB)] * 24
    url = s3.url("a.tfrecord")
    tfr.write_tfrecord({"x": content}, url, storage_options=s3.storage_options)
    url, options = f"simplecache::{url}", options_of(s3, tmp_path)
    asked = requests_of(s3, monkeypatch, lambda: tfr.count(url, storage_options=options))
    assert asked["get_object"] > 2
    assert tfr.read_table(url, storage_options=options)["x"].to_pylist() == content
    with fsspec.open(url, **options) as file:
        assert file.read() == s3.fs.cat_file(s3.url("a.tfrecord"))


def test_a_download_that_fails_leaves_nothing_in_the_cache(
    s3: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord(TABLE, s3.url("a.tfrecord"), storage_options=s3.storage_options)
    url, options = f"simplecache::{s3.url('a.tfrecord')}", options_of(s3, tmp_path)

    def read() -> None:
        with pytest.raises(PermissionError):
            tfr.read_table(url, storage_options=options)

    requests_of(s3, monkeypatch, read, lambda name: name == "get_object")
    assert os.listdir(tmp_path) == []
    assert tfr.read_table(url, storage_options=options).to_pydict() == TABLE
