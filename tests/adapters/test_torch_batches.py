"""Batches between the processes of a DataLoader: `make test-adapter-torch` runs these tests."""

from __future__ import annotations

import gc
import multiprocessing
import os
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.adapters.torch_batches import FinishedBatch, WorkerBatch, tensors_of

pytest.importorskip("torch")


@given(steps=st.lists(st.tuples(st.sampled_from([0, 1, 9, 300, 200_000]), st.integers(0, 12)), max_size=40))
def test_memory_is_used_again_only_after_its_tensors_are_dropped(steps: list[tuple[int, int]]) -> None:
    held: list[tuple[int, Any]] = []
    for number, (size, kept) in enumerate(steps):
        arrays = {"n": np.full(size, number), "x": np.array([number, number], np.uint8), "none": np.zeros((2, 0))}
        batch = FinishedBatch(arrays) if number % 2 else WorkerBatch(tensors_of(arrays))
        sent = ForkingPickler.dumps(batch)
        batch = ForkingPickler.loads(sent)
        assert [tensor.shape for tensor in batch.values()] == [(size,), (2,), (2, 0)]
        held = [*held[-kept:], (number, batch[["n", "x"][number % 2]][:2])] if kept else []
        del batch
        for of, tensor in held:
            assert (tensor == of).all()


def received(array: Any) -> Any:
    return ForkingPickler.loads(ForkingPickler.dumps(FinishedBatch({"x": array})))


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


def test_a_process_of_another_user_has_the_number_of_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(process: int, signal: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    first = received(np.arange(9))
    monkeypatch.setattr(os, "kill", kill)
    assert received(np.arange(1 << 20))["x"][-1] == (1 << 20) - 1  # in a new memory
    assert first["x"].tolist() == list(range(9))
