"""All damaged regions as rows of a table: of readers, of pieces together, and of conversions, however these read."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import example, framed, int64s, written
from tfrecord_io.read.chunks import recovery
from tfrecord_io.read.chunks.skipped_region import SkippedRegion
from tfrecord_io.read.chunks.skipped_regions import SkippedRegions
from tfrecord_io.read.report import ReadReport

ROWS, EVERY, MOST = 400, 3, 50
SCHEMA = pa.schema(
    [
        pa.field("file", pa.string(), nullable=False),
        pa.field("first_record", pa.int64()),
        pa.field("begin_byte", pa.int64()),
        pa.field("end_byte", pa.int64()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("error", pa.string(), nullable=False),
    ]
)
pytestmark = pytest.mark.filterwarnings("error::tfrecord_io.errors.DamagedDataWarning")


def damaged(path: Path, rows: int = ROWS, every: int = EVERY) -> Path:
    """A file of which every third payload does not match its checksum."""
    frames = []
    for number in range(rows):
        frame = bytearray(framed(example(x=int64s(number))))
        frame[14] ^= number % every == 0
        frames.append(bytes(frame))
    path.write_bytes(b"".join(frames))
    return path


def skipped_by(source: Any, **keywords: Any) -> ReadReport:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with read_by(tfr.open_reader, source, on_error="skip", **keywords) as reader:
            reader.read_all()
    return reader.report


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(recovery.SkippedRegions, "MOST", MOST)
    return [damaged(tmp_path / "a.tfrecord"), damaged(tmp_path / "b.tfrecord", 10)]


@pytest.fixture
def expected(files: Sequence[Path]) -> pa.Table:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recovery.SkippedRegions, "MOST", 10**6)
        table = skipped_by(files).skipped_table()
    assert table.num_rows == ROWS // EVERY + 1 + 4
    return table


def test_a_row_has_file_record_bytes_and_reason(engine: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "a.tfrecord", 5)
    with tfr.open_reader(path, on_error="collect") as reader:
        assert reader.read_all()["x"].to_pylist() == [1, 2, 4]
    table, size = reader.report.skipped_table(), len(framed(example(x=int64s(3))))
    assert table.schema.equals(SCHEMA, check_metadata=True)
    places = table.drop_columns(["reason"]).to_pylist()
    begins = [0, len(framed(*(example(x=int64s(i)) for i in range(3))))]
    assert places == [
        {
            "file": str(path),
            "first_record": 3 * i,
            "begin_byte": begins[i],
            "end_byte": begins[i] + (len(framed(example(x=int64s(0)))) if i == 0 else size),
            "error": "CorruptRecordError",
        }
        for i in range(2)
    ]
    assert all("payload CRC mismatch" in reason for reason in table["reason"].to_pylist())


def test_a_table_without_rows_has_its_types(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    with tfr.open_reader(tmp_path / "a.tfrecord", on_error="collect") as reader:
        assert len(reader.read_all()) == 1
    assert reader.report.skipped_table() == SCHEMA.empty_table()
    assert tfr.verify(tmp_path / "a.tfrecord").skipped_table() == SCHEMA.empty_table()
    assert tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv").skipped_table() == SCHEMA.empty_table()


@pytest.mark.parametrize("threads", [1, 2])
def test_all_regions_are_kept(engine: str, files: Sequence[Path], expected: pa.Table, threads: int) -> None:
    with read_by(tfr.open_reader, files, on_error="collect", threads=threads, batch_size=100) as reader:
        rows = sum(map(len, reader))
    assert reader.report.skipped_table() == expected
    assert rows + expected.num_rows == ROWS + 10
    skipped = skipped_by(files, threads=threads)
    assert skipped.skipped.total == expected.num_rows
    assert skipped.skipped_table() == expected.slice(0, MOST)


def test_a_selection_has_the_regions_of_the_read(files: Sequence[Path]) -> None:
    dataset = tfr.dataset(files, on_error="collect")
    for data in (dataset.filter("x > 100"), dataset.select(["x"]).limit(50), dataset.offset(5)):
        with data.to_batches() as reader:
            rows = [x for batch in reader for x in batch["x"].to_pylist()]
        assert [x for x in rows if x % EVERY == 0] == []
        table = reader.report.skipped_table()
        assert table.num_rows == reader.report.skipped.total > 0
    with tfr.open_reader(dataset.filter("x > 100")) as reader:
        assert sum(map(len, reader)) > 0
    assert reader.report.skipped_table().num_rows == reader.report.skipped.total > MOST


def test_pieces_have_the_regions_of_the_whole(files: Sequence[Path], expected: pa.Table) -> None:
    pieces = tfr.dataset(files, on_error="collect", schema={"x": "int64"}).pieces(3)
    assert len(pieces) > 1
    whole, tables = ReadReport(), []
    for piece in pieces:
        with pickle.loads(pickle.dumps(piece)).to_batches() as reader:
            for _ in reader:
                pass
        whole.add(reader.report)
        tables.append(reader.report.skipped_table())
    assert whole.skipped.total == expected.num_rows
    assert whole.skipped_table() == pa.concat_tables(tables)
    assert whole.skipped_table().select(["file", "error"]) == expected.select(["file", "error"])
    assert str(whole).count("payload CRC mismatch") >= expected.num_rows


@pytest.mark.parametrize("keeps", [True, False])
def test_regions_that_are_all_kept_stay_kept_with_others(keeps: bool) -> None:
    def regions(keeps_all: bool, path: str) -> SkippedRegions:
        some = SkippedRegions((lambda _: None) if keeps_all else None)
        for number in range(1500):
            some.add(SkippedRegion(path, number, number + 1, "x", number, "CorruptRecordError"))
        return some

    first, other = regions(keeps, "a"), regions(not keeps, "b")
    first.add_all(other)
    assert first.total == 3000
    assert len(first) == 2500
    first.add(SkippedRegion("c", 1, 2, "x", 1, "CorruptRecordError"), 5)
    assert len(first) == 2501
    again = pickle.loads(pickle.dumps(first))
    assert again == first
    assert again.to_table() == first.to_table()


def test_regions_of_another_read_of_the_same_files_are_told_once() -> None:
    def regions(numbers: Sequence[int], file: int) -> SkippedRegions:
        some = SkippedRegions(lambda _: None)
        for number in numbers:
            some.add(SkippedRegion("a", number, number + 1, "x", number, "CorruptRecordError"), file)
        return some

    all_regions = SkippedRegions(lambda _: None)
    for numbers, file in [([1, 3], 0), ([1, 2, 3], 0), ([1], 1), ([1], 1)]:
        all_regions.unite(regions(numbers, file))
    assert [region.begin for region in all_regions] == [1, 2, 3, 1]
    assert all_regions.total == 4


# ---- reports of other calls

TARGETS = "tfrecord parquet csv jsonl arrow orc npz npy h5 nc tar array_record parquet/".split()


@pytest.mark.plugins("tensorflow", "vision")
@pytest.mark.parametrize("of_dataset", [True, False], ids=["dataset", "paths"])
@pytest.mark.parametrize("target", TARGETS)
def test_a_conversion_has_each_region_once(
    files: Sequence[Path], expected: pa.Table, target: str, of_dataset: bool
) -> None:
    pytest.importorskip({"array_record": "array_record", "h5": "h5py", "nc": "netCDF4"}.get(target, "pyarrow"))
    stated: dict[str, Any] = {} if of_dataset else {"on_error": "collect"}
    source: Any = tfr.dataset(files, on_error="collect") if of_dataset else files
    report = tfr.convert(source, f"o.{target}", **stated)
    assert report.skipped_table() == expected
    assert report.records == ROWS + 10 - expected.num_rows
    assert f"{expected.num_rows} damaged regions left out" in str(report)
    again = pickle.loads(pickle.dumps(report))
    assert again.skipped_table() == expected


def test_a_conversion_of_a_file_given_twice_has_its_regions_twice(files: Sequence[Path]) -> None:
    report = tfr.convert([files[1], files[1]], "o.parquet", on_error="collect")
    assert report.skipped_table()["first_record"].to_pylist() == [0, 3, 6, 9] * 2


def test_a_conversion_takes_it_as_an_option_of_the_source(files: Sequence[Path], expected: pa.Table) -> None:
    report = tfr.convert(files, "o.parquet", source_options={"on_error": "collect"})
    assert report.skipped_table() == expected


def test_a_conversion_of_a_selection(files: Sequence[Path], expected: pa.Table) -> None:
    for target in ("o.parquet", "o.npz", "o.tfrecord"):
        report = tfr.convert(tfr.dataset(files, on_error="collect").filter("x > 100"), target)
        assert report.skipped_table() == expected


def test_a_conversion_that_is_resumed_refuses_it(files: Sequence[Path]) -> None:
    with pytest.raises(ValueError, match="on_error='collect' cannot be used with resume=True: files that an earlier"):
        tfr.convert(files, "d/", on_error="collect", resume=True)


def test_a_conversion_of_other_files_refuses_it(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.csv")
    with pytest.raises(TypeError, match=r"on_error= is only for"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "b.tfrecord", on_error="collect")


def test_verify_and_salvage_keep_all_of_a_dataset_that_collects(files: Sequence[Path], expected: pa.Table) -> None:
    dataset = tfr.dataset(files, on_error="collect")
    places = ["file", "first_record", "begin_byte", "end_byte", "error"]
    assert tfr.verify(dataset).skipped_table().select(places) == expected.select(places)
    assert tfr.verify(list(map(str, files))).skipped_table().num_rows == 100 + 4
    assert tfr.salvage(dataset, "o/", dry_run=True).skipped_table() == expected
    assert tfr.salvage(list(map(str, files)), "o/").skipped_table().num_rows == MOST + 4


def test_verify_keeps_all_images_of_a_dataset_that_collects(tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    path = written(tmp_path / "a.tfrecord", [tfr.encode_example({"image/encoded": b"no image"})] * 150)
    dataset = tfr.dataset(path, on_error="collect")
    for data, kept in ((dataset, 150), (path, 100)):
        report = tfr.verify(data, images=True)
        assert report.files[0].problem_count == 150
        assert report.skipped_table()["first_record"].to_pylist() == list(range(kept))


def test_records_of_a_piece_of_a_file_are_counted_from_its_begin(tmp_path: Path) -> None:
    file, rows = damaged(tmp_path / "a.tfrecord", 100), 100
    whole = {region.begin: region.records_before for region in skipped_by(file).skipped}
    reports = []
    with warnings.catch_warnings(action="ignore"):
        for piece in tfr.dataset(file, on_error="skip").pieces(2):
            with tfr.open_reader(piece) as reader:
                reader.read_all()
            reports.append(reader.report)
    first, report = reports
    assert {region.begin: region.first_record for region in first.skipped}.items() <= whole.items()
    begin = report.skipped[0].counted_from
    before = begin // (file.stat().st_size // rows)
    assert all(region.counted_from == begin > 0 for region in report.skipped)
    assert [region.records_before + before for region in report.skipped] == [whole[r.begin] for r in report.skipped]
    assert f"the first is record {report.skipped[0].records_before} after byte {begin} at" in report.skipped.summary()
    assert set(report.skipped_table()["first_record"].to_pylist()) == {None}


LOST_SCHEMA = "the first record of a file, which may have held the schema, is among them: types are inferred"

READ: dict[str, Callable[..., object]] = {
    "table": tfr.read_table,
    "frame": tfr.read_tfrecord,
    "arrays": tfr.read_arrays,
    "batches": lambda path, **keywords: list(tfr.iter_arrays(path, batch_size=2, **keywords)),
    "records": lambda path, **keywords: tfr.open_random(path, **keywords)[:],
}


@pytest.mark.parametrize("read", list(READ))
@pytest.mark.parametrize(
    ("damaged_record", "keywords", "is_lost"),
    [(0, {}, True), (1, {}, False), (0, {"schema": {"x": "bool"}}, False)],
    ids=["first", "second", "with a schema"],
)
def test_a_warning_says_that_the_schema_may_be_lost(
    read: str, damaged_record: int, keywords: dict[str, Any], is_lost: bool, tmp_path: Path
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [True, False, True]}, path)
    content = bytearray(path.read_bytes())
    second = int.from_bytes(content[:8], "little") + 16
    content[damaged_record * second + 14] ^= 1
    path.write_bytes(content)
    with pytest.warns(tfr.errors.DamagedDataWarning) as caught:
        READ[read](path, on_error="skip", **keywords)
    assert (LOST_SCHEMA in str(caught[0].message)) == is_lost
    with warnings.catch_warnings(action="ignore"), tfr.open_reader(path, on_error="skip", **keywords) as reader:
        reader.read_all()
    assert (LOST_SCHEMA in str(reader.report)) == is_lost


def test_a_lost_begin_of_a_compressed_file_has_the_first_record() -> None:
    for error, is_lost in (("CompressionError", True), ("CorruptRecordError", True), ("FeatureTypeError", False)):
        regions = SkippedRegions()
        regions.add(SkippedRegion("a.tfrecord.gz", 0, 0, "invalid", 0, error))
        assert (LOST_SCHEMA in str(ReadReport(skipped=regions))) == is_lost
