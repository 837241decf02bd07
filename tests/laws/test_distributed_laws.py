"""What tasks write, published together, is what one writer writes of the same rows, in each mode."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.write.distributed import DistributedWriter

MODES = ["append", "overwrite", "error", "overwrite_partitions"]
ROW = st.fixed_dictionaries(
    {
        "text": st.none() | st.sampled_from(["a", "b/c", "", "é"]),
        "number": st.none() | st.integers(-3, 3),
        "x": st.none() | st.lists(st.integers(0, 9), max_size=3),
    }
)
TYPES = pa.schema([("text", pa.string()), ("number", pa.int16()), ("x", pa.list_(pa.int64())), ("id", pa.int64())])


@st.composite
def steps(draw: st.DrawFn, columns: list[str]) -> dict[str, Any]:
    """Rows, where they are split into tasks, and how they are written."""
    mode = draw(st.sampled_from(MODES if columns else MODES[:3]))
    rows = draw(st.lists(ROW, max_size=8))
    cuts = sorted(draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    added = draw(st.booleans())
    evolve = mode in ("append", "overwrite_partitions") and draw(st.booleans())
    return {"rows": rows, "cuts": cuts, "added": added, "mode": mode, "evolve": evolve, "seed": draw(st.integers(0, 9))}


def written_by_tasks(table: pa.Table, cuts: list[int], path: str, seed: int, **options: Any) -> None:
    """Write each piece in a task, in any order, some of them twice."""
    order = random.Random(seed)
    bounds = [0, *cuts, table.num_rows]
    tasks = [number for number in range(len(bounds) - 1) for _ in range(order.choice([1, 1, 2]))]
    order.shuffle(tasks)
    with DistributedWriter.begin(path, WriteOptions(**options)) as writer:
        batches = {task: table.slice(bounds[task], bounds[task + 1] - bounds[task]) for task in tasks}
        parts = [writer.write_part(task, [batches[task]]) for task in tasks]
        order.shuffle(parts)
        writer.commit(parts)


def outcome(write: Any, *arguments: Any, **options: Any) -> str:
    try:
        write(*arguments, **options)
    except (tfr.TFRecordError, FileExistsError, ValueError) as error:
        return type(error).__name__
    return ""


def content(path: str) -> Any:
    """All rows with their types, in order, and the folders; what is not a shard or a manifest is an error."""
    if not os.path.exists(path):
        return None
    files = [file.relative_to(path) for file in Path(path).rglob("*") if file.is_file()]
    assert [str(file) for file in files if file.suffix != ".tfrecord" and file.name != "_MANIFEST.json"] == []
    folders = {str(file.parent) for file in files if file.suffix == ".tfrecord"}
    try:
        table = tfr.read_table(path)
    except FileNotFoundError:
        return "without rows"
    return table.schema, table.to_pylist(), folders


@settings(max_examples=rounds(60))
@given(data=st.data(), columns=st.sampled_from([[], ["text"], ["number"], ["number", "text"]]))
def test_tasks_write_what_one_writer_writes(data: st.DataObject, columns: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        one, tasks = f"{folder}/one/", f"{folder}/tasks/"
        first = 0
        for step in data.draw(st.lists(steps(columns), min_size=1, max_size=4)):
            ids = range(first, first + len(step["rows"]))
            rows = [{**row, "id": id_} for row, id_ in zip(step["rows"], ids, strict=True)]
            table = pa.Table.from_pylist(rows, TYPES)
            if step["added"]:
                table = table.append_column("more", pa.array([str(id_) for id_ in ids], pa.string()))
            first += table.num_rows
            options = {"mode": step["mode"], "evolve": step["evolve"], "partition_by": columns or None}
            expected = outcome(tfr.write_tfrecord, table, one, **options)
            assert outcome(written_by_tasks, table, step["cuts"], tasks, step["seed"], **options) == expected
            assert content(tasks) == content(one)


def each_row(table: pa.Table) -> Iterator[pa.Table]:
    yield from (table.slice(at, 1) for at in range(table.num_rows))


def test_a_task_keeps_few_files_open(tmp_path: Path) -> None:
    """Whatever the number of folders is."""
    table = pa.table({"id": range(400), "day": [str(number % 200) for number in range(400)]})
    opened: list[int] = []

    def watched() -> Iterator[pa.Table]:
        for batch in each_row(table):
            yield batch
            opened.append(len(os.listdir("/proc/self/fd")))

    writer = DistributedWriter.begin(tmp_path / "d/", WriteOptions(partition_by=["day"]))
    before = len(os.listdir("/proc/self/fd"))
    parts = [writer.write_part(task, watched()) for task in range(2)]
    writer.commit(parts)
    assert max(opened) - before < 64
    assert sorted(tfr.read_table(tmp_path / "d/")["id"].to_pylist()) == sorted([*range(400)] * 2)
    assert len(os.listdir(tmp_path / "d")) == 201
