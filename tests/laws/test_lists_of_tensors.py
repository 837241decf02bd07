"""Lists of tensors of several shapes, and of lists: each form of arrays has what NumPy made, and their shapes.

A case draws the shapes (lists without a tensor, tensors without a value, missing lists), and which axes are of one
size by the type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from tfrecord_io.columns.schema.tensor_types import variable_shape_tensor
from tfrecord_io.typing import OpenedDataset

Array = np.ndarray[Any, Any]
Row = list[Array] | None
FILL = 250


class Case(NamedTuple):
    """Rows of lists of tensors, each value of which is another number."""

    rows: list[Row]
    axes: tuple[int | None, ...]  # of the type
    dtype: str
    as_lists: bool = False  # tensors of one axis are Arrow's lists

    def column(self) -> pa.Array:
        tensors = [tensor for row in self.rows for tensor in row or []]
        offsets = np.cumsum([0, *(len(row or []) for row in self.rows)])
        missing = pa.array([row is None for row in self.rows])
        number = pa.from_numpy_dtype(self.dtype)
        if self.as_lists:
            values = pa.array([tensor.tolist() for tensor in tensors], pa.list_(number))
        else:
            type_ = variable_shape_tensor(number, self.axes)
            cells = [{"data": tensor.reshape(-1).tolist(), "shape": [*tensor.shape]} for tensor in tensors]
            values = pa.ExtensionArray.from_storage(type_, pa.array(cells, type_.storage_type))
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=missing)

    def write(self, folder: Path) -> Path:
        path = folder / "lists.tfrecord"
        table = pa.table({"x": self.column(), "n": pa.array(np.arange(len(self.rows)))})
        tfr.write_tfrecord(table, path)
        assert tfr.read_table(path).schema.field("x").type == table.schema.field("x").type
        return path

    def write_first(self, folder: Path) -> Path:
        """A column of the first tensor of each list; null where there is none."""
        path = folder / "first.tfrecord"
        column = self.column()
        begins = zip(column.offsets.to_pylist(), self.rows, strict=False)
        firsts = pa.array([at if row else None for at, row in begins], pa.int64())
        tensors = pa.concat_arrays([column.values, pa.nulls(1, column.type.value_type)])
        if self.as_lists:
            first = tensors.take(firsts)
        else:
            storage = tensors.storage.take(firsts.fill_null(len(tensors) - 1))
            first = pa.ExtensionArray.from_storage(tensors.type, storage)
        tfr.write_tfrecord(pa.table({"x": first}), path)
        return path


@st.composite
def cases(draw: st.DrawFn, *, missing: bool = False) -> Case:
    axes = tuple(draw(st.lists(st.sampled_from([None, None, 1, 3]), min_size=1, max_size=3)))
    axes = axes if None in axes else (None, *axes[1:])
    dtype = draw(st.sampled_from(["int16", "float32", "uint8"]))
    shape = st.tuples(*(st.integers(0, 3) if axis is None else st.just(axis) for axis in axes))
    row = st.lists(shape, max_size=4)
    shapes = draw(st.lists(st.none() | row if missing else row, min_size=1, max_size=7))
    as_lists = len(axes) == 1 and draw(st.booleans())
    numbers = iter(range(1, 10_000))
    rows: list[Row] = [
        None
        if row is None
        else [np.array([next(numbers) for _ in range(int(np.prod(s)))], dtype).reshape(s) for s in row]
        for row in shapes
    ]
    return Case(rows, axes, dtype, as_lists)


def same(found: Any, expected: Array) -> bool:
    array = np.asarray(found)
    return (array.dtype, array.shape, array.tobytes()) == (expected.dtype, expected.shape, expected.tobytes())


def cut(row: list[Array], most: Any) -> list[Array]:
    if most is None:
        return row
    return row[-most[0] :] if isinstance(most, tuple) else row[:most]


def padded(rows: list[list[Array]], case: Case, length: Any) -> Array:
    """The rows in one array, by a plain loop."""
    longest = max(map(len, rows), default=0)
    longest = -(-longest // length[0]) * length[0] if isinstance(length, tuple) else length or longest
    sizes = [
        max((tensor.shape[axis] for row in rows for tensor in row), default=size or 0)
        for axis, size in enumerate(case.axes)
    ]
    expected = np.full((len(rows), longest, *sizes), FILL, case.dtype)
    for at, row in enumerate(rows):
        for step, tensor in enumerate(row):
            expected[(at, step, *map(slice, tensor.shape))] = tensor
    return expected


def check_padded(arrays: dict[str, Any], rows: list[list[Array]], case: Case, length: Any = None) -> None:
    expected = padded(rows, case, length)
    assert same(arrays["x"], expected)
    assert same(arrays["x/length"], np.array([*map(len, rows)], np.int64))
    shapes = np.zeros((*expected.shape[:2], len(case.axes)), np.int64)
    for at, row in enumerate(rows):
        shapes[at, : len(row)] = np.array([tensor.shape for tensor in row], np.int64).reshape(len(row), len(case.axes))
    assert same(arrays["x/shape"], shapes)


def check_offsets(arrays: dict[str, Any], rows: list[list[Array]]) -> None:
    (values, offsets), (shapes, steps) = arrays["x"], arrays["x/shape"]
    assert len(offsets) == len(steps) == len(rows) + 1
    for row, (begin, end), (first, last) in zip(rows, pairwise(offsets), pairwise(steps), strict=True):
        own = shapes[first:last]
        ends = begin + np.cumsum([0, *own.prod(axis=1)])
        assert ends[-1] == end
        tensors = [values[i:j].reshape(shape) for (i, j), shape in zip(pairwise(ends), own, strict=True)]
        assert len(tensors) == len(row)
        assert all(map(same, tensors, row))


def form(ragged: str) -> dict[str, Any]:
    return {"ragged": ragged, "pad_value": FILL} if ragged == "pad" else {"ragged": ragged}


def parts(rows: list[Any], size: int) -> Iterator[list[Any]]:
    for begin in range(0, len(rows), size):
        yield rows[begin : begin + size]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists")


lengths = st.none() | st.integers(1, 4) | st.tuples(st.integers(1, 4), st.just("left"))
pads = st.none() | st.integers(4, 6) | st.tuples(st.integers(1, 3), st.just("multiple"))


@given(case=cases(), batch_size=st.integers(1, 8), most=lengths, length=pads, alone=st.booleans())
def test_padded_lists_have_the_tensors(
    folder: Path, case: Case, batch_size: int, most: Any, length: Any, alone: bool
) -> None:
    path = case.write(folder)
    options: dict[str, Any] = {"ragged": "pad", "pad_value": FILL, "max_length": most, "pad_to": length}
    if alone:
        options = {name: {"x": value} for name, value in options.items()}
    rows = [cut(row or [], most) for row in case.rows]
    check_padded(tfr.read_arrays(path, **options), rows, case, length)
    batches = list(tfr.iter_arrays(path, batch_size=batch_size, **options))
    for batch, own in zip(batches, parts(rows, batch_size), strict=True):
        check_padded(batch, own, case, length)


@given(case=cases(), batch_size=st.integers(1, 8), most=lengths)
def test_offsets_have_the_tensors(folder: Path, case: Case, batch_size: int, most: Any) -> None:
    path = case.write(folder)
    rows = [cut(row or [], most) for row in case.rows]
    check_offsets(tfr.read_arrays(path, ragged="offsets", max_length=most), rows)
    batches = list(tfr.iter_arrays(path, batch_size=batch_size, ragged={"x": "offsets"}, max_length={"x": most}))
    for batch, own in zip(batches, parts(rows, batch_size), strict=True):
        check_offsets(batch, own)


@given(case=cases(missing=True), most=lengths, in_batches=st.booleans())
def test_objects_have_the_tensors(folder: Path, case: Case, most: Any, in_batches: bool) -> None:
    path = case.write(folder)
    if in_batches:
        found = [cell for b in tfr.iter_arrays(path, batch_size=2, max_length=most) for cell in b["x"]]
    else:
        found = [*tfr.read_arrays(path, max_length=most, missing="mask")["x"]]
    assert len(found) == len(case.rows)
    for cell, row in zip(found, case.rows, strict=True):
        if row is None:
            assert cell is None or np.ma.getmaskarray(cell).all() or all(tensor is None for tensor in cell)
        else:
            assert len(cell) == len(cut(row, most))
            assert all(map(same, cell, cut(row, most)))


@given(case=cases(missing=True), keep=st.sets(st.integers(0, 6)), ragged=st.sampled_from(["pad", "offsets"]))
def test_filters_leave_the_other_tensors(folder: Path, case: Case, keep: set[int], ragged: Any) -> None:
    keep = {at for at in keep if at < len(case.rows) and case.rows[at] is not None}
    arrays = read_by(tfr.read_arrays, case.write(folder), filters=[("n", "in", [*keep])], **form(ragged))
    rows = [case.rows[at] or [] for at in sorted(keep)]
    if ragged == "offsets":
        check_offsets(arrays, rows)
    else:
        check_padded(arrays, rows, case)


@given(case=cases(missing=True))
def test_masks_have_the_missing_lists(folder: Path, case: Case) -> None:
    arrays = tfr.read_arrays(case.write(folder), ragged="pad", missing="mask", pad_value=FILL)
    rows = [row or [] for row in case.rows]
    check_padded({**arrays, "x": np.ma.getdata(arrays["x"])}, rows, case)
    mask = np.ma.getmaskarray(arrays["x"])
    for at, row in enumerate(case.rows):
        assert (mask[at] == (row is None)).all()


@given(case=cases(), ragged=st.sampled_from(["pad", "offsets"]), at=st.integers(0, 6))
def test_rows_by_number_have_the_tensors(folder: Path, case: Case, ragged: Any, at: int) -> None:
    path = case.write(folder)
    shuffled = tfr.iter_arrays(path, batch_size=3, shuffle_buffer=4, seed=at, **form(ragged))
    for batch in shuffled:
        rows = [case.rows[n] or [] for n in batch["n"]]
        if ragged == "offsets":
            check_offsets(batch, rows)
        else:
            check_padded(batch, rows, case)


@given(case=cases(), sizes=st.sampled_from([[1, 4], [4], [2, 3, 6]]))
def test_buckets_have_the_tensors(folder: Path, case: Case, sizes: list[int]) -> None:
    path, found = case.write(folder), []
    batches = tfr.iter_arrays(path, batch_size=2, bucket_by="x", bucket_sizes=sizes, ragged="pad", pad_value=FILL)
    for batch in batches:
        rows = [case.rows[n] or [] for n in batch["n"]]
        length = min(size for size in sizes if size >= max(map(len, rows)))
        check_padded(batch, rows, case, length)
        found += batch["n"].tolist()
    assert sorted(found) == [*range(len(case.rows))]


@given(case=cases(), room=st.integers(0, 2))
def test_arrays_of_the_caller_are_filled(folder: Path, case: Case, room: int) -> None:
    rows = [row or [] for row in case.rows]
    expected = padded(rows, case, None)
    sizes = [
        expected.shape[1] + room,
        *(s + (room if axis is None else 0) for s, axis in zip(expected.shape[2:], case.axes, strict=True)),
    ]
    out = {
        "x": np.zeros((len(rows), *sizes), case.dtype),
        "x/length": np.zeros(len(rows), np.int64),
        "x/shape": np.zeros((len(rows), sizes[0], len(case.axes)), np.int64),
    }
    found = tfr.read_arrays(case.write(folder), ragged="pad", pad_value=FILL, out=out)
    assert found["x"] is out["x"]
    whole = np.full_like(out["x"], FILL)
    whole[tuple(map(slice, expected.shape))] = expected
    assert same(out["x"], whole)
    assert same(out["x/length"], np.array([*map(len, rows)], np.int64))
    for at, row in enumerate(rows):
        assert out["x/shape"][at, : len(row)].tolist() == [[*tensor.shape] for tensor in row]
        assert not out["x/shape"][at, len(row) :].any()


# ---- damage


def damage(path: Path, record: int) -> None:
    """Flip a bit in the payload of a record."""
    content = bytearray(path.read_bytes())
    begin = 0
    for _ in range(record):
        begin += 16 + int.from_bytes(content[begin : begin + 8], "little")
    content[begin + 12] ^= 1
    path.write_bytes(content)


@pytest.mark.filterwarnings("ignore::UserWarning")
@given(
    case=cases(missing=True),
    at=st.integers(0, 6),
    on_error=st.sampled_from(["skip", "stop"]),
    ragged=st.sampled_from(["pad", "offsets"]),
    batch_size=st.none() | st.integers(1, 8),
)
def test_damaged_and_missing_lists_are_left_out(
    folder: Path, case: Case, at: int, on_error: Any, ragged: Any, batch_size: int | None
) -> None:
    path = case.write(folder)
    schema = tfr.read_table(path).schema
    at = min(at, len(case.rows) - 1)
    damage(path, at)
    kept = [n for n, row in enumerate(case.rows) if row is not None and n != at]
    if on_error == "stop":
        end = next(n for n in range(len(case.rows) + 1) if n == len(case.rows) or n not in kept)
        kept = [n for n in kept if n < end]
    options: dict[str, Any] = {"on_error": on_error, "schema": schema, **form(ragged)}
    if batch_size is None:
        batches = [tfr.read_arrays(path, **options)]
    else:
        batches = list(read_by(tfr.iter_arrays, path, batch_size=batch_size, **options))
    assert [n for batch in batches for n in batch["n"]] == kept
    for batch in batches:
        rows = [case.rows[n] or [] for n in batch["n"]]
        if ragged == "offsets":
            check_offsets(batch, rows)
        else:
            check_padded(batch, rows, case)


# ---- what has no such form


LISTS = Case([[np.ones((1, 3), "uint8")], [np.ones((2, 3), "uint8")] * 3], (None, 3), "uint8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pack": {"x": 4}}, r"pack={'x': 4} cannot represent lists of arrays of several shapes; .*resize="),
        ({"ragged": "pad", "pad_to": 2}, r"record 1: feature 'x': it has 3 values, but pad_to=2 has room for 2"),
        ({"ragged": "pad", "pad_value": 256}, "cannot pad uint8 with 256"),
    ],
)
def test_forms_without_room_are_refused(folder: Path, options: Any, message: str) -> None:
    path = LISTS.write(folder)
    with pytest.raises(tfr.errors.SchemaError, match=message):
        list(read_by(tfr.iter_arrays, path, batch_size=2, columns="x", **options))


def write_missing_tensor(folder: Path) -> Path:
    """Two rows, of which the second has a step without a value."""
    lists, path = LISTS.column(), folder / "missing.tfrecord"
    values = pa.concat_arrays([lists.values, pa.nulls(1, lists.type.value_type)])
    table = pa.table({"x": pa.ListArray.from_arrays(pa.array([0, 1, 5], pa.int32()), values)})
    tfr.write_tfrecord(table, path, record_type="sequence_example")
    return path


@pytest.mark.parametrize("ragged", ["pad", "offsets"])
def test_a_list_without_a_tensor_is_an_error(folder: Path, ragged: Any) -> None:
    path = write_missing_tensor(folder)
    assert tfr.read_arrays(path)["x"][1][3] is None
    with pytest.raises(
        tfr.errors.DecodeError, match="record 1: feature 'x': an item of its list has no value"
    ) as caught:
        tfr.read_arrays(path, ragged=ragged, missing="mask" if ragged == "pad" else "error")
    assert caught.value.record == 1
    kept = read_by(tfr.read_arrays, path, ragged=ragged, on_error="stop")
    assert len(kept["x"] if ragged == "pad" else kept["x"][1]) == (1 if ragged == "pad" else 2)


@pytest.mark.fault(71)
@pytest.mark.parametrize("options", [{}, {"pad_to": {"x": 3}}])
def test_padding_beyond_the_room_is_refused(folder: Path, options: Any) -> None:
    """Tensors without a value, one of which is long and one wide, would be padded to terabytes."""
    rows: list[Row] = [[np.zeros((10**6, 0), "uint8"), np.zeros((0, 10**6), "uint8")]]
    path = Case(rows, (None, None), "uint8").write(folder)
    with pytest.raises(tfr.errors.DecodeError, match="the arrays of 1 rows, padded to the longest") as caught:
        tfr.read_arrays(path, ragged="pad", **options)
    assert caught.value.record == 0


@pytest.mark.fault(71)
def test_tensors_that_are_padded_to_a_length_have_room_for_the_other_axes(folder: Path) -> None:
    path = folder / "wide.tfrecord"
    tensors = [np.zeros((10**6, 0), "uint8"), np.zeros((0, 10**6), "uint8")]
    tfr.write_tfrecord({"x": tensors}, path)
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1: .*the arrays of 2 rows, padded to the longest"):
        tfr.read_arrays(path, ragged="pad", max_length=3, pad_to=10**6)


# ---- TensorFlow


@given(
    case=cases(missing=True), batch_size=st.integers(1, 8), most=lengths, drop_last=st.booleans(), lists=st.booleans()
)
def test_tensorflow_has_ragged_tensors(
    folder: Path, case: Case, batch_size: int, most: Any, drop_last: bool, lists: bool
) -> None:
    """Of lists of tensors, and of the first tensor of each list."""
    tf = pytest.importorskip("tensorflow")
    rows: list[Any] = [None if row is None else cut(row, most) for row in case.rows]
    empty = np.empty([size or 0 for size in case.axes], case.dtype).tolist()
    if lists:
        path, options = case.write(folder), {"max_length": most}
        expected = [[tensor.tolist() for tensor in row or []] for row in rows]
        axes: list[int | None] = [None, *case.axes]
    else:
        path, options = case.write_first(folder), {}
        rows = [row[0] if row else None for row in case.rows]
        expected = [empty if tensor is None else tensor.tolist() for tensor in rows]
        axes = [*case.axes]
    dataset = tfr.dataset(path).to_tf(batch_size=batch_size, drop_last=drop_last, missing="mask", **options)
    spec = dataset.element_spec["x"]
    assert spec.shape.as_list() == [batch_size if drop_last else None, *axes]
    assert spec.ragged_rank == len(axes) - axes[::-1].index(None)
    found, missing = [], []
    for batch in dataset:
        assert spec.is_compatible_with(batch["x"])
        assert batch["x"].dtype == tf.as_dtype(case.dtype)
        found += batch["x"].to_list()
        missing += batch["x/mask"].numpy().tolist()
    kept = len(rows) // batch_size * batch_size if drop_last else len(rows)
    assert found == expected[:kept]
    assert missing == [row is None for row in rows[:kept]]


@given(case=cases(), batch_size=st.integers(1, 8), length=pads, ragged=st.sampled_from(["pad", "offsets"]))
def test_tensorflow_has_the_other_forms(folder: Path, case: Case, batch_size: int, length: Any, ragged: Any) -> None:
    pytest.importorskip("tensorflow")
    rows = [row or [] for row in case.rows]
    options: dict[str, Any] = {"ragged": ragged}
    if ragged == "pad":
        options |= {"pad_value": FILL, "pad_to": length}
    dataset = tfr.dataset(case.write(folder)).to_tf(batch_size=batch_size, **options)
    for batch, own in zip(dataset, parts(rows, batch_size), strict=True):
        for name, spec in dataset.element_spec.items():
            assert spec.is_compatible_with(batch[name]), name
        if ragged == "pad":
            check_padded({name: tensor.numpy() for name, tensor in batch.items()}, own, case, length)
            continue
        pairs = {name: (batch[name].flat_values.numpy(), batch[name].row_splits.numpy()) for name in ("x", "x/shape")}
        check_offsets(pairs, own)


def test_tensorflow_refuses_a_list_without_a_tensor(folder: Path) -> None:
    pytest.importorskip("tensorflow")
    dataset = tfr.dataset(write_missing_tensor(folder)).to_tf(batch_size=1)
    with pytest.raises(Exception, match="'x': an item of its list: a record has no value, and a tensor cannot mark"):
        list(dataset)


# ---- readers and libraries without such forms


def tensors(*shapes: Any) -> list[Array]:
    numbers = iter(range(1, 1000))
    return [np.array([next(numbers) for _ in range(int(np.prod(s)))], "int16").reshape(s) for s in shapes]


MIXED = {
    "frames": Case(
        [tensors((2, 4, 3), (1, 2, 3)), [], tensors((0, 5, 3)), tensors((3, 1, 3))], (None, None, 3), "int16"
    ),
    "channels first": Case([tensors((3, 1, 2)), tensors((3, 2, 2), (3, 1, 1)), []], (3, None, None), "int16"),
    "vectors": Case([tensors((2,), (3,), (0,)), [], tensors((1,))], (None,), "int16"),
    "lists": Case([tensors((2,), (3,), (0,)), [], tensors((1,))], (None,), "int16", as_lists=True),
}


def values_of(cell: Any, shape: tuple[int, ...]) -> Array:
    """A tensor in a cell of a library: an array, values and shape, or lists."""
    if isinstance(cell, dict):
        assert [*cell["shape"]] == [*shape]
        cell = cell["data"]
    array = np.asarray(cell)
    return array.astype("int16") if array.shape == shape else array.astype("int16").reshape(shape)


def check_cells(case: Case, cells: Iterable[Any]) -> None:
    found = [[*cell] for cell in cells]
    assert [*map(len, found)] == [len(row or []) for row in case.rows]
    for cell, row in zip(found, case.rows, strict=True):
        for item, tensor in zip(cell, row or [], strict=True):
            assert same(values_of(item, tensor.shape), tensor)


def of_table(dataset: OpenedDataset) -> list[Any]:
    return tfr.read_table(dataset)["x"].to_pylist()


def of_arrays(dataset: OpenedDataset) -> list[Any]:
    return [*tfr.read_arrays(dataset)["x"]]


def of_pandas(dataset: OpenedDataset) -> list[Any]:
    return [*tfr.read_tfrecord(dataset)["x"]]


def of_random_access(dataset: OpenedDataset) -> list[Any]:
    rows = tfr.open_random(dataset)
    return [rows[row]["x"] for row in range(len(rows))]


def of_filter(dataset: OpenedDataset) -> list[Any]:
    return of_arrays(dataset.filter("n >= 0"))


def of_polars(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("polars")
    return dataset.to_polars().collect()["x"].to_list()


def of_duckdb(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("duckdb")
    return [row[0] for row in dataset.to_duckdb().order("n").select("x").fetchall()]


def of_torch(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("torch")
    return [cell for batch in dataset.to_torch(batch_size=2) for cell in batch["x"]]


def of_torch_map(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("torch")
    rows = dataset.to_torch_map()
    return [rows[row]["x"] for row in range(len(rows))]


def of_hf(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("datasets")
    return [row["x"] for row in dataset.to_hf(streaming=True)]


def of_hf_table(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("datasets")
    return [row["x"] for row in dataset.to_hf(streaming=False)]


def of_grain(dataset: OpenedDataset) -> list[Any]:
    pytest.importorskip("grain")
    rows = dataset.to_grain()
    return [rows[row]["x"] for row in range(len(rows))]


READERS = [
    *(of_table, of_arrays, of_pandas, of_random_access, of_filter),
    *(of_polars, of_duckdb, of_torch, of_torch_map, of_hf, of_hf_table, of_grain),
]


@pytest.mark.parametrize("name", MIXED)
@pytest.mark.parametrize("read", READERS)
def test_readers_have_the_tensors(tmp_path: Path, name: str, read: Callable[[OpenedDataset], list[Any]]) -> None:
    case = MIXED[name]
    check_cells(case, read(tfr.dataset(case.write(tmp_path))))


@pytest.mark.parametrize("name", MIXED)
def test_torch_has_the_forms(tmp_path: Path, name: str) -> None:
    pytest.importorskip("torch")
    case = MIXED[name]
    dataset = tfr.dataset(case.write(tmp_path))
    rows = [row or [] for row in case.rows]
    for batch, own in zip(dataset.to_torch(batch_size=2, ragged="pad", pad_value=FILL), parts(rows, 2), strict=True):
        check_padded({name: tensor.numpy() for name, tensor in batch.items()}, own, case)
    for batch, own in zip(dataset.to_torch(batch_size=2, ragged="offsets"), parts(rows, 2), strict=True):
        pairs = {name: tuple(part.numpy() for part in batch[name]) for name in ("x", "x/shape")}
        check_offsets(pairs, own)


@pytest.mark.parametrize("name", MIXED)
def test_grain_has_buckets(tmp_path: Path, name: str) -> None:
    pytest.importorskip("grain")
    case, sizes = MIXED[name], [1, 3]
    dataset = tfr.dataset(case.write(tmp_path))
    batches = dataset.to_grain(batch_size=2, bucket_by="x", bucket_sizes=sizes, pad_value=FILL)
    found = []
    for batch in map(batches.__getitem__, range(len(batches))):
        rows = [case.rows[n] or [] for n in batch["n"]]
        check_padded(batch, rows, case, next(size for size in sizes if size >= max(map(len, rows))))
        found += batch["n"].tolist()
    assert sorted(found) == [*range(len(case.rows))]
