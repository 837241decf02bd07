"""Arrays whose shape is stored in other features: every layout, through every reader, has the arrays that NumPy made.

A layout crosses the names of the sizes, sizes that are the same or vary, Example and SequenceExample, columns, fields
of structs and of structs in lists, and the dtype.
"""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from arrow_tables import without_metadata
from records import framed, written
from rounds import rounds
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.train import (
    BytesList,
    Example,
    Feature,
    FeatureList,
    FeatureLists,
    Features,
    FloatList,
    Int64List,
    SequenceExample,
)
from tfrecord_io.typing import OpenedDataset

Array = np.ndarray[Any, Any]
SHAPES: dict[str, Any] = {  # the argument of `tfr.tensor`
    "names": ("height", "width", "depth"),
    "names and a number": ("height", "width", 3),
    "one feature": "image/shape",
    "one unknown": ("height", None, 3),
}
# Of a SequenceExample: sizes in each step, or in the context for all. Of an Example with several arrays: likewise.
SEQUENCES = ("steps", "context")
LISTS = ("list", "shared list")
PARTS = ("example", *SEQUENCES, *LISTS)
# In the field of a struct, with the features of the sizes next to it; of a struct in it; of the structs in a list, of
# which each has a size; and several arrays in the field of a struct, which have one size.
STRUCTS = ("struct", "nested struct")
LISTS_AND_STRUCTS = ("structs", "list in struct")
ALL_PARTS = (*PARTS, *STRUCTS, *LISTS_AND_STRUCTS)
SINGLE = ("example", *STRUCTS)  # one array in a row
OWN_SIZES = ("steps", "list", "structs")  # a size for each array of a row


class Layout(NamedTuple):
    shape: str
    part: str
    dtype: str
    dtype_feature: str  # "", "name" or "number"
    as_list: bool  # floats as a list of values, not as bytes

    def schema(self) -> dict[str, Any]:
        dtype = "image/dtype" if self.dtype_feature else self.dtype
        item = tfr.tensor(dtype, self.axes)
        if self.part in SEQUENCES:
            item = tfr.sequence(item)
        elif self.part in (*LISTS, "list in struct"):
            item = tfr.list_(item)
        return {"image_raw": self._in_structs(item), "label": "int64"}

    def _in_structs(self, item: Any) -> Any:
        if self.part == "nested struct":
            item = {"inner": {"pixels": item}, "id": "int64"}
        elif self.path:
            item = {"pixels": item, "id": "int64"}
        return tfr.list_(item) if self.part == "structs" else item

    @property
    def path(self) -> tuple[str, ...]:
        """The names of fields from the column to the arrays."""
        if self.part == "nested struct":
            return ("inner", "pixels")
        return ("pixels",) if self.part in (*STRUCTS, *LISTS_AND_STRUCTS) else ()

    @property
    def feature(self) -> str:
        return "/".join(("image_raw", *self.path))

    @property
    def axes(self) -> Any:
        """The argument of `tfr.tensor`: the sizes stand next to the arrays of a struct, else outside."""
        prefix = "image_raw/" if self.part in ("struct", "structs") else ""
        shape = SHAPES[self.shape]
        if isinstance(shape, str):
            return prefix + shape
        return tuple(prefix + axis if isinstance(axis, str) else axis for axis in shape)

    def cell(self, arrays: Sequence[Array]) -> Any:
        """A row of the column, in Python."""
        if self.part == "structs":
            return [{"pixels": array, "id": number} for number, array in enumerate(arrays)]
        value = arrays[0] if self.part in SINGLE else arrays
        for name in reversed(self.path):
            value = {name: value, **({} if name == "pixels" and len(self.path) > 1 else {"id": 0})}
        return value

    def arrays(self, cell: Any) -> Any:
        """The arrays of such a row."""
        if cell is None:
            return None
        if self.part == "structs":
            return [item["pixels"] for item in cell]
        for name in self.path:
            cell = cell[name]
        return cell

    @property
    def record_type(self) -> str:
        return "sequence_example" if self.part in SEQUENCES else "example"

    @property
    def message(self) -> type[Example] | type[SequenceExample]:
        return SequenceExample if self.part in SEQUENCES else Example

    def records(self, rows: Iterable[Sequence[Array]]) -> list[bytes]:
        return [self.record(number, arrays) for number, arrays in enumerate(rows)]

    def sizes(self, array: Array) -> dict[str, list[int]]:
        height, width, depth = array.shape
        if isinstance(self.axes, str):
            return {self.axes: [height, width, depth]}
        stated = {"height": [height], "width": [width], "depth": [depth]}
        return {axis: stated[axis.rpartition("/")[2]] for axis in self.axes if isinstance(axis, str)}

    def record(self, label: int, arrays: Sequence[Array]) -> bytes:
        numbers = {"uint8": 4, "uint16": 17, "float32": 1}
        dtypes = {"name": feature(self.dtype.encode()), "number": feature([numbers[self.dtype]])}
        stated = {"image/dtype": dtypes[self.dtype_feature]} if self.dtype_feature else {}
        context = {"label": feature([label])}
        values = [feature(a.reshape(-1).tolist() if self.as_list else a.tobytes(), floats=self.as_list) for a in arrays]
        sizes = [{name: feature(size) for name, size in self.sizes(a).items()} | stated for a in arrays]
        if self.path:
            context["image_raw/id"] = feature([*range(len(arrays))] if self.part == "structs" else [0])
        if self.part in SINGLE:
            return Example(
                features=Features(feature=context | sizes[0] | {self.feature: values[0]})
            ).SerializeToString()
        if self.part not in SEQUENCES:
            context[self.feature] = Feature(bytes_list=BytesList(value=[array.tobytes() for array in arrays]))
            of_all = stated if self.part in OWN_SIZES else stated | sizes[0]
            of_each = self.sizes(arrays[0]) if self.part in OWN_SIZES else {}
            for name in of_each:
                of_all[name] = feature([size for array in arrays for size in self.sizes(array)[name]])
            return Example(features=Features(feature=context | of_all)).SerializeToString()
        lists = {"image_raw": FeatureList(feature=values)}
        if self.part == "context":
            context |= sizes[0] if sizes else {}
        else:
            names = [*sizes[0]] if sizes else []
            lists |= {name: FeatureList(feature=[size[name] for size in sizes]) for name in names}
        message = SequenceExample(context=Features(feature=context), feature_lists=FeatureLists(feature_list=lists))
        return message.SerializeToString()


def feature(value: Any, *, floats: bool = False) -> Feature:
    if isinstance(value, bytes):
        return Feature(bytes_list=BytesList(value=[value]))
    if floats:
        return Feature(float_list=FloatList(value=value))
    return Feature(int64_list=Int64List(value=value))


@st.composite
def layouts(draw: st.DrawFn, parts: Sequence[str] = ALL_PARTS) -> Layout:
    dtype, part = draw(st.sampled_from(["uint8", "uint16", "float32"])), draw(st.sampled_from(parts))
    of_each = part in ("list", "structs")
    return Layout(
        shape=draw(st.sampled_from([name for name in SHAPES if not of_each or name != "one feature"])),
        part=part,
        dtype=dtype,
        dtype_feature=draw(st.sampled_from(["", "name", "number"])),
        as_list=dtype == "float32" and part not in (*LISTS, *LISTS_AND_STRUCTS) and draw(st.booleans()),
    )


@st.composite
def rows_of(draw: st.DrawFn, layout: Layout) -> list[list[Array]]:
    """The arrays of each record: one of an Example, some of a SequenceExample."""
    axis = st.integers(1, 4)
    shapes = st.tuples(axis, axis, st.just(3) if layout.shape in ("names and a number", "one unknown") else axis)
    common = draw(st.one_of(st.none(), shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))

    def array(shape: tuple[int, ...]) -> Array:
        return rng.integers(0, 200, shape).astype(layout.dtype)

    rows = []
    for _ in range(draw(st.integers(1, 6))):
        count = 1 if layout.part in SINGLE else draw(st.integers(1, 3))
        one = draw(shapes)
        of_row = [draw(shapes) if layout.part in OWN_SIZES else one for _ in range(count)]
        rows.append([array(common or shape) for shape in of_row])
    return rows


def same(found: Any, expected: Sequence[Array]) -> None:
    arrays = [found] if len(expected) == 1 and getattr(found, "ndim", 0) == 3 else list(found)
    assert len(arrays) == len(expected)
    for own, other in zip(arrays, expected, strict=True):
        assert np.asarray(own).dtype == other.dtype
        np.testing.assert_array_equal(np.asarray(own), other)


def of_pandas(dataset: OpenedDataset) -> list[Any]:
    return list(tfr.read_tfrecord(dataset)["image_raw"])


def of_random(dataset: OpenedDataset) -> list[Any]:
    records = tfr.open_random(dataset)
    return [records[row]["image_raw"] for row in range(len(records))]


def of_pickle(dataset: OpenedDataset) -> list[Any]:
    return of_pandas(pickle.loads(pickle.dumps(dataset)))


def of_selection(dataset: OpenedDataset) -> list[Any]:
    return of_pandas(dataset.select(["image_raw"]))


def of_filter(dataset: OpenedDataset) -> list[Any]:
    return of_pandas(dataset.filter("label >= 0"))


def of_pieces(dataset: OpenedDataset) -> list[Any]:
    return [row for piece in dataset.pieces(2) for row in of_pandas(tfr.dataset(piece))]


READERS = [of_pandas, of_random, of_pickle, of_selection, of_filter, of_pieces]


@settings(max_examples=rounds(200))
@given(st.data())
def test_every_reader_has_the_arrays_that_were_written(data: st.DataObject) -> None:
    layout = data.draw(layouts())
    rows = data.draw(rows_of(layout))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        written(path, layout.records(rows))
        dataset = tfr.dataset(path, schema=layout.schema(), sample="all")
        for read in READERS:
            for found, expected in zip(read(dataset), rows, strict=True):
                same(layout.arrays(found), expected)


@settings(max_examples=rounds(200))
@given(st.data())
def test_written_files_state_the_shapes_in_the_same_features(data: st.DataObject) -> None:
    """What is read and written again is read with the same arguments, and by the embedded schema."""
    layout = data.draw(layouts())
    rows = data.draw(rows_of(layout))
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        written(path, layout.records(rows))
        table = tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all"))
        tfr.write_tfrecord(table, again, record_type=layout.record_type)
        for schema in (None, layout.schema()):
            copy = tfr.read_table(tfr.dataset(again, schema=schema, sample="all"))
            assert copy.equals(table)
        tfr.write_tfrecord(table, again, record_type=layout.record_type, embed_schema=False, mode="overwrite")
        with tfr.RecordReader(again) as reader:
            for record, expected in zip(reader, layout.records(rows), strict=True):
                assert layout.message.FromString(record) == layout.message.FromString(expected)


def whole(dataset: OpenedDataset) -> pa.Table:
    return tfr.read_table(dataset)


def in_batches(dataset: OpenedDataset) -> pa.Table:
    with tfr.open_reader(dataset, batch_size=2) as reader:
        return pa.Table.from_batches(list(reader), reader.schema)


def limited(dataset: OpenedDataset) -> pa.Table:
    return tfr.read_table(dataset, limit=10_000)


def filtered(dataset: OpenedDataset) -> pa.Table:
    return tfr.read_table(dataset.filter("label >= 0"))


def outcome(read: Callable[[OpenedDataset], pa.Table], dataset: OpenedDataset) -> Any:
    """What a call returns: type, rows, or the error."""
    try:
        table = read(dataset)
    except tfr.errors.TFRecordError as error:
        return type(error), error.path, error.record, error.reason
    return table.schema, table.column("image_raw").to_pylist(), table.column("label").to_pylist()


@settings(max_examples=rounds(200))
@given(st.data())
def test_calls_decide_shapes_alike_by_the_first_records(data: st.DataObject) -> None:
    """A read that begins with the sample decodes it once; one of other records decodes a sample for itself."""
    layout = data.draw(layouts())
    damage = data.draw(st.sampled_from([None, "checksum", "size", "cut"]))
    rows = [data.draw(rows_of(layout), label="rows of a file") for _ in range(data.draw(st.integers(1, 3)))]
    damaged = data.draw(st.integers(0, len(rows) - 1))
    with tempfile.TemporaryDirectory() as folder:
        for number, arrays_of_file in enumerate(rows):
            path = Path(folder) / f"{number}.tfrecord"
            records = layout.records(arrays_of_file)
            at = data.draw(st.integers(0, len(records) - 1))
            if number == damaged and damage == "size":
                records[at] = layout.record(7, [array[:, :, :1] for array in arrays_of_file[at]])
            content = bytearray(framed(*records))
            if number == damaged and damage == "checksum":
                content[len(framed(*records[: at + 1])) - 5] ^= 1
            if number == damaged and damage == "cut":
                del content[-3:]
            path.write_bytes(content)
        how = {
            "schema": layout.schema(),
            "sample": data.draw(st.sampled_from([1, 2, 5, 10_000, "all"])),
            "threads": data.draw(st.sampled_from([1, 2])),
            "on_error": data.draw(st.sampled_from(["raise", "skip", "stop"])),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            reads = (limited, whole, in_batches, filtered)
            expected, *others = [outcome(read, tfr.dataset(folder, **how)) for read in reads]
        for found in others:
            assert found == expected


@pytest.mark.parametrize(
    "type_", [tfr.tensor("uint8", ("height", "width", "depth")), "tensor(uint8,(height,width,depth))"]
)
def test_selected_columns_need_not_state_the_shape(tmp_path: Path, type_: Any) -> None:
    layout = Layout("names", "example", "uint8", "", as_list=False)
    arrays = [np.full((2, 3, row), row, np.uint8) for row in (1, 2)]
    written(tmp_path / "a", layout.records([array] for array in arrays))
    for columns in (["image_raw"], ["!height", "!width", "!depth"], ["image_raw", "depth"]):
        dataset = tfr.dataset(tmp_path / "a", schema_overrides={"image_raw": type_}, columns=columns, sample="all")
        table = tfr.read_table(dataset)
        assert {"height", "width"}.isdisjoint(table.column_names)
        for found, expected in zip(tfr.read_tfrecord(dataset)["image_raw"], arrays, strict=True):
            same(found, [expected])


@settings(max_examples=rounds(200))
@given(
    dtype=st.sampled_from(["uint8", "bool", "float32", "int4", "uint16"]),
    sizes=st.lists(st.sampled_from([(2, 3), (2, 3), (2, 3), (3, 2), (6, 1)]), min_size=1, max_size=4),
    lengths=st.lists(st.sampled_from([0, 0, 0, 1, -1, None]), min_size=4, max_size=4),
    content=st.binary(min_size=32, max_size=32),
)
def test_columns_of_one_shape_equal_what_the_general_case_makes(
    dtype: str, sizes: list[tuple[int, int]], lengths: list[int | None], content: bytes
) -> None:
    """Arrays of one shape, all of them present, are checked together: with the same values and errors."""
    width = {"float32": 4, "uint16": 2}.get(dtype, 1)
    schema = {"image_raw": tfr.tensor(dtype, ("height", "width")), "label": "int64"}
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "a.tfrecord"
        records = []
        for label, ((height, wide), more) in enumerate(zip(sizes, lengths, strict=False)):
            image = {} if more is None else {"image_raw": (content * 2)[: 6 * width + more]}
            records.append(tfr.encode_example({**image, "height": height, "width": wide, "label": label}))
        written(path, records)
        found = outcome(whole, tfr.dataset(path, schema=schema))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("tfrecord_io.columns.arrow.decode.stated_shapes.StatedColumns.state_only", lambda *_: False)
            assert found == outcome(whole, tfr.dataset(path, schema=schema))


def test_a_record_of_another_shape_than_the_sample_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    layout = Layout("names", "example", "uint8", "", as_list=False)
    shapes = [(2, 2, 1)] * 5 + [(2, 3, 1)]
    written(path, layout.records([np.zeros(shape, np.uint8)] for shape in shapes))
    with pytest.raises(tfr.errors.DecodeError, match=r"record 5: .*state the shape \(2, 3, 1\), and .*sample=\"all\""):
        tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample=3))
    assert len(tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all"))) == 6


def test_sizes_that_do_not_multiply_to_the_bytes_are_named(tmp_path: Path) -> None:
    sizes = {"height": 28, "width": 28, "depth": 3}
    path = written(tmp_path / "a.tfrecord", [tfr.encode_example({"image_raw": bytes(4704), **sizes})])
    with pytest.raises(tfr.errors.DecodeError) as caught:
        tfr.read_table(path, schema={"image_raw": tfr.tensor("uint8", ("height", "width", "depth"))})
    assert caught.value.record == 0
    assert "2,352 values of uint8, and the record has 4,704 values" in str(caught.value)
    assert "4,704 bytes are 28 × 28 × 6 of uint8 or 28 × 28 × 3 of uint16" in str(caught.value)


@pytest.mark.parametrize("size", [-2, 2**31, 2**62])
@pytest.mark.parametrize("records", [[0], [1, 0], [0, 1]])
def test_a_shape_that_no_array_has_is_named(tmp_path: Path, size: int, records: list[int]) -> None:
    sizes = [(2, 3) if good else (size, size) for good in records]
    payloads = [tfr.encode_example({"image": bytes(6), "height": height, "width": width}) for height, width in sizes]
    path = written(tmp_path / "a.tfrecord", payloads)
    with pytest.raises(
        tfr.errors.DecodeError, match=r"'height' and 'width' state the shape .*, which no array"
    ) as caught:
        tfr.read_table(path, schema={"image": tfr.tensor("uint8", ("height", "width"))})
    assert caught.value.record == records.index(0)


@pytest.mark.parametrize("part", PARTS)
@settings(max_examples=rounds(100))
@given(st.data())
def test_arrays_that_share_their_sizes_are_written_back(part: str, data: st.DataObject) -> None:
    """Two arrays of one shape, of which a record has one, the other, or both: each record is written as it was."""
    layout = Layout("names", part, "uint8", data.draw(st.sampled_from(["", "name", "number"])), as_list=False)
    present = data.draw(st.lists(st.sampled_from([("first",), ("second",), ("first", "second")]), min_size=1))
    kind = layout.message
    records = []
    for row, names in enumerate(present):
        arrays = data.draw(rows_of(layout), label=f"arrays of record {row}")[0]
        message = kind.FromString(layout.record(row, arrays))
        features: Any = message.features.feature if kind is Example else message.feature_lists.feature_list
        for name in names:
            features[name].CopyFrom(features["image_raw"])
        del features["image_raw"]
        records.append(message)
    item = layout.schema()["image_raw"]
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        written(path, (message.SerializeToString() for message in records))
        schema = {"first": item, "second": item, "label": "int64"}
        table = tfr.read_table(tfr.dataset(path, schema=schema, sample="all"))
        tfr.write_tfrecord(table, again, record_type=layout.record_type, embed_schema=False)
        with tfr.RecordReader(again) as reader:
            assert [kind.FromString(record) for record in reader] == records


def test_a_column_of_a_size_must_agree_with_the_arrays(tmp_path: Path) -> None:
    arrays = [np.zeros((1, 2), np.uint8), None, np.zeros((2, 3), np.uint8)]
    schema = {"image": tfr.tensor("uint8", ("height", "width")), "height": "int64"}
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"image": arrays, "height": [1, 7, 2]}, path, schema=schema)
    assert tfr.read_table(path, schema="infer", columns=["height", "width"]).to_pydict() == {
        "height": [1, 7, 2],
        "width": [2, None, 3],
    }
    with pytest.raises(tfr.errors.EncodeError, match=r"record 2: .*'height'.*the column has \[3\].*states has \[2\]"):
        tfr.write_tfrecord({"image": arrays, "height": [1, 7, 3]}, tmp_path / "b.tfrecord", schema=schema)


def test_arrays_of_different_sizes_cannot_share_a_feature(tmp_path: Path) -> None:
    item = tfr.tensor("uint8", ("height", "width"))
    columns = {"first": [np.zeros((1, 2), np.uint8)] * 2, "second": [np.zeros((1, s), np.uint8) for s in (2, 3)]}
    with pytest.raises(tfr.errors.EncodeError, match=r"record 1: .*'width'.*have different sizes"):
        tfr.write_tfrecord(columns, tmp_path / "a.tfrecord", schema={"first": item, "second": item})


def test_an_array_that_moved_into_a_struct_is_written_with_companions(tmp_path: Path) -> None:
    layout = Layout("names", "example", "uint8", "", as_list=False)
    written(tmp_path / "a", layout.records([[np.ones((2, 3, 1), np.uint8)]]))
    table = tfr.read_table(tmp_path / "a", schema=layout.schema())
    columns = [column.combine_chunks() for column in table.columns]
    moved = pa.table({"both": pa.StructArray.from_arrays(columns, fields=list(table.schema))})
    tfr.write_tfrecord(moved, tmp_path / "b")
    with tfr.RecordReader(tmp_path / "b") as reader:
        assert {*tfr.decode_example(next(reader))} == {
            "both/image_raw",
            "both/image_raw/shape",
            "both/image_raw/dtype",
            "both/label",
        }
    assert tfr.read_table(tmp_path / "b").equals(moved)


IMAGE = tfr.tensor("uint8", ("height", "width"))
FIELD = IMAGE.named("image").to_arrow()


@pytest.mark.parametrize(
    ("type_", "how"),
    [
        (pa.list_(FIELD), {}),
        (pa.list_(pa.list_(pa.struct([FIELD]))), {}),
        (pa.list_(pa.struct({"steps": pa.list_(pa.struct([FIELD]))})), {}),
        (pa.map_(pa.string(), FIELD), {}),
        (pa.struct({"maps": pa.map_(pa.string(), pa.struct([FIELD]))}), {}),
        (pa.struct([FIELD]), {"encoding": "nested"}),
        (pa.struct([FIELD]), {"encoding": "json"}),
        (pa.struct([FIELD]), {"default": {"image": None}}),
        (pa.list_(pa.struct([FIELD])), {"part": "feature_list"}),
        (pa.list_(pa.struct([tfr.list_(IMAGE).named("image").to_arrow()])), {}),
    ],
)
def test_arrays_that_plain_features_cannot_store_have_no_shape_from_features(
    type_: pa.DataType, how: dict[str, Any]
) -> None:
    reason = "'image' in it has the shape of other features, as only columns and fields of structs may"
    with pytest.raises(tfr.errors.SchemaError, match=reason):
        tfr.typing.Field("data", type_, **how)


@pytest.mark.parametrize(
    ("item", "has"),
    [
        (tfr.scalar("int64", default=1), "default="),
        (tfr.list_("int64", empty="null"), "empty="),
        (tfr.tensor("uint8", ("height",), feature="other"), "feature="),
        (tfr.tensor("string", (None, 2)), "a shape beside its type"),
        (tfr.image(), "the form of an image"),
        (tfr.image(tfr.tensor("uint8", ("height", "width", 3))), "the form of an image"),
        (tfr.sequence("int64"), "steps"),
    ],
)
def test_what_only_columns_have_is_refused_in_a_struct(item: tfr.typing.Field, has: str) -> None:
    with pytest.raises(tfr.errors.SchemaError, match=f"'x' is the field of a struct, and only columns have {has}"):
        tfr.Schema({"data": {"x": item}})


@pytest.mark.parametrize(
    "item",
    [
        tfr.scalar("int64"),
        tfr.list_("int64"),
        tfr.list_(tfr.tensor("uint8", ("height",))),
        tfr.sequence("int64"),
        tfr.tensor("uint8", (2, None, None)),
        tfr.tensor("uint8", (2, 3), encoding="tensor_proto"),
        tfr.tensor("string", (2,)),
    ],
)
def test_other_fields_are_no_items_of_lists(item: tfr.Field) -> None:
    with pytest.raises(tfr.errors.SchemaError):
        tfr.list_(item)


@pytest.mark.parametrize(
    ("heights", "reason"),
    [
        ([2, 2, 2], "'height' has 3 sizes, and the record has 2 arrays whose size it states"),
        ([2, 3], r"state the shape \(3, 3\) of 9 values of uint8, and the record has 6"),
        ([2, -3], r"state the shape \(-3, 3\), which no array has"),
        ([2**40, 2**40], r"state the shape \(1099511627776, 3\), which no array has"),
    ],
)
def test_sizes_that_do_not_fit_a_list_of_arrays_are_named(tmp_path: Path, heights: list[int], reason: str) -> None:
    good = {"images": [bytes(6), bytes(3)], "height": [2, 1], "width": 3}
    bad = {"images": [bytes(6), bytes(6)], "height": heights, "width": 3}
    written(tmp_path / "a", map(tfr.encode_example, (good, bad)))
    schema = {"images": tfr.list_(tfr.tensor("uint8", ("height", "width")))}
    with pytest.raises(tfr.errors.DecodeError, match=reason) as caught:
        tfr.read_table(tmp_path / "a", schema=schema)
    assert (caught.value.record, caught.value.feature) == (1, "images")


@settings(max_examples=rounds(100))
@given(st.data())
def test_lists_of_arrays_of_a_known_shape_are_values_of_a_feature(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    dtype = data.draw(st.sampled_from(["uint8", "int16", "float32", "complex64"]))
    unknown = data.draw(st.sampled_from([None, *range(len(shape))]))
    declared = tuple(None if at == unknown else size for at, size in enumerate(shape))
    counts = data.draw(st.lists(st.integers(0, 3), min_size=1, max_size=5))
    rows = [np.arange(count * np.prod(shape, dtype=int)).reshape(count, *shape).astype(dtype) for count in counts]
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        records = [
            Example(features=Features(feature={"x": Feature(bytes_list=BytesList(value=[a.tobytes() for a in row]))}))
            for row in rows
        ]
        written(path, (record.SerializeToString() for record in records))
        schema = {"x": tfr.list_(tfr.tensor(dtype, declared))}
        if unknown is not None and 0 in (size for size in declared if size is not None):
            return  # the unknown size does not follow
        table = tfr.read_table(path, schema=schema)
        for found, row in zip(tfr.read_tfrecord(path, schema=schema)["x"], rows, strict=True):
            assert len(found) == len(row)
            for own, array in zip(found, row, strict=True):
                same(own, [array]) if array.ndim == 3 else np.testing.assert_array_equal(np.asarray(own), array)
        tfr.write_tfrecord(table, again)
        assert tfr.read_table(again).equals(table)
        tfr.write_tfrecord(table, again, embed_schema=False, mode="overwrite")
        with tfr.RecordReader(again) as reader:
            assert [Example.FromString(record) for record in reader] == records
        text = tfr.Schema(schema).to_python()
        names: dict[str, Any] = {}
        exec(text, names)
        assert names["schema"] == tfr.Schema(schema)


@settings(max_examples=rounds(200))
@given(st.data())
def test_lists_of_arrays_are_written_from_python(data: st.DataObject) -> None:
    """A dict, a DataFrame, and what `read_tfrecord` makes of a file, have lists or stacks of arrays in their cells."""
    layout = data.draw(layouts().filter(lambda layout: layout.part != "example" and not layout.as_list))
    rows: list[Any] = data.draw(rows_of(layout))
    missing = data.draw(st.integers(0, len(rows)))
    if 0 < missing < len(rows):
        rows[missing] = None
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        written(path, (layout.record(number, arrays) for number, arrays in enumerate(rows) if arrays is not None))
        dataset = tfr.dataset(path, schema=layout.schema(), sample="all")
        schema = tfr.Schema.parse(dataset.schema)
        cells = [None if row is None else layout.cell(row) for row in rows]
        frame = pd.DataFrame({"image_raw": pd.Series(cells, dtype=object), "label": np.arange(len(rows))})
        read = tfr.read_tfrecord(dataset)
        for source in (frame, {"image_raw": cells, "label": np.arange(len(rows))}, read):
            expected = [row for row in rows if row is not None] if source is read else rows
            tfr.write_tfrecord(source, again, schema=schema, record_type=layout.record_type, mode="overwrite")
            found = tfr.read_tfrecord(again)["image_raw"]
            assert len(found) == len(expected)
            for own, arrays in zip(found, expected, strict=True):
                assert (own is None) == (arrays is None)
                if arrays is not None:
                    same(layout.arrays(own), arrays)


@settings(max_examples=rounds(100))
@given(st.data())
def test_arrays_appended_without_a_schema_state_their_sizes_as_the_dataset_does(data: st.DataObject) -> None:
    layout = data.draw(layouts().filter(lambda layout: layout.shape != "one unknown" and not layout.as_list))
    first, second = (data.draw(rows_of(layout)) for _ in range(2))
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "a.tfrecord", Path(folder) / "set"
        written(path, layout.records(first))
        table = tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all"))
        how: dict[str, Any] = {"record_type": layout.record_type, "mode": "append"}
        tfr.write_tfrecord(table, target, shards=1, **how)
        added: Any = {"image_raw": [layout.cell(row) for row in second], "label": np.arange(len(second))}
        if data.draw(st.booleans()):
            written(path, layout.records(second))
            added = without_metadata(tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all")))
        tfr.write_tfrecord(added, target, evolve=True, **how)
        found = tfr.read_tfrecord(target)["image_raw"]
        for own, arrays in zip(found, [*first, *second], strict=True):
            same(layout.arrays(own), arrays)
        names = set[str]()
        for file in tfr.dataset(target).files:
            names |= {*tfr.read_table(tfr.dataset(file, schema="infer")).column_names}
        assert names == {
            layout.feature,
            "label",
            *["image_raw/id"] * bool(layout.path),
            *layout.sizes(first[0][0]),
            *["image/dtype"] * bool(layout.dtype_feature),
        }


def test_files_that_state_shapes_elsewhere_have_no_common_column(tmp_path: Path) -> None:
    """Else the records of one would be read with the features of the other, which they lack."""
    arrays = [np.ones((2, 3), np.uint8), np.ones((1, 2), np.uint8)]
    sized = {"image": tfr.tensor("uint8", ("height", "width"))}
    tfr.write_tfrecord({"image": arrays}, tmp_path / "a.tfrecord")
    tfr.write_tfrecord({"image": arrays}, tmp_path / "b.tfrecord", schema=sized)
    with pytest.raises(tfr.errors.SchemaError, match="stored in another form"):
        tfr.read_table([tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"])
    tfr.write_tfrecord({"image": arrays}, tmp_path / "set", shards=1)
    with pytest.raises(tfr.errors.SchemaError, match="stored in another form; pass its schema="):
        tfr.write_tfrecord({"image": arrays}, tmp_path / "set", schema=sized, mode="append")
    assert len(tfr.read_table(tmp_path / "set")) == 2


@pytest.mark.parametrize(("sizes", "reason"), [([1] * 70, "70 dimensions, but NumPy has at most 62")])
def test_more_dimensions_than_arrays_have_are_refused(tmp_path: Path, sizes: list[int], reason: str) -> None:
    written(tmp_path / "a", [tfr.encode_example({"image": b"x", "shape": sizes})])
    with pytest.raises(tfr.errors.SchemaError, match=reason):
        tfr.read_table(tmp_path / "a", schema={"image": tfr.tensor("uint8", "shape")})


def test_sizes_without_a_number_are_arrays_without_dimensions(tmp_path: Path) -> None:
    records = [tfr.encode_example({"image": byte, "shape": np.array([], np.int64)}) for byte in (b"a", b"b")]
    written(tmp_path / "a", records)
    schema = {"image": tfr.tensor("uint8", "shape")}
    assert tfr.read_arrays(tmp_path / "a", schema=schema)["image"].tolist() == [97, 98]


def test_another_dtype_than_that_of_the_sample_is_named_before_its_size(tmp_path: Path) -> None:
    records = [
        tfr.encode_example({"image": bytes(size), "height": 2, "width": 3, "dtype": dtype})
        for dtype, size in [("int16", 12), ("int16", 12), ("uint8", 6)]
    ]
    written(tmp_path / "a", records)
    schema = {"image": tfr.tensor("dtype", ("height", "width"))}
    with pytest.raises(tfr.errors.DecodeError, match=r"record 2: .*its 6 bytes are uint8 according to 'dtype'"):
        tfr.read_table(tfr.dataset(tmp_path / "a", schema=schema, sample=2))


@pytest.mark.parametrize("shape", ["shape", ("rows",)])
@pytest.mark.parametrize("encoding", ["raw", "list"])
def test_a_stated_encoding_takes_no_other(tmp_path: Path, shape: Any, encoding: str) -> None:
    stored = {"raw": np.arange(6).astype("int64").tobytes(), "list": np.arange(6)}
    item = tfr.tensor("int64", shape, encoding=encoding)
    assert f"encoding={encoding!r}" in tfr.Schema({"x": item}).to_python().replace('"', "'")
    for name, values in stored.items():
        path = written(tmp_path / name, [tfr.encode_example({"x": values, "shape": [6], "rows": 6})])
        if name == encoding:
            assert tfr.read_arrays(path, schema={"x": item})["x"].tolist() == [[0, 1, 2, 3, 4, 5]]
            continue
        with pytest.raises(tfr.errors.FeatureTypeError, match=r"'x': expected an? "):
            tfr.read_table(path, schema={"x": item})


@pytest.mark.parametrize("columns", [None, ["image"]])
def test_files_without_records_have_arrays_of_any_shape(tmp_path: Path, columns: list[str] | None) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": []}, path, embed_schema=False)
    sizes = ("height", "width")
    schema = {"image": tfr.tensor("uint8", sizes), "images": tfr.list_(tfr.tensor("uint8", sizes))}
    for read in (tfr.read_table, lambda *args, **how: tfr.read_table(*args, limit=3, **how)):
        table = read(path, schema=schema, columns=columns)
        assert len(table) == 0
        assert tfr.Schema.parse(table.schema)["image"].shape == (None, None)
    assert tfr.read_arrays(path, schema=schema)["image"].shape == (0,)


@settings(max_examples=rounds(100))
@given(st.data())
def test_arrays_become_the_lists_of_lists_that_a_schema_declares(data: st.DataObject) -> None:
    rank = data.draw(st.integers(2, 3))
    shapes = data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * rank), min_size=1, max_size=4))
    arrays: list[Any] = [np.arange(np.prod(shape, dtype=int)).reshape(shape).astype("int32") for shape in shapes]
    if data.draw(st.booleans()):
        arrays[data.draw(st.integers(0, len(arrays) - 1))] = None
    if all(array is None for array in arrays):
        return
    type_: pa.DataType = pa.int64()
    for _ in range(rank):
        type_ = pa.list_(type_)
    expected = [None if array is None else array.tolist() for array in arrays]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        tfr.write_tfrecord({"x": arrays}, path, schema={"x": type_})
        assert tfr.read_table(path)["x"].to_pylist() == expected


@settings(max_examples=rounds(200))
@given(st.data())
def test_arrays_of_python_are_written_by_the_schema_that_reads_them(data: st.DataObject) -> None:
    """Also where the schema leaves the rank or the dtype to the data."""
    layout = data.draw(layouts().filter(lambda layout: not layout.as_list))
    rows = data.draw(rows_of(layout))
    if layout.shape == "one feature" and layout.part == "steps":  # whose steps have one shape in the context
        rows = [[row[0]] * len(row) for row in rows]
    columns = {"image_raw": [layout.cell(row) for row in rows], "label": range(len(rows))}
    frame = pd.DataFrame({"image_raw": pd.Series(columns["image_raw"], dtype=object), "label": columns["label"]})
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        for source in ({**columns, "label": list(columns["label"])}, frame):
            how: dict[str, Any] = {"schema": layout.schema(), "record_type": layout.record_type, "mode": "overwrite"}
            tfr.write_tfrecord(source, path, **how)
            for schema in (layout.schema(), None):
                found = tfr.read_tfrecord(tfr.dataset(path, schema=schema, sample="all"))["image_raw"]
                for own, arrays in zip(found, rows, strict=True):
                    same(layout.arrays(own), arrays)
            with tfr.open_writer(path, **how) as writer:
                for number in range(len(frame)):
                    writer.write(frame[number : number + 1])
            found = tfr.read_tfrecord(tfr.dataset(path, schema=layout.schema(), sample="all"))["image_raw"]
            for own, arrays in zip(found, rows, strict=True):
                same(layout.arrays(own), arrays)


@settings(max_examples=rounds(100))
@given(st.data())
def test_arrays_of_structs_are_written_by_the_schema_that_reads_them(data: st.DataObject) -> None:
    """A table of Arrow whose fields say nothing; shapes that are the same in it may vary in the schema."""
    layout = data.draw(layouts((*STRUCTS, *LISTS_AND_STRUCTS)).filter(lambda layout: not layout.as_list))
    rows = data.draw(rows_of(layout))
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        written(path, layout.records(rows))
        table = tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all"))
        begin = data.draw(st.integers(0, len(rows) - 1))
        tfr.write_tfrecord(without_metadata(table)[begin:], again, schema=layout.schema())
        for schema in (layout.schema(), None):
            found = tfr.read_tfrecord(tfr.dataset(again, schema=schema, sample="all"))["image_raw"]
            for own, arrays in zip(found, rows[begin:], strict=True):
                same(layout.arrays(own), arrays)


@settings(max_examples=rounds(200))
@given(st.data())
def test_missing_fields_and_structs_are_null_and_written_back(data: st.DataObject) -> None:
    """A record may lack the array, all fields of the struct, or the sizes, too; structs in a list have all or none."""
    layout = data.draw(layouts((*STRUCTS, *LISTS_AND_STRUCTS)).filter(lambda layout: not layout.as_list))
    rows = data.draw(rows_of(layout))
    lacks = [data.draw(st.sampled_from(["", "array", "struct", "sizes"])) for _ in rows]
    records, expected = [], list[Any]()
    for number, (arrays, lack) in enumerate(zip(rows, lacks, strict=True)):
        message = layout.message.FromString(layout.record(number, arrays))
        features: Any = message.features.feature
        own = [layout.feature, *(["image_raw/id"] if lack != "array" or layout.part == "structs" else [])]
        for name in [] if not lack else own if lack != "sizes" else [*own, *layout.sizes(arrays[0])]:
            features.pop(name, None)
        records.append(message)
        expected.append(None if lack else arrays)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of columns that no record has
        path, again = Path(folder) / "a.tfrecord", Path(folder) / "b.tfrecord"
        written(path, (message.SerializeToString() for message in records))
        try:
            table = tfr.read_table(tfr.dataset(path, schema=layout.schema(), sample="all"))
        except tfr.errors.FeatureNotFoundError:
            assert all(lack == "sizes" for lack in lacks)
            return
        table.validate(full=True)
        cells = tfr.read_tfrecord(tfr.dataset(path, schema=layout.schema(), sample="all"))["image_raw"]
        for cell, lack, arrays in zip(cells, lacks, expected, strict=True):
            assert (cell is None) == (bool(lack) and not (lack == "array" and layout.part != "structs"))
            if arrays is None:
                assert cell is None or first_of(layout, cell) is None
            else:
                same(layout.arrays(cell), arrays)
        tfr.write_tfrecord(table, again)
        assert tfr.read_table(again).equals(table)


def first_of(layout: Layout, cell: Any) -> Any:
    """The arrays of a cell whose structs may be null on the way to them."""
    for name in layout.path:
        cell = None if cell is None else cell[name]
    return cell


def test_a_struct_whose_array_has_another_rank_is_refused_with_its_record(tmp_path: Path) -> None:
    type_ = pa.fixed_shape_tensor(pa.uint8(), (2, 3))
    images = pa.ExtensionArray.from_storage(type_, pa.array([[1] * 6] * 3, type_.storage_type))
    structs = pa.StructArray.from_arrays([images], ["image"])
    for column, schema in (
        (structs, {"image": tfr.tensor("uint8", ("height", 4))}),
        (pa.ListArray.from_arrays([0, 0, 1, 3], structs), tfr.list_({"image": tfr.tensor("uint8", ("height", 4))})),
    ):
        record = 0 if column is structs else 1
        with pytest.raises(tfr.errors.EncodeError, match=f"record {record}: feature 'x': ") as caught:
            tfr.write_tfrecord(pa.table({"x": column}), tmp_path / "a", schema={"x": schema})
        assert caught.value.record == record


def test_bytes_of_arrays_may_be_written_beside_their_sizes(tmp_path: Path) -> None:
    image = tfr.tensor("uint8", "shape")
    data = {"image": [bytes(6), bytes(2)], "shape": [[2, 3], [1, 2]]}
    tfr.write_tfrecord(data, tmp_path / "a", schema={"image": image, "shape": pa.list_(pa.int64())}, embed_schema=False)
    found = tfr.read_tfrecord(tmp_path / "a", schema={"image": image})["image"]
    assert [array.shape for array in found] == [(2, 3), (1, 2)]


@pytest.mark.parametrize("axes", [("height",), ("height", "width", 3), ()])
@pytest.mark.parametrize("is_field", [False, True])
def test_a_source_of_another_number_of_dimensions_is_damaged(
    tmp_path: Path, axes: tuple[Any, ...], is_field: bool
) -> None:
    source = ShapeSource(axes, element="uint8", is_open=False, encoding="raw", in_struct=True)
    metadata = {**source.metadata, b"tfrecord_io.encoding": b"raw"}
    column = pa.field("x", pa.fixed_shape_tensor(pa.uint8(), (2, 3)), metadata=metadata)
    if is_field:
        column = pa.field("x", pa.struct([column]))
    feature = "x/x" if is_field else "x"
    written(tmp_path / "a", [tfr.encode_example({feature: bytes(6), "height": 2, "width": 3})])
    reason = f"'{feature}': its metadata is damaged: .* has {len(axes)} dimensions, but the type has 2"
    with pytest.raises(tfr.errors.SchemaError, match=reason):
        tfr.read_table(tmp_path / "a", schema=pa.schema([column]))
    with pytest.raises(tfr.errors.SchemaError, match=reason):
        tfr.write_tfrecord(pa.table([pa.nulls(1, column.type)], schema=pa.schema([column])), tmp_path / "b")


@pytest.mark.parametrize("sample", [2, 10_000])
@pytest.mark.parametrize("order", ["ab", "ba", "aa"])
@pytest.mark.parametrize("in_list", [False, True])
def test_arrays_that_no_record_of_a_file_has_are_null(tmp_path: Path, order: str, sample: int, in_list: bool) -> None:
    """As other declared columns; their sizes, which no record states, vary."""
    record = {"x": bytes(4), "h": 2, "w": 2}
    for name, features in (("a", {}), ("b", record)):
        payloads = [tfr.encode_example({"k": n, **features}) for n in range(3)]
        written(tmp_path / f"{name}.tfrecord", payloads)
    item = tfr.tensor("uint8", ("h", "w"), required=False)
    field = tfr.list_(tfr.tensor("uint8", ("h", "w")), required=False) if in_list else item
    paths = [tmp_path / f"{name}.tfrecord" for name in order]
    source = tfr.dataset(paths, schema={"k": "int64", "x": field}, sample=sample)
    expected = [value for name in order for value in [None if name == "a" else [[0, 0], [0, 0]]] * 3]
    found = tfr.read_tfrecord(source)["x"].tolist()
    assert [cell if cell is None else np.array(cell[0] if in_list else cell).tolist() for cell in found] == expected


def test_a_shape_of_unknown_rank_that_no_record_states_is_named(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tfrecord", [tfr.encode_example({"k": 1})])
    with pytest.raises(
        tfr.errors.FeatureNotFoundError, match="no record of the sample has it, and it states the shape"
    ):
        tfr.read_table(path, schema={"k": "int64", "x": tfr.tensor("uint8", "shape")})
