"""Evidence of records about a column, and how two observations are joined.

The observations of a column form a lattice: null < scalar < list, text < binary, one step value < many. `join` is
associative, commutative and idempotent (an empty list has no kind: where all are empty, the kind is that of the first
record's list), and `Observation()` (never seen) is its identity, so threads, block sizes and
the order of files cannot change an inferred type. Two feature types in one column have no join.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import pyarrow as pa

from tfrecord_io.base import printable
from tfrecord_io.bytes import Kind, Layout
from tfrecord_io.errors import SchemaError


class RecordRef(NamedTuple):
    """A record of a dataset, as evidence for an observation; `file` is the file's number in the order of reading."""

    path: str | None
    record: int
    file: int = 0

    def __str__(self) -> str:
        return self.text()

    def text(self, limit: int = 200) -> str:
        """The path, in at most `limit` characters, and the number."""
        return f"record {self.record}" if self.path is None else f"{printable(self.path, limit)} record {self.record}"

    def order(self) -> tuple[int, int, str]:
        return self.file, self.record, self.path or ""


class Observation(NamedTuple):
    """Evidence of some records about one column."""

    kind: Kind = Kind.NONE  # NONE if no values and no lists were seen
    layout: Layout = Layout.NULL  # NULL (in no record), SCALAR (one value in each record that has the feature) or LIST
    text: bool = True  # all bytes values are text
    nulls: bool = False  # for the steps of a feature list: some step has no values
    first: RecordRef | None = None  # the first record that has the column
    listed: RecordRef | None = None  # the first record whose number of values is not one
    binary: RecordRef | None = None  # the first record that has bytes that are not text
    steps: Observation | None = None  # for a feature list: what its steps show
    valued: RecordRef | None = None  # the first record that has a value
    empty: bool = False  # all lists are empty: the kind is that of the first, and gives way to that of any value

    @property
    def value_kind(self) -> Kind:
        """The kind of the values; NONE without one."""
        return Kind.NONE if self.empty else self.kind


class KindCount(NamedTuple):
    """How many records have values of one feature type in a feature, and the first of them."""

    kind: Kind
    records: int
    first: RecordRef


def join(name: str, a: Observation, b: Observation) -> Observation:
    """The least observation that covers both.

    SchemaError, which names both records, if they have different kinds, or only one is a feature list.
    """
    if (a.steps is None) != (b.steps is None) and Layout.NULL not in (a.layout, b.layout):
        forms = ("a context feature" if seen.steps is None else "a feature list" for seen in (a, b))
        raise _conflict(name, a, b, *forms)
    if _have_two_kinds(a, b):
        raise _conflict(name, a, b=b, is_a=a.kind.description, is_b=b.kind.description)
    steps = join(name, a.steps, b.steps) if a.steps and b.steps else a.steps or b.steps
    return Observation(
        kind=_joined_kind(a, b),
        layout=max(a.layout, b.layout),
        text=a.text and b.text,
        nulls=a.nulls or b.nulls,
        first=earliest(a.first, b.first),
        listed=earliest(a.listed, b.listed),
        binary=earliest(a.binary, b.binary),
        steps=steps,
        valued=earliest(a.valued, b.valued),
        empty=all(seen.empty or seen.kind is Kind.NONE for seen in (a, b)) and (a.empty or b.empty),
    )


def _have_two_kinds(a: Observation, b: Observation) -> bool:
    """True if both have values, of different kinds."""
    return a.value_kind is not b.value_kind and Kind.NONE not in (a.value_kind, b.value_kind)


def _joined_kind(a: Observation, b: Observation) -> Kind:
    """The kind of the values; without one that of the first empty list."""
    if (kind := max(a.value_kind, b.value_kind)) is not Kind.NONE:
        return kind
    lists = [seen for seen in (a, b) if seen.empty]
    first = min(lists, key=_order_of_first, default=None)
    return Kind.NONE if first is None else first.kind


def _order_of_first(seen: Observation) -> tuple[bool, tuple[int, int, str], Kind]:
    place = (0, 0, "") if seen.first is None else seen.first.order()
    return seen.first is None, place, seen.kind


def join_columns(
    a: Mapping[str, Observation],
    b: Mapping[str, Observation],
    contested: dict[str, None] | None = None,
    may_differ: Callable[[str], bool] = lambda name: True,
) -> dict[str, Observation]:
    """Join column by column, where a missing column is null.

    Columns are joined by name, so that of several contradictions in one record always the same one is reported. With
    `contested`, two kinds of a feature that `may_differ` are not an error: the name becomes a key of it, and the column
    stays that of `a`.
    """
    if not a:
        return {name: b[name] for name in sorted(b)}
    joined = dict(a)
    for name in sorted(b):
        seen = b[name]
        if name not in joined:
            joined[name] = seen
        elif contested is not None and _differ(joined[name], seen) and may_differ(name):
            contested[name] = None
        else:
            joined[name] = join(name, joined[name], seen)
    return joined


def _differ(a: Observation, b: Observation) -> bool:
    """True if both have values, of different kinds; of feature lists, in their steps."""
    if a.steps is not None and b.steps is not None:
        return _differ(a.steps, b.steps)
    return _have_two_kinds(a, b)


def earliest(a: RecordRef | None, b: RecordRef | None) -> RecordRef | None:
    """The first record in the order of reading; None if both are None."""
    if a is None or b is None:
        return a or b
    return min(a, b, key=RecordRef.order)


def arrow_type(
    seen: Observation, *, infer_text: bool = True, stable_types: bool = False, large_offsets: bool = False
) -> pa.DataType:
    """The Arrow type of a column for which `seen` was observed.

    Bytes that are all text become string with `infer_text`; `stable_types` are always lists and binary, so that they
    depend on the kind alone; `large_offsets` are of 64 bits: large_list, large_binary, large_string.
    """
    text = infer_text and not stable_types
    list_of = pa.large_list if large_offsets else pa.list_
    if seen.steps is not None:
        step = seen.steps
        many = stable_types or step.nulls or step.layout is Layout.LIST
        inner = _value_type(step, text, large_offsets)
        return list_of(list_of(inner) if many else inner)
    if seen.layout is Layout.NULL:
        return pa.null()
    value = _value_type(seen, text, large_offsets)
    return list_of(value) if stable_types or seen.layout is Layout.LIST else value


def _value_type(seen: Observation, text: bool, large: bool) -> pa.DataType:
    if seen.kind is Kind.BYTES:
        if text and seen.text:
            return pa.large_string() if large else pa.string()
        return pa.large_binary() if large else pa.binary()
    return {Kind.NONE: pa.null(), Kind.INT64: pa.int64(), Kind.FLOAT: pa.float32()}[seen.kind]


def _conflict(name: str, a: Observation, b: Observation, is_a: str, is_b: str) -> SchemaError:
    sides = [(s.valued or s.first or RecordRef(None, -1), form) for s, form in ((a, is_a), (b, is_b))]
    (before, expected), (after, got) = sorted(sides, key=lambda side: side[0].order())
    return contradiction(name, before, expected=expected, after=after, got=got)


def contradiction(name: str, before: RecordRef, expected: str, after: RecordRef, got: str) -> SchemaError:
    """The error for a column that differs between two records; both are named."""
    from tfrecord_io.columns.schema.column_advice import conflict_hints

    are_numbers = {expected, got} == {Kind.INT64.description, Kind.FLOAT.description}
    hint, hint_cli = conflict_hints(
        name, common_type="float64" if are_numbers else None, can_skip=after.path is not None
    )
    reason, record = f"it is {expected} in {before} and {got} in {after}", after.record if after.record >= 0 else None
    return SchemaError(
        reason, path=after.path, record=record, feature=name, expected=expected, got=got, hint=hint, hint_cli=hint_cli
    )
