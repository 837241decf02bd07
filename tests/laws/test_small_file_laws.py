"""Many small files are decoded together: what is read is that of the files one by one."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import engine_of
from records import blobs, example, floats, framed, int64s
from strategies import sequence_example
from tfrecord_io.base import ReadOptions
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.chunks import chunk_reader

FEATURES = {
    "a": st.integers(-3, 300).map(int64s),
    "b": st.sampled_from([b"", b"cat", "ä".encode()]).map(blobs),
    "c": st.lists(st.integers(-9, 9), max_size=3).map(lambda values: int64s(*values)),
    "t": st.just(blobs(b"\1\2")),
    "t/shape": st.just(int64s(2)),
    "t/dtype": st.just(blobs(b"uint8")),
}
ODD = [
    example(a=floats(0.5)),
    example(b=blobs(b"\xff")),
    example(new=int64s(1)),
    b"\xff\xff",
    sequence_example({"a": int64s(1)}, {"s": [int64s(1)]}),
]
OWN = {
    "a": pa.array([1, 2], pa.int16()),
    "b": pa.array(["x", None]),
    "c": pa.array([[1], []], pa.list_(pa.int64())),
    "d": pa.array([True, False]),
    "k": pa.array(["u", "v"]).dictionary_encode(),
}
plain = st.fixed_dictionaries({"a": FEATURES.pop("a")}, optional=FEATURES).map(lambda features: example(**features))


@st.composite
def contents(draw: Any) -> list[bytes]:
    """Of small files: most are plain, of the same schema; some are empty, compressed, damaged or of another schema."""
    others = draw(st.sampled_from([[], ["empty", "gzip"], ["own"], ["empty", "gzip", "own", "odd", "damaged", "cut"]]))
    own = draw(st.booleans())
    return [_content(draw, own, others) for _ in range(draw(st.integers(2, 7)))]


def _content(draw: Any, own: bool, others: list[str]) -> bytes:
    kind = draw(st.sampled_from([*others, "plain", "plain", "plain"]))
    if kind == "empty":
        return b""
    if own != (kind == "own"):
        names = draw(st.lists(st.sampled_from(list(OWN)[1:]), unique=True)) if kind == "own" else ["b"]
        with tempfile.TemporaryDirectory() as folder:
            tfr.write_tfrecord({name: OWN[name] for name in ["a", *names]}, f"{folder}/own")
            content = Path(folder, "own").read_bytes()
    else:
        records = draw(st.lists(plain, min_size=1, max_size=4))
        if kind == "odd":
            records.insert(draw(st.integers(0, len(records))), draw(st.sampled_from(ODD)))
        content = framed(*records)
    at = draw(st.integers(0, len(content) - 1)) if kind in ("damaged", "cut") else 0
    if kind == "damaged":
        content = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
    return gzip.compress(content) if kind == "gzip" else content[:at] if kind == "cut" else content


@contextmanager
def on_disk(files: list[bytes], folders: bool) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"l={at % 2}" if folders else "", f"{at}.tfrecord") for at in range(len(files))]
        for path, content in zip(paths, files, strict=True):
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        yield [f"{folder}/*/*.tfrecord"] if folders else list(map(str, paths))


@contextmanager
def one_by_one() -> Iterator[None]:
    """No file is small enough to be decoded together with others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_reader, "is_little", lambda size: False)
        yield


def described(error: Exception) -> Any:
    return type(error).__name__, str(error), {k: v for k, v in vars(error).items() if not k.startswith("__")}


def outcome(paths: list[str], **keywords: Any) -> Any:
    """All that a caller can see but for how the rows are divided into chunks."""
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            with CallSource(paths).open(ReadOptions(**keywords), whole=True) as reader:
                table = reader.read_all()
                table.validate(full=True)
                report = reader.report
                seen += [table.schema, table.schema.metadata, repr(table.to_pylist())]
                seen += [[reader.origin(row) for row in range(len(table))]]
                if not {"filters", "limit"} <= keywords.keys():  # else the read ends early, after some chunk
                    seen += [report.records, report.bytes, report.files, report.stopped, list(report.skipped)]
        except (tfr.TFRecordError, ValueError) as error:
            seen.append(described(error))
    return seen, sorted(str(w.message) for w in issued if not issubclass(w.category, ResourceWarning))


OPTIONS = st.fixed_dictionaries(
    {"threads": st.sampled_from([1, 3])},
    optional={
        "schema": st.sampled_from(["infer", {"a": "int64"}, {"a": "int64", "b": "binary", "d": "bool"}]),
        "columns": st.sampled_from([["a"], ["!a"], ["a", "b*"]]),
        "filters": st.sampled_from([[("a", ">", 1)], [("a", "==", 1), ("a", "<", 9)]]),
        "include_file_paths": st.just("from"),
        "offset": st.integers(0, 9),
        "limit": st.integers(0, 9),
        "limits": st.builds(tfr.Limits, features=st.integers(2, 8)),
        "record_type": st.sampled_from(["example", "sequence_example"]),
        "compression": st.sampled_from([None, "gzip"]),
        "on_error": st.sampled_from(["stop", "skip"]),
    },
)


@given(files=contents(), options=OPTIONS, folders=st.booleans(), engine=st.sampled_from(["native", "reference_engine"]))
def test_small_files_are_read_as_if_one_by_one(
    native_engine: None, files: list[bytes], options: dict[str, Any], folders: bool, engine: str
) -> None:
    with on_disk(files, folders) as paths, engine_of(engine):
        with one_by_one():
            expected = outcome(paths, **options)
        assert outcome(paths, **options) == expected


@given(files=contents(), threads=st.sampled_from([1, 3]))
def test_small_files_have_the_rows_of_each(native_engine: None, files: list[bytes], threads: int) -> None:
    with on_disk(files, folders=False) as paths, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            table = tfr.read_table(tfr.dataset(paths, threads=threads))
        except tfr.TFRecordError:
            return
        schema = table.schema.remove_metadata()
        rows = [row for path in paths for row in tfr.read_table(path, schema=schema).to_pylist()]
    assert repr(table.to_pylist()) == repr(rows)


@given(files=contents(), options=st.fixed_dictionaries({}, optional={"on_error": st.just("skip")}))
def test_the_evidence_of_small_files_names_the_same_records(
    native_engine: None, files: list[bytes], options: dict[str, Any]
) -> None:
    def inferred() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                return repr(read_by(tfr.infer_schema, paths, **options))
            except tfr.TFRecordError as error:
                return described(error)

    with on_disk(files, folders=False) as paths:
        with one_by_one():
            expected = inferred()
        assert inferred() == expected


def test_small_files_of_one_schema_become_few_chunks(engine: str, tmp_path: Path) -> None:
    for number in range(99):
        tfr.write_tfrecord({"a": [number, number + 1]}, tmp_path / f"{number:02}.tfrecord")
    for keywords in ({}, {"schema": "infer"}, {"schema": {"a": "int64"}}, {"filters": [("a", ">=", 0)]}):
        table = read_by(tfr.read_table, tmp_path, **keywords)
        assert (len(table), table.column("a").num_chunks <= 3) == (198, True)
