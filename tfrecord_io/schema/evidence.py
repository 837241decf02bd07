"""An inferred schema that says why: what was seen of each feature."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from tfrecord_io.errors import printable
from tfrecord_io.plain_table import plain_table
from tfrecord_io.schema.fields import Field, Schema
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.types import RAW, companions
from tfrecord_io.schema.unify import Where


@dataclass(frozen=True, slots=True)
class Evidence:
    """What records show of one feature.

    Attributes
    ----------
    kind : str
        "int64", "float", "bytes", or "none" where no record has values.
    records : int
        Records that have the feature with a kind (a feature list: that have it).
    least, most : int or None
        Fewest and most values (steps) in one of them; None where there are none.
    text : bool
        All bytes values are text.
    part : str
        "context" or "feature_list".
    listed, binary : Where or None
        The first record that made it a list, and that made it binary.
    """

    kind: str = "none"
    records: int = 0
    least: int | None = None
    most: int | None = None
    text: bool = False
    part: str = "context"
    listed: Where | None = None
    binary: Where | None = None


class InferredSchema(Schema):
    """A `Schema` and the evidence for it.

    Attributes
    ----------
    evidence : mapping of str to Evidence
        By feature.
    records : int
        That were looked at.
    """

    __slots__ = ("evidence", "records")
    evidence: Mapping[str, Evidence]
    records: int

    def __init__(self, fields: Iterable[Field] = (), evidence: Mapping[str, Evidence] | None = None, records: int = 0) -> None:
        super().__init__(fields)
        object.__setattr__(self, "evidence", MappingProxyType(dict(evidence or {})))
        object.__setattr__(self, "records", records)

    def strict(self) -> Schema:
        """The schema that requires each feature which all records had: what TensorFlow's fixed-length features ask."""
        had = {name for name, seen in self.evidence.items() if seen.records == self.records > 0}
        return Schema([replace(f, required=f.feature in had) for f in self], self.metadata)

    def __repr__(self) -> str:
        rows = []
        for f in self:
            seen = self.evidence.get(f.feature, Evidence())
            values = "" if seen.least is None else str(seen.least) if seen.least == seen.most else f"{seen.least}–{seen.most}"
            why = [f"list: {seen.listed}"] if seen.listed else []
            is_folded = f.encoding == RAW
            why += [f"no text: {seen.binary}"] if seen.binary and not is_folded else []
            why += [" and ".join(printable(each) for each in companions(f.feature))] if is_folded else []
            name = f.type_name if is_any_tensor(f.type) else str(f.type)
            text = "yes" if seen.text and not is_folded else ""
            rows.append((printable(f.column), name, seen.kind, str(seen.records), values, text, "; ".join(why)))
        heads = ("column", "type", "kind", "records", "values", "text", "because of")
        return f"Schema inferred from {self.records} records\n" + plain_table(heads, rows)

    def __reduce__(self) -> tuple[object, ...]:
        return InferredSchema, (self.fields, dict(self.evidence), self.records)
