"""Reading by `convert`: columns of every source, and the keywords of TFRecord sources."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import register_implementation

import tfrecord_io as tfr
from extras import EXTRAS, library
from tfrecord_io.bytes.format.known_formats import FORMATS, Format
from transfers import convert_flat


class Cloud(MemoryFileSystem):
    """A filesystem that needs a key."""

    def __init__(self, *arguments: Any, key: str | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if key != f"key of {self.protocol}":
            raise PermissionError(13, f"wrong key {key!r}", f"{self.protocol}://")

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return "/" + path.split("://")[-1].strip("/")


for name in ("west", "east"):
    register_implementation(
        name, type(name, (Cloud,), {"protocol": name, "store": {}, "pseudo_dirs": [""]}), clobber=True
    )


APART = ("tar", "zarr")


def is_installed(row: Format) -> bool:
    return row.extra not in EXTRAS or find_spec(library(row.extra)) is not None


@pytest.mark.parametrize(
    "suffix",
    [
        ".tfrecord",
        *(
            pytest.param(row.suffixes[0], marks=[] if is_installed(row) else pytest.mark.skip("not installed"))
            for row in FORMATS.own
            if row.is_target and row.suffixes and row.name not in APART
        ),
    ],
)
def test_source_and_target_have_storage_options_of_their_own(suffix: str) -> None:
    """As in a conversion from one cloud to another."""
    west, east = {"key": "key of west"}, {"key": "key of east"}
    tfr.write_tfrecord({"x": np.arange(3)}, "west://a.tfrecord", storage_options=west)
    for options in (
        {"storage_options": west},
        {"storage_options": east},
        {"source_options": {"storage_options": west}},
    ):
        with pytest.raises(PermissionError):
            convert_flat("west://a.tfrecord", f"east://a{suffix}", **options)
    for options in (
        {"source_options": {"storage_options": west}, "storage_options": east},
        {"storage_options": west, "target_options": {"storage_options": east}},
    ):
        assert convert_flat("west://a.tfrecord", f"east://a{suffix}", **options).records == 3
    if suffix == ".tfrecord":
        west_rows = tfr.dataset("west://a.tfrecord", storage_options=west)
        assert tfr.convert(west_rows, "east://c.tfrecord", storage_options=east).records == 3
    back = {"storage_options": west, "source_options": {"storage_options": east}}
    assert convert_flat(f"east://a{suffix}", "west://b.tfrecord", **back).records == 3
    assert tfr.read_arrays("west://b.tfrecord", storage_options=west).popitem()[1].tolist() == [0, 1, 2]


ROWS = {"a": np.arange(5), "b": np.arange(10, dtype=np.float32).reshape(5, 2), "dd": np.arange(5) * 2}


@pytest.fixture(scope="module", params=[".npz", ".npy", ".tfrecord", "folder of .npz"])
def three_columns(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A source with the columns a, b and dd, in each format."""
    folder = tmp_path_factory.mktemp("columns")
    table = pa.table({name: list(values) for name, values in ROWS.items()})
    if request.param == ".npz":
        np.savez(folder / "x.npz", **ROWS)
    elif request.param == ".npy":
        for name, values in ROWS.items():
            np.save(folder / f"{name}.npy", values)
        return [folder / f"{name}.npy" for name in ROWS]
    elif request.param == ".tfrecord":
        tfr.write_tfrecord(table, folder / "x.tfrecord")
    else:
        for i in range(5):
            np.savez(folder / f"{i}.npz", **{name: values[i] for name, values in ROWS.items()})
        return folder
    return folder / f"x{request.param}"


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        (["a"], ["a"]),
        ("b", ["b"]),
        (["dd", "a"], ["dd", "a"]),
        (["*", "!b"], ["a", "dd"]),
        (["!a"], ["b", "dd"]),
        (["d*"], ["dd"]),
        (None, ["a", "b", "dd"]),
    ],
    ids=str,
)
def test_columns_are_selected_from_every_source(
    three_columns: Any, tmp_path: Path, columns: Any, names: list[str]
) -> None:
    report = tfr.convert(three_columns, tmp_path / "out.tfrecord", columns=columns)
    assert report.columns == tuple(names)
    assert report.records == 5
    everything = tfr.read_table(three_columns) if str(three_columns).endswith(".tfrecord") else None
    selected = tfr.read_table(tmp_path / "out.tfrecord")
    assert selected.column_names == names
    if everything is None:
        tfr.convert(three_columns, tmp_path / "all.tfrecord")
        everything = tfr.read_table(tmp_path / "all.tfrecord")
    assert selected.equals(everything.select(names))


def test_a_column_that_no_source_has_is_an_error(three_columns: Any, tmp_path: Path) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"'nonsense'.*valid names: a, b, dd"):
        tfr.convert(three_columns, tmp_path / "out.tfrecord", columns=["a", "nonsense"])
    assert not (tmp_path / "out.tfrecord").exists()


def test_columns_of_a_data_frame_in_parquet(tmp_path: Path) -> None:
    """The metadata of pandas names columns that are not selected."""
    frame = pd.DataFrame({"x": [1, 2], "y": ["a", None]}, index=pd.Index(["r", "s"], name="row"))
    frame.to_parquet(tmp_path / "x.parquet")
    assert tfr.convert(tmp_path / "x.parquet", tmp_path / "x.tfrecord", columns=["x"]).columns == ("x",)
    assert tfr.read_tfrecord(tmp_path / "x.tfrecord").to_dict("list") == {"x": [1, 2]}
    tfr.convert(tmp_path / "x.parquet", tmp_path / "x.tfrecord", columns=["x", "row"])
    assert tfr.read_tfrecord(tmp_path / "x.tfrecord").reset_index().to_dict("list") == {"row": ["r", "s"], "x": [1, 2]}


@pytest.mark.plugins("tensorflow")
def test_keywords_of_reading_apply_to_tfrecord_sources(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(10)}, tmp_path / "a.tfrecord")
    part, bytes_ = tmp_path / "part.tfrecord", tmp_path / "bytes.tfrecord"
    both: Any = {f"{side}_options": {"record_type": "bytes"} for side in ("source", "target")}
    assert tfr.convert(tmp_path / "a.tfrecord", part, source_options={"offset": 2}, limit=3).records == 3
    assert tfr.read_arrays(part)["x"].tolist() == [2, 3, 4]
    assert tfr.convert(tmp_path / "a.tfrecord", bytes_, **both).columns == ("record",)
    assert bytes_.read_bytes() == (tmp_path / "a.tfrecord").read_bytes()
    whole = part.read_bytes()
    part.write_bytes(whole[:-3])
    with pytest.raises(tfr.errors.TruncatedRecordError):
        tfr.convert(part, tmp_path / "b.tfrecord")
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        assert tfr.convert(part, tmp_path / "b.tfrecord", on_error="stop").records == 2
    np.save(tmp_path / "x.npy", np.arange(3))
    with pytest.raises(TypeError, match="limit= is only for TFRecord, ArrayRecord and TFDS sources"):
        tfr.convert(tmp_path / "x.npy", tmp_path / "c.tfrecord", limit=1)


def test_a_parquet_column_named_like_a_field_of_a_struct(tmp_path: Path) -> None:
    table = pa.table({"a.b": [1, 2], "a": [{"b": 3, "c": 4}, {"b": 5, "c": 6}]})
    pq.write_table(table, tmp_path / "x.parquet")
    for names in (["a.b"], ["a"], ["a", "a.b"]):
        tfr.convert(tmp_path / "x.parquet", tmp_path / "x.tfrecord", columns=names)
        assert tfr.read_table(tmp_path / "x.tfrecord").to_pylist() == table.select(names).to_pylist()


@pytest.mark.parametrize("column", [[["a"]], [{"k": 1}]], ids=["list", "struct"])
def test_a_reader_without_rows_is_written(tmp_path: Path, column: list[Any]) -> None:
    """The first batch decides how lists and structs are stored, also where it has no rows."""
    tfr.write_tfrecord({"id": [1], "x": column}, tmp_path / "a.tfrecord")
    with pytest.warns(tfr.errors.SchemaWarning, match="no records were written"):
        report = tfr.convert(tmp_path / "a.tfrecord", tmp_path / "none.tfrecord", filters=[("id", "==", 7)])
    assert (report.records, report.columns) == (0, ("id", "x"))
    with tfr.open_writer(tmp_path / "both.tfrecord") as writer:
        writer.write(tfr.open_reader(tmp_path / "a.tfrecord", limit=0))
        writer.write(tfr.open_reader(tmp_path / "a.tfrecord"))
    assert tfr.read_table(tmp_path / "both.tfrecord")["x"].to_pylist() == column
    assert tfr.write_tfrecord(tfr.open_reader(tmp_path / "a.tfrecord", limit=0), tmp_path / "s@2").records == 0
