"""JSON lines: what is written is read back, and what does not fit raises with its row."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from nested_tables import values_of
from rounds import rounds
from servers import Bucket
from tfrecord_io.apps.file_formats.tables import json_files

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
FLOATS = st.floats(width=32)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.none() | st.integers(-(2**63), 2**63 - 1),
            "f": st.none() | FLOATS,
            "s": st.none() | TEXT,
            "b": st.none() | st.binary(),
            "lists": st.none() | st.lists(FLOATS),
            "blobs": st.none() | st.lists(st.binary()),
            "day": st.none() | st.dates(),
            "times": st.none() | st.lists(st.times().map(lambda time: time.replace(fold=0)), min_size=1),
        }
    ),
    min_size=1,
    max_size=20,
)
TYPES = {"n": "int64", "f": "float32", "s": "string", "b": "binary", "lists": "list<float>", "blobs": "list<binary>"}
TYPES |= {"day": "date32", "times": "list<time64[us]>"}


@settings(max_examples=rounds(40), derandomize=True, deadline=None)
@given(rows=ROWS)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Any) -> None:
    folder = tmp_path_factory.mktemp("json")
    tfr.write_tfrecord(pa.Table.from_pylist(rows), folder / "a.tfrecord", schema=TYPES)
    tfr.convert(folder / "a.tfrecord", folder / "a.jsonl")
    assert len((folder / "a.jsonl").read_text("utf-8").split("\n")) == len(rows) + 1
    tfr.convert(folder / "a.jsonl", folder / "b.tfrecord", schema=TYPES)
    expected = [{name: row[name] for name in TYPES} for row in rows]
    assert repr(tfr.read_table(folder / "b.tfrecord").to_pylist()) == repr(expected)  # NaN too


def test_types_are_inferred(tmp_path: Path) -> None:
    lines = [
        {"n": 1, "x": 1, "day": "2020-01-01", "tags": ["a"], "raw": {"base64": "AP8="}, "box": {"w": 1, "h": 2.5}},
        {"n": None, "x": 2.5, "day": "2021-01-01", "tags": [], "box": None},
    ]
    (tmp_path / "a.json").write_text("\n\n".join(map(json.dumps, lines)))
    tfr.convert(tmp_path / "a.json", tmp_path / "a.tfrecord", float64="raw")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [
        {**lines[0], "raw": b"\x00\xff"},
        {**lines[1], "raw": None},
    ]


def test_types_are_declared(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"t": "2020-01-01 10:00:00", "n": 1, "c": "x"}\n')
    types = {"t": "timestamp[s]", "n": "int8", "c": pa.dictionary(pa.int32(), pa.string())}
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options={"schema_overrides": types})
    read = tfr.read_table(tmp_path / "a.tfrecord")
    assert [str(type_) for type_ in read.schema.types][:2] == ["timestamp[s]", "int8"]
    assert pa.types.is_dictionary(read.schema.field("c").type)
    tensor = tfr.tensor("float32", (2, 2))
    with pytest.raises(tfr.errors.SchemaError, match="cannot hold"):
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"n": tensor}})


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        *((type_, text, text) for type_, text in (("time32[s]", "12:3"), ("date32", "2024-1-2"))),
        *(("time64[us]", text, text) for text in ("noon", "12:30Z")),
        *(("duration[s]", text, "duration") for text in ("1 fortnight", "0:00:0.5", "", "P1Y", "5", "0:00:00.5")),
        ("duration[s]", "99999999999999999999 seconds", "duration"),
        ("timestamp[ms]", "2020-01-01T00:00:00.0005", "would lose data"),
    ],
)
def test_text_that_is_no_time_of_its_type_is_refused(tmp_path: Path, type_: str, text: str, reason: str) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"x": text}) + "\n")
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"x": type_}})
    assert caught.value.path == str(tmp_path / "a.jsonl")


def test_a_schema_names_columns_that_the_first_lines_lack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, text_block_bytes=16)
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n' * 5 + '{"a": 2, "b": "x"}\n')
    with pytest.raises(tfr.errors.DecodeError, match=r"a field that the first lines do not have.*schema=") as caught:
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")
    assert caught.value.path == str(tmp_path / "a.jsonl")
    assert not (tmp_path / "a.tfrecord").exists()
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", schema={"b": "string"})
    assert tfr.read_table(tmp_path / "a.tfrecord")["b"].to_pylist() == [None] * 5 + ["x"]


def test_a_tensor_becomes_nested_lists_and_back(tmp_path: Path) -> None:
    rows = pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8, dtype=np.float32).reshape(2, 2, 2))
    tfr.write_tfrecord(pa.table({"x": rows}), tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.jsonl.gz")
    lines = gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).decode().splitlines()
    assert json.loads(lines[1]) == {"x": [[4, 5], [6, 7]]}


@pytest.mark.parametrize(
    ("content", "record", "reason"),
    [
        ('{"a": 1}\n' * 3 + '{"a": "x"}\n', 3, "changed from number to string.*schema_overrides"),
        ('{"a": 1}\n' * 3 + '{"a": 1\n', 3, "Missing a comma"),
        ('{"a": 1}\n{"a":', 1, "not valid JSON: Invalid value$"),
        ('[{"a": 1}]\n', 0, "a line is not an object.*jq"),
        ('{"a": "\udcff"}\n', None, "UTF-?8"),
        ('{"a": 1, "a": 2}\n', 0, "specified twice"),
        ('{"a": {"base64": "?"}}\n', None, "is not base64"),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}\n", 0, "more than 100 levels"),
        ('{"x": 1}\n{"a": ' + '{"a": ' * 500_000 + "\n", 1, "more than 100 levels"),
        ('{"a": 1}\n{"a": ' + "[\n" * 300_000 + "]\n" * 300_000 + "}\n", 1, "more than 100 levels"),
        ('{"a": "\\\\"}\n{"b": "]}\\"", "a": ' + "[\n" * 101, 1, "more than 100 levels"),
        ('{"a": 1}\n{"a": [1]}\n', 1, "changed from number to array.*convert the values"),
        ('{"a": NaN}\n{"a": "NaN", "a": 1}\n', 1, "specified twice|changed from"),
    ],
)
def test_damage_names_the_row(tmp_path: Path, content: str, record: int | None, reason: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")
    assert (caught.value.path, caught.value.record) == (str(tmp_path / "a.jsonl"), record)
    assert not (tmp_path / "a.tfrecord").exists()


def test_brackets_in_text_and_long_lists_are_not_nesting(tmp_path: Path) -> None:
    rows = [{"s": '[{"\\' * 300, "o": [{"a": i} for i in range(300)]}]
    (tmp_path / "a.jsonl").write_text(json.dumps(rows[0]))
    blocks = list(json_files.line_blocks((tmp_path / "a.jsonl").open("rb"), "a"))
    assert [block.row for block in blocks] == [0]


def test_lines_are_not_split_between_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"n": i, "s": "x" * (i % 50)} for i in range(200)]
    text = "\n".join(map(json.dumps, rows))
    for size in (1, 7, 64, 1000):
        set_limits(monkeypatch, text_block_bytes=size)
        for end in ("", "\n", "\n\n \n"):
            (tmp_path / "a.jsonl").write_text(text + end)
            tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")
            assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == rows
    set_limits(monkeypatch, text_block_bytes=10)
    monkeypatch.setattr(json_files, "_LINE_BYTES", 30)
    with pytest.raises(tfr.errors.DecodeError, match="a line is longer"):
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")


def test_several_files_are_concatenated(tmp_path: Path, bucket: Bucket) -> None:
    for i in range(3):
        bucket.fs.pipe(bucket.url(f"j/{i}.ndjson"), f'{{"n": {i}}}\n'.encode() if i != 1 else b"\n")
    tfr.convert(bucket.url("j"), tmp_path / "a.tfrecord", storage_options=bucket.storage_options)
    assert tfr.read_table(tmp_path / "a.tfrecord")["n"].to_pylist() == [0, 2]
    tfr.convert(tmp_path / "a.tfrecord", bucket.url("b.jsonl"), storage_options=bucket.storage_options)
    assert bucket.fs.cat(bucket.url("b.jsonl")) == b'{"n": 0}\n{"n": 2}\n'


def test_rows_without_fields_are_kept(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n" * 3)
    assert tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord").records == 3
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "b.jsonl")
    assert (tmp_path / "b.jsonl").read_text() == "{}\n" * 3
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(tfr.errors.EncodeError, match=r"without columns.*\.jsonl"):
            tfr.convert(tmp_path / "a.tfrecord", tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("line", "declared", "read"),
    [
        ('{"id": %s}', "string", "%s"),
        ('{"id": [1, %s]}', "list<string>", ["1", "%s"]),
        ('{"id": {"x": %s}}', "struct<x: string>", {"x": "%s"}),
    ],
)
def test_integers_beyond_int64_are_refused_or_text(tmp_path: Path, line: str, declared: str, read: Any) -> None:
    values = ["9007199254740993", "-9223372036854775809"]
    (tmp_path / "a.jsonl").write_text("\n".join(line % value for value in values))
    with pytest.raises(tfr.errors.DecodeError, match=values[1]) as caught:
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", float64="raw")
    assert caught.value.feature == "id"
    assert f"'id': '{declared}'" in str(caught.value)
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"id": declared}})
    rows = tfr.read_table(tmp_path / "a.tfrecord")["id"].to_pylist()
    assert repr(rows) == repr([json.loads(json.dumps(read).replace("%s", value)) for value in values])
    (tmp_path / "a.jsonl").write_text("\n".join(line % value for value in ["1.5", "-9223372036854775808", "1e30"]))
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", float64="raw")


def test_numbers_are_text_where_text_is_declared(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1.50}\n{"a": "x"}\n{"a": null}\n')
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options={"schema_overrides": {"a": "string"}})
    assert tfr.read_table(tmp_path / "a.tfrecord")["a"].to_pylist() == ["1.50", "x", None]


def test_text_nan_beside_nan_stays_text(tmp_path: Path) -> None:
    for text in ("NaN", "x"):
        lines = [{"f": 1.5, "s": "NaN"}, {"f": "NaN", "s": text}]
        (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, lines)))
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", float64="raw")
        rows = tfr.read_table(tmp_path / "a.tfrecord").to_pylist()
        assert repr(rows) == repr([{"f": 1.5, "s": "NaN"}, {"f": float("nan"), "s": text}])


@pytest.mark.parametrize(
    "values",
    [
        [[None, None]],
        [[None], [None, None], [], None],
        [{"t": [None, None, None]}],
        [[[None, None], None], []],
        [[{"t": [None, None]}, None], None],
        [[None, None], [1, None]],  # pyarrow alone loses the first nulls
        [[[None, None], ["x"]]],
        [[None, None, {"t": 1.5}]],
    ],
    ids=str,
)
def test_lists_that_begin_with_nulls(tmp_path: Path, values: list[Any]) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"b": value}) + "\n" for value in values))
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", float64="raw")
    assert tfr.read_table(tmp_path / "a.tfrecord")["b"].to_pylist() == values


def test_float16_is_declared_at_any_depth(tmp_path: Path) -> None:
    half = np.array([0.5, -65504, 2], np.float16)
    columns = {"x": half, "list": pa.array([half, [], None], pa.list_(pa.float16())), "of": [{"k": h} for h in half]}
    tfr.write_tfrecord(pa.table(columns), tmp_path / "a.tfrecord")
    table = tfr.read_table(tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.jsonl")
    types = dict(zip(table.schema.names, table.schema.types, strict=True))
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "b.tfrecord", source_options={"schema_overrides": types})
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(table)
    (tmp_path / "x.jsonl").write_text('{"x": [1.5, 65519]}\n{"x": [65520]}\n')
    with pytest.raises(tfr.errors.DecodeError, match="a number is too large for float16"):
        tfr.convert(tmp_path / "x.jsonl", tmp_path / "x.tfrecord", schema={"x": "list<float16>"})


UNITS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


@given(
    unit=st.sampled_from(list(UNITS)),
    values=st.lists(
        st.none() | st.integers(-(2**63) + 1, 2**63 - 1) | st.integers(-(10**6), 10**6), min_size=1, max_size=5
    ),
    inside=st.sampled_from(["value", "list", "struct"]),
)
def test_durations_are_read_as_they_are_written(unit: str, values: list[int | None], inside: str) -> None:
    """Durations of every size: Python, NumPy and pandas write three forms."""
    type_ = pa.duration(unit)
    column = pa.array(values, pa.int64()).view(type_)
    if inside == "list":
        column = pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), column.fill_null(0))
    elif inside == "struct":
        column = pa.StructArray.from_arrays([column, pa.array(range(len(values)))], ["d", "n"])
    table = pa.table({"x": column, "k": range(len(column))})
    with tempfile.TemporaryDirectory() as folder:
        tfr.write_tfrecord(table, f"{folder}/a.tfrecord")
        tfr.convert(f"{folder}/a.tfrecord", f"{folder}/a.jsonl")
        tfr.convert(f"{folder}/a.jsonl", f"{folder}/b.tfrecord", schema=table.schema)
        assert tfr.read_table(f"{folder}/b.tfrecord").equals(tfr.read_table(f"{folder}/a.tfrecord"))


@pytest.mark.parametrize(
    "column",
    [
        pa.array([-1, None, 1000], pa.timestamp("ms")),
        pa.array([-1, 0, 1], pa.timestamp("ms", "America/New_York")),
        pa.array([1, None, 3000], pa.time32("ms")),
        pa.array([[1, 2], None, []], pa.list_(pa.timestamp("ms"))),
    ],
    ids=lambda column: str(column.type),
)
def test_milliseconds_are_read_as_they_are_written(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"x": column})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.jsonl")
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "b.tfrecord", schema=table.schema)
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(table)


@given(st.integers(-62 * 10**9, 250 * 10**9), st.sampled_from(["Europe/Amsterdam", "Asia/Kolkata", "+05:30", "UTC"]))
def test_times_of_each_offset_are_read_as_they_are_written(
    tmp_path_factory: pytest.TempPathFactory, seconds: int, zone: str
) -> None:
    """Before zones, offsets had seconds, which ISO 8601 does not."""
    folder = tmp_path_factory.mktemp("json")
    type_ = pa.timestamp("s", zone)
    table = pa.table({"x": pa.array([seconds], type_), "list": pa.array([[seconds]], pa.list_(type_))})
    tfr.write_tfrecord(table, folder / "a.tfrecord")
    tfr.convert(folder / "a.tfrecord", folder / "a.jsonl")
    tfr.convert(folder / "a.jsonl", folder / "b.tfrecord", schema=table.schema)
    assert tfr.read_table(folder / "b.tfrecord").equals(table)


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        ("timestamp[s]", '"2024-01-01T02:00:00+02:00"', "expected no zone offset"),
        ("list<timestamp[us]>", '["2024-01-01T02:00:00Z"]', "expected no zone offset"),
        ("timestamp[s, Europe/Berlin]", '"2024-01-01T02:00:00"', "expected a zone offset"),
        ("timestamp[ns, UTC]", '"2024-01-01"', "expected a zone offset"),
    ],
)
def test_times_have_an_offset_where_their_type_has_a_zone(tmp_path: Path, type_: str, text: str, reason: str) -> None:
    """The hours of UTC were taken for those of a type without a zone, and the other way round."""
    (tmp_path / "a.jsonl").write_text(f'{{"x": {text}}}\n')
    for options in ({"schema_overrides": {"x": type_}}, {"schema": {"x": type_}}):
        with pytest.raises(tfr.errors.DecodeError, match=f"{reason}.*; declare the types of such columns"):
            tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord", source_options=options)


UNION = pa.UnionArray.from_sparse(pa.array([0, 1, 0], "int8"), [pa.array([1, 2, None]), pa.array(["a", "b", "c"])])
WRITTEN = {
    "nanoseconds": pa.array([1577836800000000001, None, 0], pa.timestamp("ns")),
    "nanoseconds in a zone": pa.array([1577836800000000001, None, 0], pa.timestamp("ns", "Europe/Berlin")),
    "times of nanoseconds": pa.array([1, None, 86_399_999_999_999], pa.time64("ns")),
    "durations of nanoseconds": pa.array([1, None, -1], pa.duration("ns")),
    "maps": pa.array([[("a", 1), ("a", None)], None, []], pa.map_(pa.string(), pa.int64())),
    "maps of integers": pa.array([[(1, "x")], None, []], pa.map_(pa.int64(), pa.large_string())),
    "maps of nanoseconds": pa.array([[("a", 1)], None, [("b", None)]], pa.map_(pa.string(), pa.timestamp("ns"))),
    "maps of bytes": pa.array([[("a", b"\xff")], None, []], pa.map_(pa.string(), pa.binary())),
    "maps of maps": pa.array([[("a", [("b", 1)])], None, []], pa.map_(pa.string(), pa.map_(pa.string(), pa.int8()))),
    "lists of maps": pa.array([[[("a", 1)], None], None, []], pa.list_(pa.map_(pa.string(), pa.float32()))),
    "structs of maps": pa.array(
        [{"m": [("a", 1)]}, None, {"m": None}], pa.struct({"m": pa.map_(pa.string(), pa.int8())})
    ),
    "unions": UNION,
    "lists of unions": pa.ListArray.from_arrays([0, 2, 2, 3], UNION),
    "intervals": pa.array([(1, 2, 3), None, (-1, 0, 4)], pa.month_day_nano_interval()),
    "times": pa.array([1577836800000001, None, 0], pa.timestamp("us")),
    "extension types": pa.ExtensionArray.from_storage(
        pa.opaque(pa.int8(), "t", "v"), pa.array([1, None, 3], pa.int8())
    ),
}


@pytest.mark.parametrize("column", WRITTEN.values(), ids=WRITTEN)
def test_columns_of_any_type_are_read_back(tmp_path: Path, column: pa.Array) -> None:
    table = pa.table({"x": column, "n": [1, 2, 3]})
    tfr.write_tfrecord(table, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.jsonl")
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "b.tfrecord")  # with types that are inferred
    assert tfr.count(tmp_path / "b.tfrecord") == 3
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "c.tfrecord", schema=table.schema)
    read, expected = tfr.read_table(tmp_path / "c.tfrecord"), tfr.read_table(tmp_path / "a.tfrecord")
    assert values_of(read["x"]) == values_of(expected["x"])
    assert read["x"].type == expected["x"].type


def test_a_form_that_is_none_of_the_type_is_refused(tmp_path: Path) -> None:
    lines = {"map": '{"x": [{"key": null, "value": 1}]}', "union": '{"x": {"type_id": 7, "0": 1}}'}
    for name, type_ in (("map", WRITTEN["maps"].type), ("union", UNION.type)):
        (tmp_path / "a.jsonl").write_text(lines[name] + "\n")
        with pytest.raises(tfr.errors.DecodeError, match=r"the key of a map is null|is not a type of the union"):
            tfr.convert(tmp_path / "a.jsonl", tmp_path / "b.tfrecord", schema={"x": type_})
