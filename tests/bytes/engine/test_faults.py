"""What the messages for faults advise."""

from __future__ import annotations

import pytest

from tfrecord_io.base.options.tuned_limits import LIMITS
from tfrecord_io.bytes.engine.contract import Fault, FaultCode


@pytest.mark.parametrize(
    ("length", "limit"), [(11, 10), (LIMITS.MAX_RECORD_BYTES + 1, LIMITS.MAX_RECORD_BYTES), (2**40, 10)]
)
def test_a_limit_is_to_be_raised_only_where_that_helps(length: int, limit: int) -> None:
    error = Fault(FaultCode.LENGTH_TOO_LARGE, 0, 0, expected=limit, got=length).to_error()
    assert ("record_bytes" in str(error)) == (length <= LIMITS.MAX_RECORD_BYTES)
    assert ("cannot be raised; see on_error=" in str(error)) == (length > LIMITS.MAX_RECORD_BYTES)
