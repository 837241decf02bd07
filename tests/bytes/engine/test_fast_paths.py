"""The kernel's fast paths for a processor or a form of record equal the general ones, value for value."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from engine_comparison import NATIVE, compare
from reference_engine import ENGINE as REFERENCE
from rounds import near, rounds
from strategies import datasets, plans
from tfrecord_io.bytes._native import _kernel
from tfrecord_io.bytes.engine.contract import ColumnBuffers, Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text

BALLAST = b"\x52\xff\x01" + bytes(255)  # an unknown field behind the records, so that whole vectors can be loaded

names = st.text(min_size=0, max_size=70) | st.integers(0, 100).map(lambda size: "n" * size)
numbers = st.integers(-(2**63), 2**63 - 1) | st.integers(-(2**7), 2**7) | st.integers(0, 62).map(lambda bits: 1 << bits)
texts = (
    st.binary(max_size=130)
    | st.text(max_size=40).map(str.encode)
    | st.sampled_from([b"a" * n for n in (0, 16, 17, 117, 128)])
)


@st.composite
def scalar_columns(draw: st.DrawFn) -> list[ColumnBuffers]:
    rows = draw(st.integers(1, 8))
    columns = []
    for name in draw(st.lists(names, min_size=1, max_size=5, unique=True)):
        kind = draw(st.sampled_from([Kind.INT64, Kind.FLOAT, Kind.BYTES]))
        value_offsets: Any = None
        if kind == Kind.BYTES:
            cells = draw(st.lists(texts, min_size=rows, max_size=rows))
            if draw(st.booleans()):  # long values of one length have a shape of their own
                cells = [cell.ljust(200, b"\xff")[:200] for cell in cells]
            value_offsets = np.cumsum([0, *map(len, cells)])
            values: Any = np.frombuffer(b"".join(cells), np.uint8)
        elif kind == Kind.INT64:
            values = np.array(draw(st.lists(numbers, min_size=rows, max_size=rows)), np.int64)
        else:
            values = np.array(draw(st.lists(st.floats(width=32), min_size=rows, max_size=rows)), np.float32)
        mask = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows))) | draw(st.booleans())
        validity = None if mask.all() else np.packbits(mask, bitorder="little")
        columns.append(
            ColumnBuffers(
                name=name,
                kind=kind,
                layout=Layout.SCALAR,
                rows=rows,
                null_count=int((~mask).sum()),
                validity=validity,
                offsets=None,
                value_offsets=value_offsets,
                values=values,
            )
        )
    return columns


@st.composite
def list_columns(draw: st.DrawFn, rows: int) -> list[ColumnBuffers]:
    """Lists around the sizes up to which an entry is compared and written as a whole."""
    columns = []
    for name in draw(st.lists(names.map(lambda name: "list " + name), min_size=1, max_size=4, unique=True)):
        kind = draw(st.sampled_from([Kind.INT64, Kind.FLOAT, Kind.BYTES]))
        value = {Kind.INT64: numbers, Kind.FLOAT: st.floats(width=32), Kind.BYTES: texts}[kind]
        counts = st.integers(0, draw(st.sampled_from([1, 5, 9, 30, 130])))
        cells = [draw(st.lists(value, min_size=1, max_size=3)) for _ in range(rows)]
        cells = [(cell * count)[:count] for cell, count in zip(cells, draw(st.tuples(*[counts] * rows)), strict=True)]
        mask = np.array(draw(st.lists(st.booleans(), min_size=rows, max_size=rows))) | draw(st.booleans())
        cells = [cell if valid else [] for cell, valid in zip(cells, mask, strict=True)]
        offsets = np.cumsum([0, *map(len, cells)])
        joined: Any = [value for cell in cells for value in cell]
        value_offsets = np.cumsum([0, *map(len, joined)]) if kind == Kind.BYTES else None
        if kind == Kind.BYTES:
            values: Any = np.frombuffer(b"".join(joined), np.uint8)
        else:
            values = np.array(joined, np.int64 if kind == Kind.INT64 else np.float32)
        validity = None if mask.all() else np.packbits(mask, bitorder="little")
        nulls = int((~mask).sum())
        columns.append(
            ColumnBuffers(
                name=name,
                kind=kind,
                layout=Layout.LIST,
                rows=rows,
                null_count=nulls,
                validity=validity,
                offsets=offsets,
                value_offsets=value_offsets,
                values=values,
            )
        )
    return columns


@st.composite
def short_columns(draw: st.DrawFn) -> list[ColumnBuffers]:
    """Single values, and lists."""
    columns = draw(scalar_columns())
    return draw(st.permutations([*columns, *draw(list_columns(columns[0].rows))])) if draw(st.booleans()) else columns


@given(short_columns(), st.randoms(use_true_random=False))
def test_records_of_any_length_decode_alike(columns: list[ColumnBuffers], random: Any) -> None:
    records = []
    for row in range(columns[0].rows):  # map order on the wire means nothing
        order = random.sample(columns, len(columns)) if random.random() < 0.3 else columns
        records.append(bytes(REFERENCE.encoder(order).encode(row, row + 1)[0]))
    compare(Plan(), b"".join(records) + REFERENCE.frame([BALLAST]), [])


@given(datasets(), plans())
def test_any_records_decode_alike_where_vectors_can_be_loaded(payloads: list[bytes], plan: Plan) -> None:
    compare(plan, REFERENCE.frame([*payloads, BALLAST]), [])


def entry(name: bytes, kind: int, content: bytes) -> bytes:
    """A map entry with one value, in the usual form."""
    value = field(kind, field(1, content))
    return field(1, field(1, name) + field(2, value))


def field(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def random_value(random: Random, kind: int) -> bytes:
    if kind == 1:
        return random.choice([b"", b"a", b"x" * random.randrange(30), b"y" * 130, "\u00e9\u4e2d".encode()])
    if kind == 2:
        return random.randbytes(4)
    return _varint(random.getrandbits(random.choice([1, 7, 8, 20, 64])))


@pytest.mark.parametrize("seed", range(rounds(60)))
def test_features_that_come_and_go_decode_alike(seed: int) -> None:
    """Any subset of the features in any order; names of all lengths, some alike at both ends; a few oddities."""
    random = Random(seed)
    count = random.choice([1, 2, 7, 8, 9, 40, 200])
    known = {b"", b"a", *(b"name_%d_suffix" % i for i in range(count))}
    known |= {b"p" * 9 + b"%05d" % i + b"s" * random.choice([9, 30, 40, 45, 54, 71]) for i in range(count // 4)}
    features = [(name, random.randint(1, 3)) for name in known]
    presence = random.choice([0.02, 0.3, 0.95])
    records = []
    for _ in range(random.choice([30, 300])):
        present = [f for f in features if random.random() < presence]
        if random.random() < 0.7:
            random.shuffle(present)
        if present and random.random() < 0.02:
            present.append(random.choice(present))  # twice: the last one counts
        entries = [entry(name, kind, random_value(random, kind)) for name, kind in present]
        if random.random() < 0.02:
            entries.append(entry(random.choice(features)[0], 3, _varint(1) * random.randrange(4)))
        records.append(field(1, b"".join(entries)))
    frames = REFERENCE.frame([*records, BALLAST])
    cuts = sorted(random.sample(range(len(frames)), random.choice([0, 3])))
    compare(Plan(), frames, cuts)
    chosen = random.sample(features, len(features) // 2)
    columns = [PlanColumn(name.decode(), Kind(kind), Layout.ANY, Text.NO) for name, kind in chosen]
    compare(Plan(columns=tuple(columns), unknown=random.choice(["skip", "fault", "discover"])), frames, cuts)


@st.composite
def odd_entries(draw: st.DrawFn, name: bytes) -> bytes:
    """A map entry whose value has any content, sometimes in an unusual or malformed form."""
    key, value = field(1, name), field(2, draw(st.binary(max_size=40) | st.binary(min_size=120, max_size=140)))
    extra = draw(st.sampled_from([b"", b"", b"", b"\x18\x01", b"\x18", b"\x0b", field(2, b"")]))
    parts = draw(
        st.sampled_from([(key, value), (key, value), (key, value), (value, key), (key,), (value,), (key, key, value)])
    )
    content = b"".join(parts) + extra
    length = draw(st.sampled_from([len(content)] * 8 + [len(content) + 1, max(0, len(content) - 1)]))
    size = _varint(length) if draw(st.integers(0, 9)) else bytes([length & 0x7F | 0x80, length >> 7 | 0x80, 0])
    return b"\x0a" + size + content


@given(st.data())
def test_features_that_are_not_read_are_skipped_alike(data: st.DataObject) -> None:
    """In the order of the record before, where the fast path expects them; their values are not parsed."""
    names = data.draw(st.lists(st.text(max_size=30), min_size=2, max_size=6, unique=True))
    wanted = data.draw(st.sets(st.sampled_from(names), max_size=len(names) - 1))
    features = [name.encode() for name in names]
    records = []
    for record in range(data.draw(st.integers(2, 6))):
        usual = [entry(name, 3, _varint(data.draw(st.integers(0, 2**40)))) for name in features]
        if record and data.draw(st.booleans()):
            at = data.draw(st.integers(0, len(features) - 1))
            usual[at] = data.draw(odd_entries(features[at]))
        records.append(field(1, b"".join(usual)))
    frames = REFERENCE.frame([*records, BALLAST])
    compare(Plan(select=lambda name: name in wanted), frames, [])
    columns = tuple(PlanColumn(name, Kind.INT64, Layout.ANY, Text.NO) for name in sorted(wanted))
    compare(Plan(columns=columns, ignored=frozenset(names) - wanted, unknown="fault"), frames, [])
    compare(Plan(columns=columns, unknown="skip"), frames, [])


@pytest.mark.parametrize("read", ["first", "second", "none"])
@pytest.mark.parametrize("start", [b"", b"\xff"])
@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 96, 120, 300])
@pytest.mark.parametrize("length", [4, 120])
def test_zeros_are_not_taken_for_a_feature_that_is_not_read(length: int, size: int, start: bytes, read: str) -> None:
    first, second = b"a" * length, b"b" * length
    name = {"first": first, "second": second, "none": b""}[read].decode()
    usual = field(1, entry(first, 3, _varint(7)) + entry(second, 3, _varint(9)))
    odd = field(1, start + bytes(size))
    for later in (odd, field(1, entry(first, 3, _varint(7)) + start + bytes(size))):
        compare(Plan(select=lambda one: one == name), REFERENCE.frame([*[usual] * 40, later, usual, BALLAST]), [])


@pytest.mark.parametrize("key", [bytes(3), b"\x01\x00\x00", b"\x0a\x00\x00"])
@pytest.mark.parametrize("select", [None, lambda name: False])
@pytest.mark.parametrize("length", [4, 80, 100, 300])
def test_no_other_bytes_are_taken_for_a_name(length: int, select: Any, key: bytes) -> None:
    """Also for the name that comes next, and is too long for a shape."""
    feature = field(3, field(1, _varint(7)))
    usual = field(1, field(1, field(1, b"n" * length) + field(2, feature)))
    odd = field(1, field(1, key + _varint(len(feature)) + feature))
    compare(Plan(select=select), REFERENCE.frame([usual, usual, odd, usual, BALLAST]), [])


@pytest.mark.parametrize("name", [b"", b"abc", b"\x12" * 18, b"a" * 50, b"a" * 86])
@pytest.mark.parametrize("kind", [1, 3])
def test_lengths_modulo_256_are_not_taken_for_lengths(name: bytes, kind: int) -> None:
    """Each length of a usual entry has one byte; with a byte from 0x80 in its place an entry has another meaning."""
    other = entry(b"other", 1, bytes(9))
    usual = field(1, entry(name, kind, b"abcde" if kind == 1 else _varint(2**33)) + other)
    for size in near([5, 64, 118, 128, 255], range(5, 256)):
        lengths = [(len(name) + 8 + size) % 256, (size + 4) % 256, (size + 2) % 256]
        head = (
            bytes([10, lengths[0], 10, len(name)]) + name + bytes([18, lengths[1], kind << 3 | 2, lengths[2], 10, size])
        )
        odd = field(1, head + b"a" * size + other)
        frames = REFERENCE.frame([usual, usual, odd, usual, BALLAST])
        compare(Plan(), frames, [])
        compare(Plan(columns=(PlanColumn("other"),), unknown="skip"), frames, [])


@pytest.mark.parametrize("name", [b"", b"abc", b"\x0a" * 10, b"a" * 89, b"a" * 90, b"a" * 91, b"a" * 130])
def test_features_of_any_size_are_skipped_alike(name: bytes) -> None:
    """By their lengths, of one byte or more; a wrong length of the entry or of its value is found."""
    other = entry(b"other", 1, bytes(9))
    columns = (PlanColumn("other", Kind.BYTES, Layout.ANY, Text.NO),)
    borders = [0, 16, 32, 64, 116, 122, 128, 255, 16_383]
    for size in near(borders, [*range(260), 16_382, 16_383, 16_384]):
        value = field(2, bytes(size))
        content = field(1, name) + value
        usual = field(1, field(1, content) + other)
        wrong = [field(1, b"\x0a" + _varint(len(content) + off) + content + other) for off in (-1, 1)]
        wrong.append(field(1, field(1, field(1, name) + b"\x12" + _varint(size + 1) + bytes(size)) + other))
        compare(Plan(columns=columns, unknown="skip"), REFERENCE.frame([usual] * 4 + [BALLAST]), [])
        for odd in wrong:
            compare(Plan(columns=columns, unknown="skip"), REFERENCE.frame([usual, usual, odd, usual, BALLAST]), [])


def test_records_with_ever_new_names_that_are_not_read() -> None:
    """More than the decoder remembers; some come again, some twice in a record."""
    columns = (PlanColumn("read", Kind.INT64, Layout.ANY, Text.NO),)
    records = []
    for i in range(0, 10_000, 4):
        names = [b"%d" % n for n in (i, i + 1, i + 2, i + 3, i // 2)]
        if i % 100 == 0:
            names.append(names[0])
        entries = [entry(name, 3, _varint(i)) for name in [*names[:3], b"read", *names[3:]]]
        records.append(field(1, b"".join(entries)))
    compare(Plan(columns=columns, unknown="skip", max_features=2), REFERENCE.frame([*records, BALLAST]), [])
    lists = [field(2, b"".join(field(1, field(1, b"%d" % n) + field(2, b"")) for n in (i, i + 1))) for i in range(5000)]
    sequence = Plan(columns=columns, unknown="skip", record_type=RecordType.SEQUENCE_EXAMPLE, max_features=2)
    compare(sequence, REFERENCE.frame([r + s for r, s in zip(records, lists, strict=False)]), [])


@pytest.mark.parametrize("name", ["read", "list"])
def test_a_column_that_is_also_left_out_is_read(name: str) -> None:
    columns = (PlanColumn(name, Kind.INT64, Layout.ANY, Text.NO),)
    record = field(1, entry(b"read", 3, _varint(7)) + entry(b"list", 3, _varint(7) * 3))
    compare(
        Plan(columns=columns, unknown="skip", ignored=frozenset({name})), REFERENCE.frame([record] * 5 + [BALLAST]), []
    )


# Around the steps of copies, where a length gets another byte, and above the payloads with two bytes of length.
SIZES = [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 117, 118, 127, 128, 129, 192, 193, 16_384]


def example(*entries: bytes) -> bytes:
    return field(1, b"".join(entries))


def odd_texts(size: int, odd: bytes) -> list[bytes]:
    """Texts of `size` bytes with `odd` at every position where it fits; if they are long, at a few of them."""
    last = size - len(odd)
    some = {0, 1, 62, 63, 64, 65, size // 2, last - 65, last - 64, last - 63, last - 1, last}
    return [b"a" * at + odd + b"z" * (last - at) for at in range(last + 1) if size < 66 or at in some]


@pytest.mark.parametrize("odd", [b"\xff", b"\x7f", b"\n", b"\xc3\xa9", b"\xc2\x85", b"\xf0\x9f\x98", b" "])
def test_text_of_every_length_is_checked_alike(odd: bytes) -> None:
    """One column for each position of the odd byte, as the first one that is not text ends the check of a column."""
    for size in SIZES:
        cells = odd_texts(size, odd) or [b"t" * size]
        usual = example(*(entry(b"c%d" % i, 1, b"u" * (size % 200)) for i in range(len(cells))))
        record = example(*(entry(b"c%d" % i, 1, cell) for i, cell in enumerate(cells)))
        compare(Plan(), REFERENCE.frame([usual, usual, record, BALLAST]), [])


@pytest.mark.parametrize("text", [Text.UTF8, Text.STRICT])
@pytest.mark.parametrize("layout", [Layout.ANY, Layout.LIST])
def test_the_first_text_that_does_not_fit_is_the_same_fault(text: Text, layout: Layout) -> None:
    plan = Plan(columns=(PlanColumn("a", Kind.BYTES, layout, text), PlanColumn("b", Kind.BYTES, layout, text)))
    for size in SIZES:
        for odd in (b"\xff", b"\x00", b"\xc3\xa9"):
            for cell in odd_texts(size, odd)[:: max(1, size // 5)]:
                usual = example(entry(b"a", 1, b"x" * size), entry(b"b", 1, b"y" * size))
                record = example(entry(b"a", 1, b"x" * size), entry(b"b", 1, cell))
                compare(plan, REFERENCE.frame([usual, usual, usual, record, usual, BALLAST]), [])


def numbers_list(random: Random, kind: int, count: int) -> bytes:
    """A list of integers or floats: packed, each by itself, or in several chunks."""
    values = [random_value(random, kind) for _ in range(count)]
    form = random.choice(["packed"] * 4 + ["alone", "chunks", "mixed"])
    if form == "packed":
        return field(1, b"".join(values)) if values or random.random() < 0.3 else b""
    alone = [bytes([8 if kind == 3 else 13]) + value for value in values]
    if form == "alone":
        return b"".join(alone)
    cut = random.randint(0, count)
    return field(1, b"".join(values[:cut])) + (
        b"".join(alone[cut:]) if form == "mixed" else field(1, b"".join(values[cut:]))
    )


def any_feature(random: Random, kind: int, counts: list[int], sizes: list[int]) -> bytes:
    """The content of a Feature; rarely two lists, which are merged, none, or a malformed one."""
    if kind == 1:
        cells = [b"t" * max(0, random.choice(sizes) + random.randint(-1, 1)) for _ in range(random.choice(counts))]
        if cells and random.random() < 0.05:
            cells[-1] += random.choice([b"\xff", "\u00e9".encode(), b"\x00"])
        content = b"".join(field(1, cell) for cell in cells)
    else:
        content = numbers_list(random, kind, random.choice(counts))
    odd = random.random()
    if odd < 0.01:
        return b""
    if odd < 0.02:
        return field(kind, content) + field(kind, content)
    if odd < 0.03:
        return field(kind, content[:-1])
    return field(kind, content)


@pytest.mark.parametrize("seed", range(rounds(120)))
def test_lists_and_long_values_decode_alike(seed: int) -> None:
    """Lists of none, one and many values, in all forms, between short scalars; the ends of lengths and of windows."""
    random = Random(seed)
    counts, sizes, most = random.choice(
        [
            ([0, 1, 2], [3, 20, 31, 32, 63, 64, 110, 117, 127, 128], 60),
            ([1, 1, 3, 40], [3, 20, 31, 32, 63, 64], 40),
            ([16, 127, 128, 129], [0, 3], 12),
            ([0, 1], [16_250, 16_370, 16_384], 6),
            ([1, 2000], [5], 5),
        ]
    )
    features = [
        (b"name_%d" % i * random.choice([1, 1, 3, 14]), random.randint(1, 3)) for i in range(random.randint(1, 9))
    ]
    scalars = [(b"s%d" % i, random.randint(1, 3)) for i in range(random.randint(0, 4))]
    records = []
    for _ in range(random.randint(3, most)):
        entries = [entry(name, kind, random_value(random, kind)) for name, kind in scalars]
        for name, kind in features:
            if random.random() < 0.9:
                kept = kind if random.random() > 0.01 else random.randint(1, 3)
                entries.append(field(1, field(1, name) + field(2, any_feature(random, kept, counts, sizes))))
        if random.random() < 0.2:
            random.shuffle(entries)
        if entries and random.random() < 0.01:
            entries.append(entries[0])
        records.append(example(*entries))
    frames = REFERENCE.frame([*records, BALLAST] if random.random() < 0.7 else records)
    cuts = sorted(random.sample(range(len(frames)), random.choice([0, 3])))
    names = [name.decode() for name, _ in features + scalars]
    read = frozenset(name for name in names if random.random() < 0.6)
    layout = random.choice([Layout.ANY, Layout.ANY, Layout.LIST])
    columns = tuple(PlanColumn(n.decode(), Kind(k), layout, random.choice(list(Text))) for n, k in features)
    for plan in (Plan(), Plan(select=lambda name: name in read), Plan(columns, unknown="skip"), Plan(splits=True)):
        compare(plan, frames, cuts)


def test_an_entry_that_ends_behind_its_features_is_damage() -> None:
    """The Features end before the entry does; what follows them is, by itself, an empty field of the record."""
    entry = field(1, b"f0") + field(2, field(1, b""))
    usual = example(field(1, entry))
    broken = bytes([usual[0], usual[1] - 2]) + usual[2:]
    with pytest.raises(DecodeError):
        tfr.train.Example.FromString(broken)
    compare(Plan(), REFERENCE.frame([*[usual] * 4, broken, usual, BALLAST]), [])


@pytest.mark.parametrize("seed", range(rounds(80)))
def test_damaged_lists_and_long_values_decode_alike(seed: int) -> None:
    """Each record has a valid frame around a payload that is damaged at one place."""
    random = Random(seed)
    features = [(b"f%d" % i, random.randint(1, 3)) for i in range(random.randint(1, 4))]
    sizes, counts = [5, 40, 120, 300], [0, 1, 3, 50]

    def record() -> bytearray:
        contents = ((name, any_feature(random, kind, counts, sizes)) for name, kind in features)
        return bytearray(example(*(field(1, field(1, name) + field(2, content)) for name, content in contents)))

    usual = [bytes(record()) for _ in range(4)]
    for _ in range(20):
        broken = record()
        at = random.randrange(min(len(broken), random.choice([12, 40, 1 << 20])))
        broken[at] = random.choice([random.getrandbits(8), broken[at] ^ 1 << random.randrange(8), broken[at] ^ 0x80])
        compare(Plan(), REFERENCE.frame([*usual, bytes(broken), usual[0], BALLAST]), [])


@pytest.mark.parametrize("size", [20, 40, 100, 118, 130, 300])
def test_the_end_of_the_data_may_come_anywhere_near_a_long_value(size: int) -> None:
    """The last record ends with the data, or a few bytes before its end: nothing after it is read."""
    record = example(
        entry(b"text", 1, b"t" * size), entry(b"list", 3, bytes(range(size % 128))), entry(b"last", 1, b"x")
    )
    for behind in range(0, 300, 13):
        compare(Plan(), REFERENCE.frame([record] * 4) + bytes(behind % 12), [])
        compare(Plan(), REFERENCE.frame([record] * 4 + [b"\x52\xff\x01"[:behind] + bytes(max(0, behind - 3))]), [])


@given(st.binary(max_size=700), st.integers(0, 2**32 - 1), st.integers(0, 7))
def test_crc_is_the_same_without_processor_support(data: bytes, value: int, skip: int) -> None:
    array = np.frombuffer(data, np.uint8)[skip:]
    assert _kernel.crc32c(array, value) == _kernel.crc32c_portable(array, value)


@given(st.integers(0, 900), st.sampled_from([0, 1, 2**32 - 1]), st.randoms(use_true_random=False))
def test_crc_continues_at_any_byte(size: int, value: int, random: Any) -> None:
    array = np.frombuffer(random.randbytes(size), np.uint8)
    at = random.randint(0, size)
    assert _kernel.crc32c(array[at:], _kernel.crc32c(array[:at], value)) == _kernel.crc32c_portable(array, value)


@pytest.mark.parametrize(
    "size", [191, 192, 255, 256, 257, 319, 320, 383, 384, 385, 1535, 1536, 12_287, 12_288, 12_289, 100_003]
)
def test_crc_is_the_same_at_the_borders_of_its_lanes(size: int) -> None:
    array = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    assert _kernel.crc32c(array, 1) == _kernel.crc32c_portable(array, 1) == REFERENCE.crc32c(array, 1)


@pytest.mark.complete
@pytest.mark.parametrize("without", ["1", "avx2"])
def test_paths_for_other_processors_pass_the_engine_suite(without: str) -> None:
    here = Path(__file__).parent
    suite = [str(here / name) for name in ("test_wire.py", "test_golden.py", "test_reference.py")]
    tests = (
        test_features_that_come_and_go_decode_alike,
        test_text_of_every_length_is_checked_alike,
        test_lists_and_long_values_decode_alike,
        test_records_of_any_length_decode_alike,
        test_rows_of_short_values_are_encoded_alike,
    )
    suite += [f"{__file__}::{test.__name__}" for test in tests]
    suite.append(str(here / "test_packed_runs.py::test_lists_of_records_decode_alike"))
    environment = {**os.environ, "TFRECORD_IO_PORTABLE": without}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *suite]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=here.parent.parent)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-500:]


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


@given(short_columns(), st.integers(0, 40))
def test_rows_of_short_values_are_encoded_alike(columns: list[ColumnBuffers], begin: int) -> None:
    rows = columns[0].rows
    begin = min(begin, rows)
    native, reference = (engine.encoder(columns).encode(begin, rows, prefix=b"") for engine in (NATIVE, REFERENCE))
    assert (bytes(native[0]), native[1]) == (bytes(reference[0]), reference[1])


@given(st.lists(st.tuples(st.integers(0, 64), st.integers(0, 130)), min_size=1, max_size=40), st.integers(1, 150))
def test_varints_and_bytes_of_every_size_are_encoded_alike(sizes: list[tuple[int, int]], count: int) -> None:
    """The header of the features gets longer and shorter from row to row."""
    numbers = np.array([(1 << bits) - 1 & (1 << 64) - 1 for bits, _ in sizes], np.uint64).view(np.int64)
    offsets = np.cumsum([0, *(length for _, length in sizes)])
    content = np.frombuffer(bytes(range(256)) * 30, np.uint8)[: offsets[-1]]
    valid = np.packbits([(length + count) % 3 > 0 for _, length in sizes], bitorder="little")
    rows, nulls = len(sizes), sum((length + count) % 3 == 0 for _, length in sizes)
    columns = [ColumnBuffers(f"n{i}", Kind.INT64, Layout.SCALAR, rows, values=numbers) for i in range(count)]
    columns += [
        ColumnBuffers(
            name="b" * length,
            kind=Kind.BYTES,
            layout=Layout.SCALAR,
            rows=rows,
            null_count=nulls,
            validity=valid,
            offsets=None,
            value_offsets=offsets,
            values=content,
        )
        for length in (1, 20, 54, 55)
    ]
    native, reference = (engine.encoder(columns).encode(0, rows) for engine in (NATIVE, REFERENCE))
    assert (bytes(native[0]), native[1]) == (bytes(reference[0]), reference[1])
