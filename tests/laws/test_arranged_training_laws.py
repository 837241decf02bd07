"""Buckets and packed rows: those of a plain loop over the rows of the same read, exact over resumes and workers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from training_batches import chunks_of, opened, state_between

COUNTS = [9, 0, 7, 14, 5]
TOTAL = sum(COUNTS)
LENGTHS = np.random.default_rng(5).integers(0, 9, (TOTAL, 2))  # of the lists `a` and `b` of each row
SIZES = (2, 3, 5)

Row = tuple[int, list[int], list[int]]
Batch = list[Row]


def row(x: int) -> Row:
    return x, [x + 1] * int(LENGTHS[x, 0]), [-x - 1] * int(LENGTHS[x, 1])


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, begin = tmp_path_factory.mktemp("lists"), 0
    found = []
    for file, count in enumerate(COUNTS):
        rows = [row(x) for x in range(begin, begin + count)]
        begin += count
        x, a, b = zip(*rows, strict=True) if rows else ([], [], [])
        schema = {"x": tfr.scalar("int64"), "a": tfr.list_("int64"), "b": tfr.list_("int64")}
        with warnings.catch_warnings(action="ignore"):  # of the file without records
            tfr.write_tfrecord({"x": x, "a": a, "b": b}, folder / f"{file}.tfrecord", schema=schema)
        found.append(folder / f"{file}.tfrecord")
    return found


def epochs_of_rows(source: Any, options: dict[str, Any]) -> list[list[Row]]:
    """The rows of two epochs, in the order of a read with batches of one row."""
    orders = []
    for epochs in (1, 2):
        with opened(source, {**options, "epochs": epochs, "batch_size": 1, "ragged": "object"}) as batches:
            orders.append([int(batch["x"][0]) for batch in batches])
    first, both = orders
    assert both[: len(first)] == first
    return [[row(x) for x in first], [row(x) for x in both[len(first) :]]]


# ---- what a person would write


def plain_buckets(rows: list[Row], by: str, batch_size: int, drop_last: bool) -> Iterator[tuple[int, Batch]]:
    buckets: dict[int, Batch] = {size: [] for size in SIZES}
    for own in rows:
        longest = min(max(len(own[1]) if "a" in by else 0, len(own[2]) if "b" in by else 0), SIZES[-1])
        size = next(size for size in SIZES if longest <= size)
        buckets[size].append(own)
        if len(buckets[size]) == batch_size * SIZES[-1] // size:
            yield size, buckets[size]
            buckets[size] = []
    for size, rest in buckets.items():
        if rest and not drop_last:
            yield size, rest


def plain_packs(rows: list[Row], room: dict[str, int], batch_size: int, drop_last: bool) -> Iterator[list[Batch]]:
    bins: list[Batch] = []
    for _, a, b in rows:
        own = (0, a[: room["a"]], b[: room.get("b", 0)])
        fitting = (
            packed
            for packed in bins
            if sum(len(r[1]) for r in packed) + len(own[1]) <= room["a"]
            and sum(len(r[2]) for r in packed) + len(own[2]) <= room.get("b", 0)
        )
        if (packed := next(fitting, None)) is not None:
            packed.append(own)
            continue
        if len(bins) == batch_size:
            yield bins
            bins = []
        bins.append([own])
    if bins and (len(bins) == batch_size or not drop_last):
        yield bins


def padded(lists: list[list[int]], size: int, fill: int = 0) -> list[list[int]]:
    return [values[:size] + [fill] * (size - len(values)) for values in lists]


def arrays_of_bucket(size: int, rows: Batch, by: str) -> dict[str, Any]:
    lists = {"a": [a[: SIZES[-1]] for _, a, _ in rows], "b": [b[: SIZES[-1]] for _, _, b in rows]}
    arrays: dict[str, Any] = {"x": [x for x, _, _ in rows]}
    for name, own in lists.items():
        width = size if name in by else max(map(len, own))
        arrays |= {name: padded(own, width), f"{name}/length": list(map(len, own))}
    return arrays


def arrays_of_pack(bins: list[Batch], room: dict[str, int]) -> dict[str, Any]:
    arrays = {}
    bins = [[own for own in packed if own[1] or own[2]] for packed in bins]  # a row has one segment in all columns
    for name, size in room.items():
        lists = [[own[1 if name == "a" else 2] for own in packed] for packed in bins]
        arrays[name] = padded([[x for own in packed for x in own] for packed in lists], size)
        ids = [[at for at, own in enumerate(packed, 1) for _ in own] for packed in lists]
        arrays[f"{name}/segment_ids"] = padded(ids, size)
        arrays[f"{name}/positions"] = padded(
            [[at for own in packed for at in range(len(own))] for packed in lists], size
        )
    return arrays


# ---- the laws

SOME = (pc.field("x") >= 3) & (pc.field("x") != 12)
FEW = {"shuffle_buffer": 10, "worker": (0, 2), "filters": SOME, "offset": 0, "limit": 11}
reads = st.fixed_dictionaries(
    {
        "shuffle_buffer": st.sampled_from([0, 1, 3, 10, 50]),
        "worker": st.sampled_from([(0, 1), (0, 1), (0, 2), (1, 2), (4, 5), (2, 6)]),
        "filters": st.sampled_from([None, None, SOME]),
        "offset": st.sampled_from([0, 0, 0, 4, 17]),
        "limit": st.sampled_from([None, None, None, 0, 11]),
    }
)


@settings(max_examples=rounds(400, 15))
@given(
    read=reads,
    by=st.sampled_from(["a", "b", "ab"]),
    batch_size=st.integers(1, 4),
    drop_last=st.booleans(),
    unit=st.integers(1, 12),
    taken=st.integers(0, 12),
)
def test_batches_of_buckets(
    paths: list[Path], read: dict[str, Any], by: str, batch_size: int, drop_last: bool, unit: int, taken: int
) -> None:
    options = {**read, "seed": 3, "threads": 1}
    arranged = {"bucket_by": list(by), "bucket_sizes": SIZES, "max_length": SIZES[-1], "ragged": "pad"}
    arranged |= {"batch_size": batch_size, "drop_last": drop_last, "epochs": 2}
    with chunks_of(unit):
        expected = [
            arrays_of_bucket(size, rows, by)
            for epoch in epochs_of_rows(paths, options)
            for size, rows in plain_buckets(epoch, by, batch_size, drop_last)
        ]
        state_between(paths, {**options, **arranged}, expected, taken)


@settings(max_examples=rounds(400, 15))
@given(
    read=reads,
    room=st.sampled_from([{"a": 8}, {"a": 8, "b": 8}, {"a": 12, "b": 9}, {"a": 30, "b": 5}]),
    batch_size=st.integers(1, 4),
    drop_last=st.booleans(),
    unit=st.integers(1, 12),
    taken=st.integers(0, 12),
)
@example(read=FEW, room={"a": 8}, batch_size=3, drop_last=True, unit=1, taken=0)  # the first epoch has no batch
def test_packed_batches(
    paths: list[Path],
    read: dict[str, Any],
    room: dict[str, int],
    batch_size: int,
    drop_last: bool,
    unit: int,
    taken: int,
) -> None:
    options = {**read, "seed": 3, "threads": 1}
    arranged = {"pack": room, "max_length": room, "columns": list(room)}
    arranged |= {"batch_size": batch_size, "drop_last": drop_last, "epochs": 2}
    with chunks_of(unit):
        expected = [
            arrays_of_pack(bins, room)
            for epoch in epochs_of_rows(paths, options)
            for bins in plain_packs(epoch, room, batch_size, drop_last)
        ]
        state_between(paths, {**options, **arranged}, expected, taken)


@settings(max_examples=rounds(200, 10))
@given(
    read=st.fixed_dictionaries(
        {"shuffle_buffer": st.sampled_from([0, 3, 50]), "worker": st.sampled_from([(0, 1), (1, 2)])}
    ),
    weights=st.sampled_from([(0.5, 0.5), (0.9, 0.1)]),
    packs=st.booleans(),
    batch_size=st.integers(1, 4),
    unit=st.integers(1, 12),
    taken=st.integers(0, 12),
)
def test_batches_of_a_mixture(
    paths: list[Path], read: dict[str, Any], weights: Any, packs: bool, batch_size: int, unit: int, taken: int
) -> None:
    options = {**read, "seed": 3}
    parts = [tfr.dataset([paths[at] for at in part], threads=1) for part in ((0, 2), (3, 4))]
    mixture = tfr.mix(parts, weights, seed=1, stop="all")
    room = {"a": 8, "b": 8}
    arranged: dict[str, Any] = (
        {"pack": room, "max_length": room} if packs else {"bucket_by": "a", "bucket_sizes": SIZES}
    )
    arranged |= {"batch_size": batch_size, "epochs": 2} | ({} if packs else {"max_length": SIZES[-1], "ragged": "pad"})
    with chunks_of(unit):
        expected = []
        for epoch in epochs_of_rows(mixture, options):
            if packs:
                expected += [arrays_of_pack(bins, room) for bins in plain_packs(epoch, room, batch_size, False)]
            else:
                expected += [
                    arrays_of_bucket(size, rows, "a") for size, rows in plain_buckets(epoch, "a", batch_size, False)
                ]
        state_between(mixture.select(["a", "b"]) if packs else mixture, {**options, **arranged}, expected, taken)
