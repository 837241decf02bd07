"""Ways of reading that must not change the result: block sizes, engines, files on disk."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from records import written
from tfrecord_io.read import chunk_reader as decoding


@contextmanager
def blocks_of(size: int) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_BLOCK_BYTES", size)
        patch.setattr(decoding, "_SMALL_BLOCK_BYTES", size)
        yield


@contextmanager
def engine_of(name: str) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TFRECORD_IO_ENGINE", name)
        yield


@contextmanager
def on_disk(contents: list[list[bytes]]) -> Iterator[list[Path]]:
    with tempfile.TemporaryDirectory() as folder:
        yield [written(Path(folder) / f"{i}.tfrecord", payloads) for i, payloads in enumerate(contents)]
