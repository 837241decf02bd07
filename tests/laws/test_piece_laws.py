"""Pieces of a dataset: their rows, joined, are those of the whole, whatever files hold and wherever they are split."""

from __future__ import annotations

import pickle
import tempfile
import tracemalloc
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from records import framed
from rounds import rounds
from tfrecord_io.read import find_boundaries

SCHEMA = pa.schema({"n": pa.int64(), "blob": pa.binary()})
inner = st.lists(st.binary(max_size=30), max_size=40).map(lambda payloads: framed(*payloads))
blobs = st.binary(max_size=50) | st.integers(0, 2000).map(bytes) | inner | inner.map(lambda content: content[:-4])
files = st.lists(blobs, max_size=40)
SUFFIXES = [".tfrecord", ".tfrecord", ".tfrecord.gz", ".tfrecord.zst"]


def written(folder: Path, contents: list[list[bytes]], suffixes: list[str], embed: bool) -> Path:
    """Files of records that are numbered through."""
    first = 0
    for at, (content, suffix) in enumerate(zip(contents, suffixes, strict=False)):
        rows = pa.table({"n": range(first, first + len(content)), "blob": content}, SCHEMA)
        tfr.write_tfrecord(rows, folder / f"{at:02}{suffix}", embed_schema=embed)
        first += len(content)
    return folder


def read(pieces: Sequence[Any]) -> pa.Table:
    """The rows of pieces, each in a process of its own as far as it knows."""
    return pa.concat_tables([pickle.loads(pickle.dumps(piece)).read() for piece in pieces])


@settings(max_examples=rounds(60))
@given(
    contents=st.lists(files, min_size=1, max_size=5),
    suffixes=st.lists(st.sampled_from(SUFFIXES), min_size=5, max_size=5),
    n=st.integers(1, 30),
    sizes=st.booleans(),
    least=st.none() | st.integers(0, 200),
    embed=st.booleans(),
)
def test_pieces_joined_are_the_whole(
    contents: list[list[bytes]], suffixes: list[str], n: int, sizes: bool, least: int | None, embed: bool
) -> None:
    """So many pieces, or pieces of a size, at most."""
    with tempfile.TemporaryDirectory() as folder:
        dataset = tfr.dataset(written(Path(folder), contents, suffixes, embed), schema=SCHEMA)
        dataset = dataset if least is None else dataset.filter(pc.field("n") >= least)
        size = dataset.bytes or 0
        pieces = dataset.pieces(max_bytes=max(1, size // n)) if sizes else dataset.pieces(n)
        assert 1 <= len(pieces) <= max(1, -(-size // max(1, size // n)) if sizes else n)
        assert sum(piece.bytes or 0 for piece in pieces) == size
        assert read(pieces).equals(dataset.to_table())
        assert sum(piece.count_rows() for piece in pieces) == dataset.count_rows()


@settings(max_examples=rounds(60))
@given(
    contents=st.lists(st.lists(blobs, min_size=1, max_size=40), min_size=1, max_size=3),
    n=st.integers(1, 12),
    chain=st.sampled_from([60, 1000, 16 << 20]),
    data=st.data(),
)
def test_damage_is_found_by_one_of_the_pieces(
    contents: list[list[bytes]], n: int, chain: int, data: st.DataObject
) -> None:
    """No record is lost or read twice in silence, however little proves a boundary; an intact one is in one piece."""
    with tempfile.TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(find_boundaries, "_CHAIN_BYTES", (chain, chain))
        folder = written(Path(name), contents, [".tfrecord"] * 3, embed=False)
        intact = tfr.read_table(folder, schema=SCHEMA)
        path = data.draw(st.sampled_from(sorted(folder.iterdir())))
        content = bytearray(path.read_bytes())
        for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=2, unique=True)):
            content[at] ^= 1
        is_damaged = content != path.read_bytes()
        path.write_bytes(content)
        numbers: list[int] = []
        errors: list[Exception] = []
        for piece in tfr.dataset(folder, schema=SCHEMA).pieces(n):
            try:
                for batch in piece.to_batches():
                    numbers += batch["n"].to_pylist()
            except tfr.TFRecordError as error:
                errors.append(error)
        if not errors:
            assert not is_damaged
            assert numbers == intact["n"].to_pylist()
        elif chain > 1000:
            assert is_damaged
            assert numbers == sorted(set(numbers))


@settings(max_examples=rounds(40))
@given(contents=st.lists(files, min_size=1, max_size=3), n=st.integers(1, 12), data=st.data())
def test_skipping_damage_leaves_the_same_rows(contents: list[list[bytes]], n: int, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        folder = written(Path(name), contents, [".tfrecord"] * 3, embed=False)
        path = data.draw(st.sampled_from(sorted(folder.iterdir())))
        content = bytearray(path.read_bytes())
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] ^= 1
            path.write_bytes(content)
        dataset = tfr.dataset(folder, schema=SCHEMA, on_error="skip")
        assert read(dataset.pieces(n))["n"].to_pylist() == dataset.to_table()["n"].to_pylist()


def test_a_million_pieces_in_16_mb(tmp_path: Path) -> None:
    """Each is made when it is taken."""
    path = tmp_path / "large.tfrecord"
    with path.open("wb") as file:
        file.truncate(40 << 30)  # takes no room
    dataset = tfr.dataset(path, schema=SCHEMA)
    dataset.pieces(2)
    tracemalloc.start()
    try:
        pieces = dataset.pieces(1_000_000)
        assert tracemalloc.get_traced_memory()[1] <= 16_000_000
    finally:
        tracemalloc.stop()
    assert len(pieces) == 1_000_000
    assert sum(piece.bytes or 0 for piece in pieces[-3:]) == 3 * 42950
    assert len(pickle.dumps(pieces)) < 4000


def test_pieces_are_passed_in_a_list(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3]}, tmp_path / "a.tfrecord")
    pieces = tfr.dataset(tmp_path / "a.tfrecord").pieces(2)
    assert repr(pieces) == "<2 pieces of a dataset>"
    assert tfr.read_table([*pieces])["n"].to_pylist() == [1, 2, 3]
    with pytest.raises(TypeError, match=r"a DatasetPiece is given alone, or in a list.*pass list\(…\)"):
        tfr.read_table(pieces)  # type: ignore[arg-type]


class WatchedFiles(MemoryFileSystem):
    """Files in memory; `calls` has what was asked of them."""

    protocol = "watched"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    cachable = False
    calls: ClassVar[list[str]] = []

    def info(self, path: str, **how: Any) -> Any:
        self.calls.append(f"info {path}")
        return super().info(path, **how)

    def ls(self, path: str, detail: bool = True, **how: Any) -> Any:
        self.calls.append(f"ls {path}")
        return super().ls(path, detail, **how)

    def _open(self, path: str, *how: Any, **more: Any) -> Any:
        self.calls.append(f"open {path}")
        return super()._open(path, *how, **more)

    def cat_file(self, path: str, *how: Any, **more: Any) -> Any:
        self.calls.append(f"cat {path}")
        return super().cat_file(path, *how, **more)


@pytest.mark.parametrize("shards", [1, 20, 500])
def test_splitting_takes_no_request(shards: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for one listing, to find column indexes, if there is a filter; nor do tasks look for an index again."""
    set_limits(monkeypatch, least_piece_bytes=1 << 20)  # all files are smaller
    found = WatchedFiles()
    found.store.clear()
    content = framed(*[tfr.encode_example({"n": [number]}) for number in range(20)])
    for at in range(shards):
        found.pipe_file(f"/d/{at:05}.tfrecord", content)
    dataset = tfr.dataset("/d", filesystem=found, schema={"n": "int64"})
    found.calls.clear()
    pieces = dataset.pieces(400)
    assert len(pieces) == 400
    assert found.calls == []
    filtered = dataset.filter(pc.field("n") < 2).pieces(400)
    assert len(found.calls) <= 20
    assert not any(call.startswith(("open", "cat")) for call in found.calls)
    some = slice(None) if shards < 100 else slice(3, 9)
    found.calls.clear()
    rows = [n for piece in pickle.loads(pickle.dumps(pieces[some])) for n in piece.read()["n"].to_pylist()]
    few = [n for piece in pickle.loads(pickle.dumps(filtered[some])) for n in piece.read()["n"].to_pylist()]
    assert few == [n for n in rows if n < 2]
    assert [call for call in found.calls if call.startswith("ls")] == []
    if shards < 100:
        assert rows == list(range(20)) * shards
