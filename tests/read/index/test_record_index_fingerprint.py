"""An index is used next to the content that it was written for, wherever and whenever that was copied, and no other."""

from __future__ import annotations

import contextlib
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import matching_records_only
from rounds import rounds
from servers import Bucket
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.index import find_index, fingerprint
from tfrecord_io.store.read.random_access_file import RandomAccessFile, RemoteRandomAccessFile

SCHEMA = {"id": "string", "label": "int64", "pad": "bytes"}
Rows = list[tuple[int, int]]  # the label and the length of the pad of each


@st.composite
def contents(draw: st.DrawFn) -> tuple[Rows, list[int], Rows]:
    """Rows, and for another content of the same size the order of their ids, and rows."""
    rows = draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 5, 60])), min_size=1, max_size=40))
    ids = list(range(len(rows)))
    ids = draw(st.permutations(ids)) if draw(st.booleans()) else ids
    labels = draw(st.permutations([label for label, _ in rows]) | st.just([label for label, _ in rows]))
    pads = draw(st.permutations([pad for _, pad in rows]) | st.just([pad for _, pad in rows]))
    return rows, ids, list(zip(labels, pads, strict=True))


def content_of(folder: Path, ids: list[int], rows: Rows) -> bytes:
    path = folder / "written.tfrecord"
    columns = {"id": [f"{n:03}" for n in ids], "label": [a for a, _ in rows], "pad": [bytes(b) for _, b in rows]}
    tfr.write_tfrecord(pa.table(columns), path, embed_schema=False, mode="overwrite")
    return path.read_bytes()


@dataclass
class Place:
    """Where files are put, and how they are read."""

    url: str
    put: Callable[[str, bytes], None]
    options: dict[str, Any]


@contextlib.contextmanager
def on_disk() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield Place(f"{folder}/", lambda name, content: void(Path(folder, name).write_bytes(content)), {})


def in_bucket(s3: Bucket) -> Place:
    def put(name: str, content: bytes) -> None:
        s3.fs.pipe(f"{s3.name}/{name}", content)
        s3.fs.invalidate_cache()

    return Place(s3.url(), put, {"storage_options": s3.storage_options})


def void(_: object) -> None:
    return None


def put_with_index(place: Place, content: bytes, of: bytes, kinds: str, order: int) -> None:
    """A file next to the indexes of some content, which are written before it (-1), after it, or by it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.tfrecord")
        path.write_bytes(of)
        indexes = {}
        if "columns" in kinds:
            tfr.build_index(tfr.dataset(path, schema=SCHEMA), columns=["id", "label"])
            indexes["a.tfrecord.column_index"] = Path(f"{path}.column_index").read_bytes()
        if "offsets" in kinds:
            write_indexes(path)
            indexes["a.tfrecord.index"] = Path(f"{path}.index").read_bytes()
    files = [("a.tfrecord", content), *indexes.items()]
    for name, text in files[:: 1 if order >= 0 else -1]:
        place.put(name, text)
    if not place.options and order:
        stamp = 10**9 + order
        os.utime(f"{place.url}a.tfrecord", (10**9, 10**9))
        for name in indexes:
            os.utime(f"{place.url}{name}", (stamp, stamp))


CONDITIONS = [pc.field("label") == 1, (pc.field("label") >= 1) & (pc.field("id") < "020"), pc.field("id") == "005"]


def results(path: str, ids: list[str], condition: pc.Expression, options: dict[str, Any]) -> list[Any]:
    """What each way to read finds."""
    given: dict[str, Any] = {"schema": SCHEMA, **options}
    found: list[Any] = [read_by(tfr.read_table, path, filters=condition, **given).to_pylist()]
    with read_by(tfr.open_reader, path, filters=condition, batch_size=3, **given) as reader:
        found.append([row for batch in reader for row in batch.to_pylist()])
    dataset = tfr.dataset(path, **given)
    found += [dataset.filter(condition).to_table().to_pylist(), dataset.filter(condition).count_rows()]
    batches = read_by(tfr.iter_arrays, path, batch_size=4, filters=condition, columns=["id"], **given)
    found.append([name for batch in batches for name in batch["id"].tolist()])
    with read_by(tfr.open_random, path, key="id", **given) as records:
        found += [len(records), records[:].to_pylist(), [records.lookup(name) for name in ids]]
        chosen = records.select(condition)
        found += [chosen.numbers.tolist(), chosen.to_table().to_pylist(), [chosen[at] for at in range(len(chosen))]]
        found.append(records.lookup(ids[::-1]).to_pylist())
    with read_by(tfr.open_random, path, **given) as records:
        found.append(records[:].to_pylist())
    found.append(read_by(tfr.count, path, **options))
    return found


def check(place: Place, data: st.DataObject, kinds: str, order: int, *, same: bool, used: list[int]) -> None:
    rows, ids, others = data.draw(contents())
    with tempfile.TemporaryDirectory() as folder:
        old = content_of(Path(folder), list(range(len(rows))), rows)
        new = old if same else content_of(Path(folder), ids, others)
        assert len(old) == len(new)
        condition = data.draw(st.sampled_from(CONDITIONS))
        names = [f"{n:03}" for n in range(len(rows))]
        expected = results(f"{folder}/written.tfrecord", names, condition, {})
    put_with_index(place, new, old, kinds, order)
    del used[:]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert results(f"{place.url}a.tfrecord", names, condition, place.options) == expected
    stale = {str(warning.message) for warning in caught}
    assert all(issubclass(warning.category, tfr.errors.StaleIndexWarning) for warning in caught)
    assert not same or not caught, stale
    if "columns" in kinds:
        assert not used or old == new
        if find_index.SMALL_BYTES or expected[3] < len(rows):  # else all of the file is read, without an index
            assert bool(used) == (old == new)
        assert bool(stale) == (old != new)


WAYS = {
    "kinds": st.sampled_from(["columns", "offsets", "columns offsets"]),
    "order": st.sampled_from([-1, 0, 1]),
    "same": st.booleans(),
}


@pytest.mark.parametrize("small", [True, False])
def test_on_a_disk(small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files up to 256 KiB are compared wholly; of larger ones as many records as are written here."""
    for module in (fingerprint, find_index) if not small else ():
        monkeypatch.setattr(module, "SMALL_BYTES", 0)

    @settings(max_examples=rounds(60))
    @given(data=st.data(), **WAYS)
    def law(data: st.DataObject, kinds: str, order: int, same: bool) -> None:
        with on_disk() as place, matching_records_only() as used:
            check(place, data, kinds, order, same=same, used=used)

    law()


@pytest.mark.parametrize("small", [True, False])
def test_in_a_bucket(s3: Bucket, small: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (fingerprint, find_index) if not small else ():
        monkeypatch.setattr(module, "SMALL_BYTES", 0)
    for most in (fingerprint._SOME, find_index._HEADERS):
        monkeypatch.setitem(most, False, 64)

    @settings(max_examples=rounds(10, 5))
    @given(data=st.data(), **WAYS)
    def law(data: st.DataObject, kinds: str, order: int, same: bool) -> None:
        place = in_bucket(s3)
        for name in s3.names():
            s3.fs.rm(f"{s3.name}/{name}")
        with matching_records_only() as used:
            check(place, data, kinds, order, same=same, used=used)

    law()


@settings(max_examples=rounds(40))
@given(data=st.data(), index=st.booleans(), condition=st.sampled_from(CONDITIONS))
def test_a_file_whose_bytes_are_changed_in_place_while_it_is_open(
    data: st.DataObject, index: bool, condition: pc.Expression
) -> None:
    """A record that is found by a key has it, and one that an index found fulfils the condition."""
    rows, ids, others = data.draw(contents())
    others = [(label, pad) for (label, _), (_, pad) in zip(others, rows, strict=True)]  # records stay in their places
    with on_disk() as place, tempfile.TemporaryDirectory() as folder:
        old = content_of(Path(folder), list(range(len(rows))), rows)
        new = content_of(Path(folder), ids, others)
        put_with_index(place, old, old, "columns" if index else "", 0)
        names = [f"{n:03}" for n in range(len(rows))]
        columns = data.draw(st.sampled_from([["id", "label"], ["label"]]))
        path, keywords = f"{place.url}a.tfrecord", {"schema": SCHEMA, "columns": columns}
        with read_by(tfr.open_random, path, key="id", **keywords) as records, warnings.catch_warnings():
            warnings.simplefilter("ignore", tfr.errors.StaleIndexWarning)
            chosen = records.select(condition)
            with open(path, "r+b") as file:
                file.write(new)
            with read_by(tfr.open_random, f"{folder}/written.tfrecord", key="id", **keywords) as fresh:
                one = data.draw(st.booleans())
                found = [records.lookup(name) for name in names] if one else records.lookup(names).to_pylist()
                assert found == ([fresh.lookup(name) for name in names] if one else fresh.lookup(names).to_pylist())
                assert found == [records.get(name) for name in names]
                if index:  # without one, the condition has been applied to the records, and they have a number
                    assert all(row in fresh.select(condition).to_table().to_pylist() for row in chosen[:].to_pylist())


def test_one_record_of_a_large_file_is_changed_in_place(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    table = pa.table({"x": [*range(3000)], "pad": [bytes(1000)] * 3000})
    tfr.write_tfrecord(table, path, embed_schema=False)
    tfr.build_index(tfr.dataset(path, schema={"x": "int64"}), columns=["x"])
    changed = table.set_column(0, "x", pa.array([201 if x == 200 else x for x in range(3000)]))
    tfr.write_tfrecord(changed, tmp_path / "b.tfrecord", embed_schema=False)
    new = (tmp_path / "b.tfrecord").read_bytes()
    assert len(new) == path.stat().st_size
    with path.open("r+b") as file:
        file.write(new)
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the checksums of its records are others"):
        assert tfr.read_table(path, filters=pc.field("x") == 201, schema={"x": "int64"})["x"].to_pylist() == [201, 201]


def test_few_bytes_of_a_large_file_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    rows = {"id": [f"{n:05}" for n in range(5000)], "pad": [bytes(1000)] * 5000}
    tfr.write_tfrecord(rows, path, embed_schema=False)
    tfr.build_index(path, columns=["id"])
    os.utime(path, (1, 1))  # else nothing can have changed since its index was written
    read: list[int] = []
    original = RandomAccessFile.read_all

    def counted(file: Any, begins: Any, ends: Any, gap: int | None = None) -> Any:
        read.extend(end - begin for begin, end in zip(begins, ends, strict=True))
        return original(file, begins, ends, gap)

    monkeypatch.setattr(RandomAccessFile, "read_all", counted)
    with tfr.open_random(path):
        assert (len(read), sum(read)) == (64, 256)


def test_requests_of_an_index_in_a_bucket(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """None where the object has the tag that the index states; after an upload eight that are sent together."""
    requested: list[list[tuple[int, int]]] = []
    original = RemoteRandomAccessFile._read_spans

    def counted(file: Any, spans: list[tuple[int, int]]) -> Any:
        if file.path.endswith(".tfrecord"):
            requested.append(spans)
        return original(file, spans)

    rows = {"id": [f"{n:04}" for n in range(500)], "pad": [bytes(1000)] * 500}
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord(rows, s3.url("a.tfrecord"), embed_schema=False, **options)
    read_by(tfr.build_index, s3.url("a.tfrecord"), columns=["id"], **options)
    s3.fs.cp(f"{s3.name}/a.tfrecord", f"{s3.name}/b.tfrecord")
    s3.fs.pipe(f"{s3.name}/b.tfrecord.column_index", s3.fs.cat(f"{s3.name}/a.tfrecord.column_index"))
    monkeypatch.setattr(RemoteRandomAccessFile, "_read_spans", counted)
    schema = {"id": "string", "pad": "bytes"}
    for name, most in (("a", 0), ("b", 8)):
        if most:  # the server gives the same tag to the same content
            monkeypatch.setattr(find_index, "_is_tag", lambda version: False)
        requested.clear()
        dataset = tfr.dataset(s3.url(f"{name}.tfrecord"), schema=schema, **options)
        assert dataset.filter(pc.field("id") == "x").to_table().num_rows == 0
        spans = [span for group in requested for span in group]
        assert len(spans) == most
        assert sum(end - begin for begin, end in spans) == 4 * most


def test_an_index_without_a_fingerprint_is_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2]}, path)
    monkeypatch.setattr(fingerprint.Fingerprint, "to_json", lambda fingerprint: None)
    tfr.build_index(path, columns=["x"])
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the column index"):
        assert tfr.read_table(path, filters=pc.field("x") == 2)["x"].to_pylist() == [2]


def test_the_checksum_that_a_manifest_states(tmp_path: Path) -> None:
    """A shard whose other records were written again, by a copy of another version of the dataset."""
    for at, changed in enumerate([1, 2]):
        rows = {"x": [0, 1, changed] + [3] * 9, "pad": [bytes(60_000)] * 12}
        tfr.write_tfrecord(rows, tmp_path / f"{at}" / "a@1", embed_schema=False)
        tfr.build_index(tfr.dataset(tmp_path / f"{at}", schema={"x": "int64"}), columns=["x"])
    first, second = (next((tmp_path / f"{at}").glob("*.column_index")) for at in range(2))
    second.write_bytes(first.read_bytes())
    with pytest.warns(
        tfr.errors.StaleIndexWarning, match=r"manifest states the CRC32C [0-9a-f]{8}, the index [0-9a-f]{8}"
    ):
        table = tfr.read_table(tmp_path / "1", schema={"x": "int64"}, filters=pc.field("x") == 2)
    assert table["x"].to_pylist() == [2]


@given(st.integers(0, 10**9), st.integers(2, 64))
def test_some_records(count: int, most: int) -> None:
    chosen = fingerprint.some_records(count, most).tolist()
    assert chosen == sorted(set(chosen))
    assert len(chosen) == min(count, most)
    assert not count or (chosen[0], chosen[-1]) == (0, count - 1)


@pytest.mark.parametrize("schema", [True, False])
def test_a_record_that_an_index_finds_does_not_fulfil_the_filter(tmp_path: Path, schema: bool) -> None:
    """Few records of a large file are others, so that its fingerprint does not tell."""
    path, count = tmp_path / "a.tfrecord", 3000
    given: dict[str, Any] = {} if schema else {"schema": {"x": "int64", "pad": "bytes"}}
    for name, x in (("b", [*range(count)]), ("a", [201 if n == 200 else 200 if n == 201 else n for n in range(count)])):
        table = pa.table({"x": x, "pad": [bytes(1000)] * count})
        tfr.write_tfrecord(table, tmp_path / f"{name}.tfrecord", embed_schema=schema)
    tfr.build_index(tfr.dataset(tmp_path / "b.tfrecord", schema=given.get("schema")), columns=["x"])
    (tmp_path / "b.tfrecord.column_index").rename(f"{path}.column_index")
    os.utime(path, (1, 1))  # all records are compared with an older index
    for filters, expected in ((pc.field("x") == 200, [200]), (pc.field("x").isin([7, 200]), [7, 200])):
        for offset in (0, 3):
            with pytest.warns(tfr.errors.StaleIndexWarning, match="it names does not meet.* the index is not used"):
                table = read_by(tfr.read_table, path, filters=filters, offset=offset, **given)
            assert table["x"].to_pylist() == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_by(tfr.read_table, path, filters=pc.field("x") == 7, **given)["x"].to_pylist() == [7]


def test_one_record_of_a_large_object_is_changed(s3: Bucket) -> None:
    """The object has another checksum than the index states."""
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    for name, x in (("b", 200), ("a", 201)):
        rows = {"x": [x if n == 200 else n for n in range(500)], "pad": [bytes(1000)] * 500}
        tfr.write_tfrecord(rows, s3.url(f"{name}.tfrecord"), embed_schema=False, **options)
    read_by(tfr.build_index, s3.url("b.tfrecord"), columns=["x"], schema={"x": "int64"}, **options)
    s3.fs.mv(f"{s3.name}/b.tfrecord.column_index", f"{s3.name}/a.tfrecord.column_index")
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the file has another checksum"):
        table = read_by(
            tfr.read_table, s3.url("a.tfrecord"), filters=pc.field("x") == 201, schema={"x": "int64"}, **options
        )
    assert table["x"].to_pylist() == [201, 201]


def test_requests_of_writing_an_index_in_a_bucket(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checksums of the fingerprint are read in few requests."""
    requested: list[tuple[int, int]] = []
    original = RemoteRandomAccessFile._read_spans

    def counted(file: Any, spans: list[tuple[int, int]]) -> Any:
        requested.extend(spans)
        return original(file, spans)

    options: dict[str, Any] = {"storage_options": s3.storage_options}
    rows = {"x": [*range(2000)], "pad": [bytes(1000)] * 2000}
    tfr.write_tfrecord(rows, s3.url("a.tfrecord"), **options)
    monkeypatch.setattr(RemoteRandomAccessFile, "_read_spans", counted)
    read_by(tfr.build_index, s3.url("a.tfrecord"), columns=["x"], **options)
    assert len(requested) == 6
