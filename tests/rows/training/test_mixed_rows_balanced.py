"""Balanced mixtures: classes are drawn evenly, in a sequence of a seed, exactly resumed, shared by workers."""

from __future__ import annotations

import itertools
import pickle
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import example, flip, int64s, written
from rounds import rounds
from training_batches import Rows, is_an_epoch, is_continued, rows_of

COUNTS = {"cat": 60, "dog": 25, "emu": 5}
LABELS = np.random.default_rng(0).permutation(np.repeat(list(COUNTS), list(COUNTS.values())))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`a`: 90 animals in three files; `b`: 20 dogs and foxes in one, with a column index."""
    folder = tmp_path_factory.mktemp("balanced")
    tfr.write_tfrecord(pa.table({"n": range(90), "label": LABELS}), folder / "a@3", write_index=True)
    tfr.write_tfrecord({"n": np.arange(20), "label": ["dog", "fox"] * 10}, folder / "b.tfrecord")
    tfr.build_index(folder / "b.tfrecord", columns=["label"])
    return folder


def balanced(folder: Path, *names: str, **keywords: Any) -> tfr.typing.MixedDataset:
    datasets = [tfr.dataset(folder / name) for name in names or ["a@3", "b.tfrecord"]]
    return tfr.mix(datasets, **{"balance": "label", "source_column": "source", **keywords})


def expected(mixture: tfr.typing.MixedDataset) -> Rows:
    """Compute the rows of an unshuffled epoch, one by one, as the documentation says."""
    classes = mixture.classes
    assert classes is not None
    own = [
        [(int(part), int(n)) for n in np.split(classes.rows, classes.bounds[1:-1])[i]]
        for i, part in enumerate(classes.parts)
    ]
    choices, taken, rows = mixture.choices(), Counter[int](), Rows()
    for group in itertools.chain.from_iterable(choices.blocks()):
        if mixture.stop == "first" and taken[group] == len(own[group]):
            return rows
        rows.append(own[group][taken[group] % len(own[group])])
        taken[group] += 1
        if mixture.stop == "all" and all(taken[i] >= len(each) for i, each in enumerate(own)):
            return rows
    raise AssertionError


@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("names", [("a@3",), ("b.tfrecord",), ("a@3", "b.tfrecord")])
def test_an_epoch_is_what_the_choices_say(folder: Path, stop: str, names: tuple[str, ...]) -> None:
    mixture = balanced(folder, *names, stop=stop, seed=3)
    rows = expected(mixture)
    labels = {
        (number, n): label
        for number, name in enumerate(names)
        for n, label in enumerate(tfr.read_table(folder / name)["label"].to_pylist())
    }
    assert is_an_epoch(mixture, rows, {*labels})["label"].to_pylist() == [labels[row] for row in rows]


@pytest.mark.parametrize("buffer", [0, 50])
@pytest.mark.parametrize("weights", [None, [3, 1]])
def test_frequencies_are_within_three_standard_deviations(folder: Path, buffer: int, weights: Any) -> None:
    mixture = balanced(folder, weights=weights, stop="never", seed=2)
    batches, count = mixture.iter_arrays(batch_size=1000, shuffle_buffer=buffer, seed=5), 40
    taken = list(itertools.islice(batches, count))
    labels, sources = (np.concatenate([batch[name] for batch in taken]) for name in ("label", "source"))

    def check(part: Any, share: float, of: int) -> None:
        assert abs(np.count_nonzero(part) - share * of) <= 3 * np.sqrt(share * (1 - share) * of)

    for label in ("cat", "dog", "emu", "fox"):
        check(labels == label, 1 / 4, len(labels))
    dogs = sources[labels == "dog"]  # the other classes are of one dataset
    check(dogs == 0, 0.75 if weights else 0.5, len(dogs))


@settings(max_examples=rounds(30))
@given(
    data=st.data(),
    stop=st.sampled_from(["first", "all", "never"]),
    buffer=st.sampled_from([0, 5, 40]),
    batch_size=st.integers(1, 30),
    worker=st.sampled_from([None, (0, 2), (2, 3), (3, 7)]),
    uneven=st.sampled_from(["keep", "pad", "drop"]),
)
def test_a_state_continues_exactly(
    folder: Path, data: st.DataObject, stop: str, buffer: int, batch_size: int, worker: Any, uneven: str
) -> None:
    mixture = balanced(folder, stop=stop, seed=batch_size)
    at = data.draw(st.integers(0, 25))
    is_continued(mixture, at, batch_size=batch_size, shuffle_buffer=buffer, worker=worker, uneven=uneven)


@settings(max_examples=rounds(20))
@given(stop=st.sampled_from(["first", "all"]), workers=st.integers(1, 8), buffer=st.sampled_from([0, 9]))
def test_workers_share_the_rows(folder: Path, stop: str, workers: int, buffer: int) -> None:
    mixture = balanced(folder, stop=stop)
    whole = rows_of(mixture.iter_arrays(batch_size=4, shuffle_buffer=buffer, seed=1))
    for uneven in ("keep", "drop"):
        keywords: dict[str, Any] = {"batch_size": 4, "shuffle_buffer": buffer, "seed": 1, "uneven": uneven}
        parts = [rows_of(mixture.iter_arrays(worker=(i, workers), **keywords)) for i in range(workers)]
        together, missing = Counter(row for part in parts for row in part), len(whole) % workers
        assert together <= Counter(whole)
        assert together.total() == len(whole) - (missing if uneven == "drop" else 0)
        assert len({len(part) for part in parts}) == 1 or uneven == "keep"


def test_each_epoch_and_each_pass_has_an_order_of_its_own(folder: Path) -> None:
    mixture = balanced(folder, "a@3", seed=1)
    batches = mixture.iter_arrays(batch_size=mixture.count_rows(), shuffle_buffer=5, epochs=3)
    epochs = [frozenset(batch["n"].tolist()) for batch in batches]
    assert len(set(epochs)) == 3  # other cats in each
    workers = [mixture.iter_arrays(batch_size=100, shuffle_buffer=5, worker=(i, 2)) for i in range(2)]  # without a seed
    assert {n for batches in workers for batch in batches for n in batch["n"].tolist()} == epochs[0]
    endless = balanced(folder, "a@3", stop="never").iter_arrays(batch_size=600, shuffle_buffer=1, seed=1)
    batch = next(endless)
    emus = batch["n"][batch["label"] == "emu"][:150].reshape(-1, 5)
    assert (np.sort(emus, axis=1) == np.sort(emus[0])).all()
    assert len({tuple(each) for each in emus.tolist()}) > 10


def test_rows_are_those_that_the_datasets_have(folder: Path) -> None:
    data = tfr.dataset(folder / "a@3", offset=10).filter([("n", ">=", 20)]).limit(40)
    numbers = set(data.to_table()["n"].to_pylist())
    mixture = tfr.mix(data, balance="label", stop="all")
    assert set(mixture.to_table()["n"].to_pylist()) == numbers
    fewer = mixture.filter([("label", "!=", "emu")]).select(["n"])
    assert fewer.columns == ["n"]
    batches = fewer.iter_arrays(batch_size=100, shuffle_buffer=10, seed=0)
    others = [n for n in range(20, 90) if LABELS[n] != "emu"][:40]
    assert {n for batch in batches for n in batch["n"].tolist()} == set(others)


@pytest.mark.parametrize("names", [("a@3",), ("b.tfrecord",), ("a@3", "b.tfrecord")])
def test_filters_after_a_selection_without_the_column(folder: Path, names: tuple[str, ...]) -> None:
    mixture = balanced(folder, *names, stop="all", seed=3)
    for filters in ([("n", ">", 3)], [("label", "!=", "dog")]):
        selected, other = mixture.select(["n"]).filter(filters), mixture.filter(filters).select(["n"])
        assert selected.columns == ["n", "source"]
        assert selected.to_table().equals(other.to_table())
        twice = selected.filter([("n", "<", 15)])
        assert twice.to_table().equals(mixture.filter(filters).filter([("n", "<", 15)]).select(["n"]).to_table())
        for options in ({"batch_size": 5}, {"batch_size": 5, "shuffle_buffer": 9, "seed": 1}):
            again = pickle.loads(pickle.dumps(selected))
            assert rows_of(again.iter_arrays(**options)) == rows_of(other.iter_arrays(**options))
        assert int(selected.to_grain()[1]["n"]) == int(other.to_grain()[1]["n"])


def test_classes_may_be_folders(tmp_path: Path) -> None:
    table = pa.table({"n": range(30), "kind": ["x"] * 25 + ["y"] * 5})
    tfr.write_tfrecord(table, tmp_path / "kinds", partition_by=["kind"])
    mixture = tfr.mix(tfr.dataset(tmp_path / "kinds"), balance="kind", stop="all")
    table = mixture.to_table()
    assert set(table["n"].to_pylist()) == set(range(30))
    assert 10 < table["kind"].to_pylist().count("y") < 40


def test_a_row_without_a_class_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "missing.tfrecord", [example(label=int64s(1)), example(), example(label=int64s(2))])
    data = tfr.dataset(path, schema={"label": "int64"})
    with pytest.raises(tfr.errors.DecodeError, match="has no class; leave such rows out: filter") as raised:
        tfr.mix(data, balance="label")
    assert (raised.value.path, raised.value.record) == (str(path), 1)
    assert tfr.mix(data.filter([("label", "!=", None)]), balance="label", stop="all").count_rows() >= 2


def test_what_has_no_classes_is_refused(folder: Path, tmp_path: Path) -> None:
    columns = {"list": [[1, 2], [3]], "score": [0.5, 0.25], "image": np.zeros((2, 3), "float32"), "n": [1, 2]}
    tfr.write_tfrecord(columns, tmp_path / "columns.tfrecord", float64="round")
    data = tfr.dataset(tmp_path / "columns.tfrecord")
    for name in ("list", "score", "image"):
        with pytest.raises(
            tfr.errors.SchemaError, match=f"feature '{name}': classes are integers, bools, text or bytes"
        ):
            tfr.mix(data, balance=name)
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="balance= names a column that does not exist"):
        tfr.mix(data, balance="label")
    with pytest.raises(TypeError, match="balance=3: expected the name of a column"):
        tfr.mix(data, balance=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="balance='n': the datasets have no rows"):
        tfr.mix(data.filter([("n", ">", 5)]), balance="n")
    tfr.write_tfrecord(columns, tmp_path / "columns.tfrecord.gz", float64="round")
    with pytest.raises(ValueError, match="compressed"):
        tfr.mix(tfr.dataset(tmp_path / "columns.tfrecord.gz"), balance="n")
    with pytest.raises(ValueError, match="on_error="):
        tfr.mix(tfr.dataset(tmp_path / "columns.tfrecord", on_error="skip"), balance="n")
    with pytest.raises(TypeError, match="has no end"):
        balanced(folder, stop="never").to_grain()


def test_a_state_of_another_balance_is_refused(folder: Path) -> None:
    state = balanced(folder, "b.tfrecord").iter_arrays(batch_size=4).state()
    for mixture in (balanced(folder, "b.tfrecord", balance="n"), balanced(folder, "b.tfrecord", balance=None)):
        with pytest.raises(ValueError, match="the state was made with mixture="):
            mixture.iter_arrays(batch_size=4, state=state)


@pytest.mark.parametrize("buffer", [0, 8])
def test_an_error_names_the_record_after_the_rows_before_it(tmp_path: Path, buffer: int) -> None:
    rows = [example(n=int64s(n), label=int64s(n % 3 == 0)) for n in range(30)]
    path = written(tmp_path / "damaged.tfrecord", rows)
    schema = {"n": "int64", "label": "int64"}
    mixture = tfr.mix(tfr.dataset(path, schema=schema), balance="label", stop="all")
    whole = [int(n) for batch in mixture.iter_arrays(batch_size=1, shuffle_buffer=buffer, seed=1) for n in batch["n"]]
    flip(path, len(path.read_bytes()) // 30 * 11 + 20)
    batches, got = mixture.iter_arrays(batch_size=1, shuffle_buffer=buffer, seed=1), list[int]()
    with pytest.raises(tfr.errors.CorruptRecordError) as raised:
        got.extend(int(n) for batch in batches for n in batch["n"])
    assert raised.value.path == str(path)
    before = whole[: whole.index(raised.value.record or 0)]
    assert got == before if not buffer else raised.value.record not in got

    missing = written(tmp_path / "missing.tfrecord", [*rows[:9], example(label=int64s(1)), *rows[9:]])
    mixture = tfr.mix(tfr.dataset(missing, schema=schema), balance="label", stop="all")
    for uneven in ("keep", "pad"):
        keywords = {"batch_size": 2, "shuffle_buffer": buffer, "seed": 1, "uneven": uneven}
        workers = itertools.chain(*(mixture.iter_arrays(**keywords, worker=(i, 2)) for i in range(2)))
        with pytest.raises(tfr.errors.DecodeError) as raised_by_row:
            list(workers)
        assert (raised_by_row.value.path, raised_by_row.value.record) == (str(missing), 9)


def test_records_and_bytes_are_counted(folder: Path) -> None:
    batches = balanced(folder, stop="all").iter_arrays(batch_size=10)
    count = sum(len(batch["n"]) for batch in batches)
    assert batches.report.records == count
    assert batches.report.files == 4
    assert batches.report.bytes > 20 * count


def test_rows_of_much_text_are_several_pools(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = balanced(folder, stop="all").to_table()
    monkeypatch.setattr("tfrecord_io.rows.training.mixture._MOST_ORDERED_BYTES", 1)
    assert balanced(folder, stop="all").to_table().equals(whole)
