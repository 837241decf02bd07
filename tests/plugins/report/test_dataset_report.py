"""`report`: the file it writes, and its result."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest

import tfrecord_io as tfr


@pytest.fixture
def words(tmp_path: Path) -> Path:
    tfr.write_tfrecord({"n": [1, 2, 3], "word": ["a", "b", None]}, tmp_path / "words.tfrecord")
    return tmp_path / "words.tfrecord"


def test_the_page_is_written(words: Path, tmp_path: Path) -> None:
    report = tfr.report(words, tmp_path / "out.html")
    assert report.path == str(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text("utf-8") == report.html
    assert report.html.startswith("<!doctype html>")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "words.tfrecord"]


def test_without_out_nothing_is_written(words: Path, tmp_path: Path) -> None:
    assert tfr.report(words).path is None
    assert [p.name for p in tmp_path.iterdir()] == ["words.tfrecord"]


def test_overwrite_as_in_the_other_writers(words: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.html"
    out.write_text("old")
    with pytest.raises(FileExistsError):
        tfr.report(words, out, mode="error")
    assert out.read_text() == "old"
    tfr.report(words, out)
    assert out.read_text() != "old"


def test_an_error_leaves_the_old_page(words: Path, tmp_path: Path) -> None:
    content = bytearray(words.read_bytes())
    content[-3] ^= 1
    words.write_bytes(content)
    out = tmp_path / "out.html"
    out.write_text("old")
    with pytest.raises(tfr.errors.CorruptRecordError):
        tfr.report(words, out)
    assert out.read_text() == "old"
    with pytest.warns(tfr.errors.DamagedDataWarning):
        report = tfr.report(tfr.dataset(words, on_error="skip"), out)
    assert report.statistics[0].sampling.records == 2
    assert report.statistics[0].sampling.skipped == 1
    with pytest.warns(tfr.errors.StoppedEarlyWarning):
        report = tfr.report(tfr.dataset([words, words], on_error="stop"))
    assert report.statistics[0].sampling.records == 2


def test_data_is_not_overwritten_by_mistake(words: Path) -> None:
    before = words.read_bytes()
    with pytest.raises(ValueError, match=r"ends in \.html"):
        tfr.report(words, words)
    assert words.read_bytes() == before


def test_what_can_be_read_only_once_is_refused(words: Path) -> None:
    with pytest.raises(TypeError, match="any number of times"):
        tfr.report(io.BytesIO(words.read_bytes()))


def test_the_page_is_written_to_a_file_object(words: Path) -> None:
    out = io.BytesIO()
    report = tfr.report([words, words], out)
    assert out.getvalue().decode() == report.html
    assert report.statistics[0].sampling.records == 6


def test_statistics_as_json(words: Path) -> None:
    report = tfr.report(words, compare=words)
    values = json.loads(json.dumps(report.to_dict()))
    assert [feature["name"] for feature in values["features"]] == ["n", "word"]
    assert values["features"][0]["numbers"]["mean"] == 2
    assert sum(values["features"][0]["numbers"]["histogram"]["counts"]) == 3
    assert values["features"][1]["counts"]["top"] == [{"value": "a", "count": 1}, {"value": "b", "count": 1}]
    assert values["drift"][0]["distance"] == 0
    assert values["sampling"]["complete"]


def test_it_prints_as_a_table(words: Path) -> None:
    assert str(tfr.report(words)).splitlines() == [
        "2 features, all 3 records",
        "feature  type    presence  mean",
        "n        int64   100 %     2",
        "word     string  66.7 %",
    ]
    assert "L-infinity" in str(tfr.report(words, compare=words))


def test_notebooks_show_the_page_in_a_frame(words: Path) -> None:
    shown = tfr.report(words)._repr_html_()
    assert shown.startswith('<iframe srcdoc="&lt;!doctype html&gt;')
    assert "sandbox" in shown
    assert shown.count("<") == 2


def test_keywords_are_those_of_readers(words: Path) -> None:
    assert [f.name for f in tfr.report(words, columns=["n"]).statistics[0].features] == ["n"]
    assert tfr.report(tfr.dataset(words, limit=1)).statistics[0].sampling.records == 1
    with pytest.raises(TypeError, match="sample_record"):
        tfr.report(words, sample_record=3)


@pytest.mark.parametrize("type_", [pa.timestamp("us"), pa.timestamp("ns", "UTC"), pa.duration("s")], ids=str)
def test_the_last_time_of_a_type_has_a_page(tmp_path: Path, type_: pa.DataType) -> None:
    """Databases use the last time for infinity; no float is as large."""
    tfr.write_tfrecord({"x": pa.array([0, 2**63 - 1, 1 - 2**63]).view(type_)}, tmp_path / "a.tfrecord")
    assert tfr.report(tmp_path / "a.tfrecord").html


def test_dictionaries_of_lists_that_are_all_null_have_a_page(tmp_path: Path) -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.array([[1]]))
    tfr.write_tfrecord(pa.table({"x": column}), tmp_path / "a.tfrecord")
    assert tfr.report(tmp_path / "a.tfrecord").html
