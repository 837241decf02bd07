"""Documents that are cut: the packed rows of a plain loop over the documents of the same read, exact over resumes."""

from __future__ import annotations

import warnings
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.rows.training import plan_order
from training_batches import as_lists, chunks_of, going_on, opened, state_between

COUNTS = [9, 0, 7, 14, 5]
TOTAL = sum(COUNTS)
LENGTHS = np.random.default_rng(6).choice([0, 1, 2, 3, 5, 9, 30], TOTAL)
BAD = {4, 11, 12, 30}  # records whose second list has an item without a value
SOME = (pc.field("x") >= 3) & (pc.field("x") != 12)
Document = tuple[list[int], list[float]]


def document(x: int) -> Document:
    values = [100 * x + at for at in range(int(LENGTHS[x]))]
    return values, [value / 2 for value in values]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, begin = tmp_path_factory.mktemp("documents"), 0
    found = []
    for file, count in enumerate(COUNTS):
        numbers = range(begin, begin + count)
        begin += count
        rows = {"x": [*numbers], "a": [document(x)[0] for x in numbers], "b": [document(x)[1] for x in numbers]}
        schema = {"x": "int64", "a": tfr.list_("int64"), "b": tfr.list_("float32")}
        with warnings.catch_warnings(action="ignore"):  # of the file without records
            tfr.write_tfrecord(rows, folder / f"{file}.tfrecord", schema=schema, write_index=True)
        found.append(folder / f"{file}.tfrecord")
    return found


def plain_rows(documents: list[Document], size: int, ends: dict[str, Any] | None, most: int | None) -> list[Any]:
    """Packed rows of both columns, one value after the other: value, segment and position."""
    rows: list[list[tuple[int, float, int, int]]] = []
    for a, b in documents:
        own = list(zip(a[:most], b[:most], strict=True))
        if own and ends is not None:
            own.append((ends["a"], ends["b"]))
        position = 0
        for at, (first, second) in enumerate(own):
            if not rows or len(rows[-1]) == size:
                rows.append([])
                position = 0
            is_new = at == 0 or not rows[-1]
            segment = (rows[-1][-1][2] if rows[-1] else 0) + is_new
            rows[-1].append((first, second, segment, position))
            position += 1
    return rows


def plain_batches(rows: list[Any], size: int, batch_size: int, drop_last: bool) -> list[dict[str, Any]]:
    batches = []
    for begin in range(0, len(rows), batch_size):
        part = rows[begin : begin + batch_size]
        if drop_last and len(part) < batch_size:
            continue
        arrays: dict[str, Any] = {}
        for at, name in enumerate("ab"):
            for suffix, item in (("", at), ("/segment_ids", 2), ("/positions", 3)):
                arrays[name + suffix] = [[v[item] for v in row] + [0] * (size - len(row)) for row in part]
            ids = arrays[f"{name}/segment_ids"]
            begins = [i * size + j for i, row in enumerate(ids) for j in range(size) if j == 0 or row[j] != row[j - 1]]
            arrays[f"{name}/cu_seqlens"] = [*begins, len(ids) * size]
            lengths = np.diff(arrays[f"{name}/cu_seqlens"])
            arrays[f"{name}/max_seqlen"] = int(lengths.max())
        batches.append(arrays)
    return batches


def order_of(source: Any, options: dict[str, Any]) -> list[list[int]]:
    """The numbers of the documents of two epochs, in the order of a read with batches of one row.

    Workers have files of their own, as those that pack rows do.
    """
    orders = []
    for epochs in (1, 2):
        with mock.patch.object(plan_order, "_default_parts", return_value=None):
            batches = opened(source, {**options, "epochs": epochs, "batch_size": 1})
        with batches:
            orders.append([int(batch["x"][0]) for batch in batches])
    first, both = orders
    return [first, both[len(first) :]]


def check(source: Any, options: dict[str, Any], expected: list[dict[str, Any]], taken: int) -> None:
    """The batches of a read, exact over resumes, whose state holds one document at most."""
    state = state_between(source, options, expected, taken)
    assert len(state["held"]) <= 1


reads = st.fixed_dictionaries(
    {
        "shuffle_buffer": st.sampled_from([0, 1, 3, 10, 50]),
        "worker": st.sampled_from([(0, 1), (0, 1), (0, 2), (1, 2), (4, 5), (2, 6)]),
        "filters": st.sampled_from([None, None, SOME]),
        "offset": st.sampled_from([0, 0, 0, 4, 17]),
        "limit": st.sampled_from([None, None, None, 0, 11]),
    }
)
forms = st.fixed_dictionaries(
    {
        "size": st.sampled_from([1, 2, 4, 7, 64]),
        "ends": st.sampled_from([None, {"a": -1, "b": 0.25}]),
        "most": st.sampled_from([None, None, 1, 6]),
        "batch_size": st.integers(1, 4),
        "drop_last": st.booleans(),
    }
)


def keywords_of(form: dict[str, Any]) -> dict[str, Any]:
    pack = {"a": form["size"], "b": form["size"]}
    return {
        "pack": pack,
        "cut": True,
        "end_token": form["ends"],
        "cu_seqlens": True,
        "max_length": form["most"],
        "batch_size": form["batch_size"],
        "drop_last": form["drop_last"],
    }


def expected_of(epochs: list[list[int]], form: dict[str, Any]) -> list[dict[str, Any]]:
    found = []
    for numbers in epochs:
        rows = plain_rows([document(x) for x in numbers], form["size"], form["ends"], form["most"])
        found += plain_batches(rows, form["size"], form["batch_size"], form["drop_last"])
    return found


@settings(max_examples=rounds(600, 25))
@given(read=reads, form=forms, unit=st.integers(1, 12), taken=st.integers(0, 40), threads=st.sampled_from([1, 1, 2]))
def test_rows_of_files(
    paths: list[Path], read: dict[str, Any], form: dict[str, Any], unit: int, taken: int, threads: int
) -> None:
    options = {**read, "seed": 3, "threads": threads}
    with chunks_of(unit):
        expected = expected_of(order_of(paths, options), form)
        check(paths, {**options, **keywords_of(form), "columns": ["a", "b"], "epochs": 2}, expected, taken)


@settings(max_examples=rounds(200, 10))
@given(
    form=forms,
    workers=st.integers(1, 7),
    buffer=st.sampled_from([0, 5]),
    filters=st.sampled_from([None, SOME]),
    stops=st.lists(st.integers(0, 20), min_size=7, max_size=7),
)
def test_ranks_have_each_value_once(
    paths: list[Path], form: dict[str, Any], workers: int, buffer: int, filters: Any, stops: list[int]
) -> None:
    """Each of them stops somewhere, and goes on."""
    values = list[int]()
    for rank, stop in zip(range(workers), stops, strict=False):
        keywords = {**keywords_of({**form, "drop_last": False}), "columns": ["a", "b"], "filters": filters, "seed": 1}
        keywords |= {"worker": (rank, workers), "shuffle_buffer": buffer, "threads": 1}
        with opened(paths, keywords) as batches:
            read = list(islice(batches, stop))
            state = batches.state()
        read += going_on(opened(paths, {**keywords, "state": state}))
        values += [v for batch in read for v in batch["a"][batch["a/segment_ids"] > 0].tolist() if v >= 0]
    numbers = [x for x in range(TOTAL) if filters is None or (x >= 3 and x != 12)]
    assert sorted(values) == [value for x in numbers for value in document(x)[0][: form["most"]]]


@settings(max_examples=rounds(200, 10))
@given(
    buffer=st.sampled_from([0, 3, 50]),
    worker=st.sampled_from([(0, 1), (1, 2)]),
    weights=st.sampled_from([(0.5, 0.5), (0.9, 0.1)]),
    form=forms,
    unit=st.integers(1, 12),
    taken=st.integers(0, 40),
)
def test_rows_of_a_mixture(
    paths: list[Path], buffer: int, worker: Any, weights: Any, form: dict[str, Any], unit: int, taken: int
) -> None:
    options = {"shuffle_buffer": buffer, "worker": worker, "seed": 3}
    parts = [tfr.dataset([paths[at] for at in part], threads=1) for part in ((0, 2), (3, 4))]
    mixture = tfr.mix(parts, weights, seed=1, stop="all")
    with chunks_of(unit):
        expected = expected_of(order_of(mixture, options), form)
        check(mixture.select(["a", "b"]), {**options, **keywords_of(form), "epochs": 2}, expected, taken)


@settings(max_examples=rounds(100, 10))
@given(form=forms, seed=st.sampled_from([None, 1]), chosen=st.booleans())
def test_rows_by_number(paths: list[Path], form: dict[str, Any], seed: int | None, chosen: bool) -> None:
    data = tfr.dataset(paths)
    data = data.filter([("x", "!=", 12)]) if chosen else data
    source = data.select(["a", "b"]).to_grain(**keywords_of(form), seed=seed)
    batches = [as_lists(source[number]) for number in range(len(source))]
    if seed is None:
        assert batches == expected_of([[x for x in range(TOTAL) if not (chosen and x == 12)]], form)
    values = [
        v
        for batch in batches
        for row, ids in zip(batch["a"], batch["a/segment_ids"], strict=True)
        for v, segment in zip(row, ids, strict=True)
        if segment and v >= 0
    ]
    assert len(values) == len(set(values))


@settings(max_examples=rounds(200, 15))
@given(
    buffer=st.sampled_from([0, 3, 50]), form=forms, unit=st.integers(1, 12), taken=st.integers(0, 30),
    worker=st.sampled_from([(0, 1), (1, 2)]),
)  # fmt: skip
def test_documents_that_are_left_out(
    damaged: list[Path], buffer: int, form: dict[str, Any], unit: int, taken: int, worker: Any
) -> None:
    """Whole documents are left out, once each, and the others follow each other."""
    options = {"shuffle_buffer": buffer, "worker": worker, "seed": 3, "threads": 1}
    with chunks_of(unit), warnings.catch_warnings(action="ignore"):
        orders = [[x for x in order if x not in BAD] for order in order_of(damaged, {**options, "columns": ["x"]})]
        expected = expected_of(orders, form)
        keywords = {**options, **keywords_of(form), "columns": ["a", "b"], "on_error": "skip", "epochs": 2}
        check(damaged, keywords, expected, taken)
        with opened(damaged, {**keywords, "epochs": 1}) as batches:
            for _ in batches:
                pass
            if worker == (0, 1):
                assert len(batches.report.skipped) == len(BAD)
        read_on_after_documents_that_are_left_out(damaged, {**keywords, "epochs": 1}, taken)


def read_on_after_documents_that_are_left_out(damaged: list[Path], keywords: dict[str, Any], taken: int) -> None:
    """A read that goes on counts left out documents: none of those before its position, the others once."""
    plain = {name: keywords[name] for name in ("shuffle_buffer", "worker", "seed", "threads", "on_error", "epochs")}
    with opened(damaged, {**plain, "columns": ["x"], "batch_size": 1}) as batches:
        order = [int(batch["x"][0]) for batch in batches]
    with opened(damaged, keywords) as batches:
        for _ in islice(batches, taken):
            pass
        state = batches.state()
    if state["epoch"]:
        return
    with opened(damaged, {**keywords, "state": state}) as batches:
        for _ in batches:
            pass
        assert len(batches.report.skipped) == len(BAD.intersection(order[state["given"] :])), state


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The documents in two files, of which some have an item without a value."""
    folder = tmp_path_factory.mktemp("damaged")
    schema = {"x": "int64", "a": tfr.list_("int64"), "b": tfr.list_("float32")}
    for file, numbers in enumerate([range(16), range(16, TOTAL)]):
        lists = [None if x in BAD else document(x)[1] for x in numbers]
        rows = {"x": [*numbers], "a": [document(x)[0] for x in numbers], "b": lists}
        tfr.write_tfrecord(rows, folder / f"{file}.tfrecord", schema=schema)
    return [folder / "0.tfrecord", folder / "1.tfrecord"]
