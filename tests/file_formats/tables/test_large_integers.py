"""Integers that a float64 would round: the neighbours of int64's limits."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tfrecord_io as tfr
from tfrecord_io.file_formats.tables.large_integers import may_be_rounded, refuse_rounding


@pytest.mark.parametrize("text", [str(2**63), str(-(2**63) - 1), "+" + "9" * 5000])
def test_integers_beyond_int64_are_refused(text: str) -> None:
    assert may_be_rounded(pa.array([[float(text)], None], pa.list_(pa.float64())))
    with pytest.raises(tfr.DecodeError, match="does not fit int64") as caught:
        refuse_rounding(["1", text], "x", pa.list_(pa.float64()), "a.jsonl")
    assert (caught.value.feature, caught.value.got) == ("x", text)


def test_limits_of_int64_and_floats_pass() -> None:
    refuse_rounding([str(2**63 - 1), str(-(2**63)), "0" * 30], "x", pa.float64(), "a.csv")
    refuse_rounding([str(2**63), "1e3"], "x", pa.float64(), "a.csv")
