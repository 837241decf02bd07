"""Mixtures: a row of one dataset or another, by weights; the same sequence for every reader, exactly resumed."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from records import example, flip, int64s, written
from rounds import rounds
from tfrecord_io.base import MIB
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.read.scan import Scan
from training_batches import Rows, going_on, is_an_epoch, is_continued, rows_of

SIZES = {"a": 70, "b": 20, "c": 10}
WEIGHTS = [0.6, 0.3, 0.1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write datasets a, b and c of five files each, and a single file of each, such as `a-one`."""
    folder = tmp_path_factory.mktemp("mixture")
    for name, size in SIZES.items():
        table = pa.table({"n": range(size), "name": [f"{name}{n}" for n in range(size)]})
        tfr.write_tfrecord(table, folder / f"{name}@5", write_index=True)
        tfr.write_tfrecord(table, folder / f"{name}-one.tfrecord", write_index=True)
    return folder


def mixed(folder: Path, form: str = "", **keywords: Any) -> tfr.typing.MixedDataset:
    datasets = [tfr.dataset(folder / (f"{name}{form}" if form else f"{name}@5")) for name in SIZES]
    return tfr.mix(datasets, **{"weights": WEIGHTS, "source_column": "source", **keywords})


def expected(sizes: Sequence[int], weights: Sequence[float], seed: int, stop: str) -> Rows:
    """Compute the rows of an epoch, one by one, as the documentation says."""
    mixture = tfr.typing.MixedDataset((), tuple(np.array(weights) / sum(weights)), seed, stop)  # type: ignore[arg-type]
    choices = mixture.choices()
    stream, rows, taken = choices.stream(0), Rows(), Counter[int]()
    while True:
        part = int(choices.datasets(stream.random(1))[0])
        if stop == "first" and taken[part] == sizes[part]:
            return rows
        rows.append((part, taken[part] % sizes[part]))
        taken[part] += 1
        if stop == "all" and all(taken[i] >= size for i, size in enumerate(sizes)):
            return rows


@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("form", ["", "-one.tfrecord"])
@pytest.mark.parametrize("seed", range(3))
def test_an_epoch_is_what_the_choices_say(folder: Path, stop: str, form: str, seed: int) -> None:
    mixture = mixed(folder, form, stop=stop, seed=seed)
    rows = expected(list(SIZES.values()), WEIGHTS, seed, stop)
    table = is_an_epoch(mixture, rows, {(part, n) for part, size in enumerate(SIZES.values()) for n in range(size)})
    assert table["name"].to_pylist() == [f"{'abc'[part]}{n}" for part, n in rows]
    assert mixture.to_pandas().equals(table.to_pandas())
    assert pl.DataFrame(mixture).to_arrow()["n"].to_pylist() == table["n"].to_pylist()


@pytest.mark.parametrize("weights", [[1, 1, 1], [0.7, 0.2, 0.1], [5, 1e-2, 100]])
def test_frequencies_are_within_three_standard_deviations(folder: Path, weights: list[float]) -> None:
    batches, count = mixed(folder, weights=weights, stop="never", seed=5).iter_arrays(batch_size=1000), 60
    sources = np.concatenate([next(batches)["source"] for _ in range(count)])
    shares = np.array(weights) / sum(weights)
    deviations = np.sqrt(shares * (1 - shares) * len(sources))
    assert (np.abs(np.bincount(sources, minlength=3) - shares * len(sources)) <= 3 * deviations).all()


@settings(max_examples=rounds(30))
@given(
    data=st.data(),
    stop=st.sampled_from(["first", "all", "never"]),
    buffer=st.sampled_from([0, 5, 40]),
    batch_size=st.integers(1, 30),
    worker=st.sampled_from([None, (0, 2), (2, 3), (3, 7)]),
    uneven=st.sampled_from(["keep", "pad", "drop"]),
    form=st.sampled_from(["", "-one.tfrecord"]),
)
def test_a_state_continues_exactly(
    folder: Path, data: st.DataObject, stop: str, buffer: int, batch_size: int, worker: Any, uneven: str, form: str
) -> None:
    mixture = mixed(folder, form, stop=stop, seed=batch_size)
    at = data.draw(st.integers(0, 25))
    is_continued(mixture, at, batch_size=batch_size, shuffle_buffer=buffer, worker=worker, uneven=uneven)


@settings(max_examples=rounds(30))
@given(
    stop=st.sampled_from(["first", "all"]),
    workers=st.integers(1, 8),
    buffer=st.sampled_from([0, 9]),
    form=st.sampled_from(["", "-one.tfrecord"]),
)
def test_workers_share_the_rows(folder: Path, stop: str, workers: int, buffer: int, form: str) -> None:
    mixture = mixed(folder, form, stop=stop)
    parts = [
        rows_of(mixture.iter_arrays(batch_size=4, worker=(i, workers), shuffle_buffer=buffer, seed=1))
        for i in range(workers)
    ]
    together = Counter(row for part in parts for row in part)
    of_one_sequence = form or workers == 1 or workers > 5  # of which each has every n-th row
    if of_one_sequence and (form or not buffer):  # the order of files is not shuffled
        assert together == Counter(rows_of(mixture.iter_arrays(batch_size=4)))
    if stop == "first":
        assert max(together.values()) == 1
    else:
        assert together.keys() == {(part, n) for part, size in enumerate(SIZES.values()) for n in range(size)}


@pytest.mark.parametrize("stop", ["first", "all", "never"])
def test_workers_that_share_a_sequence_need_one_seed(folder: Path, stop: str) -> None:
    mixture = tfr.mix([tfr.dataset(folder / "a@5"), tfr.dataset(folder / "b-one.tfrecord")], stop=stop)  # type: ignore[arg-type]
    asked: dict[str, Any] = {"batch_size": 4, "shuffle_buffer": 8}
    for worker in ((0, 2), (5, 6)):
        with pytest.raises(ValueError, match="a mixture with shuffle_buffer= needs the same seed= in all workers"):
            mixture.iter_arrays(worker=worker, **asked)
    assert len(next(mixture.iter_arrays(worker=(0, 1), **asked))["n"]) == 4
    assert len(next(mixture.iter_arrays(worker=(1, 2), batch_size=4))["n"]) == 4
    state = mixture.iter_arrays(worker=(1, 2), seed=7, **asked).state()
    assert mixture.iter_arrays(worker=(1, 2), state=state, **asked).seed == 7


@pytest.mark.parametrize("form", ["of files", "of single files", "of windows", "balanced"])
def test_workers_without_a_seed_share_the_rows(folder: Path, form: str) -> None:
    """Where no order of files is shared."""
    files = {"of single files": "-one.tfrecord"}.get(form, "@5")
    window = {"limit": 30} if form == "of windows" else {}
    parts = [tfr.dataset(folder / f"{name}{files}", **window) for name in SIZES]
    mixture = tfr.mix(parts, WEIGHTS, stop="all", source_column="source", balance="n" if form == "balanced" else None)
    read = [rows_of(mixture.iter_arrays(batch_size=4, worker=(i, 2), shuffle_buffer=9)) for i in range(2)]
    sizes = [min(size, window.get("limit", size)) for size in SIZES.values()]
    assert {*read[0], *read[1]} == {(part, n) for part, size in enumerate(sizes) for n in range(size)}


def test_ranks_with_workers_of_their_own_need_one_seed(folder: Path) -> None:
    """As in `to_torch`, where each rank draws a seed for its workers."""
    mixture, asked = mixed(folder), {"batch_size": 4, "shuffle_buffer": 8}
    of_rank = mixture.iter_arrays(
        worker=(1, 2), **asked
    )  # five files are enough for two ranks, but not for six workers
    of_rank.begin_epoch(0, worker=(3, 4), seed=1)
    with pytest.raises(ValueError, match="needs the same seed= in all workers"):
        of_rank.begin_epoch(0, worker=(3, 6), seed=1)
    mixture.iter_arrays(worker=(1, 2), seed=1, **asked).begin_epoch(0, worker=(3, 6), seed=1)
    alone = mixture.iter_arrays(worker=(0, 1), **asked)  # its workers share the seed that it drew
    parts = [rows_of(alone.begin_epoch(0, worker=(i, 6), seed=alone.seed)) for i in range(6)]
    assert max(Counter(row for part in parts for row in part).values()) == 1


@settings(max_examples=10)
@given(stop=st.sampled_from(["first", "all"]), workers=st.integers(2, 6), form=st.sampled_from(["", "-one.tfrecord"]))
def test_equal_parts_are_runs_of_the_sequence(folder: Path, stop: str, workers: int, form: str) -> None:
    mixture = mixed(folder, form, stop=stop)
    whole = rows_of(mixture.iter_arrays(batch_size=4))
    for uneven in ("pad", "drop"):
        iterators = [mixture.iter_arrays(batch_size=4, worker=(i, workers), uneven=uneven) for i in range(workers)]
        lengths = {len(iterator) for iterator in iterators}
        parts = [rows_of(iterator) for iterator in iterators]
        assert len({len(part) for part in parts}) == 1
        assert lengths == {-(-len(parts[0]) // 4)}
        together = [row for part in parts for row in part]
        size = len(whole) // workers * workers if uneven == "drop" else len(whole)
        assert together[:size] == whole[:size]
        assert together[size:] == whole[: len(together) - size]


@pytest.mark.parametrize(("stop", "changed"), [("all", 0), ("all", 1), ("first", 1)])
@pytest.mark.parametrize("uneven", ["pad", "drop"])
@pytest.mark.parametrize("rows", [3, 18, 21, 30])
def test_equal_parts_of_datasets_that_have_other_rows_than_were_counted(
    tmp_path: Path, stop: Any, changed: int, uneven: str, rows: int
) -> None:
    """With seed 0, dataset 1 ends first."""
    paths = [tmp_path / name for name in ("a.tfrecord", "b.tfrecord")]
    for path in paths:
        tfr.write_tfrecord({"x": range(20)}, path)
    mixed = tfr.mix([tfr.dataset(path) for path in paths], stop=stop, seed=0)
    parts = [mixed.iter_arrays(batch_size=1, worker=(worker, 2), uneven=uneven) for worker in range(2)]
    tfr.write_tfrecord({"x": range(rows)}, paths[changed], mode="overwrite")
    errors = list[str]()
    for batches in parts:
        try:
            list(batches)
        except tfr.errors.CorruptRecordError as error:
            errors.append(str(error))
    amount = "fewer" if rows < 20 else "more"
    expected = f"{paths[changed]}: a dataset of the mixture has {amount} rows than the 20 that were counted"
    assert any(text.startswith(expected) for text in errors)


def test_filters_and_columns_are_those_of_the_parts(folder: Path) -> None:
    mixture = mixed(folder, stop="all").filter([("n", ">=", 5)]).select(["n"])
    assert mixture.schema.names == ["n", "source"]
    whole = rows_of(mixture.iter_arrays(batch_size=3))
    assert set(whole) == {(part, n) for part, size in enumerate(SIZES.values()) for n in range(5, size)}
    batches = mixture.iter_arrays(batch_size=3, shuffle_buffer=10, seed=1)
    next(batches)
    state = batches.state()
    rest = rows_of(batches)
    assert rows_of(mixture.iter_arrays(batch_size=3, shuffle_buffer=10, seed=1, state=state)) == rest


def test_a_part_has_its_own_limit(folder: Path) -> None:
    parts = [tfr.dataset(folder / "a@5", offset=3, limit=4), tfr.dataset(folder / "b@5")]
    rows = rows_of(tfr.mix(parts, source_column="source", stop="all").iter_arrays(batch_size=5))
    assert set(rows) == {*((0, n) for n in range(3, 7)), *((1, n) for n in range(20))}


def test_a_state_of_another_mixture_is_refused(folder: Path) -> None:
    state = mixed(folder).iter_arrays(batch_size=4).state()
    for changed in ({"seed": 1}, {"stop": "all"}, {"weights": [1, 1, 1]}):
        with pytest.raises(ValueError, match="the state was made with mixture="):
            mixed(folder, **changed).iter_arrays(batch_size=4, state=state)


def test_an_error_names_the_record_after_the_rows_before_it(tmp_path: Path) -> None:
    rows = [example(n=int64s(n)) for n in range(30)]
    good = tfr.dataset(written(tmp_path / "good.tfrecord", rows), schema={"n": "int64"})
    damaged = flip(written(tmp_path / "damaged.tfrecord", rows), len(rows[0]) * 12 + 16 * 11)
    mixture = tfr.mix([good, tfr.dataset(damaged, schema={"n": "int64"})], stop="all", source_column="source")
    whole = expected([30, 30], [1, 1], 0, "all")
    batches, got = mixture.iter_arrays(batch_size=1), Rows()

    def read_all() -> None:
        for batch in batches:
            got.extend(rows_of(iter([batch])))

    with pytest.raises(tfr.errors.CorruptRecordError) as raised:
        read_all()
    assert raised.value.path == str(damaged)
    assert got == whole[: whole.index((1, raised.value.record or 0))]

    missing = written(tmp_path / "missing.tfrecord", [*rows[:9], example(), *rows[9:]])
    mixture = tfr.mix([good, tfr.dataset(missing, schema={"n": "int64"})], stop="all")
    with pytest.raises(tfr.errors.DecodeError) as raised_by_row:
        list(mixture.iter_arrays(batch_size=2))
    assert (raised_by_row.value.path, raised_by_row.value.record) == (str(missing), 9)

    skipping = {"schema": {"n": "int64"}, "on_error": "skip"}
    mixture = tfr.mix(
        [tfr.dataset(path, **skipping) for path in (damaged, missing)], stop="all", source_column="source"
    )
    batches = mixture.iter_arrays(batch_size=3)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        rows_read = set(rows_of(batches))
    assert rows_read == {*((0, n) for n in range(30) if n != 11), *((1, n) for n in range(30))}
    assert batches.report.skipped.total >= 2


@pytest.mark.parametrize("length", [None, 1])
@pytest.mark.parametrize("first", [True, False])
def test_a_part_whose_filter_excludes_all_files_has_no_rows(tmp_path: Path, length: int | None, first: bool) -> None:
    tfr.write_tfrecord(
        {"kind": ["a", "b"] * 5, "steps/n": [[n] for n in range(10)]}, f"{tmp_path}/", partition_by="kind"
    )
    whole: Any = tfr.dataset(tmp_path)
    parts = [whole.filter([("kind", "==", "c")]), whole]
    parts = [part if length is None else tfr.windows(part, length=length) for part in parts[:: 1 if first else -1]]
    for seed in range(3):
        mixture = tfr.mix(parts, seed=seed, stop="first")
        expected = len(mixture.to_table())
        for workers in (1, 2):
            batches = [mixture.iter_arrays(batch_size=1, worker=(worker, workers)) for worker in range(workers)]
            assert sum(len(list(each)) for each in batches) == expected
    with pytest.raises(ValueError, match="a dataset of the mixture has no rows"):
        list(tfr.mix(parts, stop="all").iter_arrays(batch_size=1))


@pytest.mark.parametrize("on_error", ["skip", "stop"])
def test_parts_that_treat_damage_in_two_ways_are_refused(folder: Path, on_error: Any) -> None:
    """The on_error of one part would decide about the rows of the other."""
    parts = [tfr.dataset(folder / "a@5"), tfr.dataset(folder / "b@5", on_error=on_error)]
    for mixed in (parts, parts[::-1]):
        with pytest.raises(ValueError, match="the datasets differ in on_error=: open them with the same"):
            tfr.mix(mixed)


def test_columns_have_one_schema(folder: Path, tmp_path: Path) -> None:
    tfr.write_tfrecord(pa.table({"name": ["x"], "n": [1]}), tmp_path / "swapped.tfrecord")
    mixture = tfr.mix([tfr.dataset(folder / "a@5"), tfr.dataset(tmp_path / "swapped.tfrecord")], stop="all")
    assert mixture.schema.names == ["n", "name"]
    assert "x" in mixture.to_table()["name"].to_pylist()
    tfr.write_tfrecord(pa.table({"n": [1.5], "name": ["x"]}), tmp_path / "other.tfrecord", float64="round")
    with pytest.raises(tfr.errors.SchemaError, match="feature 'n': dataset 0 has int64, dataset 1 has double"):
        tfr.mix([tfr.dataset(folder / "a@5"), tfr.dataset(tmp_path / "other.tfrecord")])
    with pytest.raises(tfr.errors.SchemaError, match="dataset 0 has no such column, dataset 1 has int64"):
        tfr.mix([tfr.dataset(folder / "a@5", columns="name"), tfr.dataset(folder / "b@5")])
    with pytest.raises(tfr.errors.SchemaError, match="have a column of this name"):
        tfr.mix([tfr.dataset(folder / "a@5")], source_column="n")


_LISTS = pa.list_(pa.int64())


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ([tfr.tensor("bool", (2,)), tfr.tensor("uint8", (2,))], r"0 has tensor<bool>\[2\], .*1 has tensor<uint8>\[2"),
        ([tfr.tensor("bool", (None,)), tfr.tensor("uint8", (None,))], "0 has tensor<bool>.*1 has tensor<uint8>"),
        ([tfr.image(resize=(2, 2)), tfr.image(resize=(3, 3))], r"resize=\(2, 2\)\), dataset 1 .*resize=\(3, 3\)"),
        ([tfr.image(), tfr.scalar("binary")], r"0 has binary of image\(mode='RGB'\), dataset 1 has binary;"),
        ([tfr.image((4, 4, 3)), tfr.image()], r"image\(size=\(4, 4, 3\), mode='RGB'\), dataset 1"),
        (
            [tfr.typing.Field("", _LISTS, shape=(None, 2)), tfr.list_("int64")],
            r"of shape \(None, 2\), dataset 1 has list",
        ),
    ],
)
def test_columns_of_equal_arrow_types_that_become_other_arrays(tmp_path: Path, types: list[Any], message: str) -> None:
    parts = []
    for number, type_ in enumerate(types):
        tfr.write_tfrecord({"n": [1]}, tmp_path / f"{number}.tfrecord")
        parts.append(tfr.dataset(tmp_path / f"{number}.tfrecord", schema={"t": type_}))
    for own in (parts, parts[::-1]):
        with pytest.raises(tfr.errors.SchemaError, match="feature 't': dataset 0 has "):
            tfr.mix(own)
    with pytest.raises(tfr.errors.SchemaError, match=message):
        tfr.mix(parts)


def test_how_columns_are_stored_may_differ(tmp_path: Path) -> None:
    parts = []
    for number, encoding in enumerate(["raw", "tensor_proto"]):
        schema = {"t": tfr.tensor("bool", (2,), encoding=encoding)}
        tfr.write_tfrecord({"t": [np.array([number, 1], bool)]}, tmp_path / encoding, schema=schema)
        parts.append(tfr.dataset(tmp_path / encoding))
    (batch,) = tfr.mix(parts, stop="all").iter_arrays(batch_size=9)
    assert batch["t"].dtype == bool
    assert set(map(tuple, batch["t"].tolist())) == {(False, True), (True, True)}


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"weights": [1, 2]}, "a positive number for each of 3 datasets"),
        ({"weights": [1, 2, 0]}, "a positive number for each"),
        ({"weights": [1, 2, float("nan")]}, "a positive number for each"),
        ({"weights": [1e308, 1e308, 1]}, "a positive number for each"),
        ({"weights": [1, 5e-324, 1e308]}, "a positive number for each"),  # its share would be 0
        ({"stop": "last"}, "stop='last': expected one of"),
        ({"seed": -1}, "seed=-1"),
    ],
)
def test_wrong_values_are_refused(folder: Path, keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mixed(folder, **keywords)


def test_what_is_no_dataset_is_refused(folder: Path) -> None:
    with pytest.raises(TypeError, match=r"expected datasets or paths, got MixedDataset$"):
        tfr.mix([mixed(folder)])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected a list of datasets, got Dataset"):
        tfr.mix(mixed(folder).parts[0])  # type: ignore[arg-type]
    for weights in (1, ["a", "b", "c"]):
        with pytest.raises(TypeError, match="a positive number for each of 3"):
            mixed(folder, weights=weights)
    with pytest.raises(TypeError, match="source_column=5: expected the name of a column"):
        mixed(folder, source_column=5)
    with pytest.raises(TypeError, match=r"iter_arrays\(\) got an unexpected .* 'limit': call dataset.limit"):
        mixed(folder).iter_arrays(batch_size=2, limit=3)
    with pytest.raises(ValueError, match="at least one dataset"):
        tfr.mix([])


def test_a_mixture_without_an_end(folder: Path) -> None:
    mixture = mixed(folder, stop="never")
    with pytest.raises(TypeError, match="has no end"):
        mixture.count_rows()
    with pytest.raises(TypeError, match="has no end"):
        len(mixture.iter_arrays(batch_size=2))
    with pytest.raises(ValueError, match="is not a table"):
        mixture.to_table()
    assert mixture.head(250).num_rows == 250


@pytest.mark.parametrize("stop", ["all", "never"])
def test_an_empty_part_cannot_be_repeated(tmp_path: Path, stop: Any) -> None:
    empty = written(tmp_path / "empty.tfrecord", [])
    tfr.write_tfrecord({"n": [1, 2]}, tmp_path / "two.tfrecord")
    datasets = [tfr.dataset(path, schema={"n": "int64"}) for path in (tmp_path / "two.tfrecord", empty)]
    with pytest.raises(ValueError, match="no rows"):
        list(tfr.mix(datasets, stop=stop).iter_arrays(batch_size=1))
    assert len(tfr.mix(datasets).to_table()) <= 2


def test_it_shows_what_it_mixes(folder: Path) -> None:
    text = repr(mixed(folder))
    assert text.startswith("<MixedDataset of 0.6 of ")
    assert text.endswith("stop='first', seed=0>")
    assert mixed(folder, source_column="from").columns == [*mixed(folder).names, "from"]
    with pytest.raises(ValueError, match="n=-1: expected at least 0"):
        mixed(folder).head(-1)


def test_images_of_several_sizes_that_become_one_are_mixed(tmp_path: Path) -> None:
    png = Image.new("RGB", (4, 4))
    buffer = io.BytesIO()
    png.save(buffer, "PNG")
    for name, shape in (("a", (4, 4, 3)), ("b", None)):
        schema = {"i": tfr.image(shape, resize=(8, 8))}
        tfr.write_tfrecord({"i": [buffer.getvalue()] * 2}, tmp_path / name, schema=schema)
    mixed = tfr.mix([tfr.dataset(tmp_path / name) for name in "ab"], stop="all", seed=0)
    assert {batch["i"].shape for batch in mixed.iter_arrays(batch_size=2)} == {(2, 8, 8, 3)}


SHARDS = st.lists(st.integers(0, 4), min_size=3, max_size=4).filter(any)


@settings(max_examples=rounds(30), deadline=None)
@given(
    shards=st.tuples(SHARDS, SHARDS),
    stop=st.sampled_from(["all", "never"]),
    workers=st.integers(2, 3),
    buffer=st.sampled_from([0, 5]),
    kept=st.booleans(),
    indexed=st.booleans(),
    least=st.sampled_from([None, 2]),
    at=st.integers(0, 20),
)
def test_workers_whose_files_of_a_part_have_no_rows(
    tmp_path_factory: pytest.TempPathFactory,
    shards: tuple[list[int], list[int]],
    stop: str,
    workers: int,
    buffer: int,
    kept: bool,
    indexed: bool,
    least: int | None,
    at: int,
) -> None:
    """They draw from the files of all, and end no earlier: each has a share of the rows, by the same weights."""
    folder, datasets, all_rows = tmp_path_factory.mktemp("shards"), list[tfr.Dataset](), set[tuple[int, int]]()
    for part, sizes in enumerate(shards):
        rows = [list(range(sum(sizes[:i]), sum(sizes[: i + 1]))) for i in range(len(sizes))]
        for number, ns in enumerate(rows):
            written(folder / f"{part}-{number}.tfrecord", [example(n=int64s(n)) for n in ns])
        if indexed:
            write_indexes(sorted(folder.glob(f"{part}-*.tfrecord")))
        dataset = tfr.dataset(folder / f"{part}-*.tfrecord", schema={"n": "int64"})
        datasets.append(dataset if least is None else dataset.filter([("n", ">=", least)]))
        all_rows |= {(part, n) for ns in rows for n in ns if n >= (least or 0)}
    assume(len({part for part, _ in all_rows}) == 2)
    mixture = tfr.mix(datasets, [0.5, 0.5], stop=stop, source_column="source")  # type: ignore[arg-type]
    asked: dict[str, Any] = {"batch_size": 1, "shuffle_buffer": buffer, "seed": 1}
    seen = set[tuple[int, int]]()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tfrecord_io.rows.training.mixed_rows._KEPT_BYTES", MIB if kept else -1)
        for worker in range(workers):
            batches = mixture.iter_arrays(worker=(worker, workers), **asked)
            taken = rows_of(itertools.islice(batches, at))
            state = json.loads(json.dumps(batches.state()))
            rest = rows_of(itertools.islice(going_on(batches), 50 if stop == "never" else None))
            again = mixture.iter_arrays(worker=(worker, workers), state=state, **asked)
            assert rows_of(itertools.islice(going_on(again), len(rest))) == rest
            seen.update(taken, rest)
            if stop == "never":
                assert {part for part, _ in taken + rest} == {0, 1}
            elif indexed and least is None:
                assert len(mixture.iter_arrays(worker=(worker, workers), **asked)) == len(taken) + len(rest)
    if stop == "all":
        assert seen == all_rows


@pytest.mark.parametrize("stop", ["all", "first"])
def test_rows_by_number_are_brought_in_order_in_parts(folder: Path, stop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that offsets of 32 bits reach their values."""
    lookup = Scan.unwrap(mixed(folder, stop=stop)).lookup()
    numbers = np.random.default_rng(0).integers(0, len(lookup), 50)
    whole = lookup.table(numbers)
    monkeypatch.setattr("tfrecord_io.rows.training.mixture._MOST_ORDERED_BYTES", 1)
    assert lookup.table(numbers).equals(whole)
    assert lookup.table(numbers).column(0).num_chunks == 50
    assert lookup.table(numbers[:0]).equals(whole[:0])


def test_records_without_features_are_rows(tmp_path: Path) -> None:
    rows = []
    for payload in (example(), example(x=int64s(1))):
        paths = [written(tmp_path / name, [payload] * 5) for name in ("a.tfrecord", "b.tfrecord")]
        mixture = tfr.mix(list(map(tfr.dataset, paths)), seed=0)
        rows += [mixture.to_table().num_rows, sum(len(batch) for batch in mixture.to_batches()), mixture.count_rows()]
    assert len(set(rows)) == 1
