"""Tables written as shards: the files, and that they are read back unchanged."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from records import framed
from servers import Bucket
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.read.file_indexes import check_indexes
from tfrecord_io.read.index.write_index import IndexWriter
from tfrecord_io.write import sharded_sink

ROWS = 100
TABLE = pa.table({"n": pa.array(range(ROWS), pa.int16()), "s": [f"row {i}" for i in range(ROWS)]})


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def numbers(path: Any) -> list[int]:
    return tfr.read_table(path)["n"].to_pylist()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("data", [TABLE, TABLE.to_pandas(), TABLE.to_pydict()], ids=["table", "DataFrame", "dict"])
def test_shards_of_a_known_length_hold_contiguous_rows(engine: str, tmp_path: Path, data: Any, threads: int) -> None:
    report = tfr.write_tfrecord(data, tmp_path / "train@8", threads=threads)
    shards = [f"train-{i:05d}-of-00008" for i in range(8)]
    assert names(tmp_path) == ["_MANIFEST-train.json", *shards]
    assert [(os.path.basename(f.path), f.records) for f in report.files] == [
        (n, 12 + i % 2) for i, n in enumerate(shards)
    ]
    assert [f.bytes for f in report.files] == [(tmp_path / n).stat().st_size for n in shards]
    assert (report.records, report.bytes) == (ROWS, sum(f.bytes for f in report.files))
    for path in (tmp_path, tmp_path / "train@8", tmp_path / "train@*", tmp_path / "train-*"):
        assert numbers(path) == list(range(ROWS))


def test_each_file_embeds_the_schema(engine: str, tmp_path: Path) -> None:
    for target, keywords in [("a@3", {}), ("b", {"shards": 3}), ("c@*", {"max_shard_bytes": 1000})]:
        for file in tfr.write_tfrecord(TABLE, tmp_path / target, **keywords).files:
            assert tfr.read_table(file.path).schema == TABLE.schema, file.path
        plain = tfr.write_tfrecord(TABLE, tmp_path / target, mode="overwrite", embed_schema=False, **keywords)
        assert tfr.read_table(plain.files[1].path).schema.field("n").type == pa.int64()


def test_a_shard_equals_a_file_of_its_rows(engine: str, tmp_path: Path) -> None:
    report = tfr.write_tfrecord(TABLE, tmp_path / "a@3")
    at = 0
    for file in report.files:
        tfr.write_tfrecord(TABLE.slice(at, file.records), tmp_path / "alone")
        assert Path(file.path).read_bytes() == (tmp_path / "alone").read_bytes()
        at += file.records


def refuse_to_spool(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(sharded_sink.Spool, "write", None)


def test_rows_of_a_stream_keep_their_order(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [list(range(ROWS * k // 3, ROWS * (k + 1) // 3)) for k in range(3)]
    for i, memory in enumerate([1 << 20, 10]):  # in memory, and on disk
        set_limits(monkeypatch, spool_memory_bytes=memory)
        path = tmp_path / f"{i}"
        report = tfr.write_tfrecord(iter(TABLE.to_batches(max_chunksize=7)), path, shards=3, threads=1 + i)
        assert [numbers(f.path) for f in report.files] == expected
        with tfr.open_writer(tmp_path / f"train{i}@3") as writer:
            writer.write(TABLE.slice(0, 10))
            writer.write(TABLE.slice(10))
        assert [numbers(f.path) for f in writer.report.files] == expected
        assert tfr.read_table(tmp_path / f"train{i}@3") == TABLE


def test_streams_with_a_length_are_not_spooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Frame:
        """A data frame of another library."""

        def __len__(self) -> int:
            return ROWS

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return TABLE.__arrow_c_stream__(requested_schema)

    refuse_to_spool(monkeypatch)
    tfr.write_tfrecord(Frame(), tmp_path / "train@3")
    assert tfr.read_table(tmp_path / "train@3") == TABLE


def test_a_list_of_batches_is_not_spooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_to_spool(monkeypatch)
    batches = TABLE.to_batches(max_chunksize=7)
    tfr.write_tfrecord(batches, tmp_path / "train@3")
    assert tfr.read_table(tmp_path / "train@3") == TABLE
    monkeypatch.undo()
    tfr.write_tfrecord([*batches, TABLE.to_pandas()], tmp_path / "mixed@3")
    assert tfr.count(tmp_path / "mixed@3") == 2 * ROWS


@pytest.mark.parametrize("threads", [1, 3])
def test_max_shard_bytes_limits_each_shard_and_keeps_the_order_of_a_stream(
    engine: str, tmp_path: Path, threads: int
) -> None:
    batches = iter(TABLE.to_batches(max_chunksize=7))
    report = tfr.write_tfrecord(batches, tmp_path / "train@*", max_shard_bytes=1000, threads=threads)
    assert [os.path.basename(f.path) for f in report.files] == [
        f"train-{i:05d}.tfrecord" for i in range(len(report.files))
    ]
    assert len(report.files) > 3
    assert all(f.bytes <= 1000 for f in report.files)
    assert numbers(tmp_path) == list(range(ROWS)) == numbers(tmp_path / "train@*")
    alone = tfr.write_tfrecord(TABLE.slice(0, 3), tmp_path / "one/", max_shard_bytes=1)
    assert [f.records for f in alone.files] == [1, 1, 1]


@given(
    sizes=st.lists(st.integers(0, 300), max_size=30),
    form=st.sampled_from([{"shards": 1}, {"shards": 4}, {"max_shard_bytes": 300}, {"max_shard_bytes": 1 << 20}]),
    cut=st.integers(1, 40),
    compression=st.sampled_from([None, "gzip"]),
    stream=st.booleans(),
)
def test_any_dataset_is_read_back(
    native_engine: None,
    new_folder: Callable[[], Path],
    sizes: list[int],
    form: dict[str, int],
    cut: int,
    compression: str | None,
    stream: bool,
) -> None:
    folder = new_folder()
    table = pa.table(
        {"n": pa.array(range(len(sizes)), pa.int32()), "x": pa.array([bytes(s) for s in sizes], pa.binary())}
    )
    data = iter(table.to_batches(max_chunksize=cut)) if stream and sizes else table
    tfr.write_tfrecord(data, folder, mode="overwrite", compression=compression, threads=1, **form)
    again = tfr.read_table(tfr.dataset(folder, threads=1))
    assert again.schema == table.schema
    assert again.sort_by("n") == table if stream else again == table
    assert tfr.count(folder) == len(sizes)
    assert tfr.verify(folder).ok


@pytest.mark.parametrize("compression", CODECS.names())
def test_compressed_shards_have_the_suffix(engine: str, tmp_path: Path, compression: str) -> None:
    suffix = CODECS[compression].suffixes[0]
    for target, name in [
        ("a@2", "a-00000-of-00002"),
        ("d/", "part-00000-of-00002.tfrecord"),
        ("b.tfrecord", "b.tfrecord-00000-of-00002"),
    ]:
        report = tfr.write_tfrecord(TABLE, f"{tmp_path}/{target}", shards=2, compression=compression)
        assert (report.compression, os.path.basename(report.files[0].path)) == (compression, name + suffix)
        assert numbers([f.path for f in report.files]) == list(range(ROWS))
    assert tfr.write_tfrecord(TABLE, f"{tmp_path}/c.tfrecord{suffix}@2").compression == compression


def test_every_shard_exists_and_a_dataset_without_rows_keeps_its_schema(engine: str, tmp_path: Path) -> None:
    report = tfr.write_tfrecord(TABLE.slice(0, 2), tmp_path / "few@4")
    assert [f.records for f in report.files] == [0, 1, 0, 1]
    assert tfr.read_table(tmp_path / "few@4") == TABLE.slice(0, 2)
    for target, keywords in [("none@2", {}), ("none/", {"max_shard_bytes": 10})]:
        tfr.write_tfrecord(TABLE.slice(0, 0), f"{tmp_path}/{target}", **keywords)
        assert tfr.read_table(f"{tmp_path}/{target}".replace("none@2", "none@*")) == TABLE.slice(0, 0)
        assert tfr.read_metadata(f"{tmp_path}/{target}").records == 0
    frame = pd.DataFrame({"c": pd.Categorical([], categories=["a"]), "t": pd.to_datetime([])})
    tfr.write_tfrecord(frame, tmp_path / "frame@2")
    assert tfr.read_tfrecord(tmp_path / "frame@2").dtypes.astype(str).tolist() == frame.dtypes.astype(str).tolist()


def test_categories_and_lists_are_read_back_from_shards(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"c": pd.Categorical(["b", "a", None] * 5), "l": [np.arange(i) for i in range(15)], "f": np.arange(15) / 4}
    )
    tfr.write_tfrecord(frame, tmp_path / "x@4", float64="raw")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "x@4"), frame)


def test_payloads_and_sequences_are_sharded(engine: str, tmp_path: Path) -> None:
    table = pa.table({"record": pa.array([b"a", b"", b"ccc"])})
    report = tfr.write_tfrecord(table, tmp_path / "raw@2", record_type="bytes")
    assert [Path(f.path).read_bytes() for f in report.files] == [framed(b"a"), framed(b"", b"ccc")]
    steps = pa.table({"w": [[[1], [2, 3]], [[4]], []]})
    tfr.write_tfrecord(steps, tmp_path / "seq@2", record_type="sequence_example")
    assert tfr.read_table(tmp_path / "seq@2") == steps


def test_two_datasets_in_one_directory_keep_a_manifest_each(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "train@2")
    tfr.write_tfrecord(TABLE.slice(0, 10), tmp_path / "test@3")
    assert tfr.count(tmp_path / "train@2") == ROWS
    assert tfr.count(tmp_path / "test@3") == 10
    assert tfr.count(tmp_path / "t*") == ROWS + 10
    with pytest.raises(ValueError, match="families"):
        tfr.read_table(tmp_path)


@pytest.mark.parametrize("mode", [None, "error"])
@pytest.mark.parametrize(
    "again", [("train@8", {}), ("train@4", {}), ("train@*", {"max_shard_bytes": 100}), ("train.tfrecord@2", {})]
)
def test_a_dataset_is_replaced_only_with_overwrite(
    tmp_path: Path, mode: str | None, again: tuple[str, dict[str, int]]
) -> None:
    target, keywords = again
    tfr.write_tfrecord(TABLE, tmp_path / "train@8")
    tfr.write_tfrecord(TABLE, tmp_path / "train-extra@2")
    before = names(tmp_path)
    with pytest.raises(FileExistsError, match="mode='overwrite' replaces it"):
        tfr.write_tfrecord(TABLE, tmp_path / target, mode=mode, **keywords)
    assert names(tmp_path) == before
    report = tfr.write_tfrecord(TABLE.slice(0, 5), tmp_path / target, mode="overwrite", **keywords)
    others = [
        "_MANIFEST-train.json",
        "_MANIFEST-train-extra.json",
        *(f"train-extra-{i:05d}-of-00002" for i in range(2)),
    ]
    assert names(tmp_path) == sorted([*others, *(os.path.basename(f.path) for f in report.files)])
    assert numbers(tmp_path / "train@*") == list(range(5))


def test_shards_of_other_tools_are_not_replaced_without_overwrite(tmp_path: Path) -> None:
    (tmp_path / "train-00000-of-00001").write_bytes(framed(b""))
    with pytest.raises(FileExistsError, match="train-00000-of-00001"):
        tfr.write_tfrecord(TABLE, tmp_path / "train@3")
    tfr.write_tfrecord(TABLE, tmp_path / "train@3", mode="overwrite")
    assert numbers(tmp_path) == list(range(ROWS))


def failing() -> Iterator[pa.Table]:
    yield TABLE
    raise RuntimeError("mine")


@pytest.mark.fault(69)
@pytest.mark.parametrize("form", [{"shards": 3}, {"max_shard_bytes": 500}])
@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_leaves_existing_files_and_nothing_else(
    engine: str, tmp_path: Path, form: dict[str, int], threads: int
) -> None:
    with pytest.raises(RuntimeError, match="mine"):
        tfr.write_tfrecord(failing(), tmp_path / "new/deep/", threads=threads, **form)
    assert names(tmp_path) == []
    tfr.write_tfrecord(TABLE, tmp_path / "old", shards=2)
    before = {n: (tmp_path / n).read_bytes() for n in names(tmp_path)}
    with pytest.raises(RuntimeError, match="mine"):
        tfr.write_tfrecord(failing(), tmp_path / "old", mode="overwrite", threads=threads, **form)
    for error in (KeyboardInterrupt, SystemExit):
        with pytest.raises(error), tfr.open_writer(tmp_path / "old", mode="overwrite", **form) as writer:  # noqa: PT012
            writer.write(TABLE)
            raise error
    assert {n: (tmp_path / n).read_bytes() for n in names(tmp_path)} == before


def test_keywords_that_contradict_each_other_write_nothing(tmp_path: Path) -> None:
    contradicting = [
        ("a@2", {"shards": 3}),
        ("a@2", {"max_shard_bytes": 5}),
        ("a", {"shards": 2, "max_shard_bytes": 5}),
        ("a@*", {}),
    ]
    for target, keywords in contradicting:
        with pytest.raises(ValueError):
            tfr.write_tfrecord(TABLE, tmp_path / target, **keywords)
    for keywords, error in [
        ({"shards": 0}, ValueError),
        ({"shards": 1.5}, TypeError),
        ({"max_shard_bytes": True}, TypeError),
    ]:
        with pytest.raises(error):
            tfr.write_tfrecord(TABLE, tmp_path / "a", **keywords)
    assert names(tmp_path) == []


@pytest.mark.parametrize("form", [{"shards": 3}, {"max_shard_bytes": 1000}], ids=str)
@pytest.mark.parametrize("stream", [False, True], ids=["table", "stream"])
def test_each_shard_has_its_index_and_random_access_uses_it(
    engine: str, tmp_path: Path, form: dict[str, int], stream: bool
) -> None:
    data = iter(TABLE.to_batches(max_chunksize=7)) if stream else TABLE
    report = tfr.write_tfrecord(data, f"{tmp_path}/d/", write_index=True, **form)
    assert {f"{f.path}.index" for f in report.files} == {str(p) for p in (tmp_path / "d").glob("*.index")}
    assert all(check.error is None and check.index is not None for check in check_indexes(tmp_path / "d"))
    whole = tfr.read_table(tmp_path / "d")
    with tfr.open_random(tmp_path / "d") as records:
        assert len(records) == ROWS
        assert records[:] == whole
        assert records[[99, 0, 50]] == whole.take([99, 0, 50])
    again = tfr.write_tfrecord(TABLE.slice(0, 5), f"{tmp_path}/d/", write_index=True, shards=1, mode="overwrite")
    assert [p.name for p in (tmp_path / "d").glob("*.index")] == [os.path.basename(again.files[0].path) + ".index"]
    with tfr.open_random(tmp_path / "d") as records:
        assert records[:]["n"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("compression", CODECS.names())
def test_compressed_shards_with_an_index_are_refused_before_anything_is_written(
    tmp_path: Path, compression: str
) -> None:
    forms: dict[str, dict[str, int]] = {
        "new/": {"shards": 2},
        "old": {"max_shard_bytes": 99},
        "a@2": {},
        "b@*": {"max_shard_bytes": 9},
    }
    for target, keywords in forms.items():
        with pytest.raises(ValueError, match=r"write_index.*compress"):
            tfr.write_tfrecord(TABLE, f"{tmp_path}/{target}", compression=compression, write_index=True, **keywords)
    with pytest.raises(ValueError, match=r"write_index.*compress"):
        tfr.open_writer(tmp_path / "open@3", compression=compression, write_index=True)
    assert names(tmp_path) == []


def test_a_failed_write_of_shards_leaves_no_index(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="mine"):
        tfr.write_tfrecord(failing(), tmp_path / "d/", shards=2, write_index=True)
    assert names(tmp_path) == []


@pytest.mark.parametrize("protocol", ["s3", "gcs", "azure"])
def test_shards_of_a_bucket_have_indexes(request: pytest.FixtureRequest, protocol: str) -> None:
    bucket: Bucket = request.getfixturevalue(protocol)
    options = {"storage_options": bucket.storage_options}
    report = tfr.write_tfrecord(TABLE, bucket.url("d/"), shards=3, write_index=True, **options)
    assert {name for name in bucket.names() if name.endswith(".index")} == {
        f"d/{os.path.basename(f.path)}.index" for f in report.files
    }
    with read_by(tfr.open_random, bucket.url("d/"), **options) as records:
        assert records[:] == TABLE
        assert records[[99, 0, 50]] == TABLE.take([99, 0, 50])
    tfr.write_tfrecord(TABLE.slice(0, 5), bucket.url("d/"), shards=2, mode="overwrite", **options)
    assert not [name for name in bucket.names() if name.endswith(".index")]
    with read_by(tfr.open_random, bucket.url("d/"), **options) as records:
        assert records[:]["n"].to_pylist() == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match=r"write_index.*compress"):
        tfr.write_tfrecord(TABLE, bucket.url("z/"), shards=3, compression="gzip", write_index=True, **options)
    assert not [name for name in bucket.names() if name.startswith("z/")]


@pytest.mark.parametrize("protocol", ["local", "s3", "azure"])
def test_an_index_that_cannot_be_written_leaves_the_dataset_published(
    request: pytest.FixtureRequest, tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket: Bucket | None = None if protocol == "local" else request.getfixturevalue(protocol)
    path = f"{tmp_path}/d/" if bucket is None else bucket.url("d/")
    options = {} if bucket is None else {"storage_options": bucket.storage_options}

    def full(self: IndexWriter) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(IndexWriter, "commit", full)
    with pytest.raises(OSError, match="no space"):
        tfr.write_tfrecord(TABLE, path, shards=3, write_index=True, **options)
    assert read_by(tfr.read_table, path, **options) == TABLE
    with read_by(tfr.open_random, path, **options) as records:
        assert records[[99, 0]] == TABLE.take([99, 0])


@contextmanager
def few_open_files() -> Iterator[None]:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 30, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_more_contiguous_shards_than_open_files(tmp_path: Path) -> None:
    with few_open_files():
        tfr.write_tfrecord({"x": range(90)}, tmp_path / "a@120")
    assert tfr.read_table(tmp_path / "a@120")["x"].to_pylist() == list(range(90))
