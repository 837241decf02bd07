"""A loader's state goes on in any other number of loader workers and ranks, with each row once."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import tfrecord_io as tfr

torch = pytest.importorskip("torch")
stateful = pytest.importorskip("torchdata.stateful_dataloader")

ROWS, BATCH = 300, 12


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    path = tmp_path_factory.mktemp("rows") / "rows@5"
    tfr.write_tfrecord({"x": list(range(ROWS))}, path, write_index=True)
    return tfr.dataset(path)


def loader(data: tfr.Dataset, workers: int, **options: Any) -> Any:
    stream = data.to_torch(**{"batch_size": BATCH, "shuffle_buffer": 32, "seed": 1, **options})
    context = {"multiprocessing_context": "fork"} if workers else {}
    return stateful.StatefulDataLoader(stream, batch_size=None, num_workers=workers, **context)


def steps_of(batches: Any) -> list[list[int]]:
    return [batch["x"].tolist() for batch in batches]


def interrupted(data: tfr.Dataset, workers: int, taken: int = 7, **options: Any) -> tuple[Any, list[Any], list[Any]]:
    """The state of a loader after some batches, these, and those that follow."""
    rows = loader(data, workers, **options)
    batches = iter(rows)
    begun = [next(batches)["x"].tolist() for _ in range(taken)]
    state = json.loads(json.dumps(rows.state_dict()))
    return state, begun, steps_of(batches)


@pytest.mark.parametrize("before", [0, 2, 3])
def test_other_loader_workers_go_on(data: tfr.Dataset, before: int) -> None:
    state, begun, rest = interrupted(data, before, parts=4)
    assert sorted(x for step in begun + rest for x in step) == list(range(ROWS))
    for after in (0, 2, 3):
        rows = loader(data, after, state=state)
        assert steps_of(rows) == rest
        following = steps_of(rows)
        assert sorted(x for step in following for x in step) == list(range(ROWS))
        assert following == steps_of(loader_at(data, 1, parts=(4, max(before, 1))))


@pytest.mark.parametrize("before", [2, 3])
def test_other_loader_workers_of_counted_files_go_on(data: tfr.Dataset, before: int) -> None:
    state, begun, rest = interrupted(data, before)
    assert sorted(x for step in begun + rest for x in step) == list(range(ROWS))
    for after in (0, 2, 3):
        assert steps_of(loader(data, after, state=state)) == rest


def loader_at(data: tfr.Dataset, epoch: int, **options: Any) -> Any:
    rows = loader(data, 0, **options)
    rows.dataset.set_epoch(epoch)
    return rows


@pytest.mark.parametrize("workers", [0, 3])
def test_as_many_workers_go_on(data: tfr.Dataset, workers: int) -> None:
    """As torchdata does: each worker goes on with its own state."""
    state, _, rest = interrupted(data, workers, parts=4)
    rows = loader(data, workers, parts=4)
    rows.load_state_dict(state)
    assert steps_of(rows) == rest


@pytest.mark.parametrize("before", [(1, 2), (2, 0), (3, 2)])
@pytest.mark.parametrize("after", [(1, 0), (2, 2), (3, 0), (6, 2)])
def test_other_ranks_go_on(data: tfr.Dataset, before: tuple[int, int], after: tuple[int, int]) -> None:
    ranks, workers = before
    results = [
        interrupted(data, workers, batch_size=BATCH // ranks, rank=(rank, ranks), parts=6) for rank in range(ranks)
    ]
    seen = [x for _, begun, _ in results for step in begun for x in step]
    for state in (results[-1][0], [state for state, _, _ in results]):
        rest = list[int]()
        for rank in range(after[0]):
            options = {"batch_size": BATCH // after[0], "rank": (rank, after[0]), "state": state}
            rest += [x for step in steps_of(loader(data, after[1], **options)) for x in step]
        assert sorted(seen + rest) == list(range(ROWS))


def test_the_epoch_of_the_state_goes_on(data: tfr.Dataset) -> None:
    """Also where a training loop chooses each epoch; other epochs are whole."""
    stream = data.to_torch(batch_size=BATCH, shuffle_buffer=32, seed=1, parts=4)
    stream.set_epoch(5)
    batches = iter(stream)
    begun = [next(batches)["x"].tolist() for _ in range(3)]
    state, rest = batches.state_dict(), steps_of(batches)
    again = data.to_torch(batch_size=BATCH, shuffle_buffer=32, parts=4, state=state)
    assert steps_of(again) == rest
    assert len(steps_of(again)) == len(begun) + len(rest)
    again.set_epoch(5)
    assert steps_of(again) == rest
    again.set_epoch(4)
    assert len(steps_of(again)) == len(begun) + len(rest)


def test_a_state_without_parts_of_one_worker_goes_on(data: tfr.Dataset) -> None:
    state, _, rest = interrupted(data, 0)
    assert steps_of(loader(data, 2, state=state)) == rest


def test_states_that_do_not_fit_are_refused(data: tfr.Dataset) -> None:
    with pytest.raises(ValueError, match="state= has no position"):
        data.to_torch(batch_size=BATCH, state={"a": [1, {}]})
    rows = loader(data, 2, parts=4)
    rows.snapshot_every_n_steps = 4
    batches = iter(rows)
    for _ in range(2):
        next(batches)
    with pytest.raises(ValueError, match="since its workers saved theirs; pass snapshot_every_n_steps=1"):
        data.to_torch(batch_size=BATCH, state=rows.state_dict())
    filtered = data.filter([("x", ">=", 8)])
    of_two, _, _ = interrupted(filtered, 2)
    with pytest.raises(ValueError, match="one of them of a worker with files of its own"):
        steps_of(loader(filtered, 0, state=of_two))


class WithStates(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Steps of a stream, each with the state of the worker that made it."""

    def __init__(self, stream: Any, state: Any = None) -> None:
        self.stream, self.state = stream, state

    def __iter__(self) -> Any:
        batches = iter(self.stream)
        if self.state is not None:
            batches.load_state_dict(self.state)
        for batch in batches:
            yield batch["x"].tolist(), json.loads(json.dumps(batches.state_dict()))


def with_states(data: tfr.Dataset, workers: int, state: Any = None) -> Any:
    context = {"multiprocessing_context": "fork"} if workers else {}
    stream = data.to_torch(batch_size=BATCH, parts=4)
    return torch.utils.data.DataLoader(WithStates(stream, state), batch_size=None, num_workers=workers, **context)


@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("taken", [1, 2, 5])
def test_a_state_that_is_loaded_is_that_of_any_worker(data: tfr.Dataset, workers: int, taken: int) -> None:
    begun = [*itertools.islice(with_states(data, 2), taken)]
    seen, state = [x for step, _ in begun for x in step], begun[-1][1]
    rest = [x for step, _ in with_states(data, workers, state) for x in step]
    assert sorted(seen + rest) == list(range(ROWS))


def test_rows_one_by_one_have_no_step_without_rows(data: tfr.Dataset) -> None:
    skipping = tfr.dataset(data.files, on_error="skip")
    with pytest.raises(ValueError, match="which may be empty: pass batch_size="):
        steps_of(loader(skipping, 2, batch_size=None, parts=4))
    assert len(steps_of(loader(skipping, 0, batch_size=None, parts=4))) == ROWS
