"""What a new user is likely to get wrong: each mistake has a message that says what to do."""

from __future__ import annotations

import importlib
import io
import pickle
import re
import sys
from collections.abc import Callable
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner

import tfrecord_io as tfr
from tfrecord_io.apps.cli import tfr as group
from tfrecord_io.apps.cli.command_group import _OTHER_COMMANDS
from tfrecord_io.base.options.other_names import OTHER_NAMES

FRAME = pd.DataFrame({"label": [1, 2], "name": ["cat", "dog"]})
_EQUIVALENTS = {name[4:]: meant for name, meant in OTHER_NAMES.items() if name.startswith("tfr.")}
READERS = [tfr.read_tfrecord, tfr.read_table, tfr.read_arrays, tfr.infer_schema, tfr.count]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with ``train.tfrecord``, a compressed copy, and ``sharded@4``."""
    monkeypatch.chdir(tmp_path)
    tfr.write_tfrecord(FRAME, "train.tfrecord")
    tfr.write_tfrecord(FRAME, "zipped.tfrecord.gz")
    tfr.write_tfrecord(FRAME, "sharded@4")
    return tmp_path


def refused(error: type[Exception], *parts: str, by: Callable[[], object]) -> None:
    """Check that `by` raises `error`, with a message that has all `parts`."""
    with pytest.raises(error) as caught:
        by()
    for part in parts:
        assert part in str(caught.value)


# ---- paths


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    ("name", "write", "advice"),
    [
        (
            "a.csv",
            lambda path: FRAME.to_csv(path, index=False),
            "if it is CSV, read it with tfr.convert(…, source_format='csv') or pandas.read_csv",
        ),
        ("a.parquet", FRAME.to_parquet, "read it with tfr.convert(…, source_format='parquet') or pandas.read_parquet"),
        ("a.feather", FRAME.to_feather, "read it with tfr.convert(…, source_format='arrow') or pandas.read_feather"),
        ("a.jsonl", lambda path: FRAME.to_json(path, orient="records", lines=True), "if it is JSON lines, read"),
        (
            "a.npy",
            lambda path: np.save(path, np.arange(6)),
            "read it with tfr.convert(…, source_format='npy') or numpy.load",
        ),
        (
            "a.npz",
            lambda path: np.savez(path, x=np.arange(6)),
            "if it is .npz, read it with tfr.convert(…, source_format='npz')",
        ),
        (
            "a-idx1-ubyte",
            lambda path: Path(path).write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 50, *range(50)])),
            "an IDX file, the format of MNIST; read it with tfr.convert(…, source_format='idx')",
        ),
    ],
)
def test_a_file_of_another_format(
    read: Callable[[str], object], name: str, write: Callable[[str], object], advice: str
) -> None:
    write(name)
    refused(tfr.errors.CorruptRecordError, f"{name}: ", "not TFRecord: looks like", advice, by=lambda: read(name))
    plain = Path(name).rename("plain")  # the advice works without a suffix, too
    with pytest.raises(tfr.errors.CorruptRecordError) as caught:
        tfr.convert(plain, "converted.tfrecord")
    (key,) = re.findall(r"tfr\.convert\(…, source_format='(\w+)'\)", str(caught.value))
    tfr.convert(plain, "converted.tfrecord", source_format=key)
    assert tfr.count("converted.tfrecord") > 0


@pytest.mark.plugins("vision")
def test_an_image_is_read_as_records() -> None:
    Path("1.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    refused(
        tfr.errors.CorruptRecordError,
        "a PNG image; tfr.formats.open_image_folder",
        by=lambda: tfr.read_tfrecord("1.png"),
    )
    shown = CliRunner().invoke(group, ["head", "1.png"])
    assert "a PNG image; tfr convert --from images reads a folder of images" in shown.stderr


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("train@4", "no shards such as 'train-00000-of-00004'; did you mean 'train.tfrecord'?"),
        ("sharded@5", "there is sharded@4"),
        ("shraded@4", "did you mean 'sharded@4'?"),
        ("sharded.tfrecord", "did you mean 'sharded@4'?"),
        ("trian.tfrecord", "did you mean 'train.tfrecord'?"),
        ("train.tfrecords", "did you mean 'train.tfrecord'?"),
        ("data/train.tfrecord", "there is no directory 'data'"),
        ("*.tfrec", "its directory has 6 files such as 'sharded-00000-of-00004'"),
        ("data/*.tfrecord", "there is no directory 'data'"),
    ],
)
def test_a_path_that_does_not_exist(path: str, advice: str) -> None:
    for read in READERS:
        refused(FileNotFoundError, advice, by=lambda read=read: read(path))  # type: ignore[misc]


def test_a_directory_without_tfrecord_files(folder: Path) -> None:
    (folder / "photos" / "cat").mkdir(parents=True)
    advice = "it has 1 other entry, which a glob can name; tfr.convert makes TFRecord files of other formats"
    refused(FileNotFoundError, "names end in .tfrecord", advice, by=lambda: tfr.read_table("photos"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tfr.write_tfrecord(FRAME, "d/", partition_by=0), "partition_by=0: expected one or several names"),
        (lambda: tfr.explode("train.tfrecord", lists=0), "lists=0: expected one or several names of columns"),
        (lambda: tfr.explode("train.tfrecord", prefix=0), "prefix=0: expected what stands before /"),
        (lambda: tfr.windows("train.tfrecord", offsets=["name"]), r"offsets=\['name'\]: expected a dict such as"),
        (lambda: tfr.windows("train.tfrecord", {0: 1}), "offsets has the key 0: expected names"),
        (
            lambda: tfr.convert("train.tfrecord", "x.csv", target_options=5),
            "target_options=5: expected a dict of keywords",
        ),
        (
            lambda: tfr.convert("train.tfrecord", "x.csv", source_options={0: 1}),
            "source_options={0: 1}: expected a dict of",
        ),
        (lambda: tfr.convert("train.tfrecord", "x", files=["name"]), r"files=\['name'\]: expected 'images', 'all' or"),
    ],
)
def test_values_of_other_types_are_refused_by_the_name_of_the_keyword(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


def test_names_of_columns_may_be_an_iterator() -> None:
    tfr.write_tfrecord(FRAME, "d/", partition_by=iter(["name"]))
    assert tfr.read_tfrecord("d/")["name"].tolist() == ["cat", "dog"]


def test_data_in_place_of_a_path() -> None:
    data = Path("train.tfrecord").read_bytes()
    for path in (data, bytearray(data), [data]):
        refused(TypeError, "data in memory is read from io.BytesIO(data)", by=lambda p=path: tfr.read_tfrecord(p))  # type: ignore[misc]
    assert tfr.read_tfrecord(io.BytesIO(data))["name"].tolist() == ["cat", "dog"]  # the advice works


@pytest.mark.parametrize(
    ("protocol", "package", "extra"), [("gs", "gcsfs", "gcs"), ("s3", "s3fs", "s3"), ("az", "adlfs", "azure")]
)
def test_a_missing_extra(protocol: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, protocol, raising=False)
    advice = f"; pip install 'tfrecord_io[{extra}]'"
    refused(tfr.errors.MissingDependencyError, advice, by=lambda: tfr.read_tfrecord(f"{protocol}://bucket/a.tfrecord"))


@pytest.mark.parametrize("compression", [None, "zlib"])
@pytest.mark.parametrize("read", [tfr.read_table, tfr.count, lambda source: list(tfr.RecordReader(source))])
def test_the_wrong_compression(read: Callable[..., object], compression: str | None) -> None:
    parts = ("the file looks like gzip data; ", "compression='infer'", " detects it by the content")
    zipped = tfr.dataset("zipped.tfrecord.gz", compression=compression)
    refused(tfr.errors.CompressionError, *parts, by=lambda: read(zipped))
    plain = ("the file looks like a plain TFRecord file; ", "compression='infer'", " detects it")
    refused(tfr.errors.CompressionError, *plain, by=lambda: read(tfr.dataset("train.tfrecord", compression="gzip")))


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("htp://host/a.tfrecord", "unknown protocol 'htp'; did you mean 'http'?"),
        ("s33://bucket/a.tfrecord", "unknown protocol 's33'; did you mean 's3'?"),
        ("simplecach::s3://bucket/a", "unknown protocol 'simplecach'; did you mean 'simplecache'?"),
        ("frobnicate://a", "'frobnicate://a': unknown protocol 'frobnicate'"),
    ],
)
def test_an_unknown_protocol(url: str, advice: str) -> None:
    refused(ValueError, advice, by=lambda: tfr.read_tfrecord(url))


# ---- names


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("read_tfrecords", "read_tfrecord"),
        ("TFRecordWriter", "tfrecord_io.io.TFRecordWriter"),
        ("SchemaError", "tfrecord_io.errors.SchemaError"),
        ("Reader", "tfrecord_io.typing.Reader"),
        ("open_npy", "tfrecord_io.formats.open_npy"),
        ("read_dask", "dataset"),
        ("read_npz", "tfrecord_io.formats.open_npz"),
        ("count_" + "records", "count"),
        ("TFRecordReader", "RecordReader"),
        ("TFRecordDataset", "dataset"),
        ("parse_single_example", "tfrecord_io.io.parse_single_example"),
        ("tf_record_iterator", "RecordReader"),
        ("tfrecord_loader", "iter_arrays"),
        ("to_tfrecord", "write_tfrecord"),
        ("read_csv", "convert"),
        ("to_csv", "convert"),
        ("load_dataset", "dataset"),
        ("head", "dataset"),
        ("metadata", "read_metadata"),
        ("read_schema", "read_metadata"),
        ("read_records", "RecordReader"),
        ("write_records", "RecordWriter"),
        ("write_table", "write_tfrecord"),
        ("iter_batches", "iter_arrays"),
        ("interleave_datasets", "mix"),
        ("sync", "copy"),
        ("optimize", "compact"),
        ("lookup", "open_random"),
    ],
)
def test_a_name_of_another_library(name: str, meant: str) -> None:
    message = f"module 'tfrecord_io' has no attribute '{name}'; did you mean '{meant}'?"
    refused(AttributeError, message, by=lambda: getattr(tfr, name))
    assert attrgetter(meant.removeprefix("tfrecord_io."))(tfr)


@pytest.mark.parametrize(("name", "meant"), [("read", "read_tfrecord"), ("write", "write_tfrecord")])
def test_a_package_in_place_of_a_function(name: str, meant: str) -> None:
    """Before the package is imported, there is no such name; afterwards, it is a module."""
    package = importlib.import_module(f"tfrecord_io.{name}")
    assert getattr(tfr, name) is package
    message = f"module 'tfrecord_io.{name}' is not callable; did you mean '{meant}'?"
    refused(TypeError, message, by=lambda: package("train.tfrecord", columns=["label"]))


@pytest.mark.parametrize(
    ("name", "meant"), [("schema", "read_metadata"), ("index", "build_index"), ("arrays", "read_arrays")]
)
def test_a_noun_in_place_of_a_function(name: str, meant: str) -> None:
    message = f"module 'tfrecord_io' has no attribute '{name}'; did you mean '{meant}'?"
    refused(AttributeError, message, by=lambda: getattr(tfr, name))


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        (lambda: tfr.read_tfrecord("a", ["label"]), "1 argument by position (source), not 2: pass others by keyword"),
        (
            lambda: tfr.iter_arrays("a", 32),
            "not 2: pass others by keyword, such as batch_size=; valid names: batch_size",
        ),
        (lambda: tfr.merge("a", "b", "c"), "(source, target), not 3: pass several files as one list, [a, b]"),
        (lambda: tfr.read_table("a", "b"), "(source), not 2: pass several files as one list, [a, b]"),
        (lambda: tfr.write_tfrecord(FRAME, "a", "append"), "2 arguments by position (data, path), not 3: pass others"),
        (
            lambda: tfr.RecordWriter("a", "GZIP"),
            "takes 1 argument by position (path), not 2: pass others by keyword; valid names: compression, comp",
        ),
        (lambda: tfr.dataset("train.tfrecord").limit(1, 2), "limit() takes 1 argument by position (n), not 2"),
        (lambda: tfr.split("train.tfrecord", "out", test_size=0.2), "did you mean fractions=?"),
        (lambda: tfr.convert("a.csv", "b", sep=";"), "argument 'sep': pass source_options={'delimiter': …}"),
        (lambda: tfr.dataset("train.tfrecord").filter(label=1), "filter() got an unexpected keyword argument 'label'"),
    ],
)
def test_arguments_of_another_form(call: Callable[[], object], advice: str) -> None:
    refused(TypeError, advice, by=call)


WRITE, OPEN, ITERATE = (partial(tfr.write_tfrecord, FRAME, "a/"), tfr.open_random, tfr.iter_arrays)


@pytest.mark.parametrize(
    ("call", "name", "value", "meant"),
    [
        (WRITE, "merge_schema", True, "evolve="),
        (WRITE, "mergeSchema", True, "evolve="),
        (WRITE, "schema_mode", "merge", "evolve="),
        (WRITE, "predicate", "day = 1", "overwrite_where="),
        (WRITE, "existing_data_behavior", "delete_matching", "mode='overwrite_partitions' or 'error'"),
        (WRITE, "existing_data_behavior", "overwrite_or_ignore", "mode='overwrite_partitions' or 'error'"),
        (WRITE, "partition_overwrite_mode", "dynamic", "mode='overwrite_partitions'"),
        (partial(OPEN, "a"), "on", "id", "key="),
        (partial(OPEN, "a"), "key_column", "id", "key="),
        (partial(ITERATE, "a"), "batch", 16, "batch_size="),
        (partial(ITERATE, "a"), "padding", True, "ragged="),
        (partial(ITERATE, "a"), "truncation", True, "max_length="),
        (partial(ITERATE, "a"), "pad_to_multiple_of", 8, "pad_to="),
        (partial(ITERATE, "a"), "group_by_length", True, "bucket_by="),
        (partial(ITERATE, "a"), "resume", {}, "state="),
        (partial(tfr.mix, ["a", "b"]), "probabilities", [1, 2], "weights="),
        (partial(tfr.mix, ["a", "b"]), "stopping_strategy", "all_exhausted", "stop="),
        (partial(tfr.windows, "a"), "size", 16, "length="),
        (partial(tfr.copy, "a", "b"), "delete", True, "update="),
        (partial(tfr.copy, "a", "b"), "checksum", True, "verify="),
        (tfr.image, "channels", 1, "mode="),
    ],
)
def test_a_keyword_of_another_library(call: Callable[..., object], name: str, value: object, meant: str) -> None:
    message = f"unexpected keyword argument '{name}': did you mean {meant}? valid names: "
    refused(TypeError, message, by=lambda: call(**{name: value}))


def test_an_attribute_of_another_library() -> None:
    with tfr.RecordReader("train.tfrecord") as reader:
        advice = "'RecordReader' object has no attribute 'take': pass tfr.dataset(path, limit=n)"
        refused(AttributeError, advice, by=lambda: reader.take(1))  # type: ignore[attr-defined]
    assert len(list(tfr.RecordReader(tfr.dataset("train.tfrecord", limit=1)))) == 1  # the advice works
    with tfr.iter_arrays("train.tfrecord", batch_size=1) as batches:
        refused(AttributeError, "no attribute 'state_dict': call state()", by=lambda: batches.state_dict())  # type: ignore[attr-defined]
        refused(AttributeError, "call restore(state)", by=lambda: batches.load_state_dict({}))  # type: ignore[attr-defined]
        batches.restore(batches.state())


@pytest.mark.parametrize("module", [tfr, tfr.io])
@pytest.mark.parametrize("name", ["int64", "float32", "string", "uint8", "bfloat16"])
def test_a_type_of_tensorflow(module: Any, name: str) -> None:
    refused(
        AttributeError, f"has no attribute '{name}'; types are text: write '{name}'", by=lambda: getattr(module, name)
    )
    assert tfr.tensor(name, (2,))


@pytest.mark.plugins("vision")
def test_a_reader_of_files_that_is_called_open() -> None:
    message = "did you mean 'tfrecord_io.formats.open_image_folder'?"
    for module in (tfr, tfr.formats):
        refused(AttributeError, message, by=lambda m=module: m.read_image_folder("photos"))  # type: ignore[misc]


def test_a_key_that_is_no_name() -> None:
    refused(
        TypeError, "key=['label']: expected the name of one column", by=lambda: OPEN("train.tfrecord", key=["label"])
    )  # type: ignore[arg-type]


def test_a_key_in_place_of_a_number() -> None:
    with tfr.open_random("train.tfrecord", key="name") as records:
        refused(TypeError, "integer, not str; open_random(…, key=…).lookup(…) finds", by=lambda: records["cat"])  # type: ignore[call-overload]
        refused(IndexError, "out of range: the files have 2 records; lookup(7) finds", by=lambda: records[7])
    with tfr.open_random("train.tfrecord") as records:
        refused(IndexError, "record 7 is out of range: the files have 2 records", by=lambda: records[7])


def test_a_dict_of_datasets() -> None:
    datasets: Any = {"a": "train.tfrecord", "b": "sharded@4"}
    refused(TypeError, "expected a list of datasets, got dict", by=lambda: tfr.mix(datasets))


@pytest.mark.plugins("tensorflow")
def test_a_split_that_does_not_exist(data: Path) -> None:
    message = "split='valid[:10%]': the dataset has no split 'valid'; its splits are "
    refused(ValueError, message, by=lambda: tfr.dataset(data / "tfds" / "episodes", split="valid[:10%]"))


def test_several_records_in_place_of_one() -> None:
    payload = tfr.encode_example({"a": 1})
    several = [payload, payload]
    for given in (several, pd.Series(several), np.array(several, object), pa.array(several), 5):
        advice = f"expected the bytes of a record, got {type(given).__name__}; tfr.io.decode_examples takes a column"
        refused(TypeError, advice, by=lambda g=given: tfr.decode_example(g))  # type: ignore[misc]
    for one in (
        payload,
        memoryview(payload),
        np.frombuffer(payload, np.uint8),
        pa.scalar(payload),
        pa.py_buffer(payload),
    ):
        assert tfr.decode_example(one)["a"].tolist() == [1]


def test_a_field_that_is_no_type() -> None:
    parts = ("unknown type 'picture'; use names like 'int32'", "or a field such as tfr.image()")
    refused(tfr.errors.SchemaError, *parts, by=lambda: tfr.read_table("train.tfrecord", schema={"label": "picture"}))


def test_the_form_of_an_image() -> None:
    message = "mode='gray': expected one of 'RGB', 'L', 'RGBA', 'index', 'unchanged'"
    refused(tfr.errors.SchemaError, message, by=lambda: tfr.image(mode="gray"))
    refused(tfr.errors.SchemaError, "resize=(16, 8) resizes", by=lambda: tfr.image((16, 8)))


@pytest.mark.plugins("vision")
def test_a_damaged_image_of_a_folder() -> None:
    pytest.importorskip("PIL.Image").new("RGB", (4, 3)).save("1.png")
    for name in ("1.png", "2.jpg"):
        Path("photos", "cat").mkdir(parents=True, exist_ok=True)
        Path("photos", "cat", name).write_bytes(Path("1.png").read_bytes() if name == "1.png" else b"\xff\xd8\xffjunk")
    refused(
        tfr.errors.DecodeError,
        "2.jpg: ",
        'on_error="skip" leaves it out',
        by=lambda: tfr.convert("photos", "a.tfrecord"),
    )
    with pytest.warns(tfr.errors.DamagedDataWarning):
        assert tfr.convert("photos", "a.tfrecord", on_error="skip").records == 1  # the advice works


def test_copying_a_file_of_another_format() -> None:
    FRAME.to_parquet("a.parquet")
    with pytest.raises(tfr.errors.CorruptRecordError, match="looks like a Parquet file; read it") as caught:
        tfr.copy("a.parquet", "copies/")
    assert "salvage" not in str(caught.value)


@pytest.mark.parametrize("name", ["_private", "__wrapped__", "xyz", "frobnicate"])
def test_no_far_fetched_name_is_suggested(name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'tfrecord_io' has no attribute '{name}'$"):
        getattr(tfr, name)


def test_all_equivalents_exist() -> None:
    assert [name for name in set(_EQUIVALENTS.values()) if not callable(attrgetter(name)(tfr))] == []
    assert not set(_EQUIVALENTS) & set(tfr.__all__)


@pytest.mark.parametrize(
    "read",
    [
        lambda: tfr.read_table("train.tfrecord", columns=["lable"]),
        lambda: tfr.read_table("train.tfrecord", filters=[("lable", "==", 1)]),
        lambda: tfr.read_table(tfr.dataset("train.tfrecord", schema_overrides={"lable": "int32"})),
        lambda: tfr.dataset("train.tfrecord").select(["lable"]),
        lambda: next(tfr.iter_arrays("train.tfrecord", batch_size=1, columns=["lable"])),
        lambda: tfr.split("train.tfrecord", "parts", by="lable"),
        lambda: tfr.Schema({"label": int, "name": str})["lable"],
    ],
)
def test_a_misspelt_column(read: Callable[[], object]) -> None:
    refused(tfr.errors.FeatureNotFoundError, "did you mean 'label'? valid names: label, name", by=read)


def test_a_misspelt_column_of_a_schema() -> None:
    with pytest.warns(tfr.errors.SchemaWarning, match=r"'lable' occurs in none of 2 records; did you mean 'label'\?"):
        tfr.read_table("train.tfrecord", schema={"lable": int, "name": str})


@pytest.mark.parametrize("keywords", [{"mode": "append"}, {"mode": "a"}, {"append": True}, {"if_exists": "append"}])
def test_appending(keywords: dict[str, Any]) -> None:
    """Nothing that replaces the file is suggested."""
    text = "nothing is appended to a file: write another one next to it, and read both by their directory or a glob"
    with pytest.raises((TypeError, ValueError)) as caught:
        tfr.RecordWriter("train.tfrecord", **keywords)
    assert text in str(caught.value)
    assert "did you mean" not in str(caught.value)
    calls: list[Callable[..., object]] = [
        tfr.open_writer,
        lambda path, **k: tfr.write_tfrecord(FRAME, path, **k),
        lambda p, **k: tfr.convert("train.tfrecord", p, **k),
    ]
    expected = "'append'?"
    if "mode" in keywords:
        expected = "append to a directory" if keywords["mode"] == "append" else "'append'"
    for call in calls:
        with pytest.raises((TypeError, ValueError)) as raised:
            call("train.tfrecord", **keywords)
        assert expected in str(raised.value)
    tfr.write_tfrecord(FRAME, "more.tfrecord")  # the advice works
    assert len(tfr.read_table("{train,more}.tfrecord")) == 4
    for other in ({"if_exists": "replace"}, {"exist_ok": True}, {"overwrite": True}):
        refused(TypeError, "'overwrite'", by=lambda o=other: tfr.write_tfrecord(FRAME, "a", **o))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "meant"), [("int46", "int64"), ("sting", "string"), ("List<int46>", "list<int64>"), ("float46", "float64")]
)
def test_a_misspelt_type(name: str, meant: str) -> None:
    refused(
        tfr.errors.SchemaError, f"unknown type '{name}'; did you mean '{meant}'?", by=lambda: tfr.Schema({"a": name})
    )
    use = "unknown type 'object'; use names like 'int32', 'string'"
    refused(tfr.errors.SchemaError, use, by=lambda: tfr.Schema({"a": "object"}))


# ---- data to write


def test_what_is_no_table() -> None:
    for data in ([b"one", b"two"], b"one"):
        refused(TypeError, "tfr.RecordWriter writes records of bytes", by=lambda d=data: tfr.write_tfrecord(d, "a"))  # type: ignore[misc]
    for path in ("a.csv", Path("a.csv")):
        refused(TypeError, "tfr.convert(source, target) converts files", by=lambda p=path: tfr.write_tfrecord(p, "a"))  # type: ignore[misc]
    example = tfr.train.Example()
    refused(TypeError, "SerializeToString()", by=lambda: tfr.write_tfrecord([example], "a"))
    assert not Path("a").exists()
    with tfr.RecordWriter("a") as writer:
        refused(TypeError, "write its SerializeToString()", by=lambda: writer.write(example))


@pytest.mark.parametrize("data", [FRAME, {"label": [1]}, np.zeros(3), pa.table({"label": [1]})], ids=type)
def test_swapped_arguments(data: Any) -> None:
    advice = "the data comes first, as in write_tfrecord(data, path)"
    refused(TypeError, advice, by=lambda: tfr.write_tfrecord("a.tfrecord", data))


def test_images_of_pillow() -> None:
    image = pytest.importorskip("PIL.Image").new("RGB", (4, 3), (1, 2, 3))
    parts = ("feature 'image': ", "image.save(buffer, 'PNG'); buffer.getvalue(); or its pixels: np.asarray(image)")
    for data in ({"image": [image]}, pd.DataFrame({"image": [image]}), [{"image": image}]):
        refused(tfr.errors.EncodeError, *parts, by=lambda d=data: tfr.write_tfrecord(d, "a"))  # type: ignore[misc]
    refused(tfr.errors.EncodeError, *parts, by=lambda: tfr.encode_example({"image": image}))
    buffer = io.BytesIO()  # the advice works
    image.save(buffer, "PNG")
    tfr.write_tfrecord({"encoded": [buffer.getvalue()], "pixels": [np.asarray(image)]}, "a")
    assert tfr.read_arrays("a")["pixels"].shape == (1, 3, 4, 3)


def test_nested_values_of_an_example() -> None:
    refused(
        tfr.errors.EncodeError, "record_type='sequence_example'", by=lambda: tfr.encode_example({"a": [[1, 2], [3]]})
    )
    refused(tfr.errors.EncodeError, "ravel() it", by=lambda: tfr.encode_example({"a": np.zeros((2, 2))}))


def test_a_feature_that_a_record_lacks() -> None:
    payload = tfr.encode_example({"a": 1})
    description = {"b": tfr.io.FixedLenFeature([], "int64")}
    advice = "describe it as FixedLenFeature(default_value=…), or describe it as a VarLenFeature"
    refused(
        tfr.errors.FeatureNotFoundError,
        "record 0",
        "'b'",
        advice,
        by=lambda: tfr.io.parse_example([payload], description),
    )


# ---- losses that were not asked for


def test_columns_that_a_schema_leaves_out_are_named(recwarn: pytest.WarningsRecorder) -> None:
    message = "the schema leaves out 1 column of the data: 'name'; select the columns of the data"
    with pytest.warns(tfr.errors.SchemaWarning, match=re.escape(message)):
        tfr.write_tfrecord(FRAME, "a", schema={"label": "int64"})
    with tfr.open_writer("a", {"label": int}) as writer:
        with pytest.warns(tfr.errors.SchemaWarning, match=re.escape(message)):
            writer.write(FRAME)
        recwarn.clear()
        writer.write(FRAME)
        assert not recwarn.list  # it warned before
    assert tfr.read_tfrecord("a").columns.tolist() == ["label"]
    hostile = pa.table({"label": [1], "a\x1b[31m": [1]} | {f"c{i}": [i] for i in range(20)})
    with pytest.warns(
        tfr.errors.SchemaWarning, match=r"leaves out 21 columns of the data: 'a\\x1b\[31m', .* and 13 more"
    ):
        tfr.write_tfrecord(hostile, "a", schema={"label": "int64"})
    recwarn.clear()
    tfr.write_tfrecord(FRAME[["label"]], "a", schema={"label": "int64"})
    tfr.write_tfrecord(FRAME[FRAME["label"] > 1][["label"]], "a", schema={"label": "int64"})  # with an unnamed index
    assert not recwarn.list


@pytest.mark.parametrize("embed_schema", [True, False])
def test_feature_lists_that_are_not_read_are_named(embed_schema: bool, recwarn: pytest.WarningsRecorder) -> None:
    table = pa.table({"length": [2, 1], "words": [[[1], [2, 3]], [[4]]]})
    tfr.write_tfrecord(table, "a", record_type="sequence_example", embed_schema=embed_schema)
    message = 'a: the records have feature lists, which record_type="example" ignores; leave it out to read them'
    for read in (tfr.read_table, tfr.read_tfrecord, tfr.infer_schema, attrgetter("schema")):
        with pytest.warns(tfr.errors.SchemaWarning, match=message):
            read(tfr.dataset("a", record_type="example"))
    recwarn.clear()
    tfr.read_table("a")
    tfr.read_table(tfr.dataset("a", record_type="sequence_example"))
    tfr.read_table(tfr.dataset("a", record_type="example"), columns=["length"])
    tfr.read_table(tfr.dataset("train.tfrecord", record_type="example"))
    assert not recwarn.list


def test_info_is_the_same_call_as_the_command() -> None:
    assert _EQUIVALENTS["info"] == _OTHER_COMMANDS["info"]


def test_hasattr_makes_no_suggestion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks many objects for many names, as pandas and editors do, is not to wait for a comparison of names."""
    tfr.write_tfrecord({"x": range(3)}, tmp_path / "a.tfrecord")
    hasattr(tfr, "unknown_name")  # imports what is needed, and asks other packages once

    def fail(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("difflib.SequenceMatcher.ratio", fail)
    monkeypatch.setattr("difflib.SequenceMatcher.quick_ratio", fail)
    monkeypatch.setattr("importlib.metadata.entry_points", fail)
    with tfr.open_reader(tmp_path / "a.tfrecord") as reader:
        objects = [tfr, tfr.io, tfr.dataset(tmp_path / "a.tfrecord"), reader, tfr.verify(tmp_path / "a.tfrecord")]
        assert not any(hasattr(each, "unknown_names") for each in objects)


def test_errors_for_unknown_names_can_be_pickled() -> None:
    with pytest.raises(AttributeError) as info:
        tfr.read_tfrecords  # type: ignore[attr-defined]  # noqa: B018
    assert str(pickle.loads(pickle.dumps(info.value))) == str(info.value)
