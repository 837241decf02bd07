"""Rows of a dataset that is browsed, searches, and summaries of columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrecord_io as tfr
from tfrecord_io.plugins.browse.browsed_dataset import BrowsedDataset, Problem


@pytest.fixture
def browsed(tmp_path: Path) -> Iterator[Any]:
    """Open a dataset, which is closed with the test."""
    made: list[BrowsedDataset] = []

    def open_dataset(source: Any, **options: Any) -> BrowsedDataset:
        made.append(BrowsedDataset(source, options))
        return made[-1]

    yield open_dataset
    for dataset in made:
        dataset.close()


def rows(dataset: BrowsedDataset, *numbers: int) -> list[Any]:
    addresses = [dataset.map.address(number) for number in numbers]
    found = dict(dataset.rows(addresses, dataset.schema.names))
    return [found[address] for address in addresses]


def test_rows_of_shards_are_numbered_through(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(100)}, tmp_path / "train@3")
    dataset = browsed(tmp_path)
    assert [row["x"] for row in rows(dataset, 99, 0, 50)] == [99, 0, 50]
    assert dataset.label(dataset.map.address(99)) == "train-00002:33"
    assert dataset.find("train-00002:33") == dataset.find("99") == dataset.map.address(99)
    with pytest.raises(ValueError, match="there is no row 'train-00009:1'"):
        dataset.find("train-00009:1")


@pytest.mark.parametrize("index", [False, ["label"]])
def test_a_search_finds_the_rows_of_a_filter(browsed: Any, tmp_path: Path, index: Any) -> None:
    data = {"label": np.arange(3000) % 7, "x": np.arange(3000)}
    tfr.write_tfrecord(data, tmp_path / "a@3", write_index=index)
    dataset = browsed(tmp_path)
    dataset.map.find(3000)
    search = dataset.search("label == 3 and x > 1000")
    search.join()
    assert search.error == ""
    expected = tfr.dataset(tmp_path).filter("label == 3 and x > 1000").to_table()["x"].to_pylist()
    found = dict(dataset.rows(search.found[:], ["x"]))
    assert [found[address]["x"] for address in search.found[:]] == expected
    with pytest.raises(tfr.errors.FeatureNotFoundError):
        dataset.search("nothing == 3")


def test_a_search_goes_on_behind_damage(browsed: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(100)}, path, embed_schema=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    dataset = browsed(path)
    dataset.map.find(100)
    search = dataset.search("x >= 0")
    search.join()
    found = dict(dataset.rows(search.found[:], ["x"]))
    assert [row["x"] for row in found.values()] == [
        row["x"] for row in rows(dataset, *range(100)) if not isinstance(row, Problem)
    ]
    assert sum(isinstance(row, Problem) for row in rows(dataset, *range(100))) == 1


def test_records_that_are_no_messages_are_shown_as_bytes(browsed: Any, tmp_path: Path) -> None:
    with tfr.RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write(b"\xff\xfeany bytes")
    dataset = browsed(tmp_path / "a.tfrecord")
    assert dataset.problem
    assert rows(dataset, 0)[0][dataset.schema.names[0]] == b"\xff\xfeany bytes"


def test_a_summary_says_what_it_is_of(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(9000), "word": ["a", "b", None] * 3000}, tmp_path / "a.tfrecord")
    dataset = browsed(tmp_path / "a.tfrecord")
    dataset.map.find(9000)
    sample = dataset.summary("word", "", all_rows=False)
    sample.join()
    assert sample.words == "a sample of 2,000 of 9,000 rows, from 50 places"
    whole = dataset.summary("word", "x < 600", all_rows=True)
    whole.join()
    assert whole.words == "all 600 rows that meet the condition"
    assert whole.statistics.summary.nulls == 200
    assert whole.statistics.counts.counts == {"a": 200, "b": 200}


def test_a_dataset_that_was_replaced_is_opened_again(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    dataset = browsed(tmp_path / "a.tfrecord")
    assert rows(dataset, 0)[0] == {"x": 1}
    tfr.write_tfrecord({"y": ["new", "rows", "here"]}, tmp_path / "a.tfrecord")
    dataset.reload()
    assert rows(dataset, 2)[0] == {"y": "here"}


def test_rows_that_were_appended_are_there_after_a_reload(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "growing", mode="append")
    dataset = browsed(f"{tmp_path}/growing/")
    tfr.write_tfrecord({"x": [3]}, f"{tmp_path}/growing/", mode="append")
    dataset.reload()
    assert rows(dataset, 2)[0] == {"x": 3}


def test_a_summary_counts_rows_behind_damage_once(browsed: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(100)}, path, embed_schema=False)
    data = bytearray(path.read_bytes())
    data[-20] ^= 1
    path.write_bytes(data)
    summary = browsed(path).summary("x", "", all_rows=True)
    summary.join()
    assert (summary.statistics.records, summary.error) == (99, "")


def test_a_dataset_with_a_filter_shows_what_meets_it(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": np.arange(100)}, tmp_path / "a.tfrecord")
    dataset = browsed(tfr.dataset(tmp_path / "a.tfrecord").filter("x < 10"))
    assert dataset.map.is_filtered
    dataset.search("x > 5").join()
    assert dataset.search("x > 5").found[:] == [6, 7, 8, 9]
    summary = dataset.summary("x", "", all_rows=False)
    summary.join()
    assert summary.words == "all 10 rows that meet the condition"


def test_a_part_of_the_rows_cannot_be_browsed(browsed: Any, tmp_path: Path) -> None:
    tfr.write_tfrecord({"x": [1, 2]}, tmp_path / "a.tfrecord")
    with pytest.raises(ValueError, match="without limit"):
        browsed(tfr.dataset(tmp_path / "a.tfrecord").limit(1))


def test_a_damaged_first_record_does_not_hide_the_others(browsed: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    tfr.write_tfrecord({"x": np.arange(10)}, path, embed_schema=False)
    data = bytearray(path.read_bytes())
    data[14] ^= 1
    path.write_bytes(data)
    dataset = browsed(path)
    assert isinstance(rows(dataset, 0)[0], Problem)
    assert rows(dataset, 3)[0] == {"x": 3}
