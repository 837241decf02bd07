"""Random records, plans and damage, for Hypothesis: a small writer also makes wire bytes that no library writes."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

from tfrecord_io.bytes.engine.contract import Plan, PlanColumn
from tfrecord_io.bytes.format.feature_types import Kind, Layout, RecordType, Text

Draw = Callable[..., Any]

NAMES = ["a", "b", "", "image/encoded", "ключ"]
EMBEDDED = 21574


# --- the writer


def varint(value: int, pad: int = 0) -> bytes:
    """A varint, made longer than it needs to be by `pad` bytes."""
    value &= 2**64 - 1
    out = bytearray()
    while value > 0x7F or pad > 0:
        pad -= value <= 0x7F
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def tag(number: int, wire_type: int, pad: int = 0) -> bytes:
    return varint(number << 3 | wire_type, pad)


def field(number: int, content: bytes, pad: int = 0) -> bytes:
    """A length-delimited field."""
    return tag(number, 2) + varint(len(content), pad) + content


def group(number: int, content: bytes) -> bytes:
    return tag(number, 3) + content + tag(number, 4)


def entry(key: str | bytes, value: bytes) -> bytes:
    """A map entry with its field tag."""
    return field(1, field(1, key.encode() if isinstance(key, str) else key) + field(2, value))


def int64s(*values: int) -> bytes:
    """A Feature."""
    return field(3, field(1, b"".join(varint(v) for v in values)) if values else b"")


def floats(*values: float) -> bytes:
    return field(2, field(1, struct.pack(f"<{len(values)}f", *values)) if values else b"")


def blobs(*values: bytes) -> bytes:
    return field(1, b"".join(field(1, v) for v in values))


def example(**features: bytes) -> bytes:
    return field(1, b"".join(entry(name, value) for name, value in features.items()))


def sequence_example(context: dict[str, bytes], lists: dict[str, list[bytes]]) -> bytes:
    steps = {name: b"".join(field(1, step) for step in features) for name, features in lists.items()}
    return example(**context) + field(2, b"".join(entry(name, value) for name, value in steps.items()))


# --- the strategies

seldom = partial(st.sampled_from, [True] + 11 * [False])
int64_values = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 300)
float_bits = st.sampled_from(
    [b"\x00\x00\xc0\x3f", b"\x01\x00\x80\x7f", b"\x00\x00\x00\x80", b"\x01\x00\x00\x00"]
) | st.binary(min_size=4, max_size=4)
byte_values = (
    st.binary(max_size=12)
    | st.text(max_size=6).map(str.encode)
    | st.sampled_from([b"cat", b"a\tb", b"\x7f", "\x85".encode(), b"x" * 40])
)


@st.composite
def unknown_fields(draw: Draw, depth: int = 0) -> bytes:
    """Draw a field that is unknown to messages, or has another wire type there."""
    number = draw(st.sampled_from([4, 5, 15, 16, 2047, 2**29 - 1, EMBEDDED, 1, 2, 3]))
    wire_type = draw(st.sampled_from([0, 1, 2, 5] if depth > 2 else [0, 1, 2, 3, 5]))
    pad = draw(st.integers(0, 1))
    if wire_type == 0:
        return tag(number, 0, pad) + varint(draw(int64_values))
    if wire_type == 2:
        return (
            field(number + 5, draw(st.binary(max_size=4)), pad)
            if number <= 3
            else field(number, draw(st.binary(max_size=4)), pad)
        )
    if wire_type == 3:
        return group(number, b"".join(draw(st.lists(unknown_fields(depth + 1), max_size=2))))
    return tag(number, wire_type, pad) + draw(
        st.binary(min_size=8 if wire_type == 1 else 4, max_size=8 if wire_type == 1 else 4)
    )


def spoiled(draw: Draw, parts: list[bytes]) -> bytes:
    """Join fields, seldom with an unknown field among them."""
    if draw(seldom()):
        parts.insert(draw(st.integers(0, len(parts))), draw(unknown_fields()))
    return b"".join(parts)


@st.composite
def value_lists(draw: Draw, kind: Kind) -> bytes:
    """A BytesList, FloatList or Int64List: packed runs and single values mixed."""
    count = draw(st.sampled_from([1, 1, 1, 0, 2, 3, 9]))
    if kind == Kind.BYTES:
        return spoiled(draw, [field(1, draw(byte_values)) for _ in range(count)])
    encode, wire_type = (varint, 0) if kind == Kind.INT64 else (lambda bits: bits, 5)
    values = [encode(draw(int64_values if kind == Kind.INT64 else float_bits)) for _ in range(count)]
    if draw(seldom()):
        return spoiled(draw, [tag(1, wire_type) + value for value in values])
    cut = draw(st.integers(0, count)) if draw(seldom()) else 0
    runs = [values[:cut], values[cut:]] if cut else [values]
    return spoiled(
        draw,
        [
            field(1, b"".join(run), draw(st.sampled_from([0, 0, 0, 0, 1, 4])))
            for run in runs
            if run or draw(st.booleans())
        ],
    )


@st.composite
def features(draw: Draw, kind: Kind) -> bytes:
    if draw(seldom()):
        return spoiled(draw, [])  # no kind
    kinds = [kind]
    if draw(seldom()):
        kinds = draw(st.lists(st.sampled_from([Kind.BYTES, Kind.FLOAT, Kind.INT64]), min_size=1, max_size=4))
    return spoiled(draw, [field(int(k), draw(value_lists(k)), draw(st.sampled_from([0, 0, 0, 1]))) for k in kinds])


@st.composite
def feature_lists(draw: Draw, kind: Kind) -> bytes:
    count = draw(st.sampled_from([0, 1, 1, 2, 3]))
    return spoiled(draw, [field(1, draw(features(kind))) for _ in range(count)])


@st.composite
def entries(draw: Draw, name: str, value: st.SearchStrategy[bytes]) -> bytes:
    parts = [field(1, name.encode()), field(2, draw(value))]
    if draw(seldom()):
        other = field(1, draw(st.sampled_from([*(n.encode() for n in NAMES), b"\xff\xfe"])))
        parts = draw(st.lists(st.sampled_from([*parts, other, field(2, draw(value))]), max_size=4))
    return spoiled(draw, parts)


@st.composite
def maps(draw: Draw, kinds: dict[str, Kind], make: Callable[[Kind], st.SearchStrategy[bytes]]) -> bytes:
    names = draw(st.lists(st.sampled_from(list(kinds)), max_size=4)) if draw(st.booleans()) else list(kinds)
    return spoiled(draw, [field(1, draw(entries(name, make(kinds[name])))) for name in names])


@st.composite
def payloads(draw: Draw, features_by_name: dict[str, Kind], lists_by_name: dict[str, Kind]) -> bytes:
    """One record that protobuf accepts, most times."""
    if draw(seldom()):  # an ExampleListWithContext, or nearly
        nested = st.binary(max_size=3) | maps(features_by_name, features).map(partial(field, 1))
        return spoiled(
            draw, [field(draw(st.sampled_from([1, 1, 2])), inner) for inner in draw(st.lists(nested, max_size=3))]
        )
    parts = [field(1, draw(maps(features_by_name, features)), draw(st.sampled_from([0, 0, 0, 1])))]
    if lists_by_name and draw(st.booleans()):
        parts.append(field(2, draw(maps(lists_by_name, feature_lists))))
    if draw(seldom()):
        parts = draw(st.lists(st.sampled_from([*parts, field(1, draw(maps(features_by_name, features)))]), max_size=3))
    if draw(seldom()):
        parts.insert(draw(st.integers(0, len(parts))), field(EMBEDDED, draw(st.binary(max_size=3))))
    return spoiled(draw, parts)


@st.composite
def damaged(draw: Draw, data: bytes) -> bytes:
    """`data` with a few bytes changed, left out or put in, or cut off."""
    out = bytearray(data)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, max(0, len(out) - 1)))
        how = draw(st.integers(0, 3))
        if how == 0 and out:
            out[at] ^= 1 << draw(st.integers(0, 7))
        elif how == 1:
            out[at : at + 1] = bytes([draw(st.sampled_from([0, 1, 2, 3, 4, 8, 10, 11, 12, 18, 26, 127, 128, 255]))])
        elif how == 2:
            out[at:at] = draw(st.binary(min_size=1, max_size=2))
        else:
            del out[at : at + draw(st.sampled_from([1, 2, 10**6]))]
    return bytes(out)


@st.composite
def datasets(draw: Draw, damage: bool = True) -> list[bytes]:
    """Payloads of the records of one file: names mostly keep their kinds."""
    kind = st.sampled_from([Kind.BYTES, Kind.FLOAT, Kind.INT64])
    features_by_name = {
        name: draw(kind) for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
    }
    list_names = draw(st.sampled_from([[], ["steps"], ["steps", "frames"], [*features_by_name]]))
    found = draw(st.lists(payloads(features_by_name, {name: draw(kind) for name in list_names}), max_size=12))
    if damage and found and draw(st.booleans()):
        at = draw(st.integers(0, len(found) - 1))
        found[at] = draw(damaged(found[at]))
    return found


@st.composite
def plans(draw: Draw) -> Plan:
    names = draw(st.lists(st.sampled_from([*NAMES, "steps", "frames"]), max_size=4, unique=True))
    kind = st.sampled_from([Kind.NONE, Kind.NONE, Kind.BYTES, Kind.FLOAT, Kind.INT64])
    layout = st.sampled_from([Layout.ANY, Layout.ANY, Layout.LIST, Layout.LIST, Layout.SCALAR, Layout.NULL])
    columns = tuple(
        PlanColumn(
            name,
            kind=draw(kind),
            layout=draw(layout),
            text=draw(st.sampled_from(Text)),
            required=draw(seldom()),
            steps=draw(st.booleans()) if name in ("steps", "frames") else draw(seldom()),
            splits=draw(seldom()),
        )
        for name in names
    )
    chosen = draw(st.none() | st.frozensets(st.sampled_from([*NAMES, "steps", "frames"])))
    return Plan(
        columns=columns,
        unknown=draw(st.sampled_from(["discover", "discover", "skip", "skip", "fault"])),
        select=None if chosen is None else chosen.__contains__,
        ignored=draw(st.sampled_from([frozenset(), frozenset(), frozenset({"a", "steps"})])),
        text=draw(st.sampled_from([Text.TRACK, Text.TRACK, *Text])),
        record_type=draw(st.sampled_from(RecordType)),
        check_crc=draw(st.sampled_from([True, True, False])),
        max_record_bytes=draw(st.sampled_from([2**31 - 1, 2**31 - 1, 2**31 - 1, 60])),
        max_features=draw(st.sampled_from([100_000, 100_000, 3])),
        stop_at_embedded=draw(st.booleans()),
        splits=draw(st.booleans()),
        typed_empties=draw(seldom()),
    )
