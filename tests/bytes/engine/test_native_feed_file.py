"""`feed_file` decodes what `feed` would, window by window, and leaves to it what it does not decode."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from engine_comparison import NATIVE, decoded_from_file, essence, feed_on
from reference_engine import ENGINE as REFERENCE
from strategies import datasets, example, int64s, plans
from tfrecord_io.bytes.engine.contract import Decoder, FileView, Plan, Progress


def state(decoder: Decoder, progress: Progress) -> list[Any]:
    held = (decoder.rows, decoder.value_bytes, decoder.integer_bytes, decoder.counts, decoder.sequence)
    return [progress.records, progress.consumed, essence(progress.fault), held, decoder.new_names]


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Records of which the last may be truncated, or a byte changed."""
    data = bytearray(REFERENCE.frame(draw(datasets())))
    if data and draw(st.booleans()):
        data[draw(st.integers(0, len(data) - 1))] ^= 1
    return bytes(data[: len(data) - draw(st.sampled_from([0, 0, 1, 7, 20, 40]))])


@given(files(), plans(), st.integers(1, 300), st.integers(16, 600), st.integers(16, 600), st.integers(0, 400))
def test_windows_of_any_size_decode_alike(
    data: bytes, plan: Plan, window: int, room: int, most: int, max_bytes: int
) -> None:
    plan = plan._replace(max_record_bytes=2**31 - 1)
    whole, in_windows = NATIVE.decoder(plan), NATIVE.decoder(plan)
    expected, _ = feed_on(whole, data, 0, -1, max_bytes, True)
    progress = decoded_from_file(in_windows, data, window, room, most, max_bytes)
    assert state(in_windows, progress) == state(whole, expected)
    for mine, other in zip(in_windows.take(), whole.take(), strict=True):
        assert repr(mine) == repr(other)


def test_bytes_that_cannot_be_read_are_left_to_the_caller() -> None:
    """As the file has become shorter, or its descriptor is not one of a file."""
    records = [bytes(REFERENCE.frame([example(a=int64s(number))])) for number in range(3)]
    size = len(records[0])
    with tempfile.TemporaryFile() as file:
        file.write(b"".join(records[:2]))
        file.flush()
        decoder = NATIVE.decoder(Plan())
        decoder.know([("a", False)])
        view = FileView(file.fileno(), 3 * size, np.zeros(8192, np.uint8), size, 2**31 - 1, 3 * size)
        assert decoder.feed_file(view, 0, 3 * size, max_bytes=-1) == 2 * size
        assert decoder.feed_file(view._replace(descriptor=-1), 0, 3 * size, max_bytes=-1) == 0
    assert decoder.rows == 2
