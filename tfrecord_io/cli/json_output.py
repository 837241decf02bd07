"""Values as JSON has them."""

from __future__ import annotations

import base64
import math
from typing import Any


def plain_values(value: Any) -> Any:
    """A value as JSON has it: bytes as base64, what JSON lacks as text.

    >>> plain_values([b"\\xff", float("nan"), 1])
    [{'base64': '/w=='}, 'NaN', 1]
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    if isinstance(value, bytes):
        return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, dict):
        return {str(k): plain_values(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_values(v) for v in value]
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
