"""Tests of rows/training/order_state.py: the layout of a state from which any number of workers goes on."""

from __future__ import annotations

import ast
import copy
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.rows.training import order_state, scan_row_source
from tfrecord_io.rows.training.scan_row_source import ScanRowSource
from tfrecord_io.store.read.index_cache import cached_path


@pytest.fixture
def data(tmp_path: Path) -> tfr.Dataset:
    tfr.write_tfrecord({"x": list(range(60))}, tmp_path / "x.tfrecord", write_index=True)
    return tfr.dataset(tmp_path / "x.tfrecord")


def batches(data: tfr.Dataset, **options: Any) -> tfr.typing.ArrayIterator:
    return data.iter_arrays(**{"batch_size": 4, "shuffle_buffer": 8, "seed": 3, "parts": 2, **options})


def state_of(data: tfr.Dataset, **options: Any) -> dict[str, Any]:
    begun = batches(data, **options)
    next(begun)
    state: dict[str, Any] = json.loads(json.dumps(begun.state()))
    return state


def test_states_have_the_documented_layout(data: tfr.Dataset) -> None:
    text = inspect.getdoc(order_state) or ""
    documented = ast.literal_eval(text[text.index("{") : text.rindex("}") + 1])
    state = state_of(data)
    assert {*state} == {*documented, "seed", "epoch", "files", "options"}
    assert {*state["marks"]["0"]} == {*documented["marks"]["2"]}
    assert [type(state[name]) for name in documented] == [type(value) for value in documented.values()]
    assert not {"worker", "batch_size", "uneven", "drop_last"} & {*state["options"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda state: state.pop("taken"), "the state is damaged"),
        (lambda state: state.update(taken=[1, 2]), "the state is damaged"),
        (lambda state: state.update(turn=1), "the state is damaged"),
        (lambda state: state.update(parts=[2, 0]), "the state is damaged"),
        (lambda state: state.update(step=0), "the state is damaged"),
        (lambda state: state.update(taken=[-1]), "the state is damaged"),
        (lambda state: state["marks"]["0"].pop("next"), "the state is damaged"),
        (lambda state: state["marks"].update(a={}), "the state is damaged"),
        (lambda state: state.update(version=4), "not a state of an iterator of this version"),
        (lambda state: state.update(rows=61), "of 61 rows, and these files have 60"),
        (lambda state: state["files"].update(count=2), "that of other files"),
        (lambda state: state["options"].update(shuffle_buffer=3), "shuffle_buffer=3, and this is shuffle_buffer=8"),
        (lambda state: state.update(seed=6), "seed=6, and this is seed=3"),
    ],
)
def test_other_states_are_refused(data: tfr.Dataset, change: Callable[[dict[str, Any]], object], message: str) -> None:
    state = copy.deepcopy(state_of(data))
    change(state)
    with pytest.raises(ValueError, match=message):
        batches(data, state=state)


def test_a_list_has_states_of_one_read(data: tfr.Dataset) -> None:
    state, other = state_of(data), state_of(data, seed=4)
    with pytest.raises(ValueError, match="states of different reads"):
        batches(data, seed=None, state=[state, other])
    with pytest.raises(ValueError, match="one of them of a worker with files of its own"):
        batches(data, state=[state, state_of(data, parts=None)])
    with pytest.raises(TypeError, match="or a list of several"):
        batches(data, state=[])
    with pytest.raises(ValueError, match="state= is an empty list"):
        batches(data).restore([])
    earlier = batches(data).state()
    again = batches(data, state=[earlier, state, earlier])
    assert {**again.state(), "marks": 0} == {**state, "marks": 0}


def test_rows_that_were_counted_have_to_be_counted_again(tmp_path: Path, data: tfr.Dataset) -> None:
    state = state_of(data)
    (tmp_path / "x.tfrecord.index").unlink()
    with pytest.raises(ValueError, match="counts 60 rows, but nothing states how many these files have"):
        batches(tfr.dataset(tmp_path / "x.tfrecord"), state=state)


@pytest.mark.parametrize("uneven", ["pad", "drop"])
def test_rows_that_were_read_to_be_counted_are_counted_again(tmp_path: Path, data: tfr.Dataset, uneven: str) -> None:
    (tmp_path / "x.tfrecord.index").unlink()
    plain = tfr.dataset(tmp_path / "x.tfrecord")
    begun = batches(plain, uneven=uneven, worker=(1, 3))
    next(begun)
    state = json.loads(json.dumps(begun.state()))
    rest = [batch["x"].tolist() for batch in batches(plain, uneven=uneven, worker=(1, 3), state=state)]
    assert rest == [batch["x"].tolist() for batch in begun]


def test_a_state_decides_about_parts(data: tfr.Dataset) -> None:
    state = state_of(data)
    again = batches(data, parts=7, state=state).state()
    assert again["parts"] == state["parts"] == [2, 1]


def test_parts_are_numbers(data: tfr.Dataset) -> None:
    for wrong in ((1, 2, 3), "4", 2.5):
        with pytest.raises(TypeError, match="parts"):
            batches(data, parts=wrong)
    for wrong in (0, (1, 0), 10_000):
        with pytest.raises(ValueError, match="parts"):
            batches(data, parts=wrong)
    with pytest.raises(ValueError, match=r"parts= with shuffle_buffer= needs the same seed="):
        batches(data, seed=None, worker=(0, 2))


def test_a_list_has_states_of_one_epoch(tmp_path: Path) -> None:
    """Ranks whose rows nothing counts may have different numbers of steps in an epoch."""
    tfr.write_tfrecord({"x": list(range(18))}, tmp_path / "x@2")
    source = tfr.dataset(tmp_path / "x").filter([("x", ">=", 6)])
    options: dict[str, Any] = {"batch_size": 2, "parts": 2, "epochs": 2}
    readers = [source.iter_arrays(**options, worker=(rank, 2)) for rank in range(2)]
    while True:
        states = [next(reader) and reader.state() for reader in readers]
        if states[0]["epoch"] != states[1]["epoch"] and max(sum(state["taken"]) for state in states) > 0:
            break
    with pytest.raises(ValueError, match="states of epochs 0 and 1: pass states of one step"):
        source.iter_arrays(**options, state=states)


def test_an_index_in_the_cache_of_one_machine_counts_no_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks on other machines do not have it, and the order has to be the same for all."""
    folder = tmp_path / "data"
    folder.mkdir()
    paths = [folder / f"{file}.tfrecord" for file in range(3)]
    for file, path in enumerate(paths):
        tfr.write_tfrecord({"x": [*range(5 * file, 5 * file + 5)]}, path, write_index=True)
    found = list[Any]()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for beside in (True, False):
        for path in paths if not beside else ():
            index = path.with_name(f"{path.name}.index")
            cached = Path(f"{cached_path(str(path))}.index")
            cached.parent.mkdir(parents=True, exist_ok=True)
            index.rename(cached)
        found.append(tfr.dataset(paths).iter_arrays(batch_size=2, parts=2, worker=(0, 2)).state()["rows"])
    assert found == [15, None]


OWN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # how files are written, and how they are read
    "a single worker": ({}, {"worker": None}),
    "compressed": ({"compression": "gzip"}, {}),
    "a filter": ({}, {"filters": [("x", ">", 3)]}),
    "a limit": ({}, {"limit": 30}),
    "records left out": ({}, {"on_error": "skip"}),
    "a seed for each": ({}, {"seed": None}),
    "packed rows": ({}, {"shuffle_buffer": 0, "seed": None, "pack": {"t": 4}, "columns": ["t"]}),
}


@pytest.mark.parametrize("case", OWN)
def test_where_workers_have_files_of_their_own(tmp_path: Path, case: str) -> None:
    of_writer, of_reader = OWN[case]
    tfr.write_tfrecord({"x": list(range(60)), "t": [[1, 2]] * 60}, tmp_path / "x@4", **of_writer)
    names = ("filters", "limit", "on_error", "columns")
    data = tfr.dataset(tmp_path / "x", **{name: value for name, value in of_reader.items() if name in names})
    options: dict[str, Any] = {"batch_size": 4, "shuffle_buffer": 8, "seed": 3, "worker": (0, 2), **of_reader}
    options = {name: value for name, value in options.items() if name not in names}
    assert data.iter_arrays(**options).state()["version"] == 2
    if options["worker"] is not None and options["seed"] is not None:
        assert data.iter_arrays(**options, parts=2).state()["version"] == 3


def test_files_that_nothing_counts_are_of_one_worker_each(tmp_path: Path) -> None:
    paths = [tmp_path / f"{file}.tfrecord" for file in range(3)]
    for path in paths:
        tfr.write_tfrecord({"x": list(range(5))}, path)
    options: dict[str, Any] = {"batch_size": 2, "worker": (0, 2)}
    assert tfr.iter_arrays(paths, **options).state()["version"] == 2
    assert tfr.iter_arrays(paths, **options, uneven="drop").state()["version"] == 3  # which counts them


def test_the_indexes_of_many_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each worker would read all of them before its first row; a manifest has all counts."""
    monkeypatch.setattr(scan_row_source, "_MOST_INDEXES", 2)
    paths = [tmp_path / f"{file}.tfrecord" for file in range(3)]
    for path in paths:
        tfr.write_tfrecord({"x": list(range(5))}, path, write_index=True)
    tfr.write_tfrecord({"x": list(range(15))}, tmp_path / "x@3")
    options: dict[str, Any] = {"batch_size": 2, "worker": (0, 2)}
    assert tfr.iter_arrays(paths[:2], **options).state()["version"] == 3
    assert tfr.iter_arrays(paths, **options).state()["version"] == 2
    assert tfr.iter_arrays(paths, **options, uneven="drop").state()["version"] == 3  # which reads them anyway
    assert tfr.iter_arrays(tmp_path / "x", **options).state()["version"] == 3
    monkeypatch.setattr(scan_row_source, "_MOST_COUNTED", 2)
    assert tfr.iter_arrays(tmp_path / "x", **options).state()["version"] == 2


@pytest.mark.parametrize("has_index", [True, False])
def test_files_in_a_bucket_need_an_index(bucket: Any, has_index: bool) -> None:
    """Without one, a worker would read a file from its start to find its first row."""
    target, storage = bucket.url("x@3"), {"storage_options": bucket.storage_options}
    tfr.write_tfrecord({"x": list(range(60))}, target, write_index=has_index, **storage)
    options: dict[str, Any] = {"batch_size": 4, "worker": (0, 2), **storage}
    assert tfr.iter_arrays(target.removesuffix("@3"), **options).state()["version"] == (3 if has_index else 2)


@pytest.mark.parametrize(
    ("mebibytes", "ranks", "workers", "shuffles", "lanes"),
    [(0, 4, 1, True, 1), (100, 4, 1, True, 12), (400, 4, 1, True, 16), (140, 3, 1, True, 16), (400, 1, 4, True, 12),
     (400, 2, 2, False, 2), (400, 1, 4, False, 1), (10, 2, 1, True, 1), (16, 2, 1, True, 2)],
)  # fmt: skip
def test_lanes_by_default(
    data: tfr.Dataset,
    mebibytes: int,
    ranks: int,
    workers: int,
    shuffles: bool,
    lanes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The largest divisor of the rows of a step, up to 16, that leaves parts of 8 MiB."""
    monkeypatch.setattr(ScanRowSource, "size", mebibytes << 20)
    options: dict[str, Any] = {"shuffle_buffer": 8 * shuffles, "seed": 3 if shuffles else None, "parts": None}
    of_rank = batches(data, **options, worker=(0, ranks), batch_size=48 // ranks)
    state = of_rank.begin_epoch(0, seed=3 if shuffles else None, loader=(0, workers)).state()
    assert state["parts"] == [lanes, workers]
