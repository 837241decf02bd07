"""Transactions of jobs: rows of each are in a dataset once, however often the job runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.errors import CorruptRecordError
from tfrecord_io.store.paths import manifest
from tfrecord_io.store.paths.manifest import Manifest, Txn, format_manifest, parse_manifest
from tfrecord_io.write.distributed import DistributedWriter

TABLE = pa.table({"x": [1, 2, 3, 4], "day": [1, 1, 2, 2]})
DAY = 86_400


def append(path: Any, number: int, job: str = "job", rows: pa.Table = TABLE, **keywords: Any) -> Any:
    return tfr.write_tfrecord(rows, path, mode="append", txn=(job, number), **keywords)


def txns(path: Any) -> dict[str, int]:
    """The number of each job in the manifest."""
    document = json.loads((Path(path) / "_MANIFEST.json").read_text("utf-8"))
    return {job: number for job, (number, _) in document.get("txn", {}).items()}


def files(path: Any) -> set[str]:
    return {str(file.relative_to(path)) for file in Path(path).rglob("*") if file.is_file()}


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    append(f"{tmp_path}/d/", 5)
    append(f"{tmp_path}/d/", 2, "other")
    return f"{tmp_path}/d/"


def test_a_number_and_those_before_it_are_written_once(dataset: str) -> None:
    before = files(dataset)
    for number in (5, 0, 4):
        report = append(dataset, number)
        assert (report.repeated, report.records, report.files) == (True, 0, ())
        assert "nothing written, as the transaction is in the dataset" in str(report)
    assert (files(dataset), tfr.count(dataset)) == (before, 8)
    assert not append(dataset, 6).repeated
    assert (txns(dataset), tfr.count(dataset)) == ({"job": 6, "other": 2}, 12)


def test_what_is_repeated_is_neither_read_nor_checked(dataset: str) -> None:
    def rows() -> Any:
        raise AssertionError("the data is read")
        yield TABLE

    assert append(dataset, 5, rows=rows()).repeated
    assert append(dataset, 5, rows=pa.table({"another": ["x"]})).repeated


def test_a_number_without_rows_counts(dataset: str) -> None:
    assert not append(dataset, 6, rows=TABLE.slice(0, 0)).repeated
    assert append(dataset, 6).repeated
    assert (txns(dataset)["job"], tfr.count(dataset)) == (6, 8)


@pytest.mark.parametrize("keywords", [{}, {"partition_by": "day"}, {"max_shard_bytes": 40}, {"write_index": True}])
def test_of_writers_at_a_time_one_publishes(keywords: dict[str, Any], tmp_path: Path) -> None:
    writers = [tfr.open_writer(f"{tmp_path}/d/", mode="append", txn=("job", 1), **keywords) for _ in range(3)]
    for writer in writers:
        writer.write(TABLE)
    threads = [threading.Thread(target=writer.close) for writer in writers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reports = [writer.report for writer in writers]
    assert sorted(report.repeated for report in reports if report is not None) == [False, True, True]
    assert [report.records for report in reports if report is not None and not report.repeated] == [4]
    assert tfr.read_table(f"{tmp_path}/d/").num_rows == 4
    names = [name for name in files(f"{tmp_path}/d/") if name.endswith(".tfrecord")]
    assert len(names) == len(json.loads((tmp_path / "d" / "_MANIFEST.json").read_text())["files"]), "a shard is left"
    assert tfr.verify(f"{tmp_path}/d/").ok


@pytest.mark.parametrize("partition_by", [None, "day"])
def test_a_job_of_several_processes_publishes_once(partition_by: str | None, tmp_path: Path) -> None:
    options = WriteOptions(mode="append", txn=("job", 7), partition_by=partition_by)
    begin: Callable[[], DistributedWriter] = lambda: DistributedWriter.begin(f"{tmp_path}/d/", options)  # noqa: E731
    jobs = [begin(), begin(), begin()]
    parts = [[job.write_part(task, [TABLE]) for task in range(2)] for job in jobs]
    assert not any(job.is_repeated for job in jobs)
    assert jobs[0].commit(parts[0]).records == 8
    assert jobs[1].commit(parts[1]).repeated
    assert jobs[2].commit(parts[2], is_retried=True).repeated
    assert jobs[0].commit(parts[0]).records == 8  # its answer was lost
    late = begin()
    assert late.is_repeated
    assert DistributedWriter.begin(
        f"{tmp_path}/d/", options, pa.schema({"another": pa.string(), "day": pa.int64()})
    ).is_repeated
    assert late.commit([]).repeated
    assert tfr.count(f"{tmp_path}/d/") == 8
    assert all(name.endswith(".tfrecord") or name == "_MANIFEST.json" for name in files(tmp_path / "d"))
    assert tfr.verify(f"{tmp_path}/d/").ok


KEEPS: dict[str, Callable[[str, str], Any]] = {
    "append": lambda source, _: tfr.write_tfrecord(TABLE, source, mode="append"),
    "compact": lambda source, _: tfr.compact(source),
    "delete": lambda source, _: tfr.delete(source, filters="x > 3"),
    "delete all": lambda source, _: tfr.delete(source, filters="x > 0"),
    "copy": tfr.copy,
    "salvage": tfr.salvage,
}


@pytest.mark.parametrize("change", KEEPS.values(), ids=KEEPS)
def test_a_changed_or_copied_dataset_has_them(change: Callable[[str, str], Any], dataset: str, tmp_path: Path) -> None:
    target = f"{tmp_path}/e/"
    change(dataset, target)
    path = target if Path(target).exists() else dataset
    rows = tfr.count(path)
    assert append(path, 5).repeated
    assert tfr.count(path) == rows
    assert txns(path) == {"job": 5, "other": 2}


def test_replaced_folders_keep_them_and_a_new_dataset_begins_without(tmp_path: Path) -> None:
    append(tmp_path, 1, partition_by="day")
    tfr.write_tfrecord(TABLE.slice(0, 1), tmp_path, partition_by="day", mode="overwrite_partitions")
    assert txns(tmp_path) == {"job": 1}
    tfr.write_tfrecord(TABLE, tmp_path, partition_by="day", mode="overwrite")
    assert txns(tmp_path) == {}
    assert not append(tmp_path, 1, partition_by="day").repeated


def test_a_retried_convert_appends_once(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("x\n1\n2\n")
    for repeated in (False, True):
        options = {"txn": ("daily", 1)}
        report = tfr.convert(tmp_path / "x.csv", f"{tmp_path}/d/", mode="append", target_options=options)
        assert (report.repeated, tfr.count(f"{tmp_path}/d/")) == (repeated, 2)


@pytest.mark.parametrize(("value", "error", "text"), [
    (7, TypeError, "expected the name of a job and a number that rises, as in ('daily', 17)"),
    ("ab", TypeError, "expected the name of a job"),
    (("a",), TypeError, "expected the name of a job"),
    ((1, 2), TypeError, "expected the name of a job"),
    (("a", "1"), TypeError, "the number of txn='1': expected an integer"),
    (("a", 1.5), TypeError, "expected an integer"),
    (("a", -1), ValueError, "expected at least 0"),
    (("a", 2**63), ValueError, "expected at most"),
    (("", 1), ValueError, "expected a name of 1 to 200 bytes"),
    (("ä" * 101, 1), ValueError, "expected a name of 1 to 200 bytes"),
    (("\ud800", 1), ValueError, "expected a name of 1 to 200 bytes"),
])  # fmt: skip
def test_other_values_are_refused_before_anything_is_written(
    value: Any, error: type[Exception], text: str, tmp_path: Path
) -> None:
    with pytest.raises(error) as caught:
        tfr.write_tfrecord(TABLE, tmp_path / "d", mode="append", txn=value)
    assert text in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [None, "error", "overwrite"])
def test_other_modes_refuse_them(mode: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"txn=\('job', 1\) is for mode='append': other modes replace rows"):
        tfr.write_tfrecord(TABLE, f"{tmp_path}/d/", mode=mode, txn=("job", 1))


# ---- what a manifest keeps


@given(st.dictionaries(st.text(min_size=1), st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**40)), max_size=5))
def test_any_transactions_are_read_back(by_job: dict[str, tuple[int, int]]) -> None:
    stated = Manifest("train", "0" * 16, (), txns=tuple(Txn(job, *numbers) for job, numbers in by_job.items()))
    assert parse_manifest(format_manifest(stated), "_MANIFEST-train.json") == stated


@pytest.mark.parametrize("value", [7, [], {"a": 1}, {"a": [1]}, {"a": [1, "x"]}, {"a": [-1, 0]}, {"a": [True, 0]}])
def test_a_manifest_with_others_is_refused(value: Any) -> None:
    document = json.loads(format_manifest(Manifest("train", "0" * 16, ())))
    with pytest.raises(CorruptRecordError, match="its 'txn' is"):
        parse_manifest(json.dumps({**document, "txn": value}).encode(), "_MANIFEST-train.json")


def test_of_too_many_jobs_those_that_are_old_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "_MOST_JOBS", 3)
    old = (Txn("a", 1, 5), Txn("b", 1, 0), Txn("c", 1, 20 * DAY))
    new = (Txn("d", 9, 31 * DAY),)
    assert Txn.add(old, ()) == old
    assert {txn.job for txn in Txn.add(old, new)} == {"a", "c", "d"}, "the oldest goes"
    assert Txn.add(old, (Txn("c", 2, 31 * DAY),))[2] == Txn("c", 2, 31 * DAY), "a job that is there needs no room"
    with pytest.raises(ValueError, match=r"txn=\('d', 9\): 3 jobs have written .* within 30 days.*'b'"):
        Txn.add(old, (Txn("d", 9, 29 * DAY),))


def test_a_job_too_many_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "_MOST_JOBS", 2)
    for job in "ab":
        append(tmp_path / "d", 1, job)
    before = files(tmp_path / "d")
    with pytest.raises(ValueError, match="let jobs share a name"):
        append(tmp_path / "d", 1, "c")
    assert files(tmp_path / "d") == before
    assert append(tmp_path / "d", 1, "a").repeated
