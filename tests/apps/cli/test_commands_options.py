"""Options: those that documents and messages name exist, and storage options, counts and progress."""

from __future__ import annotations

import inspect
import json
import re
import runpy
import shlex
import subprocess
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as group
from tfrecord_io.base.options.read import DatasetOptions

ROOT = Path(__file__).parent.parent.parent.parent
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
COMMAND = re.compile(r"\btfr ([a-z]+)((?:[^`\n|]|\\\|)*)")


def options_of(command: click.Command) -> set[str]:
    options = {name for param in command.params if isinstance(param, click.Option) for name in param.opts}
    return options | {name for param in command.params for name in param.secondary_opts} | {"-h", "--help"}


@pytest.mark.plugins("browse", "report", "tensorflow", "vision")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_options_of_the_commands_in_the_documents_exist(page: Path) -> None:
    for match in COMMAND.finditer(page.read_text("utf-8")):
        command = group.commands.get(match[1])
        for option in re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*", match[2]):
            assert command is not None, f"{page.name}: tfr {match[1]} does not exist"
            assert option in options_of(command), f"{page.name}: tfr {match[1]} has no {option}"


# Options of a dataset that no option of ``tfr cat`` is, and why.
OF_PYTHON = {
    **dict.fromkeys(("threads", "progress", "batch_size", "batch_bytes"), "they change no row that is printed"),
    **dict.fromkeys(("stable_types", "infer_text", "large_offsets", "sample", "on_new"), "--type declares types"),
    "filesystem": "an object of Python",
    "limits": "--max-decompression-ratio",
    "offset": "tail, get",
    "include_file_paths": "the paths are those of the command",
    "check_crc": "tfr salvage keeps the records",
}


def test_options_of_a_dataset_are_options_of_cat_or_have_no_use_in_a_command() -> None:
    names, parameters = {f.name for f in fields(DatasetOptions)}, {param.name for param in group.commands["cat"].params}
    lacking = sorted(names - parameters - OF_PYTHON.keys())
    assert not lacking, f"add {', '.join(lacking)} to the options of `tfr cat`, or to OF_PYTHON why not"
    assert {name for name in names if name not in parameters} == OF_PYTHON.keys()


@pytest.mark.plugins("browse", "report")
def test_the_page_of_the_command_lists_the_options_of_each() -> None:
    """A section for each command, in a page of the reference that the page of `tfr` links."""
    assert "\n<!-- commands -->\n" in (ROOT / "docs" / "cli.md").read_text("utf-8")
    pages = runpy.run_path(str(ROOT / "docs" / "reference" / "api.py"))["commands"]()
    links = pages.pop("commands")
    sections = [section for page in pages.values() for section in page.split("\n## tfr ")[1:]]
    assert all(f"](reference/{page}.md#tfr-" in links for page in pages)
    assert all(f"[`tfr {name}`]" in links for name in group.commands)
    shown = {
        section.partition("\n")[0]: set(re.findall(r"(?<!\S)`?(--?[a-z][a-z0-9-]*)", section)) for section in sections
    }
    assert not [line for section in sections for line in section.splitlines() if re.match(r"\| `[^`]*\\\|", line)]
    assert set(shown) == set(group.commands)
    for name, command in group.commands.items():
        hidden = {o for p in command.params if getattr(p, "hidden", False) for o in (*p.opts, *p.secondary_opts)}
        assert options_of(command) - hidden - {"-h"} <= shown[name], name


def test_the_program_names_no_option_that_does_not_exist() -> None:
    """In messages and help texts of the package."""
    of_others = {"--force-reinstall", "--no-deps", "--no-cache-dir", "--no-binary", "--long"}  # pip, zstd and protoc
    of_others |= {"--include_imports", "--descriptor_set_out"}
    known = set().union(*map(options_of, group.commands.values())) | {"--version"} | of_others
    package = Path(inspect.getfile(tfr)).parent
    for file in package.rglob("*.py"):
        for option in re.findall(r"(?<![\w-])--[a-z][a-z0-9_-]+", file.read_text("utf-8")):
            assert option in known, f"{file.name} names {option}"


SHOWS_DAMAGE = "browse"  # and goes on until it is ended


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("head empty", "--schema FILE reads no rows of known columns"),
        ("convert a b --where x>9", "read the file with --schema FILE, or write a directory"),
        ("convert a b --append", "tfr merge makes the first shard"),
        ("copy a lists b.tfrecord", "tfr merge writes other files"),
        ("convert a c.array_record --where x>1", "--where does not apply to ArrayRecord"),
        ("convert a c --embed content=word", "--missing-files null makes it"),
        ("convert tables c", "--from names the one to convert"),
        ("convert a c --embed-folder .", "--embed-folder has no effect without --embed"),
        ("convert a c --to lerobot", "LeRobot needs --fps"),
        ("convert a c --from elwc", "or other messages with --record-type bytes"),
        ("convert lists c.orc", "write an Arrow file (.arrow), or declare another type"),
        ("sample a c", "pass either -n, the number of records, or --fraction"),
        ("head -c nope a", "'nope' matches no feature"),
        ("head --type nope=int8 a", "'nope' matches no column, and a type is declared for it"),
        ("head --split train a", "omit --split to read files by their names"),
        ("convert a c --index-columns nope", "'nope' matches no feature; --index-columns names it"),
        ("split a parts --fractions 80,20", "--fractions 80.0: expected a number from 0 to 1"),
        ("split a parts --fractions 0.9,0.2", "--fractions [0.9, 0.2]: their sum is more than 1"),
        ("sample a c --fraction 2", "--fraction 2.0: expected a number from 0 to 1"),
        ("split lists parts --by x", "and a column of single texts, bytes, integers or bools is needed"),
        ("merge a lines c", "; --schema declares all columns"),
        ("count --where x>1 empty", "no record was read, so no name is known"),
        ("count --index nope a", "--index: No such file or directory"),
        ("tail -f a", "following needs one dataset with a manifest, such as appends make; tfr adopt writes one"),
        ("tail --since 1 a", "--since 1: expected a version, as tfr tail -f prints it"),
        ("diff --key nope a a", "a has no such column, by which records are to be matched"),
        ("diff --key word a twice", "--key takes columns that identify a record; tfr dedupe leaves one of each"),
        ("get --key nope a 1", "the column of the keys does not exist"),
        ("get --keep first a 1", "--keep first needs --key"),
        ("convert a d/ --overwrite-where x=1", "--overwrite-where says which folders --mode overwrite_partitions"),
        ("convert a d/ --partition-by nope", "the data does not have this column, of whose values folders are made"),
        ("convert a c --column-encoding nope=raw", "this column; --column-encoding states its encoding"),
        ("convert people.csv c --record-type bytes", "records of bytes are the values of one binary column, got int64"),
        ("convert a c.csv --delimiter ;;", "--delimiter ';;': expected one ASCII character"),
        ("convert people.csv c --decimal-point x", "--decimal-point 'x': expected '.' or ','"),
        ("convert a c.csv --append", "--mode append adds to a folder, and 'c.csv' is one file"),
        ("convert --from yolo folder c", "--class-names gives the names of the classes"),
    ],
)
@pytest.mark.plugins("vision", "tensorflow")
def test_messages_have_the_words_of_the_command(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2, 3], "word": ["p", "q", "r"]}, "a")
    tfr.write_tfrecord({"x": [np.zeros((2, 2), np.complex64)]}, "lists")
    Path("b").write_bytes(b"")
    tfr.write_tfrecord({"x": [1, 2], "word": ["p", "p"]}, "twice")
    Path("people.csv").write_text("x\n1\n")
    Path("folder").mkdir()
    with tfr.RecordWriter("lines") as writer:
        writer.write(b"\xff")
    Path("empty").write_bytes(b"")
    Path("tables").mkdir()
    for table in ("x.csv", "x.json"):
        Path("tables", table).write_bytes(b"")
    shown = run(*words.split())
    assert message in shown.stderr
    assert not re.search(r"\b[a-z_]+=(?!')|tfr\.[a-z]|\(schema", shown.stderr)


@pytest.mark.parametrize(
    "command", [each for name, each in group.commands.items() if name != SHOWS_DAMAGE], ids=lambda command: command.name
)
def test_a_damaged_file_says_how_to_go_on(run: Any, tmp_path: Path, command: Any) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [1, 2, 3]}, path)
    path.write_bytes(path.read_bytes()[:-2])
    targets = {"convert": [tmp_path / "b.tfrecord"], "report": [tmp_path / "b.html"]}
    shown = run(command.name, path, *targets.get(command.name, []))
    assert "on_error" not in shown.output
    assert "--on-error" in options_of(command) or "--on-error" not in shown.output
    has_option = "--on-error" in options_of(command) and command.name != "schema"  # it reads the first record
    if has_option:
        assert "see --on-error" in shown.output
        stopped = run(command.name, "--on-error", "stop", path, *targets.get(command.name, []))
        assert stopped.exit_code == 0, stopped.output
        assert "warning: reading stopped early" in stopped.stderr


def test_each_command_has_results_as_json() -> None:
    lacking = [name for name, command in group.commands.items() if "--json" not in options_of(command)]
    assert not lacking, f"print the results of {', '.join(lacking)} by `output.print_result`, with the option --json"


def test_first_sentences_fit_the_line() -> None:
    for name, command in group.commands.items():
        text = command.get_short_help_str(1000)
        assert len(text) <= 66, f"tfr {name}: {text}"
        assert text.endswith(".")


def test_counts_of_several_paths(run: Any, tmp_path: Path) -> None:
    for name, rows in [("a", 3), ("b", 1200)]:
        tfr.write_tfrecord({"x": np.arange(rows)}, tmp_path / name)
    tfr.write_tfrecord({"x": np.arange(10)}, tmp_path / "c", shards=2)
    a, b, c = (str(tmp_path / name) for name in "abc")
    assert run("count", a, b, c).stdout == f"   3  {a}\n1200  {b}\n  10  {c}\n1213  total\n"
    assert run("count", c).stdout == "10\n"
    assert run("count", "--json", a, b).stdout.count('"records"') == 3
    # of the rows that meet a condition
    assert run("count", "--where", "x > 1", "--where", "x < 9", a, c).stdout == f"1  {a}\n7  {c}\n8  total\n"
    assert run("count", "--where", "x > 1", "--on-error", "skip", "--threads", "1", b).stdout == "1198\n"
    assert "names a column that does not exist; valid names: x" in run("count", "--where", "y > 1", a).stderr
    assert "--index has the number of all records" in run("count", "--where", "x > 1", "--index", "i", a).stderr


def test_columns_of_every_source(run: Any, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.arange(3), b=np.arange(3))
    assert run("convert", "-c", "b", tmp_path / "x.npz", tmp_path / "x.tfrecord").exit_code == 0
    assert tfr.read_table(tmp_path / "x.tfrecord").column_names == ["b"]
    assert run("convert", "--record-type", "bytes", tmp_path / "x.tfrecord", tmp_path / "y.tfrecord").exit_code == 0
    assert (tmp_path / "y.tfrecord").read_bytes() == (tmp_path / "x.tfrecord").read_bytes()
    assert run("convert", "--sample", "all", tmp_path / "x.tfrecord", tmp_path / "x.parquet").exit_code == 0
    assert run("convert", "--sample", "some", tmp_path / "x.tfrecord", tmp_path / "x.parquet").exit_code == 2


def test_storage_options_are_pairs(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from tfrecord_io.apps.file_formats import convert

    given: dict[str, Any] = {}

    def noted(_path: str, _target: str, sides: Any, places: Any, *_: Any, **__: Any) -> None:
        given.update(places, source=sides.source_options, target=sides.target_options)
        raise ValueError("enough")

    monkeypatch.setattr(convert, "convert_given", noted)
    options = "--storage-option anon=true --storage-option use_ssl=False"
    options += " --source-option key=AB=C --source-option client_kwargs.region_name=eu"
    quoted = ["--target-option", 'secret="123"', "--target-option", 'config={"a": [1]}']
    run("convert", *shlex.split(options), "--source-option", "client_kwargs.timeout=10", *quoted, "a", "b")
    assert given["storage_options"] == {"anon": True, "use_ssl": False}
    assert given["source"]["storage_options"] == {"key": "AB=C", "client_kwargs": {"region_name": "eu", "timeout": 10}}
    assert given["target"]["storage_options"] == {"secret": "123", "config": {"a": [1]}}
    for wrong in ("hunter2", "=x", "a.=1"):
        shown = run("count", "--storage-option", wrong, "a")
        assert shown.exit_code == 2
        assert "hunter2" not in shown.output


@pytest.mark.matrix
@pytest.mark.parametrize("command", ["verify", "describe", "convert"])
@pytest.mark.parametrize(("term", "shown"), [("xterm", True), ("dumb", False)])
def test_a_long_command_shows_its_rate_on_a_terminal(
    in_terminal: Any, tmp_path: Path, term: str, shown: bool, command: str
) -> None:
    """The bar appears after half a second; the records come from a pipe that stays open for longer."""
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(200_000)}, path)
    script = 'head -c 3000000 "$0"; sleep 1.5; tail -c +3000001 "$0"'
    target = [tmp_path / "b.parquet"] if command == "convert" else []
    with subprocess.Popen(["sh", "-c", script, path], stdout=subprocess.PIPE) as pipe:
        assert pipe.stdout is not None
        status, output = in_terminal(command, "-", *target, stdin=pipe.stdout.fileno(), TERM=term)
    assert status == 0, output
    assert ("B/s]" in output) == shown, output


@pytest.mark.plugins("tensorflow")
def test_split_names_rows_of_a_dataset_of_tfds(run: Any, data: Path, tmp_path: Path) -> None:
    splits = data / "tfds" / "splits"
    assert run("count", "--split", "train[:80%]", splits).stdout == "82\n"
    assert run("head", "--split", "test[-1:]", "--json", splits).stdout.count('"n"') == 1
    assert run("convert", "--split", "train", splits, tmp_path / "a.parquet").exit_code == 0
    assert run("merge", "--split", "train[3:5]", splits, tmp_path / "b.tfrecord").exit_code == 0
    assert tfr.count(tmp_path / "b.tfrecord") == 2
    to_tfds = ("--to", "tfds", "--target-split", "small", "--shards", "2")
    assert run("convert", "--split", "train[:50%]", *to_tfds, splits, tmp_path / "c" / "1.0.0").exit_code == 0
    assert run("count", "--split", "small[1shard]", tmp_path / "c").stdout == "26\n"
    shown = run("count", "--split", "dev", splits)
    assert shown.exit_code == 2
    assert "no split 'dev'; its splits are 'train', 'test' and 'dev-small_2'" in shown.output


def test_names_of_columns_are_separated_by_commas(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"a": [1], "b,c": [2], "d": ["x"], "e": ["y"]}, path)
    for given, expected in (
        (["-c", "a,d"], ["a", "d"]),
        (["-c", "a", "-c", "d,e"], ["a", "d", "e"]),
        (["-c", "b?c,a"], ["a", "b,c"]),
        (["-c", "*,!d,!e"], ["a", "b,c"]),
    ):
        (row,) = json.loads(run("head", path, "--json", *given).stdout)
        assert sorted(row) == expected
    done = run("convert", path, tmp_path / "parts", "-c", "a,d,e", "--partition-by", "d,e")
    assert (done.exit_code, (tmp_path / "parts" / "d=x" / "e=y").is_dir()) == (0, True)
