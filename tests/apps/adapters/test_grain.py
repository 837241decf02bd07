"""Grain reads TFRecord files by number; the tests of its own loaders are run by `make test-adapters`."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from pictures import assert_pictures, written_pictures
from tfrecord_io.testing.adapter_suite import ZONE, AdapterSuite

TYPES = {"time": pa.timestamp("us", ZONE), "day": pa.date32()}


class TestGrain(AdapterSuite):
    def open(self, path: Any, **keywords: Any) -> tfr.Dataset:
        return tfr.dataset(path, **keywords)

    def rows(self, opened: tfr.Dataset, names: list[str] | None = None) -> dict[str, list[Any]]:
        source = (opened if names is None else opened.select(names)).to_grain(missing="mask")
        rows = [source[number] for number in range(len(source))]
        return {name: [self.cell(row, name) for row in rows] for name in names or opened.schema.names}

    def cell(self, row: dict[str, Any], name: str) -> Any:
        if np.any(row.get(f"{name}/mask", False)):
            return None
        value = row[name]
        if name in TYPES:
            return pa.array(np.asarray(value)[None]).cast(TYPES[name])[0].as_py()
        return value.tolist() if isinstance(value, np.ndarray | np.generic) else value

    def above(self, opened: tfr.Dataset, least: int) -> tfr.Dataset:
        return opened.filter([("ints", ">", least)])

    def first(self, opened: tfr.Dataset, n: int) -> tfr.Dataset:
        return opened.limit(n)

    def count(self, opened: tfr.Dataset) -> int:
        return len(opened.to_grain())

    def names(self, opened: tfr.Dataset) -> list[str]:
        return opened.schema.names

    def test_threads_share_a_source(self, path: Path) -> None:
        source = pickle.loads(pickle.dumps(tfr.dataset(path).select(["ints"]).to_grain()))
        assert repr(source) == repr(tfr.dataset(path).select(["ints"]).to_grain())
        with ThreadPoolExecutor(4) as pool:
            got = list(pool.map(lambda number: int(source[number]["ints"]), list(range(15)) * 4))
        assert got == [1, 2, 3, 4, 5] * 12
        with pytest.raises(IndexError):
            source[15]

    def test_mixtures_of_other_weights_are_other_sources(self, path: Path) -> None:
        """Grain compares them by their text."""
        parts = [tfr.dataset(path).select(["ints"])] * 2
        texts = {repr(tfr.mix(parts, weights=weights).to_grain()) for weights in ([1, 1], [1, 1.0001], [1, 1.0002])}
        assert len(texts) == 3

    def test_lists_of_one_length(self, tmp_path: Path) -> None:
        tfr.write_tfrecord({"x": [[1, 2, 3], [4]]}, tmp_path / "a.tfrecord")
        source = tfr.dataset(tmp_path / "a.tfrecord").to_grain(pad_to=4, max_length=(2, "left"), pad_value=-1)
        assert [source[number]["x"].tolist() for number in range(2)] == [[2, 3, -1, -1], [4, -1, -1, -1]]
        assert source[0]["x/length"] == 2
        packed = tfr.dataset(tmp_path / "a.tfrecord").to_grain(batch_size=1, pack={"x": 4})
        assert (len(packed), packed[0]["x"].tolist()) == (1, [[1, 2, 3, 4]])

    def test_a_loader_of_grain(self, path: Path) -> None:
        grain = pytest.importorskip("grain")
        source = tfr.dataset(path).select(["ints", "images"]).to_grain()
        assert isinstance(source, grain.sources.RandomAccessDataSource)
        batches = list(grain.MapDataset.source(source).shuffle(seed=1).batch(5))
        assert [batch["images"].shape for batch in batches] == [(5, 2, 2)] * 3
        assert sorted(n for batch in batches for n in batch["ints"].tolist()) == sorted([1, 2, 3, 4, 5] * 3)
        sampler = grain.samplers.IndexSampler(len(source), num_epochs=1, shuffle=True, seed=3)
        loader = grain.DataLoader(
            data_source=source, sampler=sampler, operations=[grain.transforms.Batch(4)], worker_count=0
        )
        assert sorted(n for batch in loader for n in batch["ints"].tolist()) == sorted([1, 2, 3, 4, 5] * 3)


def test_images(tmp_path: Path) -> None:
    schema, expected = written_pictures(tmp_path / "a.tfrecord")
    source = tfr.dataset(tmp_path / "a.tfrecord", schema=schema).to_grain()
    assert_pictures([source[i] for i in range(len(source))], expected)
