"""What versions of protobuf do not say of a descriptor themselves."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from random_messages import message_type
from tfrecord_io.columns.arrow.messages.message_tree import is_closed, is_packed


class Older:
    """A descriptor without attributes that came later."""

    def __init__(self, descriptor: Any) -> None:
        self._descriptor = descriptor

    def __getattr__(self, name: str) -> Any:
        if name in ("is_closed", "is_packed"):
            raise AttributeError(name)
        return getattr(self._descriptor, name)


@pytest.mark.parametrize("name", ["kinds.All", "legacy.Old"])
def test_the_syntax_tells_what_descriptors_of_older_versions_do_not(name: str) -> None:
    descriptor = message_type(name).descriptor
    stated = descriptor_pb2.DescriptorProto()
    descriptor.CopyToProto(stated)
    numbers = {*range(1, 9), *range(13, 19)}  # field types that can be packed
    found = 0
    for field, own in zip(descriptor.fields, stated.field, strict=True):
        if field.enum_type is not None:
            assert is_closed(Older(field.enum_type)) == is_closed(field.enum_type) == (name == "legacy.Old")
        if own.label == own.LABEL_REPEATED:
            by_default = name == "kinds.All" and own.type in numbers
            expected = own.options.packed if own.options.HasField("packed") else by_default
            assert is_packed(Older(field)) == is_packed(field) == expected
            found += expected
    assert found
