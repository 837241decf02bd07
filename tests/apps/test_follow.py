"""Followers get the rows that appends add, each once."""

from __future__ import annotations

import json
import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from rounds import rounds
from tfrecord_io.errors import ReplacedError
from tfrecord_io.store.paths import history

FORMS: dict[str, dict[str, Any]] = {
    "shards": {},
    "folders": {"partition_by": "p"},
    "gzip": {"compression": "gzip"},
    "small shards": {"max_shard_bytes": 60},
    "evolve": {"evolve": True},
}


def append(path: Any, *rows: int, **keywords: Any) -> None:
    table = pa.table({"x": pa.array(rows, pa.int64()), "p": [row % 2 for row in rows]})
    if keywords.get("evolve") and len(rows) > 2:
        table = table.append_column("z", pa.array([0.5] * len(rows), pa.float32()))
    tfr.write_tfrecord(table, path, mode="append", **keywords)


def taken(rows: Any) -> list[int]:
    """All rows that a follower has now."""
    return [x for added in rows for x in added.to_table()["x"].to_pylist()]


def since(path: Any, version: str | None, until: str | None = None) -> list[int]:
    return taken(tfr.follow(path, version, until=until, every=None))


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_after_a_version_whatever_was_done_since(form: str, tmp_path: Path) -> None:
    rng, path, keywords = random.Random(form), f"{tmp_path}/d/", FORMS[form]
    append(path, 0, 1, **keywords)
    added: dict[str, list[int]] = {str(tfr.dataset(path).version): []}  # rows after each version
    total = {str(tfr.dataset(path).version): {0, 1}}  # rows appended up to each version
    number, alive = 2, {0, 1}
    for _ in range(rounds(16, 8)):
        action = rng.choice(["append", "append", "append", "compact", "delete"])
        if action == "append":
            rows = [*range(number, number + rng.randint(1, 4))]
            append(path, *rows, **keywords)
            number, alive = number + len(rows), alive | {*rows}
            for expected in added.values():
                expected += rows
        elif action == "compact":
            tfr.compact(path, max_shard_bytes=rng.choice([400, 2**20]))
        else:
            gone = rng.sample(sorted(alive), min(3, len(alive) - 1))
            tfr.delete(path, filters=[("x", "in", gone)])
            alive -= {*gone}
        added.setdefault(str(tfr.dataset(path).version), [])
        total.setdefault(str(tfr.dataset(path).version), {*range(number)})
        for version, expected in added.items():
            found = since(path, version)
            assert sorted(found) == [x for x in expected if x in alive], (action, version)
            if form == "shards":
                assert found == sorted(found), "in the order of the appends"
        first, last = sorted(rng.sample(range(len(total)), 2)) if len(total) > 1 else (0, 0)
        for begin, end in ((None, last), (first, last), (last, last)):
            versions = [None if at is None else [*total][at] for at in (begin, end)]
            before, after = (set() if version is None else total[version] for version in versions)
            assert sorted(since(path, *versions)) == sorted((after - before) & alive), (action, versions)
    assert tfr.verify(path).ok


def test_a_follower_takes_each_row_once_while_others_write(tmp_path: Path) -> None:
    path, ended = f"{tmp_path}/d/", threading.Event()
    append(path, -1, partition_by="p")

    def write() -> None:
        for number in range(12):
            append(path, 10 * number, 10 * number + 1, partition_by="p")
            if number % 5 == 4:
                tfr.compact(path)
        ended.set()

    thread = threading.Thread(target=write)
    thread.start()
    found: list[int] = []
    version: str | None = None
    is_last = False
    while not is_last:
        is_last = ended.is_set()  # then one more look has the rest
        rows = tfr.follow(path, version, every=None)
        try:
            for added in rows:
                found += added.to_table()["x"].to_pylist()
                version = rows.version
        except ReplacedError:  # shards were joined after they were found: look again
            is_last = False
    thread.join()
    assert sorted(found) == sorted([-1, *(10 * number + at for number in range(12) for at in (0, 1))])


def test_it_waits_for_rows(tmp_path: Path) -> None:
    path = f"{tmp_path}/d/"
    append(path, 1)
    rows = tfr.follow(path, tfr.dataset(path).version, every=0.01)
    timer = threading.Timer(0.1, append, (path, 2))
    timer.start()
    assert next(rows).to_table()["x"].to_pylist() == [2]
    timer.join()
    assert rows.version == tfr.dataset(path).version
    assert "Follower of <Dataset of" in repr(rows)


def test_all_rows_come_first_without_a_version(tmp_path: Path) -> None:
    append(f"{tmp_path}/d/", 1, 2)
    rows = tfr.follow(f"{tmp_path}/d/", every=None)
    assert rows.version is None
    assert next(rows).to_table()["x"].to_pylist() == [1, 2]
    append(f"{tmp_path}/d/", 3)
    assert taken(rows) == [3]


def test_columns_filters_and_pieces_of_what_is_added(tmp_path: Path) -> None:
    path = f"{tmp_path}/d/"
    append(path, *range(10), partition_by="p")
    append(path, *range(10, 20), partition_by="p")
    version = tfr.dataset(path).version
    append(path, *range(20, 30), partition_by="p")
    tfr.compact(path)
    (added,) = tfr.follow(tfr.dataset(path).filter("x > 23 and p = 1").select(["x"]), version, every=None)
    assert (added.columns, sorted(added.to_table()["x"].to_pylist())) == (["x"], [25, 27, 29])
    (added,) = tfr.follow(path, version, every=None)
    assert added.filter("p = 0").count_rows() == 5
    assert sorted(x for piece in added.pieces(3) for x in piece.read()["x"].to_pylist()) == [*range(20, 30)]
    again = pickle.loads(pickle.dumps(added))
    assert again.to_table() == added.to_table()
    assert sorted(tfr.read_table(added.limit(4))["x"].to_pylist()) == sorted(added.to_table()["x"].to_pylist()[:4])
    (odd,) = tfr.follow(f"{path}p=1", version, every=None)
    assert sorted(odd.to_table()["x"].to_pylist()) == [21, 23, 25, 27, 29]


def test_new_columns_are_those_of_the_dataset_then(tmp_path: Path) -> None:
    append(tmp_path, 1)
    version = tfr.dataset(tmp_path).version
    append(tmp_path, 2, 3, 4, evolve=True)
    (added,) = tfr.follow(tmp_path, version, every=None)
    assert added.to_table()["z"].to_pylist() == [0.5] * 3


REPLACES: dict[str, Callable[[str], Any]] = {
    "overwrite": lambda path: tfr.write_tfrecord({"x": [9], "p": [1]}, path, mode="overwrite", partition_by="p"),
    "overwrite_partitions": lambda path: tfr.write_tfrecord(
        {"x": [9], "p": [1]}, path, mode="overwrite_partitions", partition_by="p"
    ),
}


@pytest.mark.parametrize("name", REPLACES)
def test_replaced_rows_end_it(name: str, tmp_path: Path) -> None:
    path = f"{tmp_path}/d/"
    append(path, 0, 1, partition_by="p")
    version = tfr.dataset(path).version
    rows = tfr.follow(path, version, every=None)
    REPLACES[name](path)
    with pytest.raises(ReplacedError, match=f"rows were replaced since version {version}"):
        next(rows)
    with pytest.raises(ReplacedError, match="read the dataset again"):
        tfr.follow(path, version)
    latest = tfr.dataset(path).version
    append(path, 11, partition_by="p")
    assert since(path, latest) == [11]


def test_a_new_folder_of_overwritten_partitions_counts_as_appended(tmp_path: Path) -> None:
    append(tmp_path, 0, partition_by="p")
    version = tfr.dataset(tmp_path).version
    REPLACES["overwrite_partitions"](f"{tmp_path}/")
    assert since(tmp_path, version) == [9]


def test_a_version_of_a_copy_is_that_of_its_source(tmp_path: Path) -> None:
    append(tmp_path / "a", 1)
    append(tmp_path / "a", 2)
    tfr.copy(tmp_path / "a", tmp_path / "b")
    version = tfr.dataset(tmp_path / "a").version
    assert tfr.dataset(tmp_path / "b").version == version
    append(tmp_path / "a", 3)
    tfr.copy(tmp_path / "a", tmp_path / "b", update=True)
    assert since(tmp_path / "b", version) == [3]
    before = (tmp_path / "b/_MANIFEST.json").read_bytes()
    tfr.copy(tmp_path / "a", tmp_path / "b", update=True)
    assert (tmp_path / "b/_MANIFEST.json").read_bytes() == before


def test_a_version_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "_MOST_RUNS", 4)
    monkeypatch.setattr(history, "_KEPT_RUNS", 3)
    versions = []
    for number in range(8):
        append(tmp_path, number)
        versions.append(tfr.dataset(tmp_path).version)
    with pytest.raises(ReplacedError, match=r"version .* is too old: appends are distinguished from"):
        tfr.follow(tmp_path, versions[0])
    assert since(tmp_path, versions[-3]) == [6, 7]


def test_an_offset_of_the_rows_before_a_refresh_gives_the_added_rows_or_is_refused(tmp_path: Path) -> None:
    for form, keywords in (("shards", {}), ("folders", FORMS["folders"])):
        path = tmp_path / form
        append(path, 0, 1, 2, **keywords)
        opened = tfr.dataset(path)
        rows = opened.rows
        assert rows is not None
        assert opened.refresh().offset(rows).to_table()["x"].to_pylist() == []
        append(path, 3, **keywords)  # in the last folder
        later = pickle.loads(pickle.dumps(opened.refresh().select(["x"])))
        assert later.offset(rows).to_table()["x"].to_pylist() == [3]
        append(path, 4, **keywords)
        if form == "shards":
            tfr.compact(path)
            assert opened.refresh().offset(rows).to_table()["x"].to_pylist() == [3, 4]
            continue
        for compacts in (False, True):
            if compacts:
                tfr.compact(path)
            with pytest.raises(ValueError, match=r"not the last ones.*follow\(path, since="):
                opened.refresh().offset(rows)
        assert len(opened.refresh().offset(rows - 1).to_table()) == 3  # a page of any rows
        assert len(tfr.dataset(path).offset(rows).to_table()) == 2
        tfr.write_tfrecord(tfr.read_table(path), path, mode="overwrite", **keywords)
        with pytest.raises(ReplacedError, match="rows were replaced since"):
            opened.refresh().offset(rows)


def test_what_cannot_be_followed_is_refused(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(ValueError, match=r"needs one dataset with a manifest.*adopt"):
        tfr.follow(tmp_path / "a.tfrecord")
    append(tmp_path / "d", 1)
    opened = tfr.dataset(tmp_path / "d")
    for part in (opened.limit(1), opened.offset(1)):
        with pytest.raises(ValueError, match="without offset and limit"):
            tfr.follow(part)
    for bad, error in ((3, TypeError), ("x", ValueError), ("0" * 16, ValueError)):
        with pytest.raises(error, match="expected a"):
            tfr.follow(opened, bad)  # type: ignore[arg-type]
    assert opened.version is not None
    with pytest.raises(ValueError, match="the dataset's version is"):
        tfr.follow(opened, f"{opened.version[:-1]}9")
    with pytest.raises(ValueError, match="expected seconds"):
        tfr.follow(opened, every=-1)
    assert tfr.dataset(tmp_path / "a.tfrecord").version is None
    append(tmp_path / "e", 1)
    assert tfr.dataset([tmp_path / "d", tmp_path / "e"]).version is None


def test_the_history_of_a_manifest_is_checked(tmp_path: Path) -> None:
    append(tmp_path, 1)
    append(tmp_path, 2)
    file = tmp_path / "_MANIFEST.json"
    document = json.loads(file.read_text())
    for wrong in ({"runs": [[0, 1]]}, {"runs": [[2, 2]]}, {"line": "x"}, {"commit": -1}, {"runs": [[0, 1], [1]]}):
        file.write_text(json.dumps({**document, "history": {**document["history"], **wrong}}))
        with pytest.raises(tfr.errors.CorruptRecordError, match=r"its '?(history|line|commit|runs)"):
            tfr.dataset(tmp_path)
