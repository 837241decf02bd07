"""Whole reads: values, nulls and types, and the selection of rows and columns."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from arrow_tables import TEXT_DTYPE
from reading import read_by
from records import blobs, entry, example, field, floats, int64s, written
from tfrecord_io.columns.arrow.decode.batch_builder import BatchBuilder

GOLDEN = ["tutorial", "extremes", "ragged", "images", "empty"]
KINDS = {"int64": pa.int64(), "float": pa.float32(), "bytes": pa.binary()}


def stated(cell: dict[str, Any] | None) -> tuple[str, list[Any]] | None:
    """(kind, values) of a feature as stated in a golden .json file; None: no kind."""
    if cell is None:
        return None
    ((kind, values),) = cell.items()
    if kind == "bytes":
        return kind, [base64.b64decode(v) for v in values]
    if kind == "float":
        return kind, [np.float32(v).tobytes() for v in values]
    return kind, values


def as_values(array: pa.ChunkedArray) -> list[Any]:
    """Python values; floats as their four bytes, so that NaN and −0.0 count."""
    array = array.combine_chunks()
    if pa.types.is_float32(array.type):
        return [None if v is None else np.float32(v).tobytes() for v in array.to_pylist()]
    if pa.types.is_list(array.type) and pa.types.is_float32(array.type.value_type):
        return [None if v is None else [np.float32(x).tobytes() for x in v] for v in array.to_pylist()]
    return array.to_pylist()


@pytest.mark.parametrize("name", [*GOLDEN, "tutorial_gzip", "tutorial_zlib"])
def test_golden_files_read_as_tensorflow_reads_them(engine: str, data: Path, name: str) -> None:
    path = next(p for p in data.iterdir() if p.name.startswith(f"{name}.tfrecord"))
    rows = json.loads((data / f"{name.split('_')[0]}.json").read_text())
    table = tfr.read_table(tfr.dataset(path, infer_text=False))
    table.validate(full=True)
    assert table.num_rows == len(rows)
    assert table.column_names == sorted({name for row in rows for name in row})
    for column in table.column_names:
        cells = [stated(row.get(column)) for row in rows]
        present = [cell for cell in cells if cell is not None]
        scalar = all(len(values) == 1 for _, values in present)
        value = KINDS[present[0][0]]
        assert table.schema.field(column).type == (value if scalar else pa.list_(value))
        expected = [None if cell is None else cell[1][0] if scalar else cell[1] for cell in cells]
        assert as_values(table[column]) == expected


@pytest.mark.parametrize("name", ["fashion", "bytes"])
def test_golden_bytes_come_back_whole(engine: str, data: Path, name: str) -> None:
    if name == "fashion":
        arrays = np.load(data / "fashion.npz")
        table = tfr.read_table(data / "fashion.tfrecord")
        for column in ("image", "label"):
            assert table[column].to_pylist() == [array.tobytes() for array in arrays[column]]
        return
    payloads = [base64.b64decode(text) for text in json.loads((data / "bytes.json").read_text())]
    assert tfr.read_table(tfr.dataset(data / "bytes.tfrecord", record_type="bytes"))["record"].to_pylist() == payloads
    assert list(tfr.RecordReader(data / "bytes.tfrecord")) == payloads


def test_text_is_string_and_other_bytes_are_binary(engine: str, tmp_path: Path) -> None:
    plain, control, broken, surrogate = map(blobs, ("tab\tline\r\né".encode(), b"\x1b[0m", b"\xff", b"\xed\xa0\x80"))
    rows = [example(plain=plain, control=control, broken=broken, surrogate=surrogate), example(plain=blobs(b""))]
    path = written(tmp_path / "a", rows)
    types = {f.name: f.type for f in tfr.read_table(path).schema}
    assert types == {"broken": pa.binary(), "control": pa.binary(), "plain": pa.string(), "surrogate": pa.binary()}
    assert tfr.read_table(tfr.dataset(path, infer_text=False)).schema.field("plain").type == pa.binary()


def test_stable_types_depend_on_the_kind_alone(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(b=blobs(b"x"), f=floats(1.0), i=int64s(1)), example()])
    table = tfr.read_table(tfr.dataset(path, stable_types=True))
    assert table.schema.types == [pa.list_(pa.binary()), pa.list_(pa.float32()), pa.list_(pa.int64())]
    assert table.to_pylist() == [{"b": [b"x"], "f": [1.0], "i": [1]}, {"b": None, "f": None, "i": None}]


def test_large_offsets(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(b=blobs(b"\xff"), l=int64s(1, 2), s=blobs(b"x", b"y"), t=blobs(b"t"))])
    table = tfr.read_table(tfr.dataset(path, large_offsets=True))
    assert table.schema.types == [
        pa.large_binary(),
        pa.large_list(pa.int64()),
        pa.large_list(pa.large_string()),
        pa.large_string(),
    ]
    assert table.to_pylist() == [{"b": b"\xff", "l": [1, 2], "s": ["x", "y"], "t": "t"}]


def test_absent_kindless_and_empty_differ(engine: str, tmp_path: Path) -> None:
    kindless = field(1, entry("x", b""))
    path = written(
        tmp_path / "a", [example(), kindless, example(x=field(3, b"")), example(x=int64s(1)), example(y=b"")]
    )
    table = tfr.read_table(path)
    assert table["x"].to_pylist() == [None, None, [], [1], None]
    assert table.schema.field("y").type == pa.null()
    assert table["y"].null_count == 5


def test_a_file_of_empty_records_has_rows_and_no_columns(engine: str, tmp_path: Path) -> None:
    table = tfr.read_table(written(tmp_path / "a", [b""] * 3))
    assert (table.num_rows, table.num_columns) == (3, 0)
    assert len(tfr.read_tfrecord(tmp_path / "a")) == 3


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["id", "a/b"], ["id", "a/b"]),
        ("id", ["id"]),
        (pd.Index(["id", "a/b"]), ["id", "a/b"]),
        (("img*",), ["img1", "img2"]),
        (["*", "!img*"], ["[x]", "a/b", "id"]),
        (["!id", "!img?"], ["[x]", "a/b"]),
        (["[x]"], ["[x]"]),
        (["img*", "!img1"], ["img2"]),
        ([], []),
    ],
)
def test_columns_are_names_globs_and_exclusions(engine: str, tmp_path: Path, columns: Any, names: list[str]) -> None:
    one = {"id": int64s(1), "img1": blobs(b"\xff"), "img2": blobs(b"x"), "a/b": floats(1.0), "[x]": int64s(5)}
    path = written(tmp_path / "a", [example(**one)] * 2)
    for schema in (
        None,
        "infer",
        {name: "binary" if "img" in name else "float32" if "/" in name else "int64" for name in sorted(one)},
    ):
        table = tfr.read_table(path, columns=columns, schema=schema)
        assert table.column_names == names
        assert table.num_rows == 2


def test_columns_that_are_named_like_globs_and_exclusions(tmp_path: Path) -> None:
    tfr.write_tfrecord({"!a": [1], "*": [2], "b": [3]}, tmp_path / "a")
    assert tfr.read_table(tmp_path / "a", columns=["[!]a", "[*]"]).column_names == ["!a", "*"]
    assert tfr.read_table(tmp_path / "a", columns="!!a").column_names == ["*", "b"]
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match=r"'\[!\]a' is the column '!a', and '!a' all columns but 'a'"
    ):
        tfr.read_table(tmp_path / "a", columns=["!a"])


@pytest.mark.parametrize("missing", [["nope"], ["id", "no*"], ["!nope"], ["*", "!no*"]])
def test_a_column_that_matches_nothing_raises_with_the_valid_names(
    engine: str, tmp_path: Path, missing: list[str]
) -> None:
    path = written(tmp_path / "a", [example(id=int64s(1))])
    for schema in (None, {"id": pa.int64()}):
        with pytest.raises(tfr.errors.FeatureNotFoundError, match="valid names: id"):
            tfr.read_table(path, columns=missing, schema=schema)


def test_a_column_left_out_is_never_parsed(engine: str, tmp_path: Path) -> None:
    broken = field(1, field(1, field(1, b"bad") + field(2, b"\x1a\xff\xff")))
    path = written(tmp_path / "a", [example(id=int64s(1)), example(id=int64s(2)) + broken])
    assert tfr.read_table(path, columns=["id"], schema={"id": "int64"}).num_rows == 2
    with pytest.raises(tfr.errors.DecodeError):
        tfr.read_table(path)


@pytest.mark.parametrize("threads", [1, 3])
def test_types_are_exact_over_the_rows_returned(engine: str, tmp_path: Path, threads: int) -> None:
    rows = [
        example(x=int64s(1, 2), t=blobs(b"\xff")),
        *(example(x=int64s(i), t=blobs(b"t")) for i in range(3)),
        example(new=floats(0.5)),
    ]
    path = written(tmp_path / "a", rows)
    assert tfr.read_table(tfr.dataset(path, threads=threads)).schema.types == [
        pa.float32(),
        pa.binary(),
        pa.list_(pa.int64()),
    ]
    some = tfr.read_table(tfr.dataset(path, offset=1, threads=threads), limit=3)
    assert some.to_pylist() == [{"t": "t", "x": i} for i in range(3)]
    assert tfr.read_table(tfr.dataset(path, offset=4, threads=threads)).to_pylist() == [{"new": 0.5}]
    for beyond in ({"offset": 5}, {"offset": 1000}, {"limit": 0}, {"offset": 2, "limit": 0}):
        table = read_by(tfr.read_table, path, threads=threads, **beyond)
        assert (table.num_rows, table.num_columns) == (0, 0)


def test_offset_and_limit_count_over_all_files(engine: str, tmp_path: Path) -> None:
    paths = [written(tmp_path / f"{f}.tfrecord", [example(n=int64s(10 * f + i)) for i in range(4)]) for f in range(3)]
    everything = [10 * f + i for f in range(3) for i in range(4)]
    for offset in range(14):
        for limit in (None, 1, 3, 5, 20):
            got = tfr.read_table(tfr.dataset(paths, offset=offset, threads=1 + offset % 3), limit=limit)
            assert got.to_pydict().get("n", []) == everything[offset:][:limit]
        for on_error in ("raise", "skip"):
            with tfr.open_reader(tfr.dataset(paths, offset=offset, on_error=on_error)) as reader:
                assert reader.read_all().num_rows == reader.report.records == len(everything[offset:])


def test_a_limit_stops_before_later_damage(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(i)) for i in range(3)])
    path.write_bytes(path.read_bytes() + b"junk of some length")
    assert tfr.read_table(path, limit=3)["x"].to_pylist() == [0, 1, 2]
    with tfr.open_reader(path, limit=3) as reader:
        assert reader.read_all().num_rows == 3


def test_check_crc_false_reads_records_with_a_wrong_crc(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(5)), example(x=int64s(6))])
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert tfr.read_table(tfr.dataset(path, check_crc=False))["x"].to_pylist() == [5, 6]
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.read_table(path)


def test_two_kinds_in_one_feature_name_both_records(engine: str, tmp_path: Path) -> None:
    first = written(tmp_path / "one", [example(), example(x=int64s(1)), example(x=int64s(2))])
    second = written(tmp_path / "two", [example(y=int64s(1)), example(x=floats(1.0))])
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table([first, second])
    error = caught.value
    assert (error.feature, error.record, error.path) == ("x", 1, str(second))
    assert (error.expected, error.got) == ("an Int64List", "a FloatList")
    assert f"{first} record 1" in str(error)
    assert f"{second} record 1" in str(error)
    assert tfr.read_table([first, second], columns=["*", "!x"]).column_names == ["y"]
    within = written(tmp_path / "three", [example(x=int64s(1)), example(), example(x=blobs(b"1"))])
    with pytest.raises(tfr.errors.SchemaError, match=r"record 0 .*record 2") as caught:
        tfr.read_table(within)
    assert caught.value.records_intact == 2


def test_an_explicit_record_type_is_obeyed(engine: str, data: Path) -> None:
    context = tfr.read_table(tfr.dataset(data / "sequence.tfrecord", record_type="example"))
    assert context.column_names == ["length", "locale"]
    assert tfr.read_table(tfr.dataset(data / "sequence.tfrecord", record_type="bytes")).num_rows == context.num_rows


def test_periods_and_intervals(engine: str, tmp_path: Path) -> None:
    rows = [
        example(f=floats(1.5), i=int64s(1), n=int64s(1), s=blobs(b"a"), v=int64s(1, 2)),
        example(i=int64s(2), s=blobs(b"b")),
    ]
    path = written(tmp_path / "a", rows)
    frame = tfr.read_tfrecord(path)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == {
        "f": "float32",
        "i": "int64",
        "n": "Int64",
        "s": TEXT_DTYPE,
        "v": "object",
    }
    assert isinstance(frame.v[0], np.ndarray)
    assert frame.v[1] is None
    assert math.isnan(frame.f[1])
    nullable = tfr.read_tfrecord(path, dtype_backend="numpy_nullable").dtypes
    assert [str(nullable[name]) for name in "fins"] == ["Float32", "Int64", "Int64", "string"]
    arrow = tfr.read_tfrecord(path, dtype_backend="pyarrow").dtypes
    assert [arrow[name].pyarrow_dtype for name in "fv"] == [pa.float32(), pa.list_(pa.int64())]


def test_repr_names_files_and_columns(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"x": np.zeros((2, 2, 3), "f4"), "c": np.zeros((2, 2), "c8"), "n": [1, 2]}, path)
    description = f"of {path}: x: tensor<float32>[2,3], c: tensor<complex64>[2], n: int64>"
    with (
        tfr.open_reader(path) as reader,
        tfr.open_random(path) as records,
        tfr.iter_arrays(path, batch_size=1) as batches,
    ):
        assert repr(reader) == f"<Reader {description}"
        assert repr(records) == f"<RandomAccess to 2 records {description}"
        assert repr(batches) == f"<ArrayIterator {description}"
    with tfr.open_reader([path, path]) as reader:
        assert f"{path} and 1 more file: x:" in repr(reader)
    assert repr(tfr.read_metadata(path)).splitlines()[1:] == [
        "column  type",
        "x       tensor<float32>[2,3]",
        "c       tensor<complex64>[2]",
        "n       int64",
    ]


def test_an_error_for_lack_of_memory_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(9)}, path)

    def fail(*_: object, **__: object) -> None:
        raise MemoryError("std::bad_alloc")

    monkeypatch.setattr(BatchBuilder, "batch", fail)
    monkeypatch.setattr(BatchBuilder, "batch_of_values", fail)
    with pytest.raises(MemoryError) as info:
        tfr.read_table(path)
    assert str(info.value).startswith(f"{path}: not enough memory for the rows (std::bad_alloc); choose columns")


@pytest.mark.parametrize("column", [{"a\0b": [1]}, {"x": [{"a\0b": 1}]}])
@pytest.mark.parametrize("way", ["reader", "dataset", "polars", "duckdb"])
def test_names_with_nul_do_not_go_to_other_libraries_without_it(tmp_path: Path, column: Any, way: str) -> None:
    tfr.write_tfrecord(column, tmp_path / "a")
    ways = {
        "reader": lambda: pa.table(tfr.open_reader(tmp_path / "a")),
        "dataset": lambda: pa.table(tfr.dataset(tmp_path / "a")),
        "polars": lambda: tfr.scan_polars(tmp_path / "a"),
        "duckdb": lambda: tfr.dataset(tmp_path / "a").to_duckdb(),
    }
    with pytest.raises(tfr.errors.SchemaError, match="the name has a NUL, at which Arrow ends it") as info:
        ways[way]()
    assert info.value.feature == (name := next(iter(column)))
    assert tfr.read_table(tmp_path / "a").column_names == [name]
