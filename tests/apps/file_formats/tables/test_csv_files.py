"""CSV files: what is written is read back, and what does not fit raises with column and row."""

from __future__ import annotations

import gzip
import random
import re
import subprocess
import sys
import warnings
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from pyarrow import csv

import tfrecord_io as tfr
from limited import set_limits
from rounds import COMPLETE, rounds
from tfrecord_io.apps.file_formats.tables import csv_files
from tfrecord_io.apps.file_formats.tables.csv_files import rows_end
from tfrecord_io.apps.file_formats.tables.table_files import SourceOptions
from tfrecord_io.base import StorageOptions
from transfers import convert_flat

ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | st.floats(width=32),
            "s": st.none() | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
            "b": st.none() | st.booleans(),
        }
    ),
    min_size=1,
    max_size=20,
)
SCHEMA = pa.schema([("n", pa.int64()), ("f", pa.float32()), ("s", pa.string()), ("b", pa.bool_())])
TYPES = {"n": "int64", "f": "float32", "s": "string", "b": "bool"}


@settings(max_examples=rounds(60), derandomize=True, deadline=None)
@given(rows=ROWS, delimiter=st.sampled_from([None, ";", "\t"]))
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Any, delimiter: Any) -> None:
    folder = tmp_path_factory.mktemp("csv")
    table = pa.Table.from_pylist(rows, SCHEMA)
    tfr.write_tfrecord(table, folder / "a.tfrecord")
    tfr.convert(folder / "a.tfrecord", folder / "a.csv", target_options={"delimiter": delimiter})
    tfr.convert(
        folder / "a.csv", folder / "b.tfrecord", source_options={"delimiter": delimiter, "schema_overrides": TYPES}
    )
    actual = tfr.read_table(folder / "b.tfrecord")
    assert repr(actual.to_pylist()) == repr(table.to_pylist())  # NaN too
    assert actual.schema.equals(table.schema)


@settings(max_examples=rounds(40), derandomize=True, deadline=None)
@example(rows=[{"n": None, "f": np.inf, "s": None, "b": None}], encoding="utf-8-sig", suffix="jsonl")
@given(rows=ROWS, encoding=st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]), suffix=st.sampled_from(["csv", "jsonl"]))
def test_text_with_a_byte_order_mark(
    tmp_path_factory: pytest.TempPathFactory, rows: Any, encoding: str, suffix: str
) -> None:
    folder = tmp_path_factory.mktemp("marks")
    tfr.write_tfrecord(pa.Table.from_pylist(rows, SCHEMA), folder / "a.tfrecord")
    tfr.convert(folder / "a.tfrecord", folder / f"a.{suffix}")
    (folder / f"b.{suffix}").write_bytes((folder / f"a.{suffix}").read_bytes().decode().encode(encoding))
    for name in "ab":
        tfr.convert(
            folder / f"{name}.{suffix}", folder / f"{name}.arrow.tfrecord", source_options={"schema_overrides": TYPES}
        )
    a, b = ((folder / f"{name}.arrow.tfrecord").read_bytes() for name in "ab")
    assert a == b


def test_large_text_in_utf_16(tmp_path: Path) -> None:
    """Characters of one to four bytes in UTF-8, over the limits of buffers."""
    values = ["aé日😀" * (i % 300) for i in range(20_000)]
    (tmp_path / "a.csv").write_bytes("\r\n".join(["s", *(f'"{value}"' for value in values)]).encode("utf-16"))
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["s"].to_pylist() == values


@pytest.mark.parametrize("data", [b"a,b\n"[::-1] + b"\n", "a,b\n1,2\n".encode("utf-16-le")[:-1], b"a\0\n\0\0\xd8x\0"])
def test_text_that_is_not_as_its_byte_order_mark_says(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe" + data)
    with pytest.raises(tfr.errors.DecodeError, match=r"a\.csv: .*byte order mark says UTF-16"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")


@pytest.mark.parametrize("values", [[1, None, 3, None], [None, "", "a"], [None, None]])
def test_one_column_keeps_missing_values(tmp_path: Path, values: list[Any]) -> None:
    tfr.write_tfrecord(pa.table({"x": values}), tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv")
    tfr.convert(tmp_path / "a.csv", tmp_path / "b.tfrecord")
    assert tfr.read_table(tmp_path / "b.tfrecord")["x"].to_pylist() == values


def test_pandas_reads_what_is_written(tmp_path: Path) -> None:
    frame = pd.DataFrame({"name": ["Ada", 'a "b", c'], "n": [1, 2], "t": pd.to_datetime(["2020-01-01", "2021-02-03"])})
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv.gz")
    read = pd.read_csv(tmp_path / "a.csv.gz", parse_dates=["t"])
    assert read.to_dict("list") == frame.to_dict("list")


def test_types_are_inferred_and_declared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("zip,x,day,ok,when\n00123,1.5,2020-01-02,true,2020-01-02 03:04:05\n,,,,\n")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    read = tfr.read_table(tmp_path / "a.tfrecord")
    assert [str(type_) for type_ in read.schema.types] == ["int64", "double", "date32[day]", "bool", "timestamp[s]"]
    assert read["zip"].to_pylist() == [123, None]
    tfr.convert(
        tmp_path / "a.csv",
        tmp_path / "a.tfrecord",
        source_options={"schema_overrides": {"z*": "string", "x": "float32"}},
    )
    assert tfr.read_table(tmp_path / "a.tfrecord")["zip"].to_pylist() == ["00123", None]
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", schema={"day": "string", "zip": "string"})
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist()[0] == {"day": "2020-01-02", "zip": "00123"}


def test_columns_are_selected_in_both_directions(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,x,2\n")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", columns=["c", "a"])
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [{"c": 2, "a": 1}]
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b.csv", columns=["!a"])
    assert (tmp_path / "b.csv").read_text() == '"c"\n2\n'
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", columns=["z"])
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"z": "string"}})


def test_numbers_with_a_decimal_comma(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;n;d;t\n1,5;1;0,25;1.5\n-0,125;2;1,00;a\n1e3;3;2,50;b\n")
    options = {"delimiter": ";", "decimal_point": ",", "schema_overrides": {"d": pa.decimal128(5, 2)}}
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options=options, float64="raw")
    table = tfr.read_table(tmp_path / "a.tfrecord")
    assert table["x"].to_pylist() == [1.5, -0.125, 1000.0]
    assert [str(value) for value in table["d"].to_pylist()] == ["0.25", "1.00", "2.50"]
    assert table["t"].to_pylist() == ["1.5", "a", "b"]  # a text
    (tmp_path / "b.csv").write_text("x;y\n1,5;a\n1,5e400;b\n")
    with pytest.raises(tfr.errors.DecodeError, match="record 1: feature 'x': the number is too large for double"):
        tfr.convert(tmp_path / "b.csv", tmp_path / "b.tfrecord", source_options=options | {"schema_overrides": None})
    for point, message in ((",", "is the delimiter, too"), ("·", "expected '.' or ','")):
        with pytest.raises(ValueError, match=message):
            tfr.convert(tmp_path / "a.csv", tmp_path / "b.tfrecord", source_options={"decimal_point": point})


def test_cells_that_are_missing_values_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,s\nNA,NA\n1,"NA"\n,""\n')
    with pytest.raises(TypeError, match="expected a list"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"null_values": "NA"})
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"null_values": ["", "NA"]})
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {"x": [None, 1, None], "s": [None, "NA", ""]}
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == ["NA", "1", None]


@pytest.mark.parametrize(
    "column", [[[1, 2]], [b"\xff\x00"], [{"a": 1}], pa.array([b"text"]), pa.FixedShapeTensorArray.from_numpy_ndarray]
)
def test_columns_that_csv_cannot_hold_are_refused(tmp_path: Path, column: Any) -> None:
    if callable(column):
        column = column(np.zeros((1, 2, 2), np.float32))
    tfr.write_tfrecord(pa.table({"ok": [1], "x": column}), tmp_path / "a.tfrecord")
    name = "x/a" if isinstance(column, list) and isinstance(column[0], dict) else "x"
    if name == "x":
        with pytest.raises(
            tfr.errors.EncodeError, match=r"exclude the column with columns=, or write JSON lines"
        ) as caught:
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv")
        assert caught.value.feature == "x"
        assert not (tmp_path / "a.csv").exists()
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv", columns=["!x"])
    assert (tmp_path / "a.csv").read_text() == '"ok"\n1\n'


@pytest.mark.parametrize(
    ("content", "record", "feature", "reason"),
    [
        ("a,b\n" + "1,2\n" * 10 + "1,x\n", 10, "b", "does not fit the column's type.*schema_overrides"),
        ("a,b\n1,2\n1,2,3\n", 1, None, "Expected 2 columns, got 3.*delimiter"),
        ("", None, None, "Empty CSV file"),
        ('a\n"' + "x" * 3000, None, None, "a row is longer than|not a file of the format CSV"),
    ],
)
def test_damage_names_row_and_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, record: Any, feature: Any, reason: str
) -> None:
    set_limits(monkeypatch, text_block_bytes=24)
    monkeypatch.setattr(csv_files, "_STREAMED_BYTES", 24)
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(tmp_path / "a.csv"), record, feature)
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.parametrize("text", ['2,"5 feet\n3,x\n4,y\n', '2,"5 feet', '2,"a""\n'])
def test_quotes_without_an_end_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.csv").write_text(f"id,text\n1,ok\n{text}")
    with pytest.raises(tfr.errors.DecodeError, match=r"a quoted cell in the row that begins with '2,.* has no end"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


@pytest.mark.parametrize("last", ['2,"5 feet"', '2,5" feet', '2,"a""b"', '2,"x\n"', "2,x\r", '2,""'])
def test_quotes_that_have_one_are_read(tmp_path: Path, last: str) -> None:
    (tmp_path / "a.csv").write_bytes(f"id,text\n1,ok\n{last}".encode())
    assert tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord").records == 2


def test_a_header_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("größe,b\n1,2\n".encode("latin1"))
    with pytest.raises(tfr.errors.DecodeError, match=r"the header is not UTF-8.*iconv -f latin1") as caught:
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert caught.value.path == str(tmp_path / "a.csv")


def test_keywords_of_csv_are_refused_for_other_formats(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    for keywords in ({"delimiter": ";"}, {"null_values": ["NA"]}):
        with pytest.raises(TypeError, match="which TFRecord does not have"):
            convert_flat(tmp_path / "a.tfrecord", tmp_path / "a.parquet", **keywords)
    for delimiter in ("", "ab", '"', "ä", "\n"):
        with pytest.raises(ValueError, match="expected one ASCII character"):
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv", target_options={"delimiter": delimiter})


def test_large_files_are_streamed() -> None:
    fs = MemoryFileSystem()
    rows = "".join(f"{i},{random.Random(i).random()}\n" for i in range(100_000))
    fs.pipe("/large.csv", ("i,x\n" + rows * 8).encode())
    with csv_files.csv_source(["/large.csv"], SourceOptions(StorageOptions(None, fs))).open() as reader:
        sizes = [batch.nbytes for batch in reader]
    assert sum(sizes) == 800_000 * 16
    assert max(sizes) < 8 << 20


def test_files_without_rows_before_others_have_no_types(tmp_path: Path) -> None:
    """As Spark writes them for partitions without rows."""
    for name, rows in (("0", ""), ("1", ",\n"), ("2", "1,x\n"), ("3", "")):
        (tmp_path / f"{name}.csv").write_text(f"n,s\n{rows}")
    tfr.convert(tmp_path, tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [{"n": None, "s": None}, {"n": 1, "s": "x"}]
    (tmp_path / "0.csv").write_text("n,other\n")
    with pytest.raises(tfr.errors.SchemaError, match=r"0\.csv: feature 'other'.*absent in '.*2\.csv'"):
        tfr.convert(tmp_path, tmp_path / "b.tfrecord", source_format="csv")


def test_integers_beyond_int64_are_refused_or_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,id\n1,9007199254740993\n2,\n3,9223372036854775808\n")
    with pytest.raises(
        tfr.errors.DecodeError, match=r"9223372036854775808.*schema_overrides\W+id': 'string'\}"
    ) as caught:
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", float64="raw")
    assert caught.value.feature == "id"
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", columns=["n"])
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"id": "string"}})
    expected = ["9007199254740993", None, "9223372036854775808"]
    assert tfr.read_table(tmp_path / "a.tfrecord")["id"].to_pylist() == expected
    (tmp_path / "a.csv").write_text("id\n9223372036854775808\n1e30\n")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", float64="raw")


def _rows(data: bytes) -> list[list[str]] | None:
    """The rows as pyarrow reads them; None if it refuses them."""
    parsing = csv.ParseOptions(newlines_in_values=True)
    types = csv.ConvertOptions(column_types={"a": pa.string(), "b": pa.string()})
    try:
        read = csv.read_csv(pa.BufferReader(b"a,b\n" + data), parse_options=parsing, convert_options=types)
    except pa.ArrowInvalid:
        return None
    return [list(row.values()) for row in read.to_pylist()]


@settings(max_examples=rounds(2000), deadline=None)
@given(st.text('ab",\n\r', max_size=40).map(str.encode), st.integers(0, 40))
def test_blocks_of_whole_rows_have_the_rows_of_the_file(data: bytes, size: int) -> None:
    rows = _rows(data)
    assume(rows is not None)
    end = rows_end(data[:size], ",")
    before, after = _rows(data[:end]), _rows(data[end:])
    assert before is not None
    assert after is not None
    assert before + after == rows


@settings(max_examples=rounds(500), deadline=None)
@given(st.lists(st.tuples(*[st.text('ab",\n\r', max_size=5)] * 2), min_size=1, max_size=9), st.integers(1, 99))
def test_blocks_end_with_the_last_whole_row(rows: list[tuple[str, str]], size: int) -> None:
    lines = [",".join('"' + cell.replace('"', '""') + '"' for cell in row).encode() + b"\n" for row in rows]
    ends = [0, *np.cumsum([len(line) for line in lines]).tolist()]
    assert rows_end(b"".join(lines)[:size], ",") == max(end for end in ends if end <= size)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.storm
def test_a_process_ends_after_a_failed_conversion(tmp_path: Path, suffix: str) -> None:
    """No thread of pyarrow calls Python, which it would do while the interpreter ends."""
    lines = "".join(["a,b\n", *["1,2\n"] * 2000, "1,2,3\n", *["1,2\n"] * 1_000_000])
    write = gzip.compress if suffix.endswith("gz") else bytes
    (tmp_path / f"a.{suffix}").write_bytes(write(lines.encode()))
    program = "import sys, tfrecord_io as t\ntry:\n t.convert(*sys.argv[1:])\nexcept t.TFRecordError as e:\n print(e)"
    command = [sys.executable, "-c", program, str(tmp_path / f"a.{suffix}"), str(tmp_path / "a.tfrecord")]
    for _ in range(250 if COMPLETE else 1):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        assert "record 2000: Expected 2 columns, got 3" in done.stdout
        assert not done.stderr


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize("begin", ["\n", "\r\n", "\n\n\n", "\ufeff\n", "\ufeff\r\n\r\n"])
def test_empty_lines_before_the_header_are_left_out(tmp_path: Path, suffix: str, begin: str) -> None:
    """In one column, those behind the header are missing values."""
    path = tmp_path / f"x.{suffix}"
    path.write_bytes(f"{begin}x\n1\n\n2\n".encode())
    tfr.convert(path, tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord").to_pydict() == {"x": [1, None, 2]}
    path.write_bytes(f"{begin}x\n1\ny\n".encode())
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.convert(path, tmp_path / "x.tfrecord", source_options={"schema_overrides": {"x": "int64"}})
    assert caught.value.record == 1


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_one_column_that_looks_like_several_is_a_warning(tmp_path: Path, mark: str) -> None:
    (tmp_path / "x.csv").write_text(f"a{mark}b\n1{mark}2\n")
    with pytest.warns(
        tfr.errors.SchemaWarning, match=r"x\.csv: one column, .*pass source_options=.*delimiter"
    ) as warned:
        tfr.convert(tmp_path / "x.csv", tmp_path / "x.tfrecord")
    assert repr(mark) in str(warned[0].message)
    tfr.convert(tmp_path / "x.csv", tmp_path / "y.tfrecord", source_options={"delimiter": mark})
    assert tfr.read_table(tmp_path / "y.tfrecord").to_pylist() == [{"a": 1, "b": 2}]


@pytest.mark.parametrize("header", ["a,b", "a,b\n", "\n\na,b\r", '"a","b\n"', "a"])
def test_a_header_alone_has_columns_and_no_rows(tmp_path: Path, header: str) -> None:
    (tmp_path / "x.csv").write_bytes(header.encode())
    (tmp_path / "rows.csv").write_bytes((header.rstrip("\r\n") + "\n1,2"[: 2 * len(header.split(","))]).encode())
    names = [name.strip() for name in header.strip().replace('"', "").split(",")]
    for path, rows in ((tmp_path / "x.csv", 0), (tmp_path / "rows.csv", 1)):
        with csv_files.csv_source([str(path)], SourceOptions()).open() as read:
            table = read.read_all()
        assert ([name.strip() for name in table.column_names], table.num_rows) == (names, rows)


cells = st.sampled_from(
    [
        "0",
        "-0",
        "7",
        "007",
        "-01",
        "+02",
        " 03",
        "0.5",
        "00.5",
        "1e3",
        '"04"',
        '"0"',
        "",
        "08:30:00",
        "a,0",
        "0x1F",
        "0x",
    ]
)


@given(
    columns=st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=3), block=st.sampled_from([None, 40])
)
def test_leading_zeros_are_lost_with_a_warning_only(
    tmp_path_factory: pytest.TempPathFactory, columns: list[list[str]], block: int | None
) -> None:
    """Whatever the rows, their quotes and the blocks: a column of numbers warns if a cell of it begins so."""
    path = tmp_path_factory.mktemp("zeros") / "a.csv"
    rows = list(zip(*(column * 20 for column in columns), strict=False))
    quoted = [[f'"{cell}"' if "," in cell else cell for cell in row] for row in rows]
    names = [f"c{number}" for number in range(len(columns))]
    lines = [names, *quoted]
    path.write_text("".join(",".join([*line, "end"]) + "\n" for line in lines))
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if block is not None:
            patch.setattr(csv_files, "_STREAMED_BYTES", block)
        with csv_files.csv_source([str(path)], SourceOptions()).open() as stream:
            table = pa.Table.from_batches(list(stream), stream.schema)
    named = {name for name in names for warning in caught if f"column '{name}'" in str(warning.message)}
    assert len(caught) == len(named)
    texts = dict(zip(names, zip(*rows, strict=True), strict=True))
    for name in names:
        is_number = pa.types.is_integer(table.schema.field(name).type) or pa.types.is_floating(
            table.schema.field(name).type
        )
        has_zeros = any(re.match(r"\s*[+-]?0[\dxX]", cell.strip('"')) for cell in texts[name])
        assert (name in named) is (is_number and has_zeros)


@pytest.mark.parametrize(
    ("cell", "form", "number"), [("01234", "leading zeros", 1234), ("0xff", "hexadecimal form", 255)]
)
def test_the_warning_about_leading_zeros_says_how_to_keep_them(
    tmp_path: Path, cell: str, form: str, number: int
) -> None:
    (tmp_path / "a.csv").write_text(f"name,zip\nAda,{cell}\nAlan,7\n")
    with pytest.warns(
        tfr.errors.SchemaWarning, match=rf"column 'zip': '{cell}' and others lose their {form}.*zip': 'string'"
    ) as caught:
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord")
    assert len(caught) == 1
    for type_, values in (("string", [cell, "7"]), ("int64", [number, 7])):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            tfr.convert(
                tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"zip": type_}}
            )
        assert tfr.read_table(tmp_path / "a.tfrecord")["zip"].to_pylist() == values


@pytest.mark.parametrize(
    ("type_", "first", "beyond"),
    [
        (pa.timestamp("s"), -62_167_219_200, 253_402_300_800),
        (pa.timestamp("us", "UTC"), -62_167_219_200 * 10**6, 2**62),
        (pa.date32(), -719_528, 2**31 - 1),
        (pa.dictionary(pa.int8(), pa.timestamp("s")), 0, -62_167_219_201),
        (pa.timestamp("s", "Europe/Berlin"), -2_000_000_000, -5_000_000_000),  # 53 minutes and 28 seconds from UTC
        (pa.timestamp("ns", "Europe/Berlin"), 2**62, -(2**62)),
        (pa.timestamp("s", "Europe/Berlin"), 253_402_297_199, 253_402_297_200),  # where the year 10000 begins
    ],
)
def test_times_without_a_form_in_csv_are_refused(tmp_path: Path, type_: pa.DataType, first: int, beyond: int) -> None:
    """pyarrow writes them as text such as ``<value out of range: 2147483647>``, or without the seconds of an offset."""
    plain = type_.value_type if pa.types.is_dictionary(type_) else type_
    integers = pa.int32() if plain.bit_width == 32 else pa.int64()
    for numbers, is_refused in (([first, None, 0], False), ([0, None, beyond], True)):
        column = pa.array(numbers, integers).view(plain)
        column = column if plain == type_ else column.dictionary_encode().cast(type_)
        tfr.write_tfrecord(pa.table({"n": [1, 2, 3], "x": column}), tmp_path / "a.tfrecord", mode="overwrite")
        if not is_refused:
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv")
            assert "out of range" not in (tmp_path / "a.csv").read_text()
            continue
        with pytest.raises(tfr.errors.EncodeError, match=r"record 2: feature 'x': a value of this .* is out of range"):
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b.csv")
        assert not (tmp_path / "b.csv").exists()


@pytest.mark.parametrize("type_", [pa.decimal32(9, 4), pa.decimal64(18, 3), pa.decimal256(76, 20)], ids=str)
def test_decimals_that_are_declared_are_not_rounded(tmp_path: Path, type_: pa.DataType) -> None:
    text = "12345.6789" if type_.precision == 9 else "123456789012345.678"
    (tmp_path / "a.csv").write_text(f"x\n{text}\n1.1\n")
    tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", schema=pa.schema({"x": type_}))
    assert tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist() == [Decimal(text), Decimal("1.1")]


CATEGORIES = [
    pa.array([5, None, 5, -7], pa.int16()),
    pa.array([0.5, None, 1e9], pa.float32()),
    pa.array([True, None, False]),
    pa.array([0, None, 9_000], pa.date32()),
    pa.array([0, None, 1], pa.timestamp("us")),
    pa.array(["a", None, "b"]),
]


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
@pytest.mark.parametrize("index", [pa.int8(), pa.int32()], ids=str)
@pytest.mark.parametrize("values", CATEGORIES, ids=lambda values: str(values.type))
def test_categories_are_read_back_with_their_schema(
    tmp_path: Path, values: pa.Array, index: pa.DataType, suffix: str
) -> None:
    column = values.dictionary_encode().cast(pa.dictionary(index, values.type))
    tfr.write_tfrecord(pa.table({"c": column, "n": range(len(column))}), tmp_path / "a.tfrecord")
    table = tfr.read_table(tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / f"a.{suffix}")
    tfr.convert(tmp_path / f"a.{suffix}", tmp_path / "b.tfrecord", schema=table.schema)
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(table)
