"""Workers have files of their own where they share no order: runs of those of a manifest in parts, or every n-th."""

from __future__ import annotations

import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.store.paths import manifest_files
from tfrecord_io.store.paths.resolve import resolve_inputs

DAYS = 12


@pytest.fixture(params=["in order", "appended to"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset of twelve folders and a manifest in parts of three files, to which older folders may be appended."""
    for name, value in {"many": 4, "large_bytes": 0, "part": 3, "tail": 2}.items():
        monkeypatch.setattr(manifest_files.SIZES, name, value)
    days = [day for day in range(DAYS) for _ in range(4)]
    options: Any = {"partition_by": "day", "compression": "gzip"}  # rows of compressed files are not in a common order
    tfr.write_tfrecord({"x": range(len(days)), "day": days}, tmp_path / "d/", **options)
    for day in range(7) if request.param == "appended to" else ():
        tfr.write_tfrecord({"x": [100 + day], "day": [day]}, tmp_path / "d/", mode="append", **options)
    return f"{tmp_path}/d/"


def rows_of(batches: Any) -> list[int]:
    return [int(x) for batch in batches for x in batch["x"]]


def batches_of(path: Any, **keywords: Any) -> Any:
    return tfr.dataset(path, threads=1).iter_arrays(batch_size=2, **keywords)


@pytest.mark.parametrize("shuffled", [{}, {"shuffle_buffer": 5, "seed": 3}])
@pytest.mark.parametrize("workers", [2, 5, 12])
def test_workers_have_runs_of_files(path: str, workers: int, shuffled: dict[str, int]) -> None:
    parts = [rows_of(batches_of(path, worker=(i, workers), **shuffled)) for i in range(workers)]
    assert sorted(chain(*parts)) == sorted(tfr.read_table(path)["x"].to_pylist())
    assert all(parts)
    written = [x for part in parts for x in sorted(part) if x < 100]
    assert written == sorted(written)  # the first runs have the first files
    if workers == 2:
        assert abs(len(parts[0]) - len(parts[1])) <= 4


def test_a_state_of_a_run_goes_on(path: str) -> None:
    asked = {"worker": (1, 3), "shuffle_buffer": 6, "seed": 1, "epochs": 2}
    batches = batches_of(path, **asked)
    taken = [next(batches) for _ in range(3)]
    state = json.loads(json.dumps(batches.state()))
    assert state["options"]["run"] == list(resolve_inputs(path).run(1, 3) or ())
    assert rows_of(taken) + rows_of(batches_of(path, **{**asked, "state": state})) == rows_of(batches_of(path, **asked))


@pytest.mark.parametrize("saved", [None, [0, 3]])
def test_a_state_of_other_files_of_the_worker_is_refused(path: str, saved: Any) -> None:
    batches = batches_of(path, worker=(1, 3))
    next(batches)
    state = batches.state()
    state["options"].pop("run")
    if saved is not None:
        state["options"]["run"] = saved
    had = r"every n-th file" if saved is None else r"the files \[0, 3\]"
    with pytest.raises(ValueError, match=rf"made when this worker had {had} of the dataset, and now it has the files"):
        batches_of(path, worker=(1, 3), state=state)


def test_a_mixture_states_the_runs_of_its_parts(path: str) -> None:
    mixed = tfr.mix([tfr.dataset(path, threads=1), tfr.dataset(path, threads=1)], [1, 2], seed=0, stop="all")
    parts = [rows_of(mixed.iter_arrays(batch_size=2, worker=(i, 3))) for i in range(3)]
    assert {*chain(*parts)} == {*tfr.read_table(path)["x"].to_pylist()}
    batches = mixed.iter_arrays(batch_size=2, worker=(1, 3))
    first = next(batches)
    state = json.loads(json.dumps(batches.state()))
    assert rows_of([first, *mixed.iter_arrays(batch_size=2, worker=(1, 3), state=state)]) == parts[1]
    state["options"].pop("run")
    with pytest.raises(ValueError, match="every n-th file"):
        mixed.iter_arrays(batch_size=2, worker=(1, 3), state=state)


def test_with_parts_any_number_of_workers_goes_on(path: str) -> None:
    batches = [batches_of(path, worker=(i, 3), parts=4, shuffle_buffer=8, seed=2) for i in range(3)]
    rows = rows_of(next(each) for each in batches)
    state = batches[0].state()
    assert "run" not in state["options"]
    others = [batches_of(path, worker=(i, 2), parts=4, shuffle_buffer=8, seed=2, state=state) for i in range(2)]
    assert sorted(chain(rows, *map(rows_of, others))) == sorted(tfr.read_table(path)["x"].to_pylist())


def test_few_files_are_dealt(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(6)}, tmp_path / "d@6", compression="gzip")
    parts = [rows_of(batches_of(tmp_path / "d@6", worker=(i, 2))) for i in range(2)]
    assert parts == [[0, 2, 4], [1, 3, 5]]
    state = batches_of(tmp_path / "d@6", worker=(1, 2)).state()
    assert "run" not in state["options"]
