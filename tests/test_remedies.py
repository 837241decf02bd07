"""Messages name only what the call at hand has: advice about other keywords is left out, by one rule for all texts."""

from __future__ import annotations

import inspect
import io
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from border import public
from messages import ALL_KEYWORDS, KEYWORDS, foreign_keywords, mentions, message_strings
from records import example, int64s, written
from tfrecord_io.call_errors import check_keywords
from tfrecord_io.cli.command_group import option_names
from tfrecord_io.errors import warn
from tfrecord_io.remedies import Caller, Keyword, Message, address, addressed_to, say

# ---- the rule

VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.lists(st.text(), max_size=2))
NAMES = ("limit", "schema", "seed")


def only(*names: str) -> Caller:
    return Caller(frozenset(names))


@pytest.mark.parametrize(
    ("advice", "names", "left"),
    [
        (say("see {on_error=}"), {"on_error"}, "see on_error="),
        (say("see {on_error=}"), set(), ""),
        (say("pass {schema=}") | "leave it out", set(), "leave it out"),
        (say("pass {schema=}") | say("pass a larger {n=}") & "rename it", {"n"}, "pass a larger n=; rename it"),
        (say("pass {shards=} or {max_shard_bytes=}"), {"shards"}, ""),  # one alternative
        (say("read it with {read_arrays(missing='mask')}") | say("pass {schema=}"), set(), None),
        (say("rename the folder {}", "day=1/; seed=3, or x=") & say("see {on_error=}"), set(), None),
        ("declare it" | say("pass {schema=}", schema={"x": "; seed=3, or {limit=}"}), set(), "declare it"),
    ],
)
def test_advice_is_left_out_where_a_keyword_is_missing(advice: Message, names: set[str], left: str | None) -> None:
    expected = Message(advice.clauses[:1]) if left is None else left
    expected = str(expected).partition(", or pass")[0] if left is None else expected
    assert advice.rendered(only(*names), is_advice=True) == expected


def test_calls_and_values_have_the_words_of_the_caller() -> None:
    command = option_names(click.Command("head", params=[click.Option(["--limit", "-n"])]))
    advice = say("{tfr.salvage(path, target)|tfr salvage PATH TARGET} keeps it") | say("call {tfr.image()}")
    text = "odd" & advice & say("pass {limit=}", limit=5) & say("see {seed=}")
    assert str(text) == "odd; tfr.salvage(path, target) keeps it, or call tfr.image(); pass limit=5; see seed="
    assert text.rendered(command) == "odd; tfr salvage PATH TARGET keeps it; pass --limit 5"


@given(st.text(), st.text(), VALUES, st.sets(st.sampled_from(NAMES)))
def test_no_text_and_no_value_is_altered(reason: str, path: str, value: Any, names: set[str]) -> None:
    """Whatever they contain: keywords, braces, separators of clauses and of alternatives."""
    text = reason & say("delete {}", path) | say("pass {limit=}", limit=value) & say("see {seed=}") | path
    assert str(text) == f"{reason}; delete {path}, or pass limit={value!r}; see seed=, or {path}"
    limit = f", or pass limit={value!r}" if "limit" in names else ""
    seed = "see seed=, or " if "seed" in names else ""
    assert text.rendered(only(*names)) == f"{reason}; delete {path}{limit}; {seed}{path}"
    error = tfr.errors.SchemaError(reason, path=path, advice=text)
    assert Message(error.remedies) == text
    assert pickle.loads(pickle.dumps(text)).clauses == text.clauses


def test_errors_keep_what_they_are() -> None:
    error: Any = tfr.errors.SchemaError("it is odd", path="a", record=3, advice=say("see {on_error=}"))
    assert error.remedies == ((("see ", Keyword("on_error")),),)
    address(error, only())
    assert (str(error), error.advice, error.record) == ("a: record 3: it is odd", None, 3)
    error = FileExistsError(17, "the file exists" & say("{mode='overwrite'} replaces it"), "a")
    address(error, only())
    assert (str(error), error.errno, error.filename) == ("[Errno 17] the file exists: 'a'", 17, "a")
    error = ValueError("x is 3" & say("pass {y=}"), 4)
    address(error, only())
    assert (error.args[1], str(error.args[0])) == (4, "x is 3")
    for error in (KeyError(3), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), OSError("; pass y="), ValueError()):
        before = error.args, str(error)
        address(error, only())
        assert (error.args, str(error)) == before


def test_warnings_are_addressed_to_the_calls_that_run() -> None:
    text = say('{float64="raw"} keeps it') | say("pass {limit=}", limit=5) | say("{float64='round'} rounds it")
    with (
        addressed_to(only("size", "float64")),
        addressed_to(Caller(names={"limit": "size"}, without=frozenset({'float64="raw"'}))),
        pytest.warns(UserWarning, match="odd") as caught,
    ):
        warn("odd" & text, UserWarning)
    assert str(caught[0].message) == "odd; pass size=5, or float64='round' rounds it"


def test_renamed_keywords_are_those_of_the_outer_call() -> None:
    error: Any = ValueError(say("{missing=}: pass another", missing="null"))
    address(error, Caller(names={"missing": "missing_files"}))
    address(error, only("missing_files"))
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert str(each) == "missing_files='null': pass another"


# ---- the texts

_NO_MESSAGES = (
    "options/names_in_other_libraries",
    "plugins/report/dataset_statistics",
    "schema/type_names",
    "cli/schema_text",
    "cli/write_commands",
    "testing/",
    "training/mixture.py",
    "training/windows.py",
)


def test_keywords_are_fields() -> None:
    """A text that names a keyword says which: ``say("see {on_error=}")``, and not "see on_error="."""
    texts = [(where, text) for where, text in message_strings() if not where.startswith(_NO_MESSAGES)]
    assert len(texts) > 1000
    without = [(where, re.sub(r"\{[^{}]*\}", "{}", text)) for where, text in texts]
    wrong = [(where, text) for where, text in without if set(mentions(text)) & ALL_KEYWORDS]
    assert wrong == []


# ---- what calls raise


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Inputs that calls refuse, each for another reason."""
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2, 3]}, "damaged.tfrecord")
    Path("damaged.tfrecord").write_bytes(Path("damaged.tfrecord").read_bytes()[:-2])
    Path("text.tfrecord").write_text("hello, this is not a TFRecord file\n" * 10)
    Path("pointer.tfrecord").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    tfr.write_tfrecord({"x": [1, 2]}, "zipped.tfrecord.gz")
    Path("zipped.tfrecord.gz").write_bytes(Path("zipped.tfrecord.gz").read_bytes()[:-5])
    tfr.write_tfrecord({"x": [1, 2]}, "shards@4")
    Path("shards-00002-of-00004").unlink()
    for name, value in (("a", 1), ("b", "text")):
        tfr.write_tfrecord({"x": [value]}, f"{name}.tfrecord")
    written(Path("kinds.tfrecord"), [example(x=int64s(1)), example(x=b"\x0a\x03\x0a\x01a")])
    written(Path("messages.tfrecord"), [b"\x08\x05"] * 3)
    written(Path("ragged.tfrecord"), [example(x=int64s(1)), example(x=int64s(1, 2)), example()])
    Path("day=1").mkdir()
    written(Path("day=1/a.tfrecord"), [example(day=int64s(1))])
    Path("two/train").mkdir(parents=True)
    Path("two/test").mkdir()
    tfr.write_tfrecord({"x": [1]}, "two/train/a.tfrecord")
    Path("names.csv").write_text("a,b,a\n1,2,3\n")
    Path("big.csv").write_text("id\n9223372036854775808\n")
    Path("folder/cat").mkdir(parents=True)
    for name in ("folder/cat/a.png", "folder/b.png"):
        Path(name).write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    np.savez("objects.npz", x=np.array([None]))
    written(Path("empty.tfrecord"), [])
    files = ["damaged", "text", "pointer", "a", "kinds", "messages", "ragged", "empty"]
    return {
        **{name: f"{name}.tfrecord" for name in files},
        "compressed": "zipped.tfrecord.gz",
        "shards": "shards@4",
        "conflict": ["a.tfrecord", "b.tfrecord"],
        "partition": "day=*/*.tfrecord",
        "folders": "two",
        "csv": "names.csv",
        "integers": "big.csv",
        "images": "folder",
        "npz": "objects.npz",
        "missing": "none.tfrecord",
        "object": io.BytesIO(b"\x00" * 100),
        "local": ("a.tfrecord", {"storage_options": {"anon": True}}),
        "columns": ("a.tfrecord", {"columns": ["y"]}),
        "overrides": ("a.tfrecord", {"schema_overrides": {"y": "int8"}}),
        "schema": ("a.tfrecord", {"schema": {"x": "string"}}),
        "bytes": ("a.tfrecord", {"record_type": "bytes", "schema": {"x": "int64"}}),
    }


_MORE: dict[str, list[dict[str, Any]]] = {
    "iter_arrays": [{"batch_size": 2}],
    "split": [{"shards": 2}, {"by": "x"}, {"fractions": [0.5, 0.5]}],
    "sample": [{"n": 2}],
    "build_index": [{"columns": ["x"]}],
    "convert": [
        {},
        {"resume": True},
        {"files": "all"},
        {"files": "images"},
        {"embed": {"y": "x"}},
        {"source_format": "elwc"},
        {"target_format": "npy"},
        {"target_format": "csv"},
    ],
    "open_coco": [{"images": "folder"}],
    "embed_files": [{"columns": {"y": "x"}}],
    "explode": [{"prefix": "x"}],
}
_TARGETS = {"dst", "target"}
_SKIPPED = {"register_spark", "scan_polars", "register_duckdb"}


def calls() -> list[str]:
    """The public functions that take a path first."""
    firsts = {"path", "src", "source", "a", "annotations", "folder"}
    functions = [name for name in KEYWORDS if name[0].islower() and "storage_options" in KEYWORDS[name]]
    return [name for name in functions if keywords_of(name)[0] in firsts and name not in _SKIPPED]


def keywords_of(name: str) -> list[str]:
    return list(inspect.signature(public(name)).parameters)


def finish(result: Any) -> None:
    """Read all that a call returned."""
    if isinstance(result, tfr.Dataset):
        result.to_table()
    elif hasattr(result, "read_all"):
        result.read_all()
    elif hasattr(result, "__next__"):
        for _ in result:
            pass


def outcome(name: str, source: Any, keywords: dict[str, Any]) -> tuple[list[str], bool]:
    """The messages of the warnings and the error of a call, and whether it raised one."""
    function, parameters = public(name), keywords_of(name)
    arguments = [source]
    if len(parameters) > 1 and parameters[1] in _TARGETS:
        arguments.append(f"out/{name}/")
    elif parameters[1:2] == ["b"]:
        arguments.append("a.tfrecord")
    error: list[str] = []
    reported: list[str] = []
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        try:
            result = function(*arguments, **keywords)
            finish(result)
            reported = [line for lines in ("problem_lines", "loss_lines") for line in getattr(result, lines, list)()]
        except Exception as raised:
            error = [str(raised)]
    warned = [str(warning.message) for warning in issued if warning.category is not ResourceWarning]
    return [*warned, *reported, *error], bool(reported or error)


@pytest.mark.parametrize("name", calls())
def test_errors_name_only_keywords_that_the_call_has(inputs: dict[str, Any], name: str) -> None:
    own, failed = set(keywords_of(name)), 0
    for what, source_of in inputs.items():
        source, keywords = source_of if isinstance(source_of, tuple) else (source_of, {})
        for more in _MORE.get(name, [{}]) if set(keywords) <= own else ():
            messages, raised = outcome(name, source, {**keywords, **more})
            failed += raised
            for message in messages:
                assert foreign_keywords(message, own) == [], f"{name} of {what}: {message}"
    assert failed > 5


def test_conflicting_schemas_in_copies(inputs: dict[str, Any]) -> None:
    for copy in (tfr.merge, tfr.shuffle):
        with pytest.raises(tfr.errors.SchemaError, match=r"copy the files one by one$"):
            copy(inputs["conflict"], "out")


def test_an_error_of_the_caller_is_left_alone(inputs: dict[str, Any]) -> None:
    def fail(progress: tfr.typing.Progress) -> None:
        raise ValueError("mine; see limit=")

    with pytest.raises(ValueError, match=r"^mine; see limit=$"):
        tfr.merge("a.tfrecord", "out", progress=fail)


def test_each_call_with_keywords_of_storage_is_covered() -> None:
    names = [name for name, keywords in KEYWORDS.items() if "storage_options" in keywords and name[0].islower()]
    assert len(names) > 30
    checked = check_keywords.__code__.co_consts
    assert [name for name in names if public(name).__code__ not in checked] == []


def test_storage_options_are_for_what_is_not_local(tmp_path: Path) -> None:
    for path in ("a", tmp_path / "a"):
        with pytest.raises(ValueError, match=r"^storage_options= is for URLs, and '.*' is a local path$"):
            tfr.read_table(path, storage_options={"anon": True})
    with pytest.raises(ValueError, match="is a local path"):
        tfr.diff("a", "s3://bucket/b", storage_options={"anon": True})


def test_keywords_of_inner_calls_have_the_names_of_the_outer_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("path\nnone.bin\n")
    with pytest.raises(FileNotFoundError, match=r'target_options=.*missing_files.*"null".* makes it a missing value'):
        tfr.convert(
            tmp_path / "a.csv", tmp_path / "b", target_options={"embed": {"x": "path"}, "embed_folder": tmp_path}
        )
    with pytest.raises(FileNotFoundError, match='; missing="null" makes it a missing value'):
        tfr.formats.embed_files(pa.table({"path": ["none.bin"]}), {"x": "path"}, folder=tmp_path).read_all()
