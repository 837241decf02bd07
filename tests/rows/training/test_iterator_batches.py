"""The contents of an iterator's batches, the errors between them, and the lifetime of its thread."""

from __future__ import annotations

import gc
import inspect
import os
import pickle
import threading
import warnings
import weakref
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, floats, int64s, written
from running_threads import ends, running
from tfrecord_io.rows.training.epochs import EpochReader, NumberedBatch
from training_batches import chunks_of, values


def test_batches_are_those_of_read_arrays(tmp_path: Path, engine: str) -> None:
    """Every kind of column, in order and through a shuffle buffer."""
    rows = 40
    table = pa.table(
        {
            "i": list(range(rows)),
            "f": pa.array(np.arange(rows, dtype=np.float32)),
            "b": [n % 3 == 0 for n in range(rows)],
            "t": pa.array(range(rows), pa.timestamp("ms")),
            "text": [f"ä{n}" if n % 5 else None for n in range(rows)],
            "bytes": [b"\0" * (n % 4) for n in range(rows)],
            "pair": pa.array([[n, n + 1] for n in range(rows)], pa.list_(pa.int64(), 2)),
            "ragged": [list(range(n % 4)) for n in range(rows)],
            "words": [["x"] * (n % 3) for n in range(rows)],
            "kind": pa.array([f"k{n % 3}" for n in range(rows)]).dictionary_encode(),
            "at": [{"x": n, "y": float(n)} for n in range(rows)],
        }
    )
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(table, path, float64="round")
    whole = tfr.read_arrays(path)
    for keywords in ({"threads": 1}, {"shuffle_buffer": 16, "seed": 3}, {"shuffle_buffer": 100, "seed": 3}):
        with chunks_of(9):
            batches = list(read_by(tfr.iter_arrays, path, batch_size=7, **keywords))
        assert [list(batch) for batch in batches] == [list(whole)] * 6
        order = np.concatenate([batch["i"] for batch in batches])
        assert sorted(order.tolist()) == list(range(rows))
        for name, array in whole.items():
            parts = [batch[name] for batch in batches]
            assert {part.dtype for part in parts} == {parts[0].dtype}
            assert (
                parts[0].dtype.kind == array.dtype.kind
            )  # text that may be missing has a dtype of its own in every batch
            got = [cell.tolist() if isinstance(cell, np.ndarray) else cell for part in parts for cell in part]
            expected = [cell.tolist() if isinstance(cell, np.ndarray) else cell for cell in array[order]]
            assert got == expected, name


@pytest.mark.parametrize("buffer", [0, 8])
def test_representations_of_ragged_columns(tmp_path: Path, buffer: int) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(*range(n % 4)), n=int64s(n)) for n in range(20)])
    asked = {"batch_size": 6, "shuffle_buffer": buffer, "seed": 0}
    expected = [[list(range(n % 4)) for n in batch["n"].tolist()] for batch in read_by(tfr.iter_arrays, path, **asked)]
    for batch, rows in zip(read_by(tfr.iter_arrays, path, ragged="offsets", **asked), expected, strict=True):
        flat, offsets = batch["x"]
        assert [flat[a:b].tolist() for a, b in pairwise(offsets)] == rows
    for batch, rows in zip(read_by(tfr.iter_arrays, path, ragged="pad", pad_value=-1, **asked), expected, strict=True):
        assert batch["x/length"].tolist() == [len(row) for row in rows]
        assert [row[:n].tolist() for row, n in zip(batch["x"], batch["x/length"], strict=True)] == rows
        assert (batch["x"] == -1).sum() == batch["x"].size - sum(map(len, rows))
    for batch, rows in zip(read_by(tfr.iter_arrays, path, **asked), expected, strict=True):
        assert [row.tolist() for row in batch["x"]] == rows


def test_lists_of_one_length_in_the_sample_are_stacked_throughout(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [*[example(x=floats(n, n)) for n in range(20)], example(x=floats(1, 2, 3))])
    got = []
    message = r'it has 3 values, but all records of the sample have 2.*ragged="object"'
    with pytest.raises(tfr.errors.SchemaError, match=message) as caught:  # noqa: PT012
        for batch in tfr.iter_arrays(tfr.dataset(path, sample=10), batch_size=8):
            got.append(batch["x"].shape)
    assert got == [(8, 2), (8, 2), (4, 2)]
    assert (caught.value.path, caught.value.record, caught.value.feature) == (str(path), 20, "x")
    assert (
        len(
            list(
                tfr.iter_arrays(
                    tfr.dataset(path, sample=10), batch_size=8, schema={"x": "list<float32>"}, ragged="object"
                )
            )
        )
        == 3
    )
    assert [b["x"].dtype for b in tfr.iter_arrays(path, batch_size=8)] == [object] * 3


@pytest.mark.parametrize("last", [[1.0], [1.0, 2.0, 3.0]])
def test_lists_of_an_embedded_schema_are_not_stacked(tmp_path: Path, last: list[float]) -> None:
    """Lists of the schema have any length, whatever a sample has; lists of a stated length are stacked."""
    rows = [[float(n), float(n)] for n in range(6000)] + [last]
    columns = {"x": rows, "n": list(range(6001)), "pair": pa.array(rows[:-1] + rows[:1], pa.list_(pa.float32(), 2))}
    tfr.write_tfrecord(columns, tmp_path / "a.tfrecord", float64="round")
    data = tfr.dataset(tmp_path / "a.tfrecord", sample=5000)
    for batches in (data.iter_arrays(batch_size=1000), tfr.mix([data], stop="all").iter_arrays(batch_size=1000)):
        got = [*batches]
        assert [row.tolist() for batch in got for row in batch["x"]] == rows
        assert {batch["x"].dtype.kind for batch in got} == {"O"}
        assert {batch["pair"].shape[1:] for batch in got} == {(2,)}
    fixed = data.iter_arrays(batch_size=1000, ragged={"x": "pad"}, pad_to={"x": 3})
    assert {batch["x"].shape[1:] for batch in fixed} == {(3,)}


@pytest.mark.parametrize("declared", [{"schema": {"x": "list<float32>"}}, {"schema_overrides": {"x": "list<float32>"}}])
def test_lists_that_are_declared_are_not_stacked(tmp_path: Path, declared: dict[str, Any]) -> None:
    """Whatever the sample has: a later record may have fewer values."""
    path = written(tmp_path / "a.tfrecord", [*[example(x=floats(n, n)) for n in range(20)], example(x=floats(1))])
    expected = [[n, n] for n in range(20)] + [[1]]
    data = tfr.dataset(path, sample=10, **declared)
    for batches in (
        read_by(tfr.iter_arrays, path, batch_size=8, sample=10, **declared),
        data.iter_arrays(batch_size=8),
        tfr.mix([data]).iter_arrays(batch_size=8),
        tfr.mix([tfr.dataset(path), data], [1e-9, 1]).iter_arrays(batch_size=8),
    ):
        assert [row.tolist() for batch in batches for row in batch["x"]] == expected
    fixed = tfr.iter_arrays(tfr.dataset(path, limit=20), batch_size=8, schema={"x": tfr.list_("float32", 2)})
    assert [batch["x"].shape for batch in fixed] == [(8, 2), (8, 2), (4, 2)]


def test_the_sample_of_lists_is_not_cut_by_a_limit_of_filtered_rows(tmp_path: Path) -> None:
    rows = {"c": [0, 0, 1, 1], "x": [[1, 2], [3, 4], [5], [6, 7, 8]], "steps/n": [[1, 2]] * 4}
    schema = {"c": "int64", "x": tfr.list_("int64"), "steps/n": tfr.list_("int64")}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord", schema=schema, embed_schema=False)
    where = [("c", "==", 1)]
    data = tfr.dataset(tmp_path / "a.tfrecord").filter(where)
    limited = data.limit(2)
    for batches in (
        tfr.iter_arrays(tfr.dataset(tmp_path / "a.tfrecord", limit=2), batch_size=2, filters=where),
        limited.iter_arrays(batch_size=2),
        tfr.mix([limited], stop="all").iter_arrays(batch_size=2),
        tfr.windows(limited, length=2).iter_arrays(batch_size=2),
    ):
        (batch,) = batches
        assert [row.tolist() for row in batch["x"]] == [[5], [6, 7, 8]]
    (batch,) = tfr.iter_arrays(tfr.dataset(tmp_path / "a.tfrecord", limit=2), batch_size=2)
    assert batch["x"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.fault(44)
def test_a_missing_value_is_raised_after_the_records_before_it(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.tfrecord", [*(example(x=int64s(n)) for n in (1, 2, 3)), example(), example(x=int64s(5))]
    )
    batches = tfr.iter_arrays(path, batch_size=2)
    assert [next(batches)["x"].tolist() for _ in range(2)] == [[1, 2], [3]]
    for _ in range(2):
        with pytest.raises(
            tfr.errors.DecodeError, match=r"record 3: feature 'x': it has no value.*missing=\"mask\""
        ) as caught:
            next(batches)
    assert caught.value.record == 3
    masked = np.ma.concatenate(
        [batch["x"] for batch in tfr.iter_arrays(path, batch_size=2, missing="mask", shuffle_buffer=3, seed=0)]
    )
    assert sorted(masked.compressed().tolist()) == [1, 2, 3, 5]
    assert masked.mask.sum() == 1
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 3"):
        assert values(path, batch_size=2, on_error="stop") == [[1, 2], [3]]


def test_close_and_the_garbage_collector_end_the_thread(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(3000)])
    for end in ("close", "drop", "with"):
        with chunks_of(50):
            batches = tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=10, epochs=None, shuffle_buffer=20)
            next(batches)
        mine = running("batches")
        assert len(mine) == 2  # one reads, and one draws rows
        if end == "close":
            batches.close()
            assert next(batches, None) is None
        elif end == "with":
            with batches:
                pass
        del batches
        gc.collect()
        assert all(map(ends, mine))


def readers() -> list[EpochReader]:
    return [each for each in gc.get_objects() if isinstance(each, EpochReader)]


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["files", "windows", "mixture", "balanced"])
@pytest.mark.parametrize("end", ["closed", "dropped", "consumed"])
@pytest.mark.parametrize("threads", [1, 2])
def test_what_it_reads_is_freed_with_it(tmp_path: Path, kind: str, end: str, threads: int) -> None:
    """Not by the garbage collector: until it runs, files would stay open."""
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n % 2), **{"steps/a": int64s(n)}) for n in range(99)])
    data: Any = tfr.dataset(path, schema={"x": "int64", "steps/a": tfr.list_("int64")}, threads=threads)
    if kind == "windows":
        data = tfr.windows(data, length=1)
    elif kind != "files":
        data = tfr.mix([data], balance="x" if kind == "balanced" else None)
    before = set(map(id, readers()))
    with chunks_of(10):
        batches = data.iter_arrays(batch_size=5, shuffle_buffer=20)
        next(batches)
    del data
    mine = [weakref.ref(reader) for reader in readers() if id(reader) not in before]
    assert mine
    gc.collect()
    gc.disable()
    try:
        if end == "closed":
            batches.close()
        elif end == "consumed":
            for _ in batches:
                pass
        del batches
        for thread in running("batches"):
            thread.join(10)
        assert [reader() for reader in mine] == [None] * len(mine)
    finally:
        gc.enable()


def test_the_last_rows_of_a_buffer_are_held_once(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=blobs(bytes(10_000))) for _ in range(400)])
    dataset, before = tfr.dataset(path, schema={"x": "bytes"}, threads=1), pa.total_allocated_bytes()
    with chunks_of(50):
        for batch in dataset.iter_arrays(batch_size=10, shuffle_buffer=400):
            assert len(batch["x"]) == 10
            held = pa.total_allocated_bytes() - before
    assert held < 1.5 * path.stat().st_size


@pytest.mark.parametrize("threads", [1, 2])
def test_no_batch_is_lost_where_ctrl_c_comes_twice(
    tmp_path: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time before the iterator has gone back to where it was."""
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(90)])
    dataset = tfr.dataset(path, threads=threads)
    with chunks_of(10):
        expected = [batch["x"].tolist() for batch in dataset.iter_arrays(batch_size=5)]
        batches = dataset.iter_arrays(batch_size=5)
    got = [next(batches)["x"].tolist() for _ in range(2)]

    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(NumberedBatch, "slice", interrupted)  # called by what makes batches, in a thread or here
        patch.setattr(type(batches), "_rewind", interrupted)
        while True:
            try:
                got.append(next(batches)["x"].tolist())
            except KeyboardInterrupt:
                break
    got += [batch["x"].tolist() for batch in batches]
    assert got == expected


def test_an_iterator_pickles_until_it_is_started(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(30)])
    batches = tfr.iter_arrays(path, batch_size=4, shuffle_buffer=9)
    again = pickle.loads(pickle.dumps(batches))
    assert again.seed == batches.seed
    assert [b["x"].tolist() for b in again] == [b["x"].tolist() for b in batches]
    with pytest.raises(TypeError, match=r"pass it as state="):
        pickle.dumps(batches)


@pytest.mark.fault(65)
def test_threads_that_share_an_iterator_get_batches_of_their_own(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(400)])
    for threads in (1, 2):
        batches = tfr.iter_arrays(tfr.dataset(path, threads=threads), batch_size=3, shuffle_buffer=20)
        got: list[int] = []

        def take(batches: Any = batches, got: list[int] = got) -> None:
            got.extend(x for batch in iter(lambda: next(batches, None), None) for x in batch["x"].tolist())

        takers = [threading.Thread(target=take) for _ in range(4)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
        assert sorted(got) == list(range(400))


@pytest.mark.fault(65)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_process_may_begin_but_not_go_on(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(n)) for n in range(30)])
    fresh, begun = (tfr.iter_arrays(tfr.dataset(path, threads=2), batch_size=4) for _ in range(2))
    next(begun)
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking beside threads is what is tested
        child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(len(list(fresh))).encode())
            list(begun)
        except RuntimeError as error:
            os.write(writing, b" refused" if "another process" in str(error) else b" ?")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 100) == b"8 refused"
    os.close(reading)
    os.close(writing)
    begun.close()


def test_an_epoch_of_images_has_all_records(data: Path) -> None:
    seen = 0
    for batch in tfr.iter_arrays(data / "fashion.tfrecord", batch_size=16, shuffle_buffer=500, seed=0):
        seen += len(batch["image"])
    assert seen == 120


def test_declared_tensors_are_the_golden_arrays(data: Path, engine: str) -> None:
    schema = {"image": tfr.tensor("float32", (28, 28, 1)), "label": tfr.tensor("float64", (10,))}
    golden = np.load(data / "fashion.npz")
    batches = list(tfr.iter_arrays(data / "fashion.tfrecord", batch_size=16, schema=schema))
    for name in schema:
        got = np.concatenate([batch[name] for batch in batches])
        assert (got.dtype, got.shape) == (golden[name].dtype, golden[name].shape)
        assert (got == golden[name]).all()


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"batch_size": 0}, ValueError),
        ({"batch_size": 2, "shuffle_buffer": -1}, ValueError),
        ({"batch_size": 2, "worker": (2, 2)}, ValueError),
        ({"batch_size": 2, "worker": 3}, TypeError),
        ({"batch_size": 2, "seed": 0.5}, TypeError),
        ({"batch_size": 2, "epochs": -1}, ValueError),
        ({"batch_size": 2, "ragged": "stack"}, ValueError),
        ({"batch_size": 2, "missing": "drop"}, ValueError),
        ({"batch_size": 2, "state": 3}, TypeError),
        ({"batch_size": 2, "columns": []}, ValueError),
        ({"batch_size": 2, "shuffel": 3}, TypeError),
        ({"batch_size": 2, "batch_bytes": 3}, TypeError),
        ({"batch_size": 2, "epochs": 0}, ValueError),
    ],
)
def test_bad_keywords_are_refused_at_once(tmp_path: Path, keywords: dict[str, Any], error: type[Exception]) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1))])
    with pytest.raises(error):
        tfr.iter_arrays(path, **keywords)


def test_a_file_object_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1))])
    with path.open("rb") as file, pytest.raises(TypeError, match="pass paths"):
        tfr.iter_arrays(file, batch_size=1)


def test_a_feature_missing_from_the_sample_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [*[example(x=int64s(1))] * 5, example(x=int64s(1), y=blobs(b"z"))])
    with pytest.raises(tfr.errors.SchemaError, match="on_new"):
        list(tfr.iter_arrays(tfr.dataset(path, sample=3), batch_size=2))
    assert len(list(tfr.iter_arrays(tfr.dataset(path, sample=3, on_new="ignore"), batch_size=2))) == 3


@pytest.mark.parametrize("buffer", [0, 9])
def test_tensors_that_were_written_come_back(tmp_path: Path, buffer: int, engine: str) -> None:
    rng = np.random.default_rng(5)
    fixed = rng.random((30, 4, 3)).astype("complex64")
    cells = np.empty(30, object)
    cells[:] = [rng.integers(0, 99, (n % 4, 2), np.int16) for n in range(30)]
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"fixed": fixed, "cells": cells, "n": np.arange(30)}, path)
    asked = {"batch_size": 7, "shuffle_buffer": buffer, "seed": 0}
    for batch in read_by(tfr.iter_arrays, path, **asked):
        assert batch["fixed"].dtype == np.complex64
        assert (batch["fixed"] == fixed[batch["n"]]).all()
        assert all(
            a.dtype == np.int16 and (a == b).all() for a, b in zip(batch["cells"], cells[batch["n"]], strict=True)
        )
    for batch in read_by(tfr.iter_arrays, path, ragged="pad", **asked):
        assert batch["cells/shape"].tolist() == [list(cells[n].shape) for n in batch["n"]]
        assert all((row[: len(cells[n])] == cells[n]).all() for row, n in zip(batch["cells"], batch["n"], strict=True))
    for batch in read_by(tfr.iter_arrays, path, ragged="offsets", **asked):
        flat, offsets = batch["cells"]
        rows = [flat[a:b].reshape(shape) for (a, b), shape in zip(pairwise(offsets), batch["cells/shape"], strict=True)]
        assert all((row == cells[n]).all() for row, n in zip(rows, batch["n"], strict=True))


@pytest.mark.parametrize("buffer", [0, 5])
def test_records_of_other_kinds(tmp_path: Path, data: Path, buffer: int) -> None:
    """SequenceExamples, payloads, compressed files, paths of rows."""
    asked = {"batch_size": 3, "shuffle_buffer": buffer, "seed": 0}
    table = pa.table({"n": range(8), "steps": [[[1] * (k % 3) for k in range(n)] for n in range(8)]})
    tfr.write_tfrecord(table, tmp_path / "s.tfrecord.gz", record_type="sequence_example")
    for batch in read_by(tfr.iter_arrays, tmp_path / "s.tfrecord.gz", **asked):
        got = [[step.tolist() for step in row] for row in batch["steps"]]
        assert got == [table["steps"][n].as_py() for n in batch["n"].tolist()]
    paths = [written(tmp_path / f"{name}", [name.encode() * n for n in range(4)]) for name in ("a", "b")]
    batches = list(read_by(tfr.iter_arrays, paths, record_type="bytes", include_file_paths="path", **asked))
    rows = [
        (record, path)
        for batch in batches
        for record, path in zip(batch["record"], batch["path"].tolist(), strict=True)
    ]
    assert sorted(rows) == sorted((path.name.encode() * n, str(path)) for path in paths for n in range(4))


def test_an_unknown_keyword_error_lists_the_valid_keywords(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [example(x=int64s(1))])
    with pytest.raises(TypeError, match="unexpected keyword argument 'nonsense'") as caught:
        tfr.iter_arrays(path, batch_size=1, nonsense=1)
    offered = str(caught.value).partition("valid names: ")[2].split(", ")
    assert offered == sorted(set(inspect.signature(tfr.iter_arrays).parameters) - {"source"})
