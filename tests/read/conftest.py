"""The fixture `files`: what the tests of sources read."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrecord_io as tfr
from source_calls import ROWS


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two datasets of shards, and a file with the rows of both."""
    folder = tmp_path_factory.mktemp("files")
    for name, begin, end in (("a", 0, 16), ("b", 16, 24)):
        for first in range(begin, end, 4):
            tfr.write_tfrecord(ROWS[first : first + 4], f"{folder}/{name}/", mode="append")
    tfr.write_tfrecord(ROWS, folder / "all.tfrecord")
    return folder
