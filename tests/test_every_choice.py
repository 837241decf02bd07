"""Every value that a signature offers for a keyword is one: it works, or the error says what is wrong."""

from __future__ import annotations

import inspect
import re
import warnings
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

import tfrecord_io as tfr
from border import PUBLIC, public
from tfrecord_io.base.options.on_damage import OnDamage
from tfrecord_io.bytes import FORMATS
from tfrecord_io.columns.schema.tensor_types import TENSOR_ENCODINGS, encoding_rules, written_encodings

TABLE = pa.table({"n": [1, 2, 3], "x": [[1.5], [], [2.5, 3.5]], "s": ["a", "b", "c"]})
REFUSED = (tfr.TFRecordError, ValueError, TypeError, OSError, ImportError)  # those that are documented


def choices() -> Iterator[tuple[str, str, Any]]:
    """Each public function, its keywords with choices, and each of these."""
    for name in PUBLIC:
        function = public(name)
        if not callable(function) or name not in CALLS:
            continue
        for keyword, parameter in inspect.signature(function).parameters.items():
            for value in dict.fromkeys(named(str(parameter.annotation))):
                yield name, keyword, value


def named(annotation: str) -> Iterator[Any]:
    """The values of the literal types in an annotation, and of those that it names."""
    for values in re.findall(r"Literal\[([^\]]*)\]", annotation):
        yield from literal_eval(f"[{values}]")
    for name in re.findall(r"\w+", annotation):
        yield from literals(vars(tfr.typing).get(name))


def literals(form: Any) -> Iterator[Any]:
    for part in get_args(form):
        yield from [part] if get_origin(form) is Literal else literals(part)


READING = ["build_index", "count", "dataset", "describe", "infer_schema", "iter_arrays", "join", "open_random"]
READING += [
    "open_reader",
    "read_arrays",
    "read_table",
    "read_tfrecord",
    "report",
    "verify",
    "RecordReader",
    "open_elwc",
]
COPYING = ["convert", "dedupe", "merge", "salvage", "sample", "shuffle", "split"]
EXPORTING = ["write_file_folder", "write_image_folder", "write_npy", "write_npz"]
WRITING = ["write_tfrecord", "open_writer", "RecordWriter", "write_tfds"]
FOLDERS = ["open_image_folder", "open_coco", "open_voc", "open_yolo"]
MORE: dict[str, dict[str, Any]] = {
    "build_index": {"columns": ["n"]},
    "iter_arrays": {"batch_size": 2, "columns": ["n"]},
    "join": {"table": TABLE.select(["n"]), "on": "n"},
    "dedupe": {"by": "n"},
    "sample": {"fraction": 0.5},
    "shuffle": {"seed": 1},
    "split": {"shards": 2},
    "open_coco": {"images": "photos"},
    "write_npy": {"column": "n"},
    "write_npz": {"columns": ["n"]},
    "open_random": {"key": "n"},
}
CALLS = {*READING, *COPYING, *EXPORTING, *WRITING, *FOLDERS, "encode_examples", "decode_examples", "embed_files"}

CHOICES = [*choices()]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord(TABLE, "a.tfrecord")
    (tmp_path / "photos").mkdir()
    Image.fromarray(np.zeros((2, 2, 3), "uint8")).save("photos/a.png")


def called(name: str, keywords: dict[str, Any]) -> Any:
    function = public(name)
    if name in COPYING or name in EXPORTING:
        return function("a.tfrecord", "out", **keywords)
    if name == "encode_examples":
        return function(TABLE, **keywords)
    if name == "decode_examples":
        return function(list(tfr.RecordReader("a.tfrecord")), **keywords)
    if name == "embed_files":
        return function({"p": ["a.tfrecord"]}, {"c": "p"}, **keywords)
    if name == "open_writer" or name == "RecordWriter":
        with function("out", **keywords):
            return None
    if name in WRITING:
        return function(TABLE, "out/mine/1.0.0" if name == "write_tfds" else "out", **keywords)
    return function("photos" if name in FOLDERS else "a.tfrecord", **keywords)


@pytest.mark.parametrize(("name", "keyword", "value"), CHOICES)
def test_a_choice_works_or_says_what_it_needs(place: None, name: str, keyword: str, value: Any) -> None:
    refused: Exception | None = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = called(name, {**MORE.get(name, {}), keyword: value})
            if hasattr(found, "read_all"):
                found.read_all()
            elif isinstance(found, tfr.Dataset):
                found.to_table()
            elif hasattr(found, "__next__"):
                list(found)
        except REFUSED as error:
            refused = error
    assert refused is None or str(refused)
    assert not isinstance(refused, TypeError) or keyword in str(refused) or "needs" in str(refused)


ENCODINGS = {row.name: encoding_rules(row.name) for row in TENSOR_ENCODINGS.own}
# Lists of values in docstrings that do not follow from a type.
LISTED = {
    ("open_random", "on_error"): OnDamage.names(OnDamage.allows_numbers),
    ("Field", "encoding"): tuple(ENCODINGS),
    ("tensor", "encoding"): tuple(name for name, rules in ENCODINGS.items() if rules.dtype_kinds),
}


def test_docstrings_list_the_values_of_each_keyword() -> None:
    """Lists such as ``{"raise", "stop"}``, of keywords whose values the type has, or a table."""
    advice = []
    for name in PUBLIC:
        doc = inspect.getdoc(public(name)) or ""
        for keyword, text in re.findall(r'^(\w+) : .*?\{((?:"|None)[^}\n]*)\}', doc, re.MULTILINE):
            parameters = inspect.signature(public(name)).parameters
            annotation = str(parameters[keyword].annotation) if keyword in parameters else ""
            values = dict.fromkeys(LISTED.get((name, keyword), named(annotation)))
            listed = literal_eval(f"[{text}]")
            if values and {*listed} - {None} != {*values} - {None}:
                shown = ", ".join(f'"{value}"' for value in values if value is not None)
                advice.append(f"the docstring of {name} needs {keyword} : {{{shown}}}")
    assert not advice, "\n".join(advice)


@pytest.mark.parametrize("encoding", [name for name in written_encodings() if name in ENCODINGS])
def test_each_encoding_is_documented(encoding: str) -> None:
    assert f'"{encoding}" (' in (inspect.getdoc(tfr.write_tfrecord) or ""), (
        "describe it at column_encoding of write_tfrecord"
    )
    if ENCODINGS[encoding].dtype_kinds:
        pages = Path(__file__).parents[1] / "docs"
        assert f'| `"{encoding}"` |' in (pages / "howto" / "tensors.md").read_text("utf-8"), "add it to its table"
        (line,) = re.findall("`encoding=` accepts .*", (pages / "schema.md").read_text("utf-8"))
        assert f'`"{encoding}"`' in line, "add it to the encodings of tensors in docs/schema.md"


def test_formats_that_are_only_read_are_no_choice_for_a_target() -> None:
    offered = {
        keyword: {value for name, of, value in CHOICES if (name, of) == ("convert", keyword)}
        for keyword in ("source_format", "target_format")
    }
    assert {"tfds", "lerobot", "csv", "idx"} <= offered["source_format"]
    only_read = {row.name for row in FORMATS if row.is_source and not row.is_target}
    assert "libsvm" in only_read
    assert only_read.isdisjoint(offered["target_format"])
    with pytest.raises(ValueError, match="target_format='libsvm': expected one of None, 'tfrecord', 'csv'"):
        tfr.convert("a", "b", target_format="libsvm")


def test_a_split_of_tfds_is_read_by_its_name(tmp_path: Path) -> None:
    for split in ("train", "test"):
        tfr.formats.write_tfds({"n": [1, 2, len(split)]}, tmp_path / "mine/1.0.0", split=split)
    tfr.convert(tmp_path / "mine/1.0.0", tmp_path / "b.csv", source_format="tfds", source_options={"split": "test"})
    assert (tmp_path / "b.csv").read_text().split() == ['"n"', "1", "2", "4"]
