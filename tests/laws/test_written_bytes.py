"""The bytes of a file depend on the data and the options, not on threads, pieces, batches, the form of the data or the
engine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import crc32c
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import batches
from limited import limited, set_limits, set_processors
from rounds import rounds
from tfrecord_io.bytes.compression import CODECS
from tfrecord_io.columns.arrow.encode import slice_encoder
from tfrecord_io.columns.arrow.input.batch_source import nest_lossy_columns
from tfrecord_io.store.paths.manifest import parse_manifest

THREADS = (1, 2, 3, 4, 8)
SUFFIXES = {codec.suffixes[0]: codec.name for codec in CODECS}
TARGETS = tuple(name + suffix for name in ("a", "a@3", "a@*") for suffix in ("", *SUFFIXES))


def files(folder: Path) -> dict[str, bytes]:
    """The content of the files that a write left, without its manifest, which has a random id."""
    return {name: (folder / name).read_bytes() for name in os.listdir(folder) if not name.startswith("_")}


def written(folder: Path, target: str, data: Any, **options: Any) -> dict[str, bytes]:
    folder.mkdir()
    name, dot, suffix = target.partition(".") if "@" in target else (target, "", "")
    compression = SUFFIXES.get(dot + suffix, "infer")
    tfr.write_tfrecord(data, folder / name, compression=compression, float64="round", **options)
    check_manifest(folder)
    return files(folder)


def check_manifest(folder: Path) -> None:
    for name in os.listdir(folder):
        if name.startswith("_"):
            manifest = parse_manifest((folder / name).read_bytes(), name)
            assert manifest is not None
            for file in manifest.files:
                content = (folder / file.path).read_bytes()
                assert (file.bytes, file.crc32c) == (len(content), crc32c.crc32c(content))


@pytest.fixture(autouse=True)
def many_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """More threads than processors run only here."""
    set_processors(monkeypatch, 8)


@pytest.mark.filterwarnings("ignore::tfrecord_io.errors.SchemaWarning")
@given(data=st.data(), batch=batches(max_rows=20), target=st.sampled_from(TARGETS))
@settings(max_examples=rounds(60))
def test_threads_pieces_and_batches_change_no_byte(
    native_engine: None,
    tmp_path_factory: pytest.TempPathFactory,
    data: st.DataObject,
    batch: pa.RecordBatch,
    target: str,
) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    options: dict[str, Any] = {"write_index": True} if "." not in target and data.draw(st.booleans()) else {}
    options["embed_schema"] = "dictionary" not in str(batch.schema)  # those of several batches are unified
    if "*" in target:
        options["max_shard_bytes"] = data.draw(st.sampled_from([100, 1000]))
    try:
        expected = written(folder / "expected", target, batch, threads=1, **options)
    except tfr.errors.EncodeError:
        assert files(folder / "expected") == {}
        return
    for number, threads in enumerate(data.draw(st.permutations(THREADS))[:3]):
        size = data.draw(st.sampled_from([1, 100, 1000]))
        pieces = limited(piece_bytes=size)
        slices = mock.patch.object(slice_encoder, "_SLICE_BYTES", data.draw(st.sampled_from([1, 3 * size])))
        step = data.draw(st.integers(1, 20))
        parts = [batch.slice(at, step) for at in range(0, len(batch), step)]
        whole, stream = pa.Table.from_batches(parts, batch.schema), iter(parts)
        form = data.draw(st.sampled_from([batch, whole, stream, parts] if parts else [batch, whole]))
        nested = [nest_lossy_columns(batch.schema, some) for some in (parts[:1], parts)]
        late = form is stream and not nested[0].equals(nested[1], check_metadata=True)
        with pieces, slices, pytest.raises(tfr.errors.EncodeError, match="column_encoding") if late else nullcontext():
            assert written(folder / f"{number}", target, form, threads=threads, **options) == expected


@pytest.mark.parametrize("target", [target for target in TARGETS if "*" not in target])
def test_engines_and_forms_of_the_data_change_no_byte(
    native_engine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    set_limits(monkeypatch, piece_bytes=500)
    rng = np.random.default_rng(0)
    columns = {
        "n": rng.integers(-(2**40), 2**40, 200) >> rng.integers(0, 40, 200),
        "f": rng.standard_normal(200).astype(np.float32),
    }
    table = pa.table(columns)
    forms = {"table": table, "arrays": columns, "frame": table.to_pandas(), "rows": lambda: iter_rows(table)}
    results = []
    for engine in ("native", "reference_engine"):
        monkeypatch.setenv("TFRECORD_IO_ENGINE", engine)
        for name, form in forms.items():
            data = form() if callable(form) else form
            if name == "rows" and "@" in target:
                continue  # tested with streams above
            threads = 1 + len(results) % 4
            made = written(tmp_path / f"{engine}-{name}", target, data, threads=threads, embed_schema=False)
            results.append(made)
    assert all(made == results[0] for made in results)


@given(
    rows=st.integers(1, 60),
    bad=st.lists(st.tuples(st.integers(0, 59), st.sampled_from(["n", "m"])), min_size=1, max_size=4),
    shards=st.integers(1, 9),
    compression=st.sampled_from([None, *CODECS.names()]),
    declared=st.booleans(),
)
@settings(max_examples=rounds(40))
def test_the_first_bad_row_does_not_depend_on_threads_and_shards(
    native_engine: None,
    tmp_path_factory: pytest.TempPathFactory,
    rows: int,
    bad: list[tuple[int, str]],
    shards: int,
    compression: str | None,
    declared: bool,
) -> None:
    """Uint64 values that int64 cannot hold, met when columns are converted, or already when they are cast."""
    folder = tmp_path_factory.mktemp("bad")
    columns = {name: np.arange(rows, dtype=np.uint64) for name in ("n", "m")}
    for row, name in bad:
        columns[name][row % rows] = 2**63
    options: dict[str, Any] = {"schema": {"n": tfr.scalar("int64"), "m": tfr.scalar("int64")}} if declared else {}
    errors = []
    with limited(piece_bytes=100), mock.patch.object(slice_encoder, "_SLICE_BYTES", 1):
        for number, threads in enumerate(THREADS):
            target = folder / str(number) / f"a@{shards}"
            with pytest.raises(tfr.TFRecordError) as raised:
                tfr.write_tfrecord(pa.table(columns), target, compression=compression, threads=threads, **options)
            assert not target.parent.exists()
            errors.append((type(raised.value), raised.value.record, raised.value.feature))
    assert errors == errors[:1] * len(THREADS)
    begins = [rows * k // shards for k in range(shards)]
    shard_of_first = max(begin for begin in begins if begin <= min(row % rows for row, _ in bad))
    assert errors[0][1] in {row % rows for row, _ in bad}
    assert errors[0][1] >= shard_of_first


def iter_rows(table: pa.Table) -> Iterator[pa.Table]:
    return (table.slice(at, 7) for at in range(0, len(table), 7))


@given(st.lists(st.binary(max_size=200), max_size=40), st.integers(1, 400))
@settings(max_examples=rounds(40))
@pytest.mark.parametrize("codec", CODECS.names())
def test_compressed_bytes_do_not_depend_on_what_is_written_together(
    tmp_path_factory: pytest.TempPathFactory, codec: str, payloads: list[bytes], block: int
) -> None:
    folder = tmp_path_factory.mktemp("records")
    with limited(compression_block_bytes=block):
        for name, flushed in (("a", False), ("b", True)):
            with tfr.RecordWriter(folder / name, compression=codec) as record_writer:
                for payload in payloads:
                    record_writer.write(payload)
                    if flushed:
                        record_writer.flush()
    assert (folder / "a").read_bytes() == (folder / "b").read_bytes()
