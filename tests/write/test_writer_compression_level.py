"""compression_level= of all calls that write: smaller files of the same records, and errors for other levels."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.compression import CODECS

RANDOM = random.Random(0)
LINES = [" ".join(RANDOM.choices(["tfrecord", "arrow", "pandas", "numpy", "42", "x"], k=30)) for _ in range(2000)]
TABLE = {"line": LINES}


def _size(path: Path) -> int:
    files = [path] if path.is_file() else [*path.rglob("*.tfrecord*")]
    return sum(os.path.getsize(file) for file in files)


def _table(path: Path, **keywords: Any) -> None:
    tfr.write_tfrecord(TABLE, path, **keywords)


def _shards(path: Path, **keywords: Any) -> None:
    path.mkdir()
    tfr.write_tfrecord(TABLE, path, shards=2, **keywords)


def _folders(path: Path, **keywords: Any) -> None:
    table = {**TABLE, "day": [1, 2] * 1000}
    tfr.write_tfrecord(table, f"{path}/", partition_by="day", **keywords)


def _tables(path: Path, **keywords: Any) -> None:
    with tfr.open_writer(path, **keywords) as writer:
        writer.write(TABLE)


def _records(path: Path, **keywords: Any) -> None:
    with tfr.RecordWriter(path, **keywords) as writer:
        for line in LINES:
            writer.write(line.encode())


def _tensorflow(path: Path, compression: str, compression_level: int | None = None) -> None:
    options = tfr.io.TFRecordOptions(compression.upper(), compression_level=compression_level)
    with tfr.io.TFRecordWriter(path, options) as writer:
        for line in LINES:
            writer.write(line.encode())


def _converted(path: Path, compression_level: int | None = None, **keywords: Any) -> None:
    source = path.with_name("lines.jsonl")
    source.write_text("".join(f'{{"line": "{line}"}}\n' for line in LINES), "utf-8")
    tfr.convert(source, path, target_options={"compression_level": compression_level}, **keywords)


def _copied(call: Callable[..., Any], **own: Any) -> Callable[..., None]:
    def write(path: Path, **keywords: Any) -> None:
        source = path.with_name("source.tfrecord")
        tfr.write_tfrecord(TABLE, source)
        call(source, path, **own, **keywords)

    return write


WAYS: dict[str, Callable[..., None]] = {
    "write_tfrecord": _table,
    "shards": _shards,
    "folders": _folders,
    "open_writer": _tables,
    "RecordWriter": _records,
    "TFRecordWriter": _tensorflow,
    "convert": _converted,
    "merge": _copied(tfr.merge),
    "split": _copied(tfr.split, fractions=[0.5, 0.5]),
    "shuffle": _copied(tfr.shuffle, seed=0),
    "sample": _copied(tfr.sample, n=1500, seed=0),
    "dedupe": _copied(tfr.dedupe, by="line"),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_high_level_makes_smaller_files_of_the_same_records(way: str, tmp_path: Path) -> None:
    low, high = tmp_path / "low", tmp_path / "high"
    WAYS[way](low, compression="gzip", compression_level=1)
    WAYS[way](high, compression="gzip", compression_level=9)
    assert _size(high) < 0.98 * _size(low)
    tables = [tfr.dataset(path, record_type="bytes").to_table() for path in (low, high)]
    assert tables[0].equals(tables[1])


@pytest.mark.parametrize("way", WAYS)
def test_a_level_that_the_compression_lacks_is_an_error_before_anything_is_written(way: str, tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(ValueError, match=r"level.*10.*(levels 0 to 9|at most 9)"):
        WAYS[way](path, compression="gzip", compression_level=10)
    assert _size(path) == 0 if path.exists() else True


@pytest.mark.parametrize("way", sorted(WAYS.keys() - {"TFRecordWriter"}))
def test_a_level_of_a_file_that_is_not_compressed_is_an_error(way: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"compression_level.*9.*: the file is not compressed"):
        WAYS[way](tmp_path / "a", compression=None, compression_level=9)


@pytest.mark.parametrize("codec", CODECS.names())
def test_every_level_of_every_compression_can_be_read(codec: str, tmp_path: Path) -> None:
    found = CODECS.get(codec)
    assert found is not None
    for level in found.levels:
        path = tmp_path / f"{level}{found.suffixes[0]}"
        tfr.write_tfrecord({"line": LINES[:100]}, path, compression_level=level)
        assert tfr.read_table(path)["line"].to_pylist() == LINES[:100]


@pytest.mark.parametrize("level", [-1, "9", 1.5, True])
def test_a_level_is_a_number(level: Any, tmp_path: Path) -> None:
    error = ValueError if level == -1 else TypeError
    for way in ("write_tfrecord", "TFRecordWriter"):
        with pytest.raises(error, match="compression_level"):
            WAYS[way](tmp_path / "a", compression="gzip", compression_level=level)
