"""Assign each record of a dataset to a part: at random, or by the values of columns.

Functions named ``…_labels`` return for each record, in order, the number of its part, or `LEFT_OUT`.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from tfrecord_io.base import Selection, check_integer, listed, printable
from tfrecord_io.bytes import Array
from tfrecord_io.columns import Column
from tfrecord_io.errors import FeatureNotFoundError, FeatureTypeError
from tfrecord_io.read import Files
from tfrecord_io.typing import Reader
from tfrecord_io.write.copied_records import CopiedRecords
from tfrecord_io.write.record_output import RecordOutput
from tfrecord_io.write.writer import WriteReport

T = TypeVar("T")
Kinds = Mapping[str, Sequence[Callable[[pa.DataType], bool]]]

_t = pa.types
NAMES: Kinds = {  # types whose values can name a file
    "texts": (_t.is_string, _t.is_large_string, _t.is_null),
    "bytes": (_t.is_binary, _t.is_large_binary, _t.is_fixed_size_binary),
    "integers": (_t.is_integer,),
    "bools": (_t.is_boolean,),
}
VALUES: Kinds = {
    **NAMES,
    "floats": (_t.is_floating,),
    "decimals": (_t.is_decimal,),
    "times": (_t.is_date, _t.is_time, _t.is_timestamp, _t.is_duration),
}
MOST_PARTS = 200  # each has an open file
LEFT_OUT = 255  # the label of a record that is in no part
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio


def write_labelled(copied: CopiedRecords, dst: Any, labels: Array) -> WriteReport:
    """Write the records with the label 0 to one output."""
    with RecordOutput.open_all(copied, dst) as (output,):
        output.expect(int(np.count_nonzero(labels == 0)))
        for _, folder, frames in split_by_label(copied, labels):
            output.folder(folder).write(frames)
    return output.report


def random_labels(sizes: Sequence[int], count: int, seed: int) -> Array:
    """Assign `count` records to random parts of these sizes; the rest is `LEFT_OUT`."""
    seed = check_integer("seed", seed, 0)
    labels = np.full(count, LEFT_OUT, np.uint8)
    ends = np.cumsum(sizes)
    for number, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        labels[begin:end] = number
    np.random.Generator(np.random.PCG64(seed)).shuffle(labels)
    return labels


def split_by_label(copied: CopiedRecords, labels: Array) -> Iterator[tuple[int, str, CopiedRecords.Frames]]:
    """Split records by their labels: yield frames with the number of their part, and the folder they are copied to.

    Raises
    ------
    OSError
        The files have another number of records than before.
    """
    row = 0
    for folder, frames in copied.frames():
        frame_labels = labels[row : row + len(frames[1])]
        row += len(frames[1])
        numbers = np.unique(frame_labels).tolist()
        for number in numbers if row <= len(labels) else ():
            if number != LEFT_OUT:
                rows = np.flatnonzero(frame_labels == number)
                part = frames if len(numbers) == 1 else CopiedRecords.select(frames, rows)
                yield number, folder, part
    if row != len(labels):
        raise OSError(f"the files have {row} records, and had {len(labels)} before: they were changed meanwhile")


def each_key(
    copied: CopiedRecords,
    columns: Sequence[str],
    keyword: str,
    use: Callable[[list[pa.Array]], T],
    kinds: Kinds = VALUES,
) -> list[T]:
    """Call `use` with the values of some columns, batch by batch, and collect the results.

    Raises
    ------
    FeatureNotFoundError, FeatureTypeError
        A column does not exist, or is none of `kinds`; `keyword` is the keyword that names it.
    """
    schema = copied.schema
    overrides = copied.options.schema_overrides if schema.declared is None else None
    options = replace(
        copied.options.reading, sample="all", schema=schema.declared, schema_overrides=overrides,
        on_error="raise", progress=False,
    )  # fmt: skip
    selection = Selection(tuple(columns))  # the files have no other rows
    files = Files(copied.sources, options, selection)
    with Reader(files.plan_scan(embedded=schema.united)) as batches:
        for field in batches.schema:  # none if the files have no Examples: a batch is an error then
            _check_key(field, columns, keyword, kinds)
        if missing := set(columns).difference(batches.schema.names):
            for _ in batches:  # intact records before damage have no columns, and the damage is to be named
                pass
            raise FeatureNotFoundError("the files have no such column", feature=min(missing))
        return [use([batch.column(name) for name in columns]) for batch in batches]


def _check_key(field: pa.Field, columns: Sequence[str], keyword: str, kinds: Kinds) -> None:
    if field.name not in columns:  # columns= would take it for a glob
        reason = f"{keyword}= takes the name of one column, and no pattern"
        advice = f"did you mean '{printable(field.name)}'?"
        raise FeatureNotFoundError(reason, feature=columns[0], hint=advice)
    value = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if not any(is_kind(value) for is_kinds in kinds.values() for is_kind in is_kinds):
        of_kind = listed("or", *kinds)
        reason = f"its type is {Column(field).short_name}, and a column of single {of_kind} is needed"
        raise FeatureTypeError(reason, feature=field.name, of_argument=True)


def value_labels(copied: CopiedRecords, by: str) -> tuple[list[Any], Array]:
    """Distinct values of a column, None for a missing one, and for each record the number of its value.

    Raises
    ------
    ValueError
        The column has more than `MOST_PARTS` values, None not counted.
    """
    numbers: dict[Any, int] = {}

    def number(value: Any) -> int:
        if value is not None and value not in numbers and len(numbers) - (None in numbers) == MOST_PARTS:
            raise ValueError(f"by={by!r}: the column has more than {MOST_PARTS} distinct values")
        return numbers.setdefault(value, len(numbers))

    labels = _label_values(copied, by, keyword="by", number=number, kinds=NAMES)
    return [*numbers], labels


def group_labels(copied: CopiedRecords, column: str, shares: Sequence[Fraction], seed: int) -> Array:
    """Assign all records of a value to one part, by the hash of the value alone."""
    bounds = [int(end * 2**64) for end in accumulate(shares)]

    def number(value: Any) -> int:
        part = bisect_right(bounds, _stable_hash(value, seed))
        return part if part < len(shares) else LEFT_OUT

    return _label_values(copied, column, "group", number)


def _label_values(
    copied: CopiedRecords, column: str, keyword: str, number: Callable[[Any], int], kinds: Kinds = VALUES
) -> Array:
    """Label each record with the `number` of its value."""

    def use(columns: list[pa.Array]) -> Array:
        values, indices = _distinct(columns[0])
        return np.array([number(value) for value in values], np.uint8)[indices]

    return np.concatenate([np.empty(0, np.uint8), *each_key(copied, [column], keyword=keyword, use=use, kinds=kinds)])


def stratified_labels(copied: CopiedRecords, column: str, shares: Sequence[Fraction], seed: int) -> Array:
    """Assign records to parts so that each part has its share of the records of each value.

    The k-th record of a value is in the part in which frac(h + k φ) lies, where h is a hash of the value and φ the
    golden ratio: such numbers fill all intervals evenly, and those of earlier records do not depend on later ones.
    """
    bounds = np.array([min(int(end * 2**64), 2**64 - 1) for end in accumulate(shares)], np.uint64)
    last_part = len(shares) - 1 if sum(shares) == 1 else LEFT_OUT
    counts: Counter[int] = Counter()  # of records so far, by the hash of their value

    def use(columns: list[pa.Array]) -> Array:
        values, indices = _distinct(columns[0])
        hashes, index_of_hash = np.unique(
            np.array([_stable_hash(v, seed) for v in values], np.uint64), return_inverse=True
        )
        indices = index_of_hash[indices]  # 0.0 and -0.0 have one hash
        sizes = np.bincount(indices, minlength=len(hashes))
        begins = np.array([counts[key] for key in hashes.tolist()], np.int64) - (np.cumsum(sizes) - sizes)
        counts.update(dict(zip(hashes.tolist(), sizes.tolist(), strict=True)))
        numbers = np.empty(len(indices), np.int64)  # number of each record among the records of its value
        order = np.argsort(indices, kind="stable")
        numbers[order] = np.arange(len(indices)) + begins[indices[order]]
        points = numbers.astype(np.uint64) * np.uint64(_GOLDEN) + hashes[indices]
        parts = np.searchsorted(bounds, points, side="right")
        return np.where(parts < len(shares), parts, last_part).astype(np.uint8)

    return np.concatenate([np.empty(0, np.uint8), *each_key(copied, [column], "stratify", use)])


def _distinct(column: pa.Array) -> tuple[list[Any], Array]:
    """Distinct values of a column, and for each row the index of its value."""
    column = column.cast(pa.float32()) if pa.types.is_float16(column.type) else column  # for pyarrow 19
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    missing = len(encoded.dictionary)
    used, indices = np.unique(np.asarray(encoded.indices.cast(pa.int64()).fill_null(missing)), return_inverse=True)
    values = Column(encoded.dictionary.take(pa.array(used[used < missing])).type).python_rows(
        pa.chunked_array([encoded.dictionary.take(pa.array(used[used < missing]))])
    )
    return values + [None] * (len(used) - len(values)), indices


def _stable_hash(value: Any, seed: int) -> int:
    """Hash of a value, the same in all versions: BLAKE2b of its text, with the seed as the key."""
    value = value + 0.0 if isinstance(value, float) else value  # -0.0 becomes 0.0
    content = value if isinstance(value, bytes) else b"" if value is None else str(value).encode()
    return int.from_bytes(hashlib.blake2b(content, digest_size=8, key=str(seed).encode()).digest(), "little")
