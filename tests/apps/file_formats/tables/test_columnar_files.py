"""Parquet and Arrow IPC files: several must have the same schema, and damage raises."""

from __future__ import annotations

import errno
import io
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from pyarrow import feather, orc

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.apps.file_formats.tables import columnar_files
from tfrecord_io.apps.file_formats.tables.columnar_files import OrcWriter, orc_source
from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions
from tfrecord_io.columns.arrow import casts
from tfrecord_io.columns.arrow.casts import one_dictionary


def open_files(folder: Path) -> list[str]:
    paths = [
        os.readlink(f"/proc/self/fd/{fd}")
        for fd in os.listdir("/proc/self/fd")
        if os.path.exists(f"/proc/self/fd/{fd}")
    ]
    return [path for path in paths if path.startswith(str(folder))]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"x": ["a"]}, "feature 'x': it is string here, but int64 in"),
        ({"x": pa.array([1], pa.int32())}, "feature 'x': it is int32 here, but int64 in"),
        ({"y": [1]}, "feature 'y': it is int64 here, but absent in"),
        ({"x": [1], "y": [1]}, "feature 'y': it is int64 here, but absent in"),
        ({}, "feature 'x': it is absent here, but int64 in"),
    ],
)
def test_files_with_other_columns_are_not_concatenated(tmp_path: Path, second: dict[str, object], reason: str) -> None:
    pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table(second), tmp_path / "2.parquet")
    with pytest.raises(tfr.errors.SchemaError, match=reason) as caught:
        tfr.convert([tmp_path / "1.parquet", tmp_path / "2.parquet"], tmp_path / "x.tfrecord")
    assert caught.value.path.endswith("2.parquet")
    assert not (tmp_path / "x.tfrecord").exists()
    assert open_files(tmp_path) == []


PYARROW = int(pa.__version__.split(".")[0])
FAR = pa.array([0, 2**63 - 1], pa.timestamp("s"))
UNFIT = {
    "plain": FAR,
    "struct": pa.StructArray.from_arrays([FAR], ["inner"]),
    "list": pa.ListArray.from_arrays(pa.array([0, 1, 2]), FAR),
    "dictionary": FAR.dictionary_encode(),
    "zone": FAR.cast(pa.timestamp("s", "Asia/Tokyo")),
    "tensor": np.array([[0], [2**63 - 1]], "M8[s]"),
}


@pytest.mark.parametrize(
    ("name", "suffix"),
    [*((name, ".parquet") for name in UNFIT), *((name, ".orc") for name in UNFIT if name != "tensor")],
)
def test_a_value_that_parquet_and_orc_cannot_hold_names_column_and_record(
    name: str, suffix: str, tmp_path: Path
) -> None:
    if suffix == ".parquet" and PYARROW < 25:
        pytest.skip("it writes another time without an error")
    source = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"n": [1, 2], "x": UNFIT[name]}, source)
    with pytest.raises(tfr.errors.EncodeError, match=r"out of range for this file format.*columns=") as caught:
        tfr.convert(source, tmp_path / f"x{suffix}", source_options={"batch_size": 1})
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(source), 1, "x")
    assert "9223372036854775807" not in str(caught.value)
    assert (caught.value.__cause__, caught.value.__suppress_context__) == (None, True)
    assert [path.name for path in tmp_path.iterdir()] == ["x.tfrecord"]
    tfr.convert(source, tmp_path / "x.arrow")


TENSOR = np.zeros((1, 2, 2), np.float32)
NO_VALUES = pa.ExtensionArray.from_storage(
    pa.fixed_shape_tensor(pa.float32(), [2, 0]), pa.array([[]], pa.list_(pa.float32(), 0))
)


@pytest.mark.parametrize(
    ("suffix", "column"),
    [
        (".parquet", pa.array([Decimal("1E2")], pa.decimal128(5, -2))),
        (".parquet", NO_VALUES),  # pyarrow does not read what it writes
        (".parquet", pa.array([[]], pa.list_(pa.int64(), 0))),
        (".parquet", pa.array([[]], pa.list_(pa.string(), 0))),  # it ends the process
        (".parquet", pa.array([[[]]], pa.list_(pa.list_(pa.int64(), 0)))),
        (".parquet", pa.array([{"k": []}], pa.struct({"k": pa.list_(pa.int64(), 0)}))),
        (".orc", pa.array([Decimal("1E2")], pa.decimal128(5, -2))),  # pyarrow's writer of ORC ends the process
        (".orc", pa.array([1], pa.uint8())),
        (".orc", pa.array([[1]], pa.list_(pa.uint16()))),
        (".orc", pa.array(np.array([0.5], np.float16))),
        (".orc", pa.array([1], pa.duration("s"))),
        (".orc", pa.array([1], pa.time32("s"))),
        (".orc", pa.FixedShapeTensorArray.from_numpy_ndarray(TENSOR)),
    ],
    ids=lambda each: each if isinstance(each, str) else str(each.type),
)
def test_a_type_that_a_format_does_not_have_names_the_column(tmp_path: Path, suffix: str, column: pa.Array) -> None:
    tfr.write_tfrecord(pa.table({"n": [1], "x": column}), tmp_path / "x.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match=r"a column of .* cannot be stored in this file format") as caught:
        tfr.convert(tmp_path / "x.tfrecord", tmp_path / f"x{suffix}")
    assert caught.value.feature == "x"
    assert "write an Arrow file" in str(caught.value)
    assert not (tmp_path / f"x{suffix}").exists()
    tfr.convert(tmp_path / "x.tfrecord", tmp_path / f"x{suffix}", columns=["n"])


def test_times_and_texts_in_orc(tmp_path: Path) -> None:
    table = pa.table(
        {
            "us": pa.array([-1, 2**40, None], pa.timestamp("us")),
            "tokyo": pa.array([0, 1, None], pa.timestamp("s", "Asia/Tokyo")),
            "day": pa.array([-1, 20_000, None], pa.date32()),
            "fixed": pa.array([b"abc", None, b"def"], pa.binary(3)),
            "large": pa.array(["a", "", None], pa.large_string()),
            "pair": pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int8(), 2)),
            "category": pa.array(["x", None, "x"]).dictionary_encode(),
            "cents": pa.array([Decimal("1.50"), None, Decimal("-2.00")], pa.decimal128(20, 2)),
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.orc")
    tfr.convert(tmp_path / "a.orc", tmp_path / "b.tfrecord")
    again = tfr.read_table(tmp_path / "b.tfrecord")
    assert again.schema.field("tokyo").type == pa.timestamp("ns", "UTC")
    names = [name for name in table.column_names if name not in ("us", "tokyo")]
    assert again.select(names).to_pylist() == table.select(names).to_pylist()
    for name in ("us", "tokyo"):
        assert again[name].cast(table[name].type).equals(table[name])


def test_stripes_of_orc_are_batches_and_names_may_have_dots(tmp_path: Path) -> None:
    table = pa.table({"a.b": range(100_000), "a": [{"b": i, "c": "x" * 20} for i in range(100_000)]})
    orc.write_table(table, str(tmp_path / "a.orc"), stripe_size=1 << 18, batch_size=4096)
    assert orc.ORCFile(str(tmp_path / "a.orc")).nstripes > 3
    with orc_source([str(tmp_path / "a.orc")], SourceOptions()).open() as rows:
        sizes = [len(batch) for batch in rows]
    assert (sum(sizes), len(sizes)) == (100_000, orc.ORCFile(str(tmp_path / "a.orc")).nstripes)
    for names in (["a.b"], ["a"], ["a", "a.b"]):
        tfr.convert(tmp_path / "a.orc", tmp_path / "x.tfrecord", columns=names, filters=[("a.b", "<", 3)])
        assert tfr.read_table(tmp_path / "x.tfrecord").to_pylist() == table.select(names).slice(0, 3).to_pylist()


@pytest.mark.parametrize("failing", range(1, 6))
def test_an_error_of_the_sink_of_an_orc_file_is_raised(failing: int) -> None:
    """ORC's library ends the process where an error is raised while it closes a file."""
    calls = [0]

    class Full(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any, /) -> int:
            calls[0] += 1
            if calls[0] >= failing:
                raise OSError(errno.ENOSPC, "full")
            return len(data)

    batch = pa.record_batch({"a": list(range(100_000))})

    def write() -> None:
        with OrcWriter(Full(), batch.schema) as writer:
            for _ in range(3):
                writer.write_batch(batch)

    with pytest.raises(OSError, match="full"):
        write()


@pytest.mark.filterwarnings("ignore:Feather V1:DeprecationWarning")
@pytest.mark.parametrize("opened", [pa.ipc.new_file, pa.ipc.new_stream], ids=["file", "stream"])
@pytest.mark.parametrize("offset", [20_000, 2**31 - 1, -5, 3])
def test_offsets_of_arrow_files_that_leave_the_data_are_damage(tmp_path: Path, opened: Any, offset: int) -> None:
    """They state where text begins; what is behind the data would be read, and written to the target."""
    batch, sink = pa.record_batch({"s": ["abcd"] * 100}), io.BytesIO()
    with opened(sink, batch.schema) as writer:
        writer.write_batch(batch)
    offsets = np.arange(0, 404, 4, np.int32)
    stated = offsets.copy()
    stated[-1] = offset
    path = tmp_path / "a.arrow"
    path.write_bytes(sink.getvalue().replace(offsets.tobytes(), stated.tobytes()))
    with pytest.raises(tfr.TFRecordError, match=r"a\.arrow: damaged.*[Oo]ffset"):
        tfr.convert(path, tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


def test_the_first_version_of_feather_is_named(tmp_path: Path) -> None:
    path, target = str(tmp_path / "a.feather"), str(tmp_path / "b.feather")
    feather.write_feather(pa.table({"x": [1, 2]}), path, version=1)
    with pytest.raises(tfr.errors.DecodeError, match=r"a\.feather: Feather version 1; rewrite it: pyarrow\.feather"):
        tfr.convert(path, tmp_path / "a.tfrecord")
    feather.write_feather(feather.read_table(path), target)  # the advice
    assert tfr.convert(target, tmp_path / "a.tfrecord").records == 2


def _written(path: Path, parts: list[pa.Table]) -> None:
    schema = parts[0].schema
    if path.suffix == ".parquet":
        with pq.ParquetWriter(path, schema) as parquet:
            for part in parts:
                parquet.write_table(part)
        return
    with pa.ipc.new_stream(path, schema) as stream:  # a file has one dictionary for all batches
        for part in parts:
            stream.write_table(part)


CATEGORIES = st.lists(st.lists(st.one_of(st.none(), st.sampled_from("abcdef"))), min_size=1, max_size=4)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@settings(max_examples=rounds(15))
@given(files=st.lists(CATEGORIES, min_size=1, max_size=2), size=st.sampled_from([pa.int8(), pa.uint32()]))
def test_each_part_may_have_categories_of_its_own(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, files: list[Any], size: pa.DataType
) -> None:
    folder, values = tmp_path_factory.mktemp("categories"), []
    for number, parts in enumerate(files):
        columns = [pa.array(part, pa.string()).dictionary_encode() for part in parts]
        tables = [pa.table({"c": column.cast(pa.dictionary(size, pa.string()))}) for column in columns]
        _written(folder / f"{number}{suffix}", tables)
        values += [value for part in parts for value in part]
    assume(values)  # without rows, a file has no schema
    tfr.convert(folder / f"*{suffix}", folder / "a.tfrecord")
    table = tfr.read_table(folder / "a.tfrecord")
    codes = pa.int32() if suffix == ".parquet" and PYARROW < 20 else size  # as which it reads all
    assert table["c"].type == pa.dictionary(codes, pa.string())
    assert table["c"].to_pylist() == values


@pytest.mark.parametrize("rows", [20_000, 80_000])
def test_many_categories_are_united_in_linear_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr(columnar_files, "_BATCH_ROWS", 500)
    united: list[int] = []

    def note(column: pa.ChunkedArray) -> pa.ChunkedArray:
        united.append(sum(len(chunk.dictionary) for chunk in column.chunks))
        return one_dictionary(column)

    monkeypatch.setattr(casts, "one_dictionary", note)
    values = [f"category {row}" for row in range(rows)]
    table = pa.table({"c": pa.array(values).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=1000, use_dictionary=False)
    tfr.convert(tmp_path / "a.parquet", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["c"].to_pylist() == values
    assert sum(united) < 8 * rows


@pytest.mark.skipif(PYARROW < 20, reason="pyarrow 19 reads all codes of categories as int32")
def test_more_categories_than_their_integers_number(tmp_path: Path) -> None:
    texts = [[f"{part}-{row}" for row in range(100)] for part in range(2)]
    columns = [pa.array(part).dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())) for part in texts]
    _written(tmp_path / "a.parquet", [pa.table({"c": column}) for column in columns])
    with pytest.raises(tfr.errors.EncodeError, match="cast them to plain values"):
        tfr.convert(tmp_path / "a.parquet", tmp_path / "a.tfrecord")
