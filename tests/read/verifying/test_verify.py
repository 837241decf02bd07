"""Verification of files."""

from __future__ import annotations

import errno
import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from interposed import before_opening
from reading_modes import blocks_of
from records import blobs, example, flip, floats, framed, int64s, written
from running_threads import running
from servers import Bucket, meeting_requests
from tfrecord_io import RecordWriter
from tfrecord_io.columns.schema.embedded import embedded_schema, field_bytes, pack
from tfrecord_io.read.file_indexes import check_indexes
from tfrecord_io.read.verifying.file_check import FileChecker
from tfrecord_io.read.verifying.verify import verify
from tfrecord_io.store.read.block_reader import BlockReader
from traced import peak


@pytest.mark.parametrize("name", ["tutorial", "ragged", "sequence", "images", "extremes", "empty"])
def test_golden_files_are_good(engine: str, data: Path, name: str) -> None:
    path = data / f"{name}.tfrecord"
    report = verify(path)
    assert report.ok
    assert report.records == len(json.loads((data / f"{name}.json").read_text()))
    assert report.bytes == path.stat().st_size
    assert report.files[0].record_type == ("sequence_example" if name == "sequence" else "example")
    assert ": good, " in str(report)


@pytest.mark.parametrize("name", ["tutorial_gzip.tfrecord.gz", "tutorial_zlib.tfrecord.zlib"])
def test_compressed_files_are_good(engine: str, data: Path, name: str) -> None:
    report = verify(data / name)
    assert report.ok
    assert report.records > 0


def test_every_flipped_bit_of_a_record_is_found(engine: str, flipped) -> None:
    for byte in range(-60, 0):
        report = verify(flipped("tutorial.tfrecord", byte, -byte % 8))
        assert not report.ok, f"byte {byte}"


def test_a_bad_file_does_not_hide_the_others(engine: str, data: Path, flipped) -> None:
    good = data / "tutorial.tfrecord"
    bad = flipped("tutorial.tfrecord", -1)
    report = verify([good, bad, good])
    assert [file.error is None for file in report.files] == [True, False, True]
    assert report.files[1].records == report.files[0].records - 1
    first, *_, last = str(report).splitlines()
    assert "1 damaged" in first
    assert last.startswith("CorruptRecordError: ")
    assert "flipped.tfrecord" in last
    assert json.loads(json.dumps(report.to_dict()))["ok"] is False


def test_payloads_that_do_not_parse_are_reported_with_their_record(engine: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "odd.tfrecord"
    with RecordWriter(path) as writer:
        writer.write(b"")
        writer.write(b"\x0a\xff")
    report = verify(path)
    assert report.files[0].error is not None
    assert report.files[0].error.record == 1
    assert verify(tfr.dataset(path, record_type="bytes")).ok


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (b"\x08\x05\x12\x03abc", ""),
        (b"\xff no message", ""),
        (b"\x89PNG\r\n\x1a\n" + bytes(40), "it looks like a PNG image"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "it looks like a JPEG image"),
        (b'{"id": 1, "text": "a"}', "it looks like JSON"),
        (example(n=int64s(1))[:-1], ""),
    ],
)
def test_intact_records_that_are_not_examples(engine: str, tmp_path: Path, payload: bytes, kind: str) -> None:
    """The file is not damaged, and the error says what to do."""
    path = written(tmp_path / "a.tfrecord", [payload] * 5)
    report = verify(path)
    (check,) = report.files
    assert (check.status, check.records, check.intact, check.problem_count) == ("not Examples", 5, 5, 1)
    assert check.bytes == check.intact_bytes == path.stat().st_size
    assert "are not tf.train.Examples" in str(report)
    assert 'record_type="bytes"' in str(report)
    assert kind in str(report)
    with pytest.raises(tfr.errors.DecodeError) as raised:
        tfr.read_table(path)
    assert kind in str(raised.value)
    assert "Example" in str(raised.value)
    assert 'record_type="bytes"' in str(raised.value)
    with (tmp_path / "a.tfrecord").open("ab") as file:
        file.write(b"cut")
    (check,) = verify(path).files
    assert (check.status, check.intact, check.records, check.problem_count) == (
        "damaged",
        5,
        5,
        1 if payload[0] == 8 else 2,
    )


def test_the_title_counts_files_and_records_apart(tmp_path: Path) -> None:
    for name in "abc":
        written(tmp_path / name, [example(n=int64s(1))] * 2)
    assert str(verify(tmp_path / "a")).startswith(f"{tmp_path / 'a'}: good, 2 intact records, ")
    assert str(verify([tmp_path / name for name in "abc"])).startswith("3 files: good, 6 intact records, ")
    with (tmp_path / "b").open("ab") as file:
        file.write(b"cut")
    assert str(verify(tmp_path / "b")).startswith(f"{tmp_path / 'b'}: damaged, 2 intact records, ")
    assert str(verify([tmp_path / name for name in "abc"])).startswith("3 files: 1 damaged, 2 good; 6 intact records, ")


@pytest.mark.fault(70)
def test_other_messages_are_not_examples(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "events.tfrecord"
    with RecordWriter(path) as writer:
        for step in range(3):
            writer.write(b"\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10" + bytes([step]))  # Event: wall_time = 1.0, step
    report = verify(path)
    assert not report.ok
    assert (report.files[0].status, report.intact) == ("not Examples", 3)
    assert 'record_type="bytes"' in str(report)
    assert verify(tfr.dataset(path, record_type="bytes")).records == 3


def test_wrong_record_type_is_refused(data: Path) -> None:
    with pytest.raises(ValueError, match="record_type"):
        verify(tfr.dataset(data / "tutorial.tfrecord", record_type="csv"))


def parts(check: Any) -> list[tuple[str, int | None]]:
    """Where the problems of a file are, and in which record."""
    return [(problem.part, problem.record) for problem in check.problems]


def test_it_goes_on_behind_damage(engine: str, tmp_path: Path) -> None:
    payloads = [example(n=int64s(i)) for i in range(10)]
    size = len(framed(payloads[0]))
    path = flip(written(tmp_path / "a", payloads), 2 * size + 5, 6 * size + 14)
    (check,) = verify(path).files
    assert parts(check) == [("frames", 2), ("frames", 6)]
    assert [(problem.offset, problem.end) for problem in check.problems] == [(2 * size, 3 * size), (6 * size, 7 * size)]
    assert (check.records, check.bytes, check.intact, check.intact_bytes) == (2, 2 * size, 8, 8 * size)
    assert (check.status, check.problem_count, check.error) == ("damaged", 2, check.problems[0].error)


def test_damaged_records_that_follow_one_another_are_one_problem(engine: str, tmp_path: Path) -> None:
    size = len(framed(b""))
    path = flip(written(tmp_path / "a", [b""] * 100), *range(10 * size + 12, 30 * size, size))
    (check,) = verify(tfr.dataset(path, record_type="bytes")).files
    assert [(p.record, p.offset, p.end) for p in check.problems] == [(10, 10 * size, 30 * size)]
    assert check.intact == 80


def test_payloads_that_do_not_parse_do_not_end_the_check(engine: str, tmp_path: Path) -> None:
    good, bad = example(n=int64s(1)), b"\x0a\xff"
    (check,) = verify(written(tmp_path / "a", [good, bad, good, bad, good])).files
    assert parts(check) == [("records", 1), ("records", 3)]
    assert (check.records, check.intact) == (1, 3)


def test_the_list_of_problems_is_bounded(tmp_path: Path) -> None:
    (check,) = verify(written(tmp_path / "a", [example(n=int64s(1)), b"\x0a\xff"] * 200)).files
    assert (len(check.problems), check.problem_count, check.intact) == (100, 200, 200)
    assert str(verify(tmp_path / "a")).endswith("a: 100 more problems")


def test_a_feature_has_one_type(engine: str, tmp_path: Path) -> None:
    """Also far apart, where the records are parsed by separate calls."""
    filler = [example(n=int64s(1), s=blobs(bytes(1 << 20)))] * 3
    path = written(tmp_path / "a", [*filler, example(n=blobs(b"x")), *filler])
    (check,) = verify(path).files
    assert parts(check) == [("records", 3)]
    assert isinstance(check.error, tfr.errors.FeatureTypeError)
    assert check.error.feature == "n"
    assert check.intact == 6


def test_records_must_fit_the_embedded_schema(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [1, 2]}, path)
    with path.open("ab") as file:
        file.write(framed(example(n=blobs(b"text")), example(n=int64s(3)), example(other=int64s(3))))
    (check,) = verify(path).files
    assert parts(check) == [("records", 2), ("records", 4)]
    assert [type(problem.error) for problem in check.problems] == [tfr.errors.FeatureTypeError, tfr.errors.SchemaError]


@pytest.mark.fault(57)
def test_the_embedded_schema_is_checked(engine: str, tmp_path: Path) -> None:
    record = example(n=int64s(1))
    path = written(tmp_path / "a", [field_bytes(b"TFRA\x09\0") + record, record])
    (check,) = verify(path).files
    assert parts(check) == [("schema", 0)]
    assert (check.records, check.intact) == (2, 2)
    assert "version 9" in check.problems[0].reason
    contents = [pack(embedded_schema(pa.schema([("n", type)]))) for type in (pa.int64(), pa.int32())]
    path = written(tmp_path / "b", [field_bytes(content) + record for content in contents])
    assert parts(verify(path).files[0]) == [("schema", 1)]


def test_shards_of_a_dataset_must_agree(tmp_path: Path) -> None:
    record, other = example(n=int64s(1)), example(n=blobs(b"x"))
    written(tmp_path / "a-00000-of-00002", [record])
    written(tmp_path / "a-00001-of-00002", [other])
    report = verify(tmp_path)
    assert [file.status for file in report.files] == ["good", "mixed types"]
    assert parts(report.files[1]) == [("records", None)]
    assert "a-00000-of-00002" in report.files[1].problems[0].reason
    assert verify([written(tmp_path / "x", [record]), written(tmp_path / "y", [other])]).ok  # not of one dataset
    tfr.write_tfrecord({"n": ["x"]}, tmp_path / "b-00000-of-00002")
    tfr.write_tfrecord({"n": [1]}, tmp_path / "b-00001-of-00002")
    assert parts(verify(tmp_path / "b@2").files[1]) == [("schema", None)]


@pytest.mark.fault(56)
def test_all_that_a_manifest_states_is_compared(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3]}, tmp_path / "a@1")
    path = tmp_path / "a-00000-of-00001"
    path.write_bytes(path.read_bytes() + framed(example(n=int64s(4))))
    (check,) = verify(tmp_path / "a@1").files
    assert [problem.part for problem in check.problems] == ["manifest"] * 3
    assert all(word in str(verify(tmp_path / "a@1")) for word in ("4 records", "bytes, but", "CRC32C"))
    assert (check.records, check.intact) == (4, 4)


@pytest.mark.fault(56)
def test_an_index_is_compared_with_every_header(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [b"x" * 10] * 5)
    index = tmp_path / "a.tfrecord.index"
    index.write_text("0 26\n26 26\n52 26\n78 26\n104 26\n")
    assert verify(tfr.dataset(path, record_type="bytes")).ok
    index.write_text("0 26\n26 30\n56 22\n78 26\n104 26\n")
    (check,) = verify(tfr.dataset(path, record_type="bytes")).files
    assert parts(check) == [("index", None)]
    assert check.problems[0].error.path == str(index)
    assert check.intact == 5


@pytest.mark.parametrize("threads", [1, 3])
def test_files_are_checked_by_threads_in_their_order(tmp_path: Path, threads: int) -> None:
    paths = [written(tmp_path / f"{i}", [example(n=int64s(i))] * (i + 1)) for i in range(9)]
    flip(paths[4], 5)
    report = verify(tfr.dataset(paths, threads=threads))
    assert [file.path for file in report.files] == list(map(str, paths))
    assert [file.intact for file in report.files] == [1, 2, 3, 4, 4, 6, 7, 8, 9]
    with pytest.raises(ValueError, match="threads=0"):
        verify(tfr.dataset(paths, threads=0))


def test_no_file_is_kept_in_memory(tmp_path: Path) -> None:
    for at in range(20):
        tfr.write_tfrecord({"x": [1]}, tmp_path / f"{at}.tfrecord")
    files = tfr.dataset(tmp_path, threads=1)
    verify(files)  # modules are loaded
    assert peak(lambda: verify(files)) < 5 * BlockReader.BLOCK_BYTES


@pytest.mark.fault(61)
def test_a_file_that_cannot_be_read_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written(tmp_path / name, [example(n=int64s(1))]) for name in "abc"]

    def refuse(path: str) -> None:
        if path.endswith("b"):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    before_opening(monkeypatch, refuse)
    report = verify(paths)
    assert [file.status for file in report.files] == ["good", "unreadable", "good"]
    assert parts(report.files[1]) == [("storage", None)]
    with pytest.raises(OSError, match="Input/output error"):
        verify(paths[1])


def test_a_path_that_is_not_there_does_not_hide_the_others(tmp_path: Path) -> None:
    paths = [written(tmp_path / name, [example(n=int64s(1))]) for name in "ac"]
    paths.insert(1, tmp_path / "b@2")
    report = verify(paths)
    assert [(file.path, file.status) for file in report.files] == [
        *zip(map(str, paths), ["good", "unreadable", "good"], strict=True)
    ]
    assert "no shards" in str(report)
    with pytest.raises(FileNotFoundError, match="no shards"):
        verify([paths[1], tmp_path / "d"])


def test_a_manifest_that_cannot_be_used_does_not_hide_its_files(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": [1, 2, 3]}, f"{tmp_path}/a/", shards=2)
    manifest = tmp_path / "a" / "_MANIFEST.json"
    manifest.write_text("{")
    for source in (tmp_path / "a", [tmp_path / "a"]):
        report = verify(source)
        assert [file.status for file in report.files] == ["good", "good", "damaged"]
        assert report.files[-1].path == str(manifest)
        assert parts(report.files[-1]) == [("manifest", None)]


@pytest.mark.fault(28)
def test_compressed_files_are_checked_behind_the_damage(engine: str, tmp_path: Path) -> None:
    """Members are read separately: only the records of the damaged one are lost."""
    members = [gzip.compress(framed(*[example(n=int64s(10 * m + i)) for i in range(10)])) for m in range(3)]
    path = tmp_path / "a.tfrecord.gz"
    path.write_bytes(members[0] + members[1][:20] + b"\xff" * 10 + members[1][30:] + members[2])
    (check,) = verify(path).files
    assert check.compression == "gzip"
    assert check.problems[0].part == "compression"
    assert "of the compressed file are not read" in check.problems[0].reason
    assert check.intact >= 20


def test_an_interrupted_check_ends_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = [written(tmp_path / f"{i}", [example(n=int64s(i))] * 10) for i in range(20)]
    checked: list[str] = []

    def refuse(path: str) -> None:
        checked.append(path)
        raise KeyboardInterrupt

    before_opening(monkeypatch, refuse)
    with pytest.raises(KeyboardInterrupt):
        verify(tfr.dataset(paths, threads=2))
    assert not running("verify")


@pytest.mark.parametrize("record_type", [None, "bytes"])
def test_a_large_file_is_split(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_type: Any) -> None:
    in_order: list[int] = []
    check = FileChecker._check_block
    monkeypatch.setattr(FileChecker, "_check_block", lambda *given: (in_order.append(1), check(*given))[1])
    records = [example(x=int64s(i), empty=b"") for i in range(3000)]
    records[1500:1500] = [example(late=int64s(1))] * 3
    path = written(tmp_path / "a", records)
    with blocks_of(1000):
        report = verify(tfr.dataset(path, threads=4, record_type=record_type))
        assert (report.ok, report.records, report.bytes) == (True, 3003, path.stat().st_size)
        assert report.intact == 3003
        assert len(in_order) < 20
        records[2000] = example(x=floats(1.0))
        (problem,) = (
            verify(tfr.dataset(written(path, records), threads=4)).files[0].problems if record_type is None else [None]
        )
    assert problem is None or (problem.error.record, problem.error.feature) == (2000, "x")


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_sizes_are_those_of_the_files(compression: str | None, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"n": [7] * 1000}, path, compression=compression)
    report = verify(path)
    (check,) = report.files
    assert check.size == path.stat().st_size
    assert (check.size < check.bytes) == (compression is not None)
    assert report.rows(report.files)[0][1] == f"{check.size:,}"
    assert report.to_dict()["files"][0]["size"] == check.size


def test_the_same_advice_about_a_file_is_given_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        with tfr.RecordWriter(tmp_path / f"{name}.tfrecord") as writer:
            for payload in (example(n=int64s(1)), *[b"\xff no message"] * 3):
                writer.write(payload)
    report = tfr.verify(tmp_path)
    assert [line.count("tfr.formats.open_elwc") for line in report.problem_lines()] == [1, 0, 0, 1, 0, 0]
    assert all(problem.error.advice for file in report.files for problem in file.problems)


def test_shards_of_a_bucket_are_read_by_one_request_each_side_by_side(
    s3: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that take longer to check than a request."""
    shards = 8
    table = pa.table({"x": [bytes([at]) * (1 << 20) for at in range(2 * shards)]})
    tfr.write_tfrecord(table, s3.url(f"d/train@{shards}"), storage_options=s3.storage_options)
    reports: list[Any] = []
    check = lambda: reports.append(verify(s3.url("d/"), storage_options=s3.storage_options))  # noqa: E731
    made, most = meeting_requests(s3, monkeypatch, check, 1)
    assert (reports[0].ok, reports[0].records) == (True, 2 * shards)
    assert made == shards + 3, "and a listing, and the manifest, twice"
    assert most > 2


def test_an_empty_list_has_no_files() -> None:
    with pytest.raises(FileNotFoundError, match="an empty list of paths has no files"):
        verify([])


@pytest.mark.parametrize("shards", [1, 3])
def test_a_dataset_that_is_compacted_meanwhile_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int
) -> None:
    base = f"{tmp_path}/a/"
    for number in range(shards):
        tfr.write_tfrecord({"x": [number]}, base, mode="append")
    last = sorted((tmp_path / "a").glob("*.tfrecord"))[-1]

    begun = threading.Lock()

    def compact(path: str) -> None:
        if Path(path) == last and begun.acquire(blocking=False):
            tfr.write_tfrecord({"x": [9]}, base, mode="append")
            tfr.compact(base)

    before_opening(monkeypatch, compact)
    report = verify(base)
    assert report.ok, report
    assert report.records == shards + 1
    assert {file.path for file in report.files} == {str(path) for path in (tmp_path / "a").glob("*.tfrecord")}


def test_each_index_of_a_file_is_checked(tmp_path: Path) -> None:
    """One of all records, and one with values of columns, of which each may be of another version of the file."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2, 3]}, path, write_index=True)
    tfr.build_index(path, columns=["x"])
    assert tfr.verify(path).ok
    assert [index.error for index in check_indexes(path)] == [None, None]
    damaged = path.with_name(f"{path.name}.column_index")
    damaged.write_bytes(damaged.read_bytes() + b"x")
    (problem,) = tfr.verify(path).files[0].problems
    assert (problem.part, problem.error.path) == ("index", str(damaged))
    assert [index.error is None for index in check_indexes(path)] == [True, False]
