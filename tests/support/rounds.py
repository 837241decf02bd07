"""How many rounds randomised tests run: all of them with ``make test STORM=1``, a part of them otherwise."""

from __future__ import annotations

import os

COMPLETE = os.environ.get("TFRECORD_IO_STORM") == "1"


def rounds(complete: int) -> int:
    """`complete` rounds in the complete run; otherwise a quarter of them, but not fewer than 20."""
    return complete if COMPLETE else min(complete, max(20, complete // 4))
