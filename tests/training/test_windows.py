"""Windows of the steps of episodes: as a stream, as a table, and in training."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from records import example, int64s, written
from tfrecord_io.arrays.random_rows import random_rows
from training_batches import going_on

RANDOM = np.random.default_rng(3)
EPISODES = [list(range(100 * i, 100 * i + int(RANDOM.integers(0, 20)))) for i in range(30)]
forms = st.fixed_dictionaries(
    {"length": st.integers(1, 8), "stride": st.integers(1, 6), "pad": st.sampled_from(["none", "edge"])}
)


def expected(episodes: Iterable[Any], length: int, stride: int, pad: str) -> list[tuple[int, list[Any]]]:
    """The episode and the steps of each window, one by one."""
    found = []
    for number, steps in enumerate(episodes):
        count = len(steps or [])
        starts = range(0, count, stride) if pad == "edge" else range(0, count - length + 1, stride)
        found += [(number, [steps[min(at + i, count - 1)] for i in range(length)]) for at in starts]
    return found


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    """Four files of episodes."""
    path = tmp_path_factory.mktemp("windows") / "episodes@4"
    steps = pa.array(EPISODES, pa.list_(pa.int64()))
    tfr.write_tfrecord(pa.table({"id": range(len(EPISODES)), "steps/n": steps}), path, write_index=True)
    return tfr.dataset(path)


def rows_of(batches: Iterable[dict[str, Any]]) -> list[tuple[int, list[int]]]:
    return [pair for batch in batches for pair in zip(batch["id"].tolist(), batch["steps/n"].tolist(), strict=True)]


@given(
    episodes=st.lists(st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=12), max_size=9),
    type_=st.sampled_from([pa.list_(pa.int64()), pa.large_list(pa.int16())]),
    form=forms,
    batch_rows=st.integers(1, 9),
    most=st.integers(1, 9),
    skipped=st.integers(0, 3),
)
def test_windows_are_those_of_the_lists(
    episodes: list[Any], type_: Any, form: dict[str, Any], batch_rows: int, most: int, skipped: int
) -> None:
    texts = [None if steps is None else [str(step) for step in steps] for steps in episodes]
    columns = {"id": pa.array(range(len(episodes)), pa.int64()), "steps/n": pa.array(episodes, type_)}
    table = pa.table(columns | {"steps/text": pa.array(texts, pa.list_(pa.string()))}).slice(skipped)
    with pytest.MonkeyPatch.context() as patch:
        set_limits(patch, input_rows=most)
        reader = tfr.windows(table.to_batches(max_chunksize=batch_rows) or table, **form)
        batches = list(reader)
    assert all(len(batch) <= most for batch in batches)
    read = pa.Table.from_batches(batches, reader.schema)
    rows = expected(episodes[skipped:], **form)
    assert list(zip(read["id"].to_pylist(), read["steps/n"].to_pylist(), strict=True)) == [
        (number + skipped, steps) for number, steps in rows
    ]
    assert read["steps/text"].to_pylist() == [[str(step) for step in steps] for _, steps in rows]
    assert reader.schema.field("steps/n").type == pa.list_(type_.value_type, form["length"])
    read.validate(full=True)


def test_tensors_get_an_axis(tmp_path: Path) -> None:
    images = np.arange(2 * 5 * 2 * 3, dtype="uint8").reshape(2, 5, 2, 3)
    halves = images.astype(ml_dtypes.bfloat16)
    tfr.write_tfrecord({"steps/image": images, "steps/half": halves, "id": [7, 8]}, tmp_path / "a.tfrecord")
    windowed = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord"), length=3, stride=2)
    (batch,) = windowed.iter_arrays(batch_size=4)
    parts = np.stack([images[0, :3], images[0, 2:], images[1, :3], images[1, 2:]])
    assert batch["steps/image"].dtype == np.uint8
    assert (batch["steps/image"] == parts).all()
    assert batch["steps/half"].dtype == ml_dtypes.bfloat16
    assert (batch["steps/half"] == parts.astype(ml_dtypes.bfloat16)).all()
    assert batch["id"].tolist() == [7, 7, 8, 8]
    tfr.write_tfrecord(windowed, tmp_path / "b.tfrecord")
    assert (tfr.read_arrays(tmp_path / "b.tfrecord")["steps/image"] == parts).all()


def test_tensors_may_have_as_many_steps_as_their_episode(tmp_path: Path) -> None:
    states = [np.arange(3 * n, dtype="float32").reshape(n, 3) + 100 * n for n in (5, 0, 9)]
    numbers = [state[:, 0].astype("int64") for state in states]
    schema = {"steps/state": tfr.tensor("float32", (None, 3)), "steps/n": tfr.tensor("int64", (None,))}
    tfr.write_tfrecord({"steps/state": states, "steps/n": numbers}, tmp_path / "a.tfrecord", schema=schema)
    dataset = tfr.dataset(tmp_path / "a.tfrecord")
    (batch,) = tfr.windows(dataset, length=4, stride=2).iter_arrays(batch_size=9)
    parts = [states[0][:4], states[2][:4], states[2][2:6], states[2][4:8]]
    np.testing.assert_array_equal(batch["steps/state"], np.stack(parts), strict=True)
    np.testing.assert_array_equal(batch["steps/n"], np.stack(parts)[:, :, 0].astype("int64"), strict=True)
    steps = tfr.explode(dataset.to_table()[1:].to_batches(max_chunksize=2)).read_all()
    assert steps.schema.field("steps/state").type == pa.fixed_shape_tensor(pa.float32(), [3])
    assert (np.stack(steps["steps/state"].combine_chunks().to_numpy_ndarray()) == states[2]).all()
    assert steps["steps/n"].to_pylist() == numbers[2].tolist()

    tfr.write_tfrecord({"steps/state": states}, tmp_path / "b.tfrecord")  # nothing says that the last axis is always 3
    with pytest.raises(tfr.SchemaError, match=r"no shape in common; declare it, as in schema=\{"):
        tfr.windows(tfr.dataset(tmp_path / "b.tfrecord"))
    with pytest.raises(tfr.SchemaError, match="'steps/x': a column of steps is a list"):
        tfr.windows(pa.table({"steps/x": [1, 2]}))


def test_they_are_pickled_with_tensors_of_any_shape(tmp_path: Path) -> None:
    maps = [np.full((n, 2), n, "float32") for n in (2, 3)]
    schema = {"map": tfr.tensor("float32", (None, 2)), "steps/a": tfr.list_("int64")}
    tfr.write_tfrecord({"map": maps, "steps/a": [[1, 2, 3], [4, 5]]}, tmp_path / "a.tfrecord", schema=schema)
    windowed = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord"), length=2)
    assert windowed.columns == ["map", "steps/a"]
    for again in (pickle.loads(pickle.dumps(windowed)), copy.deepcopy(windowed)):
        assert again.to_table().equals(windowed.to_table())
    row = pickle.loads(pickle.dumps(windowed.to_grain()))[2]
    assert row["steps/a"].tolist() == [4, 5]
    assert (row["map"] == maps[1]).all()
    batches = pickle.loads(pickle.dumps(windowed.iter_arrays(batch_size=2, ragged="object")))
    assert [batch["steps/a"].tolist() for batch in batches] == [[[1, 2], [2, 3]], [[4, 5]]]


@pytest.mark.parametrize(
    ("length", "stride", "pad"), [(16, 1, "none"), (5, 3, "edge"), (1, 1, "none"), (7, 10, "none")]
)
def test_a_dataset_has_them_in_every_form(dataset: tfr.Dataset, length: int, stride: int, pad: Any) -> None:
    windowed = tfr.windows(dataset, length=length, stride=stride, pad=pad)
    rows = expected(EPISODES, length, stride, pad)
    table = windowed.to_table()
    assert list(zip(table["id"].to_pylist(), table["steps/n"].to_pylist(), strict=True)) == rows
    assert tfr.windows(dataset.to_table(), length=length, stride=stride, pad=pad).read_all().equals(table)
    assert windowed.to_batches().read_all().equals(table)
    assert windowed.head(3).equals(table[:3])
    assert pickle.loads(pickle.dumps(windowed)).to_table().equals(table)
    assert rows_of(windowed.iter_arrays(batch_size=8)) == rows
    source = windowed.to_grain()
    assert [(row["id"], row["steps/n"].tolist()) for row in map(source.__getitem__, range(len(source)))] == rows
    with pytest.raises(IndexError):
        source[len(source)]


@settings(max_examples=30)
@given(
    form=forms,
    buffer=st.sampled_from([0, 5, 40]),
    batch_size=st.integers(1, 30),
    worker=st.sampled_from([None, (0, 2), (2, 3), (3, 7)]),
    at=st.integers(0, 20),
)
def test_a_state_continues_exactly(
    dataset: tfr.Dataset, form: dict[str, Any], buffer: int, batch_size: int, worker: Any, at: int
) -> None:
    windowed = tfr.windows(dataset, **form)
    keywords: dict[str, Any] = {"batch_size": batch_size, "shuffle_buffer": buffer, "seed": 3, "epochs": 2}
    whole = windowed.iter_arrays(**keywords, worker=worker)
    for _ in itertools.islice(whole, at):
        pass
    state = json.loads(json.dumps(whole.state()))
    rest = rows_of(itertools.islice(going_on(whole), 9))
    assert rows_of(itertools.islice(windowed.iter_arrays(**keywords, worker=worker, state=state), 9)) == rest
    other = tfr.windows(dataset, **{**form, "length": form["length"] + 1})
    with pytest.raises(ValueError, match="the state was made with windows="):
        other.iter_arrays(**keywords, worker=worker, state=state)


@pytest.mark.parametrize("workers", [2, 3, 6])
@pytest.mark.parametrize("buffer", [0, 20])
def test_workers_share_the_episodes(dataset: tfr.Dataset, workers: int, buffer: int) -> None:
    windowed = tfr.windows(dataset, length=3, stride=2)
    parts = [
        rows_of(windowed.iter_arrays(batch_size=8, worker=(i, workers), shuffle_buffer=buffer, seed=1))
        for i in range(workers)
    ]
    assert sorted(itertools.chain(*parts)) == sorted(expected(EPISODES, 3, 2, "none"))
    episodes = [{number for number, _ in part} for part in parts]
    assert sum(map(len, episodes)) == len(set().union(*episodes))


def test_filters_are_about_episodes(dataset: tfr.Dataset) -> None:
    windowed = tfr.windows(dataset.filter([("id", ">", 20)]), length=2)
    rows = [row for row in expected(EPISODES, 2, 1, "none") if row[0] > 20]
    assert rows_of(windowed.iter_arrays(batch_size=5)) == rows
    assert len(windowed.to_grain()) == len(rows)


def test_faults_name_the_episode(tmp_path: Path) -> None:
    rows = [example(**{"id": int64s(i), "steps/n": int64s(*range(i))}) for i in range(9)]
    schema = {"id": "int64", "steps/n": "list<int64>"}
    path = written(tmp_path / "a.tfrecord", [*rows[:5], example(**{"steps/n": int64s(1, 2, 3)}), *rows[5:]])
    windowed = tfr.windows(tfr.dataset(path, schema=schema), length=2)
    with pytest.raises(tfr.DecodeError) as raised:
        list(windowed.iter_arrays(batch_size=1))
    assert (raised.value.path, raised.value.record) == (str(path), 5)
    with pytest.raises(tfr.DecodeError) as raised:
        windowed.to_grain()[7]
    assert (raised.value.path, raised.value.record) == (str(path), 5)
    table = pa.table({"steps/a": [[1], [1, 2]], "steps/b": [[1], [1]]})
    with pytest.raises(tfr.SchemaError, match="row 1 has 1 steps in this column, but 2 in 'steps/a'"):
        tfr.windows(table, length=1).read_all()


@pytest.mark.parametrize("options", [{}, {"worker": (2, 3)}, {"shuffle_buffer": 9, "seed": 1}])
def test_lists_of_different_lengths_name_the_record(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    for first, path in zip((0, 4), paths, strict=True):
        own = [{"id": n, "steps/a": [n, n], "steps/b": [n] if n in (5, 7) else [n, n]} for n in range(first, first + 4)]
        tfr.write_tfrecord(own, path)
    tfr.build_index(paths, columns=["id"])
    windowed = tfr.windows(tfr.dataset(paths).filter([("id", "in", [1, 3, 7])]), length=2)
    with pytest.raises(tfr.SchemaError, match=r"the row has 1 steps in this column, but 2 in 'steps/a'") as raised:
        list(windowed.iter_arrays(batch_size=2, **options))
    assert (raised.value.path, raised.value.record, raised.value.feature) == (str(paths[1]), 3, "steps/b")
    source = windowed.to_grain()
    assert [int(source[n]["id"]) for n in range(2)] == [1, 3]
    with pytest.raises(tfr.SchemaError, match="the row has 1 steps") as raised:
        source[2]
    assert (raised.value.path, raised.value.record) == (str(paths[1]), 3)
    for read in (windowed.to_table, tfr.explode(windowed.scan).read_all):
        with pytest.raises(tfr.SchemaError, match="row 2 has 1 steps in this column"):  # of the rows that are left
            read()


def test_windows_before_a_faulty_episode_are_delivered(tmp_path: Path) -> None:
    table = pa.table({"id": range(8), "steps/a": [[1, 2]] * 8, "steps/b": [[1, 2]] * 6 + [[1]] * 2})
    tfr.write_tfrecord(table.append_column("steps/c", [[[1, 2]] * 3 + [[1]] + [[1, 2]] * 4]), tmp_path / "a.tfrecord")
    batches, got = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord"), length=1).iter_arrays(batch_size=1), list[int]()
    with pytest.raises(tfr.SchemaError) as raised:
        got.extend(int(batch["id"][0]) for batch in batches)
    assert got == [0, 0, 1, 1, 2, 2]
    assert (raised.value.record, raised.value.feature) == (3, "steps/c")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"length": 0}, ValueError, "length=0: expected at least 1"),
        ({"stride": 0}, ValueError, "stride=0: expected at least 1"),
        ({"pad": "zero"}, ValueError, "pad='zero': expected one of 'none', 'edge'"),
        ({"prefix": "frames"}, tfr.FeatureNotFoundError, "no column has this prefix; the columns are id, steps/n"),
    ],
)
def test_wrong_values_are_refused(dataset: tfr.Dataset, keywords: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tfr.windows(dataset, **keywords)


def test_what_is_not_known_is_said(dataset: tfr.Dataset) -> None:
    windowed = tfr.windows(dataset, length=2)
    with pytest.raises(TypeError, match="depends on the lengths of all episodes"):
        len(windowed.iter_arrays(batch_size=2))
    with pytest.raises(ValueError, match="uneven= is not possible with windows"):
        windowed.iter_arrays(batch_size=2, worker=(0, 2), uneven="pad")
    assert repr(windowed).startswith("<WindowedDataset of 2 steps, stride=1, pad='none', of ")


def test_a_path_is_no_table_of_episodes() -> None:
    with pytest.raises(TypeError, match=r"got str: tfr\.dataset\(path\) opens files as one"):
        tfr.windows("a.tfrecord")


def test_lists_of_episodes_in_windows_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"goal": [[1, 2], [3]], "steps/x": [[1, 2, 3], [4, 5]]}, path)
    windowed = tfr.windows(tfr.dataset(path), length=2)
    arrays = random_rows(windowed, pad_to={"goal": 3}, pad_value=-1).arrays(np.array([2, 0]))
    assert arrays["goal"].tolist() == [[3, -1, -1], [1, 2, -1]]
    assert arrays["goal/length"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="a row by its number has a length of its own"):
        random_rows(windowed, pad_to=(3, "multiple"))
