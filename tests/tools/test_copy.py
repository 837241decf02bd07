"""Copies of files and datasets: which bytes arrive, what is checked on the way, and what a failed copy leaves."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from servers import Bucket

TABLE = pa.table(
    {"x": range(1000), "day": [at % 3 for at in range(1000)], "text": ["a" * (at % 50) for at in range(1000)]}
)
STORES = ["disk", "s3", "gcs"]


class Store:
    """A directory of a store, and the options of paths in it."""

    def __init__(self, root: str, options: dict[str, Any] | None) -> None:
        self.root, self.options = root, options

    def path(self, name: str) -> str:
        return f"{self.root}/{name}"

    def write(self, name: str, table: pa.Table = TABLE, **keywords: Any) -> str:
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
    options = {"src_storage_options": source.options, "dst_storage_options": target.options}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return tfr.copy(source.path(name), target.path(to), **options, **keywords)


def data(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if not name.startswith("_MANIFEST")}


@pytest.fixture(params=[(a, b) for a in STORES for b in STORES], ids=lambda pair: "-".join(pair))
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Store]:
    return _store(request, request.param[0], tmp_path), _store(request, request.param[1], tmp_path)


FORMS: list[dict[str, Any]] = [
    {"name": "d/train@4", "write_index": True},
    {"name": "d/", "max_shard_bytes": 8000},
    {"name": "d/", "mode": "append", "compression": "gzip"},
    {"name": "d/", "partition_by": "day", "compression": "zstd"},
]


@pytest.mark.parametrize("form", FORMS, ids=["shards", "sizes", "append", "folders"])
def test_a_dataset_arrives_with_all_that_belongs_to_it(pair: tuple[Store, Store], form: dict[str, Any]) -> None:
    source, target = pair
    source.write(**form)
    report = copied(source, "d", target, "e")
    assert data(source.files("d")) == data(target.files("e"))
    assert set(source.files("d")) == set(target.files("e"))
    assert target.read("e").equals(source.read("d"))
    shards = [name for name in source.files("d") if not name.startswith("_") and not name.endswith(".index")]
    assert set(report.copied) == set(data(source.files("d")))
    assert report.bytes == sum(map(len, data(source.files("d")).values()))
    if source.options is None or source.options != target.options:
        assert report.records == len(TABLE)
    again = copied(source, "d", target, "e", update=True)
    assert (again.copied, again.kept, again.removed) == ((), len(shards), ())
    assert not tfr.verify(target.path("e"), storage_options=target.options).problem_lines()
    with pytest.raises(FileExistsError, match="update=True copies what differs"):
        copied(source, "d", target, "e")


@pytest.mark.parametrize("form", FORMS[:2] + FORMS[3:], ids=["shards", "sizes", "folders"])
def test_an_update_copies_what_differs_and_removes_what_is_gone(
    pair: tuple[Store, Store], form: dict[str, Any]
) -> None:
    source, target = pair
    source.write(**form)
    copied(source, "d", target, "e")
    for change in ({"mode": "append"} if form["name"].endswith("/") else {"overwrite": True}, {"overwrite": True}):
        keywords = {name: each for name, each in form.items() if name != "name"}
        source.write(form["name"], TABLE.slice(300), **{**keywords, **change})
        planned = copied(source, "d", target, "e", update=True, dry_run=True)
        before = target.files("e")
        report = copied(source, "d", target, "e", update=True)
        assert (planned.copied, planned.removed, planned.bytes) == (report.copied, report.removed, report.bytes)
        assert data(source.files("d")) == data(target.files("e"))
        assert target.read("e").equals(source.read("d"))
        assert set(report.removed) == set(data(before)) - set(data(target.files("e")))
        assert copied(source, "d", target, "e", update=True).copied == ()
