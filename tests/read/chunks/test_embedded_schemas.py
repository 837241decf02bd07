"""Embedded schemas: those that disagree inside of a file are found, and those of many files side by side."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecord_io as tfr
from servers import Bucket, meeting_requests
from tfrecord_io.options import ReadOptions, StorageOptions
from tfrecord_io.read.chunks.embedded_schemas import first_contents
from tfrecord_io.storage.paths.resolve import resolve_inputs


def test_a_schema_known_from_another_file_is_compared_with_the_first_of_its_file(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1], "x": [2]}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"n": [3]}, tmp_path / "b.tfrecord")
    joined = tmp_path / "joined.tfrecord"
    joined.write_bytes((tmp_path / "a.tfrecord").read_bytes() + (tmp_path / "b.tfrecord").read_bytes())
    for paths in ([joined], [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord", joined]):
        with pytest.raises(tfr.errors.SchemaError, match="differs from that of the file's first record") as caught:
            tfr.read_table(paths)
        assert (caught.value.path, caught.value.record) == (str(joined), 1)


def test_large_first_records_of_a_bucket_are_read_side_by_side(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as images, which take a second request each."""
    paths = [s3.url(f"{at}.tfrecord") for at in range(8)]
    for at, path in enumerate(paths):
        tfr.write_tfrecord({f"x{at}": [bytes(20_000)] * 2}, path, storage_options=s3.storage_options)
    sources = resolve_inputs(paths, StorageOptions(s3.storage_options))
    contents: list[tuple[bytes, str]] = []
    made, most = meeting_requests(s3, monkeypatch, lambda: contents.extend(first_contents(sources, ReadOptions())), 2)
    assert [path for _, path in contents] == paths
    assert [f"x{at}".encode() in content for at, (content, _) in enumerate(contents)] == [True] * len(paths)
    assert (made, most > 2) == (2 * len(paths), True)
