"""Tables, streams and arrays that leave out what is damaged: which rows remain, and what is reported of the others."""

from __future__ import annotations

import gzip
import io
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of
from records import blobs, example, field, flip, floats, framed, int64s, written
from rounds import rounds
from strategies import sequence_example
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.read.scan import Scan
from tfrecord_io.rows.arrays.read_arrays import scan_arrays

pytestmark = pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")

GOOD = [example(x=int64s(i), t=blobs(b"text %d" % i)) for i in range(20)]


def numbers(path: Any, **keywords: Any) -> list[int]:
    with pytest.warns(tfr.errors.DamagedDataWarning) as warned:
        table = read_by(tfr.read_table, path, on_error="skip", **keywords)
    assert len(warned) == 1
    return table["x"].to_pylist()


@pytest.mark.fault(18)
def test_text_mode_damage_costs_only_the_records_with_line_ends(engine: str, tmp_path: Path) -> None:
    payloads = [example(x=int64s(i), t=blobs(b"a\nb" if i % 7 == 3 else b"a b")) for i in range(200)]
    path = written(tmp_path / "a", payloads)
    path.write_bytes(path.read_bytes().replace(b"a\nb", b"a\r\nb"))
    expected = [i for i in range(200) if i % 7 != 3]
    for threads in (1, 2):
        with blocks_of(300):
            assert numbers(path, threads=threads) == expected
    path.write_bytes(framed(*payloads).replace(b"a\nb", b"ab", 1))
    assert numbers(path) == [i for i in range(200) if i != 3]


@pytest.mark.parametrize("bad", [b"\xff", b"\x0a\x7f", example(x=floats(1.0)), example(x=int64s(1, 2))])
def test_records_that_do_not_fit_are_left_out_one_by_one(engine: str, tmp_path: Path, bad: bytes) -> None:
    path = written(tmp_path / "a", [*GOOD[:5], bad, bad, *GOOD[5:], bad])
    for threads in (1, 2):
        with blocks_of(200):
            assert numbers(path, schema={"x": "int64"}, threads=threads) == list(range(20))
    with (
        tfr.open_reader(path, schema={"x": "int64"}, batch_size=4, on_error="skip") as reader,
        pytest.warns(
            tfr.errors.DamagedDataWarning, match=r"3 (damaged regions|records with values of another feature type)"
        ),
    ):
        assert [len(batch) for batch in reader] == [4] * 5
    assert [region.records_before for region in reader.report.skipped] == [5, 6, 26 - 4]
    begin = len(framed(*GOOD[:5]))
    assert (reader.report.skipped[0].begin, reader.report.skipped[0].end) == (begin, begin + len(bad) + 16)


def test_required_values_and_declared_shapes(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [*GOOD[:3], example(t=blobs(b"no x")), *GOOD[3:]])
    schema = {"x": tfr.scalar("int64", required=True)}
    assert tfr.read_table(path, schema=schema, on_error="skip")["x"].to_pylist() == list(range(20))
    rows = [example(v=floats(*range(3))), example(v=floats(1.0)), example(v=floats(*range(3))), example(v=floats())]
    path = written(tmp_path / "b", rows * 100)
    table = tfr.read_table(path, schema={"v": tfr.tensor("float32", (3,))}, on_error="skip")
    assert table.num_rows >= 200
    assert set(map(len, filter(None, table["v"].to_pylist()))) == {3}
    with tfr.open_reader(path, schema={"v": tfr.tensor("float32", (3,))}, on_error="skip", limit=150) as reader:
        assert reader.read_all().num_rows == 150
    assert reader.report.records == 150


def test_arrays(engine: str, tmp_path: Path) -> None:
    payloads = [*GOOD[:7], example(t=blobs(b"no x")), *GOOD[7:]]
    path = flip(written(tmp_path / "a", payloads), 20)
    assert tfr.read_arrays(path, columns="x", on_error="skip")["x"].tolist() == list(range(1, 20))
    out = {"x": np.full(21, -1)}
    tfr.read_arrays(path, out=out, on_error="skip")
    assert out["x"].tolist() == [*range(1, 20), -1, -1]
    with pytest.raises(tfr.errors.DecodeError):
        tfr.read_arrays(written(tmp_path / "b", payloads), columns="x")


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("shuffle", [0, 8])
def test_batches_for_training_continue_after_damage(engine: str, tmp_path: Path, threads: int, shuffle: int) -> None:
    path = written(tmp_path / "a", [*GOOD[:4], b"\xff", *GOOD[4:]])
    flip(path, 30, len(framed(*GOOD[:12])))

    def batches(**more: Any) -> tfr.typing.ArrayIterator:
        return read_by(
            tfr.iter_arrays,
            path,
            batch_size=3,
            on_error="skip",
            schema={"x": "int64"},
            shuffle_buffer=shuffle,
            seed=5,
            epochs=2,
            threads=threads,
            **more,
        )

    whole = [batch["x"].tolist() for batch in batches()]
    delivered = sorted(x for batch in whole for x in batch)
    assert delivered == sorted([i for i in range(20) if i not in (0, 11)] * 2)
    for taken in (1, 3, 7):
        first = batches()
        before = [next(first)["x"].tolist() for _ in range(taken)]
        again = [batch["x"].tolist() for batch in batches(state=first.state())]
        assert before + again == whole
    parts = [x for w in range(2) for batch in batches(worker=(w, 2)) for x in batch["x"].tolist()]
    assert sorted(parts) == delivered
    with pytest.raises(ValueError, match="uneven"):
        batches(worker=(0, 2), uneven="drop")


def test_training_warns_once_for_each_epoch(engine: str, tmp_path: Path) -> None:
    path = flip(written(tmp_path / "a", GOOD), 30)
    for threads in (1, 2):
        with pytest.warns(tfr.errors.DamagedDataWarning) as warned:
            for _ in tfr.iter_arrays(tfr.dataset(path, threads=threads, on_error="skip"), batch_size=3):
                pass
        assert [warning.filename for warning in warned] == [__file__]


def test_sequence_examples_and_compressed_files(engine: str, tmp_path: Path) -> None:
    payloads = [sequence_example({"x": int64s(i)}, {"s": [int64s(1), int64s(i)]}) for i in range(20)]
    path = flip(written(tmp_path / "a", [*payloads[:4], field(2, b"\xff"), *payloads[4:]]), 40)
    assert numbers(path, record_type="sequence_example") == list(range(1, 20))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert numbers(path, record_type="sequence_example") == list(range(1, 20))
    content = gzip.compress(framed(*GOOD), 0)
    path.write_bytes(content[:300])
    found = numbers([path, written(tmp_path / "b", GOOD)])
    count = len(found) - 20
    assert 0 < count < 20
    assert found == [*range(count), *range(20)]


def test_a_function_is_asked_once_about_each_region(engine: str, tmp_path: Path) -> None:
    """Also where all is read again, because a later file has a schema."""
    first = flip(written(tmp_path / "a.tfrecord", GOOD), 60, 200)
    tfr.write_tfrecord({"x": pa.array([1, 2], pa.int16()), "t": ["a", "b"]}, tmp_path / "b.tfrecord")
    asked: list[tfr.TFRecordError] = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append(error)
        return True

    table = tfr.read_table([first, tmp_path / "b.tfrecord"], on_error=decide)
    assert (table.num_rows, table.schema.field("x").type) == (20, pa.int16())
    assert len(asked) == 2
    assert all(error.region is not None and error.offset == error.region.begin for error in asked)
    asked.clear()
    bare = flip(written(tmp_path / "c", GOOD), 60, 200)  # its schema is inferred from a sample
    batches = tfr.iter_arrays(tfr.dataset([bare, bare], threads=1, on_error=decide), batch_size=8, epochs=2)
    assert sum(len(batch["x"]) for batch in batches) == 2 * 2 * 18
    assert len(asked) == 2 * 2  # at each position in the list
    for answer in (False, None):
        with pytest.raises(tfr.errors.CorruptRecordError) as caught:
            tfr.read_table(first, on_error=lambda error, answer=answer: answer)
        assert caught.value.record == asked[0].record


def test_what_contradicts_a_schema_is_raised(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    written(path, [*GOOD[:3], example(new=int64s(1))])
    with tfr.open_reader(tfr.dataset(path, sample=2), on_error="skip") as reader, pytest.raises(tfr.errors.SchemaError):
        list(reader)


@pytest.mark.parametrize("other", [example(x=int64s(1, 2), y=blobs(b"a")), example(x=int64s(1, 2), y=b"\x0a\x05")])
def test_a_record_that_the_sample_left_out_is_left_out_again(engine: str, tmp_path: Path, other: bytes) -> None:
    """Though its first column has a layout that no other record has."""
    kinds = [example(x=blobs(b"b"), y=int64s(1)), other]
    path = written(tmp_path / "a", [*kinds, *(example(x=int64s(n), y=int64s(n)) for n in range(9))])
    whole = tfr.read_table(path, on_error="skip")
    assert whole.to_pydict() == {"x": list(range(9)), "y": list(range(9))}
    for keywords in ({}, {"filters": [("x", ">=", 0)]}):
        assert tfr.dataset(path, on_error="skip", sample="all", **keywords).to_table() == whole
    (batch,) = tfr.iter_arrays(tfr.dataset(path, sample="all", on_error="skip"), batch_size=9)
    assert batch["x"].tolist() == list(range(9))


def test_manifests_and_embedded_schemas(engine: str, tmp_path: Path) -> None:
    data = {"x": pa.array(range(20), pa.int16()), "t": [f"t{i}" for i in range(20)]}
    tfr.write_tfrecord(data, tmp_path / "d@2")
    shards = sorted(tmp_path.glob("d-*"))
    content = bytearray(shards[0].read_bytes())
    content[-2] ^= 1
    shards[0].write_bytes(content)
    table = tfr.read_table(shards, on_error="skip")
    assert (table.num_rows, table.schema.field("x").type) == (19, pa.int16())
    content[40] ^= 1  # the record with the schema
    shards[0].write_bytes(content)
    table = tfr.read_table(shards, on_error="skip")
    assert (table.num_rows, table.schema.field("x").type) == (18, pa.int16())
    alone = tmp_path / "alone.tfrecord"
    alone.write_bytes(content)
    assert tfr.read_table(alone, on_error="skip").schema.field("x").type == pa.int64()


def test_counts_are_those_of_the_intact_records(engine: str, tmp_path: Path) -> None:
    files = [flip(written(tmp_path / name, GOOD), 0) for name in "ab"]
    asked: list[int | None] = []
    with pytest.warns(tfr.errors.DamagedDataWarning, match=r"2 damaged regions .*a \(1\), .*b \(1\)"):
        assert tfr.count(files, on_error="skip") == 38
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.count(files, on_error=lambda error: asked.append(error.record) is None) == 38
    assert asked == [0, 0]
    flip(files[0], len(framed(*GOOD)) - 1)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.count(files, on_error="skip", check_crc=True) == 37
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.count(files)
    with pytest.raises(ValueError, match="on_error='ignore'"):
        tfr.count(files, on_error="ignore")  # type: ignore[arg-type]


def images(tmp_path: Path, bad: Sequence[int], name: str = "a", rows: int = 30) -> Path:
    """A file whose images have 2 × 3 pixels, but for those that are none."""
    pillow = pytest.importorskip("PIL.Image")
    buffer = io.BytesIO()
    pillow.fromarray(np.zeros((2, 3, 3), np.uint8)).save(buffer, "PNG")
    contents = [b"none" if row in bad else buffer.getvalue() for row in range(rows)]
    return written(tmp_path / name, [example(x=int64s(i), im=blobs(c)) for i, c in enumerate(contents)])


IMAGES = {"x": "int64", "im": tfr.image((2, 3, 3))}


@given(
    bad=st.sets(st.integers(0, 29)),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 7, 40]),
    drop_last=st.booleans(),
    taken=st.integers(1, 12),
    threads=st.sampled_from([1, 2]),
)
@settings(max_examples=rounds(40))
def test_batches_lack_only_the_rows_that_arrays_cannot_hold(
    bad: set[int], batch_size: int, buffer: int, drop_last: bool, taken: int, threads: int
) -> None:
    """Each batch is the one of the read without broken images, less their rows; from any state on, too."""
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        damaged, whole = images(Path(folder), sorted(bad), "damaged"), images(Path(folder), [], "whole")

        def batches(path: Path, **more: Any) -> tfr.typing.ArrayIterator:
            return read_by(
                tfr.iter_arrays,
                path,
                batch_size=batch_size,
                schema=IMAGES,
                shuffle_buffer=buffer,
                seed=3,
                drop_last=drop_last,
                epochs=2,
                threads=threads,
                **more,
            )

        everything = [batch["x"].tolist() for batch in batches(whole)]
        expected = [[x for x in batch if x not in bad] for batch in everything]
        expected = [batch for batch in expected if batch]
        reader = batches(damaged, on_error="skip")
        before, state = [], reader.state()
        for batch in reader:
            assert batch["im"].shape == (len(batch["x"]), 2, 3, 3)
            before.append(batch["x"].tolist())
            if len(before) == taken:
                state = reader.state()
        assert before == expected
        if bad and not drop_last:
            assert sorted(region.records_before for region in reader.report.skipped) == sorted(bad)
            assert reader.report.records == 30 - len(bad)
        if len(before) >= taken:
            again = [batch["x"].tolist() for batch in batches(damaged, on_error="skip", state=state)]
            assert before[:taken] + again == expected


def test_training_ends_where_arrays_can_hold_no_row(tmp_path: Path) -> None:
    path = images(tmp_path, range(30))
    assert list(tfr.iter_arrays(tfr.dataset(path, on_error="skip"), batch_size=4, epochs=None, schema=IMAGES)) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_a_function_decides_about_each_row_of_a_batch(tmp_path: Path, threads: int) -> None:
    path = images(tmp_path, [4, 17])
    asked: list[int | None] = []

    def decide(error: tfr.TFRecordError) -> bool:
        asked.append(error.record)
        return error.record == 4

    reader = tfr.iter_arrays(tfr.dataset(path, threads=threads, on_error=decide), batch_size=8, schema=IMAGES)
    found = []
    with pytest.raises(tfr.errors.DecodeError, match="record 17: feature 'im'"):
        found.extend(batch["x"].tolist() for batch in reader)
    assert found == [[0, 1, 2, 3, 5, 6, 7], [*range(8, 16)], [16]]
    assert asked == [4, 17]
    assert reader.report.skipped.total == 1


def test_rows_of_a_file_that_is_given_twice(tmp_path: Path) -> None:
    path = images(tmp_path, [4])
    asked = []
    with pytest.warns(tfr.errors.DamagedDataWarning, match=r"2 damaged regions .*a; the first"):
        arrays = tfr.read_arrays([path, path], schema=IMAGES, on_error=lambda error: asked.append(error.region) is None)
    good = [x for x in range(30) if x != 4]
    assert arrays["x"].tolist() == good * 2
    assert [region.records_before for region in asked] == [4, 4]
    with tfr.open_reader([path, path], columns="x", on_error="skip") as reader:
        rows = reader.read_all().num_rows
        reader.leave_out(RowFault(34, "no image"))
        reader.leave_out(RowFault(3, "no image"))
        assert reader.report.records == rows - 2
        assert [reader.report.skipped.has_file(number) for number in range(3)] == [True, True, False]
    assert [region.records_before for region in reader.report.skipped] == [3, 4]


def test_rows_of_datasets_and_their_pieces(tmp_path: Path) -> None:
    path = images(tmp_path, [4, 17, 21])
    dataset = tfr.dataset(path, schema=IMAGES, on_error="skip")
    good = [x for x in range(30) if x not in (4, 17, 21)]
    with pytest.warns(tfr.errors.DamagedDataWarning, match="3 damaged regions"):
        assert dataset.to_arrays()["x"].tolist() == good
    with pytest.warns(tfr.errors.DamagedDataWarning, match="2 damaged regions") as warned:
        assert dataset.filter([("x", ">", 10)]).to_arrays()["x"].tolist() == [x for x in good if x > 10]
    assert len(warned) == 1
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert [x for piece in dataset.pieces(4) for x in scan_arrays(Scan.unwrap(piece))["x"].tolist()] == good
    with pytest.raises(tfr.errors.DecodeError, match=r"record 17: feature 'im'") as caught:
        tfr.dataset(path, schema=IMAGES).filter([("x", ">", 10)]).to_arrays()
    assert caught.value.records_intact == 6
    errors = []
    for piece in tfr.dataset(path, schema=IMAGES).pieces(4):
        try:
            scan_arrays(Scan.unwrap(piece))
        except tfr.errors.DecodeError as error:
            errors.append(error)
    assert all(error.record is None or error.record == 4 for error in errors)
    assert sum("after byte" in error.reason for error in errors) >= 1


@pytest.mark.parametrize("limit", [None, 60])
@pytest.mark.parametrize("filters", [None, [("x", ">=", 0)]])
def test_damage_is_reported_whatever_ends_the_read(
    engine: str, tmp_path: Path, limit: int | None, filters: list[Any] | None
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": range(100)}, path)
    data = bytearray(path.read_bytes())
    data[len(data) // 4] ^= 0xFF
    path.write_bytes(data)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        table = tfr.read_table(path, on_error="skip", schema={"x": "int64"}, limit=limit, filters=filters)
    assert table.num_rows == (limit or 99)
