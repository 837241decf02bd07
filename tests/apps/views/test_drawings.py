"""Lines, waveforms and heat maps."""

from __future__ import annotations

import io
import re
import wave

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tfrecord_io.apps.views.drawings import heat_map, line, waveform


@given(arrays(np.float64, st.integers(0, 500), elements=st.floats()))
def test_a_line_stays_in_its_place(values: np.ndarray) -> None:
    path = re.search(r'd="M([^"]+)"', line(values))
    points = [tuple(map(float, point.split())) for point in path[1].split("L")] if path else []
    assert bool(points) == (np.isfinite(values).sum() >= 2)
    assert all(0 <= x <= 100 and 0 <= y <= 24 for x, y in points)
    assert len(points) <= 120


def sound(width: int, frames: int) -> bytes:
    out = io.BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(2)
        file.setsampwidth(width)
        file.setframerate(8000)
        file.writeframes(bytes(range(256)) * (frames * width * 2 // 256 + 1))
    return out.getvalue()


@pytest.mark.parametrize("width", [1, 2, 4])
@pytest.mark.parametrize("frames", [1, 50, 5000])
def test_a_sound_has_a_waveform(width: int, frames: int) -> None:
    drawn = waveform(sound(width, frames))
    heights = [float(height) for height in re.findall(r"v([\d.]+)", drawn)]
    assert 0 < len(heights) <= 120
    assert max(heights) <= 24


def test_what_is_no_sound_has_no_waveform() -> None:
    assert waveform(b"RIFF....WAVE") == waveform(b"fLaC") == waveform(b"") == ""
    assert waveform(sound(3, 50)) == ""


@given(arrays(np.float32, array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5)))
def test_tensors_of_two_dimensions_have_a_heat_map(values: np.ndarray) -> None:
    png = heat_map(values, 4)
    assert (png is None) == (values.ndim < 2 or not values.size)
    if png is not None:
        width, height = np.frombuffer(png[16:24], ">u4").tolist()
        assert 0 < width <= 4
        assert 0 < height <= 4
