"""Epochs of streams of PyTorch: their numbers and seeds, in workers and after a checkpoint."""

from __future__ import annotations

import multiprocessing
import pickle
import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tfrecord_io as tfr
from in_processes import put_epochs
from loaded_rows import seen

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from tfrecord_io.apps.adapters.torch_datasets import _EpochNumbers  # noqa: E402


@pytest.mark.parametrize(("ranks", "workers"), [(1, 0), (1, 2), (3, 0), (2, 2), (4, 3)])
@pytest.mark.parametrize("uneven", ["keep", "drop", "pad"])
@pytest.mark.parametrize("filtered", [False, True])
def test_ranks_and_workers_share_the_rows(
    numbers: tfr.Dataset, ranks: int, workers: int, uneven: str, filtered: bool
) -> None:
    dataset = numbers.filter([("x", ">=", 8)]) if filtered else numbers
    expected = set(range(8 if filtered else 0, 61))
    keywords: dict[str, Any] = {"batch_size": 3, "shuffle_buffer": 10, "seed": 1, "uneven": uneven}
    parts = [seen(dataset.to_torch(rank=(rank, ranks), **keywords), workers) for rank in range(ranks)]
    times = Counter(n for part in parts for n in part)
    if uneven == "keep":
        assert set(times) == expected
        assert set(times.values()) == {1}
        return
    of_rank = max(workers, 1) if filtered else 1  # readers of a rank whose numbers of rows are made equal
    readers = ranks * of_rank
    size = -(-len(expected) // readers) if uneven == "pad" else len(expected) // readers
    assert {len(part) for part in parts} == {size * of_rank}
    assert set(times) == expected if uneven == "pad" else set(times.values()) == {1}


def test_epochs_are_shuffled_differently(numbers: tfr.Dataset) -> None:
    stream = numbers.to_torch(batch_size=5, shuffle_buffer=20)
    again = pickle.loads(pickle.dumps(stream))
    orders = [seen(stream, 0) for _ in range(3)]
    assert [seen(again, 0) for _ in range(3)] == orders
    assert all(sorted(order) == list(range(61)) for order in orders)
    assert len(set(map(tuple, orders))) == 3
    for epoch in (1, 0, 2):
        stream.set_epoch(epoch)
        assert seen(stream, 0) == orders[epoch]
    stream.set_epoch(1)
    assert [seen(stream, 0), seen(stream, 0)] == orders[1:]
    assert pickle.loads(pickle.dumps(stream)).set_epoch(0) is None
    assert seen(stream, 0) != orders[0]  # the copy was set
    with pytest.raises(ValueError, match="epoch=-1: expected at least 0"):
        stream.set_epoch(-1)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("persistent", [False, True])
def test_workers_agree_on_the_epoch(numbers: tfr.Dataset, workers: int, persistent: bool) -> None:
    def loader(epochs: Any) -> Any:
        context = {"multiprocessing_context": "fork", "persistent_workers": persistent}
        return DataLoader(epochs, batch_size=None, num_workers=workers, **context)

    def stream() -> Any:
        return numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="pad")

    expected = []
    for epoch in range(3):
        chosen = stream()
        chosen.set_epoch(epoch)
        expected.append([batch["x"].tolist() for batch in loader(chosen)])
        assert {n for batch in expected[-1] for n in batch} == set(range(61))
    assert expected[0] != expected[1] != expected[2]
    batches = loader(stream())
    assert [[batch["x"].tolist() for batch in batches] for _ in range(3)] == expected
    batches.dataset.set_epoch(1)
    assert [[batch["x"].tolist() for batch in batches] for _ in range(2)] == expected[1:]


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.parametrize("workers", [0, 2])
def test_a_process_that_gets_a_stream_counts_epochs_by_itself(numbers: tfr.Dataset, start: str, workers: int) -> None:
    """Ranks have the same epochs as each other, though the process that starts them has made the stream."""
    stream, other = (numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="drop") for _ in range(2))
    expected = [seen(other, workers) for _ in range(2)]
    context: Any = multiprocessing.get_context(start)
    answers = context.Queue()
    for _ in range(2):
        rank = context.Process(target=put_epochs, args=(stream, workers, answers))
        rank.start()
        assert answers.get(timeout=120) == expected
        rank.join()
    assert [seen(stream, workers) for _ in range(2)] == expected


@pytest.mark.parametrize("seeded", ["global", "generator"])
@pytest.mark.parametrize("taken", [1, 99])
def test_epochs_of_one_seed_of_the_loader(numbers: tfr.Dataset, seeded: str, taken: int) -> None:
    """Epochs count on if the loader has the same seed in each, also if an epoch ends before all its workers begin."""
    stream = numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="pad")
    expected = []
    for epoch in range(4):
        stream.set_epoch(epoch)
        expected.append(seen(stream, 3))
    stream.set_epoch(0)
    generator = torch.Generator() if seeded == "generator" else None
    context: dict[str, Any] = {"num_workers": 3, "multiprocessing_context": "fork", "generator": generator}
    for epoch in range(4):
        (torch.manual_seed if generator is None else generator.manual_seed)(7)
        loader, rows = DataLoader(stream, batch_size=None, **context), []
        for _, batch in zip(range(99 if epoch == 3 else taken), loader, strict=False):
            rows += batch["x"].tolist()
        assert rows == expected[epoch][: len(rows)]
        if taken == 99:
            assert len(rows) == len(expected[epoch])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_roll_back_goes_on_with_the_epochs_after_it(numbers: tfr.Dataset, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    context = {"multiprocessing_context": "fork"} if workers else {}
    stream = numbers.to_torch(batch_size=4, shuffle_buffer=7, seed=5)
    loader = stateful.StatefulDataLoader(stream, batch_size=None, num_workers=workers, **context)
    epochs = [[batch["x"].tolist() for batch in loader]]
    batches = iter(loader)
    begun = [next(batches)["x"].tolist() for _ in range(3)]
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    epochs.append(begun + [batch["x"].tolist() for batch in batches])
    epochs += [[batch["x"].tolist() for batch in loader] for _ in range(3)]
    loader.load_state_dict(state)
    again = [[batch["x"].tolist() for batch in loader] for _ in range(4)]
    assert [begun + again[0], *again[1:]] == epochs[1:]


@pytest.mark.parametrize("library", ["torch", "torchdata"])
def test_an_epoch_that_is_set_before_the_first_batch(numbers: tfr.Dataset, library: str) -> None:
    stream = numbers.to_torch(batch_size=8, shuffle_buffer=30, seed=0)
    orders = [seen(stream, 0) for _ in range(5)]
    stream.set_epoch(0)
    if library == "torch":
        batches = iter(stream)
    else:
        stateful = pytest.importorskip("torchdata.stateful_dataloader")
        loader = stateful.StatefulDataLoader(stream, batch_size=None)
        loader.state_dict()  # makes an iterator, as accelerate does before the first epoch
        batches = loader
    stream.set_epoch(3)
    assert [n for batch in batches for n in batch["x"].tolist()] == orders[3]
    assert seen(stream, 0) == orders[4]
    batches = iter(stream)
    stream.set_epoch(1)
    assert seen(stream, 0) == orders[1]  # which another iteration takes
    assert [n for batch in batches for n in batch["x"].tolist()] == orders[2]
    stream.set_epoch(5)
    batches = iter(stream)
    following = next(batches)["x"]
    state = batches.state_dict()
    batches = iter(stream)
    stream.set_epoch(1)
    batches.load_state_dict(state)  # says more about this iteration
    assert torch.equal(torch.cat([following, *(batch["x"] for batch in batches)]), torch.tensor(epoch_of(numbers, 5)))


def epoch_of(numbers: tfr.Dataset, epoch: int) -> list[int]:
    stream = numbers.to_torch(batch_size=8, shuffle_buffer=30, seed=0)
    stream.set_epoch(epoch)
    return seen(stream, 0)


def test_workers_that_begin_at_the_same_moment_agree() -> None:
    """Each iteration of a loader is the next epoch, whichever worker is first to note it."""
    context = multiprocessing.get_context("fork")
    numbers, barrier, found = _EpochNumbers(torch.zeros(1026, dtype=torch.int64)), context.Barrier(3), context.Queue()

    def work(number: int) -> None:
        info = SimpleNamespace(id=number, seed=100 + number, num_workers=3)
        epochs = []
        for _ in range(1000):
            barrier.wait(60)
            epochs.append(numbers.begin(info)[1])
        found.put(epochs)

    workers = [context.Process(target=work, args=(number,)) for number in range(3)]
    for worker in workers:
        worker.start()
    assert [found.get(timeout=120) for _ in workers] == [list(range(1000))] * 3
    for worker in workers:
        worker.join()


def test_two_loaders_of_one_stream_at_a_time(numbers: tfr.Dataset) -> None:
    """Each iteration is an epoch, in which all workers take part."""
    stream = numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="pad")
    loaders = [DataLoader(stream, batch_size=None, num_workers=2, multiprocessing_context="fork") for _ in range(2)]
    seen_by = [set(), set()]  # type: list[set[int]]
    for batches in zip(*loaders, strict=True):
        for own, batch in zip(seen_by, batches, strict=True):
            own.update(batch["x"].tolist())
    assert seen_by == [set(range(61))] * 2


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("taken", [0, 1, 6, 99])
def test_a_stateful_loader_resumes(numbers: tfr.Dataset, workers: int, batch_size: int | None, taken: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    context = {"multiprocessing_context": "fork"} if workers else {}

    def loader() -> Any:
        stream = numbers.to_torch(batch_size=batch_size, shuffle_buffer=7, seed=5)
        stream.set_epoch(2)
        size = 4 if batch_size is None else None
        return stateful.StatefulDataLoader(stream, batch_size=size, num_workers=workers, **context)

    several = loader()
    whole = [batch["x"].tolist() for batch in several]
    following = [batch["x"].tolist() for batch in several]  # the next epoch
    interrupted, batches = loader(), []
    for batch in interrupted:
        if len(batches) == taken:
            break
        batches.append(batch["x"].tolist())
        state = pickle.dumps(interrupted.state_dict())
    if not taken:
        state = pickle.dumps(loader().state_dict())
    assert batches == whole[:taken]
    resumed = loader()
    resumed.load_state_dict(pickle.loads(state))
    assert [batch["x"].tolist() for batch in resumed] == whole[len(batches) :]
    assert [batch["x"].tolist() for batch in resumed] == following != whole


def test_a_position_is_that_of_one_seed_or_of_a_drawn_one(numbers: tfr.Dataset) -> None:
    batches = iter(numbers.to_torch(batch_size=4, shuffle_buffer=20))
    for _ in range(3):
        next(batches)
    state = batches.state_dict()
    rest = [batch["x"].tolist() for batch in batches]
    again = iter(numbers.to_torch(batch_size=4, shuffle_buffer=20))
    again.load_state_dict(state)
    assert [batch["x"].tolist() for batch in again] == rest
    with pytest.raises(ValueError, match="seed"):
        iter(numbers.to_torch(batch_size=4, shuffle_buffer=20, seed=1)).load_state_dict(state)
    with pytest.raises(ValueError, match=r"seed=\d+: expected"):
        again.load_state_dict({**state, "position": {**state["position"], "seed": 2**64}})


def test_a_position_is_that_of_as_many_workers(numbers: tfr.Dataset) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader(workers: int) -> Any:
        stream = numbers.to_torch(batch_size=4)
        return stateful.StatefulDataLoader(stream, batch_size=None, num_workers=workers, multiprocessing_context="fork")

    interrupted, resumed = loader(2), loader(1)
    next(iter(interrupted))
    resumed.load_state_dict(interrupted.state_dict())
    expected = "made with 2 workers in all ranks, and this is one of 1; pass the same num_workers to the DataLoader"
    with pytest.raises(ValueError, match=expected):
        next(iter(resumed))


@pytest.mark.parametrize("workers", [0, 2])
def test_a_seed_that_was_drawn_is_that_of_the_epochs_after_a_state(numbers: tfr.Dataset, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def loader() -> Any:
        context = {"multiprocessing_context": "fork"} if workers else {}
        stream = numbers.to_torch(batch_size=4, shuffle_buffer=20)
        return stateful.StatefulDataLoader(stream, batch_size=None, num_workers=workers, **context)

    whole = loader()
    batches = iter(whole)
    next(batches)
    state = pickle.loads(pickle.dumps(whole.state_dict()))
    epochs = [[batch["x"].tolist() for batch in each] for each in (batches, whole, whole)]
    resumed = loader()
    resumed.load_state_dict(state)
    assert [[batch["x"].tolist() for batch in resumed] for _ in range(3)] == epochs


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    "options", [{"bucket_by": "x", "bucket_sizes": [2, 6]}, {"pack": {"x": 6}}, {"pack": {"x": 5}, "cut": True}]
)
def test_arranged_batches_resume(tmp_path: Path, workers: int, options: dict[str, Any]) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    tfr.write_tfrecord({"x": [[n] * (n % 6 + 1) for n in range(60)], "n": range(60)}, tmp_path / "a.tfrecord")
    opened = tfr.dataset(tmp_path / "a.tfrecord").select(["x"] if "pack" in options else ["x", "n"])
    context = {"multiprocessing_context": "fork"} if workers else {}

    def loader() -> Any:
        stream = opened.to_torch(batch_size=2, shuffle_buffer=7, seed=5, **options)
        return stateful.StatefulDataLoader(stream, batch_size=None, num_workers=workers, **context)

    whole = [batch["x"].tolist() for batch in loader()]
    assert {n for batch in whole for row in batch for n in row} == set(range(60))
    interrupted, batches = loader(), []
    for batch in interrupted:
        batches.append(batch["x"].tolist())
        if len(batches) == 5:
            break
    resumed = loader()
    resumed.load_state_dict(pickle.loads(pickle.dumps(interrupted.state_dict())))
    assert batches + [batch["x"].tolist() for batch in resumed] == whole


@pytest.mark.usefixtures("forgotten_state")
@pytest.mark.parametrize("stopped", [4, 13, 22])
def test_a_trainer_of_packed_batches_resumes_at_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    """By the classes of the how-to; an epoch has 10 batches."""
    transformers = pytest.importorskip("transformers")
    page = (Path(__file__).parents[3] / "docs" / "howto" / "distributed.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n([^`]*?^class PackedTrainer[^`]*?)^```", page, re.MULTILINE)
    names: dict[str, Any] = {"Trainer": transformers.Trainer}
    exec(code, names)
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"ids": [[n] * 4 for n in range(160)]}, "a@2", schema={"ids": tfr.list_("int64")})
    stream = tfr.dataset("a@2").to_torch(batch_size=4, shuffle_buffer=50, seed=0, pack={"ids": 16})

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.batches = torch.nn.Linear(1, 1), []  # type: ignore[var-annotated]

        def forward(self, ids: Any, **others: Any) -> dict[str, Any]:
            self.batches.append(ids.tolist())
            return {"loss": self.layer(ids.reshape(-1, 1).float()).mean()}

    def train(steps: int, checkpoint: str | None = None) -> list[Any]:
        arguments = transformers.TrainingArguments(
            *("out",),
            max_steps=steps,
            save_steps=stopped,
            use_cpu=True,
            report_to="none",
            disable_tqdm=True,
            dataloader_pin_memory=False,
            remove_unused_columns=False,
        )
        model = Model()
        trainer = names["PackedTrainer"](model, arguments, train_dataset=names["Epochs"](stream))
        trainer.train(resume_from_checkpoint=checkpoint)
        return model.batches

    whole = train(30)
    assert len(whole) == 30
    for epoch in (whole[:10], whole[10:20], whole[20:]):
        assert sorted({n for batch in epoch for row in batch for n in row}) == list(range(160))
    assert train(stopped) == whole[:stopped]
    assert train(30, f"out/checkpoint-{stopped}") == whole[stopped:]
