"""What opening a dataset with many folders takes: work in proportion to them, and a fixed number of requests."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import framed
from servers import Bucket
from tfrecord_io.engine.select import get_engine
from tfrecord_io.schema.embedded import embedded_schema, pack
from tfrecord_io.storage.paths.manifest import Manifest, ManifestFile, format_manifest

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


def calls(act: Callable[[], Any]) -> int:
    """How many functions are called."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(note)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count


USES: dict[str, tuple[int, Callable[[str], Any]]] = {
    "dataset": (1000, tfr.dataset),
    "count": (1000, tfr.count),
    "filter": (100, lambda path: tfr.read_table(path, filters=[("day", "==", 7)])),
    "pickle": (100, lambda path: tfr.dataset(path).__reduce__()),
    "open_random": (100, lambda path: tfr.open_random(path).close()),
    "salvage": (100, lambda path: tfr.salvage(path, f"{path}/../salvaged/", dry_run=True)),
    "verify": (100, lambda path: tfr.verify(path, threads=1)),
}


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[int, str]:
    root = tmp_path_factory.mktemp("datasets")
    return {folders: make(root / str(folders), folders) for folders in (100, 1000, 10_000)}


@pytest.mark.parametrize("use", USES)
def test_work_is_in_proportion_to_the_folders(datasets: dict[int, str], use: str) -> None:
    count, act = USES[use]
    few, many = datasets[count], datasets[10 * count]
    act(few)  # what is imported and cached
    assert calls(lambda: act(many)) < 11 * calls(lambda: act(few))


ON_DAY_7 = [("day", "==", 7)]
REQUESTS: dict[str, tuple[int, int, Callable[..., Any]]] = {  # the most, and how many of each file
    "dataset": (3, 0, tfr.dataset),  # two listings and the manifest
    "count": (3, 0, tfr.count),
    "count_rows": (3, 0, lambda path, **storage: tfr.dataset(path, **storage).count_rows()),
    "filter by folder": (3, 0, lambda path, **storage: tfr.read_table(path, filters=ON_DAY_7, **storage)),
    "filtered dataset": (3, 0, lambda path, **storage: tfr.dataset(path, **storage).filter(ON_DAY_7).to_table()),
    # The manifest is read again with the last of all files.
    "read_table": (4, 1, tfr.read_table),
    "iter_arrays": (4, 1, lambda path, **storage: list(tfr.iter_arrays(path, batch_size=9, **storage))),
    "verify": (4, 1, tfr.verify),
    "open_random": (3, 1, tfr.open_random),
}


@pytest.mark.parametrize("use", REQUESTS)
def test_requests_but_for_the_content_do_not_depend_on_the_folders(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch, use: str
) -> None:
    """Each file of the dataset, and whether it has an index, is known by one listing."""
    most, of_file, act = REQUESTS[use]
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    for folders in (10, 40):
        table = {"x": np.arange(folders), "day": np.arange(folders)}
        tfr.write_tfrecord(table, s3.url(f"{folders}/"), partition_by=["day"], **storage)
    counts: Counter[str] = Counter()
    of_data: Counter[str] = Counter()
    client = type(s3.fs)
    real = client._call_s3

    async def counted(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        key = str(keywords.get("Key", ""))
        (of_data if key.endswith(".tfrecord") else counts)[method] += 1
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(client, "_call_s3", counted)
    found = []
    for folders in (10, 40):
        counts.clear()
        of_data.clear()
        act(s3.url(f"{folders}/"), **storage)
        found.append(counts.total())
        assert of_data.total() == (folders * of_file or int("filter" in use))
    assert found[0] == found[1] <= most
