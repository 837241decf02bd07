"""Mixtures and windows in PyTorch, TensorFlow, Grain and Hugging Face datasets: the rows that `iter_arrays` gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr


@pytest.fixture(scope="module", params=[None, "class"])
def mixture(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> tfr.typing.MixedDataset:
    folder = tmp_path_factory.mktemp("mixture")
    datasets = []
    for name, size in {"a": 40, "b": 12}.items():
        numbers = np.arange(size) + 100 * len(datasets)
        columns = {"n": numbers, "x": numbers / np.float32(2), "class": numbers % 7 == 0}
        tfr.write_tfrecord(columns, folder / f"{name}@3", write_index=True)
        datasets.append(tfr.dataset(folder / f"{name}@3"))
    return tfr.mix(datasets, [3, 1], balance=request.param, stop="all", source_column="source")


@pytest.fixture(scope="module")
def numbers(mixture: tfr.typing.MixedDataset) -> list[int]:
    return mixture.to_table()["n"].to_pylist()


def test_torch(mixture: tfr.typing.MixedDataset, numbers: list[int]) -> None:
    torch = pytest.importorskip("torch")
    stream = mixture.to_torch(batch_size=5)
    assert torch.cat([batch["n"] for batch in stream]).tolist() == numbers
    for workers in (1, 2, 4):
        loader = torch.utils.data.DataLoader(mixture.to_torch(batch_size=5), batch_size=None, num_workers=workers)
        got = torch.cat([batch["n"] for batch in loader]).tolist()
        assert set(got) == set(numbers)
        if workers != 2 or mixture.classes is not None:  # each of two mixes files of its own
            assert sorted(got) == sorted(numbers)
    iterator = iter(mixture.to_torch(batch_size=5, shuffle_buffer=20, seed=1))
    next(iterator)
    state, rest = iterator.state_dict(), [batch["n"].tolist() for batch in iterator]
    again = iter(mixture.to_torch(batch_size=5, shuffle_buffer=20, seed=1))
    again.load_state_dict(state)
    assert [batch["n"].tolist() for batch in again] == rest


def test_torch_by_number(mixture: tfr.typing.MixedDataset, numbers: list[int]) -> None:
    torch = pytest.importorskip("torch")
    rows = mixture.to_torch_map()
    assert len(rows) == len(numbers)
    assert [int(rows[i]["n"]) for i in range(len(rows))] == numbers
    loader = torch.utils.data.DataLoader(rows, batch_size=8, num_workers=2)
    batches = list(loader)
    assert torch.cat([batch["n"] for batch in batches]).tolist() == numbers
    assert torch.cat([batch["source"] for batch in batches]).tolist() == [n // 100 for n in numbers]


def test_tf(mixture: tfr.typing.MixedDataset, numbers: list[int]) -> None:
    pytest.importorskip("tensorflow")
    dataset = mixture.to_tf(batch_size=5)
    assert set(dataset.element_spec) == {"n", "x", "class", "source"}
    batches = list(dataset.as_numpy_iterator())
    assert np.concatenate([batch["n"] for batch in batches]).tolist() == numbers
    assert int(dataset.cardinality()) == len(batches)


def test_grain(mixture: tfr.typing.MixedDataset, numbers: list[int]) -> None:
    grain = pytest.importorskip("grain")
    dataset = grain.MapDataset.source(mixture.to_grain()).shuffle(seed=1).to_iter_dataset()
    assert sorted(int(row["n"]) for row in dataset) == sorted(numbers)


def test_hf(mixture: tfr.typing.MixedDataset, numbers: list[int]) -> None:
    pytest.importorskip("datasets")
    whole = mixture.to_hf(streaming=False)
    assert whole["n"][:] == numbers
    assert [row["n"] for row in mixture.to_hf(shards=1)] == numbers
    stream = mixture.to_hf()
    assert stream.n_shards == 3
    assert {row["n"] for row in stream} == set(numbers)


@pytest.fixture(scope="module", params=["windows", "mixture of windows"])
def windowed(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Any:
    folder, parts = tmp_path_factory.mktemp("windows"), []
    for name in ("a@3", "b"):
        episodes = pa.array([list(range(10 * i, 10 * i + i)) for i in range(9)], pa.list_(pa.int64()))
        tfr.write_tfrecord(pa.table({"id": range(9), "steps/n": episodes}), folder / name, write_index=True)
        parts.append(tfr.windows(tfr.dataset(folder / name), length=3))
    return parts[0] if request.param == "windows" else tfr.mix(parts, [2, 1], stop="all")


def test_torch_windows(windowed: Any) -> None:
    torch = pytest.importorskip("torch")
    steps = windowed.to_table()["steps/n"].to_pylist()
    assert torch.cat([batch["steps/n"] for batch in windowed.to_torch(batch_size=4)]).tolist() == steps
    loader = torch.utils.data.DataLoader(windowed.to_torch(batch_size=4), batch_size=None, num_workers=2)
    assert sorted(torch.cat([batch["steps/n"] for batch in loader]).tolist()) == sorted(steps)
    rows = windowed.to_torch_map()
    assert [rows[i]["steps/n"].tolist() for i in range(len(rows))] == steps


def test_tf_windows(windowed: Any) -> None:
    pytest.importorskip("tensorflow")
    dataset = windowed.to_tf(batch_size=4)
    assert dataset.element_spec["steps/n"].shape.as_list() == [None, 3]
    got = np.concatenate([batch["steps/n"] for batch in dataset.as_numpy_iterator()]).tolist()
    assert got == windowed.to_table()["steps/n"].to_pylist()


def test_hf_windows(windowed: Any) -> None:
    pytest.importorskip("datasets")
    steps = windowed.to_table()["steps/n"].to_pylist()
    assert [row["steps/n"] for row in windowed.to_hf()] == steps
    assert windowed.to_hf(streaming=False)["steps/n"][:] == steps


def test_grain_windows(windowed: Any) -> None:
    grain = pytest.importorskip("grain")
    dataset = grain.MapDataset.source(windowed.to_grain())
    assert [row["steps/n"].tolist() for row in dataset] == windowed.to_table()["steps/n"].to_pylist()
