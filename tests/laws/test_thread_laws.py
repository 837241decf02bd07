"""What is read, and every verdict, is the same for any number of threads: values, batches, errors and warnings."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from reading import read_by
from reading_modes import blocks_of
from records import blobs, example, field, floats, framed, int64s
from rounds import rounds
from servers import SlowBucket
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.compression import stream as decompression
from tfrecord_io.columns.schema.embedded import pack

THREADS = (1, 2, 3, 4, 8)
OTHER_MESSAGE = field(9, b"other")
SCHEMAS = [
    pa.schema([("a", pa.int64())]),
    pa.schema([("a", pa.int64()), ("b", pa.string())]),
    pa.schema([("a", pa.float32())]),
]


def sequence(**lists: bytes) -> bytes:
    """A SequenceExample with one step in each of its lists."""
    entries = (field(1, field(1, name.encode()) + field(2, field(1, step))) for name, step in lists.items())
    return field(2, b"".join(entries))


plain = st.fixed_dictionaries(
    {},
    optional={
        "a": st.integers(-3, 300).map(int64s),
        "b": st.sampled_from([b"x", b"\xff", b"text" * 9]).map(blobs),
        "c": st.lists(st.floats(width=32, allow_nan=False), max_size=3).map(lambda v: floats(*v)),
    },
).map(lambda features: example(**features))
named = st.integers(0, 20).map(lambda n: example(**{f"n{n}": int64s(n)}))
nested = st.lists(plain, min_size=1, max_size=9).map(lambda p: example(b=blobs(framed(*p))))
odd = st.one_of(
    named,
    nested,
    st.sampled_from([OTHER_MESSAGE, b"", b"\xff", field(2, b"\xff")]),
    st.sampled_from([example(a=floats(1.0)), example(a=int64s(1, 2)), sequence(a=int64s(1)), sequence(s=int64s(2))]),
    st.tuples(st.sampled_from(SCHEMAS), plain).map(lambda pair: field(21574, pack(pair[0])) + pair[1]),
)


@st.composite
def files(draw: Any) -> list[bytes]:
    """Contents of files: mostly plain records, some odd ones, some damage."""
    contents = []
    for _ in range(draw(st.integers(1, 3))):
        base = draw(st.lists(plain, max_size=8)) * draw(st.integers(1, 5))
        for record in draw(st.lists(odd, max_size=3)):
            base[(at := draw(st.integers(0, len(base)))) : at] = [record]
        content = framed(*base)
        if content and draw(st.integers(0, 5)) == 0:
            at = draw(st.integers(0, len(content) - 1))
            damaged = content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]
            content = content[:at] if draw(st.booleans()) else damaged
        contents.append(content)
    return contents


@contextmanager
def on_disk(contents: list[bytes]) -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{i}.tfrecord" for i in range(len(contents))]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        yield list(map(str, paths))


def compressed(content: bytes, storage: str, size: int) -> bytes:
    """The content as a file of this storage; "members": several of gzip, each of which has `size` bytes."""
    pieces, name = [content], storage
    if storage == "members":
        pieces, name = [content[at : at + size] for at in range(0, len(content), size)] or [b""], "gzip"
    codec = CODECS.find(name)
    assert codec is not None
    parts = []
    for piece in pieces:
        compressor = codec.compressor(1)
        parts += [*compressor.compress(piece), *compressor.flush()]
    return b"".join(parts)


@contextmanager
def in_bucket(contents: list[bytes], size: int) -> Iterator[tuple[list[str], dict[str, Any]]]:
    """Paths and keywords to read a bucket by ranges of at most `size` bytes."""
    bucket = SlowBucket({f"/{i}.tfrecord": content for i, content in enumerate(contents)})
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, first_range_bytes=size, stream_range_bytes=size, largest_range_bytes=size)
        yield [f"/{i}.tfrecord" for i in range(len(contents))], {"storage_options": bucket}


def described(error: Exception) -> Any:
    """The error without the notes and traces of how it was raised, and the call that words it."""
    seen = {k: v for k, v in vars(error).items() if not k.startswith("__") and k != "speakers"}
    return type(error).__name__, str(error), seen


def table(paths: list[str], **keywords: Any) -> Iterator[Any]:
    read = read_by(tfr.read_table, paths, **keywords)
    yield read.schema, read.schema.metadata, repr(read.to_pylist()), [c.num_chunks for c in read.columns]


def stream(paths: list[str], **keywords: Any) -> Iterator[Any]:
    with read_by(tfr.open_reader, paths, batch_size=3, **keywords) as reader:
        yield reader.schema
        for batch in reader:
            yield len(batch), repr(batch.to_pylist())


def stream_by_bytes(paths: list[str], **keywords: Any) -> Iterator[Any]:
    with read_by(tfr.open_reader, paths, batch_bytes=150, sample=5, **keywords) as reader:
        for batch in reader:
            yield len(batch), repr(batch.to_pylist()), reader.report.bytes, reader.payload_bytes


def arrays(paths: list[str], **keywords: Any) -> Iterator[Any]:
    with read_by(tfr.iter_arrays, paths, batch_size=4, columns=["a"], ragged="pad", **keywords) as batches:
        for batch in batches:
            yield {name: repr(np.asarray(values)) for name, values in batch.items()}


def outcome(read: Any, paths: list[str], **keywords: Any) -> Any:
    """All that a caller can see, in order: what was read, the error, and the warnings."""
    seen: list[Any] = []
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            for item in read(paths, **keywords):
                seen.append(item)
        except (tfr.TFRecordError, NotImplementedError, ValueError) as error:
            seen.append(described(error))
    return seen, [str(w.message) for w in issued if not issubclass(w.category, ResourceWarning)]


LIMITS = st.fixed_dictionaries(
    {}, optional={"features": st.integers(2, 8), "expansion_bytes": st.sampled_from([1, 100, 1000, 4000])}
).map(lambda limits: tfr.Limits(**limits))
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "schema": st.sampled_from(["infer", {"a": "int64"}, {"a": "float32", "b": "binary"}]),
        "limits": LIMITS,
        "offset": st.integers(0, 12),
        "limit": st.integers(0, 30),
        "record_type": st.sampled_from(["example", "sequence_example", "bytes"]),
        "on_error": st.sampled_from(["stop", "skip"]),
    },
)


def shuffled_arrays(paths: list[str], **keywords: Any) -> Iterator[Any]:
    with read_by(
        tfr.iter_arrays,
        paths,
        batch_size=2,
        schema={"a": "int64"},
        missing="mask",
        shuffle_buffer=5,
        seed=1,
        epochs=2,
        **keywords,
    ) as batches:
        for batch in batches:
            yield batch["a"].tolist()


READS = st.sampled_from([table, stream, stream_by_bytes, arrays, shuffled_arrays])


@settings(max_examples=rounds(500))
@given(read=READS, contents=files(), options=OPTIONS, size=st.sampled_from([32, 64, 300]))
def test_the_number_of_threads_changes_nothing(
    native_engine: None, read: Any, contents: list[bytes], options: dict[str, Any], size: int
) -> None:
    if options.get("record_type") == "bytes" or read is shuffled_arrays:
        options.pop("schema", None)
    with on_disk(contents) as paths, blocks_of(size):
        expected = outcome(read, paths, threads=1, **options)
        for threads in THREADS[1:]:
            assert outcome(read, paths, threads=threads, **options) == expected


STREAMS = [*CODECS.names(), "members", "bucket", "gzip in a bucket"]


@settings(max_examples=rounds(700))
@given(
    storage=st.sampled_from(STREAMS),
    contents=files(),
    options=OPTIONS,
    size=st.sampled_from([32, 64, 300]),
    read=READS,
    damage=st.none() | st.tuples(st.integers(0, 2), st.integers(0, 10**6), st.sampled_from([0, 1, 128])),
    ratio=st.sampled_from([None, None, 1.5, 4.0]),
)
def test_streams_are_read_alike_on_any_number_of_threads(
    native_engine: None,
    storage: str,
    contents: list[bytes],
    options: dict[str, Any],
    size: int,
    read: Any,
    damage: tuple[int, int, int] | None,
    ratio: float | None,
) -> None:
    if options.get("record_type") == "bytes" or read is shuffled_arrays:
        options.pop("schema", None)
    if storage != "bucket":
        contents = [compressed(content, storage.split()[0], 3 * size) for content in contents]
        options["limits"] = replace(options.get("limits", tfr.Limits()), decompression_ratio=ratio)
    if damage is not None and damage[0] < len(contents) and contents[damage[0]]:
        number, at, change = damage
        content = bytearray(contents[number])
        at %= len(content)
        if change:
            content[at] ^= change
        contents[number] = bytes(content if change else content[:at])
    place = in_bucket(contents, size) if "bucket" in storage else on_disk(contents)
    with place as found, blocks_of(size), pytest.MonkeyPatch.context() as patch:
        patch.setattr(decompression, "_STEP", 50)
        set_limits(patch, decompressed_free_bytes=200)
        paths, where = found if "bucket" in storage else (found, {})
        expected = outcome(read, paths, threads=1, **options, **where)
        for threads in THREADS[1:]:
            assert outcome(read, paths, threads=threads, **options, **where) == expected


def count(paths: list[str], **keywords: Any) -> Iterator[Any]:
    yield read_by(tfr.count, paths, **keywords)


COUNTING = st.fixed_dictionaries(
    {"check_crc": st.booleans()},
    optional={
        "on_error": st.sampled_from(["skip", lambda error: error.record % 2 == 0]),
        "limits": st.builds(tfr.Limits, record_bytes=st.integers(20, 99)),
    },
)


@given(contents=files(), options=COUNTING, size=st.sampled_from([32, 64, 300]))
def test_files_are_counted_alike_on_any_number_of_threads(
    native_engine: None, contents: list[bytes], options: dict[str, Any], size: int
) -> None:
    with on_disk(contents) as paths:
        expected = outcome(count, paths, threads=1, **options)
        with blocks_of(size):
            for threads in THREADS:
                assert outcome(count, paths, threads=threads, **options) == expected
        if options["check_crc"]:
            assert without_texts(outcome(by_record, paths, **options)) == without_texts(expected)


def without_texts(outcome: Any) -> Any:
    """An outcome without the texts of errors, in which each call names its own keywords; their parts remain."""
    seen, issued = outcome
    return [(item[0], item[2]) if isinstance(item, tuple) else item for item in seen], issued


def verified(paths: list[str], **keywords: Any) -> Iterator[Any]:
    yield read_by(tfr.verify, paths, **keywords).to_dict()


VERIFYING = st.fixed_dictionaries(
    {},
    optional={
        "record_type": st.sampled_from(["example", "sequence_example", "bytes"]),
        "limits": st.builds(tfr.Limits, record_bytes=st.integers(20, 99)),
    },
)


@given(contents=files(), options=VERIFYING, size=st.sampled_from([32, 64, 300]))
def test_files_are_verified_alike_on_any_number_of_threads(
    native_engine: None, contents: list[bytes], options: dict[str, Any], size: int
) -> None:
    with on_disk(contents) as paths:
        expected = outcome(verified, paths, threads=1, **options)
        assert outcome(verified, paths[:1], threads=8, **options) == outcome(verified, paths[:1], threads=1, **options)
        with blocks_of(size):
            for threads in (*THREADS, 32):
                assert outcome(verified, paths, threads=threads, **options) == expected


def by_record(paths: list[str], *, check_crc: bool, on_error: Any = "raise", **keywords: Any) -> Iterator[Any]:
    """What `count` returns, by reading the records one by one."""
    with read_by(tfr.RecordReader, paths, on_error=on_error, **keywords) as reader:
        yield sum(1 for _ in reader)


@given(payloads=st.lists(plain, min_size=1, max_size=9), depth=st.integers(1, 3), size=st.sampled_from([16, 64, 200]))
def test_files_in_payloads_mislead_no_segment(
    native_engine: None, payloads: list[bytes], depth: int, size: int
) -> None:
    """Most segments begin inside a payload that is a TFRecord file, and with one of its records."""
    for _ in range(depth):
        payloads = [blobs_of(framed(*payloads * 3)), *payloads]
    expected = list(payloads)
    with on_disk([framed(*payloads)]) as (path,), blocks_of(size):
        for threads in THREADS:
            read = tfr.read_table(tfr.dataset(path, record_type="bytes", threads=threads))
            assert read["record"].to_pylist() == expected
            values = tfr.read_table(tfr.dataset(path, threads=threads, infer_text=False))
            assert values.num_rows == len(expected)


def blobs_of(content: bytes) -> bytes:
    return example(b=blobs(content))


@pytest.mark.parametrize("threads", THREADS)
def test_names_are_counted_over_all_records(engine: str, tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(framed(*(example(**{f"n{i // 100}": int64s(i)}) for i in range(1600))))
    with blocks_of(500), pytest.raises(tfr.errors.SchemaError, match=r"limits=tfr\.Limits\(features=8\)") as caught:
        tfr.read_table(tfr.dataset(path, threads=threads, limits=tfr.Limits(features=8)))
    assert (caught.value.record, caught.value.got) == (800, 9)


@pytest.mark.parametrize("threads", THREADS)
def test_records_of_unknown_fields_before_examples_are_read(engine: str, tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a"
    path.write_bytes(framed(*[OTHER_MESSAGE] * 400, *[example(x=int64s(1))] * 10))
    with blocks_of(200):
        assert tfr.read_table(tfr.dataset(path, threads=threads), schema={"x": "int64"}).num_rows == 410
    path.write_bytes(framed(*[OTHER_MESSAGE] * 400))
    with blocks_of(200), pytest.raises(tfr.errors.DecodeError, match="none of them holds a feature"):
        tfr.read_table(tfr.dataset(path, threads=threads), schema={"x": "int64"})


@pytest.mark.parametrize("threads", THREADS)
def test_the_first_of_two_faults_is_told(engine: str, tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a"
    good = [example(x=int64s(i)) for i in range(300)]
    path.write_bytes(framed(*good[:200], example(x=floats(1.0)), *good, b"\xff", *good))
    with blocks_of(100), pytest.raises(tfr.TFRecordError) as caught:
        tfr.read_table(tfr.dataset(path, threads=threads))
    assert (type(caught.value).__name__, caught.value.record) == ("SchemaError", 200)
