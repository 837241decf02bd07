"""Processes that train together have every row, whichever library shares them out, and whenever a stream was made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from records import example, int64s, written
from tfrecord_io.read.file_indexes import write_indexes

pytest.importorskip("torch")

SUPPORT = Path(__file__).parents[2] / "support"
ROWS, BATCH = 61, 12
SIZES = (20, 1, 19, 0, 21)  # of the files


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of very different sizes, of which one is empty."""
    folder, first = tmp_path_factory.mktemp("rows"), 0
    for number, size in enumerate(SIZES):
        written(folder / f"{number}.tfrecord", [example(x=int64s(n)) for n in range(first, first + size)])
        first += size
    write_indexes(sorted(folder.glob("*.tfrecord")))
    return folder


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("library", ["torch", "lightning", "accelerate", "trainer"])
def test_the_ranks_share_the_rows(library: str, ranks: int, data: Path, tmp_path: Path) -> None:
    pytest.importorskip("transformers" if library == "trainer" else library)
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    program = [str(SUPPORT / "ranks_that_train.py"), library, str(data), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "1"}
    done = subprocess.run(
        [*launch, *program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=500
    )
    assert done.returncode == 0, done.stderr[-6000:]
    found = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(ranks)]
    assert len(found[0]) >= 8
    assert all(own.keys() == found[0].keys() for own in found)
    for case in found[0]:
        epochs = [[own[case][epoch] for own in found] for epoch in range(2)]
        for parts in epochs:
            check(case, parts)
        assert epochs[0] != epochs[1], case  # each in another order


def check(case: str, parts: list[list[int]]) -> None:
    """Check the rows that each rank gets of an epoch."""
    times, ranks = Counter(n for part in parts for n in part), len(parts)
    rule, workers = case.split("-")[0], 2 if "-2" in case else 1
    most_added = {"dispatch": ranks - 1, "shard": (BATCH * ranks - 1) * workers, "pad": ranks * workers - 1}
    if rule == "drop":
        assert set(times.values()) == {1}, case
        assert len(times) > ROWS - ranks * workers, case
    else:
        assert set(times) == set(range(ROWS)), case
        assert times.total() <= ROWS + most_added.get(rule, 0), case
    if rule != "keep":
        assert len({len(part) for part in parts}) == 1, case
