"""TFX schemas: those written by tensorflow_metadata are read, and those written by this package are read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from records import blobs, example, floats, int64s, written
from strategies import sequence_example
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import image, list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.image_form import image_form
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.plugins.tensorflow.tfx import read_message
from tfrecord_io.plugins.tensorflow.tfx_messages import SchemaMessage


def types(schema: Schema) -> dict[str, Any]:
    return {field.column: field.type for field in schema}


@pytest.mark.parametrize("suffix", ["pbtxt", "pb"])
def test_schema_of_tensorflow_metadata(data: Path, suffix: str) -> None:
    schema = Schema.from_tfx(data / "tfx" / f"schema.{suffix}")
    assert types(schema) == {
        "age": pa.uint8(),
        "small": pa.int64(),  # 0 to 9 is not the range of a type
        "flag": pa.bool_(),
        "flag_text": pa.string(),
        "when": pa.timestamp("ms"),
        "day": pa.date32(),
        "fare": pa.float32(),
        "company": pa.string(),
        "payment": pa.dictionary(pa.int32(), pa.string()),
        "review": pa.string(),
        "photo": pa.binary(),
        "digits": pa.list_(pa.uint8(), 3),
        "tags": pa.list_(pa.binary()),
        "embedding": pa.list_(pa.float32(), 4),
        "patch": pa.fixed_shape_tensor(pa.float32(), (2, 3)),
        "one": pa.list_(pa.int64(), 1),
        "unseen": pa.null(),
        "idx": pa.list_(pa.int64()),  # of a sparse feature, whatever its value_count says
        "val": pa.list_(pa.float32()),
    }
    assert not any(field.required for field in schema)  # presence describes statistics


def test_tensor_representations(data: Path) -> None:
    schema = Schema.from_tfx(data / "tfx" / "tensors.pbtxt")
    assert types(schema) == {
        "dense": pa.int64(),
        "matrix": pa.fixed_shape_tensor(pa.float32(), (2, 2)),
        "must": pa.string(),
        "d": pa.list_(pa.int64()),
        "ragged": pa.list_(pa.list_(pa.float32())),
        "pairs": pa.list_(pa.list_(pa.int64(), 2)),
        "x": pa.list_(pa.int64()),
        "y": pa.list_(pa.int64()),
        "v": pa.list_(pa.float32()),
        "plain": pa.binary(),
    }
    assert (schema["dense"].feature, schema["dense"].default, schema["dense"].required) == ("a", -1, False)
    assert schema["matrix"].default == 0.5
    assert schema["must"].required  # no default: absent is an error to TensorFlow


def test_another_group_of_tensors(data: Path) -> None:
    path = data / "tfx" / "tensors.pbtxt"
    assert Schema.from_tfx(path, tensor_representation_group="other")["only"].type == pa.list_(pa.int64())
    with pytest.raises(tfr.errors.SchemaError, match="'third'"):
        Schema.from_tfx(path, tensor_representation_group="third")


def test_sequence_features(data: Path) -> None:
    schema = Schema.from_tfx(data / "tfx" / "sequence.pbtxt")
    assert types(schema) == {
        "id": pa.string(),
        "tokens": pa.list_(pa.list_(pa.binary())),
        "seq_id": pa.list_(pa.int64()),
        "box": pa.list_(pa.list_(pa.float32(), 4)),
        "outer": pa.struct([("inner", pa.int64())]),
    }
    assert [field.part for field in schema] == ["context", *["feature_list"] * 3, "context"]
    assert schema["seq_id"].feature == "id"


PRESENT = """
feature { name: "value" type: INT presence { min_fraction: 1 min_count: 1 } value_count { min: 1 max: 1 } }
feature { name: "shaped" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 2 } } }
feature { name: "grouped" type: BYTES string_domain {} group_presence { required: true } shape {} }
"""


def test_features_that_are_always_present_may_be_absent_or_without_a_type(engine: str, tmp_path: Path) -> None:
    full = {"value": int64s(1), "shaped": floats(1, 2), "grouped": blobs(b"a")}
    path = written(
        tmp_path / "a", [example(**full), example(**dict.fromkeys(full, b"")), b"", example(value=int64s(2))]
    )
    assert tfr.read_table(path, schema=Schema.from_tfx(PRESENT)).to_pydict() == {
        "value": [1, None, None, 2],
        "shaped": [[1, 2], None, None, None],
        "grouped": ["a", None, None, None],
    }


def test_required_values_are_written_as_dense_tensors() -> None:
    schema = Schema({"a": scalar("int64", required=True), "b": list_("float32", required=True)})
    again = Schema.from_tfx(schema.to_tfx())
    assert again == schema
    assert "dense_tensor" in schema.to_tfx()
    without_tags = "\n".join(line for line in schema.to_tfx().splitlines() if "tag:" not in line)
    assert [field.required for field in Schema.from_tfx(without_tags)] == [True, None]


def test_struct_of_feature_lists_may_have_any_name(data: Path) -> None:
    content = (data / "tfx" / "sequence.pbtxt").read_text(encoding="utf-8")
    expected, other = Schema.from_tfx(content), content.replace("##SEQUENCE##", "##TEST##")
    assert Schema.from_tfx(other, sequence_feature="##TEST##") == expected
    alone = other.replace('name: "outer"\n', 'name: "outer"\n  deprecated: true\n')
    assert Schema.from_tfx(alone) == expected.select([name for name in expected.names if name != "outer"])
    with pytest.raises(tfr.errors.SchemaError, match=r"sequence_feature='x'") as caught:
        Schema.from_tfx(content, sequence_feature="x")
    assert caught.value.expected == ["##SEQUENCE##", "outer"]
    nested = (
        'feature { name: "a" type: STRUCT struct_domain { feature { name: "b" type: STRUCT struct_domain { %s } } } }'
    )
    inner = 'feature { name: "c" type: INT value_count { min: 1 max: 1 } }'
    assert types(Schema.from_tfx(nested % inner)) == {"a": pa.struct([("b", pa.struct([("c", pa.int64())]))])}


@pytest.mark.parametrize("struct", ["##SEQUENCE##", "steps"])
def test_a_name_in_the_context_and_the_feature_lists_is_two_columns(engine: str, tmp_path: Path, struct: str) -> None:
    schema = Schema.from_tfx(
        f"""
        feature {{ name: "{struct}" type: STRUCT struct_domain {{ feature {{ name: "id" type: INT }} }} }}
        feature {{ name: "id" type: BYTES string_domain {{}} value_count {{ min: 1 max: 1 }} }}
        """
    )
    payload = sequence_example({"id": blobs(b"a")}, {"id": [int64s(1), int64s(2, 3)]})
    table = tfr.read_table(written(tmp_path / "a", [payload]), schema=schema)
    assert table.to_pydict() == {f"{struct}.id": [[[1], [2, 3]]], "id": ["a"]}
    assert Schema.from_tfx(schema.to_tfx()) == schema


def test_ragged_tensor_is_read_as_nested_lists(tmp_path: Path, data: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord(
        pa.table(
            {
                "values": pa.array([[1, 2, 3], [], None], pa.list_(pa.float32())),
                "rows": pa.array([[2, 0, 1], [], None], pa.list_(pa.int64())),
                "pairs": pa.array([[1, 2, 3, 4], [], None], pa.list_(pa.int64())),
            }
        ),
        path,
        embed_schema=False,
    )
    schema = Schema.from_tfx(data / "tfx" / "tensors.pb").select(["ragged", "pairs"])
    assert tfr.read_table(path, schema=schema).to_pydict() == {
        "ragged": [[[1, 2], [], [3]], [], None],
        "pairs": [[[1, 2], [3, 4]], [], None],
    }


@pytest.mark.parametrize("name", ["schema", "tensors", "sequence"])
def test_written_schema_is_read_back(data: Path, name: str) -> None:
    schema = Schema.from_tfx(data / "tfx" / f"{name}.pbtxt")
    if name == "sequence":
        schema = schema.select([column for column in schema.names if column != "outer"])
    again = Schema.from_tfx(schema.to_tfx())
    assert again == schema
    assert [field.metadata for field in again] == [field.metadata for field in schema]


def test_struct_becomes_the_features_it_is_written_as() -> None:
    schema = Schema([Field("a", pa.struct([("b", pa.int8()), ("c", pa.struct([("d", pa.list_(pa.string()))]))]))])
    assert types(Schema.from_tfx(schema.to_tfx())) == {"a/b": pa.int8(), "a/c/d": pa.list_(pa.string())}


def test_arrays_in_a_struct_are_bytes_or_numbers_as_they_are_stored() -> None:
    fields = {"raw": tfr.tensor("uint8", (2, 3), encoding="raw"), "list": tfr.tensor("int64", (2, 3), encoding="list")}
    text = Schema({"a": fields}).to_tfx()
    again = Schema.from_tfx(text)
    assert [(again[f"a/{name}"].type, again[f"a/{name}"].encoding) for name in fields] == [
        (pa.fixed_shape_tensor(pa.uint8(), (2, 3)), "raw"),
        (pa.fixed_shape_tensor(pa.int64(), (2, 3)), "list"),
    ]
    assert "type: BYTES" in text
    assert "type: INT" in text


VALUES = st.sampled_from(
    [
        *"int8 uint16 int64 uint64 bool float32 double halffloat string binary date32 date64".split(),
        *("timestamp[us]", "duration[s]", "time32[ms]"),
    ]
)
NUMBERS = st.sampled_from(["int16", "uint8", "int64", "float32", "bool"])
SHAPES = st.lists(st.integers(1, 4), min_size=2, max_size=3)
FIELDS = st.one_of(
    st.builds(scalar, VALUES, required=st.booleans()),
    st.builds(
        scalar,
        st.sampled_from(
            ["timestamp[ns, tz=UTC]", "dictionary<values=string, indices=int8, ordered=0>", "decimal128(5, 2)"]
        ),
    ),
    st.builds(scalar, st.just("int32"), default=st.integers(-(2**31), 2**31 - 1)),
    st.builds(scalar, st.just("bool"), default=st.booleans(), feature=st.just("other")),
    st.builds(scalar, st.just("string"), default=st.none() | st.text(st.characters(codec="utf-8"))),
    st.builds(scalar, st.just("binary"), default=st.none() | st.binary()),
    st.builds(list_, VALUES, st.none() | st.integers(1, 5), required=st.booleans()),
    st.builds(list_, st.just("float32"), st.just(2), default=st.just([0.5, 1.0]) | st.just([0.5, 0.5]) | st.just(2.0)),
    st.builds(list_, NUMBERS, encoding=st.just("raw")),
    st.builds(tensor, NUMBERS, SHAPES, required=st.booleans(), encoding=st.sampled_from(["list", "wire", "raw"])),
    st.builds(tensor, st.just("float32"), st.just((None, 2))),
    st.builds(image, st.none() | st.just((None, None, 3)), required=st.booleans()),
    st.builds(image, mode=st.sampled_from(["L", "index", None]), resize=st.none() | st.just((2, 3))),
    st.builds(list_, st.builds(image, resize=st.none() | st.just((2, 3)))),
    st.builds(sequence, VALUES),
    st.builds(sequence, st.builds(list_, VALUES, st.none() | st.integers(1, 4))),
)


@given(fields=st.lists(FIELDS, max_size=6))
def test_any_schema_is_read_back(fields: list[Field]) -> None:
    named = [field.named(f"c{at}") for at, field in enumerate(fields)]
    seen: set[str] = set()
    kept = [field for field in named if not (field.feature in seen or seen.add(field.feature))]
    kept.sort(key=lambda field: field.part)  # feature lists are together in one STRUCT
    back = Schema.from_tfx(Schema(kept).to_tfx())
    assert back == Schema(kept)
    assert [image_form(field) for field in back] == [image_form(field) for field in kept]  # which are not compared


def test_tag_of_a_changed_feature_is_ignored() -> None:
    written = Schema([Field("when", pa.timestamp("us", tz="Europe/Berlin"))]).to_tfx()
    assert Schema.from_tfx(written)["when"].type == pa.timestamp("us", tz="Europe/Berlin")
    assert Schema.from_tfx(written.replace("UNIX_MICROSECONDS", "UNIX_SECONDS"))["when"].type == pa.timestamp("s")
    broken = 'feature { name: "a" type: INT value_count { min: 1 max: 1 } annotation { tag: "tfrecord_io {" } }'
    assert Schema.from_tfx(broken)["a"].type == pa.int64()


def test_text_path_and_bytes_are_accepted(data: Path) -> None:
    path = data / "tfx" / "schema.pbtxt"
    schema = Schema.from_tfx(path)
    assert Schema.from_tfx(str(path)) == schema
    assert Schema.from_tfx(path.read_text(encoding="utf-8")) == schema
    assert Schema.from_tfx(path.read_bytes()) == schema
    assert Schema.from_tfx(path.with_suffix(".pb").read_bytes()) == schema
    assert len(Schema.from_tfx(b"")) == 0


@pytest.mark.parametrize(
    "content",
    [
        b"feature {",
        b"\x0a\xff\x01",
        b"name: 1 {",
        b"\xff\xfe{",
        b'feature { type: NEW name: "a" }',
        b"annotation {" * 50_000,
    ],
)
def test_damaged_schema_is_refused(content: bytes) -> None:
    with pytest.raises(tfr.errors.SchemaError):
        Schema.from_tfx(content)


def test_missing_file_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"schema\.pbtxt"):
        Schema.from_tfx(tmp_path / "schema.pbtxt")


@pytest.mark.parametrize(
    "text",
    [
        'sparse_feature { name: "s" index_feature { name: "i" } value_feature { name: "v" } }',
        'tensor_representation_group { key: "" value { tensor_representation { key: "t" value { '
        'dense_tensor { column_name: "x" } } } } }',
        'feature { name: "##SEQUENCE##" type: STRUCT struct_domain { feature { name: "s" type: STRUCT } } }',
    ],
)
def test_description_that_no_record_can_have_is_refused(text: str) -> None:
    with pytest.raises(tfr.errors.SchemaError) as caught:
        Schema.from_tfx(text)
    assert caught.value.feature in ("i", "x", "s")


_REPRESENTED = SchemaMessage()
_REPRESENTED.tensor_representation_group[""].tensor_representation["x"].SetInParent()


@pytest.mark.parametrize(
    "content",
    [
        b"\x0a\x05\x0a\x01\xff\x30\x02",  # the name of a feature
        b"feature { name: 'a' type: INT annotation { tag: 'x\xff' } }",
        _REPRESENTED.SerializeToString().replace(b"x", b"\xff"),
    ],
    ids=["name", "text", "key"],
)
def test_text_in_a_tfx_schema_that_is_not_utf8(content: bytes) -> None:
    with pytest.raises(tfr.errors.SchemaError, match="it is not a TFX schema"):
        tfr.Schema.from_tfx(content)


def test_features_of_nested_columns_are_described_as_they_are_stored(tmp_path: Path) -> None:
    pairs = pa.array([[{"a": 1, "b": "x"}], [], None])
    table = pa.table(
        {
            "ll": pa.array([[[1, 2], []], None, []]),
            "m": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "pairs": pairs,
            "json": pairs,
        }
    )
    tfr.write_tfrecord(table, tmp_path / "a", column_encoding={"json": "json"})
    schema = Schema(tfr.dataset(tmp_path / "a").schema)
    (tmp_path / "schema.pbtxt").write_text(schema.to_tfx())
    described = {feature.name for feature in read_message(tmp_path / "schema.pbtxt").feature}
    stored = {name for record in tfr.RecordReader(tmp_path / "a") for name in tfr.decode_example(record)}
    assert described >= stored
    again = Schema.from_tfx(tmp_path / "schema.pbtxt")
    assert again.names == ["ll", "m", "pairs/a", "pairs/b", "json"]
    assert [again[name] for name in ("ll", "m", "json")] == [schema[name] for name in ("ll", "m", "json")]
    assert tfr.verify(tmp_path / "a", schema=tmp_path / "schema.pbtxt").ok
