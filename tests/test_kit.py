"""An adapter, an engine and a tool of another distribution, made of the kit alone.

The format, the compression and the encoding of docs/extend.md are, too; their suites run in the tests of the tables of
which they are rows.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tfrecord_io as tfr
from tfrecord_io.kit import Column, DistributedWriter, Report, Scan, Summary, WriteOptions, counted, open_output
from tfrecord_io.testing import AdapterSuite


class TestAnAdapter(AdapterSuite):
    """Of a library whose frames are scans, and whose values are those of Python."""

    def open(self, path: Any, **keywords: Any) -> Scan:
        return Scan.of(path, **keywords)

    def rows(self, opened: Scan, names: list[str] | None = None) -> dict[str, list[Any]]:
        scan = opened if names is None else opened.only(names)
        table = scan.read()
        return {field.name: Column(field).to_python(table[field.name]) for field in table.schema}

    def above(self, opened: Scan, least: int) -> Scan:
        return opened.filter(pc.field("ints") > least)

    def first(self, opened: Scan, n: int) -> Scan:
        return opened.limit_rows(n)

    def count(self, opened: Scan) -> int:
        return opened.count()

    def names(self, opened: Scan) -> list[str]:
        return list(opened.schema.names)


# ---- an engine


def run(scan: Scan, target: Any, **keywords: Any) -> Any:
    """Copy a scan by tasks, which get what they need as another process would."""

    def work(task: int, sent: bytes) -> bytes:
        part, writer = pickle.loads(sent)
        return pickle.dumps(writer.write_part(task, [part.read()], finds_types=True))

    with DistributedWriter.begin(target, WriteOptions.from_keywords(keywords)) as writer, ThreadPoolExecutor(2) as pool:
        sent = [pickle.dumps((part, writer)) for part in scan.absolute().tasks(max_bytes=2_000)]
        return writer.commit(map(pickle.loads, pool.map(work, range(len(sent)), sent)))


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    monkeypatch.chdir(tmp_path)
    table = pa.table({"n": range(1_000), "word": ["even", "odd"] * 500})
    tfr.write_tfrecord(table, "in@3")
    return table


def test_an_engine_copies_a_dataset_in_parts(rows: pa.Table) -> None:
    report = run(Scan.of("in@3"), "out/")
    assert report.records == 1_000
    assert len(report.files) > 3
    assert tfr.read_table("out/").equals(rows)


def test_an_engine_that_fails_leaves_nothing(rows: pa.Table) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="feature 'n'"):
        DistributedWriter.begin("in@*", WriteOptions(mode="append"), pa.schema([("n", pa.string())]))
    assert tfr.count("in@3") == 1_000
    with pytest.raises(ValueError, match="cannot be split"):
        run(Scan.of("in@3", limit=3), "out/")
    assert not [path for path in Path("out").glob("*") if path.is_file()]


def test_parts_have_numbers_by_chance(rows: pa.Table) -> None:
    parts = Scan.of("in@3").group_files(max_bytes=1)
    assert [part.files_begun for part in parts] == [1, 1, 1]
    with DistributedWriter.begin("out/", WriteOptions()) as writer:
        written = [writer.write_part(task, [part.read()]) for task, part in zip((7, 3, 7), parts, strict=True)]
        report = writer.commit([*type(written[0]).number(reversed(written))])
    assert report.records == 1_000
    assert sorted(tfr.read_table("out/")["n"].to_pylist()) == [*range(1_000)]


# ---- a tool


class Counts(Report):
    """How often each value of a column is there."""

    def __init__(self, counts: Counter[str]) -> None:
        self.counts = counts

    def _summary(self) -> Summary:
        return Summary(
            counted(len(self.counts), "value"),
            ("value", "rows"),
            [(word, str(n)) for word, n in self.counts.most_common()],
        )


def count_values(source: Any, column: str, target: Any = None) -> Counts:
    """The tool: it reads one column, and writes a file that is there as a whole or not at all."""
    counts: Counter[str] = Counter()
    with Scan.of(source).only([column]).open() as batches:
        for batch in batches:
            counts.update(batch.column(0).to_pylist())
    if target is not None:
        with open_output(target, mode="error") as file:
            file.write(json.dumps(counts).encode())
    return Counts(counts)


@pytest.mark.parametrize("source", ["in@3", ["in@3"]])
def test_a_tool_counts_values(rows: pa.Table, source: str | Sequence[str]) -> None:
    report = count_values(source, "word", "counts.json")
    assert str(report).splitlines()[0] == "2 values"
    assert json.loads(Path("counts.json").read_text()) == {"even": 500, "odd": 500}
    with pytest.raises(FileExistsError):
        count_values(source, "word", "counts.json")
