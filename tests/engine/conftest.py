"""The engine fixture: every test of this folder runs on each engine."""

from __future__ import annotations

import pytest

from engine_comparison import engines
from tfrecord_io.engine.contract import Engine


@pytest.fixture(params=engines(), ids=lambda engine: engine.name, scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param
