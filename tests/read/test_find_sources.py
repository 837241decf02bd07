"""``split=``: the rows of datasets that TFDS wrote, as TFDS reads them."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from pathlib import Path

import pytest

import tfrecord_io as tfr
from counted_calls import calls
from rounds import COMPLETE, rounds
from tfrecord_io.store.filesystem.interface import LocalFileSystem


@pytest.fixture
def splits(data: Path) -> Path:
    return data / "tfds" / "splits"


def expected(directory: Path) -> dict[str, list[int] | None]:
    found: dict[str, list[int] | None] = json.loads((directory / "expected.json").read_text())
    return found


def test_rows_are_those_that_tfds_reads(engine: str, splits: Path) -> None:
    """Of 186 values of split=; what TFDS refuses, or reads nothing of, is an error."""
    for text, numbers in expected(splits).items():
        if numbers is None:
            with pytest.raises(ValueError, match="split="):
                tfr.read_table(tfr.dataset(splits, split=text))
        else:
            assert tfr.read_table(tfr.dataset(splits, split=text))["n"].to_pylist() == numbers, text


def test_every_reader_has_the_keyword(engine: str, splits: Path) -> None:
    text, both = "train[10:-30]+test[2:9]", expected(splits)["train+test"] or []
    numbers = both[10:73] + both[105:112]
    scan = tfr.dataset(splits, split=text)
    assert scan.count_rows() == len(numbers) == tfr.count(tfr.dataset(splits, split=text))
    assert scan.to_table()["n"].to_pylist() == numbers
    assert [n for piece in scan.pieces(4) for n in piece.read()["n"].to_pylist()] == numbers
    assert tfr.read_tfrecord(tfr.dataset(splits, split=text))["n"].tolist() == numbers
    assert tfr.read_arrays(tfr.dataset(splits, split=text))["n"].tolist() == numbers
    with tfr.open_reader(tfr.dataset(splits, split=text), batch_size=7) as reader:
        assert [n for batch in reader for n in batch["n"].to_pylist()] == numbers
    batches = tfr.iter_arrays(tfr.dataset(splits, split=text), batch_size=7, shuffle_buffer=16, seed=1)
    assert sorted(n for batch in batches for n in batch["n"].tolist()) == sorted(numbers)
    assert len(list(tfr.RecordReader(tfr.dataset(splits, split=text)))) == len(numbers)
    assert tfr.verify(tfr.dataset(splits, split=text)).records == len(numbers)
    assert tfr.read_metadata(tfr.dataset(splits, split=text)).schema_source == "features.json"
    assert tfr.describe(tfr.dataset(splits, split=text)).records == len(numbers)
    filtered = tfr.read_table(tfr.dataset(splits, split=text, offset=3), filters=[("n", ">", 1000)])
    assert filtered["n"].to_pylist() == [n for n in numbers[3:] if n > 1000]


def test_datasets_of_different_splits_are_read_together(engine: str, splits: Path) -> None:
    train, test = (expected(splits)[name] or [] for name in ("train", "test[:100%]"))
    parts = [tfr.dataset(splits, split="train[3:70]"), tfr.dataset(splits, split="test[2:9]")]
    numbers = train[3:70] + test[2:9]
    assert tfr.read_table(parts)["n"].to_pylist() == numbers
    both = tfr.dataset(parts)
    assert both.schema_source == "features.json"
    assert both.count_rows() == tfr.count(parts) == len(numbers)
    assert [n for batch in both.iter_arrays(batch_size=7) for n in batch["n"].tolist()] == numbers
    assert pickle.loads(pickle.dumps(both)).to_table()["n"].to_pylist() == numbers
    file = next(splits.glob("splits-test.tfrecord-00000-*"))
    rest = tfr.read_table(file)["n"].to_pylist()
    for order in (1, -1):
        found = tfr.read_table([parts[0], file][::order])["n"].to_pylist()
        assert found == (train[3:70] + rest if order == 1 else rest + train[3:70])
        for parts_of_it in ([parts[0], file][::order], parts):  # their paths mean other rows
            with pytest.raises(ValueError, match="only what was opened as a whole can be refreshed"):
                tfr.dataset(parts_of_it).refresh()
            with pytest.raises(ValueError, match="verify takes no list with a dataset of a split"):
                tfr.verify(parts_of_it)
    with pytest.raises(TypeError, match=r"split='train'.* takes the path of one dataset, not list"):
        tfr.dataset([splits, splits], split="train")


def test_a_slice_of_one_file_is_split_into_pieces(engine: str, tmp_path: Path) -> None:
    tfr.formats.write_tfds({"n": list(range(2000))}, tmp_path / "one" / "1.0.0")
    pieces = tfr.dataset(tmp_path / "one", split="train[100:-100]").pieces(4)
    assert len(pieces) == 4
    assert [n for piece in pieces for n in piece.read()["n"].to_pylist()] == list(range(100, 1900))
    parts = [
        batch["n"].tolist()
        for part in range(2)
        for batch in tfr.iter_arrays(
            tfr.dataset(tmp_path / "one", split="train[10%:90%]"), batch_size=64, worker=(part, 2)
        )
    ]
    assert sorted(n for part in parts for n in part) == list(range(200, 1800))


@pytest.mark.parametrize("indexed", [False, True])
def test_the_number_of_batches_of_a_slice_is_known(tmp_path: Path, indexed: bool) -> None:
    tfr.formats.write_tfds({"n": list(range(40))}, tmp_path / "pets" / "1.0.0", shards=1)
    if indexed:
        tfr.build_index(tfr.dataset(tmp_path / "pets", split="train"), columns=["n"])
    data = tfr.dataset(tmp_path / "pets", split="train[13:29]")
    assert len(tfr.iter_arrays(tfr.dataset(tmp_path / "pets", split="train[13:29]"), batch_size=5)) == 4
    assert len(pickle.loads(pickle.dumps(data)).iter_arrays(batch_size=5)) == 4
    assert len(data.iter_arrays(batch_size=2, worker=(1, 3), uneven="pad")) == 3
    other = tfr.dataset(tmp_path / "pets", split="train[:3]+train[-2:]")
    mixed = tfr.mix([data, other], stop="all").iter_arrays(batch_size=1)
    assert len(mixed) == len(list(mixed))
    for piece in data.pieces(3):  # their numbers are not that of the slice
        assert sum(1 for _ in piece.read()["n"]) == piece.count_rows() < 16


def test_records_by_number(engine: str, splits: Path) -> None:
    numbers = tfr.read_table(tfr.dataset(splits, split="train[25:-25]+test[:3]"))["n"].to_pylist()
    with tfr.open_random(tfr.dataset(splits, split="train[25:-25]+test[:3]")) as records:
        assert len(records) == len(numbers)
        assert [records[i]["n"] for i in range(len(records))] == numbers
        assert records[-1]["n"] == numbers[-1]
        assert records[[5, 0]]["n"].to_pylist() == [numbers[5], numbers[0]]
        selected = records.select([("n", ">", 50)])
        assert selected.to_table()["n"].to_pylist() == [n for n in numbers if n > 50]


def test_index_files_are_used_for_the_ends_of_a_slice(splits: Path, tmp_path: Path) -> None:
    copy = tmp_path / "splits"
    shutil.copytree(splits, copy)
    tfr.build_index(tfr.dataset(copy, split="train"), columns=["n"])
    for text, numbers in list(expected(splits).items())[:12]:
        if numbers is not None:
            assert tfr.read_table(tfr.dataset(copy, split=text), filters=[("n", ">=", 0)])["n"].to_pylist() == numbers
            with tfr.open_random(tfr.dataset(copy, split=text)) as records:
                assert records.select([("n", ">=", 0)]).to_table()["n"].to_pylist() == numbers


@pytest.fixture
def root(splits: Path, tmp_path: Path) -> Path:
    """A data_dir with two versions of a dataset; the newer one has another name of a split."""
    for version in ("1.0.0", "1.10.0", "1.9.3"):
        shutil.copytree(splits, tmp_path / "splits" / version)
    info = tmp_path / "splits" / "1.10.0" / "dataset_info.json"
    info.write_text(info.read_text().replace('"test"', '"newest"'))
    for file in info.parent.glob("splits-test*"):
        file.rename(file.with_name(file.name.replace("test", "newest")))
    return tmp_path / "splits"


def test_the_newest_version_is_read_or_that_which_is_named(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tfr.count(tfr.dataset(root, split="newest")) == 17
    assert tfr.count(tfr.dataset(root / "1.9.3", split="test")) == 17
    assert tfr.count(tfr.dataset(root / "1.9.3" / "features.json", split="test")) == 17
    monkeypatch.setenv("HOME", str(root.parent))
    assert tfr.count(tfr.dataset("~/splits", split="newest[:5]")) == 5
    with pytest.raises(FileNotFoundError, match=r"did you mean 'splits'\?"):
        tfr.dataset(root.parent / "split", split="train")


def test_configurations(root: Path) -> None:
    base = root.parent / "named"
    for config in ("small", "large"):
        shutil.copytree(root, base / config)
    with pytest.raises(ValueError, match="several configurations, large, small: name one"):
        tfr.dataset(base, split="train")
    assert tfr.count(tfr.dataset(base / "small", split="newest")) == 17
    assert tfr.count(tfr.dataset(base / "small" / "1.0.0", split="test")) == 17
    (base / ".config").mkdir()
    (base / ".config" / "metadata.json").write_text('{"default_config_name": "large"}')
    shutil.rmtree(base / "small")
    assert tfr.dataset(base, split="newest").files[0].startswith(str(base / "large" / "1.10.0"))


def test_a_directory_without_a_dataset_says_what_is_missing(tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1]}, tmp_path / "a.tfrecord")
    with pytest.raises(FileNotFoundError, match=r"needs a dataset_info\.json"):
        tfr.read_table(tfr.dataset(tmp_path, split="train"))
    with pytest.raises(TypeError, match="the path of one dataset"):
        tfr.read_table(tfr.dataset([tmp_path], split="train"))


def test_missing_and_shortened_files(splits: Path, tmp_path: Path) -> None:
    copy = tmp_path / "splits"
    shutil.copytree(splits, copy)
    name = copy / "splits-train.tfrecord-00001-of-00005"
    records = list(tfr.RecordReader(name))
    with tfr.RecordWriter(name, mode="overwrite") as writer:
        for record in records[:5]:
            writer.write(record)
    for text in ("train[:30]", "train"):
        with pytest.raises(tfr.errors.CorruptRecordError, match=r"has 5 records, dataset_info\.json lists"):
            tfr.read_table(tfr.dataset(copy, split=text))
    name.unlink()
    with pytest.raises(FileNotFoundError, match="file of the split 'train' is missing"):
        tfr.read_table(tfr.dataset(copy, split="train"))
    assert tfr.read_table(tfr.dataset(copy, split="train", allow_missing_shards=True)).num_rows == 103 - len(records)
    assert tfr.read_table(tfr.dataset(copy, split="test")).num_rows == 17


@pytest.mark.parametrize("template", ["../{SPLIT}", "/etc/passwd", "a/../../b", "file:///x", "{SPLIT}\0"])
def test_names_that_leave_the_directory_are_refused(splits: Path, tmp_path: Path, template: str) -> None:
    document = json.loads((splits / "dataset_info.json").read_text())
    document["splits"][0]["filepathTemplate"] = template
    (tmp_path / "dataset_info.json").write_text(json.dumps(document))
    with pytest.raises(tfr.errors.SchemaError, match="name of a file"):
        tfr.read_table(tfr.dataset(tmp_path, split="all"))


def test_other_file_formats_are_named(splits: Path, tmp_path: Path) -> None:
    text = (splits / "dataset_info.json").read_text().replace('"fileFormat": "tfrecord"', '"fileFormat": "parquet"')
    (tmp_path / "dataset_info.json").write_text(text)
    with pytest.raises(tfr.errors.SchemaError, match=r"'parquet', not TFRecord or ArrayRecord; .* tfr\.convert\("):
        tfr.read_table(tfr.dataset(tmp_path, split="all"))


def test_mutants_of_the_description_are_clear_errors(splits: Path, tmp_path: Path) -> None:
    """Bytes and values of dataset_info.json are changed; a read succeeds or raises an error of the package."""
    copy = tmp_path / "splits"
    shutil.copytree(splits, copy)
    original = (copy / "dataset_info.json").read_bytes()
    rng = random.Random(3)
    values = ['"../x"', "-1", "[]", "{}", "null", "1e999", '"9"', '"\\u0000"', "99999999999999999999", '"{SPLIT}"']
    for _ in range(rounds(100_000 if COMPLETE else 4_000)):
        text = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text))
            piece = rng.choice(values).encode() if rng.random() < 0.5 else bytes([rng.randrange(256)])
            text[at : at + rng.choice([0, 1, 1, len(piece)])] = piece
        (copy / "dataset_info.json").write_bytes(text)
        split = rng.choice(["all", "train[:33%]", "test[1shard:]", "dev-small_2[-2:]"])
        try:
            with tfr.RecordReader(tfr.dataset(copy, split=split)) as reader:
                next(reader)
        except (tfr.TFRecordError, FileNotFoundError) as error:
            assert str(error)  # noqa: PT017
        except ValueError as error:
            assert str(error).startswith("split="), error  # noqa: PT017


def test_a_description_of_very_many_files_is_read_in_one_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names are made without a search in each, and the first file that is missing ends the look-up."""
    count, looked_up = 200_000, 0
    document = {"name": "mine", "fileFormat": "tfrecord", "splits": [{"name": "train", "shardLengths": ["1"] * count}]}
    (tmp_path / "dataset_info.json").write_text(json.dumps(document))
    entry = LocalFileSystem.entry

    def counted(self: LocalFileSystem, name: str, **keywords: bool) -> object:
        nonlocal looked_up
        looked_up += 1
        return entry(self, name, **keywords)

    monkeypatch.setattr(LocalFileSystem, "entry", counted)
    with pytest.raises(FileNotFoundError, match=f"mine-train.tfrecord-000000-of-{count}"):
        tfr.read_table(tfr.dataset(tmp_path, split="train"))
    with pytest.raises(FileNotFoundError, match=f"mine-train.tfrecord-199990-of-{count}"):
        tfr.read_table(tfr.dataset(tmp_path, split="train[199990:]"))
    assert looked_up < 3000


def test_what_is_done_for_each_file_of_a_description_does_not_grow(tmp_path: Path) -> None:
    """Of 2,000,000 files, which people have, it is then a few seconds."""

    def work(count: int) -> int:
        shards = {"name": "train", "shardLengths": ["1"] * count}
        document = {"name": "mine", "fileFormat": "tfrecord", "splits": [shards]}
        (tmp_path / "dataset_info.json").write_text(json.dumps(document))
        file = tmp_path / f"mine-train.tfrecord-{0:0{max(5, len(str(count)))}}-of-{count:05d}"
        tfr.write_tfrecord({"x": [1]}, file)

        def reads() -> None:
            assert tfr.read_table(tfr.dataset(tmp_path, split="train[:1]")).num_rows == 1
            assert tfr.count(tfr.dataset(tmp_path, split="train[:1]")) == tfr.count(file) == 1
            assert tfr.verify(file).ok

        reads()  # modules are loaded
        return calls(reads)

    few, more, many = map(work, (1_000, 10_000, 100_000))
    assert many - more < 11 * (more - few)
    assert many < 100_000 * 20
