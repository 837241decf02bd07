"""A state taken before damage goes on with the batches that would have followed, and ends as they end."""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from records import example, flip, framed, int64s, written
from rounds import rounds
from training_batches import chunks_of

COUNTS = [9, 7, 14]
SCHEMA = {"x": "int64", "a": "list<int64>"}
PAYLOADS = [example(x=int64s(x), a=int64s(*[x] * (x % 7))) for x in range(sum(COUNTS))]
ARRANGED: list[dict[str, Any]] = [{}, {"bucket_by": "a", "bucket_sizes": (2, 4, 6)}, {"pack": {"a": 8}}]
ON_ERROR: dict[str, Any] = {
    "raise": "raise",
    "stop": "stop",
    "skip": "skip",
    "never": lambda error: False,
    "once": lambda error: error.record % 2 == 0,
}
INTACT = re.compile(r"; the (record|\d+ records) before it (is|are) intact")  # of those that were read
Ending = tuple[list[dict[str, Any]], list[dict[str, Any]], list[str]]  # batches, the states before each, how it ends


def damaged(folder: Path, records: set[int], cut: bool) -> list[Path]:
    """Files in which the payloads of some records are damaged; the last one may be truncated, too."""
    paths, begin = list[Path](), 0
    for file, count in enumerate(COUNTS):
        payloads = PAYLOADS[begin : begin + count]
        path = written(folder / f"{file}.tfrecord", payloads)
        flip(path, *(len(framed(*payloads[:at])) + 14 for at in range(count) if begin + at in records))
        paths.append(path)
        begin += count
    if cut:
        paths[-1].write_bytes(paths[-1].read_bytes()[:-9])
    return paths


def read(batches: tfr.typing.ArrayIterator) -> Ending:
    """All batches up to the end."""
    got, states, ending = list[dict[str, Any]](), [batches.state()], list[str]()
    with warnings.catch_warnings(record=True) as caught, batches:
        warnings.simplefilter("always")
        try:
            for batch in batches:
                got.append({name: array.tolist() for name, array in batch.items()})
                states.append(json.loads(json.dumps(batches.state())))
        except tfr.TFRecordError as error:
            ending.append(f"{type(error).__name__}: {error}")
    ending += [str(each.message) for each in caught if each.category is tfr.errors.StoppedEarlyWarning]
    return got, states, sorted(INTACT.sub("", text) for text in ending)


def check(opened: Callable[..., tfr.typing.ArrayIterator], taken: int) -> None:
    """The batches from a state on, and from a state of these."""
    got, states, ending = read(opened())
    at = min(taken, len(got))
    rest, states, ending_of_rest = read(opened(state=states[at]))
    assert (rest, ending_of_rest) == (got[at:], ending)
    read_again, _, ending_again = read(opened(state=states[len(rest) // 2]))
    assert (read_again, ending_again) == (rest[len(rest) // 2 :], ending)


@settings(max_examples=rounds(300))
@given(
    records=st.sets(st.integers(0, len(PAYLOADS) - 1), max_size=3),
    cut=st.booleans(),
    on_error=st.sampled_from(sorted(ON_ERROR)),
    buffer=st.sampled_from([0, 3, 10, 50]),
    arranged=st.sampled_from(ARRANGED),
    batch_size=st.integers(1, 4),
    worker=st.sampled_from([None, None, (0, 2), (1, 2), (4, 5)]),
    filters=st.sampled_from([None, None, pc.field("x") != 5]),
    mixes=st.booleans(),
    unit=st.integers(1, 12),
    threads=st.sampled_from([1, 2]),
    taken=st.integers(0, 12),
)
def test_a_state_before_damage(
    records: set[int],
    cut: bool,
    on_error: str,
    buffer: int,
    arranged: dict[str, Any],
    batch_size: int,
    worker: tuple[int, int] | None,
    filters: pc.Expression | None,
    mixes: bool,
    unit: int,
    threads: int,
    taken: int,
) -> None:
    options: dict[str, Any] = {"shuffle_buffer": buffer, "seed": 3, "epochs": 2, "batch_size": batch_size, **arranged}
    options |= {"worker": worker, "max_length": 6}
    if not arranged:
        options["pad_to"] = 6
    of_files = {"schema": SCHEMA, "on_error": ON_ERROR[on_error], "threads": threads}
    if "pack" in arranged:
        of_files["columns"] = ["a"]
    with tempfile.TemporaryDirectory() as folder, chunks_of(unit):
        paths = damaged(Path(folder), records, cut)

        def opened(**state: Any) -> tfr.typing.ArrayIterator:
            if not mixes:
                return read_by(tfr.iter_arrays, paths, filters=filters, **of_files, **options, **state)
            parts = [tfr.dataset(part, filters=filters, **of_files) for part in (paths[:2], paths[2])]
            return tfr.mix(parts, [0.6, 0.4], stop="all").iter_arrays(**options, **state)

        check(opened, taken)


@pytest.mark.parametrize("form", ["windows", "balanced"])
@pytest.mark.parametrize("buffer", [0, 3, 50])
def test_of_derived_datasets(tmp_path: Path, form: str, buffer: int) -> None:
    rows = [example(**{"x": int64s(n), "c": int64s(n % 3), "steps/a": int64s(*range(n % 4))}) for n in range(20)]
    path = written(tmp_path / "a.tfrecord", rows)
    dataset = tfr.dataset(path, schema={"x": "int64", "c": "int64", "steps/a": "list<int64>"})
    source: Any = tfr.windows(dataset, length=2) if form == "windows" else tfr.mix(dataset, balance="c", stop="all")
    flip(path, len(framed(*rows[:15])) + 14)
    options: dict[str, Any] = {"batch_size": 2, "shuffle_buffer": buffer, "seed": 0, "ragged": "pad"}
    got, _, ending = read(source.iter_arrays(**options))
    assert got
    assert ending
    for taken in range(len(got) + 1):
        check(lambda **state: source.iter_arrays(**options, **state), taken)


@pytest.mark.parametrize("on_error", ["raise", "never", "stop"])
@pytest.mark.parametrize("options", [{"shuffle_buffer": 30}, {"bucket_by": "a", "bucket_sizes": [2, 4, 6]}])
def test_rows_that_wait_are_delivered_before_the_end(tmp_path: Path, options: dict[str, Any], on_error: str) -> None:
    paths = damaged(tmp_path, set(), True)
    options = {"batch_size": 3, "shuffle_buffer": 0, "seed": 0, "max_length": 6, "ragged": "pad", **options}
    options |= {"schema": SCHEMA, "on_error": ON_ERROR[on_error]}
    got, _, ending = read(read_by(tfr.iter_arrays, paths[-1], **options))
    assert sum(len(batch["x"]) for batch in got) == COUNTS[-1] - 1
    assert len(ending) == 1
    for taken in range(len(got) + 1):
        check(lambda **state: read_by(tfr.iter_arrays, paths[-1], **options, **state), taken)
