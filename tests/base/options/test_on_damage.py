"""What happens at damage: a class for each ``on_error``, and what each call takes of them."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from border import FULL_NAMES, PUBLIC, public
from records import example, flip, int64s, written
from tfrecord_io import typing
from tfrecord_io.base.options import on_damage as module
from tfrecord_io.base.options.on_damage import NAMES, Ask, Collect, Inspect, OnDamage, Raise, Skip, Takes


def listed(takes: Takes) -> str:
    """The words of an error for what a call takes, as a regular expression."""
    return re.escape(f"expected one of {', '.join(map(repr, OnDamage.names(takes)))} or a function")


FACTS = ("is_strict", "counts_all", "goes_on", "ends_quietly", "hands_over")


@pytest.mark.parametrize(
    ("literal", "takes"),
    [
        ("OnErrorName", OnDamage.needs_no_report),
        ("OnErrorNameCollecting", OnDamage.is_taken_by_all),
        ("OnFileError", OnDamage.is_of_files),
    ],
)
def test_types_of_keywords_have_the_names_of_the_classes(literal: str, takes: Takes) -> None:
    names = ", ".join(f'"{name}"' for name in OnDamage.names(takes))
    assert get_args(getattr(typing, literal)) == OnDamage.names(takes), f"typing.py needs: {literal} = Literal[{names}]"


def test_each_class_states_each_fact() -> None:
    """And has its row, unless the value of ``on_error`` is not a name."""
    classes = {value for value in vars(module).values() if isinstance(value, type) and issubclass(value, OnDamage)}
    named = {type(OnDamage.of(name)) for name in NAMES}
    assert classes - {OnDamage, Ask, Inspect} == named, "each class but those of callables has its row of _BY_NAME"
    assert OnDamage.__abstractmethods__ == {*FACTS, "accept"}
    for cls in classes - {OnDamage}:
        assert [fact for fact in FACTS if fact not in vars(cls)] == [], cls


@pytest.mark.parametrize("name", NAMES)
def test_each_name_is_documented(name: str) -> None:
    page = (Path(__file__).parents[3] / "docs" / "errors.md").read_text("utf-8")
    assert f'| `"{name}"` |' in page, "docs/errors.md: add it to the table of on_error"


@pytest.mark.parametrize("missing", [*FACTS, "accept"])
def test_a_class_without_a_fact_cannot_be_made(missing: str) -> None:
    members = {**dict.fromkeys(FACTS, False), "accept": lambda self, error, place: False}
    del members[missing]
    with pytest.raises(TypeError, match=missing):
        type("Half", (OnDamage,), members)()


@pytest.mark.parametrize("value", ["", "ignore", None, 1, "Skip", ["skip"], Raise])
def test_a_value_that_does_not_exist_is_refused(value: Any) -> None:
    if value is Raise:
        assert isinstance(OnDamage.check(value), Ask)  # any callable is asked
        return
    with pytest.raises(ValueError, match=listed(OnDamage.is_taken_by_all)):
        OnDamage.check(value)


@pytest.mark.parametrize(
    "takes",
    [
        OnDamage.is_taken_by_all,
        OnDamage.needs_no_report,
        OnDamage.reports_all,
        OnDamage.allows_numbers,
        OnDamage.is_of_files,
    ],
)
def test_what_is_refused_names_what_is_taken(takes: Takes) -> None:
    for value in [*NAMES, bool]:
        if takes(Ask(bool) if value is bool else OnDamage.of(value)):
            assert OnDamage.of(OnDamage.check(value, takes)) is not None
            continue
        with pytest.raises(ValueError, match="expected one of ") as raised:
            OnDamage.check(value, takes)
        listed = ", ".join(map(repr, OnDamage.names(takes)))
        assert f"expected one of {listed}" in str(raised.value)
        assert (" or a function" in str(raised.value)) == takes(Ask(bool))


def test_a_new_class_is_in_each_list_that_its_facts_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    class Note(Skip):
        """As "skip"."""

    monkeypatch.setitem(module._BY_NAME, "note", Note())
    for takes in (OnDamage.is_taken_by_all, OnDamage.needs_no_report, OnDamage.allows_numbers, OnDamage.is_of_files):
        assert "note" in OnDamage.names(takes)
    assert "note" not in OnDamage.names(OnDamage.reports_all)


def test_answers_stay_in_their_process() -> None:
    asked = Ask(len)  # type: ignore[arg-type]
    error = tfr.TFRecordError("x")
    error.region = typing.SkippedRegion("a", 0, 1, "x", 0, "TFRecordError")
    answers = [True, False]
    asked = Ask(lambda _: answers.pop(0))
    assert [asked.accept(error, 0) for _ in range(3)] == [True] * 3
    assert asked.accept(error, 1) is False
    again = pickle.loads(pickle.dumps(Ask(print)))
    assert again == Ask(print)
    assert again != Inspect(print)
    assert hash(again) == hash(Ask(print))
    assert not again._answers


def test_a_report_stays_in_its_process() -> None:
    collect = Collect(OnDamage.receive_in_reader)
    assert not collect.hands_over
    assert collect == "collect"
    again = pickle.loads(pickle.dumps(collect))
    assert again == collect
    assert again.hands_over
    assert again.receive is None


# ---- calls

CALLS = {
    "read_tfrecord": lambda data: tfr.read_tfrecord(data),
    "read_table": lambda data: tfr.read_table(data),
    "read_arrays": lambda data: tfr.read_arrays(data),
    "read_arrays, out": lambda data: tfr.read_arrays(data, out={"x": np.zeros(20, np.int64)}),
    "iter_arrays": lambda data: next(tfr.iter_arrays(data, batch_size=3)),
    "open_random": lambda data: tfr.open_random(data),
    "infer_schema": lambda data: tfr.infer_schema(data),
    "count": lambda data: tfr.count(data),
    "describe": lambda data: tfr.describe(data),
    "report": lambda data: tfr.report(data),
    "write_npz": lambda data: tfr.formats.write_npz(data, "o.npz"),
    "merge": lambda data: tfr.merge(data, "o.tfrecord"),
    "shuffle": lambda data: tfr.shuffle(data, "o.tfrecord", seed=1),
    "sample": lambda data: tfr.sample(data, "o.tfrecord", fraction=0.5, seed=1),
    "dedupe": lambda data: tfr.dedupe(data, "o.tfrecord", by="x"),
    "compact": lambda data: tfr.compact(data),
    "copy": lambda data: tfr.copy(data, "o.tfrecord"),
    "delete": lambda data: tfr.delete(data, filters="x > 3"),
    "build_index": lambda data: tfr.build_index(data, columns=["x"]),
    "diff": lambda data: tfr.diff(data, data),
    "explode": lambda data: tfr.explode(data),
    "implode": lambda data: tfr.formats.implode(data, lists="x"),
    "scan_polars": lambda data: tfr.scan_polars(data).collect(),
    "write_tfrecord": lambda data: tfr.write_tfrecord(data, "o.tfrecord"),
    "to_table": lambda data: data.to_table(),
    "to_pandas": lambda data: data.to_pandas(),
    "to_arrays": lambda data: data.to_arrays(),
    "to_xarray": lambda data: data.to_xarray(),
    "iter_arrays of a dataset": lambda data: data.iter_arrays(batch_size=3),
    "head": lambda data: data.head(),
    "count_rows": lambda data: data.count_rows(),
    "pyarrow": lambda data: pa.table(data),
    "piece": lambda data: data.pieces(2)[0].read(),
    "piece, count": lambda data: data.pieces(2)[0].count_rows(),
    "filter": lambda data: data.filter("x > 3").select(["x"]).to_table(),
    "mix": lambda data: tfr.mix([data, data]).to_table(),
    "mix, training": lambda data: tfr.mix([data, data]).iter_arrays(batch_size=3),
}
TAKEN = {
    "open_reader": lambda data: tfr.open_reader(data),
    "RecordReader": lambda data: tfr.RecordReader(data),
    "convert": lambda data: tfr.convert(data, "o.csv"),
    "verify": lambda data: tfr.verify(data),
    "salvage": lambda data: tfr.salvage(data, "o.tfrecord"),
    "to_batches": lambda data: data.to_batches(),
    "piece": lambda data: data.pieces(2)[0].to_batches(),
}


@pytest.fixture
def damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(i)) for i in range(20)])
    return flip(path, 20)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_without_a_report_refuses_a_dataset_that_collects(damaged: Path, name: str) -> None:
    before = damaged.read_bytes()
    refused = "|".join(
        f"on_error='collect': {listed(takes)}" for takes in (OnDamage.needs_no_report, OnDamage.allows_numbers)
    )
    message = f"{refused}|takes no on_error= of a dataset"
    with pytest.raises(ValueError, match=message):
        CALLS[name](tfr.dataset(damaged, on_error="collect"))
    assert [path.name for path in damaged.parent.iterdir()] == ["a.tfrecord"]
    assert damaged.read_bytes() == before


@pytest.mark.filterwarnings("error::tfrecord_io.errors.DamagedDataWarning")
@pytest.mark.parametrize("name", TAKEN)
def test_a_call_with_a_report_takes_a_dataset_that_collects(damaged: Path, name: str) -> None:
    result = TAKEN[name](tfr.dataset(damaged, on_error="collect", schema={"x": "int64"}))
    if not hasattr(result, "skipped_table"):
        assert len(list(result))
        result = result.report
    table = result.skipped_table()
    assert table.select(["file", "first_record", "begin_byte"]).to_pylist() == [
        {"file": str(damaged), "first_record": 0, "begin_byte": 0}
    ]


def test_the_command_refuses_what_a_call_does_not_take() -> None:
    with pytest.raises(ValueError, match="collect") as raised:
        OnDamage.check("collect", OnDamage.needs_no_report)
    message: str = raised.value.message_cli  # type: ignore[attr-defined]
    assert re.match(f"--on-error collect: {listed(OnDamage.needs_no_report)}", message)


def with_on_error() -> dict[str, Callable[..., Any]]:
    calls: dict[str, Callable[..., Any]] = {}
    for name in PUBLIC:
        if callable(item := public(name)) and not FULL_NAMES[name].startswith("typing."):
            try:
                parameters = inspect.signature(item).parameters
            except (TypeError, ValueError):
                continue
            if "on_error" in parameters:
                calls[name] = item
    return calls


def test_a_call_that_is_typed_to_collect_has_a_report() -> None:
    collecting = {
        name
        for name, call in with_on_error().items()
        if "OnErrorCollecting" in str(inspect.signature(call).parameters["on_error"].annotation)
    }
    assert collecting == {"RecordReader", "convert", "dataset", "open_reader"}


@pytest.mark.parametrize("name", sorted(with_on_error()))
def test_a_call_takes_what_its_type_says(damaged: Path, name: str) -> None:
    call = with_on_error()[name]
    annotation = str(inspect.signature(call).parameters["on_error"].annotation)
    needed: dict[str, Any] = {
        "convert": {"target": "o.csv"},
        "iter_arrays": {"batch_size": 2},
        "decode_examples": {},
        "open_coco": {"images": damaged.parent},
        "read_events": {},
    }.get(name, {})
    source: Any = pa.array([example(x=int64s(1))]) if name == "decode_examples" else damaged
    if "Collecting" in annotation:
        result = call(source, on_error="collect", **needed)
        if hasattr(result, "close"):
            result.close()
        return
    with pytest.raises(ValueError, match=r"on_error='collect': expected one of "):
        list(call(source, on_error="collect", **needed))
