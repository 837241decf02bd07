"""The engine fixture: every test of this folder runs on each engine."""

from __future__ import annotations

import pytest

from engine_comparison import ENGINES
from tfrecord_io.bytes.engine.contract import Engine


@pytest.fixture(params=ENGINES, ids=lambda engine: engine.name, scope="session")
def engine(request: pytest.FixtureRequest) -> Engine:
    return request.param
