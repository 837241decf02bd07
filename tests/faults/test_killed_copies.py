"""A copy is killed at a random call: its target has the old dataset or the new one, and the next copy goes on."""

from __future__ import annotations

import os
import random
import signal
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from rounds import rounds
from servers import Bucket
from tfrecord_io.store.write.output_file import OutputFile

FORMS: list[dict[str, Any]] = [{"shards": 4, "write_index": True, "mode": "overwrite"}, {"max_shard_bytes": 2000}]
SEED = 20_261_124


def table(generation: int) -> pa.Table:
    """All rows hold their generation; files of all generations have the same sizes."""
    return pa.table({"generation": [1000 + generation] * 300, "x": range(300)})


def generation(path: str, storage: dict[str, Any]) -> int | None:
    """That of all rows that a reader finds; None if it is refused, or there are none."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = read_by(tfr.read_table, path, **storage)
        except FileNotFoundError:
            return None
        except tfr.errors.CorruptRecordError as error:
            if "incomplete" not in str(error):
                raise
            return None
    (only,) = set(found["generation"].to_pylist())
    assert found["x"].to_pylist() == list(range(300))
    return int(only) - 1000


def killed_after(steps: int, call: Callable[[], Any], patch: Callable[[Callable[[Any], Any]], None]) -> bool:
    """Make a call in a forked process that is killed at one of its calls; returns whether it was."""
    pid = os.fork()
    if not pid:
        left = [steps]

        def counted(function: Any) -> Any:
            def step(*arguments: Any, **keywords: Any) -> Any:
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)
                left[0] -= 1
                return function(*arguments, **keywords)

            return step

        try:
            patch(counted)
            call()
        except BaseException:
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0
    return os.WIFSIGNALED(status)


def of_directories(counted: Callable[[Any], Any]) -> None:
    for name in ("replace", "unlink", "fsync"):
        setattr(os, name, counted(getattr(os, name)))


def of_requests(counted: Callable[[Any], Any]) -> None:
    import s3fs

    s3fs.S3FileSystem._call_s3 = counted(s3fs.S3FileSystem._call_s3)


def check(
    source: str,
    target: str,
    storage: dict[str, Any],
    patch: Callable[[Callable[[Any], Any]], None],
    most: int,
    trials: int,
) -> None:
    chosen, kills = random.Random(SEED), 0
    before: int | None = None
    for trial in range(trials):
        form = FORMS[trial // 4 % 2]
        mode = {} if "mode" in form else {"mode": "append" if trial % 4 == 0 else "overwrite"}
        tfr.write_tfrecord(table(trial), f"{source}{trial // 4}/", **form, **mode, **storage)
        path = f"{target}{trial // 4}/"
        before = None if trial % 4 == 0 else before
        copy = partial(tfr.copy, f"{source}{trial // 4}/", path, update=True, **storage)
        kills += killed_after(chosen.randrange(most), partial(copy, threads=2), patch)
        found = generation(path, storage)
        assert found in (before, trial), trial
        copy()
        assert generation(path, storage) == trial
        before = trial
    assert kills > trials // 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_on_the_disk(tmp_path: Path, native_engine: None) -> None:
    check(f"{tmp_path}/a", f"{tmp_path}/b", {}, of_directories, 40, rounds(50, 8))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_to_a_bucket(s3: Bucket, native_engine: None) -> None:
    storage = {"storage_options": s3.storage_options}
    check(s3.url("a"), s3.url("b"), storage, of_requests, 30, rounds(50, 8))


def failing_commit(number: int, text: str, part: str = "") -> Callable[[OutputFile], None]:
    """Replaces `OutputFile.commit`; from the sixth file on whose path has a `part`, it fails."""
    real, commits = OutputFile.commit, []

    def commit(output: OutputFile) -> None:
        if part in output.path:
            commits.append(output.path)
        if len(commits) == 6:
            raise OSError(number, text, output.path)
        real(output)

    return commit


def test_what_was_stored_is_not_copied_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tfr.write_tfrecord(table(0), f"{tmp_path}/d/train@8")
    with monkeypatch.context() as patch:
        patch.setattr(OutputFile, "commit", failing_commit(28, "no space left on device"))
        with pytest.raises(OSError, match="no space"):
            tfr.copy(tmp_path / "d", tmp_path / "e", threads=1)
    assert generation(f"{tmp_path}/e", {}) is None
    assert sum(name.endswith(".staged") for name in os.listdir(tmp_path / "e")) == 5
    report = tfr.copy(tmp_path / "d", tmp_path / "e")
    assert (len(report.copied), report.kept, generation(f"{tmp_path}/e", {})) == (3, 5, 0)
    assert sorted(os.listdir(tmp_path / "e")) == sorted(os.listdir(tmp_path / "d"))


def test_what_was_stored_in_a_bucket_is_not_copied_again(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = {"storage_options": bucket.storage_options}
    tfr.write_tfrecord(table(0), f"{tmp_path}/d/train@8")
    with monkeypatch.context() as patch:
        patch.setattr(OutputFile, "commit", failing_commit(5, "the network is gone", "train-0000"))
        with pytest.raises(OSError, match="network is gone"):
            tfr.copy(tmp_path / "d", bucket.url("e/"), threads=1, **storage)
    with pytest.raises(tfr.errors.CorruptRecordError, match="incomplete"):
        tfr.read_table(bucket.url("e/"), storage_options=bucket.storage_options)
    report = tfr.copy(tmp_path / "d", bucket.url("e/"), **storage)
    assert (len(report.copied), report.kept) == (3, 5)
    assert generation(bucket.url("e/"), {"storage_options": bucket.storage_options}) == 0
