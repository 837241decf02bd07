"""The mistakes of a first hour, in Python and in a shell, and the response to each.

``tests/data/mistakes.txt`` has all of them with their messages, for those who judge whether a stranger would know what
to do. ``python tests/test_mistakes.py`` writes it.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as command

STORED = Path(__file__).parent / "data" / "mistakes.txt"
IN_PYTHON = """
    tfr.read_tfrecord("nothere.tfrecord")
    tfr.read_tfrecord("data/*.tfrecord")
    tfr.read_tfrecord("a.tfrecord", ["id"])
    tfr.merge("a.tfrecord", "b.tfrecord", "c.tfrecord")
    tfr.head("a.tfrecord")
    tfr.read_tfrecord("empty")
    tfr.read_tfrecord("x.csv")
    tfr.read_tfrecord("x.parquet")
    tfr.read_tfrecord("x.jsonl")
    tfr.read_tfrecord("cut.tfrecord")
    tfr.read_tfrecord("flipped.tfrecord")
    tfr.write_tfrecord("b.tfrecord", frame)
    tfr.write_tfrecord(frame, "no/such/dir/b.tfrecord")
    tfr.read_tfrecord("a.tfrecord", columns=["nmae"])
    tfr.read_tfrecord("a.tfrecord", columns="nmae")
    tfr.read_tfrecord("a.tfrecord", usecols=["id"])
    tfr.read_tfrecord("a.tfrecord", nrows=3)
    tfr.read_tfrecord("a.tfrecord", skiprows=3)
    tfr.read_tfrecord("a.tfrecord", dtype={"id": "int32"})
    tfr.read_tfrecord("a.tfrecord", batch_size=2)
    tfr.read_tfrecord("a.tfrecord", num_workers=2)
    tfr.read_tfrecord("a.tfrecord", compression="gz")
    tfr.read_tfrecord(tfr.dataset("a.tfrecord", compression="gz"))
    tfr.read_tfrecord(tfr.dataset("a.tfrecord", compression="gzip"))
    tfr.read_tfrecord("a.tfrecord", limit="3")
    tfr.read_tfrecord("a.tfrecord", on_error="ignore")
    tfr.write_tfrecord(frame, "a.tfrecord", mode="w")
    tfr.write_tfrecord(frame, "a.tfrecord", mode="a")
    tfr.write_tfrecord(frame, "a.tfrecord", mode="append")
    tfr.write_tfrecord(frame, "a.tfrecord", mode="error")
    tfr.write_tfrecord(frame, "b.tfrecord", index_label="id")
    tfr.write_tfrecord(frame, "b.parquet")
    tfr.write_tfrecord(np.zeros((3, 2), "float32"), "b.tfrecord")
    tfr.write_tfrecord(pd.DataFrame({"a": [1, "x"]}), "b.tfrecord")
    tfr.write_tfrecord({"a": (i for i in range(3))}, "b.tfrecord")
    tfr.write_tfrecord({"a": 1}, "b.tfrecord")
    tfr.write_tfrecord({"a": [1, 2], "b": [1]}, "b.tfrecord")
    tfr.write_tfrecord([b"one"], "b.tfrecord")
    tfr.write_tfrecord("x.csv", "b.tfrecord")
    tfr.read_tfrecord(frame)
    tfr.read_tfrecord(open("x.csv"))
    tfr.read_tfrecord("a.tfrecord", schema=["id"])
    tfr.read_tfrecord("a.tfrecord", schema={"id": "int46"})
    tfr.read_tfrecord("a.tfrecord", schema={"name": "int64"})
    tfr.read_tfrecord("a.tfrecord", filters="id => 1")
    tfr.read_tfrecord("a.tfrecord", filters=frame["id"] > 1)
    tfr.read_tfrecord("a.tfrecord", filters=[("id", "=>", 1)])
    tfr.read_tfrecord("a.tfrecord", filters=("id", ">", 1))
    tfr.read_tfrecord("a.tfrecord", filters=[("idd", ">", 1)])
    list(tfr.iter_arrays("a.tfrecord"))
    list(tfr.iter_arrays("a.tfrecord", batch_size=2, shuffle=True))
    list(tfr.iter_arrays("a.tfrecord", batch_size=2, num_workers=4))
    list(tfr.iter_arrays("a.tfrecord", batch_size=2, seed=1))
    list(tfr.iter_arrays("a.tfrecord", batch_size=2, worker=2))
    list(tfr.iter_arrays("ragged.tfrecord", batch_size=4, ragged="padded"))
    list(tfr.iter_arrays("a.tfrecord", batch_size=0))
    tfr.read_arrays("nulls.tfrecord")
    tfr.open_reader("a.tfrecord").to_pandas()
    tfr.open_reader("a.tfrecord").columns
    len(tfr.dataset("a.tfrecord"))
    iter(tfr.dataset("a.tfrecord"))
    tfr.dataset("a.tfrecord")[0]
    tfr.dataset("a.tfrecord").map(print)
    tfr.dataset("a.tfrecord").cache()
    tfr.dataset("a.tfrecord").prefetch(2)
    tfr.dataset("a.tfrecord").batch(2)
    tfr.dataset("a.tfrecord").tail(2)
    tfr.dataset("a.tfrecord").to_tensorflow()
    tfr.dataset("a.tfrecord").num_rows
    tfr.dataset("a.tfrecord").colums
    tfr.RecordWriter("b.tfrecord").write({"a": 1})
    tfr.RecordWriter("b.tfrecord").write("text")
    tfr.encode_example({"a": {"b": 1}})
    tfr.encode_example({"a": object()})
    tfr.split("a.tfrecord", "parts", fractions="0.8,0.2")
    tfr.split("a.tfrecord", "parts", fractions=[80, 20])
    tfr.split("a.tfrecord", "parts")
    tfr.convert("a.tfrecord", "b.xlsx")
    tfr.convert("x.csv")
    tfr.compact("a.tfrecord")
    tfr.verify("a.tfrecord", on_error="skip")
    tfr.read_tfrecord("s3:/bucket/a.tfrecord")
    tfr.read_tfrecord("train@4")
"""
IN_A_SHELL = """
    tfr convert a.tfrecord
    tfr merge a.tfrecord
    tfr merge
    tfr head --n 3 a.tfrecord
    tfr head --limit 3 a.tfrecord
    tfr head --nrows 3 a.tfrecord
    tfr head --lines 3 a.tfrecord
    tfr head -20 a.tfrecord
    tfr help
    tfr info a.tfrecord
    tfr shard a.tfrecord parts
    tfr haed a.tfrecord
    tfr append b.csv a.tfrecord
    tfr rm a.tfrecord
    tfr head nothere.tfrecord
    tfr head *.nope
    tfr head x.csv
    tfr head x.parquet
    tfr head cut.tfrecord
    tfr verify cut.tfrecord
    tfr count nothere.tfrecord
    tfr head --where "idd == 2" a.tfrecord
    tfr head --where "name = 'a' and id =< 2" a.tfrecord
    tfr head --columns idd a.tfrecord
    tfr split a.tfrecord parts
    tfr split a.tfrecord parts --fraction 0.8,0.2
    tfr compact a.tfrecord
    tfr convert a.tfrecord b.xlsx
    tfr report a.tfrecord out.pdf
    tfr salvage cut.tfrecord cut.tfrecord
    tfr index a.tfrecord.gz
    tfr convert numbers.tfrecord b.csv
    tfr convert kinds.tfrecord b.csv
    tfr convert versions b.csv
"""


def mistakes() -> list[str]:
    return [line.strip() for line in (IN_PYTHON + IN_A_SHELL).splitlines() if line.strip()]


def prepare() -> None:
    """Make the files that the mistakes are about, in the working directory."""
    frame = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"], "x": np.array([0.5, 1, 2], "float32")})
    tfr.write_tfrecord(frame, "a.tfrecord")
    tfr.write_tfrecord(frame, "a.tfrecord.gz")
    data = Path("a.tfrecord").read_bytes()
    Path("cut.tfrecord").write_bytes(data[:-3])
    Path("flipped.tfrecord").write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    tfr.write_tfrecord({"t": [[1], [1, 2], [3]]}, "ragged.tfrecord")
    tfr.write_tfrecord(pd.DataFrame({"t": pd.array([1, None, 3], "Int64")}), "nulls.tfrecord")
    frame.to_csv("x.csv", index=False)
    frame.to_parquet("x.parquet")
    frame.to_json("x.jsonl", orient="records", lines=True)
    Path("empty").mkdir()
    for name, values in {"numbers": (1, 0.5), "kinds": (1, "a")}.items():
        with tfr.RecordWriter(f"{name}.tfrecord") as writer:
            for value in values:
                writer.write(tfr.encode_example({"x": value, "y": 1}))
    Path("versions").mkdir()
    tfr.write_tfrecord({"x": [1]}, "versions/a.tfrecord")
    tfr.write_tfrecord({"x": np.array([0.5], "float32")}, "versions/b.tfrecord")


def response(mistake: str) -> str:
    """The response to a mistake: the error, or what a command prints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if mistake.startswith("tfr "):
            result = CliRunner().invoke(command, shlex.split(mistake)[1:], prog_name="tfr")
            assert result.exit_code != 0, mistake
            lines = result.stderr.strip().splitlines() or result.stdout.strip().splitlines()[-1:]
            assert lines, (mistake, result.exception)
            return " ".join(lines[-1:] if lines[0].startswith("Usage") else lines)
        frame = pd.DataFrame({"id": [1, 2, 3], "name": ["a", "b", "c"]})
        try:
            eval(mistake, {"tfr": tfr, "np": np, "pd": pd, "frame": frame})
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "no error"


def table() -> str:
    """All mistakes, with the response to each."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        prepare()
        return "".join(f"{mistake}\n    {response(mistake)}\n" for mistake in mistakes())


@pytest.mark.skipif(
    pd.__version__.startswith("2."), reason="they were judged with pandas 3, and with its dtypes in files"
)
@pytest.mark.plugins("vision", "tensorflow")  # whose formats are named
def test_the_messages_are_those_that_were_judged() -> None:
    expected, got = STORED.read_text("utf-8").splitlines(), table().splitlines()
    assert [(a, b) for a, b in zip(expected, got, strict=True) if a != b] == []


def test_all_say_what_to_do_in_the_words_of_the_tool() -> None:
    lines = STORED.read_text("utf-8").splitlines()
    messages = dict(zip(lines[::2], (line.strip() for line in lines[1::2]), strict=True))
    assert len(messages) > 100
    assert list(messages) == mistakes()
    for mistake, message in messages.items():
        assert message != "no error", mistake
        assert len(message) < 900, mistake
        if mistake.startswith("tfr "):
            assert "tfr." not in message, mistake
            assert re.findall(r"(?<!--type )\b[a-z_]+=(?!')", message) == [], mistake
            assert not re.search(r"(=|--[a-z-]+ )[\[{]|schema_overrides=", message), mistake
        else:
            assert not re.search(r"\btfr [a-z]", message), mistake
            assert " --" not in message, mistake


@pytest.mark.parametrize("filters", [pd.Series([7071, 7072]), np.array([7071, 7072]), [[7071], [7072]]], ids=type)
def test_no_values_of_the_data_are_shown(filters: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a")
    with pytest.raises((TypeError, ValueError)) as caught:
        tfr.read_table(tmp_path / "a", filters=filters)
    assert "7071" not in str(caught.value)


if __name__ == "__main__":
    STORED.write_text(table(), "utf-8")
    sys.exit()
