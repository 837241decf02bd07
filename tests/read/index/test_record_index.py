"""The text format of indexes is that of the other tools that use it."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import framed
from tfrecord_io.base.options.options_base import StorageOptions
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.index import record_index
from tfrecord_io.read.index.record_index import LineIndex, RecordIndex
from tfrecord_io.read.index.write_index import write_index
from tfrecord_io.store.paths.resolve import resolve_inputs
from tfrecord_io.store.read.random_access_file import LocalRandomAccessFile, RandomAccessFile
from traced import peak

sizes = st.lists(st.integers(16, 2**31 + 15), max_size=50)


def dali_creates(data: bytes) -> str:
    """The loop of NVIDIA DALI's ``tfrecord2idx``."""
    source, out = io.BytesIO(data), []
    while True:
        current = source.tell()
        byte_len = source.read(8)
        if len(byte_len) == 0:
            break
        source.read(4)
        source.read(int(np.frombuffer(byte_len, "<i8")[0]))
        source.read(4)
        out.append(str(current) + " " + str(source.tell() - current) + "\n")
    return "".join(out)


def dali_reads(text: str) -> list[tuple[int, int]]:
    """DALI's IndexedFileLoader: ``while (fin >> pos >> size)``."""
    numbers = [int(word) for word in text.split()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def vahidk_reads(path: Path) -> list[int]:
    """The ``tfrecord`` package: offsets of the records."""
    return np.loadtxt(path, dtype=np.int64, ndmin=2)[:, 0].tolist()


@given(sizes)
def test_text_round_trip(records: list[int]) -> None:
    index = RecordIndex.from_sizes(records)
    again = RecordIndex.from_blocks(index.texts(), "a.index")
    np.testing.assert_array_equal(again.bounds, index.bounds)
    assert again.sizes.tolist() == records
    assert len(again) == len(records)
    assert again.end == sum(records)
    assert dali_reads(b"".join(index.texts()).decode()) == list(zip(index.offsets.tolist(), records, strict=True))


@given(sizes)
def test_few_records_are_written_and_read_as_many_are(records: list[int]) -> None:
    index = RecordIndex.from_sizes(records)
    text = b"".join(index.texts())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_index, "_FEW_RECORDS", 0)
        patch.setattr(record_index, "_FEW_BYTES", 0)
        assert b"".join(index.texts()) == text
        patch.setattr(record_index, "_TEXT_RECORDS", 3)
        assert b"".join(index.texts()) == text
        many = RecordIndex.from_blocks([text], "a.index")
    np.testing.assert_array_equal(RecordIndex.from_blocks([text], "a.index").bounds, many.bounds)


@given(st.from_regex(rb"([0-9]{1,20}[ ,]?[0-9]{0,3}(\r?\n|\r)?){0,4}", fullmatch=True))
def test_few_lines_have_the_faults_of_many(text: bytes) -> None:
    def parsed() -> object:
        try:
            return RecordIndex.from_blocks([text], "a.index").bounds.tolist()
        except CorruptRecordError as error:
            return str(error)

    few = parsed()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(record_index, "_FEW_BYTES", 0)
        assert few == parsed()


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_text_is_that_of_dali(payloads: list[bytes]) -> None:
    assert b"".join(
        RecordIndex.from_sizes([len(payload) + 16 for payload in payloads]).texts()
    ).decode() == dali_creates(framed(*payloads))


def test_the_tfrecord_package_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(b"one", b"", b"three"))
    write_indexes(path)
    assert vahidk_reads(tmp_path / "a.tfrecord.index") == [0, 19, 35]


@pytest.mark.parametrize("text", [b"0 20\n20 16", b"0 20\r\n20 16\r\n", b"00 020\n20 16\n"])
def test_other_number_formats_and_line_ends_are_read(text: bytes) -> None:
    assert RecordIndex.from_blocks([text], "a.index").sizes.tolist() == [20, 16]


@pytest.mark.fault(56)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"0 20\n20\n", "line 2"),
        (b"0 20 1\n", "line 1"),
        (b"0 20\n\n36 16\n", "line 2"),
        (b"\n", "line 1"),
        (b"0  20\n", "line 1"),
        (b"0\t20\n", "line 1"),
        (b"0 -20\n", "line 1"),
        (b"0 0x14\n", "line 1"),
        (b"0 20.0\n", "line 1"),
        (b'"0" 20\n', "line 1"),
        (b"# offset size\n0 20\n", "line 1"),
        (b"\xff\xfe\x00\n", "line 1"),
        (b"0 99999999999999999999\n", "over 2"),
        (b"0 20\n20 15\n", "line 2 of the index: a record has at least 16 bytes"),
        (b"20 20\n", "line 1 of the index: expected the record at byte 0"),
        (b"0 20\n21 20\n", "line 2 of the index: expected the record at byte 20"),
        (b"0 20\n19 20\n", "line 2"),
    ],
    ids=str,
)
def test_invalid_text_is_refused_with_its_line(text: bytes, reason: str) -> None:
    with pytest.raises(CorruptRecordError, match=reason) as caught:
        RecordIndex.from_blocks([text], "a.index")
    assert caught.value.path == "a.index"


@given(st.binary(max_size=60) | st.text("0123456789 \n\r", max_size=60).map(str.encode))
def test_any_text_is_an_index_or_an_error(text: bytes) -> None:
    try:
        index = RecordIndex.from_blocks([text], "a.index")
    except tfr.errors.CorruptRecordError:
        return
    assert (index.sizes >= 16).all()


@given(
    text=sizes.map(lambda records: b"".join(RecordIndex.from_sizes(records).texts()))
    | st.from_regex(rb"([0-9]{1,2} [0-9]{2}\r?\n){0,4}[0-9 ]{0,5}", fullmatch=True),
    block=st.integers(1, 40),
)
def test_blocks_are_read_as_the_whole_file(tmp_path_factory: pytest.TempPathFactory, text: bytes, block: int) -> None:
    path = tmp_path_factory.getbasetemp() / "blocks.index"
    path.write_bytes(text)

    def result(read: Callable[[], RecordIndex]) -> object:
        try:
            return read().bounds.tolist()
        except CorruptRecordError as error:
            return str(error)

    (source,) = resolve_inputs([path])
    with pytest.MonkeyPatch.context() as patch, RandomAccessFile.open(source) as file:
        patch.setattr(LocalRandomAccessFile, "block_bytes", block)
        assert result(lambda: RecordIndex.read(file)) == result(lambda: RecordIndex.from_blocks([text], source.path))


def test_memory_of_reading_an_index_is_twice_that_of_its_offsets(tmp_path: Path) -> None:
    path, records = tmp_path / "a.index", 1_000_000
    path.write_bytes(b"".join(RecordIndex.from_sizes(np.full(records, 40)).texts()))
    (source,) = resolve_inputs([path])
    with RandomAccessFile.open(source) as file:
        assert peak(lambda: RecordIndex.read(file)) < 8 * records * 2 + (8 << 20)


def test_memory_of_writing_an_index_is_that_of_its_offsets(tmp_path: Path) -> None:
    path, index = str(tmp_path / "a.index"), RecordIndex.from_sizes(np.full(1_000_000, 40))
    assert peak(lambda: write_index(path, index, StorageOptions.DEFAULT).commit()) < 8 << 20
    assert Path(path).read_bytes() == b"".join(index.texts())


def test_lines_are_those_of_the_whole_index(tmp_path: Path) -> None:
    text = b"0 20\n20 16\r\n36 17"
    lines, whole = LineIndex(text, "x.index"), RecordIndex.from_blocks([text], "x.index")
    assert len(lines) == len(whole) == 3
    assert [*map(lines.extent, range(3))] == [*map(whole.extent, range(3))] == [(0, 20), (20, 16), (36, 17)]
    assert lines.end == whole.end == 53
    assert (len(LineIndex(b"", "x.index")), LineIndex(b"", "x.index").end) == (0, 0)


@given(zeros=st.lists(st.integers(0, 30), max_size=60), counted=st.integers(1, 40), read=st.integers(1, 60))
def test_lines_are_found_wherever_blocks_of_the_text_end(zeros: list[int], counted: int, read: int) -> None:
    extents = [(20 * at, 20) for at in range(len(zeros))]
    text = "\n".join(
        "0" * more + f"{begin} {size}" for more, (begin, size) in zip(zeros, extents, strict=True)
    ).encode()
    with mock.patch.multiple(record_index, _COUNTED=counted, _BLOCK_BYTES=counted * read):
        for end in (b"", b"\n") if extents else (b"",):
            lines = LineIndex(text + end, "x.index")
            assert [lines.extent(number) for number in range(len(lines))] == extents


@pytest.mark.parametrize(
    "line", [b"", b"20", b"20 x", b"20 -1", b"20 15", b"20 16 1", b"%d 16" % 2**63, b"20 %d" % 2**64]
)
def test_a_bad_line_is_an_error_when_it_is_asked_for(line: bytes) -> None:
    lines = LineIndex(b"0 20\n" + line + b"\n36 17\n", "x.index")
    assert lines.end == 53
    with pytest.raises(CorruptRecordError, match=r"line 2 of the index"):
        lines.extent(1)
