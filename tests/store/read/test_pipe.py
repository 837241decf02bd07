"""A pipe is read like a regular file with the same content, whatever reads it."""

from __future__ import annotations

import errno
import gzip
import os
import pickle
import threading
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from limited import set_limits
from records import blobs, example, framed, int64s
from tfrecord_io.store.read.pipe import Pipe

pytestmark = [pytest.mark.timeout(60), pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")]

MakePipe = Callable[..., Path]


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[MakePipe]:
    """``fifo(content)``: the path of a FIFO that one writer writes `content` to, in pieces."""
    writers: list[threading.Thread] = []

    def make(content: bytes, suffix: str = "") -> Path:
        path = tmp_path / f"fifo{len(writers)}{suffix}"
        os.mkfifo(path)

        def write() -> None:
            try:
                with open(path, "wb", buffering=0) as file:
                    for begin in range(0, len(content), 50_000):
                        file.write(content[begin : begin + 50_000])
            except BrokenPipeError:
                pass

        writers.append(threading.Thread(target=write, daemon=True))
        writers[-1].start()
        return path

    yield make
    for path in tmp_path.glob("fifo*"):  # lets writers end that wait for a reader
        os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    for writer in writers:
        writer.join(30)
        assert not writer.is_alive()


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Files, some of which disprove late what planning assumed at first."""
    path = tmp_path_factory.mktemp("table") / "table.tfrecord"
    words = [str(i) for i in range(3000)]
    tfr.write_tfrecord({"n": range(3000), "word": words, "x": np.random.default_rng(0).integers(0, 2**60, 3000)}, path)
    table = path.read_bytes()
    tfr.write_tfrecord({"n": range(9)}, path, mode="overwrite")
    foreign = framed(*(example(n=int64s(i), m=int64s(i, i)) for i in range(2000)))
    plain = example(n=int64s(1))
    message = tfr.train.SequenceExample()
    message.context.feature["n"].int64_list.value.append(1)
    message.feature_lists.feature_list["s"].feature.add().int64_list.value.append(2)
    return {
        "empty": b"",
        "embedded schema": table,
        "foreign": foreign,
        "late embedded schema": framed(plain, plain) + path.read_bytes(),
        "late sequence": framed(*[plain] * 100, message.SerializeToString(deterministic=True)),
        "corrupt": table[:20_000] + b"\xff" + table[20_001:],
        "truncated": foreign[:-5],
    }


def read_random(path: Path) -> Any:
    with tfr.open_random(path) as records:
        return len(records), records.read_all().to_pylist() if hasattr(records, "read_all") else records[-1]


def streamed(path: Path) -> Any:
    rows = 0
    with tfr.open_reader(tfr.dataset(path, sample=10), batch_size=7) as reader:
        for batch in reader:
            rows += len(batch)
    return reader.schema, rows


def arrays(path: Path) -> Any:
    return {name: array.tolist() for name, array in tfr.read_arrays(path, ragged="object", missing="mask").items()}


def epochs(path: Path) -> Any:
    batches = tfr.iter_arrays(path, columns=["n"], batch_size=64, epochs=2, seed=3, shuffle_buffer=100)
    return [batch["n"].tolist() for batch in batches]


READS: dict[str, Callable[[Path], Any]] = {
    "read_table": tfr.read_table,
    "read_table, one thread": lambda path: tfr.read_table(tfr.dataset(path, threads=1)),
    "read_table, limit": lambda path: tfr.read_table(tfr.dataset(path, offset=3), limit=5),
    "open_reader": streamed,
    "RecordReader": lambda path: list(tfr.RecordReader(path)),
    "read_arrays": arrays,
    "iter_arrays": epochs,
    "open_random": read_random,
    "count": tfr.count,
    "verify": lambda path: checked(path),
    "describe": lambda path: tfr.describe(path).to_dict(),
    "infer_schema": lambda path: repr(tfr.infer_schema(path)),
    "read_metadata": lambda path: tfr.read_metadata(path).schema,
}


def checked(path: Path) -> dict[str, Any]:
    """The report of `verify`, without the size of the file, which is not known of a pipe."""
    report = tfr.verify(path).to_dict()
    for file in report["files"]:
        del file["size"]
    return report


def result(read: Callable[[Path], Any], path: Path) -> str:
    """What reading returns or raises, with the path removed."""
    try:
        value = read(path)
        text = str(value.to_pydict()) if hasattr(value, "to_pydict") else str(value)
    except (ValueError, OSError, TypeError, IndexError) as error:
        text = f"{type(error).__name__}: {error}, {getattr(error, 'records_intact', None)}"
    return text.replace(str(path), "PATH")


@pytest.mark.parametrize("codec", [None, gzip.compress, zlib.compress])
@pytest.mark.parametrize("name", READS)
def test_a_pipe_is_read_like_a_file(
    fifo: MakePipe, contents: dict[str, bytes], tmp_path: Path, name: str, codec: Any
) -> None:
    for kind, data in contents.items():
        content = data if codec is None else codec(data)
        file = tmp_path / "file"
        file.write_bytes(content)
        assert result(READS[name], fifo(content)) == result(READS[name], file), kind


@pytest.mark.parametrize("name", ["read_table", "RecordReader", "verify", "open_reader"])
def test_records_before_damage_in_compressed_data_are_read(
    fifo: MakePipe, contents: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    content = gzip.compress(contents["embedded schema"])[:-3000]
    (tmp_path / "file").write_bytes(content)
    assert result(READS[name], fifo(content)) == result(READS[name], tmp_path / "file")


def test_both_engines_read_pipes(engine: str, fifo: MakePipe, contents: dict[str, bytes]) -> None:
    content = contents["late embedded schema"]
    assert tfr.read_table(fifo(content)).num_rows == 11


def test_a_stream_of_a_pipe_keeps_only_the_sample(fifo: MakePipe, monkeypatch: pytest.MonkeyPatch) -> None:
    content = framed(*[example(b=blobs(bytes(10_000)))] * 2000)
    kept = []
    keep = Pipe._keep
    monkeypatch.setattr(Pipe, "_keep", lambda self, buffer: kept.append(n := keep(self, buffer)) or n)
    with tfr.open_reader(tfr.dataset(fifo(content), sample=10, threads=1), batch_size=1000) as reader:
        assert sum(len(batch) for batch in reader) == 2000
    assert 0 < sum(kept) < len(content)
    kept.clear()
    assert tfr.count(fifo(content)) == 2000
    assert sum(kept) < 1 << 20


def test_what_is_kept_may_be_on_disk(
    fifo: MakePipe, contents: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, spool_memory_bytes=1000)
    content = contents["late embedded schema"]
    assert tfr.read_table(fifo(content)).num_rows == 11


def test_a_writer_is_stopped_when_the_rest_is_not_read(fifo: MakePipe) -> None:
    """The fixture checks that the writer ends."""
    content = framed(*[example(b=blobs(bytes(10_000)))] * 2000)
    assert tfr.read_table(fifo(content), limit=2).num_rows == 2
    with tfr.open_reader(fifo(content), limit=2) as reader:
        assert next(reader).num_rows == 2


def test_other_formats_are_converted_from_pipes(fifo: MakePipe, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(100)}, tmp_path / "a.tfrecord")
    for suffix in (".parquet", ".arrow", ".npy", ".npz"):
        path = tmp_path / f"a{suffix}"
        assert tfr.convert(fifo((tmp_path / "a.tfrecord").read_bytes()), path).records == 100
        assert tfr.convert(fifo(path.read_bytes(), suffix), tmp_path / "b.tfrecord").records == 100
        (column,) = tfr.read_arrays(tmp_path / "b.tfrecord").values()
        assert column.tolist() == list(range(100))


def test_what_needs_a_regular_file_is_refused(fifo: MakePipe, contents: dict[str, bytes]) -> None:
    from tfrecord_io.base import ReadOptions
    from tfrecord_io.read.call_source import CallSource

    scan = CallSource(fifo(contents["embedded schema"])).scan(ReadOptions())
    with pytest.raises(TypeError, match="pipe cannot be pickled"):
        pickle.dumps(scan)


def test_a_released_pipe_is_not_opened_again(fifo: MakePipe) -> None:
    pipe = Pipe(str(fifo(b"data")))
    pipe.is_read_once = True
    pipe.open().close()
    with pytest.raises(OSError, match="cannot be read a second time") as raised:
        pipe.open()
    assert raised.value.errno == errno.ESPIPE
