"""Tests of columns/schema/column_advice.py: the command takes what its hints say."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.columns.schema.column_advice import conflict_hints, declaration, exclusion

NAMES = ["x", "a b", "a=b", "steps/x", "it's", "a,b"]


def convert(*options: str) -> str:
    """The CSV of the records in the working directory, or the message."""
    result = CliRunner().invoke(command, ["convert", "a.tfrecord", "a.csv", *options])
    return Path("a.csv").read_text("utf-8") if result.exit_code == 0 else result.stderr


def write_two_kinds(name: str, *, of: type) -> None:
    with tfr.RecordWriter("a.tfrecord") as writer:
        for value in (1, of("2")):
            writer.write(tfr.encode_example({name: value, "other": 7}))


@pytest.mark.parametrize("name", NAMES)
def test_the_command_takes_its_hints(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_two_kinds(name, of=float)
    message = convert()
    declare, exclude = declaration(name, "float64")[1], exclusion(name)[1]
    assert f"declare a type for both with {declare}, or leave it out by {exclude}, or" in message
    assert sorted(convert(*shlex.split(declare)).splitlines()[1].split(",")) == ["1", "7"]
    assert convert(*shlex.split(exclude)).splitlines() == ['"other"', "7", "7"]


@pytest.mark.parametrize("name", NAMES)
def test_python_takes_its_hints(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_two_kinds(name, of=float)
    with pytest.raises(tfr.errors.SchemaError) as caught:
        tfr.read_table("a.tfrecord")
    for way in (declaration(name, "float64")[0], exclusion(name)[0]):
        assert way in str(caught.value)
        assert eval(f"tfr.read_table(tfr.dataset('a.tfrecord', {way}))", {"tfr": tfr}).num_rows == 2


def test_records_of_the_less_frequent_type_can_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_two_kinds("x", of=str)
    message = convert()
    assert "--on-error skip, which leaves out the records of the less frequent type" in message
    assert convert("--on-error", "skip").splitlines() == ['"other","x"', "7,1"]


def test_lists_of_numbers_have_a_common_type() -> None:
    hint, hint_cli = conflict_hints("x", common_type="list<float64>")
    assert hint.startswith("declare a type for both with schema_overrides={'x': 'list<float64>'}, or leave it out")
    assert hint_cli.startswith("declare a type for both with --type 'x=list<float64>', or leave it out")
