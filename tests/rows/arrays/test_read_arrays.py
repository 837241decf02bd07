"""read_arrays: dtypes, stacked and ragged columns, missing values, and errors."""

from __future__ import annotations

import datetime as dt
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import engine_of
from records import blobs, example, floats, framed, int64s, written
from strategies import sequence_example
from tfrecord_io.bytes.format.dtypes import Dtype

TABLE = pa.table(
    {
        "int": [3, 1, 2],
        "small": pa.array([1, 2, 3], pa.int8()),
        "flag": [True, False, True],
        "real": pa.array([0.5, 1.5, 2.5], pa.float32()),
        "when": pa.array([dt.datetime(2020, 1, n) for n in (1, 2, 3)], pa.timestamp("us")),
        "day": pa.array([dt.date(2020, 1, n) for n in (1, 2, 3)]),
        "lasts": pa.array([1, 2, 3], pa.duration("ms")),
        "text": ["ä", "", "c"],
        "blob": [b"a\0", b"", b"\xff\0\0"],
        "kind": pa.array(["u", "v", "u"]).dictionary_encode(),
        "pair": pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int16())),
        "box": pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float32(), 2)),
        "ragged": [[1], [], [2, 3]],
        "words": [["a"], ["b", "c"], []],
        "at": pa.StructArray.from_arrays([pa.array([1, 2, 3]), pa.array([{"y": y} for y in "pqr"])], ["x", "in"]),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tfr.write_tfrecord(TABLE, tmp_path / "a.tfrecord")
    return tmp_path / "a.tfrecord"


def test_each_column_has_its_dtype_and_values(path: Path, engine: str) -> None:
    arrays = tfr.read_arrays(path)
    expected = {
        "int": np.array([3, 1, 2]),
        "small": np.array([1, 2, 3], np.int8),
        "flag": np.array([True, False, True]),
        "real": np.array([0.5, 1.5, 2.5], np.float32),
        "when": np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[us]"),
        "day": np.array(["2020-01-01", "2020-01-02", "2020-01-03"], "M8[D]"),
        "lasts": np.array([1, 2, 3], "m8[ms]"),
        "text": np.array(["ä", "", "c"], Dtype.text(missing=False)),
        "blob": np.array([b"a\0", b"", b"\xff\0\0"], object),
        "kind": np.array(["u", "v", "u"], Dtype.text(missing=False)),
        "pair": np.array([[1, 2], [3, 4], [5, 6]], np.int16),
        "box": np.array([[1, 2], [3, 4], [5, 6]], np.float32),
        "at/x": np.array([1, 2, 3]),
        "at/in/y": np.array(["p", "q", "r"], Dtype.text(missing=False)),
    }
    assert list(arrays) == [*TABLE.column_names[:-1], "at/x", "at/in/y"]
    for name, array in expected.items():
        assert arrays[name].dtype == array.dtype, name
        assert arrays[name].shape == array.shape, name
        assert (arrays[name] == array).all(), name
    assert [(row.dtype, row.tolist()) for row in arrays["ragged"]] == [
        (np.int64, [1]),
        (np.int64, []),
        (np.int64, [2, 3]),
    ]
    assert [row.tolist() for row in arrays["words"]] == [["a"], ["b", "c"], []]
    assert arrays["blob"][0] == b"a\0"  # NumPy's S would drop the trailing NUL


def test_read_keywords_apply(path: Path) -> None:
    assert list(tfr.read_arrays(path, columns=["pair", "int"])) == ["pair", "int"]
    assert tfr.read_arrays(tfr.dataset(path, offset=1), columns="int", limit=1)["int"].tolist() == [1]
    assert tfr.read_arrays([path, path], columns="int")["int"].tolist() == [3, 1, 2, 3, 1, 2]
    assert tfr.read_arrays(path, schema={"int": "uint8"})["int"].dtype == np.uint8
    with path.open("rb") as file:
        assert tfr.read_arrays(file, columns="int")["int"].tolist() == [3, 1, 2]
    assert tfr.read_arrays(tfr.dataset(path, record_type="example", threads=4), columns="int")["int"].tolist() == [
        3,
        1,
        2,
    ]
    with pytest.raises(TypeError, match="batch_sise"):
        tfr.read_arrays(path, batch_sise=3)


def test_no_records_give_arrays_without_rows(path: Path, tmp_path: Path) -> None:
    arrays = tfr.read_arrays(path, limit=0)
    assert {name: len(array) for name, array in arrays.items()} == dict.fromkeys(arrays, 0)
    assert arrays["box"].shape == (0, 2)
    assert tfr.read_arrays(written(tmp_path / "none", [])) == {}


def test_ragged_columns_as_offsets_padded_and_objects(path: Path) -> None:
    offsets = tfr.read_arrays(path, columns=["ragged", "pair", "words", "box"], ragged="offsets")
    assert [array.tolist() for array in offsets["ragged"]] == [[1, 2, 3], [0, 1, 1, 3]]
    assert [array.tolist() for array in offsets["pair"]] == [
        [1, 2, 3, 4, 5, 6],
        [0, 2, 4, 6],
    ]  # decided by the type, not by the values
    assert [array.tolist() for array in offsets["words"]] == [["a", "b", "c"], [0, 1, 3, 3]]
    assert offsets["box"].shape == (3, 2)
    padded = tfr.read_arrays(path, columns=["ragged", "words", "pair"], ragged="pad", pad_value=-9)
    assert padded["ragged"].tolist() == [[1, -9], [-9, -9], [2, 3]]
    assert padded["ragged/length"].tolist() == [1, 0, 2]
    assert padded["words"].tolist() == [["a", ""], ["b", "c"], ["", ""]]
    assert list(padded) == ["ragged", "ragged/length", "words", "words/length", "pair", "pair/length"]
    objects = tfr.read_arrays(path, columns=["pair"], ragged="object")["pair"]
    assert (objects.dtype, [row.tolist() for row in objects]) == (object, [[1, 2], [3, 4], [5, 6]])


def test_a_pad_value_must_fit_the_dtype(path: Path) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=r"cannot pad int64 with 0\.5"):
        tfr.read_arrays(path, columns="ragged", ragged="pad", pad_value=0.5)
    with pytest.raises(tfr.errors.SchemaError, match="cannot pad uint8 with -1"):
        tfr.read_arrays(path, columns="ragged", schema={"ragged": "list<uint8>"}, ragged="pad", pad_value=-1)
    floating = written(path.parent / "b", [example(x=floats(1)), example(x=floats(1, 2, 3))])
    padded = tfr.read_arrays(floating, ragged="pad", pad_value=np.nan)["x"]
    assert np.isnan(padded).tolist() == [[False, True, True], [False, False, False]]


def test_two_arrays_of_the_same_name_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(**{"x": int64s(*x), "x/length": int64s(len(x))}) for x in ([1, 2], [])])
    with pytest.raises(tfr.errors.SchemaError, match='two arrays would have the name "x/length"'):
        tfr.read_arrays(path, ragged="pad")
    assert tfr.read_arrays(path)["x/length"].tolist() == [2, 0]


@pytest.mark.fault(44)
@pytest.mark.parametrize(
    ("type_", "value"),
    [
        ("int64", int64s(7)),
        ("float32", floats(1.5)),
        ("bool", int64s(1)),
        ("timestamp[s]", int64s(7)),
        (tfr.tensor("int64", (2,)), int64s(1, 2)),
    ],
)
def test_a_missing_value_is_an_error_or_a_mask(tmp_path: Path, engine: str, type_: Any, value: bytes) -> None:
    first = written(tmp_path / "a.tfrecord", [example(x=value)] * 2)
    second = written(tmp_path / "b.tfrecord", [example(x=value), example()])
    with pytest.raises(
        tfr.errors.DecodeError, match=r"b\.tfrecord: record 1: feature 'x'.*pass missing=\"mask\""
    ) as caught:
        tfr.read_arrays([first, second], schema={"x": type_})
    assert (caught.value.path, caught.value.record, caught.value.records_intact) == (str(second), 1, 3)
    masked = tfr.read_arrays([first, second], schema={"x": type_}, missing="mask")["x"]
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked.mask.reshape(4, -1).all(axis=1).tolist() == [False, False, False, True]
    assert not masked.data[3].any() if masked.dtype.kind not in "M" else masked.data[3] == np.datetime64(0, "s")
    assert isinstance(
        tfr.read_arrays(first, schema={"x": type_}, missing="mask")["x"], np.ma.MaskedArray
    )  # whatever the values
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 1"):
        assert len(tfr.read_arrays([first, second], schema={"x": type_}, on_error="stop")["x"]) == 3


def test_missing_text_bytes_and_objects_are_none(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a", [example(t=blobs(b"x"), b=blobs(b"\xff"), r=int64s(1)), example(), example(r=int64s(1, 2))]
    )
    arrays = tfr.read_arrays(path)
    assert arrays["t"].tolist() == ["x", None, None]
    assert arrays["t"].dtype == Dtype.text(missing=True)
    assert arrays["b"].tolist() == [b"\xff", None, None]
    assert [None if row is None else row.tolist() for row in arrays["r"]] == [[1], None, [1, 2]]
    with pytest.raises(tfr.errors.DecodeError, match=r'record 1.*ragged=.offsets..*ragged="object"'):
        tfr.read_arrays(path, columns="r", ragged="offsets", missing="mask")
    padded = tfr.read_arrays(path, columns="r", ragged="pad", missing="mask")["r"]
    assert padded.tolist() == [[1, 0], [None, None], [1, 2]]


@pytest.mark.parametrize(("values", "kind"), [([b"x", b"y"], Dtype.text(missing=True).kind), ([b"\xff", b""], "O")])
def test_missing_lists_of_equal_length_are_rows_of_none(tmp_path: Path, values: list[bytes], kind: str) -> None:
    path = written(tmp_path / "a.tfrecord", [example(t=blobs(*values)), example(), example(t=blobs(*values))])
    at_once = tfr.read_arrays(path)["t"]
    (batch,) = tfr.iter_arrays(path, batch_size=3, missing="mask")
    for array in (at_once, batch["t"]):
        assert array.dtype.kind == kind
        assert array.shape == (3, 2)
        assert array[1].tolist() == [None, None]


def test_defaults_and_null_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "a", [example(x=int64s(1)), example()])
    assert tfr.read_arrays(path, schema={"x": tfr.scalar("int32", default=-1)})["x"].tolist() == [1, -1]
    nothing = tfr.read_arrays(path, schema={"x": pa.null()}, limit=0)["x"]
    assert nothing.dtype == object


def test_feature_lists(data: Path, tmp_path: Path) -> None:
    table = pa.table({"even": [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], "uneven": [[[1], [2, 3]], [[], [4]]]})
    tfr.write_tfrecord(table, tmp_path / "s.tfrecord", record_type="sequence_example")
    arrays = tfr.read_arrays(tmp_path / "s.tfrecord")
    assert [[step.tolist() for step in row] for row in arrays["uneven"]] == [[[1], [2, 3]], [[], [4]]]
    assert [[step.tolist() for step in row] for row in arrays["even"]] == table["even"].to_pylist()
    arrays = tfr.read_arrays(tmp_path / "s.tfrecord", ragged="pad")
    assert arrays["even"].tolist() == table["even"].to_pylist()
    assert arrays["uneven"].tolist() == [[[1, 0], [2, 3]], [[0, 0], [4, 0]]]
    arrays = tfr.read_arrays(data / "sequence.tfrecord")
    assert len({len(array) for array in arrays.values()}) == 1


@pytest.mark.parametrize("name", ["bool", "complex64", "bfloat16", "U2", "S3", "datetime64[s]", "float16", "uint8"])
def test_feature_lists_of_tensors_keep_their_dtype(tmp_path: Path, engine: str, name: str) -> None:
    dtype = Dtype.of_name(name).dtype
    steps = np.array([[1, 0], [1, 1], [0, 1]]).astype(dtype)
    payloads = [sequence_example({}, {"x": [blobs(step.tobytes()) for step in row]}) for row in (steps, steps[::-1])]
    schema = {"x": tfr.sequence(tfr.tensor(name, (2,)))}
    path = written(tmp_path / "a.tfrecord", payloads)
    at_once = tfr.read_arrays(path, schema=schema)["x"]
    (batch,) = tfr.iter_arrays(path, batch_size=2, schema=schema, ragged="pad")
    for array in (at_once, batch["x"]):
        assert array.dtype == dtype
        assert np.array_equal(array, np.stack([steps, steps[::-1]]))


@pytest.mark.parametrize("name", ["bool", "complex64", "bfloat16", "U2", "S3", "datetime64[s]", "float16", "uint8"])
def test_feature_lists_of_tensors_of_several_shapes_keep_their_dtype(tmp_path: Path, engine: str, name: str) -> None:
    dtype = Dtype.of_name(name).dtype
    rows = [[np.ones((size, 2)).astype(dtype) for size in sizes] for sizes in ((1, 2), (), (3,))]
    payloads = [sequence_example({}, {"x": [blobs(step.tobytes()) for step in row]}) for row in rows]
    schema = {"x": tfr.sequence(tfr.tensor(name, (None, 2)))}
    path = written(tmp_path / "a.tfrecord", payloads)
    padded = tfr.read_arrays(path, schema=schema, ragged="pad")
    values, offsets = tfr.read_arrays(path, schema=schema, ragged="offsets")["x"]
    assert (padded["x"].dtype, padded["x"].shape, values.dtype) == (dtype, (3, 2, 3, 2), dtype)
    for row, steps in enumerate(rows):
        flat = np.concatenate([np.empty(0, dtype), *(step.reshape(-1) for step in steps)])
        assert np.array_equal(values[offsets[row] : offsets[row + 1]], flat)
        assert padded["x/length"][row] == len(steps)
        for at, step in enumerate(steps):
            assert np.array_equal(padded["x"][row, at, : len(step)], step)
            assert padded["x/shape"][row, at].tolist() == [len(step), 2]


@pytest.mark.parametrize("shape", [(2, 2), (4,), (1, 4), (2, 1, 2), (), (0, 3)])
def test_fixed_length_features_of_strings_have_the_shape_of_parse_example(
    tmp_path: Path, engine: str, shape: tuple[int, ...]
) -> None:
    size = int(np.prod(shape))
    values = [[f"{row}{i}".encode() for i in range(size)] for row in range(3)]
    payloads = [example(s=blobs(*row)) for row in values]
    description = {"s": tfr.io.FixedLenFeature(shape, "string")}
    expected = tfr.io.parse_example(payloads, description)["s"]
    path, schema = written(tmp_path / "a", payloads), tfr.Schema.from_feature_description(description)
    (batch,) = tfr.iter_arrays(path, batch_size=3, schema=schema)
    out = np.full((3, *shape), None, object)
    for array in (
        tfr.read_arrays(path, schema=schema)["s"],
        batch["s"],
        tfr.read_arrays(path, schema=schema, out={"s": out})["s"],
    ):
        assert array.shape == expected.shape == (3, *shape)
        assert array.tolist() == expected.tolist()


def test_declared_shapes_of_text_are_kept(tmp_path: Path, engine: str) -> None:
    rows = [[b"a", b"b", b"c", b"d"], [b"e", b"f"], None, []]
    payloads = [example() if row is None else example(s=blobs(*row)) for row in rows]
    schema = {"s": tfr.tensor("string", (None, 2))}
    path = written(tmp_path / "a", payloads)
    shapes = [None if row is None else row.shape for row in tfr.read_arrays(path, schema=schema)["s"]]
    assert shapes == [(2, 2), (1, 2), None, (0, 2)]
    padded = tfr.read_arrays(path, schema=schema, ragged="pad", missing="mask")
    assert padded["s/shape"].tolist() == [[2, 2], [1, 2], [0, 0], [0, 2]]
    assert padded["s"].data[0].tolist() == [["a", "b"], ["c", "d"]]
    even = written(tmp_path / "b", payloads[:1] * 3)
    (batch,) = tfr.iter_arrays(even, batch_size=3, schema=schema)
    assert [row.shape for row in batch["s"]] == [(2, 2)] * 3  # other batches may have other shapes
    (batch,) = tfr.iter_arrays(even, batch_size=3, schema={"s": tfr.tensor("string", (2, 2))})
    for array in (tfr.read_arrays(even, schema=schema)["s"], batch["s"]):
        assert array.tolist() == [[["a", "b"], ["c", "d"]]] * 3
    steps = [sequence_example({}, {"s": [blobs(b"a", b"b", b"c", b"d")] * n}) for n in (2, 2)]
    path = written(tmp_path / "c", steps)
    stacked = tfr.read_arrays(path, schema={"s": tfr.sequence(tfr.tensor("bytes", (2, 2)))})["s"]
    assert stacked.tolist() == [[[[b"a", b"b"], [b"c", b"d"]]] * 2] * 2


STEPS = st.lists(st.lists(st.integers(0, 2), max_size=3), min_size=1, max_size=4)


@given(rows=STEPS, part=st.integers(0, 4), raw=st.booleans(), engine=st.sampled_from(["native", "reference_engine"]))
def test_steps_of_one_shape_are_stacked(rows: list[list[int]], part: int, raw: bool, engine: str) -> None:
    """Of rows of steps of the shape [n, 2]: all in one array if n and the number of steps are the same throughout."""
    none = b"\x12\0"  # a FloatList without values
    cells = [[np.arange(n * 2, dtype="f4").reshape(n, 2) + i for i, n in enumerate(row)] for row in rows]
    feature = (lambda cell: blobs(cell.tobytes())) if raw else (lambda cell: floats(*cell.reshape(-1).tolist()) or none)
    payloads = [sequence_example({}, {"x": [feature(cell) for cell in row]}) for row in cells]
    schema = {"x": tfr.sequence(tfr.tensor("float32", (None, 2)), required=False)}
    with tempfile.TemporaryDirectory() as folder, engine_of(engine):
        files = [written(Path(folder) / name, some) for name, some in (("a", payloads[:part]), ("b", payloads[part:]))]
        got = tfr.read_arrays(files, schema=schema)["x"]
    sizes, lengths = {n for row in rows for n in row}, {len(row) for row in rows}
    if len(sizes) == 1 and len(lengths) == 1:
        assert (got.dtype, got.shape) == (np.float32, (len(rows), *lengths, *sizes, 2))
    else:
        assert got.dtype == object or not sizes
    if len(sizes) == 1:
        assert [row.shape for row in got] == [(len(row), *sizes, 2) for row in rows]
    for row, expected in zip(got, cells, strict=True):
        assert [step.tolist() for step in row] == [step.tolist() for step in expected]


def test_missing_rows_and_steps_of_equal_tensors(tmp_path: Path, engine: str) -> None:
    step = blobs(np.ones(2, "f4").tobytes())
    schema = {"x": tfr.sequence(tfr.tensor("float32", (None, 2)))}
    rows = [sequence_example({}, {"x": [step, step]}), sequence_example({}, {}), sequence_example({}, {"x": [step]})]
    path = written(tmp_path / "a", rows)
    shapes = [None if row is None else row.shape for row in tfr.read_arrays(path, schema=schema)["x"]]
    assert shapes == [(2, 1, 2), None, (1, 1, 2)]
    path = written(tmp_path / "b", [*rows[:2], rows[0]])
    masked = tfr.read_arrays(path, schema=schema, missing="mask")["x"]
    assert masked.shape == (3, 2, 1, 2)
    assert masked.mask.reshape(3, -1).all(axis=1).tolist() == [False, True, False]
    path = written(tmp_path / "c", [sequence_example({}, {"x": [step, b""]})] * 2)
    assert [step is None for row in tfr.read_arrays(path, schema=schema)["x"] for step in row] == [False, True] * 2


def test_a_null_in_a_list_is_an_item_of_it(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [[1], [1, None]]}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.DecodeError, match="record 1: feature 'x': an item of its list has no value"):
        tfr.read_arrays(tmp_path / "a.tfrecord")


@pytest.mark.fault(44)
@pytest.mark.parametrize(
    ("step", "item"), [(int64s(1), "int64"), (int64s(1), "bool"), (blobs(b"ab"), tfr.tensor("uint8", (2,)))]
)
def test_a_step_without_a_value_is_an_error(tmp_path: Path, engine: str, step: bytes, item: Any) -> None:
    payloads = [sequence_example({}, {"x": steps}) for steps in ([step], [], [step, step], [step, b"", step])]
    path = written(tmp_path / "a.tfrecord", payloads)
    schema = {"x": tfr.sequence(item)}
    for read in (
        tfr.read_arrays,
        lambda path, **keywords: list(read_by(tfr.iter_arrays, path, batch_size=2, **keywords)),
    ):
        with pytest.raises(tfr.errors.DecodeError, match=r"record 3: feature 'x': an item of its list has no value"):
            read(path, schema=schema, missing="mask")
    with pytest.warns(tfr.errors.StoppedEarlyWarning, match="record 3"):
        assert len(tfr.read_arrays(path, schema=schema, on_error="stop")["x"]) == 3
    with pytest.raises(tfr.errors.EncodeError, match=r"record 3: feature 'x': an item of its list has no value"):
        tfr.formats.write_npy(tfr.dataset(path, offset=0, schema=schema), tmp_path / "x.npy")


def test_a_truncated_file_is_an_error_or_stops_early(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    path.write_bytes(framed(example(x=int64s(1)), example(x=int64s(2)))[:-1])
    with pytest.raises(tfr.errors.TruncatedRecordError) as caught:
        tfr.read_arrays(path)
    assert caught.value.records_intact == 1
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.read_arrays(path, on_error="stop")["x"].tolist() == [1]


def test_arrays_can_be_written_to(data: Path) -> None:
    schema = {"image": tfr.tensor("float32", (28, 28, 1)), "label": tfr.tensor("float64", (10,))}
    arrays = tfr.read_arrays(data / "fashion.tfrecord", schema=schema)
    golden = np.load(data / "fashion.npz")
    for name, array in arrays.items():
        assert (array == golden[name]).all()
        array += 1
        assert (array == golden[name] + 1).all()


@given(
    rows=st.lists(st.none() | st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3), max_size=12),
    parts=st.integers(1, 3),
)
def test_all_representations_hold_the_same_values(rows: list[list[int] | None], parts: int) -> None:
    payloads = [example() if row is None else example(x=int64s(*row)) for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        paths = [
            written(Path(folder) / f"{i}", payloads[i * len(rows) // parts : (i + 1) * len(rows) // parts])
            for i in range(parts)
        ]
        schema = {"x": tfr.list_("int64", required=False)}
        expected = [None if row is None else row or [] for row in tfr.read_table(paths, schema=schema)["x"].to_pylist()]
        objects = tfr.read_arrays(paths, schema=schema, ragged="object")["x"]
        assert [None if row is None else row.tolist() for row in objects] == expected
        padded = tfr.read_arrays(paths, schema=schema, ragged="pad", missing="mask")
        lengths = padded["x/length"].tolist()
        mask = np.ma.getmaskarray(padded["x"])
        width = padded["x"].shape[1]
        cells = [row.tolist()[:n] for row, n in zip(padded["x"].data, lengths, strict=True)]
        got = [None if width and missing.all() else cell for cell, missing in zip(cells, mask, strict=True)]
        assert got == expected or not width
        if None not in expected:
            flat, offsets = tfr.read_arrays(paths, schema=schema, ragged="offsets")["x"]
            assert [flat[a:b].tolist() for a, b in pairwise(offsets)] == expected


def test_arrays_are_writable(tmp_path: Path, engine: str) -> None:
    """They are the caller's own, views of the decoded memory included."""
    path = tmp_path / "a.tfrecord"
    columns: dict[str, Any] = {"i": [1, 2], "f": [1.5, 2.5], "l": [[1, 2], [3, 4]], "r": [[1], [2, 3]]}
    columns |= {"b": [True, False], "s": ["x", "y"], "t": np.zeros((2, 3)), "at": np.array([1, 2], "M8[us]")}
    tfr.write_tfrecord(pa.table({"m": [1, None]}), path.with_name("m"))
    tfr.write_tfrecord(columns, path)
    arrays = tfr.read_arrays(path) | tfr.read_arrays(path.with_name("m"), missing="mask")
    for array in [*arrays.values(), *arrays["r"], *next(tfr.iter_arrays(path, batch_size=2)).values()]:
        assert array.flags.writeable
    arrays["i"][0] = 7
    assert arrays["i"].tolist() == [7, 2]
    assert tfr.read_arrays(path)["i"].tolist() == [1, 2]


def test_missing_numbers_are_zeros_under_the_mask(tmp_path: Path, engine: str) -> None:
    """Whether they are zeros in the decoded memory, or have to be made zeros after a cast."""
    tfr.write_tfrecord(pa.table({"x": [1, None, 3]}), tmp_path / "a")
    for schema in (None, {"x": pa.uint64()}, {"x": pa.timestamp("us")}):
        array = tfr.read_arrays(tmp_path / "a", missing="mask", schema=schema)["x"]
        assert np.ma.getmaskarray(array).tolist() == [False, True, False]
        assert array.data.view("i8")[1] == 0
