"""A conversion that goes on after its notes or parts were damaged: the right result, or an error with the path."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from rounds import rounds
from transfers import convert_flat

ROWS = [30, 0, 20, 25]  # of each source
EXPECTED = [f"{number} {row}" for number, rows in enumerate(ROWS) for row in range(rows)]


class Stopped(Exception):
    pass


class Prepared:
    """The sources, and the files of a conversion that was stopped, or of one that was completed."""

    def __init__(self, folder: Path, compression: str | None) -> None:
        self.sources = [str(folder / f"{number}.tfrecord") for number in range(len(ROWS))]
        self.keywords = {"compression": compression, "float64": "round"}
        for number, (path, rows) in enumerate(zip(self.sources, ROWS, strict=True)):
            data = {"txt": [f"{number} {row}" for row in range(rows)], "x": [0.1] * rows}
            tfr.write_tfrecord(data, f"{path}@1", float64="round")
            os.rename(f"{path}-00000-of-00001", path)
        calls = iter(range(2))

        def stop(progress: tfr.typing.Progress) -> None:
            if next(calls, None) is None:
                raise Stopped

        with pytest.raises(Stopped):
            self.convert(folder / "stopped", progress=stop)
        self.convert(folder / "complete")
        self.stopped, self.complete = read(folder / "stopped"), read(folder / "complete")
        assert any(name.startswith("_") and name.endswith(".staged") for name in self.stopped)

    def convert(self, folder: Path, first: int = 0, **keywords: Any) -> Any:
        return convert_flat(self.sources[first:], f"{folder}/x@*", resume=True, **self.keywords, **keywords)


def read(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="module", params=[None, "gzip"])
def prepared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prepared]:
    return Prepared(tmp_path_factory.mktemp("resumed"), request.param)


def check(folder: Path, first: int = 0) -> None:
    table, expected = tfr.read_table(f"{folder}/x@*"), EXPECTED[sum(ROWS[:first]) :]
    assert table["txt"].to_pylist() == expected
    assert tfr.read_metadata(folder).records == len(expected)
    assert tfr.verify(folder).ok
    assert table.schema.names == ["txt", "x"]


DAMAGE = st.tuples(
    st.sampled_from(["bit", "byte", "digit", "cut", "insert", "delete", "swap"]), st.floats(0, 1), st.integers(0, 255)
)


def damaged(content: bytes, kind: str, where: float, value: int) -> bytes:
    at = min(int(where * len(content)), len(content) - 1)
    byte = {"bit": content[at] ^ 1 << value % 8, "byte": value, "digit": ord("0") + value % 10}.get(kind)
    if byte is not None:
        return content[:at] + bytes([byte]) + content[at + 1 :]
    if kind == "insert":
        return content[:at] + bytes([value]) + content[at:]
    if kind == "swap":
        return content[:at] + content[at : at + 2][::-1] + content[at + 2 :]
    return content[:at] + (b"" if kind == "cut" else content[at + 1 + value % 40 :])


def converted(prepared: Prepared, folder: Path, **keywords: Any) -> Exception | None:
    """Convert; returns the error, which is one of this package and names a file of the folder."""
    error = None
    try:
        prepared.convert(folder, **keywords)
    except (tfr.TFRecordError, OSError, ValueError) as raised:
        error = raised
    assert error is None or (str(folder) in str(error) and not isinstance(error, UnicodeError)), repr(error)
    return error


def resumed(prepared: Prepared, folder: Path) -> str | None:
    """Go on, twice; returns the error, which is the same again."""
    first, second = (str(converted(prepared, folder) or "") for _ in range(2))
    assert first == second
    if not first:
        check(folder)
    return first or None


@settings(max_examples=rounds(80))
@given(data=st.data(), damages=st.lists(DAMAGE, min_size=1, max_size=2))
def test_a_stopped_one(prepared: Prepared, data: st.DataObject, damages: list[tuple[str, float, int]]) -> None:
    files = dict(prepared.stopped)
    for damage in damages:
        name = data.draw(st.sampled_from(sorted(files)))
        files[name] = damaged(files[name], *damage) if files[name] else b""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        error = resumed(prepared, Path(folder))
        if error is not None:
            assert "_RESUME-x.json" in error
            assert "delete it" in error or "delete '" in error
            os.unlink(f"{folder}/_RESUME-x.json")
            assert resumed(prepared, Path(folder)) is None


@settings(max_examples=rounds(80))
@given(data=st.data(), damage=DAMAGE, first=st.sampled_from([0, 1]))
def test_a_complete_one_that_is_made_anew(
    prepared: Prepared, data: st.DataObject, damage: tuple[str, float, int], first: int
) -> None:
    """The shards of sources that did not change are copied; a manifest has no checksum."""
    files = dict(prepared.complete)
    name = data.draw(st.sampled_from(["_MANIFEST-x.json"] * 3 + sorted(files)))
    files[name] = damaged(files[name], *damage)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        before = Path(folder, "_MANIFEST-x.json").read_bytes()
        error = converted(prepared, Path(folder), first=first, mode="overwrite")
        if error is None and Path(folder, "_MANIFEST-x.json").read_bytes() != before:  # made again
            check(Path(folder), first)


@pytest.mark.parametrize("number", [None, "records", "bytes", "crc32c"])
def test_descriptions_of_an_older_release(prepared: Prepared, tmp_path: Path, number: str | None) -> None:
    """They have no checksum: the parts are made again, and the journal is to be deleted."""
    for name, content in prepared.stopped.items():
        if name.endswith(".json") and not name.startswith("_RESUME"):
            document = json.loads(content)
            document.pop("checksum")
            if number is not None:
                document[number] += 1
            content = json.dumps(document).encode()
        (tmp_path / name).write_bytes(content)
    assert resumed(prepared, tmp_path) is None
    for path in tmp_path.iterdir():
        path.unlink()
    for name, content in prepared.stopped.items():
        if name.startswith("_RESUME"):
            document = json.loads(content)
            document.pop("checksum")
            content = json.dumps(document).encode()
        (tmp_path / name).write_bytes(content)
    error = resumed(prepared, tmp_path)
    assert error is not None
    assert "_RESUME-x.json: it is damaged: it has no checksum" in error


def test_a_changed_count_with_its_checksum_is_not_published(prepared: Prepared, tmp_path: Path) -> None:
    from tfrecord_io.store.write import resume_journal

    for name, content in prepared.stopped.items():
        document = json.loads(content) if name.endswith(".json") else {}
        if "records" in document:
            document.pop("checksum")
            content = resume_journal._as_json({**document, "records": document["records"] + 1})
        (tmp_path / name).write_bytes(content)
    assert resumed(prepared, tmp_path) is None


def test_a_changed_count_in_a_manifest_is_not_copied(prepared: Prepared, tmp_path: Path) -> None:
    document = json.loads(prepared.complete["_MANIFEST-x.json"])
    document["files"][1]["records"] += 1
    document["records"] += 1
    for name, content in prepared.complete.items():
        (tmp_path / name).write_bytes(json.dumps(document).encode() if name.endswith(".json") else content)
    prepared.convert(tmp_path, first=1, mode="overwrite")
    check(tmp_path, first=1)


@pytest.mark.parametrize("change", ["ctime", "inode"])
def test_a_source_that_was_replaced_with_its_time(tmp_path: Path, change: str) -> None:
    """Another content of the same size and time of change is another file."""
    source = tmp_path / "a.jsonl"
    source.write_text('{"n": 1}\n')
    tfr.convert(str(source), tmp_path / "out" / "x@*", resume=True)
    status = os.stat(source)
    if change == "inode":
        source.rename(tmp_path / "kept")
    source.write_text('{"n": 2}\n')
    os.utime(source, ns=(status.st_atime_ns, status.st_mtime_ns))
    tfr.convert(str(source), tmp_path / "out" / "x@*", resume=True, mode="overwrite")
    assert tfr.read_table(tmp_path / "out")["n"].to_pylist() == [2]
