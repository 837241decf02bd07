"""The embedded schemas of all files are united: each reader and tool has the same columns, types and values."""

from __future__ import annotations

import ast
import itertools
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from tfrecord_io.columns.schema.merged_schema import common_field

INTEGERS = [pa.int8(), pa.uint8(), pa.int16(), pa.uint16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
# Groups of types that have a common one.
GROUPS = [
    INTEGERS,
    [pa.float16(), pa.float32(), pa.float64()],
    [pa.string(), pa.binary(), pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.int16(), pa.string())],
    [pa.decimal128(5, 2), pa.decimal128(9, 4), pa.decimal128(20, 1)],
    [pa.list_(pa.int8()), pa.list_(pa.int64()), pa.list_(pa.int16(), 2)],
    [pa.struct({"a": pa.int8()}), pa.struct({"a": pa.int32(), "b": pa.string()}), pa.struct({"b": pa.string()})],
    [pa.bool_()],
    [pa.timestamp("us")],
]
NULLS = [pa.null(), pa.dictionary(pa.int8(), pa.null())]  # which are in each group
SAMPLES: list[Callable[[int], Any]] = [
    lambda row: row,
    lambda row: row / 2,
    lambda row: f"w{row}",
    lambda row: Decimal(row),
    lambda row: [row, row + 1],
    lambda row: {"a": row, "b": f"w{row}"},
    lambda row: row % 2 == 0,
    lambda row: row,
]


def column(group: int, type_: pa.DataType, rows: int) -> pa.Array:
    values = [None if row % 4 == 3 else SAMPLES[group](row) for row in range(rows)]
    if type_ in NULLS:
        return pa.nulls(rows).cast(type_)
    if pa.types.is_float16(type_):
        return pa.array([None if value is None else np.float16(value) for value in values], type_)
    if pa.types.is_struct(type_):
        names = [child.name for child in type_]
        values = [None if value is None else {name: value[name] for name in names} for value in values]
    if pa.types.is_dictionary(type_):
        return pa.array(values, type_.value_type).dictionary_encode().cast(type_)
    if pa.types.is_binary(type_):
        return pa.array(values).cast(type_)
    return pa.array(values, type_)


@st.composite
def datasets(draw: st.DrawFn) -> list[pa.Table]:
    """Tables with some of the columns, whose types are of one group for each name."""
    tables = []
    for _ in range(draw(st.integers(1, 4))):
        rows = draw(st.integers(1, 6))
        columns = {"id": pa.array(range(rows))}
        for group in draw(st.lists(st.integers(0, len(GROUPS) - 1), unique=True)):
            type_ = draw(st.sampled_from([*GROUPS[group], *NULLS]))
            columns[f"c{group}"] = column(group, type_, rows)
        tables.append(pa.table(columns))
    return tables


def united(schemas: list[pa.Schema]) -> pa.Schema:
    """The union by name, by `common_field`."""
    fields: dict[str, pa.Field] = {}
    for schema in schemas:
        for field in schema:
            common = common_field(fields[field.name], field) if field.name in fields else field
            assert common is not None
            fields[field.name] = common
    return pa.schema(list(fields.values()))


def by_stream(path: Any) -> pa.Table:
    with tfr.open_reader(path, batch_size=2) as reader:
        return pa.Table.from_batches(list(reader), reader.schema)


def by_index(path: Any) -> pa.Table:
    with tfr.open_random(path) as records:
        return records[:]


READERS: list[Callable[[Any], pa.Table]] = [
    tfr.read_table,
    by_stream,
    lambda path: tfr.dataset(path).to_table(),
    by_index,
    lambda path: tfr.scan_polars(path).collect().to_arrow(),
]


def rows_of(table: pa.Table, names: list[str]) -> list[dict[str, Any]]:
    return [{name: _plain(row.get(name)) for name in names} for row in table.to_pylist()]


def _plain(value: Any) -> Any:
    """A struct without the fields that are null, and text as bytes: what does not depend on the file's own type."""
    if isinstance(value, dict):
        present = {key: _plain(item) for key, item in value.items() if item is not None}
        return present or None
    return value.encode() if isinstance(value, str) else value


@given(datasets(), st.sampled_from(READERS))
def test_every_reader_has_the_united_columns(
    tmp_path_factory: pytest.TempPathFactory, tables: list[pa.Table], read: Callable[[Any], pa.Table]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number, table in enumerate(tables):
            tfr.write_tfrecord(table, folder / f"{number}.tfrecord")
        path = str(folder / "*.tfrecord")
        table = read(path)
        expected = united([one.schema for one in tables])
        names = expected.names
        assert table.schema.names == names
        if read is not READERS[-1]:  # polars has types of its own
            assert dict(zip(names, table.schema.types, strict=True)) == dict(zip(names, expected.types, strict=True))
        assert rows_of(table, names) == [row for one in tables for row in rows_of(one, names)]
        for schema in (tfr.read_metadata(path).schema, tfr.dataset(path).schema):
            assert (schema.names, schema.types) == (names, expected.types)


def _stored(table: pa.Table, path: Path, form: str) -> str:
    """Write a table as a file or a dataset, or as one that has no rows any more; returns its path."""
    if form == "file":
        tfr.write_tfrecord(table, file := path.with_suffix(".tfrecord"))
        return str(file)
    tfr.write_tfrecord(table, path, shards=1)
    if form == "no rows":
        tfr.delete(path, filters=[("id", ">=", 0)])
    return str(path)


FORMS = st.tuples(st.sampled_from(["file", "dataset", "no rows"]), datasets().map(lambda tables: tables[0]))


@given(st.lists(FORMS, min_size=1, max_size=4), st.sampled_from(READERS))
def test_sources_without_rows_have_their_columns(
    tmp_path_factory: pytest.TempPathFactory, stored: list[tuple[str, pa.Table]], read: Callable[[Any], pa.Table]
) -> None:
    folder = tmp_path_factory.mktemp("sources")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        paths = [_stored(table, folder / f"{number}", form) for number, (form, table) in enumerate(stored)]
        table = read(paths)
    expected = united([one.schema for _, one in stored])
    assert table.schema.names == expected.names
    if read is not READERS[-1]:
        assert table.schema.types == expected.types


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("narrow", [lambda d: d.filter([("id", "<", 0)]), lambda d: d.limit(0), lambda d: d.offset(5)])
def test_a_dataset_of_which_no_row_is_left_has_its_columns(
    tmp_path: Path, narrow: Callable[[tfr.Dataset], tfr.Dataset], order: tuple[int, int]
) -> None:
    tables = [pa.table({"id": [300], "f": pa.array([6], pa.int32())}), pa.table({"id": pa.array([1], pa.int8())})]
    for number, table in enumerate(tables):
        tfr.write_tfrecord(table, tmp_path / f"{number}.tfrecord")
    parts = [narrow(tfr.dataset(tmp_path / "0.tfrecord")), tfr.dataset(tmp_path / "1.tfrecord")]
    both = parts[order[0]] + parts[order[1]]
    assert both.schema == both.to_table().schema == tables[0].schema
    assert both.to_table().to_pylist() == [{"id": 1, "f": None}]


def test_a_schema_that_a_manifest_states_has_no_other_file_opened_for_its_schema(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tfr.write_tfrecord({"id": [1]}, tmp_path / "dataset", shards=1)
    for number in range(3):
        tfr.write_tfrecord({"id": [number]}, tmp_path / f"{number}.tfrecord")
    monkeypatch.setattr("tfrecord_io.read.plan_request.first_contents", None)
    paths = [tmp_path / "dataset", *(tmp_path / f"{number}.tfrecord" for number in range(3))]
    assert tfr.read_table(paths)["id"].to_pylist() == [1, 0, 1, 2]


def test_a_column_without_a_common_type_is_an_error_only_where_it_is_read(tmp_path: Path) -> None:
    first, second = tmp_path / "1.tfrecord", tmp_path / "2.tfrecord"
    tfr.write_tfrecord({"id": [1, 2], "v": [1, 2]}, first)
    tfr.write_tfrecord({"id": [3], "v": ["x"], "new": [1.5]}, second)
    path = str(tmp_path / "*.tfrecord")
    for read in READERS:
        with pytest.raises(Exception, match=r"its type is int64 in .*1\.tfrecord and string in .*2\.tfrecord"):
            read(path)
    assert tfr.read_table(path, columns=["id", "new"]).to_pydict() == {"id": [1, 2, 3], "new": [None, None, 1.5]}
    assert tfr.read_table(path, columns=["!v"])["id"].to_pylist() == [1, 2, 3]
    assert tfr.read_table(path, columns=["id"], filters=[("new", ">", 1)])["id"].to_pylist() == [3]
    assert tfr.dataset(path).select(["id"]).to_table()["id"].to_pylist() == [1, 2, 3]
    assert tfr.dataset(path).count_rows() == 3
    assert [batch["id"].tolist() for batch in tfr.iter_arrays(path, batch_size=2, columns=["id"])] == [[1, 2], [3]]


@pytest.mark.plugins("report")
def test_tools_show_columns_without_a_common_type(tmp_path: Path) -> None:
    tfr.write_tfrecord({"id": [1, 2], "v": [1, 2]}, tmp_path / "1.tfrecord")
    tfr.write_tfrecord({"id": [3], "v": ["x"]}, tmp_path / "2.tfrecord")
    path = str(tmp_path / "*.tfrecord")
    message = r"feature 'v': its type is int64 in .*1\.tfrecord and string in .*2\.tfrecord"
    with pytest.warns(tfr.errors.SchemaWarning, match=message):
        assert tfr.read_metadata(path).schema.names == ["id", "v"]
    with pytest.warns(tfr.errors.SchemaWarning, match=message):
        assert [c.name for c in tfr.describe(path).columns] == ["id"]
    with pytest.warns(tfr.errors.SchemaWarning, match=message):
        assert [f.name for f in tfr.report(path).statistics[0].features] == ["id"]


def test_integers_and_floats_are_read_as_a_declared_float(tmp_path: Path) -> None:
    tfr.write_tfrecord({"v": [1, 2**24 + 1], "l": [[1], [2, 3]]}, tmp_path / "1.tfrecord")
    tfr.write_tfrecord({"v": pa.array([1.5], pa.float32()), "l": [[0.5]]}, tmp_path / "2.tfrecord", float64="round")
    path = str(tmp_path / "*.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match=r"schema_overrides=\{'v': 'float64'\}"):
        tfr.read_table(path, columns=["v"])
    wide = {"v": "float64", "l": "list<float64>"}
    for keyword in ("schema", "schema_overrides"):
        table = read_by(tfr.read_table, path, **{keyword: wide})
        assert table.to_pydict() == {"v": [1.0, 2.0**24 + 1, 1.5], "l": [[1.0], [2.0, 3.0], [0.5]]}
    with pytest.raises(
        tfr.errors.DecodeError, match=r"record 1.*'v': the integer cannot be read as float without rounding"
    ):
        tfr.read_table(path, schema={"v": "float32"})


@pytest.mark.parametrize("group", range(len(GROUPS)))
def test_common_types_do_not_depend_on_the_order(group: int) -> None:
    fields = [pa.field("x", type_) for type_ in [*GROUPS[group], *NULLS]]
    for a in fields:
        for b in fields:
            ab, ba = common_field(a, b), common_field(b, a)
            assert ab is not None
            assert ba is not None
            assert _unordered(ab.type) == _unordered(ba.type)
            for c in fields:
                left, right = common_field(ab, c), common_field(a, common_field(b, c) or b)
                assert left is not None
                assert right is not None
                assert _unordered(left.type) == _unordered(right.type)


CONFLICTING = [{"x": [3]}, {"x": np.zeros((1, 2, 2), np.uint8)}, {"x": ["text"]}, {"x": [{"a": 1, "b": [2.5]}]}]


@pytest.mark.parametrize("pair", itertools.permutations(range(len(CONFLICTING)), 2), ids=str)
def test_a_column_of_several_types_can_be_left_out(tmp_path: Path, pair: tuple[int, int]) -> None:
    for row, number in enumerate(pair):
        tfr.write_tfrecord({"id": [row], **CONFLICTING[number]}, tmp_path / f"{row}.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match=r"leave it out by columns=\['\*', '!x'\]"):
        tfr.read_table(tmp_path)
    expected = [{"id": 0}, {"id": 1}]
    assert tfr.read_table(tmp_path, columns=["*", "!x"]).to_pylist() == expected
    assert tfr.read_table(tmp_path, columns=["id"]).to_pylist() == expected
    with pytest.warns(tfr.errors.SchemaWarning, match="'x'"):
        assert "\nid " in str(tfr.describe(tmp_path))


FORMS = [
    [("float32", None), ("float64", None), ("float32", "raw"), ("float64", "raw")],
    [("int8", None), ("int64", None), ("uint8", None), ("int64", "raw"), ("uint64", "raw")],
]


@pytest.mark.matrix
@pytest.mark.parametrize("in_lists", [False, True])
@pytest.mark.parametrize("forms", FORMS, ids=["floats", "integers"])
def test_what_is_appended_in_several_forms_is_read(tmp_path: Path, forms: Any, in_lists: bool) -> None:
    """The order of appends decides neither whether they are refused nor the type; what is accepted is read."""
    outcomes: dict[Any, Any] = {}
    for chosen in itertools.product(forms, repeat=3):
        path = tmp_path / str(len(list(tmp_path.iterdir())))
        values = [[row, row] if in_lists else row for row in (1, 2, 3)]
        try:
            for (dtype, encoding), value in zip(chosen, values, strict=True):
                type_ = pa.from_numpy_dtype(dtype)
                table = pa.table({"v": pa.array([value], pa.list_(type_) if in_lists else type_)})
                encodings = {} if encoding is None else {"v": encoding}
                tfr.write_tfrecord(table, f"{path}/", mode="append", evolve=True, column_encoding=encodings)
            column = tfr.read_table(path)["v"]
            assert column.to_pylist() == values
            assert tfr.verify(path).ok
            outcome = str(column.type)
        except tfr.errors.SchemaError:
            outcome = None
        assert outcomes.setdefault(tuple(sorted(chosen, key=str)), outcome) == outcome
    assert None in outcomes.values()


PARTS: dict[str, tuple[Callable[[pa.DataType], pa.DataType], Any]] = {
    "struct": (lambda value: pa.struct({"b": value}), {"b": 1.5}),
    "structs": (lambda value: pa.list_(pa.struct({"b": value})), [{"b": 1.5}, {"b": -2.0}]),
    "map": (lambda value: pa.map_(pa.string(), value), [("k", 1.5), ("l", 2.5)]),
    "lists": (lambda value: pa.list_(pa.list_(value)), [[1.5], [], [1.0, 2.0]]),
}
STORED: list[dict[str, Any]] = [
    {"dtype": pa.float32()},
    {"float64": "round"},
    {"float64": "raw"},
    *({"column_encoding": {"x": encoding}} for encoding in ("raw", "npy", "tensor_proto", "nested", "json")),
]


@pytest.mark.parametrize("form", PARTS)
@pytest.mark.parametrize("second", range(len(STORED)))
def test_parts_that_are_stored_in_several_forms_are_read_or_refused(tmp_path: Path, form: str, second: int) -> None:
    """The values of a part in one form are not taken for those of another: nothing in a record distinguishes them."""
    make, value = PARTS[form]

    def write(path: Any, dtype: pa.DataType = pa.float64(), **options: Any) -> None:  # noqa: B008
        tfr.write_tfrecord(pa.table({"x": pa.array([value, None], make(dtype))}), path, **options)

    for number, first in enumerate(STORED):
        paths, forms = [tmp_path / f"{number}", tmp_path / "second"], [first, STORED[second]]
        try:
            for path, options in zip(paths, forms, strict=True):
                if not path.exists():
                    write(path, **options)
        except tfr.errors.EncodeError:  # an encoding that does not fit the type
            continue
        for combine in (tfr.read_table, _merge, partial(_append, write, forms)):
            with suppress(tfr.errors.SchemaError):
                assert combine(paths)["x"].to_pylist() == [value, None] * 2


def _merge(paths: list[Path]) -> pa.Table:
    target = paths[0].with_suffix(".tfrecord")
    tfr.merge(paths, target)
    return tfr.read_table(target)


def _append(write: Callable[..., None], forms: list[dict[str, Any]], paths: list[Path]) -> pa.Table:
    target = f"{paths[0]}.d/"
    for options in forms:
        write(target, mode="append", evolve=True, **options)
    return tfr.read_table(target)


CELLS = [7, [1, 2], [1, None], [[1], []]]  # a value, a list, and what several features hold


@pytest.mark.parametrize("options", [{}, {"float64": "raw"}], ids=["list", "raw"])
@pytest.mark.parametrize(("of_integers", "of_floats"), [*itertools.product(CELLS, repeat=2)], ids=str)
def test_the_type_that_the_error_advises_reads_both_files(
    tmp_path: Path, of_integers: object, of_floats: object, options: dict[str, Any]
) -> None:
    integers = pa.array([of_integers])
    floats = pa.array([of_floats]).cast(_type_of_floats(pa.array([of_floats]).type))
    paths = [tmp_path / "1", tmp_path / "2"]
    for path, array in zip(paths, (integers, floats), strict=True):
        tfr.write_tfrecord({"x": array}, path, **options)
    with pytest.raises(tfr.errors.SchemaError, match="its type is") as caught:
        tfr.read_table(paths)
    advised = re.search(r"schema_overrides=({.*?})", str(caught.value))
    if advised:
        assert tfr.read_table(tfr.dataset(paths, schema_overrides=ast.literal_eval(advised[1]))).num_rows == 2


def _type_of_floats(type_: pa.DataType) -> pa.DataType:
    return pa.list_(_type_of_floats(type_.value_type)) if pa.types.is_list(type_) else pa.float64()


def test_the_error_for_one_type_in_two_forms_says_so(tmp_path: Path) -> None:
    for encoding in ("raw", "npy"):
        tfr.write_tfrecord({"x": [1.5]}, tmp_path / encoding, column_encoding={"x": encoding})
    with pytest.raises(
        tfr.errors.SchemaError, match=r"its type is double in .* and in .*, but it is stored in another form"
    ):
        tfr.read_table([tmp_path / "raw", tmp_path / "npy"])


def _unordered(type_: pa.DataType) -> object:
    return {child.name: child.type for child in type_} if pa.types.is_struct(type_) else type_


@pytest.mark.parametrize("a", range(len(GROUPS)))
@pytest.mark.parametrize("b", range(len(GROUPS)))
def test_types_of_other_groups_have_no_common_one(a: int, b: int) -> None:
    if a != b:
        for x in GROUPS[a]:
            for y in GROUPS[b]:
                assert common_field(pa.field("x", x), pa.field("x", y)) is None


@given(st.data(), st.booleans(), st.booleans())
def test_a_column_is_nullable_if_it_is_in_one_file(data: st.DataObject, first: bool, second: bool) -> None:
    types = data.draw(st.sampled_from(GROUPS).flatmap(lambda group: st.tuples(*2 * [st.sampled_from(group)])))
    a, b = (pa.field("x", type_, nullable) for type_, nullable in zip(types, (first, second), strict=True))
    common = common_field(a, b)
    assert common is None or common.nullable == (first or second)
