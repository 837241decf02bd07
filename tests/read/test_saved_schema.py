"""Schemas saved beside files that carry none: every reader uses them, and stale ones are said."""

from __future__ import annotations

import json
import os
import pickle
import random
import shlex
import shutil
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from hostile_metadata import mutated
from records import written
from rounds import COMPLETE, rounds
from servers import Bucket, around_requests
from tfrecord_io.base import StorageOptions
from tfrecord_io.bytes.format.serialized_tensor import serialize_tensor
from tfrecord_io.errors import SchemaWarning
from tfrecord_io.read.saved_schema import read_saved_schema
from tfrecord_io.store import clean, resolve_inputs
from tfrecord_io.train import BytesList, Feature, FeatureList, FeatureLists, Features, Int64List, SequenceExample
from tfrecord_io.typing import OpenedDataset

FORMAT = '{"format": "tfrecord_io schema", '
PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)


def plain_record(n: int) -> bytes:
    values = {"n": n, "x": 0.5 * n, "word": b"w%d" % n, "codes": [n, n + 1]}
    return bytes(tfr.encode_example(values))


def picture(n: int) -> bytes:
    sizes = {"height": 2, "width": 4, "depth": 3}
    return bytes(tfr.encode_example({"image_raw": (PIXELS + n).tobytes(), "label": n, **sizes}))


def tensor_proto(n: int) -> bytes:
    return bytes(tfr.encode_example({"t": serialize_tensor(PIXELS + n), "n": n}))


def sparse(n: int) -> bytes:
    return bytes(tfr.encode_example({"i": [n, n + 2], "v": [1.0, 2.0], "n": n}))


def clip(n: int) -> bytes:
    def integer(value: int) -> Feature:
        return Feature(int64_list=Int64List(value=[value]))

    frames = [Feature(bytes_list=BytesList(value=[(PIXELS + n + step).tobytes()])) for step in range(n % 3 + 1)]
    context = Features(feature={"height": integer(2), "width": integer(4), "label": integer(n)})
    lists = FeatureLists(feature_list={"frames": FeatureList(feature=frames)})
    return SequenceExample(context=context, feature_lists=lists).SerializeToString()


_SPARSE = {"s": tfr.io.SparseFeature("i", "v", "float32", 100)}
KINDS: dict[str, tuple[Callable[[int], bytes], tfr.Schema]] = {
    "common types": (plain_record, tfr.Schema({"n": "int8", "x": "float32", "word": "string", "codes": "list<int64>"})),
    "names and defaults": (
        plain_record,
        tfr.Schema(
            {"number": tfr.scalar("int16", feature="n", required=True), "absent": tfr.scalar("int8", default=7)}
        ),
    ),
    "shapes": (picture, tfr.Schema({"image_raw": tfr.tensor("uint8", ("height", "width", 3)), "label": "int8"})),
    "raw images": (
        picture,
        tfr.Schema({"image_raw": tfr.image(tfr.tensor("uint8", ("height", "width", "depth"))), "label": "int8"}),
    ),
    "sequences": (
        clip,
        tfr.Schema({"label": "int8", "frames": tfr.sequence(tfr.tensor("uint8", ("height", "width", 3)))}),
    ),
    "encodings": (tensor_proto, tfr.Schema({"t": tfr.tensor("uint8", (2, 4, 3), encoding="tensor_proto")})),
    "sparse": (sparse, tfr.Schema.from_feature_description(_SPARSE)),
}
TARGETS = ["a.tfrecord", "d", "d/train@*", "d/train-*", "p", "p/day=*/*"]
NAMES = ["d/train-00000-of-00002", "d/train-00001-of-00002", "p/day=1/a.tfrecord", "p/day=2/b.tfrecord", "a.tfrecord"]


def make(root: Path, record: Callable[[int], bytes], names: list[str] = NAMES) -> None:
    for at, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        written(root / name, [record(3 * at + n) for n in range(3)])


def sources(root: Path) -> list[Path]:
    return sorted(root.rglob("_SCHEMA*"))


def table_of_batches(path: str) -> pa.Table:
    with tfr.open_reader(path) as reader:
        return pa.Table.from_batches(list(reader), reader.schema)


def at_random(path: str) -> pa.Table:
    with tfr.open_random(path) as records:
        return records[list(range(len(records)))]


def in_pieces(path: str) -> pa.Table:
    pieces: list[OpenedDataset] = pickle.loads(pickle.dumps(tfr.dataset(path).pieces(2)))
    return pa.concat_tables([piece.read() for piece in pieces])


READERS: dict[str, Callable[[str], pa.Table]] = {
    "read_table": tfr.read_table,
    "open_reader": table_of_batches,
    "open_random": at_random,
    "pieces": in_pieces,
    "dataset": lambda path: tfr.dataset(path).to_table(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_reader_reads_with_the_saved_schema(
    tmp_path: Path, kind: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    record, schema = KINDS[kind]
    make(tmp_path, record)
    expected = tfr.read_table(target, schema=schema)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = schema.save(target)
        assert Path(path) == sources(tmp_path)[0].relative_to(tmp_path)
        assert tfr.dataset(target).schema_source == "saved"
        tables = {name: read(target) for name, read in READERS.items()}
        first = tables["read_table"]
        assert [name for name in first.schema.names if name != "day"] == schema.names
        for name, table in tables.items():
            assert table.equals(first), name
            assert table.select(schema.names).equals(expected.select(schema.names)), name
        arrays = next(tfr.iter_arrays(target, batch_size=2))
        assert [name for name in arrays if name != "day"] == schema.names
    (found,) = sources(tmp_path)
    assert tfr.Schema.from_json(json.dumps(json.loads(found.read_text())["schema"])) == schema


def test_values_are_those_of_numpy(tmp_path: Path) -> None:
    make(tmp_path, picture)
    KINDS["raw images"][1].save(tmp_path / "d")
    arrays = tfr.read_arrays(tmp_path / "d")
    assert (arrays["image_raw"] == np.stack([PIXELS + n for n in range(6)])).all()
    assert arrays["label"].dtype == np.int8


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("a.tfrecord", "_SCHEMA-a.tfrecord.json"),
        ("d", "d/_SCHEMA.json"),
        ("d/train@2", "d/_SCHEMA-train.json"),
        ("d/train-*", "d/_SCHEMA-train.json"),
        ("d/train-00000-of-00002", "d/_SCHEMA-train.json"),
        ("p", "p/_SCHEMA.json"),
        ("p/day=*/*", "p/_SCHEMA.json"),
        ("p/day=1", "p/day=1/_SCHEMA.json"),
        ("*.tfrecord", "_SCHEMA-a.tfrecord.json"),
    ],
)
def test_where_a_schema_is_saved(tmp_path: Path, target: str, name: str) -> None:
    make(tmp_path, plain_record)
    schema = tfr.Schema({"n": "int8"})
    assert schema.save(f"{tmp_path}/{target}") == str(tmp_path / name)
    assert schema.save(tfr.dataset(f"{tmp_path}/{target}")) == str(tmp_path / name)  # replaces it


def test_a_glob_of_a_part_of_a_directory_is_refused(tmp_path: Path) -> None:
    make(tmp_path, plain_record, ["a1.tfrecord", "a2.tfrecord", "b.tfrecord"])
    schema = tfr.Schema({"n": "int8"})
    with pytest.raises(ValueError, match="neither a directory nor shards of one name"):
        schema.save(f"{tmp_path}/a*.tfrecord")
    assert schema.save(f"{tmp_path}/*.tfrecord") == str(tmp_path / "_SCHEMA.json")


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    schema = tfr.Schema({"n": "int8"})
    tfr.write_tfrecord({"n": [1]}, tmp_path / "own.tfrecord")
    with pytest.raises(tfr.errors.SchemaError, match="states the schema of the files"):
        schema.save(tmp_path / "own.tfrecord")
    make(tmp_path, plain_record, ["a.tfrecord"])
    with pytest.raises(tfr.errors.SchemaError, match="no record has a feature of the schema; the features are 'codes'"):
        tfr.Schema({"other": "int8"}).save(tmp_path / "a.tfrecord")
    written(tmp_path / "empty.tfrecord", [])
    with pytest.raises(tfr.errors.SchemaError, match="no records"):
        schema.save(tmp_path / "empty.tfrecord")
    with pytest.raises(FileNotFoundError):
        schema.save(tmp_path / "absent.tfrecord")
    odd = tfr.Schema(
        [tfr.typing.Field("n", pa.int8()), tfr.typing.Field("m", pa.map_("string", "int8"), encoding="json")]
    )
    with pytest.raises(tfr.errors.SchemaError, match="'m': its type, map<string, int8>, has no name"):
        odd.save(tmp_path / "a.tfrecord")
    assert not sources(tmp_path)


def test_a_struct_whose_fields_have_any_name(tmp_path: Path) -> None:
    schema = tfr.Schema({"n": "int8", "s": pa.struct([("a, b: int64>", pa.int64())])})
    written(tmp_path / "a.tfrecord", [tfr.encode_example({"n": 1, "s/a, b: int64>": 2})])
    schema.save(tmp_path / "a.tfrecord")
    assert tfr.read_table(tmp_path / "a.tfrecord").to_pylist() == [{"n": 1, "s": {"a, b: int64>": 2}}]


def test_precedence(tmp_path: Path, data: Path) -> None:
    folder = tmp_path / "tfds"
    shutil.copytree(data / "tfds" / "everything", folder)
    (file,) = folder.glob("*.tfrecord-*")
    assert tfr.dataset(folder).schema_source == "features.json"
    tfr.Schema({"label": "int16"}).save(folder)
    assert tfr.dataset(folder).schema_source == "saved"
    assert str(tfr.read_table(folder).schema) == "label: int16"
    tfr.Schema({"label": "int8"}).save(file)  # the more exact one
    assert str(tfr.read_table(folder).schema) == "label: int8"
    assert str(tfr.read_table(folder, schema={"label": "int64"}).schema) == "label: int64"
    assert tfr.dataset(folder, schema="infer").schema_source == "inferred"
    overridden = tfr.dataset(folder, schema_overrides={"label": "int64"})
    assert (overridden.schema_source, str(overridden.schema)) == ("saved", "label: int64")
    first, *rest = tfr.RecordReader(file)
    tfr.write_tfrecord({"label": pa.array([1], pa.int32())}, tmp_path / "b")
    (embedded,) = tfr.RecordReader(tmp_path / "b")
    written(file, [embedded, first, *rest])
    with suppress(tfr.TFRecordError):  # records with more features than the embedded schema has
        assert tfr.dataset(folder).schema_source == "embedded"


CHANGES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "new": (lambda row: row.update(extra=1), "expected no feature 'extra', got an Int64List"),
    "kind": (lambda row: row.update(word=1), "expected 'word' as a BytesList, got an Int64List"),
    "missing": (lambda row: row.pop("x"), "expected 'x', got records without it"),
}


@pytest.mark.fault(73)
@pytest.mark.parametrize("target", ["a.tfrecord", "d", "d/train@*"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_stale_schema_is_said_and_not_believed(engine: str, tmp_path: Path, change: str, target: str) -> None:
    make(tmp_path, plain_record)
    path = tfr.Schema({"n": "int8"}).save(f"{tmp_path}/{target}")

    def changed(n: int) -> bytes:
        row: dict[str, Any] = {"n": n, "x": 0.5, "word": b"w", "codes": [n, n]}
        CHANGES[change][0](row)
        return bytes(tfr.encode_example(row))

    make(tmp_path, changed)
    with pytest.warns(SchemaWarning) as caught:
        assert tfr.dataset(f"{tmp_path}/{target}").schema_source == "inferred"
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(f"{path}: the saved schema is not used, as it was made for other records: ")
    assert CHANGES[change][1] in text
    command = f"tfr schema {shlex.quote(f'{tmp_path}/{target}')} --save"
    assert text.endswith(f". It is written again by: {command}")
    with pytest.warns(SchemaWarning):
        assert tfr.read_table(f"{tmp_path}/{target}").schema.field("n").type == pa.int64()
    tfr.Schema({"n": "int8"}).save(f"{tmp_path}/{target}")
    assert tfr.dataset(f"{tmp_path}/{target}").schema_source == "saved"


def test_more_records_and_optional_features_are_not_stale(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    rows = [{"n": 1, "maybe": 2.0}, {"n": 2}]
    written(path, [bytes(tfr.encode_example(row)) for row in rows])
    tfr.Schema({"n": "int8"}).save(path)
    written(path, [bytes(tfr.encode_example({"n": n})) for n in range(50)])
    os.utime(path, (1, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.dataset(path).schema_source == "saved"
        assert tfr.read_table(tfr.dataset(path, offset=20), limit=3)["n"].to_pylist() == [20, 21, 22]
        assert tfr.dataset(path, record_type="example").schema_source == "saved"


def test_different_schemas_are_said(tmp_path: Path) -> None:
    make(tmp_path, plain_record, ["a.tfrecord", "b.tfrecord", "c.tfrecord"])
    for name, type_ in (("a", "int8"), ("b", "int8"), ("c", "int16")):
        tfr.Schema({"n": type_}).save(tmp_path / f"{name}.tfrecord")
    both = [tmp_path / "a.tfrecord", tmp_path / "b.tfrecord"]
    assert tfr.dataset(both).schema_source == "saved"
    with pytest.warns(SchemaWarning, match="some of the files have another saved schema or none; pass schema="):
        assert tfr.dataset([*both, tmp_path / "c.tfrecord"]).schema_source == "inferred"
    os.unlink(tmp_path / "_SCHEMA-a.tfrecord.json")
    with pytest.warns(SchemaWarning, match="another saved schema or none"):
        assert tfr.dataset(both).schema_source == "inferred"


@pytest.mark.fault(73)
@pytest.mark.parametrize(
    "content", ["", "{", "[]", FORMAT + '"version": 2}', FORMAT + '"version": 1}', "\x00\xff", "[" * 100_000]
)
def test_a_damaged_schema_is_an_error_that_names_it(engine: str, tmp_path: Path, content: str) -> None:
    make(tmp_path, plain_record, ["a.tfrecord"])
    path = Path(tfr.Schema({"n": "int8"}).save(tmp_path / "a.tfrecord"))
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(tfr.errors.SchemaError, match="the saved schema is damaged") as caught:
        tfr.read_table(tmp_path / "a.tfrecord")
    assert caught.value.path == str(path)
    assert f"tfr schema {tmp_path}/a.tfrecord --save" in str(caught.value)
    assert tfr.read_table(tmp_path / "a.tfrecord", schema="infer").num_rows == 3
    tfr.Schema({"n": "int8"}).save(tmp_path / "a.tfrecord")
    assert tfr.dataset(tmp_path / "a.tfrecord").schema_source == "saved"


def test_a_file_of_this_name_of_another_program_says_nothing(tmp_path: Path) -> None:
    make(tmp_path, plain_record, ["a.tfrecord"])
    (tmp_path / "_SCHEMA.json").write_text('{"type": "record"}')
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tfr.dataset(tmp_path / "a.tfrecord").schema_source == "inferred"


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_schemas(tmp_path: Path, kind: str) -> None:
    rng, (record, schema) = random.Random(kind), KINDS[kind]
    make(tmp_path, record, ["a.tfrecord"])
    path = Path(schema.save(tmp_path / "a.tfrecord"))
    document = json.loads(path.read_text())
    for _ in range(rounds(300 if COMPLETE else 40)):
        path.write_text(json.dumps(mutated(rng, mutated(rng, document))))
        with warnings.catch_warnings(), suppress(tfr.TFRecordError):
            warnings.simplefilter("ignore")
            tfr.read_table(tmp_path / "a.tfrecord")


def test_the_schema_is_no_data_and_is_copied_with_its_directory(tmp_path: Path) -> None:
    make(tmp_path, plain_record)
    tfr.Schema({"n": "int8"}).save(tmp_path / "d")
    tfr.Schema({"n": "int16"}).save(tmp_path / "p")
    assert tfr.read_table(tmp_path / "d" / "*").num_rows == 6
    assert not clean(tmp_path, older_than=timedelta(0))
    for name in ("d", "p"):
        tfr.copy(tmp_path / name, tmp_path / "copied" / name)
        assert tfr.dataset(tmp_path / "copied" / name).schema_source == "saved"
        assert tfr.read_table(tmp_path / "copied" / name).equals(tfr.read_table(tmp_path / name))


def test_adopt_puts_the_schema_into_the_manifest(tmp_path: Path) -> None:
    make(tmp_path, plain_record)
    schema = tfr.Schema({"n": "int8", "x": "float32", "word": "string", "codes": "list<int64>"})
    schema.save(tmp_path / "p")
    expected = tfr.read_table(tmp_path / "p")
    tfr.adopt(tmp_path / "p")
    os.unlink(tmp_path / "p" / "_SCHEMA.json")
    assert tfr.dataset(tmp_path / "p").schema_source == "embedded"
    assert tfr.read_table(tmp_path / "p").equals(expected)
    tfr.delete(tmp_path / "p", filters=[("n", "==", 8)])
    assert tfr.read_table(tmp_path / "p").schema.field("n").type == pa.int8()


@pytest.mark.parametrize("heights", [[2, 2], [2, 1]])
def test_adopt_knows_the_shapes_of_all_arrays(tmp_path: Path, heights: list[int]) -> None:
    """As of a read of all records, arrays of one shape stay arrays of one shape."""
    sizes = [{"height": height, "width": 3} for height in heights]
    (tmp_path / "d").mkdir()
    written(
        tmp_path / "d" / "part-00000.tfrecord", [tfr.encode_example({"x": bytes(s["height"] * 3), **s}) for s in sizes]
    )
    tfr.Schema({"x": tfr.tensor("uint8", ("height", "width"))}).save(tmp_path / "d")
    before = tfr.read_table(tfr.dataset(tmp_path / "d", sample="all"))
    tfr.Schema({"x": tfr.tensor("uint8", ("height", "width")), "height": "int64", "width": "int64"}).save(
        tmp_path / "d"
    )
    tfr.adopt(tmp_path / "d")
    (tmp_path / "d" / "_SCHEMA.json").unlink()
    table = tfr.read_table(tmp_path / "d")
    assert table.column_names == ["x", "height", "width"]
    assert table.select(["x"]).equals(before)


@pytest.mark.parametrize("schema", [{"n": "int8"}, {"m": tfr.scalar("int8", feature="n")}])
def test_adopt_leaves_what_a_manifest_cannot_say_beside_the_files(tmp_path: Path, schema: dict[str, Any]) -> None:
    make(tmp_path, plain_record)
    tfr.Schema(schema).save(tmp_path / "d")
    expected = tfr.read_table(tmp_path / "d")
    tfr.adopt(tmp_path / "d")
    assert tfr.dataset(tmp_path / "d").schema_source == "saved"
    assert tfr.read_table(tmp_path / "d").equals(expected)


# ---- buckets


@pytest.fixture
def asked(s3: Bucket, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    async def counted(name: str, key: str, call: Callable[[], Awaitable[object]]) -> object:
        names.append(name)
        return await call()

    around_requests(s3, monkeypatch, counted)
    return names


def test_a_schema_that_is_saved_anew_or_deleted_meanwhile(s3: Bucket) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    tfr.write_tfrecord({"x": [1]}, s3.url("d/a.tfrecord"), embed_schema=False, **options)
    data = tfr.dataset(s3.url("d/a.tfrecord"), **options)
    tfr.Schema({"x": "int8"}).save(data)
    (source,) = resolve_inputs(s3.url("d/a.tfrecord"), StorageOptions(s3.storage_options))
    fs, name = source.location[0], f"{s3.name}/d/_SCHEMA-a.tfrecord.json"
    entry = fs.entry(name)
    assert entry is not None
    tfr.Schema({"x": "int16"}).save(data)
    found = read_saved_schema(fs, entry, source)
    assert found is not None
    assert found.schema == tfr.Schema({"x": "int16"})
    fs.remove(name)
    assert read_saved_schema(fs, entry, source) is None


def test_listed_directories_take_no_request_and_files_one(s3: Bucket, asked: list[str]) -> None:
    options: dict[str, Any] = {"storage_options": s3.storage_options}
    files = ["one/a.tfrecord", *(f"d/x-0000{n}-of-00003" for n in range(3)), "p/k=1/a.tfrecord", "p/k=2/a.tfrecord"]
    for name in files:
        tfr.write_tfrecord({"x": [1, 2]}, s3.url(name), embed_schema=False, **options)
    # The requests of resolving the path and of reading the files, and a look for features.json where none was listed.
    for path, before, more in (("d/", 4, 0), ("d/x@3", 6, 0), ("p/", 5, 0), ("one/a.tfrecord", 3, 1), ("d/x-*", 6, 1)):
        asked.clear()
        assert tfr.read_table(s3.url(path), **options).num_rows
        assert len(asked) <= before + more, (path, asked)
    tfr.Schema({"x": "int8"}).save(tfr.dataset(s3.url("d/"), **options))
    for path in ("d/", "d/x@3", "d/x-*", "d/x-00001-of-00003"):
        assert tfr.read_table(s3.url(path), **options).schema.field("x").type == pa.int8(), path
    asked.clear()
    assert tfr.read_table(s3.url("d/"), **options).num_rows == 6
    assert len(asked) <= 5, asked  # one more: the schema itself
    tfr.Schema({"x": "int8"}).save(tfr.dataset(s3.url("p/"), **options))
    for path in ("p/", "p/k=1/a.tfrecord", "p/k=1/", "p/k=*/a*", "p/*/*"):
        assert tfr.read_table(s3.url(path), **options).schema.field("x").type == pa.int8(), path
    s3.fs.pipe(f"{s3.name}/one/_SCHEMA-a.tfrecord.json", b"{")
    with pytest.raises(tfr.errors.SchemaError, match="damaged") as caught:
        tfr.read_table(s3.url("one/a.tfrecord"), **options)
    assert caught.value.path == s3.url("one/_SCHEMA-a.tfrecord.json")
    dataset = tfr.dataset(s3.url("d/"), **options)
    pieces = pickle.loads(pickle.dumps(dataset.pieces(3)))
    asked.clear()
    assert [piece.read().schema.field("x").type for piece in pieces] == [pa.int8()] * 3
    assert set(asked) == {"get_object"}
