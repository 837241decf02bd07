"""Arrays come back from files as they were: dtype, shape and every bit. The law, for arrays without a null:

- An array of two and more axes, or of a dtype that no feature type has (complex, bfloat16, dates in years, months,
  weeks or hours, times finer than ns …), is always exact: each record states dtype and shape.
- One axis is exact with the embedded schema, with three exceptions: float64 is rounded (``float64="raw"`` keeps it),
  uint64 above 2**63 - 1 is refused, text and bytes of one width come back as text and bytes of any.
- ``column_encoding="raw"`` makes all of them exact, without the schema as well.

Records can be drawn, shuffled and merged by whatever copies payloads.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tensors_of_arrays import Given, columns, layouts
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.testing.tensor_encoding_suite import PLAIN, dtype_of, values_of

UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as")
TIMES = [f"{kind}[{unit}]" for kind in ("datetime64", "timedelta64") for unit in UNITS]
EXTENSIONS = [name for name, row in Dtype.TABLE.items() if row.is_extension]
ALL = [*PLAIN, "complex64", "complex128", *EXTENSIONS, "S1", "S7", "U1", "U5", *TIMES]
ONLY_RAW = ("uint64", "float64", "S1", "S7", "U1", "U5")  # with one axis
ARROW_UNITS = ("s", "ms", "us", "ns")
LISTED = {
    *PLAIN,
    "datetime64[D]",
    *(f"{kind}[{unit}]" for kind in ("datetime64", "timedelta64") for unit in ARROW_UNITS),
}
COLUMNS = ("x", "y", "x/y", "größe/日本", "")


def assert_same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], what: object = "") -> None:
    """Equal dtype in native byte order, shape and bits."""
    expected = expected.astype(expected.dtype.newbyteorder("="))
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape), what
    assert found.tobytes() == expected.tobytes(), what


@st.composite
def arrays(draw: st.DrawFn, rows: int) -> np.ndarray[Any, Any]:
    """Any bits, with one to five axes, in any memory layout."""
    shape = draw(st.lists(st.integers(0, 3), max_size=4))
    return draw(layouts(values_of(draw(st.sampled_from(ALL)), (rows, *shape), draw(st.integers(0, 2**32 - 1)))))


def tables(rows: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, np.ndarray[Any, Any]]]:
    """Columns with the same number of rows."""
    return rows.flatmap(lambda n: st.dictionaries(st.sampled_from(COLUMNS), arrays(n), min_size=1))


def raw_where_needed(table: dict[str, np.ndarray[Any, Any]]) -> dict[str, str]:
    return {
        name: "raw" for name, values in table.items() if values.ndim == 1 and Dtype.name_of(values.dtype) in ONLY_RAW
    }


def written(table: Any, path: Path, **keywords: Any) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tfr.write_tfrecord(table, path, **keywords)
    return path


# ---- the law


@given(table=tables(st.integers(1, 4)), embed=st.booleans())
def test_any_arrays_come_back(
    engine: str, new_folder: Callable[[], Path], table: dict[str, np.ndarray[Any, Any]], embed: bool
) -> None:
    """By the schema, and raw columns with and without one."""
    for encoding, has_schema in ((raw_where_needed(table), True), (dict.fromkeys(table, "raw"), embed)):
        path = written(table, new_folder() / "a", column_encoding=encoding, embed_schema=has_schema)
        found = tfr.read_arrays(path)
        assert list(found) == list(table) if has_schema else found.keys() == table.keys()
        for name, values in table.items():
            assert_same(found[name], values, name)


def test_one_axis_is_exact_by_the_schema(engine: str, tmp_path: Path) -> None:
    arrays = {name: values_of(name, (300,), 0) for name in ALL if name not in ONLY_RAW}
    found = tfr.read_arrays(written(arrays, tmp_path / "a"))
    alone = tfr.read_arrays(written(arrays, tmp_path / "b", embed_schema=False))
    for name, values in arrays.items():
        assert_same(found[name], values, name)
        exact = alone[name].dtype == values.dtype and alone[name].tobytes() == values.tobytes()
        assert exact == (name not in LISTED or name in ("int64", "float32")), name  # as the record's lists are read


def test_one_axis_that_needs_raw(engine: str, tmp_path: Path) -> None:
    floats = np.array([0.1, -0.0, 1e300, np.nan])
    assert_same(tfr.read_arrays(written({"x": floats}, tmp_path / "a", float64="raw"))["x"], floats)
    with pytest.warns(tfr.errors.PrecisionWarning):
        tfr.write_tfrecord({"x": floats[:1]}, tmp_path / "a")
    assert tfr.read_arrays(tmp_path / "a")["x"].tolist() == [float(np.float32(0.1))]
    with pytest.raises(
        tfr.errors.EncodeError, match=r"pass column_encoding={.*: 'raw'}, or convert the column to text"
    ):
        written({"x": np.array([2**63], np.uint64)}, tmp_path / "a")
    assert tfr.read_arrays(written({"x": np.array(["ab", "c"])}, tmp_path / "a"))["x"].tolist() == ["ab", "c"]
    assert tfr.read_arrays(written({"x": np.array([b"ab", b"c"])}, tmp_path / "a"))["x"].tolist() == [b"ab", b"c"]


@pytest.mark.parametrize("name", TIMES)
def test_no_time_is_kept_in_tensors_and_missing_in_columns(engine: str, tmp_path: Path, name: str) -> None:
    values = np.array(["NaT", 7], dtype_of(name)) if name.startswith("t") else np.array(["NaT", "2001"], dtype_of(name))
    assert_same(tfr.read_arrays(written({"x": values[:, None]}, tmp_path / "a"))["x"], values[:, None])
    found = tfr.read_arrays(written({"x": values}, tmp_path / "a"), missing="mask")["x"]
    assert found.mask.tolist() == [name in LISTED, False]
    assert_same(np.ma.filled(found, np.array("NaT", dtype_of(name))), values)


def test_files_without_records_need_a_schema(engine: str, tmp_path: Path) -> None:
    with pytest.warns(tfr.errors.SchemaWarning, match="no records were written"):
        tfr.write_tfrecord({"x": np.zeros((0, 2, 3), np.float32), "y": np.zeros(0, np.uint8)}, tmp_path / "a")
    with pytest.warns(tfr.errors.SchemaWarning, match=r"read_table\(schema="):
        assert tfr.read_arrays(tmp_path / "a") == {}
    found = tfr.read_arrays(tmp_path / "a", schema={"x": tfr.tensor("float32", (2, 3)), "y": "uint8"})
    assert_same(found["x"], np.zeros((0, 2, 3), np.float32))
    assert_same(found["y"], np.zeros(0, np.uint8))


# ---- tools that copy payloads


@pytest.mark.filterwarnings("ignore:.*embedded schema was found in record:tfrecord_io.errors.SchemaWarning")
@given(data=st.data())
def test_shuffled_and_merged_records_keep_their_tensors(
    engine: str, new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    """The records that carry the schema are moved or removed."""
    tmp_path = new_folder()
    counts = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
    table = data.draw(st.dictionaries(st.sampled_from(COLUMNS), arrays(sum(counts)), min_size=1))
    raw = dict.fromkeys(table, "raw")
    payloads: list[tuple[int, bytes]] = []
    begin = 0
    for count in counts:
        part = {name: values[begin : begin + count] for name, values in table.items()}
        payloads += enumerate(tfr.RecordReader(written(part, tmp_path / "part", column_encoding=raw)), begin)
        begin += count
    if data.draw(st.booleans(), "gone"):
        firsts = np.cumsum([0, *counts[:-1]]).tolist()
        payloads = [(row, payload) for row, payload in payloads if row not in firsts]
    payloads = data.draw(st.permutations(payloads))
    cut = data.draw(st.integers(0, len(payloads)))
    for name, some in (("1", payloads[:cut]), ("2", payloads[cut:])):
        with tfr.RecordWriter(tmp_path / name) as writer:
            for _, payload in some:
                writer.write(payload)
    found = tfr.read_arrays([tmp_path / "1", tmp_path / "2"])
    assert found.keys() == (table.keys() if payloads else set())
    for name in found:
        assert_same(found[name], table[name][[row for row, _ in payloads]], name)


def test_merged_records_of_several_shapes_have_an_unknown_dimension(engine: str, tmp_path: Path) -> None:
    rows = [np.full((size, 2), size, np.float32) for size in (1, 3)]
    with tfr.RecordWriter(tmp_path / "a") as writer:
        for row in rows:
            for payload in tfr.RecordReader(written({"x": row[None]}, tmp_path / "part")):
                writer.write(payload)
    with pytest.raises(tfr.errors.SchemaError, match="differs from that of the file's first record"):
        tfr.read_arrays(tmp_path / "a")
    found = tfr.read_arrays(tmp_path / "a", schema={"x": tfr.tensor("float32", (None, 2))})["x"]
    for row, expected in zip(found, rows, strict=True):
        assert_same(row, expected)


# ---- rows of several shapes, missing rows, other forms


@given(data=st.data())
def test_rows_of_several_shapes_and_missing_ones(
    engine: str, new_folder: Callable[[], Path], data: st.DataObject
) -> None:
    tmp_path = new_folder()
    each: Given = data.draw(columns(data.draw(st.integers(1, 4))))
    present = [cell for cell in each.cells if cell is not None]
    embed = data.draw(st.booleans())
    path = written({"x": each.data}, tmp_path / "a", column_encoding={"x": "raw"}, embed_schema=embed)
    if not present and not embed:
        assert tfr.read_arrays(path) == {}
        return
    found = tfr.read_arrays(path, missing="mask")["x"]
    assert len(found) == len(each.cells)
    for row, expected in enumerate(each.cells):
        if expected is not None:
            assert_same(np.asarray(np.ma.getdata(found)[row]), expected, row)
        else:
            assert found[row] is None if found.dtype == object else np.ma.getmaskarray(found)[row].all()


def test_lists_of_one_shape_are_stacked_and_others_are_objects(engine: str, tmp_path: Path) -> None:
    cells = [np.full((2, i), i, np.int16) for i in (1, 3)]
    found = tfr.read_arrays(written({"x": [*cells, None], "y": [cells[0]] * 3}, tmp_path / "a"))
    assert (found["x"].dtype, found["x"].shape, found["x"][2]) == (np.dtype(object), (3,), None)
    assert_same(found["x"][1], cells[1])
    assert_same(found["y"], np.stack([cells[0]] * 3))


@pytest.mark.parametrize("name", ["bool", "int64", "float32", "complex64"])
def test_empty_rows_and_a_missing_one(engine: str, tmp_path: Path, name: str) -> None:
    empty = np.zeros(0, dtype_of(name))
    found = tfr.read_arrays(written({"x": [empty, empty, None]}, tmp_path / "a"), missing="mask")["x"]
    assert (found.dtype, found.shape) == (empty.dtype, (3, 0))


@pytest.mark.parametrize("order", ["<", ">"])
def test_structured_arrays_are_their_fields(engine: str, tmp_path: Path, order: str) -> None:
    dtype = [
        ("a", f"{order}i2"),
        ("b", f"{order}f8", (2, 1)),
        ("c", f"{order}U3"),
        ("d", f"{order}c16"),
        ("e", f"{order}M8[D]"),
    ]
    given_ = np.zeros(4, dtype)[::-1]
    given_["a"], given_["b"], given_["c"], given_["d"] = range(4), np.arange(8).reshape(4, 2, 1) / 3, "größe", 1j
    found = tfr.read_arrays(written(given_, tmp_path / "a", column_encoding={"c": "raw"}))
    for name in given_.dtype.names:
        assert_same(found[name], given_[name], name)


@pytest.mark.fault(53)
@pytest.mark.parametrize("dtype", ["datetime64[25s]", "timedelta64", "V4", "longdouble", "O", [("a", "i4")]], ids=str)
def test_dtypes_outside_of_the_table_are_refused(engine: str, tmp_path: Path, dtype: Any) -> None:
    with pytest.raises(tfr.errors.EncodeError, match="feature 'x'") as caught:
        tfr.write_tfrecord({"x": np.zeros((2, 2), dtype)}, tmp_path / "a")
    assert "cannot be stored in a TFRecord" in str(caught.value)
    assert not (tmp_path / "a").exists()
