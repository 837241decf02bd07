"""Charts as SVG."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tfrecord_io.apps.views.charts import histogram_chart, share_bar
from tfrecord_io.apps.views.number_statistics import NumberAccumulator


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40))
def test_bars_lie_within_the_chart(values: list[float]) -> None:
    accumulator = NumberAccumulator(np.random.default_rng(0))
    accumulator.add(np.array(values))
    drawn = accumulator.result().histogram
    assert drawn is not None
    chart = histogram_chart([drawn], max(values))
    boxes = [
        list(map(float, box)) for box in re.findall(r'<rect x="(.+?)" y="(.+?)" width="(.+?)" height="(.+?)"', chart)
    ]
    assert len(boxes) == sum(count > 0 for count in drawn.counts)
    for x, y, width, height in boxes:
        assert 0 <= x <= x + width <= 400.01
        assert 0 <= y <= y + height <= 100.01
    tips = re.findall(r"<title>.*?: ([\d,]+) \(", chart)
    assert sum(int(tip.replace(",", "")) for tip in tips) == len(values)


def test_a_bar_is_never_longer_than_its_frame() -> None:
    assert 'class="fill s0" width="100.00"' in share_bar(7.0)
    assert 'class="fill s0" width="0.00"' in share_bar(0.0)
