"""A writer is killed: its target then has the old content or the new, never a mix."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from killed_writer import ROWS, write
from rounds import COMPLETE, each_step

LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp|_[0-9a-f]{16}-[0-9]{5}\.staged")
SEED = 20_240_517
TRIALS = 500 if COMPLETE else 50


@pytest.fixture(scope="module")
def forker(tmp_path_factory: pytest.TempPathFactory, native_engine: None) -> Iterator[Any]:
    """Run a job: a writer that is killed."""
    first = tmp_path_factory.mktemp("first")
    script = Path(__file__).parents[1] / "support" / "killed_writer.py"
    command = [sys.executable, str(script), f"{first}/a.tfrecord", f"{first}/a"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"

        def run(**job: Any) -> dict[str, Any]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(job) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run
        process.stdin.close()


def generation(target: str) -> int:
    """The generation that all rows are of, as a reader finds them; the files fit their manifest."""
    path = target if target.endswith(".tfrecord") else f"{target}@*"
    table = tfr.read_table(tfr.dataset(path, threads=1))
    assert table.num_rows == ROWS
    (only,) = set(table["generation"].to_pylist())
    with tfr.open_random(path) as records:
        assert {records[i]["generation"] for i in range(0, ROWS, ROWS // 10)} == {only}
    return int(only) - 10_000


def check(target: str, before: int, done: int) -> int:
    """The target is of the last complete write, or of the write that was killed."""
    found = generation(target)
    assert found in {max(before, done), max(before, done) + 1}
    return found


def strange_names(folder: Path, target: str) -> list[str]:
    own = os.path.basename(target)
    return [
        n
        for n in os.listdir(folder)
        if not LEFT_OVER.fullmatch(n) and not n.startswith(own) and n != f"_MANIFEST-{own}.json"
    ]


@pytest.mark.fault(67)
@pytest.mark.storm
@pytest.mark.timeout(3600)  # on a busy machine a check after a kill takes seconds
@pytest.mark.parametrize("name", ["one.tfrecord", "many"])
def test_killed_at_random_moments(forker: Any, tmp_path: Path, name: str, record_property: Any) -> None:
    target = f"{tmp_path}/{name}"
    rng = random.Random(SEED)
    write(target, 0)  # imports what is needed
    begin = time.perf_counter()
    write(target, 1)
    longest = min(0.08, max(0.03, 5 * (time.perf_counter() - begin)))
    at, new = 1, 0
    for trial in range(TRIALS):
        if new < trial // 20:
            longest *= 1.2  # a busy machine
        answer = forker(target=target, first=at + 1, delay=rng.uniform(0, longest))
        assert answer["killed"]
        found = check(target, at, answer["done"])
        new += found > at
        at = found
    assert new > TRIALS // 50, f"seed {SEED}: nearly no writer came to its end"
    assert strange_names(tmp_path, target) == []
    write(target, at + 1)
    assert generation(target) == at + 1
    if name == "many":
        assert tfr.verify(f"{target}@*").ok
    record_property("kills of a writer at random moments", TRIALS)


@pytest.mark.fault(67)
@pytest.mark.parametrize("name", ["one.tfrecord", "many"])
@pytest.mark.parametrize("first", [2, 3])
def test_killed_at_each_step(forker: Any, tmp_path: Path, name: str, first: int) -> None:
    """Each call that changes a directory is the last one once: for shards under the old names, and under others."""
    target = f"{tmp_path}/{name}"
    moments = set()
    for step in each_step(first):
        write(target, first - 1)
        answer = forker(target=target, first=first, step=step)
        found = generation(target)
        moments.add(found)
        assert found in {first - 1, first}
        if name == "many":
            assert tfr.verify(f"{target}@*").ok
            assert tfr.count(f"{target}@*") == tfr.count(f"{tmp_path}/many-*") == ROWS
            assert tfr.read_table(tmp_path).num_rows == ROWS
        if not answer["killed"]:
            break
    assert answer == {"done": first, "killed": False}
    assert step > (20 if name == "many" else 1)
    assert moments == {first - 1, first}


@pytest.mark.fault(67)
def test_killed_at_the_first_write_leaves_nothing_or_everything(forker: Any, tmp_path: Path) -> None:
    for step in each_step():
        target = f"{tmp_path}/{step}/many"
        os.mkdir(os.path.dirname(target))
        answer = forker(target=target, first=3, step=step)
        try:
            assert generation(target) == 3
        except FileNotFoundError:
            assert [n for n in os.listdir(os.path.dirname(target)) if not LEFT_OVER.fullmatch(n)] == []
        if not answer["killed"]:
            break
    assert generation(target) == 3
    assert step > 20


@pytest.mark.fault(67)
@pytest.mark.parametrize("exists", [True, False])
def test_killed_while_appending_adds_all_rows_or_none(forker: Any, tmp_path: Path, exists: bool) -> None:
    moments = set()
    for step in each_step(exists):
        target = f"{tmp_path}/{step}/"
        os.mkdir(target)
        if exists:
            write(target, 1)
        answer = forker(target=target, first=2, step=step)
        before = [10_001] * ROWS if exists else []
        try:
            found = tfr.read_table(tfr.dataset(target, threads=1))["generation"].to_pylist()
        except FileNotFoundError:
            found = []
        assert found in (before, before + [10_002] * ROWS)
        moments.add(found == before)
        if found:
            assert tfr.verify(target).ok
            assert tfr.count(f"{target}part-*") == len(found)
            write(target, 3)
            assert tfr.count(target) == len(found) + ROWS
        if not answer["killed"]:
            break
    assert moments == {True, False}
    assert step > 4


@pytest.mark.fault(67)
@pytest.mark.storm
@pytest.mark.timeout(3600)
def test_killed_while_appending_at_random_moments(forker: Any, tmp_path: Path, record_property: Any) -> None:
    target, rng = f"{tmp_path}/", random.Random(SEED)
    write(target, 0)
    at, kills = 1, 1000 if COMPLETE else 20
    for _kill in range(kills):
        answer = forker(target=target, first=at, delay=rng.uniform(0, 0.1))
        rows = tfr.read_table(tfr.dataset(target, threads=1))["generation"].to_pylist()
        found = rows[::ROWS]
        assert rows == [value for value in found for _ in range(ROWS)]
        last = found[-1] - 10_000
        assert found[-last - 1 + at :] == [10_000 + n for n in range(at, last + 1)] or last < at
        assert last in {max(at - 1, answer["done"]), max(at - 1, answer["done"]) + 1}
        at = last + 1
        if len(found) > 40:
            tfr.write_tfrecord(
                {"generation": [10_000 + last] * ROWS, "blob": [bytes(100)] * ROWS}, target, mode="overwrite"
            )
    record_property("kills of an appending writer", kills)
