"""Reading with on_error="skip" and salvage keep the same records: any damage, compression, number of threads."""

from __future__ import annotations

import gzip
import random
import re
import tempfile
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example as case
from hypothesis import given, settings
from hypothesis import strategies as st

import random_damages
import tfrecord_io as tfr
from packed import packed
from reading import read_by
from reading_modes import blocks_of
from records import blobs, example, framed
from rounds import rounds
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.bytes.engine.contract import Fault

pytestmark = [pytest.mark.fault(18), pytest.mark.fault(21), pytest.mark.fault(26), pytest.mark.fault(28)]
INNER = [b"inner %d" % number for number in range(70)]
OUTER = [b"outer record %d" % number for number in range(5)]
SUFFIXES = {"": None, **{codec.suffixes[0]: codec.name for codec in CODECS}}


def as_stored(content: bytes, suffix: str, rng: random.Random) -> bytes:
    """Compressed by the package, in one member or several, or by another program."""
    codec = SUFFIXES[suffix]
    if codec is None:
        return content
    if suffix == ".gz" and rng.random() < 0.3:
        return gzip.compress(content, 1)
    step = rng.choice([500, 5000, 1 << 20])
    return b"".join(packed(codec, content[begin : begin + step]) for begin in range(0, len(content), step))


def damaged(content: bytes, rng: random.Random) -> bytes:
    kind = rng.choice([*random_damages.KINDS, "text", "end"])
    if not content:
        return content
    if kind == "text":
        return content.replace(b"\n", b"\r\n") if rng.random() < 0.5 else re.sub(rb"(?<!\r)\n", b"\r\n", content)
    if kind == "end":
        return content[: -rng.randint(1, 9)] + rng.randbytes(rng.choice([0, 8]))
    return random_damages.damaged(content, kind, rng)


def salvaged(path: Path, compression: str | None) -> list[bytes]:
    target = path.with_name("salvaged.tfrecord")
    tfr.salvage(tfr.dataset(path, compression=compression), target)  # type: ignore[arg-type]
    return list(tfr.RecordReader(target))


def is_refused(call: Callable[[], object]) -> bool:
    """Whether the first bytes of the file are those of another format, which is not damage."""
    try:
        call()
    except tfr.errors.CorruptRecordError as error:
        if not Fault.is_other_format(error):
            raise
        return True
    return False


def check(path: Path, compression: str | None, threads: int, block_bytes: int = 4 << 20) -> list[bytes]:
    """Compare all readers with `salvage`, and return what it keeps."""
    keywords: dict[str, Any] = {"on_error": "skip", "compression": compression}
    expected = [] if is_refused(partial(salvaged, path, compression)) else salvaged(path, compression)
    with warnings.catch_warnings(), blocks_of(block_bytes):
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        if is_refused(lambda: list(read_by(tfr.RecordReader, path, **keywords))):
            return expected
        assert list(read_by(tfr.RecordReader, path, **keywords)) == expected
        table = read_by(tfr.read_table, path, record_type="bytes", threads=threads, **keywords)
        assert table.column(0).to_pylist() == expected
        with read_by(tfr.open_reader, path, record_type="bytes", threads=threads, batch_size=3, **keywords) as reader:
            assert [row for batch in reader for row in batch.column(0).to_pylist()] == expected
            begins = [region.begin or 0 for region in reader.report.skipped]
        assert begins == sorted(begins)
        assert read_by(tfr.count, path, check_crc=True, **keywords) == len(expected)
    return expected


@settings(max_examples=rounds(120))
@given(
    seed=st.integers(0, 2**32),
    suffix=st.sampled_from(sorted(SUFFIXES)),
    inside=st.booleans(),
    count=st.integers(1, 3),
    threads=st.sampled_from([1, 2, 4]),
    block_bytes=st.sampled_from([100, 5000, 4 << 20]),
)
def test_the_same_records(seed: int, suffix: str, inside: bool, count: int, threads: int, block_bytes: int) -> None:
    """Of a file damaged before it is compressed, and after."""
    rng = random.Random(seed)
    content = framed(*random_damages.payloads_of(rng)[: rng.choice([3, 20, 120])])
    if inside:
        content = damaged(content, rng)
    stored = as_stored(content, suffix, rng)
    for _ in range(count - inside):
        stored = damaged(stored, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a.tfrecord{suffix}"
        path.write_bytes(stored)
        check(path, SUFFIXES[suffix], threads, block_bytes)


@pytest.mark.parametrize("end", ["trailer", "cut", "cut header"])
@pytest.mark.parametrize("tail", [b"", b"tail"])
def test_a_nested_file_at_an_end_that_cannot_be_read(tmp_path: Path, end: str, tail: bytes) -> None:
    content = bytearray(framed(*OUTER, b"xx" + framed(*INNER) + tail))
    content[len(framed(*OUTER))] ^= 1
    stored = gzip.compress(content)
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes({"trailer": stored[:-8] + b"12345678", "cut": stored[:-9], "cut header": stored[:-8]}[end])
    assert check(path, "gzip", 1) == OUTER


@pytest.mark.parametrize("records", [1, 5, 63])
def test_records_before_a_wrong_trailer(tmp_path: Path, records: int) -> None:
    """The end of what can be read is the end of the file: the records before it are proven by it."""
    behind = [b"behind %d" % number for number in range(records)]
    content = bytearray(framed(*OUTER, b"damaged", *behind))
    content[len(framed(*OUTER))] ^= 1
    content[len(framed(*OUTER)) + 14] ^= 1  # of the payload, which its checksum would find
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(content)[:-8] + b"12345678")
    assert check(path, "gzip", 1) == [*OUTER, *behind]


def refuse_damaged_data(error: tfr.TFRecordError) -> bool:
    return not isinstance(error, tfr.errors.CompressionError)


def test_damage_that_a_search_passed_is_met_in_its_turn(tmp_path: Path) -> None:
    """The records before it are delivered, and a function that refuses it ends the read there."""
    behind = [b"behind %d" % number for number in range(8)]
    first = bytearray(framed(*OUTER, b"damaged", *behind[:3]))
    first[len(framed(*OUTER))] ^= 1
    first[len(framed(*OUTER)) + 14] ^= 1
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(gzip.compress(first)[:-8] + b"12345678" + gzip.compress(framed(*behind[3:])))
    assert check(path, "gzip", 1) == [*OUTER, *behind]
    reader = tfr.RecordReader(path, on_error=refuse_damaged_data)
    got: list[bytes] = []
    with pytest.raises(tfr.errors.CompressionError) as caught:
        got += reader  # what is taken before an error stays
    assert got == [*OUTER, *behind[:3]]
    assert caught.value.records_intact == len(OUTER) + 1 + 3
    reader = tfr.RecordReader(path, on_error="skip")
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert list(reader) == [*OUTER, *behind]
    regions = reader.report.skipped
    assert [region.records_before for region in regions] == [5, 9]
    assert [region.error for region in regions] == ["CorruptRecordError", "CompressionError"]


@settings(max_examples=rounds(60))
@given(seed=st.integers(0, 2**32))
@case(1790)
@case(4639)
def test_no_nested_record_after_a_copy_in_text_mode(seed: int) -> None:
    """Also where some CRLF of the payload were there before, so that its checksum cannot be restored."""
    rng = random.Random(seed)
    inner = framed(*[b"in%d;" % n + bytes(rng.choice(b"abc\r") for _ in range(rng.randint(0, 3))) for n in range(70)])
    last = example(n=blobs(rng.randbytes(3)), a=blobs(inner), z=blobs(rng.randbytes(rng.randint(0, 9))))
    last = rng.choice([last, rng.randbytes(rng.randint(0, 4)) + inner + rng.choice([b"", b"tail\n"])])
    payloads = [*OUTER, last, *OUTER[: rng.choice([0, 3])]]
    content = framed(*payloads)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        path.write_bytes(re.sub(rb"(?<!\r)\n", b"\r\n", content))
        assert set(check(path, None, 1)) <= set(payloads)


def test_lost_bytes_are_not_told_from_a_lost_end(tmp_path: Path) -> None:
    """A record that seems to end behind the file takes what is left: it may be a file in its payload, cut off."""
    inside = framed(*INNER)
    cut = framed(*OUTER, b"payload " * 100 + inside)[:-4]
    lost = framed(*OUTER, b"payload " * 100 + bytes(len(inside))) + inside
    gap = len(framed(*OUTER)) + 12 + 800
    for content in (cut, lost[:gap] + lost[gap + len(inside) + 4 :]):
        path = tmp_path / "a.tfrecord"
        path.write_bytes(content)
        assert check(path, None, 1) == OUTER
    assert content == cut
