"""Parts of equal size for the workers of synchronous training."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from records import example, flip, framed, int64s, written
from tfrecord_io.read.chunks import count_frames
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.rows.training.epochs import JoinedBatches, NumberedBatch, RowFacts, Share
from training_batches import chunks_of, joined, numbered, values

sizes = st.lists(st.integers(0, 23), min_size=1, max_size=6)
WINDOWS: list[dict[str, int]] = [{}, {}, {"offset": 3}, {"limit": 7}, {"offset": 5, "limit": 9}]


@given(rows=st.integers(0, 50), workers=st.integers(1, 9), pads=st.booleans())
def test_parts_are_equal_and_lack_or_repeat_little(rows: int, workers: int, pads: bool) -> None:
    parts = [Share(worker, workers, "pad" if pads else "drop").runs(rows) for worker in range(workers)]
    numbers = [n for part in parts for first, last in part for n in range(first, last)]
    size = len(numbers) // workers
    assert all(sum(last - first for first, last in part) == size for part in parts)
    assert numbers == [n % rows for n in range(workers * size)] if rows else numbers == []
    assert 0 <= (len(numbers) - rows if pads else rows - len(numbers)) < workers


@given(
    counts=sizes,
    workers=st.integers(1, 5),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 3, 10, 50]),
    window=st.sampled_from(WINDOWS),
    uneven=st.sampled_from(["pad", "drop"]),
    drop_last=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_all_workers_have_as_many_batches(
    counts: list[int],
    workers: int,
    batch_size: int,
    buffer: int,
    window: dict[str, int],
    uneven: str,
    drop_last: bool,
    threads: int,
) -> None:
    total = sum(counts)
    chosen = list(range(total))[window.get("offset", 0) :][: window.get("limit")]
    options: dict[str, Any] = {"shuffle_buffer": buffer, "seed": 1, "epochs": 2, "threads": threads, **window}
    options |= {"uneven": uneven, "schema": {"x": "int64"}, "batch_size": batch_size, "drop_last": drop_last}
    with numbered(counts) as paths, chunks_of(5):
        iterators = [read_by(tfr.iter_arrays, paths, worker=(i, workers), **options) for i in range(workers)]
        lengths = {len(batches) for batches in iterators} if workers > 1 else {0}
        got = [[batch["x"].tolist() for batch in batches] for batches in iterators]
    assert len({tuple(map(len, batches)) for batches in got}) == 1
    if workers > 1:
        assert lengths == {len(got[0])}
    size = -(-len(chosen) // workers) if uneven == "pad" else len(chosen) // workers
    if drop_last:
        return
    for epoch in range(2):
        half = len(got[0]) // 2
        parts = [joined(batches[epoch * half : (epoch + 1) * half]) for batches in got]
        assert all(len(part) == size for part in parts) or workers == 1
        times = Counter(joined(parts))
        assert set(times) <= set(chosen)
        if uneven == "pad" or workers == 1:
            assert set(times) == set(chosen)
        else:
            assert set(times.values()) <= {1}
        if not buffer and workers > 1 and window:  # each worker has a run of the rows
            assert joined(parts) == [chosen[n % len(chosen)] for n in range(workers * size)]
        elif not buffer and workers > 1:  # each step has a run of the rows, which workers share
            whole = total // (workers * batch_size)
            steps = [joined(batches[epoch * half + step] for batches in got) for step in range(whole)]
            assert joined(steps) == chosen[: whole * workers * batch_size]


@given(
    counts=sizes,
    worker=st.sampled_from([(0, 2), (1, 2), (2, 3), (4, 5)]),
    batch_size=st.integers(1, 9),
    buffer=st.sampled_from([0, 1, 3, 10, 50]),
    window=st.sampled_from(WINDOWS),
    uneven=st.sampled_from(["pad", "drop"]),
    taken=st.integers(0, 12),
    from_pickle=st.booleans(),
)
def test_equal_parts_are_resumed(
    counts: list[int],
    worker: tuple[int, int],
    batch_size: int,
    buffer: int,
    window: dict[str, int],
    uneven: str,
    taken: int,
    from_pickle: bool,
) -> None:
    options: dict[str, Any] = {"worker": worker, "uneven": uneven, "batch_size": batch_size, "shuffle_buffer": buffer}
    options |= {"seed": 3, "epochs": 3, "threads": 1, "schema": {"x": "int64"}, **window}
    with numbered(counts) as paths, chunks_of(5):
        expected = values(paths, **options)
        with read_by(tfr.iter_arrays, paths, **options) as batches:
            assert [batch["x"].tolist() for batch in islice(batches, taken)] == expected[:taken]
            state = json.loads(json.dumps(batches.state()))
        with read_by(tfr.iter_arrays, paths, state=state, **{**options, "seed": None}) as rest:
            rest = pickle.loads(pickle.dumps(rest)) if from_pickle else rest
            assert len(rest) == len(expected[taken:])
            assert [batch["x"].tolist() for batch in rest] == expected[taken:]


def test_equal_parts_of_an_epoch_are_of_the_shuffled_files() -> None:
    """All records occur within a few epochs, also those that one epoch drops."""
    with numbered([3, 3, 3, 2]) as paths:
        options: dict[str, Any] = {"uneven": "drop", "batch_size": 1, "shuffle_buffer": 2, "seed": 0, "epochs": 20}
        got = {x for i in range(4) for x in joined(values(paths, worker=(i, 4), **options))}
    assert got == set(range(11))


def test_damage_in_equal_parts(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(*[example(x=int64s(i)) for i in range(10)]))
    options: dict[str, Any] = {"batch_size": 2, "worker": (1, 2), "uneven": "pad"}
    write_indexes(path)
    batches = read_by(tfr.iter_arrays, path, schema={"x": tfr.list_("int64")}, ragged="object", **options)
    as_long_as_two = example(x=int64s(*range(31)))
    path.write_bytes(framed(*[example(x=int64s(i)) for i in range(8)], as_long_as_two))
    assert [len(next(batches)["x"]) for _ in range(2)] == [2, 2]
    with pytest.raises(
        tfr.errors.CorruptRecordError, match="this part of the epoch has 9 records, but 10 were counted"
    ):
        next(batches)
    path.write_bytes(path.read_bytes()[:210])
    with pytest.warns(tfr.errors.StaleIndexWarning, match="the index does not match"):
        assert len(read_by(tfr.iter_arrays, path, **options)) == 2
    content = bytearray(path.read_bytes())
    content[9] ^= 1
    path.write_bytes(content)
    Path(f"{path}.index").unlink()
    with pytest.raises(tfr.errors.CorruptRecordError, match="length CRC"):
        read_by(tfr.iter_arrays, path, schema={"x": "int64"}, **options)


@pytest.mark.parametrize(
    ("now", "worker", "message"),
    [
        ((0, 13), 0, "the file has more records than the 10 that were counted"),
        ((0, 7), 0, "the file has fewer records than the 10 that were counted"),
        ((0, 2), 0, "the file has fewer records than the 10 that were counted"),
        ((1, 13), 1, "the file has more records than the 10 that were counted"),
        ((1, 4), 1, "the file has fewer records than the 10 that were counted"),
        ((2, 13), 1, "the file has more records than the 10 that were counted"),
        ((2, 9), 1, "this part of the epoch has 29 records, but 30 were counted"),
    ],
)
def test_files_that_changed_after_they_were_counted(
    tmp_path: Path, now: tuple[int, int], worker: int, message: str
) -> None:
    """Rows would be in the parts of two workers, or of none."""
    paths = [tmp_path / f"{number}.tfrecord" for number in range(3)]
    for number, path in enumerate(paths):
        tfr.write_tfrecord({"x": range(10 * number, 10 * number + 10)}, path)
    asked: dict[str, Any] = {"batch_size": 15, "worker": (worker, 2), "uneven": "drop", "epochs": 2, "threads": 1}
    batches = read_by(tfr.iter_arrays, paths, **asked)
    assert next(batches)["x"].tolist() == [*range(15 * worker, 15 * worker + 15)]
    number, count = now
    tfr.write_tfrecord({"x": range(count)}, paths[number], mode="overwrite")
    with pytest.raises(tfr.errors.CorruptRecordError, match=message):
        list(batches)


@pytest.mark.parametrize("uneven", ["pad", "drop"])
@pytest.mark.parametrize("count", [9, 12, 30])
def test_a_last_file_that_changed_after_it_was_counted(tmp_path: Path, uneven: str, count: int) -> None:
    """The change is found even if the last rows of the file are in no part, as rows do not divide evenly."""
    paths = [tmp_path / f"{number}.tfrecord" for number in range(2)]
    for path in paths:
        tfr.write_tfrecord({"x": range(11)}, path)
    asked: dict[str, Any] = {"batch_size": 4, "worker": (3, 4), "uneven": uneven, "threads": 1}
    assert sum(len(batch["x"]) for batch in read_by(tfr.iter_arrays, paths, **asked)) == (6 if uneven == "pad" else 5)
    batches = read_by(tfr.iter_arrays, paths, **asked)
    tfr.write_tfrecord({"x": range(count)}, paths[1], mode="overwrite")
    with pytest.raises(tfr.errors.CorruptRecordError, match="were counted"):
        list(batches)


def test_a_wrong_number_of_records_in_a_dataset_info(tmp_path: Path) -> None:
    for number, count in enumerate((13, 10)):
        tfr.write_tfrecord({"x": range(count)}, tmp_path / f"a-train.tfrecord-0000{number}-of-00002")
    splits = [{"name": "train", "shardLengths": ["10", "10"]}]
    info = {"name": "a", "version": "1.0.0", "splits": splits, "fileFormat": "tfrecord"}
    (tmp_path / "dataset_info.json").write_text(json.dumps(info))
    batches = tfr.dataset(tmp_path / "a-train.tfrecord-*").iter_arrays(batch_size=4, worker=(0, 2), uneven="drop")
    with pytest.raises(tfr.errors.CorruptRecordError, match="more records than the 10 that were counted") as caught:
        list(batches)
    assert "dataset_info.json" in str(caught.value)


def test_records_are_counted_only_where_that_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    count = count_frames._count_file
    monkeypatch.setattr(
        count_frames, "_count_file", lambda s, *a, **k: (read.append(s.path), read_by(count, s, *a, **k))[1]
    )
    path = tmp_path / "a.tfrecord"
    for target, options in [(path, {}), (tmp_path / "b.tfrecord", {"write_index": True}), (tmp_path / "c@3", {})]:
        tfr.write_tfrecord({"x": range(10)}, target, **options)
        for uneven in ("keep", "drop"):
            assert len(joined(values(target, batch_size=3, worker=(1, 3), uneven=uneven, schema=None))) == 3
        assert read == [str(path)]
    compressed = tmp_path / "d.tfrecord.gz"
    tfr.write_tfrecord({"x": range(10)}, compressed)
    assert joined(values(compressed, batch_size=3, worker=(2, 3), uneven="pad")) == [8, 9, 0, 1]


@pytest.mark.parametrize("uneven", ["drop", "pad"])
@pytest.mark.parametrize("windowed", [False, True])
def test_one_worker_may_leave_out_records(tmp_path: Path, uneven: Any, windowed: bool) -> None:
    """A left-out record was once refused as a file that had changed since its records were counted."""
    records = [example(**{"x": int64s(i), "steps/n": int64s(i, i)}) for i in range(9)]
    damaged = flip(written(tmp_path / "a.tfrecord", records), len(framed(*records[:4])) + 14)
    schema = {"x": "int64", "steps/n": "list<int64>"}
    data: Any = tfr.dataset(damaged, on_error="skip", schema=schema)
    if windowed:
        data = tfr.windows(data, length=2)
    with pytest.warns(tfr.errors.DamagedDataWarning):
        got = [n for batch in data.iter_arrays(batch_size=2, uneven=uneven) for n in batch["x"].tolist()]
    assert got == [0, 1, 2, 3, 5, 6, 7, 8]
    with pytest.raises(ValueError, match=r"cannot be combined with .*on_error='skip'"):
        data.iter_arrays(batch_size=2, uneven=uneven, worker=(0, 2))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"uneven": "even"}, "uneven='even': expected one of 'keep', 'pad', 'drop'"),
        ({"uneven": "pad", "on_error": "stop"}, "uneven='pad' cannot be combined with on_error='stop'"),
        ({"uneven": "drop", "shuffle_buffer": 9}, "needs the same seed= in all workers"),
    ],
)
def test_options_that_cannot_be_combined(options: dict[str, Any], message: str) -> None:
    with numbered([3]) as paths, pytest.raises(ValueError, match=message):
        read_by(tfr.iter_arrays, paths, batch_size=1, worker=(0, 2), **options)


def test_a_state_from_before_uneven_is_restored() -> None:
    with numbered([9]) as paths:
        batches = tfr.iter_arrays(paths, batch_size=2)
        next(batches)
        state = batches.state()
        del state["options"]["uneven"]
        assert next(tfr.iter_arrays(paths, batch_size=2, state=state))["x"].tolist() == [2, 3]
        with pytest.raises(ValueError, match="made with uneven='keep', and this is uneven='pad'"):
            tfr.iter_arrays(paths, batch_size=2, state=state, uneven="pad")


CELLS = st.lists(st.one_of(st.none(), st.lists(st.integers(-(2**62), 2**62), max_size=5)), max_size=6)


@given(data=st.data(), parts=st.lists(CELLS, min_size=1, max_size=10), nulls=st.booleans(), wide=st.booleans())
def test_rows_of_several_pools_are_taken_as_of_one(
    data: st.DataObject, parts: list[list[Any]], nulls: bool, wide: bool
) -> None:
    list_type = (pa.large_list if wide else pa.list_)(pa.int64())
    pools, rows = list[NumberedBatch](), list[tuple[Any, ...]]()
    for part in parts:
        lists = part if nulls else [cell or [] for cell in part]
        columns = [pa.array([[0], *lists], list_type)[1:], pa.array(["", *map(str, lists)]).dictionary_encode()[1:]]
        columns.append(pa.array([b"", *(str(cell).encode() * 30 for cell in lists)])[1:])  # long ones
        pairs = pa.array([[0, 0], *([n, -n] for n in range(len(lists)))], pa.list_(pa.int16(), 2))
        tensors = pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(pa.int16(), [2]), pairs)
        columns += [pairs[1:], tensors[1:]]
        numbers = np.arange(len(rows), len(rows) + len(part))
        pools.append(
            NumberedBatch(
                RowFacts(numbers, numbers / 2),
                pa.RecordBatch.from_arrays(columns, ["list", "text", "bytes", "pair", "tensor"]),
            )
        )
        cells = zip(numbers.tolist(), lists, range(len(lists)), strict=True)
        rows += [(n, cell, str(cell), str(cell).encode() * 30, [at, -at], [at, -at], n / 2) for n, cell, at in cells]
    indices = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8) if rows else st.just([]))
    taken = JoinedBatches(pools).take(np.array(indices, np.int64))
    taken.rows.validate(full=True)
    columns = [
        taken.numbers.tolist(),
        *(column.to_pylist() for column in taken.rows.columns),
        taken.facts.row_bytes.tolist(),
    ]
    assert list(zip(*columns, strict=True)) == [rows[index] for index in indices]


@pytest.mark.parametrize(
    ("type_", "wide", "values"),
    [
        (pa.list_(pa.binary()), pa.large_list(pa.large_binary()), [[b"a", None], [], [b"b"]]),
        (pa.list_(pa.string()), pa.large_list(pa.large_string()), [["a"], None, ["b", "c"]]),
        (pa.list_(pa.list_(pa.string())), pa.large_list(pa.large_list(pa.large_string())), [[["a"], []], [], [["b"]]]),
        (pa.list_(pa.string(), 2), pa.list_(pa.large_string(), 2), [["a", "b"], None, ["c", None]]),
        (pa.struct({"a": pa.binary()}), pa.struct({"a": pa.large_binary()}), [{"a": b"a"}, None, {"a": None}]),
        (pa.map_("string", "string"), pa.map_(pa.large_string(), pa.large_string()), [[("a", "b")], None, []]),
        (pa.list_(pa.dictionary("int8", "string")), pa.large_list(pa.dictionary("int8", "string")), [["a"], None, []]),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    "take",
    [lambda pools, rows: NumberedBatch.concat(pools).take(rows), lambda pools, rows: JoinedBatches(pools).take(rows)],
)
def test_rows_of_pools_have_wide_offsets_at_all_levels(
    type_: pa.DataType, wide: pa.DataType, values: list[Any], take: Any
) -> None:
    """The bytes of texts inside lists may be more than offsets of 32 bits reach."""
    pools = []
    for begin in (0, 1):  # a slice, and all
        column = pa.array(values, type_)[begin:]
        numbers = np.arange(begin, 3)
        pools.append(NumberedBatch(RowFacts(numbers, numbers / 2), pa.RecordBatch.from_arrays([column], ["x"])))
    (column,) = take(pools, np.array([4, 0, 3])).rows.columns
    column.validate(full=True)
    assert column.type == wide
    assert column.to_pylist() == pa.array([values[2], values[0], values[1]], type_).to_pylist()


@given(
    counts=st.lists(st.integers(0, 9), min_size=2, max_size=6),
    workers=st.integers(2, 12),
    filtered=st.booleans(),
    taken=st.integers(0, 9),
)
def test_workers_that_share_files_shuffle_them_in_each_epoch(
    counts: list[int], workers: int, filtered: bool, taken: int
) -> None:
    """Together they have each record once in each epoch, and each state continues exactly."""
    assume(sum(counts) or not filtered)  # without a record, a filter has no column
    rows = [n for n in range(sum(counts)) if not filtered or n >= 3]
    asked: dict[str, Any] = {"batch_size": 2, "shuffle_buffer": 1, "epochs": 1}  # each worker draws a seed
    with numbered(counts) as paths:
        data = tfr.dataset(paths).filter([("x", ">=", 3)]) if filtered else tfr.dataset(paths)
        for epoch in range(3):
            seen = []
            for worker in range(workers):
                batches = data.iter_arrays(**asked, worker=(worker, workers)).begin_epoch(epoch, epochs=epoch + 1)
                own = joined([batch["x"].tolist() for batch in islice(batches, taken)])
                again = data.iter_arrays(
                    **{**asked, "epochs": epoch + 1}, worker=(worker, workers), state=batches.state()
                )
                own += joined([batch["x"].tolist() for batch in again])
                seen += own
            assert sorted(seen) == rows


def test_the_files_of_more_workers_have_another_order_in_each_epoch(tmp_path: Path) -> None:
    paths = [tmp_path / f"{number}.tfrecord" for number in range(6)]
    for number, path in enumerate(paths):
        tfr.write_tfrecord({"file": [number] * 8}, path)
    asked: dict[str, Any] = {"batch_size": 1, "shuffle_buffer": 1, "seed": 0, "epochs": 8, "worker": (3, 8)}
    for source in (tfr.dataset(paths), tfr.dataset(paths).filter([("file", ">=", 0)])):
        files = [int(batch["file"][0]) for batch in source.iter_arrays(**asked)]
        orders = {tuple(files[i : i + 6]) for i in range(0, 48, 6)}
        assert len(orders) == 8
        assert all(sorted(order) == [*range(6)] for order in orders)
    (batch,) = read_by(tfr.iter_arrays, paths, **{**asked, "batch_size": 8, "epochs": 1}, limit=48)
    assert batch["file"].tolist() == [*range(6)]  # limited rows are those of the files in order
