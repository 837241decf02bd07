"""HDF5 files: h5py writes what is read here, and reads what is written here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import tfrecord_io as tfr
from rounds import COMPLETE
from tfrecord_io.apps.file_formats.array_files import hdf5_files
from tfrecord_io.apps.file_formats.array_files.hdf5_files import open_hdf5
from tfrecord_io.columns.schema.column_selection import Projection
from transfers import convert_flat

h5py = pytest.importorskip("h5py")

MEGABYTE = {"limits": tfr.Limits(expansion_bytes=1_000_000)}
DTYPES = [
    "?",
    "i1",
    "<i2",
    ">i4",
    "<i8",
    "u1",
    ">u2",
    "<u4",
    "u8",
    "f2",
    ">f2",
    "<f4",
    ">f4",
    "f8",
    ">f8",
    "c8",
    ">c16",
]


def converted(source: Path, **keywords: Any) -> Path:
    """The rows of a file, through TFRecord, as an HDF5 file again."""
    records, target = source.with_suffix(".tfrecord"), source.with_name("again.hdf5")
    convert_flat(source, records, float64="raw", **keywords)
    tfr.convert(records, target)
    return target


@given(
    st.sampled_from(DTYPES).flatmap(lambda dtype: npst.arrays(dtype, npst.array_shapes(max_dims=4, max_side=4))),
    st.booleans(),
)
def test_arrays_round_trip(tmp_path_factory: pytest.TempPathFactory, array: np.ndarray, chunked: bool) -> None:
    path = tmp_path_factory.mktemp("h5") / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=array, chunks=True if chunked else None)
    with h5py.File(converted(path)) as file:
        np.testing.assert_array_equal(file["group/x"][:], array.astype(array.dtype.newbyteorder("<")), strict=True)


@pytest.mark.parametrize("compressed", [False, True])
def test_columns_of_each_kind_round_trip(tmp_path: Path, compressed: bool) -> None:
    data = {
        "text": ["ä", "", "b\nc"],
        "blob": [b"\0a\0", b"", b"\xff"],
        "lists": [[1, 2], [], [3]],
        "equal": [[1, 2], [3, 4], [5, 6]],
        "floats": [[0.5], [1.5, 2.5], []],
        "at": np.array(["2020-01-01", "1969-12-31", "2262-01-01"], "M8[us]"),
        "took": np.array([1, -1, 3], "m8[ms]"),
        "g/inner/ok": [True, False, True],
        "image": np.arange(3 * 4 * 2, dtype=np.uint8).reshape(3, 4, 2),
    }
    tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
    tfr.convert(
        tmp_path / "a.tfrecord",
        tmp_path / "a.h5",
        target_options={"compressed": compressed},
        source_options={"batch_size": 2},
    )
    tfr.convert(tmp_path / "a.h5", tmp_path / "b.tfrecord")
    before, after = tfr.read_table(tmp_path / "a.tfrecord"), tfr.read_table(tmp_path / "b.tfrecord")
    assert after.select(before.column_names).equals(before)
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["text"].asstr()[:].tolist() == data["text"]
        assert file["g/inner/ok"].dtype == np.bool_
        assert file["image"].compression == ("gzip" if compressed else None)


def test_slices_of_chunks_of_several_lengths(tmp_path: Path) -> None:
    """Memory holds a few chunks: rows of arrays are stored in other numbers than they are read."""
    rows = 5000
    with h5py.File(tmp_path / "a.h5", "w") as file:
        for name, chunk in (("a", 7), ("b", 640), ("c", 4999)):
            file.create_dataset(name, data=np.arange(rows * 1000).reshape(rows, 1000), chunks=(chunk, 300))
    batches = []
    stream = open_hdf5(tmp_path / "a.h5", project=lambda _: Projection(None))
    with stream, tfr.open_writer(tmp_path / "a.tfrecord") as writer:
        for batch in stream:
            batches.append(len(batch))
            writer.write(batch)
    assert max(batches) < rows / 4
    arrays = tfr.read_arrays(tmp_path / "a.tfrecord")
    for name in ("a", "b", "c"):
        assert (arrays[name] == np.arange(rows * 1000).reshape(rows, 1000)).all()


def test_types_of_hdf5(tmp_path: Path) -> None:
    colors = h5py.enum_dtype({"red": 0, "blue": 7}, "u1")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["words"] = np.array([["a", "ä"], ["", "b"]], h5py.string_dtype())
        file["ascii"] = np.array([b"x", b"yz"], h5py.string_dtype("ascii"))
        file["fixed"] = np.array(["é".encode(), b"yz"], h5py.string_dtype("utf-8", 4))
        file["bytes"] = np.array([b"x", b"\xffz"])
        file.create_dataset("color", data=np.array([0, 7]), dtype=colors)
        mixed = np.dtype([("name", h5py.string_dtype()), ("n", ">i2"), ("xy", "<f4", (2,))])
        file["row"] = np.array([("a", 1, (1, 2)), ("b", 2, (3, 4))], mixed)
        file["nested"] = np.zeros(2, [("outer", [("inner", "<i4")])])
        file["nothing"] = h5py.Empty("f4")
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").drop_columns("xy").to_pylist()[1] == {
        "words": ["", "b"],
        "ascii": "yz",
        "fixed": "yz",
        "bytes": b"\xffz",
        "color": 7,
        "name": "b",
        "n": 2,
        "outer/inner": 0,
    }
    assert tfr.read_arrays(tmp_path / "a.tfrecord")["xy"].tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(("dtype", "y"), [(np.dtype("i4"), 7), (h5py.string_dtype(), "7")])
def test_fields_of_fields_are_columns_that_can_be_selected(tmp_path: Path, dtype: Any, y: Any) -> None:
    values = np.zeros(2, [("a", [("x", "i4"), ("y", dtype)]), ("b", "i4"), ("c", [("z", "f4", (2,))])])
    values["a"]["y"] = y
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["s"] = values
    names = ["a/x", "a/y", "b", "c/z"]
    for columns, expected in ((None, names), (["a/y"], ["a/y"]), ("a/*", names[:2]), (["!b"], ["a/x", "a/y", "c/z"])):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=columns, mode="overwrite")
        found = tfr.read_arrays(tmp_path / "a.tfrecord")
        assert (list(found), found["a/y"].tolist()) == (expected, [y, y])


def test_arrays_of_other_lengths_are_excluded_by_columns(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"], file["y"], file["scale"], file["mean"] = [1, 2, 3], [4, 5, 6], 2.5, [0.5, 1.5]
    target = tmp_path / "a.tfrecord"
    with pytest.raises(tfr.errors.EncodeError, match=r"mean.*has 2 rows|has 3 rows.*mean.*exclude it with columns="):
        tfr.convert(tmp_path / "a.h5", target, columns="!scale")
    with pytest.raises(tfr.errors.EncodeError, match=r"a single value: .*exclude it with columns="):
        tfr.convert(tmp_path / "a.h5", target)
    assert tfr.convert(tmp_path / "a.h5", target, columns=["y"], filters=[("x", ">", 1)]).records == 2
    assert tfr.read_table(target).to_pydict() == {"y": [5, 6]}
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="nonsense"):
        tfr.convert(tmp_path / "a.h5", target, columns=["nonsense"])


def test_values_that_no_column_holds(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = [1, 2]
        file.create_dataset("refs", data=[file["x"].ref] * 2, dtype=h5py.ref_dtype)
        file["cube"] = np.full((2, 1, 1), "a", h5py.string_dtype())
    with pytest.raises(tfr.errors.EncodeError, match="references cannot be stored in a TFRecord"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns="refs")
    with pytest.raises(tfr.errors.EncodeError, match="with 3 axes"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns="cube")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = np.array([b"\xff"], h5py.string_dtype())
    with pytest.raises(tfr.errors.DecodeError, match=r"b\.h5: x.*record 0: text that is not UTF-8"):
        tfr.convert(tmp_path / "b.h5", tmp_path / "a.tfrecord")


def test_targets_that_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "a.h5"
    for data, reason in (
        ({"x": [1, None]}, "has no value"),
        ({"x": [["a"], ["b", "c"]]}, "several shapes"),
        ({"a": [1], "a/b": [2]}, "name of a column, and of a group"),
        ({"": [1], "a": [2]}, "its name cannot be that of a dataset"),
        ({"../x": [1]}, "its name cannot be that of a dataset"),
        ({"a//b": [1]}, "its name cannot be that of a dataset"),
    ):
        tfr.write_tfrecord(data, tmp_path / "a.tfrecord")
        with pytest.raises(tfr.errors.EncodeError, match=reason):
            tfr.convert(tmp_path / "a.tfrecord", target)
        assert not target.exists()


@pytest.mark.parametrize("text", [["a", "b", "c\0d"], [["a"], ["b"], ["\0"]], np.array([["a"], ["b"], ["a\0b"]])])
def test_text_with_a_nul_names_the_record(tmp_path: Path, text: Any) -> None:
    tfr.write_tfrecord({"x": text}, tmp_path / "a.tfrecord")
    with pytest.raises(tfr.errors.EncodeError, match="a text has a NUL, which HDF5 cannot store") as caught:
        tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.h5", source_options={"batch_size": 1})
    assert (caught.value.feature, caught.value.record) == ("x", 2)
    assert not (tmp_path / "a.h5").exists()


def test_rows_without_values_and_text_of_fixed_width(tmp_path: Path) -> None:
    empty, text = np.zeros((3, 2, 0), np.float32), np.array([["a", "bc"], ["", "d"], ["e", "f"]])
    tfr.write_tfrecord({"empty": empty, "text": text}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["empty"].shape, file["empty"].dtype) == (empty.shape, empty.dtype)
        assert file["text"].asstr()[:].tolist() == text.tolist()
    tfr.convert(tmp_path / "a.h5", tmp_path / "b.tfrecord")
    assert tfr.read_arrays(tmp_path / "b.tfrecord", columns=["empty"])["empty"].shape == empty.shape


# ---- hostile files


@pytest.mark.fault(54)
def test_other_files_are_not_opened(tmp_path: Path) -> None:
    """By links, virtual datasets and external storage."""
    (tmp_path / "secret.raw").write_bytes(bytes(range(8)))
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = np.arange(8)
    makers: list[Any] = [
        lambda file: file.__setitem__("x", h5py.ExternalLink("secret.h5", "/x")),
        lambda file: file.create_virtual_dataset("x", layout(str(tmp_path / "secret.h5"))),
        lambda file: file.create_dataset("x", (8,), "u1", external=[(str(tmp_path / "secret.raw"), 0, 8)]),
    ]
    for number, make in enumerate(makers):
        path = tmp_path / f"{number}.h5"
        with h5py.File(path, "w") as file:
            make(file)
            file["own"] = np.arange(8)
        assert tfr.convert(path, tmp_path / "a.tfrecord", columns="!x").columns == ("own",)
        with pytest.raises(tfr.errors.DecodeError, match=rf"{number}\.h5: x: .*is.* not opened"):
            tfr.convert(path, tmp_path / "a.tfrecord")
    with h5py.File(tmp_path / "own.h5", "w") as file:
        file["y"] = np.arange(8)
        file.create_virtual_dataset("x", layout("."))
    assert tfr.convert(tmp_path / "own.h5", tmp_path / "a.tfrecord").records == 8


def layout(path: str) -> Any:
    made = h5py.VirtualLayout((8,), "i8")
    made[:] = h5py.VirtualSource(path, "y" if path == "." else "x", (8,))
    return made


def test_values_that_are_arrays(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (5,), np.dtype((">i4", (2, 3))), chunks=(2,))[:] = np.arange(30).reshape(5, 2, 3)
        file.create_dataset("y", (5, 1), np.dtype((h5py.string_dtype(), (2,))))[3, 0] = ["é", "b"]
        file.create_dataset("single", (), np.dtype(("i4", (5,))))
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=["x"])
    np.testing.assert_array_equal(tfr.read_arrays(tmp_path / "a.tfrecord")["x"], np.arange(30).reshape(5, 2, 3))
    for name, reason in [("y", "3 axes"), ("single", "single values")]:
        with pytest.raises(tfr.errors.EncodeError, match=reason):
            tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=[name])


@pytest.mark.parametrize("items", [">i2", "<i2"])
def test_lists_in_another_byte_order_are_refused(tmp_path: Path, items: str) -> None:
    """h5py returns their bytes as numbers of this machine."""
    lists = h5py.vlen_dtype(items)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (1,), lists)[0] = np.array([1, 2])
        file.create_dataset("pair", (1,), [("list", lists), ("n", ">i2")])[0] = (np.array([1, 2]), 3)
    for name in ("x", "list"):
        if np.dtype(items).isnative:
            tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=[name], mode="overwrite")
            assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {name: [[1, 2]]}
        else:
            with pytest.raises(tfr.errors.EncodeError, match=r"lists of >i2, .*exclude it with columns="):
                tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=[name])


def test_links_in_a_circle(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = [1, 2]
        file["g/again"] = file["g"]
        file["root"] = file["/"]
        file["twice"] = file["g/x"]
        file["circle"], file["g/circle"] = h5py.SoftLink("/g/circle"), h5py.SoftLink("../circle/x")
    with pytest.warns(
        tfr.errors.SchemaWarning, match="a.h5: left out columns circle, g/circle: soft links .* lead nowhere"
    ):
        report = tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord")
    assert report.columns == ("twice", "g/x")


def test_soft_links_are_names_of_datasets_and_groups(tmp_path: Path) -> None:
    """Links that lead nowhere are named in a warning; links to another file are refused."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = [1, 2]
        links = {
            "soft": "/g//./x",
            "g/near": "x",
            "group": "g",
            "far": "group/near",
            "nowhere": "/none",
            "out": "other/x",
        }
        for name, path in links.items():
            file[name] = h5py.SoftLink(path)
        file["other"] = h5py.ExternalLink("b.h5", "/")
        file["empty"] = h5py.Empty("f8")
        file["hollow"] = h5py.SoftLink("empty")
        file["below"] = h5py.SoftLink("/g/x/y")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file["x"] = [3, 4]
    with pytest.warns(tfr.errors.SchemaWarning, match="a.h5: left out columns below, nowhere: soft links"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=["!other", "!out"])
    expected = {name: [1, 2] for name in ["far", "soft", "g/near", "g/x", "group/near", "group/x"]}
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == expected
    for name in ("other", "out"):
        with pytest.raises(tfr.errors.DecodeError, match=f"a.h5: {name}: .*a link to the file 'b.h5', which is not"):
            tfr.convert(tmp_path / "a.h5", tmp_path / "b.tfrecord", columns=[name])


def test_groups_have_all_names_of_their_links(tmp_path: Path) -> None:
    """As NeXus files have them; those of a circle once. Very many, by two links to each next group, are refused."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["entry/detector/x"] = [1, 2]
        file["entry/data"] = h5py.SoftLink("detector")
        file["again"] = file["entry"]
        file["entry/up"] = h5py.SoftLink("/again")
        file["y"] = h5py.SoftLink("/again/data/x")
    report = tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord")
    names = [f"{group}/{inner}/x" for group in ("again", "entry") for inner in ("data", "detector")]
    assert report.columns == ("y", *names)
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pydict() == {name: [1, 2] for name in report.columns}
    with h5py.File(tmp_path / "many.h5", "w") as file:
        file["x"] = [1, 2]
        for depth in range(60):
            group = file.create_group("g" * (depth + 1))
            group["a"], group["b"] = h5py.SoftLink("/" + "g" * (depth + 2)), h5py.SoftLink("/" + "g" * (depth + 2))
        file["g" * 61 + "/x"] = [1, 2]
    with pytest.raises(tfr.errors.DecodeError, match=r"more than 100,000 further names; raise tfr\.dataset"):
        tfr.convert(tmp_path / "many.h5", tmp_path / "many.tfrecord", columns=["x"])


def test_hard_links_are_names_of_equal_rank(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["images"] = [1, 2]
        file["data"] = file["images"]
    for columns in (["images"], ["data"], ["images", "data"]):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=columns)
        table = tfr.read_table(tmp_path / "a.tfrecord", columns=columns)
        assert table.to_pydict() == {name: [1, 2] for name in columns}


@pytest.mark.fault(54)
def test_shapes_without_values(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", (2**40, 1000), "f8", chunks=(1, 1000))
        file.create_dataset("rows", (2**50, 0), "f8")
        file.create_dataset("row", (1, 2**40), "u1", chunks=(1, 1000))
        file.create_dataset("zeros", (1000, 1000), "u1", chunks=(1, 1000))
    for name, reason in (("x", r"1000000\)\) leaves"), ("rows", "rows without a value"), ("row", "a record")):
        with pytest.raises(tfr.TFRecordError, match=reason):
            tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=[name], source_options=MEGABYTE)
    few = {"limits": tfr.Limits(expansion_bytes=1000)}
    with pytest.raises(tfr.errors.DecodeError, match=r"pass tfr\.dataset\(…, limits=.*_bytes=1000000\)"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=["zeros"], source_options=few)
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=["zeros"], source_options=MEGABYTE)


@pytest.mark.parametrize("name", ["big", "lists", "texts"])
def test_what_takes_too_much_is_refused_before_a_row_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("big", (4, 1 << 28), "f4", chunks=(1, 1 << 18), compression="gzip")
        file.create_dataset("lists", (10**12,), h5py.vlen_dtype("u1"), chunks=(1 << 16,))
        file.create_dataset("texts", (10**12,), h5py.string_dtype(), chunks=(1 << 16,))

    def read(*_: object) -> None:
        raise AssertionError("a row is read")

    monkeypatch.setattr(h5py.Dataset, "__getitem__", read)
    with pytest.raises(tfr.errors.DecodeError, match=r"expansion_bytes=1000000\)\) leaves room"):
        tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord", columns=[name], source_options=MEGABYTE)


def test_rows_that_share_one_large_value_are_read_one_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until the values are known to be small."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        lists = file.create_dataset("x", (40,), h5py.vlen_dtype("u1"))
        for row in range(40):
            lists[row] = np.zeros((3 << 20) if row == 20 else 3, "u1")
    read, most = h5py.Dataset.__getitem__, list[int]()

    def counted(self: h5py.Dataset, rows: slice) -> object:
        found = read(self, rows)
        most.append(sum(map(len, found)))
        return found

    monkeypatch.setattr(h5py.Dataset, "__getitem__", counted)
    tfr.convert(tmp_path / "a.h5", tmp_path / "a.tfrecord")
    lengths = [len(row) for row in tfr.read_table(tmp_path / "a.tfrecord")["x"].to_pylist()]
    assert lengths == [3] * 20 + [3 << 20] + [3] * 19
    assert max(most) < 4 << 20


MUTANTS = """
import os, random, signal, sys
import h5py, numpy as np, tfrecord_io as tfr
seed, count = int(sys.argv[1]), int(sys.argv[2])
for libver in ("earliest", "latest"):
    with h5py.File(f"{libver}.h5", "w", libver=libver) as file:
        file["x"], file["g/image"] = np.arange(8, dtype=">i4"), np.zeros((8, 2, 3), np.uint8)
        file.create_dataset("g/z", data=np.arange(32).reshape(8, 4), chunks=(3, 2), compression="gzip")
        file["row"] = np.zeros(8, [("a", "f4"), ("b", "i2", (2,))])
        file["text"] = np.array(["a"] * 8, h5py.string_dtype())
done, ended = 0, 0
while done < count:
    read, write = os.pipe()
    if not (child := os.fork()):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in range(done, count):
            os.write(write, b".")
            signal.alarm(20)
            draw = random.Random(seed * 10**6 + number)
            content = bytearray(open(draw.choice(("earliest.h5", "latest.h5")), "rb").read())
            for _ in range(draw.choice((1, 1, 2, 4))):
                content[draw.randrange(len(content))] = draw.choice((0, 255, draw.randrange(256)))
            if draw.random() < 0.1:
                del content[draw.randrange(len(content)):]
            open("m.h5", "wb").write(content)
            try:
                tfr.convert("m.h5", "m.tfrecord", source_options={'limits': tfr.Limits(expansion_bytes=1 << 24)})
            except tfr.TFRecordError:
                pass
            except BaseException as error:
                os.write(write, f"mutant {number}: {error!r}".encode())
                os._exit(1)
        os._exit(0)
    os.close(write)
    seen = b"".join(iter(lambda: os.read(read, 1 << 16), b""))
    os.close(read)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        sys.exit(seen.lstrip(b".").decode())
    done += len(seen)
    ended += os.WIFSIGNALED(status)
print(ended)
"""


@pytest.mark.fault(54)
def test_damaged_files_raise_errors_of_this_package(tmp_path: Path) -> None:
    """In processes of their own: the HDF5 library ends some of them (SECURITY.md)."""
    count = 10_000 if COMPLETE else 60
    done = subprocess.run(
        [sys.executable, "-c", MUTANTS, "7", str(count)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 1 + count // 50


def test_the_chunks_of_each_dataset_take_a_mib_of_memory_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord({"x": [1], "text": ["a"]}, tmp_path / "a.tfrecord")
    tfr.convert(tmp_path / "a.tfrecord", tmp_path / "a.h5")
    caches, real = [], hdf5_files.stored_array

    def array(dataset: Any, *arguments: Any) -> Any:
        caches.append(dataset.id.get_access_plist().get_chunk_cache())
        return real(dataset, *arguments)

    monkeypatch.setattr(hdf5_files, "stored_array", array)
    tfr.convert(tmp_path / "a.h5", tmp_path / "back.tfrecord")
    assert [slots * 8 + size <= 2 << 20 for slots, size, _ in caches] == [True, True]
