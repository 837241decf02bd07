"""An inferred schema with the evidence for it: what the records show of each feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa

from tfrecord_io.base import Summary, check_keywords, counted, printable
from tfrecord_io.bytes import ShapeSource
from tfrecord_io.columns.schema.column_features import FEATURE_LIST, LIST
from tfrecord_io.columns.schema.field import Field
from tfrecord_io.columns.schema.field_makers import list_, scalar, sequence
from tfrecord_io.columns.schema.inferred_type import KindCount
from tfrecord_io.columns.schema.schema import Schema
from tfrecord_io.columns.schema.tensor_types import element_and_shape, encoding_rules, is_any_tensor
from tfrecord_io.store import RecordRef


class Evidence(NamedTuple):
    """Evidence of records about one feature."""

    kind: str = "none"  # "int64", "float", "bytes", or "none" if no record has values
    records: int = 0  # the number of records that have the feature with values (or the feature list)
    least: int | None = None  # the lowest number of values (steps) in one of them; None if there are none
    most: int | None = None  # the highest
    text: bool = False  # all bytes values are text
    part: str = "context"  # "context" or "feature_list"
    listed: RecordRef | None = None  # the first record because of which it is a list
    binary: RecordRef | None = None  # and because of which it is binary
    # The other kinds of values in the feature: how many records have them, which do not fit the schema, and the first
    # of these.
    others: tuple[KindCount, ...] = ()


class InferredSchema(Schema):
    """A `Schema` and the evidence for it.

    Attributes
    ----------
    evidence : mapping of str to Evidence
        By feature.
    records : int
        The number of records that were examined.
    suggestions : tuple of Suggestion
        How columns of bytes can be read as the images, tensors or raw numbers that they are.
    """

    __slots__ = ("evidence", "records", "suggestions")
    evidence: Mapping[str, Evidence]
    records: int
    suggestions: tuple[Any, ...]  # of read.suggest_types, on a higher floor

    def __init__(
        self,
        fields: Iterable[Field] = (),
        evidence: Mapping[str, Evidence] | None = None,
        records: int = 0,
        suggestions: Iterable[Any] = (),
    ) -> None:
        super().__init__(fields)
        object.__setattr__(self, "suggestions", tuple(suggestions))
        object.__setattr__(self, "evidence", MappingProxyType(dict(evidence or {})))
        object.__setattr__(self, "records", records)

    @check_keywords
    def strict(self, schema: Schema | None = None) -> Schema:
        """This schema, or `schema` of the same records, as strict as TensorFlow's fixed-length features.

        Every feature that all records have is required, and a list that has n values in all records has the length n.

        >>> import pyarrow as pa
        >>> field = Field("x", pa.list_(pa.int64()))
        >>> InferredSchema([field], {"x": Evidence("int64", records=2, least=3, most=3)}, records=2).strict()["x"]
        Field(x: fixed_size_list<item: int64>[3], required)
        """
        schema = self if schema is None else schema
        fields = [replace(self._fix_length(f), required=self._always_has(f.feature)) for f in schema]
        return Schema(fields, schema.metadata)

    def _fix_length(self, f: Field) -> Field:
        """Give a list the fixed length that its values have in all records; else leave the field as it is."""
        t, type_ = pa.types, f.type
        is_list = t.is_list(type_) or t.is_large_list(type_)
        if not is_list or t.is_nested(type_.value_type) or is_any_tensor(type_.value_type):
            return f
        seen = self.evidence.get(f.feature)
        is_plain = f.part != FEATURE_LIST and f.encoding == LIST and f.shape in (None, (None,)) and f.default is None
        if not is_plain or seen is None or not self._always_has(f.feature) or not seen.least or seen.least != seen.most:
            return f
        return replace(f, type=pa.list_(type_.value_type, seen.most), shape=None)

    def with_companions(self, schema: Schema) -> Schema:
        """`schema`, with the companion features after each tensor of raw bytes whose records have them."""
        fields = []
        for f in schema:
            fields.append(f)
            if not encoding_rules(f.encoding).companions or not is_any_tensor(f.value):
                continue
            shape, dtype = ShapeSource.companions(f.feature)
            if not self.evidence.keys() >= {shape, dtype} or {shape, dtype} & set(schema.names):
                continue

            rank = len(element_and_shape(f.tensor)[1])
            seen = self.evidence[shape]
            fixed = rank > 0 and (f.part == FEATURE_LIST or (f.required and seen.least == seen.most == rank))
            for name, companion in {shape: list_("int64", rank if fixed else None), dtype: scalar("binary")}.items():
                field = sequence(companion) if f.part == FEATURE_LIST else companion
                fields.append(replace(field.named(name), required=self._always_has(name)))
        return Schema(fields, schema.metadata)

    def _always_has(self, feature: str) -> bool:
        seen = self.evidence.get(feature)
        return seen is not None and seen.records == self.records > 0

    def __repr__(self) -> str:
        return self._summary().text()

    def _summary(self) -> Summary:
        rows = []
        for f in self:
            seen = self.evidence.get(f.feature, Evidence())
            values = "" if seen.least is None else str(seen.least)
            values += "" if seen.least == seen.most else f"–{seen.most}"
            why = [f"list: {seen.listed.text(None)}"] if seen.listed else []
            is_folded = encoding_rules(f.encoding).companions
            why += [f"not text: {seen.binary.text(None)}"] if seen.binary and not is_folded else []
            why += [" and ".join(map(printable, ShapeSource.companions(f.feature)))] if is_folded else []
            why += [
                f"{count.kind.description} in {counted(count.records, 'record')}: {count.first.text(None)}"
                for count in seen.others
            ]
            text = "yes" if seen.text and not is_folded else ""
            kind = seen.kind if seen.kind == "none" else f"{seen.kind}_list"
            rows.append((printable(f.column), f.type_name, kind, str(seen.records), values, text, "; ".join(why)))
        heads = ("column", "type", "feature type", "records", "values", "text", "evidence")
        title = f"Schema inferred from {counted(self.records, 'record')}"
        if any(seen.others for seen in self.evidence.values()):
            title += ", without those whose values have another feature type"
        lines = [line for suggestion in self.suggestions for line in suggestion.lines()]
        return Summary(title, heads, rows, lines, paths=("evidence",))

    def __reduce__(self) -> tuple[object, ...]:
        return InferredSchema, (self.fields, dict(self.evidence), self.records, self.suggestions)
