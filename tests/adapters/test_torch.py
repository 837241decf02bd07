"""PyTorch reads TFRecord files: `make test-adapters` runs these tests."""

from __future__ import annotations

import multiprocessing
import pickle
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from in_processes import put_epochs
from pictures import assert_pictures, written_pictures
from records import example, int64s, written
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite
from tfrecord_io.tools.build_index import write_indexes

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from tfrecord_io.adapters.torch_datasets import _EpochNumbers  # noqa: E402

TYPES = {"time": pa.timestamp("us", ZONE), "day": pa.date32()}


def cells(name: str, values: Any, mask: Any) -> list[Any]:
    """The values of a column in Python: None if missing."""
    found = values.tolist() if isinstance(values, torch.Tensor) else list(values)
    found = [cell.tolist() if isinstance(cell, torch.Tensor) else cell for cell in found]
    if name in TYPES:
        type_ = pa.int32() if name == "day" else pa.int64()
        found = pa.array(found, type_).cast(TYPES[name]).to_pylist()
    missing = [False] * len(found) if mask is None else mask.reshape(len(found), -1).any(1).tolist()
    return [None if is_missing else cell for cell, is_missing in zip(found, missing, strict=True)]


def columns_of(batches: list[dict[str, Any]], names: list[str]) -> dict[str, list[Any]]:
    return {
        name: [cell for batch in batches for cell in cells(name, batch[name], batch.get(f"{name}/mask"))]
        for name in names
    }


class TestTorch(AdapterSuite):
    """Batches, made in this process."""

    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        return list(DataLoader(opened.to_torch(batch_size=4, missing="mask"), batch_size=None))

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        chosen = opened if names is None else opened.select(names)
        return columns_of(self.batches(chosen), names or opened.schema.names)

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        return len(self.rows(opened, ["ints"])["ints"])

    def names(self, opened: tfr.Dataset) -> list[str]:
        return opened.schema.names


class TestTorchRows(TestTorch):
    """Single rows, which the loader batches."""

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        loader = DataLoader(opened.to_torch(missing="mask"), batch_size=3, collate_fn=collated)
        return list(loader)


class TestTorchWorkers(TestTorch):
    """Batches, made in a worker."""

    keeps_class = False

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        stream = opened.to_torch(batch_size=4, missing="mask")
        return list(DataLoader(stream, batch_size=None, num_workers=1, multiprocessing_context="fork"))


class TestTorchMap(TestTorch):
    """Rows by number."""

    def batches(self, opened: tfr.Dataset) -> list[dict[str, Any]]:
        rows = opened.to_torch_map(missing="mask")
        loader = DataLoader(rows, batch_size=3, collate_fn=collated)
        batches = list(loader)
        assert len(rows) == sum(len(next(iter(batch.values()))) for batch in batches)
        return batches

    def test_rows_in_any_order(self, path: Path) -> None:
        rows = pickle.loads(pickle.dumps(tfr.dataset(path).select(["ints", "text"]).to_torch_map()))
        assert rows[6] == {"ints": torch.tensor(2, dtype=torch.int16), "text": None}
        assert rows[-1] == rows[14]
        assert [row["text"] for row in rows.__getitems__([3, 0, 3])] == ["é", "a", "é"]
        for number in (15, -16):
            with pytest.raises(IndexError, match="there are 15 rows"):
                rows[number]
        assert rows[3:0:-3] == rows[np.array([3])] == [rows[3]]
        assert rows[[]] == rows[9:3] == []
        assert len(rows[:]) == 15
        for invalid in ([0.5], [True], "ints", [[1]]):
            with pytest.raises(TypeError):
                rows[invalid]
        seen = [n for batch in DataLoader(rows, batch_size=4, shuffle=True, collate_fn=collated) for n in batch["ints"]]
        assert Counter(map(int, seen)) == dict.fromkeys((1, 2, 3, 4, 5), 3)

    def test_rows_of_a_filter_and_a_window(self, path: Path) -> None:
        rows = tfr.dataset(path, offset=2, limit=3).filter([("ints", ">", 3)]).to_torch_map(missing="mask")
        assert [int(rows[i]["ints"]) for i in range(len(rows))] == [4, 5, 4]
        rows = tfr.dataset(path, offset=2, limit=3).to_torch_map(missing="mask")
        assert [int(rows[i]["ints"]) for i in range(len(rows))] == [3, 4, 5]

    def test_a_missing_value_is_named_by_its_record(self, path: Path) -> None:
        rows = tfr.dataset(path).select(["int"]).to_torch_map()
        with pytest.raises(tfr.errors.DecodeError) as caught:
            rows.__getitems__([5, 6])
        assert str(caught.value.path).endswith("b.tfrecord")
        assert caught.value.record == 1

    def test_files_whose_rows_have_no_number(self, path: Path, tmp_path: Path) -> None:
        tfr.write_tfrecord({"x": [1]}, tmp_path / "x.tfrecord.gz")
        with pytest.raises(ValueError, match="is compressed"):
            tfr.dataset(tmp_path / "x.tfrecord.gz").to_torch_map()
        with pytest.raises(ValueError, match="rows that are left out"):
            tfr.dataset(path, on_error="skip").to_torch_map()


def collated(rows: list[dict[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns; masks stay tensors."""
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    return {
        name: torch.stack(values) if isinstance(values[0], torch.Tensor) and name.endswith("/mask") else values
        for name, values in columns.items()
    }


@pytest.fixture
def numbers(tmp_path: Path) -> tfr.Dataset:
    """61 rows in five files."""
    for file, rows in enumerate([range(20), range(20, 21), range(21, 40), range(40, 40), range(40, 61)]):
        written(tmp_path / f"{file}.tfrecord", [example(x=int64s(n)) for n in rows])
    return tfr.dataset(tmp_path, schema={"x": "int64"})


def seen(stream: Any, workers: int, **options: Any) -> list[int]:
    context = {"multiprocessing_context": "fork"} if workers else {}
    loader = DataLoader(stream, batch_size=None, num_workers=workers, **context, **options)
    return [n for batch in loader for n in batch["x"].tolist()]


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
    readers = ranks * max(workers, 1)
    size = -(-len(expected) // readers) if uneven == "pad" else len(expected) // readers
    assert {len(part) for part in parts} == {size * max(workers, 1)}
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
    """Ranks that one process starts have the same epochs, though it has made the stream."""
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
    """Epochs follow each other where the loader has one seed in each, also if one ends before all its workers begin."""
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
    """Each iteration of a loader has one epoch, the next one, whichever worker is the first to note it."""
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


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [None, 4])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("uneven", ["keep", "pad"])
def test_the_length_is_the_number_of_batches(
    numbers: tfr.Dataset, tmp_path: Path, workers: int, batch_size: int | None, drop_last: bool, uneven: str
) -> None:
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    context = {"multiprocessing_context": "fork"} if workers else {}
    options: dict[str, Any] = {"batch_size": batch_size, "drop_last": drop_last, "uneven": uneven}
    for rank in range(2):
        stream = numbers.to_torch(rank=(rank, 2), workers=workers, **options)
        loader = DataLoader(stream, batch_size=None, num_workers=workers, **context)
        assert len(loader) == len(list(loader))


def test_a_length_that_is_unknown(numbers: tfr.Dataset, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="no manifest and no index states"):
        len(numbers.to_torch(batch_size=4, workers=0))
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    assert len(numbers.to_torch()) == 61
    assert numbers.to_torch(batch_size=4)
    with pytest.raises(TypeError, match="pass workers="):
        len(numbers.to_torch(batch_size=4))
    with pytest.raises(ValueError, match=r"workers=2, but the DataLoader has num_workers=0"):
        iter(numbers.to_torch(batch_size=4, workers=2))


def test_workers_that_are_spawned(numbers: tfr.Dataset) -> None:
    stream = numbers.to_torch(batch_size=5, shuffle_buffer=20, seed=1, uneven="pad")
    spawned = {"multiprocessing_context": "spawn", "persistent_workers": True}
    loader = DataLoader(stream, batch_size=None, num_workers=2, **spawned)
    epochs = [[n for batch in loader for n in batch["x"].tolist()] for _ in range(2)]
    assert set(epochs[0]) == set(epochs[1]) == set(range(61))
    assert epochs[0] != epochs[1]
    stream.set_epoch(0)
    assert [n for batch in loader for n in batch["x"].tolist()] == epochs[0]


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


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "uint16", "uint64", "float16", "float64", "complex64"])
def test_dtypes_of_tensors(tmp_path: Path, dtype: str) -> None:
    values = np.arange(12).reshape(3, 2, 2).astype(dtype)
    tfr.write_tfrecord({"x": values}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert batch["x"].numpy().dtype == values.dtype
    assert (batch["x"].numpy() == values).all()
    assert (tfr.dataset(tmp_path / "a.tfrecord").to_torch_map()[1]["x"].numpy() == values[1]).all()


@pytest.mark.parametrize("collate", [None, dict, lambda batch: batch], ids=["torch's", "other", "none"])
def test_a_batch_of_a_worker_is_that_of_this_process(tmp_path: Path, collate: Any) -> None:
    lists = [[1], [], [2, 3]]
    structs = [{"a": [1.5], "b": 2}, {"a": [], "b": 1}, {"a": [2.5], "b": 0}]
    of_struct = pa.struct({"a": pa.list_(pa.float32()), "b": pa.int64()})
    days = pa.array([0, 1, 2], pa.date32())
    table = {"name": ["x", None, "z"], "list": lists, "day": days, "struct": pa.array(structs, of_struct)}
    tfr.write_tfrecord(pa.table(table), tmp_path / "x.tfrecord")
    arrays = {
        "b": np.array([True, False, True]),
        "a": np.arange(6, dtype=np.int16).reshape(3, 2),
        "none": np.zeros((3, 0), np.float32),
        "c": np.array([1 + 2j, 3, 4], np.complex64),
    }
    tfr.write_tfrecord(arrays, tmp_path / "y.tfrecord")
    for file in ("x", "y"):
        stream = tfr.dataset(tmp_path / f"{file}.tfrecord").to_torch(batch_size=2)
        expected = list(DataLoader(stream, batch_size=None))
        loader = DataLoader(stream, batch_size=None, num_workers=1, multiprocessing_context="fork", collate_fn=collate)
        for batch, other in zip(loader, expected, strict=True):
            assert type(batch) is dict
            assert list(batch) == list(other)
            for name, value in other.items():
                assert type(batch[name]) is type(value)
                assert plain(batch[name]) == plain(value)
                assert getattr(batch[name], "dtype", None) == getattr(value, "dtype", None)


def test_bfloat16(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    tfr.write_tfrecord({"x": np.array([[1.5, 2], [3, -1]], ml_dtypes.bfloat16)}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert batch["x"].dtype == torch.bfloat16
    assert batch["x"].tolist() == [[1.5, 2], [3, -1]]


def test_tensors_of_bfloat16_are_written(tmp_path: Path) -> None:
    pytest.importorskip("ml_dtypes")
    x = torch.tensor([[1.5, 2], [3, -1]], dtype=torch.bfloat16)
    tfr.write_tfrecord({"x": x, "row": x.T[1]}, tmp_path / "a.tfrecord")
    (batch,) = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=3)
    assert torch.equal(batch["x"], x)
    assert torch.equal(batch["row"], x.T[1])
    with pytest.raises(tfr.errors.EncodeError, match=r"\[v\.float\(\)\.numpy\(\) for v in values\]"):
        tfr.write_tfrecord({"x": list(x)}, tmp_path / "b.tfrecord")


@pytest.mark.parametrize("dtype", ["float32", "bool", "datetime64[us]", "complex128"])
def test_tensors_share_memory_with_arrays(dtype: str) -> None:
    from tfrecord_io.adapters.torch_batches import tensor_of

    array = np.zeros((3, 2), dtype)
    assert tensor_of(array).data_ptr() == array.ctypes.data
    array.flags.writeable = False
    assert tensor_of(array).data_ptr() != array.ctypes.data


def test_lists_of_each_form(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2], [], [3]], "y": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]}, tmp_path / "a.tfrecord")
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = dataset.to_torch(batch_size=3)
    assert [cell.tolist() for cell in batch["x"]] == [[1, 2], [], [3]]
    assert batch["y"].shape == (3, 2)
    (batch,) = dataset.to_torch(batch_size=3, ragged="pad", pad_value=-1)
    assert batch["x"].tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert batch["x/length"].tolist() == [2, 0, 1]
    (batch,) = dataset.to_torch(batch_size=3, ragged="offsets")
    assert [part.tolist() for part in batch["x"]] == [[1, 2, 3], [0, 2, 2, 3]]
    rows = list(dataset.to_torch(ragged="offsets"))
    assert [row["x"].tolist() for row in rows] == [[1, 2], [], [3]]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{"bucket_by": "x", "bucket_sizes": [2, 6]}, {"pack": {"x": 6}}])
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


def test_static_shapes(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1, 2, 3], [4], [5, 6]]}, tmp_path / "a.tfrecord")
    opened = tfr.dataset(tmp_path / "a.tfrecord")
    options: dict[str, Any] = {"pad_to": 4, "max_length": {"x": (2, "left")}, "pad_value": -1}
    expected = [[2, 3, -1, -1], [4, -1, -1, -1], [5, 6, -1, -1]]
    assert [row["x"].tolist() for row in opened.to_torch_map(**options)[:]] == expected
    assert [row["x"].tolist() for row in opened.to_torch(**options)] == expected
    assert next(iter(DataLoader(opened.to_torch_map(**options), batch_size=3)))["x"].tolist() == expected
    assert [row["x"].tolist() for row in opened.to_torch(pack={"x": 4})] == [[1, 2, 3, 4], [5, 6, 0, 0]]
    with pytest.raises(ValueError, match="a length of its own"):
        opened.to_torch_map(pad_to=(8, "multiple"))
    with pytest.raises(ValueError, match="pass batch_size="):
        opened.to_torch(bucket_by="x", bucket_sizes=[4])


def plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else [*map(plain, value)] if isinstance(value, list) else value


@pytest.mark.parametrize("workers", [0, 2])
def test_rows_by_number_as_one_batch(tmp_path: Path, workers: int) -> None:
    columns = {
        "n": range(20),
        "x": np.arange(60, dtype=np.float32).reshape(20, 3),
        "t": [[1] * (n % 3) for n in range(20)],
    }
    schema = {"n": "int32", "x": tfr.tensor("float32", (3,)), "t": tfr.list_("int64"), "s": "string"}
    tfr.write_tfrecord({**columns, "s": ["a", "b"] * 10}, tmp_path / "a.tfrecord", schema=schema)
    data = tfr.dataset(tmp_path / "a.tfrecord")
    rows = data.to_torch_map()
    context = {"num_workers": workers, **({"multiprocessing_context": "spawn"} if workers else {})}
    batches = list(DataLoader(rows, batch_size=8, collate_fn=rows.collate_fn, **context))
    for got, expected in zip(batches, data.to_torch(batch_size=8), strict=True):
        assert got.keys() == expected.keys()
        for name, value in expected.items():
            assert plain(got[name]) == plain(value)
            assert getattr(got[name], "dtype", None) == getattr(value, "dtype", None)
    for numbers in ([5, 3, 3], [-1], np.arange(20)[::-1], torch.tensor([4, 2]), []):
        arrays = rows.arrays(numbers)
        at = np.asarray(numbers, np.int64)
        assert arrays["n"].dtype == np.int32
        assert arrays["n"].tolist() == np.arange(20)[at].tolist()
        assert arrays["x"].tolist() == columns["x"][at].tolist()
        assert plain(data.to_grain().arrays(numbers)["x"]) == plain(arrays["x"])
    subset = torch.utils.data.Subset(rows, [7, 5, 1])
    (batch,) = DataLoader(subset, batch_size=3, collate_fn=rows.collate_fn)
    assert batch["n"].tolist() == [7, 5, 1]
    with pytest.raises(TypeError, match="it takes the rows that a DataLoader gets of to_torch_map by one call"):
        rows.collate_fn([rows[1]])
    with pytest.raises(IndexError, match="row 20 is out of range"):
        rows.arrays([20])
    with pytest.raises(TypeError, match="expected numbers of rows, got list of float64"):
        rows.arrays([1.5])
    with pytest.raises(TypeError, match="the items are batches: take them by number"):
        data.select(["t"]).to_torch_map(batch_size=2, pack={"t": 4}).arrays([0])


@pytest.mark.parametrize("missing", ["error", "mask"])
def test_a_row_by_its_number_is_that_of_several(tmp_path: Path, missing: Any) -> None:
    """In values and in dtypes, whichever way it is made."""
    columns: dict[str, Any] = {
        "i": np.arange(6, dtype=np.int16),
        "f": np.arange(6, dtype=np.float32),
        "b": np.arange(6) % 2 == 0,
        "m": np.arange(6).astype("M8[s]"),
        "x": np.arange(6 * 4, dtype=np.uint8).reshape(6, 2, 2),
        "one": np.arange(6 * 3, dtype=np.float32).reshape(6, 3),
        "l": [[n] * (n + 1) for n in range(6)],
        "s": ["a", None] * 3,
        "y": [b"a", b""] * 3,
    }
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord")
    for names in (["i", "f", "b", "x", "one", "l", "y"], [*columns]):
        rows = tfr.dataset(tmp_path / "a.tfrecord").select(names).to_torch_map(missing=missing)
        for number, expected in enumerate(rows[:]):
            row = rows[number]
            assert list(row) == list(expected)
            for name, value in expected.items():
                assert type(row[name]) is type(value)
                assert plain(row[name]) == plain(value)
                if isinstance(value, torch.Tensor):
                    assert (row[name].dtype, row[name].shape) == (value.dtype, value.shape)


def test_a_name_of_a_mask_that_is_taken(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "x/mask": [3, 4]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="x/mask"):
        next(iter(tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=2, missing="mask")))


def test_an_error_in_a_worker_keeps_its_text(numbers: tfr.Dataset, tmp_path: Path) -> None:
    content = bytearray((tmp_path / "2.tfrecord").read_bytes())
    content[-6] ^= 1
    (tmp_path / "2.tfrecord").write_bytes(content)
    with pytest.raises(
        tfr.errors.CorruptRecordError,
        match=r"in DataLoader worker process \d: .*2\.tfrecord: .*record 18 at byte \d+: payload CRC mismatch",
    ):
        seen(numbers.to_torch(batch_size=4), 2)


def test_invalid_keywords(numbers: tfr.Dataset) -> None:
    with pytest.raises(TypeError, match=r"to_torch\(\) got an unexpected keyword argument 'shuffle': .*shuffle_buffer"):
        numbers.to_torch(shuffle=100)
    with pytest.raises(ValueError, match="expected an index from 0 to 1"):
        numbers.to_torch(rank=(2, 2))
    with pytest.raises(ValueError, match="needs the same seed="):
        numbers.to_torch(rank=(0, 2), uneven="drop", shuffle_buffer=5)


def test_ranks_share_a_mixture_by_one_seed(numbers: tfr.Dataset) -> None:
    mixture = tfr.mix([numbers, numbers.limit(5)], stop="all")
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        mixture.to_torch(rank=(0, 2), shuffle_buffer=5)
    mixture = tfr.mix([numbers, numbers], stop="all")  # of five files, enough for two ranks, not for eight workers
    stream = mixture.to_torch(batch_size=4, rank=(0, 2), shuffle_buffer=5)
    assert seen(stream, 0)
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        seen(stream, 4)
    assert seen(mixture.to_torch(batch_size=4, rank=(0, 2), shuffle_buffer=5, seed=0), 4)
    assert set(seen(mixture.to_torch(batch_size=4, shuffle_buffer=5), 6)) == set(range(61))


def test_the_rank_is_that_of_torch_distributed(numbers: tfr.Dataset, tmp_path: Path) -> None:
    stream = numbers.to_torch()
    assert stream.place().rank == (0, 1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/../store", rank=0, world_size=1)
    try:
        assert stream.place().rank == numbers.to_torch().place().rank == (0, 1)
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize("workers", [0, 2])
def test_ranks_of_a_launcher_do_not_all_read_everything(
    numbers: tfr.Dataset, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    """torchrun sets WORLD_SIZE; without `init_process_group` each process would train on the same rows."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match=r"WORLD_SIZE=2, but torch\.distributed is not initialized.*rank=\(i, 2\)"):
        seen(numbers.to_torch(batch_size=4), workers)
    assert sorted(seen(numbers.to_torch(batch_size=4, rank=(0, 1)), workers)) == list(range(61))


@pytest.mark.parametrize("workers", [0, 2])
def test_images(tmp_path: Path, workers: int) -> None:
    schema, expected = written_pictures(tmp_path / "a.tfrecord")
    data = tfr.dataset(tmp_path / "a.tfrecord", schema=schema)
    rows = list(DataLoader(data.to_torch(missing="mask"), batch_size=None, num_workers=workers))
    assert_pictures(rows, expected)
    assert not any(bool(row["image/mask"]) for row in rows)
    assert_pictures(list(DataLoader(data.to_torch_map(), batch_size=None, num_workers=workers)), expected)


@pytest.fixture
def second_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is rank 1 of two."""
    for name, value in {"is_initialized": True, "get_rank": 1, "get_world_size": 2}.items():
        monkeypatch.setattr(torch.distributed, name, lambda value=value: value)


@pytest.mark.usefixtures("second_of_two")
def test_a_rank_has_its_part_and_what_accelerate_deals_out_is_all(numbers: tfr.Dataset, tmp_path: Path) -> None:
    write_indexes(sorted(tmp_path.glob("*.tfrecord")))
    shards = pytest.importorskip("accelerate.data_loader")
    stream = numbers.to_torch(shuffle_buffer=9, seed=1, workers=0)
    assert len(stream) == len(list(stream)) < 61
    shard = shards.IterableDatasetShard(stream, batch_size=1, num_processes=1, process_index=0)
    assert len(shard) == 61
    assert sorted(int(row["x"]) for row in shard) == list(range(61))
    with pytest.raises(ValueError, match=r"rank=\(0, 2\): IterableDatasetShard of accelerate splits the batches"):
        list(shards.IterableDatasetShard(numbers.to_torch(rank=(0, 2)), num_processes=2))
    with pytest.raises(ValueError, match="needs the same seed= in all ranks"):
        list(shards.IterableDatasetShard(numbers.to_torch(shuffle_buffer=9), num_processes=2))


@pytest.mark.usefixtures("second_of_two")
@pytest.mark.parametrize("workers", [0, 2])
def test_accelerate_cannot_deal_out_batches_to_ranks_that_each_read_all(numbers: tfr.Dataset, workers: int) -> None:
    """It would fail where it multiplies the batch size of the loader, which is None."""
    accelerate = pytest.importorskip("accelerate.data_loader")
    stream = numbers.to_torch(batch_size=4, workers=workers)
    loader = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers)
    prepared = accelerate.prepare_data_loader(
        loader, num_processes=2, process_index=1, dispatch_batches=False, put_on_device=False
    )
    with pytest.raises(ValueError, match=r"dispatch_batches is off.* omit batch_size= in to_torch"):
        iter(prepared).__next__()
    with pytest.raises(ValueError, match="dispatch_batches is off"):
        len(prepared.dataset)


@pytest.mark.usefixtures("second_of_two")
def test_ranks_that_are_found_need_one_seed(numbers: tfr.Dataset) -> None:
    stream = numbers.to_torch(batch_size=4, uneven="drop", shuffle_buffer=5)
    with pytest.raises(ValueError, match="needs the same seed="):
        iter(stream)
    with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed="):
        iter(tfr.mix([numbers, numbers.limit(5)], stop="all").to_torch(shuffle_buffer=5))


@pytest.mark.parametrize("workers", [0, 2])
def test_forked_workers_read_a_bucket(request: pytest.FixtureRequest, workers: int) -> None:
    pytest.importorskip("moto")
    bucket = request.getfixturevalue("s3")
    tfr.write_tfrecord({"x": list(range(50))}, bucket.url("d@3"), storage_options=bucket.storage_options)
    dataset = tfr.dataset(bucket.url("d@3"), storage_options=bucket.storage_options)
    stream = dataset.to_torch(batch_size=4, shuffle_buffer=9, seed=0, uneven="pad", workers=workers)
    assert set(seen(stream, workers)) == set(range(50))


@pytest.fixture
def forgotten_state() -> Iterator[None]:
    """A Trainer makes a state of accelerate, which says of processes that are forked later that each is the first."""
    state = pytest.importorskip("accelerate.state")
    yield
    state.AcceleratorState._reset_state(reset_partial_state=True)
    state.GradientState._reset_state()


@pytest.mark.usefixtures("forgotten_state")
@pytest.mark.parametrize("stopped", [4, 13, 22])
def test_a_trainer_of_packed_batches_resumes_at_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stopped: int
) -> None:
    """By the classes of the how-to; an epoch has 10 batches."""
    transformers = pytest.importorskip("transformers")
    page = (Path(__file__).parents[2] / "docs" / "howto" / "distributed.md").read_text("utf-8")
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
