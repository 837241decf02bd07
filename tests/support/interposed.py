"""Steps of reading and writing at which a test acts, or lets them fail: each is replaced in one place, here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tfrecord_io.read.chunks.block_walker import RecordFile
from tfrecord_io.read.chunks.segments import FileWindows
from tfrecord_io.store.filesystem.interface import LocalFileSystem
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths import manifest
from tfrecord_io.store.read import source
from tfrecord_io.store.read.source import Source
from tfrecord_io.store.write.output_file import OutputFile


def on_commit(patch: pytest.MonkeyPatch, step: Callable[[Any, Callable[[], None]], None]) -> None:
    """Call `step` with each complete output file and the function that publishes the file."""
    real = OutputFile.commit
    patch.setattr(OutputFile, "commit", lambda output: step(output, partial(real, output)))


def before_windows(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call `act` before each window of a file that is read at its offset."""
    real = FileWindows.read

    def read(self: FileWindows, *arguments: Any) -> Any:
        act()
        return real(self, *arguments)

    patch.setattr(FileWindows, "read", read)


def before_opening(patch: pytest.MonkeyPatch, act: Callable[[str], None]) -> None:
    """Call `act` with the path of each file of records that is about to be opened; it may raise an error."""
    real = RecordFile.__init__

    def open_file(self: RecordFile, source: Any, *arguments: Any, **keywords: Any) -> None:
        act(source.path)
        real(self, source, *arguments, **keywords)

    patch.setattr(RecordFile, "__init__", open_file)


def before_storage_calls(patch: pytest.MonkeyPatch, act: Callable[[], None]) -> None:
    """Call `act` before each call of a reader to its storage: look-ups, listings, and the opening of a file."""
    acting = False

    def acted() -> None:
        nonlocal acting
        if not acting:  # what `act` does calls the storage, too
            acting = True
            try:
                act()
            finally:
                acting = False

    def interpose(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def call(*arguments: Any, **keywords: Any) -> Any:
            acted()
            return real(*arguments, **keywords)

        patch.setattr(owner, name, call)

    for filesystem in (LocalFileSystem, FsspecFileSystem):
        for name in ("entry", "entries", "listing", "glob", "pages_below"):
            interpose(filesystem, name)
    for name in ("open", "open_ranges"):
        interpose(Source, name)
    interpose(source, "read_manifest")
    interpose(manifest, "read_manifest")
