"""Messages name only what the call at hand has: advice about other keywords is left out, by one rule for all texts."""

from __future__ import annotations

import inspect
import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from border import public
from messages import ALL_KEYWORDS, KEYWORDS, foreign_keywords, message_strings
from records import example, int64s, written
from tfrecord_io.advice import fit, fitting, fitting_message, mentions, spelled

# ---- the rule


def only(*names: str) -> Callable[[re.Match[str]], str | None]:
    return lambda match: match[0] if match["name"] in names else None


@pytest.mark.parametrize(
    ("advice", "names", "left"),
    [
        ("see on_error=", {"on_error"}, "see on_error="),
        ("see on_error=", set(), ""),
        ("pass schema=, or leave it out", set(), "leave it out"),
        ("pass schema=, or pass a larger sample=; or rename it", {"sample"}, "pass a larger sample=; or rename it"),
        ("pass shards= or max_shard_bytes=", {"shards"}, ""),  # one alternative
        (
            "read it with read_arrays(missing='mask'), or pass schema=",
            set(),
            "read it with read_arrays(missing='mask')",
        ),
        ("declare it: schema={'x': tfr.scalar('int64', default=-1)}", {"schema"}, None),
        ("declare it: schema={'x': tfr.scalar('int64', default=-1)}", {"default"}, ""),
        ("rename the folder day=1/, or the column 'limit=3'", set(), None),
        ("did you mean 'a'? valid names: a, b", set(), None),
    ],
)
def test_advice_is_left_out_where_a_keyword_is_missing(advice: str, names: set[str], left: str | None) -> None:
    assert fitting(advice, only(*names)) == (advice if left is None else left)


def test_the_reason_stays() -> None:
    text = "day=1/a.tfrecord: record 3: fractions=[2] is too much; see on_error=; delete it"
    assert fitting_message(text, only()) == "day=1/a.tfrecord: record 3: fractions=[2] is too much; delete it"


def test_calls_of_functions_are_nothing_for_a_command() -> None:
    text = "pass missing=, or read it with read_arrays(missing='mask'), or delete it"
    assert fitting(text, only(), calls=False) == "delete it"


@given(st.text(), st.sets(st.sampled_from(["a", "limit", "schema"])))
def test_any_text_is_taken(text: str, names: set[str]) -> None:
    assert spelled(text, only(*names)) == text
    assert fitting_message(text, lambda match: match[0]) == text
    left = fitting_message(text, only(*names))
    reason = text.partition("; ")[0]
    assert left.startswith(reason)
    assert all(match["name"] in names for match in mentions(left[len(reason) :]))


def test_errors_keep_what_they_are() -> None:
    error: Any = tfr.errors.SchemaError("it is odd", path="a", record=3, advice="see on_error=")
    fit(error, only())
    assert (str(error), error.advice, error.record) == ("a: record 3: it is odd", None, 3)
    error = FileExistsError(17, "the file exists; overwrite=True replaces it", "a")
    fit(error, only())
    assert (str(error), error.errno, error.filename) == ("[Errno 17] the file exists: 'a'", 17, "a")
    error = ValueError("x is 3; pass y=", 4)
    fit(error, only())
    assert error.args == ("x is 3", 4)
    for error in (KeyError(3), UnicodeDecodeError("utf-8", b"x", 0, 1, "bad"), OSError("; pass y="), ValueError()):
        before = error.args
        fit(error, only())
        assert error.args == before or error.args == ("",)


# ---- the texts


# Names in texts that are no keywords of public calls, but look like it: in parentheses what they are.
_OTHERS = {
    "class_labels",  # of Schema.from_tfds
    "sequence_feature",  # of Schema.from_tfx
    "block_bytes",  # of an internal class
    "sequence",
    "tz",  # of pa.timestamp
    "workers",  # of to_torch
    "rank",  # of to_torch
    "num_workers",  # of a DataLoader
    "ordered",
    "value_type",
    "metadata",
    "value_key",
    "default_value",
    "train",  # names of parts, in help texts
    "eval",
    "srcdoc",  # HTML
    "width",
    "height",
    "frameborder",
    "boundary",  # HTTP
}
_TABLES = ("plugins/tensorflow/tfx_messages", "options/keyword_names")  # modules with tables of names
_VERBS = set(
    "add call cast check choose convert copy declare delete describe exclude flatten leave make name omit pass put "
    "raise read rename replace see select shuffle split store use wait write".split()
)


def test_keywords_are_written_with_their_sign() -> None:
    """So that they can be told from other words: ``storage_options=``, and not "storage_options are for URLs"."""
    distinctive = {name for name in ALL_KEYWORDS if "_" in name}
    wrong = []
    for where, text in message_strings():
        unknown = {match["name"] for match in mentions(text)} - ALL_KEYWORDS - _OTHERS
        bare = set(re.findall(r"(?<![\w.`'\"/{-])[a-z]+(?:_[a-z0-9]+)+(?![\w=(./])", text)) & distinctive
        if unknown or (bare and not where.startswith(_TABLES)):
            wrong.append(f"{where} names {unknown | bare}: {text!r}")
    assert wrong == []


def test_each_alternative_is_a_phrase_of_its_own() -> None:
    """What is left after an alternative is left out makes sense: it begins with a verb, or with what has an effect."""
    wrong = []
    for where, text in message_strings():
        for clause in text.split("; "):
            alternatives = clause.split(", or ")
            if not any([*mentions(alternative)] for alternative in alternatives):
                continue
            for alternative in alternatives[1:]:
                begins_with_keyword = next((match.start() == 0 for match in mentions(alternative)), False)
                if alternative.partition(" ")[0] not in _VERBS | {"{}"} and not begins_with_keyword:
                    wrong.append(f"{where}: {alternative!r} in {text!r}")
    assert wrong == []


# ---- what calls raise


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Inputs that calls refuse, each for another reason."""
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord({"x": [1, 2, 3]}, "damaged.tfrecord")
    Path("damaged.tfrecord").write_bytes(Path("damaged.tfrecord").read_bytes()[:-2])
    Path("text.tfrecord").write_text("hello, this is no TFRecord file\n" * 10)
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
        {"src_format": "elwc"},
        {"dst_format": "npy"},
        {"dst_format": "csv"},
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
    if hasattr(result, "read_all"):
        result.read_all()
    elif hasattr(result, "__next__"):
        for _ in result:
            pass


def told(name: str, source: Any, keywords: dict[str, Any]) -> tuple[list[str], bool]:
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
            messages, raised = told(name, source, {**keywords, **more})
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
    assert [name for name in names if not hasattr(public(name), "_is_advised")] == []


def test_what_takes_no_storage_options_of_one_side_does_not_name_them() -> None:
    with pytest.raises(ValueError, match=r"^storage_options= is for URLs, and 'a' is a local path$"):
        tfr.read_table("a", storage_options={"anon": True})
    both = "; src_storage_options= and dst_storage_options= are for the source and the target alone$"
    for copy in (tfr.merge, tfr.convert, tfr.salvage):
        with pytest.raises(ValueError, match=both):
            copy("a", "s3://bucket/b", storage_options={"anon": True})
    with pytest.raises(ValueError, match=r"; a_storage_options= and b_storage_options= are for one of both$"):
        tfr.diff("a", "s3://bucket/b", storage_options={"anon": True})


def test_keywords_of_inner_calls_have_the_names_of_the_outer_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("path\nnone.bin\n")
    with pytest.raises(FileNotFoundError, match='; missing_files="null" makes it a missing value'):
        tfr.convert(tmp_path / "a.csv", tmp_path / "b", embed={"x": "path"}, embed_folder=tmp_path)
    with pytest.raises(FileNotFoundError, match='; missing="null" makes it a missing value'):
        tfr.formats.embed_files(pa.table({"path": ["none.bin"]}), {"x": "path"}, folder=tmp_path).read_all()
