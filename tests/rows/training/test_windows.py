"""Windows of the steps of episodes: as a stream, as a table, and in training."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import hypothesis
import ml_dtypes
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from limited import set_limits
from records import example, int64s, written
from rounds import rounds
from tfrecord_io.read.scan import Scan
from tfrecord_io.rows.arrays.rows_by_number import ScanLookup
from tfrecord_io.rows.training.batches_by_number import open_by_number
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
        set_limits(patch, batch_rows=most)
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


def test_views_and_run_ends_have_windows() -> None:
    names = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array(["a", "b"]))
    steps = pa.array([[1, 2], [3]], pa.list_view(pa.int64()))
    table = pa.table({"id": names, "text": pa.array(["x", "y"], pa.string_view()), "steps/n": steps})
    assert tfr.windows(table, length=1).read_all().to_pylist() == [
        {"id": "a", "text": "x", "steps/n": [1]},
        {"id": "a", "text": "x", "steps/n": [2]},
        {"id": "b", "text": "y", "steps/n": [3]},
    ]


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


@pytest.mark.parametrize("pad", ["none", "edge"])
@pytest.mark.parametrize("shape", [(0,), (0, 2), (2, 0)])
def test_windows_of_tensors_without_values(tmp_path: Path, shape: tuple[int, ...], pad: Any) -> None:
    tfr.write_tfrecord({"steps/x": np.zeros((2, 3, *shape), "float32"), "id": [1, 2]}, tmp_path / "a.tfrecord")
    windows = tfr.windows(tmp_path / "a.tfrecord", length=2, pad=pad)
    count = 4 if pad == "none" else 6
    assert windows.to_table()["id"].to_pylist() == [1] * (count // 2) + [2] * (count // 2)
    (batch,) = windows.iter_arrays(batch_size=count)
    np.testing.assert_array_equal(batch["steps/x"], np.zeros((count, 2, *shape), "float32"), strict=True)


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
    with pytest.raises(tfr.errors.SchemaError, match=r"no shape in common; declare it, as in schema=\{"):
        tfr.windows(tfr.dataset(tmp_path / "b.tfrecord"))
    with pytest.raises(tfr.errors.SchemaError, match="'steps/x': a column of steps is a list"):
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


@settings(max_examples=rounds(30))
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


@settings(max_examples=rounds(15, 5))
@given(
    counts=st.tuples(*[st.lists(st.integers(0, 6), min_size=1, max_size=4)] * 2),
    workers=st.integers(3, 5),
    seed=st.integers(0, 3),
)
@hypothesis.example(counts=([1, 5], [1, 1, 1, 1]), workers=3, seed=0)
def test_a_worker_without_a_window_has_those_of_the_next_epoch(
    counts: tuple[list[int], ...], workers: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for file, steps in enumerate(counts):
            table = {"steps/n": pa.array([list(range(count)) for count in steps], pa.list_(pa.int64()))}
            tfr.write_tfrecord(table, f"{folder}/{file}.tfrecord")
        windowed = tfr.windows(folder, length=2)
        keywords: dict[str, Any] = {"batch_size": 1, "shuffle_buffer": 1, "seed": seed, "epochs": 6}
        parts = [list(windowed.iter_arrays(worker=(i, workers), **keywords)) for i in range(workers)]
        assert sum(map(len, parts)) == 6 * windowed.count_rows()


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
    with pytest.raises(tfr.errors.DecodeError) as raised:
        list(windowed.iter_arrays(batch_size=1))
    assert (raised.value.path, raised.value.record) == (str(path), 5)
    with pytest.raises(tfr.errors.DecodeError) as raised:
        windowed.to_grain()[7]
    assert (raised.value.path, raised.value.record) == (str(path), 5)
    table = pa.table({"steps/a": [[1], [1, 2]], "steps/b": [[1], [1]]})
    with pytest.raises(tfr.errors.SchemaError, match="row 1 has 1 step in this column, but 2 in 'steps/a'"):
        tfr.windows(table, length=1).read_all()


@pytest.mark.parametrize("options", [{}, {"worker": (2, 3)}, {"shuffle_buffer": 9, "seed": 1}])
def test_lists_of_different_lengths_name_the_record(tmp_path: Path, options: dict[str, Any]) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    for first, path in zip((0, 4), paths, strict=True):
        own = [{"id": n, "steps/a": [n, n], "steps/b": [n] if n in (5, 7) else [n, n]} for n in range(first, first + 4)]
        tfr.write_tfrecord(own, path)
    tfr.build_index(paths, columns=["id"])
    windowed = tfr.windows(tfr.dataset(paths).filter([("id", "in", [1, 3, 7])]), length=2)
    with pytest.raises(
        tfr.errors.SchemaError, match=r"the row has 1 step in this column, but 2 in 'steps/a'"
    ) as raised:
        list(windowed.iter_arrays(batch_size=2, **options))
    assert (raised.value.path, raised.value.record, raised.value.feature) == (str(paths[1]), 3, "steps/b")
    source = windowed.to_grain()
    assert [int(source[n]["id"]) for n in range(2)] == [1, 3]
    with pytest.raises(tfr.errors.SchemaError, match="the row has 1 step") as raised:
        source[2]
    assert (raised.value.path, raised.value.record) == (str(paths[1]), 3)
    for read in (windowed.to_table, tfr.explode(windowed.scan).read_all):
        with pytest.raises(
            tfr.errors.SchemaError, match="row 2 has 1 step in this column"
        ):  # of the rows that are left
            read()


def test_windows_before_a_faulty_episode_are_delivered(tmp_path: Path) -> None:
    table = pa.table({"id": range(8), "steps/a": [[1, 2]] * 8, "steps/b": [[1, 2]] * 6 + [[1]] * 2})
    tfr.write_tfrecord(table.append_column("steps/c", [[[1, 2]] * 3 + [[1]] + [[1, 2]] * 4]), tmp_path / "a.tfrecord")
    batches, got = tfr.windows(tfr.dataset(tmp_path / "a.tfrecord"), length=1).iter_arrays(batch_size=1), list[int]()
    with pytest.raises(tfr.errors.SchemaError) as raised:
        got.extend(int(batch["id"][0]) for batch in batches)
    assert got == [0, 0, 1, 1, 2, 2]
    assert (raised.value.record, raised.value.feature) == (3, "steps/c")


@pytest.mark.parametrize(
    ("keywords", "error", "message"),
    [
        ({"length": 0}, ValueError, "length=0: expected at least 1"),
        ({"stride": 0}, ValueError, "stride=0: expected at least 1"),
        ({"pad": "zero"}, ValueError, "pad='zero': expected one of 'none', 'edge'"),
        (
            {"prefix": "frames"},
            tfr.errors.FeatureNotFoundError,
            "no column has this prefix; the columns are id, steps/n",
        ),
    ],
)
def test_wrong_values_are_refused(dataset: tfr.Dataset, keywords: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        tfr.windows(dataset, **keywords)


def test_what_is_not_known_is_said(dataset: tfr.Dataset) -> None:
    windowed = tfr.windows(dataset, length=2)
    with pytest.raises(TypeError, match="depends on the lengths of all episodes"):
        len(windowed.iter_arrays(batch_size=2))
    assert repr(windowed).startswith("<WindowedDataset of 2 steps, stride=1, pad='none', of ")


def test_a_path_is_a_dataset_of_episodes(tmp_path: Path) -> None:
    tfr.write_tfrecord({"steps/x": [[1, 2, 3]]}, tmp_path / "a.tfrecord")
    windowed = tfr.windows(tmp_path / "a.tfrecord", length=2)
    assert isinstance(windowed, tfr.typing.WindowedDataset)
    assert windowed.to_table()["steps/x"].to_pylist() == [[1, 2], [2, 3]]


def test_lists_of_episodes_in_windows_by_number(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"goal": [[1, 2], [3]], "steps/x": [[1, 2, 3], [4, 5]]}, path)
    windowed = tfr.windows(tfr.dataset(path), length=2)
    arrays = open_by_number(windowed, pad_to={"goal": 3}, pad_value=-1).arrays(np.array([2, 0]))
    assert arrays["goal"].tolist() == [[3, -1, -1], [1, 2, -1]]
    assert arrays["goal/length"].tolist() == [1, 2]
    with pytest.raises(ValueError, match="a row by its number has a length of its own"):
        open_by_number(windowed, pad_to=(3, "multiple"))


@settings(max_examples=rounds(30))
@given(
    form=forms,
    buffer=st.sampled_from([0, 30]),
    workers=st.integers(2, 5),
    uneven=st.sampled_from(["pad", "drop"]),
    least=st.sampled_from([None, 4, 20]),
    limits=st.sampled_from([{}, {"offset": 3, "limit": 17}]),
)
def test_equal_parts_are_runs_of_the_windows(
    dataset: tfr.Dataset, form: dict[str, Any], buffer: int, workers: int, uneven: str, least: int | None, limits: Any
) -> None:
    data = tfr.dataset(dataset.files, **limits)
    data = data if least is None else data.filter([("id", ">", least)])
    windowed = tfr.windows(data, **form)
    keywords: dict[str, Any] = {"shuffle_buffer": buffer, "seed": 3} if buffer else {}
    whole = sorted(rows_of(windowed.iter_arrays(batch_size=9)))
    size = -(-len(whole) // workers) if uneven == "pad" else len(whole) // workers
    assert windowed.count_rows() == len(whole)
    parts = []
    for worker in range(workers):
        batches = windowed.iter_arrays(batch_size=4, worker=(worker, workers), uneven=uneven, **keywords)
        assert len(batches) == -(-size // 4)
        parts.append(rows_of(batches))
    assert {len(part) for part in parts} == {size}
    delivered = sorted(itertools.chain(*parts))
    if uneven == "pad":
        assert set(map(repr, delivered)) == set(map(repr, whole))
    else:
        assert not [row for row in delivered if delivered.count(row) > whole.count(row)]
    if not buffer:
        assert (
            list(itertools.chain(*parts))[: len(whole)] == rows_of(windowed.iter_arrays(batch_size=9))[: len(delivered)]
        )


@settings(max_examples=rounds(30))
@given(
    form=forms,
    buffer=st.sampled_from([0, 30]),
    worker=st.sampled_from([(0, 2), (2, 3), (6, 7)]),
    uneven=st.sampled_from(["pad", "drop"]),
    at=st.integers(0, 12),
)
def test_a_state_of_an_equal_part_continues_exactly(
    dataset: tfr.Dataset, form: dict[str, Any], buffer: int, worker: Any, uneven: str, at: int
) -> None:
    windowed = tfr.windows(dataset, **form)
    keywords: dict[str, Any] = {"batch_size": 5, "worker": worker, "uneven": uneven, "epochs": 2}
    keywords |= {"shuffle_buffer": buffer, "seed": 3}
    whole = windowed.iter_arrays(**keywords)
    for _ in itertools.islice(whole, at):
        pass
    state = json.loads(json.dumps(whole.state()))
    rest = rows_of(going_on(whole))
    assert rows_of(going_on(windowed.iter_arrays(**keywords, state=state))) == rest


def test_faults_in_equal_parts_name_the_episode(tmp_path: Path) -> None:
    rows = [example(**{"id": int64s(i), "steps/n": int64s(*range(i))}) for i in range(9)]
    path = written(tmp_path / "a.tfrecord", [*rows[:5], example(**{"steps/n": int64s(1, 2, 3)}), *rows[5:]])
    windowed = tfr.windows(tfr.dataset(path, schema={"id": "int64", "steps/n": "list<int64>"}), length=2)
    faulty = 0
    for worker, uneven in itertools.product(range(7), ["pad", "drop"]):
        batches, found = (
            windowed.iter_arrays(batch_size=1, worker=(worker, 7), uneven=uneven),
            list[tfr.TFRecordError](),
        )
        try:
            rows_of(batches)
        except tfr.errors.DecodeError as error:
            found.append(error)
        faulty += len(found)
        assert {(error.path, error.record) for error in found} <= {(str(path), 5)}
    assert faulty >= 2


def mixture_of(
    dataset: tfr.Dataset, form: dict[str, Any], **keywords: Any
) -> tuple[tfr.typing.MixedDataset, list[Any]]:
    """A mixture of windows of the first three files and of the last one, and the windows of both."""
    parts = [tfr.windows(tfr.dataset(paths), **form) for paths in (dataset.files[:3], dataset.files[3:])]
    mixed = tfr.mix(parts, [2, 1], source_column="source", seed=form["length"], **keywords)
    return mixed, [rows_of(part.iter_arrays(batch_size=9)) for part in parts]


def drawn_from(batches: Iterable[dict[str, Any]]) -> list[tuple[int, tuple[int, list[int]]]]:
    return [
        (source, row)
        for batch in batches
        for source, row in zip(batch["source"].tolist(), rows_of([batch]), strict=True)
    ]


@settings(max_examples=rounds(30))
@given(form=forms, stop=st.sampled_from(["first", "all"]))
def test_mixtures_draw_the_windows_of_their_parts(dataset: tfr.Dataset, form: dict[str, Any], stop: Any) -> None:
    mixed, parts = mixture_of(dataset, form, stop=stop)
    if not all(parts):
        return
    got = drawn_from(mixed.iter_arrays(batch_size=7))
    for number, part in enumerate(parts):
        own = [row for source, row in got if source == number]
        assert own == list(itertools.islice(itertools.cycle(part), len(own)))
    assert mixed.count_rows() == len(got) == len(mixed.to_table())
    assert drawn_from([open_by_number(mixed).arrays(range(len(got)))]) == got
    source = mixed.to_grain()
    assert [
        (row["source"], (row["id"], row["steps/n"].tolist())) for row in map(source.__getitem__, range(len(source)))
    ] == got
    some = mixed.select(["steps/n"])
    assert [row.tolist() for batch in some.iter_arrays(batch_size=7) for row in batch["steps/n"]] == [
        steps for _, (_, steps) in got
    ]
    with pytest.raises(ValueError, match="windows need a column of steps: select one of steps/n, too"):
        mixed.select(["id"])


@settings(max_examples=rounds(30))
@given(
    form=forms,
    stop=st.sampled_from(["first", "all", "never"]),
    buffer=st.sampled_from([0, 20]),
    worker=st.sampled_from([None, (0, 2), (2, 3), (3, 7)]),
    uneven=st.sampled_from(["keep", "pad", "drop"]),
    at=st.integers(0, 15),
)
def test_states_of_mixtures_of_windows_continue_exactly(
    dataset: tfr.Dataset, form: dict[str, Any], stop: Any, buffer: int, worker: Any, uneven: str, at: int
) -> None:
    mixed, parts = mixture_of(dataset, form, stop=stop)
    if not all(parts):
        return
    keywords: dict[str, Any] = {"batch_size": 6, "shuffle_buffer": buffer, "seed": 3, "epochs": 2}
    keywords |= {"worker": worker, "uneven": uneven}
    whole = mixed.iter_arrays(**keywords)
    for _ in itertools.islice(whole, at):
        pass
    state = json.loads(json.dumps(whole.state()))
    rest = drawn_from(itertools.islice(going_on(whole), 9))
    assert drawn_from(itertools.islice(mixed.iter_arrays(**keywords, state=state), 9)) == rest
    other, _ = mixture_of(dataset, {**form, "stride": form["stride"] + 1}, stop=stop)
    with pytest.raises(ValueError, match="the state was made with mixture="):
        other.iter_arrays(**keywords, state=state)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    """The episodes, with a vector for each step."""
    path = tmp_path_factory.mktemp("vectors") / "episodes@4"
    columns = {"id": range(len(EPISODES)), "steps/n": pa.array(EPISODES, pa.list_(pa.int64()))}
    cells = [[[n, -n] for n in steps] for steps in EPISODES]
    tfr.write_tfrecord(pa.table({**columns, "steps/vector": pa.array(cells, pa.list_(pa.list_(pa.int64(), 2)))}), path)
    return tfr.dataset(path)


@settings(max_examples=rounds(20))
@given(form=forms, buffer=st.sampled_from([0, 20]), worker=st.sampled_from([None, (1, 2), (0, 3)]))
def test_mixtures_have_the_vectors_of_the_steps(
    vectors: tfr.Dataset, form: dict[str, Any], buffer: int, worker: tuple[int, int] | None
) -> None:
    """Arrow takes rows of slices of windows of vectors, fixed-size lists of such lists, from a wrong place."""
    mixed, _ = mixture_of(vectors, form, stop="all")
    for batch in mixed.iter_arrays(batch_size=6, shuffle_buffer=buffer, seed=3, worker=worker):
        assert (batch["steps/vector"] == batch["steps/n"][..., None] * [1, -1]).all()


def test_mixtures_of_windows_share_their_rows_equally(dataset: tfr.Dataset) -> None:
    mixed, _ = mixture_of(dataset, {"length": 3, "stride": 2, "pad": "edge"}, stop="all")
    whole = drawn_from(mixed.iter_arrays(batch_size=9))
    for uneven in ("pad", "drop"):
        parts = [drawn_from(mixed.iter_arrays(batch_size=4, worker=(i, 5), uneven=uneven)) for i in range(5)]
        size = -(-len(whole) // 5) if uneven == "pad" else len(whole) // 5
        assert [len(part) for part in parts] == [size] * 5
        joined = list(itertools.chain(*parts))
        assert joined == (whole + whole)[: 5 * size]


def test_windows_by_number_are_made_in_parts(dataset: tfr.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that offsets reach their values, and those of an episode are repeated in few windows at a time."""
    lookup = Scan.unwrap(tfr.windows(dataset, length=3)).lookup()
    numbers = np.array([5, 0, 3, 3])
    whole = lookup.table(numbers)
    monkeypatch.setattr("tfrecord_io.rows.training.windows._BATCH_BYTES", 1)
    parts = lookup.table(numbers)
    assert parts.equals(whole)
    assert [len(batch) for batch in parts.to_batches()] == [1] * 4


def test_classes_of_windows_may_be_more_text_than_offsets_reach(tmp_path: Path) -> None:
    """The class of an episode is repeated in each of its windows."""
    rows = {"label": ["a" * (32 << 20), "b"], "steps/n": [[*range(80)], [1, 2]]}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord")
    balanced = tfr.mix(tfr.windows(tmp_path / "a.tfrecord", length=1), balance="label", stop="all")
    assert 100 < balanced.count_rows() < 300


def test_windows_are_balanced_by_a_column_of_their_episodes(dataset: tfr.Dataset) -> None:
    kinds = pa.array(["rare" if number % 7 == 3 else "usual" for number in range(len(EPISODES))])
    path = Path(dataset.files[0]).parent / "kinds.tfrecord"
    table = pa.table({"id": range(len(EPISODES)), "kind": kinds, "steps/n": pa.array(EPISODES, pa.list_(pa.int64()))})
    tfr.write_tfrecord(table, path)
    windowed = tfr.windows(tfr.dataset(path), length=3, stride=2)
    mixed = tfr.mix(windowed, balance="kind", stop="all")
    rows = rows_of(mixed.iter_arrays(batch_size=9))
    assert rows == rows_of([open_by_number(mixed).arrays(range(len(rows)))])
    assert set(map(repr, rows)) == set(map(repr, expected(EPISODES, 3, 2, "none")))
    rare = sum(kinds[number].as_py() == "rare" for number, _ in rows)
    assert 0.35 < rare / len(rows) < 0.65
    of_steps = mixed.select(["steps/n"])
    steps = [row.tolist() for batch in of_steps.iter_arrays(batch_size=9) for row in batch["steps/n"]]
    assert steps == [steps for _, steps in rows]
    some = [row[0] for row in rows_of(mixed.filter([("id", "<", 20)]).iter_arrays(batch_size=9))]
    assert set(some) == {number for number, _ in expected(EPISODES[:20], 3, 2, "none")}
    assert of_steps.filter([("kind", "==", "rare")]).count_rows() < len(rows)
    with pytest.raises(tfr.errors.SchemaError, match="classes are integers"):
        tfr.mix(windowed, balance="steps/n")


def write_episodes(path: Path, episodes: Iterable[tuple[int, int]]) -> None:
    """Episodes with these numbers, of so many steps."""
    columns = {"n": [n for n, _ in episodes], "steps/x": [list(range(steps)) for _, steps in episodes]}
    tfr.write_tfrecord(columns, path, schema={"n": "int64", "steps/x": tfr.list_("int64")}, mode="overwrite")


@pytest.mark.parametrize("workers", [2, 3])
@pytest.mark.parametrize("uneven", ["pad", "drop"])
@pytest.mark.parametrize(
    ("file", "episodes", "message"),
    [
        (0, [(n, 3) for n in range(13)], "more records than the 10 that were counted"),
        (0, [(n, 3) for n in range(8)], "fewer records than the 10 that were counted"),
        (0, [(n, 5) for n in range(10)], "the file has 40 windows, but 20 were counted"),
        (0, [(n, 2) for n in range(10)], "the file has 10 windows, but 20 were counted"),
        (1, [*((n, 3) for n in range(10, 19)), (19, 4)], "the file has 21 windows, but 20 were counted"),
        (2, [(20, 1), (21, 2)], "the file has 1 windows, but 0 were counted"),
    ],
)
def test_equal_parts_of_files_that_changed_are_errors(
    tmp_path: Path, workers: int, uneven: str, file: int, episodes: list[tuple[int, int]], message: str
) -> None:
    """Their windows would come twice or never: the files are compared by the workers that read their ends.

    The 40 windows do not divide evenly among 3 workers: with "drop", none delivers the last one.
    """
    files = [[(n, 3) for n in range(10)], [(n, 3) for n in range(10, 20)], [(20, 1), (21, 1)]]
    for number, own in enumerate(files):
        write_episodes(tmp_path / f"{number}.tfrecord", own)
    windowed = tfr.windows(tfr.dataset(tmp_path / "*.tfrecord", threads=1), length=2)
    parts = [windowed.iter_arrays(batch_size=3, worker=(at, workers), uneven=uneven) for at in range(workers)]
    write_episodes(tmp_path / f"{file}.tfrecord", episodes)
    errors = []
    for batches in parts:
        try:
            list(batches)
        except tfr.errors.CorruptRecordError as error:
            errors.append((error.path, str(error)))
    assert any(path == str(tmp_path / f"{file}.tfrecord") and message in text for path, text in errors), errors


def test_windows_of_files_whose_number_of_records_is_stated_wrongly(tmp_path: Path) -> None:
    write_episodes(tmp_path / "d-train.tfrecord-00000-of-00001", [(n, 3) for n in range(13)])
    split = {"name": "train", "shardLengths": ["10"]}
    info = {"name": "d", "version": "1.0.0", "splits": [split], "fileFormat": "tfrecord"}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    windowed = tfr.windows(tfr.dataset(tmp_path / "d-train.tfrecord-*"), length=2)
    message = "more records than the 10 that were counted.*correct the number in their dataset_info.json"
    with pytest.raises(tfr.errors.CorruptRecordError, match=message):
        windowed.iter_arrays(batch_size=3, worker=(0, 2), uneven="drop")
    with pytest.raises(tfr.errors.CorruptRecordError, match=message):
        windowed.count_rows()


def test_windows_by_number_are_of_the_files_whose_steps_were_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [[1, 2, 3, 4], [5]]}, path)

    def replaced_after(scan: Any) -> ScanLookup:
        episodes = ScanLookup(scan)
        tfr.write_tfrecord({"x": [[1], [2, 3, 4, 5]]}, path)
        return episodes

    monkeypatch.setattr("tfrecord_io.rows.training.windows.ScanLookup", replaced_after)
    with pytest.raises(tfr.errors.ReplacedError):
        open_by_number(tfr.windows(path, {"x": range(1)}))
