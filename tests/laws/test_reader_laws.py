"""What a file reads as depends on its records alone: not on threads, blocks, the engine, or how a stream is split."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example as explicit
from hypothesis import given
from hypothesis import strategies as st

import tfrecord_io as tfr
from reading import read_by
from reading_modes import blocks_of, engine_of, on_disk
from records import blobs, example, field, floats, framed, int64s, written
from strategies import datasets

pytestmark = pytest.mark.filterwarnings("ignore:.*no records, so the columns")

NAMES = ["a", "b", "ключ"]
VALUES = {
    "a": st.lists(st.integers(-(2**63), 2**63 - 1), max_size=3).map(lambda v: int64s(*v) or field(3, b"")),
    "b": st.lists(st.sampled_from([b"", b"cat", b"\xff", "ä".encode()]), max_size=2).map(lambda v: blobs(*v)),
    "ключ": st.lists(st.floats(width=32, allow_nan=False), max_size=2).map(lambda v: floats(*v) or field(2, b"")),
}
TENSORS: list[
    dict[str, bytes]
] = [  # a matrix, another one, one of another shape, none; one of another dtype, bytes without a shape
    {"t": blobs(b"\1\2"), "t/shape": int64s(1, 2), "t/dtype": blobs(b"uint8")},
    {"t": blobs(b"\3\4"), "t/shape": int64s(1, 2), "t/dtype": blobs(b"uint8")},
    {"t": blobs(b"\5"), "t/shape": int64s(1, 1), "t/dtype": blobs(b"uint8")},
    {},
    {"t": blobs(b"\5"), "t/shape": int64s(1, 1), "t/dtype": blobs(b"int8")},
    {"t": blobs(b"\5"), "t/dtype": blobs(b"uint8")},
]
tensors = st.sampled_from([2, 4, len(TENSORS)]).flatmap(lambda kinds: st.sampled_from(TENSORS[:kinds]))
features = st.builds(lambda plain, tensor: {**plain, **tensor}, st.fixed_dictionaries({}, optional=VALUES), tensors)
rows = features.map(lambda features: example(**features))
uniform = st.fixed_dictionaries(
    {}, optional={"a": st.integers(0, 300).map(int64s), "b": st.sampled_from([b"x", b"yy"]).map(blobs)}
)
files = st.lists(st.lists(rows | uniform.map(lambda f: example(**f)), max_size=6), min_size=1, max_size=4)


def outcome(paths: Any, **keywords: Any) -> Any:
    """Types and values, or the attributes of the error."""
    try:
        table = read_by(tfr.read_table, paths, **keywords)
    except (tfr.TFRecordError, NotImplementedError) as error:
        return {"class": type(error).__name__, **getattr(error, "__dict__", {})}
    table.validate(full=True)
    return table.schema, table.num_rows, table.to_pylist()


@given(contents=files)
def test_threads_blocks_and_engines_do_not_change_what_is_read(
    native_engine: None, contents: list[list[bytes]]
) -> None:
    with on_disk(contents) as paths:
        expected = outcome(paths, threads=1)
        assert isinstance(expected, tuple)
        for engine, size, threads in [("native", 64, 1), ("native", 100, 3), ("reference_engine", 64, 2)]:
            with engine_of(engine), blocks_of(size):
                assert outcome(paths, threads=threads) == expected
                with tfr.open_reader(tfr.dataset(paths, sample="all", threads=threads), batch_size=2) as reader:
                    batches = list(reader)
                assert [len(b) for b in batches[:-1]] == [2] * (len(batches) - 1)
                assert (reader.schema, [row for b in batches for row in b.to_pylist()]) == (expected[0], expected[2])


@given(contents=files, data=st.data())
def test_the_order_of_files_does_not_change_types(
    native_engine: None, contents: list[list[bytes]], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(contents))))
    with on_disk(contents) as paths:
        schema, _, by_file = (
            tfr.read_table(paths).schema,
            0,
            [tfr.read_table(p, schema=tfr.read_table(paths).schema) for p in paths],
        )
        turned = tfr.read_table([paths[i] for i in order])
        assert turned.schema == schema
        assert turned.to_pylist() == [row for i in order for row in by_file[i].to_pylist()]


@given(
    payloads=datasets(),
    window=st.fixed_dictionaries({}, optional={"offset": st.integers(0, 3), "limit": st.integers(0, 8)}),
)
@explicit(payloads=[example(b=floats(*[1.5] * 20), a=int64s(1)), example(b=blobs(b"x"), a=blobs(b"x"))], window={})
@explicit(payloads=[*[example(a=int64s(*range(70)))] * 6, example(a=floats(1.5))], window={})
@pytest.mark.filterwarnings("ignore:.*its embedded schema cannot be used")
def test_damage_is_reported_alike_however_it_is_read(
    native_engine: None, payloads: list[bytes], window: dict[str, int]
) -> None:
    with on_disk([payloads[:5], payloads[5:]]) as paths:
        with engine_of("reference_engine"):
            expected = outcome(paths, threads=1, record_type="example", **window)
        for engine, size, threads in [
            ("native", 1 << 20, 1),
            ("native", 64, 1),
            ("native", 100, 3),
            ("reference_engine", 64, 2),
        ]:
            with engine_of(engine), blocks_of(size):
                got = outcome(paths, threads=threads, record_type="example", **window)
                if isinstance(expected, dict) and expected["class"] == "DecodeError":  # protobuf does not say why
                    alike = ("class", "record", "offset", "path", "records_intact")
                    expected, got = ({k: e.get(k) for k in alike} for e in (expected, got))
                assert repr(got) == repr(expected)


@given(payloads=st.lists(rows, min_size=1, max_size=6), data=st.data())
def test_truncation_or_a_flipped_bit_anywhere_is_detected(
    native_engine: None, payloads: list[bytes], data: st.DataObject
) -> None:
    content = framed(*payloads)
    ends = [len(framed(*payloads[: i + 1])) for i in range(len(payloads))]
    at = data.draw(st.integers(0, len(content) - 1))
    cut = data.draw(st.booleans())
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a")
        flipped = content[:at] + bytes([content[at] ^ 1 << data.draw(st.integers(0, 7))]) + content[at + 1 :]
        Path(path).write_bytes(content[:at] if cut else flipped)
        whole = sum(end <= at for end in ends)
        for threads in (1, 2):
            with blocks_of(data.draw(st.sampled_from([64, 300]))):
                if cut and at in (0, *ends):
                    assert tfr.read_table(tfr.dataset(path, threads=threads)).num_rows == whole
                    continue
                with pytest.raises(tfr.errors.CorruptRecordError) as caught:
                    tfr.read_table(tfr.dataset(path, threads=threads))
                assert isinstance(caught.value, tfr.errors.TruncatedRecordError) or not cut
                assert (caught.value.record, caught.value.records_intact) == (whole, whole)
                assert caught.value.offset == (ends[whole - 1] if whole else 0)


@given(payloads=st.lists(st.binary(max_size=100), max_size=8), batch_size=st.integers(1, 4), threads=st.integers(1, 3))
def test_any_payloads_are_read_as_bytes(
    native_engine: None, payloads: list[bytes], batch_size: int, threads: int
) -> None:
    with on_disk([payloads[:3], payloads[3:]]) as paths, blocks_of(64):
        assert tfr.read_table(tfr.dataset(paths, record_type="bytes", threads=threads)) == pa.table(
            {"record": payloads}, schema=pa.schema([pa.field("record", pa.binary(), nullable=False)])
        )
        with tfr.open_reader(tfr.dataset(paths, record_type="bytes", threads=threads), batch_size=batch_size) as reader:
            assert [v for batch in reader for v in batch["record"].to_pylist()] == payloads
        assert list(tfr.RecordReader(paths)) == payloads


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [64, 1000, 4 << 20])
def test_records_larger_than_a_block(engine: str, tmp_path: Path, threads: int, size: int) -> None:
    values = [bytes([65 + i]) * n for i, n in enumerate([10, 5000, 0, 3000, 1, 20_000])]
    path = written(tmp_path / "a", [example(x=blobs(v)) for v in values])
    with blocks_of(size):
        assert tfr.read_table(tfr.dataset(path, infer_text=False, threads=threads))["x"].to_pylist() == values
        assert (
            tfr.read_table(tfr.dataset(path, infer_text=False, threads=threads, offset=3))["x"].to_pylist()
            == values[3:]
        )
        with tfr.open_reader(tfr.dataset(path, infer_text=False, threads=threads, sample=2), batch_size=1) as reader:
            assert [v for batch in reader for v in batch["x"].to_pylist()] == values
