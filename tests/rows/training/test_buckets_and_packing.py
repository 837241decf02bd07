"""Buckets and packed rows: what they refuse, leave out and cost; tests/laws has what they return."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from reading import read_by
from training_batches import chunks_of

LENGTHS = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
BUCKETS: dict[str, Any] = {"bucket_by": "x", "bucket_sizes": [4, 8]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """20 rows; three have lists of 9 values, which are rows 5, 12 and 14."""
    lists = [[row] * length for row, length in enumerate(LENGTHS)]
    tfr.write_tfrecord({"x": lists, "n": range(20)}, tmp_path / "a.tfrecord", write_index=True)
    return tmp_path / "a.tfrecord"


@pytest.mark.parametrize("options", [BUCKETS, {"pack": {"x": 8}, "columns": ["x"]}])
@pytest.mark.parametrize("buffer", [0, 6])
def test_a_list_that_is_too_long_is_an_error(path: Path, options: Any, buffer: int) -> None:
    with pytest.raises(
        tfr.errors.SchemaError, match=r"it has 9 values, but .* has room for 8; .*max_length="
    ) as caught:
        list(read_by(tfr.iter_arrays, path, batch_size=2, shuffle_buffer=buffer, seed=1, **options))
    assert caught.value.record in (5, 12, 14)
    with pytest.raises(tfr.errors.SchemaError, match="it has 9 values"):  # the record is not damaged
        list(read_by(tfr.iter_arrays, path, batch_size=2, on_error="skip", **options))


@pytest.mark.parametrize("buffer", [0, 6])
@pytest.mark.parametrize("unit", [3, 100])
def test_rows_that_are_left_out(tmp_path: Path, buffer: int, unit: int) -> None:
    """Their batches have fewer rows; a packed row may lack a part, or all."""
    out = {2, 3, 7, 16}
    lists = [[row] * length for row, length in enumerate(LENGTHS)]
    numbers = [None if row in out else row for row in range(20)]
    schema = {"x": tfr.list_("int64"), "n": "int64"}
    tfr.write_tfrecord({"x": lists, "n": numbers}, tmp_path / "a.tfrecord", schema=schema)
    lists = [[] if row in out else own for row, own in enumerate(lists)]
    tfr.write_tfrecord({"x": [own or None for own in lists]}, tmp_path / "b.tfrecord", schema={"x": schema["x"]})
    options: dict[str, Any] = {"batch_size": 2, "shuffle_buffer": buffer, "seed": 1, "on_error": "skip"}
    with chunks_of(unit):
        with pytest.warns(tfr.errors.DamagedDataWarning):
            batches = list(read_by(tfr.iter_arrays, tmp_path / "a.tfrecord", max_length=8, **BUCKETS, **options))
        assert sorted(n for batch in batches for n in batch["n"].tolist()) == sorted(set(range(20)) - out)
        assert {batch["x"].shape[1] for batch in batches} == {4, 8}
        with pytest.warns(tfr.errors.DamagedDataWarning):
            packed = list(read_by(tfr.iter_arrays, tmp_path / "b.tfrecord", pack={"x": 9}, **options))
    assert {batch["x"].shape for batch in packed[:-1]} == {(2, 9)}
    values = Counter(x for batch in packed for x in batch["x"][batch["x/segment_ids"] > 0].tolist())
    assert values == {row: len(own) for row, own in enumerate(lists) if own}


def test_each_row_is_in_the_part_of_one_worker(path: Path) -> None:
    parts = [
        [
            n
            for batch in read_by(tfr.iter_arrays, path, batch_size=2, worker=(i, 3), max_length=8, **BUCKETS)
            for n in batch["n"]
        ]
        for i in range(3)
    ]
    assert sorted(n for part in parts for n in part) == list(range(20))


@pytest.mark.parametrize("options", [{**BUCKETS, "max_length": 8}, {"pack": {"x": 9}, "columns": ["x"]}])
def test_batches_do_not_depend_on_threads(path: Path, options: Any) -> None:
    def batches(threads: int) -> list[dict[str, Any]]:
        read = read_by(
            tfr.iter_arrays, path, batch_size=2, shuffle_buffer=7, seed=2, epochs=2, threads=threads, **options
        )
        return [{name: array.tolist() for name, array in batch.items()} for batch in read]

    assert batches(1) == batches(2)


def test_missing_lists_have_no_values(tmp_path: Path) -> None:
    schema = {"x": tfr.list_("int64")}
    tfr.write_tfrecord({"x": [[1, 2], None, [3]]}, tmp_path / "a.tfrecord", schema=schema)
    with pytest.raises(tfr.errors.DecodeError, match='pass missing="mask"'):
        list(tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=1, pack={"x": 4}))
    (batch,) = tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=1, pack={"x": 4}, missing="mask")
    assert batch["x"].tolist() == [[1, 2, 3, 0]]
    assert batch["x/segment_ids"].tolist() == [[1, 1, 2, 0]]
    (batch,) = tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=3, missing="mask", bucket_by="x", bucket_sizes=[2])
    assert np.ma.getmaskarray(batch["x"]).tolist() == [[False] * 2, [True] * 2, [False] * 2]


@pytest.mark.parametrize("missing", [[], None])
def test_a_row_has_one_segment_in_all_columns(tmp_path: Path, missing: list[int] | None) -> None:
    lists = {"x": [missing, [11, 12], missing, [21]], "y": [[1], [2, 2], missing, missing]}
    tfr.write_tfrecord(lists, tmp_path / "a.tfrecord", schema={name: tfr.list_("int64") for name in lists})
    options: dict[str, Any] = {"batch_size": 1, "pack": {"x": 6, "y": 6}, "missing": "mask"}
    data = tfr.dataset(tmp_path / "a.tfrecord")
    for batch in (next(data.iter_arrays(**options)), data.to_grain(**options)[0]):
        assert batch["x"].tolist() == [[11, 12, 21, 0, 0, 0]]
        assert batch["x/segment_ids"].tolist() == [[2, 2, 3, 0, 0, 0]]
        assert batch["x/positions"].tolist() == [[0, 1, 0, 0, 0, 0]]
        assert batch["y/segment_ids"].tolist() == [[1, 2, 2, 0, 0, 0]]


def test_batches_by_number_stack_lists_of_one_length(tmp_path: Path) -> None:
    rows = {"t": [[1], [3, 4], [2], [5, 6]], "box": [[1, 2, 3, 4]] * 4}
    schema = {name: tfr.list_("int64") for name in rows}
    tfr.write_tfrecord(rows, tmp_path / "a.tfrecord", schema=schema, embed_schema=False)  # else they are never stacked
    options: dict[str, Any] = {"batch_size": 2, "bucket_by": "t", "bucket_sizes": [1, 2]}
    data = tfr.dataset(tmp_path / "a.tfrecord")
    source = pickle.loads(pickle.dumps(data.to_grain(**options)))
    for number, batch in enumerate(data.iter_arrays(**options)):
        assert (source[number]["box"].dtype, source[number]["box"].tolist()) == (np.int64, batch["box"].tolist())
    rows["box"][3] = [1]
    tfr.write_tfrecord(rows, tmp_path / "b.tfrecord", schema=schema, embed_schema=False)
    source = tfr.dataset(tmp_path / "b.tfrecord", sample=2).to_grain(**options)
    with pytest.raises(
        tfr.errors.SchemaError, match=r"record 3: feature 'box': .* sample have 4; pass .*a larger sample=$"
    ):
        list(map(source.__getitem__, range(len(source))))
    source = tfr.dataset(tmp_path / "b.tfrecord", sample="all").to_grain(**options)
    lists = [own.tolist() for number in range(len(source)) for own in source[number]["box"]]
    assert sorted(lists) == [[1], *[[1, 2, 3, 4]] * 3]


def test_steps_that_are_tensors(tmp_path: Path) -> None:
    boxes = [np.arange(4 * n, dtype=np.float32).reshape(n, 4) for n in (1, 3, 2)]
    schema = {"x": tfr.sequence(tfr.tensor("float32", (4,)))}
    tfr.write_tfrecord({"x": [list(own) for own in boxes]}, tmp_path / "a.tfrecord", schema=schema)
    (batch,) = tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=2, pack={"x": 4})
    assert batch["x"].shape == (2, 4, 4)
    assert batch["x"][0].tolist() == [*boxes[0].tolist(), *boxes[1].tolist()]
    assert batch["x/segment_ids"].tolist() == [[1, 2, 2, 2], [1, 1, 0, 0]]


def test_images_in_buckets(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    paths = []
    for n in range(6):
        image.new("RGB", (4, 4), (n, 0, 0)).save(tmp_path / f"{n}.png")
        paths.append((tmp_path / f"{n}.png").read_bytes())
    schema = {"image": tfr.image(), "x": tfr.list_("int64")}
    lists = [[n] * (n % 3 + 1) for n in range(6)]
    tfr.write_tfrecord({"image": paths, "x": lists}, tmp_path / "a.tfrecord")
    for batch in tfr.iter_arrays(
        tmp_path / "a.tfrecord", batch_size=1, schema=schema, bucket_by="x", bucket_sizes=[1, 3]
    ):
        assert [int(pixels[0, 0, 0]) for pixels in batch["image"]] == batch["x"][:, 0].tolist()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"bucket_by": "x"}, ValueError, "bucket_by= and bucket_sizes= need each other"),
        ({"bucket_by": "x", "bucket_sizes": [4, 4]}, ValueError, "expected ascending lengths"),
        ({"bucket_by": "n", "bucket_sizes": [9]}, tfr.errors.SchemaError, "not lists of varying length"),
        ({"bucket_by": "z", "bucket_sizes": [9]}, tfr.errors.FeatureNotFoundError, "names a column that is not read"),
        ({"pack": {"x": 9}}, tfr.errors.SchemaError, "'n': pack= makes one row of several, .*exclude it"),
        ({"pack": 9}, TypeError, "expected a length by column"),
        ({"bucket_by": "x", "bucket_sizes": 9}, TypeError, "bucket_sizes=9: expected ascending lengths"),
        ({"pack": {"x": 9}, "columns": ["x"], "pad_to": 16}, ValueError, "pack= cannot be combined with pad_to="),
        ({"pad_to": {"x": 16}, **BUCKETS}, ValueError, "pad_to= cannot name 'x', which bucket_sizes= pads"),
        ({"pack": {"x": 9}, "columns": ["x"], "ragged": "offsets"}, ValueError, "cannot be combined with pack="),
        ({"pack": {"x": 9}, **BUCKETS}, ValueError, "cannot be combined"),
        ({"pack": {"x": 9}, "uneven": "pad"}, ValueError, "how many batches a worker has; .*epochs=None"),
        ({"max_length": 9, **BUCKETS}, ValueError, "max_length=9 of 'x' is more than bucket_sizes="),
    ],
)
def test_options_that_cannot_be(path: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_by(tfr.iter_arrays, path, batch_size=2, **options)


def test_the_number_of_batches_is_unknown(path: Path) -> None:
    with (
        read_by(tfr.iter_arrays, path, batch_size=2, max_length=8, **BUCKETS) as batches,
        pytest.raises(TypeError, match="depends on all lengths"),
    ):
        len(batches)


def test_a_state_of_other_buckets_is_refused(path: Path) -> None:
    with read_by(tfr.iter_arrays, path, batch_size=2, max_length=8, **BUCKETS) as batches:
        assert [batch["n"].tolist() for batch in islice(batches, 3)] == [[0, 1, 2, 3], [4, 5], [7, 8]]
        state = batches.state()
    assert state["held"] == [6]
    for name, value in {"bucket_sizes": [4, 9], "max_length": 7}.items():
        with pytest.raises(ValueError, match=f"the state was made with {name}="):
            read_by(tfr.iter_arrays, path, batch_size=2, **{**BUCKETS, "max_length": 8, name: value}, state=state)
    with pytest.raises(ValueError, match="the state is damaged"):
        read_by(tfr.iter_arrays, path, batch_size=2, max_length=8, **BUCKETS, state={**state, "held": [0, 0]})
    with tfr.iter_arrays(path, batch_size=2) as batches:
        assert "held" not in batches.state()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"cut": True}, ValueError, "cut=True is for packed rows: pass pack="),
        ({"end_token": 0, "batch_size": 1}, ValueError, "end_token=0 is for packed rows"),
        ({"cu_seqlens": True, **BUCKETS}, ValueError, "cu_seqlens=True is for packed rows"),
        ({"pack": {"x": 9}, "end_token": 0}, ValueError, "end_token=0 needs cut=True"),
        ({"pack": {"x": 9, "y": 8}, "cut": True}, ValueError, "cuts all columns at the same places: pass one length"),
        ({"pack": {"x": 9}, "cut": True, "end_token": {"y": 1}}, ValueError, "a value for each column of pack="),
        ({"pack": {"x": 9}, "cut": True, "end_token": b"e"}, TypeError, "expected a number or a text"),
        ({"pack": {"x": 9}, "cut": 1}, TypeError, "cut=1"),
    ],
)
def test_cuts_that_cannot_be(path: Path, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_by(tfr.iter_arrays, path, columns=["x"], **{"batch_size": 2, **options})


def test_lists_that_are_cut_together_have_equal_lengths(tmp_path: Path) -> None:
    lists = {"x": [[1, 2], [3], [4, 5]], "y": [[1, 2], [3], [4]]}
    schema = {name: tfr.list_("int64") for name in lists}
    tfr.write_tfrecord(lists, tmp_path / "a.tfrecord", schema=schema, write_index=True)
    options: dict[str, Any] = {"batch_size": 1, "pack": {"x": 2, "y": 2}, "cut": True}
    data = tfr.dataset(tmp_path / "a.tfrecord")
    message = "it has 1 value, but 2 values in 'x'"
    with data.iter_arrays(**options) as batches:
        assert next(batches)["x"].tolist() == [[1, 2]]
        assert next(batches)["x"].tolist() == [[3, 0]]
        with pytest.raises(tfr.errors.SchemaError, match=message) as raised:
            next(batches)
    assert raised.value.record == 2
    with pytest.raises(tfr.errors.SchemaError, match=message):
        list(tfr.iter_arrays(tmp_path / "a.tfrecord", on_error="skip", **options))
    source = data.to_grain(**options)
    with pytest.raises(tfr.errors.SchemaError, match=message) as raised:
        source[1]
    assert raised.value.record == 2


def test_end_tokens_are_values_of_the_column(tmp_path: Path) -> None:
    lists = {"n": [[1, 2, 3]], "t": [["a", "b", "c"]]}
    schema = {"n": tfr.list_("uint8"), "t": tfr.list_("string")}
    tfr.write_tfrecord(lists, tmp_path / "a.tfrecord", schema=schema)
    options: dict[str, Any] = {"batch_size": 2, "pack": {"n": 2, "t": 2}, "cut": True}
    (batch,) = tfr.iter_arrays(tmp_path / "a.tfrecord", **options, end_token={"n": 255, "t": "</s>"})
    assert batch["n"].tolist() == [[1, 2], [3, 255]]
    assert batch["n"].dtype == np.uint8
    assert batch["t"].tolist() == [["a", "b"], ["c", "</s>"]]
    number = {"columns": ["n"], "batch_size": 2, "pack": {"n": 2}, "cut": True, "end_token": np.int64(9)}
    with tfr.iter_arrays(tmp_path / "a.tfrecord", **number) as batches:
        assert next(batches)["n"].tolist() == [[1, 2], [3, 9]]
        assert json.loads(json.dumps(batches.state()))["options"]["end_token"] == 9
    for token in (256, 0.5, "e", 3):
        with pytest.raises(tfr.errors.SchemaError, match=r"end_token=.* is not a value of"):
            list(tfr.iter_arrays(tmp_path / "a.tfrecord", **options, end_token=token))


def test_a_state_of_other_cuts_is_refused(path: Path) -> None:
    options: dict[str, Any] = {"columns": ["x"], "batch_size": 1, "pack": {"x": 6}, "cut": True}
    with read_by(tfr.iter_arrays, path, **options) as batches:
        next(batches)
        state = batches.state()
    assert (state["held"], state["cut"]) == ([2], 2)
    for changed in ({"end_token": 1}, {"cut": False, "max_length": 6}):
        with pytest.raises(ValueError, match="the state was made with"):
            read_by(tfr.iter_arrays, path, **{**options, **changed}, state=state)
    for damaged in ({"cut": 9, "held": []}, {"cut": -1}):
        with pytest.raises(ValueError, match="the state is damaged"):
            read_by(tfr.iter_arrays, path, **options, state={**state, **damaged})
    with pytest.raises(ValueError, match="a document has fewer values than it states"):
        list(read_by(tfr.iter_arrays, path, **options, state={**state, "cut": 99, "held": [0]}))


def test_a_long_document_is_given_in_pieces(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [list(range(100_000))]}, tmp_path / "a.tfrecord", schema={"x": tfr.list_("int64")})
    batches = tfr.iter_arrays(tmp_path / "a.tfrecord", batch_size=4, pack={"x": 100}, cut=True, cu_seqlens=True)
    values = [batch["x"].reshape(-1) for batch in islice(batches, 100)]
    state = batches.state()
    assert (state["held"], state["cut"]) == ([0], 40_000)
    rest = tfr.iter_arrays(
        tmp_path / "a.tfrecord", batch_size=4, pack={"x": 100}, cut=True, cu_seqlens=True, state=state
    )
    values += [batch["x"].reshape(-1) for batch in rest]
    assert np.concatenate(values).tolist() == list(range(100_000))


def test_a_state_before_damage_after_documents_without_values(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [[1, 2, 3], [], [], [4]]}, path, schema={"x": tfr.list_("int64")}, embed_schema=False)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    options: dict[str, Any] = {"schema": {"x": tfr.list_("int64")}, "batch_size": 1, "pack": {"x": 2}, "cut": True}
    with tfr.iter_arrays(path, **options) as batches:
        assert [batch["x"].tolist() for batch in islice(batches, 2)] == [[[1, 2]], [[3, 0]]]
        state = batches.state()
        with pytest.raises(tfr.errors.CorruptRecordError):
            next(batches)
    with (
        tfr.iter_arrays(path, **options, state=state) as batches,
        pytest.raises(tfr.errors.CorruptRecordError) as raised,
    ):
        next(batches)
    assert raised.value.record == 3
