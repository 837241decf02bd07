"""A folder with files of several splits: one warning, with the glob of each, which reads its files and no others."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrecord_io as tfr
from folder_trees import FolderTree, shards
from tfrecord_io.store.paths.resolve import resolve_inputs

FOLDERS: dict[str, list[list[str]]] = {
    "Basenji": [
        [f"train-{i}-{j}.tfr.gz" for i in range(2) for j in range(3)],
        ["valid-0-0.tfr.gz", "valid-0-1.tfr.gz"],
        ["test-0-0.tfr.gz"],
    ],
    "SIIM": [[f"train{i:02d}-2071.tfrec" for i in range(3)], [f"test{i:02d}-687.tfrec" for i in range(12)]],
    "names that end with it": [["mnist_train.tfrecord"], ["mnist_test.tfrecord"]],
    "behind a number": [["0_train.tfrecord", "1_train.tfrecord"], ["0_val.tfrecord", "1_val.tfrecord"]],
    "compressed or not": [["Train_0.tfrecord", "Train_1.tfrecord.gz"], ["Test_0.tfrecord"]],
    "one in shards": [["dev.tfrecord"], shards("train", 2)],
}


def messages(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("folder", FOLDERS)
def test_one_warning_has_for_each_split_what_reads_it(tree: FolderTree, folder: str) -> None:
    splits = FOLDERS[folder]
    tree.make(*(name for names in splits for name in names), "train-notes.md", "_SUCCESS", "test.json")
    for names in splits:  # those without a suffix of TFRecord files are read by their content
        for name in names:
            tree.fs.pipe_file(f"{tree.root}/{name}", bytes.fromhex("000000000000000029039807") + bytes(4))
    found: list[str] = []
    (message,) = messages(lambda: found.extend(tree.found("")))
    assert sorted(found) == sorted(name for names in splits for name in names)
    assert f"files of {len(splits)} splits are read as one dataset" in message
    *paths, everything = re.findall(r"'([^']*)'", message)
    for path, names in zip(paths, sorted(splits), strict=True):
        again: list[str] = []
        assert not messages(lambda path=path, again=again: again.extend(s.path for s in resolve_inputs(path)))
        assert sorted(again) == sorted(f"{tree.root}/{name}" for name in names)
    assert everything == f"{tree.root}/*"


def test_files_that_no_plain_glob_tells_from_others_are_named_by_the_first(tree: FolderTree) -> None:
    tree.make("train-0.tfrec", "train_1.tfrecord", "eval-0.tfrec", "train.csv")
    (message,) = messages(lambda: tree.found(""))
    assert "'train-0.tfrec' and 1 more (2 files)" in message
    assert f"'{tree.root}/eval-0.tfrec' (1 file)" in message


def test_files_of_splits_in_folders_of_partitions_are_named_by_globs_of_all_folders(tree: FolderTree) -> None:
    tree.make(*(f"day={day}/{name}-{day}.tfrecord" for day in (1, 2) for name in ("train", "test")))
    (message,) = messages(lambda: tree.found(""))
    for path, split in zip(re.findall(r"'([^']*)'", message), ("test", "train"), strict=False):
        names = [source.path.removeprefix(f"{tree.root}/") for source in resolve_inputs(path)]
        assert names == [f"day={day}/{split}-{day}.tfrecord" for day in (1, 2)]


@pytest.mark.parametrize(
    "names",
    [
        ["train-0.tfrecord", "train-1.tfrecord"],
        ["train-0.tfrecord", "extra.tfrecord"],
        ["val-0.tfrecord", "valid-1.tfrecord"],  # of one split
        ["latest.tfrecord", "trains.tfrecord", "contest.tfrecord"],
        ["split=train/0.tfrecord", "split=test/0.tfrecord"],  # a column
    ],
)
def test_files_of_one_split_and_words_that_are_no_splits_are_read_without_a_word(
    tree: FolderTree, names: list[str]
) -> None:
    tree.make(*names)
    assert not messages(lambda: tree.found(""))


def test_a_dataset_whose_manifest_names_the_files_is_one_dataset(tmp_path: Path) -> None:
    for name in ("train", "test"):
        tfr.write_tfrecord({"x": [1]}, tmp_path / f"{name}.tfrecord")
    assert len(messages(lambda: tfr.read_table(tmp_path))) == 1
    with pytest.warns(UserWarning, match="files of 2 splits"):
        tfr.adopt(tmp_path)
    assert not messages(lambda: tfr.read_table(tmp_path))
