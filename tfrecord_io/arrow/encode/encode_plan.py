"""The plan of a write: which features the columns of a schema become, and in which encoding."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tfrecord_io.errors import EncodeError, FeatureNotFoundError, PrecisionWarning, printable, warn
from tfrecord_io.schema.leaf import RAW, Leaf, encoding_of, is_marked_feature_list, leaves, step_field, with_encoding
from tfrecord_io.schema.tensor_encodings import TENSOR_ENCODINGS, encoding_rules
from tfrecord_io.schema.tensor_types import is_any_tensor
from tfrecord_io.schema.types import UnsupportedType, is_list_like, plain_kind, relist, value_type

_NAMES_IN_WARNING = 10


class Rounding:
    """Counts, over all batches of a write, the floats that a narrower type does not hold: mostly float64 in float32."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._halves: set[str] = set()  # features that were rounded to float16
        self._lock = threading.Lock()

    def add(self, feature: str, count: int, dtype: str = "float32") -> None:
        """Note `count` values of `feature`, rounded to `dtype`; batches may be encoded by several threads."""
        with self._lock:
            self.counts[feature] += count
            if dtype == "float16":
                self._halves.add(feature)

    def merge(self, other: Rounding) -> None:
        """Add what `other` has counted."""
        self.counts.update(other.counts)
        self._halves |= other._halves

    def to_dict(self) -> dict[str, Any]:
        """As a value of JSON; `of` reads it."""
        return {"counts": dict(self.counts), "float16": sorted(self._halves)}

    @classmethod
    def of(cls, document: dict[str, Any]) -> Rounding:
        rounding = cls()
        rounding.counts.update({str(name): int(count) for name, count in document["counts"].items()})
        rounding._halves.update(map(str, document["float16"]))
        return rounding

    def __reduce__(self) -> tuple[Any, ...]:
        return Rounding, (), (self.counts, self._halves)

    def __setstate__(self, state: tuple[Counter[str], set[str]]) -> None:
        self.counts, self._halves = state

    def warn(self) -> None:
        """Issue the one PrecisionWarning of a write, if a value was rounded."""
        if not self.counts:
            return
        named = [f"'{printable(name)}' ({count} values)" for name, count in self.counts.most_common(_NAMES_IN_WARNING)]
        more = len(self.counts) - len(named)
        text = ", ".join(named) + (f" and {more} more columns" if more else "")
        advice = (
            'a TFRecord has no float64: float64="raw" keeps the bits, float64="round" accepts the rounding silently'
        )
        if self._halves:
            warn(f"floats were rounded to the schema's float16 or to float32 in {text}", PrecisionWarning)
            return
        warn(f"float64 values were rounded to float32 in {text}; {advice}", PrecisionWarning)


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A schema compiled for writing."""

    schema: pa.Schema  # of the input; the metadata of each field states its encoding, see `embedded_schema`
    columns: tuple[tuple[Leaf, ...], ...]  # the leaves of each column, in order; of a feature list those of one step
    in_steps: tuple[bool, ...]  # which columns are feature lists
    float64: str | None = None  # for float64 values that are written as float32: None, "round" or "error"
    rounding: Rounding = field(default_factory=Rounding)  # filled by `encode_columns`

    @property
    def leaves(self) -> Iterator[Leaf]:
        """All leaves, in the order of the features."""
        return (leaf for column in self.columns for leaf in column)


def plan_writing(
    schema: pa.Schema,
    *,
    column_encoding: Mapping[str, str] | None = None,
    float64: str | None = None,
    sequence: bool = False,
) -> WritePlan:
    """Decide how each column of the batches to come is written.

    Parameters
    ----------
    schema : pyarrow.Schema
        A field that was read from raw bytes says so in its metadata and is written raw again.
    column_encoding : mapping of str to str, optional
        Tensor encodings by column or feature name; the name of a struct column means all of its children.
        Tensors are raw by default.
    float64 : None, "round", "error" or "raw"
        "raw" writes every float64 column raw for which neither `column_encoding` nor its metadata says otherwise.
    sequence : bool
        For SequenceExamples: lists of lists, and lists whose field says so, become feature lists.

    Raises
    ------
    EncodeError
        A column cannot be stored in a TFRecord, or two columns become the same feature.
    FeatureNotFoundError
        `column_encoding` names a column that is not there.
    """
    asked = dict(column_encoding or {})
    try:
        annotates = bool(asked) or float64 == RAW
        fields = [
            column
            if not annotates and plain_kind(column.type) is not None and not column.metadata
            else _annotate(column, column.name, asked, None, float64 == RAW)
            for column in schema
        ]
        if asked:
            reason = "column_encoding= names a column that the data does not have"
            raise FeatureNotFoundError(reason, feature=next(iter(asked)))
        if not sequence:
            _refuse_feature_lists(fields)
        steps = [step_field(column) if sequence else None for column in fields]
        columns = tuple(tuple(leaves(step or column)) for step, column in zip(steps, fields, strict=True))
    except UnsupportedType as error:
        raise EncodeError(error.reason, feature=error.feature, advice=error.advice) from None
    except UnicodeDecodeError as error:
        raise EncodeError("a column's name is not UTF-8", advice="rename it") from error
    _refuse_collisions(fields, columns)
    in_steps = tuple(step is not None for step in steps)
    annotated = pa.schema(fields, metadata=schema.metadata)
    return WritePlan(annotated, columns, in_steps, None if float64 == RAW else float64)


def _annotate(field: pa.Field, feature: str, asked: dict[str, str], above: str | None, raw_float64: bool) -> pa.Field:
    """Put the encoding that the caller, the metadata or a struct above asks for into the metadata of the leaves."""
    encoding = asked.pop(feature, None) or encoding_of(field) or above
    if pa.types.is_struct(field.type):
        children = [_annotate(child, f"{feature}/{child.name}", asked, encoding, raw_float64) for child in field.type]
        return with_encoding(field.with_type(pa.struct(children)), None)
    if is_list_like(field.type) and pa.types.is_struct(field.type.value_type):
        child = _annotate(field.type.value_field, feature, asked, encoding, raw_float64)
        return with_encoding(field.with_type(relist(field.type, child)), None)
    holds_tensors = _holds_tensors(field.type)
    if encoding is None:
        encoding = RAW if holds_tensors or (raw_float64 and pa.types.is_float64(value_type(field.type))) else None
    elif holds_tensors and encoding in TENSOR_ENCODINGS and encoding_rules(encoding).adaptive:
        encoding = RAW
    return with_encoding(field, encoding)


def _holds_tensors(type_: pa.DataType) -> bool:
    """Whether the values are tensors: of a column, or of the steps of a feature list."""
    while is_list_like(type_) or pa.types.is_run_end_encoded(type_):
        type_ = type_.value_type
    return is_any_tensor(type_)


def _refuse_feature_lists(fields: list[pa.Field]) -> None:
    """Refuse columns that are declared as feature lists: an Example would have the values in another part."""
    for column in fields:
        if is_marked_feature_list(column):
            reason = "the column is declared as a feature list, which an Example does not have"
            advice = 'write it with record_type="sequence_example", or declare it as a list'
            raise EncodeError(reason, feature=column.name, advice=advice)


def _refuse_collisions(fields: list[pa.Field], columns: tuple[tuple[Leaf, ...], ...]) -> None:
    owners: dict[str, str] = {}
    for column, parts in zip(fields, columns, strict=True):
        for leaf in parts:
            for name in (leaf.feature, *leaf.companions):
                if name in owners:
                    first, second = printable(owners[name]), printable(column.name)
                    reason = f"the columns '{first}' and '{second}' would both be written as this feature"
                    raise EncodeError(reason, feature=name, advice="rename one of them")
                owners[name] = column.name
