"""With on_error="skip", whatever was damaged: intact records only, in order, each once, and none of a nested file."""

from __future__ import annotations

import gzip
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of, engine_of
from records import blobs, example, floats, framed, int64s
from rounds import COMPLETE, rounds
from tfrecord_io.bytes.format.foreign_files import ForeignFile
from tfrecord_io.bytes.format.framing import FrameHeader
from tfrecord_io.read.chunks import block_walker, recovery
from tfrecord_io.read.chunks.block_walker import RecordFile

pytestmark = [pytest.mark.fault(18), pytest.mark.fault(21)]
SIZES = [1, 7, 100, 4 << 20]
Draw = Callable[..., Any]
CONFIRMED = 64  # records that confirm a boundary


@dataclass(frozen=True)
class Damage:
    """A damaged file, and which of its records were not touched.

    Attributes
    ----------
    content : bytes
    before, behind : int
        The records before this one, and from this one on, are intact and can be found.
    doubled : bool
        Bytes of the file were inserted a second time, maybe with whole records, or a file inside a payload may have
        come to begin at a boundary.
    """

    content: bytes
    before: int
    behind: int
    doubled: bool = False


def ends_of(payloads: list[bytes]) -> list[int]:
    """The boundaries between the records, from 0 on."""
    ends = [0]
    for payload in payloads:
        ends.append(ends[-1] + len(payload) + 16)
    return ends


@st.composite
def payload_lists(draw: Draw, examples: bool = False) -> list[bytes]:
    """Payloads, all different, some of which are or hold whole TFRecord files."""
    payloads = []
    for number in range(draw(st.integers(1, 12))):
        mark = b"outer record %d;" % number  # not 8 bytes: they and their checksum would look like a header
        records = [mark, *[b"grain %d.%d" % (number, i) for i in range(draw(st.sampled_from([0, 1, 3, 70])))]]
        inner = framed(*records)
        kind = draw(st.sampled_from(["plain", "plain", "file", "cut", "before", "behind", "field"]))
        if kind == "cut":
            # not 4: the checksum behind the payload would be where the inner file's last one is
            inner = framed(*records[:CONFIRMED])[: -draw(st.integers(1, 3) | st.integers(5, 20))]
        elif kind == "before":
            inner = draw(st.binary(max_size=20)) + inner
        elif kind == "behind":
            inner = framed(*records[: CONFIRMED - 1]) + draw(st.binary(max_size=20))
        if kind == "plain":
            inner = mark + draw(st.binary(max_size=60) | st.integers(0, 300).map(bytes))
        if kind == "field" or examples:
            inner = example(n=int64s(number), a=blobs(inner), z=blobs(mark))
        payloads.append(inner)
    assume(len({*payloads}) == len(payloads))
    return payloads


def may_be_damaged(content: bytes) -> bool:
    """Whether the first bytes, as many as blocks of any of the sizes have, do not look like another format."""
    return all(
        ForeignFile.looks_like(content[:count]) in (None, ForeignFile.ZEROS) for count in (*range(12, 25), 100, 512)
    )


def damages(payloads: list[bytes]) -> st.SearchStrategy[Damage]:
    """One damaged range of the file of these records, which does not begin like another format: those are errors."""
    return any_damages(payloads).filter(lambda damage: may_be_damaged(damage.content))


@st.composite
def any_damages(draw: Draw, payloads: list[bytes]) -> Damage:
    content, ends = framed(*payloads), ends_of(payloads)
    begin = draw(st.integers(0, len(content) - 1))
    end = min(len(content), begin + draw(st.integers(1, 40) | st.integers(1, 3000)))
    how = draw(st.sampled_from(["flip", "zero", "random", "insert", "double", "remove", "cut"]))
    first = max(i for i in range(len(payloads)) if ends[i] <= begin)
    behind = min((i for i in range(len(ends)) if ends[i] >= end), default=len(payloads))
    if how == "flip":
        damaged = bytearray(content)
        damaged[begin] ^= 1 << draw(st.integers(0, 7))
        return Damage(bytes(damaged), first, first + 1)
    if how == "zero":
        return Damage(content[:begin] + bytes(end - begin) + content[end:], first, behind)
    if how == "random":
        noise = (
            draw(st.binary(min_size=end - begin, max_size=end - begin))
            if end - begin < 100
            else b"\xa5" * (end - begin)
        )
        return Damage(content[:begin] + noise + content[end:], first, behind)
    if how == "insert":
        noise = draw(st.binary(min_size=1, max_size=40))
        return Damage(content[:begin] + noise + content[begin:], first, first + (begin > ends[first]))
    if how == "double":
        return Damage(content[:end] + content[begin:end] + content[end:], first, behind, doubled=True)
    if how == "cut":
        return Damage(content[:begin], first, len(payloads))
    # The record in which the bytes are missing hides those that begin before the end that its header states.
    stated = ends[first] if begin < ends[first] + 12 else ends[first + 1]
    hidden = next((i for i in range(behind, len(ends)) if ends[i] - (end - begin) >= stated), len(payloads))
    if begin >= ends[first] + 12 and ends[-1] - (end - begin) < stated:
        hidden = len(payloads)  # the file seems to end inside the record
    # The header of a record in a payload may have come to where the header was, so that a boundary is behind it.
    at = end - (begin - ends[first])
    moved = begin < ends[first] + 12 and at not in ends and FrameHeader(content[at : at + 12]).is_intact
    return Damage(content[:begin] + content[end:], first, hidden, doubled=moved)


@contextmanager
def file_of(content: bytes) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.tfrecord"
        path.write_bytes(content)
        yield path


def read(path: Path, size: int = 4 << 20) -> tuple[list[bytes], list[tfr.typing.SkippedRegion]]:
    """The payloads, and the regions left out."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", tfr.errors.DamagedDataWarning)
        patch.setattr(block_walker, "RecordFile", partial(RecordFile, block_bytes=size))
        reader = tfr.RecordReader(path, on_error="skip")
        return list(reader), list(reader.report.skipped)


def named(content: bytes, got: list[bytes], regions: list[tfr.typing.SkippedRegion]) -> Any:
    """The same; how zeros at the start of a file are named depends on how many of them are in a block."""
    if regions and regions[0].begin == 0 and not any(content[:12]):
        regions = [replace(regions[0], reason="zeros"), *regions[1:]]
    return got, regions


def check(payloads: list[bytes], damage: Damage, got: list[bytes], regions: list[tfr.typing.SkippedRegion]) -> None:
    numbers = {payload: number for number, payload in enumerate(payloads)}
    inner = b"".join(payloads) if damage.doubled else b""  # a file in a payload, if it comes a second time
    assert all(payload in numbers or framed(payload)[:-4] in inner for payload in got), "a record that was not written"
    order = [numbers[payload] for payload in got if payload in numbers]
    assert order[: damage.before] == list(range(damage.before))
    missing = {*range(damage.before), *range(damage.behind, len(payloads))} - {*order}
    assert not missing, f"intact records {missing} were left out"
    if not damage.doubled:
        assert order == sorted(set(order))
    # Regions and records make up the file.
    begin, at = 0, 0
    for region in regions:
        assert region.begin is not None
        assert region.end is not None
        size = region.begin - begin
        while size > 0:
            size -= len(got[at]) + 16
            at += 1
        assert size == 0
        assert region.end > region.begin
        begin = region.end
    assert begin + len(framed(*got[at:])) == len(damage.content)


@settings(max_examples=rounds(300))
@given(data=st.data(), payloads=payload_lists(), size=st.sampled_from(SIZES))
def test_only_and_all_intact_records_come_back(
    native_engine: None, data: Any, payloads: list[bytes], size: int
) -> None:
    damage = data.draw(damages(payloads))
    with file_of(damage.content) as path:
        check(payloads, damage, *read(path, size))


@settings(max_examples=rounds(60))
@given(data=st.data(), payloads=payload_lists(), size=st.sampled_from(SIZES))
def test_engines_blocks_and_compression_do_not_matter(
    native_engine: None, data: Any, payloads: list[bytes], size: int
) -> None:
    damage = data.draw(damages(payloads))
    with file_of(damage.content) as path:
        got, regions = named(damage.content, *read(path))
        with engine_of("reference_engine"):
            assert named(damage.content, *read(path, size)) == (got, regions)
        path.write_bytes(gzip.compress(damage.content, 1))
        assert named(damage.content, *read(path, size)) == (got, regions)


def collect(path: Path, size: int = 4 << 20) -> tuple[list[bytes], tfr.typing.ReadReport]:
    """The payloads, and the report, for which no warning was issued."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error")
        patch.setattr(block_walker, "RecordFile", partial(RecordFile, block_bytes=size))
        reader = tfr.RecordReader(path, on_error="collect")
        return list(reader), reader.report


def rows_of(regions: list[tfr.typing.SkippedRegion]) -> list[tuple[Any, ...]]:
    return [(r.path, r.records_before, r.begin, r.end, r.reason, r.error) for r in regions]


@settings(max_examples=rounds(100))
@given(data=st.data(), payloads=payload_lists(), size=st.sampled_from(SIZES), engine=st.booleans())
def test_a_table_has_each_region_that_is_skipped(
    native_engine: None, data: Any, payloads: list[bytes], size: int, engine: bool
) -> None:
    """And that the reference engine skips; also where ``report.skipped`` would keep the first of them."""
    damage = data.draw(damages(payloads))
    with file_of(damage.content) as path:
        got, regions = read(path, size)
        with pytest.MonkeyPatch.context() as patch, engine_of("reference_engine") if engine else nullcontext():
            patch.setattr(recovery.SkippedRegions, "MOST", 1)
            collected, report = collect(path, size)
            assert named(damage.content, *read(path, size)) == named(damage.content, got, regions[:1])
    table = report.skipped_table()
    assert collected == got
    assert report.skipped.total == table.num_rows
    assert [tuple(row.values()) for row in table.to_pylist()] == rows_of(regions)


def table_and_report(path: Path, **keywords: Any) -> tuple[Any, list[tfr.typing.SkippedRegion], list[str]]:
    """The table, as a whole and in batches, the regions, and the warnings."""
    with warnings.catch_warnings(record=True) as issued:
        warnings.simplefilter("always")
        table = read_by(tfr.read_table, path, on_error="skip", **keywords)
        texts = [str(warning.message) for warning in issued]
        with read_by(tfr.open_reader, path, on_error="skip", batch_size=3, sample="all", **keywords) as reader:
            batches = list(reader)
    assert [row for batch in batches for row in batch.to_pylist()] == table.to_pylist()
    assert [len(batch) for batch in batches[:-1]] == [3] * (len(batches) - 1)
    assert reader.report.records == table.num_rows
    return table, list(reader.report.skipped), texts


@settings(max_examples=rounds(100))
@given(data=st.data(), payloads=payload_lists(examples=True), size=st.sampled_from([20, 100, 4 << 20]))
def test_tables_are_those_of_the_intact_records(
    native_engine: None, data: Any, payloads: list[bytes], size: int
) -> None:
    """Whatever the number of threads; records that cannot be decoded are left out, too."""
    for bad in data.draw(st.lists(st.sampled_from([b"\xff", b"\x0a\x05", example(n=floats(1.0))]), max_size=2)):
        payloads.insert(data.draw(st.integers(0, len(payloads))), bad)
    damage = data.draw(damages(payloads))
    schema = data.draw(st.sampled_from([None, {"n": "int64", "a": "binary"}]))
    good = [payload for payload in payloads if payload[0] == 10 and len(payload) > 25]
    with file_of(damage.content) as path, blocks_of(size):
        kept = [payload for payload in read(path)[0] if payload in good or schema is None]
        if schema is None and any(payload not in good for payload in kept):
            schema = {"n": "int64", "z": "binary"}  # with an inferred one, a contradiction is an error
            kept = [payload for payload in kept if payload in good]
        found = table_and_report(path, schema=schema, threads=1)
        for threads in (2, 4):
            assert table_and_report(path, schema=schema, threads=threads) == found
        with engine_of("reference_engine"):
            table, regions, _ = table_and_report(path, schema=schema)
            assert (table, [(r.begin, r.end) for r in regions]) == (found[0], [(r.begin, r.end) for r in found[1]])
        limit = data.draw(st.integers(0, 5))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            window = tfr.read_table(path, on_error="skip", schema={"n": "int64"}, limit=limit)
            assert window["n"].to_pylist() == [row.get("n") for row in found[0].to_pylist()][:limit]
            path.write_bytes(framed(*kept))
            assert tfr.read_table(path, schema=schema) == found[0]


@settings(max_examples=rounds(100))
@given(data=st.data(), payloads=payload_lists(), size=st.sampled_from(SIZES))
def test_no_record_is_invented_where_much_is_damaged(
    native_engine: None, data: Any, payloads: list[bytes], size: int
) -> None:
    content = data.draw(damages(payloads)).content
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, max(0, len(content) - 1)))
        length = data.draw(st.integers(1, 60))
        content = (
            content[:at] + data.draw(st.sampled_from([b"", bytes(length), b"\xff" * length])) + content[at + length :]
        )
    assume(may_be_damaged(content))
    with file_of(content) as path:
        got, regions = read(path, size)
    check(payloads, Damage(content, 0, len(payloads), doubled=True), got, regions)


GOLDEN = [
    path for path in sorted((Path(__file__).parents[1] / "data").glob("*.tfrecord")) if path.stat().st_size < 5000
]


@pytest.mark.fault(5)
@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.name)
def test_a_flipped_bit_costs_one_record(native_engine: None, golden: Path) -> None:
    content = golden.read_bytes()
    payloads = list(tfr.RecordReader(golden))
    ends = ends_of(payloads)
    with file_of(content) as path:
        for bit in range(0, 8 * len(content), 1 if COMPLETE else 61):
            flipped = bytearray(content)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            lost = max(i for i in range(len(payloads)) if ends[i] <= bit // 8)
            got, regions = read(path)
            assert got == payloads[:lost] + payloads[lost + 1 :]
            assert [(region.begin, region.end) for region in regions] == [(ends[lost], ends[lost + 1])]
