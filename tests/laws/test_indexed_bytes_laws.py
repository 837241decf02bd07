"""With a column index, the bytes of the matching records and the index are read; a filesystem counts them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import matching_records_only, small_index_groups
from rounds import rounds

f = pc.field
ROWS, PAD = 200, 20_000
FRAME = PAD + 300  # at most, but for the first record, which has the schema
FINGERPRINT = 100  # checksums of some records of a file, which are compared with those that its index states
SCHEMA = {"x": "int64", "n": "int64", "pad": "bytes"}


class CountedFiles(MemoryFileSystem):
    """Files in memory, with an ETag as in a bucket; `read` counts the bytes that are read of each."""

    protocol = "counted"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    read: ClassVar[dict[str, int]] = {}

    def info(self, path: str, **keywords: Any) -> dict[str, Any]:
        return self._tagged(super().info(path, **keywords))

    def ls(self, path: str, detail: bool = True, **keywords: Any) -> Any:
        found = super().ls(path, detail, **keywords)
        return list(map(self._tagged, found)) if detail else found

    def find(self, path: str, *arguments: Any, detail: bool = False, **keywords: Any) -> Any:
        found = super().find(path, *arguments, detail=detail, **keywords)
        return {name: self._tagged(info) for name, info in found.items()} if detail else found

    def _tagged(self, info: dict[str, Any]) -> dict[str, Any]:
        file = self.store.get(info["name"])
        return info if file is None else {**info, "ETag": hashlib.md5(file.getvalue()).hexdigest()}

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **keywords: Any) -> bytes:
        content: bytes = super().cat_file(path, start, end, **keywords)
        self.count(path, len(content))
        return content

    def count(self, path: str, size: int) -> None:
        name = path.rpartition("/")[2]
        self.read[name] = self.read.get(name, 0) + size

    def _open(self, path: str, mode: str = "rb", **keywords: Any) -> Any:
        file = super()._open(path, mode, **keywords)
        if mode != "rb":
            return file
        return _CountedFile(self, path, file)


class _CountedFile:
    def __init__(self, files: CountedFiles, path: str, file: Any) -> None:
        self._files, self._path, self._file = files, path, file

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._file.read(size)
        self._files.count(self._path, len(content))
        return content

    def readinto(self, buffer: Any) -> int:
        count: int = self._file.readinto(buffer)
        self._files.count(self._path, count)
        return count

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exception: object) -> None:
        self._file.close()


@pytest.fixture(scope="module")
def files() -> Iterator[CountedFiles]:
    """Two files with an index of `n`, which has a record of each number twice in 100."""
    found = CountedFiles()
    for at, name in enumerate(["a.tfrecord", "b.tfrecord"]):
        x = np.arange(at * ROWS, (at + 1) * ROWS)
        tfr.write_tfrecord({"x": x, "n": x % 50, "pad": [bytes(PAD)] * ROWS}, f"/{name}", filesystem=found)
    with matching_records_only(), small_index_groups():
        tfr.build_index(tfr.dataset("/*.tfrecord", filesystem=found), columns=["n"])
        yield found


def records(bounds: tuple[int, int], numbers: list[int], offset: int) -> list[int]:
    """The records that have one of the numbers, of those in the bounds and behind the offset."""
    return [x for x in range(*bounds) if x % 50 in numbers and x >= offset]


def read_table(files: CountedFiles, **options: Any) -> Callable[[], list[int]]:
    reader = read_by(tfr.open_reader, "/*.tfrecord", filesystem=files, **options)
    return lambda: reader.read_all()["x"].to_pylist()


def iter_arrays(files: CountedFiles, **options: Any) -> Callable[[], list[int]]:
    batches = read_by(tfr.iter_arrays, "/*.tfrecord", batch_size=3, filesystem=files, **options)
    return lambda: [x for batch in batches for x in batch["x"].tolist()]


def resumed(files: CountedFiles, **options: Any) -> Callable[[], list[int]]:
    """A resumed iterator."""
    batches = read_by(tfr.iter_arrays, "/*.tfrecord", batch_size=1, filesystem=files, **options)
    first = next(batches, None)
    state = batches.state()
    batches.close()
    rest = read_by(tfr.iter_arrays, "/*.tfrecord", batch_size=1, filesystem=files, state=state, **options)
    return lambda: [x for batch in ([] if first is None else [first, *rest]) for x in batch["x"].tolist()]


def test_a_read_without_a_filter_reads_nearly_all_bytes(files: CountedFiles) -> None:
    for call in (read_table, iter_arrays):
        read = call(files)
        files.read.clear()
        assert read() == list(range(2 * ROWS))
        assert all(files.read[name] > 0.9 * files.size(f"/{name}") for name in ("a.tfrecord", "b.tfrecord"))


@settings(max_examples=rounds(60))
@given(
    numbers=st.lists(st.integers(0, 60), max_size=3),
    offset=st.sampled_from([0, 0, 1, 130, 200, 333, 400, 500]),
    embedded=st.booleans(),
    call=st.sampled_from([read_table, iter_arrays, resumed]),
)
def test_readers(
    files: CountedFiles, numbers: list[int], offset: int, embedded: bool, call: Callable[..., Callable[[], list[int]]]
) -> None:
    options: dict[str, Any] = {
        "filters": f("n").isin(numbers),
        "offset": offset,
        "schema": None if embedded else SCHEMA,
    }
    read = call(files, **options)
    files.read.clear()
    expected = records((0, 2 * ROWS), numbers, offset)
    assert read() == expected
    for at, name in enumerate(["a.tfrecord", "b.tfrecord"]):
        bounds = at * ROWS, (at + 1) * ROWS
        matching = len(records(bounds, numbers, offset)) + (embedded and offset <= bounds[0])
        assert files.read.get(name, 0) <= matching * FRAME + 2000
        assert files.read.get(f"{name}.column_index", 0) <= files.size(f"/{name}.column_index")


@settings(max_examples=rounds(40))
@given(
    numbers=st.lists(st.integers(0, 60), max_size=3),
    pieces=st.integers(1, 7),
    embedded=st.booleans(),
    one=st.booleans(),
)
def test_pieces(files: CountedFiles, numbers: list[int], pieces: int, embedded: bool, one: bool) -> None:
    path, rows = ("/a.tfrecord", ROWS) if one else ("/*.tfrecord", 2 * ROWS)
    dataset = tfr.dataset(path, filesystem=files, schema=None if embedded else SCHEMA).filter(f("n").isin(numbers))
    parts = dataset.pieces(pieces)
    assert len(parts) == pieces
    got: list[int] = []
    for part in parts:
        files.read.clear()
        found = part.read()["x"].to_pylist()
        got += found
        read = sum(files.read.get(name, 0) for name in ("a.tfrecord", "b.tfrecord"))
        assert read <= (len(found) + 2) * FRAME + 2 * FINGERPRINT
    assert got == records((0, rows), numbers, 0)
