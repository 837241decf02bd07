"""Tables of more columns than `Limits.features`, or with few of many in each row: refused before they are parsed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.apps.file_formats.tables.json_files import count_fields

MANY: dict[str, Callable[[], str]] = {
    "a.jsonl": lambda: "".join(f'{{"k{i}": 1}}\n' for i in range(200_000)),
    "nan.jsonl": lambda: "".join(f'{{"k{i}": Inf}}\n' for i in range(200_000)),
    "nested.jsonl": lambda: "".join(f'{{"k{i % 400}": [{{"k{i // 400}": 1}}]}}\n' for i in range(120_000)),
    "lines.jsonl": lambda: "".join(f'{{\n"k{i}": 1\n}}\n' for i in range(200_000)),
    "a.csv": lambda: "a," * 10**6 + "a\n" + "1," * 10**6 + "1\n",
    "blank.csv": lambda: "\r\n\n" + "a," * 10**6 + "a",
    "quoted.csv": lambda: '"x\n""y",' + "a," * 10**6 + "a",
    "a.tsv": lambda: "a\t" * 10**6 + "a\n",
}


@pytest.mark.fault(46)
@pytest.mark.parametrize("name", MANY)
def test_too_many_columns(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(MANY[name]())
    with pytest.raises(
        tfr.errors.SchemaError, match=r"more than 100000 different columns or fields; raise .*limits.*features"
    ):
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


def test_rows_with_few_of_many_columns(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(f'{{"k{i}": 1}}\n' for i in range(20_000)))
    with pytest.raises(tfr.errors.DecodeError, match=r"20000 rows of 20000 different fields.*expansion_bytes"):
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")


def test_limits_are_keywords(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a,b,c\n1,2,3\n")
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"b": {"c": 2}}\n')
    for name in ("a.csv", "a.jsonl"):
        with pytest.raises(tfr.errors.SchemaError, match="more than 2 different"):
            tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", source_options={"limits": tfr.Limits(features=2)})
        three = {"limits": tfr.Limits(features=3)}
        tfr.convert(tmp_path / name, tmp_path / "a.tfrecord", source_options=three, mode="overwrite")
    with pytest.raises(ValueError, match=r"features\W+0"):
        tfr.convert(tmp_path / "a.csv", tmp_path / "a.tfrecord", source_options={"limits": tfr.Limits(features=0)})


def test_later_rows_are_parsed_in_parts(tmp_path: Path) -> None:
    rows = [{"a": 0, "b": "x"}, *({"a": i} for i in range(1, 100)), {"a": 100, "b": "é"}]
    (tmp_path / "a.jsonl").write_text("\n\n".join(map(json.dumps, rows)) + "\n")
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "a.tfrecord")
    few = tfr.Limits(expansion_bytes=7 * 8 * 3)
    tfr.convert(tmp_path / "a.jsonl", tmp_path / "b.tfrecord", source_options={"limits": few})
    assert tfr.read_table(tmp_path / "b.tfrecord").equals(tfr.read_table(tmp_path / "a.tfrecord"))
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [*rows, {"a": "x"}])) + "\n")
    with pytest.raises(tfr.errors.DecodeError) as whole:
        tfr.convert(tmp_path / "a.jsonl", tmp_path / "c.tfrecord", source_options={"schema_overrides": {"a": "int64"}})
    with pytest.raises(tfr.errors.DecodeError) as parts:
        tfr.convert(
            *(tmp_path / "a.jsonl", tmp_path / "c.tfrecord"),
            source_options={"schema_overrides": {"a": "int64"}, "limits": few},
        )
    assert (parts.value.record, parts.value.reason) == (whole.value.record, whole.value.reason)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text("abc", max_size=2), each, max_size=3),
    max_leaves=8,
)


def paths_of(value: object, above: tuple[str, ...]) -> set[tuple[str, ...]]:
    if isinstance(value, list):
        return {path for item in value for path in paths_of(item, above)}
    if not isinstance(value, dict):
        return set()
    return {path for key, item in value.items() for path in {(*above, key)} | paths_of(item, (*above, key))}


@given(st.lists(st.dictionaries(st.text("abc", max_size=2), VALUES, max_size=4), max_size=4))
def test_fields_are_counted_at_all_levels(rows: list[dict[str, object]]) -> None:

    text = "\n".join(json.dumps(row) for row in rows).encode()
    assert count_fields(text, 1000) == (len(rows), len(set().union(*(paths_of(row, ()) for row in rows))))
