"""Fields of messages of any type."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from tfrecord_io.plugins.browse.wire_fields import fields_of


@given(st.dictionaries(st.text(max_size=5), st.lists(st.integers(-(2**63), 2**63 - 1), max_size=5), max_size=5))
def test_fields_are_those_of_protobuf(features: dict[str, list[int]]) -> None:
    example = tfr.train.Example()
    for name, values in features.items():
        example.features.feature[name].int64_list.value.extend(values)
    found: dict[str, bytes] = {}
    for number, content in fields_of(memoryview(example.SerializeToString())):
        assert number == 1
        for _, entry in fields_of(content):
            parts = dict(fields_of(entry))
            found[bytes(parts.get(1, b"")).decode()] = bytes(parts.get(2, b""))
    assert found.keys() == features.keys()
    for name, content in found.items():
        assert list(tfr.train.Feature.FromString(content).int64_list.value) == features[name]


def test_fixed_numbers_and_unknown_fields_are_fields() -> None:
    assert fields_of(b"\x0d\x01\0\0\0\x11\x02\0\0\0\0\0\0\0\xa2\x06\x01x") == [(1, 1), (2, 2), (100, b"x")]


@given(st.binary(max_size=40))
def test_other_bytes_are_an_error_at_most(data: bytes) -> None:
    with suppress(ValueError, IndexError):
        fields_of(data)
