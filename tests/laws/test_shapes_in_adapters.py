"""Arrays whose shape is stored in other features: each reader and adapter has the arrays that NumPy made.

A case crosses the names of the sizes, sizes that are the same or vary, Example and SequenceExample, the order of the
axes, and the size of a number. Libraries without arrays have flat values, of which the test knows the shape.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.train import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    Int64List,
    SequenceExample,
)
from tfrecord_io.typing import OpenedDataset

Array = np.ndarray[Any, Any]
ROWS = 5


class Case(NamedTuple):
    names: str  # of the sizes: "three", "two" beside a number, or "one" with all
    varies: bool
    in_steps: bool  # of a SequenceExample
    layout: str
    dtype: str

    @property
    def axes(self) -> tuple[str, ...]:
        return ("height", "width", "depth") if self.layout == "HWC" else ("depth", "height", "width")

    def schema(self) -> dict[str, Any]:
        shape: Any = {
            "three": self.axes,
            "two": tuple(3 if axis == "depth" else axis for axis in self.axes),
            "one": "image/shape",
        }[self.names]
        array = tfr.tensor(self.dtype, shape)
        return {"image": tfr.sequence(array) if self.in_steps else array, "label": "int64"}

    def rows(self) -> list[list[Array]]:
        """The arrays of each record: of an Example one."""
        rng = np.random.default_rng(0)
        rows = []
        for row in range(ROWS):
            sizes = {"height": 4 + row if self.varies else 4, "width": 5, "depth": 3}
            count = 1 if not self.in_steps else 1 + row % 3 if self.varies else 2
            shape = [sizes[axis] for axis in self.axes]
            rows.append([rng.integers(0, 200, shape).astype(self.dtype) for _ in range(count)])
        return rows

    def record(self, label: int, arrays: Sequence[Array]) -> bytes:
        sizes = dict(zip(self.axes, arrays[0].shape, strict=True))
        if self.names == "two":
            del sizes["depth"]
        stated = {"image/shape": [*arrays[0].shape]} if self.names == "one" else {n: [s] for n, s in sizes.items()}
        features = {name: Feature(int64_list=Int64List(value=value)) for name, value in stated.items()}
        features["label"] = Feature(int64_list=Int64List(value=[label]))
        images = [Feature(bytes_list=BytesList(value=[array.tobytes()])) for array in arrays]
        if not self.in_steps:
            return Example(features=Features(feature=features | {"image": images[0]})).SerializeToString()
        steps = FeatureLists(feature_list={"image": FeatureList(feature=images)})
        return SequenceExample(context=Features(feature=features), feature_lists=steps).SerializeToString()

    def dataset(self, folder: Path) -> OpenedDataset:
        with tfr.RecordWriter(folder / "a.tfrecord") as writer:
            for label, arrays in enumerate(self.rows()):
                writer.write(self.record(label, arrays))
        return tfr.dataset(folder / "a.tfrecord", schema=self.schema(), sample="all")

    def check(self, found: Iterable[Any], *, has_dtype: bool = True) -> None:
        """Compare the cells of all rows with the arrays."""
        cells = [[*cell] if self.in_steps else [cell] for cell in found]
        rows = self.rows()
        assert [*map(len, cells)] == [*map(len, rows)]
        for row, cell in zip(rows, cells, strict=True):
            for expected, own in zip(row, cell, strict=True):
                array = as_array(own, expected.shape)
                assert not has_dtype or array.dtype == expected.dtype
                np.testing.assert_array_equal(array, expected)


def as_array(value: Any, shape: tuple[int, ...]) -> Array:
    """The array in a cell of a library: an array, its data and shape, or values of this shape."""
    if isinstance(value, dict):
        return np.asarray(value["data"]).reshape(value["shape"])
    array = np.asarray(value)
    return array.reshape(shape) if array.ndim == 1 else array


pytestmark = [
    pytest.mark.parametrize("names", ["three", "two", "one"]),
    pytest.mark.parametrize("varies", [False, True], ids=["uniform", "varying"]),
    pytest.mark.parametrize("in_steps", [False, True], ids=["example", "steps"]),
    pytest.mark.parametrize("layout", ["HWC", "CHW"]),
    pytest.mark.parametrize("dtype", ["uint8", "uint16"]),
]


@pytest.fixture
def case(names: str, varies: bool, in_steps: bool, layout: str, dtype: str) -> Case:
    return Case(names, varies, in_steps, layout, dtype)


def of_table(dataset: OpenedDataset) -> list[Any]:
    """The cells of Arrow's arrays, whose values are flat."""

    def cell(scalar: Any) -> Any:
        value = scalar.value if isinstance(scalar, pa.ExtensionScalar) else scalar
        if isinstance(value, pa.StructScalar):
            return {"data": values_of(value["data"]), "shape": value["shape"].as_py()}
        is_list_of_tensors = isinstance(value.type.value_type, pa.BaseExtensionType)
        return [cell(each) for each in value.values] if is_list_of_tensors else values_of(value)

    def values_of(scalar: Any) -> Array:
        return scalar.values.to_numpy()

    return [cell(scalar) for scalar in tfr.read_table(dataset)["image"]]


def of_arrays(dataset: OpenedDataset) -> list[Any]:
    return [*tfr.read_arrays(dataset)["image"]]


def of_batches(dataset: OpenedDataset) -> list[Any]:
    return [cell for batch in dataset.iter_arrays(batch_size=2) for cell in batch["image"]]


def of_shuffled_batches(dataset: OpenedDataset) -> list[Any]:
    batches = [*dataset.iter_arrays(batch_size=2, shuffle_buffer=3, seed=0)]
    labels = np.concatenate([batch["label"] for batch in batches])
    cells = [cell for batch in batches for cell in batch["image"]]
    return [cells[at] for at in np.argsort(labels)]


def of_pandas(dataset: OpenedDataset) -> list[Any]:
    return [*tfr.read_tfrecord(dataset)["image"]]


def of_random_access(dataset: OpenedDataset) -> list[Any]:
    records = tfr.open_random(dataset)
    return [records[row]["image"] for row in range(len(records))]


def of_selection(dataset: OpenedDataset) -> list[Any]:
    return of_pandas(dataset.select(["image"]))


def of_filter(dataset: OpenedDataset) -> list[Any]:
    return of_pandas(dataset.filter("label >= 0"))


READERS = [
    *(of_table, of_arrays, of_batches, of_shuffled_batches, of_pandas, of_random_access),
    *(of_selection, of_filter),
]


@pytest.mark.parametrize("read", READERS)
def test_readers_have_the_arrays(case: Case, tmp_path: Path, read: Callable[[OpenedDataset], list[Any]]) -> None:
    case.check(read(case.dataset(tmp_path)))


def test_a_saved_schema_has_the_arrays(case: Case, tmp_path: Path) -> None:
    (path,) = case.dataset(tmp_path).files
    tfr.Schema(case.schema()).save(path)
    case.check(tfr.read_arrays(tfr.dataset(path, sample="all"))["image"])


@pytest.mark.parametrize("ragged", ["pad", "offsets"])
def test_layouts_of_arrays_have_the_values(case: Case, tmp_path: Path, ragged: Any) -> None:
    dataset = case.dataset(tmp_path)
    arrays = tfr.read_arrays(dataset, ragged=ragged)
    image = arrays["image"]
    if case.varies and case.in_steps:
        case.check(lists_in_layout(arrays, ragged))
    elif not case.varies and not case.in_steps:
        case.check(image)
    elif case.in_steps:
        values, offsets = image if ragged == "offsets" else (image.reshape(-1, *image.shape[2:]), None)
        ends = np.arange(ROWS + 1) * 2 if offsets is None else offsets
        case.check([values[ends[row] : ends[row + 1]] for row in range(ROWS)])
    elif ragged == "pad":
        shapes = arrays["image/shape"]
        case.check([image[row][tuple(map(slice, shapes[row]))] for row in range(ROWS)])
    else:
        values, offsets = image
        shapes = arrays["image/shape"]
        case.check([values[offsets[row] : offsets[row + 1]].reshape(shapes[row]) for row in range(ROWS)])


def lists_in_layout(arrays: dict[str, Any], ragged: str) -> list[list[Array]]:
    """The frames of each row, of arrays that are padded, or values and offsets."""
    image, shapes = arrays["image"], arrays["image/shape"]
    if ragged == "pad":
        lengths = arrays["image/length"]
        return [
            [image[row, step][tuple(map(slice, shapes[row, step]))] for step in range(lengths[row])]
            for row in range(len(image))
        ]
    (values, offsets), (shapes, steps) = image, shapes
    rows = []
    for row, begin in enumerate(offsets[:-1]):
        own = shapes[steps[row] : steps[row + 1]]
        ends = begin + np.cumsum([0, *own.prod(axis=1)])
        rows.append([values[i:j].reshape(shape) for i, j, shape in zip(ends[:-1], ends[1:], own, strict=True)])
    return rows


def test_polars_has_the_values(case: Case, tmp_path: Path) -> None:
    pl = pytest.importorskip("polars")
    dataset = case.dataset(tmp_path)
    for frame in (dataset.to_polars(), dataset.to_polars().filter(pl.col("label") >= 0)):
        case.check(frame.collect()["image"].to_list(), has_dtype=False)


def test_duckdb_has_the_values(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    relation = case.dataset(tmp_path).to_duckdb()
    case.check([row[0] for row in relation.order("label").select("image").fetchall()], has_dtype=False)


def test_torch_has_the_arrays(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    dataset = case.dataset(tmp_path)
    case.check([cell for batch in dataset.to_torch(batch_size=2) for cell in batch["image"]])
    rows = dataset.to_torch_map()
    case.check([rows[row]["image"] for row in range(len(rows))])


def test_tf_has_the_arrays(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("tensorflow")
    dataset = case.dataset(tmp_path)
    if not case.varies:
        cells = [cell for batch in dataset.to_tf(batch_size=2) for cell in batch["image"]]
        case.check([cell.numpy() for cell in cells])
        return
    whole = dataset.to_tf(batch_size=2)
    axes = [{"height": None, "width": 5, "depth": 3}[axis] for axis in case.axes]
    assert whole.element_spec["image"].shape.as_list() == [None, *([None] if case.in_steps else []), *axes]
    rows = [row for batch in whole for row in batch["image"].to_list()]
    assert rows == [[array.tolist() for array in row] if case.in_steps else row[0].tolist() for row in case.rows()]
    padded = [frames for batch in dataset.to_tf(batch_size=2, ragged="pad") for frames in unpadded(batch, case)]
    case.check(padded)
    offsets = [*dataset.to_tf(batch_size=2, ragged="offsets")]
    pairs = [pair for batch in offsets for pair in zip(batch["image"], batch["image/shape"], strict=True)]
    if not case.in_steps:
        case.check([values.numpy().reshape(shape.numpy()) for values, shape in pairs])
        return
    frames = [np.split(values.numpy(), np.cumsum(shapes.numpy().prod(axis=1))[:-1]) for values, shapes in pairs]
    shapes = [shapes.numpy() for _, shapes in pairs]
    case.check([list(map(np.reshape, row, own)) for row, own in zip(frames, shapes, strict=True)])


def unpadded(batch: dict[str, Any], case: Case) -> list[Any]:
    """The arrays of the rows of a batch that was padded."""
    arrays = {name: tensor.numpy() for name, tensor in batch.items()}
    if case.in_steps:
        return lists_in_layout(arrays, "pad")
    pairs = zip(arrays["image"], arrays["image/shape"], strict=True)
    return [image[tuple(map(slice, shape))] for image, shape in pairs]


@pytest.mark.parametrize("streaming", [True, False])
def test_hf_has_the_arrays(case: Case, tmp_path: Path, streaming: bool) -> None:
    pytest.importorskip("datasets")
    rows = case.dataset(tmp_path).to_hf(streaming=streaming)
    case.check([row["image"] for row in rows], has_dtype=False)


def test_grain_has_the_arrays(case: Case, tmp_path: Path) -> None:
    pytest.importorskip("grain")
    rows = case.dataset(tmp_path).to_grain()
    case.check([rows[row]["image"] for row in range(len(rows))])


def test_grain_and_jax_have_the_arrays(case: Case, tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    batches = case.dataset(tmp_path).iter_arrays(batch_size=2)
    arrays = (batch["image"] for batch in batches)
    case.check([cell for array in arrays for cell in (array if array.dtype == object else jax.numpy.asarray(array))])
