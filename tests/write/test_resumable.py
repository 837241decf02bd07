"""A dataset that is written part by part: processes that are killed at any step, and others that go on."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from killed_writer import die_after
from servers import Bucket
from suites.resumed_datasets import contents
from tfrecord_io.storage.write.resume_journal import ResumeJournal
from tfrecord_io.tools.leftovers import clean

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
            tfr.convert(sources, target, resume=True, threads=1, overwrite=True)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


@pytest.mark.parametrize("exists", [False, True])
def test_a_process_killed_at_any_step_on_disk(tmp_path: Path, written: list[int], exists: bool) -> None:
    sources = source_files(tmp_path / "in")
    tfr.convert(sources, tmp_path / "whole" / "x@*", resume=True)
    whole = contents(tmp_path / "whole")
    taken_over = set()
    for steps in count():
        folder = tmp_path / f"out{steps}"
        if exists:
            tfr.write_tfrecord({"txt": ["old"] * 5}, folder / "x@5")
        killed = convert_killed_after(steps, sources, folder / "x@*")
        written.clear()
        if killed:
            tfr.convert(sources, folder / "x@*", resume=True, overwrite=True)
        taken_over.add(3 - len(written))
        assert tfr.read_table(folder / "x@*").num_rows == 100
        clean(folder, older_than=timedelta(0), remove=True)  # the temporary files of the killed process
        assert contents(folder) == whole
        if not killed:
            break
    assert taken_over == {0, 1, 2, 3}
    assert steps > 15


def test_a_process_killed_at_any_step_in_a_bucket(
    s3: Bucket, dying: dict[str, Any], tmp_path: Path, written: list[int]
) -> None:
    storage = {"storage_options": s3.storage_options}
    for path in source_files(tmp_path / "in"):
        s3.fs.put(path, s3.url(f"in/{os.path.basename(path)}"))
    sources = s3.url("in/*.tfrecord")
    tfr.convert(sources, s3.url("whole/x@*"), resume=True, **storage)
    whole = [s3.fs.cat(s3.url(f"whole/x-{i:05d}-of-00003")) for i in range(3)]
    taken_over = set()
    for steps in count():
        target = f"out{steps}"
        dying.update(left=steps, killed=False)
        with suppress(PermissionError):
            tfr.convert(sources, s3.url(f"{target}/x@*"), resume=True, **storage)
        killed, dying["left"] = dying["killed"], None
        written.clear()
        if killed:
            tfr.convert(sources, s3.url(f"{target}/x@*"), resume=True, **storage)
        taken_over.add(3 - len(written))
        names = [name.removeprefix(f"{target}/") for name in s3.names() if name.startswith(f"{target}/")]
        assert names == ["_MANIFEST-x.json", *(f"x-{i:05d}-of-00003" for i in range(3))]
        assert [s3.fs.cat(s3.url(f"{target}/{name}")) for name in names[1:]] == whole
        if not killed:
            break
    assert taken_over == {0, 1, 2, 3}


def test_a_dataset_that_is_published_already(
    tmp_path: Path, written: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process killed between the publication and the removal of its journal: the next call has nothing to do."""
    sources, target = source_files(tmp_path / "in"), tmp_path / "out" / "x@*"
    reported: list[tfr.Progress] = []
    for changed in (False, True):
        with monkeypatch.context() as killed:
            killed.setattr(ResumeJournal, "remove", lambda self: None)
            first = tfr.convert(sources, target, resume=True, overwrite=True)
        written.clear()
        if changed:
            tfr.write_tfrecord({"txt": ["other"]}, sources[0])
            with pytest.raises(FileExistsError, match="overwrite=True replaces it"):
                tfr.convert(sources, target, resume=True)
            tfr.convert(sources, target, resume=True, overwrite=True)
            assert written == [0, 1, 2]
            assert tfr.read_table(target).num_rows == 71
        else:
            assert tfr.convert(sources, target, resume=True, progress=reported.append) == first
            assert written == []
            assert reported[-1].done == reported[-1].total
        assert len(os.listdir(tmp_path / "out")) == 4
