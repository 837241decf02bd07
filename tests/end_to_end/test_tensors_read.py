"""Tensors in records: raw bytes with companion features of shape and dtype are read as the original arrays."""

from __future__ import annotations

import re
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading_modes import blocks_of, engine_of, on_disk
from records import blobs, example, floats, int64s, written
from tensor_cells import DTYPES, MATRIX, assert_same, cells, companions, dtype_of, record
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.schema.column_features import set_encoding
from tfrecord_io.columns.schema.tensor_types import (
    dtype_metadata,
    is_fixed_shape_tensor,
    tensor_type,
    variable_shape_tensor,
)


@st.composite
def columns(draw: st.DrawFn) -> list[np.ndarray | None]:
    """Arrays of one dtype and rank, of one shape or of several, some of them missing."""
    dtype = dtype_of(draw(st.sampled_from(DTYPES)))
    rank = draw(st.integers(1, 3))
    shapes = st.lists(st.integers(0, 3), min_size=rank, max_size=rank).map(tuple)
    shape = draw(st.just(shapes) | shapes.map(st.just))
    content = shape.flatmap(
        lambda s: st.tuples(st.just(s), st.binary(min_size=_size(s, dtype), max_size=_size(s, dtype)))
    )
    made = draw(st.lists(st.none() | content, min_size=1, max_size=7))
    return [None if each is None else _array(*each, dtype) for each in made]


def _size(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape)) * dtype.itemsize


def _array(shape: tuple[int, ...], content: bytes, dtype: np.dtype[Any]) -> np.ndarray:
    if dtype.kind == "b":
        content = bytes(byte & 1 for byte in content)
    if dtype.kind == "U":
        content = (np.frombuffer(content, "<u4") & 0xFFFF).tobytes()
    return np.frombuffer(content, dtype).reshape(shape)


# ---- the law


@given(arrays=columns(), others=columns(), data=st.data())
def test_arrays_come_back_bit_for_bit_however_they_are_read(
    native_engine: None, arrays: list[np.ndarray | None], others: list[np.ndarray | None], data: st.DataObject
) -> None:
    rows = max(len(arrays), len(others))
    arrays, others = arrays + [None] * (rows - len(arrays)), others + [None] * (rows - len(others))
    order = data.draw(st.permutations(range(rows)))
    cut = data.draw(st.integers(0, rows))
    payloads = [record({"x": arrays[i], "y/z": others[i]}, n=int64s(i)) for i in order]
    with on_disk([payloads[:cut], payloads[cut:]]) as paths:
        for engine, size, threads in [("native", 1 << 20, 1), ("native", 64, 3), ("reference_engine", 64, 2)]:
            with engine_of(engine), blocks_of(size):
                table = tfr.read_table(tfr.dataset(paths, threads=threads))
                table.validate(full=True)
                with tfr.open_reader(tfr.dataset(paths, sample="all", threads=threads), batch_size=2) as reader:
                    streamed = reader.read_all()
                streamed.validate(full=True)
                assert streamed.schema == table.schema
                for name, expected in {"x": arrays, "y/z": others}.items():
                    if any(array is not None for array in expected):
                        _check(table, name, [expected[i] for i in order])
                        _check(streamed, name, [expected[i] for i in order])


def _check(table: pa.Table, name: str, expected: list[np.ndarray | None]) -> None:
    assert_same(cells(table, name), expected)
    one_shape = len({array.shape for array in expected if array is not None}) == 1
    assert is_fixed_shape_tensor(table.schema.field(name).type) == one_shape
    assert f"{name}/shape" not in table.column_names
    assert f"{name}/dtype" not in table.column_names


@given(arrays=columns(), data=st.data())
def test_the_order_of_files_does_not_change_what_is_folded(
    native_engine: None, arrays: list[np.ndarray | None], data: st.DataObject
) -> None:
    breaks = {"x/dtype": blobs(b"object"), "x/shape": int64s(7)}
    payloads = [record({"x": array}) for array in arrays]
    payloads += [
        example(**{name: breaks[name]}) for name in data.draw(st.lists(st.sampled_from(sorted(breaks)), max_size=1))
    ]
    turned = data.draw(st.permutations(payloads))
    with on_disk([payloads, turned[:2], turned[2:]]) as (whole, *pieces):
        schema = tfr.read_table(whole).schema
        assert tfr.read_table(pieces).schema == schema
        assert tfr.read_table(tfr.dataset(pieces[::-1], threads=2)).schema == schema


def test_a_folded_column_says_where_its_type_comes_from(tmp_path: Path, engine: str) -> None:
    path = written(tmp_path / "x", [record({"x": MATRIX}), record({"x": MATRIX + 1})])
    with tfr.open_reader(path) as reader:
        assert reader.report.schema_source == "companions"
        assert reader.schema.names == ["x"]
    found = tfr.read_metadata(path)
    assert (found.schema_source, found.schema.field("x").type) == (
        "companions",
        pa.fixed_shape_tensor(pa.float32(), (2, 3)),
    )
    assert tfr.open_reader(path, schema="infer").report.schema_source == "inferred"


def test_varying_shapes_give_unknown_dimensions(read: Any) -> None:
    arrays = [MATRIX, None, np.zeros((0, 4), np.float32), MATRIX[:, :1]]
    table = read([record({"x": array}) for array in arrays])
    assert table["x"].type == variable_shape_tensor(pa.float32(), (None, None))
    assert_same(cells(table), arrays)


@pytest.mark.parametrize("name", ["float32", "bool", "uint64", "float64"])
def test_single_numbers_are_a_plain_column(read: Any, name: str) -> None:
    values = np.array([1, 0, 1], name)
    table = read([record({"x": values[0]}), b"", record({"x": values[1]}), record({"x": values[2]})])
    assert table["x"].to_pylist() == [values[0].item(), None, values[1].item(), values[2].item()]
    assert table["x"].type == pa.from_numpy_dtype(values.dtype)


@pytest.mark.parametrize("name", ["complex64", "bfloat16", "S10", "U3", "datetime64[D]", "datetime64[us]"])
def test_single_values_of_other_dtypes_are_tensors_of_rank_0(read: Any, name: str) -> None:
    values = [None, np.array(5, "i8").astype(dtype_of(name)), np.array(7, "i8").astype(dtype_of(name))]
    assert_same(cells(read([record({"x": value}) for value in values])), values)


WRONG = {
    "no dtype": {"": blobs(bytes(4)), "/shape": int64s(1)},
    "no shape": {"": blobs(bytes(4)), "/dtype": blobs(b"float32")},
    "no bytes": {"/shape": int64s(1), "/dtype": blobs(b"float32")},
    "another dtype": companions(np.zeros(1, np.int32)),
    "another rank": companions(np.zeros((1, 1), np.float32)),
    "a wrong length": {**companions(np.zeros(2, np.float32)), "": blobs(bytes(7))},
    "a negative axis": {**companions(np.zeros(1, np.float32)), "/shape": int64s(-1)},
    "an overflowing shape": {**companions(np.zeros((2, 2), np.float32)), "/shape": int64s(2**62, 4)},
    "a long axis": {**companions(np.zeros(0, np.float32)), "/shape": int64s(2**31)},
    "object": {**companions(np.zeros(1, np.float32)), "/dtype": blobs(b"object")},
    "O": {**companions(np.zeros(1, np.float32)), "/dtype": blobs(b"O")},
    "V8": {**companions(np.zeros(1, np.float32)), "/dtype": blobs(b"V8")},
    "a pickle": {**companions(np.zeros(1, np.float32)), "/dtype": blobs(b"cnumpy\ndtype\n.")},
}


def named(features: Mapping[str, bytes]) -> bytes:
    return example(**{f"x{suffix}": value for suffix, value in features.items()})


@pytest.mark.fault(51)
@pytest.mark.fault(53)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_invalid_tensors_stay_plain_columns(read: Any, wrong: Mapping[str, bytes]) -> None:
    good = record({"x": np.ones(1, np.float32)})
    for payloads in ([good, named(wrong)], [named(wrong), good]):
        table = read(payloads)
        assert set(table.column_names) == {"x", "x/dtype", "x/shape"}
        assert pa.types.is_binary(table["x"].type)
    if wrong is not WRONG["another rank"] and wrong is not WRONG["another dtype"]:
        assert "x/dtype" in read([named(wrong), named(wrong)]).column_names or wrong in (WRONG["no dtype"],)


@pytest.mark.fault(51)
@pytest.mark.fault(53)
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_stream_names_the_record_that_is_not_a_tensor(read: Any, wrong: Mapping[str, bytes]) -> None:
    good = record({"x": np.ones(1, np.float32)})
    with pytest.raises(tfr.errors.DecodeError, match=r"record 3.*'x") as caught:
        read([good, b"", good, named(wrong)], sample=2)
    assert (caught.value.record, caught.value.records_intact, caught.value.feature) == (3, 3, "x")


def test_bytes_of_a_bool_are_0_or_1(read: Any) -> None:
    bad = {**companions(np.zeros(1, bool)), "": blobs(b"\x02")}
    assert "x/shape" in read([record({"x": np.ones(1, bool)}), named(bad)]).column_names
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*bytes at 0 are not a valid bool"):
        read([record({"x": np.ones(1, bool)}), named(bad)], sample=1)


def test_invalid_code_points_are_not_text(read: Any) -> None:
    good = np.array(["ab", "\U0010ffff"])
    bad = {**companions(good), "": blobs(good[:1].tobytes() + b"\x00\x00\x11\x00" + bytes(4))}
    assert "x/shape" in read([record({"x": good}), named(bad)]).column_names
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*bytes at 8 are not a valid U2"):
        read([record({"x": good}), named(bad)], schema={"x": tfr.tensor("U2", (2,))})


def test_companions_are_read_but_are_not_columns(read: Any) -> None:
    payloads = [record({"x": MATRIX, "y": MATRIX}, n=int64s(1), **{"z/shape": int64s(1, 2)})] * 2
    assert read(payloads).column_names == ["n", "x", "y", "z/shape"]
    assert read(payloads, columns=["x"]).column_names == ["x"]
    assert read(payloads, columns=["!y"]).column_names == ["n", "x", "z/shape"]
    assert read(payloads, columns=["x", "n"], sample=1).column_names == ["x", "n"]
    assert_same(cells(read(payloads, columns=["x"])), [MATRIX] * 2)
    for keywords in ({}, {"schema": "infer"}):
        table = read(payloads, columns=["x/shape"], **keywords)
        assert table.to_pydict() == {"x/shape": [[2, 3], [2, 3]]}
    both = read(payloads, columns=["x/shape", "x"])
    assert (both.column_names, both["x/shape"].to_pylist()) == (["x/shape", "x"], [[2, 3], [2, 3]])
    assert read(payloads, columns=["x/*"]).column_names == ["x/dtype", "x/shape"]  # of a tensor that is not selected
    assert read(payloads, columns=["*/shape"]).column_names == ["x/shape", "y/shape", "z/shape"]


def test_contradicting_companions_of_unselected_columns_are_ignored(read: Any) -> None:
    payloads = [example(x=int64s(1), **{"x/shape": int64s(1)}), example(x=int64s(2), **{"x/shape": floats(1)})]
    assert read(payloads, columns=["x"]).to_pydict() == {"x": [1, 2]}
    assert read(payloads, columns=["x"], sample=1).to_pydict() == {"x": [1, 2]}
    with pytest.raises(tfr.errors.SchemaError, match="x/shape"):
        read(payloads)


@pytest.mark.parametrize(
    "keywords", [{"schema": "infer"}, {"stable_types": True}, {"schema_overrides": {"x": "binary"}}]
)
def test_plain_columns_on_request(read: Any, keywords: Any) -> None:
    assert read([record({"x": MATRIX})], **keywords).column_names == ["x", "x/dtype", "x/shape"]


def test_an_override_may_make_the_tensor(read: Any) -> None:
    table = read([record({"x": MATRIX})], schema_overrides={"x": tfr.tensor("float32", (None, 3))})
    assert table.column_names == ["x"]
    assert table["x"].type == variable_shape_tensor(pa.float32(), (None, 3))


@pytest.mark.fault(43)
@pytest.mark.parametrize("sample", [None, 1])
@pytest.mark.parametrize("asked", ["string", tfr.tensor("U2", (1,))], ids=["text", "tensor"])
def test_an_override_that_no_record_fits_is_not_blamed_on_another_record(
    read: Any, sample: int | None, asked: Any
) -> None:
    with pytest.raises(
        tfr.TFRecordError, match=r"record 0.*feature 'x': expected a BytesList, got an Int64List"
    ) as caught:
        read([example(x=int64s(1)), example(x=int64s(2))], sample, schema_overrides={"x": asked})
    assert (caught.value.expected, caught.value.got) == ("BYTES", "INT64")


def test_infer_schema_shows_folded_columns(tmp_path: Path) -> None:
    path = written(tmp_path / "x", [record({"x": MATRIX.astype(np.complex64)}), record({"x": None})])
    found = tfr.infer_schema(path)
    row = repr(found).splitlines()[-1]
    assert row.split()[:4] == ["x", "tensor<complex64>[2,3]", "bytes_list", "1"]
    assert "x/shape and x/dtype" in row
    assert tfr.read_table(path, schema=found) == tfr.read_table(path)


# ---- a schema that governs


def governed(name: str, shape: tuple[int | None, ...], encoding: str = "raw") -> pa.Schema:
    of = Dtype.of_name(name)
    return pa.schema(
        [set_encoding(pa.field("x", tensor_type(of, shape), metadata=dtype_metadata(of) or None), encoding)]
    )


@given(arrays=columns(), extra=st.booleans())
def test_a_governing_schema_gives_the_same_arrays(
    native_engine: None, arrays: list[np.ndarray | None], extra: bool
) -> None:
    present = [array for array in arrays if array is not None]
    if not present:
        return
    shapes = {array.shape for array in present}
    one = len(shapes) == 1 and not extra
    schema = governed(Dtype.name_of(present[0].dtype), present[0].shape if one else (None,) * present[0].ndim)
    payloads = [record({"x": array}) for array in arrays]
    if one:  # no companion is needed
        payloads = [b"" if array is None else example(x=blobs(array.tobytes())) for array in arrays]
    with on_disk([payloads]) as paths:
        for engine in ("native", "reference_engine"):
            with engine_of(engine):
                table = tfr.read_table(paths, schema=schema)
        table.validate(full=True)
        assert table.schema.field("x").type == schema.field("x").type
        assert_same(cells(table), arrays)


@pytest.mark.fault(51)
@pytest.mark.fault(53)
@pytest.mark.parametrize(
    "wrong",
    [v for k, v in WRONG.items() if k not in ("no dtype", "no shape", "no bytes")],
    ids=[k for k in WRONG if k[:2] != "no"],
)
@pytest.mark.parametrize("shape", [(1,), (None,)])
def test_what_does_not_fit_a_schema_is_refused(read: Any, wrong: Mapping[str, bytes], shape: Any) -> None:
    good = record({"x": np.ones(1, np.float32)})
    with pytest.raises(tfr.errors.DecodeError, match=r"record 1.*feature 'x'") as caught:
        read([good, named(wrong)], schema=governed("float32", shape))
    assert (caught.value.record, caught.value.records_intact) == (1, 1)


@pytest.mark.fault(51)
def test_the_error_says_what_the_bytes_would_be(read: Any) -> None:
    image = np.zeros((28, 28), np.uint8)
    with pytest.raises(
        tfr.errors.DecodeError, match=r"784 bytes are uint8 according to 'x/dtype', but the column is float32"
    ):
        read([record({"x": image})], schema={"x": tfr.tensor("float32", (28, 28))})
    with pytest.raises(
        tfr.errors.DecodeError, match=r"784 bytes .* float32 .* 3136; they are 784 values of uint8 or int8 or bool"
    ):
        read([example(x=blobs(image.tobytes()))], schema={"x": tfr.tensor("float32", (28, 28))})


@pytest.mark.parametrize(
    "extra", [{"x/shape": blobs(b"a")}, {"x/dtype": int64s(3)}, {"x/shape": floats(1), "x/dtype": blobs(b"a", b"b")}]
)
def test_unrelated_features_named_like_companions_are_ignored(read: Any, extra: dict[str, bytes]) -> None:
    payloads = [example(x=blobs(MATRIX.tobytes()), **extra), b""]
    assert_same(cells(read(payloads, schema={"x": tfr.tensor("float32", (2, 3))})), [MATRIX, None])
    assert_same(cells(read(payloads, schema={"x": tfr.tensor("float32", (None, 3))})), [MATRIX, None])


@pytest.mark.fault(51)
def test_other_raw_columns_are_checked_by_their_companions(read: Any) -> None:
    payloads = [record({"x": np.ones(2, np.float32)})]
    assert read(payloads, schema={"x": tfr.list_("float32", encoding="raw")}).to_pydict() == {"x": [[1, 1]]}
    with pytest.raises(tfr.errors.DecodeError, match=r"8 bytes are float32 according to 'x/dtype'"):
        read(payloads, schema={"x": tfr.list_("int32", encoding="raw")})
    with pytest.raises(tfr.errors.DecodeError, match=r"8 bytes are float32 according to 'x/dtype'"):
        read(payloads, schema={"x": tfr.scalar("int64", encoding="raw")})


def test_a_schema_may_have_the_companions_as_columns(read: Any) -> None:
    schema = {
        "x": tfr.tensor("float32", (None, None)),
        "x/shape": tfr.list_("int64"),
        "kind": tfr.scalar("string", feature="x/dtype"),
    }
    table = read([record({"x": MATRIX})], schema=schema)
    assert table.select(["x/shape", "kind"]).to_pydict() == {"x/shape": [[2, 3]], "kind": ["float32"]}
    assert_same(cells(table), [MATRIX])


def test_columns_of_a_governing_schema_read_their_companions(read: Any) -> None:
    schema = pa.schema([*governed("float32", (None, None)), pa.field("n", pa.int64())])
    payloads = [record({"x": array}, n=int64s(1)) for array in (MATRIX, MATRIX.T.copy())]
    assert_same(cells(read(payloads, schema=schema, columns=["x"])), [MATRIX, MATRIX.T])
    assert read(payloads, schema=schema, columns=["n"]).column_names == ["n"]


@pytest.mark.parametrize("name", DTYPES)
def test_defaults_replace_missing_values(read: Any, name: str) -> None:
    array = np.zeros((2, 2), "i8").astype(dtype_of(name))
    made = tfr.tensor(name, (2, 2), default=array)
    assert_same(cells(read([b"", record({"x": array})], schema={"x": made})), [array, array])


def test_defaults_of_unknown_dimensions(read: Any) -> None:
    made = tfr.tensor("float32", (None, 3), default=[[1, 2, 3]])
    empty = tfr.tensor("float32", (None, 3), feature="x", default=[])
    table = read([b"", record({"x": MATRIX})], schema={"x": made})
    assert_same(cells(table), [np.array([[1, 2, 3]], "f4"), MATRIX])
    assert_same(cells(read([b""], schema={"x": empty})), [np.empty((0, 3), "f4")])


NPY = BytesIO()
np.save(NPY, np.zeros(3, np.float32))


@pytest.mark.parametrize(
    ("content", "looks", "advice"),
    [
        (b"\xff\xd8\xff\xe0" + bytes(62), "a JPEG image", r"tfr\.image\(\)"),
        (b"\x89PNG\r\n\x1a\n" + bytes(61), "a PNG image", r"tfr\.image\(\)"),
        (NPY.getvalue() + b"x", r"a NumPy \.npy file", "encoding='npy'"),
        (
            tfr.io.serialize_tensor(np.arange(13, dtype=np.int16)),
            r"a serialized tensor of int16 .*\(13,\)",
            "tensor_proto",
        ),
        (b'{"id": 7, "x": 5}', "JSON", "as binary"),
    ],
)
def test_bytes_that_are_no_values_are_named(
    engine: str, tmp_path: Path, content: bytes, looks: str, advice: str
) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": [b"\1" * 20, content]}, path)
    schema = {"x": tfr.tensor("int32", (5,))}
    for read in (tfr.read_table, tfr.read_arrays):
        with pytest.raises(
            tfr.errors.DecodeError, match=rf"record 1: .*{len(content)} bytes do not make int32"
        ) as raised:
            read(path, schema=schema)
        assert re.search(f"they look like {looks}.*{advice}", str(raised.value))
