"""The demonstration beside TensorFlow: both programs give the same arrays."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

DEMOS = Path(__file__).parents[2] / "examples" / "demos"


def test_both_programs_give_the_same_arrays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("PIL")
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(DEMOS / "meadow.py"), run_name="__main__")
    expected, actual = (
        runpy.run_path(str(DEMOS / f"with_{name}.py"))["arrays"] for name in ("tensorflow", "tfrecord_io")
    )
    assert expected.keys() == actual.keys()
    for name in expected:
        assert actual[name].dtype == expected[name].dtype
        np.testing.assert_array_equal(actual[name], expected[name])
