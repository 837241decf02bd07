"""Tasks in several processes write the shards of one dataset, which is published once: on disk and in a bucket."""

from __future__ import annotations

import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from in_processes import die_in_task, in_killed_process, in_other_process, parts_of_tasks
from killed_writer import die_after
from reading import read_by
from rounds import COMPLETE, each_step
from servers import Bucket
from tfrecord_io.base.options.write import WriteOptions
from tfrecord_io.errors import PrecisionWarning
from tfrecord_io.store import clean
from tfrecord_io.store.write.publication import Publication
from tfrecord_io.write.distributed import DistributedWriter

pytestmark = pytest.mark.matrix

NOW = timedelta(0)


class Place:
    """A directory on disk or in a bucket."""

    def __init__(self, root: str, storage: dict[str, Any], bucket: Bucket | None = None) -> None:
        self.root, self.storage, self.bucket = root, storage, bucket

    def begin(self, name: str, **options: Any) -> DistributedWriter:
        return DistributedWriter.begin(f"{self.root}/{name}", WriteOptions(**options, **self.storage))

    def names(self) -> list[str]:
        if self.bucket is not None:
            return [name.removeprefix("d/") for name in self.bucket.names()]
        return sorted(name for name in os.listdir(self.root)) if os.path.isdir(self.root) else []

    def values(self, name: str = "train@*") -> list[int]:
        return read_by(tfr.read_table, f"{self.root}/{name}", **self.storage)["n"].to_pylist()


@pytest.fixture(params=["disk", "s3", "azure"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "disk":
        return Place(str(tmp_path / "d"), {})
    bucket: Bucket = request.getfixturevalue(request.param)
    return Place(bucket.url("d"), {"storage_options": bucket.storage_options}, bucket)


def rows(*numbers: int) -> list[pa.Table]:
    return [pa.table({"n": pa.array(numbers, pa.int64())})]


def published(shards: int) -> list[str]:
    return ["_MANIFEST-train.json", *(f"train-{i:05d}-of-{shards:05d}" for i in range(shards))]


def test_shards_are_published_together_in_the_order_of_their_tasks(place: Place) -> None:
    writer = pickle.loads(pickle.dumps(place.begin("train")))
    parts = pickle.loads(pickle.dumps([writer.write_part(task, rows(task, task)) for task in (2, 0, 1)]))
    with pytest.raises(FileNotFoundError):
        place.values()
    assert all(name.endswith(".staged") for name in place.names())
    report = writer.commit(parts)
    assert place.names() == published(3)
    assert place.values() == [0, 0, 1, 1, 2, 2]
    assert [(file.records, os.path.basename(file.path)) for file in report.files] == [(2, n) for n in published(3)[1:]]
    assert report.records == 6
    assert report.columns == ("n",)
    assert read_by(tfr.verify, f"{place.root}/train@3", **place.storage).ok
    assert read_by(tfr.read_metadata, f"{place.root}/train@3", **place.storage).records == 6


def test_one_attempt_of_each_task_is_published(place: Place) -> None:
    writer = place.begin("train@*")
    retried = writer.write_part(0, rows(1, 2))
    with pytest.raises(ZeroDivisionError):
        writer.write_part(0, (rows(1 // number)[0] for number in (1, 0)))
    with ThreadPoolExecutor(2) as pool:  # two at the same time
        twice = [pool.submit(writer.write_part, 1, rows(3, 4)) for _ in range(2)]
    late = writer.write_part(0, rows(1, 2))
    assert len(place.names()) == 4
    parts = [late, *(attempt.result() for attempt in twice), retried]
    writer.commit(parts)
    assert place.names() == published(2)
    assert place.values() == [1, 2, 3, 4]
    writer.abort()  # Spark may call it again
    assert place.values() == [1, 2, 3, 4]


@given(attempts=st.lists(st.integers(0, 4), min_size=1, max_size=8), seed=st.integers(0, 99))
def test_whichever_attempts_end_each_row_is_there_once(
    tmp_path_factory: pytest.TempPathFactory, attempts: list[int], seed: int
) -> None:
    place = Place(str(tmp_path_factory.mktemp("dataset")), {})
    writer = place.begin("train")
    parts = [writer.write_part(task, rows(2 * task, 2 * task + 1)) for task in attempts]
    random.Random(seed).shuffle(parts)
    writer.commit(parts)
    assert place.values() == [2 * task + side for task in sorted({*attempts}) for side in (0, 1)]
    assert place.names() == published(len({*attempts}))


MANY = [7, 99_999, 100_000, 10**6, 10**12]  # numbers of tasks: of five digits, and of more


@pytest.mark.parametrize("columns", [[], ["day"]], ids=["shards", "folders"])
@pytest.mark.parametrize("mode", ["overwrite", "append"])
def test_tasks_of_any_number_are_published(place: Place, mode: Any, columns: list[str]) -> None:
    options = {"partition_by": columns} if columns else {}
    for step, name in enumerate(["begun", "published"]):
        writer = place.begin("d/" if columns else "train@*", mode=mode if step else "error", **options)
        numbers = [number + step for number in MANY]
        tables = [pa.table({"n": [number], "day": [number % 2]}) for number in numbers]
        parts = [writer.write_part(task, [table]) for task, table in zip(MANY, tables, strict=True)]
        left = clean(place.root, older_than=NOW, **place.storage)
        assert len([each for each in left if each.path.endswith(".staged")]) == len(MANY), name
        writer.commit(parts)
        before = sorted(MANY) if step and mode == "append" else []
        assert sorted(place.values("d" if columns else "train@*")) == sorted([*before, *numbers])
        assert clean(place.root, older_than=NOW, **place.storage) == []


@pytest.mark.parametrize("columns", [[], ["day"]], ids=["shards", "folders"])
@pytest.mark.parametrize("mode", ["error", "append", "overwrite"])
@pytest.mark.parametrize("is_retried", [False, True])
def test_a_commit_may_be_repeated(place: Place, is_retried: bool, mode: Any, columns: list[str]) -> None:
    options, name = {"partition_by": columns} if columns else {}, "d/" if columns else "train@*"
    if mode != "error":
        before = place.begin(name, **options)
        before.commit([before.write_part(0, [pa.table({"n": [-1], "day": [0]})])])
    writer = pickle.loads(pickle.dumps(place.begin(name, mode=mode, **options)))
    parts = [writer.write_part(task, [pa.table({"n": [task], "day": [task % 2]})]) for task in range(3)]
    writer.write_part(1, [pa.table({"n": [1], "day": [1]})])  # an attempt whose result was lost
    report = writer.commit(parts, is_retried=is_retried)
    again = writer.commit(parts, is_retried=is_retried)
    assert report.records == 3
    assert (again.records, again.bytes, again.files) == (report.records, report.bytes, report.files)
    assert sorted(place.values(name.rstrip("/"))) == ([-1] if mode == "append" else []) + [0, 1, 2]
    assert clean(place.root, older_than=NOW, **place.storage) == []


def test_a_commit_that_fails_may_be_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = place.begin("train@*")
    parts = [writer.write_part(task, rows(task)) for task in range(2)]

    def fail(*_: Any) -> None:
        raise OSError("the network is gone")

    monkeypatch.setattr(type(writer.target), "publish", fail)
    with pytest.raises(OSError, match="the network is gone"):
        writer.commit(parts, is_retried=True)
    monkeypatch.undo()
    assert writer.commit(parts, is_retried=True).records == 2
    assert place.values() == [0, 1]
    assert place.names() == published(2)


def test_a_commit_that_has_only_begun_the_dataset_is_no_published_one(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = place.begin("train@*", mode="append")
    parts = [writer.write_part(task, rows(task)) for task in range(2)]

    def fail(*_: Any) -> None:
        raise OSError("the network is gone")

    monkeypatch.setattr(Publication, "_put_all", fail)  # after the first manifest, which has the id of the writing
    with pytest.raises(OSError, match="the network is gone"):
        writer.commit(parts, is_retried=True)
    monkeypatch.undo()
    other = place.begin("train@*", mode="append")
    other.commit([other.write_part(0, rows(7))])
    assert writer.commit(parts, is_retried=True).records == 2
    assert writer.commit(parts, is_retried=True).records == 2
    assert sorted(place.values("train@*")) == [0, 1, 7]


def test_abort_leaves_nothing(place: Place) -> None:
    writer = place.begin("train")
    writer.write_part(0, rows(1))
    writer.write_part(0, rows(1))
    writer.abort()
    assert place.names() == []
    assert place.bucket is not None or not os.path.exists(place.root)
    writer.abort()


ENDS = [("commit", []), ("abort", ["day"]), ("failing commit", []), *([("commit", ["day"])] if COMPLETE else [])]


def test_uploads_of_killed_tasks_end_with_the_job(s3: Bucket) -> None:
    place = Place(s3.url("d"), {"storage_options": s3.storage_options}, s3)
    other = place.begin("other/", partition_by=["day"])
    in_killed_process(die_in_task, pickle.dumps(other), 0)
    table = pa.table({"n": [0, 1], "day": [0, 1], "blob": [b"", b""]})
    for number, (end, columns) in enumerate(ENDS):
        name = f"{number}/"
        writer = place.begin(name, partition_by=columns)
        in_killed_process(die_in_task, pickle.dumps(writer), 0)
        assert len(s3.uploads()) == 2, end
        part = writer.write_part(0, [table])
        if end == "commit":
            writer.commit([part])
            assert sorted(place.values(name)) == [0, 1]
        elif end == "abort":
            writer.abort()
        else:
            different = writer.write_part(1, [table.set_column(0, "n", pa.array(["a", "b"]))])
            with pytest.raises(tfr.errors.SchemaError):
                writer.commit([part, different])
        (left,) = s3.uploads()
        assert left["Key"].startswith("d/other/"), end
        assert end == "commit" or not [each for each in place.names() if each.startswith(name)], end
    other.abort()
    assert s3.uploads() == []


def test_a_bucket_that_does_not_list_uploads(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers need no permission for that: `clean` finds what is left."""
    real = type(s3.fs)._call_s3

    async def call(self: Any, method: str, *arguments: Any, **keywords: Any) -> Any:
        if method == "list_multipart_uploads":
            raise PermissionError("Access Denied")
        return await real(self, method, *arguments, **keywords)

    monkeypatch.setattr(type(s3.fs), "_call_s3", call)
    place = Place(s3.url("d"), {"storage_options": s3.storage_options}, s3)
    writer = place.begin("train")
    writer.commit([writer.write_part(0, rows(1))])
    assert place.values() == [1]


def test_a_dataset_is_replaced_at_once(place: Place) -> None:
    first = place.begin("train")
    first.commit([first.write_part(task, rows(task)) for task in range(3)])
    with pytest.raises(FileExistsError, match="mode='overwrite'"):
        place.begin("train")
    writer = place.begin("train", mode="overwrite")
    parts = [writer.write_part(task, rows(10 + task)) for task in range(2)]
    assert place.values() == [0, 1, 2]
    aborted = place.begin("train", mode="overwrite")
    aborted.write_part(0, rows(99))
    aborted.abort()
    assert place.values() == [0, 1, 2]
    writer.commit(parts)
    assert place.values() == [10, 11]
    assert place.names() == published(2)


def test_of_two_writers_the_second_is_refused(place: Place) -> None:
    one, other = place.begin("train"), place.begin("train")
    parts = [one.write_part(0, rows(1)), other.write_part(0, rows(2))]
    one.commit(parts[:1])
    with pytest.raises(FileExistsError):
        other.commit(parts[1:])
    assert place.values() == [1]
    assert place.names() == published(1)


def test_tasks_without_rows_get_no_shard(place: Place) -> None:
    writer = place.begin("train", schema={"n": "int64", "x": "float32"})
    full = pa.table({"n": [1], "x": pa.array([0.5], pa.float32())})
    writer.commit([writer.write_part(0, []), writer.write_part(1, [full]), writer.write_part(2, [full.slice(1)])])
    assert place.names() == published(1)
    empty = place.begin("none", schema={"n": "int64", "x": "float32"})
    report = empty.commit([empty.write_part(task, []) for task in range(2)])
    assert (report.records, len(report.files), report.columns) == (0, 1, ("n", "x"))
    assert read_by(tfr.read_table, f"{place.root}/none@1", **place.storage).schema.names == ["n", "x"]
    nothing = place.begin("nothing", schema={"n": "int64"})
    nothing.commit([])
    assert read_by(tfr.read_table, f"{place.root}/nothing@1", **place.storage).num_rows == 0


def test_a_directory_and_a_compression(place: Place) -> None:
    writer = place.begin("", compression="gzip")
    writer.commit([writer.write_part(task, rows(task)) for task in range(2)])
    assert place.names() == ["_MANIFEST.json", *(f"part-{i:05d}-of-00002.tfrecord.gz" for i in range(2))]
    assert place.values("") == [0, 1]


def test_tasks_run_in_other_processes(place: Place) -> None:
    writer = place.begin("train")
    parts = in_other_process(parts_of_tasks, pickle.dumps(writer), range(2))
    writer.commit(map(pickle.loads, parts))
    assert place.values() == [0, 0, 1, 1]


def test_a_relative_path_is_that_of_the_process_that_began(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = DistributedWriter.begin("train", WriteOptions())
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    writer.commit([writer.write_part(0, rows(7))])
    assert os.listdir() == []
    assert tfr.read_table(tmp_path / "train@1")["n"].to_pylist() == [7]


# ---- schemas


def test_parts_with_other_types_are_refused(place: Place) -> None:
    writer = place.begin("train")
    parts = [writer.write_part(0, [{"n": [1]}]), writer.write_part(1, [{"n": ["a"]}])]
    with pytest.raises(
        tfr.errors.SchemaError,
        match=r"its type is int64 in .*train: task 0 and string in .*train: task 1; pass schema=",
    ):
        writer.commit(parts)
    assert place.names() == []


def test_parts_without_rows_may_have_any_type(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    writer = place.begin("train")
    columns = [[1, 2], ["a"][:0], [3]]
    writer.commit([writer.write_part(task, [{"n": column}]) for task, column in enumerate(columns)])
    assert place.values() == [1, 2, 3]


@pytest.mark.parametrize("other", [{"n": [1], "m": [1]}, {}], ids=["more", "fewer"])
@pytest.mark.parametrize("first", [0, 1])
def test_parts_with_other_columns_are_refused(tmp_path: Path, other: dict[str, list[Any]], first: int) -> None:
    """A reader that fixes the schema at the first shard could not read the others."""
    place = Place(str(tmp_path), {})
    writer = place.begin("train")
    tables = [{"n": [1], "k": [2]}, {"k": [2], **other}]
    parts = [writer.write_part(task, [tables[task ^ first]]) for task in range(2)]
    with pytest.raises(
        tfr.errors.SchemaError, match=r"feature '[nm]': the tasks wrote different columns.*one of them none"
    ):
        writer.commit(parts)
    assert place.names() == []


TYPED = {
    "numbers": pa.array([1, 2]),
    "text": pa.array(["a", "b"]),
    "days": pa.array([1, 2], pa.date32()),
    "lists": pa.array([[1], [2, 3]]),
    "nested": pa.array([[[1], []], []]),
    "structs": pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": None}]),
    "categories": pa.array(["a", "b"]).dictionary_encode(),
    "tensors": pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(8).reshape(2, 2, 2)),
}
UNTYPED = {name: [pa.nulls(2)] for name in TYPED}
UNTYPED["structs"] += [pa.array([{"a": 1, "b": None}] * 2), pa.array([{"a": None, "b": "x"}] * 2)]


@pytest.mark.parametrize("name", TYPED)
@given(data=st.data())
def test_a_column_that_is_null_throughout_in_a_part_has_the_type_of_the_others(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: Any
) -> None:
    parts = data.draw(st.lists(st.sampled_from([TYPED[name], *UNTYPED[name]]), min_size=1, max_size=3))
    parts.insert(data.draw(st.integers(0, len(parts))), TYPED[name])
    place = Place(str(tmp_path_factory.mktemp("dataset")), {})
    writer = place.begin("train")
    writer.commit([writer.write_part(task, [pa.table({"x": part})]) for task, part in enumerate(parts)])
    expected = [value for part in parts for value in part.to_pylist()]
    for path in ("train@*", "train-*"):  # by the manifest, and without
        with tfr.open_reader(f"{place.root}/{path}") as reader:
            for table in (reader.read_all(), tfr.read_table(f"{place.root}/{path}")):
                assert table.schema.field("x").type == TYPED[name].type
                assert table["x"].to_pylist() == expected


def test_parts_of_one_schema_are_read_by_all_readers(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    writer = place.begin("train", schema={"n": "int64", "t": "string"})
    tables = [{"n": [1], "t": [None]}, {"n": [None], "t": ["a"]}]
    writer.commit([writer.write_part(task, [table]) for task, table in enumerate(tables)])
    expected = [{"n": 1, "t": None}, {"n": None, "t": "a"}]
    assert tfr.read_table(f"{place.root}/train@*").to_pylist() == expected
    with tfr.open_reader(f"{place.root}/train@*") as reader:
        assert reader.read_all().to_pylist() == expected


def test_categories_of_all_parts(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    writer = place.begin("train")
    parts = [[{"n": pa.array(list(text)).dictionary_encode()}] for text in ("ab", "bc")]
    writer.commit([writer.write_part(task, tables) for task, tables in enumerate(parts)])
    assert place.values() == ["a", "b", "b", "c"]


def test_rounding_is_summed_and_told_once(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    writer = DistributedWriter.begin(tmp_path / "train", WriteOptions())
    parts = [writer.write_part(task, [{"x": np.array([0.1, 0.5, 0.3])}]) for task in range(3)]
    assert not recwarn
    report = writer.commit(pickle.loads(pickle.dumps(parts)))
    assert report.rounded == {"x": 6}
    assert [warning.category for warning in recwarn] == [PrecisionWarning]


def test_a_value_that_cannot_be_written_names_its_task(tmp_path: Path) -> None:
    writer = DistributedWriter.begin(tmp_path / "train", WriteOptions(float64="error"))
    with pytest.raises(tfr.errors.EncodeError) as caught:
        writer.write_part(3, [{"x": np.array([0.5, 0.1])}])
    assert (caught.value.record, caught.value.feature) == (1, "x")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("train@8", {}, r"train@8': the number of shards is that of the partitions; write '.*train@\*'"),
        ("train.csv", {}, "suffix of another format"),
    ],
)
def test_what_tasks_cannot_write(tmp_path: Path, path: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DistributedWriter.begin(tmp_path / path, WriteOptions(**options))
    with pytest.raises(TypeError, match="shards=3: only a writer in one process"):
        DistributedWriter.begin(tmp_path / "train", WriteOptions(shards=3))
    with pytest.raises(TypeError, match="other processes open it"):
        DistributedWriter.begin(7, WriteOptions())


# ---- datasets that grow, and folders

DAYS = pa.table({"n": range(8), "day": ["1", "2", "1", None, "2", "1", "a/b", "2"], "hour": [0, 1] * 4})


def days(*numbers: int) -> list[pa.Table]:
    return [DAYS.take([number]) for number in numbers]


@pytest.mark.parametrize("columns", [["day"], ["hour", "day"]])
def test_rows_go_to_the_folders_of_their_values(place: Place, columns: list[str]) -> None:
    """As `write_tfrecord` writes the same rows, in the same order; several batches and tasks have the same folders."""
    options = {"partition_by": columns, "compression": "gzip"}
    writer = pickle.loads(pickle.dumps(place.begin("d/", **options)))
    chosen = {3: [], 2: days(4, 7), 0: days(0, 1, 2), 1: [*days(3, 5), DAYS.slice(6, 1)]}
    lost = writer.write_part(0, chosen[0])
    parts = [writer.write_part(task, tables) for task, tables in chosen.items()]
    assert all(name.endswith(".staged") and name.startswith("d/_") for name in staged(place))
    report = writer.commit([*pickle.loads(pickle.dumps(parts)), lost])
    tfr.write_tfrecord(DAYS.take([0, 1, 2, 3, 5, 6, 4, 7]), f"{place.root}/e/", **options, **place.storage)
    found, expected = (read_by(tfr.read_table, f"{place.root}/{name}/", **place.storage) for name in "de")
    assert found.schema == expected.schema
    assert found.to_pylist() == expected.to_pylist()
    assert staged(place) == []
    assert (report.records, report.columns) == (8, tuple(name for name in DAYS.column_names if name not in columns))
    sizes = {file.path: read_by(tfr.count, file.path, **place.storage) for file in report.files}
    assert sizes == {file.path: file.records for file in report.files}
    assert sum(file.bytes for file in report.files) == report.bytes
    assert read_by(tfr.verify, f"{place.root}/d/", **place.storage).ok


def staged(place: Place) -> list[str]:
    """Names of files that are neither manifests nor shards, below all folders."""
    if place.bucket is not None:
        names = place.names()
    else:
        names = [str(file.relative_to(place.root)) for file in Path(place.root).rglob("*") if file.is_file()]
    return [name for name in names if ".tfrecord" not in name and "_MANIFEST" not in name]


@pytest.mark.parametrize("columns", [[], ["day"]])
def test_rows_that_cannot_be_added_are_found_before_tasks_begin(place: Place, columns: list[str]) -> None:
    """By the error that the publishing process would raise for the rows."""
    options: dict[str, Any] = {"mode": "append", "partition_by": columns}
    first = place.begin("d/", **options)
    first._check(DAYS.schema)
    first.commit([first.write_part(0, [DAYS])])
    text, wider = pa.array(["x"] * 8), DAYS.append_column("x", pa.array([1] * 8))
    for table in (wider, DAYS.set_column(0, "n", text), DAYS.set_column(1, "day", pa.array(range(8)))):
        found = []
        for at_once in (True, False):
            with pytest.raises(tfr.errors.SchemaError) as caught, place.begin("d/", **options) as writer:
                writer._check(table.schema) if at_once else writer.commit([writer.write_part(0, [table])])
            found.append(str(caught.value))
        assert found[0] == found[1]
        assert staged(place) == []
    with place.begin("d/", evolve=True, **options) as writer:
        writer._check(wider.schema)
        writer.commit([writer.write_part(0, [wider])])
    assert sorted(place.values("d/")) == sorted([*range(8)] * 2)
    assert staged(place) == []


def test_modes(place: Place) -> None:
    def write(tables: list[pa.Table], **options: Any) -> list[int]:
        with place.begin("d/", partition_by=["day"], **options) as writer:
            writer.commit([writer.write_part(task, [table]) for task, table in enumerate(tables)])
        return place.values("d/")

    assert write(days(0, 1, 2)) == [0, 2, 1]
    with pytest.raises(FileExistsError, match="mode='overwrite' replaces it"):
        place.begin("d/", partition_by=["day"])
    assert write(days(4, 3), mode="append") == [0, 2, 1, 4, 3]
    assert write(days(7), mode="overwrite_partitions") == [0, 2, 7, 3]
    with pytest.raises(tfr.errors.SchemaError, match="evolve=True"):
        write([days(7)[0].append_column("x", pa.array([1]))], mode="append")
    assert write([days(7)[0].append_column("x", pa.array([1]))], mode="append", evolve=True) == [0, 2, 7, 7, 3]
    assert read_by(tfr.read_table, f"{place.root}/d/", **place.storage)["x"].to_pylist() == [None, None, None, 1, None]
    with pytest.raises(ValueError, match=r"is partitioned by \['day'\]"):
        place.begin("d/", mode="append")
    assert write(days(5), mode="overwrite") == [5]
    assert staged(place) == []


def test_shards_are_appended_in_the_compression_of_the_dataset(place: Place) -> None:
    first = place.begin("d/", mode="append", compression="gzip")
    first.commit([first.write_part(0, rows(1))])
    second = place.begin("d/", mode="append")
    report = second.commit([second.write_part(task, rows(2 + task)) for task in range(2)])
    assert place.values("d/") == [1, 2, 3]
    assert {os.path.basename(file.path).partition(".")[2] for file in report.files} == {"tfrecord.gz"}


def test_tasks_with_other_types_of_partition_columns_are_refused(place: Place) -> None:
    writer = place.begin("d/", partition_by=["day"])
    parts = [writer.write_part(task, [{"n": [task], "day": [day]}]) for task, day in enumerate(["a", 1])]
    with pytest.raises(tfr.errors.SchemaError, match=r"its type is string in .*task 0 and int64 in .*task 1"):
        writer.commit(parts)
    assert place.names() == []
    typed = place.begin("d/", partition_by=["day"], schema={"n": "int64", "day": "string"})
    typed.commit([typed.write_part(task, [{"n": [task], "day": [day]}]) for task, day in enumerate(["a", None])])
    assert place.values("d/") == [1, 0]
    added = pickle.loads(pickle.dumps(place.begin("d/", partition_by=["day"], mode="append")))
    nulls = pa.table({"n": [2], "day": pa.nulls(1)})
    added._check(nulls.schema)
    added.commit([added.write_part(0, [nulls])])
    assert place.values("d/") == [1, 2, 0]


def test_an_attempt_that_fails_leaves_no_file(place: Place) -> None:
    writer = place.begin("d/", partition_by=["day"])
    with pytest.raises(ZeroDivisionError):
        writer.write_part(0, (days(1 // number)[0] for number in (1, 0)))
    assert staged(place) == []
    with pytest.raises(tfr.errors.SchemaError, match="the data does not have"):
        writer.write_part(0, rows(1))
    writer.write_part(0, days(1, 2))
    writer.abort()
    assert place.names() == []


def test_publishing_that_fails_leaves_no_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(str(tmp_path), {})
    place.begin("d/", partition_by=["day"]).commit([])
    writer = place.begin("d/", partition_by=["day"], mode="append")
    parts = [writer.write_part(task, [DAYS]) for task in range(2)]
    replaced = os.replace

    def failing(source: str, target: str) -> None:
        if target.rpartition("/")[2].startswith("part-00001"):
            raise PermissionError(13, "refused", target)
        replaced(source, target)

    monkeypatch.setattr(os, "replace", failing)
    with pytest.raises(PermissionError, match="refused"):
        writer.commit(parts)
    assert [file.name for file in tmp_path.rglob("*")] == ["d", "_MANIFEST.json"]


MODES = ["append", "overwrite", "overwrite_partitions"]


@pytest.mark.parametrize("mode", MODES)
def test_a_driver_killed_while_it_commits_folders(tmp_path: Path, mode: str) -> None:
    place = Place(str(tmp_path), {})
    tfr.write_tfrecord(DAYS, f"{tmp_path}/d/", partition_by=["day"])
    before, seen = sorted(place.values("d/")), set()
    for step in each_step(MODES.index(mode)):
        writer = place.begin("d/", partition_by=["day"], mode=mode)
        new = [1000 * step + number for number in range(3)]
        table = pa.table({"n": new, "day": ["1", "2", "new"], "hour": [0, 0, 0]})
        rows_before = tfr.read_table(f"{tmp_path}/d/", columns=["n", "day"]).to_pylist()
        is_kept = {"append": True, "overwrite": False}
        kept = [row["n"] for row in rows_before if is_kept.get(mode, row["day"] not in ("1", "2", "new"))]
        killed = commit_killed_after(
            step, writer, [writer.write_part(task, [table.slice(task, 1)]) for task in range(3)]
        )
        values = sorted(place.values("d/"))
        assert values in (before, sorted(kept + new))
        seen.add(values != before)
        before = values
        if not killed:
            break
    assert seen == {True, False}
    assert values == sorted(kept + new)
    clean(f"{tmp_path}/d", remove=True, older_than=NOW)
    assert staged(place) == []
    assert sorted(place.values("d/")) == values
    assert len([*tmp_path.rglob("*.tfrecord")]) == len(tfr.read_metadata(f"{tmp_path}/d/").files)


# ---- processes that are killed


def commit_killed_after(steps: int, writer: DistributedWriter, parts: Any) -> bool:
    """Commit in a process that is killed before it changes the directory once more; whether it was."""
    process = os.fork()
    if not process:
        try:
            die_after(steps)
            writer.commit(parts)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(process, 0)[1])


def test_a_driver_killed_while_it_commits_on_disk(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    current: list[int] = []
    seen = set()
    for step in each_step():
        writer = place.begin("train", mode="overwrite")
        new = [step] * (2 + step % 2)
        parts = [writer.write_part(task, rows(step)) for task in range(len(new))]
        writer.write_part(0, rows(step))
        killed = commit_killed_after(step, writer, parts)
        try:
            values = place.values()
        except FileNotFoundError:
            values = []
        assert values in (current, new)
        seen.add(values == new)
        current = values
        if not killed:
            break
    assert current == new
    assert seen == {True, False}
    clean(place.root, remove=True, older_than=NOW)
    assert place.names() == published(len(new))


@pytest.mark.parametrize("exists", [False, True])
def test_a_driver_killed_while_it_commits_in_a_bucket(conditional: Bucket, dying: dict[str, Any], exists: bool) -> None:
    storage = {"storage_options": conditional.storage_options}
    seen = set()
    for step in each_step(every=1):  # a request each
        place = Place(conditional.url(f"d{step}"), storage)
        old = [-1] if exists else []
        if exists:
            first = place.begin("train")
            first.commit([first.write_part(0, rows(-1))])
        writer = place.begin("train", mode="overwrite" if exists else None)
        parts = [writer.write_part(task, rows(task)) for task in range(3)]
        dying["left"] = step
        try:
            writer.commit(parts)
            killed = False
        except PermissionError:
            killed = True
        dying["left"] = None
        try:
            values = place.values()
        except FileNotFoundError:
            values = []
        assert values in (old, [0, 1, 2])
        seen.add(values == old)
        if not killed:
            break
    assert values == [0, 1, 2]
    assert seen == {True, False}


def test_attempts_that_were_killed_are_found_and_removed(place: Place) -> None:
    """A driver that was killed leaves its attempts; they disturb no later write, and `tfr clean` finds them."""
    lost = place.begin("train")
    lost.write_part(0, rows(1))
    writer = place.begin("train")
    writer.commit([writer.write_part(0, rows(2))])
    assert place.values() == [2]
    assert len(place.names()) == 3
    found = clean(f"{place.root}/", older_than=NOW, remove=True, **place.storage)
    assert [leftover.path.endswith(".staged") for leftover in found] == [True]
    assert place.values() == [2]


def test_the_temporary_file_of_a_killed_attempt_is_removed(tmp_path: Path) -> None:
    place = Place(str(tmp_path), {})
    writer = place.begin("train")
    _, output = writer.target.open(0)  # as a killed process leaves it
    output.write(b"a part of a frame")
    assert [name.endswith(".tmp") for name in place.names()] == [True]
    writer.commit([writer.write_part(0, rows(1))])
    assert place.names() == published(1)
    with pytest.raises(FileNotFoundError):
        output.commit()
    assert place.values() == [1]


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_a_task_finds_the_types_of_columns_that_begin_with_nulls(tmp_path: Path, order: int) -> None:
    """Ray has such tables, of Arrow and of pandas."""
    pandas = pytest.importorskip("pandas")
    columns: list[dict[str, Any]] = [{"x": [None], "k": [1]}, {"x": [None], "k": [2]}, {"x": [[]], "k": [3]}]
    columns = [*columns, {"x": [[1, 2]], "k": [4]}][::order]
    for number, form in enumerate([pa.table, pandas.DataFrame]):
        with DistributedWriter.begin(tmp_path / f"out{number}", WriteOptions()) as writer:
            writer.commit([writer.write_part(0, map(form, columns), finds_types=True)])
        expected = [{"x": each["x"][0], "k": each["k"][0]} for each in columns]
        assert tfr.read_table(tmp_path / f"out{number}@*").to_pylist() == expected
