"""Metadata of many files; of one, see the tests of the reader's schema."""

from __future__ import annotations

from typing import Any

import pytest

import tfrecord_io as tfr
from servers import Bucket, meeting_requests


def test_files_of_a_bucket_are_looked_at_side_by_side(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those whose first record takes a second request."""
    options = {"storage_options": s3.storage_options}
    for at in range(8):
        tfr.write_tfrecord({f"x{at}": [bytes(20_000)] * 2}, s3.url(f"d/{at}.tfrecord"), **options)
    found: list[Any] = []
    _, most = meeting_requests(s3, monkeypatch, lambda: found.append(tfr.read_metadata(s3.url("d/"), **options)), 2)
    assert sorted(found[0].schema.names) == [f"x{at}" for at in range(8)]
    assert len(found[0].files) == 8
    assert most > 2
