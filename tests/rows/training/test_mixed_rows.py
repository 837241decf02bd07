"""The rows of mixtures that go through their parts again and again: what they hold, and what they say of a row."""

from __future__ import annotations

import gc
import itertools
import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from records import example, flip, int64s, written

ROWS = 50


@pytest.fixture
def part(tmp_path: Path) -> Path:
    """A file of which every fifth record has no value."""
    rows = [example() if n % 5 == 0 else example(n=int64s(n)) for n in range(ROWS)]
    return written(tmp_path / "part.tfrecord", rows)


def opened(path: Path, **keywords: Any) -> tfr.Dataset:
    return tfr.dataset(path, schema={"n": "int64"}, threads=1, **keywords)


@pytest.mark.parametrize("kept", [2, 0])
@pytest.mark.parametrize("filters", [None, [("n", ">", 0)]])
def test_a_mixture_without_an_end_takes_no_more_memory_with_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: int, filters: Any
) -> None:
    """Neither for each row nor for each pass over a part, whether its rows are kept or read again."""
    if not kept:
        monkeypatch.setattr("tfrecord_io.rows.training.mixed_rows._KEPT_BYTES", -1)
    monkeypatch.setattr("tfrecord_io.rows.training.mixed_rows._MOST_BLOCK", 256)
    path = written(tmp_path / "part.tfrecord", [example(n=int64s(n)) for n in range(kept or 50)])
    mixture = tfr.mix([opened(path, filters=filters), opened(path, filters=filters)], stop="never")
    batches = mixture.iter_arrays(batch_size=100, shuffle_buffer=200, seed=0)

    def bytes_after(count: int) -> int:
        for _ in itertools.islice(batches, count):
            pass
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        before = bytes_after(40)
        assert bytes_after(60) < before + 250_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("is_kept", [True, False])
def test_rows_of_earlier_passes_are_left_out_and_counted(
    part: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    """The rows wait in the buffer, while their part is read again many times."""
    if not is_kept:
        monkeypatch.setattr("tfrecord_io.rows.training.mixed_rows._KEPT_BYTES", -1)
    large = written(part.with_name("large.tfrecord"), [example(n=int64s(-1))] * 3000)
    mixture = tfr.mix([opened(part, on_error="skip"), opened(large, on_error="skip")], stop="all", source_column="of")
    batches = mixture.iter_arrays(batch_size=50, shuffle_buffer=2000, seed=0)
    with pytest.warns(tfr.errors.DamagedDataWarning, match="damaged regions of unknown size left out in "):
        given = [batch["of"].tolist() for batch in batches]
    length, report = mixture.iter_arrays(batch_size=1, missing="mask"), batches.report
    rows = sum(len(batch["n"]) for batch in length)
    assert rows > 5000
    assert report.skipped.total == rows - sum(map(len, given))
    assert report.skipped.files == {str(part): report.skipped.total}
    assert {region.records_before % 5 for region in report.skipped} == {0}


@pytest.mark.parametrize("is_kept", [True, False])
def test_an_error_names_the_record_of_a_row_of_an_earlier_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    if not is_kept:
        monkeypatch.setattr("tfrecord_io.rows.training.mixed_rows._KEPT_BYTES", -1)
    path = written(tmp_path / "a.tfrecord", [example(n=int64s(*[n] * (1 + (n == 7)))) for n in range(20)])
    data = tfr.dataset(path, schema={"n": tfr.list_("int64")}, threads=1).filter([("n", "!=", None)])
    mixture = tfr.mix([data, data], stop="never")
    batches = mixture.iter_arrays(batch_size=1, shuffle_buffer=1000, seed=4, pad_to=1)
    with pytest.raises(tfr.errors.SchemaError) as raised:
        for _ in batches:
            pass
    assert (raised.value.path, raised.value.record) == (str(path), 7)


def test_the_report_of_a_mixture_has_all_that_was_left_out_and_what_stopped_it(tmp_path: Path) -> None:
    rows = [example() if n % 2 else example(n=int64s(n)) for n in range(2400)]
    paths = [written(tmp_path / f"{name}.tfrecord", rows) for name in "ab"]
    mixture = tfr.mix([opened(path, on_error="skip") for path in paths], stop="all")
    with mixture.iter_arrays(batch_size=100) as batches, pytest.warns(tfr.errors.DamagedDataWarning):
        for _ in batches:
            pass
    assert batches.report.skipped.total == sum(batches.report.skipped.files.values()) >= 2400
    assert len(batches.report.skipped) == 1000

    flip(paths[0], 100)
    mixture = tfr.mix([opened(path, on_error="stop") for path in paths], stop="all")
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        for _ in (batches := mixture.iter_arrays(batch_size=100, missing="mask")):
            pass
    assert "a.tfrecord" in (batches.report.stopped or "")


def test_rows_that_go_on_by_a_wrong_number_of_records_are_an_error(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": range(13)}, tmp_path / "d-train.tfrecord-00000-of-00001")
    split = {"name": "train", "shardLengths": ["10"]}
    info = {"name": "d", "version": "1.0.0", "splits": [split], "fileFormat": "tfrecord"}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    tfr.write_tfrecord({"n": range(100, 140)}, tmp_path / "other.tfrecord", write_index=True)
    parts = [tfr.dataset(tmp_path / name, threads=1) for name in ("d-train*", "other.tfrecord")]
    mixture = tfr.mix(parts, stop="never")
    whole = mixture.iter_arrays(batch_size=30)
    next(whole)
    resumed = mixture.iter_arrays(batch_size=30, state=whole.state())
    with pytest.raises(tfr.errors.CorruptRecordError, match="more rows than the 10 that were counted"):
        next(resumed)
