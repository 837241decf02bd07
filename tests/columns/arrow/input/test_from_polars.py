"""polars queries are written batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tfrecord_io as tfr
from tfrecord_io.columns.arrow.input.from_polars import table_of_polars

POLARS = tuple(map(int, pl.__version__.split(".")[:2]))


@pytest.fixture(scope="module")
def query(tmp_path_factory: pytest.TempPathFactory) -> pl.LazyFrame:
    """Over files, of which polars reads several batches."""
    folder = tmp_path_factory.mktemp("query")
    for part in range(4):
        numbers = pl.arange(part * 50_000, (part + 1) * 50_000, eager=True)
        words = pl.Series(["a", "b"] * 25_000, dtype=pl.Enum(["a", "b"]))
        lists = pl.Series([[n, part] for n in numbers])
        pl.DataFrame({"n": numbers, "word": words, "list": lists}).write_parquet(folder / f"{part}.parquet")
    return pl.scan_parquet(folder / "*.parquet")


def test_a_query_is_read_batch_by_batch(query: pl.LazyFrame) -> None:
    frames: Any = table_of_polars(query.filter(pl.col("n") % 3 == 0))
    heights = [frame.height for frame in frames]
    assert heights[0] == 0
    assert len(heights) > (2 if POLARS >= (1, 37) else 1)
    assert sum(heights) == len(range(0, 200_000, 3))


def test_a_query_is_written_in_its_order(query: pl.LazyFrame, tmp_path: Path) -> None:
    selected = query.filter(pl.col("n") % 3 == 0)
    assert tfr.write_tfrecord(selected, tmp_path / "a.tfrecord").records == len(range(0, 200_000, 3))
    back = pl.DataFrame(tfr.read_table(tmp_path / "a.tfrecord"))
    assert back.schema == selected.collect_schema()
    assert back.equals(selected.collect())


def test_categories_that_appear_later_are_kept(tmp_path: Path) -> None:
    words = [f"word {n // 50_000}" for n in range(200_000)]
    query = pl.LazyFrame({"a": pl.Series(words, dtype=pl.Categorical)})
    tfr.write_tfrecord(query, tmp_path / "a.tfrecord")
    assert pl.DataFrame(tfr.read_table(tmp_path / "a.tfrecord")).equals(query.collect())
    nested = query.select(pl.struct("a").alias("s"), pl.concat_list("a").alias("l"))
    assert isinstance(table_of_polars(nested.select("s")), pl.DataFrame)
    assert isinstance(table_of_polars(nested.select("l")), pl.DataFrame)


def test_a_query_without_rows_keeps_its_types(query: pl.LazyFrame, tmp_path: Path) -> None:
    tfr.write_tfrecord(query.filter(pl.col("n") < 0), f"{tmp_path}/out/")
    assert tfr.read_table(tmp_path / "out").schema.names == ["n", "word", "list"]


def test_an_error_of_the_query_leaves_no_file(query: pl.LazyFrame, tmp_path: Path) -> None:
    with pytest.raises(pl.exceptions.PolarsError):
        tfr.write_tfrecord(query.select(pl.col("n").cast(pl.Int8)), tmp_path / "a.tfrecord")
    assert not (tmp_path / "a.tfrecord").exists()


def test_a_query_of_narwhals_is_written(query: pl.LazyFrame, tmp_path: Path) -> None:
    narwhals = pytest.importorskip("narwhals")
    tfr.write_tfrecord(narwhals.from_native(query).filter(narwhals.col("n") < 5), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["n"].to_pylist() == [0, 1, 2, 3, 4]


def test_nulls_in_the_lists_of_a_query(tmp_path: Path) -> None:
    """The types of a query come as a frame without rows, which says nothing about its lists."""
    frame = pl.DataFrame({"a": [[1, None], None, []]})
    tfr.write_tfrecord(frame.lazy(), tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord")["a"].to_pylist() == frame["a"].to_list()


@pytest.mark.parametrize("dtype", [pl.Int128, pl.List(pl.Int128), pl.Struct({"k": pl.Int128})], ids=str)
def test_integers_of_128_bits_are_named(tmp_path: Path, dtype: Any) -> None:
    frame = pl.DataFrame({"n": [1], "a": pl.Series([None], dtype=dtype)})
    for data in (frame, frame.lazy(), frame["a"], {"a": frame["a"]}):
        with pytest.raises(tfr.errors.EncodeError, match=r"feature 'a': a polars Int128 column .* cast it to pl.Int64"):
            tfr.write_tfrecord(data, tmp_path / "a.tfrecord")


def test_a_series_of_an_enum_in_a_dict_is_one_again(tmp_path: Path) -> None:
    sizes = pl.Series("sizes", ["large", None, "small"], dtype=pl.Enum(["small", "medium", "large"]))
    tfr.write_tfrecord({"n": [1, 2, 3], "x": sizes, "y": [[1.0, 2.0]] * 3}, tmp_path / "a.tfrecord")
    read = tfr.scan_polars(tmp_path / "a.tfrecord").collect()["x"]
    assert read.dtype == sizes.dtype
    assert read.to_list() == sizes.to_list()
