"""Directories of stores, and pairs of them, from and to which files are copied."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.fs
import pytest

import tfrecord_io as tfr
from rounds import COMPLETE
from servers import Bucket
from transfers import transfer

TABLE = pa.table(
    {"x": range(1000), "day": [at % 3 for at in range(1000)], "text": ["a" * (at % 50) for at in range(1000)]}
)


STORES = ["disk", "s3", "gcs", "azure"]


# Otherwise: within each store, from and to the disk, and between two stores; tests/laws/test_copy_laws.py has others.
SOME = [*((store, store) for store in STORES), ("disk", "s3"), ("s3", "disk"), ("s3", "gcs"), ("azure", "s3")]


PAIRS = [(a, b) for a in STORES for b in STORES if {"gcs", "azure"} != {a, b}] if COMPLETE else SOME


class Store:
    """A directory of a store, and the options of paths in it."""

    def __init__(self, root: str, options: dict[str, Any] | None) -> None:
        self.root, self.options = root, options

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, table: pa.Table = TABLE, **keywords: Any) -> str:
        if self.options is None:
            os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        tfr.write_tfrecord(table, self.path(name), storage_options=self.options, **keywords)
        return self.path(name)

    def read(self, name: str) -> pa.Table:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return tfr.read_table(self.path(name), storage_options=self.options)

    def files(self, name: str) -> dict[str, bytes]:
        """The content of all files below a directory."""
        import fsspec

        fs, root = fsspec.core.url_to_fs(self.path(name), **(self.options or {}))
        fs.invalidate_cache()
        root = root.rstrip("/")
        return {found[len(root) + 1 :]: fs.cat_file(found) for found in fs.find(root)} if fs.exists(root) else {}


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return _store(request, request.param, tmp_path)


def _store(request: pytest.FixtureRequest, kind: str, tmp_path: Path) -> Store:
    if kind == "disk":
        return Store(str(tmp_path), None)
    bucket: Bucket = request.getfixturevalue(kind)
    return Store(bucket.url("root"), bucket.storage_options)


def copied(source: Store, name: str, target: Store, to: str, **keywords: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path, options = transfer(source.path(name), source.options, target.options)
        return tfr.copy(path, target.path(to), **options, **keywords)


def data(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.startswith("_MANIFEST")}


@pytest.fixture(params=PAIRS, ids=lambda pair: "-".join(pair))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Store]:
    return _store(request, request.param[0], tmp_path), _store(request, request.param[1], tmp_path)
