"""Keras trains on batches by number; `make test-adapters` installs it, with PyTorch as its backend."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

TIMES = {"time": pa.timestamp("us", ZONE), "day": pa.date32()}


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Keras with the backend that the environment has."""
    pytest.importorskip("torch")
    monkeypatch.setenv("KERAS_BACKEND", "torch")
    return pytest.importorskip("keras")


class TestKeras(AdapterSuite):
    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        batches = (opened if names is None else opened.select(names)).to_keras(batch_size=4, missing="mask")
        rows: dict[str, list[Any]] = {name: [] for name in names or opened.schema.names}
        for batch in map(batches.__getitem__, range(len(batches))):
            batch = batch if isinstance(batch, dict) else {next(iter(rows)): batch}
            for name, values in rows.items():
                cells = batch[name].tolist()
                missing = batch.get(f"{name}/mask", np.zeros(len(cells), bool)).reshape(len(cells), -1)
                values += [
                    None if gone.any() else self.cell(cell, name) for cell, gone in zip(cells, missing, strict=True)
                ]
        return rows

    def cell(self, value: Any, name: str) -> Any:
        if name in TIMES:
            count = pa.array([value], pa.int64())
            return (count.cast(pa.int32()) if name == "day" else count).cast(TIMES[name])[0].as_py()
        return value.tolist() if isinstance(value, np.ndarray) else value

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        batches = opened.select(["ints"]).to_keras(batch_size=4)
        return sum(len(batches[number]) for number in range(len(batches)))

    def names(self, opened: tfr.Dataset) -> list[str]:
        return opened.schema.names


@pytest.fixture
def data(tmp_path: Path) -> tfr.Dataset:
    """Points of two classes, which a plane divides."""
    points = np.random.default_rng(0).normal(size=(200, 4)).astype("float32")
    labels = (points[:, 0] > 0).astype("int64")
    tfr.write_tfrecord({"x": points, "label": labels}, tmp_path / "a.tfrecord", write_index=True)
    return tfr.dataset(tmp_path / "a.tfrecord")


@pytest.mark.parametrize("queue", [{}, {"workers": 2}, {"workers": 2, "max_queue_size": 1}])
def test_a_model_is_trained(keras: Any, data: tfr.Dataset, queue: dict[str, Any]) -> None:
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.1), loss, metrics=["accuracy"])
    batches = data.to_keras(batch_size=20, targets="label", seed=1, **queue)
    model.fit(batches, epochs=10, verbose=0)
    assert model.evaluate(data.to_keras(batch_size=64, targets="label"), verbose=0)[1] > 0.9
    assert model.predict(data.select(["x"]).to_keras(batch_size=64), verbose=0).shape == (200, 2)


def test_each_epoch_has_each_row_in_another_order(data: tfr.Dataset) -> None:
    batches = pickle.loads(pickle.dumps(data.to_keras(batch_size=30, targets="label", seed=1)))
    epochs = []
    for _ in range(3):
        epochs.append(np.concatenate([batches[number][0][:, 0] for number in range(len(batches))]).tolist())
        batches.on_epoch_end()
    assert len({*map(str, epochs)}) == 3
    assert len({str(sorted(epoch)) for epoch in epochs}) == 1
    ordered = data.to_keras(batch_size=30)
    ordered.on_epoch_end()
    assert ordered[0]["label"].tolist() == next(data.iter_arrays(batch_size=30))["label"].tolist()


def test_packed_batches(tmp_path: Path) -> None:
    tfr.write_tfrecord({"t": [[1, 2, 3], [4], [5, 6]]}, tmp_path / "a.tfrecord", write_index=True)
    batches = tfr.dataset(tmp_path / "a.tfrecord").to_keras(batch_size=1, pack={"t": 4}, cut=True, end_token=9)
    assert [batches[number]["t"].tolist() for number in range(len(batches))] == [
        [[1, 2, 3, 9]],
        [[4, 9, 5, 6]],
        [[9, 0, 0, 0]],
    ]
