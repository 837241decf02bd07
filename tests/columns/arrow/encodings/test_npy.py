"""The encoding "npy": what numpy.save writes."""

import io
from typing import Any, ClassVar

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.columns.arrow.encodings.tensor_encoding import tensor_encoding
from tfrecord_io.columns.arrow.row_fault import RowFault
from tfrecord_io.testing import BytesEncodingSuite
from tfrecord_io.testing.tensor_encoding_suite import NAMES


def saved(array: Any, version: tuple[int, int] | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), version=version, **options)
    return file.getvalue()


def decoded(cells: list[bytes], dtype: str, shape: tuple[int | None, ...]) -> Any:
    offsets = np.cumsum([0, *map(len, cells)])
    return tensor_encoding("npy").decode(np.frombuffer(b"".join(cells), np.uint8), offsets, Dtype.of_name(dtype), shape)


GOOD = saved(np.arange(3, dtype="i4"))


@pytest.mark.usefixtures("engine")
class TestNpy(BytesEncodingSuite):
    name = "npy"
    dtypes: ClassVar = [name for name in NAMES if Dtype.of_name(name).kind != "V"]
    hostile: ClassVar = [
        b"",
        b"\x93NUMPY",
        b"junk" * 10,
        GOOD[:-1],
        GOOD + b"\0",
        GOOD.replace(b"(3,)", b"(9,)"),
        GOOD.replace(b"(3,)", b"(-3,)"),
        GOOD.replace(b"'<i4'", b"'|O' "),
        GOOD.replace(b"{'descr'", b"exec('1')"),
        GOOD[:6] + b"\7\0" + GOOD[8:],
        saved(np.arange(3, dtype="u4")),
        saved(np.zeros((3, 1), "i4")),
        saved(np.array([1, "a", None], object), allow_pickle=True),
        saved(np.zeros(3, [("a", "i4")])),
    ]

    def elsewhere(self, array: np.ndarray[Any, Any]) -> dict[str, Any]:
        return {"x": saved(array)}


def test_writes_the_bytes_of_numpy_save(tmp_path: Any) -> None:
    arrays = np.arange(24, dtype="f4").reshape(2, 3, 4)
    tfr.write_tfrecord({"x": arrays}, tmp_path / "a", column_encoding={"x": "npy"})
    for payload, array in zip(tfr.RecordReader(tmp_path / "a"), arrays, strict=True):
        example = tfr.decode_example(payload)
        assert example["x"] == saved(array)
        assert set(example) == {"x"}


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_order_and_byte_order(version: tuple[int, int]) -> None:
    array = np.arange(6, dtype="i4").reshape(2, 3)
    cells = [saved(form, version) for form in (array, np.asfortranarray(array), array.astype(">i4"))]
    for order in (cells, cells[::-1]):
        found = decoded(order, "int32", (2, 3))
        assert found.data.tobytes() == array.astype("<i4").tobytes() * 3
        assert found.shapes.tolist() == [[2, 3]] * 3


def test_narrower_text_is_filled_up_with_nuls() -> None:
    found = decoded([saved(np.array(["ab"])), saved(np.array(["abc"]))], "U3", (1,))
    assert found.data.view("<U3").tolist() == ["ab", "abc"]
    with pytest.raises(RowFault, match=r"the \.npy array is of <U4, the column of U3"):
        decoded([saved(np.array(["abcd"]))], "U3", (1,))


def test_a_header_may_claim_any_shape() -> None:
    header = saved(np.zeros(0, "i4"))
    for shape in (b"(1000000000000,)", b"(0, 99999999999)", b"(99999999999999999999999, 0)"):
        bad = header.replace(b"(0,), }" + b" " * (len(shape) - 4), shape + b", }")
        assert len(bad) == len(header)
        with pytest.raises(RowFault):
            decoded([bad], "int32", (None,) * (1 + shape.count(b" ")))


@pytest.mark.parametrize("name", [name for name in NAMES if Dtype.of_name(name).is_extension])
def test_dtypes_of_ml_dtypes_have_no_npy_header(tmp_path: Any, name: str) -> None:
    tfr.write_tfrecord({"x": [b""]}, tmp_path / "a")
    with pytest.raises(tfr.errors.SchemaError, match=f'"npy" does not store {name}'):
        tfr.read_table(tmp_path / "a", schema={"x": tfr.tensor(name, (2,), encoding="npy")})
