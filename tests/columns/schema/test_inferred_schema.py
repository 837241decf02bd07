"""What records show of their features makes a schema stricter, and adds companions of tensors."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pyarrow as pa
import pytest

from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import list_, scalar, sequence
from tfrecord_io.columns.schema.inferred_schema import Evidence, InferredSchema
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import variable_shape_tensor
from tfrecord_io.store import RecordRef

LIST = pa.list_(pa.int64())
FEATURE_LIST = "feature_list"


def inferred(field: Field, records: int = 5, **evidence: Evidence) -> InferredSchema:
    return InferredSchema([field], evidence, records)


def seen(records: int = 5, least: int | None = 3, most: int | None = 3) -> Evidence:
    return Evidence("int64", records, least, most)


def test_no_evidence_is_no_record() -> None:
    nothing = InferredSchema()
    assert (nothing.records, dict(nothing.evidence), list(nothing)) == (0, {}, [])
    assert Evidence() == Evidence(
        kind="none", records=0, least=None, most=None, text=False, part="context", listed=None, binary=None
    )


def test_evidence_survives_pickling_and_cannot_be_changed() -> None:
    schema = inferred(Field("x", LIST), x=seen())
    copy = pickle.loads(pickle.dumps(schema))
    assert type(copy) is InferredSchema
    assert (list(copy), dict(copy.evidence), copy.records) == (list(schema), {"x": seen()}, 5)
    with pytest.raises(TypeError):
        schema.evidence["x"] = seen()  # type: ignore[index]


@pytest.mark.parametrize(
    ("evidence", "required", "length"),
    [
        (seen(), True, 3),
        (seen(least=1, most=1), True, 1),
        (seen(least=2), True, None),
        (seen(least=0, most=0), True, None),
        (seen(least=None, most=None), True, None),
        (seen(4), False, None),
        (None, False, None),
    ],
)
@pytest.mark.parametrize("make_list", [pa.list_, pa.large_list])
def test_lists_of_one_length_in_all_records_get_it(
    evidence: Evidence | None, required: bool, length: int | None, make_list: Callable[[pa.DataType], pa.DataType]
) -> None:
    list_type = make_list(pa.int64())
    schema = inferred(Field("x", list_type), **({"x": evidence} if evidence else {}))
    (strict,) = schema.strict()
    assert strict.required == required
    assert strict.type == (list_type if length is None else pa.list_(pa.int64(), length))


def test_one_record_is_all_records() -> None:
    (strict,) = inferred(Field("x", LIST), 1, x=seen(1)).strict()
    assert (strict.required, strict.type) == (True, pa.list_(pa.int64(), 3))


def test_no_records_require_nothing() -> None:
    (strict,) = inferred(Field("x", LIST), 0, x=seen(0)).strict()
    assert (strict.required, strict.type) == (False, LIST)


@pytest.mark.parametrize(
    "field",
    [
        Field("x", pa.int64()),
        Field("x", pa.list_(LIST)),
        Field("x", LIST, default=[1, 2, 3]),
        Field("x", pa.list_(variable_shape_tensor(pa.int8(), (None,)))),
        sequence(Field("x", pa.int64())).named("x"),
        sequence(Field("x", LIST)).named("x"),
    ],
    ids=str,
)
def test_other_columns_keep_their_type(field: Field) -> None:
    (strict,) = inferred(field, x=seen()).strict()
    assert strict.type == field.type
    assert strict.required


def test_another_schema_of_the_same_records_becomes_strict() -> None:
    schema = Schema([Field("y", LIST, feature="x"), Field("z", LIST)], {"k": "v"})
    strict = inferred(Field("x", LIST), x=seen()).strict(schema)
    assert [(f.column, f.type, f.required) for f in strict] == [
        ("y", pa.list_(pa.int64(), 3), True),
        ("z", LIST, False),
    ]
    assert strict.metadata == schema.metadata
    assert [f.column for f in inferred(Field("x", LIST), x=seen()).strict()] == ["x"]


def tensor(rank: int = 2, **changes: object) -> Field:
    """A column of tensors as raw bytes."""
    values = {"encoding": "raw", **changes}
    return Field("x", variable_shape_tensor(pa.int8(), (None,) * rank), **values)  # type: ignore[arg-type]


def companions(field: Field, schema: Schema | None = None, **evidence: Evidence) -> list[Field]:
    """The fields that are added to the schema of one column."""
    found = InferredSchema((), evidence, 5).with_companions(schema or Schema([field]))
    fields = list(found)
    assert fields[0] == field
    return fields[1:]


PAIR = {"x/shape": seen(5, 2, 2), "x/dtype": Evidence("bytes", 5, 1, 1)}


def test_companions_of_a_tensor_follow_it() -> None:
    shape, dtype = companions(tensor(required=True), **PAIR)
    assert (shape.column, shape.type, shape.required) == ("x/shape", pa.list_(pa.int64(), 2), True)
    assert (dtype.column, dtype.type, dtype.required) == ("x/dtype", scalar("binary").type, True)


def test_the_shape_of_a_vector_has_one_number() -> None:
    shape, _ = companions(tensor(1, required=True), **{**PAIR, "x/shape": seen(5, 1, 1)})
    assert shape.type == pa.list_(pa.int64(), 1)


@pytest.mark.parametrize(
    ("field", "shape"),
    [
        (tensor(), seen(5, 2, 2)),
        (tensor(required=True), seen(5, 1, 2)),
        (tensor(required=True), seen(5, 2, 3)),
        (tensor(required=True), seen(5, 3, 3)),
        (tensor(0, required=True), seen(5, 0, 0)),
    ],
    ids=range(5),
)
def test_shapes_of_other_lengths_are_lists(field: Field, shape: Evidence) -> None:
    (found, _) = companions(field, **{**PAIR, "x/shape": shape})
    assert found.type == list_("int64").type


def test_companions_that_some_records_lack_are_not_required() -> None:
    shape, dtype = companions(tensor(), **{"x/shape": seen(4, 2, 2), "x/dtype": Evidence("bytes", 3, 1, 1)})
    assert (shape.required, dtype.required) == (False, False)


def test_companions_of_a_feature_list_are_feature_lists() -> None:
    shape, dtype = companions(sequence(tensor()).named("x"), **PAIR)
    assert (shape.part, dtype.part) == (FEATURE_LIST, FEATURE_LIST)
    assert shape.type == pa.list_(pa.list_(pa.int64(), 2))


@pytest.mark.parametrize("missing", PAIR)
def test_only_both_companions_are_added(missing: str) -> None:
    assert companions(tensor(), **{name: value for name, value in PAIR.items() if name != missing}) == []


def test_columns_of_the_schema_are_not_added_again() -> None:
    field = tensor()
    for name in PAIR:
        own = Field(name, LIST)
        assert companions(field, Schema([field, own]), **PAIR) == [own]


def test_plain_columns_have_no_companions() -> None:
    assert companions(Field("x", LIST), **PAIR) == []
    assert companions(Field("x", pa.binary()), **PAIR) == []
    assert companions(tensor(encoding="tensor_proto"), **PAIR) == []


def test_the_text_shows_the_evidence() -> None:
    first, second = RecordRef("a.tfrecord", 3), RecordRef("b.tfrecord", 4)
    fields = [Field("x", LIST), Field("b", pa.binary()), Field("t", pa.string()), Field("n", pa.null())]
    schema = InferredSchema(
        fields,
        {
            "x": Evidence("int64", 5, 1, 3, listed=first),
            "b": Evidence("bytes", 4, 2, 2, binary=second),
            "t": Evidence("bytes", 5, 1, 1, text=True),
        },
        5,
    )
    lines = [line.split() for line in str(schema).splitlines()]
    assert lines[0] == "Schema inferred from 5 records".split()
    by_column = {line[0]: line[1:] for line in lines[2:] if line}
    assert by_column["x"] == f"{LIST} int64_list 5 1–3 list: {first}".split()
    assert by_column["b"] == f"binary bytes_list 4 2 not text: {second}".split()
    assert by_column["t"] == "string bytes_list 5 1 yes".split()
    assert by_column["n"] == "null none 0".split()


def test_the_text_of_a_tensor_names_its_companions() -> None:
    evidence = Evidence("bytes", 5, 1, 1, text=True, binary=RecordRef("a.tfrecord", 1))
    text = str(InferredSchema([tensor()], {"x": evidence}, 5))
    assert "x/shape and x/dtype" in text
    assert f" {tensor().type_name} " in text
    assert "not text" not in text
    assert " yes" not in text
