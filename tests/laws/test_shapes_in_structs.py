"""Arrays in structs whose shape is stored in other features: adapters treat them as those whose shapes are companions.

The same table is written by this library. What an adapter makes of it, or the error by which it refuses it, is what it
makes of the records of another program. tests/laws/test_shapes_from_features.py compares the readers with NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from arrow_tables import without_metadata
from records import written
from tfrecord_io.typing import OpenedDataset

SIZES = {"uniform": [(2, 3), (2, 3), (2, 3)], "varying": [(2, 3), (1, 4), (3, 3)]}
IMAGE = tfr.tensor("uint8", ("x/height", "x/width"))
FIELDS = {"image": IMAGE, "label": "int64"}
PLACES: dict[str, Any] = {"struct": FIELDS, "nested": {"image": IMAGE, "inner": FIELDS}, "list": tfr.list_(FIELDS)}


def of_library(name: str, make: Callable[[OpenedDataset], Any]) -> Any:
    """An adapter of a library, which a test skips where it is not installed."""

    def adapt(dataset: OpenedDataset) -> Any:
        pytest.importorskip(name)
        return make(dataset)

    return pytest.param(adapt, id=name)


ADAPTERS = [
    tfr.read_table,
    tfr.read_tfrecord,
    tfr.read_arrays,
    lambda dataset: tfr.read_arrays(dataset, ragged="pad"),
    lambda dataset: tfr.read_arrays(dataset, ragged="offsets"),
    lambda dataset: list(dataset.iter_arrays(batch_size=2)),
    lambda dataset: list(dataset.iter_arrays(batch_size=2, shuffle_buffer=3, seed=0)),
    lambda dataset: list(tfr.open_random(dataset)),
    lambda dataset: str(tfr.describe(dataset)),
    of_library("polars", lambda dataset: dataset.to_polars().collect().to_dict(as_series=False)),
    of_library("duckdb", lambda dataset: dataset.to_duckdb().fetchall()),
    of_library("dask", lambda dataset: dataset.to_dask().compute()),
    of_library("xarray", lambda dataset: dataset.to_xarray().to_dict()),
    of_library("torch", lambda dataset: [list(dataset.to_torch(batch_size=2)), list(dataset.to_torch_map())]),
    of_library("tensorflow", lambda dataset: list(dataset.to_tf(batch_size=2))),
    of_library("datasets", lambda dataset: [list(dataset.to_hf(streaming=True)), list(dataset.to_hf())]),
    of_library("grain", lambda dataset: list(dataset.to_grain())),
]


def record(place: str, row: int, size: tuple[int, int]) -> bytes:
    height, width = size
    image = np.arange(height * width, dtype=np.uint8) + row
    if place == "list":
        images = {"x/image": [image.tobytes(), image.tobytes()], "x/height": [height] * 2, "x/width": [width] * 2}
        return tfr.encode_example({**images, "x/label": [row, 7], "n": row})
    sizes = {"x/image": image.tobytes(), "x/height": height, "x/width": width}
    if place == "nested":
        return tfr.encode_example({**sizes, "x/inner/image": image.tobytes(), "x/inner/label": row, "n": row})
    return tfr.encode_example({**sizes, "x/label": row, "n": row})


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=SIZES)
def sizes(request: pytest.FixtureRequest) -> list[tuple[int, int]]:
    return SIZES[request.param]


@pytest.fixture
def stated(tmp_path: Path, place: str, sizes: list[tuple[int, int]]) -> OpenedDataset:
    """The records of another program."""
    path = written(tmp_path / "stated", (record(place, row, size) for row, size in enumerate(sizes)))
    return tfr.dataset(path, schema={"x": PLACES[place], "n": "int64"}, sample="all")


@pytest.fixture
def own(tmp_path: Path, stated: OpenedDataset) -> OpenedDataset:
    """The same table as this library writes it, with companions."""
    tfr.write_tfrecord(without_metadata(tfr.read_table(stated)), tmp_path / "own")
    return tfr.dataset(tmp_path / "own")


def plain(value: Any) -> Any:
    """A value as lists and dicts, with the dtypes of arrays."""
    if isinstance(value, pa.Table):
        return [str(field.type) for field in value.schema], value.to_pylist()
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a DataFrame
        return plain(value.to_dict("list"))
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return str(value.dtype), value.tolist()
    if hasattr(value, "to_list"):  # a RaggedTensor
        return value.to_list()
    if hasattr(value, "dtype") and hasattr(value, "shape") and not isinstance(value, np.ndarray):
        return plain(np.asarray(value))
    return [plain(item) for item in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


def outcome(adapt: Callable[[OpenedDataset], Any], dataset: OpenedDataset) -> Any:
    """What an adapter makes of a dataset, or the reason why it refuses it."""
    try:
        return plain(adapt(dataset))
    except tfr.errors.TFRecordError as error:
        return type(error), error.reason


@pytest.mark.parametrize("adapt", ADAPTERS)
def test_adapters_treat_them_as_those_with_companions(
    stated: OpenedDataset, own: OpenedDataset, adapt: Callable[[OpenedDataset], Any]
) -> None:
    assert outcome(adapt, stated) == outcome(adapt, own)


def test_other_formats_have_the_same_content(stated: OpenedDataset, own: OpenedDataset, tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.parquet", "a.arrow"):
        contents = []
        for dataset in (stated, own):
            tfr.convert(dataset, tmp_path / name, mode="overwrite")
            if name == "a.jsonl":
                contents.append([json.loads(line) for line in (tmp_path / name).read_text().splitlines()])
            else:
                contents.append(outcome(tfr.read_table, tfr.dataset(tmp_path / name)))
        assert contents[0] == contents[1]


def test_tables_that_were_read_are_appended(stated: OpenedDataset, tmp_path: Path) -> None:
    """Those of the other program, and those that this library wrote of them."""
    table = tfr.read_table(stated)
    tfr.write_tfrecord(table, tmp_path / "set", shards=1)
    tfr.write_tfrecord(table, tmp_path / "set", mode="append")
    tfr.write_tfrecord(tfr.read_table(tmp_path / "set"), tmp_path / "set", mode="append")
    assert tfr.read_table(tmp_path / "set").equals(pa.concat_tables([table] * 4))


def test_an_index_finds_rows(stated: OpenedDataset) -> None:
    expected = [row for row in tfr.read_table(stated).to_pylist() if row["n"] == 1]
    tfr.build_index(stated, columns=["n"])
    for dataset in (stated.filter("n == 1"), tfr.dataset(stated).filter("n == 1")):
        assert tfr.read_table(dataset).to_pylist() == expected


def test_a_saved_schema_has_the_arrays(stated: OpenedDataset, place: str) -> None:
    table = tfr.read_table(stated)
    (path,) = stated.files
    tfr.Schema({"x": PLACES[place], "n": "int64"}).save(path)
    assert tfr.read_table(tfr.dataset(path, sample="all")).equals(table)


@pytest.mark.parametrize("is_closed", [False, True])
def test_texts_of_the_schema_make_it_again(stated: OpenedDataset, place: str, is_closed: bool) -> None:
    declared = tfr.Schema({"x": PLACES[place], "n": "int64"})
    schema = tfr.Schema.parse(stated.schema) if is_closed else declared
    assert tfr.Schema.from_json(schema.to_json()) == schema
    names: dict[str, Any] = {}
    exec(schema.to_python(), names)
    assert names["schema"] == declared  # a source of a shape is declared, also where its type is decided


def test_a_struct_in_which_arrays_have_other_sources_is_another_column(place: str) -> None:
    schema = tfr.Schema({"x": PLACES[place]})
    other = tfr.Schema.from_json(schema.to_json().replace("x/height", "height"))
    assert other["x"].type == schema["x"].type
    assert other != schema
