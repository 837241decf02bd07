"""``read(offset, limit)`` is the slice of ``read()``: values, types and errors, for any files, damage and policy."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import decoded_by
from tfrecord_io.base.options.on_damage import OnDamage
from tfrecord_io.bytes.compression import CODECS

CATEGORIES = ["red", "green", "blue"]
# The types that a column has in one file or another; those of a group have a common type.
TYPES = {
    "n": [pa.int8(), pa.int64(), pa.uint16(), pa.null()],
    "f": [pa.float32(), pa.float64()],
    "t": [pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("us"), pa.timestamp("ms")],
    "c": [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int32(), pa.string()), pa.string()],
    "l": [pa.list_(pa.int8()), pa.list_(pa.int32())],
}
MODES = ["raise", *OnDamage.names(OnDamage.needs_no_report)]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.sampled_from([0, 1, 2, 7, 20]))
    columns: dict[str, pa.Array] = {"id": pa.array(range(rows), pa.int64())}
    for name in draw(st.lists(st.sampled_from(sorted(TYPES)), unique=True)):
        type_ = draw(st.sampled_from(TYPES[name]))
        columns[name] = pa.array([_value(name, row) for row in range(rows)] if type_ != pa.null() else [None] * rows)
        columns[name] = (
            columns[name].cast(type_.value_type).dictionary_encode().cast(type_)
            if name == "c" and (pa.types.is_dictionary(type_))
            else columns[name].cast(type_)
        )
    return pa.table(columns)


def _value(name: str, row: int) -> Any:
    if row % 5 == 3:
        return None
    return {"n": row, "f": row / 2, "t": row, "c": CATEGORIES[row % 3], "l": [row] * (row % 3)}[name]


@st.composite
def folders(draw: st.DrawFn) -> tuple[list[pa.Table], list[str], int | None]:
    """The tables of files, their suffixes, and the number of the one that is damaged."""
    contents = draw(st.lists(tables(), min_size=1, max_size=4))
    suffixes = [draw(st.sampled_from(["", *CODECS.suffixes()])) for _ in contents]
    damaged = draw(st.none() | st.integers(0, len(contents) - 1))
    return contents, suffixes, damaged


def write(folder: Path, contents: list[pa.Table], suffixes: list[str], damaged: int | None, at: int) -> list[Path]:
    paths = []
    for number, (table, suffix) in enumerate(zip(contents, suffixes, strict=True)):
        path = folder / f"{number}.tfrecord{suffix}"
        tfr.write_tfrecord(table, path)
        if number == damaged and path.stat().st_size:
            content = bytearray(path.read_bytes())
            content[at % len(content)] ^= 1 << at % 8
            path.write_bytes(content)
        paths.append(path)
    return paths


def attempt(read: Any, *arguments: Any, **keywords: Any) -> pa.Table | Exception:
    try:
        return read(*arguments, **keywords)
    except tfr.TFRecordError as error:
        return error


def whole_table(path: Any, **keywords: Any) -> pa.Table:
    return read_by(tfr.read_table, path, **keywords)


def stream(path: Any, **keywords: Any) -> pa.Table:
    with read_by(tfr.open_reader, path, batch_size=3, **keywords) as reader:
        return pa.Table.from_batches(list(reader), reader.schema).unify_dictionaries()


@given(
    folders(),
    st.integers(0, 2000),
    st.integers(0, 60),
    st.none() | st.integers(0, 30),
    st.sampled_from(MODES),
    st.sampled_from([1, 2]),
    st.sampled_from([whole_table, stream]),
)
def test_a_window_is_the_slice_of_the_whole(
    tmp_path_factory: pytest.TempPathFactory,
    folder: tuple[list[pa.Table], list[str], int | None],
    at: int,
    offset: int,
    limit: int | None,
    on_error: str,
    threads: int,
    read: Any,
) -> None:
    contents, suffixes, damaged = folder
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = write(tmp_path_factory.mktemp("files"), contents, suffixes, damaged, at)
        whole = attempt(whole_table, paths, on_error=on_error, threads=1)
        window = attempt(read, paths, on_error=on_error, threads=threads, offset=offset, limit=limit)
        if isinstance(whole, tfr.errors.SchemaError):
            assert isinstance(window, tfr.errors.SchemaError), window
            assert (window.path, window.record, window.reason) == (whole.path, whole.record, whole.reason)
        elif isinstance(whole, Exception):
            check_window_of_damaged(paths, whole, window, offset, limit)
        else:
            assert isinstance(window, pa.Table), window
            same_rows(window, whole.slice(offset, limit))


def check_window_of_damaged(
    paths: list[Path], whole: Exception, window: pa.Table | Exception, offset: int, limit: int | None
) -> None:
    """Records before the damage are read; a window that ends behind it is an error, unless it begins there, too."""
    intact = attempt(whole_table, paths, on_error="stop", threads=1)
    assert isinstance(intact, pa.Table)
    rows = intact.num_rows
    if limit is not None and offset + limit <= rows:
        assert isinstance(window, pa.Table), window
        same_rows(window, intact.slice(offset, limit))
    elif offset <= rows and limit != 0:
        assert type(window) is type(whole), window


def same_rows(window: pa.Table, expected: pa.Table) -> None:
    assert window.schema.names == expected.schema.names
    assert window.schema.types == expected.schema.types
    assert window.to_pydict() == expected.to_pydict()


@given(st.integers(0, 13), st.none() | st.integers(0, 13), st.sampled_from([1, 2]))
def test_categories_do_not_depend_on_the_window(
    tmp_path_factory: pytest.TempPathFactory, offset: int, limit: int | None, threads: int
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number in range(3):
        words = pa.array([f"{number} {row}" for row in range(4)]).dictionary_encode()
        tfr.write_tfrecord(pa.table({"c": words}), folder / f"{number}.tfrecord")
    whole = tfr.read_table(folder / "*")["c"].to_pylist()
    stop = None if limit is None else offset + limit
    window = tfr.read_table(tfr.dataset(folder / "*", offset=offset, threads=threads), limit=limit)
    assert window["c"].to_pylist() == whole[offset:stop]


@given(
    st.lists(st.sampled_from(["fits", "does not fit", "rejected", "rejected and does not fit"]), max_size=20),
    st.integers(0, 20),
    st.none() | st.integers(0, 20),
    st.sampled_from([name for name in MODES if not OnDamage.of(name).is_strict]),
    st.booleans(),
    st.sampled_from([whole_table, stream]),
)
def test_a_filter_is_applied_behind_the_offset(
    tmp_path_factory: pytest.TempPathFactory,
    kinds: list[str],
    offset: int,
    limit: int | None,
    on_error: str,
    two_steps: bool,
    read: Any,
) -> None:
    """The offset counts records that fit, whether the filter rejects them or not."""
    path, options = tmp_path_factory.mktemp("files") / "a", {"schema": {"id": "int64", "f": "float64"}}
    with tfr.RecordWriter(path) as writer:
        for number, kind in enumerate(kinds):
            id_ = "text" if "not" in kind else number
            writer.write(tfr.encode_example({"id": id_, "f": 0.5 if "rejected" in kind else 1.5}))
    with warnings.catch_warnings(), decoded_by([(two_steps, None)]):
        warnings.simplefilter("ignore")
        whole = read_by(tfr.read_table, path, on_error=on_error, **options)
        window = read(path, on_error=on_error, offset=offset, limit=limit, filters=[("f", ">", 1)], **options)
    expected = whole.slice(offset).filter(pc.field("f") > 1).slice(0, limit)
    if OnDamage.of(on_error).ends_quietly and not offset:  # a record that the filter rejects may stop nothing
        window = window.slice(0, len(expected))
    same_rows(window, expected)
