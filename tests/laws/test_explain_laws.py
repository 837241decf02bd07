"""`Dataset.explain` says what a read then does: which files it requests, in whole or in part, and how often."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import matching_records_only
from rounds import rounds
from servers import SlowBucket

PADDING = b"p" * 300
PARTS = [
    [("label", "==", 1)],
    [("label", "<", 2)],
    [("n", ">=", 0)],
    [("n", "==", 3)],
    [("n", ">", 90)],
    [("text", "==", "b")],
    [("label", "!=", 0), ("n", "<", 4)],
    [("text", "==", "a"), ("n", "==", 6), ("label", ">", 0)],
]
file = st.fixed_dictionaries(
    {
        "label": st.integers(0, 2),
        "rows": st.integers(1, 12),
        "index": st.none() | st.sampled_from([["n"], ["text"], ["n", "text"]]),
        "gzip": st.booleans(),
    }
)


class CountingBucket(SlowBucket):
    """Counts the requests for ranges of files, which can be listed."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__(files)
        self.requests: Counter[tuple[str, int | None, int | None]] = Counter()

    async def _info(self, path: str, **_: Any) -> dict[str, Any]:
        name = self._strip_protocol(path).rstrip("/")
        if any(file.startswith(f"{name}/") for file in self._files):
            return {"name": name, "size": 0, "type": "directory"}
        return await super()._info(path)

    async def _ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        below = f"{self._strip_protocol(path).rstrip('/')}/"
        names = sorted({below + n[len(below) :].partition("/")[0] for n in self._files if n.startswith(below)})
        infos = [await self._info(name) for name in names]
        return infos if detail else names

    async def _cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        self.requests[path, start, end] += 1
        return await super()._cat_file(path, start, end)

    def counted(self, call: Any) -> tuple[Any, Counter[tuple[str, int | None, int | None]]]:
        """The result of a call, and the requests that it made."""
        self.requests.clear()
        return call(), Counter(self.requests)


def bucket_of(files: list[dict[str, Any]], *, embed: bool) -> CountingBucket:
    """Files in folders of labels, some of them with a column index, below "data"."""
    with tempfile.TemporaryDirectory() as folder:
        for number, made in enumerate(files):
            suffix = ".gz" if made["gzip"] else ""
            path = Path(folder) / f"label={made['label']}" / f"{number}.tfrecord{suffix}"
            path.parent.mkdir(exist_ok=True)
            rows = range(made["rows"])
            table = pa.table(
                {
                    "n": pa.array(rows, pa.int64()),
                    "text": pa.array(["abc"[row % 3] for row in rows], pa.string()),
                    "pad": pa.array([PADDING for _ in rows], pa.binary()),
                }
            )
            tfr.write_tfrecord(table, path, embed_schema=embed)
            if made["index"] is not None and not made["gzip"]:
                tfr.build_index(path, columns=made["index"])
        found = [path for path in Path(folder).rglob("*") if path.is_file()]
        return CountingBucket({f"data/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in found})


@settings(max_examples=rounds(60), deadline=None)
@given(
    st.lists(file, min_size=1, max_size=5),
    st.lists(st.sampled_from(PARTS), max_size=2),
    st.none() | st.lists(st.sampled_from(["n", "text", "pad", "label"]), unique=True, min_size=1),
    st.booleans(),
    st.sampled_from(["raise", "skip"]),
)
def test_a_read_does_what_explain_says(
    files: list[dict[str, Any]], filters: list[Any], columns: list[str] | None, embed: bool, on_error: str
) -> None:
    bucket = bucket_of(files, embed=embed)
    schema = None if embed else {"n": "int64", "text": "string", "pad": "binary"}
    dataset = tfr.dataset("data", filesystem=bucket, schema=schema, on_error=on_error)
    for part in filters:
        dataset = dataset.filter(part)
    if columns is not None:
        dataset = dataset.select(columns)
    with matching_records_only():
        explained, planning = bucket.counted(dataset.explain)
        table, reading = bucket.counted(dataset.to_table)
    assert not planning - reading
    assert {file.path for file in explained.files} == set(dataset.files)
    requested = Counter[str]()
    received = Counter[str]()
    for (name, start, end), times in (reading - planning).items():
        path = f"slow://{name}"
        requested[path] += times
        received[path] += times * ((end or 0) - (start or 0))
    plans = {file.path: file for file in explained.files}
    size = {path: len(bucket._files[path.removeprefix("slow://")]) for path in plans}
    for path, plan in plans.items():
        if plan.read == "whole":
            assert received[path] == size[path]
        elif plan.read == "index":
            assert not requested[path]
        elif plan.read == "records":
            assert 0 < received[path] <= size[path]
            assert plan.records is not None
            assert plan.records > 0
        else:
            assert not requested[path]
            by_folders = plan.why != "column index"
            assert by_folders == (not any(f"slow://{name}".startswith(path) for name, *_ in planning + reading))
    assert requested.keys() <= plans.keys()
    least, most = explained.requests or (0, 0)
    assert least <= requested.total() <= most
    by_index = {path for path, plan in plans.items() if plan.why == "column index"}
    assert (explained.index == "used") == bool(by_index)
    assert {*(columns or ["n", "text", "pad"])} - {"label"} <= set(explained.columns)
    assert sum(plan.records or 0 for plan in explained.files if plan.read == "records") <= sum(f["rows"] for f in files)
    text = repr(explained)
    assert text.startswith(f"reads {sum(plan.read not in ('index', 'left out') for plan in plans.values())} of ")
    assert table.num_rows == len(dataset.to_pandas())
