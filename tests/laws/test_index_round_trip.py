"""The index of a DataFrame: what is written comes back, and of several files only the index that all of them have."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import example, int64s, written
from rounds import rounds

WORDS = np.array(["a", "b", "c"])
INDEXES: dict[str, Callable[[np.ndarray[Any, Any]], pd.Index | None]] = {  # of numbers from 0 to 2, maybe repeated
    "default": lambda n: None,
    "range": lambda n: pd.RangeIndex(10, 10 - 2 * len(n), -2),
    "named range": lambda n: pd.RangeIndex(5, 5 + 3 * len(n), 3, name="key"),
    "named": lambda n: pd.Index(n, name="key"),
    "unnamed text": lambda n: pd.Index(WORDS[n]),
    "unnamed numbers": lambda n: pd.Index(n * 7),
    "times": lambda n: pd.to_datetime(n, unit="D", utc=True).tz_convert("Europe/Berlin").rename("when"),
    "categories": lambda n: pd.CategoricalIndex(WORDS[n], categories=WORDS, name="kind"),
    "levels": lambda n: pd.MultiIndex.from_arrays([n, WORDS[n]], names=["key", "word"]),
    "levels without names": lambda n: pd.MultiIndex.from_arrays([WORDS[n], n]),
    "one level without a name": lambda n: pd.MultiIndex.from_arrays([n, WORDS[n]], names=["key", None]),
    "the name of another file's column": lambda n: pd.Index(n, name="y"),
}


def frame_of(kind: str, numbers: list[int], columns: str) -> pd.DataFrame:
    n = np.array(numbers, np.int64)
    columns = "x" if "column" in kind else columns
    return pd.DataFrame({name: n + at for at, name in enumerate(columns)}, index=INDEXES[kind](n))


frames = st.builds(
    frame_of,
    st.sampled_from(list(INDEXES)),
    st.lists(st.integers(0, 2), min_size=1, max_size=4),
    st.sampled_from(["x", "xy", "yx"]),
)
alike = st.tuples(st.sampled_from(list(INDEXES)), st.integers(1, 3)).flatmap(
    lambda drawn: st.lists(
        st.builds(frame_of, st.just(drawn[0]), st.lists(st.integers(0, 2), min_size=1, max_size=4), st.just("x")),
        min_size=drawn[1],
        max_size=drawn[1],
    )
)


def fields_of(frame: pd.DataFrame) -> dict[str, pa.DataType]:
    """The columns that the levels of a frame's index are written as."""
    is_column = frame.index.nlevels > 1 or frame.index.name is not None
    schema = pa.Table.from_pandas(frame, preserve_index=is_column or None).schema
    return {field.name: field.type for field in schema if field.name not in frame.columns}


def expected_frame(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """What files of these frames are read as, together."""
    levels = [list(fields_of(frame)) for frame in frames]
    if levels[0] and all(names == levels[0] for names in levels):
        return pd.concat(frames)
    plain = []
    for frame in frames:
        named = [name for name in frame.index.names if name is not None and name in fields_of(frame)]
        columns = {name: np.asarray(frame.index.get_level_values(name)) for name in named}
        plain.append(frame.reset_index(drop=True).assign(**columns))
    return pd.concat(plain, ignore_index=True)


def as_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as dicts; missing values and types that differ only because of them are equal."""
    rows = frame.to_dict("records")
    return [{str(k): str(pd.Timestamp(v)) if k == "when" else v for k, v in r.items() if not pd.isna(v)} for r in rows]


@given(frames=st.lists(frames, min_size=1, max_size=3) | alike, threads=st.sampled_from([1, 3]))
def test_an_index_is_read_if_all_files_have_it_and_never_has_missing_values(
    native_engine: None, frames: list[pd.DataFrame], threads: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.tfrecord" for number in range(len(frames))]
        for frame, path in zip(frames, paths, strict=True):
            report = tfr.write_tfrecord(frame, path)
            assert report.index == tuple(fields_of(frame))
            pd.testing.assert_frame_equal(tfr.read_tfrecord(path), frame, check_freq=False)
        types = {field for frame in frames for field in fields_of(frame).items()}
        if len(types) > len(dict(types)):  # levels without a name that are text in one file and numbers in another
            with pytest.raises(tfr.errors.SchemaError, match="__index_level_"):
                tfr.read_tfrecord(folder)
            return
        together = tfr.read_tfrecord(tfr.dataset(folder, threads=threads))
        selected = tfr.read_tfrecord(folder, columns=["x"]) if all("x" in frame for frame in frames) else None
    if len(frames) == 1:
        return
    expected = expected_frame(frames)
    assert not any(together.index.get_level_values(level).isna().any() for level in range(together.index.nlevels))
    assert list(together.index) == list(expected.index)
    assert list(together.index.names) == list(expected.index.names)
    if together.index.nlevels == 1:
        assert together.index.dtype == expected.index.dtype
    assert as_rows(together) == as_rows(expected)
    assert not any(name.startswith("__index_level_") for name in together.columns)
    if selected is not None:
        pd.testing.assert_frame_equal(selected, together[["x"]])


PARTS: dict[str, Callable[[int, int], pd.Index | None]] = {  # of rows begin to end
    "default": lambda begin, end: None,
    "named range": lambda begin, end: pd.RangeIndex(3 * begin, 3 * end, 3, name="key"),
    "named range from 0": lambda begin, end: pd.RangeIndex(begin, end, name="key"),
    "range, then none": lambda begin, end: pd.Index([n**2 for n in range(begin, end)], name="key"),  # 0, 1 is a range
    "text": lambda begin, end: pd.Index([f"r{n}" for n in range(begin, end)], name="key"),
    "unnamed": lambda begin, end: pd.Index([7 * n % 5 for n in range(begin, end)]),
    "levels": lambda begin, end: pd.MultiIndex.from_arrays(
        [pd.RangeIndex(begin, end), range(end, 2 * end - begin)], names=["key", "n"]
    ),
    "unnamed levels": lambda begin, end: pd.MultiIndex.from_arrays([pd.RangeIndex(begin, end)] * 2),
}


@settings(max_examples=rounds(40), deadline=None)
@given(
    kind=st.sampled_from(list(PARTS)),
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=3),
    shards=st.integers(1, 3),
    together=st.booleans(),
)
def test_a_named_index_is_a_column_for_every_reader_however_it_was_written(
    native_engine: None, kind: str, sizes: list[int], shards: int, together: bool
) -> None:
    bounds = list(pairwise(accumulate(sizes, initial=0)))
    frames = [pd.DataFrame({"x": range(begin, end)}, index=PARTS[kind](begin, end)) for begin, end in bounds]
    frame = pd.concat(frames, ignore_index=kind == "default")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/data/"
        if together:
            tfr.write_tfrecord(iter(frames), path, shards=shards)
        for part in () if together else frames:
            tfr.write_tfrecord(part, path, mode="append", shards=shards)
        pd.testing.assert_frame_equal(tfr.read_tfrecord(path), frame)
        table = tfr.read_table(path)
        others = tfr.read_table(path, schema="infer")  # as programs that do not know the embedded schema
    for name, values in frame.index.to_frame().items():
        if name in frame.index.names:
            assert table[str(name)].to_pylist() == others[str(name)].to_pylist() == list(values)


@pytest.mark.parametrize("foreign_first", [False, True])
@pytest.mark.parametrize("name", ["key", None])
def test_a_file_without_an_embedded_schema_has_no_index(
    engine: str, tmp_path: Path, name: str | None, foreign_first: bool
) -> None:
    frame = pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 6], name=name))
    tfr.write_tfrecord(frame, tmp_path / "own")
    foreign = written(tmp_path / "foreign", [example(x=int64s(3))])
    paths = [foreign, tmp_path / "own"] if foreign_first else [tmp_path / "own", foreign]
    together = tfr.read_tfrecord(paths)
    assert together.index.equals(pd.RangeIndex(3))
    assert list(together.columns) == (["x"] if name is None else ["x", name])
    assert list(tfr.read_tfrecord(paths, columns=["x"]).columns) == ["x"]
    assert tfr.read_tfrecord(tmp_path / "own").index.equals(frame.index)
    metadata = tfr.read_table(paths).to_pandas()  # pyarrow's own conversion
    assert metadata.index.equals(pd.RangeIndex(3))


def test_a_column_that_is_called_like_an_index_level_stays(engine: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1], "__index_level_0__": [2]})
    tfr.write_tfrecord(frame, tmp_path / "a")
    pd.testing.assert_frame_equal(tfr.read_tfrecord(tmp_path / "a"), frame)
    tfr.write_tfrecord(pa.table({"__index_level_0__": [2]}), tmp_path / "b")
    assert list(tfr.read_tfrecord([tmp_path / "a", tmp_path / "b"]).columns) == ["x", "__index_level_0__"]


def test_an_index_found_in_a_later_record_is_read(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(pd.DataFrame({"x": [1, 2]}, index=pd.Index([5, 6], name="key")), tmp_path / "a")
    with pytest.warns(tfr.errors.SchemaWarning, match="record 1"):
        frame = tfr.read_tfrecord(written(tmp_path / "b", list(tfr.RecordReader(tmp_path / "a"))[::-1]))
    assert (list(frame.index), frame.index.name) == ([6, 5], "key")


def test_labels_and_dtypes_of_columns_that_a_later_file_adds(engine: str, tmp_path: Path) -> None:
    tfr.write_tfrecord(pd.DataFrame({0: [1]}), tmp_path / "a.tfrecord")
    tfr.write_tfrecord(pd.DataFrame({0: [2], 1: pd.array([3], "Int8")}), tmp_path / "b.tfrecord")
    for order in ("ab", "ba"):
        frame = tfr.read_tfrecord([tmp_path / f"{name}.tfrecord" for name in order])
        assert (list(frame.columns), str(frame.dtypes[1])) == ([0, 1], "Int8")


def test_the_report_names_the_columns_of_the_index(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": [1]}, index=pd.MultiIndex.from_tuples([(1, 2)], names=["key", None]))
    report = tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    assert (report.columns, report.index) == (("x", "key", "__index_level_1__"), ("key", "__index_level_1__"))
    assert "key (index)" in repr(report)
    assert "(index)" not in repr(tfr.write_tfrecord(frame, tmp_path / "a.tfrecord", index=False))
