"""Reading as a stream: batches of one schema, the protocol of a reader, and contradictions of the sample."""

from __future__ import annotations

import gc
import gzip
import io
import os
import pickle
import threading
import weakref
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, floats, framed, int64s, written


def numbers(path: Path, count: int, start: int = 0) -> Path:
    return written(path, [example(n=int64s(start + i)) for i in range(count)])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("sample", [1, 7, 10_000, "all"])
def test_batches_have_the_requested_rows_and_join_small_files(
    engine: str, tmp_path: Path, threads: int, sample: Any
) -> None:
    sizes = [3, 0, 1, 5, 2, 0, 4, 9]
    paths = [numbers(tmp_path / f"{i}.tfrecord", size, start=100 * i) for i, size in enumerate(sizes)]
    expected = [100 * i + k for i, size in enumerate(sizes) for k in range(size)]
    for batch_size in (1, 4, 5, 24, 100):
        with tfr.open_reader(tfr.dataset(paths, threads=threads, sample=sample), batch_size=batch_size) as reader:
            batches = list(reader)
            assert (reader.report.records, reader.report.files) == (24, 8)
            assert reader.report.bytes == sum(path.stat().st_size for path in paths)
        full, rest = divmod(24, batch_size)
        assert [len(batch) for batch in batches] == [batch_size] * full + [rest] * (rest > 0)
        assert [n for batch in batches for n in batch["n"].to_pylist()] == expected
        assert all(batch.schema == reader.schema for batch in batches)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sample", [2, 10_000])
def test_batch_bytes_ends_a_batch_before_it_would_be_larger(
    engine: str, tmp_path: Path, threads: int, sample: int
) -> None:
    payloads = [b"x" * size for size in (10, 10, 10, 30, 5, 5, 5, 5, 100, 1, 1)]
    path = written(tmp_path / "a", payloads)
    with tfr.open_reader(tfr.dataset(path, record_type="bytes", threads=threads), batch_bytes=30) as reader:
        assert [len(b) for b in reader] == [3, 1, 4, 1, 2]
    rows = [example(x=blobs(bytes(n))) for n in (4, 4, 4, 40, 2, 2)]
    sizes = [len(row) for row in rows]
    expected, room = [], 0
    for size in sizes:
        if expected and size <= room:
            expected[-1] += 1
            room -= size
        else:
            expected.append(1)
            room = 40 - size
    with tfr.open_reader(
        tfr.dataset(written(tmp_path / "b", rows), threads=threads, sample=sample, stable_types=True), batch_bytes=40
    ) as reader:
        assert [len(b) for b in reader] == expected
    integers = written(tmp_path / "c", [example(x=int64s(*range(n))) for n in (4, 4, 4, 40, 2, 2)])
    with tfr.open_reader(
        tfr.dataset(integers, threads=threads), batch_bytes=40, schema={"x": pa.list_(pa.int64())}
    ) as reader:
        assert [len(b) for b in reader] == [1] * 6  # eight bytes each


LATE = {
    "a list": (int64s(1), int64s(1, 2), tfr.errors.SchemaError, "schema="),
    "a kind": (int64s(1), floats(1.0), tfr.errors.SchemaError, "leave it out"),
    "binary": (blobs(b"text"), blobs(b"\xff"), tfr.errors.SchemaError, "infer_text=False"),
    "an empty list": (floats(1.0), b"\x12\x00", tfr.errors.SchemaError, "sample='all'"),
    "values where there were none": (b"", int64s(1), tfr.errors.SchemaError, "sample='all'"),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("late", LATE)
def test_a_record_that_contradicts_the_sample_raises_with_advice(
    engine: str, tmp_path: Path, late: str, threads: int
) -> None:
    early, later, error, advice = LATE[late]
    rows = [example(x=early)] * 5 + [example(x=later), example(x=early)]
    reader = tfr.open_reader(tfr.dataset(written(tmp_path / "a", rows), sample=3, threads=threads), batch_size=2)
    seen = []
    with pytest.raises(error, match=r"record 5\b.*feature 'x'") as caught:
        seen.extend(len(batch) for batch in reader)
    assert sum(seen) == 5
    assert advice in str(caught.value)
    assert reader.fault is caught.value
    assert (caught.value.record, caught.value.feature, caught.value.records_intact) == (5, "x", 5)
    if late != "a kind":
        with tfr.open_reader(tfr.dataset(tmp_path / "a", sample="all")) as whole:
            assert whole.read_all().num_rows == 7


def test_a_late_kind_names_the_record_of_the_other_kind(engine: str, tmp_path: Path) -> None:
    rows = [example(), example(x=int64s(1)), example(x=int64s(1)), example(x=floats(1.0))]
    with pytest.raises(tfr.errors.SchemaError, match=r"record 1 .*record 3"):
        tfr.open_reader(tfr.dataset(written(tmp_path / "a", rows), sample=3)).read_all()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_feature_first_seen_after_the_sample(engine: str, tmp_path: Path, threads: int) -> None:
    rows = [example(x=int64s(i)) for i in range(4)] + [example(new=floats(1.0), x=int64s(4))]
    path = written(tmp_path / "a", rows)
    with pytest.raises(tfr.errors.SchemaError, match="on_new='ignore'") as caught:
        tfr.open_reader(tfr.dataset(path, sample=2, threads=threads)).read_all()
    assert (caught.value.feature, caught.value.record) == ("new", 4)
    assert tfr.open_reader(tfr.dataset(path, sample=2, on_new="ignore", threads=threads)).read_all()[
        "x"
    ].to_pylist() == list(range(5))
    assert tfr.open_reader(tfr.dataset(path, sample="all", threads=threads)).schema.names == ["new", "x"]
    assert tfr.open_reader(tfr.dataset(path, sample=2, threads=threads), columns=["x"]).read_all().num_rows == 5
    assert tfr.read_table(path).column_names == ["new", "x"]


def test_a_limit_also_limits_the_sample(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example(x=int64s(1, 2))])
    with tfr.open_reader(path, limit=1) as reader:
        assert reader.schema.field("x").type == pa.int64()
        assert reader.read_all().num_rows == 1


def test_a_reader_is_consumed_once(engine: str, tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 5)
    reader = tfr.open_reader(path, batch_size=2)
    assert reader.read_next_batch()["n"].to_pylist() == [0, 1]
    assert reader.read_all()["n"].to_pylist() == [2, 3, 4]
    for again in (reader.read_all, reader.read_pandas, lambda: list(reader), lambda: pa.table(reader)):
        with pytest.raises(ValueError, match="consumed"):
            again()


def test_iterating_to_the_end_is_a_stopiteration(engine: str, tmp_path: Path) -> None:
    reader = tfr.open_reader(numbers(tmp_path / "a", 1))
    assert len(next(reader)) == 1
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(reader)
    assert reader.fault is None


def test_a_closed_reader_raises(engine: str, tmp_path: Path) -> None:
    with tfr.open_reader(numbers(tmp_path / "a", 5), batch_size=2) as reader:
        next(reader)
    reader.close()
    for use in (lambda: next(reader), reader.read_all, reader.read_pandas, reader.read_next_batch):
        with pytest.raises(ValueError, match="closed"):
            use()
    with tfr.open_reader(tmp_path / "a") as reader:
        pass
    with pytest.raises(ValueError, match="closed"):
        pa.table(reader)


def test_read_pandas_after_a_partial_read_gives_the_rest(engine: str, tmp_path: Path) -> None:
    reader = tfr.open_reader(numbers(tmp_path / "a", 5), batch_size=2)
    next(reader)
    assert reader.read_pandas()["n"].tolist() == [2, 3, 4]


def test_arrow_consumers_read_the_stream(engine: str, tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 5)
    assert pa.schema(tfr.open_reader(path)).names == ["n"]
    assert pa.table(tfr.open_reader(path, batch_size=2))["n"].to_pylist() == list(range(5))
    stream = pa.RecordBatchReader.from_stream(tfr.open_reader(path, batch_size=2))
    assert [len(batch) for batch in stream] == [2, 2, 1]
    wider = pa.RecordBatchReader.from_stream(tfr.open_reader(path), schema=pa.schema([("n", pa.float64())]))
    assert wider.read_all()["n"].to_pylist() == [0.0, 1.0, 2.0, 3.0, 4.0]
    empty = tfr.open_reader(written(tmp_path / "b", []))
    assert pa.table(empty).num_rows == 0


def test_an_error_across_the_arrow_stream_begins_with_the_original_message(engine: str, tmp_path: Path) -> None:
    path = numbers(tmp_path / "a", 5)
    path.write_bytes(path.read_bytes() + b"\0" * 12)
    reader = tfr.open_reader(tfr.dataset(path, sample=1), batch_size=2)
    with pytest.raises(pa.ArrowInvalid) as caught:
        pa.table(reader)
    assert isinstance(reader.fault, tfr.errors.CorruptRecordError)
    assert str(caught.value).startswith(str(reader.fault))
    assert (reader.fault.record, reader.fault.records_intact) == (5, 5)
    reader = tfr.open_reader(tfr.dataset(path, sample=1), batch_size=2)
    stream = pa.RecordBatchReader.from_stream(reader)
    assert [len(stream.read_next_batch()) for _ in range(3)] == [2, 2, 1]
    with pytest.raises(pa.ArrowInvalid, match="length CRC mismatch") as caught:
        stream.read_next_batch()
    assert str(caught.value).startswith(str(reader.fault))


def test_an_abandoned_reader_does_not_wait_for_its_threads(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may run anywhere, also while a thread is being started: waiting would be a deadlock."""
    reader = tfr.open_reader(tfr.dataset(numbers(tmp_path / "a", 50), sample=1, threads=2), batch_size=1)
    next(reader)
    next(reader)
    waited: list[str] = []
    monkeypatch.setattr(threading.Thread, "join", lambda thread, timeout=None: waited.append(thread.name))
    del reader
    gc.collect()
    assert waited == []


class Failing(io.RawIOBase):
    """A file that returns some bytes, then raises an OSError."""

    def __init__(self, content: bytes) -> None:
        self.content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        n = self.content.readinto(buffer)
        if not n:
            raise OSError(5, "the disk is gone")
        return n


def test_an_error_of_the_disk_comes_after_the_rows_before_it(engine: str) -> None:
    content = framed(*(example(n=int64s(i)) for i in range(100)))[:-3]
    reader = tfr.open_reader(Failing(content))
    assert next(reader)["n"].to_pylist() == list(range(99))
    with pytest.raises(OSError, match="the disk is gone"):
        next(reader)
    reader = tfr.open_reader(Failing(content))
    with pytest.raises(pa.ArrowInvalid, match="the disk is gone"):
        pa.table(reader)
    assert isinstance(reader.fault, OSError)


@pytest.mark.parametrize("threads", [1, 2])
def test_stop_returns_the_intact_records_with_one_warning(engine: str, tmp_path: Path, threads: int) -> None:
    path = numbers(tmp_path / "a", 5)
    path.write_bytes(path.read_bytes()[:-1])
    other = numbers(tmp_path / "b", 2)
    for read in (
        tfr.read_table,
        lambda *a, **k: tfr.open_reader(*a, **k).read_all(),
        lambda *a, **k: pa.table(tfr.open_reader(*a, **k)),
    ):
        with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 4 at byte") as warned:
            table = read(tfr.dataset([path, other], threads=threads), on_error="stop")
        assert table["n"].to_pylist() == [0, 1, 2, 3]
        assert len(warned) == 1
        assert warned[0].filename == __file__
    reader = tfr.open_reader(path, on_error="stop")
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        list(reader)
    assert "record 4" in reader.report.stopped


def test_errors_of_whole_reads_state_the_number_of_intact_records(engine: str, tmp_path: Path) -> None:
    first, second = numbers(tmp_path / "a", 3), numbers(tmp_path / "b", 4)
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError) as caught:
        tfr.read_table([first, second])
    error = pickle.loads(pickle.dumps(caught.value))
    assert (error.path, error.record, error.records_intact) == (str(second), 3, 6)
    assert str(error) == str(caught.value)


def test_file_paths_as_a_column(engine: str, tmp_path: Path) -> None:
    paths = [numbers(tmp_path / f"{i}.tfrecord", i) for i in range(3)]
    table = tfr.read_table(tfr.dataset(tmp_path / "*.tfrecord", include_file_paths="from"))
    assert table.schema.field("from").type == pa.string()
    assert table["from"].to_pylist() == [str(paths[1]), str(paths[2]), str(paths[2])]
    only = tfr.dataset(paths, include_file_paths="from", schema={"n": "int64"}, columns=[])
    assert tfr.read_table(only)["from"].num_chunks >= 1
    with tfr.open_reader(tfr.dataset(paths, include_file_paths="from"), batch_size=10) as reader:
        assert reader.schema.names == ["n", "from"]
        assert len(next(reader)) == 3
    with pytest.raises(tfr.errors.SchemaError, match="include_file_paths"):
        tfr.read_table(tfr.dataset(paths, include_file_paths="n"))


def test_the_forms_of_a_path(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(3):
        numbers(tmp_path / f"d-{i:05d}-of-00003.tfrecord", 1, start=i)
    folder = str(tmp_path)
    for path in (
        folder,
        tmp_path,
        f"{folder}/d-*",
        f"{folder}/d-{{00000..00002}}-of-00003.tfrecord",
        f"{folder}/d-*-of-00003.tfrecord",
    ):
        assert tfr.read_table(path)["n"].to_pylist() == [0, 1, 2]
    assert tfr.read_table([f"{folder}/*2-of*", f"{folder}/*0-of*"])["n"].to_pylist() == [2, 0]
    (tmp_path / "d-00001-of-00003.tfrecord").unlink()
    with pytest.raises(FileNotFoundError, match="00001"):
        tfr.read_table(folder)
    assert tfr.read_table(tfr.dataset(folder, allow_missing_shards=True))["n"].to_pylist() == [0, 2]


def test_binary_file_objects(engine: str, tmp_path: Path) -> None:
    content = framed(example(n=int64s(1)), example(n=int64s(2)))
    file = io.BytesIO(content)
    assert tfr.read_table(file)["n"].to_pylist() == [1, 2]
    assert not file.closed
    file = io.BytesIO(b"skip" + content)
    file.seek(4)
    assert tfr.open_reader(file).read_all()["n"].to_pylist() == [1, 2]
    assert tfr.read_table([io.BytesIO(content), io.BytesIO(content)])["n"].to_pylist() == [1, 2, 1, 2]
    with pytest.raises(TypeError, match="text mode"):
        tfr.read_table(io.StringIO("x"))


@pytest.mark.parametrize("kind", ["memory", "disk", "gzip", "pyarrow", "no readinto"])
def test_a_file_object_is_read_from_its_position_and_at_its_end_from_its_start(kind: str, tmp_path: Path) -> None:
    content = framed(*[example(n=int64s(i)) for i in range(5)])
    size = len(content) // 5
    (tmp_path / "a").write_bytes(content)
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))

    closing = ExitStack()

    class WithoutReadinto:
        def __init__(self) -> None:
            file = io.BytesIO(content)
            self.read, self.seek, self.tell, self.seekable = file.read, file.seek, file.tell, file.seekable

    opened: dict[str, Callable[[], Any]] = {
        "memory": lambda: io.BytesIO(content),
        "disk": lambda: closing.enter_context((tmp_path / "a").open("r+b")),
        "gzip": lambda: closing.enter_context(gzip.GzipFile(tmp_path / "a.gz")),
        "pyarrow": lambda: pa.BufferReader(content),
        "no readinto": WithoutReadinto,
    }
    with closing:
        for records in range(6):
            file = opened[kind]()
            file.seek(records * size)
            assert tfr.read_table(file)["n"].to_pylist() == [*range(records % 5, 5)]
            assert tfr.count(file) == 5, "the read left it at its end"


def test_a_file_object_may_be_read_twice_by_one_call() -> None:
    file = io.BytesIO()
    tfr.write_tfrecord({"n": [1, 2]}, file)
    assert tfr.read_table([file, file])["n"].to_pylist() == [1, 2, 1, 2]
    assert tfr.read_tfrecord(file)["n"].tolist() == [1, 2]


def test_an_empty_file_object_has_no_records() -> None:
    assert tfr.count(io.BytesIO()) == 0
    file = io.BytesIO(b"abc")
    file.seek(0, io.SEEK_END)
    file.truncate(0)
    assert tfr.count(file) == 0


def test_a_dataset_of_a_buffer_that_is_written_later_has_its_rows() -> None:
    file = io.BytesIO()
    rows = tfr.dataset(file)
    tfr.write_tfrecord({"n": [1, 2]}, file)
    assert rows.to_table()["n"].to_pylist() == [1, 2]


@pytest.mark.parametrize("at", [io.SEEK_SET, io.SEEK_END])
def test_a_file_object_is_no_table(at: int) -> None:
    file = io.BytesIO(framed(example(n=int64s(1))))
    file.seek(0, at)
    with pytest.raises(TypeError, match=r"got a file object, _io\.BytesIO: pass tfr\.dataset\(file\)"):
        tfr.write_tfrecord(file, io.BytesIO())  # type: ignore[arg-type]


def test_binary_file_objects_that_carry_a_schema(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "a.tfrecord")
    content = (tmp_path / "a.tfrecord").read_bytes()
    file = io.BytesIO(b"skip" + content)
    file.seek(4)
    assert tfr.read_table(file)["n"].to_pylist() == [1, 2]
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    with open(reading, "rb") as pipe:
        assert tfr.read_table(pipe)["n"].to_pylist() == [1, 2]
    reading, writing = os.pipe()
    os.write(writing, framed(example(n=int64s(0))) + content)
    os.close(writing)
    with (
        open(reading, "rb") as pipe,
        pytest.raises(OSError, match="cannot seek"),
        pytest.warns(tfr.errors.SchemaWarning),
    ):
        tfr.read_table(pipe)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("schema", [None, {"n": "int64"}])
def test_a_reader_keeps_no_batch_that_it_has_delivered(tmp_path: Path, threads: int, schema: Any) -> None:
    path = numbers(tmp_path / "a", 90)
    with tfr.open_reader(tfr.dataset(path, threads=threads), batch_size=30, schema=schema) as reader:
        for batch in reader:
            delivered = weakref.ref(batch)
            del batch
            assert delivered() is None
