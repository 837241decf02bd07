"""Run the suite of file formats for each format."""

from __future__ import annotations

import inspect
import json
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import csv, orc

import tfrecord_io as tfr
from installed import install
from rounds import COMPLETE
from tfrecord_io.bytes.format.known_formats import FORMATS
from tfrecord_io.testing import FormatSuite

COLUMNS = pa.table(
    {
        "n": pa.array([3, 1, 2, None], pa.int64()),
        "word": ["ant", 'a,b\t"c"', "bee", ""],
        "x": pa.array([1.5, None, -0.25, 0.1], pa.float64()),
        "ok": [True, False, None, True],
    }
).select(["word", "n", "x", "ok"])
NESTED = COLUMNS.append_column("list", pa.array([[1, 2], [], None, [3]], pa.list_(pa.int64()))).append_column(
    "blob", pa.array([b"\xff\0", b"", None, b"a"])
)
NUMBERS = pa.table({"n": pa.array([3, 1, 2], pa.int64())})


class Format(FormatSuite):
    """Suite without the tests that start the command: standard input and output are the same for all formats."""

    @pytest.mark.complete
    def test_standard_input_and_output(self, records: Path, tmp_path: Path) -> None:
        super().test_standard_input_and_output(records, tmp_path)


class TestCsv(FormatSuite):
    name = "csv"
    rows = COLUMNS
    row_of_five = b"1,2,3,4,5\n"

    def damaged(self, content: bytes) -> list[bytes]:
        return [b"", content + b"1\n", content + self.row_of_five]

    def test_another_program_writes_and_reads_it(self, path: Path, tmp_path: Path) -> None:
        assert csv.read_csv(pa.BufferReader(path.read_bytes())).to_pylist() == self.rows.to_pylist()


class TestTsv(TestCsv):
    name = "tsv"
    row_of_five = b"1\t2\t3\t4\t5\n"

    @pytest.mark.complete  # as with commas
    def test_standard_input_and_output(self, records: Path, tmp_path: Path) -> None:
        super().test_standard_input_and_output(records, tmp_path)

    def test_another_program_writes_and_reads_it(self, path: Path, tmp_path: Path) -> None:
        assert (
            csv.read_csv(pa.BufferReader(path.read_bytes()), parse_options=csv.ParseOptions(delimiter="\t")).to_pylist()
            == self.rows.to_pylist()
        )


class TestJson(Format):
    name = "jsonl"
    rows = NESTED
    fields = 7  # with "base64" of bytes

    def damaged(self, content: bytes) -> list[bytes]:
        return [content[:-40], b"[1]\n" + content, content.replace(b"ant", b"\xff")]


class TestParquet(FormatSuite):
    name = "parquet"
    rows = NESTED
    damage = "damaged, or not a file of the format Parquet"
    is_repeated = False  # pages may be ordered differently

    def damaged(self, content: bytes) -> list[bytes]:
        return [*super().damaged(content), content[:20] + b"\xff" * 60 + content[80:]]

    def test_another_program_writes_and_reads_it(self, path: Path, tmp_path: Path) -> None:
        assert pq.read_table(path).equals(self.rows)
        pq.write_table(self.rows, tmp_path / "b.pq")
        assert self.read(tmp_path / "b.pq").equals(self.rows)


class TestArrow(Format):
    name = "arrow"
    rows = NESTED
    damage = "damaged, or not a file of the format Arrow IPC"

    def test_another_program_writes_and_reads_it(self, path: Path, tmp_path: Path) -> None:
        assert pa.ipc.open_file(path.read_bytes()).read_all().equals(self.rows)
        for name, form in (("b.ipc", pa.ipc.new_file), ("b.feather", pa.ipc.new_file), ("c.arrow", pa.ipc.new_stream)):
            with pa.OSFile(str(tmp_path / name), "wb") as sink, form(sink, self.rows.schema) as writer:
                writer.write_table(self.rows)
            assert self.read(tmp_path / name).equals(self.rows)


class TestOrc(Format):
    name = "orc"
    rows = NESTED
    damage = "damaged, or not a file of the format ORC"

    def test_another_program_writes_and_reads_it(self, path: Path, tmp_path: Path) -> None:
        assert orc.read_table(path).equals(self.rows)
        orc.write_table(self.rows, str(tmp_path / "b.orc"), compression="zlib")
        assert self.read(tmp_path / "b.orc").equals(self.rows)


class TestNpy(Format):
    name = "npy"
    rows = NUMBERS

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        self.write(self.rows, tmp_path / "n.npy")  # the column has the name of the file
        return tmp_path / "n.npy"

    def damaged(self, content: bytes) -> list[bytes]:
        return [b"", content[:-10], content[:40], content + b"x", b"nonsense" * 20]

    def test_no_rows(self, tmp_path: Path) -> None:
        np.save(tmp_path / "n.npy", np.empty(0, np.int64))
        assert tfr.convert(tmp_path / "n.npy", tmp_path / "a.tfrecord").records == 0


class TestNpz(Format):
    name = "npz"
    is_repeated = False  # it has the time of writing
    rows = pa.table({"n": pa.array([3, 1, 2], pa.int64()), "x": pa.array([0.5, 1.5, -1.0], pa.float32())})


class TestHdf5(Format):
    name = "hdf5"
    is_repeated = False  # it has the time of writing
    rows = pa.table(
        {
            "n": pa.array([3, 1, 2], pa.int64()),
            "blob": [b"\0\xff\0", b"", b"a"],
            "list": pa.array([[1, 2], [], [3]], pa.list_(pa.int64())),
            "word": ["ä", "", "c"],
        }
    )

    @pytest.fixture(autouse=True)
    def library(self) -> None:
        pytest.importorskip("h5py")


class TestNetcdf(Format):
    name = "netcdf"
    is_repeated = False  # attributes are numbered by the time of writing
    rows = pa.table({"n": pa.array([3, 1, 2], pa.int32()), "x": pa.array([0.5, 1.5, -1.0], pa.float64())})

    @pytest.fixture(autouse=True)
    def library(self) -> None:
        pytest.importorskip("h5netcdf")
        pytest.importorskip("scipy")


class TestClassicNetcdf(TestNetcdf):
    def write(self, rows: pa.Table, path: Path) -> None:
        from scipy.io import netcdf_file

        with netcdf_file(path, "w") as file:
            file.createDimension("record", rows.num_rows)
            for name, column in zip(rows.column_names, rows.columns, strict=True):
                values = column.to_numpy()
                file.createVariable(name, values.dtype, ("record",))[:] = values


class TestIdx(Format):
    name = "idx"
    rows = pa.table({"label": pa.array([7, 2, 1], pa.uint8())})
    suffix = "-idx1-ubyte"

    def write(self, rows: pa.Table, path: Path) -> None:
        values = rows["label"].to_pylist()
        path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, len(values), *values]))

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        self.write(self.rows, tmp_path / "a b-labels-idx1-ubyte")
        return tmp_path / "a b-labels-idx1-ubyte"

    def damaged(self, content: bytes) -> list[bytes]:
        return [b"", content[:-1], content[:6], content + b"x", b"nonsense" * 20]


class TestLibsvm(Format):
    name = "libsvm"
    rows = pa.table(
        {
            "label": [1.0, -1.0, 0.5],
            "features/indices": pa.array([[0, 4], [], [2]], pa.list_(pa.int32())),
            "features/values": [[0.5, -2.0], [], [1e-3]],
        }
    )

    def write(self, rows: pa.Table, path: Path) -> None:
        lines = []
        for row in rows.to_pylist():
            label, indices, values = row.values()
            pairs = [f"{index + 1}:{value!r}" for index, value in zip(indices, values, strict=True)]
            lines.append(" ".join([repr(label), *(pairs if "png" not in row else ["png"])]))
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")

    def damaged(self, content: bytes) -> list[bytes]:
        return [content[:-6], content + b"1 2\n", content.replace(b"0.5", b"\xff"), b"nonsense" * 20]


class TestWebDataset(Format):
    name = "tar"
    rows = pa.table(
        {
            "__key__": ["a", "b", "c"],
            "cls": pa.array([1, 0, -5], pa.int64()),
            "txt": ["x", "ä", None],
            "jpg": [b"\xff", b"", b"1"],
        }
    )

    def test_files_with_other_columns_are_refused(self, tmp_path: Path) -> None:
        """The columns are those of the first thousand samples."""
        self.write(self.rows, tmp_path / "1.tar")
        self.write(self.rows.rename_columns(["__key__", "cls", "txt", "png"]), tmp_path / "2.tar")
        assert self.read([tmp_path / "1.tar", tmp_path / "2.tar"])["png"].to_pylist() == [None] * 3 + [
            b"\xff",
            b"",
            b"1",
        ]

    def damaged(self, content: bytes) -> list[bytes]:
        return [b"", content[:700], content[:-1700], b"nonsense" * 200]


SUITES = [suite for name, suite in globals().items() if name.startswith("Test")]


@pytest.mark.plugins("tensorflow", "vision")
def test_every_format_of_files_has_a_suite() -> None:
    tested = {suite.name for suite in SUITES}
    elsewhere = {"tfrecord", "elwc", "array_record", "coco", "voc", "yolo", "zarr", "tfds", "lerobot"}
    elsewhere |= {*FORMATS.FOLDERS.values()}
    rows = {row.name for row in FORMATS.own}
    assert not rows - tested - elsewhere, f"add here, for each of them, a suite: {rows - tested - elsewhere}"
    assert rows == tested | elsewhere


def test_keywords_of_convert_are_options_of_formats_or_its_own() -> None:
    parameters = {*inspect.signature(tfr.convert).parameters}
    for row in FORMATS.own:
        assert {*row.needs} <= row.reads | row.writes
    shared = {name for row in FORMATS.own for name in (*row.reads, *row.writes)} & parameters
    own = {"source", "target", "source_format", "target_format", "source_options", "target_options", "columns"}
    assert parameters - shared == own | {"storage_options", "files", "resume"}


def test_the_documentation_has_every_format() -> None:
    """The table that the page of `tfr` shows on the site, the docstring, and a page of a task."""
    tasks = "".join(path.read_text("utf-8").lower() for path in (Path(__file__).parents[3] / "docs/howto").glob("*.md"))
    docs = Path(__file__).parents[3] / "docs"
    assert "\n<!-- formats -->\n" in (docs / "cli.md").read_text("utf-8")
    page = runpy.run_path(str(docs / "reference" / "api.py"))["formats"]()
    text = " ".join((tfr.convert.__doc__ or "").split()).replace("`tfrecord_io.", "`")
    folders = {"coco", "voc", "yolo", "images", "files"}  # whose calls are referred to together
    of_all = FORMATS.tfrecord.reads | FORMATS.tfrecord.writes
    for row in FORMATS.own:
        names, suffixes = (", ".join(f"`{each}`" for each in some) for some in (row.keys, row.suffixes))
        help = re.sub("``|`tfrecord_io\\.", "`", row.help)
        line = f"| {names} | {suffixes} | {row.one_way} | {help} |"
        assert line in page
        assert any(word.lower() in tasks for word in (*row.keys, *row.suffixes)), f"docs/howto/: a page for {row.name}"
        assert row.help.replace("`tfrecord_io.", "`") in text or row.name in folders, row.name
        documented = {*row.keys, *row.suffixes, *(row.reads | row.writes) - of_all}
        assert [name for name in documented if f"``{name}``" not in text] == [], row.name


# ---- a format of another package

PIPES = """
from dataclasses import dataclass

import pyarrow as pa
from tfrecord_io.bytes.format.known_formats import Format, format_option

@dataclass
class Options:
    comment: str | None = format_option("What lines begin with that are left out.", "TEXT")

def read(path, *, comment=None, storage_options=None):
    with open(path) as file:
        lines = [line.rstrip().split("|") for line in file if not (comment and line.startswith(comment))]
    return pa.table({"name": [name for name, _ in lines], "n": [int(n) for _, n in lines]})

class Writer:
    def __init__(self, file, schema):
        for field in schema:
            if pa.types.is_nested(field.type):
                raise pa.ArrowTypeError("no lists")
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def write_batch(self, batch):
        self.file.write("".join(f"{row['name']}|{row['n']}\\n" for row in batch.to_pylist()).encode())

ROW = Format(
    *("pipes", "Pipes", "two cells with a pipe between them"),
    suffixes=(".pipes",),
    open=read,
    writer="pipes_format:Writer",
    reads=frozenset({"filters", "comment"}),
    options=Options,
)
"""


FOLDERS_OF_PIPES = """
from dataclasses import replace

import pyarrow as pa
from pipes_format import ROW, Options, read

def read_folder(path, **keywords):
    return read(f"{path}/cells", **keywords)

own = dict(suffixes=(), writer=None)
NUMBERED = replace(ROW, name="numbered", title="Numbered", pattern=r"\\.pipe[0-9]+$", sql=(".pipes",), **own)
FOLDER = replace(ROW, name="folder", title="Folder", folders=("cells", "marker"), open=read_folder, **own)
MAGIC = replace(ROW, name="magic", title="Magic", looks=("a Pipes file",), magic=(b"ant|",), advice="use pipes", **own)
"""


def test_the_format_of_the_documentation_passes_the_shipped_suite(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs" / "extend.md"
    code = re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    module = "\n\n".join(block for block in code if "PairOptions" in block or "class Writer" in block)
    install(tmp_path, "pairs_format", module, FORMATS.group, {"pairs": "pairs_format:ROW"})
    (tmp_path / "test_pairs.py").write_text(next(block for block in code if "FormatSuite" in block), "utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)])}
    slow = "" if COMPLETE else "not standard_input"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", slow, "test_pairs.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_facts_of_the_formats_of_other_packages_are_asked(tmp_path: Path) -> None:
    """Patterns of names, folders, first bytes, files that DuckDB reads; two formats share an option."""
    names = ("numbered", "folder", "magic")
    points = {name: f"pipes_folders:{name.upper()}" for name in names}
    install(tmp_path, "pipes_format", PIPES, FORMATS.group, {"pipes": "pipes_format:ROW"})
    install(tmp_path, "pipes_folders", FOLDERS_OF_PIPES, FORMATS.group, points)
    (tmp_path / "folder").mkdir()
    for name in ("part-00000.pipe1", "a.pipes", "folder/cells", "folder/marker", "unknown"):
        (tmp_path / name).write_text("ant|1\nbee|2\n")
    program = """
import tfrecord_io as tfr
from tfrecord_io.apps.adapters.duckdb import _is_path
for source in ("part-00000.pipe1", "a.pipes", "folder"):
    report = tfr.convert(source, "a.tfrecord", source_options={"comment": "#"})
    print(report.records, tfr.read_table("a.tfrecord")["name"].to_pylist())
try:
    tfr.read_table("unknown")
except tfr.TFRecordError as error:
    print(error)
print(_is_path("b/x.pipes"), _is_path("b/x.tfrecord"))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(tfr.__file__).parents[1])])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *arguments]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    shown = run("-W", "error::UserWarning", "-c", program)
    assert shown.stderr == ""
    *converted, unknown, paths = shown.stdout.splitlines()
    assert converted == ["2 ['ant', 'bee']"] * 3
    assert "looks like a Pipes file" in unknown
    assert "use pipes" in unknown
    assert paths == "False True"
    shown = run(
        "-W", "error", "-m", "tfrecord_io", "convert", "--comment", "#", "part-00000.pipe1", "b.tfrecord", "--json"
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    assert run("-W", "error::UserWarning", "-m", "tfrecord_io", "convert", "--help").stderr == ""


@pytest.mark.plugins("tensorflow")
def test_a_package_adds_a_format(tmp_path: Path) -> None:
    """By an entry point: with a keyword and an option of its own, in both directions, in the help, and in messages."""
    install(tmp_path, "pipes_format", PIPES, FORMATS.group, {"pipes": "pipes_format:ROW"})
    (tmp_path / "a.pipes").write_text("# two rows\nant|1\nbee|2\n")

    tfr.write_tfrecord({"name": [[1, 2]], "n": [1]}, tmp_path / "d.tfrecord")
    program = """
import json
import tfrecord_io as tfr
from click.testing import CliRunner
from tfrecord_io.apps.cli import tfr as group
own = {"source_options": {"comment": "#"}}
print(tfr.convert("a.pipes", "p.tfrecord", columns=["n"], filters=[("name", "==", "bee")], **own).columns)
print(tfr.convert("a.pipes", "p.tfrecord", **own).records)
try:
    tfr.write_tfrecord({"n": [1]}, "e.pipes")
except ValueError as error:
    print(error)
calls = (
    ("p.tfrecord", {"source_options": {"comment": "#"}}),
    ("a.pipes", {"source_options": {"coment": "#"}}),
    ("a.pipes", {"limit": 1}),
)
for source, keywords in calls:
    try:
        tfr.convert(source, "b.tfrecord", **keywords)
    except TypeError as error:
        print(error)
for arguments in COMMANDS:
    done = CliRunner().invoke(group, ["convert", *arguments])
    print(json.dumps({"status": done.exit_code, "stdout": done.stdout, "stderr": done.stderr}))
"""
    commands = [
        ["--help"],
        ["--where", "n > 1", "a.pipes", "wrong.tfrecord"],
        ["--comment", "#", "a.pipes", "a.tfrecord", "--json"],
        ["--comment", "#", "a.tfrecord", "x.tfrecord"],
        ["--coment", "#", "a.pipes", "x.tfrecord"],
        ["--to", "pipes", "a.tfrecord", "b"],
        ["a.tfrecord", "c.pipes"],
        ["--mode", "error", "a.tfrecord", "c.pipes"],
        ["--from", "excel", "a", "b"],
        ["d.tfrecord", "d.pipes"],
    ]
    shown = subprocess.run(
        [sys.executable, "-c", program.replace("COMMANDS", repr(commands))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path(tfr.__file__).parents[1])])},
        capture_output=True,
        text=True,
    )
    assert shown.stderr == ""
    lines = shown.stdout.splitlines()
    columns, records, refused, *messages = lines[: -len(commands)]
    assert (columns, records) == ("('n',)", "2")
    assert ".pipes is the suffix of another format; end the name in .tfrecord; tfr.convert makes .pipes" in refused
    assert "source_options= has 'comment', which TFRecord does not have" in messages[0]
    assert "has 'coment', which Pipes does not have; did you mean 'comment'?" in messages[1]
    assert "limit= is only for TFRecord, ArrayRecord and TFDS sources, and 'a.pipes' is Pipes" in messages[2]
    run = [SimpleNamespace(**json.loads(line)) for line in lines[-len(commands) :]]
    help, uncommented, made, of_another, misspelled, given, by_suffix, existing, unknown, nested = run
    assert " pipes " in help.stdout
    assert "--comment TEXT" in help.stdout
    assert "not enough values to unpack" in uncommented.stderr  # its first line is a comment
    assert made.status == 0
    assert "--comment is only for Pipes sources" in of_another.stderr
    assert "No such option" in misspelled.stderr
    assert given.status == by_suffix.status == 0
    assert (tmp_path / "b").read_text() == (tmp_path / "c.pipes").read_text() == "ant|1\nbee|2\n"
    assert "the file exists" in existing.stderr
    assert "'pipes'" in unknown.stderr
    assert "a column of list<int64> cannot be stored in this file format" in nested.stderr
    assert not (tmp_path / "d.pipes").exists()
