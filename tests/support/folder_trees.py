"""Folders: what is in one, several by kind, and one on disk or in memory as a fixture for tests that resolve paths."""

from pathlib import Path
from typing import Any

import fsspec
import pytest

from tfrecord_io.store.paths.resolve import resolve_inputs


def content(folder: Path) -> dict[str, bytes]:
    """The bytes of each file below a folder, by its path there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class FoldersByKind(dict[Any, Any]):
    """The folder, or the files, of each kind, which Hypothesis does not print with its examples."""

    def __repr__(self) -> str:
        return "…"


class FolderTree:
    """A folder on disk or in memory, for the same relative paths."""

    def __init__(self, root, fs):
        self.root, self.fs = root, fs

    def make(self, *names):
        for name in names:
            path = f"{self.root}/{name}"
            self.fs.makedirs(path.rpartition("/")[0], exist_ok=True)
            self.fs.pipe_file(path, name.encode())

    def found(self, path, **kwargs):
        sources = resolve_inputs(f"{self.root}/{path}" if isinstance(path, str) else path, **kwargs)
        return [s.path.removeprefix(f"{self.root}/") for s in sources]


@pytest.fixture(params=["local", "memory"])
def tree(request, tmp_path):
    if request.param == "local":
        yield FolderTree(str(tmp_path), fsspec.filesystem("file"))
    else:
        fs = fsspec.filesystem("memory")
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]
        yield FolderTree("memory:///top", fs)
        fs.store.clear()
        fs.pseudo_dirs[:] = [""]


def shards(base, count, suffix=""):
    return [f"{base}-{i:05d}-of-{count:05d}{suffix}" for i in range(count)]
