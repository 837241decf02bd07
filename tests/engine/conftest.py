"""The engines, one after the other: every test of this folder runs on each."""

from __future__ import annotations

import pytest

from tfrecord_io.engine.contract import Engine
from tfrecord_io.engine.select import engines


@pytest.fixture(params=engines(), ids=lambda engine: engine.name, scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param
