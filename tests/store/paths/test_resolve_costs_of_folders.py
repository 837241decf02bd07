"""What opening a dataset with many folders takes: work in proportion to them, and a fixed number of requests."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import nullcontext, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from counted_calls import calls
from reading import read_by
from records import framed
from rounds import COMPLETE, IN_A_BUCKET
from servers import Bucket, s3_bucket
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.columns.schema.embedded import embedded_schema, pack
from tfrecord_io.store.filesystem import remote
from tfrecord_io.store.filesystem.interface import Entry
from tfrecord_io.store.filesystem.locate import Location
from tfrecord_io.store.filesystem.remote import FsspecFileSystem
from tfrecord_io.store.paths import manifest_files
from tfrecord_io.store.paths.manifest import Manifest, format_manifest
from tfrecord_io.store.paths.path_search import list_directory
from tfrecord_io.store.read.source import ManifestFile
from tfrecord_io.store.write.commit_place import version_of

ID = "0123456789abcdef"
CONTENT = framed(tfr.encode_example({"x": 1}))


def make(root: Path, folders: int) -> str:
    """A dataset with a shard in each of its folders, as a writer leaves it."""
    crc32c = get_engine().crc32c(CONTENT)
    files = []
    for day in range(folders):
        path = f"day={day}/part-00000-{ID}.tfrecord"
        (root / f"day={day}").mkdir(parents=True)
        (root / path).write_bytes(CONTENT)
        files.append(ManifestFile(path, 1, len(CONTENT), crc32c))
    types = pack(embedded_schema(pa.schema({"day": pa.int64()})), {})
    manifest = Manifest("part", ID, tuple(files), partition_by=("day",), partition_schema=types)
    (root / "_MANIFEST.json").write_bytes(format_manifest(manifest))
    return f"{root}/"


FEW = 100 if COMPLETE else 50
USES: dict[str, tuple[int, Callable[[str], Any]]] = {
    "dataset": (1000 if COMPLETE else FEW, tfr.dataset),
    "count": (1000 if COMPLETE else FEW, tfr.count),
    "filter": (FEW, lambda path: tfr.read_table(path, filters=[("day", "==", 7)])),
    "pickle": (FEW, lambda path: tfr.dataset(path).__reduce__()),
    "open_random": (FEW, lambda path: tfr.open_random(path).close()),
    "salvage": (FEW, lambda path: tfr.salvage(path, f"{path}/../salvaged/", dry_run=True)),
    "verify": (FEW, lambda path: tfr.verify(tfr.dataset(path, threads=1))),
}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    root = tmp_path_factory.mktemp("datasets")
    return {folders: make(root / str(folders), folders) for folders in (FEW, 10 * FEW, *([10_000] if COMPLETE else []))}


@pytest.mark.parametrize("use", USES)
def test_work_is_in_proportion_to_the_folders(datasets: dict[int, str], use: str) -> None:
    count, act = USES[use]
    few, many = datasets[count], datasets[10 * count]
    act(few)  # what is imported and cached
    # Which thread takes a task changes the calls of a run by a few percent.
    most = 11 * max(calls(lambda: act(few)) for _ in range(2))
    assert any(calls(lambda: act(many)) < most for _ in range(2))


ON_DAY_7 = [("day", "==", 7)]
REQUESTS: dict[str, tuple[int, int, Callable[..., Any]]] = {  # the most, and how many of each file
    "dataset": (2, 0, tfr.dataset),  # a listing and the manifest
    "count": (2, 0, tfr.count),
    "count_rows": (2, 0, lambda path, **storage: tfr.dataset(path, **storage).count_rows()),
    "filter by folder": (2, 0, lambda path, **storage: read_by(tfr.read_table, path, filters=ON_DAY_7, **storage)),
    "filtered dataset": (2, 0, lambda path, **storage: tfr.dataset(path, **storage).filter(ON_DAY_7).to_table()),
    # The manifest is read again with the last of all files.
    "read_table": (3, 1, tfr.read_table),
    "iter_arrays": (3, 1, lambda path, **storage: list(read_by(tfr.iter_arrays, path, batch_size=9, **storage))),
    "verify": (3, 1, tfr.verify),
    "open_random": (2, 1, tfr.open_random),
}


@pytest.fixture(scope="module")
def of_folders(s3_endpoint: str) -> Bucket:
    """A bucket with a dataset of 10 folders and one of 40."""
    bucket = s3_bucket(s3_endpoint)
    for folders in (10, 40):
        table = {"x": np.arange(folders), "day": np.arange(folders)}
        target = bucket.url(f"{folders}/")
        tfr.write_tfrecord(table, target, partition_by=["day"], storage_options=bucket.storage_options)
    return bucket


@pytest.mark.matrix
@pytest.mark.parametrize("use", REQUESTS)
@pytest.mark.parametrize("slash", ["/", ""])
def test_requests_but_for_the_content_do_not_depend_on_the_folders(
    of_folders: Bucket, counted: tuple[Counter[str], Counter[str]], use: str, slash: str
) -> None:
    """Each file of the dataset, and whether it has an index, is known by one listing."""
    most, of_file, act = REQUESTS[use]
    counts, of_data = counted
    storage: dict[str, Any] = {"storage_options": of_folders.storage_options}
    found = []
    for folders in (10, 40):
        counts.clear()
        of_data.clear()
        act(of_folders.url(f"{folders}{slash}"), **storage)
        found.append(counts.total())
        assert of_data.total() == (folders * of_file or int("filter" in use))
    assert found[0] == found[1] <= most + (not slash)  # without it, one more shows that it is not a file


NAMES = ["", "A=1/a.tfrecord", "_MANIFEST.json", "a.tfrecord", "b.csv", "z.tfrecord", "/d.tfrecord"]
NAMES += ["p=1/", "p=1/a.tfrecord", "p=1/q=2/b.tfrecord", "p=1/other/c.tfrecord", "p=2/a.tfrecord"]
NAMES += ["other/p=1/a.tfrecord", "other/z.tfrecord"]


@given(names=st.sets(st.sampled_from(NAMES)), most=st.integers(1, 4))
@settings(suppress_health_check=IN_A_BUCKET)
@pytest.mark.parametrize("store", ["s3", "gcs"])
def test_pages_of_a_bucket_have_what_its_folders_have(
    request: pytest.FixtureRequest, store: str, names: set[str], most: int
) -> None:
    """Whatever the pages begin and end with, and where the folders of columns are."""
    bucket = request.getfixturevalue(store)
    path = bucket.url(f"{uuid.uuid4().hex}/")
    fs, directory = Location.of(path, StorageOptions(bucket.storage_options))
    for name in names:
        bucket.fs.pipe_file(path + name, b"x")

    def listed() -> list[Entry] | None:
        with suppress(FileNotFoundError):
            return list_directory(fs, directory)
        return None

    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr(remote, "PAGE_FILES", most)
        found = listed()
        monkey.setattr(FsspecFileSystem, "pages_below", lambda self, directory: iter(()))
        expected = listed()
    if found is None or expected is None:
        assert found is expected
        return
    assert sorted(found, key=attrgetter("name")) == sorted(expected, key=attrgetter("name"))
    described = {entry.name: version_of(entry) for entry in expected if not entry.directory}
    assert {entry.name: version_of(entry) for entry in found if not entry.directory} == described


@pytest.mark.parametrize("folders", [3, 5, 11])
def test_pages_of_a_bucket_are_the_requests(
    s3: Bucket, counted: tuple[Counter[str], Counter[str]], monkeypatch: pytest.MonkeyPatch, folders: int
) -> None:
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": range(folders), "day": range(folders)}, s3.url("d/"), partition_by=["day"], **storage)
    monkeypatch.setattr(remote, "PAGE_FILES", 4)
    counts, _ = counted
    counts.clear()
    assert tfr.count(s3.url("d/"), **storage) == folders
    assert counts == {"list_objects_v2": -(-(folders + 1) // 4), "get_object": 1}


@pytest.mark.parametrize("folders", [6, 25])
def test_a_large_dataset_in_a_bucket_is_not_listed(
    s3: Bucket, counted: tuple[Counter[str], Counter[str]], monkeypatch: pytest.MonkeyPatch, folders: int
) -> None:
    """Requests for a page, which has the names of all manifests, and each file that is read."""
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": range(folders), "day": range(folders)}, s3.url("d/"), partition_by=["day"], **storage)
    expected = tfr.read_table(s3.url("d/"), **storage)
    monkeypatch.setattr(remote, "PAGE_FILES", 4)
    monkeypatch.setattr(manifest_files.SIZES, "many", 3)
    monkeypatch.setattr(manifest_files.SIZES, "large_bytes", 0)
    counts, of_data = counted
    for call, rows, lists, read in (
        (lambda: tfr.count(s3.url("d/"), **storage), folders, 1, 0),
        # An index of the file is looked for, which has its values.
        (lambda: tfr.read_table(s3.url("d/"), filters="day = 2", **storage).num_rows, 1, 2, 1),
        (lambda: tfr.read_table(s3.url("d/"), **storage).num_rows, folders, 1, folders),
    ):
        counts.clear()
        of_data.clear()
        assert call() == rows
        assert (counts["list_objects_v2"], of_data) == (lists, {"get_object": read} if read else {})
    assert tfr.read_table(s3.url("d/"), **storage) == expected
    tfr.write_tfrecord({"x": [8, 9]}, s3.url("d/train@2"), **storage)
    assert tfr.count(s3.url("d/"), **storage) == folders + 2  # another manifest is there: all files are listed


@pytest.mark.parametrize("allowed", [True, False])
def test_a_policy_may_allow_the_listing_of_folders_alone(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    from aiobotocore.client import AioBaseClient
    from botocore.exceptions import ClientError

    tfr.write_tfrecord({"x": [1, 2]}, s3.url("d/train@2"), storage_options=s3.storage_options)
    real = AioBaseClient._make_api_call

    async def refused(self: Any, operation: str, parameters: dict[str, Any]) -> Any:
        if operation == "ListObjectsV2" and not (allowed and parameters.get("Delimiter")):
            raise ClientError({"Error": {"Code": "AccessDenied", "Message": "Access Denied"}}, operation)
        return await real(self, operation, parameters)

    monkeypatch.setattr(AioBaseClient, "_make_api_call", refused)
    with nullcontext() if allowed else pytest.raises(PermissionError):
        assert tfr.count(s3.url("d/"), storage_options=s3.storage_options) == 2


PATHS = {  # the requests, with that for the manifest
    "d/": 2,
    "d": 3,
    "d/*": 2,
    "d/train-*": 3,
    "d/train-0000?-of-*": 3,
    "?/train-*": 7,  # one level more, which may be a directory of this name; each glob lists again
    "d/train@4": 4,
    "d/train": 5,
    "d/train-00001-of-00004": 2,
}


@pytest.mark.parametrize("path", PATHS)
def test_requests_of_each_form_of_a_path(s3: Bucket, counted: tuple[Counter[str], Counter[str]], path: str) -> None:
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    table = pa.table({"x": range(40)})
    tfr.write_tfrecord(table, s3.url("d/train@4"), **storage)
    counts, of_data = counted
    counts.clear()
    of_data.clear()
    assert read_by(tfr.count, s3.url(path), **storage) == (10 if "00001" in path else 40)
    assert counts.total() + of_data.total() <= PATHS[path], counts


@pytest.mark.parametrize("name", ["a*", "a?b", "a[b]", "*"])
def test_names_of_patterns_are_looked_for_first(s3: Bucket, name: str) -> None:
    """A file, a directory and a dataset of exactly this name, beside others that it matches as a pattern."""
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    for below, value in (("", 1), ("in/", 2)):
        path = below + name
        tfr.write_tfrecord({"x": [0]}, s3.url(f"{below}axb"), **storage)
        tfr.write_tfrecord({"x": [0]}, s3.url(f"{below}ab.tfrecord"), **storage)
        if below:
            s3.fs.pipe(s3.url(f"{path}/part.tfrecord"), framed(tfr.encode_example({"x": value})))
        else:
            s3.fs.pipe(s3.url(path), framed(tfr.encode_example({"x": value})))
        assert read_by(tfr.read_table, s3.url(path), **storage)["x"].to_pylist() == [value]
    tfr.write_tfrecord({"x": [3, 3]}, s3.url(f"set/{name}@*"), max_shard_bytes=1, **storage)
    tfr.write_tfrecord({"x": [0]}, s3.url("set/axb-00000-of-00001"), **storage)
    assert read_by(tfr.read_table, s3.url(f"set/{name}"), **storage)["x"].to_pylist() == [3, 3]


@pytest.fixture
def counted(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> tuple[Counter[str], Counter[str]]:
    """The requests, those for files with records apart."""
    counts: Counter[str] = Counter()
    of_data: Counter[str] = Counter()
    client = type(s3.fs)
    real = client._call_s3

    async def counted(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        key = str(keywords.get("Key", ""))
        (of_data if key.endswith(".tfrecord") else counts)[method] += 1
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(client, "_call_s3", counted)
    return counts, of_data
