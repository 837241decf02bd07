"""Records that are protobuf messages: --message and --descriptor-set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import tfrecord_io as tfr
from random_messages import DESCRIPTORS, message_class

OPTIONS = ("--message", "kinds.All", "--descriptor-set", DESCRIPTORS)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = message_class("kinds.All")
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        for i in range(3):
            writer.write(made(i32=i, text=f"t{i}", color=i % 2, numbers=range(i)).SerializeToString())
    return tmp_path / "a.tfrecord"


def test_records_are_shown(run: Any, path: Path) -> None:
    shown = run("cat", path, "-c", "i32", "-c", "color", "-c", "numbers", *OPTIONS)
    assert [json.loads(line) for line in shown.stdout.splitlines()] == [
        {"i32": 0, "color": "RED", "numbers": []},
        {"i32": 1, "color": "GREEN", "numbers": [0]},
        {"i32": 2, "color": "RED", "numbers": [0, 1]},
    ]
    assert "t1" in run("head", path, *OPTIONS, "-c", "text").stdout
    assert json.loads(run("get", path, "2", "-c", "text", "--json", *OPTIONS).stdout) == [{"text": "t2"}]
    assert "int32" in run("schema", path, *OPTIONS).stdout
    assert run("tail", path, "-n", "1", "-c", "i32", "--where", "i32 > 0", *OPTIONS).exit_code == 0
    assert run("describe", path, "-c", "i32", *OPTIONS).exit_code == 0


def test_messages_are_converted_to_tables_and_back(run: Any, path: Path, tmp_path: Path) -> None:
    assert run("convert", path, tmp_path / "a.parquet", "-c", "i32", "-c", "color", *OPTIONS).exit_code == 0
    assert pq.read_table(tmp_path / "a.parquet")["color"].to_pylist() == ["RED", "GREEN", "RED"]
    assert run("convert", tmp_path / "a.parquet", tmp_path / "b.tfrecord", *OPTIONS).exit_code == 0
    table = tfr.read_table(
        tfr.dataset(tmp_path / "b.tfrecord", record_type=message_class("kinds.All")), columns=["i32", "color"]
    )
    assert table.equals(
        tfr.read_table(tfr.dataset(path, record_type=message_class("kinds.All")), columns=["i32", "color"])
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--message", "kinds.All"), "belong together"),
        (("--descriptor-set", DESCRIPTORS), "belong together"),
        ((*OPTIONS, "--record-type", "bytes"), "cannot be combined"),
        (("--message", "kinds.None", "--descriptor-set", DESCRIPTORS), "has no message 'kinds.None'"),
        (("--message", "kinds.All", "--descriptor-set", "absent.desc"), "absent.desc"),
        (("--message", "kinds.All", "--descriptor-set", __file__), "compile it by protoc --include_imports"),
    ],
)
def test_messages_that_are_not_found(run: Any, path: Path, options: tuple[Any, ...], message: str) -> None:
    result = run("cat", path, *options)
    assert result.exit_code != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
