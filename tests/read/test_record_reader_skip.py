"""A RecordReader that goes on behind damage: what it delivers, reports, warns of and asks."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from reading import read_by
from records import framed, header, written

PAYLOADS = [b"record %d" % i for i in range(9)]  # frames of 24 bytes


def flipped(path: Path, *offsets: int) -> Path:
    content = bytearray(written(path, PAYLOADS).read_bytes())
    for offset in offsets:
        content[offset] ^= 1
    path.write_bytes(content)
    return path


def skipped(path: Any, **keywords: Any) -> tuple[list[bytes], list[tuple[int | None, int | None]]]:
    reader = read_by(tfr.RecordReader, path, on_error="skip", **keywords)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        got = list(reader)
    assert reader.report.records == len(got)
    return got, [(region.begin, region.end) for region in reader.report.skipped]


def test_a_record_with_a_bad_header_is_left_out(engine: str, tmp_path: Path) -> None:
    path = flipped(tmp_path / "a", 2 * 24, 4 * 24 + 8, 6 * 24 + 20)
    intact = [PAYLOADS[i] for i in (0, 1, 3, 5, 7, 8)]
    assert skipped(path) == (intact, [(48, 72), (96, 120), (144, 168)])
    path = flipped(tmp_path / "a", 2 * 24, 3 * 24 + 8)  # where the first of two ends cannot be known
    assert skipped(path) == (PAYLOADS[:2] + PAYLOADS[4:], [(48, 96)])


def test_a_record_over_the_limit_is_left_out(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [b"a", bytes(9_000_000), b"b"])
    assert skipped(path, limits=tfr.Limits(record_bytes=100)) == ([b"a", b"b"], [(17, 17 + 9_000_016)])
    path.write_bytes(framed(b"a") + header(2**63) + framed(b"b"))
    assert skipped(path) == ([b"a", b"b"], [(17, 17 + 12)])  # no record has such a length


def test_the_report_tells_what_was_left_out(engine: str, tmp_path: Path) -> None:
    files = [flipped(tmp_path / "a", 30), flipped(tmp_path / "b", 0, 100)]
    reader = tfr.RecordReader(files, on_error="skip")
    with pytest.warns(
        tfr.errors.DamagedDataWarning, match=r"3 damaged regions of 72 bytes left out in .*b \(2\)"
    ) as warned:
        got = list(reader)
    assert len(got) == 15
    assert warned[0].filename == __file__
    skipped = reader.report.skipped
    assert (len(skipped), skipped.total, skipped.bytes) == (3, 3, 72)
    first = skipped[0]
    assert (first.path, first.begin, first.end, first.bytes) == (str(files[0]), 24, 48, 24)
    assert (first.records_before, first.error) == (1, "CorruptRecordError")
    assert first.reason.startswith("length CRC mismatch") or first.reason.startswith("payload CRC mismatch")
    assert [region.records_before for region in skipped] == [1, 0, 4]
    assert pickle.loads(pickle.dumps(list(skipped))) == list(skipped)


def test_intact_files_are_not_warned_of(engine: str, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    reader = tfr.RecordReader(written(tmp_path / "a", PAYLOADS), on_error="skip")
    assert list(reader) == PAYLOADS
    assert not recwarn.list
    assert list(reader.report.skipped) == []


def test_a_function_decides(engine: str, tmp_path: Path) -> None:
    path = flipped(tmp_path / "a", 30, 150)
    asked = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append(error)
        return error.record == 1

    reader, got = tfr.RecordReader(path, on_error=decide), []
    with pytest.raises(tfr.errors.CorruptRecordError) as caught:
        got.extend(iter(reader.__next__, None))
    assert got == [PAYLOADS[0], *PAYLOADS[2:6]]
    assert [(error.record, error.offset) for error in asked] == [(1, 24), (6, 144)]
    assert caught.value is asked[1]
    assert asked[1].region == tfr.typing.SkippedRegion(str(path), 144, 168, asked[1].reason, 6, "CorruptRecordError")
    assert [region.begin for region in reader.report.skipped] == [24]
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert len(list(tfr.RecordReader(path, on_error=lambda error: True))) == 7


def test_the_intact_prefix_of_compressed_data_is_read(engine: str, tmp_path: Path) -> None:
    content = gzip.compress(framed(*PAYLOADS), 0)
    path, other = tmp_path / "a.gz", written(tmp_path / "b", PAYLOADS)
    path.write_bytes(content[:120])
    got, regions = skipped([path, other])
    count = len(got) - len(PAYLOADS)
    assert 0 < count < 9
    assert got == PAYLOADS[:count] + PAYLOADS
    assert regions == [(24 * count, None)]
    with pytest.warns(
        tfr.errors.DamagedDataWarning, match="1 damaged region of unknown size left out .* tfr verify lists"
    ):
        tfr.count(path, on_error="skip")


def test_what_is_no_damage_is_raised(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    with pytest.raises(tfr.errors.CorruptRecordError, match="looks like a PNG"):
        list(tfr.RecordReader(path, on_error="skip"))
    with pytest.raises(FileNotFoundError):
        tfr.RecordReader(tmp_path / "gone", on_error="skip")
    with pytest.raises(tfr.errors.CompressionError, match="the stated compression is 'gzip'"):
        list(tfr.RecordReader(tfr.dataset(written(path, PAYLOADS), compression="gzip"), on_error="skip"))


def test_a_hole_at_the_start_is_damage(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(bytes(4096) + framed(*PAYLOADS))
    assert skipped(path) == (PAYLOADS, [(0, 4096)])
    path.write_bytes(bytes(100))
    assert skipped(path) == ([], [(0, 100)])


@pytest.mark.fault(21)
@pytest.mark.parametrize("hidden", [range(24, 36), range(24, 90), range(30, 31), range(40, 50)])
def test_a_large_file_in_a_payload_does_not_surface(engine: str, tmp_path: Path, hidden: range) -> None:
    inner = framed(*[b"inner %d" % i for i in range(500)])
    path = tmp_path / "a"
    for payload in (inner, tfr.encode_example({"a": inner, "b": 1, "c": b"x"})):
        content = bytearray(framed(PAYLOADS[0], payload, *PAYLOADS[1:]))
        for offset in hidden:
            content[offset] = 0xA5
        path.write_bytes(content)
        assert skipped(path) == (PAYLOADS, [(24, 24 + len(payload) + 16)])


def test_payloads_full_of_headers_take_bounded_time(engine: str, tmp_path: Path) -> None:
    """Each of them claims bytes whose checksum would have to be computed."""
    claims = header(1 << 16) * (20_000 if engine == "native" else 200)
    path = tmp_path / "a"
    path.write_bytes(framed(*PAYLOADS) + b"\0" + claims + bytes(1 << 16) + framed(*PAYLOADS))
    assert skipped(path)[0] == PAYLOADS * 2
