"""Records that a report examines, and its statement about them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.base import ReadOptions
from tfrecord_io.plugins.report.report_sample import Reservoir, SampleLimits, SampleReader, Sampling
from tfrecord_io.read.call_source import CallSource

RECORDS = 20_000


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20,000 records in four files, about 1 MB."""
    folder = tmp_path_factory.mktemp("many")
    tfr.write_tfrecord({"n": np.arange(RECORDS), "text": ["x" * 30] * RECORDS}, folder / "a@4")
    return folder


def sampled(path: Path, limits: SampleLimits, **keywords: object) -> tuple[list[int], Sampling]:
    reader = SampleReader(CallSource(path).dataset(ReadOptions(batch_size=500, **keywords)), limits)
    numbers = [n for batch in reader for n in batch["n"].to_pylist()]
    return numbers, reader.sampling


def test_small_data_is_read_completely(many: Path) -> None:
    numbers, sampling = sampled(many, SampleLimits())
    assert numbers == list(range(RECORDS))
    assert (sampling.complete, sampling.records, sampling.total) == (True, RECORDS, RECORDS)
    assert sampling.text == "All 20,000 records."


def test_a_sample_is_spread_over_the_data(many: Path) -> None:
    numbers, sampling = sampled(many, SampleLimits(records=1000))
    assert len(numbers) == len(set(numbers)) == sampling.records <= 1000 + 32
    assert {n // 5000 for n in numbers} == {0, 1, 2, 3}
    assert not sampling.complete
    assert sampling.total == RECORDS
    assert "of 20,000 records" in sampling.text
    assert "seed 0" in sampling.text


def test_a_seed_gives_the_same_sample(many: Path) -> None:
    limits = SampleLimits(records=RECORDS, bytes=200_000, seed=4)
    first, sampling = sampled(many, limits)
    assert first == sampled(many, limits)[0]
    assert not sampling.complete
    assert 0 < len(first) < RECORDS


@pytest.mark.parametrize("share", [0.1, 0.3, 0.5, 0.9])
@pytest.mark.parametrize("what", ["bytes", "records"])
def test_the_limits_are_used(many: Path, what: str, share: float) -> None:
    size = sum(path.stat().st_size for path in many.glob("a-*"))
    whole = {"bytes": size, "records": RECORDS}
    _, sampling = sampled(many, SampleLimits(**{**whole, what: int(whole[what] * share)}))
    assert sampling.records >= 0.8 * share * RECORDS
    assert what == "bytes" or sampling.records <= share * RECORDS + 32  # of bytes, a batch of each piece is read


def test_compressed_data_is_read_from_its_beginning(tmp_path: Path) -> None:
    tfr.write_tfrecord({"n": np.arange(RECORDS)}, tmp_path / "a.tfrecord.gz")
    numbers, sampling = sampled(tmp_path / "a.tfrecord.gz", SampleLimits(records=700))
    assert numbers == list(range(700))
    assert "from the beginning" in sampling.text
    assert sampling.total == RECORDS


def test_a_limit_is_not_called_all_records(many: Path) -> None:
    numbers, sampling = sampled(many, SampleLimits(), limit=10, offset=5)
    assert numbers == list(range(5, 15))
    assert not sampling.complete
    assert "offset=5 and limit=10" in sampling.text


def test_filters_and_empty_data(many: Path, tmp_path: Path) -> None:
    numbers, sampling = sampled(many, SampleLimits(), filters=[("n", "<", 3)])
    assert numbers == [0, 1, 2]
    assert sampling.complete
    tfr.write_tfrecord(pa.table({"n": pa.array([], pa.int64())}), tmp_path / "empty" / "e@2")
    assert sampled(tmp_path / "empty", SampleLimits())[1].text == "There are no records."


@pytest.mark.parametrize("name", ["records", "bytes"])
def test_limits_are_checked(name: str) -> None:
    with pytest.raises(ValueError, match=f"sample_{name}=0"):
        SampleLimits(**{name: 0})


def test_rows_are_kept_at_random_and_large_ones_are_not() -> None:
    sampler = Reservoir(5, np.random.default_rng(0), max_bytes=1000)
    for i in range(10):
        sampler.add(pa.RecordBatch.from_pydict({"n": list(range(i * 100, i * 100 + 100))}))
    rows = [row["n"][0].as_py() for row in sampler.rows]
    assert len(set(rows)) == 5
    assert rows == sorted(rows)
    assert len({n // 100 for n in rows}) > 2
    large = Reservoir(5, np.random.default_rng(0), max_bytes=1000)
    large.add(pa.RecordBatch.from_pydict({"b": [b"x" * 5000, b"y"]}))
    assert [row["b"][0].as_py() for row in large.rows] == [b"y"]
    assert large.large == 1
