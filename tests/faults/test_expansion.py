"""A few bytes of a file do not take much memory: `Limits.expansion_bytes` bounds what is made of them."""

from __future__ import annotations

import json
import os
import pickle
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from faulty_calls import FaultyProcess
from protos import proto
from reading import read_by
from records import blobs, entry, example, field, floats, framed, int64s, varint, written
from tfrecord_io.columns.schema.embedded import field_bytes, pack

pytestmark = pytest.mark.fault(71)

MIB = 1 << 20
MemoryOf = Callable[..., tuple[dict[str, list], int]]
Refused = Callable[..., None]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, native_engine: None) -> Iterator[FaultyProcess]:
    with FaultyProcess(tmp_path_factory.mktemp("expansion"), None) as process:
        yield process


@pytest.fixture
def memory_of(process: FaultyProcess) -> MemoryOf:
    """What comes of some calls in a new process, by name, and the memory that all of them took at most."""

    def run(path: Path, *calls: str) -> tuple[dict[str, list], int]:
        environment = {name: value for name, value in os.environ.items() if name == "TFRECORD_IO_ENGINE"}
        answer = process("expanded", path=str(path), calls=calls, environment=environment)
        assert answer["status"] == 0
        return answer["results"], answer["memory"]

    return run


@pytest.fixture
def refused(memory_of: MemoryOf) -> Refused:
    """The calls refuse the file with a sentence, and do not take more memory than the `limit`."""

    def check(path: Path, *calls: str, feature: str | None = "x", limit: int = 900 * MIB) -> None:
        results, memory = memory_of(path, *calls)
        for call, error in results.items():
            assert error is not None, call
            assert "limits=tfr.Limits(expansion_bytes=268435456)" in error[0], call
            assert re.search(r"pass (tfr\.dataset\(…, )?limits=tfr\.Limits\(expansion_bytes=", error[0]), call
            assert error[1] == feature, call
        assert memory < limit

    return check


def advised(error: tfr.TFRecordError) -> int:
    """The limit that a message says to pass."""
    return int(str(error).rsplit("expansion_bytes=", 1)[1].partition(")")[0])


def embedding(type_: pa.DataType, metadata: dict[str, str] | None = None) -> bytes:
    """A record of no feature with an embedded schema of one column, ``x``."""
    return field_bytes(pack(pa.schema([pa.field("x", type_, metadata=metadata)])))


def of_value(value: bytes) -> bytes:
    return field(1, entry(b"x", field(1, field(1, value))))


def filled(count: int) -> bytes:
    """A TensorProto of `count` int32, all of them 7."""
    return proto(3, (count,), field(7, varint(7)))


WIDE = {
    "list": pa.list_(pa.int64(), 10**8),
    "nested": pa.list_(pa.list_(pa.int8(), 10**5), 10**4),
    "binary": pa.list_(pa.binary(10**8), 10),
    "tensor": pa.fixed_shape_tensor(pa.float32(), (10**4, 10**4)),
    "struct": pa.struct([("a", pa.int64()), ("b", pa.list_(pa.int64(), 10**8))]),
}


@pytest.mark.matrix
@pytest.mark.parametrize("name", WIDE)
def test_embedded_types_whose_nulls_are_large(
    refused: Refused, memory_of: MemoryOf, name: str, engine: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "a", [embedding(WIDE[name])])
    assert path.stat().st_size < 1000
    refused(path, "read_table", "read_tfrecord", "read_arrays", "open_random", "open_reader", "iter_arrays")
    assert memory_of(path, "read_metadata")[1] < 200 * MIB


def test_many_rows_of_a_large_embedded_type(refused: Refused, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [embedding(pa.list_(pa.int64(), 10**6)), *[b""] * 2000])
    refused(path, "read_table", "open_reader", "read_arrays", limit=400 * MIB)
    schema = {"x": pa.list_(pa.int64(), 10**6)}  # a declared type has no limit
    assert tfr.read_table(path, schema=schema, limit=50).num_rows == 50
    assert tfr.read_table(tfr.dataset(path, limits=tfr.Limits(expansion_bytes=500 * MIB)), limit=50).num_rows == 50


@pytest.mark.matrix
@pytest.mark.parametrize("value", [pa.float32(), pa.bool_(), pa.uint8(), pa.timestamp("us"), pa.string()], ids=str)
def test_null_rows_of_a_wide_list_take_no_more_than_the_limit(
    refused: Refused, value: pa.DataType, engine: str, tmp_path: Path
) -> None:
    count = 100_000
    feature = blobs(*[b"x"] * count) if value == pa.string() else int64s(*[1] * count)
    feature = floats(*[0.5] * count) if value == pa.float32() else feature
    path = written(tmp_path / "a", [embedding(pa.list_(value, count)) + example(x=feature), *[b""] * 6000])
    refused(path, "read_table", limit=600 * MIB)  # 256 MiB, and 512 times the bytes of the file


def test_an_embedded_default_is_ignored(memory_of: MemoryOf, tmp_path: Path) -> None:
    metadata = {"tfrecord_io.default": json.dumps("a" * 100_000)}
    path = written(tmp_path / "a", [embedding(pa.string(), metadata), *[b""] * 20_000])
    assert memory_of(path, "read_table")[1] < 200 * MIB
    assert tfr.read_table(path)["x"].null_count == 20_001


def test_embedded_image_sizes(refused: Refused, tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    metadata = {"tfrecord_io.image": json.dumps({"mode": "RGB", "resize": [20_000, 20_000]})}
    path = written(tmp_path / "a", [embedding(pa.binary(), metadata)])
    refused(path, "read_arrays", "iter_arrays")
    assert tfr.read_table(path).num_rows == 1
    small = {"tfrecord_io.image": json.dumps({"mode": "L", "resize": [2, 3]})}
    path = written(tmp_path / "a", [embedding(pa.binary(), small)])
    assert tfr.read_arrays(path, missing="mask")["x"].shape == (1, 2, 3, 1)


def test_a_tensor_of_one_repeated_value(refused: Refused, engine: str, tmp_path: Path) -> None:
    value = filled(2**29 - 1)
    assert len(value) <= 20
    path = tmp_path / "a"
    path.write_bytes(value)
    refused(path, "parse_tensor", feature=None)
    refused(written(path, [of_value(value)]), "tensors")
    refused(written(path, [of_value(filled(10**7))] * 30), "tensors")
    refused(written(path, [of_value(value)]), "tensors")


def test_a_string_that_is_repeated(refused: Refused, tmp_path: Path) -> None:
    value = proto(7, (100_000,), field(8, b"a" * 10_000))
    refused(written(tmp_path / "a", [of_value(value)]), "text")


def test_tensors_of_one_value_are_read(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [of_value(filled(60_000))] * 200)
    schema = {"x": tfr.tensor("int32", (60_000,), encoding="tensor_proto")}
    arrays = tfr.read_arrays(path, schema=schema)
    assert arrays["x"].shape == (200, 60_000)
    assert np.all(arrays["x"] == 7)
    assert tfr.io.parse_tensor(filled(2**25)).sum() == 7 * 2**25


def test_the_limit_can_be_changed() -> None:
    value = filled(1000)
    room = 512 * len(value)
    limits = tfr.Limits(expansion_bytes=4000 - room if room < 4000 else 1)
    assert tfr.io.parse_tensor(value, limits=limits).shape == (1000,)
    with pytest.raises(tfr.errors.DecodeError, match=r"limits=tfr\.Limits\(expansion_bytes=") as caught:
        tfr.io.parse_tensor(filled(10**6), limits=tfr.Limits(expansion_bytes=1))
    needed = advised(caught.value)
    assert tfr.io.parse_tensor(filled(10**6), limits=tfr.Limits(expansion_bytes=needed)).shape == (10**6,)
    with pytest.raises(tfr.errors.DecodeError, match="expansion_bytes"):
        tfr.io.parse_tensor(filled(10**6), limits=tfr.Limits(expansion_bytes=needed - 1))


def test_rows_before_the_excess_are_intact(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [of_value(filled(1000))] * 3 + [of_value(filled(10**6))])
    read: Callable[..., pa.Table] = lambda **keywords: tfr.read_table(  # noqa: E731
        tfr.dataset(path, limits=tfr.Limits(expansion_bytes=MIB)),
        schema={"x": tfr.tensor("int32", (None,), encoding="tensor_proto")},
        **keywords,
    )
    with pytest.raises(tfr.errors.DecodeError, match="expansion_bytes=1048576") as caught:
        read()
    assert (caught.value.record, caught.value.feature, caught.value.records_intact) == (3, "x", 3)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert read(on_error="stop").num_rows == 3


def test_a_stream_counts_the_rows_that_it_holds(engine: str, tmp_path: Path) -> None:
    """Batches are released, so each has the whole limit; all rows at once have it once."""
    path = written(tmp_path / "a", [of_value(filled(200_000))] * 4)
    keywords = {
        "schema": {"x": tfr.tensor("int32", (None,), encoding="tensor_proto")},
        "limits": tfr.Limits(expansion_bytes=MIB),
    }
    with read_by(tfr.open_reader, path, batch_size=1, **keywords) as reader:
        assert [len(batch) for batch in reader] == [1] * 4
    with pytest.raises(tfr.errors.DecodeError, match="expansion_bytes"):
        read_by(tfr.read_table, path, **keywords)


@pytest.mark.matrix
@pytest.mark.parametrize(("call", "short"), [("padded", int64s(1)), ("masked", b"")])
def test_a_long_list_among_short_ones(refused: Refused, call: str, short: bytes, engine: str, tmp_path: Path) -> None:
    """20,000 rows of 100,000 values, all but one of which are padding."""
    path = written(tmp_path / "a", [example(x=int64s(*range(10**5)))] + [example(x=short)] * 20_000)
    refused(path, call, f"{call} batches", limit=700 * MIB)


def test_rows_before_a_list_that_is_too_long_are_intact(engine: str, tmp_path: Path) -> None:
    lists = [[1], [2, 3], [4], list(range(10**5)), *[[5]] * 100_000]
    path = written(tmp_path / "a", [example(x=int64s(*row)) for row in lists])
    keywords: dict[str, Any] = {"ragged": "pad", "limits": tfr.Limits(expansion_bytes=1)}
    refused = r"limits=tfr\.Limits\(expansion_bytes=1\)\)? .*pass tfr\.dataset\(…, limits=tfr\.Limits\(expansion_bytes="
    with pytest.raises(tfr.errors.DecodeError, match=refused) as caught:
        read_by(tfr.read_arrays, path, **keywords)
    assert (caught.value.feature, caught.value.record, caught.value.records_intact) == ("x", 3, 3)
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        arrays = read_by(tfr.read_arrays, path, **keywords, on_error="stop")
    assert arrays["x"].tolist() == [[1, 0], [2, 3], [4, 0]]
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        batches = list(read_by(tfr.iter_arrays, path, batch_size=10**6, **keywords, on_error="stop"))
    assert [batch["x"].tolist() for batch in batches] == [arrays["x"].tolist()]
    batches = read_by(tfr.iter_arrays, path, batch_size=10, **keywords)  # each batch has what its own rows account for
    with pytest.raises(tfr.errors.DecodeError, match=r"expansion_bytes=1\)"):
        list(batches)
    assert next(tfr.iter_arrays(path, batch_size=10, ragged="pad"))["x"].shape == (10, 10**5)


def test_a_long_text_among_short_ones(refused: Refused, engine: str, tmp_path: Path) -> None:
    """All values of a ``.npy`` file are as wide as the longest."""
    path = written(tmp_path / "a", [example(x=blobs(b"a" * 10**6))] + [example(x=blobs(b"b"))] * 20_000)
    refused(path, "write_npy", "write_npz", limit=400 * MIB)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a"]


def test_wide_text_is_written_in_pieces(memory_of: MemoryOf, tmp_path: Path) -> None:
    """The width that the limit allows does not become the width of a whole batch in memory."""
    path = written(tmp_path / "a", [example(x=blobs(b"a" * 10**5))] + [example(x=blobs(b"b"))] * 600)
    results, memory = memory_of(path, "write_npy")
    assert (results["write_npy"], memory < 100 * MIB) == (None, True)
    array = np.load(f"{path}.npy", mmap_mode="r")
    assert (array.shape, array.dtype, array[0][-1], array[-1]) == ((601,), np.dtype("U100000"), "a", "b")
    refused = r"limits=tfr\.Limits\(expansion_bytes=1\)\)? .*pass tfr\.dataset\(…, limits=tfr\.Limits\(expansion_bytes="
    with pytest.raises(tfr.errors.DecodeError, match=refused) as caught:
        tfr.formats.write_npy(tfr.dataset(path, limits=tfr.Limits(expansion_bytes=1)), tmp_path / "b.npy")
    assert caught.value.record is not None


@pytest.mark.parametrize(
    ("tensor", "column"),
    [
        (proto(3, (10**6,), field(7, varint(7))), tfr.tensor("int32", (None,), encoding="tensor_proto")),
        (bytes(tfr.io.serialize_tensor(np.array(["a"]))), tfr.tensor("U100000", (1,), encoding="tensor_proto")),
    ],
    ids=["values", "width"],
)
def test_intact_records_are_not_left_out_for_lack_of_room(
    engine: str, tmp_path: Path, tensor: bytes, column: Any
) -> None:
    path = written(tmp_path / "a", [example(x=blobs(tensor))] * 3)
    schema = {"x": column}
    with pytest.raises(tfr.errors.DecodeError, match=r"expansion_bytes=1\)") as caught:
        tfr.read_table(tfr.dataset(path, limits=tfr.Limits(expansion_bytes=1)), schema=schema, on_error="skip")
    assert caught.value.of_memory
    assert pickle.loads(pickle.dumps(caught.value)).of_memory
    assert tfr.read_table(path, schema=schema, on_error="skip").num_rows == 3


def test_parsing_pads_to_a_long_record(refused: Refused, engine: str, tmp_path: Path) -> None:
    payloads = [example(x=int64s(*range(20_000)))] + [example(x=int64s(1))] * 20_000
    refused(written(tmp_path / "a", payloads), "parse_example", limit=300 * MIB)
    feature = tfr.io.FixedLenSequenceFeature([], "int64", allow_missing=True)
    with pytest.raises(tfr.errors.DecodeError, match=r"limits=tfr\.Limits\(expansion_bytes=1\)\) ") as caught:
        tfr.io.parse_example([b"", *payloads], {"x": feature}, limits=tfr.Limits(expansion_bytes=1))
    limits = tfr.Limits(expansion_bytes=advised(caught.value))
    few = payloads[:100]
    assert tfr.io.parse_example(few, {"x": feature}, limits=limits)["x"].shape == (100, 20_000)


@cache
def of_names(count: int) -> list[bytes]:
    """Records, each of which has a name of its own."""
    return [field(1, entry(b"feature %d" % n, int64s(n))) for n in range(count)]


@pytest.mark.parametrize("call", ["read_table", "read_tfrecord", "one thread", "read_metadata", "open_reader"])
def test_records_that_each_bring_a_new_name(memory_of: MemoryOf, call: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", of_names(16_000))
    results, memory = memory_of(path, call)
    assert memory < 1000 * MIB
    if call != "read_metadata":
        message, feature, record = results[call]
        assert feature.startswith("feature ")
        assert record is not None
        assert (
            "expansion_bytes=268435456" in message or call == "open_reader"
        )  # a stream lacks the names after its sample


@pytest.mark.matrix
@pytest.mark.parametrize("padding", [b"", b"a" * 200])
def test_verify_holds_few_rows_of_many_names(memory_of: MemoryOf, padding: bytes, engine: str, tmp_path: Path) -> None:
    """Its memory does not grow with the rows: every record has a name of its own."""
    names = of_names(16_000 if engine == "native" else 300)
    path = written(tmp_path / "a", [name + field(1, entry(b"x", blobs(padding))) for name in names])
    results, memory = memory_of(path, "verify")
    assert (results, memory < 700 * MIB) == ({"verify": None}, True)
    damaged = path.read_bytes()[:-1] + b"?"
    path.write_bytes(damaged)
    report = tfr.verify(path)
    assert report.records == len(names) - 1
    assert isinstance(report.files[0].error, tfr.errors.CorruptRecordError)
    assert (report.files[0].error.record, report.files[0].error.offset) == (len(names) - 1, report.bytes)


def test_rows_without_the_columns_that_the_first_record_has(refused: Refused, tmp_path: Path) -> None:
    many = field(1, b"".join(entry(b"feature %d" % n, int64s(n)) for n in range(8000)))
    path = written(tmp_path / "a", [many, *[b""] * 60_000])
    refused(path, "read_table", "one thread", feature="feature 7999", limit=1200 * MIB)


@pytest.mark.matrix
@pytest.mark.parametrize("threads", [1, 4])
def test_chunks_that_end_for_lack_of_memory(threads: int, engine: str, tmp_path: Path) -> None:
    """The rows are the same; a declared schema has no limit."""
    path = written(tmp_path / "a", of_names(12) + [b""] * 3 + [of_names(1)[0][:-1]])
    schema = {f"feature {n}": pa.int64() for n in range(2000)}
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        whole = tfr.read_table(tfr.dataset(path, threads=1), schema=schema, on_error="stop")
    assert whole.num_rows == 15
    with tfr.open_reader(
        tfr.dataset(path, threads=threads, limits=tfr.Limits(expansion_bytes=1)), schema=schema
    ) as reader:
        batches = []
        with pytest.raises(tfr.errors.DecodeError) as caught:
            batches.extend(iter(reader))
    assert len(batches) > 10
    assert pa.Table.from_batches(batches).equals(whole)
    assert (caught.value.record, caught.value.records_intact) == (15, 15)


def test_wide_sparse_tables_are_read(engine: str, tmp_path: Path) -> None:
    """Records of one feature of 500 each."""
    path = written(tmp_path / "a", [example(**{f"feature_{n % 500}": int64s(n)}) for n in range(2000)])
    table = tfr.read_table(tfr.dataset(path, limits=tfr.Limits(expansion_bytes=MIB)))
    assert (table.num_rows, table.num_columns) == (2000, 500)
    assert len(framed(b"")) == 16
