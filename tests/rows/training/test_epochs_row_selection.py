"""Batches of the rows that fulfil a filter: shared by workers, shuffled, and resumed."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import example, int64s, written
from training_batches import chunks_of, joined, numbered

sizes = st.lists(st.integers(0, 23), min_size=1, max_size=6)
kept = st.sets(st.integers(0, 70))
WINDOWS: list[dict[str, int]] = [{}, {}, {"offset": 3}, {"limit": 7}, {"offset": 5, "limit": 9}]


def filtered(paths: list[Path], keep: set[int], window: dict[str, int]) -> tfr.Dataset:
    dataset = tfr.dataset(paths, schema={"x": "int64", "y": "int64"}, **window)
    return dataset.filter(pc.field("x").isin(sorted(keep) or [-1])).select(["x"])


def numbers(batches: tfr.typing.ArrayIterator) -> list[list[int]]:
    assert batches.schema.names == ["x"]
    return [batch["x"].tolist() for batch in batches]


@given(
    counts=sizes,
    keep=kept,
    workers=st.integers(1, 5),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 3, 10, 50]),
    window=st.sampled_from(WINDOWS),
    uneven=st.sampled_from(["keep", "pad", "drop"]),
    threads=st.sampled_from([1, 2]),
)
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
def test_workers_share_the_rows(
    counts: list[int],
    keep: set[int],
    workers: int,
    batch_size: int,
    buffer: int,
    window: dict[str, int],
    uneven: str,
    threads: int,
) -> None:
    read = list(range(sum(counts)))[window.get("offset", 0) :]
    chosen = [n for n in read if n in keep][: window.get("limit")]
    with numbered(counts) as paths, chunks_of(5):
        dataset = filtered(paths, keep, window)
        got = [
            numbers(
                dataset.iter_arrays(
                    batch_size=batch_size, worker=(i, workers), uneven=uneven, seed=1, shuffle_buffer=buffer
                )
            )
            for i in range(workers)
        ]
        assert dataset.count_rows() == len(chosen)
    parts = [joined(batches) for batches in got]
    assert all(len(batch) == batch_size for batches in got for batch in batches[:-1])
    if uneven == "keep":
        assert sorted(joined(parts)) == chosen
        return
    size = -(-len(chosen) // workers) if uneven == "pad" else len(chosen) // workers
    assert {len(part) for part in parts} == {size}
    times = Counter(joined(parts))
    assert set(times) == set(chosen) if uneven == "pad" else set(times) <= set(chosen)
    assert uneven == "pad" or set(times.values()) <= {1}


@given(
    counts=sizes,
    keep=kept,
    worker=st.sampled_from([(0, 1), (0, 2), (1, 2), (4, 5)]),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 3, 10, 50]),
    window=st.sampled_from(WINDOWS),
    uneven=st.sampled_from(["keep", "pad", "drop"]),
    taken=st.integers(0, 9),
)
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
def test_batches_are_resumed(
    counts: list[int],
    keep: set[int],
    worker: tuple[int, int],
    batch_size: int,
    buffer: int,
    window: dict[str, int],
    uneven: str,
    taken: int,
) -> None:
    options: dict[str, Any] = {"worker": worker, "uneven": uneven, "batch_size": batch_size, "shuffle_buffer": buffer}
    options |= {"seed": 3, "epochs": 3}
    with numbered(counts) as paths, chunks_of(5):
        dataset = filtered(paths, keep, window)
        expected = numbers(dataset.iter_arrays(**options))
        with dataset.iter_arrays(**options) as batches:
            assert [batch["x"].tolist() for batch in islice(batches, taken)] == expected[:taken]
            state = json.loads(json.dumps(batches.state()))
        again = pickle.loads(pickle.dumps(dataset.iter_arrays(**options, state=state)))
        assert numbers(again) == expected[taken:]


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    return tfr.dataset(written(tmp_path / "a.tfrecord", [example(x=int64s(n), y=int64s(-n)) for n in range(10)]))


def test_columns_come_in_the_selected_order(dataset: tfr.Dataset) -> None:
    (batch,) = dataset.select(["y", "x"]).iter_arrays(batch_size=20)
    assert {name: array.tolist() for name, array in batch.items()} == {
        "y": [-n for n in range(10)],
        "x": list(range(10)),
    }
    (batch,) = dataset.filter([("x", ">", 7)]).select(["y"]).iter_arrays(batch_size=20)
    assert {name: array.tolist() for name, array in batch.items()} == {"y": [-8, -9]}


def test_a_state_is_that_of_one_filter(dataset: tfr.Dataset) -> None:
    state = dataset.filter([("x", ">", 2)]).iter_arrays(batch_size=2).state()
    for other in (dataset, dataset.filter([("x", ">", 3)])):
        with pytest.raises(ValueError, match=r"the state was made with filter='\(x > 2\)'"):
            other.iter_arrays(batch_size=2, state=state)
    with pytest.raises(ValueError, match=r"and this is filter='\(x > 2\)'"):
        dataset.filter([("x", ">", 2)]).iter_arrays(batch_size=2, state=dataset.iter_arrays(batch_size=2).state())


def test_the_number_of_batches_depends_on_the_filter(dataset: tfr.Dataset) -> None:
    batches = dataset.filter([("x", ">", 2)]).iter_arrays(batch_size=2)
    with pytest.raises(TypeError, match="it depends on the filter"):
        len(batches)
    parts = [dataset.filter([("x", ">", 2)]).iter_arrays(batch_size=2, worker=(i, 2), uneven="drop") for i in (0, 1)]
    assert [len(part) for part in parts] == [len(list(part)) for part in parts] == [2, 2]


def test_a_row_that_is_no_array_is_named_by_its_record(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.tfrecord",
        [example(x=int64s(n)) if n == 7 else example(x=int64s(n), y=int64s(n)) for n in range(10)],
    )
    batches = tfr.dataset(path).filter([("x", ">", 4)]).iter_arrays(batch_size=2)
    with pytest.raises(tfr.errors.DecodeError) as caught:
        list(batches)
    assert (caught.value.path, caught.value.record) == (str(path), 7)


@pytest.mark.parametrize("uneven", ["pad", "drop"])
@pytest.mark.parametrize("rows", [range(-3, 6), range(12), range(8)])
def test_files_that_changed_are_reported(tmp_path: Path, uneven: str, rows: range) -> None:
    """Fewer rows fulfil the filter, or more, of which the last ones would not be read."""
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    data = tfr.dataset(path).filter([("x", ">", 3)])
    parts = [data.iter_arrays(batch_size=2, worker=(worker, 2), uneven=uneven) for worker in range(2)]
    written(path, [example(x=int64s(n)) for n in rows])
    count = sum(n > 3 for n in rows)
    for batches in parts:
        with pytest.raises(tfr.errors.CorruptRecordError, match=f"{count} records fulfil the filter, but 5 were"):
            list(batches)


@pytest.mark.parametrize("batch_size", [1, 4, 10])
def test_padding_of_limited_rows_is_from_their_start(tmp_path: Path, batch_size: int) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(40)])
    data = tfr.dataset(path, limit=17).filter([("x", ">", 3)])
    options: dict[str, Any] = {"batch_size": batch_size, "worker": (2, 3), "uneven": "pad"}
    with chunks_of(5):
        whole = data.iter_arrays(**options)
        assert joined(numbers(data.iter_arrays(**options))) == [6, 9, 12, 15, 18, 4]
        for expected in [[6, 9, 12, 15, 18, 4][at:] for at in range(0, 6, batch_size)]:
            again = data.iter_arrays(**options, state=json.loads(json.dumps(whole.state())))
            assert joined(numbers(again)) == expected
            next(whole)


def test_keywords_of_files_belong_to_the_dataset(dataset: tfr.Dataset) -> None:
    for name in ("columns", "threads"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            dataset.iter_arrays(batch_size=2, **{name: 1})
