"""Writing files: types of input, atomic output, compression, threads, and open writers."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import framed, int64s, written

TABLE = pa.table({"n": [1, 2, 3], "s": ["a", None, "c"]})


class Stream:
    """Has the Arrow stream protocol only, like a result of polars or DuckDB."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


class Array:
    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.batch.__arrow_c_array__(requested_schema)


FORMS = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": lambda: TABLE.to_reader(),
    "stream": lambda: Stream(TABLE),
    "array": lambda: Array(TABLE.to_batches()[0]),
    "dict of arrays": lambda: {"n": np.array([1, 2, 3]), "s": ["a", None, "c"]},
    "batches": lambda: iter(TABLE.to_batches(max_chunksize=1)),
    "list of tables": lambda: [TABLE.slice(0, 1), TABLE.slice(1)],
    "frames": lambda: (TABLE.slice(i, 1).to_pandas().astype({"s": "string"}) for i in range(3)),
    "DataFrame": lambda: pd.DataFrame({"n": [1, 2, 3], "s": ["a", None, "c"]}),
    "mixed": lambda: [
        TABLE.slice(0, 1),
        {"n": [2], "s": pa.array([None], pa.string())},
        TABLE.to_batches()[0].slice(2),
    ],
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 2])
def test_anything_that_holds_a_table_is_written(engine: str, tmp_path: Path, form: str, threads: int) -> None:
    report = tfr.write_tfrecord(FORMS[form](), tmp_path / "a", threads=threads)
    path = tmp_path / "a"
    assert (report.records, report.path, report.compression, report.columns) == (3, str(path), None, ("n", "s"))
    assert report.bytes == path.stat().st_size
    table = tfr.read_table(path)
    assert (table.column_names, table.to_pydict()) == (["n", "s"], TABLE.to_pydict())


@pytest.mark.parametrize("data", [5, "text", b"bytes", None, [1, 2], pa.array([1])])
def test_other_input_is_a_type_error_and_writes_nothing(tmp_path: Path, data: Any) -> None:
    with pytest.raises((TypeError, tfr.errors.EncodeError)):
        tfr.write_tfrecord(data, tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_is_written_while_it_is_read(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(TABLE, tmp_path / "a")
    tfr.write_tfrecord(tfr.open_reader(tmp_path / "a", batch_size=1), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    damaged = tmp_path / "c"
    damaged.write_bytes((tmp_path / "a").read_bytes()[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.write_tfrecord(tfr.open_reader(damaged), tmp_path / "d")
    assert not (tmp_path / "d").exists()


def test_a_file_may_be_overwritten_while_it_is_read(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    tfr.write_tfrecord({"n": list(range(1000))}, path)
    tfr.write_tfrecord(tfr.open_reader(path, batch_size=10), path)
    assert tfr.read_table(path)["n"].to_pylist() == list(range(1000))


def failing() -> Iterator[pa.Table]:
    yield TABLE
    yield TABLE
    raise RuntimeError("mine")


@pytest.mark.parametrize("threads", [1, 2])
def test_an_exception_in_the_input_leaves_existing_files(engine: str, tmp_path: Path, threads: int) -> None:
    path = written(tmp_path / "a", [b""])
    for target in (path, tmp_path / "new"):
        with pytest.raises(RuntimeError, match="mine"):
            tfr.write_tfrecord(failing(), target, threads=threads)
        with pytest.raises(tfr.errors.SchemaError):
            tfr.write_tfrecord([TABLE, pa.table({"other": [1]})], target, threads=threads)
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_bytes() == framed(b"")


def test_an_exception_in_the_with_block_leaves_existing_files(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b""])
    with pytest.raises(RuntimeError, match="mine"), tfr.open_writer(path) as writer:  # noqa: PT012
        writer.write(TABLE)
        raise RuntimeError("mine")
    assert writer.report is None
    assert os.listdir(tmp_path) == ["a"]
    assert path.read_bytes() == framed(b"")
    with pytest.raises(ValueError, match="closed"):
        writer.write(TABLE)


def test_a_target_that_cannot_be_written_leaves_nothing(engine: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        tfr.write_tfrecord(TABLE, tmp_path / "gone" / "a")
    with pytest.raises(FileExistsError):
        tfr.write_tfrecord(TABLE, written(tmp_path / "a", []), mode="error")
    assert os.listdir(tmp_path) == ["a"]
    tfr.write_tfrecord(TABLE, tmp_path / "a", mode="overwrite")
    assert tfr.read_table(tmp_path / "a").num_rows == 3


@pytest.mark.parametrize(
    ("name", "compression", "unpack", "expected"),
    [
        ("a.tfrecord", "infer", bytes, None),
        ("a.tfrecord.gz", "infer", gzip.decompress, "gzip"),
        ("a.zlib", "infer", zlib.decompress, "zlib"),
        ("a.zz", "infer", zlib.decompress, "zlib"),
        ("a.tfrecord", "gzip", gzip.decompress, "gzip"),
        ("a.gz", None, bytes, None),
    ],
)
def test_compression_is_chosen_by_suffix_or_keyword(
    engine: str, tmp_path: Path, name: str, compression: Any, unpack: Any, expected: Any
) -> None:
    report = tfr.write_tfrecord({"n": [1, 2]}, tmp_path / name, compression=compression, embed_schema=False)
    assert report.compression == expected
    plain = [b"\x0a\x0c\x0a\x0a\x0a\x01n\x12\x05\x1a\x03\x0a\x01" + bytes([n]) for n in (1, 2)]
    assert unpack((tmp_path / name).read_bytes()) == framed(*plain)
    assert tfr.read_table(tmp_path / name)["n"].to_pylist() == [1, 2]
    other = tmp_path / "misnamed.tfrecord"
    (tmp_path / name).rename(other)
    assert tfr.read_table(other)["n"].to_pylist() == [1, 2]


def test_threads_and_engines_write_the_same_bytes(
    native_engine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    data = {
        "id": np.arange(40_000),
        "blob": [bytes(n) for n in rng.integers(0, 500, 40_000)],
        "f": rng.random(40_000, np.float32),
    }
    contents = set()
    for engine, threads in [("native", 1), ("native", 2), ("native", 3), ("reference_engine", 1)]:
        monkeypatch.setenv("TFRECORD_IO_ENGINE", engine)
        tfr.write_tfrecord(data, tmp_path / "a", threads=threads)
        contents.add((tmp_path / "a").read_bytes())
    assert len(contents) == 1


def test_a_writer_accepts_several_tables(engine: str, tmp_path: Path) -> None:
    with tfr.open_writer(tmp_path / "a") as writer:
        assert writer.report is None
        writer.write(TABLE)
        writer.write(TABLE.slice(0, 0))
        writer.write(pd.DataFrame({"n": [4], "s": ["d"]}))
        assert not (tmp_path / "a").exists()
        with pytest.raises(tfr.errors.SchemaError):
            writer.write({"n": [1.5]})
    assert writer.report.records == 4
    assert tfr.read_table(tmp_path / "a")["n"].to_pylist() == [1, 2, 3, 4]


def test_a_writer_with_a_schema_casts_orders_and_selects(engine: str, tmp_path: Path) -> None:
    schema = pa.schema([("s", pa.string()), ("n", pa.int8())])
    for given in (schema, {"s": "string", "n": "int8"}):
        with tfr.open_writer(tmp_path / "a", schema=given) as writer:
            writer.write(TABLE.append_column("extra", pa.array([1, 2, 3])))
            writer.write({"n": [5], "s": ["e"]})
        assert tfr.read_table(tmp_path / "a").schema.equals(schema)
        assert tfr.read_table(tmp_path / "a")["n"].to_pylist() == [1, 2, 3, 5]
    tfr.write_tfrecord(TABLE, tmp_path / "b", schema={"n": "int16"})
    assert tfr.read_table(tmp_path / "b").schema == pa.schema([("n", pa.int16())])
    with pytest.raises(tfr.errors.SchemaError, match="'gone'"):
        tfr.write_tfrecord(TABLE, tmp_path / "c", schema={"gone": "int8"})
    with pytest.raises(tfr.errors.EncodeError, match="a value of type int64 cannot be converted to int8"):
        tfr.write_tfrecord({"n": [300]}, tmp_path / "c", schema={"n": "int8"})
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("threads", [1, 2])
def test_categories_that_the_first_rows_lack_are_refused(engine: str, tmp_path: Path, threads: int) -> None:
    parts = [pa.table({"x": pa.array(values).dictionary_encode()}) for values in (["a", "b"], ["b", None], ["c"])]
    assert tfr.write_tfrecord(parts[:2], tmp_path / "a", threads=threads).records == 4
    assert tfr.read_table(tmp_path / "a")["x"].to_pylist() == ["a", "b", "b", None]
    with pytest.raises(tfr.errors.EncodeError, match=r"feature 'x'.*unify_dictionaries"):
        tfr.write_tfrecord(parts, tmp_path / "b", threads=threads)
    assert not (tmp_path / "b").exists()
    for keywords in ({"data": parts, "embed_schema": False}, {"data": pa.concat_tables(parts)}):
        tfr.write_tfrecord(path=tmp_path / "b", threads=threads, **keywords)
        assert tfr.read_table(tmp_path / "b")["x"].to_pylist() == ["a", "b", "b", None, "c"]


def test_file_objects_are_written_and_left_open(engine: str) -> None:
    file = io.BytesIO(b"before")
    file.seek(6)
    report = tfr.write_tfrecord({"n": [1]}, file, embed_schema=False)
    assert not file.closed
    assert len(file.getvalue()) == 6 + report.bytes
    file.seek(6)
    assert tfr.read_table(file)["n"].to_pylist() == [1]


@pytest.mark.parametrize("embed", [True, False])
def test_no_rows_no_columns_and_only_nulls(engine: str, tmp_path: Path, embed: bool) -> None:
    path = tmp_path / "a"
    assert tfr.write_tfrecord(TABLE.slice(0, 0), path, embed_schema=embed).records == 0
    assert path.stat().st_size == 0
    assert tfr.read_table(path).num_rows == 0
    assert tfr.write_tfrecord(TABLE.select([]), path, embed_schema=embed).records == 3
    assert (tfr.read_table(path).num_rows, tfr.read_table(path).num_columns) == (3, 0)
    tfr.write_tfrecord({"x": pa.nulls(2), "y": pa.nulls(2, pa.int8())}, path, embed_schema=embed)
    table = tfr.read_table(path)
    assert table.num_rows == 2
    assert table.schema.names == (["x", "y"] if embed else [])
    assert tfr.write_tfrecord([], path).records == 0
    assert tfr.write_tfrecord({}, path).records == 0


def test_payloads_are_written_as_records(engine: str, tmp_path: Path) -> None:
    table = pa.table({"record": pa.array([b"a", b"", int64s(1)])})
    for threads in (1, 2):
        tfr.write_tfrecord(table, tmp_path / "a", record_type="bytes", threads=threads)
        assert (tmp_path / "a").read_bytes() == framed(b"a", b"", int64s(1))
    tfr.write_tfrecord(
        tfr.open_reader(tfr.dataset(tmp_path / "a", record_type="bytes")), tmp_path / "b.gz", record_type="bytes"
    )
    assert list(tfr.RecordReader(tmp_path / "b.gz")) == [b"a", b"", int64s(1)]
    for bad in ({"record": ["text"]}, {"a": [b""], "b": [b""]}, {"record": [b"a", None]}):
        with pytest.raises(tfr.errors.EncodeError):
            tfr.write_tfrecord(bad, tmp_path / "c", record_type="bytes")


def test_nan_to_null_applies_to_pandas_only(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.array([1, np.nan], np.float32)})
    for nan_to_null, nulls in ((True, 1), (False, 0)):
        tfr.write_tfrecord(frame, tmp_path / "a", nan_to_null=nan_to_null)
        assert tfr.read_table(tmp_path / "a")["x"].null_count == nulls
        tfr.write_tfrecord({"x": frame.x.to_numpy()}, tmp_path / "a", nan_to_null=nan_to_null)
        assert tfr.read_table(tmp_path / "a")["x"].null_count == 0
