"""Each call of the C library that a writer makes is the last one of its process once, and fails once."""

from __future__ import annotations

import errno
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from faulty_calls import FAIL, KILL, NEVER, SHORT, SYNC, TORN, WRITE, WRITING, FaultyProcess, build_shim
from faulty_calls.worker import WRITES, table_of
from rounds import COMPLETE

LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp|_[0-9a-f]{16}-[0-9]{5}\.staged")
MANY = "shards and indexes"
FORMS = [*WRITES] if COMPLETE else ["threads", "gzip", "index", MANY]
KILLED = (  # what is written, and which time: the third time, shards have other names
    [(form, first) for form in WRITES for first in (1, 2, 3) if first < 3 or "shards" in form]
    if COMPLETE
    else [("threads", 2), ("gzip", 1), ("index", 2), (MANY, 1), (MANY, 2), (MANY, 3)]
)
LAST = 12  # calls, which publish what was written


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, native_engine: None) -> Iterator[FaultyProcess]:
    folder = tmp_path_factory.mktemp("shim")
    with build_shim() as shim, FaultyProcess(folder, shim) as process:
        yield process


def target_of(form: str, folder: Path) -> str:
    return f"{folder}/many" if "shards" in form else f"{folder}/one.tfrecord"


def generation(target: str) -> int:
    """The generation of all rows that readers find; the files fit their manifest, a single one its index."""
    path = target if target.endswith(".tfrecord") else f"{target}@*"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore" if "@" in path else "error", tfr.errors.StaleIndexWarning)
        table = tfr.read_table(tfr.dataset(path, threads=1))
        found = table["generation"][0].as_py() - 10_000
        assert table.to_pydict() == table_of(found).to_pydict()
        assert tfr.count(path) == len(table)
        if tfr.read_metadata(path).files[0].compression is None:
            with tfr.open_random(path) as records:
                assert records[len(table) - 1]["generation"] == found + 10_000
    if path is not target:
        problems = [problem for file in tfr.verify(path).files for problem in file.problems]
        assert {problem.part for problem in problems} <= {"index"}  # readers ignore stale ones, with a warning
        assert tfr.read_table(os.path.dirname(target)).num_rows == len(table)
    return found


def left_over(folder: Path) -> list[str]:
    """Names of temporary files; there are no other names than these and those of the target."""
    names = os.listdir(folder)
    left = [name for name in names if LEFT_OVER.fullmatch(name)]
    assert all(name.startswith(("one.tfrecord", "many-", "_MANIFEST-many")) for name in {*names} - {*left})
    return left


def numbers(calls: int) -> list[int]:
    """All calls in the complete run, else a part of them, most of them of those that publish."""
    if COMPLETE:
        return list(range(calls))
    return sorted({*range(0, calls, max(1, calls // 4)), *range(max(0, calls - LAST), calls, 3)})


def faults(
    run: FaultyProcess, form: str, folder: Path, first: int, kinds: int, action: int, **more: Any
) -> Iterator[Any]:
    """Write with a fault at one call after the other; yields each answer, and the generation found afterwards."""
    target = target_of(form, folder)
    fault = {"folder": str(folder), "kinds": kinds, "action": action, **more}
    calls = run("write", form=form, target=target, generation=first, fault={**fault, "at": NEVER})["calls"]
    for at in numbers(calls):
        if first == 1:
            for name in os.listdir(folder):
                os.unlink(folder / name)
        answer = run("write", form=form, target=target, generation=first, fault={**fault, "at": at})
        assert answer["killed"] or answer["status"] == 0, at
        try:
            found = generation(target)
        except FileNotFoundError:
            assert first == 1, at
            found = 0
        yield answer, found
        for name in left_over(folder):
            os.unlink(folder / name)
    assert run("write", form=form, target=target, generation=first + 1, fault={**fault, "at": 10_000})["error"] is None
    assert generation(target) == first + 1


@pytest.mark.fault(67)
@pytest.mark.parametrize(("form", "first"), KILLED)
def test_killed_at_every_call(run: FaultyProcess, tmp_path: Path, form: str, first: int, record_property: Any) -> None:
    """Before a call, and in the middle of a write; the target did not exist, has the same names, or others."""
    kills, states = 0, set()
    for kinds, action in ((WRITING, KILL), (WRITE, TORN)):
        for answer, found in faults(run, form, tmp_path, first, kinds, action):
            assert answer["killed"]
            assert found in {first - 1, first}
            kills += 1
            states.add(found)
    assert first - 1 in states
    record_property("kills at one call of a writer after the other", kills)


ENDS = {
    "disk full": (WRITE, errno.ENOSPC, True),
    "quota": (WRITE, errno.EDQUOT, True),
    "input/output error": (WRITING, errno.EIO, False),
    "lasting input/output error": (WRITE | SYNC, errno.EIO, True),
}


@pytest.mark.matrix
@pytest.mark.fault(66)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("fault", ENDS)
def test_an_error_of_every_call(
    run: FaultyProcess, tmp_path: Path, form: str, fault: str, record_property: Any
) -> None:
    """The target is old or new, no temporary file is left, and the OSError names the file."""
    kinds, number, lasting = ENDS[fault]
    failed = 0
    for answer, found in faults(run, form, tmp_path, 3, kinds, FAIL, number=number, lasting=int(lasting)):
        where, error = (answer["call"], answer["path"]), answer["error"]
        if error is None:
            assert found == 3, where
            continue
        failed += 1
        assert "OSError" in error["classes"], error["text"]
        assert error["errno"] == number, error["text"]
        assert error["filename"] is not None, (where, error["text"])
        assert error["filename"].startswith(str(tmp_path)), error["text"]
        assert not LEFT_OVER.fullmatch(os.path.basename(error["filename"])), error["text"]
        assert found in {2, 3}, where
        published = "can be read" in error["text"]  # under temporary names
        if answer["call"] != "unlink" and not published:
            assert left_over(tmp_path) == [], where
    record_property("errors at one call of a writer after the other", failed)


@pytest.mark.matrix
@pytest.mark.fault(61)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("kinds", "action", "number"), [(WRITE, SHORT, 0), (WRITE | SYNC, FAIL, errno.EINTR)])
def test_short_writes_and_interrupted_calls_are_continued(
    run: FaultyProcess, tmp_path: Path, form: str, kinds: int, action: int, number: int
) -> None:
    for answer, found in faults(run, form, tmp_path, 3, kinds, action, number=number):
        assert (answer["error"], found) == (None, 3), answer
        assert left_over(tmp_path) == []
