"""``tfr split``, ``merge``, ``shuffle`` and ``sample``."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from forked import interpreter


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": list(range(20)), "label": ["cat", "dog"] * 10}, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


def test_split_by_fractions(run, path: Path, tmp_path: Path) -> None:
    shown = run("split", path, tmp_path / "out", "--fractions", "0.8,0.1,0.1", "--seed", 3)
    assert shown.exit_code == 0
    assert [line.split(": ")[1].split(",")[0] for line in shown.stdout.splitlines()] == [
        "16 records",
        "2 records",
        "2 records",
    ]
    named = run("split", path, tmp_path / "out", "--fractions", "train=0.5, eval=0.25", "--json")
    assert {name: part["records"] for name, part in json.loads(named.stdout).items()} == {"train": 10, "eval": 5}
    assert tfr.count(tmp_path / "out" / "eval.tfrecord") == 5


def test_split_by_a_column_and_into_shards(run, path: Path, tmp_path: Path) -> None:
    assert run("split", path, tmp_path / "by", "--by", "label").exit_code == 0
    assert sorted(p.name for p in (tmp_path / "by").iterdir()) == ["cat.tfrecord", "dog.tfrecord"]
    shown = run("split", path, tmp_path / "s/x.tfrecord", "--shards", 4, "--compression", "gzip", "--json")
    assert json.loads(shown.stdout)["records"] == 20
    again = run("merge", tmp_path / "s", tmp_path / "b.tfrecord")
    assert again.stdout.startswith(f"{tmp_path}/b.tfrecord: 20 records, ")
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(tfr.read_table(path))


def test_a_compression_level_is_an_option(run, path: Path, tmp_path: Path) -> None:
    for command in ("merge", "convert", "shuffle"):
        target = tmp_path / f"{command}.tfrecord.gz"
        assert run(command, path, target, "--compression-level", 9).exit_code == 0
        assert tfr.count(target) == 20
        refused = run(command, path, tmp_path / "b.tfrecord.gz", "--compression-level", 10)
        assert refused.exit_code == 2
        assert "compression level 10: gzip has levels 0 to 9" in refused.stderr
        plain = run(command, path, tmp_path / "b.tfrecord", "--compression-level", 1)
        assert "the file is not compressed; pass --compression as well" in plain.stderr


def test_shuffle_and_sample(run, path: Path, tmp_path: Path) -> None:
    assert run("shuffle", path, tmp_path / "b", "--seed", 1, "--memory-bytes", 100).exit_code == 0
    tfr.shuffle(path, tmp_path / "c", seed=1)
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert json.loads(run("sample", path, tmp_path / "d", "-n", 7, "--json").stdout)["records"] == 7
    assert json.loads(run("sample", path, tmp_path / "d", "--fraction", 0.5, "--json").stdout)["records"] == 10


@pytest.mark.parametrize(
    "command", ["merge", "shuffle", "sample -n 1", "dedupe --by n", "explode --prefix n", "salvage"]
)
def test_the_last_file_of_a_glob_is_not_replaced(run, command: str, path: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.tfrecord" for name in "abc"]
    for file in files:
        file.write_bytes(path.read_bytes())
    refused = run(*command.split(), *files)
    assert files[-1].read_bytes() == path.read_bytes()
    assert refused.exit_code == 3
    assert f"{files[-1]}: the file exists, and is TARGET, as it is the last path; --mode overwrite replaces it" in (
        refused.stderr
    )


def test_a_dash_is_standard_output_beside_a_file_of_this_name(path: Path, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(path.read_bytes())
    (tmp_path / "-").write_bytes(b"kept")
    command = [sys.executable, "-m", "tfrecord_io", "merge", "a", "a", "-"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    assert tfr.read_table(io.BytesIO(done.stdout)).num_rows == 2 * tfr.count(path)
    assert (tmp_path / "-").read_bytes() == b"kept"


def test_a_dry_run_says_what_the_run_would_say(run, path: Path, tmp_path: Path) -> None:
    """Nothing is replaced, so that a target which a glob may have expanded to is not asked about."""
    files = [tmp_path / f"{name}.tfrecord" for name in "abc"]
    for file in files:
        file.write_bytes(path.read_bytes())
    planned = run("copy", *files, "--dry-run")
    assert planned.exit_code == 2
    assert "several files, or a dataset, are copied to a directory" in planned.stderr


def test_a_named_file_is_replaced(run, path: Path, tmp_path: Path) -> None:
    (target := tmp_path / "out" / "all").parent.mkdir()
    for flags in ([], [], ["--overwrite"]):
        assert run("merge", path, path, target, *flags).exit_code == 0
        assert tfr.count(target) == 40
    assert run("merge", "--overwrite", path, path, path.with_name("all")).exit_code == 0


def test_keys_groups_and_classes(run, path: Path, tmp_path: Path) -> None:
    assert run("dedupe", "--by", "label", path, tmp_path / "b", "--keep", "last").exit_code == 0
    assert tfr.read_table(tmp_path / "b")["n"].to_pylist() == [18, 19]
    assert run("dedupe", path, tmp_path / "c").exit_code == 2
    split = ("split", path, tmp_path / "out", "--fractions", "0.5,0.5", "--json")
    shown = json.loads(run(*split, "--stratify", "label").stdout)
    assert {name: part["records"] for name, part in shown.items()} == {"train": 10, "test": 10}
    grouped = json.loads(run(*split, "--group", "label", "--seed", 1).stdout)
    assert {part["records"] for part in grouped.values()} <= {0, 10, 20}
    wrong = run("split", path, tmp_path / "out", "--group", "label")
    assert wrong.exit_code == 2 or "--fractions" in wrong.stderr
    compared = run("diff", "--key", "n", path, tmp_path / "b")
    assert compared.exit_code == 1
    assert "20 records and 2 records, 0 changed, 0 added, 18 removed" in compared.stdout


def test_folders_and_schemas(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for day, type_ in ((1, "date32"), (2, "int64")):
        tfr.write_tfrecord(pa.table({"n": pa.array([day], pa.int32()).cast(type_)}), f"d/day={day}/")
    conflict = run("merge", "d", "one")
    assert conflict.exit_code == 1
    assert "declare one type for both with --type, or copy the files one by one" in conflict.stderr
    assert run("merge", "d", "one", "--type", "n=int8").exit_code == 0
    assert run("schema", "one", "--as", "json").stdout == tfr.Schema({"n": "int8", "day": "int64"}).to_json() + "\n"
    Path("schema.json").write_text(tfr.Schema({"day": "int8", "n": "int64"}).to_json())
    assert run("shuffle", "d", "shuffled", "--schema", "schema.json").exit_code == 0
    assert [str(t) for t in tfr.read_table("shuffled").schema.types] == ["int8", "int64"]
    assert run("sample", "d", "out", "-n", 2, "--partitions", "folders", "--type", "n=int64").exit_code == 0
    assert tfr.read_table("out").to_pydict() == {"n": [1, 2], "day": [1, 2]}
    assert run("split", "d", "out_d", "--shards", 1, "--partitions", "drop", "--type", "n=int64").exit_code == 0
    assert tfr.read_table("out_d@1").to_pydict() == {"n": [1, 2]}
    refused = run("merge", "d", "-", "--partitions", "folders")
    assert (refused.exit_code, "TARGET is a directory: pass a path" in refused.stderr) == (2, True)
    no_schema = run("merge", "d", "e", "--schema", "one")
    assert no_schema.exit_code == 2
    assert "'one': the text is not a schema" in no_schema.stderr
    assert "tfr schema --as json prints one" in no_schema.stderr


def test_standard_input_and_output(path: Path) -> None:
    command = [*interpreter(), "-m", "tfrecord_io", "shuffle", "-", "-"]
    done = subprocess.run(command, input=path.read_bytes(), capture_output=True, check=True)
    assert b"20 records" in done.stderr
    assert tfr.count(io.BytesIO(done.stdout)) == 20


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["split", "{}", "out"], 2),
        (["split", "{}", "-", "--shards", "2"], 2),
        (["split", "{}", "out", "--fractions", "much"], 2),
        (["split", "{}", "out", "--fractions", "a=0.5,0.5"], 2),
        (["split", "{}", "out", "--by", "none"], 2),
        (["sample", "{}", "out"], 2),
        (["shuffle", "none", "out"], 2),
        (["merge", "{}", "{}", "--mode", "error"], 3),
    ],
)
def test_errors(run, path: Path, tmp_path: Path, monkeypatch, arguments: list[str], code: int) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*(argument.format(path) for argument in arguments))
    assert done.exit_code == code, done.output
    assert "Traceback" not in done.output
    assert not (tmp_path / "out").exists()


def test_a_wrong_number_of_fractions_is_said_as_they_are_typed(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": range(10)}, tmp_path / "a.tfrecord")
    shown = run("split", tmp_path / "a.tfrecord", tmp_path / "parts/", "--fractions", "1")
    assert (shown.exit_code, "dict" in shown.stderr) == (2, False)
    assert "--fractions has 1 number: " in shown.stderr
    assert "train=0.9,eval=0.1" in shown.stderr
