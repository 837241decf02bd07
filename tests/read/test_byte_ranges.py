"""Pieces of a file: each record is in exactly one of them, whatever the payloads contain."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import pieces_of
from records import example, framed, header, int64s, written
from servers import Bucket
from tfrecord_io.base import ReadOptions, StorageOptions
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.read import find_boundaries as boundaries
from tfrecord_io.read.byte_ranges import SplitFiles, align_sources
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.chunks.block_walker import BlockWalker, RecordFile
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.find_boundaries import find_boundaries
from tfrecord_io.read.scan_rows import ScanRows
from tfrecord_io.store.paths.packed_sources import PackedSources
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.files_ahead import SourcePrefetcher
from tfrecord_io.store.read.random_access_file import RandomAccessFile
from tfrecord_io.store.read.source import Source, Sources

small = st.binary(max_size=40) | st.integers(0, 300).map(bytes)
nested = st.lists(small, max_size=90).map(lambda payloads: framed(*payloads))  # a whole TFRecord file as a payload
cut = st.tuples(nested, st.integers(1, 60)).map(lambda pair: pair[0][: -pair[1]])
claims = st.integers(0, 2000).map(header)  # a header that states any length
payloads = (
    small
    | nested
    | cut
    | claims
    | st.tuples(small, nested, small).map(b"".join)
    | st.lists(claims, max_size=20).map(b"".join)
)


def source_of(path: Path) -> Source:
    (source,) = resolve_inputs(path)
    return source


def read(piece: Source) -> list[bytes]:
    """The payloads of a piece, read in small blocks."""
    payloads: list[bytes] = []
    walker = BlockWalker(iter([piece]), lambda source: RecordFile(source, block_bytes=1000))
    try:
        while walker.load():
            if walker.error is not None:
                raise walker.error
            frames, fault = walker.frames(get_engine(), check_crc=True)
            data = bytes(walker.data)
            starts, lengths = frames.starts.tolist(), frames.lengths.tolist()
            payloads.extend(data[start : start + length] for start, length in zip(starts, lengths, strict=True))
            if fault is not None:
                raise walker.fault_error(fault)
            walker.advance(len(starts), frames.consumed)
            walker.read_on()
    finally:
        walker.close()
    return payloads


@given(st.lists(payloads, max_size=30), st.integers(1, 12))
@pytest.mark.fault(21)
def test_each_record_is_in_exactly_one_piece(
    engine: str, new_folder: Callable[[], Path], records: list[bytes], n: int
) -> None:
    tmp_path = new_folder()
    path = written(tmp_path / "a.tfrecord", records)
    cut = pieces_of(source_of(path), n)
    assert len(cut) <= n
    assert [record for piece in cut for record in read(piece)] == records
    if len(cut) > 1:
        spans = [piece.span or (0, 0) for piece in cut]
        assert [0, *(end for _, end in spans)] == [*(begin for begin, _ in spans), path.stat().st_size]


@given(st.lists(payloads, min_size=1, max_size=30), st.integers(2, 12), st.integers(60, 300), st.integers(1, 4))
@pytest.mark.fault(21)
def test_pieces_that_are_read_without_an_error_are_the_file(
    engine: str, new_folder: Callable[[], Path], records: list[bytes], n: int, chain: int, least: int
) -> None:
    """Also if so little proves a boundary that those inside payloads are taken."""
    tmp_path = new_folder()
    (source,) = [source_of(written(tmp_path / "a.tfrecord", records))]
    got: list[bytes] = []
    try:
        with mock.patch.multiple(boundaries, _CHAIN_BYTES=(chain, chain), _CHAIN_RECORDS=least):
            for run in SplitFiles(Sources([source]), n):  # each by itself, as in other processes
                for piece in align_sources(pickle.loads(pickle.dumps(PackedSources.pack(run))).unpack()):
                    got += read(piece)
    except tfr.TFRecordError:
        return
    assert got == records


@given(st.lists(payloads, min_size=1, max_size=20), st.data())
def test_the_boundary_after_any_byte_is_found(
    engine: str, new_folder: Callable[[], Path], records: list[bytes], data: st.DataObject
) -> None:
    """The first boundary at or after any byte is that of reading from the start."""
    tmp_path = new_folder()
    path = written(tmp_path / "a.tfrecord", records)
    bounds = [0]
    for record in records:
        bounds.append(bounds[-1] + len(record) + 16)
    positions = sorted(data.draw(st.lists(st.integers(0, bounds[-1] - 1), min_size=1, max_size=8)))
    with RandomAccessFile.open(source_of(path)) as ranges:
        found = find_boundaries(ranges, get_engine(), positions)
    assert found == [next(bound for bound in bounds if bound >= position) for position in positions]


def test_pieces_have_similar_sizes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [bytes(size % 997) for size in range(0, 400_000, 331)])
    sizes = [piece.size or 0 for piece in pieces_of(source_of(path), 7)]
    assert max(sizes) - min(sizes) < 3000


@pytest.mark.fault(21)
@pytest.mark.parametrize("cut", [0, 4, 5, 16])
def test_boundaries_inside_a_nested_file_are_not_accepted(engine: str, tmp_path: Path, cut: int) -> None:
    """Also if it lacks its last four bytes: then its chain leads to the end of the record that contains it."""
    inner = framed(*[b"inner %d" % i for i in range(1000)])
    inner = inner[: len(inner) - cut]
    path = written(tmp_path / "a.tfrecord", [b"first", inner, b"last"])
    outer = [0, 21, 21 + len(inner) + 16]
    with RandomAccessFile.open(source_of(path)) as ranges:
        assert find_boundaries(ranges, get_engine(), [1, 22, 1000, 5000]) == [outer[1], *[outer[2]] * 3]


@pytest.mark.fault(21)
@pytest.mark.parametrize("byte", [0, 9])
def test_a_nested_file_in_a_damaged_record_is_not_read(engine: str, tmp_path: Path, byte: int) -> None:
    inner = framed(*[b"inner %d" % i for i in range(300)])
    path = written(tmp_path / "a.tfrecord", [b"first", inner, b"last", b"very last"])
    content = bytearray(path.read_bytes())
    content[21 + byte] ^= 1
    path.write_bytes(content)
    cut = pieces_of(source_of(path), 8)
    with pytest.raises(tfr.errors.CorruptRecordError, match="byte 21"):
        read(cut[0])
    assert [record for piece in cut[1:] for record in read(piece)] in ([b"last", b"very last"], [b"very last"])


@pytest.mark.parametrize("damaged", [2, 50, 98])
def test_damage_affects_one_piece(engine: str, tmp_path: Path, damaged: int) -> None:
    records = [b"%d" % i * 20 for i in range(100)]
    path = written(tmp_path / "a.tfrecord", records)
    content = bytearray(path.read_bytes())
    content[len(framed(*records[:damaged]))] ^= 1
    path.write_bytes(content)
    good: list[bytes] = []
    errors = []
    for piece in pieces_of(source_of(path), 4):
        try:
            good += read(piece)
        except tfr.errors.CorruptRecordError as error:
            errors.append(error)
    assert [error.offset for error in errors] == [len(framed(*records[:damaged]))]
    assert set(good) <= set(records)


def test_the_last_piece_of_a_truncated_file_raises(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 50)
    path.write_bytes(path.read_bytes()[:-3])
    *others, last = pieces_of(source_of(path), 4)
    assert [len(read(piece)) for piece in others] == [13, 12, 13]
    with pytest.raises(tfr.errors.TruncatedRecordError, match="if the file ends there, it is truncated") as caught:
        read(last)
    assert caught.value.offset == 49 * 23


def test_a_piece_that_ends_inside_a_record_raises_with_the_offset(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 5)
    with pytest.raises(
        tfr.errors.CorruptRecordError, match=r"it continues beyond byte 50, where its piece of the file ends"
    ) as caught:
        read(source_of(path).piece(23, 50))
    assert caught.value.offset == 46


def test_a_long_chain_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not all records behind a boundary need to be read: damage far behind does not matter."""
    path = written(tmp_path / "a.tfrecord", [bytes(100)] * 1000)
    content = bytearray(path.read_bytes())
    content[-116] ^= 1
    content[0] ^= 1  # so that nothing is followed from the first record
    path.write_bytes(content)
    assert [piece.size for piece in pieces_of(source_of(path), 2)] == [len(content)]  # no boundary is certain
    monkeypatch.setattr(boundaries, "_CHAIN_BYTES", (4096, 4096))
    with RandomAccessFile.open(source_of(path)) as file:
        assert find_boundaries(file, get_engine(), [1000]) == [1044]


def test_a_payload_full_of_headers_takes_bounded_time(tmp_path: Path) -> None:
    """Each header states a long record; these are not read for every header."""
    claims = b"".join(header(5_000_000 - 12 * at) for at in range(100_000))
    path = written(tmp_path / "a.tfrecord", [b"first", claims, bytes(8_000_000), b"last"])
    seen = 0
    with RandomAccessFile.open(source_of(path)) as ranges:
        read_all = ranges.read

        def counted(begin: int, end: int, *more: Any) -> Any:
            nonlocal seen
            seen += end - begin
            return read_all(begin, end, *more)

        ranges.read = counted  # type: ignore[method-assign]
        found = find_boundaries(ranges, get_engine(), [1, 1000, 2_000_000])
        assert seen < 6 * ranges.size + (300 << 20)
        assert found[2] == len(framed(b"first", claims, bytes(8_000_000)))
    assert [record for piece in pieces_of(source_of(path), 5) for record in read(piece)][-1] == b"last"


def test_pieces_are_counted_and_read_by_number(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 10)
    write_indexes(path)
    halves = pieces_of(source_of(path), 2)
    assert [tfr.count([half]) for half in halves] == [5, 5]
    for half in halves:
        with tfr.open_random(tfr.dataset([half], record_type="bytes")) as records:
            assert (len(records), records[-1]) == (5, {"record": b"payload"})
    with pytest.raises(tfr.errors.CompressionError, match="a piece of a plain file"):
        tfr.count(tfr.dataset([halves[0]], compression="gzip"))


def test_compressed_files_are_not_split(tmp_path: Path) -> None:
    """By their name or by what is declared; else the first range has all of the file, as its content shows."""
    content = gzip.compress(framed(*[b"payload %d" % number for number in range(100)]))
    for name, compression in (("a.tfrecord.gz", "infer"), ("a.tfrecord", "gzip")):
        (tmp_path / name).write_bytes(content)
        source = source_of(tmp_path / name)
        assert [*SplitFiles(Sources([source]), 3, compression=compression)] == [[source]]
    ranges = SplitFiles(Sources([source]), 3)
    assert [run[0].span for run in ranges] == [(0, len(content) // 3), *[run[0].span for run in ranges[1:]]]
    assert [align_sources(run) for run in ranges] == [(source,), (), ()]


def test_a_file_that_was_changed_since_it_was_split(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"payload"] * 50)
    ranges = SplitFiles(Sources([source_of(path)]), 2)
    path.write_bytes(path.read_bytes()[:-23])
    with pytest.raises(tfr.errors.CorruptRecordError, match="has 1127 bytes, but had 1150 when it was split"):
        align_sources(ranges[1])


@given(st.lists(st.integers(0, 500), min_size=1, max_size=12), st.integers(1, 40), st.sampled_from(["infer", "gzip"]))
def test_runs_have_all_bytes_once_and_in_order(sizes: list[int], n: int, compression: str) -> None:
    sources = Sources(Source(f"{at}.tfrecord", size, True) for at, size in enumerate(sizes))
    runs = SplitFiles(sources, n, compression=compression)
    assert 1 <= len(runs) <= n
    parts = [part for run in runs for part in run]
    assert list(dict.fromkeys(part.path for part in parts)) == [source.path for source in sources]
    for source in sources:
        own = [part for part in parts if part.path == source.path]
        bounds = [0, *(part.span[1] for part in own if part.span)]
        if len(own) == 1:
            assert own == [source]
            continue
        assert [part.span for part in own] == list(pairwise(bounds))
        assert bounds[-1] == source.size == own[0].file_bytes
        piece = sum(sizes) / n
        near = min(0.1 * max(piece, source.size), 0.25 * piece)
        assert all(near < at < source.size - near for at in bounds[1:-1])  # none near an edge
    if compression == "gzip" or n == 1:
        assert sources == parts


def test_many_files_are_split_at_their_edges() -> None:
    sources = Sources(Source(f"{at}.tfrecord", 100 + at % 7, True) for at in range(10_000))
    runs = SplitFiles(sources, 400)
    assert len(runs) == 400
    assert all(part.span is None for run in runs for part in run)
    total = sum(source.size or 0 for source in sources)
    assert all(abs(sum(part.size or 0 for part in run) - total / 400) <= 107 for run in runs)


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_readers_read_pieces(tmp_path: Path, threads: int) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(i)) for i in range(1000)])
    rows: list[Any] = []
    for piece in pieces_of(source_of(path), 3):
        rows += tfr.read_table(tfr.dataset([piece], threads=threads), schema={"x": "int64"})["x"].to_pylist()
    assert rows == list(range(1000))


def test_errors_in_pieces_have_the_offset_in_the_file_and_no_record_index(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(i)) for i in range(900)] + [b"no example"] + [b""] * 50)
    second = pieces_of(source_of(path), 2)[1]
    with pytest.raises(tfr.errors.DecodeError, match=f"after byte {second.begin}") as caught:
        tfr.read_table([second], schema={"x": "int64"})
    assert caught.value.record is None
    assert caught.value.offset == len(framed(*[example(x=int64s(i)) for i in range(900)]))


@pytest.mark.matrix
@pytest.mark.parametrize("index", [False, True], ids=["headers", "index"])
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "looks"])
def test_pieces_of_a_bucket_are_prefetched_in_order(bucket: Bucket, index: bool, stream: bool) -> None:
    """Pieces of a file, and of the shards of a dataset with a manifest."""
    options = {"storage_options": bucket.storage_options}
    table = pa.table({"n": pa.array(range(3000)), "s": [f"row {i}" * (i % 50) for i in range(3000)]})
    tfr.write_tfrecord(table, bucket.url("one.tfrecord"), write_index=index, **options)
    tfr.write_tfrecord(table, bucket.url("many/"), shards=3, write_index=index, **options)
    for path in (bucket.url("one.tfrecord"), bucket.url("many/")):
        with read_by(tfr.RecordReader, path, **options) as records:
            expected = list(records)
        sources = [
            piece for source in resolve_inputs(path, StorageOptions(**options)) for piece in pieces_of(source, 4)
        ]
        with SourcePrefetcher(sources, stream=stream) as upcoming:
            assert [record for piece in upcoming for record in read(piece)] == expected
        with SourcePrefetcher(sources[::-1], stream=stream) as upcoming:
            got = [read(piece) for piece in upcoming]
        assert [record for records in got[::-1] for record in records] == expected


@pytest.mark.parametrize("shards", [None, 3])
def test_a_scan_reads_pieces_of_a_bucket_under_one_schema(bucket: Bucket, shards: int | None) -> None:
    table = pa.table({"n": pa.array(range(900), pa.int16()), "s": [f"row {i}" for i in range(900)]})
    path = bucket.url("d/" if shards else "d.tfrecord")
    tfr.write_tfrecord(table, path, shards=shards, storage_options=bucket.storage_options)
    options = ReadOptions.from_keywords({"storage_options": bucket.storage_options, "threads": 2})
    scan = CallSource(path).scan(options)
    parts = [piece for source in scan.sources for piece in pieces_of(source, 4)]
    with ScanRows(scan.with_sources(parts)).open() as reader:
        assert reader.read_all() == table
    later = [piece for piece in parts if piece.begin][-1]
    with ScanRows(scan.with_sources([later])).open() as reader:
        rows = reader.read_all()
    assert rows == table.slice(900 - len(rows))
    assert pa.concat_tables([ScanRows(piece).read() for piece in scan.split(5)]) == table


@pytest.mark.matrix
@pytest.mark.parametrize("compression", CODECS.names())
def test_compressed_shards_of_a_bucket_are_prefetched_in_order(bucket: Bucket, compression: str) -> None:
    options = {"storage_options": bucket.storage_options}
    table = pa.table({"n": pa.array(range(3000)), "s": [f"row {i}" * (i % 50) for i in range(3000)]})
    tfr.write_tfrecord(table, bucket.url("d/"), shards=5, compression=compression, **options)
    with read_by(tfr.RecordReader, bucket.url("d/"), **options) as records:
        expected = list(records)
    for stream in (True, False):
        with SourcePrefetcher(resolve_inputs(bucket.url("d/"), StorageOptions(**options)), stream=stream) as upcoming:
            assert [record for source in upcoming for record in read(source)] == expected
    assert read_by(tfr.read_table, bucket.url("d/"), **options) == table
    (source, *_) = resolve_inputs(bucket.url("d/"), StorageOptions(**options))
    assert pieces_of(source, 2) == [source]
