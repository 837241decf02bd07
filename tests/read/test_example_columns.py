"""Columns of serialized Examples: what a file with the same records gives, and what a writer puts into one."""

from __future__ import annotations

import inspect
import io
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from engine_comparison import ENGINES
from limited import set_limits
from nested_tables import tables
from reading import read_by
from records import example, field, framed, int64s
from strategies import datasets
from tfrecord_io.base.options.read import DatasetOptions

TABLE = pa.table({"n": pa.array([1, None, 3], pa.int32()), "name": ["a", "b", None], "x": [[0.5], [], [2.0, 3.0]]})
COLUMN = tfr.io.encode_examples(TABLE, float64="round")
FORMS: dict[str, Callable[[pa.Array], Any]] = {
    "binary": lambda column: column,
    "large_binary": lambda column: column.cast(pa.large_binary()),
    "binary_view": lambda column: column.cast(pa.binary_view()),
    "dictionary": lambda column: column.dictionary_encode(),
    "a chunk for each": lambda column: pa.chunked_array([column[i : i + 1] for i in range(len(column))], column.type),
    "slice": lambda column: pa.concat_arrays([pa.array([b"\xff"]), column, pa.array([b"\xff"])])[1:-1],
    "list": lambda column: column.to_pylist(),
    "objects": lambda column: np.array([*column.to_pylist(), None], object)[:-1],
    "pandas": lambda column: pd.Series(column.to_pylist(), dtype=object),
    "pandas of Arrow": lambda column: pd.Series(column.to_pylist(), dtype=pd.ArrowDtype(pa.binary())),
    "polars": lambda column: pl.Series(column.to_pylist(), dtype=pl.Binary),
}


def test_values_that_cannot_be_decoded_are_left_out() -> None:
    good = [tfr.encode_example({"user": i}) for i in range(5)]
    column = [*good[:2], b"\xff\xff", *good[2:4], tfr.encode_example({"user": b"x"}), good[4]]
    with pytest.raises(tfr.errors.DecodeError) as info:
        tfr.io.decode_examples(column, schema={"user": "int64"})
    assert info.value.record == 2
    with pytest.warns(tfr.errors.DamagedDataWarning, match="2 damaged"):
        assert tfr.io.decode_examples(column, on_error="skip")["user"].to_pylist() == [0, 1, 2, 3, 4]
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.io.decode_examples(column, on_error="stop")["user"].to_pylist() == [0, 1]
    rows = []
    with pytest.warns(tfr.errors.DamagedDataWarning):
        tfr.io.decode_examples(column, on_error=lambda error: rows.append(error.record) is None)
    assert rows == [2, 5]


def test_the_warning_of_values_that_are_left_out_does_not_speak_of_files() -> None:
    with pytest.warns(tfr.errors.DamagedDataWarning) as warned:
        tfr.io.decode_examples([tfr.encode_example({"user": 1}), b"\xff\xff"], on_error="skip")
    text = str(warned[0].message)
    assert text.startswith("1 damaged region left out in <list>; record 1: ")
    assert text.endswith("; to list them, pass a function as on_error=")


def outcome(call: Callable[[], Any]) -> Any:
    """A result, or what its error says about the records; and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = call()
            if isinstance(result, pa.Table):
                result = result.schema, repr(result.to_pylist())  # NaN is not equal to itself
        except tfr.TFRecordError as error:
            result = (type(error), error.record, error.feature, error.expected, error.got)
    return result, [warning.category for warning in caught]


def read_file(payloads: list[bytes], **keywords: Any) -> Any:
    return read_by(tfr.read_table, io.BytesIO(framed(*payloads)), **keywords)


@given(datasets(), st.sampled_from(list(FORMS)[:6]), st.sampled_from([None, "example", "sequence_example"]))
def test_a_column_is_decoded_as_a_file_of_its_records(payloads: list[bytes], form: str, record_type: Any) -> None:
    column = FORMS[form](pa.array(payloads, pa.binary()))
    result = outcome(lambda: tfr.io.decode_examples(column, record_type=record_type))
    assert result == outcome(lambda: read_file(payloads, record_type=record_type))


@given(tables())
def test_a_table_is_encoded_as_in_a_file_and_comes_back(table: pa.Table) -> None:
    written = io.BytesIO()

    def records() -> list[bytes]:
        tfr.write_tfrecord(table, written, float64="raw")
        return list(tfr.RecordReader(io.BytesIO(written.getvalue())))

    column, expected = outcome(lambda: tfr.io.encode_examples(table, float64="raw"))[0], outcome(records)[0]
    if isinstance(column, tuple):
        assert column == expected
        return
    assert column.to_pylist() == expected
    column.validate(full=True)
    if len(column):
        assert outcome(lambda: tfr.io.decode_examples(column)) == outcome(lambda: read_file(expected))


@pytest.mark.parametrize("keywords", [{}, {"embed_schema": False}, {"schema": {"n": "int64", "name": "string"}}])
def test_options_are_those_of_a_writer(keywords: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rounding, and of columns that the schema leaves out
        tfr.write_tfrecord(TABLE, written := io.BytesIO(), **keywords)
        column = tfr.io.encode_examples(TABLE, **keywords)
    assert column.to_pylist() == list(tfr.RecordReader(io.BytesIO(written.getvalue())))


def test_sequence_examples_come_back() -> None:
    table = pa.table({"user": [1, 2], "steps": pa.array([[[1], [2, 3]], []], pa.list_(pa.list_(pa.int64())))})
    column = tfr.io.encode_examples(table, record_type="sequence_example", embed_schema=False)
    read = tfr.io.decode_examples(column)
    assert read.select(table.column_names).equals(table)
    assert tfr.train.SequenceExample.FromString(column[0].as_py()).feature_lists.feature_list["steps"].feature


@pytest.mark.parametrize("form", FORMS)
def test_nulls_are_records_without_features(form: str) -> None:
    rows = [None, example(x=int64s(3)), None, example(x=int64s(4)), None]
    column = FORMS[form](pa.array(rows, pa.binary()))
    assert tfr.io.decode_examples(column).to_pydict() == {"x": [None, 3, None, 4, None]}
    filled = tfr.io.decode_examples(column, schema={"x": tfr.scalar("int64", default=7)})
    assert filled.to_pydict() == {"x": [7, 3, 7, 4, 7]}


def test_a_null_may_have_bytes_behind_it() -> None:
    values = example(x=int64s(3)) + b"\xff\xff"
    buffers = [pa.py_buffer(b"\x05"), pa.py_buffer(np.array([0, len(values) - 2, len(values), len(values)], np.int32))]
    column = pa.Array.from_buffers(pa.binary(), 3, [*buffers, pa.py_buffer(values)], 1)
    assert tfr.io.decode_examples(column).to_pydict() == {"x": [3, None, None]}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_large_column_is_decoded_on_all_threads(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    set_limits(monkeypatch, window_bytes=4096, segment_records=1, segment_column_bytes=1, decoded_file_bytes=1024)
    numbers = np.arange(5000)
    table = pa.table({"n": numbers, "text": [f"{n}" * (n % 50) for n in numbers]})
    column = tfr.io.encode_examples(table)
    chunks = pa.chunked_array([column[:100], column[100:100], column[100:4000], column[4000:]])
    assert tfr.io.decode_examples(chunks, threads=threads).equals(table)
    broken = pa.chunked_array([column[:4321], pa.array([b"\xff"]), column[4321:]])
    with pytest.raises(tfr.errors.DecodeError) as raised:
        tfr.io.decode_examples(broken, threads=threads)
    assert raised.value.record == 4321


def test_a_fault_names_the_row_and_nothing_of_a_file() -> None:
    with pytest.raises(tfr.errors.DecodeError) as raised:
        tfr.io.decode_examples([example(x=int64s(1)), None, b"\x0a\x09"])
    error = raised.value
    assert (error.record, error.path, error.offset, error.records_intact) == (2, None, None, None)
    assert str(error).startswith("record 2: the payload is not a valid Example or SequenceExample")
    assert "record_type" not in str(error)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (b"\x0a\x00", "expected a column of records, got bytes; tfr.decode_example decodes a single record"),
        ("path.tfrecord", "expected a column of records, got str; .*tfr.read_table reads files"),
        (TABLE, "expected a column, got Table; select one of its columns"),
        (pd.DataFrame({"x": [b""]}), "expected a column, got DataFrame"),
        (pa.array(["text"]), "expected a column of bytes, got string"),
        (["text"], "expected a column of bytes, got string"),
        ([b"", 1], "expected a column of bytes: "),
        ([1], "expected a column of bytes, got int64"),
        (7, "expected a column of records, got int"),
        (np.array([b"\x0a\x00"]), "without the zero bytes at their ends: pass an array of objects"),
    ],
)
def test_what_is_no_column_of_bytes_is_refused(records: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tfr.io.decode_examples(records)


def test_options_about_files_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'limit'"):
        tfr.io.decode_examples(COLUMN, limit=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'shards'"):
        tfr.io.encode_examples(TABLE, shards=2)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="record_type='bytes': the column is that already"):
        tfr.io.decode_examples(COLUMN, record_type="bytes")


# Options of a dataset that `decode_examples` does not have, and why.
WITHOUT = {
    **dict.fromkeys(("filters", "offset", "limit"), "a table is filtered and sliced"),
    **dict.fromkeys(("storage_options", "filesystem", "compression", "split", "allow_missing_shards"), "no files"),
    **dict.fromkeys(("check_crc", "include_file_paths"), "no files"),
    **dict.fromkeys(("progress", "batch_size", "batch_bytes", "sample", "on_new"), "all records at once"),
}


def test_options_of_a_dataset_are_those_of_a_column_or_have_no_meaning_for_it() -> None:
    names = {f.name for f in fields(DatasetOptions)}
    parameters = inspect.signature(tfr.io.decode_examples).parameters.keys() - {"records"}
    lacking = sorted(names - parameters - WITHOUT.keys())
    assert not lacking, f"give decode_examples the keywords {', '.join(lacking)}, or say in WITHOUT why not"
    assert parameters | WITHOUT.keys() == names


def test_no_rows() -> None:
    assert tfr.io.encode_examples(TABLE[:0]).equals(pa.array([], pa.binary()))
    assert tfr.io.decode_examples([], schema={"x": "int64"}).equals(pa.table({"x": pa.array([], pa.int64())}))
    with pytest.warns(tfr.errors.SchemaWarning, match="no records, so the columns are unknown"):
        assert tfr.io.decode_examples(pa.array([], pa.binary())).num_columns == 0


def test_the_error_of_a_value_names_its_row() -> None:
    with pytest.raises(tfr.errors.EncodeError) as raised:
        tfr.io.encode_examples(pa.table({"x": pa.array([1, 2**63], pa.uint64())}))
    assert raised.value.record == 1


def test_other_messages_are_refused() -> None:
    with pytest.raises(tfr.errors.DecodeError, match=r"not tf\.train\.Examples"):
        tfr.io.decode_examples([field(9, b"other")])


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.integers(0, 200), st.integers(0, 200))
def test_windows_of_frames_are_those_of_the_file(payloads: list[bytes], skip: int, size: int) -> None:
    data = np.frombuffer(b"".join(payloads), np.uint8)
    lengths = np.array([len(payload) for payload in payloads], np.int64)
    starts = np.cumsum(lengths) - lengths
    expected = bytearray(framed(*payloads))
    for end in np.cumsum(lengths + 16).tolist():
        expected[end - 4 : end] = bytes(4)
    for engine in ENGINES:
        out = np.full(size, 255, np.uint8)
        count = engine.frame_window(data, starts, lengths, skip, out)
        assert out[:count].tobytes() == expected[skip : skip + size]
        assert (out[count:] == 255).all()
