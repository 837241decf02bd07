"""The warnings about a DataFrame that is not read back as it is."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import tfrecord_io as tfr


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["a", 1], "1 as '1'; make all labels text"),
        (pd.MultiIndex.from_tuples([("a", 1), ("b", "c")]), r"\('a', 1\) as \('a', '1'\); "),
        (pd.Index([("a", 1), ("b", 2)], tupleize_cols=False), r"\('a', 1\) as .* and 1 more; "),
        ([datetime.date(2020, 1, n) for n in (1, 2)], r"datetime.date\(2020, 1, 1\) as .* and 1 more; "),
        (pd.to_timedelta([1, 2], unit="s"), "Timedelta.* as .* and 1 more; "),
        (pd.CategoricalIndex([1, 2]), "1 as '1' and 1 more; "),
    ],
    ids=str,
)
def test_labels_that_become_text_are_named(tmp_path: Path, labels: Any, text: str) -> None:
    frame = pd.DataFrame([[1, 2]], columns=labels)
    with pytest.warns(tfr.errors.SchemaWarning, match=rf"labels of columns .*: {text}"):
        tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    assert not tfr.read_tfrecord(tmp_path / "a.tfrecord").columns.equals(frame.columns)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("labels", [["a", "b"], [1, 2], [None, "a"], pd.CategoricalIndex(["a", "b"])], ids=str)
def test_other_labels_need_no_word(tmp_path: Path, labels: Any) -> None:
    frame = pd.DataFrame([[1, 2]], columns=labels)
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    assert tfr.read_tfrecord(tmp_path / "a.tfrecord").columns.equals(frame.columns)
    tfr.write_tfrecord(frame[[]], tmp_path / "b.tfrecord")


@pytest.mark.filterwarnings("error")
def test_no_word_about_labels_of_a_frame_that_is_refused(tmp_path: Path) -> None:
    frame = pd.DataFrame([[1, 2]] * 2, columns=pd.Index(["a", 1]), index=pd.Index([b"a", "b"]))
    with pytest.raises(tfr.errors.EncodeError, match="bytes, str are mixed types"):
        tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")


def test_integers_in_levels_with_missing_values_are_exact(tmp_path: Path) -> None:
    """pandas gives the values of such a level as floats."""
    levels = [["a", "b", "c"], [2**53 + 1, None, 3], [1, 2, 2]]
    frame = pd.DataFrame({"x": [1, 2, 3]}, index=pd.MultiIndex.from_arrays(levels, names=["k", None, "n"]))
    tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    index = tfr.read_tfrecord(tmp_path / "a.tfrecord").index
    assert index.names == frame.index.names
    assert index.get_level_values(1).tolist() == [2**53 + 1, pd.NA, 3]
    text = "object" if pd.__version__.startswith("2.") else "str"
    assert [str(dtype) for dtype in index.dtypes] == [text, "Int64", "int64"]


@pytest.mark.parametrize(("axis", "name"), [("index", float("nan")), ("columns", pd.NaT)])
def test_names_that_pandas_does_not_describe_are_named(tmp_path: Path, axis: str, name: Any) -> None:
    frame = pd.DataFrame({"x": [1, 2]}).rename_axis(**{axis: name})
    advice = rf"has the name (nan|NaT); rename it, for example with df\.rename_axis\({axis}='{axis}'\)"
    with pytest.raises(tfr.errors.EncodeError, match=f"the {axis} of the DataFrame {advice}"):
        tfr.write_tfrecord(frame, tmp_path / "a.tfrecord")
    tfr.write_tfrecord(frame.rename_axis(**{axis: axis}), tmp_path / "a.tfrecord")
