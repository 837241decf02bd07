"""Each call of the C library that a reader makes fails once, is cut short, or is interrupted."""

from __future__ import annotations

import errno
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from faulty_calls import FAIL, OPEN, READ, READING, SHORT, FaultyProcess, build_shim
from faulty_calls.worker import READS, table_of
from rounds import COMPLETE, rounds

MOST = 450  # bytes that one call reads, so that each of the files takes more than 100


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, native_engine: None) -> Iterator[FaultyProcess]:
    folder = tmp_path_factory.mktemp("shim")
    with build_shim() as shim, FaultyProcess(folder, shim) as process:
        yield process


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same records as a file, compressed, and as a dataset with a manifest."""
    folder = tmp_path_factory.mktemp("files")
    plain, compressed, indexed = folder / "plain", folder / "gzip", folder / "indexed"
    for each in (plain, compressed, indexed):
        each.mkdir()
    tfr.write_tfrecord(table_of(1), plain / "a.tfrecord")
    (compressed / "a.tfrecord.gz").write_bytes(gzip.compress((plain / "a.tfrecord").read_bytes()))
    tfr.write_tfrecord(table_of(1), indexed / "a.tfrecord", write_index=True)
    tfr.write_tfrecord(table_of(1), folder / "shards@3")
    return {
        "plain": plain / "a.tfrecord",
        "gzip": compressed / "a.tfrecord.gz",
        "indexed": indexed / "a.tfrecord",
        "shards": folder / "shards@3",
    }


CASES = [
    *((way, "plain") for way in READS),
    *((way, "gzip") for way in READS if way != "open_random"),
    ("open_random", "indexed"),
    *((way, "shards") for way in ("read_table", "threads", "iter_arrays", "open_random")),
]


def faults(
    run: FaultyProcess, way: str, path: Path, engine: str, kinds: int, action: int, number: int = 0
) -> list[dict[str, Any]]:
    """What comes of reading with a fault at each call, in the complete run and on the native engine; else at some."""
    folder = str(path).rpartition("@")[0] or str(path)
    fault = {"folder": folder, "kinds": kinds, "action": action, "number": number, "most": MOST}
    most = None if COMPLETE and engine == "native" else rounds(20) if COMPLETE else 5
    environment = {"TFRECORD_IO_ENGINE": engine}
    done = run("read", way=way, path=str(path), environment=environment, fault=fault, most=most)
    assert done["status"] == 0
    assert done["calls"] > 100
    answers: list[dict[str, Any]] = done["answers"]
    return answers


@pytest.mark.matrix
@pytest.mark.fault(61)
@pytest.mark.storm
@pytest.mark.parametrize(("way", "form"), CASES)
def test_an_error_of_every_call_of_a_read(
    run: FaultyProcess, files: dict[str, Path], engine: str, way: str, form: str, record_property: Any
) -> None:
    """Right data, or an OSError that names the file, and for data also the byte; never the end of the file."""
    answers = faults(run, way, files[form], engine, READING, FAIL, errno.EIO)
    for answer in answers:
        error = answer["error"]
        if error is None:
            assert answer["right"], (answer["call"], answer["path"])
            continue
        assert "OSError" in error["classes"], error["trace"]
        assert error["errno"] == errno.EIO, error["trace"]
        assert error["filename"] == answer["path"], error["trace"]
        if "read" in answer["call"] and not answer["path"].endswith((".json", ".index")):
            assert "at byte " in error["text"], error["trace"]
    record_property("input/output errors at one call of a reader after the other", len(answers))


@pytest.mark.matrix
@pytest.mark.fault(61)
@pytest.mark.storm
@pytest.mark.parametrize(("way", "form"), CASES)
@pytest.mark.parametrize(("kinds", "action", "number"), [(READ, SHORT, 0), (READ | OPEN, FAIL, errno.EINTR)])
def test_short_reads_and_interrupted_calls_are_continued(
    run: FaultyProcess,
    files: dict[str, Path],
    engine: str,
    way: str,
    form: str,
    kinds: int,
    action: int,
    number: int,
    record_property: Any,
) -> None:
    answers = faults(run, way, files[form], engine, kinds, action, number)
    for answer in answers:
        assert answer["error"] is None, answer["error"]["trace"]
        assert answer["right"], (answer["call"], answer["path"])
    record_property("short or interrupted reads at one call of a reader after the other", len(answers))
