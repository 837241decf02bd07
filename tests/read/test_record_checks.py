"""Declared columns that no record has: a warning with the nearest names, once, at the end of the read."""

from __future__ import annotations

import io
import json
import pickle
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tfrecord_io as tfr
from records import blobs, example, int64s, written
from strategies import sequence_example
from tfrecord_io.base import ReadOptions
from tfrecord_io.bytes.format.dtypes import Dtype
from tfrecord_io.read.call_source import CallSource
from tfrecord_io.read.scan_rows import ScanRows

N = 200


def rows(n: int) -> list[bytes]:
    return [example(**{"class": int64s(i), "image/encoded": blobs(b"x"), "empty": b""}) for i in range(n)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "a", rows(N))


@contextmanager
def warned(*texts: str) -> Iterator[None]:
    """Expect exactly these SchemaWarnings, issued at a line of this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    assert [str(w.message) for w in caught if w.category is tfr.errors.SchemaWarning] == list(texts)
    assert {w.filename for w in caught} <= {__file__}


ADVICE = "Declare it with required=False if that is expected"
HAVE = "other features are 'class', 'empty', 'image/encoded'"
KLASS = f"'klass' occurs in none of 200 records; did you mean 'class'? {ADVICE}"


def iterated(path: Any, **keywords: Any) -> None:
    for _ in tfr.iter_arrays(path, batch_size=64, missing="mask", epochs=2, **keywords):
        pass


def streamed(path: Any, **keywords: Any) -> None:
    with tfr.open_reader(path, batch_size=64, **keywords) as reader:
        for _ in reader:
            pass


def filled(path: Any, **keywords: Any) -> None:
    tfr.read_arrays(path, missing="mask", **keywords)


READS = [tfr.read_table, tfr.read_tfrecord, streamed, filled, iterated]


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("read", READS)
def test_a_declared_column_that_no_record_has_is_a_warning(
    engine: str, path: Path, read: Callable[..., Any], threads: int
) -> None:
    with warned(KLASS):
        read(tfr.dataset(path, threads=threads), schema={"klass": "int64"})
    with warned(KLASS):
        read(tfr.dataset(path, threads=threads), schema=pa.schema([("klass", pa.list_(pa.int64()))]))


@pytest.mark.parametrize("read", READS)
def test_columns_that_may_be_absent_give_no_warning(path: Path, read: Callable[..., Any]) -> None:
    schema = tfr.Schema({"a": tfr.scalar("int64", required=False), "b": tfr.scalar("int64", default=1), "c": pa.null()})
    with warned():
        read(path, schema=schema)
        read(path, schema=pickle.loads(pickle.dumps(schema)))
        read(path, schema={"klass": "int64", "class": "int64"}, columns=["class"])


def test_a_required_column_that_no_record_has_is_an_error(engine: str, path: Path) -> None:
    with pytest.raises(tfr.errors.FeatureNotFoundError, match="klass"):
        tfr.read_table(path, schema={"klass": tfr.scalar("int64", required=True)})


@pytest.mark.parametrize(
    ("field", "text"),
    [
        (tfr.scalar("int64", feature="CLASS"), f"'CLASS' (column 'x') occurs in none of 200 records; {{}} {ADVICE}"),
        (tfr.tensor("uint8", (None, None), feature="klass"), f"'klass' (column 'x') {KLASS[8:]}"),
        (tfr.scalar("int64"), f"'x' occurs in none of 200 records; {HAVE}. {ADVICE}"),
        (pa.struct([("a", pa.int64()), ("b", pa.string())]), f"'x' occurs in none of 200 records; {HAVE}. {ADVICE}"),
        (tfr.sequence("int64"), f"'x' occurs in none of 200 records; {HAVE}. {ADVICE}"),
    ],
)
def test_every_form_of_column_is_watched(engine: str, path: Path, field: Any, text: str) -> None:
    with warned(text.format("did you mean 'class'?")):
        tfr.read_table(path, schema={"x": field})


def test_several_columns_are_one_warning(path: Path) -> None:
    of = "declared columns occur in none of 200 records"
    text = (
        f"3 {of}: 'klass' (did you mean 'class'?), 'image' (did you mean 'image/encoded'?), 'zzz'. Declare them with "
    )
    with warned(text + "required=False if that is expected"):
        tfr.read_table(path, schema={"klass": "int64", "image": tfr.image(), "zzz": "string"})
    names = [f"zzz{i}" for i in range(20)]
    with pytest.warns(tfr.errors.SchemaWarning, match=f"20 {of}: 'zzz0', .*'zzz7' and 12 more. Declare"):
        tfr.read_table(path, schema=dict.fromkeys(names, "int64"))


def test_a_feature_without_values_is_not_absent(engine: str, path: Path) -> None:
    with warned():
        assert tfr.read_table(path, schema={"empty": "int64"})["empty"].null_count == N


def test_a_column_of_a_late_record_is_not_absent(engine: str, tmp_path: Path) -> None:
    paths = [written(tmp_path / "0", rows(150)), written(tmp_path / "1", [*rows(150), example(late=int64s(1))])]
    with warned():
        streamed(paths, schema={"late": "int64", "class": "int64"})
    have = "other features are 'empty', 'image/encoded'"
    with warned(f"'late' occurs in none of 300 records; {have}. {ADVICE}"):
        tfr.read_table(paths, schema={"late": "int64", "class": "int64"}, limit=300)
    with warned(f"'late' occurs in none of 1 record; {HAVE}. {ADVICE}"):
        tfr.read_table(tfr.dataset(paths, offset=299), schema={"late": "int64"}, limit=1)


def test_only_a_whole_read_of_some_records_warns(tmp_path: Path, path: Path) -> None:
    schema = {"klass": "int64"}
    with warned():
        tfr.read_table(written(tmp_path / "none", []), schema=schema)
        tfr.read_table(path, schema=schema, limit=0)
        with tfr.open_reader(path, schema=schema, batch_size=10) as reader:
            next(iter(reader))
    broken = path.with_name("broken")
    broken.write_bytes(path.read_bytes()[:-1])
    with warned(), pytest.raises(tfr.TFRecordError):
        tfr.read_table(broken, schema=schema)


def test_pieces_and_workers_do_not_warn(path: Path) -> None:
    scan = CallSource(path).scan(ReadOptions(schema={"klass": "int64"}))
    with warned():
        assert sum(ScanRows(piece).read().num_rows for piece in scan.split(3)) == N
        iterated(path, schema={"klass": "int64"}, worker=(0, 2))


def test_embedded_schemas_do_not_warn(tmp_path: Path) -> None:
    table = pa.table({"x": pa.nulls(3, pa.int64()), "y": [1, 2, 3]})
    tfr.write_tfrecord(table, tmp_path / "a")
    with warned():
        assert tfr.read_table(tmp_path / "a") == table
    with warned(f"'x' occurs in none of 3 records. {ADVICE}"):
        tfr.read_table(tmp_path / "a", schema=table.schema)


def test_a_file_object_is_not_read_again(path: Path) -> None:
    with warned(f"'klass' occurs in none of 200 records. {ADVICE}"):
        tfr.read_table(io.BytesIO(path.read_bytes()), schema={"klass": "int64"})


def test_a_feature_list_that_is_ignored_is_named(engine: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a", [sequence_example({"n": int64s(1)}, {"words": [int64s(1, 2), int64s(3)]})] * 2)
    as_list = "a feature list has that name, and reading the records as tf.train.Example ignores feature lists"
    with warned(f"'words' occurs in none of 2 records; {as_list}. {ADVICE}"):
        tfr.read_table(tfr.dataset(path, record_type="example"), schema={"words": "list<int64>", "n": "int64"})
    for schema, reason in (
        (
            {"words": tfr.list_("int64")},
            "feature 'words': .* in the context, .* it is in the feature lists; .*sequence",
        ),
        ({"n": tfr.sequence("int64")}, "feature 'n': .* in the feature lists, .* it is in the context; .*list_"),
    ):
        for read in READS:
            with pytest.raises(tfr.errors.SchemaError, match=reason):
                read(path, schema=schema)


def test_arrays_of_the_caller(path: Path) -> None:
    with warned(KLASS):
        tfr.read_arrays(path, schema={"klass": "string"}, out={"klass": np.empty(N, Dtype.text(missing=True))})


def test_the_warning_may_be_an_error(path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tfr.errors.SchemaWarning, match="klass"):
            tfr.read_table(path, schema={"klass": "int64"})


# ---- the description of a dataset of TFDS


@pytest.fixture
def tfds(data: Path, tmp_path: Path) -> Path:
    """A dataset in a directory that may be changed."""
    return Path(shutil.copytree(data / "tfds" / "everything", tmp_path / "everything" / "1.0.0"))


def in_folders(directory: Path) -> Path:
    """The same dataset, whose template of names has a folder for each split."""
    info = json.loads((directory / "dataset_info.json").read_text())
    (split,) = info["splits"]
    template = "{SPLIT}/data.{FILEFORMAT}-{SHARD_X_OF_Y}"
    info["splits"] = [{**split, "name": name, "filepathTemplate": template} for name in ("train", "test")]
    (directory / "dataset_info.json").write_text(json.dumps(info))
    (file,) = directory.glob("*.tfrecord-*")
    for name in ("train", "test"):
        (directory / name).mkdir()
        shutil.copy(file, directory / name / "data.tfrecord-00000-of-00001")
    file.unlink()
    return directory


@pytest.mark.fault(56)
def test_a_file_with_another_number_of_records_than_tfds_wrote(engine: str, tfds: Path) -> None:
    (file,) = tfds.glob("*.tfrecord-*")
    written(file, list(tfr.RecordReader(file))[:3])
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"has 3 records, dataset_info\.json lists 4") as caught:
        tfr.read_table(tfds, columns=["label"])
    assert (caught.value.path, caught.value.expected, caught.value.got) == (str(file), 4, 3)


def test_the_description_is_above_the_folders_of_splits(engine: str, data: Path, tfds: Path) -> None:
    expected = tfr.read_table(data / "tfds" / "everything")
    in_folders(tfds)
    for split, copies in (("train", 1), ("test", 1), ("train+test", 2), ("test[1:3]+train", None)):
        found = tfr.read_table(tfr.dataset(tfds, split=split))
        assert found.schema == expected.schema
        if copies is not None:
            assert found.to_pylist() == expected.to_pylist() * copies
    streamed = tfr.dataset(tfds, split="train").select(["bool", "fixed"]).iter_arrays(batch_size=4)
    assert {name: array.dtype.name for name, array in next(streamed).items()} == {"bool": "bool", "fixed": "int16"}


@pytest.mark.fault(56)
def test_records_are_counted_in_the_folders_of_splits(engine: str, tfds: Path) -> None:
    file = in_folders(tfds) / "test" / "data.tfrecord-00000-of-00001"
    records = list(tfr.RecordReader(file))
    written(file, records[:3])
    assert tfr.read_table(tfr.dataset(tfds, split="train"), columns=["label"]).num_rows == 4
    with pytest.raises(tfr.errors.CorruptRecordError, match=r"has 3 records, dataset_info\.json lists 4") as caught:
        tfr.read_table(tfr.dataset(tfds, split="train+test"), columns=["label"])
    assert caught.value.path == str(file)


def test_a_split_without_features_json_is_inferred(tfds: Path) -> None:
    (in_folders(tfds) / "features.json").unlink()
    (tfds.parent.parent / "features.json").write_text("{")  # of something else
    with warned():
        assert tfr.read_metadata(tfr.dataset(tfds, split="train")).schema_source == "inferred"


def test_several_datasets_of_one_description(engine: str, data: Path, tfds: Path) -> None:
    expected = tfr.read_table(data / "tfds" / "everything")
    for other in (data / "tfds" / "everything", tfr.dataset(data / "tfds" / "everything")):
        first = tfds if isinstance(other, Path) else tfr.dataset(tfds)
        with warned():
            found = tfr.read_table([first, other])
        assert found.schema == expected.schema
        assert found.to_pylist() == expected.to_pylist() * 2


def test_several_datasets_of_different_descriptions(data: Path, tfds: Path) -> None:
    for other in (data / "tfds" / "splits" / "splits-test*", written(tfds.parent / "a.tfrecord", rows(1))):
        text = (
            f"'{other.parent}' has another features.json than '{tfds}', or none: read them one by one, or pass schema="
            "; types are inferred from the values"
        )
        with warned(text):
            assert tfr.dataset([tfds, other]).schema_source == "inferred"
        with warned():
            assert tfr.dataset([tfds, other], schema={"label": "int64"}).schema_source == "schema="


def test_a_type_that_is_read_from_other_features_is_named(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a")
    text = (
        "'x' occurs in none of 1 record; the records have it, but struct<a: int8> is read from other features, such as"
    )
    with warned(f"{text} 'x/a'. {ADVICE}"):
        tfr.read_table(tmp_path / "a", schema={"x": pa.struct({"a": pa.int8()})})
