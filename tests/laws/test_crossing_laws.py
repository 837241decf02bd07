"""Columns, filter, offset, limit and on_error, combined: every reader has the rows of a loop over the records.

In whatever parts the files are read: alone, in a list, as pieces, pickled; with indexes or without them.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import blocks_of, decoded_by, matching_records_only
from records import blobs, example, floats, int64s
from rounds import rounds
from tfrecord_io.base.options.on_damage import OnDamage

f = pc.field
SCHEMA = {"id": "int64", "a": "int64", "b": "float32", "c": "string"}
VALUES: dict[str, dict[Any, bytes]] = {
    "a": {0: int64s(0), 1: int64s(1), 2: int64s(2), "bad": blobs(b"x")},
    "b": {0.0: floats(0.0), 1.5: floats(1.5), "bad": floats(1.0, 2.0)},
    "c": {"u": blobs(b"u"), "v": blobs(b"v"), "bad": blobs(b"\xff")},
}
Row = dict[str, Any]
# By condition: the columns that it names, and what it is of a row.
CONDITIONS: list[tuple[Any, list[str], Callable[[Row], bool]]] = [
    (None, [], lambda row: True),
    (f("id") >= 3, ["id"], lambda row: row["id"] >= 3),
    (f("a") >= 1, ["a"], lambda row: row["a"] is not None and row["a"] >= 1),
    ([("b", "==", None)], ["b"], lambda row: row["b"] is None),
    ((f("a") == 1) & (f("c") != "u"), ["a", "c"], lambda row: row["a"] == 1 and row["c"] not in (None, "u")),
]


@dataclass(frozen=True)
class View:
    """Which rows and columns are read."""

    columns: list[str]
    condition: int
    offset: int
    limit: int | None

    def of(self, dataset: tfr.Dataset) -> tfr.Dataset:
        filters, _, _ = CONDITIONS[self.condition]
        dataset = dataset.offset(self.offset) if self.offset else dataset
        dataset = dataset if filters is None else dataset.filter(filters)
        return (dataset if self.limit is None else dataset.limit(self.limit)).select(self.columns)

    def rows(self, rows: list[Row], on_error: str) -> list[Row] | int:
        """The rows; with "raise", the number of the record that is an error instead, if there is one."""
        _, named, passes = CONDITIONS[self.condition]
        found, damage = list[Row](), OnDamage.of(on_error)
        left = self.offset
        for number, row in enumerate(rows):
            if self.limit is not None and len(found) >= self.limit:
                break
            if left and damage.is_strict:  # by its length
                left -= 1
                continue
            is_read = left or (fits(row, named) and passes(row))
            if not fits(row, [*named, *self.columns] if is_read else named):
                if damage.goes_on:
                    continue
                return number if damage.is_strict else found
            if left:
                left -= 1
            elif passes(row):
                found.append({name: row[name] for name in self.columns})
        return found


def fits(row: Row, names: list[str]) -> bool:
    return all(row[name] != "bad" for name in names)


@contextmanager
def in_files(rows: list[Row], cuts: list[int], suffixes: list[str], indexed: bool) -> Iterator[list[Path]]:
    """Files with the rows up to each cut."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{at}.tfrecord{suffix}") for at, suffix in enumerate(suffixes)]
        for path, begin, end in zip(paths, [0, *cuts], [*cuts, len(rows)], strict=True):
            with tfr.RecordWriter(path) as writer:
                for row in rows[begin:end]:
                    given = {
                        name: VALUES[name][value] for name, value in row.items() if name != "id" and value is not None
                    }
                    writer.write(example(id=int64s(row["id"]), **given))
            if indexed and path.suffix != ".gz" and begin < end:
                tfr.build_index(tfr.dataset(path, schema={"id": "int64"}), columns=["id"])
        yield paths


def readers(draw: Callable[[Any], Any]) -> dict[str, Callable[[tfr.Dataset], Any]]:
    """Readers of all rows as dicts."""
    size = draw(st.integers(1, 9))

    def batches(dataset: tfr.Dataset) -> list[Row]:
        with tfr.open_reader(dataset, batch_size=size) as reader:
            return [row for batch in reader for row in batch.to_pylist()]

    def joined(parts: list[Any]) -> list[Row]:
        parts = pickle.loads(pickle.dumps(parts)) if draw(st.booleans()) else parts
        table = draw(st.sampled_from([tfr.read_table, lambda parts: tfr.dataset(parts).to_table()]))(parts)
        return table.to_pylist()  # type: ignore[no-any-return]

    return {
        "table": lambda dataset: tfr.read_table(dataset).to_pylist(),
        "to_table": lambda dataset: dataset.to_table().to_pylist(),
        "batches": batches,
        "stream": lambda dataset: pa.table(dataset).to_pylist(),
        "arrays": lambda dataset: rows_of(dataset.to_arrays(missing="mask")),
        "list": lambda dataset: joined([dataset]),
        "sum": lambda dataset: (dataset + dataset).to_table().to_pylist(),
        "pieces": lambda dataset: [row for piece in dataset.pieces(size) for row in piece.read().to_pylist()],
        "list of pieces": lambda dataset: joined([*dataset.pieces(size)]),
        "training": lambda dataset: [
            row for batch in dataset.iter_arrays(batch_size=size, missing="mask") for row in rows_of(batch)
        ],
        "count": lambda dataset: [{}] * dataset.count_rows(),
    }


def rows_of(arrays: dict[str, Any]) -> list[Row]:
    return [
        dict(zip(arrays, values, strict=True)) for values in zip(*(a.tolist() for a in arrays.values()), strict=True)
    ]


@contextmanager
def some_mode(draw: Callable[[Any], Any]) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(blocks_of(draw(st.sampled_from([1, 50, 1 << 20]))))
        stack.enter_context(decoded_by([(draw(st.booleans()), draw(st.sampled_from([None, 1, 300])))]))
        if draw(st.booleans()):
            stack.enter_context(matching_records_only())
        yield


ROWS = st.lists(
    st.fixed_dictionaries(
        {name: st.sampled_from([None, *values, *list(values)[:-1] * 3]) for name, values in VALUES.items()}
    ),
    max_size=12,
).map(lambda rows: [{"id": number, **row} for number, row in enumerate(rows)])
VIEWS = st.builds(
    View,
    st.lists(st.sampled_from(list(SCHEMA)), min_size=1, unique=True),
    st.integers(0, len(CONDITIONS) - 1),
    st.sampled_from([0, 0, 1, 4]),
    st.sampled_from([None, None, 0, 2, 5]),
)


@settings(max_examples=rounds(400))
@given(
    data=st.data(),
    rows=ROWS,
    view=VIEWS,
    on_error=st.sampled_from(OnDamage.names(OnDamage.needs_no_report)),
    indexed=st.booleans(),
)
def test_every_reader_has_the_rows_of_a_loop(
    data: st.DataObject, rows: list[Row], view: View, on_error: Any, indexed: bool
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=2)))
    suffixes = data.draw(st.lists(st.sampled_from(["", "", ".gz"]), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    expected = view.rows(rows, on_error)
    with in_files(rows, cuts, suffixes, indexed) as paths, some_mode(data.draw), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        threads = data.draw(st.sampled_from([1, 2]))
        dataset = view.of(tfr.dataset(paths, schema=SCHEMA, on_error=on_error, threads=threads))
        for name, read in readers(data.draw).items():
            if not applies(name, view, on_error):
                continue
            if isinstance(expected, int):
                with pytest.raises((tfr.TFRecordError, pa.ArrowException)):
                    read(dataset)
                continue
            own = expected * (2 if name == "sum" else 1)
            assert read(dataset) == ([{}] * len(own) if name == "count" else own), name


def applies(name: str, view: View, on_error: str) -> bool:
    """Whether a reader has this selection, and these errors of values.

    Pieces know nothing of damage before them, training checks the values of all rows, and headers are counted.
    """
    is_part = view.offset > 0 or view.limit is not None
    if "pieces" in name and (is_part or OnDamage.of(on_error).ends_quietly):
        return False
    if name in ("sum", "list") and OnDamage.of(on_error).ends_quietly:
        return False
    return OnDamage.of(on_error).goes_on or name not in ("training", "count")
