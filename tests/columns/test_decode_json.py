"""JSON of Examples becomes the Example that protobuf's JSON mapping defines, or an error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf import json_format
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr

TEXTS = json.loads((Path(__file__).parents[1] / "data" / "json_examples.json").read_text())

VALUES = st.one_of(
    st.lists(st.binary(max_size=9), max_size=3).map(tfr.io.bytes_feature),
    st.lists(st.floats(width=32), max_size=3).map(tfr.io.float_feature),
    st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(tfr.io.int64_feature),
    st.just(tfr.train.Feature()),
)


@given(
    st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), VALUES, max_size=4), st.booleans()
)
def test_what_protobuf_prints_is_read(features: dict[str, Any], keep_names: bool) -> None:
    example = tfr.train.Example(features=tfr.train.Features(feature=features))
    text = json_format.MessageToJson(example, preserving_proto_field_name=keep_names)
    decoded = tfr.train.Example.FromString(tfr.io.decode_json_example(text))
    assert json_format.MessageToJson(decoded, sort_keys=True) == json_format.MessageToJson(example, sort_keys=True)


@pytest.mark.parametrize("text", TEXTS["accepted"])
def test_valid_forms(text: str) -> None:
    assert tfr.io.decode_json_example(text) == tfr.io.decode_json_example(text.encode())


def test_values_of_each_type() -> None:
    values = {"i": {"int64List": {"value": ["-9223372036854775808", 1e3, "5.0"]}}, "none": None, "b": {}}
    values |= {"f": {"float_list": {"value": ["NaN", "-Infinity", 0.1]}}, "s": {"bytesList": {"value": ["-_8", ""]}}}
    decoded = tfr.decode_example(tfr.io.decode_json_example(json.dumps({"features": {"feature": values}})))
    assert decoded["i"].tolist() == [-(2**63), 1000, 5]
    assert np.array_equal(decoded["f"], np.float32([np.nan, -np.inf, 0.1]), equal_nan=True)
    assert decoded["s"].tolist() == [b"\xfb\xff", b""]
    assert decoded["none"] is decoded["b"] is None


@pytest.mark.parametrize("text", TEXTS["refused"] + TEXTS["refused_though_tensorflow_accepts"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(tfr.errors.DecodeError):
        tfr.io.decode_json_example(text)


def test_errors_name_the_feature() -> None:
    with pytest.raises(tfr.errors.DecodeError, match="expected an integer, got") as caught:
        tfr.io.decode_json_example('{"features": {"feature": {"x": {"int64List": {"value": [1.5]}}}}}')
    assert caught.value.feature == "x"


def test_arrays_keep_their_shape() -> None:
    decoded = tfr.io.decode_json_example([["{}", b"{}"], ["{}", "{}"]])
    assert decoded.shape == (2, 2)
    assert tfr.decode_example(decoded[0, 0]) == {}
    assert tfr.io.decode_json_example([]).shape == (0,)
    with pytest.raises(TypeError, match="str or bytes, got int"):
        tfr.io.decode_json_example(3)
