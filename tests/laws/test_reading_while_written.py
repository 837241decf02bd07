"""A reader that runs while a dataset is appended to, compacted and replaced sees one version of it, or one error."""

from __future__ import annotations

import errno
import pickle
import tempfile
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from interposed import before_storage_calls
from reading import read_by
from rounds import IN_A_BUCKET, rounds
from servers import Bucket


def by_duckdb(path: str, storage: dict[str, Any]) -> list[int]:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        try:
            tfr.register_duckdb(connection, path, name="t", **storage)
            return [x for (x,) in connection.sql("SELECT x FROM t").fetchall()]
        except duckdb.Error as error:
            if "was replaced while it was read" not in str(error):
                raise
            raise tfr.errors.ReplacedError(errno.ESTALE, str(error)) from error


def by_polars(path: str, storage: dict[str, Any]) -> list[int]:
    pytest.importorskip("polars")
    return read_by(tfr.scan_polars, path, **storage).collect()["x"].to_list()


def by_number(path: str, storage: dict[str, Any]) -> list[int]:
    with read_by(tfr.open_random, path, **storage) as records:
        return records[np.arange(len(records))]["x"].to_pylist() if len(records) else []


def by_verify(path: str, storage: dict[str, Any]) -> int:
    report = read_by(tfr.verify, path, **storage)
    for file in report.files:
        if file.error is not None:
            raise file.error
    return report.records


READERS: dict[str, Callable[[str, dict[str, Any]], list[int] | int]] = {
    "read_table": lambda path, storage: read_by(tfr.read_table, path, **storage)["x"].to_pylist(),
    "read_table of a glob": lambda path, storage: read_by(tfr.read_table, f"{path}**/part-*", **storage)[
        "x"
    ].to_pylist(),
    "dataset": lambda path, storage: tfr.dataset(path, **storage).to_table()["x"].to_pylist(),
    "filter": lambda path, storage: read_by(tfr.read_table, path, filters=[("x", ">=", 0)], **storage)["x"].to_pylist(),
    "iter_arrays": lambda path, storage: [
        int(x) for batch in read_by(tfr.iter_arrays, path, batch_size=2, **storage) for x in batch["x"]
    ],
    "open_random": by_number,
    "count": lambda path, storage: read_by(tfr.count, path, **storage),
    "verify": by_verify,
    "polars": by_polars,
    "duckdb": by_duckdb,
}


@dataclass
class Growing:
    """A dataset that writers change, and the rows of each of its versions.

    Attributes
    ----------
    versions : list of list of int
        Since the last reader began.
    """

    path: str
    storage: dict[str, Any]
    folders: bool
    versions: list[list[int]] = field(default_factory=lambda: [[]])
    number: int = 0

    def write(self, step: str) -> None:
        rows = self.versions[-1]
        if step == "compact":
            tfr.compact(self.path, **self.storage)
            return
        self.number += 1
        added = [self.number * 10 + i for i in range(1 + self.number % 3)]
        table = {"x": added, "p": [x % 2 for x in added]}
        by: dict[str, Any] = {"partition_by": ["p"]} if self.folders else {"write_index": True}
        tfr.write_tfrecord(table, self.path, mode=step, **by, **self.storage)
        self.versions.append([*rows, *added] if step == "append" else added)

    def read(self, read: Callable[[str, dict[str, Any]], list[int] | int], steps: dict[int, str]) -> None:
        """Read while a writer makes steps before the calls to the storage with these numbers."""
        self.versions, calls = self.versions[-1:], 0
        made = list[str]()

        def act() -> None:
            nonlocal calls
            step = steps.get(calls)
            calls += 1
            if step is not None:
                made.append(step)
                self.write(step)

        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("error")
            before_storage_calls(patch, act)
            try:
                rows = read(self.path, self.storage)
            except tfr.errors.ReplacedError:
                assert {*made} - {"append"}, "what is appended replaces nothing"
                return
        if isinstance(rows, int):
            assert rows in [len(version) for version in self.versions]
        else:
            assert sorted(rows) in [sorted(version) for version in self.versions]


STEPS = st.dictionaries(st.integers(0, 25), st.sampled_from(["append", "append", "compact", "overwrite"]), max_size=3)


@settings(max_examples=rounds(200))
@given(read=st.sampled_from(list(READERS)), folders=st.booleans(), begun=st.integers(1, 3), steps=STEPS)
def test_on_the_disk(read: str, folders: bool, begun: int, steps: dict[int, str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        growing = Growing(f"{directory}/d/", {}, folders)
        for _ in range(begun):
            growing.write("append")
        growing.read(READERS[read], steps)


@settings(max_examples=rounds(100), suppress_health_check=IN_A_BUCKET)
@given(read=st.sampled_from(list(READERS)), folders=st.booleans(), begun=st.integers(1, 3), steps=STEPS)
def test_in_a_bucket(conditional: Bucket, read: str, folders: bool, begun: int, steps: dict[int, str]) -> None:
    storage = {"storage_options": conditional.storage_options}
    growing = Growing(conditional.url(f"{uuid.uuid4().hex}/"), storage, folders)
    for _ in range(begun):
        growing.write("append")
    growing.read(READERS[read], steps)


@pytest.mark.matrix
@pytest.mark.parametrize("read", READERS)
def test_a_reader_that_begins_while_rows_are_appended_never_fails(conditional: Bucket, read: str) -> None:
    """Each listing is older than the manifest that is read after it, however often they are looked up."""
    storage = {"storage_options": conditional.storage_options}
    growing = Growing(conditional.url("d/"), storage, folders=False)
    growing.write("append")
    growing.read(READERS[read], dict.fromkeys(range(30), "append"))
    assert len(growing.versions) > 2


@pytest.mark.matrix
@pytest.mark.parametrize("folders", [False, True])
def test_tables_and_frames_look_again_and_a_dataset_is_refreshed(
    conditional: Bucket, tmp_path: Path, folders: bool
) -> None:
    duckdb, pl = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    storage = {"storage_options": conditional.storage_options}
    for growing in (Growing(f"{tmp_path}/d/", {}, folders), Growing(conditional.url("d/"), storage, folders)):
        growing.write("append")
        with duckdb.connect() as connection:
            tfr.register_duckdb(connection, growing.path, name="t", **growing.storage)
            frame = read_by(tfr.scan_polars, growing.path, **growing.storage)
            data = tfr.dataset(growing.path, **growing.storage).filter([("x", ">", 0)]).select(["x"])
            for step in ("append", "compact", "append", "overwrite", "append"):
                before = growing.versions[-1]
                growing.write(step)
                now = sorted(growing.versions[-1])
                assert sorted(x for (x,) in connection.sql("SELECT x FROM t").fetchall()) == now
                assert connection.sql("SELECT count(*) FROM t WHERE x >= 10").fetchall() == [(len(now),)]
                assert sorted(frame.collect()["x"].to_list()) == now
                assert frame.filter(pl.col("x") < 0).select(pl.len()).collect().item() == 0
                if step == "append":
                    assert sorted(data.to_table()["x"].to_pylist()) == sorted(before)
                else:
                    with pytest.raises(tfr.errors.ReplacedError, match=r"refresh\(\)"):
                        data.to_table()
                data = pickle.loads(pickle.dumps(data)).refresh()
                assert data.columns == ["x"]
                assert sorted(data.to_table()["x"].to_pylist()) == now


def test_a_frame_says_which_column_has_another_type_now(tmp_path: Path) -> None:
    polars = pytest.importorskip("polars")
    wraps = polars.__version__.startswith("1.")  # errors of sources
    tfr.write_tfrecord({"x": [1], "y": [1]}, f"{tmp_path}/d/")
    frame = tfr.scan_polars(f"{tmp_path}/d/")
    tfr.write_tfrecord({"x": ["a"], "y": [1]}, f"{tmp_path}/d/", mode="overwrite")
    error = polars.exceptions.ComputeError if wraps else tfr.errors.SchemaError
    with pytest.raises(error, match="'x': expected int64, as it was at first, got string; open the files"):
        frame.collect()


def test_a_piece_is_not_refreshed(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, f"{tmp_path}/d/")
    with pytest.raises(ValueError, match="only what was opened as a whole"):
        (tfr.dataset(f"{tmp_path}/d/").limit(1) + f"{tmp_path}/d/").refresh()
