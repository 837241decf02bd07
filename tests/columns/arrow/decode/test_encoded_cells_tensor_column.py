"""Reading by a schema: arrays of a declared shape, fixed numbers of values, renamed columns, casts, defaults."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from reading import read_by
from records import blobs, example, floats, int64s, written
from strategies import sequence_example
from tfrecord_io.columns.arrow.tensor_values import column_to_cells
from tfrecord_io.columns.schema.embedded import field_bytes, pack
from tfrecord_io.columns.schema.field_makers import image, list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import variable_shape_tensor

pytestmark = pytest.mark.usefixtures("engine")


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Read payloads by a schema."""

    def read(payloads: list[bytes], schema: Any, **keywords: Any) -> pa.Table:
        table = read_by(
            tfr.read_table, written(tmp_path / "x.tfrecord", payloads), schema=Schema.parse(schema), **keywords
        )
        table.validate(full=True)
        return table

    return read


def cells(table: pa.Table, name: str) -> list[Any]:
    """The tensors of a column as nested lists."""
    found = column_to_cells(table[name].combine_chunks(), table.schema.field(name))
    return [None if cell is None else cell.tolist() for cell in found]


def raw(*values: float, dtype: str = "<f4") -> bytes:
    return blobs(np.array(values, dtype).tobytes())


# ---- arrays


@pytest.mark.parametrize("encoding", ["wire", "raw", "list"])
def test_number_lists_and_raw_bytes_become_arrays(read: Any, encoding: str) -> None:
    rows = [[1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11, 12]]
    write = raw if encoding == "raw" else floats
    payloads = [example(x=write(*rows[0])), b"", example(x=b""), example(x=write(*rows[1]))]
    column = read(payloads, {"x": tensor("float32", (2, 3), encoding=encoding)})["x"]
    assert column.type == pa.fixed_shape_tensor(pa.float32(), [2, 3])
    assert column.to_pylist() == [rows[0], None, None, rows[1]]
    present = column.combine_chunks().drop_null()
    assert present.to_numpy_ndarray().tolist() == np.reshape(rows, (2, 2, 3)).tolist()


def test_what_the_records_have_decides(read: Any) -> None:
    schema = {"x": tensor("uint8", (2, 2))}
    assert read([example(x=int64s(1, 2, 3, 255))], schema)["x"].to_pylist() == [[1, 2, 3, 255]]
    assert read([example(x=blobs(b"\1\2\3\xff"))], schema)["x"].to_pylist() == [[1, 2, 3, 255]]


@pytest.mark.parametrize(
    ("dtype", "stored"),
    [("int16", "<i2"), ("uint64", "<u8"), ("float16", "<f2"), ("float64", "<f8"), ("bool", "?"), ("int8", "i1")],
)
def test_raw_arrays_of_any_number(read: Any, dtype: str, stored: str) -> None:
    values = np.array([[1, 0], [0, 1]], stored)
    column = read([example(x=blobs(values.tobytes()))], {"x": tensor(dtype, (2, 2), encoding="raw")})["x"]
    assert column.to_pylist() == [values.reshape(-1).tolist()]


@pytest.mark.fault(48)
@pytest.mark.parametrize("schema", [{"x": tensor("float32", (2, 2))}, {"x": list_("float32", 4)}])
def test_another_number_of_values_is_refused(read: Any, schema: Any) -> None:
    payloads = [example(x=floats(1, 2, 3, 4)), b"", example(x=floats(1, 2, 3)), example(x=floats(1, 2, 3, 4))]
    with pytest.raises(tfr.errors.DecodeError, match=r"record 2.*feature 'x': expected 4 values.*got 3") as caught:
        read(payloads, schema)
    error = caught.value
    assert (error.feature, error.record, error.expected, error.got, error.records_intact) == ("x", 2, 4, 3, 2)


@pytest.mark.fault(51)
@pytest.mark.parametrize(("size", "expected"), [(15, 16), (12, 16), (20, 16), (0, 16)])
def test_bytes_of_another_length_are_refused(read: Any, size: int, expected: object) -> None:
    payloads = [example(x=raw(1, 2, 3, 4)), example(x=blobs(bytes(size)))]
    with pytest.raises(tfr.errors.DecodeError, match="feature 'x'") as caught:
        read(payloads, {"x": tensor("float32", (2, 2))})
    assert (caught.value.record, caught.value.expected) == (1, expected)


@pytest.mark.fault(43)
def test_another_kind_is_refused(read: Any) -> None:
    with pytest.raises(tfr.errors.FeatureTypeError, match=r"record 1.*'x'"):
        read([example(x=int64s(1, 2)), example(x=floats(1, 2))], {"x": tensor("int64", (2,))})
    with pytest.raises(tfr.errors.FeatureTypeError, match="'x'"):
        read([example(x=raw(1, 2))], {"x": tensor("float32", (2,), encoding="list")})
    with pytest.raises(tfr.errors.FeatureTypeError, match="'x'"):
        read([example(x=floats(1, 2))], {"x": tensor("float32", (2,), encoding="raw")})


def test_each_record_may_have_another_kind(read: Any) -> None:
    records = [example(x=floats(1, 2)), example(x=raw(3, 4)), example(), example(x=int64s(5, 6)), example(x=raw(7, 8))]
    expected = [[1, 2], [3, 4], None, [5, 6], [7, 8]]
    assert cells(read(records, {"x": tensor("float32", (2,))}), "x") == expected
    assert cells(read(records[:1] + records[2:4], {"x": tensor("float64", (2,), encoding="list")}), "x") == [
        expected[0],
        None,
        expected[3],
    ]
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*'x': the integer cannot be read as float without"):
        read([*records[:1], example(x=int64s(0, 2**24 + 1))], {"x": tensor("float32", (2,))})


def test_several_bytes_values_are_no_array(read: Any) -> None:
    with pytest.raises(tfr.errors.DecodeError, match="expected one value, got 2"):
        read([example(x=blobs(bytes(4), bytes(4)))], {"x": tensor("float32", (2,))})


def test_values_outside_of_the_dtype_are_refused(read: Any) -> None:
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*the value is not a valid uint8"):
        read([example(x=int64s(1, 2)), example(x=int64s(1, 256))], {"x": tensor("uint8", (2,))})


@pytest.mark.parametrize("write", [floats, raw])
def test_the_number_of_values_says_how_long_one_free_axis_is(read: Any, write: Any) -> None:
    schema = {"x": tensor("float32", (None, 2))}
    payloads = [example(x=write(1, 2, 3, 4)), b"", example(x=write(5, 6)), example(x=write())]
    table = read(payloads, schema)
    assert table["x"].type == variable_shape_tensor(pa.float32(), (None, 2))
    assert cells(table, "x") == [[[1, 2], [3, 4]], None, [[5, 6]], []]
    assert Schema.from_arrow(table.schema)["x"].shape == (None, 2)
    with pytest.raises(tfr.errors.DecodeError, match=r"feature 'x': .*a multiple of") as caught:
        read([*payloads, example(x=write(1, 2, 3))], schema)
    assert (caught.value.record, caught.value.got) == (4, 3 if write is floats else 12)


@pytest.mark.parametrize("write", [floats, raw])
def test_several_free_axes_need_the_companion(read: Any, write: Any) -> None:
    schema = {"x": tensor("float32", (None, None))}
    payloads = [
        example(x=write(1, 2), **{"x/shape": int64s(1, 2)}),
        b"",
        example(x=write(3, 4), **{"x/shape": int64s(2, 1)}),
    ]
    assert cells(read(payloads, schema), "x") == [[[1, 2]], None, [[3], [4]]]
    with pytest.raises(tfr.errors.DecodeError, match=r"record 3.*'x/shape'"):
        read([*payloads, example(x=write(1))], schema)


def test_single_values_and_empty_arrays(read: Any) -> None:
    payloads = [example(a=raw(1.5), b=floats(2.5), e=floats()), b""]
    schema = {"a": tensor("float32", ()), "b": tensor("float32", ()), "e": tensor("float32", (2, 0))}
    assert read(payloads, schema).to_pydict() == {"a": [1.5, None], "b": [2.5, None], "e": [[], None]}


def test_arrays_of_text(read: Any) -> None:
    table = read([example(x=blobs(b"a", b"b", b"c", b"d"))], {"x": tensor("string", (2, 2))})
    assert table["x"].to_pylist() == [["a", "b", "c", "d"]]
    assert Schema.from_arrow(table.schema)["x"].shape == (2, 2)


@pytest.mark.fault(44)
def test_defaults_of_arrays_and_lists(read: Any) -> None:
    payloads = [example(x=int64s(1, 2), y=int64s(3, 4)), example(y=b"")]
    schema = {
        "x": tensor("uint8", (2,), default=7),
        "y": list_("int8", 2, default=[8, 9]),
        "z": list_("int64", default=[1]),
    }
    assert read(payloads, schema).to_pydict() == {"x": [[1, 2], [7, 7]], "y": [[3, 4], [8, 9]], "z": [[1], [1]]}


@pytest.mark.fault(44)
@pytest.mark.parametrize(
    "made", [tensor("uint8", (2,), required=True), list_("int64", required=True), scalar("int64", required=True)]
)
def test_required_features(read: Any, made: Any) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match=r"record 0.*'y'"):
        read([example(x=int64s(1))], {"y": made})


# ---- steps


def test_steps_of_arrays(read: Any) -> None:
    payloads = [
        sequence_example({}, {"x": [raw(1, 2), raw(3, 4)], "y": [int64s(1), int64s(2)]}),
        b"",
        sequence_example({}, {"x": []}),
    ]
    schema = {"x": sequence(tensor("float32", (2,))), "y": sequence("int8")}
    table = read(payloads, schema, record_type="sequence_example")
    assert table["x"].type == pa.list_(pa.fixed_shape_tensor(pa.float32(), [2]))
    assert [None if row is None else [step.as_py() for step in row] for row in map(_steps, table["x"])] == [
        [[1, 2], [3, 4]],
        None,
        [],
    ]
    assert table["y"].to_pylist() == [[1, 2], None, None]


@pytest.mark.parametrize("outer", [pa.large_list, lambda item: pa.list_(item, 2)], ids=["large", "fixed"])
def test_steps_of_arrays_in_the_declared_lists(read: Any, outer: Any) -> None:
    declared = outer(pa.fixed_shape_tensor(pa.float32(), [2]))
    payloads = [sequence_example({}, {"x": [floats(1, 2), floats(3, 4)]}), b""]
    table = read(payloads, pa.schema({"x": declared}), record_type="sequence_example")
    assert table["x"].type == declared
    assert table["x"].is_valid().to_pylist() == [True, False]
    assert [step.as_py() for step in table["x"][0].values] == [[1, 2], [3, 4]]


def test_another_number_of_steps_of_arrays_than_declared_is_refused(read: Any) -> None:
    schema = pa.schema({"x": pa.list_(pa.fixed_shape_tensor(pa.float32(), [2]), 3)})
    payloads = [sequence_example({}, {"x": [floats(1, 2), floats(3, 4)]})]
    with pytest.raises(tfr.errors.DecodeError, match="expected 3 values, got 2"):
        read(payloads, schema, record_type="sequence_example")


def _steps(row: Any) -> Any:
    return list(row.values) if row.is_valid else None


def test_frames_as_bytes(read: Any) -> None:
    """YouTube-8M: each step is the bytes of 4 (there 1024) values."""
    payloads = [
        sequence_example({"id": blobs(b"v")}, {"rgb": [blobs(bytes([1, 2, 3, 4])), blobs(bytes([5, 6, 7, 8]))]})
    ]
    schema = {"id": scalar("string"), "rgb": sequence(tensor("uint8", (4,), encoding="raw"))}
    table = read(payloads, schema, record_type="sequence_example")
    frames = table["rgb"][0].values.to_numpy_ndarray()
    assert frames.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_steps_with_a_free_axis(read: Any) -> None:
    """learning_to_simulate: each step is the raw float32 positions of as many particles."""
    payloads = [sequence_example({}, {"position": [raw(1, 2, 3, 4), raw(5, 6)]})]
    schema = {"position": sequence(tensor("float32", (None, 2)))}
    table = read(payloads, schema, record_type="sequence_example")
    assert [
        step.tolist()
        for step in column_to_cells(table["position"].chunk(0).values, pa.field("", table["position"].type.value_type))
    ] == [[[1, 2], [3, 4]], [[5, 6]]]
    bad = [*payloads, sequence_example({}, {"position": [raw(1, 2), raw(1, 2, 3)]})]
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*a multiple of 8") as caught:
        read(bad, schema, record_type="sequence_example")
    assert caught.value.feature == "position"


def test_a_sequence_of_structs_is_refused(read: Any) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="struct"):
        read([b""], {"x": sequence("struct<a: int8>")}, record_type="sequence_example")


# ---- casts and columns


def test_columns_stand_in_the_schemas_order_under_their_own_names(read: Any) -> None:
    payloads = [example(a=int64s(1), b=floats(2), c=blobs(b"x"), d=int64s(9))]
    schema = {"z": scalar("int8", feature="a"), "c": scalar("string"), "y": list_("float32", feature="b")}
    table = read(payloads, schema)
    assert table.to_pydict() == {"z": [1], "c": ["x"], "y": [[2.0]]}
    assert table.schema.field("z").metadata is None
    assert read(payloads, schema, columns=["y", "z"]).column_names == ["y", "z"]


@pytest.mark.parametrize("made", [scalar("uint8", feature="a", default=3, required=True), list_("uint8", feature="a")])
def test_what_was_renamed_is_written_under_its_new_name(read: Any, made: Any, tmp_path: Path) -> None:
    table = read([example(a=int64s(1))], {"z": made})
    tfr.write_tfrecord(table, tmp_path / "again.tfrecord")
    assert tfr.read_table(tmp_path / "again.tfrecord") == table


def test_a_table_that_names_features_is_written_under_its_columns_names(tmp_path: Path) -> None:
    schema = Schema({"z": scalar("int8", feature="a", default=5)}).to_arrow()
    table = pa.table({"z": pa.array([1, None], pa.int8())}, schema=schema)
    tfr.write_tfrecord(table, tmp_path / "x.tfrecord")
    assert tfr.read_table(tmp_path / "x.tfrecord") == table


CASTS: list[tuple[Any, bytes, Any, bytes | None]] = [
    (scalar("bool"), int64s(1), True, int64s(2)),
    (scalar("int8"), int64s(-128), -128, int64s(128)),
    (scalar("uint32"), int64s(2**32 - 1), 2**32 - 1, int64s(-1)),
    (scalar("uint64"), int64s(2**63 - 1), 2**63 - 1, int64s(-1)),
    (scalar("timestamp[s]"), int64s(0), np.datetime64(0, "s").item(), None),
    (scalar("date32"), int64s(1), np.datetime64(1, "D").item(), int64s(2**31)),
    (scalar("float16"), floats(1.5), 1.5, floats(1e9)),
    (scalar("float64"), floats(1.5), 1.5, None),
    (scalar("dictionary<values=string, indices=int8, ordered=0>"), blobs(b"cat"), "cat", blobs(b"\xff")),
    (scalar("string"), blobs("é".encode()), "é", blobs(b"\xff")),
    (scalar("fixed_size_binary[2]"), blobs(b"ab"), b"ab", blobs(b"abc")),
    (scalar("decimal128(4, 2)"), blobs(b"1.50"), None, blobs(b"x")),
    (list_("int8"), int64s(1, -1), [1, -1], int64s(1, 300)),
    (scalar("binary"), blobs(b"\xff"), b"\xff", None),
    (image(), blobs(b"\x89PNG"), b"\x89PNG", None),
    (scalar("int64"), int64s(1), 1, int64s(1, 2)),
]


@pytest.mark.parametrize(("made", "good", "value", "bad"), CASTS, ids=[str(case[0].type) for case in CASTS])
def test_casts_are_checked(read: Any, made: Any, good: bytes, value: Any, bad: bytes | None) -> None:
    table = read([example(x=good), b"", example(x=good)], {"c": _of("x", made)})
    assert table["c"].type == made.type
    if value is not None:
        assert table["c"].to_pylist() == [value, None, value]
    if bad is not None:
        with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*feature 'x'"):
            read([example(x=good), example(x=bad)], {"c": _of("x", made)})


def _of(feature: str, made: Any) -> Any:
    return type(made)("", made.type, feature, made.encoding)


@pytest.mark.fault(43)
@pytest.mark.parametrize("first", [int64s(1), floats(1.0), blobs(b"x")], ids=["int64s", "floats", "bytes"])
def test_a_companion_with_several_feature_types_is_named(read: Any, first: bytes) -> None:
    """Of another type in all records it is ignored, as another feature of that name; of several it is an error."""
    schema = {"x": tensor("int8", (1,))}
    ignored = [example(**{"x": blobs(b"1"), "x/shape": first})] * 2
    assert cells(read(ignored, schema), "x") == [[49], [49]]
    other = floats(1.0) if first == blobs(b"x") else blobs(b"x")
    mixed = [*ignored, example(**{"x": blobs(b"1"), "x/shape": other})]
    with pytest.raises(
        tfr.errors.FeatureTypeError, match=r"record 2 .*feature 'x/shape'.*companion of the tensor 'x'"
    ) as caught:
        read(mixed, schema)
    assert "schema={'x': 'binary'}" in str(caught.value)
    assert read(mixed, {"x": pa.binary()})["x"].to_pylist() == [b"1"] * 3


def test_raw_bytes_of_the_null_type_are_refused(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.list_(pa.null()), metadata={"tfrecord_io.encoding": "raw"})])
    path = written(tmp_path / "a", [field_bytes(pack(schema)) + example(x=blobs(b"1"))])
    with pytest.raises(tfr.errors.SchemaError, match="feature 'x': its encoding is 'raw', which needs a dtype"):
        tfr.read_table(path)
    assert tfr.read_table(path, schema="infer")["x"].to_pylist() == ["1"]


@pytest.mark.parametrize("value", [pa.string(), pa.dictionary(pa.int8(), pa.string()), pa.json_()], ids=str)
@pytest.mark.parametrize("outer", [lambda type_: type_, pa.list_], ids=["one", "list"])
@pytest.mark.parametrize("keyword", ["schema", "schema_overrides"])
def test_declared_text_is_always_utf8(tmp_path: Path, value: pa.DataType, outer: Any, keyword: str) -> None:
    path = written(tmp_path / "a", [example(x=blobs(b"a")), example(x=blobs(b"\xff"))])
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*feature 'x': .*(expected UTF-8|not a valid string)"):
        read_by(tfr.read_table, path, **{keyword: {"x": outer(value)}})
