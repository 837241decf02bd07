"""Batches between the processes of a DataLoader: `make test-adapters ONLY=torch` runs these tests."""

from __future__ import annotations

import gc
import multiprocessing
import os
import resource
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr

torch = pytest.importorskip("torch")

from torch.utils.data import DataLoader  # noqa: E402

from tfrecord_io.apps.adapters.torch_batches import WorkerBatch, tensor_of, tensors_of  # noqa: E402
from tfrecord_io.bytes.format.dtypes import Dtype  # noqa: E402


@pytest.mark.parametrize("row", [row for row in Dtype.TABLE.values() if row.torch], ids=lambda row: row.name)
def test_each_dtype_is_one_of_torch_or_names_the_version_without_it(row: Dtype, monkeypatch: Any) -> None:
    values = np.arange(6).astype(row.dtype)
    tensor = tensor_of(values)
    assert tensor.dtype is getattr(torch, row.torch)
    assert tensor.to(torch.complex128).tolist() == values.astype(np.complex128).tolist()
    if row.is_extension and row.torch == row.name:
        monkeypatch.delattr(torch, row.torch)
        with pytest.raises(tfr.errors.MissingDependencyError, match=rf"{row.name}.*torch \S+ has no {row.torch}"):
            tensor_of(values)


ONE_WORKER: dict[str, Any] = {"num_workers": 1, "multiprocessing_context": "fork", "timeout": 60}


@given(steps=st.lists(st.tuples(st.sampled_from([0, 1, 9, 300, 200_000]), st.integers(0, 12)), max_size=40))
def test_memory_is_used_again_only_after_its_tensors_are_dropped(steps: list[tuple[int, int]]) -> None:
    held: list[tuple[int, Any]] = []
    for number, (size, kept) in enumerate(steps):
        arrays = {"n": np.full(size, number), "x": np.array([number, number], np.uint8), "none": np.zeros((2, 0))}
        batch = WorkerBatch.from_arrays(arrays) if number % 2 else WorkerBatch.from_tensors(tensors_of(arrays))
        sent = ForkingPickler.dumps(batch)
        batch = ForkingPickler.loads(sent)
        assert [tensor.shape for tensor in batch.values()] == [(size,), (2,), (2, 0)]
        held = [*held[-kept:], (number, batch[["n", "x"][number % 2]][:2])] if kept else []
        del batch
        for of, tensor in held:
            assert (tensor == of).all()


def received(array: Any) -> Any:
    return ForkingPickler.loads(ForkingPickler.dumps(WorkerBatch.from_arrays({"x": array})))


def test_a_process_that_is_forked_does_not_end_the_use_of_memory() -> None:
    batch = received(np.arange(5))

    def drop() -> None:
        batch.clear()
        gc.collect()

    process = multiprocessing.get_context("fork").Process(target=drop)
    process.start()
    process.join(60)
    assert process.exitcode == 0
    others = [received(np.zeros(5)) for _ in range(9)]
    assert batch["x"].tolist() == [0, 1, 2, 3, 4]
    assert all(not other["x"].any() for other in others)


def test_a_process_that_is_forked_keeps_its_batches() -> None:
    context = multiprocessing.get_context("fork")
    batches, dropped, values = [received(np.arange(5))], context.Event(), context.SimpleQueue()

    def look() -> None:
        dropped.wait(60)
        values.put(batches[0]["x"].tolist())

    process = context.Process(target=look)
    process.start()
    batches.clear()
    for _ in range(20):
        assert not received(np.zeros(5))["x"].any()
    dropped.set()
    assert values.get() == [0, 1, 2, 3, 4]
    process.join(60)


VALUES: dict[str, Callable[[Any], Any]] = {
    "float8": lambda x: x.to(torch.float8_e5m2),
    "bfloat16": lambda x: x.to(torch.bfloat16),
    "conjugate": lambda x: torch.complex(x, x).conj(),
    "sparse": lambda x: x.to_sparse(),
    "of another class": torch.nn.Parameter,
}


def of_kind(kind: str, batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "made": VALUES[kind](batch["x"])}


@pytest.mark.parametrize("kind", VALUES)
def test_tensors_that_numpy_does_not_have(kind: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(4, dtype=np.float32)}, tmp_path / "x.tfrecord")
    stream, collate = tfr.dataset(tmp_path / "x.tfrecord").to_torch(batch_size=4), partial(of_kind, kind)
    (expected,) = DataLoader(stream, batch_size=None, collate_fn=collate)
    (batch,) = DataLoader(stream, batch_size=None, collate_fn=collate, **ONE_WORKER)
    assert type(batch["made"]) is type(expected["made"])
    assert (batch["made"].dtype, batch["made"].layout) == (expected["made"].dtype, expected["made"].layout)
    assert batch["made"].to_dense().tolist() == expected["made"].to_dense().tolist()


def few_files(worker: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


@pytest.mark.parametrize("held", [1, 9])
def test_a_batch_of_many_lists_needs_few_files(held: int, tmp_path: Path) -> None:
    lists = [None if n % 7 == 0 else list(range(n % 300)) for n in range(4000)]
    tfr.write_tfrecord({"t": lists}, tmp_path / "t.tfrecord", schema={"t": tfr.list_("int64")})
    stream = tfr.dataset(tmp_path / "t.tfrecord").to_torch(batch_size=400)
    rows, batches = list[Any](), list[Any]()
    for batch in DataLoader(stream, batch_size=None, worker_init_fn=few_files, **ONE_WORKER):
        batches = [*batches, batch][-held:]
        rows += [row if row is None else row.tolist() for row in batch["t"]]
    assert rows == lists


def test_a_process_of_another_user_has_the_number_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(process: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    first = received(np.arange(9))
    monkeypatch.setattr(os, "kill", kill)
    assert received(np.arange(1 << 20))["x"][-1] == (1 << 20) - 1  # in a new memory
    assert first["x"].tolist() == list(range(9))


def with_classes(batch: dict[str, Any]) -> dict[str, Any]:
    return {**batch, "class": type(batch).__name__}


class OfLoader(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """Batches of a DataLoader within a worker."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[Any]:
        yield from map(with_classes, DataLoader(self.stream, batch_size=None))


class Around(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """A dataset around a stream."""

    collate_fn = with_classes  # not what a worker calls

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __iter__(self) -> Iterator[Any]:
        for batch in self.stream:
            yield with_classes(batch)


@pytest.mark.parametrize("form", ["collate_fn", "collate_fn of rows", "loader in a loader", "around"])
def test_code_in_a_worker_gets_dicts(form: str, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(12)}, tmp_path / "x.tfrecord")
    data = tfr.dataset(tmp_path / "x.tfrecord")
    if form == "collate_fn of rows":
        rows = data.to_torch_map()
        loader = DataLoader(rows, 4, collate_fn=lambda some: with_classes(rows.collate_fn(some)), **ONE_WORKER)
    elif form == "collate_fn":
        loader = DataLoader(data.to_torch(batch_size=4), batch_size=None, collate_fn=with_classes, **ONE_WORKER)
    else:
        made = Around if form == "around" else OfLoader
        loader = DataLoader(made(data.to_torch(batch_size=4)), batch_size=None, **ONE_WORKER)
    batches = list(loader)
    assert [(type(batch), batch["class"]) for batch in batches] == [(dict, "dict")] * 3
    assert [batch["x"].tolist() for batch in batches] == np.arange(12).reshape(3, 4).tolist()


def test_a_name_of_a_mask_that_is_taken(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2], "x/mask": [3, 4]}, tmp_path / "a.tfrecord")
    stream = tfr.dataset(tmp_path / "a.tfrecord").to_torch(batch_size=2, missing="mask")
    with pytest.raises(tfr.errors.SchemaError, match="x/mask"):
        next(iter(DataLoader(stream, batch_size=None, **ONE_WORKER)))


@pytest.mark.parametrize("rows", ["stream", "numbers"])
def test_images_of_a_worker_lie_in_memory_as_those_of_this_process(rows: str, tmp_path: Path) -> None:
    pixels = np.arange(4 * 6 * 5 * 3, dtype="uint8").reshape(4, 6, 5, 3)
    tfr.write_tfrecord({"image": pixels, "x": pixels[:, 0]}, tmp_path / "a.tfrecord", write_index=True)
    data = tfr.dataset(
        tmp_path / "a.tfrecord",
        schema={"image": tfr.image(tfr.tensor("uint8", (6, 5, 3)), resize=(6, 5)), "x": tfr.tensor("uint8", (5, 3))},
    )
    if rows == "stream":
        made = data.to_torch(batch_size=2, channels_first=True)
    else:
        made = data.to_torch_map(batch_size=2, channels_first=True)
    expected, found = (list(DataLoader(made, batch_size=None, **options)) for options in ({}, ONE_WORKER))
    for before, after in zip(expected, found, strict=True):
        assert after["image"].is_contiguous(memory_format=torch.channels_last)
        assert [after[name].stride() for name in after] == [before[name].stride() for name in before]
        assert all(torch.equal(after[name], before[name]) for name in before)
