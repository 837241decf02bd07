"""The public names, their parameters and defaults: what 0.1 promises (docs/installation.md).

A change of tests/data/public_api.txt is a change of the public interface, which needs a fragment in changelog.d/; what
is removed or gets another default needs a `DeprecationWarning` first. ``python tests/test_public_api.py`` writes the
file.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import re
import runpy
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.base.options.selection import OF_DATASETS

STORED = Path(__file__).parent / "data" / "public_api.txt"
REFERENCE = Path(__file__).parents[1] / "docs" / "reference" / "api.py"


def _call(name: str, function: Any) -> str:
    """A function with its parameters and defaults, without types, which Python versions write differently."""
    if not callable(function):
        return name
    texts, stars = [], False
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not stars:
            texts.append("*")
        stars = stars or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        mark = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        default = "" if parameter.default is parameter.empty else f"={parameter.default!r}"
        texts.append(f"{mark}{parameter.name}{re.sub(' at 0x[0-9a-f]+', '', default)}")
    return f"{name}({', '.join(texts)})"


def _lines(reference: dict[str, Any], name: str) -> Iterator[str]:
    item, full = reference["item_of"](name), reference["FULL"][name]
    if reference["is_message"](item):
        yield f"message {full}"
    elif not isinstance(item, type):
        yield _call(full, item)
    elif issubclass(item, Exception):
        yield f"class {full}({', '.join(base.__name__ for base in item.__bases__)})"
    else:
        yield f"class {_call(full, item) if name in reference['CALLED'] or name.endswith('Feature') else full}"
        for method in reference["METHODS"].get(name, "").split():
            yield _call(f"{full}.{method}", getattr(item, method))


def described() -> str:
    reference = runpy.run_path(str(REFERENCE))
    names = sorted(reference["FULL"], key=reference["FULL"].get)
    return "\n".join(line for name in names for line in _lines(reference, name)) + "\n"


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not installed")
def test_public_names_and_their_parameters_are_as_stored() -> None:
    hint = "if that is intended: python tests/test_public_api.py, and a fragment in changelog.d/"
    assert described().splitlines() == STORED.read_text("utf-8").splitlines(), hint


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not installed")
@pytest.mark.plugins("engines")  # whose methods a dataset has
def test_objects_show_the_names_of_the_reference(tmp_path: Path) -> None:
    reference = runpy.run_path(str(REFERENCE))
    tfr.write_tfrecord({"x": [1], "steps/y": [[1, 2]]}, tmp_path / "a")
    dataset = tfr.dataset(tmp_path / "a")
    with tfr.open_reader(tmp_path / "a") as reader:
        derived = (tfr.mix([dataset]), tfr.windows(dataset, length=1))
        for shown in (dataset, dataset.filter([("x", "==", 1)]), dataset.pieces(1)[0], reader, *derived):
            kind = type(shown).__name__
            attributes = reference["sections"](inspect.getdoc(type(shown)) or "").get("Attributes", "")
            described = {name for each in reference["entries"](attributes) for name in each.name.split(", ")}
            described |= {*reference["METHODS"].get(kind, "").split()}
            names = {name for name in dir(shown) if not name.startswith("_")}
            assert described <= names, kind
            if kind in reference["METHODS"]:
                assert names - described <= {"columns", "take"}, kind
            assert all(hasattr(shown, name) for name in names), kind
            assert len(names) <= 35


@pytest.mark.plugins("report")
def test_results_are_values_that_can_be_copied_and_referred_to_weakly(tmp_path: Path) -> None:
    path, other = str(tmp_path / "a.tfrecord"), str(tmp_path / "b.tfrecord")
    written = tfr.write_tfrecord({"x": [1, 2]}, path)
    dataset, schema = tfr.dataset(path), tfr.Schema({"x": "int64"})
    with tfr.open_reader(path) as reader:
        reader.read_all()
    explanation = dataset.filter([("x", ">", 1)]).explain()
    reports = [written, reader.report, explanation, tfr.describe(path), tfr.verify(path), tfr.diff(path, path)]
    reports += [tfr.read_metadata(path), tfr.copy(path, other), tfr.salvage(path, other), tfr.report(path)]
    parts = [explanation.files[0], explanation.filters[0], schema.fields[0], tfr.typing.Progress(1, 2, "rows")]
    for value in [*reports, *parts, schema, tfr.infer_schema(path), tfr.Limits()]:
        assert weakref.ref(value)() is value
        for copied in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert copied == value
            assert repr(copied) == repr(value)
    assert all(weakref.ref(each)() is each for each in (dataset, dataset.pieces(1)[0]))


_OF_A_RECORD = ("decode_example", "encode_example", "bytes_feature", "float_feature", "int64_feature")
_OF_A_TENSOR = ("parse_tensor", "serialize_tensor")  # calls of a record are not slowed down by a check
_WITH_KEYWORDS = (  # not those that are called by others
    *(f"Dataset.{name}" for name in ("explain", "refresh", "head", "limit", "offset", "pieces", "to_", "iter_arrays")),
    *("InferredSchema.strict", "Schema.from_"),
)


def _calls(reference: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Functions, and the methods that take a source, columns, a schema or a number."""
    for name in reference["FULL"]:
        item = reference["item_of"](name)
        methods = reference["METHODS"].get(name, "").split() if isinstance(item, type) else ()
        calls = {f"{name}.{method}": getattr(item, method) for method in methods}
        yield from ((each, call) for each, call in calls.items() if each.startswith(_WITH_KEYWORDS) and callable(call))
        if inspect.isfunction(item) and name not in _OF_A_RECORD + _OF_A_TENSOR:
            yield name, item


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not installed")
def test_each_call_names_its_keywords_for_one_that_it_does_not_have() -> None:
    calls = dict(_calls(runpy.run_path(str(REFERENCE))))
    assert len(calls) > 90
    for name, call in calls.items():
        if name in ("Dataset.to_table", "Dataset.to_batches"):
            continue
        with pytest.raises(TypeError, match=r"valid names: |it takes none") as caught:
            call(xyzzy=1)
        assert "unexpected keyword argument 'xyzzy'" in str(caught.value), name
    for call in (tfr.Dataset.limit, tfr.Dataset.take):
        with pytest.raises(TypeError, match=r"keyword argument 'rows'; valid names: n$"):
            call(rows=1)


_DAILY = ("columns", "filters", "schema", "limit", "on_error", "storage_options", "progress")


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not installed")
def test_calls_have_their_own_keywords_and_few_of_reading() -> None:
    """How files are read is stated once, in `tfrecord_io.dataset`: see dev/decisions/typed-calls.md."""
    reference = runpy.run_path(str(REFERENCE))
    items = {name: reference["item_of"](name) for name in reference["FULL"]}
    calls = {name: [*inspect.signature(item).parameters] for name, item in items.items() if inspect.isfunction(item)}
    reading = [keyword for keywords in calls.values() for keyword in keywords if keyword in OF_DATASETS]
    long = {name for name, keywords in calls.items() if len(keywords) >= 20}
    assert long <= {"dataset", "write_tfrecord", "open_writer", "iter_arrays"}
    as_in_tensorflow = {name for name in calls if reference["FULL"][name].startswith("io.")}
    # Browse has 7. Training has added 4 to 530: cut=, end_token= and cu_seqlens= of packed rows, which change what a
    # batch is; the offsets= of windows, one dict instead of a keyword for each column.
    # txn= of the two writing calls: without it, a job that is tried again has its rows twice. One order of an epoch for
    # any number of workers: parts= of iter_arrays and to_torch, and state= with which the latter goes on. Follow has 4,
    # verify schema=.
    assert sum(len(keywords) for name, keywords in calls.items() if name not in as_in_tensorflow) <= 549
    assert len(reading) <= 226  # with schema= of verify, which says what values must be, not how they are read
    for name, keywords in calls.items():
        daily = [keyword for keyword in keywords if keyword in _DAILY]
        assert daily == [keyword for keyword in _DAILY if keyword in daily], name


@pytest.mark.skipif(not REFERENCE.exists(), reason="the documentation is not installed")
def test_a_docstring_describes_the_parameters_of_its_function() -> None:
    reference = runpy.run_path(str(REFERENCE))
    for name, item in ((name, reference["item_of"](name)) for name in reference["FULL"]):
        section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w+\n-+\n|\Z)", inspect.getdoc(item) or "", re.M | re.S)
        if inspect.isfunction(item) and section is not None:
            heads = [line.split(" : ")[0] for line in section[1].splitlines() if re.match(r"[\w*]", line)]
            described = [word.strip(" *") for word in ",".join(heads).split(",") if word.strip()]
            assert sorted(described) == sorted(inspect.signature(item).parameters), name


@pytest.mark.parametrize("call", [tfr.convert, tfr.iter_arrays])
def test_the_help_of_a_call_can_be_read_at_once(call: Any) -> None:
    assert len(pydoc.render_doc(call).splitlines()) <= 100


if __name__ == "__main__":
    STORED.write_text(described(), "utf-8")
