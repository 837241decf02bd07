"""tensorflow_metadata reads the TFX schemas written here, and TensorFlow parses with them what tfrecord_io reads."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.bytes.format.protobuf import enum_values
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import list_, scalar, sequence, tensor
from tfrecord_io.columns.schema.schema import Schema

DATA = Path(__file__).parent.parent / "data" / "tfx"


@pytest.fixture(scope="session")
def schema_pb2(conformance: None) -> Any:
    return importlib.import_module("tensorflow_metadata.proto.v0.schema_pb2")


@pytest.fixture(scope="session")
def representations(conformance: None) -> Any:
    return importlib.import_module("tfx_bsl.tfxio.tensor_representation_util")


def parsed(schema_pb2: Any, text: str) -> Any:
    from google.protobuf import text_format

    return text_format.Parse(text, schema_pb2.Schema())


WRITTEN = Schema(
    {
        "age": scalar("uint8", required=True),
        "count": scalar("int64", default=-1),
        "flag": scalar("bool"),
        "word": scalar("string", default="größe"),
        "photo": scalar("binary", required=True),
        "when": scalar("timestamp[us]"),
        "color": scalar("dictionary<values=string, indices=int32, ordered=0>"),
        "box": list_("float32", 4, required=True),
        "maybe": list_("float32", 2, default=0.5),
        "tags": list_("string"),
        "patch": tensor("float32", (2, 3), required=True),
        "steps": sequence("int64"),
    }
)


def fields_of(descriptor: Any) -> dict[str, Any]:
    """Number, type and number of values of each field of a message, the messages inside by their name."""
    found = {}
    for field in descriptor.fields:
        inner = field.message_type or field.enum_type
        group = field.containing_oneof.name if field.containing_oneof else None
        found[field.name] = (field.number, field.type, field.is_repeated, inner.full_name if inner else None, group)
    return found


@pytest.mark.plugins("tensorflow")
def test_messages_are_a_subset_of_tensorflow_metadata(schema_pb2: Any) -> None:
    from tfrecord_io.plugins.tensorflow import tfx_messages

    pool = importlib.import_module("google.protobuf.descriptor_pool").Default()
    package = "tensorflow.metadata.v0"
    for name in tfx_messages._MESSAGES:
        if name == "Anything":
            continue
        actual = fields_of(tfx_messages.SchemaMessage.DESCRIPTOR.file.pool.FindMessageTypeByName(f"{package}.{name}"))
        reference = fields_of(pool.FindMessageTypeByName(f"{package}.{name}"))
        for field, described in actual.items():
            empty = described[3] == f"{package}.Anything"
            assert described[:3] == reference[field][:3], (name, field)
            assert described[4] == reference[field][4], (name, field)
            assert empty or described[3] == reference[field][3], (name, field)
    for name, values in tfx_messages._ENUMS.items():
        reference = pool.FindEnumTypeByName(f"{package}.{name}")
        assert enum_values(values) == {value.name: value.number for value in reference.values}, name


def test_tensorflow_metadata_reads_what_we_write(schema_pb2: Any) -> None:
    message = parsed(schema_pb2, WRITTEN.to_tfx())
    by_name = {feature.name: feature for feature in message.feature}
    assert by_name["age"].type == schema_pb2.INT
    assert (by_name["age"].int_domain.min, by_name["age"].int_domain.max) == (0, 255)
    assert by_name["age"].presence.min_fraction == 1
    assert by_name["flag"].HasField("bool_domain")
    assert by_name["when"].time_domain.integer_format == schema_pb2.TimeDomain.UNIX_MICROSECONDS
    assert [dim.size for dim in by_name["patch"].shape.dim] == [2, 3]
    assert by_name["##SEQUENCE##"].struct_domain.feature[0].name == "steps"
    assert Schema.from_tfx(message.SerializeToString()) == WRITTEN


@pytest.mark.parametrize("name", ["schema", "tensors", "sequence"])
def test_schemas_of_tensorflow_metadata_round_trip(schema_pb2: Any, name: str) -> None:
    schema = Schema.from_tfx(DATA / f"{name}.pb")
    message = parsed(schema_pb2, schema.to_tfx())
    again = Schema.from_tfx(message.SerializeToString())
    flat = [field for field in schema if not pa.types.is_struct(field.type)]
    assert [again[field.column] for field in flat] == flat


def test_tensorflow_parses_by_the_schema_as_we_do(
    engine: str, tf: Any, schema_pb2: Any, representations: Any, tmp_path: Path
) -> None:
    """The feature description that tfx_bsl makes of our schema, on records that we wrote."""
    names = ["age", "count", "word", "box", "maybe", "tags", "photo"]
    schema = WRITTEN.select(names)
    table = pa.table(
        {
            "age": pa.array([1, 255], pa.uint8()),
            "count": pa.array([5, None], pa.int64()),
            "word": pa.array([None, "a"], pa.string()),
            "box": pa.array([[1, 2, 3, 4]] * 2, pa.list_(pa.float32(), 4)),
            "maybe": pa.array([None, [1, 2]], pa.list_(pa.float32(), 2)),
            "tags": pa.array([["x", "y"], []], pa.list_(pa.string())),
            "photo": pa.array([b"\0", b""], pa.binary()),
        }
    )
    path = str(tmp_path / "a.tfrecord")
    tfr.write_tfrecord(table, path, embed_schema=False)
    message = parsed(schema_pb2, schema.to_tfx())
    types = {feature.name: feature.type for feature in message.feature}
    description = {
        name: representations.CreateTfExampleParserConfig(tensor, types[name])
        for name, tensor in representations.InferTensorRepresentationsFromMixedSchema(message).items()
    }
    assert set(description) == set(names)
    reference = tf.io.parse_example([record.numpy() for record in tf.data.TFRecordDataset(path)], description)
    actual = tfr.read_table(path, schema=Schema.from_tfx(schema.to_tfx()))
    for name in ("age", "count", "box", "maybe", "photo"):
        assert actual[name].to_pylist() == reference[name].numpy().tolist()
    assert [word.encode() for word in actual["word"].to_pylist()] == reference["word"].numpy().tolist()
    assert [tag.encode() for row in actual["tags"].to_pylist() for tag in row] == reference[
        "tags"
    ].values.numpy().tolist()


def test_steps_come_as_tfx_bsl_decodes_them(engine: str, tf: Any, schema_pb2: Any, tmp_path: Path) -> None:
    coder = importlib.import_module("tfx_bsl.coders.sequence_example_coder")
    schema = Schema([Field("id", pa.int64()), sequence(list_("float32")).named("steps")])
    record = tf.train.SequenceExample()
    record.context.feature["id"].int64_list.value.append(7)
    for step in ([1.0, 2.0], []):
        record.feature_lists.feature_list["steps"].feature.add().float_list.value.extend(step)
    payload = record.SerializeToString()
    message = parsed(schema_pb2, schema.to_tfx())
    decoder = coder.SequenceExamplesToRecordBatchDecoder("##SEQUENCE##", message.SerializeToString())
    reference = decoder.DecodeBatch([payload]).to_pydict()
    with tf.io.TFRecordWriter(str(tmp_path / "a.tfrecord")) as writer:
        writer.write(payload)
    actual = tfr.read_table(
        tfr.dataset(tmp_path / "a.tfrecord", record_type="sequence_example"),
        schema=Schema.from_tfx(message.SerializeToString()),
    )
    assert reference == {"id": [[7]], "##SEQUENCE##": [{"steps": actual["steps"].to_pylist()[0]}]}
    assert actual["id"].to_pylist() == [7]


PRESENT = """
feature { name: "value" type: INT presence { min_fraction: 1 min_count: 1 } value_count { min: 1 max: 1 } }
feature { name: "shaped" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 2 } } }
feature { name: "single" type: BYTES presence { min_fraction: 1 } shape {} }
"""


def serialized(tf: Any, **features: Any) -> bytes:
    """An Example; None is a feature without a type, as csv_example_gen writes missing values."""
    lists = {int: "int64_list", float: "float_list", bytes: "bytes_list"}
    message = tf.train.Example()
    for name, values in features.items():
        message.features.feature[name].SetInParent()
        if values is not None:
            getattr(message.features.feature[name], lists[type(values[0])]).value.extend(values)
    return message.SerializeToString()


def test_features_that_are_always_present_may_be_absent_as_in_tfx_bsl(
    engine: str, tf: Any, schema_pb2: Any, write_records: Any, tmp_path: Path
) -> None:
    full = {"value": [1], "shaped": [0.5, 1.5], "single": [b"a"]}
    records = [full, dict.fromkeys(full), {}, {"value": [2]}, {"shaped": None, "single": [b""]}]
    payloads = [serialized(tf, **features) for features in records]
    coder = importlib.import_module("tfx_bsl.coders.example_coder")
    decoder = coder.ExamplesToRecordBatchDecoder(parsed(schema_pb2, PRESENT).SerializeToString())
    reference = decoder.DecodeBatch(payloads).to_pydict()
    actual = tfr.read_table(write_records(tmp_path / "a.tfrecord", payloads), schema=Schema.from_tfx(PRESENT))
    lists = {
        name: [value if value is None or isinstance(value, list) else [value] for value in values]
        for name, values in actual.to_pydict().items()
    }
    assert lists == reference
    assert reference["value"] == [[1], None, None, [2], None]


@pytest.mark.parametrize("struct", ["##SEQUENCE##", "##TEST##", "steps"])
def test_feature_lists_in_a_struct_of_any_name_as_in_tfx_bsl(
    engine: str, struct: str, tf: Any, schema_pb2: Any, write_records: Any, tmp_path: Path
) -> None:
    """One name is used in both parts."""
    text = f"""
        feature {{ name: "{struct}" type: STRUCT struct_domain {{
          feature {{ name: "id" type: INT }}
          feature {{ name: "word" type: BYTES }}
          feature {{ name: "none" type: FLOAT }} }} }}
        feature {{ name: "id" type: BYTES }}
    """
    message = tf.train.SequenceExample()
    message.context.feature["id"].bytes_list.value.append(b"a")
    for values in ([1], [], [2, 3]):
        message.feature_lists.feature_list["id"].feature.add().int64_list.value.extend(values)
    message.feature_lists.feature_list["word"].feature.add()
    message.feature_lists.feature_list["other"].feature.add()
    payloads = [message.SerializeToString(), b"", tf.train.SequenceExample().SerializeToString()]
    coder = importlib.import_module("tfx_bsl.coders.sequence_example_coder")
    decoder = coder.SequenceExamplesToRecordBatchDecoder(struct, parsed(schema_pb2, text).SerializeToString())
    reference = decoder.DecodeBatch(payloads)
    steps = reference.column(struct)
    expected = {"id": reference.column("id").to_pylist()} | {
        f"{struct}.id" if name == "id" else name: column.to_pylist()
        for name, column in zip(steps.type.names, steps.flatten(), strict=True)
    }
    path = write_records(tmp_path / "a.tfrecord", payloads)
    for schema in (Schema.from_tfx(text), Schema.from_tfx(text, sequence_feature=struct)):
        with pytest.warns(tfr.errors.SchemaWarning, match="'none' occurs in none of 3 records"):
            table = tfr.read_table(tfr.dataset(path, record_type="sequence_example"), schema=schema)
        assert table.to_pydict() == expected
    message = parsed(schema_pb2, text)  # its tensors have the same names
    inferred = importlib.import_module("tfx_bsl.tfxio.tensor_representation_util")
    tensors = inferred.InferTensorRepresentationsFromMixedSchema(message)
    assert {"id", f"{struct}.id"} <= tensors.keys()
