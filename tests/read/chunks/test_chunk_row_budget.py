"""Where batches end by the bytes of payloads and of integers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import blocks_of, engine_of
from records import blobs, example, int64s, written
from tfrecord_io.bytes.engine.contract import Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout
from tfrecord_io.read.chunks.chunk import BatchLimit, RowBudget

SCHEMA = pa.schema({"x": pa.list_(pa.int64()), "s": pa.binary()})
ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 30)), min_size=1, max_size=30)


@given(
    files=st.lists(ROWS, min_size=1, max_size=3),
    limit=st.integers(1, 2000),
    engine=st.sampled_from(["native", "reference_engine"]),
)
def test_neither_payloads_nor_integers_exceed_the_limit(
    files: list[list[tuple[int, int]]], limit: int, engine: str
) -> None:
    payloads = [[example(x=int64s(*range(n)), s=blobs(b"." * size)) for n, size in rows] for rows in files]
    sizes = [len(payload) for file in payloads for payload in file]
    with tempfile.TemporaryDirectory() as folder, engine_of(engine):
        paths = [written(Path(folder) / str(i), file) for i, file in enumerate(payloads)]
        with tfr.open_reader(tfr.dataset(paths, threads=1), schema=SCHEMA, batch_bytes=limit) as reader:
            batches = list(reader)
    at = 0
    for batch in batches:
        end = at + len(batch)
        integers = 8 * len(batch["x"].flatten())
        assert len(batch) == 1 or (sum(sizes[at:end]) <= limit and integers <= limit)
        if end < len(sizes):  # the next record might have been too much
            assert sum(sizes[at : end + 1]) > limit or integers + 8 * sizes[end] > limit
        at = end
    assert pa.Table.from_batches(batches) == tfr_table(files)


def tfr_table(files: list[list[tuple[int, int]]]) -> pa.Table:
    rows = [row for file in files for row in file]
    return pa.table({"x": [list(range(n)) for n, _ in rows], "s": [b"." * size for _, size in rows]}, SCHEMA)


@pytest.mark.parametrize("threads", [2, 4])
def test_batches_do_not_depend_on_threads(native_engine: None, tmp_path: Path, threads: int) -> None:
    payloads = [example(x=int64s(*range(i * i % 97)), s=blobs(b"." * (i * 7 % 31))) for i in range(3000)]
    path = written(tmp_path / "a", payloads)

    def lengths(count: int, limit: int) -> list[int]:
        with (
            blocks_of(3000),
            tfr.open_reader(tfr.dataset(path, threads=count), schema=SCHEMA, batch_bytes=limit) as reader,
        ):
            return [len(batch) for batch in reader]

    for limit in (500, 5000, 60_000):
        one = lengths(1, limit)
        assert len(one) > 2
        assert lengths(threads, limit) == one


def test_lists_of_integers_may_be_in_columns_that_are_not_single_values() -> None:
    plans = {
        PlanColumn("x", Kind.INT64, Layout.LIST): True,
        PlanColumn("x", Kind.INT64, Layout.SCALAR): False,
        PlanColumn("x", Kind.FLOAT, Layout.LIST): False,
        PlanColumn("x"): True,
    }
    for column, expected in plans.items():
        budget = RowBudget(100, 1000)
        budget.fit_to(Plan((column,), unknown="skip"))
        assert budget.max_integer_bytes == (1000 if expected else None)


def test_without_integers_to_count_the_limit_is_that_of_payloads() -> None:
    class Holds:
        value_bytes, integer_bytes = 10, 80

    assert BatchLimit(Holds(), 100).max_bytes == 100  # type: ignore[arg-type]
    limit = BatchLimit(Holds(), 100, 160)  # type: ignore[arg-type]
    assert limit.max_bytes == 10 + (160 - 80) // 8
    assert not limit.extend()
