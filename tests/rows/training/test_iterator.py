"""Batches for training: each record once per epoch, in an order determined by a seed, resumable at any batch."""

from __future__ import annotations

import hashlib
import json
import pickle
from functools import partial
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from records import example, framed, int64s, written
from running_threads import running
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.rows.training.shuffle_buffer import permutation, random_numbers
from training_batches import chunks_of, joined, numbered, plain_buffer, values

sizes = st.lists(st.integers(0, 23), min_size=1, max_size=4)
buffers = st.sampled_from([0, 1, 3, 10, 50])
READ = Path("/proc/self/io")


@given(counts=sizes, batch_size=st.integers(1, 9), buffer=buffers, seed=st.integers(0, 9), drop_last=st.booleans())
def test_each_record_is_delivered_once_per_epoch(
    counts: list[int], batch_size: int, buffer: int, seed: int, drop_last: bool
) -> None:
    total = sum(counts)
    with numbered(counts) as paths, chunks_of(5):
        epochs = values(
            paths, batch_size=batch_size, shuffle_buffer=buffer, seed=seed, drop_last=drop_last, epochs=2, threads=1
        )
    an_epoch = -(-total // batch_size) if not drop_last else total // batch_size
    assert len(epochs) == 2 * an_epoch
    for epoch in (epochs[:an_epoch], epochs[an_epoch:]):
        given_ = joined(epoch)
        assert len(set(given_)) == len(given_)
        if drop_last:
            assert all(len(batch) == batch_size for batch in epoch)
        else:
            assert sorted(given_) == list(range(total))
        if buffer == 0:
            assert given_ == list(range(len(given_)))


@given(
    counts=sizes,
    batch_size=st.integers(1, 9),
    buffer=buffers,
    drop_last=st.booleans(),
    worker=st.sampled_from([None, (0, 2), (1, 2), (2, 3)]),
    window=st.sampled_from([{}, {"offset": 3}, {"limit": 7}, {"offset": 5, "limit": 9}]),
    taken=st.integers(0, 8),
)
def test_the_length_is_the_number_of_batches(
    counts: list[int], batch_size: int, buffer: int, drop_last: bool, worker: Any, window: Any, taken: int
) -> None:
    options = {"batch_size": batch_size, "shuffle_buffer": buffer, "drop_last": drop_last, "worker": worker, **window}
    options |= {"schema": {"x": "int64"}, "threads": 1, "epochs": 2, "seed": 1}
    with numbered(counts) as paths, chunks_of(4):
        write_indexes(paths)
        with read_by(tfr.iter_arrays, paths, **options) as batches:
            total = len(batches)
            read = sum(1 for _ in islice(batches, taken))
            state = batches.state()
            assert len(batches) == total
            assert read + (sum(1 for _ in batches) if read == taken else 0) == total
        with read_by(tfr.iter_arrays, paths, state=state, **options) as rest:
            assert len(rest) == total - read == sum(1 for _ in rest)


def test_the_length_from_a_manifest(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": list(range(10))}, tmp_path / "a@3")
    with tfr.iter_arrays(tmp_path / "a@3", batch_size=4) as batches:
        assert len(batches) == len(list(batches)) == 3


@pytest.mark.parametrize("rows", [1, 1000])  # whose index takes less, and longer to read than the headers of the file
def test_the_length_from_an_index(rows: int, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.zeros((rows, 64), np.float32)}, tmp_path / "a.tfrecord", write_index=True)
    with tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=1) as batches:
        assert len(batches) == rows


def test_an_unknown_length_is_a_type_error_that_says_why(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": list(range(10))}, path)
    with tfr.iter_arrays(path, batch_size=4) as batches:
        assert batches
        with pytest.raises(TypeError, match=r"no manifest and no index states how many records .*a\.tfrecord has"):
            len(batches)
        assert len(list(batches)) == 3
    write_indexes(path)
    with tfr.iter_arrays(path, batch_size=4, epochs=None) as batches, pytest.raises(TypeError, match="epochs=None"):
        len(batches)
    tfr.write_tfrecord({"x": [1]}, path, mode="overwrite")
    Path(f"{path}.index").write_text("0 70\n")
    with tfr.iter_arrays(path, batch_size=4) as batches:
        with (
            pytest.raises(TypeError, match="no manifest and no index states how many records"),
            pytest.warns(tfr.errors.StaleIndexWarning, match="the index does not match"),
        ):
            len(batches)
        assert len(list(batches)) == 1


@given(counts=sizes, batch_size=st.integers(1, 9), buffer=st.integers(1, 30), seed=st.integers(0, 9))
def test_order_is_that_of_a_plain_buffer_over_permuted_files(
    counts: list[int], batch_size: int, buffer: int, seed: int
) -> None:
    total = sum(counts)
    ends = np.cumsum(counts)
    with numbered(counts) as paths, chunks_of(4):
        got = values(paths, batch_size=batch_size, shuffle_buffer=buffer, seed=seed, epochs=2, threads=1)
    expected = []
    for epoch in range(2):
        come = [n for i in permutation(len(counts), seed, epoch) for n in range(ends[i] - counts[i], ends[i])]
        order = plain_buffer(random_numbers(seed, epoch, 0).random(total).tolist(), total, buffer)
        expected += [[come[at] for at in order[i : i + batch_size]] for i in range(0, total, batch_size)]
    assert got == expected


@given(counts=sizes, batch_size=st.integers(1, 9), buffer=buffers, seed=st.integers(0, 9), unit=st.integers(1, 30))
def test_threads_and_pieces_do_not_change_the_order(
    counts: list[int], batch_size: int, buffer: int, seed: int, unit: int
) -> None:
    asked = {"batch_size": batch_size, "shuffle_buffer": buffer, "seed": seed, "epochs": 2}
    with numbered(counts) as paths:
        expected = values(paths, threads=1, **asked)
        for threads in (1, 2, 4):
            with chunks_of(unit):
                assert values(paths, threads=threads, **asked) == expected


@given(counts=sizes, workers=st.integers(1, 5), buffer=buffers, data=st.data())
def test_workers_partition_the_records(counts: list[int], workers: int, buffer: int, data: st.DataObject) -> None:
    window = data.draw(st.fixed_dictionaries({}, optional={"offset": st.integers(0, 9), "limit": st.integers(0, 30)}))
    with numbered(counts) as paths, chunks_of(7):
        parts = [
            joined(values(paths, batch_size=3, shuffle_buffer=buffer, worker=(i, workers), threads=1, **window))
            for i in range(workers)
        ]
        expected = list(range(sum(counts)))[window.get("offset", 0) :][: window.get("limit", 10**9)]
    assert sorted(x for part in parts for x in part) == expected
    if len(counts) < workers:
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


@given(
    counts=sizes,
    batch_size=st.integers(1, 9),
    buffer=buffers,
    drop_last=st.booleans(),
    window=st.fixed_dictionaries({}, optional={"offset": st.integers(0, 5), "limit": st.integers(0, 30)}),
    worker=st.sampled_from([None, (0, 2), (1, 3)]),
)
def test_a_state_continues_with_the_same_batches(
    counts: list[int],
    batch_size: int,
    buffer: int,
    drop_last: bool,
    window: dict[str, int],
    worker: tuple[int, int] | None,
) -> None:
    asked: dict[str, Any] = {
        "batch_size": batch_size,
        "shuffle_buffer": buffer,
        "drop_last": drop_last,
        "worker": worker,
        **window,
    }
    asked |= {"epochs": 3, "schema": {"x": "int64"}, "threads": 1}
    with numbered(counts) as paths, chunks_of(6):
        batches = read_by(tfr.iter_arrays, paths, seed=4, **asked)
        states, given_ = [batches.state()], []
        for batch in batches:
            given_.append(batch["x"].tolist())
            states.append(batches.state())
        states.append(batches.state())
        for i, state in enumerate(states):
            again = read_by(tfr.iter_arrays, paths, state=json.loads(json.dumps(state)), **asked)
            assert again.seed == 4
            assert again.state() == state
            assert [batch["x"].tolist() for batch in again] == given_[i:]


def test_a_state_does_not_include_prefetched_batches(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(500)])
    asked = {"batch_size": 10, "shuffle_buffer": 64, "seed": 1}
    alone = read_by(tfr.iter_arrays, path, threads=1, **asked)
    with read_by(tfr.iter_arrays, path, threads=3, **asked) as ahead:
        for _ in zip(range(9), ahead, strict=False):
            next(alone)
            assert ahead.state() == alone.state()


def test_epochs_none_continues_without_end(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(7)])
    with tfr.iter_arrays(path, batch_size=3, shuffle_buffer=5, seed=0, epochs=None) as batches:
        seen = [next(batches)["x"].tolist() for _ in range(30)]
        state = batches.state()
        following = next(batches)["x"].tolist()
    epochs = [joined(seen[i : i + 3]) for i in range(0, 30, 3)]
    assert all(sorted(epoch) == list(range(7)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) > 5
    with tfr.iter_arrays(path, batch_size=3, shuffle_buffer=5, epochs=None, state=state) as again:
        assert next(again)["x"].tolist() == following
        again.restore(state)
        assert next(again)["x"].tolist() == following


def test_epochs_without_records_do_not_go_on_forever(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [])
    assert values(path, batch_size=1, epochs=None) == []
    assert values(path, batch_size=1, epochs=None, shuffle_buffer=3) == []


def test_a_seed_is_drawn_and_shown(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(200)])
    first, second = (tfr.iter_arrays(path, batch_size=200, shuffle_buffer=200) for _ in range(2))
    assert first.seed != second.seed
    order = next(first)["x"].tolist()
    assert order != next(second)["x"].tolist()
    assert values(path, batch_size=200, shuffle_buffer=200, seed=first.seed) == [order]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 4}, "batch_size=3, and this is batch_size=4"),
        ({"shuffle_buffer": 6}, "shuffle_buffer=5, and this is shuffle_buffer=6"),
        ({"drop_last": True}, "drop_last=False"),
        ({"offset": 1}, "offset=0"),
        ({"limit": 3}, "limit=None"),
        ({"seed": 8}, "seed=7, and this is seed=8"),
    ],
)
def test_a_state_of_other_options_is_refused(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    asked: dict[str, Any] = {"batch_size": 3, "shuffle_buffer": 5, "seed": 7}
    state = read_by(tfr.iter_arrays, path, **asked).state()
    with pytest.raises(ValueError, match=message):
        read_by(tfr.iter_arrays, path, state=state, **{**asked, **change})


@pytest.mark.parametrize("after", [None, (0, 3), (1, 2)])
def test_a_state_of_several_workers_without_parts_is_that_of_one_of_them(tmp_path: Path, after: Any) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    asked: dict[str, Any] = {"batch_size": 3, "shuffle_buffer": 5, "seed": 7}
    state = read_by(tfr.iter_arrays, path, worker=(0, 2), **asked).state()
    with pytest.raises(ValueError, match=r"made with worker=\[0, 2\], and this is"):
        read_by(tfr.iter_arrays, path, worker=after, state=state, **asked)


@pytest.mark.parametrize("kind", ["files", "windows", "mixture"])
@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ({"on_error": "skip"}, {}, "made with another on_error, so other records are left out"),
        ({}, {"on_error": "skip"}, "made with another on_error"),
        ({"on_error": "skip", "x": "float32"}, {"on_error": "skip"}, "other columns or types"),
        ({"on_error": "skip", "y": "int64"}, {"on_error": "skip"}, "other columns or types"),
        ({"on_error": "skip"}, {"on_error": lambda error: True}, None),
        ({"on_error": "stop"}, {}, None),
    ],
)
@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.DamagedDataWarning")
def test_a_state_is_refused_where_other_records_are_left_out(
    tmp_path: Path, kind: str, before: dict[str, Any], after: dict[str, Any], message: str | None
) -> None:
    """Records that are left out have no number: the state would go on at another one."""
    path = written(
        tmp_path / "a.tfrecord", [example(x=int64s(n), y=int64s(n), **{"steps/a": int64s(n)}) for n in range(9)]
    )

    def batches(on_error: Any = "raise", state: Any = None, **columns: Any) -> tfr.typing.ArrayIterator:
        schema = {"x": "int64", "steps/a": tfr.list_("int64"), **columns}
        dataset: Any = tfr.dataset(path, schema=schema, on_error=on_error)
        dataset = {"files": dataset, "windows": tfr.windows(dataset, length=1), "mixture": tfr.mix([dataset])}[kind]
        return dataset.iter_arrays(batch_size=2, state=state)

    state = batches(**before).state()
    if message is None:
        assert batches(**after, state=state).state() == state
        return
    with pytest.raises(ValueError, match=message):
        batches(**after, state=state)


@pytest.mark.parametrize("kind", ["files", "windows", "mixture"])
def test_a_state_is_refused_where_the_datasets_of_a_list_select_other_rows(tmp_path: Path, kind: str) -> None:
    paths = [
        written(tmp_path / f"{name}.tfrecord", [example(**{"steps/x": int64s(n)}) for n in range(9)]) for name in "ab"
    ]
    first, other = (tfr.dataset(path, schema={"steps/x": tfr.list_("int64")}) for path in paths)

    def batches(selected: tfr.Dataset, state: Any = None) -> tfr.typing.ArrayIterator:
        both: Any = selected + other
        both = {"files": both, "windows": tfr.windows(both, length=1), "mixture": tfr.mix([both, other])}[kind]
        return both.iter_arrays(batch_size=2, state=state)

    chosen = [first.limit(5), first.limit(6), first.offset(2), first.filter([("steps/x", "contains", 3)])]
    chosen += [first.filter([("steps/x", "contains", 4)]), first.filter([("steps/x", "contains", 4)]).limit(1)]
    for before, after in permutations(chosen, 2):
        with pytest.raises(ValueError, match="the state is that of other rows of these files"):
            batches(after, batches(before).state())
    state = batches(chosen[0]).state()
    assert batches(first.limit(5), state).state() == state


def test_a_state_of_the_only_worker_is_that_of_none(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    asked: dict[str, Any] = {"batch_size": 3, "shuffle_buffer": 5, "seed": 7}
    for before, after in permutations([None, (0, 1)]):
        batches = read_by(tfr.iter_arrays, path, worker=before, **asked)
        next(batches)
        state = batches.state()
        again = read_by(tfr.iter_arrays, path, worker=after, state=state, **asked)
        assert [batch["x"].tolist() for batch in again] == [batch["x"].tolist() for batch in batches]


@pytest.mark.parametrize("end", ["consumed", "closed"])
def test_a_second_loop_is_an_error(tmp_path: Path, end: str) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    batches = tfr.iter_arrays(path, batch_size=4, epochs=2)
    beginning = batches.state()
    for batch in batches:
        assert batch["x"].tolist() == [0, 1, 2, 3]
        break
    if end == "closed":
        batches.close()
    else:
        assert joined([batch["x"].tolist() for batch in batches]) == [*range(4, 9), *range(9)]  # a loop that goes on
    for _ in range(2):
        with pytest.raises(ValueError, match="consumed, or was closed: make another one, or restore"):
            list(batches)
    batches.restore(beginning)
    assert len(list(batches)) == 6


def test_a_second_loop_after_an_error_raises_it_again(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1)), example()])
    batches = tfr.iter_arrays(path, batch_size=1)
    assert next(batches)["x"].tolist() == [1]
    for _ in range(2):
        with pytest.raises(tfr.errors.DecodeError):
            list(batches)


def test_a_seed_that_shuffles_nothing_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    data = tfr.dataset(path)
    for source in (partial(tfr.iter_arrays, path), data.iter_arrays, tfr.mix([data]).iter_arrays):
        with pytest.raises(ValueError, match="seed=1: nothing is shuffled without shuffle_buffer="):
            source(batch_size=4, seed=1)
        assert len(list(source(batch_size=4, seed=1, shuffle_buffer=0))) == 3


def test_a_state_of_other_files_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(9)])
    state = tfr.iter_arrays(path, batch_size=3).state()
    written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(8)])
    with pytest.raises(ValueError, match="the state is that of other files: those were 1 file of"):
        tfr.iter_arrays(path, batch_size=3, state=state)
    written(tmp_path / "b.tfrecord", [example(x=int64s(n)) for n in range(9)])
    with pytest.raises(ValueError, match="others of the same size"):
        tfr.iter_arrays(tmp_path / "b.tfrecord", batch_size=3, state=state)


def test_a_state_of_another_slice_is_refused(tmp_path: Path) -> None:
    """Also of one with as many bytes of the same file."""
    tfr.formats.write_tfds({"x": np.arange(40)}, tmp_path / "pets/1.0.0", shards=1)
    asked: dict[str, Any] = {"batch_size": 4, "shuffle_buffer": 3, "seed": 0}
    opened = {split: tfr.dataset(tmp_path / "pets", split=split) for split in ("train[:20]", "train[20:]")}
    first, second = opened.values()
    batches = first.iter_arrays(**asked)
    assert batches.state()["files"]["bytes"] == second.bytes
    next(batches)
    with pytest.raises(ValueError, match="the state is that of other files: others of the same size"):
        read_by(tfr.iter_arrays, tmp_path / "pets", split="train[20:]", state=batches.state(), **asked)
    with pytest.raises(ValueError, match="the state is that of other files"):
        tfr.mix([second]).iter_arrays(state=tfr.mix([first]).iter_arrays(**asked).state(), **asked)
    again = read_by(tfr.iter_arrays, tmp_path / "pets", split="train[:20]", state=batches.state(), **asked)
    assert [batch["x"].tolist() for batch in again] == [batch["x"].tolist() for batch in batches]


@pytest.mark.parametrize("is_pickled", [False, True])
def test_a_state_of_a_dataset_that_was_overwritten_with_files_of_the_same_sizes(
    tmp_path: Path, is_pickled: bool
) -> None:
    """The rows after it would be those of another version."""
    target = tmp_path / "a@2"
    tfr.write_tfrecord({"x": np.arange(10, 20)}, target)
    batches = tfr.iter_arrays(target, batch_size=3)
    if is_pickled:
        batches = pickle.loads(pickle.dumps(batches))
    next(batches)
    state = json.loads(json.dumps(batches.state()))
    assert next(tfr.iter_arrays(target, batch_size=3, state=state))["x"].tolist() == [13, 14, 15]
    tfr.write_tfrecord({"x": np.arange(30, 40)}, target, mode="overwrite")
    with pytest.raises(ValueError, match="the state is that of other files: others of the same size"):
        tfr.iter_arrays(target, batch_size=3, state=state)


def test_a_state_of_whole_files_counts_their_names_and_sizes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(3)])
    digest = hashlib.sha256(f"a.tfrecord\0{path.stat().st_size}\0".encode()).hexdigest()
    assert tfr.iter_arrays(path, batch_size=2).state()["files"]["digest"] == digest


@pytest.mark.parametrize(
    "damage",
    [
        {"version": 3},
        {"next": -1},
        {"next": 2**63},
        {"buffer": [0, 0]},
        {"buffer": [10**9]},
        {"epoch": "0"},
        {"files": None},
        {"more": 1},
    ],
)
def test_a_damaged_state_is_refused(tmp_path: Path, damage: dict[str, Any]) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1))])
    state = tfr.iter_arrays(path, batch_size=3).state()
    with pytest.raises(ValueError, match="state"):
        tfr.iter_arrays(path, batch_size=3, state={**state, **damage})


@pytest.mark.skipif(not READ.exists(), reason="this system does not state what a process has read")
@pytest.mark.parametrize("threads", [1, 2])
def test_no_more_than_the_sample_is_read_before_the_first_batch_is_requested(tmp_path: Path, threads: int) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"text": ["x" * 1000] * 12_000}, path, embed_schema=False)
    before = int(READ.read_text().split()[1])
    batches = read_by(tfr.iter_arrays, path, batch_size=4, threads=threads, sample=2000)
    assert int(READ.read_text().split()[1]) - before < 3_000_000
    assert len(next(batches)["text"]) == 4


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("buffer", [0, 7, 1000])
def test_damage_is_raised_after_the_records_before_it(tmp_path: Path, threads: int, buffer: int) -> None:
    content = bytearray(framed(*[example(x=int64s(n)) for n in range(100)]))
    content[len(framed(*[example(x=int64s(n)) for n in range(80)])) + 14] ^= 1
    path = tmp_path / "a.tfrecord"
    path.write_bytes(content)
    asked = {"batch_size": 6, "shuffle_buffer": buffer, "seed": 0, "threads": threads, "epochs": 3}
    with chunks_of(16), read_by(tfr.iter_arrays, path, **asked) as batches:
        got = []
        with pytest.raises(tfr.errors.CorruptRecordError) as caught:
            got.extend(batch["x"].tolist() for batch in batches)
        assert caught.value.record == 80
        assert sorted(joined(got)) == list(range(80))
        with pytest.raises(tfr.errors.CorruptRecordError):
            next(batches)
        state = batches.state()
    again = read_by(tfr.iter_arrays, path, state=state, **asked)
    with pytest.raises(tfr.errors.CorruptRecordError):
        next(again)
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 80"):
        assert sorted(joined(values(path, on_error="stop", **asked))) == list(range(80))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("buffer", [0, 7, 1000])
def test_no_epoch_follows_a_stop(tmp_path: Path, threads: int, buffer: int) -> None:
    content = framed(*[example(x=int64s(n)) for n in range(20)])
    paths = [written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(30, 36)]), tmp_path / "b.tfrecord"]
    paths[1].write_bytes(content[:-1])
    asked = {"batch_size": 4, "shuffle_buffer": buffer, "seed": 0, "threads": threads, "epochs": 3, "on_error": "stop"}
    batches = read_by(tfr.iter_arrays, paths, **asked)
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 19"):
        states = [batches.state(), *(batches.state() for _ in batches)]
    for state in [states[-1], batches.state()]:
        with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 19"):
            assert not list(read_by(tfr.iter_arrays, paths, state=state, **asked))


@pytest.mark.parametrize("threads", [1, 2])
def test_damage_before_any_column_is_raised(tmp_path: Path, threads: int) -> None:
    content = bytearray(framed(example(x=int64s(1)), example(x=int64s(2))))
    content[14] ^= 1
    paths = [tmp_path / "a.tfrecord", written(tmp_path / "b.tfrecord", [example(x=int64s(3))])]
    paths[0].write_bytes(content)
    for worker in (None, (1, 2)):
        asked = {"batch_size": 2, "threads": threads, "worker": worker, "epochs": 2}
        batches = read_by(tfr.iter_arrays, paths, **asked)
        for _ in range(2):
            with pytest.raises(tfr.errors.CorruptRecordError, match="record 0 at byte 0"):
                next(batches)
        with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 0 at byte 0"):
            assert not list(read_by(tfr.iter_arrays, paths, on_error="stop", **asked))


@pytest.mark.fault(1)
def test_no_records_give_no_batches(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [])
    assert not list(tfr.iter_arrays(path, batch_size=2, epochs=None))
    written(path, [b"", b""])
    with pytest.raises(ValueError, match="no column to read"):
        tfr.iter_arrays(path, batch_size=2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"worker": (3, 4)}, "worker 3 of 4 has no record.*worker="),
        ({"worker": (1, 2), "drop_last": True}, "of the 1 record of worker 1 of 2; pass drop_last=False.*batch_size="),
        ({"pack": {"x": 16}, "drop_last": True, "shuffle_buffer": 9}, "no whole batch can be made of the 3 records"),
        ({"columns": ["none"], "pack": {"none": 9}, "cut": True}, "the 3 records have no values; read other columns"),
    ],
)
def test_endless_epochs_without_a_batch_are_an_error(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    """They ended as if they had been delivered."""
    lists = {"x": [[1, 1], [2], [3]], "none": [[]] * 3}
    tfr.write_tfrecord(lists, tmp_path / "a", schema={"x": "list<int64>", "none": "list<int64>"})
    options = {"columns": ["x"], "ragged": "pad", "batch_size": 2, **options}
    assert not list(tfr.iter_arrays(tmp_path / "a", **options))
    with pytest.raises(ValueError, match=f"epochs=None: .*{message}"):
        next(tfr.iter_arrays(tmp_path / "a", epochs=None, **options))


def test_endless_epochs_go_on_where_only_the_first_has_no_batch(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1] * 3, [2] * 3, [3] * 5, [4] * 5]}, tmp_path / "a")
    options: dict[str, Any] = {"batch_size": 3, "pack": {"x": 8}, "drop_last": True, "shuffle_buffer": 9, "seed": 4}
    assert not list(tfr.iter_arrays(tmp_path / "a", **options))
    expected = list(tfr.iter_arrays(tmp_path / "a", **options, epochs=9))
    found = tfr.iter_arrays(tmp_path / "a", **options, epochs=None)
    assert len(expected) > 1
    assert [next(found)["x"].tolist() for _ in expected] == [batch["x"].tolist() for batch in expected]


def threads_now() -> set[str]:
    return {thread.name for thread in running()}
