"""Each dtype of the table at each encoding, reader, adapter and file format: its values, or its name in an error.

A new row inherits these tests.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from packaging.requirements import Requirement
from packaging.version import Version

import tfrecord_io as tfr
from protos import content, number, proto
from records import field, varint
from tfrecord_io.apps.cli import tfr as command
from tfrecord_io.bytes.format.dtypes import Dtype, integer_limits
from tfrecord_io.bytes.format.feature_types import Kind
from tfrecord_io.columns.arrow.tensor_values import column_to_cells, ndarray_to_column
from tfrecord_io.columns.schema.field import narrow
from tfrecord_io.columns.schema.tensor_types import (
    TENSOR_ENCODINGS,
    element_and_shape,
    encoding_rules,
    tensor_field,
    written_encodings,
)

MADE = ["S3", "U2", "datetime64[us]", "datetime64[D]", "timedelta64[ms]", "timedelta64[ps]"]  # by their names
ROWS = [*Dtype.TABLE.values(), *map(Dtype.of_name, MADE)]
every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
every_extension = pytest.mark.parametrize("row", [row for row in ROWS if row.is_extension], ids=lambda row: row.name)


def values_of(row: Dtype, count: int = 6) -> np.ndarray[Any, Any]:
    """Values that differ, among them the least and the greatest of integers."""
    if row.kind in "SU":
        return np.array([chr(ord("a") + at) * (at % 3 + 1) for at in range(count)], row.dtype)
    if row.wide.kind in "iu":
        least, most = integer_limits(row)
        return np.array([*range(count - 2), least, most], row.wide).astype(row.dtype)
    if row.kind == "c":
        return (np.arange(count) + 1j * np.arange(count)[::-1]).astype(row.dtype)
    if row.kind in "Mm":
        return np.arange(-2, count - 2).astype(row.dtype)
    return (np.arange(count) / 2 - 1).astype(row.dtype) if row.kind != "b" else np.arange(count) % 2 == 0


def bits(values: Any) -> tuple[Any, ...]:
    array = np.asarray(values)
    return Dtype.name_of(array.dtype), array.shape, np.ascontiguousarray(array).tobytes()


def is_refused(row: Dtype, call: Callable[[], Any]) -> bool:
    """True if a call raises an error of the library that names the dtype, or what holds it."""
    caught: list[Exception] = []
    try:
        call()
    except Exception as error:
        caught.append(error)
    assert all(row.name in str(error) for error in caught), caught
    return bool(caught)


@pytest.fixture
def written(tmp_path: Path) -> Callable[[Dtype], Path]:
    """A file with a tensor and a single value of the dtype in each row, and a plain column."""

    def write(row: Dtype) -> Path:
        values = values_of(row)
        table = {"x": values.reshape(3, 2), "one": values[:3], "id": [1, 2, 3]}
        tfr.write_tfrecord(table, tmp_path / "a.tfrecord", column_encoding={"x": "raw"})
        return tmp_path / "a.tfrecord"

    return write


# ---- the rows


def test_names_and_numbers_are_given_once() -> None:
    numbers = [row.tensor_field.number for row in ROWS if row.tensor_field is not None]
    assert len(set(numbers)) == len(numbers)
    assert [row.name for row in ROWS] == list(dict.fromkeys(row.name for row in ROWS))


@every_extension
def test_the_extra_installs_a_version_that_has_the_dtype(row: Dtype) -> None:
    import ml_dtypes

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    stated, (extra,) = Requirement(row.library), map(Requirement, project["optional-dependencies"]["bfloat16"])
    assert stated.name == extra.name
    assert hasattr(ml_dtypes, row.name) == (Version(ml_dtypes.__version__) in stated.specifier), (
        f"ml_dtypes {ml_dtypes.__version__}: state the first version that has {row.name}"
    )


def test_a_dtype_of_a_newer_library_says_which_one_to_install() -> None:
    row = Dtype.TABLE["int4"]._replace(name="int3", library="ml_dtypes>=77.5")
    with pytest.raises(tfr.errors.MissingDependencyError, match=r"ml_dtypes [\d.]+ has no int3.*'ml_dtypes>=77\.5'"):
        row.dtype  # noqa: B018


@every_row
def test_a_row_is_that_of_its_dtype(row: Dtype) -> None:
    assert Dtype.find(row.name, loads=False) == Dtype.of_name(row.name) == row
    assert Dtype.name_of(row.dtype) == row.name
    assert row.dtype.itemsize == row.itemsize
    width = 1 if row.kind == "b" else row.arrow.bit_width // 8
    assert width * int(np.prod(row.inner)) == row.itemsize
    assert (row.kind == "V") == row.is_extension == (Dtype.extension_of(row.dtype) is not None)
    assert row.is_extension or row.kind == row.dtype.kind


@every_extension
def test_a_row_is_documented(row: Dtype) -> None:
    page = (Path(__file__).parents[2] / "docs" / "howto" / "tensors.md").read_text("utf-8")
    (line,) = (line for line in page.splitlines() if line.startswith("|") and "`bfloat16`" in line)
    assert f"`{row.name}`" in line, "docs/howto/tensors.md: add it to the table of dtypes"
    (refused,) = re.findall(r"`to_tf` refuses\s([^.]*)", page)
    assert (f"`{row.name}`" in refused) == (not row.is_in_tf_data), "docs/howto/tensors.md: which `to_tf` refuses"


@every_extension
def test_the_wide_dtype_has_all_values(row: Dtype) -> None:
    every = np.arange(256**row.itemsize).astype(f"u{row.itemsize}").view(row.dtype)
    wide = every.astype(row.wide)
    assert wide.dtype.isbuiltin == 1
    assert wide.dtype.kind in "iuf"
    again, misfit = narrow(wide, row)
    assert misfit == -1
    assert np.array_equal(again.astype(row.wide), wide, equal_nan=wide.dtype.kind == "f")


@every_extension
def test_a_number_that_is_no_value_is_found(row: Dtype) -> None:
    if row.wide.kind in "iu":
        least, most = integer_limits(row)
        for bad in (least - 1, most + 1, 2**40):
            assert narrow(np.array([least, most, bad]), row)[1] == 2
    else:
        import ml_dtypes

        greatest = float(ml_dtypes.finfo(row.dtype).max)
        has_infinity = bool(np.isinf(np.array([np.inf]).astype(row.dtype).astype(row.wide)).all())
        found, misfit = narrow(np.array([0.0, np.nan, greatest * 4]), row)
        assert misfit == (-1 if has_infinity else 2)
        assert np.isnan(found.astype(row.wide)[1])


# ---- encodings


@every_row
@pytest.mark.parametrize("encoding", written_encodings())
def test_an_encoding_has_the_values_or_refuses_the_name(tmp_path: Path, row: Dtype, encoding: str) -> None:
    array = values_of(row).reshape(3, 2)
    storage = pa.Table.from_arrays([ndarray_to_column(array)[0]], schema=pa.schema([tensor_field("x", row, (2,))]))
    path = tmp_path / "a"
    if row.name == "uint64" and encoding == "list":
        storage = storage.slice(0, 2)  # the third has a number beyond 2**63
    if is_refused(row, lambda: tfr.write_tfrecord(storage, path, column_encoding={"x": encoding})):
        assert not TENSOR_ENCODINGS.has(encoding) or not encoding_rules(encoding).stores(row)
        assert not path.exists()
        return
    assert bits(tfr.read_arrays(path)["x"]) == bits(array[: len(storage)])


@every_row
def test_lists_of_numbers_are_read_as_the_dtype(tmp_path: Path, row: Dtype) -> None:
    declared = {"x": tfr.tensor(row.name, (2,), encoding="list")}
    if row.feature is None:
        tfr.write_tfrecord({"x": [[1, 2]]}, tmp_path / "a", embed_schema=False)
        assert is_refused(row, lambda: tfr.read_table(tmp_path / "a", schema=declared))
        return
    array = values_of(row).reshape(3, 2)
    numbers = array.view("i8") if row.kind in "Mm" else array.astype(row.wide)
    if row.kind == "c":
        numbers = numbers.view(row.arrow.to_pandas_dtype()).reshape(3, 4)
    if row.wide == np.dtype("uint64"):
        numbers = numbers.view("i8")
    stored = numbers.astype("f4" if row.feature is Kind.FLOAT else "i8")
    tfr.write_tfrecord(
        {"x": stored.tolist()} if row.feature is Kind.INT64 else {"x": [*stored]}, tmp_path / "a", embed_schema=False
    )
    if row.wide == np.dtype("uint64"):  # numbers beyond 2**63 are no values of an Int64List
        array = array[:2]
        found = tfr.read_arrays(tmp_path / "a", schema=declared, limit=2)["x"]
    else:
        found = tfr.read_arrays(tmp_path / "a", schema=declared)["x"]
    expected = array.astype(row.wide).astype("f4").astype(row.dtype) if row.wide == np.dtype("f8") else array
    assert bits(found) == bits(expected)


@every_extension
def test_a_list_with_a_number_that_is_no_value_names_its_record(tmp_path: Path, row: Dtype) -> None:
    if row.wide.kind not in "iu":
        return
    tfr.write_tfrecord({"x": [[0, 1], [1, integer_limits(row)[1] + 1]]}, tmp_path / "a", embed_schema=False)
    expected = f"record 1: feature 'x': {integer_limits(row)[1] + 1} is not a value of {row.name}"
    with pytest.raises(tfr.errors.DecodeError, match=expected):
        tfr.read_table(tmp_path / "a", schema={"x": tfr.tensor(row.name, (2,))})


# ---- readers and writers


@every_row
def test_readers_have_the_dtype_and_the_bits(written: Any, row: Dtype) -> None:
    path, array = written(row), values_of(row).reshape(3, 2)
    table = tfr.read_table(path)
    assert element_and_shape(table.schema.field("x")) == (row, (2,))
    cells = [cell for chunk in table["x"].chunks for cell in column_to_cells(chunk, table.schema.field("x"))]
    arrays = tfr.read_arrays(path)
    (batch,) = tfr.dataset(path).iter_arrays(batch_size=3)
    for found in (np.stack(cells), arrays["x"], batch["x"], np.stack(list(tfr.read_tfrecord(path)["x"]))):
        assert bits(found) == bits(array)
    if row.kind not in "SU":  # single ones are columns of text
        assert bits(arrays["one"]) == bits(array.reshape(-1)[:3])
        assert [np.asarray(each).tolist() for each in tfr.read_tfrecord(path)["one"]] == array.reshape(-1)[:3].tolist()


@every_row
def test_rows_of_several_shapes_are_padded_by_zeros(tmp_path: Path, row: Dtype) -> None:
    values = values_of(row)
    table = {"x": [values[:1].reshape(1, 1), values[1:3].reshape(2, 1)]}
    tfr.write_tfrecord(table, tmp_path / "a", column_encoding={"x": "raw"})
    (batch,) = tfr.dataset(tmp_path / "a").iter_arrays(batch_size=2, ragged="pad")
    expected = np.zeros((2, 2, 1), row.dtype)
    expected[0, 0], expected[1] = values[0], values[1:3].reshape(2, 1)
    assert bits(batch["x"]) == bits(expected)


@every_row
def test_a_default_is_of_the_dtype(tmp_path: Path, row: Dtype) -> None:
    tfr.write_tfrecord({"y": [1]}, tmp_path / "a", embed_schema=False)
    values = values_of(row)[:2]
    schema = {"x": tfr.tensor(row.name, (2,), default=values)}
    assert bits(tfr.read_arrays(tmp_path / "a", schema=schema)["x"]) == bits(values.reshape(1, 2))
    again = tfr.Schema.from_json(tfr.Schema(schema).to_json())
    assert bits(tfr.read_arrays(tmp_path / "a", schema=again)["x"]) == bits(values.reshape(1, 2))
    if row.is_extension:
        with pytest.raises(tfr.errors.SchemaError, match=row.name):
            tfr.tensor(row.name, (2,), default=["a", "b"])
        if row.wide.kind in "iu":
            with pytest.raises(tfr.errors.SchemaError, match=row.name):
                tfr.tensor(row.name, (2,), default=[0, integer_limits(row)[1] + 1])


@every_row
def test_schemas_name_the_dtype(row: Dtype) -> None:
    schema = tfr.Schema({"x": tfr.tensor(row.name, (2, None), encoding="raw")})
    assert schema == tfr.Schema({"x": tfr.tensor(row.dtype, (2, None), encoding="raw")}) or row.kind in "SU"
    assert schema["x"].type_name == f"tensor<{row.name}>[2,?]"
    assert tfr.Schema.from_json(schema.to_json()) == schema
    assert tfr.Schema(schema.to_arrow()) == schema


# ---- tf.io and TensorProtos


@every_row
def test_a_tensor_proto_holds_the_values_or_the_name_is_refused(row: Dtype) -> None:
    array = values_of(row).reshape(3, 2)
    if row.kind in "SU":
        assert tfr.io.parse_tensor(tfr.io.serialize_tensor(array)).dtype == object
        return
    if row.tensor_field is None:
        assert is_refused(row, lambda: tfr.io.serialize_tensor(array))
        return
    serialized = tfr.io.serialize_tensor(array)
    assert serialized == proto(row.tensor_field.number, (3, 2), content(array.tobytes()))
    assert bits(tfr.io.parse_tensor(serialized, row.name)) == bits(array)
    assert bits(tfr.io.parse_tensor(serialized)) == bits(array)


@every_extension
def test_values_in_the_field_of_a_tensor_proto(row: Dtype) -> None:
    values, stated = values_of(row, 6), row.tensor_field
    if stated is None:
        return
    tags = {"half_val": 13, "int_val": 7, "float8_val": 18}
    if stated.field == "int_val":
        packed = b"".join(varint(value % 2**64) for value in values[-2:].astype(int).tolist())
    elif stated.field == "float8_val":
        packed = values[-2:].tobytes()
    else:
        packed = b"".join(map(varint, values[-2:].view("u2").tolist()))
    expected = np.concatenate([values[-2:], values[-1:]])
    assert bits(tfr.io.parse_tensor(proto(stated.number, (3,), field(tags[stated.field], packed)))) == bits(expected)
    if row.wide.kind in "iu":
        bad = proto(stated.number, (1,), number(7, integer_limits(row)[1] + 1))
        with pytest.raises(tfr.errors.DecodeError, match=f"a value is outside of {row.name}"):
            tfr.io.parse_tensor(bad)


@every_row
def test_decode_raw_makes_the_dtype_or_refuses_the_name(row: Dtype) -> None:
    array = values_of(row)
    if row.kind in "SU":
        assert is_refused(row, lambda: tfr.io.decode_raw(array.tobytes(), row.name))
    else:
        assert bits(tfr.io.decode_raw(array.tobytes(), row.name)) == bits(array)


@every_extension
def test_features_of_an_example_are_the_same_numbers(row: Dtype) -> None:
    values = values_of(row)
    record = tfr.encode_example({"x": values, "one": values[0]})
    decoded = tfr.decode_example(record)
    assert decoded["x"].dtype == ("float32" if row.feature is Kind.FLOAT else "int64")
    assert decoded["x"].tolist() == values.astype(row.wide).tolist()
    assert decoded["one"].tolist() == values[:1].astype(row.wide).tolist()


# ---- commands, and calls that take single values


@every_row
def test_describe_and_head_show_the_values(written: Any, row: Dtype) -> None:
    path, values = written(row), values_of(row)
    result = CliRunner().invoke(command, ["describe", str(path), "--json"])
    assert result.exit_code == 0, result.output
    column = json.loads(result.output)["columns"][0]
    assert column["name"] == "x"
    assert row.name in column["type"]
    if row.is_extension or row.kind in "iuf":
        wide = values.astype(row.wide)
        assert (column["minimum"], column["maximum"]) == (wide.min().item(), wide.max().item())
    if not row.has_order:
        assert column.get("minimum") is None
    result = CliRunner().invoke(command, ["head", str(path), "--json"])
    assert result.exit_code == 0, result.output
    if row.is_extension or row.kind in "iufb":
        assert json.loads(result.output)[2]["x"] == values.reshape(3, 2).astype(row.wide)[2].tolist()


@every_extension
def test_steps_become_single_values(tmp_path: Path, row: Dtype) -> None:
    array = values_of(row).reshape(3, 2)
    tfr.write_tfrecord({"steps/x": array}, tmp_path / "a")
    found = tfr.explode(tmp_path / "a").read_all()["steps/x"]
    assert found.to_pylist() == array.reshape(-1).astype(row.wide).tolist()


def test_the_feature_description_shows_what_tensorflow_decodes(tmp_path: Path) -> None:
    rows = [row for row in ROWS if row.kind not in "SU"]
    tables = {row.name: values_of(row).reshape(3, 2) for row in rows}
    tfr.write_tfrecord(tables, tmp_path / "a", column_encoding=dict.fromkeys(tables, "raw"))
    result = CliRunner().invoke(command, ["schema", str(tmp_path / "a"), "--as", "feature_description"])
    assert result.exit_code == 0, result.output
    for row in rows:
        assert (f", tf.{row.name}), [2])" in result.output) == row.is_decoded_raw, row.name


# ---- adapters


@every_row
@pytest.mark.parametrize("library", ["duckdb", "polars", "dask"])
def test_a_library_shows_the_values_or_refuses_the_name(written: Any, row: Dtype, library: str) -> None:
    module = pytest.importorskip("dask.dataframe" if library == "dask" else library)
    data = tfr.dataset(written(row))

    def query(name: str) -> list[Any]:
        selected = data.select([name])
        if library == "duckdb":
            with module.connect() as connection:
                return [cell for (cell,) in selected.to_duckdb(connection).fetchall()]
        if library == "polars":
            return selected.to_polars().collect()[name].to_list()
        return selected.to_dask().compute(scheduler="sync")[name].tolist()

    assert query("id") == [1, 2, 3]
    if row.is_hidden:
        assert is_refused(row, lambda: query("x"))
    elif not is_refused(row, lambda: query("x")) and row.kind in "iufb":
        assert [list(cell) for cell in query("x")] == values_of(row).reshape(3, 2).astype(row.wide).tolist()


@every_row
def test_torch_makes_the_stated_dtype(written: Any, row: Dtype) -> None:
    torch = pytest.importorskip("torch")
    (batch,) = tfr.dataset(written(row)).select(["x"]).to_torch(batch_size=3)
    array = values_of(row).reshape(3, 2)
    if row.torch is None:
        assert batch["x"] == array.tolist()
        return
    assert batch["x"].dtype == getattr(torch, row.torch)
    expected = array.view("i8") if row.kind in "Mm" else array.astype(row.wide)
    assert batch["x"].to(torch.float64 if row.kind == "V" else batch["x"].dtype).tolist() == expected.tolist()


@every_extension
def test_torch_tensors_are_written(tmp_path: Path, row: Dtype) -> None:
    torch = pytest.importorskip("torch")
    if row.torch != row.name:
        return
    values = values_of(row).reshape(3, 2)
    tensor = torch.from_numpy(values.astype(row.wide)).to(getattr(torch, row.torch))
    tfr.write_tfrecord({"x": tensor}, tmp_path / "a")
    assert bits(tfr.read_arrays(tmp_path / "a")["x"]) == bits(values)
    assert tfr.decode_example(tfr.encode_example({"x": tensor[0]}))["x"].tolist() == values[0].tolist()


@every_row
def test_tf_makes_the_dtype(written: Any, row: Dtype) -> None:
    tf = pytest.importorskip("tensorflow")
    if row.kind in "SU" or row.kind in "Mm":
        return
    data = tfr.dataset(written(row)).select(["x"])
    if not row.is_in_tf_data:
        with pytest.raises(tfr.errors.SchemaError, match=f"feature 'x': tf.data has no {row.name}; leave it out"):
            data.to_tf(batch_size=3)
        return
    (batch,) = data.to_tf(batch_size=3)
    assert batch["x"].dtype == tf.as_dtype(row.dtype)
    assert bits(batch["x"].numpy()) == bits(values_of(row).reshape(3, 2))


# ---- file formats


@every_row
@pytest.mark.parametrize("suffix", ["npz", "npy", "zarr", "h5", "nc", "parquet", "arrow", "jsonl", "csv"])
def test_a_file_format_has_the_values_or_refuses_the_name(
    written: Any, tmp_path: Path, row: Dtype, suffix: str
) -> None:
    for module in {"zarr": ["zarr"], "h5": ["h5py"], "nc": ["h5netcdf"]}.get(suffix, []):
        pytest.importorskip(module)
    target = tmp_path / f"out.{suffix}"
    array = values_of(row).reshape(3, 2)
    rows = 2 if row.name == "uint64" and suffix == "jsonl" else 3  # the third has a number beyond 2**63
    if is_refused(row, lambda: tfr.convert(written(row), target, columns=["x"], limit=rows)):
        return
    tfr.convert(target, tmp_path / "back")
    array = array[:rows]
    found = np.asarray(next(iter(tfr.read_arrays(tmp_path / "back").values())))
    if suffix in ("parquet", "arrow"):
        assert bits(found) == bits(array)
    elif row.kind in "biufV":  # a format may store them as wider numbers
        assert found.tolist() == array.astype(row.wide).tolist()
