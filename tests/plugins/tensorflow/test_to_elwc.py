"""Rows are written as the lists that protobuf parses, and read back."""

from __future__ import annotations

import gc
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.bytes.format.protobuf import MessageClasses

# tensorflow_serving/apis/input.proto
ELWC = MessageClasses("tests/to_elwc.proto", "tests.to_elwc", {"Elwc": "examples 1 *bytes, context 2 bytes"})["Elwc"]
ROWS = {"query": ["shoes", "shoes", "tea"], "user": [1, 1, 2], "doc": ["a", "b", "c"], "clicks": [3, None, 2]}


def parsed(path: Any) -> list[Any]:
    return [ELWC.FromString(payload) for payload in tfr.RecordReader(path)]


def test_lists_are_identified_by_run_ends(tmp_path: Path) -> None:
    queries = pa.RunEndEncodedArray.from_arrays(pa.array([2, 3], pa.int32()), pa.array(["shoes", "tea"]))
    table = pa.table({"query": queries, "doc": pa.array(["a", "b", "c"], pa.string_view())})
    assert tfr.formats.write_elwc(table, tmp_path / "a", by="query").records == 2
    rows = tfr.formats.open_elwc(tmp_path / "a").read_all().to_pylist()
    assert [(row["query"], row["doc"]) for row in rows] == [("shoes", "a"), ("shoes", "b"), ("tea", "c")]


document = st.fixed_dictionaries(
    {
        "text": st.text(max_size=3) | st.integers(100, 300).map(lambda size: "x" * size),
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "weights": st.lists(st.floats(width=32, allow_nan=False), max_size=3),
    }
)
keys = st.lists(st.integers(0, 2**40) | st.just(0), min_size=1, max_size=5, unique=True)


@settings(max_examples=rounds(40), deadline=None)
@given(
    lists=keys.flatmap(
        lambda own: st.tuples(*(st.tuples(st.just(key), st.lists(document, min_size=1, max_size=4)) for key in own))
    ),
    context=st.lists(st.text(max_size=200), min_size=5, max_size=5),
    cut=st.integers(1, 20),
    is_text=st.booleans(),
)
def test_lists_are_those_that_protobuf_parses(
    lists: list[tuple[int, list[dict[str, Any]]]], context: list[str], cut: int, is_text: bool
) -> None:
    """However the rows are split into batches, and whatever the sizes of their messages."""
    rows = [
        {"key": f"k{key}" if is_text else key, "about": context[number], **own}
        for number, (key, documents) in enumerate(lists)
        for own in documents
    ]
    types = [("key", pa.string() if is_text else pa.int64()), ("about", pa.string()), ("text", pa.string())]
    schema = pa.schema([*types, ("n", pa.int64()), ("weights", pa.list_(pa.float32()))])
    table = pa.Table.from_pylist(rows, schema)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        batches = pa.RecordBatchReader.from_batches(schema, table.to_batches(max_chunksize=cut))
        report = tfr.formats.write_elwc(batches, path, by="key", context="about")
        assert (report.records, set(report.columns)) == (len(lists), set(schema.names))
        found = parsed(path)
    assert len(found) == len(lists)
    examples = [
        tfr.io.decode_examples([*message.examples], schema=schema.remove(0).remove(0)).to_pylist() for message in found
    ]
    assert examples == [documents for _, documents in lists]
    contexts = tfr.io.decode_examples([message.context for message in found], schema=pa.schema(list(schema)[:2]))
    assert contexts.to_pylist() == [
        {"key": f"k{key}" if is_text else key, "about": context[number]} for number, (key, _) in enumerate(lists)
    ]


def test_what_is_read_is_written_back(tmp_path: Path) -> None:
    tfr.formats.write_elwc(ROWS, tmp_path / "a.tfrecord", by="query", context=["user"])
    table = tfr.formats.open_elwc(tmp_path / "a.tfrecord").read_all()
    for data in (
        table,
        tfr.formats.open_elwc(tmp_path / "a.tfrecord").read_pandas(),
        tfr.formats.open_elwc(tmp_path / "a.tfrecord"),
    ):
        tfr.formats.write_elwc(data, tmp_path / "b.tfrecord", context=["query", "user"])
        assert tfr.formats.open_elwc(tmp_path / "b.tfrecord").read_all().equals(table)


def test_files_are_those_of_other_writers(tmp_path: Path) -> None:
    report = tfr.formats.write_elwc(ROWS, tmp_path / "d@2.tfrecord", by="query", compression="gzip")
    assert (report.records, len(report.files), report.compression) == (2, 2, "gzip")
    assert len(tfr.formats.open_elwc(tmp_path / "d@2.tfrecord").read_all()) == 3
    with pytest.raises(FileExistsError):
        tfr.formats.write_elwc(ROWS, tmp_path / "d@2.tfrecord", by="query")
    assert (
        tfr.formats.write_elwc(
            {"query": pa.array([], pa.string()), "n": pa.array([], pa.int64())}, tmp_path / "e", by="query"
        ).records
        == 0
    )
    for keyword in ("schema", "record_type", "embed_schema", "partition_by"):
        with pytest.raises(TypeError, match=keyword):
            tfr.formats.write_elwc(ROWS, tmp_path / "f", by="query", **{keyword: None})


def test_rounded_values_are_named_once(tmp_path: Path) -> None:
    data = {"query": ["a", "b"], "x": [0.1, 0.2], "y": [0.1, 0.3]}
    with pytest.warns(tfr.errors.PrecisionWarning) as caught:
        report = tfr.formats.write_elwc(data, tmp_path / "a", by="query", context="y")
    assert len(caught) == 1
    assert report.rounded == {"x": 2, "y": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.formats.write_elwc(data, tmp_path / "b", by="query", context="y", float64="round")
        with pytest.raises(tfr.errors.PrecisionWarning):
            tfr.formats.write_elwc(data, tmp_path / "c", by="query", context="y")
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize(
    ("changes", "keywords", "message"),
    [
        ({"query": ["shoes", "tea", "shoes"]}, {}, r"record 2.*'query'.*do not follow one another.*sort the rows"),
        ({"query": ["shoes", None, "tea"]}, {}, r"record 1.*'query'.*is missing"),
        ({}, {"context": "doc"}, r"record 1.*'doc'.*differs from that of the row before it.*leave it out of context="),
        ({}, {"context": "dok"}, "dok"),
        ({}, {"by": "quary"}, "did you mean 'query'"),
        ({}, {"context": ["*"]}, "none is left for the examples"),
        ({"query": [1.5, 1.5, 2.0]}, {}, "integers, text or bytes"),
        ({"position": [1, 2, 3]}, {}, "'position'.*open_elwc adds"),
    ],
)
def test_rows_that_are_no_lists(tmp_path: Path, changes: Any, keywords: Any, message: str) -> None:
    with pytest.raises((tfr.errors.EncodeError, tfr.errors.SchemaError), match=message):
        tfr.formats.write_elwc({**ROWS, **changes}, tmp_path / "a", **{"by": "query", **keywords})
    assert not (tmp_path / "a").exists()


def test_frames_with_an_index(tmp_path: Path) -> None:
    frame = pd.DataFrame(ROWS | {"clicks": np.array([3, 0, 2], "int8")}).set_index("query")
    assert tfr.formats.write_elwc(frame, tmp_path / "a", by="query").records == 2
    assert [len(message.examples) for message in parsed(tmp_path / "a")] == [2, 1]


def test_storage_options_and_threads_are_those_of_the_target(tmp_path: Path) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory", skip_instance_cache=True)
    path = (tmp_path / "a").as_posix()
    report = tfr.formats.write_elwc(ROWS, path, by="query", storage_options=memory, threads=1)
    assert memory.size(path) == report.bytes
    with pytest.raises(ValueError, match="storage_options= is for URLs"):
        tfr.formats.write_elwc(ROWS, path, by="query", storage_options={"anon": True})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("error")
def test_a_target_that_cannot_be_begun_leaves_no_writer_open(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    with pytest.raises(FileExistsError):
        tfr.formats.write_elwc(ROWS, tmp_path / "a.tfrecord", by="query", mode="error")
    gc.collect()
