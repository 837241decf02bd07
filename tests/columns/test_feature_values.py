"""Tests of columns/feature_values.py: values by record, without a description."""

from __future__ import annotations

import numpy as np
import pytest

import tfrecord_io as tfr
from records import blobs, example, floats, int64s
from tfrecord_io.columns.feature_values import FeatureBatch


def test_values_and_their_number_by_record() -> None:
    payloads = [example(x=int64s(1, 2), t=blobs(b"a")), example(t=blobs()), example(x=int64s(3))]
    batch = FeatureBatch.decode(payloads, {"x": "int64", "t": "string", "none": "float32"})
    assert batch.fault is None
    x, none = batch.columns["x"], batch.columns["none"]
    assert (x.values.tolist(), x.counts.tolist(), x.present.tolist()) == ([1, 2, 3], [2, 0, 1], [True, False, True])
    assert (x.starts.tolist(), x.records.tolist()) == ([0, 2, 2], [0, 0, 2])
    assert batch.columns["t"].values.tolist() == [b"a"]
    assert (none.values.dtype, none.counts.tolist(), none.present.any()) == (np.float32, [0, 0, 0], False)


def test_records_before_a_fault_are_decoded() -> None:
    batch = FeatureBatch.decode([example(x=int64s(1)), example(x=floats(0.5)), example(x=int64s(2))], {"x": "int64"})
    assert batch.columns["x"].values.tolist() == [1]
    assert isinstance(batch.fault, tfr.errors.FeatureTypeError)
    assert (batch.fault.record, batch.fault.feature, batch.fault.offset) == (1, "x", None)


def test_the_first_bad_record_is_named() -> None:
    batch = FeatureBatch.decode([example(x=int64s(1)), example(x=int64s(1, 2)), example()], {"x": "int64"})
    column = batch.columns["x"]
    with pytest.raises(tfr.errors.DecodeError, match="expected 1 values, got 2") as caught:
        column.refuse_records(column.counts != 1, 1)
    assert (caught.value.record, caught.value.feature) == (1, "x")
