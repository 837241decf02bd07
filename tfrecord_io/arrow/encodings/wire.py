"""The encoding "wire" of declared tensors: "raw" where a record has bytes, "list" where it has numbers."""

from __future__ import annotations

from tfrecord_io.arrow.encodings.encoding import TensorEncoding, tensor_encoding
from tfrecord_io.arrow.encodings.values import Values, number_kind
from tfrecord_io.format.dtypes import Element
from tfrecord_io.format.kinds import Kind, Layout


class Wire(Values):
    """Written as "list"; plain columns are, tensors are written "raw"."""

    name = "wire"
    companions = True
    adaptive = True
    layout = Layout.ANY

    def kind(self, element: Element) -> Kind:
        return Kind.NONE

    def for_kind(self, kind: Kind, element: Element) -> TensorEncoding:
        return tensor_encoding("raw" if kind is Kind.BYTES or number_kind(element) is None else "list")
