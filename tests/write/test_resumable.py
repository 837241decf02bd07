"""A dataset that is written part by part: processes that are killed at any step, and others that go on."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from killed_writer import die_after
from reading import read_by
from records import flip
from rounds import each_step
from servers import Bucket
from suites.resumed_datasets import contents
from tfrecord_io.store import clean
from tfrecord_io.store.filesystem import remote
from tfrecord_io.store.paths import manifest_files
from tfrecord_io.store.write.resume_journal import ResumeJournal
from transfers import convert_flat

ROWS = {0: 30, 1: 20, 2: 50}  # of each source


def source_files(folder: Path) -> list[str]:
    folder.mkdir()
    sources = [folder / f"{number}.tfrecord" for number in ROWS]
    for (number, rows), source in zip(ROWS.items(), sources, strict=True):
        tfr.write_tfrecord({"txt": [f"{number} {i}" for i in range(rows)]}, source, threads=1)
    return list(map(str, sources))


def convert_killed_after(steps: int, sources: list[str], target: Path) -> bool:
    """Convert in a process that is killed before it changes the directory once more; whether it was."""
    process = os.fork()
    if not process:
        try:
            die_after(steps)
            tfr.convert(sources, target, resume=True, target_options={"threads": 1}, mode="overwrite")
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@pytest.mark.parametrize("exists", [False, True])
def test_a_process_killed_at_any_step_on_disk(tmp_path: Path, written: list[int], exists: bool) -> None:
    sources = source_files(tmp_path / "in")
    tfr.convert(sources, tmp_path / "whole" / "x@*", resume=True)
    whole = contents(tmp_path / "whole")
    taken_over = set()
    for step in each_step(exists):
        folder = tmp_path / f"out{step}"
        if exists:
            tfr.write_tfrecord({"txt": ["old"] * 5}, folder / "x@5")
        killed = convert_killed_after(step, sources, folder / "x@*")
        written.clear()
        if killed:
            tfr.convert(sources, folder / "x@*", resume=True, mode="overwrite")
        taken_over.add(3 - len(written))
        assert tfr.read_table(folder / "x@*").num_rows == 100
        clean(folder, older_than=timedelta(0), remove=True)  # the temporary files of the killed process
        assert contents(folder) == whole
        if not killed:
            break
    assert taken_over == {0, 1, 2, 3}
    assert step > 15


def test_a_process_killed_at_any_step_in_a_bucket(
    conditional: Bucket, dying: dict[str, Any], tmp_path: Path, written: list[int]
) -> None:
    storage = {"storage_options": conditional.storage_options}
    for path in source_files(tmp_path / "in"):
        conditional.fs.put(path, conditional.url(f"in/{os.path.basename(path)}"))
    sources = conditional.url("in/*.tfrecord")
    convert_flat(sources, conditional.url("whole/x@*"), resume=True, **storage)
    whole = [conditional.fs.cat(conditional.url(f"whole/x-{i:05d}-of-00003")) for i in range(3)]
    taken_over = set()
    for step in each_step(every=1):
        target = f"out{step}"
        dying.update(left=step, killed=False)
        with suppress(PermissionError):
            convert_flat(sources, conditional.url(f"{target}/x@*"), resume=True, **storage)
        killed, dying["left"] = dying["killed"], None
        written.clear()
        if killed:
            convert_flat(sources, conditional.url(f"{target}/x@*"), resume=True, **storage)
        taken_over.add(3 - len(written))
        names = [name.removeprefix(f"{target}/") for name in conditional.names() if name.startswith(f"{target}/")]
        assert names == ["_MANIFEST-x.json", *(f"x-{i:05d}-of-00003" for i in range(3))]
        assert [conditional.fs.cat(conditional.url(f"{target}/{name}")) for name in names[1:]] == whole
        if not killed:
            break
    assert taken_over == {0, 1, 2, 3}


def test_a_dataset_that_is_published_already(
    tmp_path: Path, written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed between the publication and the removal of its journal: the next call has nothing to do."""
    sources, target = source_files(tmp_path / "in"), tmp_path / "out" / "x@*"
    reported: list[tfr.typing.Progress] = []
    for changed in (False, True):
        with monkeypatch.context() as killed:
            killed.setattr(ResumeJournal, "remove", lambda self: None)
            first = tfr.convert(sources, target, resume=True, mode="overwrite")
        written.clear()
        if changed:
            tfr.write_tfrecord({"txt": ["other"]}, sources[0])
            with pytest.raises(FileExistsError, match=r"was changed since .*; mode='overwrite' converts what is new"):
                tfr.convert(sources, target, resume=True)
            tfr.convert(sources, target, resume=True, mode="overwrite")
            assert written == [0]
            assert tfr.read_table(target).num_rows == 71
        else:
            assert tfr.convert(sources, target, resume=True, progress=reported.append) == first
            assert written == []
            assert reported[-1].done == reported[-1].total
        assert len(os.listdir(tmp_path / "out")) == 4


def test_another_process_that_publishes_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its journal is gone after it was found, and its dataset is that which was asked for."""
    sources, target = source_files(tmp_path / "in"), tmp_path / "out" / "x@*"
    with monkeypatch.context() as killed:
        killed.setattr(ResumeJournal, "remove", lambda self: None)
        tfr.convert(sources, target, resume=True)
    document = ResumeJournal._document

    def removed_before(journal: ResumeJournal, *args: Any) -> dict[str, Any]:
        journal.remove()
        return document(journal, *args)

    monkeypatch.setattr(ResumeJournal, "_document", removed_before)
    assert tfr.convert(sources, target, resume=True).records == 100


def test_another_process_that_begins_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources, write = source_files(tmp_path / "in"), ResumeJournal.write

    def begun_before(journal: ResumeJournal, begun: Any, *, overwrite: bool) -> None:
        write(journal, begun, overwrite=overwrite)
        write(journal, begun, overwrite=overwrite)

    monkeypatch.setattr(ResumeJournal, "write", begun_before)
    with pytest.raises(OSError, match="another process converts to this dataset with resume=True; wait for it"):
        tfr.convert(sources, tmp_path / "out" / "x@*", resume=True)


# ---- a dataset that is complete


@pytest.fixture
def days(tmp_path: Path) -> list[str]:
    """CSV files, of which one has no rows."""
    paths = [tmp_path / f"{day}.csv" for day in range(4)]
    for day, path in enumerate(paths):
        path.write_text("day,word\n" + "".join(f"{day},{i}\n" for i in range(0 if day == 2 else 50)))
    return [*map(str, paths), str(paths[1])]  # one is named twice


@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_is_done_again(tmp_path: Path, days: list[str], written: list[int], overwrite: bool) -> None:
    folder, target = tmp_path / "out", tmp_path / "out" / "x@*"
    first = tfr.convert(days, target, resume=True, source_options={"schema_overrides": {"day": "int32"}})
    for path in folder.iterdir():  # the system notes a reading only where the last one was before the last change
        os.utime(path, ns=(time.time_ns() + 60 * 10**9, path.stat().st_mtime_ns))
    before, written[:] = {path: path.stat() for path in folder.iterdir()}, []
    again = tfr.convert(
        days,
        target,
        resume=True,
        source_options={"schema_overrides": {"day": "int32"}},
        mode="overwrite" if overwrite else None,
        target_options={"threads": 1},
    )
    assert written == []
    assert {path: path.stat() for path in folder.iterdir()} == before
    assert (again.records, again.bytes, again.files, again.columns) == (200, first.bytes, first.files, first.columns)


def test_only_what_changed_is_converted_for_a_new_dataset(tmp_path: Path, days: list[str], written: list[int]) -> None:
    target = tmp_path / "out" / "x@*"
    tfr.convert(days, target, resume=True)
    Path(days[3]).write_text("day,word\n3,77\n")
    for sources in (days, days[:3], [*days[:3], days[0]], [days[1], days[0]]):
        with pytest.raises(FileExistsError, match="mode='overwrite'"):
            tfr.convert(sources, target, resume=True)
    for sources, converted in ((days, [2, 3]), ([days[0], *days[3:]], []), ([days[1], days[0]], [])):
        written.clear()
        report = tfr.convert(sources, target, resume=True, mode="overwrite")
        assert written == converted  # the file without rows has no shard
        tfr.convert(sources, tmp_path / f"new{len(sources)}" / "x@*", resume=True)
        assert contents(tmp_path / "out") == contents(tmp_path / f"new{len(sources)}")
        assert report.records == tfr.count(target)


def test_other_keywords_convert_all_files(tmp_path: Path, days: list[str], written: list[int]) -> None:
    target = tmp_path / "out" / "x@*"
    tfr.convert(days, target, resume=True)
    for keywords in ({"columns": ["day"]}, {"schema_overrides": {"day": "int32"}}, {"compression": "gzip"}):
        written.clear()
        with pytest.raises(FileExistsError):
            convert_flat(days, target, resume=True, **keywords)
        convert_flat(days, target, resume=True, mode="overwrite", **keywords)
        assert written == [0, 1, 2, 3, 4]


def test_more_files_than_shards_are_refused_before_any_is_read(
    tmp_path: Path, days: list[str], written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tfrecord_io.store.paths.resolve_output.Output.MOST_SHARDS", len(days) - 1)
    with pytest.raises(ValueError, match=f"{len(days)} files, each of which becomes a shard; expected at most"):
        tfr.convert(days, tmp_path / "t/", resume=True)
    assert written == []
    assert not (tmp_path / "t").exists()


@pytest.mark.parametrize("harm", [os.remove, lambda path: path.write_bytes(b""), lambda path: flip(path, 40)])
def test_a_damaged_shard_is_not_taken_over(tmp_path: Path, days: list[str], written: list[int], harm: Any) -> None:
    target = tmp_path / "out" / "x@*"
    tfr.convert(days, target, resume=True)
    whole, written[:] = contents(tmp_path / "out"), []
    harm(tmp_path / "out" / "x-00001-of-00004")
    Path(days[0]).touch()  # so that the dataset is made again
    tfr.convert(days, target, resume=True, mode="overwrite")
    assert 1 in written
    assert tfr.verify(target).ok
    assert {**contents(tmp_path / "out"), "manifest": 0} == {**whole, "manifest": 0}


def test_a_complete_dataset_in_a_bucket(s3: Bucket, tmp_path: Path, days: list[str], written: list[int]) -> None:
    target, storage = s3.url("x@*"), {"storage_options": s3.storage_options}
    tfr.convert(days, target, resume=True, storage_options=s3.storage_options)
    Path(days[3]).write_text("day,word\n3,77\n")
    for converted in ([2, 3], []):
        written.clear()
        tfr.convert(days, target, resume=True, mode="overwrite", storage_options=s3.storage_options)
        assert written == converted
        assert read_by(tfr.count, target, **storage) == 151


def test_a_large_dataset_in_a_bucket_that_is_not_listed(
    s3: Bucket, tmp_path: Path, written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    storage: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": range(25), "day": range(25)}, s3.url("d/"), partition_by=["day"], **storage)
    monkeypatch.setattr(remote, "PAGE_FILES", 4)
    monkeypatch.setattr(manifest_files.SIZES, "many", 3)
    monkeypatch.setattr(manifest_files.SIZES, "large_bytes", 0)
    for conversions in (25, 0):
        del written[:]
        tfr.convert(s3.url("d/"), str(tmp_path / "x@*"), resume=True, mode="overwrite", source_options=storage)
        assert len(written) == conversions
    assert sorted(tfr.read_table(tmp_path)["x"].to_pylist()) == list(range(25))


def test_a_dataset_of_other_sources_says_which(tmp_path: Path, days: list[str], written: list[int]) -> None:
    """What `mode='overwrite'` does then is what the error says."""
    target = tmp_path / "out" / "x@*"
    tfr.convert(days[:3], target, resume=True)
    written.clear()
    with pytest.raises(FileExistsError, match=r"3\.csv' is not among the sources .* takes over the other shards"):
        tfr.convert(days, target, resume=True)
    with pytest.raises(FileExistsError, match=r"1\.csv' and 1 more is among the sources .* only"):
        tfr.convert(days[:1], target, resume=True)
    with pytest.raises(FileExistsError, match="made of these sources in another order"):
        tfr.convert([days[1], days[0], days[2]], target, resume=True)
    assert written == []
    tfr.convert(days, target, resume=True, mode="overwrite")
    assert written == [2, 3]  # without rows, a file has no shard to be taken over
    tfr.write_tfrecord({"day": [9], "word": [9]}, target, mode="append")
    with pytest.raises(FileExistsError, match="does not state what all of its shards were made of"):
        tfr.convert(days, target, resume=True)


@pytest.mark.parametrize("times", [1, 2])
def test_a_compacted_dataset_is_that_of_its_sources(
    tmp_path: Path, days: list[str], written: list[int], times: int
) -> None:
    target = tmp_path / "out" / "x@*"
    whole = tfr.convert(days, target, resume=True)
    rows = tfr.read_table(target)
    size = max(file.bytes for file in whole.files)
    for most in (2 * size + 100, 10 * size)[:times]:  # at first, one shard is left by itself
        tfr.compact(target, max_shard_bytes=most)
    written.clear()
    report = tfr.convert(days, target, resume=True)
    assert written == []
    assert (report.records, len(report.files)) == (whole.records, 3 - times)
    assert all(os.path.exists(file.path) for file in report.files)
    Path(days[3]).write_text("day,word\n3,7\n")
    with pytest.raises(FileExistsError, match=r"3\.csv' was changed since"):
        tfr.convert(days, target, resume=True)
    tfr.convert(days, target, resume=True, mode="overwrite")
    assert tfr.read_table(target).num_rows == rows.num_rows - 49
