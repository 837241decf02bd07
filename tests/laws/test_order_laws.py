"""One order of an epoch: any number of ranks and loader workers reads it, and goes on with what others began."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from folder_trees import FoldersByKind
from order_layouts import Layout, place_in
from records import example, flip, framed, int64s, written
from rounds import rounds
from tfrecord_io.read.file_indexes import write_indexes
from tfrecord_io.rows.training import plan_order
from tfrecord_io.rows.training.lane_batching import LaneBatching
from tfrecord_io.rows.training.shuffle_buffer import permutation, random_numbers
from training_batches import chunks_of, plain_buffer

COUNTS = [23, 0, 31, 17, 40, 9]
TOTAL = sum(COUNTS)
BAD = {3, 30, 31, 60, 95}  # records whose payload is damaged
LENGTHS = [1 + n * 7 % 5 for n in range(TOTAL)]
SCHEMA = {"x": "int64", "c": "int64", "t": "list<int64>", "steps/a": "list<int64>"}
STEP = 24  # rows of all ranks together
RANKS = [1, 2, 3, 4, 6, 8, 12, 24]


def payload(x: int) -> bytes:
    tokens = int64s(*range(10 * x, 10 * x + LENGTHS[x]))
    return example(x=int64s(x), c=int64s(x % 3), t=tokens, **{"steps/a": tokens})


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Files with an index, without one, compressed, and with damage."""
    found = FoldersByKind()
    for kind in ("indexed", "plain", "gzip", "damaged"):
        folder, begin, paths = tmp_path_factory.mktemp(kind), 0, []
        for file, count in enumerate(COUNTS):
            numbers = range(begin, begin + count)
            path = written(folder / f"{file}.tfrecord", [payload(x) for x in numbers])
            if kind == "gzip":
                path = path.rename(f"{path}.gz")
                path.write_bytes(gzip.compress(path.read_bytes()))
            if kind == "damaged":
                flip(path, *(len(framed(*map(payload, numbers[: x - begin]))) + 14 for x in BAD & {*numbers}))
            paths.append(path)
            begin += count
        if kind == "indexed":
            write_indexes([path for path, count in zip(paths, COUNTS, strict=True) if count])
        found[kind] = paths
    return found


KINDS = ["indexed", "plain", "gzip", "damaged", "filtered", "unlike", "windows", "mixed", "mixed whole", "balanced"]
COUNTED = {"indexed"}
MIXED = {"mixed", "mixed whole", "balanced"}


def opened(folders: dict[str, list[Path]], kind: str) -> Any:
    def of(name: str, part: slice = slice(None), **options: Any) -> tfr.Dataset:
        return tfr.dataset(folders[name][part], **{"schema": SCHEMA, "threads": 1, **options})

    if kind in folders:
        return of(kind, **({"on_error": "skip"} if kind == "damaged" else {}))
    if kind == "filtered":
        return of("indexed").filter(pc.field("c") != 0)
    if kind == "unlike":  # lanes, some of which have few rows
        return of("indexed").filter((pc.field("x") < 50) | (pc.field("x") > 113))
    if kind == "windows":
        return tfr.windows(of("plain"), length=1)
    if kind == "balanced":
        return tfr.mix([of("indexed")], balance="c", stop="all")
    parts = [of("plain", slice(0, 3)), of("plain", slice(3, 6))]
    parts = [part.limit(50) for part in parts] if kind == "mixed whole" else parts
    return tfr.mix(parts, [0.6, 0.4], seed=1, stop="all")


def rows_of(batch: dict[str, Any]) -> list[Any]:
    """What identifies a row: of windows its step."""
    if batch["steps/a"].ndim == 2:
        return batch["steps/a"][:, 0].tolist()
    return batch["x"].tolist()


def quiet() -> Any:
    return warnings.catch_warnings(action="ignore")


orders = st.fixed_dictionaries(
    {
        "shuffle_buffer": st.sampled_from([0, 1, 10, 60]),
        "seed": st.integers(0, 9),
        "parts": st.sampled_from([(1, 1), (2, 1), (4, 1), (8, 1), (12, 1), (24, 1), (1, 2), (4, 2), (2, 4), (3, 3)]),
    }
)


@settings(max_examples=rounds(600, 40))
@given(kind=st.sampled_from(KINDS), order=orders, seed=st.integers(0, 10**6), unit=st.integers(3, 30))
def test_each_row_is_seen_once(
    folders: dict[str, list[Path]], kind: str, order: dict[str, Any], seed: int, unit: int
) -> None:
    """Through a chain of layouts, each of which goes on from a state of any rank, or from those of all."""
    rng, source = random.Random(seed), opened(folders, kind)
    epoch = rng.randrange(3)
    with chunks_of(unit), quiet():
        whole = rows_in_epoch(source, epoch, {**order, "batch_size": STEP})
        if kind not in MIXED:
            assert sorted(whole) == sorted(rows_in_epoch(source, epoch, {"batch_size": 7}))
        seen, state = list[Any](), None
        for _ in range(rng.randrange(1, 4)):
            ranks, workers, batch = layout_of(rng, kind)
            layout = Layout(source, ranks, workers, state, epoch, **order, batch_size=batch)
            steps, states = layout.steps(rng.randrange(5), rows_of)
            seen += itertools.chain(*steps)
            if states:
                assert all(place_in(own) == place_in(states[0]) for own in states)
                assert all(len(json.dumps({**place_in(own), "files": 0, "options": 0})) < 400 for own in states)
                state = rng.choice([rng.choice(states), states, {**states[0], "marks": {}}])
        ranks, workers, batch = layout_of(rng, kind)
        seen += Layout(source, ranks, workers, state, epoch, **order, batch_size=batch).rest(rows_of)
    assert sorted(seen) == sorted(whole)


def layout_of(rng: random.Random, kind: str) -> tuple[int, int, int]:
    """Ranks, workers and batch size. Where rows are not counted, several ranks have no loader workers."""
    ranks, workers = rng.choice(RANKS), rng.choice([1, 1, 2, 3, 4])
    batch = STEP // ranks if rng.random() < 0.7 else rng.randrange(1, 9)
    if kind not in COUNTED and workers > 1:
        return 1, workers, batch * ranks
    return ranks, workers, batch


def rows_in_epoch(source: Any, epoch: int, options: dict[str, Any]) -> list[Any]:
    batches = source.iter_arrays(**options).begin_epoch(epoch, epochs=epoch + 1)
    return [row for batch in batches for row in rows_of(batch)]


@settings(max_examples=rounds(200, 25))
@given(
    kind=st.sampled_from(["indexed", "plain", "gzip", "filtered"]), order=orders,
    workers=st.sampled_from([1, 2, 3, 4]), ranks=st.sampled_from(RANKS), unit=st.integers(3, 30),
)  # fmt: skip
def test_steps_are_the_same_for_all_layouts(
    folders: dict[str, list[Path]], kind: str, order: dict[str, Any], workers: int, ranks: int, unit: int
) -> None:
    """Wherever rows are counted; else until the first lane ends."""
    source, steps = opened(folders, kind), -(-TOTAL // STEP) + 1
    with chunks_of(unit):
        expected, _ = Layout(source, 1, 1, **order, batch_size=STEP).steps(steps, rows_of)
        got, _ = Layout(source, ranks, workers, **order, batch_size=STEP // ranks).steps(steps, rows_of)
    full = itertools.takewhile(lambda step: len(step) == STEP, got)
    same = steps if kind in COUNTED else len(list(full))
    assert got[:same] == expected[:same]
    assert same or order["parts"][0] > 2


def expected_steps(order: dict[str, Any], epoch: int) -> Iterator[list[int]]:
    """The rows of each step of counted files, as a person would write it down."""
    (lanes, turns), size, seed = order["parts"], order["shuffle_buffer"], order["seed"]
    files = permutation(len(COUNTS), seed, epoch) if size else range(len(COUNTS))
    begins = [sum(COUNTS[:file]) for file in range(len(COUNTS))]
    records = [begins[file] + n for file in files for n in range(COUNTS[file])]
    steps = [min(STEP, TOTAL - at) for at in range(0, TOTAL, STEP)]
    parts, at = list[list[int]](), 0
    for turn in range(turns):
        own = sum(steps[turn::turns])
        for lane in range(lanes):
            count = own * (lane + 1) // lanes - own * lane // lanes
            rows, buffer = records[at : at + count], -(-size // lanes)
            at += count
            if size:
                draws = random_numbers(seed, epoch, len(parts)).random(count).tolist()
                rows = [rows[place] for place in plain_buffer(draws, count, buffer)]
            parts.append(rows)
    for number, count in enumerate(steps):
        turn = number % turns
        before = sum(steps[turn:number:turns])
        own = [[(lane, x) for x in rows] for lane, rows in enumerate(parts[turn * lanes : (turn + 1) * lanes])]
        rotation = [row for rows in itertools.zip_longest(*own) for row in rows if row is not None]
        yield [x for _, x in sorted(rotation[before : before + count], key=lambda row: row[0])]


@settings(max_examples=rounds(200, 25))
@given(order=orders, ranks=st.sampled_from(RANKS), workers=st.sampled_from([1, 2, 4]), unit=st.integers(3, 30))
def test_the_order_of_counted_files(
    folders: dict[str, list[Path]], order: dict[str, Any], ranks: int, workers: int, unit: int
) -> None:
    source, expected = opened(folders, "indexed"), list(expected_steps(order, 1))
    with chunks_of(unit):
        layout = Layout(source, ranks, workers, epoch=1, **order, batch_size=STEP // ranks)
        got, _ = layout.steps(len(expected), rows_of)
        assert not layout.rest(rows_of)
    assert got == expected


ARRANGED: list[dict[str, Any]] = [
    {"bucket_by": "t", "bucket_sizes": (2, 4, 5)},
    {"pack": {"t": 8}},
    {"pack": {"t": 7}, "cut": True},
]


def tokens_of(batch: dict[str, Any]) -> list[int]:
    values = batch["t"][batch["t/segment_ids"] > 0] if "t/segment_ids" in batch else batch["t"][batch["t"] >= 0]
    return [int(value) for value in values]


@settings(max_examples=rounds(300, 25))
@given(
    kind=st.sampled_from(["indexed", "gzip", "damaged", "filtered", "unlike", "mixed"]), order=orders,
    arranged=st.sampled_from(ARRANGED), seed=st.integers(0, 10**6), unit=st.integers(3, 30),
    batch_size=st.integers(1, 4),
)  # fmt: skip
def test_each_token_is_seen_once(
    folders: dict[str, list[Path]], kind: str, order: dict[str, Any], arranged: dict[str, Any], seed: int, unit: int,
    batch_size: int,
) -> None:  # fmt: skip
    """Parts make their batches by themselves, which ranks share; a state has a position in each part."""
    rng, source = random.Random(seed), opened(folders, kind).select(["t"])
    options = {**order, **arranged, "batch_size": batch_size, "pad_value": -1}
    parts = order["parts"]
    with chunks_of(unit), quiet():
        seen, state = list[int](), None
        for _ in range(rng.randrange(1, 4)):
            ranks, workers = (rng.choice(RANKS), 1) if rng.random() < 0.5 else (1, rng.choice([1, 2, 3]))
            steps, states = Layout(source, ranks, workers, state, **options).steps(rng.randrange(5), tokens_of)
            seen += itertools.chain(*steps)
            if states:
                assert all(place_in(own) == place_in(states[0]) for own in states)
                parts = tuple(states[0]["parts"])
                state = rng.choice([rng.choice(states), states, {**states[0], "marks": {}}])
        ranks, workers = rng.choice([(1, 1), (2, 1), (3, 1), (1, 2), (1, 3), (1, 4)]) if state else (1, 1)
        seen += Layout(source, ranks, workers, state, **options).rest(tokens_of)
        whole_order = {**order, "parts": parts, "batch_size": 1, "ragged": "pad", "pad_value": -1}
        with source.iter_arrays(**whole_order) as batches:
            whole = [token for batch in batches for token in tokens_of(batch)]
    assert sorted(seen) == sorted(whole)


@settings(max_examples=rounds(200, 20))
@given(
    kind=st.sampled_from(["indexed", "filtered", "windows", "balanced"]), order=orders, ranks=st.sampled_from(RANKS),
    workers=st.integers(1, 3), batch_size=st.integers(1, 9), drop_last=st.booleans(),
    uneven=st.sampled_from(["keep", "pad", "drop"]), taken=st.integers(0, 5),
)  # fmt: skip
def test_equal_ranks(
    folders: dict[str, list[Path]], kind: str, order: dict[str, Any], ranks: int, workers: int, batch_size: int,
    drop_last: bool, uneven: str, taken: int,
) -> None:  # fmt: skip
    """Ranks have as many rows in each step, also those that go on; the number of batches is known."""
    source = opened(folders, kind)
    uneven = "drop" if uneven == "keep" and kind not in COUNTED else uneven
    options = {**order, "batch_size": batch_size, "uneven": uneven, "drop_last": drop_last}
    total = source.iter_arrays(batch_size=1).state() and source.count_rows()
    layout, seen = Layout(source, ranks, workers, **options), list[Any]()
    steps, states = layout.steps(taken, rows_of)
    resumed = Layout(source, ranks, workers, states[0] if states else None, **options)
    for number in range(1000):
        batches = [resumed.next(rank, number % workers) for rank in range(ranks)]
        sizes = {len(rows_of(batch)) for batch in batches if batch is not None}
        if uneven != "keep":
            assert len(sizes) + (None in batches and sizes != set()) <= 1
        if not sizes:
            break
        seen += [row for batch in batches if batch is not None for row in rows_of(batch)]
    seen += itertools.chain(*steps)
    left_out = total % (ranks * batch_size) if drop_last else total % ranks if uneven == "drop" else 0
    assert len({*seen}) == total - left_out if kind != "balanced" else True
    assert len(seen) - len({*seen}) < ranks if kind != "balanced" else True
    fresh = Layout(source, ranks, workers, **options)
    for iterator in fresh.iterators.values():
        assert len(iterator) == sum(1 for _ in iterator)


@settings(max_examples=rounds(200, 20))
@given(
    order=orders, buffer=st.sampled_from([0, 5, 60]), ranks=st.sampled_from([1, 2, 3, 4]), taken=st.integers(0, 5),
    threads=st.sampled_from([1, 2]), arranged=st.sampled_from([{}, {}, *ARRANGED[:2]]),
)  # fmt: skip
def test_damage_ends_the_read(
    folders: dict[str, list[Path]], order: dict[str, Any], buffer: int, ranks: int, taken: int, threads: int,
    arranged: dict[str, Any],
) -> None:  # fmt: skip
    """With one error, after the same batches as a read that goes on from a state before it."""
    source = tfr.dataset(folders["damaged"], schema={"t": "list<int64>"}, threads=threads)
    options = {**order, **arranged, "shuffle_buffer": buffer, "batch_size": 6, "ragged": "pad", "pad_value": -1}

    def ending(batches: Any, most: int | None = None) -> tuple[list[list[int]], str]:
        got = list[list[int]]()
        try:
            for batch in itertools.islice(batches, most):
                got.append(tokens_of(batch))
        except tfr.errors.CorruptRecordError as error:
            return got, str(error)
        return got, ""

    for rank in range(ranks):
        batches = source.iter_arrays(**options, worker=(rank, ranks))
        whole, error = ending(source.iter_arrays(**options, worker=(rank, ranks)))
        assert error or ranks > 1
        begun, _ = ending(batches, taken)
        if taken >= len(whole):  # a state after the last batch, which lacks a row, has the error later
            continue
        state = batches.state()
        if not arranged:  # a mark is that of one rank
            state = {**state, "marks": {}} if taken % 2 and state["version"] == 3 else state
        rest, again = ending(source.iter_arrays(**options, worker=(rank, ranks), state=state))
        assert begun + rest == whole
        assert (again == "") == (error == "")
        tokens = [token for batch in whole for token in batch]
        assert len(tokens) == len({*tokens})


@settings(max_examples=rounds(200, 20))
@given(
    kind=st.sampled_from(KINDS), buffer=st.sampled_from([0, 1, 10, 60, 200]), seed=st.integers(0, 10**6),
    ranks=st.sampled_from(RANKS), workers=st.sampled_from([1, 2, 3]), taken=st.integers(1, 6), unit=st.integers(3, 30),
)  # fmt: skip
def test_any_number_goes_on_with_one_worker(
    folders: dict[str, list[Path]], kind: str, buffer: int, seed: int, ranks: int, workers: int, taken: int, unit: int
) -> None:
    """Also from states without parts, as earlier versions saved them: the batches are those of the one worker."""
    source, options = opened(folders, kind), {"shuffle_buffer": buffer, "seed": seed}
    with chunks_of(unit), quiet():
        batches = source.iter_arrays(**options, batch_size=STEP)
        begun = [rows_of(batch) for batch in itertools.islice(batches, taken)]
        state = json.loads(json.dumps(batches.state()))
        if state["epoch"]:
            return
        expected = [rows_of(batch) for batch in batches] if len(begun) == taken else []
        got, _ = Layout(source, ranks, workers, state, **options, batch_size=STEP // ranks).steps(99, rows_of)
    got = [step for step in got if step]
    if workers == 1 or kind in COUNTED:
        assert got == expected
    else:
        assert sorted(itertools.chain(*got)) == sorted(itertools.chain(*expected))


@settings(max_examples=rounds(300, 30))
@given(
    buffer=st.sampled_from([0, 1, 10, 60]), uneven=st.sampled_from(["keep", "drop", "pad"]),
    least=st.sampled_from([1, 300, 10**9]), kind=st.sampled_from(["indexed", "plain"]),
    seed=st.integers(0, 10**6), unit=st.integers(3, 30),
)  # fmt: skip
def test_workers_share_one_order_by_default(
    folders: dict[str, list[Path]], buffer: int, uneven: str, least: int, kind: str, seed: int, unit: int
) -> None:
    """Of counted files: any layout goes on, and the steps are those of the parts that the state names."""
    rng, source = random.Random(seed), opened(folders, kind)
    uneven = "drop" if kind == "plain" and uneven == "keep" else uneven
    options: dict[str, Any] = {"shuffle_buffer": buffer, "seed": seed, "uneven": uneven}
    ranks, workers = rng.choice([(2, 1), (1, 2), (3, 2), (8, 1), (2, 3), (1, 4)])
    same: dict[str, Any] = {"batch_size": STEP // ranks, **options}
    with chunks_of(unit), mock.patch.object(plan_order, "_LEAST_PART_BYTES", least):
        first = Layout(source, ranks, workers, **same)
        steps, (state, *_) = first.steps(rng.randrange(1, 4), rows_of)
        lanes, turns = state["parts"]
        assert turns == workers
        assert STEP % lanes == 0
        expected, _ = Layout(source, ranks, workers, **same, parts=(lanes, turns)).steps(len(steps), rows_of)
        assert steps == expected
        seen, batch = list(itertools.chain(*steps)), STEP // rng.choice([1, 2, 3, 4])
        second = Layout(source, STEP // batch, rng.randrange(1, 4), state, **{**same, "batch_size": batch})
        seen += second.rest(rows_of)
        later = [Layout(source, ranks, workers, None, 1, **same, **parts) for parts in ({}, {"parts": (lanes, turns)})]
        assert later[0].steps(99, rows_of)[0] == later[1].steps(99, rows_of)[0]
    assert set(seen) <= set(range(TOTAL))
    assert len(set(seen)) > TOTAL - (STEP // batch if uneven == "drop" else 1)
    assert uneven == "pad" or len(set(seen)) == len(seen)


@settings(max_examples=rounds(100, 15))
@given(
    buffer=st.sampled_from([0, 1, 10, 60]), worker=st.sampled_from([(0, 2), (1, 3), (6, 8)]),
    uneven=st.sampled_from(["keep", "drop", "pad"]), seed=st.integers(0, 9), taken=st.integers(0, 4),
)  # fmt: skip
def test_a_state_of_a_worker_with_files_of_its_own_goes_on(
    folders: dict[str, list[Path]], buffer: int, worker: tuple[int, int], uneven: str, seed: int, taken: int
) -> None:
    """Earlier versions saved such states of counted files."""
    source, options = opened(folders, "indexed"), {"shuffle_buffer": buffer, "seed": seed, "worker": worker}
    options |= {"uneven": uneven, "batch_size": 4, "epochs": 2}
    with mock.patch.object(plan_order, "_default_parts", return_value=None):
        batches = source.iter_arrays(**options)
        assert len(list(itertools.islice(batches, taken))) == taken
        state = json.loads(json.dumps(batches.state()))
        expected = [rows_of(batch) for batch in batches]
    assert state["version"] == 2
    assert [rows_of(batch) for batch in source.iter_arrays(**options, state=state)] == expected


@pytest.mark.parametrize("workers", [1, 3, 4])
def test_a_worker_opens_only_the_lanes_of_its_steps(folders: dict[str, list[Path]], workers: int) -> None:
    options = {"batch_size": 2, "parts": 8, "shuffle_buffer": 8, "seed": 0}
    source = opened(folders, "indexed")
    one = source.iter_arrays(**options)
    next(one)
    batches = source.iter_arrays(**options).begin_epoch(0, loader=(0, workers), epochs=1, state=one.state())
    with batches:
        next(batches)
        assert isinstance(batches._batching, LaneBatching)
        lanes = [*batches._batching._lanes.lanes]
    # A step takes rows of two of the eight lanes, so that lanes repeat after four steps.
    assert len(lanes) == {1: 8, 3: 8, 4: 2}[workers]


@pytest.mark.parametrize(("ranks", "rows"), [(2, 5), (3, 7), (4, 9)])
def test_a_rank_without_a_row_of_the_last_step_has_ended(tmp_path: Path, ranks: int, rows: int) -> None:
    tfr.write_tfrecord({"x": list(range(rows))}, tmp_path / "x.tfrecord", write_index=True)
    source, options = tfr.dataset(tmp_path / "x.tfrecord"), {"batch_size": 2, "parts": 1}
    readers = [source.iter_arrays(**options, worker=(rank, ranks)) for rank in range(ranks)]
    seen = [x for reader in readers for batch in reader for x in batch["x"].tolist()]
    assert sorted(seen) == [*range(rows)]
    states = [reader.state() for reader in readers]
    for state in (*states, states):
        for rank in range(ranks):
            assert not [*source.iter_arrays(**options, worker=(rank, ranks), state=state)]
            two = source.iter_arrays(**options, worker=(rank, ranks), state=state, epochs=2)
            assert sum(len(batch["x"]) for batch in two) in {rows // ranks, -(-rows // ranks)}


def test_states_of_ranks_that_do_not_shuffle_are_of_one_read(folders: dict[str, list[Path]]) -> None:
    source, options = opened(folders, "indexed"), {"batch_size": 3, "parts": 2}
    readers = [source.iter_arrays(**options, worker=(rank, 2)) for rank in range(2)]
    seen = [x for reader in readers for x in next(reader)["x"].tolist()]
    states = [reader.state() for reader in readers]
    for rank in range(3):
        rest = source.iter_arrays(**options, worker=(rank, 3), state=states)
        seen += [x for batch in rest for x in batch["x"].tolist()]
    assert sorted(seen) == [*range(TOTAL)]


@pytest.mark.timeout(20)  # for a worker that waits for parts of another one
@pytest.mark.parametrize("arranged", ARRANGED[:2], ids=["bucket", "pack"])
def test_workers_that_share_a_factor_with_the_lanes_end(
    folders: dict[str, list[Path]], arranged: dict[str, Any]
) -> None:
    source = opened(folders, "indexed").select(["t"])
    options = {**arranged, "batch_size": 1, "pad_value": -1, "parts": (2, 1)}
    found = Layout(source, 1, 2, **options).rest(tokens_of)
    assert sorted(found) == [10 * x + at for x in range(TOTAL) for at in range(LENGTHS[x])]


@settings(max_examples=rounds(200, 25))
@given(
    kind=st.sampled_from(["plain", "filtered", "damaged"]), lanes=st.integers(1, 7), batch_size=st.integers(1, 3),
    ranks=st.integers(1, 3), workers=st.integers(1, 3), begun=st.integers(1, 60), seed=st.integers(0, 99),
    arranged=st.sampled_from([{}, ARRANGED[0], ARRANGED[2]]),
)  # fmt: skip
def test_workers_that_are_near_the_end_of_rows_that_nothing_counts(
    folders: dict[str, list[Path]], kind: str, lanes: int, batch_size: int, ranks: int, workers: int, begun: int,
    seed: int, arranged: dict[str, Any],
) -> None:  # fmt: skip
    """A state at any step of ranks with loaders, with parts of unlike length, has each row once."""
    source = opened(folders, kind).select(["t"])
    options = {**arranged, "parts": lanes, "batch_size": batch_size, "shuffle_buffer": 4, "seed": seed}
    options |= {"pad_value": -1} if arranged else {"pad_value": -1, "ragged": "pad"}
    with quiet():
        whole = [token for batch in source.iter_arrays(**options) for token in tokens_of(batch)]
        steps, states = Layout(source, ranks, workers, **options).steps(begun, tokens_of)
        rest = Layout(source, 1, workers + 1, states[-1] if states else None, **options).rest(tokens_of)
    assert sorted([*itertools.chain(*steps), *rest]) == sorted(whole)


@pytest.mark.parametrize("parts", [(4, 1), (4, 2)])
@pytest.mark.parametrize("arranged", [{}, *ARRANGED], ids=["plain", "bucket", "pack", "cut"])
def test_ranks_whose_steps_the_lanes_do_not_divide_have_one_position(
    folders: dict[str, list[Path]], parts: tuple[int, int], arranged: dict[str, Any]
) -> None:
    """At each step, also where lanes have ended: a rank had taken its next step at once."""
    source = opened(folders, "unlike").select(["t"])
    options = {**arranged, "parts": parts, "batch_size": 1, "pad_value": -1, "shuffle_buffer": 4, "seed": 0}
    options |= {} if arranged else {"ragged": "pad"}
    with quiet():
        whole = [token for batch in source.iter_arrays(**options) for token in tokens_of(batch)]
        begun, states = Layout(source, 1, 1, **options).steps(6, tokens_of)
        for steps in (3, 9, 14):
            more, later = Layout(source, 3, 1, states[0], **options).steps(steps, tokens_of)
            assert all(place_in(own) == place_in(later[0]) for own in later)
            rest = Layout(source, 3, 1, later[-1], **options).rest(tokens_of)
            assert sorted([*itertools.chain(*begun, *more), *rest]) == sorted(whole)


@settings(max_examples=rounds(100, 15))
@given(
    missing=st.sets(st.integers(0, 19), max_size=12), seats=st.sampled_from([(1, 2), (1, 3), (2, 1), (3, 1), (2, 2)]),
    begun=st.integers(1, 25), lanes=st.integers(1, 3), counted=st.booleans(),
)  # fmt: skip
def test_a_batch_without_rows_is_a_step(
    tmp_path_factory: pytest.TempPathFactory, missing: set[int], seats: tuple[int, int], begun: int, lanes: int,
    counted: bool,
) -> None:  # fmt: skip
    """Rows that arrays cannot hold are left out of their batch, of which none may be left."""
    path = tmp_path_factory.mktemp("rows") / "x.tfrecord"
    rows = {"x": [*range(20)], "m": [None if x in missing else x for x in range(20)]}
    tfr.write_tfrecord(rows, path, schema={"x": "int64", "m": "int64"}, write_index=counted)
    source, options = tfr.dataset(path, on_error="skip"), {"batch_size": 1, "parts": lanes}

    def numbers(batch: dict[str, Any]) -> list[int]:
        assert len(batch["x"]) == len(batch["m"])
        found: list[int] = batch["x"].tolist()
        return found

    with quiet():
        steps, states = Layout(source, *seats, **options).steps(begun, numbers)
        for state in [*states, states or None]:
            rest = Layout(source, 2, 1, state if states else None, **options).rest(numbers)
            assert sorted([*itertools.chain(*steps), *rest]) == sorted({*range(20)} - missing)


@pytest.mark.timeout(20)  # for epochs that never end
@pytest.mark.parametrize("arranged", [{}, *ARRANGED], ids=["plain", "bucket", "pack", "cut"])
def test_endless_epochs_of_rows_that_are_left_out(tmp_path: Path, arranged: dict[str, Any]) -> None:
    path = tmp_path / "x.tfrecord"
    tfr.write_tfrecord({"t": [None] * 3}, path, schema={"t": "list<int64>"})
    form = arranged or {"ragged": "pad"}
    options = {**form, "pad_value": -1, "batch_size": 2, "epochs": None, "parts": 2}
    source = tfr.dataset(path, on_error="skip", schema={"t": "list<int64>"})
    with quiet():
        batches = source.iter_arrays(**options)
        if "cut" in options:
            with pytest.raises(ValueError, match="the 3 records have no values"):
                next(batches)
        else:
            assert next(batches, None) is None


def test_endless_epochs_of_parts_without_a_batch(tmp_path: Path) -> None:
    paths = [tmp_path / f"{file}.tfrecord" for file in range(2)]
    for file, path in enumerate(paths):
        tfr.write_tfrecord({"x": [*range(5 * file, 5 * file + 5)]}, path)
    few, options = tfr.dataset(paths[0]), {"batch_size": 8, "epochs": None, "parts": 1}
    for worker in ((0, 1), (1, 2)):
        with pytest.raises(ValueError, match="no whole batch can be made of the 5 records"):
            next(few.iter_arrays(**options, drop_last=True, worker=worker))
    # Each epoch deals the files to the parts anew, so a rank without a row in one has some in another.
    shuffled = {"batch_size": 2, "epochs": None, "parts": 2, "shuffle_buffer": 2, "seed": 0}
    for rank in range(2):
        batches = tfr.dataset(paths).filter([("x", "<", 5)]).iter_arrays(**shuffled, worker=(rank, 2))
        assert sum(len(next(batches)["x"]) for _ in range(9)) > 0
