"""Records whose writers store no checksums, or others: all calls read them with ``check_crc=False``."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import framed
from strategies import blobs, example, int64s
from tfrecord_io.bytes.format.framing import FrameHeader, wrong_checksums
from tfrecord_io.read.file_indexes import check_indexes, write_indexes

KINDS: dict[str, Callable[[bytes], int]] = {
    "0": lambda data: 0,
    "CRC-32C without TFRecord's mask": crc32c,
    "CRC-32, that of zlib": zlib.crc32,
    "masked CRC-32": lambda data: FrameHeader.mask_crc(zlib.crc32(data)),
}
RIGHT: Callable[[bytes], int] = lambda data: FrameHeader.mask_crc(crc32c(data))  # noqa: E731


def stored(payload: bytes, of_length: Callable[[bytes], int], of_payload: Callable[[bytes], int]) -> bytes:
    length = len(payload).to_bytes(8, "little")
    crcs = [compute(data).to_bytes(4, "little") for compute, data in ((of_length, length), (of_payload, payload))]
    return length + crcs[0] + payload + crcs[1]


def unchecked(path: Path, payloads: list[bytes], kind: str = "0") -> Path:
    path.write_bytes(b"".join(stored(payload, KINDS[kind], KINDS[kind]) for payload in payloads))
    return path


def numbers(count: int) -> list[bytes]:
    return [example(x=int64s(n), text=blobs(b"row %d" % n)) for n in range(count)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("count", [1, 5, 100_000])
def test_all_readers_read_them(engine: str, tmp_path: Path, kind: str, count: int) -> None:
    if engine == "reference" and count > 5:
        pytest.skip("slow")
    rows = [*range(count)]
    path = unchecked(tmp_path / "a.tfrecord", numbers(count), kind)
    for threads in (1, 3):
        dataset = tfr.dataset(path, check_crc=False, threads=threads)
        assert tfr.read_table(dataset)["x"].to_pylist() == rows
        with tfr.open_reader(dataset) as reader:
            assert [x for batch in reader for x in batch["x"].to_pylist()] == rows
        assert tfr.read_arrays(dataset, columns=["x"])["x"].tolist() == rows
        assert [x for batch in tfr.iter_arrays(dataset, columns=["x"], batch_size=7) for x in batch["x"]] == rows
        assert tfr.count(dataset) == count
        assert tfr.read_table(dataset, filters=[("x", ">=", count - 1)]).num_rows == 1
    assert tfr.count(path, check_crc=False) == count
    assert len([*tfr.RecordReader(dataset)]) == count
    assert tfr.read_table(tfr.dataset(path, check_crc=False, offset=count - 1))["x"].to_pylist() == [count - 1]
    as_bytes = tfr.dataset(path, check_crc=False, record_type="bytes")
    assert tfr.read_table(as_bytes).num_rows == count
    for write in (lambda: None, lambda: write_indexes(dataset), lambda: tfr.build_index(dataset, columns=["x"])):
        write()
        with tfr.open_random(dataset) as records:
            assert (len(records), records[count - 1]["x"]) == (count, count - 1)
        assert tfr.count(dataset) == count
        assert tfr.read_table(dataset, columns=["x"])["x"].to_pylist() == rows
    assert [index.error for index in check_indexes(dataset)] == [None, None]  # of records, and of x


@given(
    payloads=st.lists(st.binary(max_size=40), min_size=1, max_size=12),
    of_length=st.sampled_from([*KINDS.values(), RIGHT]),
    of_payload=st.sampled_from([*KINDS.values(), RIGHT]),
    packed=st.booleans(),
)
def test_salvage_writes_them_anew(
    tmp_path_factory: pytest.TempPathFactory,
    payloads: list[bytes],
    of_length: Callable[[bytes], int],
    of_payload: Callable[[bytes], int],
    packed: bool,
) -> None:
    folder = tmp_path_factory.mktemp("anew")
    content = b"".join(stored(payload, of_length, of_payload) for payload in payloads)
    path, target = folder / ("a.tfrecord.gz" if packed else "a.tfrecord"), folder / "b.tfrecord"
    path.write_bytes(gzip.compress(content) if packed else content)
    report = tfr.salvage(path, target, check_crc=False)
    assert (report.ok, report.records) == (True, len(payloads))
    assert target.read_bytes() == framed(*payloads)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", [tfr.read_table, tfr.count, lambda path: [*tfr.RecordReader(path)], tfr.open_random])
def test_the_error_says_what_is_stored(tmp_path: Path, kind: str, call: Callable[[Path], object]) -> None:
    path = unchecked(tmp_path / "a.tfrecord", numbers(9), kind)
    with pytest.raises(tfr.errors.CorruptRecordError) as raised:
        call(path)
    text = str(raised.value)
    assert f"all checksums of its first 8 records are {kind.removeprefix('masked ')}" in text
    assert "check_crc=False" in text
    assert "tfr.salvage(path, target, check_crc=False)" in text
    (problem, *_) = tfr.verify(path).files[0].problems
    assert "all checksums of its first 8 records" in problem.reason


def test_wrong_checksums_of_payloads_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(stored(payload, RIGHT, KINDS["0"]) for payload in numbers(3)))
    with pytest.raises(tfr.errors.CorruptRecordError, match="those of lengths are right, those of payloads are 0"):
        tfr.read_table(path)


@given(
    payloads=st.lists(st.binary(max_size=9), min_size=1, max_size=10),
    of_length=st.sampled_from([*KINDS, "right"]),
    of_payload=st.sampled_from([*KINDS, "right"]),
)
def test_kinds_of_checksums_are_told_apart(payloads: list[bytes], of_length: str, of_payload: str) -> None:
    kinds = {**KINDS, "right": RIGHT}
    text = wrong_checksums(b"".join(stored(each, kinds[of_length], kinds[of_payload]) for each in payloads))
    is_right = of_length == "right" and of_payload == "right"
    if is_right:
        assert text is None
    elif of_length == of_payload and (of_length != "0" or any(payloads)):
        assert text is not None
        assert text.startswith("all checksums of")
        assert of_length.removeprefix("masked ") in text


def test_damage_is_not_another_kind_of_checksums() -> None:
    good = framed(*numbers(3))
    assert wrong_checksums(good) is None
    for at in (8, 20, len(good) - 1):
        assert wrong_checksums(good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]) is None
    assert wrong_checksums(bytes(100)) is None
    assert wrong_checksums(b"") is None
    assert wrong_checksums(good[:8] + bytes(4) + good[12:]) is None  # of one record of three


@pytest.mark.parametrize("length", [1000, 1 << 30, 1 << 40, 2**64 - 1])
@pytest.mark.parametrize("spare", [0, 100, 30_000_000])
def test_a_length_that_does_not_fit_is_an_error(engine: str, tmp_path: Path, length: int, spare: int) -> None:
    if engine == "reference" and spare > 100:
        pytest.skip("slow")
    if length < spare:
        return
    path = unchecked(tmp_path / "a.tfrecord", numbers(3))
    with path.open("ab") as file:
        file.write(length.to_bytes(8, "little") + bytes(4 + spare))
    dataset = tfr.dataset(path, check_crc=False)
    for call in (tfr.read_table, tfr.count, lambda source: [*tfr.RecordReader(source)], tfr.open_random):
        tracemalloc.start()
        with pytest.raises(tfr.errors.CorruptRecordError, match="record 3 at byte") as raised:
            call(dataset)
        assert raised.value.records_intact == 3
        assert tracemalloc.get_traced_memory()[1] < 25_000_000  # the file is not read to its end
        tracemalloc.stop()
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.read_table(tfr.dataset(path, check_crc=False, on_error="skip"))["x"].to_pylist() == [0, 1, 2]
    report = tfr.salvage(path, tmp_path / "b.tfrecord", check_crc=False)
    assert (report.records, report.ok) == (3, False)


def test_records_larger_than_a_block(tmp_path: Path) -> None:
    payloads = [example(x=int64s(n), image=blobs(bytes([n]) * 5_000_000)) for n in range(4)]
    path = unchecked(tmp_path / "a.tfrecord", payloads)
    dataset = tfr.dataset(path, check_crc=False)
    assert [image[0] for image in tfr.read_table(dataset)["image"].to_pylist()] == [0, 1, 2, 3]
    assert tfr.count(dataset) == 4
    assert tfr.salvage(path, tmp_path / "b.tfrecord", check_crc=False).records == 4
    assert (tmp_path / "b.tfrecord").read_bytes() == framed(*payloads)


def test_one_wrong_length_checksum_among_right_ones(tmp_path: Path) -> None:
    payloads = numbers(60_000)
    frames = [framed(payload) for payload in payloads]
    frames[30_000] = frames[30_000][:8] + b"????" + frames[30_000][12:]
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"".join(frames))
    for threads in (1, 3):
        dataset = tfr.dataset(path, check_crc=False, threads=threads)
        assert tfr.read_table(dataset)["x"].to_pylist() == [*range(60_000)]
        assert tfr.count(dataset) == 60_000


def test_another_format_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(tfr.errors.CorruptRecordError, match="looks like a PNG image"):
        tfr.read_table(tfr.dataset(path, check_crc=False))
