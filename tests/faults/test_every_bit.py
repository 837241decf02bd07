"""Each bit of a file is flipped, and each file is truncated at each byte: no damage goes unnoticed."""

from __future__ import annotations

import io
import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import framed
from rounds import COMPLETE
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.engine.select import get_engine
from tfrecord_io.bytes.format.framing import FrameHeader
from tfrecord_io.store.read.block_reader import Block
from tfrecord_io.testing.codec_suite import write

SMALL = ["bytes", "extremes"]  # every bit by a reader
LARGER = ["images", "tensors", "sequence", "ragged", "tutorial"]  # every bit by the scan that all readers use

Ends = list[int]


def golden(data: Path, name: str) -> tuple[bytes, list[bytes], Ends]:
    """A golden file, its records, and the byte at which each of them ends."""
    content = (data / f"{name}.tfrecord").read_bytes()
    payloads = list(tfr.RecordReader(io.BytesIO(content)))
    assert framed(*payloads) == content
    ends = np.cumsum([len(payload) + FrameHeader.FRAME_BYTES for payload in payloads]).tolist()
    return content, payloads, ends


def until_error(file: Any, **keywords: Any) -> tuple[list[bytes], Exception | None]:
    """The records that a reader gives, and the error that ends them."""
    given: list[bytes] = []
    try:
        given.extend(read_by(tfr.RecordReader, file, **keywords))
    except (tfr.TFRecordError, OSError) as error:
        return given, error
    return given, None


def sample(numbers: range, count: int) -> list[int]:
    """All numbers in the complete run, else some of them."""
    return list(numbers) if COMPLETE else sorted(random.Random(count).sample(numbers, min(count, len(numbers))))


@pytest.mark.fault(5)
@pytest.mark.fault(6)
@pytest.mark.fault(7)
@pytest.mark.fault(8)
@pytest.mark.storm
@pytest.mark.parametrize("name", SMALL)
def test_every_flipped_bit_is_found_after_the_intact_records(
    engine: str, data: Path, name: str, record_property: Callable[[str, Any], None]
) -> None:
    content, payloads, ends = golden(data, name)
    bits = sample(range(8 * len(content)), 120)
    for bit in bits:
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        given, error = until_error(io.BytesIO(damaged))
        record = sum(end <= bit // 8 for end in ends)
        assert isinstance(error, tfr.errors.CorruptRecordError), bit
        assert (error.record, error.records_intact, error.offset) == (record, record, [0, *ends][record]), bit
        assert given == payloads[:record], bit
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert until_error(io.BytesIO(damaged), on_error="skip") == (
                payloads[:record] + payloads[record + 1 :],
                None,
            )
    record_property("flipped bits of plain files, all found by the reader at their record", len(bits))
    record_property("flipped bits of plain files, all other records kept with skip", len(bits))


@pytest.mark.fault(8)
@pytest.mark.storm
@pytest.mark.parametrize("name", LARGER)
def test_every_flipped_bit_of_larger_files_is_found_by_the_scan(
    native_engine: None, data: Path, name: str, record_property: Callable[[str, Any], None]
) -> None:
    content, _, ends = golden(data, name)
    buffer = np.frombuffer(content + bytes(Block.SPARE), np.uint8).copy()
    damaged, limits, scan = buffer[: len(content)], np.array(ends), get_engine().scan
    bits = sample(range(8 * len(content)), 500)
    for bit in bits:
        byte, mask = bit >> 3, np.uint8(1 << (bit & 7))
        damaged[byte] ^= mask
        frames, fault = scan(damaged)
        damaged[byte] ^= mask
        assert fault is not None, bit
        assert fault.record == len(frames.starts) == np.searchsorted(limits, byte, "right"), bit
    record_property("flipped bits of plain files, all found by the scan at their record", len(bits))


@pytest.mark.fault(2)
@pytest.mark.fault(3)
@pytest.mark.fault(4)
@pytest.mark.storm
@pytest.mark.parametrize("name", [*SMALL, "tensors"])
def test_every_truncation_is_found_after_the_intact_records(
    engine: str, data: Path, name: str, record_property: Callable[[str, Any], None]
) -> None:
    """A file that ends between two records is a shorter file: a manifest or an index shows that more is missing."""
    content, payloads, ends = golden(data, name)
    sizes = sample(range(len(content)), 60)
    for size in sizes:
        given, error = until_error(io.BytesIO(content[:size]))
        record = sum(end <= size for end in ends)
        assert given == payloads[:record], size
        if size in (0, *ends):
            assert error is None, size
        else:
            assert isinstance(error, tfr.errors.TruncatedRecordError), size
            assert (error.record, error.records_intact) == (record, record), size
    record_property("truncations of plain files, all found but those between two records", len(sizes))


@pytest.mark.fault(56)
def test_every_truncation_of_a_dataset_is_found_by_its_manifest(
    engine: str, tmp_path: Path, record_property: Callable[[str, Any], None]
) -> None:
    """Between two records too."""
    tfr.write_tfrecord({"x": range(9)}, tmp_path / "a@2", embed_schema=False)
    shard = tmp_path / "a-00001-of-00002"
    content = shard.read_bytes()
    sizes = sample(range(len(content)), 8)
    for size in sizes:
        shard.write_bytes(content[:size])
        with pytest.raises(tfr.errors.CorruptRecordError, match="a-00001-of-00002"):
            tfr.read_table(tmp_path / "a@2")
    shard.write_bytes(content)
    assert tfr.read_table(tmp_path / "a@2").num_rows == 9
    record_property("truncations of a shard, all found by the manifest", len(sizes))


@pytest.mark.fault(26)
@pytest.mark.fault(27)
@pytest.mark.fault(28)
@pytest.mark.storm
@pytest.mark.parametrize("named", [False, True], ids=["inferred", "named"])
@pytest.mark.parametrize("codec", CODECS.names())
def test_no_flipped_bit_of_a_compressed_file_gives_other_records(
    data: Path, codec: str, named: bool, record_property: Callable[[str, Any], None]
) -> None:
    """An error after intact records, or all records, where the bit means nothing: a time, an operating system."""
    content, payloads, _ = golden(data, "extremes")
    made = write(CODECS.find(codec), [content])
    bits, same = sample(range(8 * len(made)), 80), 0
    for bit in bits:
        damaged = bytearray(made)
        damaged[bit // 8] ^= 1 << bit % 8
        given, error = until_error(io.BytesIO(damaged), **({"compression": codec} if named else {}))
        assert given == payloads[: len(given)], bit
        assert error is not None or given == payloads, bit
        same += error is None
    assert same < 120
    record_property(f"flipped bits of a {codec} file, none with other records", len(bits))
    record_property(f"of these without effect on the records of a {codec} file", same)


@pytest.mark.fault(26)
@pytest.mark.storm
def test_no_flipped_bit_of_a_larger_gzip_file_gives_other_records(
    data: Path, record_property: Callable[[str, Any], None]
) -> None:
    """A flipped bit may copy one record to where another was; the checksum of the whole shows that at the end."""
    made = (data / "tutorial_gzip.tfrecord.gz").read_bytes()
    payloads = list(tfr.RecordReader(data / "tutorial_gzip.tfrecord.gz"))
    known = {*payloads}
    bits = random.Random(0).sample(range(8 * len(made)), 2000 if COMPLETE else 60)
    for bit in bits:
        damaged = bytearray(made)
        damaged[bit // 8] ^= 1 << bit % 8
        given, error = until_error(io.BytesIO(damaged))
        assert known.issuperset(given), bit
        assert error is not None or given == payloads, bit
    record_property("flipped bits of a larger gzip file, none with other records", len(bits))
