"""Data without rows: a dataset keeps its columns, one file cannot, and what is read of it says so."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by

SCHEMA = pa.schema({"x": pa.int8(), "words": pa.list_(pa.string()), "when": pa.timestamp("s")})
NO_ROWS = SCHEMA.empty_table()
READERS: dict[str, Callable[..., pa.Schema]] = {
    "read_table": lambda path, **keywords: read_by(tfr.read_table, path, **keywords).schema,
    "read_tfrecord": lambda path, **keywords: pa.Schema.from_pandas(read_by(tfr.read_tfrecord, path, **keywords)),
    "open_reader": lambda path, **keywords: read_by(tfr.open_reader, path, **keywords).read_all().schema,
    "a stream": lambda path, **keywords: pa.table(read_by(tfr.open_reader, path, **keywords)).schema,
}
readers = pytest.mark.parametrize("read", READERS.values(), ids=READERS)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_writing_one_file_without_rows_warns_that_its_columns_are_lost(
    engine: str, tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"a.tfrecord{suffix}"
    with pytest.warns(tfr.errors.SchemaWarning, match=r"a\.tfrecord.*: no records.*3 columns.*schema=") as warned:
        tfr.write_tfrecord(NO_ROWS, path)
    assert (len(warned), warned[0].filename) == (1, __file__)
    with pytest.warns(tfr.errors.SchemaWarning, match="no records"), tfr.open_writer(path, schema={"x": "int8"}):
        pass
    with pytest.warns(tfr.errors.SchemaWarning, match="no records"):
        tfr.write_tfrecord(pd.DataFrame({"x": []}), io.BytesIO())


def test_no_warning_where_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with warnings.catch_warnings():
        warnings.simplefilter("error", tfr.errors.SchemaWarning)
        tfr.write_tfrecord(NO_ROWS, path, embed_schema=False)
        tfr.write_tfrecord({"x": [b""][:0]}, path, record_type="bytes", schema={"x": pa.binary()})
        tfr.write_tfrecord(pd.DataFrame(), path)
        tfr.open_writer(path).close()
        tfr.write_tfrecord(NO_ROWS, tmp_path / "dataset@2")
        with pytest.raises(ZeroDivisionError), tfr.open_writer(path, schema={"x": "int8"}):
            raise ZeroDivisionError


@readers
@pytest.mark.parametrize("target", [("d/", {}), ("d@3", {}), ("d", {"shards": 2}), ("d", {"max_shard_bytes": 99})])
def test_a_dataset_without_rows_keeps_its_columns(
    engine: str, tmp_path: Path, read: Callable[..., pa.Schema], target: tuple[str, dict[str, Any]]
) -> None:
    path, keywords = f"{tmp_path}/{target[0]}", target[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.write_tfrecord(NO_ROWS, path, **keywords)
        expected = pa.Schema.from_pandas(NO_ROWS.to_pandas()) if read is READERS["read_tfrecord"] else SCHEMA
        assert read(path).names == expected.names
        assert read(path, columns=["x"]).names == ["x"]
        assert tfr.read_metadata(path).schema == SCHEMA
    if read is not READERS["read_tfrecord"]:
        assert read(path) == SCHEMA


@readers
def test_reading_files_without_records_names_the_keyword_that_declares_columns(
    engine: str, tmp_path: Path, read: Callable[..., pa.Schema]
) -> None:
    paths = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    for path in paths:
        path.write_bytes(b"")
    for source, named in [(paths[0], r"a\.tfrecord"), (paths, r"a\.tfrecord and 1 more file")]:
        with pytest.warns(tfr.errors.SchemaWarning, match=rf"{named}: no records.*schema=") as warned:
            assert read(source).names == []
        assert len(warned) == 1
        for columns in (["x"], ["x*"]):
            with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"no record was read.*schema="):
                read(source, columns=columns)
        with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"no record was read.*schema="):
            read(source, schema_overrides={"x": "int32"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read(paths, schema={"x": "int8"}).names == ["x"]
        tfr.write_tfrecord({"x": [1]}, tmp_path / "b.tfrecord")
        assert read(paths).names == ["x"]


@readers
def test_a_read_of_no_rows_of_a_file_that_has_some_does_not_warn(
    engine: str, tmp_path: Path, read: Callable[..., pa.Schema]
) -> None:
    for embed in (True, False):
        tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord", embed_schema=embed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for window in ({"limit": 0}, {"offset": 2}, {"offset": 5, "limit": 1}):
                assert read(tmp_path / "a.tfrecord", **window).names == (["x"] if embed else [])


@readers
@pytest.mark.parametrize("window", [{"limit": 0}, {"offset": 2}, {"offset": 5, "limit": 1}])
@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_a_read_of_no_rows_may_name_columns(
    engine: str, tmp_path: Path, read: Callable[..., pa.Schema], window: dict[str, int], on_error: str
) -> None:
    """Such as the page behind the last one."""
    path, options = tmp_path / "a.tfrecord", {**window, "on_error": on_error}
    tfr.write_tfrecord({"x": [1, 2], "y": ["a", "b"]}, path, embed_schema=False)
    assert read(path, columns=["x"], **options).names == ["x"]
    assert read(path, columns="!x", **options).names == ["y"]
    assert read(path, columns="y", filters=[("x", ">", 1)], **options).names == ["y"]
    assert read(path, columns=["x"], schema_overrides={"x": "int8"}, **options).names == ["x"]
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="valid names: x, y"):
        read(path, columns=["z"], **options)


def test_a_pipe_without_rows_to_read_is_answered_with_the_keyword_that_declares_columns(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord", embed_schema=False)
    with (
        (tmp_path / "a.tfrecord").open("rb") as file,
        pytest.raises(tfr.errors.FeatureNotFoundError, match=r"no record was read.*schema="),
    ):
        tfr.read_table(tfr.dataset(file, offset=2), columns=["x"])


def test_an_empty_folder_of_partitions_still_warns(tmp_path: Path) -> None:
    (tmp_path / "label=cat").mkdir()
    (tmp_path / "label=cat" / "a.tfrecord").write_bytes(b"")
    with pytest.warns(tfr.errors.SchemaWarning, match="no records"):
        assert tfr.read_table(tmp_path).column_names == ["label"]
