"""``progress=True`` shows a bar on a terminal, a function is called; neither changes anything else."""

from __future__ import annotations

import importlib.metadata
import inspect
import io
import shutil
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tqdm.auto
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import tfrecord_io as tfr
from border import PUBLIC, public
from reading import read_by
from tfrecord_io.base.progress import ProgressMeter
from tfrecord_io.read.file_indexes import check_indexes, write_indexes

Call = Callable[[Path, Any], Any]  # takes a folder with the files of `folder`, and `progress`

ROWS = 3000


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files that all calls can read."""
    tmp_path = tmp_path_factory.mktemp("files")
    x, word = np.arange(ROWS), [f"word {i % 7}" for i in range(ROWS)]
    (tmp_path / "tree").mkdir()
    for name in ("a.tfrecord", "a.tfrecord.gz", "s@3", "indexed.tfrecord", "tree/b.tfrecord"):
        tfr.write_tfrecord({"x": x, "word": word}, tmp_path / name, write_index=name == "indexed.tfrecord")
    for name in ("a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "a.arrow"):
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / name)
    pq.write_table(pa.table({"x": x, "word": word}), tmp_path / "groups.parquet", row_group_size=1000)
    np.save(tmp_path / "a.npy", x)
    tfr.write_tfrecord({"txt": word}, tmp_path / "samples.tfrecord")
    tfr.convert(tmp_path / "samples.tfrecord", tmp_path / "a.tar")
    tfr.write_tfrecord({"image/encoded": [b"x", b"y"]}, tmp_path / "images.tfrecord")
    for name in ("cat/1.png", "dog/1.png"):
        (tmp_path / "photos" / name).parent.mkdir(parents=True)
        Image.new("RGB", (4, 3)).save(tmp_path / "photos" / name)
    loss = bytes.fromhex("09000000000065da41 1007 2a0d0a0b 0a046c6f7373 150000003f")
    with tfr.RecordWriter(tmp_path / "events.out.tfevents.1") as writer:
        writer.write(loss)
    with tfr.RecordWriter(tmp_path / "lists.tfrecord") as writer:
        for number in range(ROWS):
            example = tfr.encode_example({"x": number})
            writer.write(bytes([0x0A, len(example)]) + example)
    return tmp_path


@pytest.fixture
def folder(files: Path, tmp_path: Path) -> Path:
    """A copy of the files."""
    return shutil.copytree(files, tmp_path, dirs_exist_ok=True)


def drain(stream: Any) -> int:
    with stream:
        return sum(1 for _ in stream)


def fill(writer: tfr.typing.Writer) -> None:
    with writer:
        for rows in (1000, 0, 2000):
            writer.write({"x": np.arange(rows)})


def call(function: Callable[..., Any], *names: str, **keywords: Any) -> Call:
    return lambda folder, progress: function(*(folder / name for name in names), progress=progress, **keywords)


READS: dict[str, Call] = {
    "read_table": call(tfr.read_table, "a.tfrecord"),
    "read_table, one thread": call(partial(read_by, tfr.read_table), "a.tfrecord", threads=1),
    "read_table, gzip": call(tfr.read_table, "a.tfrecord.gz"),
    "read_table, shards": call(tfr.read_table, "s@3"),
    "read_tfrecord": call(tfr.read_tfrecord, "a.tfrecord"),
    "read_arrays": call(tfr.read_arrays, "a.tfrecord"),
    "open_reader": lambda folder, progress: drain(tfr.open_reader(folder / "a.tfrecord", progress=progress)),
    "iter_arrays": lambda folder, progress: drain(
        tfr.iter_arrays(tfr.dataset(folder / "a.tfrecord", progress=progress), batch_size=100)
    ),
    "dataset": lambda folder, progress: tfr.dataset(folder / "a.tfrecord", progress=progress).to_table(),
    "infer_schema": call(tfr.infer_schema, "a.tfrecord"),
    "count": call(tfr.count, "a.tfrecord"),
    "count, check_crc": call(tfr.count, "s@3", check_crc=True),
    "count, index": call(tfr.count, "indexed.tfrecord"),
    "count, gzip": call(tfr.count, "a.tfrecord.gz"),
    "verify": call(tfr.verify, "a.tfrecord"),
    "verify, shards": call(tfr.verify, "s@3"),
    "describe": call(tfr.describe, "a.tfrecord"),
    "report": lambda folder, progress: tfr.report(folder / "a.tfrecord", progress=progress),
    "report, two datasets": lambda folder, progress: tfr.report(
        folder / "a.tfrecord", compare=folder / "s@3", progress=progress
    ),
    "diff": call(tfr.diff, "a.tfrecord", "a.tfrecord.gz"),
    "diff, any_order": call(tfr.diff, "a.tfrecord", "a.tfrecord.gz", any_order=True),
    "diff, key": call(tfr.diff, "a.tfrecord", "a.tfrecord.gz", key="x"),
    "join": lambda folder, progress: drain(
        tfr.join(folder / "a.tfrecord", {"x": [1], "y": [2]}, on="x", progress=progress)
    ),
    "check_indexes": call(check_indexes, "indexed.tfrecord"),
    "scan_polars": lambda folder, progress: tfr.scan_polars(
        tfr.dataset(folder / "a.tfrecord", progress=progress)
    ).collect(),
    "read_events": lambda folder, progress: tfr.formats.read_events(
        folder / "events.out.tfevents.1", progress=progress
    ),
    "open_elwc": lambda folder, progress: drain(tfr.formats.open_elwc(folder / "lists.tfrecord", progress=progress)),
    "salvage, dry_run": call(tfr.salvage, "a.tfrecord", "out.tfrecord", dry_run=True),
}
WRITES: dict[str, Call] = {
    "write_tfrecord": lambda folder, progress: tfr.write_tfrecord(
        {"x": list(range(ROWS))}, folder / "out.tfrecord", progress=progress
    ),
    "write_tfrecord, shards": lambda folder, progress: tfr.write_tfrecord(
        {"x": list(range(ROWS))}, folder / "out@3", progress=progress
    ),
    "write_tfds": lambda folder, progress: tfr.formats.write_tfds(
        {"x": list(range(ROWS))}, folder / "out" / "1.0.0", progress=progress
    ),
    "open_writer": lambda folder, progress: fill(tfr.open_writer(folder / "out.tfrecord", progress=progress)),
    "salvage": call(tfr.salvage, "a.tfrecord", "out.tfrecord"),
    "salvage, gzip": call(tfr.salvage, "a.tfrecord.gz", "out.tfrecord"),
    "merge": call(tfr.merge, "s@3", "out.tfrecord"),
    "compact": call(tfr.compact, "s@3"),
    "adopt": call(tfr.adopt, "tree"),
    "delete": call(tfr.delete, "s@3", filters=[("x", "<", 5)]),
    "copy": call(tfr.copy, "a.tfrecord.gz", "out.tfrecord.gz"),
    "copy, shards": call(tfr.copy, "s@3", "out"),
    "split": call(tfr.split, "a.tfrecord", "out.tfrecord", shards=2),
    "split, fractions": call(tfr.split, "a.tfrecord", "out", fractions=[0.5, 0.5]),
    "split, by": call(tfr.split, "a.tfrecord", "out", by="word"),
    "split, group": call(tfr.split, "a.tfrecord", "out", fractions=[0.5, 0.5], group="word"),
    "dedupe": call(tfr.dedupe, "a.tfrecord", "out.tfrecord", by="word"),
    "shuffle": call(tfr.shuffle, "a.tfrecord", "out.tfrecord"),
    "sample": call(tfr.sample, "a.tfrecord", "out.tfrecord", n=5),
    "write_elwc": lambda folder, progress: tfr.formats.write_elwc(
        {"query": list(range(ROWS)), "clicks": [1] * ROWS}, folder / "out.tfrecord", by="query", progress=progress
    ),
    "write_npy": call(tfr.formats.write_npy, "a.tfrecord", "out.npy", column="x"),
    "write_npz": call(tfr.formats.write_npz, "a.tfrecord", "out.npz"),
    "write_image_folder": lambda folder, progress: tfr.formats.write_image_folder(
        folder / "images.tfrecord", folder / "out", progress=progress
    ),
    "write_file_folder": lambda folder, progress: tfr.formats.write_file_folder(
        folder / "images.tfrecord", folder / "out", progress=progress
    ),
    "convert, lists": call(tfr.convert, "lists.tfrecord", "out.tfrecord", source_format="elwc"),
    "build_index": call(tfr.build_index, "a.tfrecord", columns=["x"]),
    "write_indexes": call(write_indexes, "a.tfrecord"),
    **{
        f"convert, {source} to {target}": call(tfr.convert, source, target)
        for source, target in [
            ("a.tfrecord", "out.parquet"),
            ("a.tfrecord.gz", "out.csv"),
            ("a.tfrecord", "out.tfrecord"),
            *((name, "out.tfrecord") for name in ("a.csv", "a.csv.gz", "a.jsonl", "a.parquet", "a.arrow", "a.tar")),
            ("groups.parquet", "out.tfrecord"),
            ("a.npy", "out.tfrecord"),
            ("photos", "out.tfrecord"),
        ]
    },
}
CALLS = {**READS, **WRITES}
OF_LARGE_LIBRARIES = {"write_earth_engine"} & {*PUBLIC}  # it writes as others do
WITHOUT_TOTAL = {"report, two datasets", "write_tfds", "write_elwc"}


def test_all_functions_with_the_keyword_are_called_here() -> None:
    functions = {name: public(name) for name in PUBLIC if inspect.isfunction(public(name))}
    having = {name for name, function in functions.items() if "progress" in inspect.signature(function).parameters}
    assert having - OF_LARGE_LIBRARIES == {name.partition(",")[0] for name in CALLS} & having
    assert having >= OF_LARGE_LIBRARIES


class Reported(list[tfr.typing.Progress]):
    """A function that is false until it is called first."""

    def __call__(self, progress: tfr.typing.Progress) -> None:
        self.append(progress)


@pytest.mark.parametrize("name", CALLS)
def test_done_reaches_the_total(folder: Path, name: str) -> None:
    reported = Reported()
    CALLS[name](folder, reported)
    assert reported
    assert all(isinstance(progress, tfr.typing.Progress) for progress in reported)
    done = [progress.done for progress in reported]
    assert done == sorted(set(done))
    assert {progress.unit for progress in reported} <= {"bytes", "rows", "records"}
    assert len({progress.unit for progress in reported}) == 1
    assert len({progress.total for progress in reported}) == (2 if name == "open_writer" else 1)
    assert reported[-1].total == (None if name in WITHOUT_TOTAL else reported[-1].done)


class Cancelled(Exception):
    pass


@pytest.mark.matrix
@pytest.mark.matrix
@pytest.mark.parametrize("error", [Cancelled, BrokenPipeError, tfr.errors.CorruptRecordError, KeyboardInterrupt])
@pytest.mark.parametrize("name", CALLS)
def test_its_error_ends_the_call_and_nothing_is_published(folder: Path, name: str, error: Any) -> None:
    if name == "scan_polars" and importlib.metadata.version("polars") < "2":
        pytest.skip("polars 1 makes it a ComputeError")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    raised = error("no more")

    def cancel(progress: tfr.typing.Progress) -> None:
        raise raised

    with pytest.raises(error) as caught:
        CALLS[name](folder, cancel)
    assert caught.value is raised
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    if name in ("build_index", "write_indexes"):  # of each file by itself
        after = {path: content for path, content in after.items() if path in before}
    assert after == before


@pytest.mark.parametrize("name", WRITES)
def test_nothing_is_published_after_an_error_at_the_end(
    files: Path, folder: Path, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    before = set(folder.rglob("*"))
    reported: list[tfr.typing.Progress] = []
    WRITES[name](shutil.copytree(files, tmp_path_factory.mktemp("counted") / "files"), reported.append)

    def cancel(progress: tfr.typing.Progress) -> None:
        if progress == reported[-1]:
            raise Cancelled

    with pytest.raises(Cancelled):
        WRITES[name](folder, cancel)
    if name not in ("build_index", "write_indexes"):
        after = {path for path in folder.rglob("*") if not path.name.endswith(".staged")}  # with which a copy goes on
        assert after - {folder / "out"} == before if name == "copy, shards" else after == before


@pytest.mark.parametrize("name", READS)
def test_nothing_is_shown_where_it_was_not_asked_for(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    READS[name](folder, False)
    READS[name](folder, True)  # stderr is not a terminal
    assert "B/s" not in capsys.readouterr().err


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bar_reaches_all_bytes_and_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    bars: list[Any] = []
    plain = tqdm.auto.tqdm

    def shown(**options: Any) -> Any:
        bars.append(plain(**{**options, "disable": False, "file": io.StringIO()}))
        return bars[-1]

    monkeypatch.setattr(tqdm.auto, "tqdm", shown)
    tfr.write_tfrecord({"x": list(range(1000))}, tmp_path / "a", progress=True, threads=threads)
    assert (bars[0].n, bars[0].total, bars[0].unit) == (1000, 1000, "row")
    table = tfr.read_table(tfr.dataset(tmp_path / "a", threads=threads), progress=True)
    assert table.num_rows == 1000
    assert (bars[-1].n, bars[-1].total, bars[-1].unit) == (*[(tmp_path / "a").stat().st_size] * 2, "B")


def test_a_notebook_without_ipywidgets_has_a_plain_bar(tmp_path: Path) -> None:
    notebook = """
import sys, types
shell = type("ZMQInteractiveShell", (), {"config": {"IPKernelApp": {}}})
sys.modules |= {"IPython": types.SimpleNamespace(get_ipython=shell), "ipykernel.zmqshell": None, "ipywidgets": None}
"""

    def warned(program: str) -> bool:
        command = [sys.executable, "-c", notebook + program]
        shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        return "IProgress not found" in shown.stderr

    assert warned("import tqdm.auto")
    assert not warned("import tfrecord_io as tfr; tfr.write_tfrecord({'x': range(1000)}, 'a', progress=True)")
    assert tfr.count(tmp_path / "a") == 1000


def test_without_a_terminal_nothing_is_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a", progress=True)
    tfr.read_table(tmp_path / "a", progress=True)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["read_table", "count", "verify", "describe", "read_events"])
def test_other_values_are_refused(name: str) -> None:
    for value in (1, "yes", None):
        with pytest.raises(TypeError, match=r"progress=.*: expected True, False or a function"):
            public(name)("a", progress=value)


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=30))
def test_what_is_done_never_decreases_when_a_reading_begins_again(counts: list[int | None]) -> None:
    """None: a second reading of the same data."""
    reported: list[int] = []
    meter = ProgressMeter(lambda progress: reported.append(progress.done), None, "bytes")
    readings = [0]
    for count in counts:
        if count is None:
            meter.restart()
            readings.append(0)
        else:
            meter.advance(count)
            readings[-1] += count
    assert reported == sorted(set(reported))
    assert (reported[-1] if reported else 0) == max(readings)


def test_parts_add_up() -> None:
    reported: list[int] = []
    meter = ProgressMeter(lambda progress: reported.append(progress.done), 20, "bytes")
    for _ in range(2):
        with ProgressMeter(meter.part(), 10, "bytes") as part:
            part.advance(4)
            part.advance(6)
    assert reported == [4, 10, 14, 20]
    assert ProgressMeter(False, 1, "bytes").part() is False
    reported.clear()
    with ProgressMeter(lambda progress: reported.append(progress.done), 10, "bytes") as meter:
        for _ in range(3):
            with ProgressMeter(meter.part(Fraction(1, 3)), 10, "bytes") as part:
                part.advance(4)
                part.advance(6)
    assert reported == [1, 3, 4, 6, 8, 10]
