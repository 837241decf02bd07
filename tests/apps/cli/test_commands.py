"""The output of the ``tfr`` command."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from forked import interpreter
from records import written
from servers import Bucket
from showing_commands import READING, SHOWING
from tensor_cells import record
from tfrecord_io.apps.cli.output import TextTable, _as_table
from tfrecord_io.testing.tensor_encoding_suite import NAMES, values_of

HOSTILE = "\x1b]0;owned\x07\x1b[31m"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.tfrecord"
    table = {
        "id": [1, 2, 3],
        "word": ["ant", "bee", None],
        "blob": [b"\xff\xd8", None, b"x" * 100],
        "scores": [[1], [], [2, 3]],
    }
    tfr.write_tfrecord(table, path)
    return path


def test_head_shows_the_first_records(run, words: Path) -> None:
    shown = run("head", "-n", 2, words)
    assert shown.exit_code == 0, shown.output
    assert "ant" in shown.output
    assert "bee" in shown.output
    assert "100 bytes" not in shown.output
    assert len(shown.output.strip().splitlines()) == 4  # names, a line, two records


def test_a_schema_is_saved_beside_the_files_of_others(run, words: Path, tmp_path: Path) -> None:
    path = tmp_path / "foreign.tfrecord"
    sizes = {"height": 2, "width": 2, "label": 1}
    written(path, [bytes(tfr.encode_example({"image_raw": bytes(range(12)), **sizes}))])
    stated = "image_raw=tensor(uint8, (height, width, 3))", "label=int8"
    saved = run("schema", path, "--save", "--type", stated[0], "--type", stated[1])
    assert saved.exit_code == 0, saved.output
    assert saved.stdout == f"4 columns saved: {tmp_path}/_SCHEMA-foreign.tfrecord.json\n"
    file = tmp_path / "_SCHEMA-foreign.tfrecord.json"
    assert "tensor<uint8>[?,?,3]" in file.read_text()  # other records may have other sizes
    shown = json.loads(run("schema", path, "--json").stdout)
    assert shown["source"] == "saved"
    types = {field["name"]: field["type"] for field in shown["fields"]}
    assert types == {"height": "int64", "image_raw": "tensor<uint8>[2, 2, 3]", "label": "int8", "width": "int64"}
    assert "'height', 'width', 3" in run("schema", path, "--as", "python").stdout
    file.write_text("{")
    damaged = run("schema", path)
    assert damaged.exit_code != 0
    assert f"write it again by: tfr schema {path} --save" in damaged.stderr
    again = run("schema", path, "--save", "--json")
    assert json.loads(again.stdout)["columns"] == ["height", "image_raw", "label", "width"]
    for arguments in (
        ["--type", "label=int8"],
        ["--save", "--as", "json"],
        ["--save", words],
        ["--save", "--split", "a"],
    ):
        refused = run("schema", path, *arguments)
        assert refused.exit_code == 2, refused.output
    refused = run("schema", "--save", words)
    assert refused.exit_code != 0
    assert "states the schema of the files" in refused.stderr


@pytest.mark.plugins("report")
def test_types_of_files_that_carry_none_are_stated_or_taken_from_a_file(run, tmp_path: Path) -> None:
    path, schema = tmp_path / "raw.tfrecord", tmp_path / "raw.json"
    written(path, [bytes(tfr.encode_example({"x": bytes(range(4)), "n": i})) for i in range(3)])
    stated = ["--type", "x=tensor(uint8,(2,2))"]
    assert run("schema", path, "--save", *stated).exit_code == 0
    for form in ("json", "tfx"):
        schema.write_text(run("schema", path, "--as", form).stdout)
        (schema.with_suffix(f".{form}")).write_text(schema.read_text())
    (tmp_path / "_SCHEMA-raw.tfrecord.json").unlink()
    for types in (stated, ["--schema", tmp_path / "raw.json"], ["--schema", tmp_path / "raw.tfx"]):
        for arguments in (["head"], ["tail"], ["describe"], ["get"], ["cat"]):
            done = run(*arguments, path, *(["1"] if arguments == ["get"] else []), *types)
            assert done.exit_code == 0, done.output
            is_shown = {"cat": "[[0, 1], [2, 3]]", "describe": "tensor<uint8>[2, 2]"}.get(arguments[0], "uint8[2, 2]")
            assert is_shown in done.stdout, arguments
        assert run("convert", path, tmp_path / "x.npz", *types).exit_code == 0
        assert np.load(tmp_path / "x.npz")["x"].shape == (3, 2, 2)
        assert "uint8" in run("report", path, tmp_path / "page.html", *types, "--json").stdout
    (tmp_path / "none.json").write_text("[]")
    refused = run("head", path, "--schema", tmp_path / "none.json")
    assert refused.exit_code == 2
    assert "expected what tfr schema --as json or --as tfx prints" in refused.stderr


def test_names_are_not_broken_in_a_narrow_terminal() -> None:
    name, other = "image/object/bbox/xmin_of_the_left_side", "an example of a value that is long, and may be folded"
    table = TextTable(["column", "type", "example"], [[name, "float", other]])
    assert table.fits(80)
    assert name in _as_table(table, 80)
    assert max(map(len, _as_table(table, 80).splitlines())) <= 80
    assert not TextTable(["column", "type", "nulls", "range"], [[name * 2, "float", "0", "1"]]).fits(80)


@pytest.mark.parametrize(
    ("values", "wanted"),
    [(["ant", "bee", "3"], ["3", "ant"]), ([5, -7, 3], ["3", "-7"]), ([b"x", b"y", b"z"], ["z", "x"])],
)
def test_get_by_key(run, tmp_path: Path, values: list, wanted: list[str]) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"id": values, "n": [0, 1, 2]}, path)
    shown = run("get", path, *wanted, "--key", "id", "--json")
    assert shown.exit_code == 0, shown.output
    texts = [value.decode() if isinstance(value, bytes) else str(value) for value in values]
    assert [record["n"] for record in json.loads(shown.stdout)] == [texts.index(key) for key in wanted]
    missing = run("get", path, "99", "--key", "id")
    assert missing.exit_code == 2
    assert "keys not found: " in missing.stderr


def test_get_takes_numbers_without_a_key(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": ["a", "a"], "n": [0, 1]}, tmp_path / "a.tfrecord")
    assert "'a' is not the number of a record; --key takes keys" in run("get", tmp_path / "a.tfrecord", "a").stderr
    for number in ("2", "-3", str(10**20), str(-(10**20))):
        shown = run("get", tmp_path / "a.tfrecord", number, "0")
        assert (shown.exit_code, "is out of range: the files have 2 records" in shown.stderr) == (2, True)
    of_numbers = run("get", tmp_path / "a.tfrecord", "a", "--key", "n")
    assert (of_numbers.exit_code, "'a' is not an integer, as the keys" in of_numbers.stderr) == (2, True)
    twice = run("get", tmp_path / "a.tfrecord", "a", "--key", "id")
    assert twice.exit_code != 0
    assert "--keep" in twice.stderr
    first = run("get", tmp_path / "a.tfrecord", "a", "--key", "id", "--keep", "first", "--json")
    assert json.loads(first.stdout) == [{"id": "a", "n": 0}]


def test_tail_shows_the_last_records(run, words: Path) -> None:
    every = json.loads(run("head", "-n", 100, "--json", words).stdout)
    for arguments in ((), ("--where", "id > 0"), ("--on-error", "skip")):
        for count in (0, 1, 2, 100):
            shown = run("tail", "-n", count, "--json", *arguments, words)
            assert json.loads(shown.stdout) == every[max(len(every) - count, 0) :], shown.output
    assert run("tail", words, words).exit_code == 0


def test_cat_prints_the_first_records(run, words: Path) -> None:
    every = run("cat", words).stdout.splitlines()
    for count in (0, 1, 100):
        assert run("cat", "-n", count, words).stdout.splitlines() == every[:count]


def test_head_of_columns(run, words: Path) -> None:
    shown = run("head", "-c", "*", "-c", "!blob", "--json", words)
    assert json.loads(shown.stdout)[0] == {"id": 1, "word": "ant", "scores": [1]}


def test_head_as_json_has_bytes_as_base64(run, words: Path) -> None:
    records = json.loads(run("head", "--json", words).stdout)
    assert records[0]["blob"] == {"base64": "/9g="}
    assert records[1]["blob"] is None


def test_head_transposes_wide_records(run, tmp_path: Path) -> None:
    tfr.write_tfrecord({f"c{i}": [i, i] for i in range(20)}, tmp_path / "wide.tfrecord")
    shown = run("head", tmp_path / "wide.tfrecord").output
    assert "record 1" in shown
    assert "c19" in shown


@pytest.fixture
def tensors(tmp_path: Path) -> Path:
    """A matrix of complex numbers, and images with varying heights, with their companion features."""
    images = [np.zeros((height, 2), np.uint8) for height in (2, 3)]
    c = np.array([[1, 1j]], np.complex64)
    payloads = [record({"c": c, "image": images[0], HOSTILE: c}), record({"c": None, "image": images[1], HOSTILE: c})]
    return written(tmp_path / "tensors.tfrecord", payloads)


def test_tensors_are_shown_with_dtype_and_shape(run, tensors: Path) -> None:
    for command in ("schema", "describe"):
        shown = run(command, tensors)
        assert shown.exit_code == 0, shown.output
        assert "tensor<complex64>[1, 2]" in shown.output
        assert "tensor<uint8>[?, ?]" in shown.output
        assert "\x1b" not in shown.output
    shown = run("head", tensors).output
    assert "1j" in shown
    assert "null" in shown
    records = json.loads(run("head", "--json", "-c", "image", tensors).stdout)
    assert records == [{"image": [[0, 0], [0, 0]]}, {"image": [[0, 0]] * 3}]
    assert json.loads(run("schema", "--json", tensors).stdout)["source"] == "companions"


@pytest.mark.parametrize("form", ["arrow", "python", "json"])
def test_schemas_of_tensors_can_be_pasted(run, tensors: Path, form: str) -> None:
    text = run("schema", "--as", form, tensors).stdout
    expected = tfr.open_reader(tensors).schema
    actual: dict[str, object] = {}
    if form == "json":
        actual["schema"] = tfr.Schema.from_json(text)
    else:
        exec(text, actual)
    assert tfr.Schema.parse(actual["schema"]) == tfr.Schema.parse(expected)


def test_head_shows_tensors_by_dtype_and_shape(run, tensors: Path) -> None:
    lines = run("head", "-c", "image", "-c", "c", tensors).output.splitlines()
    assert [" ".join(line.split()) for line in lines[2:]] == [
        "uint8[2, 2] 0, 0, 0, 0 complex64[1, 2] (1+0j), 1j",
        "uint8[3, 2] 0, 0, 0, 0, … null",
    ]


def test_head_of_no_records(run, data: Path) -> None:
    assert run("head", data / "empty.tfrecord").exit_code == 0
    assert json.loads(run("head", "--json", data / "empty.tfrecord").stdout) == []


def test_head_of_bytes(run, tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "lines.tfrecord") as writer:
        writer.write(b"one line")
    assert "one line" in run("head", "--record-type", "bytes", tmp_path / "lines.tfrecord").output


def test_schema(run, words: Path) -> None:
    shown = run("schema", words).output
    assert "4 columns, embedded" in shown
    assert "list<int64>" in shown
    actual = json.loads(run("schema", "--json", words).stdout)
    assert actual["source"] == "embedded"
    assert {"name": "word", "type": "string"} in actual["fields"]


def test_count(run, words: Path, data: Path) -> None:
    assert run("count", words).stdout == "3\n"
    counted = json.loads(run("count", "--json", words, words).stdout)
    assert counted == {"records": 6, "paths": [{"path": str(words), "records": 3}] * 2}
    assert run("count", data / "empty.tfrecord").stdout == "0\n"


def test_verify_good(run, words: Path) -> None:
    shown = run("verify", words)
    assert shown.exit_code == 0
    assert "good, 3 intact records" in shown.stdout


def test_verify_bad(run, words: Path) -> None:
    words.write_bytes(words.read_bytes()[:-1] + b"\0")
    shown = run("verify", words)
    assert shown.exit_code == 1
    assert "CorruptRecordError" in shown.stdout
    report = run("verify", "--json", words)
    assert report.exit_code == 1
    assert json.loads(report.stdout)["files"][0]["records"] == 2


def test_describe(run, words: Path) -> None:
    shown = run("describe", words).output
    assert "3 records" in shown
    assert "1 … 3" in shown
    columns = {c["name"]: c for c in json.loads(run("describe", "--json", words).stdout)["columns"]}
    assert columns["id"]["mean"] == 2.0
    assert columns["word"]["nulls"] == 1
    assert columns["blob"]["max_length"] == 100
    assert columns["scores"]["max_length"] == 2
    first = {c["name"]: c for c in json.loads(run("describe", "--limit", "2", "--json", words).stdout)["columns"]}
    assert first["id"]["mean"] == 1.5


@pytest.mark.parametrize("name", ["tutorial", "ragged", "images", "extremes", "empty"])
@pytest.mark.parametrize("command", SHOWING)
def test_golden_files_are_shown(run, data: Path, command: str, name: str) -> None:
    for flags in ([], ["--json"]):
        shown = run(command, *flags, data / f"{name}.tfrecord")
        assert shown.exit_code == 0, shown.output
    documents(command, shown.stdout)


def documents(command: str, text: str) -> Any:
    """What a command prints with --json: one document, of `cat` one in each line."""
    return [json.loads(line) for line in text.splitlines()] if command == "cat" else json.loads(text)


@pytest.mark.fault(58)
@pytest.mark.parametrize("command", SHOWING)
def test_terminal_escapes_in_names_and_values_are_escaped(run, tmp_path: Path, command: str) -> None:
    path = tmp_path / "hostile.tfrecord"
    with tfr.RecordWriter(path) as writer:
        writer.write(
            tfr.encode_example({HOSTILE: HOSTILE, "list": [HOSTILE, HOSTILE], "bytes": HOSTILE.encode() + b"\xff"})
        )
    for flags in ([], ["--json"]):
        shown = run(command, *flags, path)
        assert shown.exit_code == 0, shown.output
        assert "\x1b" not in shown.output
        assert "\x07" not in shown.output


def test_index_writes_an_index_for_each_file(run, words: Path) -> None:
    shown = run("index", words)
    assert shown.exit_code == 0, shown.output
    assert f"{words}.index" in shown.stdout
    assert "3" in shown.stdout
    assert len(Path(f"{words}.index").read_text().splitlines()) == 3
    (actual,) = json.loads(run("index", "--json", words).stdout)
    assert actual == {
        "path": str(words),
        "index": f"{words}.index",
        "records": 3,
        "bytes": words.stat().st_size,
        "error": None,
    }


def test_index_check_reports_an_index_that_does_not_fit(run, words: Path) -> None:
    missing = run("index", "--check", words)
    assert missing.exit_code == 1
    assert "the file has no index" in missing.stderr
    run("index", words)
    assert run("index", "--check", words).exit_code == 0
    index = Path(f"{words}.index")
    content = index.read_bytes()
    tfr.write_tfrecord({"id": [1]}, words)
    index.write_bytes(content)
    misfit = run("index", "--check", "--json", words)
    assert misfit.exit_code == 1
    assert "does not match" in json.loads(misfit.stdout)[0]["error"]["message"]


def test_index_of_a_compressed_file_is_a_usage_error(run, data: Path) -> None:
    shown = run("index", data / "tutorial_gzip.tfrecord.gz")
    assert shown.exit_code == 2
    assert "compressed (gzip)" in shown.stderr


def test_a_column_index(run, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"label": [3, 1], "image/id": ["a", "b"], "image": [b"x", b"y"]}, path)
    (built,) = json.loads(run("index", "--json", "--columns", "label,image/id", path).stdout)
    assert (built["index"], built["records"]) == (f"{path}.column_index", 2)
    with tfr.open_random(path) as records:
        assert records.select([("label", "==", 1), ("image/id", "==", "b")]).numbers.tolist() == [1]
    run("index", "-c", "label", "-c", "image", path)
    assert run("index", "--check", path).exit_code == 0
    assert run("index", "--check", "-c", "label", path).exit_code == 2
    absent = run("index", "-c", "absent", path)
    assert (absent.exit_code, "absent" in absent.stderr) == (2, True)


@pytest.mark.parametrize("shapes", [[(2, 3), (2, 3)], [(2, 3), (1, 3)]], ids=["one shape", "varying"])
def test_tensors_of_every_dtype_are_shown(run, tmp_path: Path, shapes: list[tuple[int, int]]) -> None:
    path = tmp_path / "all.tfrecord"
    tfr.write_tfrecord({name: [values_of(name, shape, 1) for shape in shapes] for name in NAMES}, path)
    for command in SHOWING:
        shown = run(command, path)
        assert shown.exit_code == 0, shown.output
        assert "extension<" not in shown.output
        assert run(command, "--json", path).exit_code == 0
    axes = "[2, 3]" if shapes[0] == shapes[1] else "[?, ?]"
    fields = json.loads(run("schema", "--json", path).stdout)["fields"]
    assert [field["type"] for field in fields] == [f"tensor<{name}>{axes}" for name in NAMES]
    first, second = json.loads(run("head", "--json", path).stdout)
    for name in NAMES:
        assert (np.shape(first[name]), np.shape(second[name])) == tuple(shapes)
    described = {column["name"]: column for column in json.loads(run("describe", "--json", path).stdout)["columns"]}
    assert described["int16"]["minimum"] == min(int(values_of("int16", shape, 1).min()) for shape in shapes)
    assert (described["int16"]["min_shape"], described["int16"]["max_shape"]) == ([shapes[1][0], 3], [2, 3])


@pytest.mark.parametrize("command", READING)
def test_missing_shards_are_allowed_by_the_option_that_the_error_advises(run, tmp_path: Path, command: str) -> None:
    for index in (0, 2):
        tfr.write_tfrecord({"x": [index]}, tmp_path / f"t-0000{index}-of-00003")
    failed = run(command, tmp_path)
    assert failed.exit_code == 2
    assert "--allow-missing-shards reads the others" in failed.output
    assert run(command, "--allow-missing-shards", tmp_path).exit_code == 0


def piped(content: bytes, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [*interpreter(), "-m", "tfrecord_io", *map(str, arguments)]
    return subprocess.run(command, input=content, capture_output=True, timeout=60, check=False)


@pytest.mark.matrix
@pytest.mark.parametrize("command", SHOWING)
@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_standard_input_is_read_like_a_file(run, words: Path, command: str, name: str) -> None:
    done = piped(words.read_bytes(), command, "--json", name)
    assert done.returncode == 0, done.stderr
    expected = run(command, "--json", words).stdout
    found = documents(command, done.stdout.decode())
    wanted = documents(command, expected.replace(json.dumps(str(words)), '"/dev/stdin"'))
    if command == "verify":  # the size of a pipe is not known
        assert (found["files"][0].pop("size"), wanted["files"][0].pop("size")) == (None, words.stat().st_size)
    assert found == wanted


def test_a_redirected_file_is_standard_input(words: Path) -> None:
    with words.open("rb") as file:
        command = [*interpreter(), "-m", "tfrecord_io", "count", "-"]
        assert subprocess.run(command, stdin=file, capture_output=True, timeout=60, check=True).stdout == b"3\n"


def test_conversion_from_standard_input_to_standard_output(run, words: Path, tmp_path: Path) -> None:
    assert piped(words.read_bytes(), "convert", "-", tmp_path / "a.parquet").returncode == 0
    done = piped(b"", "convert", "--json", tmp_path / "a.parquet", "-")
    assert json.loads(done.stderr)["records"] == 3
    (tmp_path / "b.tfrecord").write_bytes(done.stdout)
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(tfr.read_table(words))
    with (tmp_path / "c.tfrecord").open("wb") as file:
        command = [*interpreter(), "-m", "tfrecord_io", "convert", tmp_path / "a.parquet", "-"]
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, timeout=60, check=True)
    assert (tmp_path / "c.tfrecord").read_bytes() == done.stdout


@pytest.mark.parametrize("target", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_goes_on_in_a_file(words: Path, tmp_path: Path, target: str) -> None:
    with (tmp_path / "all.csv").open("ab") as file:
        file.write(b"before\n")
        file.flush()
        command = [*interpreter(), "-m", "tfrecord_io", "convert", words, target, "--to", "csv", "--columns", "id,word"]
        subprocess.run(command, stdout=file, stderr=subprocess.DEVNULL, timeout=60, check=True)
        file.write(b"after\n")
    lines = (tmp_path / "all.csv").read_text().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 6)


@pytest.mark.parametrize("target", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_other_names_of_standard_output_keep_the_summary_out_of_the_data(words: Path, target: str) -> None:
    done = piped(b"", "convert", words, target)
    assert b"3 records" in done.stderr
    assert list(tfr.RecordReader(io.BytesIO(done.stdout))) == list(tfr.RecordReader(words))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["count", "-", "-"], "only once"),
        (["diff", "-", "-"], "Invalid value for 'B': - is standard input, which can be read only once"),
        (["index", "-"], "next to its file"),
        (["get", "-", 3], "standard input is read in order only"),
        (["convert", "--shards", 2, "x.parquet", "-"], "need a path"),
        (["salvage", "a.tfrecord", "-"], "files are not written to standard output: pass a path"),
        (["copy", "a.tfrecord", "-"], "files are not written to standard output: pass a path"),
    ],
)
def test_uses_of_standard_streams_that_make_no_sense(run, arguments: list[object], message: str) -> None:
    shown = run(*arguments)
    assert shown.exit_code == 2
    assert message in shown.stderr


# ---- sql


def test_sql_reads_the_paths_that_a_query_names(run, words: Path, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    tfr.convert(words, tmp_path / "words.parquet")
    shown = run("sql", f"SELECT word, id * 2 AS twice FROM '{words}' WHERE id < 3 ORDER BY id")
    assert shown.exit_code == 0, shown.output
    assert "twice" in shown.output
    assert "bee" in shown.output
    query = f"""WITH few AS (SELECT id FROM '{tmp_path}/*.tfrecord' WHERE word IS NOT NULL)
        SELECT max(id) AS total, count(*) AS one FROM few JOIN '{tmp_path}/words.parquet' AS other USING (id)
        WHERE id = 2"""
    shown = run("sql", "--json", query)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == [{"total": 2, "one": 1}]
    assert json.loads(run("sql", "--json", "SELECT 1 AS x").stdout) == [{"x": 1}]
    assert json.loads(run("sql", "--json", "SET threads = 1").stdout) == []


@pytest.mark.parametrize("how", [["--json"], ["-o", "x.jsonl"]], ids=str)
def test_sql_refuses_columns_of_one_name(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: list[str]) -> None:
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    shown = run("sql", "SELECT 1 AS a, 2 AS a", *how)
    assert shown.exit_code != 0
    assert "feature 'a': 2 columns have this name; rename them" in shown.output


@pytest.mark.parametrize("target", ["out.parquet", "out.csv", "out.jsonl", "out.tfrecord", "out@2", "out.arrow"])
def test_sql_writes_its_result(run, words: Path, tmp_path: Path, target: str) -> None:
    query = f"SELECT id, word, sum(id) OVER () AS total, 0.1::DOUBLE AS tenth FROM '{words}' ORDER BY id"
    shown = run("sql", query, "-o", tmp_path / target, "--mode", "error")
    assert shown.exit_code == 0, shown.output
    assert "records" in shown.stdout
    if target != "out.tfrecord" and "@" not in target:
        tfr.convert(tmp_path / target, tmp_path / "again", float64="raw")
    rows = tfr.read_table(tmp_path / ("again" if (tmp_path / "again").exists() else target)).to_pylist()
    expected = json.loads(run("sql", query, "--json").stdout)
    assert [{**row, "total": int(row["total"])} for row in rows] == expected
    assert {type(row["total"]) for row in expected} == {int}
    if "@" not in target:
        assert run("sql", query, "-o", tmp_path / target, "--mode", "error").exit_code == 3
    assert run("sql", query, "-o", tmp_path / "out.xlsx").exit_code != 0


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such name of a directory")
def test_storage_options_of_a_query_are_not_for_a_local_target(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose path may have what is the end of a protocol elsewhere."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:").mkdir()
    shown = run("sql", "SELECT 1 AS x", "-o", "./a://b.tfrecord", "--storage-option", "anon=true")
    assert shown.exit_code == 0, shown.output
    assert tfr.count(tmp_path / "a:" / "b.tfrecord") == 1


def test_sql_writes_its_result_to_stdout(words: Path) -> None:
    done = piped(b"", "sql", "--json", f"SELECT id FROM '{words}'", "-o", "-")
    assert (done.returncode, json.loads(done.stderr)["records"]) == (0, 3)
    assert len(list(tfr.RecordReader(io.BytesIO(done.stdout)))) == 3


@pytest.mark.matrix
@pytest.mark.parametrize(
    "query",
    [
        "SELECT x FROM 's3://B/a.tfrecord'",
        "SELECT a.x FROM 's3://B/a.tfrecord' a JOIN 's3://B/d/' b USING (x) JOIN 's3://B/a.parquet' c USING (x)",
        "SELECT a.x FROM 's3://B/a.tfrecord' a JOIN 'LOCAL' b USING (x)",
        "SELECT a.x FROM 'LOCAL' a JOIN read_parquet(['s3://B/a.parquet']) b USING (x)",
        "SELECT x FROM 'LOCAL' WHERE x IN (SELECT x FROM read_csv('s3://B/*.csv'))",
        "WITH few AS (FROM read_parquet('s3://B/*.parquet')) SELECT x FROM few",
        "SELECT x FROM 's3a://B/a.csv'",
        "SELECT x FROM (PIVOT 's3://B/a.parquet' ON x IN (1, 2) USING count(*) GROUP BY x)",
    ],
)
@pytest.mark.parametrize("target", ["LOCAL.parquet", "LOCAL.tfrecord", "s3://B/out.parquet", "s3://B/out/"])
def test_sql_passes_storage_options_to_all_files(run, s3: Bucket, tmp_path: Path, query: str, target: str) -> None:
    """Files that DuckDB reads itself get the options, too, wherever they are in the query."""
    pytest.importorskip("duckdb")
    local, table, storage = tmp_path / "local", pa.table({"x": [1, 2]}), {"storage_options": s3.storage_options}
    query, target = (text.replace("LOCAL", str(local)).replace("//B/", f"//{s3.name}/") for text in (query, target))
    tfr.write_tfrecord(table, local)
    tfr.write_tfrecord(table, s3.url("a.tfrecord"), **storage)
    tfr.write_tfrecord(table, s3.url("d/"), shards=2, **storage)
    for name in ("a.parquet", "a.csv"):
        tfr.convert(local, s3.url(name), **storage)
    given = options(s3)
    shown = run("sql", "--json", f"{query} ORDER BY x", *given)
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == [{"x": 1}, {"x": 2}]
    assert run("sql", query, "-o", target, *given).exit_code == 0
    written = {*map(str, tmp_path.iterdir()), *map(s3.url, s3.names())}
    assert {target, f"{target}_MANIFEST.json"} & written


def options(bucket: Bucket) -> list[str]:
    return [part for key, value in bucket.storage_options.items() for part in ("--storage-option", f"{key}={value}")]


def test_storage_options_of_a_query_of_local_files(run, s3: Bucket, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "local")
    query = f"SELECT x FROM '{tmp_path}/local'"
    assert run("sql", query, "-o", s3.url("out.csv"), *options(s3)).exit_code == 0
    assert s3.names() == ["out.csv"]
    assert "--storage-option is for URLs" in run("sql", query, *options(s3)).stderr


def test_an_empty_name_is_shown_as_quotes(run, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"": [1], "x": [2]}, path)
    for command in ("schema", "describe", "head"):
        assert '""' in run(command, path).stdout
    assert 'valid names: "", x' in run("head", path, "-c", "y").stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["head", "PATH", "--where", "x > 1"],
        ["head", "PATH", "-c", "x"],
        ["cat", "PATH", "--where", "x > 1"],
        ["describe", "PATH", "--where", "x > 1"],
        ["convert", "PATH", "o.jsonl", "--where", "x > 1"],
        ["delete", "PATH", "--where", "x > 1"],
        ["sql", "SELECT x FROM 'PATH'"],
    ],
)
def test_a_file_of_another_format_is_said_to_be_one(run, tmp_path: Path, arguments: list[str]) -> None:
    """And not that it has no column of a name."""
    path = tmp_path / "a.tfrecord"
    path.write_text("id,x\n" * 20)
    shown = run(*(argument.replace("PATH", str(path)) for argument in arguments))
    assert (shown.exit_code, "not TFRecord: looks like plain text" in shown.stderr) == (1, True), shown.output


def test_sql_advises(run, words: Path, tmp_path: Path) -> None:
    copied = run("sql", f"COPY (SELECT * FROM '{words}') TO '{tmp_path}/x.parquet'")
    assert "use a SELECT: tfr sql --output FILE writes its result" in copied.stderr
    assert "tables are quoted paths of files: FROM 'pets.tfrecord'" in run("sql", "SELECT * FROM pets").stderr
    assert "the query has 2 statements: pass one SELECT" in run("sql", f"FROM '{words}'; DROP TABLE x").stderr


def test_sql_that_fails(run, words: Path, tmp_path: Path) -> None:
    is_duckdb_1 = pytest.importorskip("duckdb").__version__.startswith("1.")  # it does not show the line in one
    for query, text in [
        ("SELEC 1", 'syntax error at or near "SELEC"' + ("" if is_duckdb_1 else "; LINE 1: SELEC 1")),
        (f"SELECT nothing FROM '{words}'", "nothing"),
        ("SELECT * FROM absent", "absent"),
        (f"SELECT * FROM '{tmp_path}/absent.tfrecord'", "absent.tfrecord"),
    ]:
        shown = run("sql", query)
        assert shown.exit_code == 2, shown.output
        assert text in shown.output
    content = bytearray(words.read_bytes())
    content[-6] ^= 1
    words.write_bytes(content)
    shown = run("sql", f"SELECT sum(id) FROM '{words}'")
    assert shown.exit_code == 1, shown.output
    assert "words.tfrecord: record 2 at byte" in shown.output


def test_head_with_a_type_that_the_values_do_not_have_fails(run, tmp_path: Path) -> None:
    """Records of another type than most are left out; where the type is declared, it is what the caller mistook."""
    tfr.write_tfrecord({"id": [1, 2], "n": [3, 4]}, tmp_path / "a")
    shown = run("head", tmp_path / "a", "--type", "id=string")
    assert shown.exit_code == 1
    assert "feature 'id': expected a BytesList, got an Int64List; pass --type with a type that fits" in shown.stderr
    assert run("head", tmp_path / "a", "--type", "id=string", "--on-error", "skip").exit_code == 0
    assert run("head", tmp_path / "a", "--type", "id=int32").exit_code == 0
